"""What an expression's value is: module, optimizer, loader, batch, device tensor, plain number; by flow, not by name.

Values flow through assignments, unpacking, attributes on ``self``, parameters bound at call sites, and returns. Where the
flow is out of sight (a parameter nobody visible passes), how the name is used decides: ``x.backward()`` makes ``x`` a
tensor, ``x.zero_grad()`` with ``x.step()`` an optimizer. A name alone is never evidence.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from speedlint.facts import syntax
from speedlint.solve import heirs
from speedlint.solve.calls import SAME_MODULE, Calls
from speedlint.solve.flow import once
from speedlint.solve.names import Binding, Kind, ending
from speedlint.solve.terms import (
    ARRAY,
    CONFLICT,
    NONE,
    NUMBER,
    STRING,
    TENSOR,
    UNKNOWN,
    Definition,
    Made,
    Value,
    at,
    bounded,
    join,
    join_places,
)
from speedlint.solve.unpacking import Path, all_written, key_of, part, written
from speedlint.solve.values import is_class_method, is_property, mapped, needs_no_object, returned
from speedlint.source import is_name, is_none
from speedlint.torch import distributions, library
from speedlint.torch.methods import MOVES
from speedlint.torch.words import Place, Role

if TYPE_CHECKING:
    from speedlint.ask.script import Script

_NO_TENSORS = (Role.STRING, Role.NONE)
_ANNOTATED = {
    "torch.Tensor": TENSOR,
    "torch.nn.Module": Value(Role.MODULE),
    "torch.optim.Optimizer": Value(Role.OPTIMIZER),
    "torch.optim.optimizer.Optimizer": Value(Role.OPTIMIZER),
    "torch.utils.data.DataLoader": Value(Role.LOADER),
    "torch.device": Value(Role.DEVICE),
    "int": NUMBER,
    "float": NUMBER,
    "bool": NUMBER,
    "str": STRING,
    "numpy.ndarray": ARRAY,
}
_LITERALS = (syntax.BaseNumber, syntax.SimpleString, syntax.FormattedString)
_OF_OWN_CLASSES = (Role.INSTANCE, Role.MODULE, Role.DATASET, Role.LOADER, Role.SAMPLER, Role.CLASS)
"""What an object of a first-party class may be, or the class."""
_WRITTEN_NUMBER = NUMBER._replace(literal=True)
_NAMED = {"None": NONE, "True": _WRITTEN_NUMBER, "False": _WRITTEN_NUMBER}
_MODULE_USES = frozenset({"parameters", "named_parameters", "modules", "named_modules", "children"})
_HOLDERS = ("torch.nn.ModuleList", "torch.nn.Sequential")
_MODULE_HINTS = frozenset({"train", "eval"})
_COLLATE_FN = 6
"""Where a ``DataLoader`` takes its ``collate_fn`` by position."""
_HOST_BATCH = Value(Role.BATCH, Place.HOST, assumed=True)
_GRAPH = Value(Role.BATCH, Place.HOST)
_OF_TENSORS = frozenset("T H mT mH data dtype device grad real imag".split())
"""What a tensor holds beside numbers."""
_CASTS = frozenset({"float", "double", "long", "int", "contiguous", "requires_grad_"})
_DEEPEST_DEVICE = 4
_MANY_PARTS = 64
"""Parts of a sequence or a mapping from which on it is worth it to remember that all have been looked at."""
_MOST_ORIGINS = 100


def _is_conjunct(script: Script, part: syntax.Node, branch: syntax.If) -> bool:
    """Whether a part of a condition holds wherever the branch is taken."""
    up = script.source.parents[part]
    while isinstance(up, syntax.BooleanOperation) and isinstance(up.operator, syntax.And):
        up = script.source.parents[up]
    return up is branch


class Roles:
    """Answers for one script; values of other scripts are asked from theirs."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.calls = Calls(script, self)
        self._of_many_parts: dict[int, tuple[Value, Value | None]] = {}
        """Values of many parts, by identity, which holds while they are kept here, and what ``bounded`` makes of each."""

    # Evaluation

    def value(self, expression: syntax.Node) -> Value:
        """What is known of an expression's value."""
        return self.evaluate(expression) or UNKNOWN

    def given(self, target: syntax.Name | syntax.Param) -> Value | None:
        """What a name or parameter holds from where it is bound on; None for a name that is not bound here."""
        if isinstance(target, syntax.Param):
            return self._parameter(target) or UNKNOWN
        owner = self.script.names.scope(target).lookup(target.value)
        bindings = owner.bindings[target.value] if owner is not None else []
        return next((self._binding(binding) for binding in bindings if binding.node is target), None)

    def evaluate(self, expression: syntax.Node) -> Value | None:
        """Like ``value``; None inside a cycle, where nothing is known yet."""
        flow = self.script.program.flow
        if (known := flow.answers.get(expression)) is not None:
            return known  # type: ignore[no-any-return]
        if isinstance(expression, _LITERALS):
            return self._evaluate(expression)
        return flow.ask(expression, lambda: self._bounded(self._evaluate(expression)), None, unknown=UNKNOWN)

    def _bounded(self, value: Value | None) -> Value | None:
        """A value that is ``bounded``; one of many parts is looked through once, not where each name for it stands."""
        if value is None or len(value.items) + len(value.keys) < _MANY_PARTS:
            return bounded(value)
        if id(value) not in self._of_many_parts:
            self._of_many_parts[id(value)] = value, bounded(value)
        return self._of_many_parts[id(value)][1]

    def _evaluate(self, node: syntax.Node) -> Value | None:
        match node:
            case syntax.Name():
                return _NAMED.get(node.value) or self._name(node)
            case syntax.Attribute():
                return self._attribute(node)
            case syntax.Call():
                return self.calls.value(node)
            case syntax.Integer() | syntax.Float() | syntax.Imaginary():
                return _WRITTEN_NUMBER
            case syntax.SimpleString() | syntax.FormattedString() | syntax.ConcatenatedString():
                return STRING
            case syntax.Subscript():
                return self._subscript(node)
            case syntax.BinaryOperation(left=left, right=right):
                return self._operation((left, right))
            case syntax.Comparison():
                return self._comparison(node)
            case syntax.UnaryOperation(operator=syntax.Not()):
                return NUMBER
            case syntax.UnaryOperation(expression=inner):
                found = self.evaluate(inner)
                return found._replace(literal=False) if found else None
            case syntax.BooleanOperation(left=left, right=right):
                return join((self.evaluate(left), self.evaluate(right)))
            case syntax.IfExp(body=body, orelse=orelse):
                return join((self.evaluate(body), self.evaluate(orelse)))
            case syntax.NamedExpr(value=inner) | syntax.Await(expression=inner):
                return self.evaluate(inner)
            case syntax.Tuple() | syntax.List() | syntax.Set():
                return self._sequence(node)
            case syntax.ListComp(elt=element) | syntax.GeneratorExp(elt=element) | syntax.SetComp(elt=element):
                return Value(Role.SEQUENCE, element=self.evaluate(element))
            case syntax.Dict():
                return self._mapping(node)
            case syntax.DictComp(value=element):
                return Value(Role.MAPPING, element=self.evaluate(element))
            case syntax.Lambda():
                return Value(Role.FUNCTION)
        return UNKNOWN

    def _sequence(self, node: syntax.Tuple | syntax.List | syntax.Set) -> Value:
        if any(isinstance(element, syntax.StarredElement) for element in node.elements):
            return Value(Role.SEQUENCE)
        items = tuple(self.evaluate(element.value) for element in node.elements)
        return Value(Role.SEQUENCE, items=items, element=join(items))

    def _mapping(self, node: syntax.Dict) -> Value:
        keys: dict[str, Value | None] = {}
        parts = []
        for element in node.elements:
            value = self.evaluate(element.value)
            if isinstance(element, syntax.StarredDictElement):
                keys = dict(value.keys) if value is not None else {}
                parts.append(value.element if value is not None and value.role is Role.MAPPING else value)
            else:
                parts.append(value)
                if isinstance(element, syntax.DictElement) and isinstance(element.key, syntax.SimpleString):
                    keys[str(element.key.evaluated_value)] = value
        return Value(Role.MAPPING, keys=tuple(keys.items()), element=join(parts))

    def _operation(self, operands: tuple[syntax.Node, ...]) -> Value | None:
        known = [value for operand in operands if (value := self.evaluate(operand)) is not None]
        if len(known) < len(operands):
            return None
        tensors = [value for value in known if value.role in (Role.TENSOR, Role.BATCH)]
        if tensors:
            made = tensors[0].made if len(tensors) == 1 else None
            assumed = all(value.assumed for value in tensors)
            return Value(tensors[0].role, combined_place(tensors), made=made, assumed=assumed)
        if any(value.role is Role.ARRAY for value in known):
            return ARRAY
        if all(value.role is Role.NUMBER for value in known):
            return NUMBER
        return STRING if known[0].role is Role.STRING else UNKNOWN

    def _comparison(self, node: syntax.Comparison) -> Value | None:
        identity = (syntax.Is, syntax.IsNot, syntax.In, syntax.NotIn)
        if any(isinstance(target.operator, identity) for target in node.comparisons):
            return NUMBER
        compared = self._operation((node.left, *(target.comparator for target in node.comparisons)))
        return compared if compared is None or compared.role in (Role.TENSOR, Role.BATCH, Role.ARRAY) else NUMBER

    # Names

    def _name(self, name: syntax.Name) -> Value | None:
        bindings = self.script.names.reaching(name)
        if not bindings:
            return self._star_imported(name)
        before = [binding for binding in bindings if not self._is_of_itself(binding, name)] or bindings
        made = [each for each in before if not self._is_loaded(each)] if len(before) > 1 else before
        several = [each for each in made if not self._is_put_in_list(each)] if len(made) > 1 else made
        found = join([self._binding(binding) for binding in several or made or before])
        if len(several) < len(made) and found is not None and found.role is not Role.SEQUENCE:
            found = join([found, *(self._binding(each) for each in made if each not in several)])
        if found is not None and found.role is Role.BATCH and found.place is Place.HOST and self._is_moved_above(name):
            return found._replace(place=Place.GPU)
        if len(made) < len(before) and found is not None and (found.role, found.place) == (Role.TENSOR, Place.GPU):
            loaded = (written(each) for each in before if each not in made)
            return found if all(map(self._keeps_place, loaded)) else join([self._binding(each) for each in before])
        is_hidden = found is not None and found.role is Role.UNKNOWN and b"issubclass" in self.script.source.data
        return self._base_of(name) or found if is_hidden else found

    def _is_moved_above(self, name: syntax.Name) -> bool:
        """Whether a line above, in a block around, moves what a name stands for to a device by itself, ``batch.to(device)``:
        what comes of it is thrown away, so that it moves its parts, as a batch of graphs does, and no tensor."""
        script, bindings = self.script, self.script.names.reaching(name)
        source, parents, order = script.source, script.source.parents, script.source.order
        of_same = [
            use
            for use in script.names.uses(name)
            if script.names.reaching(use) == bindings and script.function(use) is script.function(name)
        ]
        held = {use: up for use in of_same if isinstance(up := parents[use], syntax.Attribute)}
        if not any(self._is_own_part(attribute) for attribute in held.values()):
            return False
        for use, attribute in held.items():
            if attribute.attr.value not in ("to", "cuda") or order[use] >= order[name]:
                continue
            call = parents[attribute]
            if not isinstance(call, syntax.Call) or call.func is not attribute or not isinstance(parents[call], syntax.Expr):
                continue
            is_around = source.contains(parents[source.statement(call)], name) and not source.contains(call, name)
            if is_around and self.calls.place_of_move(call, Place.HOST) is not Place.HOST:
                return True
        return False

    def _is_own_part(self, attribute: syntax.Attribute) -> bool:
        """Whether an attribute is a part of what is no tensor: no method that is called, and nothing that a tensor tells."""
        name, call = attribute.attr.value, self.script.source.parents[attribute]
        is_called = isinstance(call, syntax.Call) and call.func is attribute
        return not is_called and name not in library.NUMBER_ATTRIBUTES | _OF_TENSORS and not name.startswith("is_")

    def _base_of(self, name: syntax.Name) -> Value | None:
        """The class that a name derives from by the condition that it stands under: ``if issubclass(kind, Trainer)``."""
        child: syntax.Node = name
        for up in self.script.source.ancestors(name):
            if isinstance(up, syntax.FunctionDef):
                break
            if isinstance(up, syntax.If) and child is up.body:
                for call in self.script.source.inside(up.test, syntax.Call):
                    match call.args:
                        case [syntax.Arg(value=syntax.Name(value=asked)), syntax.Arg(value=base)] if asked == name.value:
                            value = self.evaluate(base) if self.script.is_call_to(call, "issubclass") else None
                            if value is not None and value.role is Role.CLASS and _is_conjunct(self.script, call, up):
                                return value._replace(assumed=True)
            child = up
        return None

    def _is_loaded(self, binding: Binding) -> bool:
        """Whether a binding reads from a file what others make: then it is what these make."""
        value = written(binding)
        return value is not None and is_loaded(self.script, value)

    def _keeps_place(self, loaded: syntax.BaseExpression | None) -> bool:
        """Whether what is read from a file comes to where it was when it was written: ``torch.load(path)["mean"]``."""
        while isinstance(loaded, syntax.Subscript):
            loaded = loaded.value
        if not isinstance(loaded, syntax.Call) or not self.script.is_call_to(loaded, "torch.load"):
            return False
        return self.script.argument(loaded, "map_location", 1) is None

    def _is_put_in_list(self, binding: Binding) -> bool:
        """Whether a binding is that of ``if isinstance(x, Tensor): x = [x]``, which those skip who hand over several."""
        match written(binding):
            case syntax.List(elements=[syntax.Element(value=syntax.Name(value=only))]) if only == binding.name:
                branch = self.script.source.enclosing(binding.node, syntax.If)
                test = branch.test if isinstance(branch, syntax.If) else None
                asked = test.args[0].value if isinstance(test, syntax.Call) and test.args else None
                return test is not None and self.script.is_call_to(test, "isinstance") and is_name(asked, only)
        return False

    def _is_of_itself(self, binding: Binding, name: syntax.Name) -> bool:
        """Whether a binding is ``name += ...`` itself, in the turn before: what is there before all turns decides."""
        return binding.kind is Kind.AUGMENT and binding.node is name

    def _star_imported(self, name: syntax.Name) -> Value | None:
        dotted = self.script.dotted(name)
        found = self._imported(dotted) if dotted is not None else None
        return found or UNKNOWN

    def _binding(self, binding: Binding) -> Value | None:
        """The value a binding gives its name."""
        script = self.script
        match binding.kind:
            case Kind.FUNCTION | Kind.CLASS:
                assert isinstance(binding.node, (syntax.FunctionDef, syntax.ClassDef))
                role = Role.FUNCTION if binding.kind is Kind.FUNCTION else Role.CLASS
                return Value(role, definition=Definition(script, binding.node))
            case Kind.IMPORT:
                return (self._imported(binding.dotted) if binding.dotted else None) or UNKNOWN
            case Kind.PARAMETER:
                assert isinstance(binding.node, syntax.Param)
                return self._parameter(binding.node)
            case Kind.AUGMENT:
                value = self._augmented(binding)
                if value is not None and value.role is Role.UNKNOWN and isinstance(binding.node, syntax.Name):
                    by_use = self._by_use(binding.node)
                    return by_use if by_use.role is Role.TENSOR else value
                return value
            case Kind.FOR:
                assert binding.value is not None
                value = UNKNOWN if self._is_key(binding) else self._turn(binding.value, binding.path)
                is_hidden = value is not None and value.role is Role.UNKNOWN and not value.differs
                is_batch = is_hidden and (self._holds_batch(binding) or self._is_entry_of_batches(binding.value))
                return _HOST_BATCH if is_batch else value
            case Kind.ASSIGN | Kind.WITH if binding.value is not None:
                value = self._filled(binding, self._unpacked(binding.value, binding.path))
                if value is not None and value.role is Role.UNKNOWN and isinstance(binding.node, syntax.Name):
                    shown = (self._by_use(binding.node), self._from_tensors(binding, binding.node))
                    return _prepared_as(value, next((each for each in shown if each.role is not Role.UNKNOWN), value))
                return self._moved(binding, value)
        return UNKNOWN

    def _is_key(self, binding: Binding) -> bool:
        """Whether a loop takes from what it goes over by what it goes over, as keys of a dict are: ``for k in d: d[k]``."""
        match self.script.source.parents[binding.node]:
            case syntax.For(target=syntax.Name(value=key), iter=syntax.Name(value=mapping), body=body):
                taken = self.script.source.inside(body, syntax.Subscript)
                return any(is_name(each.value, mapping) and self.script.text(each) == f"{mapping}[{key}]" for each in taken)
        return False

    def _moved(self, binding: Binding, value: Value | None) -> Value | None:
        """A module moved in place, by a statement ``model.cuda()``, is on a GPU from then on."""
        if value is None or value.role is not Role.MODULE or value.place is Place.GPU:
            return value
        if not isinstance(binding.node, syntax.Name):
            return value
        for use in self.script.names.uses(binding.node):
            method = self._method_called(use)
            if method is not None and (method[0] == "cuda" or method[0] == "to"):
                return at(value, self.calls.place_of_move(method[1], value.place))
        return value

    def _filled(self, binding: Binding, value: Value | None) -> Value | None:
        """An empty list takes the element of what is appended to it, a dict the entries that are set in it."""
        if value is None or not isinstance(binding.node, syntax.Name):
            return value
        if value.role is Role.MAPPING:
            return self._with_entries(value, self.script.names.uses(binding.node))
        is_of_modules = value.element is not None and value.element.role is Role.MODULE
        if value.role is not Role.SEQUENCE or ((value.items or value.element) and not is_of_modules):
            return value
        methods = map(self._method_called, self.script.names.uses(binding.node))
        added = [self._added(each) for each in methods if each is not None and _adds(each)]
        return value._replace(items=(), element=join([value.element, *added])) if added else value

    def _with_entries(self, mapping: Value, uses: Iterable[syntax.Node]) -> Value:
        """A dict with the entries that ``uses`` of it set: ``d["x"] = y``, ``d[key] = y``."""
        known, others = dict(mapping.keys), list[tuple[str | None, Value | None]]()
        for key, but, value in self._set_entries(uses):
            if isinstance(key, str):
                known[key] = join((known.get(key), value))
            else:
                others.append((but, value))
        keys = tuple((key, join((value, *(each for but, each in others if but != key)))) for key, value in known.items())
        return mapping._replace(keys=keys, element=join((mapping.element, *known.values(), *(each for _, each in others))))

    def _set_entries(self, uses: Iterable[syntax.Node]) -> Iterator[tuple[object, str | None, Value | None]]:
        """The entries of a dict that are set through its ``uses``: the key where it is written out or is compared with one
        that is, the one that it is not where it is compared with that, and the value."""
        parents = self.script.source.parents
        for use in uses:
            entry = parents[use]
            if not isinstance(entry, syntax.Subscript) or entry.value is not use:
                continue
            writer = parents[entry]
            if isinstance(writer, syntax.AssignTarget):
                writer = parents[writer]
            elif not isinstance(writer, syntax.AugAssign) or writer.target is not entry:
                continue
            if isinstance(writer, (syntax.Assign, syntax.AugAssign)):
                key, but = key_of(entry), None
                if key is None and (asked := self._key_asked_for(entry, writer)) is not None:
                    key, but = (asked[0], None) if asked[1] else (None, asked[0])
                yield key, but, self.evaluate(writer.value)

    def _key_asked_for(self, entry: syntax.Subscript, writer: syntax.Node) -> tuple[str, bool] | None:
        """The string that the key of an entry is compared with, ``if key == "x"``, where that decides whether it is set,
        and whether it is that one."""
        parents = self.script.source.parents
        branch = parents[parents[writer]]
        test = self.script.source.enclosing(branch, syntax.If)
        match test, entry.slice:
            case (
                syntax.If(
                    test=syntax.Comparison(
                        left=syntax.Name(value=asked),
                        comparisons=[
                            syntax.ComparisonTarget(operator=syntax.Equal(), comparator=syntax.SimpleString() as literal)
                        ],
                    ),
                    body=body,
                    orelse=orelse,
                ),
                [syntax.SubscriptElement(slice=syntax.Index(value=syntax.Name(value=key)))],
            ) if asked == key:
                if branch is body:
                    return str(literal.evaluated_value), True
                if orelse is not None and parents[branch] is orelse:
                    return str(literal.evaluated_value), False
        return None

    def _added(self, method: tuple[str, syntax.Call]) -> Value | None:
        """What ``append`` or ``extend`` adds to a list."""
        given = self.evaluate(method[1].args[0].value)
        return self._element(given) if method[0] == "extend" else given

    def _method_called(self, use: syntax.Node) -> tuple[str, syntax.Call] | None:
        """The method that ``use.method(...)`` calls."""
        parents = self.script.source.parents
        attribute = parents[use]
        if not isinstance(attribute, syntax.Attribute) or attribute.value is not use:
            return None
        call = parents[attribute]
        if isinstance(call, syntax.Call) and call.func is attribute:
            return attribute.attr.value, call
        return None

    def _augmented(self, binding: Binding) -> Value | None:
        statement = self.script.source.enclosing(binding.node, syntax.AugAssign)
        assert isinstance(statement, syntax.AugAssign)
        return self._changed(self.evaluate(statement.target), statement)

    def _changed(self, before: Value | None, statement: syntax.AugAssign) -> Value | None:
        """What ``total += given`` makes of what was there before."""
        added = self.evaluate(statement.value)
        if before is not None and before.role is Role.SEQUENCE:
            return before
        tensors = [value for value in (before, added) if value is not None and value.role in (Role.TENSOR, Role.BATCH)]
        if tensors:
            return Value(Role.TENSOR, combined_place(tensors))
        if before is None or added is None:
            return None
        return before._replace(literal=False) if before.role is added.role else UNKNOWN

    def _turn(self, iterated: syntax.Node, path: tuple[int | None, ...]) -> Value | None:
        """What each turn of a loop takes out of what it iterates over."""

        def answer() -> Value | None:
            return self._taken_apart(self._element(self.evaluate(iterated)), path)

        return self.script.program.flow.ask(("turn", iterated, path), answer, None, unknown=UNKNOWN)

    def _unpacked(self, expression: syntax.Node, path: tuple[int | None, ...]) -> Value | None:
        """The part of an expression's value that a path leads to."""
        if not path:
            return self.evaluate(expression)

        def answer() -> Value | None:
            return self._taken_apart(self.evaluate(expression), path)

        return self.script.program.flow.ask(("part", expression, path), answer, None, unknown=UNKNOWN)

    def _taken_apart(self, value: Value | None, path: tuple[int | None, ...]) -> Value | None:
        for step in path:
            if value is None:
                return None
            value = self._part(value, step)
        return value

    def _part(self, value: Value, step: int | None) -> Value | None:
        if value.items and step is not None and step < len(value.items):
            return value.items[step]
        if value.role in (Role.TENSOR, Role.BATCH):
            return value
        return value.element if value.role is Role.SEQUENCE else UNKNOWN

    def _element(self, value: Value | None) -> Value | None:
        """What iterating over a value yields."""
        if value is None:
            return None
        match value.role:
            case Role.LOADER:
                place = Place.GPU if value.place is Place.GPU else Place.HOST
                is_known = value.element is not None and place is Place.HOST
                return value.element if is_known else Value(Role.BATCH, place, made=value.made)
            case Role.TENSOR | Role.BATCH | Role.ARRAY:
                return value
            case Role.DATASET if _is_of_graphs(value):
                return _GRAPH
            case Role.INSTANCE if value.definition is not None:
                return self.calls.iterated(value.definition)
            case Role.DATASET if value.definition is not None and self.calls.gives_by_number(value.definition):
                return self._item(value.definition, UNKNOWN)
            case Role.SEQUENCE | Role.DATASET:
                roles = {each.role for each in value.items if each is not None}
                mixes = {Role.NUMBER, Role.TENSOR} <= roles and not value.assumed
                return CONFLICT if mixes else value.element or join(value.items)
            case Role.MODULE if value.made is not None and value.made.script.name(value.made.call.func) in _HOLDERS:
                return self._held(value.made, value.place)
            case Role.STRING | Role.MAPPING:
                return STRING
        return UNKNOWN

    def batch_of(self, loader: Made) -> Value:
        """What a ``DataLoader`` yields: host tensors, or what its own collate function has put on the GPU."""
        return self._collated(loader) or Value(Role.BATCH, Place.HOST, made=loader)

    def _collated(self, loader: Made) -> Value | None:
        """The batch of a loader whose own collate function puts it, or parts of it, on the GPU; None of any other."""
        script = loader.script
        own = script.argument(loader.call, "collate_fn", _COLLATE_FN)
        function = script.roles.evaluate(own) if own is not None else None
        if function is None or function.role is not Role.FUNCTION or function.definition is None:
            return None
        place, batch = function.definition.script, Value(Role.BATCH, Place.HOST, made=loader)
        moved = [place.roles._are_moved(each) for each in returned(function.definition)]
        if not moved or any(each != moved[0] for each in moved) or True not in moved[0]:
            return None
        if moved[0] == [True]:
            return at(batch, Place.GPU)
        part = Value(Role.TENSOR, made=loader)
        return batch._replace(items=tuple(part if each else batch for each in moved[0]))

    def _are_moved(self, result: syntax.BaseExpression) -> list[bool]:
        """Whether what a function returns, or each of several values, has just been moved to a device that may be a GPU."""
        if isinstance(result, syntax.Tuple | syntax.List):
            return [self._is_moved(each.value) for each in result.elements]
        return [self._is_moved(result)]

    @once(False)
    def _is_moved(self, tensor: syntax.BaseExpression) -> bool:
        match tensor:
            case syntax.Name():
                given = all_written(self.script.names.reaching(tensor))
                return bool(given) and all(each is not tensor and self._is_moved(each) for each in given)
            case syntax.Call(func=syntax.Attribute(value=value, attr=syntax.Name(value="to" | "cuda"))) as move:
                return self.calls.place_of_move(move, Place.HOST) is not Place.HOST and self._is_of_tensor(value)
            case syntax.Call(func=syntax.Attribute(value=value)) if self._is_of_tensor(value):
                return self._is_moved(value)
        return False

    def _is_of_tensor(self, value: syntax.BaseExpression) -> bool:
        found = self.evaluate(value)
        return found is not None and found.role is Role.TENSOR

    def _held(self, holder: Made, place: Place) -> Value:
        """A module that a ``ModuleList`` or ``Sequential`` holds: one of their class, where all are of one."""
        held = join(self.held(holder))
        is_one = held is not None and held.role is Role.MODULE
        return Value(Role.MODULE, place, definition=held.definition if held is not None and is_one else None)

    def held(self, holder: Made) -> tuple[Value | None, ...]:
        """What a ``ModuleList`` or ``Sequential`` is made with or gets later; nothing of any other module."""
        if holder.script.name(holder.call.func) not in _HOLDERS:
            return ()
        question, nothing = ("held", holder.call), ()
        return self.script.program.flow.ask(question, lambda: holder.script.roles._find_held(holder.call), nothing)

    def _find_held(self, holder: syntax.Call) -> tuple[Value | None, ...]:
        found: list[Value | None] = []
        is_list = self.script.name(holder.func) == "torch.nn.ModuleList"
        for arg in holder.args:
            found += self._listed(arg.value) if is_list or arg.star else [self.evaluate(arg.value)]
        found += [self._added(method) for method in self._methods_of(holder) if _adds(method)]
        return tuple(dict.fromkeys(found))

    def _listed(self, modules: syntax.BaseExpression) -> list[Value | None]:
        """The elements of a list of modules, which may be of several classes."""
        bindings = self.script.names.reaching(modules) if isinstance(modules, syntax.Name) else []
        given = all_written(bindings) or [modules]
        found: list[Value | None] = []
        for each in given:
            if isinstance(each, syntax.List | syntax.Tuple):
                found += [self.evaluate(element.value) for element in each.elements]
            else:
                found.append(self._element(self.evaluate(each)))
        uses = [
            use
            for binding in bindings
            if isinstance(binding.node, syntax.Name)
            for use in self.script.names.uses(binding.node)
        ]
        methods = [method for use in uses if (method := self._method_called(use)) is not None and _adds(method)]
        return found + [self._added(method) for method in methods]

    def _methods_of(self, made: syntax.Call) -> Iterator[tuple[str, syntax.Call]]:
        """The methods that are called, in its class or function, on what a call makes."""
        parents = self.script.source.parents
        assign = parents[made]
        target = assign.targets[0].target if isinstance(assign, syntax.Assign) and len(assign.targets) == 1 else None
        uses: Iterable[syntax.Node] = self.script.names.uses(target) if isinstance(target, syntax.Name) else ()
        if isinstance(target, syntax.Attribute):
            klass = self.script.source.enclosing(made, syntax.ClassDef)
            if isinstance(klass, syntax.ClassDef):
                name, definition = target.attr.value, Definition(self.script, klass)
                uses = [use for script, use in self._self_uses(definition, name) if script is self.script]
        yield from (method for use in uses if (method := self._method_called(use)) is not None)

    def element(self, value: Value) -> Value:
        """What iterating over ``value`` yields."""
        return self._element(value) or UNKNOWN

    def _imported(self, dotted: str) -> Value | None:
        definition = self.script.imported(dotted)
        if definition is not None:
            role = Role.FUNCTION if isinstance(definition.node, syntax.FunctionDef) else Role.CLASS
            return Value(role, definition=definition)
        binding, script = self.script.imported_binding(dotted)
        if binding is not None and script is not None:
            bound = script.names.module.bindings.get(dotted.rpartition(".")[2], [])
            return join(map(script.roles._binding, ending(bound) if binding in bound else [binding]))
        if dotted in library.DTYPES:
            return Value(Role.DTYPE)
        return None

    # Parameters

    def _parameter(self, parameter: syntax.Param) -> Value | None:
        script = self.script
        function = script.source.enclosing(parameter, syntax.FunctionDef, syntax.Lambda)
        if not isinstance(function, syntax.FunctionDef):
            return self._mapped(function, parameter)
        owner = script.names.owner(function)
        if owner is not None and self._is_self(function, parameter):
            return self.instance(Definition(script, owner))
        if owner is not None and parameter is _first_parameter(function) and is_class_method(function):
            return self._own_class(function, owner)
        if parameter is function.params.star_arg:
            beyond = script.values.passed_beyond(function)
            unnamed = [[place.roles.evaluate(each) for each in given] for place, given in beyond]
            is_even = len(set(map(len, unnamed))) == 1
            items = tuple(map(_any_of, zip(*unnamed, strict=True))) if is_even else ()
            element = _any_of(each for given in unnamed for each in given)
            return Value(Role.SEQUENCE, items=items, element=element, assumed=True)
        if parameter is function.params.star_kwarg:
            calls = script.call_sites(function)
            handed = [place.roles.by_name(function, call) for place, call in calls]
            names = dict.fromkeys(name for each in handed for name, _ in each.keys)
            keys = tuple((name, join(dict(each.keys).get(name) for each in handed)) for name in names)
            return Value(Role.MAPPING, keys=keys, element=_any_of(each.element for each in handed))
        if parameter.default is None and owner is not None and self._is_forward(function, owner):
            return self._input(function, parameter)
        if owner is not None and (batch := self._handed(function, parameter, owner)) is not None:
            return batch
        annotated = self._annotation(parameter)
        if annotated is not None and annotated.role is not Role.MODULE and annotated.role is not Role.LOADER:
            return annotated
        given = (
            other.roles.evaluate(value) if value is not None else self._default(parameter)
            for other, value in script.values.passed(parameter)
        )
        found: Value | None = None
        is_passed = False
        for value in given:
            found, is_passed = join((found, value)), True
            if found == UNKNOWN:
                break  # whatever the others pass
        if found is not None and found.role not in (Role.UNKNOWN, Role.NONE):
            return found
        if is_passed and found is None:
            return None
        if not is_passed and (batch := self._unpacked_by_calls(function, parameter)) is not None:
            return batch
        return _prepared_as(found, annotated or self._by_use(parameter))

    def _unpacked_by_calls(self, function: syntax.FunctionDef, parameter: syntax.Param) -> Value | None:
        """A part of the batch that each known call takes apart for the function, ``model.step(*batch)``; None of anything
        else."""
        given: list[Value] = []
        for other, call in self.script.call_sites(function) if parameter in function.params.params else ():
            plain = [arg for arg in call.args if arg.keyword is None]
            value = other.roles.evaluate(plain[0].value) if len(plain) == 1 and plain[0].star == "*" else None
            if value is None or value.role is not Role.BATCH:
                return None
            given.append(value)
        return join(given)

    def _mapped(self, function: syntax.Node | None, parameter: syntax.Param) -> Value | None:
        """What a parameter of ``map(lambda part: ..., parts)``, or ``filter``, is in turn; nothing of that of any other
        lambda."""
        given = mapped(self.script, function, parameter) if isinstance(function, syntax.Lambda) else None
        return self._element(self.evaluate(given)) if given is not None else UNKNOWN

    def _input(self, function: syntax.FunctionDef, parameter: syntax.Param) -> Value | None:
        """What a module's ``forward`` takes: a tensor, certainly so where a known call passes one."""
        passed = [other.roles.evaluate(value) for other, value in self.script.values.passed(parameter) if value]
        if passed and all(value is None for value in passed):
            return None
        if passed and all(value is not None and (_is_number(value) or value.role in _NO_TENSORS) for value in passed):
            return join(passed)
        tensors = [value for value in passed if value is not None and value.role in (Role.TENSOR, Role.BATCH)]
        if not tensors and any(other.roles.begins_as_number(value) for other, value in self.script.values.passed(parameter)):
            return UNKNOWN
        place = Place.GPU if tensors and all(value.place is Place.GPU for value in tensors) else Place.EITHER
        return TENSOR._replace(place=place, assumed=not tensors or all(value.assumed for value in tensors))

    def begins_as_number(self, expression: syntax.BaseExpression | None, depth: int = 4) -> bool:
        """Whether a name may stand for a number that is written out: ``step = 0``, a parameter's default, or what ``depth``
        functions hand on."""
        for binding in self.script.names.reaching(expression) if isinstance(expression, syntax.Name) else ():
            parameter = binding.node if isinstance(binding.node, syntax.Param) else None
            first = parameter.default if parameter is not None else written(binding)
            if isinstance(first, syntax.Integer | syntax.Float):
                return True
            if parameter is not None and depth:
                passed = self.script.values.passed(parameter)
                if any(other.roles.begins_as_number(value, depth - 1) for other, value in passed):
                    return True
        return False

    def by_name(self, function: syntax.FunctionDef, call: syntax.Call) -> Value:
        """The ``**kwargs`` of a function as a call in this script makes them, also out of a dict that is handed on."""
        params = function.params
        own = {each.name.value for each in (*params.params, *params.kwonly_params)}
        keys, parts = [], []
        for arg in call.args:
            if arg.keyword is not None and arg.keyword.value not in own:
                value = self.evaluate(arg.value)
                keys.append((arg.keyword.value, value))
                parts.append(value)
            elif arg.star == "**" and (held := self.evaluate(arg.value)) is not None:
                keys += [(name, value) for name, value in held.keys if name not in own]
                if _holds_one_kind(held):
                    parts.append(held.element if held.role is Role.MAPPING else held)
        return Value(Role.MAPPING, keys=tuple(dict(keys).items()), element=_any_of(parts))

    def _handed(self, function: syntax.FunctionDef, parameter: syntax.Param, owner: syntax.ClassDef) -> Value | None:
        """The batch, its number or the step's loss, as a framework hands it to a method that it calls."""
        hook = self.calls.hook(Definition(self.script, owner), function.name.value)
        if hook is None or parameter not in function.params.params:
            return None
        place = function.params.params.index(parameter)
        if place == hook.turn:
            return NUMBER
        if place == hook.result:
            return Value(Role.MAPPING, keys=(("loss", TENSOR),))
        return TENSOR if place in (hook.batch, hook.loss) or parameter.name.value in hook.named else None

    def _is_self(self, function: syntax.FunctionDef, parameter: syntax.Param) -> bool:
        return _first_parameter(function) is parameter and not needs_no_object(function)

    def _own_class(self, function: syntax.FunctionDef, owner: syntax.ClassDef) -> Value | None:
        """What a class method takes as ``cls``: each class that it is called on, or its own where no call is seen."""
        sites = self.script.call_sites(function)
        if not sites:
            return Value(Role.CLASS, definition=Definition(self.script, owner))
        return join(place.roles._class_of(call.func) for place, call in sites)

    def _class_of(self, method: syntax.BaseExpression) -> Value | None:
        """The class that a method is taken from, or from an object of it."""
        asked = self.evaluate(method.value) if isinstance(method, syntax.Attribute) else UNKNOWN
        if asked is None:
            return None
        is_known = asked.definition is not None and isinstance(asked.definition.node, syntax.ClassDef)
        return Value(Role.CLASS, definition=asked.definition) if is_known else UNKNOWN

    def _default(self, parameter: syntax.Param) -> Value | None:
        return self.evaluate(parameter.default) if parameter.default is not None else None

    def _annotation(self, parameter: syntax.Param) -> Value | None:
        return self._of_annotation(parameter.annotation) if parameter.annotation is not None else None

    def _as_annotated(self, assigned: syntax.BaseExpression, known: Value | None) -> Value | None:
        """What is assigned, or where that is out of sight what it is said to be: ``self.model: Net = made(config)``."""
        match self.script.source.parents[assigned]:
            case syntax.AnnAssign(annotation=annotation) if known == UNKNOWN:
                return self._of_annotation(annotation) or known
        return known

    def _of_annotation(self, said: syntax.Annotation) -> Value | None:
        annotation = said.annotation
        if isinstance(annotation, syntax.SimpleString):
            return None
        definition = self.script.definition(annotation)
        if definition is not None and isinstance(definition.node, syntax.ClassDef):
            return self.instance(definition)
        return _ANNOTATED.get(self.script.name(annotation) or "")

    def _is_forward(self, function: syntax.FunctionDef, owner: syntax.ClassDef) -> bool:
        """Whether the function is a module's ``forward``: what it takes is tensors."""
        return function.name.value == "forward" and self.instance(Definition(self.script, owner)).role is Role.MODULE

    # Evidence by use

    def _by_use(self, name: syntax.Name | syntax.Param) -> Value:
        """What the uses of a variable show it to be, where its value is out of sight."""
        variable = self.script.names.variable(name)
        if variable not in self._shown:
            self._shown[variable] = self._find_shown(name)
        return self._shown[variable]

    @cached_property
    def _shown(self) -> dict[tuple[int, str] | None, Value]:
        return {}

    def _find_shown(self, name: syntax.Name | syntax.Param) -> Value:
        methods: dict[str, syntax.Call] = {}
        looped = False
        keys: dict[str, Value | None] = {}
        for use in self.script.names.uses(name):
            method = self._method_called(use)
            if (key := self._differentiated_entry(use)) is not None:
                keys[key] = TENSOR
            elif method is not None:
                methods.setdefault(*method)
            elif isinstance(call := self.script.source.parents[use], syntax.Call) and call.func is use:
                methods.setdefault("__call__", call)
            elif self._is_handed_backward(use):
                return TENSOR
            looped = looped or self._is_batched_loop(use)
        if keys:
            return Value(Role.MAPPING, keys=tuple(keys.items()), element=UNKNOWN)
        if ("item" in methods or self._is_reduced(name)) and self._is_part_of_loss(name):
            return TENSOR._replace(assumed=True)
        return self._shown_by(methods, looped)

    def _differentiated_entry(self, use: syntax.Name | syntax.Param) -> str | None:
        """The key of the entry of a dict that a backward pass begins at: ``losses["total"].backward()``."""
        entry = self.script.source.parents[use]
        if not isinstance(entry, syntax.Subscript) or entry.value is not use:
            return None
        key, method = key_of(entry), self._method_called(entry)
        return key if isinstance(key, str) and method is not None and method[0] == "backward" else None

    def _is_reduced(self, name: syntax.Name | syntax.Param) -> bool:
        """Whether it is only ever the mean or the sum of all of something: ``single = loss.mean()``."""
        owner = self.script.names.scope(name).lookup(name.value) if isinstance(name, syntax.Name) else None
        if owner is None or not isinstance(name, syntax.Name):
            return False
        made = [each for each in owner.bindings.get(name.value, ()) if each.kind is not Kind.AUGMENT]
        return bool(made) and all(_is_reduction(each.value) and not each.path for each in made)

    def _is_part_of_loss(self, name: syntax.Name | syntax.Param) -> bool:
        """Whether it is computed with to give what a backward pass begins at: a number of Python's has no ``.item()``."""
        todo: list[syntax.Name | syntax.Param] = [name]
        seen = set()
        while todo:
            each = todo.pop()
            variable = self.script.names.variable(each)
            if variable in seen:
                continue
            seen.add(variable)
            for use in self.script.names.uses(each):
                method = self._method_called(use)
                if each is not name and (self._is_handed_backward(use) or (method is not None and method[0] == "backward")):
                    return True
                todo += self._computed_with(use)
        return False

    def _computed_with(self, use: syntax.Name) -> Iterator[syntax.Name]:
        """The variable that is given what arithmetic makes of a variable."""
        node: syntax.Node = use
        while isinstance(up := self.script.source.parents[node], syntax.BinaryOperation):
            node = up
        match up:
            case syntax.Assign(targets=[syntax.AssignTarget(target=syntax.Name() as target)]) if node is not use:
                yield target
            case syntax.AugAssign(target=syntax.Name() as target, value=value) if value is node:
                yield target

    def _is_handed_backward(self, use: syntax.Name) -> bool:
        """Whether it is ``loss`` in ``scaler.scale(loss).backward()``, or in ``accelerator.backward(loss)`` and the like."""
        parents = self.script.source.parents
        call = parents[parents[use]]
        match call:
            case syntax.Call(func=syntax.Attribute(attr=syntax.Name(method)), args=[syntax.Arg(value=given)]) if (
                given is use
            ):
                then = self._method_called(call)
                return method in ("backward", "manual_backward") or (
                    method == "scale" and then is not None and then[0] == "backward"
                )
        return False

    def _from_tensors(self, binding: Binding, name: syntax.Name) -> Value:
        """What a function out of sight returns for tensors is a tensor where ``.item()`` is called on it."""
        call = binding.value
        if not isinstance(call, syntax.Call):
            return UNKNOWN
        is_named = self.script.name(call.func) is not None
        if not is_named and self.calls.callee(call) is not None:
            return UNKNOWN
        if not any((method := self._method_called(use)) and method[0] == "item" for use in self.script.names.uses(name)):
            return UNKNOWN
        given = [value for arg in call.args if (value := self.evaluate(arg.value)) and value.role is Role.TENSOR]
        return Value(Role.TENSOR, combined_place(given), assumed=not is_named) if given else UNKNOWN

    def _shown_by(self, methods: dict[str, syntax.Call], looped: bool) -> Value:
        called = methods.keys()
        if (
            "backward" in called
            and not called & {"step", "save_checkpoint"}
            and all(arg.keyword is not None for arg in methods["backward"].args)
        ):
            return TENSOR
        if "zero_grad" in called and "step" in called:
            return Value(Role.OPTIMIZER)
        if "unscale_" in called or ("scale" in called and "update" in called):
            return Value(Role.SCALER)
        if "__call__" in called and called & {"to", "cuda"}:
            return Value(Role.MODULE)
        if called & _MODULE_USES or called >= _MODULE_HINTS or (called & _MODULE_HINTS and "zero_grad" in called):
            return Value(Role.MODULE)
        if ("train" in called and _sets_mode(methods["train"])) or ("eval" in called and not methods["eval"].args):
            return Value(Role.MODULE)
        if "zero_grad" in called or "param_groups" in called:
            return Value(Role.OPTIMIZER)
        if looped:
            return Value(Role.LOADER)
        if "item" in called and called & {"detach", "cpu", "mean", "sum"}:
            return TENSOR
        return UNKNOWN

    def _is_batched_loop(self, use: syntax.Node) -> bool:
        """Whether something is iterated over, alone or in a wrapper, by a loop whose elements are moved to a device."""
        source = self.script.source
        node: syntax.Node = use
        while (
            isinstance(parent := source.parents[node], (syntax.Arg, syntax.Call))
            and getattr(parent, "func", None) is not node
        ):
            node = parent
        loop = source.parents[node]
        if not isinstance(loop, syntax.For) or loop.iter is not node:
            return False
        targets = (
            {target.value for target in source.inside(loop.target, syntax.Name)}
            if not isinstance(loop.target, syntax.Name)
            else {loop.target.value}
        )
        for call in source.inside(loop.body, syntax.Call):
            if isinstance(call.func, syntax.Attribute) and call.func.attr.value in ("to", "cuda"):
                base: syntax.BaseExpression = call.func.value
                while isinstance(base, (syntax.Subscript, syntax.Attribute)):
                    base = base.value
                if isinstance(base, syntax.Name) and (base.value in targets or self._unpacks(base, targets)):
                    return True
        return False

    def _unpacks(self, name: syntax.Name, targets: set[str]) -> bool:
        return any(
            isinstance(b.value, syntax.Name) and b.value.value in targets
            for b in self.script.names.reaching(name)
            if b.kind is Kind.ASSIGN
        )

    def _is_entry_of_batches(self, iterated: syntax.Node) -> bool:
        """Whether a loop goes over an entry of something, ``loaders["train"]``, and moves what it takes out to a device."""
        if not isinstance(iterated, syntax.Subscript) or not self._is_batched_loop(iterated):
            return False
        loads = ((one.roles, node) for one, node in self.origins(iterated.value) if isinstance(node, syntax.Call))
        return not any(roles.calls.device_place(load) is Place.GPU or roles._maps_to_gpu(load) for roles, load in loads)

    def _maps_to_gpu(self, load: syntax.Call) -> bool:
        """Whether it is ``torch.load(file, map_location="cuda")``."""
        mapped = self.script.argument(load, "map_location", 1)
        return mapped is not None and self.calls.device_of(mapped) is not Place.HOST

    def _holds_batch(self, binding: Binding) -> bool:
        """Whether a loop's variable, of what is out of sight, is a batch on the host: its parts are moved to a device, here
        or in a function of the project that it is handed."""
        name = binding.node
        if not isinstance(name, syntax.Name):
            return False
        for use in self.script.names.uses(name):
            if self._has_moved_part(use):
                return True
            arg = self.script.source.parents[use]
            call = self.script.source.parents[arg]
            if isinstance(arg, syntax.Arg) and isinstance(call, syntax.Call) and self._hands_batch(call, arg):
                return True
        return False

    def _hands_batch(self, call: syntax.Call, arg: syntax.Arg) -> bool:
        """Whether a function of the project that a call runs moves parts of an argument to a device."""
        for called in self.calls.called(call):
            script, function = called.script, called.node
            if isinstance(function, syntax.FunctionDef):
                for param in function.params.params:
                    if script.values.given(function, param, self.script, call) is arg.value:
                        return any(map(script.roles._has_moved_part, script.names.uses(param)))
        return False

    def _has_moved_part(self, use: syntax.Name) -> bool:
        """Whether a part of a variable is moved: ``batch["x"].to(device)``, ``batch[0].float().cuda()``, or ``x.to(device)``
        behind ``x, y = batch``."""
        match self.script.source.parents[use]:
            case syntax.Subscript(value=value) as part if value is use and key_of(part) is not None:
                return self._is_put_on_device(part)
            case syntax.Assign(value=value, targets=[syntax.AssignTarget(target=syntax.Tuple(elements=elements))]) if (
                value is use
            ):
                parts = [each.value for each in elements if isinstance(each.value, syntax.Name)]
                uses = [self.script.names.uses(part) for part in parts]
                return any(self._is_put_on_device(each) for of_one in uses for each in of_one)
        return False

    def _is_put_on_device(self, node: syntax.Node) -> bool:
        """Whether a tensor's method, or several one after the other, ends in a move to a device."""
        while (method := self._method_called(node)) is not None:
            name, node = method
            if name == "cuda":
                return True
            if name == "to":
                return bool(node.args) and self.calls.place_of_move(node, Place.HOST) is not Place.HOST
            if name not in _CASTS:
                return False
        return False

    # Attributes

    def _attribute(self, node: syntax.Attribute) -> Value | None:
        dotted = self.script.name(node)
        if dotted is not None:
            return self._imported(dotted) or UNKNOWN
        base = self.evaluate(node.value)
        if base is None:
            return None
        if base.definition is None and base.role in (Role.INSTANCE, Role.MODULE):
            found = join(self._members(node))
            if found is not None:
                return found
        return self._attribute_of(base, node)

    def _attribute_of(self, base: Value, node: syntax.Attribute) -> Value | None:
        name = node.attr.value
        if base.definition is not None and base.role in _OF_OWN_CLASSES:
            found = self._member(base.definition, name)
            if found is not None and found.role is Role.FUNCTION and heirs.may_override(base):
                return Value(Role.FUNCTION)
            if found is not None or self._is_pending(base.definition, name):
                return found
        match base.role:
            case Role.TENSOR | Role.BATCH:
                if name in library.NUMBER_ATTRIBUTES or name.startswith("is_"):
                    return Value(Role.SEQUENCE, element=NUMBER) if name == "shape" else NUMBER
                if name == "device":
                    return Value(Role.DEVICE, base.place)
                if name == "dtype":
                    return Value(Role.DTYPE)
                if name == "_fields":
                    return Value(Role.SEQUENCE, element=STRING)  # of a batch that is a named tuple
                return base
            case Role.MODULE:
                if name in ("module", "_orig_mod"):
                    return base
                if name == "device":
                    return Value(Role.DEVICE, base.place)
                return UNKNOWN
            case Role.SEQUENCE if name in ("values", "indices") and base.element and base.element.role is Role.TENSOR:
                return base.element  # of what ``max(1)``, ``sort()`` and ``topk(k)`` return
            case Role.LOADER if name == "dataset":
                return self._dataset_of(base)
            case Role.DATASET if name in ("data", "_data") and _is_of_graphs(base):
                return _GRAPH
            case Role.INSTANCE if name in distributions.PARAMETERS and self.calls.is_distribution(base):
                return Value(Role.TENSOR, base.place)
        return UNKNOWN

    def _dataset_of(self, loader: Value) -> Value | None:
        """What a loader reads: ``loader.dataset``."""
        made = loader.made
        given = made.script.argument(made.call, "dataset", 0) if made is not None else None
        if made is None or given is None or loader.definition is not None:
            return Value(Role.DATASET)
        read = made.script.roles.evaluate(given)
        return read if read is None or read.role in (Role.DATASET, Role.INSTANCE) else Value(Role.DATASET)

    def _is_pending(self, definition: Definition, name: str) -> bool:
        return any(True for _ in self.self_assignments(definition, name))

    @once(None)
    def _member(self, definition: Definition, name: str) -> Value | None:
        """What an attribute of an instance is: a method, a class attribute, or what the class's methods assign; parameters
        and buffers are wherever their module is."""
        method = self.calls.method(definition, name)
        if method is not None:
            if is_property(method):
                return method.script.roles.calls.result(method)
            return Value(Role.FUNCTION, definition=method)
        found: list[Value | None] = []
        for script, value, path in self.assigned_on_self(definition, name):
            is_parameter = isinstance(value, syntax.Call) and script.is_call_to(value, *library.PARAMETERS)
            kept = script.roles._as_annotated(value, script.roles._unpacked(value, path))
            found.append(kept._replace(place=Place.EITHER) if is_parameter and kept is not None else kept)
        found += [TENSOR for owner in self.calls.lineage(definition) if (owner.node, name) in owner.script.roles._buffers]
        known = join(found)
        if known is not None and known.role is Role.NUMBER:
            known = join(
                (known, *(script.roles._changed(known, each) for script, each in self._changes_of(definition, name)))
            )
        if known is not None and known.role is Role.UNKNOWN:
            return self._self_by_use(definition, name)
        if known is not None and known.role is Role.MODULE:
            return self._self_moved(definition, name, known)
        if known is not None and known.role is Role.SEQUENCE and not known.items and known.element is None:
            return known._replace(element=self._added_on_self(definition, name))
        if known is not None and known.role is Role.MAPPING:
            for script, attribute in self._self_uses(definition, name):
                known = script.roles._with_entries(known, [attribute])
        return known

    @cached_property
    def _buffers(self) -> set[tuple[syntax.Node, str]]:
        """The classes and names under which they register buffers, which are wherever their module is."""
        found: set[tuple[syntax.Node, str]] = set()
        for call in self.script.method_calls("register_buffer"):
            owner = self.script.source.enclosing(call, syntax.ClassDef)
            match call:
                case syntax.Call(
                    func=syntax.Attribute(value=syntax.Name("self")),
                    args=[syntax.Arg(value=syntax.SimpleString() as name), syntax.Arg(value=buffer), *_],
                ) if owner is not None and not is_none(buffer):
                    found.add((owner, str(name.evaluated_value)))
        return found

    def _added_on_self(self, definition: Definition, name: str) -> Value | None:
        """The element of what the methods of a class append to ``self.name``."""
        uses = ((script.roles, script.roles._method_called(use)) for script, use in self._self_uses(definition, name))
        return join([roles._added(method) for roles, method in uses if method is not None and _adds(method)])

    def _changes_of(self, definition: Definition, name: str) -> Iterator[tuple[Script, syntax.AugAssign]]:
        """The statements of a class's methods, or of its first-party bases', that add to ``self.name`` or change it so."""
        for script, attribute in self._self_uses(definition, name):
            statement = script.source.parents[attribute]
            if isinstance(statement, syntax.AugAssign) and statement.target is attribute:
                yield script, statement

    def _self_uses(self, definition: Definition, name: str) -> Iterator[tuple[Script, syntax.Attribute]]:
        for owner in self.calls.lineage(definition):
            place = owner.script
            uses = place.roles._of_self.get(name, ())
            yield from ((place, attribute) for attribute in uses if place.source.contains(owner.node, attribute))

    @cached_property
    def _of_self(self) -> dict[str, list[syntax.Attribute]]:
        """The attributes of ``self``, by their names."""
        found: dict[str, list[syntax.Attribute]] = {}
        for base in self.script.source.tree.named(("self",)):
            parent = self.script.source.parents[base]
            if isinstance(parent, syntax.Attribute) and parent.value is base:
                found.setdefault(parent.attr.value, []).append(parent)
        return found

    def _self_by_use(self, definition: Definition, name: str) -> Value:
        methods: dict[str, syntax.Call] = {}
        for script, attribute in self._self_uses(definition, name):
            method = script.roles._method_called(attribute)
            if method is not None:
                methods.setdefault(*method)
        return self._shown_by(methods, looped=False)

    def _self_moved(self, definition: Definition, name: str, value: Value) -> Value:
        for script, attribute in self._self_uses(definition, name):
            method = script.roles._method_called(attribute)
            if method is not None and method[0] in ("cuda", "to"):
                return at(value, script.roles.calls.place_of_move(method[1], value.place))
        return value

    def self_assignments(self, definition: Definition, name: str) -> Iterator[tuple[Script, syntax.BaseExpression]]:
        """The expressions that the methods of a class, or of its first-party bases, assign to ``self.name``."""
        return ((script, value) for script, value, path in self.assigned_on_self(definition, name) if not path)

    def assigned_on_self(
        self, definition: Definition, name: str
    ) -> Iterator[tuple[Script, syntax.BaseExpression, tuple[int | None, ...]]]:
        """Like ``self_assignments``, with the path by which the value is taken apart."""
        for owner in self.calls.lineage(definition):
            yield from owner.script.roles._assignments.get((owner.node, name), ())

    @cached_property
    def _assignments(
        self,
    ) -> dict[tuple[syntax.Node, str], list[tuple[Script, syntax.BaseExpression, tuple[int | None, ...]]]]:
        found: dict[tuple[syntax.Node, str], list[tuple[Script, syntax.BaseExpression, tuple[int | None, ...]]]] = {}
        source = self.script.source

        def add(target: syntax.Node, value: syntax.BaseExpression, path: tuple[int | None, ...]) -> None:
            if isinstance(target, (syntax.Tuple, syntax.List)):
                parts = value.elements if isinstance(value, (syntax.Tuple, syntax.List)) and not path else ()
                written = len(parts) == len(target.elements) and all(isinstance(part, syntax.Element) for part in parts)
                for index, element in enumerate(target.elements):
                    if written:
                        add(element.value, parts[index].value, ())
                    else:
                        add(element.value, value, (*path, index))
            elif (
                isinstance(target, syntax.Attribute)
                and isinstance(target.value, syntax.Name)
                and target.value.value == "self"
            ):
                owner = source.enclosing(target, syntax.ClassDef)
                if owner is not None:
                    found.setdefault((owner, target.attr.value), []).append((self.script, value, path))

        for assign in source.of(syntax.Assign):
            for target in assign.targets:
                add(target.target, assign.value, ())
        for annotated in source.of(syntax.AnnAssign):
            if annotated.value is not None:
                add(annotated.target, annotated.value, ())
        for klass in source.of(syntax.ClassDef):
            for name, bindings in self.script.names.scope(klass.body).bindings.items():
                for binding in bindings:
                    if binding.kind is Kind.ASSIGN and binding.value is not None:
                        found.setdefault((klass, name), []).append((self.script, binding.value, binding.path))
        return found

    def instance(self, definition: Definition) -> Value:
        """An object of a first-party class."""
        return self.calls.instance(definition)

    # Subscripts

    def _subscript(self, node: syntax.Subscript) -> Value | None:
        base = self.evaluate(node.value)
        if base is None:
            return None
        index = node.slice[0].slice if len(node.slice) == 1 else None
        if base.role is Role.BATCH and isinstance(node.value, syntax.Name):
            moved = self.moved_entry(node.value, node)
            return (self.evaluate(moved) if moved is not None else None) or self._updated_entry(node.value, node) or base
        if base.role is Role.TENSOR and isinstance(node.value, syntax.Name):
            base = self._updated_entry(node.value, node) or base
            if base.role is not Role.TENSOR:
                return base
        if base.role in (Role.TENSOR, Role.BATCH, Role.ARRAY):
            return base
        if base.role is Role.SEQUENCE:
            if isinstance(index, syntax.Slice):
                return base._replace(items=())
            if base.items and isinstance(index, syntax.Index) and isinstance(index.value, syntax.Integer):
                return self._part(base, int(index.value.value, 0))
            return self._element(base)
        if base.role is Role.MODULE and (
            base.definition is None or self.calls.method(base.definition, "__getitem__") is None
        ):
            is_held = base.made is not None and base.made.script.name(base.made.call.func) in _HOLDERS
            held = self._held(base.made, base.place) if is_held and base.made is not None else None
            return held if held is not None and not isinstance(index, syntax.Slice) else Value(Role.MODULE, base.place)
        if base.role is Role.DATASET and _is_of_graphs(base):
            is_one = isinstance(index, syntax.Index) and self._is_place(index.value)
            return _GRAPH if is_one else base
        if base.role in (Role.INSTANCE, Role.DATASET) and base.definition is not None and isinstance(index, syntax.Index):
            otherwise = at(UNKNOWN, base.place)
            return self._item(base.definition, otherwise) if self._is_place(index.value) else otherwise
        if base.role is Role.MAPPING:
            if isinstance(index, syntax.Index) and isinstance(index.value, syntax.SimpleString):
                key = str(index.value.evaluated_value)
                if key in (entries := dict(base.keys)):
                    return entries[key] if self._keeps_entry(node.value, key) else UNKNOWN
            return base.element
        return at(UNKNOWN, base.place)

    def _is_place(self, index: syntax.BaseExpression) -> bool:
        """Whether an index is one number: a variable of which nothing is known mostly is."""
        number = self.evaluate(index)
        return number is None or number.role in (Role.NUMBER, Role.UNKNOWN)

    def _item(self, definition: Definition, otherwise: Value) -> Value | None:
        """What ``__getitem__`` of the project gives, tensors on the host as a loader does; ``otherwise`` of others."""
        method = self.calls.method(definition, "__getitem__")
        if method is None:
            return otherwise
        return _as_batch(method.script.roles.calls.result(method))

    def moved_entry(self, batch: syntax.Name, node: syntax.Subscript) -> syntax.BaseExpression | None:
        """The expression of the tensor that was put in the place of a batch's entry: ``batch["x"] =
        batch["x"].to(device)``, also in a loop over all of them."""
        source, order = self.script.source, self.script.order
        for change in self.script.values.changes(batch):
            target = source.parents[change]
            assign = source.parents[target]
            if not isinstance(change, syntax.Subscript) or not isinstance(assign, syntax.Assign):
                continue
            loop = source.enclosing(assign, syntax.For, syntax.FunctionDef)
            if isinstance(loop, syntax.For) and self._goes_over_entries(loop, batch, change):
                is_done = order.surely([loop], node)
            else:
                is_done = self.script.text(change) == self.script.text(node) and order.surely([assign], node)
            if is_done and not source.contains(assign, node):
                value = self.evaluate(assign.value)
                if value is not None and value.role is Role.TENSOR and value.place is not Place.HOST:
                    return assign.value
        return None

    def _updated_entry(self, batch: syntax.Name, node: syntax.Subscript) -> Value | None:
        """What was put into a batch under a key before: ``batch.update({"size": x.shape})``."""
        key, found = key_of(node), None
        if not isinstance(key, str):
            return None
        for call in self.script.method_calls("update"):
            match call:
                case syntax.Call(
                    func=syntax.Attribute(value=syntax.Name(value=updated)),
                    args=[syntax.Arg(value=syntax.Dict() as entries)],
                ) if updated == batch.value and self.script.order.surely([call], node):
                    found = dict(self._mapping(entries).keys).get(key, found)
        return found

    def _goes_over_entries(self, loop: syntax.For, batch: syntax.Name, change: syntax.Subscript) -> bool:
        """Whether a loop goes over all entries of a batch, and ``change`` is the one of the turn."""
        match loop.iter:
            case syntax.Call(func=syntax.Attribute(value=over, attr=syntax.Name("items" | "keys")), args=[]):
                pass
            case over:
                pass
        target = loop.target.elements[0].value if isinstance(loop.target, syntax.Tuple) else loop.target
        key = change.slice[0].slice
        is_key = isinstance(key, syntax.Index) and self.script.text(key.value) == self.script.text(target)
        return is_key and self.script.text(over) == batch.value

    def _keeps_entry(self, mapping: syntax.BaseExpression, key: str) -> bool:
        """Whether the entry of a dict is what it was made with, as far as this variable shows."""
        if not isinstance(mapping, syntax.Name):
            return True
        if not any(isinstance(binding.node, syntax.Param) for binding in self.script.names.reaching(mapping)):
            return not any(isinstance(change, syntax.Attribute) for change in self.script.values.changes(mapping))
        for change in self.script.values.changes(mapping):
            if not isinstance(change, syntax.Subscript) or key_of(change) in (None, key):
                return False
        return True

    # Questions across scripts

    def origins(
        self, expression: syntax.BaseExpression, seen: set[syntax.Node] | None = None
    ) -> Iterator[tuple[Script, syntax.BaseExpression]]:
        """The expressions, not names, that give a name or ``self`` attribute its value, through parameters and imports.

        Each is given once; after ``_MOST_ORIGINS`` expressions on the way the search ends.
        """
        seen = set() if seen is None else seen
        if expression in seen or len(seen) > _MOST_ORIGINS:
            return
        seen.add(expression)
        if not isinstance(expression, (syntax.Name, syntax.Attribute)):
            yield self.script, expression
            return
        for script, given in self._given_to(expression):
            yield from script.roles.origins(given, seen)

    def chosen(self, expression: syntax.BaseExpression, seen: set[syntax.Node] | None = None) -> Iterator[Value]:
        """The values that an expression may have, of which the class or the function is known: an instance of each class of
        ``model = Small() if args.small else Large()``."""
        seen = set() if seen is None else seen
        if expression in seen or len(seen) > _MOST_ORIGINS:
            return
        seen.add(expression)
        value = self.evaluate(expression)
        if value is not None and value.definition is not None:
            yield value
        elif isinstance(expression, syntax.IfExp):
            for branch in (expression.body, expression.orelse):
                yield from self.chosen(branch, seen)
        elif isinstance(expression, syntax.Call) and isinstance(expression.func, syntax.Attribute):
            is_same = expression.func.attr.value in MOVES | SAME_MODULE and self.script.name(expression.func) is None
            yield from self.chosen(expression.func.value, seen) if is_same else self.calls.may_give(expression, seen)
        elif isinstance(expression, syntax.Call):
            yield from self.calls.may_give(expression, seen)
        elif isinstance(expression, (syntax.Name, syntax.Attribute)):
            for script, given in self._given_to(expression):
                yield from script.roles.chosen(given, seen)
            if isinstance(expression, syntax.Attribute):
                members = self._members(expression, seen)
                yield from (each for each in members if each is not None and each.definition is not None)

    @once(True)
    def knows_all_chosen(self, expression: syntax.BaseExpression) -> bool:
        """Whether ``chosen`` gives all that an expression may have, but for None."""
        value = self.evaluate(expression)
        if value is None or value.definition is not None or value.role is Role.NONE:
            return True
        match expression:
            case syntax.IfExp(body=body, orelse=orelse):
                return self.knows_all_chosen(body) and self.knows_all_chosen(orelse)
            case syntax.Call(func=syntax.Attribute(value=inner, attr=syntax.Name(value=name))) if (
                name in MOVES | SAME_MODULE and self.script.name(expression.func) is None
            ):
                return self.knows_all_chosen(inner)
            case syntax.Call():
                return any(True for _ in self.calls.may_give(expression, set()))
            case syntax.Name() if self.script.dotted(expression) is None:
                bindings = self.script.names.reaching(expression)
                made = [each for each in bindings if not self._is_loaded(each)]
                given = [list(self._given_by(binding)) for binding in made or bindings]
            case syntax.Name() | syntax.Attribute():
                given = [list(self._given_to(expression))]
            case _:
                return False
        each = [script.roles.knows_all_chosen(value) for values in given for script, value in values]
        return all(given) and bool(each) and all(each)

    def _members(self, attribute: syntax.Attribute, seen: set[syntax.Node] | None = None) -> list[Value | None]:
        """What an attribute is of each of the objects that it may be taken of."""
        taken_of = self.chosen(attribute.value, seen)
        kinds = [each.definition for each in taken_of if each.role in (Role.INSTANCE, Role.MODULE)]
        return [self._member(each, attribute.attr.value) for each in kinds if each is not None]

    def _given_to(self, expression: syntax.Name | syntax.Attribute) -> Iterator[tuple[Script, syntax.BaseExpression]]:
        """What a name or ``self`` attribute is given, one step back."""
        if isinstance(expression, syntax.Attribute):
            base = self.value(expression.value)
            if base.definition is not None and isinstance(base.definition.node, syntax.ClassDef):
                yield from self.self_assignments(base.definition, expression.attr.value)
                return
        dotted = self.script.dotted(expression)
        if dotted is not None:
            binding, reached = self.script.imported_binding(dotted)
            if binding is not None and reached is not None and binding.value is not None and not binding.path:
                yield reached, binding.value
            return
        if isinstance(expression, syntax.Name):
            for binding in self.script.names.reaching(expression):
                yield from self._given_by(binding)

    def _given_by(self, binding: Binding) -> Iterator[tuple[Script, syntax.BaseExpression]]:
        if isinstance(binding.node, syntax.Param):
            for script, value in self.script.values.passed(binding.node):
                if value is not None:
                    yield script, value
                elif binding.node.default is not None:
                    yield self.script, binding.node.default
        elif binding.kind is Kind.ASSIGN and (given := self._given(binding)) is not None:
            yield self.script, given
        elif binding.kind is Kind.ASSIGN and isinstance(binding.value, syntax.Call):
            yield from self.parts_of(binding.value, binding.path)

    def parts_of(self, call: syntax.Call, path: Path) -> Iterator[tuple[Script, syntax.BaseExpression]]:
        """What a path leads to in each result of the project's function that a call runs; nothing where one of them is not
        written out that far."""
        callee = self.script.definition(call.func)
        if callee is None and self.script.role(call.func) is not Role.MODULE:
            callee = self.callee(call)
        if callee is None or not isinstance(callee.node, syntax.FunctionDef):
            return
        parts = [part(result, path) for result in returned(callee)]
        if not any(rest for _, rest in parts):
            yield from ((callee.script, value) for value, _ in parts)

    def _given(self, binding: Binding) -> syntax.BaseExpression | None:
        """The expression that gives a name its value, also out of a tuple that is written out beside the names."""
        value = binding.value
        if value is not None and binding.path == (0,) and "parse_known_args" in self._called_method(value):
            return value
        return written(binding)

    @staticmethod
    def _called_method(value: syntax.BaseExpression) -> str:
        if isinstance(value, syntax.Call) and isinstance(value.func, syntax.Attribute):
            return value.func.attr.value
        return ""

    def callee(self, call: syntax.Call) -> Definition | None:
        """See ``Script.callee``."""
        return self.calls.callee(call)

    def call_sites(self, function: syntax.FunctionDef) -> list[tuple[Script, syntax.Call]]:
        """See ``Script.call_sites``."""
        return self.calls.call_sites(function)

    @once(False)
    def shows_gpu(self) -> bool:
        """Whether this file alone shows that something is put on a GPU."""
        return self.shows_gpu_in(self.script.source.module)

    def shows_gpu_in(self, block: syntax.Node) -> bool:
        """Whether a part of this file alone shows that something is put on a GPU."""
        script, source = self.script, self.script.source
        if any(source.contains(block, call) for call in script.method_calls("cuda") if not script.name(call.func)):
            return True
        for string in source.inside(block, syntax.SimpleString):
            if str(string.evaluated_value).startswith("cuda") and b"torch" in source.data:
                return True
        defaults = (call for call in self.calls.made_of(library.ON_GPU_BY_DEFAULT) if source.contains(block, call))
        if any(not self._asks_for_cpu(call) for call in defaults):
            return True
        scaled = (call for call in script.calls(*library.SCALING_CONFIGS) if source.contains(block, call))
        used = (script.argument(call, "use_gpu", 2) for call in scaled)
        if any(each is not None and not is_name(each, "False") for each in used):
            return True
        moves = (call for call in script.method_calls("to") if source.contains(block, call))
        away = (call for call in moves if self.calls.place_of_move(call, Place.HOST) is not Place.HOST)
        return any((target := script.argument(call, "device", 0)) is None or not self._is_not_cuda(target) for call in away)

    def _is_not_cuda(self, device: syntax.BaseExpression, depth: int = 0) -> bool:
        """Whether an expression names devices that are none of CUDA's, and no other: ``"mps"`` or ``"cpu"``."""
        known = self.script.constant(device)
        if known is not None:
            return isinstance(known.value, str) and known.value.partition(":")[0] in library.NOT_CUDA
        found: list[bool] = []
        for script, node in self.origins(device) if depth <= _DEEPEST_DEVICE else ():
            parts = [node]
            match node:
                case syntax.IfExp(body=body, orelse=orelse):
                    parts = [body, orelse]
                case syntax.Call(args=[syntax.Arg(value=named), *_]) if script.is_call_to(node, "torch.device"):
                    parts = [named]
                case syntax.Call(func=func) if (script.name(func) or "").startswith(library.DEVICES_OF_OTHERS):
                    found.append(True)
                    continue
                case syntax.Call() if (callee := script.callee(node)) is not None:
                    script, parts = callee.script, list(returned(callee)) or parts
                case _ if script.constant(node) is None:
                    return False
            found += (script.roles._is_not_cuda(part, depth + 1) for part in parts)
        return bool(found) and all(found)

    def _asks_for_cpu(self, call: syntax.Call) -> bool:
        """Whether ``Trainer(accelerator="cpu")`` and the like keep a library from taking CUDA's GPU, or a file may."""
        defaults, parser = (self.script.argument(call, name) for name in ("trainer_defaults", "parser_kwargs"))
        entries = self.script.values.entries(defaults) if defaults is not None else None
        position = library.FABRIC_PARAMETERS.index("accelerator") if self.script.is_call_to(call, *library.FABRICS) else None
        asked = self.script.argument(call, "accelerator", position) or (entries or {}).get("accelerator")
        known = self.script.constant(asked) if asked is not None else None
        on_cpu = self.script.argument(call, "cpu")
        if on_cpu is None and (arguments := self.script.argument(call, "args", 1)) is not None:
            made = ((place, node) for place, node in self.origins(arguments) if isinstance(node, syntax.Call))
            told = (place.argument(node, name) for place, node in made for name in ("use_cpu", "no_cuda"))
            on_cpu = next((each for each in told if each is not None), None)
        is_on_cpu = on_cpu is not None and self.script.text(on_cpu) == "True"
        return is_on_cpu or parser is not None or (known is not None and known.value in library.NOT_CUDA)


