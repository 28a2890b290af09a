"""What a call returns: of torch and its neighbours by table, of first-party code by its returns; and who calls whom."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING

from speedlint.disk import Mark, words
from speedlint.facts import syntax
from speedlint.solve import heirs, operations, reach
from speedlint.solve.flow import Layer, listed_once, once
from speedlint.solve.names import Binding, Kind, last_name, standing
from speedlint.solve.terms import (
    ARRAY,
    NONE,
    NUMBER,
    STRING,
    TENSOR,
    UNKNOWN,
    Definition,
    Made,
    Value,
    at,
    join,
    join_places,
)
from speedlint.solve.unpacking import NEXT, part, written
from speedlint.solve.values import returned
from speedlint.source import is_name
from speedlint.torch import distributions, library
from speedlint.torch.methods import MOVES
from speedlint.torch.words import Place, Role

if TYPE_CHECKING:
    from speedlint.ask.script import Script
    from speedlint.solve.roles import Roles

_OF_CLASSES = (Role.INSTANCE, Role.MODULE)
"""What an object of the project's classes may be."""
_OF_LIBRARY = (Role.TENSOR, Role.ARRAY, Role.NUMBER, Role.STRING, Role.DEVICE, Role.DTYPE)
"""What has a library's methods alone."""
_NUMBERS = frozenset("float int bool len round ord hash id isinstance hasattr issubclass callable any all".split())
_MAKES_ONE = frozenset({"from_pretrained", "from_config"})
"""Methods of a class that make an object of it."""
SAME_MODULE = frozenset("train eval half float double bfloat16 type requires_grad_ apply share_memory to_empty".split())
"""The methods of a module that return it, beside those that move it."""
_NOTHING_RUN: frozenset[syntax.Node] = frozenset()
_HOLDS_STEPS = (b".backward(", b"no_grad", b"inference_mode")
CALLED_AS = ("forward", "__call__")
"""The methods that a call of an object runs."""
_SPEAKS_OF_DEVICE = re.compile(r"cuda|gpu|device|\.to\(", re.IGNORECASE)
_SEEN_THROUGH = library.PARAMETERS | {"torch.autograd.Variable"}


_LEAVES_IN_PLACE = frozenset({"parameters", "named_parameters", "train", "eval", "zero_grad", "state_dict"})
"""Methods of a module that move it nowhere."""
_TENSORS = frozenset({Role.BATCH, Role.TENSOR, Role.MAPPING})
_DEEPEST = 4
"""Variables that a function gives one value one after the other, between what it is handed and what it returns."""


