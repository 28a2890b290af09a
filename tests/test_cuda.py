"""What only a GPU can show: which lines wait for it, and what verify measures there. Skipped where there is none."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from speedlint.api import check_source
from tests.conftest import ROOT

torch = pytest.importorskip("torch")

BEFORE = """
import math
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Bernoulli, Categorical, Normal
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
device = torch.device("cuda")
rows = TensorDataset(torch.randn(96, 16), torch.randint(0, 10, (96,)))
loader = DataLoader(rows, batch_size=32, pin_memory=True)
model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 10)).to(device)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.AdamW(model.parameters(), fused=True)
total, kept, figures = torch.zeros((), device=device), [], []
for step, (x, y) in enumerate(loader):
    x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
    logits = model(x)
    mask = y > 4
    loss = criterion(logits, y)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
"""
"""A training whose steps do not wait; lines are put at the end of each."""
WAITS = {
    "figures.append(loss.item())": "SPD301",
    "figures.append(float(loss))": "SPD301",
    "figures.append(int((logits.argmax(1) == y).sum()))": "SPD301",
    "longest = max(y.long())": "SPD301",
    "part = x[: y.max()]": "SPD301",
    "places = torch.arange(y.max(), device=device)": "SPD301",
    "for place in range(y.max()): kept.append(place)": "SPD301",
    "entry = list(range(10))[y[0]]": "SPD301",
    "kept.append(loss.detach().cpu())": "SPD302",
    "kept.append(logits.detach().cpu().numpy())": "SPD302",
    "kept += logits.argmax(1).tolist()": "SPD302",
    "kept.append(logits.detach().to('cpu'))": "SPD302",
    "print(loss)": "SPD303",
    "print(f'{loss:.4f}')": "SPD303",
    "if torch.isnan(loss): break": "SPD304",
    "if not torch.isfinite(logits).all(): break": "SPD304",
    "assert (y >= 0).all()": "SPD304",
    "if math.isfinite(loss): kept.append(1)": "SPD304",
    "if torch.equal(logits, logits + 1): kept.append(1)": "SPD304",
    "action = Categorical(logits=logits).sample()": "SPD304",
    "noise = Normal(logits, torch.ones_like(logits)).rsample()": "SPD304",
    "coin = Bernoulli(logits.sigmoid()).sample()": "SPD304",
    "total += logits[mask].sum()": "SPD305",
    "total += logits.masked_select(logits > 0).mean()": "SPD305",
    "places = mask.nonzero()": "SPD305",
    "classes = torch.unique(y)": "SPD305",
    "(places,) = torch.where(mask)": "SPD305",
    "logits.data[mask] += 1": "SPD305",
    "hot = torch.zeros(len(y), 10).to(device)": "SPD308",
    "noise = torch.randn(x.shape).cuda()": "SPD308",
    "picked = logits[range(len(y)), y]": "SPD308",
    "picked = logits[torch.arange(len(y)), y]": "SPD308",
    "weight = torch.tensor([1.0, 2.0], device=device)": "SPD309",
    "scale = torch.tensor(0.5).to(device)": "SPD309",
    "target = torch.cuda.FloatTensor([0.5])": "SPD309",
    "x_again = x.cpu()": "SPD302",
}
"""Lines that wait each time they run, and the rule that says so."""
SILENT = (
    "total += loss.detach()",
    "kept.append(loss.detach())",
    "kept.append(logits.argmax(1))",
    "kept.append(logits.detach().to('cpu', non_blocking=True))",
    "hot = torch.zeros(len(y), 10, device=device)",
    "hot = F.one_hot(y, 10)",
    "noise = torch.randn(x.shape, device=device)",
    "noise = torch.rand_like(x)",
    "picked = logits.gather(1, y[:, None])",
    "picked = logits[torch.arange(len(y), device=device), y]",
    "scale = torch.full((), 0.5, device=device)",
    "logits.data[mask] = 0",
    "logits.data.masked_fill_(mask[:, None], 0)",
    "weighted = torch.where(mask, 1.0, 0.0)",
    "best = logits.max(1).values",
    "values, places = logits.topk(3)",
    "order = logits.argsort(1)",
    "norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)",
    "size = len(logits), logits.shape[0], logits.numel()",
    "if logits.dim() == 2: kept.append(1)",
    "counts = torch.zeros(10, device=device).index_add_(0, y, torch.ones_like(y, dtype=torch.float))",
    "action = Categorical(logits=logits, validate_args=False).sample()",
    "part = logits[: len(y) // 2]",
    "turned = logits.flip(0).cumsum(0).clamp(0, 1)",
    "half = logits.half().float()",
    "last = logits[-1]",
    "stacked = torch.stack([loss, loss]).mean()",
    "repeated = y.repeat_interleave(2)",
)
"""Lines that do not wait, and have no finding."""
NEEDED = (
    "repeated = y.repeat_interleave(y)",
    "counts = torch.bincount(y)",
    "hot = F.one_hot(y)",
    "counts = torch.histc(logits.detach())",
    "picked = x.index_select(0, torch.tensor([0, 1]).to(device))",
)
"""Lines that wait and whose wait is not told, or by another rule."""
READING = (
    BEFORE.replace("96", "9600").replace("for step", "running, correct = 0.0, 0\nfor step")
    + """
    running += loss.item()
    correct += (logits.argmax(1) == y).sum().item()
