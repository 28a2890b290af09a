"""How the processes of a distributed training share the data: by which sampler, and whether it is told the epoch."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from speedlint.facts import syntax
from speedlint.shapes.data import datasets
from speedlint.shapes.data.loaders import Loader
from speedlint.solve.terms import Definition
from speedlint.torch import library
from speedlint.torch.words import Frequency

if TYPE_CHECKING:
    from speedlint.ask.script import Script

SAMPLERS = ("torch.utils.data.distributed.DistributedSampler", "torch.utils.data.DistributedSampler")
_WRAPPERS = (*library.DATA_PARALLEL_RANKS, "torch.distributed.fsdp.FullyShardedDataParallel")
_SHARES = re.compile("rank|world|shard|replica|num_gpus|worker_id", re.IGNORECASE)
_TELLERS = frozenset(
    "lightning pytorch_lightning lightning_fabric accelerate transformers.Trainer transformers.Seq2SeqTrainer fastai "
    "mmengine mmcv composer colossalai catalyst torchtune ignite.distributed detectron2 fairseq".split()
)
_TELLING_MARKS = tuple({name.partition(".")[0].encode() for name in _TELLERS})
_SHARING_MARKS = (b"DistributedSampler", b"set_epoch", b"deepspeed", b"horovod", b"evice_mesh", b"DeviceMesh")


def sampler(found: Loader) -> tuple[Script, syntax.Call] | None:
    """The call that makes the ``DistributedSampler`` of a loader."""
    expression = found.parameter("sampler")
    if expression is None:
        return None
    for script, node in found.script.roles.origins(expression):
        for branch in _branches(node):
            if isinstance(branch, syntax.Call) and script.name(branch.func) in SAMPLERS:
                return script, branch
    return None


def _branches(node: syntax.BaseExpression) -> tuple[syntax.BaseExpression, ...]:
    return (node.body, node.orelse) if isinstance(node, syntax.IfExp) else (node,)


def shuffles(script: Script, made: syntax.Call) -> bool:
    """Whether a ``DistributedSampler`` draws an order by the number of the epoch, as it does unless it is told not to."""
    if script.hides_arguments(made):
        return False
    asked = script.argument(made, "shuffle", 3)
    known = script.constant(asked) if asked is not None else None
    return asked is None or (known is not None and known.value is True)


def tells_epoch(script: Script) -> bool:
    """Whether any sampler of the program is told the epoch: by the script, by its framework, by an override of its own."""
    tells = any(other.method_calls("set_epoch") for other in script.everywhere(b".set_epoch("))
    return tells or any(_imports_teller(other) for other in script.everywhere(*_TELLING_MARKS))


def _imports_teller(script: Script) -> bool:
    """Whether a script imports a library that tells the samplers of its loaders the epoch."""
    named = (dotted for _, dotted in script.names.imports)
    return any(name in _TELLERS or name.startswith(tuple(f"{each}." for each in _TELLERS)) for name in named)


def trains_again(found: Loader) -> bool:
    """Whether a loop of training steps reads the loader in each of several epochs, in a program that steps an optimizer."""
    trains = any(
        isinstance(start.node, syntax.For) and start.script.loops.kind(start.node) is Frequency.STEP and start.repeated
        for start in found.starts
    )
    return trains and found.is_read_again and any(place.method_calls("step") for place in found.script.everywhere(b".step("))


def wraps(found: Loader) -> tuple[Script, syntax.Call] | None:
    """The call that wraps a module for distributed training, in the file that makes or reads the loader: where it can be, in
    the function that reads it."""
    if not any(found.script.program.mentions(found.script, mark) for mark in (b"DistributedData", b"FullyShardedData")):
        return None
    places = dict.fromkeys((found.script, *(start.script for start in found.starts)))
    calls = [(script, call) for script in places for call in script.calls(*_WRAPPERS)]
    readers = [start.script.function(start.node) for start in found.starts]
    return min(calls, key=lambda each: each[0].function(each[1]) not in readers, default=None)


def may_share(found: Loader) -> bool:
    """Whether the processes may share the data in a way of their own: a sampler, a dataset that knows its process."""
    if found.hides_arguments or found.is_iterable or found.is_made_of_anything or not found.origins:
        return True
    if any(found.parameter(name) is not None for name in ("sampler", "batch_sampler", "worker_init_fn", "generator")):
        return True
    if any(found.script.program.mentions(found.script, mark) for mark in (*_SHARING_MARKS, *_TELLING_MARKS)):
        return True
    return any(_knows_process(origin) for origin in found.origins)


def _knows_process(origin: datasets.Origin) -> bool:
    if not origin.is_known or _SHARES.search(origin.script.text(origin.node)):
        return True
    if origin.definition is None:
        return False
    lineage = origin.definition.script.roles.calls.lineage(origin.definition)
    return any(_names_process(owner) for owner in lineage)


def _names_process(owner: Definition) -> bool:
    return any(_SHARES.search(name.value) for name in owner.script.source.inside(owner.node, syntax.Name))
