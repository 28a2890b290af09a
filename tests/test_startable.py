"""What a script would gain that ends before it trains, as it stands in its repository, is a note."""

from __future__ import annotations

import pytest

from tests.conftest import Project

TRAINS = """
import torch
from torch import nn
{imports}

model = nn.Sequential(nn.Conv2d(3, 256, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, 10)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
{before}


def train(loader):
    total = 0.0
    for images, labels in loader:
        loss = nn.functional.cross_entropy(model(images.cuda()), labels.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total


{starts}
"""
FACES = "def faces(folder):\n    return torch.load(folder)\n"
PACKAGE = {"shapes/__init__.py": ""}
SETS = "import shapes.squares as s\ns.Circle = 1"
STARTS = "for epoch in range(9):\n    print(train(torch.load('batches.pt')))"


def _told(project: Project, *, imports: str = "", before: str = "", starts: str = STARTS) -> str:
    project.configure("select = ['SPD301']\ntorch = '2.4'")
    path = project.write("train.py", TRAINS.format(imports=imports, before=before, starts=starts))
    (found,) = project.findings(path, "--notes")
    return str(found["level"])


def test_a_module_that_is_not_in_the_project_may_be_installed(project: Project) -> None:
    project.write("pictures.py", f"import torch\n\n\n{FACES}")
    assert _told(project, imports="from celebrities import faces") == "warning"


@pytest.mark.parametrize(
    ("imports", "others", "level"),
    [
        ("from shapes.circles import Circle", {"shapes/__init__.py": ""}, "note"),
        ("from shapes.circles import Circle", {"other.py": "from shapes.squares import Square"}, "note"),
        ("from shapes.circles import Circle", {}, "warning"),
        ("import shapes.round.circles as c", {"shapes/__init__.py": "", "shapes/round/arcs.py": ""}, "note"),
        ("from shapes.squares import Square", PACKAGE, "warning"),
        ("from shapes.circles import Circle", {**PACKAGE, "shapes/circles.pyx": ""}, "warning"),
        ("from shapes.circles import Circle", {**PACKAGE, "shapes/circles/__init__.py": ""}, "warning"),
        ("from shapes.circles import Circle", {**PACKAGE, "shapes/circles_template.py": ""}, "warning"),
        ("from shapes.circles import Circle", {**PACKAGE, ".gitignore": "shapes/circles.py"}, "warning"),
        ("from shapes.circles import Circle", {**PACKAGE, ".gitmodules": "path = shapes/circles"}, "warning"),
        ("from shapes.circles import Circle", {**PACKAGE, "setup.py": "Extension('shapes.circles', [])"}, "warning"),
        ("import sys\nsys.path.insert(0, argv)\nfrom shapes.circles import Circle", PACKAGE, "warning"),
        ("try:\n    from shapes.circles import Circle\nexcept ImportError:\n    Circle = None", PACKAGE, "warning"),
        ("if torch.cuda.device_count() > 1:\n    from shapes.circles import Circle", PACKAGE, "warning"),
        ("from shapes.shapes_pb2 import Circle", PACKAGE, "warning"),
        ("from pictures.circles import Circle", PACKAGE, "warning"),
        ("from shapes import circles", PACKAGE, "warning"),
    ],
)
def test_a_module_that_a_folder_of_the_project_lacks(
    project: Project, imports: str, others: dict[str, str], level: str
) -> None:
    project.write("shapes/squares.py", "class Square: ...\n")
    project.write("pictures/one.txt", "")
    for path, text in others.items():
        project.write(path, text)
    assert _told(project, imports=imports) == level


