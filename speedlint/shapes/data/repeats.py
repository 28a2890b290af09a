"""What a value in an item's code hangs on: on nothing that changes, on which item it is, or on chance.

The code of an item is ``__getitem__`` and the first-party functions it calls; a ``Run`` is one call of one of them. What is
out of sight, such as a transform handed in from elsewhere, counts as chance.
"""

from __future__ import annotations

import enum
import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING

from speedlint.facts import syntax
from speedlint.solve import reach
from speedlint.solve.flow import once
from speedlint.solve.names import Binding, Kind
from speedlint.solve.terms import Constant, Definition
from speedlint.solve.unpacking import part
from speedlint.solve.values import is_static, returned
from speedlint.source import is_name
from speedlint.torch import library

if TYPE_CHECKING:
    from speedlint.ask.script import Script

_PLAIN = frozenset(
    "os io math json pickle zlib gzip lzma bz2 struct re csv xml copy glob collections itertools functools string pathlib "
    "numpy scipy cv2 PIL skimage imageio pandas h5py soundfile librosa torchaudio torch nibabel SimpleITK pydicom tifffile "
    "rasterio lmdb lxml pycocotools networkx rdkit nltk tokenizers transformers tiktoken sentencepiece jieba yaml tarfile "
    "zipfile tables netCDF4 xarray pyarrow decord av base64 hashlib operator textwrap unicodedata html typing".split()
)
_RANDOM = (
    *library.DRAWS,
    "torch.distributions.",
    "torch.nn.functional.dropout",
    "torch.utils.data.get_worker_info",
    "os.urandom",
    "os.getpid",
    "scipy.stats.",
    "skimage.util.random_noise",
)
_DRAWS = frozenset(
    "random shuffle sample choice choices uniform normal randint integers permutation permuted standard_normal rand randn "
    "random_sample multinomial bernoulli bernoulli_ normal_ uniform_ exponential_ random_ getrandbits gauss betavariate "
    "beta triangular randrange next pop popleft popitem".split()
)
_TAKES = frozenset(
    "get items keys values copy split strip rstrip lstrip replace lower upper startswith endswith join format index "
    "reshape astype transpose squeeze unsqueeze view clone numpy tolist item long float int iloc loc row read getAnnIds "
    "loadAnns loadImgs getImgIds annToMask joinpath encode decode tokenize encode_plus batch_encode_plus exists sum mean "
    "min max".split()
)
_GENERATORS = ("numpy.random.", "random.Random", "random.SystemRandom", "torch.Generator")
_PARTS = (syntax.Subscript, syntax.Attribute)
_DEEPEST = 4


class Hangs(enum.IntEnum):
    """What a value hangs on; a higher one changes more."""

    NOTHING = 0
    """It is the same for each item."""
    ITEM = 1
    """It is the same each time that the item is read."""
    CHANCE = 2
    """It may be another one each time, as far as is seen."""


