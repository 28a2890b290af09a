"""Constants that calls pass choose branches: what a mode of a function never runs is not said of that mode."""

from __future__ import annotations

import pytest

from tests.conftest import Project

DETECTOR = """
import torch
from torch import nn


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.levels = nn.ModuleList(nn.Conv2d(3, 64, 3) for _ in range(4))
        self.head = nn.Conv2d(64, 5, 1)

    def detect(self, image):
        return self.predict(image, {inference})

    def predict(self, image, mode{default}):
        if mode == "inference":
            self.eval()
        else:
            self.train()
        maps = [level(image) for level in self.levels]
        found = []
        for each in maps:
            found.append(self.head(each))
        {branch}
            return boxes(found)
        return sum(each.mean() for each in found)


def boxes(found):
    best = found[0].max()
    return best.item()


model = Detector().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for images in torch.utils.data.DataLoader(torch.randn(60000, 3, 32, 32)):
    loss = model.predict(images.cuda(){training})
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(model.detect(torch.randn(1, 3, 32, 32).cuda()))
"""


@pytest.mark.parametrize(
    ("inference", "training", "default", "branch", "silent"),
    [
        ('"inference"', ', "training"', "", 'if mode == "inference":', True),
        ('mode="inference"', ', mode="training"', "", 'if mode in ("inference", "test"):', True),
        ('"inference"', ', "training"', "", 'if mode != "training":', True),
        ('mode="inference"', "", '="training"', 'if not mode == "training":', True),
        ('"inference"', ', "training"', "", 'if mode != "training" and len(found) > 1:', True),
        ('"inference"', ', "training"', "", 'if mode == "training":\n            pass\n        else:', True),
        ('"inference"', ', "training"', "", 'if mode == "training" or len(found) > 1:', False),
        ('"inference"', ', "training"', "", 'if mode != "inference":', False),
        ('"inference"', ', images.mode', "", 'if mode == "inference":', False),
        ('"inference"', ', *images.modes', "", 'if mode == "inference":', False),
    ],
)  # fmt: skip
def test_a_branch_of_another_mode_is_not_told_of(
    project: Project, inference: str, training: str, default: str, branch: str, silent: bool
) -> None:
    project.configure("select = ['SPD301', 'SPD701']")
    text = DETECTOR.format(inference=inference, training=training, default=default, branch=branch)
    found = {each["code"] for each in project.findings(project.write("train.py", text))}
    assert not found if silent else "SPD301" in found


def test_what_a_parameter_is_bound_to_anew_chooses_nothing(project: Project) -> None:
    project.configure("select = ['SPD301']")
    branch = 'mode = swapped(mode)\n        if mode == "inference":'
    text = DETECTOR.format(inference='"inference"', training=', "training"', default="", branch=branch)
    text = text.replace("class Detector", "def swapped(mode):\n    return mode[::-1]\n\n\nclass Detector")
    assert project.findings(project.write("train.py", text))


SIZED = """
import torch
from torch import nn


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(16, 16)

    def forward(self, words, size=None):
        if size is None:
            state = torch.zeros(1, 32, 16).cuda()
        else:
            state = torch.zeros(1, size, 16).cuda()
        return self.lstm(words, (state, state))[0]


model = Reader().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for words in torch.utils.data.DataLoader(torch.randn(60000, 4, 16)):
    loss = model(words.cuda()).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(model(torch.randn(4, 1, 16).cuda(), 1))
"""


def test_an_argument_that_is_not_passed_is_none_in_each_step(project: Project) -> None:
    project.configure("select = ['SPD308']")
    found = project.findings(project.write("train.py", SIZED))
    assert [each["line"] for each in found] == [
        1 + SIZED.splitlines().index(" " * 12 + "state = torch.zeros(1, 32, 16).cuda()")
    ]


FLAGGED = """
import torch


def step(images, shows{default}):
    loss = model(images.cuda()).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if shows:
        print(loss.item())


model = torch.nn.Linear(784, 10).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
asked = False
for turn, images in enumerate(torch.utils.data.DataLoader(torch.randn(60000, 784))):
    {flag}
    step(images{passed})
"""


@pytest.mark.parametrize(
    ("flag", "passed", "default", "frequency"),
    [
        ("shows = False\n    if turn % 100 == 0:\n        shows = True", ", shows", "", "throttled"),
        ("shows = turn % 100 == 0", ", shows=shows", "=True", "throttled"),
        ("shows = False\n    if len(images) > 3:\n        shows = True", ", shows", "", "step"),
        ("if turn % 100 == 0:\n        asked = True", ", asked", "", "step"),
        ("shows = turn % 100 == 0", "", "=True", "step"),
        ("shows = True\n    if turn % 100 == 0:\n        shows = False", ", shows", "", "step"),
    ],
)
def test_a_flag_is_true_as_often_as_it_is_set(
    project: Project, flag: str, passed: str, default: str, frequency: str
) -> None:
    project.configure("select = ['SPD301']")
    text = FLAGGED.format(flag=flag, passed=passed, default=default)
    (found,) = project.findings(project.write("train.py", text), "--notes")
    assert found["frequency"] == frequency


