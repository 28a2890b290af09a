"""What stands behind a loader's dataset: where it comes from, and what it would do in a worker process."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, NamedTuple

from speedlint.facts import syntax
from speedlint.solve import changing, off
from speedlint.solve.names import Binding, Kind
from speedlint.solve.terms import Definition
from speedlint.solve.unpacking import part
from speedlint.solve.values import returned
from speedlint.source import is_name
from speedlint.torch import library
from speedlint.torch.words import Place, Role

if TYPE_CHECKING:
    from speedlint.ask.script import Script

_VIEWS = frozenset(
    {
        "torch.utils.data.Subset",
        "torch.utils.data.random_split",
        "torch.utils.data.ConcatDataset",
        "torch.utils.data.dataset.Subset",
        "torch.utils.data.dataset.random_split",
        "torch.utils.data.dataset.ConcatDataset",
    }
)
_IN_MEMORY = frozenset(
    {"torch.utils.data.TensorDataset", "torch.utils.data.dataset.TensorDataset", "list", "range", "zip", "sorted"}
    | {"lightning.pytorch.demos.WikiText2", "lightning.pytorch.demos.transformer.WikiText2"}
)
_GRAPHS_IN_MEMORY = ("torch_geometric.datasets.Planetoid", "torch_geometric.datasets.TUDataset")
_OPENS_FILES = frozenset({"torchvision.datasets.LSUN", "torchvision.datasets.LSUNClass"})
_ITERABLE = ("torch.utils.data.IterableDataset", "torch.utils.data.dataset.IterableDataset")
_CHEAP = frozenset(
    "len torch.tensor torch.as_tensor torch.from_numpy torch.FloatTensor torch.LongTensor torch.Tensor int float "
    "numpy.array numpy.asarray torch.is_tensor isinstance dict tuple list max min slice range str torch.ones torch.zeros "
    "torch.cat torch.concat torch.stack numpy.concatenate numpy.stack "
    "torch.full torch.arange torch.ones_like torch.zeros_like torch.IntTensor torch.BoolTensor".split()
)
_CHEAP_METHODS = frozenset(
    "long float int double bool to tolist item copy clone astype type size unsqueeze squeeze view items keys values "
    "get".split()
)
_HOLDS_IN_MEMORY = frozenset(
    "torch numpy pandas pickle json csv sklearn scipy collections itertools random math copy".split()
)
_READS_LATER = ("numpy.memmap", "numpy.lib.format.open_memmap", "numpy.lib.npyio.NpzFile", "torch.utils.", "torch.jit.")
_DEPTH = 8


class Origin(NamedTuple):
    """One thing a dataset may be.

    Attributes:
        node: the expression that makes it.
        definition: its first-party class, if it is an object of one.
        name: the library's class or function that makes it.
    """

    script: Script
    node: syntax.Node
    definition: Definition | None = None
    name: str | None = None

    @property
    def is_known(self) -> bool:
        """Whether it is in sight what reading an item does."""
        if self.definition is None:
            return self.name is not None
        calls = self.definition.script.roles.calls
        plain = all(_is_plain_base(base) for base in calls.foreign_bases(self.definition))
        return plain and not _unseen_base(self.definition)

    @property
    def is_in_memory(self) -> bool:
        """Whether an item is only taken out of a tensor or list."""
        if self.definition is None:
            return self.name in _IN_MEMORY or (self.name or "").startswith(_GRAPHS_IN_MEMORY)
        bases = self.definition.script.roles.calls.foreign_bases(self.definition)
        is_of_graphs = any(base.startswith("torch_geometric.") and base.endswith("InMemoryDataset") for base in bases)
        return is_of_graphs or (self.is_known and _only_indexes(self.definition))

    def is_of(self, names: frozenset[str]) -> bool:
        """Whether it is one of some datasets of a library, or made of one."""
        if self.definition is None:
            return self.name in names
        script, source = self.definition.script, self.definition.script.source
        bases = script.roles.calls.foreign_bases(self.definition)
        made = (script.name(call.func) for call in source.inside(self.definition.node, syntax.Call))
        return not names.isdisjoint(bases) or any(name in names for name in made)


def _is_plain_base(name: str) -> bool:
    return library.is_dataset_class(name) or name == "object" or name.startswith(("typing.", "abc."))


def _unseen_base(definition: Definition) -> bool:
    for owner in definition.script.roles.calls.lineage(definition):
        assert isinstance(owner.node, syntax.ClassDef)
        for base in owner.node.bases:
            if owner.script.name(base.value) is None and owner.script.definition(base.value) is None:
                return True
    return False


# Where it comes from


def origins(script: Script, expression: syntax.Node) -> list[Origin]:
    """What a dataset expression may be, views such as ``Subset`` and ``random_split`` seen through."""
    found: dict[tuple[syntax.Node, syntax.Node | None], Origin] = {}
    for origin in _origins(script, expression, 0):
        made_of = origin.definition.node if origin.definition is not None else None
        found.setdefault((origin.node, made_of), origin)
    return list(found.values())


def wrapped(origin: Origin, reader: Script) -> Iterator[Origin]:
    """The datasets of which a dataset of the project's takes its items, ``self.dataset[self.indices[i]]``, in the programs
    that reach a file which reads it: others wrap theirs in the same class."""
    calls = origin.definition.script.roles.calls if origin.definition is not None else None
    item = calls.method(origin.definition, "__getitem__") if calls is not None and origin.definition is not None else None
    if item is None:
        return
    source = item.script.source
    for subscript in source.inside(item.node, syntax.Subscript):
        whole = source.enclosing(subscript, syntax.Subscript)
        is_index = whole is not None and not source.contains(whole.value, subscript)
        if isinstance(subscript.value, syntax.Attribute) and isinstance(subscript.value.value, syntax.Name) and not is_index:
            within = origins(item.script, subscript.value)
            yield from (each for each in within if reader.program.is_met(reader, each.script))


def _origins(script: Script, node: syntax.Node, depth: int) -> Iterator[Origin]:
    if depth > _DEPTH:
        yield Origin(script, node)
        return
    match node:
        case syntax.Name("None"):
            return
        case syntax.Name() if bindings := script.names.reaching(node):
            for binding in bindings:
                yield from _of_binding(script, binding, depth)
        case syntax.Attribute():
            yield from _of_attribute(script, node, depth)
        case syntax.IfExp(body=body, orelse=orelse):
            yield from _origins(script, body, depth + 1)
            yield from _origins(script, orelse, depth + 1)
        case syntax.Subscript(value=value):
            yield from _held(script, value, node, depth)
        case syntax.DictComp(value=value):
            yield from _origins(script, value, depth + 1)
        case syntax.Dict(elements=elements):
            for element in elements:
                yield from _origins(script, element.value, depth + 1)
        case syntax.List() | syntax.ListComp():
            yield Origin(script, node, name="list")
        case syntax.Call():
            yield from _of_call(script, node, depth)
        case _:
            yield Origin(script, node)


def _held(script: Script, holder: syntax.BaseExpression, node: syntax.Node, depth: int) -> Iterator[Origin]:
    """What a subscript takes out of a dict of datasets, or of the parts of a split."""
    for place, made in script.roles.origins(holder):
        if isinstance(made, (syntax.ListComp, syntax.DictComp)):
            yield from _origins(place, made.elt if isinstance(made, syntax.ListComp) else made.value, depth + 1)
            return
    found = list(_origins(script, holder, depth + 1))
    in_memory = all(origin.is_in_memory and origin.definition is None for origin in found)
    yield from [Origin(script, node)] if in_memory else found


def _of_binding(script: Script, binding: Binding, depth: int) -> Iterator[Origin]:
    if binding.kind is Kind.PARAMETER and isinstance(binding.node, syntax.Param):
        passed = list(script.values.passed(binding.node))
        for other, value in passed:
            if value is not None:
                yield from _origins(other, value, depth + 1)
        if not passed:
            yield Origin(script, binding.node)
    elif binding.kind is Kind.IMPORT and binding.dotted is not None:
        reached, home = script.imported_binding(binding.dotted)
        if reached is not None and home is not None:
            yield from _of_binding(home, reached, depth + 1)
        else:
            yield Origin(script, binding.node)
    elif binding.kind is Kind.ASSIGN and binding.value is not None:
        yield from _taken_apart(script, binding.value, binding.path, depth)
    elif binding.kind is not Kind.AUGMENT:
        yield Origin(script, binding.node)


def _taken_apart(script: Script, value: syntax.BaseExpression, path: tuple[int | None, ...], depth: int) -> Iterator[Origin]:
    value, path = part(value, path)
    if not path:
        yield from _origins(script, value, depth + 1)
    elif isinstance(value, syntax.Call) and script.name(value.func) in _VIEWS:
        yield from _of_call(script, value, depth + 1)
    elif isinstance(value, syntax.Call) and (callee := script.callee(value)) is not None and depth < _DEPTH:
        for result in returned(callee):
            yield from _taken_apart(callee.script, result, path, depth + 1)
    else:
        yield Origin(script, value)


def _of_attribute(script: Script, node: syntax.Attribute, depth: int) -> Iterator[Origin]:
    owner = script.value(node.value).definition
    assigned = list(script.roles.self_assignments(owner, node.attr.value)) if owner is not None else []
    if isinstance(owner.node if owner else None, syntax.ClassDef) and assigned:
        for other, value in assigned:
            yield from _origins(other, value, depth + 1)
    else:
        yield Origin(script, node)


def _of_call(script: Script, call: syntax.Call, depth: int) -> Iterator[Origin]:
    name = script.name(call.func)
    definition = script.definition(call.func)
    if definition is not None and isinstance(definition.node, syntax.ClassDef):
        yield Origin(script, call, definition=definition)
    elif definition is not None or name is None:
        callee = script.callee(call)
        results = list(returned(callee)) if callee is not None else []
        for result in results:
            assert callee is not None
            yield from _origins(callee.script, result, depth + 1)
        if not results:
            yield from _of_choices(script, call)
    elif name in _VIEWS and call.args:
        first = call.args[0].value
        for part in first.elements if isinstance(first, (syntax.List, syntax.Tuple)) else ():
            yield from _origins(script, part.value, depth + 1)
        if not isinstance(first, (syntax.List, syntax.Tuple)):
            yield from _origins(script, first, depth + 1)
    elif name in _IN_MEMORY or (name.startswith("torchvision.datasets.") and name not in _OPENS_FILES):
        yield Origin(script, call, name=name)
    else:
        yield Origin(script, call)


def _of_choices(script: Script, call: syntax.Call) -> Iterator[Origin]:
    """What a call of one of several classes makes: ``DATASETS[args.data](root)``."""
    classes = [place.definition(each) for place, each in script.roles.calls.choices(call.func)]
    is_known = bool(classes) and all(each is not None and isinstance(each.node, syntax.ClassDef) for each in classes)
    yield from (Origin(script, call, definition=each) for each in classes if is_known)
    if not is_known:
        yield Origin(script, call)


# What it does


def is_iterable(origin: Origin) -> bool:
    """Whether it is an IterableDataset: each worker would yield all of it, unless it asks which worker it is."""
    if origin.definition is None:
        return False
    script, node = origin.definition.script, origin.definition.node
    shards = any(name.value == "get_worker_info" for name in script.source.inside(node, syntax.Name))
    return is_iterable_class(origin.definition) and not shards


def is_iterable_class(definition: Definition) -> bool:
    """Whether a first-party class is an IterableDataset."""
    return any(base in _ITERABLE for base in definition.script.roles.calls.foreign_bases(definition))


def stores(script: Script, function: syntax.FunctionDef) -> bool:
    """Whether a method keeps something on ``self``."""
    return any(changing.is_on_self(base) for base, _ in changing.written(script, function))


def _only_indexes(definition: Definition) -> bool:
    """Whether ``__getitem__`` does nothing by default but take an item out of what it holds."""
    method = definition.script.roles.calls.method(definition, "__getitem__")
    if method is None:
        return False
    script = method.script
    kinds = (syntax.For, syntax.While, syntax.With, syntax.ListComp)
    works: list[syntax.Node] = [each for kind in kinds for each in script.source.inside(method.node, kind)]
    works += [call for call in script.source.inside(method.node, syntax.Call) if not _is_cheap(script, call)]
    if not all(off.is_off(script, each) for each in works):
        return False
    return not any(_reads_later(owner, value, 0) for owner, value in _held_by(definition, method))


def _held_by(definition: Definition, method: Definition) -> Iterator[tuple[Script, syntax.BaseExpression]]:
    """What the attributes of ``self`` are that a method reads."""
    source = method.script.source
    names = [each.attr.value for each in source.inside(method.node, syntax.Attribute) if is_name(each.value, "self")]
    for name in dict.fromkeys(names):
        yield from method.script.roles.self_assignments(definition, name)


def _reads_later(script: Script, node: syntax.Node, depth: int) -> bool:
    """Whether indexing a value may read a file, decode or compute: it is another dataset, or out of a foreign library."""
    if depth > _DEPTH:
        return True
    for origin in origins(script, node):
        if origin.definition is not None or origin.name is not None:
            if not origin.is_in_memory:
                return True
        elif isinstance(origin.node, syntax.Call):
            func, name = origin.node.func, origin.script.name(origin.node.func)
            if name is None and isinstance(func, syntax.Attribute) and _reads_later(origin.script, func.value, depth + 1):
                return True
            if name is not None and _is_read_later(origin.script, origin.node, name):
                return True
    return False


def _is_read_later(script: Script, call: syntax.Call, name: str) -> bool:
    """Whether what a library's function makes is read from a file, or computed, only where it is indexed."""
    if any(script.argument(call, keyword) is not None for keyword in ("mmap", "mmap_mode", "chunksize", "iterator")):
        return True
    package = name.partition(".")[0]
    return name.startswith(_READS_LATER) or ("." in name and package not in _HOLDS_IN_MEMORY) or name == "open"