class Run:
    """One call of a function within the reading of an item."""

    def __init__(
        self, script: Script, function: syntax.FunctionDef, given: dict[syntax.Param, Hangs], depth: int = 0
    ) -> None:
        self.script, self.function, self.given, self.depth = script, function, given, depth
        self._inner: dict[syntax.Node, Run | None] = {}
        self._passed: dict[syntax.Param, Constant | None] = {}
        self._written_by: dict[tuple[int, str] | None, list[syntax.Name]] = {}
        self._self = _own_self(Definition(script, function))

    @once(Hangs.NOTHING)
    def of(self, node: syntax.Node) -> Hangs:
        """What the value of an expression hangs on."""
        match node:
            case syntax.Name():
                return self._name(node)
            case syntax.Attribute():
                return self._attribute(node)
            case syntax.Call():
                return self._call(node)
            case syntax.Arg(value=value):
                return self.of(value)
            case syntax.CompFor(iter=iterated, ifs=tests, inner_for_in=inner):
                return self._all([iterated, *(each.test for each in tests), *([inner] if inner else [])])
            case syntax.Lambda(body=body):
                return self.of(body)
        return self._all(node.children)

    def _all(self, nodes: object) -> Hangs:
        return max((self.of(each) for each in nodes), default=Hangs.NOTHING)  # type: ignore[attr-defined]

    # Variables

    def _name(self, name: syntax.Name) -> Hangs:
        scope = self.script.names.scope(name).lookup(name.value)
        bindings = self.script.names.reaching(name)
        if scope is None or scope is self.script.names.module:
            values = (binding.value for binding in bindings if binding.value is not None)
            return Hangs.CHANCE if any(self._is_generator(value) for value in values) else Hangs.NOTHING
        found = max((self._binding(binding) for binding in bindings), default=Hangs.NOTHING)
        return max(found, self._written(name))

    def _binding(self, binding: Binding) -> Hangs:
        if isinstance(binding.node, syntax.Param):
            around = self.script.source.enclosing(binding.node, syntax.FunctionDef, syntax.Lambda)
            return Hangs.NOTHING if isinstance(around, syntax.Lambda) else self.given.get(binding.node, Hangs.CHANCE)
        if binding.value is None:
            return Hangs.NOTHING
        return max(self.of(_part(binding)), self.decided(binding.node))

    def decided(self, node: syntax.Node) -> Hangs:
        """What it hangs on whether the node runs."""
        found, child = Hangs.NOTHING, node
        for up in self.script.source.ancestors(node):
            if up is self.function:
                break
            if isinstance(up, (syntax.If, syntax.While)) and child is not up.test:
                found = max(found, self.of(up.test))
            child = up
        return found

    def _written(self, name: syntax.Name) -> Hangs:
        """What the values hang on that are written into a variable before this use of it."""
        found = Hangs.NOTHING
        for use in self._writing(name):
            if found is not Hangs.CHANCE and use is not name and self.script.order.runs_again(use, name):
                found = max(found, self._written_at(use))
        return found

    def _writing(self, name: syntax.Name) -> list[syntax.Name]:
        """The uses of a variable in the function that may write into its value."""
        variable = self.script.names.variable(name)
        if variable not in self._written_by:
            uses = (use for use in self.script.names.uses(name) if self.script.source.contains(self.function, use))
            self._written_by[variable] = [use for use in uses if _writer(self.script, use) is not None]
        return self._written_by[variable]

    @once(Hangs.NOTHING)
    def _written_at(self, use: syntax.Name) -> Hangs:
        writer = _writer(self.script, use)
        if writer is None or isinstance(writer, syntax.Call):
            return Hangs.CHANCE if writer is not None and self._may_change(writer) else Hangs.NOTHING
        parts = itertools.takewhile(lambda each: isinstance(each, _PARTS), self.script.source.ancestors(use))
        places = max((self._all(each.slice) for each in parts if isinstance(each, syntax.Subscript)), default=Hangs.NOTHING)
        return max(places, self.of(writer.value), self.decided(writer))

    def _may_change(self, call: syntax.Call) -> bool:
        """Whether a call that is a statement of its own changes what it is given by chance."""
        return self._call(call) is Hangs.CHANCE and self.script.name(call.func) not in ("print", "setattr")

    def _attribute(self, node: syntax.Attribute) -> Hangs:
        if self.script.name(node) is not None:
            return Hangs.NOTHING
        if not self.is_self(node.value):
            return self.of(node.value)
        owner = self._owner
        if owner is None:
            return Hangs.CHANCE
        method = owner.script.roles.calls.method(owner, node.attr.value)
        if method is not None:
            return self._result(method, {})
        assigned = owner.script.roles.assigned_on_self(owner, node.attr.value)
        if any(not _is_set_up(owner, other, value) or _is_generator(other, value) for other, value, _ in assigned):
            return Hangs.CHANCE
        return Hangs.CHANCE if _is_counted_up(owner, node.attr.value) else self.of(node.value)

    def is_self(self, node: syntax.Node) -> bool:
        """Whether an expression is the dataset itself."""
        if not isinstance(node, syntax.Name) or self._self is None:
            return False
        return any(binding.node is self._self for binding in self.script.names.reaching(node))

    @property
    def _owner(self) -> Definition | None:
        klass = self.script.names.owner(self.function)
        return Definition(self.script, klass) if klass is not None else None

    def _is_generator(self, value: syntax.Node) -> bool:
        return _is_generator(self.script, value)

    # Calls

    def _call(self, call: syntax.Call) -> Hangs:
        given = max((self.of(arg.value) for arg in call.args), default=Hangs.NOTHING)
        callee = self.script.callee(call)
        if callee is not None and isinstance(callee.node, syntax.FunctionDef):
            inner = self.into(call, callee)
            if inner is None:
                return Hangs.CHANCE
            made = callee.node.name.value == "__init__"
            return max(given, Hangs.CHANCE if inner.draws() else Hangs.NOTHING) if made else inner.result()
        name = self.script.name(call.func)
        if name is not None:
            return given if _is_plain(name) else Hangs.CHANCE
        if not isinstance(call.func, syntax.Attribute) or call.func.attr.value in _DRAWS:
            return Hangs.CHANCE
        holder = call.func.value
        if self.is_self(holder):
            return Hangs.CHANCE
        if self._is_held(holder) and call.func.attr.value not in _TAKES and not self._is_of_plain(holder):
            return Hangs.CHANCE
        return max(given, self.of(holder))

    def _is_held(self, node: syntax.Node) -> bool:
        """Whether an expression is an attribute of the dataset: an object that was handed in."""
        return isinstance(node, syntax.Attribute) and self.is_self(node.value)

    def _is_of_plain(self, node: syntax.Node) -> bool:
        origins = list(self.script.roles.origins(node)) if isinstance(node, syntax.BaseExpression) else []
        made = [script.name(value.func) for script, value in origins if isinstance(value, syntax.Call)]
        return bool(origins) and len(made) == len(origins) and all(name is not None and _is_plain(name) for name in made)

    def into(self, call: syntax.Call, callee: Definition) -> Run | None:
        """The run of a first-party function that a call begins; None where it is too deep to follow."""
        if call not in self._inner:
            self._inner[call] = self._into(call, callee)
        return self._inner[call]

    def _into(self, call: syntax.Call, callee: Definition) -> Run | None:
        if self.depth >= _DEEPEST or not isinstance(callee.node, syntax.FunctionDef) or callee.node is self.function:
            return None
        params = callee.node.params
        given = dict.fromkeys((*params.posonly_params, *params.params, *params.kwonly_params), Hangs.NOTHING)
        for arg in call.args:
            parameter = reach.parameter_of(self.script, callee, call, arg) if not arg.star else None
            if parameter is None:
                return None
            given[parameter] = self.of(arg.value)
        if (holder := _own_self(callee)) is not None:
            made = max(given.values(), default=Hangs.NOTHING)
            held = self.of(call.func.value) if isinstance(call.func, syntax.Attribute) else Hangs.NOTHING
            given[holder] = made if callee.node.name.value == "__init__" else held
        run = Run(callee.script, callee.node, given, self.depth + 1)
        for arg in call.args:
            if (parameter := reach.parameter_of(self.script, callee, call, arg)) is not None:
                run._passed[parameter] = self.script.constant(arg.value)
        return run

    def is_left_out(self, node: syntax.Node) -> bool:
        """Whether a node stands in the body of ``if flag:`` and the call passes False for the flag."""
        child = node
        for up in self.script.source.ancestors(node):
            if up is self.function:
                break
            if isinstance(up, syntax.If) and child is up.body and isinstance(up.test, syntax.Name):
                bound = [binding.node for binding in self.script.names.reaching(up.test)]
                known = [self._passed.get(each) for each in bound if isinstance(each, syntax.Param)]
                if len(bound) == 1 and known and known[0] is not None and not known[0].value:
                    return True
            child = up
        return False

    def _result(self, method: Definition, given: dict[syntax.Param, Hangs]) -> Hangs:
        if not isinstance(method.node, syntax.FunctionDef) or self.depth >= _DEEPEST:
            return Hangs.CHANCE
        for parameter in method.node.params.params[:1]:
            given = {parameter: Hangs.NOTHING, **given}
        return Run(method.script, method.node, given, self.depth + 1).result()

    def result(self) -> Hangs:
        """What the function's result hangs on."""
        if any(
            self.script.function(each) is self.function for each in self.script.source.inside(self.function, syntax.Yield)
        ):
            return Hangs.CHANCE
        found = Hangs.NOTHING
        for value in returned(Definition(self.script, self.function)):
            found = max(found, self.of(value), self.decided(value))
        return found

    def draws(self) -> bool:
        """Whether anything that the function calls hangs on chance."""
        return any(self.of(call) is Hangs.CHANCE for call in self.calls())

    def calls(self) -> Iterator[syntax.Call]:
        """The calls of the function's own code."""
        for call in self.script.source.inside(self.function.body, syntax.Call):
            if self.script.function(call) is self.function:
                yield call


