"""What runs in no training worth the name: tests, self-tests, branches that are never taken."""

from __future__ import annotations

import pytest

from tests.conftest import Project

STEPS = """
import torch
from torch import nn
from torch.utils.data import DataLoader

ROUNDS = 8
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
net = nn.Sequential(nn.Linear(80, 512), nn.ReLU(), nn.Linear(512, 10)).to(device)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
data = [torch.randn(16, 80) for _ in range(4000)]

for {loop}:
    heard = torch.FloatTensor(16, 80).uniform_().to(device)
    aim = torch.LongTensor([3] * 16).to(device)
    loss = nn.functional.cross_entropy(net(heard), aim)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss)
"""


@pytest.mark.parametrize(
    ("path", "loop", "silent"),
    [
        ("test/test_speech.py", "turn in range(10)", True),
        ("tests/speech.py", "turn in range(ROUNDS)", True),
        ("test_speech.py", "turn in range(10)", True),
        ("speech.py", "turn in range(10)", False),
        ("test_train.py", "turn in range(10_000)", False),
        ("test_train.py", "x in DataLoader(data)", False),
        ("test/test_train.py", "turn in range(len(data))", False),
    ],
)
def test_a_handful_of_steps_in_a_test_is_not_told_of(project: Project, path: str, loop: str, silent: bool) -> None:
    project.configure("select = ['SPD1', 'SPD3', 'SPD5']")
    project.write("setup.py", "from setuptools import setup\nsetup(packages=[])\n")
    found = project.findings(project.write(path, STEPS.format(loop=loop)), "--notes")
    assert (not found) is silent


def test_turns_within_turns_are_many(project: Project) -> None:
    project.configure("select = ['SPD303']")
    text = STEPS.replace("for {loop}:", "for epoch in range(20):\n  for turn in range(20):")
    assert project.findings(project.write("test/test_speech.py", text))


LOSS = """
import torch
from torch import nn


class Split(nn.Module):
    def __init__(self):
        super().__init__()
        self.tail = nn.Parameter(torch.zeros(8))

    def forward(self, weight, hidden):
        return (weight @ hidden.t()).logsumexp(0).mean() + self.tail.sum()


if __name__ == "__main__":
    torch.manual_seed(1)
    torch.cuda.manual_seed(1)
    words = nn.Embedding(8, 10){place}
    split = Split(){place}
    optimizer = torch.optim.SGD(list(words.parameters()) + list(split.parameters()), lr=1, momentum=0.9)
    for _ in range({turns}):
        loss = split(words.weight, words(torch.randint(8, (100,)){place}))
        print("loss", loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
USER = """
import torch
from loss import Split

model, split = torch.nn.Linear(10, 10).cuda(), Split().cuda()
optimizer = torch.optim.SGD(list(model.parameters()) + list(split.parameters()), lr=1)
for x in torch.utils.data.DataLoader(torch.randn(100, 10)):
    loss = split(model.weight, model(x.cuda()))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(("place", "turns", "silent"), [("", "10", True), (".cuda()", "10", False), ("", "10_000", False)])
def test_a_self_test_on_the_host_is_not_told_of(project: Project, place: str, turns: str, silent: bool) -> None:
    project.configure("select = ['SPD301', 'SPD502']\ntorch = '2.4'")
    project.write("train.py", USER)
    found = project.findings(project.write("loss.py", LOSS.format(place=place, turns=turns)), "--notes")
    assert (not found) is silent


PICTURE = """
import torch
from torch import nn


class Split(nn.Module):
    def forward(self, one, other):
        return (one - other).square().mean()


if __name__ == "__main__":
    shown = torch.rand(1, 3, 64, 64).cuda()
    made = torch.rand(1, 3, 64, 64, device="cuda", requires_grad=True)
    value, split = 1.0, Split()
    optimizer = torch.optim.Adam([made], lr=0.01)
    while value > 0.01:
        optimizer.zero_grad()
        loss = split(shown, made)
        value = loss.item()
        loss.backward()
        optimizer.step()
"""


@pytest.mark.parametrize("is_imported", [True, False])
def test_a_self_test_that_trains_no_network_is_not_told_of(project: Project, is_imported: bool) -> None:
    project.configure("select = ['SPD101', 'SPD301']\ntorch = '2.4'")
    if is_imported:
        project.write("train.py", USER)
    found = project.findings(project.write("loss.py", PICTURE), "--notes")
    assert (not found) is is_imported


def test_plain_sgd_over_several_modules_is_one_kernel_as_it_is(project: Project) -> None:
    project.configure("select = ['SPD502']\ntorch = '2.4'")
    assert not project.findings(
        project.write("loss.py", LOSS.format(place=".cuda()", turns="9_000").replace(", momentum=0.9", ""))
    )
    assert project.findings(project.write("loss.py", LOSS.format(place=".cuda()", turns="9_000")))


