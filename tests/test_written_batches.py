"""A copy of a batch is not waited for any more only where nothing writes to its memory on the host meanwhile."""

from __future__ import annotations

import pytest

from tests.conftest import Project

TRAINS = """
import torch
from torch.utils.data import DataLoader

device = torch.device("cuda")
model = torch.nn.Linear(512, 512).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def spoilt(part):
    part += 1


def counted(part):
    return part.shape[0]


def step(batch):
    images = {copied}
    {inside}
    loss = model(images).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def train(loader):
    for batch in loader:
        step(batch)
        {after}


train({loader})
"""
LOADER = "DataLoader(torch.load('rows.pt'), batch_size=9, pin_memory=True)"


@pytest.mark.parametrize(
    ("copied", "inside", "after", "is_written"),
    [
        ("batch[0].to(device)", "pass", "pass", True),
        ("batch[0].to(device)", "batch[0].zero_()", "pass", False),
        ("batch[0].to(device)", "batch[0][:] = 0", "pass", False),
        ("batch[0].to(device)", "batch[0] = None", "pass", True),
        ("batch[0].to(device)", "pass", "batch[0].zero_()", False),
        ("batch[0].to(device)", "pass", "batch[0] += 1", False),
        ("[part.to(device) for part in batch][0]", "pass", "pass", True),
        ("batch['x'].to(device)", "pass", "print(batch['x'].shape)", True),
        ("batch.to(device)", "pass", "batch.fill_(0)", False),
        # By another name: a view, an array, what a loop takes out, a function.
        ("batch[0].to(device)", "view = batch[0].view(-1); view[0] = 3", "pass", False),
        ("batch[0].to(device)", "array = batch[0].numpy(); array += 1", "pass", False),
        ("batch[0].to(device)", "batch[0].view(-1)[0] = 3", "pass", False),
        ("batch[0].to(device)", "batch[0][1].zero_()", "pass", False),
        ("batch[0].to(device)", "batch[0].data.clamp_(0, 1)", "pass", False),
        ("batch[0].to(device)", "torch.nn.init.normal_(batch[0])", "pass", False),
        ("batch[0].to(device)", "torch.abs(batch[0], out=batch[0])", "pass", False),
        ("batch[0].to(device)", "torch.abs(batch[0])", "pass", True),
        ("batch[0].to(device)", "shown = batch[0].view(-1); print(shown)", "pass", True),
        ("batch[0].to(device)", "spoilt(batch[0])", "pass", False),
        ("batch[0].to(device)", "counted(batch[0])", "pass", True),
        ("[part.to(device) for part in batch][0]", "pass", "for part in batch: part.zero_()", False),
        ("list(map(lambda part: part.to(device), batch))[0]", "batch[0].zero_()", "pass", False),
    ],
)
def test_batches_that_are_written_to(project: Project, copied: str, inside: str, after: str, is_written: bool) -> None:
    project.configure("select = ['SPD205']\ntorch = '2.13'")
    text = TRAINS.format(copied=copied, inside=inside, after=after, loader=LOADER)
    (found,) = project.findings(project.write("train.py", text))
    assert (found["fix"] is not None) is is_written


def test_batches_of_a_feed_out_of_sight(project: Project) -> None:
    project.configure("select = ['SPD205']\ntorch = '2.13'")
    text = TRAINS.format(copied="batch[0].to(device)", inside="pass", after="pass", loader="torch.load('feed.pt')['train']")
    text = text.replace("in loader:", "in loader[0]:")
    (found,) = project.findings(project.write("train.py", text), "--notes")
    assert found["fix"] is None
    assert found["level"] == "warning"
