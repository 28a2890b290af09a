"""Networks over four forms of features, with the habits of forward passes that half precision and compilers meet."""

from __future__ import annotations

from benchmarks.trainings.part import Net, Part


def _net(layers: str, forward: str, more: str = "") -> str:
    first = "\n".join(f"        {line}" for line in layers.splitlines())
    body = "\n".join(f"        {line}" for line in forward.splitlines())
    return f"""class Net(nn.Module):
    def __init__(self):
        super().__init__()
{first}

    def forward(self, x):
{body}
{more}"""


_WIDE = (
    "self.layers = nn.Sequential(nn.Linear(16, 1280), nn.ReLU(), nn.Linear(1280, 64), nn.ReLU())\n"
    "self.head = nn.Linear(64, 4)"
)
_SMALL = (
    "self.layers = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 32), nn.ReLU())\nself.head = nn.Linear(32, 4)"
)
_CONV = (
    "self.features = nn.Sequential(\n"
    "    nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),\n"
    "    nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(),\n"
    "    nn.Conv2d(8, 8, 3, padding=1), nn.ReLU(),\n"
    ")\n"
    "self.head = nn.Linear(8 * 16, 4)"
)

NETS = (
    Net("wide", "vector", _net(_WIDE, "return self.head(self.layers(x))")),
    Net("small", "vector", _net(_SMALL, "return self.head(self.layers(x))")),
    Net(
        "sequential",
        "vector",
        "",
        make="nn.Sequential(nn.Linear(16, 1100), nn.ReLU(), nn.Dropout(0.1), nn.Linear(1100, 4))",
    ),
    Net(
        "skips",
        "vector",
        _net(
            _WIDE + "\nself.extra = nn.Linear(64, 64)\nself.calls = 0",
            "self.calls += 1\n"
            "x = self.layers(x)\n"
            "if self.training and self.calls % 2:\n"
            "    x = x + self.extra(x)\n"
            "return self.head(x)",
        ),
    ),
    Net(
        "two_outputs",
        "vector",
        _net(_WIDE, "hidden = self.layers(x)\nreturn self.head(hidden), hidden"),
        call="out, hidden = $model(x)",
        part=Part(
            "hidden",
            step="$centre.mul_(0.9).add_(0.1 * hidden.detach().float().mean(0))",
            state=(("centre", "torch.zeros(64, device=$device)"),),
            final="print('centre', $centre.sum().item())",
        ),
    ),
    Net(
        "buffer_of_outputs",
        "vector",
        _net(
            _SMALL + "\nself.register_buffer('centre', torch.zeros(4))",
            "out = self.head(self.layers(x))\nif self.training:\n"
            "    self.centre.mul_(0.9).add_(0.1 * out.detach().float().mean(0))\n"
            "return out - 0.01 * self.centre",
        ),
    ),
    Net(
        "filled_buffer",
        "vector",
        _net(
            _WIDE,
            "hidden = self.layers(x)\n"
            "kept = torch.zeros(len(x), 64, device=x.device)\n"
            "kept[:, ::2] = hidden[:, ::2].float()\n"
            "return self.head(kept)",
        ),
    ),
    Net(
        "index_added",
        "vector",
        _net(
            _WIDE,
            "hidden = self.layers(x)\nrows = torch.arange(len(x), device=x.device) // 2 * 2\n"
            "pooled = torch.zeros(len(x), 64, device=x.device).index_add(0, rows, hidden)\n"
            "return self.head(pooled + hidden)",
        ),
    ),
    Net(
        "one_output_tensor",
        "vector",
        _net(
            _SMALL + "\nself.kept = None",
            "out = self.head(self.layers(x))\nif self.kept is None or self.kept.shape != out.shape:\n"
            "    self.kept = torch.zeros_like(out)\nif torch.is_grad_enabled():\n    return out\n"
            "self.kept.copy_(out)\nreturn self.kept",
        ),
    ),
    Net(
        "hooked",
        "vector",
        _net(_WIDE, "return self.head(self.layers(x))"),
        part=Part(
            "hook",
            setup="$seen = []\n$model.head.register_forward_hook(\n"
            "    lambda module, inputs, output: $seen.append(output.detach().float().mean().item())\n)",
            final="print('hook', len($seen), f'{sum($seen):.6f}')",
        ),
    ),
    Net("convolutions", "image", _net(_CONV, "return self.head(self.features(x).flatten(1))")),
    Net("convolutions_view", "image", _net(_CONV, "x = self.features(x)\nreturn self.head(x.view(x.size(0), -1))")),
    Net(
        "convolutions_pooled",
        "image",
        _net(
            _CONV.replace("8 * 16", "8") + "\nself.drop = nn.Dropout2d(0.1)",
            "x = self.drop(self.features(x))\nreturn self.head(x.mean((2, 3)))",
        ),
    ),
    Net(
        "convolutions_permuted",
        "image",
        _net(
            _CONV.replace("8 * 16", "8") + "\nself.norm = nn.LayerNorm(8)",
            "x = self.features(x).permute(0, 2, 3, 1)\nreturn self.head(self.norm(x).mean((1, 2)))",
        ),
    ),
    Net(
        "convolutions_sequential",
        "image",
        "",
        make="nn.Sequential(\n"
        "    nn.Conv2d(3, 8, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.ReLU(),\n"
        "    nn.Conv2d(8, 8, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4)\n)",
    ),
    Net(
        "attention",
        "tokens",
        _net(
            "self.embed = nn.Embedding(40, 32)\n"
            "self.attention = nn.MultiheadAttention(32, 4, dropout=0.1, batch_first=True)\n"
            "self.norm = nn.LayerNorm(32)\nself.head = nn.Linear(32, 4)",
            "x = self.embed(x)\nmixed, _ = self.attention(x, x, x)\nreturn self.head(self.norm(x + mixed).mean(1))",
        ),
    ),
    Net(
        "attention_masked",
        "tokens",
        _net(
            "self.embed = nn.Embedding(40, 32)\nself.project = nn.Linear(32, 96)\nself.head = nn.Linear(32, 4)",
            "x = self.embed(x)\nq, k, v = self.project(x).chunk(3, dim=-1)\n"
            "scores = q @ k.transpose(1, 2) / 32**0.5\n"
            "mask = torch.triu(torch.ones(x.size(1), x.size(1), device=x.device, dtype=torch.bool), 1)\n"
            "scores = scores.masked_fill(mask, -1e9)\nreturn self.head((scores.softmax(-1) @ v)[:, -1])",
        ),
    ),
    Net(
        "encoder",
        "tokens",
        _net(
            "self.embed = nn.Embedding(40, 32)\n"
            "self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 4, 64, 0.0, batch_first=True), 1)\n"
            "self.head = nn.Linear(32, 4)",
            "return self.head(self.encoder(self.embed(x))[:, 0])",
        ),
    ),
    Net(
        "bag",
        "tokens",
        _net(
            "self.embed = nn.Embedding(40, 1200)\nself.head = nn.Linear(1200, 4)", "return self.head(self.embed(x).sum(1))"
        ),
    ),
    Net(
        "lstm",
        "series",
        _net(
            "self.rnn = nn.LSTM(6, 24, batch_first=True)\nself.head = nn.Linear(24, 4)",
            "hidden, _ = self.rnn(x)\nreturn self.head(hidden[:, -1])",
        ),
    ),
    Net(
        "gru_wide",
        "series",
        _net(
            "self.rnn = nn.GRU(6, 288, batch_first=True)\nself.head = nn.Linear(288, 4)",
            "hidden, last = self.rnn(x)\nreturn self.head(last[0])",
        ),
    ),
    Net(
        "lstm_states",
        "series",
        _net(
            "self.rnn = nn.LSTM(6, 264, batch_first=True)\nself.head = nn.Linear(264, 4)",
            "h = torch.zeros(1, x.size(0), 264, device=x.device)\n"
            "c = torch.zeros(1, x.size(0), 264).to(x.device)\n"
            "hidden, _ = self.rnn(x, (h, c))\nreturn self.head(hidden.mean(1))",
        ),
    ),
    Net(
        "cells",
        "series",
        _net(
            "self.cell = nn.GRUCell(6, 32)\nself.head = nn.Linear(32, 4)",
            "state = torch.zeros(len(x), 32).to(x.device)\nfor step in range(x.size(1)):\n"
            "    state = self.cell(x[:, step], state)\nreturn self.head(state)",
        ),
    ),
)
