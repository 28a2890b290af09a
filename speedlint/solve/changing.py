"""What a program changes in place, and whether that may be something which is read while training runs.

Told by names: an attribute stands for all attributes that are called so, a variable for itself; what is given to either
(``b = a``, an argument, a turn of a loop) may be the same object.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from speedlint.facts import syntax
from speedlint.solve.flow import listed_once, once
from speedlint.solve.names import Binding, Kind, last_name
from speedlint.solve.unpacking import advanced
from speedlint.source import is_name
from speedlint.torch import library, methods
from speedlint.torch.words import Frequency, Role

if TYPE_CHECKING:
    from speedlint.ask.script import Script

_CHANGES = frozenset(
    "append add update setdefault extend insert pop popitem remove discard clear appendleft popleft sort reverse fill put "
    "shuffle setflags itemset difference_update intersection_update symmetric_difference_update extendleft move_to_end "
    "__setitem__ __delitem__ __setattr__ __delattr__ __iadd__ __ior__".split()
)
_OF_SOME = (("rotate", b"deque"), ("subtract", b"Counter"))
"""Methods that change their object where it is one of a class that the program names."""
_OF_TRAINING = (Role.MODULE, Role.OPTIMIZER, Role.SCHEDULER, Role.SCALER)
_IN_PLACE = (
    "torch.nn.init.",
    "torch.distributed.",
    "random.shuffle",
    "numpy.random.shuffle",
    "numpy.put",
    "numpy.copyto",
    "numpy.place",
    "numpy.fill_diagonal",
    "heapq.heap",
    "bisect.insort",
    *(f"operator.i{each}" for each in "add and concat floordiv matmul mod mul or pow sub truediv xor".split()),
    "cv2.rectangle",
    "cv2.circle",
    "cv2.line",
    "cv2.fill",
    "cv2.putText",
    "cv2.polylines",
    "cv2.ellipse",
)
"""Functions of libraries that change their first argument."""
_RESULT_AFTER = {
    **dict.fromkeys(
        "abs absolute ceil cos exp exp2 expm1 floor log log10 log1p log2 negative rint sign sin sqrt square tanh".split(), 1
    ),
    **dict.fromkeys(
        "add divide dot floor_divide fmax fmin logical_and logical_or matmul maximum minimum mod multiply power remainder "
        "subtract true_divide".split(),
        2,
    ),
    "clip": 3,
}
"""Functions of numpy's, and how many arguments stand before the array that takes the result."""
_CHANGES_ANYTHING = re.compile(r"exec$|unittest\.mock\.patch")
"""Functions that change what the strings say which they are given."""
_CHANGES_ROWS = re.compile(r"(?i)\s*(?:insert|update|delete|replace|create|drop|alter|with)\b")
"""How a statement of SQL begins that changes what a database holds (SQLite, "SQL As Understood By SQLite")."""
_PARTS = frozenset({"loc", "iloc", "at", "iat", "values", "flat", "T", "__dict__", "keywords"})
"""Attributes that stand for what they are an attribute of, where it is no object of the program's own."""
_CLASSES = re.compile(r"(?:object|dict|list|set|\w+\.ndarray)\.|\w+\.__(?:set|del)(?:attr|item)__")
"""Classes whose methods may be called with the object as first argument: ``dict.update(state, by=1)``."""
_OF_TENSORS = library.NUMBER_ATTRIBUTES | {"shape", "dtype", "device", "ndim", "size"}
_HANDS_OUT = frozenset(
    "enumerate zip items values keys reversed sorted list tuple iter next get getattr chain islice cycle asarray from_numpy "
    "as_tensor view reshape numpy detach squeeze unsqueeze flatten transpose permute to copy dict".split()
)
"""Functions and methods that give their argument, a part of it or what holds its parts."""
_WRITES = frozenset("tofile to_csv to_json to_parquet to_pickle save".split())
"""Methods that write a file whose path is their first argument."""
_CALLED_BY_PYTHON = frozenset(
    "__call__ forward __enter__ __exit__ __iter__ __next__ __getitem__ __len__ __setattr__ __setitem__ __del__".split()
)
_DEEPEST = 6
_DISPLAYS = (syntax.List, syntax.Dict, syntax.Set, syntax.ListComp, syntax.DictComp, syntax.SetComp)
_BEGIN = frozenset(
    "list dict set collections.defaultdict collections.OrderedDict collections.Counter collections.deque numpy.zeros "
    "numpy.ones numpy.empty numpy.full torch.zeros torch.ones torch.empty torch.full".split()
)
"""What makes a container or an array that nothing else holds."""
_DATASETS = ("torch.utils.data.", "torchvision.datasets.", "torchaudio.datasets.")
_MODULE = ("", 0)
Held = tuple[str, int, str]
"""What may hold an object: a variable, by its file, the row of its scope and its name; an attribute, by its name alone."""
_NOTHING_NEAR: dict[Held, set[Held]] = {}
ENVIRONMENT: Held = ("", -1, "environ")
"""The variables of the process's environment."""


