"""What `speedlint check` prints for programs: each format against its schema or the rules of who reads it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest
import xmlschema
from click.testing import CliRunner
from pydantic_sarif.model import StaticAnalysisResultsFormatSarifVersion210JsonSchema as Sarif

from speedlint import config, schemas
from speedlint.cli import main
from speedlint.files import Problem
from speedlint.output.formats import FORMATS
from speedlint.output.positions import Positions
from speedlint.output.results import Results
from speedlint.registry import Registry
from tests.conftest import ROOT, TOY_RULES, Project

MACHINE = [name for name, each in FORMATS.items() if not each.for_people]
SLOW = "def f(loss):\n    return loss.item()\n"
HOSTILE = "x.item('\x1b[2J\x07]8;; ::error::%0A ]; <b>&\"\u202e [bold] [a](1) {0} -->')\n"
ESCAPES = ("\x1b", "\x07", "\u202e")


def _printed(project: Project, style: str, *paths: str | Path) -> str:
    return project.run("check", "--notes", "--format", style, *paths or (".",)).stdout


def _all_kinds(project: Project) -> None:
    """Findings of several risks, a note, a fix of several edits, letters of several bytes, and a file with an error."""
    project.write("sub/a b.py", "é = '漢'; x.item()\r\n" + SLOW + "exactly()\nrisky()\nnoted()\n")
    project.write("clean.py", "x = 1\n")
    project.write("bad.py", "x = 1\nx.item(\n")


# JSON


def _schema(name: str) -> dict[str, Any]:
    schema: dict[str, Any] = json.loads(schemas.text(name))
    jsonschema.Draft202012Validator.check_schema(schema)
    return schema


def test_json_follows_its_schema(project: Project) -> None:
    _all_kinds(project)
    report, schema = json.loads(_printed(project, "json")), _schema("check")
    jsonschema.validate(report, schema)
    assert len(report["findings"]) == 5 and len(report["errors"]) == 1
    finding = schema["$defs"]["finding"]
    assert set(report["findings"][0]) == set(finding["required"]) == set(finding["properties"]) - {"cell"}, (
        "of notebooks alone"
    )
    del report["findings"][0]["fix"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(report, schema)


def test_json_of_a_whole_project_follows_its_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT / "fixtures" / "projects" / "clothes_bisenet")
    printed = CliRunner().invoke(main, ["check", "--notes", "--format", "json", "."], catch_exceptions=False).stdout
    jsonschema.validate(json.loads(printed), _schema("check"))


def test_json_lines_are_the_findings_and_errors_of_the_json(project: Project) -> None:
    _all_kinds(project)
    lines = [json.loads(line) for line in _printed(project, "json-lines").splitlines()]
    report = json.loads(_printed(project, "json"))
    assert lines == [*report["findings"], *report["errors"]]


def test_the_configuration_schema_has_the_keys_that_are_read(project: Project) -> None:
    schema = _schema("config")
    assert set(schema["properties"]) == set(config._KEYS)
    for key, described in schema["properties"].items():
        examples = [*described.get("examples", []), *described.get("enum", [])]
        for example in examples:
            jsonschema.validate({key: example}, schema)
            project.write("speedlint.toml", _toml(key, example))
            assert config.load((project.root,)) is not None
    wrongs: list[dict[str, Any]] = [{"selects": []}, {"select": "SPD3"}, {"risk": "high"}, {"torch": "two"}]
    for wrong in wrongs:
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, schema)


def _toml(key: str, value: object) -> str:
    if isinstance(value, dict):
        return f"[{key}]\n" + "".join(f"{json.dumps(name)} = {json.dumps(words)}\n" for name, words in value.items())
    return f"{key} = {json.dumps(value)}\n"


@pytest.mark.parametrize("name", schemas.NAMES)
def test_schemas_are_printed(project: Project, name: str) -> None:
    assert json.loads(project.run("schema", name).stdout) == _schema(name)


# SARIF


def _sarif(project: Project, *paths: str | Path) -> dict[str, Any]:
    """The run of a log that holds to SARIF 2.1.0: the model is generated from its schema."""
    log = json.loads(_printed(project, "sarif", *paths))
    Sarif.model_validate(log)
    (run,) = log["runs"]
    assert isinstance(run, dict)
    return run


def test_sarif_has_rules_fixes_and_errors(project: Project) -> None:
    _all_kinds(project)
    run = _sarif(project)
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == ["TOY301", "TOY302", "TOY306", "TOY308"]
    assert all(rule["help"]["markdown"] and rule["shortDescription"]["text"] for rule in rules)
    assert {each["level"] for each in run["results"]} == {"warning", "note"}
    assert all(rules[each["ruleIndex"]]["id"] == each["ruleId"] for each in run["results"])
    (problem,) = run["invocations"][0]["toolExecutionNotifications"]
    assert problem["locations"][0]["physicalLocation"]["region"] == {"startLine": 2}
    assert run["invocations"][0]["executionSuccessful"] is False


def test_sarif_counts_characters_and_the_fix_is_where_they_are(project: Project) -> None:
    _all_kinds(project)
    first = _sarif(project)["results"][0]
    place = first["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "sub/a%20b.py", "uriBaseId": "%SRCROOT%"}
    assert place["region"] == {"startLine": 1, "startColumn": 10, "endLine": 1, "endColumn": 18}
    (change,) = first["fixes"][0]["artifactChanges"]
    assert change["replacements"] == [
        {
            "deletedRegion": {"startLine": 1, "startColumn": 12, "endLine": 1, "endColumn": 16},
            "insertedContent": {"text": "detach"},
        }
    ]
    assert first["fixes"][0]["description"]["text"].startswith("numeric: ")


def test_sarif_of_a_whole_project(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT / "fixtures" / "projects" / "clothes_bisenet")
    log = json.loads(CliRunner().invoke(main, ["check", "--format", "sarif", "."], catch_exceptions=False).stdout)
    Sarif.model_validate(log)
    results = log["runs"][0]["results"]
    assert all(rule["helpUri"].endswith(f"/rules/{rule['id']}/") for rule in log["runs"][0]["tool"]["driver"]["rules"])
    related = [place for each in results for place in each.get("relatedLocations", ())]
    assert related and all(
        place["message"]["text"] and "startLine" in place["physicalLocation"]["region"] for place in related
    )
    files = [
        {change["artifactLocation"]["uri"] for change in each["fixes"][0]["artifactChanges"]}
        for each in results
        if "fixes" in each
    ]
    assert any("config.py" in each for each in files)


def test_fingerprints_stay_while_lines_move_and_tell_equal_lines_apart(project: Project) -> None:
    def prints() -> list[str]:
        return [each["partialFingerprints"]["speedlint/v1"] for each in _sarif(project, "a.py")["results"]]

    project.write("a.py", "x.item()\ny.item()\nx.item()\n")
    before = prints()
    assert len(set(before)) == 3
    project.write("a.py", "# new\n\nx.item()\nz = 1\nif z:\n    y.item()\nx.item()\n")
    assert prints() == before
    assert [each["fingerprint"] for each in json.loads(_printed(project, "gitlab", "a.py"))] == before
    project.write("a.py", "x.item(0)\ny.item()\nx.item()\n")
    assert [each in before for each in prints()] == [False, True, True]


# Others


def test_github_commands(project: Project) -> None:
    _all_kinds(project)
    lines = _printed(project, "github").splitlines()
    assert lines[0] == (
        "::warning file=sub/a b.py,line=1,endLine=1,col=10,endColumn=18,title=TOY301 called-item"
        "::`x.item()` is slow. Instead: write something else"
    )
    assert [line.split()[0] for line in lines] == ["::warning", "::notice", "::warning", "::warning", "::notice", "::error"]
    assert lines[-1].startswith("::error file=bad.py,line=2,title=speedlint::")
    project.write("a.py", "x = y(\n).item(\n)\n")
    assert ",line=1,endLine=3,title=" in _printed(project, "github", "a.py")


def test_azure_commands(project: Project) -> None:
    _all_kinds(project)
    lines = _printed(project, "azure").splitlines()
    assert lines[0] == (
        "##vso[task.logissue type=warning;sourcepath=sub/a b.py;linenumber=1;columnnumber=10;code=TOY301;]"
        "called-item: `x.item()` is slow. Instead: write something else"
    )
    assert lines[-1].startswith("##vso[task.logissue type=error;sourcepath=bad.py;linenumber=2;]")


def test_gitlab_issues_have_what_gitlab_requires(project: Project) -> None:
    _all_kinds(project)
    issues = json.loads(_printed(project, "gitlab"))
    jsonschema.validate(issues, GITLAB)
    assert len({issue["fingerprint"] for issue in issues}) == len(issues) == 6
    assert issues[-1]["check_name"] == "speedlint-error"


GITLAB = json.loads((ROOT / "tests" / "schemas" / "gitlab-code-quality.json").read_text("utf-8"))


@pytest.mark.parametrize(
    "wrong",
    [
        {"fingerprint": ""},
        {"severity": "warning"},
        {"location": {"path": "./a.py", "lines": {"begin": 1}}},
        {"location": {"path": "/a.py", "lines": {"begin": 1}}},
        {"location": {"path": "a.py", "lines": {"begin": 0}}},
        {"location": {"path": "a.py"}},
        {"description": None},
    ],
)
def test_the_schema_of_gitlab_refuses_what_gitlab_refuses(project: Project, wrong: dict[str, object]) -> None:
    _all_kinds(project)
    issue = json.loads(_printed(project, "gitlab"))[0]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate([issue | wrong], GITLAB)


JUNIT = xmlschema.XMLSchema(ROOT / "tests" / "schemas" / "junit-10.xsd")
"""What Jenkins' xUnit plugin takes."""


