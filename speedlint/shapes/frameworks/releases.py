"""Releases of the frameworks: those that the project's own requirements allow, and that its code runs on."""

from __future__ import annotations

from typing import NamedTuple

from speedlint import requirements
from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.shapes import entry
from speedlint.solve.flow import once
from speedlint.solve.names import Kind

Release = tuple[int, int]

_ADAMW = "transformers.AdamW"
_TRANSFORMERS_5: Release = (5, 0)


class Allowed(NamedTuple):
    """The releases of a package that a project allows.

    Attributes:
        oldest: the first of them; None where nothing is said.
        below: the first one that is not allowed any more; None where nothing is said.
    """

    oldest: Release | None = None
    below: Release | None = None

    def is_since(self, release: Release) -> bool:
        """Whether all of them are of a release or newer."""
        return self.oldest is not None and self.oldest >= release

    def is_before(self, release: Release) -> bool:
        """Whether all of them are older than a release."""
        return self.below is not None and self.below <= release


@once(Allowed())
def allowed(script: Script, package: str) -> Allowed:
    """The releases of a package that the innermost requirement on it allows, and that the code runs on."""
    found = _required(script, package)
    if package != "transformers" or found.is_since(_TRANSFORMERS_5) or found.is_before(_TRANSFORMERS_5):
        return found
    return found._replace(below=_TRANSFORMERS_5) if _is_before_5(script) else found


def _required(script: Script, package: str) -> Allowed:
    for _, line in requirements.of(package, script.key.parent, script.program.root(script.path), script.program.disk):
        found = Allowed(requirements.lower_bound(line), requirements.upper_bound(line))
        if found != Allowed():
            return found
    return Allowed()


def _is_before_5(script: Script) -> bool:
    """Whether the program of a script imports the ``AdamW`` of transformers, which release 5 lacks."""
    return any(
        _imports_adamw(place) for place in script.everywhere(b"AdamW") if script.program.is_always_with(script, place)
    )


@once(False)
def _imports_adamw(script: Script) -> bool:
    imported = (name for name, dotted in script.names.imports if dotted == _ADAMW)
    bound = (each for name in imported for each in script.names.module.bindings.get(name, ()))
    return any(is_always_run(script, each.node) for each in bound if each.kind is Kind.IMPORT)


def is_always_run(script: Script, node: syntax.Node) -> bool:
    """Whether a line runs whenever its function does, or its file is run, and an error of it is not caught there."""
    guard = entry.main_guard(script)
    under = (script.source.parents[each] for each in script.order.under(node))
    return all(each is guard for each in under) and script.source.enclosing(node, syntax.Try) is None
