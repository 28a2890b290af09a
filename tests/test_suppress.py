"""Comments that silence findings."""

from __future__ import annotations

import pytest

from tests.conftest import Project

SILENT = [
    "x.item()  # speedlint: ignore",
    "x.item()  # speedlint: ignore[TOY301]",
    "x.item()  # speedlint: ignore[TOY301] needed by the scheduler",
    "x.item()  # speedlint:ignore[TOY306, TOY301]",
    "x.item()  # speedlint: ignore[called-item]",
    "x.item()  # speedlint: ignore[TOY3]",
    "x.item()  # noqa  # speedlint: ignore",
    "y = (\n    x.item(),\n    1,  # speedlint: ignore\n)",
    "y = (  # speedlint: ignore\n\n    x.item(),\n)",
    "y = (\n    # speedlint: ignore\n    x.item(),\n)",
    "if x.item():  # speedlint: ignore\n    pass",
    "if (\n    x.item()\n):  # speedlint: ignore\n    pass",
    "for y in x: z = y.item()  # speedlint: ignore",
    "@dec(x.item())  # speedlint: ignore\ndef f(): ...",
    "@dec(x.item())\n@dec\ndef f():  # speedlint: ignore\n    ...",
    "y = '''\n'''; x.item()  # speedlint: ignore",
]
HEARD = [
    "x.item()  # speedlint: ignore[TOY306]",
    "x.item()  # speedlint: ignore[]",
    "x.item()  # speedlint: ignored",
    "x.item()  # speedlint is told to ignore",
    "x.item('# speedlint: ignore')",
    "# speedlint: ignore\nx.item()",
    "x.item()\n# speedlint: ignore",
    "if y:  # speedlint: ignore\n    x.item()",
    "y = 1  # speedlint: ignore\nx.item()",
    "def f():  # speedlint: ignore\n    x.item()",
    "@dec\n# comment\ndef f():  # speedlint: ignore\n    x.item()",
]


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("text", SILENT)
def test_silent(project: Project, text: str, newline: str) -> None:
    assert project.findings(project.write("a.py", text.replace("\n", newline) + newline)) == []


@pytest.mark.parametrize("text", HEARD)
def test_heard(project: Project, text: str) -> None:
    assert len(project.findings(project.write("a.py", text + "\n"))) == 1


def test_silenced_findings_are_not_fixed(project: Project) -> None:
    text = "x.item()  # speedlint: ignore\ny.item()\n"
    path = project.write("a.py", text)
    assert project.run("fix", "--apply", "--risk", "numeric", path).exit_code == 0
    assert (project.root / path).read_text() == text.replace("y.item", "y.detach")
