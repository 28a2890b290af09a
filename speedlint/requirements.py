"""What a project requires: the lines of its own files that name a package. Nothing of the project is run."""

from __future__ import annotations

import ast
import codecs
import fnmatch
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from speedlint import projects
from speedlint.config import toml
from speedlint.disk import Disk

Release = tuple[int, int]
_Reader = Callable[[str, str], Iterator[str]]
"""Gives the lines of a text that may be requirements on a package, by its name."""

_OF_WHOLE_PROJECTS = ("README*", "LICENSE*", "LICENCE*", ".gitignore", ".github")
"""What a copy without ``.git`` still holds at its top."""
_EXACTLY = r"(?<![=!<>~])={1,3}"
"""``==``; also ``=``, as conda writes it, in files for pip that were filled by conda."""
_LONG_NUMBER = re.compile(r"\d{10,}")
_BOUND = re.compile(rf"(?:{_EXACTLY}|>=?|~=)\s*v?(\d+)(?:\.(\d+))?")
_UPPER = re.compile(rf"({_EXACTLY}|<=?|~=)\s*v?(\d+)(?:\.(\d+))?(?:\.(\d+))?")
_LISTED = re.compile(r"^\s*([A-Za-z][\w.-]*)[ \t]+v?(\d+(?:\.\d+)+(?:\+\w+)?)(?:[ \t]+[\w.-]+){0,2}[ \t]*$")
"""A line of a list that no tool reads, or that one printed: ``torch 1.4.0``, ``torch   1.13.1   pypi_0   pypi``."""
_OLD_TORCH = re.compile(
    r"^\s*(?:[-*+]\s+)?[\[`*]*(?:python[^,\n]*,\s*)?pytorch[\]`*]*\s*(?:==?\s*|v)?0\.([123])(?:\.\d+)?[`*]*"
    r"\s*(?:,|(?:\((?![^()\n]*(?:\bor\b|newer|later|above|higher|[>+]))[^()\n]*\)\s*)?$)",
    re.IGNORECASE | re.MULTILINE,
)
_WIDE = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_NAMES = {"torch": r"(?:py)?torch"}
_BEGIN = r"^\s*(?:(?:[-*+]|\d+\.)\s+)?(?:install\s+)?[`*]*"
_OWN_LINE = re.compile(
    rf"{_BEGIN}(?:python[^,\n]*,\s*)?(?:py)?torch[`*]*\s*(?:version\s*)?"
    r"(?:={1,2}\s*(?P<pinned>\d+\.\d+)(?:\.\d+)?|[:v]?\s*v?(?P<exact>\d+\.\d+)\.\d+)(?:\+(?:cu\d+|cpu))?"
    r"(?:\s*,\s*(?:torchvision|torchaudio|torchtext|cuda|cudnn|python)[^,\n]*){0,4}"
    r"[`*.,;]*\s*(?:\(.*\)|or\s+tensorflow\b.*)?\s*(?:<br\s*/?>)?\s*$",
    re.IGNORECASE | re.MULTILINE,
)
"""A line of a README that asks for one release: ``* PyTorch 1.0.1``, ``pytorch==1.6``; ``PyTorch 1.1`` may be the oldest."""
_COMMAND = re.compile(
    r"(?:pip3?|conda|mamba)\s+(?:install|create)\b[^\n]*?\b(?:py)?torch={1,2}(?P<pinned>\d+\.\d+)", re.IGNORECASE
)
_IN_BRACKETS = re.compile(r"\(\s*pytorch\s+v?(?P<exact>\d+\.\d+)\.\d+\s*\)", re.IGNORECASE)
_LINKED = re.compile(
    rf"{_BEGIN}(?:(?:CUDA|Python|Ubuntu)\s*v?\d[\d.]*\s*,\s*){{0,3}}\[(?:py)?torch\s*v?(?P<exact>\d+\.\d+)(?:\.\d+\]\(|\]\([^)\n]*previous-versions)"
    rf"|{_BEGIN}\[(?:py)?torch\]\([^)\n]*\)[ \t]*\(?v?(?P<pinned>\d+\.\d+)\.\d+\b",
    re.IGNORECASE | re.MULTILINE,
)
"""``- [PyTorch 1.0.0](https://pytorch.org/)``, ``* [PyTorch](http://pytorch.org/) (0.3.1)``."""
_MADE_IN = re.compile(
    r"\b(?:implemented|developed|built|written)\b[^\n]{0,60}?\b(?:in|with|on|under|using|for)\b[^\n]{0,60}?"
    r"\bpytorch\s*(?:version\s*)?v?(?P<exact>\d+\.\d+)\.\d+",
    re.IGNORECASE,
)
"""What the authors wrote it for: ``implemented in PyTorch 0.4.0``; what it was tested with may be one of several."""
_BESIDE = re.compile(r"/whl/torch-(?P<exact>\d+\.\d+)\.\d+\+?\S*\.html", re.IGNORECASE)
"""The list of wheels that PyTorch Geometric has for one release: extensions that are built for it alone."""
_RANGE = re.compile(
    r"\bpytorch\s*v?\d+\.\d+(?:\.\d+)?\s*[-\u2013\u2014]\s*v?(?P<exact>\d+\.\d+)(?:\.\d+)?(?![\d.])", re.IGNORECASE
)
"""``pytorch 1.6.0-1.7.1``: the newest of those that it was run with."""
_EXACT = (_OWN_LINE, _COMMAND, _IN_BRACKETS, _LINKED, _MADE_IN, _BESIDE, _RANGE)
_OPEN = re.compile(
    r"\b(?:py)?torch[`*\]]*\s*(?:versions?\s*)?(?:>|≥|~=|v?\d+\.\d+(?:\.\d+)?\s*"
    r"(?:\+(?!cu|cpu)|(?:or|and)\s+(?:later|newer|higher|above|up|greater)|/\s*v?\d|~))"
    r"|\b(?:py)?torch[`*]*\s+versions?\s+(?:higher|newer|later|above|greater)|\bother\s+(?:(?:py)?torch\s+)?versions?\s+(?:may|might|should)",
    re.IGNORECASE,
)
_TOOLKIT = re.compile(r"conda\s+install\b[^\n]*\bpytorch\b[^\n]*\bcudatoolkit={1,2}(\d+\.\d+)", re.IGNORECASE)
_TOOLKIT_PINNED = re.compile(r"^[ \t]*-[ \t]*[\"']?(?:[\w-]+::)?cudatoolkit[ \t]*={1,2}[ \t]*(\d+\.\d+)", re.MULTILINE)
"""A CUDA toolkit that a file of conda's asks for: ``- nvidia::cudatoolkit=11.1``."""
_TOOLKITS = {"8.0": 0, "9.0": 1, "10.0": 4, "9.2": 7, "11.0": 7, "10.1": 8, "11.1": 10, "10.2": 12, "11.3": 12, "11.6": 12}
_LAST_FOR_TOOLKIT: dict[str, Release] = {toolkit: (1, minor) for toolkit, minor in _TOOLKITS.items()}
"""The last torch release that PyTorch's channel of conda has for a CUDA toolkit, from its page of previous versions: later
ones than 1.12 ask for ``pytorch-cuda`` instead."""
_PYTHON = re.compile(
    rf"{_BEGIN}python[`*]*\s*(?:={{1,2}}|:)?\s*v?(3\.[5-7])(?:\.\d+)?[`*.,;]*\s*(?:pip\s+packages\s*:?|\(.*\))?\s*$"
    r"|conda\s+create\b[^\n]*\bpython={1,2}(3\.[5-7])\b",
    re.IGNORECASE | re.MULTILINE,
)
_PYTHON_2 = re.compile(
    rf"(?:{_BEGIN}|^\W*use\s+)python[`*]*\s*(?:={{1,2}}|:)?\s*v?2\.7(?:\.\d+)?(?:\s+for\s+all\b[^\n]*)?\W*$",
    re.IGNORECASE | re.MULTILINE,
)
_PYTHON_3 = re.compile(r"\bpy(?:thon)?[\s=>`*(-]*3", re.IGNORECASE)
"""A line that asks for Python 2.7, and what says that a later one is asked for somewhere."""
_PYTHON_PINNED = re.compile(r"^[ \t]*(?:-[ \t]*)?[\"']?python[ \t]*={1,2}[ \t]*(3\.\d+)", re.MULTILINE)
"""A Python that a file of conda's asks for: ``- python=3.7``, ``python=3.6.0=0``."""
_BEGINS = re.compile(r"\s*FROM\s", re.IGNORECASE)
_RUNS = re.compile(r"\s*RUN\s", re.IGNORECASE)
_INSTALLS = re.compile(r"\b(?:pip3?|conda|mamba|uv)\b.*\binstall\b")
_OTHERWISE = re.compile(r"torch[-_]\d|\b(?:poetry|uv|pipenv)\s+(?:add|install)\b.*torch", re.IGNORECASE)
"""Another way to install torch than by a name that pip or conda is given: a wheel, or what asks for it in a file."""
_IMAGE = re.compile(r"\s*FROM\s+(?:--\S+\s+)?(?:\S+/)?pytorch/pytorch:v?(\d+\.\d+)", re.IGNORECASE)
"""An image of PyTorch's own, by release: ``FROM pytorch/pytorch:1.7.1-cuda11.0-cudnn8-runtime``."""
_WHEEL = re.compile(r"^(?:[\w-]+\s*@\s*)?(?:https?|file)://\S*/([A-Za-z]\w*)-(\d+\.\d+(?:\.\d+)?)\S*\.whl(?=\s|$|#|;)")
"""A wheel by its address: ``http://download.pytorch.org/whl/cu80/torch-0.3.0.post4-cp35-cp35m-linux_x86_64.whl``."""
_LAST_FOR_PYTHON: dict[str, Release] = {
    "2.7": (1, 4),
    "3.5": (1, 5),
    "3.6": (1, 10),
    "3.7": (1, 13),
    "3.8": (2, 4),
    "3.9": (2, 8),
}
"""The last torch release that has wheels for a Python."""


