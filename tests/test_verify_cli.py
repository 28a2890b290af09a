"""``speedlint verify`` as it is typed."""

from __future__ import annotations

import contextlib
import json
import math
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from speedlint.verify import confine, stats
from speedlint.verify.scratch import scratch

pytestmark = pytest.mark.usefixtures("uncompiled")

SCRIPT = """
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    torch.manual_seed(0)
    rows = torch.randn(640, 64)
    loader = DataLoader(TensorDataset(rows, rows.sum(1, keepdim=True)), batch_size=16)
    model = nn.Linear(64, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=LR)
    beside = torch.eye(192)
    for epoch in range(40):
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            for _ in range(UNITS):
                beside = beside @ beside
"""
FAST = ("--pairs", "4", "--max-pairs", "8", "--steps", "8", "--seconds", "0.3", "--warmup", "2")


def verify(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "speedlint", "verify", *options]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=300)


def written(path: Path, units: int, lr: float = 0.001) -> str:
    text = textwrap.dedent(SCRIPT).replace("UNITS", str(units)).replace("LR", str(lr))
    path.write_text(text)
    return path.name


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("gone.py",), "gone.py: there is no such script"),
        ((), "name the script"),
        (("-m", "no.module"), "no such module"),
        (("train.py", "--against", "gone"), "gone: there is no such file or folder"),
        (("train.py", "--json", "no/folder/x.json"), "there is no such folder"),
        (("train.py", "--launch", "'torchrun"), "--launch"),
        (("train.py", "--select", "SPD999"), "SPD999"),
    ],
)
def test_a_wrong_option_costs_one_line(tmp_path: Path, options: tuple[str, ...], said: str) -> None:
    written(tmp_path / "train.py", 1)
    done = verify(tmp_path, *options)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_where_nothing_is_to_fix_nothing_is_timed(tmp_path: Path) -> None:
    written(tmp_path / "train.py", 1)
    done = verify(tmp_path, "train.py", "--risk", "exact")
    assert done.returncode == 0, done.stderr
    assert "Nothing to fix" in done.stdout


@pytest.mark.parametrize("pairs", [("3", "3"), pytest.param(("4", "8"), marks=pytest.mark.slow)])
def test_a_slower_version_is_called_slower_and_identical(tmp_path: Path, pairs: tuple[str, str]) -> None:
    written(tmp_path / "train.py", 2)
    written(tmp_path / "<b>slow.py", 40)
    report, page = tmp_path / "report.json", tmp_path / "page.html"
    written_to = ("--json", str(report), "--html", str(page))
    options = ("--against", "<b>slow.py", *written_to, *FAST, "--pairs", pairs[0], "--max-pairs", pairs[1])
    done = verify(tmp_path, "train.py", *options, "--", "<i>argument")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "slower" in done.stdout
    assert "identical: all" in done.stdout
    found = json.loads(report.read_text())
    assert (found["verdict"], found["parity"]["tier"]) == ("slower", "identical")
    timing = found["timing"]
    both = zip(timing["pairs"], timing["twins"], strict=True)
    steps = [[statistics.median(run["steps"]) for run in (mine, twin, theirs)] for (mine, theirs), twin in both]
    logs = [(math.log(mine) + math.log(twin)) / 2 - math.log(theirs) for mine, twin, theirs in steps]
    assert found["timing"]["ratio"]["ratio"] == pytest.approx(stats.estimate(logs).ratio)
    assert found["machine"]["process"]["torch"]
    text = page.read_text()
    assert "<i>argument" not in text
    assert "&lt;i&gt;argument" in text
    assert "<script" not in text
    assert "http" not in text.replace("http-equiv", "")


@pytest.mark.slow
def test_another_training_is_told_apart(tmp_path: Path) -> None:
    written(tmp_path / "train.py", 1)
    written(tmp_path / "other.py", 1, lr=0.05)
    done = verify(tmp_path, "train.py", "--against", "other.py", *FAST)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "different training" in done.stdout


