"""Checks many files: those of one project in one process, which knows all that they share; several projects in several."""

from __future__ import annotations

import gc
import signal
from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from speedlint import host, kept
from speedlint.config import Settings
from speedlint.diagnostic import Report
from speedlint.disk import Disk, Note
from speedlint.errors import UserError
from speedlint.facts.store import Store
from speedlint.program.imports import Imports, Known, absolute
from speedlint.registry import Registry

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor

    from speedlint.engine import Engine

_FEW = 24
_engine: Engine
_store: Store


def check(files: Sequence[Path], settings: Settings, registry: Registry, store: Store | None = None) -> Iterator[Report]:
    """A report for each file, in an order that is the same on every run.

    What the ``store`` holds of the same run is taken where nothing has changed; without a store nothing is kept.
    """
    if store is None:
        yield from _checked(files, settings, registry, Store(), {})
        return
    name = kept.key(files, settings)
    found = kept.find(store, name)
    if found is None:
        notes: dict[Note, Hashable] = {}
        found = []
        for report in _checked(files, settings, registry, store, notes):
            found.append(report)
            yield report
        kept.keep(store, name, found, notes)
    else:
        yield from found
    store.flush()


def _checked(
    files: Sequence[Path], settings: Settings, registry: Registry, store: Store, notes: dict[Note, Hashable]
) -> Iterator[Report]:
    projects = _by_project(files) if len(files) > _FEW and host.cores() > 1 else [files]
    if len(projects) == 1:
        from speedlint.engine import Engine

        engine = Engine(settings, registry, asked=files, store=store)
        yield from map(engine.check, files)
        notes.update(engine.disk.notes)
        return
    from concurrent.futures.process import BrokenProcessPool

    with _workers(settings, files, store.path) as pool:
        try:
            for reports, noted in pool.map(_check, projects):
                yield from reports
                notes.update(noted)
        except BrokenProcessPool:
            raise UserError("a worker process was killed, perhaps for memory; check fewer files at once") from None
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _by_project(files: Sequence[Path]) -> list[list[Path]]:
    """The files of each project, the largest first. Shared out among processes, one project's files would be read by each:
    timm's 304 take one process 11 s of CPU time and 12 of the clock, two processes 20 and 10."""
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
    return Report(tuple(found[key] for key in sorted(found)), tuple(problems), tuple(bounds))


def _workers(settings: Settings, files: Sequence[Path], kept_in: Path | None) -> ProcessPoolExecutor:
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    spawn = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(host.cores(), mp_context=spawn, initializer=_prepare, initargs=(settings, files, kept_in))


def _prepare(settings: Settings, files: Sequence[Path], kept_in: Path | None) -> None:
    global _engine, _store
    from speedlint.engine import Engine

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.disable()
    _store = Store(kept_in)
    _engine = Engine(settings, Registry.load(settings.rule_paths, _store), asked=files, store=_store)


def _check(files: Sequence[Path]) -> tuple[list[Report], dict[Note, Hashable]]:
    """The reports on some files, and what was noted for them: what others had noted was handed over with theirs."""
    noted = len(_engine.disk.notes)
    reports = [_engine.check(path) for path in files]
    _store.flush()
    return reports, dict(islice(_engine.disk.notes.items(), noted, None))
