"""Runs a command that may write only where it is told: Linux's Landlock, which no code of the process can lift.

    python -E confine.py LIBRARIES FOLDER ... -- COMMAND ...

Landlock covers this process and all it starts. LIBRARIES is the folder that the package ``landlock`` is imported from: the
command's PYTHONPATH is not this process's. Where the kernel has none, the command runs without this file, and the audit hook
in the script's process is what is left.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/tty", "/dev/shm", "/dev/pts", "/dev/ptmx", "/dev/dri", "/dev/kfd")
_GPU = "nvidia"
_SET_PARENT_DEATH_SIGNAL = 1


def prefix(*writable: Path) -> list[str]:
    """The words before a command that confine it to some folders; none where the kernel cannot."""
    try:
        import landlock

        if landlock.landlock_abi_version() < 1:
            return []
    except Exception:
        return []
    libraries = Path(landlock.__file__).parent.parent
    return [sys.executable, "-E", str(Path(__file__).resolve()), str(libraries), *map(str, writable), "--"]


def confine(writable: list[str]) -> None:
    """From here on this process and its children write to these folders and to devices only. Raises OSError."""
    from landlock import FSAccess, Ruleset

    reads = FSAccess.EXECUTE | FSAccess.READ_FILE | FSAccess.READ_DIR | FSAccess.IOCTL_DEV
    writes = FSAccess.all() & ~reads
    rules = Ruleset(writes)
    devices = [each for each in _DEVICES if Path(each).exists()]
    devices += [str(each) for each in Path("/dev").glob(f"{_GPU}*")]
    for path in (*writable, *devices):
        rules.allow(path, rules=writes if Path(path).is_dir() else writes & FSAccess.all_file())
    rules.apply()


def end_with_parent() -> None:
    """Has the kernel end this process when the one that started it ends, however that happens."""
    import ctypes

    ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)


def main() -> None:
    """Confines itself and becomes the command; where it cannot, it says so and the command is not run."""
    split = sys.argv.index("--")
    libraries, *writable = sys.argv[1:split]
    command = sys.argv[split + 1 :]
    sys.path.insert(0, libraries)
    try:
        end_with_parent()
        confine(writable)
    except Exception as error:
        sys.exit(f"cannot be confined to its copy ({error})")
    sys.path.remove(libraries)
    try:
        os.execvp(command[0], command)
    except OSError as error:
        sys.exit(f"{command[0]}: cannot be started ({error.strerror})")


if __name__ == "__main__":
    main()
