"""Reads: where a script waits for a device tensor's value on the host, and what the value is needed for.

A read that decides what happens next (an action for an environment, the end of training, a length) or that feeds a file of
its own is no mistake; one that is only summed up, kept, shown or logged can wait.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.shapes import eras
from speedlint.shapes.model.networks import is_loss
from speedlint.shapes.sync.conditions import is_asked_what_it_is, is_sanity_check, rules_out_tensor
from speedlint.shapes.sync.streams import blocks
from speedlint.solve import off
from speedlint.solve.dtypes import is_scalar
from speedlint.solve.loops import Loop
from speedlint.solve.names import Kind
from speedlint.solve.unpacking import key_of, written
from speedlint.source import last_statement, leaves
from speedlint.torch import library
from speedlint.torch.words import FREQUENT, Frequency, Place, Role

_CONVERSIONS = ("float", "int", "bool")
_OF_LAYOUT = library.NUMBER_ATTRIBUTES | frozenset("dtype device size dim numel".split())
"""What a tensor or array is asked for that says nothing of its values."""
_HOST_VIEWS = frozenset({"cpu", "numpy", "detach", "to", "squeeze", "flatten", "reshape", "view"})
_CHAINED = frozenset(
    "cpu numpy tolist detach to squeeze flatten reshape view ravel float double half int long astype copy transpose permute "
    "data unsqueeze clone T contiguous argmax".split()
)
_STEPPERS = (Role.OPTIMIZER, Role.SCHEDULER, Role.SCALER)
_BOOKKEEPERS = frozenset({"xm", "profiler", "prof", "progress", "pbar", "accelerator"})
_WRITERS = frozenset(
    "imwrite imsave savefig imshow savez save_image WriteImage writerow writerows toimage fromarray sound_file_write "
    "write_png write_jpeg write_video savetxt save_audio add_image add_images add_figure add_histogram "
    "decode batch_decode decode_batch convert_ids_to_tokens ids_to_tokens lookup_tokens draw_bounding_boxes".split()
)
_DECODERS = frozenset("decode batch_decode decode_batch convert_ids_to_tokens".split())
_LIBRARY_WRITERS = (
    "PIL.",
    "matplotlib.",
    "soundfile.",
    "imageio.",
    "SimpleITK.",
    "torchvision.utils.",
    "torchaudio.save",
    "json.",
    "pickle.",
    "numpy.save",
    "cv2.imwrite",
    "torch.save",
    "nibabel.",
    "skimage.io.",
    "tifffile.",
)
_SIZES = frozenset(
    "pack_padded_sequence arange zeros ones full empty rand randn randint narrow expand repeat view "
    "reshape new_zeros pad chunk split".split()
)
_REDUCES = frozenset("mean sum max min norm detach squeeze abs".split())
"""Methods that a number is taken of a tensor with."""
_OF_LISTS = tuple(f"torch.{name}" for name in "tensor as_tensor Tensor FloatTensor".split())
_PASSED_ON = frozenset("abs round float int list tuple sorted zip enumerate max min sum set reversed map dict".split())
_ANSWERS = (Role.NUMBER, Role.STRING, Role.NONE, Role.ARRAY)
_MOST = 300
_DEPTH = 3


class Need(enum.Enum):
    """What a value is needed for on the host, at once."""

    ACTION = "an environment acts on it"
    END = "it decides whether the loop goes on"
    SIZE = "it decides a size or a position"
    FILE = "it is drawn, decoded or written out"
    DRAW = "it decides what is drawn next"


def scalar(script: Script, call: syntax.Call) -> syntax.BaseExpression | None:
    """The device tensor whose one value ``x.item()``, ``float(x)``, ``int(x)`` or ``bool(x)`` waits for."""
    match call:
        case syntax.Call(func=syntax.Attribute(value=tensor, attr=syntax.Name(value="item")), args=[]):
            pass
        case syntax.Call(func=syntax.Name(), args=[syntax.Arg(value=tensor, keyword=None, star="")]):
            if script.name(call.func) not in _CONVERSIONS:
                return None
        case _:
            return None
    if not script.is_device_tensor(before_copies(script, tensor)) or rules_out_tensor(script, tensor):
        return None
    return tensor


def avoidable_scalar(script: Script, call: syntax.Call) -> syntax.BaseExpression | None:
    """Like ``scalar``; None where the number is needed at once, or where the same read beside it already waits."""
    tensor = scalar(script, call)
    if tensor is None or often(script, call) is None:
        return None
    return tensor if next(needs(script, call), None) is None and not is_repeated(script, call) else None


def is_scalar_of_unseen(script: Script, call: syntax.Call) -> bool:
    """Whether a training step reads a number by ``.item()`` of what comes out of sight, that is not needed at once: of a
    variable that it computes or is handed, an attribute or an entry, or the sum or mean of one."""
    match call:
        case syntax.Call(func=syntax.Attribute(value=read, attr=syntax.Name(value="item")), args=[]):
            value = script.value(read)
        case _:
            return False
    if value.role is not Role.UNKNOWN or value.differs or value.place is Place.HOST or not script.on_gpu:
        return False
    if how_often(script, call) is not Frequency.STEP or often(script, call) is None or not _is_given(script, read):
        return False
    if is_asked_what_it_is(script, read) or is_repeated(script, call):
        return False
    return next(needs(script, call), None) is None


def _is_given(script: Script, read: syntax.BaseExpression) -> bool:
    """Whether an expression is a variable that no loop counts or takes apart, one of its parts, or what a reduction makes of
    one: not what a call alone gives, which may compute on the host."""
    todo, seen = [read], {read}
    while todo:
        inner: list[syntax.BaseExpression] = []
        match todo.pop():
            case syntax.Name() as name:
                bindings = script.names.reaching(name)
                if not bindings or any(each.kind not in (Kind.ASSIGN, Kind.PARAMETER) for each in bindings):
                    return False
                plain = [each.value for each in bindings if each.kind is Kind.ASSIGN and not each.path]
                inner = [each for each in plain if each is not None]
                if len(inner) < len(plain):
                    return False
            case syntax.Attribute(value=syntax.Name("self")):
                pass
            case syntax.Subscript(value=holder):
                inner = [holder]
            case syntax.Call(func=syntax.Attribute(value=reduced, attr=syntax.Name(value=method)) as func):
                if method not in _REDUCES or script.name(func) is not None:
                    return False
                inner = [reduced]
            case _:
                return False
        todo += [each for each in inner if each not in seen]
        seen.update(inner)
    return True


def avoidable_index(script: Script, node: syntax.Subscript) -> syntax.BaseExpression | None:
    """The device tensor of one value that ``loss.data[0]`` waits for, in a script that is written for torch up to 0.4; None
    where the number is needed at once."""
    match node:
        case syntax.Subscript(
            value=syntax.Attribute(value=tensor, attr=syntax.Name("data")),
            slice=[syntax.SubscriptElement(slice=syntax.Index(value=syntax.Integer("0")))],
        ) if eras.indexes_losses(script) and script.is_device_tensor(tensor) and _has_one_value(script, tensor):
            is_avoidable = often(script, node) is not None and next(needs(script, node), None) is None
            return tensor if is_avoidable and not is_read_as_number(script, node) and not is_repeated(script, node) else None
    return None


def _has_one_value(script: Script, tensor: syntax.BaseExpression) -> bool:
    """Whether a tensor is a loss or the sum or mean of all of another one."""
    match tensor:
        case syntax.Name():
            made = [written(binding) for binding in script.names.reaching(tensor) if binding.kind is Kind.ASSIGN]
            return bool(made) and all(each is not None and _has_one_value(script, each) for each in made)
        case syntax.Call():
            is_reduced = script.argument(tensor, "reduction") is None and script.argument(tensor, "reduce") is None
            return is_scalar(script, tensor) or (is_reduced and is_loss(script, tensor))
    return False


def avoidable_copy(script: Script, call: syntax.Call) -> syntax.BaseExpression | None:
    """Like ``copied``; None where the copy is needed at once, or is turned into a number on the spot."""
    tensor = copied(script, call)
    if tensor is None or often(script, call) is None:
        return None
    whole = chain(script, call)
    if is_read_as_number(script, whole) or is_repeated(script, call):
        return None
    return tensor if next(needs(script, whole), None) is None else None


def copied(script: Script, call: syntax.Call) -> syntax.BaseExpression | None:
    """The device tensor that ``x.cpu()``, ``x.tolist()`` or ``x.to("cpu")`` copies to the host, which waits for it."""
    if not isinstance(call.func, syntax.Attribute):
        return None
    tensor, method = call.func.value, call.func.attr.value
    is_copy = method in ("cpu", "tolist") or (method == "numpy" and script.argument(call, "force", 0) is not None)
    if not is_copy and not (method == "to" and script.value(call).place is Place.HOST and blocks(call)):
        return None
    return tensor if script.is_device_tensor(tensor) else None


def are_read_one_by_one(script: Script, call: syntax.Call) -> bool:
    """Whether ``torch.tensor`` is handed a list of several tensors on the GPU, each of which it reads by itself."""
    if not script.is_call_to(call, *_OF_LISTS) or not call.args or call.args[0].keyword is not None:
        return False
    match call.args[0].value:
        case syntax.ListComp(elt=element):
            return script.is_shown_device_tensor(element)
        case syntax.List(elements=[first, _, *rest]):
            return all(script.is_shown_device_tensor(each.value) for each in (first, *rest))
    return False


def before_copies(script: Script, expression: syntax.BaseExpression) -> syntax.BaseExpression:
    """The expression without the copies to the host at its end: ``loss`` for ``loss.detach().cpu().numpy()[0]``."""
    stripped = expression
    while True:
        match stripped:
            case syntax.Call(func=syntax.Attribute(value=inner, attr=syntax.Name(value=method))) if method in _HOST_VIEWS:
                if copied(script, stripped) is not None:
                    return inner
            case syntax.Attribute(value=inner, attr=syntax.Name(value="data")) | syntax.Subscript(value=inner):
                pass
            case _:
                return expression
        stripped = inner


def chain(script: Script, call: syntax.Call) -> syntax.BaseExpression:
    """The whole chain of methods that a copy stands in: ``x.detach().cpu().numpy()``."""
    node: syntax.BaseExpression = call
    while True:
        attribute = script.source.parents[node]
        if not isinstance(attribute, syntax.Attribute) or attribute.attr.value not in _CHAINED:
            return node
        above = script.source.parents[attribute]
        node = above if isinstance(above, syntax.Call) and above.func is attribute else attribute


def is_read_as_number(script: Script, expression: syntax.BaseExpression) -> bool:
    """Whether a host value is turned into one number on the spot: ``.item()``, ``float(...)``."""
    node: syntax.Node = expression
    while isinstance(parent := script.source.parents[node], syntax.Subscript) and parent.value is node:
        node = parent
    match parent:
        case syntax.Attribute(attr=syntax.Name(value="item")):
            return True
        case syntax.Arg():
            call = script.source.parents[parent]
            return isinstance(call, syntax.Call) and script.name(call.func) in _CONVERSIONS
    return False


# What a value is needed for


def needs(script: Script, node: syntax.BaseExpression, *, by_default: bool = True) -> Iterator[Need]:
    """What the value of an expression is needed for, followed through variables, arithmetic, lists and returns; with
    ``by_default`` what a condition leaves out that fails by the defaults of the script's options does not count where the
    expression is computed in spite of it."""
    is_by_default = by_default and off.runs_by_default(script, node)
    for where, child, parent in _Flow(by_default=is_by_default, loop=_whole_loop(script, node)).follow(script, node, _DEPTH):
        found = _need(where, child, parent)
        if found is None or where.frequency(child) not in FREQUENT:
            continue
        if not is_by_default or off.runs_by_default(where, child):
            yield found


def _whole_loop(script: Script, node: syntax.Node) -> Loop | None:
    """The outermost loop around a node, in its function, whose turns are steps."""
    found: Loop | None = None
    for up in script.source.ancestors(node):
        if isinstance(up, syntax.FunctionDef):
            break
        if isinstance(up, syntax.For | syntax.While) and script.loops.kind(up) in (Frequency.STEP, Frequency.EVAL_STEP):
            found = up
    return found


def why_needed(script: Script, node: syntax.BaseExpression) -> str | None:
    """Why a value has to be there at once, in a clause, though no run by the defaults of the script's options needs it: what
    tells of a wait asks these runs, and what is written has to hold in all."""
    is_needed = next(needs(script, node, by_default=False), None) is not None
    return "an option that is off by default may need it at once" if is_needed else None


def uses(script: Script, node: syntax.BaseExpression) -> Iterator[tuple[Script, syntax.Node, syntax.Node]]:
    """The places that take the value of an expression, see ``_Flow.follow``."""
    return _Flow().follow(script, node, _DEPTH)


def _need(script: Script, child: syntax.Node, parent: syntax.Node) -> Need | None:
    match parent:
        case syntax.While():
            return Need.END
        case syntax.If(test=test, body=body) if child is test and leaves(body) and not _only_answers(script, parent):
            return None if is_sanity_check(script, test) else Need.END
        case syntax.If(test=test) if child is test and _counts_to_end(script, parent):
            return Need.END
        case syntax.Index() | syntax.Slice():
            return None if _picked_out(script, child) is not None else Need.SIZE
        case syntax.Call():
            return _need_of_call(script, parent)
    return None


def _only_answers(script: Script, branch: syntax.If) -> bool:
    """Whether a branch returns a number from a function, out of no loop of it: that is followed to the callers."""
    last = last_statement(branch.body)
    if not isinstance(last, syntax.Return) or (last.value is not None and script.role(last.value) not in _ANSWERS):
        return False
    function = script.source.enclosing(branch, syntax.FunctionDef, syntax.For, syntax.While)
    return isinstance(function, syntax.FunctionDef) and bool(script.call_sites(function))


def _picked_out(script: Script, index: syntax.Node) -> syntax.Subscript | None:
    """What an array picks out of another one, ``labels[labels < 19]``: work that the GPU can do as well."""
    whole = script.source.enclosing(index, syntax.Subscript)
    if not isinstance(whole, syntax.Subscript) or script.source.contains(whole.value, index):
        return None
    return whole if script.role(index) is Role.ARRAY and script.role(whole.value) is Role.ARRAY else None


def _counts_to_end(script: Script, branch: syntax.If) -> bool:
    """Whether a branch counts up what ends the loop, as the epochs without a better loss."""
    counted = {
        added.target.value
        for added in script.source.inside(branch, syntax.AugAssign)
        if isinstance(added.target, syntax.Name) and isinstance(added.value, syntax.Integer)
    }
    function = script.function(branch)
    return bool(counted) and any(
        other is not branch
        and leaves(other.body)
        and script.function(other) is function
        and any(name.value in counted for name in script.source.inside(other.test, syntax.Name))
        for other in script.source.of(syntax.If)
    )


def _need_of_call(script: Script, call: syntax.Call) -> Need | None:
    name = script.name(call.func) or ""
    method = call.func.attr.value if isinstance(call.func, syntax.Attribute) else name
    if method == "step" and isinstance(call.func, syntax.Attribute):
        base = script.text(call.func.value).rpartition(".")[2]
        return None if script.role(call.func.value) in _STEPPERS or base in _BOOKKEEPERS else Need.ACTION
    if name == "range" or method in _SIZES or name in library.TAKES_LENGTHS_ON_HOST:
        return Need.SIZE
    if method in _WRITERS or name.startswith(_LIBRARY_WRITERS):
        return None if method in _DECODERS and _is_only_gathered(script, call) else Need.FILE
    return Need.DRAW if _goes_back(script, call) else None


def _is_only_gathered(script: Script, call: syntax.Call) -> bool:
    """Whether all that is done with the result of a call is to add it to a list that nothing reads."""
    arg = script.source.parents[call]
    taker = script.source.parents[arg]
    match taker:
        case syntax.Call(func=syntax.Attribute(value=syntax.Name() as gathered, attr=syntax.Name("append" | "extend"))):
            return all(_only_fills(script, use) for use in script.names.uses(gathered))
    return False


def _only_fills(script: Script, use: syntax.Name) -> bool:
    """Whether a use of a list makes it empty, or adds to it."""
    match script.source.parents[use]:
        case syntax.AssignTarget():
            return True
        case syntax.Attribute(attr=syntax.Name("append" | "extend")) as method:
            called = script.source.parents[method]
            return isinstance(called, syntax.Call) and isinstance(script.source.parents[called], syntax.Expr)
    return False


def _goes_back(script: Script, call: syntax.Call) -> bool:
    """Whether an object is told of what it gave: ``memory.update(rows, errors)`` after ``rows, batch = memory.sample()``."""
    if not isinstance(call.func, syntax.Attribute) or len(call.args) < 2 or script.name(call.func) is not None:
        return False
    owner = script.text(call.func.value)
    if owner == "self" or not isinstance(script.source.parents[call], syntax.Expr):
        return False
    named = (name for arg in call.args for name in script.source.inside(arg.value, syntax.Name))
    given = (binding.value for name in named for binding in script.names.reaching(name) if binding.kind is Kind.ASSIGN)
    return any(
        isinstance(each, syntax.Call) and isinstance(each.func, syntax.Attribute) and script.text(each.func.value) == owner
        for value in given
        for each in (value.value if isinstance(value, syntax.Subscript) else value, *_behind(script, value))
    )


def _behind(script: Script, value: syntax.BaseExpression | None) -> Iterator[syntax.BaseExpression]:
    """What a variable was given whose part a value is: ``memory.sample()`` for ``batch["rows"]`` or ``batch.rows``."""
    if isinstance(value, (syntax.Subscript, syntax.Attribute)) and isinstance(value.value, syntax.Name):
        bindings = script.names.reaching(value.value)
        yield from (each.value for each in bindings if each.kind is Kind.ASSIGN and each.value is not None)


class _Flow:
    """Where a value goes, forward; with ``by_default`` not into what is asked only of options that are off by default, and
    not beyond a ``loop`` that it is computed in: what is read after it is not read at once."""

    def __init__(self, *, by_default: bool = False, loop: Loop | None = None) -> None:
        self._by_default, self._loop = by_default, loop
        self._seen: set[syntax.Node] = set()
        self._seen_parts: set[tuple[syntax.Node, tuple[int, ...]]] = set()

    def follow(self, script: Script, node: syntax.Node, depth: int) -> Iterator[tuple[Script, syntax.Node, syntax.Node]]:
        """The places that take the value: the script, the value's expression there, and the node that takes it."""
        if node in self._seen or len(self._seen) > _MOST:
            return
        self._seen.add(node)
        parent = script.source.parents[node]
        match parent:
            case syntax.Arg():
                yield from self._passed(script, parent, depth)
            case syntax.Return():
                yield from self._returned(script, parent, depth)
            case syntax.Assign(targets=targets, value=value) if value is node:
                for target in targets:
                    yield from self._bound(script, target.target, depth)
            case syntax.AnnAssign(target=target, value=value) | syntax.AugAssign(target=target, value=value) if (
                value is node
            ):
                yield from self._bound(script, target, depth)
            case syntax.For(target=target, iter=iterated) | syntax.CompFor(target=target, iter=iterated) if iterated is node:
                yield from self._bound(script, _given_by(iterated, target), depth)
            case syntax.NamedExpr(target=target):
                yield from self._bound(script, target, depth)
                yield from self.follow(script, parent, depth)
            case syntax.If() | syntax.While() | syntax.Assert() | syntax.Index() | syntax.Slice():
                yield script, node, parent
                if isinstance(parent, syntax.If) and _only_answers(script, parent):
                    yield from self._returned(script, parent, depth)
                picked = _picked_out(script, node) if isinstance(parent, syntax.Index) else None
                if picked is not None:
                    yield from self.follow(script, picked, depth)
            case syntax.Call(func=func) if func is node:
                yield from self.follow(script, parent, depth)
            case syntax.Attribute(attr=syntax.Name(value=name)) if name in _OF_LAYOUT:
                return
            case syntax.Element():
                yield from self._element(script, parent, depth)
            case syntax.BooleanOperation() if self._by_default and off.is_unmet(script, parent, node):
                return
            case syntax.BaseExpression() | syntax.DictElement() | syntax.ComparisonTarget() | syntax.StarredElement():
                yield from self.follow(script, parent, depth)

    def _element(
        self, script: Script, element: syntax.Element, depth: int
    ) -> Iterator[tuple[Script, syntax.Node, syntax.Node]]:
        """An element of a tuple goes to the target that unpacks it, also out of a function that returns the tuple."""
        whole = script.source.parents[element]
        if isinstance(whole, syntax.Tuple):
            yield from self._part(script, whole, (whole.elements.index(element),), depth)
        else:
            yield from self.follow(script, whole, depth)

    def _part(
        self, script: Script, holder: syntax.BaseExpression, path: tuple[int, ...], depth: int
    ) -> Iterator[tuple[Script, syntax.Node, syntax.Node]]:
        """The places that take what a tuple holds at the end of a path of indices."""
        if not path:
            yield from self.follow(script, holder, depth)
            return
        if (holder, path) in self._seen_parts:
            return
        self._seen_parts.add((holder, path))
        parent = script.source.parents[holder]
        match parent:
            case syntax.Assign(targets=[syntax.AssignTarget(target=target)], value=value) if value is holder:
                yield from self._part_bound(script, target, path, depth)
            case syntax.Element() if isinstance(outer := script.source.parents[parent], syntax.Tuple):
                yield from self._part(script, outer, (outer.elements.index(parent), *path), depth)
            case syntax.Subscript(value=value) if value is holder and isinstance(key := key_of(parent), int) and key >= 0:
                if key == path[0]:
                    yield from self._part(script, parent, path[1:], depth)
            case syntax.Return() if (function := script.function(parent)) is not None:
                for other, call in script.call_sites(function) if depth else ():
                    yield from self._part(other, call, path, depth - 1)
            case syntax.Arg() if (handed := self._handed(script, parent)) and depth:
                yield script, parent, script.source.parents[parent]
                for place, use in handed:
                    yield from self._part(place, use, path, depth - 1)
            case _:
                yield from self.follow(script, holder, depth)

    def _part_bound(
        self, script: Script, target: syntax.Node, path: tuple[int, ...], depth: int
    ) -> Iterator[tuple[Script, syntax.Node, syntax.Node]]:
        if isinstance(target, (syntax.Tuple, syntax.List)) and path:
            before = target.elements[: path[0] + 1]
            if len(before) > path[0] and not any(isinstance(each, syntax.StarredElement) for each in before):
                yield from self._part_bound(script, before[-1].value, path[1:], depth)
                return
        if isinstance(target, syntax.Name):
            for use in self._uses(script, target):
                yield from self._part(script, use, path, depth)
        else:
            yield from self._bound(script, target, depth)

    def _bound(self, script: Script, target: syntax.Node, depth: int) -> Iterator[tuple[Script, syntax.Node, syntax.Node]]:
        if isinstance(target, (syntax.Tuple, syntax.List)):
            for element in target.elements:
                yield from self._bound(script, element.value, depth)
        elif isinstance(target, syntax.Subscript):
            if isinstance(target.value, syntax.Name) and (key := key_of(target)) is not None:
                uses = (use for use in self._uses(script, target.value) if not _is_other_entry(script, use, key))
                for use in uses:
                    yield from self.follow(script, use, depth)
            else:
                yield from self._bound(script, target.value, depth)
        elif isinstance(target, syntax.Name):
            for use in self._uses(script, target):
                yield from self.follow(script, use, depth)

    def _uses(self, script: Script, target: syntax.Name) -> Iterator[syntax.Name]:
        for use in script.names.uses(target):
            is_new = use is not target and use not in self._seen and not self._is_after_loop(script, use)
            if is_new and self._reaches(script, target, use):
                yield use

    def _is_after_loop(self, script: Script, use: syntax.Name) -> bool:
        """Whether a use stands in the function of the loop that the value is computed in, and not in the loop."""
        loop = self._loop
        if loop is None or loop.tree is not use.tree or script.function(use) is not script.function(loop):
            return False
        return not script.source.contains(loop, use)

    @staticmethod
    def _reaches(script: Script, target: syntax.Name, use: syntax.Name) -> bool:
        bindings = script.names.reaching(use)
        return any(binding.node is target for binding in bindings) or not any(
            binding.node is target for binding in script.names.scope(target).bindings.get(target.value, ())
        )

    def _passed(self, script: Script, arg: syntax.Arg, depth: int) -> Iterator[tuple[Script, syntax.Node, syntax.Node]]:
        call = script.source.parents[arg]
        if not isinstance(call, syntax.Call):
            return
        yield script, arg, call
        name = script.name(call.func) or ""
        method = call.func.attr.value if isinstance(call.func, syntax.Attribute) else ""
        if name in _PASSED_ON or name.startswith(("numpy.", "torch.")):
            yield from self.follow(script, call, depth)
        elif method in ("append", "extend", "insert", "put") and isinstance(call.func, syntax.Attribute):
            yield from self._bound(script, call.func.value, depth)
        elif depth:
            for place, use in self._handed(script, arg):
                yield from self.follow(place, use, depth - 1)

    @staticmethod
    def _handed(script: Script, arg: syntax.Arg) -> list[tuple[Script, syntax.Name]]:
        """The uses of the parameter of a first-party function that an argument is handed to."""
        call = script.source.parents[arg]
        callee = script.callee(call) if isinstance(call, syntax.Call) else None
        if callee is None or not isinstance(callee.node, syntax.FunctionDef):
            return []
        return [
            (callee.script, use)
            for parameter in callee.node.params.params
            if any(value is arg.value for where, value in callee.script.values.passed(parameter) if where is script)
            for use in callee.script.names.uses(parameter)
        ]

    def _returned(
        self, script: Script, node: syntax.Return | syntax.If, depth: int
    ) -> Iterator[tuple[Script, syntax.Node, syntax.Node]]:
        function = script.function(node)
        if function is not None and depth:
            for other, call in script.call_sites(function):
                yield from self.follow(other, call, depth - 1)


