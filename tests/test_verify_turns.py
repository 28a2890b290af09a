"""Runs that take turns: one measures while the others are stopped."""

from __future__ import annotations

import itertools
import socket
import sys
import textwrap
import time
from dataclasses import replace
from pathlib import Path

import pytest

from speedlint.config import Settings
from speedlint.output.verify_live import Live
from speedlint.registry import Registry
from speedlint.verify import parity, session
from speedlint.verify import runner as running
from speedlint.verify.budget import Budget
from speedlint.verify.nvml import Meter
from speedlint.verify.parity import Parity, Tier
from speedlint.verify.plan import Command, Plan, Version
from speedlint.verify.report import FAILED, WORSE
from speedlint.verify.runner import Limits, Runner
from speedlint.verify.samples import Sample
from speedlint.verify.scratch import scratch
from speedlint.verify.timing import Timing, measure

pytestmark = pytest.mark.usefixtures("uncompiled")

SCRIPT = """
    import os, sys, time
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    BEFORE
    torch.manual_seed(0)
    loader = DataLoader(TensorDataset(torch.randn(640, 8)), batch_size=2, num_workers=WORKERS)
    model = nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with open("times.txt", "w") as times:
        for epoch in range(1000):
            for (x,) in loader:
                loss = model(x).square().mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                time.sleep(0.0005)  # a window ends after 2,000 steps, which must take longer than it asks for
                times.write(f"{time.monotonic()}\\n")
                times.flush()
"""
LIMITS = Limits(steps=20, seconds=0.4, warmup=5, timeout=60.0)


def plan_of(root: Path, before: str = "", workers: int = 0) -> Plan:
    entry = root / "train.py"
    entry.write_text(textwrap.dedent(SCRIPT).replace("BEFORE", before).replace("WORKERS", str(workers)))
    command = Command(sys.executable, "train.py", False, (), (), root)
    versions = [Version(name, root, command) for name in ("original", "fixed")]
    return Plan(versions[0], versions[1], root, (root,), (), Settings(root), entry, (entry,))


@pytest.mark.parametrize("workers", [pytest.param(0, marks=pytest.mark.slow), 1])
def test_only_one_runs_at_a_time_and_the_others_turns_are_not_measured(tmp_path: Path, workers: int) -> None:
    root = tmp_path / "project"
    root.mkdir()
    plan, began = plan_of(root, workers=workers), time.monotonic()
    with scratch(tmp_path / "kept") as folders:
        samples = Runner(plan, folders, LIMITS, Meter(), lambda _seconds, _steps: None).in_turns((plan.original, plan.fixed))
    assert samples is not None
    took = time.monotonic() - began
    events = []
    for sample in samples:
        assert sample.ended == "steps", sample.note
        assert sample.window is not None
        assert LIMITS.seconds <= sample.window < took
        assert sum(sample.steps) <= sample.window
        times = [float(line) for line in (tmp_path / "kept" / sample.version / "times.txt").read_text().split()]
        events += [(at, sample.version) for at in times[-len(sample.steps) :]]
    events.sort()
    switches = sum(one[1] != other[1] for one, other in itertools.pairwise(events))
    assert 2 <= switches <= sum(len(sample.turns) for sample in samples)


@pytest.mark.slow
def test_versions_that_cannot_run_at_the_same_time_follow_each_other(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, "import socket; server = socket.create_server(('127.0.0.1', 0 or PORT))")
    entry = tmp_path / "train.py"
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    entry.write_text(entry.read_text().replace("0 or PORT", str(port)))
    timing = Timing()
    with scratch(None) as folders:
        runner = Runner(plan, folders, LIMITS, Meter(), lambda _seconds, _steps: None)
        measure(runner, (plan.original, plan.fixed), timing, 2, 2, time.monotonic() + 300, lambda _timing: None)
    assert not timing.in_turns
    assert (len(timing.pairs), timing.twins) == (2, [])


def test_what_cannot_be_stopped_or_held_in_memory_takes_no_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_of(tmp_path)
    small, on_gpu = Sample("x", memory={"peak_resident": 1000}), Sample("x", memory={"peak_resident": 1000, "total": 1})
    monkeypatch.setattr(running, "available_memory", lambda: 3000.0)
    with scratch(None) as folders:
        runner = Runner(plan, folders, LIMITS, Meter(), lambda _seconds, _steps: None)
        assert runner.can_take_turns(small, 2)
        assert not runner.can_take_turns(small, 3)
        assert not runner.can_take_turns(on_gpu, 2)
        assert not runner.can_take_turns(Sample("x", ranks=2), 2)


def test_a_script_that_prints_without_end_fills_no_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "_LARGEST_LOG", 1 << 20)
    noisy = "for _ in range(200): print('x' * (1 << 20)); time.sleep(0.01)"
    with scratch(None) as folders:
        sample = Runner(plan_of(tmp_path, noisy), folders, LIMITS, Meter(), lambda _seconds, _steps: None).run(
            plan_of(tmp_path, noisy).original
        )
        assert sample.ended == "steps", sample.note
        assert Path(sample.log).stat().st_size < 64 << 20


@pytest.mark.parametrize(
    ("failing", "tier", "code"),
    [
        pytest.param("fixed", Tier.DIFFERENT, WORSE, marks=pytest.mark.slow),
        ("both", Tier.UNKNOWN, FAILED),
    ],
)
def test_a_version_that_fails_after_the_compared_losses_is_not_timed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str, tier: Tier, code: int
) -> None:
    plan = plan_of(tmp_path)
    crash = plan.entry.read_bytes().replace(b"times.flush()", b"if epoch: raise ValueError('late')")
    original, fixed = (replace(version, changed={plan.entry: crash}) for version in (plan.original, plan.fixed))
    plan = replace(plan, fixed=fixed, original=original if failing == "both" else plan.original)
    monkeypatch.setattr(parity, "judge", lambda *_: Parity(Tier.IDENTICAL, "all losses are the same"))
    limits = Limits(steps=400, seconds=0, warmup=2, longest_warmup=4, timeout=60.0)
    with scratch(None) as folders:
        report = session.verify(plan, folders, limits, session.Effort(3, 3), Registry.load(), Live(Budget(300)), Meter())
    assert (report.parity.tier, report.exit_code(None), report.timing) == (tier, code, None)
    assert "ValueError: late" in report.problem
