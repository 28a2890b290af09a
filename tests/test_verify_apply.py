"""``verify --apply``: what paid is written, and nothing else."""

from __future__ import annotations

import json
import textwrap
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from speedlint.config import Settings
from speedlint.output import verify_words
from speedlint.output.verify_live import Live
from speedlint.registry import Registry
from speedlint.rule import Risk
from speedlint.verify import attribution, parity, session
from speedlint.verify.applying import choose
from speedlint.verify.nvml import Meter
from speedlint.verify.parity import Parity, Tier
from speedlint.verify.plan import Command, Plan, Version, of_last_fixes, plan, without
from speedlint.verify.report import Effect, Kept, Report
from speedlint.verify.runner import Limits
from speedlint.verify.scratch import scratch
from speedlint.verify.session import _left_out
from speedlint.verify.timing import Timing
from tests.test_verify_budget import report_of, timing_of
from tests.test_verify_cli import verify

SCRIPT = """
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    torch.manual_seed(0)
    torch.autograd.set_detect_anomaly(True)
    loader = DataLoader(TensorDataset(torch.randn(640, 8)), batch_size=16)
    model = nn.Sequential(*(layer for _ in range(12) for layer in (nn.Linear(8, 8), nn.ReLU())))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(40):
        for (x,) in loader:
            loss = model(x).square().mean()
            optimizer.zero_grad(set_to_none=False)
            loss.backward()
            optimizer.step()
"""
FASTER = timing_of([2.0, 2.02, 1.98, 2.0])


@pytest.fixture
def whole(tmp_path: Path) -> Plan:
    """A plan with two fixes."""
    (tmp_path / "train.py").write_text(textwrap.dedent(SCRIPT))
    command = Command("python", "train.py", False, (), (), tmp_path)
    return plan(command, Settings(tmp_path, risk=Risk.NUMERIC), Registry.load())


def test_what_was_written_last_is_timed_against_what_was_there(whole: Plan) -> None:
    for each in whole.outcomes:
        each.path.write_bytes(each.after)
    now = plan(whole.original.command, whole.settings, Registry.load())
    assert not now.fixed.changed
    last = of_last_fixes(now, [replace(each, before=each.after, after=each.before) for each in whole.outcomes])
    assert last is not None
    assert last.original.changed == {each.path: each.before for each in whole.outcomes}
    assert not last.fixed.changed
    other = replace(whole.outcomes[0], path=now.entry.parent / "other.py")
    assert of_last_fixes(now, [other]) is None


def judged(plan: Plan, **more: object) -> Report:
    return replace(report_of(FASTER, stages=plan.stages, root=plan.original.root), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "least", "said"),
    [
        ({"timing": timing_of([1.0, 1.001, 0.999, 1.0])}, None, "not shown to be faster"),
        ({"timing": None}, None, "not shown to be faster"),
        ({"interrupted": True}, None, "not shown to be faster"),
        ({"parity": Parity(Tier.DIFFERENT, "")}, None, "not shown to be the same"),
        ({"parity": Parity(Tier.UNKNOWN, "")}, None, "not shown to be the same"),
        ({}, 3.0, "less than 3 times"),
    ],
)
def test_nothing_is_written_that_was_not_shown(
    whole: Plan, changes: dict[str, object], least: float | None, said: str
) -> None:
    choice = choose(judged(whole, **changes), whole, least)
    assert choice.outcomes == ()
    assert said in choice.why_not


def test_what_is_faster_and_the_same_is_written_whole(whole: Plan) -> None:
    choice = choose(judged(whole), whole, 1.5)
    assert [outcome.after for outcome in choice.outcomes] == list(whole.fixed.changed.values())


SAME = timing_of([1.0, 1.001, 0.999, 1.0])


