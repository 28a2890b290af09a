"""Copies of a loader's batch to the device, and what is known of the thing that is copied."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING

from speedlint.facts import syntax
from speedlint.shapes import worth
from speedlint.shapes.data.datasets import touches_gpu
from speedlint.shapes.data.loaders import Loader, loader, near
from speedlint.shapes.devices import may_be_mps
from speedlint.shapes.optimizer import optimizers
from speedlint.shapes.sync.streams import blocks
from speedlint.solve import reach
from speedlint.solve.names import Binding, Kind
from speedlint.solve.terms import Definition, Value
from speedlint.solve.unpacking import all_written, gone_over, part
from speedlint.solve.values import mapped
from speedlint.torch import library
from speedlint.torch.methods import VIEWS, works_in_place
from speedlint.torch.words import Frequency, Place, Role

if TYPE_CHECKING:
    from speedlint.ask.script import Script

_VIEWS = VIEWS | frozenset("pin_memory requires_grad_ items values get pop next __next__".split())
_DEVICE_ROLES = (Role.DEVICE, Role.STRING, Role.NUMBER, Role.TENSOR, Role.BATCH)
_SET_DEVICE = ("torch.set_default_device", "torch.set_default_tensor_type")
_WAITS = ("torch.cuda.synchronize", "torch.accelerator.synchronize")
_CLOCKS = frozenset({"time.time", "time.perf_counter", "time.monotonic", "time.process_time"})
_GEOMETRIC = "torch_geometric."
_GRAPHS_SINCE = (1, 7)
"""A torch release beside which torch_geometric surely takes ``non_blocking``: its 1.0.3, beside torch 1.0, does not."""
_MAKES_FLOATS = library.transforms("ToTensor", "functional.to_tensor")
"""What makes a tensor of 32-bit floats of an image (torchvision, "Transforming and augmenting images")."""
_OF_GRAPHS = frozenset("ndata edata srcdata dstdata".split())
"""What the data of a graph's nodes and edges are called."""
_SAME_MEMORY = VIEWS | {"numpy"}
"""Methods whose result may share its tensor's memory."""
_JOINS = ("torch.stack", "torch.cat", "torch.concat", "torch.vstack", "torch.hstack")
_SAME_BUT_TYPE = VIEWS | frozenset("float double half long int bool".split())
_GIVE_ITEMS = (Role.INSTANCE, Role.DATASET)
_DEPTH = 6


def moved(script: Script, call: syntax.Call) -> syntax.BaseExpression | None:
    """What ``x.to(device)``, ``x.cuda()`` or ``x.type(cuda_type)`` copies to a GPU, if it is of a batch on the host."""
    if not isinstance(call.func, syntax.Attribute) or call.func.attr.value not in ("to", "cuda", "type"):
        return None
    if script.name(call.func) is not None or any(arg.star for arg in call.args):
        return None
    base = call.func.value
    value = script.value(base)
    is_batch = value.role is Role.BATCH or _may_be_batch(script, base) or _is_joined(script, base)
    if value.place is not Place.HOST or not is_batch:
        return None
    return base if _goes_to_device(script, call, call.func.attr.value) else None


def _is_joined(script: Script, node: syntax.BaseExpression, depth: int = 0) -> bool:
    """Whether parts of a batch are joined on the host, as where a loader leaves them as a list: ``torch.stack(images)``."""
    match node:
        case syntax.Name() if depth < _DEPTH:
            bindings = script.names.reaching(node)
            given = all_written(bindings)
            is_own = all(script.function(each.node) is script.function(node) for each in bindings)
            return is_own and bool(given) and all(_is_joined(script, each, depth + 1) for each in given)
        case syntax.Call(args=[syntax.Arg(value=parts), *_]) if script.name(node.func) in _JOINS:
            value = script.value(parts)
            return value.role is Role.BATCH and value.place is Place.HOST and not value.assumed
        case syntax.Call(func=syntax.Attribute(value=inner, attr=syntax.Name(method))) if script.name(node.func) is None:
            return method in _SAME_BUT_TYPE and _is_joined(script, inner, depth)
    return False


