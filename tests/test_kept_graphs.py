"""A sum that keeps every step's graph: without it nothing changes but what a printed tensor says of it."""

from __future__ import annotations

import pytest

from tests.conftest import Project

TRAINS = """
import logging
import torch
import tqdm

model = torch.nn.Linear(512, 512).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
total = 0.0
rows = torch.load("rows.pt")
for row in rows:
    loss = model(row.cuda()).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total += loss
{shown}
"""


@pytest.mark.parametrize(
    ("shown", "risk"),
    [
        ("print(total.item())", "exact"),
        ("print(float(total) / len(rows))", "exact"),
        ("print(f'{total} {total / len(rows):.3f}')", "exact"),
        ("print(total)", "behavior"),
        ("print('mean', total / len(rows))", "behavior"),
        ("mean = total / len(rows)\nlogging.info('%s', mean)", "behavior"),
        ("mean = total / len(rows)\nlogging.info('%.3f', mean)", "exact"),
        ("log = logging.getLogger(__name__)\nlog.info('mean %s', total / len(rows))", "behavior"),
        ("log = logging.getLogger(__name__)\nlog.warning(total)", "behavior"),
        ("log = logging.getLogger(__name__)\nlog.info('mean %.3f', total / len(rows))", "exact"),
        ("bar = tqdm.tqdm(rows)\nbar.set_postfix(loss=total)", "behavior"),
        ("bar = tqdm.tqdm(rows)\nbar.set_postfix(loss=f'{total:.3f}')", "exact"),
        ("print(f'{total!r}')", "behavior"),
        ("print(f'{total=}')", "behavior"),
        ("torch.save(total, 'total.pt')", "behavior"),
        ("torch.save({'total': total}, 'total.pt')", "behavior"),
        ("history = [total]\nprint(history)", "behavior"),
        ("history = [total]\nprint(f'{history}')", "behavior"),
        ("print('%s' % total)", "behavior"),
        ("print('%.3f' % total)", "exact"),
        ("print('{:.3f}'.format(total))", "exact"),
        ("print('{!r}'.format(total))", "behavior"),
        ("print(','.join(map(str, [total])))", "behavior"),
        ("import pprint\npprint.pprint(total)", "behavior"),
        ("import json\nprint(json.dumps({'total': total}, default=str))", "behavior"),
        ("import csv\ncsv.writer(open('t.csv', 'w')).writerow([total])", "behavior"),
        ("import copy\nprint(float(copy.deepcopy(total)))", "behavior"),
        ("import numpy\nprint(numpy.array([total]).sum())", "behavior"),
        ("try:\n    print(total.numpy())\nexcept RuntimeError:\n    print(0)", "behavior"),
        ("if len(rows) > 9:\n    raise ValueError(total)", "behavior"),
        ("assert len(rows) < 9, total", "behavior"),
        ("import math\nprint(math.isfinite(total))", "exact"),
    ],
)
def test_the_risk_of_letting_the_graph_go(project: Project, shown: str, risk: str) -> None:
    project.configure("select = ['SPD504']\ntorch = '2.13'")
    (found,) = project.findings(project.write("train.py", TRAINS.format(shown=shown)))
    assert found["fix"]["risk"] == risk


GATHERS = """
import torch


class Meter:
    def __init__(self):
        self.sum, self.count = 0.0, 0

    def update(self, value):
        self.sum += value
        self.count += 1

    def show(self):
        print({meter})


def train(model, optimizer, rows):
    losses, meter, total = [], Meter(), 0.0
    for row in rows:
        loss = model(row.cuda()).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        {gathers}
    meter.show()
    {shown}


model = torch.nn.Linear(512, 512).cuda()
result = train(model, torch.optim.SGD(model.parameters(), lr=0.1), torch.load("rows.pt"))
{after}
"""


@pytest.mark.parametrize(
    ("gathers", "shown", "meter", "after", "risk"),
    [
        ("losses.append(loss)", "print(losses[-1].item())", "0", "", "exact"),
        ("losses.append(loss)", "print(sum(losses).item())", "0", "", "exact"),
        ("losses.append(loss)", "print(losses[-1])", "0", "", "behavior"),
        ("losses.append(loss)", "print(max(losses))", "0", "", "behavior"),
        ("losses.append(loss)", "print(losses)", "0", "", "behavior"),
        ("total += loss", "return total / len(rows)", "0", "print(float(result))", "exact"),
        ("total += loss", "return total / len(rows)", "0", "print(result)", "behavior"),
        ("meter.update(loss)", "pass", "float(self.sum)", "", "exact"),
        ("meter.update(loss)", "pass", "self.sum / self.count", "", "behavior"),
    ],
)
def test_the_risk_where_it_is_gathered_elsewhere(
    project: Project, gathers: str, shown: str, meter: str, after: str, risk: str
) -> None:
    project.configure("select = ['SPD504']\ntorch = '2.13'")
    text = GATHERS.format(gathers=gathers, shown=shown, meter=meter, after=after)
    (found,) = project.findings(project.write("train.py", text))
    assert found["fix"]["risk"] == risk


