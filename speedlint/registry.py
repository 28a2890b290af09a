"""Finds rules by path, loads and validates them, and chooses among them."""

from __future__ import annotations

import ast
import dataclasses
import importlib.util
import os
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NoReturn

from speedlint import __version__
from speedlint.errors import UserError, did_you_mean
from speedlint.rule import Rule

if TYPE_CHECKING:
    from speedlint.config import Settings
    from speedlint.facts.store import Store

_CODE = re.compile(r"[A-Z]{2,8}[0-9]{3,4}")
EVERY = "ALL"
"""The word that means every rule, those too that are off."""
_PACKAGE = Path(__file__).parent
_DOCS = re.compile(r'"""([^"\\]*(?:"(?!"")[^"\\]*)*)"""')
"""A docstring that stands for itself, without an escape."""


@dataclass(frozen=True)
class Registry:
    """All known rules, ordered by code."""

    rules: tuple[Rule, ...]
    """As their files or the store know them: what they look at, their checks and their worth only ``loaded`` knows."""
    files: Mapping[str, Path] = field(default_factory=dict)
    """By code, where the rules stand."""

    @classmethod
    def load(cls, folders: Iterable[Path] = (), store: Store | None = None) -> Registry:
        """speedlint's own rules and those of the user's ``folders``. Raises UserError.

        A rule of speedlint's own is not run before ``loaded`` asks for it; one of the user's is, unless the ``store`` knows
        its file.
        """
        own = [*_rule_files(own_rules())]
        others = [path for folder in folders for path in _rule_files(folder)]
        version = "\n".join((__version__, *map(stamp, (*own, *others)))) if store is not None else ""
        held = store.value("rules", version) if store is not None else None
        if held is not None:
            known = [
                (Rule(code, (), _unknown, triggers, off=off, name=name, docs=docs), Path(path))
                for code, triggers, off, name, docs, path in held
            ]
            return cls(tuple(rule for rule, _ in known), {rule.code: path for rule, path in known})
        every = [
            *((_written(path, stamp(path)) or _load(path), path) for path in own),
            *((_load(path), path) for path in others),
        ]
        found = sorted(every, key=lambda entry: entry[0].code)
        rules = tuple(rule for rule, _ in found)
        _refuse_duplicates(rules)
        if store is not None:
            store.keep("rules", version, [_plain(each, path) for each, path in found])
        return cls(rules, {rule.code: path for rule, path in found})

    def loaded(self, rule: Rule) -> Rule:
        """The rule with what it looks at and its check. Raises UserError."""
        if not rule.on and rule.code not in self._loaded:
            self._loaded[rule.code] = _load(self.files[rule.code])
        return rule if rule.on else self._loaded[rule.code]

    @cached_property
    def _loaded(self) -> dict[str, Rule]:
        return {}

    @cached_property
    def by_code(self) -> dict[str, Rule]:
        """Each rule under its code."""
        return {rule.code: rule for rule in self.rules}

    @cached_property
    def letters(self) -> frozenset[str]:
        """What the codes begin with."""
        return frozenset(rule.code.rstrip("0123456789") for rule in self.rules)

    def foreign(self, code: str) -> Path | None:
        """The file of a rule that is not speedlint's own."""
        file = self.files.get(code)
        return None if file is None or file.is_relative_to(own_rules()) else file

    def find(self, word: str) -> Rule:
        """The rule with this code or name. Raises UserError that names the nearest."""
        for rule in self.rules:
            if _names(rule, word):
                return rule
        raise self._no_rule(word)

    def covered(self, word: str) -> tuple[Rule, ...]:
        """The rules with this code, code prefix or name. Raises UserError that names the nearest."""
        found = tuple(rule for rule in self.rules if _covers(word, rule))
        if not found:
            raise self._no_rule(word)
        return found

    def choose(self, select: Collection[str], ignore: Collection[str], extend: Collection[str] = ()) -> tuple[Rule, ...]:
        """The rules selected (all, if nothing is), or added by ``extend``, and not ignored. Raises UserError.

        Off rules are selected only by their full code or name, or by ``ALL``.
        """
        for word in (*select, *ignore, *extend):
            if not any(_covers(word, rule) for rule in self.rules):
                raise UserError(f"`{word}` selects no rule{self._nearest(word)}; `speedlint rules` lists them")
        return tuple(
            rule
            for rule in self.rules
            if ((_selects(select, rule) if select else not rule.off) or _selects(extend, rule))
            and not any(_covers(word, rule) for word in ignore)
        )

    def chosen(self, settings: Settings) -> tuple[Rule, ...]:
        """The rules that the settings of a file choose. Raises UserError."""
        return self.choose(settings.select, (*settings.ignore, *settings.without), settings.extend_select)

    def validate(self, settings: Settings) -> None:
        """Raises UserError, which names the configuration file, where a word of it means no rule, or no rule is left."""
        file = settings.file or "the command line"
        try:
            chosen = self.chosen(settings)
            self.choose((), (*settings.fixable, *settings.unfixable))
            for _, words in settings.per_file_ignores:
                self.choose((), words)
        except UserError as error:
            raise UserError(f"{file}: {error}") from None
        if not chosen:
            raise UserError(f"{file}: `select` and `ignore` leave no rule; take a word out of one")

    def named(self, select: Collection[str]) -> frozenset[str]:
        """The codes of the rules that ``select`` asks for one by one, not by a prefix."""
        return frozenset(rule.code for rule in self.rules for word in select if _names(rule, word))

    def _no_rule(self, word: str) -> UserError:
        return UserError(f"there is no rule `{word}`{self._nearest(word)}; `speedlint rules` lists them")

    def _nearest(self, word: str) -> str:
        return did_you_mean(word, [*self.by_code, *(rule.name for rule in self.rules)])