def _may_be_batch(script: Script, moved: syntax.BaseExpression) -> bool:
    """Whether a variable holds a batch of a loader in some runs, and in others what is computed from one on the host, as
    where items of a second loader are put behind it."""
    if not isinstance(moved, syntax.Name) or script.role(moved) is not Role.TENSOR:
        return False
    bindings = script.names.reaching(moved)
    taken = [each.node for each in bindings if each.kind is Kind.FOR and len(bindings) > 1]
    around = [(node, script.source.enclosing(node, syntax.For, syntax.CompFor)) for node in taken]
    return any(
        isinstance(loop, syntax.For) and script.source.contains(loop.target, node) and script.loops.iterates_loader(loop)
        for node, loop in around
    )


def _goes_to_device(script: Script, call: syntax.Call, method: str) -> bool:
    if method == "cuda":
        return True
    if method == "type":
        return len(call.args) == 1 and _is_cuda_type(script, call.args[0].value)
    target = script.argument(call, "device", 0)
    if target is None or script.roles.calls.is_dtype(target) or script.roles.calls.device_of(target) is Place.HOST:
        return False
    if _follows_host(script, target):
        return False
    role = script.role(target)
    named = any(part in _last_name(target).lower() for part in ("dev", "cuda", "gpu", "rank"))
    return role in _DEVICE_ROLES or (role is Role.UNKNOWN and named)


def _follows_host(script: Script, target: syntax.BaseExpression) -> bool:
    """Whether a target is ``output.device`` of the output of a first-party module that nothing puts on a GPU."""
    match target:
        case syntax.Attribute(value=syntax.Name() as output, attr=syntax.Name("device")):
            made = list(script.roles.origins(output))
            return bool(made) and all(
                isinstance(call, syntax.Call) and _is_never_moved(place, call.func) for place, call in made
            )
    return False


def _is_never_moved(script: Script, module: syntax.BaseExpression) -> bool:
    bindings = script.names.reaching(module) if isinstance(module, syntax.Name) else []
    if not bindings or script.role(module) is not Role.MODULE or optimizers.moves(script, module):
        return False
    for binding in bindings:
        made = script.definition(binding.value.func) if isinstance(binding.value, syntax.Call) else None
        if made is None or not isinstance(made.node, syntax.ClassDef) or touches_gpu(made.script, made.node):
            return False
    return next(script.calls_everywhere(*_SET_DEVICE), None) is None


def _last_name(node: syntax.BaseExpression) -> str:
    match node:
        case syntax.Attribute(attr=syntax.Name(value=name)) | syntax.Name(value=name):
            return name
        case syntax.Call(func=func):
            return _last_name(func)
        case syntax.Subscript(
            value=value, slice=[syntax.SubscriptElement(slice=syntax.Index(value=syntax.SimpleString() as key))]
        ):
            return str(key.evaluated_value) or _last_name(value)
    return ""


def _is_cuda_type(script: Script, expression: syntax.BaseExpression) -> bool:
    for other, node in ((script, expression), *script.roles.origins(expression)):
        options = (node.body, node.orelse) if isinstance(node, syntax.IfExp) else (node,)
        for option in options:
            constant = other.constant(option)
            if other.name(option) in library.CUDA_FACTORIES or (
                constant is not None and constant.value in library.CUDA_FACTORIES
            ):
                return True
    if isinstance(expression, syntax.Name):
        names = [b.value for b in script.names.reaching(expression) if isinstance(b.value, syntax.Attribute)]
        return any(script.name(value) in library.CUDA_FACTORIES for value in names)
    return False


def source_loader(script: Script, batch: syntax.BaseExpression) -> Loader | None:
    """The loader a batch comes from, where it is in sight."""
    made = script.value(batch).made
    return loader(made.script, made.call) if made is not None else None


def is_item(script: Script, batch: syntax.BaseExpression) -> bool:
    """Whether a batch is what an object of the project gives for a number: ``x, y = dataset[i]``, also where a loop goes
    over the object itself."""
    return _is_in_turn(script, batch) or any(
        isinstance(node, syntax.Subscript) and place.role(node.value) in _GIVE_ITEMS
        for place, node in script.roles.origins(batch)
    )


