"""An object, a network or a function that is one of several, by a branch: each of them runs where it is called."""

from __future__ import annotations

import json

import pytest

from tests.conftest import Project

OBJECTS = """
import torch


class Small:
    def __init__(self, loader):
        self.loader = loader
        self.net = torch.nn.Linear(512, 512).cuda()
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)

    def step(self, rows):
        self.loss = self.net(rows.cuda()).mean()
        self.optimizer.zero_grad()
        self.loss.backward()
        self.optimizer.step()

    def current(self):
        return self.loss.item()


class Large(Small):
    def current(self):
        return {{"loss": self.loss.item()}}


class Pretrained:
    def __init__(self, loader):
        self.loader = loader
        self.net = torch.nn.Linear(512, 512).cuda()
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)

    def step(self, rows):
        for part in rows.split(8):
            loss = self.net(part.cuda()).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
        self.kept = loss.detach()
        print(self.kept.item())

    def current(self):
        return self.kept.item()
"""
STARTS = """
import sys
import torch
from trainers import Large, Pretrained, Small

loader = torch.utils.data.DataLoader(torch.load("rows.pt"))
{chosen}
losses = []
for epoch in range(9):
    for rows in loader:
        trainer.step(rows)
        losses.append(trainer.current())
"""
BY_BRANCHES = """
if sys.argv[1] == "small":
    trainer = Small(loader)
elif sys.argv[1] == "large":
    trainer = Large(loader)
else:
    raise ValueError(sys.argv[1])
"""
BY_FUNCTION = """
def build(kind):
    if kind == "small":
        return Small(loader)
    return Large(loader)


trainer = build(sys.argv[1])
"""


def _lines(project: Project, chosen: str) -> list[int]:
    project.configure("select = ['SPD301']\ntorch = '2.13'")
    path = project.write("trainers.py", OBJECTS.format())
    project.write("train.py", STARTS.format(chosen=chosen))
    return [each["line"] for each in project.findings(path)]


@pytest.mark.parametrize(
    ("chosen", "lines"),
    [
        (BY_BRANCHES, [18, 23]),
        ("trainer = Small(loader) if sys.argv[1] == 'small' else Large(loader)", [18, 23]),
        ("trainer = Small(loader)", [18]),
    ],
)
def test_methods_of_one_of_several_objects(project: Project, chosen: str, lines: list[int]) -> None:
    assert _lines(project, chosen) == lines


def test_one_that_takes_many_steps_beside_one_that_takes_one(project: Project) -> None:
    """What it reads behind its own steps it reads once for many of them."""
    assert _lines(project, "trainer = Small(loader) if sys.argv[1] == 'small' else Pretrained(loader)") == [18, 42]


def test_what_one_of_several_objects_holds(project: Project) -> None:
    """Its loader is a loader, whichever it is of."""
    project.configure("select = ['SPD205']\ntorch = '2.13'")
    starts = STARTS.format(chosen=BY_BRANCHES)
    project.write("train.py", starts.replace("in loader:", "in trainer.loader:").replace('.pt")', '.pt"), pin_memory=True'))
    path = project.write("trainers.py", OBJECTS.format())
    assert [each["line"] for each in project.findings(path)] == [12]


FUNCTIONS = """
import sys
import torch


def mean(values):
    return values.mean()


def clipped(values):
    if values.max() > 9:
        values = values.clamp(max=9)
    return values.mean()


class Training:
    def __init__(self, kind):
        self.net = torch.nn.Linear(512, 512).cuda()
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)
        {chosen}

    def fit(self, loader):
        for rows in loader:
            loss = self.criterion(self.net(rows.cuda()))
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()


Training(sys.argv[1]).fit(torch.utils.data.DataLoader(torch.load("rows.pt")))
"""


@pytest.mark.parametrize(
    ("chosen", "lines"),
    [
        ("self.criterion = clipped", [11]),
        ("self.criterion = clipped if kind == 'clipped' else mean", [11]),
        (
            "if kind == 'clipped':\n            self.criterion = clipped\n        else:\n            self.criterion = mean",
            [11],
        ),
        ("self.criterion = mean", []),
    ],
)
def test_one_of_several_functions(project: Project, chosen: str, lines: list[int]) -> None:
    project.configure("select = ['SPD304']\ntorch = '2.13'")
    path = project.write("train.py", FUNCTIONS.format(chosen=chosen))
    assert [each["line"] for each in project.findings(path)] == lines


