"""What half precision breaks: losses and functions that raise under autocast, and numbers that float16 does not hold."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.shapes.model.networks import PRODUCT_METHODS, root_definition, with_named
from speedlint.shapes.precision import ranges
from speedlint.shapes.steps import Step, modules_of, runs_network
from speedlint.shapes.training import Root, roots
from speedlint.solve import operations
from speedlint.solve.flow import once
from speedlint.torch.words import Role

_NUMBERS = (Role.NUMBER, Role.STRING, Role.NONE)
_NO_HALF = frozenset(
    "index_add index_add_ index_copy index_copy_ index_put_ scatter_add scatter_add_ scatter_reduce scatter_reduce_ inverse "
    "cholesky lu solve lstsq pinverse slogdet logdet det svd eig symeig qr matrix_exp spmm hspmm addmv_ addr_ addmm_ "
    "addbmm_ baddbmm_ lerp lerp_ masked_scatter masked_scatter_ index_reduce index_reduce_ quantile nanquantile histc "
    "histogram searchsorted bucketize polar view_as_complex".split()
)
"""Functions and methods that raise where autocast makes the dtypes of their tensors differ, or that float16 has none of."""
_REFUSED = ("torch.nn.BCELoss", "torch.nn.functional.binary_cross_entropy")
"""Losses of probabilities that raise under autocast."""
_COMPLEX = frozenset("torch.cfloat torch.complex64 torch.cdouble torch.complex128 torch.chalf torch.complex32".split())
_SINGLE = frozenset("torch.float32 torch.float torch.FloatTensor torch.cuda.FloatTensor".split())
_NO_HALF_ARRAYS = ("numpy.linalg.", "scipy.linalg.", "scipy.signal.", "scipy.ndimage.", "cv2.")
"""Parts of libraries that take no arrays in half precision."""


class Hazard(NamedTuple):
    """A place in a network or a loss that fails, or loses its meaning, under autocast.

    Attributes:
        half_only: in float16 alone.
        overflows: a sum over so many entries that float16 does not hold it, whatever the loss is scaled by.
    """

    script: Script
    node: syntax.Node
    why: str
    half_only: bool = False
    overflows: bool = False

    def told(self, script: Script) -> str:
        """It and its place, as seen from a script."""
        line = self.script.source.line(self.node)
        where = f"line {line}" if self.script is script else f"{self.script.path.name} line {line}"
        return f"{where}: {self.why}"


def of_step(step: Step) -> list[Hazard]:
    """What half precision breaks in the statements of a step, in its modules, and in all that these name and call; first
    what it breaks in any form."""
    own = (each for code in (*step.statements, *_between(step)) for each in of_code(step.script, code))
    found = dict.fromkeys((*own, *_of_roots(modules_of(step)), *_of_amount(step)))
    return sorted(found, key=lambda each: each.half_only)


def _between(step: Step) -> Iterator[syntax.Node]:
    """What else stands between the first forward call of a step and its backward pass, and names what the step computes."""
    inside = step.script.source.inside
    computed = {
        name.value
        for statement in step.statements
        for target in inside(statement, syntax.AssignTarget)
        for name in inside(target, syntax.Name)
    }
    rows = range(step.forward.row, step.backward.row)
    for line in (*inside(step.turn, syntax.SimpleStatementLine), *(each.test for each in inside(step.turn, syntax.If))):
        is_of_step = line.row in rows and line not in step.statements
        if is_of_step and any(name.value in computed for name in inside(line, syntax.Name)):
            yield line


def why_unscalable(step: Step) -> str:
    """Why one loss scaler does not do for a step's optimizers; nothing where it may."""
    script, held = step.script, set[tuple[Root, ...]]()
    for call in step.optimizer_steps():
        assert isinstance(call.func, syntax.Attribute)
        found = {each for place, made in script.roles.origins(call.func.value) for each in _taken_whole(place, made)}
        if found & held:
            return "two optimizers hold the same parameters, whose gradients one scaler would unscale twice"
        held |= found
    return ""


def _taken_whole(script: Script, made: syntax.Node) -> Iterator[tuple[Root, ...]]:
    """The module all of whose parameters an optimizer is made of: ``Adam(model.parameters())``."""
    match made:
        case syntax.Call(args=[syntax.Arg(value=syntax.Call(func=taken, args=[])), *_]):
            if isinstance(taken, syntax.Attribute) and taken.attr.value == "parameters":
                module = tuple(roots(script, taken.value))
                yield from (module,) if module else ()