def _own_self(function: Definition) -> syntax.Param | None:
    """The parameter that is the object itself."""
    node, script = function.node, function.script
    if not isinstance(node, syntax.FunctionDef) or script.names.owner(node) is None or is_static(node):
        return None
    return next(iter((*node.params.posonly_params, *node.params.params)), None)


def _writer(script: Script, use: syntax.Name) -> syntax.Assign | syntax.AugAssign | syntax.Call | None:
    """What may write into the value of a variable at a use of it: ``x[i] = y``, ``x.y += z``, and ``x.f()`` or ``f(x)`` that
    is a statement of its own."""
    parents = script.source.parents
    node: syntax.Node = use
    parent = parents[use]
    while isinstance(parent, _PARTS) and parent.value is node:
        node, parent = parent, parents[parent]
    if isinstance(parent, syntax.AssignTarget) and node is not use:
        assign = parents[parent]
        return assign if isinstance(assign, syntax.Assign) else None
    if isinstance(parent, syntax.AugAssign) and node is not use:
        return parent if parent.target is node else None
    call = parent if node is not use else parents[parent] if isinstance(parent, syntax.Arg) else None
    return call if isinstance(call, syntax.Call) and isinstance(parents[call], syntax.Expr) else None


def _part(binding: Binding) -> syntax.Node:
    """The part of a written-out tuple that a name is bound to, or the whole value."""
    assert binding.value is not None
    return part(binding.value, binding.path)[0] if binding.kind is Kind.ASSIGN else binding.value


