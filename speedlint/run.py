"""Checks many files: those of one project in one process, which knows all that they share; several projects in several."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from speedlint import kept, reading
from speedlint.config import Settings
from speedlint.diagnostic import Report
from speedlint.disk import Disk, Notes
from speedlint.facts.store import Store
from speedlint.program.imports import Imports, Known, absolute
from speedlint.registry import Registry

_FEW = 24


def check(
    files: Sequence[Path],
    settings: Settings,
    registry: Registry,
    store: Store | None = None,
    jobs: int | None = None,
) -> Iterator[Report]:
    """A report for each file, in an order that is the same on every run, made by up to ``jobs`` processes, one a core.

    What the ``store`` holds of the same run is taken where nothing has changed; without a store nothing is kept.
    """
    if store is None:
        yield from _checked(files, settings, registry, Store(), Disk(), Notes(), jobs)
        return
    name, disk = kept.key(files, settings), Disk()
    found = kept.find(store, name, disk)
    if found is None:
        notes = Notes()
        found = []
        for report in _checked(files, settings, registry, store, disk, notes, jobs):
            found.append(report)
            yield report
        kept.keep(store, name, found, notes)
    else:
        yield from found
    store.flush()


def check_as(
    texts: Mapping[Path, bytes], path: Path, settings: Settings, registry: Registry, store: Store | None = None
) -> Report:
    """The report on a file, where the files of ``texts`` hold these bytes, whatever is on disk; no report is kept."""
    from speedlint.engine import Engine

    store = store or Store()
    report = Engine(settings, registry, Disk(reading.over(texts)), asked=[path], store=store).check(path)
    store.flush()
    return report


def _checked(
    files: Sequence[Path],
    settings: Settings,
    registry: Registry,
    store: Store,
    disk: Disk,
    notes: Notes,
    jobs: int | None,
) -> Iterator[Report]:
    if len(files) > _FEW and jobs is None:
        from speedlint import host

        jobs = host.cores()
    projects = _by_project(files) if len(files) > _FEW and jobs != 1 else [files]
    if len(projects) == 1:
        from speedlint.engine import Engine

        engine = Engine(settings, registry, disk, asked=files, store=store)
        yield from map(engine.check, files)
        notes.update(engine.disk.notes)
        return
    from speedlint import workers

    yield from workers.check(projects, settings, store.path, notes, min(jobs or 1, len(projects)))


def _by_project(files: Sequence[Path]) -> list[list[Path]]:
    """The files of each project, the largest first. Shared out among processes, one project's files would be read by each:
    timm's 284 take one process 9.5 s of CPU time, two processes 6.6 each: both read nine files of ten."""
    imports, found = Imports(Disk(), Known()), dict[Path, list[Path]]()
    for file in files:
        found.setdefault(imports.root(absolute(file)), []).append(file)
    return sorted(found.values(), key=lambda each: (-len(each), str(each[0])))


def merge(reports: Iterable[Report]) -> Report:
    """One report, ordered by path and position; what several files' checks say alike is said once."""
    every = list(reports)
    found = {(str(each.path.absolute()), *each.key): each for report in every for each in report.diagnostics}
    problems = {problem: None for report in every for problem in report.problems}
    bounds = dict.fromkeys(bound for report in every for bound in report.bounds)
    unused = {each: None for report in every for each in report.unused}
    return Report(tuple(found[key] for key in sorted(found)), tuple(problems), tuple(bounds), tuple(unused))
