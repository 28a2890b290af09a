"""The hook of `mkdocs build`: each rule's page, from its docstring and fixture, and the first page, from the README."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from speedlint import docs
from speedlint.families import FAMILIES
from speedlint.registry import Registry
from speedlint.rule import Rule

ROOT = Path(__file__).parent.parent
_TITLES = dict(FAMILIES.values())
_DIFF_LINES = 40
"""The longest diff that a page shows, in lines: about a screen."""
_NOTES = 6
"""The most lines of a fixture that a page gives as notes."""
_ALL = "rules.md"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages that are made from the rules and from the README."""
    files.append(File.generated(config, "index.md", content=first_page()))
    if (page := files.get_file_from_path(_ALL)) is not None:
        files.remove(page)
    registry = Registry.load()
    rules = [*map(registry.loaded, registry.rules)]
    files.append(File.generated(config, _ALL, content=table(rules)))
    for rule in rules:
        files.append(File.generated(config, f"rules/{rule.code}.md", content=rule_page(rule)))
    _complete(config, files)
    return files


def _complete(config: MkDocsConfig, files: Files) -> None:
    """Adds the pages that the navigation does not name to its guides."""
    guides = next(entry["Guides"] for entry in config.nav or () if "Guides" in entry)
    named = str(config.nav)
    pages = sorted(page.src_uri for page in files.documentation_pages() if not page.src_uri.startswith("rules/"))
    guides += [page for page in pages if f"'{page}'" not in named]


def first_page() -> str:
    """The README, with its links to other pages as the site has them."""
    return (ROOT / "README.md").read_text().replace("](docs/", "](")


def table(rules: Sequence[Rule]) -> str:
    """All rules in their families, each with a link to its page."""
    parts = ["# Rules", "`speedlint explain CODE` prints a rule's page. Some rules are off unless their code is selected."]
    for title, group in groupby(rules, lambda rule: _TITLES[rule.code[:4]]):
        parts.append(f"## {title}")
        parts.append("\n".join(("| code | name | what is slow |", "|---|---|---|", *map(_row, group))))
    return "\n\n".join(parts) + "\n"


def _row(rule: Rule) -> str:
    text = docs.summary(rule.docs).replace("|", "\\|")
    return f"| [{rule.code}](rules/{rule.code}.md) | {rule.name} | {text}{' Only when selected.' if rule.off else ''} |"


def rule_page(rule: Rule) -> str:
    """The page of one rule."""
    said = docs.sections(rule.docs)
    fixture = ROOT / "fixtures" / "rules" / f"{rule.name.replace('-', '_')}.py"
    parts = {
        "What it finds": said["What it does"],
        "Why it is slow": said["Why it is slow"],
        "What it costs": _cost(rule),
        "Example": said["Example"],
        "Use instead": said["Use instead"],
        "What the fix writes": _written(fixture),
        "Risk of the fix": said["Fix safety"],
        "When it is a note": _notes(rule, fixture.read_text()),
        "Silence it": _silenced(rule),
        "Sources": said["Sources"],
    }
    kind = f"{_TITLES[rule.code[:4]]} · cost: {rule.worth.worth.value} · {'off unless selected' if rule.off else 'on'}"
    head = f"# {rule.code} {rule.name}\n\n*{kind}*\n\n{docs.summary(rule.docs)}"
    return "\n\n".join((head, *(f"## {heading}\n\n{text}" for heading, text in parts.items()))) + "\n"


def _cost(rule: Rule) -> str:
    share = rule.worth
    if not share.because:
        return "Not known without the script: the finding says what is seen of it there."
    return (
        f"{share.worth.value.capitalize()}: {share.because}. That is an estimate where nothing more is known of the script; "
        "[`speedlint verify`](../verify.md) measures it."
    )


def _written(fixture: Path) -> str:
    """The first changes that the fix makes in the rule's fixture."""
    fixed = fixture.with_suffix(".fixed")
    before = fixture.read_text().splitlines()
    after = fixed.read_text().splitlines() if fixed.exists() else before
    diff = list(difflib.unified_diff(before, after, fixture.name, fixture.name, n=3, lineterm=""))
    if not diff:
        return "Nothing. The finding says what to do; the next heading says why it is not written."
    starts = [number for number, line in enumerate(diff) if line.startswith("@@")]
    ends = [*starts[1:], len(diff)]
    whole = [end for end in ends if end <= _DIFF_LINES] or ends[:1]
    more = len(starts) - len(whole)
    told = f"Some of what it writes in `fixtures/rules/{fixture.name}`" if more else f"In `fixtures/rules/{fixture.name}`"
    return f"{told}, the file that the tests hold the rule to:\n\n```diff\n" + "\n".join(diff[: whole[-1]]) + "\n```"


def _notes(rule: Rule, text: str) -> str:
    """When a finding is a note, and lines of the fixture where it is."""
    general = (
        "A finding is a note where the line is throttled (`if step % 100 == 0`), runs once in an epoch or in all, or is "
        "worth less than half a percent of a step. `--notes` shows notes."
    )
    shown = [line.partition("#")[0].strip() for line in text.splitlines() if re.search(rf"#.*\b{rule.code} note\b", line)]
    lines = list(dict.fromkeys(line for line in shown if line))[:_NOTES]
    if not lines:
        return general
    return f"{general}\n\nLines of `fixtures/rules` that are notes:\n\n```python\n" + "\n".join(lines) + "\n```"


def _silenced(rule: Rule) -> str:
    off = f"This rule is off unless it is selected: `--select {rule.code}`.\n\n" if rule.off else ""
    return (
        f'{off}On one line, or with `ignore = ["{rule.code}"]` in the [configuration](../configuration.md):\n\n'
        f"```python\nslow_line()  # speedlint: ignore[{rule.code}] why it has to stay\n```"
    )