def _is_plain(name: str) -> bool:
    """Whether a library's function always gives the same for the same."""
    if name.startswith(_RANDOM):
        return False
    return "." not in name or name.partition(".")[0] in _PLAIN


def _is_generator(script: Script, value: syntax.Node) -> bool:
    return isinstance(value, syntax.Call) and (script.name(value.func) or "").startswith(_GENERATORS)


def _is_set_up(owner: Definition, script: Script, value: syntax.Node) -> bool:
    """Whether an attribute is set where the object is made: in ``__init__`` or a method that it calls."""
    function = script.function(value)
    while function is not None and script.names.owner(function) is None:
        function = script.function(function)
    return function is None or function.name.value in _set_up_methods(owner)


def _is_counted_up(owner: Definition, name: str) -> bool:
    """Whether a method adds to an attribute after the object is made."""
    for klass in owner.script.roles.calls.lineage(owner):
        for augmented in klass.script.source.inside(klass.node, syntax.AugAssign):
            target = augmented.target
            is_it = isinstance(target, syntax.Attribute) and target.attr.value == name
            if is_it and not _is_set_up(owner, klass.script, target):
                return True
    return False


@once(set())
def _set_up_methods(owner: Definition) -> set[str]:
    calls, found, left = owner.script.roles.calls, {"__init__"}, ["__init__"]
    while left:
        name = left.pop()
        for klass in calls.lineage(owner):
            method = calls.method(klass, name)
            if method is None:
                continue
            for attribute in method.script.source.inside(method.node, syntax.Attribute):
                is_own = is_name(attribute.value, "self")
                if is_own and attribute.attr.value not in found:
                    found.add(attribute.attr.value)
                    left.append(attribute.attr.value)
    return found - {"__getitem__"}
