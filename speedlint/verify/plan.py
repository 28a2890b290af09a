"""What is compared: the command, the original's files, and the files as they are after the fixes."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from speedlint import stages
from speedlint.ask.program import Program
from speedlint.ask.script import Options
from speedlint.config import Settings
from speedlint.errors import UserError
from speedlint.facts.store import Store
from speedlint.fixer import Applied, Outcome
from speedlint.notebook import is_notebook
from speedlint.registry import Registry, for_files
from speedlint.stages import Stage
from speedlint.verify.scratch import LARGEST, is_environment

_MOST_FILES = 500
_NO_SOURCES = ("__pycache__", "venv")
_CONFIGURATION = (".yaml", ".yml", ".toml", ".json", ".ini")
_UPWARD = re.compile(rb"(?<![\w./\\])(?:\.\.[/\\])*\.\.(?=[/\\\"']|$)")


@dataclass(frozen=True)
class Command:
    """How the script is run.

    Attributes:
        interpreter: the user's Python.
        target: a script's path, or a module's name for ``-m``.
        is_module: whether ``target`` is a module's name.
        arguments: what follows it.
        launcher: words before the script, such as ``("torchrun", "--nproc-per-node", "2")``; empty for none.
        folder: where it is run.
    """

    interpreter: str
    target: str
    is_module: bool
    arguments: tuple[str, ...]
    launcher: tuple[str, ...]
    folder: Path

    def words(self, moved: Mapping[Path, Path]) -> list[str]:
        """The command line, with folders of the user's moved to those of a copy."""
        script = ["-m", self.target] if self.is_module else [str(_moved(self._script(), moved))]
        if self.launcher:
            return [self._program(), *self.launcher[1:], *script, *self.arguments]
        return [self.interpreter, *script, *self.arguments]

    @property
    def shown(self) -> str:
        """The command line for people, without the machine's folders."""
        words = self.launcher or (Path(self.interpreter).name,)
        return shlex.join((*words, *(("-m",) if self.is_module else ()), self.target, *self.arguments))

    def _program(self) -> str:
        """The launcher; that of the interpreter's environment, where it has one, since it starts its own Python."""
        name, programs = self.launcher[0], Path(self.interpreter).parent
        beside = programs / name
        is_own = Path(name).name == name and is_environment(programs.parent) and beside.is_file()
        return str(beside) if is_own else name

    def _script(self) -> Path:
        return Path(os.path.abspath(self.folder / self.target))  # noqa: PTH100 (resolve would follow the user's links)


@dataclass(frozen=True)
class Version:
    """One side of the comparison.

    Attributes:
        name: ``original``, ``fixed``, or what was left out.
        root: the folder its files come from; the user's project, but for ``--against``.
        changed: other bytes for some files, by path; None for a file that is left out.
        command: how it is run.
        twin: a number for each of those that run at the same time.
    """

    name: str
    root: Path
    command: Command
    changed: Mapping[Path, bytes | None] = field(default_factory=dict)
    twin: int = 0


@dataclass(frozen=True)
class Plan:
    """The two versions.

    Attributes:
        base: the folder that is copied: that of the project, or one around it and the current folder.
        real: the folders within ``base`` whose files are copied.
        stages: what the fixes change, by risk.
        store: keeps what is known of the files, for the fixed version without some fixes.
        outcomes: the files that the fixes change.
        beyond: fixes that were left out for their risk.
        registry: the rules of the configurations of all files, where fixes were looked for.
    """

    original: Version
    fixed: Version
    base: Path
    real: tuple[Path, ...]
    stages: tuple[Stage, ...]
    settings: Settings
    entry: Path
    files: tuple[Path, ...]
    store: Store | None = None
    outcomes: tuple[Outcome, ...] = ()
    beyond: tuple[Applied, ...] = ()
    registry: Registry | None = None

    @property
    def applied(self) -> tuple[Applied, ...]:
        """The fixes, in the order they were applied."""
        return tuple(fix for stage in self.stages for fix in stage.applied)

    @property
    def codes(self) -> tuple[str, ...]:
        """The rules whose fixes are in the fixed version."""
        return tuple(dict.fromkeys(fix.code for fix in self.applied))


def plan(
    command: Command,
    settings: Settings,
    registry: Registry,
    against: Path | None = None,
    store: Store | None = None,
    watch: Callable[[Path], None] = lambda _path: None,
) -> Plan:
    """Fixes the first-party files that the script reaches, in memory, or takes another version; ``watch`` is told of each
    file that is looked at. Raises UserError."""
    entry = entry_of(command)
    files = reached(entry)
    root = Program(Options()).root(entry)
    base, real = _around(root, command.folder, folders_up(files, command.arguments))
    original = Version("original", root, command)
    if against is not None:
        return Plan(original, _other(against, original, entry), base, real, (), settings, entry, files)
    settings, registry = for_files(files, settings, registry, lambda folders: Registry.load(folders, store))
    staged = stages.fix(files, settings, registry, store=store, watch=watch)
    fixed = Version("fixed", root, command, _changed(staged.outcomes))
    changes = (staged.outcomes, staged.beyond, registry)
    return Plan(original, fixed, base, real, staged.stages, settings, entry, files, store, *changes)


