"""What stands in a file that is not asked for is told at the call that reaches it, and only there."""

from __future__ import annotations

from pathlib import Path

import pytest

from speedlint.config import Settings
from speedlint.engine import Engine
from speedlint.registry import Registry

TRAIN = """
import torch
from torch import nn
from torch.utils.data import DataLoader

from rows import Rows
from parts import Net, evaluate, to_var

model = Net().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(Rows("train.csv"), batch_size=16, num_workers=4)
for epoch in range(10):
    for inputs, targets in loader:
        noise = to_var(torch.randn(16, 64))
        loss = nn.functional.mse_loss(model(inputs.cuda()) + noise, targets.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(evaluate(model, loader))
"""
PARTS = """
import torch
from torch import nn

def to_var(x):
    if torch.cuda.is_available():
        x = x.cuda()
    return x

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(64, 64)

    def forward(self, x):
        mask = torch.triu(torch.ones(x.size(1), x.size(1)).cuda())
        return self.layer(x) @ mask

def evaluate(model, loader):
    model.eval()
    total = 0.0
    for inputs, targets in loader:
        total += nn.functional.mse_loss(model(inputs.cuda()), targets.cuda()).item()
    return total
"""
ROWS = """
import pandas as pd
from torch.utils.data import Dataset

class Rows(Dataset):
    def __init__(self, path):
        self.path = path

    def __len__(self):
        return 100000

    def __getitem__(self, index):
        table = pd.read_csv(self.path)
        row = table.iloc[index].to_numpy()
        return row[:64], row[64:]
"""


def _told(folder: Path, code: str, *asked: str) -> list[tuple[str, int]]:
    (folder / "pyproject.toml").write_text("")
    for name, text in (("train.py", TRAIN), ("parts.py", PARTS), ("rows.py", ROWS)):
        (folder / name).write_text(text)
    paths = tuple(folder / name for name in asked)
    settings = Settings(folder, select=(code,))
    return [
        (each.path.name, each.line)
        for path in paths
        for each in Engine(settings, Registry.load(), asked=paths).check(path).diagnostics
    ]


@pytest.mark.parametrize(
    ("code", "at_call", "at_place"),
    [
        ("SPD308", [14, 15], [("parts.py", 16), ("train.py", 14)]),
        ("SPD505", [19], [("parts.py", 23)]),
        ("SPD311", [19], []),
        ("SPD209", [11], [("rows.py", 12)]),
    ],
)
def test_told_once(tmp_path: Path, code: str, at_call: list[int], at_place: list[tuple[str, int]]) -> None:
    assert sorted(_told(tmp_path, code, "train.py")) == [("train.py", line) for line in at_call]
    assert sorted(_told(tmp_path, code, "train.py", "parts.py", "rows.py")) == at_place


@pytest.mark.parametrize(
    ("body", "lines"),
    [
        ("for row in x:\n        if row == 0:\n            break", [16]),
        ("for row in names:\n        if row == 0:\n            break", []),
        ("y[x > 0.5] = x[x > 0.5]", [16]),
        ("y[x > 0.5] = 0", []),
    ],
)
def test_waits_of_a_helper_in_another_file(tmp_path: Path, body: str, lines: list[int]) -> None:
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "helper.py").write_text(f"def told(x, y, names):\n    {body}\n    return y\n")
    text = TRAIN.replace("from rows import Rows\n", "from rows import Rows\nfrom helper import told\n")
    text = text.replace("loss = ", "noise = told(noise[0], noise[1], [1, 2])\n        loss = ")
    for name, written in (("train.py", text), ("parts.py", PARTS), ("rows.py", ROWS)):
        (tmp_path / name).write_text(written)
    path = tmp_path / "train.py"
    found = Engine(Settings(tmp_path, select=("SPD311",)), Registry.load(), asked=(path,)).check(path).diagnostics
    assert [each.line for each in found if "told" in each.message] == lines