def of_uses(step: Step) -> list[Hazard]:
    """The comparisons of dtypes that raise, in what a step hands its network's outputs to beside the loss."""
    script, outputs = step.script, _outputs(step)
    found = (
        each
        for call in step.calls()
        if not runs_network(script, call) and any(_taken_from(arg.value) in outputs for arg in call.args)
        for place, node in with_named(script, call, called=True)
        for each in _compared_dtypes(place, node)
    )
    return list(dict.fromkeys(found))


def _outputs(step: Step) -> set[str]:
    """The variables that a step keeps its network's outputs in, and what a call makes of one of them alone."""
    script, source = step.script, step.script.source
    found: set[str] = set()
    for assign in source.inside(step.turn, syntax.Assign):
        value = assign.value
        made_of = value.args[0].value if isinstance(value, syntax.Call) and len(value.args) == 1 else value
        is_output = any(
            runs_network(script, call)
            for statement in step.statements
            if source.contains(statement, assign)
            for call in source.inside(value, syntax.Call)
        )
        if is_output or _taken_from(made_of) in found:
            found.update(name.value for each in assign.targets for name in source.inside(each.target, syntax.Name))
    return found


def _taken_from(expression: syntax.BaseExpression) -> str | None:
    """The variable that an argument is, or a part of, in the same dtype."""
    match expression:
        case syntax.Name(value=name):
            return name
        case (
            syntax.Subscript(value=held) | syntax.Call(func=syntax.Attribute(value=held, attr=syntax.Name("detach" | "cpu")))
        ):
            return _taken_from(held)
    return None


def _of_amount(step: Step) -> Iterator[Hazard]:
    """The layers of a network that take or tell amounts, where nothing says how large these are."""
    tops = [(step.script, statement) for statement in step.statements]
    tops += [found for script, node in modules_of(step) for found in _code_of(script, node)]
    calls = [(place, call) for place, top in tops for call in place.source.inside(top, syntax.Call)]
    found = (*ranges.amounts(calls), *ranges.raw_inputs(calls))
    yield from (Hazard(place, call, why, half_only=True) for place, call, why in found)


def _code_of(script: Script, node: syntax.Node) -> Iterator[tuple[Script, syntax.Node]]:
    definition = root_definition(script, node)
    yield (script, node) if definition is None else (definition.script, definition.node)


def refused_loss(step: Step) -> str:
    """The loss of a step that raises under autocast, as it is called; nothing where none does."""
    calls = ((each.script, each.node) for each in of_step(step) if isinstance(each.node, syntax.Call))
    return next((script.text(call.func) for script, call in calls if script.name(call.func) in _REFUSED), "")


def is_out_of_sight(script: Script, call: syntax.Call) -> bool:
    """Whether nothing is known of what a call runs, and it is no method of a tensor or the like."""
    if script.name(call.func) is not None or script.role(call.func) is Role.MODULE or script.callee(call) is not None:
        return False
    is_own = isinstance(call.func, syntax.Attribute) and script.text(call.func.value) == "self"
    return is_own or not isinstance(call.func, syntax.Attribute)


def refused_out_of_sight(step: Step) -> str:
    """A loss of the program that raises under autocast, and its place, where a step calls what may come to it and is not
    followed; nothing where there is none."""
    script = step.script
    calls = (call for each in step.statements for call in script.source.inside(each, syntax.Call))
    unseen = next((call for call in calls if is_out_of_sight(script, call)), None)
    if unseen is None:
        return ""
    for place in script.everywhere(b"BCELoss", b"binary_cross_entropy"):
        for call in place.calls(*_REFUSED):
            where = f"{place.path.name} line {place.source.line(call)}"
            return f"`{script.text(unseen.func)}` outside where it comes to `{place.text(call.func)}` ({where})"
    return ""


def of_module(script: Script, module: syntax.Node) -> list[Hazard]:
    """The same for a module, the value of an expression."""
    return sorted(_of_roots(roots(script, module)), key=lambda each: each.half_only)


def _of_roots(found: list[Root]) -> Iterator[Hazard]:
    for script, node in found:
        definition = root_definition(script, node)
        yield from of_code(script, node) if definition is None else of_code(definition.script, definition.node)


@once([])
def of_code(script: Script, top: syntax.Node) -> list[Hazard]:
    """The same for a piece of code."""
    return sorted(dict.fromkeys(_find(script, top)), key=lambda each: each.half_only)


