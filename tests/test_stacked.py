"""SPD402 where the program's own collate function decides whether all pictures have one size."""

from __future__ import annotations

from pathlib import Path

import pytest

from speedlint.ask.script import Options
from speedlint.config import Settings
from speedlint.engine import Engine
from speedlint.registry import Registry

REGISTRY = Registry.load()
SCRIPT = """
import random

import torch
import torchvision.models as models
from PIL import Image
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence
from torch.utils.data import DataLoader, Dataset


class Photos(Dataset):
    def __init__(self, files, words, transform=None):
        self.files, self.words, self.transform = files, words, transform

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        photo = Image.open(self.files[index]).convert("RGB")
        if self.transform is not None:
            photo = self.transform(photo)
        return photo, self.words[index]


{collate}


def main(files, words, transform):
    model = models.resnet50()
    model.to("cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(Photos(files, words, transform), 64, shuffle=True, num_workers=8, {arguments})
    for photos, words in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(photos.cuda()), {words}.cuda()).backward()
        optimizer.step()


main([], [], None)
"""
PLAIN = """
def collate(items):
    photos, words = tuple(zip(*items))
    photos = torch.stack(photos, dim=0)
    return photos, torch.as_tensor(words)
"""
PADDED = """
def collate(items):
    items.sort(key=lambda item: len(item[1]), reverse=True)
    photos, words = zip(*items)
    photos = torch.stack(photos, 0)
    lengths = [len(each) for each in words]
    table = torch.zeros(len(words), max(lengths)).long()
    for i, each in enumerate(words):
        table[i, :lengths[i]] = each[:lengths[i]]
    return photos, table
"""
OBJECT = """
class Collate:
    def __init__(self, pad):
        self.pad = pad

    def __call__(self, items):
        photos = torch.cat([item[0].unsqueeze(0) for item in items], dim=0)
        words = pad_sequence([item[1] for item in items], batch_first=True, padding_value=self.pad)
        return photos, words
"""
APPENDED = """
def collate(items):
    photos, words = [], []
    for photo, word in items:
        photos.append(photo)
        words.append(word)
    return torch.stack(photos), torch.tensor(words)
"""
PACKED = "pack_padded_sequence(words, [3] * 64)[0]"
OWN = "collate_fn=collate"


def found(folder: Path, collate: str, arguments: str = OWN, words: str = "words") -> int:
    path = folder / "train.py"
    path.write_text(SCRIPT.format(collate=collate, arguments=arguments, words=words))
    report = Engine(Settings(folder, select=("SPD402",)), REGISTRY, options=Options((2, 13))).check(path)
    assert not report.problems
    return len(report.diagnostics)


@pytest.mark.parametrize(
    ("collate", "arguments", "words"),
    [
        (PLAIN, OWN, "words"),
        (APPENDED, OWN, "words"),
        (PADDED, OWN, "words"),
        (PADDED, OWN, PACKED),
        (OBJECT, "collate_fn=Collate(0)", PACKED),
        ("", "drop_last=True", PACKED),
    ],
)
def test_pictures_that_are_stacked_as_they_are_have_one_size(
    tmp_path: Path, collate: str, arguments: str, words: str
) -> None:
    assert found(tmp_path, collate, arguments, words) == 1


@pytest.mark.parametrize(
    ("before", "after"),
    [
        # each batch has its own size
        ("torch.stack(photos, 0)", "nn.functional.interpolate(torch.stack(photos, 0), size=random.choice((192, 256)))"),
        ("torch.stack(photos, 0)", "torch.stack([photo[:, : 32 * random.randint(1, 8)] for photo in photos], 0)"),
        ("torch.stack(photos, 0)", "torch.stack(resized(photos), 0)"),
        ("torch.stack(photos, 0)", "torch.stack([nn.functional.pad(each, (0, 8)) for each in photos], 0)"),
        ("torch.stack(photos, 0)", "list(photos)"),
        # the photos are what is padded
        ("torch.stack(photos, 0)", "pad_sequence([photo.float() for photo in photos])"),
        ("max(lengths))", "max(lengths), 3)"),
        ("photos, words = zip(*items)", "words, photos = zip(*items)"),
    ],
)
def test_pictures_of_many_sizes(tmp_path: Path, before: str, after: str) -> None:
    assert before in PADDED
    resized = "def resized(photos):\n    return [photo.resize(random.randint(1, 8)) for photo in photos]\n"
    assert found(tmp_path, resized + PADDED.replace(before, after)) == 0


@pytest.mark.parametrize(
    "arguments",
    ["batch_sampler=grouped(files), collate_fn=collate", "collate_fn=lambda items: items", "collate_fn=unknown.collate"],
)
def test_other_ways_to_make_batches(tmp_path: Path, arguments: str) -> None:
    assert found(tmp_path, PLAIN, arguments) == 0
