"""Which loaders matter: those that something reads from their beginning."""

from __future__ import annotations

import pytest

from tests.conftest import Project

STEPS = """
for epoch in range(10):
    for x, y in loader:
        loss = torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
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
"""


@pytest.mark.parametrize(
    ("between", "lines"),
    [("print(len(data))", [11]), ("for x, y in loader:\n    print(model(x.cuda()).sum())", [9, 11])],
)
def test_a_loader_whose_name_is_bound_anew_before_anything_reads_it(
    project: Project, between: str, lines: list[int]
) -> None:
    project.configure("select = ['SPD201']\ntorch = '2.13'")
    path = project.write("train.py", REBOUND.format(between=between) + STEPS)
    found = project.findings("--notes", path)
    assert sorted(each["line"] for each in found) == [line + (between.count("\n") if line > 9 else 0) for line in lines]


PART = """
import torch


class Part(torch.utils.data.Dataset):
    def __init__(self, rows, count):
        self.rows, self.count = rows, count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return self.rows[index]


def first(rows, count):
    return Part(rows, count)
"""
READS_PART = """
import torch
import torchvision
from parts import first

data = torchvision.datasets.{data}
model = torch.nn.Linear(784, 10).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = torch.utils.data.DataLoader(first(data, 500), batch_size=64, num_workers=2)
for epoch in range(10):
    for x, y in loader:
        loss = torch.nn.functional.cross_entropy(model(x.cuda().flatten(1)), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


@pytest.mark.parametrize(("starts", "is_found"), [("", False), ("import letters\n", True)])
def test_what_another_program_wraps_in_the_same_class(project: Project, starts: str, is_found: bool) -> None:
    """Of two programs that wrap their data in one class, each reads its own; a file that imports both makes them one."""
    project.configure("select = ['SPD209']\ntorch = '2.13'")
    project.write("parts.py", PART)
    project.write("digits.py", READS_PART.format(data='MNIST("data", transform=torchvision.transforms.ToTensor())'))
    changed = "torchvision.transforms.Compose([torchvision.transforms.RandomCrop(32), torchvision.transforms.ToTensor()])"
    path = project.write("letters.py", READS_PART.format(data=f'CIFAR10("data", transform={changed})'))
    project.write("all.py", f"import digits\n{starts}")
    assert bool(project.findings(path)) is is_found


MODULE = """
import torch
import torchvision
from torch.utils.data import DataLoader


def pictures(folder):
    data = torchvision.datasets.ImageFolder(folder, torchvision.transforms.ToTensor())
    return DataLoader(data, batch_size=64, shuffle=True)


{guard}
    shown = DataLoader(torchvision.datasets.ImageFolder("others", torchvision.transforms.ToTensor()), batch_size=64)
    for epoch in range(2):
        for x, y in shown:
            print(x.shape)
"""
TRAINS = """
import torch
import torchvision
from pictures import pictures

model = torchvision.models.resnet18().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = pictures("train")
"""


@pytest.mark.parametrize(
    ("imports", "levels"), [("from pictures import pictures", {9: "warning", 13: "note"}), ("from json import loads", {})]
)
def test_a_module_of_data_that_shows_itself_too(project: Project, imports: str, levels: dict[int, str]) -> None:
    """What it does when it is run by itself is beside the training that imports it, and is all of it where none does."""
    project.configure("select = ['SPD201']\ntorch = '2.13'")
    project.write("train.py", TRAINS.replace("from pictures import pictures", imports) + STEPS)
    path = project.write("pictures.py", MODULE.format(guard='if __name__ == "__main__":'))
    assert {each["line"]: each["level"] for each in project.findings("--notes", path)} == levels


MADE = """
import torch
import torchvision
from torch.utils.data import DataLoader


def loader_of(folder, num_workers={default}):
    data = torchvision.datasets.ImageFolder(folder, torchvision.transforms.ToTensor())
    return DataLoader(data, batch_size=64, num_workers=num_workers)


model = torchvision.models.resnet18().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
{made}
"""


@pytest.mark.parametrize(
    ("default", "made", "levels"),
    [
        ("0", 'loader = loader_of("train", 4)', ["warning"]),
        ("4", 'loader = loader_of("train")', ["warning"]),
        ("0", 'loader = loader_of("train")', []),
        ("0", 'loader = DataLoader(torch.load("rows.pt"))', []),
    ],
)
def test_workers_that_none_but_tests_ask_for(project: Project, default: str, made: str, levels: list[str]) -> None:
    project.configure("select = ['SPD203']\ntorch = '2.13'")
    project.write("tests/test_loaders.py", 'from train import loader_of\n\n\ndef test_it():\n    loader_of("some", 4)\n')
    path = project.write("train.py", MADE.format(default=default, made=made) + STEPS)
    assert [each["level"] for each in project.findings("--notes", path)] == levels


COLLATED = """
import torch
from torch.utils.data import DataLoader


