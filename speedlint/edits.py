"""Builders of edits: the smallest change of text that does one thing to one place of a file.

Each takes the source and a node of it, and returns one edit or a tuple of edits for a ``Fix``. Where the text cannot be
edited safely they raise CannotEdit, whose text a rule can show as advice. Lines given to them are written with ``\\n``.
Edits of one fix may touch each other; insertions at one place are joined in the order in which the fix lists them, so
list imports first.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from speedlint.facts import syntax
from speedlint.rule import Edit
from speedlint.source import Source, Span, is_name

_LINES = (syntax.SimpleStatementLine, syntax.SimpleStatementSuite)
_IMPORTS = (syntax.Import, syntax.ImportFrom)
_STRINGS = (syntax.SimpleString, syntax.FormattedString, syntax.TemplatedString)


class CannotEdit(Exception):  # noqa: N818
    """A place whose text cannot be edited safely. ``str()`` says why, such as "it shares its line with other statements"."""


def replace(source: Source, node: syntax.Node, text: str) -> Edit:
    """Replaces the node, its own parentheses included, by ``text``."""
    start, end = source.span(node)
    before, after = source.data[start - 1 : start].decode("latin-1"), source.data[end : end + 1].decode("latin-1")
    if _joins(before, text[:1]):
        text = f" {text}"
    if _joins(text[-1:], after):
        text = f"{text} "
    return Edit(source.path, start, end, text)


def _joins(left: str, right: str) -> bool:
    """Whether the two characters would be read as one word, as in ``return(x)`` without its parentheses."""
    return (left.isalnum() or left == "_") and (right.isalnum() or right == "_")


def add_argument(source: Source, call: syntax.Call, text: str) -> Edit:
    """Adds the argument ``text``, such as ``num_workers=4``, as the last; on its own line where the last one has one."""
    close = source.code_span(call).end - 1
    if not call.args:
        return Edit(source.path, close, close, text)
    last = call.args[-1]
    start, end = source.span(last)
    if isinstance(last.value, syntax.GeneratorExp) and not source.text(last).startswith("("):
        return Edit(source.path, start, end, f"({source.text(last)}), {text}")
    comma = _after_comma(source, end, close)
    at, before, after = (end, ",", "") if comma is None else (comma, "", ",")
    indent = _indent(source, start)
    if indent is None:
        return Edit(source.path, at, at, f"{before} {text}{after}")
    kept_to = _line_end(source, at) if _line_end(source, at) < close else at
    return Edit(source.path, at, kept_to, f"{before}{_decoded(source, at, kept_to)}\n{indent}{text}{after}")


def _after_comma(source: Source, start: int, end: int) -> int | None:
    """Where the comma between the two offsets ends, None where there is none."""
    text = _decoded(source, start, end)
    at = re.sub(r"#[^\r\n]*", lambda comment: " " * len(comment[0]), text).find(",")
    return start + len(text[: at + 1].encode(source.encoding)) if at >= 0 else None


def set_argument(source: Source, call: syntax.Call, name: str, value: str) -> Edit:
    """Gives the keyword argument ``name`` the value ``value``: in its place where it is there, else as a new argument."""
    for arg in call.args:
        if is_name(arg.keyword, name):
            return replace(source, arg.value, value)
    return add_argument(source, call, f"{name}={value}")


def remove_argument(source: Source, arg: syntax.Arg) -> Edit:
    """Removes an argument of a call with its comma, and with its line and the comment on it where it has its own."""
    call = source.parents[arg]
    if not isinstance(call, syntax.Call):
        raise CannotEdit("it is not an argument of a call")
    index = call.args.index(arg)
    is_last = index == len(call.args) - 1
    start, end = source.span(arg)
    comma = _after_comma(source, end, source.code_span(call).end - 1 if is_last else source.span(call.args[index + 1]).start)
    line_end = _line_end(source, comma or end)
    has_line = _indent(source, start) is not None and _is_blank(_decoded(source, comma or end, line_end))
    if is_last and index and not (has_line and comma):
        before = source.span(call.args[index - 1]).end
        if "#" not in _decoded(source, before, start):
            return Edit(source.path, before, line_end if has_line else end, "")
    if has_line:
        return Edit(source.path, _line_start(source, start), _next_line(source, comma or end), "")
    return _remove_from_line(source, start, comma or end)


def _remove_from_line(source: Source, start: int, end: int) -> Edit:
    rest = _decoded(source, end, _line_end(source, end))
    if not rest.strip():
        line = _line_start(source, start)
        start = line + len(source.data[line:start].rstrip(b" \t"))
    elif not rest.lstrip().startswith("#"):
        end += len(rest) - len(rest.lstrip())
    return Edit(source.path, start, end, "")


def insert_before(source: Source, node: syntax.Node, lines: Sequence[str], *, above_comments: bool = False) -> Edit:
    """Puts whole lines above the statement the node stands in: above its decorators, below its comments or, with
    ``above_comments``, above those that speak of it, right over it in its column; not above those that a file begins with.

    The lines get the statement's indentation in front of their own. Raises CannotEdit where the statement does not begin
    its line or is an ``elif``.
    """
    start, indent = _beginning(source, _statement(source, node))
    own = line = source.position(start)[0]
    while above_comments and line > 1 and source.line_text(line - 1).startswith(f"{indent}#"):
        line -= 1
    if 1 < line < own:
        start = source.line_span(line).start
    return Edit(source.path, start, start, _block(lines, indent))


def insert_after(source: Source, node: syntax.Node, lines: Sequence[str]) -> Edit:
    """Puts whole lines below the statement the node stands in, below the comments that end its block.

    Raises CannotEdit where the statement does not end its line or is an ``elif``.
    """
    statement = _statement(source, node)
    _, indent = _beginning(source, statement, may_follow=True)
    end = _ending(source, statement, indent)
    following = _next_line(source, end)
    if following == end:
        return Edit(source.path, end, end, "\n" + _block(lines, indent).rstrip("\n"))
    return Edit(source.path, following, following, _block(lines, indent))


def _block(lines: Sequence[str], indent: str) -> str:
    return "".join(f"{indent}{line}\n" if line.strip() else "\n" for line in lines)


def wrap(source: Source, first: syntax.Node, last: syntax.Node, header: str) -> tuple[Edit, ...]:
    """Puts the sibling statements from ``first`` to ``last`` under ``header``, such as ``with torch.no_grad():``.

    Every line is indented by one unit of the file, except blank ones and those that begin inside a string.
    """
    first, last = _statement(source, first), _statement(source, last)
    if source.parents[_line_of(source, first)] is not source.parents[_line_of(source, last)]:
        raise CannotEdit("the statements do not stand in one block")
    start, indent = _beginning(source, first)
    end = _ending(source, last, indent)
    unit = "\t" if "\t" in indent else source.default_indent
    edits = [Edit(source.path, start + len(indent), start + len(indent), f"{header}\n{indent}{unit}")]
    inside_strings = _lines_inside_strings(source)
    for line in range(source.position(start)[0] + 1, source.position(end)[0] + 1):
        text = source.line_text(line)
        if text.strip() and line not in inside_strings:
            at = source.line_span(line).start + (len(indent) if text.startswith(indent) else 0)
            edits.append(Edit(source.path, at, at, unit))
    return tuple(edits)


def _lines_inside_strings(source: Source) -> set[int]:
    """The lines that begin inside a string."""
    lines: set[int] = set()
    for kind in _STRINGS:
        for node in source.of(kind):
            start, end = source.span(node)
            if len(source.data[start:end].splitlines()) > 1:
                lines.update(range(source.position(start)[0] + 1, source.position(end)[0] + 1))
    return lines


def delete_statement(source: Source, node: syntax.Node) -> tuple[Edit, ...]:
    """Removes a statement: with its line and the comment on it where it is alone there; comments above it stay, and of blank
    lines above and below it one goes too.

    The only statement of a block becomes ``pass``.
    """
    statement = _statement(source, node)
    line = _line_of(source, statement)
    start, end = _first_byte(source, statement), source.span(statement).end
    if isinstance(line, _LINES) and len(line.body) > 1 and isinstance(statement, syntax.BaseSmallStatement):
        index = line.body.index(statement)
        if index + 1 < len(line.body):
            return (Edit(source.path, start, source.span(line.body[index + 1]).start, ""),)
        return (Edit(source.path, source.span(line.body[index - 1]).end, end, ""),)
    block = source.parents[line]
    if isinstance(line, syntax.SimpleStatementSuite) or (isinstance(block, syntax.IndentedBlock) and len(block.body) == 1):
        return (Edit(source.path, start, end, "pass"),)
    start, _ = _beginning(source, statement)
    following = _next_line(source, end)
    above, below = source.position(start)[0] - 1, source.position(end)[0] + 1
    if above and _is_blank_line(source, above) and _is_blank_line(source, below):
        following = _next_line(source, following)
    if following == _line_end(source, end) and source.position(start)[0] > 1:
        start = source.line_span(source.position(start)[0] - 1).end
    return (Edit(source.path, start, following, ""),)


def imports_edit(source: Source, statement: str) -> Edit:
    """Adds the line ``statement``, such as ``import os``, below the imports the file begins with.

    A file that begins with none gets it below its docstring, ``from __future__`` and first comments.
    """
    body = source.module.body
    documented = bool(body) and _is_docstring(body[0])
    above = int(documented)
    while above < len(body) and _is_import(body[above]):
        above += 1
    if above > int(documented):
        end = _line_end(source, source.span(body[above - 1]).end)
        return Edit(source.path, end, end, f"\n{statement}")
    if documented:
        return _paragraph_below(source, source.position(source.span(body[0]).end)[0], statement)
    comments = 0
    while not _is_blank_line(source, comments + 1) and source.line_text(comments + 1).startswith("#"):
        comments += 1
    if comments:
        return _paragraph_below(source, comments, statement)
    start = source.line_span(1).start
    return Edit(source.path, start, start, f"{statement}\n" + ("" if _is_blank_line(source, 1) else "\n"))


def _paragraph_below(source: Source, line: int, text: str) -> Edit:
    end = source.line_span(line).end
    return Edit(source.path, end, end, f"\n\n{text}" + ("" if _is_blank_line(source, line + 1) else "\n"))


def _is_blank_line(source: Source, line: int) -> bool:
    """Whether the line is blank or beyond the end."""
    return line > len(source.line_starts) or not source.line_text(line).strip()


def _is_import(statement: syntax.Node) -> bool:
    return isinstance(statement, syntax.SimpleStatementLine) and all(isinstance(part, _IMPORTS) for part in statement.body)


def _is_docstring(statement: syntax.Node) -> bool:
    match statement:
        case syntax.SimpleStatementLine(body=[syntax.Expr(value=syntax.SimpleString() | syntax.ConcatenatedString())]):
            return True
    return False


def _statement(source: Source, node: syntax.Node) -> syntax.Node:
    """The small or compound statement the node stands in; a line of one statement is that line."""
    while not isinstance(node, (syntax.BaseSmallStatement, syntax.BaseStatement)):
        if isinstance(node, syntax.Module):
            raise CannotEdit("it is no statement")
        node = source.parents[node]
    parent = source.parents[node]
    return parent if isinstance(parent, syntax.SimpleStatementLine) and len(parent.body) == 1 else node


def _line_of(source: Source, statement: syntax.Node) -> syntax.Node:
    return source.parents[statement] if isinstance(statement, syntax.BaseSmallStatement) else statement


def _first_byte(source: Source, statement: syntax.Node) -> int:
    decorators = statement.decorators if isinstance(statement, (syntax.FunctionDef, syntax.ClassDef)) else ()
    return source.span(decorators[0] if decorators else statement).start


def _beginning(source: Source, statement: syntax.Node, *, may_follow: bool = False) -> tuple[int, str]:
    """The start of the statement's first line, and its indentation."""
    line = _line_of(source, statement)
    if isinstance(line, syntax.SimpleStatementSuite):
        raise CannotEdit("it stands on the line of its `if`, loop or function")
    if isinstance(source.parents[line], syntax.If):
        raise CannotEdit("it is an `elif`")
    start = _first_byte(source, line if may_follow else statement)
    indent = _indent(source, start)
    if indent is None:
        raise CannotEdit("other statements stand before it on its line")
    first = source.position(start)[0]
    if first > 1 and source.line_text(first - 1).rstrip(" \t").endswith("\\"):
        raise CannotEdit("its line continues the one above")
    return start - len(indent), indent