CHUNKS = """
import torch

net = torch.nn.Linear(512, 512).cuda()
teacher = torch.nn.Linear(512, 512).cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)


def targets(rows):
    found = []
    for group in rows.split(64):
        with torch.no_grad():
            for part in group.split(8):
                found.append(teacher(part))
        {read}
    return torch.cat(found)


for rows in torch.utils.data.DataLoader(torch.load("rows.pt")):
    rows = rows.cuda()
    {begins}
    loss = (net(rows) - wanted).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("read", "begins", "found"),
    [
        ("print(found[-1].mean().item())", "wanted = targets(rows)", 1),
        ("pass", "wanted = targets(rows)", 0),
    ],
)
def test_a_loop_of_passes_in_a_step(project: Project, read: str, begins: str, found: int) -> None:
    project.configure("select = ['SPD301']\ntorch = '2.13'")
    findings = project.findings(project.write("train.py", CHUNKS.format(read=read, begins=begins)))
    assert [each["message"].partition(" in every ")[2] for each in findings] == ["training step"] * found


HANDED = """
import torch
from losses import clipped


def fit(net, optimizer, loader, criterion{default}):
    for rows in loader:
        loss = criterion(net(rows.cuda()))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


net = torch.nn.Linear(512, 512).cuda()
fit(net, torch.optim.SGD(net.parameters(), lr=0.1), torch.utils.data.DataLoader(torch.load("rows.pt")){given})
"""
LOSSES = """
def clipped(values):
    if values.max() > 9:
        values = values.clamp(max=9)
    return values.mean()
"""


@pytest.mark.parametrize(
    ("default", "given"),
    [("", ", clipped"), ("", ", criterion=clipped"), ("=clipped", ""), ("=None", ", criterion=clipped")],
)
def test_a_function_that_is_handed_on(project: Project, default: str, given: str) -> None:
    project.configure("select = ['SPD304']\ntorch = '2.13'")
    project.write("train.py", HANDED.format(default=default, given=given))
    assert [each["line"] for each in project.findings(project.write("losses.py", LOSSES))] == [3]


BASE = """
import torch


class Trainer:
    def __init__(self, rows):
        self.loader = torch.utils.data.DataLoader(rows, pin_memory=True)

    def fit(self, step):
        for epoch in range(9):
            step(self.loader)
"""
PLAIN = """
import torch
from training.base import Trainer


class Plain(Trainer):
    def __init__(self, rows):
        super().__init__(rows)
        self.net = torch.nn.Linear(512, 512).cuda()
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)

    def train(self, loader):
        for rows in loader:
            loss = self.net(rows.cuda()).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
"""
RUNS = """
import sys
import torch
from training.plain import Plain
from training.other import Other

rows = torch.load("rows.pt")
trainer = Plain(rows) if sys.argv[1] == "plain" else Other(rows)
trainer.fit(trainer.train)
"""


def test_a_method_that_is_handed_to_one_which_its_class_inherits(project: Project) -> None:
    """Its loader is known by way of the base class, whose method nobody calls who imports it."""
    project.configure("select = ['SPD205']\ntorch = '2.13'")
    project.write("README.md", "training\n")
    project.write("training/__init__.py", "")
    project.write("training/base.py", BASE)
    project.write("training/other.py", PLAIN.replace("Plain", "Other"))
    project.write("run.py", RUNS)
    assert [each["line"] for each in project.findings(project.write("training/plain.py", PLAIN))] == [14]


DIFFERENTIATES = """
import sys
import torch
from torch.utils.data import DataLoader


