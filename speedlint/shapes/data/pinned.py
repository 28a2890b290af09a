"""Whether the batches of a loader are the same tensors once they are pinned: pinning makes each anew, in other memory."""

from __future__ import annotations

import re
from collections.abc import Iterable

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.shapes.data import sent
from speedlint.shapes.data.loaders import Loader, changes_of_batch
from speedlint.shapes.sync.reads import shown
from speedlint.solve.terms import Definition
from speedlint.solve.values import returned
from speedlint.source import is_name, is_none

_ASKS_FOR_TUPLE = re.compile(rb"isinstance\(\s*\w+\s*,\s*tuple\s*\)|\b(?:is|==)\s+tuple\b")
"""What tells a tuple from a list, which pinning makes of it."""
_SPARSE = (
    b"parse",
    re.compile(rb"parse(?:_(?:coo|cs[rc]|bs[rc])_tensor|(?<=\.to_sparse)|\.\w{0,20}Tensor|(?<=Sparse)Tensor)"),
)


def changed(found: Loader) -> str | None:
    """What keeps a loader's batches from being the same once they are pinned, in a clause; None where nothing is seen."""
    if found.own_class is not None:
        return found.own_class
    if (own := _own_batch(found)) is not None:
        return f"pinning makes a batch that is a `{own}` anew"
    if (hidden := _hidden_collate(found)) is not None:
        return f"what `{hidden}` puts its batches together by is not known"
    if _may_be_sparse(found):
        return "its batches may hold sparse tensors, which older releases of torch cannot pin"
    if (loaded := _loaded(found)) is not None:
        return f"`{loaded}` puts tensors where they were saved, which may be a GPU, and they cannot be pinned there"
    for script, node in found.collate:
        if (clause := sent.attribute_of_tensor(script, node)) is not None:
            return f"{clause}, and not of the pinned copy"
        if (asked := _asks_for_gradients(script, node)) is not None:
            return f"`{shown(script, asked)}` makes a leaf, which the pinned copy is not"
    texts = (text for start in found.starts if found.collate for text in changes_of_batch(start, of_tensors=True))
    text = next(texts, None)
    return f"`{text}` may change what else shares the batch's memory, which the pinned copy does not" if text else None


def _loaded(found: Loader) -> str | None:
    """What a dataset reads back as others saved it, ``torch.load(path)`` without a ``map_location``."""
    for origin in found.origins:
        given = [arg.value for arg in origin.node.args] if isinstance(origin.node, syntax.Call) else []
        held = [origin.script.value(each) for each in (origin.node, *given)]
        kinds = [origin.definition, *(each.definition for value in held for each in (value, value.element) if each)]
        code: list[tuple[Script, syntax.Node]] = [(origin.script, each) for each in given]
        classes = [each for each in kinds if each is not None and isinstance(each.node, syntax.ClassDef)]
        code += [(each.script, each.node) for kind in classes for each in kind.script.roles.calls.lineage(kind)]
        calls = [(place, call) for place, part in code for call in place.source.inside(part, syntax.Call)]
        called = [callee for place, call in calls if (callee := place.callee(call)) is not None]
        code += [(each.script, each.node) for each in called if isinstance(each.node, syntax.FunctionDef)]
        saved = (place.source.contains(part, call) for place, part in code for call in place.calls("torch.save"))
        for script, part in () if any(saved) else code:
            for call in script.calls("torch.load"):
                if script.source.contains(part, call) and script.argument(call, "map_location", 1) is None:
                    return shown(script, call)
    return None


def _asks_for_gradients(script: Script, node: syntax.Node) -> syntax.Call | None:
    for call in script.source.inside(node, syntax.Call):
        is_method = isinstance(call.func, syntax.Attribute) and call.func.attr.value == "requires_grad_"
        if is_method or any(is_name(arg.keyword, "requires_grad") for arg in call.args):
            return call
    return None


def _own_batch(found: Loader) -> str | None:
    """What pinning makes something else of, of what a loader's collate function gives, or torch's, which keeps the class of
    items: a first-party class without a ``pin_memory`` of its own that gives something back; a tuple that the program tells
    from a list."""
    for script, node in found.collate:
        results: list[syntax.BaseExpression] = [node.body] if isinstance(node, syntax.Lambda) else []
        if isinstance(node, (syntax.FunctionDef, syntax.ClassDef)):
            given = Definition(script, node)
            is_class = isinstance(node, syntax.ClassDef)
            function = script.roles.calls.method(given, "__call__") if is_class else given
            if function is None and not _pins_itself(given):
                return given.name
            results = list(returned(function)) if function is not None else []
        if (own := _own_among(script, results)) is not None:
            return own
        values = (value for result in results for value in (result, *(each for _, each in script.roles.origins(result))))
        is_tuple = any(isinstance(value, syntax.Tuple) for value in values)
        if is_tuple and found.script.program.mentions(found.script, _ASKS_FOR_TUPLE):
            return "tuple"
    items = [] if found.collate else [origin.definition for origin in found.origins if origin.definition is not None]
    methods = (each.script.roles.calls.method(each, "__getitem__") for each in items)
    own_items = (_own_among(each.script, returned(each)) for each in methods if each is not None)
    return next((each for each in own_items if each is not None), None)


def _own_among(script: Script, results: Iterable[syntax.BaseExpression]) -> str | None:
    """A first-party class that one of some expressions is an object of, and that does not pin itself."""
    for result in results:
        for value in (result, *(each for _, each in script.roles.origins(result))):
            made = script.definition(value.func) if isinstance(value, syntax.Call) else None
            if made is not None and isinstance(made.node, syntax.ClassDef) and not _pins_itself(made):
                return made.name
    return None


def _pins_itself(batch: Definition) -> bool:
    method = batch.script.roles.calls.method(batch, "pin_memory")
    return method is not None and isinstance(method.node, syntax.FunctionDef) and any(True for _ in returned(method))


def _hidden_collate(found: Loader) -> str | None:
    """What gives a loader its collate function, where that is not seen."""
    expression = found.parameter("collate_fn")
    if expression is None or is_none(expression):
        return None
    origins = list(found.script.roles.origins(expression))
    is_bound = not isinstance(expression, syntax.Name) or bool(found.script.names.reaching(expression))
    if is_bound and not origins and not found.collate and found.script.name(expression) is None:
        return found.script.first_line(expression)
    for script, node in origins:
        is_made = isinstance(node, syntax.Call) and script.name(node.func) is None
        if is_made and script.definition(node.func) is None and script.value(node).definition is None:
            return script.first_line(node)
    return None


def _may_be_sparse(found: Loader) -> bool:
    """Whether a batch may hold a sparse tensor: a program that makes any makes its batches with code of its own."""
    is_own = any(origin.definition is not None for origin in found.origins)
    return (is_own or bool(found.collate)) and found.script.program.mentions(found.script, _SPARSE)
