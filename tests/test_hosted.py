"""What costs time on a GPU alone is a note where the project's own commands train on the CPU; beside each, one that does
not."""

from __future__ import annotations

import pytest

from tests.conftest import Project

TRAIN = """
import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

parser = argparse.ArgumentParser()
parser.add_argument({option})
args = parser.parse_args()
{chosen}


class Sounds(Dataset):
    def __init__(self, names):
        self.names = names

    def __len__(self):
        return len(self.names)

    def __getitem__(self, index):
        return torch.load(self.names[index]), index % 10


{network}
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
loader = DataLoader(Sounds([f"{{i}}.pt" for i in range(9000)]), batch_size=64, num_workers=4, pin_memory=True)
for epoch in range(10):
    total = 0.0
    for x, y in loader:
        {moved}
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(total)
"""
LAYERS = "model = nn.Sequential(nn.Flatten(), nn.Linear(4096, 2048), nn.ReLU(), nn.Linear(2048, 10)).to(device)"
PLANES = "model = nn.Sequential(nn.Conv2d(1, 64, 3), nn.ReLU(), nn.Conv2d(64, 64, 3), nn.Flatten()).to(device)"
MOVED = "x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)"
FLAG, NAME = '"--cuda", action="store_true"', '"--device", default="cpu"'
ASKED = 'device = torch.device("cuda" if args.cuda else "cpu")'
FOUND = 'use_cuda = args.cuda and torch.cuda.is_available()\ndevice = torch.device("cuda" if use_cuda else "cpu")'
NAMED = 'args.device = torch.device(args.device if torch.cuda.is_available() else "cpu")'
NEVER = '"--no-cuda", action="store_true", default=True'
REFUSED = f"args.cuda = not args.no_cuda and torch.cuda.is_available()\n{ASKED}"
ALWAYS = 'device = torch.device("cuda" if torch.cuda.is_available() else "cpu")'
COMMAND = "```\npython train.py\n```\n"


def _level(project: Project, code: str, readme: str, text: str) -> str:
    project.configure(f"select = ['{code}']")
    project.write("README.md", readme)
    (found,) = project.findings(project.write("train.py", text), "--notes", "--torch", "2.6")
    return str(found["level"])


def _text(option: str, chosen: str, network: str = LAYERS, moved: str = MOVED) -> str:
    text = TRAIN.format(option=option, chosen=chosen, network=network, moved=moved)
    return text.replace(".to(device", ".to(args.device") if chosen == NAMED else text


@pytest.mark.parametrize(
    ("option", "chosen", "readme", "level"),
    [
        (FLAG, ASKED, COMMAND, "note"),
        (FLAG, FOUND, COMMAND, "note"),
        (NAME, NAMED, COMMAND, "note"),
        (FLAG, ASKED, "usage: train.py [--cuda]\n" + COMMAND, "note"),
        (FLAG, ASKED, "Trains a network.", "warning"),
        (FLAG, ASKED, "CUDA_VISIBLE_DEVICES=1 python train.py", "warning"),
        (FLAG, ASKED, COMMAND + "\n    python train.py --cuda\n", "warning"),
        (FLAG, ALWAYS, COMMAND, "warning"),
        (NAME, NAMED, "    python train.py --device cuda:0", "warning"),
        (NAME, ALWAYS, COMMAND, "warning"),
        (NAME.replace("cpu", "cuda"), NAMED, COMMAND, "warning"),
        ('"--no-cuda", action="store_true"', ASKED.replace("args.cuda", "not args.no_cuda"), COMMAND, "warning"),
        (NEVER, REFUSED, "", "note"),
        (NEVER, REFUSED, "CUDA_VISIBLE_DEVICES=1 python train.py --no-cuda", "note"),
        (NEVER, ASKED.replace("args.cuda", "not args.no_cuda"), "", "note"),
        (NEVER.replace("default=True", "default=False"), REFUSED, COMMAND, "warning"),
        (NEVER, f"args.no_cuda = not torch.cuda.is_available()\n{REFUSED}", COMMAND, "warning"),
        (NEVER, f"{REFUSED}\nargs.cuda = True", COMMAND, "warning"),
        ('"--cpu", type=bool, default=True', ASKED.replace("args.cuda", "not args.cpu"), COMMAND, "note"),
        ('"--cpu", type=bool, default=True', ASKED.replace("args.cuda", "not args.cpu"), "", "warning"),
        ('"--keep-host", dest="cuda", action="store_false", default=False', ASKED, "", "note"),
        (FLAG, f"args.cuda = torch.cuda.is_available()\n{ASKED}", COMMAND, "warning"),
    ],
)
def test_a_read_in_a_training_that_runs_on_the_cpu(
    project: Project, option: str, chosen: str, readme: str, level: str
) -> None:
    assert _level(project, "SPD301", readme, _text(option, chosen)) == level


def test_what_is_put_on_a_gpu_without_the_option(project: Project) -> None:
    text = _text(FLAG, ASKED, moved="x, y = x.cuda(), y.cuda()")
    assert _level(project, "SPD301", COMMAND, text) == "warning"


