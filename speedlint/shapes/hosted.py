"""Programs that run on the CPU as they are shipped: an option that is off by default, and in their own commands, asks for
the GPU, or one that is on keeps them from it; or a variable that is written so."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from speedlint.disk import Mark
from speedlint.facts import syntax
from speedlint.shapes.training import roots, trained_modules
from speedlint.solve import configs, shipped
from speedlint.solve.flow import once
from speedlint.solve.guards import deciding_tests
from speedlint.solve.names import Binding, Kind, last_name
from speedlint.solve.unpacking import key_of
from speedlint.solve.values import option_of
from speedlint.torch import library
from speedlint.torch.words import Frequency, Place, Role

if TYPE_CHECKING:
    from speedlint.ask.script import Script

_FLAG = re.compile(r"(?:use|enable|with|on)?_?(?:cuda|gpu)", re.IGNORECASE)
_REFUSAL = re.compile(r"(?:no|disable|without)_?(?:cuda|gpu)|(?:use|force|on)?_?cpu(?:_?(?:only|force))?", re.IGNORECASE)
"""Options that keep a program from the GPU where they are on."""
_IS_SET = rb"(?:_?(?i:only|force))?\s{0,9}(?::[^=\n]{0,60}|:)?=[\s\\(]{0,99}(?:True|False)\b"
_SETS_FLAG: tuple[Mark, ...] = tuple((end, re.compile(end + _IS_SET)) for end in (b"cuda", b"gpu", b"GPU", b"cpu", b"CPU"))
"""A variable of such a name that is set to a truth value, as an option of a call may be too. One pattern for each end is
found five times as fast as one for all."""
_DEVICE = "device"
_OFF_AT = {_DEVICE: "cpu"}
"""What an option is where it asks for no GPU, of those that are no flags."""
_SETS_DEVICE = re.compile(rb"device[= ]+[\"']?(?:cuda|gpu)")
_NAMES_GPU = re.compile(rb"CUDA_VISIBLE_DEVICES=[\"']?\d")


_MOVES = (b".to(", b".cuda(")
_MOST_READ = 32
"""Files that move something: of more it is not asked what each of them moves, and where."""
_OF_WINDOWS = frozenset({"msilib", "msvcrt", "winreg", "_winreg", "winsound", "win32api", "win32con", "win32gui"})
_DRIVE = re.compile(r"[A-Za-z]:[\\/](?!/)")
_MARKS: tuple[Mark, ...] = (re.compile(rb":[\\/](?<=[\"'][A-Za-z]:[\\/])"), *(name.encode() for name in sorted(_OF_WINDOWS)))


@once(None)
def why_windows(script: Script, by_files: bool) -> str | None:
    """Why a program runs on Windows alone as it is shipped: by what it imports or, with ``by_files``, the path of a file."""
    for place in script.everywhere(*_MARKS):
        why = _why_windows(place, by_files)
        if why is not None and (place is script or script.key in script.program.upward_files(place)):
            return why
    return None


@once(None)
def _why_windows(script: Script, by_files: bool) -> str | None:
    """What in a file runs on Windows alone."""
    for name, dotted in script.names.imports:
        module, bound = dotted.partition(".")[0], script.names.module.bindings.get(name, [])
        if module in _OF_WINDOWS and bound and next(script.order.under(bound[0].node), None) is None:
            return f"it runs on Windows alone, since {script.path.name} imports `{module}`"
    for text in script.source.of(syntax.SimpleString) if by_files else ():
        if isinstance(text.evaluated_value, str) and _DRIVE.match(text.evaluated_value) and _is_handed_on(script, text):
            return f"it runs on Windows, where line {script.source.line(text)} of {script.path.name} names a file"
    return None


def _is_handed_on(script: Script, text: syntax.Node) -> bool:
    """Whether a text is what a call is given, not an option's default that others set."""
    up = script.source.parents[text]
    call = script.source.parents[up] if isinstance(up, syntax.Arg) else None
    return isinstance(call, syntax.Call) and option_of(script, call) is None


def asks_for_gpu(option: syntax.BaseExpression) -> bool:
    """Whether an option is, by its name, the one by which a program takes the GPU: what else it decides is on where there
    is something to gain."""
    name = last_name(option)
    return name is not None and _FLAG.fullmatch(name) is not None


@once(False)
def runs_on_host(script: Script) -> bool:
    """Whether the commands that the project ships for a program, and the defaults of its options, train on the CPU."""
    if _is_moved_to_host_alone(script):
        return True
    written = (*_written_off(script), *_passed_off(script), *_configured_off(script))
    return any(_decides(script, name) for name in written) or any(
        _is_left_off(place, option, name) and _decides(script, name)
        for place in script.everywhere(b"add_argument")
        for option in place.method_calls("add_argument")
        if (name := place.values.destination(option)) is not None
        and (name == _DEVICE or _FLAG.fullmatch(name) or _REFUSAL.fullmatch(name))
    )


