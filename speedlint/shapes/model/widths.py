"""How wide layers may be: the most that a number is, through constructors and the arguments that each is given."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.solve import configs
from speedlint.solve.flow import listed_once
from speedlint.solve.names import Binding, Kind
from speedlint.solve.terms import Definition
from speedlint.solve.unpacking import written
from speedlint.solve.values import returned
from speedlint.source import is_name

_ALPHABET = 128
"""Characters that a text is taken to have: those of ASCII."""
_MOST_VISITS = 400
"""Constructors and functions that are followed, each for every call of it."""


@dataclass(frozen=True, slots=True)
class Given:
    """An expression, and what the parameters that it names were given; those that are not among them, by any call."""

    script: Script
    node: syntax.Node
    frame: dict[syntax.Param, Given] = field(default_factory=dict)

    def of(self, node: syntax.Node) -> Given:
        """Another expression beside it."""
        return Given(self.script, node, self.frame)


def passed(ways: Iterable[Given], keyword: str, position: int) -> list[Given | None]:
    """What a call passes for a parameter, in each of the ways that lead to it."""
    calls = [(each, each.node) for each in ways if isinstance(each.node, syntax.Call)]
    given = [(each, each.script.argument(call, keyword, position)) for each, call in calls]
    return [each.of(node) if node is not None else None for each, node in given]


def constructed(made: Iterable[Given]) -> dict[syntax.Node, list[Given]]:
    """The calls of a library that some constructions lead to, each in the ways that lead there."""
    found: dict[syntax.Node, list[Given]] = {}
    todo = [(each, _constructed(each.script, each.node)) for each in made if isinstance(each.node, syntax.Call)]
    left = _MOST_VISITS
    while todo and left:
        now, definition = todo.pop()
        if definition is None:
            found.setdefault(now.node, []).append(now)
            continue
        left -= 1
        frame, place = dict(_frame(definition, now)), definition.script
        todo += [(Given(place, call, frame), inner) for call, inner in _calls_in(place, definition.node)]
    return {} if todo else found


@listed_once
def _calls_in(script: Script, code: syntax.Node) -> Iterator[tuple[syntax.Call, Definition | None]]:
    """The calls that stand in code, each with what it makes an object of or runs."""
    return ((call, _constructed(script, call)) for call in script.source.inside(code, syntax.Call))


def _constructed(script: Script, call: syntax.Call) -> Definition | None:
    """The first-party class, or function, that a call makes an object of or runs."""
    definition = script.definition(call.func) or script.callee(call)
    if definition is None or definition.name != "__init__":
        return definition
    owner = definition.script.names.owner(definition.node) if isinstance(definition.node, syntax.FunctionDef) else None
    return Definition(definition.script, owner) if owner is not None else None


def _frame(definition: Definition, call: Given) -> Iterator[tuple[syntax.Param, Given]]:
    """What each parameter of a function, or of a class's constructor, is given by a call."""
    is_class = isinstance(definition.node, syntax.ClassDef)
    function = definition.script.roles.calls.method(definition, "__init__") if is_class else definition
    if function is None or not isinstance(function.node, syntax.FunctionDef) or not isinstance(call.node, syntax.Call):
        return
    params = function.node.params
    for param in (*params.posonly_params, *params.params, *params.kwonly_params):
        passed = function.script.values.given(function.node, param, call.script, call.node)
        if passed is not None:
            yield param, call.of(passed)
        elif param.default is not None:
            yield param, Given(function.script, param.default)


def most(numbers: Iterable[Given | None]) -> int | None:
    """The most that one of some numbers is; None where that is not known of all, or where none is a number."""
    return _greatest(_most(each, frozenset()) for each in numbers) or None


def _greatest(found: Iterable[int | None]) -> int | None:
    known = list(found)
    return max((each for each in known if each is not None), default=None) if None not in known else None


def _most(number: Given | None, seen: frozenset[syntax.Node]) -> int | None:
    """The most that a number is, an option being what it is by default; 0 of a None, in whose place another one is taken."""
    if number is None or number.node in seen:
        return None
    node = number.node
    seen |= {node}
    match node:
        case syntax.Name() | syntax.Attribute():
            plain = _greatest(_most(each, seen) for each in _sources(number))
            plain = _known(number) if plain is None else plain
            return _greatest((plain, *(_most(each, seen) for each in _constructed_with(number))))
        case syntax.BinaryOperation(left=left, operator=operator, right=right):
            return _computed(_most(number.of(left), seen), operator, _most(number.of(right), seen))
        case syntax.IfExp(body=body, orelse=orelse):
            return _greatest(_most(number.of(each), seen) for each in (body, orelse))
        case syntax.Subscript(value=value):
            element = _element(number.of(value), seen)
            return element if element is not None else _known(number)
        case syntax.Call(func=syntax.Name(value="int" | "max" | "min" | "round"), args=args):
            return _greatest(_most(number.of(arg.value), seen) for arg in args)
        case syntax.Call(func=syntax.Name("len"), args=[syntax.Arg(value=several)]):
            return _length(number.of(several), seen)
        case syntax.Call() if given := _returned(number, node):
            return _greatest(_most(each, seen) for each in given)
    return _known(number)


