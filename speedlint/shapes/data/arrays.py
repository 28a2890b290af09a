"""Numpy arrays: which expressions certainly are arrays of more than one number, and which lists hold nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.shapes.data import collated
from speedlint.shapes.data.collated import Place
from speedlint.solve.dtypes import is_scalar
from speedlint.solve.names import Binding, Kind
from speedlint.solve.terms import Definition
from speedlint.solve.unpacking import all_written
from speedlint.solve.values import returned
from speedlint.source import is_name
from speedlint.torch.words import Role

_MAKERS = frozenset(
    f"numpy.{name}"
    for name in (
        "zeros ones empty full zeros_like ones_like full_like eye arange linspace load stack concatenate vstack hstack tile "
        "expand_dims frombuffer fromfile loadtxt genfromtxt pad random.permutation"
    ).split()
)
_SAME_SHAPE = frozenset(
    f"numpy.{name}"
    for name in (
        "copy ascontiguousarray flip fliplr flipud roll rot90 clip abs exp log sqrt log1p round nan_to_num transpose "
        "swapaxes moveaxis float32 float64 uint8 int64"
    ).split()
)
_CONVERTERS = frozenset({"numpy.array", "numpy.asarray", "numpy.asanyarray"})
_OF_PICTURES = frozenset(
    "cv2.imread cv2.resize cv2.cvtColor cv2.imdecode cv2.warpAffine cv2.GaussianBlur imageio.imread imageio.v2.imread "
    "imageio.v3.imread skimage.io.imread skimage.transform.resize".split()
)
_DRAWN = {"numpy.random.rand": 1, "numpy.random.randn": 1, "numpy.random.random": 1, "numpy.random.random_sample": 1}
_SIZED_BY_ARGUMENTS = frozenset({"numpy.random.rand", "numpy.random.randn"})
_SIZED = frozenset(f"numpy.{name}" for name in ("zeros", "ones", "empty", "full"))
_METHODS = frozenset("astype copy reshape transpose flatten ravel swapaxes clip round repeat".split())
_DEPTH = 5
_SMALL = 64


class ArrayList(NamedTuple):
    """A list that holds arrays and nothing else.

    Attributes:
        elements: the expressions that its elements come from, each with its script.
        is_filled: whether it certainly holds one at least.
        is_written: whether its elements are written out one by one.
    """

    elements: tuple[Place, ...]
    is_filled: bool
    is_written: bool = False


def array_list(script: Script, expression: syntax.BaseExpression) -> ArrayList | None:
    """The list of arrays that an expression is; None for anything else, or where that is not certain."""
    found = _listed(script, expression)
    if found is None or not found.elements or not all(is_array(*element) for element in found.elements):
        return None
    is_short = found.is_written and len(found.elements) < _SMALL
    return None if is_short and all(_is_small(*element) for element in found.elements) else found


def _listed(script: Script, expression: syntax.BaseExpression) -> ArrayList | None:
    match expression:
        case syntax.List(elements=elements) | syntax.Tuple(elements=elements):
            if any(isinstance(element, syntax.StarredElement) for element in elements):
                return None
            return ArrayList(tuple((script, element.value) for element in elements), bool(elements), True)
        case syntax.ListComp(elt=element, for_in=clause):
            is_whole = clause.inner_for_in is None and not clause.ifs
            return ArrayList(((script, element),), is_whole and collated.is_batch(script, clause.iter))
        case syntax.Call(func=func, args=[syntax.Arg(value=given, star="")]) if script.name(func) in ("list", "tuple"):
            return _listed(script, given)
        case syntax.Name():
            if entries := collated.zipped(script, expression):
                return ArrayList(tuple(entries), True)
            return _gathered(script, expression)
    return None


def _gathered(script: Script, name: syntax.Name) -> ArrayList | None:
    """The list that a variable holds, with what is appended to it, where nothing else may change it."""
    bindings = script.names.reaching(name)
    value = _assigned(bindings[0]) if len(bindings) == 1 else None
    if value is None:
        return None
    scope = script.names.scope(name)
    start = ArrayList((), False) if script.text(value) in ("[]", "list()") else _listed(script, value)
    if start is None or isinstance(value, syntax.Name) or scope.lookup(name.value) is not scope:
        return None
    appended: list[Place] = []
    is_filled = start.is_filled
    for use in script.names.uses(name):
        if bindings[0] not in script.names.reaching(use) or use is bindings[0].node:
            continue
        given = _appended(script, use)
        if given is not None:
            appended.append((script, given))
            is_filled = is_filled or _is_for_each(script, use)
        elif not _only_reads(script, use):
            return None
    return ArrayList((*start.elements, *appended), is_filled, start.is_written)


def _assigned(binding: Binding) -> syntax.BaseExpression | None:
    """What a variable is assigned, be it beside another one: ``xs, ys = [], []``."""
    match binding:
        case Binding(kind=Kind.ASSIGN, path=()):
            return binding.value
        case Binding(kind=Kind.ASSIGN, path=(int(at),), value=syntax.Tuple(elements=elements)):
            is_plain = not any(isinstance(each, syntax.StarredElement) for each in elements)
            return elements[at].value if is_plain and at < len(elements) else None
    return None


def _is_for_each(script: Script, use: syntax.Name) -> bool:
    """Whether a line runs for each item of a collate function's batch: nothing but the loop stands around it."""
    line = script.source.enclosing(use, syntax.SimpleStatementLine)
    block = script.source.parents[line] if line is not None else None
    loop = script.source.parents[block] if block is not None else None
    if not isinstance(loop, syntax.For) or block is not loop.body or not collated.is_batch(script, loop.iter):
        return False
    return not any(any(script.source.inside(loop.body, kind)) for kind in (syntax.Continue, syntax.Break))