@pytest.mark.parametrize(
    ("body", "lines"),
    [
        ("[CHARS[each] for each in ids if each > 2]", [15]),
        ("[CHARS[int(each)] for each in ids.tolist() if each > 2]", []),
        ("[CHARS[0] for each in ids if each is not None]", []),
        ("[CHARS[0] for each in range(9) if each > 2]", []),
        ("[CHARS[0] for each in CHARS if each]", []),
    ],
)
def test_each_element_of_a_tensor_where_lists_are_handed_too(tmp_path: Path, body: str, lines: list[int]) -> None:
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "text.py").write_text(f"CHARS = list('abc')\n\ndef spell(ids):\n    return ''.join({body})\n")
    text = TRAIN.replace("from rows import Rows\n", "from rows import Rows\nfrom text import spell\n")
    text = text.replace("noise = to_var(torch.randn(16, 64))", "print(spell(targets.cuda()[0]), spell(names[0]))")
    text = text.replace("+ noise", "")
    for name, written in (("train.py", f"{text}\nnames = [[0, 1]]\n"), ("parts.py", PARTS), ("rows.py", ROWS)):
        (tmp_path / name).write_text(written)
    path = tmp_path / "train.py"
    found = Engine(Settings(tmp_path, select=("SPD311",)), Registry.load(), asked=(path,)).check(path).diagnostics
    assert [each.line for each in found if "spell" in each.message] == lines


USERS = """
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader

from ranks import evaluate

model = nn.Linear(64, 64).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(torch.load("rows.pt"), batch_size=16, num_workers=4)
if torch.cuda.device_count() == 0:
    {mode}
    print(evaluate(model, 10))
for epoch in range(10):
    for inputs, targets in loader:
        loss = nn.functional.mse_loss(model(inputs.cuda()), targets.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 2 == 0:
        {mode}
        print(evaluate(model, 10))
        model.train()
"""
RANKS = """
import numpy as np
import torch

def evaluate(model, users):
    total = 0
    for user in range(users):
        rows = np.random.rand(8, 64)
        total += model(*[torch.tensor(each).float().cuda() for each in [rows[user:]]]).argsort()[0].item()
    return total
"""


@pytest.mark.parametrize(
    ("mode", "own", "lines"),
    [
        ("model.eval()", "", [23]),
        ("model.train()", "", []),
        ("pass", "", []),
        ("model.eval()", "model.train()", []),
        ("pass", "model.eval()", [23]),
    ],
)
@pytest.mark.parametrize("code", ["SPD505", "SPD311"])
def test_a_pass_over_no_loader_in_the_mode_that_its_callers_switch_to(
    tmp_path: Path, code: str, mode: str, own: str, lines: list[int]
) -> None:
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "ranks.py").write_text(RANKS.replace("    total = 0\n", f"    total = 0\n    {own}\n"))
    path = tmp_path / "train.py"
    path.write_text(USERS.format(mode=mode))
    found = Engine(Settings(tmp_path, select=(code,)), Registry.load(), asked=(path,)).check(path).diagnostics
    assert [each.line for each in found] == lines


BATCH = """
import torch
from torch import nn
from torch.utils.data import DataLoader

from helper import Net, to_gpu, to_gpu_all

model = Net(torch.load("edges.pt")).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(torch.load("rows.pt"), batch_size=4096, num_workers=4, pin_memory=True)
for epoch in range(10):
    model.train()
    for batch in loader:
        {}
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    for batch in loader:
        print(model(batch["rows"].cuda(non_blocking=True)).mean().item())
"""
HELPER = """
import torch
from torch import nn

def to_gpu(batch):
    moved = {}
    for name, rows in batch.items():
        moved[name] = rows.cuda()
    return moved

def to_gpu_all(*tensors):
    return [tensor.cuda() for tensor in tensors]

class Net(nn.Module):
    def __init__(self, edges):
        super().__init__()
        self.layer = nn.Linear(64, 64)

    def forward(self, x):
        turned = self.training and x.shape[1] > 1
        if turned:
            x = x.index_select(1, torch.arange(x.shape[1] - 1, -1, -1).cuda())
        return self.weigh(self.layer(x)) if self.training else self.layer(x)

    def weigh(self, x):
        return x * torch.tensor([0.5, 0.25]).cuda().repeat(32)
"""


