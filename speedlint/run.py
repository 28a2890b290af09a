"""Checks many files: in this process if they are few, else in several."""

from __future__ import annotations

import gc
import signal
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from speedlint import host
from speedlint.config import Settings
from speedlint.diagnostic import Report
from speedlint.engine import Engine
from speedlint.errors import UserError
from speedlint.registry import Registry

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor

_FEW = 24
_CHUNK = 8
_engine: Engine


def check(files: Sequence[Path], settings: Settings, registry: Registry) -> Iterator[Report]:
    """A report for each file, in an order that is the same on every run."""
    if len(files) <= _FEW or host.cores() == 1:
        engine = Engine(settings, registry, asked=files)
        yield from map(engine.check, files)
        return
    from concurrent.futures.process import BrokenProcessPool

    chunks = [files[start : start + _CHUNK] for start in range(0, len(files), _CHUNK)]
    with _workers(settings, files) as pool:
        try:
            for reports in pool.map(_check, chunks):
                yield from reports
        except BrokenProcessPool:
            raise UserError("a worker process was killed, perhaps for memory; check fewer files at once") from None
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def merge(reports: Iterable[Report]) -> Report:
    """One report, ordered by path and position; what several files' checks say alike is said once."""
    every = list(reports)
    found = {(str(each.path.absolute()), *each.key): each for report in every for each in report.diagnostics}
    problems = {problem: None for report in every for problem in report.problems}
    return Report(tuple(found[key] for key in sorted(found)), tuple(problems))


def _workers(settings: Settings, files: Sequence[Path]) -> ProcessPoolExecutor:
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    spawn = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(host.cores(), mp_context=spawn, initializer=_prepare, initargs=(settings, files))


def _prepare(settings: Settings, files: Sequence[Path]) -> None:
    global _engine
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.disable()
    _engine = Engine(settings, Registry.load(settings.rule_paths), asked=files)


def _check(files: Sequence[Path]) -> list[Report]:
    return [_engine.check(path) for path in files]
