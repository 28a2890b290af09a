"""One Python file: its bytes, its nodes and their byte spans.

Spans are offsets into the file's original bytes. Python's tree leaves a node's own parentheses out of its place, so the text
around it is read.
"""

from __future__ import annotations

import bisect
import itertools
import re
import sys
import tokenize
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import NamedTuple, TypeVar, cast

from speedlint import notebook
from speedlint.facts import syntax
from speedlint.facts.lower import TooDeep, lower
from speedlint.facts.parse import is_too_deep, parsed
from speedlint.facts.rows import Rows

Node = TypeVar("Node", bound=syntax.Node)

_BOM = b"\xef\xbb\xbf"
_GAP = re.compile(rb"(?:[ \t\f\r\n\\]|#[^\r\n]*)*")
_GAP_LENGTH = 4096
"""Bytes of blank text looked through at once; the search goes on where there are more."""
_STRINGS: tuple[type[syntax.Node], ...] = (syntax.SimpleString, syntax.FormattedString, syntax.TemplatedString)
_NAMING = (
    syntax.ImportAlias, syntax.AsName, syntax.NameItem, syntax.Attribute, syntax.MatchPattern, syntax.MatchAs,
)  # fmt: skip
"""What names stand below that are no expressions of their own."""
_TOO_DEEP = "is nested too deeply to be read, left alone; exclude it, or split the longest expression"
_PYTHON_2 = re.compile(r"^\s*(?:print|exec)\s+[\"'\w]|except\s+\w+\s*,\s*\w+\s*:", re.MULTILINE)
_DIVIDED = re.compile(r"(?m)^# ?%%")
_LINE_END = re.compile(rb"\r\n|\n|\r")


class SourceError(Exception):
    """A file that cannot be read as Python. ``str()`` is one line: ``path:line: what, what to do``."""

    def __init__(self, path: Path, line: int, what: str) -> None:
        super().__init__(f"{path}:{line}: {what}")
        self.path, self.line, self.what = path, line, what


class Span(NamedTuple):
    """Byte offsets ``start`` (inclusive) and ``end`` (exclusive)."""

    start: int
    end: int


class Column:
    """One number of each row, asked for by node."""

    def __init__(self, numbers: Sequence[int]) -> None:
        self._numbers = numbers

    def __getitem__(self, node: syntax.Node) -> int:
        """The number in the node's row."""
        return self._numbers[node.row]


class Parents:
    """Each node's parent."""

    def __init__(self, tree: syntax.Tree) -> None:
        self._tree, self._rows = tree, tree.rows.parent

    def __getitem__(self, node: syntax.Node) -> syntax.Node:
        """The node right above. Raises KeyError for a module."""
        row = self._rows[node.row]
        if row < 0:
            raise KeyError(node)
        return self._tree.nodes[row] or self._tree.node(row)

    def __contains__(self, node: syntax.Node) -> bool:
        """Whether it is no module."""
        return self._rows[node.row] >= 0

    def get(self, node: syntax.Node) -> syntax.Node | None:
        """The node right above; None for a module."""
        row = self._rows[node.row]
        return self._tree.node(row) if row >= 0 else None


@cache
def _numbers(kinds: tuple[type[syntax.Node], ...]) -> bytes:
    """What rows say of their kind."""
    return bytes([kind.kind for kind in kinds])


