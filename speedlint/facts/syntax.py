"""The nodes of a file's syntax: typed views of its rows, made when something looks at them.

Names and fields are those of libcst, so that its documentation describes them; whitespace and punctuation have no nodes,
sequences are tuples, and what libcst writes as a sentinel is None. A node is one row of a ``Tree``, always the same object,
and compares by identity.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Callable, Collection, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

if TYPE_CHECKING:
    from speedlint.facts.rows import Rows

AnyNode = TypeVar("AnyNode", bound="Node")

KINDS: list[type[Node]] = []
"""The classes that rows name, by the number that they name them with."""

_PLAIN = re.compile(r"""\"[^"\\\r\n]*\"|'[^'\\\r\n]*'""")
"""A string that means what stands between its quotes."""
_NO_ROWS = frozenset({"str", "bool", "BaseBinaryOp", "BaseBooleanOp", "BaseUnaryOp", "BaseCompOp", "BaseAugOp"})
"""The types of fields that are read from a row's text, not from the rows below it."""


class _Slotted(type):
    """Gives a class slots for the fields that it is annotated with: a node without a dict takes half the memory."""

    def __new__(mcs, name: str, bases: tuple[type, ...], body: dict[str, Any], **said: Any) -> _Slotted:
        if bases:
            is_base = name.startswith("Base")
            body["__slots__"] = () if is_base else tuple(body.get("__annotations__", ()))
        return super().__new__(mcs, name, bases, body, **said)


class Node(metaclass=_Slotted):
    """One row of a tree.

    Attributes:
        row: its number, which is its place in pre-order.
    """

    __slots__ = ("row", "tree")

    tree: Tree
    row: int
    kind: ClassVar[int]
    fields: ClassVar[tuple[str, ...]] = ()
    """The names of the fields that hold nodes, in the order in which their rows follow."""
    _fields: ClassVar[frozenset[str]] = frozenset()
    _empty: ClassVar[dict[str, Any]] = {}
    _read: ClassVar[dict[str, Callable[[str], dict[str, Any]]]] = {}
    """How the text of a row is read, where it says more than the rows below it."""

    def __init_subclass__(cls, text: Callable[[str], dict[str, Any]] | None = None) -> None:
        """Numbers a class that is no ``Base``, and takes its fields from its annotations."""
        if cls.__name__.startswith("Base"):
            return
        written: dict[str, str] = cls.__annotations__
        cls.fields = tuple(name for name, kind in written.items() if kind not in _NO_ROWS)
        cls._fields = frozenset(written)
        type.__setattr__(cls, "__match_args__", tuple(written))
        cls._empty = {name: () if written[name].startswith("tuple") else None for name in cls.fields}
        cls._read = {"text": text} if text is not None else {}
        cls.kind = len(KINDS)
        KINDS.append(cls)

    def __init__(self, tree: Tree, row: int) -> None:
        self.tree, self.row = tree, row

    def __getattr__(self, name: str) -> Any:
        """Reads all fields when the first of them is asked for."""
        kind = type(self)
        if name not in kind._fields:
            raise AttributeError(name)
        tree, row = self.tree, self.row
        rows = tree.rows
        if kind._read:
            for field, value in kind._read["text"](rows.strings[rows.text[row]]).items():
                setattr(self, field, value)
        if fields := kind.fields:
            nodes, kinds, lasts, slots, end = tree.nodes, rows.kind, rows.last, rows.slot, rows.last[row]
            found: dict[str, Any] = kind._empty.copy()
            child = row + 1
            while child <= end:
                field = fields[slots[child]]
                node = nodes[child]
                if node is None:
                    node = nodes[child] = KINDS[kinds[child]](tree, child)
                known = found[field]
                if known is None:
                    found[field] = node
                elif known:
                    known.append(node)
                else:
                    found[field] = [node]
                child = lasts[child] + 1
            for field, value in found.items():
                setattr(self, field, tuple(value) if type(value) is list else value)
        return getattr(self, name)

    @property
    def children(self) -> Iterator[Node]:
        """The nodes right below, in source order of their fields."""
        child, last = self.row + 1, self.tree.rows.last[self.row]
        while child <= last:
            yield self.tree.node(child)
            child = self.tree.rows.last[child] + 1


