"""Whether what a piece of code computes with networks is ever differentiated: a proof that it is not, or what it lacks.

Every value that may carry a graph out of the code is followed: through variables, attributes, containers, arguments and
returns, until it is turned into a number, detached, compared or dropped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import chain
from typing import TYPE_CHECKING

from speedlint.facts import syntax
from speedlint.shapes.acting import is_environment_step
from speedlint.shapes.model import encoders, keeping
from speedlint.shapes.model.networks import is_loss
from speedlint.shapes.steps import gives_places, takes_places
from speedlint.shapes.sync.reads import shown
from speedlint.shapes.training import roots
from speedlint.solve import changing, leads
from speedlint.solve.dtypes import is_scalar
from speedlint.solve.flow import once
from speedlint.solve.loops import Does
from speedlint.solve.names import Binding, Kind, last_name
from speedlint.solve.reach import parameter_of
from speedlint.solve.terms import Definition
from speedlint.solve.unpacking import part, written
from speedlint.source import is_name, is_target
from speedlint.torch import library
from speedlint.torch.library import FORWARD_HOOKS
from speedlint.torch.methods import DETACHES, GRAPHLESS, VIEWS, works_in_place
from speedlint.torch.words import Role

if TYPE_CHECKING:
    from speedlint.ask.script import Script

_ENDS = GRAPHLESS | {"detach", "detach_"}
"""Methods whose result has no graph."""
_PLAIN_ATTRIBUTES = frozenset("shape dtype device ndim data is_cuda layout itemsize nbytes names".split())
_GRAPH = frozenset("backward grad_fn requires_grad_ register_hook retain_grad grad requires_grad is_leaf".split())
_ASKED = frozenset({"grad_fn", "requires_grad", "is_leaf"})
_DIFFERENTIATE = ("torch.autograd.", "torch.func.", "torch.distributed.autograd.")
_TELL_OF_GRAPHS = re.compile(r"print|str|repr|torch\.save|(logging|pickle)\..*")
"""What shows or saves of a tensor whether it has a graph: ``tensor(0.1, grad_fn=<DivBackward0>)``."""
_TELLING = frozenset("debug info warning error critical exception log set_postfix set_postfix_str".split())
"""Methods of loggers and progress bars that show so what they are given."""
_REFUSE_GRAPHS = ("numpy", "__array__")
"""What raises for a tensor with a graph."""
_ASK_FOR_NUMBERS = ("torch.", "math.", "logging.", "operator.")
"""Libraries whose functions take the number of a tensor, or keep it one; what others do with it may show its graph."""
_PLOTS = frozenset({"add_scalar", "add_scalars"})
"""Methods that write the number of a tensor of no dimension (torch/utils/tensorboard/_convert_np.py)."""
_ENDING_CALLS = frozenset("float int len bool isinstance type id hash format range hasattr".split())
_CALLED_BACK = re.compile(r"map|filter|functools\.reduce|itertools\.\w+")
"""What hands on what it is given to a function that it is given, too."""
_CONVERTERS = frozenset({"float", "int", "str", "len", "bool"})
_CONSUMES = re.compile(
    r"(?:add|log|write|print|save|update|set_postfix|set_description|gather|reduce|compute|report|track|record|process)(?:_\w*)?"
    r"|debug|info|warning|error|critical|exception|append|extend|format|send|emit|step|plot|imshow|show|set_title"
)
"""Methods by which objects of libraries are told of results: of writers, meters, bars and schedulers."""
_MAKERS = re.compile(
    r"(?:list|dict|set)|collections\.\w+|torch\.(?:zeros|ones|empty|full|rand|randn|tensor|cat|stack)(?:_like)?"
    r"|numpy\.(?:zeros|ones|empty|full|array)(?:_like)?"
)
"""What makes a new container or tensor, of which nothing else has a part."""
_BY_NAME = (b"__dict__", b"vars(", b"attrgetter")
_PARAMETERS = frozenset({"parameters", "named_parameters", "state_dict", "get_parameter", "buffers"})
_SHOWS = (
    "numpy.", "sklearn.", "scipy.", "pandas.", "matplotlib.", "json.", "wandb.", "mlflow.", "math.", "PIL.",
    "cv2.", "time.", "os.", "csv.", "torchvision.utils.", "skimage.", "seaborn.",
)  # fmt: skip
"""Libraries that turn what they are given into numbers, pictures or files."""
_FILLS = frozenset("append extend insert add appendleft".split())
_WITHOUT_GRAPH = (Role.STRING, Role.ARRAY, Role.DEVICE, Role.DTYPE)
_WITHOUT_ANY_GRAPH = (*_WITHOUT_GRAPH, Role.NUMBER, Role.NONE, Role.FUNCTION)
_TAKES_NOTHING = (
    *(syntax.Expr, syntax.Comparison, syntax.ComparisonTarget, syntax.If, syntax.While, syntax.IfExp, syntax.CompIf),
    *(syntax.Assert, syntax.Del, syntax.Index, syntax.Slice, syntax.AssignTarget, syntax.AnnAssign, syntax.NamedExpr),
    *(syntax.For, syntax.CompFor, syntax.Raise),
)
"""What an expression stands in that hands its graph on to nothing."""
_CHANGES_ANOTHER = re.compile(
    r"setattr|functools\.partial|heapq\..*|bisect\.insort.*|operator\..*|torch\._foreach_.*|.*[a-z]_"
)
"""Functions that put what they are given into another argument, or keep it."""
_NUMBERS = re.compile(r"([^%]|%%|%[-+ #0-9.*]*[diouxXeEfFgGc])*", re.DOTALL)
"""A ``%`` template that shows what it is given as numbers."""
_SPEC = re.compile(r":[^:\[\]\"']*[eEfFgGdn%]\}$")
"""The end of a part of an f-string that is shown as a number."""
_MAKE_WEIGHTS = ("torch.nn.utils.weight_norm", "torch.nn.utils.spectral_norm")
_HOLDERS = (Role.SEQUENCE, Role.MAPPING, Role.INSTANCE)
_MOST = 600
"""Expressions that are followed."""


class NotProven(Exception):  # noqa: N818 (no error: what is not known)
    """What is not known, in a clause; ``is_certain`` where it is seen to be differentiated, or its graph to be asked for."""

    def __init__(self, clause: str, *, is_certain: bool = False) -> None:
        super().__init__(clause)
        self.is_certain = is_certain


def check_never(script: Script, region: syntax.Node) -> None:
    """Raises NotProven unless nothing that networks compute in ``region`` reaches a backward pass."""
    _Follow(script, region).check()


def check_graph_is_untold(script: Script, value: syntax.BaseExpression) -> None:
    """Raises NotProven unless nothing that ``value`` is put into tells whether it had a graph, nor differentiates it; for
    what only shows or saves it, none before all else is followed."""
    _Follow(script, value).check_untold(value)


def check_alone(script: Script, forward: syntax.Call) -> None:
    """Raises NotProven where the statement of a call computes with more than the call's output, which may have a graph of
    its own: ``net(x).detach() + features``."""
    statement = script.source.statement(forward)
    if not isinstance(statement, syntax.SimpleStatementLine):
        raise NotProven("it is a part of a longer statement")
    for arg in forward.args:
        for place, given in script.roles.origins(arg.value):
            if isinstance(given, syntax.Call) and place.script.role(given.func) is Role.MODULE:
                raise NotProven(
                    f"whether `{shown(script, arg.value)}`, which a network gives, is changed in place is not known"
                )
    part = _up_to_its_end(script, forward)
    names, attributes = script.source.inside(statement, syntax.Name), script.source.inside(statement, syntax.Attribute)
    for node in chain(names, attributes):
        if script.source.contains(part, node) or script.source.contains(node, part):
            continue
        if is_target(script.source, node) or not _is_value(script, node):
            continue
        call = script.source.enclosing(node, syntax.Call)
        is_called = isinstance(call, syntax.Call) and script.source.contains(call.func, node)
        if isinstance(call, syntax.Call) and is_called and is_environment_step(script, call):
            continue
        if script.role(node) not in _WITHOUT_ANY_GRAPH:
            raise NotProven(f"whether `{shown(script, node)}`, beside it, has a graph is not known")


def _up_to_its_end(script: Script, call: syntax.Call) -> syntax.Node:
    """What a call is the beginning of, up to what cuts its graph off: ``net(x)[0].detach()``."""
    part: syntax.Node = call
    while True:
        up = script.source.parents[part]
        match up:
            case syntax.Attribute(value=value, attr=syntax.Name(value=name)) if value is part:
                above = script.source.parents[up]
                part = above if isinstance(above, syntax.Call) and above.func is up else up
                if name in _ENDS | DETACHES:
                    return part
            case syntax.Subscript(value=value) if value is part:
                part = up
            case _:
                return part


def _is_value(script: Script, node: syntax.BaseExpression) -> bool:
    """Whether a name or attribute stands for a value of its own: no library's name, no keyword, no part of another one."""
    up = script.source.parents[node]
    if isinstance(up, syntax.Attribute) or (isinstance(up, syntax.Arg) and up.keyword is node):
        return False
    return script.name(node) is None