@pytest.mark.parametrize(
    ("imports", "others", "level"),
    [
        ("from shapes.squares import Circle", {}, "note"),
        ("from shapes.squares import Square as Circle", {}, "warning"),
        ("from squares import Circle", {"squares.py": "class Square: ...\n"}, "note"),
        ("from squares import Circle", {"squares.py": "class Square: ...\n", "other.py": "import train"}, "warning"),
        ("from squares import Circle", {"squares.py": "class Square: ...\n", "old/squares.py": "Circle = 1\n"}, "note"),
        ("from shapes import Circle", {"shapes/__init__.py": ""}, "warning"),
        ("from shapes.squares import Circle", {"shapes/squares.py": "from shapes.more import *\n"}, "warning"),
        ("from shapes.squares import Circle", {"shapes/squares.py": "def __getattr__(name): ...\n"}, "warning"),
        ("from shapes.squares import Circle", {"shapes/squares.py": "globals().update(made())\n"}, "warning"),
        ("from shapes.squares import Circle", {"shapes/squares.py": "if USES:\n    Circle = 1\n"}, "warning"),
        ("from shapes.squares import Circle", {"other.py": f"import train\n{SETS}"}, "warning"),
        ("from shapes.squares import Circle", {"shapes/__init__.py": SETS}, "warning"),
        ("from shapes.squares import Circle", {"shapes/squares/__init__.py": "Circle = 1"}, "warning"),
        ("from shapes.squares import Circle", {"shapes/squares.pyx": ""}, "warning"),
        ("from shapes.squares import __doc__ as Circle", {}, "warning"),
        ("from time import Circle", {"time.py": "from shapes.squares import Square"}, "warning"),
        ("import shapes.squares as s\nsetattr(s, 'Circle', 1)\nfrom shapes.squares import Circle", {}, "warning"),
        ("try:\n    from shapes.squares import Circle\nexcept ImportError:\n    Circle = None", {}, "warning"),
        ("if torch.cuda.device_count() > 1:\n    from shapes.squares import Circle", {}, "warning"),
    ],
)
def test_a_name_that_a_module_of_the_project_lacks(
    project: Project, imports: str, others: dict[str, str], level: str
) -> None:
    project.write("shapes/squares.py", "class Square: ...\n")
    for path, text in others.items():
        project.write(path, text)
    assert _told(project, imports=imports) == level


@pytest.mark.parametrize(
    ("before", "starts", "level"),
    [
        ("test_set = test_set.transpose(1, 3)", STARTS, "note"),
        ("", f"test_set = prepared(test_set)\n{STARTS}", "note"),
        ("if torch.cuda.device_count() > 1:\n    test_set = test_set.half()", STARTS, "warning"),
        ("", f"{STARTS}\nprint(test_set.shape)", "warning"),
        ("test_set = torch.load('test.pt')\ntest_set = test_set.transpose(1, 3)", STARTS, "warning"),
        ("for test_set in torch.load('tests.pt'):\n    test_set.mul_(2)", STARTS, "warning"),
        ("scaled = [test_set.half() for test_set in torch.load('tests.pt')]", STARTS, "warning"),
        ("from settings import *\ntest_set = test_set.transpose(1, 3)", STARTS, "warning"),
    ],
)
def test_a_name_that_nothing_has_bound_ends_what_comes_after_it(
    project: Project, before: str, starts: str, level: str
) -> None:
    assert _told(project, before=before, starts=starts) == level


@pytest.mark.parametrize(
    ("read", "starts", "level"),
    [
        ("total = 0.0", "", "warning"),
        ("total = 0.0 * config.scale", "", "note"),
        ("total = 0.0 * config.scale", f"config = torch.load('config.pt')\n{STARTS}", "warning"),
        ("total = 0.0 * config.scale", f"from settings import *\n{STARTS}", "warning"),
        ("total: config.Number = 0.0", STARTS, "warning"),
        ("total = 0.0\n    if len(loader) > 9000:\n        total *= config.scale", STARTS, "warning"),
        ("total = sum(0.0 for _ in xrange(3))", STARTS, "warning"),
        ("print(__class__.__name__)\n    total = 0.0", STARTS, "warning"),
    ],
)
def test_a_function_that_reads_what_nothing_binds_does_not_train(
    project: Project, read: str, starts: str, level: str
) -> None:
    project.configure("select = ['SPD301']\ntorch = '2.4'")
    text = TRAINS.format(imports="", before="", starts=starts).replace("total = 0.0", read)
    (found,) = project.findings(project.write("train.py", text), "--notes")
    assert found["level"] == level


