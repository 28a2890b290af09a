"""Every rule at several target releases: it works at each, and writes only what the release has."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from speedlint import config, stages
from speedlint.ask.program import Cache, Program
from speedlint.ask.script import Options
from speedlint.diagnostic import Diagnostic
from speedlint.disk import Disk
from speedlint.engine import Engine
from speedlint.facts import syntax
from speedlint.registry import Registry
from speedlint.rule import Risk, Rule
from tests.conftest import ROOT, Project

Release = tuple[int, int]

REGISTRY = Registry.load()
ENDS: tuple[Release | None, ...] = (None, (1, 13))
"""The unknown one, and one that lacks what came since, for the rules whose fixes write some of that; at the last, where
nothing is too new, `test_rules` checks all."""
ALL_RELEASES: tuple[Release | None, ...] = (*ENDS, (2, 0), (2, 3), (2, 4), (2, 9), (2, 13))
UNKNOWN: Release = (1, 13)
CURRENT = {"torch.amp.GradScaler"}
"""What is written at an unknown target, too: the older spelling is one that `check` reports."""
CAME: dict[str, Release] = {
    "torch.compile": (2, 0),
    "torch.amp.GradScaler": (2, 3),
    "torch.amp.custom_fwd": (2, 4),
    "torch.amp.custom_bwd": (2, 4),
    "torch.nn.functional.scaled_dot_product_attention": (2, 0),
    "torch.optim.Adam(fused)": (2, 0),
    "torch.optim.AdamW(fused)": (2, 0),
    "torch.optim.SGD(fused)": (2, 3),
    "torch.optim.Adagrad(fused)": (2, 4),
    ".compile": (2, 1),
}
"""The release in which a function, an argument, or a method of every module came: from comparing the releases' sources."""
WORDS = [
    re.compile(rf"\b{re.escape(word)}\b")
    for word in sorted(
        {part for name in CAME for part in (name.partition("(")[0].lstrip("."), re.split(r"\W+", name.rstrip(")"))[-1])}
    )
]
"""Each as it is written in full, and its last word: a text without them spells none of these."""


def _fixture(rule: Rule) -> Path:
    return ROOT / "fixtures" / "rules" / f"{rule.name.replace('-', '_')}.py"


def _writes_what_came(rule: Rule) -> bool:
    """Whether a fix in the rule's fixture writes a word, at the newest release, that an older one lacks."""
    before, after = (_fixture(rule).with_suffix(suffix).read_text() for suffix in (".py", ".fixed"))
    return any(len(word.findall(after)) > len(word.findall(before)) for word in WORDS)


CASES = [
    *(pytest.param(rule, ENDS, id=f"{rule.code}-{rule.name}-some") for rule in filter(_writes_what_came, REGISTRY.rules)),
    *(
        pytest.param(rule, ALL_RELEASES, id=f"{rule.code}-{rule.name}-all", marks=pytest.mark.slow)
        for rule in REGISTRY.rules
    ),
]


@pytest.mark.parametrize(("rule", "releases"), CASES)
def test_a_rule_writes_what_the_target_release_has(rule: Rule, releases: tuple[Release | None, ...], tmp_path: Path) -> None:
    path = tmp_path / _fixture(rule).name
    text = re.sub(r"\A# speedlint-test:.*", "#", _fixture(rule).read_text())
    path.write_text(text)
    settings = config.Settings(tmp_path, select=(rule.code,), risk=Risk.BEHAVIOR)
    before, cache = _spelled(path, text), Cache()
    known: dict[tuple[Diagnostic, ...], Counter[str]] = {}
    for release in sorted(releases, key=lambda each: each or (0, 0), reverse=True):
        options = Options(release)
        report = Engine(settings, REGISTRY, options=options, cache=cache).check(path)
        assert not report.problems
        fixable = tuple(each for each in report.diagnostics if stages.fixable(each, Risk.BEHAVIOR))
        if not fixable or (release or UNKNOWN) > max(CAME.values()):
            continue
        if fixable not in known:
            staged = stages.fix((path,), settings, REGISTRY, options)
            assert not staged.problems
            after = next((outcome.after.decode() for outcome in staged.outcomes), text)
            known[fixable] = _spelled(path, after) - before
        too_new = {name for name in known[fixable] if CAME[name] > (release or UNKNOWN)}
        too_new -= CURRENT if release is None else set()
        assert not too_new, f"written for {release}"


