"""Which reads from the GPU have to be there: what is needed only by an option, by a helper's answer, or lay on the host."""

from __future__ import annotations

from pathlib import Path

import pytest

from speedlint.config import Settings
from speedlint.diagnostic import Diagnostic
from speedlint.engine import Engine
from speedlint.registry import Registry

START = """
import argparse
import cv2
import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence
from torch.utils.data import DataLoader

device = torch.device("cuda")
parser = argparse.ArgumentParser()
parser.add_argument("--save_pictures", action="store_true")
args = parser.parse_args()
"""
TRAIN = """
def train(loader, model, optimizer):
    for x, y, lengths in loader:
        {}
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

train(DataLoader(torch.load("rows.pt"), num_workers=2), Net().to(device), torch.optim.SGD(Net().parameters(), lr=0.1))
"""
STEP = "loss = model(x.to(device), lengths).sum()"
NET = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(8, 8, batch_first=True)

    def forward(self, x, lengths):
        packed = pack_padded_sequence(x, lengths.cpu(), batch_first=True, enforce_sorted=False)
        return self.rnn(packed)[0].data
"""
VALIDATE = """
{}

@torch.no_grad()
def validate(model, loader):
    hits = []
    for x, y in loader:
        best = model(x.to(device)).topk(10).indices
        {}
    return np.mean(hits)

model = Net().to(device)
rows = DataLoader(torch.load("rows.pt"), num_workers=2)
for epoch in range(9):
    train(rows, model, torch.optim.SGD(model.parameters(), lr=0.1))
    print(validate(model, rows))
"""
HIT = """
def hit(best, wanted=1):
    if wanted in best:
        return 1
    return 0
"""


PENALTY = """
def improved(loader, model, optimizer, limit=None):
    summed = counted = 0.0
    for old, x in loader:
        logits = model(x.to(device))
        ratio = (logits - old.to(device)).exp()
        loss = -ratio.mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        distance = (ratio - 1).mean().item()
        summed += distance
        counted += loss.item()
        if {}:
            break
    return summed, counted

