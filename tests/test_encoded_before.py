"""A dataset that encodes its rows on the GPU once and keeps what comes of it on the host needs workers as any other."""

from __future__ import annotations

import pytest

from tests.conftest import Project

TRAINS = """
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Codes(Dataset):
    def __init__(self, pictures, encoder, device):
        self.codes = torch.empty(len(pictures), 4, 64, 64)
        self.labels = torch.zeros(len(pictures), dtype=torch.long)
        self.names = [str(each) for each in range(len(pictures))]
        self.last = None
        with torch.no_grad():
            for row, picture in enumerate(pictures):
                code = encoder(picture.to(device)).detach()
                self.codes[row].copy_(code.cpu())
                self.last = code
{after}
    def __len__(self):
        return len(self.codes)

    def __getitem__(self, index):
        code = self.codes[index]
        noisy = code + torch.exp(0.5 * code) * torch.randn_like(code)
        return {returned}


def train(model, pictures, encoder):
    codes = Codes(pictures, encoder, device)
    {moved}
    loader = DataLoader(codes, batch_size=64, shuffle=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(90):
        for inputs, *labels in loader:
            loss = model(inputs.to(device)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


layers = [nn.Conv2d(4, 512, 3), nn.ReLU(), nn.Conv2d(512, 512, 3), nn.ReLU(), nn.Conv2d(512, 4, 3)]
train(nn.Sequential(*layers).to(device), torch.load("pictures.pt"), nn.Conv2d(3, 4, 8).to(device))
"""


@pytest.mark.parametrize(
    ("returned", "after", "moved", "found"),
    [
        ("noisy, self.labels[index]", "", "", True),
        ("{'code': noisy, 'label': int(self.labels[index])}", "", "", True),
        ("noisy, (code, self.names[index])", "", "", True),
        ("noisy, self.last", "", "", False),
        ("noisy, self.labels[index]", "        self.codes = self.codes.to(device)\n", "", False),
        ("noisy, self.labels[index]", "", "codes.codes = codes.codes.to(device)", False),
        ("noisy, self.labels[index]", "", "codes.__dict__['codes'] = codes.codes.to(device)", False),
        ("noisy, self.labels[index]", "", "setattr(codes, 'codes', codes.codes.to(device))", False),
        ("noisy, self.labels[index].to(device)", "", "", False),
        ("noisy, unseen(code)", "", "", False),
    ],
)
def test_where_items_lie(project: Project, returned: str, after: str, moved: str, found: bool) -> None:
    project.configure("select = ['SPD201']\ntorch = '2.13'")
    path = project.write("train.py", TRAINS.format(returned=returned, after=after, moved=moved))
    assert bool(project.findings(path)) is found
