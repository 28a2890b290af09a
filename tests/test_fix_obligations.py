"""Fixes that a script's own habits forbid: each is written for the plain training, and only shown with the habit."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from speedlint.config import Settings
from speedlint.engine import Engine
from speedlint.registry import Registry
from speedlint.rule import Risk

REGISTRY = Registry.load()
STEP = """
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
"""
TRAIN = f"""
import contextlib
import gc

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    device = torch.device("cuda")
    model, criterion = nn.Sequential(nn.Linear(512, 2048), nn.ReLU(), nn.Linear(2048, 512)).to(device), nn.MSELoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(TensorDataset(torch.rand(4096, 512), torch.rand(4096, 512)), batch_size=64, pin_memory=True)
    total, kept = 0.0, []
    for x, y in loader:
        x, y = x.to(device), y.to(device){STEP}        total += loss.item()
    print(total / len(loader), kept)


if __name__ == "__main__":
    main()
"""
LIST = ("total += loss.item()", "kept.append(loss.item())")
COPY = """

@torch.no_grad()
def outputs(model, loader):
    model.eval()
    found = []
    for x, _ in loader:
        found.append(MADE.cpu())
    return torch.cat(found)
"""
NET = """

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(512, 512)
        self.state = torch.zeros(64, 512, device="cuda")

    def forward(self, x):
        return self.layer(x)
"""
ADAM = ("SGD(model.parameters(), lr=0.1)", "Adam(model.parameters(), lr=0.1)")
ARRAYS = COPY.replace("MADE.cpu()", "model(x.cuda()).cpu().numpy()").replace("torch.cat", "np.concatenate")
SCALED = """
class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.tensor(2e5))
        self.register_buffer("deviation", torch.tensor(1e5))

    def forward(self, x):
        return x * self.deviation + self.mean
