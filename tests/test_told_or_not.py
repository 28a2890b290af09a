"""What is told of a training, and what is not, where one line elsewhere decides: found in scripts that nobody had seen."""

from __future__ import annotations

import pytest

from tests.conftest import Project

TRAIN = """
import torch
from torch import nn
from torch.utils.data import DataLoader
{imports}

{network}


def main(rows):
    model = {model}
    criterion = {criterion}
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    loader = DataLoader(rows, batch_size=64, shuffle=True)
    for epoch in range(9):
        for images, labels in loader:
            images, labels = images.cuda(), labels.cuda()
            loss = criterion({output}, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


main(torch.load("rows.pt"))
"""
NETWORK = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.head = {first}, {second}, nn.Linear(256, 10)

    def forward(self, x):
        return self.head(self.b(self.a(x).relu()){pooled})
"""
PLANAR = NETWORK.format(first="nn.Conv2d(3, 128, 3)", second="nn.Conv2d(128, 256, 3)", pooled=".mean((2, 3))")
FLAT = NETWORK.format(first="nn.Linear(64, 2048)", second="nn.Linear(2048, 256)", pooled="")
LOSSES = """
import torch
from torch import nn


class Masked(nn.Module):
    def forward(self, out, labels):
        return (out - labels)[labels > 0].square().mean()


class Plain(nn.Module):
    def forward(self, out, labels):
        return (out - labels).square().mean()


def loss_of(name):
    return LOSSES[name]()


LOSSES = {"masked": Masked, "plain": Plain}
"""


def _codes(project: Project, code: str, **parts: str) -> list[str]:
    given = {
        "imports": "",
        "network": PLANAR,
        "model": "Net().cuda()",
        "criterion": "nn.CrossEntropyLoss()",
        "output": "model(images)",
        **parts,
    }
    project.configure(f"select = ['{code}']\ntorch = '2.13'")
    path = project.write("train.py", TRAIN.format(**given))
    return [str(each["level"]) for each in project.findings(path, "--notes")]


@pytest.mark.parametrize(
    ("output", "level"), [("model(images)", ["warning"]), ("model.module(images)", []), ("model(images) + 0", ["warning"])]
)
def test_a_wrapper_that_is_passed_by_copies_nothing(project: Project, output: str, level: list[str]) -> None:
    assert _codes(project, "SPD603", model="nn.DataParallel(Net().cuda())", output=output) == level


@pytest.mark.parametrize(("network", "levels"), [(PLANAR, ["warning"]), (FLAT, [])])
def test_determinism_costs_what_cudnn_computes(project: Project, network: str, levels: list[str]) -> None:
    imports = "\ntorch.backends.cudnn.benchmark = True\ntorch.backends.cudnn.deterministic = True\n"
    assert _codes(project, "SPD401", imports=imports, network=network) == levels


@pytest.mark.parametrize(
    ("arguments", "levels"),
    [
        ("torch_dtype=torch.bfloat16", []),
        ("dtype='auto'", []),
        ("torch_dtype=torch.float32", ["warning"]),
        ("revision='main'", ["warning"]),
    ],
)
def test_networks_that_are_loaded_in_half_precision(project: Project, arguments: str, levels: list[str]) -> None:
    imports = "from transformers import AutoModelForSequenceClassification"
    model = f"AutoModelForSequenceClassification.from_pretrained('bert-large', {arguments}).cuda()"
    found = _codes(project, "SPD101", imports=imports, network="", model=model, output="model(images).logits")
    assert found == levels


@pytest.mark.parametrize(("default", "levels"), [("masked", ["warning"]), ("plain", [])])
def test_calls_lead_into_what_an_option_chooses_by_default(project: Project, default: str, levels: list[str]) -> None:
    project.write("losses.py", LOSSES)
    imports = (
        "import argparse\n\nfrom losses import loss_of\n\nparser = argparse.ArgumentParser()\n"
        f"parser.add_argument('--loss', default='{default}')\nargs = parser.parse_args()\n"
    )
    assert _codes(project, "SPD311", imports=imports, criterion="loss_of(args.loss)") == levels


@pytest.mark.parametrize(
    ("loop", "levels"),
    [
        ("for row in parts:\n        found.append(net(row))", ["warning"]),
        ("for key in parts:\n        found.append(net(parts[key]))", []),
    ],
)
def test_the_keys_of_a_dict_are_no_rows(project: Project, loop: str, levels: list[str]) -> None:
    network = f"{PLANAR}\n\ndef each(net, parts):\n    found = []\n    {loop}\n    return torch.cat(found)\n"
    assert _codes(project, "SPD310", network=network, output="each(model, images)") == levels


@pytest.mark.parametrize(
    ("sized", "levels"),
    [("T = torchvision.transforms.Resize((224, 224))", ["note"]), ("T = torchvision.transforms.ToTensor()", [])],
)
def test_pictures_of_one_size_one_by_one(project: Project, sized: str, levels: list[str]) -> None:
    """A loader that hands out one at a time, for a test, leaves the shapes to the transforms."""
    imports = f"import torchvision\n\n{sized}\ntest_loader = DataLoader(torch.load('test.pt'), batch_size=1)\n"
    assert _codes(project, "SPD402", imports=imports) == levels


PARAMETER = """
class Net(nn.Module):
    def __init__(self, most=100.0):
        super().__init__()
        self.layer, self.most = nn.Linear(64, 10), most
        self.scale = KEPT

    def forward(self, x):
        scale = self.scale.exp()
        return self.layer(x) * torch.minimum(scale, torch.tensor(self.most, device=scale.device))
"""


@pytest.mark.parametrize(("kept", "is_told"), [("nn.Parameter(torch.zeros(()))", True), ("torch.zeros(())", False)])
def test_parameters_are_wherever_their_module_is(project: Project, kept: str, is_told: bool) -> None:
    assert bool(_codes(project, "SPD309", network=PARAMETER.replace("KEPT", kept))) is is_told
