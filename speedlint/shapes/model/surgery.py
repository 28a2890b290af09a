"""Networks that a program changes once they are made: parts that are put in, taken over, replaced or wrapped."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.solve.flow import listed_once
from speedlint.solve.names import last_name
from speedlint.source import is_name
from speedlint.torch.words import Role

ENTRY = "[]"
"""Stands for the name of a part that is put into a container, by its place or at its end."""
_OF_GRADIENTS = frozenset({"requires_grad", "grad", "data"})
_MODES = frozenset({"training", "track_running_stats"})
_CALLED = frozenset({"forward", "__call__", "_call_impl", "_sa_block", "_ff_block"})
_REGISTERS = frozenset({"add_module", "register_module", "set_submodule", "__setattr__"})
_FILLS = frozenset({"append", "insert", "extend", "pop", "__setitem__", "__delitem__", "__iadd__"})
_TABLES = frozenset({"_modules", "__dict__"})
_READS = frozenset({"items", "keys", "values", "get"})
_PLAIN = (Role.NUMBER, Role.STRING, Role.NONE, Role.DEVICE, Role.DTYPE)
_LISTS = frozenset({"torch.nn.ModuleList", "torch.nn.ModuleDict", "torch.nn.ParameterList"})
_OPTIONS = frozenset({"parse_args", "parse_known_args", "Namespace", "SimpleNamespace", "EasyDict"})
_KEEPS = (
    *(f"torch.{name}" for name in "optim. save compile jit. onnx. export. numel cat stack is_tensor".split()),
    *(f"torch.nn.{name}" for name in "init. functional. parallel. DataParallel Sequential Module utils.clip_grad".split()),
    *("torch.nn.utils.parameters_to_vector", "torch.distributed.", "torch.profiler.", "torch.func.", "torch.autograd."),
    *"copy. wandb. torchinfo. torchsummary. thop. fvcore. ptflops. torchviz. tqdm. functools. itertools. operator.".split(),
)
"""Functions of libraries that leave a module which they are handed as it is, by how their names begin."""
_WRAPS = (
    *(f"torch.nn.utils.{name}" for name in "spectral_norm weight_norm parametriz prune. fusion.".split()),
    *"peft. loralib.inject torch.ao. torch.quantization.".split(),
)
"""Functions and classes of libraries that change it."""


class Change(NamedTuple):
    """A change of a network that is already made.

    Attributes:
        name: the attribute that is set; ``ENTRY`` for a part of a container, None where it is not known.
        given: what is put in, or what says so; nothing where a part is only wrapped or changed itself.
    """

    script: Script
    node: syntax.Node
    name: str | None
    given: tuple[syntax.BaseExpression, ...] = ()

    def place(self, script: Script) -> str:
        """Where it stands, as a reader of a script is told."""
        line = f"line {self.script.source.line(self.node)}"
        return line if self.script is script else f"{line} of {self.script.path.name}"


def changes(script: Script) -> Iterator[Change]:
    """What in the program may change a network after it is made, other than its numbers."""
    return (each for place in script.everywhere() for each in _changes_within(place))


@listed_once
def _changes_within(script: Script) -> Iterator[Change]:
    for target, value in _set(script):
        match target:
            case syntax.Attribute(value=holder, attr=syntax.Name(name)):
                if _sets_part(script, holder, name, value):
                    yield Change(script, target, name, (value,))
            case syntax.Subscript(value=holder):
                role = script.role(holder)
                if role is Role.MODULE or (role is Role.UNKNOWN and script.role(value) is Role.MODULE):
                    yield Change(script, target, ENTRY, (value,))
    for augmented in script.source.of(syntax.AugAssign):
        if script.role(augmented.target) is Role.MODULE:
            yield Change(script, augmented, ENTRY, (augmented.value,))
    for attribute in script.source.of(syntax.Attribute):
        if attribute.attr.value in _TABLES and _changes_table(script, attribute):
            yield Change(script, attribute, None, (attribute,))
    for call in script.source.of(syntax.Call):
        yield from _by_call(script, call)


def _set(script: Script) -> Iterator[tuple[syntax.BaseExpression, syntax.BaseExpression]]:
    """What the file's assignments set, each with the value, or with that of which it is a part."""
    for assign in script.source.of(syntax.Assign):
        for each in assign.targets:
            parts = each.target.elements if isinstance(each.target, syntax.Tuple | syntax.List) else ()
            values = assign.value.elements if isinstance(assign.value, syntax.Tuple | syntax.List) else ()
            yield each.target, assign.value
            for index, part in enumerate(parts):
                yield part.value, values[index].value if len(values) == len(parts) else assign.value