SEQUENCES = """
import torch
from torch import nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(512, 512)

    def forward(self, rows):
        given = rows
        if isinstance({asked}, {kind}):
            rows, lengths = pad_packed_sequence(rows)
            print(self.layer(rows).max().item())
        return self.layer(rows)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.drop, self.rnn = nn.Embedding(100, 512), nn.Dropout(), Recurrent()
        self.first = nn.GRU(512, 512)

    def forward(self, words, lengths):
        rows = self.drop(self.embedding(words))
        return self.rnn({handed})


model = Net().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for words, lengths in torch.utils.data.DataLoader(torch.load("words.pt")):
    loss = model(words.cuda(), lengths).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("asked", "kind", "handed", "is_found"),
    [
        ("rows", "PackedSequence", "rows", False),
        ("given", "PackedSequence", "rows", False),
        ("given", "(list, tuple)", "rows.transpose(0, 1).contiguous()", True),
        ("rows", "torch.Tensor", "rows", True),
        ("rows", "(PackedSequence, torch.Tensor)", "rows", True),
        ("rows", "PackedSequence", "pack_padded_sequence(rows, lengths)", True),
        ("rows", "PackedSequence", "self.first(rows)[0]", True),
        ("rows", "PackedSequence", "rows if lengths is None else pack_padded_sequence(rows, lengths)", True),
    ],
)
def test_a_branch_for_what_is_no_tensor(project: Project, asked: str, kind: str, handed: str, is_found: bool) -> None:
    project.configure("select = ['SPD301']\ntorch = '2.13'")
    text = SEQUENCES.format(asked=asked, kind=kind, handed=handed)
    assert bool([each for each in project.findings(project.write("train.py", text)) if each["line"] == 16]) is is_found


SAMPLED = """
def sampled(model, loader, shown=None, counted=None):
    for rows in loader:
        out = model(rows.cuda())
        if shown is not None:
            shown.append(out.max().item())
        if counted is not None:
            counted.append(out.argmax().item())
    return shown
"""
SAMPLES = """
import torch
from sampling import sampled

model = torch.nn.Linear(512, 512).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = torch.utils.data.DataLoader(torch.load("rows.pt"))
for epoch in range(10):
    for rows in loader:
        loss = model(rows.cuda()).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        sampled({handed})
"""


@pytest.mark.parametrize(
    ("handed", "waits"),
    [
        ("model, loader", None),
        ("model, loader, None", None),
        ("model, loader, []", "`out.max().item()` (sampling.py:6)"),
        ("model, loader, counted=[]", "`out.argmax().item()` (sampling.py:8)"),
    ],
)
def test_what_a_pass_in_another_file_is_not_asked_for(project: Project, handed: str, waits: str | None) -> None:
    project.configure("select = ['SPD311']\ntorch = '2.13'")
    project.write("sampling.py", SAMPLED)
    found = project.findings(project.write("train.py", SAMPLES.format(handed=handed)))
    assert [each["message"].partition(": ")[2] for each in found] == ([waits] if waits else [])


SWAPPED = """
import torch
from torch import nn

model = nn.Linear(512, 512).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def told(loss, first, second):
    for turn in range(2):
        first = second
        second = first
    if first:
        print(loss.item())


for rows in torch.utils.data.DataLoader(torch.load("rows.pt"), num_workers=4):
    loss = model(rows.cuda()).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    told(loss, 1, 2)
"""


def test_variables_that_are_given_to_each_other(project: Project) -> None:
    project.configure("select = ['SPD301']\ntorch = '2.13'")
    assert [each["line"] for each in project.findings(project.write("train.py", SWAPPED))] == [14]


def test_a_variable_by_many_ways(project: Project) -> None:
    """As many ways as there are pairs of branches are one parameter."""
    project.configure("select = ['SPD301']\ntorch = '2.13'")
    ways = "".join(f"    if turn:\n        x{i + 1} = x{i}\n    else:\n        x{i + 1} = x{i}\n" for i in range(40))
    head, tail = SWAPPED.split("    for turn in range(2):\n        first = second\n        second = first\n    if first:")
    text = f"{head}    x0, turn = first, second\n    x0 = first\n{ways}    if isinstance(x40, tuple):{tail}"
    assert [each["line"] for each in project.findings(project.write("train.py", text))] == [173]
