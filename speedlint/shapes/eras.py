"""The newest torch release that a script can still run on, where its code was never carried over to later ones."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from speedlint.facts import syntax
from speedlint.facts.parse import NON_BLOCKING
from speedlint.shapes import entry, extensions
from speedlint.shapes.frameworks import releases
from speedlint.solve.dtypes import is_scalar
from speedlint.solve.flow import once
from speedlint.solve.unpacking import all_written
from speedlint.torch.words import Frequency, Role

if TYPE_CHECKING:
    from speedlint.ask.script import Script

Release = tuple[int, int]

_GONE: dict[str, Release] = {
    "torchtext.legacy": (1, 10),
    "torchtext.data.Field": (1, 7),
    "torchtext.data.BucketIterator": (1, 7),
    "torchtext.data.TabularDataset": (1, 7),
    "torchtext.datasets.TranslationDataset": (1, 7),
    "torch.utils.ffi": (0, 4),
    "torch._six": (1, 13),
}
"""Names that the next release no longer has: torchtext 0.9 (torch 1.8) moved its old API, 0.12 (torch 1.11) removed it."""
_REDUCES = re.compile(rb"\.reduction\b|[\"']reduction[\"']")
"""What sets how a loss reduces after it was made."""
_INDEXED_SCALAR = (0, 4)
"""Since torch 0.5, ``loss.data[0]`` raises an IndexError."""
_PACKED_PAIR = (1, 0)
"""Since torch 1.1 a ``PackedSequence`` has four parts: ``values, sizes = pack_padded_sequence(...)`` raises a ValueError."""
_VIEWED_ROWS = (1, 6)
"""Since torch 1.7 a comparison keeps the strides of what it compares: ``correct[:5].view(-1)`` of ``pred.t().eq(...)``
raises a RuntimeError (pytorch issue 43998; run with torch 2.13)."""
_VIEWS_ROWS = re.compile(rb"\[:\s*\w+\]\s*\.view\(\s*-\s*1")
_PYTHON_2 = (1, 4)
"""The last release for Python 2."""
_ASYNC_COPIES = (0, 4)
"""The release that renamed the ``async`` of copies. Later ones took both where Python does, up to 3.6: a script that still
says ``images.cuda(async=True)`` was not carried over to them."""
_BROUGHT: dict[Release, re.Pattern[bytes]] = {
    (1, 6): re.compile(rb"\bautocast\b|torch\.cuda\.amp|torch\.amp"),
    (1, 7): re.compile(rb"persistent_workers|set_to_none|prefetch_factor|torch\.linalg\."),
    (1, 9): re.compile(rb"\binference_mode\b"),
    (1, 12): re.compile(rb"float32_matmul_precision|backends\.mps"),
    (2, 0): re.compile(rb"torch\.compile\b|scaled_dot_product_attention|torch\.func\."),
}
"""What code names that was carried over to a release, or written for it."""
_ASKS = ("hasattr", "getattr", "torch.__version__", "packaging.version.parse", "packaging.version.Version")
_MARKS = (b"torchtext", b"torch.utils.ffi", b"torch._six", b".data[0]", b"pack_padded_sequence", b"async", _VIEWS_ROWS)


@once(None)
def newest_release(script: Script) -> Release | None:
    """The newest release that the program of the script's code runs on; None where nothing bounds it."""
    bounded = ((each, _of_script(each)) for each in script.everywhere(*_MARKS))
    bounds = [bound for each, bound in bounded if bound is not None and script.program.is_always_with(script, each)]
    if script.program.is_of_python_2(script):
        bounds.append(_PYTHON_2)
    if (built := extensions.newest_release(script)) is not None:
        bounds.append(built)
    return min(bounds, default=None)


def can_run_on(script: Script, release: Release) -> bool:
    """Whether nothing in the script's code keeps it from a release."""
    newest = newest_release(script)
    return newest is None or newest >= release


def is_for(script: Script, release: Release) -> bool:
    """Whether a script is for a release: the target, where it is known, is no older, and nothing keeps the code from it.

    What is written has to run on each release that the project allows, and so asks this.
    """
    return (script.options.torch or release) >= release and can_run_on(script, release)


