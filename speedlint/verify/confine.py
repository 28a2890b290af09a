"""Runs a command that may write only where it is told: Linux's Landlock, which no code of the process can lift.

    python -E confine.py PARENT FOLDER ... -- COMMAND ...

Landlock covers this process and all it starts; it ends with PARENT, the process that starts it. Where no FOLDER is given,
since the kernel has no Landlock, it only ends with PARENT, and the audit hook in the script's process is what is left. The
three system calls are made through ctypes (``linux/landlock.h``, https://docs.kernel.org/userspace-api/landlock.html): C
libraries have no functions for them.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from pathlib import Path

_DEVICES = "null zero full tty shm pts ptmx dri kfd dxg infiniband gdrdrv xpmem knem nvidia* hfi1_* cxi*".split()
"""What lies in ``/dev`` and may be written to: consoles, shared memory, GPUs, and the networks between them, without which
NCCL falls back to sockets."""
_OF_CUDA = ("nvidiactl", "nvidia0", "dxg")
"""What CUDA's driver opens; the last one is Windows' (WSL 2)."""
_THREADS = "/proc"
"""Where CUDA names its threads, in ``/proc/PID/task/TID/comm``: where it may not, ``cuInit`` fails with error 304, and torch
trains on the CPU (seen with driver 580; https://github.com/NVIDIA/OpenShell/issues/1486). A rule is one for files that are
there, so it cannot be given for processes to come; the kernel lets each write to its own alone."""
_MPS = "/tmp/nvidia-mps"
"""The folder of the pipes by which processes share a GPU, unless CUDA_MPS_PIPE_DIRECTORY names another one."""
_SET_PARENT_DEATH_SIGNAL, _SET_CHILD_SUBREAPER, _SET_NO_NEW_PRIVILEGES = 1, 36, 38
"""Of ``linux/prctl.h``."""

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
"""System calls: the same numbers on each architecture for which torch is built."""
_ASK_VERSION = 1
_PATH_BENEATH = 1
_WRITE_FILE, _TRUNCATE = 1 << 1, 1 << 14
_CHANGE_FOLDER = sum(1 << bit for bit in range(4, 13))
"""To remove files and folders, and to make each kind of them."""
_REFER = 1 << 13
"""To link or move between folders."""
_SINCE = {_REFER: 2, _TRUNCATE: 3}
"""The version of Landlock from which on a right exists; all others exist in the first."""


class _Ruleset(ctypes.Structure):
    """``struct landlock_ruleset_attr`` as its first version has it."""

    _fields_ = (("handled_access_fs", ctypes.c_uint64),)


class _PathBeneath(ctypes.Structure):
    """``struct landlock_path_beneath_attr``."""

    _pack_ = 1
    _fields_ = (("allowed_access", ctypes.c_uint64), ("parent_fd", ctypes.c_int32))


def prefix(*writable: Path) -> list[str]:
    """The words before a command that end it with this process, and confine it to some folders where the kernel can; none
    where the system is not Linux."""
    if sys.platform != "linux":
        return []
    folders = map(str, writable) if version() >= 1 else ()
    return [sys.executable, "-E", str(Path(__file__).resolve()), str(os.getpid()), *folders, "--"]


def version() -> int:
    """The kernel's version of Landlock; 0 where it has none, or has it turned off."""
    if sys.platform != "linux":
        return 0
    try:
        return _call(_CREATE_RULESET, None, 0, _ASK_VERSION)
    except (OSError, AttributeError):
        return 0


def confine(writable: list[str]) -> None:
    """From here on this process and its children write to these folders and to devices only. Raises OSError."""
    known = version()
    writes, in_file = (
        sum(right for right in rights if _SINCE.get(right, 1) <= known)
        for rights in ((_WRITE_FILE, _CHANGE_FOLDER, _REFER, _TRUNCATE), (_WRITE_FILE, _TRUNCATE))
    )
    asked = _Ruleset(writes)
    rules = _call(_CREATE_RULESET, ctypes.byref(asked), ctypes.sizeof(asked), 0)
    for path in (*writable, *devices()):
        _allow(rules, path, writes if Path(path).is_dir() else in_file)
    if has_cuda():
        _allow(rules, _THREADS, in_file)
    _check(_libc().prctl(_SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0))
    _call(_RESTRICT_SELF, rules, 0)
    os.close(rules)


def devices(folder: Path = Path("/dev")) -> list[str]:
    """What exists of the devices that any run may write to."""
    return sorted(str(each) for name in _DEVICES for each in folder.glob(name))


def has_cuda(folder: Path = Path("/dev")) -> bool:
    """Whether there is a GPU of CUDA's."""
    return any((folder / name).exists() for name in _OF_CUDA)


def shared_gpu() -> list[Path]:
    """The folder of the pipes by which processes share a GPU, where there is one."""
    folder = Path(os.environ.get("CUDA_MPS_PIPE_DIRECTORY", _MPS))
    return [folder.resolve()] if folder.is_dir() else []


def _allow(rules: int, path: str, rights: int) -> None:
    """Lets what lies at ``path`` and beneath it be written to."""
    place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        _call(_ADD_RULE, rules, _PATH_BENEATH, ctypes.byref(_PathBeneath(rights, place)), 0)
    finally:
        os.close(place)


def _call(number: int, *arguments: object) -> int:
    """A system call's result. Raises OSError."""
    words = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    return _check(_libc().syscall(ctypes.c_long(number), *words))


def _check(result: int) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def _libc() -> ctypes.CDLL:
    """The C library of this process; a call's ``errno`` is kept for ctypes.get_errno."""
    return ctypes.CDLL(None, use_errno=True)


def end_with(parent: int) -> None:
    """Has the kernel end this process when the one that started it ends, however that happens; it may have by now."""
    _libc().prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def adopt_orphans() -> None:
    """Has the kernel give this process the descendants whose own parents end, daemons among them; Linux only."""
    if sys.platform == "linux":
        _libc().prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def main() -> None:
    """Confines itself, if it is given folders, and becomes the command; where it cannot, it says so and the command is not
    run."""
    split = sys.argv.index("--")
    parent, *writable = sys.argv[1:split]
    command = sys.argv[split + 1 :]
    try:
        end_with(int(parent))
        if writable:
            confine(writable)
    except Exception as error:
        sys.exit(f"cannot be confined to its copy ({error})")
    try:
        os.execvp(command[0], command)
    except OSError as error:
        sys.exit(f"{command[0]}: cannot be started ({error.strerror})")


if __name__ == "__main__":
    main()
