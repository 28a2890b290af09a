"""Whether a switch that helps to find faults is on in every run, or only where somebody asks for it."""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.solve.loops import Does
from speedlint.source import last_statement

_ASKED = re.compile(
    r"debug|anomal|nan|detect|profil|trac(?:e|ing)|verbose|determin|seed|reproduc|sanity|overfit|bench|check|diagnos|dry_?run"
    r"|fast_dev",
    re.IGNORECASE,
)
_MACHINE = re.compile(
    r"cuda|gpu|device|rank|platform|os\.name|environ|getenv|__version__|__name__|distributed|world_size|\bddp\b|is_available",
    re.IGNORECASE,
)
_GPU = re.compile(r"cuda|gpu|is_available", re.IGNORECASE)
_DEPTH = 4


class Intent(enum.IntEnum):
    """When a line that is there to find faults runs."""

    NEVER = 0
    """After a fault, where there is no GPU, or under a condition that is false."""
    CHOSEN = 1
    """Where an option, a condition or the name of its function asks for it."""
    ALWAYS = 2


def of(script: Script, node: syntax.Node, depth: int = _DEPTH) -> Intent:
    """When the node runs: the conditions around it and around the calls of its function decide."""
    if script.loops.guards.is_without_gpu(node):
        return Intent.NEVER
    found, child = Intent.ALWAYS, node
    for up in script.source.ancestors(node):
        found = min(found, Intent.ALWAYS if _decides_training(script, up, child) else _limit(script, up, child))
        if isinstance(up, syntax.FunctionDef) and child is up.body:
            if _ASKED.search(up.name.value):
                found = min(found, Intent.CHOSEN)
            return min(found, _of_calls(script, up, depth))
        child = up
    return found


def _decides_training(script: Script, up: syntax.Node, child: syntax.Node) -> bool:
    """Whether a condition decides whether the program trains at all, ``if args.mode == "train"``, and asks for nothing else:
    what stands beside the training is on in all of it."""
    branch = script.source.parents[up] if isinstance(up, syntax.Else) else up
    block = child.body if isinstance(child, syntax.Else) else child
    if (
        not isinstance(branch, syntax.If)
        or not isinstance(block, syntax.IndentedBlock)
        or _ASKED.search(script.text(branch.test))
    ):
        return False
    return bool(script.loops.does(block, Does.TRAINS))


def is_undone(script: Script, node: syntax.Node, again: Iterable[syntax.Node]) -> bool:
    """Whether what a line sets is set ``again`` further down: on every way on, or under a condition that asks the same."""
    again = [other for other in again if other is not node]
    return script.order.is_followed(node, again) or any(
        script.order.may_run_before(node, other) and script.function(other) is script.function(node)
        and (condition := _condition(script, other)) is not None and condition == _condition(script, node)
        for other in again
    )  # fmt: skip


def _condition(script: Script, node: syntax.Node) -> str | None:
    """The condition of the ``if`` whose body a statement stands in."""
    block = script.source.parents[script.source.statement(node)]
    branch = script.source.parents.get(block)
    return script.text(branch.test) if isinstance(branch, syntax.If) and branch.body is block else None


def _of_calls(script: Script, function: syntax.FunctionDef, depth: int) -> Intent:
    """The intent of the call that asks least."""
    if not depth:
        return Intent.ALWAYS
    return max((of(other, call, depth - 1) for other, call in script.call_sites(function)), default=Intent.ALWAYS)


def _limit(script: Script, up: syntax.Node, child: syntax.Node) -> Intent:
    match up:
        case syntax.If() if child is up.body:
            return _under(script, up.test)
        case syntax.IfExp() if child is not up.test:
            return _under(script, up.test)
        case syntax.BooleanOperation() if child is up.right:
            return _under(script, up.left)
        case syntax.Else() if isinstance(branch := script.source.parents[up], syntax.If):
            return max(_under(script, branch.test), Intent.CHOSEN)
        case syntax.If() if child is up.orelse:
            return max(_under(script, up.test), Intent.CHOSEN)
        case syntax.ExceptHandler():
            return Intent.NEVER
        case syntax.IndentedBlock():
            return _left_by_return(script, up, child)
    return Intent.ALWAYS


def _under(script: Script, test: syntax.BaseExpression) -> Intent:
    if isinstance(test, (syntax.Name, syntax.Integer)) and script.text(test) in ("True", "1"):
        return Intent.ALWAYS
    known = script.constant(test)
    if known is not None and not known.value and not _may_be_set(known.script, known.node):
        return Intent.NEVER
    text = script.text(test)
    if isinstance(test, syntax.UnaryOperation) and isinstance(test.operator, syntax.Not) and _GPU.search(text):
        return Intent.NEVER
    return Intent.ALWAYS if _MACHINE.search(text) and not _ASKED.search(text) else Intent.CHOSEN


def _may_be_set(script: Script, node: syntax.Node) -> bool:
    """Whether a value is the default of an option or of a parameter, which the run may set."""
    return (
        isinstance(node, syntax.Call)
        or script.source.enclosing(node, syntax.Call, syntax.Param, syntax.ClassDef) is not None
    )


def _left_by_return(script: Script, block: syntax.IndentedBlock, child: syntax.Node) -> Intent:
    """What ``if not debug: return`` above a statement leaves of its runs."""
    found = Intent.ALWAYS
    for statement in block.body:
        if statement is child:
            break
        if isinstance(statement, syntax.If) and isinstance(last_statement(statement.body), syntax.Return):
            found = min(found, max(_under(script, statement.test), Intent.CHOSEN))
    return found