def _junit(text: str) -> ElementTree.Element:
    JUNIT.validate(text)
    return ElementTree.fromstring(text.encode())


def test_errors_that_read_the_same_are_two_issues(project: Project) -> None:
    found = [Problem(Path("a.py"), line, "is wrong") for line in (1, 2)]
    registry = Registry.load((TOY_RULES,))
    results = Results((), 0, (), found, config.load((project.root,)), registry)
    (printed,) = FORMATS["gitlab"].render(results)
    first, second = json.loads(printed)
    assert first["fingerprint"] != second["fingerprint"]


@pytest.mark.parametrize("now", [b"", b"x\n", "é".encode(), b"# coding: rot13\n", b"\xff"])
def test_a_file_that_changes_before_it_is_told_of_has_no_places(now: bytes) -> None:
    positions = Positions(lambda _: now)
    assert positions.at(Path("a.py"), 99) is None
    assert positions.of(Path("a.py"), 99, 1) is None
    positions.at(Path("a.py"), 1)


def test_junit_has_a_suite_for_each_file(project: Project) -> None:
    _all_kinds(project)
    root = _junit(_printed(project, "junit"))
    assert {key: root.get(key) for key in ("tests", "failures", "errors")} == {"tests": "7", "failures": "5", "errors": "1"}
    assert [(suite.get("name"), suite.get("tests")) for suite in root] == [
        ("bad.py", "1"),
        ("clean.py", "1"),
        ("sub/a b.py", "5"),
    ]
    case = root[2][0]
    assert case.get("name") == "TOY301 called-item 1:10"
    assert "x.item()" in (case[0].text or "")


