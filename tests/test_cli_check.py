"""`speedlint check`: what it prints, its exit codes, and input it cannot read."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from click.testing import CliRunner

from speedlint.cli import main
from speedlint.config import Settings
from speedlint.disk import Disk
from speedlint.engine import Engine
from speedlint.registry import Registry
from tests.conftest import ROOT, TOY_RULES, Project

SLOW = "def f(loss):\n    return loss.item()\n"


def _flat(text: str) -> str:
    return " ".join(text.split())


def test_nothing_found(project: Project) -> None:
    result = project.run("check", project.write("a.py", "x = 1\n"))
    assert (result.exit_code, result.stdout, result.stderr) == (0, "Nothing slow found in 1 file.\n", "")


def test_finding(project: Project) -> None:
    result = project.run("check", "--torch", "2.4", project.write("sub/a.py", SLOW))
    assert result.exit_code == 1
    assert result.stdout == (
        "sub/a.py:2:12 TOY301 called-item: `loss.item()` is slow\n"
        "2 |     return loss.item()\n"
        "  |            ^^^^^^^^^^^\n"
        "  = why:  The CPU waits for the GPU.\n"
        "  = do:   write something else\n"
        "  = fix:  numeric, rounding or the random stream may differ (`speedlint fix --apply --risk numeric`)\n"
        "  = more: speedlint explain TOY301\n"
        "\n"
        "1 finding: 1 numeric fix. Target: torch 2.4 (--torch).\n"
        "Next: speedlint fix --risk numeric --torch 2.4 sub/a.py\n"
    )


def test_json_has_the_agreed_keys(project: Project) -> None:
    path = project.write("a.py", "é = 1\r\n" + SLOW.replace("\n", "\r\n"))
    report = json.loads(project.run("check", path, "--format", "json").stdout)
    assert report == {
        "version": 1,
        "findings": [
            {
                "code": "TOY301",
                "rule": "called-item",
                "message": "`loss.item()` is slow",
                "path": "a.py",
                "line": 3,
                "column": 12,
                "end_line": 3,
                "end_column": 23,
                "level": "warning",
                "worth": "unknown",
                "because": "",
                "cause": "TOY301:3:12",
                "frequency": "once",
                "related": [],
                "fix": {
                    "risk": "numeric",
                    "applicable": True,
                    "edits": [{"path": "a.py", "start": 38, "end": 42, "text": "detach"}],
                },
            }
        ],
        "errors": [],
    }


def test_errors_are_in_the_json(project: Project) -> None:
    result = project.run("check", project.write("a.py", "item(\n"), "missing.py", "--format", "json")
    assert result.exit_code == 2
    assert result.stderr == ""
    assert {error["path"] for error in json.loads(result.stdout)["errors"]} == {"a.py", "missing.py"}


def test_notes_are_shown_when_asked_for(project: Project) -> None:
    path = project.write("a.py", "noted()\n")
    result = project.run("check", path)
    assert result.exit_code == 0
    assert "1 note hidden (`--notes`)." in result.stdout
    assert project.findings(path) == []
    result = project.run("check", path, "--notes")
    assert result.exit_code == 1
    assert "not written: a note's fix is applied only when asked for: `--select TOY302`" in _flat(result.stdout)


def test_level_comes_from_the_frequency(project: Project) -> None:
    path = project.write("a.py", "levelled()\n")
    assert [(each["level"], each["frequency"]) for each in project.findings(path, "--notes")] == [("note", "once")]


def test_fix_of_a_note_is_applicable_when_its_code_is_selected(project: Project) -> None:
    path = project.write("a.py", "noted()\n")
    for select, applicable in (("TOY", False), ("TOY302", True), ("noted-call", True)):
        (found,) = project.findings(path, "--notes", "--select", select)
        assert found["fix"]["applicable"] is applicable


@pytest.mark.parametrize(("release", "applicable"), [("1.13", False), ("2.2", False), ("2.3", True), ("2.10", True)])
def test_fix_for_a_newer_release_is_shown_only(project: Project, release: str, applicable: bool) -> None:
    path = project.write("a.py", "newer()\n")
    (found,) = project.findings(path, "--notes", "--torch", release)
    assert found["fix"]["applicable"] is applicable
    assert found["level"] == ("warning" if applicable else "note")
    if not applicable:
        shown = _flat(project.run("check", path, "--notes", "--torch", release).stdout)
        assert f"not written: needs torch 2.3 or newer, and the target is {release}" in shown


def test_off_rules_run_by_full_code_only(project: Project) -> None:
    path = project.write("a.py", "off()\n")
    assert project.findings(path, "--select", "TOY") == []
    assert project.findings(path, "--select", "TOY3,TOY305")
    assert project.findings(path, "--select", "off-call")


def test_select_and_ignore(project: Project) -> None:
    path = project.write("a.py", "risky(), exactly(), x.item()\n")
    codes = [found["code"] for found in project.findings(path, "--ignore", "TOY301", "--ignore", "TOY302,risky-call")]
    assert codes == ["TOY308"]
    assert [found["code"] for found in project.findings(path, "--select", "TOY306,TOY301")] == ["TOY306", "TOY301"]


def test_unknown_code_names_the_nearest(project: Project) -> None:
    result = project.run("check", project.write("a.py", SLOW), "--select", "TOY309")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("error: `TOY309` selects no rule (did you mean `TOY30")
    far = project.run("check", "a.py", "--select", "TOY999").stderr
    assert far == "error: `TOY999` selects no rule; `speedlint rules` lists them\n"


def test_raising_rule_is_one_line_and_the_rest_is_done(project: Project) -> None:
    project.write("a.py", "crash(1)\nx.item()\n")
    project.write("b.py", "x.item()\n")
    result = project.run("check", ".")
    assert result.exit_code == 2
    rule = TOY_RULES / "raising_rule.py"
    assert result.stderr == (
        f"error: a.py: TOY304 failed (KeyError: 'crash(1)'); mend {rule}, or leave it out (`--ignore TOY304`);"
        " all else was done\n"
    )
    assert result.stderr.count("\n") == 1
    assert "2 findings in 2 files" in result.stdout
    assert "not understood" not in result.stdout
    assert project.run("check", ".").stderr == result.stderr  # from what is kept


def test_an_option_without_a_rule_is_one_line(project: Project) -> None:
    result = project.run("check", "--select", ",", project.write("a.py", "x.item()\n"))
    assert result.exit_code == 2
    assert "'--select': names no rule; write codes, such as SPD301, or leave it out" in result.stderr


def test_debugging_raises(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPEEDLINT_DEBUG", "1")
    with pytest.raises(KeyError):
        project.run("check", project.write("a.py", "crash(1)\n"))


def test_text_from_files_cannot_drive_the_terminal(project: Project) -> None:
    path = project.write("[red]\x1b[31m.py", "x.item('\x1b[2J [bold]\u202e')\n")
    result = CliRunner().invoke(main, ["check", str(path)], color=True)
    assert "\x1b[2J" not in result.stdout
    assert "\\x1b[2J [bold]\\u202e" in result.stdout
    assert "[red]\\x1b[31m.py:1:1" in result.stdout


def test_colours_only_on_a_terminal(project: Project) -> None:
    assert "\x1b" not in project.run("check", project.write("a.py", SLOW)).stdout


def test_findings_are_in_order_and_said_once(project: Project) -> None:
    project.write("b.py", "x.item(), y.item()\n")
    project.write("a.py", "z.item()\n")
    found = project.findings("b.py", "a.py", ".", "a.py")
    assert [(each["path"], each["column"]) for each in found] == [("a.py", 1), ("b.py", 1), ("b.py", 11)]


def test_frames_of_tabs_wide_characters_and_several_lines(project: Project) -> None:
    path = project.write("a.py", "if x:\n\ty = '漢字', x.item()\nz = (x\n    .item(\n\n    ))\n")
    lines = project.run("check", path).stdout.splitlines()
    assert lines[1:3] == ["2 |     y = '漢字', x.item()", "  |                 ^^^^^^^^"]
    at = lines.index("3 > z = (x")
    assert lines[at : at + 4] == ["3 > z = (x", "4 >     .item(", "5 >", "  ..."]


def test_very_long_lines_have_no_frame(project: Project) -> None:
    result = project.run("check", project.write("a.py", f"x.item('{'y' * 100_000}')[0]\n"), "--select", "TOY")
    assert len(result.stdout) < 2_000


BAD = {
    "syntax.py": (b"item(\nx.item()\n", "syntax.py:"),
    "python2.py": (b"print 'x'.item()\n", "python2.py:1: syntax error (Python 2?)"),
    "latin.py": (b"x.item()\n\n# \xe9\n", "latin.py:3: is not valid utf-8"),
    "unknown.py": (b"# coding: klingon\nx.item()\n", "unknown.py:1: unknown encoding"),
    "nul.py": (b"x.item()\n\0", "nul.py:2: holds NUL bytes"),
}


@pytest.mark.parametrize("name", BAD)
def test_unreadable_source_is_one_line_and_the_rest_is_done(project: Project, name: str) -> None:
    content, message = BAD[name]
    project.write(name, content)
    project.write("good.py", SLOW)
    result = project.run("check", ".")
    assert result.exit_code == 2
    assert result.stderr.startswith(f"error: {message}")
    assert result.stderr.count("\n") == 1
    assert "good.py:2:12 TOY301" in result.stdout


def test_a_script_for_python_3_6_is_read_and_said_to_be_one(project: Project) -> None:
    """Before Python 3.7 `async` was a name, and what torch called the `non_blocking` of its copies."""
    project.configure("select = ['SPD205', 'SPD601']\ntorch = '2.13'")
    path = project.write(
        "train.py",
        "import torch\n"
        "model = torch.nn.Linear(512, 512).cuda()\n"
        "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "for x, y in torch.utils.data.DataLoader(torch.load('rows.pt'), pin_memory=True):\n"
        "    loss = (model(x.cuda(async=True)) - y.cuda()).mean()\n"
        "    optimizer.zero_grad()\n"
        "    loss.backward()\n"
        "    optimizer.step()\n",
    )
    found = json.loads(project.run("check", "--notes", "--format", "json", path).stdout)["findings"]
    assert [(each["code"], each["column"]) for each in found] == [("SPD205", 41)]
    result = project.run("check", path)
    assert "train.py:5: no Python since 3.7 runs this, where `async` is a keyword: write `non_blocking`" in result.stderr
    assert project.run("fix", "--apply", path).exit_code == 0
    assert "model(x.cuda(async=True)) - y.cuda(async=True)" in (project.root / path).read_text()


def test_a_script_that_says_async_gets_nothing_that_came_after_torch_0_4(project: Project) -> None:
    """Releases that took both names would take it, but its author's may be older."""
    project.configure("select = ['SPD101', 'SPD203', 'SPD502']\n")
    text = (
        "import torch\n"
        "model = torch.nn.Conv2d(64, 64, 3).cuda()\n"
        "optimizer = torch.optim.Adam(model.parameters(), lr=0.1)\n"
        "loader = torch.utils.data.DataLoader(torch.load('rows.pt'), batch_size=64, num_workers=2, pin_memory=True)\n"
        "for epoch in range(9):\n"
        "    for x in loader:\n"
        "        loss = model(x.cuda({}=True)).mean()\n"
        "        optimizer.zero_grad()\n"
        "        loss.backward()\n"
        "        optimizer.step()\n"
    )
    for name, changes in (("async", False), ("non_blocking", True)):
        diff = project.run("fix", "--risk", "numeric", "--diff", project.write("train.py", text.format(name))).stdout
        assert ("persistent_workers" in diff, "autocast" in diff) == (changes, changes)