class Plain(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(512, 512)

    def forward(self, x):
        return self.score(x)

    def score(self, x):
        return self.layer(x)


class Energy(Plain):
    def {method}(self, x):
        x = x.requires_grad_()
        return torch.autograd.grad(self.layer(x).sum(), x, create_graph=True)[0]


KINDS = {{"plain": Plain, "energy": Energy}}
model = {made}.to("cuda")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(9):
    for rows in DataLoader(torch.load("rows.pt")):
        optimizer.zero_grad()
        model(rows.cuda()).mean().backward()
        optimizer.step()
    model.eval()
    for rows in DataLoader(torch.load("others.pt")):
        print(model(rows.cuda()).argmax(1).sum())
"""


@pytest.mark.parametrize(
    ("made", "method", "is_written"),
    [
        ("(Plain() if sys.argv[1] == 'plain' else Energy())", "forward", False),
        ("KINDS[sys.argv[1]]()", "forward", False),
        ("(Plain() if sys.argv[1] == 'plain' else globals()[sys.argv[1]]())", "forward", False),
        ("Energy()", "score", False),
        ("torch.nn.Linear(512, 512)", "forward", True),
    ],
)
def test_an_evaluation_of_networks_of_which_one_differentiates(
    project: Project, made: str, method: str, is_written: bool
) -> None:
    """``autograd.grad`` raises where gradients are off."""
    project.configure("select = ['SPD505']\ntorch = '2.13'")
    text = DIFFERENTIATES.format(made=made, method=method)
    found = project.findings(project.write("train.py", text), "--notes")
    assert any(each["fix"] is not None and each["fix"]["applicable"] for each in found) is is_written


@pytest.mark.parametrize(
    ("other", "is_written"),
    [("getattr(__import__(sys.argv[2]), sys.argv[1])()", False), ("Energy()", True)],
)
def test_an_evaluation_of_a_network_out_of_any_file(project: Project, other: str, is_written: bool) -> None:
    """Nothing in sight differentiates; what a file of any name holds may."""
    project.configure("select = ['SPD505']\ntorch = '2.13'")
    text = DIFFERENTIATES.format(made=f"(Plain() if sys.argv[1] == 'plain' else {other})", method="score")
    text = text.replace("torch.autograd.grad(self.layer(x).sum(), x, create_graph=True)[0]", "self.layer(x)")
    text = text.replace("x = x.requires_grad_()", "x = x.relu()")
    found = project.findings(project.write("train.py", text), "--notes")
    assert any(each["fix"] is not None and each["fix"]["applicable"] for each in found) is is_written


KEEPS = """
import torch


class Trainer:
    def __init__(self, net):
        self.net = net.cuda()
        self.optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    def step(self, rows):
        loss = self.net(rows.cuda()).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss

    def fit(self, loader):
        losses = []
        for rows in loader:
            loss = self.step(rows)
            losses.append(loss.item())
        print(losses)


class Smoothing:
    average = torch.zeros((), device="cuda")

    def step(self, rows):
        loss = Trainer.step(self, rows)
        self.average.mul_(0.9).add_(loss.detach(), alpha=0.1)
        return self.average


class Smooth({bases}):
    pass


{made}(torch.nn.Linear(512, 512)).fit(torch.utils.data.DataLoader(torch.load("rows.pt")))
"""


@pytest.mark.parametrize(
    ("bases", "made", "is_written"),
    [("Smoothing, Trainer", "Smooth", False), ("torch.nn.Identity", "Trainer", True)],
)
def test_a_read_of_what_an_heir_returns_in_the_place_of_its_base(
    project: Project, bases: str, made: str, is_written: bool
) -> None:
    """All entries would be one buffer, which the heir changes in place."""
    project.configure("select = ['SPD301']\ntorch = '2.13'")
    (found,) = project.findings(project.write("train.py", KEEPS.format(bases=bases, made=made)))
    assert (found["fix"] is not None) is is_written


COLLATED = """
import sys
import torch
from torch.utils.data import DataLoader


def host(rows):
    return torch.stack(rows)


def gpu(rows):
    return torch.stack(rows).cuda()


COLLATES = {{"host": host, "gpu": gpu}}
later = host
if len(sys.argv) > 2:
    later = gpu
net = torch.nn.Linear(512, 512).cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for rows in DataLoader(open("rows.bin"), batch_size=64, num_workers=4, collate_fn={given}):
    optimizer.zero_grad()
    net(rows.cuda()).mean().backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("given", "is_written"),
    [
        ("host", True),
        ("gpu", False),
        ("host if sys.argv[1] == 'host' else gpu", False),
        ("later", False),
        ("COLLATES[sys.argv[1]]", False),
        ("COLLATES.get(sys.argv[1], host)", False),
    ],
)
def test_pinning_what_one_of_several_collate_functions_gives(project: Project, given: str, is_written: bool) -> None:
    """A tensor on the GPU cannot be pinned: it raises."""
    project.configure("select = ['SPD202']\ntorch = '2.13'")
    found = project.findings(project.write("train.py", COLLATED.format(given=given)), "--notes")
    assert any(each["fix"] is not None and each["fix"]["applicable"] for each in found) is is_written


