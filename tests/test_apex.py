"""A step that apex computes in half precision is not told to do so, however the script takes hold of apex."""

from __future__ import annotations

import pytest

from tests.conftest import Project

TRAINS = """
import argparse
import torch
{imports}

parser = argparse.ArgumentParser()
parser.add_argument("--half", type=lambda said: said == "true", default=True)
options = parser.parse_args()


def train(model, optimizer, loader):
    for images, labels in loader:
        loss = torch.nn.functional.cross_entropy(model(images.cuda()), labels.cuda())
        optimizer.zero_grad()
        {backward}
        optimizer.step()


def main():
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 512, 3), torch.nn.Conv2d(512, 512, 3), torch.nn.Flatten()).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    {made}
    for epoch in range(9):
        train(model, optimizer, torch.load("batches.pt"))


main()
"""
SCALED = "with {amp}.scale_loss(loss, optimizer) as scaled:\n            scaled.backward()"
MADE = "if options.half:\n        model, optimizer = {amp}.initialize(model, optimizer, opt_level='O1')"


@pytest.mark.parametrize(
    ("imports", "amp", "found"),
    [
        ("from apex import amp", "amp", 0),
        ("import apex", "apex.amp", 0),
        ("import apex as a", "a.amp", 0),
        ("import apex.amp", "apex.amp", 0),
        ("import apex\napex.parallel.create_syncbn_process_group(8)", "", 1),
    ],
)
def test_steps_beside_apex(project: Project, imports: str, amp: str, found: int) -> None:
    project.configure("select = ['SPD101']\ntorch = '2.13'")
    backward = SCALED.format(amp=amp) if amp else "loss.backward()"
    text = TRAINS.format(imports=imports, backward=backward, made=MADE.format(amp=amp) if amp else "")
    assert len(project.findings(project.write("train.py", text))) == found
