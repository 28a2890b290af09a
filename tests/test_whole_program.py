"""What check says of a script whose slow lines stand in other files: where it is told, once, with the way to it."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from speedlint import run
from speedlint.config import Settings
from speedlint.diagnostic import Diagnostic
from speedlint.registry import Registry

REGISTRY = Registry.load()

TRAIN = """
    import torch
    from metrics import accuracy
    from losses import DiceLoss


    def train(model, loader, optimizer):
        criterion = DiceLoss(5)
        right = 0.0
        for x, y in loader:
            x, y = x.cuda(), y.cuda()
            out = model(x)
            loss = sum(criterion(part, y) for part in (out, out * 2))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            right += accuracy(out, y)
        print(right)
"""
METRICS = """
    from numbers_of import one


    def accuracy(out, y):
        return one(out.argmax(1) == y)
"""
NUMBERS = """
    def one(tensor):
        return tensor.float().mean().item()
"""
LOSSES = """
    from torch import nn


    class DiceLoss(nn.Module):
        def __init__(self, classes):
            super().__init__()
            self.classes = classes

        def forward(self, out, y):
            seen, loss = [], 0.0
            for i in range(self.classes):
                part = (out[:, i] * (y == i)).sum()
                seen.append(part.item())
                loss = loss + part
            return loss
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "README.md").write_text("a project\n")
    for name, text in (("train", TRAIN), ("metrics", METRICS), ("numbers_of", NUMBERS), ("losses", LOSSES)):
        (tmp_path / f"{name}.py").write_text(textwrap.dedent(text).lstrip())
    return tmp_path


def found(project: Path, *names: str, codes: tuple[str, ...] = ("SPD301", "SPD311")) -> dict[tuple[str, str], Diagnostic]:
    settings = Settings(project, select=codes, torch=(2, 13))
    report = run.merge(run.check([project / name for name in names], settings, REGISTRY))
    assert not report.problems
    return {(each.path.name, each.code): each for each in report.diagnostics}


def test_a_wait_in_a_file_that_is_not_asked_for_is_told_at_the_call(project: Path) -> None:
    at_call = found(project, "train.py")
    assert set(at_call) == {("train.py", "SPD311")}
    settings = Settings(project, select=("SPD311",), torch=(2, 13))
    report = run.merge(run.check([project / "train.py"], settings, REGISTRY))
    messages = [each.message for each in report.diagnostics]
    assert any("waits for the GPU 10 times in every training step" in each and "losses.py:13" in each for each in messages)
    assert any("`accuracy(...)`" in each and "numbers_of.py:2" in each for each in messages)
    chain = next(each.related for each in report.diagnostics if "accuracy" in each.message)
    assert [(place.path.name, place.line) for place in chain] == [("metrics.py", 5), ("numbers_of.py", 2)]


def test_a_wait_is_told_once_whichever_files_are_asked_for(project: Path) -> None:
    everything = found(project, "train.py", "metrics.py", "numbers_of.py", "losses.py")
    assert set(everything) == {("numbers_of.py", "SPD301"), ("losses.py", "SPD301"), ("train.py", "SPD311")}
    assert "10 times" in everything["train.py", "SPD311"].message, "at the call too where calls multiply it"
    middle = found(project, "train.py", "metrics.py")
    assert set(middle) == {("metrics.py", "SPD311"), ("train.py", "SPD311")}
    assert "`one(...)`" in middle["metrics.py", "SPD311"].message
    assert "criterion" in middle["train.py", "SPD311"].message
    settings = Settings(project, select=("SPD311",), torch=(2, 13))
    asked = [project / name for name in ("train.py", "metrics.py")]
    assert len(run.merge(run.check(asked, settings, REGISTRY)).diagnostics) == 2


def test_a_helper_asked_for_alone_says_what_it_says_within_its_folder(project: Path) -> None:
    alone = found(project, "numbers_of.py")
    assert set(alone) == {("numbers_of.py", "SPD301")}
    within = found(project, "train.py", "metrics.py", "numbers_of.py", "losses.py")["numbers_of.py", "SPD301"]
    assert (alone["numbers_of.py", "SPD301"].line, alone["numbers_of.py", "SPD301"].message) == (within.line, within.message)
