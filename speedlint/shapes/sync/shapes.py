"""Results whose size depends on the values in a device tensor: the host has to wait for the size before it goes on."""

from __future__ import annotations

from collections.abc import Iterator

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.solve.dtypes import is_mask
from speedlint.solve.names import Binding, Kind, last_name
from speedlint.source import is_target
from speedlint.torch.words import Frequency, Role

_SELECTIONS = frozenset({"nonzero", "argwhere", "masked_select", "unique", "unique_consecutive", "bincount"})
_REDUCTIONS = frozenset({"mean", "sum", "any", "all", "max", "min", "norm"})
_KEEPS_VALUES = frozenset(
    "float double half long int bool detach abs square sqrt pow log exp clamp view reshape contiguous flatten".split()
)
"""Methods that give each value, or one made of it alone."""
_SIZES = frozenset({"numel", "nelement", "size", "shape"})
_LOSSES = ("torch.nn.functional.", "torch.mean", "torch.sum", "torch.nn.")
_CHECKS = ("torch.isnan", "torch.isinf", "torch.isfinite")
_DEPTH = 5


def sized_by_values(script: Script, node: syntax.Call | syntax.Subscript) -> syntax.BaseExpression | None:
    """The device tensor whose values decide how large the result of ``x[mask]``, ``nonzero``, ``unique`` and the like is."""
    if isinstance(node, syntax.Subscript):
        return _masked(script, node)
    name, method = script.name(node.func), node.func.attr.value if isinstance(node.func, syntax.Attribute) else ""
    if name is None and isinstance(node.func, syntax.Attribute):
        selected = node.func.value if method in _SELECTIONS else None
    elif name is not None and name.startswith("torch."):
        is_selection = name.rpartition(".")[2] in _SELECTIONS or (name == "torch.where" and len(node.args) == 1)
        selected = node.args[0].value if is_selection and node.args else None
    else:
        return None
    return selected if selected is not None and script.is_shown_device_tensor(selected) else None


def _masked(script: Script, node: syntax.Subscript) -> syntax.BaseExpression | None:
    """The mask of ``x[mask]`` that is read, changed in place, or written to with what a network gives: as many rows as it
    selects. A number is written without a count of them."""
    is_written = is_target(script.source, node) and not is_changed(script, node) and not is_filled(script, node)
    if is_written or isinstance(script.source.parents[node], syntax.Del):
        return None
    for element in node.slice:
        if isinstance(element.slice, syntax.Index):
            mask = element.slice.value
            indexed = script.role(node.value) in (Role.TENSOR, Role.BATCH, Role.UNKNOWN)
            if indexed and is_mask(script, mask) and script.is_shown_device_tensor(mask):
                return mask
    return None


def keeps_shape(script: Script, node: syntax.Call | syntax.Subscript) -> bool:
    """Whether a weight, or ``torch.where``, does what is done with a selection, so that nothing of another size is needed;
    or indices that are taken once do."""
    return any(holds(script, node) for holds in (is_of_kept_mask, is_changed, is_filled, is_only_reduced, is_put_back))


def is_of_kept_mask(script: Script, node: syntax.Node) -> bool:
    """Whether a mask selects that is made before the steps and never changed, such as the nodes of a graph that are trained
    on: its indices, taken once, select the same."""
    if not isinstance(node, syntax.Subscript) or is_target(script.source, node):
        return False
    indices = [each.slice.value for each in node.slice if isinstance(each.slice, syntax.Index)]
    masks = [each for each in indices if is_mask(script, each)]
    return len(masks) == len(node.slice) == 1 and _is_kept(script, masks[0], _DEPTH)


def _is_kept(script: Script, mask: syntax.BaseExpression, depth: int) -> bool:
    """Whether a mask is the same in every step: a variable, or a graph's own, that is bound outside them."""
    held = mask.value if isinstance(mask, syntax.Attribute) else mask
    bindings = script.names.reaching(held) if isinstance(held, syntax.Name) else []
    if not isinstance(held, syntax.Name) or not bindings or not depth or _may_be_changed(script, mask):
        return False
    return all(_is_bound_before(script, each, mask, held, depth) for each in bindings)


def _may_be_changed(script: Script, mask: syntax.BaseExpression) -> bool:
    """Whether something in the program changes a mask in place, or a graph's of that name: by entries, by a method that ends
    in ``_``, as ``out=``, or by ``setattr``."""
    name = last_name(mask) or ""
    places: list[tuple[Script, syntax.Node]] = (
        [(script, use) for use in script.names.uses(mask)]
        if isinstance(mask, syntax.Name)
        else [
            (each, node)
            for each in script.everywhere(name.encode())
            for node in each.source.of(syntax.Attribute)
            if node.attr.value == name
        ]
    )
    return any(_is_changed_in_place(*each) for each in places) or any(
        True for each in script.everywhere(b"setattr") for _ in each.calls("setattr")
    )