def test_only_what_paid_is_applied(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text((Path(__file__).parent.parent / "fixtures/projects/toxic_gpt2/train.py").read_text())
    report = tmp_path / "report.json"
    report.write_text(json.dumps({"per_fix": [{"code": "SPD205", "pays": True}, {"code": "SPD502", "pays": False}]}))
    options = ("--apply", "--torch", "2.13", "--only-paying", str(report))
    command = [sys.executable, "-m", "speedlint", "fix", *options, "train.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "non_blocking=True" in script.read_text()
    assert "fused" not in script.read_text()
    report.write_text("{}")
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, "is no report" in done.stderr) == (2, True)


def test_a_script_that_fails_is_an_error_and_says_so(tmp_path: Path) -> None:
    written(tmp_path / "other.py", 1)
    (tmp_path / "train.py").write_text("import torch\nraise RuntimeError('no data here')\n")
    done = verify(tmp_path, "train.py", "--against", "other.py", *FAST)
    assert done.returncode == 2, done.stdout + done.stderr
    assert "RuntimeError: no data here" in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr


def test_a_script_that_fails_after_some_steps_is_an_error_and_is_compared_with_nothing(tmp_path: Path) -> None:
    for name in ("train.py", "other.py"):
        written(tmp_path / name, 1)
        text = (tmp_path / name).read_text()
        (tmp_path / name).write_text(
            text.replace("        optimizer.step()", "        if epoch: raise ValueError('no more')")
        )
    done = verify(tmp_path, "train.py", "--against", "other.py", *FAST)
    assert done.returncode == 2, done.stdout + done.stderr
    assert "ValueError: no more, after 41 losses" in done.stdout
    assert "identical" not in done.stdout


@pytest.mark.slow
def test_a_version_that_fails_is_another_training(tmp_path: Path) -> None:
    written(tmp_path / "train.py", 1)
    (tmp_path / "other.py").write_text("import torch\nraise MemoryError('too large')\n")
    done = verify(tmp_path, "train.py", "--against", "other.py", *FAST)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "MemoryError: too large" in done.stdout


def test_interrupted_it_reports_what_there_is_and_leaves_nothing(tmp_path: Path) -> None:
    written(tmp_path / "train.py", 1)
    written(tmp_path / "other.py", 2)
    temporary = tmp_path / "t"
    temporary.mkdir()
    command = [sys.executable, "-m", "speedlint", "verify", "train.py", "--against", "other.py", "--pairs", "20"]
    environment = {**os.environ, "TMPDIR": str(temporary)}
    process = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not list(temporary.glob("speedlint-*/run3")):
        time.sleep(0.05)
    process.terminate()
    output, _ = process.communicate(timeout=60)
    assert "interrupted" in output
    assert process.returncode in (1, 3)
    assert not list(temporary.iterdir())


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel ends the runs on Linux only")
def test_a_run_whose_verify_is_gone_by_then_does_not_begin(tmp_path: Path) -> None:
    words = [sys.executable, "-E", confine.__file__, "1", str(tmp_path), "--", "touch", str(tmp_path / "ran")]
    assert subprocess.run(words, check=False).returncode == -signal.SIGKILL
    assert not (tmp_path / "ran").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel ends the runs on Linux only")
def test_without_landlock_a_run_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    text = f"""
        import pathlib, subprocess, time
        from speedlint.verify import confine
        confine.version = lambda: 0
        words = confine.prefix(pathlib.Path({str(tmp_path)!r}))
        subprocess.Popen([*words, "sh", "-c", "echo >{ready}; exec sleep 321"])
        time.sleep(60)
    """
    process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(text)])
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not ready.exists():
        time.sleep(0.05)
    assert ready.exists()
    process.kill()
    process.wait()
    assert _is_gone_for_good("sleep\x00321")


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel ends the runs on Linux only")
def test_killed_it_leaves_no_process_and_the_next_run_sweeps(tmp_path: Path) -> None:
    written(tmp_path / "train.py", 1)
    written(tmp_path / "other.py", 2)
    temporary = tmp_path / "t"
    temporary.mkdir()
    command = [sys.executable, "-m", "speedlint", "verify", "train.py", "--against", "other.py"]
    environment = {**os.environ, "TMPDIR": str(temporary)}
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not list(temporary.glob("speedlint-*/run2")):
        time.sleep(0.05)
    process.kill()
    process.wait()
    (left,) = temporary.glob("speedlint-*")
    assert _is_gone_for_good(str(left))
    with scratch_of(temporary):
        assert not left.exists()


def _is_gone_for_good(word: str) -> bool:
    """Whether, within 10 s, no process is found for a second: one that is just being started has no words of its own yet."""
    quiet_since = started = time.monotonic()
    while (now := time.monotonic()) - quiet_since < 1 and now - started < 10:
        if _running(word):
            quiet_since = time.monotonic()
        time.sleep(0.05)
    return now - quiet_since >= 1


def _running(word: str) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            found += [str(path)] if word.encode() in path.read_bytes() else []
    return found


@contextlib.contextmanager
def scratch_of(temporary: Path) -> Iterator[None]:
    before = tempfile.tempdir
    tempfile.tempdir = str(temporary)
    try:
        with scratch(None):
            yield
    finally:
        tempfile.tempdir = before