def of(package: str, start: Path, root: Path, disk: Disk | None = None) -> Iterator[tuple[Path, str]]:
    """Every requirement on a package of the project around ``start``, from the innermost folder outwards."""
    disk = disk or Disk()
    named = re.compile(rf"{_NAMES.get(package, _spelled(package))}\b(?![-_.])", re.IGNORECASE)
    for file, read in _readable(start, root, disk):
        yield from ((file, line) for line in _read(file, read, package, disk) if named.match(line))


def files(start: Path, root: Path, disk: Disk) -> Iterator[Path]:
    """The files that say what the project around ``start`` requires, from the innermost folder outwards."""
    return (file for file, _ in _readable(start, root, disk))


def _readable(start: Path, root: Path, disk: Disk) -> Iterator[tuple[Path, _Reader]]:
    for folder in _project_folders(start, root, disk):
        for patterns, read in _READERS.items():
            yield from ((file, read) for file in _matching(folder, patterns, disk))


def old_torch(start: Path, root: Path, disk: Disk) -> tuple[Path, Release] | None:
    """The torch release before 0.4 that a README asks for, in a line of its own; None where none does.

    Have: ``* Pytorch 0.3``. Code of 0.4 runs on releases of today; that of 0.3, whose tensors were no variables, does not.
    """
    for folder in _project_folders(start, root, disk):
        for file in _matching(folder, ("README*",), disk):
            asked = _OLD_TORCH.search(_text(file, disk))
            if asked is not None:
                return file, (0, int(asked[1]))
    return None


