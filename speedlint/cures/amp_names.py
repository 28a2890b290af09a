"""The deprecated names of torch's mixed precision, and how each is written now."""

from __future__ import annotations

import re
from collections.abc import Iterator

from speedlint import edits
from speedlint.ask.script import Script
from speedlint.cures import spelling
from speedlint.edits import CannotEdit
from speedlint.facts import syntax
from speedlint.rule import Edit
from speedlint.solve.names import Binding, Kind

_SINCE: dict[str, tuple[int, int] | None] = {
    "autocast": None,
    "GradScaler": (2, 3),
    "custom_fwd": (2, 4),
    "custom_bwd": (2, 4),
}
_DEPRECATED = {f"torch.{device}.amp.{name}": (device, name) for device in ("cuda", "cpu") for name in _SINCE}
_DEPRECATED |= {f"torch.{device}.amp.autocast_mode.{name}": (device, name) for device in ("cuda", "cpu") for name in _SINCE}
_OLD_ORDER = ("enabled", "dtype", "cache_enabled")
_MODULES = {
    "torch.cuda.amp": "torch.amp",
    "torch.cpu.amp": "torch.amp",
    "torch.cuda.amp.autocast_mode": "torch.amp",
    "torch.cuda.amp.grad_scaler": "torch.amp",
    "torch.cuda": "torch",
    "torch.cpu": "torch",
}

_VERSIONS = re.compile(r"version|(?:^|_)(?:GREATER|GE|GEQ|LESS|LT)(?:_|$)|TORCH_?\d", re.IGNORECASE)

Use = syntax.Call | syntax.Decorator


def deprecated_name(script: Script, node: Use) -> str | None:
    """The full name of the deprecated function or class that a call or a bare decorator uses."""
    what = node.func if isinstance(node, syntax.Call) else node.decorator
    if isinstance(what, syntax.Call):
        return None
    name = script.name(what)
    return name if name in _DEPRECATED else None


def is_fallback(script: Script, node: Use) -> bool:
    """Whether a script falls back on the deprecated name: another branch uses the new one, or the release is asked for."""
    source = script.source
    child: syntax.Node = node
    for up in source.ancestors(node):
        if isinstance(up, (syntax.If, syntax.IfExp)) and child is not up.test:
            asked = {name.value for name in source.inside(up.test, syntax.Name)} | {
                name.attr.value for name in source.inside(up.test, syntax.Attribute)
            }
            others = [each for each in (up.body, up.orelse) if each is not None and each is not child]
            if any(_VERSIONS.search(name) for name in asked) or any(_is_modern(script, each) for each in others):
                return True
        if isinstance(up, syntax.ExceptHandler):
            tried = source.parents[up]
            if isinstance(tried, syntax.Try) and _is_modern(script, tried.body):
                return True
        child = up
    return False


def _is_modern(script: Script, block: syntax.Node) -> bool:
    """Whether a block uses or imports one of the names that took over."""
    wanted = {f"torch.amp.{name}" for name in _SINCE}
    if any(script.name(each) in wanted for each in script.source.inside(block, syntax.Attribute)):
        return True
    return any("torch.amp" in script.text(each) for each in script.source.inside(block, syntax.ImportFrom))


def modern_text(name: str) -> str:
    """How the deprecated name is called now."""
    device, last = _DEPRECATED[name]
    return f'torch.amp.{last}(device_type="{device}")' if last.startswith("custom") else f'torch.amp.{last}("{device}")'


