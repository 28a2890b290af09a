"""Objects that are made for the item that is read: who changes them changes nothing that a dataset holds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, TypeAlias

from speedlint.facts import syntax
from speedlint.solve.names import Binding, Kind, last_name
from speedlint.solve.values import returned
from speedlint.source import is_name
from speedlint.torch.words import Role

if TYPE_CHECKING:
    from speedlint.ask.script import Script

_ANY: Final = None
Path: TypeAlias = "tuple[int | str | None, ...]"
"""The keys or places by which a part of an object is asked for; None is any of them."""
_OF_NUMPY = (
    "array_split asanyarray asarray ascontiguousarray asfortranarray asmatrix atleast_1d atleast_2d atleast_3d "
    "broadcast_arrays broadcast_to diag diagonal dsplit expand_dims flip fliplr flipud frombuffer hsplit imag "
    "matrix_transpose moveaxis permute_dims ravel real real_if_close require reshape rollaxis rot90 split squeeze swapaxes "
    "transpose trim_zeros unstack vsplit"
)
_OF_TORCH = (
    "as_strided as_tensor asarray atleast_1d atleast_2d atleast_3d broadcast_tensors broadcast_to chunk conj detach diag "
    "diagonal dsplit expand flatten frombuffer from_numpy hsplit imag moveaxis movedim narrow permute ravel real reshape "
    "select split squeeze swapaxes swapdims t tensor_split transpose unbind unflatten unsqueeze view_as_complex "
    "view_as_real vsplit"
)
_OF_IMAGES = "center_crop convert_image_dtype convert_dtype crop five_crop normalize resize ten_crop to_tensor to_image"
_SHARE = frozenset(
    {
        *(f"numpy.{each}" for each in _OF_NUMPY.split()),
        *(f"torch.{each}" for each in _OF_TORCH.split()),
        *(f"torchvision.transforms.functional.{each}" for each in _OF_IMAGES.split()),
        *(f"torchvision.transforms.v2.functional.{each}" for each in _OF_IMAGES.split()),
        "numpy.lib.stride_tricks.as_strided",
        "numpy.lib.stride_tricks.sliding_window_view",
    }
)
"""Functions that may return their argument, a view or a part of it."""
_SHALLOW = frozenset({"copy.copy"})
_NEW = (
    syntax.BinaryOperation,
    syntax.UnaryOperation,
    syntax.Comparison,
    syntax.FormattedString,
    syntax.SimpleString,
    syntax.Integer,
    syntax.Float,
)
_GIVEN = frozenset("__getitem__ __getitems__ __len__".split())
"""Methods whose arguments are given by what reads the items."""
_PLAIN = (Role.NUMBER, Role.STRING, Role.NONE, Role.DTYPE)
_PLAIN_RESULTS = frozenset("int float str len abs round bool range bytes repr format hash ord chr open".split())
_CONTAINERS = frozenset(
    "dict enumerate filter frozenset iter list map max min next reversed set sorted sum tuple zip getattr".split()
)
_COPIES = frozenset("copy clone astype convert resize crop rotate filter split tolist format strip".split())
"""Methods that return a new object, whatever their own is."""
_PUTS = frozenset("append add insert setdefault update extend".split())
_DEEPEST = 24


def is_of_item(script: Script, base: syntax.BaseExpression, node: syntax.Node) -> bool:
    """Whether what ``node`` changes of ``base`` (see ``changing.written``) was certainly made for the item that is read."""
    holder = base.value if isinstance(base, (syntax.Attribute, syntax.Subscript)) else None
    if isinstance(node, syntax.Call) or holder is None:
        return _is_fresh(script, base, (), 0)
    is_set = _is_fresh(script, holder, (), 0) and not is_name(holder, "self")
    if not isinstance(node, syntax.AugAssign) or script.role(base) in _PLAIN:
        return is_set
    return is_set and _is_fresh(script, base, (), 0)


def _is_fresh(script: Script, node: syntax.Node, path: Path, depth: int) -> bool:
    """Whether an object, or the part of it that stands at a path, was certainly made for the item."""
    if depth > _DEEPEST:
        return False
    match node:
        case syntax.Name():
            return _is_variable_fresh(script, node, path, depth + 1)
        case syntax.Attribute(value=value, attr=syntax.Name(value=name)):
            return not is_name(value, "self") and _is_fresh(script, value, (name, *path), depth + 1)
        case syntax.Subscript(value=value):
            return _is_fresh(script, value, (_key(script, node), *path), depth + 1)
        case syntax.IfExp(body=one, orelse=two) | syntax.BooleanOperation(left=one, right=two):
            return _is_fresh(script, one, path, depth + 1) and _is_fresh(script, two, path, depth + 1)
        case syntax.NamedExpr(value=value):
            return _is_fresh(script, value, path, depth + 1)
        case syntax.Call():
            return _is_made_fresh(script, node, path, depth + 1)
        case (
            syntax.Tuple()
            | syntax.List()
            | syntax.Set()
            | syntax.Dict()
            | syntax.ListComp()
            | syntax.SetComp()
            | syntax.DictComp()
            | syntax.GeneratorExp()
        ):
            return not path or all(
                script.role(part) in _PLAIN or _is_fresh(script, part, path[1:], depth + 1)
                for part in _parts(script, node, path[0])
            )
    return isinstance(node, _NEW)


def _key(script: Script, part: syntax.Subscript) -> int | str | None:
    index = part.slice[0].slice if len(part.slice) == 1 else None
    known = script.constant(index.value) if isinstance(index, syntax.Index) else None
    return known.value if known is not None and isinstance(known.value, (int, str)) else _ANY


def _parts(script: Script, node: syntax.Node, key: int | str | None) -> Iterator[syntax.BaseExpression]:
    """What may stand at a key or place of what is written out."""
    match node:
        case syntax.Tuple(elements=elements) | syntax.List(elements=elements) | syntax.Set(elements=elements):
            is_plain = not any(isinstance(each, syntax.StarredElement) for each in elements)
            if is_plain and isinstance(key, int) and -len(elements) <= key < len(elements):
                yield elements[key].value
            else:
                yield from (each.value for each in elements)
        case syntax.Dict(elements=entries):
            for entry in entries:
                known = script.constant(entry.key) if isinstance(entry, syntax.DictElement) else None
                if key is _ANY or known is None or known.value == key:
                    yield entry.value
        case syntax.DictComp(value=part):
            yield part
        case syntax.ListComp(elt=part) | syntax.SetComp(elt=part) | syntax.GeneratorExp(elt=part):
            yield part


def _is_variable_fresh(script: Script, name: syntax.Name, path: Path, depth: int) -> bool:
    function, scope = script.function(name), script.names.scope(name).lookup(name.value)
    if function is None or scope is None or not script.source.contains(function, scope.node):
        return False
    bindings = [each for each in script.names.reaching(name) if each.kind is not Kind.AUGMENT]
    if not bindings or not all(_is_bound_fresh(script, each, path, depth) for each in bindings):
        return False
    return not path or all(_is_fresh(script, each, path[1:], depth) for each in _put_in(script, name, path[0]))


def _put_in(script: Script, name: syntax.Name, key: int | str | None) -> Iterator[syntax.BaseExpression]:
    """What is put into a variable's object under a key, or by a method, but for numbers and strings."""
    for use in script.names.uses(name):
        part = script.source.parents[use]
        if isinstance(part, syntax.Subscript | syntax.Attribute) and part.value is use:
            yield from (each for each in _put_by(script, part, key) if script.role(each) not in _PLAIN)


