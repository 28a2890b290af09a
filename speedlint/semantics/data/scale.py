"""How large a loader's data is and what an item of it costs, as far as names of public data sets and the items' code say."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from speedlint.facts import syntax
from speedlint.semantics.data.item_decoding import DECODERS, PARSERS
from speedlint.semantics.model.networks import with_named
from speedlint.semantics.values import option_of

if TYPE_CHECKING:
    from speedlint.semantics.data.datasets import Origin
    from speedlint.semantics.data.loaders import Loader
    from speedlint.semantics.script import Script

_LARGE = re.compile(
    r"(?<!mini)(?<!mini[-_ ])(?:imagenet(?!te)|image-net)|ilsvrc|imnet|(?<![a-z])(?:ms)?coco(?![a-z])|places365|openimages|"
    r"kinetics|lsun|edges2(?:shoes|handbags)|celeba|ms1m|webface|vggface|librispeech|libritts|ljspeech|lj-speech|vctk",
    re.IGNORECASE,
)
"""Public data sets of tens of thousands of images or recordings: an epoch of them takes minutes."""
_SMALL = re.compile(r"cifar|mnist|svhn|flower|hymenoptera|caltech|oxford|cub[-_]?200|stl-?10", re.IGNORECASE)
_OF_WEIGHTS = re.compile(r"pre-?train|weight|checkpoint|init|mean|backbone|normali[sz]", re.IGNORECASE)
_IMAGES = frozenset(
    f"torchvision.datasets.{name}"
    for name in (
        "ImageFolder DatasetFolder ImageNet CocoDetection CocoCaptions VOCDetection VOCSegmentation Cityscapes Flowers102 "
        "Food101 OxfordIIITPet CelebA Places365 StanfordCars SBDataset LSUN INaturalist Caltech101 Caltech256 WIDERFace"
    ).split()
)
"""Data sets that decode an image file for each item."""


def is_large(loader: Loader) -> bool:
    """Whether a pass over a loader takes minutes, by the name of the public data set that it reads."""
    return bool(loader.origins) and all(_is_large(origin, loader.script) for origin in loader.origins)


def _is_large(origin: Origin, script: Script) -> bool:
    called = origin.definition.name if origin.definition is not None else (origin.name or "").rpartition(".")[2]
    if _LARGE.search(called):
        return True
    if _SMALL.search(called) or not (origin.definition is not None or origin.name in _IMAGES or not origin.is_known):
        return False
    return any(says_large(place) for place in dict.fromkeys((script, origin.script)))


def says_large(script: Script) -> bool:
    """Whether the name of a file or of its folder, or what its command line says of itself, is that of a large data set."""
    return script.once("says large", lambda: _says_large(script), False)


def _says_large(script: Script) -> bool:
    said = [script.path.stem, script.path.absolute().parent.name, *_said_by_options(script)]
    about_data = [text for text in said if not _OF_WEIGHTS.search(text)]
    if any(map(_SMALL.search, about_data)):
        return False
    return any(map(_LARGE.search, about_data)) or _is_started_on_large(script)


def _is_started_on_large(script: Script) -> bool:
    """Whether a README beside the script starts it on such data: ``python main.py /path/to/imagenet``."""
    disk, folder = script.program.disk, script.key.parent
    named = re.escape(script.path.name.encode())
    started = re.compile(rb"python[^\n]*" + named + rb"[^\n]*(?:imagenet|ilsvrc|coco)", re.IGNORECASE)
    readmes = (str(folder / name) for name in disk.names(str(folder), "README*"))
    return any(disk.is_readable(each) and disk.mentions(each, started) for each in readmes)


def _said_by_options(script: Script) -> Iterator[str]:
    for string in script.source.of(syntax.SimpleString):
        call = script.source.enclosing(string, syntax.Call)
        if call is None or not isinstance(call, syntax.Call):
            continue
        if script.name(call.func) == "argparse.ArgumentParser" or option_of(script, call) is not None:
            yield str(string.evaluated_value)


def decodes(origin: Origin) -> bool:
    """Whether each item is an image or a recording that is decoded when it is read."""
    if origin.definition is None:
        return origin.name in _IMAGES
    bases = origin.definition.script.roles.calls.foreign_bases(origin.definition)
    return not _IMAGES.isdisjoint(bases) or _calls_in_item(origin, DECODERS)


def parses(origin: Origin) -> bool:
    """Whether an item is a text of numbers that is parsed when it is read."""
    return origin.definition is not None and _calls_in_item(origin, PARSERS)


def _calls_in_item(origin: Origin, names: frozenset[str]) -> bool:
    assert origin.definition is not None
    method = origin.definition.script.roles.calls.method(origin.definition, "__getitem__")
    return method is not None and any(
        place.name(call.func) in names and place.source.enclosing(call, syntax.If) is None
        for place, node in with_named(method.script, method.node, called=True)
        for call in place.source.inside(node, syntax.Call)
    )
