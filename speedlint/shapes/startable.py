"""Scripts that end before they train, as they stand in their repository: they import a module that was renamed or left out,
or read a name that nothing has bound."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from speedlint import requirements
from speedlint.facts import syntax
from speedlint.torch import library

if TYPE_CHECKING:
    from speedlint.ask.script import Script

_INSTALLS = ("setup.py", "setup.cfg", "pyproject.toml", ".gitmodules")
"""What may put modules where Python finds them that are not where their names say."""
_FINDS_BY_ITSELF = (b"sys.path", b"__path__", b"exec(", b"globals()", b"locals()", b"get_ipython", b"builtins")
_BUILTINS = frozenset(dir(builtins)) | {"__file__", "__path__", "__annotations__", "__builtins__"}
_MOST_FILES = 300
"""Files of a project that are asked whether they define a name."""
_DEEPEST = 4


def why_not(script: Script, node: syntax.Node) -> str | None:
    """Why a program surely ends before it reaches a node; None where it may not."""
    if script.source.cells is not None or any(mark in script.source.data for mark in _FINDS_BY_ITSELF):
        return None
    nothing: list[syntax.Name] = []
    gone = script.once("imports what is gone", lambda: next(_gone(script), None), None)
    if gone is not None:
        return f"the script cannot start: {gone}"
    unbound = script.once("reads unbound names", lambda: list(_unbound(script)), nothing)
    name = next((each for each in unbound if _precedes(script, each, node, 0)), None)
    return f"the script ends before it: nothing has bound `{name.value}`, which it reads" if name is not None else None


def _gone(script: Script) -> Iterator[str]:
    """The modules that a script imports by the name of no file of its project, while one of these has what is taken from
    them."""
    imports = [each for each in script.source.of(syntax.ImportFrom) if _is_plain(script, each)]
    outside = [(each, dotted) for each in imports if (dotted := _outside(script, each)) is not None]
    if not outside or _is_installed(script):
        return
    listing = script.program.disk.listing(str(script.program.root(script.path)))
    if len(listing.files) > _MOST_FILES or listing.has_links or not listing.is_whole:
        return
    own = str(script.key)
    defined = {
        name: file for file in sorted(listing.files) if file != own for name in script.program.disk.defined_names(file)
    }
    parts = {part for file in (*listing.files, *listing.folders) for part in Path(file).with_suffix("").parts}
    for each, dotted in outside:
        top, last = dotted.partition(".")[0], dotted.rpartition(".")[2]
        names = [name for other, said in outside if said.partition(".")[0] == top for name in _taken(other)]
        is_known = top in parts or (last != top and last not in parts) or _imports_whole(script, top)
        if not is_known and names and all(name in defined for name in names):
            yield f"no file of its project is the module `{dotted}`, and `{_taken(each)[0]}` is in another"


def _taken(imported: syntax.ImportFrom) -> list[str]:
    return [alias.name.value if isinstance(alias.name, syntax.Name) else "" for alias in imported.aliases]


def _imports_whole(script: Script, top: str) -> bool:
    """Whether a script imports a module, or a part of it, by ``import``, or where it may be missing."""
    bound = (binding for bindings in script.names.all_bindings() for binding in bindings if binding.dotted)
    return any(
        (each.dotted or "").partition(".")[0] == top
        and not any(isinstance(up, syntax.ImportFrom) and _is_plain(script, up) for up in _upward(script, each.node))
        for each in bound
    )


def _upward(script: Script, node: syntax.Node) -> Iterator[syntax.Node]:
    yield node
    yield from script.source.ancestors(node)


def _is_plain(script: Script, node: syntax.Node) -> bool:
    """Whether a statement at the top of a module always runs."""
    up = script.source.parents[node]
    return isinstance(up, syntax.SimpleStatementLine) and isinstance(script.source.parents[up], syntax.Module)


def _outside(script: Script, node: syntax.ImportFrom) -> str | None:
    """The dotted name of a module that is imported from outside of the project, and that no known library has."""
    if node.relative or node.module is None or node.star is not None:
        return None
    dotted = script.text(node.module)
    top = dotted.partition(".")[0]
    if top in sys.stdlib_module_names or top in library.KNOWN or script.program.module(script, dotted) is not None:
        return None
    disk, root = script.program.disk, script.program.root(script.path)
    return None if any(True for _ in requirements.of(top, script.path.absolute().parent, root, disk)) else dotted


def _is_installed(script: Script) -> bool:
    """Whether an installation, or a part of the repository that is fetched apart, may bring modules."""
    disk, root = script.program.disk, script.program.root(script.path)
    folders = {root, script.path.absolute().parent}
    return any(disk.exists(str(folder / name)) for folder in folders for name in _INSTALLS)


def _unbound(script: Script) -> Iterator[syntax.Name]:
    """The names that the module's own code reads before anything can have bound them; none of an excerpt, which imports
    nothing."""
    imported = list(script.source.of(syntax.ImportFrom))
    is_excerpt = not imported and not any(True for _ in script.source.of(syntax.Import))
    if is_excerpt or any(each.star is not None for each in imported):
        return
    scope = script.names.scope(script.source.module)
    for name in script.source.of(syntax.Name):
        if name.value in _BUILTINS or script.function(name) is not None or not _is_read(script, name):
            continue
        elsewhere = script.source.enclosing(name, syntax.Lambda, syntax.Try, syntax.Import, syntax.ImportFrom)
        if script.names.scope(name) is not scope or elsewhere is not None:
            continue
        bound = scope.bindings.get(name.value, [])
        if not any(script.order.may_run_before(each.node, name) for each in bound):
            yield name


def _is_read(script: Script, name: syntax.Name) -> bool:
    """Whether an expression takes the value of a name: that of ``x.y``, ``x[0]``, ``x(...)`` or ``f(x)``."""
    match script.source.parents[name]:
        case syntax.Attribute(value=value) | syntax.Subscript(value=value) | syntax.Arg(value=value):
            return value is name
        case syntax.Call(func=func):
            return func is name
    return False


def _precedes(script: Script, first: syntax.Node, then: syntax.Node, depth: int) -> bool:
    """Whether a node surely runs before another one does, also one of a function that is called."""
    if script.order.runs_before(first, then):
        return True
    function = script.function(then)
    sites = script.call_sites(function) if function is not None and depth < _DEEPEST else []
    return bool(sites) and all(other is script and _precedes(script, first, call, depth + 1) for other, call in sites)