GOOD = {
    "bom": b"\xef\xbb\xbfx.item()\n",
    "latin": b"# coding: latin-1\nx.item('\xe9')\n",
    "no final newline": b"x.item()",
    "crlf": b"x.item()\r\n",
    "mixed": b"a = 1\r\nx.item()\n",
    "lone cr": b"a = 1\rx.item()\r",
    "form feed": b"\x0c\nx.item()\n",
    "tabs": b"if a:\n\tx.item()\n",
}


@pytest.mark.parametrize("name", GOOD)
def test_unusual_source_is_read(project: Project, name: str) -> None:
    result = project.run("check", project.write("a.py", GOOD[name]))
    assert (result.exit_code, result.stderr) == (1, "")


def test_empty_file_and_folder_without_python(project: Project) -> None:
    (project.root / "folder").mkdir()
    assert project.run("check", project.write("a.py", ""), "folder").exit_code in (0, 2)


def test_deep_nesting_and_large_files_are_handled(project: Project) -> None:
    project.write("deep.py", f"x.item({'(' * 1000}{')' * 1000})\n")
    project.write("good.py", SLOW)
    result = project.run("check", ".")
    assert result.stderr.count("\n") <= 1
    assert "good.py:2:12" in result.stdout


def test_large_generated_file_without_triggers_is_not_parsed(project: Project) -> None:
    path = project.write("large.py", "values = [\n" + "    1.0,\n" * 600_000 + "]\n")
    assert project.run("check", path).exit_code == 0