def test_a_name_that_another_file_binds_in_a_module(project: Project) -> None:
    project.write(
        "main.py",
        "import train\n\ntrain.config = train.torch.load('config.pt')\nprint(train.train(train.torch.load('batches.pt')))",
    )
    project.configure("select = ['SPD301']\ntorch = '2.4'")
    text = TRAINS.format(imports="", before="", starts="").replace("total = 0.0", "total = 0.0 * config.scale")
    (found,) = project.findings(project.write("train.py", text), "--notes")
    assert found["level"] == "warning"


@pytest.mark.parametrize(
    ("before", "level"),
    [
        ("if torch.cuda.is_available():\n    net = Net()\nelse:\n    net = Net()", "note"),
        ("if torch.cuda.is_available():\n    net = Net()\nelse:\n    net = Net(3)", "warning"),
        ("if torch.cuda.is_available():\n    net = Net()", "warning"),
    ],
)
def test_an_error_on_each_way_ends_what_comes_after_it(project: Project, before: str, level: str) -> None:
    network = "class Net(nn.Module):\n    def __init__(self, size):\n        super().__init__()\n"
    assert _told(project, before=f"{network}{before}") == level


@pytest.mark.parametrize(
    ("loss", "level"),
    [
        ("torch.sum([model(images.cuda()).mean() for _ in range(3)])", "note"),
        ("torch.mean([model(images.cuda()).mean()])", "note"),
        ("sum([model(images.cuda()).mean() for _ in range(3)])", "warning"),
        ("torch.stack([model(images.cuda()).mean() for _ in range(3)]).sum()", "warning"),
        ("torch.mean(torch.stack([model(images.cuda()).mean()]))", "warning"),
    ],
)
def test_a_list_where_torch_takes_a_tensor_ends_the_first_step(project: Project, loss: str, level: str) -> None:
    project.configure("select = ['SPD301']\ntorch = '2.4'")
    written = "nn.functional.cross_entropy(model(images.cuda()), labels.cuda())"
    text = TRAINS.format(imports="", before="", starts=STARTS).replace(written, loss)
    (found,) = project.findings(project.write("train.py", text), "--notes")
    assert found["level"] == level


@pytest.mark.parametrize(
    ("loop", "level"),
    [
        ("for i in range(images.size(0)):\n            images[i] = copied[i]", "note"),
        ("for i in range(len(images)):\n            first = i\n            images[i] = copied[first]", "note"),
        ("for name in ['NA', 'none']:\n            if name in copied.names:\n                break", "note"),
        ("for i in range(extra):\n            images[i] = copied[i]", "warning"),
        ("for i in range(len(images)):\n            if i > 3:\n                images[i] = copied[i]", "warning"),
        ("for i in range(len(images)):\n            if i > 3: break\n            images[i] = copied[i]", "warning"),
        ("for i in range(3):\n            images[i] = copied[i]", "note"),
        ("for i in range(len(images)):\n            images[i] = extra and copied[i]", "warning"),
        ("for i in range(len(images)):\n            images[i] = copied[i] if extra else 0", "warning"),
        ("for name in names:\n            if name in copied.names:\n                break", "warning"),
        (
            "for i in range(len(images)):\n            try: images[i] = copied[i]\n            except NameError: pass",
            "warning",
        ),
    ],
)
def test_the_first_turn_of_a_loop_that_surely_has_one(project: Project, loop: str, level: str) -> None:
    project.configure("select = ['SPD301']\ntorch = '2.4'")
    text = TRAINS.format(imports="", before="extra, names = torch.load('extra.pt')", starts=STARTS)
    text = text.replace("        loss = nn", f"        images = images.cuda()\n        {loop}\n        loss = nn")
    (found,) = project.findings(project.write("train.py", text), "--notes")
    assert found["level"] == level


