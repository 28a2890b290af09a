"""The backend's switches: where ``torch.backends.cudnn`` is told what, and whether for the sake of reproducible runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

if TYPE_CHECKING:
    from speedlint.semantics.script import Script

_CUDNN = "torch.backends.cudnn"
_REPRODUCIBLE = ("seed", "determin", "reproduc", "repeatab")
_SEEDERS = ("torch.manual_seed", "torch.cuda.manual_seed", "torch.cuda.manual_seed_all", "random.seed", "numpy.random.seed")
_TRAINERS = ("pytorch_lightning.Trainer", "lightning.Trainer", "lightning.pytorch.Trainer", "dict")
_KEYWORDS = {"benchmark": ("cudnn_benchmark", "benchmark"), "deterministic": ("deterministic",)}


@dataclass(frozen=True, slots=True)
class Setting:
    """One assignment to a switch; ``value`` is None where it is not known before the run."""

    script: Script
    assign: cst.Assign
    value: bool | None


def settings(script: Script, switch: str) -> Iterator[Setting]:
    """Where ``torch.backends.cudnn.<switch>`` is set in this file."""
    for assign in script.source.of(cst.Assign):
        if any(script.name(target.target) == f"{_CUDNN}.{switch}" for target in assign.targets):
            constant = script.constant(assign.value)
            known = constant is not None and isinstance(constant.value, (bool, int))
            yield Setting(script, assign, bool(constant.value) if constant is not None and known else None)


def is_undone(script: Script, assign: cst.Assign, switch: str) -> bool:
    """Whether further down, in the same function and not in another branch of the same ``if``, the switch is set again."""
    source = script.source
    for setting in settings(script, switch):
        later = setting.assign
        if source.order[later] > source.order[assign] and source.enclosing(later, cst.FunctionDef) is source.enclosing(
            assign, cst.FunctionDef
        ):
            shared = next(up for up in source.ancestors(later) if source.contains(up, assign))
            if not isinstance(shared, (cst.If, cst.Else)):
                return True
    return False


def may_be_on(script: Script, switch: str) -> bool:
    """Whether something in this file may turn the switch on: an assignment, a context manager, an option of a trainer."""
    if any(setting.value is not False for setting in settings(script, switch)):
        return True
    return any(
        arg.keyword is not None and arg.keyword.value in _KEYWORDS[switch] and not _is_off(script, arg.value)
        for name in (f"{_CUDNN}.flags", f"{_CUDNN}.set_flags", *_TRAINERS)
        for call in script.calls(name)
        for arg in call.args
    )


def _is_off(script: Script, value: cst.BaseExpression) -> bool:
    constant = script.constant(value)
    return constant is not None and not constant.value


def is_on_in_program(script: Script, switch: str) -> bool:
    """Whether this file, or one that imports or is imported by it, may turn the switch on."""
    return any(may_be_on(one, switch) for one in (script, *script.neighbours))


def is_for_reproducibility(script: Script, node: cst.CSTNode) -> bool:
    """Whether a statement serves to make runs repeatable: it stands in code named for that, or beside the seeds."""
    return is_named_for_reproducibility(script, node) or seeds(script, script.source.parents[script.source.statement(node)])


def is_named_for_reproducibility(script: Script, node: cst.CSTNode) -> bool:
    """Whether the statement stands in a function, or under a condition, that speaks of seeds or determinism."""
    for up in script.source.ancestors(node):
        if isinstance(up, cst.If) and _mentions(script, up.test):
            return True
        if isinstance(up, cst.FunctionDef):
            return _is_named(up.name.value)
    return False


def seeds(script: Script, block: cst.CSTNode) -> bool:
    """Whether a block itself, not a function or loop within it, seeds a random generator."""
    for name in _SEEDERS:
        for call in script.calls(name):
            statement = script.source.statement(call)
            if script.source.parents[statement] is block:
                return True
    return False


def _mentions(script: Script, test: cst.BaseExpression) -> bool:
    return any(_is_named(name.value) for name in script.source.inside(test, cst.Name))


def _is_named(name: str) -> bool:
    return any(word in name.lower() for word in _REPRODUCIBLE)


def is_without_gpu(script: Script, node: cst.CSTNode) -> bool:
    """Whether a line runs only where there is no GPU: in the ``else`` of ``if torch.cuda.is_available()``."""
    for up in script.source.ancestors(node):
        if isinstance(up, cst.Else) and isinstance(branch := script.source.parents[up], cst.If):
            if script.is_call_to(branch.test, "torch.cuda.is_available"):
                return True
    return False