"""
CASES = {
    "a sum": (
        "SPD301",
        (),
        ("from torch import nn", "from torch import nn\nfrom torch import *"),
        "may mean something else",
    ),
    "a complex sum": (
        "SPD301",
        ("total += loss.item()", "total += (model(x) - y).mean().item()"),
        ("torch.rand(4096, 512)),", "torch.rand(4096, 512, dtype=torch.complex64)),"),
        "complex",
    ),
    "a sum of counts": (
        "SPD301",
        ("total += loss.item()", "total += (y > 0).sum().item() * 2"),
        ("* 2", "* device.index"),
        "`device.index` may be no number",
    ),
    "a sum over replicas": (
        "SPD301",
        (),
        (
            "x, y = x.to(device), y.to(device)",
            "device = GPUS[len(kept) % torch.cuda.device_count()]\n        x, y = x.to(device), y.to(device)",
        ),
        "several GPUs",
    ),
    "copies of replicas' outputs": (
        "SPD302",
        ("def main", f"{NET}{COPY}\n\ndef main".replace("MADE", "model(x.to('cuda'))")),
        (
            "    for x, _ in loader:",
            "    for x, _ in loader:\n        model = REPLICAS[len(found) % torch.cuda.device_count()]",
        ),
        "several GPUs",
    ),
    "autocast and a pass without gradients": (
        "SPD101",
        (),
        (
            "loss = criterion(model(x), y)",
            "z = model(x)\n        with torch.no_grad():\n            y = y + model(x)\n        loss = criterion(z, y)",
        ),
        "`model(x)` runs without gradients in between",
    ),
    "autocast and a pass without gradients in a function": (
        "SPD101",
        ("def main", "@torch.no_grad()\ndef guessed(net, x):\n    return net(x)\n\n\ndef main"),
        (
            "loss = criterion(model(x), y)",
            "made = model(x)\n        y = y + guessed(model, x)\n        loss = criterion(made, y)",
        ),
        "`net(x)` runs without gradients in between",
    ),
    "autocast and a part of the network without gradients": (
        "SPD101",
        (),
        (
            "loss = criterion(model(x), y)",
            "z = model(x)\n        with torch.no_grad():\n            y = model[0](x)\n        loss = criterion(z, y)",
        ),
        "runs without gradients in between",
    ),
    "autocast and a switch of gradients": (
        "SPD101",
        (),
        (
            "loss = criterion(model(x), y)",
            "z = model(x)\n        torch.set_grad_enabled(True)\n        loss = criterion(z, y)",
        ),
        "gradients are switched by a statement",
    ),
    "autocast and an amount of any size": (
        "SPD101",
        (),
        ("nn.Linear(2048, 512))", "nn.Linear(2048, 512), nn.Linear(512, 1))"),
        "may lie beyond 65504",
    ),
    "autocast and the rest of a probability": (
        "SPD101",
        (),
        ("loss = criterion(model(x), y)", "loss = -torch.log(1 - model(x).sigmoid()).mean()"),
        "where a probability rounds to 1",
    ),
    "a list of a tensor that is changed": (
        "SPD301",
        ("total += loss.item()", "shown = loss.detach() * 2\n        kept.append(shown.item())"),
        ("kept.append(shown.item())", "kept.append(shown.item())\n        torch.distributed.all_reduce(shown)"),
        "may be one tensor",
    ),
    "a list of weights": (
        "SPD301",
        ("total += loss.item()", "kept.append(loss.item())"),
        ("loss.item()", "next(model.parameters())[0, 0].item()"),
        "may be one tensor",
    ),
    "a list": ("SPD301", LIST, ("total, kept = 0.0, []", "total = 0.0\n    main.kept = kept = []"), "second name"),
    "copies of a module's state": (
        "SPD302",
        ("def main", f"{NET}{COPY}\n\ndef main".replace("MADE", "model(x.cuda())")),
        ("return self.layer(x)", "self.state.copy_(self.layer(x))\n        return self.state"),
        "one tensor that every turn writes anew",
    ),
    "copies of one buffer": (
        "SPD302",
        ("def main", f"{NET}{COPY}\n\ndef main".replace("MADE", "torch.matmul(x.cuda(), x.cuda().t())")),
        ("x.cuda().t()).cpu", "x.cuda().t(), out=buffer).cpu"),
        "one tensor that every turn writes anew",
    ),
    "collected garbage": (
        "SPD307",
        ("total += loss.item()", "gc.collect()"),
        ("import gc\n", "import gc\nimport weakref\n"),
        None,
    ),
    "anomaly detection": (
        "SPD406",
        ("    total, kept", "    torch.autograd.set_detect_anomaly(True)\n    total, kept"),
        (
            "    for x, y in loader:\n        x, y = x.to(device), y.to(device)",
            "    for x, y in loader:\n      x, y = x.to(device), y.to(device)\n"
            "      with contextlib.suppress(RuntimeError):",
        ),
        "goes on after an error",
    ),
    "anomaly detection that the script asks about": (
        "SPD406",
        ("    total, kept", "    torch.autograd.set_detect_anomaly(True)\n    total, kept"),
        ("len(loader), kept)", "len(loader), kept, torch.is_anomaly_enabled())"),
        "asks whether it is on",
    ),
    "steps that are watched beside a scaler": (
        "SPD502",
        ("SGD(model.parameters(), lr=0.1)", "Adam(model.parameters(), lr=0.1)"),
        (
            "    total, kept",
            "    scaler = torch.amp.GradScaler()\n    optimizer.register_step_post_hook(print)\n    total, kept",
        ),
        "see scaled gradients",
    ),
    "anomaly detection within a manager that ends errors": (
        "SPD406",
        ("    total, kept", "    torch.autograd.set_detect_anomaly(True)\n    total, kept"),
        (
            "    for x, y in loader:\n        x, y = x.to(device), y.to(device)",
            "    class Skipping:\n        def __enter__(self):\n            return self\n\n"
            "        def __exit__(self, kind, *rest):\n            return kind is RuntimeError\n\n"
            "    skipping = Skipping()\n"
            "    for x, y in loader:\n      x, y = x.to(device), y.to(device)\n      with skipping:",
        ),
        "goes on after an error",
    ),
    "anomaly detection within a generator that ends errors": (
        "SPD406",
        ("    total, kept", "    torch.autograd.set_detect_anomaly(True)\n    total, kept"),
        (
            "    for x, y in loader:\n        x, y = x.to(device), y.to(device)",
            "    @contextlib.contextmanager\n    def skipping():\n        try:\n            yield\n"
            "        except RuntimeError:\n            print('skipped')\n\n"
            "    for x, y in loader:\n      x, y = x.to(device), y.to(device)\n      with skipping():",
        ),
        "goes on after an error",
    ),
    "anomaly detection in a function that is tried": (
        "SPD406",
        ("    total, kept", "    torch.autograd.set_detect_anomaly(True)\n    total, kept"),
        (
            "\n\ndef main",
            "\n\ndef skipping(run):\n    def tried(*args):\n        try:\n            return run(*args)\n"
            "        except RuntimeError:\n            return None\n\n    return tried\n\n\n@skipping\ndef main",
        ),
        "goes on after an error",
    ),
    "gradients that a scaler counts": (
        "SPD501",
        ("zero_grad()", "zero_grad(set_to_none=False)"),
        (
            "        optimizer.step()",
            "        other.zero_grad()\n        scaler = torch.amp.GradScaler()\n        optimizer.step()",
        ),
        "GradScaler",
    ),
    "a retained graph": (
        "SPD508",
        ("loss.backward()", "loss.backward(retain_graph=True)"),
        ("loss = criterion(model(x), y)", "loss = criterion(model(x), y)\n        model.centre.add_(loss)"),
        None,
    ),
    "pinned batches of a class that collates": (
        "SPD202",
        (", pin_memory=True", ", collate_fn=join"),
        ("\n\ndef main", "\n\nclass Pair(dict):\n    pass\n\n\njoin = Pair\n\n\ndef main"),
        "pinning makes a batch that is a `Pair` anew",
    ),
    "pinned batches that hold sparse tensors": (
        "SPD202",
        (", pin_memory=True", ", collate_fn=join"),
        ("\n\ndef main", "\n\ndef join(items):\n    return torch.stack(items).to_sparse()\n\n\ndef main"),
        "sparse tensors",
    ),
    "pinned batches of an object that collates": (
        "SPD202",
        (", pin_memory=True", ", collate_fn=join"),
        (
            "\n\ndef main",
            "\n\nclass Pair(dict):\n    pass\n\n\nclass Join:\n    def __call__(self, rows):\n        return Pair(rows)\n"
            "\n\njoin = Join()\n\n\ndef main",
        ),
        "pinning makes a batch that is a `Pair` anew",
    ),
    "parameters of two modules that are tied": (
        "SPD502",
        ("SGD(model.parameters(), lr=0.1)", "Adam([*model.parameters(), *criterion.parameters()], lr=0.1)"),
        ("    loader = DataLoader", "    model[0].weight = model[2].weight\n    loader = DataLoader"),
        "may share parameters, whose steps the fused form counts twice",
    ),
    "parameters of a module and of a part of it": (
        "SPD502",
        ("SGD(model.parameters(), lr=0.1)", "Adam([*model.parameters(), *criterion.parameters()], lr=0.1)"),
        ("*criterion.parameters()]", "*model.head.parameters()]"),
        "may share parameters, whose steps the fused form counts twice",
    ),
    "pinned tensors of a checkpoint": (
        "SPD202",
        (", pin_memory=True", ""),
        ("TensorDataset(torch.rand(4096, 512),", "TensorDataset(torch.load('rows.pt'),"),
        "puts tensors where they were saved, which may be a GPU",
    ),
    "pinned tensors of a checkpoint that a class reads": (
        "SPD202",
        (", pin_memory=True", ""),
        (
            "TensorDataset(torch.rand(4096, 512), torch.rand(4096, 512))",
            "torch.utils.data.ConcatDataset([type('Rows', (), dict(rows=torch.load('rows.pt')))])",
        ),
        "puts tensors where they were saved, which may be a GPU",
    ),
    "pinned tuples that are asked for": (
        "SPD202",
        (", pin_memory=True", ", collate_fn=join"),
        (
            "\n\ndef main",
            "\n\ndef join(rows):\n    return rows[0], rows[1]\n\n\n"
            "def is_pair(x):\n    return isinstance(x, tuple)\n\n\ndef main",
        ),
        "pinning makes a batch that is a `tuple` anew",
    ),
    "pinned batches": (
        "SPD202",
        (", pin_memory=True", ", collate_fn=join"),
        ("\n\ndef main", "\n\nclass Pair(tuple):\n    pass\n\n\ndef join(rows):\n    return Pair(rows)\n\n\ndef main"),
        "pinning makes a batch that is a `Pair` anew",
    ),
    "pinned batches with an attribute": (
        "SPD202",
        (", pin_memory=True", ", collate_fn=join"),
        (
            "\n\ndef main",
            "\n\ndef join(rows):\n    x = torch.stack([x for x, _ in rows])\n    x.rows = len(rows)\n    return x, x\n"
            "\n\ndef main",
        ),
        "`x.rows` is an attribute of a tensor",
    ),
    "pinned batches that ask for gradients": (
        "SPD202",
        (", pin_memory=True", ", collate_fn=join"),
        (
            "\n\ndef main",
            "\n\ndef join(rows):\n    x = torch.stack([x for x, _ in rows])\n    return x.requires_grad_(), x\n\n\ndef main",
        ),
        "makes a leaf, which the pinned copy is not",
    ),
    "pinned batches that share memory": (
        "SPD202",
        (
            ", pin_memory=True)\n",
            ", collate_fn=lambda rows: (rows[0][0], rows[0][1]))\n",
        ),
        ("        x, y = x.to(device)", "        y[0] = 1\n        x, y = x.to(device)"),
        "`y[0]` may change what else shares the batch's memory",
    ),
    "a scaler for each client of a round": (
        "SPD101",
        (),
        ("    main()\n", "    for client in range(9):\n        main()\n"),
        "each new scaler skips steps at first",
    ),
    "a scaler for each call that a comprehension makes": (
        "SPD101",
        (),
        ("    main()\n", "    print([main() for _ in range(9)])\n"),
        "each new scaler skips steps at first",
    ),
    "a scaler for each round of a function between": (
        "SPD101",
        (),
        ("    main()\n", "    def once():\n        main()\n\n    while True:\n        once()\n"),
        "each new scaler skips steps at first",
    ),
    "autocast and a factor of any size": (
        "SPD101",
        (),
        ("criterion(model(x), y)", "criterion(torch.sigmoid(model(x)) * 500_000, y)"),
        "may lie beyond 65504",
    ),
    "autocast and a mask of its own dtype": (
        "SPD101",
        (),
        (
            "loss = criterion(model(x), y)",
            "scores = model(x)\n        loss = criterion(scores + (1 - y.type_as(scores)) * -1e9, y)",
        ),
        "may lie beyond 65504",
    ),
    "autocast and a probability next to one": (
        "SPD101",
        (),
        ("criterion(model(x), y)", "-torch.log1p(-torch.sigmoid(model(x))).mean()"),
        "where a probability rounds to 1",
    ),
    "autocast and a diagonal that is filled": (
        "SPD101",
        (),
        (
            "loss = criterion(model(x), y)",
            "scores = model(x)[:, :64]\n        scores.fill_diagonal_(-9e15)\n        loss = scores.logsumexp(1).mean()",
        ),
        "not known to fit in float16",
    ),
    "autocast and entries that are set": (
        "SPD101",
        (),
        (
            "loss = criterion(model(x), y)",
            "scores = model(x)\n        scores[0, 0] = -1e9\n        loss = criterion(scores, y)",
        ),
        "entries",
    ),
    "autocast and a dtype that is asked for": (
        "SPD101",
        (),
        (
            "        loss = criterion(model(x), y)",
            "        out = model(x)\n        assert out.dtype == torch.float32\n        loss = criterion(out, y)",
        ),
        "raises in half precision",
    ),
    "autocast and numpy's linear algebra": (
        "SPD101",
        (),
        (
            "criterion(model(x), y)",
            "criterion(model(x), y) * float(np.linalg.norm(model(x).detach().cpu().numpy()))",
        ),
        "takes no arrays in half precision",
    ),
    "autocast and inputs of any size": (
        "SPD101",
        (),
        ("torch.rand(4096, 512), torch.rand(4096, 512)", "torch.load('pressures'), torch.load('heights')"),
        "its inputs, which nothing scales",
    ),
    "autocast and outputs in units of the data": (
        "SPD101",
        ("def main", f"{SCALED}\n\ndef main"),
        ("nn.Linear(2048, 512)).to", "nn.Linear(2048, 512), Scaled()).to"),
        "may lie beyond 65504",
    ),
    "fused steps of a loss that joins later": (
        "SPD502",
        (", lr=0.1)", ", lr=0.1, momentum=0.9)"),
        ("loss = criterion(model(x), y)", "loss = sum(criterion(model(x), y) for at in (0, 2) if len(kept) >= at)"),
        "gets its first gradient in a later step",
    ),
    "fused steps whose momentum is taken away": (
        "SPD502",
        (", lr=0.1)", ", lr=0.1, momentum=0.9)"),
        ("    print(total", "    optimizer.state.clear()\n    print(total"),
        "gets its first gradient in a later step",
    ),
    "fused steps of gradients that are set": (
        "SPD502",
        ADAM,
        ("        optimizer.step()", "        model[0].weight.grad = flat[:9].view(3, 3)\n        optimizer.step()"),
        "is set by hand, and may lie otherwise in memory",
    ),
    "fused steps of some columns": (
        "SPD502",
        ADAM,
        (
            "    optimizer = ",
            "    model[0].weight = nn.Parameter(torch.rand(2048, 1024, device='cuda')[:, :512])\n    optimizer = ",
        ),
        "may have gaps in memory",
    ),
    "fused steps of embeddings by options": (
        "SPD502",
        ADAM,
        ("    optimizer = ", "    model.rows = nn.Embedding(9, 9, **dict(sparse=True)).cuda()\n    optimizer = "),
        None,
    ),
    "fused steps of a state that is loaded beside a scaler": (
        "SPD502",
        ADAM,
        (
            "    total, kept",
            "    scaler = torch.amp.GradScaler()\n    optimizer.load_state_dict(torch.load('last.pt'))\n    total, kept",
        ),
        "saved without it turns it off",
    ),
    "autocast and a turn that is left": (
        "SPD101",
        (),
        (
            "        loss.backward()\n",
            "        loss.backward()\n        if not torch.isfinite(loss):\n            continue\n",
        ),
        "would leave the loss scaler as it is",
    ),
    "anomaly detection and what Python does with errors": (
        "SPD406",
        ("    total, kept", "    torch.autograd.set_detect_anomaly(True)\n    total, kept"),
        ("import gc\n", "import gc\nimport sys\n\nsys.excepthook = print\n"),
        "goes on after an error",
    ),
    "a sum of an object of the program's own": (
        "SPD301",
        (),
        ("\n\ndef main", "\n\nclass Parts(dict):\n    def item(self):\n        return 1.0\n\n\ndef main"),
        "has an `item` too",
    ),
    "copies of turned outputs": (
        "SPD302",
        ("def main", f"{NET}{ARRAYS}\n\ndef main"),
        ("model(x.cuda()).cpu()", "model(x.cuda()).t().cpu()"),
        "keeps the order of transposed arrays",
    ),
    "copies that are resized": (
        "SPD302",
        ("def main", f"{NET}{ARRAYS}\n\ndef main"),
        ("return np.concatenate(found)", "rows = np.concatenate(found)\n    rows.resize(9)\n    return rows"),
        "may resize the array",
    ),
    "copies and an error that is caught": (
        "SPD302",
        ("def main", f"{NET}{ARRAYS}\n\ndef main"),
        (
            "    return np.concatenate(found)",
            "    try:\n        return np.concatenate(found)\n    except ValueError:\n        return np.zeros((0, 512))",
        ),
        "may catch NumPy's error",
    ),
    "autocast and gradients in one buffer": (
        "SPD101",
        (),
        (
            "    total, kept",
            "    flat = torch.zeros(9)\n    for p in model.parameters():\n        p.grad = flat[:1]\n    total, kept",
        ),
        "gradients are kept in `flat[:1]`",
    ),
    "autocast and gradients by name": (
        "SPD101",
        (),
        (
            "        optimizer.step()",
            "        getattr(model[0].weight, 'grad').clamp_(-1, 1)\n        optimizer.step()",
        ),
        "works on the gradients",
    ),
    "autocast and a library that clips": (
        "SPD101",
        (),
        (
            "        optimizer.step()",
            "        import timm\n        timm.utils.dispatch_clip_grad(model.parameters(), 0.1)\n        optimizer.step()",
        ),
        "`timm.utils.dispatch_clip_grad` works on the gradients",
    ),
    "autocast and an average in place": (
        "SPD101",
        (),
        ("criterion(model(x), y)", "criterion(torch.zeros_like(y).lerp_(model(x), 0.1), y)"),
        "`lerp_` takes tensors of one dtype",
    ),
    "autocast and rows that are scattered": (
        "SPD101",
        (),
        ("criterion(model(x), y)", "criterion(torch.zeros_like(y).scatter_(1, torch.arange(64), model(x)), y)"),
        "`scatter_` takes tensors of one dtype",
    ),
    "autocast with hooks": (
        "SPD101",
        (),
        ("    total, kept", "    model[0].weight.register_hook(lambda grad: grad.clamp(-1, 1))\n    total, kept"),
        "hooks on gradients",
    ),
    "autocast and rows of one dtype": (
        "SPD101",
        (),
        ("criterion(model(x), y)", "criterion(torch.zeros_like(y).index_add_(0, torch.arange(64), model(x)), y)"),
        "`index_add_` takes tensors of one dtype",
    ),
    "losses whose graph is asked for": (
        "SPD504",
        ("total += loss.item()", "kept.append(loss)"),
        ("print(total / len(loader), kept)", "print(total / len(loader), kept[-1].grad_fn is None)"),
        None,
    ),
    "a scaler under clipped gradients": (
        "SPD107",
        (
            f"    total, kept = 0.0, []\n    for x, y in loader:\n        x, y = x.to(device), y.to(device){STEP}",
            """    total, kept = 0.0, []
    scaler = torch.amp.GradScaler("cuda")
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = criterion(model(x), y)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
""",
        ),
        ("        scaler.unscale_(optimizer)\n", ""),
        "clipped while they are scaled",
    ),
    "autocast and outputs gathered in a list": (
        "SPD101",
        (),
        (
            "loss = criterion(model(x), y)",
            "parts = []\n        parts.append(model(x))\n        out = torch.cat(parts)\n        loss = criterion(out, y)\n"
            "        kept.append(out.detach().cpu().numpy())",
        ),
        "in half precision",
    ),
    "fused steps of complex numbers": (
        "SPD502",
        ("SGD(model.parameters(), lr=0.1)", "Adam(model.parameters())"),
        ("nn.Linear(512, 2048)", "nn.Linear(512, 2048, dtype=torch.complex64)"),
        "complex",
    ),
    "fused steps of what a Fourier transform gives": (
        "SPD502",
        ("SGD(model.parameters(), lr=0.1)", "Adam(model.parameters())"),
        ("optimizer = ", "model.filter = nn.Parameter(torch.fft.rfft(torch.rand(64)))\n    optimizer = "),
        "complex",
    ),
}


@pytest.mark.parametrize(("code", "change", "habit", "why"), CASES.values(), ids=CASES.keys())
def test_a_habit_forbids_a_fix(
    code: str, change: tuple[str, str] | tuple[()], habit: tuple[str, str], why: str | None, tmp_path: Path
) -> None:
    plain = TRAIN.replace(*change) if change else TRAIN
    assert habit[0] in plain
    written, _ = _found(tmp_path / "plain", plain, code)
    assert written
    written, advice = _found(tmp_path / "habit", plain.replace(*habit), code)
    assert not written
    assert why is None or why in advice


def _in_epochs(text: str) -> str:
    """The training with three epochs, and the outputs of another network after each."""
    start, end = text.index("    for x, y in loader:\n        x, y ="), text.index("    print(total")
    shown = "        print(outputs(Net().cuda(), loader).shape)\n"
    return f"{text[:start]}    for epoch in range(3):\n{textwrap.indent(text[start:end], '    ')}{shown}{text[end:]}"


def _found(folder: Path, text: str, code: str) -> tuple[bool, str]:
    folder.mkdir()
    text = _in_epochs(text) if code == "SPD302" else text
    (folder / "train.py").write_text(text)
    settings = Settings(folder, select=(code,), torch=(2, 13))
    report = Engine(settings, REGISTRY).check(folder / "train.py")
    assert not report.problems
    return any(each.fix is not None and each.fix.applicable for each in report.diagnostics), "; ".join(
        each.advice for each in report.diagnostics
    )


ALIKE = """
def alike(rows, wanted):
    {check}
    return rows.shape == wanted.shape


