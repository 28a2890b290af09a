"""Where an object goes: from the call that makes it through variables, attributes, containers, parameters and returns.

The forward counterpart of ``Roles.origins``. Each use says whether it may run several times for one object, which is what
tells a loader that is read once from one that is read again each epoch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from speedlint.facts import syntax
from speedlint.solve.names import Kind
from speedlint.solve.terms import Definition
from speedlint.solve.unpacking import key_of
from speedlint.torch import library
from speedlint.torch.methods import MOVES
from speedlint.torch.words import Frequency, Role

if TYPE_CHECKING:
    from speedlint.ask.script import Script

_SEE_THROUGH = library.WRAPPERS_OF_ITERABLES - {"iter", "sorted", "itertools.cycle"}
_PREPARES = frozenset({"prepare", "setup_dataloaders", "prepare_data_loader"})
_MOST_USES = 400


class Use(NamedTuple):
    """One place where the object is written, seen through wrappers such as ``tqdm(...)``.

    Attributes:
        node: the expression whose value is the object.
        repeated: whether it may be evaluated several times for one object.
    """

    script: Script
    node: syntax.Node
    repeated: bool


class Reached(NamedTuple):
    """Where an object goes.

    Attributes:
        uses: the places it is seen to reach, in the order of the flow.
        is_lost: whether it may also go where no use is seen: other files read a module's names, containers are passed on.
    """

    uses: list[Use]
    is_lost: bool


def uses(script: Script, made: syntax.Node) -> list[Use]:
    """The places the object made by ``made``, an expression, is seen to reach, in the order of the flow."""
    return reached(script, made).uses


def reached(script: Script, made: syntax.Node) -> Reached:
    """Where the object made by ``made`` goes."""
    flow = _Flow()
    flow.follow(script, made, repeated=False)
    return Reached(flow.found, flow.is_lost)


class _Flow:
    def __init__(self) -> None:
        self.found: list[Use] = []
        self.is_lost = False
        self._seen: set[tuple[int, bool, tuple[object, ...]]] = set()

    def follow(self, script: Script, node: syntax.Node, *, repeated: bool, path: tuple[object, ...] = ()) -> None:
        """Follows an expression whose value is the object, or holds it under ``path`` (indices and keys)."""
        if (id(node), repeated, path) in self._seen:
            return
        if len(self._seen) > _MOST_USES:
            self.is_lost = True
            return
        self._seen.add((id(node), repeated, path))
        parent = script.source.parents[node]
        if not path:
            self.found.append(Use(script, node, repeated))
        match parent:
            case syntax.Assign(targets=targets, value=value) if value is node:
                for target in targets:
                    self._bind(script, target.target, repeated, path)
            case syntax.AnnAssign(target=target, value=value) if value is node:
                self._bind(script, target, repeated, path)
            case syntax.NamedExpr(target=target, value=value) if value is node:
                self._bind(script, target, repeated, path)
                self.follow(script, parent, repeated=repeated, path=path)
            case syntax.IfExp(test=test) if test is not node:
                self.follow(script, parent, repeated=repeated, path=path)
            case syntax.Element():
                holder = script.source.parents[parent]
                if isinstance(holder, (syntax.Tuple, syntax.List)):
                    self.follow(script, holder, repeated=repeated, path=(holder.elements.index(parent), *path))
            case syntax.DictElement(key=syntax.SimpleString() as key, value=value) if value is node:
                self.follow(script, script.source.parents[parent], repeated=repeated, path=(str(key.evaluated_value), *path))
            case syntax.DictElement(value=value) | syntax.DictComp(value=value) if value is node:
                holder = parent if isinstance(parent, syntax.DictComp) else script.source.parents[parent]
                self.follow(script, holder, repeated=repeated, path=(None, *path))
            case syntax.ListComp(elt=element) if element is node:
                self.follow(script, parent, repeated=repeated, path=(None, *path))
            case syntax.Return():
                self._returned(script, parent, repeated, path)
            case syntax.Arg():
                self._passed(script, parent, repeated, path)
            case syntax.For(iter=iterated) | syntax.CompFor(iter=iterated) if iterated is node and path:
                self._bind(script, parent.target, repeated, path[1:])
            case syntax.Subscript(value=value) if value is node and path:
                self._taken(script, parent, repeated, path)
            case syntax.Attribute(value=value) if value is node and path:
                self._items(script, parent, repeated, path)
            case _ if path and not isinstance(parent, syntax.Expr):
                self.is_lost = True

    # Variables

    def _bind(self, script: Script, target: syntax.Node, repeated: bool, path: tuple[object, ...]) -> None:
        if isinstance(target, syntax.Name):
            self._name(script, target, repeated, path)
        elif isinstance(target, syntax.Attribute):
            self._attribute(script, target, repeated, path)
        elif isinstance(target, (syntax.Tuple, syntax.List)) and path:
            for index, element in enumerate(target.elements):
                if path[0] in (None, index):
                    self._bind(script, element.value, repeated, path[1:])
        elif isinstance(target, syntax.Subscript) and isinstance(target.value, syntax.Name):
            self._name(script, target.value, repeated, (key_of(target), *path))
        elif isinstance(target, syntax.Subscript) and isinstance(target.value, syntax.Attribute):
            self._attribute(script, target.value, repeated, (key_of(target), *path))
        else:
            self.is_lost = True

    def _name(self, script: Script, target: syntax.Name, repeated: bool, path: tuple[object, ...]) -> None:
        scope = script.names.scope(target)
        owner = scope.lookup(target.value)
        bound = {binding.node for binding in owner.bindings.get(target.value, [])} if owner is not None else set()
        for use in script.names.uses(target):
            if use not in bound and self._reaches(script, target, use):
                again = self._runs_again(script, use, target)
                self.follow(script, use, repeated=repeated or again, path=path)
        if scope is script.names.module and not self._is_bound_anew(script, target):
            self.is_lost = True
            self._imported(script, target, repeated, path)

    @staticmethod
    def _is_bound_anew(script: Script, target: syntax.Name) -> bool:
        """Whether the top of a module binds its name again further down: whoever imports it gets that."""
        source = script.source
        others = (each.node for each in script.names.module.bindings.get(target.value, ()) if each.kind is Kind.ASSIGN)
        return any(
            source.order[other] > source.order[target]
            and source.parents[source.statement(other)] is source.module is source.parents[source.statement(target)]
            for other in others
        )

    @staticmethod
    def _reaches(script: Script, target: syntax.Name, use: syntax.Name) -> bool:
        found = script.names.reaching(use)
        return any(binding.node is target for binding in found) or (
            isinstance(script.source.parents[target], syntax.Subscript) and not _is_target(script, use)
        )

    def _imported(self, script: Script, target: syntax.Name, repeated: bool, path: tuple[object, ...]) -> None:
        for other in script.program.importers(script):
            for name, dotted in other.names.imports:
                if dotted.endswith(target.value):
                    reached, _ = other.imported_binding(dotted)
                    if reached is not None and reached.node is target:
                        self._imported_uses(other, name, repeated, path)

    def _imported_uses(self, script: Script, name: str, repeated: bool, path: tuple[object, ...]) -> None:
        for use in script.source.of(syntax.Name):
            if use.value == name and any(b.kind is Kind.IMPORT for b in script.names.reaching(use)):
                again = script.frequency(use) >= Frequency.EPOCH
                self.follow(script, use, repeated=repeated or again, path=path)

    def _attribute(self, script: Script, target: syntax.Attribute, repeated: bool, path: tuple[object, ...]) -> None:
        owner = script.value(target.value).definition
        if owner is None or not isinstance(owner.node, syntax.ClassDef):
            self.is_lost = True
            return
        places = {other.path: other for other in (owner.script, script, *owner.script.program.importers(owner.script))}
        for place in places.values():
            for use in place.source.of(syntax.Attribute):
                if use.attr.value != target.attr.value or use is target or _is_target(place, use):
                    continue
                if _is_of(place, use, owner):
                    again = place is not script or self._runs_again(script, use, target)
                    again = again and place.frequency(use) >= Frequency.EPOCH
                    self.follow(place, use, repeated=repeated or again, path=path)

    def _runs_again(self, script: Script, use: syntax.Node, binding: syntax.Node) -> bool:
        """Whether the use may run several times for one run of the binding."""
        source = script.source
        if source.enclosing(use, syntax.FunctionDef) is not source.enclosing(binding, syntax.FunctionDef):
            return script.frequency(use) >= Frequency.EPOCH
        child = use
        for up in source.ancestors(use):
            if isinstance(up, syntax.FunctionDef) or source.contains(up, binding):
                return False
            if isinstance(up, (syntax.For, syntax.While)) and child is up.body:
                return True
            child = up
        return False

    # Containers

    def _taken(self, script: Script, taken: syntax.Subscript, repeated: bool, path: tuple[object, ...]) -> None:
        key = key_of(taken)
        if _is_target(script, taken):
            return
        if key is None or path[0] is None or key == path[0]:
            self.follow(script, taken, repeated=repeated, path=path[1:])

    def _items(self, script: Script, attribute: syntax.Attribute, repeated: bool, path: tuple[object, ...]) -> None:
        call = script.source.parents[attribute]
        if not isinstance(call, syntax.Call) or call.func is not attribute:
            self.is_lost = True
        elif attribute.attr.value == "items":
            self.follow(script, call, repeated=repeated, path=(None, 1, *path[1:]))
        elif attribute.attr.value == "values":
            self.follow(script, call, repeated=repeated, path=(None, *path[1:]))
        elif attribute.attr.value == "get":
            self.follow(script, call, repeated=repeated, path=path[1:])
        else:
            self.is_lost = True

    # Calls

    def _returned(self, script: Script, node: syntax.Node, repeated: bool, path: tuple[object, ...]) -> None:
        function = script.function(node)
        sites = script.call_sites(function) if function is not None else []
        self.is_lost |= not sites
        for other, call in sites:
            self.follow(other, call, repeated=repeated, path=path)

    def _passed(self, script: Script, arg: syntax.Arg, repeated: bool, path: tuple[object, ...]) -> None:
        call = script.source.parents[arg]
        if not isinstance(call, syntax.Call) or arg.star:
            self.is_lost = True
            return
        name = script.name(call.func)
        method = call.func.attr.value if isinstance(call.func, syntax.Attribute) else ""
        if name in _SEE_THROUGH:
            self.follow(script, call, repeated=repeated, path=path)
        elif name in ("enumerate", "zip"):
            index = 1 if name == "enumerate" else call.args.index(arg)
            self.follow(script, call, repeated=repeated, path=(None, index, *path[1:]) if path else ())
        elif name == "dict" and arg.keyword is not None:
            self.follow(script, call, repeated=repeated, path=(arg.keyword.value, *path))
        elif method in _PREPARES and script.callee(call) is None:
            self.follow(script, call, repeated=repeated, path=(call.args.index(arg), *path) if len(call.args) > 1 else path)
        elif method == "append" and isinstance(call.func, syntax.Attribute) and isinstance(call.func.value, syntax.Name):
            self._bind(script, call.func.value, repeated, (None, *path))
        else:
            self._into(script, call, arg, repeated, path)

    def _into(self, script: Script, call: syntax.Call, arg: syntax.Arg, repeated: bool, path: tuple[object, ...]) -> None:
        callee = script.callee(call)
        if script.name(call.func) in library.SPAWNERS:
            callee, parameter = _in_process(script, call, arg, path)
            path = path[1:]
        else:
            parameter = None if callee is None else parameter_of(script, callee, call, arg)
        if callee is None or parameter is None:
            self.is_lost |= bool(path)
            return
        other = callee.script
        for use in other.names.uses(parameter):
            if any(binding.node is parameter for binding in other.names.reaching(use)):
                again = self._runs_again(other, use, parameter)
                self.follow(other, use, repeated=repeated or again, path=path)


def _in_process(
    script: Script, call: syntax.Call, arg: syntax.Arg, path: tuple[object, ...]
) -> tuple[Definition | None, syntax.Param | None]:
    """The function that another process is to run, and its parameter that an element of ``args=`` is bound to."""
    spawns = (script.name(call.func) or "").endswith(".spawn")
    target = script.argument(call, "fn" if spawns else "target", 0 if spawns else None)
    callee = script.definition(target) if target is not None else None
    if callee is None or not isinstance(callee.node, syntax.FunctionDef) or not path or not isinstance(path[0], int):
        return None, None
    at = path[0] + spawns
    params = callee.node.params.params
    named = script.argument(call, "args", 1 if spawns else None) is arg.value
    return callee, params[at] if named and at < len(params) else None


def parameter_of(script: Script, callee: Definition, call: syntax.Call, arg: syntax.Arg) -> syntax.Param | None:
    """The parameter of a first-party function that an argument of one of a script's calls is bound to."""
    if not isinstance(callee.node, syntax.FunctionDef):
        return None
    params = [*callee.node.params.posonly_params, *callee.node.params.params]
    if arg.keyword is not None:
        named = [*params, *callee.node.params.kwonly_params]
        return next((param for param in named if param.name.value == arg.keyword.value), None)
    position = call.args.index(arg)
    if any(before.star for before in call.args[:position]):
        return None
    position += callee.script.values.bound_first(callee.node, script, call)
    return params[position] if position < len(params) else None