def test_rdjson_counts_bytes_and_suggests_whole_fixes_only(project: Project) -> None:
    _all_kinds(project)
    diagnostics = json.loads(_printed(project, "rdjson"))["diagnostics"]
    assert diagnostics[0]["location"] == {
        "path": "sub/a b.py",
        "range": {"start": {"line": 1, "column": 13}, "end": {"line": 1, "column": 21}},
    }
    assert diagnostics[0]["suggestions"] == [
        {"range": {"start": {"line": 1, "column": 15}, "end": {"line": 1, "column": 19}}, "text": "detach"}
    ]
    assert {each["severity"] for each in diagnostics} == {"WARNING", "INFO", "ERROR"}
    assert "suggestions" not in diagnostics[-2], "a note's fix is only shown"


# All


@pytest.mark.parametrize("style", FORMATS)
def test_text_from_files_is_data_in_every_format(project: Project, style: str) -> None:
    project.write("[red]<b>&;]\x1b[31m,:\n.py", HOSTILE)
    project.write("bad\x1b[31m.py", "x.item(\n")
    for options in ((), ("--color", "always")):
        printed = CliRunner().invoke(main, ["check", ".", "--format", style, *options], color=True).stdout
        plain = re.sub(r"\x1b\[[\d;]*m", "", printed) if options else printed
        assert not any(each in plain for each in ESCAPES)
    if style in ("json", "gitlab", "rdjson"):
        json.loads(printed)
    elif style == "sarif":
        message = json.loads(printed)["runs"][0]["results"][0]["message"]["text"]
        assert "\\[a](1)" in message
        Sarif.model_validate(json.loads(printed))
    elif style == "junit":
        assert "<b>&" in (_junit(printed)[0].get("name") or "")
    elif style == "github":
        assert all(
            re.fullmatch(r"::(warning|error) file=[^:,\n]+(,\w+=[^:,\n]+)+::[^\n]*", line) for line in printed.splitlines()
        )
        assert "%250A" in printed
    elif style == "azure":
        assert all(re.fullmatch(r"##vso\[task\.logissue (\w+=[^;\]]+;)+\][^\n]*", line) for line in printed.splitlines())
    elif style == "json-lines":
        assert len([json.loads(line) for line in printed.splitlines()]) == 2


@pytest.mark.parametrize("style", MACHINE)
def test_nothing_found_is_a_valid_report(project: Project, style: str) -> None:
    path = project.write("a.py", "x = 1\n")
    result = project.run("check", path, "--format", style)
    assert (result.exit_code, result.stderr) == (0, "")
    if style == "junit":
        assert _junit(result.stdout).get("failures") == "0"
    elif style == "sarif":
        Sarif.model_validate(json.loads(result.stdout))
    elif style in ("json", "gitlab", "rdjson"):
        assert "TOY" not in json.dumps(json.loads(result.stdout))
    else:
        assert result.stdout == ""


@pytest.mark.parametrize("style", FORMATS)
def test_a_format_is_the_same_on_every_run(project: Project, style: str) -> None:
    _all_kinds(project)
    assert _printed(project, style) == _printed(project, style)
