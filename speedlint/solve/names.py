"""Scopes and imports: what binds a name, which bindings reach a use, and the full dotted name of an expression."""

from __future__ import annotations

import builtins
import enum
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import cast

from speedlint.facts import syntax
from speedlint.facts.rows import Rows, column
from speedlint.source import Source, is_none, leaves

_COMPREHENSIONS = (syntax.ListComp, syntax.SetComp, syntax.GeneratorExp, syntax.DictComp)
_BRANCHING = (syntax.If, syntax.For, syntax.While, syntax.Try)
_BRANCHES = (syntax.Else, syntax.ExceptHandler, syntax.MatchCase, syntax.IfExp)
_BODY = {kind.kind: kind.fields.index("body") for kind in (syntax.FunctionDef, syntax.ClassDef, syntax.Lambda)}
"""Which field of a scope is evaluated within it."""
_FOR_IN = {kind.kind: kind.fields.index("for_in") for kind in _COMPREHENSIONS}
_ITERATED = syntax.CompFor.fields.index("iter")
_INNER = syntax.CompFor.fields.index("inner_for_in")
_MAY_NOT_RUN = {kind.kind: kind.fields.index("body") for kind in _BRANCHING}
_NO_USE = {
    syntax.Attribute.kind: syntax.Attribute.fields.index("attr"),
    syntax.Arg.kind: syntax.Arg.fields.index("keyword"),
    syntax.Param.kind: syntax.Param.fields.index("name"),
}
"""Which fields hold names that stand for no variable."""
_BRANCH = frozenset(kind.kind for kind in _BRANCHES)
_NAMED = (syntax.Name.kind, syntax.Attribute.kind)
_APART = frozenset((*_BODY, *_FOR_IN, *_MAY_NOT_RUN, *_BRANCH, syntax.CompFor.kind))
"""What is looked at by field: any other row has the scope and the region of the row above."""
_BUILTINS = frozenset(dir(builtins))
_ACCESSORS = frozenset({"setter", "deleter", "getter"})
_PLAIN = frozenset(
    "staticmethod classmethod property cached_property overload abstractmethod override final no_grad inference_mode "
    "enable_grad".split()
)


class Kind(enum.Enum):
    """What kind of statement binds a name."""

    ASSIGN = enum.auto()
    AUGMENT = enum.auto()
    IMPORT = enum.auto()
    FUNCTION = enum.auto()
    CLASS = enum.auto()
    PARAMETER = enum.auto()
    FOR = enum.auto()
    WITH = enum.auto()
    OTHER = enum.auto()


@dataclass(frozen=True, slots=True, eq=False)
class Binding:
    """One place that binds a name.

    Attributes:
        node: the target name, parameter, import alias, function or class.
        value: the expression assigned, added, iterated over (FOR) or entered (WITH); None where there is none.
        path: how the value is taken apart to reach the name: ``a, (b, c) = v`` binds ``c`` with path ``(1, 1)``; None
            stands for a starred element and for those after it.
        dotted: for imports, the full name, with leading dots where it is relative.
        effect: the place in source order from which on the binding holds.
        region: the innermost block that may not run: the branch, loop body or handler around the binding.
    """

    name: str
    kind: Kind
    node: syntax.Node
    value: syntax.BaseExpression | None
    path: tuple[int | None, ...]
    dotted: str | None
    effect: int
    region: syntax.Node | None


_Bound = tuple[Kind, int, int, tuple["int | None", ...], "str | None", int, int]
"""A binding by its rows: its kind, its node, its value, the path, the full name of an import, the effect and the region; -1
stands for none."""


