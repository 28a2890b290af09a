"""``--format sarif``: SARIF 2.1.0, for GitHub's code scanning and other readers.

https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html
"""

from __future__ import annotations

import itertools
import json
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from speedlint import __version__, docs
from speedlint.diagnostic import Diagnostic, Place, Proposal
from speedlint.files import Problem
from speedlint.output.fingerprint import fingerprints
from speedlint.output.results import Results, sentence
from speedlint.output.terminal import shown, visible
from speedlint.output.text import RISKS
from speedlint.rule import Edit, Rule

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_ROOT = "%SRCROOT%"
_FINGERPRINT = "speedlint/v1"
_LINK = re.compile(r"\[(?=[^\]]*\]\()")
"""What begins a link in a message: ``[text](target)``."""

_Json = dict[str, Any]


def render(results: Results) -> Iterator[str]:
    """One log with one run."""
    codes = sorted({each.code for each in results.diagnostics})
    named = zip(results.diagnostics, fingerprints(results.diagnostics), strict=True)
    run = {
        "tool": {"driver": _driver([results.registry.loaded(results.registry.by_code[code]) for code in codes])},
        "originalUriBaseIds": {_ROOT: {"uri": f"{Path.cwd().as_uri()}/"}},
        "columnKind": "unicodeCodePoints",
        "invocations": [_invocation(results)],
        "results": [_result(found, name, codes.index(found.code), results) for found, name in named],
    }
    yield json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2)


def _driver(rules: Iterable[Rule]) -> _Json:
    described = [_rule(rule) for rule in rules]
    return {"name": "speedlint", "version": __version__, "informationUri": docs.SITE, "rules": described}


def _rule(rule: Rule) -> _Json:
    url, summary = docs.rule_url(rule.code), docs.summary(rule.docs) or rule.name
    page = docs.page(rule) or summary
    return {
        "id": rule.code,
        "name": rule.name,
        "shortDescription": {"text": summary},
        "fullDescription": {"text": docs.why(rule.docs) or summary},
        "help": {"text": page, "markdown": page},
        **({"helpUri": url} if url else {}),
        "properties": {"tags": ["performance", "pytorch"]},
    }


def _result(found: Diagnostic, fingerprint: str, index: int, results: Results) -> _Json:
    result: _Json = {
        "ruleId": found.code,
        "ruleIndex": index,
        "level": found.level.value,
        "message": {"text": _escaped(sentence(found))},
        "locations": [{"physicalLocation": {"artifactLocation": _artifact(found.path), "region": _region(found)}}],
        "partialFingerprints": {_FINGERPRINT: fingerprint},
        "properties": {"worth": found.worth.worth.value, "because": found.worth.because, "frequency": found.frequency},
    }
    if found.related:
        result["relatedLocations"] = [_related(number, place) for number, place in enumerate(found.related)]
    if found.fix is not None and found.fix.applicable and (changes := _changes(found.fix, results)):
        risk = f"{found.fix.risk.name.lower()}: {RISKS[found.fix.risk]}"
        result["fixes"] = [{"description": {"text": risk}, "artifactChanges": changes}]
    return result


def _region(found: Diagnostic) -> _Json:
    return {
        "startLine": found.line,
        "startColumn": found.column,
        "endLine": found.end_line,
        "endColumn": found.end_column,
    }


def _related(number: int, place: Place) -> _Json:
    return {
        "id": number,
        "message": {"text": _escaped(visible(place.message))},
        "physicalLocation": {"artifactLocation": _artifact(place.path), "region": {"startLine": place.line}},
    }


def _changes(fix: Proposal, results: Results) -> list[_Json]:
    """The edits of each file; none at all where one of the files cannot be read any more."""
    changes = []
    for path, edits in itertools.groupby(sorted(fix.edits), key=lambda edit: edit.path):
        replacements = [_replacement(edit, results) for edit in edits]
        if None in replacements:
            return []
        changes.append({"artifactLocation": _artifact(path), "replacements": replacements})
    return changes


def _replacement(edit: Edit, results: Results) -> _Json | None:
    start, end = (results.positions.at(edit.path, offset) for offset in (edit.start, edit.end))
    if start is None or end is None:
        return None
    region = {"startLine": start.line, "startColumn": start.column, "endLine": end.line, "endColumn": end.column}
    return {"deletedRegion": region, "insertedContent": {"text": edit.text}}


def _invocation(results: Results) -> _Json:
    notes = [_notification(each) for each in results.problems]
    return {"executionSuccessful": not notes, **({"toolExecutionNotifications": notes} if notes else {})}


def _notification(problem: Problem) -> _Json:
    place: _Json = {"artifactLocation": _artifact(problem.path)}
    if problem.line:
        place["region"] = {"startLine": problem.line}
    text = _escaped(visible(problem.what))
    return {"level": "error", "message": {"text": text}, "locations": [{"physicalLocation": place}]}


def _artifact(path: Path) -> _Json:
    name = shown(path)
    uri = quote(os.fsencode(name.replace(os.sep, "/")))
    return {"uri": f"file://{uri}"} if Path(name).is_absolute() else {"uri": uri, "uriBaseId": _ROOT}


def _escaped(text: str) -> str:
    """Text in which nothing reads as a link of SARIF's own."""
    return _LINK.sub(r"\\[", text)