@pytest.mark.parametrize(
    ("step", "codes"),
    [
        ("loss = model(to_gpu(batch)['rows']).mean()", [("SPD205", 14), ("SPD308", 14), ("SPD309", 14)]),
        (
            "loss = model(to_gpu_all(batch['rows'])[0]).mean()",
            [("SPD205", 14), ("SPD308", 14), ("SPD309", 14)],
        ),
        (
            "loss = nn.functional.mse_loss(*to_gpu_all(batch['rows'], batch['wanted']))",
            [("SPD205", 14)],
        ),
        ("loss = batch['rows'].cuda(non_blocking=True).mean()", []),
    ],
)
def test_copies_of_a_helper_in_another_file(tmp_path: Path, step: str, codes: list[tuple[str, int]]) -> None:
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "helper.py").write_text(HELPER)
    path = tmp_path / "train.py"
    path.write_text(BATCH.format(step))
    settings = Settings(tmp_path, select=("SPD205", "SPD308", "SPD309"))
    found = Engine(settings, Registry.load(), asked=(path,)).check(path).diagnostics
    assert sorted((each.code, each.line) for each in found) == codes


def test_a_loop_over_the_parts_of_a_batch_runs_in_the_step(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "helper.py").write_text(HELPER)
    (tmp_path / "train.py").write_text(BATCH.format("loss = model(to_gpu(batch)['rows']).mean()"))
    paths = (tmp_path / "train.py", tmp_path / "helper.py")
    found = Engine(Settings(tmp_path, select=("SPD205",)), Registry.load(), asked=paths).check(paths[1]).diagnostics
    assert [(each.line, "on each training step" in each.message) for each in found] == [(8, True)]


POLICY = """
import torch
from torch import nn
from torch.distributions import Categorical

model = nn.Linear(64, 8).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
{}
for states, actions in torch.utils.data.DataLoader(torch.load("rows.pt"), batch_size=4096):
    chosen = Categorical(logits=model(states.cuda()))
    loss = -chosen.log_prob(actions.cuda()).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("switch", "lines"),
    [
        ("", [10]),
        ("torch.distributions.Distribution.set_default_validate_args(False)", []),
        ("step = torch.compile(model)", []),
    ],
)
def test_distributions_that_check_their_arguments(tmp_path: Path, switch: str, lines: list[int]) -> None:
    path = tmp_path / "train.py"
    path.write_text(POLICY.format(switch))
    found = Engine(Settings(tmp_path, select=("SPD304",)), Registry.load(), asked=(path,)).check(path).diagnostics
    assert [each.line for each in found] == lines


MEMORY = """
import numpy as np

class Memory:
    def __init__(self, capacity, weighed):
        self.rows, self.weighed = np.zeros((capacity, 64)), weighed
        self.priorities = np.ones(capacity)

    def sample(self, size):
        if not self.weighed:
            return self.rows[np.random.choice(len(self.rows), size)]
        probs = self.priorities ** 0.6
        return self.rows[np.random.choice(len(self.rows), size, p=probs / probs.sum())]
"""
PLAYS = """
import torch
from torch import nn

from memory import Memory

weighed = True
memory = Memory({capacity}, weighed)
model = nn.Linear(64, 64).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for frame in range(10000000):
    if frame % 4 == 0:
        if weighed:
            rows = memory.sample(32)
        else:
            rows = memory.sample(32)
        loss = model(torch.as_tensor(rows).cuda()).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("capacity", "asked", "told"),
    [
        (100000, ("train.py",), [("train.py", 14)]),
        (100000, ("train.py", "memory.py"), [("memory.py", 13)]),
        (10000, ("train.py", "memory.py"), []),
    ],
)
def test_chances_of_a_whole_memory(
    tmp_path: Path, capacity: int, asked: tuple[str, ...], told: list[tuple[str, int]]
) -> None:
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "memory.py").write_text(MEMORY)
    (tmp_path / "train.py").write_text(PLAYS.format(capacity=capacity))
    paths = tuple(tmp_path / name for name in asked)
    settings = Settings(tmp_path, select=("SPD218",))
    found = [each for path in paths for each in Engine(settings, Registry.load(), asked=paths).check(path).diagnostics]
    assert [(each.path.name, each.line) for each in found] == told


TWICE = """
import torch

def scaled(x):
    low, high = torch.tensor([0.1, 0.2]).to(x.device), torch.tensor([0.3, 0.4]).to(x.device)
    return (x - torch.tensor([0.5, 0.6]).to(x.device)) * low + high
"""


