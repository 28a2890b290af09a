"""Settings: `[tool.speedlint]` of the nearest pyproject.toml, or speedlint.toml, and the command line over it."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from speedlint.errors import UserError, did_you_mean
from speedlint.rule import Risk

AMP = ("fp16", "bf16")
RISKS = tuple(risk.name.lower() for risk in Risk)


@dataclass(frozen=True, slots=True)
class Given:
    """What was said beside the configuration files, and holds over each of them.

    Attributes:
        options: the names and values of the command line's.
        by_default: the risk of fixes where nothing says one.
        is_named: whether the configuration was named, or made: then no file that is nearer is read.
    """

    options: tuple[tuple[str, Any], ...] = ()
    by_default: Risk = Risk.EXACT
    is_named: bool = True


@dataclass(frozen=True, slots=True)
class Settings:
    """What to check, with which rules, and how far fixes may go.

    Attributes:
        root: the folder that patterns and rule folders are relative to, and where the project's requirements are sought.
        extend_select: rules beside those that ``select`` means.
        fixable: the rules whose fixes may be written; empty for all but the ``unfixable`` ones.
        per_file_ignores: pairs of a gitignore-style pattern and the codes or names ignored in the files it matches.
        torch: the target release as the user wrote it, or None.
        torch_from: what said so: ``--torch``, or the configuration file.
        baseline: the file of findings that are known, and not told.
        force_exclude: whether files that are named are left out too.
        tests: whether folders are searched for tests.
        notes: whether notes are shown.
        format: how findings are printed; empty where nothing says so.
        without: rules that are left out of this run.
        file: the configuration file.
        given: what holds over it.
    """

    root: Path
    select: tuple[str, ...] = ()
    extend_select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    fixable: tuple[str, ...] = ()
    unfixable: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    per_file_ignores: tuple[tuple[str, tuple[str, ...]], ...] = ()
    risk: Risk = Risk.EXACT
    amp: str = "fp16"
    torch: tuple[int, int] | None = None
    torch_from: str = ""
    rule_paths: tuple[Path, ...] = ()
    baseline: Path | None = None
    force_exclude: bool = False
    tests: bool = False
    notes: bool = False
    format: str = ""
    without: tuple[str, ...] = ()
    file: Path | None = field(default=None, compare=False)
    given: Given = field(default_factory=Given, compare=False)


def load(paths: Sequence[Path], config: Path | None = None, by_default: Risk = Risk.EXACT, **command_line: Any) -> Settings:
    """The settings for ``paths``; options of the command line that were given replace the file's. Raises UserError.

    ``by_default`` is the risk of fixes where neither says one.
    """
    options = tuple((name, value) for name, value in command_line.items() if value not in (None, ()) and value is not False)
    folder = common_folder(paths)
    return _settings(config or _nearest(folder), folder, Given(options, by_default, config is not None))


class Nearest:
    """The settings of each file: those of the nearest configuration file above it, with what holds over all."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._folders: dict[Path, Settings] = {}
        self._files: dict[Path, Path | None] = {}
        self._read: dict[Path, Settings] = {}

    def of(self, path: Path) -> Settings:
        """The settings of a file. Raises UserError."""
        return self.within(path.parent)

    def within(self, folder: Path) -> Settings:
        """The settings of the files right in a folder. Raises UserError."""
        if folder not in self._folders:
            self._folders[folder] = self._find(folder)
        return self._folders[folder]

    def _find(self, folder: Path) -> Settings:
        run = self._settings
        file = None if run.given.is_named else self._file(Path(os.path.normpath(folder.absolute())))
        if file is None or file == run.file:
            return run
        if file not in self._read:
            own = _settings(file, folder, run.given)
            self._read[file] = dataclasses.replace(own, without=run.without)
        return self._read[file]

    def exclusion(self, folder: Path) -> tuple[tuple[str, ...], Path]:
        """The patterns of what is left out in a folder, and the folder that they are relative to. Raises UserError."""
        of_all = any(name == "exclude" for name, _ in self._settings.given.options)
        own = self._settings if of_all else self.within(folder)
        return own.exclude, own.root

    def _file(self, folder: Path) -> Path | None:
        if folder not in self._files:
            above = folder.parent
            self._files[folder] = _in(folder) or (self._file(above) if above != folder else None)
        return self._files[folder]


def release(text: str) -> tuple[int, int]:
    """``"2.4"`` or ``"2.4.1+cu121"`` as ``(2, 4)``. Raises ValueError."""
    major, minor = text.split("+")[0].split(".")[:2]
    return int(major), int(minor)


def common_folder(paths: Sequence[Path]) -> Path:
    """The innermost folder that all paths lie in, the current one if there are none."""
    absolute = [os.path.normpath(path.absolute()) for path in paths or (Path(),)]
    try:
        common = Path(os.path.commonpath(absolute))
    except ValueError:  # different drives
        return Path.cwd()
    return common if common.is_dir() else common.parent


def _nearest(folder: Path) -> Path | None:
    return next((file for up in (folder, *folder.parents) if (file := _in(up)) is not None), None)


def _in(folder: Path) -> Path | None:
    if (own := folder / "speedlint.toml").is_file():
        return own
    return shared if _configures(shared := folder / "pyproject.toml") else None


def _configures(pyproject: Path) -> bool:
    try:
        return b"speedlint" in pyproject.read_bytes() and "speedlint" in read_toml(pyproject).get("tool", {})
    except OSError:
        return False


def read_toml(file: Path) -> dict[str, Any]:
    """The tables of a TOML file. Raises UserError."""
    try:
        return toml(file.read_bytes().decode("utf-8-sig"))
    except OSError as error:
        raise UserError(f"{file}: cannot be read ({error.strerror}); check its name and permissions") from None
    except ValueError as error:
        raise UserError(f"{file}: is not valid TOML ({error})") from None