class _Follow:
    def __init__(self, script: Script, region: syntax.Node) -> None:
        self.script, self.region = script, region
        self._seen: set[tuple[syntax.Node, syntax.Node | None]] = set()
        self._asked: set[syntax.Node] = set()
        self._inside: syntax.Node | None = None
        """The function whose parameter is followed: what it returns goes to the call that the parameter was given in."""
        self._may_tell = False
        self._told: str | None = None
        self._unknown: NotProven | None = None
        """What is not known of one use, where the others may yet show that it is differentiated."""

    def check(self) -> None:
        """Raises NotProven."""
        source = self.script.source
        if self.script.program.mentions(self.script, b"is_grad_enabled"):
            raise NotProven("the program asks whether gradients are on")
        if self.script.program.mentions(self.script, FORWARD_HOOKS):
            raise NotProven("a forward hook of the program may keep what the pass computes")
        if next(self.script.calls_everywhere("torch.nn.utils.parametrize.cached"), None) is not None:
            raise NotProven("weights that are kept (`parametrize.cached`) would have no graph")
        if (around := _autocast_around(self.script, self.region)) is not None:
            raise NotProven(
                f"`{shown(self.script, around)}` around it keeps the casts of weights, which would have no graph"
            )
        if (kept := _normed_weight(self.script)) is not None:
            raise NotProven(f"`{kept}` is what the last pass has made of it, with its graph")
        if any(True for _ in source.inside(self.region, syntax.Await)):
            raise NotProven("other code runs while it waits")
        if any(True for _ in source.inside(self.region, syntax.Yield)):
            raise NotProven("what it yields is used out of sight")
        if (reason := encoders.why_not_fused(self.script, self.region)) is not None:
            raise NotProven(reason)
        for caught in source.inside(self.region, syntax.Try):
            for _, node in changing.written(self.script, caught.body):
                if isinstance(node, syntax.Call) and works_in_place(last_name(node.func) or ""):
                    raise NotProven(f"`{shown(self.script, node)}` raises where gradients are on, which is caught")
        self._check_others()
        for call in source.inside(self.region, syntax.Call):
            self._started(call)
        for attribute in source.inside(self.region, syntax.Attribute):
            is_called = isinstance(up := source.parents[attribute], syntax.Call) and up.func is attribute
            if not is_called and self.script.role(attribute.value) is Role.MODULE:
                self._carry(self.script, attribute)

    def _check_others(self) -> None:
        """Raises NotProven where the region computes with what may have a graph though no network in it gives it: tensors
        that ask for gradients, and what a function returns of what it was handed, or of what lies outside of it."""
        script, source = self.script, self.script.source
        for call in source.inside(self.region, syntax.Call):
            if any(is_name(arg.keyword, "requires_grad") for arg in call.args):
                raise NotProven(f"`{shown(script, call)}` may ask for gradients")
        names, attributes = source.inside(self.region, syntax.Name), source.inside(self.region, syntax.Attribute)
        for node in chain(names, attributes):
            if script.role(node) is Role.TENSOR and not is_target(source, node) and _asks_for_gradients(script, node):
                raise NotProven(f"`{shown(script, node)}`, beside it, takes gradients")
        function = source.enclosing(self.region, syntax.FunctionDef)
        for back in source.inside(self.region, syntax.Return):
            if back.value is None or source.enclosing(back, syntax.FunctionDef, syntax.Lambda) is not function:
                continue
            for name in source.inside(back.value, syntax.Name):
                if _is_handed_in(script, name) and script.role(name) not in (*_WITHOUT_ANY_GRAPH, Role.MODULE, Role.LOADER):
                    raise NotProven(f"whether `{name.value}`, which it returns, has a graph is not known")

    def check_untold(self, value: syntax.BaseExpression) -> None:
        """Raises NotProven."""
        self._may_tell = True
        self._carry(self.script, value)
        self._may_tell = False
        if self._unknown is not None:
            raise self._unknown
        if self._told is not None:
            self._tell(self._told)

    def _tell(self, what: str) -> None:
        """Raises NotProven for what shows or saves whether a value has a graph; notes it where that is asked last."""
        self._told = what
        if not self._may_tell:
            raise NotProven(f"`{what}` tells whether it has a graph")

    def _kept_by(self, callee: Definition) -> None:
        """Follows what a function that runs networks keeps: a network on its object, any other function wherever it is."""
        if (callee.node, None) in self._seen:
            return
        self._seen.add((callee.node, None))
        if (kept := keeping.why(callee)) is not None:
            raise NotProven(kept)
        script = callee.script
        for base, _ in changing.written(script, callee.node):
            if isinstance(base, syntax.Name) and any(
                isinstance(each.value, syntax.Attribute | syntax.Subscript) for each in script.names.reaching(base)
            ):
                raise NotProven(f"what else holds `{base.value}` is not followed")
            if changing.is_on_self(base) or _is_of_module(script, base):
                self._bound(script, base, fills=True)
        outside, self._inside = self._inside, callee.node
        for call in script.source.inside(callee.node, syntax.Call):
            inner = script.roles.calls.may_run(call)
            for each in inner:
                if isinstance(each.node, syntax.FunctionDef):
                    self._kept_by(each)
            if callee.name != "forward" and _runs(script, call, inner):
                self._carry(script, call)
        self._inside = outside

    def _check_unasked(self, script: Script, call: syntax.Call) -> None:
        """Raises NotProven where what a network runs, its parts and what they call, asks whether a tensor has a graph."""
        for callee in (*script.roles.calls.may_run(call), *script.roles.calls.behind(call)):
            if callee.node in self._asked:
                continue
            self._asked.add(callee.node)
            place = callee.script
            for asked in place.source.inside(callee.node, syntax.Attribute):
                if asked.attr.value in _ASKED and not is_target(place.source, asked):
                    raise NotProven(f"`{shown(place, asked)}` in `{callee.name}` asks whether it has a graph")
            for inner in place.source.inside(callee.node, syntax.Call):
                self._check_unasked(place, inner)

    def _started(self, call: syntax.Call) -> None:
        script = self.script
        if script.name(call.func) is not None:
            return
        callees = script.roles.calls.may_run(call)
        if not callees and isinstance(call.func, syntax.Attribute) and call.func.attr.value in _PARAMETERS:
            self._carry(script, call)
            return
        if not callees and script.role(call.func) is not Role.MODULE:
            self._check_unseen(script, call)
            return
        is_one = script.callee(call) is not None
        if not is_one and _some_may_differentiate(script) and _is_of_hidden_kind(script, call.func):
            raise NotProven(f"which network `{shown(script, call.func)}` is, and whether it differentiates, is not known")
        if _runs(script, call, callees):
            if script.role(call.func) is Role.MODULE and (kept := keeping.why_of_network(script, call.func)) is not None:
                raise NotProven(kept)
            self._check_unasked(script, call)
            self._carry(script, call)
            for callee in callees:
                self._kept_by(callee)

    def _check_unseen(self, script: Script, call: syntax.Call) -> None:
        """Raises NotProven for a call of what is not known, which may train."""
        func = call.func
        if isinstance(func, syntax.Name):
            is_builtin = script.names.scope(func).lookup(func.value) is None
            if not is_builtin and script.role(func) in (Role.UNKNOWN, Role.FUNCTION) and script.definition(func) is None:
                raise NotProven(f"what `{func.value}` does is not known")
        elif not isinstance(func, syntax.Attribute):
            raise NotProven(f"what `{shown(script, func)}` does is not known")
        else:
            may = leads.around(script)
            if not may.is_open and may.may(call) and script.role(func.value) not in (Role.TENSOR, Role.BATCH):
                raise NotProven(f"`{shown(script, func)}` may train")

    # Following

    def _carry(self, script: Script, node: syntax.Node) -> None:
        """Follows an expression whose value may carry a graph. Raises NotProven."""
        if (node, self._inside) in self._seen or script.role(node) in _WITHOUT_GRAPH:
            return
        self._seen.add((node, self._inside))
        if len(self._seen) > _MOST:
            raise NotProven("its results go to more places than are followed")
        parent = script.source.parents[node]
        match parent:
            case syntax.Attribute(value=value) if value is node:
                self._attribute(script, parent)
            case syntax.Arg():
                self._argument(script, parent)
            case syntax.Assign(targets=targets, value=value) if value is node:
                for target in targets:
                    self._bound(script, _of_values(script, value, target.target))
            case syntax.AnnAssign(target=target) if target is not node:
                self._bound(script, target)
            case syntax.AugAssign(target=target) if target is not node:
                self._check_not_handed_in(script, target)
                self._bound(script, target)
            case syntax.AugAssign(target=target):
                self._bound(script, target)
            case syntax.NamedExpr(target=target, value=value) if value is node:
                self._bound(script, target)
                self._carry(script, parent)
            case syntax.Return():
                self._returned(script, parent)
            case syntax.For(iter=iterated, target=target) | syntax.CompFor(iter=iterated, target=target):
                if iterated is node:
                    self._bound(script, target)
            case syntax.Element() | syntax.StarredElement() | syntax.DictElement() | syntax.StarredDictElement():
                self._carry(script, script.source.parents[parent])
            case syntax.Subscript(value=value) if value is node:
                if not takes_places(script, parent):
                    self._carry(script, parent)
            case syntax.IfExp(test=test) if test is not node:
                self._carry(script, parent)
            case syntax.BinaryOperation(
                left=syntax.SimpleString() | syntax.ConcatenatedString() as template, operator=syntax.Modulo()
            ):
                if not _NUMBERS.fullmatch(script.text(template)):
                    self._tell(shown(script, parent))
            case (
                syntax.BinaryOperation()
                | syntax.BooleanOperation()
                | syntax.ListComp()
                | syntax.SetComp()
                | syntax.GeneratorExp()
                | syntax.DictComp()
            ):
                self._carry(script, parent)
            case syntax.FormattedStringExpression(expression=held, conversion=conversion, equal=equal):
                # A tensor of no dimension formats itself as its number; any other, and what holds one, is shown whole.
                is_whole = script.role(node) in _HOLDERS or not (self._may_tell or _is_number(script, held))
                is_whole = is_whole or _is_output(script, held)
                if conversion or equal or (is_whole and not _SPEC.search(script.text(parent))):
                    self._tell(shown(script, parent))
            case syntax.UnaryOperation(operator=operator):
                if not isinstance(operator, syntax.Not):
                    self._carry(script, parent)
            case syntax.Raise():
                self._tell(shown(script, node))
            case syntax.Assert() if self._may_tell:
                self._tell(shown(script, node))
            case _ if not isinstance(parent, _TAKES_NOTHING):
                raise NotProven(f"where `{shown(script, node)}` goes is not followed")

    def _attribute(self, script: Script, attribute: syntax.Attribute) -> None:
        name = attribute.attr.value
        if name in _GRAPH:
            raise NotProven(f"`{shown(script, attribute)}` differentiates it, or asks for its graph", is_certain=True)
        call = script.source.parents[attribute]
        is_called = isinstance(call, syntax.Call) and call.func is attribute
        is_caught = script.source.enclosing(attribute, syntax.Try) is not None
        if name in _REFUSE_GRAPHS and (self._may_tell or is_caught):
            self._tell(shown(script, attribute))
        if name not in (_ENDS if is_called else _PLAIN_ATTRIBUTES):
            self._carry(script, call if is_called else attribute)

    def _argument(self, script: Script, arg: syntax.Arg) -> None:
        call = script.source.parents[arg]
        if not isinstance(call, syntax.Call):
            raise NotProven(f"where `{shown(script, arg.value)}` goes is not followed")
        name, func = script.name(call.func), call.func
        if name is None and isinstance(func, syntax.Name) and script.names.scope(func).lookup(func.value) is None:
            name = func.value
        callee = script.callee(call)
        if callee is not None and isinstance(callee.node, syntax.FunctionDef):
            self._given(script, callee, call, arg)
            self._carry(script, call)
        elif name is not None:
            if name.startswith(_DIFFERENTIATE):
                raise NotProven(f"`{name}` differentiates it", is_certain=True)
            if _TELL_OF_GRAPHS.fullmatch(name) and not (name.startswith("logging.") and _logs_numbers(script, call)):
                self._tell(name)
            if _CHANGES_ANOTHER.fullmatch(name) or any(is_name(each.keyword, "out") for each in call.args):
                raise NotProven(f"what `{name}` puts it into is not followed")
            if _CALLED_BACK.fullmatch(name) and script.text(call.args[0].value) not in _CONVERTERS:
                raise NotProven(f"what `{name}` calls with it is not followed")
            ends = name in _ENDING_CALLS or (name.startswith(_SHOWS) and name != "math.prod")
            ends = ends or name.rpartition(".")[2] in _ENDS
            if self._may_tell and "." in name and not name.startswith(_ASK_FOR_NUMBERS):
                self._tell(name)
            is_shown = _TELL_OF_GRAPHS.fullmatch(name) is not None
            if not (ends or is_shown) and "." in name and isinstance(script.source.parents[call], syntax.Expr):
                raise NotProven(f"what `{name}` does with it is not known")
            if not ends:
                self._carry(script, call)
        elif script.role(func) is Role.MODULE:
            self._carry(script, call)
        elif isinstance(func, syntax.Attribute):
            self._method(script, func, call)
        else:
            raise NotProven(f"`{shown(script, func)}` may differentiate what it is given")

    def _given(self, script: Script, callee: Definition, call: syntax.Call, arg: syntax.Arg) -> None:
        parameter = parameter_of(script, callee, call, arg)
        if parameter is None:
            raise NotProven(f"what `{callee.name}` does with `{shown(script, arg.value)}` is not followed")
        outside, self._inside = self._inside, callee.node
        for use in callee.script.names.uses(parameter):
            if any(each.node is parameter for each in callee.script.names.reaching(use)):
                self._carry(callee.script, use)
        self._inside = outside

    def _method(self, script: Script, func: syntax.Attribute, call: syntax.Call) -> None:
        """A method that no code is seen of takes it."""
        holder, method = func.value, func.attr.value
        if method in ("backward", "manual_backward", "scale"):
            raise NotProven(f"`{shown(script, func)}` differentiates it", is_certain=True)
        if method in _TELLING and not _logs_numbers(script, call):
            self._tell(shown(script, func))
        if method == "format" and script.role(holder) is Role.STRING and not self._may_tell:
            is_number = all(_is_number(script, arg.value) for arg in call.args)
            if not (is_number or _formats_numbers(script, holder)):
                self._tell(shown(script, func))
        elif method in _FILLS or script.role(holder) in (Role.MAPPING, Role.SEQUENCE):
            self._bound(script, holder, fills=True)
        elif self._may_tell and script.role(holder) is Role.STRING:
            if not (method == "format" and _formats_numbers(script, holder)):
                self._tell(shown(script, func))
        elif self._may_tell and method not in (*_TELLING, *_PLOTS) and self._is_of_library(script, holder):
            self._tell(shown(script, func))
        elif script.role(holder) in (Role.TENSOR, Role.BATCH, Role.MODULE):
            if script.role(holder) is Role.MODULE and method.startswith("register_"):
                raise NotProven(f"`{shown(script, func)}` keeps it")
            if works_in_place(method):
                self._bound(script, holder, fills=True)
            self._carry(script, call)
        elif script.role(holder) in (Role.UNKNOWN, Role.INSTANCE, Role.OPTIMIZER) and not (
            self._is_of_library(script, holder) and _CONSUMES.fullmatch(method)
        ):
            raise NotProven(f"what `{shown(script, func)}` does with it is not known")

    def _is_of_library(self, script: Script, holder: syntax.BaseExpression) -> bool:
        """Whether an object is one of a library's."""
        found = list(script.roles.origins(holder))
        return bool(found) and all(
            isinstance(made, syntax.Call) and other.name(made.func) is not None and other.definition(made.func) is None
            for other, made in found
        )

    def _check_own(self, script: Script, container: syntax.Name) -> None:
        """Raises NotProven where a container is not made by the function that fills it: others hold it too."""
        scope = script.names.scope(container).lookup(container.value)
        bindings = scope.bindings.get(container.value, []) if scope is not None else []
        is_here = scope is not None and scope is script.names.scope(container)
        begun = [each for each in script.names.reaching(container) or bindings if each.kind is not Kind.AUGMENT]
        if not is_here or not all(each.kind is Kind.ASSIGN and _makes_new(script, each) for each in begun):
            raise NotProven(f"what others do with `{container.value}` is not followed")

    def _check_not_handed_in(self, script: Script, target: syntax.BaseExpression) -> None:
        """Raises NotProven where ``+=`` may add in place to a tensor that others hold too."""
        if not isinstance(target, syntax.Name) or script.role(target) is Role.NUMBER:
            return
        for binding in script.names.reaching(target):
            is_other = binding.kind is Kind.PARAMETER or _is_of_another(script, binding.value)
            if is_other and not binding.path:
                raise NotProven(f"what others do with `{target.value}`, which it is added to, is not followed")

    def _bound(self, script: Script, target: syntax.Node, *, fills: bool = False) -> None:
        """Follows what is read from a variable, an attribute or a container that it is put into."""
        is_entry = not isinstance(target, (syntax.Name, syntax.Tuple, syntax.List))
        while isinstance(target, syntax.Subscript):
            target = target.value
        if isinstance(target, syntax.Name) and (is_entry or fills):
            self._check_own(script, target)
        match target:
            case syntax.Tuple(elements=elements) | syntax.List(elements=elements):
                for element in elements:
                    self._bound(script, element.value)
            case syntax.Name():
                uses = [use for use in script.names.uses(target) if _may_hold(script, use, target)]
                owner = script.names.scope(target).lookup(target.value)
                is_own = self._inside is not None and owner is not None and script.source.contains(self._inside, owner.node)
                self._carry_all(((script, use) for use in uses), outlives=not is_own)
            case syntax.Attribute(attr=syntax.Name(name)):
                if _is_read_by_name(script, name):
                    raise NotProven(f"what reads `{name}` by its name is not followed")
                found = (
                    (other, each) for other in script.everywhere(name.encode()) for each in other.source.of(syntax.Attribute)
                )
                reads = (
                    (other, each)
                    for other, each in found
                    if each.attr.value == name and (not is_target(other.source, each) or _is_added_to(other, each))
                )
                self._carry_all(reads, outlives=True)
            case _:
                raise NotProven(f"where `{shown(script, target)}` goes is not followed")

    def _carry_all(self, nodes: Iterable[tuple[Script, syntax.Node]], *, outlives: bool) -> None:
        """Follows all reads of what is kept; what outlives the call of a function may be returned by another one."""
        inside = self._inside
        for script, node in nodes:
            self._inside = None if outlives else inside
            try:
                self._carry(script, node)
            except NotProven as reason:
                if reason.is_certain or not self._may_tell:
                    raise
                self._unknown = self._unknown or reason
        self._inside = inside

    def _returned(self, script: Script, statement: syntax.Return) -> None:
        function = script.source.enclosing(statement, syntax.FunctionDef, syntax.Lambda)
        if function is not None and function is self._inside:
            return
        sites = script.call_sites(function) if isinstance(function, syntax.FunctionDef) else []
        if not sites:
            raise NotProven("what its callers do with the result is not seen")
        for other, call in sites:
            self._carry(other, call)


