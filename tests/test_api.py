"""The Python API: its signatures and results, which stay as they are."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import speedlint
from speedlint import api
from tests.conftest import ROOT, Project

SIGNATURES = {
    "check_source": "(source: 'str', path: 'str | Path' = 'script.py', *, select: 'Sequence[str]' = (), "
    "ignore: 'Sequence[str]' = (), torch: 'str | None' = None, config: 'str | Path | None' = None) -> 'CheckResult'",
    "check_paths": "(paths: 'Iterable[str | Path]', *, select: 'Sequence[str]' = (), ignore: 'Sequence[str]' = (), "
    "exclude: 'Sequence[str]' = (), torch: 'str | None' = None, config: 'str | Path | None' = None, cache: 'bool' = True) "
    "-> 'CheckResult'",
    "fix_source": "(source: 'str', path: 'str | Path' = 'script.py', *, risk: 'RiskName' = 'exact', "
    "select: 'Sequence[str]' = (), ignore: 'Sequence[str]' = (), torch: 'str | None' = None, "
    "config: 'str | Path | None' = None) -> 'FixResult'",
}
RESULTS = {
    "Applied": "code rule risk line message cell",
    "CheckResult": "findings problems",
    "Edit": "path start end text cell",
    "Finding": "code rule message advice level worth because frequency place fix",
    "Fix": "risk edits withheld",
    "FixResult": "source applied problems",
    "Place": "path line column end_line end_column start end cell",
    "Problem": "path line message cell",
}
EXAMPLE = re.findall(r"```python\n(.*?)```", (ROOT / "docs/api.md").read_text("utf-8"), re.DOTALL)[0]


@pytest.mark.parametrize("name", SIGNATURES)
def test_signatures_stay(name: str) -> None:
    assert str(inspect.signature(getattr(speedlint, name))) == SIGNATURES[name]
    assert getattr(speedlint, name) is getattr(api, name)


@pytest.mark.parametrize("name", RESULTS)
def test_results_keep_their_fields_and_are_frozen(name: str) -> None:
    kind = getattr(api, name)
    assert " ".join(field.name for field in dataclasses.fields(kind)) == RESULTS[name]
    assert kind.__dataclass_params__.frozen


def test_the_example_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(EXAMPLE, {})
    found = printed.getvalue()
    assert "11:14 SPD" in found and "float(total)" in found


def test_text_is_checked_as_if_it_were_saved(project: Project) -> None:
    (found,) = api.check_source("é = 1; exactly()\n", project.root / "new.py").findings
    assert found.place.path == project.root / "new.py"
    assert (found.place.line, found.place.column) == (1, 8)
    assert found.place.start == len("é = 1; ".encode())
    assert not (project.root / "new.py").exists()


def test_held_text_goes_before_the_disk(project: Project) -> None:
    project.write("train.py", "exactly()\n")
    assert not api.check_source("pass\n", "train.py").findings
    assert len(api.check_paths(["train.py"]).findings) == 1


def test_many_projects_are_checked_from_an_unguarded_script(project: Project) -> None:
    for number in range(26):
        project.write(f"p{number}/.git/HEAD", "")
        project.write(f"p{number}/a.py", "exactly()\n")
    code = "import speedlint; print(len(speedlint.check_paths(['.'], cache=False).findings))"
    script = project.write("../unguarded.py", code)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == "26\n", done.stderr


def test_fix_source_writes_nothing(project: Project) -> None:
    fixed = api.fix_source("exactly()\nexactly()\n", "train.py")
    assert fixed.source == "print()\nprint()\n"
    assert [(each.risk, each.line) for each in fixed.applied] == [("exact", 1), ("exact", 2)]
    assert not Path("train.py").exists()


def test_encoding_that_the_text_declares(project: Project) -> None:
    text = "# coding: latin-1\nexactly('é')\n"
    assert api.fix_source(text, "train.py").source == text.replace("exactly", "print")


@pytest.mark.parametrize(
    "text",
    [
        "\ufeffexactly('é')\n",
        "# coding: utf-8-sig\nexactly('é')\n",
        "# coding: rot13\nexactly('é')\n",
        "# coding: no\nexactly()\n",
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_marks_and_declarations_stay(project: Project, text: str, newline: str) -> None:
    text = text.replace("\n", newline)
    checked = api.check_source(text, "train.py")
    assert bool(checked.problems) is ("rot13" in text or ": no" in text)
    expected = text if checked.problems else text.replace("exactly", "print")
    assert api.fix_source(text, "train.py").source == expected


def test_wrong_options_are_said_in_one_line(project: Project) -> None:
    for wrong in ({"torch": "new"}, {"select": ["NOPE1"]}, {"config": "missing.toml"}):
        with pytest.raises(api.UserError, match=r"^[^\n]+$"):
            api.check_source("pass\n", **wrong)
    with pytest.raises(api.UserError, match="`all` is no risk"):
        api.fix_source("pass\n", risk="all")  # type: ignore[arg-type]


def test_text_that_is_no_python_is_a_problem(project: Project) -> None:
    (problem,) = api.check_source("exactly(\n", "train.py").problems
    assert problem.line == 1 and "syntax error" in problem.message
    assert api.fix_source("exactly(\n", "train.py").source == "exactly(\n"


def test_importing_speedlint_imports_nothing_more() -> None:
    loaded = "import sys, speedlint; print(sorted(name for name in sys.modules if name.startswith('speedlint')))"
    done = subprocess.run([sys.executable, "-c", loaded], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['speedlint']"
