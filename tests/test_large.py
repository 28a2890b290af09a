"""Much input: long files, many files, many importers, long cycles of imports."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from speedlint.disk import Disk
from speedlint.program.imports import Imports, Known
from tests.conftest import Project

STEP = """
import torch
from shared import log

model = torch.nn.Linear(4, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(99):
    loss = model(torch.randn(2, 4, device="cuda")).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item())
"""


def configured(project: Project) -> None:
    """The rules of speedlint instead of the toys."""
    (project.root / "speedlint.toml").write_text("select = ['SPD303', 'SPD301']\n")


@pytest.mark.parametrize("lines", [20_000, pytest.param(200_000, marks=pytest.mark.slow)])
def test_a_long_file_is_read(project: Project, lines: int) -> None:
    configured(project)
    project.write("shared.py", "def log(x):\n    return x\n")
    project.write("train.py", "x = 1\n" * lines + STEP)
    found = project.findings("train.py")
    assert [(each["code"], each["line"] - lines) for each in found] == [
        ("SPD301", STEP[: STEP.index("print")].count("\n") + 1)
    ]


def test_a_cycle_of_300_modules_is_followed_to_its_end(project: Project) -> None:
    configured(project)
    for number in range(300):
        project.write(
            f"m{number}.py", f"from m{(number + 1) % 300} import last\nfrom m{number - 1 if number else 299} import *\n"
        )
    project.write("m299.py", "import m0\n\n\ndef last(loss):\n    return loss.item()\n")
    project.write(
        "train.py", STEP.replace("from shared import log", "from m0 import last").replace("loss.item()", "last(loss)")
    )
    assert not project.run("check", "train.py").exception


def test_a_bound_is_said_once(project: Project) -> None:
    configured(project)
    for number in range(450):
        project.write(f"m{number}.py", f"import m{number + 1}\n")
    project.write("a.py", "import m0\n" + STEP)
    project.write("b.py", "import m0\n" + STEP)
    result = project.run("check", "a.py", "b.py")
    assert result.stderr.count("the farthest were not looked at") == 1
    assert result.exit_code == 1


def test_nothing_is_said_of_a_program_that_was_read_whole(project: Project) -> None:
    configured(project)
    project.write("shared.py", "")
    project.write("train.py", STEP)
    assert "not looked at" not in project.run("check", "train.py").stderr


def written(folder: Path, count: int) -> None:
    """Scripts that all import one module."""
    for number in range(count):
        (folder / f"script{number}.py").write_text(STEP)


def test_a_module_that_60_files_import_is_told_who_calls_it(project: Project) -> None:
    configured(project)
    written(project.root, 60)
    project.write("shared.py", "def log(loss):\n    return loss.item()\n")
    for number in range(60):
        path = project.root / f"script{number}.py"
        path.write_text(path.read_text().replace("print(loss.item())", "log(loss)"))
    assert [each["code"] for each in project.findings("shared.py")] == ["SPD301"]


def test_of_too_many_callers_those_that_name_what_a_module_defines_come_first(project: Project) -> None:
    configured(project)
    project.write("shared.py", "def log(loss):\n    return loss.item()\n")
    project.write("other.py", "from shared import log\n\n\ndef told():\n    return log\n")
    for number in range(30):
        project.write(f"a{number}.py", STEP.replace("from shared import log", "from other import told") + "#" * 10_000)
    project.write("z.py", STEP.replace("print(loss.item())", "log(loss)"))
    result = project.run("check", "--format", "json", "shared.py")
    assert [each["code"] for each in json.loads(result.stdout)["findings"]] == ["SPD301"]
    assert result.stderr.count("loops were looked for in the nearest") == 1


def large(project: Project) -> None:
    """A project of more than 200 files: a package whose ``__init__`` hands on a helper, and 30 trainings that call it."""
    project.write("parts/__init__.py", "from .told import log\nfrom .m0 import number0\n")
    project.write("parts/told.py", "from parts.m1 import number1\n\n\ndef log(loss):\n    return loss.item() + number1()\n")
    for number in range(200):
        project.write(f"parts/m{number}.py", f"def number{number}():\n    return {number}\n")
    for number in range(30):
        script = STEP.replace("from shared import log", "import parts" if number % 2 else "from parts import log")
        called = "parts.log(loss)" if number % 2 else "log(loss)"
        project.write(f"script{number}.py", script.replace("print(loss.item())", called))


def test_in_a_large_project_a_script_is_told_the_same_alone_as_with_all_others(project: Project) -> None:
    (project.root / "speedlint.toml").write_text("select = ['SPD301', 'SPD303', 'SPD311']\n")
    large(project)
    alone = [each for number in (2, 3) for each in project.findings(f"script{number}.py")]
    assert [(each["path"], each["code"]) for each in alone] == [("script2.py", "SPD311"), ("script3.py", "SPD311")]
    both = project.run("check", "--format", "json", "script2.py", "script3.py")
    assert json.loads(both.stdout)["findings"] == alone
    assert [each["code"] for each in project.findings("parts/told.py")] == ["SPD301"]


@pytest.mark.parametrize(
    ("files", "wanted"),
    [
        ({"nets/__init__.py": "from .one import One\nfrom .two import Two\n"}, {"nets/__init__.py", "nets/one.py"}),
        (
            {"nets/__init__.py": "from .one import *\nfrom .two import *\n"},
            {"nets/__init__.py", "nets/one.py", "nets/two.py"},
        ),
        (
            {"nets/__init__.py": "from importlib import import_module\nfor it in NAMES:\n    import_module(f'nets.{it}')"},
            {"nets/__init__.py", "nets/one.py", "nets/two.py"},
        ),
        ({"nets/__init__.py": "from parts import One\n", "parts.py": "class One: pass\n"}, {"nets/__init__.py", "parts.py"}),
        (
            {"nets/__init__.py": "", "train.py": "import nets\n\nnets.one.One()\n"},
            {"nets/__init__.py", "nets/one.py"},
        ),
        ({"nets/__init__.py": "", "also.py": "import train\nfrom nets.two import Two\n"}, {"also.py", "nets/two.py"}),
    ],
)
def test_what_leads_to_a_script_and_where_it_leads(project: Project, files: dict[str, str], wanted: set[str]) -> None:
    project.write("pyproject.toml", "")
    project.write("nets/one.py", "class One:\n    pass\n")
    project.write("nets/two.py", "class Two:\n    pass\n")
    project.write("train.py", "from nets import One\n" if "also.py" not in files else "")
    project.write("apart.py", "from nets import One, Two\n")
    for name, text in files.items():
        project.write(name, text)
    found = Imports(Disk(), Known()).led_to([project.root / "train.py"])
    named = {str(each.relative_to(project.root)) for each in found}
    assert wanted <= named
    assert not {"apart.py", *(("nets/two.py",) if "nets/two.py" not in wanted else ())} & named


BASE = """
import torch


