"""Scopes and imports: what binds a name, which bindings reach a use, and the full dotted name of an expression."""

from __future__ import annotations

import builtins
import enum
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import cast

from speedlint.facts import syntax
from speedlint.facts.rows import Rows
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
_BUILTINS = frozenset(dir(builtins))


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


class Scope:
    """The names that one module, class, function, lambda or comprehension binds."""

    def __init__(self, node: syntax.Node, parent: Scope | None) -> None:
        self.node, self.parent = node, parent
        self.bindings: dict[str, list[Binding]] = {}
        self.outer: dict[str, bool] = {}
        self.stars: list[str] = []

    def lookup(self, name: str) -> Scope | None:
        """The scope that binds ``name`` as seen from here, by Python's rules."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.outer:
                scope = scope.module if scope.outer[name] else scope.parent
                continue
            if name in scope.bindings and (scope is self or not isinstance(scope.node, syntax.ClassDef)):
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
        self._is_bound = False
        self.module = self._scope_for(source.module)
        self._bind_everything()
        for scope in self._scopes.values():
            for found in scope.bindings.values():
                found.sort(key=lambda binding: binding.effect)
        self._is_bound = True

    def scope(self, node: syntax.Node) -> Scope:
        """The scope in which ``node`` is evaluated."""
        return self._scope_of_row(self._owners[node.row])

    def _scope_for(self, node: syntax.Node) -> Scope:
        return self._scope_of_row(node.row)

    def _scope_of_row(self, row: int) -> Scope:
        found = self._scopes.get(row)
        if found is None:
            parent = self._scope_of_row(self._owners[row]) if row else None
            found = self._scopes[row] = Scope(self.source.tree.node(row), parent)
        return found

    def owner(self, function: syntax.FunctionDef) -> syntax.ClassDef | None:
        """The class whose method this is."""
        scope = self.scope(function)
        return scope.node if isinstance(scope.node, syntax.ClassDef) else None

    def all_bindings(self) -> Iterator[list[Binding]]:
        """The bindings of each name of each scope."""
        for scope in self._scopes.values():
            yield from scope.bindings.values()

    # Binding

    def _bind_everything(self) -> None:
        source = self.source
        declarations: list[syntax.Global | syntax.Nonlocal] = [*source.of(syntax.Global), *source.of(syntax.Nonlocal)]
        for node in declarations:
            for declared in node.names:
                if (scope := self.scope(node)).parent is not None:  # at the top of a module `global` says nothing
                    scope.outer[declared.name.value] = isinstance(node, syntax.Global)
        for assign in source.of(syntax.Assign):
            for target in assign.targets:
                self._bind_target(target.target, Kind.ASSIGN, assign.value, assign)
        for annotated in source.of(syntax.AnnAssign):
            if annotated.value is not None:
                self._bind_target(annotated.target, Kind.ASSIGN, annotated.value, annotated)
        for augmented in source.of(syntax.AugAssign):
            self._bind_target(augmented.target, Kind.AUGMENT, augmented.value, augmented)
        for walrus in source.of(syntax.NamedExpr):
            self._bind_target(walrus.target, Kind.ASSIGN, walrus.value, walrus)
        for loop in source.of(syntax.For):
            self._bind_target(loop.target, Kind.FOR, loop.iter, loop.body, before=True)
        for clause in source.of(syntax.CompFor):
            self._bind_target(
                clause.target, Kind.FOR, clause.iter, clause.target, before=True, scope=self._scope_for(clause)
            )
        for item in source.of(syntax.WithItem):
            if item.asname is not None:
                self._bind_target(item.asname.name, Kind.WITH, item.item, item)
        for handler in source.of(syntax.ExceptHandler):
            if handler.name is not None:
                self._bind_target(handler.name.name, Kind.OTHER, None, handler.name)
        for matched in source.of(syntax.MatchAs):
            if matched.name is not None:
                self._bind_target(matched.name, Kind.OTHER, None, matched)
        self._bind_definitions()
        self._bind_imports()

    def _bind_definitions(self) -> None:
        definitions: list[syntax.FunctionDef | syntax.ClassDef] = [
            *self.source.of(syntax.FunctionDef),
            *self.source.of(syntax.ClassDef),
        ]
        for node in definitions:
            kind = Kind.FUNCTION if isinstance(node, syntax.FunctionDef) else Kind.CLASS
            self._add(self.scope(node), node.name.value, kind, node, None, (), effect_of=node)
        for parameter in self.source.of(syntax.Param):
            function = self.source.enclosing(parameter, syntax.FunctionDef, syntax.Lambda)
            assert function is not None
            scope = self._scope_for(function)
            self._add(scope, parameter.name.value, Kind.PARAMETER, parameter, parameter.default, (), effect_of=parameter)

    def _bind_imports(self) -> None:
        for node in self.source.of(syntax.Import):
            for alias in node.names:
                full = _dotted_text(alias.name)
                name = alias.asname.name.value if alias.asname and isinstance(alias.asname.name, syntax.Name) else None
                bound = name or full.split(".")[0]
                self._add(self.scope(node), bound, Kind.IMPORT, alias, None, (), full if name else bound, effect_of=node)
        for imported in self.source.of(syntax.ImportFrom):
            module = "." * len(imported.relative) + (_dotted_text(imported.module) if imported.module else "")
            if isinstance(imported.names, syntax.ImportStar):
                self.scope(imported).stars.append(module)
                continue
            for alias in imported.names:
                name = alias.name.value if isinstance(alias.name, syntax.Name) else _dotted_text(alias.name)
                bound = alias.asname.name.value if alias.asname and isinstance(alias.asname.name, syntax.Name) else name
                full = module + name if module.endswith(".") else f"{module}.{name}"
                self._add(self.scope(imported), bound, Kind.IMPORT, alias, None, (), full, effect_of=imported)

    def _bind_target(
        self,
        target: syntax.Node,
        kind: Kind,
        value: syntax.BaseExpression | None,
        effect_of: syntax.Node,
        *,
        before: bool = False,
        scope: Scope | None = None,
        path: tuple[int | None, ...] = (),
    ) -> None:
        if isinstance(target, syntax.Name):
            where = scope or self.scope(target)
            if isinstance(effect_of, syntax.NamedExpr):
                while isinstance(where.node, syntax.CompFor) and where.parent:
                    where = where.parent
            self._add(where, target.value, kind, target, value, path, effect_of=effect_of, before=before)
        elif isinstance(target, (syntax.Tuple, syntax.List)):
            for index, element in enumerate(target.elements):
                starred = any(isinstance(each, syntax.StarredElement) for each in target.elements[: index + 1])
                step = None if starred else index
                self._bind_target(element.value, kind, value, effect_of, before=before, scope=scope, path=(*path, step))

    def _add(
        self,
        scope: Scope,
        name: str,
        kind: Kind,
        node: syntax.Node,
        value: syntax.BaseExpression | None,
        path: tuple[int | None, ...],
        dotted: str | None = None,
        *,
        effect_of: syntax.Node,
        before: bool = False,
    ) -> None:
        effect = self.source.order[effect_of] if before else self.source.last(effect_of)
        if name in scope.outer and (outer := scope.lookup(name)) is not None:
            scope = outer
        elif scope.outer.get(name):
            scope = scope.module
        binding = Binding(name, kind, node, value, path, dotted, effect, self.region(effect_of if not before else node))
        scope.bindings.setdefault(name, []).append(binding)

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
        while around is not None and around is not owner and isinstance(around.node, syntax.CompFor):
            around = around.parent
        if isinstance(owner.node, syntax.CompFor):
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
        for row in rows.of(syntax.Name.kind):
            if _NO_USE.get(kinds[parents[row]]) == slots[row]:
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

    def uses(self, name: syntax.Name | syntax.Param) -> list[syntax.Name]:
        """Every place, targets included, where the variable that ``name`` stands for is written, in source order."""
        variable, node = self.variable(name), self.source.tree.node
        return [cast(syntax.Name, node(row)) for row in self._uses.get(variable, ())] if variable is not None else []

    def variable(self, name: syntax.Name | syntax.Param) -> tuple[int, str] | None:
        """What is the same for all names and parameters of this file that stand for the same variable."""
        if isinstance(name, syntax.Param):
            function = self.source.enclosing(name, syntax.FunctionDef, syntax.Lambda)
            assert function is not None
            return id(self._scope_for(function)), name.name.value
        owner = self.scope(name).lookup(name.value)
        return (id(owner), name.value) if owner is not None else None

    # Dotted names

    def dotted(self, expression: syntax.Node, depth: int = 0) -> str | None:
        """The full name of what an expression stands for: ``torch.utils.data.DataLoader`` for ``DL``; builtins as
        themselves; None for what this file defines or computes. Relative imports keep their leading dots."""
        if depth == 0 and self._is_bound and expression in self._dotted:
            return self._dotted[expression]
        found = self._find_dotted(expression, depth)
        if depth == 0 and self._is_bound:
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
    kinds, slots, parents, lasts = rows.kind, rows.slot, rows.parent, rows.last
    owners, regions = array("i", [0]) * len(kinds), array("i", [-1]) * len(kinds)
    for row in range(1, len(kinds)):
        above = parents[row]
        kind = kinds[above]
        if kind in _BODY:
            owners[row] = above if slots[row] == _BODY[kind] else owners[above]
            continue
        if kind == syntax.CompFor.kind:
            owners[row] = above if slots[row] != _ITERATED else owners[above]
            continue
        owners[row] = owners[above]
        if above == 0:
            continue
        if kind in _FOR_IN and slots[row] != _FOR_IN[kind]:
            clause = above + 1
            while slots[clause] != _FOR_IN[kind]:
                clause = lasts[clause] + 1
            owners[row] = _innermost(rows, clause)
        if kind in _MAY_NOT_RUN and (slots[row] == _MAY_NOT_RUN[kind] or kind == kinds[row] == syntax.If.kind):
            regions[row] = row
        elif kind in _BRANCH:
            regions[row] = above
        else:
            regions[row] = regions[above]
    return owners, regions


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


def _dotted_text(node: syntax.BaseExpression) -> str:
    if isinstance(node, syntax.Attribute):
        return f"{_dotted_text(node.value)}.{node.attr.value}"
    assert isinstance(node, syntax.Name)
    return node.value
