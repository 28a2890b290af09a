"""YAML and JSON configurations that a script names by a literal path, or the project's commands name: what they say, and on
which line."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from speedlint.facts import syntax
from speedlint.solve.names import Kind

if TYPE_CHECKING:
    import yaml

    from speedlint.ask.script import Script

LOADS = frozenset(
    {
        "yaml.load",
        "yaml.safe_load",
        "yaml.full_load",
        "yaml.unsafe_load",
        "json.load",
        "omegaconf.OmegaConf.load",
        "OmegaConf.load",
    }
)
SEEN_THROUGH = frozenset(
    {"easydict.EasyDict", "munch.munchify", "munch.Munch", "box.Box", "addict.Dict", "dotmap.DotMap", "dict"}
)
"""What wraps a mapping so that its keys are attributes."""
_OPENS = frozenset({"open", "io.open", "codecs.open"})
_LARGEST = 1 << 20


class Entry(NamedTuple):
    """A part of a configuration file: a mapping, a list or a value, and the key it stands under."""

    path: Path
    node: yaml.Node
    key: str = ""

    @property
    def line(self) -> int:
        """The line it begins on, from 1."""
        return int(self.node.start_mark.line) + 1

    def at(self, key: str) -> Entry | None:
        """The entry of a mapping under a key."""
        import yaml

        if not isinstance(self.node, yaml.MappingNode):
            return None
        found = [value for name, value in self.node.value if isinstance(name, yaml.ScalarNode) and name.value == key]
        return Entry(self.path, found[-1], key) if found else None

    @property
    def scalar(self) -> object:
        """The number, string, truth value or None that it is; itself where it holds others."""
        import yaml

        if not isinstance(self.node, yaml.ScalarNode):
            return self
        try:
            value: object = yaml.SafeLoader("").construct_object(self.node)
        except (yaml.YAMLError, ValueError, OverflowError):
            return self.node.value
        return value


def loaded(script: Script, call: syntax.Call) -> Entry | None:
    """The whole configuration that a call such as ``yaml.safe_load(open("config.yml"))`` reads."""
    if script.name(call.func) not in LOADS or not call.args:
        return None
    named = _file(script, call.args[0].value)
    path = _found(script, named) if named is not None else None
    return script.program.config(path) if path is not None else None


def _file(script: Script, expression: syntax.BaseExpression) -> str | None:
    """The path of the file that an expression is, names, or has opened."""
    known = script.constant(expression)
    if known is not None:
        return known.value if isinstance(known.value, str) else None
    if isinstance(expression, syntax.Attribute):
        return _passed(script, expression)
    match expression:
        case syntax.Call(func=func, args=[syntax.Arg(value=named), *_]) if script.name(func) in _OPENS:
            return _file(script, named)
        case syntax.Call(func=syntax.Attribute(value=syntax.Name() as opened, attr=syntax.Name("read")), args=[]):
            return _file(script, opened)
    if isinstance(expression, syntax.Name):
        bindings = script.names.reaching(expression)
        if len(bindings) == 1 and bindings[0].kind in (Kind.WITH, Kind.ASSIGN) and not bindings[0].path:
            value = bindings[0].value
            return _file(script, value) if isinstance(value, syntax.Call) else None
    return None


def _passed(script: Script, attribute: syntax.Attribute) -> str | None:
    """What all commands that the project ships pass for an option without a default."""
    from speedlint.solve import shipped

    name = attribute.attr.value
    options = {
        call: place
        for origin, setting in script.values.settings(attribute.value)
        if isinstance(setting, syntax.Call)
        for place, call in origin.values.declared(name, setting)
    }
    given = {each for call, place in options.items() for each in shipped.given(place, call)}
    return given.pop() if len(options) == len(given) == 1 else None


def _found(script: Script, named: str) -> Path | None:
    """The file under the script's folder, or the project's; None where two are there."""
    if not named.endswith((".yml", ".yaml", ".json")) or Path(named).is_absolute():
        return None
    root = script.program.root(script.path)
    paths = {Path(os.path.normpath(folder / named)) for folder in (Path(script.folder), root)}
    found = [path for path in paths if path.is_relative_to(root) and script.program.disk.is_file(str(path))]
    return found[0] if len(found) == 1 else None


def parsed(path: Path, data: bytes) -> Entry | None:
    """The file's contents; None where it is no YAML or JSON, or too large."""
    import yaml

    if len(data) > _LARGEST:
        return None
    try:
        node = yaml.compose(data.decode("utf-8-sig"), Loader=yaml.SafeLoader)
    except (yaml.YAMLError, ValueError, RecursionError):
        return None
    return Entry(path, node) if node is not None else None