READERS = """
import torch


class Narrow(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.cell = torch.nn.Linear(width, width)

    def forward(self, rows, mask=None):
        state = torch.zeros(len(rows), 512).to(rows.device)
        kept = self.cell(rows)
        if mask is not None:
            kept = kept[mask == 1]
        return kept.mean() + state.mean()


class Wide(Narrow):
    def forward(self, rows, mask=None):
        start = torch.ones(len(rows), 512).to(rows.device)
        return self.cell(rows + start).mean()


class Plain(Narrow):
    def forward(self, rows, mask=None):
        return self.cell(rows).mean()
"""
BUILDERS = """
import torch
import readers


def build(kind):
    if kind == "narrow":
        made = readers.Narrow(512)
    elif kind == "wide":
        made = readers.Wide(512)
    else:
        {otherwise}
    return made
"""
READS = """
import sys
import torch
{imports}

device = torch.device("cuda")
net = {made}.to(device)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
data = torch.utils.data.TensorDataset(torch.load("rows.pt"), torch.load("masks.pt"))
for rows, mask in torch.utils.data.DataLoader(data, batch_size=64):
    inputs = {{"rows": rows.to(device), "mask": mask.to(device)}}
    if len(sys.argv) > 3:
        inputs["more"] = sys.argv[2]
    loss = net(**inputs)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("otherwise", "is_told"),
    [
        ("raise ValueError(kind)", True),
        ("made = readers.Plain(512)", False),
    ],
)
def test_a_network_that_a_function_chooses(project: Project, otherwise: str, is_told: bool) -> None:
    """What each of them does on the way is told where it is called; not what one of them does without."""
    project.configure("select = ['SPD308']\ntorch = '2.13'")
    project.write("readers.py", READERS)
    project.write("builders.py", BUILDERS.format(otherwise=otherwise))
    path = project.write("train.py", READS.format(imports="from builders import build", made="build(sys.argv[1])"))
    assert [each["line"] for each in project.findings(path)] == ([14] if is_told else [])


@pytest.mark.parametrize("made", ["kind(512)", "kind.from_pretrained('narrow')"])
def test_a_network_that_a_table_of_tuples_chooses(project: Project, made: str) -> None:
    """Its inputs are those that a dict holds for it, to which one that it does not take is added in some runs."""
    project.configure("select = ['SPD305']\ntorch = '2.13'")
    table = "from readers import Narrow, Wide\nTABLE = {'narrow': (512, Narrow), 'wide': (1024, Wide)}\n"
    path = project.write("readers.py", READERS)
    project.write("train.py", READS.format(imports=f"{table}width, kind = TABLE[sys.argv[1]]", made=made))
    assert [each["line"] for each in project.findings("--notes", path)] == [14]
    project.write("train.py", READS.format(imports=f"{table}width, kind = TABLE[sys.argv[1]]", made="str(kind)"))
    assert project.findings("--notes", path) == []


ADDED = "TABLE['other'] = (512, Plain)\n"


@pytest.mark.parametrize(
    ("table", "lines"),
    [
        ("from readers import Narrow, Wide\nTABLE = {'narrow': (512, Narrow), 'wide': (1024, Wide)}\n", [16]),
        # What is added to a table later, one of all networks that does without, and one that is out of sight.
        ("from readers import Narrow, Plain, Wide\nTABLE = {'narrow': (512, Narrow), 'wide': (1024, Wide)}\n" + ADDED, []),
        ("from readers import Narrow, Plain\nTABLE = {'narrow': (512, Narrow), 'plain': (512, Plain)}\n", []),
        ("from readers import Narrow\nTABLE = {'narrow': (512, Narrow), 'other': (512, globals()['other'])}\n", []),
    ],
)
def test_what_all_networks_of_a_table_do_is_told_at_the_call(project: Project, table: str, lines: list[int]) -> None:
    project.configure("select = ['SPD308']\ntorch = '2.13'")
    project.write("readers.py", READERS)
    chosen = READS.format(imports=f"{table}width, kind = TABLE[sys.argv[1]]", made="kind(512)")
    assert [each["line"] for each in project.findings(project.write("train.py", chosen))] == lines


def test_a_table_of_another_file(project: Project) -> None:
    """It is shorter than the script that calls what it holds, and longer ones are not mistaken for it."""
    project.configure("select = ['SPD308', 'SPD101']\ntorch = '2.13'")
    project.write("readers.py", READERS)
    project.write("kinds.py", "from readers import Narrow, Wide\nTABLE = {'narrow': (512, Narrow), 'wide': (1024, Wide)}\n")
    chosen = READS.format(imports="from kinds import TABLE\nwidth, kind = TABLE[sys.argv[1]]", made="kind(512)")
    result = project.run("check", "--notes", "--format", "json", project.write("train.py", chosen))
    assert "internal error" not in result.stderr
    assert {each["line"] for each in json.loads(result.stdout)["findings"] if each["code"] == "SPD308"} == {15}


def test_functions_that_choose_by_each_other(project: Project) -> None:
    """It is found that they choose one network, and that ends."""
    project.configure("select = ['SPD308']\ntorch = '2.13'")
    project.write("readers.py", READERS)
    builders = "import readers\n\n\ndef build(kind):\n    return again(kind[1:]) if kind else readers.Wide(512)\n\n\n"
    builders += "def again(kind):\n    made = build(kind) if kind else readers.Narrow(512)\n    return made\n"
    project.write("builders.py", builders)
    path = project.write("train.py", READS.format(imports="from builders import again", made="again(sys.argv[1])"))
    result = project.run("check", "--format", "json", path)
    assert "internal error" not in result.stderr
    assert [each["line"] for each in json.loads(result.stdout)["findings"]] == [14]


RUNNERS = """
import torch


