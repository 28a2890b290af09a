"""A dataset that computes, parses or opens the same thing for an item in every epoch does that work again and again.

## What it does
Looks into `__getitem__` of the datasets that training reads, and into the project's functions it calls, for heavy work that
gives the same result each time the item is read: distance maps, segmentations and other heavy functions of scipy, OpenCV,
scikit-image and librosa; loops of Python over the pixels or slices of an array; tables parsed from text, by pandas, numpy or
`csv`; a whole file read again for every item.

Also data sets of small images that torchvision holds in memory, such as MNIST, read as they are or through a class of the
project that picks some of their items, whose transform leaves nothing to chance:
each image is made a PIL image, a tensor, and normalized again for each item in each epoch.

A note tells of what is smaller: a file that is opened again for every item, or decoded again for each of the items cut from
it, scans that SimpleITK reads as a whole, `.npz` archives, pictures that are decoded and then resized, and masks whose
classes are renamed one after the other.

To decode one picture for one item is normal, and nothing is said of it. Nor is anything said where the result hangs on
chance or on something out of sight, as on a transform that was handed in, and where the dataset keeps what it has read. A
dataset in a file that is not checked is told at its loader.

## Why it is slow
What hangs on nothing but the item's index is the same in every epoch. Workers hide the work only as long as they are faster
than the training steps.

## Example
```python
from scipy.ndimage import distance_transform_edt
from torch.utils.data import Dataset


class Outlines(Dataset):
    def __init__(self, images, masks):
        self.images, self.masks = images, masks

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        return self.images[index], distance_transform_edt(self.masks[index])
```

## Use instead
```python
from scipy.ndimage import distance_transform_edt
from torch.utils.data import Dataset


class Outlines(Dataset):
    def __init__(self, images, masks):
        self.images = images
        self.distances = [distance_transform_edt(mask) for mask in masks]

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        return self.images[index], self.distances[index]
```

With `torchvision.datasets.MNIST`, convert all at once and take batches by their indices:

```python
import torch
import torchvision


def train(step, epochs, device):
    data = torchvision.datasets.MNIST("data", train=True)
    images = data.data.to(device).unsqueeze(1).float().div(255).sub(0.1307).div(0.3081)
    labels = data.targets.to(device)
    for _ in range(epochs):
        for batch in torch.randperm(len(images), device=device).split(64):
            step(images[batch], labels[batch])
```

## Fix safety
Never fixed: whether the results fit into memory, or where else to keep them, is not in the script.

## Sources
Run with numpy 2.4 and torch 2.13 on one thread of a shared CPU, each the best of several runs:
`fixtures/projects/clothes_bisenet` at 320 pixels takes 10.0 ms an item, and 7.5 ms with its distance map kept; a 512 x
512 picture with its label map takes 10.9 ms out of a compressed `.npz`, 0.6 ms out of an uncompressed one, and 0.2 ms out of
two `.npy` files.

With pandas 3.1, scipy and h5py 3.16: a row of a table of 10000 x 20 numbers takes 18 ms where `read_csv` reads it each time;
`distance_transform_edt` of 512 x 512 takes 21 ms; an image out of an HDF5 file 0.25 ms where the file is opened for it, and
0.12 ms where it is open.

With torch 2.13 and torchvision 0.29 on one thread of a shared CPU: an item of MNIST takes 28 microseconds in a loader
without workers, 51 with `Normalize`, one of CIFAR 52; taken out of a tensor by a batch of indices 1.2 and 2.7. A step of 64
of them through a hidden layer of 500 units took 2.8 ms there.

- [torchvision: MNIST](https://docs.pytorch.org/vision/stable/generated/torchvision.datasets.MNIST.html)
- [PyTorch: torch.utils.data](https://docs.pytorch.org/docs/stable/data.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.rule import Estimate, Finding, Level, Related, Rule, Worth
from speedlint.shapes.data import converted, datasets, item_work
from speedlint.shapes.data.item_work import HEAVY, Kind, Work
from speedlint.shapes.data.loaders import loader
from speedlint.solve.names import last_name

_SAYS = {
    Kind.WHOLE: "`{}` reads the whole file again for each item",
    Kind.OPENED: "`{}` opens the same file again for each item",
    Kind.COMPUTED: "`{}` is computed again each time an item is read, with the same result",
    Kind.WALKED: "`{}` goes over an array in a loop of Python each time an item is read, with the same result",
    Kind.PARSED: "`{}` parses text again each time an item is read",
    Kind.SHARED: "`{}` decodes the same data again for each of the items that are cut from it",
    Kind.ARCHIVE: "`{}` unpacks an archive of arrays each time an item is read",
    Kind.VOLUME: "`{}` reads a whole volume each time an item is read",
    Kind.RESIZED: "`{}` resizes what it has just decoded each time an item is read",
    Kind.MAPPED: "`{}` goes over a mask once for each class, each time an item is read, with the same result",
}
_CURES = {
    Kind.WHOLE: "read it once in `__init__`",
    Kind.OPENED: "open it once in each worker, when the first item is read, and keep it on `self`",
    Kind.COMPUTED: "compute it once ahead of training and store it, or keep it in `__init__` if all items fit into memory",
    Kind.WALKED: "compute it once ahead of training and store it, or write it as operations on whole arrays",
    Kind.PARSED: "convert the files once to `.npy` or the like",
    Kind.SHARED: "decode it once and keep it if all of them fit into memory, or store it unpacked as `.npy`",
    Kind.ARCHIVE: "store the arrays unpacked as `.npy`, which `np.load(..., mmap_mode='r')` reads in part",
    Kind.VOLUME: "where items are parts of them, store these as `.npy`, which `np.load(..., mmap_mode='r')` reads in part",
    Kind.RESIZED: "store the pictures in the size that the training uses",
    Kind.MAPPED: "look the classes up in one table (`table[mask]`), or store the renamed masks",
}


_CONVERTED = Estimate(Worth.HIGH, "a batch of 64 takes 2 to 3 ms to convert, as long as a small network's step or longer")
_CONVERTED_ON_CPU = Estimate(Worth.MEDIUM, "a batch of 64 takes 2 to 3 ms to convert")


def check(node: syntax.FunctionDef | syntax.Call, script: Script) -> Iterator[Finding]:
    if isinstance(node, syntax.Call):
        yield from _converted(node, script)
        yield from _behind(node, script)
    else:
        yield from _of_item(node, script)


def _converted(call: syntax.Call, script: Script) -> Iterator[Finding]:
    reader = converted.trained_on(script, call)
    if reader is None or script.is_test:
        return
    message = f"`{script.text(call.func)}` converts each image again in every epoch, with the same result"
    advice = (
        "convert all at once, keep them on the device if there is one, and take batches by indices; not written: what else "
        "reads the loader is for you to change"
    )
    level = Level.NOTE if converted.is_ahead(reader) else Level.WARNING
    related = (Related(reader.script.source, reader.call, "this loader reads them"),)
    worth = _CONVERTED if script.on_gpu else _CONVERTED_ON_CPU
    yield Finding(call, message, advice=advice, level=level, related=related, worth=worth)


def _behind(call: syntax.Call, script: Script) -> Iterator[Finding]:
    """What the items of a loader cost, where their dataset stands in a file that is not asked for."""
    read = loader(script, call)
    made_of = read.origins if read is not None else ()
    inner = (inner for each in made_of if _is_first_of(script, call, each) for inner in datasets.wrapped(each, script))
    for origin in (*made_of, *inner):
        place = origin.definition.script if origin.definition is not None else origin.script
        if script.is_reported(place):
            continue
        if origin.definition is None:
            found = list(_converted(origin.node, place)) if isinstance(origin.node, syntax.Call) else []
        else:
            item = place.roles.calls.method(origin.definition, "__getitem__")
            if item is None or not isinstance(item.node, syntax.FunctionDef) or script.is_reported(item.script):
                continue
            found = list(_of_item(item.node, item.script))
        for each in found:
            related = (Related(place.source, each.node, "here"), *each.related)
            message = f"{each.message} ({place.path.name}:{place.source.line(each.node)})"
            yield Finding(call, message, advice=each.advice, level=each.level, related=related, worth=each.worth)
            return


def _is_first_of(script: Script, call: syntax.Call, origin: datasets.Origin) -> bool:
    """Whether no loader further up in the file reads a dataset of the same class."""
    for other in script.written_calls(last_name(call.func) or ""):
        if other is call:
            return True
        read = loader(script, other)
        if read is not None and any(each.definition == origin.definition for each in read.origins):
            return False
    return True


def _of_item(function: syntax.FunctionDef, script: Script) -> Iterator[Finding]:
    if function.name.value != "__getitem__" or not item_work.may_be_item(script, function):
        return
    run = item_work.reading(script, function)
    works = item_work.found(run)
    if works and not item_work.keeps(run) and item_work.is_trained_on(script, function):
        yield _finding(function, works)


def _finding(function: syntax.FunctionDef, works: list[Work]) -> Finding:
    first = works[0]
    can_map = first.kind is Kind.WHOLE and first.script.is_call_to(first.node, "numpy.load")
    cure = _CURES[first.kind] + (", or open it with `mmap_mode`" if can_map else "")
    advice = f"{cure}; not written: where the result is kept is for you to choose"
    related = tuple(Related(work.script.source, work.node, _short(work)) for work in works[:3])
    level = Level.WARNING if first.kind in HEAVY else Level.NOTE
    return Finding(function.name, _SAYS[first.kind].format(_text(first)), advice=advice, level=level, related=related)


def _short(work: Work) -> str:
    return f"this {work.kind.value}"


def _text(work: Work) -> str:
    where, node = work.shown
    return where.first_line(node).removesuffix(":")


RULE = Rule(
    "SPD209",
    on=(syntax.FunctionDef, syntax.Call),
    check=check,
    triggers=(b"__getitem__", b"MNIST(", b"CIFAR10", b"SVHN(", b"USPS(", b"Loader"),
    worth=Estimate(Worth.HIGH, "the same work is done again for each item in each epoch"),
)
