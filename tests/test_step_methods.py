"""Methods that are called as steps are, where what drives them is out of sight."""

from __future__ import annotations

import pytest

from tests.conftest import Project

TEXT = """
import torch
from torch import nn


class Base:
    def __init__(self):
        self.net = nn.Sequential(*[nn.Linear(1024, 1024) for _ in range(8)]).cuda()
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)

    def {step}_of(self, batch):
        return self.{step}(batch)

    def measured(self, batch):
        return self.validation_step(batch)


class Own(Base):
    def {step}(self, batch):
        loss = self.net(batch.cuda()).mean()
        self.optimizer.zero_grad()
        {trained}
        return loss.item()

    def validation_step(self, batch):
        with torch.no_grad():
            return self.net(batch.cuda()).mean().item()


from runner import Runner

Runner(Own()).fit(torch.utils.data.DataLoader(torch.load("rows.pt")))
{started}
"""
TRAINED = "loss.backward()\n        self.optimizer.step()"


@pytest.mark.parametrize(
    ("step", "trained", "started", "levels"),
    [
        ("training_step", TRAINED, "", ["warning", "warning"]),
        ("train_step", TRAINED, "", ["warning", "warning"]),
        ("shown", TRAINED, "", []),
        ("training_step", "print(loss)", "", []),
        ("training_step", TRAINED, "print(Own().training_step(torch.load('rows.pt')))", ["warning"]),
        (
            "training_step",
            f"for part in batch:\n            {TRAINED}".replace("\n        self", "\n            self"),
            "",
            [],
        ),
        (
            "training_step",
            f"for batch in torch.utils.data.DataLoader(batch):\n            {TRAINED}".replace(
                "\n        self", "\n            self"
            ),
            "",
            [],
        ),
    ],
)
def test_a_step_whose_loop_is_out_of_sight(
    project: Project, step: str, trained: str, started: str, levels: list[str]
) -> None:
    project.configure("select = ['SPD301']")
    project.write("README.md", "# Training\n")
    text = TEXT.replace("{step}", step).replace("{trained}", trained).replace("{started}", started)
    found = project.findings("--notes", project.write("train.py", text))
    own = [each["level"] for each in found if ".item()" in each["message"]]
    assert own == levels