def _prepared_as(value: Value | None, shown: Value) -> Value:
    """What the uses of a variable show it to be: on the GPU where it is out of sight what Accelerate has prepared there."""
    if value is None or value.place is not Place.GPU:
        return shown
    return at(shown, Place.GPU) if shown.role in (Role.LOADER, Role.MODULE, Role.UNKNOWN) else shown


def combined_place(values: list[Value]) -> Place:
    """Where the result of an operation on these tensors is: torch allows a host scalar beside device tensors."""
    places = {value.place for value in values}
    return Place.GPU if Place.GPU in places else join_places(places)


def _any_of(given: Iterable[Value | None]) -> Value | None:
    """What one element of ``*args`` or ``**kwargs`` may be: a tensor where a call passes one, on the GPU if any is."""
    given = list(given)
    tensors = [value for value in given if value is not None and value.role is Role.TENSOR]
    return next((value for value in tensors if value.place is Place.GPU), next(iter(tensors), None)) or join(given)


def _holds_one_kind(value: Value) -> bool:
    """Whether all entries of a dict that are written out are tensors, or none is: which one a name takes is not followed."""
    return len({entry.role in (Role.TENSOR, Role.BATCH) for _, entry in value.keys if entry is not None}) < 2


def is_loaded(script: Script, value: syntax.Node, depth: int = 2) -> bool:
    """Whether a value is an object that is read from a file, or an entry of one, here or by a first-party function that does
    nothing else."""
    if isinstance(value, syntax.Subscript):
        return is_loaded(script, value.value, depth)
    if isinstance(value, syntax.Name) and depth:
        bound = [written(each) for each in script.names.reaching(value)]
        return bool(bound) and all(each is not None and is_loaded(script, each, depth - 1) for each in bound)
    if not isinstance(value, syntax.Call):
        return False
    if script.name(value.func) in library.LOADS:
        return True
    made_by = script.definition(value.func) if depth else None
    if made_by is None or not isinstance(made_by.node, syntax.FunctionDef):
        return False
    given = list(returned(made_by))
    return bool(given) and all(is_loaded(made_by.script, each, depth - 1) for each in given)