class Bindings(Mapping[str, list[Binding]]):
    """The bindings of each name of a scope, in the order in which they take effect; made when they are asked for."""

    __slots__ = ("_made", "_rows", "_tree")

    def __init__(self, tree: syntax.Tree) -> None:
        self._tree = tree
        self._rows: dict[str, list[_Bound]] = {}
        self._made: dict[str, list[Binding]] = {}

    def add(self, name: str, bound: _Bound) -> None:
        """Adds one."""
        self._rows.setdefault(name, []).append(bound)

    def close(self) -> None:
        """Puts them in order, when all are there."""
        for bound in self._rows.values():
            if len(bound) > 1:
                bound.sort(key=_effect)

    def imports(self) -> Iterator[tuple[str, str]]:
        """The names that imports bind, each with the full name of what it stands for."""
        return ((name, each[4]) for name, bound in self._rows.items() for each in bound if each[4] is not None)

    def other_names(self) -> Iterator[tuple[str, str]]:
        """The names that stand for what has another one, by an import or by ``=``, each with the last one that it has."""
        for name, bound in self._rows.items():
            for kind, _, value, path, dotted, _, _ in bound:
                last = dotted.rpartition(".")[2] if dotted is not None else ""
                if kind is Kind.ASSIGN and not path:
                    last = self._last_name(value)
                if last not in ("", name):
                    yield name, last

    def _last_name(self, row: int) -> str:
        rows = self._tree.rows
        if rows.kind[row] == syntax.Attribute.kind:
            return _text(rows, rows.last[row + 1] + 1)
        return _text(rows, row) if rows.kind[row] == syntax.Name.kind else ""

    def aliases(self) -> Iterator[str]:
        """The names that are assigned what is another name or an attribute, or a part of it."""
        kinds = self._tree.rows.kind
        for name, bound in self._rows.items():
            yield from (name for each in bound if each[0] is Kind.ASSIGN and kinds[each[2]] in _NAMED)

    def __getitem__(self, name: str) -> list[Binding]:
        found = self._made.get(name)
        if found is None:
            found = self._made[name] = [self._binding(name, *bound) for bound in self._rows[name]]
        return found

    def __contains__(self, name: object) -> bool:
        return name in self._rows

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def _binding(
        self,
        name: str,
        kind: Kind,
        at: int,
        value: int,
        path: tuple[int | None, ...],
        dotted: str | None,
        effect: int,
        region: int,
    ) -> Binding:
        node = self._tree.node
        given = cast(syntax.BaseExpression, node(value)) if value >= 0 else None
        return Binding(name, kind, node(at), given, path, dotted, effect, node(region) if region >= 0 else None)


class Scope:
    """The names that one module, class, function, lambda or comprehension binds."""

    __slots__ = ("_tree", "bindings", "kind", "outer", "parent", "row", "stars")

    def __init__(self, tree: syntax.Tree, row: int, parent: Scope | None) -> None:
        self._tree, self.row, self.parent = tree, row, parent
        self.kind = tree.rows.kind[row]
        self.bindings = Bindings(tree)
        self.outer: dict[str, bool] = {}
        self.stars: list[str] = []

    @property
    def node(self) -> syntax.Node:
        """Whose scope it is."""
        return self._tree.node(self.row)

    def lookup(self, name: str) -> Scope | None:
        """The scope that binds ``name`` as seen from here, by Python's rules."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.outer:
                scope = scope.module if scope.outer[name] else scope.parent
                continue
            if name in scope.bindings and (scope is self or scope.kind != syntax.ClassDef.kind):
                return scope
            scope = scope.parent
        return None

    @property
    def module(self) -> Scope:
        """The module's own scope."""
        scope = self
        while scope.parent is not None:
            scope = scope.parent
        return scope


