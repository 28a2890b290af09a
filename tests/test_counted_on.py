"""Sums that a program counts on being Python's numbers: what raises, what other files read, and how far they reach."""

from __future__ import annotations

import textwrap

import pytest

from tests.conftest import Project

TRAIN = """
import contextlib, importlib, json, math, operator, sys
import torch
import torch.nn.functional as F
{imports}

device = torch.device("cuda")
SCALE, SMALL, LEVEL = 6.02e23, 1e-30, 2.5e6

{helpers}


def train(model, loader, optimizer):
    for epoch in range(9):
        total, square, product, count, values, missed = 0.0, 0.0, 0.0, 0, [], 0
        for step, (x, y) in enumerate(loader):
            x, y = x.to(device), y.to(device)
            out = model(x)
            loss = F.cross_entropy(out, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            hits = (out.argmax(1) == y).sum()
            each = F.cross_entropy(out, y, reduction="mean" if step % 2 else "none")
{adds}
{then}
        print(epoch, total / len(loader), values, count)
"""


def _text(adds: str, then: str = "", helpers: str = "", imports: str = "") -> str:
    return TRAIN.format(
        imports=imports,
        helpers=textwrap.dedent(helpers),
        adds=textwrap.indent(textwrap.dedent(adds), " " * 12),
        then=textwrap.indent(textwrap.dedent(then), " " * 8),
    )


def _advice(project: Project, **files: str) -> str | None:
    """What is said of the reads of ``train.py``; None where a fix is written."""
    project.write("speedlint.toml", "")
    paths = [project.write(f"{name}.py", text) for name, text in files.items()]
    before = {path: (project.root / path).read_text() for path in paths}
    found = project.run("check", "--format", "full", "--select", "SPD301", *paths).output
    project.run("fix", "--apply", "--risk", "numeric", "--select", "SPD301", *paths)
    return " ".join(found.split()) if all((project.root / path).read_text() == before[path] for path in paths) else None


def _check(project: Project, why: str | None, **files: str) -> None:
    said = _advice(project, **files)
    assert (said is None) if why is None else (said is not None and why in said), said


ZERO = "counts on a `ZeroDivisionError`"
CAUGHT = "def shown(a, b):\n    try: return a / b\n    except ZeroDivisionError: return 0"


@pytest.mark.parametrize(
    ("adds", "helpers", "why"),
    [
        ("try:\n    total += loss.item() / missed\nexcept ZeroDivisionError:\n    missed += 1", "", ZERO),
        ("with contextlib.suppress(ArithmeticError):\n    total += loss.item() / missed", "", ZERO),
        ("total += loss.item() / missed", CAUGHT, ZERO),
        (
            "try:\n    total += share(hits, step)\nexcept ZeroDivisionError:\n    missed += 1",
            "def share(a, b):\n    return a.item() / b",
            ZERO,
        ),
        ("total += 1 / loss.item()", CAUGHT, ZERO),
        ("try:\n    total += loss.item() / missed\nexcept Exception:\n    missed += 1", "", "goes on after an error"),
        ("try:\n    total += each.item()\nexcept RuntimeError:\n    missed += 1", "", "goes on after an error"),
        ("with contextlib.suppress(ValueError):\n    total += each.item()", "", "goes on after an error"),
        (
            "try:\n    total += share(each)\nexcept (ValueError, RuntimeError):\n    missed += 1",
            "def share(a):\n    return (a + 1).item()",
            "goes on after an error",
        ),
        ("total += loss.item() / 2", CAUGHT, None),
        ("total += loss.item()", CAUGHT, None),
        ("total += loss.item() / missed", "", None),
        ("try:\n    total += loss.item()\nexcept RuntimeError:\n    missed += 1", "", None),
        (
            "try:\n    left = loss + model.penalty()\n    left.backward()\n    total += left.item()\n"
            "except RuntimeError as error:\n    if 'memory' not in str(error):\n        raise",
            "",
            None,
        ),
        ("try:\n    total += each.item()\nexcept KeyboardInterrupt:\n    break", "", None),
        ("try:\n    total += each.item()\nexcept RuntimeError:\n    print(step)\n    raise", "", None),
    ],
)  # fmt: skip
def test_what_counts_on_an_exception(project: Project, adds: str, helpers: str, why: str | None) -> None:
    """A tensor divided by zero is infinite, and what has several elements is no error until it is read."""
    _check(project, why, train=_text(adds, helpers=helpers))


def test_a_try_around_the_whole_training(project: Project) -> None:
    text = _text("total += each.item()").replace("    for epoch", "    try:\n     for epoch")
    _check(project, None, train=text + "    except KeyboardInterrupt:\n        print('stopped')\n")
    _check(project, None, train=text + "    except Exception as error:\n        print(error)\n")


