"""Trainings that stay on the CPU although other scripts of their project train on a GPU, or although they speak of one.

Only what such a script runs counts: the definitions that its names lead to, and the top level of the modules that these
import. A script that borrows one function from another one's file does not train where that one does; nor does one that
makes a device and puts nothing there.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from speedlint.facts import syntax
from speedlint.solve.changing import is_at_the_top
from speedlint.solve.flow import once
from speedlint.solve.names import Kind
from speedlint.source import is_name
from speedlint.torch.words import Role

if TYPE_CHECKING:
    from speedlint.ask.script import Script

_SPEAKS_OF_DEVICES = re.compile(rb"(?i)cuda|gpu|device|parallel|accelerat|deepspeed")
_LEADS_ANYWHERE = frozenset({"__import__", "eval", "exec", "globals", "import_module", "instantiate", "locate"})
"""Calls after which any definition may run."""
_MAY_PUT = re.compile(
    rb"(?i)\.to\b|\.cuda\b(?!\s*\.)|parallel|accelerat|lightning|trainer\b|fabric|ignite|fastai|deepspeed|distributed"
    rb"|todevice|to_device|device_map|default_(?:device|tensor_type)|torch\.load\(|cuda\.\w*Tensor|map_location|prefetch"
    rb"|torch_xla|fully_shard|cupy|cudf|dlpack|safetensors|getattr|methodcaller|globals\("
)
"""What may put something on a GPU, or read what was saved there, beside a device that is handed to what makes a tensor."""
_MOST_PIECES = 400
"""Definitions and statements that are followed; where a script runs more it is not said to stay on the CPU."""


@once(False)
def never_moves(script: Script) -> bool:
    """Whether a script that starts a program and trains by itself certainly puts nothing on a GPU: neither it nor anything
    that it runs does."""
    if not script.loops.steps or script.program.is_imported(script) or _SPEAKS_OF_DEVICES.search(script.source.data):
        return False
    return _Run(script).is_on_host()


@once(False)
def only_names_device(script: Script) -> bool:
    """Whether a training makes a device, and nothing of its program puts anything there."""
    if not script.loops.steps or script.program.mentions(script, _MAY_PUT):
        return False
    return not any(_uses_device(each) for each in script.everywhere(b"cuda", b"device"))


def _uses_device(script: Script) -> bool:
    """Whether a file may do more with a device than to keep it and hand it on to functions of the project."""
    source = script.source
    texts = (each for each in source.of(syntax.SimpleString) if str(each.evaluated_value).startswith("cuda"))
    around = (source.enclosing(each, syntax.Call) for each in texts)
    if any(call is None or not script.is_call_to(call, "torch.device") for call in around):
        return True
    named = (arg for arg in source.of(syntax.Arg) if is_name(arg.keyword, "device"))
    if any(not _is_of_project(script, source.parents[arg]) for arg in named):
        return True
    devices = (each for kind in (syntax.Name, syntax.Attribute, syntax.Call) for each in source.of(kind))
    return any(script.role(each) is Role.DEVICE and not _is_kept(script, each) for each in devices)


def _is_of_project(script: Script, call: syntax.Node) -> bool:
    return isinstance(call, syntax.Call) and script.callee(call) is not None


def _is_kept(script: Script, device: syntax.Node) -> bool:
    match script.source.parents[device]:
        case syntax.Assign() | syntax.AssignTarget() | syntax.AnnAssign() | syntax.Param():
            return True
        case syntax.Attribute(value=holder, attr=name):
            return device is name or (device is holder and name.value == "type")
        case syntax.Arg(star="", keyword=keyword) as arg:
            call = script.source.parents[arg]
            return device is keyword or _is_of_project(script, call) or script.is_call_to(call, "print")
    return False


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
