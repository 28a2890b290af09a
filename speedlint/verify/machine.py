"""On what was measured: enough to know whether two reports can be compared."""

from __future__ import annotations

import math
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

from speedlint import __version__
from speedlint.verify.nvml import Meter

_CONTAINER = Path("/sys/fs/cgroup")


def fingerprint(root: Path, environment: dict[str, Any], meter: Meter) -> dict[str, Any]:
    """The machine, the versions, and the state of the project's repository."""
    return {
        "speedlint": __version__,
        "system": platform.platform(),
        "processor": _processor(),
        "cores": cores(),
        "load": list(os.getloadavg()) if hasattr(os, "getloadavg") else [],
        "process": environment,
        "gpu": meter.describe(),
        "git": _git(root),
    }


def cores() -> int:
    """The cores that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1


def available_memory() -> float:
    """The bytes that can be used without swapping, of the machine or of the container; infinite where neither says."""
    found = [math.inf]
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                found.append(float(line.split()[1]) * 1024)
    except (OSError, ValueError, IndexError):
        pass
    try:
        limit, used = (float((_CONTAINER / name).read_text()) for name in ("memory.max", "memory.current"))
        found.append(limit - used)
    except (OSError, ValueError):
        pass
    return min(found)


def busy_with_others() -> float:
    """How many cores other processes keep busy, by the load of the last minute; 0 where that is not known."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor()


def _git(root: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, words in (("commit", ("rev-parse", "HEAD")), ("status", ("status", "--porcelain", "--untracked-files=no"))):
        try:
            done = subprocess.run(("git", "-C", str(root), *words), capture_output=True, text=True, timeout=10, check=True)
        except (OSError, subprocess.SubprocessError):
            return found
        found[name] = done.stdout.strip()
    return {"commit": found["commit"], "changed_files": len(found["status"].splitlines())}
