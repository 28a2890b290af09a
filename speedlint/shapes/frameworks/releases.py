"""Releases of the frameworks: those that the project's own requirements allow, and that its code runs on."""

from __future__ import annotations

from typing import NamedTuple

from speedlint import requirements
from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.solve.flow import once
from speedlint.solve.names import Kind
from speedlint.source import is_name

Release = tuple[int, int]

_ARGUMENTS = ("transformers.TrainingArguments", "transformers.Seq2SeqTrainingArguments")
_TRAINERS = ("transformers.Trainer", "transformers.Seq2SeqTrainer")
_ARGUMENTS_UNTIL_5 = (
    *("evaluation_strategy", "logging_dir", "overwrite_output_dir", "no_cuda", "per_gpu_train_batch_size"),
    *("half_precision_backend", "fp16_backend", "tpu_num_cores"),
)
"""Arguments that ``TrainingArguments`` of transformers 5 refuses (its ``training_args.py``, release 5.24)."""
_ADAMW = "transformers.AdamW"
_TRANSFORMERS_5: Release = (5, 0)


class Allowed(NamedTuple):
    """The releases of a package that a project allows.

    Attributes:
        oldest: the first of them; None where nothing is said.
        below: the first one that is not allowed any more; None where nothing is said.
    """

    oldest: Release | None = None
    below: Release | None = None

    def is_since(self, release: Release) -> bool:
        """Whether all of them are of a release or newer."""
        return self.oldest is not None and self.oldest >= release

    def is_before(self, release: Release) -> bool:
        """Whether all of them are older than a release."""
        return self.below is not None and self.below <= release


@once(Allowed())
def allowed(script: Script, package: str) -> Allowed:
    """The releases of a package that the innermost requirement on it allows, and that the code runs on."""
    found = _required(script, package)
    is_older = package == "transformers" and (found.below is None or found.below > _TRANSFORMERS_5) and _is_before_5(script)
    return found._replace(below=_TRANSFORMERS_5) if is_older else found


def _required(script: Script, package: str) -> Allowed:
    for _, line in requirements.of(package, script.key.parent, script.program.root(script.path), script.program.disk):
        found = Allowed(requirements.lower_bound(line), requirements.upper_bound(line))
        if found != Allowed():
            return found
    return Allowed()


def _is_before_5(script: Script) -> bool:
    """Whether the program of a script hands the ``Trainer`` of transformers, or its arguments, what release 5 refuses, or
    imports the ``AdamW`` that it lacks."""
    return any(
        _says_before_5(place)
        for place in script.everywhere(b"TrainingArguments", b"Trainer", b"AdamW")
        if script.program.is_always_with(script, place)
    )


@once(False)
def _says_before_5(script: Script) -> bool:
    if any(is_name(arg.keyword, *_ARGUMENTS_UNTIL_5) for call in script.calls(*_ARGUMENTS) for arg in call.args):
        return True
    if any(is_name(arg.keyword, "tokenizer") for call in script.calls(*_TRAINERS) for arg in call.args):
        return True
    imported = (name for name, dotted in script.names.imports if dotted == _ADAMW)
    bound = (each for name in imported for each in script.names.module.bindings.get(name, ()))
    return any(_is_always_run(script, each.node) for each in bound if each.kind is Kind.IMPORT)


def _is_always_run(script: Script, node: syntax.Node) -> bool:
    """Whether a statement at the top of a file runs under no condition, and its error is not caught."""
    return next(script.order.under(node), None) is None and script.source.enclosing(node, syntax.Try) is None
