"""Deferred reads: each reason not to write one, and what half precision, shapes and counts add to what is written."""

from __future__ import annotations

import contextlib
import textwrap
from pathlib import Path

import pytest

from speedlint.ask.program import Program
from speedlint.ask.script import Options, Script
from speedlint.cures import gathering, throttling
from speedlint.cures.deferral import keep_on_device
from speedlint.cures.gains import check_gain, throttled
from speedlint.edits import CannotEdit
from speedlint.facts import syntax
from speedlint.shapes.sync import reads
from speedlint.torch.words import Frequency
from tests.conftest import Project

LOOP = """
import math, torch
from torch import nn
import torch.nn.functional as F
model = nn.Linear(4, 4).cuda()
def train(loader, optimizer, log, lam, env=None):
    {before}
    for step, (x, y) in enumerate(loader):
        x, y = x.cuda(), y.cuda()
        out = model(x)
        loss = F.cross_entropy(out, y)
        loss.backward()
        optimizer.step()
        {inside}
    {after}
"""


def _script(tmp_path: Path, before: str, inside: str, after: str, head: str = "") -> Script:
    def block(text: str, indent: int) -> str:
        return textwrap.indent(text, " " * indent).lstrip()

    path = tmp_path / "train.py"
    path.write_text(head + LOOP.format(before=block(before, 4), inside=block(inside, 8), after=block(after, 4)))
    return Program(Options(torch=(2, 13))).script(path)


def _fixed(script: Script) -> str:
    """The code after the first read of one number is deferred."""
    for call in script.source.of(syntax.Call):
        tensor = reads.scalar(script, call)
        if tensor is not None and script.frequency(call) is Frequency.STEP:
            data = script.source.data
            for edit in sorted(keep_on_device(script, call, tensor), reverse=True):
                data = data[: edit.start] + edit.text.encode() + data[edit.end :]
            return data.decode()
    raise AssertionError("no read is found")


@pytest.mark.parametrize(
    ("before", "inside", "after", "why"),
    [
        ("t = 0", "t += loss.item()\nlog(t)", "return t", "`t` is read in every step"),
        ("t = 0", "t += loss.item()", "return lambda: t", "another function"),
        ("t = 0", "t += loss.item()", "print(f'{t=}')", "shows how it is written"),
        ("t = 0", "t += loss.item()", "return locals()", "may read it"),
        ("t = log()", "t += loss.item()", "return t", "starts from zero is not seen"),
        ("t = 0", "t += loss.item() * lam", "return t", "may be no number"),
        ("t = 0", "t += int(loss)", "return t", "changes the value"),
        ("t = 0", "t += out.max().item()", "return t", "whole number is not known"),
        ("t = 0", "t += (out.argmax(1) == y).sum().item()\nt += 0.5", "return t", "is also set on line"),
        ("", "lam += loss.item()", "return lam", "not a variable of this function alone"),
        ("t = 0", "v = loss.item()\nloss /= 2\nt += v", "return t", "changes the tensor in place"),
        ("t = 0", "v = loss.item()\nloss.mul_(2)\nt += v", "return t", "changes the tensor in place"),
        ("t = []", "whole = loss\nt.append(loss.item())\nif lam: whole += lam", "return t", "changes the tensor in place"),
        ("t = []", "t.append(loss.item())\nwhole = loss.view(-1)\nwhole += lam", "return t", "changes the tensor in place"),
        ("t = 0", "v = loss.item()\nv /= 2\nt += v", "return t", "`v` is also set"),
        ("t = []", "t.append(loss.item())\nif step % 9 == 0: print(sum(t))", "return t", "used within the loop"),
        ("t = [0.0]", "t.append(loss.item())", "return t", "not only a list that starts empty"),
        ("t = {}", "t[step] = loss.item()", "return t", "used at once"),
        ("", "log(loss.item())", "", "takes it as a number"),
        ("", "if math.isnan(loss.item()): return", "", "takes it as a number"),
        ("t = 0.0", "part = loss * 2 if lam else torch.tensor(0.)\nt += part.item()", "return t", "which is not on the GPU"),
        ("t = 0.0", "part = 0.0\nif lam: part = part + loss\nt += float(part)", "return t", "which is no tensor"),
        ("t = 0.0", "b = model.to('cuda:1')(x).sum()\nt += loss.item()\nt += b.item()", "return t", "on several GPUs"),
    ],
)
def test_what_is_not_deferred(tmp_path: Path, before: str, inside: str, after: str, why: str) -> None:
    with pytest.raises(CannotEdit, match=why):
        _fixed(_script(tmp_path, before, inside, after))


