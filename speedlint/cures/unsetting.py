"""How a variable of the environment is no longer set."""

from __future__ import annotations

from speedlint.edits import CannotEdit, delete_statement
from speedlint.facts import syntax
from speedlint.rule import Edit
from speedlint.shapes.backend.environment import Setting, may_be_read
from speedlint.shapes.sync import streams


def dropped(setting: Setting) -> tuple[Edit, ...]:
    """The edits that take a setting away. Raises CannotEdit where something may rely on it, or it is part of more."""
    script, node = setting.script, setting.node
    if isinstance(node, (syntax.DictElement, syntax.Arg)):
        raise CannotEdit("it is one of several in a dict")
    if isinstance(node, syntax.Assign) and len(node.targets) > 1:
        raise CannotEdit("the same line sets something else")
    if isinstance(node, syntax.Call) and not isinstance(script.source.parents[node], syntax.Expr):
        raise CannotEdit("its result is used")
    if may_be_read(script, setting.name):
        raise CannotEdit("the program names the variable elsewhere")
    statement = node if isinstance(node, syntax.Assign) else script.source.parents[node]
    return delete_statement(script.source, streams.whole_branch(script, statement))
