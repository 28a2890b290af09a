"""What keeps worker processes from being proved to read the same items: SPD201 and SPD203 are written on a proof alone."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from speedlint.ask.program import Program
from speedlint.ask.script import Options
from speedlint.facts import syntax
from speedlint.shapes.data import apart
from speedlint.shapes.data.loaders import loader

BEGIN = """
import collections
import contextlib
import functools
import itertools
import logging
import operator
import os
import random
import re
import shelve
import struct
import sys
import threading
import warnings
from collections import namedtuple
from pathlib import Path
from unittest import mock

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, TensorDataset, WeightedRandomSampler, get_worker_info
from torchvision import transforms

SEEN = {"items": 0}
LIMITS = [1, 2, 3]
MARK = object()
CHANNEL = logging.getLogger("rows")
Record = namedtuple("Sample", "x y")


def short(x):
    return x[:1]


SHORT = short


def short(x):
    return x


@functools.lru_cache
def windows(n):
    return torch.ones(n)


def hits():
    return windows.cache_info().hits
"""
END = """

def main(argv):
    rows = [Path(name) for name in sorted(argv)]
    weights = torch.ones(len(rows))
    made = DataLoader(ITEMS(rows), batch_size=8, num_workers=2MORE)
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for x in made:
            loss = model(x).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        AFTER


if __name__ == "__main__":
    main(["a", "b"])
"""
READS = """
class Items(Dataset):
    def __init__(self, rows, transform=None):
        self.rows, self.transform = rows, transform

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        image = np.load(self.rows[index])
        image[image > 1] = 1
        return self.transform(image) if self.transform else torch.from_numpy(image)
"""


def _items(init: str, item: str, before: str = "") -> str:
    lines = textwrap.indent(textwrap.dedent(item).strip(), "        ")
    return (
        f"{before}\n\nclass Items(Dataset):\n    def __init__(self, rows):\n        self.rows = rows\n        {init}\n\n"
        f"    def __len__(self):\n        return len(self.rows)\n\n    def __getitem__(self, index):\n{lines}\n"
    )


def _reason(
    folder: Path, items: str, *, made: str = "Items", more: str = "", after: str = "pass", sent: bool = True
) -> str | None:
    end = END.replace("ITEMS", made, 1).replace("MORE", more).replace("AFTER", after)
    (folder / "train.py").write_text(BEGIN + items + end)
    script = Program(Options()).script(folder / "train.py")
    found = next(each for call in script.source.of(syntax.Call) if (each := loader(script, call)) is not None)
    return apart.unproven(found.reading, are_sent=sent)


PROVEN = {
    "files and a change of what was just read": READS,
    "a module's constant": _items("pass", "return torch.tensor(LIMITS[index])"),
    "a method of its own": READS.replace("np.load(self.rows[index])", "self.read(index)")
    + "\n    def read(self, index):\n        return np.load(self.rows[index])\n",
    "a generator used at once": _items(
        "self.x = torch.randn(9, 4, generator=torch.Generator().manual_seed(0))", "return self.x[index] + 1"
    ),
    "a copy that is changed": _items("self.x = torch.zeros(9, 4)", "x = self.x[index].clone()\nx += 1\nreturn x"),
    "what a comprehension of two loops makes": _items(
        "self.words = [word for group in (['a', 'b'], ['c']) for word in group]",
        "return torch.tensor(len(self.words[index]))",
    ),
    "random numbers of the process": _items("pass", "return torch.rand(4) * random.random()"),
    "an entry of what is made for the item": _items(
        "self.x = np.zeros((9, 4))", "x = {'x': self.x[index].astype('f4'), 'row': self.x[0]}\nx['x'] -= 1\nreturn x['x']"
    ),
    "a count by words": _items("self.n = collections.defaultdict(int)", "return torch.tensor(self.n[index])"),
    "one array of a file": _items("self.x = np.load('rows.npz')['x']", "return torch.from_numpy(self.x[index])"),
    "an array of a file": _items("self.x = np.load('rows.npy')", "return torch.from_numpy(self.x[index])"),
    "words of a line": _items("self.lines = ['a b']", "x = self.lines[0].split()\nx.append('c')\nreturn len(x)"),
}


@pytest.mark.parametrize("items", PROVEN.values(), ids=PROVEN.keys())
def test_what_is_read_the_same_in_workers(items: str, tmp_path: Path) -> None:
    assert _reason(tmp_path, items) is None
    assert _reason(tmp_path, items, sent=False) is None


BUILD = """

def build(rows):
    return Items(rows, transforms.Compose([transforms.ToTensor(), Scaled(2)]))


class Scaled:
    def __init__(self, by):
        self.by = by

    def __call__(self, x):
        return x * self.by
