"""How often a line runs while its function runs once, or in one turn of the loop over the steps, where that is known."""

from __future__ import annotations

import libcst as cst

from speedlint.semantics.folding import Folding, Frame
from speedlint.semantics.pure import UNKNOWN, UnfoldableError
from speedlint.semantics.script import Script
from speedlint.source import last_statement


def times(script: Script, node: cst.CSTNode, block: cst.CSTNode, frame: Frame | None = None) -> int | None:
    """How often ``node`` is reached while ``block`` runs once, by the loops between them; None where that is not known.

    ``frame`` holds what is known of the function's parameters. Branches and early exits between count where their conditions
    are known; where one is not, neither is the number.
    """
    path = _path(script, node, block)
    if path is None:
        return None
    try:
        return _count(Folding(), frame or Frame(script), path, node)
    except UnfoldableError:
        return None


def turns(script: Script, loop: cst.For | cst.While) -> int | None:
    """How many turns a loop takes at most, where what it goes over is known."""
    try:
        elements = Folding().elements(Frame(script), loop.iter) if isinstance(loop, cst.For) else None
    except UnfoldableError:
        return None
    return len(elements) if elements is not None else None


def is_in_loop(script: Script, node: cst.CSTNode, block: cst.CSTNode) -> bool:
    """Whether a loop or comprehension within ``block`` runs ``node`` several times."""
    for up in script.source.ancestors(node):
        if up is block:
            return False
        if isinstance(up, cst.For | cst.While) and not script.source.contains(_head(up), node):
            return True
        if isinstance(up, cst.ListComp | cst.GeneratorExp | cst.SetComp | cst.DictComp):
            return not script.source.contains(up.for_in.iter, node)
    return False


def _head(loop: cst.For | cst.While) -> cst.CSTNode:
    return loop.iter if isinstance(loop, cst.For) else loop.test


def _path(script: Script, node: cst.CSTNode, block: cst.CSTNode) -> list[cst.CSTNode] | None:
    """The loops, branches and blocks around the node within ``block``, the outermost first; None where one is not known."""
    found: list[cst.CSTNode] = []
    child = node
    for up in script.source.ancestors(node):
        match up:
            case cst.For(body=body):
                if child is body:
                    found.append(up)
            case cst.ListComp(elt=element) | cst.GeneratorExp(elt=element) | cst.SetComp(elt=element):
                if child is not element:
                    return None
                found.append(up.for_in)
            case cst.While() | cst.DictComp() | cst.IfExp() | cst.BooleanOperation() | cst.Try() | cst.Lambda():
                return None
            case cst.If() | cst.IndentedBlock():
                found.append(up)
        if up is block:
            break
        child = up
    return found[::-1]


def _count(folding: Folding, frame: Frame, path: list[cst.CSTNode], node: cst.CSTNode) -> int | None:
    folding.charge(1)
    if not path:
        return 1
    outer, *rest = path
    following = rest[0] if rest else node
    match outer:
        case cst.For() if _may_leave(frame.script, outer, following):
            return None
        case cst.For(target=target, iter=iterated):
            return _over(folding, frame, target, iterated, rest, node)
        case cst.CompFor(target=target, iter=iterated, ifs=[]):
            inner = [outer.inner_for_in] if outer.inner_for_in is not None else []
            return _over(folding, frame, target, iterated, [*inner, *rest], node)
        case cst.CompFor():
            return None
        case cst.If(test=test) if not frame.script.source.contains(test, following):
            known = folding.value(frame, test)
            if known is UNKNOWN:
                return None
            if bool(known) is not frame.script.source.contains(outer.body, following):
                return 0
        case cst.IndentedBlock():
            leaves = _is_left_before(folding, frame, outer, following)
            if leaves is not False:
                return 0 if leaves else None
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
        count = _count(folding, frame.turn(folding.bind(target, each)), rest, node)
        if count is None:
            return None
        total += count
    return total


def _is_left_before(folding: Folding, frame: Frame, block: cst.IndentedBlock, node: cst.CSTNode) -> bool | None:
    """Whether ``if not heads: continue`` leaves the block before it comes to the node; None where that is not known."""
    for statement in block.body:
        folding.charge(1)
        if frame.script.source.contains(statement, node):
            return False
        if isinstance(statement, cst.If) and isinstance(last_statement(statement.body), cst.Continue):
            known = folding.value(frame, statement.test)
            if known is UNKNOWN or statement.orelse is not None:
                return None
            if known:
                return True
    return False


def _may_leave(script: Script, loop: cst.For, node: cst.CSTNode) -> bool:
    """Whether something ends the loop, or a turn of it, in a way that is not followed."""
    inside = script.source.inside
    if any(script.source.enclosing(each, cst.For, cst.While) is loop for each in inside(loop.body, cst.Break)):
        return True
    if any(script.function(each) is script.function(loop) for each in inside(loop.body, cst.Return)):
        return True
    return any(
        script.source.enclosing(each, cst.For, cst.While) is loop and not _is_plain_exit(script, each)
        for each in inside(loop.body, cst.Continue)
    )


def _is_plain_exit(script: Script, leave: cst.Continue) -> bool:
    """Whether a ``continue`` ends an ``if`` that stands in a block around which nothing but branches and loops stand."""
    branch = script.source.enclosing(leave, cst.If, cst.With, cst.Try)
    holder = script.source.parents[branch] if branch is not None else None
    is_last = isinstance(branch, cst.If) and isinstance(last_statement(branch.body), cst.Continue)
    is_alone = is_last and isinstance(branch, cst.If) and branch.orelse is None
    return is_alone and isinstance(holder, cst.IndentedBlock) and isinstance(script.source.parents[holder], cst.For)
