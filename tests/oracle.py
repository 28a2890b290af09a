"""libcst as a second opinion: the nodes that it finds in a file, in the order of its fields, without whitespace."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator

import libcst as cst

_NOT_WALKED = re.compile(
    r"whitespace|leading|lines_after|header|footer|[lr]par$|[lr]brac|comma|semicolon|equal|dot|colon|indent|trailing"
    r"|default_(?:indent|newline)|encoding|has_|operator|relative|first_|second_|newline|star$|body_"
)
_NO_ROWS = (cst.FormattedStringText, cst.ParamSlash)


def nodes(text: str) -> list[cst.CSTNode]:
    """All nodes of a module's text, in pre-order."""
    return [node for node in _walk(cst.parse_module(text)) if not isinstance(node, _NO_ROWS)]


def code(node: cst.CSTNode) -> str:
    """A node as libcst prints it, its own parentheses included."""
    return cst.Module([]).code_for_node(node)


def _walk(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    yield node
    for field in dataclasses.fields(node):
        if _NOT_WALKED.match(field.name):
            continue
        value = getattr(node, field.name)
        for child in value if isinstance(value, (tuple, list)) else (value,):
            if isinstance(child, cst.CSTNode):
                yield from _walk(child)
