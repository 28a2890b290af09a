"""What names alone tell of training steps: never less than what is found by values."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from speedlint.ask.program import Program
from speedlint.ask.script import Options, Script
from speedlint.facts import syntax
from speedlint.solve import leads
from speedlint.solve.loops import Does
from tests.conftest import ROOT

STEP = "loss.backward()\n    optimizer.step()\n"
CALLED = "(loss, optimizer)"
FUNCTION = f"def f{CALLED}:\n    {STEP}\n"
CLASS = "class A:\n  def {}(self, loss, optimizer):\n    " + STEP + "\nclass B(A):\n  x = 1\n\n"
SHAPES = {
    "a function": f"{FUNCTION}f{CALLED}",
    "by another name": f"{FUNCTION}g = f\ng{CALLED}",
    "handed on": f"{FUNCTION}def run(g):\n    g{CALLED}\n\nrun(f)",
    "in a table": f"{FUNCTION}table = {{'a': f}}\ntable['a']{CALLED}",
    "a method": f"{CLASS.format('f')}a = A()\na.f{CALLED}",
    "an object": f"{CLASS.format('__call__')}a = A()\na{CALLED}",
    "one of two": f"{CLASS.format('__call__')}a = A() if loss else None\na{CALLED}",
    "an object on an object": f"{CLASS.format('__call__')}class C:\n  pass\n\nc = C()\nc.inner = A()\nc.inner{CALLED}",
    "an object by a keyword": f"{CLASS.format('forward')}def run(*, taken):\n    taken{CALLED}\n\nrun(taken=A())",
    "a method by the same name": f"{CLASS.format('f')}class C:\n  def f(self, a, *given):\n    a.f(*given)\n\n"
    "a = A()\nc = C()\nc.f(a, loss, optimizer)",
    "an heir": f"{CLASS.format('__call__')}b = B()\nb{CALLED}",
    "made": f"{CLASS.format('__init__')}B{CALLED}",
    "kept": f"{CLASS.format('f')}class C(A):\n  def __init__(self):\n    self.run = self.f\n\nC().run{CALLED}",
    "through a function": f"{FUNCTION}def g{CALLED}:\n    f{CALLED}\n\ng{CALLED}",
}
BEGIN = """
import torch

