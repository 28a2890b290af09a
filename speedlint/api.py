"""speedlint from Python: plain frozen results of checks and fixes. Code that is checked is read, never run.

What stands here keeps its names and meaning from release to release; what other modules hold may change.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from speedlint.errors import UserError

if TYPE_CHECKING:
    from speedlint import diagnostic, fixer
    from speedlint.config import Settings
    from speedlint.facts.store import Store
    from speedlint.files import Problem as _Problem
    from speedlint.registry import Registry

__all__ = [
    "Applied", "CheckResult", "Edit", "Finding", "Fix", "FixResult", "Place", "Problem", "UserError",
    "check_paths", "check_source", "fix_source",
]  # fmt: skip

RiskName = Literal["exact", "numeric", "behavior"]
"""What may change when a fix is applied: nothing; rounding or the random stream; what is computed, logged or saved."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where something stands. Lines and columns (in characters) count from 1; the end column is the one after the last
    character. ``start`` and ``end`` are byte offsets in the file. In a notebook all are those of the code of ``cell``, a
    number from 1 that counts cells of text as well; elsewhere ``cell`` is None."""

    path: Path
    line: int
    column: int
    end_line: int
    end_column: int
    start: int
    end: int
    cell: int | None = None


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace the bytes ``start`` to ``end`` of a file, or of a notebook's cell, by ``text``; line breaks are ``\\n``."""

    path: Path
    start: int
    end: int
    text: str
    cell: int | None = None


@dataclass(frozen=True, slots=True)
class Fix:
    """Edits that belong together. ``withheld`` says why they are not applied; it is empty where they may be."""

    risk: RiskName
    edits: tuple[Edit, ...]
    withheld: str


@dataclass(frozen=True, slots=True)
class Finding:
    """One slow place.

    Attributes:
        code, rule: the rule's code, such as ``SPD301``, and its name.
        message, advice: what is slow, and what to write instead; the advice may be empty where there is a fix.
        level: ``warning`` or ``note``.
        worth, because: ``high``, ``medium``, ``low`` or ``unknown``, and the clause that explains it.
        frequency: how often the line runs: ``step``, ``eval_step``, ``epoch``, ``once``, and so on.
        fix: the change that cures it, or None.
    """

    code: str
    rule: str
    message: str
    advice: str
    level: Literal["warning", "note"]
    worth: Literal["high", "medium", "low", "unknown"]
    because: str
    frequency: str
    place: Place
    fix: Fix | None


