"""What SPD101 writes runs: on a CPU it computes what the script did, and under autocast it trains."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from speedlint import config, stages
from speedlint.ask.script import Options
from speedlint.engine import Engine
from speedlint.registry import Registry
from speedlint.rule import Risk
from tests.conftest import ROOT

torch = pytest.importorskip("torch")
SCRIPTS = ROOT / "tests" / "precision_scripts"
END = "-- end --"
RUN = f"""
import os, runpy, sys
for path in sys.argv[1:]:
    os.chdir(os.path.dirname(path))
    sys.argv = [path]
    runpy.run_path(path, run_name="__main__")
    print({END!r})
"""
NAMES = ("plain", "trainer", "accumulating")
every_script = pytest.mark.parametrize("name", NAMES)


def _fixed(name: str, folder: Path, release: tuple[int, int] | None, amp: str = "fp16") -> str:
    path = folder / f"{name}.py"
    path.write_text((SCRIPTS / f"{name}.py").read_text())
    settings = config.Settings(folder, select=("SPD101",), risk=Risk.NUMERIC)
    staged = stages.fix((path,), settings, Registry.load(), Options(release, amp))
    assert not staged.problems
    return staged.outcomes[0].after.decode()


def _losses(folder: Path, *texts: str) -> list[list[str]]:
    """What each script prints, all of them run in one process, each in a folder of its own."""
    paths = []
    for number, text in enumerate(texts):
        paths.append(folder / str(number) / "run.py")
        paths[-1].parent.mkdir()
        paths[-1].write_text(text)
    command, environment = [sys.executable, "-c", RUN, *map(str, paths)], {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return [part.split() for part in done.stdout.split(END)[:-1]]


def _versions(name: str, folder: Path) -> list[str]:
    """A script, what is written into it for three releases, and that in half precision on the CPU, without a scaler and with
    one."""
    fixed = {release: _fixed(name, folder, release) for release in ((2, 13), (2, 2), None)}
    for release, text in fixed.items():
        assert "autocast(" in text
        assert ("torch.cuda.amp.GradScaler(" in text) == (release == (2, 2))
    half = _fixed(name, folder, (2, 13), "bf16")
    assert "Scaler" not in half
    forced = half.replace('device_type="cuda"', 'device_type="cpu"').replace('.type == "cuda"', ".type is not None")
    assert forced != half
    scaled = fixed[2, 13].replace('"cuda"', '"cpu"').replace('.type == "cpu"', ".type is not None")
    return [(SCRIPTS / f"{name}.py").read_text(), *fixed.values(), forced, scaled.replace("float16", "bfloat16")]


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[list[str]]]:
    """The losses of each script's versions."""
    folder = tmp_path_factory.mktemp("precision")
    versions = {name: _versions(name, folder) for name in NAMES}
    losses = iter(_losses(folder, *(text for texts in versions.values() for text in texts)))
    return {name: [next(losses) for _ in texts] for name, texts in versions.items()}


@every_script
def test_a_run_on_the_cpu_is_the_same(name: str, printed: dict[str, list[list[str]]]) -> None:
    before, *after = printed[name][:4]
    assert len(before) > 5
    assert after == [before] * 3


@every_script
def test_half_precision_trains(name: str, printed: dict[str, list[list[str]]]) -> None:
    exact, *others = ([float(loss) for loss in printed[name][at]] for at in (0, 4, 5))
    assert others[0] != exact
    for found in others:
        assert found == pytest.approx(exact, rel=5e-2)


