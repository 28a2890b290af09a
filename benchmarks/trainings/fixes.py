"""What speedlint makes of a training: with all fixes up to each risk, and with each fix alone."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch

from speedlint import stages
from speedlint.ask.program import Cache
from speedlint.ask.script import Options
from speedlint.config import Settings
from speedlint.diagnostic import Diagnostic
from speedlint.engine import Engine
from speedlint.fixer import Candidate, Propose, Read, fix_files
from speedlint.registry import Registry
from speedlint.rule import Edit, Risk

Files = dict[str, bytes]
_MAJOR, _MINOR = torch.__version__.split(".")[:2]
TORCH = (int(_MAJOR), int(_MINOR))
"""The release that trainings are run with, and fixes written for."""
_INDEPENDENT = frozenset("SPD202 SPD205".split())
"""Rules whose fixes in one script have nothing to do with each other."""


@dataclass(frozen=True)
class Variant:
    """A training with fixes.

    Attributes:
        name: the risk of the fixes, or the code (and line) of the only one.
        codes: the rules that wrote something.
        risk: the highest risk of what is written.
        is_alone: whether it is one rule's work.
        files: the training's files.
    """

    name: str
    codes: frozenset[str]
    risk: Risk
    files: Files
    is_alone: bool = False


@dataclass
class Fixed:
    """All that speedlint wrote and refused to write.

    Attributes:
        variants: what is to be run.
        written: how many fixes of each rule were written.
        refused: how many findings of each rule were only shown.
        problems: fixes that were given up, and rules that failed.
    """

    variants: list[Variant] = field(default_factory=list)
    written: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)


def fixable(registry: Registry) -> tuple[str, ...]:
    """The codes of all rules, so that the fixes of notes are written too."""
    return tuple(rule.code for rule in registry.rules)


def fixed(files: Mapping[str, bytes], amp: str, registry: Registry) -> Fixed:
    """The variants of a training, each text once."""
    with tempfile.TemporaryDirectory(prefix="fixed_") as folder:
        root = Path(folder)
        for name, data in files.items():
            (root / name).write_bytes(data)
        (root / "pyproject.toml").write_text("")
        return _Fixing(root, files, amp, registry).all()


class _Fixing:
    def __init__(self, root: Path, files: Mapping[str, bytes], amp: str, registry: Registry) -> None:
        self.root, self.registry = root, registry
        self.original = dict(files)
        self.paths = [root / name for name in files]
        self.settings = Settings(root=root, select=fixable(registry), risk=Risk.BEHAVIOR, amp=amp)
        self.options = Options(torch=TORCH, amp=amp)
        self.cache = Cache()
        self.made = Fixed()

    def all(self) -> Fixed:
        """Everything; see ``fixed``."""
        engine = Engine(self.settings, self.registry, options=self.options, cache=self.cache, asked=self.paths)
        reports = [engine.check(path) for path in self.paths]
        found = [each for report in reports for each in report.diagnostics]
        self.made.problems += [each.what for report in reports for each in report.problems]
        self.made.refused.update(each.code for each in found if each.fix is None or not each.fix.applicable)
        self._together()
        alone: dict[str, list[Diagnostic]] = {}
        for each in found:
            if stages.fixable(each, Risk.BEHAVIOR):
                alone.setdefault(each.code, []).append(each)
        for code, of_code in alone.items():
            self._alone(code, of_code)
        return self.made

    def _together(self) -> None:
        staged = stages.fix(self.paths, self.settings, self.registry, self.options)
        now, codes, risk = dict(self.original), set[str](), Risk.EXACT
        for stage in staged.stages:
            now.update((outcome.path.name, outcome.after) for outcome in stage.outcomes)
            codes |= {each.code for each in stage.applied}
            risk = max([risk, *(each.risk for each in stage.applied)])
            self.made.written.update(each.code for each in stage.applied)
            self._add(Variant(stage.risk.name.lower(), frozenset(codes), risk, dict(now)))
        self.made.problems += [f"{each.path.name}: {each.what}" for each in staged.problems]

    def _alone(self, code: str, found: Sequence[Diagnostic]) -> None:
        """What one rule writes, and where it writes several fixes, what each writes by itself."""
        settings = replace(self.settings, select=(code,))
        proposer = stages.Proposer(settings, self.options, self.registry, Risk.BEHAVIOR, self.cache, self.paths)
        highest = max(each.fix.risk for each in found if each.fix)
        self._add(Variant(code, frozenset({code}), highest, self._after(proposer), True))
        for each in found if len(found) > 1 and code not in _INDEPENDENT else ():
            assert each.fix is not None
            name, after = f"{code} at {each.path.name}:{each.line}", self._after(_Once(proposer, each.fix.edits))
            self._add(Variant(name, frozenset({code}), each.fix.risk, after, True))

    def _after(self, propose: Propose) -> Files:
        result = fix_files(self.paths, propose)
        return {**self.original, **{outcome.path.name: outcome.after for outcome in result.outcomes}}

    def _add(self, variant: Variant) -> None:
        if variant.files != self.original and all(variant.files != each.files for each in self.made.variants):
            self.made.variants.append(variant)


class _Once:
    """Proposes one fix of those that another proposes for the files as they are."""

    def __init__(self, propose: Propose, edits: tuple[Edit, ...]) -> None:
        self._propose, self._edits = propose, edits
        self._first: Read | None = None

    def __call__(self, read: Read, path: Path, code: str | None) -> Sequence[Candidate]:
        """The fix, until a file has changed."""
        self._first = self._first or read
        offered = self._propose(read, path, code) if read is self._first else ()
        return [each for each in offered if each.edits == self._edits]