@pytest.mark.parametrize(
    ("before", "inside", "after", "wanted"),
    [
        ("t = 0", "t += loss.item()", "return t", ("t += loss.detach()", "return float(t)")),
        (
            "t = []",
            "part = loss * 2\nwhole = part\nwhole += loss\nt.append(part.item())",
            "return t",
            ("t.append(part.detach().clone())",),
        ),
        ("t, n = 0., 0", "t = t + loss.item() / 2", "return t", ("t = t + loss.detach() / 2", "return float(t)")),
        ("t = 0", "t += out.max().item()", "return t / 3", ("t += out.max().detach()", "return float(t) / 3")),
        ("t = 0", "t += (out - 1).abs().mean().item()", "t /= 2\nreturn t", ("t = float(t) / 2", "return t\n")),
        ("t = 0", "t += float(out.mean() + loss)", "return t", ("t += (out.mean() + loss).detach()",)),
        ("t = 0", "t += y.eq(out.argmax(1)).sum().item()", "return t", ("return int(t)",)),
        ("t = 0.0", "t += y.eq(out.argmax(1)).sum().item()", "return t", ("return float(t)",)),
        ("t = 0", "t += float(y.eq(out.argmax(1)).sum())", "return t", (".sum().float()", "return float(t)")),
        ("t = 0", "t += float(out.max())", "return t", ("t += out.max().detach().float()", "return float(t)")),
        ("t = 0", "t += loss.item() * lam.size(0)", "return t", ("t += loss.detach() * lam.size(0)",)),
        ("t = 0.0", "t += out[0, :1].item()\nt += loss.item()", "return t", ("t += out[0, :1].detach().squeeze()",)),
        ("t = 0.0", "t += loss.item()\nt += out[0, :1].item()", "return t", ("t += loss.detach()\n",)),
        (
            "t = []",
            "part = out[0, 0] if lam else torch.zeros(1, device='cuda')\nt.append(part.item())",
            "return t",
            ("t.append(part.detach().squeeze().clone())",),
        ),
        (
            "t, u = [], []",
            "t.append(loss.item())",
            "t = sum(t)\nreturn t",
            ("t = torch.stack(t).tolist() if t else []",),
        ),
    ],
)
def test_what_is_deferred(tmp_path: Path, before: str, inside: str, after: str, wanted: tuple[str, ...]) -> None:
    fixed = _fixed(_script(tmp_path, before, inside, after))
    for text in wanted:
        assert text in fixed


@pytest.mark.parametrize(
    ("inside", "wanted"),
    [
        ("t += loss.detach().item()", "t += loss.detach()\n"),
        ("t += loss.cpu().item()", "t += loss.detach()\n"),
        ("t += float(loss.data.cpu().numpy())", "t += loss.data\n"),
        ("t += loss.detach().abs().mean().item()", "t += loss.detach().abs().mean()\n"),
        ("with torch.no_grad(): t += F.mse_loss(out, y).item()", "t += F.mse_loss(out, y)\n"),
        ("with torch.no_grad(): t += (y == out.argmax(1)).sum().item()", "t += (y == out.argmax(1)).sum()\n"),
        ("with torch.no_grad(): t += loss.item()", "t += loss.detach()\n"),
        ("with torch.set_grad_enabled(x): t += F.mse_loss(out, y).item()", "t += F.mse_loss(out, y).detach()\n"),
    ],
)
def test_detach_is_written_where_a_graph_may_be_held(tmp_path: Path, inside: str, wanted: str) -> None:
    assert wanted in _fixed(_script(tmp_path, "t = 0.0", inside, "return t"))