model = nn.Sequential(*[nn.Linear(2048, 2048) for _ in range(8)]).to(device)
rows = DataLoader(torch.load("rows.pt"), num_workers=2)
print(improved(rows, model, torch.optim.SGD(model.parameters(), lr=0.1){}))
"""


def diagnostics(folder: Path, source: str, code: str) -> tuple[Diagnostic, ...]:
    path = folder / "train.py"
    path.write_text(START + source)
    return Engine(Settings(folder, select=(code,)), Registry.load()).check(path).diagnostics


def found(folder: Path, source: str, code: str = "SPD302") -> list[str]:
    """The messages of a rule about a script."""
    return [each.message for each in diagnostics(folder, source, code)]


@pytest.mark.parametrize(
    "step",
    [
        "loss = model(x.to(device), lengths.to(device)).sum()",
        "x, lengths = x.cuda(), lengths.cuda(); loss = model(x, lengths.long()).sum()",
        "batch = lengths.to(device); loss = model(x.to(device), batch.sort().values).sum()",
    ],
)
def test_lengths_that_were_copied_to_the_gpu_are_told(tmp_path: Path, step: str) -> None:
    assert any("lay on the host before" in each for each in found(tmp_path, NET + TRAIN.format(step)))


@pytest.mark.parametrize(
    "step",
    [
        "loss = model(x.to(device), lengths).sum()",
        "x = x.to(device); loss = model(x, x.ne(0).sum(1) + model.rnn(x)[0].argmax(1)).sum()",
        "lengths = lengths.to(device); lengths[0] = 3; loss = model(x.to(device), lengths).sum()",
        "lengths = lengths.to(device); lengths -= 1; loss = model(x.to(device), lengths).sum()",
    ],
)
def test_lengths_of_the_host_and_of_the_step_are_not(tmp_path: Path, step: str) -> None:
    assert not found(tmp_path, NET + TRAIN.format(step))


@pytest.mark.parametrize(
    ("helper", "step"),
    [
        (HIT, "hits.append(hit(best.cpu().tolist()))"),
        ("", "guess = best.cpu().numpy(); hits.append(guess); args.save_pictures and cv2.imwrite('a.png', guess)"),
    ],
)
def test_what_an_answer_or_an_option_asks_for_need_not_be_read(tmp_path: Path, helper: str, step: str) -> None:
    assert len(found(tmp_path, NET + TRAIN.format(STEP) + VALIDATE.format(helper, step))) == 1


@pytest.mark.parametrize(
    ("helper", "step"),
    [
        (HIT, "if hit(best.cpu().tolist()): break"),
        (
            HIT.replace("return 0", "return best").replace("return 1", "return torch.zeros(1)"),
            "hits.append(hit(best.cpu()))",
        ),
        ("", "cv2.imwrite('a.png', best.cpu().numpy())"),
        ("", "args.save_pictures and cv2.imwrite('a.png', best.cpu().numpy())"),
    ],
)
def test_what_ends_the_loop_or_is_written_is_read(tmp_path: Path, helper: str, step: str) -> None:
    assert not found(tmp_path, NET + TRAIN.format(STEP) + VALIDATE.format(helper, step))


@pytest.mark.parametrize(
    ("ends", "limit", "reads"),
    [
        ("limit is not None and distance > limit", "", 2),
        ("limit is not None and distance > limit", ", limit=None", 2),
        ("limit is not None and distance > limit", ", limit=0.02", 1),
        ("limit is not None and distance > limit", ", limit=float(input())", 1),
        ("distance > 0.02", "", 1),
    ],
)
def test_a_limit_that_nothing_sets_ends_no_loop(tmp_path: Path, ends: str, limit: str, reads: int) -> None:
    """A read that only such a limit needs is told, beside the one of the loss."""
    told = found(tmp_path, PENALTY.format(ends, limit), "SPD301")
    assert len([each for each in told if "item()" in each]) == reads


SUMMED = """
def ended(loader, model, optimizer, limit=None):
    total = 0.0
    for step, (old, x) in enumerate(loader):
        loss = (model(x.to(device)) - old.to(device)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
        if {}:
            break
    return total

parser.add_argument("--limit", type=float)
model = nn.Sequential(*[nn.Linear(2048, 2048) for _ in range(8)]).to(device)
rows = DataLoader(torch.load("rows.pt"), num_workers=2)
print(ended(rows, model, torch.optim.SGD(model.parameters(), lr=0.1), parser.parse_args().limit))
"""


@pytest.mark.parametrize(
    ("ends", "is_written"),
    [
        ("step == 100", True),
        ("step % 5 == 4 and limit is not None and total / 5 > limit", False),
        ("limit is not None and total > limit", False),
    ],
)
def test_a_sum_that_an_option_may_end_the_loop_by_is_told_and_not_written(
    tmp_path: Path, ends: str, is_written: bool
) -> None:
    (told,) = diagnostics(tmp_path, SUMMED.format(ends), "SPD301")
    assert (told.fix is not None) is is_written
    assert ("an option that is off by default may need it" in told.advice) is not is_written


GATHERED = """
import pickle

def sent(rows):
    return len(pickle.dumps(rows.numpy()))

def train_and_send(loader, model, optimizer):
    for x, y, lengths in loader:
        loss = model(x.to(device), lengths).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(sent(y))

@torch.no_grad()
def encode(model, loader):
    model.eval()
    found = []
    for x, y, lengths in loader:
        rows = model(x.to(device), lengths)
        {}
    print(sent(torch.cat(found)))

model = Net().to(device)
rows = DataLoader(torch.load("rows.pt"), num_workers=2)
for epoch in range(9):
    train_and_send(rows, model, torch.optim.SGD(model.parameters(), lr=0.1))
    encode(model, rows)
"""


@pytest.mark.parametrize(
    ("kept", "codes"),
    [("found.append(rows.cpu())", ["SPD302"]), ("found.append(rows)\n        print(sent(rows.cpu()))", [])],
)
def test_what_a_pass_gathers_is_needed_after_it(kept: str, codes: list[str], tmp_path: Path) -> None:
    """Whatever takes it then, though others call that in each step."""
    path = tmp_path / "encode.py"
    path.write_text(START + NET + GATHERED.format(kept))
    report = Engine(Settings(root=tmp_path, select=("SPD302",)), Registry.load()).check(path)
    line = path.read_text()[: path.read_text().index("rows.cpu()")].count("\n") + 1
    assert [each.code for each in report.diagnostics if each.line == line] == codes


SCENES = """
import torch
from torch import nn
from torch.utils.data import DataLoader

model = nn.Sequential(*[nn.Linear(64, 64) for _ in range(30)]).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def pooled(states, bounds):
    kept = []
    for {of_bounds}:
        {taken}
        kept.append(states[start:end].max(0).values)
    return torch.stack(kept)


def train(loader):
    for batch in loader:
        {moved}
        rows, bounds = batch
        loss = pooled(model(rows), bounds).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


train(DataLoader(torch.load("rows.pt"), batch_size=64, num_workers=4))
"""


@pytest.mark.parametrize(
    "of_bounds", ["start, end in bounds", "_, (start, end) in enumerate(bounds)", "start, end in bounds.data"]
)
@pytest.mark.parametrize("taken", ["pass", "start, end = start.item(), end.item()"])
def test_the_bounds_of_a_copied_batch_lay_on_the_host(tmp_path: Path, of_bounds: str, taken: str) -> None:
    source = SCENES.format(of_bounds=of_bounds, taken=taken, moved="batch = [each.cuda() for each in batch]")
    messages = found(tmp_path, source, "SPD301")
    assert messages and all("lay on the host before" in each for each in messages)


@pytest.mark.parametrize(
    "moved", ["pass", "batch = [batch[0].cuda(), batch[1]]", "batch = batch[0].cuda(), batch[1].tolist()"]
)
def test_bounds_that_stay_on_the_host_wait_for_nothing(tmp_path: Path, moved: str) -> None:
    source = SCENES.format(of_bounds="start, end in bounds", taken="pass", moved=moved)
    assert not found(tmp_path, source, "SPD301")


METER = """
import torch


class Meter:
    def __init__(self, names):
        self.names = names
        self.sums = {{name: torch.zeros(1) for name in names}}

    def add(self, values):
        for {counted} in enumerate(values):
            self.sums[self.names[{index}]] += value


meter = Meter(["loss"])
model = torch.nn.Linear(512, 512).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for rows in torch.utils.data.DataLoader(torch.load("rows.pt"), num_workers=2):
    loss = model(rows.cuda()).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    meter.add([loss.detach().cpu()])
"""


@pytest.mark.parametrize(("counted", "index", "is_found"), [("i, value", "i", True), ("i, value", "int(value)", False)])
def test_the_number_of_a_turn_is_nothing_of_what_the_turn_takes(
    tmp_path: Path, counted: str, index: str, is_found: bool
) -> None:
    assert bool(found(tmp_path, METER.format(counted=counted, index=index), "SPD302")) is is_found
