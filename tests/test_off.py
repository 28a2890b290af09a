"""What no run does, by the defaults of the options and by the commands that the project ships, is a note; beside each, one
that runs."""

from __future__ import annotations

import pytest

from tests.conftest import Project

TRAIN = """
import argparse

import torch


def parsed():
    parser = argparse.ArgumentParser()
    parser.add_argument({option})
    parser.add_argument("--cuda", action="store_true")
    return parser.parse_args()


def norm_of(model):
    return sum(p.grad.norm() for p in model.parameters()).item()


class Trainer:
    def __init__(self, args):
        self.args = args
        self.model = torch.nn.Linear(64, 64).cuda()

    def fit(self, loader):
        args, total = self.args, 0.0
        optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        for images in loader:
            loss = self.model(images.cuda()).mean()
            optimizer.zero_grad()
            loss.backward()
            {guarded}
            optimizer.step()
        print(total)


Trainer(parsed()).fit(torch.load("batches.pt"))
"""
READ = "total += loss.item()"


def _levels(project: Project, text: str, code: str = "SPD301", name: str = "train.py") -> list[str]:
    project.configure(f"select = ['{code}']")
    return [each["level"] for each in project.findings(project.write(name, text), "--notes")]


def _guarded(option: str, test: str, statement: str = READ) -> str:
    return TRAIN.format(option=option, guarded=f"if {test}:\n                {statement}")


MODEL = '"--model", default="lstm"'
PLOT = '"--plot", action="store_true"'


@pytest.mark.parametrize(
    ("option", "test", "level"),
    [
        (PLOT, "args.plot", "note"),
        (PLOT, "not args.plot", "warning"),
        (PLOT, "self.args.plot", "note"),
        (PLOT, "args.plot and len(images) > 1", "note"),
        (PLOT, "args.plot or len(images) > 1", "warning"),
        (MODEL, 'args.model == "transformer"', "note"),
        (MODEL, 'args.model == "lstm"', "warning"),
        (MODEL, 'args.model != "lstm"', "note"),
        (MODEL, 'args.model in ("gpt", "transformer")', "note"),
        (MODEL, 'args.model in ("gpt", "lstm")', "warning"),
        (MODEL, "args.model in images.kinds", "warning"),
        (MODEL, 'args.model.upper() == "TRANSFORMER"', "note"),
        (MODEL, 'args.model.upper() == "LSTM"', "warning"),
        (MODEL, 'args.model.startswith("gpt")', "note"),
        (MODEL, 'args.model.startswith(("gpt", "lstm"))', "warning"),
        (MODEL, "args.model.startswith(images.kind)", "warning"),
        ('"--beta", type=float, default=0.0', "args.beta > 0", "note"),
        ('"--beta", type=float, default=0.5', "args.beta > 0", "warning"),
        ('"--beta", type=float, required=True', "args.beta > 0", "warning"),
        ('"--teacher", default=None', "args.teacher is not None", "note"),
        ('"--teacher", default=None', "args.teacher is None", "warning"),
        (PLOT, "args.cuda", "warning"),
        ('"--n_gpu", type=int, default=1', "args.n_gpu > 1", "warning"),
    ],
)  # fmt: skip
def test_what_no_default_chooses_is_a_note(project: Project, option: str, test: str, level: str) -> None:
    assert _levels(project, _guarded(option, test)) == [level]


@pytest.mark.parametrize(
    ("test", "level"), [("if not args.plot:", "note"), ("if args.plot:", "warning"), ("if len(images) > 64:", "warning")]
)
def test_what_an_earlier_jump_leaves_out_is_a_note(project: Project, test: str, level: str) -> None:
    guarded = f"{test}\n                optimizer.step()\n                continue\n            {READ}"
    assert _levels(project, TRAIN.format(option=PLOT, guarded=guarded)) == [level]


@pytest.mark.parametrize(
    ("lines", "level"),
    [
        ("args.plot, seed=True, 3", "warning"),
        ("args.plot, seed=(True, 3)", "warning"),
        ("seed = chosen(args.plot, count=3)", "note"),
    ],
)
def test_an_option_that_is_set_beside_another_name(project: Project, lines: str, level: str) -> None:
    text = _guarded(PLOT, "args.plot").replace("Trainer(parsed()).", f"args = parsed()\n{lines}\nTrainer(args).")
    assert _levels(project, text) == [level]


@pytest.mark.parametrize(("test", "level"), [("args.plot", "note"), ("not args.plot", "warning")])
def test_a_function_that_only_an_option_calls_is_as_its_call(project: Project, test: str, level: str) -> None:
    assert _levels(project, _guarded(PLOT, test, "total += norm_of(self.model)")) == [level]


