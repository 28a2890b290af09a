"""Each file answers for its own nodes: what a function of another file is, only that file can say."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from speedlint.ask.script import Script
from speedlint.config import Settings
from speedlint.engine import Engine
from speedlint.facts import syntax
from speedlint.registry import Registry
from speedlint.solve.names import Names
from speedlint.solve.roles import Roles
from speedlint.source import Parents, Source
from tests.conftest import ROOT

TREES: dict[type, Callable[[Any], syntax.Tree]] = {
    Names: lambda names: names.source.tree,
    Roles: lambda roles: roles.script.source.tree,
    Script: lambda script: script.source.tree,
    Source: lambda source: source.tree,
    Parents: lambda parents: parents._tree,
}
ASKED = {
    Names: ("scope", "reaching"),
    Roles: ("evaluate", "origins"),
    Script: ("name", "text"),
    Source: ("statement", "ancestors", "enclosing", "inside"),
    Parents: ("__getitem__",),
}


@pytest.fixture
def strangers(monkeypatch: pytest.MonkeyPatch) -> Iterator[set[str]]:
    """What files are asked of other files' nodes, while a test runs."""
    found: set[str] = set()

    def watched(kind: type, name: str) -> Callable[..., Any]:
        asked, tree = getattr(kind, name), TREES[kind]

        def ask(self: Any, node: Any, *others: Any, **named: Any) -> Any:
            if isinstance(node, syntax.Node) and node.tree is not tree(self):
                found.add(f"{kind.__name__}.{name} of {node.tree.path}")
            return asked(self, node, *others, **named)

        return ask

    for kind, names in ASKED.items():
        for name in names:
            monkeypatch.setattr(kind, name, watched(kind, name))
    yield found


def check(folder: Path, *paths: Path) -> None:
    engine = Engine(Settings(folder), Registry.load())
    for path in paths:
        assert not engine.check(path).problems


TRAIN = """
    import torch
    from torch import nn
    from torch.cuda.amp import GradScaler
    from parts import half, Net, loaders, made, place

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    feeds = loaders()
    generator, discriminator = Net(), Net()
    place(generator, device)
    place(discriminator, device)
    made_by, judged_by = made(generator), made(discriminator)
    scaler = GradScaler(enabled=half())
    for epoch in range(20):
        for batch in feeds["train"]:
            rows = batch
            real, noise = rows["x"].to(device), rows["z"].to(device)
            with torch.autocast("cuda", dtype=torch.bfloat16):
                fake = generator(noise)
                judged = discriminator(fake.detach()).mean() - discriminator(real).mean()
            judged_by.zero_grad()
            scaler.scale(judged).backward()
            scaler.step(judged_by)
            with torch.autocast("cuda", dtype=torch.bfloat16):
                loss = -discriminator(fake).mean()
            made_by.zero_grad()
            scaler.scale(loss).backward()
            scaler.step(made_by)
            scaler.update()
            print(loss.item())
"""
PARTS = """
    import torch
    from torch import nn

    WIDE = 64
    NAMES = [
        "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p", "q", "r", "s", "t", "u", "v", "w",
        "aa", "ab", "ac", "ad", "ae", "af", "ag", "ah", "ai", "aj", "ak", "al", "am", "an", "ao", "ap", "aq", "ar", "as",
        "ba", "bb", "bc", "bd", "be", "bf", "bg", "bh", "bi", "bj", "bk", "bl", "bm", "bn", "bo", "bp", "bq", "br", "bs",
        "ca", "cb", "cc", "cd", "ce", "cf", "cg", "ch", "ci", "cj", "ck", "cl", "cm", "cn", "co", "cp", "cq", "cr", "cs",
    ]


    class Net(nn.Module):
        def __init__(self, width=2 * WIDE, times=WIDE - 60):
            super().__init__()
            self.times = times
            self.layers = nn.Sequential(nn.Conv2d(3, width, 3), nn.ReLU(), nn.Conv2d(width, 1, 3))

        def forward(self, x):
            x = self.layers(x)
            for _ in range(self.times):
                if x.norm().item() > 1:
                    x = x / 2
            return x


    def half():
        return "float16" in NAMES


    def place(model, device):
        model.to(device)


    def made(model):
        return torch.optim.Adam(model.parameters(), lr=0.1)


    def loaders():
        return torch.load("".join(NAMES))
"""


def test_of_a_project_in_two_files(tmp_path: Path, strangers: set[str]) -> None:
    for name, text in {"train.py": TRAIN, "parts.py": PARTS}.items():
        (tmp_path / name).write_text(textwrap.dedent(text))
    check(tmp_path, tmp_path / "train.py")
    assert not strangers


PROJECTS = sorted((ROOT / "fixtures" / "projects").iterdir())


@pytest.mark.parametrize(
    "project",
    [PROJECTS[0], *(pytest.param(each, marks=pytest.mark.slow) for each in PROJECTS[1:])],
    ids=lambda path: path.name,
)
def test_of_real_projects(project: Path, strangers: set[str]) -> None:
    check(project, project / "train.py")
    assert not strangers