class Trainer:
    def step(self, batch):
        raise NotImplementedError

    def run(self, loader):
        for batch in loader:
            self.step(batch)
            print(torch.rand(9, device="cuda").mean().item())
"""
HEIR = """
import torch
from base import Trainer


class Trainer{number}(Trainer):
    def __init__(self):
        self.model = torch.nn.Linear(4, 1).cuda()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def step(self, batch):
        loss = self.model(batch.cuda()).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
"""


@pytest.mark.parametrize(("heirs", "codes"), [(3, ["SPD301"]), (70, [])])
def test_heirs_are_looked_for_where_few_files_may_hold_one(project: Project, heirs: int, codes: list[str]) -> None:
    configured(project)
    project.write("base.py", BASE)
    for number in range(heirs):
        project.write(f"heir{number}.py", HEIR.replace("{number}", str(number)))
    project.write("train.py", "import torch\nfrom heir0 import Trainer0\n\nTrainer0().run(torch.rand(99, 2, 4))\n")
    result = project.run("check", "--format", "json", "base.py")
    assert [each["code"] for each in json.loads(result.stdout)["findings"]] == codes
    assert ("classes that derive from another one" in result.stderr) is not bool(codes)


LOSSES = """
import torch


class Overlap(torch.nn.Module):
    def part(self, score, target):
        return 1 - (score * target).sum() / (score + target).sum()

    def forward(self, scores, target):
        told, total = [], 0.0
        for i in range(scores.shape[1]):
            part = self.part(scores[:, i], target)
            told.append(1.0 - part.item())
            total += part
        return total
"""
OVERLAPPING = """
import torch
from losses import Overlap

model = torch.nn.Linear(4, 3).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
overlap = Overlap()
for step in range(99):
    target = torch.rand(2, device="cuda")
    loss = overlap(model(torch.randn(2, 4, device="cuda")), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize("count", [1, 24, 500])
def test_a_loss_that_many_scripts_share_is_told_of_at_each_of_them(project: Project, count: int) -> None:
    (project.root / "speedlint.toml").write_text("select = ['SPD311']\n")
    project.write("losses.py", LOSSES)
    for number in range(count):
        project.write(f"train{number}.py", OVERLAPPING)
    line = OVERLAPPING[: OVERLAPPING.index("overlap(model")].count("\n") + 1
    assert [(each["code"], each["line"]) for each in project.findings("train0.py")] == [("SPD311", line)]


PAIRS = """
import random

import torch


class Pairs(torch.utils.data.Dataset):
    def __init__(self, places, count):
        self.places, self.count = places, count
        self.queue = []
        for i in range(self.count):
            self.queue.append(i)

    def draw(self):
        self.queue = []
        while len(self.queue) < self.count * 2:
            self.queue += [self.places[d][random.randint(0, len(self.places[d]) - 1)] for d in range(9)]
        self.queue = self.queue[: self.count * 2]
        self.queue = [[self.queue[i], self.queue[i + 1]] for i in range(0, self.count * 2, 2)]

    def __getitem__(self, index):
        return self.queue[index]


net = torch.nn.Linear(512, 512).cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for rows, _ in torch.utils.data.DataLoader(Pairs(torch.load("places.pt"), 1000), batch_size=64, num_workers=4):
    loss = net(rows.cuda()).mean()
    optimizer.zero_grad()
    loss.backward()
    print(loss.item())
    optimizer.step()
"""


def test_a_list_that_is_made_of_itself(project: Project) -> None:
    """What it holds would go on for ever: each change told of three times as much as the one before."""
    project.configure("select = ['SPD202', 'SPD301']")
    found = project.findings(project.write("train.py", PAIRS))
    assert {each["code"] for each in found} == {"SPD202", "SPD301"}