@pytest.mark.parametrize(
    ("name", "shipped", "level"),
    [
        ("README.md", "`python train.py --epochs 3`", "note"),
        ("README.md", "```\npython train.py \\\n  --epochs 3 \\\n  --plot\n```", "warning"),
        ("README.md", "```\npython train.py\n\n## length\n--epochs 3   # passes\n--plot       # curves.\n```", "warning"),
        ("README.md", "```\npython train.py\n    --widths 1 2 3\n    --epochs 3 --plot\n```", "warning"),
        ("README.md", "```\npython train.py ^\n    --epochs 3 ^\n    --plot\n```", "warning"),
        ("README.md", "```\npython train.py --model <model>\n--epochs <epochs> --plot --gpu <gpu>\n```", "note"),
        ("README.md", "```\npython train.py `\n    --epochs 3 `\n    --plot\n```", "warning"),
        ("README.md", "`python train.py --epochs 3`\n\n--plot draws the curves of it all", "note"),
        ("README.md", "usage: train.py [-h] [--plot]", "note"),
        ("README.md", "`python other.py --plot`", "note"),
        ("README.md", "Try `--plot`, which tells more.", "note"),
        ("README.md", "train.py draws curves. If you want them, add --plot to its arguments.", "note"),
        ("README.md", "Curves are drawn by train.py --epochs 3 --plot, as in the paper.", "warning"),
        ("scripts/run.sh", 'OPTIONS="--plot"\npython train.py $OPTIONS', "warning"),
        ("scripts/run.sh", '# OPTIONS="--plot"\npython train.py', "note"),
        ("scripts/run.sh", "python -m train --plot", "warning"),
        ("jobs.yaml", "- python train.py --epochs 3\n  --plot", "warning"),
        ("Makefile", "train:\n\tpython train.py --plot-folder out", "note"),
    ],
)  # fmt: skip
def test_an_option_that_a_shipped_command_sets_is_on(project: Project, name: str, shipped: str, level: str) -> None:
    project.write(name, shipped + "\n")
    project.write("other.py", "")
    assert _levels(project, _guarded(PLOT, "args.plot")) == [level]


@pytest.mark.parametrize(
    ("shipped", "level"),
    [
        ("python train.py --model transformer", "warning"),
        ("python train.py --model=transformer", "warning"),
        ("python train.py --model gpt", "note"),
        ("python train.py --model $MODEL", "warning"),
        ("MODEL=gpt\npython train.py --model $MODEL", "note"),
        ("MODEL=transformer\npython train.py --model ${MODEL}", "warning"),
    ],
)
def test_a_shipped_value_chooses_as_the_default_does(project: Project, shipped: str, level: str) -> None:
    project.write("run.sh", shipped + "\n")
    assert _levels(project, _guarded(MODEL, 'args.model == "transformer"')) == [level]


STAGES = """
import argparse

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--train", {train})
parser.add_argument("--prune", action="store_true")
args = parser.parse_args()
model = torch.nn.Linear(64, 64).cuda()
loader = torch.load("batches.pt")
if args.train:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for images in loader:
        loss = model(images.cuda()).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())
if args.prune:
    scores = [model(images.cuda()).mean().item() for images in loader]
    for images in loader:
        scores.append(model(images.cuda()).mean().item())
    print(scores)
"""


def test_a_training_that_an_option_begins_is_no_part_that_is_off(project: Project) -> None:
    assert _levels(project, STAGES.format(train='action="store_true"'))[0] == "warning"


PROGRAMS = """
import argparse

from trainer import Trainer

parser = argparse.ArgumentParser()
parser.add_argument("--plot", action="{action}")
Trainer(parser.parse_args()).fit([])
"""


@pytest.mark.parametrize(("other", "level"), [("store_true", "note"), ("store_false", "warning")])
def test_an_option_of_several_programs_is_off_where_it_is_in_each(project: Project, other: str, level: str) -> None:
    project.write("README.md", "Trains.\n")
    project.write("first.py", PROGRAMS.format(action="store_true"))
    project.write("second.py", PROGRAMS.format(action=other))
    trainer = _guarded(PLOT, "self.args.plot").rpartition("Trainer(")[0].replace("def parsed", "def unused")
    assert _levels(
        project, trainer.replace('    parser.add_argument("--plot", action="store_true")\n', ""), name="trainer.py"
    ) == [level]


