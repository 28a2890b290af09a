"""How large a loader's data is and what an item of it costs, as far as names of public data sets and the items' code say."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from speedlint.facts import syntax
from speedlint.shapes.data.item_decoding import ANALYSES, DECODERS, MEDIA, PARSERS
from speedlint.shapes.model.networks import with_named
from speedlint.solve import counts, off, shipped
from speedlint.solve.flow import once
from speedlint.solve.terms import Definition
from speedlint.solve.values import option_of
from speedlint.torch import public
from speedlint.torch.public import Item, Public

if TYPE_CHECKING:
    from speedlint.ask.script import Script
    from speedlint.shapes.data.datasets import Origin
    from speedlint.shapes.data.loaders import Loader

_OF_WEIGHTS = re.compile(r"pre-?train|weight|checkpoint|init|mean|backbone|normali[sz]", re.IGNORECASE)
_STORES = frozenset("h5py.File zarr.open netCDF4.Dataset xarray.open_dataset tables.open_file".split())
_FEW_DECODED = 100
"""Items that are decoded, two to ten milliseconds each: less than a second, which the start of workers takes too."""
_FEW_LIGHT = 2000
"""Items that are not: some tens of microseconds each, 0.1 s at most, which forking eight workers takes too."""
_DECODED = public.classes(Item.IMAGE)


def is_large(loader: Loader) -> bool:
    """Whether a pass over a loader takes minutes, by the name of the public data set that it reads."""
    return bool(loader.origins) and all(_is_large(origin, loader.script) for origin in loader.origins)


def reads_few(loader: Loader) -> bool:
    """Whether a pass over a loader reads so few items that making them takes no longer than the start of workers: of a tiny
    set, of one of many parts, or of loops that are left after a few batches."""
    return _is_of_tiny_set(loader) or loader.is_of_small_parts or _is_left_early(loader)


def _is_left_early(loader: Loader) -> bool:
    """Whether each loop over a loader is left after a few items: a hundred that are decoded, or some that are not."""
    size = loader.setting("batch_size").value
    ends = [
        counts.left_after(start.script, start.node) if isinstance(start.node, syntax.For) else None
        for start in loader.starts
    ]
    known = [each for each in ends if each is not None]
    if size is None or not isinstance(size.value, int) or not known or len(known) < len(ends) or not loader.is_followed:
        return False
    is_light = bool(loader.origins) and not any(
        each.definition is None or decodes(each) or analyses(each) or reads_store(each) for each in loader.origins
    )
    return (max(known) + 1) * size.value <= (_FEW_LIGHT if is_light else _FEW_DECODED)


def _is_of_tiny_set(loader: Loader) -> bool:
    """Whether a pass over a loader reads some images only, by the public set that its dataset is told to read: in the code,
    by the default of an option or by a command that the project ships."""
    return bool(loader.origins) and all(_is_tiny(origin) for origin in loader.origins)


def _is_tiny(origin: Origin) -> bool:
    known = [each for text in (_called(origin), *_handed(origin)) if (each := public.named(text)) is not None]
    return bool(known) and all(each.is_tiny for each in known)


def _handed(origin: Origin) -> Iterator[str]:
    """The texts that a dataset is made of."""
    script = origin.script
    for arg in origin.node.args if isinstance(origin.node, syntax.Call) else ():
        yield from _texts(script, arg.value)
        for option, place in _options(script, arg.value):
            yield from (each for each in shipped.given(place, option) if each is not None)


def _texts(script: Script, expression: syntax.BaseExpression) -> Iterator[str]:
    """The texts that an expression is, or is put together from, as far as they are known."""
    parts = (
        each
        for kind in (syntax.SimpleString, syntax.Name, syntax.Attribute)
        for each in script.source.inside(expression, kind)
    )
    for part in (expression, *parts):
        known = script.constant(part)
        if known is not None and isinstance(known.value, str):
            yield known.value


def _options(script: Script, expression: syntax.BaseExpression) -> Iterator[tuple[syntax.Call, Script]]:
    """The options of the command line that an expression names."""
    for attribute in script.source.inside(expression, syntax.Attribute):
        for origin, setting in script.values.settings(attribute.value):
            if isinstance(setting, syntax.Call):
                yield from ((call, place) for place, call in origin.values.declared(attribute.attr.value, setting))


def has_light_batches(loader: Loader) -> bool:
    """Whether a step takes far longer than a copy of a loader's batch, by the public set that it reads: rows of tokens, or
    seconds of sound that a network goes over sample by sample."""
    known = [public.named(_called(origin)) for origin in loader.origins]
    return bool(known) and all(each is not None and each.item in (Item.TEXT, Item.RECORDING) for each in known)


def is_of_recordings(loader: Loader) -> bool:
    """Whether a loader reads a public set of recordings, or what is computed from one."""
    known = [_known(origin) for origin in loader.origins]
    return bool(known) and all(each is not None and each.item is Item.RECORDING for each in known)


def _known(origin: Origin) -> Public | None:
    """The public data set that a dataset is, by the name of its class or by what is written where it is made."""
    named = public.named(_called(origin))
    if named is not None or not isinstance(origin.node, syntax.Call):
        return named
    said = [each for arg in origin.node.args for each in _texts(origin.script, arg.value) if not _OF_WEIGHTS.search(each)]
    found = [each for text in said if (each := public.named(text)) is not None]
    return found[0] if found and all(each is found[0] for each in found) else None


def _called(origin: Origin) -> str:
    """The name of the class that a dataset is of."""
    return origin.definition.name if origin.definition is not None else (origin.name or "").rpartition(".")[2]


def _is_large(origin: Origin, script: Script) -> bool:
    if (known := _known(origin)) is not None:
        return known.is_large
    if not (origin.definition is not None or origin.name in _DECODED or not origin.is_known):
        return False
    return any(says_large(place) for place in dict.fromkeys((script, origin.script)))


@once(False)
def says_large(script: Script) -> bool:
    """Whether the name of a file or of its folder, or what its command line says of itself, is that of a large data set."""
    said = [script.path.stem, script.path.absolute().parent.name, *_said_by_options(script)]
    known = [each for text in said if not _OF_WEIGHTS.search(text) and (each := public.named(text)) is not None]
    return all(each.is_large for each in known) if known else _is_started_on_large(script)


def _is_started_on_large(script: Script) -> bool:
    """Whether a README beside the script starts it on such data: ``python main.py /path/to/imagenet``."""
    disk, folder = script.program.disk, script.key.parent
    named = re.escape(script.path.name.encode())
    started = re.compile(rb"python[^\n]*" + named + rb"[^\n]*(?:imagenet|ilsvrc|coco)", re.IGNORECASE)
    readmes = (str(folder / name) for name in disk.names(str(folder), "README*"))
    return any(disk.is_readable(each) and disk.mentions(each, started) for each in readmes)


def _said_by_options(script: Script) -> Iterator[str]:
    for string in script.source.of(syntax.SimpleString):
        calls = (each for each in script.source.ancestors(string) if isinstance(each, syntax.Call))
        if any(script.name(call.func) == "argparse.ArgumentParser" or option_of(script, call) is not None for call in calls):
            yield str(string.evaluated_value)


def decodes(origin: Origin) -> bool:
    """Whether each item is an image, a recording or a file of an array that is decoded when it is read."""
    return decodes_media(origin) or (origin.definition is not None and _calls_in_item(origin, DECODERS))


def decodes_media(origin: Origin) -> bool:
    """Whether each item is an image or a recording, not an array of a file, and is decoded when it is read."""
    if origin.definition is None:
        return origin.name in _DECODED
    bases = origin.definition.script.roles.calls.foreign_bases(origin.definition)
    return not _DECODED.isdisjoint(bases) or _calls_in_item(origin, MEDIA)


def remembers(origin: Origin) -> bool:
    """Whether what makes an item keeps it: ``self.items[index] = item``."""
    method = origin.definition.script.roles.calls.method(origin.definition, "__getitem__") if origin.definition else None
    return method is not None and any(
        isinstance(target.target, syntax.Subscript) and isinstance(target.target.value, syntax.Attribute)
        for place, node in with_named(method.script, method.node, called=True)
        for target in place.source.inside(node, syntax.AssignTarget)
    )


def reads_store(origin: Origin) -> bool:
    """Whether each item is read from a file of arrays, which takes some tenths of a millisecond."""
    return origin.definition is not None and _calls_in_item(origin, _STORES, at_first=True)


def parses(origin: Origin) -> bool:
    """Whether an item is a text of numbers that is parsed when it is read."""
    return origin.definition is not None and _calls_in_item(origin, PARSERS)


def analyses(origin: Origin) -> bool:
    """Whether a recording is read for an item and gone over on the host: its spectrum, its pitch."""
    is_read = origin.definition is not None and _calls_in_item(origin, frozenset({"librosa.load"}))
    return is_read and _calls_in_item(origin, ANALYSES)


@once(False)
def _is_held(item: Definition) -> bool:
    """Whether an item is handed out of memory first of all, by an option that is on: ``if self.in_memory: return
    self.items[index]``."""
    body = item.node.body.body
    first = next((each for each in body if not isinstance(each, syntax.SimpleStatementLine)), None)
    match first:
        case syntax.If(
            test=test, body=syntax.IndentedBlock(body=[syntax.SimpleStatementLine(body=[syntax.Return(value=value)])])
        ):
            is_plain = isinstance(value, syntax.Subscript | syntax.Name | syntax.Attribute)
            return is_plain and off.values(item.script, test) == (True,)
    return False


def _calls_in_item(origin: Origin, names: frozenset[str], *, at_first: bool = False) -> bool:
    """Whether an item is made by a call of one of some functions; ``at_first``: or of what such a call opens once."""
    assert origin.definition is not None
    method = origin.definition.script.roles.calls.method(origin.definition, "__getitem__")
    return (
        method is not None
        and not _is_held(method)
        and any(
            place.name(call.func) in names and (at_first or place.source.enclosing(call, syntax.If) is None)
            for place, node in with_named(method.script, method.node, called=True)
            for call in place.source.inside(node, syntax.Call)
        )
    )
