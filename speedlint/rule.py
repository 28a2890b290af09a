"""What a rule is and what it reports: plain frozen values, no behaviour."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from speedlint.ask.script import Script
    from speedlint.facts import syntax
    from speedlint.source import Source


class Risk(enum.IntEnum):
    """What may change when a fix is applied; a higher value changes more."""

    EXACT = 0
    """The same training, bit for bit."""
    NUMERIC = 1
    """The same mathematics; rounding or the random stream may differ."""
    BEHAVIOR = 2
    """What is computed, logged or saved, or when, may change."""


class Level(enum.Enum):
    """How much a finding matters: notes are shown only when asked for."""

    WARNING = "warning"
    NOTE = "note"


class Worth(enum.Enum):
    """A finding's share of the time of its step or, for what runs once an epoch, of its epoch."""

    HIGH = "high"
    """A tenth or more."""
    MEDIUM = "medium"
    """Between a fiftieth and a tenth."""
    LOW = "low"
    """Between half a percent and a fiftieth. What is less is a note."""
    UNKNOWN = "unknown"
    """It may be any of these: what decides is not in the script."""


class Estimate(NamedTuple):
    """What a finding is worth, and what that rests on, in one clause; the clause may be empty where nothing is known."""

    worth: Worth
    because: str


class Edit(NamedTuple):
    """Replace the bytes ``start:end`` of one file by ``text`` (line breaks as ``\\n``; the writer uses the file's own)."""

    path: Path
    start: int
    end: int
    text: str


class Fix(NamedTuple):
    """Edits that are applied together or not at all.

    ``since`` is the first torch release, such as ``(2, 3)``, in which the new spelling works; the engine shows the fix
    instead of offering it where the target release is older or, for releases after 1.13, unknown.
    """

    edits: tuple[Edit, ...]
    risk: Risk
    since: tuple[int, int] | None = None


class Related(NamedTuple):
    """Another place that explains a finding: where a value is set, which call reaches the line."""

    source: Source
    node: syntax.Node
    message: str


class Finding(NamedTuple):
    """One slow place.

    ``level`` None means: derive it from how often the node runs. ``advice`` says what to write instead; a finding without
    a fix must have it, together with the reason why speedlint did not write it. ``worth`` None means: what the rule's
    findings are worth. ``case`` names the item under "Why it is slow" that speaks of it, where the rule's documentation has
    several. ``since`` is the first torch release that has what is advised, where it is not that of the fix or of the rule.
    """

    node: syntax.Node
    message: str
    fix: Fix | None = None
    advice: str = ""
    level: Level | None = None
    related: tuple[Related, ...] = ()
    worth: Estimate | None = None
    case: str = ""
    since: tuple[int, int] | None = None


_NOT_KNOWN = Estimate(Worth.UNKNOWN, "")


class Rule(NamedTuple):
    """A rule: its code, the node types it looks at, and the generator that looks.

    ``check`` is called once for each node of type ``on`` (a whole-file rule says ``syntax.Module``). A file that holds none
    of the ``triggers`` is not looked at; with ``often``, lines that training does not run again and again are not either.
    ``worth`` is what its findings are worth in a training step where nothing more is known. Findings of any rule in one
    file for whose nodes ``cause`` gives the same text are one finding with several places. ``off`` rules run only when
    selected. ``on_gpu`` says that what it finds costs time on a GPU alone, ``since`` which torch release first had its cure.
    The file's name is the rule's name and its docstring its documentation; the registry fills in both. The code,
    ``triggers`` and ``off`` it reads from the file's text, where they are written out; the rest is there once it is loaded.
    """

    code: str
    on: type[syntax.Node] | tuple[type[syntax.Node], ...]
    check: Callable[[Any, Script], Iterator[Finding]]
    triggers: tuple[bytes, ...]
    worth: Estimate = _NOT_KNOWN
    cause: Callable[[Script, syntax.Node], str] | None = None
    often: bool = False
    off: bool = False
    on_gpu: bool = False
    since: tuple[int, int] | None = None
    name: str = ""
    docs: str = ""
