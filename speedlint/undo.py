"""The last fixes that were written in a project, kept in the user's cache so that they can be taken back."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from speedlint import reading, writing
from speedlint.disk import digest
from speedlint.facts.store import Store
from speedlint.files import Problem
from speedlint.fixer import Applied, Outcome
from speedlint.rule import Risk

_KIND = "undo"
_MARKS = (".git", "speedlint.toml", "pyproject.toml")
"""What lies in the folder of a project."""


def project() -> Path:
    """The nearest folder, from the current one up, that holds a project; else the current one."""
    here = Path.cwd().resolve()
    return next((up for up in (here, *here.parents) if any((up / mark).exists() for mark in _MARKS)), here)


def write(store: Store, outcomes: Sequence[Outcome]) -> list[Problem]:
    """Writes fixes, and keeps what takes them back, before the first of them is written. Returns what could not be written;
    where that is all, what was kept before stays."""
    if not outcomes:
        return []
    earlier = store.value(_KIND, str(project()))
    _keep(store, [(os.path.realpath(each.path), each.before, digest(each.after)) for each in outcomes])
    failures = writing.write_all(outcomes)
    if len(failures) == len(outcomes):
        _keep(store, earlier)
    return failures


def forget(store: Store) -> None:
    """Keeps nothing of the project's last fixes any more."""
    _keep(store, None)


def _keep(store: Store, files: list[tuple[str, bytes, str]] | None) -> None:
    store.keep(_KIND, str(project()), files)
    store.flush()


def back(store: Store) -> tuple[list[Outcome], list[Problem]] | None:
    """What takes the last fixes back, all or none, and the files that have changed since; None where none are kept."""
    held = store.value(_KIND, str(project()))
    if held is None:
        return None
    outcomes, problems = [], []
    whole = Applied(project(), 0, "", "undo", Risk.EXACT, "")
    for name, before, after in held:
        path = Path(name)
        try:
            now = reading.read(path)
        except OSError as error:
            problems.append(Problem(path, None, f"cannot be read ({error.strerror or error}), so nothing is taken back"))
            continue
        if digest(now) == after:
            outcomes.append(Outcome(path, now, before, (whole,)))
        elif now != before:
            problems.append(Problem(path, None, "has changed since it was fixed, so nothing is taken back"))
    return outcomes, problems
