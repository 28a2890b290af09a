"""The standard library's syntax tree -> rows.

Where the tree has no node or no place for what rows name (the line of a statement, an ``else``, an argument without
keyword), the text between its nodes is read. Offsets are bytes of the text in UTF-8.
"""

from __future__ import annotations

import ast
import bisect
import itertools
import re
from collections.abc import Callable, Sequence
from typing import Any

from speedlint.facts import strings, syntax
from speedlint.facts.rows import Rows, column

MAX_DEPTH = 300
"""Rows that nest more deeply are refused: what is computed of them recurses, and Python's C stack ends near 1000 levels."""

_COLUMNS, _LAST, _START, _END = 7, 3, 4, 5
"""How many numbers a row has, and which are these: in one list, since that is filled three times as fast as one for each."""

_CONTINUED = re.compile(rb"\\(?:\r\n|\n|\r)")
_LINE_END = re.compile(rb"\r\n|\n|\r")
_ELSE = re.compile(rb"(?:[\s;\\]|#[^\r\n]*)*(else|finally)\b")
_DEFINED = re.compile(rb"(?:async[\s\\]+)?(?:def|class)[\s\\]+([^\s\\:(\[]+)")
_AS = re.compile(rb"[\s\\)]*(as)[\s\\]+([^\s\\:,)]+)")
_ARGUMENT = re.compile(rb"[\w\x80-\xff]+")
_OPERATOR = re.compile(rb"(?:[\s\\)]|#[^\r\n]*)*")
"""What stands between an operand and the operator."""
_WORD = re.compile(rb"[^\W\d]\w*")
_MODULE = re.compile(rb"from[\s\\]*([.\s\\]*)")
_PARTS = re.compile(r"[^\s.\\]+")
_COMMENT = re.compile(rb"#[^\r\n]*")
_SMALL = (
    ast.Expr, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return, ast.Delete, ast.Raise, ast.Assert, ast.Import,
    ast.ImportFrom, ast.Global, ast.Nonlocal, ast.Pass, ast.Break, ast.Continue, getattr(ast, "TypeAlias", ast.Pass),
)  # fmt: skip
_BINARY = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
    ast.MatMult: "@", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>",
}  # fmt: skip
_COMPARED = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Is: "is", ast.IsNot: "is not",
    ast.In: "in", ast.NotIn: "not in",
}  # fmt: skip
_UNARY = {ast.USub: "unary -", ast.UAdd: "unary +", ast.Invert: "~", ast.Not: "not"}


class TooDeep(Exception):  # noqa: N818
    """Syntax that nests more deeply than MAX_DEPTH, from the byte ``offset`` on."""

    def __init__(self, offset: int) -> None:
        super().__init__(offset)
        self.offset = offset


def lower(text: bytes, tree: ast.Module) -> Rows:
    """The rows of a file whose text in UTF-8 is ``text`` and whose tree is ``tree``. Raises TooDeep."""
    lowering = _Lowering(text)
    root = lowering.open(syntax.Module, 0, 0, len(text))
    lowering.statements(tree.body, 0)
    lowering.close(root)
    return lowering.rows()


