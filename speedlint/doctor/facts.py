"""What is known of a machine: gathered once, plain, and all that the checks look at."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from speedlint import host
from speedlint.doctor.probe.ask_torch import MARK
from speedlint.errors import UserError

_QUESTIONS = Path(__file__).parent / "probe" / "ask_torch.py"
_LONGEST = 300
_DRIVERS = ("/proc/driver/nvidia/version", "/dev/nvidia0", "/dev/nvidiactl", "/dev/dxg")


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU that torch sees; memory in bytes."""

    name: str
    memory: int
    capability: tuple[int, int]
    free: int | None = None
    processors: int | None = None


@dataclass(frozen=True, slots=True)
class Torch:
    """What torch says of itself in the user's interpreter.

    Attributes:
        missing: why it cannot be imported; empty where it can.
        cuda: the CUDA release it is built for, None for a build without.
        driver_cuda: the newest CUDA release that the driver runs, such as ``(12, 8)``.
        architectures: those it has kernels for, such as ``sm_90``; ``compute_90`` is compiled at the first run.
        triton: whether ``torch.compile`` finds Triton, and ``compiler`` a C compiler.
    """

    python: str = ""
    executable: str = ""
    missing: str = ""
    version: str = ""
    cuda: str | None = None
    hip: str | None = None
    available: bool = False
    driver_cuda: tuple[int, int] | None = None
    architectures: tuple[str, ...] = ()
    cudnn: int | None = None
    matmul_precision: str = ""
    threads: int | None = None
    mps: bool = False
    xpu: bool = False
    nccl: bool = False
    triton: bool = False
    compiler: str | None = None
    gpus: tuple[Gpu, ...] = ()
    unanswered: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Loading:
    """A loader's number of workers, where a script sets one that is known."""

    path: Path
    line: int
    workers: int


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything asked; memory in bytes, None or infinite where the system does not say.

    Attributes:
        cores: those this process may use; ``visible_cores`` leaves a container's quota out, as
            ``os.cpu_count()`` does.
        shared_memory: size and free space of ``/dev/shm``.
        driver: whether the machine has an NVIDIA driver.
        data: the data's path and what it lies on.
    """

    torch: Torch
    cores: int
    visible_cores: int
    quota: float
    busy: float
    memory: float
    shared_memory: tuple[int, int] | None
    driver: bool
    environment: Mapping[str, str]
    data: tuple[tuple[Path, host.Storage], ...] = ()
    loaders: tuple[Loading, ...] = ()


def gather(python: str, data: Iterable[Path], loaders: Iterable[Loading], timeout: float = 300) -> Facts:
    """Asks the machine, and torch in the interpreter ``python``. Raises UserError."""
    return Facts(
        torch=ask_torch(python, timeout),
        cores=host.cores(),
        visible_cores=host.visible_cores(),
        quota=host.core_quota(),
        busy=host.busy_with_others(),
        memory=host.available_memory(),
        shared_memory=host.shared_memory(),
        driver=any(Path(each).exists() for each in _DRIVERS),
        environment=dict(os.environ),
        data=tuple((path, _storage(path)) for path in data),
        loaders=tuple(loaders),
    )


def ask_torch(python: str, timeout: float) -> Torch:
    """Starts the interpreter, which imports torch. Raises UserError where it cannot be started or gives no answer."""
    try:
        done = subprocess.run(
            (python, str(_QUESTIONS)), stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout, check=False
        )
    except subprocess.TimeoutExpired:
        raise UserError(f"{python}: gave no answer in {timeout:.0f} seconds; does `import torch` end there?") from None
    except (OSError, ValueError) as error:
        raise UserError(f"{python}: cannot be started ({error}); --python names the interpreter that has torch") from None
    _, mark, answer = done.stdout.decode(errors="replace").rpartition(MARK)
    if mark:
        try:
            return _torch(json.loads(answer.partition("\n")[0]))
        except (ValueError, KeyError, TypeError) as error:
            raise UserError(f"{python}: gave an answer that cannot be read ({error})") from None
    said = " ".join(done.stderr.decode(errors="replace").split())[-_LONGEST:]
    raise UserError(f"{python}: ended with {done.returncode} when torch was imported: {said or 'it said nothing'}")


def _torch(answers: Mapping[str, Any]) -> Torch:
    driver = answers.get("driver_cuda") or 0
    return Torch(
        python=answers["python"],
        executable=answers["executable"],
        missing=answers.get("missing", ""),
        version=answers.get("torch", ""),
        cuda=answers.get("cuda"),
        hip=answers.get("hip"),
        available=bool(answers.get("available")),
        driver_cuda=(driver // 1000, driver % 1000 // 10) if driver else None,
        architectures=tuple(answers.get("architectures") or ()),
        cudnn=answers.get("cudnn"),
        matmul_precision=answers.get("matmul_precision", ""),
        threads=answers.get("threads"),
        mps=bool(answers.get("mps")),
        xpu=bool(answers.get("xpu")),
        nccl=bool(answers.get("nccl")),
        triton=bool(answers.get("triton")),
        compiler=answers.get("compiler"),
        gpus=tuple(_gpu(each) for each in answers.get("gpus") or ()),
        unanswered=answers.get("unanswered", {}),
    )


def _gpu(answers: Mapping[str, Any]) -> Gpu:
    major, minor = answers.get("capability", (0, 0))
    memory, free = answers.get("memory", 0), answers.get("free")
    return Gpu(answers.get("name", "a GPU"), memory, (major, minor), free, answers.get("processors"))


def _storage(path: Path) -> host.Storage:
    try:
        return host.storage(path)
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}); --data names the folder of the training data") from None
