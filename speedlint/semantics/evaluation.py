"""Passes that only evaluate: where they are, and whether gradients are off in them; and which scripts train at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from speedlint.semantics.loops import Does

if TYPE_CHECKING:
    from speedlint.semantics.script import Script

_TRAINERS = (
    "pytorch_lightning.Trainer",
    "lightning.Trainer",
    "lightning.pytorch.Trainer",
    "transformers.Trainer",
    "transformers.Seq2SeqTrainer",
    "accelerate.Accelerator",
)
_TRAINING = Does.BACKWARD | Does.OPTIMIZER_STEP | Does.TRAINS


def trains(script: Script) -> bool:
    """Whether this file takes part in training: it trains when it is run, or a file that imports it does."""
    if trains_itself(script):
        return True
    return not is_entry(script) and any(trains_itself(other) for other in script.program.importers(script))


def trains_itself(script: Script) -> bool:
    """Whether the file's own code, or a function that it calls, takes training steps."""
    if script.loops.does(script.source.module) & _TRAINING or any(True for _ in script.calls(*_TRAINERS)):
        return True
    return any(script.loops.function_does(function) & _TRAINING for function in script.source.of(cst.FunctionDef))


def is_entry(script: Script) -> bool:
    """Whether the file is run, not imported: it has a ``__main__`` guard."""
    return any(
        isinstance(test.left, cst.Name) and test.left.value == "__name__" for test in script.source.of(cst.Comparison)
    )


def is_test(script: Script) -> bool:
    """Whether the file is a test or stands among tests."""
    root = script.program.root(script.path)
    inside = script.path.absolute().parts[len(root.parts) :]
    stem = script.path.stem
    return any(part in ("tests", "test") for part in inside[:-1]) or stem.endswith("_test") or stem == "conftest" or (
        stem.startswith("test_") and any(each.name.value.startswith("test") for each in script.source.of(cst.FunctionDef))
    )