def _find(script: Script, top: syntax.Node) -> Iterator[Hazard]:
    for place, node in with_named(script, top, called=True):
        for call in place.source.inside(node, syntax.Call):
            yield from _of_call(place, call)
        yield from _grams(place, node)
        yield from (Hazard(place, found, why, half_only=True) for found, why in ranges.beyond(place, node))
        yield from _asserted_dtypes(place, node)
        yield from _index_writes(place, node)
        if isinstance(node, syntax.ClassDef):
            yield from _custom_function(place, node)


def _of_call(script: Script, call: syntax.Call) -> list[Hazard]:
    name, why, half_only = script.name(call.func), None, False
    method = call.func.attr.value if isinstance(call.func, syntax.Attribute) else ""
    if name in _REFUSED:
        why = f"`{script.text(call.func)}` raises under autocast; use its `with_logits` form on the logits"
    elif name is not None and (
        name.startswith(("torch.linalg.", "torch.fft.", "torch.sparse.", "torch.cholesky", "torch.svd"))
        or name.rpartition(".")[2] in _NO_HALF
        or name in ("torch.inverse", "torch.det", "torch.logdet", "torch.spmm", "torch.stft", "torch.istft")
    ):
        why = f"`{script.text(call.func)}` is not made for float16"
    elif name is not None and name.startswith(_NO_HALF_ARRAYS):
        why = f"`{script.text(call.func)}` takes no arrays in half precision"
    elif method in ("scatter", "scatter_") and len(call.args) > 2 and script.role(call.args[2].value) is Role.TENSOR:
        why = f"`{method}` takes tensors of one dtype"
    elif name is None and method in _NO_HALF:
        why = f"`{method}` takes tensors of one dtype, or none of float16"
    elif any(arg.keyword is not None and arg.keyword.value == "out" for arg in call.args):
        why = f"`out=` of `{script.text(call.func)}` takes one dtype"
    elif name == "torch.complex" or any(script.name(arg.value) in _COMPLEX for arg in call.args):
        why = f"`{script.text(call)}` makes complex numbers, which neither float16 nor a loss scaler has"
    elif name == "torch.autograd.grad":
        why, half_only = "`torch.autograd.grad` differentiates the unscaled loss", True
    elif _is_gram(script, call, method):
        why = f"`{script.text(call)}` sums over every position, which float16 may not hold"
        return [Hazard(script, call, why, half_only=True, overflows=True)]
    elif method == "double" and not call.args:
        why = "it computes in double precision"
    return [Hazard(script, call, why, half_only)] if why else []


def _is_gram(script: Script, call: syntax.Call, method: str) -> bool:
    """Whether it multiplies a matrix by its own transpose, as a style loss does before it divides by the size."""
    if method not in PRODUCT_METHODS or not isinstance(call.func, syntax.Attribute):
        return False
    factors = [arg.value for arg in call.args]
    if script.name(call.func) is None:
        factors.insert(0, call.func.value)
    if len(factors) < 2:
        return False
    second = factors[1]
    bindings = script.names.reaching(second) if isinstance(second, syntax.Name) else []
    if len(bindings) == 1 and bindings[0].value is not None:
        second = bindings[0].value
    match second:
        case syntax.Call(func=syntax.Attribute(value=base, attr=syntax.Name(value="t" | "transpose" | "permute"))):
            return script.text(base) == script.text(factors[0])
        case syntax.Attribute(value=base, attr=syntax.Name(value="T" | "mT")):
            return script.text(base) == script.text(factors[0])
    return False


def _grams(script: Script, top: syntax.Node) -> Iterator[Hazard]:
    """The products of a matrix and its own transpose that an operator or ``einsum`` takes."""
    found: list[tuple[syntax.Node, syntax.BaseExpression, syntax.BaseExpression]] = []
    for product in script.source.inside(top, syntax.BinaryOperation):
        if isinstance(product.operator, syntax.MatrixMultiply):
            one, two = _untransposed(script, product.left), _untransposed(script, product.right)
            if (one is product.left) != (two is product.right):
                found.append((product, one, two))
    for call in script.source.inside(top, syntax.Call):
        if script.name(call.func) == "torch.einsum" and len(call.args) == 3:
            found.append((call, call.args[1].value, call.args[2].value))
    for node, one, two in found:
        if script.text(one) == script.text(two):
            why = f"`{script.text(node)}` sums over every position, which float16 may not hold"
            yield Hazard(script, node, why, half_only=True, overflows=True)