def _is_changed_in_place(script: Script, mask: syntax.Node) -> bool:
    up = script.source.parents[mask]
    match up:
        case syntax.Subscript(value=value) if value is mask:
            return is_target(script.source, up)
        case syntax.Attribute(attr=syntax.Name(value=method)):
            return method.endswith("_") and not method.endswith("__")
        case syntax.AugAssign(target=target):
            return target is mask
        case syntax.Arg(keyword=keyword):
            return keyword is not None and keyword.value == "out"
    return False


def _is_bound_before(script: Script, binding: Binding, mask: syntax.BaseExpression, held: syntax.Name, depth: int) -> bool:
    if not isinstance(binding.node, syntax.Param):
        value = binding.value if mask is held and not binding.path else None
        is_of_graph = isinstance(value, syntax.Attribute) and _may_be_changed(script, value)
        return binding.kind is Kind.ASSIGN and script.frequency(binding.node) is Frequency.ONCE and not is_of_graph
    function = script.function(held)
    if function is None or mask is not held:
        return False
    sites = script.call_sites(function)
    given = [(place, script.values.given(function, binding.node, place, call)) for place, call in sites]
    return bool(given) and all(each is not None and _is_kept(place, each, depth - 1) for place, each in given)


def is_changed(script: Script, node: syntax.Node) -> bool:
    """Whether what a mask selects is changed in place: ``x[mask] += 1`` takes it out and puts it back."""
    parent = script.source.parents[node]
    return isinstance(node, syntax.Subscript) and isinstance(parent, syntax.AugAssign) and parent.target is node


def is_filled(script: Script, node: syntax.Node) -> bool:
    """Whether what a mask selects is set to what a network gives for as many rows: ``values[mask] = network(chosen)``."""
    match script.source.parents[node]:
        case syntax.AssignTarget(target=target) as up if target is node:
            assigned = script.source.parents[up]
            value = assigned.value if isinstance(assigned, syntax.Assign) else None
            found = [value] if value is not None else []
            if isinstance(value, syntax.Name):
                found += (each.value for each in script.names.reaching(value) if each.value is not None and not each.path)
            calls = (call for each in found for call in script.source.inside(each, syntax.Call))
            return any(script.role(call.func) is Role.MODULE for call in calls)
    return False


def is_put_back(script: Script, selected: syntax.Node) -> bool:
    """Whether what a mask selects goes to where the same mask selects, with only numbers beside: ``x[m] = y[m] / 2``."""
    source = script.source
    up = source.parents[selected]
    while isinstance(up, syntax.BinaryOperation | syntax.UnaryOperation):
        up = source.parents[up]
    match up:
        case syntax.Assign(targets=[syntax.AssignTarget(target=syntax.Subscript() as target)], value=value):
            return _are_selected(script, value, _mask_of(script, target))
    return False


def _are_selected(script: Script, value: syntax.BaseExpression, mask: str) -> bool:
    """Whether an expression is made of what one mask selects, and of numbers."""
    match value:
        case syntax.Subscript():
            return _mask_of(script, value) == mask
        case syntax.BinaryOperation(left=left, right=right):
            return _are_selected(script, left, mask) and _are_selected(script, right, mask)
        case syntax.UnaryOperation(expression=inner):
            return _are_selected(script, inner, mask)
    return script.role(value) is Role.NUMBER


def _mask_of(script: Script, subscript: syntax.Subscript) -> str:
    """The text of the mask among the indices, ``m`` of ``x[t, m, 0]``; of all of them where none is known to be one."""
    given = [each.slice.value for each in subscript.slice if isinstance(each.slice, syntax.Index)]
    masks = [each for each in given if is_mask(script, each)]
    return ", ".join(map(script.text, masks or subscript.slice))


def is_regular(script: Script, selected: syntax.Node) -> bool:
    """Whether what a mask selects is given a shape at once, so that its number is known: ``x[~mask].view(len(x), -1)``."""
    method = script.source.parents[selected]
    call = script.source.parents[method] if isinstance(method, syntax.Attribute) else None
    match call:
        case syntax.Call(func=func, args=[rows, _, *_]) if func is method and isinstance(method, syntax.Attribute):
            is_shaped = method.attr.value in ("view", "reshape") and method.value is selected
            return is_shaped and _is_size_of_all(script, rows.value)
    return False