MOMENTUM = """
import torch

model = torch.nn.Conv2d(3, 64, 3).to("cuda")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9{fused})
for epoch in range(10):
    for batch in loader:
        loss = model(batch.to("cuda", non_blocking=True)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("codes", "fused", "amp", "expected"),
    [
        (("SPD101", "SPD502"), "", "fp16", ("GradScaler", "momentum=0.9)")),
        (("SPD101", "SPD502"), "", "bf16", ("autocast", "momentum=0.9, fused=True)")),
        (("SPD502",), "", "fp16", ("momentum=0.9, fused=True)",)),
        (("SPD101",), ", fused=True", "fp16", ("    loss = model(",)),
    ],
)
def test_no_fused_momentum_beside_a_scaler(
    codes: tuple[str, ...], fused: str, amp: str, expected: tuple[str, ...], tmp_path: Path
) -> None:
    path = tmp_path / "train.py"
    path.write_text(MOMENTUM.replace("{fused}", fused))
    settings = config.Settings(tmp_path, select=codes, risk=Risk.NUMERIC)
    outcomes = stages.fix((path,), settings, Registry.load(), Options((2, 13), amp)).outcomes
    after = outcomes[0].after.decode() if outcomes else path.read_text()
    assert all(text in after for text in expected), after


NETWORK = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.extra, self.head = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 2)
        self.parts = nn.ModuleList([nn.Linear(8, 8), nn.Linear(8, 8)])

    def forward(self, x, at=0):
        FORWARD


criterion = nn.CrossEntropyLoss()
model = Net().to("cuda")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for epoch in range(10):
    BEFORE
    for x, y in loader:
        loss = criterion(model(x.to("cuda")), y.to("cuda"))
        IN_STEP
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
WHOLE = "return self.head(torch.relu(self.body(x)) + self.extra(x))"


@pytest.mark.parametrize(
    ("forward", "before", "in_step", "is_written"),
    [
        (WHOLE, "pass", "pass", True),
        (WHOLE, "print(epoch)", "if epoch > 2: print(loss)", True),
        (WHOLE, "for weight in model.body.parameters(): weight.requires_grad_(epoch > 1)", "pass", False),
        (WHOLE, "pass", "if epoch > 2: loss = loss + model.parts[0](x).mean()", False),
        (WHOLE, "pass", "for weight in model.extra.parameters(): weight.grad = None", False),
        ("return self.head(self.body(x) if at == 0 else self.extra(x))", "pass", "pass", False),
        ("return self.head(self.parts[at](x))", "pass", "pass", False),
    ],
)
def test_fused_momentum_only_where_all_gradients_begin_together(
    forward: str, before: str, in_step: str, is_written: bool, tmp_path: Path
) -> None:
    path = tmp_path / "train.py"
    path.write_text(NETWORK.replace("FORWARD", forward).replace("BEFORE", before).replace("IN_STEP", in_step))
    settings = config.Settings(tmp_path, select=("SPD502",), risk=Risk.NUMERIC)
    outcomes = stages.fix((path,), settings, Registry.load(), Options((2, 13), "fp16")).outcomes
    assert bool(outcomes) is is_written


WATCHED = """
import torch

model = torch.nn.Linear(64, 64).to("cuda")
optimizer = torch.optim.Adam(model.parameters())
SCALER
optimizer.register_step_pre_hook(lambda optimizer, *_: norms.append(model.weight.grad.norm()))
for epoch in range(10):
    for batch in loader:
        loss = model(batch.to("cuda")).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("scaler", "codes", "expected"),
    [
        ("scaler = torch.amp.GradScaler()", ("SPD502",), False),
        ("norms = []", ("SPD502",), True),
    ],
)
def test_no_fused_optimizer_whose_steps_are_watched_beside_a_scaler(
    scaler: str, codes: tuple[str, ...], expected: bool, tmp_path: Path
) -> None:
    path = tmp_path / "train.py"
    path.write_text(WATCHED.replace("SCALER", scaler))
    settings = config.Settings(tmp_path, select=codes, risk=Risk.NUMERIC)
    outcomes = stages.fix((path,), settings, Registry.load(), Options((2, 13), "fp16")).outcomes
    assert any(b"fused=True" in outcome.after for outcome in outcomes) is expected