def _put_by(
    script: Script, part: syntax.Subscript | syntax.Attribute, key: int | str | None
) -> Iterator[syntax.BaseExpression]:
    up = script.source.parents[part]
    above = script.source.parents[up]
    if isinstance(up, syntax.AssignTarget) and isinstance(above, syntax.Assign):
        own = part.attr.value if isinstance(part, syntax.Attribute) else _key(script, part)
        if _ANY in (key, own) or own == key:
            yield above.value
    elif isinstance(up, syntax.Call) and isinstance(part, syntax.Attribute) and part.attr.value in _PUTS:
        yield from (arg.value for arg in up.args)


def _is_bound_fresh(script: Script, binding: Binding, path: Path, depth: int) -> bool:
    if binding.kind is Kind.PARAMETER and isinstance(binding.node, syntax.Param):
        function = script.source.enclosing(binding.node, syntax.FunctionDef, syntax.Lambda)
        if not isinstance(function, syntax.FunctionDef) or function.name.value in _GIVEN:
            return False
        passed = list(script.values.passed(binding.node))
        return bool(passed) and all(value is not None and _is_fresh(other, value, path, depth) for other, value in passed)
    if binding.value is None or binding.kind not in (Kind.ASSIGN, Kind.FOR):
        return False
    turn: Path = (_ANY,) if binding.kind is Kind.FOR else ()
    return _is_fresh(script, binding.value, (*turn, *binding.path, *path), depth)