def _is_in_turn(script: Script, batch: syntax.BaseExpression, depth: int = 0) -> bool:
    """Whether a variable is bound, or a part or view of what is bound, by a loop that takes a dataset's items by number."""
    match batch:
        case syntax.Attribute(value=whole) | syntax.Subscript(value=whole) | syntax.Call(func=syntax.Attribute(value=whole)):
            return _is_in_turn(script, whole, depth)
        case syntax.Name() if depth < _DEPTH:
            return any(_is_bound_in_turn(script, binding, batch, depth + 1) for binding in script.names.reaching(batch))
    return False


def _is_bound_in_turn(script: Script, binding: Binding, batch: syntax.BaseExpression, depth: int) -> bool:
    if binding.kind is Kind.ASSIGN and binding.value is not None:
        return not script.source.contains(binding.value, batch) and _is_in_turn(script, binding.value, depth)
    loop = script.source.enclosing(binding.node, syntax.For, syntax.CompFor) if binding.kind is Kind.FOR else None
    over = gone_over(script, loop) if isinstance(loop, syntax.For) else ()
    given = (script.value(each) for target, each in over if script.source.contains(target, binding.node))
    return any(
        each.role is Role.DATASET and each.definition is not None and script.roles.calls.gives_by_number(each.definition)
        for each in given
    )


def unpinned(script: Script, batch: syntax.BaseExpression) -> Loader | None:
    """The loader a batch comes from, where it is seen not to pin."""
    found = source_loader(script, batch)
    is_seen = found is not None and not found.hides_arguments and found.setting("pin_memory").is_off
    return found if is_seen else None


def one_way(script: Script, node: syntax.Node) -> str:
    """The cause of a copy that the host waits for: how batches come, where it is that of a batch which its loader does not
    pin, or stands beside one; else that of the copies side by side."""
    around = script.loops.driving_loop(node) or script.function(node)
    beside = script.method_calls("to", "cuda", "type") if around is not None else []
    for call in (node, *(each for each in beside if around is not None and script.source.contains(around, each))):
        batch = moved(script, call) if isinstance(call, syntax.Call) else None
        found = unpinned(script, batch) if batch is not None else None
        if found is None or found.script is not script or not isinstance(call, syntax.Call) or not blocks(call):
            continue
        if worth.stretch(script, call) == worth.stretch(script, node):
            return worth.one_feed(script, node)
    return worth.one_copy(script, node)


def is_on_gpu_already(script: Script, batch: syntax.BaseExpression) -> bool:
    """Whether the batch's loader, or where it is not in sight any loader near by, may put batches on the GPU itself."""
    found = source_loader(script, batch)
    return found.is_on_gpu if found is not None else any(each.is_on_gpu for each in near(script))


def are_few(script: Script, batch: syntax.BaseExpression) -> bool:
    """Whether the batch's loader, or where it is not in sight each loader near by, reads a handful of rows."""
    found = source_loader(script, batch)
    loaders = [found] if found is not None else list(near(script))
    return bool(loaders) and all(each.has_few_rows for each in loaders)


def is_graph(script: Script, batch: syntax.BaseExpression) -> bool:
    """Whether a batch is a graph of DGL's, whose parts no loader pins: the first of the things that DGL's loader gives,
    where there is no other, or what is asked for the data of its nodes or edges."""
    if not isinstance(batch, syntax.Name) or not script.program.mentions(script, b"dgl"):
        return False
    held = (script.source.parents[use] for use in script.names.uses(batch))
    if any(isinstance(each, syntax.Attribute) and each.attr.value in _OF_GRAPHS for each in held):
        return True
    if any(True for _ in near(script)) or next(script.calls_everywhere("dgl.dataloading.GraphDataLoader"), None) is None:
        return False
    taken = [each for each in script.names.reaching(batch) if each.kind in (Kind.FOR, Kind.ASSIGN)]
    return bool(taken) and all(each.path[-1:] == (0,) for each in taken)


def are_small(script: Script, batch: syntax.BaseExpression) -> bool:
    """Whether the batch's loader, or where it is not in sight each loader near by, yields batches of some kilobytes."""
    found = source_loader(script, batch)
    loaders = [found] if found is not None else list(near(script))
    return bool(loaders) and all(each.has_small_batches for each in loaders)