def _is_size_of_all(script: Script, rows: syntax.BaseExpression) -> bool:
    """Whether a number is a tensor's size or a variable's, and not that of a selection."""
    match rows:
        case syntax.Call(func=syntax.Name("len"), args=[syntax.Arg(value=syntax.Name())]):
            return True
        case (
            syntax.Subscript(value=syntax.Attribute(value=syntax.Name(), attr=syntax.Name("shape")))
            | syntax.Call(func=syntax.Attribute(value=syntax.Name(), attr=syntax.Name("size")), args=[_])
        ):
            return True
        case syntax.Name() | syntax.Attribute():
            return script.role(rows) is not Role.TENSOR
    return False


def is_only_reduced(script: Script, selected: syntax.Call | syntax.Subscript) -> bool:
    """Whether what a mask selects only goes into a mean, a sum or a loss: a mask as weight gives the same without a wait."""
    by_mask = isinstance(selected, syntax.Subscript) or "masked_select" in script.text(selected.func)
    return by_mask and _is_reduced(script, selected, _DEPTH)


def _is_reduced(script: Script, selected: syntax.BaseExpression, depth: int) -> bool:
    for use in _uses(script, selected):
        parent = script.source.parents[use]
        match parent:
            case syntax.Attribute(attr=syntax.Name(value=method)) if method in _REDUCTIONS and _is_bare(script, parent):
                continue
            case syntax.Attribute(attr=syntax.Name(value=method)) if method in _SIZES and _is_compared(script, parent):
                continue
            case syntax.Arg() if script.is_call_to(call := script.source.parents[parent], *_CHECKS) or _reduces(
                script, call
            ):
                continue
            case syntax.BinaryOperation() | syntax.UnaryOperation() | syntax.Comparison() if depth and _is_reduced(
                script, parent, depth - 1
            ):
                continue
            case syntax.ComparisonTarget() if depth:
                compared = script.source.parents[parent]
                if isinstance(compared, syntax.Comparison) and _is_reduced(script, compared, depth - 1):
                    continue
            case syntax.Arg() if depth and _is_of_density(script, script.source.parents[parent], depth):
                continue
            case syntax.Attribute(attr=syntax.Name(value=method)) if depth and method in _KEEPS_VALUES:
                call = script.source.parents[parent]
                if isinstance(call, syntax.Call) and call.func is parent and _is_reduced(script, call, depth - 1):
                    continue
        return False
    return True


def _is_of_density(script: Script, call: syntax.Node, depth: int) -> bool:
    """Whether a call makes a distribution that is asked for densities alone, or asks for one, which only go into a mean, a
    sum or a loss."""
    match call:
        case syntax.Call(func=syntax.Attribute(attr=syntax.Name("log_prob"))):
            return _is_reduced(script, call, depth - 1)
        case syntax.Call(func=func) if (script.name(func) or "").startswith("torch.distributions."):
            uses = list(_uses(script, call))
            asked = [script.source.parents[script.source.parents[use]] for use in uses]
            return all(
                isinstance(each, syntax.Call) and last_name(each.func) == "log_prob" and _is_reduced(script, each, depth - 1)
                for each in asked
            )
    return False


def _is_bare(script: Script, method: syntax.Attribute) -> bool:
    """Whether a method reduces all that there is: ``x.mean()``, not ``x.mean(1)``."""
    call = script.source.parents[method]
    return isinstance(call, syntax.Call) and not call.args


def _is_compared(script: Script, size: syntax.Attribute) -> bool:
    """Whether a size is only compared, as in ``x.numel() == 0``: a sum of the mask says the same."""
    up = script.source.parents[size]
    while isinstance(up, syntax.Call | syntax.Subscript):
        up = script.source.parents[up]
    return isinstance(up, syntax.Comparison)


def _reduces(script: Script, call: syntax.Node) -> bool:
    """Whether a node is a call of one of torch's losses, also of several of which it may be one, or of its mean or sum."""
    if not isinstance(call, syntax.Call):
        return False
    made = script.value(call.func).made
    names = [script.name(call.func) or "", (made.script.name(made.call.func) or "") if made is not None else ""]
    if made is None and names[0] == "":
        origins = script.roles.origins(call.func)
        names += [place.name(each.func) or "" for place, each in origins if isinstance(each, syntax.Call)]
    return any(
        name.startswith(_LOSSES) and (name in _LOSSES or name.lower().endswith(("loss", "cross_entropy", "kl_div")))
        for name in names
    )


def _uses(script: Script, selected: syntax.BaseExpression) -> Iterator[syntax.Node]:
    """Where a value is read: on the spot, or under the one name it is given."""
    match script.source.parents[selected]:
        case syntax.Assign(targets=[syntax.AssignTarget(target=syntax.Name() as name)]):
            for use in script.names.uses(name):
                is_set = is_target(script.source, use) and not isinstance(script.source.parents[use], syntax.AugAssign)
                bindings = () if is_set else script.names.reaching(use)
                if any(binding.node is name and binding.kind is Kind.ASSIGN for binding in bindings):
                    yield use
        case _:
            yield selected
