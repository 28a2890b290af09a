"""How runs go: what is there when they are interrupted, how much they say, and in how many processes."""

from __future__ import annotations

import json
import multiprocessing
import time
from pathlib import Path
from typing import Any

import pytest

from speedlint.engine import Engine
from tests.conftest import Project


def _interrupt_at(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    check = Engine.check

    def interrupted(engine: Engine, path: Path, code: str | None = None) -> Any:
        if path.name == name:
            raise KeyboardInterrupt
        return check(engine, path, code)

    monkeypatch.setattr(Engine, "check", interrupted)


@pytest.mark.parametrize("style", ["full", "json"])
def test_ctrl_c_shows_what_is_there(project: Project, monkeypatch: pytest.MonkeyPatch, style: str) -> None:
    for name in ("a.py", "b.py", "c.py"):
        project.write(name, "x.item()\n")
    _interrupt_at(monkeypatch, "c.py")
    result = project.run("check", "--format", style)
    assert result.exit_code == 130
    assert result.stderr == "interrupted; 2 of 3 files checked\n"
    if style == "json":
        assert [each["path"] for each in json.loads(result.stdout)["findings"]] == ["a.py", "b.py"]
    else:
        assert "a.py:1:1 TOY301" in result.stdout
        assert "Next:" not in result.stdout


def test_ctrl_c_claims_nothing(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.write("a.py", "x = 1\n")
    project.write("b.py", "x.item()\n")
    _interrupt_at(monkeypatch, "b.py")
    result = project.run("check", "--add-ignores")
    assert (result.exit_code, result.stdout) == (130, "")
    monkeypatch.undo()
    monkeypatch.chdir(project.root)
    assert project.run("check").exit_code == 1, "an interrupted run is not kept"


def test_ctrl_c_shows_what_the_workers_have_told_and_ends_them(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(30):
        project.write(f"p{number % 3}/f{number}.py", "x.item()\n")
    told, workers = [], []

    def interrupted(waiting: Any, report: Any) -> None:
        told.append(report)
        waiting[report[0]].append(report[1])
        if len(told) == 12:
            workers.extend(multiprocessing.active_children())
            raise KeyboardInterrupt

    monkeypatch.setattr("speedlint.workers._take", interrupted)
    result = project.run("check", "--jobs", "2")
    assert result.exit_code == 130
    assert 12 <= result.stdout.count("TOY301") == len(told)
    assert result.stderr == f"interrupted; {len(told)} of 30 files checked\n"
    assert workers
    until = time.monotonic() + 60
    while any(each.is_alive() for each in workers) and time.monotonic() < until:
        time.sleep(0.05)  # the pool's own thread waits for them too, and a join beside it may return before that is noted
    assert not any(each.is_alive() for each in workers)


def test_jobs_find_the_same(project: Project) -> None:
    for number in range(30):
        project.write(f"p{number % 3}/f{number}.py", "x.item()\n")
    one, two = (project.run("check", "--no-cache", "--jobs", str(jobs)) for jobs in (1, 2))
    assert one.stdout == two.stdout
    assert project.run("check", "--jobs", "0").exit_code == 2


def test_quiet_prints_findings_and_errors_only(project: Project) -> None:
    project.write("a.py", "x.item()\ny = 1  # speedlint: ignore[TOY301]\n")
    project.write("b.py", "x.item(\n")
    result = project.run("check", "-q")
    assert result.exit_code == 2
    assert "a.py:1:1 TOY301" in result.stdout
    assert "1 finding in 1 file" not in result.stdout
    assert result.stderr.startswith("error: b.py:")
    assert result.stderr.count("\n") == 1
    assert project.run("check", "-q", "--select", "TOY306", "a.py").stdout == ""
    assert project.run("fix", "-q", "--apply", "a.py").stdout == ""


def test_verbose_says_what_is_used(project: Project) -> None:
    project.write("a.py", "x.item()\n")
    project.write("sub/b.py", "x.item()\n")
    project.write("sub/speedlint.toml", "select = ['TOY301', 'TOY306']\ntorch = '2.4'\n")
    for command in ("check", "fix"):
        said = project.run(command, "--verbose", "--risk", "numeric") if command == "fix" else project.run(command, "-v")
        first, second, third = said.stderr.splitlines()
        assert first.startswith("note: 1 file with ")
        assert f"settings: {project.root}/speedlint.toml; torch" in first
        assert f"1 file with 2 rules; settings: {project.root}/sub/speedlint.toml; torch 2.4 from" in second
        assert third.endswith(" s")