def _spelled(path: Path, text: str) -> Counter[str]:
    """How often the text names what came with a later release."""
    script = Program(Options(), Disk(lambda _path: text.encode())).script(path)
    found: Counter[str] = Counter()
    for call in script.source.of(syntax.Call):
        name = script.name(call.func) or ""
        if isinstance(call.func, syntax.Attribute) and not name:
            name = f".{call.func.attr.value}"
        keywords = (arg.keyword.value for arg in call.args if arg.keyword is not None)
        found.update(each for each in (name, *(f"{name}({word})" for word in keywords)) if each in CAME)
    return found


OLD = """
import torch
import torch.nn.functional as F


def train(model, loader, optimizer):
    for x, y in loader:
        output = model(x.cuda())
        loss = F.cross_entropy(output, y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        missed = F.mse_loss(output.sum(1), y.cuda().float())
        whole = model.loss(output, y)
        {read}


model = torch.nn.Linear(512, 512).cuda()
train(model, torch.utils.data.DataLoader(torch.load("rows.pt")), torch.optim.Adam(model.parameters()))
"""


@pytest.mark.parametrize(
    ("read", "is_old"),
    [
        ("missed.data[0]", True),
        ("F.mse_loss(output.sum(1), y.cuda().float()).data[0]", True),
        ("output.data[0]", False),
        ("F.mse_loss(output.sum(1), y.cuda().float(), reduction='none').data[0]", False),
        ("missed.item() if hasattr(missed, 'item') else missed.data[0]", False),
        ("torch.sum(*(output, 0)).data[0]", False),
        ("whole.data[0]; (whole * len(x)).backward()", True),
        ("whole.data[0]; (output * len(x)).sum().backward()", False),
    ],
)
def test_a_tensor_of_no_dimension_that_is_indexed_is_old(project: Project, read: str, is_old: bool) -> None:
    """It raises since torch 0.5: the fused update of 2.0 is nothing for such a script."""
    project.configure("select = ['SPD502']\n")
    found = project.findings(project.write("train.py", OLD.format(read=read)))
    assert bool(found) is not is_old


RANKED = """
import torch
import torch.nn.functional as F


def accuracy(output, target, topk=(1,)):
    _, pred = output.topk(max(topk), 1, True, True)
    {turned}
    correct = pred.eq(target.view(1, -1).expand_as(pred))
    return [correct[:k].{flat}(-1).float().sum(0) for k in topk]


def train(model, loader, optimizer):
    for x, y in loader:
        y = y.cuda()
        output = model(x.cuda())
        loss = F.cross_entropy(output, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        accuracy(output, y{asked})


model = torch.nn.Linear(512, 512).cuda()
train(model, torch.utils.data.DataLoader(torch.load("rows.pt")), torch.optim.Adam(model.parameters()))
"""


@pytest.mark.parametrize(
    ("turned", "flat", "asked", "is_old"),
    [
        ("pred = pred.t()", "view", ", topk=(1, 5)", True),
        ("pred = pred.t()", "view", ", (5,)", True),
        ("pred = pred.t()", "view", "", False),
        ("pred = pred.t()", "reshape", ", topk=(1, 5)", False),
        ("pred = pred.t().contiguous()", "view", ", topk=(1, 5)", False),
    ],
)
def test_rows_of_what_was_transposed_are_no_view(project: Project, turned: str, flat: str, asked: str, is_old: bool) -> None:
    """It raises since torch 1.7: the fused update of 2.0 is nothing for such a script."""
    project.configure("select = ['SPD502']\n")
    text = RANKED.replace("{turned}", turned).replace("{flat}", flat).replace("{asked}", asked)
    assert bool(project.findings(project.write("train.py", text))) is not is_old