def _of_values(script: Script, value: syntax.BaseExpression, target: syntax.BaseExpression) -> syntax.BaseExpression:
    """Which target an assignment gives what has a graph: not that of the places, in ``_, predicted = out.max(1)``."""
    match target:
        case syntax.Tuple(elements=[syntax.Element(value=values), syntax.Element()]) if gives_places(script, value):
            return values
    return target


def _asks_for_gradients(script: Script, node: syntax.BaseExpression) -> bool:
    """Whether a tensor is a parameter by itself, or is made to take gradients."""
    return any(
        isinstance(made, syntax.Call)
        and (place.is_call_to(made, *library.PARAMETERS) or any(is_name(arg.keyword, "requires_grad") for arg in made.args))
        for place, made in script.roles.origins(node)
    )


def _is_handed_in(script: Script, name: syntax.Name) -> bool:
    """Whether a variable is a parameter of its function, or of what is around it."""
    up = script.source.parents[name]
    if isinstance(up, syntax.Attribute) or (isinstance(up, syntax.Arg) and up.keyword is name):
        return isinstance(up, syntax.Attribute) and up.attr.value not in _PLAIN_ATTRIBUTES and up.value is name
    if isinstance(up, syntax.Call) and up.func is name:
        return False
    call = script.source.parents[up] if isinstance(up, syntax.Arg) else None
    if isinstance(call, syntax.Call) and script.text(call.func) in _ENDING_CALLS:
        return False
    bindings, function = script.names.reaching(name), script.function(name)
    return any(each.kind is Kind.PARAMETER or script.function(each.node) is not function for each in bindings)


