"""What reading further ahead of the training would change: what a loader's sampler and workers draw, and when."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from speedlint.facts import syntax
from speedlint.source import is_none

if TYPE_CHECKING:
    from speedlint.ask.script import Script
    from speedlint.shapes.data.loaders import Loader, Start

_SHARED = re.compile(rb"share_memory_\(|shared_memory|(?:multiprocessing|mp)\.(?:Value|Array|RawValue|RawArray|Manager)\(")
"""What makes memory that workers share with the training."""
_SHORTENS = frozenset({"zip", "itertools.islice"})


def changes_nothing(found: Loader) -> bool:
    """Whether a loader certainly yields the same batches however many of them its workers hold ready.

    A sampler of torch's own draws all it needs when a pass begins; one of the project's may draw from the stream that the
    model's dropout draws from. What is left of a pass that is broken off has been drawn by workers that stay alive, or by
    the generator that was handed in.
    """
    in_order = found.setting("in_order")
    if not found.is_torch or (in_order.expression is not None and not _is_true(found.script, in_order.expression)):
        return False
    if not all(_is_own(found.script, found.parameter(name)) for name in ("sampler", "batch_sampler")):
        return False
    generator = found.parameter("generator")
    if generator is None and found.setting("persistent_workers").is_off:
        return True
    if generator is not None and not isinstance(generator, syntax.Call) and not is_none(generator):
        return False
    return found.is_followed and bool(found.starts) and all(_runs_to_its_end(start) for start in found.starts)


def changes_ahead(found: Loader) -> str | None:
    """What the training may change as it goes that a sampler of the project's reads, or that workers share; in a clause."""
    is_own = not all(_is_own(found.script, found.parameter(name)) for name in ("sampler", "batch_sampler"))
    if is_own or found.script.program.mentions(found.script, _SHARED):
        return found.changes_between_reads()
    return None


def _is_true(script: Script, expression: syntax.BaseExpression) -> bool:
    known = script.constant(expression)
    return known is not None and known.value is True


def _is_own(script: Script, sampler: syntax.BaseExpression | None) -> bool:
    """Whether a sampler is absent, or certainly one of torch's."""
    if sampler is None or is_none(sampler):
        return True
    found = list(script.roles.origins(sampler))
    return bool(found) and all(_is_made_by_torch(place, node) for place, node in found)


def _is_made_by_torch(script: Script, node: syntax.BaseExpression) -> bool:
    if isinstance(node, syntax.IfExp):
        return _is_own(script, node.body) and _is_own(script, node.orelse)
    if not isinstance(node, syntax.Call) or not (script.name(node.func) or "").startswith("torch.utils.data."):
        return is_none(node)
    is_batches = (script.name(node.func) or "").endswith(".BatchSampler")
    return not is_batches or _is_own(script, script.argument(node, "sampler", 0))


def _runs_to_its_end(start: Start) -> bool:
    """Whether a place that reads the loader is a loop, comprehension or list that nothing leaves before its end."""
    script, node = start.script, start.node
    source = script.source
    if isinstance(node, syntax.Call):
        return script.name(node.func) in ("list", "tuple")
    if not isinstance(node, (syntax.For, syntax.CompFor)):
        return False
    if any(script.name(call.func) in _SHORTENS for call in source.inside(node.iter, syntax.Call)):
        return False
    if isinstance(node, syntax.CompFor):
        return True
    leaves: list[syntax.Node] = [*source.inside(node.body, syntax.Return), *source.inside(node.body, syntax.Yield)]
    leaves += [
        each for each in source.inside(node.body, syntax.Break) if source.enclosing(each, syntax.For, syntax.While) is node
    ]
    return not leaves