@pytest.mark.parametrize(("owner", "level"), [("self", "note"), ("module", "warning")])
def test_a_name_that_an_object_has_is_none_of_the_modules(project: Project, owner: str, level: str) -> None:
    project.configure("select = ['SPD301']\ntorch = '2.4'")
    sets = f"class Scale:\n    def put(self, module, config):\n        {owner}.config = config"
    text = TRAINS.format(imports="", before=sets, starts=STARTS).replace("total = 0.0", "total = 0.0 * config.scale")
    (found,) = project.findings(project.write("train.py", text), "--notes")
    assert found["level"] == level


OPTIONS = """import argparse


def parsed():
    parser = argparse.ArgumentParser()
    group = parser.add_argument_group("training")
    group.add_argument("--epochs", type=int, default=9)
    parser.{adds}("--gpu-id", type=int, default=0)
    args = parser.parse_args()
    {after}
    return args
"""


def _with_module(project: Project, name: str, text: str, *, imports: str, before: str, starts: str = STARTS) -> str:
    project.write(f"{name}.py", text)
    return _told(project, imports=imports, before=before, starts=starts)


@pytest.mark.parametrize(
    ("adds", "after", "before", "level"),
    [
        ("add_argument", "", "args = parsed()\nprint(args.gpu)", "note"),
        ("add_argument", "", "args = parsed()\nprint(args.gpu_id, args.epochs)", "warning"),
        ("add_argument", "args.gpu = args.gpu_id", "args = parsed()\nprint(args.gpu)", "warning"),
        ("add_argument", "args.gpu, args.rank = args.gpu_id, 0", "args = parsed()\nprint(args.gpu)", "warning"),
        ("add_argument", "for args.gpu in range(1): pass", "args = parsed()\nprint(args.gpu)", "warning"),
        ("add_argument", "setattr(args, 'g' + 'pu', 0)", "args = parsed()\nprint(args.gpu)", "warning"),
        ("add_argument", "vars(args).update(argparse.OPTIONS)", "args = parsed()\nprint(args.gpu)", "warning"),
        ("add_argument", "import common; common.configured(args)", "args = parsed()\nprint(args.gpu)", "warning"),
        ("add_argument", "print(vars(args))", "args = parsed()\nprint(args.gpu)", "note"),
        ("add_argument", "", "args = parsed()\nif hasattr(args, 'gpu'):\n    print(args.gpu)", "warning"),
        ("add_argument", "", "args = parsed()\nif args.epochs > 90:\n    print(args.gpu)", "warning"),
        ("add_argument", "", "args = parsed()\ntry:\n    print(args.gpu)\nexcept AttributeError:\n    pass", "warning"),
        (
            "add_argument",
            "",
            "args = parsed()\nif args.epochs > 90:\n    args = torch.load('o.pt')\nprint(args.gpu)",
            "warning",
        ),
        ("add", "", "args = parsed()", "note"),
        ("add", "", "if torch.cuda.device_count() > 1:\n    parsed()", "warning"),
        ("register", "", "args = parsed()", "warning"),
    ],
)
def test_an_option_that_the_parser_does_not_have(project: Project, adds: str, after: str, before: str, level: str) -> None:
    text = OPTIONS.format(adds=adds, after=after)
    assert _with_module(project, "options", text, imports="from options import parsed", before=before) == level


def test_a_folder_by_the_name_of_the_parsed_options(project: Project) -> None:
    project.write("args/kinds.py", "CHOSEN = 1")
    before = "args = parsed()\nprint(args.epochs)"
    imports = "from args.kinds import CHOSEN\nfrom options import parsed"
    text = OPTIONS.format(adds="add_argument", after="")
    assert _with_module(project, "options", text, imports=imports, before=before) == "warning"


@pytest.mark.parametrize(
    "parser",
    [
        "parser = argparse.ArgumentParser(parents=[common])",
        "parser = argparse.ArgumentParser()\nadd_more(parser)",
        "parser = argparse.ArgumentParser()\nparser.set_defaults(**torch.load('o.pt'))",
        "parser = argparse.ArgumentParser()\nfor name in names:\n    parser.add_argument('--' + name)",
        "parser = Parser()",
    ],
)
def test_a_parser_whose_options_are_not_all_seen(project: Project, parser: str) -> None:
    imports = "import argparse\nfrom common import Parser, add_more, common, names"
    assert _told(project, imports=imports, before=f"{parser}\nargs = parser.parse_args()\nprint(args.gpu)") == "warning"