class Tree:
    """The nodes of one file.

    Attributes:
        path: where the file is.
        nodes: those that were looked at, by row.
    """

    def __init__(self, rows: Rows, path: str = "") -> None:
        self.rows, self.path = rows, path
        self.nodes: list[Node | None] = [None] * len(rows.kind)
        self._by_kind: dict[int, list[Any]] = {}
        self._named: dict[str, list[int]] | None = None

    def node(self, row: int) -> Node:
        """The node of a row."""
        found = self.nodes[row]
        if found is None:
            found = self.nodes[row] = KINDS[self.rows.kind[row]](self, row)
        return found

    def of(self, kind: type[AnyNode]) -> list[AnyNode]:
        """All nodes of exactly one class, in source order."""
        number = kind.kind
        found = self._by_kind.get(number)
        if found is None:
            found = self._by_kind[number] = [self.node(row) for row in self.rows.of(number)]
        return found

    def named(self, names: Collection[str]) -> list[Name]:
        """The nodes of some names, in source order."""
        if self._named is None:
            self._named = {}
            texts, strings = self.rows.text, self.rows.strings
            for row in self.rows.of(Name.kind):
                self._named.setdefault(strings[texts[row]], []).append(row)
        found = [self._named.get(name, ()) for name in {*names}]
        return [self.node(row) for row in sorted(itertools.chain.from_iterable(found))]  # type: ignore[misc]


# What classes have in common


class BaseExpression(Node):
    """An expression."""


class BaseStatement(Node):
    """A whole line of small statements, or a compound statement."""


class BaseCompoundStatement(BaseStatement):
    """A statement with a block."""


class BaseSmallStatement(Node):
    """A statement that may share its line."""


class BaseSuite(Node):
    """The body of a compound statement."""

    body: tuple[Any, ...]


class BaseSlice(Node):
    """What stands between the commas of a subscript."""


class BaseNumber(BaseExpression):
    """A number written out."""

    value: str


class BaseString(BaseExpression):
    """A string written out."""


class BaseDictElement(Node):
    """An entry of a dict."""

    value: BaseExpression


class BaseElement(Node):
    """An element of a list, tuple or set."""

    value: BaseExpression


class BaseComp(BaseExpression):
    """A comprehension."""

    for_in: CompFor


def _value(text: str) -> dict[str, Any]:
    return {"value": text}


def _star(text: str) -> dict[str, Any]:
    return {"star": text}


def _asynchronous(text: str) -> dict[str, Any]:
    return {"asynchronous": bool(text)}


def _operator(text: str) -> dict[str, Any]:
    return {"operator": OPERATORS[text]}


def _assigning(text: str) -> dict[str, Any]:
    return {"operator": OPERATORS[f"{text}="]}


def _relative(text: str) -> dict[str, Any]:
    return {"relative": text}


def _marks(text: str) -> dict[str, Any]:
    return {"equal": text[:1] if text[:1] == "=" else "", "conversion": text.lstrip("=")}


# Expressions


class Name(BaseExpression, text=_value):
    """A name; also ``None``, ``True`` and ``False``."""

    value: str

    def __init__(self, tree: Tree, row: int) -> None:
        """Reads the name at once: half of all nodes are names, and each is looked at for it."""
        rows = tree.rows
        self.tree, self.row, self.value = tree, row, rows.strings[rows.text[row]]


class Integer(BaseNumber, text=_value):
    """``1``."""

    value: str


class Float(BaseNumber, text=_value):
    """``1.0``."""

    value: str


class Imaginary(BaseNumber, text=_value):
    """``1j``."""

    value: str


@lru_cache(maxsize=4096)
def _evaluated(written: str) -> str | bytes:
    if _PLAIN.fullmatch(written):
        return written[1:-1]
    return ast.literal_eval(written)  # type: ignore[no-any-return]


