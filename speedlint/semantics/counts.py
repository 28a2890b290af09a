"""How often a line runs while its function runs once, or in one turn of the loop over the steps, where that is known."""

from __future__ import annotations

from typing import Any

import libcst as cst

from speedlint.semantics.folding import UNKNOWN, Folding, Frame
from speedlint.semantics.script import Script

_MOST = 1_000_000


def times(script: Script, node: cst.CSTNode, block: cst.CSTNode, frame: Frame | None = None) -> int | None:
    """How often ``node`` is reached while ``block`` runs once, by the loops between them; None where that is not known.

    ``frame`` holds what is known of the function's parameters. A branch whose condition is not known counts as taken.
    """
    path = _path(script, node, block)
    count = _count(Folding(), frame or Frame(script), path, node)
    return count if count is not None and count <= _MOST else None


def is_in_loop(script: Script, node: cst.CSTNode, block: cst.CSTNode) -> bool:
    """Whether a loop or comprehension within ``block`` runs ``node`` several times."""
    return any(isinstance(each, cst.For | cst.While | cst.CompFor) for each in _path(script, node, block))


def _path(script: Script, node: cst.CSTNode, block: cst.CSTNode) -> list[cst.CSTNode]:
    """The loops, branches and blocks around the node within ``block``, the outermost first."""
    found: list[cst.CSTNode] = []
    child = node
    for up in script.source.ancestors(node):
        match up:
            case cst.For() | cst.While() if child is up.body:
                found.append(up)
            case cst.ListComp(elt=element) | cst.GeneratorExp(elt=element) | cst.SetComp(elt=element) if child is element:
                found.append(up.for_in)
            case cst.If() | cst.IndentedBlock():
                found.append(up)
        if up is block:
            break
        child = up
    return found[::-1]


def _count(folding: Folding, frame: Frame, path: list[cst.CSTNode], node: cst.CSTNode) -> int | None:
    if not path:
        return 1
    outer, *rest = path
    following = rest[0] if rest else node
    match outer:
        case cst.While():
            return None
        case cst.For(body=body) if _may_break(frame.script, outer, body):
            return None
        case cst.For(target=target, iter=iterated) | cst.CompFor(target=target, iter=iterated):
            inner = outer.inner_for_in if isinstance(outer, cst.CompFor) else None
            return _over(folding, frame, target, iterated, [inner, *rest] if inner is not None else rest, node)
        case cst.If(test=test) if _holds(folding, frame, test) is (not _contains(frame.script, outer.body, following)):
            return 0
        case cst.IndentedBlock() if _is_left_before(folding, frame, outer, following):
            return 0
    return _count(folding, frame, rest, node)


def _over(
    folding: Folding,
    frame: Frame,
    target: cst.CSTNode,
    iterated: cst.BaseExpression,
    rest: list[cst.CSTNode],
    node: cst.CSTNode,
) -> int | None:
    elements = folding.elements(frame, iterated)
    if elements is None:
        return None
    total = 0
    for each in elements:
        count = _count(folding, frame.bound(folding.bind(target, each)), rest, node)
        if count is None or total > _MOST:
            return None
        total += count
    return total


def _holds(folding: Folding, frame: Frame, test: cst.BaseExpression) -> bool | None:
    known: Any = folding.value(frame, test)
    return None if known is UNKNOWN else bool(known)


def _contains(script: Script, outer: cst.CSTNode, node: cst.CSTNode) -> bool:
    return outer is node or script.source.contains(outer, node)


def _is_left_before(folding: Folding, frame: Frame, block: cst.IndentedBlock, node: cst.CSTNode) -> bool:
    """Whether a statement such as ``if not heads: continue`` leaves the block before it comes to the node."""
    for statement in block.body:
        if _contains(frame.script, statement, node):
            return False
        match statement:
            case cst.If(test=test, body=body, orelse=None) if _leaves(body) and _holds(folding, frame, test):
                return True
    return False


def _may_break(script: Script, loop: cst.For, body: cst.BaseSuite) -> bool:
    breaks = script.source.inside(body, cst.Break)
    return any(script.source.enclosing(each, cst.For, cst.While) is loop for each in breaks)


def _leaves(body: cst.BaseSuite) -> bool:
    last = body.body[-1] if body.body else None
    small = last.body[-1] if isinstance(last, cst.SimpleStatementLine) else last
    return isinstance(small, cst.Continue | cst.Return)