def written(script: Script, body: syntax.Node) -> Iterator[tuple[syntax.BaseExpression, syntax.Node]]:
    """What code changes in place, and the node that does: entries and attributes that are set, methods that change their
    object, ``out=``. A variable that is only bound anew is not changed."""
    source = script.source
    declared = {each.name.value for node in source.inside(body, syntax.Global) for each in node.names}
    for target in source.inside(body, syntax.AssignTarget):
        yield from _set(target.target, target)
        if declared:
            names = (name for name in source.inside(target, syntax.Name) if name.value in declared)
            yield from ((name, target) for name in names if _is_global(script, name))
    for annotated in source.inside(body, syntax.AnnAssign):
        yield from _set(annotated.target, annotated)
    for augmented in source.inside(body, syntax.AugAssign):
        yield augmented.target, augmented
    for loop in source.inside(body, syntax.For):
        yield from _set(loop.target, loop)
    for deleted in source.inside(body, syntax.Del):
        yield from _set(deleted.target, deleted)
    for call in source.inside(body, syntax.Call):
        yield from _by_call(script, call)


@listed_once
def _written_in(script: Script) -> Iterator[tuple[syntax.BaseExpression, syntax.Node]]:
    """What the code of a file changes in place."""
    return written(script, script.source.module)


def _set(target: syntax.Node, node: syntax.Node) -> Iterator[tuple[syntax.BaseExpression, syntax.Node]]:
    if isinstance(target, (syntax.Tuple, syntax.List)):
        for element in target.elements:
            yield from _set(element.value, node)
    elif isinstance(target, (syntax.Attribute, syntax.Subscript)):
        yield target, node


def _is_global(script: Script, name: syntax.Name) -> bool:
    scope = script.names.scope(name)
    return scope.parent is not None and scope.lookup(name.value) is script.names.module


def _by_call(script: Script, call: syntax.Call) -> Iterator[tuple[syntax.BaseExpression, syntax.Node]]:
    func = call.func
    name = script.name(func)
    last = last_name(func) or ""
    changes_first = name is not None and (name.startswith(_IN_PLACE) or name.endswith((".at", "_")))
    taken_from = advanced(script, call)
    if taken_from is not None:
        yield taken_from, call
    changes_first = changes_first or (last in _CHANGES and _CLASSES.match(script.text(func)) is not None)
    if changes_first or last in ("setattr", "delattr", "setitem", "delitem"):
        for arg in call.args[:1]:
            held_in = arg.value.elements if isinstance(arg.value, (syntax.List, syntax.Tuple)) else ()
            yield from ((each.value, call) for each in held_in) if held_in else ((arg.value, call),)
    elif isinstance(func, syntax.Attribute) and (name is None or _is_of_variable(script, name)):
        method = func.attr.value
        is_of_some = any(method == each and script.program.mentions(script, mark) for each, mark in _OF_SOME)
        if method in _CHANGES or is_of_some or methods.works_in_place(method):
            yield func.value, call
        if method == "shuffle":
            yield from ((arg.value, call) for arg in call.args[:1])
    package, _, function = (name or "").rpartition(".")
    by_place = [arg.value for arg in call.args if arg.keyword is None]
    if package == "numpy" and function in _RESULT_AFTER and len(by_place) > _RESULT_AFTER[function]:
        yield by_place[_RESULT_AFTER[function]], call
    for arg in call.args:
        if arg.keyword is None:
            continue
        if is_name(arg.keyword, "out"):
            yield arg.value, call
        elif (arg.keyword.value == "inplace" and script.text(arg.value) == "True") or (
            arg.keyword.value == "copy" and name == "numpy.nan_to_num"
        ):
            if name is None and isinstance(func, syntax.Attribute):
                yield func.value, call
            else:
                yield from ((each.value, call) for each in call.args[:1] if each is not arg)