SHARE = "import torch\n\ndef share(out, y):\n    return (out.argmax(1) == y).float().mean().item()\n"


@pytest.mark.parametrize(
    ("then", "helpers", "why"),
    [
        ("print(getattr(parts, sys.argv[1])(out, y))", "", "asked for by a name"),
        ("print(getattr(chosen(), 'sh' + 'are')(out, y))", "def chosen():\n    return parts", "asked for by a name"),
        ("print(pick(parts, sys.argv[1])(out, y))", "def pick(a, b):\n    return getattr(a, b)", "asked for by a name"),
        ("print(parts.__dict__[sys.argv[1]](out, y))", "", "asked for by a name"),
        ("print(vars(parts)[sys.argv[1]](out, y))", "", "asked for by a name"),
        ("print(globals()[sys.argv[1]](out, y))", "", "asked for by a name"),
        ("print(eval(sys.argv[1])(out, y))", "", "asked for by a name"),
        ("print(getattr(importlib.import_module(sys.argv[1]), sys.argv[2])(out, y))", "", "asked for by a name"),
        ("print(importlib.import_module(sys.argv[1]).__dict__[sys.argv[2]](out, y))", "", "asked for by a name"),
        ("print(importlib.import_module('parts').share(out, y))", "", "asked for by a name"),
        ("print(sys.modules['parts'].share(out, y))", "", "asked for by a name"),
        ("print(find(WATCHED)(out, y))", "from registry import find\nWATCHED = 'parts:share'", "asked for by a name"),
        ("print(operator.attrgetter(sys.argv[1])(parts)(out, y))", "", "asked for by a name"),
        ("print(call(out, y))", "from registry import call\nMODULES = {'parts': parts}", "asked for by a name"),
        ("for module in (parts, F):\n    print(getattr(module, sys.argv[1])(out, y))", "", "asked for by a name"),
        ("print(importlib.reload(parts), str(parts.other), model(parts=1))", "", None),
        ("print(getattr(F, sys.argv[1])(out, y))", "", None),
        ("print(getattr(model, sys.argv[1]))", "", None),
        ("print(getattr(importlib.import_module('torch.optim'), sys.argv[1]))", "", None),
        ("print(getattr(parts, 'other')(out, y))", "", None),
        ("print(known())", "def known():\n    return globals()['LEVEL'], 'share' in globals()", None),
        ("print(importlib.import_module('numpy').share)", "", None),
        ("print(importlib.import_module(f'models.{sys.argv[1]}').share)", "", None),
    ],
)
def test_helpers_that_are_asked_for_by_a_name(project: Project, then: str, helpers: str, why: str | None) -> None:
    text = _text("total += share(out, y)", then, helpers, "import parts\nfrom parts import share")
    _check(project, why, train=text, parts=SHARE)


READ = "`total` "


@pytest.mark.parametrize(
    ("other", "why"),
    [
        ("from train import total\nprint(round(total, 3))", READ),
        ("def report():\n    from train import total as seen\n    print(seen)", READ),
        ("import train\nprint(json.dumps(train.total))", READ),
        ("from train import *\nprint(total)", READ),
        ("import sys, train\nprint(getattr(train, sys.argv[1]))", READ),
        ("import sys\ndef report():\n    print(sys.modules['__main__'].total)", READ),
        ("import sys\ndef report():\n    main = sys.modules.get('__main__')\n    print(main.total)", READ),
        ("import __main__\ndef report():\n    print(__main__.total)", READ),
        ("def report():\n    from __main__ import total\n    print(total)", READ),
        ("import sys\ndef report():\n    print(vars(sys.modules['__main__']))", READ),
        ("import sys, torch\ndef report(total):\n    print(total, sys.modules['__main__'].__file__)", None),
        ("class Meter:\n    def __init__(self):\n        self.total = 0\n\ndef report(a):\n    print(a.total)", None),
        ("import train\nprint(getattr(train, 'total'))", READ),
        ("import train\nprint(getattr(train, 'loss'))", None),
        ("def report(self, name):\n    return getattr(self, name)", None),
    ],
)  # fmt: skip
def test_a_module_s_sum_that_another_file_reads(project: Project, other: str, why: str | None) -> None:
    head, _, loop = _text("total += loss.item()").partition("def train(model, loader, optimizer):\n")
    text = f"{head}import plugin\nfrom others import model, loader, optimizer\n{textwrap.dedent(loop)}"
    project.write("plugin.py", f"import json\n{other}\n")
    project.write(
        "others.py",
        "import torch\nmodel = torch.nn.Linear(4, 3).cuda()\noptimizer = torch.optim.SGD(model.parameters(), 0.1)\n"
        "loader = torch.utils.data.DataLoader(torch.load('x.pt'))\n",
    )
    _check(project, why, train=text)


