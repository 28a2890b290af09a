"""Which backward passes need the graph that they keep: each look-alike is a program of its own."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from speedlint.ask.program import Program
from speedlint.ask.script import Options
from speedlint.shapes.optimizer import regraph

PLAIN = """
import torch
from torch import nn
from torch.utils.data import DataLoader

class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        # made

    def forward(self, x):
        x = self.layer(x)
        # kept
        return x

def train(dataset):
    model = Network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    criterion = nn.MSELoss()
    # before
    for images, labels in DataLoader(dataset):
        output = model(images)
        loss = criterion(output, labels)
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        optimizer.step()
        # after
    # end

train(torch.load("data.pt"))
"""
LOOKALIKES = {
    "a second loss": {"# after": "output.mean().backward()"},
    "a sum that is differentiated in the end": {
        "# before": "total = 0.0",
        "# after": "total += loss",
        "# end": "total.backward()",
    },
    "a gradient penalty": {"# after": "torch.autograd.grad(output.sum(), images)"},
    "a state that is carried over": {
        "# before": "state = torch.zeros(4)",
        "images)": "images + state)",
        "# after": "state = output",
    },
    "an output that is carried over": {
        "# before": "last = None",
        "(output, labels)": "(output if last is None else output + last, labels)",
        "# after": "last = output",
    },
    "a list of outputs": {
        "# before": "outputs = []",
        "(output, labels)": "(sum(outputs, output), labels)",
        "# after": "outputs.append(output)",
    },
    "a graph made before the loop": {
        "# before": "scale = model.layer.weight.softmax(0)",
        "(output, labels)": "(output * scale, labels)",
    },
    "a graph made by a call before the loop": {
        "# before": "code = model(torch.ones(4))",
        "(output, labels)": "(output + code, labels)",
    },
    "a module that keeps its output": {"# kept": "self.state = x"},
    "a module that fills a list": {"# made": "self.seen = []", "# kept": "self.seen[0] = x"},
    "a module that keeps its state in a pair": {"# kept": "self.h, self.c = x, x"},
    "a module that keeps what a call returns": {"# kept": "self.h, self.c = self.layer(x)"},
    "a module that appends to a list": {"# made": "self.seen = []", "# kept": "self.seen.append(x)"},
    "a module that copies into a buffer": {"# kept": "self.layer.weight.copy_(x)"},
    "a list of the file's": {"class Network": "SEEN = []\n\nclass Network", "# kept": "SEEN.append(x)"},
    "a dict of the file's": {"class Network": "SEEN = {}\n\nclass Network", "# kept": "SEEN['x'] = x"},
    "a cached function": {"class Network": "@functools.lru_cache\ndef scale(x):\n    return x\n\nclass Network"},
    "a tensor of the file's": {
        "class Network": "WEIGHT = torch.ones(4, requires_grad=True).softmax(0)\n\nclass Network",
        "# kept": "x = x * WEIGHT",
    },
    "a function within that uses a tensor of the one around": {
        "# before": (
            "scale = torch.softmax(model.layer.weight, 0)\n    def scaled(x):\n        return torch.matmul(x, scale)\n"
        ),
        "(output, labels)": "(scaled(output), labels)",
    },
    "setattr": {"# kept": "setattr(self, 'state', x)"},
    "a tensor computed when the module is made": {"# made": "self.scale = torch.softmax(self.layer.weight, 0)"},
    "a tensor of a parameter when the module is made": {"# made": "self.scale = self.layer.weight.softmax(0)"},
    "a package of modules with states": {"import torch\n": "import torch\nimport snntorch\n"},
    "create_graph": {"retain_graph=True": "retain_graph=True, create_graph=True"},
    "a switch": {"retain_graph=True": "retain_graph=bool(labels[0])"},
    "a step that an optimizer repeats": {
        "        loss.backward(retain_graph=True)\n        optimizer.step()": (
            "        def closure():\n            loss.backward(retain_graph=True)\n            return loss\n"
            "        optimizer.step(closure)"
        )
    },
    "a loop over losses": {
        "        loss.backward(retain_graph=True)": (
            "        for part in (loss, output.mean()):\n            part.backward(retain_graph=True)"
        )
    },
    "a hook of features": {
        "# before": "seen = {}\n    model.layer.register_forward_hook(lambda m, i, o: seen.update(o=o))",
        "(output, labels)": "(output + seen['o'], labels)",
    },
    "a global": {"def train(dataset):": "def train(dataset):\n    global model"},
    "batches of a network's outputs": {
        "# before": "codes = nn.Linear(4, 4)(torch.rand(64, 4))\n    dataset = list(zip(codes, torch.rand(64, 4)))"
    },
    "a dataset of a network's outputs": {
        "train(torch.load": (
            "embed = nn.Linear(4, 4)\ntrain(torch.utils.data.TensorDataset(embed(torch.rand(9, 4)), torch.rand(9, 4)))\n"
            "print(torch.load"
        ),
    },
    "a loader that a function makes of outputs": {
        "def train(dataset):": (
            "def loaded(embed, rows):\n    kept = []\n    for row in rows:\n        kept.append(embed(row))\n"
            "    return DataLoader(torch.utils.data.TensorDataset(torch.stack(kept), rows))\n\ndef train(dataset):"
        ),
        "in DataLoader(dataset)": "in loaded(nn.Linear(4, 4), torch.rand(9, 4))",
    },
    "a dataset of a parameter": {
        "train(torch.load": (
            "codes = nn.Parameter(torch.rand(9, 4))\n"
            "train(torch.utils.data.TensorDataset(codes.tanh(), torch.rand(9, 4)))\nprint(torch.load"
        ),
    },
    "a buffer made of a parameter": {
        "# made": (
            "self.centres = nn.Parameter(torch.rand(3, 4))\n"
            "        self.register_buffer('keys', nn.functional.normalize(self.centres))"
        )
    },
    "a buffer made of a layer's weight": {
        "# made": "norms = self.layer.weight.norm(dim=1)\n        self.register_buffer('norms', norms / norms.sum())"
    },
    "a buffer that is put in from outside": {"# before": "model.register_buffer('scale', model.layer.weight.softmax(0))"},
    "a framework": {"import torch\n": "import torch\nimport accelerate\nengine = accelerate.Accelerator()\n"},
}
NEEDLESS = {
    "as it is": {},
    "a dataset of outputs without their graph": {
        "train(torch.load": (
            "embed = nn.Linear(4, 4)\nwith torch.no_grad():\n    codes = embed(torch.rand(9, 4))\n"
            "train(torch.utils.data.TensorDataset(codes, embed(codes).detach()))\nprint(torch.load"
        ),
    },
    "a loader that a function makes of outputs without their graph": {
        "def train(dataset):": (
            "@torch.no_grad()\ndef loaded(embed, rows):\n"
            "    return DataLoader(torch.utils.data.TensorDataset(embed(rows), rows))\n\ndef train(dataset):"
        ),
        "in DataLoader(dataset)": "in loaded(nn.Linear(4, 4), torch.rand(9, 4))",
    },
    "a dataset of arrays": {
        "train(torch.load": (
            "import numpy\nrows = torch.from_numpy(numpy.load('rows.npy')).float()\n"
            "train(torch.utils.data.TensorDataset(rows[:, :4] / rows.std(), rows[:, 4:]))\nprint(torch.load"
        ),
    },
    "a buffer made of numbers": {
        "# made": (
            "places = torch.zeros(9, 4)\n        places[:, 0::2] = torch.sin(torch.arange(9).unsqueeze(1) / 100)\n"
            "        self.register_buffer('places', places.unsqueeze(0))"
        )
    },
    "a scaler": {"# before": "scaler = torch.amp.GradScaler()", "loss.backward": "scaler.scale(loss).backward"},
    "a constant tensor of the file's": {
        "class Network": "WEIGHT = torch.ones(4)\n\nclass Network",
        "# kept": "x = x * WEIGHT",
    },
    "a counter": {"# made": "self.calls = 0", "# kept": "self.calls += 1"},
    "a running sum": {"# before": "total = 0.0", "# after": "total += loss.detach()", "# end": "print(total)"},
    "a printed loss": {"# after": "print(loss.item(), output.shape)"},
}


def _needless(folder: Path, changes: dict[str, str]) -> bool:
    text = textwrap.dedent(PLAIN)
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new, 1)
    compile(text, "train.py", "exec")
    path = folder / "train.py"
    path.write_text(text)
    script = Program(Options((2, 13))).script(path)
    return any(regraph.needless(script, call) for call in script.method_calls("backward"))


@pytest.mark.parametrize("name", LOOKALIKES)
def test_a_graph_that_may_be_needed_is_left_alone(name: str, tmp_path: Path) -> None:
    assert not _needless(tmp_path, LOOKALIKES[name])


@pytest.mark.parametrize("name", NEEDLESS)
def test_a_graph_that_nothing_needs_is_found(name: str, tmp_path: Path) -> None:
    assert _needless(tmp_path, NEEDLESS[name])
