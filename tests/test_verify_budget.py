"""One promise about time: what fits into the budget is measured, and what does not is said."""

from __future__ import annotations

import io
import math
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from speedlint.config import Settings
from speedlint.output import verify_words
from speedlint.output.verify_live import Live
from speedlint.registry import Registry
from speedlint.verify import forecast, parity, session, stats
from speedlint.verify import runner as running
from speedlint.verify.budget import FOR_LOSSES, Budget, BudgetError, HungError, bounded
from speedlint.verify.nvml import Meter
from speedlint.verify.parity import Parity, Tier
from speedlint.verify.plan import Command, Plan, Version
from speedlint.verify.report import UNCLEAR, Report
from speedlint.verify.runner import Limits, Mode, Runner
from speedlint.verify.samples import Sample
from speedlint.verify.scratch import scratch
from speedlint.verify.stats import Verdict
from speedlint.verify.timing import Timing, blocks_of_start, cut, first_runs, measure
from tests.test_verify_cli import FAST, verify, written

pytestmark = pytest.mark.usefixtures("uncompiled")


@dataclass
class Clock:
    """A clock that a test sets."""

    now: float = 100.0

    def __call__(self) -> float:
        return self.now


def timing_of(ratios: list[float], control: float = 1.0) -> Timing:
    run = Sample("x", steps=(1.0,) * 10)
    pairs = [(replace(run, steps=(ratio,) * 10), run) for ratio in ratios]
    return Timing(pairs=pairs, twins=[replace(a, steps=tuple(control * step for step in a.steps)) for a, _ in pairs])


def report_of(timing: Timing | None, **more: object) -> Report:
    whole = Report("python train.py", Path(), (), timing, Parity(Tier.IDENTICAL, ""), (), {}, seconds=300, budget=300)
    return replace(whole, **more)  # type: ignore[arg-type]


def test_what_is_left_is_shared_out() -> None:
    clock = Clock()
    budget = Budget(60, clock)
    clock.now += 20
    assert (budget.left, budget.spent, budget.share(0.5), budget.deadline) == (40, 20, 140, 160)
    clock.now += 50
    assert (budget.left, budget.share(0.5)) == (0, 160)


def test_work_that_knows_nothing_of_time_is_ended() -> None:
    began = time.monotonic()
    with pytest.raises(BudgetError, match="too long"), bounded(0.05, "it took too long"):
        while time.monotonic() - began < 20:
            try:
                time.sleep(0.01)
            except Exception:
                continue
    with bounded(30, "never"):
        pass


@pytest.mark.parametrize(
    ("start", "left", "count"),
    [
        (2.0, 300.0, 2),  # a start costs little: many starts, since processes of one program differ
        (12.0, 300.0, 4),
        (60.0, 300.0, 6),
        (12.0, 40.0, 6),  # no second one would fit
    ],
)
def test_a_start_is_used_for_as_long_as_it_took(start: float, left: float, count: int) -> None:
    assert blocks_of_start(start, block=3.0, steps=0.0, left=left, missing=6) == count


def test_blocks_are_cut_where_all_versions_had_their_turns() -> None:
    runs = [
        Sample(name, steps=(1.0,) * 24, waits=(0.1,) * 24, samples=96, turns=tuple((2 * k, 2.0 * k) for k in range(1, 13)))
        for name in ("original", "fixed")
    ]
    twin = replace(runs[0], turns=runs[0].turns[:9])
    blocks = cut((runs[0], runs[1], twin), most=6, fewest=3, least=1.0)
    assert [[len(run.steps) for run in block] for block in blocks] == [[6, 6, 6]] * 3
    assert [block[0].window for block in blocks] == [6.0] * 3
    assert blocks[0][0].samples == 24


def test_more_pairs_are_no_answer_where_the_steps_contradict_all_the_time_together() -> None:
    def timed(window: float) -> Timing:
        found = timing_of([2.0, 2.01, 1.99])
        pairs = [(replace(a, window=10.0), replace(b, window=window)) for a, b in found.pairs]
        return replace(found, pairs=pairs)

    assert timed(5.0).verdict is Verdict.FASTER
    assert timed(30.0).verdict is Verdict.UNCLEAR
    assert not timed(30.0).is_unclear_for_noise
    assert timing_of([0.8, 1.3, 1.1]).is_unclear_for_noise


