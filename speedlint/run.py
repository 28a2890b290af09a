"""Checks many files: in this process if they are few, else in several."""

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
from speedlint.disk import Note
from speedlint.errors import UserError
from speedlint.facts.store import Store
from speedlint.registry import Registry

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor

    from speedlint.engine import Engine

_FEW = 24
_CHUNK = 8
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
    if len(files) <= _FEW or host.cores() == 1:
        from speedlint.engine import Engine

        engine = Engine(settings, registry, asked=files, store=store)
        yield from map(engine.check, files)
        notes.update(engine.disk.notes)
        return
    from concurrent.futures.process import BrokenProcessPool

    chunks = [files[start : start + _CHUNK] for start in range(0, len(files), _CHUNK)]
    with _workers(settings, files, store.path) as pool:
        try:
            for reports, noted in pool.map(_check, chunks):
                yield from reports
                notes.update(noted)
        except BrokenProcessPool:
            raise UserError("a worker process was killed, perhaps for memory; check fewer files at once") from None
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


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