HELPERS = """
import abc
import functools


def loaders(folder, workers, *, pin=False):
    return 1, 2, 3


def several(folder):
    if folder:
        return 1, 2
    return [1, 2, 3]


def passed_on(*args, **kwargs):
    return loaders(*args, **kwargs)


@functools.lru_cache
def cached(folder):
    return 1


def lazily(folder):
    yield loaders()


def stops(folder):
    if folder is None:
        print("none")
    return loaders(folder)


def may_stop(folder):
    if folder is None:
        return None
    return loaders(folder)


class Base(abc.ABC):
    @abc.abstractmethod
    def load(self):
        pass


class Half(Base):
    pass


class Whole(Base):
    def load(self):
        return 1


class Aliased(Base):
    load = print


class Head:
    def __init__(self, wide):
        self.wide = wide


class Network:
    def __init__(self):
        self.head = Head(width=3)


class Free:
    def __new__(cls, *args):
        return object.__new__(cls)

    def __init__(self):
        self.wide = 3
"""


@pytest.mark.parametrize(
    ("before", "level"),
    [
        ("loaders('a', 2)", "warning"),
        ("loaders('a', workers=2, pin=True)", "warning"),
        ("loaders('a')", "note"),
        ("loaders('a', 2, True)", "note"),
        ("loaders('a', 2, n_workers=3)", "note"),
        ("loaders(*batch)", "warning"),
        ("loaders('a', **batch)", "warning"),
        ("passed_on('a')", "warning"),
        ("cached('a', 2)", "warning"),
        ("lazily('a')", "warning"),
        ("stops('a')", "note"),
        ("may_stop('a')", "warning"),
        ("train_set, test_set = loaders('a', 2)", "note"),
        ("train_set, *rest = loaders('a', 2)", "warning"),
        ("(train_set, test_set), names = loaders('a', 2), 3", "warning"),
        ("a, b, c = several('a')", "warning"),
        ("Half()", "note"),
        ("Whole()", "warning"),
        ("Aliased()", "warning"),
        ("Head(3)", "warning"),
        ("Head(width=3)", "note"),
        ("Network()", "note"),
        ("Free(1, 2)", "warning"),
        ("import contextlib\nwith contextlib.suppress(TypeError):\n    loaders('a')", "warning"),
        ("try:\n    loaders('a')\nexcept TypeError:\n    pass", "warning"),
        ("if torch.cuda.device_count() > 1:\n    loaders('a')", "warning"),
        ("count = lambda: loaders('a')", "warning"),
    ],
)
def test_a_call_that_the_project_does_not_take(project: Project, before: str, level: str) -> None:
    names = "Aliased, Free, Half, Head, Network, Whole, cached, lazily, loaders, may_stop, passed_on, several, stops"
    imports = f"from helpers import {names}"
    assert _with_module(project, "helpers", HELPERS, imports=imports, before=f"batch = torch.load('a')\n{before}") == level


def test_a_function_that_is_bound_anew_or_chosen(project: Project) -> None:
    chosen = "try:\n    from helpers import loaders\nexcept ImportError:\n    loaders = None\nloaders('a')"
    assert _with_module(project, "helpers", HELPERS, imports="", before=chosen) == "warning"
    patched = "import helpers\nfrom helpers import loaders\nhelpers.loaders = print"
    assert _with_module(project, "helpers", HELPERS, imports=patched, before="loaders('a')") == "warning"


@pytest.mark.parametrize(
    ("imports", "level"),
    [
        ("from helpers import loaders\nfrom others import *", "warning"),
        ("from others import *\nfrom helpers import loaders", "warning"),
        ("from helpers import loaders\nfrom torchvision import *", "warning"),
        ("from helpers import loaders\nfrom parts import *", "note"),
    ],
)
def test_a_function_that_a_star_import_may_bind_anew(project: Project, imports: str, level: str) -> None:
    project.write("others.py", "def loaders(folder):\n    return folder\n")
    project.write("parts.py", "def parts(folder):\n    return folder\n")
    assert _with_module(project, "helpers", HELPERS, imports=imports, before="loaders('a')") == level