def _untransposed(script: Script, factor: syntax.BaseExpression) -> syntax.BaseExpression:
    bindings = script.names.reaching(factor) if isinstance(factor, syntax.Name) else []
    made = bindings[0].value if len(bindings) == 1 and isinstance(bindings[0].value, syntax.BaseExpression) else factor
    match made:
        case syntax.Call(func=syntax.Attribute(value=base, attr=syntax.Name("t" | "transpose" | "permute"))):
            return base
        case syntax.Attribute(value=base, attr=syntax.Name("T" | "mT")):
            return base
    return factor


def _index_writes(script: Script, top: syntax.Node) -> list[Hazard]:
    """Assignments of tensors to rows: they raise where autocast makes the dtypes differ."""
    found = []
    for target in script.source.inside(top, syntax.AssignTarget):
        assign = script.source.parents[target]
        if not isinstance(assign, syntax.Assign) or not is_written_by_index(script, target.target):
            continue
        if script.role(assign.value) is not Role.NUMBER:
            why = f"`{script.text(target.target)} = ...` raises where autocast makes the dtypes differ"
            found.append(Hazard(script, target.target, why))
    return found


def _compared_dtypes(script: Script, top: syntax.Node) -> Iterator[Hazard]:
    """Where code raises if two tensors differ in their dtypes, as an output of autocast and a float32 target do."""
    for comparison in script.source.inside(top, syntax.Comparison):
        sides = (comparison.left, *(target.comparator for target in comparison.comparisons))
        if len(sides) == 2 and all(_is_dtype(script, side) for side in sides) and _decides_raise(script, comparison):
            asked = f"what rests on `{script.text(comparison)}` raises where one of the two is in half precision"
            why = f"{asked}; hand it `.float()` outputs"
            yield Hazard(script, comparison, why)


def _asserted_dtypes(script: Script, top: syntax.Node) -> Iterator[Hazard]:
    """Where code raises unless a tensor is of the one dtype that is written there."""
    for comparison in script.source.inside(top, syntax.Comparison):
        sides = (comparison.left, *(target.comparator for target in comparison.comparisons))
        is_asked = any(_is_dtype(script, side) for side in sides) and any(_is_single(script, side) for side in sides)
        if is_asked and _decides_raise(script, comparison):
            yield Hazard(script, comparison, f"what rests on `{script.text(comparison)}` raises in half precision")


def _is_single(script: Script, side: syntax.BaseExpression) -> bool:
    """Whether it is the dtype or the type of tensors in single precision, or some of these."""
    if isinstance(side, syntax.Tuple | syntax.List | syntax.Set):
        return any(_is_single(script, each.value) for each in side.elements)
    known = script.constant(side)
    return script.name(side) in _SINGLE or (known is not None and known.value in _SINGLE)


def _is_dtype(script: Script, side: syntax.BaseExpression) -> bool:
    """Whether it is ``x.dtype`` or ``x.type()`` of some tensor."""
    match side:
        case syntax.Attribute(attr=syntax.Name("dtype")):
            return script.name(side) is None
        case syntax.Call(func=syntax.Attribute(attr=syntax.Name("type")), args=[]):
            return script.name(side.func) is None
    return False


def _decides_raise(script: Script, comparison: syntax.Comparison) -> bool:
    """Whether an assertion, or an ``if`` that raises, rests on a comparison."""
    child: syntax.Node = comparison
    for up in script.source.ancestors(comparison):
        if isinstance(up, syntax.Assert):
            return child is up.test
        if isinstance(up, syntax.If):
            return child is up.test and any(True for _ in script.source.inside(up.body, syntax.Raise))
        if not isinstance(up, syntax.UnaryOperation | syntax.BooleanOperation):
            return False
        child = up
    return False


def is_written_by_index(script: Script, target: syntax.BaseExpression) -> bool:
    """Whether a target is ``x[rows]`` of a tensor: unlike those by slices, such an assignment casts nothing."""
    if not isinstance(target, syntax.Subscript) or script.role(target.value) is Role.MAPPING:
        return False
    is_tensor = script.role(target.value) is Role.TENSOR
    indices = [script.role(part.slice.value) for part in target.slice if isinstance(part.slice, syntax.Index)]
    return any(index is Role.TENSOR or (is_tensor and index not in _NUMBERS) for index in indices)


def _custom_function(script: Script, top: syntax.ClassDef) -> list[Hazard]:
    """An autograd function that does not say how it runs under autocast."""
    if not operations.is_operation(script, top) or "custom_fwd" in script.text(top):
        return []
    return [Hazard(script, top.name, f"the autograd function `{top.name.value}` is not written for autocast")]
