"""What several commands print with: harmless text, paths, docs, the progress bar."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from speedlint import docs
from speedlint.output import progress
from speedlint.output.terminal import coloured, shown, visible, width


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("plain [red]", "plain [red]"),
        ("漢字 é", "漢字 é"),
        ("\x1b[31m\a\r", "\\x1b[31m\\x07\\r"),
        ("\u202e\u2028\xa0", "\\u202e\\u2028\\xa0"),
        ("\udcff", "\\udcff"),
    ],
)
def test_visible(text: str, printed: str) -> None:
    assert visible(text) == printed


@pytest.mark.parametrize(("text", "columns"), [("abc", 3), ("漢字", 4), ("e\u0301", 1)])
def test_width(text: str, columns: int) -> None:
    assert width(text) == columns


def test_shown_is_relative_inside_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "in").mkdir()
    monkeypatch.chdir(tmp_path / "in")
    assert shown(tmp_path / "in" / "a.py") == shown(Path("a.py")) == "a.py"
    assert shown(tmp_path / "a.py") == str(tmp_path / "a.py")


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_coloured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert coloured(_Terminal())
    assert not coloured(io.StringIO())
    monkeypatch.setenv("NO_COLOR", "1")
    assert not coloured(_Terminal())


def test_progress_only_on_a_terminal_and_long_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    items = range(100)
    monkeypatch.setattr("sys.stderr", io.StringIO())
    assert progress.tracked(items, 100, "Checking") is items
    monkeypatch.setattr("sys.stderr", _Terminal())
    assert progress.tracked(items, 3, "Checking") is items
    assert list(progress.tracked(items, 100, "Checking")) == list(items)


def test_why_is_the_first_sentences() -> None:
    text = (
        f"Summary.\n\n## Why it is slow\nIt `waits`, e.g. here.\n`x.y` too. {'Long ' * 60}end.\n\nMore.\n\n## Example\nIt."
    )
    assert docs.why(text) == "It `waits`, e.g. here. `x.y` too."
    assert docs.summary(text) == "Summary."
    assert docs.sections(text)["Example"] == "It."
    assert docs.why("Summary.") == ""


def test_why_of_a_case_is_its_own_item() -> None:
    items = "- `a`: First\n  of two.\n- `a.b`: Second."
    text = f"Summary.\n\n## Why it is slow\nAll are.\n\n{items}\n\nMore.\n\n## Example\n- `a.b`: It."
    assert docs.why(text) == docs.why(text, "b") == "All are."
    assert docs.why(text, "a") == "First of two."
    assert docs.why(text, "a.b") == "Second."