def told_torch(start: Path, root: Path, disk: Disk) -> Release | None:
    """The newest torch release that the README nearest to ``start``, what it says of installing in files of their own, or a
    list of packages beside it, leaves to who does as it says; None where none of them says one.

    It is the one that a README asks for exactly, else the last one for the Python or the CUDA toolkit that is asked for.
    """
    for folder in _project_folders(start, root, disk):
        for file in (file for patterns in _TELL for file in _matching(folder, patterns, disk)):
            text = _text(file, disk)
            if "torch" in text.lower() and (told := _told(text)) is not None:
                return told
        lists = (patterns for patterns, read in _READERS.items() if read in (_from_text, _from_conda))
        texts = [_text(file, disk) for patterns in lists for file in _matching(folder, patterns, disk)]
        pythons, toolkits = (
            [each for text in texts for each in of.findall(text)] for of in (_PYTHON_PINNED, _TOOLKIT_PINNED)
        )
        if pythons or toolkits:
            return _last(pythons, toolkits)
    return None


def _text(file: Path, disk: Disk) -> str:
    """What stands in a file, nothing where it cannot be read."""
    try:
        return _decoded(disk.read(file), "replace")
    except OSError:
        return ""


def _decoded(data: bytes, errors: str = "strict") -> str:
    """The text of a file, in UTF-16 where it begins as PowerShell's do, without the numbers that are no part of a release:
    Python refuses to read those of over 4,300 digits. Raises UnicodeDecodeError by default."""
    return _LONG_NUMBER.sub("", data.decode("utf-16" if data.startswith(_WIDE) else "utf-8-sig", errors))


def _last(pythons: Sequence[str], toolkits: Sequence[str]) -> Release | None:
    """The last torch release for one of some Pythons and one of some CUDA toolkits, as far as each of a kind is known."""
    kinds = ((pythons, _LAST_FOR_PYTHON), (toolkits, _LAST_FOR_TOOLKIT))
    known = (max(map(last.__getitem__, asked)) for asked, last in kinds if asked and last.keys() >= set(asked))
    return min(known, default=None)


