"""Work on the host that the GPU waits for: figures, histograms, metrics and checkpoints, made by a call or what it calls."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from typing import NamedTuple

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.shapes.training import goes_over_parameters
from speedlint.solve.flow import listed_once
from speedlint.solve.loops import Does, Loop
from speedlint.solve.names import Kind as NameKind
from speedlint.torch import library
from speedlint.torch.words import Frequency, Role

_DEPTH = 3


class Kind(enum.Enum):
    """What is made."""

    FIGURE = "a figure"
    CLOUD = "a figure of every sample"
    HISTOGRAM = "a histogram"
    HISTOGRAMS = "a histogram of every parameter"
    METRIC = "a metric on the host"
    PAIRS = "a metric over all pairs of samples"
    COUNTS = "a confusion matrix on the host"
    EDITS = "an edit distance in loops of Python"
    CHECKPOINT = "a checkpoint"


_FIGURE_METHODS = frozenset({"savefig", "add_figure", "add_image", "add_images", "add_embedding", "add_video", "add_mesh"})
_TENSORFLOW = (
    "tensorflow",
    "tensorflow.compat.v1",
    "tensorboard.compat.proto.summary_pb2",
    "tensorboardX.proto.summary_pb2",
)
"""Where the records are that TensorBoard reads."""
_FIGURES = (
    "matplotlib.pyplot.savefig",
    "torchvision.utils.save_image",
    "wandb.Image",
    "cv2.imwrite",
    "imageio.imwrite",
    "scipy.misc.toimage",
    "tensorflow.summary.image",
    *(f"{module}.Summary.Image" for module in _TENSORFLOW),
)
_CLOUD_METHODS = frozenset({"scatter", "add_embedding", "hexbin"})
_HISTOGRAM_METHODS = frozenset({"add_histogram"})
_HISTOGRAMS = ("wandb.Histogram",)
_HISTOGRAM_RECORDS = ("tensorflow.summary.histogram", *(f"{module}.HistogramProto" for module in _TENSORFLOW))
_PAIRS = (
    "sklearn.metrics.silhouette_score",
    "sklearn.metrics.silhouette_samples",
    "sklearn.metrics.pairwise_distances",
    "sklearn.metrics.pairwise.",
    "sklearn.manifold.TSNE",
    "umap.",
    "scipy.spatial.distance.pdist",
    "scipy.spatial.distance.cdist",
    "scipy.spatial.distance_matrix",
)
_METRICS = (
    "sklearn.metrics.",
    "skimage.metrics.",
    "medpy.metric.",
    "scipy.stats.pearsonr",
    "scipy.stats.spearmanr",
    "nltk.translate.",
    "torchtext.data.metrics.",
    "sacrebleu.",
    "rouge_score.",
    "jiwer.",
)
_SAVES = frozenset({"save", "save_model", "save_state"})
"""Methods of an ``Accelerator`` or a ``Fabric`` that write what they are handed, a model, or all that was prepared."""
_WRITTEN = (syntax.List, syntax.Tuple, syntax.Set, syntax.Dict)
_REDUCTIONS = frozenset("mean sum min max std median argmin argmax".split())


class Cost(NamedTuple):
    """One such piece of work.

    Attributes:
        node: the call that does it, in ``script``.
    """

    kind: Kind
    script: Script
    node: syntax.Node


def of_call(script: Script, call: syntax.Call) -> list[Cost]:
    """What a call makes, itself or through the first-party functions it calls, without what runs there now and then."""
    own = _own(script, call)
    if own is not None:
        return [Cost(own, script, call)]
    callee = script.callee(call)
    return list(_for_each(script, call, _of_function(*callee, _DEPTH))) if callee is not None else []


def _for_each(script: Script, call: syntax.Call, found: list[Cost]) -> Iterator[Cost]:
    """What a call of a function makes: in a loop over the parameters, the histogram of one becomes that of each."""
    is_of_each = _is_of_each_parameter(script, call)
    for cost in found:
        yield Cost(Kind.HISTOGRAMS, cost.script, cost.node) if is_of_each and cost.kind is Kind.HISTOGRAM else cost


@listed_once
def _of_function(script: Script, function: syntax.Node, depth: int) -> Iterator[Cost]:
    if not isinstance(function, syntax.FunctionDef):
        return
    if script.loops.function_does(function, Does.STEPS | Does.EVALUATES):
        return
    found: list[Cost] = []
    for call in script.source.inside(function.body, syntax.Call):
        if script.function(call) is not function or _is_thinned(script, call, function):
            continue
        own = _own(script, call)
        if own is not None:
            found.append(Cost(own, script, call))
        elif depth and (callee := script.callee(call)) is not None and callee.node is not function:
            found += _for_each(script, call, _of_function(*callee, depth - 1))
    pairs = _pairs_by_hand(script, function)
    if pairs is not None:
        found.append(Cost(Kind.PAIRS, script, pairs))
    edits = _edits_by_hand(script, function)
    if edits is not None:
        found.append(Cost(Kind.EDITS, script, edits))
    is_cloud = any(
        isinstance(call.func, syntax.Attribute) and call.func.attr.value in _CLOUD_METHODS
        for call in script.source.inside(function.body, syntax.Call)
    )
    for cost in found:
        yield Cost(Kind.CLOUD, cost.script, cost.node) if is_cloud and cost.kind is Kind.FIGURE else cost


def _own(script: Script, call: syntax.Call) -> Kind | None:
    """What a call of a library makes."""
    name = script.name(call.func)
    if name is not None:
        if name in _HISTOGRAMS:
            return Kind.HISTOGRAMS if _is_of_each_parameter(script, call) else Kind.FIGURE
        if name in _HISTOGRAM_RECORDS:
            return _histogram(script, call)
        if name.startswith(_PAIRS):
            return Kind.PAIRS
        if name.startswith(_METRICS):
            return Kind.METRIC
        if name == "numpy.histogram2d" or (name == "numpy.bincount" and _counts_pairs(script, call)):
            return Kind.COUNTS
        if name == "torch.save":
            return Kind.CHECKPOINT if call.args and _holds_model(script, call.args[0].value) else None
        return Kind.FIGURE if name in _FIGURES else None
    if not isinstance(call.func, syntax.Attribute) or script.callee(call) is not None:
        return None
    method = call.func.attr.value
    if method in _SAVES and _writes_model(script, call, call.func.value, is_whole=method != "save"):
        return Kind.CHECKPOINT
    if method == "save_pretrained":
        return Kind.CHECKPOINT if script.role(call.func.value) is Role.MODULE else None
    if method in _HISTOGRAM_METHODS:
        return _histogram(script, call)
    return Kind.FIGURE if method in _FIGURE_METHODS else None


def _histogram(script: Script, call: syntax.Call) -> Kind:
    return Kind.HISTOGRAMS if _is_of_each_parameter(script, call) else Kind.HISTOGRAM


def _writes_model(script: Script, call: syntax.Call, writer: syntax.BaseExpression, *, is_whole: bool) -> bool:
    """Whether an ``Accelerator`` or a ``Fabric`` writes a module's state: all that it trains, or what it is handed."""
    made_by = {place.name(node.func) for place, node in script.roles.origins(writer) if isinstance(node, syntax.Call)}
    if made_by.isdisjoint(library.ACCELERATORS | library.FABRICS):
        return False
    return is_whole or any(_holds_model(script, arg.value) for arg in call.args)


