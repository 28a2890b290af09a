"""The CUDA and NVML paths of verify, on a queue and a library that stand in for them."""

from __future__ import annotations

import importlib
import json
import os
import sys
import textwrap
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from speedlint.config import Settings
from speedlint.output import verify_html, verify_text, verify_words
from speedlint.registry import Registry
from speedlint.verify import session
from speedlint.verify.gpus import Gpu, Rank, Reading, measured, peak
from speedlint.verify.nvml import Meter
from speedlint.verify.parity import Parity, Tier
from speedlint.verify.plan import Command, Plan, Version
from speedlint.verify.report import Report
from speedlint.verify.runner import Limits, Mode, Runner
from speedlint.verify.samples import Sample
from speedlint.verify.scratch import scratch
from speedlint.verify.stats import Verdict
from speedlint.verify.targets import targets
from speedlint.verify.timing import Timing
from tests.fake_cuda import UUIDS

pytestmark = pytest.mark.usefixtures("uncompiled")

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
    """What ``pynvml`` answers for two GPUs, whose handles are their UUIDs: 95% busy at 300 and 500 W, with one other process
    on each, the second one held back by its power limit."""

    NVML_CLOCK_SM, NVML_TEMPERATURE_GPU = 1, 0

    def nvmlInit(self) -> None:  # noqa: N802 (NVML names it so)
        """There is a driver."""

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> str:  # noqa: N802
        """Raises for one that it does not know."""
        return {f"GPU-{each}": f"GPU-{each}" for each in UUIDS}[uuid]

    def nvmlDeviceGetHandleByIndex(self, index: int) -> str:  # noqa: N802
        """By the driver's number."""
        return f"GPU-{UUIDS[index]}"

    def nvmlDeviceGetTotalEnergyConsumption(self, _handle: str) -> int:  # noqa: N802
        """An older GPU keeps no count."""
        raise RuntimeError("not supported")

    def nvmlDeviceGetPowerUsage(self, handle: str) -> int:  # noqa: N802
        """Milliwatts."""
        return 300_000 if UUIDS[0] in handle else 500_000

    def nvmlDeviceGetCurrentClocksEventReasons(self, handle: str) -> int:  # noqa: N802
        """That it is idle counts for nothing."""
        return 0x1 if UUIDS[0] in handle else 0x5

    def __getattr__(self, name: str) -> Any:
        answers: dict[str, Any] = {
            "nvmlDeviceGetCount": 2,
            "nvmlDeviceGetName": b"Fake GPU",
            "nvmlSystemGetDriverVersion": "570.1",
            "nvmlDeviceGetClockInfo": 1410,
            "nvmlDeviceGetMaxClockInfo": 1980,
            "nvmlDeviceGetTemperature": 71,
            "nvmlDeviceGetPowerManagementLimit": 700_000,
            "nvmlDeviceGetUtilizationRates": SimpleNamespace(gpu=95),
            "nvmlDeviceGetComputeRunningProcesses": [SimpleNamespace(pid=4242)],
        }
        if name == "nvmlDeviceGetUUID":
            return lambda handle: handle.encode()
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
    assert sample.joules == pytest.approx(300 * 0.004)
    assert (sample.said("clock"), sample.said("temperature")) == (1410, 71)
    assert sample.memory["peak_reserved"] == 850
    assert sample.environment["device"] == "Fake GPU 0"


def test_the_gpu_is_the_one_that_the_script_uses_not_the_current_one(plan: Plan) -> None:
    """The script runs on ``cuda:1``, and CUDA numbers the GPUs in another order than the driver."""
    lines = plan.entry.read_text().replace("install()", "install((0, 600), (1, 0))")
    plan.entry.write_text(lines.replace("launch(0.012)", "launch(0.012, 1)"))
    meter = Meter(Library())
    with scratch(None) as folders:
        sample = Runner(plan, folders, LIMITS, meter, lambda _seconds, _steps: None).run(plan.original)
    assert sample.step == pytest.approx(0.012)
    assert sample.window == pytest.approx(0.012 * LIMITS.steps)
    assert sample.memory["peak_reserved"] == 600
    assert [(gpu.index, gpu.name, gpu.uuid) for gpu in sample.gpus] == [(1, "Fake GPU 0", UUIDS[0])]
    assert sample.joules == pytest.approx(300 * 0.012)
    assert [each["uuid"] for each in meter.describe()] == [UUIDS[0]]


def test_of_two_gpus_the_slower_one_sets_the_step_and_both_are_shown(plan: Plan) -> None:
    lines = plan.entry.read_text().replace("install()", "install((850, 600))")
    plan.entry.write_text(lines.replace("fake_cuda.launch(0.012)", "fake_cuda.launch(0.012); fake_cuda.launch(0.02, 1)"))
    with scratch(None) as folders:
        sample = Runner(plan, folders, LIMITS, Meter(Library()), lambda _seconds, _steps: None).run(plan.original)
    assert sample.steps == pytest.approx((0.02,) * LIMITS.steps)
    assert sample.memory["peak_reserved"] == 850
    assert sample.joules == pytest.approx((300 + 500) * 0.02)
    assert [gpu.held_back for gpu in sample.gpus] == [{}, {"its power limit": 1.0}]
    timing = Timing(first=(sample, sample), pairs=[(sample, sample)] * 3)
    assert [row[:3] for row in verify_words.ranks(timing)] == [
        ("0", "0: Fake GPU 0", "20 ms, 20 ms"),
        ("0", "1: Fake GPU 1", "20 ms, 20 ms"),
    ]
    (note,) = [each for each in session._of_timing(timing) if "power limit" in each]
    assert note.startswith("its power limit held back the clock of Fake GPU 1 (bbbb0000) in 100% of the readings")


