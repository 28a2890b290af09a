"""Sums that stay on the device: functions that are run before and after the fix, return the same, and read no step's."""

from __future__ import annotations

import contextlib
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Project

torch = pytest.importorskip("torch")

HEAD = """
import copy, functools, math
import torch
import torch.nn.functional as F
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
"""
READS = ("item", "tolist", "cpu", "__float__", "__int__", "__bool__", "__format__")


def _written(project: Project, **files: str) -> dict[str, str]:
    """The files as the numeric fixes of the rules of reads leave them."""
    project.write("speedlint.toml", "")
    paths = [project.write(f"{name}.py", text) for name, text in files.items()]
    result = project.run("fix", "--apply", "--risk", "numeric", "--select", "SPD301,SPD302,SPD311", *paths)
    assert "not settle" not in result.output
    return {name: (project.root / f"{name}.py").read_text() for name in files}


@contextlib.contextmanager
def _counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The reads of values of tensors that are made meanwhile."""
    seen: list[str] = []

    def counting(name: str, read: Any) -> Any:
        def counted(*args: Any, **options: Any) -> Any:
            seen.append(name)
            return read(*args, **options)

        return counted

    with monkeypatch.context() as patched:
        for name in READS:
            patched.setattr(torch.Tensor, name, counting(name, getattr(torch.Tensor, name)))
        yield seen


def _ran(root: Path, files: dict[str, str], steps: int, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, int]:
    """What ``train`` returns on made batches, and how many values it reads."""
    for name, text in files.items():
        (root / f"{name}.py").write_text(text)
        sys.modules.pop(name, None)
    monkeypatch.syspath_prepend(str(root))
    names: dict[str, Any] = {"__name__": "train"}
    sys.dont_write_bytecode = True
    exec(compile(files["train"], "train.py", "exec"), names)
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 3)
    loader = [(torch.randn(5, 4), torch.randint(0, 3, (5,))) for _ in range(steps)]
    with _counted(monkeypatch) as seen:
        found = names["train"](model, loader, torch.optim.SGD(model.parameters(), lr=0.1))
    for name in files:
        sys.modules.pop(name, None)
    return found, len(seen)


def _same(one: Any, other: Any) -> None:
    """Asserts that two results are made of equal things of the same types, numbers up to rounding."""
    assert type(one) is type(other), (one, other)
    if isinstance(one, dict):
        assert list(one) == list(other)
        one, other = list(one.values()), list(other.values())
    if isinstance(one, list | tuple):
        assert len(one) == len(other)
        for left, right in zip(one, other, strict=True):
            _same(left, right)
    elif isinstance(one, torch.Tensor):
        assert one.dtype is other.dtype
        assert one.device == other.device
        assert torch.allclose(one, other)
    elif hasattr(one, "dtype"):
        assert one.dtype == other.dtype
        assert (one == other).all()
    elif isinstance(one, str) or one is None:
        assert one == other
    else:
        assert one == pytest.approx(other, rel=1e-5, nan_ok=True)


def _check_kept(project: Project, monkeypatch: pytest.MonkeyPatch, **files: str) -> dict[str, str]:
    """Holds the fix of a program to its promises, and gives the files as it leaves them."""
    files = {name: HEAD + textwrap.dedent(text) for name, text in files.items()}
    fixed = _written(project, **files)
    assert fixed != files
    counts = []
    for steps in (0, 1, 3, 8):
        before, _ = _ran(project.root, files, steps, monkeypatch)
        after, count = _ran(project.root, fixed, steps, monkeypatch)
        _same(before, after)
        counts.append(count)
    assert counts[2] == counts[3], "what is read hangs on the number of steps"
    assert _written(project, **fixed) == fixed, "the fix is not at rest"
    return fixed


STEP = """
            x, y = x.to(device), y.to(device)
            out = model(x)
            loss = F.cross_entropy(out, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()"""
ENTRIES = f"""
    def train(model, loader, optimizer):
        model.to(device).train()
        START
        for step, (x, y) in enumerate(loader):{STEP}
            INSIDE
        AFTER
"""


def _of_entries(start: str, inside: str, after: str) -> str:
    text = textwrap.dedent(ENTRIES)
    for word, lines, indent in (("START", start, 4), ("INSIDE", inside, 8), ("AFTER", after, 4)):
        text = text.replace(word, textwrap.indent(lines, " " * indent).lstrip())
    return text


COUNTS = 'stats = {"loss": 0.0, "samples": 0, "tp": 0, "fp": 0}'
ADDED = """batch_size = y.size(0)
stats["loss"] += loss.detach().item() * batch_size
stats["samples"] += batch_size
preds = out.argmax(1)
stats["tp"] += ((preds == 1) & (y == 1)).sum().item()
stats["fp"] += ((preds == 1) & (y == 0)).sum().item()
if stats["samples"] == batch_size:
    first = out.shape"""


@pytest.mark.parametrize(
    ("start", "inside", "after"),
    [
        (COUNTS, ADDED, "shown = f\"{stats['tp']} {stats['loss']:.2f}\"\nreturn stats, stats[\"tp\"] / 7, shown"),
        ("stats: dict = dict(loss=0.0, tp=0)", 'stats["loss"] += loss.item()', "other = stats\nreturn other"),
        ('stats = {}\nstats["loss"] = 0.0', 'stats["loss"] += float(loss)', "return {k: v / 2 for k, v in stats.items()}"),
        (COUNTS, 'stats["loss"] += loss.item()\nif "z" not in locals(): z = 1', 'stats["loss"] /= 3\nreturn stats'),
        (
            COUNTS + "\nshown = []",
            'stats["loss"] += loss.item()\n'
            'if step % 50 == 49:\n    shown.append(stats["loss"] / 50)\n    stats["loss"] = 0.0\n'
            'if stats["samples"] > 2:\n    raise ValueError(stats["samples"])',
            "return stats, shown",
        ),
        (COUNTS, 'stats["loss"] += loss.item()\nif step == 5:\n    break', 'stats["loss"] += 1\nreturn stats'),
    ],
)
def test_sums_in_entries_of_a_dict(
    project: Project, monkeypatch: pytest.MonkeyPatch, start: str, inside: str, after: str
) -> None:
    fixed = _check_kept(project, monkeypatch, train=_of_entries(start, inside, after))["train"]
    assert '    stats["loss"] = float(stats["loss"])\n' in fixed
    assert ".item()" not in fixed


def test_entries_are_converted_in_the_order_in_which_they_are_added_to(project: Project) -> None:
    fixed = _written(project, train=HEAD + _of_entries(COUNTS, ADDED, "return stats"))["train"]
    lines = [
        f'    stats["{key}"] = {kind}(stats["{key}"])\n' for key, kind in (("loss", "float"), ("tp", "int"), ("fp", "int"))
    ]
    assert "".join(lines) in fixed


@pytest.mark.parametrize(
    ("start", "inside", "why"),
    [
        (COUNTS, 'stats["loss"] += loss.item()\nprint(stats["loss"])', "read in every step"),
        (COUNTS, 'stats["loss"] += loss.item()\nif stats["loss"] > 9: break', "Nothing slow"),
        (COUNTS, 'stats["loss"] += loss.item()\nprint(stats)', "used before the loop is over"),
        (COUNTS, 'stats["loss"] += loss.item()\nfor k in stats: pass', "used before the loop is over"),
        (COUNTS, 'stats["loss"] += loss.item()\nif step == 3: return stats', "used before the loop is over"),
        (COUNTS, 'stats["loss"] += loss.item()\nif step % 9 == 0: model.log(**stats)', "used before the loop is over"),
        (COUNTS, 'for key in ("loss", "tp"): stats[key] += loss.item()', "is not known"),
        (COUNTS, 'stats["loss"] += loss.item()\nkey = "loss" if step else "tp"\nstats[key] += 1', "used before the loop"),
        (COUNTS, 'stats["tp"] += (out.argmax(1) == y).sum().item()\nstats["tp"] += 0.5', "also set"),
        (COUNTS, 'stats["tp"] += out.max().item()', "whole number"),
        (COUNTS, 'stats["tp"] += (out.argmax(1) == y).sum().item()\nstats["tp"] /= 2', "also set"),
        (COUNTS, 'stats["loss"] += loss.item()\nstats["loss"] = stats["tp"]', "also set"),
        (COUNTS, 'stats["loss"] += loss.item()\nstats["loss"], z = 0.0, 1', "not followed"),
        (COUNTS, 'stats["loss"] += loss.item()\nstats = {"loss": 0.0}', "also set on line"),
        (COUNTS, 'stats["loss"] += loss.item()\nz = locals()', "may read it"),
        (COUNTS + "\nalias = stats", 'stats["loss"] += loss.item()', "used before the loop is over"),
        (COUNTS + "\nmodel.stats = stats", 'stats["loss"] += loss.item()', "used before the loop is over"),
        ("stats = alias = {'loss': 0.0}", 'stats["loss"] += loss.item()', "second name"),
        ("stats = {'loss': 0.0}\ndef seen(): return stats['loss']", 'stats["loss"] += loss.item()', "another function"),
        ("stats = {'loss': 0.0, **model.stats}", 'stats["loss"] += loss.item()', "not only a dict"),
        ("stats = model.stats", 'stats["loss"] += loss.item()', "not only a dict"),
        ("stats = {'loss': model.best}", 'stats["loss"] += loss.item()', "starts from zero"),
        ("stats = {}", 'stats["loss"] = 0.0\nstats["loss"] += loss.item()', "starts from zero"),
        ("stats = {'loss': 0.0}", 'stats["loss"] -= loss.item()', "used at once"),
    ],
)
def test_entries_that_are_not_deferred(project: Project, start: str, inside: str, why: str) -> None:
    text = HEAD + _of_entries(start, inside, "return stats")
    assert _written(project, train=text)["train"] == text
    found = " ".join(project.run("check", "--select", "SPD301", "train.py").output.split())
    assert why in found, found


TALLY = """
    class Accumulator:
        '''Sums of several quantities.'''

        def __init__(self, n):
            self.data = [0.0] * n

        def add(self, *args):
            self.data = [a + float(b) for a, b in zip(self.data, args)]

        def reset(self):
            self.data = [0.0] * len(self.data)

        def __getitem__(self, idx):
            return self.data[idx]
"""
SHARE = """
    def share(out, y):
        predicted = torch.sigmoid(out).argmax(1)
        right = (predicted == y).float().mean()
        return right.item()
"""
TALLIED = f"""
    def train(model, loader, optimizer):
        model.to(device).train()
        metric = Accumulator(3)
        for step, (x, y) in enumerate(loader):{STEP}
            with torch.no_grad():
                right = share(out, y)
                metric.add(loss.sum(), right * y.shape[0], y.shape[0])
        n = max(metric[2], 1)
        return metric[0] / n, metric[1] / n, metric[2]
"""


def _program(*parts: str) -> str:
    return "\n".join(textwrap.dedent(part) for part in parts)


def test_an_object_that_adds_up(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    fixed = _check_kept(project, monkeypatch, train=_program(TALLY, SHARE, TALLIED))["train"]
    assert "[a + (b.detach() if torch.is_tensor(b) else float(b)) for a, b in zip(self.data, args)]" in fixed
    assert "return float(self.data[idx])" in fixed
    assert "return right.detach()\n" in fixed


def test_an_object_of_another_file(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {"train": _program("from utils import Accumulator, share", TALLIED), "utils": _program(TALLY, SHARE)}
    fixed = _check_kept(project, monkeypatch, **files)
    assert "b.detach()" in fixed["utils"]
    assert "return right.detach()\n" in fixed["utils"]
    assert ".item()" not in fixed["train"] + fixed["utils"]


def test_numbers_that_were_read_for_an_object(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    fraction = SHARE.replace("right.item()", "float((predicted == y).sum())")
    added = TALLIED.replace("metric.add(loss.sum()", "metric.add(float(loss.sum())").replace("right * y.shape[0]", "right")
    fixed = _check_kept(project, monkeypatch, train=_program(TALLY, fraction, added))["train"]
    assert "metric.add(loss.sum(), right, y.shape[0])" in fixed
    assert "return (predicted == y).sum().float()" in fixed


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("n = max", "print(metric.data)\n        n = max", "is not followed"),
        ("n = max", "other = copy.deepcopy(metric)\n        n = max", "is not followed"),
        ("n = max", "print(*metric)\n        n = max", "goes is not seen"),
        ("n = max", "made = Accumulator\n        n = max", "`Accumulator` is not called"),
        ("n = max", "seen = metric[:2]\n        n = max", "is not followed"),
        ("y.shape[0])\n", "y.shape[0])\n                print(metric[0])\n", "is read in every step"),
        (
            "return self.data[idx]",
            "return self.data[idx]\n        def all(self):\n            return self.data",
            "not followed",
        ),
        ("class Accumulator:", "class Accumulator(list):", "more than a class of its own"),
        ("[0.0] * n", "[0] * n", "is not followed"),
        ("[0.0] * len(self.data)", "[1.0] * len(self.data)", "is not followed"),
        ("def train(", "def shown(metric=Accumulator(2)):\n        pass\n    def train(", "is not followed"),
        ("def train(", "class More(Accumulator):\n        pass\n    def train(", "is not called"),
        ("def train(", "shared = Accumulator(3)\n    def train(", "is not seen"),
    ],
)
def test_objects_that_are_not_followed(project: Project, old: str, new: str, why: str) -> None:
    parts = [each.replace(old, new) for each in (TALLY, SHARE, TALLIED)]
    assert parts != [TALLY, SHARE, TALLIED]
    text = HEAD + _program(*parts)
    assert _written(project, train=text)["train"] == text
    found = " ".join(project.run("check", "--select", "SPD301", "train.py").output.split())
    assert why in found, found


CALLER = f"""
    def train(model, loader, optimizer):
        model.to(device).train()
        total, values = 0.0, []
        for step, (x, y) in enumerate(loader):{STEP}
            right = share(out, y)
            total += right * len(y)
            values.append(right)
            if step % 50 == 0:
                print(f"{{right:.3f}}")
        return total, values
"""


def test_a_helper_whose_callers_add_up(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    seldom = "def once(out, y):\n    return round(share(out, y), 3)\n"
    fixed = _check_kept(project, monkeypatch, train=_program(SHARE, CALLER, seldom))["train"]
    assert "return right.detach()\n" in fixed
    assert "values = torch.stack(values).flatten().tolist() if values else []" in fixed
    assert "return float(total), values" in fixed
    assert "round(float(share(out, y)), 3)" in fixed
    assert "{float(right):.3f}" in fixed


def test_a_helper_that_counts_gives_whole_numbers(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = SHARE.replace(".float().mean()", ".sum()")
    fixed = _check_kept(project, monkeypatch, train=_program(counts, CALLER.replace("0.0, []", "0, []")))["train"]
    assert "return int(total), values" in fixed


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("return total, values", "return total, values, share", "`share` is not called"),
        ("return right.item()", "if y is None:\n            return 0.0\n        return right.item()", "something else"),
        ("def share(", "@functools.lru_cache\n    def share(", "decorators of `share`"),
        ("right = (predicted == y).float().mean()", "right = out.view(-1)[0]", "may change `right` in place"),
        ("def share(", "def share(out, y):\n        return 0.5\n    def share(", "defined more than once"),
        ("return right.item()", "right += 1\n        return right.item()", ""),
        ("values.append(right)", "if right > 0.5:\n                print(step)", "used at once"),
        ("values.append(right)", "optimizer.log(right)", "takes it as a number"),
        ("def train(", "rate = getattr(torch, 'share')\n    def train(", "asked for as a text"),
        ("total += right * len(y)", "total += math.log(right)", "takes it as a number"),
    ],
)
def test_helpers_that_still_read(project: Project, old: str, new: str, why: str) -> None:
    parts = [each.replace(old, new) for each in (SHARE, CALLER)]
    assert parts != [SHARE, CALLER]
    text = HEAD + _program(*parts)
    assert ("return right.item()" in _written(project, train=text)["train"]) is bool(why)
    found = " ".join(project.run("check", "--select", "SPD301", "train.py").output.split())
    assert why in found, found


def test_a_helper_that_a_file_uses_which_was_not_asked_for(project: Project) -> None:
    project.write("speedlint.toml", "")
    project.write("utils.py", HEAD + _program(SHARE))
    project.write("train.py", HEAD + _program("from utils import share", CALLER))
    project.write("test_it.py", HEAD + "from utils import share\nassert math.isclose(share(model(x), y), 0.5)\n")
    project.write("evaluate.py", HEAD + "from utils import share as same\nprint(round(same(model(x), y)))\n")
    found = " ".join(project.run("check", "--select", "SPD301", "utils.py", "train.py").output.split())
    assert "has another name" in found, found


HEADS = """
    class Wide(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.randn(3, 4))

        def forward(self, features, labels=None):
            logits = F.normalize(features) @ self.weight.t()
            if labels is None:
                return logits * 2
            return logits - F.one_hot(labels.long(), num_classes=3)


    class Narrow(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.randn(3, 4))
            self.act = nn.ReLU(inplace=True)

        def forward(self, features, labels=None):
            unit = F.normalize(features)
            return unit @ self.weight.t()


    class Net(nn.Module):
        def __init__(self, wide):
            super().__init__()
            self.stem = nn.Sequential(nn.Linear(4, 4), nn.ReLU(inplace=True))
            if wide:
                self.head = Wide()
            else:
                self.head = Narrow()

        def forward(self, x, labels=None):
            features = self.stem(x) * 2
            return self.head(features, labels=labels), features
"""
COLLECTING = """
    def train(model, loader, optimizer, collect=True):
        torch.manual_seed(1)
        net = Net(len(loader) > 2).to(device)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        shares, targets, embeddings = [], [], []
        for x, y in loader:
            x = x.to(device)
            labels = y.to(device).long()
            labels = labels[labels >= 0]
            out, features = net(x, labels=labels)
            with torch.no_grad():
                plain = net.head(features, labels=None)
                shares_of = torch.softmax(plain, dim=1)[:, 1]
            loss = F.cross_entropy(out, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if collect:
                shares.append(shares_of.detach().cpu())
                targets.append(labels.detach().cpu())
                embeddings.append(features.detach().cpu())
        mean = 0.0
        if collect and shares:
            mean = float(torch.cat(shares).numpy().mean())
        found = torch.cat(targets).squeeze().numpy() if targets else None
        return mean, found, torch.cat(embeddings).numpy() if embeddings else None
"""


def test_copies_that_are_joined_where_there_are_any(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    fixed = _check_kept(project, monkeypatch, train=_program(HEADS, COLLECTING))["train"]
    for kept in (
        "shares.append(shares_of.detach().clone())",
        "targets.append(labels.detach())",
        "embeddings.append(features.detach())",
    ):
        assert kept in fixed
    assert "torch.cat(targets).cpu().squeeze().numpy() if targets else None" in fixed


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("unit = F.normalize(features)", "unit = self.act(features)"),
        ("unit = F.normalize(features)", "unit = features.view(-1, 4)\n            unit[0] = 0"),
        ("unit = F.normalize(features)", "unit = features.mul_(2)"),
        ("unit = F.normalize(features)", "unit = F.relu(features, inplace=True)"),
        ("unit = F.normalize(features)", "self.kept = unit = features"),
        ("unit = F.normalize(features)", "unit = helped(features)"),
        ("self.head = Narrow()", "self.head = nn.Sequential(Narrow())"),
    ],
)
def test_copies_of_what_a_network_may_change(project: Project, old: str, new: str) -> None:
    parts = [each.replace(old, new) for each in (HEADS, COLLECTING)]
    assert parts != [HEADS, COLLECTING]
    fixed = _written(project, train=HEAD + _program(*parts))["train"]
    assert "embeddings.append(features.detach().cpu())" in fixed
    assert "shares.append(shares_of.detach().clone())" in fixed


@pytest.mark.parametrize(
    ("other", "is_kept"),
    [
        ("(labels.long() + 1)", True),
        ("labels.argmax()", True),
        ("labels.long()", False),
        ("labels.view(-1)", False),
        ("labels.detach().cpu().numpy()", False),
    ],
)
def test_copies_of_what_a_cast_or_a_view_may_change(project: Project, other: str, is_kept: bool) -> None:
    loss = "loss = F.cross_entropy(out, labels)\n"
    changed = f"{loss}            others = {other}\n            others[...] = 0\n"
    text = HEAD + _program(HEADS, COLLECTING.replace(loss, changed))
    assert ("targets.append(labels.detach())" in _written(project, train=text)["train"]) is is_kept


def test_a_helper_of_a_program_that_is_not_seen_whole(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    text = HEAD + _program(SHARE, CALLER)
    monkeypatch.setattr("speedlint.ask.program.Program.is_whole", lambda *_: False)
    assert _written(project, train=text)["train"] == text


def test_an_object_whose_adding_method_is_called_update(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = [each.replace("def add(", "def update(").replace("metric.add(", "metric.update(") for each in (TALLY, TALLIED)]
    inside = (
        parts[1]
        .replace("right = share(out, y)", "right = (out.argmax(1) == y).sum().item()")
        .replace("right * y.shape[0]", "right")
    )
    fixed = _check_kept(project, monkeypatch, train=_program(parts[0], inside))["train"]
    assert ".item()" not in fixed


def test_an_object_that_is_handed_to_a_function_and_given_back(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    handed = """
        def noted(metric, loss, n):
            metric.add(loss, n, 1)


        def shown(metric):
            return f"{metric[0] / max(metric[2], 1):.3f}"


        def summed(loader, model, optimizer):
            metric = Accumulator(3)
            for step, (x, y) in enumerate(loader):STEP
                noted(metric, loss, len(y))
            return metric


        def train(model, loader, optimizer):
            model.to(device).train()
            metric = summed(loader, model, optimizer)
            return shown(metric), metric[1]
    """
    handed = handed.replace("STEP", textwrap.indent(STEP, "    ").replace("\n    \n", "\n"))
    fixed = _check_kept(project, monkeypatch, train=_program(TALLY, handed))["train"]
    assert "b.detach()" in fixed


def test_a_helper_that_may_be_another_one(project: Project) -> None:
    either = "try:\n    from utils import share\nexcept ImportError:\n    from others import share"
    files = {"train": HEAD + _program(either, CALLER), "utils": HEAD + _program(SHARE)}
    project.write("others.py", "def share(out, y):\n    return 0.5\n")
    assert _written(project, **files) == files


SUMMED = """
import math
{head}

def train(model, loader, optimizer):
    total = 0.0
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    return {result}
"""


@pytest.mark.parametrize(
    ("result", "is_written"),
    [
        ("total / len(loader)", True),
        ("f'{total:.3f}', 'loss %.3f' % total", True),
        ("round(total, 4)", True),
        ("int(total)", False),
        ("'#' * (1 + int(100 * total / len(loader)))", False),
        ("math.floor(total)", False),
        ("total // 1", False),
        ("total % 5", False),
        ("'epoch %d: %.3f' % (3, total)", True),
        ("'%d %%' % (100 * total)", False),
        ("'%s: %d' % (model, total)", False),
        ("min(int(total), 3)", False),
        ("int(max(-total, 0.0))", False),
        ("round(total)", False),
        ("float(total).is_integer()", False),
    ],
)
def test_the_whole_part_of_a_sum_of_fractions(project: Project, result: str, is_written: bool) -> None:
    """Rounded otherwise a sum of 3 may be 2.9999999, whose whole part is 2."""
    text = SUMMED.format(head=HEAD, result=result)
    assert (".item()" not in _written(project, train=text)["train"]) == is_written


FLOWS = """
{head}

class Meter:
    def __init__(self):
        self.sum, self.count, self.avg = 0.0, 0, 0.0

    def update(self, value, n=1):
        self.sum += value * n
        self.count += n
        self.avg = self.sum / self.count


def evaluate(model, loader):
    total, meter, stats = 0.0, Meter(), {{"loss": 0.0}}
    for x, y in loader:
        loss = F.cross_entropy(model(x.to(device)), y.to(device)).detach()
        {adds}
    {then}


def train(model, loader, optimizer):
    for epoch in range(3):
        shown = evaluate(model, loader)
        print({shown})
"""


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize(
    ("adds", "then", "shown"),
    [
        ("total += loss.item()", "mean = total / len(loader)\n    print({}(mean))", "1"),
        ("total += loss.item()", "return total / len(loader)", "{}(100 * shown)"),
        ("total += loss.item()", "return total / len(loader), 1", "{}(shown[0])"),
        ("total += loss.item()", "means = {{'loss': total / len(loader)}}\n    return means", "{}(shown['loss'] * 10)"),
        ("total += loss.item()", "return [total, 1]", "{}(shown[0])"),
        ("meter.update(loss.item(), len(y))", "return {}(100 * meter.avg)", "1"),
        ("meter.update((model(x.to(device)).argmax(1) == y.to(device)).sum().item(), 1)", "return {}(100 * meter.avg)", "1"),
        ('stats["loss"] += loss.item()', 'return {}(max(100 * stats["loss"], 0))', "1"),
    ],
)
def test_where_the_whole_part_is_taken_further_on(project: Project, adds: str, then: str, shown: str, whole: bool) -> None:
    taker = "int" if whole else "float"
    text = FLOWS.format(head=HEAD, adds=adds, then=then.format(taker), shown=shown.format(taker))
    assert (".item()" not in _written(project, train=text)["train"]) == (not whole)


METER = """
    class Meter:
        def __init__(self, name):
            self.name = name
            self.last, self.total, self.count, self.mean = 0, 0, 0, 0

        def update(self, value, n=1):
            self.last = value
            self.total += value * n
            self.count += n
            self.mean = self.total / self.count
"""
METERED = """
    def train(model, loader, optimizer):
        meter = Meter("loss")
        for x, y in loader:
            loss = F.cross_entropy(model(x.to(device)), y.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            meter.update(loss.item(), len(y))
        return meter.name, f"{meter.count:d} {meter.mean:.4f}"
"""


def test_of_a_meter_only_what_is_computed_of_the_value_is_converted(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    fixed = _check_kept(project, monkeypatch, train=_program(METER, METERED))["train"]
    assert "meter.update(loss.detach(), len(y))" in fixed
    assert 'return meter.name, f"{meter.count:d} {float(meter.mean):.4f}"' in fixed


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('meter = Meter("loss")', 'held = {}\n        meter = held["loss"] = Meter("loss")'),
        ('meter = Meter("loss")', 'both = [Meter("loss"), Meter("hits")]\n        meter, other = both'),
        ("self.name = name", "self.name = name\n            made.append(self)"),
        ("self.last = value", "self.last = self.total"),
        ("return meter.name", "print(meter.__dict__)\n        return meter.name"),
        (
            "meter.update(loss.item(), len(y))",
            "meter.update((y > 0).to(device).sum().item())\n            meter.update(loss.item())",
        ),
    ],
)
def test_a_meter_that_is_not_seen_whole_keeps_its_numbers(project: Project, old: str, new: str) -> None:
    parts = [each.replace(old, new) for each in (METER, METERED)]
    assert parts != [METER, METERED]
    assert "meter.update(loss.item()" in _written(project, train=HEAD + _program("\n    made = []\n", *parts))["train"]


LISTED = """
    def train(model, loader, optimizer):
        curve = []
        for x, y in loader:
            loss = F.cross_entropy(model(x.to(device)), y.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            curve.append(loss.item())
        return curve
"""
HALVED = """
    def halved(value):
        with torch.no_grad():
            value.div_(2)
        return value
"""


def test_what_nothing_else_holds_is_kept_as_it_is(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "curve.append(loss.detach())" in _check_kept(project, monkeypatch, train=_program(LISTED))["train"]


@pytest.mark.parametrize(
    ("old", "new", "kept"),
    [
        (
            "curve.append(loss.item())",
            "curve.append(loss.item())\n            for part in (loss, x):\n                halved(part)",
            "loss.detach().clone()",
        ),
        (
            "curve.append(loss.item())",
            "curve.append(loss.item())\n            parts = [loss]\n            halved(parts[0])",
            "loss.detach().clone()",
        ),
        (
            "curve.append(loss.item())",
            "each = F.cross_entropy(model(x.to(device)), y.to(device), reduction='none').detach()\n"
            "            curve.append(each[0].item())",
            "each[0].detach().clone()",
        ),
    ],
)
def test_what_something_else_may_hold_is_copied(
    project: Project, monkeypatch: pytest.MonkeyPatch, old: str, new: str, kept: str
) -> None:
    assert kept in _check_kept(project, monkeypatch, train=_program(HALVED, LISTED.replace(old, new)))["train"]


SCALED = """
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer, self.scale = nn.Linear(8, 4), nn.Parameter(torch.ones(()))

        def forward(self, x):
            out = self.layer(x)
            scale = SCALE
            return out * scale, scale


    def train_scaled(loader):
        model = Scaled().to(device)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        curve = []
        for x, y in loader:
            out, scale = model(x.to(device))
            loss = F.cross_entropy(out, y.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            curve.append(scale.item())
        return curve
"""


@pytest.mark.parametrize(
    ("scale", "kept"),
    [
        ("self.scale", "scale.detach().clone()"),
        ("self.scale.view(())", "scale.detach().clone()"),
        ("self.scale.exp()", "scale.detach())"),
        ("out.mean() + self.scale", "scale.detach())"),
    ],
)
def test_a_parameter_that_a_network_gives_is_copied(project: Project, scale: str, kept: str) -> None:
    """The optimizer's next step changes it."""
    assert kept in _written(project, train=HEAD + _program(SCALED.replace("SCALE", scale)))["train"]


SEVERAL = """
def train(model, loader, optimizer):
    total, hits, seen, log = 0.0, 0, 0, []
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        optimizer.zero_grad()
        out = model(x)
        loss = F.cross_entropy(out, y)
        loss.backward()
        optimizer.step()
        total += loss.item()
        hits += (out.argmax(1) == y).sum().item()
        seen += len(y)
    log.append(total)
    log.append(f"{total:.3f} {total=:.3f} {hits} of {seen}")
    return log, total / max(seen, 1), hits / max(seen, 1)
"""


def test_a_sum_that_several_lines_read_is_converted_once(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    fixed = _check_kept(project, monkeypatch, train=SEVERAL)["train"]
    assert "    total = float(total)\n    hits = int(hits)\n    log.append(total)\n" in fixed
    assert fixed.count("float(") == 1 and fixed.count("int(") == 1


def test_sums_whose_loop_may_be_left_by_an_exception_are_converted_where_they_are_read(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    start, body = (
        "    for x, y in loader:\n",
        SEVERAL[SEVERAL.index("        x, y =") : SEVERAL.index("    log.append(total)")],
    )
    tried = SEVERAL.replace(
        start + body,
        f"    try:\n    {start}{textwrap.indent(body, '    ')}    except KeyboardInterrupt:\n        pass\n",
    ).replace("{total=:.3f} ", "")
    fixed = _check_kept(project, monkeypatch, train=tried)["train"]
    assert (
        "log.append(float(total))" in fixed and "return log, float(total) / max(seen, 1), int(hits) / max(seen, 1)" in fixed
    )


def test_a_sum_that_begins_again_in_its_loop_is_converted_where_it_is_read(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    again = SEVERAL.replace(
        "        seen += len(y)\n", "        if seen == 5:\n            total = 0.0\n        seen += len(y)\n"
    )
    fixed = _check_kept(project, monkeypatch, train=again.replace("{total=:.3f} ", ""))["train"]
    assert "total = float(total)" not in fixed and "log.append(float(total))" in fixed


def test_a_sum_of_what_was_made_float_is_not_made_so_again(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    half = SEVERAL.replace("(out.argmax(1) == y).sum()", "(out.argmax(1) == y).float().sum()").replace(
        "out = model(x)", "with torch.autocast(device.type, torch.bfloat16):\n            out = model(x)"
    )
    fixed = _check_kept(
        project, monkeypatch, train=half.replace("hits, seen, log = 0.0, 0, ", "hits, seen, log = 0.0, 0.0, ")
    )
    assert "hits += (out.argmax(1) == y).float().sum().detach()\n" in fixed["train"]
    assert "total += loss.detach().float()\n" in fixed["train"]


@pytest.mark.parametrize(
    ("made", "kept"),
    [
        ("model(x)[:, -1]", "part.clone()"),
        ("model(x).narrow(1, 0, 2)", "part.clone()"),
        ("model(x)[y > 0]", "part"),
        ("model(x).argmax(1)", "part"),
        ("model(x).view(-1, 3)", "part"),
    ],
)
def test_a_part_that_is_gathered_does_not_keep_all_that_it_is_of(
    project: Project, monkeypatch: pytest.MonkeyPatch, made: str, kept: str
) -> None:
    text = f"""
    @torch.no_grad()
    def train(model, loader, optimizer):
        found = []
        model.to(device).eval()
        for x, y in loader:
            x, y = x.to(device), y.to(device)
            part = {made}
            found.append(part.cpu())
        return torch.cat(found) if found else None
    """
    fixed = _check_kept(project, monkeypatch, train=text)["train"]
    assert f"found.append({kept})\n" in fixed


@pytest.mark.parametrize(
    ("below", "before"),
    [
        ("losses = [round(v, 2) for v in losses] if losses else []", "losses"),
        ("names = [(name, total) for name in 'ab'] if seen else []", "total"),
        ("seen = [total] if seen else []", "total"),
    ],
)
def test_a_sum_is_converted_above_what_reads_it(
    project: Project, monkeypatch: pytest.MonkeyPatch, below: str, before: str
) -> None:
    text = _of_entries(
        "total, seen, losses, names = 0.0, 0, [], []",
        "total += loss.item()\nlosses.append(loss.item())\nseen += 1",
        f'{below}\nreturn total, f"{{total:.3f}}", losses, names, seen',
    )
    fixed = _check_kept(project, monkeypatch, train=text)["train"]
    assert fixed.index(f"    {before} = ") < fixed.index(below)


SWALLOWED = """
@contextlib.contextmanager
def interruptible():
    try:
        yield
    except ArithmeticError:
        pass


class Quiet:
    def __enter__(self):
        return self

    def __exit__(self, *error):
        return True


def train(model, loader, optimizer):
    total, losses = 0.0, []
    with MANAGER:
        for step, (x, y) in enumerate(loader):
            loss = F.cross_entropy(model(x.to(device)), y.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
            losses.append(loss.item())
            if step == 1:
                raise ArithmeticError
    return total, f"{total:.3f}", losses
"""


@pytest.mark.parametrize(
    "manager", ["interruptible()", "Quiet()", "contextlib.suppress(ArithmeticError)", "open('log', 'w')"]
)
def test_what_a_context_manager_may_skip(project: Project, monkeypatch: pytest.MonkeyPatch, manager: str) -> None:
    """An error that is swallowed skips the lines below the loop: sums are converted where they are read."""
    text = "import contextlib\n" + HEAD + SWALLOWED.replace("MANAGER", manager)
    fixed = _written(project, train=text)["train"]
    is_library = manager.startswith("open")
    assert ("total = float(total)" in fixed) is is_library
    assert ("losses.append(loss.item())" in fixed) is not is_library
    if not is_library:
        before, _ = _ran(project.root, {"train": text}, 3, monkeypatch)
        after, _ = _ran(project.root, {"train": fixed}, 3, monkeypatch)
        _same(before, after)


@pytest.mark.parametrize(
    ("made", "kept"),
    [
        ("right.float().sum()", "part.detach()"),
        ("right.float().sum().to(torch.bfloat16)", "part.detach().float()"),
        ("right.float().view(torch.int32).float().to(torch.bfloat16).mean()", "part.detach().float()"),
    ],
)
def test_what_was_made_float_may_be_half_again(project: Project, made: str, kept: str) -> None:
    text = _of_entries("total = 0.0", f"right = out.argmax(1) == y\npart = {made}\ntotal += part.item()", "return total")
    half = text.replace("out = model(x)", "with torch.autocast(device.type, torch.bfloat16):\n            out = model(x)")
    assert half != text
    assert f"total += {kept}\n" in _written(project, train=HEAD + half)["train"]


@pytest.mark.parametrize(
    ("criterion", "flat"),
    [
        ("nn.MSELoss()", ""),
        ("nn.MSELoss(reduce=False)", ".flatten()"),
        ("nn.MSELoss(None, False)", ".flatten()"),
        ("nn.HuberLoss('none')", ".flatten()"),
    ],
)
def test_losses_that_may_have_a_dimension(
    project: Project, monkeypatch: pytest.MonkeyPatch, criterion: str, flat: str
) -> None:
    text = _of_entries(f"criterion, losses = {criterion}, []", "losses.append(loss.item())", "return losses")
    text = text.replace("F.cross_entropy(out, y)", "criterion(out[0, :1], y[:1].float())")
    fixed = _check_kept(project, monkeypatch, train=text)["train"]
    assert f"losses = torch.stack(losses){flat}.tolist() if losses else []" in fixed


def test_a_part_that_a_network_gives_does_not_keep_all_that_it_is_of(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = """
class First(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        states = torch.tanh(self.inner(x))
        return states[:, 0]


@torch.no_grad()
def train(model, loader, optimizer):
    found, net = [], First(model).to(device).eval()
    for x, y in loader:
        found.append(net(x.to(device)).cpu())
    return torch.cat(found) if found else None
"""
    fixed = _check_kept(project, monkeypatch, train=text)["train"]
    assert "found.append(net(x.to(device)).clone())\n" in fixed