def _holds_model(script: Script, saved: syntax.BaseExpression, depth: int = 0) -> bool:
    """Whether what is saved is, or holds, a module or its state."""
    if script.role(saved) is Role.MODULE:
        return True
    for call in script.source.inside(saved, syntax.Call):
        if isinstance(call.func, syntax.Attribute) and call.func.attr.value == "state_dict":
            return True
    if isinstance(saved, syntax.Dict):
        return any(script.role(each.value) is Role.MODULE for each in saved.elements)
    if not isinstance(saved, syntax.Name) or depth > 2:
        return False
    assigned = (one for one in script.names.reaching(saved) if one.kind is NameKind.ASSIGN and not one.path)
    return any(one.value is not None and _holds_model(script, one.value, depth + 1) for one in assigned)


def is_repeated(script: Script, call: syntax.Call) -> bool:
    """Whether the same loop over the parameters makes a histogram before a call: of the weights, then of the gradients."""
    loop = parameter_loop(script, call)
    if loop is None:
        return False
    inner = (each for each in script.source.inside(loop.body, syntax.Call) if each is call or _makes_histogram(script, each))
    return next(inner) is not call


def _makes_histogram(script: Script, call: syntax.Call) -> bool:
    return any(cost.kind is Kind.HISTOGRAMS for cost in of_call(script, call))


def only_makes_histograms(script: Script, loop: syntax.For) -> bool:
    """Whether all that a loop does is to make histograms."""
    for line in loop.body.body:
        match line:
            case syntax.SimpleStatementLine(body=[syntax.Expr(value=syntax.Call() as call)]) if (
                _own(script, call) is Kind.HISTOGRAMS
            ):
                continue
        return False
    return loop.orelse is None


def _is_of_each_parameter(script: Script, call: syntax.Call) -> bool:
    return parameter_loop(script, call) is not None


def parameter_loop(script: Script, call: syntax.Node) -> syntax.For | None:
    """The loop over a model's parameters around a call."""
    for up in script.source.ancestors(call):
        if isinstance(up, syntax.FunctionDef):
            return None
        if isinstance(up, syntax.For) and goes_over_parameters(script, up):
            return up
    return None


def _is_thinned(script: Script, node: syntax.Node, function: syntax.FunctionDef) -> bool:
    """Whether a condition within the function lets the node run now and then only, or is known not to hold."""
    child: syntax.Node = node
    for up in script.source.ancestors(node):
        if up is function:
            return False
        if script.loops.guards.limit(up, child) < Frequency.STEP:
            return True
        if isinstance(up, syntax.If) and child is up.body:
            known = script.constant(up.test)
            if (known is not None and not known.value) or _may_count(script, up.test):
                return True
        if isinstance(up, syntax.For) and child is up.body and _is_over_kept(script, up):
            return True
        child = up
    return False


