"""The one door to the disk for all that a report rests on: each question is asked once, and noted with its answer.

What was noted tells later whether a report still holds: ``holds`` asks the same questions again.
"""

from __future__ import annotations

import fnmatch
import functools
import hashlib
import os
import re
import stat
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, islice, takewhile
from pathlib import Path
from typing import NamedTuple, TypeVar

from speedlint import reading
from speedlint.facts.bases import bases
from speedlint.facts.imported import imported_names
from speedlint.facts.left_open import left_open, methods
from speedlint.facts.put_on_path import Put, put_on_path
from speedlint.notebook import NotebookError

Read = Callable[[Path], bytes]
Words = frozenset[bytes]
"""Names of which one stands in a text by itself, not as a part of a longer one."""
Mark = bytes | Words | re.Pattern[bytes] | tuple[bytes | Words, re.Pattern[bytes]]
"""What the text of a file holds, if it is worth parsing: bytes, words, a pattern, or a pattern with bytes or words
that are in what it matches, which are found a hundred times as fast."""
Note = tuple[str, str] | tuple[str, str, bytes]
"""A question: its kind, the path, and the names' patterns that are looked for."""
CONTENTS = "contents"
"""The kind of note that names a file's bytes: where they are the same, so is all that they answer; else that is asked."""
OF_CONTENTS = frozenset({"data", "syntax", "imports", "put", "defines", "renamed", "open", "bases"})
"""The kinds of questions whose answers a file's bytes give."""
Answer = TypeVar("Answer", bound=Hashable)

MAX_BYTES = 1_000_000
"""Files in folders that are larger than this look generated and are left out."""
_MOST_LISTED = 30_000
"""Python files of one project; where there are more, a file is looked at by itself."""
_DEFINED = re.compile(rb"\n(?:async[ \t]+)?(?:def|class)[ \t]+([A-Za-z_]\w*)")
"""Of a text with a line's end before it: a pattern that begins with one byte is found several times as fast."""
_AS = re.compile(rb" as ([A-Za-z_]\w*)")
COMMANDS = (".sh", ".bash", ".bat", ".ps1", ".slurm", ".sbatch", "Makefile", "makefile", "justfile")
"""Ends of the names of files that hold commands and little else."""
TEXTS = (*COMMANDS, ".md", ".rst", "README")
"""Ends of the names of files that may speak of how a script is run."""
CONFIGS = (".yaml", ".yml", ".json")
_MOST_CONFIGS, _LARGEST_CONFIG = 500, 50_000
"""Configurations of one project, and bytes of one: more are annotations, or what trainings have written."""
_SKIPPED = ("node_modules", "__pycache__")
_BETWEEN_WORDS = bytes(byte if byte > 127 or chr(byte).isalnum() or chr(byte) == "_" else 32 for byte in range(256))
_BYTES_OF_WORDS = 2
"""Of memory, for the words of a text, to each of its bytes; measured on timm."""


def words(names: Iterable[str]) -> Words:
    """The mark of a text in which one of some names stands by itself."""
    return frozenset(name.encode() for name in names)


class Listing(NamedTuple):
    """The Python files of a folder and of those within it, by their absolute paths, hidden folders left out.

    Attributes:
        files: all, in order of path.
        readable: those of a size that a script has.
        folders: the folders that were listed.
        texts: the files that may speak of how a script is run, by the endings of their names.
        configs: the YAML and JSON files of a size that a configuration has; none where there are so many that they are data.
        has_links: whether links to folders were met, which are not followed.
        is_whole: whether none was left out for their number.
    """

    files: frozenset[str]
    readable: tuple[str, ...]
    folders: frozenset[str]
    texts: tuple[str, ...]
    configs: tuple[str, ...]
    has_links: bool
    is_whole: bool


@dataclass(frozen=True, slots=True)
class Notes:
    """What was asked of the disk, with the answers, in the order in which it was asked.

    Attributes:
        answers: those to all questions but whether a text holds a mark.
        marks: whether the texts of files hold a mark, by the mark and the file.
    """

    answers: dict[Note, Hashable] = field(default_factory=dict)
    marks: dict[Mark, dict[str, bool]] = field(default_factory=dict)

    def update(self, other: Notes) -> None:
        """Adds others."""
        self.answers.update(other.answers)
        for mark, known in other.marks.items():
            self.marks.setdefault(mark, {}).update(known)

    def counted(self) -> tuple[int, dict[Mark, int]]:
        """How many there are; see ``since``."""
        return len(self.answers), {mark: len(known) for mark, known in self.marks.items()}

    def since(self, counted: tuple[int, dict[Mark, int]]) -> Notes:
        """Those that were added since they were counted."""
        before, of_marks = counted
        marks = {mark: dict(islice(known.items(), of_marks.get(mark, 0), None)) for mark, known in self.marks.items()}
        return Notes(dict(islice(self.answers.items(), before, None)), {mark: new for mark, new in marks.items() if new})


