"""The training step: losses, precision, how gradients are made, cleared, clipped and used, and what steps beside it."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.trainings.part import Part


@dataclass(frozen=True)
class Loss:
    """A loss of ``out`` and ``y``.

    Attributes:
        name: what it is called.
        make: the expression of ``$criterion``; none where the step needs no object.
        call: the lines that bind ``loss``.
        top: what it needs at the level of the module.
        imports: lines for the top of the file.
    """

    name: str
    make: str = "nn.CrossEntropyLoss()"
    call: str = "loss = $criterion(out, y)"
    top: str = ""
    imports: str = ""


_F = "import torch.nn.functional as F"
LOSSES = (
    Loss("cross_entropy"),
    Loss("cross_entropy"),
    Loss("cross_entropy"),
    Loss("smoothed", "nn.CrossEntropyLoss(label_smoothing=0.1).to($device)"),
    Loss("functional", "", "loss = F.cross_entropy(out, y)", imports=_F),
    Loss("nll", "", "loss = F.nll_loss(F.log_softmax(out, dim=1), y)", imports=_F),
    Loss(
        "each_row",
        "nn.CrossEntropyLoss(reduction='none')",
        "losses_of_rows = $criterion(out, y)\nloss = losses_of_rows.mean()",
    ),
    Loss("summed", "nn.CrossEntropyLoss(reduction='sum')", "loss = $criterion(out, y) / len(y)"),
    Loss("logits", "nn.BCEWithLogitsLoss()", "loss = $criterion(out, F.one_hot(y, 4).to(out.dtype))", imports=_F),
    Loss(
        "probabilities", "nn.BCELoss()", "loss = $criterion(torch.sigmoid(out), F.one_hot(y, 4).to(out.dtype))", imports=_F
    ),
    Loss("squares", "nn.MSELoss()", "loss = $criterion(out.softmax(1), F.one_hot(y, 4).to(out.dtype))", imports=_F),
    Loss("plus_penalty", call="loss = $criterion(out, y)\nloss = loss + 1e-4 * out.pow(2).sum()"),
    Loss("plus_weights", call="loss = $criterion(out, y)\nloss += 1e-5 * sum(p.pow(2).sum() for p in $model.parameters())"),
    Loss(
        "focal",
        "Focal()",
        top="""class Focal(nn.Module):
    def __init__(self, gamma=2.0):
        super().__init__()
        self.gamma, self.seen = gamma, 0

    def forward(self, out, y):
        entropy = nn.functional.cross_entropy(out, y, reduction="none")
        self.seen += len(y)
        return ((1 - torch.exp(-entropy)) ** self.gamma * entropy).mean()
""",
    ),
    Loss(
        "logs_itself",
        "",
        "loss = entropy(out, y)",
        top="""ENTROPIES = []


def entropy(out, y):
    value = nn.functional.cross_entropy(out, y)
    ENTROPIES.append(value.item())
    return value
