"""benchmarks/speed.py: it measures what there is, and says what there is not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.conftest import ROOT

SPEED = ROOT / "benchmarks" / "speed.py"


def test_speed(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import torch\n")
    report = tmp_path / "report.json"
    options = ("--rounds", "1", "--torchfix", "no-such-tool", "--skip", "libcst,ruff", "--growth", "--sizes", "8")
    command = [sys.executable, str(SPEED), str(tmp_path / "train.py"), *options, "--json", str(report)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "torchfix is not installed, and left out" in done.stdout
    found = json.loads(report.read_text())
    rows = {row["tool"]: row for row in found["comparison"]["rows"]}
    assert list(rows) == ["speedlint cold", "speedlint warm", "ast"]
    assert rows["speedlint cold"]["cpu_ratio"] == 1
    assert all(row["code"] == 0 and row["cpu"] > 0 and row["megabytes"] > 5 for row in rows.values())
    assert [row["files"] for row in found["growth"]["rows"]] == [8]