def main"""


@pytest.mark.parametrize(
    ("check", "given", "is_written"),
    [
        ("if not rows.type() == wanted.type():\n        raise ValueError('dtypes differ')", "rows", False),
        ("if rows.dtype != wanted.dtype or not len(rows):\n        raise ValueError('dtypes differ')", "rows[0]", False),
        ("assert rows.dtype == wanted.dtype", "rows.detach()", False),
        ("assert rows.dtype == wanted.dtype", "rows.float()", True),
        ("if rows.dtype != wanted.dtype:\n        wanted = wanted.to(rows.dtype)", "rows", True),
        ("assert rows.dtype == torch.get_default_dtype() or wanted.ndim == 2", "rows", True),
    ],
)
def test_what_raises_where_dtypes_differ_forbids_autocast(check: str, given: str, is_written: bool, tmp_path: Path) -> None:
    step = f"rows = model(x)\n        loss = criterion(rows, y)\n        alike({given}, y)"
    text = TRAIN.replace("loss = criterion(model(x), y)", step).replace("def main", ALIKE.format(check=check))
    written, advice = _found(tmp_path / "alike", text, "SPD101")
    assert written is is_written
    assert ("is in half precision; hand it `.float()` outputs" in advice) is not is_written


def test_a_scaler_is_called_what_nothing_else_is(tmp_path: Path) -> None:
    for other, name in (("", "scaler"), ("saved = {'scaler': 1}\n", "grad_scaler")):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "train.py").write_text(TRAIN + other)
        settings = Settings(folder, select=("SPD101",), torch=(2, 13))
        (found,) = Engine(settings, REGISTRY).check(folder / "train.py").diagnostics
        assert found.fix is not None
        assert any(f"\n    {name} = torch.amp.GradScaler" in f"\n{edit.text}" for edit in found.fix.edits)


SHARED = """
import argparse