def _is_of_another(script: Script, value: syntax.Node | None) -> bool:
    """Whether a value is, or may be a view of, what another variable holds."""
    if isinstance(value, syntax.Call) and isinstance(value.func, syntax.Attribute):
        is_view = value.func.attr.value in VIEWS and script.name(value.func) is None
        return is_view or (script.name(value.func) or "").rpartition(".")[2] in VIEWS
    return isinstance(value, syntax.Name | syntax.Attribute | syntax.Subscript)


def _is_number(script: Script, node: syntax.BaseExpression) -> bool:
    """Whether a value certainly has no dimension: the number of a loss, or what numbers and such are added up to."""
    if script.role(node) is Role.NUMBER or is_scalar(script, node):
        return True
    match node:
        case syntax.BinaryOperation(left=left, right=right):
            return _is_number(script, left) and _is_number(script, right)
        case syntax.Name():
            bindings = script.names.reaching(node)
            values = [each.value for each in bindings]
            return bool(bindings) and all(
                each is not None and (isinstance(each, syntax.Integer | syntax.Float) or is_scalar(script, each))
                for each in values
            )
    return False


def _is_output(script: Script, node: syntax.BaseExpression) -> bool:
    """Whether an expression is what a network gives, or a sum of such: a tensor of several numbers."""
    given = [written(each) for each in script.names.reaching(node)] if isinstance(node, syntax.Name) else [node]
    calls = (call for each in given if each is not None for call in script.source.inside(each, syntax.Call))
    return any(script.role(call.func) is Role.MODULE and not is_loss(script, call) for call in calls) and not (
        is_scalar(script, node)
    )


