"""Runs one version once, in a fresh process group, and always ends it whole."""

from __future__ import annotations

import contextlib
import json
import math
import mmap
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from speedlint.errors import UserError
from speedlint.host import available_memory
from speedlint.verify import confine
from speedlint.verify.budget import BudgetError, HungError
from speedlint.verify.gpus import LEAST_WINDOW
from speedlint.verify.nvml import Meter
from speedlint.verify.plan import Plan, Version
from speedlint.verify.samples import RESULTS, Sample, read
from speedlint.verify.scratch import Scratch

_PROBE = Path(__file__).parent / "probe"
_LARGEST_LOG = 64 << 20
_POLL = 0.05
_TURN = 0.05
_TURN_POLL = 0.001
_LITTLE_WAITING = 0.05
_FEWEST_LOSSES = 10
"""How many steps of a run for the losses are waited for, however short the time is: fewer say little of a training."""
LOSS_RUNS = 3
"""The fewest runs for the losses: two of the original, one of the other version."""
_REHEARSAL = "rehearsal"
_COMPARED = ("loss", _REHEARSAL)
"""The runs that share the time for the losses. One that goes up to the script's end is ended with it."""
_ENDING = 0.5
"""Seconds that processes which are told to end take for it."""
_HANGS, _TIMES_AS_LONG = 10.0, 4.0
"""The seconds without a step, and how many times as long as whole runs of its kind before it, from which on a run that is
ended for the budget is said to hang."""
_LINGERS = 10.0
"""Seconds that a script may take for its end once verify has all steps; a thread that nobody ends would hold it for ever."""
_LOG = "output.txt"
_SETTINGS = "settings.json"
_MISSING = re.compile(r"ModuleNotFoundError: No module named '[\w.]+'$")
_DENIED = re.compile(r"Permission denied: '(/[^']+)'")
_MOST_GENERATIONS = 10
"""How often processes are looked for that others have started while they were ended."""
_PROGRESS = "progress-*[0-9]"
_GPUS = "gpus-*[0-9]"
_ESCAPED, _OVER = "escaped-*", "over"
_SEE = 3.0
"""Seconds for which processes are awaited that see five times a second whether their run is over."""
_ALL_STEPS = b'"ended": "steps"'
_WORD = 8
_RANKS_APART = 2
"""How many steps one rank may be ahead of what another has noted, beside those of the time that telling them takes."""
FEWEST_STEPS = 3
"""The fewest measured steps that have a median worth the name."""
_FORKED = "; processes that were forked from it trained, and only those are seen that are spawned or that a launcher starts"
_SPENT = "the budget (`--budget`) was spent"
_WORDS = struct.Struct("<8q")
_DONE, _ENDED, _GIVEN, _TAKEN, _LAST, _READY, _MEASURES, _WORLD = range(8)
"""What a process shares, as `probe/speedlint_probe.py` names it."""
_COUNTED = 3
"""The steps whose operations are counted; counting slows them several times."""
_SOON = 0.9
"""The part of ``--timeout`` after which a run that has done what must be is told to end."""
_CACHES = tuple(
    "TORCHINDUCTOR_CACHE_DIR TRITON_CACHE_DIR CUDA_CACHE_PATH TORCH_EXTENSIONS_DIR NUMBA_CACHE_DIR CUPY_CACHE_DIR"
    " MPLCONFIGDIR WANDB_DIR WANDB_CACHE_DIR WANDB_CONFIG_DIR WANDB_DATA_DIR".split()
)
"""Where libraries write beside the project; without numba's, a module with `@njit(cache=True)` cannot be imported."""
_LOCKED = {"HF_DATASETS_CACHE": "datasets", "HF_MODULES_CACHE": "modules"}
"""A run's is a link to the user's folder, which becomes a folder of links where something is written."""
_OFFLINE = "HF_HUB_OFFLINE"
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