"""


def test_a_transform_is_looked_into(tmp_path: Path) -> None:
    counting = BUILD.replace("return x *", "self.by += 1\n        return x *")
    assert _reason(tmp_path, READS + BUILD, made="build") is None
    assert "`self.by += 1` in what reads the items" in (_reason(tmp_path, READS + counting, made="build") or "")


OPT = "OPT = torch.optim.SGD(torch.nn.Linear(1, 1).parameters(), lr=0.1)"
REFUSED = {
    "a class that a decorator puts another in the place of": (
        "\n\ndef doubled(cls):\n    class Double(cls):\n        pass\n\n    return Double\n\n\n@doubled" + READS,
        "what `doubled` makes of `Items`",
    ),
    "random numbers that are kept": (
        _items(
            "pass",
            "return noise(index)",
            "import functools\n\n\n@functools.cache\ndef noise(i):\n    return torch.randn(4)\n",
        ),
        "`noise` keeps what it has given",
    ),
    "a value of the context": (
        _items(
            "pass", "return torch.zeros(4) + LEVEL.get()", "import contextvars\n\nLEVEL = contextvars.ContextVar('level')\n"
        ),
        "has a value of its own in each process",
    ),
    "a deque that is turned": (
        _items("self.turns = deque([1, 2])", "self.turns.rotate(1)\nreturn torch.zeros(4)", "from collections import deque"),
        "`self.turns.rotate(1)`",
    ),
    "a leaf": (_items("self.x = torch.zeros(9, 4, requires_grad=True)", "return self.x[index]"), "may be trained"),
    "a global counter": (_items("pass", 'SEEN["items"] += 1\nreturn np.load(self.rows[index])'), '`SEEN["items"] += 1`'),
    "a list that grows": (
        _items("self.read = []", "self.read.append(index)\nreturn torch.zeros(4)"),
        "`self.read.append(index)`",
    ),
    "an entry that is changed": (_items("self.x = torch.zeros(9, 4)", "x = self.x[index]\nx += 1\nreturn x"), "`x += 1`"),
    "an entry that is changed in a helper": (
        _items("self.x = torch.zeros(9, 4)", "return scale(self.x[index])", "\n\ndef scale(x):\n    x *= 2\n    return x\n"),
        "`x *= 2`",
    ),
    "a global name": (_items("pass", "global SEEN\nSEEN = {}\nreturn torch.zeros(4)"), "`global SEEN`"),
    "a generator": (
        _items("self.draw = random.Random(0)", "return torch.tensor(self.draw.random())"),
        "would draw from a copy",
    ),
    "a generator of the module": (
        _items("pass", "return torch.tensor(DRAW.random(4))", "\nDRAW = np.random.default_rng(0)\n"),
        "would draw from a copy",
    ),
    "a row taken apart": (
        _items("self.x, self.y = torch.zeros(9, 4), rows", "x, y = self.x[index], self.y[index]\nx *= 2\nreturn x"),
        "`x *= 2`",
    ),
    "a class's own count": (_items("pass", "type(self).count += 1\nreturn torch.zeros(4)"), "`type(self).count += 1`"),
    "a library's change in place": (
        _items("self.n = np.zeros(9)", "np.add.at(self.n, index, 1)\nreturn torch.zeros(4)"),
        "`np.add.at(self.n, index, 1)`",
    ),
    "a generator that is bound": (
        _items(
            "self.draw = functools.partial(torch.randn, 4, generator=torch.Generator())",
            "return self.draw()",
            "import functools",
        ),
        "would draw from a copy",
    ),
    "gradients": (_items("pass", "return torch.zeros(4).requires_grad_(True)"), "`requires_grad_` in what reads"),
    "a property of another object": (
        _items(
            "self.store = Store()",
            "return torch.zeros(4) + self.store.gain",
            "class Store:\n    n = 0\n\n    @property\n    def gain(self):\n        self.n += 1\n        return self.n\n",
        ),
        "`self.n += 1`",
    ),
    "a name in a string": (_items("pass", "return getattr(self, 'load')(index)"), "`getattr` in what reads"),
    "an exception of its own": (
        _items("pass", "raise Broken(index)", "\n\nclass Broken(Exception):\n    pass\n"),
        "`Broken` reaches the training",
    ),
    "the worker it runs in": (
        _items("pass", "assert get_worker_info() is None\nreturn torch.zeros(4)"),
        "asks for its process",
    ),
    "a network": (
        _items("self.net = torch.nn.Linear(4, 4)", "return self.net(torch.zeros(4))"),
        "a network, runs in what reads the items",
    ),
    "a count as a block is entered": (
        _items(
            "pass",
            "with Count():\n    return torch.zeros(4)",
            "class Count:\n    n = 0\n\n    def __enter__(self):\n        Count.n += 1\n\n"
            "    def __exit__(self, *_):\n        pass",
        ),
        "`Count.n += 1`",
    ),
    "a method that is overridden": (
        READS.replace("class Items", "class Base").replace("image[image > 1] = 1", "self.note(index)")
        + "\n    def note(self, index):\n        pass\n\n\nclass Items(Base):\n    seen = []\n\n"
        "    def note(self, index):\n        self.seen.append(index)\n",
        "`self.seen.append(index)`",
    ),
    "an entry of a dict that the dataset's array is": (
        _items("self.x = np.zeros((9, 4))", "x = {'x': self.x[index]}\nx['x'] -= 1\nreturn x['x']"),
        "`x['x'] -= 1`",
    ),
    "an entry that is put into a dict": (
        _items("self.x = np.zeros((9, 4))", "x = {}\nx['x'] = self.x[index]\nx['x'] -= 1\nreturn x['x']"),
        "`x['x'] -= 1`",
    ),
    "an entry of a copy of a dict": (
        _items("self.x = [{'x': np.zeros(4)}]", "x = self.x[index].copy()\nx['x'] -= 1\nreturn x['x']"),
        "`x['x'] -= 1`",
    ),
    "an array that is turned": (
        _items("self.x = np.zeros((9, 4, 4))", "x = np.rot90(self.x[index])\nx -= 1\nreturn x"),
        "`x -= 1`",
    ),
    "a part of a tensor that is cut": (
        _items("self.x = torch.zeros(9, 4)", "x, y = self.x[index].split(2)\nx += 1\nreturn x"),
        "`x += 1`",
    ),
    "an array that is not copied": (
        _items("self.x = np.zeros((9, 4), 'f4')", "x = self.x[index].astype('f4', copy=False)\nx -= 1\nreturn x"),
        "`x -= 1`",
    ),
    "a network's weight": (
        _items("pass", "return NORM.bias.detach()", "NORM = torch.nn.BatchNorm1d(4)"),
        "is part of a network",
    ),
    "what an optimizer holds": (
        _items("pass", "return torch.zeros(4) * OPT.param_groups[0]['lr']", OPT),
        "is part of a network",
    ),
    "a seed of its process": (
        _items("pass", "return torch.zeros(4) + torch.initial_seed() % 7"),
        "asks for its process",
    ),
    "words that are counted as they are read": (
        _items("self.n = collections.defaultdict(itertools.count().__next__)", "return torch.tensor(self.n[index])"),
        "adds to a copy of it in each worker",
    ),
    "what is not seen": (
        _items("pass", "return helper(self.rows[index])").replace(
            "class Items", "from elsewhere import helper\n\n\nclass Items"
        ),
        "is not known",
    ),
}


@pytest.mark.parametrize(("items", "why"), REFUSED.values(), ids=REFUSED.keys())
def test_what_workers_may_read_otherwise(items: str, why: str, tmp_path: Path) -> None:
    assert why in (_reason(tmp_path, items, sent=False) or "")


NOT_SENT = {
    "a lambda": ("self.f = lambda x: x", "return self.f(torch.zeros(4))", "a lambda cannot be sent"),
    "a lock": ("self.lock = threading.Lock()", "return torch.zeros(4)", "belongs to one process"),
    "open files in a list": ("self.files = [open(row) for row in rows]", "return torch.zeros(4)", "belongs to one process"),
    "a view of a dict": ("self.names = {'a': 1}.keys()", "return torch.zeros(4)", "cannot be sent"),
    "a compiled format": ("self.f = struct.Struct('4f')", "return torch.zeros(self.f.size)", "belongs to one process"),
    "a shelf": ("self.f = shelve.open('rows')", "return torch.zeros(4)", "belongs to one process"),
    "a descriptor": ("self.f = os.open('rows', os.O_RDONLY)", "return torch.zeros(4)", "belongs to one process"),
    "a method of numpy's generator": ("self.f = np.random.normal", "return torch.zeros(4) + self.f()", "with the generator"),
    "what is told as items are read": ("pass", "print(index)\nreturn torch.zeros(4)", "tells it elsewhere"),
    "a generator that it gives": ("pass", "return (x for x in self.rows)", "no worker can send"),
    "a view that it gives": ("pass", "return {'x': 1}.values()", "a view of a dict"),
    "a tensor's attribute": ("pass", "x = torch.zeros(4)\nx.row = index\nreturn x", "an attribute of a tensor"),
    "a mark of its own": ("pass", "return MARK, torch.zeros(4)", "belongs to one process"),
    "a record under another name": ("pass", "return Record(1, 2)", "under the name `Sample`"),
    "a module": ("self.lib = np", "return torch.zeros(4)", "`np` cannot be sent"),
    "a part of a library": ("self.f = torch.nn.functional", "return torch.zeros(4)", "cannot be sent"),
    "a match": ("self.head = re.match('a', 'a')", "return torch.zeros(4)", "cannot be sent to workers, or belongs to one"),
    "standard output": ("self.out = sys.stdout", "return torch.zeros(4)", "`sys.stdout` cannot be sent"),
    "a log under another name": ("pass", "CHANNEL.warning('row')\nreturn torch.zeros(4)", "tells it elsewhere"),
    "a function whose name is given away": ("self.f = SHORT", "return self.f(torch.zeros(4))", "another meaning later"),
    "a cache that the training asks for its hits": ("pass", "return windows(4)", "may ask what `windows` keeps"),
    "an archive": ("self.x = np.load('rows.npz')", "return torch.from_numpy(self.x[f'x{index}'])", "may be an open file"),
    "a file that the first item writes": (
        "pass",
        "if not os.path.exists('x.npy'):\n    np.save('x.npy', np.zeros(4))\nreturn np.load('x.npy')",
        "writes a file",
    ),
    "an iterator": ("self.turns = zip(rows, rows)", "return torch.zeros(4)", "belongs to one process"),
}


@pytest.mark.parametrize(("init", "item", "why"), NOT_SENT.values(), ids=NOT_SENT.keys())
def test_what_cannot_be_sent_matters_to_new_workers_only(init: str, item: str, why: str, tmp_path: Path) -> None:
    assert why in (_reason(tmp_path, _items(init, item)) or "")
    assert _reason(tmp_path, _items(init, item), sent=False) is None


SCALED = _items(
    "self.gain = GAIN",
    "return torch.zeros(4) + self.gain.by",
    "class Gain:\n    def __init__(self):\n        self.by = 1.0\n\n\nGAIN = Gain()",
)
TABLE = "TABLE = torch.zeros(9, 4)"
CHANGED = {
    "an attribute": (READS, "made.dataset.rows = rows[epoch:]"),
    "an entry under another name": (READS, "rows[0] = rows[epoch]"),
    "an attribute by its name": (READS, "setattr(made.dataset, 'rows', rows[epoch:])"),
    "globals by names": (
        _items("pass", "return torch.zeros(4) + SCALE", "SCALE = 1.0"),
        "globals().update({'SCALE': epoch})",
    ),
    "variables of this module by names": (
        _items("pass", "return torch.zeros(4) + SCALE", "SCALE = 1.0"),
        "[setattr(sys.modules[__name__], name, epoch) for name in ('SCALE',)]",
    ),
    "a variable of the module by its table": (
        _items("pass", "return torch.zeros(4) + SCALE", "SCALE = 1.0"),
        "sys.modules[__name__].__dict__.update(SCALE=epoch)",
    ),
    "variables of a module that is looked up": (
        _items("pass", "return torch.zeros(4) + SCALE", "SCALE = 1.0"),
        "here = sys.modules[__name__]; [setattr(here, name, epoch) for name in ('SCALE',)]",
    ),
    "the environment by a method": (
        _items("pass", "return torch.zeros(4) + float(os.environ['LEVEL'])"),
        "os.environ.update(LEVEL=str(epoch))",
    ),
    "an attribute of a function": (
        _items("pass", "return torch.zeros(4) + scale()", "def scale():\n    return scale.by\n\n\nscale.by = 1.0"),
        "scale.by = epoch",
    ),
    "an array that shares a tensor's memory": (
        _items("self.x = TABLE", "return self.x[index]", TABLE),
        "TABLE.numpy()[:] = 1",
    ),
    "an array that is none of its own": (
        _items("self.x = TABLE", "return self.x[index]", TABLE),
        "np.asarray(TABLE)[:] = 1",
    ),
    "one of some tensors": (_items("self.x = TABLE", "return self.x[index]", TABLE), "torch._foreach_add_([TABLE], 1)"),
    "an attribute, by its class": (SCALED, "Gain.__setattr__(GAIN, 'by', epoch)"),
    "an entry of the globals": (
        _items("pass", "return torch.zeros(4) + SCALE", "SCALE = 1.0"),
        "globals()['SCALE'] = epoch",
    ),
    "a global by its module": (
        _items("pass", "return torch.zeros(4) + SCALE", "SCALE = 1.0"),
        "setattr(sys.modules[__name__], 'SCALE', epoch)",
    ),
    "a line in a string": (_items("pass", "return torch.zeros(4) + SCALE", "SCALE = 1.0"), "exec('SCALE = 2', globals())"),
    "a name that a loop binds": (
        _items(
            "pass",
            "return torch.zeros(4) + turn",
            "turn = 0\n\n\ndef turned():\n    global turn\n    for turn in range(2):\n        pass",
        ),
        "turned()",
    ),
    "an array that takes a result": (
        _items("self.gain = np.ones(9)", "return torch.zeros(4) + self.gain[index]"),
        "np.multiply(made.dataset.gain, 2, made.dataset.gain)",
    ),
    "an attribute that is patched": (READS, "mock.patch.object(made.dataset, 'rows', []).start()"),
    "attributes by names": (READS, "for name in ('rows',): setattr(made.dataset, name, rows[epoch:])"),
    "the environment": (
        _items("pass", "return torch.zeros(4) + int(os.environ['LEVEL'])"),
        "os.environ['LEVEL'] = str(epoch)",
    ),
    "a tensor that is trained": (
        _items("self.table = TABLE", "return self.table.detach()[index]", "TABLE = torch.zeros(9, 4)"),
        "torch.optim.SGD([TABLE], lr=1.0)",
    ),
    "an attribute in a dict of them": (SCALED, "vars(GAIN)['by'] = epoch"),
    "attributes in a dict of them": (SCALED, "vars(GAIN).update(by=epoch)"),
    "an attribute, by the class of all": (SCALED, "object.__setattr__(GAIN, 'by', epoch)"),
    "an argument that is bound": (
        _items("self.f = PART", "return self.f(self.rows[index])", "PART = functools.partial(np.full, 4, fill_value=0.0)"),
        "PART.keywords['fill_value'] = epoch",
    ),
    "an entry, by the class": (_items("pass", "return torch.tensor(LIMITS[index])"), "list.append(LIMITS, epoch)"),
    "an operator's function": (_items("pass", "return torch.tensor(LIMITS[index])"), "operator.iadd(LIMITS, [epoch])"),
    "an array that a function rewrites": (
        _items("self.x = np.zeros(9)", "return torch.tensor(self.x[index])"),
        "np.nan_to_num(made.dataset.x, copy=False)",
    ),
    "an array called values": (
        _items("self.values = np.zeros(9)", "return torch.tensor(self.values[index])"),
        "made.dataset.values[0] = epoch",
    ),
    "a list that is shuffled": (READS, "random.shuffle(rows)"),
    "an entry of the module's": (_items("pass", "return torch.tensor(LIMITS[index])"), "LIMITS[0] = epoch"),
    "a number of the module's": (
        _items("pass", "return torch.zeros(4) + SCALE", "SCALE = 1.0\n\n\ndef put(x):\n    global SCALE\n    SCALE = x"),
        "put(epoch)",
    ),
    "rows that a generator shuffles": (READS, "np.random.default_rng(0).shuffle(rows)"),
    "rows that a loop goes over": (READS, "for i, row in enumerate(rows): row[0] = epoch"),
    "rows that a function gives": (
        _items("pass", "return torch.tensor(LIMITS[index])", "def limits():\n    return LIMITS"),
        "found = limits(); found[0] = epoch",
    ),
    "a tensor called data": (
        _items("self.data = torch.zeros(9, 4)", "return self.data[index]"),
        "made.dataset.data[0] = epoch",
    ),
    "a function that a function calls": (
        _items(
            "pass",
            "return torch.tensor(LIMITS[index])",
            "def put(x):\n    LIMITS[0] = x\n\n\ndef second(x):\n    put(x)",
        ),
        "second(epoch)",
    ),
}


@pytest.mark.parametrize(("items", "after"), CHANGED.values(), ids=CHANGED.keys())
def test_what_changes_between_epochs(items: str, after: str, tmp_path: Path) -> None:
    assert "may change while workers hold a copy" in (_reason(tmp_path, items, after=after, sent=False) or "")
    assert _reason(tmp_path, items, after="print(epoch)", sent=False) is None


def test_what_a_function_has_kept_and_the_training_clears(tmp_path: Path) -> None:
    kept = "@functools.lru_cache\ndef kept(i):\n    return int(Path('n').read_text())"
    items = _items("pass", "return torch.tensor(kept(index))", kept)
    assert _reason(tmp_path, items, sent=False) is None
    assert "keep what `kept` has given" in (_reason(tmp_path, items, after="kept.cache_clear()", sent=False) or "")


def test_indices_of_a_subset_that_grow(tmp_path: Path) -> None:
    build = READS + "\n\ndef build(rows):\n    return torch.utils.data.Subset(Items(rows), [0, 1])\n"
    assert _reason(tmp_path, build, made="build", after="print(made.dataset.indices)", sent=False) is None
    for change in ("made.dataset.indices.append(epoch)", "made.dataset.indices = [epoch]"):
        assert "may change while" in (_reason(tmp_path, build, made="build", after=change, sent=False) or "")


def test_a_module_that_is_changed_from_outside(tmp_path: Path) -> None:
    items = _items("pass", "return torch.zeros(4) + noise.level()", "import noise")
    (tmp_path / "noise.py").write_text("LEVEL = 0.0\n\n\ndef level():\n    return LEVEL\n")
    assert _reason(tmp_path, items, sent=False) is None
    assert "`noise.LEVEL` may change" in (_reason(tmp_path, items, after="noise.LEVEL = epoch", sent=False) or "")


def test_an_object_of_another_file_that_a_helper_changes(tmp_path: Path) -> None:
    top = "from options import chosen\n\n\ndef wider(options):\n    crops = options.crops\n    crops += [2 * crops[-1]]\n"
    items = _items("pass", "return torch.zeros(4) + chosen.crops[-1]", top)
    (tmp_path / "options.py").write_text(
        "class Options:\n    def __init__(self):\n        self.crops = [1.0]\n\n\nchosen = Options()\n"
    )
    assert _reason(tmp_path, items, sent=False) is None
    assert "may change while" in (_reason(tmp_path, items, after="wider(chosen)", sent=False) or "")


def test_a_sampler_whose_size_grows(tmp_path: Path) -> None:
    sampler = """