class Names:
    """All scopes of one source."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._owners, self._regions = _places(source.tree.rows)
        self._scopes: dict[int, Scope] = {}
        self._reached: dict[syntax.Name, list[Binding]] = {}
        self._dotted: dict[syntax.Node, str | None] = {}
        self.module = self._scope_of_row(0)
        self._bind_everything()
        for scope in self._scopes.values():
            scope.bindings.close()

    def scope(self, node: syntax.Node) -> Scope:
        """The scope in which ``node`` is evaluated."""
        row = self._owners[node.row]
        return self._scopes.get(row) or self._scope_of_row(row)

    def _scope_of_row(self, row: int) -> Scope:
        found = self._scopes.get(row)
        if found is None:
            parent = self._scope_of_row(self._owners[row]) if row else None
            found = self._scopes[row] = Scope(self.source.tree, row, parent)
        return found

    @cached_property
    def called(self) -> dict[str, array[int]]:
        """The rows of the calls of names and attributes, by the last name that is written."""
        rows = self.source.tree.rows
        kinds, lasts = rows.kind, rows.last
        found: dict[str, array[int]] = {}
        for row in rows.of(syntax.Call.kind):
            function = row + 1
            if kinds[function] == syntax.Attribute.kind:
                name = _text(rows, lasts[function + 1] + 1)
            elif kinds[function] == syntax.Name.kind:
                name = _text(rows, function)
            else:
                continue
            if name not in found:
                found[name] = array("i")
            found[name].append(row)
        return found

    def owner(self, function: syntax.FunctionDef) -> syntax.ClassDef | None:
        """The class whose method this is."""
        scope = self.scope(function)
        return scope.node if isinstance(scope.node, syntax.ClassDef) else None

    def all_bindings(self) -> Iterator[list[Binding]]:
        """The bindings of each name of each scope."""
        for scope in self._scopes.values():
            yield from scope.bindings.values()

    @cached_property
    def imports(self) -> list[tuple[str, str]]:
        """The names that the file's imports bind, in any scope, each with the full name of what it stands for; with leading
        dots where that is relative."""
        return [found for scope in self._scopes.values() for found in scope.bindings.imports()]

    def other_names(self) -> list[tuple[str, str]]:
        """The names that stand for what has another one, by an import or by ``=``, each with the last one that it has."""
        return [found for scope in self._scopes.values() for found in scope.bindings.other_names()]

    def aliases(self) -> list[str]:
        """The names that are assigned what is another name or an attribute, or a part of it, in any scope."""
        return [name for scope in self._scopes.values() for name in scope.bindings.aliases()]

    # Binding

    def _bind_everything(self) -> None:
        source, rows = self.source, self.source.tree.rows
        declarations: list[syntax.Global | syntax.Nonlocal] = [*source.of(syntax.Global), *source.of(syntax.Nonlocal)]
        for node in declarations:
            for declared in node.names:
                if (scope := self.scope(node)).parent is not None:  # at the top of a module `global` says nothing
                    scope.outer[declared.name.value] = isinstance(node, syntax.Global)
        for row, found in _parts(rows, syntax.Assign):
            for target in found["targets"]:
                self._bind_target(target + 1, Kind.ASSIGN, found["value"][0], row)
        for row, found in _parts(rows, syntax.AnnAssign):
            for value in found["value"]:
                self._bind_target(found["target"][0], Kind.ASSIGN, value, row)
        for row, found in _parts(rows, syntax.AugAssign):
            self._bind_target(found["target"][0], Kind.AUGMENT, found["value"][0], row)
        for row, found in _parts(rows, syntax.NamedExpr):
            self._bind_target(found["target"][0], Kind.ASSIGN, found["value"][0], row)
        for _, found in _parts(rows, syntax.For):
            self._bind_target(found["target"][0], Kind.FOR, found["iter"][0], found["body"][0], before=True)
        for row, found in _parts(rows, syntax.CompFor):
            target, scope = found["target"][0], self._scope_of_row(row)
            self._bind_target(target, Kind.FOR, found["iter"][0], target, before=True, scope=scope)
        for row, found in _parts(rows, syntax.WithItem):
            for asname in found["asname"]:
                self._bind_target(asname + 1, Kind.WITH, found["item"][0], row)
        for _, found in _parts(rows, syntax.ExceptHandler):
            for asname in found["name"]:
                self._bind_target(asname + 1, Kind.OTHER, -1, asname)
        for row, found in _parts(rows, syntax.MatchAs):
            for name in found["name"]:
                self._bind_target(name, Kind.OTHER, -1, row)
        self._bind_definitions()
        self._bind_imports()

    def _bind_definitions(self) -> None:
        rows = self.source.tree.rows
        for node, kind in ((syntax.FunctionDef, Kind.FUNCTION), (syntax.ClassDef, Kind.CLASS)):
            for row, found in _parts(rows, node):
                scope = self._scope_of_row(self._owners[row])
                self._add(scope, _text(rows, found["name"][0]), kind, row, -1, (), effect_of=row)
        functions = (syntax.FunctionDef.kind, syntax.Lambda.kind)
        for row, found in _parts(rows, syntax.Param):
            function = rows.parent[row]
            while rows.kind[function] not in functions:
                function = rows.parent[function]
            value = found["default"][0] if found["default"] else -1
            scope = self._scope_of_row(function)
            self._add(scope, _text(rows, found["name"][0]), Kind.PARAMETER, row, value, (), effect_of=row)

    def _bind_imports(self) -> None:
        rows = self.source.tree.rows
        for row, found in _parts(rows, syntax.Import):
            for alias in found["names"]:
                full, name = self._imported_names(alias)
                bound = name or full.split(".")[0]
                scope = self._scope_of_row(self._owners[row])
                self._add(scope, bound, Kind.IMPORT, alias, -1, (), full if name else bound, effect_of=row)
        for row, found in _parts(rows, syntax.ImportFrom):
            scope = self._scope_of_row(self._owners[row])
            module = _text(rows, row) + "".join(_dotted_text(rows, each) for each in found["module"])
            if found["star"]:
                scope.stars.append(module)
                continue
            for alias in found["aliases"]:
                name, asname = self._imported_names(alias)
                full = module + name if module.endswith(".") else f"{module}.{name}"
                self._add(scope, asname or name, Kind.IMPORT, alias, -1, (), full, effect_of=row)

    def _imported_names(self, alias: int) -> tuple[str, str | None]:
        """The full name that an alias imports, and the one that it gives."""
        rows = self.source.tree.rows
        found = _fields(rows, alias)
        names = [asname + 1 for asname in found["asname"] if rows.kind[asname + 1] == syntax.Name.kind]
        return _dotted_text(rows, found["name"][0]), _text(rows, names[0]) if names else None

    def _bind_target(
        self,
        target: int,
        kind: Kind,
        value: int,
        effect_of: int,
        *,
        before: bool = False,
        scope: Scope | None = None,
        path: tuple[int | None, ...] = (),
    ) -> None:
        rows = self.source.tree.rows
        if rows.kind[target] == syntax.Name.kind:
            where = scope or self._scope_of_row(self._owners[target])
            if rows.kind[effect_of] == syntax.NamedExpr.kind:
                while where.kind == syntax.CompFor.kind and where.parent:
                    where = where.parent
            self._add(where, _text(rows, target), kind, target, value, path, effect_of=effect_of, before=before)
        elif rows.kind[target] in (syntax.Tuple.kind, syntax.List.kind):
            step: int | None = None
            for index, element in enumerate(_fields(rows, target)["elements"]):
                is_starred = rows.kind[element] == syntax.StarredElement.kind
                step = None if is_starred or (index and step is None) else index
                self._bind_target(element + 1, kind, value, effect_of, before=before, scope=scope, path=(*path, step))

    def _add(
        self,
        scope: Scope,
        name: str,
        kind: Kind,
        node: int,
        value: int,
        path: tuple[int | None, ...],
        dotted: str | None = None,
        *,
        effect_of: int,
        before: bool = False,
    ) -> None:
        effect = effect_of if before else self.source.tree.rows.last[effect_of]
        if name in scope.outer and (outer := scope.lookup(name)) is not None:
            scope = outer
        elif scope.outer.get(name):
            scope = scope.module
        region = self._regions[node if before else effect_of]
        scope.bindings.add(name, (kind, node, value, path, dotted, effect, region))

    # Flow

    def region(self, node: syntax.Node) -> syntax.Node | None:
        """The innermost block around ``node``, within its function, that may not run or may run again."""
        row = self._regions[node.row]
        return self.source.tree.node(row) if row >= 0 else None

    def reaching(self, name: syntax.Name) -> list[Binding]:
        """The bindings whose value ``name`` may have, latest first; all of them where the name is of an outer scope."""
        found = self._reached.get(name)
        if found is None:
            found = self._reached[name] = self._find_reaching(name)
        return found

    def adding_up(self, name: syntax.Name) -> list[Binding]:
        """The bindings whose values are in what ``name`` stands for: those that reach it, and where one of them is a ``+=``,
        those that it adds to."""
        found: dict[syntax.Node, Binding] = {}
        names = [name]
        while names:
            for binding in self.reaching(names.pop()):
                if binding.node in found:
                    continue
                found[binding.node] = binding
                if binding.kind is Kind.AUGMENT and isinstance(binding.node, syntax.Name):
                    names.append(binding.node)
        return list(found.values())

    def _find_reaching(self, name: syntax.Name) -> list[Binding]:
        scope = self.scope(name)
        owner = scope.lookup(name.value)
        if owner is None:
            return []
        bindings = owner.bindings[name.value]
        around: Scope | None = scope
        while around is not None and around is not owner and around.kind == syntax.CompFor.kind:
            around = around.parent
        if owner.kind == syntax.CompFor.kind:
            return list(reversed(bindings))
        if owner is not around:
            return self._reaching_inside(name, owner, bindings)
        return self._reaching_at(name, [each for each in bindings if not self._is_set_later(each, name, owner)])

    def _is_set_later(self, binding: Binding, use: syntax.Name, owner: Scope) -> bool:
        """Whether a function sets a name by ``global``, and nothing speaks of that function before the use."""
        if self.scope(binding.node) is owner:
            return False
        function = self.source.enclosing(binding.node, syntax.FunctionDef)
        if not isinstance(function, syntax.FunctionDef) or self.scope(function) is not owner:
            return False
        if self.source.enclosing(use, syntax.For, syntax.While) is not None:
            return False
        at, order = self.source.order[use], self.source.order
        return all(order[each] > at or self.source.contains(function, each) for each in self.uses(function.name))

    def _reaching_inside(self, name: syntax.Name, owner: Scope, bindings: list[Binding]) -> list[Binding]:
        """The bindings of an outer scope's name that code of an inner function may meet: those that reach the place where
        the function is defined, and all that come later."""
        if len(bindings) == 1:
            return [*bindings]
        definitions = (syntax.FunctionDef, syntax.Lambda, syntax.ClassDef)
        inner = [up for up in self.source.ancestors(name) if isinstance(up, definitions) and self.scope(up) is owner]
        if not inner:
            return list(reversed(bindings))
        at, own = self.source.order[inner[-1]], [each for each in bindings if self.scope(each.node) is owner]
        met = self._reaching_at(inner[-1], own)
        return [each for each in reversed(bindings) if each in met or each not in own or each.effect >= at]

    def _reaching_at(self, use: syntax.Node, bindings: list[Binding]) -> list[Binding]:
        source, at = self.source, self.source.order[use]
        around, above, row = {use.row}, source.tree.rows.parent, use.row
        while (row := above[row]) >= 0:
            around.add(row)
        found: list[Binding] = []
        covered: set[int] = set()
        stop: Binding | None = None
        for binding in reversed(bindings):
            if binding.effect >= at:
                continue
            if self._excluded(binding, around):
                continue
            found.append(binding)
            if self._settles(binding, around, covered):
                stop = binding
                break
        found += self._carried(use, at, stop, bindings)
        return found

    def _excluded(self, binding: Binding, around: set[int]) -> bool:
        """Whether the binding stands in the other branch of an if that the use stands in."""
        region = binding.region
        while region is not None:
            parent = self.source.parents[region]
            if region.row not in around and isinstance(parent, syntax.If) and parent.row in around:
                return _is_in(parent.orelse, around) or parent.body.row in around
            region = self.region(parent)
        return False

    def _settles(self, binding: Binding, around: set[int], covered: set[int]) -> bool:
        """Whether nothing before the binding can reach the use: it always runs, or each branch of its if or try binds."""
        region = binding.region
        while region is not None and region.row not in around:
            parent = self.source.parents[region]
            covered.add(region.row)
            match parent:
                case syntax.If(body=body, orelse=orelse):
                    settled = body.row in covered and _is_in(orelse, covered)
                case syntax.Try(body=body, handlers=handlers, orelse=orelse) if parent.row not in around:
                    settled = (body.row in covered or _is_in(orelse, covered)) and all(
                        handler.row in covered or leaves(handler.body) for handler in handlers
                    )
                case _:
                    settled = False
            if not settled:
                return False
            region = self.region(parent)
        return True

    def _carried(self, use: syntax.Node, at: int, stop: Binding | None, bindings: list[Binding]) -> Iterator[Binding]:
        """Bindings further down in a loop around the use: they reach it on the next turn."""
        if all(binding.effect < at for binding in bindings):
            return
        loops = [up for up in self.source.ancestors(use) if isinstance(up, (syntax.For, syntax.While))]
        seen: set[int] = set()
        for loop in loops:
            first, last = self.source.order[loop], self.source.last(loop)
            if stop is not None and first < stop.effect <= at:
                break
            for binding in bindings:
                if at <= binding.effect <= last and id(binding) not in seen and binding.kind is not Kind.FOR:
                    seen.add(id(binding))
                    yield binding

    @cached_property
    def _uses(self) -> dict[tuple[int, str], array[int]]:
        """The rows of the names that stand for each variable, by its scope."""
        rows = self.source.tree.rows
        kinds, slots, parents, texts, strings = rows.kind, rows.slot, rows.parent, rows.text, rows.strings
        found: dict[tuple[int, str], array[int]] = {}
        owners: dict[tuple[int, str], Scope | None] = {}
        modules = self._module_rows()
        for row in rows.of(syntax.Name.kind):
            if _NO_USE.get(kinds[parents[row]]) == slots[row] or row in modules:
                continue
            place = (self._owners[row], strings[texts[row]])
            if place not in owners:
                owners[place] = self._scope_of_row(place[0]).lookup(place[1])
            scope = owners[place]
            if scope is not None:
                variable = (id(scope), place[1])
                if variable not in found:
                    found[variable] = array("i")
                found[variable].append(row)
        return found

    def _module_rows(self) -> set[int]:
        """The rows of the names by which modules are found, ``a`` of ``from a.b import c``: they stand for no variable."""
        found = [each.module for each in self.source.of(syntax.ImportFrom) if each.module is not None]
        found += [each.name for each in self.source.of(syntax.ImportAlias) if each.asname is not None]
        return {name.row for each in found for name in self.source.inside(each, syntax.Name)}

    def uses(self, name: syntax.Name | syntax.Param) -> list[syntax.Name]:
        """Every place, targets included, where the variable that ``name`` stands for is written, in source order."""
        variable, node = self.variable(name), self.source.tree.node
        return [node(row) for row in self._uses.get(variable, ())] if variable is not None else []  # type: ignore[misc]

    def variable(self, name: syntax.Name | syntax.Param) -> tuple[int, str] | None:
        """What is the same for all names and parameters of this file that stand for the same variable."""
        if isinstance(name, syntax.Param):
            function = self.source.enclosing(name, syntax.FunctionDef, syntax.Lambda)
            assert function is not None
            return id(self._scope_of_row(function.row)), name.name.value
        owner = self.scope(name).lookup(name.value)
        return (id(owner), name.value) if owner is not None else None

    # Dotted names

    def dotted(self, expression: syntax.Node, depth: int = 0) -> str | None:
        """The full name of what an expression stands for: ``torch.utils.data.DataLoader`` for ``DL``; builtins as
        themselves; None for what this file defines or computes. Relative imports keep their leading dots."""
        if depth == 0 and expression in self._dotted:
            return self._dotted[expression]
        found = self._find_dotted(expression, depth)
        if depth == 0:
            self._dotted[expression] = found
        return found

    def _find_dotted(self, expression: syntax.Node, depth: int) -> str | None:
        if isinstance(expression, syntax.Attribute):
            base = self.dotted(expression.value, depth)
            return None if base is None or base in _BUILTINS else f"{base}.{expression.attr.value}"
        if not isinstance(expression, syntax.Name) or depth > 5:
            return None
        bindings = [b for b in self.reaching(expression) if not is_none(b.value)]
        if not bindings:
            return self._unbound(expression)
        names = {self._dotted_binding(binding, depth) for binding in bindings}
        return names.pop() if len(names) == 1 else None

    def _unbound(self, name: syntax.Name) -> str | None:
        if self.scope(name).lookup(name.value) is not None:
            return None
        if name.value in _BUILTINS:
            return name.value
        stars = [star for star in self.module.stars if star]
        return f"{stars[0]}.{name.value}" if len(stars) == 1 else None

    def _dotted_binding(self, binding: Binding, depth: int) -> str | None:
        if binding.kind is Kind.IMPORT:
            return binding.dotted
        if binding.kind is Kind.ASSIGN and not binding.path and isinstance(binding.value, (syntax.Name, syntax.Attribute)):
            return self.dotted(binding.value, depth + 1)
        return None

    def imported_as(self, dotted: str) -> str | None:
        """How the module's top level spells ``dotted`` already, such as ``F.relu`` for ``torch.nn.functional.relu``."""
        spellings = []
        for name, bindings in self.module.bindings.items():
            full = bindings[0].dotted
            if full and not bindings[0].region and all(binding.dotted == full for binding in bindings):
                if dotted == full:
                    spellings.append(name)
                elif dotted.startswith(full + "."):
                    spellings.append(name + dotted[len(full) :])
        return min(spellings, key=lambda spelling: (spelling.count("."), len(spelling), spelling), default=None)


