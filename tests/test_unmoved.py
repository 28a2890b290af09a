"""A training that never puts its model or batches on a GPU, in a project whose other scripts do."""

from __future__ import annotations

import pytest

from tests.conftest import Project

HEAT = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import shared.plots as plots
from shared.nets import Forecast
from train_images import accuracy, run_epoch


def run_epoch(model, loader, optimizer):
    total = 0.0
    for x, y in loader:
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total


def main():
    rows = torch.load("rows.pt")
    model = Forecast(64)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    loader = DataLoader(TensorDataset(rows[:, :64], rows[:, 64:]), batch_size=256, shuffle=True)
    for epoch in range(100):
        print(run_epoch(model, loader, optimizer))
    plots.curve(model, rows[:1, :64])
    print(accuracy(model(rows[:, :64]), rows[:, 64:]))


if __name__ == "__main__":
    main()
"""
NETS = """
import torch
from torch import nn


class Forecast(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(width, 2048), nn.ReLU(), nn.Linear(2048, 8))

    def forward(self, x):
        return self.layers(x)


class Seer(Forecast):
    def __init__(self, width):
        super().__init__(width)
        self.cuda()
"""
PLOTS = """
import matplotlib.pyplot as plt


def curve(model, row):
    plt.plot(model(row).detach().numpy()[0])


def heat(model, row):
    plt.imshow(model(row.cuda()).detach().cpu().numpy())
"""
IMAGES = """
import torch
from torch import nn

from shared.nets import Seer

device = torch.device("cpu")


def accuracy(output, target):
    return (output.argmax(1) == target.argmax(1)).float().mean().item()


def run_epoch(model, loader, optimizer):
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    model = Seer(32).to("cuda")
    run_epoch(model, torch.load("batches.pt"), torch.optim.SGD(model.parameters(), lr=0.1))
"""


def _found(project: Project, **files: str) -> set[str]:
    project.configure("select = ['SPD101', 'SPD301', 'SPD502']")
    texts = {"train_heat": HEAT, "shared/nets": NETS, "shared/plots": PLOTS, "train_images": IMAGES} | files
    for name, text in texts.items():
        project.write(f"{name}.py", text)
    return {str(each["code"]) for each in project.findings("train_heat.py", "--torch", "2.6", "--notes")}


def test_other_scripts_of_the_project_train_on_a_gpu(project: Project) -> None:
    assert not _found(project)


@pytest.mark.parametrize(
    ("file", "before", "after"),
    [
        ("train_heat", "model = Forecast(64)", "model = Forecast(64).cuda()"),
        ("train_heat", "import accuracy, run_epoch", "import accuracy, run_epoch as other"),
        ("train_heat", "import Forecast", "import Seer as Forecast"),
        ("train_heat", "plots.curve(", "plots.heat("),
        ("train_heat", "plots.curve(model,", "getattr(plots, 'heat')(model,"),
        ("train_heat", "plots.curve(model,", "eval('plots.heat')(model,"),
        ("train_images", 'torch.device("cpu")', 'torch.set_default_device("cuda")'),
        ("shared/nets", "return self.layers(x)", "return self.layers(x.cuda())"),
    ],
)
def test_what_the_script_runs_may_move_it(project: Project, file: str, before: str, after: str) -> None:
    texts = {"train_heat": HEAT, "shared/nets": NETS, "train_images": IMAGES}
    assert before in texts[file]
    text = texts[file].replace(before, after)
    if "as other" in after:
        text = text.replace("print(accuracy", "other(model, loader, optimizer)\n    print(accuracy")
    assert _found(project, **{file: text})


def test_a_class_that_only_says_a_type_is_not_run(project: Project) -> None:
    kinds = "from typing import Union\n\nKind = Union[Forecast, Seer]\n\n\ndef widen(net: Seer) -> Seer:\n    return net\n"
    named = f"{NETS}\n\n{kinds}"
    texts = {"shared/nets": named, "train_heat": HEAT.replace("import Forecast", "import Forecast, Kind")}
    assert not _found(project, **texts)
    made = named.replace("Union[Forecast, Seer]", "Seer(8)")
    assert _found(project, **{**texts, "shared/nets": made})


def test_a_training_that_another_script_starts(project: Project) -> None:
    main = "import train_heat\nfrom shared.nets import Seer\n\ntrain_heat.Forecast = Seer\ntrain_heat.main()\n"
    assert _found(project, main=main)


WRAPPED = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Conv2d(3, 64, 3)

    def forward(self, x):
        return self.layer(x)


net = Net().to(torch.double)
if torch.cuda.is_available():
    net = nn.DataParallel(net)
optimizer = torch.optim.Adam(net.parameters())
for x, y in torch.utils.data.DataLoader(torch.load("images.pt")):
    loss = nn.functional.mse_loss(net(x.to("cuda")), y.to("cuda"))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("before", "after", "is_told"),
    [
        ("", "", False),
        ("Net().to(torch.double)", "Net().cuda()", True),
        ("nn.DataParallel(net)", 'nn.DataParallel(net).to("cuda")', True),
        ("Net().to(torch.double)", 'torch.load("net.pt")', True),
        ("net = Net()", 'torch.set_default_device("cuda")\nnet = Net()', True),
    ],
)
def test_a_network_that_nothing_moves_is_not_copied_to_gpus(
    project: Project, before: str, after: str, is_told: bool
) -> None:
    project.configure("select = ['SPD603']")
    text = WRAPPED.replace(before, after) if before else WRAPPED
    assert bool(project.findings(project.write("train.py", text))) is is_told


NAMED = """
import torch
from torch import nn
{imports}

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Net(nn.Module):
    def __init__(self, device):
        super().__init__()
        self.device = device
        self.layers = nn.Sequential(*[nn.Linear(64, 64) for _ in range(30)])

    def forward(self, x):
        return self.layers(x)


