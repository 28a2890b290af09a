"""What is known of files' contents, and what was found in them, on disk: in one database in the user's cache folder.

Facts are named by the digest of the bytes that they are read from; what cannot be read, is of another format or is another
user's counts as absent, and what cannot be written is not kept. Two runs may use it at once.
"""

from __future__ import annotations

import contextlib
import marshal
import os
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import sqlite3

    from speedlint.facts.rows import Rows

VARIABLE = "SPEEDLINT_CACHE_DIR"
"""The environment variable that names another folder."""
_FILE = "store.sqlite3"
_MARSHAL = 4
"""The version that writes a string once that stands in many places."""
_MOST_BYTES = 256 << 20
"""What the database may hold; beyond it what was not used for longest goes."""
_MOST_UNWRITTEN = 8 << 20
"""Bytes of rows that wait in memory to be written."""
_PATIENCE = 0.5
"""Seconds to wait for another run that writes."""


def folder() -> Path:
    """Where the cache is: by the variable, else where the system keeps such things."""
    named = os.environ.get(VARIABLE)
    if named:
        return Path(named)
    if sys.platform == "darwin":
        return Path("~/Library/Caches/speedlint").expanduser()
    if os.name == "nt":
        return Path(os.environ.get("LOCALAPPDATA") or "~/AppData/Local").expanduser() / "speedlint" / "cache"
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "speedlint"


class Store:
    """The database. Every method works without one: it then knows nothing and keeps nothing."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self._connection: sqlite3.Connection | None = None
        self._is_open = False
        self._new: dict[tuple[str, str], bytes] = {}
        self._used: set[tuple[str, str]] = set()
        self._waiting = 0

    @classmethod
    def of_user(cls) -> Store:
        """The user's own; none where its folder cannot be made or is another user's."""
        with contextlib.suppress(OSError, RuntimeError):
            where = folder()
            where.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not hasattr(os, "getuid") or where.stat().st_uid == os.getuid():
                return cls(where / _FILE)
        return cls()

    def rows(self, digest: str) -> Rows | None:
        """The rows of the file with these contents."""
        from speedlint.facts.rows import MEANING, Rows

        found = self._get("facts", f"{MEANING}-{digest}")
        if found is not None:
            with contextlib.suppress(ValueError, EOFError, TypeError):
                return Rows.load(found)
        return None

    def keep_rows(self, digest: str, rows: Rows) -> None:
        """Keeps the rows of a file."""
        from speedlint.facts.rows import MEANING

        if self.path is not None:
            dumped = self._new["facts", f"{MEANING}-{digest}"] = rows.dump()
            self._waiting += len(dumped)
            if self._waiting > _MOST_UNWRITTEN:
                self.flush()

    def value(self, kind: str, key: str) -> Any:
        """The plain value (tuples, lists, dicts, strings, bytes, numbers) under a key; None where there is none."""
        found = self._get(kind, key)
        if found is not None:
            with contextlib.suppress(ValueError, EOFError, TypeError):
                return marshal.loads(found)
        return None

    def keep(self, kind: str, key: str, value: Any) -> None:
        """Keeps a plain value."""
        self._new[kind, key] = marshal.dumps(value, _MARSHAL)

    def flush(self) -> None:
        """Writes what is kept, all or nothing."""
        if not self._new and not self._used:
            return
        connection = self._open()
        if connection is None:
            return
        new = [(kind, key, zlib.crc32(data), len(data), data) for (kind, key), data in self._new.items()]
        with self._forgiving():
            with connection:
                connection.executemany("insert or replace into kept values (?, ?, ?, ?, ?, strftime('%s'))", new)
                connection.executemany("update kept set used = strftime('%s') where kind = ? and key = ?", [*self._used])
            self._prune(connection)
        self._new.clear()
        self._used.clear()
        self._waiting = 0

    def _prune(self, connection: sqlite3.Connection) -> None:
        (size,) = connection.execute("select coalesce(sum(size), 0) from kept").fetchone()
        if size <= _MOST_BYTES:
            return
        with connection:
            for kind, key, held in connection.execute("select kind, key, size from kept order by used, key").fetchall():
                if size <= _MOST_BYTES // 2:
                    break
                connection.execute("delete from kept where kind = ? and key = ?", (kind, key))
                size -= held
        connection.execute("vacuum")

    def _get(self, kind: str, key: str) -> bytes | None:
        if (kind, key) in self._new:
            return self._new[kind, key]
        connection = self._open()
        if connection is None:
            return None
        found = None
        with self._forgiving():
            found = connection.execute("select crc, data from kept where kind = ? and key = ?", (kind, key)).fetchone()
        if found is None or not isinstance(found[1], bytes) or zlib.crc32(found[1]) != found[0]:
            return None
        self._used.add((kind, key))
        return found[1]

    def _open(self) -> sqlite3.Connection | None:
        if self._is_open or self.path is None:
            return self._connection
        self._is_open = True
        for _ in range(2):
            try:
                self._connection = _connected(self.path)
            except Exception as error:
                if not _is_garbage(error) or not _removed(self.path):
                    break
            else:
                break
        return self._connection

    @contextlib.contextmanager
    def _forgiving(self) -> Iterator[None]:
        """Goes on without the database where it fails, and takes away what is none."""
        import sqlite3

        try:
            yield
        except sqlite3.Error as error:
            self._connection = None
            if _is_garbage(error) and self.path is not None:
                _removed(self.path)


def clean() -> int:
    """Takes the user's cache away; returns the bytes that it held. Raises OSError."""
    size = 0
    for file in (folder() / f"{_FILE}{end}" for end in ("", "-journal")):
        if file.is_file():
            size += file.stat().st_size
            file.unlink()
    return size


def _connected(path: Path) -> sqlite3.Connection:
    import sqlite3

    # Threads take turns: one waits while another, with a stack of its own, answers.
    connection = sqlite3.connect(path, timeout=_PATIENCE, check_same_thread=False)
    connection.execute("pragma synchronous = off")
    connection.execute(
        "create table if not exists kept (kind text, key text, crc integer, size integer, data blob, used integer, "
        "primary key (kind, key)) without rowid"
    )
    return connection


def _is_garbage(error: Exception) -> bool:
    import sqlite3

    return type(error) is sqlite3.DatabaseError


def _removed(path: Path) -> bool:
    try:
        path.unlink()
    except OSError:
        return False
    return True