def _places(rows: Rows) -> tuple[array[int], array[int]]:
    """For each row the row of the scope in which it is evaluated, and that of its region (see ``Names.region``) or -1."""
    kinds, slots, lasts = rows.kind, rows.slot, rows.last
    owners, regions = [0], [-1]
    for row, above in enumerate(rows.parent[1:], 1):
        kind, owner, region = kinds[above], owners[above], regions[above]
        if kind in _APART:
            if kind in _BODY:
                owner, region = above if slots[row] == _BODY[kind] else owner, -1
            elif kind == syntax.CompFor.kind:
                owner, region = above if slots[row] != _ITERATED else owner, -1
            elif kind in _FOR_IN:
                if slots[row] != _FOR_IN[kind]:
                    clause = above + 1
                    while slots[clause] != _FOR_IN[kind]:
                        clause = lasts[clause] + 1
                    owner = _innermost(rows, clause)
            elif kind in _BRANCH:
                region = above
            elif slots[row] == _MAY_NOT_RUN[kind] or kind == kinds[row] == syntax.If.kind:
                region = row
        owners.append(owner)
        regions.append(region)
    return column(owners), column(regions)


def _is_in(node: syntax.Node | None, rows: set[int]) -> bool:
    return node is not None and node.row in rows


def _innermost(rows: Rows, clause: int) -> int:
    """The last ``for`` of a comprehension, which what it makes is evaluated in."""
    kinds, slots, lasts = rows.kind, rows.slot, rows.last
    child = clause + 1
    while child <= lasts[clause]:
        if kinds[child] == syntax.CompFor.kind and slots[child] == _INNER:
            return _innermost(rows, child)
        child = lasts[child] + 1
    return clause


