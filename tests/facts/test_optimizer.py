"""What the rules on optimizers and gradients take for granted of the installed torch."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

import pytest

torch = pytest.importorskip("torch")
nn, Tensor = torch.nn, torch.Tensor
checkpoint = pytest.importorskip("torch.utils.checkpoint")


class _Mixed(nn.Module):  # type: ignore[misc, name-defined]
    """An LSTM, attention, dropout, a norm, and a branch that is skipped every other step."""

    def __init__(self) -> None:
        super().__init__()
        self.recurrent = nn.LSTM(8, 8, batch_first=True)
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.norm, self.drop = nn.LayerNorm(8), nn.Dropout(0.1)
        self.branch, self.head = nn.Linear(8, 8), nn.Linear(8, 1)

    def forward(self, x: Any, step: int) -> Any:
        x, _ = self.recurrent(x)
        x, _ = self.attention(x, x, x)
        x = self.drop(self.norm(x))
        if step % 2:
            x = x + self.branch(x)
        return self.head(x)


def _train(*, keep: bool = False, detach: bool = False) -> tuple[list[Any], Any]:
    """The parameters after some steps, and the sum of the losses."""
    torch.manual_seed(0)
    model = _Mixed()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=0.01)
    total: Any = 0.0
    for step in range(6):
        loss = model(torch.randn(4, 5, 8), step).square().mean()
        optimizer.zero_grad()
        loss.backward(retain_graph=True) if keep else loss.backward()
        optimizer.step()
        total += loss.detach() if detach else loss
    return [parameter.detach() for parameter in model.parameters()], total


def _same(left: list[Any], right: list[Any]) -> bool:
    return all(torch.equal(one, other) for one, other in zip(left, right, strict=True))


def test_a_detached_sum_is_the_same_number_and_the_training_the_same() -> None:
    (kept, total), (dropped, detached) = _train(), _train(detach=True)
    assert _same(kept, dropped)
    assert torch.equal(total.detach(), detached)
    assert total.grad_fn is not None and detached.grad_fn is None


def test_nothing_can_differentiate_a_sum_of_losses_that_were_differentiated() -> None:
    _, total = _train()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        total.backward()


def test_a_meter_that_multiplies_and_adds_keeps_the_graph() -> None:
    weight = torch.ones(2, requires_grad=True)
    total: Any = 0.0
    total += weight.square().sum() * 3
    assert total.requires_grad


def test_a_sum_under_no_grad_keeps_no_graph() -> None:
    loss = torch.ones(2, requires_grad=True).square().sum()
    with torch.no_grad():
        assert not (0.0 + loss).requires_grad


def test_a_graph_that_is_kept_gives_the_same_gradients() -> None:
    assert _same(_train(keep=True)[0], _train()[0])


def test_a_second_pass_through_a_dropped_graph_is_an_error() -> None:
    weight = torch.ones(2, requires_grad=True)
    loss = weight.square().sum()
    loss.backward()
    with pytest.raises(RuntimeError, match="second time"):
        loss.backward()


def test_create_graph_keeps_the_graph_by_itself() -> None:
    parameters = inspect.signature(Tensor.backward).parameters
    assert parameters["retain_graph"].default is None
    weight = torch.ones(2, requires_grad=True)
    loss = weight.pow(3).sum()
    torch.autograd.grad(loss, weight, create_graph=True)
    loss.backward()


_FOREACH = "Adadelta Adagrad Adam AdamW Adamax ASGD NAdam RAdam RMSprop Rprop SGD".split()


@pytest.mark.parametrize("name", _FOREACH)
def test_optimizers_choose_foreach_themselves(name: str) -> None:
    assert inspect.signature(getattr(torch.optim, name)).parameters["foreach"].default is None


def test_clipping_chooses_foreach_itself() -> None:
    for clip in (nn.utils.clip_grad_norm_, nn.utils.clip_grad_value_):
        assert inspect.signature(clip).parameters["foreach"].default is None


def test_foreach_goes_with_fused_where_it_is_false_and_not_where_it_is_true() -> None:
    parameters = [torch.zeros(2, requires_grad=True)]
    torch.optim.AdamW(parameters, foreach=False, fused=True)
    with pytest.raises(RuntimeError, match="cannot be `True` together"):
        torch.optim.AdamW(parameters, foreach=True, fused=True)


@pytest.mark.parametrize(("name", "module"), [("Adam", "adam"), ("AdamW", "adam"), ("SGD", "sgd"), ("Adagrad", "adagrad")])
@pytest.mark.parametrize(("fused", "takes_foreach"), [(None, True), (False, False)])
def test_fused_that_is_false_switches_foreach_off_and_none_does_not(
    monkeypatch: pytest.MonkeyPatch, name: str, module: str, fused: bool | None, takes_foreach: bool
) -> None:
    # On the CPU the default is the loop over parameters: as on a GPU here, where torch asks for its default.
    implementation = importlib.import_module(f"torch.optim.{module}")
    monkeypatch.setattr(implementation, "_default_to_fused_or_foreach", lambda *_, **__: (False, True))
    taken: list[str] = []
    for form in ("single", "multi"):
        monkeypatch.setattr(implementation, f"_{form}_tensor_{module}", lambda *_, form=form, **__: taken.append(form))
    parameter = torch.ones(2, requires_grad=True)
    parameter.grad = torch.ones(2)
    getattr(torch.optim, name)([parameter], lr=0.1, fused=fused).step()
    assert taken == ["multi" if takes_foreach else "single"]


def test_without_a_second_pass_checkpointing_gives_the_same_gradients() -> None:
    layer, x = nn.Sequential(nn.Linear(8, 8), nn.GELU(), nn.Linear(8, 8)), torch.randn(4, 8)
    gradients = []
    for is_checkpointed in (False, True):
        layer.zero_grad()
        out = checkpoint.checkpoint(layer, x, use_reentrant=False) if is_checkpointed else layer(x)
        out.square().mean().backward()
        gradients.append([parameter.grad for parameter in layer.parameters() if parameter.grad is not None])
    assert _same(*gradients)


def test_checkpointing_computes_the_forward_pass_again() -> None:
    runs: list[None] = []
    layer = nn.Linear(8, 8)
    layer.register_forward_pre_hook(lambda *_: runs.append(None))
    checkpoint.checkpoint(layer, torch.randn(4, 8), use_reentrant=False).mean().backward()
    assert len(runs) == 2


def test_one_segment_is_not_computed_again() -> None:
    runs: list[None] = []
    layers = nn.Sequential(nn.Linear(8, 8))
    layers[0].register_forward_hook(lambda *_: runs.append(None))
    checkpoint.checkpoint_sequential(layers, 1, torch.randn(4, 8), use_reentrant=False).mean().backward()
    assert len(runs) == 1


def test_a_model_over_several_processes_can_hold_back_its_exchange() -> None:
    assert callable(nn.parallel.DistributedDataParallel.no_sync)


def _adversarial(*, detach: bool, freeze: bool = False) -> list[Any]:
    """The parameters of a generator and a discriminator after some steps."""
    torch.manual_seed(0)
    generator = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.1), nn.Linear(8, 6))
    judge = nn.Sequential(nn.Linear(6, 8), nn.LeakyReLU(0.2), nn.Dropout(0.1), nn.Linear(8, 1))
    g_optimizer = torch.optim.AdamW(generator.parameters(), lr=0.01)
    d_optimizer = torch.optim.AdamW(judge.parameters(), lr=0.01)
    for _ in range(5):
        fake = generator(torch.randn(16, 4))
        d_optimizer.zero_grad()
        (judge(fake.detach() if detach else fake).mean() - judge(torch.randn(16, 6)).mean()).backward()
        assert all((parameter.grad is None) is detach for parameter in generator.parameters())
        d_optimizer.step()
        g_optimizer.zero_grad()
        judge.requires_grad_(not freeze)
        judge(generator(torch.randn(16, 4))).mean().backward()
        judge.requires_grad_(True)
        g_optimizer.step()
        for optimizer in (g_optimizer, d_optimizer):
            optimizer.zero_grad()
    return [*generator.parameters(), *judge.parameters()]


def test_gradients_that_are_zeroed_unused_change_nothing() -> None:
    plain, detached = _adversarial(detach=False), _adversarial(detach=True)
    frozen = _adversarial(detach=True, freeze=True)
    assert all(torch.equal(*pair) for other in (detached, frozen) for pair in zip(plain, other, strict=True))


def test_gradients_pass_through_weights_that_need_none() -> None:
    torch.manual_seed(0)
    features, given = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 4, 3)), torch.randn(2, 3, 8, 8)
    found = []
    for needs in (True, False):
        picture = given.clone().requires_grad_()
        features.requires_grad_(needs)(picture).square().mean().backward()
        found.append(picture.grad)
    assert torch.equal(*found)