def _makes_new(script: Script, binding: Binding) -> bool:
    """Whether a binding gives a variable a new container, or a new object of the project's, by no other name."""
    statement = script.source.statement(binding.node)
    if any(len(each.targets) > 1 for each in script.source.inside(statement, syntax.Assign)):
        return False
    value = part(binding.value, binding.path)[0] if binding.value is not None else None
    if isinstance(value, syntax.Call):
        made = script.definition(value.func)
        is_object = made is not None and isinstance(made.node, syntax.ClassDef)
        name = value.func.value if isinstance(value.func, syntax.Name) else ""
        return is_object or bool(_MAKERS.fullmatch(script.name(value.func) or name))
    return isinstance(value, syntax.List | syntax.Dict | syntax.ListComp | syntax.DictComp | syntax.Integer | syntax.Float)


def _is_read_by_name(script: Script, attribute: str) -> bool:
    """Whether a program may read an attribute by a text: ``getattr(state, "loss")``, ``vars(state)``."""
    mentions = script.program.mentions
    if any(mentions(script, mark) for mark in _BY_NAME):
        return True
    return mentions(script, b"getattr(") and any(mentions(script, f"{quote}{attribute}{quote}".encode()) for quote in "'\"")


def _autocast_around(script: Script, region: syntax.Node) -> syntax.Node | None:
    """The autocast that a piece of code stands in: it keeps casts until it is left (pytorch/pytorch, issue 112583)."""
    for up in script.source.ancestors(region):
        if isinstance(up, syntax.FunctionDef):
            return None
        for item in up.items if isinstance(up, syntax.With) else ():
            if isinstance(item.item, syntax.Call) and script.is_call_to(item.item, *library.AUTOCASTS):
                return item.item
    return None


