"""Training steps that are more than one loss, one backward pass and one optimizer."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Core:
    """The lines of a step from the batch on the device to the changed weights, which bind ``out`` and ``loss``.

    Attributes:
        name: what it is called.
        step: the lines; ``FORWARD`` stands for the network's call and the loss, ``CLEAR`` for the cleared gradients.
        setup: once, before the epochs.
        modes: the forms of features it needs.
        imports: lines for the top of the file.
        top: classes at the level of the module.
        final: lines after the epochs.
    """

    name: str
    step: str
    setup: str = ""
    modes: tuple[str, ...] = ("vector", "image", "tokens", "series")
    imports: str = ""
    top: str = ""
    final: str = ""


_ADVERSARIES = (
    "$generator = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 16)).to($device)\n"
    "$judge = nn.Sequential(nn.Linear(16, 64), nn.LeakyReLU(0.2), nn.Linear(64, 1)).to($device)\n"
    "$generator_optimizer = torch.optim.Adam($generator.parameters(), lr=1e-3, betas=(0.5, 0.999))\n"
    "$judge_optimizer = torch.optim.Adam($judge.parameters(), lr=1e-3, betas=(0.5, 0.999))"
)
_JUDGED = (
    "fake = $generator(torch.randn(len(x), 8, device=x.device))\n"
    "judged = $judge(fake)\n"
    "judge_loss = F.softplus(judged).mean() + F.softplus(-$judge(x)).mean()\n"
    "$judge_optimizer.zero_grad()\n"
)
_MADE = "generator_loss = F.softplus(-$judge($generator(torch.randn(len(x), 8, device=x.device)))).mean()\n"
_GENERATED = "generator_loss.backward()\n$generator_optimizer.step()\nFORWARD\nCLEAR\nloss.backward()\n$optimizer.step()"
_WEIGHED = "print(f'weighed {sum(p.abs().sum().item() for m in ($judge, $generator) for p in m.parameters()):.7f}')"


def _adversary(name: str, step: str, last: str = "") -> Core:
    """A generator and a discriminator, without ``.detach()`` between them."""
    imports = "import torch.nn.functional as F"
    return Core(name, step + _GENERATED + last, _ADVERSARIES, ("vector",), imports, final=_WEIGHED)


CORES = (
    Core(
        "gradient_penalty",
        "x = x.requires_grad_(True)\n"
        "FORWARD\n"
        "slope = torch.autograd.grad(out.sum(), x, create_graph=True)[0]\n"
        "loss = loss + 0.1 * slope.pow(2).mean()\nCLEAR\nloss.backward()\n$optimizer.step()",
        modes=("vector", "image"),
    ),
    Core(
        "two_passes",
        "FORWARD\n"
        "CLEAR\n"
        "loss.backward(retain_graph=True)\n"
        "extra = 0.01 * out.pow(2).mean()\n"
        "extra.backward()\n"
        "$optimizer.step()",
    ),
    Core("retained", "FORWARD\nCLEAR\nloss.backward(retain_graph=True)\n$optimizer.step()"),
    Core(
        "retained_now_and_then",
        "FORWARD\nCLEAR\nloss.backward(retain_graph=True)\nif step % 2:\n    (0.1 * loss).backward()\n$optimizer.step()",
    ),
    Core(
        "closure",
        "def closure():\n"
        "    global latest\n"
        "    $optimizer.zero_grad()\n"
        "    latest = $model(x)\n"
        "    value = F.cross_entropy(latest, y)\n"
        "    value.backward()\n    return value\n\n\nloss = $optimizer.step(closure)\nout = latest",
        imports="import torch.nn.functional as F",
    ),
    Core(
        "two_optimizers",
        "FORWARD\nCLEAR\n$bias_optimizer.zero_grad()\nloss.backward()\n$optimizer.step()\n$bias_optimizer.step()",
        setup="$bias_optimizer = torch.optim.SGD([p for p in $model.parameters() if p.dim() == 1], lr=0.01)",
    ),
    Core(
        "distilled",
        "with torch.no_grad():\n"
        "    target = $teacher(x)\n"
        "FORWARD\n"
        "loss = loss + 0.1 * (out.float() - target.float()).pow(2).mean()\n"
        "CLEAR\n"
        "loss.backward()\n$optimizer.step()\nwith torch.no_grad():\n"
        "    for slow, fast in zip($teacher.parameters(), $model.parameters()):\n"
        "        slow.lerp_(fast, 0.1)",
        setup="$teacher = copy.deepcopy($model).eval()",
        imports="import copy",
        final="print(f'teacher {sum(p.abs().sum().item() for p in $teacher.parameters()):.6f}')",
    ),
    Core(
        "teacher_with_graph",
        "target = $teacher(x)\n"
        "FORWARD\n"
        "loss = loss + 0.1 * (out - target.detach()).pow(2).mean()\n"
        "CLEAR\n"
        "loss.backward()\n"
        "$optimizer.step()",
        setup="$teacher = copy.deepcopy($model)",
        imports="import copy",
    ),
    Core(
        "adversary",
        "latent = torch.randn(len(x), 8, device=x.device)\n"
        "fake = $generator(latent)\n"
        "$judge_optimizer.zero_grad()\n"
        "real_loss = F.softplus(-$judge(x)).mean()\nfake_loss = F.softplus($judge(fake.detach())).mean()\n"
        "judge_loss = real_loss + fake_loss\njudge_loss.backward()\n$judge_optimizer.step()\n"
        "$generator_optimizer.zero_grad()\n"
        "generator_loss = F.softplus(-$judge(fake)).mean()\n"
        "generator_loss.backward()\n"
        "$generator_optimizer.step()\nFORWARD\nCLEAR\nloss.backward()\n$optimizer.step()",
        setup="$generator = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 16)).to($device)\n"
        "$judge = nn.Sequential(nn.Linear(16, 1200), nn.LeakyReLU(0.2), nn.Linear(1200, 1)).to($device)\n"
        "$generator_optimizer = torch.optim.Adam($generator.parameters(), lr=1e-3, betas=(0.5, 0.999))\n"
        "$judge_optimizer = torch.optim.Adam($judge.parameters(), lr=1e-3, betas=(0.5, 0.999))",
        modes=("vector",),
        imports="import torch.nn.functional as F",
        final="print(f'judge {sum(p.abs().sum().item() for p in $judge.parameters()):.6f}')",
    ),
    Core(
        "attacked",
        "x.requires_grad_(True)\nnn.functional.cross_entropy($model(x), y).backward()\n"
        "x = (x + 0.01 * x.grad.sign()).detach()\nCLEAR\nFORWARD\nloss.backward()\n$optimizer.step()",
        modes=("vector", "image"),
    ),
    Core(
        "row_by_row",
        "rows = []\n"
        "for i in range(x.size(0)):\n"
        "    rows.append($model(x[i].unsqueeze(0)))\n"
        "out = torch.cat(rows)\n"
        "loss = nn.functional.cross_entropy(out, y)\nCLEAR\nloss.backward()\n$optimizer.step()",
        modes=("vector", "image"),
    ),
    Core(
        "losses_of_parts",
        "parts = []\n"
        "for half in torch.arange(len(y), device=y.device).chunk(2):\n"
        "    part = $model(x[half])\n"
        "    parts.append(part)\n"
        "out = torch.cat(parts)\n"
        "losses = [nn.functional.cross_entropy(part, part_y) for part, part_y in zip(out.chunk(2), y.chunk(2))]\n"
        "loss = sum(losses)\nCLEAR\nloss.backward()\n$optimizer.step()",
    ),
    Core(
        "skipped_steps",
        "FORWARD\nCLEAR\nif loss.item() > 0.05:\n    loss.backward()\n    $optimizer.step()",
    ),
    _adversary(
        "not_detached",
        f"{_JUDGED}judge_loss.backward()\n$judge_optimizer.step()\n$generator_optimizer.zero_grad()\n{_MADE}",
    ),
    _adversary(
        "not_detached_and_kept",
        "$generator_optimizer.zero_grad()\n" + f"{_JUDGED}judge_loss.backward()\n$judge_optimizer.step()\n{_MADE}",
    ),
    _adversary(
        "one_judgement",
        f"{_JUDGED}judge_loss.backward(retain_graph=True)\n$generator_optimizer.zero_grad()\n"
        "generator_loss = F.softplus(-judged).mean()\n",
        "\n$judge_optimizer.step()",
    ),
    _adversary(
        "watched_generator",
        f"{_JUDGED}judge_loss.backward()\n$judge_optimizer.step()\n"
        "print(f'{sum(p.grad.abs().sum().item() for p in $generator.parameters()):.6f}')\n"
        f"$generator_optimizer.zero_grad()\n{_MADE}",
    ),
)
