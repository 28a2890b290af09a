"""`torch.cuda.synchronize()` that something else in the program relies on is left alone."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from speedlint import run
from speedlint.config import Settings
from speedlint.registry import Registry

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
