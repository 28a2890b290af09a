"""Distributions of torch's whose arguments are checked where they are made: to know whether the check holds, the host waits
for the GPU, and again in each ``log_prob``."""

from __future__ import annotations

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.shapes import eras
from speedlint.shapes.sync import shapes
from speedlint.torch import distributions

_PACKAGE = b"distributions"
_SWITCHES = (b"_validate_args", b"arg_constraints", b"enable_validation", b"torch.compile", b"_dynamo", b"torch.cuda.graph")
"""What says for all distributions whether they check; ``torch.compile`` switches the checks off for the whole process."""


def waits(script: Script, call: syntax.Call) -> bool:
    """Whether a call makes a distribution of tensors on the GPU and has them checked, as it is where nothing is said."""
    mentions = script.program.mentions
    if not mentions(script, _PACKAGE) or any(mentions(script, each) for each in _SWITCHES):
        return False
    if not eras.may_be_on(script, distributions.CHECKED_SINCE):
        return False
    parameters = distributions.checked(_made(script, call))
    if not parameters or script.hides_arguments(call) or script.argument(call, "validate_args") is not None:
        return False
    if any(shapes.sized_by_values(script, each) is not None for each in script.source.inside(call, syntax.Subscript)):
        return False  # the host has just waited for how many there are
    given = (script.argument(call, name, at) for at, name in enumerate(parameters))
    return any(each is not None and script.is_shown_device_tensor(each) for each in given)


def _made(script: Script, call: syntax.Call) -> str | None:
    """The full name of the class that a call makes an object of, or of the one from which the project's class derives that
    leaves the constructor as it is."""
    definition = script.definition(call.func)
    if definition is None or not isinstance(definition.node, syntax.ClassDef):
        return script.name(call.func) if definition is None else None
    calls = definition.script.roles.calls
    if calls.method(definition, "__init__") is not None:
        return None
    return next((each for each in calls.foreign_bases(definition) if distributions.checked(each)), None)