LAUNCHER = """
    import os, subprocess, sys
    ranks = [dict(os.environ, RANK=str(rank), WORLD_SIZE="2") for rank in range(2)]
    going = [subprocess.Popen([sys.executable, *sys.argv[1:]], env=each) for each in ranks]
    sys.exit(max(each.wait() for each in going))
"""


def test_ranks_measure_the_same_steps_once_each_has_warmed_up(
    plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second rank compiles for some steps longer; the two wait for each other in each step."""
    (tmp_path / "launch.py").write_text(textwrap.dedent(LAUNCHER))
    rank = "int(os.environ['RANK'])"
    lines = plan.entry.read_text().replace("import torch\n", "import os, time\nfrom pathlib import Path\nimport torch\n", 1)
    lines = lines.replace("install()\n", f"install((850,), ({rank}, ))\ndone = 0\n")
    lines = lines.replace("fake_cuda.launch(0.012)", f"fake_cuda.launch(0.012 + 0.004 * {rank})")
    lines = lines.replace("optimizer.step()", f"optimizer.step(); done += 1; wait(done, {rank})")
    wait = """
    def wait(done, rank):
        time.sleep(0.05 * done if rank and done < 9 else 0.01)
        Path(f"{rank}-{done}").touch()
        while not Path(f"{1 - rank}-{done}").exists():
            time.sleep(0.001)
    """
    plan.entry.write_text(lines.replace("fake_cuda.install", textwrap.dedent(wait) + "\nfake_cuda.install", 1))
    command = replace(plan.original.command, launcher=(sys.executable, str(tmp_path / "launch.py")))
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    limits = replace(LIMITS, longest_warmup=40, threads=None)
    with scratch(tmp_path / "kept") as folders:
        runner = Runner(plan, folders, limits, Meter(Library()), lambda _seconds, _steps: None)
        sample = runner.run(replace(plan.original, command=command))
    assert (sample.ended, sample.ranks, len(sample.steps)) == ("steps", 2, LIMITS.steps), sample.note
    results = [json.loads(path.read_text()) for path in sorted((tmp_path / "kept" / "run1").glob("rank-*.json"))]
    one, other = results
    assert [each["environment"]["threads"] for each in results] == [min(2, os.cpu_count() or 1)] * 2, "as is set outside"
    assert one["warmup"] == other["warmup"]
    assert len(one["steps"]) == len(other["steps"])
    assert 8 <= one["warmup"] < 40, "the eight slow steps are not measured"
    timing = Timing(first=(sample, sample), pairs=[(sample, sample)] * 3)
    assert [row[:3] for row in verify_words.ranks(timing)] == [
        ("0", "0: Fake GPU 0", "12 ms, 12 ms"),
        ("1", "0: Fake GPU 1", "16 ms, 16 ms"),
    ]


@pytest.mark.parametrize("visible", ["1", "1,0", "GPU-bbbb", "GPU-bbbb,GPU-aaaa", None])
def test_a_gpu_without_an_identifier_is_the_first_one_visible(monkeypatch: pytest.MonkeyPatch, visible: str | None) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    meter = Meter(Library())
    meter.watch([""])
    with meter.reading() as rows:
        while not rows:
            time.sleep(0.01)
    assert rows[0].watts == (300 if visible is None else 500)


def test_a_gpu_that_nvml_does_not_know_is_said() -> None:
    meter = Meter(Library())
    meter.watch(["cccc"])
    assert meter.why == "NVML does not know the GPU cccc (by no identifier)"


def test_how_busy_it_was_is_of_the_measured_steps_alone() -> None:
    """A reading tells of the second before it, in which another part of the training may have run."""
    rows = [Reading(0.1 * k, "x", busy=0.2 if k < 30 else 0.9, energy=10.0 * k, reasons=0x48) for k in range(50)]
    unread = Gpu(0, "x", "", 0, 0, 1)
    gpu = measured(unread, [*rows, Reading(3.5, "y", busy=0.0)], 2.0, 4.0)
    assert gpu.busy == pytest.approx(0.9)
    assert gpu.joules == pytest.approx(200)
    assert gpu.held_back == {"a hardware slowdown": 1.0, "heat": 1.0}
    assert measured(unread, rows, 2.0, 2.9).busy is None


@pytest.mark.parametrize(
    ("name", "most"),
    [
        ("NVIDIA H100 80GB HBM3", 989.4),
        ("NVIDIA H100 PCIe", 756),
        ("NVIDIA A100-SXM4-40GB", 312),
        ("NVIDIA A10G", None),
        ("Tesla T4", 65),
        ("Tesla V100-SXM2-16GB", 125),
        ("NVIDIA L4", 121),
    ],
)
def test_the_peak_of_a_gpu_is_that_of_its_kind(name: str, most: float | None) -> None:
    found = peak(name)
    assert found == (None if most is None else pytest.approx(most * 1e12))


def test_the_rates_of_a_step_are_those_of_all_ranks() -> None:
    gpus = [Gpu(0, each, "NVIDIA A100-SXM4-80GB", 1, 1, 4, busy=0.5, clock=1400) for each in UUIDS]
    ranks = tuple(Rank(k, 0.1, 0.0, (gpu,)) for k, gpu in enumerate(gpus))
    sample = Sample("fixed", steps=(0.1,) * 4, samples=32, window=0.4, parts=ranks)
    timing = Timing(first=(sample, sample), pairs=[(sample, sample)] * 3)
    counted = Sample("original", flops=6.24e12, tokens=4096)
    report = Report("train.py", Path(), (), timing, Parity(Tier.IDENTICAL, ""), (), {}, work=(counted, counted))
    rows = {name: one for name, one, _, _ in verify_words.comparison(report, timing)}
    assert (rows["tokens a second"], rows["TFLOP/s"], rows["MFU, of 624 TFLOP/s"]) == ("40,960", "62.4", "10.0%")
    assert (rows["GPU busy"], rows["GPU clock"]) == ("50%", "1400 MHz")
    together = replace(sample, parts=(Rank(0, 0.1, 0.0, tuple(gpus)),))
    timing = Timing(first=(together, together), pairs=[(together, together)] * 3)
    assert not [row for row in verify_words.comparison(report, timing) if "FLOP" in row[0]]


def test_operations_and_tokens_of_a_step_are_counted(tmp_path: Path, whole_torch: None) -> None:
    text = textwrap.dedent(SCRIPT).replace("import fake_cuda\n", "").replace("fake_cuda.install()\n", "")
    text = text.replace("fake_cuda.launch(KERNEL)", "pass").replace("READS", "0")
    text = text.replace("torch.randn(96, 4)", "torch.randint(9, (96, 7))").replace(
        "nn.Linear(4, 1)", "nn.Sequential(nn.Embedding(9, 5), nn.Linear(5, 3))"
    )
    (tmp_path / "train.py").write_text(text)
    version = Version("original", tmp_path, Command(sys.executable, "train.py", False, (), (), tmp_path))
    whole = Plan(version, version, tmp_path, (tmp_path,), (), Settings(tmp_path), tmp_path / "train.py", ())
    with scratch(None) as folders:
        sample = Runner(whole, folders, LIMITS, Meter(Library()), lambda _seconds, _steps: None).run(version, Mode("work"))
    assert (sample.ended, sample.tokens) == ("steps", 4 * 7), sample.note
    assert sample.flops == 3 * 2 * 4 * 7 * 5 * 3, "the product and both of its gradients"


@pytest.mark.parametrize(
    ("built", "visible", "device", "said"),
    [
        ("13.0", None, "nvidia0", "Error 304"),
        ("13.0", "0", "dxg", "Error 304"),
        ("13.0", "-1", "nvidia0", ""),
        ("13.0", "", "nvidia0", ""),
        (None, None, "nvidia0", ""),
        ("13.0", None, "null", ""),
    ],
)
def test_a_gpu_that_torch_does_not_find_is_told(
    built: str | None, visible: str | None, device: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def init() -> None:
        raise RuntimeError("Error 304\nmore")

    monkeypatch.syspath_prepend(str(Path(session.__file__).parent / "probe"))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    (tmp_path / device).touch()
    torch = SimpleNamespace(version=SimpleNamespace(cuda=built), cuda=SimpleNamespace(init=init))
    assert importlib.import_module("speedlint_gpus").lost(torch, str(tmp_path)) == said


@pytest.mark.parametrize("begins", [0, 1, pytest.param(2, marks=pytest.mark.slow)])
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
    assert report.machine["gpus"] == [
        {"uuid": UUIDS[0], "name": "Fake GPU", "driver": "570.1", "highest_clock": 1980, "power_limit": 700.0}
    ]
    assert any("in use by 1 other process" in note for note in report.notes)
    console = Console(width=120, record=True)
    console.print(verify_text.render(report))
    for shown in (console.export_text(), verify_html.render(report)):
        assert "waits for the GPU in a step" in shown
        assert "energy of a step" in shown
        assert "GPU clock" in shown
        assert "TFLOP/s" in shown
        assert "close to the limit" in shown


def test_without_nvml_it_is_said_and_nothing_fails() -> None:
    class Broken(Library):
        def nvmlInit(self) -> None:  # noqa: N802 (NVML names it so)
            raise RuntimeError("driver not loaded")

    meter = Meter(Broken())
    assert "driver not loaded" in meter.why
    assert (meter.others(), meter.describe()) == ([], [])
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
