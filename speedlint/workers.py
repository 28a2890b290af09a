"""Projects shared out among processes: each file's report is told when it is there, and handed on in order."""

from __future__ import annotations

import atexit
import contextlib
import gc
import multiprocessing
import queue
import signal
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.queues import Queue
from pathlib import Path

from speedlint.config import Settings
from speedlint.diagnostic import Report
from speedlint.disk import Notes
from speedlint.engine import Engine
from speedlint.errors import UserError
from speedlint.facts.store import Store
from speedlint.registry import Registry

_TURN = 0.2
"""Seconds to wait for a report before it is asked whether the workers are well."""
_engine: Engine
_store: Store
_told: Queue[tuple[int, Report]]
_Done = Future[Notes]


def check(
    projects: Sequence[Sequence[Path]], settings: Settings, kept_in: Path | None, notes: Notes, jobs: int
) -> Iterator[Report]:
    """A report for each file, project by project; ``notes`` gets what they rest on.

    When it is interrupted, the reports that are there come before KeyboardInterrupt is raised. Raises UserError.
    """
    spawn = multiprocessing.get_context("spawn")
    told = spawn.Queue()
    asked = [file for project in projects for file in project]
    start = (settings, asked, kept_in, told)
    with ProcessPoolExecutor(jobs, mp_context=spawn, initializer=_prepare, initargs=start) as pool:
        futures = [pool.submit(_check, number, project) for number, project in enumerate(projects)]
        waiting = [deque[Report]() for _ in projects]
        try:
            yield from _in_order(projects, waiting, told, futures)
            for future in futures:
                notes.update(future.result())
        except KeyboardInterrupt:
            with contextlib.suppress(queue.Empty):
                while True:
                    _take(waiting, told.get_nowait())
            _end_workers()
            yield from (report for reports in waiting for report in reports)
            raise
        except BrokenProcessPool:
            raise UserError("a worker process was killed, perhaps for memory; check fewer files at once") from None
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _in_order(
    projects: Sequence[Sequence[Path]],
    waiting: Sequence[deque[Report]],
    told: Queue[tuple[int, Report]],
    futures: Sequence[_Done],
) -> Iterator[Report]:
    for project, reports in zip(projects, waiting, strict=True):
        for _ in project:
            while not reports:
                try:
                    _take(waiting, told.get(timeout=_TURN))
                except queue.Empty:
                    _raise_failure(futures)
            yield reports.popleft()


def _take(waiting: Sequence[deque[Report]], told: tuple[int, Report]) -> None:
    number, report = told
    waiting[number].append(report)


def _raise_failure(futures: Sequence[_Done]) -> None:
    """Raises what has ended a worker, if something has."""
    for future in futures:
        if future.done():
            future.result()


def _end_workers() -> None:
    """Ends the processes at once: the rest of a project may take them minutes."""
    for worker in multiprocessing.active_children():
        worker.terminate()


def _prepare(settings: Settings, files: Sequence[Path], kept_in: Path | None, told: Queue[tuple[int, Report]]) -> None:
    global _engine, _store, _told
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.disable()
    atexit.register(gc.freeze)
    _told = told
    _store = Store(kept_in)
    _engine = Engine(settings, Registry.load(settings.rule_paths, _store), asked=files, store=_store)


def _check(number: int, files: Sequence[Path]) -> Notes:
    """Tells the reports on some files. Returns what was noted for them: the rest was handed over with others."""
    counted = _engine.disk.notes.counted()
    for path in files:
        _told.put((number, _engine.check(path)))
    _store.flush()
    return _engine.disk.notes.since(counted)