def test_no_scaler_for_a_fused_optimizer_whose_steps_are_watched(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(WATCHED.replace("SCALER", "norms = []"))
    settings = config.Settings(tmp_path, select=("SPD101", "SPD502"), risk=Risk.NUMERIC)
    (outcome,) = stages.fix((path,), settings, Registry.load(), Options((2, 13), "fp16")).outcomes
    assert not (b"fused=True" in outcome.after and b"GradScaler" in outcome.after)


def test_a_fused_optimizer_still_shows_its_hooks_scaled_gradients_and_skipped_steps() -> None:
    parameter, seen = torch.nn.Parameter(torch.ones(2)), list[float]()
    optimizer = torch.optim.Adam([parameter], fused=True)
    optimizer.register_step_pre_hook(lambda *_: seen.append(float(parameter.grad.max())))
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    for factor in (1.0, float("inf")):
        parameter.grad = None
        scaler.scale((parameter * factor).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
    assert seen == [8.0, float("inf")]


def test_a_fused_momentum_still_takes_no_parameter_whose_gradients_begin_later() -> None:
    early, late = (torch.nn.Parameter(torch.ones(2)) for _ in range(2))
    optimizer = torch.optim.SGD([early, late], lr=0.1, momentum=0.9, fused=True)
    early.grad = torch.ones(2)
    optimizer.step()
    late.grad = torch.ones(2)
    with pytest.raises(TypeError, match="NoneType"):
        optimizer.step()


def test_a_fused_sgd_still_keeps_an_unset_momentum_of_a_skipped_first_step(monkeypatch: pytest.MonkeyPatch) -> None:
    parameter = torch.nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([parameter], lr=0.1, momentum=0.9, fused=True)
    optimizer.grad_scale, optimizer.found_inf = None, torch.tensor(1.0)
    parameter.grad = torch.ones(2)
    with monkeypatch.context() as memory:
        memory.setattr(torch, "empty_like", lambda tensor, **_: torch.full_like(tensor, 123.0))
        optimizer.step()
    assert optimizer.state[parameter]["momentum_buffer"].tolist() == [123.0, 123.0]


def test_autocast_is_spelled_as_the_release_has_it(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(MOMENTUM.replace("{fused}", ""))
    settings = config.Settings(tmp_path, select=("SPD101",))
    for release, spelled in (((1, 9), "torch.cuda.amp.autocast()"), ((1, 10), "torch.autocast(")):
        found = Engine(settings, Registry.load(), options=Options(release)).check(path).diagnostics
        assert [spelled in each.advice for each in found] == [True]


READ_AFTERWARDS = """
import torch

model = torch.nn.Conv2d(3, 64, 3).to("cuda")
optimizer = torch.optim.AdamW(model.parameters())
for epoch in range(10):
    for images in torch.utils.data.DataLoader(torch.load("images.pt")):
        output = model(images.to("cuda"))
        loss = output.square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        {read}
"""


@pytest.mark.parametrize(
    ("read", "is_written"),
    [
        ("found = output.detach().cpu().numpy()", False),
        ("found = output.detach().float().cpu().numpy()", True),
        ("found = output.argmax(1).cpu().numpy()", True),
        ("found = output.T.data.cpu()[0].numpy()", False),
        ("found = torch.zeros(output.shape[0])", True),
        ("found = torch.quantile(output, 0.9)", False),
        ("found = output.flatten(1) @ weights", False),
        ("found = (2 * output.sigmoid()).flatten(1) @ weights", False),
        ("found = (output.sigmoid() > 0.5).float() @ weights", True),
        ("kept.append(output.detach())", False),
        ("_, found = output.max(1); bank[found.cpu()] = 1", True),
        ("best, _ = output.topk(5, 1); found = best.flatten(1) @ weights", False),
        ("found = torch.max(output, 1)[1] + output.max(1).indices", True),
        ("print(epoch, output.mean().item(), float(output.std()), f'{output.max():.3f}')", True),
        ("bank[:10] = output[:10]", False),
        ("unknown(output)", False),
    ],
)
def test_outputs_that_are_read_in_full_precision(read: str, is_written: bool, tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(READ_AFTERWARDS.format(read=read))
    settings = config.Settings(tmp_path, select=("SPD101",), risk=Risk.NUMERIC)
    for amp in ("fp16", "bf16"):
        outcomes = stages.fix((path,), settings, Registry.load(), Options((2, 13), amp)).outcomes
        assert any(b"autocast(" in outcome.after for outcome in outcomes) == is_written


Release = tuple[int, int]

UNFUSED = """
import torch
import torch.nn as nn

model = nn.Linear(784, 10)
optimizer = torch.optim.OPTIMIZER
DEVICE
for epoch in range(10):
    for x, y in torch.utils.data.DataLoader(torch.load("images.pt")):
        loss = nn.functional.cross_entropy(model(MOVED), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
ADAM, ADAGRAD = "Adam(model.parameters())", "Adagrad(model.parameters())"
MOMENTUM_SGD = "SGD(model.parameters(), lr=0.1, momentum=0.9)"
MOVED_LATER = 'device = torch.device("cuda" if torch.cuda.is_available() else "cpu")\nmodel.to(device)'


@pytest.mark.parametrize(
    ("optimizer", "device", "moved", "release", "is_found", "is_written"),
    [
        (ADAM, "", "x", (2, 4), True, True),
        (ADAM, "", "x", (2, 3), False, False),
        (ADAM, "", "x", None, False, False),
        (ADAM, "from torch_xla.core import xla_model", "x", (2, 13), False, False),
        (ADAM, 'device = "mps" if torch.backends.mps.is_available() else "cpu"', "x", (2, 4), False, False),
        (ADAM, 'device = "xpu" if torch.xpu.is_available() else "cpu"', "x", (2, 13), False, False),
        (ADAGRAD, "", "x", (2, 11), False, False),
        (ADAGRAD, "", "x", (2, 12), True, True),
        (MOMENTUM_SGD, "", "x", (2, 13), False, False),
        (ADAM, MOVED_LATER, "x.to(device)", (2, 3), True, False),
        (ADAM, MOVED_LATER, "x.to(device)", (2, 4), True, True),
        (MOMENTUM_SGD, MOVED_LATER, "x.to(device)", (2, 4), True, True),
    ],
)
def test_fused_runs_on_the_cpu_since_torch_2_4(
    optimizer: str,
    device: str,
    moved: str,
    release: tuple[int, int] | None,
    is_found: bool,
    is_written: bool,
    tmp_path: Path,
) -> None:
    path = tmp_path / "train.py"
    path.write_text(UNFUSED.replace("OPTIMIZER", optimizer).replace("DEVICE", device).replace("MOVED", moved))
    settings = config.Settings(tmp_path, select=("SPD502",), risk=Risk.NUMERIC)
    found = Engine(settings, Registry.load(), options=Options(release)).check(path).diagnostics
    assert bool(found) is is_found
    assert [each.fix is not None and each.fix.applicable for each in found] == [is_written] * is_found
    outcomes = stages.fix((path,), settings, Registry.load(), Options(release)).outcomes
    assert ["fused=True" in each.after.decode() for each in outcomes] == [True] * is_written


LATE = """
import torch
from torch import nn
from torch.utils.data import DataLoader


def fit(net, loader, device="cuda"):
    optimizer = torch.optim.OPTIMIZER(net.parameters(), lr=1e-3)
    MOVED
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x.to(device)), y.to(device))
        loss.backward()
        optimizer.step()


fit(nn.Linear(4096, 4096), DataLoader(torch.load("rows.pt"), batch_size=64))
"""


@pytest.mark.parametrize(
    ("optimizer", "moved", "release", "since"),
    [
        ("Adam", "net.to(device)", (2, 1), "2.4"),
        ("AdamW", "net.cuda()", None, "2.4"),
        ("Adagrad", "net.cuda()", (2, 11), "2.12"),
    ],
)
def test_where_the_model_is_moved_later_the_advice_begins_with_that(
    optimizer: str, moved: str, release: Release | None, since: str, tmp_path: Path
) -> None:
    path = tmp_path / "train.py"
    path.write_text(LATE.replace("OPTIMIZER", optimizer).replace("MOVED", moved))
    settings = config.Settings(tmp_path, select=("SPD502",), risk=Risk.NUMERIC)
    (found,) = Engine(settings, Registry.load(), options=Options(release)).check(path).diagnostics
    assert found.fix is None
    assert found.advice.startswith("move the model to its device before the optimizer is made, and only then pass")
    assert f"before torch {since} it raises" in found.advice


ATTENDS = """
import math
import sys
import warnings

import torch
from torch import nn
from torch.nn import functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(50, 512)
        self.q, self.k, self.v = nn.Linear(512, 512), nn.Linear(512, 512), nn.Linear(512, 512)
        self.head = nn.Linear(512, 4)

    def forward(self, ids):
        x, pad = self.words(ids), (ids == 0)[:, None, :]
        scores = self.q(x) @ self.k(x).transpose(1, 2) / 23.0
        scores = scores.masked_fill(pad, float("-inf"))
        return self.head((scores.softmax(-1) @ self.v(x)).mean(1))


def main(loader):
    model = Net().cuda()
    optimizer = torch.optim.Adam(model.parameters())
    for ids, labels in loader:
        ids, labels = ids.cuda(), labels.cuda()
        logits = model(ids)
        loss = F.cross_entropy(logits, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
_FILL, _LOSS = 'scores.masked_fill(pad, float("-inf"))', "loss = F.cross_entropy(logits, labels)"
_NEAR = """p = torch.sigmoid(logits)
        near = torch.where(labels[:, None] == 1, p, 1 - p)
        loss = -torch.log(near).mean()"""
_BY_PARTS = """
        optimizer.step()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, "last.pt")
    parts = {"model": model, "optimizer": optimizer}
    for name, state in torch.load("last.pt").items():
        parts[name].load_state_dict(state)"""
BREAKS = {
    "a checkpoint that is loaded part by part": (
        "        optimizer.step()",
        _BY_PARTS.lstrip("\n"),
    ),
    "a probability that may round to 0": (
        _LOSS,
        _NEAR,
    ),
    "a search for anomalies": (
        "        logits = model(ids)",
        "        torch.autograd.set_detect_anomaly(True)\n        logits = model(ids)",
    ),
    "warnings that raise": (
        "        logits = model(ids)",
        "        warnings.simplefilter('error')\n        logits = model(ids)",
    ),
    "a state that is read": (
        "        optimizer.step()",
        "        optimizer.step()\n        print(optimizer.state[model.head.weight]['step'])",
    ),
    "an output that is given": (
        _LOSS,
        "loss = F.cross_entropy(logits, labels) + torch.mm(logits, logits.t(), out=table).mean()",
    ),
    "complex numbers": (_LOSS, "loss = F.cross_entropy(logits, labels) + torch.complex(logits, logits).abs().mean()"),
    "a complex parameter": (
        "self.head = nn.Linear(512, 4)",
        "self.head = nn.Linear(512, 4)\n        self.poles = nn.Parameter(torch.ones(4, dtype=torch.cfloat))",
    ),
    "a matrix by its own transpose": (_LOSS, "loss = F.cross_entropy(logits, labels) + (logits.T @ logits).mean()"),
    "its own sums of products": (
        _LOSS,
        "loss = F.cross_entropy(logits, labels) + torch.einsum('bi,bj->ij', logits, logits).mean()",
    ),
    "the least of float32": (_FILL, "scores.masked_fill(pad, torch.finfo(torch.float32).min)"),
    "a function of torch's that fills": (_FILL, "torch.masked_fill(scores, pad, -1e9)"),
    "a power of two": (_FILL, "scores.masked_fill(pad, float(-(2**32) + 1))"),
    "a value that pads": (_FILL, "F.pad(scores, (0, 1), value=-1e9)[..., :-1].masked_fill(pad, float('-inf'))"),
    "a wide bound": (_FILL, "scores.clamp(min=-1e9)"),
}


@pytest.mark.parametrize(("old", "new"), BREAKS.values(), ids=BREAKS.keys())
def test_what_float16_breaks_is_not_covered(old: str, new: str, tmp_path: Path) -> None:
    assert old in ATTENDS
    assert "autocast" in _rewritten(ATTENDS, tmp_path)
    assert "autocast" not in _rewritten(ATTENDS.replace(old, new), tmp_path)


def _rewritten(text: str, folder: Path) -> str:
    path = folder / "attends.py"
    path.write_text(text)
    settings = config.Settings(folder, select=("SPD101",), risk=Risk.NUMERIC)
    outcomes = stages.fix((path,), settings, Registry.load(), Options((2, 13), "fp16")).outcomes
    return outcomes[0].after.decode() if outcomes else text