class Calls:
    """Answers for the calls of one script."""

    def __init__(self, script: Script, roles: Roles) -> None:
        self.script, self.roles = script, roles

    # What a call returns

    def value(self, call: syntax.Call) -> Value | None:
        """The value of a call; None inside a cycle."""
        dotted = self.script.name(call.func)
        if dotted is not None:
            imported = self.roles._imported(dotted)
            if imported is not None and imported.definition is not None:
                return self._of_definition(call, imported)
            return self._of_library(call, dotted)
        if (looked_up := self._of_looked_up(call)) is not None:
            return looked_up
        if isinstance(call.func, syntax.Attribute):
            if isinstance(call.func.value, syntax.Call) and self.script.name(call.func.value.func) == "super":
                return UNKNOWN
            base = self.roles.evaluate(call.func.value)
            if base is None:
                return None
            known = self._of_method(call, base, call.func.attr.value)
            if known is not None:
                return known
            if base.role in _OF_CLASSES and base.definition is None and base.made is None:
                return self._of_several(call.func.value, call.func.attr.value)
        function = self.roles.evaluate(call.func)
        if function is None:
            return None
        found = self._of_value(call, function)
        return UNKNOWN if found is not None and found.role is Role.TENSOR and self._may_give_number(call) else found

    def _may_give_number(self, call: syntax.Call) -> bool:
        """Whether a class calls a method of its own in whose place an heir has one that gives a number."""
        results = (method.script.roles.calls.result(method) for method in heirs.in_place_of(self.script, call))
        return any(each is not None and each.role is Role.NUMBER for each in results)

    def _of_several(self, holder: syntax.BaseExpression, name: str) -> Value | None:
        """What a method gives of an object that is of one of several first-party classes, all of which have it."""
        values = list(self.roles.chosen(holder))
        if not self.roles.knows_all_chosen(holder) or any(each.role not in _OF_CLASSES for each in values):
            return UNKNOWN
        methods = [self.method(each.definition, name) for each in values if each.definition is not None]
        known = [method for method in methods if method is not None and not method.node.decorators]
        if not known or len(known) < len(methods):
            return UNKNOWN
        results = [each for method in known if (each := method.script.roles.calls.result(method)) is not None]
        if any(map(_mixes_numbers, results, results[1:])):
            return UNKNOWN
        found = join(results)
        if found is None or found.role is not Role.MAPPING:
            return found
        keys = tuple((key, _or_assumed(value, [dict(each.keys).get(key) for each in results])) for key, value in found.keys)
        return found._replace(element=_or_assumed(found.element, [each.element for each in results]), keys=keys)

    def _of_looked_up(self, call: syntax.Call) -> Value | None:
        """What a call makes of a class that is looked up in a module of a library's by a name, ``getattr(optim, name)(...)``
        or ``optim.__dict__[name](...)``, where all classes of the module make the like; None of any other call."""
        match call.func:
            case syntax.Call(func=syntax.Name("getattr"), args=[syntax.Arg(value=module), _, *_]):
                dotted = self.script.name(module) or ""
            case syntax.Subscript(value=syntax.Attribute(value=module, attr=syntax.Name("__dict__"))):
                dotted = self.script.name(module) or ""
            case _:
                return None
        if dotted == "torch.optim" and call.args:
            return Value(Role.OPTIMIZER, made=Made(self.script, call))
        if dotted == "torch.optim.lr_scheduler":
            return Value(Role.SCHEDULER)
        is_module = dotted == "torch.nn" or f"{dotted}.".startswith(library.MODULE_FACTORIES)
        return Value(Role.MODULE, made=Made(self.script, call)) if is_module else None

    def _of_value(self, call: syntax.Call, function: Value) -> Value | None:
        if function.role in (Role.FUNCTION, Role.CLASS) and function.definition is not None:
            return self._of_definition(call, function)
        if function.role is Role.MODULE:
            return self._of_module(call, function)
        if function.role is Role.INSTANCE and function.definition is not None:
            method = self.method(function.definition, "__call__")
            return method.script.roles.calls.result(method) if method else UNKNOWN
        if function.role is Role.FUNCTION and function.made is not None:
            return function.made.script.roles.calls._of_partial(function.made.call)
        if function.role in (Role.FUNCTION, Role.CLASS) or function.differs or self.tensor_types(call.func):
            return self._of_choices(call)
        return UNKNOWN

    def _of_partial(self, partial: syntax.Call) -> Value | None:
        """What the function gives that ``functools.partial`` fills in, whatever else it is handed."""
        function = self._first(partial)
        if function is None or function.definition is None or function.role not in (Role.FUNCTION, Role.CLASS):
            return function and UNKNOWN
        if isinstance(function.definition.node, syntax.ClassDef):
            return self.instance(function.definition)
        return function.definition.script.roles.calls.result(function.definition)

    def tensor_types(self, function: syntax.BaseExpression) -> list[str]:
        """The types of torch's tensors that a variable stands for: ``FloatTensor`` of the CPU or the GPU, by a condition."""
        if not isinstance(function, syntax.Name) or b"Tensor" not in self.script.source.data:
            return []
        names = [script.name(each) or "" for script, each in self.choices(function)]
        return names if all(name in library.FACTORIES | library.CUDA_FACTORIES for name in names) else []

    def _of_choices(self, call: syntax.Call) -> Value | None:
        choices = self.choices(call.func)
        found = join(self._of_choice(call, script, choice) for script, choice in choices) if choices else UNKNOWN
        return found._replace(made=None) if found is not None else None

    def _of_choice(self, call: syntax.Call, script: Script, choice: syntax.BaseExpression) -> Value | None:
        """What a call gives where its function is a choice that is written in some script."""
        if isinstance(choice, syntax.Lambda):
            return script.roles.evaluate(choice.body)
        dotted = script.name(choice)
        if dotted is not None and script.imported(dotted) is None:
            return self._of_library(call, dotted)
        function = script.roles.evaluate(choice)
        if function is None or function.definition is None or function.role not in (Role.FUNCTION, Role.CLASS):
            return function and UNKNOWN
        return self._of_definition(call, function)

    @once([])
    def choices(self, function: syntax.BaseExpression) -> list[tuple[Script, syntax.BaseExpression]]:
        """The functions, classes and lambdas that branches, a dict or a function choose what is called from; none where not
        all of them are in sight."""
        match function:
            case syntax.IfExp():
                return self._all_of((self.script, each) for each in _branches(function))
            case syntax.Name():
                bound = [self._entries_bound(binding) for binding in self.script.names.reaching(function)]
                return [each for choices in bound for each in choices] if all(bound) else []
            case syntax.Subscript(value=held):
                tables = list(self.roles.origins(held))
                if not all(_entries(table) and _stays_as_written(script, table) for script, table in tables):
                    return []
                return [(script, each) for script, table in tables for each in _entries(table)]
            case syntax.Attribute():
                given = list(self.roles.origins(function))
                return given if all(isinstance(each, syntax.Lambda) for _, each in given) else []
            case syntax.Call():
                callee = self.script.definition(function.func)
                is_function = callee is not None and isinstance(callee.node, syntax.FunctionDef)
                return self._all_of((callee.script, each) for each in returned(callee)) if callee and is_function else []
        return []

    def _entries_bound(self, binding: Binding) -> list[tuple[Script, syntax.BaseExpression]]:
        """What an assignment chooses a name's value from, also where ``a, b = TABLE[name]`` takes each entry apart, or
        ``a, b = chosen(name)`` each result."""
        value = written(binding)
        if value is not None:
            return self._all_of([(self.script, value)])
        if binding.kind is Kind.ASSIGN and isinstance(binding.value, syntax.Call):
            return self._all_of(self.roles.parts_of(binding.value, binding.path))
        if binding.kind is not Kind.ASSIGN or not isinstance(binding.value, syntax.Subscript):
            return []
        parts = [(script, *part(entry, binding.path)) for script, entry in self.choices(binding.value)]
        return [] if any(rest for _, _, rest in parts) else self._all_of((script, found) for script, found, _ in parts)

    def may_give(self, call: syntax.Call, seen: set[syntax.Node]) -> Iterator[Value]:
        """What a call may give where all of it is known and the project's: an object of each class that its function may be,
        as of ``TABLE[name](...)`` or ``kind.from_pretrained(...)``, or what each return of its function gives."""
        makes, by = call.func, ""
        if isinstance(makes, syntax.Attribute) and makes.attr.value in _MAKES_ONE:
            makes, by = makes.value, makes.attr.value
        choices = [(self.script, makes)] if self.script.definition(makes) is not None else self.choices(makes)
        found = [script.roles.calls._given_by(choice, by, seen) for script, choice in choices]
        yield from chain.from_iterable(found) if all(found) else ()

    def _given_by(self, makes: syntax.BaseExpression, by: str, seen: set[syntax.Node]) -> list[Value]:
        """What a call of a class, or of its method that makes an object, or of a function gives; nothing where not all of
        that is known."""
        kind = self.script.definition(makes)
        if kind is None or (by and self.method(kind, by) is not None):
            return []
        if isinstance(kind.node, syntax.ClassDef):
            return [self.instance(kind)]
        if by or not isinstance(kind.node, syntax.FunctionDef) or self._is_generator(kind):
            return []
        roles, results = kind.script.roles, list(returned(kind))
        if not all(roles.knows_all_chosen(result) for result in results):
            return []
        return [value for result in results for value in roles.chosen(result, seen)]

    def _all_of(
        self, chosen: Iterable[tuple[Script, syntax.BaseExpression | None]]
    ) -> list[tuple[Script, syntax.BaseExpression]]:
        """What each of some expressions chooses from, itself where it is one function, class or lambda."""
        found: list[tuple[Script, syntax.BaseExpression]] = []
        for script, each in chosen:
            if isinstance(each, (syntax.Subscript, syntax.Call, syntax.IfExp)):
                inner = script.roles.calls.choices(each)
                if not inner:
                    return []
                found += inner
            elif each is not None:
                found.append((script, each))
        return found

    def _of_definition(self, call: syntax.Call, function: Value) -> Value | None:
        definition = function.definition
        assert definition is not None
        if isinstance(definition.node, syntax.ClassDef):
            if self.is_own_wrapper(call, library.DISTRIBUTED_WRAPPERS) and self.method(definition, "forward") is None:
                wrapped = self._first(call)
                return wrapped._replace(role=Role.MODULE) if wrapped else None
            made = self.instance(definition)._replace(made=Made(self.script, call), assumed=function.assumed)
            # What a network of an heir is made of is not known.
            return made._replace(definition=None) if made.assumed and made.role is Role.MODULE else made
        result = definition.script.roles.calls.result(definition)
        if result is not None and result.role is Role.UNKNOWN and self._is_generator(definition):
            given = yielded(definition)
            taken = self._generated(call)
            if taken.role is Role.UNKNOWN:
                return Value(Role.SEQUENCE, element=given)
            return taken if given is None or given.role is Role.UNKNOWN else taken._replace(element=_come_from(given, taken))
        if result is not None and result.role is Role.UNKNOWN:
            return self._handed_back(call, definition) or result
        return self._kept_on_host(call, definition, result) if result is not None else None

    def _kept_on_host(self, call: syntax.Call, function: Definition, result: Value) -> Value | None:
        """A tensor that a function returns is on the host if it is made of what a call hands it there, and nothing else."""
        if result.role is not Role.TENSOR or result.place is not Place.EITHER or not call.args:
            return result
        passed = [value for arg in call.args if (value := self.roles.evaluate(arg.value)) is not None]
        if len(passed) < len(call.args):
            return None
        given = [value for value in passed if value.role not in (Role.NUMBER, Role.STRING, Role.NONE)]
        names = function.script.source.inside(function.node, syntax.Name)
        is_moved = _may_move(function) or any(name.value == "self" for name in names)
        beside_array = any(value.role is Role.ARRAY for value in given)  # what is computed with it cannot be on a GPU
        on_host = (value.place is Place.HOST or (beside_array and value.role is Role.UNKNOWN) for value in given)
        return at(result, Place.HOST) if given and not is_moved and all(on_host) else result

    def _handed_back(self, call: syntax.Call, function: Definition) -> Value | None:
        """What a function gives back that hands on the tensor or module that a call hands to it, or a view or a copy of it,
        where it takes one thing in one call and another in the next; None of any other function."""
        place, node = function.script, function.node
        assert isinstance(node, syntax.FunctionDef)
        given: dict[syntax.Node, Value] = {}
        for each in (*node.params.posonly_params, *node.params.params):
            passed = place.values.given(node, each, self.script, call)
            value = self.roles.evaluate(passed) if passed is not None else None
            if value is not None and value.role in (Role.TENSOR, Role.BATCH, Role.MODULE):
                given[each] = value
        if not given:
            return None
        found = [place.roles.calls._handed_on(each, given, _DEEPEST) for each in returned(function)]
        return join(found) if found and None not in found else None

    def _handed_on(self, node: syntax.BaseExpression, given: dict[syntax.Node, Value], depth: int) -> Value | None:
        """What an expression is where some parameters are tensors or modules; None where it is something else."""
        match node:
            case syntax.Name() if depth:
                bound = self.script.names.reaching(node)
                found = [
                    given.get(each.node)
                    if each.kind is Kind.PARAMETER
                    else self._handed_on(each.value, given, depth - 1)
                    if each.kind is Kind.ASSIGN and not each.path and each.value is not None
                    else None
                    for each in bound
                ]
                return join(found) if found and None not in found else None
            case syntax.Call(args=[syntax.Arg(value=inner), *_]) if self.script.name(node.func) in _SEEN_THROUGH:
                return self._handed_on(inner, given, depth)
            case syntax.Call(func=syntax.Attribute(value=inner, attr=syntax.Name(value=name))) as call:
                base = self._handed_on(inner, given, depth)
                return self._of_method(call, base, name) if base is not None else None
            case syntax.IfExp(body=one, orelse=other):
                both = [self._handed_on(each, given, depth) for each in (one, other)]
                return join(both) if None not in both else None
        return None

    def _is_generator(self, definition: Definition) -> bool:
        return next(_yields(definition), None) is not None

    def iterated(self, definition: Definition) -> Value | None:
        """What iterating over an object of a first-party class yields: by its ``__next__``, or its ``__iter__``."""
        following = self.method(definition, "__next__")
        if following is not None:
            return following.script.roles.calls.result(following)
        started = self.method(definition, "__iter__")
        if started is None:
            return UNKNOWN
        if self._is_generator(started):
            return yielded(started)
        result = started.script.roles.calls.result(started)
        return started.script.roles._element(result) if result is None or result.definition != definition else UNKNOWN

    def gives_by_number(self, definition: Definition) -> bool:
        """Whether iterating over an object takes its items by their number, as Python does where a class has only that."""
        named = (self.method(definition, name) for name in ("__getitem__", "__iter__", "__next__"))
        return [each is not None for each in named] == [True, False, False]

    def _generated(self, call: syntax.Call) -> Value:
        """A first-party generator that takes a loader hands on what the loader yields."""
        for arg in call.args:
            value = self.roles.evaluate(arg.value)
            if value is not None and value.role is Role.LOADER:
                return value
        return UNKNOWN

    def result(self, function: Definition) -> Value | None:
        """What a function of this script returns, whoever calls it."""
        return self.script.program.flow.ask(("result", function.node), lambda: self._result(function), None, unknown=UNKNOWN)

    def _result(self, function: Definition) -> Value | None:
        found = [self.roles.evaluate(value) for value in returned(function)]
        return join(found) if found else UNKNOWN

    def _of_module(self, call: syntax.Call, module: Value) -> Value | None:
        if module.definition is not None:
            forward = self.method(module.definition, "forward")
            if forward is not None:
                result = forward.script.roles.calls.result(forward)
                if result is None:
                    return None
                if result.role is not Role.UNKNOWN:
                    return self._left_on_host(call, module, forward, _moved_all(result, module.place))
        inputs = [self.roles.evaluate(arg.value) for arg in call.args]
        if None in inputs:
            return None
        tensors = [value for value in inputs if value and value.role in (Role.TENSOR, Role.BATCH)]
        places = {value.place for value in tensors}
        if places == {Place.HOST} and module.place is not Place.GPU and any(each.role is Role.TENSOR for each in tensors):
            return at(TENSOR, Place.HOST) if self._is_loss(module) else TENSOR
        return Value(Role.TENSOR, Place.GPU if Place.GPU in (*places, module.place) else Place.EITHER)

    def _is_loss(self, module: Value) -> bool:
        """Whether a module is one of torch's losses, which compute where their inputs are."""
        name = module.made.script.name(module.made.call.func) if module.made is not None else None
        return name is not None and name.startswith("torch.nn.") and name.endswith("Loss")

    def _left_on_host(self, call: syntax.Call, module: Value, forward: Definition, result: Value) -> Value | None:
        """What a module returns is on the host where all that it takes is made there, or comes out of a loader and the
        module stays in its function, and nothing shows that it is moved: a module on a GPU cannot take it."""
        if result.role is not Role.TENSOR or result.place is not Place.EITHER or module.place is not Place.EITHER:
            return result
        made_by = module.made.call.func if module.made is not None else None
        if module.made is None or made_by is None or not call.args:
            return result
        inputs = [self.roles.evaluate(arg.value) for arg in call.args]
        if None in inputs:
            return None
        are_made_here = all(_is_made_here(self.script, arg.value) for arg in call.args)
        are_loaded = all(value is not None and value.role in (Role.BATCH, Role.TENSOR) and value.made for value in inputs)
        if not are_made_here and not (are_loaded and self._stays_here(module.made)):
            return result
        on_host = all(value is not None and value.place is Place.HOST for value in inputs)
        return at(result, Place.HOST) if on_host and not _may_move(forward) else result

    def _stays_here(self, module: Made) -> bool:
        """Whether a module is only called where it is made, and asked for its parameters or mode: nothing moves it."""
        script, source = module.script, module.script.source
        if script.program.mentions(script, b"set_default_"):
            return False
        match source.parents[module.call]:
            case syntax.Assign(targets=[syntax.AssignTarget(target=syntax.Name() as name)]) if script is self.script:
                uses = [use for use in script.names.uses(name) if use is not name]
            case _:
                return False
        for use in uses:
            method = self.roles._method_called(use)
            up = source.parents[use]
            is_called = isinstance(up, syntax.Call) and up.func is use
            is_returned = isinstance(source.enclosing(use, syntax.Call, syntax.Return), syntax.Return)
            if not is_called and not is_returned and (method is None or method[0] not in _LEAVES_IN_PLACE):
                return False
        return bool(uses)

    # Library functions

    def _of_library(self, call: syntax.Call, dotted: str) -> Value | None:
        if "." not in dotted:
            return self._of_builtin(call, dotted)
        if dotted in library.LOADERS:
            made = Made(self.script, call)
            return Value(Role.LOADER, Place.HOST, made=made, element=self.roles.batch_of(made))
        if (
            dotted in library.WRAPPERS_OF_ITERABLES
            or dotted in _SEEN_THROUGH
            or dotted == "dataclasses.replace"
            or dotted in library.COMPILERS
        ):
            first = self._first(call)
            return TENSOR if dotted in library.PARAMETERS and first == UNKNOWN else first
        if dotted == "collections.OrderedDict":
            return self._first(call) if call.args else self._of_builtin(call, "dict")
        if dotted in library.DISTRIBUTED_WRAPPERS:
            wrapped = self._first(call)
            return wrapped._replace(role=Role.MODULE) if wrapped else Value(Role.MODULE)
        if dotted == "functools.partial":
            return Value(Role.FUNCTION, made=Made(self.script, call))
        if dotted in library.SCALERS:
            return Value(Role.SCALER, made=Made(self.script, call))
        if dotted in library.SIMPLE_ROLES:
            place = self.device_place(call) if dotted == "torch.device" else Place.EITHER
            return Value(library.SIMPLE_ROLES[dotted], place, made=Made(self.script, call))
        if dotted.startswith("torch.optim.lr_scheduler."):
            return Value(Role.SCHEDULER)
        if library.makes_optimizer(dotted):
            return Value(Role.OPTIMIZER, made=Made(self.script, call))
        if dotted.startswith("torch."):
            return self._of_torch(call, dotted)
        if dotted.startswith(library.HOST_LIBRARIES):
            return self._of_host_library(dotted)
        if dotted.startswith(library.MODULE_FACTORIES) or _is_transformers_model(dotted) or _is_graph_layer(dotted):
            return Value(Role.MODULE, made=Made(self.script, call))
        if dotted.startswith(("torchvision.datasets.", "datasets.load_dataset", library.GRAPH_DATASETS)):
            return Value(Role.DATASET, made=Made(self.script, call))
        if dotted in library.INSTANTIATORS and call.args:
            options = any(arg.star or (arg.keyword is not None and arg.keyword.value[:1] == "_") for arg in call.args)
            return UNKNOWN if options else self._instantiated(call)
        if dotted.startswith("einops."):
            return self._first(call)
        if dotted == "apex.amp.master_params":
            return Value(Role.SEQUENCE, element=Value(Role.TENSOR, Place.GPU))
        return UNKNOWN

    def _instantiated(self, call: syntax.Call) -> Value | None:
        """What Hydra makes of a configuration, where all that it may be is the project's own, or the like of a library's."""
        from speedlint.solve import configs

        made: list[Value | None] = []
        for dotted in configs.targets(self.script, call.args[0].value):
            definition = self.script.imported(dotted)
            if definition is not None:
                is_class = isinstance(definition.node, syntax.ClassDef)
                made.append(self.instance(definition) if is_class else definition.script.roles.calls.result(definition))
            else:
                made.append(Value(Role.OPTIMIZER) if library.makes_optimizer(dotted) else UNKNOWN)
        return join(made) if made else UNKNOWN

    def _of_host_library(self, dotted: str) -> Value:
        if dotted.startswith(("math.", "time.", "random.", "os.")):
            return NUMBER if dotted.startswith(("math.", "time.", "random.")) else STRING
        if dotted.startswith("copy."):
            return UNKNOWN
        return ARRAY if dotted.startswith(("numpy.", "scipy.", "sklearn.", "cv2.", "skimage.")) else UNKNOWN

    def _first(self, call: syntax.Call) -> Value | None:
        """What a call is handed first, also as the first of ``*args``."""
        given = self.roles.evaluate(call.args[0].value) if call.args else UNKNOWN
        if given is None or not call.args or call.args[0].star != "*" or given.role is not Role.SEQUENCE:
            return given
        return given.items[0] if given.items else given.element or UNKNOWN

    def _of_builtin(self, call: syntax.Call, name: str) -> Value | None:
        if name in _NUMBERS:
            return NUMBER
        if name in ("str", "repr", "format", "input"):
            return STRING
        if name in ("list", "tuple", "set", "sorted", "reversed", "iter", "min", "max", "abs"):
            return self._first(call) if call.args else Value(Role.SEQUENCE)
        if name == "range":
            return Value(Role.SEQUENCE, element=NUMBER)
        if name == "enumerate":
            element = self.roles._element(self._first(call)) if call.args else UNKNOWN
            return Value(Role.SEQUENCE, element=Value(Role.SEQUENCE, items=(NUMBER, element)))
        if name == "zip":
            items = tuple(self.roles._element(self.roles.evaluate(arg.value)) for arg in call.args)
            return Value(Role.SEQUENCE, element=Value(Role.SEQUENCE, items=items))
        if name == "filter" and len(call.args) > 1:
            return Value(Role.SEQUENCE, element=self.roles._element(self.roles.evaluate(call.args[1].value)))
        if name == "map" and call.args:
            return Value(Role.SEQUENCE, element=self._each(call.args[0].value))
        if name in ("next", "sum"):
            return self.roles._element(self._first(call)) if call.args else UNKNOWN
        if name == "getattr" and len(call.args) > 1 and self.script.constant(call.args[1].value) is None:
            holder = self._first(call)
            return holder if holder is None or holder.role is Role.BATCH else UNKNOWN
        if name == "dict":
            keys = tuple((a.keyword.value, self.roles.evaluate(a.value)) for a in call.args if a.keyword)
            return Value(Role.MAPPING, keys=keys, element=join(value for _, value in keys))
        return UNKNOWN

    def _each(self, function: syntax.BaseExpression) -> Value | None:
        """What a function gives that is called on one thing after the other."""
        if isinstance(function, syntax.Lambda):
            return self.roles.evaluate(function.body)
        definition = self.script.definition(function)
        if definition is None or not isinstance(definition.node, syntax.FunctionDef):
            return UNKNOWN
        return definition.script.roles.calls.result(definition)

    def _of_torch(self, call: syntax.Call, dotted: str) -> Value | None:
        name = dotted.rpartition(".")[2]
        if dotted in library.FACTORIES:
            return Value(Role.TENSOR, self._device_argument(call, Place.HOST))
        if dotted in library.CUDA_FACTORIES:
            return Value(Role.TENSOR, Place.GPU)
        if dotted in library.LIKE_FACTORIES:
            base = self._first(call)
            return Value(Role.TENSOR, self._device_argument(call, base.place if base else Place.EITHER))
        if dotted in library.TENSOR_UTILITIES:
            since, target = library.TENSOR_UTILITIES[dotted], self.script.options.torch
            return UNKNOWN if since is None else TENSOR if target is None or target >= since else NUMBER
        if dotted.startswith("torch.nn.modules.utils."):
            return Value(Role.SEQUENCE, element=NUMBER)
        if dotted in library.NOT_TENSORS or dotted.startswith(library.NOT_TENSOR_PACKAGES):
            return NUMBER if name.startswith(("is_", "get_", "memory", "max_memory")) else UNKNOWN
        if dotted.startswith("torch.nn.") and not dotted.startswith(library.FUNCTIONS_OF_NN):
            return Value(Role.MODULE, made=Made(self.script, call)) if name[:1].isupper() else TENSOR
        if dotted.startswith(distributions.PACKAGE):
            place = self._place_of_parameters(call)
            return Value(Role.INSTANCE if name[:1].isupper() else Role.TENSOR, place, made=Made(self.script, call))
        is_private = dotted.startswith("torch._")
        if name[:1].isupper() or is_private or dotted.startswith(library.NO_TENSOR_PACKAGES):
            return UNKNOWN
        has_dim = self._has_dim(call, 1)
        if has_dim is None and name in library.PAIRS_WITH_DIM:
            return None
        return torch_method(name, self._argument_tensor(call), bool(has_dim))

    def _place_of_parameters(self, call: syntax.Call) -> Place:
        """Where a probability distribution lies: with its parameters, or with the distributions that it is made of."""
        values = [self.roles.evaluate(arg.value) for arg in call.args]
        kinds = (Role.TENSOR, Role.BATCH, Role.INSTANCE)
        places = {value.place for value in values if value is not None and value.role in kinds}
        return Place.EITHER if not places else Place.GPU if Place.GPU in places else join_places(places)

    def is_distribution(self, value: Value) -> bool:
        """Whether a value is one of torch's probability distributions, or an object of a class derived from one."""
        if value.role is not Role.INSTANCE:
            return False
        if value.definition is not None:
            return any(base.startswith(distributions.PACKAGE) for base in self.foreign_bases(value.definition))
        made = value.made
        return made is not None and (made.script.name(made.call.func) or "").startswith(distributions.PACKAGE)

    def _argument_tensor(self, call: syntax.Call) -> Value:
        tensors = []
        for arg in call.args:
            value = self.roles.evaluate(arg.value)
            if value is not None and value.role is Role.SEQUENCE:
                value = value.element or (join(value.items) if value.items else None)
            if value is not None and value.role in (Role.TENSOR, Role.BATCH):
                tensors.append(value)
        if not tensors:
            return at(TENSOR, Place.HOST) if self._is_for_items(call) else TENSOR
        places = {value.place for value in tensors}
        return Value(Role.TENSOR, Place.GPU if Place.GPU in places else join_places(places))

    def _is_for_items(self, call: syntax.Call) -> bool:
        """Whether a call makes something for the items of a dataset whose class says nothing of a device: they are put
        together on the host."""
        function = self.script.function(call)
        owner = self.script.names.owner(function) if function is not None else None
        return owner is not None and function in self._item_functions(owner)

    @once([])
    def _item_functions(self, owner: syntax.ClassDef) -> list[syntax.FunctionDef]:
        is_dataset = any(library.is_dataset_class(base) for base in self.foreign_bases(Definition(self.script, owner)))
        is_plain = is_dataset and _SPEAKS_OF_DEVICE.search(self.script.text(owner)) is None
        return item_functions(self.script, owner) if is_plain else []

    def _has_dim(self, call: syntax.Call, position: int) -> bool | None:
        """Whether a dimension is passed, not a second tensor as to ``torch.min(a, b)``; None where it is not known yet."""
        given = self.script.argument(call, "dim", position)
        if given is None:
            return False
        value = self.roles.evaluate(given)
        return None if value is None else value.role not in (Role.TENSOR, Role.BATCH)

    def _device_argument(self, call: syntax.Call, otherwise: Place) -> Place:
        device = self.script.argument(call, "device")
        return self.device_of(device) if device is not None else otherwise

    # Devices

    def device_place(self, call: syntax.Call) -> Place:
        """The place that ``torch.device(...)`` names."""
        return self.device_of(call.args[0].value) if call.args else Place.EITHER

    def device_of(self, expression: syntax.BaseExpression) -> Place:
        """The place that a device, a device string or an index names."""
        if isinstance(expression, syntax.IfExp):
            return join_places((self.device_of(expression.body), self.device_of(expression.orelse)))
        constant = self.script.constant(expression)
        if constant is not None and isinstance(constant.value, str):
            kind = constant.value.partition(":")[0]
            return {"cpu": Place.HOST, "cuda": Place.GPU}.get(kind, Place.EITHER)
        if constant is not None and isinstance(constant.value, int):
            return Place.GPU
        value = self.roles.evaluate(expression)
        if value is not None and value.role in (Role.DEVICE, Role.TENSOR, Role.BATCH):
            return value.place
        return Place.EITHER

    def place_of_move(self, call: syntax.Call, before: Place) -> Place:
        """Where ``x.to(...)`` or ``x.cuda()`` leaves a tensor that was at ``before``."""
        assert isinstance(call.func, syntax.Attribute)
        if call.func.attr.value == "cuda":
            return Place.GPU
        target = self.script.argument(call, "device", 0)
        if target is None:
            return before
        if self.is_dtype(target):
            return before
        return self.device_of(target)

    def is_dtype(self, expression: syntax.BaseExpression) -> bool:
        """Whether an expression is a dtype such as ``torch.float32`` or ``x.dtype``."""
        name = self.script.name(expression)
        if name in library.DTYPES:
            return True
        if isinstance(expression, syntax.Attribute) and expression.attr.value == "dtype":
            return True
        value = self.roles.evaluate(expression)
        return value is not None and value.role is Role.DTYPE

    # Methods

    def _of_method(self, call: syntax.Call, base: Value, name: str) -> Value | None:
        """What a method of a known kind of value returns; None where the method is first-party or not known."""
        match call.args:
            case [_, syntax.Arg(value=syntax.List() | syntax.Dict() as default)] if name in ("get", "pop"):
                return Value(Role.SEQUENCE if isinstance(default, syntax.List) else Role.MAPPING, element=UNKNOWN)
        match base.role:
            case Role.TENSOR | Role.BATCH:
                return self._of_tensor_method(call, base, name)
            case Role.MODULE:
                return self._of_module_method(call, base, name)
            case Role.INSTANCE if name in distributions.GIVEN and self.is_distribution(base):
                own = self.method(base.definition, name) if base.definition is not None else None
                return Value(Role.TENSOR, base.place) if own is None else None
            case Role.SCALER if name == "scale":
                return self._first(call)
            case Role.ARRAY:
                return NUMBER if name == "item" else ARRAY
            case Role.STRING | Role.NUMBER:
                return base
            case Role.OPTIMIZER | Role.SCHEDULER:
                return Value(Role.MAPPING, element=UNKNOWN) if name == "state_dict" else UNKNOWN
            case Role.MAPPING:
                return self._of_mapping_method(call, base, name)
            case Role.SEQUENCE if name == "pop":
                return self.roles._element(base)
            case Role.LOADER | Role.SEQUENCE if name == "__iter__":
                return base
            case Role.LOADER | Role.SEQUENCE if name in NEXT:
                return self.roles._element(base)
            case Role.SEQUENCE:
                return UNKNOWN
            case Role.UNKNOWN if name == "cpu" or (name == "to" and self.place_of_move(call, Place.EITHER) is Place.HOST):
                return at(UNKNOWN, Place.HOST)
            case Role.UNKNOWN if base.place is Place.HOST and name not in MOVES:
                return torch_method(name, base, bool(call.args))
            case Role.UNKNOWN if name in library.NEW_TENSORS:
                return at(TENSOR, self._device_argument(call, Place.EITHER))
            case Role.UNKNOWN if name in ("prepare", "setup_dataloaders", "prepare_data_loader"):
                return self._prepared(call)
            case Role.UNKNOWN if name in library.GATHERS and self._is_accelerator(call):
                gathered = self._first(call)
                return at(gathered if gathered and gathered.role is Role.TENSOR else TENSOR, Place.GPU)
            case Role.UNKNOWN if name in ("log_every",):
                return self._generated(call)
        return None

    def _is_accelerator(self, method: syntax.Call) -> bool:
        """Whether a method is one of Accelerate's ``Accelerator``."""
        assert isinstance(method.func, syntax.Attribute)
        origins = self.roles.origins(method.func.value)
        return bool(method.args) and any(script.is_call_to(made, *library.ACCELERATORS) for script, made in origins)

    def _prepared(self, call: syntax.Call) -> Value | None:
        """Accelerate's ``prepare`` hands back its arguments, on the device."""
        items = tuple(self.roles.evaluate(arg.value) for arg in call.args)
        moved = tuple(
            at(item, Place.GPU) if item is not None and item.role in (Role.MODULE, Role.LOADER, Role.UNKNOWN) else item
            for item in items
        )
        return moved[0] if len(moved) == 1 else Value(Role.SEQUENCE, items=moved)

    def _of_mapping_method(self, call: syntax.Call, base: Value, name: str) -> Value | None:
        element = base.element
        if name == "items":
            return Value(Role.SEQUENCE, element=Value(Role.SEQUENCE, items=(STRING, element)))
        if name == "values":
            return Value(Role.SEQUENCE, element=element)
        if name == "keys":
            return Value(Role.SEQUENCE, element=STRING)
        if name in ("get", "pop") and call.args and isinstance(call.args[0].value, syntax.SimpleString):
            return dict(base.keys).get(str(call.args[0].value.evaluated_value), element)
        return UNKNOWN

    def _of_tensor_method(self, call: syntax.Call, base: Value, name: str) -> Value:
        if name == "to" or name == "cuda":
            place = self.place_of_move(call, base.place)
            if place is base.place and base.role is Role.BATCH and name == "to" and not call.args:
                return base
            return base._replace(role=Role.TENSOR, place=place, assumed=False)
        if name == "type_as":
            other = self.script.argument(call, "other", 0)
            like = self.roles.evaluate(other) if other is not None else None
            is_tensor = like is not None and like.role in (Role.TENSOR, Role.BATCH)
            return base._replace(role=Role.TENSOR, place=like.place if like and is_tensor else Place.EITHER, assumed=False)
        if base.role is Role.BATCH and name in ("items", "values", "keys"):
            return Value(Role.SEQUENCE, element=Value(Role.SEQUENCE, items=(STRING, base)) if name == "items" else base)
        if name.startswith(("num_", "number_of_")):
            return NUMBER
        beside_tensor = name in library.PAIRS_WITH_DIM and self._has_dim(call, 0) is False
        return torch_method(name, base, bool(call.args) and not beside_tensor)

    def _of_module_method(self, call: syntax.Call, base: Value, name: str) -> Value | None:
        if name in ("to", "cuda"):
            return at(base, self.place_of_move(call, base.place))
        if name == "cpu":
            return at(base, Place.HOST)
        if name in SAME_MODULE and (base.definition is None or self.method(base.definition, name) is None):
            return base
        if name in ("parameters", "buffers"):
            return Value(Role.SEQUENCE, element=at(TENSOR, base.place))
        if name in ("named_parameters", "named_buffers"):
            return Value(Role.SEQUENCE, element=Value(Role.SEQUENCE, items=(STRING, at(TENSOR, base.place))))
        if name in ("modules", "children"):
            return Value(Role.SEQUENCE, element=Value(Role.MODULE))
        if name == "state_dict":
            return Value(Role.MAPPING, element=at(TENSOR, base.place))
        if name in ("forward", "__call__"):
            return self._of_module(call, base)
        return UNKNOWN if base.definition is None and base.made is not None else None

    # Classes

    def instance(self, definition: Definition) -> Value:
        """An object of a first-party class, by its bases."""
        role, place = Role.INSTANCE, Place.EITHER
        for base in self.foreign_bases(definition):
            if _is_module_class(base):
                role = Role.MODULE
            elif library.is_dataset_class(base):
                role = Role.DATASET
            elif base in library.LOADERS:
                role = Role.LOADER
            elif base.startswith("torch.optim.lr_scheduler."):
                role = Role.SCHEDULER
            elif base.startswith("torch.optim."):
                role = Role.OPTIMIZER
            elif base == "torch.utils.data.Sampler" or base.startswith("torch.utils.data.sampler."):
                role = Role.SAMPLER
        return Value(role, place, definition=definition)

    def foreign_bases(self, definition: Definition) -> Iterator[str]:
        """The library classes that a first-party class derives from, through first-party bases."""
        for owner in self.lineage(definition):
            assert isinstance(owner.node, syntax.ClassDef)
            for base in owner.node.bases:
                dotted = owner.script.name(base.value)
                if dotted is not None and owner.script.definition(base.value) is None:
                    yield dotted

    def made_of(self, names: frozenset[str]) -> Iterator[syntax.Call]:
        """The calls that make an object of one of a library's classes, or of a first-party class derived from one."""
        yield from self.script.calls(*names)
        for name in self._derived(names):
            yield from (each for each in self.script.written_calls(name) if self.own_class(each, names) is not None)

    @once(())
    def _derived(self, names: frozenset[str]) -> tuple[str, ...]:
        """What the first-party classes are called that derive from one of a library's."""
        found: set[str] = set()
        todo = {name.rpartition(".")[2] for name in names}
        while todo:
            deriving = (heirs.may_derive(self.script, name) for name in sorted(todo))
            places = dict.fromkeys(chain((self.script,), *deriving))
            todo = {
                owner.name.value
                for place in places
                for owner in place.source.of(syntax.ClassDef)
                if owner.bases and not names.isdisjoint(place.roles.calls.foreign_bases(Definition(place, owner)))
            } - found
            found |= todo
        return tuple(sorted(found))

    def own_class(self, call: syntax.Call, names: frozenset[str]) -> Definition | None:
        """The first-party class, derived from one of a library's, that a call makes an object of."""
        definition = self.script.definition(call.func)
        if definition is None or not isinstance(definition.node, syntax.ClassDef):
            return None
        bases = definition.script.roles.calls.foreign_bases(definition)
        return None if names.isdisjoint(bases) else definition

    def is_own_wrapper(self, call: syntax.Call, wrappers: frozenset[str]) -> bool:
        """Whether a call makes an object of the project's own kind of a library's wrapper, of the module it is handed."""
        owner = self.own_class(call, wrappers)
        init = self.method(owner, "__init__") if owner is not None else None
        return owner is not None and (init is None or _hands_first_on(init))

    def hook(self, definition: Definition, name: str) -> library.Hook | None:
        """What a method of a first-party class is to the framework that the class derives from, or that is given an object
        of it, and that calls it."""
        if name == "forward":
            is_trained = self.script.program.mentions(self.script, b"transformers") and self._is_given_to_trainer(definition)
            return library.FORWARD_OF_TRAINER if is_trained else None
        if name not in library.HOOK_NAMES:
            return None
        bases = frozenset(self.foreign_bases(definition))
        return next((hooks[name] for of, hooks in library.HOOKS if name in hooks and bases & of), None)

    def _is_given_to_trainer(self, definition: Definition) -> bool:
        """Whether a ``Trainer`` of transformers is given a model that runs the ``forward`` of a class."""
        forward = self.method(definition, "forward")
        return forward is not None and forward.node in self._run_by_trainers()

    @once(_NOTHING_RUN)
    def _run_by_trainers(self) -> frozenset[syntax.Node]:
        """Each ``forward`` of the models that the program gives a ``Trainer`` of transformers, not to evaluate alone; none
        that ends in another way without its labels, which a training has."""
        found: set[syntax.Node] = set()
        for place in self.script.everywhere(b"Trainer"):
            for call in place.roles.calls.made_of(library.HUGGING_FACE_TRAINERS):
                asked = {last_name(each.func) for _, each in self.script.calls_on(call, "train", "evaluate", "predict")}
                if asked and "train" not in asked:
                    continue
                model = place.argument(call, "model", 0)
                for value in place.roles.chosen(model) if model is not None else ():
                    run = self.method(value.definition, "forward") if value.definition is not None else None
                    found |= {run.node} if run is not None and not _parts_by_labels(run) else set()
        return frozenset(found)

    def lineage(self, definition: Definition, depth: int = 0) -> Iterator[Definition]:
        """A class and its first-party bases, nearest first."""
        yield definition
        if not isinstance(definition.node, syntax.ClassDef) or depth > 6:
            return
        for base in definition.node.bases:
            found = heirs.base_class(definition.script, base)
            if found is not None and isinstance(found.node, syntax.ClassDef) and found.node is not definition.node:
                yield from found.script.roles.calls.lineage(found, depth + 1)

    def method(self, definition: Definition, name: str) -> Definition | None:
        """The method that an instance of a first-party class has under a name."""
        for owner in self.lineage(definition):
            bound = owner.script.names.scope(owner.node.body).bindings.get(name, ())
            if functions := [each for each in bound if isinstance(each.node, syntax.FunctionDef)]:
                return Definition(owner.script, standing(functions))
        return None

    # Who calls whom

    @once(None)
    def callee(self, call: syntax.Call) -> Definition | None:
        """The first-party function a call runs."""
        definition = self.script.definition(call.func) or self._inherited(call)
        if definition is None:
            value = self.roles.evaluate(call.func)
            return (self.run_by(value) if value is not None else None) or operations.applied(self.script, call)
        if isinstance(definition.node, syntax.ClassDef):
            return self.method(definition, "__init__")
        return definition

    def run_by(self, value: Value) -> Definition | None:
        """The first-party function that a call of a value runs."""
        if value.definition is None:
            return None
        match value.role:
            case Role.MODULE | Role.INSTANCE:
                name = "forward" if value.role is Role.MODULE else "__call__"
                return self.method(value.definition, name) if not heirs.may_override(value) else None
            case Role.FUNCTION | Role.CLASS if isinstance(value.definition.node, syntax.ClassDef):
                return self.method(value.definition, "__init__")
            case Role.FUNCTION | Role.CLASS:
                return value.definition
        return None

    def called(self, call: syntax.Call) -> list[Definition]:
        """The first-party functions that a call runs by its name: its callee, what heirs define in the place of a method
        that it leaves open, or what each object has that it may be called on."""
        callee = self.callee(call)
        if self.script.name(call.func) is not None:
            return [callee] if callee is not None else []
        if callee is None and self._is_of_library_value(call):
            return []
        may_be_heirs = isinstance(call.func, syntax.Attribute) or is_name(call.func, "self")
        defined = heirs.defined(self.script, call) if may_be_heirs else []
        if callee is None:
            return defined or self._of_chosen(call) or heirs.by_name(self.script, call)
        return defined or [callee]

    def _is_of_library_value(self, call: syntax.Call) -> bool:
        """Whether a method is called of a tensor or of another value whose methods are all a library's."""
        known = self.roles.value(call.func.value) if isinstance(call.func, syntax.Attribute) else UNKNOWN
        return known.role in _OF_LIBRARY and known.definition is None

    def may_run(self, call: syntax.Call) -> list[Definition]:
        """The first-party functions that a call may run: those ``called``, and what heirs have in the place of a method that
        a class calls on ``self``."""
        return list(dict.fromkeys((*self.called(call), *heirs.in_place_of(self.script, call))))

    @once([])
    def _of_chosen(self, call: syntax.Call) -> list[Definition]:
        """The first-party functions that a call may run of an object, or of a function, that is one of several."""
        found = [self.run_by(value) for value in self.roles.chosen(call.func)]
        match call.func:
            case syntax.Attribute(value=holder, attr=syntax.Name(value=name)) if not any(found):
                values = [each for each in self.roles.chosen(holder) if each.role in _OF_CLASSES]
                found = [self.method(each.definition, name) for each in values if each.definition is not None]
        return list(dict.fromkeys(each for each in found if each is not None))

    def _inherited(self, call: syntax.Call) -> Definition | None:
        """The method that ``super().method(...)`` runs."""
        match call.func:
            case syntax.Attribute(value=syntax.Call(func=syntax.Name("super")), attr=syntax.Name(name)):
                klass = self.script.source.enclosing(call, syntax.ClassDef)
                if isinstance(klass, syntax.ClassDef):
                    bases = list(self.lineage(Definition(self.script, klass)))[1:]
                    found = (base.script.roles.calls.method(base, name) for base in bases)
                    return next((method for method in found if method is not None), None)
        return None

    def behind(self, call: syntax.Call) -> list[Definition]:
        """The first-party functions that a call runs: its callee, or the ``forward`` of each module that a ``Sequential``
        holds, or a ``ModuleList`` out of which one is taken."""
        called = self.called(call)
        if called:
            return called
        holder = self._holder(call.func)
        held = self.roles.held(holder) if holder is not None else ()
        classes = dict.fromkeys(each.definition for each in held if each and each.role is Role.MODULE)
        forwards = (self.method(each, "forward") for each in classes if each is not None)
        return [each for each in forwards if each is not None]

    def _holder(self, module: syntax.BaseExpression) -> Made | None:
        """What makes the container of modules that is called, or out of which the called one is taken."""
        value = self.roles.evaluate(module)
        if value is None or value.role is not Role.MODULE or value.definition is not None:
            return None
        if value.made is not None:
            return value.made
        if isinstance(module, syntax.Name):
            taken = [binding for binding in self.script.names.reaching(module) if binding.kind is Kind.FOR]
            values = [self.roles.evaluate(binding.value) for binding in taken if binding.value is not None]
        else:
            values = [self.roles.evaluate(module.value)] if isinstance(module, syntax.Subscript) else []
        return next((each.made for each in values if each is not None and each.role is Role.MODULE and each.made), None)

    def call_sites(self, function: syntax.FunctionDef) -> list[tuple[Script, syntax.Call]]:
        """The known calls of a function of this script, by file and position."""
        return list(self.sites(function))

    def sites(self, function: syntax.FunctionDef) -> Iterator[tuple[Script, syntax.Call]]:
        """Like ``call_sites``; each file is read when its turn comes."""
        program, name, owner = self.script.program, function.name.value, self.script.names.owner(function)
        is_named = owner is None or heirs.is_left_to(Definition(self.script, owner), name)
        near: set[Script] = set()
        heirs_of = self._made_by(function, owner) if owner is not None and name == "__init__" else []
        others, found = dict.fromkeys(heirs_of), set[syntax.Call]()
        known_as = [owner.name.value, *heirs_of] if owner is not None and name == "__init__" else [name]
        is_in_use = False
        openers = heirs.openers(self.script) if owner is not None else ()
        if is_named:
            importing = program.importers(self.script, name.encode())
        elif name == "__init__":
            importing = program.makers(self.script, known_as)
        elif name in CALLED_AS or name.startswith("__"):
            importing = program.importers(self.script)
        else:
            importing = program.callers(self.script, name)
        for script in chain((self.script,), openers, importing):
            if script in near:
                continue
            near.add(script)
            for call in script.roles.calls.calls_of(function, owner):
                is_in_use = is_in_use or not _is_tried_out(script, call)
                found.add(call)
                yield script, call
            others |= dict.fromkeys(other for each in known_as for other in script.roles.calls.other_names(each))
        for script in self.script.everywhere(_calling(others)) if others else ():
            calls = script.roles.calls.calls_of(function, owner, tuple(others))
            yield from ((script, call) for call in calls if call not in found)
        if owner is None or name == "__init__" or is_in_use:
            return
        for heir in heirs.inheriting(Definition(self.script, owner)) if name not in CALLED_AS else ():
            for script in chain((heir.script,), program.importers(heir.script, f".{name}(".encode())):
                if script not in near:
                    near.add(script)
                    yield from ((script, call) for call in script.roles.calls.calls_of(function, owner))
        # Have: an object that one file makes, and another, which knows nothing of its class, calls in a step.
        for script in self.beside([name]):
            if script not in near:
                yield from ((script, call) for call in script.roles.calls.calls_of(function, owner))

    @listed_once
    def _made_by(self, init: syntax.FunctionDef, owner: syntax.ClassDef) -> Iterator[str]:
        """The names of the classes that inherit a constructor of this script's."""
        derived = [node for node in self.script.source.of(syntax.ClassDef) if node.name.value in self.heirs(owner)]
        heirs_of = [Definition(self.script, node) for node in derived if node is not owner]
        for heir in (*heirs_of, *heirs.inheriting(Definition(self.script, owner))):
            inherited = heir.script.roles.calls.method(heir, "__init__")
            if inherited is not None and inherited.node is init:
                yield heir.name

    def beside(self, methods: Iterable[str]) -> Iterator[Script]:
        """The other scripts of its programs that train, and may call one of some methods of this one's objects."""
        marks = [b"(" if name in CALLED_AS else f".{name}(".encode() for name in methods if name != "__init__"]
        trainings = self.script.program.few_others(self.script, *_HOLDS_STEPS) if marks else ()
        return (script for script in trainings if any(mark in script.source.data for mark in marks))

    def calls_of(
        self, function: syntax.FunctionDef, owner: syntax.ClassDef | None, names: tuple[str, ...] = ()
    ) -> list[syntax.Call]:
        """The calls in this script of a function of any, a method if it has an ``owner``; by its own name without others."""
        nothing: list[syntax.Call] = []
        question = ("calls of", function, self.script.path, names)
        answer = self.script.program.flow.ask
        return answer(question, lambda: self._find_calls_of(function, owner, names), nothing, layer=Layer.SITES)

    def _find_calls_of(
        self, function: syntax.FunctionDef, owner: syntax.ClassDef | None, others: tuple[str, ...]
    ) -> list[syntax.Call]:
        if others:
            named = (call for each in others for call in self.named(each))
            return [call for call in named if any(to.node is function for to in self.called(call))]
        name = function.name.value
        if owner is not None and name in CALLED_AS:
            return self.of_instances().get(function, [])
        names = [name]
        if owner is not None and name == "__init__":
            names += self.heirs(owner)
        candidates = (call for each in names for call in self.named(each))
        return [call for call in (*candidates, *self.of_entries) if any(to.node is function for to in self.called(call))]

    def heirs(self, klass: syntax.ClassDef) -> list[str]:
        """The names under which this script may call a class or one that derives from it."""
        derived = [
            node.name.value
            for node in self.script.source.of(syntax.ClassDef)
            if any(each.node is klass for each in self.lineage(Definition(self.script, node)))
        ]
        return list(dict.fromkeys((klass.name.value, *derived)))

    @listed_once
    def other_names(self, name: str) -> Iterator[str]:
        """The names by which this script may call a function of a name, since it gives it to a variable, an attribute or a
        parameter: ``self.criterion = dice``, ``train(step=update)``."""
        tree, parents = self.script.source.tree, self.script.source.parents
        found: dict[str, None] = {}
        for written_name in tree.named((name,)):
            value: syntax.Node = written_name
            if isinstance(up := parents[value], syntax.Attribute) and up.attr is value:
                value, up = up, parents[up]
            if not (isinstance(up, syntax.Call) and up.func is value):
                found |= dict.fromkeys(self._given_names(value, up))
        found.pop(name, None)
        yield from found

    def _given_names(self, value: syntax.Node, up: syntax.Node) -> Iterator[str]:
        parents, path, given_name = self.script.source.parents, tuple[int, ...](), value
        if isinstance(up, syntax.Element) and isinstance(parents[up], syntax.Tuple):
            whole = parents[up]
            assert isinstance(whole, syntax.Tuple)
            value, up, path = whole, parents[whole], (whole.elements.index(up),)
        match up:
            case syntax.Return() if self.script.definition(given_name) is not None:
                yield from self._names_of_results(up, path)
            case _ if path:
                return
            case syntax.Assign(targets=targets, value=given) if given is value:
                yield from (last for target in targets if (last := last_name(target.target)) is not None)
            case syntax.AnnAssign(target=target, value=given) if given is value:
                yield from filter(None, [last_name(target)])
            case syntax.IfExp(test=test) if test is not value:
                yield from self._given_names(up, self.script.source.parents[up])
            case syntax.Param(default=default, name=taken) if default is value:
                yield taken.value
            case syntax.Arg(keyword=syntax.Name(value=keyword)):
                yield keyword
            case syntax.Arg():
                call = self.script.source.parents[up]
                callees = self.called(call) if isinstance(call, syntax.Call) else []
                taking = (
                    reach.parameter_of(self.script, each, call, up) for each in callees if isinstance(call, syntax.Call)
                )
                yield from (each.name.value for each in taking if each is not None)

    @listed_once
    def _names_of_results(self, gives: syntax.Return, path: tuple[int, ...]) -> Iterator[str]:
        """The names that are bound to what a function returns, or to one part of that."""
        function = self.script.function(gives)
        for script, call in self.call_sites(function) if function is not None else ():
            assign = script.source.parents[call]
            for bound in assign.targets if isinstance(assign, syntax.Assign) else ():
                target, rest = part(bound.target, path)
                if not rest and (last := last_name(target)) is not None:
                    yield last

    def named(self, name: str) -> list[syntax.Call]:
        """The calls whose function is written, or was imported, with this last name."""
        return self.script.source.at(syntax.Call, self._by_name.get(name, ()))

    @cached_property
    def of_entries(self) -> list[syntax.Call]:
        """The calls of what a dict or list holds: ``trainers[name](...)``."""
        kinds = self.script.source.tree.rows.kind
        calls = self.script.source.tree.rows.of(syntax.Call.kind)
        return self.script.source.at(syntax.Call, (row for row in calls if kinds[row + 1] == syntax.Subscript.kind))

    def of_instances(self) -> dict[syntax.Node, list[syntax.Call]]:
        """The calls of objects in this script, by the ``forward`` or ``__call__`` they run."""
        nothing: dict[syntax.Node, list[syntax.Call]] = {}
        question = ("instance calls", self.script.path)
        return self.script.program.flow.ask(question, self._find_instance_calls, nothing, layer=Layer.CALLS)

    def _find_instance_calls(self) -> dict[syntax.Node, list[syntax.Call]]:
        found: dict[syntax.Node, list[syntax.Call]] = {}
        for call in self.script.source.of(syntax.Call):
            if self.script.name(call.func) is None or operations.applied(self.script, call) is not None:
                for callee in self.behind(call):
                    found.setdefault(callee.node, []).append(call)
        return found

    @cached_property
    def _by_name(self) -> dict[str, array[int]]:
        found = dict(self.script.names.called)
        for name, last in self.script.names.other_names():
            if name in found:
                found[last] = found.get(last, array("i")) + found[name]
        return found