class SimpleString(BaseString, text=_value):
    """One string token without replacement fields; ``value`` is as written."""

    value: str

    @property
    def evaluated_value(self) -> str | bytes:
        """The string that it stands for."""
        return _evaluated(self.value)

    @property
    def quote(self) -> str:
        """The quotes it is written in."""
        body = self.value.lstrip("rRbBuU")
        return body[:3] if body[:3] in ('"""', "'''") else body[:1]


class FormattedString(BaseString):
    """An f-string."""

    parts: tuple[Node, ...]


class TemplatedString(BaseString):
    """A t-string."""

    parts: tuple[Node, ...]


class FormattedStringExpression(Node, text=_marks):
    """``{expression!r:spec}``; ``equal`` where it is ``{expression=}``."""

    expression: BaseExpression
    format_spec: tuple[Node, ...]
    conversion: str
    equal: str


class ConcatenatedString(BaseString):
    """Two strings, one after the other."""

    left: BaseString
    right: BaseString

    @property
    def evaluated_value(self) -> str | bytes | None:
        """The string that it stands for; None where a part is an f-string."""
        left = self.left.evaluated_value if isinstance(self.left, SimpleString) else None
        right = self.right.evaluated_value if isinstance(self.right, (SimpleString, ConcatenatedString)) else None
        return left + right if left is not None and right is not None else None  # type: ignore[operator]


class Ellipsis(BaseExpression):
    """``...``."""


class Attribute(BaseExpression):
    """``value.attr``."""

    value: BaseExpression
    attr: Name


class Arg(Node, text=_star):
    """An argument of a call or class; ``star`` is ``""``, ``"*"`` or ``"**"``."""

    value: BaseExpression
    keyword: Name | None
    star: str


class Call(BaseExpression):
    """``func(*args)``."""

    func: BaseExpression
    args: tuple[Arg, ...]


class Index(BaseSlice):
    """``value`` in ``x[value]``."""

    value: BaseExpression


class Slice(BaseSlice):
    """``lower:upper:step``."""

    lower: BaseExpression | None
    upper: BaseExpression | None
    step: BaseExpression | None


class SubscriptElement(Node):
    """One of the parts between a subscript's commas."""

    slice: BaseSlice


class Subscript(BaseExpression):
    """``value[slice]``."""

    value: BaseExpression
    slice: tuple[SubscriptElement, ...]


class BinaryOperation(BaseExpression, text=_operator):
    """``left operator right``, of arithmetic."""

    left: BaseExpression
    operator: BaseBinaryOp
    right: BaseExpression


class BooleanOperation(BaseExpression, text=_operator):
    """``left and right``, ``left or right``."""

    left: BaseExpression
    operator: BaseBooleanOp
    right: BaseExpression


class UnaryOperation(BaseExpression, text=_operator):
    """``-expression``, ``not expression``."""

    operator: BaseUnaryOp
    expression: BaseExpression


class ComparisonTarget(Node, text=_operator):
    """``operator comparator``."""

    operator: BaseCompOp
    comparator: BaseExpression


class Comparison(BaseExpression):
    """``left < a <= b``."""

    left: BaseExpression
    comparisons: tuple[ComparisonTarget, ...]


class IfExp(BaseExpression):
    """``body if test else orelse``."""

    test: BaseExpression
    body: BaseExpression
    orelse: BaseExpression


class NamedExpr(BaseExpression):
    """``target := value``."""

    target: BaseExpression
    value: BaseExpression


class Await(BaseExpression):
    """``await expression``."""

    expression: BaseExpression


class From(Node):
    """``from item``, after ``yield`` or ``raise``."""

    item: BaseExpression


class Yield(BaseExpression):
    """``yield value``."""

    value: BaseExpression | From | None


class Element(BaseElement):
    """A plain element of a list, tuple or set."""

    value: BaseExpression


class StarredElement(BaseElement, BaseExpression):
    """``*value`` in a list, tuple or set."""

    value: BaseExpression


class Tuple(BaseExpression):
    """``(a, b)``, with or without parentheses."""

    elements: tuple[BaseElement, ...]


class List(BaseExpression):
    """``[a, b]``."""

    elements: tuple[BaseElement, ...]