def _told(text: str) -> Release | None:
    if _OPEN.search(text):
        return None
    found = (match.groupdict() for pattern in _EXACT for match in pattern.finditer(text))
    named = [_release(groups.get("pinned") or groups["exact"]) for groups in found]
    if named:
        return max(named)
    pythons = [one or other for one, other in _PYTHON.findall(text)]
    if not pythons and _PYTHON_2.search(text) and not _PYTHON_3.search(text):
        pythons = ["2.7"]
    return _last(pythons, _TOOLKIT.findall(text))


def _release(text: str) -> Release:
    major, minor = text.split(".")
    return int(major), int(minor)


def _matching(folder: Path, patterns: tuple[str, ...], disk: Disk) -> list[Path]:
    """The files that one of some patterns of the same folder names, those of the first pattern first."""
    inner = patterns[0].rpartition("/")[0]
    where = folder / inner if inner else folder
    names = [pattern.rpartition("/")[2] for pattern in patterns]
    found = disk.names(str(where), *names)
    return [where / each for each in sorted(found, key=lambda each: not fnmatch.fnmatch(each, names[0]))]


def _spelled(package: str) -> str:
    """A package's name as requirements may write it."""
    return re.sub(r"[-_.]+", "[-_.]+", package)


def _project_folders(start: Path, root: Path, disk: Disk) -> list[Path]:
    """``start`` and the folders above it up to the project's own; where none is seen, to ``root``, to the current one, or to
    one that says what it requires beside a README or a licence."""
    folders = [start, *start.parents]
    for depth, folder in enumerate(folders):
        if projects.is_top(disk, str(folder)):
            return folders[: depth + 1]
    known = [folders.index(folder) for folder in (start, root, Path.cwd()) if folder in folders]
    whole = (depth for depth, folder in enumerate(folders) if _is_whole(folder, disk))
    return folders[: max(*known, next(whole, 0)) + 1]


def _is_whole(folder: Path, disk: Disk) -> bool:
    return bool(disk.names(str(folder), *_OF_WHOLE_PROJECTS)) and bool(disk.names(str(folder), *_NAMES_OF_FILES))


def _read(file: Path, read: _Reader, package: str, disk: Disk) -> list[str]:
    """The file's requirements; a file that cannot be read or parsed has none, since it is not speedlint's to judge."""
    try:
        word = re.split(r"[-_.]", package)[0].encode()
        data = disk.read(file)
        if word not in data.lower() and not data.startswith(_WIDE):
            return []
        return [_WHEEL.sub(r"\1==\2", line.strip()) for line in read(_decoded(data), package)]
    except (OSError, ValueError, SyntaxError, RecursionError, AttributeError, TypeError):
        return []


def lower_bound(requirement: str) -> Release | None:
    """The oldest release that a requirement allows, as far as it says so."""
    bounds = [(int(major), int(minor or 0)) for major, minor in _BOUND.findall(_specifiers(requirement))]
    return max(bounds, default=None)


def upper_bound(requirement: str) -> Release | None:
    """The first release that a requirement does not allow any more: ``(5, 0)`` for ``<5``, ``(4, 37)`` for ``==4.36.2``."""
    return min(map(_above, _UPPER.findall(_specifiers(requirement))), default=None)


def _above(specifier: tuple[str, str, str, str]) -> Release:
    operator, major, minor, patch = specifier
    if operator == "<" and not int(patch or 0):
        return int(major), int(minor or 0)
    if not minor or (operator == "~=" and not patch):
        return int(major) + 1, 0
    return int(major), int(minor) + 1


def _specifiers(requirement: str) -> str:
    """What a line says of the package that it begins with: ``pytorch==1.0.1 cudatoolkit=9.0 -c pytorch`` names another."""
    name = re.match(r"[\w.-]*\w", requirement)
    own = rf"{re.escape(name[0])}(?![\w.-])" if name is not None else r"\b\B"
    other = rf"[\s,]+(?!{own}|and\b|versions?\b)(?=[A-Za-z][\w.-]*\s*[=<>~!]=?)"
    return re.split(rf"\s+(?:#|-)|[;@]|{other}", requirement, flags=re.IGNORECASE)[0]


def _from_text(text: str, _: str) -> Iterator[str]:
    yield from (_LISTED.sub(r"\1==\2", line) for line in text.splitlines())