def may_be_on(script: Script, release: Release) -> bool:
    """Whether a script may run on a release or a newer one: its project allows that, and nothing keeps the code from it.

    What is told asks this: who installs ``torch>=1.10`` today has the newest torch, and gains what that has.
    """
    return allows(script, release) and can_run_on(script, release)


def allows(script: Script, release: Release) -> bool:
    """Whether a project allows a torch release or a newer one: what it requires is open above, where it is the target."""
    target = script.options.torch
    if target is None or target >= release:
        return True
    required = releases.allowed(script, "torch")
    return required.oldest == target and not required.is_before(release)


def is_told_older(script: Script, release: Release) -> bool:
    """Whether the project's README asks for an older release than one, and its code names nothing that came after that."""
    told = script.options.told
    return told is not None and told < release and not _outgrew(script, told)


@once(False)
def _outgrew(script: Script, told: Release) -> bool:
    newer = [named for since, named in _BROUGHT.items() if since > told]
    if any(named.search(script.source.data) for named in newer):
        return True
    return bool(newer) and any(True for each in script.everywhere(*newer) if each is not script)


@once(None)
def _of_script(script: Script) -> Release | None:
    bounds = [
        release
        for gone, release in _GONE.items()
        if gone.partition(".")[0].encode() in script.source.data and _uses(script, gone)
    ]
    if indexes_losses(script):
        bounds.append(_INDEXED_SCALAR)
    if line_of_older_python(script) is not None:
        bounds.append(_ASYNC_COPIES)
    if any(_is_taken_in_two(script, call) for call in script.calls("torch.nn.utils.rnn.pack_padded_sequence")):
        bounds.append(_PACKED_PAIR)
    if _VIEWS_ROWS.search(script.source.data) and any(_views_rows(script, call) for call in script.method_calls("view")):
        bounds.append(_VIEWED_ROWS)
    return min(bounds, default=None)


@once(None)
def line_of_older_python(script: Script) -> int | None:
    """The first line that no Python since 3.7 can run, as it uses ``async`` as a name; None without one."""
    if b"async" not in script.source.data:
        return None
    names = (name for name in script.source.tree.named(("async", NON_BLOCKING)) if script.text(name) == "async")
    return next(map(script.source.line, names), None)


@once(False)
def indexes_losses(script: Script) -> bool:
    """Whether a script reads the number of a loss as ``loss.data[0]``, as before torch 0.4 brought ``.item()``."""
    if b".data[0]" not in script.source.data:
        return False
    return any(_indexes_loss(script, each) for each in script.source.of(syntax.Subscript))


def _uses(script: Script, gone: str) -> bool:
    bound = (
        binding.dotted or ""
        for bindings in script.names.all_bindings()
        for binding in bindings
        if script.source.enclosing(binding.node, syntax.Try) is None
    )
    if any(f"{dotted}.".startswith(f"{gone}.") for dotted in bound):
        return True
    last = gone.rpartition(".")[2]
    return any(each.attr.value == last and script.name(each) == gone for each in script.source.of(syntax.Attribute))


def _is_taken_in_two(script: Script, call: syntax.Call) -> bool:
    match script.source.parents[call]:
        case syntax.Assign(targets=[syntax.AssignTarget(target=syntax.Tuple(elements=[_, _]))]):
            return True
    return False


def _is_chosen(script: Script, node: syntax.Node) -> bool:
    """Whether a line runs by what a release has, ``x.item() if hasattr(x, "item") else ...``, after an error, or never."""
    if script.source.enclosing(node, syntax.Try, syntax.ExceptHandler) is not None or entry.is_never_called(script, node):
        return True
    around = (up for up in script.source.ancestors(node) if isinstance(up, syntax.If | syntax.IfExp))
    return any(asks_what_is_there(script, up.test) for up in around)


