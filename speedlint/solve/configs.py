"""YAML and JSON configurations that a script names by a path, that the project's commands name, or that Hydra hands it: what
they say, and on which line."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from speedlint.facts import syntax
from speedlint.solve.flow import once
from speedlint.solve.names import Kind
from speedlint.solve.unpacking import key_of

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
_CHANGES = (b"merge_with", b"OmegaConf.merge", b"OmegaConf.update", b"from_dotlist", b"from_cli", b"open_dict")
"""By what a program may put other values over those of a configuration."""
_DEEPEST_CALLS = 4
"""Functions and variables that hand a part of a configuration on."""
_PLAIN = re.compile(r"[\w-]+")
"""The name of a configuration in a group."""
_TARGET_KEY = "_target_"
_TARGET = frozenset((_TARGET_KEY.encode(),))
_DEFAULTS = frozenset({"defaults"})
_OPENS = frozenset({"open", "io.open", "codecs.open"})
_LARGEST = 1 << 20
_BRACKET = re.compile(rb"[][{}]")
_DEEPEST_BRACKETS = 100
"""Brackets in brackets that are read: a configuration has a handful. 3,000 take PyYAML 1.4 CPU seconds."""


class Entry(NamedTuple):
    """A part of a configuration file: a mapping, a list or a value, and the key it stands under.

    Attributes:
        behind: the mapping of another file that it is put over, as Hydra puts a configuration over its defaults.
        groups: the mappings of other files that stand under keys of it.
        overridden: the last names of keys for which a command of the project passes another value.
    """

    path: Path
    node: yaml.Node
    key: str = ""
    behind: Entry | None = None
    groups: tuple[tuple[str, Entry], ...] = ()
    overridden: frozenset[str] = frozenset()

    @property
    def line(self) -> int:
        """The line it begins on, from 1."""
        return int(self.node.start_mark.line) + 1

    def at(self, key: str) -> Entry | None:
        """The entry of a mapping under a key; None where two files, or a command, have other values there."""
        import yaml

        if not isinstance(self.node, yaml.MappingNode) or key in self.overridden:
            return None
        found = [value for name, value in self.node.value if isinstance(name, yaml.ScalarNode) and name.value == key]
        under = self.behind.at(key) if self.behind is not None else dict(self.groups).get(key)
        if not found:
            return under._replace(overridden=self.overridden) if under is not None else None
        own = Entry(self.path, found[-1], key, under, overridden=self.overridden)
        if under is None:
            return own
        is_one = own._is_mapping == under._is_mapping and (own._is_mapping or own.scalar == under.scalar)
        return own if is_one else None

    @property
    def _is_mapping(self) -> bool:
        import yaml

        return isinstance(self.node, yaml.MappingNode)

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


@once(None)
def composed(script: Script, function: syntax.Node | None) -> Entry | None:
    """The configuration that ``@hydra.main(config_path="conf", config_name="train")`` hands a function: the file, over those
    that its list of defaults names."""
    from speedlint.solve import paths, shipped

    if not isinstance(function, syntax.FunctionDef):
        return None
    by = next((each.decorator for each in function.decorators if script.is_call_to(each.decorator, "hydra.main")), None)
    if not isinstance(by, syntax.Call) or any(script.program.mentions(script, mark) for mark in _CHANGES):
        return None
    folder, name = script.argument(by, "config_path", 0), script.argument(by, "config_name", 1)
    file = paths.path_of(script, name) if name is not None else None
    place = paths.path_of(script, folder) if folder is not None else ""
    if file is None or place is None:
        return None
    file = file if file.endswith((".yaml", ".yml")) else f"{file}.yaml"
    whole = _read(script, os.path.join(script.folder, place, file))  # noqa: PTH118
    overridden = shipped.overridden(script) if whole is not None else None
    added = _groups(script, whole, overridden) if whole is not None and overridden is not None else None
    if whole is None or added is None or overridden is None:
        return None
    groups, over = added
    return whole._replace(groups=groups, overridden=overridden | over)


def _groups(
    script: Script, whole: Entry, chosen: frozenset[str]
) -> tuple[tuple[tuple[str, Entry], ...], frozenset[str]] | None:
    """What a configuration's defaults, ``defaults: [{model: resnet}]``, put under its keys, and the keys that those may set
    which are put over all of it, ``task@_global_: walk``; None where one of them is put elsewhere, or ``chosen`` by a
    command."""
    import yaml

    listed, found, over = whole.at("defaults"), dict[str, Entry](), set[str]()
    for each in listed.node.value if listed is not None and isinstance(listed.node, yaml.SequenceNode) else ():
        if isinstance(each, yaml.ScalarNode) and each.value == "_self_":
            continue
        if not isinstance(each, yaml.MappingNode):
            return None
        for key, value in each.value:
            written = str(key.value) if isinstance(key, yaml.ScalarNode) else ""
            prefix, _, named = written.rpartition(" ")
            folder, _, package = named.partition("@")
            if named.startswith("hydra/"):
                continue
            if folder.rpartition("/")[2] in chosen or not folder.isidentifier():
                return None
            if Entry(whole.path, value).scalar is None:
                continue
            if not isinstance(value, yaml.ScalarNode) or _PLAIN.fullmatch(str(value.value)) is None:
                return None
            group = _read(script, str(whole.path.parent / folder / f"{value.value}.yaml"))
            if group is None and prefix == "optional":
                continue
            if group is None or prefix not in ("", "override", "optional") or package not in ("", "_global_"):
                return None
            if package or b"@package" in script.program.disk.read(group.path):
                keys = _keys(script, group)
                if keys is None:
                    return None
                over |= keys
            elif folder in found or group.at("defaults") is not None:
                return None
            else:
                found[folder] = group
    return tuple(found.items()), frozenset(over)


def _keys(script: Script, group: Entry) -> set[str] | None:
    """The names of all keys of a configuration that is put over another one, and of those beside it that it names first."""
    import yaml

    listed = group.at("defaults")
    found = _names(group.node)
    for each in listed.node.value if listed is not None and isinstance(listed.node, yaml.SequenceNode) else ():
        other = _read(script, str(group.path.parent / f"{each.value}.yaml")) if isinstance(each, yaml.ScalarNode) else None
        if isinstance(each, yaml.ScalarNode) and each.value == "_self_":
            continue
        if other is None or other.at("defaults") is not None:
            return None
        found |= _names(other.node)
    return found


def _names(node: yaml.Node) -> set[str]:
    return {name for name, _ in _pairs(node) if name is not None}


def _pairs(node: yaml.Node, *, without: frozenset[str] = frozenset()) -> Iterator[tuple[str | None, yaml.Node]]:
    """The keys of all mappings, however deep, each with its value, a node once; nothing below the keys of ``without``. A key
    is None where it is no scalar."""
    import yaml

    todo, seen = [node], set[int]()
    while todo:
        now = todo.pop()
        if id(now) in seen:
            continue
        seen.add(id(now))
        match now:
            case yaml.MappingNode(value=pairs):
                for name, value in pairs:
                    key = name.value if isinstance(name, yaml.ScalarNode) else None
                    yield key, value
                    if key not in without:
                        todo.append(value)
            case yaml.SequenceNode(value=parts):
                todo += parts


def _read(script: Script, path: str) -> Entry | None:
    found = Path(os.path.normpath(path))
    is_there = found.is_relative_to(script.program.root(script.path)) and script.program.disk.is_file(str(found))
    return script.program.config(found) if is_there else None


@once(())
def targets(script: Script, given: syntax.BaseExpression) -> tuple[str, ...]:
    """The full names of what ``hydra.utils.instantiate(config.model)`` may make: each ``_target_`` under that key in a
    project's configurations, or at the top of those in a folder of its name, a group of Hydra's; none where one of these is
    not written out, is to be made in part, or may be set elsewhere."""
    from speedlint.solve import shipped

    keys, overridden = set(_keys_of(script, given, _DEEPEST_CALLS)), shipped.overridden(script)
    if len(keys) != 1 or None in keys or overridden is None or overridden & {*keys, _TARGET_KEY}:
        return ()
    key = str(next(iter(keys)))
    disk, root = script.program.disk, script.program.root(script.path)
    found: dict[str, None] = {}
    for path in map(Path, disk.holding(disk.configs(str(root)), (frozenset((key.encode(),)), _TARGET))):
        whole = script.program.config(path)
        inner = path.relative_to(root).parts
        if whole is None or {"test", "tests"} & set(inner):
            continue
        if f"@{key}".encode() in disk.read(path):
            return ()
        values = [value for name, value in _pairs(whole.node, without=_DEFAULTS) if name == key]
        values += [whole.node] if key in inner[:-1] else []
        made = [Entry(path, each).at(_TARGET_KEY) for each in values]
        parts = [Entry(path, each).at("_partial_") for each in values]
        if any(each is None or not isinstance(each.scalar, str) or "$" in each.scalar for each in made) or any(parts):
            return ()
        found.update(dict.fromkeys(str(each.scalar) for each in made if each is not None))
    return tuple(found)


def _keys_of(script: Script, given: syntax.BaseExpression, depth: int) -> Iterator[str | None]:
    """The keys under which a part of a configuration stands, also of what a function is handed; None where not known."""
    key = _key(given)
    if key is not None or not isinstance(given, syntax.Name) or not depth:
        yield key
        return
    for binding in script.names.reaching(given):
        function = script.function(given)
        if binding.kind is Kind.ASSIGN and binding.value is not None and not binding.path:
            yield from _keys_of(script, binding.value, depth - 1)
        elif function is not None and isinstance(binding.node, syntax.Param):
            for place, call in script.call_sites(function):
                handed = script.values.given(function, binding.node, place, call)
                yield from _keys_of(place, handed, depth - 1) if handed is not None else (None,)
        else:
            yield None


def most(script: Script, expression: syntax.Node) -> int | None:
    """The most that a number is in a project's configurations, under the key by which it is read, ``config["width"]`` or
    ``cfg.width``; None where that is not known of each of them. An estimate: nothing proves which of them a run reads."""
    key = _key(expression)
    found = [each for each in _under(script, key) if not isinstance(each, bool)] if key is not None else []
    numbers = [int(each) for each in found if isinstance(each, (int, float))]
    return max(numbers) if numbers and len(numbers) == len(found) else None


def alike(script: Script, expression: syntax.Node) -> object:
    """What a project's configurations, the nearest ones that have it, all say under the key by which an expression is read,
    ``config["workers"]`` or ``cfg.workers``; None where they differ, none has it, a command passes another value, or the
    program has an option of that name, or sets it. An estimate, as ``most`` is."""
    from speedlint.solve import shipped

    key, overridden = _key(expression), shipped.overridden(script)
    if key is None or overridden is None or key in overridden:
        return None
    name = re.escape(key.encode())
    if script.program.mentions(script, re.compile(rb"--" + name + rb"\b|[.\[]['\"]?" + name + rb"['\"]?\]?\s*=(?!=)")):
        return None
    found = nearest(script, key)
    return found[0] if len(found) == 1 else None


def nearest(script: Script, key: str) -> tuple[object, ...]:
    """The values under a key in the configurations below the nearest folder around a script in which one has it."""
    disk, root, mark = script.program.disk, script.program.root(script.path), frozenset((key.encode(),))
    holding = [Path(each) for each in disk.holding(disk.configs(str(root)), (mark,))]
    for folder in script.path.absolute().parents:
        here = (script.program.config(path) for path in holding if path.is_relative_to(folder))
        values = tuple(value for whole in here if whole is not None for value in _values(whole.node, key))
        if values or folder == root:
            return tuple(dict.fromkeys(values))
    return ()


def _key(expression: syntax.Node) -> str | None:
    match expression:
        case syntax.Attribute(attr=syntax.Name(value=name)):
            return name
        case syntax.Subscript():
            key = key_of(expression)
            return key if isinstance(key, str) else None
        case syntax.Call(
            func=syntax.Attribute(attr=syntax.Name("get")), args=[syntax.Arg(value=syntax.SimpleString() as key), *_]
        ):
            return str(key.evaluated_value)
    return None


@once(())
def _under(script: Script, key: str) -> tuple[object, ...]:
    """The values under a key in the configurations of a script's project, but for those of its tests."""
    disk, mark, root = script.program.disk, frozenset((key.encode(),)), script.program.root(script.path)
    paths = map(Path, disk.holding(disk.configs(str(root)), (mark,)))
    plain = (path for path in paths if not {"test", "tests"} & set(path.relative_to(root).parts))
    found = (script.program.config(path) for path in plain)
    return tuple(dict.fromkeys(value for whole in found if whole is not None for value in _values(whole.node, key)))


