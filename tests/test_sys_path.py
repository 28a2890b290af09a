"""Modules that a script reaches by the folders that it puts on `sys.path`."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from speedlint.ask.program import Program
from speedlint.ask.script import Options
from speedlint.cli import main
from speedlint.config import Settings
from speedlint.engine import Engine
from speedlint.facts.put_on_path import put_on_path
from speedlint.registry import Registry

TRAIN = """
import sys
{put}
import torch
from networks import build
from loss import logged

model = build().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in torch.utils.data.DataLoader(list(range(9)), num_workers=4):
    loss = (model(x.cuda()) - y.cuda()).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    logged(loss)
"""
NETWORKS = "import torch\n\n\ndef build():\n    return torch.nn.Linear(4, 1)\n"
LOUD, QUIET = "def logged(loss):\n    print(loss.item())\n", "def logged(loss):\n    return None\n"
APPEND = "sys.path.append('../lib')"


def write(folder: Path, **texts: str) -> None:
    """Writes modules into a folder, `__` for what parts one folder from the next."""
    for name, text in texts.items():
        path = folder / (name.replace("__", "/") + ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def led(folder: Path, script: str, name: str) -> str | None:
    """The file of the project that a name leads a script to."""
    program = Program(Options((2, 13)))
    found = program.module(program.script(folder / script), name)
    return None if found is None else found[0].relative_to(folder).as_posix()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project whose scripts are in one folder and their modules in another."""
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "pyproject.toml").write_text("")
    write(tmp_path / "project", lib__networks=NETWORKS, lib__loss=LOUD)
    return tmp_path / "project"


@pytest.mark.parametrize(
    "put",
    [
        APPEND,
        "sys.path.append('lib/')",
        "sys.path.insert(0, '../lib')",
        "sys.path.insert(1, './../lib')",
        "sys.path.extend(['../data', '../lib'])",
        "sys.path += ['../lib']",
        "sys.path = ['../lib'] + sys.path",
        "sys.path = [*sys.path, '../lib']",
        "sys.path[:0] = ['../lib']",
        "import os\nsys.path.append(os.path.join(os.path.dirname(__file__), '..', 'lib'))",
        "import os.path as osp\nsys.path.append(osp.join(osp.dirname(osp.abspath(__file__)), '../lib'))",
        "from os.path import *\nfrom os.path import dirname, join\nsys.path.append(join(dirname(dirname(__file__)), 'lib'))",
        "import os\nos.sys.path.insert(0, os.path.realpath(os.path.join(os.getcwd(), 'lib')))",
        "from pathlib import Path\nsys.path.append(str(Path(__file__).resolve().parent.parent / 'lib'))",
        "from pathlib import Path\nROOT = Path(__file__).parents[1]\nLIB = ROOT.joinpath('lib')\n"
        "if str(LIB) not in sys.path:\n    sys.path.insert(0, f'{ROOT}/lib')",
        "import site\nsite.addsitedir('../lib')",
        "try:\n    import networks\nexcept ImportError:\n    sys.path.append('../lib')",
        "import os\ndef add_path(path):\n    if path not in sys.path:\n        sys.path.insert(0, path)\n"
        "here = os.path.dirname(__file__)\nadd_path(os.path.join(here, '..', 'lib'))",
        "for each in ('lib', 'data'):\n    sys.path.append('../' + each)",
        "import os, inspect\nhere = os.path.dirname(os.path.abspath(inspect.getfile(inspect.currentframe())))\n"
        "sys.path.append(os.path.dirname(here) + '/lib')",
    ],
)
def test_a_folder_is_followed_however_it_is_put_there(folder: Path, put: str) -> None:
    write(folder, scripts__train=TRAIN.format(put=put), data__table="")
    assert led(folder, "scripts/train.py", "networks.build") == "lib/networks.py"
    assert led(folder, "lib/networks.py", "loss") == "lib/loss.py"


@pytest.mark.parametrize(
    "put",
    [
        "import os\nsys.path.append(os.environ['LIB'])",
        "sys.path.append('/lib')",
        "path = '../lib'\npath = input()\nsys.path.append(path)",
        "paths = []\npaths.append('../lib')",
        "def put(path):\n    sys.path.append(path)",
        "sys.path.append('../missing')",
        "sys.path.append('../lib\\0')",
        "# sys.path.append('../lib')",
    ],
)
def test_what_is_not_known_leads_nowhere(folder: Path, put: str) -> None:
    write(folder, scripts__train=TRAIN.format(put=put))
    assert led(folder, "scripts/train.py", "networks.build") is None


def test_a_folder_outside_of_the_project_is_not_entered(folder: Path) -> None:
    outside = folder.parent / "outside"
    write(outside, secret="")
    (folder / "link").symlink_to(outside)
    puts = [
        f"sys.path.append({path!r})" for path in ("../../outside", "../" * 60 + "outside", str(outside), "link", "../link")
    ]
    write(folder, scripts__train="import sys\n" + "\n".join(puts) + "\nimport secret\n")
    assert led(folder, "scripts/train.py", "secret") is None


def test_a_path_that_may_be_two_folders_leads_where_one_of_them_has_the_module(folder: Path) -> None:
    write(folder, scripts__lib__other="", scripts__train="import sys\nsys.path.append('lib')\nimport networks, other\n")
    assert led(folder, "scripts/train.py", "networks") == "lib/networks.py"
    assert led(folder, "scripts/train.py", "other") == "scripts/lib/other.py"
    write(folder, scripts__lib__networks="")
    assert led(folder, "scripts/train.py", "networks") is None


