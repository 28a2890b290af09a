"""Public data sets: how their names are written, torchvision's classes of them, what an item is, how long a pass takes."""

from __future__ import annotations

import enum
import re
from typing import NamedTuple


class Item(enum.Enum):
    """What one item of a data set is, where it matters how large it is and what reading it costs."""

    DIGIT = enum.auto()
    """A grey image of 28 by 28 pixels or less, held in memory."""
    THUMBNAIL = enum.auto()
    """An image of 32 by 32 pixels or less, held in memory."""
    IMAGE = enum.auto()
    """An image in a file, decoded when it is read."""
    RECORDING = enum.auto()
    """Some seconds of sound in a file, a few hundred KB: a network goes over each of their samples, or of their frames."""
    TEXT = enum.auto()
    """A row of tokens, some KB."""


class Public(NamedTuple):
    """A public data set.

    Attributes:
        written: the pattern that its name follows in the names of files, folders, classes and options.
        is_large: whether a pass over it takes minutes: tens of thousands of images or recordings.
        is_tiny: whether it is some five to a hundred images, which only evaluations read.
        classes: torchvision's, by the last name.
    """

    written: str
    item: Item = Item.IMAGE
    is_large: bool = False
    is_tiny: bool = False
    classes: str = ""


_ALL = (
    Public("MNIST", Item.DIGIT, classes="MNIST FashionMNIST KMNIST EMNIST QMNIST"),
    Public("USPS", Item.DIGIT, classes="USPS"),
    Public("CIFAR", Item.THUMBNAIL, classes="CIFAR10 CIFAR100"),
    Public("SVHN", Item.THUMBNAIL, classes="SVHN"),
    Public("flower", classes="Flowers102"),
    Public("hymenoptera"),
    Public("caltech", classes="Caltech101 Caltech256"),
    Public("oxford", classes="OxfordIIITPet"),
    Public(r"cub[-_]?200"),
    Public(r"stl-?10"),
    Public(r"(?<!mini)(?<!mini[-_ ])(?:imagenet(?!te)|image-net)|ilsvrc|imnet", is_large=True, classes="ImageNet"),
    Public(r"(?<![a-z])(?:ms)?coco(?![a-z])", is_large=True, classes="CocoDetection CocoCaptions"),
    Public("places365", is_large=True, classes="Places365"),
    Public("openimages|kinetics|edges2(?:shoes|handbags)|ms1m|webface|vggface", is_large=True),
    Public("lsun", is_large=True, classes="LSUN"),
    Public("celeba", is_large=True, classes="CelebA"),
    Public("cityscapes", is_large=True, classes="Cityscapes"),
    Public(r"ade[-_]?20k", is_large=True),
    Public("librispeech|libritts|ljspeech|lj-speech|vctk|wsj0|(?<![a-z])wham(?!m)", Item.RECORDING, is_large=True),
    Public(r"wiki-?text|imdb(?![-_]?wiki)|ag[-_]?news|squad", Item.TEXT),
    Public("dns[-_]?(?:challenge|dataset)", Item.RECORDING, is_large=True),
    Public("inaturalist", is_large=True, classes="INaturalist"),
    Public("food-?101", is_large=True, classes="Food101"),
    Public("stanford[-_]?cars", classes="StanfordCars"),
    Public(r"(?<![a-z])set[-_]?(?:5|12|14)(?!\d)|c?bsds?[-_]?(?:68|100)(?!\d)|urban[-_]?100|manga[-_]?109", is_tiny=True),
    Public("widerface", classes="WIDERFace"),
    Public("voc-?20(?:07|12)", classes="VOCDetection VOCSegmentation SBDataset"),
)
_FOLDERS = ("ImageFolder", "DatasetFolder")
"""Classes of torchvision's that read images of one's own."""


def classes(*items: Item) -> frozenset[str]:
    """The full names of torchvision's datasets of some kinds of items."""
    names = [name for each in _ALL if each.item in items for name in each.classes.split()]
    return frozenset(f"torchvision.datasets.{name}" for name in (*names, *(_FOLDERS if Item.IMAGE in items else ())))


def marks(*items: Item) -> re.Pattern[bytes]:
    """What the text of a program holds that names a data set of some kinds of items."""
    return re.compile("|".join(each.written for each in _ALL if each.item in items).encode())


def named(text: str) -> Public | None:
    """The public data set that a text names, a small one if it names several; None where it names none."""
    found = [each for each in _ALL if re.search(each.written, text, re.IGNORECASE)]
    return min(found, key=lambda each: each.is_large, default=None)


ROWS = {
    f"torchvision.datasets.{name}": rows
    for rows, names in (
        (60_000, "MNIST FashionMNIST KMNIST QMNIST"),
        (50_000, "CIFAR10 CIFAR100"),
        (73_257, "SVHN"),
        (1_281_167, "ImageNet"),
    )
    for name in names.split()
}
"""How many items the data sets have that are trained on, as torchvision's documentation says."""