def joined(items):
    return torch.stack(items)


class Run:
    def __init__(self, data, collate=None):
        self.data, self.collate = data, collate

    def fit(self, model):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(10):
            for x in DataLoader(self.data, batch_size=512, num_workers=4, collate_fn={collate}):
                loss = model(x.cuda()).mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()


Run(torch.load("rows.pt"){handed}).fit(torch.nn.Linear(512, 512).cuda())
"""


@pytest.mark.parametrize(
    ("collate", "handed", "is_written"),
    [
        ("self.data.collate_fn", "", False),
        ("self.collate", ", joined", True),
        ("joined", "", True),
        ("torch.utils.data.default_collate", "", True),
        ("None", "", True),
    ],
)
def test_batches_that_are_put_together_out_of_sight(project: Project, collate: str, handed: str, is_written: bool) -> None:
    """A batch of a class of the project's own is not pinned, or is made anew."""
    project.configure("select = ['SPD202']\ntorch = '2.13'")
    path = project.write("train.py", COLLATED.format(collate=collate, handed=handed))
    (found,) = project.findings("--notes", path)
    assert (found["fix"] is not None) is is_written


BY_CONFIG = """
import sys

import torch
import torchvision
import yaml


class Configured:
    def __init__(self, values):
        self.__dict__.update(values)


with open(sys.argv[1]) as file:
    args = Configured(yaml.safe_load(file))
data = torchvision.datasets.ImageFolder("pictures", torchvision.transforms.ToTensor())
model = torchvision.models.resnet18().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = torch.utils.data.DataLoader(data, batch_size=64, num_workers=args.workers)
"""


@pytest.mark.parametrize(
    ("counts", "given", "levels"),
    [
        ((0, 0), "configs/run_0.yaml", ["note"]),
        ((0, 0), "configs/run_0.yaml data.workers=8", ["warning"]),
        ((0, 4), "", ["warning"]),
        ((8, 8), "", ["warning"]),
        ((), "", ["warning"]),
    ],
)
def test_a_loader_that_all_configurations_give_no_workers(
    project: Project, counts: tuple[int, ...], given: str, levels: list[str]
) -> None:
    project.configure("select = ['SPD203']\ntorch = '2.13'")
    project.write("README.md", f"# Training\n\n    python train.py {given}\n")
    for number, count in enumerate(counts):
        project.write(f"configs/run_{number}.yaml", f"workers: {count}\nlr: 0.1\n")
    found = project.findings("--notes", project.write("train.py", BY_CONFIG + STEPS))
    assert [each["level"] for each in found] == levels


CALIBRATED = """
import torch
import torchvision


class Pictures(torch.utils.data.Dataset):
    def __init__(self, paths):
        self.paths, self.limit = paths, None

    def __getitem__(self, index):
        return torchvision.io.read_image(self.paths[index])[:, : self.limit], index


class Sampler(torch.utils.data.Sampler):
    def __init__(self, dataset):
        self.dataset = dataset

    def __iter__(self):
        return iter(range(len(self.dataset.paths)))

    def calibrate(self, loader):
        widths = []
        for pictures, _ in loader:
            widths.append(pictures.shape[2])
        {after}


data = Pictures(torch.load("paths.pt"))
sampler = Sampler(data)
loader = torch.utils.data.DataLoader(data, batch_size=64, sampler=sampler, num_workers=4)
sampler.calibrate(loader)
model = torchvision.models.resnet18().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""


@pytest.mark.parametrize(
    ("after", "is_found"), [("self.dataset.limit = min(widths)", False), ("self.limit = min(widths)", True)]
)
def test_a_dataset_that_a_first_pass_sets_up(project: Project, after: str, is_found: bool) -> None:
    """Workers that persist would go on with what it was before."""
    project.configure("select = ['SPD203']\ntorch = '2.13'")
    found = project.findings("--notes", project.write("train.py", CALIBRATED.replace("{after}", after) + STEPS))
    assert bool(found) is is_found