class Batches:
    def __init__(self, n):
        self.n, self.size = n, 4

    def __iter__(self):
        start = 0
        while start < self.n:
            yield list(range(start, start + self.size))
            start += self.size


BATCHES = Batches(9)
"""
    more = ", batch_sampler=BATCHES"
    assert _reason(tmp_path, READS + sampler, more=more) is None
    assert "`BATCHES.size` may change" in (_reason(tmp_path, READS + sampler, more=more, after="BATCHES.size += 1") or "")


def test_a_pass_that_is_seeded_anew(tmp_path: Path) -> None:
    draws = _items("pass", "return torch.rand(4)")
    assert _reason(tmp_path, READS, after="torch.manual_seed(0)", sent=False) is None
    assert "seeds each pass" in (_reason(tmp_path, draws, after="torch.manual_seed(0)", sent=False) or "")
    assert _reason(tmp_path, draws, after="torch.manual_seed(0)") is None
    assert "seeds each pass" in (_reason(tmp_path, draws, after="np.random.seed(0)") or "")


def test_a_file_that_is_written_between_steps(tmp_path: Path) -> None:
    items = _items("self.state = 'level.txt'", "return torch.zeros(4) + float(Path(self.state).read_text())")
    step = "            optimizer.step()\n"
    (tmp_path / "train.py").write_text("")
    assert _reason(tmp_path, items) is None
    end = END.replace(step, step + "            Path(made.dataset.state).write_text(str(epoch))\n")
    assert end != END
    (tmp_path / "train.py").write_text(
        BEGIN + items + end.replace("ITEMS", "Items", 1).replace("MORE", "").replace("AFTER", "pass")
    )
    script = Program(Options()).script(tmp_path / "train.py")
    found = next(each for call in script.source.of(syntax.Call) if (each := loader(script, call)) is not None)
    assert "the file Path(made.dataset.state)" in (apart.unproven(found.reading, are_sent=True) or "")


@pytest.mark.parametrize(("said", "is_read"), [("UPDATE rows SET x = 1", True), ("SELECT x FROM rows", False)])
def test_a_database_that_is_changed_between_steps(said: str, is_read: bool, tmp_path: Path) -> None:
    items = _items("pass", "return torch.tensor(sqlite3.connect('rows.db').execute('SELECT x FROM rows').fetchone())")
    changed = END.replace("optimizer.step()", f"optimizer.step()\n            rows_of.execute({said!r})")
    changed = changed.replace("    made =", "    rows_of = sqlite3.connect('rows.db')\n    made =", 1)
    begin = BEGIN.replace("import struct\n", "import sqlite3\nimport struct\n")
    text = begin + items + changed.replace("ITEMS", "Items", 1).replace("MORE", "").replace("AFTER", "pass")
    (tmp_path / "train.py").write_text(text)
    script = Program(Options()).script(tmp_path / "train.py")
    found = next(each for call in script.source.of(syntax.Call) if (each := loader(script, call)) is not None)
    assert ("UPDATE" in (apart.unproven(found.reading, are_sent=True) or "")) is is_read


def test_a_file_whose_name_is_written_out_in_both_places(tmp_path: Path) -> None:
    end = END
    items = _items("pass", "return torch.zeros(4) + float(np.load('mean.npy'))")
    step = "            optimizer.step()\n"
    for path, is_read in (("mean.npy", True), ("other.npy", False)):
        changed = end.replace(step, f"{step}            np.save('{path}', epoch)\n").replace("ITEMS", "Items", 1)
        (tmp_path / "train.py").write_text(BEGIN + items + changed.replace("MORE", "").replace("AFTER", "pass"))
        script = Program(Options()).script(tmp_path / "train.py")
        found = next(each for call in script.source.of(syntax.Call) if (each := loader(script, call)) is not None)
        assert (apart.unproven(found.reading, are_sent=True) is not None) is is_read


@pytest.mark.parametrize(
    "line",
    [
        "warnings.simplefilter('error')",
        "np.seterr(all='raise')",
        "np.sinc = np.cos",
        "Items.gain = max",
        "sys.setrecursionlimit(10000)",
        "torch.serialization.add_safe_globals([Items])",
    ],
)
def test_what_main_sets_for_its_process(line: str, tmp_path: Path) -> None:
    items = _items("pass", "return torch.zeros(4) + np.sinc(self.gain(index, 1))")
    items += "\n    def gain(self, index, other):\n        return index\n\n\ndef prepare():\n    LINE\n"
    assert "workers that are spawned do not have it" in (_reason(tmp_path, items.replace("LINE", line)) or "")
    assert _reason(tmp_path, items.replace("LINE", "warnings.simplefilter('ignore')")) is None


def test_what_answers_signals_would_do_so_in_workers(tmp_path: Path) -> None:
    begin = "import signal\n\n\ndef stop(number, frame):\n    SEEN['stop'] = 1\n\n\n"
    begin += "def listen():\n    signal.signal(signal.SIGINT, WHAT)\n"
    assert "`stop` would answer signals" in (_reason(tmp_path, begin.replace("WHAT", "stop") + READS) or "")
    assert _reason(tmp_path, begin.replace("WHAT", "signal.SIG_DFL") + READS) is None


AT_THE_TOP = {
    "a random table": ("TABLE = torch.randn(4)", "would make `TABLE` anew"),
    "a table under a condition on the name": (
        "if __name__ == '__main__':\n    TABLE = torch.zeros(4)",
        "`TABLE` is set where",
    ),
    "a print": ("TABLE = torch.zeros(4)\nprint(TABLE)", "would run again in each worker"),
    "a last word": (
        "import atexit\nTABLE = torch.zeros(4)\n@atexit.register\ndef last():\n    print(TABLE)",
        "would run at the end of each worker",
    ),
    "a last word of a call": (
        "import atexit\nTABLE = torch.zeros(4)\natexit.register(print, TABLE)",
        "would run again in each worker",
    ),
    "a folder": ("TABLE = torch.zeros(4)\nos.mkdir('run')", "would run again in each worker"),
    "a log": ("TABLE = torch.zeros(4)\nLOG = open('log.txt', 'w')", "would run again in each worker"),
}


@pytest.mark.parametrize(("top", "why"), AT_THE_TOP.values(), ids=AT_THE_TOP.keys())
def test_what_spawned_workers_do_when_they_import(top: str, why: str, tmp_path: Path) -> None:
    items = _items("pass", "return TABLE * 2", top + "\n")
    assert why in (_reason(tmp_path, items) or "")
    assert _reason(tmp_path, items, sent=False) is None


@pytest.mark.parametrize(
    "top", ["TABLE = torch.zeros(4)", "TABLE = torch.randn(4, generator=torch.Generator().manual_seed(0))"]
)
def test_what_spawned_workers_import_the_same(top: str, tmp_path: Path) -> None:
    items = _items("pass", "return TABLE * 2", top + "\nos.makedirs('run', exist_ok=True)\nrandom.seed(0)\n")
    assert _reason(tmp_path, items) is None


def test_a_method_is_sent_with_its_object(tmp_path: Path) -> None:
    trainer = """