BRANCH = """
import argparse
import torch
from torch import nn
from torch.utils.data import DataLoader

gpu_count = 1
watch = False
parser = argparse.ArgumentParser()
parser.add_argument("--gpus", type=int, default=1)
options = parser.parse_args()
asked = options.gpus
device = torch.device("cuda")


def fit(model, data, several=1):
    if {test}:
        {body}
    model.to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for images, labels in DataLoader(data):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images.to(device)), labels.to(device))
        loss.backward()
        optimizer.step()
        if {test}:
            print(loss)


fit(nn.Linear(784, 10), torch.randn(60000, 784))
"""


@pytest.mark.parametrize(
    ("test", "silent"),
    [
        ("gpu_count > 1", True),
        ("device.type == 'cuda' and gpu_count > 1", True),
        ("not gpu_count <= 1", True),
        ("watch", True),
        ("device.type == 'cuda' or gpu_count > 1", False),
        ("gpu_count == 1", False),
        ("options.gpus > 1", False),
        ("asked > 1", False),
        ("several > 1", False),
    ],
)
@pytest.mark.parametrize(
    "body", ["model = nn.DataParallel(model)", "pass\n    else:\n        model = nn.DataParallel(model)"]
)
def test_a_branch_that_a_constant_rules_out_is_not_told_of(project: Project, test: str, silent: bool, body: str) -> None:
    project.configure("select = ['SPD603', 'SPD303']")
    found = project.findings(
        project.write("train.py", BRANCH.format(test=test, body=body.format(wrap="model = nn.DataParallel(model)"))),
        "--notes",
    )
    is_other = "else" in body
    wanted = {"SPD603"} if silent and is_other else set() if silent else {"SPD303"}
    if not silent and not (is_other and test == "gpu_count == 1"):
        wanted |= {"SPD603"}
    assert {each["code"] for each in found} == wanted


def test_what_code_out_of_sight_may_set_is_no_constant(project: Project) -> None:
    project.configure("select = ['SPD603']")
    text = BRANCH.format(test="gpu_count > 1", body="model = nn.DataParallel(model)")
    text = text.replace("watch = False", "exec(open('overrides.py').read())")
    assert [each["code"] for each in project.findings(project.write("train.py", text), "--notes")] == ["SPD603"]


DEAD = """
import sys
import torch
from torch import nn

CHECKED = True
device = torch.device("cuda")


def evaluate(model, loader):
    {early}
    model.eval()
    right = 0
    for images, labels in loader:
        right += (model(images.to(device)).argmax(1) == labels.to(device)).sum().item()
    return right


def fit(model, loader, optimizer):
    for images, labels in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images.cuda()), labels.cuda())
        loss.backward()
        optimizer.step()
    evaluate(model, loader)


model = nn.Linear(784, 10).to(device)
loader = torch.utils.data.DataLoader(torch.randn(60000, 784), num_workers=4)
fit(model, loader, torch.optim.SGD(model.parameters(), lr=0.1))
"""


@pytest.mark.parametrize(
    ("early", "silent"),
    [
        ("return", True),
        ("if True:\n        return 0", True),
        ("if CHECKED:\n        return 0", True),
        ("if not CHECKED:\n        right = 0\n    else:\n        raise ValueError", True),
        ("sys.exit()", True),
        ("while True:\n        model(1)", True),
        ("if len(loader) > 5:\n        return 0", False),
        ("if not CHECKED:\n        return 0", False),
        ("if False:\n        return 0", False),
        ("try:\n        return model(1)\n    except ValueError:\n        pass", False),
    ],
)
def test_what_stands_behind_a_jump_is_not_told_of(project: Project, early: str, silent: bool) -> None:
    project.configure("select = ['SPD301', 'SPD505', 'SPD205']\ntorch = '2.4'")
    found = project.findings(project.write("train.py", DEAD.format(early=early)), "--notes")
    in_evaluation = [each for each in found if 10 < each["line"] < 20]
    assert {each["code"] for each in in_evaluation} == (set() if silent else {"SPD301", "SPD505", "SPD205"})
    assert [each["code"] for each in found if each["line"] > 20], "the training runs as before"


def test_a_call_behind_a_jump_drives_nothing(project: Project) -> None:
    project.configure("select = ['SPD301']")
    text = """
import torch


def shown(loss):
    return loss.item()


model = torch.nn.Linear(784, 10).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for images in torch.utils.data.DataLoader(torch.randn(60000, 784)):
    loss = model(images.cuda()).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    {jump}
    print(shown(loss))
"""
    assert project.findings(project.write("train.py", text.format(jump="pass")))
    assert not project.findings(project.write("train.py", text.format(jump="continue")), "--notes")


MEASURED = """
import time
import torch

warmup, active = 5, 10
model = torch.nn.Linear(784, 10).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
images = torch.randn(64, 784, device="cuda")


def step():
    loss = model(images).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss


{measure}
"""
PROFILED = """
with {profiler} as prof:
    for k in range({turns}):
        print(step().item())
        prof.step()
"""
TIMED = """
for stage, count in enumerate({counts}):
    begun = time.time()
    for k in range(count):
        print(step().item())
    {wait}
    took = time.time() - begun
"""


