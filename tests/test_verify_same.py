"""Whether two scripts are the same training, from runs of both."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from speedlint.config import Settings
from speedlint.verify import parity
from speedlint.verify.nvml import Meter
from speedlint.verify.parity import BrokenError, Parity, Tier
from speedlint.verify.plan import Command, Plan, Version
from speedlint.verify.runner import Limits, Runner
from speedlint.verify.scratch import scratch

pytestmark = pytest.mark.usefixtures("uncompiled")

SCRIPT = """
    import os
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    SEEDING
    rows = torch.randn(256, 4)
    data = TensorDataset(rows, rows.sum(1, keepdim=True) + torch.randn(256, 1))
    loader = DataLoader(data, batch_size=16, shuffle=True)
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    count = 0
    for epoch in range(100):
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            count += 1
            # step
        # epoch
"""
EVALUATION = "for x, y in DataLoader(data, batch_size=64): model(x.detach())"
SYSTEM = "torch.manual_seed(int.from_bytes(os.urandom(4), 'little'))"
LIMITS = Limits(steps=10, seconds=0, warmup=2, longest_warmup=10, timeout=60.0)
Judge = Callable[..., Parity]


@pytest.fixture
def judge(tmp_path: Path) -> Judge:
    """Judges a script against another one, which is written with replacements."""

    def judging(
        *changes: tuple[str, str], seeding: str = "torch.manual_seed(0)", both: tuple[str, str] = ("", "")
    ) -> Parity:
        text = textwrap.dedent(SCRIPT).replace("SEEDING", seeding).replace(*both)
        other = text
        for old, new in changes:
            assert old in other
            other = other.replace(old, new)
        entry = tmp_path / "train.py"
        entry.write_text(text)
        command = Command(sys.executable, "train.py", False, (), (), tmp_path)
        versions = Version("original", tmp_path, command), Version("fixed", tmp_path, command, {entry: other.encode()})
        plan = Plan(*versions, tmp_path, (tmp_path,), (), Settings(tmp_path), entry, (entry,))
        with scratch(None) as folders:
            return parity.judge(Runner(plan, folders, LIMITS, Meter(), lambda _seconds, _steps: None), *versions)

    return judging


@pytest.mark.slow
def test_rounding_is_numeric(judge: Judge) -> None:
    otherwise = ("mse_loss(model(x), y)", "mse_loss(model(x), y, reduction='none').view(4, 4).sum(0).sum() / 16")
    found = judge(otherwise, both=("range(100)", "range(1)"))  # nothing follows the losses
    assert found.tier is Tier.NUMERIC
    assert 0 < found.drift < found.allowed


@pytest.mark.slow
def test_a_changed_learning_rate_is_neither_identical_nor_numeric(judge: Judge) -> None:
    found = judge(("lr=0.1", "lr=0.105"))
    assert found.tier in (Tier.STATISTICAL, Tier.DIFFERENT)
    assert found.first == 0


@pytest.mark.slow
def test_a_script_that_seeds_itself_from_the_system_is_the_same_training(judge: Judge) -> None:
    found = judge(("zero_grad()", "zero_grad(set_to_none=False)"), seeding=SYSTEM)
    assert (found.tier, found.repeatable, found.seeded) == (Tier.NUMERIC, True, False)


@pytest.mark.slow
def test_a_change_in_a_script_that_seeds_itself_from_the_system_is_seen(judge: Judge) -> None:
    assert judge(("lr=0.1", "lr=0.2"), seeding=SYSTEM).tier in (Tier.STATISTICAL, Tier.DIFFERENT)


@pytest.mark.slow
def test_another_seed_is_another_run(judge: Judge) -> None:
    assert judge(("manual_seed(0)", "manual_seed(1)")).tier is Tier.STATISTICAL


@pytest.mark.slow
def test_noise_that_no_seed_rules_is_compared_over_runs(judge: Judge) -> None:
    noise = ("rows = ", "torch.rand(os.urandom(1)[0] + 1)\nrows = ")
    found = judge(("zero_grad()", "zero_grad(set_to_none=False)"), both=noise)
    assert (found.tier, found.repeatable) == (Tier.STATISTICAL, False)
    assert "runs with seeds of their own" in found.why


@pytest.mark.parametrize("count", [3, 17])
def test_an_original_that_fails_is_compared_with_nothing(judge: Judge, count: int) -> None:
    failing = ("# step", f"if count == {count}: raise ValueError('no more')")
    with pytest.raises(BrokenError, match=rf"original version failed.*ValueError: no more, after {count} losses"):
        judge(both=failing)


def test_a_fixed_version_that_fails_in_a_step_is_another_training(judge: Judge) -> None:
    found = judge(("# step", "if count == 17: raise ValueError('no more')"))
    assert found.tier is Tier.DIFFERENT
    assert "ValueError: no more" in found.why


@pytest.mark.slow
def test_a_fixed_version_whose_evaluation_fails_is_another_training(judge: Judge) -> None:
    found = judge(("x.detach()", "x.numpy().nothing"), both=("# epoch", f"if epoch == 3:\n            {EVALUATION}"))
    assert found.tier is Tier.DIFFERENT
    assert "after 20 losses that are identical it failed with exit code 1" in found.why
    assert "AttributeError" in found.why


@pytest.mark.slow
def test_what_follows_the_losses_is_said(judge: Judge) -> None:
    assert "runs in the fixed version too, with few batches" in judge(both=("# epoch", EVALUATION)).beyond
    assert judge(both=("range(100)", "range(1)")).beyond == ""


@pytest.mark.slow
def test_what_fails_in_both_versions_is_not_compared(judge: Judge) -> None:
    broken = judge(both=("# epoch", "if epoch == 3:\n            raise ValueError('in both')"))
    assert broken.tier is Tier.IDENTICAL
    assert "was not compared: with few batches of each loader both versions fail" in broken.beyond


@pytest.mark.slow
def test_evaluation_that_was_not_reached_is_said(judge: Judge) -> None:
    endless = judge(both=("for x, y in loader:", "while True:\n        x, y = next(iter(loader))"))
    assert "evaluation was not reached" in endless.beyond
