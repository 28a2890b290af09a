"""Networks of small kernels gain nothing from half precision: launching them takes longer than what they compute."""

from __future__ import annotations

import pytest

from tests.conftest import Project

STEPS = """
import argparse
import torch
import torchvision
from torch import nn
from torch.nn import functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--hidden", type=int, default=25)
args = parser.parse_args()
widths = torch.load("widths.pt")

{network}

data = {data}
model = {model}.cuda()
optimizer = torch.optim.Adam(model.parameters())
for inputs, labels in torch.utils.data.DataLoader(data, batch_size=64):
    loss = {loss}
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
RESIDUAL = """
class Block(nn.Module):
    def __init__(self, before, planes, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(before, planes, 3, stride, 1)
        self.conv2 = nn.Conv2d(planes, planes, 3, 1, 1)

    def forward(self, x):
        return F.relu(self.conv2(F.relu(self.conv1(x))))


class Residual(nn.Module):
    def __init__(self, block, blocks):
        super().__init__()
        self.planes = 16
        self.first = nn.Conv2d(3, self.planes, 3)
        self.layers = nn.Sequential(
            self._layer(block, 16, blocks[0], 1),
            self._layer(block, 32, blocks[1], 2),
            self._layer(block, {last}, blocks[2], 2),
        )
        self.head = nn.Linear({last}, 10)

    def _layer(self, block, planes, blocks, stride):
        made = []
        for each in [stride] + [1] * (blocks - 1):
            made.append(block(self.planes, planes, each))
            self.planes = planes
        return nn.Sequential(*made)

    def forward(self, x):
        return self.head(self.layers(self.first(x)).mean((2, 3)))
"""
TEMPORAL = """
class Block(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.conv = nn.Conv1d(inputs, outputs, 7)

    def forward(self, x):
        return F.relu(self.conv(x))


class Temporal(nn.Module):
    def __init__(self, inputs, channels):
        super().__init__()
        self.net = nn.Sequential(
            *(Block(inputs if i == 0 else channels[i - 1], channels[i]) for i in range(len(channels)))
        )
        self.head = nn.Linear(channels[-1], 10)

    def forward(self, x):
        return self.head(self.net(x)[:, :, -1])
"""
DECODER = """
class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.read = {read}
        self.cell, self.head = nn.LSTMCell(128, 512), nn.Linear(512, 80)

    def forward(self, x):
        steps, state, found = self.read(x), None, []
        for t in range(steps.shape[-1]):
            state = self.cell(steps[..., t].flatten(1), state)
            found.append(self.head(state[0]))
        return torch.stack(found, 1)
"""
SUPERNET = """
OPS = {{
    "conv": lambda C: nn.Conv2d(C, C, 3, padding=1),
    "pool": lambda C: nn.MaxPool2d(3, 1, 1),
}}


class Mixed(nn.Module):
    def __init__(self, C):
        super().__init__()
        self.ops = nn.ModuleList(OPS[name](C) for name in OPS)

    def forward(self, x, weights):
        return {mixed}


class Search(nn.Module):
    def __init__(self, C=16):
        super().__init__()
        self.stem = nn.Conv2d(3, C, 3)
        self.cells = nn.ModuleList(Mixed(C) for _ in range(8))
        self.weights = nn.Parameter(torch.zeros(8, 2))

    def forward(self, x):
        x = self.stem(x)
        for cell, weights in zip(self.cells, self.weights):
            x = cell(x, weights)
        return x.mean((2, 3))
"""
GRAPH = """
from torch_geometric.nn import {layer}


class Graph(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.head = {layer}(32, 300), nn.Linear(300, 10)

    def forward(self, x):
        return self.head(self.first(x))
"""
SEQUENCE = """
class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.attend = nn.MultiheadAttention(width, heads, batch_first=True)
        self.forth, self.back = nn.Conv1d(width, 2 * width, 1), nn.Conv1d(2 * width, width, 1)

    def forward(self, x):
        x = x + self.attend(x, x, x, need_weights=False)[0]
        return x + self.back(F.relu(self.forth(x.transpose(1, 2)))).transpose(1, 2)


class Sequence(nn.Module):
    def __init__(self, options):
        super().__init__()
        self.items = nn.Embedding(50_000, options.hidden)
        self.layers = nn.Sequential(*(Layer(options.hidden, 1) for _ in range(2)))

    def forward(self, rows):
        return self.layers(self.items(rows)) @ self.items.weight.T
"""
UNSET = SEQUENCE.replace("width, heads):", "width, heads, inner=None):").replace(
    "self.forth, self.back = nn.Conv1d(width, 2 * width, 1), nn.Conv1d(2 * width, width, 1)",
    "inner = 2 * width if inner is None else inner\n"
    "        self.forth, self.back = nn.Conv1d(width, inner, 1), nn.Conv1d(inner, width, 1)",
)
"""The width within a layer is an option that is unset by default."""
NODES = """
class Nodes(nn.Module):
    def __init__(self, features, hidden):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(features, hidden))
        self.score = nn.Parameter(torch.empty(hidden, 1))

    def forward(self, nodes, edges):
        mapped = torch.mm(nodes, self.weight)
        scores = torch.matmul(mapped, self.score) + torch.matmul(mapped, self.score).T
        return torch.matmul(F.softmax(scores.where(edges > 0, -9e9), dim=1), mapped)


nodes, edges, classes = (each.cuda() for each in torch.load("graph.pt"))
"""
POOLING = """
{imports}


class Pooling(nn.Module):
    def __init__(self, width, parts):
        super().__init__()
        self.assign, self.embed, self.head = nn.Linear(width, parts), nn.Linear(width, width), {head}

    def forward(self, graph):
        graph.update_all(sent("x"), added("x"))
        assigned = torch.softmax(self.assign(graph.ndata["x"]), 1)
        pooled = torch.matmul(assigned.T, self.embed(graph.ndata["x"]))
        return self.head(torch.matmul(pooled, pooled.T))
"""
OF_GRAPHS = "from dgl.function import copy_u as sent, mean as added"
PRETRAINED = """
import transformers


class Labels(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = transformers.GPT2Model.from_pretrained("gpt2"), nn.Linear(768, 2)

    def forward(self, x):
        return self.head(self.body(x).last_hidden_state[:, -1])
"""
CIFAR, OWN = 'torchvision.datasets.CIFAR10("data")', 'torchvision.datasets.ImageFolder("data")'
LOSS = "F.cross_entropy(model(inputs.cuda()), labels.cuda())"


@pytest.mark.parametrize(
    ("network", "model", "data", "is_warned"),
    [
        (RESIDUAL.format(last=64), "Residual(Block, [3, 3, 3])", CIFAR, False),
        (RESIDUAL.format(last=64), "Residual(Block, [3, 3, 3])", OWN, True),
        (RESIDUAL.format(last=128), "Residual(Block, [3, 3, 3])", CIFAR, True),
        (TEMPORAL, "Temporal(1, [args.hidden] * 8)", OWN, False),
        (TEMPORAL, "nn.Sequential(Temporal(1, [args.hidden] * 8), Temporal(1, [10, 600]))", OWN, True),
        (TEMPORAL, "Temporal(1, [args.hidden * 6] * 8)", OWN, True),
        (TEMPORAL, "Temporal(1, widths)", OWN, True),
        (DECODER.format(read="nn.Conv1d(80, 128, 5)"), "Decoder()", OWN, False),
        (DECODER.format(read="nn.Conv2d(3, 128, 5)"), "Decoder()", OWN, True),
        (SUPERNET.format(mixed="sum(w * op(x) for w, op in zip(weights, self.ops))"), "Search()", CIFAR, False),
        (SUPERNET.format(mixed="sum(op(x) for op in self.ops)"), "Search()", OWN, True),
        (SUPERNET.format(mixed="sum(w * op(x) for w, op in zip(weights, self.ops))"), "Search(256)", CIFAR, True),
        ("", "torchvision.models.resnet50(num_classes=10)", CIFAR, False),
        ("", "torchvision.models.resnet50(num_classes=10)", OWN, True),
        ("", "torchvision.models.vgg16(num_classes=10)", CIFAR, True),
        ("", "nn.Sequential(nn.Conv2d(3, 256, 3), torchvision.models.resnet50())", CIFAR, True),
        (SEQUENCE, "Sequence(args)", OWN, False),
        (SEQUENCE.replace("options.hidden", "8 * options.hidden"), "Sequence(args)", OWN, True),
        (SEQUENCE.replace("2 * width", "widths"), "Sequence(args)", OWN, True),
        (UNSET, "Sequence(args)", OWN, False),
        (UNSET.replace("Layer(options.hidden, 1)", "Layer(options.hidden, 1, 2048)"), "Sequence(args)", OWN, True),
        (UNSET.replace("2 * width if", "widths if"), "Sequence(args)", OWN, True),
        (POOLING.format(imports=OF_GRAPHS, head="nn.Linear(32, 2)"), "Pooling(args.hidden * 8, 32)", OWN, False),
        (POOLING.format(imports=OF_GRAPHS, head="nn.TransformerEncoderLayer(512, 8)"), "Pooling(512, 512)", OWN, True),
        (POOLING.format(imports="from sums import sent, added", head="nn.Linear(32, 2)"), "Pooling(512, 32)", OWN, True),
        (PRETRAINED, "Labels()", OWN, True),
        (GRAPH.format(layer="GCNConv"), "Graph()", OWN, False),
        (GRAPH.format(layer="GCNConv").replace("nn.Linear(300, 10)", "nn.Conv2d(1, 512, 3)"), "Graph()", OWN, True),
    ],
)  # fmt: skip
def test_small_kernels_are_a_note(project: Project, network: str, model: str, data: str, is_warned: bool) -> None:
    project.configure("select = ['SPD101']\ntorch = '2.4'")
    text = STEPS.format(network=network, model=model, data=data, loss=LOSS)
    (found,) = project.findings(project.write("train.py", text), "--notes")
    assert (found["level"], found["worth"]) == (("warning", "high") if is_warned else ("note", "low"))


HIDDEN = """
import importlib, sys
import torch
from torch.nn import functional as F

{reads}

model = importlib.import_module(sys.argv[1]).build().cuda()
optimizer = torch.optim.Adam(model.parameters())
for rows, labels in {data}:
    loss = F.cross_entropy(model(rows.cuda()), labels.cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
ROWS = "torch.utils.data.DataLoader(Rows(), batch_size=64)"
TABLE = """
class Rows(torch.utils.data.Dataset):
    def __init__(self):
        self.rows, self.labels = torch.load("rows.pt")

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return self.rows[index], self.labels[index]
"""
PICTURES = TABLE.replace("self.rows[index],", "to_tensor(Image.open(self.rows[index])),")


@pytest.mark.parametrize(
    ("reads", "level"),
    [
        (TABLE, "note"),
        (f"from PIL import Image\nfrom transforms import to_tensor\n{PICTURES}", "warning"),
        (f"import transformers\n{TABLE}", "warning"),
    ],
)
def test_a_network_out_of_sight_is_large_where_something_says_so(project: Project, reads: str, level: str) -> None:
    project.configure("select = ['SPD101']\ntorch = '2.4'")
    path = project.write("train.py", HIDDEN.format(reads=reads, data=ROWS))
    (found,) = project.findings(path, "--notes")
    assert found["level"] == level


BUILT = """
import torch
from torch import nn
from torch.nn import functional as F


class Experiment:
    def __init__(self, rows):
        self.model, self.rows = self.build().cuda(), rows

    def build(self):
        raise NotImplementedError

    def run(self):
        optimizer = torch.optim.Adam(self.model.parameters())
        for rows, labels in self.rows:
            loss = F.cross_entropy(self.model(rows.cuda()), labels.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


class Forecast(Experiment):
    def build(self):
        return {network}


Forecast(torch.load("rows.pt")).run()
"""


@pytest.mark.parametrize(
    ("network", "level"),
    [("nn.Sequential(nn.Conv1d(8, 256, 5), nn.Conv1d(256, 256, 5))", "warning"), ("torch.load('network.pt')", "note")],
)
def test_a_builder_that_an_heir_overrides_is_in_sight(project: Project, network: str, level: str) -> None:
    project.configure("select = ['SPD101']\ntorch = '2.4'")
    (found,) = project.findings(project.write("train.py", BUILT.format(network=network)), "--notes")
    assert found["level"] == level


@pytest.mark.parametrize(
    ("head", "level"),
    [("", "note"), ("model = nn.Sequential(model, nn.Conv1d(512, 512, 3)).cuda()", "warning")],
)
def test_attention_of_a_whole_graph_by_weights_of_its_own_is_a_note(project: Project, head: str, level: str) -> None:
    project.configure("select = ['SPD101']\ntorch = '2.4'")
    text = STEPS.replace("import torchvision\n", "").format(
        network=NODES, model=f"Nodes(1433, args.hidden).cuda()\n{head}\nmodel = model", data="nodes", loss="LOSS"
    )
    loop = "for inputs, labels in torch.utils.data.DataLoader(data, batch_size=64):"
    text = text.replace(loop, "for epoch in range(200):").replace("LOSS", "F.cross_entropy(model(nodes, edges), classes)")
    (found,) = project.findings(project.write("train.py", text), "--notes")
    assert found["level"] == level


CHOICE = """
import argparse
import torch
import torchvision
from torch import nn
from torch.nn import functional as F
from torchvision import datasets, transforms

parser = argparse.ArgumentParser()
parser.add_argument("--data", default="DATA")
parser.add_argument("--net", default="NET")
parser.add_argument("--size", type=int, default=28)
args = parser.parse_args()


def loader_of(name, size):
    change = transforms.Compose([transforms.Resize((size, size)), transforms.ToTensor()])
    if name == "digits":
        return torch.utils.data.DataLoader(datasets.MNIST("data", transform=change), batch_size=64)
    if name == "bedrooms":
        return torch.utils.data.DataLoader(datasets.LSUN("data", transform=change), batch_size=64)


class Layers(nn.Module):
    def __init__(self, inputs, hidden):
        super().__init__()
        self.first, self.last = nn.Linear(inputs, hidden), nn.Linear(hidden, 10)

    def forward(self, x):
        return self.last(F.relu(self.first(x.flatten(1))))


class Planes(nn.Module):
    def __init__(self, planes):
        super().__init__()
        self.first, self.second = nn.Conv2d(1, planes, 4, 2), nn.Conv2d(planes, 2 * planes, 4, 2)

    def forward(self, x):
        return self.second(F.relu(self.first(x))).mean((2, 3))


if args.net == "layers":
    model = Layers(args.size * args.size, 64)
elif args.net == "planes":
    model = Planes(256)
model = model.cuda()
optimizer = torch.optim.Adam(model.parameters())
for inputs, labels in loader_of(args.data, args.size):
    loss = F.cross_entropy(model(inputs.cuda()), labels.cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("data", "net", "level"),
    [
        ("digits", "planes", "note"),
        ("bedrooms", "planes", "warning"),
        ("bedrooms", "layers", "note"),
    ],
)
def test_what_the_options_choose_by_default_is_what_is_run(project: Project, data: str, net: str, level: str) -> None:
    project.configure("select = ['SPD101']\ntorch = '2.4'")
    text = CHOICE.replace("DATA", data).replace("NET", net)
    (found,) = project.findings(project.write("train.py", text), "--notes")
    assert found["level"] == level


def test_a_shipped_command_that_chooses_other_data_counts(project: Project) -> None:
    project.configure("select = ['SPD101']\ntorch = '2.4'")
    project.write("README.md", "    python train.py --data bedrooms --size 64")
    (found,) = project.findings(project.write("train.py", CHOICE.replace("DATA", "digits").replace("NET", "planes")))
    assert found["level"] == "warning"


UNUSED = """
import torch
from torchvision import datasets


def faces(folder):
    return torch.utils.data.DataLoader(datasets.ImageFolder(folder), batch_size=64)


def told(text):
    print(text)
"""


@pytest.mark.parametrize(("used", "level"), [("told('it begins')", "note"), ("faces('faces')", "warning")])
def test_data_that_nothing_loads_does_not_count(project: Project, used: str, level: str) -> None:
    project.configure("select = ['SPD101']\ntorch = '2.4'")
    project.write("helpers.py", UNUSED)
    for number in range(9):
        project.write(f"part{number}.py", "import helpers\n\nhelpers.told('a part')\n")
    text = (
        CHOICE.replace("DATA", "digits").replace("NET", "planes").replace("import argparse\n", "import argparse, helpers\n")
    )
    path = project.write("train.py", text.replace("model = model.cuda()", f"helpers.{used}\nmodel = model.cuda()"))
    (found,) = project.findings(path, "--notes")
    assert found["level"] == level


@pytest.mark.parametrize(
    ("plays", "level"),
    [("import ale_py\n\ngame = ale_py.ALEInterface()\n", "note"), ("import ale_py\n", "warning"), ("", "warning")],
)
def test_where_an_environment_takes_the_time_half_precision_is_a_note(project: Project, plays: str, level: str) -> None:
    project.configure("select = ['SPD101']\ntorch = '2.4'")
    text = STEPS.format(network=plays + RESIDUAL.format(last=512), model="Residual(Block, [3, 3, 3])", data=OWN, loss=LOSS)
    (found,) = project.findings(project.write("train.py", text), "--notes")
    assert found["level"] == level


@pytest.mark.parametrize(
    ("model", "level"),
    [
        ("torchvision.models.resnet18(num_classes=10)", "note"),
        ("torchvision.models.vgg16(num_classes=10)", "warning"),
    ],
)
def test_faster_convolutions_are_nothing_behind_their_launches(project: Project, model: str, level: str) -> None:
    project.configure("select = ['SPD402']\ntorch = '2.4'")
    data = CIFAR.replace('"data"', '"data", transform=torchvision.transforms.Resize((32, 32))')
    text = STEPS.format(network="", model=model, data=data, loss=LOSS).replace("batch_size=64", "batch_size=128")
    (found,) = project.findings(project.write("train.py", text), "--notes")
    assert found["level"] == level


@pytest.mark.parametrize(("imports", "is_found"), [(OF_GRAPHS, False), ("from sums import sent, added", True)])
def test_products_of_what_nodes_send_each_other_are_left_alone(project: Project, imports: str, is_found: bool) -> None:
    project.configure("select = ['SPD105']\ntorch = '2.4'")
    network = POOLING.format(imports=imports, head="nn.Linear(32, 2)")
    text = STEPS.format(network=network, model="Pooling(512, 32)", data=OWN, loss=LOSS)
    assert bool(project.findings(project.write("train.py", text), "--notes")) is is_found


PATCHES = """
class Patches(nn.Module):
    def __init__(self, side, width=768):
        super().__init__()
        self.cut = {cut}
        layer = nn.TransformerEncoderLayer(width, 12)
        self.layers = nn.TransformerEncoder(layer, 12)
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        return self.head(self.layers(self.cut(x).flatten(2).transpose(1, 2)).mean(1))
"""


@pytest.mark.parametrize(
    ("cut", "level"),
    [
        ("nn.Conv2d(3, width, kernel_size=side, stride=side)", "note"),
        ("nn.Sequential(nn.Conv2d(3, width, (16, 16), (10, 10)))", "note"),
        ("nn.Sequential(nn.Conv2d(3, 64, 3, 2), nn.Conv2d(64, 256, 3, 2), nn.Conv2d(256, width, 4, 4))", "warning"),
    ],
)
def test_a_convolution_that_cuts_patches_is_little_beside_attention(project: Project, cut: str, level: str) -> None:
    project.configure("select = ['SPD402']\ntorch = '2.4'")
    data = CIFAR.replace('"data"', '"data", transform=torchvision.transforms.Resize((224, 224))')
    text = STEPS.format(network=PATCHES.format(cut=cut), model="Patches(16)", data=data, loss=LOSS)
    (found,) = project.findings(project.write("train.py", text), "--notes")
    assert found["level"] == level


VARIANTS = (
    PATCHES.format(cut="nn.Conv2d(3, width, 16, 16)")
    + """
class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(3, 64, 3), nn.ReLU(), nn.Conv2d(64, 256, 3))

    def forward(self, x):
        return self.layers(x)


def made(name):
    if name == "{first}":
        body = {first_body}
    elif name == "{second}":
        body = {second_body}
    else:
        raise ValueError(name)
    return body


class Detector(nn.Module):
    def __init__(self, chosen):
        super().__init__()
        self.body = made(chosen)
        self.mixed = {beside}

    def forward(self, x):
        return self.mixed(self.body(x))


tables = torch.load("bodies.pt")
"""
)


@pytest.mark.parametrize(
    ("first_body", "beside", "chosen", "level"),
    [
        ("Plain()", "nn.Conv2d(256, 10, 1)", "tables", "note"),
        ("Plain()", "nn.Conv2d(256, 10, 1)", "args.body", "warning"),
        ("Plain()", "nn.MultiheadAttention(256, 8)", "tables", "warning"),
        ("Patches(8)", "nn.Conv2d(256, 10, 1)", "tables", "warning"),
    ],
)
def test_products_of_one_variant_among_convolutional_ones_are_a_note(
    project: Project, first_body: str, beside: str, chosen: str, level: str
) -> None:
    project.configure("select = ['SPD105']\ntorch = '2.4'")
    bodies = {"first": "plain", "first_body": first_body, "second": "patches", "second_body": "Patches(16)"}
    text = STEPS.format(network=VARIANTS.format(beside=beside, **bodies), model=f"Detector({chosen})", data=OWN, loss=LOSS)
    text = text.replace("args = parser", 'parser.add_argument("--body", default="patches")\nargs = parser')
    (found,) = project.findings(project.write("train.py", text), "--notes")
    assert found["level"] == level


@pytest.mark.parametrize(
    ("apex", "level"),
    [
        ("model, optimizer = amp.initialize(model, optimizer, opt_level='O1')", "note"),
        ("print(amp.state_dict())", "warning"),
    ],
)
def test_products_that_apex_halves_gain_next_to_nothing_by_tf32(project: Project, apex: str, level: str) -> None:
    project.configure("select = ['SPD105']\ntorch = '2.4'")
    network = f"from apex import amp\n{PATCHES.format(cut='nn.Linear(3, width)')}"
    text = STEPS.format(network=network, model="Patches(16)", data=OWN, loss=LOSS)
    text = text.replace("for inputs, labels", f"{apex}\nfor inputs, labels")
    (found,) = project.findings(project.write("train.py", text), "--notes")
    assert found["level"] == level


FEW = """
class Branches(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(3, 64, 7, {stride}, 3), nn.ReLU(), nn.MaxPool2d(3, 2))
        self.left, self.right = nn.Conv2d(64, 256, 1), nn.Conv2d(64, 256, 3, padding=1)
        self.last = {last}

    def forward(self, x):
        x = self.first(x)
        return self.last(torch.cat([self.left(x), self.right(x)], 1)).mean((2, 3))
"""


@pytest.mark.parametrize(
    ("stride", "last", "side", "batch", "level"),
    [
        ("2", "nn.Conv2d(512, 10, 3)", 224, 4, "note"),
        ("2", "nn.Conv2d(512, 10, 3)", 224, 32, "warning"),
        ("2", "nn.Conv2d(512, 10, 3)", 640, 4, "warning"),
        ("1", "nn.Conv2d(512, 10, 3)", 224, 4, "warning"),
        ("2", "nn.ConvTranspose2d(512, 10, 8, 8)", 224, 4, "warning"),
    ],
)
def test_few_images_that_first_layers_shrink_are_launches(
    project: Project, stride: str, last: str, side: int, batch: int, level: str
) -> None:
    project.configure("select = ['SPD101']\ntorch = '2.4'")
    project.write(
        "networks.py",
        "import torch\nfrom torch import nn\n" + FEW.format(stride=stride, last=last) + "\n\nnet = Branches()\n",
    )
    data = f"torchvision.datasets.ImageFolder('data', torchvision.transforms.Resize({side}))"
    text = STEPS.format(network="from networks import net\nnet = net.to('cuda')", model="net", data=data, loss=LOSS)
    text = text.replace("batch_size=64", f"batch_size={batch}")
    (found,) = project.findings(project.write("train.py", text), "--notes")
    assert found["level"] == level


STYLE = """
def correlation(maps):
    batch, channels, height, width = maps.shape
    flat = maps.reshape(batch, channels, height * width)
    return torch.bmm(flat, flat.transpose(1, 2)) / (channels * height * width)
"""


def test_sums_that_float16_does_not_hold_are_left_to_bfloat16(project: Project) -> None:
    project.configure("select = ['SPD101']\ntorch = '2.4'")
    network = RESIDUAL.format(last=512) + STYLE
    loss = "F.mse_loss(correlation(model.first(inputs.cuda())), labels.cuda())"
    path = project.write("train.py", STEPS.format(network=network, model="Residual(Block, [3, 3, 3])", data=OWN, loss=loss))
    told = " ".join(project.run("check", path).stdout.split())
    assert "dtype=torch.bfloat16" in told
    assert "scaler = " not in told
    assert "1 by hand" in told


def test_a_loss_that_autocast_refuses_stays_outside(project: Project) -> None:
    project.configure("select = ['SPD101']\ntorch = '2.4'")
    network = RESIDUAL.format(last=512)
    loss = "F.binary_cross_entropy(torch.sigmoid(model(inputs.cuda())), labels.cuda())"
    text = STEPS.format(network=network, model="Residual(Block, [3, 3, 3])", data=OWN, loss=loss)
    told = " ".join(project.run("check", project.write("train.py", text)).stdout.split())
    assert "leave `F.binary_cross_entropy` outside" in told
    assert "1 by hand" in told


def test_a_loss_out_of_sight_is_told_of_one_that_autocast_refuses(project: Project) -> None:
    project.configure("select = ['SPD101']\ntorch = '2.4'")
    losses = "\n\nclass Coder:\n    def loss(out, rows):\n        return F.binary_cross_entropy(out, rows)\n"
    project.write("coders.py", f"from torch.nn import functional as F\n{losses}")
    network = RESIDUAL.format(last=512) + "\n\nimport coders\n\nloss_of = getattr(coders, args.kind).loss"
    loss = "loss_of(model(inputs.cuda()), labels.cuda())"
    text = STEPS.format(network=network, model="Residual(Block, [3, 3, 3])", data=OWN, loss=loss)
    text = text.replace("args = parser", 'parser.add_argument("--kind", default="Coder")\nargs = parser')
    told = " ".join(project.run("check", project.write("train.py", text)).stdout.split())
    assert "leave `loss_of` outside where it comes to `F.binary_cross_entropy` (coders.py line 6)" in told


@pytest.mark.parametrize(("second", "is_told"), [("model", True), ("model.head", False)])
def test_two_optimizers_of_the_same_parameters_are_left_to_bfloat16(project: Project, second: str, is_told: bool) -> None:
    project.configure("select = ['SPD101']\ntorch = '2.4'")
    text = STEPS.format(network=RESIDUAL.format(last=512), model="Residual(Block, [3, 3, 3])", data=OWN, loss=LOSS)
    text = text.replace("for inputs", f"other = torch.optim.SGD({second}.parameters(), lr=1e-3)\nfor inputs")
    path = project.write("train.py", f"{text}    other.step()\n")
    told = " ".join(project.run("check", path).stdout.split())
    assert ("one scaler would unscale twice" in told) is is_told
    assert ("scaler.step(optimizer)" in told) is not is_told


@pytest.mark.parametrize(("scores", "is_told"), [("{} + 1e-15", True), ("{} + 1e-3", False)])
def test_what_half_precision_would_break_is_told_where_the_release_is_old(
    project: Project, scores: str, is_told: bool
) -> None:
    project.configure("select = ['SPD101']\ntorch = '1.8'")
    loss = f"-torch.log({scores.format('torch.sigmoid(model(inputs.cuda()))')}).mean()"
    text = STEPS.format(network=RESIDUAL.format(last=512), model="Residual(Block, [3, 3, 3])", data=OWN, loss=loss)
    told = " ".join(project.run("check", project.write("train.py", text)).stdout.split())
    assert "the target release is older" in told
    assert ("adds is zero in float16" in told) is is_told


def test_what_is_detached_is_not_what_trains(project: Project) -> None:
    project.configure("select = ['SPD101']\ntorch = '2.4'")
    loss = "F.l1_loss(model(spectrum(inputs.cuda()).detach()), labels.cuda())"
    text = STEPS.format(network=RESIDUAL.format(last=512), model="Residual(Block, [3, 3, 3])", data=OWN, loss=loss)
    text = text.replace("data = ", "spectrum = nn.Conv1d(1, 80, 1024).cuda()\ndata = ")
    (found,) = project.findings(project.write("train.py", text))
    assert found["message"].startswith("`model(spectrum(inputs.cuda()).detach())`")


LIBRARY = """
import torch
from torch import nn
from torch.nn import functional as F

{network}


def fit(network, loader, device="cuda"):
    network = network.to(device)
    optimizer = torch.optim.Adam(network.parameters())
    for rows, labels in loader:
        loss = F.mse_loss(network(rows.to(device)), labels.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
DEFINED = "class Layers(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.one, self.other = {}"
TAGGER = """
class Tagger(nn.Module):
    def __init__(self, words, classes, hidden):
        super().__init__()
        self.embed = nn.Embedding(words, 100)
        self.cells = nn.LSTM(100, hidden, batch_first=True)
        self.head = nn.Linear(hidden, {head})

    def forward(self, rows):
        return self.head(self.cells(self.embed(rows))[0])


class Both(nn.Module):
    def __init__(self, first, second):
        super().__init__()
        self.first, self.second, self.cells = first, second, nn.GRU(9, 9)

    def forward(self, rows):
        return self.cells(self.first(rows) + self.second(rows))[0]


past, future = Tagger(9, 9, widths["hidden"]), Tagger(9, 9, 100)
"""


@pytest.mark.parametrize(
    ("network", "level"),
    [
        ("", "note"),
        (DEFINED.format("nn.Linear(40, 64), nn.LSTM(64, 128)"), "note"),
        (DEFINED.format("nn.Linear(6400, 3200), nn.LSTM(64, 128)"), "note"),
        (DEFINED.format("nn.Linear(6400, 3200), nn.LSTM(64, 512)"), "warning"),
        (DEFINED.format("nn.Linear(6400, 3200), nn.ReLU()"), "warning"),
        (RESIDUAL.format(last=512), "warning"),
        ("import transformers", "warning"),
    ],
)
def test_a_network_that_a_function_is_handed_by_no_one_is_large_where_one_is_defined(
    project: Project, network: str, level: str
) -> None:
    project.configure("select = ['SPD101']\ntorch = '2.4'")
    (found,) = project.findings(project.write("fitting.py", LIBRARY.format(network=network)), "--notes")
    assert found["level"] == level


@pytest.mark.parametrize(
    ("model", "head", "level"),
    [
        ("Tagger(len(widths), widths['classes'], 100 if args.hidden else 200)", "classes", "note"),
        ("Tagger(len(widths), widths['classes'], 1024)", "classes", "warning"),
        ("Tagger(len(widths), widths['classes'], widths['hidden'])", "classes", "warning"),
        ("Tagger(len(widths), 9, 100 if args.hidden else 200)", "words", "warning"),
        ("Tagger(len(widths), 4096, 100)", "classes", "warning"),
        ("Both(past, future)", "classes", "warning"),
    ],
)
def test_narrow_recurrent_layers_are_launches_unless_they_tell_words(
    project: Project, model: str, head: str, level: str
) -> None:
    project.configure("select = ['SPD101']\ntorch = '2.4'")
    text = STEPS.format(network=TAGGER.format(head=head), model=model, data="rows", loss=LOSS)
    (found,) = project.findings(project.write("train.py", text), "--notes")
    assert found["level"] == level


SOUND = """
import librosa


class Sound(torch.utils.data.Dataset):
    def __init__(self, names):
        self.names = names

    def __len__(self):
        return len(self.names)

    def __getitem__(self, index):
        wave, rate = librosa.load(self.names[index])
        return {item}, 0
"""


@pytest.mark.parametrize(
    ("item", "model", "level"),
    [
        ("torch.from_numpy(librosa.feature.mfcc(y=wave, sr=rate))[None]", "torchvision.models.resnet18()", "note"),
        ("torch.from_numpy(wave)", "torchvision.models.resnet18()", "warning"),
        ("torch.from_numpy(librosa.feature.mfcc(y=wave, sr=rate))[None]", "torchvision.models.vit_b_16()", "warning"),
    ],
)
def test_a_loader_that_analyses_recordings_bounds_a_step_of_convolutions(
    project: Project, item: str, model: str, level: str
) -> None:
    project.configure("select = ['SPD101', 'SPD502']\ntorch = '2.4'")
    text = STEPS.format(network=SOUND.format(item=item), model=model, data="Sound(widths)", loss=LOSS)
    text = text.replace("batch_size=64", "batch_size=10, num_workers=4")
    found = project.findings(project.write("train.py", text), "--notes")
    assert {each["level"] for each in found} == {level}


COPIED = """
import copy
import torch
from torch.utils.data import DataLoader


class Client:
    def __init__(self, model):
        self.model = copy.deepcopy(model)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def train(self, loader):
        for rows, labels in loader:
            loss = torch.nn.functional.cross_entropy(self.model(rows.cuda()), labels.cuda())
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()


model = torch.nn.Sequential(torch.nn.Linear(64, {width}), torch.nn.ReLU(), torch.nn.Linear({width}, 9)).cuda()
for client in [Client(model), Client(copy.deepcopy(model))]:
    client.train(DataLoader(torch.load("rows.pt"), batch_size=64))
"""


@pytest.mark.parametrize(("width", "found"), [(64, 0), (4096, 1)])
def test_a_copied_network_is_as_wide_as_the_one_it_is_made_of(project: Project, width: int, found: int) -> None:
    project.configure("select = ['SPD101']\ntorch = '2.13'")
    assert len(project.findings(project.write("train.py", COPIED.format(width=width)))) == found


FEDERATED = """
import argparse
import numpy as np
import torch
import torchvision
from torch import nn
from torch.utils.data import DataLoader, Dataset
from torchvision import datasets, transforms

parser = argparse.ArgumentParser()
parser.add_argument("--data", default="DATA")
parser.add_argument("--net", default="NET")
parser.add_argument("--batch-size", type=int, default=64)
args = parser.parse_args()


class Part(Dataset):
    def __init__(self, whole, indices):
        self.whole, self.indices = whole, [int(each) for each in indices]

    def __len__(self):
        return len(self.indices)

    def __getitem__(self, index):
        image, label = self.whole[self.indices[index]]
        return image, label


def parts_of(whole, indices, batch_size, in_batches=True):
    if in_batches:
        return [DataLoader(Part(whole, each), batch_size=batch_size) for each in indices]
    return [DataLoader(Part(whole, each), batch_size=len(whole)) for each in indices]


class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Conv2d(3, 512, 3), nn.Conv2d(512, 512, 3)

    def forward(self, x):
        return self.last(self.first(x).relu()).mean((2, 3))


if args.data == "cifar":
    whole = datasets.CIFAR10("data", transform=transforms.ToTensor())
if args.data == "faces":
    whole = datasets.ImageFolder("faces", transform=transforms.ToTensor())
if args.net == "resnet":
    model = torchvision.models.resnet18(num_classes=10)
if args.net == "plain":
    model = Plain()
model = model.cuda()
optimizer = torch.optim.Adam(model.parameters())
for loader in parts_of(whole, np.arange(len(whole)).reshape(10, -1), args.batch_size):
    for images, labels in loader:
        loss = nn.functional.cross_entropy(model(images.cuda()), labels.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("data", "net", "level"), [("cifar", "resnet", "note"), ("faces", "resnet", "warning"), ("cifar", "plain", "warning")]
)
def test_parts_of_thumbnails_through_the_network_that_is_chosen_by_default(
    project: Project, data: str, net: str, level: str
) -> None:
    project.configure("select = ['SPD101']\ntorch = '2.13'")
    text = FEDERATED.replace("DATA", data).replace("NET", net)
    (found,) = project.findings(project.write("train.py", text), "--notes")
    assert found["level"] == level


LETTERS = """
import torch
import yaml
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Letters(Dataset):
    def __init__(self, words, letters):
        self.words, self.letters = words, letters
        self.index = {{each: at for at, each in enumerate(letters)}}

    def __len__(self):
        return len(self.words)

    def size(self):
        return len(self.letters) + 1

    def __getitem__(self, at):
        return torch.tensor([self.index[each] for each in self.words[at][:8]])


class Attending(nn.Module):
    def __init__(self, size, width):
        super().__init__()
        self.embed = nn.Embedding(size, width)
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.head = nn.Linear(width, size)

    def forward(self, x):
        x = self.embed(x)
        weights = (self.query(x) @ self.key(x).transpose(-2, -1)).softmax(-1)
        return self.head(self.narrow(self.wide(weights @ self.value(x))))


with open("words.txt") as file:
    text = file.read()
words = text.split()
data = Letters(words, {letters})
model = Attending(data.size(), {width}).cuda()
optimizer = torch.optim.Adam(model.parameters())
for letters in DataLoader(data, batch_size=32):
    letters = letters.cuda()
    loss = nn.functional.cross_entropy(model(letters[:, :-1]).flatten(0, 1), letters[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("letters", "width", "level"),
    [
        ("sorted(list(set(text)))", 64, "note"),
        ("sorted(set(''.join(words)))", 64, "note"),
        ("sorted(set(words))", 64, "warning"),
        ("sorted(set(text))", 256, "warning"),
    ],
)
def test_narrow_attention_over_letters_is_launches(project: Project, letters: str, width: int, level: str) -> None:
    project.configure("select = ['SPD101']\ntorch = '2.13'")
    text = LETTERS.format(letters=letters, width=width)
    (found,) = project.findings(project.write("train.py", text), "--notes")
    assert found["level"] == level


WIDTH = LETTERS.replace(
    "data = Letters",
    """parser = __import__("argparse").ArgumentParser()
parser.add_argument("--config", required=True)
with open(parser.parse_args().config) as file:
    config = yaml.safe_load(file)
width = config["network"].get("width")
data = Letters""",
)


@pytest.mark.parametrize(
    ("configs", "level"),
    [
        ({"small.yaml": "network:\n  width: 32\n", "large.yaml": "network:\n  width: 64\n"}, "note"),
        ({"small.yaml": "network:\n  width: 32\n", "large.yaml": "network:\n  width: 1024\n"}, "warning"),
        ({"search.json": '{"network": {"width": {"low": 16, "high": 64, "log": true}}}'}, "note"),
        ({"small.yaml": "network:\n  width: auto\n"}, "warning"),
        ({"small.yaml": "network:\n  width: 32\n", "configs/full.yaml": "width: 4096\n"}, "warning"),
        ({"small.yaml": "network:\n  width: 32\n", "tests/wide.yaml": "width: 4096\n"}, "note"),
        ({"tests/small.yaml": "network:\n  width: 32\n"}, "warning"),
        ({"loop.yaml": "network: &a\n  width: 32\n  again: *a\n"}, "note"),
        ({}, "warning"),
    ],
)
def test_a_width_is_at_most_what_the_projects_configurations_say(
    project: Project, configs: dict[str, str], level: str
) -> None:
    project.configure("select = ['SPD101']\ntorch = '2.13'")
    for name, text in configs.items():
        project.write(name, text)
    text = WIDTH.format(letters="sorted(set(text))", width="width")
    (found,) = project.findings(project.write("train.py", text), "--notes")
    assert found["level"] == level


CROPS = """
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset
from torchvision.transforms import RandomCrop, ToTensor


class Crops(Dataset):
    def __init__(self, files, side):
        self.files, self.side = files, side

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        image = RandomCrop(self.side)(Image.open(self.files[index]).convert("L"))
        return ToTensor()(image.resize((self.side // 2, self.side // 2))), ToTensor()(image)


class Sharper(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.first = nn.Conv2d(1, width, 5, padding=2)
        self.middle = {middle}
        self.last = nn.ConvTranspose2d(width, 1, kernel_size=9, stride=2, padding=4, output_padding=1)

    def forward(self, x):
        return self.last(self.middle(self.first(x)))


data = Crops(torch.load("files.pt"), {side})
model = Sharper({width}, 9).cuda()
optimizer = torch.optim.Adam(model.parameters())
for small, large in DataLoader(data, batch_size={batch}, num_workers=8):
    loss = nn.functional.mse_loss(model(small.cuda()), large.cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("side", "width", "batch", "middle", "level"),
    [
        ("2 * 32", "24", "64", "nn.Conv2d(width, width, kernel_size=3, padding=1)", "note"),
        ("2 * 32", "256", "64", "nn.Conv2d(width, width, kernel_size=3, padding=1)", "warning"),
        ("256", "24", "64", "nn.Conv2d(width, width, kernel_size=3, padding=1)", "warning"),
        ("2 * 32", "24", "4096", "nn.Conv2d(width, width, kernel_size=3, padding=1)", "warning"),
        ("2 * 32", "24", "64", "nn.Sequential(*(nn.Conv2d(width, width, 3) for _ in range(depth)))", "warning"),
        ("torch.load('side.pt')", "24", "64", "nn.Conv2d(width, width, kernel_size=3, padding=1)", "warning"),
    ],
)
def test_convolutions_of_small_crops_that_compute_little_are_launches(
    project: Project, side: str, width: str, batch: str, middle: str, level: str
) -> None:
    project.configure("select = ['SPD101']\ntorch = '2.13'")
    text = CROPS.format(side=side, width=width, batch=batch, middle=middle)
    (found,) = project.findings(project.write("train.py", text), "--notes")
    assert found["level"] == level


@pytest.mark.parametrize(
    ("imports", "level"), [("transforms import ToTensor", "note"), ("models import vit_b_16", "warning")]
)
def test_a_package_that_only_shows_pictures_says_nothing_of_the_network(project: Project, imports: str, level: str) -> None:
    project.configure("select = ['SPD101']\ntorch = '2.13'")
    project.write("pictures.py", f"from torchvision.{imports}\n\ndef shown(x):\n    return x\n")
    text = STEPS.format(network="import pictures\nimport hidden", model="hidden.network(args)", data="rows", loss=LOSS)
    (found,) = project.findings(project.write("train.py", text.replace("import torchvision\n", "")), "--notes")
    assert found["level"] == level


FILTERS = """
class Filters(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(9000, 50)
        self.across = nn.ModuleList([nn.Conv2d({taken}, {filters}, (size, 50)) for size in (1, 2, 3)])
        self.down = nn.Conv2d({taken}, 4, (5, 1))
        self.head = nn.Linear(200 + 3 * {filters}, 50)

    def forward(self, x):
        rows = self.embed(x).unsqueeze(1)
        parts = [F.relu(each(rows)).squeeze(3).amax(2) for each in self.across]
        return self.head(torch.cat([self.down(rows).flatten(1)[:, :200], *parts], 1))
"""


@pytest.mark.parametrize(
    ("taken", "filters", "level"), [(1, 16, "note"), (1, "args.hidden", "note"), (1, 256, "warning"), (3, 16, "warning")]
)
def test_filters_over_embeddings(project: Project, taken: int, filters: int | str, level: str) -> None:
    project.configure("select = ['SPD101']\ntorch = '2.13'")
    network = FILTERS.format(taken=taken, filters=filters)
    loss = "F.cross_entropy(model(inputs.cuda()), labels.cuda())"
    text = STEPS.format(network=network, model="Filters()", data='torch.load("rows.pt")', loss=loss)
    (found,) = project.findings(project.write("train.py", text), "--notes")
    assert found["level"] == level