IN_A_TIMER = """
class Timer:
    def __enter__(self):
        torch.cuda.synchronize()
        self.begun = time.perf_counter()

    def __exit__(self, *_):
        torch.cuda.synchronize()
        print(time.perf_counter() - self.begun)


for k in range({turns}):
    with Timer():
        print(step().item())
{kept}
"""


@pytest.mark.parametrize(
    ("measure", "silent"),
    [
        (PROFILED.format(profiler="torch.profiler.profile(record_shapes=True)", turns="warmup + active"), True),
        (PROFILED.format(profiler="torch.autograd.profiler.profile()", turns="10"), True),
        (PROFILED.format(profiler="torch.profiler.profile()", turns="10_000"), False),
        (PROFILED.format(profiler="torch.profiler.profile()", turns="len(images) * 9"), False),
        (PROFILED.format(profiler="open('log')", turns="10"), False),
        (TIMED.format(counts="[10, 20]", wait="torch.cuda.synchronize()"), True),
        (TIMED.format(counts="[10, 20_000]", wait="torch.cuda.synchronize()"), False),
        (TIMED.format(counts="[10, 20]", wait="pass"), False),
        (IN_A_TIMER.format(turns="20", kept="pass"), True),
        (IN_A_TIMER.format(turns="20_000", kept="pass"), False),
        (IN_A_TIMER.format(turns="20", kept="torch.save(model, 'model.pt')"), False),
    ],
)
def test_a_measurement_is_not_told_of(project: Project, measure: str, silent: bool) -> None:
    project.configure("select = ['SPD301']")
    found = project.findings(project.write("train.py", MEASURED.format(measure=measure)), "--notes")
    assert (not found) is silent


LARGEST = """
import torch
from torch import nn


def find_largest(model, loader, optimizer):
    total = 0.0
    for batch in loader.dataset.largest():
        loss = model(batch.cuda()).mean()
        total += loss.item()
        {behind}
    return total


def train(model, loader, optimizer):
    find_largest(model, loader, optimizer)
    for batch in loader:
        loss = model(batch.cuda()).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


net = nn.Linear(64, 64).cuda()
train(net, torch.utils.data.DataLoader(torch.load("rows.pt")), torch.optim.SGD(net.parameters(), lr=0.1))
"""


@pytest.mark.parametrize(
    ("behind", "is_training"),
    [
        ("loss.backward()\n        optimizer.zero_grad()", False),
        ("loss.backward()\n        optimizer.zero_grad(set_to_none=True)", False),
        ("loss.backward()\n        optimizer.zero_grad()\n        batch -= batch.grad.sign()", True),
        ("loss.backward()\n        model.zero_grad()", True),
        ("loss.backward()\n        optimizer.zero_grad()\n        print(total)", False),
        ("loss.backward()\n        optimizer.zero_grad()\n        model.train()", True),
        ("loss.backward()\n        optimizer.step()\n        optimizer.zero_grad()", True),
        (
            "loss.backward()\n        for p in model.parameters():\n            p.data -= p.grad\n        model.zero_grad()",
            True,
        ),
        ("optimizer.zero_grad()\n        loss.backward()", True),
    ],
)
def test_backward_passes_whose_gradients_are_dropped(project: Project, behind: str, is_training: bool) -> None:
    """Whether the largest batches fit into memory is tried out with them: no step is taken."""
    project.configure("select = ['SPD301']\ntorch = '2.13'")
    found = project.findings(project.write("train.py", LARGEST.format(behind=behind)))
    assert bool(found) is is_training


TIMED = """
import torch
from timing import {name}

model = torch.nn.Linear(64, 64).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for images in torch.load("batches.pt"):
    images = images.cuda()

    def step():
        loss = model(images).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    {call}
"""


@pytest.mark.parametrize(
    ("name", "call", "often"),
    [
        ("timed", "value, seconds = timed(step)", "step"),
        ("timed_twice", "value, seconds = timed_twice('a step', step)", "step"),
        ("kept", "kept(step)", "once"),
    ],
)
def test_a_step_that_a_function_of_another_file_calls(project: Project, name: str, call: str, often: str) -> None:
    """``timed(step)`` runs the step where the loop calls it."""
    project.configure("select = ['SPD301']\ntorch = '2.13'")
    project.write(
        "timing.py",
        """
import time


def timed(run):
    begun = time.time()
    value = run()
    return value, time.time() - begun


def timed_twice(name, run):
    value, seconds = timed(run)
    print(name, seconds)
    return value, seconds


def kept(run):
    return [run]
""",
    )
    found = project.findings(project.write("train.py", TIMED.format(name=name, call=call)), "--notes")
    assert [each["frequency"] for each in found] == ([often] if often != "once" else [])
