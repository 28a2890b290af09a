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
    "x.item()  # noqa: TOY301",
    "x.item()  # NOQA:toy301 the scheduler needs it",
    "x.item()  # noqa: E501, TOY301",
    "x.item()  # noqa: E501 TOY3",
    "x.item()  # reason  # noqa: TOY301  # type: ignore",
    "# speedlint: ignore-file\nx.item()",
    "x.item()\n\n# speedlint: ignore-file[TOY301] generated",
    "def f():\n    # speedlint: ignore-file[called-item]\n    x.item()",
    "@dec(x.item())  # speedlint: ignore\ndef f(): ...",
    "@dec(x.item())\n@dec\ndef f():  # speedlint: ignore\n    ...",
    "y = '''\n'''; x.item()  # speedlint: ignore",
]
HEARD = [
    "x.item()  # speedlint: ignore[TOY306]",
    "x.item()  # speedlint: ignore[]",
    "x.item()  # speedlint: ignored",
    "x.item()  # noqa",
    "x.item()  # noqa: E501",
    "x.item()  # noqa: TOY306",
    "# noqa: TOY301\nx.item()",
    "# ruff: noqa: TOY301\nx.item()",
    "# speedlint: ignore-file[TOY306]\nx.item()",
    "# speedlint: ignore-files\nx.item()",
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


UNUSED = {
    "x = 1  # speedlint: ignore[TOY301] reason\n": ("there is nothing for `TOY301` to silence", "x = 1\n"),
    "x.item()  # speedlint: ignore[TOY301, TOY399]\n": (
        "`TOY399` names no rule (did you mean `TOY",
        "x.item()  # speedlint: ignore[TOY301]\n",
    ),
    "x.item()  # speedlint: ignore[TOY306,TOY301] reason\n": (
        "there is nothing for `TOY306` to silence",
        "x.item()  # speedlint: ignore[TOY301] reason\n",
    ),
    "x = 1  # noqa: E501, TOY301  # type: ignore\n": (
        "there is nothing for `TOY301` to silence",
        "x = 1  # noqa: E501  # type: ignore\n",
    ),
    "x = 1  # noqa: TOY301  # type: ignore\n": ("there is nothing for `TOY301`", "x = 1  # type: ignore\n"),
    "x = 1  # noqa: TOY999\n": ("`TOY999` names no rule", "x = 1\n"),
    "x = 1  # type: ignore  # noqa: TOY301": ("there is nothing for `TOY301`", "x = 1  # type: ignore"),
    "y = 1\n    # speedlint: ignore[TOY301]\nx = 1\n": ("there is nothing for `TOY301`", "y = 1\nx = 1\n"),
    "# speedlint: ignore-file[TOY306]\nx = 1\n": ("there is nothing for `TOY306` to silence", "x = 1\n"),
    "y = 'é'  # é speedlint: no  # speedlint: ignore[TOY301]\r\nx = 1\r\n": (
        "there is nothing for `TOY301`",
        "y = 'é'  # é speedlint: no\r\nx = 1\r\n",
    ),
}


@pytest.mark.parametrize("text", UNUSED)
def test_what_silences_nothing_is_said_and_taken_away(project: Project, text: str) -> None:
    said, after = UNUSED[text]
    path = project.write("a.py", text)
    result = project.run("check", path)
    (note,) = result.stderr.splitlines()
    assert note.startswith("note: a.py:")
    assert said in note
    assert project.run("check", path).stderr == result.stderr, "what is kept says the same"
    project.run("fix", "--apply", path)
    assert (project.root / path).read_bytes() == after.encode()
    assert project.run("check", path).stderr == ""


@pytest.mark.parametrize("newline", ["\n", "\r"])
def test_a_bare_ignore_is_judged_where_every_rule_looks(project: Project, newline: str) -> None:
    project.configure("ignore = []")
    text = "x.item()  # speedlint: ignore\nx = 1  # speedlint: ignore\n".replace("\n", newline)
    path = project.write("a.py", text)
    assert "note: a.py:2: there is nothing to silence;" in project.run("check", path).stderr
    project.run("fix", "--apply", path)
    assert (project.root / path).read_bytes().decode() == text[::-1].replace("erongi :tnildeeps #  ", "", 1)[::-1]


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("x.item()  # speedlint: ignore\n", ()),
        ("x = 1  # speedlint: ignore[TOY301]\n", ("--select", "TOY306")),
        ("x = 1  # speedlint: ignore[TOY3]\n", ("--ignore", "TOY306")),
        ("x = 1  # speedlint: ignore\n", ()),
        ("x = 1  # speedlint: ignore[TOY305]\n", ()),
        ("x = 1  # noqa: S301\n", ()),
        ("x = '# speedlint: ignore[TOY301]'\n", ()),
        ("crash()  # speedlint: ignore[TOY301]\n", ()),
    ],
)
def test_what_may_silence_something_is_left(project: Project, text: str, options: tuple[str, ...]) -> None:
    path = project.write("a.py", text)
    assert "silence" not in project.run("check", path, *options).stderr
    project.run("fix", "--apply", path, *options)
    assert (project.root / path).read_text() == text


