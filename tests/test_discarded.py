"""Gradients that a backward pass computes and nothing uses: each look-alike is a program of its own."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from speedlint.ask.program import Program
from speedlint.ask.script import Options, Script
from speedlint.shapes.optimizer.discarded import Kind, discarded, why_not

PLAIN = """
import torch
from torch import nn
from torch.utils.data import DataLoader

class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        # made

    def forward(self, x):
        return self.layer(x)

def train(dataset):
    G, D = Network(), Network()
    # built
    g_optimizer = torch.optim.Adam(G.parameters())
    d_optimizer = torch.optim.Adam(D.parameters())
    # before
    for real in DataLoader(dataset):
        # begun
        fake = G(torch.randn(8, 4))
        # drawn
        judged = D(fake)
        loss = judged.mean() - D(real).mean()
        d_optimizer.zero_grad()
        loss.backward()
        d_optimizer.step()
        # between
        g_optimizer.zero_grad()
        D(G(torch.randn(8, 4))).mean().backward()
        g_optimizer.step()
        # done

if __name__ == "__main__":
    train(torch.randn(64, 4))
"""


def _found(folder: Path, **replaced: str) -> tuple[list[Kind], list[str | None]]:
    """What the program's first backward pass computes in vain, and why what goes beyond is not written; with lines put
    where a comment stands."""
    text = PLAIN
    for place, lines in replaced.items():
        indent = next(line for line in text.splitlines() if line.strip() == f"# {place}").partition("#")[0]
        text = text.replace(f"{indent}# {place}", textwrap.indent(textwrap.dedent(lines), indent))
    (folder / "train.py").write_text(text)
    script: Script = Program(Options((2, 13))).script(folder / "train.py")
    found = list(discarded(script, script.method_calls("backward")[0]))
    return [each.kind for each in found], [why_not(script, each) for each in found if each.kind is Kind.BEYOND]


def test_beyond(tmp_path: Path) -> None:
    assert _found(tmp_path) == ([Kind.BEYOND], [None])


@pytest.mark.parametrize(
    ("place", "lines"),
    [
        ("before", "G.layer.register_full_backward_hook(print)"),
        ("between", "torch.nn.utils.clip_grad_norm_(G.parameters(), 1.0)"),
        ("between", "print(G.layer.weight.grad)"),
        ("built", "G = nn.parallel.DistributedDataParallel(G)"),
    ],
)
def test_only_shown(tmp_path: Path, place: str, lines: str) -> None:
    kinds, reasons = _found(tmp_path, **{place: lines})
    assert kinds == [Kind.BEYOND]
    assert reasons != [None]


TAKEN = {
    "a group that is added": ("before", "d_optimizer.add_param_group({'params': G.layer.parameters()})"),
    "a group of what is not seen": ("before", "d_optimizer.add_param_group(group)"),
    "a group that is filled": ("before", "d_optimizer.param_groups[0]['params'].append(G.layer.bias)"),
    "a group that grows": ("before", "d_optimizer.param_groups[0]['params'] += G.parameters()"),
    "a weight by name": ("before", "d_optimizer = torch.optim.Adam([*D.parameters(), G.layer.bias])"),
    "tied weights": ("built", "G.layer.weight = D.layer.weight"),
    "weights that a function ties": ("built", "def tie(one, other):\n    one.layer.weight = other.layer.weight\ntie(G, D)"),
    "a layer put into the other": ("built", "G.layer = D.layer"),
    "layers wrapped together": ("built", "G.layer = nn.Sequential(D.layer, nn.Tanh())"),
    "a layer by its name": ("built", "setattr(G, 'layer', D.layer)"),
    "a layer registered": ("built", "G.add_module('layer', D.layer)"),
    "a layer handed to both": (
        "built",
        "shared = nn.Linear(4, 4)\nG, D = nn.Sequential(shared, Network()), nn.Sequential(Network(), shared)",
    ),
    "a layer of the other": ("built", "D = nn.Sequential(G.layer, Network())"),
    "codes that are learned": ("begun", "codes = nn.Parameter(torch.rand(8, 4))"),
    "codes that take gradients": ("begun", "codes = torch.rand(8, 4, requires_grad=True)"),
    "codes that are told to": ("begun", "codes = torch.rand(8, 4)\ncodes.requires_grad_()"),
    "a weight of another network": ("begun", "codes = nn.Embedding(8, 4).weight"),
}
LEFT = {
    "a group of another network": ("before", "d_optimizer.add_param_group({'params': Network().parameters()})"),
    "rates of groups": (
        "begun",
        "codes = torch.rand(8, 4)\nfor group in d_optimizer.param_groups:\n    group['lr'] = len(group['params'])",
    ),
    "weights tied within a network": ("made", "self.last = nn.Linear(4, 4)\nself.last.weight = self.layer.weight"),
    "weights tied from outside": ("built", "G.last = nn.Linear(4, 4)\nG.last.weight = G.layer.weight"),
    "a new layer": ("built", "G.layer = nn.Sequential(nn.Linear(4, 4), nn.Tanh())"),
    "layers of their own": ("built", "G, D = nn.Sequential(nn.Linear(4, 4), nn.Tanh()), nn.Sequential(nn.Linear(4, 4))"),
    "codes of numbers": ("begun", "codes = torch.zeros(8, 4)\ncodes[:, 0] = torch.arange(8)"),
    "codes of the batch": ("begun", "codes = torch.cat([real[:4], torch.randn(4, 4)])"),
    "codes of a chosen type": ("begun", "make = torch.cuda.FloatTensor if D else torch.FloatTensor\ncodes = make(8, 4)"),
}


def _given(folder: Path, place: str, lines: str) -> tuple[list[Kind], list[str | None]]:
    """Like ``_found``; codes are what the first network is given."""
    more = {"drawn": "fake = G(codes)"} if place == "begun" else {}
    return _found(folder, **{place: lines}, **more)


@pytest.mark.parametrize(("place", "lines"), TAKEN.values(), ids=TAKEN.keys())
def test_gradients_that_may_be_taken(place: str, lines: str, tmp_path: Path) -> None:
    kinds, reasons = _given(tmp_path, place, lines)
    assert None not in reasons
    assert kinds in ([Kind.BEYOND], [])


@pytest.mark.parametrize(("place", "lines"), LEFT.values(), ids=LEFT.keys())
def test_gradients_that_are_left(place: str, lines: str, tmp_path: Path) -> None:
    assert _given(tmp_path, place, lines) == ([Kind.BEYOND], [None])


@pytest.mark.parametrize(
    ("place", "lines"),
    [
        ("begun", "for p in G.parameters():\n    p.requires_grad = False"),
        ("begun", "G.requires_grad_(False)"),
        ("begun", "set_requires_grad([G, D], False)"),
        ("made", "self.layer.weight.requires_grad_(False)"),
        ("between", "g_optimizer.step()"),
        ("between", "if len(real) > 4:\n    g_optimizer.step()"),
        ("between", "torch.autograd.grad(judged.sum(), fake)"),
        ("between", "judged.sum().backward()"),
        ("done", "kept.append(judged)"),
        ("done", "return judged"),
        ("between", "other = torch.optim.SGD([*G.parameters(), *D.parameters()])\nother.step()"),
        ("done", "for optimizer in make_optimizers(G):\n    optimizer.step()"),
    ],
)
def test_nothing_is_said(tmp_path: Path, place: str, lines: str) -> None:
    assert _found(tmp_path, **{place: lines}) == ([], [])


def test_one_output_for_two_passes(tmp_path: Path) -> None:
    """As in a softmax GAN: the pass that trains the discriminator needs the gradients of its weights."""
    (tmp_path / "train.py").write_text(
        PLAIN.replace("loss.backward()", "loss.backward(retain_graph=True)").replace(
            "D(G(torch.randn(8, 4))).mean().backward()", "(D(real).mean() - judged.mean()).backward()"
        )
    )
    script = Program(Options((2, 13))).script(tmp_path / "train.py")
    assert not [each for call in script.method_calls("backward") for each in discarded(script, call)]


def test_weights_of_another(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PLAIN)
    script = Program(Options((2, 13))).script(tmp_path / "train.py")
    assert [each.kind for each in discarded(script, script.method_calls("backward")[1])] == [Kind.OTHER]


@pytest.mark.parametrize(("held", "kinds"), [("self.table = table", []), ("self.table = nn.Linear(4, 4)", [Kind.WEIGHTS])])
def test_a_loss_made_of_products_has_no_weights(tmp_path: Path, held: str, kinds: list[Kind]) -> None:
    """A transition between states, as diffusion over classes weighs them, looks like attention."""
    (tmp_path / "train.py").write_text(
        textwrap.dedent(f"""
        import torch
        from torch import nn
        from torch.utils.data import DataLoader

        class Transitions(nn.Module):
            def __init__(self, table):
                super().__init__()
                {held}

            def forward(self, scores, states):
                chances = torch.softmax(scores @ states.transpose(-2, -1), dim=-1)
                return (chances @ states).mean()

        def train(dataset, table):
            network, weigh = nn.Linear(4, 4), Transitions(table)
            optimizer = torch.optim.Adam(network.parameters())
            for rows in DataLoader(dataset):
                loss = weigh(network(rows), rows)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """)
    )
    script = Program(Options((2, 13))).script(tmp_path / "train.py")
    found = [each for call in script.method_calls("backward") for each in discarded(script, call)]
    assert [each.kind for each in found] == kinds
