"""`speedlint fix`: the diff, what is written, and what is left alone."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.conftest import Project

MIXED = "risky()\nexactly()\nx.item()\n"


def pointing(script: str, *options: str) -> str:
    """The line that follows what was written."""
    return f"Next: `{' '.join(('speedlint verify', *options, script))}` measures it, `speedlint undo` takes it back.\n"


def test_shows_a_diff_by_risk_and_writes_nothing(project: Project) -> None:
    path = project.write("a.py", MIXED)
    result = project.run("fix", "--risk", "numeric", path)
    assert result.exit_code == 1
    assert result.stdout == (
        "exact: the same training, bit for bit\n"
        "\n"
        "# a.py:2 TOY308 exact-call: `exactly()` is slow\n"
        "--- a/a.py\n"
        "+++ b/a.py\n"
        "@@ -1,3 +1,3 @@\n"
        " risky()\n"
        "-exactly()\n"
        "+print()\n"
        " x.item()\n"
        "\n"
        "numeric: rounding or the random stream may differ\n"
        "\n"
        "# a.py:3 TOY301 called-item: `x.item()` is slow\n"
        "--- a/a.py\n"
        "+++ b/a.py\n"
        "@@ -1,3 +1,3 @@\n"
        " risky()\n"
        " print()\n"
        "-x.item()\n"
        "+x.detach()\n"
        "\n"
        "2 fixes in 1 file, not written; `--apply` writes.\n"
        "1 more fix with `--risk behavior`: what is computed, logged or saved may change.\n"
    )
    assert (project.root / path).read_text() == MIXED


def test_without_a_risk_only_exact_fixes_are_applied(project: Project) -> None:
    path = project.write("a.py", MIXED)
    result = project.run("fix", "--apply", path)
    assert (project.root / path).read_text() == "risky()\nprint()\nx.item()\n"
    assert result.stdout == (
        "fixed a.py: 1 fix (TOY308)\n"
        "1 more fix with `--risk numeric`: rounding or the random stream may differ.\n"
        "1 more fix with `--risk behavior`: what is computed, logged or saved may change.\n"
    ) + pointing("a.py", "--risk exact")


def test_what_was_written_can_be_measured_and_taken_back(project: Project) -> None:
    path = project.write("a.py", MIXED)
    assert "Next: " not in project.run("fix", path).stdout
    assert "Next: " not in project.run("fix", "--apply", "--select", "TOY303", path).stdout
    assert "Next: " not in project.run("fix", "--apply", "--no-cache", path).stdout  # which keeps nothing to take back
    assert project.run("fix", "--apply", "--risk", "numeric", path).stdout.endswith(pointing("a.py"))
    project.write("b.py", MIXED)
    assert "Next: " not in project.run("fix", "--apply", "-q", "b.py").stdout
    cells = '{"cells": [{"cell_type": "code", "source": "exactly()"}], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}'
    said = project.run("fix", "--apply", project.write("c.ipynb", cells)).stdout
    assert said.endswith("\nNext: `speedlint undo` takes it back.\n")


def test_nothing_is_said_of_fixes_where_no_file_is_there(project: Project) -> None:
    for options in ((), ("--apply",)):
        result = project.run("fix", *options, "missing.py")
        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr == "error: missing.py: does not exist; check the spelling\n"


@pytest.mark.parametrize(
    ("risk", "after"),
    [
        ("exact", "risky()\nprint()\nx.item()\n"),
        ("numeric", "risky()\nprint()\nx.detach()\n"),
        ("behavior", "repr()\nprint()\nx.detach()\n"),
    ],
)
def test_apply_writes_up_to_the_risk(project: Project, risk: str, after: str) -> None:
    path = project.write("a.py", MIXED)
    result = project.run("fix", "--apply", "--risk", risk, path)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith("fixed a.py: ")
    assert (project.root / path).read_text() == after
    result = project.run("fix", "--apply", "--risk", risk, path)
    assert result.exit_code == 0
    assert result.stdout.startswith(f"Nothing to fix{'' if risk == 'behavior' else ' at this risk'}.\n")


def test_apply_says_what_was_written(project: Project) -> None:
    project.write("sub/a.py", "def f(x, y):\n    return x.item(), y.item(), exactly()\n")
    project.write("b.py", "exactly()\n")
    result = project.run("fix", "--risk", "numeric", "--apply", ".")
    assert result.stdout == "fixed b.py: 1 fix (TOY308)\nfixed sub/a.py: 3 fixes (TOY301, TOY308)\n" + pointing("SCRIPT")


def test_risk_of_the_configuration(project: Project) -> None:
    project.configure("select = ['TOY']\nrisk = 'numeric'")
    path = project.write("a.py", MIXED)
    assert "x.detach" in project.run("fix", path).stdout
    assert "repr" not in project.run("fix", path).stdout
    assert "--apply --risk behavior`" in project.run("check", path).stdout


def test_notes_and_newer_spellings_are_left(project: Project) -> None:
    text = "noted()\nnewer()\n"
    path = project.write("a.py", text)
    assert project.run("fix", "--risk", "numeric", "--apply", "--torch", "2.0", path).stdout.startswith("Nothing to fix.\n")
    assert (project.root / path).read_text() == text
    project.run("fix", "--risk", "numeric", "--apply", "--torch", "2.3", "--select", "TOY302,TOY303", path)
    assert (project.root / path).read_text() == "len()\nabs()\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"x.item()\r\ny = 1\r\n", b"x.detach()\r\ny = 1\r\n"),
        (b"\xef\xbb\xbfx.item()", b"\xef\xbb\xbfx.detach()"),
        (b"# coding: latin-1\ny = '\xe9'; x.item()\n", b"# coding: latin-1\ny = '\xe9'; x.detach()\n"),
        (b"a = 1\r\nx.item()\n\tif", None),
        (b"if a:\n\tx.item()\n\x0c\nb = 2   \n    ", b"if a:\n\tx.detach()\n\x0c\nb = 2   \n    "),
    ],
)
def test_nothing_but_the_edit_changes(project: Project, before: bytes, after: bytes | None) -> None:
    path = project.write("a.py", before)
    result = project.run("fix", "--risk", "numeric", "--apply", path)
    assert (project.root / path).read_bytes() == (after or before)
    assert result.exit_code == (0 if after else 2)


def test_bad_files_do_not_stop_the_others(project: Project) -> None:
    project.write("bad.py", "x.item(\n")
    project.write("good.py", "x.item()\n")
    result = project.run("fix", "--risk", "numeric", "--apply", ".", "missing.py")
    assert result.exit_code == 2
    assert result.stdout == "fixed good.py: 1 fix (TOY301)\n" + pointing("SCRIPT")
    assert len(result.stderr.splitlines()) == 2


def test_mode_is_kept(project: Project) -> None:
    path = project.root / project.write("a.py", "x.item()\n")
    path.chmod(0o751)
    project.run("fix", "--risk", "numeric", "--apply", "a.py")
    assert path.stat().st_mode & 0o777 == 0o751


@pytest.mark.skipif(os.name == "nt", reason="a full disk is played by /dev/full's error")
def test_full_disk_leaves_the_file(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    path = project.write("a.py", "x.item()\n")
    monkeypatch.setattr("os.fsync", full)
    result = project.run("fix", "--risk", "numeric", "--apply", path)
    assert result.exit_code == 2
    assert "No space left on device" in result.stderr
    assert (project.root / path).read_text() == "x.item()\n"
    assert sorted(each.name for each in project.root.iterdir()) == ["a.py", "speedlint.toml"]


def test_ctrl_c_while_writing_leaves_whole_files(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a.py", "b.py", "c.py"):
        project.write(name, "x.item()\n")
    replace, calls = os.replace, list[int]()

    def interrupted(source: Path, target: Path) -> None:
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        replace(source, target)

    monkeypatch.setattr("os.replace", interrupted)
    result = project.run("fix", "--risk", "numeric", "--apply", ".")
    assert result.exit_code == 130
    contents = [(project.root / name).read_text() for name in ("a.py", "b.py", "c.py")]
    assert set(contents) <= {"x.item()\n", "x.detach()\n"}
    assert len(list(project.root.iterdir())) == 4


LOSSES = """
def share(outputs, labels):
    return (outputs.argmax(1) == labels).float().mean().item()
