"""What a finding says to do is right where it stands: those who follow it by hand must not break their training."""

from __future__ import annotations

import pytest

from tests.conftest import Project


def _told(project: Project, text: str) -> str:
    """What is said of a script, on one line."""
    return " ".join(project.run("check", "--format", "full", project.write("train.py", text)).stdout.split())


DECEIVES = """
import torch


def train(G, D, loader):
    g_optimizer = torch.optim.Adam(G.parameters())
    d_optimizer = torch.optim.Adam(D.parameters())
    for real in loader:
        real = real.cuda()
        fake = G(torch.randn(8, 512, device="cuda"))
        d_loss = D(fake.detach()).mean() - D(real).mean()
        {first}
        g_loss = -D(fake).mean()
        {then}
        g_optimizer.zero_grad()
        g_loss.backward()
        g_optimizer.step()


G, D = torch.nn.Linear(512, 512).cuda(), torch.nn.Sequential(torch.nn.Conv1d(1, 64, 3), torch.nn.Flatten()).cuda()
train(G, D, torch.utils.data.DataLoader(torch.load("rows.pt")))
"""
PASS = "d_optimizer.zero_grad()\n        d_loss.backward()\n        d_optimizer.step()"


@pytest.mark.parametrize(("first", "then", "is_between"), [(PASS, "pass", False), ("pass", PASS, True)])
def test_another_pass_before_the_weights_may_be_switched_off(
    project: Project, first: str, then: str, is_between: bool
) -> None:
    """Its gradients would be dropped: they are of the weights that are switched off meanwhile."""
    project.configure("select = ['SPD511']\ntorch = '2.13'")
    told = _told(project, DECEIVES.format(first=first, then=then))
    assert "D.requires_grad_(False)` before this call" in told
    assert ("take the pass of line 15 and its step before this call" in told) is is_between


EVALUATES = """
import torch


{decorator}
def evaluate(model, loader):
    model.eval()
    found = []
    for rows in loader:
        found.append(model(rows.cuda()).cpu().numpy()[:, 0])
    return found


model = torch.nn.Linear(512, 512).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = torch.utils.data.DataLoader(torch.load("rows.pt"))
for epoch in range(9):
    for rows in loader:
        model(rows.cuda()).mean().backward()
        optimizer.step()
    evaluate(model, loader)
"""


@pytest.mark.parametrize(("decorator", "detaches"), [("", True), ("@torch.no_grad()", False)])
def test_what_is_kept_of_an_evaluation_keeps_no_graph(project: Project, decorator: str, detaches: bool) -> None:
    project.configure("select = ['SPD302']\ntorch = '2.13'")
    told = _told(project, EVALUATES.format(decorator=decorator))
    assert "on the GPU, gather it in a list" in told
    assert (".detach()` on the GPU" in told) is detaches


ENTERED = 'torch.autocast("cuda", dtype=torch.bfloat16).__enter__()'


@pytest.mark.parametrize(("entered", "found"), [(ENTERED, 0), ("", 1)])
def test_half_precision_that_is_entered_for_good(project: Project, entered: str, found: int) -> None:
    project.configure("select = ['SPD101']\ntorch = '2.13'")
    project.write(
        "train.py",
        f"""
import torch
from steps import Training

{entered}
Training(torch.nn.Linear(4096, 4096)).run(torch.utils.data.DataLoader(torch.load("rows.pt")))
""",
    )
    path = project.write(
        "steps.py",
        """
import torch


class Training:
    def __init__(self, net):
        self.net = net.cuda()
        self.optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    def run(self, loader):
        for rows in loader:
            loss = self.net(rows.cuda()).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
""",
    )
    assert len(project.findings(path)) == found


OLD_ADAM = """
import torch
from transformers import AdamW


def train(model, loader):
    optimizer = AdamW(model.parameters(), lr=1e-4)
    for rows, labels in loader:
        loss = torch.nn.functional.cross_entropy(model(rows.cuda()), labels.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


train(torch.nn.Linear(512, 512).cuda(), torch.utils.data.DataLoader(torch.load("rows.pt")))
"""


@pytest.mark.parametrize(
    ("required", "advised", "not_there"),
    [
        ("torch==1.6.0", "apex.optimizers.FusedAdam", "AdamW(..., fused=True)"),
        ("torch>=1.6", "AdamW(..., fused=True)", "apex"),
        ("torch==2.1", "AdamW(..., fused=True)", "apex"),
    ],
)
def test_an_optimizer_is_advised_that_the_pinned_release_has(
    project: Project, required: str, advised: str, not_there: str
) -> None:
    (project.root / "requirements.txt").write_text(f"{required}\ntransformers\n")
    project.configure("select = ['SPD502']\n")
    told = _told(project, OLD_ADAM)
    assert advised in told
    assert not_there not in told


DECODER = """
import torch
from torch import nn


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2048, 2048)

    def forward(self, x, level):
        scores = torch.zeros(x.size(0), 2048, device=x.device)
        held = torch.full_like(x, level)
        rows = torch.nonzero(x.sum(1) > 0).view(-1)
        scores[rows] = self.layer(x + held)[rows]
        return scores


model = Decoder().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, level in torch.utils.data.DataLoader(torch.load("rows.pt")):
    loss = model(x.cuda(), level.item()).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def test_what_stops_in_half_precision_is_named_before_what_may_overflow(project: Project) -> None:
    project.configure("select = ['SPD101']\ntorch = '2.13'")
    told = _told(project, DECODER)
    assert "`scores[rows] = ...` raises where autocast makes the dtypes differ" in told
    assert "full_like" not in told
