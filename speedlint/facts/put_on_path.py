"""The folders that a file puts on ``sys.path``, as far as its own text says which.

Places are written from the file's own folder, or from the one that the process works in, which only who starts it knows.
"""

from __future__ import annotations

import ast
import itertools
import posixpath
import re
from collections.abc import Iterable, Iterator

from speedlint.facts.parse import is_too_deep, parsed

HERE, WORKING = "here", "working"
Place = tuple[str, str]
"""The folder that a path starts from, ``HERE`` or ``WORKING``, and the path."""
Put = tuple[bool, tuple[Place, ...]]
"""Whether it is searched before the script's own folder from the file's beginning on, and the places of which it is one."""

_MARKS = (b"sys.path", b"addsitedir")
_NEXT = re.compile(rb"\n(?=[A-Za-z_@])")
"""Where a statement begins that stands in no other: in front of most of a file, which then need not be parsed."""
_DEEP = 40
"""Folders that a path may lead upward."""
_ROOTS = {HERE: "/here" + "/0" * _DEEP, WORKING: "/working" + "/0" * _DEEP}
"""What stands for the two folders while paths are taken apart."""
_MOST_CHOICES = 8
"""Paths that one expression may be."""
_MOST_STATEMENTS = 20_000
"""Of a file, those of a function once for each call."""
_MOST_NESTED = 60
"""Blocks, calls and operators within each other: each takes up to five of the 1000 frames that Python has."""

_Values = tuple[str, ...]
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_TEXTS = {"os.pardir": "..", "os.curdir": ".", "os.sep": "/", "os.path.sep": "/"}
_SAME = frozenset({"str", "os.fspath", "os.fsdecode", "os.path.normcase"})
_PATHS = frozenset(f"pathlib.{name}" for name in ("Path", "PurePath", "PosixPath", "PurePosixPath"))
_WHOLE = frozenset(f"os.path.{name}" for name in ("abspath", "realpath", "normpath", "relpath"))
_WORKING_FOLDER = frozenset({"os.getcwd", "os.getcwdu", *(f"{name}.cwd" for name in _PATHS)})
_OWN_FILE = frozenset({"inspect.getfile", "inspect.getsourcefile", "inspect.getabsfile"})
_ITSELF = frozenset({"resolve", "absolute", "as_posix", "__str__"})
_PUTTING = frozenset({"sys.path.append", "sys.path.insert", "sys.path.extend", "site.addsitedir"})


def put_on_path(data: bytes) -> tuple[Put, ...]:
    """What a file puts on ``sys.path``, in the order in which it does; what only who runs it knows is left out."""
    last = max(map(data.rfind, _MARKS))
    if last < 0:
        return ()
    end = _NEXT.search(data, last) if b"def " not in data[:last] else None
    tree = (_parsed(data[: end.start()]) if end is not None else None) or _parsed(data)
    if tree is None:
        return ()
    reader = _Reader()
    reader.run(tree.body)
    reader.is_beginning = False
    for function in reader.defined:
        reader.run_function(function, {})
    return tuple(dict.fromkeys(reader.found))


def _parsed(data: bytes) -> ast.Module | None:
    try:
        return None if is_too_deep(data) else parsed(data)
    except (SyntaxError, RecursionError, MemoryError):
        return None