class Source:
    """A parsed file.

    Attributes:
        path: where the file is, as it was asked for.
        tree: its nodes.
        module: the node of the whole file.
        parents: each node's parent.
        order: each node's place in source order (pre-order).
    """

    def __init__(self, path: Path, data: bytes, text: str | None, encoding: str, rows: Rows) -> None:
        self.path, self._data, self.encoding = path, data, encoding
        self._text = text
        self._is_text_asked = False
        self._tell: Callable[[], object] | None = None
        self.tree = syntax.Tree(rows, str(path.absolute()))
        self.parents = Parents(self.tree)
        self.order = Column(range(len(rows.kind)))
        self._last = rows.last
        self._spans: dict[int, Span] = {}

    @classmethod
    def parse(cls, path: Path, data: bytes, known: Rows | None = None) -> Source:
        """Parses ``data`` as the file ``path``; ``known`` are the rows that it has. Raises SourceError."""
        written, encoding = _decode(path, data)
        text = _without_magics(path, written)
        kept = text if text != written else None
        if known is not None:
            return cls(path, data, kept, encoding, known)
        if is_too_deep(data):
            raise SourceError(path, 1, _TOO_DEEP)
        if notebook.is_notebook(path):
            _refuse_broken_cells(path, text)
        try:
            rows = lower(text.encode(), parsed(text))
        except SyntaxError as error:
            raise SourceError(path, *_syntax_problem(text, error)) from None
        except TooDeep as error:
            raise SourceError(path, text.encode()[: error.offset].count(b"\n") + 1, _TOO_DEEP) from None
        except (RecursionError, MemoryError):
            raise SourceError(path, 1, _TOO_DEEP) from None
        return cls(path, data, kept, encoding, rows)

    def holds(self, data: bytes) -> bool:
        """Whether these are its bytes."""
        return self._data == data

    def when_text_is_asked(self, tell: Callable[[], object]) -> None:
        """Has ``tell`` called once something rests on more than the syntax: on the text, or on where in it a node stands."""
        if self._is_text_asked:
            tell()
        else:
            self._tell = tell

    def _ask_text(self) -> None:
        self._is_text_asked = True
        if self._tell is not None:
            self._tell()
            self._tell = None

    @property
    def data(self) -> bytes:
        """The file's bytes."""
        if not self._is_text_asked:
            self._ask_text()
        return self._data

    @property
    def text_(self) -> str:
        """The text that was parsed; it is not kept where it is what the bytes say."""
        if not self._is_text_asked:
            self._ask_text()
        return self._text if self._text is not None else _decode(self.path, self.data)[0]

    @cached_property
    def _is_ascii(self) -> bool:
        return self.text_.isascii()

    @property
    def module(self) -> syntax.Module:
        """The node of the whole file."""
        return cast(syntax.Module, self.tree.node(0))

    def of(self, kind: type[Node]) -> list[Node]:
        """All nodes of exactly this type, in source order."""
        return self.tree.of(kind)

    def at(self, kind: type[Node], rows: Iterable[int]) -> list[Node]:
        """The nodes of some rows, which are of a type."""
        return [*map(self.tree.node, rows)]  # type: ignore[list-item]

    def ancestors(self, node: syntax.Node) -> Iterator[syntax.Node]:
        """The nodes around ``node``, innermost first, without itself."""
        above, nodes, node_of = self.tree.rows.parent, self.tree.nodes, self.tree.node
        row = above[node.row]
        while row >= 0:
            yield nodes[row] or node_of(row)
            row = above[row]

    def enclosing(self, node: syntax.Node, *kinds: type[syntax.Node]) -> syntax.Node | None:
        """The innermost ancestor of exactly one of these types."""
        rows = self.tree.rows
        above, numbers, wanted = rows.parent, rows.kind, _numbers(kinds)
        row = above[node.row]
        while row >= 0:
            if numbers[row] in wanted:
                return self.tree.node(row)
            row = above[row]
        return None

    def outermost(self, node: syntax.Node, within: bytes) -> syntax.Node:
        """The outermost node around ``node``, or itself, with no node in between of a kind that is one of some numbers."""
        kinds, above = self.tree.rows.kind, self.tree.rows.parent
        row, up = node.row, above[node.row]
        while up >= 0 and kinds[up] not in within:
            row, up = up, above[up]
        return node if row == node.row else self.tree.node(row)

    def contains(self, outer: syntax.Node, node: syntax.Node) -> bool:
        """Whether ``node`` is ``outer`` or stands inside it."""
        return node.tree is self.tree is outer.tree and outer.row <= node.row <= self._last[outer.row]

    def inside(self, outer: syntax.Node, kind: type[Node]) -> Iterator[Node]:
        """The nodes of exactly this type within ``outer``, in source order."""
        kinds, number, nodes, node_of = self.tree.rows.kind, kind.kind, self.tree.nodes, self.tree.node
        last = self._last[outer.row] + 1
        at = kinds.find(number, outer.row, last)
        while at >= 0:
            yield nodes[at] or node_of(at)  # type: ignore[misc]
            at = kinds.find(number, at + 1, last)

    def last(self, node: syntax.Node) -> int:
        """The place in source order of the last node within ``node``."""
        return self._last[node.row]

    def statement(self, node: syntax.Node) -> syntax.BaseStatement:
        """The statement ``node`` stands in: a whole line of small statements, or a compound statement."""
        for up in itertools.chain((node,), self.ancestors(node)):
            if isinstance(up, syntax.BaseStatement):
                return up
        raise ValueError("a module has no statement around it")

    # Spans

    def span(self, node: syntax.Node) -> Span:
        """The node's bytes, own parentheses included, whitespace, comments and line break around it left out."""
        found = self._spans.get(node.row)
        if found is None:
            found = self._spans[node.row] = self._span(node)
        return found

    def _span(self, node: syntax.Node) -> Span:
        if isinstance(node, syntax.Module):
            return Span(self.byte_offset(0), len(self.data))
        start, end = self.code_span(node)
        if isinstance(node, syntax.BaseExpression):
            start, end = self._with_end_of_last(node, start, end) if type(node) is syntax.BooleanOperation else (start, end)
            return self._with_parentheses(node, start, end)
        if not isinstance(node, (syntax.BaseStatement, syntax.BaseSmallStatement, syntax.BaseSuite)):
            return self._with_end_of_last(node, start, end)
        return Span(start, end)

    def _with_end_of_last(self, node: syntax.Node, start: int, end: int) -> Span:
        """The span of a node that has no place of its own in Python's tree: it begins or ends with a child's parentheses."""
        for child in node.children:
            if not isinstance(child, syntax.BaseSuite):
                first, last = self.code_span(child)
                start = min(start, self.span(child).start) if first <= start else start
                end = max(end, self.span(child).end) if last >= end else end
        return Span(start, end)

    def _with_parentheses(self, node: syntax.Node, start: int, end: int) -> Span:
        """The span with the parentheses right around it that no call, class, function or import needs."""
        above = self.parents[node]
        if isinstance(above, _NAMING) and not (isinstance(above, syntax.Attribute) and above.value is node):
            return Span(start, end)
        if isinstance(above, syntax.Param) and above.name is node:
            return Span(start, end)
        pairs = [Span(start, end)]
        limit = self._closing(above)
        while True:
            opening = self._before(pairs[-1].start)
            if self.data[opening - 1 : opening] != b"(":
                break
            closing = self._after(pairs[-1].end)
            if self.data[closing : closing + 1] != b")" or closing == limit:
                break
            pairs.append(Span(opening - 1, closing + 1))
        is_base = isinstance(above, syntax.Arg) and isinstance(self.parents[above], syntax.ClassDef)
        return pairs[-2] if is_base and len(pairs) > 1 else pairs[-1]

    def _closing(self, above: syntax.Node) -> int:
        """Where the closing parenthesis of the call stands that a node right below ``above`` is an argument of."""
        call = self.parents[above] if isinstance(above, syntax.Arg) else None
        return self.code_span(call).end - 1 if isinstance(call, syntax.Call) else -1

    def _after(self, offset: int) -> int:
        """The first byte from ``offset`` on that is no space, line break or comment."""
        found = _GAP.match(self.data, offset)
        return found.end() if found else offset

    def _before(self, offset: int) -> int:
        """The byte after the last one before ``offset`` that is no space, line break or comment."""
        while offset:
            first = max(0, offset - _GAP_LENGTH)
            kept = len(self.data[first:offset].rstrip(b" \t\f\r\n\\"))
            offset = first + kept
            if not kept:
                continue
            comment = self._comment(self.line_starts[bisect.bisect_right(self.line_starts, offset - 1) - 1], offset)
            if comment < 0:
                break
            offset = comment
        return offset

    def _comment(self, begins: int, end: int) -> int:
        """Where a comment begins that the text from a line's start to ``end`` ends in; -1 where it ends in none."""
        at = self.data.find(b"#", begins, end)
        while at >= 0:
            if not self._is_in_string(at):
                return at
            at = self.data.find(b"#", at + 1, end)
        return -1

    def _is_in_string(self, offset: int) -> bool:
        at = bisect.bisect_right(self._strings, (offset, len(self.data))) - 1
        return at >= 0 and self._strings[at][0] <= offset < self._strings[at][1]

    @cached_property
    def _strings(self) -> list[tuple[int, int]]:
        """The spans of the string tokens, in order; those within the fields of another one are left out."""
        found: list[tuple[int, int]] = []
        for node in sorted(itertools.chain.from_iterable(map(self.of, _STRINGS)), key=lambda each: each.row):
            start, end = self.code_span(node)
            if not found or start >= found[-1][1]:
                found.append((start, end))
        return sorted(found)

    def code_span(self, node: syntax.Node) -> Span:
        """The node's bytes without its own parentheses; those of a tuple or generator count as its text."""
        if not self._is_text_asked:
            self._ask_text()
        rows = self.tree.rows
        start, end = rows.start[node.row], rows.end[node.row]
        if self.encoding == "utf-8":
            return Span(start + self._start, end + self._start)
        return Span(self._recoded[start], self._recoded[end])

    @cached_property
    def _recoded(self) -> dict[int, int]:
        """The byte offset in the file of each character, by its offset in the text as UTF-8."""
        text = self.text_
        sizes = itertools.accumulate((len(char.encode()) for char in text), initial=0)
        return dict(zip(sizes, map(self.byte_offset, range(len(text) + 1)), strict=True))

    def text(self, node: syntax.Node) -> str:
        """The node as written, own parentheses included."""
        start, end = self.span(node)
        return self.data[start:end].decode(self.encoding)

    @cached_property
    def _offsets(self) -> list[int]:
        sizes = (len(char.encode(self.encoding)) for char in self.text_)
        return list(itertools.accumulate(sizes, initial=self._start))

    @cached_property
    def _start(self) -> int:
        return len(_BOM) if self.data.startswith(_BOM) else 0

    def byte_offset(self, character: int) -> int:
        """The byte at which the text's ``character``-th character begins."""
        return self._start + character if self._is_ascii else self._offsets[character]

    @cached_property
    def line_starts(self) -> list[int]:
        """Byte offset of the start of each line; a line ends with LF, CRLF or a lone CR."""
        return [0, *(match.end() for match in _LINE_END.finditer(self.data))]

    def position(self, offset: int) -> tuple[int, int]:
        """1-based line and column (in characters) of a byte offset."""
        line = bisect.bisect_right(self.line_starts, offset)
        start = self.line_starts[line - 1]
        if line == 1 and offset >= self._start:
            start = self._start
        return line, len(self.data[start:offset].decode(self.encoding, "replace")) + 1

    def line(self, node: syntax.Node) -> int:
        """1-based line on which the node begins."""
        return self.position(self.span(node).start)[0]

    def line_span(self, line: int) -> Span:
        """The bytes of the 1-based ``line`` without byte order mark and line break."""
        start = self._start if line == 1 else self.line_starts[line - 1]
        end = self.line_starts[line] if line < len(self.line_starts) else len(self.data)
        return Span(start, start + len(self.data[start:end].rstrip(b"\r\n")))

    def line_text(self, line: int) -> str:
        """The 1-based ``line`` without its line break."""
        start, end = self.line_span(line)
        return self.data[start:end].decode(self.encoding, "replace")

    @cached_property
    def cells(self) -> notebook.Cells | None:
        """The cells of a notebook; None for any other file."""
        return notebook.Cells(self.data) if notebook.is_notebook(self.path) else None

    @cached_property
    def default_indent(self) -> str:
        """What the first indented block is indented by; four spaces where there is none."""
        for block in self.of(syntax.IndentedBlock):
            inner = self._indentation(self.code_span(block).start)
            outer = self._indentation(self.code_span(self.parents[block]).start)
            if inner.startswith(outer) and inner != outer:
                return inner[len(outer) :]
        return "    "

    def _indentation(self, offset: int) -> str:
        text = self.line_text(self.position(offset)[0])
        return text[: len(text) - len(text.lstrip(" \t"))]

    @cached_property
    def newline(self) -> str:
        """The line break the file uses most."""
        counts = {"\r\n": self.data.count(b"\r\n")}
        counts["\n"] = self.data.count(b"\n") - counts["\r\n"]
        counts["\r"] = self.data.count(b"\r") - counts["\r\n"]
        return max(("\n", "\r\n", "\r"), key=counts.__getitem__)


