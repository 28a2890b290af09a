"""Which loaders matter: those that something reads from their beginning."""

from __future__ import annotations

import pytest

from tests.conftest import Project

REBOUND = """
import torch
import torchvision
from torch.utils.data import DataLoader

data = torchvision.datasets.ImageFolder("pictures", torchvision.transforms.ToTensor())
model = torchvision.models.resnet18().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(data, batch_size=64)
{between}
loader = DataLoader(data, batch_size=64, shuffle=True)
for epoch in range(10):
    for x, y in loader:
        loss = torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("between", "lines"),
    [("print(len(data))", [11]), ("for x, y in loader:\n    print(model(x.cuda()).sum())", [9, 11])],
)
def test_a_loader_whose_name_is_bound_anew_before_anything_reads_it(
    project: Project, between: str, lines: list[int]
) -> None:
    project.configure("select = ['SPD201']\ntorch = '2.13'")
    path = project.write("train.py", REBOUND.format(between=between))
    found = project.findings("--notes", path)
    assert sorted(each["line"] for each in found) == [line + (between.count("\n") if line > 9 else 0) for line in lines]