class Base:
    def __init__(self, model, loader, device, optimizer):
        self.model, self.loader, self.device, self.optimizer = model, loader, device, optimizer


class Plain(Base):
    def epoch(self):
        for x, y in self.loader:
            loss = (self.model(x.to(self.device)) - y.to(self.device)).square().mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()


class Named(Base):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.name = "named"

    def epoch(self):
        for x, y in self.loader:
            loss = (self.model(x.to(self.device)) - y.to(self.device)).abs().mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()


def chosen(task):
    if task == "plain":
        return list, Plain
    if task == "named":
        return dict, Named
    raise NotImplementedError(task)
"""
STARTS_ONE = """
import sys
import torch
from torch.utils.data import DataLoader
from runners import Named, Plain, chosen

device = torch.device("cuda")
model = torch.nn.Linear(512, 512).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(torch.load("rows.pt"), batch_size=64, num_workers=4)
{makes}
for epoch in range(90):
    runner.epoch()
"""


@pytest.mark.parametrize(
    "makes",
    [
        "kind, runner_class = chosen(sys.argv[1])\nrunner = runner_class(model, loader, device, optimizer)",
        "made = Plain if len(sys.argv) else Named\nrunner = made(model, loader, device, optimizer)",
        "if len(sys.argv):\n    runner = Plain(model, loader, device, optimizer)\n"
        "else:\n    runner = Named(model, loader, device, optimizer=optimizer)",
    ],
)
def test_objects_whose_constructor_is_inherited(project: Project, makes: str) -> None:
    """What a call of a class hands to the constructor of its base, in whatever way the class is reached."""
    project.configure("select = ['SPD205']")
    project.write("runners.py", RUNNERS)
    lines = [line for line, text in enumerate(RUNNERS.splitlines(), 1) if "x.to(" in text for _ in range(2)]
    project.write("train.py", STARTS_ONE.format(makes=makes))
    found = project.findings("runners.py")
    assert [each["line"] for each in found] == lines
    assert all(each["fix"] is not None and each["fix"]["applicable"] for each in found)


def test_a_constructor_that_is_handed_more_than_its_arguments(project: Project) -> None:
    project.configure("select = ['SPD205']")
    project.write(
        "runners.py", RUNNERS.replace("super().__init__(*args, **kwargs)", "super().__init__(*args[1:], **kwargs)")
    )
    makes = "runner = Named(None, model, loader, device, optimizer)"
    project.write("train.py", STARTS_ONE.format(makes=makes))
    assert project.findings("runners.py") == []


TERMS = """
import sys
import torch