def _given_by(iterated: syntax.BaseExpression, target: syntax.Node) -> syntax.Node:
    """The part of a loop's target that takes what a container holds: ``value`` of ``name, value`` for ``x.items()`` or
    ``enumerate(x)``."""
    match iterated, target:
        case (
            syntax.Call(func=syntax.Attribute(attr=syntax.Name("items")) | syntax.Name("enumerate")),
            syntax.Tuple(elements=[_, second]),
        ):
            return second.value
    return target


def _is_other_entry(script: Script, use: syntax.Name, key: object) -> bool:
    """Whether a use of a dict or list takes an entry with another key."""
    whole = script.source.parents[use]
    return isinstance(whole, syntax.Subscript) and whole.value is use and key_of(whole) not in (None, key)


# Telling about reads

_OFTEN = {
    Frequency.STEP: "in every training step",
    Frequency.EVAL_STEP: "in every evaluation step",
    Frequency.THROTTLED: "now and then",
}


def how_often(script: Script, read: syntax.Node) -> Frequency:
    """How often a read waits; what is read once for many micro-steps is read now and then, but for those that go over the
    parts of a batch."""
    found = script.frequency(read)
    loop = script.loops.driving_loop(read) if found is Frequency.STEP else None
    is_rare = loop is not None and script.loops.accumulates(loop) and not script.loops.iterates_loader(loop)
    return Frequency.THROTTLED if is_rare else found


def often(script: Script, read: syntax.Node) -> str | None:
    """How often a read waits, in words; None where it is too seldom to matter, or runs only where there is no GPU."""
    return None if script.loops.guards.is_without_gpu(read) else _OFTEN.get(how_often(script, read))


def is_repeated(script: Script, read: syntax.Call | syntax.Subscript) -> bool:
    """Whether the same read is written a second time on its line; the first one stands for both."""
    line, text = script.source.line(read), script.text(read)
    return any(
        script.source.line(other) == line and script.text(other) == text
        for other in script.source.inside(script.source.statement(read), type(read))
        if script.source.order[other] < script.source.order[read]
    )


def shown(script: Script, node: syntax.Node) -> str:
    """The code of a node for a message: one line, not too long."""
    text = " ".join(script.text(node).split())
    return text if len(text) <= 60 else f"{text[:57]}..."