class Trainer:
    def __init__(self, log):
        self.scale = 2
        self.log = LOG

    def collate(self, items):
        return torch.stack(items) * self.scale


def build(rows):
    return Items(rows, Trainer("log.txt").collate)
"""
    assert _reason(tmp_path, READS + trainer.replace("LOG", "log"), made="build") is None
    held = READS + trainer.replace("LOG", "open(log)")
    assert "belongs to one process" in (_reason(tmp_path, held, made="build") or "")
    assert _reason(tmp_path, held, made="build", sent=False) is None
    learning = READS + trainer.replace("LOG", "torch.nn.Linear(4, 4)")
    assert "would be sent with `self.log`" in (_reason(tmp_path, learning, made="build") or "")


def test_weights_that_the_optimizer_changes(tmp_path: Path) -> None:
    held = _items("self.table = torch.nn.Linear(4, 4).weight.detach()", "return self.table[0]")
    assert "is part of a network" in (_reason(tmp_path, held, sent=False) or "")


def test_spawned_workers_import_the_module_anew(tmp_path: Path) -> None:
    items = _items("pass", "return torch.tensor(LIMITS[index])", "def prepare():\n    LIMITS[0] = 5\n\n\nprepare()")
    assert _reason(tmp_path, items, sent=False) is None
    assert "`LIMITS[0]` may change" in (_reason(tmp_path, items) or "")


def test_what_is_set_from_outside_is_sent_too(tmp_path: Path) -> None:
    items = READS + "\n\ndef build(rows):\n    made = Items(rows)\n    made.transform = lambda x: x\n    return made\n"
    assert "a lambda cannot be sent" in (_reason(tmp_path, items, made="build") or "")


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("options['rate'] = lambda epoch: 0.1", "a lambda cannot be sent"),
        ("options['log'] = open('log.txt', 'w')", "cannot be sent to workers"),
        ("options['log'] = Log('log.txt')", "cannot be sent to workers"),
        ("options['size'] = 3", None),
    ],
)
def test_what_is_put_into_what_is_sent(line: str, why: str | None, tmp_path: Path) -> None:
    items = _items("pass", "return torch.zeros(4) * self.rows['gain']")
    items += "\n\nclass Log:\n    def __init__(self, path):\n        self.file = open(path, 'w')\n"
    items += f"\n\ndef build(rows):\n    options = {{'gain': 2}}\n    {line}\n    return Items(options)\n"
    found = _reason(tmp_path, items, made="build")
    assert found is None if why is None else why in (found or "")
    assert _reason(tmp_path, items, made="build", sent=False) is None


def test_a_sampler_whose_weights_change_runs_ahead(tmp_path: Path) -> None:
    more = ", sampler=WeightedRandomSampler(weights, 8)"
    assert _reason(tmp_path, READS, more=more) is None
    assert "`weights[0]` may change" in (_reason(tmp_path, READS, more=more, after="weights[0] = loss.item()") or "")


def test_many_loaders_do_not_keep_their_workers(tmp_path: Path) -> None:
    client = """