print(running / len(loader), correct / len(rows))
"""
)
"""The same, reading two numbers in each step."""
needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The script stands in a folder of its own, not among the files of a project."""
    monkeypatch.chdir(tmp_path)


def script(line: str) -> str:
    return f"{BEFORE}    {line}\n"


def waiting(line: str, folder: Path) -> dict[str, Any]:
    """Which lines of the training wait on the GPU, in a process of its own."""
    (folder / "train.py").write_text(script(line))
    command = [sys.executable, str(Path(__file__).parent.parent / "benchmarks" / "waits.py"), "run", "train.py"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout.rpartition("[waits.json] ")[2]))


@needs_gpu
@pytest.mark.parametrize("line", (*WAITS, *SILENT, *NEEDED))
def test_waits(line: str, tmp_path: Path) -> None:
    """torch agrees: the line waits, or does not, and no other line of the step does."""
    first, last = BEFORE[: BEFORE.index("for step")].count("\n") + 1, script(line).count("\n")
    waits = {int(number) for number in waiting(line, tmp_path)["waits"].get("train.py", {})}
    assert {number for number in waits if number > first} == (set() if line in SILENT else {last})


@needs_gpu
def test_verified(tmp_path: Path) -> None:
    """verify counts the waits of a step, times it by the GPU's own events, and reads the GPU's state."""
    (tmp_path / "train.py").write_text(READING)
    flags = "--steps 20 --seconds 0.2 --pairs 3 --max-pairs 3 --budget 260 --json out.json".split()
    command = [sys.executable, "-m", "speedlint", "verify", "train.py", *flags]
    done = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False
    )
    assert (tmp_path / "out.json").is_file(), done.stdout + done.stderr
    out = json.loads((tmp_path / "out.json").read_text())
    before, after = out["syncs_a_step"]
    assert before == 2 and after < 1
    assert out["machine"]["process"]["cuda"] and "NVIDIA" in json.dumps(out["machine"])


@pytest.mark.parametrize("line", WAITS)
def test_told(line: str) -> None:
    found = [each for each in check_source(script(line)).findings if each.place.line == script(line).count("\n")]
    assert WAITS[line] in {each.code for each in found}


RULES = "SPD205 SPD301 SPD302 SPD303 SPD304 SPD305 SPD306 SPD308 SPD309 SPD311".split()


@pytest.mark.parametrize("line", SILENT)
def test_silent(line: str) -> None:
    assert not check_source(script(line), select=RULES).findings