def _calling(names: Iterable[str]) -> Mark:
    """What a text holds that calls something by one of some names."""
    either = "|".join(map(re.escape, names))
    return (words(names), re.compile(rb"\b(?:%s)\(" % either.encode()))


def _or_assumed(joined: Value | None, ways: list[Value | None]) -> Value | None:
    """What a dict's entry is where one of several methods makes it a tensor, and of the others nothing is known: one is
    assumed, since what is said of it holds for that method."""
    roles = {each.role for each in ways if each is not None}
    is_assumed = joined is not None and joined.role is Role.UNKNOWN and roles == {Role.TENSOR, Role.UNKNOWN}
    return TENSOR._replace(assumed=True) if is_assumed else joined


def _mixes_numbers(one: Value, other: Value) -> bool:
    """Whether one of two values, or a part of one, is a number where the other is a tensor: together they are neither."""
    if (one.role is Role.NUMBER) is not (other.role is Role.NUMBER):
        return one.role in _TENSORS or other.role in _TENSORS
    parts = zip((*one.items, one.element), (*other.items, other.element), strict=False)
    return any(_mixes_numbers(first, second) for first, second in parts if first is not None and second is not None)


def _parts_by_labels(forward: Definition) -> bool:
    """Whether a ``forward`` does something else where it has no labels, or returns before its end where it has them."""
    for branch in forward.script.source.inside(forward.node, syntax.If):
        named = {each.value for each in forward.script.source.inside(branch.test, syntax.Name)} - {"None"}
        if named.isdisjoint(library.LABELS) or not isinstance(forward.node, syntax.FunctionDef):
            continue
        returns = next(iter(forward.script.source.inside(branch.body, syntax.Return)), None) is not None
        if (returns or branch.orelse is not None) and named <= library.LABELS:
            return True
    return False