@dataclass(frozen=True, slots=True)
class Problem:
    """What kept speedlint from a file, in one line; ``line`` is None where the whole file is meant."""

    path: Path
    line: int | None
    message: str
    cell: int | None = None


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The findings, notes included, in order of path and position, and what kept speedlint from files."""

    findings: tuple[Finding, ...]
    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class Applied:
    """A fix that was applied; ``line`` is where its finding stood in the text that was given."""

    code: str
    rule: str
    risk: RiskName
    line: int
    message: str
    cell: int | None = None


@dataclass(frozen=True, slots=True)
class FixResult:
    """The text as the fixes leave it (the given one where there are none), the fixes, and those that were given up."""

    source: str
    applied: tuple[Applied, ...]
    problems: tuple[Problem, ...]


def check_source(
    source: str,
    path: str | Path = "script.py",
    *,
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    torch: str | None = None,
    config: str | Path | None = None,
) -> CheckResult:
    """What slows down the script ``source``, or the notebook whose JSON it is where ``path`` ends in ``.ipynb``.

    ``path`` is where it is, or would be saved: the configuration and the modules that the script imports are sought from
    there. It need not exist, and where it does, ``source`` is checked and not what it holds. ``select`` and ``ignore`` are
    codes, their prefixes or rules' names; ``torch`` is the target release, such as ``"2.4"``; ``config`` a configuration
    file. Raises UserError for a wrong option or configuration.
    """
    from speedlint import reading, run

    path = Path(path)
    data, _ = reading.encoded(source)
    settings, registry, store = _prepare([path], config, select=select, ignore=ignore, torch=torch)
    return _checked(run.check_as({path: data}, path, settings, registry, store))


def check_paths(
    paths: Iterable[str | Path],
    *,
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    exclude: Sequence[str] = (),
    torch: str | None = None,
    config: str | Path | None = None,
    cache: bool = True,
) -> CheckResult:
    """What slows down the scripts in files and folders, as ``speedlint check`` finds it.

    ``exclude`` are patterns as in a ``.gitignore`` file; without ``cache`` nothing is read from the user's cache folder
    nor written to it; the other options are those of ``check_source``. Raises UserError for a wrong option or
    configuration.
    """
    from speedlint import files, run
    from speedlint.config import Nearest
    from speedlint.registry import for_files

    asked = tuple(map(Path, paths))
    settings, registry, store = _prepare(
        asked, config, cache, select=select, ignore=ignore, exclude=exclude, torch=torch
    )  # fmt: skip
    exclusion = Nearest(settings).exclusion
    found = files.discover(asked, exclusion, tests=settings.tests, force=settings.force_exclude)
    settings, registry = for_files(found.paths, settings, registry, _registry)
    # In this process: another one would run the caller's script again where its main part is not guarded.
    report = run.merge(run.check(found.paths, settings, registry, store, jobs=1))
    return _checked(report, found.problems)


def fix_source(
    source: str,
    path: str | Path = "script.py",
    *,
    risk: RiskName = "exact",
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    torch: str | None = None,
    config: str | Path | None = None,
) -> FixResult:
    """The script ``source`` with the fixes up to ``risk`` applied; nothing is written to disk.

    A fix that reaches other files than this one is left out. The other options are those of ``check_source``. Raises
    UserError for a wrong option or configuration.
    """
    from speedlint import notebook, reading, stages
    from speedlint.config import RISKS
    from speedlint.rule import Risk

    if risk not in RISKS:
        raise UserError(f"`{risk}` is no risk; it is one of {', '.join(RISKS)}")
    path = Path(path)
    data, encoding = reading.encoded(source)
    settings, registry, store = _prepare(
        [path], config, select=select, ignore=ignore, torch=torch, risk=Risk[risk.upper()]
    )  # fmt: skip
    staged = stages.fix([path], settings, registry, store=store, read=reading.over({path: data}), alone=True)
    after = next((outcome.after for outcome in staged.outcomes), None)
    if after is not None and notebook.is_notebook(path):
        after = notebook.replaced(data, after)
    applied = tuple(_applied(each) for stage in staged.stages for each in stage.applied)
    return FixResult(source if after is None else after.decode(encoding), applied, tuple(map(_problem, staged.problems)))


def _prepare(
    paths: Sequence[Path], config_file: str | Path | None, cache: bool = True, **options: Any
) -> tuple[Settings, Registry, Store | None]:
    from speedlint import config
    from speedlint.facts.store import Store

    store = Store.of_user() if cache else None
    try:
        options["torch"] = config.release(options["torch"]) if options["torch"] else None
    except ValueError:
        raise UserError(f"`{options['torch']}` is no torch release, such as 2.4") from None
    given: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in options.items()}
    settings = config.load(paths, Path(config_file) if config_file else None, **given)
    registry = _registry(settings.rule_paths)
    registry.choose(given.get("select", ()), given.get("ignore", ()))
    registry.validate(settings)
    return settings, registry, store


@functools.lru_cache(maxsize=8)
def _registry(folders: tuple[Path, ...]) -> Registry:
    """The rules, loaded once in a process."""
    from speedlint.registry import Registry

    return Registry.load(folders)


def _checked(report: diagnostic.Report, before: Iterable[_Problem] = ()) -> CheckResult:
    return CheckResult(tuple(map(_finding, report.diagnostics)), tuple(map(_problem, (*before, *report.problems))))


def _finding(found: diagnostic.Diagnostic) -> Finding:
    place = Place(found.path, found.line, found.column, found.end_line, found.end_column, found.start, found.end, found.cell)
    return Finding(
        code=found.code,
        rule=found.rule,
        message=found.message,
        advice=found.advice,
        level=found.level.value,
        worth=found.worth.worth.value,
        because=found.worth.because,
        frequency=found.frequency,
        place=place,
        fix=_fix(found.fix) if found.fix is not None else None,
    )


def _fix(fix: diagnostic.Proposal) -> Fix:
    places = fix.cells or itertools.repeat((None, 0))
    edits = tuple(
        Edit(each.path, each.start - begins, each.end - begins, each.text, cell)
        for each, (cell, begins) in zip(fix.edits, places, strict=False)
    )
    return Fix(_risk(fix.risk.name), edits, fix.withheld)


def _applied(each: fixer.Applied) -> Applied:
    return Applied(each.code, each.rule, _risk(each.risk.name), each.line, each.message, each.cell)


def _risk(name: str) -> RiskName:
    return name.lower()  # type: ignore[return-value]


def _problem(each: _Problem) -> Problem:
    return Problem(each.path, each.line, each.what, each.cell)
