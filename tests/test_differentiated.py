"""Passes that are put under ``no_grad``: only where nothing that they compute is differentiated (SPD505)."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from speedlint.ask.program import Program
from speedlint.ask.script import Options, Script
from speedlint.facts import syntax
from speedlint.shapes.optimizer import differentiated
from tests.conftest import Project

TEXT = """
import functools
import types

import torch
from torch import nn


class Meter:
    def __init__(self):
        self.sum = 0.0

    def update(self, value):
        self.sum += float(value)

    def swap(self, value):
        self.before, self.latest = self.latest, value
        return self.before


def mean_of(values):
    return sum(value / len(values) for value in values)


def evaluate(model, loader, criterion, hook=None):
    meter, kept, total = Meter(), [], 0.0
    for x, y in loader:
        out = model(x)
        BODY
    return RESULT


def main(loader):
    model, criterion = nn.Linear(4, 2), nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        loss = mean_of([criterion(model(x), y)])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    result = evaluate(model, loader, criterion)
    CALLER
"""
NEVER = {
    "numbers": ("total += criterion(out, y).item()", "total / 3", "print(result)"),
    "counts": ("total += (out.argmax(1) == y).sum()", "total", "print(result)"),
    "a meter of numbers": ("meter.update(criterion(out, y))", "meter.sum", "print(result)"),
    "detached": ("kept.append(out.detach())", "torch.cat(kept)", "result.sum().backward()"),
    "a loss that is printed": ("total = total + criterion(out, y)", "total / 3", "print(f'{result:.3f}', result > 2)"),
    "what a function that trainings call too gives back": ("total += mean_of([out]).item()", "total", "print(result)"),
    "arrays": ("kept.append(out.cpu().numpy())", "kept", "print(len(result))"),
}
PERHAPS = {
    "added in place to a tensor that is returned": (
        "kept = torch.zeros(()); kept.add_(out.sum())",
        "kept",
        "result.backward()",
        True,
    ),
    "copied into a tensor that is returned": (
        "kept = torch.zeros(5, 2); kept.copy_(out)",
        "kept",
        "result.sum().backward()",
        True,
    ),
    "set by its name": ("setattr(model, 'latest', out.sum())", "total", "getattr(model, 'latest').backward()", False),
    "held by a partial": (
        "kept.append(functools.partial(torch.add, out.sum()))",
        "kept",
        "result[0](1.0).backward()",
        False,
    ),
    "matched": ("match out:\n            case value: kept.append(value)", "kept", "result[0].sum().backward()", False),
    "a default": ("kept.append(lambda value=out: value.sum())", "kept", "result[0]().backward()", False),
    "written out": ("torch.add(out, 1, out=kept)", "kept", "result.sum().backward()", False),
    "a change that raises with gradients": (
        "try:\n            model.bias.add_(1)\n        except RuntimeError:\n            total += 1",
        "total",
        "print(result)",
        False,
    ),
    "a tensor that is handed in and added to": ("hook += out.sum()", "0", "print(result)", False),
    "a function that is handed in": ("hook(criterion(out, y))", "0", "print(result)", False),
    "an object that is handed in": ("hook.step(criterion(out, y), model)", "0", "print(result)", False),
    "what another call of a method takes": ("meter.swap(out)", "meter", "result.swap(0).sum().backward()", True),
    "a loss that its caller differentiates": ("total = total + criterion(out, y)", "total / 3", "result.backward()", True),
    "the same, scaled": ("total = total + criterion(out, y)", "total", "(2 * result / 3).backward()", True),
    "outputs that its caller differentiates": (
        "kept.append(out)",
        "torch.cat(kept)",
        "loss = result.sum(); loss.backward()",
        True,
    ),
    "one of several results": (
        "total = total + criterion(out, y)",
        "(total, kept)",
        "loss, _ = result; loss.backward()",
        True,
    ),
    "a loss that is printed as a tensor": ("total = total + criterion(out, y)", "total / 3", "print(result)", False),
    "outputs that are saved": ("kept.append(out)", "kept", "torch.save(result, 'outputs.pt')", False),
    "an attribute": ("model.last = out", "0", "model.last.sum().backward()", True),
    "a parameter beside it": ("weight = nn.Parameter(torch.ones(())); total = total + weight", "0", "print(result)", False),
    "what asks for gradients": (
        "weight = torch.ones(2, requires_grad=True) * 2",
        "weight",
        "result.sum().backward()",
        False,
    ),
    "a bar of progress": (
        "kept.append(criterion(out, y))",
        "kept",
        "import tqdm; [each.backward() for each in tqdm.tqdm(result)]",
        True,
    ),
    "a product of numbers": ("kept.append(criterion(out, y))", "kept", "import math; math.prod(result).backward()", True),
    "a sum of another name": ("held = torch.zeros(4, 2); total = held; total += out", "held", "print(result)", False),
    "what `format` shows whole": ("print('{}'.format(out.mean(0)))", "0", "print(result)", False),
    "what an error shows": ("if len(x) > 9: raise ValueError(out.mean(0))", "0", "print(result)", False),
    "an array that is asked for in a `try`": (
        "try:\n            kept.append(out.numpy())\n        except RuntimeError:\n            pass",
        "0",
        "print(result)",
        False,
    ),
    "outputs that are shown whole": ("print(f'{out}')", "0", "print(result)", False),
    "an absolute value": ("total = total + abs(out.mean() - 1.0)", "total", "result.backward()", True),
    "the lesser of two tensors": ("total = total + torch.max(out, x[:, :2])[1].sum()", "total", "result.backward()", True),
    "what a call may have elsewhere": ("rows = hook.setdefault('rows', []); rows.append(out)", "0", "print(result)", False),
    "a list of two names": ("other = rows = []; rows.append(out)", "other", "result[0].sum().backward()", False),
    "a function that is handed on": ("list(map(torch.Tensor.backward, [out.sum()]))", "0", "print(result)", False),
    "a buffer": ("model.register_buffer('last', out)", "0", "model.last.sum().backward()", False),
    "a queue": ("import queue; held = queue.Queue(); held.put(out)", "held", "result.get().sum().backward()", False),
    "what is read by its name": ("hook.last = out", "0", "getattr(model, 'last').sum().backward()", False),
    "an entry of what is handed in": ("hook['loss'] = criterion(out, y)", "0", "print(result)", False),
    "a weight": ("total = total + (model.weight ** 2).sum()", "total", "result.backward()", True),
    "an object of a library": (
        "total = total + criterion(out, y)",
        "types.SimpleNamespace(loss=total)",
        "result.loss.backward()",
        True,
    ),
    "what a forward hook keeps": (
        "total += (out.argmax(1) == y).sum()",
        "total",
        "model.register_forward_hook(lambda module, inputs, output: seen.append(output))",
        False,
    ),
    "a method of a dict": ("kept = {}; kept.setdefault('a', []).append(out)", "kept", "print(result)", False),
    "what is changed in place later": ("total = criterion(out, y); total *= 2", "total", "result.backward()", True),
    "a part of an object that is changed": (
        "meter.sum = criterion(out, y); meter.sum /= 2",
        "meter.sum",
        "result.backward()",
        True,
    ),
    "a graph over several machines": (
        "kept.append(out)",
        "torch.stack(kept)",
        "torch.distributed.autograd.backward(0, [result.sum()])",
        True,
    ),
    "a method of a network out of sight": ("total = model.loss_of(out)", "total", "result.backward()", True),
    "gradients of inputs": (
        "kept.append(out)",
        "torch.stack(kept)",
        "torch.autograd.grad(result.sum(), model.weight)",
        True,
    ),
}


def _script(folder: Path, body: str, result: str, caller: str) -> tuple[Script, syntax.For]:
    (folder / "train.py").write_text(TEXT.replace("BODY", body).replace("RESULT", result).replace("CALLER", caller))
    script = Program(Options()).script(folder / "train.py")
    return script, script.source.of(syntax.For)[0]


@pytest.mark.parametrize(("body", "result", "caller"), NEVER.values(), ids=NEVER.keys())
def test_what_is_never_differentiated(body: str, result: str, caller: str, tmp_path: Path) -> None:
    script, loop = _script(tmp_path, body, result, caller)
    differentiated.check_never(script, loop)


@pytest.mark.parametrize(("body", "result", "caller", "is_certain"), PERHAPS.values(), ids=PERHAPS.keys())
def test_what_may_be(body: str, result: str, caller: str, is_certain: bool, tmp_path: Path) -> None:
    script, loop = _script(tmp_path, body, result, caller)
    with pytest.raises(differentiated.NotProven) as reason:
        differentiated.check_never(script, loop)
    assert reason.value.is_certain is is_certain


NET = """

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head, self.seen = nn.Linear(4, 2), nn.Linear(2, 2), None

    DECORATED
    def unit(self):
        return self.head.bias * 2

    def forward(self, x, memo={}):
        h = self.body(x)
        KEEP
        return self.head(h) + self.unit()


