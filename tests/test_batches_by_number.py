"""Batches that come from no loader in sight: items taken by their number, entries of what is out of sight, ``next()``."""

from __future__ import annotations

import pytest

from tests.conftest import Project

HEAD = """
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

device = torch.device("cuda")
model = nn.Sequential(nn.Linear(16, 999), nn.ReLU(), nn.Linear(999, 4)).to(device)
optimizer = torch.optim.AdamW(model.parameters(), fused=True)


class Passages({base}):
    def __init__(self, file):
        data = np.load(file)
        self.words = torch.from_numpy(data["words"]).float(){moved}
        self.answers = torch.from_numpy(data["answers"]).long(){moved}

    def __len__(self):
        return len(self.words) // 32

    def __getitem__(self, index):
        rows = torch.randint(len(self.words), (32,))
        return self.words[rows], self.answers[rows], index


passages, loaders = Passages("passages.npz"), torch.load("loaders.pt")
loader = DataLoader(Passages("more.npz"), batch_size=None, pin_memory=True)
"""
STEP = """
{before}
for {turn}:
    {take}
    loss = F.cross_entropy(model(words.to(device)), answers.to(device, non_blocking=True))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
BY_NUMBER = ("", "i in range(len(passages))", "words, answers, number = passages[i]")


def _found(project: Project, before: str, turn: str, take: str, *, base: str = "object", moved: str = "") -> list[str]:
    project.configure("select = ['SPD205']")
    text = HEAD.format(base=base, moved=moved) + STEP.format(before=before, turn=turn, take=take)
    found = project.findings(project.write("train.py", text), "--notes")
    return [f"{each['level']} {'written' if each['fix'] else 'shown'}" for each in found]


@pytest.mark.parametrize("base", ["object", "Dataset"])
def test_items_that_are_taken_by_their_number(project: Project, base: str) -> None:
    assert _found(project, *BY_NUMBER, base=base) == ["warning shown"]
    assert _found(project, *BY_NUMBER, base=base, moved=".to(device)") == []


@pytest.mark.parametrize("turn", ["words, answers, _ in passages", "i, (words, answers, _) in enumerate(passages)"])
def test_items_that_are_taken_in_turn(project: Project, turn: str) -> None:
    assert _found(project, "", turn, "pass", base="Dataset") == ["warning shown"]
    assert _found(project, "", turn, "pass", base="Dataset", moved=".cuda()") == []


def test_a_loader_that_a_class_goes_over(project: Project) -> None:
    wraps = "def __iter__(self):\n        return iter(loader)\n\n    def __len__"
    text = HEAD.format(base="object", moved="").replace("def __len__", wraps, 1)
    text += STEP.format(before="", turn="words, answers, _ in passages", take="pass")
    project.configure("select = ['SPD205']")
    found = project.findings(project.write("train.py", text), "--notes")
    assert "take the items out" not in str([each["message"] for each in found])


def test_rows_of_a_memory(project: Project) -> None:
    """It changes from step to step, which no loader would see."""
    assert _found(project, "", "_ in range(999)", "words, answers, _ = passages[torch.randint(99, (32,))]") == []


def test_one_item_before_the_training(project: Project) -> None:
    take = "words, answers = words.cuda(), answers.cuda()"
    assert _found(project, "words, answers, _ = passages[0]\nwords.to(device)", "i in range(9)", take) == []


def test_entries_of_what_is_out_of_sight(project: Project) -> None:
    assert _found(project, "", 'words, answers in loaders["train"]', "pass") == ["warning shown"]
    assert _found(project, "", 'words, answers in loaders["train"]', "words = model[0].weight") == []
    before = 'loaders = torch.load("loaders.pt", map_location="cuda")'
    assert _found(project, before, 'words, answers in loaders["train"]', "pass") == []


@pytest.mark.parametrize(
    ("taken", "fix"),
    [
        ("batches.next()", "written"),
        ("batches.__next__()", "written"),
        ("next(batches)", "written"),
        ("loader.__iter__().next()", "shown"),
        ("counted.__next__()[1]", "written"),
        ("next(counted)[1]", "written"),
    ],
)
def test_the_next_batch_of_a_loader(project: Project, taken: str, fix: str) -> None:
    before = "batches, counted = iter(loader), enumerate(loader)" if "loader" not in taken else ""
    assert _found(project, before, "_ in range(999)", f"words, answers, _ = {taken}") == [f"warning {fix}"]


@pytest.mark.parametrize(
    ("copied", "found"),
    [
        ("torch.stack(words).squeeze(1)", ["warning shown"]),
        ("torch.cat(words).float()", ["warning shown"]),
        ("torch.stack([torch.zeros(3)] * 4)", []),
        ("torch.stack(words).to(device)", ["warning shown"]),
    ],
)
def test_parts_of_a_batch_that_are_joined_on_the_host(project: Project, copied: str, found: list[str]) -> None:
    assert _found(project, "", "words, answers, _ in loader", f"words = {copied}") == found


MAKERS = """
class Small:
    def made(self, kind):
        if kind == "train":
            return DataLoader(Passages("small.npz"), batch_size=4, pin_memory=True)
        return {small}


class Large(Small):
    def made(self, kind):
        return DataLoader(Passages("large.npz"), batch_size=9, pin_memory=True)


maker = Small() if len(passages) < 99 else Large()


class Held:
    def __init__(self, source):
        self.source = source


held = Held(maker.made("train"))
"""


@pytest.mark.parametrize(("small", "found"), [("None", ["warning written"]), ("3", [])])
def test_a_loader_that_one_of_several_objects_gives(project: Project, small: str, found: list[str]) -> None:
    before = MAKERS.format(small=small)
    assert _found(project, before, "words, answers, _ in held.source", "pass", base="Dataset") == found
