"""Four small trainings, and changes to them whose effect is known: what `parity_tiers.py` runs.

A training sees 35 batches of 32 rows an epoch, so that 70 losses are two epochs; labels are partly noise. Changes replace
text, in both versions or in the other one.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

HEAD = """
import os
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(SEED)
"""
LOOP = """
loader = DataLoader(TensorDataset(rows, labels), batch_size=32, shuffle=True)
model = model.to(torch.float32)
factor = 1.0
for epoch in range(4):
    for x, y in loader:
        out = model(x)
        loss = nn.functional.cross_entropy(out, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
SECOND_EPOCH = "for epoch in range(4):\n"
NETWORKS = {
    "MLP": """
rows = torch.randn(1120, 20)
labels = (rows[:, :5].sum(1) + torch.randn(1120) > 0).long()
model = nn.Sequential(nn.Linear(20, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.999), weight_decay=1e-2)
""",
    "BatchNorm CNN": """
labels = torch.randint(0, 4, (1120,))
rows = torch.randn(1120, 3, 8, 8) + 0.3 * torch.randn(4, 3, 8, 8)[labels]
labels = torch.where(torch.rand(1120) < 0.2, torch.randint(0, 4, (1120,)), labels)
model = nn.Sequential(
    nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(),
    nn.Conv2d(16, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(),
    nn.Conv2d(16, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
    nn.Flatten(), nn.Dropout(0.1), nn.Linear(256, 4),
)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-1, momentum=0.9, weight_decay=5e-4)
""",
    "LSTM": """
rows = torch.randn(1120, 12, 6)
labels = (rows[:, :, 0].cumsum(1).amax(1) + 0.5 * torch.randn(1120) > 3).long()


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(6, 24, batch_first=True)
        self.rest = nn.Sequential(nn.LayerNorm(24), nn.Dropout(0.1), nn.Linear(24, 2))

    def forward(self, x):
        return self.rest(self.lstm(x)[0][:, -1])


model = Model()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3, betas=(0.9, 0.999), weight_decay=1e-4)
""",
    "transformer": """
tokens = torch.randint(0, 32, (1120, 12))
labels = ((tokens < 8).sum(1) + (torch.rand(1120) < 0.2) > 3).long()
rows = torch.nn.functional.one_hot(tokens, 32).float()


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(32, 32)
        self.place = nn.Parameter(0.02 * torch.randn(12, 32))
        self.first, self.second = nn.LayerNorm(32), nn.LayerNorm(32)
        self.mix = nn.Linear(32, 96)
        self.wide = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Dropout(0.1), nn.Linear(64, 32))
        self.head = nn.Linear(32, 2)

    def forward(self, x):
        x = self.embed(x) + self.place
        q, k, v = (part.unflatten(-1, (4, 8)).transpose(1, 2) for part in self.mix(self.first(x)).chunk(3, -1))
        x = x + (torch.softmax(q @ k.mT / 8**0.5, -1) @ v).transpose(1, 2).flatten(2)
        return self.head((x + self.wide(self.second(x))).mean(1))


model = Model()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.999), weight_decay=1e-2)
""",
}
SELF_SEEDED = (("torch.manual_seed(SEED)", "torch.manual_seed(int.from_bytes(os.urandom(4), 'little'))"),)


class Kind(enum.Enum):
    """What a change does to a training, and which tiers it may not be given."""

    SAME = "the same"
    RANDOM = "other random numbers"
    CHANGED = "changed"


@dataclass(frozen=True)
class Change:
    """One change.

    Attributes:
        other: texts of the original and what stands for each in the other version; one of them, where some networks lack it.
        both: what is replaced in both versions before.
    """

    kind: Kind
    other: tuple[tuple[str, str], ...] = ()
    both: tuple[tuple[str, str], ...] = ()


def _scaled(name: str, factor: float) -> dict[str, Change]:
    """One number of a training, multiplied in all networks that have it."""
    numbers = {
        "learning rate": ("lr=1e-3", "lr=1e-1", "lr=3e-3"),
        "weight decay": ("weight_decay=1e-2", "weight_decay=5e-4", "weight_decay=1e-4"),
        "dropout": ("Dropout(0.1",),
    }[name]
    pairs = []
    for each in numbers:
        before, sign, value = each.rpartition("=") if "=" in each else each.rpartition("(")
        pairs.append((each, f"{before}{sign}{float(value) * factor:.6g}"))
    return {f"{name} x{factor:g}": Change(Kind.CHANGED, tuple(pairs))}


CHANGES: dict[str, Change] = {
    "nothing": Change(Kind.SAME),
    "gradients kept as zeros": Change(Kind.SAME, (("zero_grad()", "zero_grad(set_to_none=False)"),)),
    "another order of summation": Change(
        Kind.SAME,
        (("cross_entropy(out, y)", "cross_entropy(out, y, reduction='none').view(4, 8).sum(0).sum() / 32"),),
    ),
    "fused optimizer": Change(Kind.SAME, (("weight_decay=", "fused=True, weight_decay="),)),
    "float64 to float32": Change(
        Kind.SAME,
        (("to(torch.float64)", "to(torch.float32)"), ("model(x.double())", "model(x)")),
        (("to(torch.float32)", "to(torch.float64)"), ("model(x)", "model(x.double())")),
    ),
    "float32 weights, bf16 arithmetic": Change(
        Kind.SAME,
        (
            (
                "        out = model(x)\n        loss = ",
                "        with torch.autocast('cpu', torch.bfloat16): out = model(x)\n"
                "        out = out.float()\n        loss = ",
            ),
        ),
    ),
    "seeded from the system": Change(Kind.SAME, both=SELF_SEEDED),
    "seeded from the system, gradients kept as zeros": Change(
        Kind.SAME, (("zero_grad()", "zero_grad(set_to_none=False)"),), SELF_SEEDED
    ),
    "seeded from the system, another order of summation": Change(
        Kind.SAME,
        (("cross_entropy(out, y)", "cross_entropy(out, y, reduction='none').view(4, 8).sum(0).sum() / 32"),),
        SELF_SEEDED,
    ),
    "noise from the system": Change(Kind.SAME, both=((SECOND_EPOCH, "torch.rand(os.urandom(1)[0])\n" + SECOND_EPOCH),)),
    "random stream moved": Change(Kind.RANDOM, ((SECOND_EPOCH, "torch.rand(1)\n" + SECOND_EPOCH),)),
    "data in another order": Change(
        Kind.RANDOM, (("shuffle=True", "shuffle=True, generator=torch.Generator().manual_seed(torch.initial_seed() + 7)"),)
    ),
    "data in another order from epoch 2 on": Change(
        Kind.RANDOM, ((SECOND_EPOCH, SECOND_EPOCH + "    if epoch == 1: torch.rand(1)\n"),)
    ),
    **{
        key: change
        for name in ("learning rate", "weight decay", "dropout")
        for factor in (1.05, 1.1, 1.25)
        for key, change in _scaled(name, factor).items()
    },
    **{
        f"1 - momentum x{factor:g}": Change(
            Kind.CHANGED,
            (("betas=(0.9,", f"betas=({1 - 0.1 * factor:g},"), ("momentum=0.9", f"momentum={1 - 0.1 * factor:g}")),
        )
        for factor in (1.05, 1.1, 1.25)
    },
    **{
        f"batch size x{factor:g}": Change(Kind.CHANGED, (("batch_size=32", f"batch_size={round(32 * factor)}"),))
        for factor in (1.05, 1.1, 1.25)
    },
    "learning rate x1.1 from epoch 2 on": Change(
        Kind.CHANGED,
        (
            (
                SECOND_EPOCH,
                SECOND_EPOCH + "    for group in optimizer.param_groups: group['lr'] *= 1.1 if epoch == 1 else 1\n",
            ),
        ),
    ),
    "learning rate x1.25, seeded from the system": Change(
        Kind.CHANGED, _scaled("learning rate", 1.25)["learning rate x1.25"].other, SELF_SEEDED
    ),
    "learning rate x10": Change(Kind.CHANGED, _scaled("learning rate", 10.0)["learning rate x10"].other),
    "normalisation removed": Change(
        Kind.CHANGED,
        (
            ("nn.BatchNorm1d(64)", "nn.Identity()"),
            ("nn.BatchNorm2d(16)", "nn.Identity()"),
            ("nn.LayerNorm(24)", "nn.Identity()"),
            ("nn.LayerNorm(32)", "nn.Identity()"),
        ),
    ),
    "dropout removed": Change(Kind.CHANGED, (("nn.Dropout(0.1)", "nn.Identity()"),)),
}


def texts(network: str, change: Change, seed: int) -> tuple[str, str]:
    """The scripts of both versions."""
    text = HEAD + NETWORKS[network] + LOOP
    for old, new in change.both:
        text = text.replace(old, new)
    other = text
    for old, new in change.other:
        other = other.replace(old, new)
    assert other != text or not change.other
    return text.replace("SEED", str(seed)), other.replace("SEED", str(seed))
