"""Operations of a project's own, derived from ``torch.autograd.Function``: they run where they are applied, and backward."""

from __future__ import annotations

import pytest

from tests.conftest import Project

OPERATION = """
import torch
from torch.autograd import Function


class Distance(Function):
    @staticmethod
    def forward({taken}):
        found = torch.zeros(left.size(0), left.size(1))
        found = found.cuda()
        {keeps}
        return found + ((left - right) ** 2).sum(-1)

{more}
    @staticmethod
    def backward(ctx, grad):
        left = torch.zeros(grad.size(0), grad.size(1), 3)
        left = left.cuda()
        return left + grad.unsqueeze(-1), -grad.unsqueeze(-1)


distance = Distance.apply


class Loss(torch.nn.Module):
    def forward(self, left, right):
        return {call}.mean()
"""
TRAIN = """
import torch
from ops import {name}

model = torch.nn.Sequential(*[torch.nn.Linear(3, 3) for _ in range(30)]).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
{begin}
for points in torch.utils.data.DataLoader(torch.load("points.pt"), batch_size=64, num_workers=4):
    points = points.cuda()
    loss = {call}
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
CONTEXT = {"taken": "ctx, left, right", "keeps": "ctx.save_for_backward(left, right)", "more": ""}
SET_UP = {
    "taken": "left, right",
    "keeps": "",
    "more": "    @staticmethod\n    def setup_context(ctx, inputs, output):\n        ctx.save_for_backward(*inputs)\n",
}


def lines(project: Project, code: str, operation: str, train: str) -> list[str]:
    project.configure(f"select = ['{code}']\ntorch = '2.13'")
    project.write("train.py", train)
    text = operation.splitlines()
    return [text[each["line"] - 1].strip() for each in project.findings(project.write("ops.py", operation))]


@pytest.mark.parametrize("given", [CONTEXT, SET_UP])
@pytest.mark.parametrize("call", ["Distance.apply(left, right)", "distance(left, right)"])
def test_what_an_operation_makes_is_made_in_each_step(project: Project, given: dict[str, str], call: str) -> None:
    operation = OPERATION.format(**given, call=call)
    train = TRAIN.format(name="Loss", begin="criterion = Loss()", call="criterion(model(points), points)")
    assert lines(project, "SPD308", operation, train) == ["found = found.cuda()", "left = left.cuda()"]


def test_by_a_name_that_another_file_imports(project: Project) -> None:
    operation = OPERATION.format(**CONTEXT, call="(left - right)")
    train = TRAIN.format(name="distance", begin="", call="distance(model(points), points).mean()")
    assert len(lines(project, "SPD308", operation, train)) == 2


def test_an_operation_that_nothing_applies(project: Project) -> None:
    operation = OPERATION.format(**CONTEXT, call="(left - right)")
    train = TRAIN.format(name="Loss", begin="criterion = Loss()", call="criterion(model(points), points)")
    assert not lines(project, "SPD308", operation, train)


SCALES = """
import torch


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rows, weight, every):
        if {asked}:
            print("scaled")
        return rows * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 2, None, None
"""


@pytest.mark.parametrize(("asked", "found"), [("rows.max() > 3", 1), ("weight > 3", 0), ("every > 3", 0)])
def test_what_is_handed_follows_the_context(project: Project, asked: str, found: int) -> None:
    train = TRAIN.format(name="Scaled", begin="", call="Scaled.apply(model(points), 0.5, 4).mean()")
    assert len(lines(project, "SPD304", SCALES.format(asked=asked), train)) == found


def test_who_writes_the_context_hands_it_too(project: Project) -> None:
    scaled = SCALES.format(asked="weight > 3")
    train = TRAIN.format(name="Scaled", begin="", call="Scaled.forward(None, model(points), 0.5, 4).mean()")
    assert not lines(project, "SPD304", scaled, train)


@pytest.mark.parametrize(
    ("unpacked", "found"),
    [("rows, weight, every = args", 0), ("rows, every = args[0], args[2]", 0), ("every, weight, _ = args", 1)],
)
def test_what_is_handed_in_any_number(project: Project, unpacked: str, found: int) -> None:
    operation = SCALES.format(asked="every > 3").replace("ctx, rows, weight, every", "ctx, *args")
    operation = operation.replace("        if every", f"        {unpacked}\n        if every").replace(
        "rows * 2", "args[0] * 2"
    )
    train = TRAIN.format(name="Scaled", begin="", call="Scaled.apply(model(points), 0.5, 4).mean()")
    assert len(lines(project, "SPD304", operation, train)) == found


EVALUATED = """
import torch
from ops import Loss

model = torch.nn.Sequential(*[torch.nn.Linear(3, 3) for _ in range(30)]).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
criterion = Loss()


{decorated}
def evaluate(loader):
    for points in loader:
        points = points.cuda()
        criterion(model(points), points)


for epoch in range(9):
    for points in torch.utils.data.DataLoader(torch.load("points.pt"), batch_size=64, num_workers=4):
        loss = model(points.cuda()).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    evaluate(torch.utils.data.DataLoader(torch.load("more.pt"), batch_size=64, num_workers=4))
"""


@pytest.mark.parametrize("decorated", ["@torch.no_grad()", "@torch.inference_mode()", ""])
def test_no_backward_pass_goes_through_an_evaluation(project: Project, decorated: str) -> None:
    operation = OPERATION.format(**CONTEXT, call="Distance.apply(left, right)")
    assert "left = left.cuda()" not in lines(project, "SPD308", operation, EVALUATED.format(decorated=decorated))
