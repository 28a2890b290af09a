"""How a run goes: in how many processes, how much it says, and what is there when it is interrupted."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import click

from speedlint import config, run
from speedlint.cli.options import F
from speedlint.diagnostic import Report
from speedlint.output.problems import report_remarks
from speedlint.output.progress import tracked
from speedlint.output.text import count
from speedlint.registry import Registry

T = TypeVar("T")

_OPTIONS = (
    click.option("-j", "--jobs", type=click.IntRange(min=1), metavar="N", help="Processes to use (default: one a core)."),
    click.option("-q", "--quiet", is_flag=True, help="Print findings, changes and errors only."),
    click.option("-v", "--verbose", is_flag=True, help="Say which files, settings and rules are used, and the time taken."),
)


def running(command: F) -> F:
    """Adds the options that say how to run."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@dataclass
class Voice:
    """What is said on standard error beside the results."""

    is_quiet: bool
    is_verbose: bool
    _began: float = field(default_factory=time.monotonic, init=False)

    def remark(self, remarks: Iterable[str]) -> None:
        """Says some sentences, unless it is quiet."""
        if not self.is_quiet:
            report_remarks(remarks)

    def tracked(self, items: Iterable[T], total: int) -> Iterable[T]:
        """``items`` as they are, with a progress bar where there are many, unless it is quiet."""
        return items if self.is_quiet else tracked(items, total, "Checking")

    def explain(self, files: Iterable[Path], settings: config.Settings, registry: Registry) -> None:
        """Says what is looked at and how, and how long it has taken, if it is verbose."""
        if self.is_verbose:
            report_remarks(_explained(tuple(files), settings, registry))
            report_remarks((f"{time.monotonic() - self._began:.1f} s",))


def _explained(files: tuple[Path, ...], settings: config.Settings, registry: Registry) -> Iterator[str]:
    from speedlint import target

    nearest = config.Nearest(settings)
    groups: dict[Path | None, list[Path]] = {}
    for path in files:
        groups.setdefault(nearest.of(path).file, []).append(path)
    for file, group in groups.items():
        own = nearest.of(group[0])
        release, origin = target.find(own, group[0].absolute().parent)
        torch = f"torch {'.'.join(map(str, release))} from {origin}" if release else f"torch is not known ({origin})"
        rules = count(len(registry.chosen(own)), "rule")
        yield f"{count(len(group), 'file')} with {rules}; settings: {file or 'none'}; {torch}; risk: {own.risk.name.lower()}"


@dataclass(frozen=True)
class Collected:
    """What has been found, in how many files, and whether that is all."""

    report: Report
    files: int
    is_whole: bool


def collected(reports: Iterable[Report]) -> Collected:
    """The reports as one; where the user interrupts, those that there are."""
    held: list[Report] = []
    is_whole = True
    try:
        for report in reports:
            held.append(report)  # what has come is kept where the next one is interrupted
    except KeyboardInterrupt:
        is_whole = False
    return Collected(run.merge(held), len(held), is_whole)
