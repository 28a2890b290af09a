"""Hugging Face: the ``Trainer`` that trains, the ``TrainingArguments`` it is given, and what is known of its model."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.shapes import entry
from speedlint.shapes.data import apart, datasets
from speedlint.shapes.data.loaders import is_unguarded, respawned
from speedlint.shapes.frameworks import releases
from speedlint.shapes.model.networks import is_small_linear, network
from speedlint.shapes.training import Root, roots
from speedlint.solve.flow import listed_once
from speedlint.solve.terms import Definition
from speedlint.solve.values import returned
from speedlint.source import is_name
from speedlint.torch import library
from speedlint.torch.words import Place, Role

_ARGUMENTS = (
    "transformers.TrainingArguments",
    "transformers.Seq2SeqTrainingArguments",
    "transformers.training_args.TrainingArguments",
    "transformers.training_args_seq2seq.Seq2SeqTrainingArguments",
    "transformers.trainer.TrainingArguments",
)
_CONFIGS = tuple(f"trl.{name}Config" for name in ("SFT", "DPO", "ORPO", "KTO", "CPO", "Reward"))
_POSITIONS = {"model": 0, "args": 1, "data_collator": 2, "train_dataset": 3}
_ADAPTERS = ("peft.get_peft_model", "peft.mapping.get_peft_model")
_PEFT = re.compile(rb"(?:from|import)\s+peft\b")
_OTHER_DEVICES = ("use_cpu", "no_cuda", "use_mps_device", "tpu_num_cores", "use_ipex")
_PUBLISHED_IN_FULL = re.compile(
    r"(?:google-bert/|FacebookAI/|openai-community/|distilbert/|albert/)?(?:bert-|distilbert-|roberta-|xlm-roberta-|gpt2|distilgpt2|"
    r"distilroberta-|albert-|google/(?:electra|vit|bert)[-_]|microsoft/resnet-)"
)
_FULL_LIBRARIES = ("torch.nn.", "torchvision.models.", "timm.")
_TRANSFORMS = re.compile(rb"\.(?:set|with)_transform\(|Image\.open|librosa\.load|torchaudio\.load")
"""What a program says whose items are decoded or transformed each time they are read."""
_RELEASE_5 = (5, 0)
_ARGUMENTS_UNTIL_5 = (
    *("evaluation_strategy", "logging_dir", "overwrite_output_dir", "no_cuda", "per_gpu_train_batch_size"),
    *("half_precision_backend", "fp16_backend", "tpu_num_cores"),
)
"""Arguments that ``TrainingArguments`` of transformers 5 refuses (its ``training_args.py``, release 5.24)."""
_TRIAL = 50
"""Steps up to which a training is only tried out."""


@dataclass(frozen=True)
class Training:
    """A call that makes a Trainer's arguments, with a Trainer that is given them and trains.

    Attributes:
        script: where the arguments are made.
        arguments: the call that makes them.
        place: where the trainer is made.
        trainer: the call that makes it.
    """

    script: Script
    arguments: syntax.Call
    place: Script
    trainer: syntax.Call

    def option(self, name: str) -> syntax.BaseExpression | None:
        """What is passed for one of the arguments."""
        return self.script.argument(self.arguments, name)

    def known(self, name: str) -> object:
        """The value of one of the arguments; None where it is not passed or not known."""
        given = self.option(name)
        constant = self.script.constant(given) if given is not None else None
        return constant.value if constant is not None else None

    def is_set(self, name: str) -> bool:
        """Whether one of the arguments is passed, and not known to be off."""
        given = self.option(name)
        constant = self.script.constant(given) if given is not None else None
        return given is not None and (constant is None or constant.value not in (False, None, "", 0))

    def part(self, name: str) -> syntax.BaseExpression | None:
        """What is passed to the trainer: ``model``, ``train_dataset`` and so on."""
        return self.place.argument(self.trainer, name, _POSITIONS.get(name))

    @property
    def is_on_gpu(self) -> bool:
        """Whether nothing keeps the trainer from a GPU, which it takes where there is one."""
        if self.script.program.mentions(self.script, b"torch_xla") or self._is_left_on_host():
            return False
        return not any(self.is_set(name) for name in _OTHER_DEVICES)

    def _is_left_on_host(self) -> bool:
        """Whether the code above the trainer moves its model to the CPU, and nothing speaks of a GPU: it is to stay."""
        if self.place.program.mentions(self.place, b"cuda"):
            return False
        models = {id(node) for _, node in self.models}
        return any(
            isinstance(call.func, syntax.Attribute)
            and self.place.value(call).place is Place.HOST
            and self.place.function(call) is self.place.function(self.trainer)
            and self.place.order.may_run_before(call, self.trainer)
            and models & {id(node) for _, node in roots(self.place, call.func.value)}
            for call in self.place.method_calls("to")
        )

    @property
    def is_trial(self) -> bool:
        """Whether it stops after a handful of steps."""
        steps = self.known("max_steps")
        return isinstance(steps, int) and 0 < steps <= _TRIAL

    @property
    def passes(self) -> float:
        """How often the data is read, three times by default; once where only steps are counted."""
        if self.is_set("max_steps") and self.known("max_steps") != -1:
            return 1
        epochs = self.known("num_train_epochs")
        given = self.option("num_train_epochs")
        return epochs if isinstance(epochs, (int, float)) else (3 if given is None else 2)

    @cached_property
    def models(self) -> list[Root]:
        """What its model comes from, adapters seen through."""
        model, maker = self.part("model"), self.part("model_init")
        if model is None and maker is not None:
            made = self.place.definition(maker)
            found = returned(made) if made is not None and isinstance(made.node, syntax.FunctionDef) else ()
            return [root for value in found if made is not None for root in _bare(made.script, value)]
        return list(_bare(self.place, model)) if model is not None else []


@listed_once
def trainings(script: Script) -> Iterator[Training]:
    """The arguments that a script makes for a ``Trainer`` that trains on them, in source order, one for each call."""
    made = list(script.calls(*_ARGUMENTS, *_CONFIGS))
    if not made:
        return
    running = list(_running(script))
    for call in made:
        for place, trainer in running:
            given = place.argument(trainer, "args", 1)
            if given is not None and any(node is call for _, node in roots(place, given)):
                yield Training(script, call, place, trainer)
                break


def training(script: Script, call: syntax.Call) -> Training | None:
    """The training whose arguments a call makes, where all of them are in sight and it is no trial."""
    if script.hides_arguments(call):
        return None
    return next((each for each in trainings(script) if each.arguments is call and not each.is_trial), None)


def is_of_trl(script: Script, call: syntax.Call) -> bool:
    """Whether arguments are those of TRL, whose defaults are others."""
    return script.name(call.func) in _CONFIGS


def _running(script: Script) -> Iterator[tuple[Script, syntax.Call]]:
    """The trainers of a program on which ``train()`` is called."""
    trained = {
        id(node)
        for place in script.everywhere(b".train(")
        for call in place.method_calls("train")
        if isinstance(call.func, syntax.Attribute)
        for _, node in roots(place, call.func.value)
    }
    for place in script.everywhere(b"Trainer("):
        for call in place.source.of(syntax.Call):
            if id(call) in trained and is_trainer(place, call):
                yield place, call


def is_trainer(script: Script, call: syntax.Call) -> bool:
    """Whether a call makes a ``Trainer``, or an object of a class of the project that derives from one."""
    return script.name(call.func) in library.HUGGING_FACE_TRAINERS or own_trainer(script, call) is not None


def own_trainer(script: Script, call: syntax.Call) -> Definition | None:
    """The first-party class, derived from a ``Trainer``, that a call makes an object of."""
    return script.roles.calls.own_class(call, library.HUGGING_FACE_TRAINERS)


def _bare(script: Script, model: syntax.Node) -> Iterator[Root]:
    for place, node in roots(script, model):
        if isinstance(node, syntax.Call) and place.name(node.func) in _ADAPTERS and node.args:
            yield from _bare(place, node.args[0].value)
        else:
            yield place, node


# Precision


def is_small(one: Training) -> bool:
    """Whether its model holds nothing but small Linear layers."""
    return bool(one.models) and all(is_small_linear(*each) and network(*each).linears > 0 for each in one.models)


def is_in_full(one: Training) -> bool:
    """Whether the weights of its model are certainly float32: from release 5 they are what the checkpoint has."""
    return bool(one.models) and all(_is_full(script, node) for script, node in one.models)


def is_likely_in_full(one: Training) -> bool:
    """Whether the weights of its model are float32 for all that is seen: a checkpoint that is read as by default, by a
    release before 5, since that takes no more what the arguments or the trainer are given."""
    return bool(one.models) and _is_refused_by_5(one) and all(_is_read(script, node) for script, node in one.models)


def _is_read(script: Script, node: syntax.Node) -> bool:
    name = script.name(node.func) or "" if isinstance(node, syntax.Call) else ""
    if not isinstance(node, syntax.Call) or not name.startswith("transformers.") or not name.endswith(".from_pretrained"):
        return False
    chosen = ("torch_dtype", "dtype", "trust_remote_code", "quantization_config", "load_in_8bit", "load_in_4bit", "config")
    return not script.hides_arguments(node) and not any(is_name(arg.keyword, *chosen) for arg in node.args)


def _is_refused_by_5(one: Training) -> bool:
    """Whether the arguments or the trainer are made, under no condition, with what release 5 takes no more."""
    if releases.allowed(one.script, "transformers").is_since(_RELEASE_5):
        return False
    if any(is_name(arg.keyword, *_ARGUMENTS_UNTIL_5) for arg in one.arguments.args):
        return _is_always_made(one.script, one.arguments)
    is_library = one.place.name(one.trainer.func) in library.HUGGING_FACE_TRAINERS
    is_old = is_library and any(is_name(arg.keyword, "tokenizer") for arg in one.trainer.args)
    return is_old and _is_always_made(one.place, one.trainer)


def _is_always_made(script: Script, call: syntax.Call) -> bool:
    """Whether a call runs whenever its function does, or its file is run, and an error of it is not caught there."""
    guard = entry.main_guard(script)
    under = (script.source.parents[each] for each in script.order.under(call))
    return all(each is guard for each in under) and script.source.enclosing(call, syntax.Try) is None


def _is_full(script: Script, node: syntax.Node) -> bool:
    if not isinstance(node, syntax.Call):
        return False
    before = releases.allowed(script, "transformers").is_before(_RELEASE_5)
    definition = script.definition(node.func) or script.value(node).definition
    if definition is not None:
        handed = any(script.role(arg.value) is Role.MODULE for arg in node.args)
        return before or not (handed or "from_pretrained" in definition.script.text(definition.node))
    name = script.name(node.func) or ""
    if not name.startswith("transformers."):
        return name.startswith(_FULL_LIBRARIES)
    if not name.endswith((".from_pretrained", ".from_config")):
        return True
    return before or (_is_fixed(script, node) and bool(_PUBLISHED_IN_FULL.match(checkpoint(script, node))))


def _is_fixed(script: Script, call: syntax.Call) -> bool:
    """Whether the checkpoint is written out in the program, and not only the default of an option."""
    given = script.argument(call, "pretrained_model_name_or_path", 0)
    made = [node for _, node in script.roles.origins(given)] if given is not None else []
    return bool(made) and all(isinstance(node, syntax.SimpleString) for node in made)


def checkpoint(script: Script, call: syntax.Call) -> str:
    """The name of the checkpoint that a model is read from, where it is known."""
    given = script.argument(call, "pretrained_model_name_or_path", 0)
    constant = script.constant(given) if given is not None else None
    return constant.value if constant is not None and isinstance(constant.value, str) else ""


# Data


def _datasets(one: Training) -> list[datasets.Origin]:
    given = one.part("train_dataset")
    return datasets.origins(one.place, given) if given is not None else []


def reads_slowly(one: Training) -> bool | None:
    """Whether taking an item out of its dataset is seen to be work: a class that does more than index, or a transform.

    None where nothing speaks for it: text that is tokenized already, as by TRL's trainers, a dataset out of sight.
    """
    if (one.place.name(one.trainer.func) or "").startswith("trl."):
        return None
    found = _datasets(one)
    own = [origin for origin in found if origin.definition is not None]
    if own:
        return not any(origin.is_in_memory or datasets.is_iterable(origin) for origin in own)
    held = any(origin.is_in_memory for origin in found)
    return True if not held and one.place.program.mentions(one.place, _TRANSFORMS) else None


def worker_hazard(one: Training) -> str | None:
    """Why worker processes cannot be proved to read the same, or None."""
    if is_unguarded(one.place, one.trainer):
        return respawned(one.place)
    return apart.unproven(_reading(one), are_sent=True)


def changes_between_epochs(one: Training) -> str | None:
    """Why workers that stay alive may read another dataset than workers that are started anew, or None."""
    return apart.unproven(_reading(one), are_sent=False)


def _reading(one: Training) -> apart.Reading:
    collate = one.part("data_collator")
    return apart.Reading(one.place, one.trainer, one.part("train_dataset"), (collate,) if collate is not None else ())


# Optimizer


def makes_optimizer(one: Training) -> bool:
    """Whether the trainer is handed an optimizer, or is of a class that makes its own."""
    if one.part("optimizers") is not None or one.part("optimizer_cls_and_kwargs") is not None:
        return True
    own = own_trainer(one.place, one.trainer)
    made = ("create_optimizer", "create_optimizer_and_scheduler", "get_optimizer_cls_and_kwargs")
    return own is not None and any(own.script.roles.calls.method(own, name) is not None for name in made)


def is_adapter(one: Training) -> bool:
    """Whether the trainer only trains an adapter, which has few parameters."""
    return one.part("peft_config") is not None or one.place.program.mentions(one.place, _PEFT)
