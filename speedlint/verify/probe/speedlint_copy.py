"""Has a run import the project's modules from its copy, though a full path on the search path leads to the project itself.

Such a path comes from PYTHONPATH or from an editable install. Standard library only; Python 3.8 and later.
"""

import os
import sys
from typing import Any, Dict, List

_EDITABLE = "__editable__"
"""What the modules are called with which setuptools finds a project that is installed in place."""


def lead(settings: Dict[str, Any]) -> None:
    """Moves what the search path and editable installs name of the project into its copy."""
    project, copy = os.path.realpath(settings["base"]), os.path.realpath(settings["copy"])
    sys.path[:] = [_moved(each, project, copy) for each in sys.path]
    for name in [name for name in sys.modules if name.startswith(_EDITABLE)]:
        finder = sys.modules[name]
        for package, path in getattr(finder, "MAPPING", {}).items():
            finder.MAPPING[package] = _moved(path, project, copy)
        for package, paths in getattr(finder, "NAMESPACES", {}).items():
            finder.NAMESPACES[package] = [_moved(path, project, copy) for path in paths]


def astray(changed: List[str]) -> List[str]:
    """Those of these files of the project that were imported all the same, such as by a path that the script itself adds."""
    names = {os.path.basename(path) for path in changed}
    files = [getattr(module, "__file__", None) or "" for module in list(sys.modules.values())]
    return sorted({path for path in files if os.path.basename(path) in names and os.path.realpath(path) in changed})


def _moved(path: str, project: str, copy: str) -> str:
    """The path in the copy; the same path where it is none of the project's, or the copy has but a link to it."""
    real = os.path.realpath(path)
    if not path or not is_in(real, project):
        return path
    moved = os.path.normpath(os.path.join(copy, os.path.relpath(real, project)))
    return moved if os.path.exists(moved) and is_in(os.path.realpath(moved), copy) else path


def is_in(path: str, folder: str) -> bool:
    """Whether a path is a folder's own or one below it."""
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)
