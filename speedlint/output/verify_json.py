"""The result of ``verify`` as JSON: complete enough to compute every figure again."""

from __future__ import annotations

import json
import math
import os
from dataclasses import asdict
from typing import Any

from speedlint.verify.parity import Parity
from speedlint.verify.report import Effect, Kept, Report
from speedlint.verify.samples import Sample
from speedlint.verify.stats import FEWEST, Estimate
from speedlint.verify.timing import Timing

VERSION = 1


def render(report: Report) -> str:
    """One object; numbers that are none, such as an infinite width, are null."""
    return json.dumps(_clean(_report(report)), indent=1, ensure_ascii=True, allow_nan=False) + "\n"


def _report(report: Report) -> dict[str, Any]:
    return {
        "version": VERSION,
        "command": report.command,
        "verdict": report.verdict.value,
        "parity": _parity(report.parity),
        "timing": _timing(report.timing) if report.timing is not None else None,
        "targets": [asdict(each) for each in report.targets],
        "fixes": [
            {
                "path": os.path.relpath(fix.path, report.root),
                "line": fix.line,
                "code": fix.code,
                "rule": fix.rule,
                "risk": fix.risk.name.lower(),
                "message": fix.message,
            }
            for stage in report.stages
            for fix in stage.applied
        ],
        "kept": _kept(report.kept) if report.kept is not None else None,
        "left_out": [asdict(each) for each in report.left_out],
        "written": [os.path.relpath(path, report.root) for path in report.written],
        "syncs_a_step": report.syncs,
        "work_a_step": [{"flops": run.flops, "tokens": run.tokens} for run in report.work] if report.work else None,
        "per_fix": [_effect(each) for each in report.effects],
        "notes": list(report.notes),
        "problem": report.problem,
        "machine": report.machine,
        "seconds": report.seconds,
        "budget": report.budget,
        "wanting": asdict(report.wanting) if report.wanting is not None else None,
    }


def _parity(parity: Parity) -> dict[str, Any]:
    return {**asdict(parity), "tier": parity.tier.words}


def _kept(kept: Kept) -> dict[str, Any]:
    return {"parity": _parity(kept.parity), "timing": _timing(kept.timing) if kept.timing is not None else None}


def _timing(timing: Timing) -> dict[str, Any]:
    return {
        "unit": timing.unit,
        "ratio": _estimate(timing.estimate),
        "control": _estimate(timing.control),
        "floor": math.expm1(timing.floor),
        "whole": _estimate(timing.whole) if timing.whole is not None else None,
        "breakeven_steps": timing.breakeven,
        "first": [_sample(each) for each in timing.first],
        "in_turns": timing.in_turns,
        "pairs": [[_sample(a), _sample(b)] for a, b in timing.pairs],
        "twins": [_sample(each) for each in timing.twins],
    }


def _estimate(found: Estimate) -> dict[str, Any]:
    """A ratio of fewer pairs than an interval needs is none."""
    ratio = found.ratio if found.count >= FEWEST else math.nan
    return {"ratio": ratio, "low": found.low, "high": found.high, "count": found.count}


def _sample(sample: Sample) -> dict[str, Any]:
    return {key: value for key, value in asdict(sample).items() if key not in ("log", "losses", "environment")}


def _effect(effect: Effect) -> dict[str, Any]:
    return {
        "code": effect.code,
        "rule": effect.rule,
        "risk": effect.risk,
        "fixes": effect.fixes,
        "full": effect.full,
        "pays": effect.pays,
        "note": effect.note,
        "without": _timing(effect.without) if effect.without is not None and effect.without.pairs else None,
    }


def _clean(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): _clean(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_clean(each) for each in value]
    return value