def _may_count(script: Script, test: syntax.BaseExpression) -> bool:
    """Whether one of several conditions counts steps: ``interval is None or step % interval == 0``."""
    return isinstance(test, syntax.BooleanOperation) and any(
        isinstance(each.operator, syntax.Modulo) for each in script.source.inside(test, syntax.BinaryOperation)
    )


def _is_over_kept(script: Script, loop: syntax.For) -> bool:
    """Whether a loop goes over what the module keeps, which may be nothing: ``for tag, image in _images.items()``."""
    kept = loop.iter
    while isinstance(kept, syntax.Call | syntax.Attribute):
        kept = kept.func if isinstance(kept, syntax.Call) else kept.value
    if not isinstance(kept, syntax.Name) or script.function(loop) is None:
        return False
    owner = script.names.scope(kept).lookup(kept.value)
    bound = owner.bindings[kept.value] if owner is script.names.module else []
    return bool(bound) and not any(isinstance(each.value, _WRITTEN) and each.value.elements for each in bound)


# Metrics written out


def _counts_pairs(script: Script, call: syntax.Call) -> bool:
    """Whether numbers are counted up to a product, as the pairs of a class and the one that is guessed: ``n ** 2``."""
    most = script.argument(call, "minlength", 2)
    return isinstance(most, syntax.BinaryOperation) and isinstance(most.operator, syntax.Power | syntax.Multiply)


def _edits_by_hand(script: Script, function: syntax.FunctionDef) -> syntax.For | None:
    """The loops of a function that fill a table of edit distances: for each pair of letters the least of its neighbours."""
    for loop in script.source.inside(function.body, syntax.For):
        for inner in script.source.inside(loop.body, syntax.For):
            counted = all(script.is_call_to(each.iter, "range") for each in (loop, inner))
            if counted and _takes_least(script, inner) and _is_filled(script, inner, loop):
                return loop
    return None


def _takes_least(script: Script, loop: syntax.For) -> bool:
    return any(script.name(call.func) in ("min", "numpy.min") for call in script.source.inside(loop.body, syntax.Call))


def _is_filled(script: Script, loop: syntax.For, outer: syntax.For) -> bool:
    """Whether each turn writes an entry of a table at the counter of a loop out of the entry beside it: ``row[j - 1]``."""
    counters = {script.text(each.target) for each in (loop, outer)}
    written = any(
        _last_index(script, entry) in counters
        for assign in script.source.inside(loop.body, syntax.Assign)
        for target in assign.targets
        for entry in script.source.inside(target, syntax.Subscript)
    )
    beside = {f"{counter}-1" for counter in counters}
    read = {_last_index(script, each) for each in script.source.inside(loop.body, syntax.Subscript)}
    return written and not beside.isdisjoint(read)


def _last_index(script: Script, entry: syntax.Subscript) -> str:
    return "".join(script.text(entry.slice[-1].slice).split())


def _pairs_by_hand(script: Script, function: syntax.FunctionDef) -> syntax.Node | None:
    """Where a function compares all samples of an array with all others: ``x @ x.T``, or reductions for each sample."""
    for product in script.source.inside(function.body, syntax.BinaryOperation):
        if isinstance(product.operator, syntax.MatrixMultiply) and _is_transposed(script, product):
            return product
    for loop in script.source.inside(function.body, syntax.For):
        if _is_over_samples(script, loop) and _reduces_arrays(script, loop):
            return loop
    return None


def _is_transposed(script: Script, product: syntax.BinaryOperation) -> bool:
    match product.right:
        case syntax.Attribute(value=base, attr=syntax.Name(value="T")):
            pass
        case syntax.Call(func=syntax.Attribute(value=base, attr=syntax.Name(value="transpose"))):
            pass
        case _:
            return False
    left = product.left.right if isinstance(product.left, syntax.BinaryOperation) else product.left
    return script.text(base) == script.text(left) and _is_on_host(script, base)


def _is_over_samples(script: Script, loop: syntax.For) -> bool:
    """Whether a loop counts the elements of an array: ``for i in range(len(labels))``."""
    match loop.iter:
        case syntax.Call(args=[syntax.Arg(value=syntax.Call(func=syntax.Name("len"), args=[syntax.Arg(value=counted)]))]):
            return script.name(loop.iter.func) == "range" and _is_on_host(script, counted)
    return False


def _is_on_host(script: Script, array: syntax.BaseExpression) -> bool:
    """Whether a value may be a numpy array, and is no tensor."""
    uses_numpy = any(dotted.partition(".")[0] == "numpy" for _, dotted in script.names.imports)
    return script.role(array) is Role.ARRAY or (script.role(array) is Role.UNKNOWN and uses_numpy)


def _reduces_arrays(script: Script, loop: Loop) -> bool:
    for call in script.source.inside(loop.body, syntax.Call):
        if (script.name(call.func) or "").startswith("numpy."):
            return True
        if isinstance(call.func, syntax.Attribute) and call.func.attr.value in _REDUCTIONS and not call.args:
            return script.role(call.func.value) in (Role.ARRAY, Role.UNKNOWN)
    return False