def _without_magics(path: Path, text: str) -> str:
    """The text as Python where it is a notebook's or divided into cells, in which editors know IPython's magics too."""
    is_notebook = notebook.is_notebook(path)
    if not is_notebook and not ("%%" in text and _DIVIDED.search(text)):
        return text
    from speedlint import magics

    if is_notebook:
        return "".join(notebook.marked(number, magics.hidden(code)) for number, code in notebook.split(text))
    return magics.hidden(text)


def _refuse_broken_cells(path: Path, text: str) -> None:
    """Raises SourceError for a cell that is no Python by itself."""
    line = 1
    for _, code in notebook.split(text):
        try:
            parsed(code)
        except SyntaxError as error:
            at, what = _syntax_problem(code, error)
            raise SourceError(path, line + at, what) from None
        line += code.count("\n") + 2


def _decode(path: Path, data: bytes) -> tuple[str, str]:
    if b"\0" in data:
        line = data[: data.index(b"\0")].count(b"\n") + 1
        raise SourceError(path, line, "holds NUL bytes, so it is not Python source; exclude it")
    try:
        first_lines = (line + b"\n" for line in _LINE_END.split(data, 2)[:2])
        encoding, _ = tokenize.detect_encoding(first_lines.__next__)
    except SyntaxError as error:
        raise SourceError(path, 1, f"{error.msg}; declare the file's encoding or save it as UTF-8") from None
    encoding = "utf-8" if encoding == "utf-8-sig" else encoding
    body = data[len(_BOM) :] if data.startswith(_BOM) else data
    try:
        text = body.decode(encoding)
        lossless = encoding == "utf-8" or b"".join(char.encode(encoding) for char in text) == body
    except UnicodeDecodeError as error:
        line = body[: error.start].count(b"\n") + 1
        raise SourceError(path, line, f"is not valid {encoding}; declare the file's encoding or save it as UTF-8") from None
    except (LookupError, ValueError):
        lossless = False
    if not lossless:
        raise SourceError(path, 1, f"its encoding {encoding} does not code character by character; save it as UTF-8")
    return text, encoding