def _hands_first_on(init: Definition) -> bool:
    """Whether a constructor hands what it is given first to the one that it overrides, first too."""
    if not isinstance(init.node, syntax.FunctionDef) or len(init.node.params.params) < 2:
        return False
    module = init.node.params.params[1].name.value
    for call in init.script.source.inside(init.node, syntax.Call):
        match call:
            case syntax.Call(
                func=syntax.Attribute(value=syntax.Call(func=syntax.Name("super")), attr=syntax.Name("__init__")),
                args=[syntax.Arg(value=syntax.Name(value=name)), *_],
            ) if name == module:
                return True
    return False


def item_functions(script: Script, klass: syntax.Node) -> list[syntax.FunctionDef]:
    """``__getitem__`` of a class and the methods it calls on ``self``."""
    methods = {
        function.name.value: function
        for function in script.source.inside(klass, syntax.FunctionDef)
        if script.names.owner(function) is klass
    }
    found: list[syntax.FunctionDef] = []
    names = ["__getitem__", "__getitems__"]
    while names:
        function = methods.pop(names.pop(0), None)
        if function is None:
            continue
        found.append(function)
        for attribute in script.source.inside(function, syntax.Attribute):
            if is_name(attribute.value, "self"):
                names.append(attribute.attr.value)
    return found


