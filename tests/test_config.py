"""Settings: where they are found, what they may hold, and the command line over them."""

from __future__ import annotations

from pathlib import Path

import pytest

from speedlint import config
from speedlint.errors import UserError
from speedlint.rule import Risk
from tests.conftest import Project

FULL = """
[tool.speedlint]
extend = "base.toml"
select = ["SPD3"]
extend-select = ["SPD411"]
ignore = ["SPD301"]
fixable = ["SPD3"]
unfixable = ["SPD302"]
exclude = ["old/"]
force-exclude = true
tests = true
notes = true
format = "json"
baseline = "known.json"
risk = "exact"
amp = "bf16"
torch = "2.4"
rule-paths = ["lint"]
[tool.speedlint.per-file-ignores]
"eval.py" = ["SPD303"]
"""


def _load(path: Path, text: str, name: str = "speedlint.toml") -> config.Settings:
    (path / name).write_text(text)
    return config.load((path,))


def test_every_key(tmp_path: Path) -> None:
    (tmp_path / "base.toml").write_text("")
    assert _load(tmp_path, FULL, "pyproject.toml") == config.Settings(
        root=tmp_path,
        select=("SPD3",),
        extend_select=("SPD411",),
        ignore=("SPD301",),
        fixable=("SPD3",),
        unfixable=("SPD302",),
        force_exclude=True,
        tests=True,
        notes=True,
        format="json",
        baseline=tmp_path / "known.json",
        exclude=("old/",),
        per_file_ignores=(("eval.py", ("SPD303",)),),
        risk=Risk.EXACT,
        amp="bf16",
        torch=(2, 4),
        torch_from=str(tmp_path / "pyproject.toml"),
        rule_paths=(tmp_path / "lint",),
    )


def test_defaults_without_a_file(tmp_path: Path) -> None:
    assert config.load((tmp_path,)) == config.Settings(root=tmp_path)


def test_command_line_wins(tmp_path: Path) -> None:
    (tmp_path / "base.toml").write_text("")
    (tmp_path / "pyproject.toml").write_text(FULL)
    settings = config.load((tmp_path,), select=("SPD5",), ignore=(), torch=(2, 1), amp=None)
    assert (settings.select, settings.ignore, settings.amp) == (("SPD5",), ("SPD301",), "bf16")
    assert (settings.torch, settings.torch_from) == ((2, 1), "--torch")
    (tmp_path / "pyproject.toml").write_text("[tool.speedlint]\nrisk = 'behavior'")
    assert config.load((tmp_path,), risk=Risk.EXACT).risk is Risk.EXACT


def test_nearest_file_above_the_common_parent(tmp_path: Path) -> None:
    for folder in ("a/b", "a/c", "a/b/deep"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "speedlint.toml").write_text('amp = "bf16"')
    (tmp_path / "a" / "pyproject.toml").write_text("[project]\nname = 'no settings here'")
    (tmp_path / "a" / "b" / "speedlint.toml").write_text('risk = "exact"')
    (tmp_path / "a" / "b" / "deep" / "x.py").write_text("")
    assert config.load((tmp_path / "a/b/deep/x.py",)).risk is Risk.EXACT
    assert config.load((tmp_path / "a/b", tmp_path / "a/c")).amp == "bf16"


def test_file_that_is_named(tmp_path: Path) -> None:
    (tmp_path / "other.toml").write_text('amp = "bf16"')
    assert config.load((tmp_path,), tmp_path / "other.toml").amp == "bf16"
    with pytest.raises(UserError, match=r"missing\.toml: cannot be read"):
        config.load((tmp_path,), tmp_path / "missing.toml")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("selct = []", r"unknown key `selct` \(did you mean `select`\?\)"),
        ("per_file_ignores = {}", r"\(did you mean `per-file-ignores`\?\)"),
        ("select = 'SPD3'", r"`select` must be a list of codes, such as \[\"SPD3\"\], not `'SPD3'`"),
        ("select = [1]", "`select` must be a list"),
        ("per-file-ignores = {'a.py' = 'SPD3'}", "`per-file-ignores` must be a table of lists"),
        ("per-file-ignores = ['a.py']", "`per-file-ignores` must be a table of lists"),
        ("risk = 'high'", "`risk` must be one of exact, numeric, behavior, not `'high'`"),
        ("risk = 1", "`risk` must be one of"),
        ("amp = 'fp8'", "`amp` must be one of fp16, bf16"),
        ("torch = 2.10", "`torch` must be a release"),
        ("torch = 'new'", "`torch` must be a release"),
        ("select = [", "is not valid TOML"),
        ("[tool.speedlint]\nselect = []", r"holds a table `\[tool.speedlint\]`; here its keys stand alone, at the top"),
        ("extend = 'missing.toml'", r"`extend` leads to .*missing.toml: cannot be read"),
        ("notes = 'yes'", "`notes` must be true or false"),
        ("force-exclude = 1", "`force-exclude` must be true or false"),
        ("baseline = ''", "`baseline` must be a file"),
        ("format = []", "`format` must be a format"),
        ("select = ['SPD3', 'SPD1']\nignore = ['spd3']", "`SPD3` is in `select` and in `ignore`; take it out of one"),
        ("extend-select = ['SPD411']\nignore = ['SPD411']", "`SPD411` is in `extend-select` and in `ignore`"),
        ("fixable = ['ALL']\nunfixable = ['ALL']", "`ALL` is in `fixable` and in `unfixable`"),
        ("extend = 'speedlint.toml'", "`extend` leads back to this file"),
    ],
)
def test_wrong_settings_are_one_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        _load(tmp_path, text)
    assert str(caught.value).startswith(str(tmp_path / "speedlint.toml"))
    assert "\n" not in str(caught.value)


def test_broken_pyproject_without_settings_is_not_speedlints_to_judge(tmp_path: Path) -> None:
    assert _load(tmp_path, "[broken", "pyproject.toml") == config.Settings(root=tmp_path)


def test_wrong_key_at_the_command_line(project: Project) -> None:
    project.configure("selekt = []")
    result = project.run("check", ".")
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ")
    assert "did you mean `select`?" in result.stderr


def test_per_file_ignores(project: Project) -> None:
    project.configure("select = ['TOY']\nper-file-ignores = {'old/**' = ['TOY3'], 'b.py' = ['risky-call']}")
    for name in ("a.py", "b.py", "old/c.py"):
        project.write(name, "risky(), exactly()\n")
    found = [(each["path"], each["code"]) for each in project.findings(".")]
    assert found == [("a.py", "TOY306"), ("a.py", "TOY308"), ("b.py", "TOY308")]


def test_unknown_code_in_per_file_ignores(project: Project) -> None:
    project.configure("per-file-ignores = {'a.py' = ['TOY399']}")
    said = project.run("check", ".").stderr
    assert said.startswith(f"error: {project.root / 'speedlint.toml'}: `TOY399` selects no rule")


def test_unknown_option_value(project: Project) -> None:
    assert "no torch release" in project.run("check", ".", "--torch", "new").stderr
    assert project.run("check", ".", "--torch", "new").exit_code == 2
