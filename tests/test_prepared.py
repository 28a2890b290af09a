"""What Accelerate has prepared lies on the device, whatever else is known of it; a list by default is no tensor."""

from __future__ import annotations

import pytest

from tests.conftest import Project

ENGINE = """
from tqdm import tqdm


def train(model, loader, optimizer, device, accelerator):
    for batch in tqdm(loader):
        outputs = model(batch["images"].to(device))
        {inside}
        loss = outputs["loss"].mean()
        optimizer.zero_grad()
        accelerator.backward(loss)
        optimizer.step()
"""
START = """
import torch
from accelerate import Accelerator

from data import loaders
from engine import train

accelerator = Accelerator()
model = torch.nn.Linear(512, 512)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader, others = loaders(torch.load("settings.pt"))
{prepared}
train(model, loader, optimizer, accelerator.device, accelerator)
"""


@pytest.mark.parametrize(
    ("prepared", "inside", "found"),
    [
        ("model, optimizer, loader = accelerator.prepare(model, optimizer, loader)", "pass", []),
        ("model, optimizer = accelerator.prepare(model, optimizer)", "pass", ["SPD205"]),
        ("model, loader = accelerator.prepare(model, loader)", "if outputs.get('parts', []):\n            pass", []),
        ("model, loader = accelerator.prepare(model, loader)", "if outputs['parts'].sum():\n            pass", ["SPD304"]),
    ],
)
def test_what_is_told_of_prepared_things(project: Project, prepared: str, inside: str, found: list[str]) -> None:
    project.configure("select = ['SPD205', 'SPD304']\ntorch = '2.13'")
    project.write("README.md", "trains\n")
    path = project.write("engine.py", ENGINE.format(inside=inside))
    project.write("start.py", START.format(prepared=prepared))
    assert [each["code"] for each in project.findings(path)] == found