class Client:
    def __init__(self, rows):
        self.loader = DataLoader(Items(rows), batch_size=4, num_workers=2)


def clients(rows):
    return [Client(each) for each in COUNT]
"""
    few = client.replace("COUNT", "(rows[:2], rows[2:])")
    assert "each of many loaders" in (_reason(tmp_path, READS + client.replace("COUNT", "rows"), sent=False) or "")
    assert _reason(tmp_path, READS + few, sent=False) is None


@pytest.mark.parametrize(
    "line", ["with ProcessPoolExecutor() as pool:\n    pool.map(main, [[]])", "torch.set_default_device('cuda')"]
)
def test_processes_and_defaults_of_the_program(line: str, tmp_path: Path) -> None:
    start = f"from concurrent.futures import ProcessPoolExecutor\n\n\ndef start():\n{textwrap.indent(line, '    ')}\n"
    if "Pool" not in line:
        start = start.partition("\n")[2]
    assert _reason(tmp_path, READS + "\n\n" + start) is not None


def test_a_helper_that_begins_the_loader_anew_within_its_loop(tmp_path: Path) -> None:
    helper = "\n\ndef first(batches):\n    return next(iter(batches))\n"
    step = "            optimizer.step()\n"
    for call, is_within in (("first(made)", True), ("print(epoch)", False)):
        end = END.replace(step, f"{step}            if x[0, 0] == 2:\n                {call}\n")
        text = BEGIN + READS + helper + end.replace("ITEMS", "Items", 1).replace("MORE", "").replace("AFTER", "pass")
        (tmp_path / "train.py").write_text(text)
        script = Program(Options()).script(tmp_path / "train.py")
        found = next(each for call in script.source.of(syntax.Call) if (each := loader(script, call)) is not None)
        assert found.is_read_within_itself is is_within


WITHIN = {
    "two iterators in one call": ("    for _ in zip(made, made):\n        pass\n", True),
    "an iterator that goes on": ("    held = iter(made)\n    for x in made:\n        print(next(held))\n", True),
    "an endless one": (
        "    held = endless(made)\n    for x in made:\n        print(next(held))\n",
        True,
    ),
    "two endless ones": ("    one, two = endless(made), endless(made)\n    print(next(one), next(two))\n", True),
    "a generator that goes on": (
        "    held = (x for x in made)\n    for x in made:\n        print(next(held))\n",
        True,
    ),
    "an iterator that has ended": (
        "    held = iter(made)\n    print(next(held))\n    for x in made:\n        pass\n",
        False,
    ),
    "one that is begun anew": (
        "    held = iter(made)\n    for step in range(99):\n        try:\n            x = next(held)\n"
        "        except StopIteration:\n            held = iter(made)\n            x = next(held)\n",
        False,
    ),
    "a lambda that is called within the loop": (
        "    hooks = {3: lambda: sum(x.mean() for x in made)}\n    for step, x in enumerate(made):\n        hooks[step]()\n",
        True,
    ),
    "a function that is bound to it": (
        "    tell = functools.partial(total, made)\n    for x in made:\n        tell()\n",
        True,
    ),
    "a function that is registered": (
        "    bus = [total]\n    for x in made:\n        bus[0](made)\n    total(made)\n",
        True,
    ),
    "a function that is called behind the loop": ("    for x in made:\n        pass\n    print(total(made))\n", False),
    "a generator that a loop goes over": (
        "    for x in endless(made):\n        pass\n    for x in made:\n        pass\n",
        False,
    ),
}


@pytest.mark.parametrize(("lines", "is_within"), WITHIN.values(), ids=WITHIN.keys())
def test_iterators_over_one_loader_that_are_read_in_turns(lines: str, is_within: bool, tmp_path: Path) -> None:
    """Where workers persist there is one iterator, which begins anew."""
    helpers = "def total(batches):\n    found = 0\n    for x in batches:\n        found += x.sum()\n    return found\n\n\n"
    begin = f"{helpers}def endless(batches):\n    while True:\n        yield from batches\n\n\ndef main(rows):\n"
    made = "    made = DataLoader(Items(rows), batch_size=8, num_workers=2)\n"
    (tmp_path / "train.py").write_text(f"{BEGIN}{READS}\n\n{begin}{made}{lines}\n\nmain([])\n")
    script = Program(Options()).script(tmp_path / "train.py")
    found = next(each for call in script.source.of(syntax.Call) if (each := loader(script, call)) is not None)
    assert found.is_read_within_itself is is_within


def test_a_loader_that_yields_in_its_own_way(tmp_path: Path) -> None:
    """Where workers persist, two iterators over one loader are one."""
    own = "yield from zip(super().__iter__(), super().__iter__())"
    pairs = f"\n\nclass Pairs(DataLoader):\n    def __iter__(self):\n        {own}\n"
    end = END.replace("DataLoader(", "Pairs(").replace("ITEMS", "Items", 1).replace("MORE", "").replace("AFTER", "pass")
    (tmp_path / "train.py").write_text(BEGIN + READS + pairs + end)
    script = Program(Options()).script(tmp_path / "train.py")
    found = next(each for call in script.source.of(syntax.Call) if (each := loader(script, call)) is not None)
    assert "`Pairs.__iter__`" in (found.changes_between_reads() or "")


KEPT = {
    "a list": ("kept.append(x)", True),
    "a list of pairs": ("kept.append((epoch, x.detach()))", True),
    "an entry": ("pairs[epoch] = x", True),
    "an object": ("Memory().keep(x=x)", True),
    "a part of each": ("kept.append(x[0])", True),
    "a copy": ("kept.append(x.clone())", False),
    "a number": ("kept.append(x.sum().item())", False),
    "what is computed": ("kept.append(model(x))", False),
    "what a function only reads": ("print_of(x)", False),
}


@pytest.mark.parametrize(("line", "is_kept"), KEPT.values(), ids=KEPT.keys())
def test_batches_that_a_loop_keeps(line: str, is_kept: bool, tmp_path: Path) -> None:
    """Each tensor that a worker has sent holds a file descriptor."""
    helper = (
        "\n\nclass Memory:\n    def keep(self, **tensors):\n        self.kept = tensors\n\n\n"
        "def print_of(x):\n    print(x.mean())\n\n\nkept, pairs = [], {}\n"
    )
    step = "            optimizer.step()\n"
    end = END.replace(step, f"{step}            {line}\n").replace(", num_workers=2", "")
    text = BEGIN + READS + helper + end.replace("ITEMS", "Items", 1).replace("MORE", "").replace("AFTER", "pass")
    (tmp_path / "train.py").write_text(text)
    script = Program(Options()).script(tmp_path / "train.py")
    found = next(each for call in script.source.of(syntax.Call) if (each := loader(script, call)) is not None)
    assert ("keeps its batches" in (found.worker_hazard() or "")) is is_kept


@pytest.mark.parametrize(
    ("collate", "size", "are_many"),
    [
        ("return tuple(zip(*rows))", 160, True),
        ("return rows", 64, True),
        ("x, y = zip(*rows)\n    return torch.stack(x), list(y)", 64, True),
        ("return [torch.as_tensor(x) for x, _ in rows]", 64, True),
        ("return tuple(zip(*rows))", 16, False),
        ("x, y = zip(*rows)\n    return torch.stack(x), torch.stack(y)", 160, False),
    ],
)
def test_batches_of_many_tensors(collate: str, size: int, are_many: bool, tmp_path: Path) -> None:
    """Each of them is an open file in the training process."""
    join = f"\n\ndef join(rows):\n    {collate}\n"
    end = END.replace("MORE", ", collate_fn=join").replace("ITEMS", "Items").replace("AFTER", "pass")
    (tmp_path / "train.py").write_text(BEGIN + READS + join + end.replace("batch_size=8", f"batch_size={size}"))
    script = Program(Options()).script(tmp_path / "train.py")
    found = next(each for call in script.source.of(syntax.Call) if (each := loader(script, call)) is not None)
    assert ("is an open file" in (found.worker_hazard() or "")) is are_many


def _begun(code: str) -> str:
    return (
        f"{_items('pass', 'return torch.rand(4) * random.random() * np.random.rand()')}\n\ndef begin(worker):\n    {code}\n"
    )


@pytest.mark.parametrize("sent", [True, False])
@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("random.seed(9 + worker)", "`random.seed(9 + worker)` seeds the workers of each pass alike"),
        ("np.random.seed(worker)", "`np.random.seed(worker)` seeds the workers of each pass alike"),
        ("torch.manual_seed(worker)", "`torch.manual_seed(worker)` seeds the workers of each pass alike"),
        ("np.random.seed(torch.initial_seed() % 2**32)", None),
        ("torch.set_num_threads(1)", None),
    ],
)
def test_how_workers_seed_themselves(tmp_path: Path, code: str, why: str | None, sent: bool) -> None:
    assert _reason(tmp_path, _begun(code), more=", worker_init_fn=begin", sent=sent) == why


def test_workers_that_seed_themselves_where_nothing_is_drawn(tmp_path: Path) -> None:
    items = f"{READS}\n\ndef begin(worker):\n    torch.manual_seed(worker)\n"
    assert _reason(tmp_path, items, more=", worker_init_fn=begin", sent=False) is None


READ_BY_HELPER = """
KEPT = []


