"""fixtures/gains: training scripts as people write them, each with a slowness that a fix is written for."""

from __future__ import annotations

import pytest

from benchmarks.gains import SCRIPTS
from speedlint import stages
from speedlint.config import Settings
from speedlint.registry import Registry
from speedlint.rule import Risk
from tests.conftest import ROOT

GAINS = ROOT / "fixtures" / "gains"


def test_each_script_is_measured() -> None:
    assert {path.stem for path in GAINS.glob("*.py")} == set(SCRIPTS)


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_fix_of_its_slowness_is_written_at_its_risk(name: str) -> None:
    code, risk = SCRIPTS[name]
    staged = stages.fix((GAINS / f"{name}.py",), Settings(GAINS, risk=Risk[risk.upper()]), Registry.load())
    assert code in [fix.code for stage in staged.stages for fix in stage.applied]
    compile(staged.outcomes[0].after, name, "exec")