def _is_cheap(script: Script, call: syntax.Call) -> bool:
    name = script.name(call.func)
    if name is not None:
        return name in _CHEAP
    return isinstance(call.func, syntax.Attribute) and call.func.attr.value in _CHEAP_METHODS


# Where its tensors are


def touches_gpu(script: Script, node: syntax.Node, depth: int = 0) -> bool:
    """Whether code puts tensors on a GPU, itself or through the first-party functions it calls."""
    for call in script.source.inside(node, syntax.Call):
        if _puts_on_gpu(script, call):
            return True
        callee = script.callee(call) if depth < 2 else None
        inner = callee is not None and callee.node is not node and isinstance(callee.node, syntax.FunctionDef)
        if inner and callee is not None and touches_gpu(callee.script, callee.node, depth + 1):
            return True
    return False


def _puts_on_gpu(script: Script, call: syntax.Call) -> bool:
    calls = script.roles.calls
    if isinstance(call.func, syntax.Attribute) and script.name(call.func) is None:
        if call.func.attr.value == "cuda":
            return True
        if call.func.attr.value == "to" and call.args and calls.place_of_move(call, Place.HOST) is not Place.HOST:
            if _is_where_given(script, call.args[0].value):
                return False
            return script.role(call.args[0].value) is not Role.UNKNOWN or "dev" in script.text(call.args[0].value).lower()
    device = script.argument(call, "device")
    return device is not None and calls.device_of(device) is not Place.HOST


