"""What the rules on how often things are done take for granted of the installed torch."""

from __future__ import annotations

import io

import pytest

torch = pytest.importorskip("torch")
nn = torch.nn


def test_a_checkpoint_holds_every_parameter() -> None:
    model, written = nn.Linear(512, 512), io.BytesIO()
    torch.save(model.state_dict(), written)
    assert len(written.getvalue()) >= sum(each.numel() * 4 for each in model.parameters())


def test_the_state_of_adam_is_twice_the_model() -> None:
    model = nn.Linear(64, 64)
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.zeros(1, 64)).sum().backward()
    optimizer.step()
    held = sum(value.numel() for state in optimizer.state.values() for value in state.values() if value.dim())
    assert held == 2 * sum(each.numel() for each in model.parameters())