def test_places_of_one_line_are_shown_once(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "helper.py").write_text(TWICE)
    text = TRAIN.replace("from rows import Rows\n", "from rows import Rows\nfrom helper import scaled\n")
    text = text.replace("loss = ", "noise = scaled(noise.cuda()) + scaled(noise)\n        loss = ")
    for name, written in (("train.py", text), ("parts.py", PARTS), ("rows.py", ROWS)):
        (tmp_path / name).write_text(written)
    path = tmp_path / "train.py"
    found = Engine(Settings(tmp_path, select=("SPD309",)), Registry.load(), asked=(path,)).check(path).diagnostics
    (told,) = [each for each in found if "scaled" in each.message]
    assert [each.line for each in told.related] == [5, 6]


GRAPHS = """
import torch
from torch_geometric.datasets import TUDataset
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GCNConv

from measures import right

net = GCNConv(64, 64).cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for data in DataLoader(TUDataset("x", "MUTAG"), batch_size=32):
    {moved}
    out = net(data.x, data.edge_index)
    loss = (out - data.y).abs().mean()
    print(right(out, data.y))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
MEASURES = """
def right(predicted, labels):
    return (predicted.argmax(1) == labels).sum().item()
"""


@pytest.mark.parametrize(
    ("moved", "is_found"), [("data.to('cuda')", True), ("data.cuda()", True), ("data.to('cpu')", False)]
)
def test_a_batch_of_graphs_moves_its_parts(tmp_path: Path, moved: str, is_found: bool) -> None:
    (tmp_path / "measures.py").write_text(MEASURES)
    path = tmp_path / "train.py"
    path.write_text(GRAPHS.replace("{moved}", moved))
    found = Engine(Settings(tmp_path, select=("SPD311",)), Registry.load(), asked=(path,)).check(path).diagnostics
    assert bool(found) is is_found


HANDED = """
import torch

from losses import Margin, Plain, compute

criterion = {criterion}
net = torch.nn.Linear(64, 64).cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for x, y in torch.utils.data.DataLoader(torch.load("rows.pt")):
    loss = compute(criterion, net(x.cuda()), y.cuda())
    loss = loss + compute(Plain(), net(x.cuda()), y.cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
LOSSES = """
import torch


def total(criterion, outs, labels):
    return sum(criterion(out, labels) for out in outs)


def compute(criterion, out, labels):
    if isinstance(out, (tuple, list)):
        return total(criterion, out, labels)
    return criterion(out, labels)


class Margin(torch.nn.Module):
    def forward(self, out, labels):
        if (labels > 0).sum() == 0:
            return out.sum() * 0
        return (out - labels).abs().mean()


class Plain(torch.nn.Module):
    def forward(self, out, labels):
        return (out - labels).abs().mean()


def margin(out, labels):
    return out[labels > 0].mean()
"""


@pytest.mark.parametrize(("criterion", "is_found"), [("Margin()", True), ("Plain()", False), ("torch.nn.MSELoss()", False)])
def test_what_a_function_is_handed_to_call(tmp_path: Path, criterion: str, is_found: bool) -> None:
    """The loss of one call is not that of another."""
    (tmp_path / "losses.py").write_text(LOSSES)
    path = tmp_path / "train.py"
    path.write_text(HANDED.replace("{criterion}", criterion))
    found = Engine(Settings(tmp_path, select=("SPD311",)), Registry.load(), asked=(path,)).check(path).diagnostics
    assert [each.line for each in found] == ([10] if is_found else [])


MODES = """
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(64, 64)

    def forward(self, x):
        out = self.layer(x)
        if {test}:
            return out * 0 if (out > 0.5).sum().item() == 0 else out
        return out
"""


@pytest.mark.parametrize(
    ("test", "is_found"),
    [
        ("(not self.training) & (x.shape[0] > 1)", False),
        ("not self.training and x.shape[0] > 1", False),
        ("self.training & (x.shape[0] > 1)", True),
        ("(not self.training) | (x.shape[0] > 1)", True),
    ],
)
def test_what_a_module_asks_in_evaluation_alone(tmp_path: Path, test: str, is_found: bool) -> None:
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "helper.py").write_text(MODES.replace("{test}", test))
    path = tmp_path / "train.py"
    text = BATCH.format("loss = model(batch['rows'].cuda()).mean()").split("    model.eval()")[0]
    path.write_text(text)
    found = Engine(Settings(tmp_path, select=("SPD311",)), Registry.load(), asked=(path,)).check(path).diagnostics
    assert bool(found) is is_found
