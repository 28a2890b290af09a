"""``--statistics``: how many findings each rule has."""

from __future__ import annotations

import collections
import json
from collections.abc import Iterator

from speedlint.errors import UserError
from speedlint.output import closing
from speedlint.output.formats import FORMATS
from speedlint.output.results import Results
from speedlint.output.terminal import emphasised
from speedlint.rule import Level, Worth


def render(results: Results, style: str | None) -> Iterator[str]:
    """A line for each rule, the one with most findings first, then the closing lines; or all as JSON. Raises UserError."""
    if style is not None and style != "json" and not FORMATS[style].for_people:
        raise UserError(f"--statistics knows no format `{style}`; leave --format out, or take json")
    counts = collections.Counter(each.code for each in results.diagnostics)
    fixable = collections.Counter(each.code for each in results.diagnostics if each.fix is not None and each.fix.applicable)
    most = sorted(counts, key=lambda code: (-counts[code], code))
    names = {code: results.registry.by_code[code].name for code in most}
    if style == "json":
        rows = [{"code": code, "rule": names[code], "count": counts[code], "fixable": fixable[code]} for code in most]
        yield json.dumps(rows, indent=2)
        return
    digits = max((len(str(number)) for number in counts.values()), default=0)
    for code in most:
        cure = f" ({fixable[code]} with a fix)" if fixable[code] else ""
        yield f"{counts[code]:>{digits}} {emphasised(results.code(code), Level.WARNING, Worth.LOW)} {names[code]}{cure}"
    yield from closing.lines(results)