def of_last_fixes(whole: Plan, back: Iterable[Outcome]) -> Plan | None:
    """A plan to time the script's files as they are against what ``back`` makes of them, the files as they were before fixes
    were written; None where these were other files."""
    own = set(map(os.path.realpath, whole.files))
    before = _changed(each for each in back if os.path.realpath(each.path) in own)
    if not before:
        return None
    fixed = replace(whole.original, name="fixed")
    return replace(whole, original=replace(whole.original, changed=before), fixed=fixed, stages=(), outcomes=(), beyond=())


def without(whole: Plan, codes: tuple[str, ...], name: str, registry: Registry) -> tuple[Version, tuple[Outcome, ...]]:
    """The fixed version without the fixes of some rules, and the files that the others change."""
    settings = replace(whole.settings, without=(*whole.settings.without, *codes))
    staged = stages.fix(whole.files, settings, registry, store=whole.store)
    return Version(name, whole.original.root, whole.original.command, _changed(staged.outcomes)), staged.outcomes


def _changed(outcomes: Iterable[Outcome]) -> dict[Path, bytes | None]:
    return {Path(os.path.abspath(each.path)): each.after for each in outcomes}  # noqa: PTH100


def entry_of(command: Command) -> Path:
    """The file that the command runs. Raises UserError."""
    if not command.is_module:
        path = Path(os.path.abspath(command.folder / command.target))  # noqa: PTH100
        if path.is_dir():
            path /= "__main__.py"
        if not path.is_file():
            raise UserError(f"{command.target}: there is no such script")
        if is_notebook(path):
            what = "is a notebook, and scripts are what is timed; convert it with `jupyter nbconvert --to script`"
            raise UserError(f"{command.target}: {what}")
        return path
    parts = command.target.split(".")
    base = command.folder.joinpath(*parts)
    for candidate in (base.with_suffix(".py"), base / "__main__.py"):
        if candidate.is_file():
            return candidate
    raise UserError(
        f"-m {command.target}: no such module in {command.folder}; run it from the folder that holds its package"
    )


def reached(entry: Path) -> tuple[Path, ...]:
    """The entry and the first-party files that it imports, directly and not, in the order they are found."""
    program = Program(Options())
    try:
        script = program.script(entry)
    except OSError as error:
        raise UserError(f"{entry}: cannot be read ({error.strerror})") from error
    except Exception as error:
        raise UserError(str(error)) from error
    found, queue = {script.path: script}, [script]
    while queue and len(found) < _MOST_FILES:
        for other in queue.pop(0).imports:
            if other.path not in found:
                found[other.path] = other
                queue.append(other)
    return tuple(found)


def _around(root: Path, folder: Path, above: int) -> tuple[Path, tuple[Path, ...]]:
    """The folder to copy, and what in it is copied, not linked; ``above`` folders over the current one are in it, but for
    the file system's own root."""
    upward = (folder, *folder.parents)
    return Path(os.path.commonpath((root, upward[min(above, max(0, len(upward) - 2))]))), (root,)


def folders_up(files: Iterable[Path], arguments: Iterable[str]) -> int:
    """How many folders up the paths lead that stand in the script's files and arguments, such as ``../../data``."""
    texts = [*(path.read_bytes() for path in files), *map(os.fsencode, arguments)]
    return max((found.count(b"..") for text in texts for found in _UPWARD.findall(text)), default=0)


def _other(against: Path, original: Version, entry: Path) -> Version:
    """The version of ``--against``: another script beside this one, or another project's folder."""
    path = Path(os.path.abspath(against))  # noqa: PTH100
    if path.is_dir():
        inside = entry.relative_to(original.root)
        if not (path / inside).is_file():
            raise UserError(f"{against}: holds no {inside}, which is what is timed")
        changed: dict[Path, bytes | None] = {}
        for mine in _sources(original.root):
            theirs = path / mine.relative_to(original.root)
            if not theirs.is_file():
                changed[mine] = None
        for theirs in _sources(path):
            changed[original.root / theirs.relative_to(path)] = theirs.read_bytes()
        return Version("other", path, original.command, changed)
    if not path.is_file():
        raise UserError(f"{against}: there is no such file or folder")
    return Version("other", original.root, original.command, {entry: path.read_bytes()})


def _sources(root: Path) -> list[Path]:
    """A project's code, and its configuration: what is larger is data, and an environment's code is not the project's."""
    found = []
    for folder, folders, names in os.walk(root):
        folders[:] = [each for each in folders if not each.startswith(".") and each not in _NO_SOURCES]
        folders[:] = [each for each in folders if not is_environment(Path(folder, each))]
        paths = [Path(folder, name) for name in names]
        found += [each for each in paths if each.suffix == ".py" or (each.suffix in _CONFIGURATION and _is_small(each))]
    return sorted(found)


def _is_small(path: Path) -> bool:
    return path.is_file() and path.stat().st_size <= LARGEST


def _moved(path: Path, moved: Mapping[Path, Path]) -> Path:
    for old, new in moved.items():
        if path == old or old in path.parents:
            return new / path.relative_to(old)
    return path