def test_unreadable_file_is_one_line(tmp_path: Path) -> None:
    def refuse(path: Path) -> bytes:
        raise PermissionError(13, "Permission denied", str(path))

    engine = Engine(Settings(tmp_path), Registry.load(), Disk(refuse))
    report = engine.check(Path("secret.py"))
    assert [str(problem) for problem in report.problems] == ["secret.py: cannot be read (Permission denied)"]


def test_several_processes_find_the_same(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(40):
        project.write(f"d{number % 4}/f{number}.py", SLOW + "crash()\n" * (number == 7) + "noted()\n")
    monkeypatch.setattr("speedlint.host.cores", lambda: 1)
    alone = project.run("check", ".", "--notes")
    monkeypatch.setattr("speedlint.host.cores", lambda: 2)
    together = project.run("check", ".", "--notes")
    assert together.stdout == alone.stdout
    assert together.stderr == alone.stderr
    assert together.exit_code == alone.exit_code == 2


def test_ctrl_c_exits_with_130(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("speedlint.engine.Engine.check", interrupt)
    result = project.run("check", project.write("a.py", SLOW))
    assert result.exit_code == 130
    assert result.stderr.startswith("interrupted")


def _in_process(code: str, *arguments: str, cwd: Path, **environment: str) -> str:
    env = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, cwd=cwd, env=env, check=True, capture_output=True, text=True).stdout


def test_check_never_imports_torch(project: Project) -> None:
    project.configure("amp = 'fp16'")
    project.write("a.py", "import torch\n" + SLOW)
    code = (
        "import sys; from speedlint.cli import main\n"
        "main(['check', '.'], standalone_mode=False)\n"
        "assert 'speedlint.engine' in sys.modules and 'torch' not in sys.modules\n"
    )
    assert "TOY301" in _in_process(code, cwd=project.root)


RULES_FIXTURES = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "fixtures" / "rules").glob("*.py"))
SAMPLE = [*RULES_FIXTURES[::6], "fixtures/projects/toxic_gpt2"]


