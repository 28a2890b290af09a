"""The questions that a rule may ask: read from the code that answers them, so that the list is never behind it."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from types import ModuleType

from speedlint import cures, docs, shapes, solve
from speedlint.ask.program import Program
from speedlint.ask.script import Options, Script
from speedlint.disk import Disk
from speedlint.solve.flow import listed_once

_PACKAGE = __package__
_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Question:
    """One question: how it is asked, with its signature, and the first sentence of what the answer says."""

    call: str
    answer: str


@dataclass(frozen=True, slots=True)
class Room:
    """What one object or module answers.

    Attributes:
        name: the expression that leads to the object, such as ``script.values``, or the module's full name.
        about: the first sentence of its documentation.
    """

    name: str
    about: str
    questions: tuple[Question, ...]


def rooms() -> list[Room]:
    """The script and its parts, then the modules with questions about a script, by name."""
    return [*(_room(name, kind) for name, kind in _parts()), *(room for room in map(_module, _modules()) if room.questions)]


# The script and its parts


def _parts() -> Iterator[tuple[str, type]]:
    """The classes of a script, of what it is made of, and of the parts of these that know the script."""
    script = Program(Options(), Disk(lambda path: b"")).script(Path("empty.py"))
    yield "script", Script
    for name, part in _held(script):
        yield f"script.{name}", type(part)
        for inner, other in _held(part):
            if getattr(other, "script", None) is script:
                yield f"script.{name}.{inner}", type(other)


def _held(part: object) -> Iterator[tuple[str, object]]:
    """The objects of speedlint's classes with questions that an object holds openly, the script aside."""
    for name, value in vars(part).items():
        is_own = type(value).__module__.startswith(f"{_PACKAGE}.") and hasattr(value, "__dict__")
        if is_own and not name.startswith("_") and not isinstance(value, Script) and _methods(type(value)):
            yield name, value


def _room(name: str, kind: type) -> Room:
    found = (Question(_asked(f"{name}.", method), _sentence(method)) for method in _methods(kind))
    return Room(name, docs.first_sentence(inspect.getdoc(kind) or ""), tuple(found))


def _methods(kind: type) -> list[_Function]:
    tree = _tree(importlib.import_module(kind.__module__))
    node = next(each for each in tree.body if isinstance(each, ast.ClassDef) and each.name == kind.__name__)
    found = [each for each in node.body if isinstance(each, _Function) and not each.name.startswith("_")]
    return [each for each in found if classmethod.__name__ not in map(ast.unparse, each.decorator_list)]


# Modules


def _modules() -> Iterator[ModuleType]:
    for room in (solve, shapes, cures):
        found = pkgutil.walk_packages(room.__path__, f"{room.__name__}.")
        yield from (importlib.import_module(name) for name in sorted(each.name for each in found))


def _module(module: ModuleType) -> Room:
    prefix = f"{module.__name__.rpartition('.')[2]}."
    functions = (each for each in _tree(module).body if isinstance(each, _Function) and _is_about_a_script(each))
    found = (Question(_asked(prefix, each), _sentence(each)) for each in functions)
    return Room(module.__name__, docs.first_sentence(module.__doc__ or ""), tuple(found))


def _is_about_a_script(function: _Function) -> bool:
    arguments = (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
    kinds = (each.annotation for each in arguments if each.annotation is not None)
    return not function.name.startswith("_") and any(ast.unparse(kind) == Script.__name__ for kind in kinds)


# How they are written


@cache
def _tree(module: ModuleType) -> ast.Module:
    return ast.parse(Path(str(module.__file__)).read_text("utf-8"))


def _asked(prefix: str, function: _Function) -> str:
    """How a function is asked, as in ``script.constant(expression: syntax.Node) -> Constant | None``; a property without
    arguments."""
    decorators = {ast.unparse(each) for each in function.decorator_list}
    arguments = ast.unparse(function.args).removeprefix("self").removeprefix(", ")
    given = "" if decorators & {property.__name__, cached_property.__name__} else f"({arguments})"
    returned = f" -> {ast.unparse(function.returns)}" if function.returns is not None else ""
    if listed_once.__name__ in decorators:
        returned = returned.replace(Iterator.__name__, list.__name__)
    return f"{prefix}{function.name}{given}{returned}"


def _sentence(function: _Function) -> str:
    return docs.first_sentence(ast.get_docstring(function) or "")
