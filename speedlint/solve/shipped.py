"""What the commands that a project ships give its options: in its READMEs, shell scripts, Makefiles and the like, and in the
text of its scripts.

An option that is off by default is on for who runs the script as its authors say: ``python train.py --amp``.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from speedlint.disk import COMMANDS, TEXTS
from speedlint.facts import syntax
from speedlint.solve.flow import once

if TYPE_CHECKING:
    from speedlint.ask.script import Script

_JOBS = (".yaml", ".yml")
"""Ends of the names of files that hold commands, which trainings write too: looked into beside the script and above."""
_MOST_FILES = 200
"""Files of a project that are looked into, nearest first."""
_PASSED = rb"(?<![\w\[./-])(?:%b)(?![\w-])"
_KEY = rb"(\+{0,2})(?:[A-Za-z_]\w*[./@])*([A-Za-z_]\w*)=(?![=\s])"
_OVERRIDES = re.compile(rb"(?:(?<=\s)|(?<=[\"']))" + _KEY)
_QUOTED_OVERRIDES = re.compile(rb"(?<=[\"'])" + _KEY)
_OTHER_CONFIG = re.compile(rb"(?<![\w-])(?:--config-(?:name|path|dir)|-c[npd]|--experimental-rerun)(?![\w-])")
"""By what a command names another configuration to Hydra."""
_CONTINUED = re.compile(rb"\\\r?\n|[ \t][\^`][ \t]*\r?\n")
"""The end of a line that goes on in the next, as a shell of Linux, of Windows, or PowerShell has it."""
_OPTION = rb"--[\w-]+(?:[ \t=]+(?:'[^'\n]*'|\"[^\"\n]*\"|[^\s#<[-]\S*)(?:[ \t]+[\d.]+(?=\s|$))*)?"
_GOES_ON = re.compile(
    rb"(?:\r?\n[ \t]*(?:#[^\n]*)?){0,3}\r?\n[ \t]*"
    rb"(" + _OPTION + rb"(?:[ \t]+" + _OPTION + rb")*)"
    rb"[ \t]*(?:#[^\n]*)?(?=\r?\n|$)"
)
"""A line with nothing but options and their values, as a README lists them below the command that they belong to: none of a
synopsis, ``--gpu <gpu>``."""
_COMMENT = re.compile(rb"^\s*(?:#|::|REM\b).*$", re.MULTILINE)
_VARIABLE = re.compile(rb"\$\{?([A-Za-z_]\w*)\}?")
_SENTENCE = re.compile(rb"[a-z][.,;:!?]\s")
"""What ends a sentence, or a part of one."""
_UNKNOWN = b"$%{<`"
"""What a value holds that is set elsewhere."""


def _texts(script: Script) -> Iterator[Path]:
    disk, root, folder = script.program.disk, script.program.root(script.path), script.key.parent
    found = set(disk.texts(str(root)))
    for above in (each for each in (folder, *folder.parents) if each == folder or root in (each, *each.parents)):
        found.update(str(above / name) for name in disk.names(str(above), *(f"*{end}" for end in (*TEXTS, *_JOBS))))
    nearest = sorted(found, key=lambda each: (_distance(str(folder), os.path.dirname(each)), each))  # noqa: PTH120
    return itertools.islice((Path(each) for each in nearest if disk.is_readable(each)), _MOST_FILES)


def _distance(folder: str, other: str) -> int:
    """How many folders lie between two."""
    common = os.path.commonpath((folder, other))
    return folder.count(os.sep) + other.count(os.sep) - 2 * common.count(os.sep)


@once(())
def texts(script: Script) -> tuple[Path, ...]:
    """The files of a script's project that may hold commands, nearest first."""
    return tuple(_texts(script))


class _Starts(NamedTuple):
    """The files that a program which a script is part of may be started by, in path order, and how commands name them: by
    their paths, and as modules."""

    paths: tuple[Path, ...]
    named: re.Pattern[bytes]
    modules: re.Pattern[bytes]


@once(_Starts((), re.compile(rb"(?!)"), re.compile(rb"(?!)")))
def _starts(script: Script) -> _Starts:
    paths = sorted({each.key for each in (script, *script.program.possible_starts(script))})
    names = b"|".join(re.escape(each.name.encode()) for each in paths)
    modules = b"|".join(re.escape(_module(each)) for each in paths)
    named = re.compile(rb"(?:[\w./-]*/)?(?:" + names + rb")\b")
    return _Starts(tuple(paths), named, re.compile(rb"-m\s+[\w.]*\b(?:" + modules + rb")\b"))


@once(False)
def is_started(script: Script) -> bool:
    """Whether a README, a shell script or the like of the project starts a program that the script is part of."""
    starts = _starts(script).paths
    names = b"|".join(re.escape(each.name.encode()) for each in starts)
    command = re.compile(rb"python[\w.]*[ \t][^\n]*?((?:[\w./-]*/)?(?:" + names + rb"))\b")
    disk = script.program.disk
    return any(
        _is_of(script, path, found.group(1), starts)
        for path in texts(script)
        if disk.mentions(str(path), command)
        for found in command.finditer(disk.read(path))
    )


