"""What a finding is worth, which findings are one, and which are notes because nothing is gained."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest

from speedlint.registry import Registry
from speedlint.rule import Rule
from tests.conftest import Project

REGISTRY = Registry.load()

TRAIN = """
import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader


def train(model, data, epochs, args):
    device = torch.device("cuda")
    model.to(device)
    loader = DataLoader(data, batch_size=32)
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    for epoch in range(epochs):
        for images, labels in loader:
            images = images.to(device)
            labels = labels.to(device)
            out = model(images)
            loss = nn.functional.cross_entropy(out, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
{body}

parser = argparse.ArgumentParser()
parser.add_argument("--look", action="store_true")
train(nn.Sequential(nn.Linear(784, 10)), torch.load("rows.pt"), 10, parser.parse_args())
"""


def _found(project: Project, body: str, *options: str) -> list[dict[str, Any]]:
    project.configure("select = ['SPD3', 'SPD205']")
    path = project.write("train.py", TRAIN.format(body=textwrap.indent(textwrap.dedent(body).strip("\n"), " " * 12)))
    return project.findings(path, *options)


def _line(text: str) -> int:
    """The number of the line that holds a text, in what ``TRAIN`` begins with."""
    return next(number for number, line in enumerate(TRAIN.splitlines(), 1) if text in line)


BODY = _line("{body}")


def _causes(found: list[dict[str, Any]], code: str) -> list[list[int]]:
    """The lines of each cause among the findings of a rule and those that it shares one with."""
    causes: dict[str, list[int]] = {}
    for each in found:
        causes.setdefault(each["cause"], []).append(each["line"])
    return [lines for name, lines in causes.items() if name.startswith(code)]


def test_reads_without_work_between_are_one_wait(project: Project) -> None:
    found = _found(
        project,
        """
        correct = (out.argmax(1) == labels).sum()
        log = {"loss": loss.item()}
        log["accuracy"] = correct.item()
        print(log, loss)
        out = model(images)
        log["again"] = out.mean().item()
        """,
    )
    assert _causes(found, "SPD301") == [[BODY + 1, BODY + 2, BODY + 3], [BODY + 5]]


def test_parts_of_a_batch_copied_side_by_side_are_one(project: Project) -> None:
    found = _found(project, "pass")
    first = _line("images = images.to(device)")
    assert _causes(found, "SPD205") == [[first, first + 1]]


TOLD_ONCE = """
import torch
import torchvision
from torch import nn
from torch.utils.data import DataLoader

device = torch.device("cuda")
train_loader = DataLoader(IMAGES, batch_size=32, WORKERS)
test_loader = DataLoader(IMAGES, batch_size=32, WORKERS)
model = nn.Sequential(nn.Conv2d(3, 256, 3), nn.Flatten(), nn.LazyLinear(10)).to(device)
optimizer = torch.optim.AdamW(model.parameters(), fused=True)


def evaluate():
    total = 0.0
    with torch.no_grad():
        for images, labels in test_loader:
            out = model(images.to(device))
            total += nn.functional.cross_entropy(out, labels.to(device)).item()
    return total


for epoch in range(10):
    for images, labels in train_loader:
        loss = nn.functional.cross_entropy(model(images.to(device)), labels.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())
    print(evaluate())
"""


@pytest.mark.parametrize(
    ("workers", "causes"),
    [
        ("num_workers=4", {"SPD202": ["SPD202", "SPD203", "SPD205"], "SPD301": ["SPD301"]}),
        ("num_workers=0", {"SPD201": ["SPD201", "SPD202", "SPD205"], "SPD301": ["SPD301"]}),
        ("num_workers=4, pin_memory=True, persistent_workers=True", {"SPD301": ["SPD205", "SPD301"]}),
    ],
)
def test_how_batches_come_is_one_finding_and_evaluation_is_told_with_the_training(
    project: Project, workers: str, causes: dict[str, list[str]]
) -> None:
    project.configure("select = ['SPD2', 'SPD301']")
    images = 'torchvision.datasets.ImageFolder("images", torchvision.transforms.ToTensor())'
    text = TOLD_ONCE.replace("IMAGES", images).replace("WORKERS", workers)
    found: dict[str, set[str]] = {}
    for each in project.findings(project.write("train.py", text)):
        found.setdefault(each["cause"].partition(":")[0], set()).add(each["code"])
    assert {first: sorted(codes) for first, codes in found.items()} == causes


@pytest.mark.parametrize(("size", "is_found"), [("", False), ("torchvision.transforms.Resize(224), ", True)])
def test_half_precision_gains_nothing_on_digits_as_they_come(project: Project, size: str, is_found: bool) -> None:
    project.configure("select = ['SPD101', 'SPD105']")
    transform = f"torchvision.transforms.Compose([{size}torchvision.transforms.ToTensor()])"
    images = f'torchvision.datasets.MNIST("digits", transform={transform})'
    text = TOLD_ONCE.replace("IMAGES", images).replace("WORKERS", "num_workers=4")
    assert bool(project.findings(project.write("train.py", text))) is is_found


def test_a_line_tells_its_own_fix_beside_an_easier_one_of_another_place(project: Project) -> None:
    images = 'torchvision.datasets.ImageFolder("images", torchvision.transforms.ToTensor())'
    project.write("train.py", TOLD_ONCE.replace("IMAGES", images).replace("WORKERS", "num_workers=0"))
    text = project.run("check", "--select", "SPD2", "--format", "concise", "train.py").stdout
    assert "[medium, by hand, exact at others]\n" in text


def test_a_report_in_text_tells_a_cause_once_with_its_places(project: Project) -> None:
    _found(project, "print(loss.item(), out.max().item())\nprint(out.min().item())")
    text = " ".join(project.run("check", "train.py", "--select", "SPD301").stdout.split())
    assert "1 finding at 3 places:" in text
    assert text.count("SPD301 item-in-loop") == 1
    assert f"= also: train.py:{BODY + 1}: `out.min().item()` waits for the GPU" in text
    assert "= cost: medium: one wait" in text


def test_what_is_worth_most_comes_first(project: Project) -> None:
    _found(project, "print(loss.item())\nfor i in range(12):\n    for j in range(12):\n        print(out[i, j].item())")
    text = project.run("check", "train.py", "--select", "SPD205,SPD301").stdout
    assert text.index("SPD301") < text.index("SPD205")


@pytest.mark.parametrize(
    ("body", "level"),
    [
        ("print(loss.item())", "warning"),
        ("if args.look:\n    print(loss.item())", "note"),
        ("if not args.look:\n    print(loss.item())", "warning"),
        ("if epochs > 3:\n    print(loss.item())", "warning"),
        ("if loss.item() < 0.1:\n    return\nprint(loss.item() / 2)", "note"),
        ("if loss.item() < 0.1:\n    return\nout = model(images)\nprint(out.mean().item())", "warning"),
    ],
)
def test_a_read_from_which_nothing_is_gained_is_a_note(project: Project, body: str, level: str) -> None:
    found = _found(project, body, "--notes")
    assert [each["level"] for each in found if each["code"] == "SPD301"] == [level]
    if level == "note":
        assert {each["worth"] for each in found if each["code"] == "SPD301"} == {"low"}


@pytest.mark.parametrize(
    ("body", "level"),
    [
        ("torch.cuda.synchronize()\nprint(loss.item())", "warning"),
        ("print(time.time())\ntorch.cuda.synchronize()\nprint(loss.item())", "note"),
        ("began = time.time()\nif device.type == 'cuda':\n    torch.cuda.synchronize()\nprint(loss.item(), began)", "note"),
        ("began = time.time()\nif args.look:\n    torch.cuda.synchronize()\nprint(loss.item(), began)", "warning"),
        ("best = out[labels > 0]\ntotal += loss.item()\nkeep(best)", "note"),
        ("best = (labels > 0).nonzero()\ntotal += loss.item()\nkeep(best)", "note"),
        ("best = out[labels > 0].mean()\ntotal += loss.item()\nkeep(best)", "warning"),
        ("if args.look:\n    keep(out[labels > 0])\ntotal += loss.item()", "warning"),
        ("keep(out[labels > 0])\nout = model(images)\ntotal += out.mean().item()", "warning"),
        ("total += loss.item()\nif float(out.max()) > 9:\n    break", "note"),
        ("total += loss.item()\nif out.max() > 9:\n    break", "note"),
        ("total += loss.item()\nif bool(out.max() > 9):\n    keep(out)", "warning"),
        ("total += loss.item()\nkeep(chosen(out, labels))", "note"),
        ("total += loss.item()\nkeep(perhaps(out, labels))", "warning"),
        ("total += loss.item()\nkeep(chosen(torch.ones(3), torch.ones(3)))", "warning"),
        ("keep(out[labels > 0])\nfor row in range(32):\n    total += out[row].mean().item()", "warning"),
        ("for row in range(4):\n    keep(out[labels > row])\n    total += out[row].mean().item()", "note"),
        ("total += loss.item()\nkeep(f1_score(labels.tolist(), out.argmax(1).cpu().numpy()))", "note"),
    ],
)
def test_what_else_waits_in_the_same_stretch(project: Project, body: str, level: str) -> None:
    project.configure("select = ['SPD301']")
    text = HELPERS + TRAIN.format(body=textwrap.indent(body, " " * 12)).replace(
        "    for epoch", "    total = 0.0\n    for epoch"
    )
    found = project.findings(project.write("train.py", text), "--notes")
    read = ("loss.item()", "out.mean().item()", "out[row].mean().item()")
    wanted = [each for each in found if any(text in each["message"] for text in read)]
    assert [each["level"] for each in wanted] == [level]


HELPERS = """
import time
from sklearn.metrics import f1_score

def keep(value):
    pass

def chosen(scores, labels):
    picked = scores[labels > 0]
    return picked.sort()

def perhaps(scores, labels):
    if len(scores) > 3:
        return scores[labels > 0]
    return scores
"""


def test_what_a_library_computes_on_the_host_is_still_told_of_once(project: Project) -> None:
    project.configure("select = ['SPD302']")
    body = " " * 12 + "print(f1_score(labels.cpu().numpy(), out.argmax(1).cpu().numpy()))"
    found = project.findings(project.write("train.py", HELPERS + TRAIN.format(body=body)), "--notes")
    assert [each["level"] for each in found] == ["warning", "warning"]


SEEN_FROM_CALLERS = """
import torch
from scipy.ndimage import zoom
from torch import nn
from torch.utils.data import DataLoader


class Masked(nn.Module):
    def forward(self, scores, labels):
        chosen = scores[labels > 0]
        return nn.functional.cross_entropy(chosen, labels[labels > 0]) + len(chosen)


def tell(value):
    print(value.item())


def enlarged(model, image):
    model.eval()
    with torch.no_grad():
        out = model(image.cuda())
        return zoom(out.cpu().numpy(), 2)


def train(model, data, criterion):
    model.cuda()
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    for epoch in range(10):
        for images, labels in DataLoader(data):
            labels = labels.cuda()
            out = model(images.cuda())
            loss = criterion(out, labels)
            {look}
            loss.backward()
            optimizer.step()
        for images, labels in DataLoader(data):
            enlarged(model, images)


train(nn.Sequential(nn.Linear(784, 10)), torch.randn(1000, 784), {criterion}())
"""


@pytest.mark.parametrize(
    ("look", "criterion", "levels"),
    [
        ("print(loss.item())", "Masked", {"SPD301": "warning"}),
        ("print(loss.item())", "nn.CrossEntropyLoss", {"SPD301": "warning"}),
        ("tell(loss)", "nn.CrossEntropyLoss", {"SPD301": "warning"}),
        ("tell(loss)", "Masked", {"SPD301": "warning"}),
        ("best = sorted(out[labels > 0]); tell(loss)", "nn.CrossEntropyLoss", {"SPD301": "note"}),
    ],
)
def test_what_waits_behind_calls_and_beside_them(
    project: Project, look: str, criterion: str, levels: dict[str, str]
) -> None:
    project.configure("select = ['SPD301', 'SPD302']")
    text = SEEN_FROM_CALLERS.format(look=look, criterion=criterion)
    found = project.findings(project.write("train.py", text), "--notes")
    assert {each["code"]: each["level"] for each in found} == levels | {"SPD302": "note"}


def test_a_call_that_only_waits_where_the_host_works_is_a_note(project: Project) -> None:
    project.configure("select = ['SPD311']")
    text = SEEN_FROM_CALLERS.format(look="pass", criterion="nn.CrossEntropyLoss")
    helper, _, rest = text.partition("def train(")
    project.write("volume.py", helper)
    path = project.write("train.py", f"from volume import enlarged\n{helper.partition('def tell')[0]}def train({rest}")
    (found,) = project.findings(path, "--notes")
    assert (found["level"], found["worth"]) == ("note", "low")


def test_reads_beside_the_number_that_ends_the_training_are_notes(project: Project) -> None:
    project.configure("select = ['SPD301']")
    text = """
import torch
from torch import nn

model = nn.Linear(100, 10).cuda()
features, labels = torch.randn(500, 100).cuda(), torch.zeros(500, dtype=torch.long).cuda()
optimizer = torch.optim.Adam(model.parameters(), fused=True)


def train(epoch):
    optimizer.zero_grad()
    out = model(features)
    loss = nn.functional.cross_entropy(out[:300], labels[:300])
    loss.backward()
    optimizer.step()
    held_out = nn.functional.cross_entropy(model(features)[300:], labels[300:])
    print(epoch, "loss", loss.item())
    return held_out.item()


best, waited, losses = 9.0, 0, []
for epoch in range(10_000):
    losses.append(train(epoch))
    if losses[-1] < best:
        best, waited = losses[-1], 0
    else:
        waited += 1
    if waited == 100:
        break
"""
    (found,) = project.findings(project.write("train.py", text), "--notes")
    assert (found["line"], found["level"], found["worth"]) == (17, "note", "low")
    (found,) = project.findings(project.write("train.py", text.replace("waited == 100", "epoch == 100")), "--notes")[:1]
    assert (found["line"], found["level"]) == (17, "warning")


def test_calls_of_one_helper_in_a_step_are_one_finding(project: Project) -> None:
    project.configure("select = ['SPD311']")
    project.write(
        "losses.py",
        """
def dice(score, target):
    parts = []
    loss = 0.0
    for i in range(4):
        part = (score[:, i] * target).mean()
        parts.append(1.0 - part.item())
        loss = loss + part
    return loss
""",
    )
    text = "from losses import dice\n" + TRAIN.format(body="            pass").replace(
        "            optimizer.zero_grad()\n",
        "            for other in (out, 2 * out, 3 * out):\n"
        "                loss = loss + dice(other, labels)\n"
        "            loss = loss + dice(out, images)\n"
        "            optimizer.zero_grad()\n",
    )
    (found,) = project.findings(project.write("train.py", text))
    assert "`dice(...)`, called at 2 places, waits for the GPU 16 times in every training step" in found["message"]
    assert found["worth"] == "high"
    assert "called again in the same step" in [each["message"] for each in found["related"]]


def test_a_step_for_what_is_left_at_the_end_of_an_epoch_is_no_training_step(project: Project) -> None:
    project.configure("select = ['SPD501', 'SPD301']")
    text = TRAIN.format(body="            pass").replace("optimizer.step()\n", "optimizer.step()\n", 1)
    text = text.replace(
        "            optimizer.zero_grad()\n            loss.backward()\n            optimizer.step()\n            pass",
        "            loss.backward()\n"
        "            if len(labels) > 2:\n"
        "                optimizer.step()\n"
        "                optimizer.zero_grad(set_to_none=False)\n"
        "        optimizer.step()\n"
        "        optimizer.zero_grad(set_to_none=False)\n"
        "        print(loss.item())",
    )
    found = project.findings(project.write("train.py", text), "--notes")
    often = {text.splitlines()[each["line"] - 1].strip(): each["frequency"] for each in found}
    assert "print(loss.item())" not in often
    assert [each["frequency"] for each in found] == ["step"]


@pytest.mark.parametrize("rule", map(REGISTRY.loaded, REGISTRY.rules), ids=lambda rule: rule.code)
def test_each_rule_says_what_its_findings_are_worth(rule: Rule) -> None:
    assert rule.worth.because
    assert "\n" not in rule.worth.because and not rule.worth.because.endswith(".")


BESIDE = """
import torch
import torchvision
from torch import nn
from torch.utils.data import DataLoader

device = torch.device("cuda")
images = torchvision.datasets.ImageFolder("images", torchvision.transforms.ToTensor())
loader = DataLoader(images, batch_size=64, num_workers=8, persistent_workers=True, PINNED)
model = nn.Sequential(nn.Conv2d(3, 256, 3), nn.Flatten(), nn.LazyLinear(1)).to(device)
optimizer = torch.optim.AdamW(model.parameters(), fused=True)
for epoch in range(10):
    for rows, _ in loader:
        rows = rows.to(device)
        ones = torch.ones(64, 1).to(device)
        loss = nn.functional.mse_loss(model(rows), ones)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


@pytest.mark.parametrize(("pinned", "cause"), [("pin_memory=False", "SPD202"), ("pin_memory=True", "SPD205")])
def test_a_copy_beside_that_of_a_batch_is_told_with_it(project: Project, pinned: str, cause: str) -> None:
    project.configure("select = ['SPD202', 'SPD205', 'SPD308']")
    found = project.findings(project.write("train.py", BESIDE.replace("PINNED", pinned)))
    assert {each["cause"].partition(":")[0] for each in found} == {cause}
    assert "SPD308" in {each["code"] for each in found}
