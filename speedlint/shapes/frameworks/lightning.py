"""Lightning: the ``Trainer`` that trains, what it is told, and the modules that it is given."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.solve import dtypes
from speedlint.solve.terms import Definition
from speedlint.torch import library

_DEVICES = ("gpus", "devices", "tpu_cores", "auto_select_gpus")
_REMOVED = (
    "checkpoint_callback",
    "progress_bar_refresh_rate",
    "weights_summary",
    "process_position",
    "truncated_bptt_steps",
)
"""Options that Lightning 2 knows no more."""
_A_HANDFUL = 50
"""Batches up to which a training is only tried out."""


def trainers(script: Script) -> Iterator[syntax.Call]:
    """The calls that make a ``Trainer``."""
    return script.calls(*library.LIGHTNING_TRAINERS)


def asked_for(script: Script, trainer: syntax.Call, name: str) -> syntax.BaseExpression | None:
    """What a ``Trainer`` or ``Fabric`` is given for a parameter."""
    by_position = script.is_call_to(trainer, *library.FABRICS) and name in library.FABRIC_PARAMETERS
    return script.argument(trainer, name, library.FABRIC_PARAMETERS.index(name) if by_position else None)


def is_new(script: Script, trainer: syntax.Call) -> bool:
    """Whether a trainer is certainly of Lightning 2 or newer: it comes from the package ``lightning``."""
    return (script.name(trainer.func) or "").startswith("lightning.")


def is_fabric_decided(script: Script, fabric: syntax.Call) -> bool:
    """Whether a ``Fabric``, its strategy or the code around it says what to compute in."""
    is_told = asked_for(script, fabric, "precision") is not None
    return (
        is_told
        or decides_precision(script, fabric)
        or dtypes.names_half(script)
        or script.program.mentions(script, b"set_default_dtype")
    )


def decides_precision(script: Script, trainer: syntax.Call) -> bool:
    """Whether the strategy of a trainer leaves the precision to the module, or is told one of its own."""
    strategy = asked_for(script, trainer, "strategy")
    made = (
        ((place, node) for place, node in script.roles.origins(strategy) if isinstance(node, syntax.Call))
        if strategy
        else ()
    )
    return any(
        (place.name(call.func) or "").endswith(".ModelParallelStrategy")
        or place.argument(call, "mixed_precision")
        or place.argument(call, "precision")
        for place, call in made
    )


def fits(script: Script, trainer: syntax.Call) -> list[tuple[Script, syntax.Call]]:
    """The calls ``trainer.fit(...)`` of a trainer that a call makes."""
    return list(script.calls_on(trainer, "fit"))


def runs_all_training(script: Script) -> bool:
    """Whether trainers fit all that a program trains. They set what is global to what they are told: since Lightning 1.5 a
    fit runs within ``set_detect_anomaly(detect_anomaly)``, False by default (lightning 2.1, ``_run_stage``)."""
    made = [(place, call) for place in script.everywhere(b"Trainer") for call in trainers(place)]
    return any(fits(*each) for each in made) and not any(place.loops.steps for place in script.everywhere(b"backward"))


def is_elsewhere(script: Script, trainer: syntax.Call) -> bool:
    """Whether a trainer is told to leave the GPU alone, or to run a few batches as a test."""
    accelerator = asked_for(script, trainer, "accelerator")
    known = script.constant(accelerator) if accelerator is not None else None
    if known is not None and known.value in library.NOT_CUDA:
        return True
    if accelerator is None and _is_old(script, trainer) and not any(map(partial(script.argument, trainer), _DEVICES)):
        return True
    for count in ("gpus", "devices"):
        asked = asked_for(script, trainer, count)
        if asked is not None and (known := script.constant(asked)) is not None and known.value in (0, None):
            return True
    quick = script.argument(trainer, "fast_dev_run")
    return (quick is not None and script.text(quick) != "False") or is_trial(script, trainer)


def _is_old(script: Script, trainer: syntax.Call) -> bool:
    """Whether a trainer is told what only Lightning 1 knows, which stays on the CPU unless it is told to leave it."""
    return any(script.argument(trainer, name) is not None for name in _REMOVED)


def is_trial(script: Script, trainer: syntax.Call) -> bool:
    """Whether a trainer is told to stop after a handful of batches."""
    if option(script, trainer, "fast_dev_run"):
        return True
    known = (option(script, trainer, name) for name in ("limit_train_batches", "max_steps", "overfit_batches"))
    return any(type(value) is int and 0 < value <= _A_HANDFUL for value in known)


def option(script: Script, trainer: syntax.Call, name: str) -> object:
    """The value that a trainer is given for an option; None where it is not given or not known."""
    given = script.argument(trainer, name)
    constant = script.constant(given) if given is not None else None
    return constant.value if constant is not None else None


def log_around(script: Script, read: syntax.Node) -> syntax.Call | None:
    """The call of ``self.log`` or ``self.log_dict`` in a module of Lightning's that is handed what an expression reads."""
    for up in script.source.ancestors(read):
        match up:
            case syntax.Call(func=syntax.Attribute(value=syntax.Name("self"), attr=syntax.Name("log" | "log_dict"))):
                return up if _is_of_module(script, up) else None
            case syntax.Arg() | syntax.Dict() | syntax.DictElement():
                continue
            case _:
                return None
    return None


def _is_of_module(script: Script, node: syntax.Node) -> bool:
    function = script.function(node)
    owner = script.names.owner(function) if function is not None else None
    if owner is None:
        return False
    bases = script.roles.calls.foreign_bases(Definition(script, owner))
    return any(base in library.LIGHTNING_MODULES for base in bases)
