"""Numbers and tensors that travel in tuples, and through helpers that hand back what they are given."""

from __future__ import annotations

import pytest

from tests.conftest import Project

START = """
import torch
from torch import nn
from torch.nn.parallel import DataParallel
from torch.nn.utils.rnn import pack_padded_sequence
from torch.utils.data import DataLoader


def place(thing, is_network=False):
    if is_network and torch.cuda.is_available():
        thing = thing.cuda()
    elif torch.cuda.is_available():
        thing = thing.cuda(non_blocking=True)
    return thing


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(64, 64, batch_first=True)

    def parse(self, batch):
        rows, lengths, wanted = batch
        rows, lengths = place(rows).float(), place(lengths).long()
        longest = torch.max(lengths.data).item()
        return (rows, lengths, longest), place(wanted)

    def forward(self, given):
        rows, lengths, longest = given
        {}
"""
TRAIN = """

def train(loader):
    net = place(Net(), True)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for batch in loader:
        given, wanted = net.parse(batch)
        loss = nn.functional.mse_loss(net(given), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


train(DataLoader(torch.load("rows.pt"), batch_size=4096))
"""
UNUSED = "return self.rnn(rows)[0].mean(1)"
SIZE = "return self.rnn(rows[:, :longest])[0].mean(1)"
PACKED = "return self.rnn(pack_padded_sequence(rows, lengths.cpu(), True, False))[1][0][0]"
WRITTEN = PACKED.replace("lengths.cpu()", "lengths.add_(1).cpu()")
AS_ENTRY = "longest = given[2]\n        return self.rnn(rows[:, :longest])[0].mean(1)"
OTHER_ENTRY = "return self.rnn(given[0][:, : given[1].shape[0]])[0].mean(1)"

READ, BEFORE = (
    "`torch.max(lengths.data).item()` waits for the GPU in every training step",
    ", for what lay on the host before",
)
COPY = "`lengths.cpu()` waits for the GPU in every training step" + BEFORE


@pytest.mark.parametrize(
    ("forward", "found"),
    [
        (UNUSED, [READ]),
        (SIZE, [READ + BEFORE]),
        (AS_ENTRY, [READ + BEFORE]),
        (OTHER_ENTRY, [READ]),
        (PACKED, [READ, COPY]),
        (WRITTEN, [READ]),
    ],
)
def test_what_a_read_in_a_tuple_is_needed_for(project: Project, forward: str, found: list[str]) -> None:
    project.configure("select = ['SPD301', 'SPD302']\ntorch = '2.13'")
    told = project.findings(project.write("train.py", START.format(forward) + TRAIN))
    assert [each["message"] for each in told] == found


WRAPPER = """

class Gathered(DataParallel):
    def __init__(self, module, dim=0):
        super().__init__(module, dim=dim)
        self.extra = dim

    def {}(self, *inputs):
        return inputs


def train(loader):
    net = Gathered(Net()).cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for rows, lengths, wanted in loader:
        loss = net((rows.cuda(), lengths, 3)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


train(DataLoader(torch.load("rows.pt"), batch_size=4096))
"""
COPIES = "return self.rnn(rows * torch.tensor([0.5]).to(rows.device))[0].mean(1)"


@pytest.mark.parametrize(("method", "found"), [("own", 1), ("gather", 1), ("forward", 0)])
def test_a_call_of_a_wrapper_runs_what_it_wraps(project: Project, method: str, found: int) -> None:
    project.configure("select = ['SPD309']\ntorch = '2.13'")
    told = project.findings(project.write("train.py", START.format(COPIES) + WRAPPER.format(method)))
    assert len(told) == found
