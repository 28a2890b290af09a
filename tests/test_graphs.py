"""The masks of one graph's nodes, of PyTorch Geometric's datasets, in each step of a training on all of it."""

from __future__ import annotations

import pytest

from tests.conftest import Project

TEXT = """
import torch
import torch.nn.functional as F
from torch_geometric.datasets import Planetoid
from torch_geometric.nn import GCNConv

device = torch.device("cuda")
dataset = Planetoid("data", "Cora")
data = dataset[0].to(device)
BEFORE


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = GCNConv(dataset.num_features, 64), GCNConv(64, dataset.num_classes)

    def forward(self, x, edges):
        return self.second(F.relu(self.first(x, edges)), edges)


model = Net().to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for epoch in range(200):
    WITHIN
    out = model(data.x, data.edge_index)
    loss = F.cross_entropy(out[MASK], data.y[MASK])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
ONCE = "take its indices once"
WEIGH = "weigh with the mask"


@pytest.mark.parametrize(
    ("before", "within", "mask", "told"),
    [
        ("", "pass", "data.train_mask", ONCE),
        ("mask = data.train_mask", "pass", "mask", ONCE),
        ("mask = data.y > 3", "pass", "mask", ONCE),
        ("mask = data.y > 3", "mask[epoch] = True", "mask", WEIGH),
        ("mask = data.y > 3", "mask.logical_not_()", "mask", WEIGH),
        ("mask = data.y > 3", "torch.gt(data.y, epoch, out=mask)", "mask", WEIGH),
        ("mask = data.train_mask", "data.train_mask[epoch] = True", "mask", WEIGH),
        ("", "data.train_mask[epoch] = True", "data.train_mask", WEIGH),
        ("", "if epoch % 10 == 0:\n        data.train_mask.copy_(data.y > epoch)", "data.train_mask", WEIGH),
        ("", "setattr(data, 'train_mask', data.y > epoch)", "data.train_mask", WEIGH),
        ("mask = data.y > 3", "if epoch % 10 == 0:\n        mask = data.y > epoch", "mask", WEIGH),
        ("def changed(graph):\n    graph.train_mask = graph.y > 3", "changed(data)", "data.train_mask", None),
        ("data.train_mask = data.train_mask.nonzero().squeeze(1)", "pass", "data.train_mask", None),
        ("mask = data.train_mask.nonzero().squeeze(1)", "pass", "mask", None),
        ("mask = torch.where(data.train_mask)[0]", "pass", "mask", None),
    ],
)
def test_a_mask_that_is_the_same_in_each_step(
    project: Project, before: str, within: str, mask: str, told: str | None
) -> None:
    project.configure("select = ['SPD305']\ntorch = '2.13'")
    text = TEXT.replace("BEFORE", before).replace("WITHIN", within).replace("MASK", mask)
    project.write("train.py", text)
    printed = " ".join(project.run("check", "--format", "full", "train.py").stdout.split())
    assert [each in printed for each in (ONCE, WEIGH)] == [each == told for each in (ONCE, WEIGH)]
    in_steps = [each for each in project.findings("train.py") if "[" + mask + "]" in each["message"]]
    assert bool(in_steps) is (told is not None)