def _is_moved_to_host_alone(script: Script) -> bool:
    """Whether the networks that a program trains are moved to the CPU by what it makes them with, and nowhere else: to
    ``torch.device(config.device)``, where each ``Config()`` that is seen leaves its default, the CPU; not by an option."""
    if script.program.number_of_others(script, *_MOVES) > _MOST_READ:
        return False
    options = (
        (place, option) for place in script.everywhere(b"add_argument") for option in place.method_calls("add_argument")
    )
    defaults = (place.values.default_of(option) for place, option in options)
    if any(default is not None and default.value == _OFF_AT[_DEVICE] for default in defaults):
        return False
    moves = [
        (place, move, place.roles.calls.place_of_move(move, Place.EITHER))
        for place in script.everywhere(*_MOVES)
        for move in place.method_calls("to", "cuda")
        if place.name(move.func) is None
    ]
    chosen = [(place, move) for place, move, where in moves if where is Place.HOST and not _is_written_out(place, move)]
    trained = {id(node) for _, node in trained_modules(script)} if chosen else set[int]()
    if not any(_moves_one_of(trained, place, move) for place, move in chosen):
        return False
    if any(where is not Place.HOST and _moves_one_of(trained, place, move) for place, move, where in moves):
        return False
    return not any(True for _ in _puts_by_itself(script))


def _moves_one_of(modules: set[int], script: Script, move: syntax.Call) -> bool:
    """Whether a call moves one of some modules, which are told by the identity of what makes them."""
    if not modules or not isinstance(move.func, syntax.Attribute) or script.role(move.func.value) is not Role.MODULE:
        return False
    return any(id(node) in modules for _, node in roots(script, move.func.value))


def _is_written_out(script: Script, move: syntax.Call) -> bool:
    """Whether a module is moved to the CPU as such, ``model.to("cpu")``, as to be saved: it says nothing of before."""
    device = script.argument(move, "device", 0)
    match device:
        case syntax.Call(args=[syntax.Arg(value=syntax.SimpleString()), *_]):
            return True
    return isinstance(device, syntax.SimpleString)


def _puts_by_itself(script: Script) -> Iterator[syntax.Call]:
    """The calls that make what puts networks and batches on the GPU that there is, and those by which a program sets the
    device of an object or the one by default, by names that are not followed."""
    for place in script.everywhere():
        yield from place.roles.calls.made_of(library.ON_GPU_BY_DEFAULT)
    for place in script.everywhere(b"set_default_device", b"set_default_tensor_type", b"__dict__"):
        yield from place.calls("torch.set_default_device", "torch.set_default_tensor_type")
        yield from (
            call
            for call in place.method_calls("update")
            if isinstance(call.func, syntax.Attribute) and last_name(call.func.value) == "__dict__"
        )
    for place in script.everywhere(b"setattr"):
        yield from (
            call
            for call in place.calls("setattr")
            if len(call.args) > 1
            and isinstance(call.args[1].value, syntax.SimpleString)
            and _DEVICE in str(call.args[1].value.evaluated_value)
        )


def _written_off(script: Script) -> Iterator[str]:
    """The variables that keep a program from the GPU, and that nothing sets again: ``use_cuda = False`` at the top of a
    module, or in a function that trains itself, where nothing else of the program has that name."""
    for place in script.everywhere(*_SETS_FLAG):
        top = place.names.scope(place.source.module)
        yield from (name for name, bindings in top.bindings.items() if _keeps_off(name, bindings))
        for function in filter(functools.partial(_trains, place), place.source.of(syntax.FunctionDef)):
            for name, bindings in place.names.scope(function.body).bindings.items():
                if _keeps_off(name, bindings) and all(_is_own(script, function, each) for each in _named(script, name)):
                    yield name


def _trains(script: Script, function: syntax.FunctionDef) -> bool:
    """Whether a function holds a loop of training steps."""
    loops = (each for each in script.loops.all if script.source.contains(function.body, each))
    return any(script.loops.kind(each) is Frequency.STEP for each in loops)


def _keeps_off(name: str, bindings: list[Binding]) -> bool:
    is_flag = _FLAG.fullmatch(name) is not None
    value = bindings[0].value if len(bindings) == 1 and (is_flag or _REFUSAL.fullmatch(name)) else None
    return isinstance(value, syntax.Name) and value.value == str(not is_flag)