def last_name(node: syntax.Node) -> str | None:
    """The last name of a name or attribute as it is written: ``step`` of ``self.optimizer.step``; None for anything else."""
    if isinstance(node, syntax.Attribute):
        return node.attr.value
    return node.value if isinstance(node, syntax.Name) else None


def _fields(rows: Rows, row: int) -> dict[str, list[int]]:
    """The rows right below one, by the field that they are part of."""
    names, slots, lasts = syntax.KINDS[rows.kind[row]].fields, rows.slot, rows.last
    found: dict[str, list[int]] = {name: [] for name in names}
    child, end = row + 1, lasts[row]
    while child <= end:
        found[names[slots[child]]].append(child)
        child = lasts[child] + 1
    return found


def _parts(rows: Rows, kind: type[syntax.Node]) -> Iterator[tuple[int, dict[str, list[int]]]]:
    """The rows of one kind, in order, each with those right below it."""
    return ((row, _fields(rows, row)) for row in rows.of(kind.kind))


def _text(rows: Rows, row: int) -> str:
    return rows.strings[rows.text[row]]


def _dotted_text(rows: Rows, row: int) -> str:
    """The text of a name, or of attributes of one."""
    if rows.kind[row] == syntax.Attribute.kind:
        found = _fields(rows, row)
        return f"{_dotted_text(rows, found['value'][0])}.{_text(rows, found['attr'][0])}"
    return _text(rows, row)