def asks_what_is_there(script: Script, within: syntax.Node) -> bool:
    """Whether code asks what the release that runs it has: for an attribute, or a version, also one in a variable."""
    source = script.source
    names, attributes = source.inside(within, syntax.Name), source.inside(within, syntax.Attribute)
    if any(script.name(each) in _ASKS for each in attributes):
        return True
    return any(script.name(each) in _ASKS or "version" in each.value.lower() for each in names)


def _indexes_loss(script: Script, node: syntax.Subscript) -> bool:
    """Whether it is ``loss.data[0]`` of a tensor without dimensions, such as a loss that is run backward."""
    match node:
        case syntax.Subscript(
            value=syntax.Attribute(value=loss, attr=syntax.Name("data")),
            slice=[syntax.SubscriptElement(slice=syntax.Index(value=syntax.Integer("0")))],
        ):
            if _is_chosen(script, node):
                return False
            is_spread = isinstance(loss, syntax.Call) and any(arg.star for arg in loss.args)
            is_number = script.role(loss) is Role.TENSOR and is_scalar(script, loss) and not is_spread
            if is_number and not script.program.mentions(script, _REDUCES):
                return True
            if not isinstance(loss, syntax.Name):
                return False
            run = (call.func.value for call in script.method_calls("backward") if isinstance(call.func, syntax.Attribute))
            return any(_is_times(each, loss.value) for each in run) and script.role(loss) is not Role.ARRAY
    return False


def _is_times(expression: syntax.BaseExpression, name: str) -> bool:
    """Whether an expression is a variable, or a multiple of it: ``(loss * len(batch)).backward()``."""
    match expression:
        case syntax.Name(value=value):
            return value == name
        case syntax.BinaryOperation(left=left, operator=syntax.Multiply() | syntax.Divide(), right=right):
            return _is_times(left, name) or _is_times(right, name)
    return False


def _views_rows(script: Script, call: syntax.Call) -> bool:
    """Whether a call flattens several rows of a comparison with what was transposed: ``correct[:k].view(-1)``, as the
    accuracy among the best five does, where a step asks for more than the first."""
    match call:
        case syntax.Call(
            func=syntax.Attribute(
                value=syntax.Subscript(
                    value=syntax.Name() as rows,
                    slice=[syntax.SubscriptElement(slice=syntax.Slice(lower=None, upper=syntax.BaseExpression() as last))],
                )
            )
        ) if not _is_chosen(script, call):
            compared = _only(script, rows)
            is_turned = isinstance(compared, syntax.Call) and _is_method(compared, "eq") and _is_turned(script, compared)
            return is_turned and _may_be_several(script, last)
    return False


def _only(script: Script, name: syntax.BaseExpression) -> syntax.BaseExpression | None:
    values = all_written(script.names.reaching(name)) if isinstance(name, syntax.Name) else []
    return values[0] if len(values) == 1 else None


def _is_method(call: syntax.BaseExpression | None, name: str) -> bool:
    return isinstance(call, syntax.Call) and isinstance(call.func, syntax.Attribute) and call.func.attr.value == name


def _is_turned(script: Script, compared: syntax.Call) -> bool:
    assert isinstance(compared.func, syntax.Attribute)
    turned = compared.func.value
    return _is_method(turned if isinstance(turned, syntax.Call) else _only(script, turned), "t")


def _may_be_several(script: Script, last: syntax.BaseExpression) -> bool:
    """Whether a number of rows is more than one for a call that the program makes again and again: one that is written, or
    one out of a tuple that is handed over."""
    if isinstance(last, syntax.Integer):
        return int(last.value, 0) > 1
    for binding in script.names.reaching(last) if isinstance(last, syntax.Name) else ():
        taken = script.names.reaching(binding.value) if isinstance(binding.value, syntax.Name) else []
        for parameter in (each.node for each in taken if isinstance(each.node, syntax.Param)):
            for place, given in script.values.passed(parameter):
                is_often = given is not None and place.frequency(given) >= Frequency.EPOCH
                if is_often and isinstance(given, syntax.Tuple | syntax.List):
                    numbers = [each.value for each in given.elements if isinstance(each.value, syntax.Integer)]
                    if any(int(each.value, 0) > 1 for each in numbers):
                        return True
    return False