def _named(script: Script, name: str) -> Iterator[tuple[Script, syntax.Node]]:
    """What a program calls by a name, or writes it as a text."""
    for place in script.everywhere(name.encode()):
        yield from ((place, each) for each in place.source.tree.named((name,)))
        texts = place.source.of(syntax.SimpleString)
        yield from ((place, each) for each in texts if each.evaluated_value == name)


def _is_own(script: Script, function: syntax.FunctionDef, named: tuple[Script, syntax.Node]) -> bool:
    """Whether a name stands within a function, as a variable that is not one of two conditions, or is that of a module of
    torch's: ``torch.cuda``."""
    place, node = named
    up = place.source.parents[node]
    if isinstance(up, syntax.Attribute) and up.attr is node and (place.name(up) or "").startswith("torch."):
        return True
    is_variable = not (isinstance(up, syntax.Attribute) and up.attr is node)
    is_variable = is_variable and not (isinstance(up, syntax.BooleanOperation) and isinstance(up.operator, syntax.Or))
    return is_variable and node.tree is function.tree and place.source.contains(function.body, node)


def _passed_off(script: Script) -> Iterator[str]:
    """The parameters of functions and classes that keep a program from the GPU in each of their calls:
    ``Trainer(model, force_cpu=True)``; none of a name that another function's parameter has and is passed otherwise."""
    found: dict[str, bool] = {}
    for place in script.everywhere(*_SETS_FLAG):
        for parameter in place.source.of(syntax.Param):
            name = parameter.name.value
            function = place.source.enclosing(parameter, syntax.FunctionDef, syntax.Lambda)
            if _FLAG.fullmatch(name) or _REFUSAL.fullmatch(name):
                is_off = isinstance(function, syntax.FunctionDef) and _is_passed_off(place, function, parameter)
                found[name] = found.get(name, True) and is_off
    yield from (name for name, is_off in found.items() if is_off)


def _is_passed_off(script: Script, function: syntax.FunctionDef, parameter: syntax.Param) -> bool:
    """Whether a function runs by calls alone that are seen, each of which keeps it from the GPU."""
    off = str(_FLAG.fullmatch(parameter.name.value) is None)
    calls = [(caller, call) for caller, call in script.call_sites(function) if not caller.is_test]
    if not calls or _is_handed_on_itself(script, function) or any(caller.hides_arguments(call) for caller, call in calls):
        return False
    passed = (script.values.given(function, parameter, caller, call) or parameter.default for caller, call in calls)
    return all(isinstance(each, syntax.Name) and each.value == off for each in passed)


def _is_handed_on_itself(script: Script, function: syntax.FunctionDef) -> bool:
    """Whether a function, or the class that it makes objects of, is given to something that may call it: ``Fire(train)``."""
    owner = script.names.owner(function)
    name = owner.name.value if owner is not None else function.name.value
    return any(
        isinstance(
            place.source.parents[each], (syntax.Arg, syntax.Assign, syntax.Element, syntax.DictElement, syntax.Return)
        )
        for place in script.everywhere(name.encode())
        for each in place.source.tree.named((name,))
        if isinstance(each, syntax.Name)
    )


def _configured_off(script: Script) -> Iterator[str]:
    """``device``, where each configuration near a script says that it is the CPU, and no command says otherwise."""
    found = configs.nearest(script, _DEVICE)
    is_off = bool(found) and all(isinstance(each, str) and each.lower() == "cpu" for each in found)
    if is_off and not any(script.program.disk.mentions(str(path), _SETS_DEVICE) for path in shipped.texts(script)):
        yield _DEVICE


def _is_left_off(script: Script, option: syntax.Call, name: str) -> bool:
    """Whether no default and no command asks for the GPU by an option, and there are commands, or none can ask."""
    default, off = script.values.default_of(option), _OFF_AT.get(name, _REFUSAL.fullmatch(name) is not None)
    if default is None or default.value != off or type(default.value) is not type(off):
        return False
    if isinstance(off, bool) and _always_gives(script, option, off):
        return True
    if not shipped.is_started(script) or _starts_on_gpu(script):
        return False
    given = shipped.given(script, option)
    return all(each == off for each in given) if name == _DEVICE else not given


def _always_gives(script: Script, option: syntax.Call, value: bool) -> bool:
    """Whether a flag stores its default whatever the command says: ``action="store_true", default=True``."""
    action = script.argument(option, "action", None)
    stored = script.constant(action) if action is not None else None
    return stored is not None and stored.value == ("store_true" if value else "store_false")


def _starts_on_gpu(script: Script) -> bool:
    """Whether a command of the project names the GPU that it is to run on."""
    return any(script.program.disk.mentions(str(path), _NAMES_GPU) for path in shipped.texts(script))


