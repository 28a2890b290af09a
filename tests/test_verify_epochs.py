"""Whole epochs, with evaluation and the start of workers in."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest

from speedlint.verify.runner import Limits
from tests.test_verify_cli import verify
from tests.test_verify_runs import Run, run

pytestmark = pytest.mark.usefixtures("uncompiled")

EPOCHS = Limits(epochs=2, timeout=120.0)
EVALUATION = """
    import time
    for epoch in range(EPOCHS):
        for x, y in LOADER:
            step(x, y)
        for x, y in DataLoader(data, batch_size=32):
            model(x)
        time.sleep(0.2)
"""
TRAINING = """
    import time
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    torch.manual_seed(0)
    loader = DataLoader(TensorDataset(torch.randn(64, 8)), batch_size=16)
    model = nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(12):
        for (x,) in loader:
            loss = model(x).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        time.sleep(EVALUATION)
"""
__all__ = ["run"]


@pytest.mark.parametrize(
    "loader",
    [
        "loader",
        pytest.param("DataLoader(data, batch_size=4)", marks=pytest.mark.slow),
        "DataLoader(data, batch_size=4, num_workers=1)",
    ],
)
def test_an_epoch_goes_from_its_first_batch_to_that_of_the_next(run: Run, loader: str) -> None:
    sample = run(EVALUATION.replace("EPOCHS", "50").replace("LOADER", loader), limits=EPOCHS)
    assert (sample.ended, sample.note, len(sample.warmup), len(sample.steps)) == ("steps", "", 1, 2)
    assert all(0.2 < epoch < 5 for epoch in sample.steps)
    assert sample.samples == 2 * 64
    assert all(wait < epoch - 0.2 for wait, epoch in zip(sample.waits, sample.steps, strict=True))
    assert sample.window == pytest.approx(sum(sample.steps), rel=0.01)


def test_the_last_epoch_ends_with_the_script(run: Run) -> None:
    sample = run(EVALUATION.replace("EPOCHS", "2").replace("LOADER", "loader"), limits=EPOCHS)
    assert (sample.ended, len(sample.warmup), len(sample.steps)) == ("script", 1, 1)
    only = run(EVALUATION.replace("EPOCHS", "1").replace("LOADER", "loader"), limits=EPOCHS)
    assert (len(only.warmup), len(only.steps)) == (0, 1)


@pytest.mark.slow
def test_a_gain_in_evaluation_is_one_by_the_epoch_and_none_by_the_step(tmp_path: Path) -> None:
    for name, evaluation in (("train.py", "0.2"), ("other.py", "0.02")):
        (tmp_path / name).write_text(textwrap.dedent(TRAINING).replace("EVALUATION", evaluation))
    done = verify(tmp_path, "train.py", "--against", "other.py", "--epochs", "1", "--pairs", "3", "--max-pairs", "3")
    assert done.returncode == 0, done.stdout + done.stderr
    headline = done.stdout.splitlines()[0]
    assert "x faster (" in headline
    assert headline.endswith("by whole epochs, evaluation and the start of workers in")
    assert re.search(r"a difference counts beyond \d.*; the original against itself: [01]\.", done.stdout)
    assert "step, and all between steps" not in done.stdout


def test_without_a_loader_there_are_no_epochs(run: Run) -> None:
    sample = run(
        """
    for k in range(50):
        step(torch.randn(4, 4), torch.randn(4, 1))
    """,
        limits=EPOCHS,
    )
    assert sample.steps == ()