def test_what_comes_first_on_the_path_is_found_first(folder: Path) -> None:
    write(folder, scripts__networks="", scripts__loss="")
    write(folder, scripts__first=f"import sys\n{APPEND.replace('append(', 'insert(0, ')}\nimport networks\n")
    write(folder, scripts__last=f"import sys\n{APPEND}\nimport networks\n")
    assert led(folder, "scripts/first.py", "networks") == "lib/networks.py"
    assert led(folder, "scripts/last.py", "networks") == "scripts/networks.py"


@pytest.mark.parametrize("name", ["json", "torch"])
def test_a_library_is_not_taken_for_a_module_that_is_named_like_it(folder: Path, name: str) -> None:
    write(folder, **{f"lib__{name}": ""}, scripts__train=f"import sys\n{APPEND}\nimport {name}\n")
    assert led(folder, "scripts/train.py", name) is None


def test_all_modules_of_a_process_search_what_its_script_put_there(folder: Path) -> None:
    write(folder, main__train="import sys\nsys.path.append('../model')\nfrom trainer import Trainer\n")
    write(folder, model__trainer="import paths\nfrom networks import build\n", model__paths=f"import sys\n{APPEND}\n")
    write(folder, tools__other="from networks import build\n")
    for names in (("main/train.py", "model/trainer.py"), ("model/trainer.py", "main/train.py")):
        program = Program(Options((2, 13)))
        scripts = [program.script(folder / name) for name in names]
        found = {script.path.name: program.module(script, "networks") for script in scripts}
        assert found == dict.fromkeys(("train.py", "trainer.py"), (folder / "lib" / "networks.py", ""))
    assert [each.name for each in Program(Options((2, 13))).around(folder / "lib" / "networks.py")][:3] == [
        "networks.py", "trainer.py", "train.py",
    ]  # fmt: skip
    assert led(folder, "tools/other.py", "networks") is None


def test_a_kept_report_is_taken_again_only_while_the_folders_are_the_same(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def found(*more: str) -> str:
        return CliRunner().invoke(main, ["check", "--notes", "--format", "json", *more, "train.py"]).output

    write(folder, scripts__train=TRAIN.format(put=APPEND))
    monkeypatch.chdir(folder / "scripts")
    assert "loss.item()" in found()
    write(folder, scripts__train=TRAIN.format(put=APPEND.replace("lib", "quiet")))
    assert "loss.item()" not in found()
    write(folder, quiet__loss=LOUD)
    assert "loss.item()" in found() and found() == found("--no-cache")
    write(folder, quiet__loss=QUIET)
    assert "loss.item()" not in found()
    write(folder, scripts__train=TRAIN.format(put="import paths"), scripts__paths=f"import sys\n{APPEND}\n")
    assert "loss.item()" in found()
    write(folder, scripts__paths="")
    assert "loss.item()" not in found() and found() == found("--no-cache")
    (folder / "scripts" / "paths.py").unlink()
    assert found() == found("--no-cache")


@pytest.mark.parametrize("path", ["(" * 150 + "'lib'" + ")" * 150, "'lib'" + " + ''" * 3000, "not " * 5000 + "x", "x", "'"])
def test_a_path_that_is_nested_too_deeply_is_not_known(path: str) -> None:
    assert put_on_path(f"import sys\nsys.path.append({path})\n".encode()) == ()


def test_functions_that_call_each_other_many_times_end() -> None:
    calls = "\n".join(f"def f{at}(x):\n" + f"    f{at + 1}(x)\n" * 50 for at in range(50))
    text = f"import sys\n{calls}\ndef f50(x):\n    sys.path.append(x)\nf0('lib')\n"
    assert len(put_on_path(text.encode())) <= 1


NAMED = """
import torch
from nets import nets

if __name__ == "__main__":
    model = nets().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(9):
        for x in torch.utils.data.DataLoader(torch.load("rows.pt"), num_workers=4):
            loss, part = model.losses(model(x.cuda()))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            print(part)
"""
OF_NAME = """
import torch


class nets(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(512, 512)

    def forward(self, x):
        return self.layer(x)

    def losses(self, x):
        return x.mean(), x.square().mean()
"""


@pytest.mark.parametrize(
    ("guard", "own", "lines"),
    [
        ('__name__ == "__main__"', OF_NAME, [14]),
        ("torch.cuda.is_available()", OF_NAME, []),
        ('__name__ == "__main__"', OF_NAME.replace("class nets", "class other"), []),
    ],
)
def test_a_module_beside_a_script_comes_before_the_package_around_both(
    tmp_path: Path, guard: str, own: str, lines: list[int]
) -> None:
    """As a module of the package, ``nets.nets`` is a file, which nothing can call."""
    write(tmp_path, nets____init__="", nets__nets=own, nets__train=NAMED.replace('__name__ == "__main__"', guard))
    (tmp_path / "pyproject.toml").write_text("")
    path = tmp_path / "nets" / "train.py"
    found = Engine(Settings(tmp_path, select=("SPD303",)), Registry.load(), asked=(path,)).check(path).diagnostics
    assert [each.line for each in found] == lines
