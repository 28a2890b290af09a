"""Settings: `[tool.speedlint]` of the nearest pyproject.toml, or speedlint.toml, and the command line over it."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from speedlint.errors import UserError, did_you_mean
from speedlint.rule import Risk

AMP = ("fp16", "bf16")
RISKS = tuple(risk.name.lower() for risk in Risk)


@dataclass(frozen=True, slots=True)
class Settings:
    """What to check, with which rules, and how far fixes may go.

    Attributes:
        root: the folder that patterns and rule folders are relative to, and where the project's requirements are sought.
        per_file_ignores: pairs of a gitignore-style pattern and the codes or names ignored in the files it matches.
        torch: the target release as the user wrote it, or None.
        torch_from: what said so: ``--torch``, or the configuration file.
    """

    root: Path
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    per_file_ignores: tuple[tuple[str, tuple[str, ...]], ...] = ()
    risk: Risk = Risk.EXACT
    amp: str = "fp16"
    torch: tuple[int, int] | None = None
    torch_from: str = ""
    rule_paths: tuple[Path, ...] = ()


def load(paths: Sequence[Path], config: Path | None = None, by_default: Risk = Risk.EXACT, **command_line: Any) -> Settings:
    """The settings for ``paths``; options of the command line that were given replace the file's. Raises UserError.

    ``by_default`` is the risk of fixes where neither says one.
    """
    file = config or _nearest(_common_folder(paths))
    settings = _read(file, by_default) if file else Settings(root=_common_folder(paths), risk=by_default)
    given = {name: value for name, value in command_line.items() if value not in (None, ())}
    if "torch" in given:
        given["torch_from"] = "--torch"
    return dataclasses.replace(settings, **given)


def release(text: str) -> tuple[int, int]:
    """``"2.4"`` or ``"2.4.1+cu121"`` as ``(2, 4)``. Raises ValueError."""
    major, minor = text.split("+")[0].split(".")[:2]
    return int(major), int(minor)


def _common_folder(paths: Sequence[Path]) -> Path:
    absolute = [os.path.normpath(path.absolute()) for path in paths or (Path(),)]
    try:
        common = Path(os.path.commonpath(absolute))
    except ValueError:  # different drives
        return Path.cwd()
    return common if common.is_dir() else common.parent


def _nearest(folder: Path) -> Path | None:
    for up in (folder, *folder.parents):
        if (own := up / "speedlint.toml").is_file():
            return own
        if _configures(shared := up / "pyproject.toml"):
            return shared
    return None


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
        raise UserError(f"{file}: cannot be read ({error.strerror})") from None
    except ValueError as error:
        raise UserError(f"{file}: is not valid TOML ({error})") from None


def toml(text: str) -> dict[str, Any]:
    """The tables of a TOML text. Raises ValueError."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    return tomllib.loads(text)


def _read(file: Path, risk: Risk) -> Settings:
    table = read_toml(file)
    if file.name == "pyproject.toml":
        table = table.get("tool", {}).get("speedlint", {})
    settings = Settings(root=file.absolute().parent, risk=risk)
    for key, value in table.items():
        if key not in _KEYS:
            raise UserError(f"{file}: unknown key `{key}`{did_you_mean(key, _KEYS)}; the keys are {', '.join(_KEYS)}")
        wanted, convert = _KEYS[key]
        try:
            change: dict[str, Any] = {key.replace("-", "_"): convert(value, settings.root)}
            settings = dataclasses.replace(settings, **change)
        except (ValueError, TypeError, KeyError, AttributeError):
            raise UserError(f"{file}: `{key}` must be {wanted}, not `{value!r}`") from None
    return dataclasses.replace(settings, torch_from=str(file)) if settings.torch else settings


def _words(value: object, root: Path) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(word, str) and word for word in value):
        raise TypeError
    return tuple(value)


def _per_file(value: Mapping[str, object], root: Path) -> tuple[tuple[str, tuple[str, ...]], ...]:
    return tuple((pattern, _words(codes, root)) for pattern, codes in value.items())


def _folders(value: object, root: Path) -> tuple[Path, ...]:
    return tuple(root / word for word in _words(value, root))


def _risk(value: str, root: Path) -> Risk:
    return dict(zip(RISKS, Risk, strict=True))[value]


def _amp(value: str, root: Path) -> str:
    return AMP[AMP.index(value)]


def _release(value: str, root: Path) -> tuple[int, int]:
    return release(value)


_KEYS: dict[str, tuple[str, Callable[[Any, Path], object]]] = {
    "select": ('a list of codes, such as ["SPD3"]', _words),
    "ignore": ('a list of codes, such as ["SPD301"]', _words),
    "exclude": ('a list of patterns, such as ["tests/"]', _words),
    "per-file-ignores": ('a table of lists, such as {"eval.py" = ["SPD301"]}', _per_file),
    "risk": (f"one of {', '.join(RISKS)}", _risk),
    "amp": (f"one of {', '.join(AMP)}", _amp),
    "torch": ('a release, such as "2.4"', _release),
    "rule-paths": ('a list of folders, such as ["lint/rules"]', _folders),
}