def _is_made_here(script: Script, expression: syntax.BaseExpression) -> bool:
    """Whether an expression, or the one value of a variable, is a call of one of torch's factories."""
    if isinstance(expression, syntax.Name):
        bound = [written(binding) for binding in script.names.reaching(expression)]
        return len(bound) == 1 and bound[0] is not None and _is_made_here(script, bound[0])
    return isinstance(expression, syntax.Call) and script.name(expression.func) in library.FACTORIES


def _may_move(function: Definition) -> bool:
    """Whether a function moves something, or makes something on a device that it names."""
    script, source = function.script, function.script.source
    moves = script.method_calls("to", "cuda", "type", "type_as")
    named = (arg.keyword for arg in source.inside(function.node, syntax.Arg))
    return any(source.contains(function.node, call) and not _stays(call) for call in moves) or any(
        keyword is not None and keyword.value == "device" for keyword in named
    )


def _stays(move: syntax.Call) -> bool:
    """Whether a tensor stays, or goes to where a variable is: ``a.to(b.device)``, ``a.type(b.type())``, ``a.type_as(b)``."""
    match move:
        case syntax.Call(func=syntax.Attribute(attr=syntax.Name("type")), args=[]):
            return True
        case syntax.Call(func=syntax.Attribute(attr=syntax.Name("type_as")), args=[syntax.Arg(value=syntax.Name())]):
            return True
        case syntax.Call(
            args=[
                syntax.Arg(
                    value=syntax.Attribute(value=syntax.Name(), attr=syntax.Name("device"))
                    | syntax.Call(func=syntax.Attribute(value=syntax.Name(), attr=syntax.Name("type")), args=[])
                )
            ]
        ):
            return True
    return False