def test_the_note_names_the_line_that_stops_the_run(project: Project) -> None:
    project.write("helpers.py", HELPERS)
    project.configure("select = ['SPD301']\ntorch = '2.4'")
    text = TRAINS.format(imports="from helpers import stops", before="stops('a')", starts=STARTS)
    (found,) = project.findings(project.write("train.py", text), "--notes")
    assert (
        found["because"]
        == "the script ends before it, at line 32 of helpers.py: `loaders` needs `workers`, which is not passed"
    )


@pytest.mark.parametrize(
    ("module", "starred", "read", "level"),
    [
        ("parts.py", "import math\n", "print(math.pi)", "warning"),
        ("parts.py", "import math\n", "print(maths.pi)", "note"),
        ("parts.py", "import math\nfrom more import *\n", "print(maths.pi)", "warning"),
        ("parts.py", "import math\nglobals().update(math.__dict__)\n", "print(maths.pi)", "warning"),
        ("parts/__init__.py", "from .heads import Head\n", "print(heads.Head)", "warning"),
        ("parts/__init__.py", "from .heads import Head\n", "print(tails.Head)", "note"),
    ],
)
def test_all_names_of_a_module_of_the_project(project: Project, module: str, starred: str, read: str, level: str) -> None:
    project.write("parts/heads.py", "class Head:\n    pass\n")
    project.write(module, starred)
    assert _told(project, imports="from parts import *", before=read) == level


STEP = """
    for images, labels in loader:
        loss = nn.functional.cross_entropy(model(images.cuda()), labels.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
"""


@pytest.mark.parametrize(
    ("after", "level"),
    [
        ("        clip(model)\n", "note"),
        ("        if len(images) > 9:\n            clip(model)\n", "warning"),
        ("        if len(images) > 9:\n            continue\n        clip(model)\n", "warning"),
        ("    clip(model)\n", "warning"),
    ],
)
def test_what_stops_in_the_first_step(project: Project, after: str, level: str) -> None:
    project.configure("select = ['SPD301']\ntorch = '2.4'")
    text = TRAINS.format(imports="", before="", starts=STARTS)
    start = text.index("\n    for images, labels")
    end = text.index("    return total")
    path = project.write("train.py", text[:start] + STEP + after + text[end:])
    (found,) = project.findings(path, "--notes")
    assert found["level"] == level


APART = """
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Pairs(Dataset):
    def __init__(self, files):
        self.files = files

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        noisy, clean = torch.load(self.files[index])
        return {item}


class Cleaner(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Conv2d(3, 256, 3), nn.Conv2d(256, 3, 3)

    def forward(self, x):
        rough = self.first(x)
        return {result}


model = nn.DataParallel(Cleaner()).cuda()
optimizer = torch.optim.Adam(model.parameters())
loader = DataLoader(Pairs(torch.load("files.pt")), batch_size=16, num_workers=4{collate})
for epoch in range(9):
    for step, {names} in enumerate(loader):
        {parts} = model(noisy.cuda())
        loss = (clean - target.cuda()).abs().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())
"""