def _returned(number: Given, call: syntax.Call) -> list[Given]:
    """What a function of the project that a call runs may give."""
    callee = number.script.callee(call)
    if callee is None or not isinstance(callee.node, syntax.FunctionDef):
        return []
    frame = dict(_frame(callee, number))
    return [Given(callee.script, each, frame) for each in returned(callee)]


def _constructed_with(number: Given) -> Iterator[Given]:
    """What an attribute is where its object is made: ``Config(hidden=1024)``, ``replace(config, hidden=1024)``."""
    script, node = number.script, number.node
    owner = script.value(node.value).definition if isinstance(node, syntax.Attribute) else None
    if owner is None or not isinstance(node, syntax.Attribute) or not isinstance(owner.node, syntax.ClassDef):
        return
    name = node.attr.value
    for place in script.everywhere(name.encode()):
        for call in place.source.of(syntax.Call):
            for arg in call.args:
                if is_name(arg.keyword, name) and place.value(call).definition == owner:
                    yield Given(place, arg.value)


def _known(number: Given) -> int | None:
    known = number.script.constant(number.node) if isinstance(number.node, syntax.BaseExpression) else None
    if known is None:
        return configs.most(number.script, number.node)
    if known.value is None:
        return 0
    return int(known.value) if isinstance(known.value, (int, float)) else None


def _computed(left: int | None, operator: syntax.BaseBinaryOp, right: int | None) -> int | None:
    if left is None or right is None:
        return None
    match operator:
        case syntax.Add():
            return left + right
        case syntax.Multiply():
            return left * right
        case syntax.Subtract():
            return left
        case syntax.FloorDivide() | syntax.Divide():
            return int(left / right) if right else None
    return None


def _length(several: Given | None, seen: frozenset[syntax.Node]) -> int | None:
    """The most elements that a list has which is written out, or that the characters of a text are."""
    if several is None or several.node in seen:
        return None
    node = several.node
    seen |= {node}
    match node:
        case syntax.List(elements=elements) | syntax.Tuple(elements=elements):
            return len(elements)
        case syntax.Name() | syntax.Attribute():
            return _greatest(_length(each, seen) for each in _sources(several))
        case syntax.Call(func=syntax.Name("set"), args=[syntax.Arg(value=inner)]) if _is_text(several.of(inner), seen):
            return _ALPHABET
        case syntax.Call(
            func=syntax.Name("sorted" | "list" | "tuple" | "set" | "enumerate"), args=[syntax.Arg(value=inner), *_]
        ):
            return _length(several.of(inner), seen)
        case syntax.ListComp(for_in=clause) | syntax.DictComp(for_in=clause) if clause.inner_for_in is None:
            return _length(several.of(clause.iter), seen)
    return None


def _is_text(value: Given | None, seen: frozenset[syntax.Node]) -> bool:
    """Whether a value is the text of a file, or one that is joined."""
    if value is None or value.node in seen:
        return False
    match value.node:
        case syntax.Call(func=syntax.Attribute(attr=syntax.Name("join" | "read" | "read_text"))):
            return True
        case syntax.Name() | syntax.Attribute():
            found = _sources(value)
            return bool(found) and all(_is_text(each, seen | {value.node}) for each in found)
    return False


def _element(several: Given | None, seen: frozenset[syntax.Node]) -> int | None:
    """The most that one of several numbers is: of a list that is written out, of one that is repeated."""
    if several is None or several.node in seen:
        return None
    node = several.node
    seen |= {node}
    match node:
        case syntax.List(elements=elements) | syntax.Tuple(elements=elements):
            return _greatest(_most(several.of(each.value), seen) for each in elements) if elements else None
        case syntax.BinaryOperation(left=left, operator=syntax.Multiply()):
            return _element(several.of(left), seen)
        case syntax.BinaryOperation(left=left, operator=syntax.Add(), right=right):
            return _greatest(_element(several.of(each), seen) for each in (left, right))
        case syntax.ListComp(elt=element):
            return _most(several.of(element), seen)
        case syntax.Name() | syntax.Attribute():
            return _greatest(_element(each, seen) for each in _sources(several))
    return None


def _sources(value: Given) -> list[Given | None]:
    """The expressions that give a variable or attribute its value; None for each that is not in sight."""
    script, node = value.script, value.node
    if isinstance(node, syntax.Name):
        return [each for binding in script.names.reaching(node) for each in _bound(value, binding)]
    if not isinstance(node, syntax.Attribute):
        return [None]
    owner = script.value(node.value).definition
    if owner is None or not isinstance(owner.node, syntax.ClassDef):
        return [None]
    assigned = script.roles.assigned_on_self(owner, node.attr.value)
    return [None if path else Given(place, each, value.frame) for place, each, path in assigned] or [None]


def _bound(value: Given, binding: Binding) -> list[Given | None]:
    script = value.script
    if binding.kind is Kind.PARAMETER and isinstance(binding.node, syntax.Param):
        if binding.node in value.frame:
            return [value.frame[binding.node]]
        default = binding.node.default
        passed = [
            Given(other, each) if each is not None else Given(script, default) if default is not None else None
            for other, each in script.values.passed(binding.node)
        ]
        return [*passed] or [None]
    given = written(binding)
    return [value.of(given) if given is not None else None]