def _is_of_variable(script: Script, name: str) -> bool:
    """Whether a dotted name is a method of what a module of the program holds, or of the process's variables."""
    return name.startswith(("os.environ.", "sys.")) or script.program.module(script, name) is not None


def is_on_self(node: syntax.Node) -> bool:
    """Whether an expression is an attribute of ``self``, or a part of one."""
    while isinstance(node, (syntax.Attribute, syntax.Subscript)):
        if isinstance(node, syntax.Attribute) and is_name(node.value, "self"):
            return True
        node = node.value
    return False


def held(script: Script, node: syntax.Node) -> Held | None:
    """What a name or attribute is; None for anything else."""
    if isinstance(node, syntax.Attribute) and script.name(node) == "os.environ":
        return ENVIRONMENT
    if isinstance(node, syntax.Attribute):
        if node.attr.value in _OF_TENSORS and script.value(node.value).definition is None:
            return None
        dotted = script.names.dotted(node)
        is_of_module = dotted is not None and script.imported_binding(dotted)[0] is not None
        return ("", 0 if is_of_module else -1, node.attr.value)
    if not isinstance(node, syntax.Name) or node.value == "_":
        return None
    if script.name(node) == "os.environ":
        return ENVIRONMENT
    scope = script.names.scope(node).lookup(node.value)
    if scope is None:
        return None
    return ("", 0, node.value) if scope.parent is None else (str(script.key), scope.node.row, node.value)


def changed(
    script: Script,
    read: set[Held],
    plain: set[Held],
    classes: set[syntax.Node],
    own: set[syntax.Node],
    made: syntax.Node,
    *,
    is_anew: bool,
) -> str | None:
    """The code that may change, while training runs, what is ``read``, or an attribute of an object of some classes;
    ``made`` is where it is complete. ``plain`` is what holds numbers, ``own`` are functions that are looked at for
    themselves. ``is_anew`` where modules may be imported anew, as spawned workers do: they see nothing that functions have
    changed in them before."""
    same, ways = shared_with(script, read) | plain, list(ways_to(script, made))
    for other in script.everywhere():
        for base, node in _written_in(other):
            found = {each for each in _changed_by(other, base, node, classes) if each is not None and each in same}
            if _sets_any_global(other, base, node):
                found |= {each for each in same if each[:2] == _MODULE}
            is_read = bool(found) and not _is_bound_anew(other, base, node)
            if other.function(node) in own or not (is_read or _is_of_dataset(other, base, node, same, classes)):
                continue
            if _is_of_this_call(other, base, node, ways):
                continue
            is_lost = is_anew and any(each[:2] == _MODULE for each in found) and not is_at_the_top(other, node)
            if is_lost or is_late(other, node, ways):
                return " ".join(other.text(base).split())
        for call in _changing_anything(other):
            if is_late(other, call, ways):
                return other.text(call)
        for trained in _trained(other):
            if held(other, trained) in same:
                return other.text(trained)
    return _rewritten(script, read | plain, own) if is_anew else None


def _is_of_this_call(
    script: Script, base: syntax.BaseExpression, node: syntax.Node, made: list[tuple[Script, syntax.Node]]
) -> bool:
    """Whether what is changed is a container that the function around has begun itself, in the same call, as a helper does
    that reads each of several files: it is no part of what was made before, unless it is made in this function."""
    is_set = isinstance(base, syntax.Subscript) and isinstance(node, (syntax.AssignTarget, syntax.Del))
    container = base.value if is_set and isinstance(base, syntax.Subscript) else base
    function = script.function(base)
    if not isinstance(container, syntax.Name) or function is None:
        return False
    if any(other is script and script.function(each) is function for other, each in made):
        return False
    if not _are_all_ways(made):
        return False
    if function.asynchronous or any(True for _ in script.source.inside(function, syntax.Yield)):
        return False
    scope = script.names.scope(container)
    bound = scope.bindings.get(container.value, [])
    return bool(bound) and scope.lookup(container.value) is scope and all(_begins(script, each) for each in bound)