class _Lowering:
    """One pass over a tree. A row is opened, its children follow, and it is closed."""

    def __init__(self, text: bytes) -> None:
        self.text = text
        self.lines = [*itertools.accumulate(map(len, text.splitlines(keepends=True)), initial=0)]
        self.found: list[int] = []
        self.count = 0
        self.strings: dict[str, int] = {"": 0}
        self.above = [-1]
        self.has_semicolons = b";" in text

    def rows(self) -> Rows:
        kinds, slots, *columns = (self.found[at::_COLUMNS] for at in range(_COLUMNS))
        parent, last, start, end, words = map(column, columns)
        return Rows(bytes(kinds), bytes(slots), parent, last, start, end, words, list(self.strings))

    def open(self, kind: type[syntax.Node], slot: int, start: int, end: int, text: str = "") -> int:
        above = self.above
        if len(above) > MAX_DEPTH:
            raise TooDeep(self.found[above[2] * _COLUMNS + _START])
        row = self.count
        self.count = row + 1
        word = self.strings.setdefault(text, len(self.strings)) if text else 0
        self.found.extend((kind.kind, slot, above[-1], row, start, end, word))
        above.append(row)
        return row

    def close(self, row: int) -> None:
        self.above.pop()
        self.found[row * _COLUMNS + _LAST] = self.count - 1

    def leaf(self, kind: type[syntax.Node], slot: int, start: int, end: int, text: str = "") -> None:
        row = self.count
        self.count = row + 1
        word = self.strings.setdefault(text, len(self.strings)) if text else 0
        self.found.extend((kind.kind, slot, self.above[-1], row, start, end, word))

    def span(self, node: Any) -> tuple[int, int]:
        lines = self.lines
        return lines[node.lineno - 1] + node.col_offset, lines[node.end_lineno - 1] + node.end_col_offset

    def name(self, slot: int, text: str, start: int) -> None:
        self.leaf(syntax.Name, slot, start, start + len(text.encode()), text)

    # Statements

    def statements(self, body: Sequence[ast.stmt], slot: int) -> None:
        """Statements of a block or module: small ones by line, compound ones as they are."""
        at = 0
        while at < len(body):
            statement = body[at]
            if not isinstance(statement, _SMALL):
                self.compound(statement, slot)
                at += 1
                continue
            count = 1
            if self.has_semicolons:
                while at + count < len(body) and self._share_line(body[at + count - 1], body[at + count]):
                    count += 1
            self.line(syntax.SimpleStatementLine, slot, body[at : at + count])
            at += count

    def _share_line(self, one: ast.stmt, other: ast.stmt) -> bool:
        if not isinstance(other, _SMALL):
            return False
        between = _CONTINUED.sub(b"", self.text[self.span(one)[1] : self.span(other)[0]])
        return between.lstrip(b" \t\f").startswith(b";") and not _LINE_END.search(between)

    def line(self, kind: type[syntax.Node], slot: int, statements: Sequence[ast.stmt]) -> None:
        row = self.open(kind, slot, self.span(statements[0])[0], self.span(statements[-1])[1])
        for statement in statements:
            _SMALL_STATEMENTS[type(statement)](self, statement)
        self.close(row)

    def suite(self, body: Sequence[ast.stmt], slot: int) -> None:
        first = self._first_byte(body[0])
        start = self.lines[_line_at(self.lines, first)]
        if isinstance(body[0], _SMALL) and self.text[start:first].strip(b" \t\f"):
            self.line(syntax.SimpleStatementSuite, slot, body)
            return
        row = self.open(syntax.IndentedBlock, slot, first, self.span(body[-1])[1])
        self.statements(body, 0)
        self.close(row)

    def _first_byte(self, statement: ast.stmt) -> int:
        decorators = getattr(statement, "decorator_list", ())
        if not decorators:
            return self.span(statement)[0]
        return self.text.rfind(b"@", 0, self.span(decorators[0])[0])

    def otherwise(self, kind: type[syntax.Node], slot: int, body: Sequence[ast.stmt], after: int) -> None:
        """An ``else`` or ``finally`` whose keyword stands after the byte ``after``."""
        if not body:
            return
        keyword = _ELSE.match(self.text, after)
        start = keyword.start(1) if keyword else self.span(body[0])[0]
        row = self.open(kind, slot, start, self.span(body[-1])[1])
        self.suite(body, 0)
        self.close(row)

    def compound(self, node: ast.stmt, slot: int) -> None:
        _COMPOUND_STATEMENTS[type(node)](self, node, slot)

    def if_(self, node: ast.If, slot: int) -> None:
        row = self.open(syntax.If, slot, *self.span(node))
        self.expression(node.test, 0)
        self.suite(node.body, 1)
        other = node.orelse
        if len(other) == 1 and isinstance(other[0], ast.If) and self.text.startswith(b"elif", self.span(other[0])[0]):
            self.if_(other[0], 2)
        else:
            self.otherwise(syntax.Else, 2, other, self.span(node.body[-1])[1])
        self.close(row)

    def for_(self, node: ast.For | ast.AsyncFor, slot: int) -> None:
        row = self.open(syntax.For, slot, *self.span(node), "async" if isinstance(node, ast.AsyncFor) else "")
        self.expression(node.target, 0)
        self.expression(node.iter, 1)
        self.suite(node.body, 2)
        self.otherwise(syntax.Else, 3, node.orelse, self.span(node.body[-1])[1])
        self.close(row)

    def while_(self, node: ast.While, slot: int) -> None:
        row = self.open(syntax.While, slot, *self.span(node))
        self.expression(node.test, 0)
        self.suite(node.body, 1)
        self.otherwise(syntax.Else, 2, node.orelse, self.span(node.body[-1])[1])
        self.close(row)

    def try_(self, node: ast.Try, slot: int) -> None:
        row = self.open(syntax.Try, slot, *self.span(node))
        self.suite(node.body, 0)
        for handler in node.handlers:
            self._handler(handler)
        end = self.span(node.handlers[-1] if node.handlers else node.body[-1])[1]
        self.otherwise(syntax.Else, 2, node.orelse, end)
        self.otherwise(syntax.Finally, 3, node.finalbody, self.span(node.orelse[-1])[1] if node.orelse else end)
        self.close(row)

    def _handler(self, node: ast.ExceptHandler) -> None:
        row = self.open(syntax.ExceptHandler, 1, *self.span(node))
        self.suite(node.body, 0)
        if node.type is not None:
            self.expression(node.type, 1)
        if node.name is not None and node.type is not None:
            self._as(2, node.name, self.span(node.type)[1])
        self.close(row)

    def _as(self, slot: int, name: str, after: int) -> None:
        found = _AS.match(self.text, after)
        start = found.start(2) if found else after
        row = self.open(syntax.AsName, slot, found.start(1) if found else after, start + len(name.encode()))
        self.name(0, name, start)
        self.close(row)

    def with_(self, node: ast.With | ast.AsyncWith, slot: int) -> None:
        row = self.open(syntax.With, slot, *self.span(node), "async" if isinstance(node, ast.AsyncWith) else "")
        for item in node.items:
            start, end = self.span(item.context_expr)
            bound = item.optional_vars
            inner = self.open(syntax.WithItem, 0, start, self.span(bound)[1] if bound else end)
            self.expression(item.context_expr, 0)
            if bound is not None:
                first, last = self.span(bound)
                named = self.open(syntax.AsName, 1, self.text.rfind(b"as", end, first), last)
                self.expression(bound, 0)
                self.close(named)
            self.close(inner)
        self.suite(node.body, 1)
        self.close(row)

    def function(self, node: ast.FunctionDef | ast.AsyncFunctionDef, slot: int) -> None:
        start, end = self.span(node)
        row = self.open(syntax.FunctionDef, slot, start, end, "async" if isinstance(node, ast.AsyncFunctionDef) else "")
        at = self._defined(start)
        self.name(0, node.name, at)
        self.parameters(node.args, 1, at + len(node.name.encode()) + 1)
        self.suite(node.body, 2)
        self._decorators(node.decorator_list, 3)
        self._annotation(node.returns, 4)
        self.close(row)

    def class_(self, node: ast.ClassDef, slot: int) -> None:
        start, end = self.span(node)
        row = self.open(syntax.ClassDef, slot, start, end)
        self.name(0, node.name, self._defined(start))
        self.suite(node.body, 1)
        for base in node.bases:
            self._argument(base, 2)
        for keyword in node.keywords:
            self._keyword(keyword, 3)
        self._decorators(node.decorator_list, 4)
        self.close(row)

    def _defined(self, start: int) -> int:
        """Where the name of a function or class stands."""
        found = _DEFINED.match(self.text, start)
        return found.start(1) if found else start

    def _decorators(self, decorators: Sequence[ast.expr], slot: int) -> None:
        for decorator in decorators:
            start, end = self.span(decorator)
            row = self.open(syntax.Decorator, slot, self.text.rfind(b"@", 0, start), end)
            self.expression(decorator, 0)
            self.close(row)

    def _annotation(self, node: ast.expr | None, slot: int) -> None:
        if node is not None:
            self.within(syntax.Annotation, slot, node)

    def parameters(self, node: ast.arguments, slot: int, start: int) -> None:
        row = self.open(syntax.Parameters, slot, start, start)
        plain = [*node.posonlyargs, *node.args]
        defaults = dict(zip(reversed(plain), reversed(node.defaults), strict=False))
        for each in node.args:
            self._parameter(each, defaults.get(each), 0)
        if node.vararg is not None:
            self._parameter(node.vararg, None, 1, "*")
        elif node.kwonlyargs:
            self.leaf(syntax.ParamStar, 1, start, start)
        for each, default in zip(node.kwonlyargs, node.kw_defaults, strict=True):
            self._parameter(each, default, 2)
        if node.kwarg is not None:
            self._parameter(node.kwarg, None, 3, "**")
        for each in node.posonlyargs:
            self._parameter(each, defaults.get(each), 4)
        self.close(row)
        if self.count > row + 1:
            own, first = row * _COLUMNS, (row + 1) * _COLUMNS
            self.found[own + _START] = min(self.found[first + _START :: _COLUMNS])
            self.found[own + _END] = max(self.found[first + _END :: _COLUMNS])

    def _parameter(self, node: ast.arg, default: ast.expr | None, slot: int, star: str = "") -> None:
        start, end = self.span(node)
        begin = self.text.rfind(star.encode(), 0, start) if star else start
        row = self.open(syntax.Param, slot, begin, self.span(default)[1] if default is not None else end, star)
        self.name(0, node.arg, start)
        self._annotation(node.annotation, 1)
        if default is not None:
            self.expression(default, 2)
        self.close(row)

    def match(self, node: ast.Match, slot: int) -> None:
        row = self.open(syntax.Match, slot, *self.span(node))
        self.expression(node.subject, 0)
        for case in node.cases:
            start = self.text.rfind(b"case", 0, self.span(case.pattern)[0])
            inner = self.open(syntax.MatchCase, 1, start, self.span(case.body[-1])[1])
            self.pattern(case.pattern, 0)
            self.suite(case.body, 1)
            if case.guard is not None:
                self.expression(case.guard, 2)
            self.close(inner)
        self.close(row)

    def pattern(self, node: ast.pattern, slot: int) -> None:
        start, end = self.span(node)
        if isinstance(node, (ast.MatchAs, ast.MatchStar)):
            row = self.open(syntax.MatchAs, slot, start, end)
            if isinstance(node, ast.MatchAs) and node.pattern is not None:
                self.pattern(node.pattern, 0)
            if node.name is not None:
                self.name(1, node.name, end - len(node.name.encode()))
            self.close(row)
            return
        row = self.open(syntax.MatchPattern, slot, start, end)
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.pattern):
                self.pattern(child, 0)
            elif isinstance(child, ast.expr):
                self.expression(child, 0)
        if isinstance(node, ast.MatchMapping) and node.rest is not None:
            inner = self.open(syntax.MatchAs, 0, start, end)
            self.name(1, node.rest, self.text.rfind(node.rest.encode(), start, end))
            self.close(inner)
        self.close(row)

    # Small statements

    def expression_statement(self, node: ast.Expr) -> None:
        row = self.open(syntax.Expr, 0, *self.span(node))
        self.expression(node.value, 0)
        self.close(row)

    def assign(self, node: ast.Assign) -> None:
        row = self.open(syntax.Assign, 0, *self.span(node))
        for target in node.targets:
            self.within(syntax.AssignTarget, 0, target)
        self.expression(node.value, 1)
        self.close(row)

    def annotated(self, node: ast.AnnAssign) -> None:
        row = self.open(syntax.AnnAssign, 0, *self.span(node))
        self.expression(node.target, 0)
        self._annotation(node.annotation, 1)
        if node.value is not None:
            self.expression(node.value, 2)
        self.close(row)

    def augmented(self, node: ast.AugAssign) -> None:
        row = self.open(syntax.AugAssign, 0, *self.span(node), _BINARY[type(node.op)])
        self.expression(node.target, 0)
        self.expression(node.value, 1)
        self.close(row)

    def return_(self, node: ast.Return) -> None:
        row = self.open(syntax.Return, 0, *self.span(node))
        if node.value is not None:
            self.expression(node.value, 0)
        self.close(row)

    def delete(self, node: ast.Delete) -> None:
        row = self.open(syntax.Del, 0, *self.span(node))
        if len(node.targets) == 1:
            self.expression(node.targets[0], 0)
        else:
            inner = self.open(syntax.Tuple, 0, self.span(node.targets[0])[0], self.span(node.targets[-1])[1])
            self.elements(node.targets)
            self.close(inner)
        self.close(row)

    def raise_(self, node: ast.Raise) -> None:
        row = self.open(syntax.Raise, 0, *self.span(node))
        if node.exc is not None:
            self.expression(node.exc, 0)
        self._from(node.cause, 1)
        self.close(row)

    def _from(self, node: ast.expr | None, slot: int) -> None:
        if node is not None:
            start, end = self.span(node)
            row = self.open(syntax.From, slot, self.text.rfind(b"from", 0, start), end)
            self.expression(node, 0)
            self.close(row)

    def assert_(self, node: ast.Assert) -> None:
        row = self.open(syntax.Assert, 0, *self.span(node))
        self.expression(node.test, 0)
        if node.msg is not None:
            self.expression(node.msg, 1)
        self.close(row)

    def import_(self, node: ast.Import) -> None:
        row = self.open(syntax.Import, 0, *self.span(node))
        for alias in node.names:
            self._alias(alias, 0)
        self.close(row)

    def import_from(self, node: ast.ImportFrom) -> None:
        start, end = self.span(node)
        row = self.open(syntax.ImportFrom, 0, start, end, "." * node.level)
        if node.module is not None:
            dots = _MODULE.match(self.text, start)
            self._dotted(node.module, 0, dots.end() if dots else start)
        for alias in node.names:
            if alias.name == "*":
                self.leaf(syntax.ImportStar, 2, *self.span(alias))
            else:
                self._alias(alias, 1)
        self.close(row)

    def _alias(self, node: ast.alias, slot: int) -> None:
        start, end = self.span(node)
        row = self.open(syntax.ImportAlias, slot, start, end)
        self._dotted(node.name, 0, start)
        if node.asname is not None:
            at = end - len(node.asname.encode())
            inner = self.open(syntax.AsName, 1, self.text.rfind(b"as", start, at), end)
            self.name(0, node.asname, at)
            self.close(inner)
        self.close(row)

    def _dotted(self, name: str, slot: int, start: int) -> None:
        """A module's name as attributes of attributes."""
        parts = name.split(".")
        places = []
        at = start
        for part in parts:
            at = max(self.text.find(part.encode(), at), at)
            places.append(at)
            at += len(part.encode())
        self._chain(parts, places, slot, start)

    def _chain(self, parts: list[str], places: list[int], slot: int, start: int) -> None:
        if len(parts) == 1:
            self.name(slot, parts[0], places[0])
            return
        row = self.open(syntax.Attribute, slot, start, places[-1] + len(parts[-1].encode()))
        self._chain(parts[:-1], places[:-1], 0, start)
        self.name(1, parts[-1], places[-1])
        self.close(row)

    def declaration(self, node: ast.Global | ast.Nonlocal) -> None:
        start, end = self.span(node)
        row = self.open(syntax.Global if isinstance(node, ast.Global) else syntax.Nonlocal, 0, start, end)
        at = start + (6 if isinstance(node, ast.Global) else 8)
        for name in node.names:
            found = _WORD.search(self.text, at, end)
            place = found.start() if found else at
            at = place + len(name.encode())
            inner = self.open(syntax.NameItem, 0, place, at)
            self.name(0, name, place)
            self.close(inner)
        self.close(row)

    def nothing(self, node: ast.stmt) -> None:
        kinds: dict[type[ast.stmt], type[syntax.Node]] = {
            ast.Pass: syntax.Pass, ast.Break: syntax.Break, ast.Continue: syntax.Continue,
        }  # fmt: skip
        self.leaf(kinds[type(node)], 0, *self.span(node))

    def type_alias(self, node: Any) -> None:
        row = self.open(syntax.TypeAlias, 0, *self.span(node))
        self.expression(node.name, 0)
        self.expression(node.value, 1)
        self.close(row)

    # Expressions

    def expression(self, node: ast.expr, slot: int) -> None:
        lines = self.lines
        start = lines[node.lineno - 1] + node.col_offset
        end = lines[node.end_lineno - 1] + node.end_col_offset  # type: ignore[operator]
        if type(node) is ast.Name:
            self.leaf(syntax.Name, slot, start, end, node.id)
        else:
            _EXPRESSIONS[type(node)](self, node, slot, start, end)

    def within(self, kind: type[syntax.Node], slot: int, node: ast.expr) -> None:
        """An expression alone in a row of its place."""
        lines = self.lines
        start = lines[node.lineno - 1] + node.col_offset
        end = lines[node.end_lineno - 1] + node.end_col_offset  # type: ignore[operator]
        row = self.open(kind, slot, start, end)
        if type(node) is ast.Name:
            self.leaf(syntax.Name, 0, start, end, node.id)
        else:
            _EXPRESSIONS[type(node)](self, node, 0, start, end)
        self.close(row)

    def read_name(self, node: ast.Name, slot: int, start: int, end: int) -> None:
        self.leaf(syntax.Name, slot, start, end, node.id)

    def attribute(self, node: ast.Attribute, slot: int, start: int, end: int) -> None:
        row = self.open(syntax.Attribute, slot, start, end)
        self.expression(node.value, 0)
        self.leaf(syntax.Name, 1, end - len(node.attr.encode()), end, node.attr)
        self.close(row)

    def constant(self, node: ast.Constant, slot: int, start: int, end: int) -> None:
        value = node.value
        kind: type[syntax.Node]
        if isinstance(value, (str, bytes)):
            if strings.plain_end(self.text, start) == end:
                self.leaf(syntax.SimpleString, slot, start, end, self.text[start:end].decode())
            else:
                self.concatenated(node, slot, start, end)
            return
        if value is None or isinstance(value, bool):
            kind = syntax.Name
        elif value is ...:
            kind = syntax.Ellipsis
        else:
            kind = {int: syntax.Integer, float: syntax.Float, complex: syntax.Imaginary}[type(value)]
        self.leaf(kind, slot, start, end, self.text[start:end].decode())

    def concatenated(self, node: ast.expr, slot: int, start: int, end: int) -> None:
        """Several string tokens in a row, or one with replacement fields."""
        try:
            found = list(strings.tokens(self.text, start, end))
        except strings.StringError:
            found = [strings.Token(start, end, None)]
        self._tokens(found, slot, end)

    def _tokens(self, found: list[strings.Token], slot: int, end: int) -> None:
        token = found[0]
        if len(found) > 1:
            row = self.open(syntax.ConcatenatedString, slot, token.start, end)
            self._tokens(found[:1], 0, token.end)
            self._tokens(found[1:], 1, end)
            self.close(row)
        elif token.fields is None:
            self.leaf(syntax.SimpleString, slot, token.start, token.end, self.text[token.start : token.end].decode())
        else:
            kind = syntax.TemplatedString if token.is_template else syntax.FormattedString
            row = self.open(kind, slot, token.start, token.end)
            for field in token.fields:
                self._field(field, 0)
            self.close(row)

    def _field(self, field: strings.Field, slot: int) -> None:
        begin, stop = field.expression
        row = self.open(syntax.FormattedStringExpression, slot, field.start, field.end, field.marks)
        try:
            inner = ast.parse(f"({self.text[begin:stop].decode()}\n)", mode="eval").body
        except (SyntaxError, ValueError):
            inner = None
        if inner is not None:
            lines = self.lines
            breaks = (begin + match.end() for match in _LINE_END.finditer(self.text[begin:stop]))
            self.lines = [begin - 1, *breaks, stop]
            self.expression(inner, 0)
            self.lines = lines
        for each in field.spec:
            self._field(each, 1)
        self.close(row)

    def call(self, node: ast.Call, slot: int, start: int, end: int) -> None:
        row = self.open(syntax.Call, slot, start, end)
        self.expression(node.func, 0)
        if not node.keywords:
            for arg in node.args:
                self._argument(arg, 1, end)
        else:
            given: list[ast.expr | ast.keyword] = [*node.args, *node.keywords]
            for each in sorted(given, key=_place):
                if isinstance(each, ast.keyword):
                    self._keyword(each, 1)
                else:
                    self._argument(each, 1, end)
        self.close(row)

    def _argument(self, node: ast.expr, slot: int, call_end: int = -1) -> None:
        if not isinstance(node, (ast.Starred, ast.GeneratorExp)):
            self.within(syntax.Arg, slot, node)
            return
        start, end = self.span(node)
        if isinstance(node, ast.Starred):
            row = self.open(syntax.Arg, slot, start, end, "*")
            self.expression(node.value, 0)
        else:
            if end == call_end:
                start = _OPERATOR.match(self.text, start + 1).end()  # type: ignore[union-attr]
                end = start + len(self.text[start : end - 1].rstrip())
            row = self.open(syntax.Arg, slot, start, end)
            self.generator(node, 0, start, end)
        self.close(row)

    def _keyword(self, node: ast.keyword, slot: int) -> None:
        start, end = self.span(node)
        row = self.open(syntax.Arg, slot, start, end, "**" if node.arg is None else "")
        self.expression(node.value, 0)
        if node.arg is not None:
            self.leaf(syntax.Name, 1, start, _ARGUMENT.match(self.text, start).end(), node.arg)  # type: ignore[union-attr]
        self.close(row)

    def subscript(self, node: ast.Subscript, slot: int, start: int, end: int) -> None:
        row = self.open(syntax.Subscript, slot, start, end)
        self.expression(node.value, 0)
        index = node.slice
        parts = index.elts if isinstance(index, ast.Tuple) and index.elts and not self._has_parentheses(index) else [index]
        for part in parts:
            inner = self.open(syntax.SubscriptElement, 1, *self.span(part))
            if isinstance(part, ast.Slice):
                self.expression(part, 0)
            else:
                self.within(syntax.Index, 0, part)
            self.close(inner)
        self.close(row)

    def _has_parentheses(self, node: ast.Tuple) -> bool:
        """Whether the parentheses that a tuple may begin with are its own, and not those of its first element."""
        start, end = self.span(node)
        if not self.text.startswith(b"(", start):
            return False
        first, until = self.span(node.elts[0])
        following = self.span(node.elts[1])[0] if len(node.elts) > 1 else end
        opened = _COMMENT.sub(b"", self.text[start:first]).count(b"(")
        closed = _COMMENT.sub(b"", self.text[until:following]).partition(b",")[0].count(b")")
        return opened > closed

    def slice(self, node: ast.Slice, slot: int, start: int, end: int) -> None:
        row = self.open(syntax.Slice, slot, start, end)
        for field, part in enumerate((node.lower, node.upper, node.step)):
            if part is not None:
                self.expression(part, field)
        self.close(row)

    def binary(self, node: ast.BinOp, slot: int, start: int, end: int) -> None:
        row = self.open(syntax.BinaryOperation, slot, start, end, _BINARY[type(node.op)])
        self.expression(node.left, 0)
        self.expression(node.right, 1)
        self.close(row)

    def boolean(self, node: ast.BoolOp, slot: int, start: int, end: int) -> None:
        self._operands(node.values, "and" if isinstance(node.op, ast.And) else "or", slot, start, end)

    def _operands(self, values: Sequence[ast.expr], operator: str, slot: int, start: int, end: int) -> None:
        row = self.open(syntax.BooleanOperation, slot, start, end, operator)
        if len(values) > 2:
            self._operands(values[:-1], operator, 0, start, self.span(values[-2])[1])
        else:
            self.expression(values[0], 0)
        self.expression(values[-1], 1)
        self.close(row)

    def unary(self, node: ast.UnaryOp, slot: int, start: int, end: int) -> None:
        row = self.open(syntax.UnaryOperation, slot, start, end, _UNARY[type(node.op)])
        self.expression(node.operand, 0)
        self.close(row)

    def comparison(self, node: ast.Compare, slot: int, start: int, end: int) -> None:
        row = self.open(syntax.Comparison, slot, start, end)
        self.expression(node.left, 0)
        before = self.span(node.left)[1]
        for operator, compared in zip(node.ops, node.comparators, strict=True):
            after = self.span(compared)[1]
            begin = _OPERATOR.match(self.text, before).end()  # type: ignore[union-attr]
            inner = self.open(syntax.ComparisonTarget, 1, begin, after, _COMPARED[type(operator)])
            self.expression(compared, 0)
            self.close(inner)
            before = after
        self.close(row)

    def choice(self, node: ast.IfExp, slot: int, start: int, end: int) -> None:
        row = self.open(syntax.IfExp, slot, start, end)
        self.expression(node.test, 0)
        self.expression(node.body, 1)
        self.expression(node.orelse, 2)
        self.close(row)

    def named(self, node: ast.NamedExpr, slot: int, start: int, end: int) -> None:
        row = self.open(syntax.NamedExpr, slot, start, end)
        self.expression(node.target, 0)
        self.expression(node.value, 1)
        self.close(row)

    def await_(self, node: ast.Await, slot: int, start: int, end: int) -> None:
        row = self.open(syntax.Await, slot, start, end)
        self.expression(node.value, 0)
        self.close(row)

    def yield_(self, node: ast.Yield | ast.YieldFrom, slot: int, start: int, end: int) -> None:
        row = self.open(syntax.Yield, slot, start, end)
        if isinstance(node, ast.YieldFrom):
            self._from(node.value, 0)
        elif node.value is not None:
            self.expression(node.value, 0)
        self.close(row)

    def starred(self, node: ast.Starred, slot: int, start: int, end: int) -> None:
        row = self.open(syntax.StarredElement, slot, start, end)
        self.expression(node.value, 0)
        self.close(row)

    def elements(self, parts: Sequence[ast.expr]) -> None:
        for part in parts:
            if isinstance(part, ast.Starred):
                self.expression(part, 0)
            else:
                self.within(syntax.Element, 0, part)

    def sequence(self, node: ast.Tuple | ast.List | ast.Set, slot: int, start: int, end: int) -> None:
        row = self.open(_SEQUENCES[type(node)], slot, start, end)
        self.elements(node.elts)
        self.close(row)

    def dict(self, node: ast.Dict, slot: int, start: int, end: int) -> None:
        row = self.open(syntax.Dict, slot, start, end)
        for key, value in zip(node.keys, node.values, strict=True):
            first, last = self.span(value)
            if key is None:
                inner = self.open(syntax.StarredDictElement, 0, self.text.rfind(b"**", 0, first), last)
                self.expression(value, 0)
            else:
                inner = self.open(syntax.DictElement, 0, self.span(key)[0], last)
                self.expression(key, 0)
                self.expression(value, 1)
            self.close(inner)
        self.close(row)

    def lambda_(self, node: ast.Lambda, slot: int, start: int, end: int) -> None:
        row = self.open(syntax.Lambda, slot, start, end)
        self.parameters(node.args, 0, start + len("lambda"))
        self.expression(node.body, 1)
        self.close(row)

    def comprehension(self, node: ast.ListComp | ast.SetComp, slot: int, start: int, end: int) -> None:
        row = self.open(_SEQUENCES[type(node)], slot, start, end)
        self.expression(node.elt, 0)
        self._clauses(node.generators, 1)
        self.close(row)

    def generator(self, node: ast.GeneratorExp, slot: int, start: int, end: int) -> None:
        row = self.open(syntax.GeneratorExp, slot, start, end)
        self.expression(node.elt, 0)
        self._clauses(node.generators, 1)
        self.close(row)

    def dict_comprehension(self, node: ast.DictComp, slot: int, start: int, end: int) -> None:
        row = self.open(syntax.DictComp, slot, start, end)
        self.expression(node.key, 0)
        self.expression(node.value, 1)
        self._clauses(node.generators, 2)
        self.close(row)

    def _clauses(self, clauses: Sequence[ast.comprehension], slot: int) -> None:
        clause = clauses[0]
        start, _first = self.span(clause.target)
        end = self.span(clauses[-1].ifs[-1] if clauses[-1].ifs else clauses[-1].iter)[1]
        row = self.open(syntax.CompFor, slot, self.text.rfind(b"for", 0, start), end, "async" if clause.is_async else "")
        self.expression(clause.target, 0)
        self.expression(clause.iter, 1)
        for test in clause.ifs:
            begin, stop = self.span(test)
            inner = self.open(syntax.CompIf, 2, self.text.rfind(b"if", 0, begin), stop)
            self.expression(test, 0)
            self.close(inner)
        if len(clauses) > 1:
            self._clauses(clauses[1:], 3)
        self.close(row)