LATER = """
import torch


def train(model, optimizer, rows, at_once):
    losses = []
    for row in rows:
        loss = model(row.cuda()).mean()
        optimizer.zero_grad()
{turn}
    {after}


model = torch.nn.Linear(512, 512).cuda()
train(model, torch.optim.SGD(model.parameters(), lr=0.1), torch.load("rows.pt"), False)
"""
APART = """
        if at_once:
            loss.backward()
            optimizer.step()
        {other}losses.append(loss)
"""
WITH_IT = """
        loss.backward()
        losses.append(loss)
"""
STEPS = "total.backward()\n    optimizer.step()"


@pytest.mark.parametrize(
    ("turn", "after", "found"),
    [
        (APART.format(other="else:\n            "), f"total = torch.stack(losses).mean()\n    {STEPS}", False),
        (APART.format(other="elif len(row) > 1:\n            "), f"total = sum(losses)\n    {STEPS}", False),
        (APART.format(other="else:\n            "), "print(len(losses))", False),
        (WITH_IT, f"total = torch.stack(losses).mean()\n    {STEPS}", False),
        (WITH_IT, f"print(losses)\n    total = torch.stack(losses).mean()\n    {STEPS}", False),
        (WITH_IT, "print(len(losses))", True),
    ],
)
def test_what_is_differentiated_after_the_loop(project: Project, turn: str, after: str, found: bool) -> None:
    project.configure("select = ['SPD504']\ntorch = '2.13'")
    assert bool(project.findings(project.write("train.py", LATER.format(turn=turn, after=after)))) is found


@pytest.mark.parametrize(
    "after",
    ["total = sum(losses)\n    unseen(total)\n    total.backward()", "print('leaf' if losses[0].is_leaf else 'graph')"],
)
def test_a_graph_that_is_asked_for_beside_what_is_not_followed(project: Project, after: str) -> None:
    project.configure("select = ['SPD504']\ntorch = '2.13'")
    text = f"from elsewhere import unseen\n{LATER.format(turn=WITH_IT, after=after)}"
    assert not project.findings(project.write("train.py", text))


PARTS = """
import torch


class Meter:
    def __init__(self):
        self.sum, self.count = {{}}, {{}}

    def update(self, batch=1, **values):
        {adds}


meter = Meter()
model = torch.nn.Linear(512, 512).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
box, kind = 0.0, 0.0
for row in torch.load("rows.pt"):
    out = model(row.cuda())
    box_loss, kind_loss = out.mean(), out.abs().mean()
    loss = {loss}
    optimizer.zero_grad()
    loss.backward({retained})
    optimizer.step()
    {gathered}
print(float(box), meter.sum)
"""
NAMED = "for name in values: self.sum[name] = self.sum.get(name, 0); self.sum[name] += values[name]"
PAIRS = "for name, value in values.items(): self.sum[name] += value * batch"
SUMS = "box += box_loss"


@pytest.mark.parametrize(
    ("gathered", "adds", "loss", "retained", "lost"),
    [
        (SUMS, NAMED, "box_loss + kind_loss", "", ["box_loss"]),
        (SUMS, NAMED, "0.5 * box_loss + 2 * kind_loss.mean()", "", ["box_loss"]),
        (SUMS, NAMED, "kind_loss", "", []),
        (SUMS, NAMED, "kind_loss + box_loss.detach()", "", []),
        (SUMS, NAMED, "box_loss + kind_loss", "retain_graph=True", []),
        ("meter.update(box=box_loss, kind=kind_loss)", NAMED, "box_loss + kind_loss", "", ["box_loss", "kind_loss"]),
        ("meter.update(4, box=box_loss)", PAIRS, "box_loss + kind_loss", "", ["box_loss"]),
        ("meter.update(box=box_loss.item())", NAMED, "box_loss + kind_loss", "", []),
        ("meter.update(box=box_loss)", "for name in values: self.sum[name] = values[name]", "box_loss + kind_loss", "", []),
        ("meter.update(box=box_loss)", "for name in values: self.sum[name] += float(values[name])", "box_loss", "", []),
    ],
)
def test_parts_of_a_loss(project: Project, gathered: str, adds: str, loss: str, retained: str, lost: list[str]) -> None:
    project.configure("select = ['SPD504']\ntorch = '2.13'")
    text = PARTS.format(adds=adds, loss=loss, retained=retained, gathered=gathered)
    messages = [each["message"] for each in project.findings(project.write("train.py", text))]
    assert [message.split("graph of `")[1].partition("`")[0] for message in messages] == lost
