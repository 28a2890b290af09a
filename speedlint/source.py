"""One Python file: parsed once, walked once; its nodes by type, their parents, order, and byte spans.

Spans are offsets into the file's original bytes. libcst leaves a node's own parentheses out of its code range and does not
reproduce every file (form feed, lone carriage return, whitespace after the last line), so the text is parsed with such
characters replaced by others of the same length, and spans are measured on that.
"""

from __future__ import annotations

import ast
import bisect
import dataclasses
import itertools
import re
import tokenize
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import libcst as cst
from libcst._nodes.internal import CodegenState

Node = TypeVar("Node", bound=cst.CSTNode)

_BOM = b"\xef\xbb\xbf"
_NOT_WALKED = re.compile(
    r"whitespace|leading|lines_after|header|footer|[lr]par$|[lr]brac|comma|semicolon|equal|dot|colon|indent|trailing"
    r"|default_(?:indent|newline)|encoding|has_|operator|relative|first_|second_|newline|star$|body_"
)
_MAX_DEPTH = 300  # libcst prints a tree with two Python calls a level, and Python's limit is 1000
_MAX_BRACKETS = 100  # Python's own limit is 200; libcst's parser crashes between 1000 and 2000, earlier on small stacks
_TOO_DEEP = "is nested too deeply to be read, left alone; exclude it, or split the longest expression"
_PREFIXES = re.compile(rb"(?:\b(?:not|lambda\b[^:\n]*:)[\s\\]*){100}")
_SIGNS = re.compile(rb"(?:[-+~][\s\\]*){100}")
_MAX_BRANCHES = 3000
_MAX_CHOICES = 100
_NO_BRACKET = re.compile(rb"[^][(){}]+")
_BRACKETS = {**dict.fromkeys(b"([{", 1), **dict.fromkeys(b")]}", -1)}
_STRINGS_AND_COMMENTS = re.compile(
    rb"""#[^\n]*|(\"{3}|'{3})(?:\\.|(?!\1).)*?\1|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", re.DOTALL
)
_PYTHON_2 = re.compile(r"^\s*(?:print|exec)\s+[\"'\w]|except\s+\w+\s*,\s*\w+\s*:", re.MULTILINE)
_LINE_END = re.compile(rb"\r\n|\n|\r")
_LONE_CR = re.compile(r"\r(?!\n)")


class SourceError(Exception):
    """A file that cannot be read as Python. ``str()`` is one line: ``path:line: what, what to do``."""

    def __init__(self, path: Path, line: int, what: str) -> None:
        super().__init__(f"{path}:{line}: {what}")
        self.path, self.line, self.what = path, line, what


class Span(NamedTuple):
    """Byte offsets ``start`` (inclusive) and ``end`` (exclusive)."""

    start: int
    end: int


class _Measure(CodegenState):
    """Prints the module while recording, in characters, where each node begins and ends.

    Expressions are recorded with their own parentheses, statements without the empty lines and comments above them.
    """

    def __init__(self, module: cst.Module) -> None:
        super().__init__(default_indent=module.default_indent, default_newline=module.default_newline)
        self.at = 0
        self.spans: dict[cst.CSTNode, tuple[int, int]] = {}
        self.inner: dict[cst.CSTNode, tuple[int, int]] = {}
        self.starts: list[int] = []

    def add_token(self, value: str) -> None:
        self.at += len(value)
        self.tokens.append(value)

    def add_indent_tokens(self) -> None:
        for token in self.indent_tokens:
            self.add_token(token)

    def pop_trailing_newline(self) -> None:
        if self.tokens:
            self.at -= len(self.tokens.pop())

    def before_codegen(self, node: cst.CSTNode) -> None:
        self.starts.append(self.at)

    def after_codegen(self, node: cst.CSTNode) -> None:
        self.spans[node] = (self.starts.pop(), self.at)

    def record_syntactic_position(  # type: ignore[override]
        self, node: cst.CSTNode, *, start_node: cst.CSTNode | None = None, end_node: cst.CSTNode | None = None
    ) -> AbstractContextManager[None]:
        return _Inner(self, node, end_node)


class _Inner(AbstractContextManager[None]):
    """Records where a node begins and ends; a block ends with its last statement, not with the comments below it."""

    def __init__(self, state: _Measure, node: cst.CSTNode, end_node: cst.CSTNode | None) -> None:
        self.state, self.node, self.end_node = state, node, end_node

    def __enter__(self) -> None:
        self.start = self.state.at

    def __exit__(self, *_: object) -> None:
        end = self.state.inner.get(self.end_node, (0, self.state.at))[1] if self.end_node else self.state.at
        self.state.inner[self.node] = (self.start, end)


class Source:
    """A parsed file.

    Attributes:
        path: where the file is, as it was asked for.
        data: its bytes.
        module: the libcst tree.
        nodes: all nodes by exact type, in source order. Whitespace, comments and punctuation are not walked.
        parents: each walked node's parent.
        order: each walked node's place in source order (pre-order).
    """

    def __init__(self, path: Path, data: bytes, text: str, encoding: str, module: cst.Module) -> None:
        self.path, self.data, self.text_, self.encoding, self.module = path, data, text, encoding, module
        self.nodes: dict[type[cst.CSTNode], list[Any]] = {}
        self.parents: dict[cst.CSTNode, cst.CSTNode] = {}
        self.order: dict[cst.CSTNode, int] = {}
        self._walk()

    @classmethod
    def parse(cls, path: Path, data: bytes) -> Source:
        """Parses ``data`` as the file ``path``. Raises SourceError."""
        text, encoding = _decode(path, data)
        if _is_too_deep(data):
            raise SourceError(path, 1, _TOO_DEEP)
        try:
            module = cst.parse_module(_printable(text))
        except cst.ParserSyntaxError as error:
            raise SourceError(path, *_syntax_problem(text, error.raw_line)) from None
        except Exception as error:  # libcst 1.8 raises TypeError for `return(lambda: x)`
            raise SourceError(
                path, 1, f"cannot be parsed ({type(error).__name__} in libcst), left alone; exclude it"
            ) from None
        return cls(path, data, text, encoding, module)

    def _walk(self) -> None:
        stack: list[tuple[cst.CSTNode, int]] = [(self.module, 0)]
        while stack:
            node, depth = stack.pop()
            self.order[node] = len(self.order)
            self.nodes.setdefault(type(node), []).append(node)
            children = [(child, depth + 1) for child in _children(node)]
            for child, _ in children:
                self.parents[child] = node
            if depth > _MAX_DEPTH:
                raise SourceError(self.path, self._deep_line(node), _TOO_DEEP)
            stack.extend(reversed(children))

    def _deep_line(self, node: cst.CSTNode) -> int:
        """The line of the module's statement that ``node`` stands in; measuring spans would exhaust the stack."""
        statement = [node, *self.ancestors(node)][-2]
        above = itertools.takewhile(lambda each: each is not statement, self.module.body)
        code = self.module.with_changes(body=[*above], has_trailing_newline=True).code
        return code.count("\n") + len(getattr(statement, "leading_lines", ())) + 1

    def of(self, kind: type[Node]) -> list[Node]:
        """All nodes of exactly this type, in source order."""
        return self.nodes.get(kind, [])

    def ancestors(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """The nodes around ``node``, innermost first, without itself."""
        while (parent := self.parents.get(node)) is not None:
            yield parent
            node = parent

    def enclosing(self, node: cst.CSTNode, *kinds: type[cst.CSTNode]) -> cst.CSTNode | None:
        """The innermost ancestor of exactly one of these types."""
        return next((up for up in self.ancestors(node) if type(up) in kinds), None)

    def contains(self, outer: cst.CSTNode, node: cst.CSTNode) -> bool:
        """Whether ``node`` is ``outer`` or stands inside it."""
        return node is outer or any(up is outer for up in self.ancestors(node))

    def inside(self, outer: cst.CSTNode, kind: type[Node]) -> Iterator[Node]:
        """The nodes of exactly this type within ``outer``, in source order."""
        first, last = self.order[outer], self.last(outer)
        found = self.of(kind)
        at = bisect.bisect_left(found, first, key=self.order.__getitem__)
        while at < len(found) and self.order[found[at]] <= last:
            yield found[at]
            at += 1

    def last(self, node: cst.CSTNode) -> int:
        """The place in source order of the last node within ``node``."""
        return self._last[node]

    @cached_property
    def _last(self) -> dict[cst.CSTNode, int]:
        last: dict[cst.CSTNode, int] = {}
        for node in reversed(self.order):
            last.setdefault(node, self.order[node])
            parent = self.parents.get(node)
            if parent is not None:
                last[parent] = max(last.get(parent, 0), last[node])
        return last

    def statement(self, node: cst.CSTNode) -> cst.BaseStatement:
        """The statement ``node`` stands in: a whole line of small statements, or a compound statement."""
        for up in itertools.chain((node,), self.ancestors(node)):
            if isinstance(up, cst.BaseStatement):
                return up
        raise ValueError("a module has no statement around it")

    @cached_property
    def _measured(self) -> _Measure:
        state = _Measure(self.module)
        self.module._codegen(state)
        return state

    @cached_property
    def faithful(self) -> bool:
        """Whether the tree prints as the text it was parsed from, so that its spans can be trusted."""
        return "".join(self._measured.tokens) == _printable(self.text_)

    def _characters(self, node: cst.CSTNode) -> tuple[int, int]:
        measured = self._measured
        if isinstance(node, cst.BaseExpression):
            return measured.spans[node]
        if isinstance(node, cst.Param) and (last := node.default or node.annotation):
            return measured.inner[node][0], self._characters(last)[1]
        return measured.inner.get(node) or measured.spans[node]

    def span(self, node: cst.CSTNode) -> Span:
        """The node's bytes, own parentheses included, whitespace, comments and line break around it left out."""
        start, end = self._characters(node)
        text = self.text_[start:end]
        start += len(text) - len(text.lstrip()) if not isinstance(node, cst.Module) else 0
        end -= len(text) - len(text.rstrip()) if not isinstance(node, cst.Module) else 0
        return Span(self.byte_offset(start), self.byte_offset(max(start, end)))

    def code_span(self, node: cst.CSTNode) -> Span:
        """The node's bytes without its own parentheses."""
        start, end = self._measured.inner.get(node) or self._measured.spans[node]
        return Span(self.byte_offset(start), self.byte_offset(end))

    def text(self, node: cst.CSTNode) -> str:
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
        return self._start + character if self.text_.isascii() else self._offsets[character]

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

    def line(self, node: cst.CSTNode) -> int:
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
    def newline(self) -> str:
        """The line break the file uses most."""
        counts = {"\r\n": self.data.count(b"\r\n")}
        counts["\n"] = self.data.count(b"\n") - counts["\r\n"]
        counts["\r"] = self.data.count(b"\r") - counts["\r\n"]
        return max(("\n", "\r\n", "\r"), key=counts.__getitem__)


def _printable(text: str) -> str:
    """``text`` with what libcst cannot reproduce replaced by characters of the same length."""
    text = _LONE_CR.sub("\n", text)
    if "\f" in text:
        text = re.sub(r"(?m)^[ \t]*\f+", lambda m: "\n" * len(m[0]) if "\f" in m[0] else m[0], text).replace("\f", " ")
    body = text.rstrip(" \t")
    return body if body.endswith("\n") else text


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


def _is_too_deep(data: bytes) -> bool:
    """Whether brackets, prefixes or choices nest so deeply that the parser would exhaust the stack and end the process."""
    if _PREFIXES.search(data) or data.count(b"elif") > _MAX_BRANCHES:
        return True
    if _SIGNS.search(data) and _SIGNS.search(_STRINGS_AND_COMMENTS.sub(b"", data)):
        return True
    if data.count(b" else ") > _MAX_CHOICES and any(line.count(b" else ") > _MAX_CHOICES for line in data.splitlines()):
        return True
    return _bracket_depth(data) > _MAX_BRACKETS and _bracket_depth(_STRINGS_AND_COMMENTS.sub(b"", data)) > _MAX_BRACKETS


def _bracket_depth(data: bytes) -> int:
    return max(itertools.accumulate(map(_BRACKETS.__getitem__, _NO_BRACKET.sub(b"", data))), default=0)


def _syntax_problem(text: str, line: int) -> tuple[int, str]:
    """The line and the problem, in Python's own words where it refuses the text as well."""
    words = ""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except SyntaxError as error:
        line, words = error.lineno or line, f" ({error.msg})"
    except (ValueError, MemoryError, RecursionError):
        pass
    if _PYTHON_2.search(text):
        return line, "syntax error (Python 2?); port it to Python 3 or exclude it"
    return line, f"syntax error{words}; correct or exclude it"


def is_none(node: cst.CSTNode | None) -> bool:
    """Whether an expression is the name ``None``."""
    return isinstance(node, cst.Name) and node.value == "None"


def last_statement(body: cst.BaseSuite) -> cst.CSTNode | None:
    """The last small statement of a body, or its last compound statement."""
    last = body.body[-1] if body.body else None
    return last.body[-1] if isinstance(last, cst.SimpleStatementLine) else last


def leaves(body: cst.BaseSuite) -> bool:
    """Whether a body ends with a statement that goes elsewhere: nothing after its block runs next."""
    return isinstance(last_statement(body), (cst.Return, cst.Raise, cst.Break, cst.Continue))


_SEQUENCES = (tuple, list)
_PLAIN = (type(None), str, bool, cst.MaybeSentinel)
_fields_of: dict[type, tuple[str, ...]] = {}


def _children(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    kind = type(node)
    names = _fields_of.get(kind)
    if names is None:
        names = tuple(f.name for f in dataclasses.fields(kind) if not _NOT_WALKED.match(f.name))
        _fields_of[kind] = names
    for name in names:
        value = getattr(node, name)
        if type(value) in _SEQUENCES:
            yield from value
        elif type(value) not in _PLAIN:
            yield value