def test_what_is_missing_is_named() -> None:
    unclear = timing_of([1.02, 1.12, 0.98, 1.10, 1.0, 1.08])
    assert unclear.verdict is Verdict.UNCLEAR
    more = forecast.more_pairs(unclear)
    assert more is not None
    wider = timing_of([1.02, 1.12, 0.98, 1.10, 1.0, 1.08] * (1 + more // 6 + 1))
    assert wider.verdict is not Verdict.UNCLEAR
    wanted = forecast.of_pairs(unclear, spent=300, timed=200, most=20)
    said = verify_words.wanting(report_of(unclear, wanting=wanted))
    assert f"about {more} more pairs: `--budget {wanted.budget:.0f}" in said
    assert wanted.budget is not None
    assert wanted.budget > 300 + more * 200 / 6
    assert ("--max-pairs" in said) == (more + 6 > 20)


def test_a_spread_without_end_names_no_budget() -> None:
    wild = timing_of([0.5, 2.0, 0.6, 1.7, 0.4, 2.4])
    assert forecast.of_pairs(wild, 300, 200, 20) == forecast.Wanting()
    assert "less else runs" in verify_words.wanting(report_of(wild, wanting=forecast.Wanting()))


def test_two_pairs_are_no_ratio() -> None:
    two = timing_of([11.2, 6.3])
    assert not two.has_ratio
    assert two.verdict is Verdict.UNCLEAR
    report = report_of(None, wanting=forecast.of_runs(300, 60, 3))
    assert report.exit_code(None) == UNCLEAR
    assert "x" not in verify_words.headline(report).replace("inconclusive", "")
    assert "--budget 720" in verify_words.wanting(report)


def test_the_budget_named_has_room_for_all_losses_in_their_share() -> None:
    wanted = forecast.of_runs(300, 40, 14)
    assert wanted.budget is not None
    assert FOR_LOSSES * wanted.budget >= 14 * 40


def test_where_too_few_pairs_fitted_after_the_losses_the_budget_named_has_room_for_all() -> None:
    wanted = forecast.of_timing(timing_of([1.2]), spent=185, run=16, pairs=6)
    assert wanted.budget is not None
    assert wanted.budget >= 185 + 2 * 6 * 16


def test_what_processes_of_one_program_differ_by_is_no_difference() -> None:
    assert math.expm1(timing_of([1.06, 1.061, 1.062, 1.061], control=1.10).floor) == pytest.approx(0.10, abs=1e-3)
    assert stats.floor(stats.estimate([0.05, 0.05, 0.05])) == pytest.approx(0.05)


def test_without_a_terminal_a_line_follows_every_ten_seconds() -> None:
    clock, stream = Clock(), io.StringIO()
    live = Live(Budget(300, clock), stream)
    live.phase("losses 2 of 3, then timing")
    live.running(4, 12)
    for _ in range(20):
        clock.now += 1
        live.remind()
    lines = stream.getvalue().splitlines()
    assert len(lines) == 3
    assert lines[0] == "losses 2 of 3, then timing; at most 5:00 left"
    assert lines[1] == "losses 2 of 3, then timing; run of 4 s, step 12; at most 4:52 left"


def test_an_estimate_is_told_from_three_pairs_on() -> None:
    live = Live(Budget(300, Clock()), io.StringIO())
    live.phase("timing")
    live.timing(timing_of([2.0, 2.1]))
    assert live.line == "timing; 2 pairs; at most 5:00 left"
    live.timing(timing_of([2.0, 2.1, 2.05]))
    assert "3 pairs: 2.05x (" in live.line


@pytest.mark.slow
def test_a_budget_that_does_not_suffice_is_kept_and_said(tmp_path: Path) -> None:
    for name in ("train.py", "other.py"):
        written(tmp_path / name, 1)
        (tmp_path / name).write_text("import time\ntime.sleep(5)\n" + (tmp_path / name).read_text())
    began = time.monotonic()
    done = verify(tmp_path, "train.py", "--against", "other.py", *FAST, "--budget", "14")
    assert time.monotonic() - began < 30
    assert done.returncode == UNCLEAR, done.stdout + done.stderr
    assert "inconclusive: too little could be timed" in done.stdout
    assert "does not suffice for comparing the losses" in done.stdout
    assert "--budget" in done.stdout.splitlines()[-1]
    assert "x (" not in done.stdout


def test_a_run_that_hangs_ends_with_the_budget(tmp_path: Path) -> None:
    for name in ("train.py", "other.py"):
        written(tmp_path / name, 1)
        (tmp_path / name).write_text("import time\ntime.sleep(300)\n" + (tmp_path / name).read_text())
    began = time.monotonic()
    done = verify(tmp_path, "train.py", "--against", "other.py", *FAST, "--budget", "4")
    assert time.monotonic() - began < 20
    assert done.returncode == UNCLEAR, done.stdout + done.stderr


def test_a_run_without_a_step_for_long_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "_HANGS", 1.0)
    plan = _sleeping(tmp_path)
    with scratch(None) as folders:
        runner = Runner(plan, folders, Limits(), Meter(), lambda _seconds, _steps: None)
        runner.longest["loss"], runner.until = 0.2, time.monotonic() + 2
        with pytest.raises(HungError, match=r"after 0 steps the original version .* it hangs, or takes"):
            runner.run(plan.original, Mode("loss"))
        runner.longest["loss"], runner.until = 1.0, time.monotonic() + 2
        with pytest.raises(BudgetError, match="was spent"):
            runner.run(plan.original, Mode("loss"))


def test_a_version_that_hangs_is_no_want_of_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def hanging(*_: object) -> Parity:
        raise HungError("it hangs")

    monkeypatch.setattr(parity, "judge", hanging)
    with scratch(None) as folders:
        report = session.verify(
            _sleeping(tmp_path), folders, Limits(), session.Effort(), Registry.load(), Live(Budget(300)), Meter()
        )
    assert report.exit_code(None) == UNCLEAR
    assert (report.parity.why, report.wanting, report.problem) == ("it hangs", None, "")


def test_what_comes_after_the_losses_takes_none_of_the_pairs_time(tmp_path: Path) -> None:
    plan = _sleeping(tmp_path)
    with scratch(None) as folders:
        runner = Runner(plan, folders, Limits(), Meter(), lambda _seconds, _steps: None)
        began = time.monotonic()
        runner.losses_until = began + 1
        with pytest.raises(BudgetError):
            runner.run(plan.original, Mode("rehearsal"))
    assert time.monotonic() - began < 60


def _sleeping(folder: Path) -> Plan:
    """A script that does nothing for five minutes."""
    (folder / "train.py").write_text("import time\ntime.sleep(300)\n")
    version = Version("original", folder, Command(sys.executable, "train.py", False, (), (), folder))
    entry = folder / "train.py"
    return Plan(version, version, folder, (folder,), (), Settings(folder), entry, (entry,))


def test_what_is_for_the_script_and_what_is_for_verify_is_told_apart(tmp_path: Path) -> None:
    written(tmp_path / "train.py", 1)
    done = verify(tmp_path, "train.py", "--lr", "0.1")
    assert done.returncode == 2
    assert "speedlint verify train.py -- --lr" in done.stderr
    done = verify(tmp_path, "train.py", "--risk", "exact", "--", "--json", "x.json")
    assert "`--json` stands after the script's arguments" in done.stderr
    (tmp_path / "train.py").write_text("import argparse\nargparse.ArgumentParser().add_argument('--json')\n")
    done = verify(tmp_path, "train.py", "--risk", "exact", "--", "--json", "x.json")
    assert "note" not in done.stderr


def test_there_is_a_sign_of_life_before_anything_is_planned(tmp_path: Path) -> None:
    written(tmp_path / "train.py", 1)
    done = verify(tmp_path, "train.py", "--risk", "exact")
    first, second = [line for line in done.stderr.splitlines() if not line.startswith("looking for")][:2]
    assert "Python 3." in first
    assert "torch" in first
    assert second.startswith("planning the fixes; ")


@pytest.mark.parametrize(("left", "runs"), [(30, 0), (300, 2)])
def test_where_time_is_short_the_runs_for_the_losses_say_what_the_versions_are_like(left: float, runs: int) -> None:
    class Running(SimpleNamespace):
        count = 0

        def run(self, version: Version, *_: object) -> Sample:
            Running.count += 1
            return Sample(version.name, steps=(0.2,) * 30)

    command = Command("python", "train.py", False, (), (), Path())
    versions = (Version("original", Path(), command), Version("fixed", Path(), command))
    compared = {version.name: Sample(version.name, steps=(0.1,) * 30) for version in versions}
    runner = Running(limits=Limits(), until=time.monotonic() + left, compared=compared, longest={"loss": 8.0})
    first = first_runs(runner, versions, 6)  # type: ignore[arg-type]
    assert (Running.count, [sample.version for sample in first]) == (runs, ["original", "fixed"])
    assert {sample.step for sample in first} == ({0.2} if runs else {0.1})


@pytest.mark.parametrize(("left", "pairs"), [(147, 3), (400, 6), (90, 0)])
def test_runs_that_start_slowly_measure_whole(left: float, pairs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The start takes 15 s and the measuring 1 s, where a run for the losses took 24 s: as many pairs as fit are timed."""
    clock = Clock()

    class Running(SimpleNamespace):
        def run(self, version: Version, _mode: Mode, within: float) -> Sample:
            count = 30 if within >= 16 else 10
            if clock.now + (whole := 15 + count / 30) > self.until:
                raise BudgetError("spent")
            clock.now += whole
            self.longest["time"] = whole
            slow = 1.2 if version.name == "original" else 1.0
            return Sample(version.name, steps=(slow / 30,) * count, wall=whole, window=count / 30)

        def can_take_turns(self, *_: object) -> bool:
            return False

    command = Command("python", "train.py", False, (), (), Path())
    versions = (Version("original", Path(), command), Version("fixed", Path(), command))
    runner = Running(limits=Limits(), until=clock.now + left, compared={}, longest={"loss": 24.0})
    monkeypatch.setattr("speedlint.verify.timing.time", SimpleNamespace(monotonic=clock))
    timing = Timing()
    measure(runner, versions, timing, 6, 20, runner.until, lambda _: None)  # type: ignore[arg-type]
    assert len(timing.pairs) == pairs
    assert all(len(sample.steps) == 30 for pair in timing.pairs for sample in pair)
