"""How a name is written in a file: a library's object, and a builtin function, so that it means what it should."""

from __future__ import annotations

from speedlint.ask.script import Script
from speedlint.edits import CannotEdit, imports_edit
from speedlint.facts import syntax
from speedlint.rule import Edit


def spell(script: Script, dotted: str) -> tuple[str, tuple[Edit, ...]]:
    """How to write a library's object in a script's file, and the edit that imports it where it is not bound yet.

    The file's own alias is used where there is one. Raises CannotEdit where the name to import is taken.
    """
    bound = script.names.imported_as(dotted)
    if bound is not None:
        return bound, ()
    package = dotted.split(".")[0]
    if any(binding.name == package for bindings in script.names.all_bindings() for binding in bindings):
        raise CannotEdit(f"the name `{package}` is bound to something else in this file")
    return dotted, (imports_edit(script.source, f"import {package}"),)


def builtin(script: Script, name: str, at: syntax.Node) -> str:
    """A builtin function's name, for code that is written at a node. Raises CannotEdit where it means something else."""
    taken = script.names.scope(at).lookup(name) is not None
    if taken or any(script.program.module(script, star) is None for star in script.names.module.stars):
        raise CannotEdit(f"`{name}` may mean something else in this file")
    return name