TWO_FORWARDS = """
import argparse

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--model", default="{default}")
args = parser.parse_args()
model = torch.nn.Sequential(torch.nn.Linear(512, 4096), torch.nn.Linear(4096, 4096)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for words in torch.load("batches.pt"):
    if args.model == "transformer":
        output = model(words.cuda())
    else:
        output = model(words.cuda() + 1)
    loss = output.square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(("default", "line"), [("lstm", "words.cuda() + 1"), ("transformer", "model(words.cuda())")])
def test_a_step_is_told_of_at_the_network_that_is_trained_by_default(project: Project, default: str, line: str) -> None:
    project.write("README.md", "python train.py --model transformer\n")
    project.configure("select = ['SPD101']")
    text = TWO_FORWARDS.format(default=default)
    found = project.findings(project.write("train.py", text), "--notes")
    assert [(each["level"], text.splitlines()[each["line"] - 1].find(line) > 0) for each in found] == [("warning", True)]


BOARD = """
import torch
import wandb

ONLINE = {online}
wandb.init(project="lines", {mode})
model = torch.nn.Linear(64, 64).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for images in torch.load("batches.pt"):
    loss = model(images.cuda()).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    wandb.log({{"loss": loss}})
"""


@pytest.mark.parametrize(
    ("online", "mode", "level"),
    [
        ("False", 'mode="disabled"', "note"),
        ("False", 'mode="online" if ONLINE else "disabled"', "note"),
        ("True", 'mode="online" if ONLINE else "disabled"', "warning"),
        ("False", 'mode="offline"', "warning"),
        ("False", 'name="disabled"', "warning"),
    ],
)
def test_a_disabled_board_reads_nothing(project: Project, online: str, mode: str, level: str) -> None:
    text = BOARD.format(online=online, mode=mode)
    assert _levels(project, text, "SPD303") == [level]
    assert _levels(project, text.replace('"loss": loss', '"loss": loss.item()')) == ["warning"]


KEPT = """
import argparse

import torch


class Trainer:
    def __init__(self, model, plot=PLOT):
        self.model = model.cuda()
        self.plot = plot

    def fit(self, loader):
        total = 0.0
        optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        for images in loader:
            loss = self.model(images.cuda()).mean()
            optimizer.zero_grad()
            loss.backward()
            if self.plot:
                total += loss.item()
            optimizer.step()
        print(total)


parser = argparse.ArgumentParser()
parser.add_argument("--plot", action="store_true")
args = parser.parse_args()
trainer = Trainer(torch.nn.Linear(64, 64)MADE)
SET
trainer.fit(torch.load("batches.pt"))
"""


@pytest.mark.parametrize(
    ("default", "made", "also", "level"),
    [
        ("True", ", args.plot", "pass", "note"),
        ("True", "", "pass", "warning"),
        ("False", ", plot=not args.plot", "pass", "warning"),
        ("False", "", "trainer.plot = True", "warning"),
        ("False", "", "trainer.plot = input() == 'y'", "warning"),
        ("False", "", "trainer.plot |= args.plot", "warning"),
    ],
)
def test_what_an_object_is_made_with_is_off_too(project: Project, default: str, made: str, also: str, level: str) -> None:
    text = KEPT.replace("PLOT", default).replace("MADE", made).replace("SET", also)
    assert _levels(project, text) == [level]


@pytest.mark.parametrize(
    ("start", "level"),
    [
        ("run(**vars(parsed()))", "note"),
        ("run(**vars(parsed()), loader=[])", "note"),
        ("options = vars(parsed())\noptions.update(torch.load('o.pt'))\nrun(**options)", "warning"),
        ("run(*torch.load('o.pt'))", "warning"),
    ],
)
def test_options_that_are_handed_on_all_at_once(project: Project, start: str, level: str) -> None:
    text = _guarded(PLOT, "self.plot").replace(
        "def __init__(self, args):", "def __init__(self, args, plot):\n        self.plot = plot"
    )
    text = text.replace("args, total = self.args, 0.0", "total = 0.0")
    trains = "def run(plot, cuda=True, loader=None):\n    Trainer(None, plot).fit(loader)\n"
    assert _levels(project, text.replace('Trainer(parsed()).fit(torch.load("batches.pt"))', f"{trains}\n\n{start}")) == [
        level
    ]


WRITTEN = """
import torch


def pretrain(model, loader, optimizer):
    total = 0.0
    for images in loader:
        loss = model(images.cuda()).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total


def train(model, loader, optimizer, options):
    if options["pretrain"]:
        print(pretrain(model, loader, optimizer))
    {another}
    for images in loader:
        loss = model(images.cuda()).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    options = {made}
    {sets}
    net = torch.nn.Linear(64, 64).cuda()
    train(net, torch.load("batches.pt"), torch.optim.SGD(net.parameters(), lr=0.1), options)
