"""Sums in the entries of a dict, ``stats["hits"] += ...``: where they start from zero, and who reads them meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from speedlint.ask.script import Script
from speedlint.cures.filling import filling_loop
from speedlint.edits import CannotEdit
from speedlint.facts import syntax
from speedlint.shapes.sync.accumulators import first_binding, is_written_zero
from speedlint.solve.loops import Loop
from speedlint.solve.names import Binding
from speedlint.solve.unpacking import key_of, written
from speedlint.source import is_target


class Entry(NamedTuple):
    """One entry of a dict that a loop fills.

    Attributes:
        base: the variable that holds the dict.
        start: where it is bound to the dict.
        key: the entry's key.
        zero: the zero that it starts from.
        loop: the loop that adds to it; when it is over, the dict may be given away.
    """

    base: syntax.Name
    start: Binding
    key: str
    zero: syntax.BaseExpression
    loop: Loop


def summed(script: Script, target: syntax.Subscript, statement: syntax.Node) -> Entry:
    """The entry that a statement adds to. Raises CannotEdit where not all is known of it until its loop is over."""
    base, key = target.value, key_of(target)
    if not isinstance(base, syntax.Name) or not isinstance(key, str):
        raise CannotEdit(f"which entry `{script.text(target)}` is, is not known")
    start = first_binding(script, base)
    value = written(start) if start is not None else None
    entries = script.values.written_entries(value) if value is not None else None
    if start is None or entries is None:
        raise CannotEdit(f"`{base.value}` is not only a dict that is written out in this function")
    loop = filling_loop(script, statement, base, start)
    zero = entries.get(key) or _set_before(script, start, base, key, loop)
    if zero is None or not is_written_zero(script, zero):
        raise CannotEdit(f"where `{script.text(target)}` starts from zero is not seen")
    return Entry(base, start, key, zero, loop)


def uses_meanwhile(script: Script, entry: Entry) -> Iterator[syntax.Subscript]:
    """Where the entry is written or read before its loop is over. Raises CannotEdit where the dict may be read as a whole,
    or under another name."""
    source = script.source
    for use in script.names.uses(entry.base):
        if use is entry.start.node or script.order.runs_before(entry.loop, use):
            continue
        whole = source.parents[use]
        if not isinstance(whole, syntax.Subscript) or whole.value is not use or (key := key_of(whole)) is None:
            raise CannotEdit(f"`{use.value}` is used before the loop is over, on line {source.line(use)}")
        if key == entry.key:
            yield whole


def _set_before(script: Script, start: Binding, base: syntax.Name, key: str, loop: Loop) -> syntax.BaseExpression | None:
    """What ``stats["hits"] = ...`` gives an entry on every way to the loop."""
    for use in script.names.uses(base):
        target = script.source.parents[use]
        if not isinstance(target, syntax.Subscript) or key_of(target) != key or not is_target(script.source, target):
            continue
        statement = script.source.enclosing(target, syntax.Assign)
        if isinstance(statement, syntax.Assign) and script.order.runs_before(statement, loop):
            is_alone = len(statement.targets) == 1 and statement.targets[0].target is target
            return statement.value if is_alone and start in script.names.reaching(use) else None
    return None
