"""Other ways for code to run, to be made or to get its values than the first that is seen."""

from __future__ import annotations

import pytest

from tests.conftest import Project

NET = """
import torch
from torch import nn


class Masked(nn.Module):
    def __init__(self, width=512):
        super().__init__()
        self.layer = nn.Linear(width, width)

{more}
    def forward(self, x):
        if (x > 0).sum() == 0:
            return x
        return self.layer(x)
"""
STEPS = """
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in torch.utils.data.DataLoader(torch.load("rows.pt"), batch_size=64, num_workers=4):
    loss = nn.functional.mse_loss(model(x.cuda()), y.cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
START = f"""
import argparse
import functools

import torch
from torch import nn

import nets

parser = argparse.ArgumentParser()
parser.add_argument("--debug", action="store_true")
parser.add_argument("--net", default="Plain")
args = parser.parse_args()
{{made}}
model = model.cuda()
{STEPS}
"""
OWN = "    @classmethod\n    def narrow(cls):\n        return cls(64)\n"
BASE = "class Base(nn.Module):\n    @classmethod\n    def of_own_kind(cls):\n        return cls(64)\n\n\n"
HEIR = "\n\nclass Deep(Masked):\n    def __init__(self):\n        super().__init__(1024)\n"


@pytest.mark.parametrize(
    ("made", "more", "heir", "level"),
    [
        ("model = nn.Linear(8, 8)\nif args.debug:\n    model = nets.Masked()", "", "", "note"),
        ("model = nets.Masked() if args.debug else nets.Masked.narrow()", OWN, "", "warning"),
        ("model = nets.Masked() if args.debug else nets.Masked.of_own_kind()", "BASE", "", "warning"),
        ("kinds = {'Masked': nets.Masked}\nmodel = nets.Masked(8) if args.debug else kinds[args.net]()", "", "", "warning"),
        ("make = functools.partial(nets.Masked, 8)\nmodel = nets.Masked() if args.debug else make()", "", "", "warning"),
        ("model = nets.Masked() if args.debug else getattr(nets, args.net)()", "", HEIR, "warning"),
    ],
)
def test_an_object_of_a_class_is_made_in_another_way(project: Project, made: str, more: str, heir: str, level: str) -> None:
    project.configure("select = ['SPD304']")
    project.write("README.md", "# Training\n\n`python train.py`\n")
    text = NET.replace("{more}", "" if more == "BASE" else more) + heir
    if more == "BASE":
        text = text.replace("class Masked(nn.Module):", f"{BASE}class Masked(Base):")
    nets = project.write("nets.py", text)
    found = project.findings("--notes", project.write("train.py", START.replace("{made}", made)), nets)
    assert [each["level"] for each in found] == [level]


def test_what_calls_on_each_level_hand_over_is_looked_into_once(project: Project) -> None:
    """Three levels of three calls, each of a function that calls what it is handed: their ways multiply."""
    levels = ["def level0(x):\n    return torch.tanh(x)\n"]
    for number in range(1, 9):
        levels.append(f"def level{number}(x):\n" + f"    x = run(level{number - 1}, x)\n" * 3 + "    return x\n")
    project.configure("select = ['SPD301', 'SPD304']")
    project.write("parts.py", "import torch\n\n\ndef run(step, x):\n    return step(x)\n\n\n" + "\n\n".join(levels))
    made = "import parts\n\nmodel = nn.Linear(8, 8).cuda()\n" + STEPS.replace(
        "model(x.cuda())", "parts.level8(model(x.cuda()))"
    )
    assert not project.findings("--notes", project.write("train.py", "import torch\nfrom torch import nn\n\n" + made))


def test_what_a_call_hands_over_waits(project: Project) -> None:
    project.configure("select = ['SPD311']")
    parts = "def run(step, x):\n    return step(x)\n\n\ndef watched(x):\n    print(x.mean().item())\n    return x\n"
    project.write("parts.py", parts)
    made = "import parts\n\nmodel = nn.Linear(8, 8).cuda()\n" + STEPS.replace(
        "model(x.cuda())", "parts.run(parts.watched, model(x.cuda()))"
    )
    found = project.findings("--notes", project.write("train.py", "import torch\nfrom torch import nn\n\n" + made))
    assert [each["code"] for each in found] == ["SPD311"]


MOVED = """
import torch
from torch import nn
from torch_geometric.datasets import TUDataset
from torch_geometric.loader import DataLoader

model = nn.Linear(8, 8).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(9):
    for batch in {loader}:
        {moved}
        {asked}
        loss = model({used}).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


GRAPHS = "DataLoader(TUDataset('data', 'MUTAG'), batch_size=32)"
TENSORS = "torch.utils.data.DataLoader(torch.randn(1024, 8), batch_size=32)"


@pytest.mark.parametrize(
    ("loader", "moved", "asked", "used", "waits"),
    [
        (GRAPHS, "batch.to('cuda')", "print((model(batch.x) == batch.y).sum().item())", "batch.x", True),
        (TENSORS, "batch.to('cuda')", "if (batch > 0).any(): continue", "batch.cuda()", False),
        (GRAPHS, "if epoch > 3:\n            batch.to('cuda')", "if (batch.x > 0).any(): continue", "batch.x.cuda()", False),
    ],
)
def test_a_batch_that_a_line_of_its_own_moves(
    project: Project, loader: str, moved: str, asked: str, used: str, waits: bool
) -> None:
    project.configure("select = ['SPD301', 'SPD304']")
    text = MOVED.replace("{loader}", loader).replace("{moved}", moved).replace("{asked}", asked).replace("{used}", used)
    assert bool(project.findings("--notes", project.write("train.py", text))) is waits


