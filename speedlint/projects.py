"""Where a project begins: the folder that version control or a package's own description marks as its top."""

from __future__ import annotations

import os.path
import re

from speedlint.disk import Disk

_MARKS = (".git", "pyproject.toml", "setup.cfg")
_SETUP = "setup.py"
_SETS_UP = re.compile(rb"\b(?:setuptools|distutils|skbuild)\b")
_INSTALLS = re.compile(rb"\b(?:packages|py_modules|install_requires)\b")
"""What a ``setup.py`` says that installs Python. One that builds an extension alone lies within the project that has the use
of it; and any module may bear the name."""


def is_top(disk: Disk, folder: str) -> bool:
    """Whether a folder is the top of a project."""
    if any(disk.exists(os.path.join(folder, mark)) for mark in _MARKS):  # noqa: PTH118
        return True
    setup = os.path.join(folder, _SETUP)  # noqa: PTH118
    return disk.exists(setup) and disk.mentions(setup, _SETS_UP) and disk.mentions(setup, _INSTALLS)
