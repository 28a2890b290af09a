"""Where the network that is trained is put on its device, and what is set before it is."""

from __future__ import annotations

import pytest

from tests.conftest import Project

TEXT = """
import torch
from torch import nn
from torch.utils.data import DataLoader

device = torch.device("cuda")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks, self.head = nn.Sequential(*[nn.Conv2d(64, 64, 3) for _ in range(8)]), nn.Linear(64, 10)

    def forward(self, x):
        return self.head(self.blocks(x).mean((2, 3)))


def tested(model, loader):
    model = model.to(device)  # in the test
    model.eval()
    with torch.no_grad():
        return sum((model(images.to(device)).argmax(1) == labels.to(device)).sum() for images, labels in loader).item()


def made():
    network = Net()
    return network.to(device)  # where it is made


def main(train_set, test_set):
    network = MADE
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    for _ in range(20):
        for images, labels in DataLoader(train_set, batch_size=64, shuffle=True, num_workers=4):
            optimizer.zero_grad()
            nn.functional.cross_entropy(network(images.to(device)), labels.to(device)).backward()
            optimizer.step()
    print(tested(network, DataLoader(test_set, batch_size=256)))
"""


@pytest.mark.parametrize(
    ("makes", "line"),
    [
        ("Net().to(device)  # before it is trained", "# before it is trained"),
        ("made()", "# where it is made"),
        ("Net()", "# in the test"),
    ],
)
def test_what_is_set_before_the_network_is_put_on_its_device(project: Project, makes: str, line: str) -> None:
    """A test that moves the network once more comes after the training, wherever it stands in the file."""
    project.configure("select = ['SPD402']\ntorch = '2.13'")
    text = TEXT.replace("MADE", makes)
    (found,) = project.findings("--notes", project.write("train.py", text))
    assert line in text.splitlines()[found["line"] - 1]


SETTINGS = """
import torch

device: torch.device
{binds}
"""
SUMS = """
import torch
import settings

model = torch.nn.Linear(512, 512).to(settings.device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
total = torch.zeros(1, device=settings.device)
for x in torch.utils.data.DataLoader(torch.load("rows.pt"), num_workers=4, pin_memory=True):
    loss = model(x.to(settings.device, non_blocking=True)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total += loss.detach()
    print(total.item())
"""
GPU = 'device = torch.device("cuda")'
HOST = 'device = torch.device("cpu")'


@pytest.mark.parametrize(
    ("binds", "waits"),
    [
        (f"if torch.cuda.is_available():\n    {GPU}\nelse:\n    {HOST}", 1),
        (f"{GPU}\nif not torch.cuda.is_available():\n    {HOST}", 1),
        (f"{GPU}\n{HOST}", 0),
        (f"{HOST}\n{GPU}", 1),
    ],
)
def test_a_device_that_a_module_binds_in_branches(project: Project, binds: str, waits: int) -> None:
    """Another file gets the last one that stands in any case, or one of those in branches further down."""
    project.configure("select = ['SPD301']\ntorch = '2.13'")
    project.write("settings.py", SETTINGS.format(binds=binds))
    assert len(project.findings(project.write("train.py", SUMS))) == waits