@pytest.mark.parametrize(("seeds", "paths"), [(2, SAMPLE), pytest.param(10, ["fixtures"], marks=pytest.mark.slow)])
def test_findings_do_not_depend_on_the_hash_seed(seeds: int, paths: list[str]) -> None:
    code = (
        "import sys; from speedlint.cli import main;"
        "main(['check', *sys.argv[1:], '--notes', '--format', 'json'], standalone_mode=False)"
    )
    with ThreadPoolExecutor(2) as pool:
        seen = set(pool.map(lambda seed: _in_process(code, *paths, cwd=ROOT, PYTHONHASHSEED=str(seed)), range(seeds)))
    assert len(seen) == 1


OFTEN = """
import torch
from toys import frequently

model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def told():
    frequently("cold")


def called():
    frequently("hot")


class Told(torch.nn.Module):
    def forward(self, x):
        frequently("hot")
        return x


tell = Told()
frequently("cold")
for epoch in range(3):
    frequently("cold")
    for x in torch.utils.data.DataLoader(list(range(9))):
        loss = tell(model(x)).mean()
        loss.backward()
        optimizer.step()
        called()
        [frequently("hot") for _ in x]
told()
"""


def test_a_rule_for_what_runs_often_sees_no_other_lines(project: Project) -> None:
    project.write("train.py", OFTEN)
    hot = [number for number, line in enumerate(OFTEN.split("\n"), 1) if '"hot"' in line]
    for more in ("", "# the rules are taken from the cache now"):
        project.write("train.py", OFTEN + more)
        assert [each["line"] for each in project.findings("train.py", "--select", "TOY401")] == hot