model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loss = model(torch.randn(2, 4)).mean()
"""


def _script(folder: Path, text: str, **others: str) -> Script:
    for name, other in others.items():
        (folder / f"{name}.py").write_text(textwrap.dedent(other))
    (folder / "train.py").write_text(text)
    (folder / "requirements.txt").write_text("torch\n")
    return Program(Options()).script(folder / "train.py")


@pytest.mark.parametrize("shape", SHAPES)
def test_each_way_to_a_step_is_seen(shape: str, tmp_path: Path) -> None:
    script = _script(tmp_path, BEGIN + SHAPES[shape])
    call = script.source.of(syntax.Call)[-1]
    assert leads.around(script).may(call)


@pytest.mark.parametrize(
    "imported", ["from steps import f", "from steps import f as g", "from steps import *", "import steps"]
)
def test_a_step_in_another_file_is_seen(imported: str, tmp_path: Path) -> None:
    called = {"import steps": "steps.f", "from steps import f as g": "g"}.get(imported, "f")
    steps = f"def f(loss, optimizer):\n    {STEP}"
    script = _script(tmp_path, f"{imported}\n{BEGIN}{called}(loss, optimizer)\n", steps=steps)
    assert leads.around(script).may(script.source.of(syntax.Call)[-1])


def test_a_step_that_another_file_is_handed_opens_all(tmp_path: Path) -> None:
    text = f"from runs import run\n{BEGIN}{FUNCTION}run(f)\n"
    script = _script(tmp_path, text, runs=f"def run(g):\n    g{CALLED}\n")
    assert leads.around(script).is_open


def test_a_function_within_another_is_known_to_no_other_file(tmp_path: Path) -> None:
    steps = f"def outer(loss, optimizer):\n  def norm{CALLED}:\n    {STEP}\n  norm{CALLED}\n"
    script = _script(
        tmp_path, "import steps\nfrom parts import norm\n\nnorm(1)\nsteps.outer(1, 2)\n", steps=steps, parts="x = 1\n"
    )
    may = [leads.around(script).may(call) for call in script.source.of(syntax.Call)]
    assert may == [False, True]


def test_a_method_of_a_library_by_the_same_name_leads_to_no_step(tmp_path: Path) -> None:
    trainer = f"class Trainer:\n  def run{CALLED}:\n    {STEP}\n"
    script = _script(tmp_path, f"import subprocess\n\n{trainer}def shell():\n  subprocess.run('ls')\n\nshell()\n")
    may = leads.around(script)
    assert not may.is_open
    assert not may.may(script.source.of(syntax.Call)[-1])


def test_what_only_computes_leads_to_no_step(tmp_path: Path) -> None:
    text = BEGIN + f"def f(loss, optimizer):\n    {STEP}\ndef norm(x):\n    return x.norm()\n\nf(norm(loss), optimizer)"
    script = _script(tmp_path, text)
    may = {script.text(call.func): leads.around(script).may(call) for call in script.source.of(syntax.Call)}
    assert (may["f"], may["norm"], may["x.norm"]) == (True, False, False)


def test_what_nobody_makes_opens_nothing(tmp_path: Path) -> None:
    scaler = f"class Scaler:\n  def __call__(self, loss, optimizer):\n    {STEP}"
    script = _script(tmp_path, "import torch\nfrom scaler import Scaler\n\nprint(torch.ones(2))\n", scaler=scaler)
    assert not leads.around(script).is_open


UPDATER = "from timm.utils import NativeScaler\n"
RUN = "def run(model, {0}):\n    loss = model(1)\n    {0}(loss, optimizer)\n\n"
UPDATERS = {
    "by its name": "scaler = NativeScaler()\nscaler(loss, optimizer)",
    "by another name": "scaler = NativeScaler()\nupdate = scaler\nupdate(loss, optimizer)",
    "one of two": "scaler, count = NativeScaler(), 0\nscaler(loss, optimizer)",
    "unnamed": "NativeScaler()(loss, optimizer)",
    "by a keyword": RUN.format("update") + "run(model, update=NativeScaler())",
    "by position": RUN.format("update") + "run(model, NativeScaler())",
    "out of a dict": RUN.format("update") + "given = {'update': NativeScaler()}\nrun(model, **given)",
    "on an object": "class A:\n  def __init__(self):\n    self.update = NativeScaler()\n\n"
    "  def run(self, loss, optimizer):\n    self.update(loss, optimizer)",
    "as a default": "scaler = NativeScaler()\n\ndef run(loss, optimizer, update=scaler):\n    update(loss, optimizer)\n\n"
    "run(loss, optimizer)",
}


@pytest.mark.parametrize("shape", UPDATERS)
def test_each_way_to_what_takes_a_step_for_the_script_is_seen(shape: str, tmp_path: Path) -> None:
    script = _script(tmp_path, UPDATER + BEGIN + UPDATERS[shape])
    assert [len(call.args) for call in script.loops.steps] == [2]


def test_what_takes_steps_is_followed_into_another_file(tmp_path: Path) -> None:
    steps = "def run(loss, optimizer, update):\n    update(loss, optimizer)\n    print(loss, optimizer)\n"
    script = _script(
        tmp_path, f"{UPDATER}from steps import run\n{BEGIN}run(loss, optimizer, update=NativeScaler())", steps=steps
    )
    (other,) = script.imports
    assert [other.text(call.func) for call in other.loops.steps] == ["update"]
    (call,) = script.written_calls("run")
    assert leads.around(script).may(call)


def test_an_updater_that_nobody_makes_is_nothing(tmp_path: Path) -> None:
    found = leads.around(_script(tmp_path, f"{UPDATER}{BEGIN}print(loss)"))
    assert not (found.is_open or found.names or found.functions)


@pytest.mark.parametrize("folder", sorted((ROOT / "fixtures" / "projects").iterdir()), ids=lambda path: path.name)
def test_names_tell_no_less_than_values_in_whole_projects(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = sorted(folder.rglob("*.py"))
    by_names = Program(Options(), asked=paths)
    known = {path: leads.around(by_names.script(path)) for path in paths}
    monkeypatch.setattr(leads, "around", lambda _: leads.Leads(is_open=True))
    by_values = Program(Options(), asked=paths)
    for path in paths:
        script = by_values.script(path)
        for call in script.source.of(syntax.Call):
            callee = script.callee(call)
            if callee is None or not isinstance(callee.node, syntax.FunctionDef):
                continue
            if callee.script.loops.function_does(callee.node, Does.STEPS):
                assert known[path].may(call), script.text(call)
