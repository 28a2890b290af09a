"""The last lines of what people read: what can be fixed at which risk, what was taken for granted, and what to do next."""

from __future__ import annotations

import collections
import enum
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import click

from speedlint import target
from speedlint.causes import Cause
from speedlint.diagnostic import Diagnostic
from speedlint.disk import Disk
from speedlint.output.results import Results
from speedlint.output.terminal import folded, shown, visible
from speedlint.output.text import count

_MOST_NAMED = 3
"""With more files and folders than these the next command names the file of the first finding instead; so many target
releases are named."""


class Cure(enum.Enum):
    """What can be done about a finding, the least to be done by hand first."""

    EXACT = "exact"
    NUMERIC = "numeric"
    BEHAVIOR = "behavior"
    WITHHELD = "withheld"
    BY_HAND = "by hand"

    def __str__(self) -> str:
        """``exact fix``, ``by hand``."""
        return self.value if self is Cure.BY_HAND else f"{self.value} fix"


_ORDER = tuple(Cure)


def cure(cause: Cause) -> Cure:
    """What can be done about a cause: at the place that it is told by."""
    return _cure(cause.first)


def cures(cause: Cause) -> str:
    """The cure of a cause, and that of its place where the least is to be done where that is another one."""
    own = cure(cause)
    easiest = min((own, *map(_cure, cause.others)), key=_ORDER.index)
    return str(own) if own is easiest else f"{own}, {easiest.value} at others"


def lines(results: Results) -> Iterator[str]:
    """What was found in all, then the one next command; nothing where the results have no closing lines."""
    if not results.closes:
        return
    if said := " ".join(_sentences(results)):
        yield "\n".join(folded(said.split(" "), results.columns, results.columns))
    if command := _next(results):
        yield f"Next: {click.style(command, bold=True)}"


def _sentences(results: Results) -> Iterator[str]:
    causes, failed = results.causes, {problem.path for problem in results.problems}
    unread = {problem.path for problem in results.problems if not problem.is_partial}.intersection(results.files)
    read = len(results.files) - len(unread)
    if causes:
        cures = collections.Counter(map(cure, causes))
        yield f"{_found(results)}: {_cures(cures)}."
        yield f"Target: {_targets(results)}."
    elif read or not failed:
        yield f"Nothing slow found in {count(read, 'file')}."
    notes = count(results.hidden, "note")
    if results.hidden and not results.is_brief:
        yield f"{notes} hidden (`--notes`)."
    if unread:
        yield f"{count(len(unread), 'file')} not understood, see the error{'' if len(unread) == 1 else 's'}."
    if results.is_brief:
        yield f"More: {f'{notes} (`--notes`), ' if results.hidden else ''}`--format full`."


def _found(results: Results) -> str:
    findings, places = len(results.causes), len(results.diagnostics)
    at = f" at {places} places" if places > findings else ""
    files = count(len({each.path for each in results.diagnostics}), "file")
    return f"{count(findings, 'finding')}{at}{f' in {files}' if len(results.files) > 1 else ''}"


def _cures(cures: Mapping[Cure, int]) -> str:
    """How many findings have which cure: ``2 exact fixes, 1 numeric, 3 by hand``."""
    first, *others = (each for each in Cure if cures[each])
    noun = "" if first is Cure.BY_HAND else " fix" if cures[first] == 1 else " fixes"
    return ", ".join((f"{cures[first]} {first.value}{noun}", *(f"{cures[each]} {each.value}" for each in others)))


def _targets(results: Results) -> str:
    """The torch releases that the files with findings are written for, and where each was found."""
    folders = dict.fromkeys(each.path.absolute().parent for each in results.diagnostics)
    disk = Disk(Path.read_bytes)
    found = list(dict.fromkeys(target.find(results.settings, folder, disk) for folder in folders))
    more = len(found) - _MOST_NAMED
    return "; ".join([*map(_target, found[:_MOST_NAMED]), *([f"{more} more"] if more > 0 else [])])


def _target(found: target.Target) -> str:
    if found.release is None:
        return "an unknown torch (`--torch` sets it)"
    return visible(f"torch {found.release[0]}.{found.release[1]} ({_origin(found.origin)})")


def _origin(origin: str) -> str:
    """What said so: the path of a file as it is shortest, else words."""
    path = Path(origin)
    return min(shown(path), os.path.relpath(path), key=len) if path.is_absolute() else origin


def _next(results: Results) -> str:
    """The command to run now, or nothing."""
    if not results.causes:
        return ""
    import shlex

    first = results.causes[0].first
    risks = [each.fix.risk for each in results.diagnostics if each.fix is not None and each.fix.applicable]
    if not risks:
        return f"speedlint explain {first.code}"
    risk = max(min(risks), results.settings.risk)
    higher = ("--risk", risk.name.lower()) if risk > results.settings.risk else ()
    failed = {problem.path for problem in results.problems}
    read = [each for each in results.asked if each not in failed]
    asked = read if len(read) <= _MOST_NAMED else [first.path]
    return shlex.join(("speedlint", "fix", *higher, *results.options, *(visible(shown(each)) for each in asked)))


def _cure(found: Diagnostic) -> Cure:
    if found.fix is None:
        return Cure.BY_HAND
    return Cure[found.fix.risk.name] if found.fix.applicable else Cure.WITHHELD