model = torch.nn.Linear(512, 512).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


class Term:
    def raw(self, rows):
        return rows.pow(2).mean()

    def value(self, rows):
        return self.raw(rows)


class Other(Term):
    def raw(self, rows):
        return {other}


class Apart:
    def value(self, rows):
        return {apart}


class Squares(torch.nn.Module):
    def forward(self, rows):
        return rows.pow(2).mean()


class Holder:
    def __init__(self):
        self.held = Squares()


def build(kind):
    if kind == "apart":
        return Apart()
    return Term()


term = {chosen}
total = 0.0
for rows in torch.utils.data.DataLoader(torch.load("rows.pt")):
    rows = rows.cuda()
    loss = model(rows).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total += float({read})
print(total)
"""


@pytest.mark.parametrize(
    ("other", "apart", "chosen", "read", "fix"),
    [
        ("rows.mean()", "rows.mean()", "build(sys.argv[1])", "term.value(rows)", "numeric"),
        ("rows.mean()", "rows.mean()", "Holder()", "term.held(rows)", "numeric"),
        ("rows.mean()", "0.0", "build(sys.argv[1])", "term.value(rows)", None),
        ("rows.mean()", "0.0", "Term() if sys.argv[1] else Apart()", "term.value(rows)", None),
        ("0.0", "rows.mean()", "Term()", "term.value(rows)", None),
        ("0.0", "rows.mean()", "Other()", "term.value(rows)", None),
        ("rows.mean()", "rows.mean()", "Term()", "term.value(rows) or 0.0", None),
        ("rows.mean()", "rows.mean()", "Term()\nterm.value = lambda rows: 0.0", "term.value(rows)", None),
    ],
)
def test_a_sum_of_what_one_object_gives_as_a_number(
    project: Project, other: str, apart: str, chosen: str, read: str, fix: str | None
) -> None:
    """A number has no `detach`: the sum is kept on the GPU only where each object that there may be gives a tensor."""
    project.configure("select = ['SPD301']\ntorch = '2.13'")
    text = TERMS.format(other=other, apart=apart, chosen=chosen, read=read)
    found = [each for each in project.findings(project.write("train.py", text)) if each["line"] == 51]
    assert [each["fix"]["risk"] for each in found if each["fix"]] == ([fix] if fix else [])


ENGINE = """
import torch


class Engine:
    def __init__(self, manager, model):
        self.loader, self.model = manager.loader, model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def run(self):
        for epoch in range(9):
            for data in self.loader:
                self.step(data)


    def parts(self, data):
        return data["rows"], data["labels"]


class Plain(Engine):
    def __init__(self, manager, model):
        super().__init__(manager, model)
        self.count = 0

    def step(self, data):
        rows, labels = self.parts(data)
        rows = rows.cuda()
        loss = (self.model(rows) - labels.cuda()).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
"""
MANAGERS = """
import torch


class Pictures:
    def __init__(self):
        self.loader = torch.utils.data.DataLoader(torch.load("rows.pt"), num_workers=4, pin_memory=True)


class Films:
    def __init__(self):
        self.loader = torch.utils.data.DataLoader(torch.load("films.pt"), num_workers=2, pin_memory=True)
"""
STARTED = """
import sys

import torch

import kit

manager = kit.managers.Pictures() if sys.argv[1] == "pictures" else kit.managers.Films()
kit.engine.Plain(manager, torch.nn.Linear(4096, 4096).cuda()).run()
"""


@pytest.mark.parametrize("others", [0, 20])
@pytest.mark.parametrize("makers", [1, 12])
def test_what_makes_an_object_is_found_among_many_who_import_its_package(project: Project, others: int, makers: int) -> None:
    """Where many make objects of a class, as of a library's, it is not followed what each hands it."""
    project.configure("select = ['SPD205']")
    project.write("README.md", "# A kit\n")
    project.write("kit/__init__.py", "from kit import engine, managers\n")
    project.write("kit/engine.py", ENGINE)
    project.write("kit/managers.py", MANAGERS)
    for number in range(makers):
        project.write(f"train_{number}.py", STARTED)
    for number in range(others):
        project.write(f"kit/part_{number}.py", "import kit\n\nprint(kit.engine)\n")
    found = project.findings("kit/engine.py", "--notes")
    assert bool(found) is (makers == 1)
