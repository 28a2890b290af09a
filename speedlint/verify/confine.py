"""Runs a command that may write only where it is told: Linux's Landlock, which no code of the process can lift.

    python -m speedlint.verify.confine --write FOLDER ... -- COMMAND ...

Landlock covers this process and all it starts. Where the kernel has none, the command runs without it, and the audit hook
in the script's process is what is left.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/tty", "/dev/shm", "/dev/pts", "/dev/ptmx", "/dev/dri", "/dev/kfd")
_GPU = "nvidia"


def is_available() -> bool:
    """Whether the kernel confines."""
    try:
        from landlock import landlock_abi_version

        return bool(landlock_abi_version() >= 1)
    except Exception:
        return False


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


def main() -> None:
    """Confines itself and becomes the command."""
    split = sys.argv.index("--")
    writable, command = sys.argv[1:split], sys.argv[split + 1 :]
    if is_available():
        confine([each for each in writable if each != "--write"])
    os.execvp(command[0], command)


if __name__ == "__main__":
    main()