TAGGER = """
import torch
from torch import nn
from transformers import AutoModel, Trainer, TrainingArguments


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = AutoModel.from_pretrained("bert-base-cased"), nn.Linear(768, 9)

    def forward(self, input_ids, labels=None):
        logits = self.head(self.body(input_ids)[0])
{body}


trainer = Trainer(model=Tagger(), args=TrainingArguments("out"), train_dataset=torch.load("rows.pt"))
trainer.{task}
"""
LOSS = "        return nn.functional.cross_entropy(logits.view(-1, 9), labels.view(-1)), logits"
WAITS = "        print(logits.mean().item())\n"


@pytest.mark.parametrize(
    ("body", "task", "waits"),
    [
        (WAITS + LOSS, "train()", True),
        (WAITS + LOSS, "evaluate()", False),
        (f"        if labels is None:\n    {WAITS}            return logits\n{LOSS}", "train()", False),
        (f"        if labels is not None:\n    {LOSS}\n{WAITS}        return logits", "train()", False),
    ],
)
def test_the_forward_of_a_model_that_a_trainer_is_given(project: Project, body: str, task: str, waits: bool) -> None:
    project.configure("select = ['SPD301']")
    text = TAGGER.replace("{body}", body).replace("{task}", task)
    assert bool(project.findings("--notes", project.write("train.py", text))) is waits


OPTIONS = """
import argparse
import json


class Options:
    def gather(self):
        parser = argparse.ArgumentParser()
        parser.add_argument("--show", action="store_true")
        return parser.parse_args()

    def parse(self):
        self.opt = self.gather()
{set}
        return self.opt
"""


@pytest.mark.parametrize(
    ("put", "level"),
    [
        ("        print(self.opt)", "note"),
        ("        vars(self.opt).update(json.load(open('run.json')))", "warning"),
        ("        self.opt.__dict__.update(json.load(open('run.json')))", "warning"),
        (
            "        for key, value in json.load(open('run.json')).items():\n            setattr(self.opt, key, value)",
            "warning",
        ),
    ],
)
def test_options_that_a_file_sets(project: Project, put: str, level: str) -> None:
    project.configure("select = ['SPD301']")
    project.write("README.md", "# Training\n\n`python train.py`\n")
    project.write("options.py", OPTIONS.replace("{set}", put))
    made = "import torch\nfrom torch import nn\n\nfrom options import Options\n\nopt = Options().parse()\n"
    text = f"{made}model = nn.Linear(8, 8).cuda()\n{STEPS}    if opt.show:\n        print(loss.item())\n"
    assert [each["level"] for each in project.findings("--notes", project.write("train.py", text))] == [level]


SAMPLED = """
import time

import torch
from torch import nn


def main():
    model = nn.Sequential(*[nn.Linear(1024, 1024) for _ in range(16)]).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    begun = time.time()
    for step in range(200_000):
        x = torch.rand(4096, 1024, device="cuda")
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(time.time() - begun)
    {end}


main()
"""


@pytest.mark.parametrize(("end", "is_told"), [("torch.save(model.state_dict(), 'net.pt')", True), ("print('done')", False)])
def test_a_training_on_samples_that_it_draws(project: Project, end: str, is_told: bool) -> None:
    project.configure("select = ['SPD502']")
    assert bool(project.findings("--notes", project.write("train.py", SAMPLED.replace("{end}", end)))) is is_told


KEPT = """
import os
import pickle

import torch
from torch import nn

model = nn.Linear(8, 8).cuda()
if os.path.exists("mean.pt"):
    mean = {loaded}
else:
    mean = torch.rand(8).cuda()
"""


@pytest.mark.parametrize(
    ("loaded", "waits"),
    [
        ("torch.load('mean.pt')['mean']", True),
        ("torch.load('mean.pt', map_location='cpu')['mean']", False),
        ("pickle.load(open('mean.pt', 'rb'))['mean']", False),
    ],
)
def test_a_tensor_that_a_file_holds(project: Project, loaded: str, waits: bool) -> None:
    """What is written from the GPU is read to it, unless it is told where to."""
    project.configure("select = ['SPD301']")
    text = KEPT.replace("{loaded}", loaded) + STEPS + "    print(mean.sum().item())\n"
    assert bool(project.findings("--notes", project.write("train.py", text))) is waits


def test_a_table_of_many_rows_is_looked_through_once(project: Project) -> None:
    rows = "".join(f"    [{number}, ['a', {number}], {{'b': {number}}}],\n" for number in range(2_000))
    uses = "".join(f"x{number} = TABLE[{number}]\n" for number in range(1_000))
    project.configure("select = ['SPD301']")
    assert not project.findings("--notes", project.write("train.py", f"import torch\n\nTABLE = [\n{rows}]\n{uses}"))
