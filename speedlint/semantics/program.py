"""The first-party modules a script reaches."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from speedlint.semantics.script import Options, Script


class Program:
    """All scripts of one run, parsed and understood lazily and once.

    ``read`` returns a file's bytes; it raises OSError. Pass another one to look at files as they would be after edits.
    """

    def __init__(self, options: Options, read: Callable[[Path], bytes] = Path.read_bytes) -> None: ...

    def script(self, path: Path) -> Script:
        """The script at ``path``. Raises SourceError and OSError."""
        ...