def is_copied(found: Loader) -> bool:
    """Whether a copy of the loader's batches, as they come, to a GPU is seen, or may happen out of sight: what is computed
    from them first, ``x.float().to(device)``, is not where they were pinned."""
    if not found.starts:
        return True
    seen: set[Script] = set()
    for start in found.starts:
        for place in chain((found.script,), start.script.everywhere(b".to(", b".cuda(", b".type(")):
            if place not in seen and _copies(place, found):
                return True
            seen.add(place)
    return False


def _copies(script: Script, found: Loader) -> bool:
    for call in script.method_calls("to", "cuda", "type"):
        batch = moved(script, call)
        if batch is not None and _may_be_of(script, batch, found) and _is_view(script, _laid_out(batch, found), call):
            return True
    if any(call.args and script.role(call.args[0].value) is Role.BATCH for call in script.method_calls("copy_")):
        return True
    return any(True for _ in script.method_calls("prepare", "setup_dataloaders", "prepare_data_loader"))


def _laid_out(batch: syntax.BaseExpression, found: Loader) -> syntax.BaseExpression:
    """A tensor without what gives back the tensor itself: ``.contiguous()`` where its entries lie one behind another,
    ``.float()`` or ``.double()`` where it may hold such numbers already."""
    match batch:
        case syntax.Call(func=syntax.Attribute(value=value, attr=syntax.Name("contiguous"))):
            return value
        case syntax.Call(func=syntax.Attribute(value=value, attr=syntax.Name("float"))) if _may_make_floats(found):
            return value
        case syntax.Call(func=syntax.Attribute(value=value, attr=syntax.Name("double"))) if not _may_make_floats(found):
            return value
    return batch


def _may_make_floats(found: Loader) -> bool:
    """Whether the dataset, or the class of its items, calls what makes a tensor of 32-bit floats of an image, or is out of
    sight."""
    if not all(origin.is_known for origin in found.origins):
        return True
    for origin in found.origins:
        script, node = origin.definition or (origin.script, origin.node)
        if any(script.name(call.func) in _MAKES_FLOATS for call in script.source.inside(node, syntax.Call)):
            return True
    return False


def _may_be_of(script: Script, batch: syntax.BaseExpression, found: Loader) -> bool:
    """Whether a batch may come from a loader: it does not where a loop over another one surrounds it."""
    source = source_loader(script, batch)
    if source is not None or not found.is_followed:
        return source in (None, found)
    read = {start.node for start in found.starts}
    loops = [up for up in script.source.ancestors(batch) if isinstance(up, syntax.For) and is_read(script, up)]
    return not loops or any(loop in read for loop in loops)


def is_read(script: Script, loop: syntax.For) -> bool:
    """Whether a loop reads batches."""
    return script.loops.kind(loop) in (Frequency.STEP, Frequency.EVAL_STEP)


def is_awaited(script: Script, call: syntax.Call) -> syntax.Call | None:
    """The ``torch.cuda.synchronize()`` that follows a copy, other copies and readings of the clock in between."""
    statement = script.source.statement(call)
    block = script.source.parents[statement]
    body = list(block.body) if isinstance(block, syntax.IndentedBlock) else []
    if statement not in body or not all(_is_light(script, each) for each in _calls(script, statement)):
        return None
    for following in body[body.index(statement) + 1 :]:
        waits = next((each for each in _calls(script, following) if script.name(each.func) in _WAITS), None)
        if waits is not None and _only_waits(script, following, waits):
            return waits
        calls = list(_calls(script, following))
        passes = isinstance(following, syntax.SimpleStatementLine) and all(
            script.name(each.func) in _CLOCKS or moved(script, each) is not None for each in calls
        )
        if not passes or not calls:
            return None
    return None


def _calls(script: Script, node: syntax.Node) -> Iterator[syntax.Call]:
    return script.source.inside(node, syntax.Call)


