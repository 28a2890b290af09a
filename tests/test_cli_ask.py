"""`speedlint ask`: what is known of a line, as a user sees it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.conftest import Project

TRAIN = """import torch
from config import Config
from losses import total
from torch.utils.data import DataLoader


def train(model, loader, optimizer, rows):
    for step, (images, labels) in enumerate(loader):
        loss = total(model(images.cuda()), labels)
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(loss.item())
            break


def main(rows):
    config = Config()
    model = torch.nn.Linear(4, 2).cuda()
    loader = DataLoader(rows, config.batch_size)
    optimizer = torch.optim.SGD(model.parameters(), lr=config.rate)
    for epoch in range(10):
        train(model, loader, optimizer, rows)


def left_over(x):
    return x

main([])
"""
LOSSES = """import torch.nn.functional as F


def total(output, labels):
    return F.cross_entropy(output, labels) * 2
"""
CONFIG = """class Config:
    batch_size = 16
    rate = 0.1
"""


@pytest.fixture
def training(project: Project) -> Project:
    """A program of three files."""
    for name, text in (("train.py", TRAIN), ("losses.py", LOSSES), ("config.py", CONFIG)):
        project.write(name, text)
    return project


def _asked(project: Project, place: str) -> dict[str, Any]:
    result = project.run("ask", place, "--format", "json")
    assert (result.exit_code, result.stderr) == (0, "")
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def _expression(project: Project, place: str, text: str) -> dict[str, Any]:
    return next(each for each in _asked(project, place)["expressions"] if each["text"] == text)


def _rows(project: Project, place: str) -> list[list[str]]:
    result = project.run("ask", place)
    assert (result.exit_code, result.stderr) == (0, "")
    return [line.split() for line in result.stdout.splitlines()]


def test_a_line_of_a_training_step(training: Project) -> None:
    rows = _rows(training, "train.py:9")
    assert rows[:2] == [
        "train.py:9: runs in every training step".split(),
        "9 | loss = total(model(images.cuda()), labels)".split(),
    ]
    assert "why: train.py:8: each turn of this loop is a training step".split() in rows
    assert not any(row[:1] == ["images.cuda"] for row in rows), "of a method its call says all"
    assert "gpu: the program trains on a GPU".split() in rows
    assert ["expression", "column", "role", "place", "value", "stands", "for"] in rows
    assert "images.cuda() 28 tensor GPU from `DataLoader` in train.py:20".split() in rows
    assert "loss 9 tensor GPU".split() in rows
    assert "model 22 module GPU made by `torch.nn.Linear` in train.py:19".split() in rows


def test_a_helper_names_the_calls_that_make_it_run_so_often(training: Project) -> None:
    found = _asked(training, "losses.py:5")
    assert found["frequency"] == "step"
    assert found["callers"] == [{"path": "train.py", "line": 9, "message": "called here"}]
    assert [(each["path"], each["line"]) for each in found["why"]] == [("train.py", 9), ("train.py", 8)]
    call = _expression(training, "losses.py:5", "F.cross_entropy(output, labels)")
    assert (call["name"], call["role"]) == ("torch.nn.functional.cross_entropy", "tensor")


def test_a_call_names_what_it_calls(training: Project) -> None:
    call = _expression(training, "train.py:9", "total(model(images.cuda()), labels)")
    assert call["definition"] == {"path": "losses.py", "line": 4, "message": "calls `total`"}
    assert "calls `total` in losses.py:4" in training.run("ask", "train.py:9").stdout


def test_a_constant_and_where_it_is_set(training: Project) -> None:
    size = _expression(training, "train.py:20", "config.batch_size")
    assert size["value"] == {"repr": "16", "set": {"path": "config.py", "line": 2, "message": "set here"}}
    assert "16, set in config.py:2" in training.run("ask", "train.py:20").stdout


def test_what_limits_a_line(training: Project) -> None:
    found = _asked(training, "train.py:13")
    assert found["frequency"] == "epoch"
    assert [each["line"] for each in found["why"]] == [12, 8]
    assert [each["message"] for each in found["why"]] == [
        "under this condition: once or so in a whole loop",
        "each turn of this loop is a training step",
    ]


def test_expressions_that_run_more_rarely_than_their_line(project: Project) -> None:
    project.write(
        "a.py", TRAIN.replace("print(loss.item())", "pass").replace("images.cuda()", "images if step % 9 else None")
    )
    project.write("losses.py", LOSSES)
    rows = [row for row in _rows(project, "a.py:9") if row]
    assert any(row[-1] == "runs" for row in rows)
    assert [row[0] for row in rows if row[-4:] == "every so many steps".split()] == ["None"]


def test_a_statement_without_expressions(training: Project) -> None:
    found = _asked(training, "train.py:14")
    assert (found["frequency"], found["expressions"]) == ("epoch", [])


def test_a_line_without_code(training: Project) -> None:
    assert training.run("ask", "train.py:5").stdout.rstrip() == "train.py:5: no code begins on this line"
    assert _asked(training, "train.py:5")["frequency"] is None


def test_a_function_that_nothing_calls(training: Project) -> None:
    (why,) = _asked(training, "train.py:27")["why"]
    assert (why["line"], why["message"]) == (26, "nothing in this program calls `left_over`")


def test_a_line_within_an_expression(project: Project) -> None:
    project.write("a.py", 'text = """\nsecond\n"""\n')
    assert [each["text"] for each in _asked(project, "a.py:2")["expressions"]] == ['"""\nsecond\n"""']


@pytest.mark.parametrize(("line", "text"), [(1, "torch.no_grad()"), (2, "x"), (3, "x"), (5, "(\n    1 +\n    2)")])
def test_where_statements_begin(project: Project, line: int, text: str) -> None:
    project.write("a.py", "@torch.no_grad()\ndef f(x):\n    return x\n\ny = (\n    1 +\n    2)\n")
    assert text in [each["text"] for each in _asked(project, f"a.py:{line}")["expressions"]]


def test_a_column_asks_for_what_stands_around_it(training: Project) -> None:
    found = [each["text"] for each in _asked(training, "train.py:9:22")["expressions"]]
    assert found == ["total(model(images.cuda()), labels)", "model(images.cuda())", "model"]


def test_text_from_files_is_made_harmless(project: Project) -> None:
    project.write("a.py", "x = '\x1b[31m[bold]' + \"\u202e\"\n")
    printed = project.run("ask", "a.py:1").stdout
    assert "\x1b" not in printed and "\u202e" not in printed
    assert "\\x1b[31m[bold]" in printed and "\\u202e" in printed
    assert project.run("ask", "a.py:1", "--format", "json").stdout.isascii()


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("train.py", "train.py: names no line; write FILE:LINE, such as `train.py:12`"),
        ("trian.py:3", "trian.py:3: does not exist; check the spelling"),
        ("train.py:0", "train.py:0: is no line of this file; name one from 1 to 29"),
        ("train.py:31", "train.py:31: is no line of this file; name one from 1 to 29"),
        ("train.py:99999999999", "train.py:999999999: is no line of this file; name one from 1 to 29"),
        ("broken.py:1", "broken.py:2: "),
        ("folder:1", "folder:1: is a folder; name a Python file in it"),
        ("a.ipynb:1", "a.ipynb:1: is a notebook, not Python; convert it with `jupyter nbconvert --to script`"),
        ("empty.py:1", "empty.py:1: is no line of this file; it is empty"),
        ("bytes.py:1", "bytes.py:1: "),
    ],
)
@pytest.mark.parametrize("style", ["text", "json"])
def test_bad_input_is_one_line(training: Project, place: str, said: str, style: str) -> None:
    training.write("broken.py", "x = 1\nfor\n")
    training.write("folder/a.py", "")
    training.write("a.ipynb", "{}")
    training.write("empty.py", "")
    training.write("bytes.py", b"\x00\xff\xfe")
    result = training.run("ask", place, "--format", style)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"error: {said}")
    assert result.stderr.count("\n") == 1


def test_a_configuration_as_a_whole_is_no_value(training: Project) -> None:
    training.write("conf.yaml", "rows:\n  workers: 4\n")
    training.write("read.py", "import yaml\n\nconf = yaml.safe_load(open('conf.yaml'))\nworkers = conf['rows']['workers']\n")
    assert "4, set in conf.yaml:2" in training.run("ask", "read.py:4").stdout
    assert _expression(training, "read.py:4", "conf")["value"] is None