def _place(node: ast.expr | ast.keyword) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _line_at(lines: list[int], offset: int) -> int:
    return bisect.bisect_right(lines, offset) - 1


_SEQUENCES: dict[type[ast.expr], type[syntax.Node]] = {
    ast.Tuple: syntax.Tuple, ast.List: syntax.List, ast.Set: syntax.Set,
    ast.ListComp: syntax.ListComp, ast.SetComp: syntax.SetComp,
}  # fmt: skip
_COMPOUND_STATEMENTS: dict[type[ast.stmt], Callable[[_Lowering, Any, int], None]] = {
    ast.If: _Lowering.if_, ast.For: _Lowering.for_, ast.AsyncFor: _Lowering.for_, ast.While: _Lowering.while_,
    ast.Try: _Lowering.try_, getattr(ast, "TryStar", ast.Try): _Lowering.try_, ast.With: _Lowering.with_,
    ast.AsyncWith: _Lowering.with_, ast.FunctionDef: _Lowering.function, ast.AsyncFunctionDef: _Lowering.function,
    ast.ClassDef: _Lowering.class_, ast.Match: _Lowering.match,
}  # fmt: skip
_SMALL_STATEMENTS: dict[type[ast.stmt], Callable[[_Lowering, Any], None]] = {
    ast.Pass: _Lowering.nothing, ast.Break: _Lowering.nothing, ast.Continue: _Lowering.nothing,
    ast.Expr: _Lowering.expression_statement, ast.Assign: _Lowering.assign, ast.AnnAssign: _Lowering.annotated,
    ast.AugAssign: _Lowering.augmented, ast.Return: _Lowering.return_, ast.Delete: _Lowering.delete,
    ast.Raise: _Lowering.raise_, ast.Assert: _Lowering.assert_, ast.Import: _Lowering.import_,
    ast.ImportFrom: _Lowering.import_from, ast.Global: _Lowering.declaration, ast.Nonlocal: _Lowering.declaration,
}  # fmt: skip
if hasattr(ast, "TypeAlias"):
    _SMALL_STATEMENTS[ast.TypeAlias] = _Lowering.type_alias