def _sets_part(script: Script, holder: syntax.BaseExpression, name: str, value: syntax.BaseExpression) -> bool:
    if name in _OF_GRADIENTS:
        return False
    if name in _CALLED or name in _MODES:
        return True
    if is_name(holder, "self"):
        return False
    role, given = script.role(holder), script.role(value)
    if role is Role.MODULE:
        return script.value(holder).definition is None or given not in _PLAIN
    is_class = role is Role.CLASS or (script.name(holder) or "").startswith("torch.nn.")
    return is_class or (role is Role.UNKNOWN and given is Role.MODULE)


def _changes_table(script: Script, table: syntax.Attribute) -> bool:
    """Whether what holds a module's parts by their names is changed, or handed on."""
    if table.attr.value == "__dict__" and script.role(table.value) is not Role.MODULE:
        return False
    match script.source.parents[table]:
        case syntax.Subscript() as entry:
            return isinstance(script.source.parents[entry], syntax.AssignTarget | syntax.Del)
        case syntax.Attribute(attr=syntax.Name(method)):
            return method not in _READS
        case syntax.ComparisonTarget():
            return False
    return True


def _by_call(script: Script, call: syntax.Call) -> Iterator[Change]:
    name = script.name(call.func)
    if name == "setattr" and len(call.args) > 2:
        holder, key, value = (arg.value for arg in call.args[:3])
        known = script.constant(key)
        if _may_be_network(script, holder) and script.role(value) not in _PLAIN:
            name = known.value if known is not None and isinstance(known.value, str) else None
            yield Change(script, call, name, (value,))
    elif name is not None:
        if _changes_handed(script, call, name):
            yield Change(script, call, None)
    elif isinstance(call.func, syntax.Attribute):
        yield from _by_method(script, call, call.func)


def _changes_handed(script: Script, call: syntax.Call, name: str) -> bool:
    """Whether a library's function may change a module that it is handed, which is not made for it; a class holds it as it
    is."""
    is_wrapping = name.startswith(_WRAPS)
    if not is_wrapping and ("." not in name or name.startswith(_KEEPS) or name.rpartition(".")[2][:1].isupper()):
        return False
    handed = (arg.value for arg in call.args if not isinstance(arg.value, syntax.Call))
    roles = (Role.MODULE, Role.UNKNOWN) if is_wrapping else (Role.MODULE,)
    return any(script.role(each) in roles for each in handed)


def _by_method(script: Script, call: syntax.Call, method: syntax.Attribute) -> Iterator[Change]:
    holder, name = method.value, method.attr.value
    if name in _REGISTERS and call.args and not is_name(holder, "self"):
        if script.callee(call) is None:
            known = script.constant(call.args[0].value)
            part = known.value if known is not None and isinstance(known.value, str) else None
            yield Change(script, call, part, tuple(arg.value for arg in call.args[1:]))
    elif name in _FILLS:
        role, given = script.role(holder), (script.role(arg.value) for arg in call.args)
        if role is Role.MODULE or (role is Role.UNKNOWN and Role.MODULE in given):
            made = script.value(holder).made
            if made is None or made.script.name(made.call.func) not in _LISTS:
                yield Change(script, call, ENTRY, tuple(arg.value for arg in call.args))
    elif name == "apply" and len(call.args) == 1:
        applied = call.args[0].value
        is_seen = isinstance(applied, syntax.Lambda) or script.definition(applied) is not None
        is_foreign = (script.name(applied) or "").startswith("torch.")
        if not is_seen and (is_foreign or script.role(holder) is Role.MODULE) and not _initializes(script, applied):
            yield Change(script, call, None)


def _initializes(script: Script, applied: syntax.BaseExpression) -> bool:
    """Whether a function that is applied to each part is one in sight with some arguments given."""
    if isinstance(applied, syntax.Call) and applied.args and script.name(applied.func) == "functools.partial":
        return script.definition(applied.args[0].value) is not None
    return isinstance(applied, syntax.Call) and script.callee(applied) is not None


def _may_be_network(script: Script, holder: syntax.BaseExpression) -> bool:
    """Whether an object of which an attribute is set by its name may be a module: not the options of a command line."""
    if script.role(holder) not in (Role.MODULE, Role.UNKNOWN, Role.CLASS):
        return False
    found = [made for _, made in script.roles.origins(holder)]
    return not found or not all(isinstance(made, syntax.Call) and last_name(made.func) in _OPTIONS for made in found)
