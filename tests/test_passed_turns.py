"""A condition on the number of a batch that a function is handed holds as seldom as it does in the loop."""

from __future__ import annotations

import pytest

from tests.conftest import Project

TRAINS = """
import torch

model = torch.nn.Linear(512, 512).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def compute(rows, epoch, number, kind):
    loss = model(rows.cuda()).mean()
    if {test}:
        print(f"{{loss.item():.4f}}")
    return loss


def train(loader, kind):
    for epoch in range(9):
        for number, rows in enumerate(loader):
            loss = compute(rows, epoch, number, kind)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


train(torch.utils.data.DataLoader(torch.load("rows.pt")), 2)
"""


@pytest.mark.parametrize(
    ("test", "found"),
    [
        ("epoch == 0 and number == 0", 0),
        ("number == 9", 0),
        ("kind == 2", 1),
        ("number >= 1", 1),
        ("epoch < 3", 1),
    ],
)
def test_prints_of_some_turns(project: Project, test: str, found: int) -> None:
    project.configure("select = ['SPD301', 'SPD303']\ntorch = '2.13'")
    assert len(project.findings(project.write("train.py", TRAINS.format(test=test)))) == found


FLAGS = """
import torch

model = torch.nn.Linear(512, 512).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
shown, first = False, True
for rows in torch.utils.data.DataLoader(torch.load("rows.pt")):
    loss = model(rows.cuda()).mean()
    if {test}:
        print(f"{{loss.item():.4f}}")
        {sets}
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("test", "sets", "found"),
    [
        ("not shown", "shown = True", 0),
        ("first", "first = False", 0),
        ("first and loss.dim() == 0", "first = False", 0),
        ("not shown", "shown = len(rows) > 9", 1),
        ("not shown", "pass", 1),
        ("not shown", "if len(rows) > 9:\n            shown = True", 1),
        ("not shown", "shown = True\n    shown = False", 1),
    ],
)
def test_prints_behind_a_flag(project: Project, test: str, sets: str, found: int) -> None:
    project.configure("select = ['SPD301', 'SPD303']\ntorch = '2.13'")
    assert len(project.findings(project.write("train.py", FLAGS.format(test=test, sets=sets)))) == found


HELD_FLAGS = """
import torch


class Trainer:
    def __init__(self, model):
        self.model, self.first = model.cuda(), True
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(self, rows):
        {begins}
        loss = self.model(rows.cuda()).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        if self.first:
            print(f"{{loss.item():.4f}}")
            {sets}


trainer = Trainer(torch.nn.Linear(512, 512))
for rows in torch.utils.data.DataLoader(torch.load("rows.pt")):
    trainer.step(rows)
"""


@pytest.mark.parametrize(
    ("begins", "sets", "found"),
    [
        ("pass", "self.first = False", 0),
        ("pass", "pass", 1),
        ("self.first = len(rows) > 9", "self.first = False", 1),
    ],
)
def test_prints_behind_a_flag_of_an_object(project: Project, begins: str, sets: str, found: int) -> None:
    project.configure("select = ['SPD301', 'SPD303']\ntorch = '2.13'")
    assert len(project.findings(project.write("train.py", HELD_FLAGS.format(begins=begins, sets=sets)))) == found


COUNTED = """
import torch

model = torch.nn.Linear(512, 512).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader, step = torch.utils.data.DataLoader(torch.load("rows.pt")), 0
for epoch in range(9):
    for number, rows in enumerate(loader):
        loss = model(rows.cuda()).mean()
        if {test}:
            print(f"{{loss.item():.4f}}")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
"""


@pytest.mark.parametrize(
    ("test", "found"),
    [
        ("step % 100 == 0 or step - 1 >= 9 * len(loader)", 0),
        ("step % 100 == 0 or number >= len(loader) - 1", 0),
        ("step >= 9 * len(loader) - 1", 0),
        ("step % 100 == 0 or step >= len(loader)", 1),
        ("step >= warm_up * len(loader)", 1),
        ("step >= 0.5 * len(loader)", 1),
        ("step >= 9 * len(rows)", 1),
        ("step % 100 == 0 or step >= 500", 1),
        ("step % 100 == 0 or step < 9 * len(loader)", 1),
    ],
)
def test_prints_at_the_end(project: Project, test: str, found: int) -> None:
    """A count of all steps reaches that of all epochs once; another bound is passed long before."""
    project.configure("select = ['SPD301', 'SPD303']\ntorch = '2.13'")
    assert len(project.findings(project.write("train.py", COUNTED.format(test=test)))) == found


HANDED = """
import torch

