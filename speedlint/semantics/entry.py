"""Whether a script is where a program starts, and where its first statement goes."""

from __future__ import annotations

import libcst as cst

from speedlint import edits
from speedlint.rule import Edit
from speedlint.semantics.script import Script

_DEFINITIONS = (cst.FunctionDef, cst.ClassDef)
_SPAWNS = (
    "torch.multiprocessing.spawn",
    "multiprocessing.spawn",
    "torch.multiprocessing.Process",
    "multiprocessing.Process",
)


def main_guard(script: Script) -> cst.If | None:
    """The ``if __name__ == "__main__":`` of a script."""
    for statement in script.source.module.body:
        if (
            isinstance(statement, cst.If)
            and "__name__" in script.text(statement.test)
            and "__main__" in script.text(statement.test)
        ):
            return statement
    return None


def is_entry(script: Script) -> bool:
    """Whether a script is run, not imported: it has a main guard, or works at its top level and nothing imports it."""
    if main_guard(script) is not None:
        return True
    return not script.program.importers(script) and any(_works(script, statement) for statement in script.source.module.body)


def _works(script: Script, statement: cst.CSTNode) -> bool:
    """Whether a top-level statement is a loop, or a call for its effect."""
    if isinstance(statement, (cst.For, cst.While)):
        return True
    match statement:
        case cst.SimpleStatementLine(body=[cst.Expr(value=cst.Call())]):
            return True
    return False


def first_edit(script: Script, dotted: str, arguments: str, before: cst.CSTNode) -> tuple[Edit, ...]:
    """A call of a library's function as the first thing the program does.

    In the main guard; below the imports above ``before`` where there is none, or where the script starts processes, which
    do not run the guard. Raises CannotEdit.
    """
    name, imports = script.spell(dotted)
    line = f"{name}{arguments}"
    guard = main_guard(script)
    if guard is not None and isinstance(guard.body, cst.IndentedBlock) and not any(script.calls(*_SPAWNS)):
        return (*imports, edits.insert_before(script.source, guard.body.body[0], [line]))
    body = list(script.source.module.body)
    limit = next((i for i, statement in enumerate(body) if script.source.contains(statement, before)), len(body))
    above = [statement for statement in body[:limit] if _is_import(statement)]
    if imports or not above:
        raise edits.CannotEdit("torch is not imported at the top of the file")
    return (edits.insert_after(script.source, above[-1], ["", line]),)


def _is_import(statement: cst.CSTNode) -> bool:
    return isinstance(statement, cst.SimpleStatementLine) and isinstance(statement.body[0], (cst.Import, cst.ImportFrom))