def _appended(script: Script, use: syntax.Name) -> syntax.BaseExpression | None:
    attribute = script.source.parents[use]
    call = script.source.parents[attribute]
    match call:
        case syntax.Call(func=syntax.Attribute(attr=syntax.Name("append")) as func, args=[syntax.Arg(value=value)]) if (
            func is attribute
        ):
            return value
    return None


def _only_reads(script: Script, use: syntax.Name) -> bool:
    """Whether a use leaves the list as it is: an argument of a library's function, an index, a condition, a loop over it."""
    parent = script.source.parents[use]
    if isinstance(parent, syntax.Arg):
        call = script.source.parents[parent]
        return isinstance(call, syntax.Call) and script.callee(call) is None and script.name(call.func) is not None
    if isinstance(parent, syntax.Subscript) and parent.value is use:
        return not isinstance(script.source.parents[parent], (syntax.AssignTarget, syntax.AugAssign, syntax.Del))
    return isinstance(
        parent,
        (syntax.For, syntax.CompFor, syntax.If, syntax.IfExp, syntax.UnaryOperation, syntax.Return, syntax.AssignTarget),
    )


# Arrays


def is_array(script: Script, node: syntax.BaseExpression, depth: int = _DEPTH) -> bool:
    """Whether an expression certainly is a numpy array, not a single number of numpy's."""
    if depth == 0:
        return False
    if entries := collated.entries(script, node):
        return all(is_array(place, entry, depth - 1) for place, entry in entries)
    match node:
        case syntax.Call(func=syntax.Attribute(value=base, attr=syntax.Name(value=method))) if (
            script.name(node.func) is None
        ):
            if method == "numpy":
                return _is_tensor(script, base) and not is_scalar(script, base)
            shaped = method in ("transpose", "reshape") and len(node.args) > 1 and script.role(base) is Role.ARRAY
            taken = method in _METHODS and is_array(script, base, depth - 1)
            return shaped or taken or _is_returned(script, node, depth)
        case syntax.Call():
            return _is_made(script, node, depth) or _is_returned(script, node, depth)
        case syntax.Attribute(value=base, attr=syntax.Name("T")):
            return is_array(script, base, depth - 1)
        case syntax.Subscript(value=base, slice=parts):
            if any(isinstance(part.slice, syntax.Slice) for part in parts):
                return is_array(script, base, depth - 1)
            return len(parts) == 1 and _holds_arrays(script, base, depth)
        case syntax.BinaryOperation(left=left, right=right):
            return is_array(script, left, depth - 1) or is_array(script, right, depth - 1)
        case syntax.Name():
            return _is_bound_to_arrays(script, node, depth)
    return False


def _holds_arrays(script: Script, held: syntax.BaseExpression, depth: int) -> bool:
    """Whether each entry of an attribute certainly is an array: of a table of two dimensions or more, or a list of them."""
    klass = _class_around(script, held)
    match held:
        case syntax.Attribute(value=syntax.Name("self"), attr=syntax.Name(value=name)) if klass is not None:
            assigned = list(script.roles.self_assignments(Definition(script, klass), name))
            return bool(assigned) and all(_has_rows(place, value, depth - 1) for place, value in assigned)
    return False


def _class_around(script: Script, node: syntax.Node) -> syntax.ClassDef | None:
    function = script.source.enclosing(node, syntax.FunctionDef)
    return script.names.owner(function) if isinstance(function, syntax.FunctionDef) else None


def _has_rows(script: Script, made: syntax.BaseExpression, depth: int) -> bool:
    match made:
        case syntax.ListComp(elt=element):
            return is_array(script, element, depth)
        case syntax.Call(
            func=syntax.Attribute(value=base, attr=syntax.Name(value="astype" | "copy" | "clip" | "round"))
        ) if script.name(made.func) is None:
            return _has_rows(script, base, depth)
        case syntax.Call(func=func, args=[first, *_]):
            name = script.name(func)
            if name in _DRAWN and name in _SIZED_BY_ARGUMENTS:
                return len(made.args) > 1
            if name == "numpy.stack":
                return array_list(script, first.value) is not None
            is_sized = name in _SIZED or name in _DRAWN
            return is_sized and isinstance(first.value, syntax.Tuple) and len(first.value.elements) > 1
    return False


def _is_tensor(script: Script, base: syntax.BaseExpression) -> bool:
    return script.role(base) in (Role.TENSOR, Role.BATCH)


