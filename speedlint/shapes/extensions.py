"""The newest torch release that a program's own C++ and CUDA extensions build on, by what their sources call."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from speedlint.solve.flow import once

if TYPE_CHECKING:
    from speedlint.ask.script import Script
    from speedlint.disk import Disk, Mark

Release = tuple[int, int]

_BUILDS = re.compile(rb"(?:CUDA|Cpp)Extension\(")
_SETUP = "setup.py"
_SOURCES = ("", "src", "cuda", "csrc", "ext", "_ext_src/src", "_ext_src/include")
"""Where the sources of an extension lie, beside its ``setup.py``."""
_ENDINGS = ("*.cpp", "*.cc", "*.cu", "*.h", "*.cuh")
_MOST = 40
"""Sources of an extension that are read."""
_GONE: tuple[tuple[Mark, Mark, Release], ...] = (
    (b"AT_CHECK(", re.compile(rb"define\s+AT_CHECK"), (1, 4)),
    (b"THC/THC.h", re.compile(rb"__has_include\s*\(\s*<THC"), (1, 10)),
)
"""What the next release of ATen no longer has, what defines it for later ones, and the last release that has it:
``AT_CHECK`` became ``TORCH_CHECK`` in torch 1.5, ``THC/THC.h`` went with 1.11."""


@once(None)
def newest_release(script: Script) -> Release | None:
    """The newest release on which each extension builds that is made beside a file of the program, where no run goes without
    that file; None where none bounds it."""
    disk, bounds = script.program.disk, list[Release]()
    seen = set[Path]()
    for path in script.program.around(script.path):
        folder = path.parent
        if folder in seen or not disk.exists(str(folder / _SETUP)) or not disk.mentions(str(folder / _SETUP), _BUILDS):
            continue
        other = script.program.reached(path)
        if other is not None and path.name != _SETUP and script.program.is_always_with(script, other):
            seen.add(folder)
            bounds += _bounds(folder, disk)
    return min(bounds, default=None)


def _bounds(folder: Path, disk: Disk) -> list[Release]:
    """The last releases that have what the sources of an extension call."""
    places = (folder / each for each in _SOURCES)
    sources = [str(place / name) for place in places for name in disk.names(str(place), *_ENDINGS)][:_MOST]
    return [
        release
        for mark, defined, release in _GONE
        if any(disk.mentions(each, mark) for each in sources) and not any(disk.mentions(each, defined) for each in sources)
    ]
