"""Whether a file is still sound after edits: it compiles if it did before, and loads no name that is bound nowhere."""

from __future__ import annotations

import builtins
import symtable
import warnings
from collections.abc import Iterator

from speedlint import notebook
from speedlint.source import Source, SourceError

_ALWAYS_BOUND = {*dir(builtins), "__file__", "__path__", "__annotations__", "__builtins__", "__class__"}


def fault(before: Source, after: bytes) -> str:
    """What the edits that led from ``before`` to ``after`` have broken, or nothing."""
    try:
        parsed = Source.parse(before.path, after)
    except SourceError as error:
        return f"line {error.line} of the result: {error.what.partition(';')[0]}"
    if before.cells is not None and notebook.marks(before.data) != notebook.marks(after):
        return "it reaches over the end of a cell"
    if _compile_error(before):  # Python may be older or newer than the file
        return ""
    if broken := _compile_error(parsed):
        return broken
    unbound = _unbound(parsed.text_) - _unbound(before.text_)
    return f"the result names {', '.join(f'`{name}`' for name in sorted(unbound))}, which nothing binds" if unbound else ""


def _compile_error(source: Source) -> str:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(source.text_, "<file>", "exec", dont_inherit=True)
    except SyntaxError as error:
        return f"line {error.lineno} of the result: {error.msg}"
    except (ValueError, RecursionError, MemoryError) as error:
        return f"the result does not compile ({error})"
    return ""


def _unbound(text: str) -> set[str]:
    """The names that are loaded as globals and that neither the module nor Python binds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = symtable.symtable(text, "<file>", "exec")
    loaded, bound = set(), set(_ALWAYS_BOUND)
    for table in _tables(module):
        for symbol in table.get_symbols():
            if symbol.is_referenced() and symbol.is_global():
                loaded.add(symbol.get_name())
            if (table is module or symbol.is_declared_global()) and (symbol.is_assigned() or symbol.is_imported()):
                bound.add(symbol.get_name())
    return loaded - bound


def _tables(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    yield table
    for child in table.get_children():
        yield from _tables(child)