"""


@pytest.mark.parametrize(
    ("made", "sets", "level"),
    [
        ("{}", "options['pretrain'] = False", "note"),
        ("{}", "options['pretrain'] = True", "warning"),
        ("{'pretrain': False}", "options['width'] = 64", "note"),
        ("dict(pretrain=False)", "pass", "note"),
        ("{'pretrain': False}", "options['pretrain'] = input() == 'y'", "warning"),
        ("{'pretrain': False}", "options.update(torch.load('options.pt'))", "warning"),
        ("{'pretrain': False}", "options.update(pretrain=True)", "warning"),
        ("{'pretrain': False}", "options.update({'width': 64})", "note"),
        ("{'pretrain': False}", "options.update(dict(input().split('=') for _ in range(2)))", "warning"),
        ("{'pretrain': False}", "for key in ('pretrain', 'width'):\n        options[key] = input()", "warning"),
        ("{'pretrain': False}", "options |= {'pretrain': True}", "warning"),
        ("{'pretrain': False}", "options |= {'width': 64}", "warning"),
        ("{'pretrain': False}", "options['width'], options['pretrain'] = 64, True", "warning"),
        ("{'pretrain': False}", "for options['pretrain'] in (False, True):\n        pass", "warning"),
        ("{'pretrain': False}", "options.update([('pretrain', True)])", "warning"),
        ("{'pretrain': False}", "options.update(a.split('=') for a in input().split())", "warning"),
        ("{'pretrain': False}", "options.pop('pretrain')\n    options.setdefault('pretrain', True)", "warning"),
        ("{'pretrain': False}", "for key in input().split():\n        options[key] |= True", "warning"),
        ("{'pretrain': False}", "kept = options\n    kept['pretrain'] = True", "warning"),
        ("{'pretrain': False}", "from shared import override\n    override(options)", "warning"),
        ("{'pretrain': False}", "from elsewhere import override\n    override(options)", "warning"),
        ("{'pretrain': False}", "from printing import show\n    show(options)", "note"),
        (
            "{'pretrain': False}",
            "from threading import Thread\n    Thread(target=train, args=(1, 2, 3, {'pretrain': True})).start()",
            "warning",
        ),
        ("torch.load('options.pt')", "options['width'] = 64", "warning"),
        ("{'pretrain': False, 'tries': 0}", "if options['tries']:\n        options['pretrain'] = input()", "note"),
        ("{'pretrain': False, 'tries': 1}", "if options['tries']:\n        options['pretrain'] = input()", "warning"),
    ],
)
def test_a_stage_that_a_dict_of_options_leaves_out(project: Project, made: str, sets: str, level: str) -> None:
    changes = "def override(settings):\n    for key in input().split():\n        settings[key] = True\n"
    project.write("shared.py", changes)
    project.write("printing.py", "def show(settings):\n    print(settings['width'])\n")
    text = WRITTEN.replace("{made}", made).replace("{sets}", sets).replace("{another}", "pass")
    assert _levels(project, text) == [level]


def test_one_of_two_stages_that_a_dict_of_options_chooses(project: Project) -> None:
    """Who has two trainings in one file wants to know of both."""
    chooses = 'if options["pretrain"]:\n        print(pretrain(model, loader, optimizer))\n        return'
    text = WRITTEN.replace("{another}", "return train_on(model, loader, optimizer)").replace("{made}", "{'pretrain': False}")
    text = text.replace('if options["pretrain"]:\n        print(pretrain(model, loader, optimizer))', chooses)
    assert _levels(project, text.replace("{sets}", "pass").replace("train_on(", "pretrain(")) == ["warning"]


def test_a_loss_that_only_another_model_is_given(project: Project) -> None:
    """A variable is what the runs that are made give it, also behind a call into another file."""
    losses = """
import torch


def train(model, loader, optimizer, criterion):
    total = 0.0
    for images in loader:
        if criterion is None:
            loss = model(images.cuda()).mean()
        else:
            loss = criterion(model(images.cuda()))
            total += loss.item()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return total
"""
    main = """
import argparse

import torch
from losses import train

parser = argparse.ArgumentParser()
parser.add_argument("--model", default="MODEL")
args = parser.parse_args()
if args.model in ("gan", "wide-gan"):
    criterion = torch.nn.BCELoss()
else:
    criterion = None