@once(())
def given(script: Script, option: syntax.Call) -> tuple[str | None, ...]:
    """What shipped commands pass for an option that ``script`` declares: texts, an empty one for a flag alone, and None
    for a value that is set elsewhere, as ``$MODE`` is."""
    return tuple(dict.fromkeys(_given(script, option)))


def _given(script: Script, option: syntax.Call) -> Iterator[str | None]:
    flags = [
        str(arg.value.evaluated_value).encode()
        for arg in option.args
        if arg.keyword is None and isinstance(arg.value, syntax.SimpleString)
    ]
    flags = [flag for flag in flags if flag.startswith(b"-")]
    if not flags:
        return
    written = b"|".join(map(re.escape, flags))
    passed = re.compile(_PASSED % written + rb"(?:\s*=\s*|[ \t]+)?([^\s-]\S*|-[\d.]\S*)?")
    marks = [(flag, re.compile(_PASSED % re.escape(flag))) for flag in flags]
    starts, runs, modules = _starts(script)
    disk = script.program.disk
    for path in script.program.holding((*texts(script), *starts), *marks):
        data = disk.read(path)
        for command in _commands(path, data):
            named = list(runs.finditer(command))
            if any(_is_of(script, path, each.group(), starts) for each in named) or modules.search(command):
                for found in passed.finditer(command):
                    if not _is_prose(path, command, named, found.start()):
                        yield from _values(found.group(1), data)


@once(None)
def overridden(script: Script) -> frozenset[str] | None:
    """The last names of the keys for which a command of the project passes a value as Hydra takes it,
    ``python train.py model.width=64``; None where one names another configuration, or adds one."""
    starts, runs, modules = _starts(script)
    disk = script.program.disk
    readable = map(Path, disk.listing(str(script.program.root(script.path))).readable)
    found: set[str] = set()
    for path in script.program.holding(dict.fromkeys((*texts(script), *readable)), _OVERRIDES, _OTHER_CONFIG):
        data, is_code = disk.read(path), path.suffix == ".py"
        if is_code and not runs.search(data):
            continue
        key = _QUOTED_OVERRIDES if is_code else _OVERRIDES
        for command in _commands(path, data):
            is_run = is_code or any(_is_of(script, path, each.group(), starts) for each in runs.finditer(command))
            if not is_run and not modules.search(command):
                continue
            passed = list(key.finditer(command))
            if _OTHER_CONFIG.search(command) or any(each.group(1) for each in passed):
                return None
            found |= {each.group(2).decode() for each in passed}
    return frozenset(found)


def _is_prose(path: Path, line: bytes, named: list[re.Match[bytes]], at: int) -> bool:
    """Whether an option stands in a sentence about a script, not in a command: ``train.py logs, if you add --wandb``."""
    ends = [each.end() for each in named if each.end() <= at]
    return bool(ends) and not path.name.endswith((*COMMANDS, *_JOBS)) and bool(_SENTENCE.search(line[ends[-1] : at]))


def _module(path: Path) -> bytes:
    """The last name by which ``python -m`` starts a file."""
    return (path.parent.name if path.stem == "__main__" else path.stem).encode()


def _commands(path: Path, data: bytes) -> list[bytes]:
    """The pieces of a text in which one command may stand with its arguments."""
    data = _CONTINUED.sub(b" ", data)
    if path.name.endswith((*COMMANDS, *_JOBS)):
        return [_COMMENT.sub(b"", data)]
    return _GOES_ON.sub(rb" \1", data).splitlines()


def _is_of(script: Script, text: Path, named: bytes, starts: tuple[Path, ...]) -> bool:
    """Whether the file that a command names, as seen from where it is written, may be one of ``starts``."""
    name, root = named.decode("utf-8", "replace"), script.program.root(script.path)
    for folder in (text.parent, *text.parent.parents):
        path = Path(os.path.normpath(folder / name))
        if script.program.disk.is_file(str(path)):
            return path in starts
        if folder == root:
            break
    return True


def _values(written: bytes | None, data: bytes) -> Iterator[str | None]:
    """The text that a command passes; of a variable each that the same file sets it to."""
    value = (written or b"").strip(b"\"'`,;)")
    variable = _VARIABLE.fullmatch(value)
    if variable is not None:
        set_to = re.findall(rb"(?m)^\s*(?:export\s+)?" + variable.group(1) + rb"=(\S*)", data)
        for each in set_to or [_UNKNOWN]:
            yield _literal(each)
    else:
        yield _literal(value)


def _literal(value: bytes) -> str | None:
    value = value.strip(b"\"'`,;)")
    return None if any(each in _UNKNOWN for each in value) else value.decode("utf-8", "replace")