@pytest.mark.parametrize(
    ("beside", "throttling", "stays"),
    [
        ("print(loss)", False, True),
        ("print(loss)", True, False),
        ("text = f'{loss}'", True, True),
        ("if torch.isnan(loss): raise ValueError", True, True),
        ("if not log and loss.item() > 3: pass", True, False),
        ("if loss.item() > 3: pass", True, True),
        ("if log: print(loss)", False, False),
        ("print(out)", False, False),
        ("u += loss.item()", False, False),
    ],
)
def test_a_read_beside_one_that_stays(tmp_path: Path, beside: str, throttling: bool, stays: bool) -> None:
    script = _script(tmp_path, "t = u = 0.0", f"t += loss.item()\n{beside}", "return t, u")
    read = script.method_calls("item")[0]
    tensor = reads.scalar(script, read)
    assert tensor is not None
    with pytest.raises(CannotEdit, match="in the same step") if stays else contextlib.nullcontext():
        check_gain(script, read, tensor, throttling=throttling)


@pytest.mark.parametrize(
    ("counted", "first"),
    [
        ("n += 1\nprint(loss)", "n % 50 == 1"),
        ("print(loss)\nn += 1", "n % 50 == 0"),
    ],
)
def test_the_first_step_is_shown(tmp_path: Path, counted: str, first: str) -> None:
    script = _script(tmp_path, "n = 0", f"step = 0\n{counted}", "")
    assert throttling.throttled(script, next(script.calls("print")))[0].text.startswith(f"if {first}:")


_TURNS = """
import torch

def fit(model, critic, loader, batches, steps):
    model, critic = model.cuda(), critic.cuda()
    optimizer, other = torch.optim.Adam(model.parameters()), torch.optim.Adam(critic.parameters())
    loader = torch.utils.data.DataLoader(loader)
{loops}
"""
_ADVERSARIAL = """
for {outer}:
    for {inner}:
        loss = critic(next(batches).cuda()).mean()
        loss.backward()
        other.step()
        {print}
    model(next(batches).cuda()).mean().backward()
    optimizer.step()
"""
_TURN = """
for {outer}:
    loss = model(next(batches).cuda()).mean()
    loss.backward()
    optimizer.step()
    print(loss)
"""


@pytest.mark.parametrize(
    ("loops", "counter"),
    [
        (_TURN.format(outer="i in range(10_000)"), "i % 50 == 0"),
        (_TURN.format(outer="i in range(1, 10_001)"), "i % 50 == 1"),
        (_TURN.format(outer="i in range(len(loader))"), "i % 50 == 0"),
        (_TURN.format(outer="i in range(10)"), None),
        (_TURN.format(outer="i in range(50)"), None),
        (_TURN.format(outer="i in range(0, 10_000, 32)"), None),
        (_TURN.format(outer="i in range(steps)"), "i % 50 == 0"),
        (_TURN.format(outer="i, part in enumerate([batches, batches])"), None),
        (_TURN.format(outer="_ in range(10_000)"), None),
        (_TURN.format(outer="_, x in enumerate(loader)"), None),
        (_ADVERSARIAL.format(outer="i in range(10_000)", inner="j in range(5)", print="print(loss)"), "i % 50 == 0"),
        (
            _ADVERSARIAL.format(outer="i, x in enumerate(loader)", inner="_ in range(steps)", print="print(loss)"),
            "i % 50 == 0",
        ),
        (_ADVERSARIAL.format(outer="_ in range(10_000)", inner="j in range(100)", print="print(loss)"), None),
        ("n = 0\n" + _TURN.format(outer="x in range(steps)") + "    n += 1", "x % 50 == 0"),
        (
            "for epoch in range(9):\n    n = 0"
            + textwrap.indent(_TURN.format(outer="x in range(10)") + "    n += 1", "    "),
            None,
        ),
        (
            "n = 0\nfor epoch in range(90):" + textwrap.indent(_TURN.format(outer="x in range(10)") + "    n += 1", "    "),
            "n % 50 == 0",
        ),
    ],
)
def test_what_counts_the_training_steps(tmp_path: Path, loops: str, counter: str | None) -> None:
    path = tmp_path / "train.py"
    path.write_text(_TURNS.format(loops=textwrap.indent(loops, "    ")))
    script = Program(Options(torch=(2, 4))).script(path)
    with pytest.raises(CannotEdit, match="count") if counter is None else contextlib.nullcontext():
        assert throttling.throttled(script, next(script.calls("print")))[0].text.startswith(f"if {counter}:")


