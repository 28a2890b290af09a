"""What SPD101 writes names a device only where it is bound: each shape runs before and after the fix, both ways."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from speedlint import config, stages
from speedlint.ask.script import Options
from speedlint.registry import Registry
from speedlint.rule import Risk

torch = pytest.importorskip("torch")

SCRIPT = """
import contextlib
import sys
import torch
from torch import nn

loader = [(torch.rand(2, 3, 8, 8), torch.zeros(2, dtype=torch.long)) for _ in range(2)]
chosen = sys.argv[1] == "yes"


def train(chosen):
    model = nn.Sequential(nn.Conv2d(3, 64, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))
    criterion = nn.CrossEntropyLoss()
{shape}

train(chosen)
"""
BIND = 'device = torch.device("cuda" if torch.cuda.is_available() else "cpu")'
LOOP = """
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for images, labels in loader:
    optimizer.zero_grad()
    loss = criterion(model(images), labels)
    loss.backward()
    optimizer.step()
    print("trained")
"""

SHAPES = {
    "in the other branch": """
if chosen:
    BIND
    model.to(device)
else:
    LOOP
""",
    "in one branch": """
if chosen:
    BIND
    model.to(device)
LOOP
""",
    "in an elif": """
if not chosen:
    pass
elif chosen:
    BIND
    model.to(device)
else:
    pass
LOOP
""",
    "in a try": """
try:
    if chosen:
        raise ValueError
    BIND
    model.to(device)
except ValueError:
    LOOP
""",
    "in a try, after it": """
try:
    if chosen:
        raise ValueError
    BIND
    model.to(device)
except ValueError:
    pass
LOOP
""",
    "in a loop that may not run": """
for _ in range(int(chosen)):
    BIND
    model.to(device)
LOOP
""",
    "in a loop, further down": """
for turn in range(2):
    if turn:
        BIND
        model.to(device)
    LOOP
""",
    "in a while": """
while chosen:
    BIND
    model.to(device)
    break
LOOP
""",
    "under suppress": """
with contextlib.suppress(ValueError):
    if chosen:
        raise ValueError
    BIND
    model.to(device)
LOOP
""",
    "under a case": """
match chosen:
    case True:
        BIND
        model.to(device)
    case _:
        LOOP
""",
    "under a case, after it": """
match chosen:
    case True:
        BIND
        model.to(device)
LOOP
""",
    "deleted": """
BIND
model.to(device)
del device
LOOP
""",
    "deleted on a way": """
BIND
model.to(device)
if chosen:
    del device
LOOP
""",
}
CERTAIN = {
    "in a with": """
with torch.device("cpu"):
    BIND
    model.to(device)
LOOP
""",
    "in both branches": """
if chosen:
    BIND
else:
    device = torch.device("cpu")
model.to(device)
LOOP
""",
    "in a finally": """
try:
    print("begins")
finally:
    BIND
    model.to(device)
LOOP
""",
    "or it leaves": """
if chosen:
    BIND
    model.to(device)
else:
    return
LOOP
""",
}


def _script(shape: str) -> str:
    lines = []
    for line in shape.strip("\n").splitlines():
        indent = line[: len(line) - len(line.lstrip())]
        body = {"BIND": BIND, "LOOP": LOOP.strip()}.get(line.strip(), line.strip())
        lines += [f"    {indent}{each}" for each in body.splitlines()]
    return SCRIPT.replace("{shape}", "\n".join(lines))


def _fixed(shape: str, folder: Path, amp: str) -> str:
    path = folder / "train.py"
    path.write_text(_script(shape))
    staged = stages.fix(
        (path,), config.Settings(folder, select=("SPD101",), risk=Risk.NUMERIC), Registry.load(), Options((2, 13), amp)
    )
    assert not staged.problems
    return staged.outcomes[0].after.decode() if staged.outcomes else path.read_text()


@pytest.mark.parametrize("amp", ["bf16", "fp16"])
@pytest.mark.parametrize("shape", SHAPES)
def test_no_name_is_written_where_it_may_be_unbound(shape: str, amp: str, tmp_path: Path) -> None:
    assert "autocast" not in _fixed(SHAPES[shape], tmp_path, amp)


@pytest.mark.parametrize("amp", ["bf16", "fp16"])
@pytest.mark.parametrize("shape", CERTAIN)
def test_what_is_written_runs(shape: str, amp: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fixed = _fixed(CERTAIN[shape], tmp_path, amp)
    assert "autocast" in fixed
    for chosen in ("yes", "no"):
        monkeypatch.setattr(sys, "argv", ["train.py", chosen])
        exec(compile(fixed, "train.py", "exec"), {"__name__": "__main__"})
