"""``ask --format text``: how often the line runs and why, then a table of its expressions."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from speedlint.diagnostic import Place
from speedlint.known import Known, Line
from speedlint.output.terminal import console, shown, visible
from speedlint.torch.words import Frequency, Role
from speedlint.torch.words import Place as Where

OFTEN = {
    Frequency.STEP: "in every training step",
    Frequency.EVAL_STEP: "in every evaluation step",
    Frequency.THROTTLED: "every so many steps",
    Frequency.EPOCH: "about once an epoch",
    Frequency.ONCE: "once",
}
_PLACES = {Where.HOST: "host", Where.GPU: "GPU", Where.EITHER: "either"}
_LONGEST = 60
_WIDEST = 400
_MOST_CALLERS = 5
_COLUMNS = ("expression", "column", "role", "place", "value", "stands for")


def print_line(line: Line) -> None:
    """Prints what is known of a line; where no terminal is, nothing is broken to fit one."""
    out = console()
    if not sys.stdout.isatty():
        out.width = max(out.width, _WIDEST)
    out.print(Group(*_parts(line)))


def _parts(line: Line) -> Iterator[RenderableType]:
    place = Text(f"{visible(shown(line.path))}:{line.number}", "bold")
    if line.frequency is None:
        yield place + Text(": no code begins on this line", "default not bold")
        return
    yield place + Text(f": runs {OFTEN[line.frequency]}", "default not bold")
    yield Text(f"{line.number} | ", "blue") + Text(visible(line.text.replace("\t", "    ")).rstrip(), "default")
    yield from _places("why", line.why)
    others = [each for each in line.callers if each not in line.why]
    yield from _places("also", others[:_MOST_CALLERS])
    if len(others) > _MOST_CALLERS:
        yield Padding(Text(f"and {len(others) - _MOST_CALLERS} more calls"), (0, 0, 0, 8))
    yield Text("  gpu:  " + ("the program trains on a GPU" if line.on_gpu else "nothing shows that a GPU is used"))
    if line.expressions:
        yield Text()
        yield _table(line)


def _places(label: str, places: Sequence[Place]) -> Iterator[RenderableType]:
    for number, each in enumerate(places):
        head = Text(f"  {'' if number else f'{label}:':<6}", "bold")
        yield head + Text(_at(each), "default not bold")


def _at(place: Place) -> str:
    return visible(f"{shown(place.path)}:{place.line}: {place.message}")


def _table(line: Line) -> Table:
    differ = any(each.frequency is not line.frequency for each in line.expressions)
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for name in (*_COLUMNS, "runs" if differ else ""):
        table.add_column(name, overflow="fold")
    for each in line.expressions:
        cells = (_cut(each.text), str(each.column), *_nature(each), _value(each), _stands_for(each))
        table.add_row(*map(Text, cells), "" if each.frequency is line.frequency else OFTEN[each.frequency])
    return table


def _nature(known: Known) -> tuple[str, str]:
    return ("?", "") if known.role is Role.UNKNOWN else (known.role.value, _PLACES[known.place])


def _value(known: Known) -> str:
    if not known.constant:
        return ""
    value = _cut(repr(known.constant[0]))
    return f"{value}, set in {_where(known.set_at)}" if known.set_at is not None else value


def _stands_for(known: Known) -> str:
    parts = [visible(known.name)] if known.name else []
    found = (known.definition, known.made)
    parts += [f"{visible(each.message)} in {_where(each)}" for each in found if each is not None]
    return ", ".join(parts)


def _where(place: Place) -> str:
    return visible(f"{shown(place.path)}:{place.line}")


def _cut(text: str) -> str:
    line = visible(" ".join(text.split()))
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}..."