class Set(BaseExpression):
    """``{a, b}``."""

    elements: tuple[BaseElement, ...]


class DictElement(BaseDictElement):
    """``key: value``."""

    key: BaseExpression
    value: BaseExpression


class StarredDictElement(BaseDictElement):
    """``**value``."""

    value: BaseExpression


class Dict(BaseExpression):
    """``{key: value}``."""

    elements: tuple[BaseDictElement, ...]


class CompIf(Node):
    """``if test``, in a comprehension."""

    test: BaseExpression


class CompFor(Node, text=_asynchronous):
    """``for target in iter``, in a comprehension."""

    target: BaseExpression
    iter: BaseExpression
    ifs: tuple[CompIf, ...]
    inner_for_in: CompFor | None
    asynchronous: bool


class ListComp(BaseComp):
    """``[elt for ...]``."""

    elt: BaseExpression
    for_in: CompFor


class SetComp(BaseComp):
    """``{elt for ...}``."""

    elt: BaseExpression
    for_in: CompFor


class GeneratorExp(BaseComp):
    """``(elt for ...)``."""

    elt: BaseExpression
    for_in: CompFor


class DictComp(BaseComp):
    """``{key: value for ...}``."""

    key: BaseExpression
    value: BaseExpression
    for_in: CompFor


class Annotation(Node):
    """``: annotation`` or ``-> annotation``."""

    annotation: BaseExpression


class Param(Node, text=_star):
    """A parameter; ``star`` is ``""``, ``"*"`` or ``"**"``."""

    name: Name
    annotation: Annotation | None
    default: BaseExpression | None
    star: str


class ParamStar(Node):
    """The ``*`` after which parameters are passed by name."""


class Parameters(Node):
    """The parameters of a function or lambda."""

    params: tuple[Param, ...]
    star_arg: Param | ParamStar | None
    kwonly_params: tuple[Param, ...]
    star_kwarg: Param | None
    posonly_params: tuple[Param, ...]


class Lambda(BaseExpression):
    """``lambda params: body``."""

    params: Parameters
    body: BaseExpression


# Small statements


class Expr(BaseSmallStatement):
    """An expression as a statement."""

    value: BaseExpression


class AssignTarget(Node):
    """``target =``."""

    target: BaseExpression


class Assign(BaseSmallStatement):
    """``a = b = value``."""

    targets: tuple[AssignTarget, ...]
    value: BaseExpression


class AnnAssign(BaseSmallStatement):
    """``target: annotation = value``."""

    target: BaseExpression
    annotation: Annotation
    value: BaseExpression | None


class AugAssign(BaseSmallStatement, text=_assigning):
    """``target += value``."""

    target: BaseExpression
    operator: BaseAugOp
    value: BaseExpression


class Return(BaseSmallStatement):
    """``return value``."""

    value: BaseExpression | None


class Raise(BaseSmallStatement):
    """``raise exc from cause``."""

    exc: BaseExpression | None
    cause: From | None


class Assert(BaseSmallStatement):
    """``assert test, msg``."""

    test: BaseExpression
    msg: BaseExpression | None


class Del(BaseSmallStatement):
    """``del target``."""

    target: BaseExpression


class Pass(BaseSmallStatement):
    """``pass``."""


class Break(BaseSmallStatement):
    """``break``."""


class Continue(BaseSmallStatement):
    """``continue``."""


class NameItem(Node):
    """A name that ``global`` or ``nonlocal`` declares."""

    name: Name


class Global(BaseSmallStatement):
    """``global a, b``."""

    names: tuple[NameItem, ...]


class Nonlocal(BaseSmallStatement):
    """``nonlocal a, b``."""

    names: tuple[NameItem, ...]


class AsName(Node):
    """``as name``."""

    name: BaseExpression


class ImportAlias(Node):
    """``name as asname``."""

    name: Attribute | Name
    asname: AsName | None


class ImportStar(Node):
    """The ``*`` of ``from module import *``."""


class Import(BaseSmallStatement):
    """``import a.b as c``."""

    names: tuple[ImportAlias, ...]