def _is_where_given(script: Script, device: syntax.BaseExpression) -> bool:
    """Whether it is ``data.device`` of what the function is given: what is moved there follows its callers."""
    match device:
        case syntax.Attribute(value=syntax.Name() as given, attr=syntax.Name("device")) if given.value != "self":
            bound = script.names.reaching(given)
            return bool(bound) and all(binding.kind is Kind.PARAMETER for binding in bound)
    return False


def is_on_gpu(script: Script, expression: syntax.Node, but: Collection[syntax.Node] = ()) -> bool:
    """Whether a dataset's items may be on a GPU; some methods of its class left out."""
    for origin in origins(script, expression):
        if origin.definition is not None:
            owners = origin.definition.script.roles.calls.lineage(origin.definition)
            if any(touches_gpu(owner.script, part) for owner in owners for part in _without(owner, but)):
                return True
        given = origin.node.args if isinstance(origin.node, syntax.Call) else ()
        if any(_holds_gpu_tensor(origin.script, arg.value) for arg in given):
            return True
    return False


def _without(owner: Definition, but: Collection[syntax.Node]) -> list[syntax.Node]:
    """A class, or its methods where some of them are left out."""
    functions = list(owner.script.source.inside(owner.node, syntax.FunctionDef))
    kept = [each for each in functions if each not in but]
    return [owner.node] if len(kept) == len(functions) else list(kept)


def _is_filled_on_gpu(script: Script, container: syntax.BaseExpression) -> bool:
    """Whether entries of a variable are put on a GPU: ``tables[name] = table.to(device)``."""
    if not isinstance(container, syntax.Name):
        return False
    for use in script.names.uses(container):
        entry = script.source.parents[use]
        statement = script.source.enclosing(use, syntax.Assign)
        is_set = isinstance(entry, syntax.Subscript) and isinstance(script.source.parents[entry], syntax.AssignTarget)
        if is_set and isinstance(statement, syntax.Assign) and touches_gpu(script, statement.value):
            return True
    return False


def _holds_gpu_tensor(script: Script, expression: syntax.BaseExpression) -> bool:
    if touches_gpu(script, expression) or _is_filled_on_gpu(script, expression):
        return True
    value = script.value(expression)
    parts = filter(None, (value, *value.items, value.element))
    if any(part.role is Role.TENSOR and part.place is Place.GPU for part in parts):
        return True
    return any(touches_gpu(other, made) for other, made in script.roles.origins(expression))
