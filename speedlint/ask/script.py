"""Script: the one thing a rule is handed: one source with its meaning, and the program around it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from speedlint.facts import syntax
from speedlint.facts.order import Order
from speedlint.program.imports import absolute
from speedlint.solve.flow import once
from speedlint.solve.loops import Loops
from speedlint.solve.names import Binding, Kind, Names, last_name
from speedlint.solve.roles import Roles
from speedlint.solve.terms import Constant, Definition, Value
from speedlint.solve.values import Values, needs_no_object
from speedlint.source import Source
from speedlint.torch import library
from speedlint.torch.words import Frequency, Place, Role

if TYPE_CHECKING:
    from speedlint.ask.program import Program
    from speedlint.disk import Mark


class Options(NamedTuple):
    """What the user chose that rules must know.

    Attributes:
        torch: the target release, such as ``(2, 4)``, or None where it is unknown.
        amp: ``"fp16"`` or ``"bf16"``.
        told: the newest release for who installs what the project's README says; None where it says nothing exact, or a
            requirement or the user names the target.
    """

    torch: tuple[int, int] | None = None
    amp: str = "fp16"
    told: tuple[int, int] | None = None


class Script:
    """One source with its meaning. Made by Program, never by hand.

    Attributes:
        script: itself, as all that is about a script has it.
    """

    def __init__(self, source: Source, names: Names, program: Program, options: Options) -> None:
        self.script, self.source, self.program, self.options = self, source, program, options
        self.path: Path = source.path
        self.key = absolute(source.path)
        self.folder = str(self.key.parent)
        self.names = names
        self.order = Order(source.tree)
        self.values = Values(self)
        self.roles = Roles(self)
        self.loops = Loops(self)

    # Text

    def text(self, node: syntax.Node) -> str:
        """The node as written, own parentheses included."""
        return self.source.text(node)

    def first_line(self, node: syntax.Node) -> str:
        """The first line of the node as written."""
        return self.text(node).partition("\n")[0].rstrip()

    # Names

    def name(self, expression: syntax.Node) -> str | None:
        """The full dotted name of a library's object, such as ``torch.utils.data.DataLoader``; None for what the project
        defines or computes. Names under which torch exports one thing twice are made one (``library.CANONICAL``)."""
        if expression not in self._names:
            self._names[expression] = self._find_name(expression)
        return self._names[expression]

    @cached_property
    def _names(self) -> dict[syntax.Node, str | None]:
        return {}

    def _find_name(self, expression: syntax.Node) -> str | None:
        dotted = self.dotted(expression)
        if dotted is None:
            return None
        if dotted not in self._handed_on:
            self._handed_on[dotted] = self._through(dotted) or dotted
        dotted = self._handed_on[dotted]
        return library.CANONICAL.get(dotted, dotted)

    def dotted(self, expression: syntax.Node) -> str | None:
        """The dotted name that an import of this file gives an expression, of the project's objects too, as the import
        writes it; also by one of several ``from module import *``. None for what this file defines or computes."""
        return self.names.dotted(expression) or self._starred(expression)

    def _through(self, dotted: str, depth: int = 0) -> str | None:
        """The library's object that a first-party module hands on under a dotted name, as after ``from .parts import *``."""
        found = self.program.module(self, dotted)
        if found is None:
            return dotted
        script = self.program.reached(found[0])
        head, _, tail = found[1].partition(".")
        if script is None or not head or depth > 6:
            return None
        bindings = script.names.module.bindings.get(head)
        if not bindings:
            handed = script.star_imported(head)
            return script._through(f"{handed}.{tail}" if tail else handed, depth + 1) if handed is not None else None
        last = bindings[-1]
        if last.kind is not Kind.IMPORT or last.dotted is None:
            return None
        return script._through(f"{last.dotted}.{tail}" if tail else last.dotted, depth + 1)

    def _starred(self, expression: syntax.Node) -> str | None:
        """The dotted name of an expression whose first name one of several ``from module import *`` binds."""
        if len(self.names.module.stars) < 2:
            return None
        parts: list[str] = []
        node = expression
        while isinstance(node, syntax.Attribute):
            parts.insert(0, node.attr.value)
            node = node.value
        if not isinstance(node, syntax.Name) or self.names.scope(node).lookup(node.value) is not None:
            return None
        handed = self.star_imported(node.value)
        return ".".join((handed, *parts)) if handed is not None else None

    @once(None)
    def star_imported(self, name: str) -> str | None:
        """The dotted name of what the last ``from module import *`` of a first-party module that hands on a name binds."""
        for star in reversed(self.names.module.stars):
            found = self.program.module(self, star)
            script = self.program.reached(found[0]) if found is not None and not found[1] else None
            if script is not None and script._hands_on(name) and not script._takes(name, self):
                return f"{star}{name}" if star.endswith(".") else f"{star}.{name}"
        return None

    def _hands_on(self, name: str) -> bool:
        """Whether ``from this_module import *`` binds a name: one of ``__all__``, or one without an underscore in front."""
        listed = self._all_names
        if name not in listed if listed is not None else name.startswith("_"):
            return False
        return name in self.names.module.bindings or self.star_imported(name) is not None

    def _takes(self, name: str, package: Script) -> bool:
        """Whether a name is what this file imports from a package, which star-imports this file and had it before:
        ``from models import Base`` in ``models/unet.py``."""
        bindings = self.names.module.bindings.get(name)
        dotted = bindings[-1].dotted if bindings and bindings[-1].kind is Kind.IMPORT else None
        found = self.program.module(self, dotted) if dotted is not None else None
        return found is not None and found[1] == name and self.program.reached(found[0]) is package

    @cached_property
    def _all_names(self) -> frozenset[str] | None:
        """The strings of ``__all__``; None where it is not set, or not by one list that is written out."""
        bindings = self.names.module.bindings.get("__all__", [])
        listed = bindings[0].value if len(bindings) == 1 and not bindings[0].path else None
        if not isinstance(listed, (syntax.List, syntax.Tuple)):
            return None
        strings = [each.value for each in listed.elements if isinstance(each.value, syntax.SimpleString)]
        if len(strings) < len(listed.elements):
            return None
        return frozenset(str(each.evaluated_value) for each in strings)

    @cached_property
    def _handed_on(self) -> dict[str, str]:
        return {}

    def is_call_to(self, node: syntax.Node, *names: str) -> bool:
        """Whether the node is a call of the library function with one of these full names."""
        return isinstance(node, syntax.Call) and self.name(node.func) in names

    def calls(self, *names: str) -> Iterator[syntax.Call]:
        """All calls of library functions with one of these full names, in source order."""
        found = [call for name in names for call in self._calls_of(name)]
        return iter(found if len(names) == 1 else sorted(found, key=_row))

    def _calls_of(self, dotted: str) -> list[syntax.Call]:
        if dotted not in self._library_calls:
            last = dotted.rpartition(".")[2]
            written = [last, *(name for name in self.names.called.keys() & self._other_names if name != last)]
            candidates = (call for name in written for call in self.written_calls(name))
            self._library_calls[dotted] = sorted((call for call in candidates if self.name(call.func) == dotted), key=_row)
        return self._library_calls[dotted]

    @cached_property
    def _library_calls(self) -> dict[str, list[syntax.Call]]:
        return {}

    def written_calls(self, name: str) -> list[syntax.Call]:
        """The calls of names and attributes, by the last name that is written."""
        return self.source.at(syntax.Call, self.names.called.get(name, ()))

    @cached_property
    def _other_names(self) -> set[str]:
        """The names that may stand for what has another one: by ``import ... as``, here or in another file, or by ``=``."""
        found = set(self.program.renamed(self))
        found.update(name for name, dotted in self.names.imports if dotted.rpartition(".")[2] != name)
        found.update(self.names.aliases())
        return found

    def method_calls(self, *names: str) -> list[syntax.Call]:
        """All calls ``x.name(...)`` whose attribute is one of ``names``, whatever ``x`` is."""
        written = (call for name in names for call in self.written_calls(name))
        found = [call for call in written if isinstance(call.func, syntax.Attribute)]
        return found if len(names) == 1 else sorted(found, key=_row)

    # Definitions and calls

    def alike(self, call: syntax.Call) -> Iterator[syntax.Call]:
        """The calls in this file that run the same first-party function as ``call``, by the same name, itself among them."""
        callee = self.callee(call)
        if callee is None:
            return iter((call,))
        name = last_name(call.func)
        named = self.written_calls(name) if name is not None else [call]
        return (each for each in named if each is call or self.callee(each) == callee)

    def definition(self, expression: syntax.Node) -> Definition | None:
        """The first-party function or class that a name or attribute stands for, in this file or another."""
        if expression not in self._definitions:
            self._definitions[expression] = self._find_definition(expression)
        return self._definitions[expression]

    @cached_property
    def _definitions(self) -> dict[syntax.Node, Definition | None]:
        return {}

    def _find_definition(self, expression: syntax.Node) -> Definition | None:
        if isinstance(expression, syntax.Name):
            for binding in self.names.reaching(expression):
                found = self._definition_of(binding)
                if found is not None:
                    return found
        dotted = self.dotted(expression)
        return self.imported(dotted) if dotted is not None else None

    def _definition_of(self, binding: Binding) -> Definition | None:
        if isinstance(binding.node, (syntax.FunctionDef, syntax.ClassDef)):
            return Definition(self, binding.node)
        if binding.kind is Kind.IMPORT and binding.dotted is not None:
            return self.imported(binding.dotted)
        return None

    def imported(self, dotted: str) -> Definition | None:
        """The definition that a dotted name imported here leads to, through re-exports."""
        binding, script = self.imported_binding(dotted)
        if binding is None or script is None:
            return self._without_object(dotted)
        if isinstance(binding.node, (syntax.FunctionDef, syntax.ClassDef)):
            return Definition(script, binding.node)
        return None

    def _without_object(self, dotted: str) -> Definition | None:
        """The method that is called on the imported class which defines it: ``Backbones.build(...)``. One that the class
        inherits is not looked for: a library's ``from_pretrained`` leads through all of its mixins.
        """
        holder, _, name = dotted.rpartition(".")
        binding, script = self.imported_binding(holder) if holder else (None, None)
        if binding is None or script is None or not isinstance(binding.node, syntax.ClassDef):
            return None
        for each in binding.node.body.body:
            if isinstance(each, syntax.FunctionDef) and each.name.value == name and needs_no_object(each):
                return Definition(script, each)
        return None

    @once((None, None))
    def imported_binding(self, dotted: str) -> tuple[Binding | None, Script | None]:
        """The binding, and the script it stands in, that a dotted name imported here leads to."""
        found = self.program.module(self, dotted)
        if found is None:
            return None, None
        path, rest = found
        script = self.program.reached(path)
        if script is None:
            return None, None
        if not rest:
            return self._bound_by_package(dotted, path)
        head, dot, tail = rest.partition(".")
        bindings = script.names.module.bindings.get(head)
        last = bindings[-1] if bindings else None
        handed = script.star_imported(head) if last is None else last.dotted
        if handed is not None:
            return script.imported_binding(f"{handed}{dot}{tail}")
        return (last, script) if last is not None and not tail else (None, None)

    def _bound_by_package(self, dotted: str, module: Path) -> tuple[Binding | None, Script | None]:
        """What a package binds the name of one of its modules to instead: ``from .unet import unet``."""
        holder, _, name = dotted.rpartition(".")
        found = self.program.module(self, holder) if holder.strip(".") else None
        package = self.program.reached(found[0]) if found is not None and not found[1] else None
        if package is None or package.path.name != "__init__.py":
            return None, None
        bindings = package.names.module.bindings.get(name)
        if bindings and (len(bindings) > 1 or package.source.enclosing(bindings[0].node, syntax.If, syntax.Try) is not None):
            return None, None
        handed = bindings[-1].dotted if bindings else package.star_imported(name)
        if handed is not None:
            is_module = package.program.module(package, handed) == (module, "")
            return package.imported_binding(handed) if not is_module else (None, None)
        return (bindings[-1], package) if bindings else (None, None)

    def callee(self, call: syntax.Call) -> Definition | None:
        """The first-party function that a call runs: a function, a method, a class's ``__init__``, an instance's
        ``forward`` or ``__call__``."""
        return self.roles.callee(call)

    def call_sites(self, function: syntax.FunctionDef) -> list[tuple[Script, syntax.Call]]:
        """The calls of one of this file's functions, here and in the files that import this one."""
        return self.roles.call_sites(function)

    def function(self, node: syntax.Node) -> syntax.FunctionDef | None:
        """The function ``node`` stands in."""
        found = self.source.enclosing(node, syntax.FunctionDef)
        return found if isinstance(found, syntax.FunctionDef) else None

    # Values

    def constant(self, expression: syntax.BaseExpression) -> Constant | None:
        """The value of an expression, known before the script runs, and where it is set; None if it is not known."""
        return self.values.constant(expression)

    def argument(self, call: syntax.Call, keyword: str, position: int | None = None) -> syntax.BaseExpression | None:
        """The expression passed for a parameter, through ``**kwargs`` of a known dict too; None if it is not passed."""
        return self.values.argument(call, keyword, position)

    def hides_arguments(self, call: syntax.Call) -> bool:
        """Whether a ``*args`` or ``**kwargs`` of unknown contents may pass any argument."""
        return self.values.hides_arguments(call)

    # Roles

    def value(self, expression: syntax.Node) -> Value:
        """What is known of an expression's value."""
        return self.roles.value(expression)

    def role(self, expression: syntax.Node) -> Role:
        """What an expression's value is."""
        return self.roles.value(expression).role

    def is_device_tensor(self, expression: syntax.Node) -> bool:
        """Whether an expression is a tensor that is, or may be, on a GPU."""
        value = self.roles.value(expression)
        return value.role is Role.TENSOR and value.place is not Place.HOST and self.on_gpu

    def is_shown_device_tensor(self, expression: syntax.Node) -> bool:
        """Like ``is_device_tensor``, of what something shows to be a tensor, not the signature of a ``forward`` alone."""
        return self.is_device_tensor(expression) and not self.value(expression).assumed

    @property
    @once(False)
    def on_gpu(self) -> bool:
        """Whether a script of the program shows that it trains on a GPU. Others do not show it of one that certainly
        moves nothing there, nor does one show it that makes a device and puts nothing on it."""
        from speedlint.solve import unmoved

        shown = any(script.roles.shows_gpu() for script in self.everywhere(*library.GPU_MARKS))
        return shown and not unmoved.never_moves(self) and not unmoved.only_names_device(self)

    def everywhere(self, *marks: Mark) -> Iterator[Script]:
        """This script, and the others of its programs whose text holds one of ``marks`` (all without any), nearest first."""
        yield self
        yield from self.program.others(self, *marks)

    @cached_property
    def is_test(self) -> bool:
        """Whether the file is a test or stands among tests."""
        return self.program.is_among_tests(self.key) or (
            self.path.stem.startswith("test_")
            and any(each.name.value.startswith("test") for each in self.source.of(syntax.FunctionDef))
        )

    def is_reported(self, other: Script) -> bool:
        """Whether findings in another script are reported there: it is this one, or its file is asked for too."""
        return other.path == self.path or self.program.is_asked(other.path)

    def calls_everywhere(self, *names: str) -> Iterator[tuple[Script, syntax.Call]]:
        """The calls of library functions with one of these full names in the program's scripts."""
        for script in self.everywhere(*{name.rpartition(".")[2].encode() for name in names}):
            yield from ((script, call) for call in script.calls(*names))

    def calls_on(self, made: syntax.Call, *methods: str) -> Iterator[tuple[Script, syntax.Call]]:
        """The calls of methods, in the program's scripts, on the object that a call makes."""
        for place in self.everywhere(*(f".{method}(".encode() for method in methods)):
            for call in place.method_calls(*methods):
                assert isinstance(call.func, syntax.Attribute)
                if any(node is made for _, node in place.roles.origins(call.func.value)):
                    yield place, call

    @cached_property
    def imports(self) -> list[Script]:
        """The first-party modules this script imports directly."""
        return list(self.names_of_imports())

    def names_of_imports(self) -> Iterator[Script]:
        """See ``imports``."""
        seen: set[Path] = set()
        for dotted in (*(dotted for _, dotted in self.names.imports), *self.names.module.stars):
            found = self.program.module(self, dotted) if dotted else None
            if found is not None and found[0] not in seen:
                seen.add(found[0])
                script = self.program.reached(found[0])
                if script is not None:
                    yield script

    # Frequency

    def frequency(self, node: syntax.Node) -> Frequency:
        """How often the node runs, at most."""
        return self.loops.frequency(node)


def _row(node: syntax.Node) -> int:
    return node.row