def for_files(
    files: Iterable[Path],
    settings: Settings,
    registry: Registry,
    load: Callable[[tuple[Path, ...]], Registry] = Registry.load,
) -> tuple[Settings, Registry]:
    """The settings and the rules with the rule folders of the nearest configuration of each file. Raises UserError where
    one of these configurations is wrong."""
    from speedlint.config import Nearest

    nearest = Nearest(settings)
    others = {own.file: own for own in map(nearest.of, files) if own is not settings}.values()
    folders = tuple(dict.fromkeys(folder for own in (settings, *others) for folder in own.rule_paths))
    if folders != settings.rule_paths:
        settings, registry = dataclasses.replace(settings, rule_paths=folders), load(folders)
    for own in others:
        registry.validate(own)
    return settings, registry


def stamp(path: Path | str) -> str:
    """A file and what tells one version of it from another."""
    status = os.stat(path)  # noqa: PTH116 (hundreds of these: Path takes twice as long)
    return f"{path}:{status.st_size}:{status.st_mtime_ns}"


def _plain(rule: Rule, path: Path) -> tuple[Any, ...]:
    """What is kept of a rule, and its file."""
    return rule.code, rule.triggers, rule.off, rule.name, rule.docs, str(path)


def _unknown(*_: object) -> NoReturn:
    raise AssertionError("a rule must be loaded before it looks")


def own_rules() -> Path:
    """The folder of speedlint's own rules: inside the package once installed, beside it in a checkout."""
    inside = _PACKAGE / "rules"
    return inside if inside.is_dir() else _PACKAGE.parent / "rules"


def covers(word: str, code: str, name: str) -> bool:
    """Whether a word of ``select``, ``ignore`` or a comment means this rule: a prefix of its code, its name, or ``ALL``."""
    return code.startswith(word.upper()) or word.lower() == name or word == EVERY


def _selects(words: Collection[str], rule: Rule) -> bool:
    return any(_covers(word, rule) and (not rule.off or word == EVERY or _names(rule, word)) for word in words)


def _covers(word: str, rule: Rule) -> bool:
    return covers(word, rule.code, rule.name)


def _names(rule: Rule, word: str) -> bool:
    return word.upper() == rule.code or word.lower() == rule.name


def _rule_files(folder: Path) -> Iterator[Path]:
    if not folder.is_dir():
        raise UserError(f"{folder}: there is no such folder of rules; correct `rule-paths`")
    found = []
    for at, inner, names in os.walk(folder):
        inner[:] = [name for name in inner if not name.startswith(".")]
        found += [os.path.join(at, name) for name in names if name.endswith(".py") and name[0] not in "._"]  # noqa: PTH118
    yield from sorted(map(Path, found))


@cache
def _written(path: Path, stamped: str) -> Rule | None:
    """What the text of a rule's file says of it as it is ``stamped``, where that is written out: the file begins with its
    documentation and ends with ``RULE = Rule(...)``, with the code, the triggers and ``off`` as literals."""
    text = path.read_text(encoding="utf-8")
    docs, (_, mark, made) = _DOCS.match(text), text.rpartition("\nRULE = ")
    if docs is None or not mark:
        return None
    try:
        call = ast.parse(made, mode="eval").body
        if not isinstance(call, ast.Call):
            return None
        given = {each.arg: ast.literal_eval(each.value) for each in call.keywords if each.arg in ("triggers", "off")}
        return _named(Rule(ast.literal_eval(call.args[0]), (), _unknown, **given), path, docs[1])
    except (SyntaxError, ValueError, TypeError, IndexError):
        return None


def _load(path: Path) -> Rule:
    module = _execute(path)
    rule = getattr(module, "RULE", None)
    if not isinstance(rule, Rule):
        raise UserError(f"{path}: holds no `RULE = Rule(...)`; add one, or start the file's name with `_`")
    if not isinstance(rule.code, str) or not _CODE.fullmatch(rule.code):
        raise UserError(f"{path}: the code `{rule.code}` is not letters and three digits, such as `SPD301`")
    if not rule.triggers or not all(isinstance(each, bytes) and each for each in rule.triggers):
        raise UserError(
            f"{path}: {rule.code} needs triggers, a tuple of byte strings one of which each file holds that it looks at"
        )
    return _named(rule, path, module.__doc__ or "")


def _named(rule: Rule, path: Path, docs: str) -> Rule:
    return rule._replace(name=path.stem.replace("_", "-"), docs=docs.strip())


def _execute(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"_speedlint_rule_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise UserError(f"{path}: cannot be loaded as a rule")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses in a rule file look their module up
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise UserError(f"{path}: cannot be loaded as a rule ({type(error).__name__}: {error})") from error
    return module


def _refuse_duplicates(rules: Sequence[Rule]) -> None:
    for kind in ("code", "name"):
        seen: dict[str, Rule] = {}
        for rule in rules:
            value = getattr(rule, kind)
            if value in seen:
                raise UserError(f"two rules have the {kind} `{value}` ({seen[value].name}, {rule.name}); rename one")
            seen[value] = rule
