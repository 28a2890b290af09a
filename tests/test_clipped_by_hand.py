"""Gradients that a function of the project clips one by one, reading the norm of each."""

from __future__ import annotations

import pytest

from tests.conftest import Project

TRAINS = """
import torch
from torch import nn
{imports}


def clip(parameters, most):
    {several}
    {kept}
    total = 0.0
    for each in parameters:
        total += each.grad.data.norm(2).item() ** 2
        each.grad.data.clamp_(min=-most, max=most)
    return total**0.5


def train(model, optimizer, loader):
    for rows, labels in loader:
        loss = nn.functional.mse_loss(model(rows.cuda()), labels.cuda())
        optimizer.zero_grad()
        loss.backward()
        clip({handed}, 5.0)
        optimizer.step()


net = nn.Sequential(*[nn.Linear(512, 512) for _ in range(9)]).cuda()
train(net, torch.optim.Adam(net.parameters()), torch.load("batches.pt"))
"""
SEVERAL = "if isinstance(parameters, torch.Tensor):\n        parameters = [parameters]"
KEPT = "parameters = list(filter(lambda p: p.grad is not None, parameters))"


@pytest.mark.parametrize(
    ("handed", "several", "kept", "imports", "found"),
    [
        ("model.parameters()", SEVERAL, KEPT, "", True),
        ("model.parameters()", "pass", KEPT, "", True),
        ("model.parameters()", SEVERAL, "pass", "", True),
        ("list(model.parameters())", SEVERAL, "parameters = [p for p in parameters if p.grad is not None]", "", True),
        ("amp.master_params(optimizer)", SEVERAL, KEPT, "from apex import amp", True),
        ("filter(lambda p: p.requires_grad, model.parameters())", "pass", "pass", "", True),
        ("unseen(model)", SEVERAL, KEPT, "from elsewhere import unseen", False),
        ("filter(None, unseen(model))", SEVERAL, KEPT, "from elsewhere import unseen", False),
    ],
)
def test_a_read_for_each_parameter(
    project: Project, handed: str, several: str, kept: str, imports: str, found: bool
) -> None:
    project.configure("select = ['SPD301']\ntorch = '2.13'")
    text = TRAINS.format(handed=handed, several=several, kept=kept, imports=imports)
    assert bool(project.findings(project.write("train.py", text))) is found


def test_it_is_told_at_the_call_where_its_file_is_not_asked_for(project: Project) -> None:
    project.configure("select = ['SPD311']\ntorch = '2.13'")
    text = TRAINS.format(handed="model.parameters()", several=SEVERAL, kept=KEPT, imports="")
    begin, end = text.index("def clip"), text.index("def train")
    project.write("clips.py", f"import torch\n\n\n{text[begin:end]}")
    (found,) = project.findings(project.write("train.py", f"from clips import clip\n{text[:begin]}{text[end:]}"))
    assert "each.grad.data.norm(2).item()" in found["message"]
