"""The checklist before a release: what must agree, what must pass, what is built. It publishes nothing.

    python tools/release.py [--quick] [--dist FOLDER]
    python tools/release.py --place ORGANISATION/speedlint

It first looks at what takes no time, and names all that does not hold: the work tree, the version, the changelog, the tag,
the addresses. Then it runs the tests (the slow ones too), style, types and the documentation's site, builds the package into
``dist/`` and has twine check it. ``--quick`` ends before the tests. At the end it prints what is left to a person.

The place of the repository is that of ``pyproject.toml``; ``--place`` writes it wherever it is named, and does no more.
"""

from __future__ import annotations

import argparse
import datetime
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
OWNER = "OWNER"
"""What stands in addresses until it is known where the repository will be."""
_NAMING = ("pyproject.toml", "README.md", "CONTRIBUTING.md", "docs/*.md", "mkdocs.yml", "action.yml", "editors/vscode/*.*")
"""The files that may name the repository or a release of it."""
_PLACE = re.compile(r"(?:https://github\.com/|\buses: )([\w.-]+/speedlint)\b")
_VERSION = re.compile(r'^__version__ = "(.+)"$', re.MULTILINE)
_RELEASED = re.compile(r"^## (\S+)(?: - (.+))?$", re.MULTILINE)
_NAMED = re.compile(r"(?:rev: |speedlint@)v([\d.]*\d)")
STEPS = (
    ("pytest",),
    ("pytest", "-m", "slow"),
    ("ruff", "check", "."),
    ("ruff", "format", "--check", "."),
    ("mypy",),
    ("mkdocs", "build", "--strict"),
)


def version(root: Path) -> str:
    """The version that the package says it has."""
    found = _VERSION.search((root / "speedlint" / "__init__.py").read_text())
    assert found is not None
    return found[1]


def disagreements(root: Path, today: datetime.date) -> Iterator[str]:
    """What does not hold, a sentence each."""
    release = version(root)
    if _git(root, "status", "--porcelain"):
        yield "the work tree has changes that are not committed"
    if _git(root, "tag", "--list", f"v{release}"):
        yield f"the tag v{release} exists: raise __version__ in speedlint/__init__.py"
    yield from _changelog(root, release, today)
    place = _PLACE.findall((root / "pyproject.toml").read_text())[0]
    for path in _naming(root):
        text, name = path.read_text(), path.relative_to(root)
        if re.search(rf"\b{OWNER}\b", text):
            yield f"{name} speaks of {OWNER}: see tools/release.py --place"
        for other in sorted(set(_PLACE.findall(text)) - {place}):
            yield f"{name} names {other}, and pyproject.toml {place}"
        for named in sorted(set(_NAMED.findall(text)) - {release}):
            yield f"{name} names v{named}, not v{release}"


def put(root: Path, place: str) -> None:
    """Writes where the repository is into every file that names it."""
    now = _PLACE.findall((root / "pyproject.toml").read_text())[0]
    for path in _naming(root):
        text = path.read_text()
        if now in text:
            path.write_text(text.replace(now, place))


def _naming(root: Path) -> Iterator[Path]:
    for pattern in _NAMING:
        yield from sorted(root.glob(pattern))


def _changelog(root: Path, release: str, today: datetime.date) -> Iterator[str]:
    newest = _RELEASED.search((root / "CHANGELOG.md").read_text())
    if newest is None or newest[1] != release:
        yield f"CHANGELOG.md begins with {newest[1] if newest else 'nothing'}, not {release}"
    elif newest[2] != today.isoformat():
        yield f"CHANGELOG.md dates {release} {newest[2] or 'not at all'}, not {today.isoformat()}"


def _git(root: Path, *arguments: str) -> str:
    return subprocess.run(("git", *arguments), cwd=root, capture_output=True, text=True, check=True).stdout.strip()


def _run(*command: str | Path) -> bool:
    print("==", *command, flush=True)
    return subprocess.run((sys.executable, "-m", *command), cwd=ROOT, check=False).returncode == 0


def main() -> None:
    """Goes through the list; exits with 1 at the first part of it that does not hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="end before the tests")
    parser.add_argument("--dist", type=Path, default=ROOT / "dist")
    parser.add_argument("--place", metavar="NAME", help="write where the repository is, and end")
    options = parser.parse_args()
    if options.place:
        put(ROOT, options.place)
        return
    found = list(disagreements(ROOT, datetime.date.today()))
    if found:
        sys.exit("\n".join(f"- {each}" for each in found))
    if options.quick:
        return
    if list(options.dist.glob("*")):
        sys.exit(f"- {options.dist} is not empty")
    for step in (*STEPS, ("build", "--outdir", options.dist)):
        if not _run(*step):
            sys.exit(1)
    if not _run("twine", "check", "--strict", *sorted(options.dist.iterdir())):
        sys.exit(1)
    tag = f"v{version(ROOT)}"
    print(f"\nLeft to do:\n  git tag {tag} && git push origin {tag}\n  {sys.executable} -m twine upload {options.dist}/*")


if __name__ == "__main__":
    main()