def toml(text: str) -> dict[str, Any]:
    """The tables of a TOML text. Raises ValueError."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    return tomllib.loads(text)


def _settings(file: Path | None, folder: Path, given: Given) -> Settings:
    """What a configuration file says, or none in a folder, under what is given. Raises UserError."""
    values: dict[str, Any] = {"risk": given.by_default} | (_values(file) if file else {})
    options = dict(given.options)
    if "select" in options:
        values.pop("extend_select", None)
    if "torch" in options:
        options["torch_from"] = "--torch"
    root = file.absolute().parent if file else folder
    return Settings(**{"root": root, **values, **options}, file=file, given=given)


def files(file: Path) -> Iterator[Path]:
    """A configuration file and those that it extends, as far as they can be read."""
    seen: set[Path] = set()
    while (real := file.resolve()) not in seen:
        seen.add(real)
        yield file
        try:
            file = _file(_own_table(file)["extend"], file.absolute().parent)
        except (UserError, ValueError, TypeError, KeyError, AttributeError):
            return


def _own_table(file: Path) -> dict[str, Any]:
    """What a configuration file itself says. Raises UserError."""
    table = read_toml(file)
    return table.get("tool", {}).get("speedlint", {}) if file.name == "pyproject.toml" else table


def _values(file: Path, extending: tuple[Path, ...] = ()) -> dict[str, Any]:
    """The values of a configuration file over those of the file that it extends. Raises UserError."""
    if file.resolve() in extending:
        raise UserError(f"{file}: `extend` leads back to this file; take one `extend` out")
    values: dict[str, Any] = {}
    for key, value in _own_table(file).items():
        if key == "tool" and file.name != "pyproject.toml":
            raise UserError(f"{file}: holds a table `[tool.speedlint]`; here its keys stand alone, at the top of the file")
        if key not in _KEYS:
            raise UserError(f"{file}: unknown key `{key}`{did_you_mean(key, _KEYS)}; the keys are {', '.join(_KEYS)}")
        wanted, convert = _KEYS[key]
        try:
            values[key.replace("-", "_")] = convert(value, file.absolute().parent)
        except (ValueError, TypeError, KeyError, AttributeError):
            raise UserError(f"{file}: `{key}` must be {wanted}, not `{value!r}`") from None
    if "torch" in values:
        values["torch_from"] = str(file)
    if (base := values.pop("extend", None)) is not None:
        if not base.is_file():
            raise UserError(
                f"{file}: `extend` leads to {base}: cannot be read (No such file or directory); correct the path"
            )
        held = _values(base, (*extending, file.resolve()))
        more = (*held.get("extend_select", ()), *values.get("extend_select", ()))
        values = held | values | ({"extend_select": more} if more else {})
    _refuse_contradictions(file, values)
    return values


def _refuse_contradictions(file: Path, values: Mapping[str, Any]) -> None:
    for one, other in (("select", "ignore"), ("extend-select", "ignore"), ("fixable", "unfixable")):
        first, second = (values.get(key.replace("-", "_"), ()) for key in (one, other))
        both = sorted({word.upper() for word in first} & {word.upper() for word in second})
        if both:
            raise UserError(f"{file}: `{both[0]}` is in `{one}` and in `{other}`; take it out of one")


def _words(value: object, root: Path) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(word, str) and word for word in value):
        raise TypeError
    return tuple(value)


def _per_file(value: Mapping[str, object], root: Path) -> tuple[tuple[str, tuple[str, ...]], ...]:
    return tuple((pattern, _words(codes, root)) for pattern, codes in value.items())


def _folders(value: object, root: Path) -> tuple[Path, ...]:
    return tuple(root / word for word in _words(value, root))


def _flag(value: object, root: Path) -> bool:
    if not isinstance(value, bool):
        raise TypeError
    return value


def _word(value: object, root: Path) -> str:
    if not isinstance(value, str) or not value:
        raise TypeError
    return value


def _file(value: str, root: Path) -> Path:
    if not value:
        raise ValueError
    return root / value


def _risk(value: str, root: Path) -> Risk:
    return dict(zip(RISKS, Risk, strict=True))[value]


def _amp(value: str, root: Path) -> str:
    return AMP[AMP.index(value)]


def _release(value: str, root: Path) -> tuple[int, int]:
    return release(value)


_KEYS: dict[str, tuple[str, Callable[[Any, Path], object]]] = {
    "extend": ('a file, such as "../speedlint.toml"', _file),
    "select": ('a list of codes, such as ["SPD3"]', _words),
    "extend-select": ('a list of codes, such as ["SPD411"]', _words),
    "ignore": ('a list of codes, such as ["SPD301"]', _words),
    "fixable": ('a list of codes, such as ["SPD3"]', _words),
    "unfixable": ('a list of codes, such as ["SPD301"]', _words),
    "exclude": ('a list of patterns, such as ["third_party/"]', _words),
    "force-exclude": ("true or false", _flag),
    "tests": ("true or false", _flag),
    "per-file-ignores": ('a table of lists, such as {"eval.py" = ["SPD301"]}', _per_file),
    "risk": (f"one of {', '.join(RISKS)}", _risk),
    "amp": (f"one of {', '.join(AMP)}", _amp),
    "torch": ('a release, such as "2.4"', _release),
    "baseline": ('a file, such as ".speedlint-baseline.json"', _file),
    "rule-paths": ('a list of folders, such as ["lint/rules"]', _folders),
    "notes": ("true or false", _flag),
    "format": ('a format, such as "json"', _word),
}
