"""``--format json-lines``: an object in a line for each finding and each error, as ``--format json`` has them."""

from __future__ import annotations

import json
from collections.abc import Iterator

from speedlint.output.formats.json import error, finding
from speedlint.output.results import Results


def render(results: Results) -> Iterator[str]:
    """A line for each finding and each error, which is the one that has no ``code``."""
    for each, cause in results.with_causes:
        yield json.dumps(finding(each, cause))
    for problem in results.problems:
        yield json.dumps(error(problem))