def _is_light(script: Script, call: syntax.Call) -> bool:
    """Whether a call beside a copy is a method of a tensor or container, or makes a container."""
    name = script.name(call.func)
    if name is not None:
        return name in ("list", "tuple", "dict", "torch.autograd.Variable", "torch.stack", "torch.cat")
    return isinstance(call.func, syntax.Attribute) and script.callee(call) is None


def _only_waits(script: Script, statement: syntax.BaseStatement, waits: syntax.Call) -> bool:
    """Whether a statement is the call, or the first thing of an ``if`` without ``else``."""
    if isinstance(statement, syntax.If) and statement.orelse is None and isinstance(statement.body, syntax.IndentedBlock):
        return script.source.contains(statement.body.body[0], waits)
    return isinstance(statement, (syntax.SimpleStatementLine, syntax.If))


def refuses(script: Script, batch: syntax.BaseExpression) -> bool:
    """Whether a batch may be one of torch_geometric's beside so old a torch that its ``to`` takes no ``non_blocking``."""
    found = source_loader(script, batch)
    is_of_graphs = found is not None and (found.script.name(found.call.func) or "").startswith(_GEOMETRIC)
    return is_of_graphs and script.options.torch is not None and script.options.torch < _GRAPHS_SINCE


def hazard(script: Script, call: syntax.Call, batch: syntax.BaseExpression) -> str | None:
    """Why a copy cannot be proved to stay the same with ``non_blocking=True``, or None."""
    if not _is_view(script, batch, call):
        return "what is copied is computed first, into memory that is not pinned: copy the loader's tensor, then compute"
    if may_be_mps(script):
        return "the device may be `mps`, where a tensor may be read before a `non_blocking` copy of it has ended"
    if script.value(batch).assumed:
        return "what gives the batch is out of sight, and may fill its memory again while it is copied"
    if _written_after(script, call, batch) or _is_written_by_generator(script, batch):
        return "the host's tensor is written to afterwards, perhaps while it is still being copied"
    found = source_loader(script, batch)
    if found is not None and found.is_torch and found.parameter("collate_fn") is None and not found.hides_arguments:
        return None
    if found is not None and (found.script.name(found.call.func) or "").startswith(_GEOMETRIC):
        return (
            "`to` of a batch takes no `non_blocking` in the oldest releases of torch_geometric"
            if refuses(script, batch)
            else None
        )
    if _is_whole(script, batch, 0):
        return "the batch may be an object whose own method takes no `non_blocking`"
    for place in script.everywhere(b"def to(", b"def cuda("):
        for klass in place.source.of(syntax.ClassDef):
            if (own := _own_move(place, klass, call)) is not None:
                return f"it may be a `{own}`, whose own method takes no `non_blocking`"
    return None


def _own_move(script: Script, klass: syntax.ClassDef, call: syntax.Call) -> str | None:
    """The class's name, where it defines the method called and does not take ``non_blocking``."""
    assert isinstance(call.func, syntax.Attribute)
    definition = Definition(script, klass)
    if script.roles.instance(definition).role is Role.MODULE:
        return None
    for binding in script.names.scope(klass.body).bindings.get(call.func.attr.value, ()):
        if isinstance(binding.node, syntax.FunctionDef):
            params = binding.node.params
            named = {param.name.value for param in (*params.params, *params.kwonly_params)}
            return None if params.star_kwarg is not None or "non_blocking" in named else klass.name.value
    return None


def _is_view(script: Script, node: syntax.Node, call: syntax.Call, depth: int = 0) -> bool:
    """Whether an expression is the loader's own tensor or a view of it, not something computed from it."""
    if depth > _DEPTH:
        return False
    match node:
        case syntax.Name():
            return all(_binds_view(script, binding, call, depth + 1) for binding in script.names.reaching(node))
        case syntax.Attribute(value=value) | syntax.Subscript(value=value):
            return _is_view(script, value, call, depth + 1)
        case syntax.Call(func=syntax.Attribute(value=value, attr=syntax.Name(value=method))) if (
            script.name(node.func) is None
        ):
            return method in _VIEWS and _is_view(script, value, call, depth + 1)
        case syntax.Call(func=func):
            return script.name(func) in ("next", "torch.autograd.Variable", "iter", "enumerate", "list", "tuple")
    return False