import torch
from torch.utils.data import DataLoader, Dataset


class Rows(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        return torch.stack([torch.rand(4).cumsum(0) for _ in range(9)])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=0)
    args = parser.parse_args()
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(Rows(), batch_size=8, num_workers=args.workers)
    for epoch in range(3):
        for x in loader:
            loss = model(x).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    print(args.workers > 0)


if __name__ == "__main__":
    main()
"""


def test_an_option_that_says_more_than_workers_keeps_its_default(tmp_path: Path) -> None:
    assert _found(tmp_path / "alone", SHARED, "SPD201")[0]
    written, advice = _found(tmp_path / "shared", SHARED.replace("range(3)", "range(args.workers + 1)"), "SPD201")
    assert not written
    assert "`workers` is also read on line 23" in advice


def test_a_sum_of_numbers_of_one_byte_is_made_of_fractions(tmp_path: Path) -> None:
    """``uint8`` begins again at zero where Python's ``int`` goes on."""
    brightest = TRAIN.replace("total += loss.item()", "total += x.max().item()").replace(
        "total, kept = 0.0", "total, kept = 0"
    )
    written = {}
    for name, text in (("floats", brightest), ("bytes", brightest.replace("4096, 512), t", "4096, 512).byte(), t", 1))):
        assert text != TRAIN
        folder = tmp_path / name
        folder.mkdir()
        (folder / "train.py").write_text(text)
        found = Engine(Settings(folder, select=("SPD301",), torch=(2, 13)), REGISTRY).check(folder / "train.py")
        written[name] = {edit.text for each in found.diagnostics if each.fix is not None for edit in each.fix.edits}
    assert "detach" in written["floats"]
    assert "detach().float" in written["bytes"]