class Disk:
    """Files as they are for one run: what is read twice is the same twice, until it is let go.

    ``read`` may give them as edited.
    """

    def __init__(self, read: Read = reading.read) -> None:
        self._read = read
        self._data: dict[str, bytes | OSError] = {}
        self._words: dict[str, Words] = {}
        self._size = 0
        self._listings: dict[str, Listing] = {}
        self._before = Notes()
        self.notes = Notes()

    def read(self, path: Path) -> bytes:
        """A file's bytes. Raises OSError."""
        data = self._held(str(path))
        self._note(("data", str(path)), lambda: self.digest(str(path)))
        if isinstance(data, OSError):
            raise data
        return data

    def code(self, path: Path) -> bytes:
        """A file's bytes, to be parsed: what is asked of them then is noted by ``syntax`` or ``read``. Raises OSError."""
        data = self._held(str(path))
        return self.read(path) if isinstance(data, OSError) else data

    def syntax(self, path: str, meaning: Callable[[], str]) -> str:
        """The name of a file's syntax, wherever in the file it stands; ``meaning`` finds it."""
        return self._note(("syntax", path), meaning)

    def text(self, path: str) -> bytes:
        """A file's bytes, none where it cannot be read; what is made of them must be noted by who asks."""
        data = self._held(path)
        return b"" if isinstance(data, OSError) else data

    def digest(self, path: str) -> str:
        """The name of a file's bytes; none where it cannot be read."""
        self._held(path)
        return str(self.notes.answers[CONTENTS, path])

    def _held(self, path: str) -> bytes | OSError:
        if path not in self._data:
            try:
                self._data[path] = self._read(Path(path))
            except OSError as error:
                self._data[path] = error
            data = self._data[path]
            self._size += 0 if isinstance(data, OSError) else len(data)
            self.notes.answers.setdefault((CONTENTS, path), _name(data))
        return self._data[path]

    def held(self) -> int:
        """The bytes of memory, about, of the files that are held."""
        return self._size

    def drop(self) -> None:
        """Lets the files' bytes go; the notes stay, so that a report rests on them as they were at first."""
        self._data.clear()
        self._words.clear()
        self._size = 0

    def begin(self, before: Notes) -> None:
        """Notes from now on what is asked anew, of files as they were read so far. ``before`` are answers that their bytes
        gave another time: they are no notes until they are asked for."""
        self._before = before
        self.notes = Notes({note: answer for note, answer in self.notes.answers.items() if note[0] == CONTENTS})

    def _note(self, note: Note, answer: Callable[[], Answer]) -> Answer:
        answers = self.notes.answers
        if note not in answers:
            answers[note] = self._before.answers[note] if note in self._before.answers else answer()
        return answers[note]  # type: ignore[return-value]

    # Questions

    def mentions(self, path: str, mark: Mark) -> bool:
        """Whether a file's text holds a mark."""
        return bool(self.holding((path,), (mark,)))

    def holding(self, paths: Iterable[str], marks: Iterable[Mark]) -> list[str]:
        """Those of some files whose text holds one of some marks, in their order."""
        nothing: dict[str, bool] = {}
        notes, before = self.notes.marks, self._before.marks
        known = [(mark, notes.setdefault(mark, {}), before.get(mark, nothing)) for mark in marks]
        found = []
        for path in paths:
            for mark, holds, held in known:
                is_held = holds.get(path)
                if is_held is None:
                    is_held = held.get(path)
                    is_held = holds[path] = self._is_in(path, mark) if is_held is None else is_held
                if is_held:
                    found.append(path)
                    break
        return found

    def _is_in(self, path: str, mark: Mark) -> bool:
        match mark:
            case bytes():
                return mark in self.text(path)
            case frozenset():
                return not mark.isdisjoint(self._words_of(path))
            case (first, pattern):
                return self._is_in(path, first) and pattern.search(self.text(path)) is not None
        return mark.search(self.text(path)) is not None

    def _words_of(self, path: str) -> Words:
        found = self._words.get(path)
        if found is None:
            text = self.text(path)
            found = self._words[path] = frozenset(text.translate(_BETWEEN_WORDS).split())
            self._size += _BYTES_OF_WORDS * len(text)
        return found

    def is_file(self, path: str) -> bool:
        """Whether there is a file, or a link to one."""
        return self._note(("file", path), lambda: os.path.isfile(path))  # noqa: PTH113 (Path takes ten times as long)

    def exists(self, path: str) -> bool:
        """Whether there is anything under a path."""
        return self._note(("exists", path), lambda: os.path.exists(path))  # noqa: PTH110

    def is_readable(self, path: str) -> bool:
        """Whether a path is a plain file of a size that a script has: no pipe, no device."""
        return self._note(("readable", path), lambda: _is_readable(path))

    def names(self, folder: str, *patterns: str) -> tuple[str, ...]:
        """The names in a folder that match one of the shell's patterns, in order; none where it cannot be read. Nothing
        hangs on what else lies there, such as logs and checkpoints."""
        return self._note(("names", folder, "\0".join(patterns).encode()), lambda: _names(folder, patterns))

    def listing(self, root: str) -> Listing:
        """The Python files below a folder."""
        if root not in self._listings:
            self._listings[root] = _listing(root)
        found = self._listings[root]
        self._note(
            ("listing", root),
            lambda: digest("\n".join((*sorted(found.files), "", *found.readable)).encode("utf-8", "replace")),
        )
        return found

    def texts(self, root: str) -> tuple[str, ...]:
        """The files below a folder that may speak of how a script is run: shell scripts, Makefiles, READMEs."""
        return self._note(("texts", root), lambda: self.listing(root).texts)

    def configs(self, root: str) -> tuple[str, ...]:
        """The YAML and JSON files below a folder, of a size that a configuration has."""
        return self._note(("configs", root), lambda: self.listing(root).configs)

    def imported_names(
        self, path: str, known: Callable[[str, bytes], tuple[str, ...]] = lambda _, data: imported_names(data)
    ) -> tuple[str, ...]:
        """The dotted names that a file's import statements may mean; ``known`` finds them, or has them from before."""
        return self._note(("imports", path), lambda: known(path, self.text(path)))

    def put_on_path(
        self, path: str, known: Callable[[str, bytes], tuple[Put, ...]] = lambda _, data: put_on_path(data)
    ) -> tuple[Put, ...]:
        """What a file puts on ``sys.path``; ``known`` finds it, or has it from before."""
        return self._note(("put", path), lambda: known(path, self.text(path)))

    def defined_names(self, path: str) -> tuple[str, ...]:
        """The names of the functions and classes at the top of a file."""
        return self._note(
            ("defines", path), lambda: tuple(sorted({each.decode() for each in _DEFINED.findall(b"\n" + self.text(path))}))
        )

    def written_names(self, path: str) -> Words:
        """The words of a file's text."""
        return self._note(("words", path), lambda: self._words_of(path))

    def left_open(self, path: str) -> tuple[str, ...]:
        """The names of the methods that a file leaves for other classes to define."""
        return self._note(("open", path), lambda: left_open(self.text(path)))

    def methods(self, path: str) -> tuple[str, ...]:
        """The names of a file's methods, as often as they are defined."""
        return self._note(("methods", path), lambda: methods(self.text(path)))

    def bases(self, path: str) -> tuple[str, ...]:
        """The names that a file may derive classes from."""
        return self._note(("bases", path), lambda: bases(self.text(path)))

    def fitting(self, paths: Sequence[str], most: int) -> int:
        """How many of some files, from the first on, hold no more than ``most`` bytes together; what cannot be read holds
        none. Noted of those that it hangs on: what comes behind the first that is too much may be anything."""
        sizes = accumulate(len(self.text(path)) for path in paths)
        found = sum(1 for _ in takewhile(most.__ge__, sizes))
        return self._note(("fitting", "\0".join(paths[: found + 1]), str(most).encode()), lambda: found)

    def renamed(self, path: str) -> tuple[str, ...]:
        """The names that ``import ... as`` and the like give in a file."""
        return self._note(("renamed", path), lambda: tuple(sorted({each.decode() for each in _AS.findall(self.text(path))})))

    # Later

    def holds(self, notes: Notes) -> bool:
        """Whether all questions have the answers that they had."""
        return all(
            note[0] == CONTENTS or self._asked_again(note) == answer for note, answer in notes.answers.items()
        ) and all(self.mentions(path, mark) is held for mark, known in notes.marks.items() for path, held in known.items())

    def _asked_again(self, note: Note) -> Hashable:
        kind, path = note[:2]
        match kind:
            case "data":
                return self.digest(path)
            case "syntax":
                return self.syntax(path, lambda: _meaning(path, self.text(path)))
            case "file":
                return self.is_file(path)
            case "exists":
                return self.exists(path)
            case "readable":
                return self.is_readable(path)
            case "names":
                return self.names(path, *note[2].decode().split("\0"))  # type: ignore[misc]
            case "listing":
                self.listing(path)
                return self.notes.answers[note]
            case "texts":
                return self.texts(path)
            case "configs":
                return self.configs(path)
            case "imports":
                return self.imported_names(path)
            case "put":
                return self.put_on_path(path)
            case "renamed":
                return self.renamed(path)
            case "defines":
                return self.defined_names(path)
            case "words":
                return self.written_names(path)
            case "open":
                return self.left_open(path)
            case "methods":
                return self.methods(path)
            case "bases":
                return self.bases(path)
            case "fitting":
                return self.fitting(path.split("\0") if path else [], int(note[2]))  # type: ignore[misc]
        return None