def test_half_precision_is_not_added_up(tmp_path: Path) -> None:
    script = _script(tmp_path, "t = 0", "t += loss.item()", "return t", head="from torch.cuda.amp import autocast\n")
    assert "t += loss.detach().float()" in _fixed(script)


def test_a_meter_takes_no_dimension(tmp_path: Path) -> None:
    meter = textwrap.dedent("""
        class Meter:
            def __init__(self):
                self.sum = 0
            def update(self, value):
                self.sum += value
    """)
    script = _script(tmp_path, "m = Meter()", "m.update(loss.item())", "return m.sum", head=meter)
    assert "m.update(loss.detach())" in _fixed(script)
    script = _script(tmp_path, "m = Meter()", "m.update(out.softmax(1)[:1, 0].item())", "return m.sum", head=meter)
    assert "m.update(out.softmax(1)[:1, 0].detach().squeeze().clone())" in _fixed(script)
    aliased = meter.replace("self.sum += value", "self.sum = value; self.sum += 1")
    with pytest.raises(CannotEdit, match="takes a tensor is not seen"):
        _fixed(_script(tmp_path, "m = Meter()", "m.update(loss.item())", "return m.sum", head=aliased))


@pytest.mark.parametrize(
    ("inside", "needed"),
    [
        ("env.step(out.argmax().item())", True),
        ("if loss.item() < 0.1: break", True),
        ("for _ in range(int(y.max())): pass", True),
        ("if math.isnan(loss.item()): break", False),
        ("print('%.3f' % loss.item())", False),
        ("t = loss.item()\nwhile len(str(t)) < 3: pass", False),
    ],
)
def test_what_a_read_is_needed_for(tmp_path: Path, inside: str, needed: bool) -> None:
    script = _script(tmp_path, "", inside, "")
    call = next(call for call in script.source.of(syntax.Call) if reads.scalar(script, call) is not None)
    assert bool(list(reads.needs(script, call))) is needed


def test_graphs_keep_their_outputs(tmp_path: Path) -> None:
    head = "import torch\nfast = torch.compile(lambda x: x, mode='reduce-overhead')\n"
    script = _script(tmp_path, "t = []", "t.append(out.cpu())", "return torch.cat(t)", head=head)
    call = script.method_calls("cpu")[0]
    tensor = reads.copied(script, call)
    assert tensor is not None
    with pytest.raises(CannotEdit, match="overwritten"):
        gathering.copy_once(script, call, tensor)