ENCODER = """
import torch
from torch import nn


class Gated(nn.Linear):
    def forward(self, x):
        return super().forward(x) * torch.sigmoid(x.mean())


class Layer(nn.TransformerEncoderLayer):
    def __init__(self, *args, **rest):
        super().__init__(*args, **rest)
        self.scale = nn.Parameter(torch.ones(1))
        # made

    def scaled(self, x):
        return x * self.scale


def shifted(x):
    return x + 1


class Tempered(nn.Module):
    def forward(self, x):
        return x / 2 if x.requires_grad else x


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(99, 32)
        self.block = nn.TransformerEncoderLayer(32, 4, batch_first=True)
        self.body = nn.TransformerEncoder(self.block, 2)
        self.look = nn.MultiheadAttention(32, 4, batch_first=True)
        self.last = nn.Linear(32, 2)

    def forward(self, words, mask=None):
        x = shifted(self.words(words))
        x = self.body(x, src_key_padding_mask=mask)
        x, _ = self.look(x, x, x)
        return self.last(x[:, 0])


def validate(model, loader):
    model.eval()
    right = 0
    for words, kinds in loader:
        right += (model(words).argmax(1) == kinds).sum().item()
    return right


def main(loader, held_out, options):
    model = Reader()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(9):
        for words, kinds in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(words), kinds).backward()
            optimizer.step()
        print(validate(model, held_out))
"""
SOUND = {
    "no mask": ("def validate", "def validate"),
    "a mask that is None": ("model(words).arg", "model(words, mask=None).arg"),
    "a method of its own": ("nn.TransformerEncoderLayer(32", "Layer(32"),
    "a part of another network": ("model = Reader()", "model = Reader()\n    model.last = Gated(32, 2)"),
    "sequences first": (", batch_first=True", ", batch_first=False"),
    "options by name": ("model = Reader()", "model = Reader()\n    for name in 'ab':\n        setattr(options, name, 1)"),
}
FUSED = {
    "a mask": ("model(words).arg", "model(words, mask=words == 0).arg", "where `mask` hides positions"),
    "a mask by its place": ("self.look(x, x, x)", "self.look(x, x, x, words == 0)", "where `words == 0` hides positions"),
    "a layer put in": ("model = Reader()", "model = Reader()\n    model.block.linear1 = Gated(32, 2048)", "line 56"),
    "layers put in by name": (
        "model = Reader()",
        "model = Reader()\n    for part in model.modules():\n        setattr(part, options.name, Gated(32, 32))",
        "line 57",
    ),
    "layers registered": (
        "model = Reader()",
        "model = Reader()\n    model.block.add_module('linear2', Gated(2048, 32))",
        "line 56",
    ),
    "layers in the table": (
        "model = Reader()",
        "model = Reader()\n    for part in model.modules():\n        part._modules[options.name] = Gated(32, 32)",
        "line 57",
    ),
    "a method that takes the place of torch's": ("def scaled(self, x)", "def _ff_block(self, x)", "`_ff_block`"),
    "a layer of a derived one": ("# made", "self.linear1 = Gated(32, 2048)", "`self.linear1`"),
    "a helper that asks for a graph": (
        "return x + 1",
        "return x if x.grad_fn is None else x + 1",
        "`x.grad_fn` in `shifted` asks",
    ),
    "a part that asks for a graph": (
        "self.last = nn.Linear(32, 2)",
        "self.last = nn.Sequential(Tempered(), nn.Linear(32, 2))",
        "`x.requires_grad` in `forward` asks",
    ),
}