@dataclass(frozen=True)
class Limits:
    """How much a run may do.

    Attributes:
        steps: the fewest measured steps.
        seconds: the least time they take together, where the script has as many; speed comes and goes on shared machines.
        warmup: the fewest steps before them.
        longest_warmup: the most.
        threads: of the CPU, for each process; None for those that the launcher gives its ranks, or the machine.
        timeout: the seconds after which a run is ended.
        epochs: how many whole epochs a timed run measures in place of steps; 0 for steps.
    """

    steps: int = 30
    seconds: float = 1.0
    warmup: int = 5
    longest_warmup: int = 40
    threads: int | None = 1
    timeout: float = 600.0
    epochs: int = 0

    @property
    def fewest(self) -> int:
        """The fewest steps, or epochs, that are worth a median."""
        return 1 if self.epochs else FEWEST_STEPS

    @property
    def least_warmup(self) -> int:
        """The fewest steps, or epochs, before those that are measured."""
        return 1 if self.epochs else self.warmup


@dataclass(frozen=True)
class Rounding:
    """Parameters are moved at random by units in the last place, after each step.

    Attributes:
        seed: of the random moves.
        unit: the unit roundoff, such as 2**-24 for float32.
        passing: whether each move is taken back before the next step.
    """

    seed: int
    unit: float
    passing: bool


@dataclass(frozen=True)
class Mode:
    """What a run is for.

    Attributes:
        kind: ``time``, ``loss``, ``syncs``, ``work`` for counting operations, or ``rehearsal`` for short passes over the
            loaders, up to the script's end.
        offset: is added to the script's seeds.
        replay: the seeds of an earlier run, which are set in place of the script's own; None for those that are left.
        rounding: what is done to the parameters, if anything.
    """

    kind: str = "time"
    offset: int = 0
    replay: tuple[tuple[str, int | None], ...] = ()
    rounding: Rounding | None = None


TIMED = Mode()


