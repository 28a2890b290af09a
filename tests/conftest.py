"""What several tests use: `--bless`, and a project folder with rules of its own."""

from __future__ import annotations

import gc
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from speedlint.cli import main

ROOT = Path(__file__).parent.parent
TOY_RULES = ROOT / "tests" / "toy_rules"

# Syntax and answers of a thousand small programs live for a test each: looking through them again and again is most of what
# the collector does, and a sixth of the time of the tests.
gc.set_threshold(200_000, 20, 20)

# The trainings that tests start are small, and run beside others: their threads would only wait for one another.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Where no bytecode is kept, each of the processes that tests start compiles all of speedlint again (0.7 s of CPU time).
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPEEDLINT_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture
def uncompiled(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The trainings that a test starts, none of which compiles, import no compiler; those of slow tests do, as any does."""
    if request.node.get_closest_marker("slow") is None:
        paths = [str(ROOT / "tests" / "uncompiled"), *filter(None, [os.environ.get("PYTHONPATH")])]
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))


@pytest.fixture
def whole_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """The trainings that a test starts import all that any training does, whatever its module's others do."""
    kept = [each for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if not each.endswith("uncompiled")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(kept))


def pytest_xdist_auto_num_workers() -> int:
    """One more than there are cores: on two of them a fifth of the tests' time is spent on waiting for what they start."""
    return 1 + (len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--bless", action="store_true", help="rewrite fixtures/rules/*.fixed from what the rules do now")


@dataclass(frozen=True)
class Project:
    """The current folder of a test: its configuration chooses the rules of tests/toy_rules."""

    root: Path

    def write(self, name: str, content: str | bytes) -> Path:
        """Writes a file, with line endings as they are given, and returns its path relative to the folder."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return Path(name)

    def configure(self, more: str = "") -> None:
        """Writes the configuration: the toy rules, and what is given."""
        self.write("speedlint.toml", f"rule-paths = [{str(TOY_RULES)!r}]\n" + (more or "select = ['TOY']"))

    def run(self, *arguments: str | Path) -> Result:
        """Runs the command line in this process; an exception that would be a traceback is raised."""
        return CliRunner().invoke(main, [str(argument) for argument in arguments], catch_exceptions=False)

    def findings(self, *arguments: str | Path) -> list[dict[str, Any]]:
        """What `check` finds with these arguments, as JSON."""
        found: list[dict[str, Any]] = json.loads(self.run("check", "--format", "json", *arguments).stdout)["findings"]
        return found


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """An empty project folder, which is the current one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "110")
    monkeypatch.delenv("SPEEDLINT_DEBUG", raising=False)
    made = Project(tmp_path)
    made.configure()
    return made