class ImportFrom(BaseSmallStatement, text=_relative):
    """``from ..module import a``; ``relative`` is the dots."""

    module: Attribute | Name | None
    aliases: tuple[ImportAlias, ...]
    star: ImportStar | None
    relative: str

    @property
    def names(self) -> tuple[ImportAlias, ...] | ImportStar:
        """What is imported."""
        return self.star or self.aliases


class TypeAlias(BaseSmallStatement):
    """``type name = value``."""

    name: Name
    value: BaseExpression


# Statements


class SimpleStatementLine(BaseStatement):
    """A line of small statements."""

    body: tuple[BaseSmallStatement, ...]


class SimpleStatementSuite(BaseSuite):
    """Small statements on the line of their compound statement."""

    body: tuple[BaseSmallStatement, ...]


class IndentedBlock(BaseSuite):
    """An indented block."""

    body: tuple[BaseStatement, ...]


class Else(Node):
    """``else: body``."""

    body: BaseSuite


class Finally(Node):
    """``finally: body``."""

    body: BaseSuite


class If(BaseCompoundStatement):
    """``if test: body``; ``orelse`` is an ``If`` where it is an ``elif``."""

    test: BaseExpression
    body: BaseSuite
    orelse: If | Else | None


class For(BaseCompoundStatement, text=_asynchronous):
    """``for target in iter: body``."""

    target: BaseExpression
    iter: BaseExpression
    body: BaseSuite
    orelse: Else | None
    asynchronous: bool


class While(BaseCompoundStatement):
    """``while test: body``."""

    test: BaseExpression
    body: BaseSuite
    orelse: Else | None


class ExceptHandler(Node):
    """``except type as name: body``."""

    body: BaseSuite
    type: BaseExpression | None
    name: AsName | None


class Try(BaseCompoundStatement):
    """``try: body``, with its handlers; ``except*`` too."""

    body: BaseSuite
    handlers: tuple[ExceptHandler, ...]
    orelse: Else | None
    finalbody: Finally | None


class WithItem(Node):
    """``item as asname``."""

    item: BaseExpression
    asname: AsName | None


class With(BaseCompoundStatement, text=_asynchronous):
    """``with items: body``."""

    items: tuple[WithItem, ...]
    body: BaseSuite
    asynchronous: bool


class Decorator(Node):
    """``@decorator``."""

    decorator: BaseExpression


class FunctionDef(BaseCompoundStatement, text=_asynchronous):
    """``def name(params): body``."""

    name: Name
    params: Parameters
    body: BaseSuite
    decorators: tuple[Decorator, ...]
    returns: Annotation | None
    asynchronous: bool


class ClassDef(BaseCompoundStatement):
    """``class name(bases, keywords): body``."""

    name: Name
    body: BaseSuite
    bases: tuple[Arg, ...]
    keywords: tuple[Arg, ...]
    decorators: tuple[Decorator, ...]


class MatchPattern(Node):
    """A pattern; the values and patterns that it is made of are below it."""

    parts: tuple[Node, ...]


class MatchAs(Node):
    """``pattern as name``, ``name`` or ``_``; also ``*name``."""

    pattern: Node | None
    name: Name | None


class MatchCase(Node):
    """``case pattern if guard: body``."""

    pattern: Node
    body: BaseSuite
    guard: BaseExpression | None


class Match(BaseCompoundStatement):
    """``match subject: cases``."""

    subject: BaseExpression
    cases: tuple[MatchCase, ...]


class Module(Node):
    """A whole file."""

    body: tuple[BaseStatement, ...]


# Operators: values, not rows


class _Operator:
    """An operator; all of one class are one object."""


class BaseBinaryOp(_Operator):
    """An operator of arithmetic."""


class BaseBooleanOp(_Operator):
    """``and`` or ``or``."""


class BaseUnaryOp(_Operator):
    """An operator in front of its operand."""


class BaseCompOp(_Operator):
    """A comparison."""


class BaseAugOp(_Operator):
    """An operator that assigns."""


class Add(BaseBinaryOp):
    """``+``."""