def modern_edits(script: Script, node: Use, name: str) -> tuple[tuple[Edit, ...], tuple[int, int] | None]:
    """The edits that modernise one use, and the release they need; all uses and the import together where that is possible.

    Raises CannotEdit.
    """
    _refuse_comparisons(script)
    if (given := _given_device(script, node)) is not None:
        slot = "init_scale" if name.endswith("GradScaler") else "enabled"
        raise CannotEdit(
            f"`{given}` is not a device here: the old name takes it as `{slot}`; drop it or import the new name"
        )
    device, last = _DEPRECATED[name]
    what = node.func if isinstance(node, syntax.Call) else node.decorator
    root = _root(node)
    if script.names.dotted(root) == "torch":
        return (
            edits.replace(script.source, what, f"{root.value}.amp.{last}"),
            *_argument_edits(script, node, device, last),
        ), _SINCE[last]
    group = _with_import(script, _imported_by(script, root))
    if group is not None:
        return group
    spelled, imports = spelling.spell(script, f"torch.amp.{last}")
    return (*imports, edits.replace(script.source, what, spelled), *_argument_edits(script, node, device, last)), _SINCE[
        last
    ]


def _root(node: Use) -> syntax.Name:
    what: syntax.BaseExpression = node.func if isinstance(node, syntax.Call) else node.decorator
    while isinstance(what, syntax.Attribute):
        what = what.value
    assert isinstance(what, syntax.Name)
    return what


def _imported_by(script: Script, name: syntax.Name) -> Binding:
    bindings = script.names.reaching(name)
    if len(bindings) != 1:
        raise CannotEdit(f"`{name.value}` is bound in several places")
    binding = bindings[0]
    if binding.kind is not Kind.IMPORT:
        raise CannotEdit(f"`{name.value}` is bound by an assignment")
    if binding.region is not None or script.source.enclosing(binding.node, syntax.Try) is not None:
        raise CannotEdit(f"`{name.value}` is imported in a `try` or a branch")
    return binding


def _refuse_comparisons(script: Script) -> None:
    for place in script.everywhere(b"amp"):
        for call in place.calls("isinstance", "type"):
            for part in (*place.source.inside(call, syntax.Attribute), *place.source.inside(call, syntax.Name)):
                if place.name(part) in _DEPRECATED:
                    raise CannotEdit(f"`{place.text(call)}` tells the old class from the new one")


# The import line


def _with_import(script: Script, binding: Binding) -> tuple[tuple[Edit, ...], tuple[int, int] | None] | None:
    """The edits of an import statement and of all uses of what it binds; None where it is to stay."""
    source = script.source
    statement = source.enclosing(binding.node, syntax.Import, syntax.ImportFrom)
    path = _old_path(statement)
    if path is None:
        return None
    module, is_module = path
    found: list[Edit] = []
    needed: tuple[int, int] | None = None
    assert isinstance(statement, (syntax.Import, syntax.ImportFrom)) and not isinstance(statement.names, syntax.ImportStar)
    for alias in statement.names:
        for use in _uses_of(script, alias):
            call = _call_of(script, use, is_module)
            name = deprecated_name(script, call) if call is not None else None
            if call is None or name is None or _given_device(script, call) is not None:
                return None
            device, last = _DEPRECATED[name]
            found += _argument_edits(script, call, device, last)
            since = _SINCE[last]
            needed = max(needed or since, since) if since is not None else needed
    if (needed is not None and (script.options.torch or (1, 13)) < needed) or _is_reexported(script, statement):
        return None
    return (edits.replace(source, module, _MODULES[_dotted(module)]), *found), needed


def _old_path(statement: syntax.Node | None) -> tuple[syntax.BaseExpression, bool] | None:
    """The part of an import statement that names a deprecated module, and whether it binds that module itself."""
    match statement:
        case syntax.ImportFrom(module=syntax.Attribute() as module, names=names) if not isinstance(names, syntax.ImportStar):
            dotted = _dotted(module)
            if dotted in ("torch.cuda", "torch.cpu"):
                is_alone = len(names) == 1 and isinstance(names[0].name, syntax.Name) and names[0].name.value == "amp"
                return (module, True) if is_alone else None
            return (module, False) if dotted in _MODULES else None
        case syntax.Import(names=[syntax.ImportAlias(name=syntax.Attribute() as module, asname=syntax.AsName())]):
            return (module, True) if _dotted(module) in ("torch.cuda.amp", "torch.cpu.amp") else None
    return None