def test_a_comment_at_a_call_is_left_where_the_helper_is_asked_for_too(project: Project) -> None:
    (project.root / "speedlint.toml").write_text("")
    project.write("requirements.txt", "torch==2.6.0\n")
    project.write("helper.py", "def read(loss):\n    return loss.item()\n")
    train = (
        "import torch\nfrom helper import read\n\nnet = torch.nn.Linear(2, 1).cuda()\n"
        "optimizer = torch.optim.SGD(net.parameters(), lr=0.1, fused=True)\n"
        "for batch in range(9):\n    optimizer.zero_grad()\n    loss = net(torch.ones(2, 2, device='cuda')).mean()\n"
        "    loss.backward()\n    optimizer.step()\n    total = read(loss)  # speedlint: ignore[SPD311]\n"
    )
    path = project.write("train.py", train)
    assert "SPD311" not in project.run("check", path, "--select", "SPD3").stdout
    assert "silence" not in project.run("check", ".", "--select", "SPD3").stderr
    project.run("fix", "--apply", ".", "--select", "SPD3")
    assert (project.root / path).read_text() == train
    (project.root / path).write_text(train.replace("  # speedlint: ignore[SPD311]", ""))
    assert "train.py:11" in project.run("check", path, "--select", "SPD3").stdout


def test_fix_shows_the_comments_that_it_takes_away(project: Project) -> None:
    path = project.write("a.py", "exactly()  # speedlint: ignore[TOY308]\nx = 1  # speedlint: ignore[TOY301]\n")
    result = project.run("fix", path)
    assert result.exit_code == 1
    assert "# a.py:2 comment unused-ignore: there is nothing for `TOY301` to silence" in result.stdout
    assert "-exactly()" not in result.stdout


ADDED = {
    "x.item()\n": "x.item()  # speedlint: ignore[TOY301]\n",
    "x.item()  \r\ny = 1\r\n": "x.item()  # speedlint: ignore[TOY301]\r\ny = 1\r\n",
    "risky(x.item())  # why": "risky(x.item())  # why  # speedlint: ignore[TOY301, TOY306]",
    "risky(x.item())  # speedlint: ignore[TOY301] why\n": "risky(x.item())  # speedlint: ignore[TOY301, TOY306] why\n",
    "y = (\n    x.item(),\n    '''\n''')\n": "y = (\n    x.item(),\n    '''\n''')  # speedlint: ignore[TOY301]\n",
    "for y in x.item():\n    y.item()\n": (
        "for y in x.item():  # speedlint: ignore[TOY301]\n    y.item()  # speedlint: ignore[TOY301]\n"
    ),
    "y = x + \\\n    x.item()\n": "y = x + \\\n    x.item()  # speedlint: ignore[TOY301]\n",
    "@dec(x.item())\ndef f(): ...\n": "@dec(x.item())\ndef f(): ...  # speedlint: ignore[TOY301]\n",
    "\ufeffé = x.item()  # é  # speedlint: ignore[] é\n": "\ufeffé = x.item()  # é  # speedlint: ignore[TOY301] é\n",
}


@pytest.mark.parametrize("text", ADDED)
def test_ignores_are_added(project: Project, text: str) -> None:
    path = project.write("a.py", text)
    result = project.run("check", "--add-ignores", path)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith("a.py: ")
    assert (project.root / path).read_bytes().decode() == ADDED[text]
    assert project.findings(path) == []
    assert project.run("check", path).stderr == ""


def test_ignores_are_added_for_what_is_shown(project: Project) -> None:
    path = project.write("a.py", "x.item()\nnoted()\n")
    assert project.run("check", "--add-ignores", path, "missing.py").exit_code == 2
    assert (project.root / path).read_text() == "x.item()  # speedlint: ignore[TOY301]\nnoted()\n"