@pytest.mark.parametrize(
    ("item", "result", "collate", "names", "parts", "level"),
    [
        ("noisy, clean", "rough, self.last(rough)", "", "(noisy, target)", "rough, clean", "warning"),
        ("noisy, clean", "rough, self.last(rough), x", "", "(noisy, target)", "rough, clean", "note"),
        ("noisy, clean", "rough, self.last(rough), x", "", "(noisy, target)", "*rough, clean", "warning"),
        ("noisy, clean, index", "rough, self.last(rough)", "", "(noisy, target)", "rough, clean", "note"),
        (
            "noisy, clean, index",
            "rough, self.last(rough)",
            ", collate_fn=torch.load('own.pt')",
            "(noisy, target)",
            "rough, clean",
            "warning",
        ),
        (
            "(noisy, clean) if index else (noisy, clean, 0)",
            "rough, self.last(rough)",
            "",
            "(noisy, target)",
            "rough, clean",
            "warning",
        ),
        ("noisy, clean, index", "rough, self.last(rough)", "", "(noisy, *target)", "rough, clean", "warning"),
    ],
)
def test_values_that_are_taken_apart_into_others_end_the_first_step(
    project: Project, item: str, result: str, collate: str, names: str, parts: str, level: str
) -> None:
    project.configure("select = ['SPD101', 'SPD301', 'SPD502', 'SPD603']\ntorch = '2.13'")
    text = APART.format(item=item, result=result, collate=collate, names=names, parts=parts)
    found = project.findings(project.write("train.py", text), "--notes")
    assert len(found) >= 3
    assert {each["level"] for each in found if each["code"] != "SPD101" or level == "note"} == {level}


def test_what_a_hook_makes_of_a_result_is_not_known(project: Project) -> None:
    project.configure("select = ['SPD301']\ntorch = '2.13'")
    text = APART.format(
        item="noisy, clean", result="rough, rough, x", collate="", names="(noisy, target)", parts="rough, clean"
    )
    (found,) = project.findings(project.write("train.py", text), "--notes")
    assert found["level"] == "note"
    hooked = text.replace(
        "optimizer = torch", "model.register_forward_hook(lambda module, x, out: out[:2])\noptimizer = torch"
    )
    (found,) = project.findings(project.write("train.py", hooked), "--notes")
    assert found["level"] == "warning"


SEVERAL = """
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Few(Dataset):
    def __len__(self):
        return 9999

    def __getitem__(self, index):
        return {few}


class Many(Few):
    def __getitem__(self, index):
        return torch.load(f"{{index}}.pt"), index, index


model = nn.Sequential(nn.Conv2d(3, 256, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, 10)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def train(loader):
    for images, labels in loader:
        loss = nn.functional.cross_entropy(model(images.cuda()), labels.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())


for epoch in range(9):
    train(DataLoader(Few(), batch_size=32))
    train(DataLoader(Many(), batch_size=32))
"""


@pytest.mark.parametrize(
    ("few", "level"),
    [("torch.load('a.pt'), index", "warning"), ("torch.load('a.pt'), index, 0", "note"), ("index", "warning")],
)
def test_a_loop_over_several_loaders_raises_with_each_or_not_for_sure(project: Project, few: str, level: str) -> None:
    project.configure("select = ['SPD301']\ntorch = '2.13'")
    (found,) = project.findings(project.write("train.py", SEVERAL.format(few=few)), "--notes")
    assert found["level"] == level


WHOLE = SEVERAL.replace("for images, labels in loader:", "for images in loader:\n        {moved}").replace(
    "labels.cuda()", "images.long()"
)


@pytest.mark.parametrize(
    ("few", "moved", "level"),
    [
        ("torch.load('a.pt'), index", "images = images.cuda()", "note"),
        ("torch.load('a.pt'), index", "images = images[0].cuda()", "warning"),
        ("torch.load('a.pt'), index", "images = [each.cuda() for each in images][0]", "warning"),
        ("torch.load('a.pt')", "images = images.cuda()", "warning"),
    ],
)
def test_a_list_of_the_parts_of_items_is_no_tensor(project: Project, few: str, moved: str, level: str) -> None:
    project.configure("select = ['SPD301']\ntorch = '2.13'")
    text = WHOLE.format(few=few, moved=moved).replace("    train(DataLoader(Many(), batch_size=32))\n", "")
    (found,) = project.findings(project.write("train.py", text), "--notes")
    assert found["level"] == level


CHANGED = [
    "torch.nn.modules.module.register_module_forward_hook(lambda module, x, out: out[:2])",
    "model.forward = lambda x: (x, x)",
    "setattr(model, 'forward', lambda x: (x, x))",
    "Cleaner.__call__ = lambda self, x: (x, x)",
]