def _decides(script: Script, name: str) -> bool:
    """Whether nothing in a program puts anything on a GPU but where an option is asked, and something does."""
    told = _told_by(script, name)
    names = frozenset({name, *(attribute for attribute, is_told in told.items() if is_told)})
    found = [(place, node) for place in script.everywhere(b"cuda", name.encode()) for node in _puts(place, names)]
    return bool(found) and told.get(name, True) and all(_is_asked(place, node, names) for place, node in found)


def _told_by(script: Script, name: str) -> dict[str, bool]:
    """Of each attribute that is set, whether it is set by an option alone, as ``args.cuda`` by ``not args.no_cuda``."""
    told: dict[str, bool] = {}
    for place in script.everywhere(b"cuda", name.encode()):
        for assign in place.source.of(syntax.Assign):
            for target in (each.target for each in assign.targets if isinstance(each.target, syntax.Attribute)):
                attribute = target.attr.value
                told[attribute] = told.get(attribute, True) and _says(place, assign.value, frozenset({name}))
    return told


def _puts(script: Script, names: frozenset[str]) -> Iterator[syntax.Node]:
    """What puts things on a GPU, or on the device that an option names."""
    for call in script.method_calls("cuda"):
        if script.name(call.func) is None:
            yield call
    for text in script.source.of(syntax.SimpleString):
        if (
            str(text.evaluated_value).startswith("cuda")
            and option_of(script, text) is None
            and not _is_compared(script, text)
            and not _is_for_nothing(script, text)
        ):
            yield text
    for call in (*script.calls("torch.device"), *script.method_calls("to")):
        if call.args and (isinstance(call.args[0].value, syntax.Integer) or _names(script, call.args[0].value, names)):
            yield call
    yield from script.calls("torch.cuda.current_device")
    yield from script.roles.calls.made_of(library.ON_GPU_BY_DEFAULT)


def _is_compared(script: Script, text: syntax.SimpleString) -> bool:
    """Whether a text is what another one is compared with, or asked to begin with."""
    up = script.source.parents[text]
    asked = script.source.parents[up] if isinstance(up, syntax.Arg) else None
    match asked:
        case syntax.Call(func=syntax.Attribute(attr=syntax.Name("startswith"))):
            return True
    return isinstance(up, (syntax.Comparison, syntax.ComparisonTarget))


def _is_for_nothing(script: Script, text: syntax.SimpleString) -> bool:
    """Whether a text is given to a variable that is at most printed, here, and that no other file takes from this one."""
    assign = script.source.enclosing(text, syntax.Assign, syntax.Call, syntax.FunctionDef)
    match assign:
        case syntax.Assign(targets=[syntax.AssignTarget(target=syntax.Name() as name)]):
            return all(use is name or _is_printed(script, use) for use in script.names.uses(name)) and not any(
                place.names.module.stars or any(each.kind is Kind.IMPORT for each in place.names.module.bindings[name.value])
                for place in script.everywhere(name.value.encode())
                if place is not script and name.value in place.names.module.bindings
            )
    return False


def _is_printed(script: Script, use: syntax.Name) -> bool:
    call = script.source.enclosing(use, syntax.Call, syntax.SimpleStatementLine)
    return isinstance(call, syntax.Call) and script.name(call.func) == "print"


def _is_asked(script: Script, node: syntax.Node, names: frozenset[str]) -> bool:
    """Whether an option's value is what is put there, or decides whether it is."""
    child = node
    if not isinstance(node, syntax.SimpleString) and any(
        _names(script, arg.value, names) for arg in getattr(node, "args", ())
    ):
        return True
    for up in script.source.ancestors(node):
        if any(_names(script, test, names) for test, _ in deciding_tests(up, child)):
            return True
        if isinstance(up, syntax.BooleanOperation) and _names(script, up.left, names):
            return True
        child = up
    return False


def _names(script: Script, expression: syntax.BaseExpression, names: frozenset[str]) -> bool:
    """Whether an expression, or what it was given, names an option's value."""
    written = [(script, expression), *((place, node) for place, node in script.roles.origins(expression))]
    for part in script.source.inside(expression, syntax.Name):
        written += script.roles.origins(part)
    return any(_says(place, node, names) for place, node in written)


def _says(script: Script, expression: syntax.Node, names: frozenset[str]) -> bool:
    inside = script.source.inside
    attributes = (each for each in inside(expression, syntax.Attribute) if each.attr.value in names)
    variables = (each for each in inside(expression, syntax.Name) if each.value in names)
    is_option = any(script.name(each) is None for each in attributes)
    is_option = is_option or any(key_of(each) in names for each in inside(expression, syntax.Subscript))
    return is_option or any(not isinstance(script.source.parents[each], syntax.Attribute) for each in variables)