def _are_all_ways(made: list[tuple[Script, syntax.Node]]) -> bool:
    """Whether all is in sight that runs while an object is made: each function around that has calls which are among the
    ways, up to the top of a module."""
    for script, node in made:
        function = script.function(node)
        sites = script.call_sites(function) if function is not None else []
        if function is not None and not sites:
            return False
        if not all(any(call is each for _, each in made) for _, call in sites):
            return False
    return True


def _begins(script: Script, binding: Binding) -> bool:
    """Whether a binding begins a container, or adds to one."""
    if binding.kind is Kind.AUGMENT:
        return True
    value = binding.value if binding.kind is Kind.ASSIGN and not binding.path else None
    return isinstance(value, _DISPLAYS) or (isinstance(value, syntax.Call) and script.name(value.func) in _BEGIN)


def _rewritten(script: Script, read: set[Held], own: set[syntax.Node]) -> str | None:
    """The path, one of those that are ``read`` or that ``own`` code spells, of a file that the training writes in a step, or
    what it asks a database to change there, where ``own`` code asks one."""
    if (asked := _written_to_database(script, own)) is not None:
        return asked
    found = [
        (other, path)
        for other in script.everywhere()
        for call, path in _paths_written(other)
        if other.frequency(call) in (Frequency.STEP, Frequency.THROTTLED)
    ]
    same = shared_with(script, read) if found else set()
    spelled = {
        each.evaluated_value
        for other in (script.everywhere() if found else ())
        for each in other.source.of(syntax.SimpleString)
        if other.function(each) in own
    }
    for other, path in found:
        known = other.constant(path)
        if known is not None and known.value in spelled:
            return f"the file {other.text(path)}"
        for kind in (syntax.Name, syntax.Attribute):
            if any(held(other, node) in same for node in (path, *other.source.inside(path, kind)) if isinstance(node, kind)):
                return f"the file {other.text(path)}"
    return None


def _written_to_database(script: Script, own: set[syntax.Node]) -> str | None:
    """The call by which the training changes a database in a step, where ``own`` code reads one."""
    asked = [
        (other, call)
        for other in script.everywhere(b"execute")
        for call in other.method_calls("execute", "executemany", "executescript")
    ]
    if not any(other.function(call) in own for other, call in asked):
        return None
    for other, call in asked:
        known = other.constant(call.args[0].value) if call.args else None
        changes = known is None or _CHANGES_ROWS.match(str(known.value)) is not None
        if changes and other.function(call) not in own and other.frequency(call) in (Frequency.STEP, Frequency.THROTTLED):
            return other.text(call)
    return None


@listed_once
def _paths_written(script: Script) -> Iterator[tuple[syntax.Call, syntax.BaseExpression]]:
    """The calls of a file that write another, with the path of that."""
    written = ((call, written_path(script, call)) for call in script.source.of(syntax.Call))
    return ((call, path) for call, path in written if path is not None)


def written_path(script: Script, call: syntax.Call) -> syntax.BaseExpression | None:
    """The path of the file that a call writes."""
    name = script.name(call.func)
    if name in ("torch.save", "numpy.save", "numpy.savez"):
        return script.argument(call, "f" if name == "torch.save" else "file", int(name == "torch.save"))
    if name in ("numpy.savetxt", "cv2.imwrite", "soundfile.write") or (name is None and last_name(call.func) in _WRITES):
        return call.args[0].value if call.args else None
    if name in ("os.replace", "os.rename", "shutil.copy", "shutil.copyfile", "shutil.move") and len(call.args) > 1:
        return call.args[1].value
    if name == "open" and len(call.args) > 1:
        mode = script.constant(call.args[1].value)
        return call.args[0].value if mode is not None and set(str(mode.value)) & set("wxa+") else None
    if name is None and isinstance(call.func, syntax.Attribute) and call.func.attr.value in ("write_text", "write_bytes"):
        return call.func.value
    return None