model = torch.nn.Sequential(*[torch.nn.Linear(64, 64) for _ in range(30)]).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def compute(rows, shows=False):
    loss = model(rows.cuda()).mean()
    if shows:
        print(f"{{loss.item():.4f}}")
    return loss


for number, rows in enumerate(torch.utils.data.DataLoader(torch.load("rows.pt"), batch_size=64, num_workers=4)):
    loss = compute(rows{handed})
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("handed", "found"),
    [(", number % 100 == 0", 0), (", shows=number == 0", 0), (", shows=True", 1), (", rows.size(0) > 3", 1), ("", 0)],
)
def test_prints_by_a_condition_that_is_handed(project: Project, handed: str, found: int) -> None:
    project.configure("select = ['SPD301', 'SPD303']\ntorch = '2.13'")
    assert len(project.findings(project.write("train.py", HANDED.format(handed=handed)))) == found


WITHIN = """
import torch


class Stage(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Linear(64, 64)

    def forward(self, x, tells):
        x = self.body(x)
        if tells:
            print(x.norm().item())
        return x


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.stages = torch.nn.ModuleList(Stage() for _ in range(8))

    def forward(self, x):
        for i, stage in enumerate(self.stages):
            {run}
        return x


model = Net().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for rows in torch.utils.data.DataLoader(torch.load("rows.pt"), batch_size=64, num_workers=4):
    loss = model(rows.cuda()).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    "run",
    [
        "x = stage(x, i == len(self.stages) - 1)",
        "x = stage(x, i % 4 == 0)",
        "last = i == 7; x = stage(x, last)",
        "x = stage(x, False)\n            if i == 0: print(x.norm().item())",
    ],
)
def test_turns_within_a_step_are_no_steps(project: Project, run: str) -> None:
    project.configure("select = ['SPD301', 'SPD303']\ntorch = '2.13'")
    assert len(project.findings(project.write("train.py", WITHIN.format(run=run)))) == 1


NESTED = """
import torch

model = torch.nn.Sequential(*[torch.nn.Linear(64, 64) for _ in range(30)]).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step, rows in enumerate(torch.utils.data.DataLoader(torch.load("rows.pt"), batch_size=64, num_workers=4)):
    loss = model(rows.cuda()).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    for k in {turns}:
        if {test}:
            print(loss.item())
"""


@pytest.mark.parametrize(
    ("turns", "test", "found"),
    [
        ("range(4)", "(step * 4 + k) % 1000 == 0", 0),
        ("range(step * 4, step * 4 + 4)", "k % 1000 == 0", 0),
        ("range(4)", "step % 50 == 0 and k == 0", 0),
        ("range(4)", "k % 2 == 0", 1),
        ("range(4)", "k == 3", 1),
    ],
)
def test_turns_within_a_step_beside_its_number(project: Project, turns: str, test: str, found: int) -> None:
    project.configure("select = ['SPD301', 'SPD303']\ntorch = '2.13'")
    assert len(project.findings(project.write("train.py", NESTED.format(turns=turns, test=test)))) == found


LEFT = """
import torch

model = torch.nn.Linear(512, 512).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = torch.utils.data.DataLoader(torch.load("rows.pt"))
for epoch in range(9):
    for rows in loader:
        {first}
        loss = model(rows.cuda()).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())
        {last}
    {left}