@pytest.mark.parametrize(
    ("adds", "then", "why"),
    [
        ("total += loss.item() * SCALE", "", "single precision"),
        ("total += loss.item() * 1e10 * 1e9", "", "single precision"),
        ("total += loss.item() / SMALL", "", "single precision"),
        ("total += loss.item() * (len(y) * SMALL)", "", "single precision"),
        ("value = loss.item()\ntotal += value * SMALL", "", "single precision"),
        ("values.append(SCALE * loss.item())", "", "single precision"),
        ("total += loss.item() - LEVEL", "", "single precision"),
        ("total += loss.item()", "print(total / len(loader) - LEVEL)", "single precision"),
        ("total += loss.item()", "mean = total / len(loader)\nprint(LEVEL + mean)", "single precision"),
        ("total += loss.item() * 1e6 / 1e3", "print(100 - total)", None),
        ("total += (1 - loss.item()) * 100", "print(1 - total / len(loader))", None),
        ("total += loss.item()", "print(total * SCALE)", None),
        ("count += hits.item() - 100000", "", None),
    ],
)
def test_how_far_single_precision_reaches(project: Project, adds: str, then: str, why: str | None) -> None:
    _check(project, why, train=_text(adds, then))


BOTH = "total += loss.item()\nsquare += loss.pow(2).item()"


@pytest.mark.parametrize(
    ("adds", "then", "why"),
    [
        (BOTH, "print(math.sqrt(square / len(loader) - (total / len(loader)) ** 2))", "single precision"),
        (BOTH, "mean = total / len(loader)\nprint(square / len(loader) - mean * mean)", "single precision"),
        (BOTH, "mean = total / len(loader)\nhalf = mean ** 2\nprint(square / len(loader) - half)", "single precision"),
        (BOTH, "print(square / len(loader) - pow(total / len(loader), 2))", "single precision"),
        (BOTH, "print(max(square - total ** 2 / len(loader), 0.0))", "single precision"),
        (BOTH, "print(len(loader) * product - total * square)", "single precision"),
        (BOTH, "mean = total / len(loader)\nprint(square - total * mean)", "single precision"),
        (
            "if step % 100 == 0:\n    print(total - missed)\n    missed = total\ntotal += loss.item()",
            "",
            "single precision",
        ),
        ("if step % 100 == 0:\n    print(total - count)\n    missed = total\ntotal += loss.item()", "", None),
        (BOTH, "spread = square / len(loader)\nspread -= (total / len(loader)) ** 2\nprint(spread)", "single precision"),
        (BOTH, "print(math.sqrt(square / len(loader)), total / len(loader) - 1)", None),
        (BOTH, "print(1 - square / total, square / len(loader) - total)", None),
        (BOTH, "print(square / len(loader) + (total / len(loader)) ** 2)", None),
    ],
)
def test_squares_that_are_subtracted(project: Project, adds: str, then: str, why: str | None) -> None:
    _check(project, why, train=_text(adds, then))


def test_squares_in_a_dict_and_further_on(project: Project) -> None:
    helpers = "def spread(square, total, n):\n    return square / n - (total / n) ** 2"
    given = _text(BOTH, "n = len(loader)\nprint(spread(square, total, n))", helpers)
    _check(project, "single precision", train=given)
    sums = _text("stats['one'] += loss.item()\nstats['two'] += (loss * loss).item()", "print(SHOWN)")
    sums = sums.replace("total, square", "stats = {'one': 0.0, 'two': 0.0}\n        total, square", 1)
    shown = "stats['two'] / len(loader) - (stats['one'] / len(loader)) ** 2"
    _check(project, "single precision", train=sums.replace("SHOWN", shown))
    _check(project, None, train=sums.replace("SHOWN", "stats['two'] / len(loader)"))


@pytest.mark.parametrize(
    ("adds", "why"),
    [
        ("values.append((hits if step % 2 else loss).item())", "whole number"),
        ("shown = hits if step % 2 else loss\nvalues.append(shown.item())", "whole number"),
        ("values.append((loss if step % 2 else loss * 2).item())", None),
        ("values.append((hits if step % 2 else (y == 1).sum()).item())", None),
        ("total += (hits if step % 2 else loss).item()", None),
    ],
)
def test_numbers_of_two_kinds_in_a_list(project: Project, adds: str, why: str | None) -> None:
    _check(project, why, train=_text(adds))
