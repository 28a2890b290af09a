"""What the rules on frameworks rest on: defaults, errors and spellings of the releases that are installed."""

from __future__ import annotations

import dataclasses
import inspect
from pathlib import Path
from typing import Any

import pytest

from speedlint.torch import library

torch = pytest.importorskip("torch")


def _trained(*, anomaly: bool) -> list[Any]:
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.1)
    with torch.autograd.set_detect_anomaly(anomaly):
        for _ in range(3):
            optimizer.zero_grad()
            net(torch.ones(4, 8)).square().mean().backward()
            optimizer.step()
    return [each.detach().clone() for each in net.parameters()]


def test_anomaly_detection_changes_no_bit() -> None:
    assert all(torch.equal(on, off) for on, off in zip(_trained(anomaly=True), _trained(anomaly=False), strict=True))


def test_adamw_is_fused_on_the_cpu_too() -> None:
    assert torch.optim.AdamW(torch.nn.Linear(2, 2).parameters(), fused=True).defaults["fused"] is True


def test_defaults_of_training_arguments() -> None:
    arguments = pytest.importorskip("transformers").TrainingArguments
    defaults = {field.name: field.default for field in dataclasses.fields(arguments)}
    assert defaults["fp16"] is False
    assert defaults["bf16"] is False
    assert defaults["dataloader_num_workers"] == 0
    assert defaults["dataloader_persistent_workers"] is False
    assert defaults["dataloader_pin_memory"] is True
    assert defaults["skip_memory_metrics"] is True
    assert defaults["full_determinism"] is False
    assert defaults["logging_steps"] == defaults["save_steps"] == 500
    assert defaults["num_train_epochs"] == 3
    assert str(defaults["optim"]).endswith("adamw_torch_fused")


def test_arguments_and_data_have_their_places_in_a_trainer() -> None:
    trainer = pytest.importorskip("transformers").Trainer
    assert list(inspect.signature(trainer).parameters)[:4] == ["model", "args", "data_collator", "train_dataset"]


def test_half_precisions_exclude_each_other(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    with pytest.raises(ValueError, match="fp16 and bf16"):
        transformers.TrainingArguments(str(tmp_path), fp16=True, bf16=True, use_cpu=True)


def test_the_fused_adamw_is_called_so() -> None:
    names = pytest.importorskip("transformers.training_args").OptimizerNames
    assert {"adamw_torch", "adamw_torch_fused"} <= {name.value for name in names}


def test_accelerator_is_in_full_precision_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    accelerator = pytest.importorskip("accelerate").Accelerator
    monkeypatch.delenv("ACCELERATE_MIXED_PRECISION", raising=False)
    assert inspect.signature(accelerator).parameters["mixed_precision"].default is None
    assert accelerator().mixed_precision == "no"


@pytest.mark.skipif(torch.cuda.is_available(), reason="asks what happens without a GPU")
def test_accelerator_leaves_fp16_out_without_a_gpu() -> None:
    accelerate = pytest.importorskip("accelerate")
    accelerate.state.AcceleratorState._reset_state(reset_partial_state=True)
    made = accelerate.Accelerator(mixed_precision="fp16")
    accelerate.state.AcceleratorState._reset_state(reset_partial_state=True)
    assert made.scaler is None


def test_options_of_a_lightning_trainer() -> None:
    trainer = pytest.importorskip("lightning").Trainer
    parameters = inspect.signature(trainer).parameters
    assert parameters["detect_anomaly"].default is False
    assert parameters["fast_dev_run"].default is False
    assert all(parameters[name].default is None for name in ("precision", "benchmark", "deterministic", "profiler"))


@pytest.mark.parametrize("precision", ["16-mixed", "bf16-mixed", 16, "bf16"])
def test_spellings_of_a_lightning_precision(precision: int | str, tmp_path: Path) -> None:
    lightning = pytest.importorskip("lightning")
    trainer = lightning.Trainer(accelerator="cpu", precision=precision, logger=False, default_root_dir=tmp_path)
    assert trainer.precision in ("16-mixed", "bf16-mixed")


def test_hooks_take_what_the_table_says() -> None:
    lightning = pytest.importorskip("lightning")
    transformers = pytest.importorskip("transformers")
    classes = {
        "lightning.LightningModule": lightning.LightningModule,
        "lightning.Callback": lightning.Callback,
        "transformers.Trainer": transformers.Trainer,
        "transformers.TrainerCallback": transformers.TrainerCallback,
    }
    for names, hooks in library.HOOKS:
        (owner,) = (classes[name] for name in names & classes.keys())
        for name, hook in hooks.items():
            told = inspect.signature(getattr(owner, name)).parameters
            if any(each.kind is inspect.Parameter.VAR_POSITIONAL for each in told.values()):
                continue
            for place, words in {
                hook.batch: ("batch", "inputs"),
                hook.turn: ("batch_idx",),
                hook.loss: ("loss",),
                hook.result: ("outputs",),
            }.items():
                assert place is None or list(told)[place] in words, name


def test_a_hook_of_the_batch_gets_the_loss_under_its_name(tmp_path: Path) -> None:
    lightning = pytest.importorskip("lightning")
    base: Any = lightning.LightningModule
    seen: list[Any] = []

    class Net(base):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.net = torch.nn.Linear(4, 1)

        def training_step(self, batch: Any, index: int) -> Any:
            return self.net(batch).mean()

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=0.1)

        def on_train_batch_end(self, outputs: Any, batch: Any, index: int) -> None:
            seen.append(outputs)

    quiet = {"logger": False, "enable_progress_bar": False, "enable_checkpointing": False, "enable_model_summary": False}
    trainer = lightning.Trainer(accelerator="cpu", max_steps=1, default_root_dir=tmp_path, **quiet)
    trainer.fit(Net(), torch.utils.data.DataLoader(torch.ones(8, 4), batch_size=4))
    assert list(seen[0]) == ["loss"] and isinstance(seen[0]["loss"], torch.Tensor)


def test_batches_are_on_the_device_when_the_loss_is_asked_for() -> None:
    trainer = pytest.importorskip("transformers").Trainer
    told = inspect.getsource(trainer.training_step)
    assert told.index("_prepare_inputs(") < told.index("compute_loss(")
