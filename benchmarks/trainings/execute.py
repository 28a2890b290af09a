"""Scripts run in forks of a process that has imported torch, each in a folder of its own."""

from __future__ import annotations

import gc
import json
import multiprocessing
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from multiprocessing import forkserver
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import torch

from benchmarks.trainings import emulate, waits

LIMIT = 60.0
"""Seconds after which a run is ended: twenty times what the longest needs on one slow core."""
_OTHER_SEED = 7919
"""What is added to a script's seeds, so that its random numbers are others."""

_WAYS = ("fused", "foreach", "scaler")
"""What a saved state says of how is computed, not of what."""


@dataclass(frozen=True)
class Way:
    """How a script is run.

    Attributes:
        gpu: on a GPU: the emulated one, unless ``real``.
        spawn: workers begin with nothing of this process: what they get is pickled, and the script is imported by them.
        seed: which random numbers; 0 are the script's own.
        real: on this machine's own GPU, whose kernels give the same numbers in each run.
        watched: ``waits.json`` tells afterwards which lines waited for the real GPU, and how often each ran.
    """

    gpu: bool = False
    spawn: bool = False
    seed: int = 0
    real: bool = False
    watched: bool = False


@dataclass(frozen=True)
class Ran:
    """What a run left.

    Attributes:
        status: its exit status; -1 where it did not end in time.
        output: what it printed, and what it wrote into files.
        errors: what it printed to the standard error.
    """

    status: int
    output: str
    errors: str

    @property
    def last(self) -> str:
        """The last line of the errors."""
        lines = [line for line in self.errors.splitlines() if line.strip()]
        return lines[-1].strip()[:200] if lines else ""


def prepare() -> None:
    """What all runs share, imported and set once."""
    import torch._dynamo
    import torch.optim
    import torch.utils.data

    torch.set_num_threads(1)
    emulate.packages()
    gc.freeze()


def execute(files: Mapping[str, bytes], way: Way) -> Ran:
    """Runs ``main.py`` as ``python main.py`` would."""
    folder = Path(tempfile.mkdtemp(prefix="training_"))
    try:
        place = folder / "run"
        place.mkdir()
        for name, data in files.items():
            (place / name).write_bytes(data)
        status = _ended(_forked(lambda: _run(place, way), folder))
        output, errors = ((folder / name).read_text(errors="replace") for name in ("output", "errors"))
        return Ran(status, output.replace(str(folder), ""), errors)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _forked(action: Callable[[], int], folder: Path) -> int:
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        os.setsid()
        for number, name in ((1, "output"), (2, "errors")):
            os.dup2(os.open(folder / name, os.O_WRONLY | os.O_CREAT), number)
        sys.stdout, sys.stderr = open(1, "w", buffering=1, closefd=False), open(2, "w", buffering=1, closefd=False)  # noqa: SIM115
        status = action()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(status)


def _ended(pid: int) -> int:
    """The exit status of a run; its process group is ended with it."""
    until, status = time.monotonic() + LIMIT, -1
    pause = 0.002
    while time.monotonic() < until:
        done, how = os.waitpid(pid, os.WNOHANG)
        if done:
            status = os.waitstatus_to_exitcode(how)
            break
        time.sleep(pause)
        pause = min(pause * 1.5, 0.05)
    try:
        os.killpg(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return status
    if status == -1:
        os.waitpid(pid, 0)
    return status


def _run(place: Path, way: Way) -> int:
    """Runs the script in this process, which is a fork, and returns its exit status."""
    os.chdir(place)
    before = set(place.iterdir())
    sys.path.insert(0, str(place))
    sys.argv = ["main.py"]
    sys.dont_write_bytecode = True
    if way.spawn:
        _start_server()
    emulate.host()
    if way.gpu:
        (_repeatable if way.real else emulate.gpu)()
    _seed(way.seed)
    watch = waits.Watch(place) if way.watched else None
    status = _script(place / "main.py")
    if watch is not None:
        (place / "waits.json").write_text(json.dumps(watch.counts()))
    if status == 0:
        for path in sorted(set(place.rglob("*")) - before):
            _show(path, place)
    return status


def _repeatable() -> None:
    """Has the GPU compute the same numbers in each run (https://docs.pytorch.org/docs/stable/notes/randomness.html), and
    none of them in TF32, whose rounding is a thousand times that of the numbers compared."""
    os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.allow_tf32 = False


def _script(path: Path) -> int:
    module: Any = types.ModuleType("__main__")
    module.__file__ = str(path)
    module.__spec__ = None
    sys.modules["__main__"] = module
    try:
        exec(compile(path.read_bytes(), str(path), "exec"), module.__dict__)
        return 0
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except BaseException:
        traceback.print_exc()
        return 1


def _start_server() -> None:
    """Workers come from a process that is as this one is before the script begins, and are told all else as by `spawn`."""
    started = forkserver.util.spawnv_passfds  # type: ignore[attr-defined]

    def forks(path: bytes, arguments: list[Any], passed: Any) -> int:
        code = str(arguments[-1])
        if "forkserver" not in code:
            return int(started(path, arguments, passed))
        pid = os.fork()
        if pid == 0:
            _serve(code)
        return pid

    forkserver.util.spawnv_passfds = forks  # type: ignore[attr-defined]
    multiprocessing.set_start_method("forkserver", force=True)
    forkserver.ensure_running()


def _serve(code: str) -> NoReturn:
    status = 1
    try:
        multiprocessing.process._children.clear()  # type: ignore[attr-defined]
        exec(code, {})
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def _seed(other: int) -> None:
    """Begins all random streams where every run begins them; for another seed, the script's own seeds are moved as well."""
    if other:
        by = other * _OTHER_SEED
        torch_seed, numpy_seed, python_seed = torch.manual_seed, np.random.seed, random.seed
        torch.manual_seed = lambda seed: torch_seed(int(seed) + by)
        torch.Generator = _moved_generator(by)  # type: ignore[misc]
        np.random.seed = lambda seed=0: numpy_seed(seed + by if isinstance(seed, int) else seed)
        random.seed = lambda a=0, version=2: python_seed(a + by if isinstance(a, int) else a)
    torch.manual_seed(other)
    np.random.seed(other)
    random.seed(other)


def _moved_generator(by: int) -> type[torch.Generator]:
    class Moved(torch.Generator):
        def manual_seed(self, seed: int) -> torch.Generator:
            return super().manual_seed(seed + by)

    return Moved


def _show(path: Path, place: Path) -> None:
    """Prints what the script has written into a file."""
    name = path.relative_to(place)
    if path.is_dir() or path.suffix in (".npy", ".bin", ".pyc"):
        return
    if path.suffix == ".pt":
        print(f"[{name}]", _plain(torch.load(path, weights_only=False)))
    elif path.suffix == ".pkl":
        import pickle

        print(f"[{name}]", _plain(pickle.loads(path.read_bytes())))
    else:
        print(f"[{name}]", path.read_text(errors="replace"))


def _plain(value: Any) -> Any:
    """A saved value as text: tensors by their dtype, shape and mean size."""
    if isinstance(value, torch.Tensor):
        whole = value.detach().abs() if value.is_complex() else value.detach()
        return f"{value.dtype}{tuple(value.shape)} {whole.double().abs().mean().item()!r}"
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items() if key not in _WAYS}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return f"{type(value).__name__} {value!r}"