def _is_number(value: Value) -> bool:
    """Whether a value is a number of Python's, or a sequence of such."""
    of = value.element if value.role is Role.SEQUENCE and value.element is not None else value
    return of.role is Role.NUMBER


def _is_of_graphs(dataset: Value) -> bool:
    """Whether a dataset is one of PyTorch Geometric's, whose items are graphs."""
    made = dataset.made
    return made is not None and (made.script.name(made.call.func) or "").startswith(library.GRAPH_DATASETS)


def _as_batch(value: Value | None) -> Value | None:
    """An item whose tensors are copied to a device as a loader's batch is."""
    if value is not None and value.role is Role.SEQUENCE:
        return value._replace(items=tuple(map(_as_batch, value.items)), element=_as_batch(value.element))
    is_data = value is not None and value.role is Role.TENSOR and value.place is Place.HOST
    return Value(Role.BATCH, Place.HOST) if is_data else value


def _first_parameter(function: syntax.FunctionDef) -> syntax.Param | None:
    return next(iter((*function.params.posonly_params, *function.params.params)), None)


def _is_reduction(value: syntax.Node | None) -> bool:
    match value:
        case syntax.Call(func=syntax.Attribute(attr=syntax.Name("mean" | "sum")), args=[]):
            return True
    return False


def _adds(method: tuple[str, syntax.Call]) -> bool:
    """Whether a method that is called adds to a list."""
    return method[0] in ("append", "extend") and len(method[1].args) == 1


def _sets_mode(train: syntax.Call) -> bool:
    """Whether it is ``train()``, ``train(True)`` or ``train(False)``."""
    match train.args:
        case [] | [syntax.Arg(value=syntax.Name("True" | "False"))]:
            return True
    return False
