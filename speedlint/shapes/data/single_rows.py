"""Tensors in memory whose rows a loader takes one by one, and puts together to batches that one index would have given."""

from __future__ import annotations

from speedlint.facts import syntax
from speedlint.shapes.data.loaders import Loader, Start
from speedlint.shapes.data.rows import TENSOR_DATASETS
from speedlint.torch.words import Frequency

_OWN_WAYS = ("collate_fn", "batch_sampler", "worker_init_fn")
_FEW = 8
"""Rows up to which a batch is put together in a few microseconds."""


def passes(found: Loader) -> list[Start]:
    """The training loops that read, again and again, batches which a loader puts together of single rows of tensors."""
    if not found.is_torch or found.hides_arguments or found.is_on_gpu or found.has_few_rows or found.script.is_test:
        return []
    if not found.setting("num_workers").is_off or any(found.parameter(name) is not None for name in _OWN_WAYS):
        return []
    if not _makes_batches(found) or not _is_of_tensors(found) or not found.matters or not found.is_read_again:
        return []
    return [
        start
        for start in found.starts
        if isinstance(start.node, syntax.For) and start.script.loops.kind(start.node) is Frequency.STEP
    ]


def _makes_batches(found: Loader) -> bool:
    size = found.parameter("batch_size")
    if size is None:
        return False
    known = found.script.constant(size)
    return known is None or (isinstance(known.value, int) and known.value > _FEW)


def _is_of_tensors(found: Loader) -> bool:
    """Whether a loader's dataset certainly is a ``TensorDataset``, or a part of one."""
    return bool(found.origins) and all(
        origin.definition is None and origin.name in TENSOR_DATASETS for origin in found.origins
    )