@once(None)
def _normed_weight(script: Script) -> str | None:
    """What the program reads of a layer whose weight each forward pass makes anew (``torch.nn.utils.weight_norm``)."""
    if next(script.calls_everywhere(*_MAKE_WEIGHTS), None) is None:
        return None
    for place in script.everywhere(b".weight"):
        for read in place.source.of(syntax.Attribute):
            function = place.function(read)
            is_begun = function is not None and "init" in function.name.value
            if read.attr.value == "weight" and not is_begun and not is_target(place.source, read):
                return place.text(read)
    return None


def _is_of_module(script: Script, base: syntax.BaseExpression) -> bool:
    """Whether what is changed is held by a variable of a file."""
    holder: syntax.Node = base
    while isinstance(holder, (syntax.Attribute, syntax.Subscript)):
        holder = holder.value
    if not isinstance(holder, syntax.Name) or script.role(holder) is Role.NUMBER:
        return False
    return script.names.scope(holder).lookup(holder.value) is script.names.module


@once(False)
def _some_may_differentiate(script: Script) -> bool:
    """Whether a network of the program may take gradients in its own ``forward``, or may stand in a file of any name."""
    return any(script.program.mentions(script, mark) for mark in (b"autograd.grad", b"import_module", b"__import__")) or any(
        function is not None and function.name.value == "forward" and place.names.owner(function) is not None
        for place in script.everywhere(b".backward(")
        for call in place.method_calls("backward")
        for function in [place.function(call)]
    )