class _Reader:
    """Goes through statements in their order, and knows the paths that names may stand for."""

    def __init__(self) -> None:
        self.found: list[Put] = []
        self.defined: list[_Function] = []
        self.is_beginning = True
        self._functions: dict[str, _Function] = {}
        self._modules: dict[str, str] = {}
        self._values: dict[str, _Values] = {}
        self._left = _MOST_STATEMENTS
        self._nested = 0

    # Statements

    def run(self, statements: Iterable[ast.stmt]) -> None:
        """Takes statements for run, each branch of them."""
        if self._nested >= _MOST_NESTED:
            return
        self._nested += 1
        for statement in statements:
            self._left -= 1
            if self._left >= 0:
                self._run(statement)
        self._nested -= 1

    def run_function(self, function: _Function, given: dict[str, _Values]) -> None:
        """Takes the body of a function for run with some arguments."""
        outside = dict(self._values)
        names = function.args
        self._values |= {each.arg: () for each in (*names.posonlyargs, *names.args, *names.kwonlyargs)} | given
        self.run(function.body)
        self._values = outside

    def _run(self, statement: ast.stmt) -> None:
        match statement:
            case ast.Import(names):
                self._modules |= {each.asname: each.name for each in names if each.asname}
            case ast.ImportFrom(module=str(module), names=names, level=0):
                self._modules |= {each.asname or each.name: f"{module}.{each.name}" for each in names}
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self._functions[statement.name] = statement
                self.defined.append(statement)
            case ast.Expr(ast.Call() as call):
                self._call(call)
            case ast.Assign(targets=[target], value=value):
                self._assign(target, value)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self._assign(target, value)
            case ast.AugAssign(target=ast.Name(name), op=ast.Add(), value=value):
                self._values[name] = _sums(self._values.get(name, ()), self._paths(value))
            case ast.AugAssign(target=target, op=ast.Add(), value=value) if self._dotted(target) == "sys.path":
                self._put_all(value, is_first=False)
            case ast.ClassDef(body=body) | ast.With(body=body) | ast.AsyncWith(body=body):
                self.run(body)
            case ast.For() | ast.AsyncFor():
                self._loop(statement)
            case ast.While(body=body, orelse=other):
                self._branches([*body, *other], [])
            case ast.If():
                self._condition(statement)
            case ast.Try(body, handlers, other, last):
                self._branches([*body, *other], *(each.body for each in handlers))
                self.run(last)

    def _assign(self, target: ast.expr, value: ast.expr) -> None:
        match target:
            case ast.Name(name):
                self._values[name] = self._paths(value)
            case ast.Tuple(elts) | ast.List(elts):
                values = value.elts if isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(elts) else ()
                for each, given in itertools.zip_longest(elts, values):
                    if isinstance(each, ast.Name):
                        self._values[each.id] = self._paths(given) if given is not None else ()
            case ast.Subscript(value=listed) if self._dotted(listed) == "sys.path":
                self._put_all(value, is_first=True)
            case ast.Attribute() if self._dotted(target) == "sys.path":
                self._put_around(value)

    def _put_around(self, value: ast.expr) -> None:
        """``[...] + sys.path``, ``sys.path + [...]``, ``[..., *sys.path]``."""
        match value:
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                is_before = self._dotted(right) == "sys.path"
                self._put_all(left if is_before else right, is_first=is_before)
            case ast.List(elts):
                spread = next((at for at, each in enumerate(elts) if isinstance(each, ast.Starred)), len(elts))
                for at, each in enumerate(elts):
                    self._put(self._paths(each), is_first=at < spread)

    def _loop(self, loop: ast.For | ast.AsyncFor) -> None:
        name = loop.target.id if isinstance(loop.target, ast.Name) else ""
        for given in self._listed(loop.iter):
            self._values[name] = given
            self.run(loop.body)
        self._values[name] = ()
        self._branches([*loop.body, *loop.orelse], [])

    def _condition(self, statement: ast.If) -> None:
        arms: list[list[ast.stmt]] = []
        other: list[ast.stmt] = [statement]
        is_beginning = self.is_beginning
        while len(other) == 1 and isinstance(other[0], ast.If):
            names = {each.id for each in ast.walk(other[0].test) if isinstance(each, ast.Name)}
            self.is_beginning &= "__name__" not in names
            arms.append(other[0].body)
            other = other[0].orelse
        self._branches(*arms, other)
        self.is_beginning = is_beginning

    def _branches(self, *arms: list[ast.stmt]) -> None:
        """Names stand afterwards for what any of the branches leaves them."""
        before = self._values
        after: dict[str, _Values] = {}
        for arm in arms:
            self._values = dict(before)
            self.run(arm)
            for name, values in self._values.items():
                known = after.get(name)
                if known is not values:
                    after[name] = _few((*known, *values)) if known is not None else values
        self._values = after

    def _call(self, call: ast.Call) -> None:
        named = self._dotted(call.func)
        function = self._functions.get(named)
        if named in _PUTTING and call.args:
            is_first = named == "sys.path.insert" and isinstance(call.args[0], ast.Constant) and call.args[0].value == 0
            if named == "sys.path.extend":
                self._put_all(call.args[0], is_first=False)
            else:
                self._put(self._paths(call.args[-1]), is_first=is_first)
        elif function is not None:
            names = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
            given = dict(zip(names, map(self._paths, call.args), strict=False))
            given |= {each.arg: self._paths(each.value) for each in call.keywords if each.arg is not None}
            self.run_function(function, given)

    def _put_all(self, value: ast.expr, *, is_first: bool) -> None:
        for paths in self._listed(value):
            self._put(paths, is_first=is_first)

    def _put(self, paths: _Values, *, is_first: bool) -> None:
        places = tuple(dict.fromkeys(place for path in paths for place in _places(path)))
        if places:
            self.found.append((is_first and self.is_beginning, places))

    def _listed(self, value: ast.expr) -> list[_Values]:
        return [self._paths(each) for each in value.elts] if isinstance(value, ast.List | ast.Tuple | ast.Set) else []

    # Expressions

    def _paths(self, value: ast.expr) -> _Values:
        """The texts of paths that an expression may be; none where it is not known."""
        if self._nested >= _MOST_NESTED:
            return ()
        self._nested += 1
        found = self._known(value)
        self._nested -= 1
        return _few(found)

    def _known(self, value: ast.expr) -> _Values:
        match value:
            case ast.Constant(str(text)):
                return (text,)
            case ast.Name("__file__"):
                return (f"{_ROOTS[HERE]}/0.py",)
            case ast.Name(name) if name in self._values:
                return self._values[name]
            case ast.JoinedStr(parts):
                return self._sum(parts)
            case ast.FormattedValue(value=inner, conversion=-1, format_spec=None):
                return self._paths(inner)
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return self._sum((left, right))
            case ast.BinOp(left=left, op=ast.Div(), right=right):
                return self._joined((left, right))
            case ast.IfExp(body=body, orelse=other):
                return (*self._paths(body), *self._paths(other))
            case ast.Subscript(value=ast.Attribute(value=path, attr="parents"), slice=ast.Constant(int(count))):
                return tuple(_above(each, count + 1) for each in self._paths(path)) if 0 <= count < _DEEP else ()
            case ast.Subscript(value=ast.Call(func=func, args=[path]), slice=ast.Constant(0)):
                return tuple(map(posixpath.dirname, self._paths(path))) if self._dotted(func) == "os.path.split" else ()
            case ast.Subscript(value=listed, slice=ast.Constant(0)) if self._dotted(listed) == "sys.path":
                return (_ROOTS[WORKING],)
            case ast.Attribute(value=path, attr="parent"):
                return tuple(_above(each, 1) for each in self._paths(path))
            case ast.Attribute() | ast.Name():
                return tuple(filter(None, [_TEXTS.get(self._dotted(value))]))
            case ast.Call():
                return self._called(value)
        return ()

    def _called(self, call: ast.Call) -> _Values:
        named = self._dotted(call.func)
        if named in _WORKING_FOLDER:
            return (_ROOTS[WORKING],)
        if named == "os.path.join" or named in _PATHS:
            return self._joined(call.args) if call.args else ("",)
        if named in _OWN_FILE and len(call.args) == 1:
            inner = call.args[0]
            is_own = isinstance(inner, ast.Call) and self._dotted(inner.func) == "inspect.currentframe"
            return (f"{_ROOTS[HERE]}/0.py",) if is_own else ()
        if named in _SAME or named in _WHOLE or named == "os.path.dirname":
            paths = (
                self._paths(call.args[0]) if call.args and not (len(call.args) > 1 and named == "os.path.relpath") else ()
            )
            if named == "os.path.dirname":
                return tuple(map(posixpath.dirname, paths))
            return paths if named in _SAME else tuple(map(_whole, paths))
        match call.func:
            case ast.Attribute(value=path, attr=name) if name in _ITSELF:
                return tuple(each if name == "as_posix" else _whole(each) for each in self._paths(path))
            case ast.Attribute(value=path, attr="joinpath"):
                return self._joined((path, *call.args))
        return ()

    def _joined(self, parts: Iterable[ast.expr]) -> _Values:
        return tuple(posixpath.join(*each) for each in self._choices(parts))

    def _sum(self, parts: Iterable[ast.expr]) -> _Values:
        return tuple("".join(each) for each in self._choices(parts))

    def _choices(self, parts: Iterable[ast.expr]) -> Iterator[tuple[str, ...]]:
        return itertools.islice(itertools.product(*map(self._paths, parts)), _MOST_CHOICES)

    def _dotted(self, node: ast.expr) -> str:
        """The name of a library's function or list, as it is imported; empty for what is no dotted name."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return ""
        parts.append(self._modules.get(node.id, node.id))
        return ".".join(reversed(parts)).removeprefix("os.") if parts[-2:] == ["sys", "os"] else ".".join(reversed(parts))


def _few(paths: Iterable[str]) -> _Values:
    return tuple(itertools.islice(dict.fromkeys(paths), _MOST_CHOICES))


def _sums(firsts: _Values, seconds: _Values) -> _Values:
    return _few(first + second for first in firsts for second in seconds)


def _above(path: str, count: int) -> str:
    for _ in range(count):
        path = posixpath.dirname(path.rstrip("/"))
    return path


def _whole(path: str) -> str:
    return posixpath.normpath(posixpath.join(_ROOTS[WORKING], path))


def _places(path: str) -> Iterator[Place]:
    whole = _whole(path)
    for name, root in _ROOTS.items():
        if "\0" not in whole and whole.startswith(f"/{name}/"):
            yield name, posixpath.relpath(whole, root)