"""


@pytest.mark.parametrize(
    ("first", "last", "left", "found"),
    [
        ("pass", "pass", "pass", 1),
        ("pass", "break", "break", 0),
        ("if len(rows) < 8: continue", "break", "break", 0),
        ("pass", "if epoch: continue\n        break", "break", 1),
        ("pass", "if len(rows) < 3: break", "break", 1),
        ("if len(rows) < 8: continue", "break", "pass", 1),
        ("for _ in rows:\n            break\n        else:\n            continue", "break", "break", 0),
        ("pass", "for _ in rows:\n            break\n        else:\n            continue\n        break", "break", 1),
    ],
)
def test_a_loop_that_is_left_behind_its_first_step(project: Project, first: str, last: str, left: str, found: int) -> None:
    project.configure("select = ['SPD301', 'SPD303']\ntorch = '2.13'")
    text = LEFT.format(first=first, last=last, left=left)
    assert len(project.findings(project.write("train.py", text))) == found


SAMPLES = """
import torch

model = torch.nn.Linear(512, 512).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
rows, held_out = (torch.utils.data.DataLoader(torch.load(each)) for each in ("rows.pt", "held_out.pt"))


def samples():
    shown = {begins}
    with torch.no_grad():
        for number, batch in enumerate(held_out):
            print(model(batch.cuda()).mean().item())
            {counts}
            if {test}:
                break


for epoch in range(9):
    for batch in rows:
        loss = model(batch.cuda()).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    samples()
"""


@pytest.mark.parametrize(
    ("begins", "counts", "test", "found"),
    [
        ("0", "shown += 1", "shown >= 5", 0),
        ("0", "shown += 1", "shown > 500", 1),
        ("0", "shown += len(batch)", "shown >= 5", 1),
        ("-9", "shown += 1", "shown >= 5", 1),
        ("0", "shown = 0", "shown >= 5", 1),
        ("0", "pass", "number == 3", 0),
        ("0", "pass", "len(batch) == 3", 1),
        ("0", "pass", "number == -1", 1),
        ("0", "shown += 1", "shown == 0", 1),
        ("0", "if len(batch) > 3: shown += 1", "shown >= 5", 1),
        ("0", "if len(batch) > 3: continue", "number == 3", 1),
        ("0", "shown = 0\n            shown += 1", "shown >= 5", 1),
    ],
)
def test_samples_of_a_pass(project: Project, begins: str, counts: str, test: str, found: int) -> None:
    project.configure("select = ['SPD301', 'SPD303']\ntorch = '2.13'")
    text = SAMPLES.format(begins=begins, counts=counts, test=test)
    assert len(project.findings(project.write("train.py", text))) == found


STEPS = """
import torch
from PIL import Image

model = torch.nn.Linear(512, 512).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


class Photos(torch.utils.data.Dataset):
    def __len__(self):
        return 50000

    def __getitem__(self, index):
        return torch.tensor(list(Image.open(f"{{index}}.jpg").resize((512, 512)).getdata()))


photos = torch.utils.data.DataLoader(Photos(), batch_size=32)
step = 0
is_done = False
while not is_done:
    for batch in photos:
        optimizer.zero_grad()
        model(batch.cuda()).mean().backward()
        optimizer.step()
        step += 1
        if {test}:
            is_done = True
            break
"""


@pytest.mark.parametrize(("test", "level"), [("step >= 1", "note"), ("step == 1", "warning"), ("step >= 90000", "warning")])
def test_steps_that_are_counted_over_all_passes(project: Project, test: str, level: str) -> None:
    """Equal to a number a count may be once, in the first pass, and never again."""
    project.configure("select = ['SPD201']\ntorch = '2.13'")
    (found,) = project.findings(project.write("train.py", STEPS.format(test=test)), "--notes")
    assert found["level"] == level


@pytest.mark.parametrize(
    ("others", "found"), [("", 0), ("compute(torch.ones(3), 0, 9, 1)", 0), ("compute(rows, 0, kind, 1)", 1)]
)
def test_a_function_that_is_tried_out_with_a_number(project: Project, others: str, found: int) -> None:
    project.configure("select = ['SPD301', 'SPD303']\ntorch = '2.13'")
    text = TRAINS.format(test="number == 9")
    text = text.replace(
        "def train(loader, kind):", f"def train(loader, kind):\n    rows = torch.ones(3)\n    {others or 'pass'}"
    )
    assert len(project.findings(project.write("train.py", text))) == found