@pytest.mark.parametrize(
    ("kept", "why"),
    [
        ("torch.sigmoid(out).mean()", None),
        ("(out.argmax(1) == y).float().mean()", None),
        ("out[0, 0]", "overwritten"),
        ("out.view(-1)[0].detach()", "overwritten"),
        ("F.cross_entropy(out, y)", "overwritten"),
    ],
)
def test_what_is_made_beside_graphs_is_not_overwritten(tmp_path: Path, kept: str, why: str | None) -> None:
    for compiled in ("net", "train"):
        head = f"import torch\nfast = torch.compile({compiled}, mode='reduce-overhead')\n"
        script = _script(tmp_path, "t = []", f"v = {kept}\nt.append(v.item())", "return t", head=head)
        if compiled == "train" or why:
            with pytest.raises(CannotEdit, match="overwritten"):
                _fixed(script)
        else:
            assert "t.append(v.detach())" in _fixed(script)


def test_a_counter_must_count_every_step(tmp_path: Path) -> None:
    def shown(inside: str) -> str:
        script = _script(tmp_path, "n = 0", inside, "")
        call = next(call for call in script.calls("print"))
        return throttling.throttled(script, call)[0].text

    assert shown("print(loss)").startswith("if step % 50 == 0:")
    with pytest.raises(CannotEdit, match="no counter"):
        shown("step = 3\nif y.any(): n += 1\nprint(loss)")
    with pytest.raises(CannotEdit, match="line of its"):
        shown("if True: print(loss)")


@pytest.mark.parametrize(
    ("told", "is_shown"),
    [
        ("rate()", False),
        ("torch.rand(1)", False),
        ("stepped.step()", False),
        ("share(out)", True),
        ("time.time()", True),
    ],
)
def test_a_display_that_does_more_than_tell_is_shown_as_often(tmp_path: Path, told: str, is_shown: bool) -> None:
    head = (
        "import time\nimport torch\nstepped = torch.optim.lr_scheduler.StepLR(opt, 2)\n\n\ndef rate():\n    stepped.step()\n"
        "    return stepped.get_last_lr()\n\n\ndef share(x):\n    return x.mean().item()\n\n\n"
    )
    script = _script(tmp_path, "n = 0", f"print(loss, {told})", "", head=head)
    call = next(script.calls("print"))
    if is_shown:
        assert throttling.throttled(script, call)[0].text.startswith("if step % 50 == 0:")
    else:
        with pytest.raises(CannotEdit, match="may do more than tell"):
            throttling.throttled(script, call)


def test_displays_that_wait_beside_each_other_stand_under_one_condition(tmp_path: Path) -> None:
    lines = (
        "print('begins')",
        "print(loss.item())",
        "# and its parts",
        "print(out.mean().item(),",
        "      'in the mean')",
        "print(y.sum().item(), next(log))",
        "print(loss.item())  # speedlint: ignore",
        "print(out.max().item())",
    )
    script = _script(tmp_path, "", "\n".join(lines), "")
    first = script.source.line(next(script.calls("print")))

    def read(where: Script, display: syntax.Call | syntax.Assign) -> list[syntax.BaseExpression]:
        found = (reads.scalar(where, call) for call in where.source.inside(display, syntax.Call))
        return [tensor for tensor in found if tensor is not None]

    def under(line: int) -> list[int]:
        call = next(call for call in script.calls("print") if script.source.line(call) == first + line)
        return [script.source.position(edit.start)[0] - first for edit in throttled(script, call, read)]

    assert under(1) == under(3) == [1, 2, 3, 4]
    assert under(7) == [7]


@pytest.mark.parametrize("several", ["[loss.detach(), 0.5]", "filter(None, [loss.detach(), 0.5])", "(0.5, loss.detach())"])
def test_a_number_among_tensors(project: Project, several: str) -> None:
    project.configure("select = ['SPD301']\ntorch = '2.13'")
    text = f"""
import torch
from torch import nn

model = nn.Linear(512, 512).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
total = 0.0
for rows in torch.load("rows.pt"):
    loss = model(rows.cuda()).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    for each in {several}:
        total += float(each)
print(total)
"""
    assert not any(each["fix"] for each in project.findings(project.write("train.py", text), "--notes"))
