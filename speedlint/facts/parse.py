"""Python's own tree of a text, and which text has none that can be asked for."""

from __future__ import annotations

import ast
import itertools
import re
import warnings

_MAX_BRACKETS = 100  # Python's own limit is 200
_MAX_PREFIXES = 100
_PREFIXES = re.compile(rb"(?:\b(?:not|lambda\b[^:\n]*:)[\s\\]*){%d}" % _MAX_PREFIXES)
_ONE_SIGN = bytes(ord("-") if byte in b"+~" else byte for byte in range(256))
_SIGNS, _BETWEEN_SIGNS = b"-" * _MAX_PREFIXES, b" \t\n\r\f\v\\"
_MAX_BRANCHES = 3000
_MAX_CHOICES = 100
_BRACKETS = {**dict.fromkeys(b"([{", 1), **dict.fromkeys(b")]}", -1)}
_NO_BRACKETS = bytes(set(range(256)) - _BRACKETS.keys())
_STRINGS_AND_COMMENTS = re.compile(
    rb"""#[^\n]*|(\"{3}|'{3})(?:\\.|(?!\1).)*?\1|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", re.DOTALL
)


_ASYNC_AS_NAME = re.compile(
    _STRINGS_AND_COMMENTS.pattern.decode() + r"|(?P<name>\basync\b(?!(?:[ \t\f]|\\\r?\n)+(?:def|for|with)\b))", re.DOTALL
)
NON_BLOCKING = "non_blocking"
"""What torch calls the argument of its copies that it called ``async`` before Python 3.7 made a keyword of that name."""
_COPIES = frozenset({"cuda", "to", "copy_", "type"})


def parsed(text: str | bytes) -> ast.Module:
    """Python's own tree of a file, also of one in which ``async`` is a name, as before Python 3.7: where it is an argument
    of one of torch's copies, as its later name. Raises SyntaxError, also for what is no Python for other reasons."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(text)
        except ValueError as error:
            raise SyntaxError(str(error)) from None
        except SyntaxError:
            found = _of_older_python(text if isinstance(text, str) else text.decode("utf-8", "replace"))
            if found is None:
                raise
            return found


def _of_older_python(text: str) -> ast.Module | None:
    """The tree of a file in which ``async`` is a name; None where it has no such name, or is no Python all the same."""
    names = (f"asyn{letter}" for letter in "abdefghijklmnopqrstuvwxyz_0123456789")
    free = next((name for name in names if name not in text), None)
    if free is None or "async" not in text:
        return None
    renamed = _ASYNC_AS_NAME.sub(lambda found: free if found["name"] else found[0], text)
    try:
        tree = ast.parse(renamed) if renamed != text else None
    except (SyntaxError, ValueError):
        return None
    nodes = list(ast.walk(tree)) if tree is not None else []
    for node in nodes:
        for field, value in ast.iter_fields(node):
            if isinstance(value, str) and free in value:
                setattr(node, field, value.replace(free, "async"))
    for node in nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _COPIES:
            for keyword in node.keywords:
                keyword.arg = NON_BLOCKING if keyword.arg == "async" else keyword.arg
    return tree


def is_too_deep(data: bytes) -> bool:
    """Whether brackets, prefixes or choices nest so deeply that the parser would exhaust the stack and end the process."""
    if data.count(b"not") + data.count(b"lambda") >= _MAX_PREFIXES and _PREFIXES.search(data):
        return True
    if data.count(b"elif") > _MAX_BRANCHES:
        return True
    if _has_many_signs(data) and _has_many_signs(_STRINGS_AND_COMMENTS.sub(b"", data)):
        return True
    if data.count(b" else ") > _MAX_CHOICES and any(line.count(b" else ") > _MAX_CHOICES for line in data.splitlines()):
        return True
    return _bracket_depth(data) > _MAX_BRACKETS and _bracket_depth(_STRINGS_AND_COMMENTS.sub(b"", data)) > _MAX_BRACKETS


def _has_many_signs(data: bytes) -> bool:
    return _SIGNS in data.translate(_ONE_SIGN, _BETWEEN_SIGNS)


def _bracket_depth(data: bytes) -> int:
    return max(itertools.accumulate(map(_BRACKETS.__getitem__, data.translate(None, _NO_BRACKETS))), default=0)