@pytest.mark.parametrize(("old", "new"), SOUND.values(), ids=SOUND.keys())
def test_encoders_are_run_without_gradients(old: str, new: str, tmp_path: Path) -> None:
    assert old in ENCODER
    written, _ = _found(tmp_path / "sound", ENCODER.replace(old, new), "SPD505")
    assert written


@pytest.mark.parametrize(("old", "new", "why"), FUSED.values(), ids=FUSED.keys())
def test_fused_encoders_give_something_else(old: str, new: str, why: str, tmp_path: Path) -> None:
    assert old in ENCODER
    written, advice = _found(tmp_path / "fused", ENCODER.replace(old, new), "SPD505")
    assert not written
    assert why in advice


BY_ROW = """
import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Centred(nn.Module):
    def forward(self, x):
        return x - x.mean()


class Deep(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList()
        self.layers.append(nn.Linear(8, 8))

    def forward(self, x):
        return self.layers[0](x)


class Scorer(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 8), nn.ReLU())
        self.head = nn.Linear(8, 2)

    def forward(self, x):
        return self.head(self.body(x))


def drawn(part):
    if isinstance(part, nn.Linear):
        nn.init.xavier_uniform_(part.weight)
        part.bias.data.fill_(0.01)


def main():
    loader = DataLoader(TensorDataset(torch.rand(512, 8), torch.arange(512) % 2), batch_size=64)
    options = argparse.ArgumentParser().parse_args()
    model, extra = Scorer(), [nn.ReLU()]
    # CHANGED
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        rows = []
        for i in range(x.size(0)):
            rows.append(model(x[i].unsqueeze(0)))
        loss = nn.functional.cross_entropy(torch.cat(rows), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


main()
"""
SAME_LAYERS = {
    "nothing": "pass",
    "first weights": "model.apply(drawn)",
    "weights of a file": "model.load_state_dict(torch.load('model.pt'))",
    "frozen weights": "for p in model.body.parameters():\n    p.requires_grad = False",
    "an option": "setattr(options, options.key, options.value)\noptions.best = 0.0",
    "a list of layers": "extra.append(nn.Softmax(0))\nextra += [nn.Tanh()]\nextra[0] = Centred()",
    "an attribute of the class's own": "model.best, model.name = 0.0, 'scorer'",
    "a normalised layer of another network": "other = nn.utils.spectral_norm(nn.Linear(2, 2))",
}
OTHER_LAYERS = {
    "setattr": "for name, part in model.named_children():\n    setattr(model, name, nn.Sequential(Centred(), part))",
    "an attribute": "model.head = Centred()",
    "one of several attributes": "model.head, left = Centred(), 0",
    "insert": "model.body.insert(0, nn.Softmax(dim=0))",
    "append": "model.body.append(Centred())",
    "append to what is found by name": "getattr(model, 'body').append(Centred())",
    "extend": "model.body.extend([Centred()])",
    "+=": "model.body += nn.Sequential(Centred())",
    "an entry": "model.body[1] = Centred()",
    "add_module": "model.body.add_module('last', Centred())",
    "register_module": "model.body.register_module('last', Centred())",
    "_modules": "model._modules['head'] = Centred()",
    "_modules as a whole": "model.body._modules.update(last=Centred())",
    "apply": "model.apply(nn.utils.parametrizations.spectral_norm)",
    "a function that apply runs": "def put(part):\n    part.forward = lambda x: x - x.mean()\nmodel.apply(put)",
    "forward": "model.forward = lambda x: model.body(x - x.mean())",
    "forward of a class": "Scorer.forward = lambda self, x: self.body(x - x.mean())",
    "a class of torch's": "nn.ReLU.forward = lambda self, x: x - x.mean()",
    "spectral_norm": "nn.utils.spectral_norm(model.head)",
    "spectral_norm of each part": "for _, part in model.body.named_children():\n    nn.utils.spectral_norm(part)",
    "an adapter": "import peft\nmodel = peft.inject_adapter_in_model(options.config, model)",
}


