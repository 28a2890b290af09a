"""The CUDA and NVML paths of verify, on a queue and a library that stand in for them."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from speedlint.config import Settings
from speedlint.output import verify_html, verify_text
from speedlint.registry import Registry
from speedlint.verify import session
from speedlint.verify.nvml import Meter
from speedlint.verify.plan import Command, Plan, Version
from speedlint.verify.runner import Limits, Runner
from speedlint.verify.samples import Sample
from speedlint.verify.scratch import scratch
from speedlint.verify.stats import Verdict
from speedlint.verify.targets import targets

SCRIPT = """
    import torch
    import fake_cuda
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    fake_cuda.install()
    torch.manual_seed(0)
    loader = DataLoader(TensorDataset(torch.randn(96, 4)), batch_size=4)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(20):
        for (x,) in loader:
            loss = model(x).square().mean()
            optimizer.zero_grad()
            loss.backward()
            fake_cuda.launch(KERNEL)
            optimizer.step()
            for _ in range(READS):
                fake_cuda.read()
"""
LIMITS = Limits(steps=8, seconds=0, warmup=2, longest_warmup=6, timeout=60.0)


class Library:
    """What ``pynvml`` answers for one GPU: 95% busy at 300 W, with one other process on it."""

    NVML_CLOCK_SM, NVML_CLOCK_MEM = 1, 2

    def nvmlInit(self) -> None:  # noqa: N802 (NVML names it so)
        """There is a driver."""

    def __getattr__(self, name: str) -> Any:
        answers: dict[str, Any] = {
            "nvmlDeviceGetHandleByIndex": 7,
            "nvmlDeviceGetName": b"Fake GPU",
            "nvmlSystemGetDriverVersion": "570.1",
            "nvmlDeviceGetClockInfo": 1980,
            "nvmlDeviceGetPowerManagementLimit": 700_000,
            "nvmlDeviceGetUtilizationRates": SimpleNamespace(gpu=95),
            "nvmlDeviceGetPowerUsage": 300_000,
            "nvmlDeviceGetComputeRunningProcesses": [SimpleNamespace(pid=4242)],
        }
        return lambda *_: answers[name]


class Silent:
    """A watch that nobody looks at."""

    def phase(self, name: str) -> None:
        """Nothing."""

    def timing(self, timing: object) -> None:
        """Nothing."""

    def running(self, seconds: float, steps: int) -> None:
        """Nothing."""


@pytest.fixture
def plan(tmp_path: Path) -> Iterator[Plan]:
    """A script whose step takes 12 ms on the GPU and reads twice, against one that takes 4 ms and does not."""
    text = textwrap.dedent(SCRIPT)
    (tmp_path / "fake_cuda.py").write_text((Path(__file__).parent / "fake_cuda.py").read_text())
    entry = tmp_path / "train.py"
    entry.write_text(text.replace("KERNEL", "0.012").replace("READS", "2"))
    command = Command(sys.executable, "train.py", False, (), (), tmp_path)
    fixed = Version("fixed", tmp_path, command, {entry: text.replace("KERNEL", "0.004").replace("READS", "0").encode()})
    yield Plan(Version("original", tmp_path, command), fixed, tmp_path, (tmp_path,), (), Settings(tmp_path), entry, (entry,))


def test_a_step_is_timed_on_the_gpu_where_the_host_does_not_wait(plan: Plan) -> None:
    with scratch(None) as folders:
        sample = Runner(plan, folders, LIMITS, Meter(Library()), lambda _seconds, _steps: None).run(plan.fixed)
    assert sample.ended == "steps", sample.note
    assert len(sample.steps) == LIMITS.steps
    assert sample.window is not None
    assert sample.step == pytest.approx(0.004)
    assert sample.window == pytest.approx(0.004 * LIMITS.steps)
    assert sample.gpu["joules_a_step"] == pytest.approx(300 * 0.004)
    assert sample.memory["peak_reserved"] == 850
    assert sample.environment["device"] == "Fake GPU"


@pytest.mark.parametrize("begins", [0, 1, 2])
def test_a_gpu_that_is_first_used_in_a_warm_up_step_times_each_measured_one(plan: Plan, begins: int) -> None:
    limits = replace(LIMITS, warmup=3, longest_warmup=3)
    late = plan.entry.read_text().replace("fake_cuda.install()\n", "done = 0\n", 1)
    lines = (f"if done == {begins}:", "    fake_cuda.install()", "done += 1", "loss = ")
    late = late.replace("        loss = ", "\n".join("        " + line for line in lines))
    plan.entry.write_text(late)
    with scratch(None) as folders:
        sample = Runner(plan, folders, limits, Meter(Library()), lambda _seconds, _steps: None).run(plan.original)
    assert sample.ended == "steps", sample.note
    assert sample.steps == pytest.approx((0.012,) * limits.steps)
    assert sample.window == pytest.approx(0.012 * limits.steps)


@pytest.mark.slow
def test_the_report_has_what_the_gpu_says(plan: Plan, tmp_path: Path) -> None:
    effort = session.Effort(pairs=3, most=3)
    rules = Registry.load()
    with scratch(None) as folders:
        report = session.verify(plan, folders, LIMITS, effort, rules, Silent(), Meter(Library()))
    assert report.timing is not None, report.problem
    assert report.verdict is Verdict.FASTER
    assert not report.timing.in_turns
    for mine, theirs in report.timing.pairs:
        assert [mine.step, theirs.step] == pytest.approx([0.012, 0.004]), "the GPU's clock, not the host's"
    assert report.syncs == (2, 0)
    assert report.machine["gpu"] == {
        "name": "Fake GPU",
        "driver": "570.1",
        "clock_sm": 1980,
        "clock_memory": 1980,
        "power_limit": 700.0,
    }
    assert any("in use by 1 other process" in note for note in report.notes)
    console = Console(width=120, record=True)
    console.print(verify_text.render(report))
    for shown in (console.export_text(), verify_html.render(report)):
        assert "waits for the GPU in a step" in shown
        assert "energy of a step" in shown
        assert "close to the limit" in shown


def test_without_nvml_it_is_said_and_nothing_fails() -> None:
    class Broken(Library):
        def nvmlInit(self) -> None:  # noqa: N802 (NVML names it so)
            raise RuntimeError("driver not loaded")

    meter = Meter(Broken())
    assert "driver not loaded" in meter.why
    assert (meter.others(), meter.describe()) == ([], {})
    with meter.reading() as rows:
        pass
    assert rows == []


def test_where_the_gpu_was_not_read_it_is_said_why() -> None:
    class Broken:
        def nvmlInit(self) -> None:  # noqa: N802 (NVML names it so)
            raise OSError("driver mismatch")

    run = Sample("x", steps=(1.0,), memory={"total": 10, "peak_reserved": 5})
    busy = targets([run], Meter(Broken()).why)[1]
    assert (busy.value, busy.advice) == (None, "NVML cannot be used (driver mismatch)")