def _is_of_dataset(
    script: Script, base: syntax.BaseExpression, node: syntax.Node, same: set[Held], classes: set[syntax.Node]
) -> bool:
    """Whether an attribute of a dataset of a library's, ``subset.indices``, is changed, or one whose name is computed, or is
    a string."""
    if isinstance(node, syntax.Call) and last_name(node.func) in ("setattr", "delattr"):
        definition = script.value(base).definition
        if definition is not None:
            return any(each.node in classes for each in script.roles.calls.lineage(definition))
        named = script.constant(node.args[1].value) if len(node.args) > 1 else None
        return _is_dataset(script, base) or (named is not None and any(("", of, named.value) in same for of in (-1, 0)))
    while isinstance(base, (syntax.Attribute, syntax.Subscript)):
        if isinstance(base, syntax.Attribute) and _is_dataset(script, base.value):
            return True
        base = base.value
    return False


def _sets_any_global(script: Script, base: syntax.BaseExpression, node: syntax.Node) -> bool:
    """Whether variables of a module are set by names that are computed: ``globals().update(stage)``, ``setattr(settings,
    key, value)``."""
    key: syntax.BaseExpression | None = None
    is_by_name = False
    if isinstance(node, syntax.Call) and last_name(node.func) in ("setattr", "delattr") and len(node.args) > 1:
        is_by_name, key = True, node.args[1].value
    elif isinstance(base, syntax.Subscript):
        index = base.slice[0].slice
        base, key = base.value, index.value if isinstance(index, syntax.Index) else None
    if key is not None and script.constant(key) is not None:
        return False
    match base:
        case syntax.Call(func=syntax.Name("globals" | "vars" | "locals"), args=[]):
            return True
        case syntax.Call(func=syntax.Name("vars"), args=[syntax.Arg(value=holder)]):
            return _is_module(script, holder)
        case syntax.Attribute(value=holder, attr=syntax.Name("__dict__")):
            return _is_module(script, holder)
    return is_by_name and _is_module(script, base)


def _is_module(script: Script, node: syntax.BaseExpression) -> bool:
    """Whether an expression is a module of the program: ``settings``, ``sys.modules[__name__]``, or a variable of these."""
    dotted = script.names.dotted(node)
    if dotted is not None and script.program.module(script, dotted) is not None:
        return True
    return any(
        (isinstance(each, syntax.Subscript) and place.name(each.value) == "sys.modules")
        or (isinstance(each, syntax.Call) and place.is_call_to(each, "importlib.import_module", "__import__"))
        for place, each in ((script, node), *script.roles.origins(node))
    )


def _is_dataset(script: Script, node: syntax.BaseExpression) -> bool:
    """Whether an expression is certainly a dataset, and none of a first-party class."""
    if script.value(node).definition is not None:
        return False
    if isinstance(node, syntax.Attribute) and node.attr.value == "dataset":
        return True
    made = list(script.roles.origins(node))
    names = [(other.name(each.func) or "") if isinstance(each, syntax.Call) else "" for other, each in made]
    return bool(names) and all(name.startswith(_DATASETS) and not name.endswith("Sampler") for name in names)


@listed_once
def _changing_anything(script: Script) -> Iterator[syntax.Call]:
    """The calls of a file that change what strings say."""
    return (call for call in script.source.of(syntax.Call) if _CHANGES_ANYTHING.match(script.name(call.func) or ""))


@listed_once
def _trained(script: Script) -> Iterator[syntax.BaseExpression]:
    """The tensors that optimizers are handed, and so change in place."""
    for call in script.source.of(syntax.Call):
        if (script.name(call.func) or "").startswith("torch.optim.") and call.args:
            given = call.args[0].value
            for kind in (syntax.Name, syntax.Attribute):
                for node in script.source.inside(given, kind):
                    if script.role(node) is Role.TENSOR:
                        yield node