@pytest.mark.parametrize(
    ("code", "network", "level"),
    [("SPD502", PLANES, "note"), ("SPD203", PLANES, "note"), ("SPD502", LAYERS, "warning"), ("SPD203", LAYERS, "warning")],
)
def test_convolutions_on_the_cpu_take_the_step(project: Project, code: str, network: str, level: str) -> None:
    assert _level(project, code, COMMAND, _text(FLAG, ASKED, network)) == level
    assert _level(project, code, "", _text(FLAG, ASKED, network)) == "warning"
    assert _level(project, code, "", _text(FLAG, 'device = torch.device("cpu")', network)) == level


IN_CLASS = """class Config:
    use_cuda = False


device = torch.device("cuda" if Config.use_cuda and torch.cuda.is_available() else "cpu")"""


@pytest.mark.parametrize(
    ("chosen", "level"),
    [
        ('use_gpu = False\ndevice = torch.device("cuda" if use_gpu and torch.cuda.is_available() else "cpu")', "note"),
        ('NO_CUDA = True\ndevice = torch.device("cpu" if NO_CUDA else "cuda:0")', "note"),
        ('use_gpu = True\ndevice = torch.device("cuda" if use_gpu else "cpu")', "warning"),
        (f"use_gpu = False\nuse_gpu = torch.cuda.is_available()\n{ASKED.replace('args.cuda', 'use_gpu')}", "warning"),
        (f"use_gpu = False\n{ALWAYS}", "warning"),
        (IN_CLASS, "warning"),
    ],
)
def test_a_variable_keeps_the_training_from_the_gpu(project: Project, chosen: str, level: str) -> None:
    assert _level(project, "SPD301", "", _text('"--seed"', chosen)) == level


IN_FUNCTION = """
import torch
from torch import nn
from torch.utils.data import DataLoader


def {trains}(rows, found):
    cuda = False
{again}    device = torch.device("cuda" if cuda and torch.cuda.is_available() else "cpu")
    net = nn.Linear(512, 512).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    total = 0.0
    for x, y in DataLoader(rows, batch_size=8):
        loss = nn.functional.mse_loss(net(x.to(device)), y.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total


{other}
train(torch.load("rows.pt"), 3)
"""


@pytest.mark.parametrize(
    ("again", "other", "level"),
    [
        ("", "", "note"),
        ("    cuda = found == 3\n", "", "warning"),
        ("", "def other():\n    cuda = True\n    return cuda", "warning"),
        ("", "def other(cuda):\n    return cuda", "warning"),
        ("", 'wanted = {"cuda": True}', "warning"),
        ("    if cuda or found:\n        rows = rows.cuda()\n", "", "warning"),
        ("", 'print(torch.load("config.pt").cuda)', "warning"),
    ],
)
def test_a_variable_of_the_training_keeps_it_from_the_gpu(project: Project, again: str, other: str, level: str) -> None:
    text = IN_FUNCTION.format(trains="train", again=again, other=other)
    assert _level(project, "SPD301", "", text) == level


def test_a_variable_of_a_helper_keeps_no_training_from_the_gpu(project: Project) -> None:
    helper = "def check(net):\n    use_cuda = False\n    return net.to('cuda') if use_cuda else net"
    text = IN_FUNCTION.format(trains="train", again="", other=helper).replace("cuda = False\n", "cuda = True\n", 1)
    assert _level(project, "SPD301", "", text) == "warning"


CHOOSES = """def chosen(force_cpu={default}):
    if force_cpu:
        return torch.device("cpu")
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


{before}
device = chosen({given})"""


@pytest.mark.parametrize(
    ("default", "given", "before", "level"),
    [
        ("False", "force_cpu=True", "", "note"),
        ("False", "True", "", "note"),
        ("True", "", "", "note"),
        ("False", "", "", "warning"),
        ("True", "False", "", "warning"),
        ("False", "force_cpu=args.seed == 3", "", "warning"),
        ("False", "force_cpu=True", "other = chosen()", "warning"),
        ("False", "force_cpu=True", 'kind = "cuda"\nprint(f"on {kind}")', "note"),
        ("False", "force_cpu=True", "import fire\nif args.seed:\n    fire.Fire(chosen)", "warning"),
        ("True", "**vars(args)", "", "warning"),
        ("False", "force_cpu=True", "def auc(x, force_cpu=False):\n    return x\n\n\nprint(auc(3))", "warning"),
        ("False", "force_cpu=True", 'kind = "cuda"\nmirror = torch.zeros(3).to(kind)', "warning"),
    ],
)
def test_an_argument_keeps_the_training_from_the_gpu(
    project: Project, default: str, given: str, before: str, level: str
) -> None:
    chosen = CHOOSES.format(default=default, given=given, before=before)
    assert _level(project, "SPD301", "", _text('"--seed"', chosen)) == level


CONFIGURED = """from settings import load_config

config = load_config("conf.yml")
device = torch.device({chosen})"""