def _name(data: bytes | OSError) -> str:
    """The name of what reading a file has given; none where it cannot be read, but a notebook that is none says why."""
    if isinstance(data, OSError):
        return digest(str(data).encode("utf-8", "replace")) if isinstance(data, NotebookError) else ""
    return digest(data)


def _meaning(path: str, data: bytes) -> str:
    """The name of a file's syntax; none where it has none."""
    from speedlint.source import Source, SourceError

    try:
        return Source.parse(Path(path), data).tree.rows.meaning()
    except SourceError:
        return ""


def digest(data: bytes) -> str:
    """The name of some bytes."""
    return hashlib.sha256(data).hexdigest()


def _is_readable(path: str) -> bool:
    try:
        status = os.stat(path)  # noqa: PTH116
    except OSError:
        return False
    return stat.S_ISREG(status.st_mode) and status.st_size <= MAX_BYTES


def _names(folder: str, patterns: Iterable[str]) -> tuple[str, ...]:
    try:
        names = os.listdir(folder)  # noqa: PTH208
    except OSError:
        return ()
    first, one = _one_of(tuple(patterns))
    return tuple(sorted(name for name in names if (first is None or name[0] in first) and one.match(name)))


@functools.cache
def _one_of(patterns: tuple[str, ...]) -> tuple[frozenset[str] | None, re.Pattern[str]]:
    """What names begin with that match one of the shell's patterns, None for anything, and the pattern of all: folders may
    hold thousands of names."""
    first = frozenset(pattern[0] for pattern in patterns)
    is_any = bool(first & set("*?[")) or os.name == "nt"
    one = re.compile("|".join(map(fnmatch.translate, patterns)), re.IGNORECASE if os.name == "nt" else 0)
    return (None if is_any else first), one