""",
    ),
)

OPTIMIZERS = (
    "torch.optim.SGD($parameters, lr=0.05)",
    "torch.optim.SGD($parameters, lr=0.05, momentum=0.9, weight_decay=1e-4)",
    "torch.optim.Adam($parameters, lr=1e-3)",
    "torch.optim.AdamW($parameters, lr=1e-3, weight_decay=0.01)",
    "optim.Adam($parameters, lr=2e-3, betas=(0.5, 0.999))",
    "torch.optim.Adagrad($parameters, lr=0.01)",
    "torch.optim.RMSprop($parameters, lr=1e-3)",
    "torch.optim.Adam($parameters, lr=1e-3, foreach=False)",
    "torch.optim.SGD([{'params': $parameters, 'lr': 0.02}], lr=0.1, momentum=0.5)",
)

CLEARS = (
    "$optimizer.zero_grad()",
    "$optimizer.zero_grad()",
    "$optimizer.zero_grad(set_to_none=True)",
    "$optimizer.zero_grad(set_to_none=False)",
    "$optimizer.zero_grad(set_to_none=False)",
    "$model.zero_grad(set_to_none=False)",
    "for p in $model.parameters():\n    if p.grad is not None:\n        p.grad.zero_()",
    "for p in $model.parameters():\n    p.grad = None",
)

CLIPS = (
    "torch.nn.utils.clip_grad_norm_($model.parameters(), 1.0)",
    "norm = nn.utils.clip_grad_norm_($model.parameters(), max_norm=0.5)",
    "torch.nn.utils.clip_grad_value_($model.parameters(), 0.1)",
    "nn.utils.clip_grad_norm_($model.parameters(), 1.0, foreach=False)",
)

READS_OF_GRADIENTS = (
    "grad = sum(p.grad.abs().sum().item() for p in $model.parameters() if p.grad is not None)\nprint(f'grad {grad:.6f}')",
    "print('without', sum(p.grad is None for p in $model.parameters()))",
    "for p in $model.parameters():\n    if p.grad is not None:\n        p.grad.mul_(0.5)",
    "norms = [p.grad.norm().item() for p in $model.parameters() if p.grad is not None]\n"
    "print(f'norms {max(norms, default=0.0):.6f}')",
    "first = list($model.parameters())[-1]\nif step % 2 == 0:\n    print(f'first {first.grad.sum().item():.6f}')",
)

SCHEDULERS = (
    ("torch.optim.lr_scheduler.StepLR($optimizer, 1, gamma=0.5)", "epoch"),
    ("torch.optim.lr_scheduler.CosineAnnealingLR($optimizer, T_max=12)", "step"),
    ("torch.optim.lr_scheduler.ReduceLROnPlateau($optimizer, patience=0, factor=0.5)", "metric"),
    ("torch.optim.lr_scheduler.LambdaLR($optimizer, lambda n: 1 / (1 + n))", "epoch"),
    ("torch.optim.lr_scheduler.OneCycleLR($optimizer, 0.05, total_steps=64, cycle_momentum=False)", "step"),
)

PRECISIONS = (
    "float32",
    "float32",
    "float32",
    "autocast",
    "autocast_scaler",
    "old_autocast_scaler",
    "bf16",
    "bf16_scaler",
    "switch",
    "double",
)
"""float32 is what autocast is proposed for; ``switch`` has mixed precision built in and turned off."""

SWITCHES = (
    "torch.backends.cudnn.deterministic = True",
    "torch.backends.cudnn.benchmark = False",
    "torch.backends.cudnn.enabled = False",
    "torch.autograd.set_detect_anomaly(True)",
    "os.environ['CUDA_LAUNCH_BLOCKING'] = '1'",
    "torch.backends.cuda.matmul.allow_tf32 = True",
    "torch.backends.cudnn.allow_tf32 = True",
    "torch.set_float32_matmul_precision('highest')",
    "os.environ['TORCH_DISTRIBUTED_DEBUG'] = 'DETAIL'",
    "torch.autograd.set_detect_anomaly(mode=True, check_nan=True)",
)

BESIDE = (
    Part("synchronize", step="torch.cuda.synchronize()", needs="cuda"),
    Part("synchronize_if", step="if $device.type == 'cuda':\n    torch.cuda.synchronize()", needs="torch_device"),
    Part("empty_cache", step="torch.cuda.empty_cache()"),
    Part("collect", imports="import gc", step="gc.collect()"),
    Part("delete_and_collect", imports="import gc", step="del out, loss\ngc.collect()", needs="last"),
    Part(
        "collect_with_finalizer",
        imports="import gc",
        top="class Probe:\n"
        "    alive = 0\n"
        "\n"
        "    def __init__(self):\n"
        "        Probe.alive += 1\n"
        "        self.me = self\n"
        "\n"
        "    def __del__(self):\n        Probe.alive -= 1\n",
        step="probe = Probe()\ndel probe\ngc.collect()",
        after="print('alive', Probe.alive)",
    ),
    Part(
        "zeros_copied",
        step="mask = torch.zeros(len(y), 4).to($device)\nmask[torch.arange(len(y)), y] = 1\n"
        "$agreed.add_((mask * out.detach().float().softmax(1)).sum())",
        state=(("agreed", "torch.zeros((), device=$device)"),),
        after="print(f'agreed {$agreed.item():.6f}')",
    ),
    Part(
        "ones_copied",
        step="weights = torch.ones(x.size(0)).to($device)\n$weight.add_(weights.sum())",
        state=(("weight", "torch.zeros((), device=$device)"),),
        after="print(f'weight {$weight.item():.6f}')",
    ),
    Part(
        "random_copied",
        step="jitter = torch.randn(len(y), 4).to($device)\n$noise.add_((jitter * 0 + 1).sum())",
        state=(("noise", "torch.zeros((), device=$device)"),),
        after="print(f'noise {$noise.item():.6f}')",
    ),
    Part(
        "scalar_copied",
        step="half = torch.tensor(0.5).to($device)\n$halves.add_(half)",
        state=(("halves", "torch.zeros((), device=$device)"),),
        final="print(f'halves {$halves.item():.6f}')",
    ),
    Part(
        "late_host_copy",
        step=(
            "host = out.detach().to('cpu', non_blocking=True)\nif torch.cuda.is_available():\n    torch.cuda.synchronize()\n"
            "$largest.append(float(host.max()))"
        ),
        state=(("largest", "[]"),),
        final="print(f'largest {max($largest):.5f}')",
    ),
    Part("nan_check", step="if torch.isnan(loss):\n    raise FloatingPointError('loss is not a number')"),
    Part(
        "inputs_changed",
        step="x += 1.0\n$inputs.add_(x.sum() * 1e-3)",
        needs="float_inputs",
        state=(("inputs", "torch.zeros((), device=$device)"),),
        final="print(f'inputs {$inputs.item():.4f}')",
    ),
    Part(
        "average_weights",
        imports="import copy",
        setup="$teacher = copy.deepcopy($model)",
        step="with torch.no_grad():\n    for slow, fast in zip($teacher.parameters(), $model.parameters()):\n"
        "        slow.mul_(0.9).add_(fast, alpha=0.1)",
        final="print('teacher', f'{sum(p.abs().sum().item() for p in $teacher.parameters()):.6f}')",
    ),
    Part(
        "weights_kept",
        imports="import copy",
        start="before = copy.deepcopy($model.state_dict())",
        end="moved = sum((before[key] - value).abs().sum().item()\n"
        "            for key, value in $model.state_dict().items())\nprint(f'moved {moved:.6f}')",
    ),
    Part(
        "aliased_weights",
        start="before = $model.state_dict()",
        end="print('aliased', all(before[key].data_ptr() == value.data_ptr()\n"
        "                     for key, value in $model.state_dict().items()))",
    ),
    Part("frozen", setup="for p in list($model.parameters())[:1]:\n    p.requires_grad_(False)"),
)
"""Lines beside the step; ``last`` may only stand at its end."""
