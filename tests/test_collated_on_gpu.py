"""A loader whose own collate function moves tensors to the GPU yields these there, and the rest on the host."""

from __future__ import annotations

import pytest

from tests.conftest import Project

TRAINS = """
import torch
from torch.utils.data import DataLoader, Dataset

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Words(Dataset):
    def __init__(self, rows):
        self.rows = rows

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return self.rows[index]

    def collate(self, batch):
        words = torch.LongTensor([each[0] for each in batch])
        labels = torch.LongTensor([each[1] for each in batch])
{moves}
        return words, labels


def train(model, rows):
    words = Words(rows)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    seen = []
    for epoch in range(9):
        for batch in DataLoader(words, batch_size=64, collate_fn=words.collate):
            inputs, labels = batch
            loss = torch.nn.functional.cross_entropy(model(inputs.cuda()), labels.cuda())
            seen.extend(labels.tolist())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return seen


model = torch.nn.Sequential(torch.nn.Embedding(9000, 1024), torch.nn.Flatten(), torch.nn.Linear(65536, 9))
train(model.cuda(), torch.load("rows.pt"))
"""


@pytest.mark.parametrize(
    ("moves", "reads"),
    [
        ("        words, labels = words.to(device), labels.to(device)", 1),
        ("        labels = labels.cuda()", 1),
        ("        labels = labels.to(device).view(-1)", 1),
        ("        words = words.to(device)", 0),
        ("        labels = labels.to('cpu')", 0),
        ("        labels = labels.to(torch.int32)", 0),
        ("        if len(batch) > 9:\n            labels = labels.to(device)", 0),
        ("        labels = labels.view(-1)", 0),
    ],
)
def test_what_is_read_of_a_batch(project: Project, moves: str, reads: int) -> None:
    project.configure("select = ['SPD302']\ntorch = '2.13'")
    path = project.write("train.py", TRAINS.format(moves=moves))
    assert len(project.findings(path)) == reads


EVALUATES = """
def evaluate(model, loader):
    seen = []
    model.eval()
    with torch.no_grad():
        for inputs, labels in loader:
            model(inputs.cuda())
            seen.extend(labels.tolist())
    return seen


words = Words(torch.load("rows.pt"))
others = Words(torch.load("others.pt"))
for epoch in range(9):
    train(model, torch.load("rows.pt"))
    evaluate(model, DataLoader(words, batch_size=64, collate_fn={first}))
    evaluate(model, DataLoader(others, batch_size=64, collate_fn={second}))
"""


@pytest.mark.parametrize(
    ("first", "second", "reads"),
    [
        ("words.collate", "others.collate", 1),
        ("words.collate", "torch.utils.data.default_collate", 0),
        ("torch.utils.data.default_collate", "torch.utils.data.default_collate", 0),
    ],
)
def test_what_is_read_of_a_batch_of_one_of_several_loaders(project: Project, first: str, second: str, reads: int) -> None:
    project.configure("select = ['SPD302']\ntorch = '2.13'")
    moves = "        words, labels = words.to(device), labels.to(device)"
    text = TRAINS.format(moves=moves).replace("seen.extend(labels.tolist())", "pass")
    path = project.write("train.py", text + EVALUATES.format(first=first, second=second))
    assert len(project.findings(path, "--notes")) == reads


@pytest.mark.parametrize(
    ("moves", "items", "told"),
    [
        ("labels = labels.cuda()", "self.rows[index]", ("note", "keeps it from workers")),
        ("labels = labels.cuda()", "open(self.rows[index]).read()", ("warning", "keeps it from workers")),
        ("labels = labels.cuda()", "torch.load(self.rows[index]).cuda()", None),
        (
            "words, labels = tokenizer.batch_encode_plus(batch, return_tensors='pt'), labels.cuda()",
            "self.rows[index]",
            ("warning", "keeps it from workers"),
        ),
        (
            "words = tokenizer.batch_encode_plus(batch, return_tensors='pt')",
            "self.rows[index]",
            ("warning", "has no workers"),
        ),
        ("labels = labels.view(-1)", "open(self.rows[index]).read()", ("warning", "has no workers")),
    ],
)
def test_workers_for_what_a_collate_function_does(
    project: Project, moves: str, items: str, told: tuple[str, str] | None
) -> None:
    project.configure("select = ['SPD201']\ntorch = '2.13'")
    tokenizer = "import transformers\n\ntokenizer = transformers.AutoTokenizer.from_pretrained('bert-base-cased')\n"
    text = TRAINS.format(moves=f"        {moves}").replace("return self.rows[index]", f"return {items}")
    found = project.findings(project.write("train.py", tokenizer + text), "--notes")
    assert [(each["level"], told is not None and told[1] in each["message"]) for each in found] == (
        [(told[0], True)] if told is not None else []
    )
