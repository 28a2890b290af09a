"""Trainings that stay on the CPU although other scripts of their project train on a GPU.

Only what such a script runs counts: the definitions that its names lead to, and the top level of the modules that these
import. A script that borrows one function from another one's file does not train where that one does.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from speedlint.facts import syntax
from speedlint.solve.changing import is_at_the_top
from speedlint.solve.flow import once
from speedlint.solve.names import Kind

if TYPE_CHECKING:
    from speedlint.ask.script import Script

_SPEAKS_OF_DEVICES = re.compile(rb"(?i)cuda|gpu|device|parallel|accelerat|deepspeed")
_LEADS_ANYWHERE = frozenset({"__import__", "eval", "exec", "globals", "import_module", "instantiate", "locate"})
"""Calls after which any definition may run."""
_MOST_PIECES = 400
"""Definitions and statements that are followed; where a script runs more it is not said to stay on the CPU."""


@once(False)
def never_moves(script: Script) -> bool:
    """Whether a script that starts a program and trains by itself certainly puts nothing on a GPU: neither it nor anything
    that it runs does."""
    if not script.loops.steps or script.program.is_imported(script) or _SPEAKS_OF_DEVICES.search(script.source.data):
        return False
    return _Run(script).is_on_host()


class _Run:
    """The pieces of a project that one script runs: definitions, and statements of modules' top levels."""

    def __init__(self, script: Script) -> None:
        self._todo: list[tuple[Script, syntax.Node]] = []
        self._seen: set[syntax.Node] = set()
        self._add(script, script.source.module)

    def is_on_host(self) -> bool:
        """Whether all pieces are known, and none shows a GPU."""
        while self._todo:
            script, piece = self._todo.pop()
            names = [each for each in script.source.inside(piece, syntax.Name) if _is_run(script, each)]
            if len(self._seen) > _MOST_PIECES or _leads_anywhere(script, piece) or script.roles.shows_gpu_in(piece):
                return False
            self._import(script, piece)
            for name in names:
                self._follow(script, name)
        return True

    def _add(self, script: Script, piece: syntax.Node) -> None:
        if piece not in self._seen:
            self._seen.add(piece)
            self._todo.append((script, piece))

    def _import(self, script: Script, piece: syntax.Node) -> None:
        """Adds what runs when the modules are imported that a piece imports."""
        bound = (each for bindings in script.names.all_bindings() for each in bindings if each.kind is Kind.IMPORT)
        imported = [each.dotted for each in bound if script.source.contains(piece, each.node)]
        if piece is script.source.module or isinstance(piece, syntax.SimpleStatementLine):
            imported += script.names.module.stars
        for dotted in imported:
            found = script.program.module(script, dotted) if dotted is not None else None
            module = script.program.reached(found[0]) if found is not None else None
            if module is not None:
                self._start(module)

    def _start(self, script: Script) -> None:
        for statement in script.source.module.body:
            if isinstance(statement, (syntax.FunctionDef, syntax.ClassDef)):
                if any(script.name(each.decorator) is None for each in statement.decorators):
                    self._add(script, statement)
            elif not isinstance(statement, syntax.If) or is_at_the_top(script, statement.body):
                self._add(script, statement)

    def _follow(self, script: Script, name: syntax.Name) -> None:
        """Adds the definitions that a name, or an attribute of it, stands for."""
        bindings = script.names.reaching(name)
        for binding in bindings:
            if isinstance(binding.node, (syntax.FunctionDef, syntax.ClassDef)):
                self._add(script, binding.node)
        if not bindings or any(binding.kind is Kind.IMPORT for binding in bindings):
            self._follow_import(script, name)

    def _follow_import(self, script: Script, name: syntax.Name) -> None:
        longest: syntax.Node = name
        written = [longest]
        while isinstance(parent := script.source.parents[longest], syntax.Attribute) and parent.value is longest:
            longest = parent
            written.append(longest)
        for expression in reversed(written):
            dotted = script.dotted(expression) or (script.star_imported(name.value) if expression is name else None)
            binding, other = script.imported_binding(dotted) if dotted is not None else (None, None)
            if binding is not None and other is not None:
                if isinstance(binding.node, (syntax.FunctionDef, syntax.ClassDef)):
                    self._add(other, binding.node)
                return
        dotted = script.dotted(longest)
        found = script.program.module(script, dotted) if dotted is not None else None
        module = script.program.reached(found[0]) if found is not None else None
        if module is not None:
            self._add(module, module.source.module)


def _is_read(script: Script, name: syntax.Name) -> bool:
    """Whether a name stands for a variable's value: it is no attribute's, keyword's or definition's."""
    match script.source.parents[name]:
        case syntax.Attribute(attr=other) | syntax.Arg(keyword=other) if other is name:
            return False
        case syntax.Param(name=other) if other is name:
            return False
        case syntax.FunctionDef() | syntax.ClassDef() | syntax.ImportAlias() | syntax.AsName():
            return False
    return True


def _is_run(script: Script, name: syntax.Name) -> bool:
    """Whether what a name stands for may be run: not where it only says a type, as in ``Sampler = Union[DDPM, DDIM]``."""
    if not _is_read(script, name) or script.source.enclosing(name, syntax.Annotation) is not None:
        return False
    around = (up for up in script.source.ancestors(name) if isinstance(up, syntax.Subscript))
    return not any((script.name(up.value) or "").startswith("typing.") for up in around)


def _leads_anywhere(script: Script, piece: syntax.Node) -> bool:
    calls = (script.name(call.func) for call in script.source.inside(piece, syntax.Call))
    return any(name is not None and name.rpartition(".")[2] in _LEADS_ANYWHERE for name in calls)