def read(names):
    {begun}
    for name in names:
        rows.append(name)
    {then}
    return rows


class Items(Dataset):
    def __init__(self, rows):
        self.rows = read(rows)

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return torch.from_numpy(np.load(self.rows[index]))
"""


@pytest.mark.parametrize(
    ("begun", "then", "after", "is_proven"),
    [
        ("rows = []", "pass", "read(argv)", True),
        ("rows = list(names)", "rows += names", "read(argv)", True),
        ("rows = KEPT", "pass", "read(argv)", False),
        ("rows = [] if names else KEPT", "pass", "read(argv)", False),
        ("rows = []", "pass", "read(argv); KEPT.extend(argv)", True),
        ("rows = KEPT or []", "pass", "read(argv)", False),
        ("rows = [KEPT]", "rows[0].append(names)", "read(argv)", False),
        ("rows = []", "yield rows", "list(read(argv))", False),
        ("rows = []", "pass", "made.dataset.rows.extend(read(argv))", False),
    ],
)
def test_a_helper_that_begins_its_own_list_in_each_call(
    tmp_path: Path, begun: str, then: str, after: str, is_proven: bool
) -> None:
    reason = _reason(tmp_path, READ_BY_HELPER.format(begun=begun, then=then), after=after, sent=False)
    assert (reason is None) is is_proven, reason


SEEDED_BY_HELPER = """
def seeded(number):
    random.seed(number)
    np.random.seed(number)
