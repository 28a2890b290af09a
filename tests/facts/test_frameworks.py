"""What the rules on frameworks rest on: defaults, errors and spellings of the releases that are installed."""

from __future__ import annotations

import dataclasses
import inspect
from pathlib import Path
from typing import Any

import pytest

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