def _values(node: yaml.Node, key: str) -> Iterator[object]:
    """The values under a key, however deep it stands; those of a range or a list of choices, each."""
    import yaml

    for name, value in _pairs(node):
        if name == key:
            yield from (Entry(Path(), each).scalar if isinstance(each, yaml.ScalarNode) else each for each in _each(value))


def _each(node: yaml.Node) -> list[yaml.Node]:
    import yaml

    match node:
        case yaml.MappingNode(value=pairs):
            return [value for _, value in pairs]
        case yaml.SequenceNode(value=parts):
            return list(parts)
    return [node]


def _file(script: Script, expression: syntax.BaseExpression) -> str | None:
    """The path of the file that an expression is, names, or has opened."""
    from speedlint.solve import paths

    if (known := paths.path_of(script, expression)) is not None or script.constant(expression) is not None:
        return known
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
    """The file under the script's folder, or the project's; None where two are there, or it is no part of the project."""
    if not named.endswith((".yml", ".yaml", ".json")):
        return None
    root = script.program.root(script.path)
    paths = {Path(os.path.normpath(folder / named)) for folder in (Path(script.folder), root)}
    found = [path for path in paths if path.is_relative_to(root) and script.program.disk.is_file(str(path))]
    return found[0] if len(found) == 1 else None


def _nests_deeply(data: bytes) -> bool:
    """Whether brackets stand in more brackets than in any configuration: reading them takes time that grows with the square
    of their number (yaml.scanner.Scanner.stale_possible_simple_keys)."""
    depth = 0
    for each in _BRACKET.finditer(data):
        depth += 1 if each[0] in b"[{" else -1
        if depth > _DEEPEST_BRACKETS:
            return True
    return False


def parsed(path: Path, data: bytes) -> Entry | None:
    """The file's contents; None where it is no YAML or JSON, or too large."""
    import yaml

    if len(data) > _LARGEST or _nests_deeply(data):
        return None
    try:
        # libyaml, where PyYAML has it, reads the same ten times as fast, and refuses deep nesting itself.
        node = yaml.compose(data.decode("utf-8-sig"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (yaml.YAMLError, ValueError, RecursionError):
        return None
    return Entry(path, node) if node is not None else None
