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


@pytest.mark.parametrize(
    ("shares", "often"),
    [
        ("if number % 4 != rank:\n            continue", "every training step"),
        ("if number % 4 != torch.distributed.get_rank():\n            continue", "every training step"),
        ("if number % 50 != 0:\n            continue", "now and then"),
        ("if number % 50 != start:\n            continue", "now and then"),
    ],
)
def test_turns_that_are_shared_out_among_processes(project: Project, shares: str, often: str) -> None:
    """What a process skips is another's: it goes through its own turns as through any."""
    head, _, _ = PHASES.partition("losses, step")
    project.write(
        "train.py",
        f"{head}def train(loader, rank, start):\n    for number, (x, y) in enumerate(loader):\n        {shares}\n"
        "        loss = nn.functional.cross_entropy(model(x.to(device)), y.to(device))\n        optimizer.zero_grad()\n"
        "        loss.backward()\n        optimizer.step()\n        print(loss.item())\n",
    )
    found = project.findings("--notes", "--select", "SPD301", "train.py")
    assert [each["message"] for each in found] == [f"`loss.item()` waits for the GPU {'in ' * (often[0] == 'e')}{often}"]


COUNTED_TURNS = """
import torch

loader = torch.utils.data.DataLoader(torch.load("rows.pt"), batch_size=512, num_workers=4)
model = torch.nn.Linear(512, 512).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
length = len(loader)
for epoch in range(10):
    for i, rows in enumerate(loader):
        loss = model(rows.cuda()).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        done = {done}
        is_last = done == length
        is_told = i % 100 == 0 or {or_else}
        if is_told:
            print(loss.item())
"""


@pytest.mark.parametrize(
    ("done", "or_else", "is_found"),
    [
        ("i + 1", "is_last", False),
        ("i // 4", "done == 0", True),
        ("len(rows)", "is_last", True),
        ("i + 1", "done != length", True),
    ],
)
def test_a_variable_that_is_set_to_the_number_of_the_turn(project: Project, done: str, or_else: str, is_found: bool) -> None:
    project.configure("select = ['SPD301']\ntorch = '2.13'")
    text = COUNTED_TURNS.format(done=done, or_else=or_else)
    assert bool(project.findings(project.write("train.py", text))) is is_found