def _is_made_fresh(script: Script, call: syntax.Call, path: Path, depth: int) -> bool:
    name, callee = script.name(call.func), script.callee(call)
    given = [arg.value for arg in call.args]
    inside: Path = (_ANY,) * len(path)
    if callee is not None and isinstance(callee.node, syntax.FunctionDef) and callee.node.name.value != "__init__":
        results = list(returned(callee))
        return bool(results) and all(_is_fresh(callee.script, each, path, depth) for each in results)
    if name is not None and "." in name:
        is_shared = name in _SHARE or _keeps(script, call) or (bool(path) and name in _SHALLOW)
        return not is_shared or (bool(given) and _is_fresh(script, given[0], path, depth))
    if given and _is_held(call.func) and script.role(given[0]) not in _PLAIN and _is_fresh(script, given[0], path, depth):
        return True  # a transform that is held: its own code is looked at as well
    if isinstance(call.func, syntax.Attribute):
        return _copies(script, call, path) or _is_fresh(script, call.func.value, inside, depth)
    if isinstance(call.func, syntax.Name) and call.func.value in _CONTAINERS and not script.names.reaching(call.func):
        return bool(given) and all(_is_fresh(script, each, inside, depth) for each in given)
    if script.definition(call.func) is not None:
        return not path or all(script.role(each) in _PLAIN or _is_fresh(script, each, (), depth) for each in given)
    return isinstance(call.func, syntax.Name) and call.func.value in _PLAIN_RESULTS


def _is_held(transform: syntax.BaseExpression) -> bool:
    """Whether what is called may be a transform that ``self`` holds: ``self.flip``, ``self.steps["train"]``."""
    if isinstance(transform, syntax.Subscript):
        transform = transform.value
    while isinstance(transform, syntax.Attribute):
        if is_name(transform.value, "self"):
            return True
        transform = transform.value
    return False


def _copies(script: Script, call: syntax.Call, path: Path) -> bool:
    """Whether a method returns a new object, or a new one at a path in it, whatever its own is."""
    method = last_name(call.func)
    if method == "split":
        return all(script.role(arg.value) is Role.STRING for arg in call.args)
    is_of_dict = method == "copy" and bool(path) and isinstance(path[0], str)
    return method in _COPIES and not is_of_dict and not _keeps(script, call)


def _keeps(script: Script, call: syntax.Call) -> bool:
    """Whether a call may give back what it is handed: by ``copy=False``, or as the place of its result."""
    for arg in call.args:
        if is_name(arg.keyword, "out", "dst"):
            return True
        if is_name(arg.keyword, "copy", "inplace"):
            known = script.constant(arg.value)
            if known is None or known.value is not is_name(arg.keyword, "copy"):
                return True
    return False
