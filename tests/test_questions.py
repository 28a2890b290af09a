"""`speedlint questions` and docs/questions.md: every question that a rule may ask."""

from __future__ import annotations

import pytest

from speedlint import questions
from speedlint.output import questions_markdown
from tests.conftest import ROOT, Project


def test_the_page_is_what_the_code_says(request: pytest.FixtureRequest) -> None:
    page, path = questions_markdown.render(questions.rooms()), ROOT / "docs" / "questions.md"
    if request.config.getoption("--bless"):
        path.write_text(page)
    assert path.read_text() == page, "`speedlint questions --format markdown > docs/questions.md` writes it anew"


def test_each_question_says_what_its_answer_is() -> None:
    silent = [f"{room.name}: {each.call}" for room in questions.rooms() for each in room.questions if not each.answer]
    assert not silent


def test_no_question_is_listed_twice() -> None:
    names = [room.name for room in questions.rooms()]
    assert len(set(names)) == len(names)
    assert names[0] == "script"
    assert {"script.values", "script.roles", "script.loops.guards", "speedlint.shapes.sync.reads"} <= set(names)


def test_questions_as_text(project: Project) -> None:
    lines = project.run("questions").stdout.splitlines()
    assert lines[0] == "script"
    at = lines.index("    script.on_gpu -> bool")
    assert lines[at + 1] == "        Whether a script of the program shows that it trains on a GPU."
    assert "    script.values.constant(expression: syntax.Node) -> Constant | None" in lines


def test_questions_about_a_word(project: Project) -> None:
    found = project.run("questions", "trains on a gpu").stdout.splitlines()
    assert "    script.on_gpu -> bool" in found
    assert not any("script.text" in line for line in found)
    result = project.run("questions", "zebra")
    assert (result.exit_code, result.stderr) == (
        2,
        "error: no question speaks of `zebra`; `speedlint questions` lists them\n",
    )