def _effect(bound: _Bound) -> int:
    return bound[5]


def standing(functions: Sequence[Binding]) -> syntax.FunctionDef:
    """Which of several functions of one name a class has in the end: the last that it has in any case; of a property, what
    reads it; the first where the last one's decorator may choose among them."""
    sure = [each.node for each in functions if each.region is None and not _is_accessor(each.node)]
    found = sure[-1] if sure and not _may_be_taken(sure[-1]) else functions[0].node
    assert isinstance(found, syntax.FunctionDef)
    return found


def ending(bindings: Sequence[Binding]) -> list[Binding]:
    """Those of a name's bindings, in the order of the source, that it may have in the end: the last that it has in any case,
    and each in a branch further down. ``device: torch.device`` alone binds nothing."""
    given = [each for each in bindings if each.value is not None or each.kind is not Kind.ASSIGN]
    sure = [at for at, each in enumerate(given) if each.region is None]
    return given[sure[-1] :] if sure else given


def _is_accessor(function: syntax.Node) -> bool:
    """Whether it is decorated as another part of a property: ``@size.setter``."""
    return isinstance(function, syntax.FunctionDef) and any(
        isinstance(each.decorator, syntax.Attribute) and each.decorator.attr.value in _ACCESSORS
        for each in function.decorators
    )


def _may_be_taken(function: syntax.Node) -> bool:
    """Whether a decorator is none of those that give the function back, or what calls it alone."""
    decorators = [each.decorator for each in function.decorators] if isinstance(function, syntax.FunctionDef) else []
    return any(last_name(each.func if isinstance(each, syntax.Call) else each) not in _PLAIN for each in decorators)