@pytest.mark.parametrize("line", CHANGED)
def test_a_module_that_is_changed_from_outside_may_give_another_count(project: Project, line: str) -> None:
    project.configure("select = ['SPD301']\ntorch = '2.13'")
    text = APART.format(
        item="noisy, clean", result="rough, rough, x", collate="", names="(noisy, target)", parts="rough, clean"
    )
    (found,) = project.findings(project.write("train.py", text.replace("optimizer = torch", f"{line}\noptimizer = torch")))
    assert found["level"] == "warning"


@pytest.mark.parametrize(
    "line",
    ["loader.collate_fn = torch.load('own.pt')", "Pairs.__getitem__ = torch.load('item.pt')", "Pairs.__getitems__ = print"],
)
def test_a_loader_that_is_changed_from_outside_may_give_other_batches(project: Project, line: str) -> None:
    project.configure("select = ['SPD301']\ntorch = '2.13'")
    text = APART.format(item="noisy, clean, 0", result="rough, x", collate="", names="(noisy, target)", parts="rough, clean")
    found = project.findings(project.write("train.py", text.replace("for epoch in", f"{line}\nfor epoch in", 1)))
    assert [each["level"] for each in found] == ["warning"]


@pytest.mark.parametrize(
    ("options", "level"),
    [
        ("parser.add_argument('--lr', type=float)\nparser.add_argument('--lr', default=0.1)", "note"),
        ("parser.add_argument('--lr')\nparser.add_argument('-l', '--lr')", "note"),
        ("parser.add_argument('--lr')\nparser.add_argument('--rate')", "warning"),
        ("if len(input()):\n    parser.add_argument('--lr')\nelse:\n    parser.add_argument('--lr', default=1)", "warning"),
        ("try:\n    parser.add_argument('--lr')\n    parser.add_argument('--lr')\nexcept Exception:\n    pass", "warning"),
    ],
)
def test_a_parser_that_is_told_of_an_option_twice(project: Project, options: str, level: str) -> None:
    before = f"import argparse\n\nparser = argparse.ArgumentParser()\n{options}"
    assert _told(project, before=before) == level
    resolved = before.replace("ArgumentParser()", "ArgumentParser(conflict_handler='resolve')")
    assert _told(project, before=resolved) == "warning"


RETURNS = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Linear(4096, 4096)

    def forward(self, x, cache=None):
        {returned}


def train(model, optimizer, loader):
    for rows, labels in loader:
        out = model(rows.cuda())
        loss = nn.functional.mse_loss({used}, labels.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        _, best = out.max(1)
        print(loss.item())


net = Net().cuda()
{before}
train(net, torch.optim.SGD(net.parameters(), lr=0.1), torch.load("batches.pt"))
"""


@pytest.mark.parametrize(
    ("returned", "used", "before", "level"),
    [
        ("return self.layers(x), cache", "out", "", "note"),
        ("if cache is None:\n            return self.layers(x), {}\n        return x, cache", "out", "", "note"),
        ("if cache is None:\n            return self.layers(x)\n        return x, cache", "out", "", "warning"),
        ("return self.layers(x)", "out", "", "warning"),
        ("return self.layers(x), cache", "out", "net.register_forward_hook(lambda *given: given[-1][0])", "warning"),
        ("return self.layers(x), cache", "out", "net.forward = net.layers.forward", "warning"),
        (
            "return self.layers(x), cache\n\n    def alone(self, x):\n        return self.layers(x)\n\n    forward = alone",
            "out",
            "",
            "warning",
        ),
        ("return self.layers(x), cache\n\n    __call__ = lambda self, x: self.layers(x)", "out", "", "warning"),
    ],
)
def test_a_tuple_that_is_asked_for_what_tensors_have(
    project: Project, returned: str, used: str, before: str, level: str
) -> None:
    project.configure("select = ['SPD303', 'SPD301']\ntorch = '2.4'")
    text = RETURNS.format(returned=returned, used=used, before=before)
    assert {each["level"] for each in project.findings(project.write("train.py", text), "--notes")} == {level}