def _binds_view(script: Script, binding: Binding, call: syntax.Call, depth: int) -> bool:
    if binding.kind is not Kind.ASSIGN or binding.value is None:
        return binding.kind in (Kind.FOR, Kind.PARAMETER)
    if script.source.contains(binding.value, call):
        return True
    value, _ = part(binding.value, binding.path)
    return not isinstance(value, (syntax.Tuple, syntax.List)) and _is_view(script, value, call, depth)


def _is_whole(script: Script, node: syntax.Node, depth: int) -> bool:
    """Whether an expression may be all that the loader yields for a batch, not a part of it."""
    if not isinstance(node, syntax.Name) or depth > _DEPTH:
        return depth > _DEPTH or isinstance(node, syntax.Call)
    return any(_binds_whole(script, binding, depth) for binding in script.names.reaching(node))


def _binds_whole(script: Script, binding: Binding, depth: int) -> bool:
    if isinstance(binding.node, syntax.Param):
        passed = list(script.values.passed(binding.node))
        return not passed or any(value is None or _is_whole(other, value, depth + 1) for other, value in passed)
    if binding.value is None:
        return False
    if binding.kind is Kind.ASSIGN:
        given, rest = part(binding.value, binding.path)
        return _is_whole(script, given, depth + 1) if not rest else script.role(given) is not Role.BATCH
    value = script.value(binding.value)
    path = binding.path
    if value.role is Role.BATCH:
        return False
    element: Value | None = script.roles.element(value)
    while element is not None and path and path[0] is not None and path[0] < len(element.items):
        element, path = element.items[path[0]], path[1:]
    return not path and not _is_taken_from_batch(binding.value)


def _is_taken_from_batch(value: syntax.BaseExpression) -> bool:
    match value:
        case syntax.Call(func=syntax.Attribute(attr=syntax.Name("items" | "values"))):
            return True
    return False


def _written_after(script: Script, call: syntax.Call, batch: syntax.BaseExpression) -> bool:
    """Whether the host's tensor is changed in place further down, here or in a function that calls this one."""
    node, depth = batch, 0
    while isinstance(node, (syntax.Subscript, syntax.Attribute)):
        node, depth = node.value, depth + 1
    return isinstance(node, syntax.Name) and _is_written(script, call, node, depth, set())


def _is_written_by_generator(script: Script, batch: syntax.BaseExpression) -> bool:
    """Whether a generator of the project that gives a batch changes tensors in place, which may be those that it gave."""
    name = next(script.source.inside(batch, syntax.Name), None)
    taken = [each for each in script.names.reaching(name) if each.kind is Kind.FOR] if name is not None else []
    loops = [script.source.enclosing(each.node, syntax.For) for each in taken]
    for place, made in chain.from_iterable(
        script.roles.origins(each.iter) for each in loops if isinstance(each, syntax.For)
    ):
        for call in place.source.inside(made, syntax.Call):
            callee = place.callee(call)
            if callee is not None and _writes_and_yields(callee):
                return True
    return False


def _writes_and_yields(function: Definition) -> bool:
    source = function.script.source
    if next(source.inside(function.node, syntax.Yield), None) is None:
        return False
    methods = (each.attr.value for each in source.inside(function.node, syntax.Attribute))
    if any(works_in_place(each) and each != "requires_grad_" for each in methods):
        return True
    added = any(
        function.script.role(each.target) in (Role.BATCH, Role.TENSOR)
        for each in source.inside(function.node, syntax.AugAssign)
    )
    set_ = (each.target for each in source.inside(function.node, syntax.AssignTarget))
    return added or any(
        isinstance(each, syntax.Subscript) and function.script.role(each.value) in (Role.BATCH, Role.TENSOR) for each in set_
    )