def _branches(expression: syntax.BaseExpression) -> list[syntax.BaseExpression]:
    """What an expression may be: both sides of ``a if x else b``."""
    if isinstance(expression, syntax.IfExp):
        return [*_branches(expression.body), *_branches(expression.orelse)]
    return [expression]


def _entries(table: syntax.BaseExpression) -> list[syntax.BaseExpression]:
    """The values of a dict that is written out, or what a list holds."""
    held = table.elements if isinstance(table, (syntax.Dict, syntax.List, syntax.Tuple)) else ()
    plain = all(isinstance(each, (syntax.DictElement, syntax.Element)) for each in held)
    return [each.value for each in held] if plain else []


def _stays_as_written(script: Script, table: syntax.BaseExpression) -> bool:
    """Whether neither its own file nor one that imports that sets an entry of a dict or list under the name it is given."""
    match script.source.parents[table]:
        case syntax.Assign(targets=[syntax.AssignTarget(target=target)]) if (name := last_name(target)) is not None:
            return not any(
                place.values.change_of(up if isinstance(up, syntax.Attribute) and up.attr is use else use) is not None
                for place in (script, *script.program.importers(script))
                for use in place.source.tree.named((name,))
                for up in [place.source.parents[use]]
            )
    return True


def _is_tried_out(script: Script, call: syntax.Call) -> bool:
    """Whether a call stands at the top of a module that others import, as where a class is tried out below it."""
    return script.function(call) is None and script.program.is_imported(script)


