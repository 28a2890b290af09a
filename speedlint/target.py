"""The torch release a project targets: it decides which rules and spellings apply. Nothing of the project is run."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import NamedTuple

from speedlint.config import Settings
from speedlint.disk import Disk

_RELEASE = re.compile(r"(\d{1,9})\.(\d{1,9})")


class Target(NamedTuple):
    """A torch release, such as ``(2, 4)``, or None where it is unknown, and what said so."""

    release: tuple[int, int] | None
    origin: str


def find(settings: Settings, folder: Path | None = None, disk: Disk | None = None) -> Target:
    """The release that the files in ``folder``, by default the settings' own, are written for.

    It is that of the command line or the config, else the lower bound of the innermost requirement, else one before 0.4 that
    a README asks for, else the installed one.
    """
    if settings.torch:
        return Target(settings.torch, settings.torch_from)
    from speedlint import requirements

    disk = disk or Disk()
    for file, requirement in requirements.of("torch", folder or settings.root, settings.root, disk):
        if bound := requirements.lower_bound(requirement):
            return Target(bound, str(file))
    if (told := requirements.old_torch(folder or settings.root, settings.root, disk)) is not None:
        return Target(told[1], str(told[0]))
    return _installed(disk)


def told(settings: Settings, folder: Path | None = None, disk: Disk | None = None) -> tuple[int, int] | None:
    """The newest release for who installs what a README says; None where the settings or a requirement name the target.

    It is no target, since much code runs on later releases than its README was written for: it says what gains something.
    """
    if settings.torch:
        return None
    from speedlint import requirements

    disk, start = disk or Disk(), folder or settings.root
    found = (requirements.lower_bound(line) for _, line in requirements.of("torch", start, settings.root, disk))
    return requirements.told_torch(start, settings.root, disk) if not any(found) else None


def _installed(disk: Disk) -> Target:
    """The release beside speedlint, from the name of its metadata: ``importlib.metadata`` takes 40 ms to import."""
    for folder in filter(None, sys.path):
        for name in disk.names(folder, "torch-[0-9]*-info"):
            if release := _RELEASE.match(name.removeprefix("torch-")):
                return Target((int(release[1]), int(release[2])), "the installed torch")
    return Target(None, "nothing: set `torch` in the configuration, or `--torch`")