class Subtract(BaseBinaryOp):
    """``-``."""


class Multiply(BaseBinaryOp):
    """``*``."""


class Divide(BaseBinaryOp):
    """``/``."""


class FloorDivide(BaseBinaryOp):
    """``//``."""


class Modulo(BaseBinaryOp):
    """``%``."""


class Power(BaseBinaryOp):
    """``**``."""


class MatrixMultiply(BaseBinaryOp):
    """``@``."""


class BitAnd(BaseBinaryOp):
    """``&``."""


class BitOr(BaseBinaryOp):
    """``|``."""


class BitXor(BaseBinaryOp):
    """``^``."""


class LeftShift(BaseBinaryOp):
    """``<<``."""


class RightShift(BaseBinaryOp):
    """``>>``."""


class AddAssign(BaseAugOp):
    """``+=``."""


class SubtractAssign(BaseAugOp):
    """``-=``."""


class MultiplyAssign(BaseAugOp):
    """``*=``."""


class DivideAssign(BaseAugOp):
    """``/=``."""


class FloorDivideAssign(BaseAugOp):
    """``//=``."""


class ModuloAssign(BaseAugOp):
    """``%=``."""


class PowerAssign(BaseAugOp):
    """``**=``."""


class MatrixMultiplyAssign(BaseAugOp):
    """``@=``."""


class BitAndAssign(BaseAugOp):
    """``&=``."""


class BitOrAssign(BaseAugOp):
    """``|=``."""


class BitXorAssign(BaseAugOp):
    """``^=``."""


class LeftShiftAssign(BaseAugOp):
    """``<<=``."""


class RightShiftAssign(BaseAugOp):
    """``>>=``."""


class Equal(BaseCompOp):
    """``==``."""


class NotEqual(BaseCompOp):
    """``!=``."""


class LessThan(BaseCompOp):
    """``<``."""


class LessThanEqual(BaseCompOp):
    """``<=``."""


class GreaterThan(BaseCompOp):
    """``>``."""


class GreaterThanEqual(BaseCompOp):
    """``>=``."""


class Is(BaseCompOp):
    """``is``."""


class IsNot(BaseCompOp):
    """``is not``."""


class In(BaseCompOp):
    """``in``."""


class NotIn(BaseCompOp):
    """``not in``."""


class Minus(BaseUnaryOp):
    """``-``."""


class Plus(BaseUnaryOp):
    """``+``."""


class BitInvert(BaseUnaryOp):
    """``~``."""


class Not(BaseUnaryOp):
    """``not``."""


class And(BaseBooleanOp):
    """``and``."""


class Or(BaseBooleanOp):
    """``or``."""


OPERATORS: dict[str, Any] = {
    "+": Add(),
    "-": Subtract(),
    "*": Multiply(),
    "/": Divide(),
    "//": FloorDivide(),
    "%": Modulo(),
    "**": Power(),
    "@": MatrixMultiply(),
    "&": BitAnd(),
    "|": BitOr(),
    "^": BitXor(),
    "<<": LeftShift(),
    ">>": RightShift(),
    "+=": AddAssign(),
    "-=": SubtractAssign(),
    "*=": MultiplyAssign(),
    "/=": DivideAssign(),
    "//=": FloorDivideAssign(),
    "%=": ModuloAssign(),
    "**=": PowerAssign(),
    "@=": MatrixMultiplyAssign(),
    "&=": BitAndAssign(),
    "|=": BitOrAssign(),
    "^=": BitXorAssign(),
    "<<=": LeftShiftAssign(),
    ">>=": RightShiftAssign(),
    "==": Equal(),
    "!=": NotEqual(),
    "<": LessThan(),
    "<=": LessThanEqual(),
    ">": GreaterThan(),
    ">=": GreaterThanEqual(),
    "is": Is(),
    "is not": IsNot(),
    "in": In(),
    "not in": NotIn(),
    "unary -": Minus(),
    "unary +": Plus(),
    "~": BitInvert(),
    "not": Not(),
    "and": And(),
    "or": Or(),
}
"""The operators by how rows write them."""
