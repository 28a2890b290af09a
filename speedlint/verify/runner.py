"""Runs one version once, in a fresh process group, and always ends it whole."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from speedlint.errors import UserError
from speedlint.verify import confine
from speedlint.verify.nvml import Meter
from speedlint.verify.plan import Plan, Version
from speedlint.verify.samples import Sample, read
from speedlint.verify.scratch import Scratch

_PROBE = Path(__file__).parent / "probe"
_LARGEST_LOG = 64 << 20
_POLL = 0.05
_CACHES = tuple("TORCHINDUCTOR_CACHE_DIR TRITON_CACHE_DIR CUDA_CACHE_PATH MPLCONFIGDIR WANDB_DIR".split())


@dataclass(frozen=True)
class Limits:
    """How much a run may do.

    Attributes:
        steps: the fewest measured steps.
        seconds: the least time they take together, where the script has as many; speed comes and goes on shared machines.
        warmup: the fewest steps before them.
        longest_warmup: the most.
        threads: of the CPU, for each process.
        timeout: the seconds after which a run is ended.
    """

    steps: int = 30
    seconds: float = 2.0
    warmup: int = 5
    longest_warmup: int = 40
    threads: int = 1
    timeout: float = 600.0


@dataclass(frozen=True)
class Mode:
    """What a run is for: ``time``, ``loss`` or ``syncs``; the offset of seeds; whether a parameter is moved by one ulp."""

    kind: str = "time"
    offset: int = 0
    nudge: bool = False


TIMED = Mode()


class Runner:
    """Runs versions in their copies; ``environment`` is what the last process said of its own.

    ``meter`` reads the GPU meanwhile; ``watch`` is called some times a second with the seconds since the run began and the
    steps it has done.
    """

    def __init__(
        self, plan: Plan, scratch: Scratch, limits: Limits, meter: Meter, watch: Callable[[float, int], None]
    ) -> None:
        self.plan, self.scratch, self.limits = plan, scratch, limits
        self.meter, self.watch = meter, watch
        self.confined = confine.prefix(scratch.folder)
        self.projects = sorted({str(each.resolve()) for each in (plan.base, plan.original.root, plan.fixed.root)})
        self.environment: dict[str, Any] = {}
        self._count = 0
        shutil.copytree(_PROBE, scratch.folder / "probe", ignore=shutil.ignore_patterns("__pycache__"))

    def run(self, version: Version, mode: Mode = TIMED) -> Sample:
        """One run of one version. Raises UserError where the interpreter or the launcher cannot be started."""
        self._count += 1
        folder = self._copy(version)
        results = self.scratch.empty(f"run{self._count}")
        log = results / "output.txt"
        settings = self._settings(version, mode, results)
        began = time.monotonic()
        with log.open("wb") as output, self.meter.reading() as rows:
            process = self._start(version, folder, settings, output.fileno(), results)
            try:
                note = self._wait(process, results, log, began)
            finally:
                _end(process)
        sample = read(results, version.name, time.monotonic() - began, str(log), self.limits.warmup)
        sample = replace(sample, gpu=_while_measured(rows, sample))
        self.environment = sample.environment or self.environment
        return self._explained(sample, process.returncode, note, log)

    def _copy(self, version: Version) -> Path:
        """The version's copy: the same folder for all its runs, made new before each, its caches kept."""
        self.scratch.remove(version.name)
        return self.scratch.version(version.name, self.plan.base, self.plan.real, version.changed)

    def _settings(self, version: Version, mode: Mode, results: Path) -> Path:
        settings = {
            "mode": mode.kind,
            "offset": mode.offset,
            "nudge": mode.nudge,
            "seed": 20_000,
            "steps": self.limits.steps if mode.kind == "time" else self.limits.steps + self.limits.longest_warmup,
            "seconds": self.limits.seconds,
            "warmup": self.limits.warmup,
            "longest_warmup": self.limits.longest_warmup,
            "results": str(results),
            "scratch": str(self.scratch.folder),
            "projects": self.projects,
            "refused": str(results / "refused"),
        }
        path = results / "settings.json"
        path.write_text(json.dumps(settings))
        return path

    def _start(self, version: Version, folder: Path, settings: Path, output: int, results: Path) -> subprocess.Popen[bytes]:
        command = version.command
        words = command.words({self.plan.base: folder})
        where = folder / command.folder.relative_to(self.plan.base)
        if shutil.which(words[0], path=os.environ.get("PATH")) is None and not Path(words[0]).is_file():
            raise UserError(f"{words[0]}: there is no such program")
        environment = self._environment(version, settings, results)
        try:
            return subprocess.Popen(
                [*self.confined, *words],
                cwd=where,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        except OSError as error:
            raise UserError(f"{words[0]}: cannot be started ({error.strerror})") from error

    def _environment(self, version: Version, settings: Path, results: Path) -> dict[str, str]:
        environment = dict(os.environ)
        before = [each for each in environment.get("PYTHONPATH", "").split(os.pathsep) if each]
        environment["PYTHONPATH"] = os.pathsep.join([str(self.scratch.folder / "probe"), *before])
        environment["SPEEDLINT_PROBE"] = str(settings)
        environment["PYTHONUNBUFFERED"] = "1"
        temporary = results / "tmp"
        temporary.mkdir()
        environment["TMPDIR"] = str(temporary)
        caches = self.scratch.empty(f"cache-{version.name}")
        for name in _CACHES:
            environment[name] = str(caches / name.lower())
            (caches / name.lower()).mkdir(exist_ok=True)
        for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
            environment[name] = str(self.limits.threads)
        environment.setdefault("WANDB_MODE", "offline")
        environment.setdefault("HF_HUB_OFFLINE", "1")
        return environment

    def _wait(self, process: subprocess.Popen[bytes], results: Path, log: Path, began: float) -> str:
        while process.poll() is None:
            seconds = time.monotonic() - began
            self.watch(seconds, _progress(results))
            if seconds > self.limits.timeout:
                return f"took longer than {self.limits.timeout:.0f} s and was ended (`--timeout`)"
            if log.stat().st_size > _LARGEST_LOG:
                os.truncate(log, 0)
            time.sleep(_POLL)
        return ""

    def _explained(self, sample: Sample, code: int | None, note: str, log: Path) -> Sample:
        """The sample, with what went wrong in one line."""
        if sample.ended == "steps":
            return sample
        if not note and code is not None and code < 0:
            note = f"was ended by {_signal(-code)}"
        elif not note and code:
            note = f"failed with exit code {code}: {_last_line(log)}"
        elif not note and sample.ended == "nothing":
            note = "ended without a training step"
        return replace(sample, note=note)


def _while_measured(rows: list[tuple[float, float, float]], sample: Sample) -> dict[str, float]:
    """The share of the measured steps' time that the GPU was busy, and the joules it took for a step."""
    if not rows or not sample.window or not sample.steps:
        return {}
    end = rows[-1][0]
    during = [(busy, watts) for at, busy, watts in rows if at >= end - sample.window] or [rows[-1][1:]]
    watts = sum(each[1] for each in during) / len(during)
    return {
        "busy": sum(each[0] for each in during) / len(during),
        "joules_a_step": watts * sample.window / len(sample.steps),
    }


def _progress(results: Path) -> int:
    """The steps that the furthest process has done."""
    done = 0
    for path in results.glob("progress-*"):
        try:
            done = max(done, int.from_bytes(path.read_bytes()[:8], "little"))
        except OSError:
            continue
    return done


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends the whole process group: loaders' workers outlive a killed script."""
    for kind in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, kind)
        except (ProcessLookupError, PermissionError):
            break
        deadline = time.monotonic() + 1.0
        while time.monotonic() < deadline and _is_alive(process.pid):
            process.poll()
            time.sleep(0.01)
    process.wait()


def _is_alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _last_line(log: Path) -> str:
    """The last line of what a run printed that says something."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - 8192))
            lines = file.read().decode("utf-8", "replace").splitlines()
    except OSError:
        return ""
    said = [line.strip() for line in lines if line.strip()]
    return said[-1][:200] if said else "it printed nothing"