def _changed_by(
    script: Script, base: syntax.BaseExpression, node: syntax.Node, classes: set[syntax.Node]
) -> Iterator[Held | None]:
    """What may hold the object that is changed; nothing for a part of a network, of what trains it, or of an object of
    others."""
    is_entry = isinstance(base, syntax.Subscript)
    match base:
        case syntax.Subscript(
            value=syntax.Call(func=syntax.Name("globals" | "vars"), args=args),
            slice=[syntax.SubscriptElement(slice=syntax.Index(value=key))],
        ):
            named = script.constant(key)
            if named is not None and isinstance(named.value, str):
                yield ("", -1 if args else 0, named.value)
    while True:
        match base:
            case syntax.Subscript(value=value):
                base = value
            case syntax.Call(func=syntax.Name("vars"), args=[given]):
                base = given.value
            case syntax.Call(func=syntax.Attribute(value=value, attr=syntax.Name(method))) if method in _HANDS_OUT:
                base = base.args[0].value if script.name(base.func) is not None and base.args else value
            case syntax.Attribute(value=value, attr=syntax.Name(part)) if part in _PARTS:
                yield held(script, base)
                base = value
            case _:
                break
    if isinstance(base, syntax.Attribute):
        of = script.value(base.value)
        is_of_tensor = base.attr.value in ("data", "grad") and of.definition is None and not is_entry
        if of.role in _OF_TRAINING or is_of_tensor:
            return
        is_set = isinstance(node, syntax.AssignTarget) and not is_entry
        if is_set and of.definition is not None and isinstance(of.definition.node, syntax.ClassDef):
            lineage = script.roles.calls.lineage(of.definition)
            if not any(each.node in classes for each in lineage):
                return
    elif script.role(base) in _OF_TRAINING:
        return
    yield held(script, base)


def _is_bound_anew(script: Script, base: syntax.BaseExpression, node: syntax.Node) -> bool:
    """Whether ``+=`` only binds a variable anew: it is a number or string."""
    return (
        isinstance(node, syntax.AugAssign)
        and isinstance(base, syntax.Name)
        and script.names.scope(base).lookup(base.value) is not script.names.module
        and script.role(base) in (Role.NUMBER, Role.STRING)
    )


def is_at_the_top(script: Script, node: syntax.Node) -> bool:
    """Whether importing the file runs a node: no function stands around it, and no ``__main__`` guard."""
    return script.function(node) is None and not any(
        isinstance(up, syntax.If) and "__name__" in script.text(up.test) for up in script.source.ancestors(node)
    )


def ways_to(script: Script, made: syntax.Node, depth: int = 0) -> Iterator[tuple[Script, syntax.Node]]:
    """Where an object is made: its expression, the calls of the function that this stands in, and so on."""
    yield script, made
    function = script.function(made)
    if function is not None and depth < _DEEPEST:
        for other, call in script.call_sites(function):
            yield from ways_to(other, call, depth + 1)


def is_late(script: Script, node: syntax.Node, made: list[tuple[Script, syntax.Node]], depth: int = 0) -> bool:
    """Whether code may run after an object is complete, which is ``made`` in some places."""
    function = script.function(node)
    is_making = function is not None and function.name.value in ("__init__", "__post_init__", "__new__")
    if is_making and isinstance(node, syntax.AssignTarget) and is_on_self(node.target):
        return False
    if script.frequency(node) >= Frequency.EPOCH:
        return True
    beside = [each for other, each in made if other is script and script.function(each) is function]
    if beside:
        return any(script.order.may_run_before(each, node) for each in beside)
    if function is None or is_making:
        return False
    sites = script.call_sites(function)
    if not sites:
        return function.name.value in _CALLED_BY_PYTHON or _is_spoken_of(script, function)
    return depth > _DEEPEST or any(is_late(other, call, made, depth + 1) for other, call in sites)


def _is_spoken_of(script: Script, function: syntax.FunctionDef) -> bool:
    """Whether anything in the programs has the name of a function that no call is seen of, or has it as a text."""
    name = function.name.value
    return any(
        any(not isinstance(other.source.parents[found], syntax.FunctionDef) for found in other.source.tree.named((name,)))
        or any(text.evaluated_value == name for text in other.source.of(syntax.SimpleString))
        for other in script.everywhere(name.encode())
    )


def shared_with(script: Script, names: set[Held]) -> set[Held]:
    """What is ``names``, and what may hold the same objects."""
    near = _near(script)
    found, todo = set(names), list(names)
    while todo:
        for name in near.get(todo.pop(), ()):
            if name not in found:
                found.add(name)
                todo.append(name)
    return found