{rows}model = Net(device)
print(device, device.type)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
total = 0.0
for batch in torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(4096, 64)), batch_size=64):
    {moved}loss = model(batch[0]).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total += loss.item()
print(total)
"""


def _named(project: Project, **parts: str) -> list[str]:
    text = NAMED.format(**{"imports": "", "rows": "", "moved": "", **parts})
    project.configure("select = ['SPD301']\ntorch = '2.13'")
    return [each["code"] for each in project.findings(project.write("train.py", text))]


def test_a_device_that_nothing_is_put_on(project: Project) -> None:
    assert not _named(project)


@pytest.mark.parametrize(
    "parts",
    [
        {"moved": "batch = [each.to(model.device) for each in batch]; "},
        {"moved": "batch = list(map(torch.Tensor.cuda, batch)); "},
        {"moved": "batch = moved(batch, device); ", "imports": "from moving import moved"},
        {"moved": "batch = [torch.as_tensor(batch[0], device=device)]; "},
        {"moved": "batch = [torch.as_tensor(batch[0], **where)]; ", "rows": "where = dict(device=device)\n"},
        {"rows": "torch.set_default_device(device)\n"},
    ],
)
def test_a_device_that_may_be_used(project: Project, parts: dict[str, str]) -> None:
    assert _named(project, **parts)


MADE_THERE = """
import torch
from torch import nn

device = {device}


class Net(nn.Module):
    def __init__(self, where):
        super().__init__()
        self.layers = nn.Sequential(*[nn.Linear(64, 64, device=where) for _ in range(30)])

    def forward(self, x):
        return self.layers(x)


def chosen():
    return device


model = Net(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
total = 0.0
for step in range(1000):
    loss = model(torch.randn(64, 64, device={where})).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total += loss.item()
print(total)
"""


@pytest.mark.parametrize("device", ['"cuda"', '"cuda" if torch.cuda.is_available() else "cpu"', 'torch.device("cuda")'])
@pytest.mark.parametrize("where", ["device", "chosen()", "None or device"])
def test_what_is_made_on_a_device_by_any_name(project: Project, device: str, where: str) -> None:
    project.configure("select = ['SPD301']\ntorch = '2.13'")
    assert project.findings(project.write("train.py", MADE_THERE.format(device=device, where=where)))