net = torch.nn.Linear(64, 64).cuda()
train(net, torch.load("batches.pt"), torch.optim.SGD(net.parameters(), lr=0.1), criterion)
"""
    for model, level in (("critic", "note"), ("gan", "warning")):
        project.write("main.py", main.replace("MODEL", model))
        assert _levels(project, losses, name="losses.py") == [level]


SPAWNED = """
import argparse

import torch
import torch.multiprocessing as mp

parser = argparse.ArgumentParser()
parser.add_argument("--distributed", default=True, type=bool)
parser.add_argument("--weight", default=0.1, type=float)
args = parser.parse_args()


def worker(rank, args):
    total = 0.0
    model = torch.nn.Sequential(*[torch.nn.Linear(64, 64) for _ in range(30)]).cuda(rank)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for images in torch.utils.data.DataLoader(torch.load("rows.pt"), batch_size=64, num_workers=4):
        loss = model(images.cuda()).mean()
        if args.weight {compared} 0:
            total += loss.item()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(total)


if args.distributed:
    mp.spawn(worker, nprocs=torch.cuda.device_count(), args=(args,))
else:
    worker(0, args)
"""


@pytest.mark.parametrize(("compared", "level"), [("==", "note"), (">", "warning")])
def test_a_function_that_is_handed_on_runs_as_that_does(project: Project, compared: str, level: str) -> None:
    assert _levels(project, SPAWNED.format(compared=compared)) == [level]


TOLD = """
import argparse

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--debug", action="store_true")
args = parser.parse_args()


def dump(loss):
    return loss.item()


{told}
total = 0.0
model = torch.nn.Sequential(*[torch.nn.Linear(64, 64) for _ in range(30)]).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for images in torch.utils.data.DataLoader(torch.load("rows.pt"), batch_size=64, num_workers=4):
    loss = model(images.cuda()).mean()
    if args.debug:
        total += dump(loss)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize("told", ["", "print('debug by', dump)", "name = getattr(dump, '__name__')"])
def test_a_function_that_is_told_of_is_not_called(project: Project, told: str) -> None:
    assert _levels(project, TOLD.format(told=told)) == ["note"]


OPTIONS = """
import argparse


class Options:
    def __init__(self):
        self.parser = argparse.ArgumentParser()
        self.parser.add_argument("--show", type=int, default={default})
        self.parser.add_argument("--rows", default="rows.pt")

    def parse(self, args=""):
        opt = self.parser.parse_args() if args == "" else self.parser.parse_args(args)
        return opt

    def completed(self, opt, rows):
        opt.count = len(rows)
        return opt
"""
PARSED = """
import torch
from options import Options


class Trainer:
    def __init__(self, opt, model):
        self.opt, self.model = opt, model

    def fit(self, loader, optimizer):
        opt, total = self.opt, 0.0
        for images in loader:
            loss = self.model(images.cuda()).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if opt.show > 0:
                total += loss.item()
        print(total)


def main(opt):
    rows = torch.load(opt.rows)
    opt = {given}
    model = torch.nn.Linear(64, 64).cuda()
    Trainer(opt, model).fit(torch.utils.data.DataLoader(rows), torch.optim.SGD(model.parameters(), lr=0.1))


main(Options().parse())
"""


@pytest.mark.parametrize("given", ["opt", "Options().completed(opt, rows)"])
@pytest.mark.parametrize(("default", "level"), [("0", "note"), ("1", "warning")])
def test_an_option_that_an_object_of_options_parses(project: Project, given: str, default: str, level: str) -> None:
    project.write("options.py", OPTIONS.format(default=default))
    assert _levels(project, PARSED.format(given=given)) == [level]


ENCODERS = """
import torch
from torch import nn


class Masked(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(512, 512)

    def forward(self, x):
        if (x > 0).sum() == 0:
            return x
        return self.layer(x)


class Model(nn.Module):
    def __init__(self, kind="plain"):
        super().__init__()
        if kind == "masked":
            self.encoder = Masked()
        else:
            self.encoder = nn.Linear(512, 512)

    def forward(self, x):
        return self.encoder(x)
"""
ENCODED = """
import torch
from encoders import Model

model = Model({given}).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x in torch.utils.data.DataLoader(torch.load("rows.pt")):
    loss = model(x.cuda()).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(("given", "is_found"), [("", False), ('"plain"', False), ('"masked"', True)])
def test_a_class_that_no_run_makes_an_object_of(project: Project, given: str, is_found: bool) -> None:
    project.configure("select = ['SPD311']")
    project.write("encoders.py", ENCODERS)
    found = project.findings(project.write("train.py", ENCODED.format(given=given)))
    assert bool(found) is is_found
