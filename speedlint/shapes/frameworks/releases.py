"""Releases of the frameworks: those that the project's own requirements allow."""

from __future__ import annotations

from typing import NamedTuple

from speedlint import requirements
from speedlint.ask.script import Script
from speedlint.solve.flow import once

Release = tuple[int, int]


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
    """The releases of a package that the innermost requirement on it allows."""
    for _, line in requirements.of(package, script.key.parent, script.program.root(script.path), script.program.disk):
        found = Allowed(requirements.lower_bound(line), requirements.upper_bound(line))
        if found != Allowed():
            return found
    return Allowed()
