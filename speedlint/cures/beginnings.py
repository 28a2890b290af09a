"""How a call becomes the first thing that a program does."""

from __future__ import annotations

from speedlint import edits
from speedlint.ask.script import Script
from speedlint.cures import spelling
from speedlint.facts import syntax
from speedlint.rule import Edit
from speedlint.shapes.entry import main_guard, starts
from speedlint.torch import library


def first_edit(script: Script, dotted: str, arguments: str, before: syntax.Node) -> tuple[Edit, ...]:
    """A call of a library's function as the first thing the program does that ``before``, in ``script``, is part of.

    In the main guard; below the imports the file begins with, and above ``before`` if it is in the same file, where there is
    none, or where the script starts processes, which do not run the guard. Raises CannotEdit.
    """
    found = starts(script)
    if len(found) != 1:
        where = ", ".join(sorted(each.path.name for each in found))
        raise edits.CannotEdit(f"several scripts start it ({where}): call it in each" if found else "nothing starts it")
    if found[0] is not script:
        script, before = found[0], found[0].source.module
    name, imports = spelling.spell(script, dotted)
    line = f"{name}{arguments}"
    if imports:
        raise edits.CannotEdit("torch is not imported at the top of the file")
    guard = main_guard(script)
    if guard is not None and isinstance(guard.body, syntax.IndentedBlock) and not any(script.calls(*library.SPAWNERS)):
        first = next((statement for statement in guard.body.body if not _is_import(statement)), guard.body.body[0])
        return (edits.insert_before(script.source, first, [line]),)
    last = _last_import(script, before)
    bound = script.names.module.bindings.get(name.split(".")[0], ())
    if last is None or not any(binding.effect <= script.source.last(last) for binding in bound):
        raise edits.CannotEdit("torch is not imported at the top of the file")
    return (edits.insert_after(script.source, last, ["", line]),)


def _last_import(script: Script, before: syntax.Node) -> syntax.Node | None:
    """The last of the imports the file begins with, above ``before``; simple statements and branches may interrupt them."""
    last = None
    for statement in script.source.module.body:
        begun = isinstance(statement, syntax.BaseCompoundStatement) and not isinstance(statement, (syntax.If, syntax.Try))
        if begun or script.source.contains(statement, before):
            break
        if _is_import(statement) or _only_imports(script, statement):
            last = statement
    return last


def _only_imports(script: Script, statement: syntax.Node) -> bool:
    """Whether an ``if`` or ``try`` is there to import something: no loop, function or class stands in it."""
    inner = any(
        True
        for kind in (syntax.For, syntax.While, syntax.FunctionDef, syntax.ClassDef)
        for _ in script.source.inside(statement, kind)
    )
    imports = any(True for kind in (syntax.Import, syntax.ImportFrom) for _ in script.source.inside(statement, kind))
    return isinstance(statement, (syntax.If, syntax.Try)) and imports and not inner


def _is_import(statement: syntax.Node) -> bool:
    return isinstance(statement, syntax.SimpleStatementLine) and isinstance(
        statement.body[0], (syntax.Import, syntax.ImportFrom)
    )