def _syntax_problem(text: str, error: SyntaxError) -> tuple[int, str]:
    """The line and the problem, in Python's own words."""
    line = max(1, error.lineno or 1)
    if _PYTHON_2.search(text):
        return line, "syntax error (Python 2?); port it to Python 3 or exclude it"
    own = f"Python {sys.version_info[0]}.{sys.version_info[1]}"
    return line, f"syntax error for {own} ({error.msg}); correct or exclude it, or use the Python that it is written for"


def is_none(node: syntax.Node | None) -> bool:
    """Whether an expression is the name ``None``."""
    return isinstance(node, syntax.Name) and node.value == "None"


def is_name(node: syntax.Node | None, *names: str) -> bool:
    """Whether an expression is written as one of some plain names, such as ``self`` or ``True``."""
    return isinstance(node, syntax.Name) and node.value in names


def last_statement(body: syntax.BaseSuite) -> syntax.Node | None:
    """The last small statement of a body, or its last compound statement."""
    last = body.body[-1] if body.body else None
    return last.body[-1] if isinstance(last, syntax.SimpleStatementLine) else last


def leaves(body: syntax.BaseSuite) -> bool:
    """Whether a body ends with a statement that goes elsewhere: nothing after its block runs next."""
    return isinstance(last_statement(body), (syntax.Return, syntax.Raise, syntax.Break, syntax.Continue))


def is_target(source: Source, node: syntax.Node) -> bool:
    """Whether a name, attribute or entry is what an assignment or a loop sets, alone or beside others."""
    up = source.parents[node]
    while isinstance(up, syntax.Element | syntax.StarredElement | syntax.Tuple | syntax.List):
        node, up = up, source.parents[up]
    return isinstance(up, syntax.AssignTarget) or (
        isinstance(up, syntax.For | syntax.CompFor | syntax.AugAssign | syntax.AnnAssign) and up.target is node
    )