def _is_written(
    script: Script, call: syntax.Call, name: syntax.Name, depth: int, seen: set[tuple[syntax.Node, str]]
) -> bool:
    """Whether what a variable holds, or a part of it so many entries deep, is changed in place once a call has run."""
    key = (call, name.value)
    if key in seen:
        return False
    seen = seen | {key}
    bindings = script.names.reaching(name)
    for use in script.names.uses(name):
        is_later = script.order.may_run_before(call, use) and any(each in bindings for each in script.names.reaching(use))
        if is_later and _changes(script, use, depth, set()):
            return True
    holders = (_taken_out_of(script, each) for each in bindings)
    if any(each is not None and _is_written(script, call, each, depth + 1, seen) for each in holders):
        return True
    function = script.function(call)
    parameters = [each.node for each in bindings if isinstance(each.node, syntax.Param)]
    if function is None:
        return False
    return any(
        isinstance(given, syntax.Name) and _is_written(other, site, given, depth, seen)
        for other, site in (script.call_sites(function) if parameters else ())
        for given in (script.values.given(function, each, other, site) for each in parameters)
    )


def _taken_out_of(script: Script, binding: Binding) -> syntax.Name | None:
    """The batch that a loop, or ``map(lambda part: ..., parts)``, takes what it binds out of, if one does: a loader gives a
    new one each time."""
    taken: syntax.Node | None = binding.value if binding.kind is Kind.FOR and len(binding.path) < 2 else None
    if isinstance(binding.node, syntax.Param):
        around = script.source.enclosing(binding.node, syntax.Lambda, syntax.FunctionDef)
        taken = mapped(script, around, binding.node) if isinstance(around, syntax.Lambda) else None
    return taken if isinstance(taken, syntax.Name) and script.role(taken) in (Role.BATCH, Role.SEQUENCE) else None


def _changes(script: Script, use: syntax.Name, depth: int, seen: set[syntax.Node]) -> bool:
    """Whether a use changes the tensor so many entries deep in a variable, ``x += 1``, ``x.zero_()``, ``x[0] = 1``, itself
    or by another name for it: a view, what a loop takes out of it, a parameter of a function that it is handed to."""
    node: syntax.Node = use
    for _ in range(depth):
        up = script.source.parents[node]
        if isinstance(up, syntax.For) and up.iter is node and isinstance(up.target, syntax.Name):
            return _is_changed_as(script, up.target, seen)
        if not isinstance(up, (syntax.Subscript, syntax.Attribute)):
            return False
        node = up
    return _is_changed_at(script, node, seen)


def _is_changed_at(script: Script, node: syntax.Node, seen: set[syntax.Node]) -> bool:
    """Whether what stands around an expression changes the tensor that it is, or a part or view of it."""
    up = script.source.parents[node]
    around = script.source.parents[up]
    match up:
        case syntax.AugAssign(target=target):
            return target is node
        case syntax.Subscript(value=value) if value is node:
            return isinstance(around, syntax.AssignTarget) or _is_changed_at(script, up, seen)
        case syntax.Attribute(value=value, attr=syntax.Name(value=name)) if value is node:
            is_called = isinstance(around, syntax.Call) and around.func is up
            if is_called and works_in_place(name):
                return name != "requires_grad_"
            return name in _SAME_MEMORY and _is_changed_at(script, around if is_called else up, seen)
        case syntax.Assign(targets=[syntax.AssignTarget(target=syntax.Name() as alias)], value=value) if value is node:
            return _is_changed_as(script, alias, seen)
        case syntax.Arg() if isinstance(around, syntax.Call):
            return _changes_argument(script, around, up, seen)
    return False


def _changes_argument(script: Script, call: syntax.Call, arg: syntax.Arg, seen: set[syntax.Node]) -> bool:
    """Whether a call changes what it is handed: by torch's naming, as ``out=``, or in a function of the project's."""
    if (arg.keyword is not None and arg.keyword.value == "out") or works_in_place(script.name(call.func) or ""):
        return True
    callee = script.callee(call)
    parameter = reach.parameter_of(script, callee, call, arg) if callee is not None else None
    return callee is not None and parameter is not None and _is_changed_as(callee.script, parameter, seen)


def _is_changed_as(script: Script, name: syntax.Name | syntax.Param, seen: set[syntax.Node]) -> bool:
    """Whether a use of another name for a tensor changes it."""
    if name in seen:
        return False
    seen.add(name)
    return any(
        _changes(script, use, 0, seen)
        for use in script.names.uses(name)
        if any(each.node is name for each in script.names.reaching(use))
    )
