"""All scripts of one run: each parsed once and only when something asks, with the programs that it is part of.

A program is a script that is started and all first-party modules that it reaches. A file belongs to every program that
reaches it; something is missing only where none of their scripts has it.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path

from speedlint.ask.script import Options, Script
from speedlint.disk import Disk, Mark, digest, words
from speedlint.facts import syntax
from speedlint.facts.rows import Rows
from speedlint.facts.store import Store
from speedlint.program.imports import Imports, Known, absolute
from speedlint.solve import configs, heirs
from speedlint.solve.flow import Flow
from speedlint.solve.names import Names
from speedlint.source import Source, SourceError

_PRINTS = re.compile(rb"(?m)^[ \t]*print[ \t]+[\"']")
_FRAMES = 12_000
"""Python frames for values that flow through as many steps as ``Flow`` takes on one stack, about ten each."""
_MOST_IMPORTERS = 64
"""Files that import a module and speak of one of its functions: each is read."""
_MOST_BYTES = 400_000
"""Of the files that import a module and may call what it defines: reading as much takes a quarter of a second."""
_MOST_USERS = 8
"""Files that import a module, or train and may be handed its objects: any call in them may be one of a method. With 64 the
largest repositories of the corpus cost three times as much, and no finding is new."""


_BYTES_A_ROW = 250
"""Of memory: its node, where it was looked at, and its bindings; measured on timm and three repositories of the corpus."""
_BYTES_AN_ANSWER = 850
"""Of memory, measured on the same."""


class Cache:
    """What holds of a file's text whatever stands around it, kept while files are edited and programs made anew."""

    def __init__(self, store: Store | None = None) -> None:
        self._store = store or Store()
        self._sources: dict[Path, tuple[Source, Names]] = {}
        self._rows: dict[str, Rows] = {}
        self._size = 0
        self.imports = Known()

    def source(self, path: Path, data: bytes) -> tuple[Source, Names]:
        """The parsed file and its names. Raises SourceError."""
        known = self._sources.get(path)
        if known is None or not known[0].holds(data):
            if known is not None:
                self._size -= _size(known[0])
            source = self._parsed(path, data)
            known = self._sources[path] = (source, Names(source))
            self._size += _size(source)
        return known

    def _parsed(self, path: Path, data: bytes) -> Source:
        name = digest(data)
        rows = self._rows.get(name) or self._store.rows(name)
        source = Source.parse(path, data, rows)
        if rows is None:
            self._store.keep_rows(name, source.tree.rows)
        self._rows[name] = source.tree.rows
        return source

    def held(self) -> int:
        """The bytes of memory, about, that the nodes of all files take."""
        return self._size

    def drop(self) -> None:
        """Lets all nodes and names go, which refer to each other, and keeps their rows: in the store where that is on disk,
        else in memory."""
        for source, names in self._sources.values():
            source.tree.nodes.clear()
            vars(source).clear()
            vars(names).clear()
        self._sources.clear()
        self._size = 0
        if self._store.path is not None:
            self._store.flush()
            self._rows.clear()


def _size(source: Source) -> int:
    """The bytes of memory, about, that the nodes of a file take."""
    return _BYTES_A_ROW * len(source.tree.rows.kind)