def _is_of_hidden_kind(script: Script, network: syntax.BaseExpression) -> bool:
    """Whether a network may be of a class that is out of sight: one out of a dict, or of a variable."""
    return any(
        isinstance(made, syntax.Call) and place.name(made.func) is None and place.value(made).definition is None
        for place, made in roots(script, network)
    )


def _runs(script: Script, call: syntax.Call, callees: list[Definition]) -> bool:
    """Whether a call runs a network, itself or by a first-party function that it may run."""
    if script.role(call.func) is Role.MODULE:
        return True
    return any(
        isinstance(each.node, syntax.FunctionDef) and bool(each.script.loops.function_does(each.node, Does.FORWARD))
        for each in callees
    )


def _logs_numbers(script: Script, call: syntax.Call) -> bool:
    """Whether a logger is given a template that shows what follows it as numbers: ``logger.info("%.3f", total)``."""
    template = call.args[0].value
    return isinstance(template, (syntax.SimpleString, syntax.ConcatenatedString)) and bool(
        _NUMBERS.fullmatch(script.text(template))
    )


def _formats_numbers(script: Script, template: syntax.BaseExpression) -> bool:
    """Whether each field of a template for ``format`` says how many digits of a number it shows."""
    known = script.constant(template)
    fields = re.findall(r"\{[^{}]*\}", known.value) if known is not None and isinstance(known.value, str) else []
    return bool(fields) and all(re.fullmatch(r"\{\w*:[^{}]*[eEfFgGn%]\}", each) for each in fields)


def _is_added_to(script: Script, target: syntax.Node) -> bool:
    """Whether a name or attribute is what ``+=`` and the like change: the new value holds the old one."""
    return isinstance(script.source.parents[target], syntax.AugAssign)


def _may_hold(script: Script, use: syntax.Name, target: syntax.Name) -> bool:
    """Whether a use of a variable reads what ``target``, where it is set or filled, gives it."""
    if use is target or (is_target(script.source, use) and not _is_added_to(script, use)):
        return False
    scope = script.names.scope(target).lookup(target.value)
    is_set = scope is not None and any(binding.node is target for binding in scope.bindings.get(target.value, ()))
    return not is_set or any(binding.node is target for binding in script.names.reaching(use))
