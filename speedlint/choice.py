"""Which findings a run is about."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from speedlint.config import Settings, common_folder
from speedlint.diagnostic import Diagnostic, Report, Unused
from speedlint.disk import Read
from speedlint.output.terminal import shown
from speedlint.output.text import count

if TYPE_CHECKING:
    from speedlint.baseline import Baseline, Codes
    from speedlint.git import Changed


@dataclass(frozen=True)
class Choice:
    """All findings but those that the baseline knows, and those on lines that have not changed.

    Attributes:
        asked: the lines that are asked for, of the files, by their real paths, of which not all are.
    """

    baseline: Baseline | None = None
    changed: Changed | None = None
    asked: Mapping[str, frozenset[int]] = field(default_factory=dict)

    @classmethod
    def load(cls, settings: Settings, changed: str | None, paths: Sequence[Path], read: Read = Path.read_bytes) -> Choice:
        """What the settings choose, and what ``changed`` in ``paths`` since this revision. Raises UserError."""
        choice = cls()
        if settings.baseline is not None:
            from speedlint.baseline import Baseline

            choice = replace(choice, baseline=Baseline.load(settings.baseline))
        if changed is not None:
            from speedlint.git import Changed

            choice = replace(choice, changed=replace(Changed.of(changed, common_folder(paths)), read=read))
        return choice

    def of(self, found: Sequence[Diagnostic], line: Callable[[int], int] = int) -> list[Diagnostic]:
        """Those of all the findings in some files that are meant; ``line`` gives the line of a file on disk for one of the
        text that was checked."""
        new = self.baseline.new(found) if self.baseline is not None else list(found)
        return [each for each in new if self._is_asked_for(each, line) and self._has_changed(each, line)]

    def _is_asked_for(self, found: Diagnostic | Unused, line: Callable[[int], int]) -> bool:
        lines = self.asked.get(os.path.realpath(found.path)) if self.asked else None
        return lines is None or line(found.line) in lines

    def _has_changed(self, found: Diagnostic, line: Callable[[int], int]) -> bool:
        """Whether a line of the finding has changed, or one that it names as its reason."""
        if self.changed is None:
            return True
        own = self.changed.touches(found.path, line(found.line), line(found.end_line), found.cell)
        return own or any(self.changed.touches(each.path, each.line, each.line, each.cell) for each in found.related)

    def unused(self, found: Iterable[Unused], line: Callable[[int], int] = int) -> list[Unused]:
        """Those of the comments that silence nothing that are meant."""
        return [each for each in found if self._is_asked_for(each, line) and self._stands_on_changed(each, line)]

    def _stands_on_changed(self, found: Unused, line: Callable[[int], int]) -> bool:
        return self.changed is None or self.changed.touches(found.path, line(found.line), line(found.line))

    def remarks(self, report: Report, files: Sequence[Path], codes: Codes) -> Iterator[str]:
        """What is to be said of a report of all that is found in ``files``, which could be read; ``codes`` looked there."""
        found = report.diagnostics
        for each in self.unused(report.unused):
            yield f"{shown(each.path)}:{each.line}: {each.why}; `speedlint fix --apply` takes the comment away"
        if self.changed is not None:
            share = f"{len(self.of(found))} of {len(found)}, notes included"
            yield f"findings on lines changed since {self.changed.since}; {share}"
        if self.baseline is not None:
            yield from self._of_baseline(self.baseline, found, files, codes)

    def _of_baseline(
        self, baseline: Baseline, found: Sequence[Diagnostic], files: Sequence[Path], codes: Codes
    ) -> Iterator[str]:
        name = shown(baseline.file)
        known, gone = len(found) - len(baseline.new(found)), baseline.gone(found, files, codes)
        if known:
            yield f"{count(known, 'finding')} that {name} knows {'is' if known == 1 else 'are'} not shown"
        if gone:
            yield f"{count(gone, 'finding')} of {name} {'is' if gone == 1 else 'are'} gone; `speedlint baseline` drops such"
