"""``--format junit``: the XML of JUnit as Jenkins reads it: a suite for each file, a failure for each finding.

See junit-10.xsd of https://github.com/jenkinsci/xunit-plugin.
"""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree import ElementTree

from speedlint.diagnostic import Diagnostic
from speedlint.files import Problem
from speedlint.output.results import Results, portable, sentence
from speedlint.output.terminal import visible

_Element = ElementTree.Element


def render(results: Results) -> Iterator[str]:
    """The suites of all files: one without findings or errors has one case, which passes."""
    cases: dict[str, list[_Element]] = {portable(path): [] for path in results.files}
    for found in results.diagnostics:
        cases.setdefault(portable(found.path), []).append(_failure(found))
    for problem in results.problems:
        cases.setdefault(portable(problem.path), []).append(_error(problem))
    suites = [_suite(path, of_file) for path, of_file in sorted(cases.items())]
    root = _counting("testsuites", "speedlint", [case for suite in suites for case in suite])
    root.extend(suites)
    ElementTree.indent(root)
    yield '<?xml version="1.0" encoding="utf-8"?>'
    yield ElementTree.tostring(root, "unicode")


def _suite(path: str, cases: list[_Element]) -> _Element:
    suite = _counting("testsuite", path, cases or [_case(path, "speedlint")])
    suite.extend(cases or [_case(path, "speedlint")])
    return suite


def _counting(kind: str, name: str, cases: list[_Element]) -> _Element:
    counts = {"tests": len(cases)} | {
        f"{of}s": sum(each.find(of) is not None for each in cases) for of in ("failure", "error")
    }
    return _Element(kind, {"name": visible(name), **{key: str(number) for key, number in counts.items()}})


def _failure(found: Diagnostic) -> _Element:
    case = _case(portable(found.path), f"{found.code} {found.rule} {found.line}:{found.column}")
    failure = ElementTree.SubElement(case, "failure", type=found.level.value, message=visible(found.message))
    worth = found.worth
    told = [sentence(found), f"worth: {worth.worth.value}{worth.because and ': '}{worth.because}"]
    failure.text = "\n".join(map(visible, (*told, *found.excerpt)))
    return case


def _error(problem: Problem) -> _Element:
    case = _case(portable(problem.path), f"line {problem.line}" if problem.line else "file")
    ElementTree.SubElement(case, "error", type="error", message=visible(problem.what))
    return case


def _case(path: str, name: str) -> _Element:
    return _Element("testcase", {"name": visible(name), "classname": visible(path)})