"""


@pytest.mark.parametrize(
    ("code", "more", "is_proven"),
    [
        ("seeded(42 + worker)", ", worker_init_fn=begin", False),
        ("seeded(torch.initial_seed() % 2**32)", ", worker_init_fn=begin", True),
        ("seed = torch.initial_seed() % 2**32; seeded(seed)", ", worker_init_fn=begin", True),
        ("random.seed(torch.initial_seed()); np.random.seed(42 + worker)", ", worker_init_fn=begin", False),
        ("print(torch.initial_seed()); random.seed(worker)", ", worker_init_fn=begin", False),
        ("pass", ", worker_init_fn=np.random.seed", False),
        ("random.seed(worker)", ", worker_init_fn=partial(begin)", False),
        ("np.random.set_state(STATE)", ", worker_init_fn=begin", False),
        ("torch.utils.data.get_worker_info().dataset.rows.sort()", ", worker_init_fn=begin", False),
    ],
)
@pytest.mark.parametrize("sent", [True, False])
def test_seeds_of_workers_in_other_words(tmp_path: Path, code: str, more: str, is_proven: bool, sent: bool) -> None:
    items = f"from functools import partial\n\nSTATE = None\n{SEEDED_BY_HELPER}\n{_begun(code)}"
    assert (_reason(tmp_path, items, more=more, sent=sent) is None) is is_proven


MADE_BY_A_MANAGER = """
class Items(Dataset):
    def __init__(self, rows):
        self.rows = rows

    def __len__(self):
        return 64

    def __getitem__(self, index):
        return torch.zeros(4) + self.rows[0]


class Data:
    def __init__(self, rows):
        self.rows = rows

    def {enters}(self):
        self.made = DataLoader(Items(self.rows), batch_size=8, num_workers=2)
        return self

    def __exit__(self, *_):
        pass


def main(argv):
    rows = [0.0]
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    {begun}
    with contextlib.suppress(ValueError):
        for epoch in range(3):
            for x in data.made:
                model(x).mean().backward()
                optimizer.step()
            rows[0] = 1000.0 * epoch


if __name__ == "__main__":
    main(["a", "b"])
"""


@pytest.mark.parametrize(
    ("enters", "begun"), [("__enter__", "data = Data(rows).__enter__()"), ("__bool__", "data = Data(rows); print(not data)")]
)
def test_a_list_that_goes_to_what_is_made_out_of_sight(tmp_path: Path, enters: str, begun: str) -> None:
    (tmp_path / "train.py").write_text("import contextlib\n" + BEGIN + MADE_BY_A_MANAGER.format(enters=enters, begun=begun))
    script = Program(Options()).script(tmp_path / "train.py")
    found = next(each for call in script.source.of(syntax.Call) if (each := loader(script, call)) is not None)
    assert apart.unproven(found.reading, are_sent=False) is not None