"""
CALLER = """
import torch
from torch import nn
from losses import share


def train(model: nn.Module, loader, optimizer):
    total = 0.0
    for images, labels in loader:
        images, labels = images.cuda(), labels.cuda()
        outputs = model(images)
        loss = nn.functional.cross_entropy(outputs, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        for part in outputs.chunk(4):
            total += share(part, labels[: len(part)])
    print(total)


net = nn.Linear(8, 2).cuda()
train(net, torch.utils.data.DataLoader(range(8)), torch.optim.SGD(net.parameters(), 0.1))
"""


def _git(*arguments: str) -> None:
    identity = ("-c", "user.name=x", "-c", "user.email=x@example.org")
    subprocess.run(("git", *identity, *arguments), check=True, capture_output=True)


@pytest.mark.parametrize("changed", [False, True])
@pytest.mark.parametrize("more", [(), ("--apply",)])
def test_files_beside_what_was_asked_for_are_named(project: Project, more: tuple[str, ...], changed: bool) -> None:
    project.configure("select = ['SPD311']")
    project.write("losses.py", LOSSES)
    path = project.write("train.py", CALLER)
    _git("init", "-q")
    _git("add", ".")
    _git("commit", "-qm", "all")
    if changed:
        project.write("losses.py", f"# by hand\n{LOSSES}")
    result = project.run("fix", "--risk", "numeric", *more, path)
    assert "1 file beside what was asked for, where calls lead: losses.py.\n" in result.stdout
    assert ("note: losses.py has changes that git does not hold; commit or stash them" in result.stderr) is changed
    assert (".item()" in (project.root / "losses.py").read_text()) is not bool(more)


def test_what_was_asked_for_is_not_named_again(project: Project) -> None:
    project.configure("select = ['SPD311', 'SPD301']")
    project.write("losses.py", LOSSES)
    project.write("train.py", CALLER)
    result = project.run("fix", "--risk", "numeric")
    assert "beside what was asked for" not in result.stdout
    assert result.stderr == ""


PATCHED = {
    "a.py": b"y = 1\nexactly()\nz = 2\n",
    "crlf.py": b"y = 1\r\nexactly()\r\nz = 2\r\n",
    "mixed.py": b"y = 1\r\nexactly()\nz = 2\r",
    "no end.py": b"y = '\xc3\xa9'\nexactly()",
    'caf\u00e9 "x".py': b"exactly()\n\x0c\n",
    "sub/latin.py": b"# coding: latin-1\ny = '\xe9'\nexactly()\n",
    "bom.py": b"\xef\xbb\xbfexactly()\n",
}


@pytest.mark.parametrize("folder", [".", "sub"])
def test_git_applies_the_diff(project: Project, folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, data in PATCHED.items():
        project.write(f"{folder}/{name}", data)
    _git("init", "-q")
    _git("config", "core.autocrlf", "false")
    _git("add", ".")
    monkeypatch.chdir(project.root / folder)
    result = project.run("fix", "--diff", ".")
    assert (result.exit_code, result.stderr) == (1, "")
    subprocess.run(("git", "apply"), input=result.stdout_bytes, check=True)
    for name, data in PATCHED.items():
        assert (project.root / folder / name).read_bytes() == data.replace(b"exactly", b"print")
    assert project.run("fix", "--diff", ".").stdout == ""


def test_a_diff_holds_all_risks_once_and_no_more(project: Project) -> None:
    path = project.write("a.py", MIXED)
    result = project.run("fix", "--diff", "--risk", "numeric", path)
    assert result.stdout == (
        "diff --git a/a.py b/a.py\n"
        "--- a/a.py\n+++ b/a.py\n@@ -1,3 +1,3 @@\n risky()\n-exactly()\n-x.item()\n+print()\n+x.detach()\n"
    )
    assert result.stderr.startswith("1 more fix with `--risk behavior`")
    assert "take one" in project.run("fix", "--diff", "--apply", path).stderr


def test_a_file_outside_has_no_diff_here(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.write("a.py", "exactly()\n")
    project.write("sub/b.py", "exactly()\n")
    monkeypatch.chdir(project.root / "sub")
    result = project.run("fix", "--diff", "b.py", "../a.py")
    assert result.exit_code == 2
    assert result.stdout.startswith("diff --git a/b.py b/b.py\n")
    assert "a.py: lies outside the current folder" in result.stderr


def test_one_line_is_fixed(project: Project) -> None:
    path = project.write("a.py", "exactly(1)\nexactly(2)\nexactly(3)\n")
    assert project.run("fix", "--apply", f"{path}:2").stdout == "fixed a.py: 1 fix (TOY308)\n" + pointing(
        "a.py", "--risk exact"
    )
    assert (project.root / path).read_text() == "exactly(1)\nprint(2)\nexactly(3)\n"
    project.run("fix", "--apply", f"{path}:1:4", f"{path}:3")
    assert (project.root / path).read_text() == "print(1)\nprint(2)\nprint(3)\n"


def test_a_line_without_a_finding(project: Project) -> None:
    path = project.write("a.py", "exactly()\n\n")
    result = project.run("fix", f"{path}:2")
    assert (result.exit_code, result.stdout) == (0, "Nothing to fix.\n")
    assert "missing.py: does not exist" in project.run("fix", "missing.py:2").stderr


def test_a_line_stays_the_same_line_while_fixes_add_others(project: Project) -> None:
    project.configure("select = ['TOY', 'SPD301']")
    path = project.write("a.py", CALLER.replace("total += share(part, labels[: len(part)])", "total += loss.item()"))
    line = CALLER.split("\n").index("        for part in outputs.chunk(4):") + 2
    assert "1 fix (SPD301)" in project.run("fix", "--apply", "--risk", "numeric", f"{path}:{line}").stdout


@pytest.mark.parametrize("more", [(), ("--apply",), ("--diff",)])
def test_changes_that_git_does_not_hold_are_named(project: Project, more: tuple[str, ...]) -> None:
    path = project.write("a.py", "exactly()\n")
    _git("init", "-q")
    _git("add", ".")
    assert project.run("fix", path).stderr == ""
    project.write("a.py", "exactly(1)\n")
    assert project.run("fix", *more, path).stderr == (
        "note: a.py has changes that git does not hold; commit or stash them to tell them from the fixes\n"
    )