def _changed(lines: str) -> str:
    return BY_ROW.replace("    # CHANGED", textwrap.indent(lines, "    "))


@pytest.mark.parametrize("lines", SAME_LAYERS.values(), ids=SAME_LAYERS.keys())
def test_rows_go_together_through_a_network_as_it_is_made(lines: str, tmp_path: Path) -> None:
    written, _ = _found(tmp_path / "same", _changed(lines), "SPD310")
    assert written


@pytest.mark.parametrize("lines", OTHER_LAYERS.values(), ids=OTHER_LAYERS.keys())
def test_rows_stay_apart_where_a_network_is_changed(lines: str, tmp_path: Path) -> None:
    written, advice = _found(tmp_path / "other", _changed(lines), "SPD310")
    assert not written
    assert "not rewritten" in advice


ZEROED = TRAIN.replace("zero_grad()", "zero_grad(set_to_none=False)")
NO_MOMENTUM = {
    "rates": "for group in optimizer.param_groups:\n    group['lr'] = group['initial_lr'] * 0.1",
    "the first rate": "optimizer.param_groups[0]['lr'] *= 0.5\nprint(optimizer.param_groups[0]['momentum'])",
    "numbered rates": "for i, group in enumerate(optimizer.param_groups):\n    group['lr'] = 0.1**i",
    "a group of another rate": "optimizer.add_param_group({'params': criterion.parameters(), 'lr': 0.01})",
    "weights of a file": "model.load_state_dict(torch.load('model.pt'))",
    "rates in cycles": "torch.optim.lr_scheduler.CyclicLR(optimizer, 0.01, 0.1, cycle_momentum=False)",
}
MOMENTUM = {
    "in each group": "for group in optimizer.param_groups:\n    group['momentum'] = 0.9",
    "in numbered groups": "for _, group in enumerate(optimizer.param_groups):\n    group['weight_decay'] = 1e-4",
    "in the first group": "optimizer.param_groups[0].update(momentum=0.9)",
    "under a name": "key = 'momentum' if kept else 'lr'\noptimizer.param_groups[0][key] = 0.9",
    "by another name": "groups = optimizer.param_groups\ngroups[0]['momentum'] = 0.9",
    "in a group that is added": "optimizer.add_param_group({'params': criterion.parameters(), 'weight_decay': 0.1})",
    "of a file": "optimizer.load_state_dict(torch.load('optimizer.pt'))",
    "in cycles": "torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, 900)",
}


