"""What the rules of the model family rest on, asked of the installed torch."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils import checkpoint


class Wide(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.layer = nn.Linear(4, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.layer(x))


def _counter() -> Any:
    from torch._dynamo.testing import CompileCounter

    torch._dynamo.reset()
    return CompileCounter()


def test_another_module_of_the_same_sizes_is_not_compiled_again() -> None:
    counter = _counter()
    for _ in range(3):
        torch.compile(Wide(8), backend=counter)(torch.ones(2, 4))
    assert counter.frame_count == 1


def test_each_width_is_compiled_anew() -> None:
    counter = _counter()
    for width in (8, 9, 10, 11):
        torch.compile(Wide(width), backend=counter)(torch.ones(2, 4))
    assert counter.frame_count == 4
    assert torch._dynamo.config.recompile_limit == 8


def test_other_lengths_are_compiled_once_more() -> None:
    counter = _counter()
    for length in (3, 4, 5, 6):
        torch.compile(Wide(8), backend=counter)(torch.ones(length, 4))
    assert counter.frame_count == 2


def test_dynamic_lengths_are_compiled_once() -> None:
    counter = _counter()
    for length in (3, 4, 5, 6):
        torch.compile(Wide(8), backend=counter, dynamic=True)(torch.ones(length, 4))
    assert counter.frame_count == 1


def test_replicas_share_the_call_that_was_compiled() -> None:
    compiled: Any = torch.compile(Wide(8), backend="eager")
    assert compiled._replicate_for_data_parallel().__dict__["forward"] is compiled.__dict__["forward"]
    module: Any = Wide(8)
    module.compile(backend="eager")
    assert module._replicate_for_data_parallel()._compiled_call_impl is module._compiled_call_impl


def test_attention_without_weights_computes_the_same() -> None:
    torch.manual_seed(0)
    layer, x = nn.MultiheadAttention(16, 4, batch_first=True), torch.randn(2, 6, 16)
    padded = torch.zeros(2, 6, dtype=torch.bool)
    padded[1, 4:] = True
    out, weights = layer(x, x, x, key_padding_mask=padded)
    quiet, nothing = layer(x, x, x, key_padding_mask=padded, need_weights=False)
    assert weights is not None
    assert nothing is None
    torch.testing.assert_close(out, quiet)
    assert list(inspect.signature(layer.forward).parameters)[4] == "need_weights"


def test_queries_that_may_look_at_nothing_are_zero_and_not_nan() -> None:
    torch.manual_seed(0)
    layer, x = nn.MultiheadAttention(16, 4, bias=False, batch_first=True), torch.randn(1, 6, 16)
    nowhere = torch.ones(1, 6, dtype=torch.bool)
    assert layer(x, x, x, key_padding_mask=nowhere)[0].isnan().all()
    assert (layer(x, x, x, key_padding_mask=nowhere, need_weights=False)[0] == 0).all()


def test_fused_attention_is_what_is_written_out() -> None:
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, 4, 8, 16) for _ in range(3))
    seen = torch.ones(8, 8, dtype=torch.bool).tril()
    weights = torch.softmax((q @ k.transpose(-2, -1) / 4).masked_fill(~seen, float("-inf")), dim=-1)
    torch.testing.assert_close(weights @ v, nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=seen))


def _images() -> Any:
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.Conv2d(8, 8, 3))


def test_channels_last_weights_are_enough() -> None:
    torch.manual_seed(0)
    model, x = _images(), torch.randn(2, 3, 16, 16)
    before = model(x)
    model.to("cpu", memory_format=torch.channels_last)
    after = model(x)
    assert x.is_contiguous()
    assert after.is_contiguous(memory_format=torch.channels_last)
    assert not after.is_contiguous()
    torch.testing.assert_close(before, after)


def test_loading_a_checkpoint_keeps_the_layout() -> None:
    model = _images().to(memory_format=torch.channels_last)
    model.load_state_dict(_images().state_dict())
    assert model[3].weight.is_contiguous(memory_format=torch.channels_last)


def test_what_channels_last_breaks() -> None:
    model = _images().to(memory_format=torch.channels_last)
    out = model(torch.randn(2, 3, 16, 16))
    with pytest.raises(RuntimeError):
        out.view(2, -1)
    with pytest.raises(RuntimeError):
        nn.utils.parameters_to_vector(model.parameters())
    with pytest.raises(RuntimeError):
        volumes: Any = nn.Conv3d(3, 4, 3)
        volumes.to(memory_format=torch.channels_last)


def test_instance_normalization_puts_the_channels_first() -> None:
    x = torch.randn(2, 8, 4, 4).to(memory_format=torch.channels_last)
    assert not nn.InstanceNorm2d(8)(x).is_contiguous(memory_format=torch.channels_last)
    assert nn.BatchNorm2d(8)(x).is_contiguous(memory_format=torch.channels_last)


def test_checkpoint_asks_for_its_way() -> None:
    with pytest.warns(UserWarning, match="use_reentrant"):
        checkpoint.checkpoint(torch.sin, torch.ones(2, requires_grad=True))
    assert "use_reentrant" in inspect.signature(checkpoint.checkpoint_sequential).parameters


@pytest.mark.filterwarnings("ignore")
def test_reentrant_checkpoint_loses_gradients_where_no_input_asks_for_one() -> None:
    layer, x = nn.Linear(2, 2), torch.ones(1, 2)
    assert not checkpoint.checkpoint(layer, x, use_reentrant=True).requires_grad
    assert checkpoint.checkpoint(layer, x, use_reentrant=False).requires_grad


def test_torchscript_is_deprecated() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.jit.script(nn.Linear(2, 2))
    assert any("deprecated" in str(each.message) for each in caught)


def test_arguments_of_distributed_data_parallel() -> None:
    parameters = inspect.signature(nn.parallel.DistributedDataParallel.__init__).parameters
    assert parameters["find_unused_parameters"].default is False
    assert parameters["gradient_as_bucket_view"].default is False
    assert "static_graph" in parameters


def test_batch_normalization_takes_a_bias_away() -> None:
    torch.manual_seed(0)
    norm, x, bias = nn.BatchNorm2d(4), torch.randn(8, 4, 3, 3), torch.randn(1, 4, 1, 1)
    torch.testing.assert_close(norm(x), norm(x + bias), rtol=1e-4, atol=1e-4)


def test_dropout_draws_its_mask_in_the_order_of_memory() -> None:
    images = torch.ones(2, 3, 4, 5)
    masks = []
    for layout in (torch.contiguous_format, torch.channels_last):
        torch.manual_seed(0)
        masks.append(torch.nn.functional.dropout(images.to(memory_format=layout), 0.5))
    assert not torch.equal(*masks)


def test_a_forward_that_begins_with_an_lstm_is_not_compiled() -> None:
    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm, self.head = torch.nn.LSTM(2, 3, batch_first=True), torch.nn.Linear(3, 1)

        def forward(self, rows: torch.Tensor) -> torch.Tensor:
            found: torch.Tensor = self.head(self.lstm(rows)[0])
            return found

    compiled: list[object] = []

    def backend(graph: torch.fx.GraphModule, _inputs: list[torch.Tensor]) -> Callable[..., Any]:
        compiled.append(graph)
        return graph.forward

    torch.compile(Net(), backend=backend)(torch.ones(1, 4, 2))
    assert not compiled


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_a_recurrent_layer_is_its_cell_over_the_sequence(kind: str) -> None:
    torch.manual_seed(0)
    cell = getattr(nn, f"{kind}Cell")(3, 5)
    torch.manual_seed(0)
    layer = getattr(nn, kind)(3, 5, batch_first=True)
    assert list(layer.state_dict()) == [f"{name}_l0" for name in cell.state_dict()]
    assert all(torch.equal(a, b) for a, b in zip(cell.parameters(), layer.parameters(), strict=True))
    x, outputs = torch.randn(2, 7, 3), []
    state: Any = (torch.zeros(2, 5), torch.zeros(2, 5)) if kind == "LSTM" else torch.zeros(2, 5)
    for t in range(7):
        state = cell(x[:, t], state)
        outputs.append(state[0] if kind == "LSTM" else state)
    torch.testing.assert_close(layer(x)[0], torch.stack(outputs, 1))


def test_rows_go_through_a_network_together_as_one_by_one() -> None:
    layers = (
        nn.Conv2d(3, 4, 3),
        nn.GroupNorm(2, 4),
        nn.MaxPool2d(2),
        nn.AdaptiveAvgPool2d(2),
        nn.Flatten(),
        nn.Linear(16, 5),
    )
    network, x = nn.Sequential(*layers, nn.LayerNorm(5), nn.GELU(), nn.Softmax(1)), torch.randn(40, 3, 9, 9)
    one_by_one = torch.cat([network(row[None]) for row in x])
    torch.testing.assert_close(torch.cat([network(x[:32]), network(x[32:])]), one_by_one)


@pytest.mark.parametrize("batch_first", [True, False])
def test_encoders_are_fused_without_gradients_where_batches_come_first(batch_first: bool) -> None:
    """The fused operation runs no part of a layer, and gives zeros for padded positions."""
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=batch_first)
    encoder = nn.TransformerEncoder(layer, 1).eval()
    x, padded = torch.rand(3, 3, 8), torch.tensor([[False, False, True]] * 3)
    slow = encoder(x, src_key_padding_mask=padded)
    followed = nn.Sequential(layer.linear1, nn.Tanh())
    followed.weight, followed.bias = layer.linear1.weight, layer.linear1.bias
    layer.eval().add_module("linear1", followed)
    replaced = layer(x)
    with torch.no_grad():
        fast = encoder(x, src_key_padding_mask=padded)
        is_same = torch.allclose(layer(x), replaced, atol=1e-5)
    assert is_same is not batch_first
    assert torch.equal(fast[:, 2], torch.zeros(3, 8)) is batch_first
    assert not (slow[:, 2] == 0).any()