def _from_pyproject(text: str, package: str) -> Iterator[str]:
    table = toml(text)
    project: dict[str, Any] = table.get("project", {})
    yield from project.get("dependencies", [])
    for group in (*project.get("optional-dependencies", {}).values(), *table.get("dependency-groups", {}).values()):
        yield from (line for line in group if isinstance(line, str))
    poetry = table.get("tool", {}).get("poetry", {}).get("dependencies", {}).get(package)
    if isinstance(poetry, str):
        yield package + _of_poetry(poetry)


def _of_poetry(constraint: str) -> str:
    """What Poetry's ``^1.13``, ``~1.13`` and ``1.13.1`` mean: up to the next major or minor release, and just that one."""
    return ",".join(map(_bounded, constraint.split(",")))


def _bounded(part: str) -> str:
    found = re.fullmatch(r"\s*([\^~]?)\s*(\d+)((?:\.(\d+))?[\w.*+]*)\s*", part)
    if found is None:
        return re.sub(r"^\s*[\^~](?!=)", ">=", part)
    major, minor, release = int(found[2]), found[4], f"{found[2]}{found[3]}"
    if not found[1]:
        return f"=={release}"
    above = f"{major}.{int(minor) + 1}" if minor is not None and (found[1] == "~" or not major) else str(major + 1)
    return f">={release},<{above}"


def _from_setup_cfg(text: str, _: str) -> Iterator[str]:
    import configparser

    config = configparser.ConfigParser(interpolation=None)
    try:
        config.read_string(text)
    except configparser.Error:
        return
    yield from config.get("options", "install_requires", fallback="").splitlines()


def _from_setup_py(text: str, _: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def _from_image(text: str, package: str) -> Iterator[str]:
    """What the commands of a Dockerfile install, or the image of PyTorch's that it begins with where they install no other;
    nothing where they ask for several releases, for whichever is newest, or in another way, or where it builds several."""
    name, lines = _NAMES.get(package, _spelled(package)), re.sub(r"\\\r?\n", " ", text).splitlines()
    word = re.compile(rf"(?<![\w./-])[\"']?{name}[\"']?(?![\w.-])\s*((?:[=~<>!]=?=?\s*[\w.*+]+,?)*)", re.IGNORECASE)
    lines = [re.sub(r"(?:^|\s)#.*", "", line) for line in lines]
    if sum(bool(_BEGINS.match(line)) for line in lines) != 1 or any(_OTHERWISE.search(line) for line in lines):
        return
    commands = [part for line in lines if _RUNS.match(line) for part in re.split(r"&&|\|\||;", line)]
    if any("uninstall" in each and word.search(each) for each in commands):
        return
    installed = [re.sub(r"\S+://\S+|\s(?:-c|--channel)[ =]\S+", "", each) for each in commands if _INSTALLS.search(each)]
    asked = {found.strip(" ,") for each in installed for found in word.findall(each)}
    begun = {each[1] for line in lines if (each := _IMAGE.match(line))} if package == "torch" else set()
    given = asked or {f"=={each}" for each in begun}
    if len(given) == 1 and "" not in given:
        yield package + re.sub(r"^=(?!=)", "==", given.pop())


def _from_conda(text: str, package: str) -> Iterator[str]:
    name = _NAMES.get(package, _spelled(package))
    for line in text.splitlines():
        if match := re.match(rf"\s*-\s*[\"']?(?:pytorch::|conda-forge::)?{name}\s*([<>=!~][^\"'#]*)", line):
            yield package + re.sub(r"^=(?!=)", "==", match[1]).split("=py")[0].split("=cuda")[0]


_READERS: dict[tuple[str, ...], _Reader] = {
    ("pyproject.toml",): _from_pyproject,
    ("setup.cfg",): _from_setup_cfg,
    ("setup.py",): _from_setup_py,
    ("requir*ments*.txt",): _from_text,
    ("requirement.txt",): _from_text,
    ("requirements/*.txt",): _from_text,
    ("environment*.y*ml", "*environment*.y*ml", "*env.y*ml", "conda*.y*ml", "requirements*.y*ml"): _from_conda,
    ("cog.yaml",): _from_conda,
    ("Dockerfile",): _from_image,
    ("docker/Dockerfile",): _from_image,
}
"""Of the files of one folder, what pip or conda reads counts before what builds an image."""
_TELL = (
    ("README*", "readme*", "Readme*"),
    ("INSTALL*", "install*.md", "install*.sh", "*setup*.sh"),
    *((f"{folder}/INSTALL*", f"{folder}/install*.md") for folder in ("docs", "doc", "readme")),
)
"""The files that tell how a project is installed."""
_NAMES_OF_FILES = tuple(pattern for patterns in _READERS for pattern in patterns)
