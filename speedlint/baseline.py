"""The findings that a project knows of: a file that names each by its rule, its text and the function that it stands in.

No line numbers are kept, so that edits elsewhere in a file leave its findings known. Findings that share all this are
counted: where there are more of them than the file says, the last ones are new.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from speedlint import writing
from speedlint.diagnostic import Diagnostic
from speedlint.errors import UserError

NAME = ".speedlint-baseline.json"
"""The file that ``speedlint baseline`` writes where nothing else is configured."""
VERSION = 1
Codes = Callable[[Path], Collection[str]]
"""The codes of the rules that look at a file."""
_MEND = "remove it and run `speedlint baseline`"


class Entry(NamedTuple):
    """What findings that cannot be told apart share: rule, dotted name of the function around them, and text."""

    code: str
    scope: str
    text: str


@dataclass(frozen=True)
class Baseline:
    """The known findings of each file, by its path relative to the baseline's folder, with ``/`` between its parts."""

    file: Path
    known: Mapping[str, Counter[Entry]] = field(default_factory=dict)

    @classmethod
    def load(cls, file: Path) -> Baseline:
        """What a file holds. Raises UserError."""
        if file.exists() and not file.is_file():  # a device may have no end
            raise UserError(f"{file}: is no file; name the one that `speedlint baseline` has written")
        try:
            held = json.loads(file.read_text("utf-8"))
        except FileNotFoundError:
            raise UserError(f"{file}: there is no such baseline; `speedlint baseline` writes one") from None
        except OSError as error:
            raise UserError(f"{file}: cannot be read ({error.strerror}); check the path and its permissions") from None
        except (ValueError, RecursionError):
            raise UserError(f"{file}: is no JSON, perhaps after a merge; {_MEND}") from None
        version = held.get("version") if isinstance(held, dict) else None
        if version != VERSION:
            said = f"has version {version!r}, and this speedlint reads {VERSION}" if version else "is no baseline"
            raise UserError(f"{file}: {said}; {_MEND}")
        try:
            return cls(file, {path: _counted(entries) for path, entries in held["findings"].items()})
        except (TypeError, KeyError, ValueError, AttributeError):
            raise UserError(f"{file}: is no baseline; {_MEND}") from None

    def new(self, found: Iterable[Diagnostic]) -> list[Diagnostic]:
        """The findings that are not known, in the order given."""
        left = {path: Counter(entries) for path, entries in self.known.items()}
        new = []
        for each in found:
            entries, entry = left.get(self._name(each.path), Counter()), _entry(each)
            if entries[entry] > 0:
                entries[entry] -= 1
            else:
                new.append(each)
        return new

    def gone(self, found: Iterable[Diagnostic], files: Iterable[Path], codes: Codes) -> int:
        """How many known findings of ``files``, of the rules with the codes that look there, are in the code no more."""
        now = self._by_file(found)
        gone = 0
        for name, path in {self._name(path): path for path in files}.items():
            left = self.known.get(name, Counter()) - now.get(name, Counter())
            looked = codes(path) if left else ()
            gone += sum(number for entry, number in left.items() if entry.code in looked)
        return gone

    def renewed(self, found: Iterable[Diagnostic], files: Iterable[Path], codes: Codes) -> Baseline:
        """The baseline with ``found`` in place of what it knew of ``files`` and these rules, without files that are gone."""
        known = {name: entries for name, entries in self.known.items() if (self.file.parent / name).is_file()}
        for path in files:
            name, looked = self._name(path), codes(path)
            known[name] = Counter({entry: n for entry, n in known.get(name, {}).items() if entry.code not in looked})
        for name, entries in self._by_file(found).items():
            known[name] = known.get(name, Counter()) + entries
        return Baseline(self.file, {name: known[name] for name in sorted(known) if known[name]})

    def write(self) -> None:
        """Writes the file, the same text for the same findings. Raises UserError."""
        findings = {name: [_plain(*each) for each in sorted(entries.items())] for name, entries in self.known.items()}
        text = json.dumps({"version": VERSION, "findings": findings}, indent=1)
        try:
            writing.put(self.file, f"{text}\n".encode())
        except OSError as error:
            raise UserError(f"{self.file}: cannot be written ({error.strerror}); check the path") from None

    def total(self) -> int:
        """How many findings it knows."""
        return sum(entries.total() for entries in self.known.values())

    def beyond(self, other: Baseline) -> int:
        """How many findings it knows that ``other`` does not."""
        return sum((entries - other.known.get(name, Counter())).total() for name, entries in self.known.items())

    def _by_file(self, found: Iterable[Diagnostic]) -> dict[str, Counter[Entry]]:
        files: dict[str, Counter[Entry]] = {}
        for each in found:
            files.setdefault(self._name(each.path), Counter())[_entry(each)] += 1
        return files

    def _name(self, path: Path) -> str:
        return os.path.relpath(path.absolute(), self.file.absolute().parent).replace(os.sep, "/")


def _entry(found: Diagnostic) -> Entry:
    return Entry(*found.lasting)


def _counted(entries: Sequence[Mapping[str, Any]]) -> Counter[Entry]:
    counted = {Entry(str(each["code"]), str(each["in"]), str(each["text"])): int(each["count"]) for each in entries}
    return Counter(counted)


def _plain(entry: Entry, count: int) -> dict[str, Any]:
    return {"code": entry.code, "in": entry.scope, "text": entry.text, "count": count}