def _dotted(node: syntax.BaseExpression) -> str:
    if isinstance(node, syntax.Attribute):
        return f"{_dotted(node.value)}.{node.attr.value}"
    return node.value if isinstance(node, syntax.Name) else ""


def _uses_of(script: Script, alias: syntax.ImportAlias) -> Iterator[syntax.Name]:
    bound = alias.asname.name if alias.asname is not None else alias.name
    assert isinstance(bound, syntax.Name)
    for use in script.names.uses(bound):
        if script.source.enclosing(use, syntax.ImportAlias) is None:
            yield use


def _call_of(script: Script, use: syntax.Name, is_module: bool) -> Use | None:
    """The call, or bare decorator, whose function a use of an imported name is."""
    what: syntax.Node = use
    if is_module:
        what = script.source.parents[use]
        if not isinstance(what, syntax.Attribute) or what.value is not use:
            return None
    parent = script.source.parents[what]
    if isinstance(parent, syntax.Call) and parent.func is what:
        return parent
    return parent if isinstance(parent, syntax.Decorator) else None


def _is_reexported(script: Script, statement: syntax.Node) -> bool:
    """Whether another file takes one of the names from this one."""
    names = {name.value for name in script.source.inside(statement, syntax.Name)}
    for other in script.program.importers(script):
        if any(star for star in other.names.module.stars):
            return True
        for _, dotted in other.names.imports:
            found = script.program.module(other, dotted)
            if found is not None and found[1] in names and script.program.reached(found[0]) is script:
                return True
    return False


# Arguments


def _given_device(script: Script, node: Use) -> str | None:
    """The text of a first argument that is a string, as only the new names take one."""
    if not isinstance(node, syntax.Call) or not node.args or node.args[0].keyword is not None or node.args[0].star:
        return None
    constant = script.constant(node.args[0].value)
    return script.text(node.args[0].value) if constant is not None and isinstance(constant.value, str) else None


def _argument_edits(script: Script, node: Use, device: str, last: str) -> Iterator[Edit]:
    source = script.source
    quote = "'" if source.data.count(b"'") > source.data.count(b'"') else '"'
    device = f"{quote}{device}{quote}"
    if isinstance(node, syntax.Decorator):
        if not last.startswith("custom"):
            raise CannotEdit("it is a decorator that is not called")
        end = source.span(node.decorator).end
        yield Edit(script.path, end, end, f"(device_type={device})")
        return
    if last.startswith("custom"):
        yield edits.set_argument(source, node, "device_type", device)
        return
    yield _first_argument(script, node, device, last)
    if last == "autocast":
        for place, arg in enumerate(node.args[1:], 1):
            if arg.keyword is None and not arg.star:
                start = source.span(arg).start
                yield Edit(script.path, start, start, f"{_OLD_ORDER[place]}=")


def _first_argument(script: Script, call: syntax.Call, device: str, last: str) -> Edit:
    source = script.source
    if any(arg.star == "*" for arg in call.args) and last == "autocast":
        raise CannotEdit("its arguments hide in `*args`")
    if not call.args:
        end = source.code_span(call).end - 1
        return Edit(script.path, end, end, device)
    start = source.span(call.args[0]).start
    is_positional = call.args[0].keyword is None and not call.args[0].star
    line = source.line_text(source.position(start)[0])
    indent = line[: len(line) - len(line.lstrip())]
    has_line = line.lstrip().startswith(script.text(call.args[0]).split("\n")[0])
    comma = f",\n{indent}" if has_line and source.position(start)[0] != source.line(call.func) else ", "
    return Edit(
        script.path, start, start, f"{device}{comma}" + (f"{_OLD_ORDER[0]}=" if is_positional and last == "autocast" else "")
    )
