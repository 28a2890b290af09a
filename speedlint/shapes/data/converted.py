"""Small images that a library holds in memory and converts one by one, in every epoch, with the same result."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from speedlint.facts import syntax
from speedlint.shapes.data import datasets, loaders
from speedlint.shapes.data.loaders import Loader, Start
from speedlint.solve import counts
from speedlint.torch import library, public
from speedlint.torch.public import Item
from speedlint.torch.words import Frequency

if TYPE_CHECKING:
    from speedlint.ask.script import Script

_DIGITS = public.classes(Item.DIGIT)
_SMALL = public.classes(Item.DIGIT, Item.THUMBNAIL)
_CONVERTS = library.transforms("ToTensor", "PILToTensor", "ToImage")
_PLAIN = _CONVERTS | library.transforms("ConvertImageDtype", "ToDtype", "Normalize", "Grayscale", "CenterCrop", "Pad")
_COMPOSE = library.transforms("Compose", "Sequential")
_MANY = 4
"""Workers that convert a batch of 64 small images in less than a millisecond."""
_TRANSFORM = 2
"""The place of ``transform`` among the arguments of the data sets."""


def trained_on(script: Script, dataset: syntax.Call) -> Loader | None:
    """The loader of a training loop that reads a data set of small images of torchvision's, epoch after epoch, and converts
    each in a way that chance has no part in; where the images are in color, a loader without workers."""
    name = script.name(dataset.func) or ""
    if name not in _SMALL or script.hides_arguments(dataset):
        return None
    transform = script.argument(dataset, "transform", _TRANSFORM)
    if transform is None or not is_fixed(script, transform) or script.argument(dataset, "target_transform") is not None:
        return None
    return next((found for found in loaders.near(script) if _is_read(found, script, dataset)), None)


def _is_read(found: Loader, script: Script, dataset: syntax.Call) -> bool:
    read = (*found.origins, *(inner for origin in found.origins for inner in datasets.wrapped(origin, found.script)))
    if not any(origin.node is dataset and origin.script is script for origin in read):
        return False
    if not found.matters or not found.is_read_again or found.collate or found.is_on_gpu:
        return False
    if script.name(dataset.func) not in _DIGITS and not found.setting("num_workers").is_off:
        return False
    return any(
        isinstance(start.node, syntax.For)
        and start.script.loops.kind(start.node) is Frequency.STEP
        and not _is_single(start)
        for start in found.starts
    )


def _is_single(start: Start) -> bool:
    """Whether the loops around a pass are seen to take one turn."""
    around = [up for up in start.script.source.ancestors(start.node) if isinstance(up, syntax.For)]
    return bool(around) and all(counts.turns(start.script, loop) == 1 for loop in around)


def is_ahead(found: Loader) -> bool:
    """Whether a loader may have workers enough to convert as fast as a small network trains."""
    workers = found.setting("num_workers")
    if workers.is_off:
        return False
    return workers.value is None or not isinstance(workers.value.value, int) or workers.value.value >= _MANY


def is_fixed(script: Script, transform: syntax.BaseExpression) -> bool:
    """Whether a transform of torchvision's makes a small tensor of an image, the same each time."""
    steps = list(_steps(script, transform))
    return any(step in _CONVERTS for step in steps) and all(step is not None for step in steps)


def _steps(script: Script, transform: syntax.BaseExpression) -> Iterator[str | None]:
    """The plain transforms that a transform is composed of, by full name; None for any other one."""
    made = [each for each in script.roles.origins(transform) if isinstance(each[1], syntax.Call)]
    if len(made) != 1:
        yield None
        return
    place, call = made[0]
    assert isinstance(call, syntax.Call)
    name = place.name(call.func) or ""
    given = call.args[0].value if call.args else None
    if name in _COMPOSE and isinstance(given, syntax.List):
        for element in given.elements:
            yield from _steps(place, element.value)
    else:
        yield name if name in _PLAIN else None
