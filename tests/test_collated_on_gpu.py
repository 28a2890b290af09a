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