class Runner:
    """Runs versions in their copies; ``environment`` is what the last process said of its own.

    ``meter`` reads the GPU meanwhile; ``watch`` is called some times a second with the seconds since the run began and the
    steps it has done.

    Attributes:
        until: the reading of ``time.monotonic()`` at which a run that still goes on is ended.
        losses_until: the same for those whose losses are compared; none is begun that would not be over then.
        linked: the user's caches that a run reads through links, by the variable that names each.
        refused: the paths outside of the copies that the runs wanted to write to.
        begins: is told of each run that begins.
        compared: the first run of each version for its losses, by the version's name.
        loss_runs: how many runs for losses are over.
        furthest: the most steps that a timed run of the original came through.
        uses_gpu: whether a run has used one.
        longest: the seconds that the longest run of each kind took, from its copy on.
    """

    def __init__(
        self, plan: Plan, scratch: Scratch, limits: Limits, meter: Meter, watch: Callable[[float, int], None]
    ) -> None:
        self.plan, self.scratch, self.limits = plan, scratch, limits
        self.meter, self.watch = meter, watch
        self.until = self.losses_until = math.inf
        self.longest: dict[str, float] = {}
        self.furthest = 0
        self.begins: Callable[[Mode], None] = lambda _mode: None
        self.compared: dict[str, Sample] = {}
        self.loss_runs = 0
        self._loss_steps = limits.steps + limits.longest_warmup
        self.writable = (scratch.folder, scratch.temporary, *scratch.allowed, *confine.shared_gpu())
        self.starter, self.is_confined = confine.prefix(*self.writable), confine.version() >= 1
        self.refused: dict[str, None] = {}
        self.projects = sorted({str(each.resolve()) for each in (plan.base, plan.original.root, plan.fixed.root)})
        self.linked = _linked_caches()
        self.projects += map(str, self.linked.values())
        self.environment: dict[str, Any] = {}
        self.uses_gpu = False
        self._count = 0
        self._going: set[int] = set()
        confine.adopt_orphans()
        scratch.temporary.mkdir(exist_ok=True)
        shutil.copytree(_PROBE, scratch.folder / "probe", ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy2(confine.__file__, scratch.folder / "probe" / "speedlint_confine.py")

    def run(self, version: Version, mode: Mode = TIMED, within: float = math.inf) -> Sample:
        """One run of one version, which is told to end after ``within`` seconds if it has done what must be by then.

        Raises UserError where the interpreter or the launcher cannot be started, and BudgetError where the run does not fit
        into the time, by those before it, or was ended before it had measured anything.
        """
        began = time.monotonic()
        is_loss = mode.kind == "loss"
        if not self.has_time(mode.kind):
            raise BudgetError(_SPENT)
        if is_loss and mode.kind not in self.longest:
            within = (self.losses_until - began) / (LOSS_RUNS + 1)  # one to spare
        with self.meter.reading() as rows:
            run = self._begin(version, mode, 0.0)
            run.until = self.losses_until if mode.kind == _REHEARSAL else self.until
            run.ends_from = began + min(within, _SOON * self.limits.timeout)
            run.longest_warmup = self.limits.longest_warmup
            run.fewest = _FEWEST_LOSSES if is_loss else self.limits.least_warmup + self.limits.fewest
            try:
                self._wait(run)
            finally:
                run.end()
        sample = self._sample(run)
        self.longest[mode.kind] = max(self.longest.get(mode.kind, 0.0), time.monotonic() - began)
        if is_loss:
            self.loss_runs += 1
            self.compared.setdefault(version.name, sample)
        if is_loss and run.is_told_to_end:
            self._loss_steps = sample.done
        return sample.with_readings(rows)

    def in_turns(self, versions: Sequence[Version], blocks: int = 1) -> list[Sample] | None:
        """One run of each version, all at the same time: while one runs for a twentieth of a second, the others are stopped.

        They warm up together, and are stopped as each has. Each measures ``blocks`` times as long as a run by itself. None
        where a run failed or ended before its first turn: its steps were then measured beside those of the others. Raises
        UserError and BudgetError as `run` does.
        """
        runs: list[_Run] = []
        try:
            for version in versions:
                runs.append(self._begin(version, TIMED, _TURN, blocks))
            for run in runs:
                self._wait(run)
            while going := [run for run in runs if run.goes_on]:
                began = time.monotonic()
                for run in going:
                    run.give_turn()
                    self._wait(run)
                now = time.monotonic()
                if now + 2 * (now - began) + _ENDING * len(runs) > self.until:
                    for run in going:
                        run.tell_to_end()
        finally:
            for run in runs:
                run.end()
        samples = [self._sample(run) for run in runs]
        took_turns = all(run.turns_given for run in runs) and not any(sample.note for sample in samples)
        return samples if took_turns else None

    def has_time(self, kind: str, count: int = 1) -> bool:
        """Whether so many more runs of a kind fit into its time, by the longest before them."""
        until = self.losses_until if kind in _COMPARED else self.until
        return time.monotonic() + count * self.longest.get(kind, 0.0) <= until

    def can_take_turns(self, sample: Sample, count: int) -> bool:
        """Whether ``count`` runs such as the one that gave ``sample`` can be held in memory and stopped, each by itself.

        Not on a GPU, whose queue goes on while the host's process is stopped; not with a launcher or several ranks, which
        wait for each other with a limit on time; and not where the training waits for workers: what they have asked of a
        disk or a network arrives while they are stopped.
        """
        if self.plan.original.command.launcher or sample.ranks > 1 or os.name != "posix":
            return False
        if "total" in sample.memory or sample.environment.get("accelerator"):
            return False
        if sample.workers and sample.waiting > _LITTLE_WAITING:
            return False
        needed = count * (1 + sample.workers) * sample.memory.get("peak_resident", 0)
        return needed < available_memory()

    def _begin(self, version: Version, mode: Mode, turn: float, blocks: int = 1) -> _Run:
        self._count += 1
        self.begins(mode)
        folder = self._copy(version)
        results = self.scratch.empty(f"run{self._count}")
        settings = self._settings(mode, results, turn, blocks, version, folder)
        with (results / _LOG).open("ab") as output:
            process = self._start(version, folder, settings, output.fileno(), mode)
        self._going.add(process.pid)
        return _Run(version, mode.kind, process, results, self._going)

    def _sample(self, run: _Run) -> Sample:
        self._watch_gpus(run)
        sample = read(run.results, run.version.name, run.spent, str(run.log), self.limits.least_warmup)
        self.uses_gpu = self.uses_gpu or bool(sample.gpus)
        if run.is_cut_off and sample.ended != "steps":
            self._raise_if_hung(run)
            raise BudgetError(_SPENT)
        if sample.astray:
            raise UserError(
                f"{sample.astray[0]}: the {sample.version} version imported this file and not that of its copy, so that what"
                " was changed in it was not run; does the script put the project's full path on `sys.path`?"
            )
        self.environment = sample.environment or self.environment
        sample = _explained(sample, run)
        if run.version.name == self.plan.original.name and run.kind == TIMED.kind:
            self.furthest = max(self.furthest, sample.done)
        self.refused.update(dict.fromkeys(sample.refused))
        return sample

    def _watch_gpus(self, run: _Run) -> None:
        """Has those GPUs read that the run's processes use."""
        for path in run.results.glob(_GPUS):
            if path not in run.gpus_named:
                run.gpus_named.add(path)
                self.meter.watch(json.loads(path.read_text()))

    def _raise_if_hung(self, run: _Run) -> None:
        still, others = run.spent - run.moved_at, self.longest.get(run.kind, math.inf)
        if still >= max(_HANGS, _TIMES_AS_LONG * others):
            after = f"after {run.steps_seen} steps the {run.version.name} version came to no other in {still:.0f} s"
            raise HungError(f"{after}, and runs before it took {others:.0f} s in all: it hangs, or takes many times as long")

    def _copy(self, version: Version) -> Path:
        """The version's copy: the same folder for all its runs, made new before each."""
        name = f"{version.name}-{version.twin}" if version.twin else version.name
        self.scratch.remove(name)
        return self.scratch.version(name, self.plan.base, self.plan.real, version.changed)

    def _settings(self, mode: Mode, results: Path, turn: float, blocks: int, version: Version, folder: Path) -> Path:
        settings = {
            "base": str(self.plan.base),
            "copy": str(folder),
            "changed": [os.path.realpath(each) for each in version.changed],
            "mode": mode.kind,
            "offset": mode.offset,
            "replay": mode.replay,
            "rounding": asdict(mode.rounding) if mode.rounding is not None else None,
            "seed": 20_000,
            "unit": "step",
            "steps": self._steps(mode.kind),
            "seconds": self._seconds * blocks,
            "blocks": blocks,
            "turn": turn,
            "warmup": self.limits.warmup,
            "longest_warmup": self.limits.longest_warmup,
            **(self._of_epochs(blocks) if mode.kind == "time" and self.limits.epochs else {}),
            "results": str(results),
            "scratch": str(self.scratch.folder),
            "projects": self.projects,
            "writable": list(map(str, self.writable)),
            "confined": self.is_confined,
            "runner": {"host": socket.gethostname(), "pid": os.getpid()} if sys.platform == "linux" else None,
        }
        path = results / _SETTINGS
        path.write_text(json.dumps(settings))
        return path

    @property
    def _seconds(self) -> float:
        """The least time that a run measures: on a GPU that is read, as long as the driver's averages need."""
        least = LEAST_WINDOW if self.uses_gpu and not self.meter.why and self.limits.seconds else 0.0
        return max(self.limits.seconds, least)

    def _steps(self, kind: str) -> int:
        """The steps that a run of this kind does after its warm-up, or in all."""
        if kind == "work":
            return self.limits.warmup + _COUNTED
        return self.limits.steps if kind == "time" else self._loss_steps

    def _of_epochs(self, blocks: int) -> dict[str, Any]:
        """The settings of a run that measures epochs: a first one for warming up, and no time beside their number."""
        count = self.limits.epochs * blocks
        return {"unit": "epoch", "steps": count, "seconds": 0, "warmup": 1, "longest_warmup": 1}

    def _start(self, version: Version, folder: Path, settings: Path, output: int, mode: Mode) -> subprocess.Popen[bytes]:
        command = version.command
        words = command.words({self.plan.base: folder})
        where = folder / command.folder.relative_to(self.plan.base)
        if shutil.which(words[0], path=os.environ.get("PATH")) is None and not Path(words[0]).is_file():
            raise UserError(f"{words[0]}: there is no such program")
        environment = self._environment(version, settings)
        if mode.kind == "loss":
            environment.setdefault("PYTHONHASHSEED", "0")  # else a set of strings has another order in each run
        try:
            return subprocess.Popen(
                [*self.starter, *words],
                cwd=where,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        except OSError as error:
            raise UserError(f"{words[0]}: cannot be started ({error.strerror})") from error

    def _environment(self, version: Version, settings: Path) -> dict[str, str]:
        environment = dict(os.environ)
        before = [each for each in environment.get("PYTHONPATH", "").split(os.pathsep) if each]
        environment["PYTHONPATH"] = os.pathsep.join([str(self.scratch.folder / "probe"), *before])
        environment["SPEEDLINT_PROBE"] = str(settings)
        environment["PYTHONUNBUFFERED"] = "1"
        temporary = self.scratch.temporary / settings.parent.name
        temporary.mkdir()
        environment["TMPDIR"] = str(temporary)
        caches = self.scratch.empty(f"cache-{version.name}")  # kept from run to run
        for name in _CACHES:
            environment[name] = str(caches / name.lower())
            (caches / name.lower()).mkdir(exist_ok=True)
        for name, folder in self.linked.items():
            link = caches / name.lower()
            if not link.is_symlink() and not link.exists():
                link.symlink_to(folder)
            environment[name] = str(link)
        for name in _THREADS if self.limits.threads is not None else ():
            environment[name] = str(self.limits.threads)
        environment.setdefault("WANDB_MODE", "offline")
        environment.setdefault(_OFFLINE, "1")
        return environment

    def _wait(self, run: _Run) -> None:
        """Waits until the run's turn is over, or the run."""
        before, spent, shown = time.monotonic(), run.spent, 0.0
        often = _TURN_POLL if run.turns_given else _POLL
        while run.goes_on and not run.has_ended_turn():
            now = time.monotonic()
            run.spent = spent + now - before
            if now - shown >= _POLL:
                shown = now
                run.look()
                run.agree()
                self._watch_gpus(run)
                self.watch(run.spent, run.steps_seen)
                self._keep_within_limits(run)
            time.sleep(often)
        run.spent = spent + time.monotonic() - before

    def _keep_within_limits(self, run: _Run) -> None:
        if run.spent > self.limits.timeout:
            run.note = f"took longer than {self.limits.timeout:.0f} s and was ended (`--timeout`)"
            run.end()
        elif run.lingers() > _LINGERS:
            run.end()
        elif (now := time.monotonic()) > min(run.until, self.until):
            run.is_cut_off = True
            run.end()
        elif now > run.ends_from and run.steps >= run.fewest and not run.is_told_to_end:
            run.tell_to_end()
        if run.log.stat().st_size > _LARGEST_LOG:
            os.truncate(run.log, 0)


class _Run:
    """A run that goes on.

    Attributes:
        spent: the seconds it ran; its turns alone where it takes turns.
        turns_given: how many turns it had after its first.
        steps_seen, moved_at: the steps it had done when it was last looked at, and what it had spent when it came to them.
        until: the reading of ``time.monotonic()`` at which it is ended, whatever it has done.
        ends_from: the reading of ``time.monotonic()`` from which it is told to end, once it has done ``fewest`` steps.
        is_told_to_end: whether it was.
        is_agreed: whether its ranks, if there are several, know from which step on to measure.
        pace: the steps it had done between the last two looks.
        gpus_named: the files in which its processes have named their GPUs.
        is_cut_off: whether it was ended since all time was spent.
        note: why it was ended from here, or nothing.
    """

    def __init__(
        self, version: Version, kind: str, process: subprocess.Popen[bytes], results: Path, going: set[int]
    ) -> None:
        self.version, self.kind, self.process, self.results, self._going = version, kind, process, results, going
        self.log = results / _LOG
        self.spent, self.turns_given, self.note = 0.0, 0, ""
        self.steps_seen, self.moved_at = 0, 0.0
        self.until, self.ends_from, self.fewest = math.inf, math.inf, 0
        self.is_told_to_end = self.is_cut_off = self.is_agreed = False
        self.longest_warmup, self.pace = 0, 0
        self.gpus_named: set[Path] = set()
        self._shared: mmap.mmap | None = None
        self._complete_at: float | None = None

    @property
    def goes_on(self) -> bool:
        """Whether the process is there."""
        return self.process.poll() is None

    @property
    def steps(self) -> int:
        """The steps that the furthest of its processes has done."""
        return max((_words(path)[_DONE] for path in self.results.glob(_PROGRESS)), default=0)

    def look(self) -> None:
        """Notes whether it has come further."""
        steps = self.steps
        self.pace = steps - self.steps_seen
        if self.pace:
            self.steps_seen, self.moved_at = steps, self.spent

    def agree(self) -> None:
        """Tells several ranks from which step on to measure, once each has warmed up: they must end after the same one, or
        the others wait for ever. Where that would be late, they take the longest warm-up."""
        if self.is_agreed:
            return
        found = [(path, _words(path)) for path in self.results.glob(_PROGRESS)]
        ranks = [(path, words) for path, words in found if words[_WORLD] > 1 and words[_DONE]]
        if not ranks or len(ranks) < ranks[0][1][_WORLD] or not all(words[_READY] for _, words in ranks):
            return
        self.is_agreed = True
        first = max(words[_DONE] for _, words in ranks) + self._soon
        for path, _ in ranks if first < self.longest_warmup else ():
            _set_word(path, _MEASURES, first)

    @property
    def _soon(self) -> int:
        """The steps that may be done until all ranks have been told something."""
        return _RANKS_APART + 2 * self.pace

    def lingers(self) -> float:
        """The seconds since one of its processes had all steps; 0 before."""
        if self._complete_at is None and any(_ALL_STEPS in path.read_bytes() for path in self.results.glob(RESULTS)):
            self._complete_at = time.monotonic()
        return 0.0 if self._complete_at is None else time.monotonic() - self._complete_at

    def has_ended_turn(self) -> bool:
        """Whether it has stopped itself and waits for its next turn."""
        if self._shared is not None:
            words = _WORDS.unpack(self._shared)
            if words[_TAKEN] < self.turns_given:
                self._go_on()  # again: the first signal may have come before the process stopped itself
            return bool(words[_ENDED] > self.turns_given)
        for path in self.results.glob(_PROGRESS):
            if _words(path)[_ENDED]:
                with path.open("r+b") as file:
                    self._shared = mmap.mmap(file.fileno(), _WORDS.size)
                return True
        return False

    def give_turn(self) -> None:
        """Lets it go on."""
        if self._shared is None:
            return
        self.turns_given += 1
        self._shared[_GIVEN * _WORD : (_GIVEN + 1) * _WORD] = self.turns_given.to_bytes(_WORD, "little")
        self._go_on()

    def tell_to_end(self) -> None:
        """Has it end after the step that goes on; ranks must end after the same one, or the others wait for ever."""
        self.is_told_to_end = True
        shared = list(self.results.glob(_PROGRESS))
        last = self.steps + (self._soon if len(shared) > 1 else 0)
        for path in shared:
            _set_word(path, _LAST, max(1, last))

    def _go_on(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGCONT)

    def _await_escaped(self) -> None:
        """Waits for processes that nothing of the run has started: they see by themselves that it is over."""
        found = [path for path in self.results.glob(_ESCAPED) if path.read_text() == socket.gethostname()]
        deadline = time.monotonic() + _SEE
        while time.monotonic() < deadline and any(_is_running(int(path.name.rpartition("-")[2])) for path in found):
            time.sleep(_POLL)

    def end(self) -> None:
        """Ends it, and all that it has started: loaders' workers outlive a killed script, and daemons leave its group."""
        (self.results / _OVER).touch()
        _end(self.process)
        self._await_escaped()
        self._going.discard(self.process.pid)
        for _ in range(_MOST_GENERATIONS):
            if not _end_orphans(self._going):
                return


def _linked_caches() -> dict[str, Path]:
    """The caches that are there of those in which the Hugging Face libraries make locks, even where nothing is missing."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    home = os.environ.get("HF_HOME") or Path(cache) / "huggingface"
    found = {name: Path(os.environ.get(name) or Path(home) / folder) for name, folder in _LOCKED.items()}
    return {name: folder.resolve() for name, folder in found.items() if folder.is_dir()}


def _is_running(pid: int) -> bool:
    """Whether there is a process of this number that has not ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def _words(path: Path) -> tuple[int, ...]:
    """What a process shares."""
    try:
        return _WORDS.unpack(path.read_bytes())
    except (OSError, struct.error):
        return (0,) * 8


def _set_word(path: Path, word: int, value: int) -> None:
    with path.open("r+b") as file:
        file.seek(word * _WORD)
        file.write(value.to_bytes(_WORD, "little"))


def _refused(run: _Run) -> tuple[str, ...]:
    """What the run wanted to write and might not, as its processes noted it, and as the error says that ended it."""
    found = [line for path in run.results.glob("refused-*") for line in path.read_text(errors="replace").splitlines()]
    if run.process.returncode:
        found += _DENIED.findall(_last_line(run.log))
    return tuple(dict.fromkeys(found))


def _explained(sample: Sample, run: _Run) -> Sample:
    """The sample, with what went wrong in one line."""
    sample = replace(sample, refused=_refused(run))
    if sample.ended == "steps":
        return sample
    note, code = run.note, run.process.returncode or 0
    failed = not note and code != 0
    if failed and code < 0:
        note = f"was ended by {_signal(-code)}"
    elif failed:
        note = f"failed with exit code {code}: {_last_line(run.log)}"
        if _MISSING.search(note):
            note += f"; {run.version.command.interpreter} ran it: `--python` names another"
    elif not note and sample.ended == "nothing":
        note = "ended without a training step" + (_FORKED if any(run.results.glob("forked-*")) else "")
    if failed and any(word in note for word in (_OFFLINE, "offline mode")) and _OFFLINE not in os.environ:
        note += f"; verify sets {_OFFLINE}=1, so that no run waits for a download: run the script once, or set it to 0"
    if note and sample.refused:
        note += f"; {refusal(sample.refused[0])}"
    return replace(sample, note=note, failed=failed)


def refusal(path: str) -> str:
    """That a write was refused, and what allows it."""
    return f"verify refused a write to {path}: `--allow-write {Path(path).parent}` allows it"


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends the whole process group: loaders' workers outlive a killed script."""
    for kind in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, kind)
            os.killpg(process.pid, signal.SIGCONT)
        except (ProcessLookupError, PermissionError):
            break
        deadline = time.monotonic() + 1.0
        while time.monotonic() < deadline and _is_alive(process.pid):
            process.poll()
            time.sleep(0.01)
    process.wait()


def _end_orphans(going: set[int]) -> int:
    """Ends the processes that were given to this one since their parents ended, those of runs that go on aside. Returns how
    many; Linux only.

    A run begins a session of its own, and nothing it starts can come back into this process', where its own helpers are.
    """
    found = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            pid, (_, parent, _, session) = int(path.parent.name), path.read_text().rpartition(")")[2].split()[:4]
            if int(parent) == os.getpid() and int(session) != os.getsid(0) and pid not in going:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                found += 1
    return found


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