@once(_NOTHING_NEAR)
def _near(script: Script) -> dict[Held, set[Held]]:
    """For all that holds something in the programs of a script, what may hold the same object by one step."""
    near: dict[Held, set[Held]] = {}
    parameters: dict[str, list[list[Held]]] = {}
    for other in script.everywhere():
        for function in other.source.of(syntax.FunctionDef):
            owner = other.names.owner(function)
            called = owner.name.value if owner is not None and function.name.value == "__init__" else function.name.value
            own = [(str(other.key), function.row, each.name.value) for each in function.params.params]
            parameters.setdefault(called, []).append(own[1:] if own and own[0][2] in ("self", "cls") else own)
    results: dict[str, list[Held]] = {}
    for other in script.everywhere():
        for statement in other.source.of(syntax.Return):
            returning = other.function(statement)
            if statement.value is not None and returning is not None:
                results.setdefault(returning.name.value, []).extend(_sources(other, statement.value, {}))
    for other in script.everywhere():
        for one, two in (*_given(other, results), *_handed(other, parameters)):
            near.setdefault(one, set()).add(two)
            near.setdefault(two, set()).add(one)
    return near


def _given(script: Script, results: dict[str, list[Held]]) -> Iterator[tuple[Held, Held]]:
    """The variables and attributes of a file that are given what others hold."""
    for bindings in list(script.names.all_bindings()):
        for binding in bindings:
            if binding.value is not None and isinstance(binding.node, syntax.Name) and not _is_of_batch(script, binding):
                yield from _pairs(script, binding.node, binding.value, results)
    for assign in script.source.of(syntax.Assign):
        for target in assign.targets:
            if isinstance(target.target, syntax.Attribute):
                yield from _pairs(script, target.target, assign.value, results)


def _is_of_batch(script: Script, binding: Binding) -> bool:
    """Whether a loop takes a variable out of a loader, whose batches are copies."""
    loop = script.source.enclosing(binding.node, syntax.For) if binding.kind is Kind.FOR else None
    return isinstance(loop, syntax.For) and loop.iter is binding.value and script.loops.iterates_loader(loop)


def _pairs(
    script: Script, target: syntax.Node, value: syntax.Node, results: dict[str, list[Held]]
) -> Iterator[tuple[Held, Held]]:
    one = held(script, target)
    if one is not None:
        yield from ((one, two) for two in _sources(script, value, results))


def _sources(script: Script, value: syntax.Node, results: dict[str, list[Held]]) -> Iterator[Held]:
    """What may hold the object that an expression gives, or one that this is a part of."""
    match value:
        case syntax.Name() | syntax.Attribute():
            found = held(script, value)
            if found is not None:
                yield found
        case syntax.Subscript(value=inner) | syntax.NamedExpr(value=inner) | syntax.StarredElement(value=inner):
            yield from _sources(script, inner, results)
        case syntax.IfExp(body=body, orelse=orelse):
            yield from (*_sources(script, body, results), *_sources(script, orelse, results))
        case syntax.BooleanOperation(left=left, right=right):
            yield from (*_sources(script, left, results), *_sources(script, right, results))
        case syntax.Tuple(elements=elements) | syntax.List(elements=elements):
            for element in elements:
                yield from _sources(script, element.value, results)
        case syntax.Call(func=func, args=args):
            last = last_name(func) or ""
            yield from results.get(last, ())
            if last in _HANDS_OUT:
                if isinstance(func, syntax.Attribute):
                    yield from _sources(script, func.value, results)
                for arg in args:
                    yield from _sources(script, arg.value, results)


def _handed(script: Script, parameters: dict[str, list[list[Held]]]) -> Iterator[tuple[Held, Held]]:
    """The parameters of functions that have the name which is called, and what is passed for them."""
    for call in script.source.of(syntax.Call):
        for params in parameters.get(last_name(call.func) or "", ()):
            for position, arg in enumerate(call.args):
                given = held(script, arg.value)
                if given is not None and arg.keyword is not None:
                    yield from ((param, given) for param in params if param[2] == arg.keyword.value)
                elif given is not None and position < len(params):
                    yield params[position], given
