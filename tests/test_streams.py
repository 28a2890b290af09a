"""`torch.cuda.synchronize()` that something else in the program relies on is left alone."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from speedlint import run
from speedlint.config import Settings
from speedlint.registry import Registry
from tests.conftest import Project

REGISTRY = Registry.load()
TRAIN = """
    import torch
    BESIDE


    def train(model, loader, optimizer):
        for x in loader:
            loss = model(x.cuda()).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            torch.cuda.synchronize()
"""


def found(folder: Path, beside: str) -> int:
    (folder / "README.md").write_text("a project\n")
    (folder / "train.py").write_text(textwrap.dedent(TRAIN).replace("BESIDE", beside))
    settings = Settings(folder, select=("SPD306",), torch=(2, 13))
    return len(run.merge(run.check([folder / "train.py"], settings, REGISTRY)).diagnostics)


@pytest.mark.parametrize(
    "helper",
    [
        'def kept(x):\n    return x.to("cpu", non_blocking=True)\n',
        "def kept(x, host):\n    return x.to(host, non_blocking=True)\n",
        "def kept(x, y):\n    y.copy_(x, non_blocking=True)\n",
        "import torch\n\nstream = torch.cuda.Stream()\n",
        "import torch\n\ngraph = torch.cuda.CUDAGraph()\n",
    ],
)
def test_it_stays_where_another_module_may_need_it(tmp_path: Path, helper: str) -> None:
    (tmp_path / "helper.py").write_text(helper)
    assert found(tmp_path, "import helper") == 0


@pytest.mark.parametrize("helper", ["def moved(x, device):\n    return x.to(device, non_blocking=True)\n", "x = 1\n"])
def test_it_is_found_where_nothing_needs_it(tmp_path: Path, helper: str) -> None:
    (tmp_path / "helper.py").write_text(helper)
    assert found(tmp_path, "import helper") == 1


PHASES = """
import time

import torch
from torch import nn


def made_up(rows, device):
    x = torch.randn(rows, 64, device=device)
    return {entries}


def measure(model, turns, files):
    optimizer = torch.optim.Adam(model.parameters())
    times = []
    for _ in range(turns):
        batch = {batch}
        torch.cuda.synchronize()
        began = time.perf_counter()
        loss = model(**batch)
        torch.cuda.synchronize()
        times.append(time.perf_counter() - began)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return times


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(64, 64)

    def forward(self, x, y):
        return (self.layer(x) - y).abs().mean()


print(measure(Net().cuda(), 10_000, ["a.pt"]))
"""


@pytest.mark.parametrize(
    ("entries", "batch", "level"),
    [
        ('{"x": x, "y": torch.zeros_like(x)}', 'made_up(256, "cuda")', "note"),
        ('{"x": x, "y": torch.zeros_like(x)}', "torch.load(files[0])", "warning"),
        ('{"x": x, "y": torch.load("targets.pt")}', 'made_up(256, "cuda")', "warning"),
    ],
)
def test_phases_of_steps_on_made_up_batches_are_what_is_measured(
    project: Project, entries: str, batch: str, level: str
) -> None:
    project.configure("select = ['SPD306']")
    script = project.write("train.py", PHASES.replace("{entries}", entries).replace("{batch}", batch))
    found = project.findings(script, "--notes")
    assert [each["level"] for each in found] == [level, level]


@pytest.mark.parametrize(
    ("batch", "clock", "silent"),
    [
        ('made_up(256, "cuda")', "time.perf_counter()", True),
        ("torch.load(files[0])", "time.perf_counter()", False),
        ('made_up(256, "cuda")', "0.0", False),
    ],
)
def test_an_optimizer_of_a_measurement_is_left_alone(project: Project, batch: str, clock: str, silent: bool) -> None:
    project.configure("select = ['SPD502']")
    text = PHASES.replace("{entries}", '{"x": x, "y": torch.zeros_like(x)}').replace("{batch}", batch)
    found = project.findings(project.write("train.py", text.replace("time.perf_counter()", clock)))
    assert (not found) is silent