@pytest.mark.parametrize(
    ("chosen", "conf", "readme", "level"),
    [
        ('config["device"]', "device: cpu", "", "note"),
        ('config["device"]', "train:\n  device: 'cpu'\ntest:\n  device: CPU", "", "note"),
        ('config["device"]', "train:\n  device: cpu\ntest:\n  device: cuda:0", "", "warning"),
        ('config["device"]', "device: cuda", "", "warning"),
        ('config["device"]', "epochs: 3", "", "warning"),
        ('config["device"]', "device: cpu", "    python train.py --device cuda", "warning"),
        ('"cuda" if torch.cuda.is_available() else "cpu"', "device: cpu", "", "warning"),
        ('"cuda" if config["device"] != "cpu" else "cpu"', "device: cpu", "", "note"),
    ],
)
def test_a_configuration_keeps_the_training_from_the_gpu(
    project: Project, chosen: str, conf: str, readme: str, level: str
) -> None:
    project.write("conf.yml", conf)
    assert _level(project, "SPD301", readme, _text('"--seed"', CONFIGURED.format(chosen=chosen))) == level


def test_the_update_of_a_training_that_never_asks_for_a_gpu_is_told_as_on_the_cpu(project: Project) -> None:
    project.configure("select = ['SPD502']")
    script = project.write("train.py", _text(NEVER, REFUSED))
    (found,) = project.findings(script, "--torch", "2.6")
    assert "one parameter after another" in found["message"]
    assert not project.findings(script, "--torch", "2.2")
    (found,) = project.findings(script, "--torch", "2.2", "--notes")
    assert found["level"] == "note"


@pytest.mark.parametrize(
    ("chosen", "is_told"),
    [
        ('device = torch.device("mps" if torch.backends.mps.is_available() else "cpu")', False),
        ('def found():\n    kind = "mps"\n    return kind\n\n\ndevice = found()', False),
        ('device = torch.device("xpu" if torch.xpu.is_available() else "cpu")', False),
        ("import torch_directml\ndevice = torch_directml.device()", False),
        ('device = torch.device("mps" if torch.backends.mps.is_available() else args.device)', True),
        ('device = torch.accelerator.current_accelerator() or "mps"', True),
        (ALWAYS, True),
    ],
)
@pytest.mark.parametrize("code", ["SPD101", "SPD205"])
def test_other_devices_are_none_of_cudas(project: Project, code: str, chosen: str, is_told: bool) -> None:
    project.configure(f"select = ['{code}']")
    moved = "x, y = x.to(device), y.to(device)"
    text = _text('"--device"', chosen, PLANES, moved)
    found = project.findings(project.write("train.py", text), "--notes", "--torch", "2.6")
    assert bool(found) is is_told


READS = """
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset
from drawing import draw


class Photos(Dataset):
    def __init__(self, paths):
        self.paths = paths

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        return torch.tensor(Image.open(self.paths[index]).resize((256, 256)).getdata())


model = torch.nn.Linear(3, 512).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(Photos(open("photos.txt").read().split()), batch_size=32)
for epoch in range(90):
    for images in loader:
        optimizer.zero_grad()
        model(images.cuda()).mean().backward()
        optimizer.step()
    draw(model)
"""


@pytest.mark.parametrize(
    ("drawing", "level"),
    [
        ("from PIL import ImageFont\n\n\ndef draw(model):\n    ImageFont.truetype('C:/Windows/Fonts/arial.ttf')\n", "note"),
        ("from PIL import ImageFont\n\n\ndef draw(model):\n    ImageFont.truetype('arial.ttf', 'http://a')\n", "warning"),
        ("FONT = 'C:/Windows/Fonts/arial.ttf'\n\n\ndef draw(model):\n    pass\n", "warning"),
        ("import winreg\n\n\ndef draw(model):\n    pass\n", "note"),
        ("try:\n    import winreg\nexcept ImportError:\n    winreg = None\n\n\ndef draw(model):\n    pass\n", "warning"),
        ("def draw(model):\n    import winreg\n", "warning"),
    ],
)
def test_workers_of_a_script_for_windows_that_would_run_it_again(project: Project, drawing: str, level: str) -> None:
    project.configure("select = ['SPD201']")
    project.write("drawing.py", drawing)
    (found,) = project.findings(project.write("train.py", READS), "--notes")
    assert found["level"] == level


BY_FLAG = """
import torch

on_cpu = True
model = torch.nn.Linear(512, 512){moved}
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for rows in torch.utils.data.DataLoader(torch.load("rows.pt")):
    if not on_cpu:
        rows = rows.cuda()
    loss = model(rows).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item())
"""


@pytest.mark.parametrize(
    ("moved", "worth"), [("", "low"), (".to(0)", "medium"), (".to(torch.device(1))", "medium"), (".cuda()", "medium")]
)
def test_a_device_by_its_number_is_a_gpu(project: Project, moved: str, worth: str) -> None:
    project.configure("select = ['SPD301', 'SPD303']\ntorch = '2.13'")
    found = project.findings(project.write("train.py", BY_FLAG.format(moved=moved)), "--notes")
    assert [each["worth"] for each in found] == [worth]
