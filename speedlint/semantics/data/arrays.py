"""Numpy arrays: which expressions certainly are arrays of more than one number, and which lists hold nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from speedlint.facts import syntax
from speedlint.semantics.dtypes import is_scalar
from speedlint.semantics.names import Kind
from speedlint.semantics.script import Script
from speedlint.semantics.terms import Definition, Role
from speedlint.semantics.unpacking import all_written
from speedlint.semantics.values import returned

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
_METHODS = frozenset("astype copy reshape transpose flatten ravel swapaxes clip round repeat".split())
_DEPTH = 5
_SMALL = 64


class ArrayList(NamedTuple):
    """A list that holds arrays and nothing else.

    Attributes:
        elements: the expressions that its elements come from.
        is_filled: whether it certainly holds one at least.
    """

    elements: tuple[syntax.BaseExpression, ...]
    is_filled: bool


def array_list(script: Script, expression: syntax.BaseExpression) -> ArrayList | None:
    """The list of arrays that an expression is; None for anything else, or where that is not certain."""
    found = _listed(script, expression)
    if found is None or not found.elements or not all(is_array(script, element) for element in found.elements):
        return None
    is_short = found.is_filled and len(found.elements) < _SMALL
    return None if is_short and all(_is_small(script, element) for element in found.elements) else found


def _listed(script: Script, expression: syntax.BaseExpression) -> ArrayList | None:
    match expression:
        case syntax.List(elements=elements) | syntax.Tuple(elements=elements):
            if any(isinstance(element, syntax.StarredElement) for element in elements):
                return None
            return ArrayList(tuple(element.value for element in elements), bool(elements))
        case syntax.ListComp(elt=element):
            return ArrayList((element,), False)
        case syntax.Name():
            return _gathered(script, expression)
    return None


def _gathered(script: Script, name: syntax.Name) -> ArrayList | None:
    """The list that a variable holds, with what is appended to it, where nothing else may change it."""
    bindings = script.names.reaching(name)
    if len(bindings) != 1 or bindings[0].kind is not Kind.ASSIGN or bindings[0].path or bindings[0].value is None:
        return None
    value, scope = bindings[0].value, script.names.scope(name)
    start = ArrayList((), False) if script.text(value) in ("[]", "list()") else _listed(script, value)
    if start is None or isinstance(value, syntax.Name) or scope.lookup(name.value) is not scope:
        return None
    appended: list[syntax.BaseExpression] = []
    for use in script.names.uses(name):
        if bindings[0] not in script.names.reaching(use) or use is bindings[0].node:
            continue
        given = _appended(script, use)
        if given is not None:
            appended.append(given)
        elif not _only_reads(script, use):
            return None
    return ArrayList((*start.elements, *appended), start.is_filled)


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
            sliced = any(isinstance(part.slice, syntax.Slice) for part in parts)
            return sliced and is_array(script, base, depth - 1)
        case syntax.BinaryOperation(left=left, right=right):
            return is_array(script, left, depth - 1) or is_array(script, right, depth - 1)
        case syntax.Name():
            return _is_bound_to_arrays(script, node, depth)
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
        return any(arg.keyword is not None and arg.keyword.value == "size" for arg in call.args)
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
    match node:
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


def numbers_of(script: Script, found: ArrayList) -> Iterator[str | None]:
    """The kind of number of each element."""
    return (number_of(script, element) for element in found.elements)