def _listing(root: str) -> Listing:
    files: set[str] = set()
    readable: list[str] = []
    folders: set[str] = set()
    texts: list[str] = []
    configs: list[str] = []
    has_links = False
    todo = [root]
    while todo:
        folder = todo.pop()
        folders.add(folder)
        try:
            entries = list(os.scandir(folder))
        except OSError:
            continue
        for entry in entries:
            name = entry.name
            size = _size(entry) if name.endswith(".py") else None
            if size is not None:
                files.add(entry.path)
                readable += [entry.path] if size <= MAX_BYTES else []
            elif name.endswith(TEXTS):
                texts.append(entry.path)
            elif name.endswith(CONFIGS):
                if len(configs) <= _MOST_CONFIGS and (_size(entry) or _LARGEST_CONFIG) < _LARGEST_CONFIG:
                    configs.append(entry.path)
            elif not name.startswith(".") and name not in _SKIPPED and entry.is_dir(follow_symlinks=False):
                todo.append(entry.path)
            else:
                has_links = has_links or (entry.is_symlink() and os.path.isdir(entry.path))  # noqa: PTH112
        if len(files) > _MOST_LISTED:
            return Listing(frozenset(), (), frozenset(), (), (), has_links, is_whole=False)
    return Listing(
        frozenset(files),
        tuple(sorted(readable)),
        frozenset(folders),
        tuple(sorted(texts)),
        tuple(sorted(configs)) if len(configs) <= _MOST_CONFIGS else (),
        has_links,
        is_whole=True,
    )


def _size(entry: os.DirEntry[str]) -> int | None:
    """The bytes of a file, or of the one that a link leads to; None for anything else, such as a link to itself."""
    try:
        return entry.stat().st_size if entry.is_file() else None
    except OSError:
        return None
