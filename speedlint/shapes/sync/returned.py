"""Numbers that are read back from the GPU though they lay on the host before: those of a batch that was copied there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.shapes.data import batches
from speedlint.shapes.sync import creation, hidden, reads
from speedlint.solve.flow import once
from speedlint.solve.inplace import is_written
from speedlint.solve.names import Binding, Kind
from speedlint.solve.unpacking import Path, part
from speedlint.solve.values import returned
from speedlint.torch.methods import CASTS, DETACHES, PARTS, READS, RESHAPES, TRANSPOSES
from speedlint.torch.words import FREQUENT, Frequency, Place, Role

_OF_ONE = (RESHAPES | TRANSPOSES | PARTS | DETACHES | CASTS | READS) | frozenset(
    "cpu clone contiguous max min sort values indices".split()
)
"""What a tensor gives that hangs on it alone, and that the host works out as well for a handful of numbers."""
_DEEPEST = 4
"""Tuples within tuples that are taken apart."""
_MOST_CALLS = 4
"""Calls of a function that are followed to what they hand it."""


class Returned(NamedTuple):
    """A tensor that is read back.

    Attributes:
        script: the script where the batch is copied.
        node: what is copied to the GPU there.
    """

    script: Script
    node: syntax.BaseExpression

    def shown(self, reader: Script) -> str:
        """What was copied, for a message about a line of ``reader``, with its place."""
        return f"`{reads.shown(self.script, self.node)}` ({hidden.place(reader, self)})"


def needed(script: Script, read: syntax.Call) -> Returned | None:
    """What a read that has to be there, as for a length, could be taken from before the batch is copied to the GPU; None
    where it could be left out, where it is read now and then, or where it hangs on more than the batch."""
    tensor = reads.scalar(script, read) or reads.copied(script, read)
    if tensor is None or reads.how_often(script, read) is not Frequency.STEP or reads.often(script, read) is None:
        return None
    if reads.is_repeated(script, read) or next(reads.needs(script, reads.chain(script, read)), None) is None:
        return None
    return before(script, tensor)


def before(script: Script, tensor: syntax.BaseExpression) -> Returned | None:
    """What of a batch a tensor on the GPU could be taken from before that is copied there; None where it hangs on more."""
    return _copied_from(script, tensor, ())


def stored(script: Script, assign: syntax.Assign) -> syntax.BaseExpression | None:
    """The tensor on the GPU that is copied into a part of one on the host, ``results[i] = model(x)``, in every step."""
    match assign.targets:
        case [syntax.AssignTarget(target=syntax.Subscript(value=syntax.Name() as held))]:
            pass
        case _:
            return None
    given, kept = script.value(assign.value), script.value(held)
    if given.role is not Role.TENSOR or given.place is not Place.GPU or script.frequency(assign) not in FREQUENT:
        return None
    if kept.role is not Role.TENSOR or kept.place is not Place.HOST or reads.often(script, assign) is None:
        return None
    return None if creation.is_made_elsewhere(script) else assign.value


@once(None)
def _copied_from(script: Script, node: syntax.BaseExpression, path: Path) -> Returned | None:
    """What of a batch was copied to the GPU, if the part of an expression that a path leads to is that, or made of it."""
    node, path = part(node, path)
    if len(path) > _DEEPEST:
        return None
    match node:
        case syntax.Name() if not is_written(script, node):
            return _same([_bound(script, each, path) for each in script.names.reaching(node)])
        case syntax.Call() if path:
            return _given_back(script, node, path)
        case syntax.ListComp(elt=syntax.Call() as moved) if len(path) == 1:
            return _of_call(script, moved)
        case _ if path:
            return None
        case syntax.Attribute(value=inner, attr=syntax.Name(value=name)) if name in _OF_ONE:
            return _copied_from(script, inner, ())
        case syntax.Subscript(value=inner) if script.role(inner) is not Role.BATCH:
            is_plain = all(creation.is_plain(script, each) for each in _indices(node))
            return _copied_from(script, inner, ()) if is_plain else None
        case syntax.Subscript(value=syntax.Name() as batch):
            return _entry(script, batch, node)
        case syntax.Call():
            return _of_call(script, node)
    return None


def _given_back(script: Script, call: syntax.Call, path: Path) -> Returned | None:
    """The same for a part of the tuple that a function of the project returns: ``x, y = model.parse_batch(batch)``."""
    callee = script.callee(call)
    if callee is None or not isinstance(callee.node, syntax.FunctionDef):
        return None
    return _same([_copied_from(callee.script, each, path) for each in returned(callee)])


def _indices(subscript: syntax.Subscript) -> Iterator[syntax.BaseExpression]:
    for each in subscript.slice:
        parts = (each.slice.value,) if isinstance(each.slice, syntax.Index) else (each.slice.lower, each.slice.upper)
        yield from (part for part in parts if part is not None)


def _of_call(script: Script, call: syntax.Call) -> Returned | None:
    if (batch := batches.moved(script, call)) is not None:
        return Returned(script, batch) if not batches.is_on_gpu_already(script, batch) else None
    if (handed := creation.only_copied(script, call)) is not None:
        value = script.value(handed)
        return Returned(script, handed) if value.role is Role.BATCH and value.place is Place.HOST else None
    if not isinstance(call.func, syntax.Attribute) or call.func.attr.value not in _OF_ONE:
        return None
    name = script.name(call.func)
    operand, *others = [call.func.value] * (name is None) + [arg.value for arg in call.args]
    if any(not creation.is_plain(script, each) for each in others) or not (name or "torch.").startswith("torch."):
        return None
    return _copied_from(script, operand, ())


def _entry(script: Script, batch: syntax.Name, entry: syntax.Subscript) -> Returned | None:
    """The entry of a dict, in whose place its copy was put."""
    change = script.roles.moved_entry(batch, entry)
    found = _of_call(script, change) if isinstance(change, syntax.Call) else None
    return Returned(script, entry) if found is not None else None


def _bound(script: Script, binding: Binding, path: Path) -> Returned | None:
    if binding.kind is Kind.ASSIGN and binding.value is not None:
        return _copied_from(script, binding.value, (*binding.path, *path))
    if binding.kind is Kind.FOR and binding.value is not None and not path:
        walked, taken = _walked(script, binding)
        is_of_tensor = script.role(walked) is Role.TENSOR
        return _copied_from(script, walked, ()) if is_of_tensor else _copied_from(script, *part(walked, taken))
    if not isinstance(binding.node, syntax.Param):
        return None
    given = list(script.values.passed(binding.node))
    given = [each for each in given if each[1] is not None and each[0].frequency(each[1]) is Frequency.STEP] or given
    if not 0 < len(given) <= _MOST_CALLS:
        return None
    return _same([_copied_from(other, each, path) if each is not None else None for other, each in given])


def _walked(script: Script, binding: Binding) -> tuple[syntax.BaseExpression, Path]:
    """What a loop goes over, seen through ``enumerate``, and how each turn's is taken apart to reach a name."""
    match binding.value:
        case syntax.Call(func=func, args=[syntax.Arg(value=over), *_]) if script.name(func) == "enumerate":
            return over, binding.path[1:]
    assert binding.value is not None
    return binding.value, binding.path


def _same(found: list[Returned | None]) -> Returned | None:
    """The first where all are known."""
    return found[0] if found and None not in found else None
