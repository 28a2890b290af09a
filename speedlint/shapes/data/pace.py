"""Whether training goes at the pace of its loaders: then what the GPU saves in a step is waited away."""

from __future__ import annotations

from collections.abc import Callable

from speedlint.ask.script import Script
from speedlint.shapes.data import loaders, scale
from speedlint.shapes.data.loaders import Loader
from speedlint.solve import configs, off
from speedlint.solve.flow import once
from speedlint.torch import public

_ABOUT = 0.9
"""The part of an epoch from which on what is done after so many steps is done once an epoch."""

_SMALL = 128
"""Pixels of a side up to which a step may be bound by the launch of its kernels."""

_LARGE_BATCH = 128
"""Items: those of 224 by 224 pixels take a ResNet-18 a tenth of a second forward and backward in float32, at 10 TFLOPS."""

_SMALL_BATCH = 64
"""Items: those of 32 by 32 pixels take a ResNet-18 some 3 ms, and its launches twice that."""


@once(False)
def waits_for_items(script: Script) -> bool:
    """Whether each loader that training reads again and again parses text for an item, or decodes it, or reads it from a
    file of arrays, without workers."""
    return _all_read(script, lambda each: _parses(each) or (each.needs_workers and _reads_slowly(each)))


@once(False)
def waits_for_texts(script: Script) -> bool:
    """Whether each loader that training reads again and again parses text for an item, which takes workers longer than a
    step takes."""
    return _all_read(script, _parses)


@once(False)
def waits_for_analyses(script: Script) -> bool:
    """Whether each loader that training reads again and again analyses a recording for an item, which takes some workers
    longer than the convolutions of what it gives take."""
    return _all_read(script, lambda each: all(map(scale.analyses, each.origins)))


@once(False)
def reads_recordings(script: Script) -> bool:
    """Whether each loader that training reads again and again gives seconds of sound, by the public set that it reads."""
    return _all_read(script, scale.is_of_recordings)


@once(False)
def reads_large_images(script: Script) -> bool:
    """Whether each loader that training reads again and again decodes the images of a large public data set, and nothing
    makes them small."""
    if not _all_read(script, lambda each: _decodes(each) and scale.is_large(each)):
        return False
    known = loaders.sides(script, "Resize", "CenterCrop", "RandomCrop", "RandomResizedCrop")
    return all(side is None or side > _SMALL for side in known)


@once(False)
def reads_large_batches(script: Script) -> bool:
    """Whether each loader that training reads again and again is known to give batches of a hundred items and more."""
    return _all_read(script, _gives_large_batches)


@once(False)
def reads_small_batches(script: Script) -> bool:
    """Whether each loader that training reads again and again is known to give batches of some ten items."""
    return _all_read(script, _gives_small_batches)


def largest_batch(script: Script) -> int | None:
    """The most items of a batch that training reads again and again, by the defaults of options; None where that is not
    known of each loader."""
    read = [each for each in loaders.near(script) if each.matters and not off.is_off(each.script, each.call)]
    sizes = [_batch_size(each) for each in read]
    known = [size for size in sizes if size is not None]
    return max(known) if known and len(known) == len(sizes) else None


def is_epoch(script: Script, steps: int) -> bool:
    """Whether so many steps are known to be about an epoch, or more, of each data set that a program reads."""
    batch = largest_batch(script)
    read = [origin for each in loaders.near(script) if each.matters for origin in each.origins]
    rows = [public.ROWS.get(origin.name or "") for origin in read]
    return batch is not None and bool(rows) and all(each is not None and steps * batch >= _ABOUT * each for each in rows)


def _gives_large_batches(loader: Loader) -> bool:
    size = _batch_size(loader)
    return size is not None and size >= _LARGE_BATCH


def _gives_small_batches(loader: Loader) -> bool:
    size = _batch_size(loader)
    return size is not None and size <= _SMALL_BATCH


def _batch_size(loader: Loader) -> int | None:
    size = loader.parameter("batch_size")
    known = loader.script.constant(size) if size is not None else None
    if known is None and size is not None:
        return configs.most(loader.script, size)
    return known.value if known is not None and isinstance(known.value, int) else None


def _all_read(script: Script, asked: Callable[[Loader], bool]) -> bool:
    read = [each for each in loaders.near(script) if each.matters]
    return bool(read) and all(bool(each.origins) and asked(each) for each in read)


def _parses(loader: Loader) -> bool:
    return all(map(scale.parses, loader.origins))


def _reads_slowly(loader: Loader) -> bool:
    return all(scale.decodes(origin) or scale.reads_store(origin) for origin in loader.origins)


def _decodes(loader: Loader) -> bool:
    return all(map(scale.decodes, loader.origins))