def _ending(source: Source, statement: syntax.Node, indent: str) -> int:
    """The end of the statement's last line, or of the comments below it that are indented more deeply."""
    end = source.span(statement).end
    line = _line_of(source, statement)
    if isinstance(statement, syntax.BaseSmallStatement) and source.span(line).end > end and not _ends_line(source, end):
        raise CannotEdit("other statements stand after it on its line")
    last = ahead = source.position(end)[0]
    while isinstance(line, syntax.BaseCompoundStatement) and ahead < len(source.line_starts):
        ahead += 1
        text = source.line_text(ahead)
        if text.lstrip().startswith("#") and text.startswith(indent) and text[len(indent)].isspace():
            last = ahead
        elif text.strip():
            break
    return source.line_span(last).end


def _ends_line(source: Source, offset: int) -> bool:
    return _is_blank(_decoded(source, offset, _line_end(source, offset)).lstrip(" \t;"))


def _is_blank(text: str) -> bool:
    text = text.strip()
    return not text or text.startswith("#")


def _indent(source: Source, offset: int) -> str | None:
    """The whitespace between the start of the line (or its last form feed) and ``offset``, None where there is more."""
    before = _decoded(source, _line_start(source, offset), offset)
    return None if before.strip() else before.rpartition("\f")[2]


def _decoded(source: Source, start: int, end: int) -> str:
    return source.data[start:end].decode(source.encoding)


def _line(source: Source, offset: int) -> Span:
    return source.line_span(source.position(offset)[0])


def _line_start(source: Source, offset: int) -> int:
    return _line(source, offset).start


def _line_end(source: Source, offset: int) -> int:
    return _line(source, offset).end


def _next_line(source: Source, offset: int) -> int:
    """The start of the next line, or the end of the file."""
    line = source.position(offset)[0]
    return source.line_starts[line] if line < len(source.line_starts) else len(source.data)