def _is_made(script: Script, call: syntax.Call, depth: int) -> bool:
    name = script.name(call.func) or ""
    if name in _MAKERS or name in _OF_PICTURES:
        return True
    if name in _DRAWN:
        return len(call.args) >= _DRAWN[name]
    if name.startswith("numpy.random."):
        return any(is_name(arg.keyword, "size") for arg in call.args)
    if not call.args:
        return False
    given = call.args[0].value
    if name in _CONVERTERS:
        return _is_no_number(script, given)
    return name in _SAME_SHAPE and is_array(script, given, depth - 1)


def _is_no_number(script: Script, given: syntax.BaseExpression) -> bool:
    """Whether what is made an array is seen to be more than one number: a list, a picture, another array."""
    if isinstance(given, (syntax.List, syntax.ListComp, syntax.Tuple)) or is_array(script, given):
        return True
    if isinstance(given, syntax.Call) and isinstance(given.func, syntax.Attribute):
        return given.func.attr.value in ("convert", "resize", "open", "crop") or (
            isinstance(given.func.value, syntax.Call) and _is_no_number(script, given.func.value)
        )
    if isinstance(given, syntax.Name):
        bindings = script.names.reaching(given)
        values = [binding.value for binding in bindings if binding.kind in (Kind.ASSIGN, Kind.WITH) and not binding.path]
        return len(values) == len(bindings) > 0 and all(
            value is not None and not _mentions(script, value, given.value) and _is_no_number(script, value)
            for value in values
        )
    return False


def _mentions(script: Script, value: syntax.Node, name: str) -> bool:
    return any(each.value == name for each in script.source.inside(value, syntax.Name))


def _is_returned(script: Script, call: syntax.Call, depth: int) -> bool:
    callee = script.callee(call)
    if callee is None or not isinstance(callee.node, syntax.FunctionDef):
        return False
    values = list(returned(Definition(callee.script, callee.node)))
    return bool(values) and all(is_array(callee.script, value, depth - 1) for value in values)


def _is_bound_to_arrays(script: Script, name: syntax.Name, depth: int) -> bool:
    values = all_written(script.names.reaching(name))
    return bool(values) and all(is_array(script, value, depth - 1) for value in values)


def _is_small(script: Script, element: syntax.BaseExpression) -> bool:
    """Whether an array is written out number by number, or of a small written size."""
    match element:
        case syntax.Call(args=[syntax.Arg(value=syntax.List(elements=numbers)), *_]):
            return len(numbers) < _SMALL and not any(isinstance(n.value, (syntax.ListComp, syntax.List)) for n in numbers)
        case syntax.Call(args=[syntax.Arg(value=size), *_]):
            known = script.constant(size)
            return known is not None and isinstance(known.value, int) and known.value < _SMALL
        case syntax.Name():
            values = [binding.value for binding in script.names.reaching(element)]
            return all(isinstance(value, syntax.Call) and _is_small(script, value) for value in values)
    return False


# What kind of number they hold


def number_of(script: Script, node: syntax.BaseExpression, depth: int = _DEPTH) -> str | None:
    """The name of the numbers that an array certainly holds, such as ``float32``."""
    if depth > 0 and (entries := collated.entries(script, node)):
        kinds = {number_of(place, entry, depth - 1) for place, entry in entries}
        return kinds.pop() if len(kinds) == 1 else None
    match node:
        case syntax.Call(func=func, args=[syntax.Arg(value=array)]) if script.name(func) in _CONVERTERS and depth > 0:
            return number_of(script, array, depth - 1)
        case syntax.Subscript(value=syntax.Attribute(value=syntax.Name("self"), attr=syntax.Name(value=attribute))):
            klass = _class_around(script, node)
            made = script.roles.self_assignments(Definition(script, klass), attribute) if klass is not None else ()
            kinds = {number_of(place, value, depth - 1) for place, value in made if depth > 0}
            return kinds.pop() if len(kinds) == 1 else None
        case syntax.Name():
            found = {
                number_of(script, binding.value, depth - 1) if binding.value is not None and not binding.path else None
                for binding in script.names.reaching(node)
                if depth > 0
            }
            return found.pop() if len(found) == 1 else None
        case syntax.Call(func=syntax.Attribute(attr=syntax.Name("astype")), args=[syntax.Arg(value=dtype), *_]):
            return _dtype(script, dtype)
        case syntax.Call(func=func):
            name = script.name(func) or ""
            given = script.argument(node, "dtype", 1 if name in ("numpy.zeros", "numpy.ones", *_CONVERTERS) else None)
            if given is not None:
                return _dtype(script, given) if name.startswith("numpy.") else None
            if name in ("numpy.zeros", "numpy.ones", "numpy.eye", "numpy.random.rand", "numpy.random.randn"):
                return "float64"
    return None


def _dtype(script: Script, expression: syntax.BaseExpression) -> str | None:
    known = script.constant(expression)
    text = known.value if known is not None and isinstance(known.value, str) else (script.name(expression) or "")
    return text.removeprefix("numpy.") if text.startswith("numpy.") or known is not None else None


def numbers_of(found: ArrayList) -> Iterator[str | None]:
    """The kind of number of each element."""
    return (number_of(*element) for element in found.elements)