def parameters(script: Script, expression: syntax.Node) -> list[syntax.Param]:
    """The parameters that an expression stands for, if it may be nothing else: by another name too, moved at most, or by
    either branch of a condition. Nothing is seen through that wraps or changes what is handed in."""
    found: dict[syntax.Param, None] = {}
    todo, seen = [expression], {expression}

    def follow(each: syntax.Node | None) -> bool:
        if each is not None and each not in seen:
            seen.add(each)
            todo.append(each)
        return each is not None

    while todo:
        match todo.pop():
            case syntax.Call(func=syntax.Attribute(value=moved, attr=syntax.Name(value=method))) if method in MOVES:
                follow(moved)
            case syntax.IfExp(body=body, orelse=orelse):
                follow(body)
                follow(orelse)
            case syntax.Name() as name if bindings := script.names.reaching(name):
                for each in bindings:
                    if each.kind is Kind.PARAMETER and isinstance(each.node, syntax.Param):
                        found[each.node] = None
                    elif each.kind is not Kind.ASSIGN or each.path or not follow(each.value):
                        return []
            case _:
                return []
    return list(found)


def _is_target(script: Script, node: syntax.Node) -> bool:
    parent = script.source.parents[node]
    return isinstance(parent, (syntax.AssignTarget, syntax.AugAssign)) and getattr(parent, "target", None) is node


def _is_of(script: Script, attribute: syntax.Attribute, owner: Definition) -> bool:
    """Whether the attribute is one of an instance of ``owner``, or of a class derived from it."""
    value = script.value(attribute.value)
    if value.definition is None or value.role in (Role.FUNCTION,):
        return False
    return any(up.node is owner.node for up in script.roles.calls.lineage(value.definition))