_EXPRESSIONS: dict[type[ast.expr], Callable[[_Lowering, Any, int, int, int], None]] = {
    ast.Name: _Lowering.read_name, ast.Attribute: _Lowering.attribute, ast.Constant: _Lowering.constant,
    ast.JoinedStr: _Lowering.concatenated, ast.Call: _Lowering.call, ast.Subscript: _Lowering.subscript,
    ast.Slice: _Lowering.slice, ast.BinOp: _Lowering.binary, ast.BoolOp: _Lowering.boolean, ast.UnaryOp: _Lowering.unary,
    ast.Compare: _Lowering.comparison, ast.IfExp: _Lowering.choice, ast.NamedExpr: _Lowering.named,
    ast.Await: _Lowering.await_, ast.Yield: _Lowering.yield_, ast.YieldFrom: _Lowering.yield_,
    ast.Starred: _Lowering.starred, ast.Tuple: _Lowering.sequence, ast.List: _Lowering.sequence,
    ast.Set: _Lowering.sequence, ast.Dict: _Lowering.dict, ast.Lambda: _Lowering.lambda_,
    ast.ListComp: _Lowering.comprehension, ast.SetComp: _Lowering.comprehension, ast.GeneratorExp: _Lowering.generator,
    ast.DictComp: _Lowering.dict_comprehension,
}  # fmt: skip
if hasattr(ast, "TemplateStr"):
    _EXPRESSIONS[ast.TemplateStr] = _Lowering.concatenated