def evaluate"""
KEPT = {
    "by its name": ("setattr(self, 'seen', h)", ""),
    "on the class": ("type(self).seen = h", ""),
    "among its buffers": ("self._buffers['seen'] = h", ""),
    "in its table": ("self.__dict__.update(seen=h)", ""),
    "on what it is handed": ("x.seen = h", ""),
    "in a default": ("memo['seen'] = h", ""),
    "in a variable of the module": ("FEATURES.append(h)", ""),
    "by a variable of the context": ("FEATURES.set(h)", ""),
    "by a generator": ("self.sink.send(h)", ""),
    "by listeners": ("[tell(h) for tell in self.listeners]", ""),
    "in a cached property": ("pass", "@functools.cached_property"),
    "by a decorator of the program's": ("pass", "@kept_once"),
}
NOT_KEPT = {
    "nothing": ("pass", ""),
    "a number on itself": ("self.seen = float(h.sum())", ""),
    "a list of the call": ("parts = []; parts.append(h); h = parts[0]", ""),
    "an entry of its own tensor": ("out = torch.zeros_like(h); out[0] = h[0]; h = out", ""),
    "a table that is read": ("n = len(self._modules.values())", ""),
    "another forward": ("h = nn.functional.relu(h)", "@torch.no_grad()"),
}


def _of_net(folder: Path, keep: str, decorated: str) -> tuple[Script, syntax.For]:
    net = NET.replace("KEEP", keep).replace("DECORATED", decorated or "# as it is")
    text = TEXT.replace("\n\ndef evaluate", f"\n\nFEATURES = []\n\n\ndef kept_once(run):\n    return run\n{net}").replace(
        "nn.Linear(4, 2), nn.CrossEntropyLoss()", "Net(), nn.CrossEntropyLoss()"
    )
    text = (
        text.replace("BODY", "total += (out.argmax(1) == y).sum().item()").replace("RESULT", "total").replace("CALLER", "0")
    )
    (folder / "train.py").write_text(text)
    script = Program(Options()).script(folder / "train.py")
    return script, next(each for each in script.source.of(syntax.For) if script.function(each) is not None)


@pytest.mark.parametrize(("keep", "decorated"), KEPT.values(), ids=KEPT.keys())
def test_what_a_network_keeps_of_a_pass(keep: str, decorated: str, tmp_path: Path) -> None:
    script, loop = _of_net(tmp_path, keep, decorated)
    with pytest.raises(differentiated.NotProven):
        differentiated.check_never(script, loop)


@pytest.mark.parametrize(("keep", "decorated"), NOT_KEPT.values(), ids=NOT_KEPT.keys())
def test_what_a_network_only_computes(keep: str, decorated: str, tmp_path: Path) -> None:
    differentiated.check_never(*_of_net(tmp_path, keep, decorated))


NORMED = TEXT.replace("BODY", "total += out.sum().item()").replace("RESULT", "total")


@pytest.mark.parametrize(
    ("made", "caller", "why"),
    [
        ("nn.utils.weight_norm(nn.Linear(4, 2))", "print(model.weight.norm())", "what the last pass has made"),
        ("nn.utils.weight_norm(nn.Linear(4, 2))", "print(model)", None),
        ("nn.Linear(4, 2)", "print(model.weight.norm())", None),
        ("nn.Linear(4, 2)", "with nn.utils.parametrize.cached():\n        pass", "would have no graph"),
    ],
)
def test_weights_that_a_pass_makes(made: str, caller: str, why: str | None, tmp_path: Path) -> None:
    text = NORMED.replace("model, criterion = nn.Linear(4, 2)", f"model, criterion = {made}").replace("CALLER", caller)
    (tmp_path / "train.py").write_text(text)
    script = Program(Options()).script(tmp_path / "train.py")
    loop = script.source.of(syntax.For)[0]
    if why is None:
        differentiated.check_never(script, loop)
        return
    with pytest.raises(differentiated.NotProven, match=why):
        differentiated.check_never(script, loop)


def test_a_pass_within_autocast_keeps_casts_without_a_graph(tmp_path: Path) -> None:
    text = NORMED.replace("CALLER", "pass").replace(
        "    for x, y in loader:\n        out = model(x)\n        total += out.sum().item()\n",
        "    with torch.autocast('cuda'):\n        for x, y in loader:\n            total += model(x).sum().item()\n",
    )
    (tmp_path / "train.py").write_text(text)
    script = Program(Options()).script(tmp_path / "train.py")
    with pytest.raises(differentiated.NotProven, match="keeps the casts of weights"):
        differentiated.check_never(script, script.source.of(syntax.For)[0])


def test_other_code_runs_while_a_coroutine_waits(tmp_path: Path) -> None:
    text = textwrap.dedent(TEXT).replace("def evaluate", "async def evaluate")
    (tmp_path / "train.py").write_text(text.replace("BODY", "await hook()").replace("RESULT", "0").replace("CALLER", "pass"))
    script = Program(Options()).script(tmp_path / "train.py")
    with pytest.raises(differentiated.NotProven, match="while it waits"):
        differentiated.check_never(script, script.source.of(syntax.For)[0])


OLD = """
import torch
from torch import nn
from torch.utils.ffi import _wrap_function

def evaluate(model, loader):
    model.eval()
    total = 0.0
    for images, labels in loader:
        total += nn.functional.cross_entropy(model(images.cuda()), labels.cuda()).item()
    return total

def main(loader, held_out):
    model = nn.Sequential(nn.Conv2d(1, 64, 9), nn.Flatten(), nn.LazyLinear(10)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(90):
        for images, labels in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(images.cuda()), labels.cuda()).backward()
            optimizer.step()
        print(evaluate(model, held_out))
"""
SHOWN = """
@torch.no_grad()
def shown(model, images):
    return model(images)
"""


@pytest.mark.parametrize("more", ["", SHOWN])
def test_code_of_old_releases_is_told_where_it_names_no_grad_itself(project: Project, more: str) -> None:
    project.configure("select = ['SPD505']")
    found = project.findings(project.write("train.py", OLD + more))
    assert len(found) == bool(more)
    assert all("with torch.no_grad()" in each["fix"]["edits"][0]["text"] for each in found)