def _prepared(lines: str) -> str:
    return ZEROED.replace("    for x, y in loader:\n", f"{textwrap.indent(lines, '    ')}\n    for x, y in loader:\n")


def _risk(folder: Path, lines: str) -> Risk:
    (folder / "train.py").write_text(_prepared(lines))
    report = Engine(Settings(folder, select=("SPD501",), torch=(2, 13)), REGISTRY).check(folder / "train.py")
    (found,) = report.diagnostics
    assert found.fix is not None
    return found.fix.risk


@pytest.mark.parametrize("lines", NO_MOMENTUM.values(), ids=NO_MOMENTUM.keys())
def test_zeros_change_nothing_without_momentum(lines: str, tmp_path: Path) -> None:
    assert _risk(tmp_path, lines) is Risk.EXACT


@pytest.mark.parametrize("lines", MOMENTUM.values(), ids=MOMENTUM.keys())
def test_zeros_count_where_momentum_comes_later(lines: str, tmp_path: Path) -> None:
    assert _risk(tmp_path, lines) is Risk.BEHAVIOR


ATTENTION = """
import torch
from torch import nn


class Looking(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(256, 8, batch_first=True)

    def forward(self, x, hidden):
        seen, _ = self.attention(x, x, x, key_padding_mask=hidden)
        return RESULT
"""


@pytest.mark.parametrize(("result", "is_written"), [("x + seen", True), ("x + seen.nan_to_num(0.5)", False)])
def test_what_may_be_no_number_keeps_its_attention(result: str, is_written: bool, tmp_path: Path) -> None:
    path = tmp_path / "net.py"
    path.write_text(ATTENTION.replace("RESULT", result))
    report = Engine(Settings(root=tmp_path, select=("SPD606",)), REGISTRY).check(path)
    assert [bool(each.fix) for each in report.diagnostics] == [is_written]


KEEPING = """
def centred(model, kept={}):
    if "weight" not in kept:
        kept["weight"] = GIVEN
    return 1e-4 * kept["weight"]


def main"""


@pytest.mark.parametrize(("given", "is_found"), [("2.0", True), ("(model[0].weight * 2).sum()", False)])
def test_a_graph_that_a_function_keeps_in_a_default(given: str, is_found: bool, tmp_path: Path) -> None:
    keeping = KEEPING.replace("GIVEN", given)
    text = TRAIN.replace("loss.backward()", "loss.backward(retain_graph=True)").replace("\ndef main", keeping)
    written, _ = _found(tmp_path / "kept", text.replace("model(x), y)", "model(x), y) + centred(model)"), "SPD508")
    assert written is is_found


ROWS = """
class Row(dict):
    __getattr__ = dict.get


class Rows(TensorDataset):
    def __getitem__(self, index):
        x, y = super().__getitem__(index)
        return KIND(x=x, y=y)


def main"""


@pytest.mark.parametrize(("kind", "is_written"), [("dict", True), ("Row", False)])
def test_pinned_items_of_a_class_of_dicts(kind: str, is_written: bool, tmp_path: Path) -> None:
    rows = ROWS.replace("KIND", kind)
    text = TRAIN.replace(", pin_memory=True", "").replace("DataLoader(TensorDataset(", "DataLoader(Rows(")
    text = text.replace("for x, y in loader:", "for row in loader:").replace(
        "x.to(device), y.to", 'row["x"].to(device), row["y"].to'
    )
    written, advice = _found(tmp_path / "rows", text.replace("\ndef main", rows), "SPD202")
    assert written is is_written
    assert is_written or "a `Row` anew" in advice


def test_a_fourier_transform_of_what_is_computed_leaves_the_fused_step(tmp_path: Path) -> None:
    adam = TRAIN.replace("SGD(model.parameters(), lr=0.1)", "Adam(model.parameters())")
    assert _found(tmp_path / "waves", adam.replace("model(x), y", "torch.fft.rfft(model(x)).abs(), y"), "SPD502")[0]
