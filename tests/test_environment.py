"""Variables that a program sets for itself: where, to what, in which case, and whether they can be taken out."""

from __future__ import annotations

from pathlib import Path

import pytest

from speedlint.ask.program import Program
from speedlint.ask.script import Options, Script
from speedlint.cures import unsetting
from speedlint.edits import CannotEdit
from speedlint.facts import syntax
from speedlint.shapes.backend import environment, intent
from speedlint.shapes.backend.intent import Intent
from tests.conftest import Project

NAME = "CUDA_LAUNCH_BLOCKING"
HEAD = "import os\nfrom os import environ\nKEY = 'CUDA_LAUNCH_BLOCKING'\n"


def _script(tmp_path: Path, text: str) -> Script:
    path = tmp_path / "train.py"
    path.write_text(HEAD + text)
    return Program(Options(torch=(2, 13))).script(path)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (f"os.environ['{NAME}'] = '1'", "1"),
        ("os.environ[KEY] = str(1)", "1"),
        (f"environ['{NAME}'] = value()", None),
        (f"environ.setdefault('{NAME}', '0')", "0"),
        (f"os.putenv('{NAME}', '1')", "1"),
        (f"os.environ.update({NAME}='1')", "1"),
        (f"os.environ.update({{'{NAME}': '1'}})", "1"),
        (f"os.environ |= {{'{NAME}': '1'}}", "1"),
        (f"extra = {{'{NAME}': '1'}}\nos.environ.update(extra)", "1"),
    ],
)
def test_ways_to_set_a_variable(tmp_path: Path, text: str, value: str | None) -> None:
    assert [one.value for one in environment.settings(_script(tmp_path, text + "\n"), NAME)] == [value]


@pytest.mark.parametrize(
    "text",
    [f"env = os.environ.copy()\nenv['{NAME}'] = '1'", f"os.environ.get('{NAME}')", "os.environ['OTHER'] = '1'", "x = {}"],
)
def test_what_sets_nothing(tmp_path: Path, text: str) -> None:
    assert not [*environment.settings(_script(tmp_path, text + "\n"), NAME)]


@pytest.mark.parametrize(
    ("after", "undone"),
    [
        (f"os.environ['{NAME}'] = '0'", True),
        (f"os.environ.pop('{NAME}')", True),
        (f"del os.environ['{NAME}']", True),
        (f"if x():\n    os.environ['{NAME}'] = '0'", False),
        (f"def f():\n    os.environ['{NAME}'] = '0'", False),
    ],
)
def test_undone_further_down(tmp_path: Path, after: str, undone: bool) -> None:
    script = _script(tmp_path, f"os.environ['{NAME}'] = '1'\n{after}\n")
    assert environment.is_undone(next(environment.settings(script, NAME))) is undone


@pytest.mark.parametrize(
    "after",
    [f"print(os.environ['{NAME}'])", f"os.getenv('{NAME}')", f"'{NAME}' in os.environ", f"del os.environ['{NAME}']"],
)
def test_what_is_read_is_not_taken_out(tmp_path: Path, after: str) -> None:
    path = tmp_path / "train.py"
    path.write_text(f"import os\nos.environ['{NAME}'] = '1'\n{after}\n")
    with pytest.raises(CannotEdit, match="elsewhere"):
        unsetting.dropped(next(environment.settings(Program(Options()).script(path), NAME)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("mark()", Intent.ALWAYS),
        ("if __name__ == '__main__':\n    mark()", Intent.ALWAYS),
        ("if torch.cuda.is_available():\n    mark()", Intent.ALWAYS),
        ("if not torch.cuda.is_available():\n    mark()", Intent.NEVER),
        ("if torch.cuda.is_available():\n    pass\nelse:\n    mark()", Intent.NEVER),
        ("if True:\n    mark()", Intent.ALWAYS),
        ("if False:\n    mark()", Intent.NEVER),
        ("DEBUG = False\nif DEBUG:\n    mark()", Intent.NEVER),
        ("if args.debug:\n    mark()", Intent.CHOSEN),
        ("if args.debug and torch.cuda.is_available():\n    mark()", Intent.CHOSEN),
        ("if args.fast:\n    pass\nelse:\n    mark()", Intent.CHOSEN),
        ("args.debug and mark()", Intent.CHOSEN),
        ("x = mark() if args.debug else None", Intent.CHOSEN),
        ("try:\n    pass\nexcept ValueError:\n    mark()", Intent.NEVER),
        ("def main():\n    mark()\nmain()", Intent.ALWAYS),
        ("def main():\n    mark()\nif args.debug:\n    main()", Intent.CHOSEN),
        ("def enable_debugging():\n    mark()\nenable_debugging()", Intent.CHOSEN),
        ("def main():\n    if not args.debug:\n        return\n    mark()\nmain()", Intent.CHOSEN),
    ],
)
def test_when_a_line_runs(tmp_path: Path, text: str, expected: Intent) -> None:
    script = _script(tmp_path, f"import torch\nfrom setup import args, mark\n{text}\n")
    call = next(call for call in script.source.of(syntax.Call) if script.text(call) == "mark()")
    assert intent.of(script, call) is expected


TRAINS = """
import torch
from torch import nn
import argparse

parser = argparse.ArgumentParser()
parser.add_argument("--mode", default="train")
parser.add_argument("--debug", action="store_true")
args = parser.parse_args()
device = torch.device("cuda")
model = nn.Linear(16, 4).to(device)
optimizer = torch.optim.AdamW(model.parameters(), fused=True)
loader = torch.load("loader.pt")


def train():
    for x, y in loader:
        with torch.autograd.detect_anomaly():
            loss = nn.functional.cross_entropy(model(x.to(device)), y.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


if {test}:
    train()
{otherwise}
"""


@pytest.mark.parametrize(
    ("test", "otherwise", "level"),
    [
        ('args.mode == "train"', "", "warning"),
        ('args.mode == "test"', "    pass\nelse:\n    train()", "warning"),
        ("args.debug", "", "note"),
        ('args.mode == "train" and args.debug', "", "note"),
    ],
)
def test_a_condition_that_decides_whether_it_trains(project: Project, test: str, otherwise: str, level: str) -> None:
    project.configure("select = ['SPD406']")
    text = TRAINS.format(test=test, otherwise=otherwise).replace("    train()\n    pass", "    pass")
    (found,) = project.findings(project.write("train.py", text), "--notes")
    assert found["level"] == level


FITS = """
import torch


def fit(model, loader):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for rows in loader:
        loss = model(rows.cuda()).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())
"""
STARTS = """
import torch
import {module}
from fitting import fit

fit(torch.nn.Linear(512, 512).cuda(), torch.utils.data.DataLoader(torch.load("rows.pt"), num_workers=2))
"""


@pytest.mark.parametrize(("others", "worth"), [(("searching",), "low"), (("searching", "json"), "medium")])
def test_a_search_for_anomalies_that_one_of_several_programs_switches_on(
    project: Project, others: tuple[str, ...], worth: str
) -> None:
    project.configure("select = ['SPD301']")
    project.write("searching.py", "import torch\n\ntorch.autograd.set_detect_anomaly(True)\n")
    for number, module in enumerate(others):
        project.write(f"train_{number}.py", STARTS.format(module=module))
    found = project.findings(project.write("fitting.py", FITS))
    assert [each["worth"] for each in found] == [worth]