class Program:
    """All scripts of one run.

    ``asked`` are the files that findings are reported in: what is slow in another one is reported where one of these
    reaches it. ``disk`` gives files as they are, or as they would be after edits, then with the same ``cache``.
    """

    def __init__(
        self,
        options: Options,
        disk: Disk | None = None,
        cache: Cache | None = None,
        asked: Iterable[Path] = (),
    ) -> None:
        sys.setrecursionlimit(max(sys.getrecursionlimit(), _FRAMES))
        self.options = options
        self._asked = frozenset(map(absolute, asked))
        self.flow = Flow(_source_order)
        self.disk = disk or Disk()
        self._cache = cache or Cache()
        self._imports = Imports(self.disk, self._cache.imports)
        self._scripts: dict[Path, Script | None] = {}
        self._marked: dict[tuple[Path, tuple[Mark, ...]], tuple[Path, ...]] = {}
        self._held_together: dict[tuple[frozenset[Path], tuple[Mark, ...]], frozenset[Path]] = {}
        self._said: dict[tuple[frozenset[Path], Mark], bool] = {}
        self._users: dict[tuple[Path, tuple[Mark, ...], int], tuple[Path, ...]] = {}
        self._configs: dict[Path, configs.Entry | None] = {}
        self._upward: dict[Path, tuple[Path, ...]] = {}
        self._tests: dict[Path, bool] = {}
        self._together: dict[Path, frozenset[Path]] = {}
        self._renamed: dict[frozenset[Path], frozenset[str]] = {}
        self._left_open: dict[frozenset[Path], frozenset[str]] = {}
        self._bases: dict[frozenset[Path], dict[str, list[Path]]] = {}
        self._sets: dict[frozenset[Path], frozenset[Path]] = {}
        """Equal sets are one object: comparing two costs more than what is asked with them."""

    # Scripts

    def script(self, path: Path) -> Script:
        """The script at ``path``. Raises SourceError and OSError."""
        key = absolute(path)
        found = self._scripts.get(key)
        if found is None:
            found = self._scripts[key] = self._parsed(path)
        return found

    def reached(self, path: Path) -> Script | None:
        """The script at ``path``, or None where it cannot be read as Python."""
        if path in self._scripts:
            return self._scripts[path]
        key = absolute(path)
        if key not in self._scripts:
            try:
                self._scripts[key] = self._parsed(path) if self.disk.is_readable(str(path)) else None
            except (SourceError, OSError):
                self._scripts[key] = None
        return self._scripts[key]

    def _parsed(self, path: Path) -> Script:
        try:
            source, names = self._cache.source(path, self.disk.code(path))
        except SourceError:
            self.disk.read(path)
            raise
        self.disk.syntax(str(path), source.tree.rows.meaning)
        source.when_text_is_asked(lambda: self.disk.read(path))
        return Script(source, names, self, self.options)

    def is_asked(self, path: Path) -> bool:
        """Whether findings are reported in a file; see ``asked``."""
        return absolute(path) in self._asked

    def config(self, path: Path) -> configs.Entry | None:
        """The YAML or JSON configuration at ``path``; None where it cannot be read as one."""
        if path not in self._configs:
            try:
                self._configs[path] = configs.parsed(path, self.disk.read(path))
            except OSError:
                self._configs[path] = None
        return self._configs[path]

    # Around a script

    @property
    def bounds(self) -> tuple[str, ...]:
        """What was not looked at so far since there was too much, in a sentence each."""
        return tuple(self._imports.bounds)

    def held(self) -> int:
        """The bytes of memory, about, that what was found out takes."""
        return _BYTES_AN_ANSWER * len(self.flow)

    def close(self) -> None:
        """Lets go what was found out, of which much refers to each other: finding all that nothing else refers to would take
        longer than finding it out."""
        self.flow.clear()
        for script in self._scripts.values():
            if script is not None:
                vars(script).clear()

    def root(self, path: Path) -> Path:
        """The folder of the project that a file belongs to."""
        return self._imports.root(absolute(path))

    def is_among_tests(self, path: Path) -> bool:
        """Whether a file is one of tests by its place and name alone."""
        found = self._tests.get(path)
        if found is None:
            inside = path.parts[len(self.root(path).parts) :]
            is_named = path.stem.endswith("_test") or path.stem == "conftest"
            found = self._tests[path] = is_named or any(part in ("tests", "test") for part in inside[:-1])
        return found

    def module(self, script: Script, dotted: str) -> tuple[Path, str] | None:
        """The first-party file a dotted name leads into as ``script`` imports it, and what is left of the name."""
        return self._imports.module(script.key, dotted)

    def lacking(self, script: Script, dotted: str) -> str | None:
        """The part of a module's name that surely leads nowhere as ``script`` imports it; None where it may not."""
        return self._imports.lacking(script.key, dotted)

    def is_imported(self, script: Script) -> bool:
        """Whether any file of the project imports ``script``'s module."""
        return bool(self._imports.importers(script.key))

    def is_always_with(self, script: Script, other: Script) -> bool:
        """Whether each program that ``script`` is part of reaches ``other``."""
        return other is script or self._imports.are_always_together(script.key, other.key)

    def is_met(self, script: Script, other: Script) -> bool:
        """Whether some program reaches both of two files: a file imports both, or one of them the other."""
        return other is script or not set(self.upward_files(script)).isdisjoint(self.upward_files(other))

    def is_of_python_2(self, script: Script) -> bool:
        """Whether each program that ``script`` is part of imports a file with ``print "text"``, which no Python 3 parses."""
        printing = self._marked_others(script, (_PRINTS,))
        return any(self.reached(path) is None and self._imports.are_always_together(script.key, path) for path in printing)

    def is_left_out(self, script: Script) -> bool:
        """Whether nothing imports ``script``, a module of a package whose other modules are imported."""
        return self._imports.is_left_out(script.key)

    def is_for_notebooks(self, script: Script, name: str) -> bool | None:
        """Whether a notebook beside ``script`` that imports it holds a name; None where no notebook imports it."""
        notebooks = self._imports.notebooks(script.key)
        return any(self.disk.mentions(each, name.encode()) for each in notebooks) if notebooks else None

    def around(self, path: Path) -> tuple[Path, ...]:
        """The files of the programs that a file is part of, itself first."""
        return (absolute(path), *self._imports.around(absolute(path)))

    def renamed(self, script: Script) -> frozenset[str]:
        """The names that ``as`` gives in the files ``around`` a script: what these hand on may have them."""
        together = self.together(script)
        if together not in self._renamed:
            around = self.around(script.path)
            self._renamed[together] = frozenset(name for path in around for name in self.disk.renamed(str(path)))
        return self._renamed[together]

    def left_open(self, script: Script) -> frozenset[str]:
        """The names of the methods that a class of the files ``around`` a script leaves for others to define, or that three
        classes of them have."""
        together = self.together(script)
        if together not in self._left_open:
            around = [*map(str, self.around(script.path))]
            counted = Counter(name for path in around for name in self.disk.methods(path))
            often = (name for name, count in counted.items() if count >= heirs.FAMILY)
            self._left_open[together] = frozenset((*often, *(name for path in around for name in self.disk.left_open(path))))
        return self._left_open[together]

    def deriving(self, script: Script, name: str) -> list[Path]:
        """The files ``around`` a script that may derive a class from one of a name, none of them parsed."""
        together = self.together(script)
        if together not in self._bases:
            found = self._bases[together] = {}
            for path in self.around(script.path):
                for base in self.disk.bases(str(path)) if self._is_near(path) else ():
                    found.setdefault(base, []).append(path)
        return self._bases[together].get(name, [])

    def is_whole(self, script: Script) -> bool:
        """Whether all files of the programs that ``script`` is part of are ``around`` it: they are not too many."""
        return self._imports.is_whole(script.key)

    def together(self, script: Script) -> frozenset[Path]:
        """The files ``around`` a script, itself included: the same for scripts of the same programs."""
        if script.key not in self._together:
            found = frozenset(self.around(script.path))
            self._together[script.key] = self._sets.setdefault(found, found)
        return self._together[script.key]

    def importers(self, script: Script, *marks: Mark, most: int | None = None) -> Iterator[Script]:
        """The project's files that import ``script``'s module, also by way of a package's ``__init__``, in path order; with
        ``marks``, those whose text holds one of them. None where there are too many.
        """
        most = most if most is not None else _MOST_IMPORTERS if marks else _MOST_USERS
        key = (script.key, marks, most)
        if key not in self._users:
            paths = self._imports.users(script.key)
            chosen = self._imports.holding(paths, marks) if marks else paths
            is_much = self.fitting(chosen, _MOST_BYTES) < len(chosen)
            if len(chosen) > most or is_much:
                limit = f"{most} files" if len(chosen) > most else f"{_MOST_BYTES // 1000} kB together"
                what = f"calls were not followed into all files that import a module, where they are over {limit}"
                self._imports.bound(what, script.key)
            self._users[key] = tuple(chosen) if len(chosen) <= most and not is_much else ()
        return self._readable(self._users[key])

    def callers(self, script: Script, method: str) -> Iterator[Script]:
        """Those of the ``importers`` that may call a method: all where they are few, else those whose text names it."""
        few = len(self._imports.users(script.key)) <= _MOST_USERS
        return self.importers(script) if few else self.importers(script, f".{method}(".encode())

    def makers(self, script: Script, classes: Iterable[str]) -> Iterator[Script]:
        """Those of the ``importers`` that may make an object of one of some classes: all where they are few, else those
        whose text names one. None where these are many: what each of many programs makes is handed something else."""
        few = len(self._imports.users(script.key)) <= _MOST_USERS
        return self.importers(script, *(() if few else (words(classes),)), most=_MOST_USERS)

    def upward_files(self, script: Script) -> tuple[Path, ...]:
        """The files of ``upward``, none of them parsed."""
        if script.key not in self._upward:
            self._upward[script.key] = tuple(self._imports.upward(script.key))
        return self._upward[script.key]

    def upward(self, script: Script) -> Iterator[Script]:
        """``script`` and the scripts that import it, through others too, nearest first."""
        yield script
        yield from self._readable(self.upward_files(script)[1:])

    def distances(self, script: Script) -> dict[Path, int]:
        """Through how many files those of the project are led to the script by the names that they import, nearest first:
        the first say what it defines, the next what those do. Who imports a package alone is not among them."""
        return self._imports.distances(script.key)

    def holding(self, paths: Iterable[Path], *marks: Mark) -> list[Path]:
        """Those of some files whose text holds one of some marks, in their order."""
        return self._imports.holding(paths, marks)

    def fitting(self, paths: Sequence[Path], most: int) -> int:
        """How many of some files, from the first on, hold no more than ``most`` bytes together."""
        return self.disk.fitting([*map(str, paths)], most)

    def bound(self, script: Script, what: str) -> None:
        """Notes that something was not looked at in the project of a script, since there was too much."""
        self._imports.bound(what, script.key)

    def possible_starts(self, script: Script) -> Iterator[Script]:
        """Those of ``upward`` that nothing imports, or whose text speaks of ``__main__``."""
        paths = self.upward_files(script)
        found = (path for path in paths if not self._imports.importers(path) or self._imports.mentions(path, (b"__main__",)))
        return self._readable(found)

    def others(self, script: Script, *marks: Mark) -> Iterator[Script]:
        """The other scripts of the programs that ``script`` is part of, nearest first: those that import it, through others
        too, and all that these and it reach. With ``marks``, those whose text holds one of them; the rest is not parsed.
        """
        return self._readable(self._marked_others(script, marks))

    def number_of_others(self, script: Script, *marks: Mark) -> int:
        """How many ``others`` there are, none of them parsed."""
        return len(self._marked_others(script, marks))

    def few_others(self, script: Script, *marks: Mark) -> Iterator[Script]:
        """Like ``others``, but none where there are too many."""
        paths = self._marked_others(script, marks)
        return self._readable(paths if len(paths) <= _MOST_USERS else ())

    def _marked_others(self, script: Script, marks: tuple[Mark, ...]) -> tuple[Path, ...]:
        key = (script.key, marks)
        if key not in self._marked:
            held = self._holding_together(script, marks) if marks else None
            around = self._imports.around(script.key)
            self._marked[key] = around if held is None else tuple(each for each in around if each in held)
        return self._marked[key]

    def _holding_together(self, script: Script, marks: tuple[Mark, ...]) -> frozenset[Path]:
        """Those of the files ``together`` with a script whose text holds one of some marks."""
        key = (self.together(script), marks)
        if key not in self._held_together:
            self._held_together[key] = frozenset(self._imports.holding(self.around(script.path), marks))
        return self._held_together[key]

    def mentions(self, script: Script, mark: Mark) -> bool:
        """Whether the text of ``script``, or of another one of its programs, holds a mark."""
        key = (self.together(script), mark)
        if key not in self._said:
            self._said[key] = any(self._imports.mentions(each, (mark,)) for each in self.around(script.path))
        return self._said[key]

    def _readable(self, paths: Iterable[Path]) -> Iterator[Script]:
        return (found for found in map(self.reached, filter(self._is_near, paths)) if found is not None)

    def _is_near(self, path: Path) -> bool:
        """Whether a file may take part in a program that a file is part of which findings are reported in."""
        is_near = not self._asked or path in self._near or not self._imports.is_large(path)
        if not is_near:
            self._imports.bound(
                "of a large project the files were read that lead to the checked ones, or these to them", path
            )
        return is_near

    @cached_property
    def _near(self) -> frozenset[Path]:
        """The files that are read of large projects; see ``Imports.led_to``."""
        return self._imports.led_to(self._asked)


def _source_order(question: Hashable) -> tuple[str, int, int]:
    """Where the code stands that a question is about: files by path, what an expression is made of before itself."""
    parts = question if isinstance(question, tuple) else (question,)
    for part in parts:
        if isinstance(part, syntax.Node):
            return part.tree.path, part.tree.rows.last[part.row], -part.row
        if isinstance(part, tuple):
            return _source_order(part)
    return "", 0, 0