def test_with_single_timings_only_what_pays_and_was_timed_without_the_rest_is_written(whole: Plan) -> None:
    assert len(whole.codes) == 2, whole.codes
    anomaly, zeros = whole.codes
    effects = (Effect(anomaly, "a", "exact", 1, FASTER, True), Effect(zeros, "b", "exact", 1, SAME, True))
    _, outcomes = without(whole, (zeros,), "kept", Registry.load())
    kept = Kept(outcomes, FASTER, Parity(Tier.IDENTICAL, ""))
    choice = choose(judged(whole, effects=effects, kept=kept), whole, None)
    (outcome,) = choice.outcomes
    assert b"set_detect_anomaly(True)" not in outcome.after
    assert b"set_to_none=False" in outcome.after
    assert [(each.code, each.why) for each in choice.left_out] == [(zeros, "does not pay")]
    assert choose(judged(whole, effects=effects[:1]), whole, None).outcomes == whole.outcomes
    for unproven, said in (
        (None, "no time"),
        (replace(kept, timing=SAME), "not shown to be faster"),
        (replace(kept, parity=Parity(Tier.DIFFERENT, "")), "not shown to be the same"),
    ):
        choice = choose(judged(whole, effects=effects, kept=unproven), whole, None)
        assert (choice.outcomes, said in choice.why_not) == ((), True)
    none = choose(judged(whole, effects=effects[1:]), whole, None)
    assert (none.outcomes, "pay by themselves" in none.why_not) == ((), True)


def test_what_pays_is_compared_and_timed_without_the_rest(whole: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    anomaly, zeros = whole.codes
    effects = (Effect(anomaly, "a", "exact", 1, FASTER, True), Effect(zeros, "b", "exact", 1, SAME, True))
    compared: list[Version] = []

    def timed(_runner: object, versions: tuple[Version, Version], timing: Timing, *_: object) -> None:
        timing.pairs, timing.twins = (FASTER.pairs, FASTER.twins)
        compared.append(versions[1])

    monkeypatch.setattr(session, "measure", timed)
    monkeypatch.setattr(attribution, "effects", lambda *_: effects)
    monkeypatch.setattr(parity, "judge", lambda *versions: Parity(Tier.IDENTICAL, versions[2].name))
    effort = session.Effort(per_fix=True, apply=True)
    with scratch(None) as folders:
        report = session.verify(
            whole, folders, Limits(), effort, Registry.load(), Live(effort.budget), Meter(SimpleNamespace())
        )
    assert report.kept is not None
    assert (report.kept.parity.why, report.kept.timing is not None) == ("kept", True)
    (kept,) = compared[1].changed.values()
    assert kept is not None
    assert b"set_to_none=False" in kept
    assert any("compared and timed again: 2.00x faster" in line for line in verify_words.fixes(report))


def test_screening_pairs_may_show_that_a_fix_pays() -> None:
    assert Effect("SPD406", "a", "exact", 1, FASTER, full=False).pays is True
    wide = timing_of([0.9, 1.3, 1.1])
    assert Effect("SPD406", "a", "exact", 1, wide, full=False).pays is None
    assert Effect("SPD406", "a", "exact", 1, timing_of([2.0, 2.0]), full=False).pays is None


def test_the_report_says_what_was_in_and_what_was_left_out(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(textwrap.dedent(SCRIPT))
    command = Command("python", "train.py", False, (), (), tmp_path)
    exact = plan(command, Settings(tmp_path, risk=Risk.EXACT), Registry.load())
    everything = plan(command, Settings(tmp_path, risk=Risk.BEHAVIOR), Registry.load())
    report = judged(exact, left_out=_left_out(exact), written=(tmp_path / "train.py",))
    lines = list(verify_words.fixes(report))
    higher = {each.code for each in everything.applied if each.risk > Risk.EXACT}
    assert all(code in lines[0] for code in exact.codes)
    assert {each.code for each in report.left_out} >= higher - set(exact.codes)
    assert all(each.why == f"`--risk {each.risk}`" for each in report.left_out)
    assert lines[-1].startswith("written: ")


@pytest.mark.slow
def test_a_fix_that_pays_is_written_and_said(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(textwrap.dedent(SCRIPT))
    options = ("--apply", "--pairs", "3", "--max-pairs", "3", "--seconds", "0.3", "--json", "report.json")
    done = verify(tmp_path, "train.py", *options)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "fixes in: SPD" in done.stdout
    assert "written: train.py" in done.stdout
    assert "set_detect_anomaly(True)" not in (tmp_path / "train.py").read_text()
    assert json.loads((tmp_path / "report.json").read_text())["written"] == ["train.py"]


def test_another_version_is_not_applied(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(textwrap.dedent(SCRIPT))
    done = verify(tmp_path, "train.py", "--apply", "--against", "train.py")
    assert (done.returncode, "--against times something else" in done.stderr) == (2, True)
