"""Questions that once had several answers, where those answers differed."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from speedlint.ask.program import Program
from speedlint.ask.script import Options, Script
from speedlint.facts import syntax
from speedlint.shapes.entry import is_entry
from speedlint.shapes.evaluation import is_evaluation
from speedlint.shapes.model.networks import is_loss
from speedlint.solve.gradients import gradients_off
from speedlint.solve.unpacking import written


def _script(folder: Path, text: str, **others: str) -> Script:
    for name, other in others.items():
        (folder / f"{name}.py").write_text(textwrap.dedent(other))
    path = folder / "train.py"
    path.write_text(textwrap.dedent(text))
    return Program(Options()).script(path)


def _call(script: Script, name: str) -> syntax.Call:
    return next(call for call in script.source.of(syntax.Call) if script.text(call.func) == name)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("print('trains')", True),
        ("for epoch in range(3):\n    print(epoch)", True),
        ("def train(): ...\nif __name__ == '__main__':\n    train()", True),
        ("def train(): ...\nif '__main__' == __name__:\n    train()", True),
        ("def train():\n    return __name__ == 'worker'", False),
        ("LR = 0.1", False),
    ],
)
def test_a_script_that_works_at_its_top_is_run(text: str, expected: bool, tmp_path: Path) -> None:
    assert is_entry(_script(tmp_path, text)) is expected


def test_a_module_that_is_imported_is_not_run(tmp_path: Path) -> None:
    assert not is_entry(_script(tmp_path, "print('hello')", other="import train"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("with torch.no_grad():\n    model()", True),
        ("@torch.inference_mode()\ndef f():\n    model()", True),
        ("with torch.set_grad_enabled(False):\n    model()", True),
        ("with torch.set_grad_enabled(flag):\n    model()", None),
        ("with torch.set_grad_enabled(True):\n    model()", None),
        ("with torch.inference_mode(False):\n    model()", None),
        ("with torch.no_grad():\n    with torch.enable_grad():\n        model()", None),
        ("with torch.enable_grad(), torch.no_grad():\n    model()", True),
        ("with torch.no_grad() if flag else nullcontext():\n    model()", None),
        ("with torch.no_grad():\n    def f():\n        model()", False),
        ("with torch.no_grad():\n    f = lambda: model()", None),
        ("torch.set_grad_enabled(False)\nmodel()", None),
        ("model()\ntorch.set_grad_enabled(False)", False),
        ("if flag:\n    torch.set_grad_enabled(False)\nelse:\n    model()", False),
        ("def f():\n    model()\nwith torch.no_grad():\n    f()", None),
        ("@contextmanager\ndef off():\n    with torch.no_grad():\n        yield\nwith off():\n    model()", None),
        ("model()", False),
    ],
)
def test_gradients_are_off(text: str, expected: bool | None, tmp_path: Path) -> None:
    script = _script(tmp_path, f"import torch\nfrom contextlib import contextmanager, nullcontext\n{text}")
    assert gradients_off(script, _call(script, "model")) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a, (b, c) = 1, (2, 3)", "3"),
        ("[a, c] = [1, 2]", "2"),
        ("*a, c = 1, 2, 3", None),
        ("a, *c = 1, 2", None),
        ("a, c = *b, 2", None),
        ("a, c = b()", None),
        ("c = a, b", "a, b"),
        ("for c in d: pass", None),
    ],
)
def test_a_part_of_a_tuple(text: str, expected: str | None, tmp_path: Path) -> None:
    script = _script(tmp_path, text)
    found = written(script.names.module.bindings["c"][0])
    assert (script.text(found) if found is not None else None) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("net.eval()\nmodel()", True),
        ("net.eval()\nnet.train()\nmodel()", False),
        ("model()\nnet.eval()", False),
        ("if flag:\n    net.eval()\nelse:\n    model()", False),
        ("def f():\n    net.eval()\nmodel()", False),
        ("for x in y:\n    model()\n    net.eval()", False),
    ],
)
def test_evaluation_mode_before(text: str, expected: bool, tmp_path: Path) -> None:
    script = _script(tmp_path, f"from torch import nn\nnet = nn.Linear(2, 2)\n{text}")
    assert is_evaluation(script, _call(script, "model")) is expected


LOSSES = """
import torch
from torch import nn
from elsewhere import DiceLoss, Backbone

class Weighted(nn.Module):
    def forward(self, x, y):
        return (x - y).abs().mean()

class PerceptualLoss(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Conv2d(3, 64, 3)

    def forward(self, x, y):
        return (self.features(x) - self.features(y)).square().mean()

made = {made}
made(x, y)
"""


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        ("nn.CrossEntropyLoss()", True),
        ("Weighted()", True),
        ("PerceptualLoss()", False),
        ("nn.Linear(2, 2)", False),
        ("nn.GRUCell(2, 2)", False),
        ("nn.Embedding(2, 2)", False),
        ("nn.DataParallel(nn.MSELoss())", True),
    ],
)
def test_a_loss_is_a_module_without_layers(made: str, expected: bool, tmp_path: Path) -> None:
    script = _script(tmp_path, LOSSES.replace("{made}", made))
    assert is_loss(script, _call(script, "made")) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("if torch.cuda.is_available():\n    model()", False),
        ("if torch.cuda.is_available():\n    pass\nelse:\n    model()", True),
        ("if not torch.cuda.is_available():\n    model()", True),
        ("if not torch.accelerator.is_available():\n    model()", True),
        ("if torch.cuda.is_available():\n    pass\nelif flag:\n    model()", True),
        ("found = torch.cuda.is_available()\nif found:\n    pass\nelse:\n    model()", True),
        ("out = pool() if torch.cuda.is_available() else model()", True),
        ("if flag:\n    pass\nelse:\n    model()", False),
        ("if torch.cuda.is_available() and flag:\n    pass\nelse:\n    model()", False),
        ("if not torch.cuda.is_available():\n    def f():\n        model()", True),
    ],
)
def test_only_where_there_is_no_gpu(text: str, expected: bool, tmp_path: Path) -> None:
    script = _script(tmp_path, f"import torch\n{text}")
    assert script.loops.guards.is_without_gpu(_call(script, "model")) is expected
