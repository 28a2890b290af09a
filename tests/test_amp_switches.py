"""SPD108 leaves alone what is no switch of mixed precision, and programs where some of it is on."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from speedlint import run, stages
from speedlint.config import Settings
from speedlint.registry import Registry
from speedlint.rule import Risk

REGISTRY = Registry.load()
TRAIN = """
    import argparse

    import torch

    parser = argparse.ArgumentParser()
    parser.add_argument("--use_amp", action="store_true")
    parser.add_argument("--bf16", action="store_true")
    parser.add_argument("--evaluate", action="store_true")
    parser.add_argument("--weight", type=int, default=0)
    MORE
    args = parser.parse_args()
    THEN
    AMP = DEBUG = False


    def train(model, loader, optimizer):
        scaler = torch.amp.GradScaler("cuda") if args.use_amp else None
        for x in loader:
            x = x.cuda()
            STEP
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
"""
ON = "with torch.autocast('cuda', dtype=torch.bfloat16):\n                loss = model(x).mean()"


def settings(folder: Path) -> Settings:
    return Settings(folder, select=("SPD108",), torch=(2, 13), risk=Risk.BEHAVIOR)


def written(folder: Path, step: str, more: str = "") -> Path:
    path = folder / "train.py"
    before, then = ("", more) if "args." in more else (more, "")
    path.write_text(textwrap.dedent(TRAIN.replace("STEP", step).replace("MORE", before).replace("THEN", then)))
    return path


def under(condition: str) -> str:
    return f"if {condition}:\n                with torch.autocast('cuda'):\n                    loss = model(x).mean()"


@pytest.mark.parametrize(
    "step",
    [
        under("args.evaluate"),
        under("args.weight"),
        under("0"),
        under("DEBUG"),
        under("AMP"),
        under("args.use_amp or args.bf16"),
        f"{ON}\n            {under('args.use_amp')}",
        "with torch.autocast('cuda', enabled=False):\n                loss = model(x).mean()",
        "with torch.autocast('cuda', enabled=torch.cuda.is_available()):\n                loss = model(x).mean()",
    ],
)
def test_it_is_left_alone(tmp_path: Path, step: str) -> None:
    assert not run.merge(run.check([written(tmp_path, step)], settings(tmp_path), REGISTRY)).diagnostics


HELPER = """
def _autocast(enabled):
    if not enabled:
        return contextlib.nullcontext()
    return torch.autocast("cuda", enabled=True)
"""


def test_the_option_is_followed_through_a_helper(tmp_path: Path) -> None:
    path = written(tmp_path, "with _autocast(bool(args.use_amp and x.is_cuda)):\n                loss = model(x).mean()")
    path.write_text(path.read_text() + HELPER)
    (outcome,) = stages.fix([path], settings(tmp_path), REGISTRY).outcomes
    assert "argparse.BooleanOptionalAction" in outcome.after.decode()


@pytest.mark.parametrize("step", [under("args.use_amp"), under("scaler is not None")])
def test_the_option_is_turned_on_and_can_be_turned_off(tmp_path: Path, step: str) -> None:
    path = written(tmp_path, step)
    (outcome,) = stages.fix([path], settings(tmp_path), REGISTRY).outcomes
    line = 'parser.add_argument("--use_amp", action=argparse.BooleanOptionalAction, default=True)'
    assert line in outcome.after.decode()
    (diagnostic,) = run.merge(run.check([path], settings(tmp_path), REGISTRY)).diagnostics
    assert diagnostic.fix is not None and diagnostic.fix.risk is Risk.BEHAVIOR


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ('parser.add_argument("--no-use-amp", action="store_true")', "cannot be added beside it"),
        ("loss = torch.nn.BCELoss()", "raises under autocast"),
        ("clip = torch.nn.utils.clip_grad_norm_", "gradients are clipped while"),
        ("norm = lambda model: model.weight.grad.norm()", "gradients are read while"),
        ("if args.use_amp and not torch.cuda.is_available(): raise SystemExit('no GPU')", "(line 13) is decided by it too"),
        ("folder = 'run_fast' if args.use_amp else 'run'", "'run_fast' if args.use_amp else 'run'"),
    ],
)
def test_it_is_shown_where_turning_it_on_would_break(tmp_path: Path, more: str, why: str) -> None:
    step = under("args.use_amp").replace("model(x).mean()", "torch.nn.functional.binary_cross_entropy(model(x), x)")
    path = written(tmp_path, step if "BCE" in more else under("args.use_amp"), more)
    (diagnostic,) = run.merge(run.check([path], settings(tmp_path), REGISTRY)).diagnostics
    assert diagnostic.fix is None
    assert why in diagnostic.advice


ACCELERATED = """
import torch
from accelerate import Accelerator

class Trainer:
    def __init__(self, model, fp16=False):
        self.accelerator = Accelerator(mixed_precision={precision})
        self.model = self.accelerator.prepare(model)

    def train(self, loader):
        for x in loader:
            self.accelerator.backward(self.model(x).mean())

Trainer(torch.nn.Linear(8, 8)).train(range(8))
"""


@pytest.mark.parametrize(("precision", "is_found"), [("'fp16' if fp16 else 'no'", True), ("'bf16'", False), ("None", False)])
def test_the_switch_of_an_accelerator_is_shown(tmp_path: Path, precision: str, is_found: bool) -> None:
    path = tmp_path / "train.py"
    path.write_text(ACCELERATED.format(precision=precision))
    found = run.merge(run.check([path], settings(tmp_path), REGISTRY)).diagnostics
    assert [each.fix for each in found] == [None] * is_found


def test_the_switch_of_apex_is_shown(tmp_path: Path) -> None:
    path = written(tmp_path, "loss = model(x).mean()")
    apex = "    if has_apex and args.use_amp:\n        model, optimizer = amp.initialize(model, optimizer)\n    for x"
    text = path.read_text().replace("    for x", apex)
    path.write_text(
        f"try:\n    from apex import amp\n    has_apex = True\nexcept ImportError:\n    has_apex = False\n{text}"
    )
    (found,) = run.merge(run.check([path], settings(tmp_path), REGISTRY)).diagnostics
    assert found.fix is None
    assert "torch.autocast" in found.advice