def yielded(generator: Definition) -> Value | None:
    """What a first-party generator yields, itself or from others."""
    roles = generator.script.roles
    given = [node.value for node in _yields(generator) if node.value is not None]
    values = (
        roles._element(roles.evaluate(value.item)) if isinstance(value, syntax.From) else roles.evaluate(value)
        for value in given
    )
    return join(values) if given else UNKNOWN


def _come_from(given: Value, loader: Value) -> Value:
    """What a generator yields that takes one loader in one call and another in the next, in a call with one of them."""
    if given.role is Role.BATCH and given.place is Place.HOST:
        return given._replace(made=loader.made)
    items = tuple(_come_from(each, loader) if each is not None else None for each in given.items)
    return given._replace(items=items, element=join(items)) if items else given


def _yields(definition: Definition) -> Iterator[syntax.Yield]:
    source = definition.script.source
    for node in source.inside(definition.node, syntax.Yield):
        if source.enclosing(node, syntax.FunctionDef, syntax.Lambda) is definition.node:
            yield node


def torch_method(name: str, base: Value, has_arguments: bool) -> Value:
    """What ``tensor.name(...)``, or ``torch.name(tensor, ...)``, returns.

    ``has_arguments`` tells ``x.max()`` from ``x.max(1)``, which returns values and indices.
    """
    tensor = base._replace(assumed=False)
    if name == "item":
        return NUMBER
    if name == "tolist":
        return Value(Role.SEQUENCE, Place.HOST, element=NUMBER)
    if name == "numpy":
        return ARRAY
    if name == "cpu":
        return at(tensor, Place.HOST)
    if name in ("backward", "retain_grad", "register_hook"):
        return NONE
    if name in library.NUMBER_METHODS or name in library.NUMBER_ATTRIBUTES or name.startswith("is_"):
        return Value(Role.SEQUENCE, element=NUMBER) if name in ("size", "stride") and not has_arguments else NUMBER
    if name in library.SEVERAL_TENSORS:
        return Value(Role.SEQUENCE, element=tensor)
    if name in library.PAIRS_ALWAYS or (name in library.PAIRS_WITH_DIM and has_arguments):
        return Value(Role.SEQUENCE, items=(tensor, tensor), element=tensor)
    return tensor


def _moved_all(value: Value, place: Place) -> Value:
    if place is Place.GPU and value.role is Role.TENSOR and value.place is Place.EITHER:
        return at(value, place)
    return value


def _is_module_class(base: str) -> bool:
    if base.startswith(("torch.nn.", *library.MODULE_FACTORIES)) or base in library.LIGHTNING_MODULES:
        return True
    if _is_graph_layer(base):
        return True
    return _is_transformers_model(base) or (base.startswith("transformers.") and base.endswith("PreTrainedModel"))


def _is_graph_layer(dotted: str) -> bool:
    """Whether a name is of a module of PyTorch Geometric's: its functions begin with a small letter."""
    return dotted.startswith("torch_geometric.nn.") and dotted.rpartition(".")[2][:1].isupper()


def _is_transformers_model(dotted: str) -> bool:
    parts = dotted.split(".")
    return (
        parts[0] == "transformers" and len(parts) > 1 and any(mark in parts[1] for mark in library.TRANSFORMERS_MODEL_MARKS)
    )
