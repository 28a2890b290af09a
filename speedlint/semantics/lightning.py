"""Lightning: the ``Trainer`` that trains, what it is told, and the modules that it is given."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from speedlint.semantics.script import Script

_TRAINERS = (
    "lightning.Trainer",
    "lightning.pytorch.Trainer",
    "lightning.pytorch.trainer.Trainer",
    "lightning.pytorch.trainer.trainer.Trainer",
    "pytorch_lightning.Trainer",
    "pytorch_lightning.trainer.Trainer",
    "pytorch_lightning.trainer.trainer.Trainer",
)


def trainers(script: Script) -> Iterator[cst.Call]:
    """The calls that make a ``Trainer``."""
    return script.calls(*_TRAINERS)


def is_new(script: Script, trainer: cst.Call) -> bool:
    """Whether a trainer is certainly of Lightning 2 or newer: it comes from the package ``lightning``."""
    return (script.name(trainer.func) or "").startswith("lightning.")


def fits(script: Script, trainer: cst.Call) -> list[tuple[Script, cst.Call]]:
    """The calls ``trainer.fit(...)`` of a trainer that a call makes."""
    found = []
    for place in script.everywhere(b".fit("):
        for call in place.method_calls("fit"):
            assert isinstance(call.func, cst.Attribute)
            if any(node is trainer for _, node in place.roles.origins(call.func.value)):
                found.append((place, call))
    return found
