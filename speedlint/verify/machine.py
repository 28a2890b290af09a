"""On what was measured: enough to know whether two reports can be compared."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path
from typing import Any

from speedlint import __version__, host
from speedlint.verify.nvml import Meter


def fingerprint(root: Path, environment: dict[str, Any], meter: Meter) -> dict[str, Any]:
    """The machine, the versions, and the state of the project's repository."""
    return {
        "speedlint": __version__,
        "system": platform.platform(),
        "processor": host.processor(),
        "cores": host.cores(),
        "load": list(os.getloadavg()) if hasattr(os, "getloadavg") else [],
        "process": environment,
        "gpus": meter.describe(),
        "git": _git(root),
    }


def _git(root: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, words in (("commit", ("rev-parse", "HEAD")), ("status", ("status", "--porcelain", "--untracked-files=no"))):
        try:
            done = subprocess.run(("git", "-C", str(root), *words), capture_output=True, text=True, timeout=10, check=True)
        except (OSError, subprocess.SubprocessError):
            return found
        found[name] = done.stdout.strip()
    return {"commit": found["commit"], "changed_files": len(found["status"].splitlines())}
