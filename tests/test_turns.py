"""Lines that run only in the passes of a loop that do not train: ``for phase in ("train", "valid")``."""

from __future__ import annotations

import pytest

from tests.conftest import Project

PHASES = """
import torch
from torch import nn

device = torch.device("cuda")
model = nn.Linear(16, 4).to(device)
optimizer = torch.optim.AdamW(model.parameters(), fused=True)
loaders = torch.load("loaders.pt")
losses, step = [], 0


def run(phase, training, loader):
    global step
    for x, y in loader:
        x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
        with torch.set_grad_enabled(phase == "train"):
            loss = nn.functional.cross_entropy(model(x), y)
        {trains}
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
        {reads}
            losses.append(loss.item())


for epoch in range(9):
    for phase in ("train", "valid"):
        run(phase, phase == "train", loaders[phase])
"""
TRAINS = 'if phase == "train":'


@pytest.mark.parametrize(
    ("trains", "reads", "when"),
    [
        (TRAINS, 'if phase == "valid":', "evaluation"),
        (TRAINS, 'if phase != "train":', "evaluation"),
        (TRAINS, 'if not phase == "train":', "evaluation"),
        (TRAINS, 'if phase == "valid" and step > 3:', "evaluation"),
        (TRAINS, "else:", "evaluation"),
        ('if phase != "valid":', 'if phase == "valid":', "evaluation"),
        ("if training:", "if not training:", "evaluation"),
        ("if training:", "else:", "evaluation"),
        (TRAINS, TRAINS, "training"),
        (TRAINS, "if True:", "training"),
        (TRAINS, 'if phase == "valid" or step > 3:', "training"),
        ("if True:", 'if phase == "valid":', "training"),
        (TRAINS, "if not training:", "training"),
        ("if step > 3:", "else:", "training"),
        ("if step > 3:", "if not step > 3:", "training"),
        ('if losses["kind"] == 1:', "else:", "training"),
        (TRAINS, 'if phase == "valid":\n            loss = losses.custom(model, optimizer)', "training"),
    ],
)
def test_when_a_line_runs(trains: str, reads: str, when: str, project: Project) -> None:
    project.configure("select = ['SPD301']")
    (found,) = project.findings(project.write("train.py", PHASES.format(trains=trains, reads=reads)), "--notes")
    assert found["message"] == f"`loss.item()` waits for the GPU in every {when} step"


def test_what_is_said_of_such_a_line(project: Project) -> None:
    text = PHASES.format(trains=TRAINS, reads="else:")
    path = project.write("train.py", text)
    line = text[: text.index("losses.append")].count("\n") + 1
    assert "but in the passes in which this runs" in project.run("ask", f"{path}:{line}").stdout
