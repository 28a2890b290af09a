"""What the solver and the shapes answer on small scripts: names, constants, roles, frequencies, programs."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from speedlint.ask.program import Program
from speedlint.ask.script import Options, Script
from speedlint.cures.beginnings import first_edit
from speedlint.facts import syntax
from speedlint.shapes.data.loaders import loader
from speedlint.shapes.data.per_item import is_per_item
from speedlint.torch.words import Frequency, Place, Role

Write = Callable[..., Script]


@pytest.fixture
def project(tmp_path: Path) -> Write:
    """Writes files and returns the script of the first one: ``project(train="...", utils="...")``."""

    def write(**files: str) -> Script:
        for name, text in files.items():
            path = tmp_path / (name.replace("__", "/") + ".py")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(text))
        (tmp_path / "requirements.txt").write_text("torch\n")
        first = next(iter(files)).replace("__", "/")
        return Program(Options()).script(tmp_path / f"{first}.py")

    return write


def last_call(script: Script, text: str) -> syntax.Call:
    """The last call that is written like this."""
    return next(call for call in reversed(script.source.of(syntax.Call)) if script.text(call) == text)


def expression(script: Script, text: str) -> syntax.BaseExpression:
    """The argument of the last ``probe(...)`` whose text is ``text``."""
    for call in reversed(script.source.of(syntax.Call)):
        if script.text(call) == f"probe({text})":
            return call.args[0].value
    raise AssertionError(text)


@pytest.mark.parametrize(
    ("imports", "spelling"),
    [
        ("import torch", "torch.utils.data.DataLoader"),
        ("import torch.utils.data as data", "data.DataLoader"),
        ("from torch.utils import data as D", "D.DataLoader"),
        ("from torch.utils.data import DataLoader as DL", "DL"),
        ("from torch.utils.data.dataloader import DataLoader", "DataLoader"),
        ("from torch.utils.data import DataLoader\nmake = DataLoader", "make"),
        ("try:\n    from torch.utils.data import DataLoader\nexcept ImportError:\n    DataLoader = None", "DataLoader"),
        ("from torch.utils.data import *", "DataLoader"),
    ],
)
def test_full_name_through_aliases(project: Write, imports: str, spelling: str) -> None:
    script = project(train=f"{imports}\nloader = {spelling}(dataset)\n")
    assert script.name(last_call(script, f"{spelling}(dataset)").func) == "torch.utils.data.DataLoader"


def test_a_rebound_name_is_not_the_import(project: Write) -> None:
    script = project(train="from torch import optim\n\n\ndef f(optim):\n    probe(optim.Adam)\n")
    assert script.name(expression(script, "optim.Adam")) is None


def test_global_at_the_top_of_a_module_says_nothing(project: Write) -> None:
    text = "import torch\n\nif __name__ == '__main__':\n    global maker\n    maker = torch.zeros\n    probe(maker)\n"
    script = project(train=text)
    assert script.name(expression(script, "maker")) == "torch.zeros"


def test_a_comprehension_in_a_function_sees_what_its_module_binds_further_down(project: Write) -> None:
    script = project(
        train="""
        def use(values):
            return [later(value) for value in values], [COUNT for _ in values]

        COUNT = 1

        def later(value):
            return value

        COUNT = 2
        """
    )
    callee = script.callee(last_call(script, "later(value)"))
    assert callee is not None
    assert callee.name == "later"
    (count,) = [
        name for name in script.source.of(syntax.Name) if name.value == "COUNT" and script.function(name) is not None
    ]
    assert script.constant(count) is None


def test_a_try_whose_branches_all_bind_hides_what_was_before(project: Write) -> None:
    script = project(
        train="""
        def use(batches, again):
            batch = 0
            while True:
                try:
                    batch = next(batches)
                except StopIteration:
                    batch = next(again)
                except OSError:
                    break
                print(batch)
                batch = 1
            try:
                batch = next(batches)
            except OSError:
                print("none")
            return str(batch)
        """
    )
    shown, returned = (last_call(script, text).args[0].value for text in ("print(batch)", "str(batch)"))
    assert isinstance(shown, syntax.Name)
    assert isinstance(returned, syntax.Name)
    assert [script.text(one.value) for one in script.names.reaching(shown) if one.value is not None] == [
        "next(again)",
        "next(batches)",
    ]
    assert len(script.names.reaching(returned)) == 5


def test_a_parameter_shadows_only_its_function(project: Write) -> None:
    script = project(train="import torch\n\n\ndef f(torch):\n    pass\n\n\nprobe(torch.zeros)\n")
    assert script.name(expression(script, "torch.zeros")) == "torch.zeros"


@pytest.mark.parametrize(
    ("setup", "asked", "value"),
    [
        ("WORKERS = 4", "WORKERS", 4),
        ("WORKERS = 2 * 4 - 1", "WORKERS", 7),
        ("p = argparse.ArgumentParser()\np.add_argument('--num-workers', '-j', type=int, default=3)\na = p.parse_args()",
         "a.num_workers", 3),
        (
            "p = argparse.ArgumentParser()\np.add_argument('--amp', action='store_true')\na, _ = p.parse_known_args()",
            "a.amp",
            False,
        ),
        ("@dataclass\nclass Config:\n    workers: int = 5\nc = Config()", "c.workers", 5),
        ("@dataclass\nclass Config:\n    workers: int = field(default=6)\nc = Config()", "c.workers", 6),
        ("class Config:\n    def __init__(self):\n        self.workers = 2\nc = Config()", "c.workers", 2),
        ("class C:\n    workers = 9", "C.workers", 9),
        ("c = {'workers': 7}", "c['workers']", 7),
        ("c = dict(workers=8)", "c.get('workers', 0)", 8),
        ("def other():\n    p = argparse.ArgumentParser()\n    p.add_argument('--workers', default=1)\n    p.parse_args()\n"
         "p = argparse.ArgumentParser()\np.add_argument('--workers', default=2)\na = p.parse_args()", "a.workers", 2),
        ("p = argparse.ArgumentParser()\na = p.parse_args()\na.workers = 9", "a.workers", 9),
        ("p = argparse.ArgumentParser()\np.add_argument('--gns', action='store_true')\na = p.parse_args()\n"
         "if other:\n    a.gns = False", "a.gns", False),
        ("p = argparse.ArgumentParser()\na = p.parse_args()\ndef main():\n    a.workers = 8\nmain()", "a.workers", 8),
    ],
)  # fmt: skip
def test_constants_are_followed_to_where_they_are_set(project: Write, setup: str, asked: str, value: object) -> None:
    script = project(train=f"import argparse\nfrom dataclasses import dataclass, field\n{setup}\nprobe({asked})\n")
    found = script.constant(expression(script, asked))
    assert found is not None
    assert found.value == value


@pytest.mark.parametrize(
    ("setup", "asked"),
    [
        ("a = p.parse_args()\np.add_argument('--workers', default=3)\na.workers = 9", "a.workers"),
        ("a = p.parse_args()\nif a.fast:\n    a.workers = 9", "a.workers"),
        ("a = p.parse_args()\na.workers = 9\na.workers = 8", "a.workers"),
        ("a = p.parse_args()\na.workers = 9\na.workers += 1", "a.workers"),
        ("a = other()\na.workers = 9", "a.workers"),
        ("p.add_argument('--gns', action='store_true')\na = p.parse_args()\nif other:\n    a.gns = True", "a.gns"),
        ("p.add_argument('--gns', action='store_true')\na = p.parse_args()\na.gns = read()", "a.gns"),
        (
            "p.add_argument('--gns', action='store_true')\np.set_defaults(gns=True)\na = p.parse_args()\na.gns = False",
            "a.gns",
        ),
        ("p.add_argument('--gns', action='store_true')\na = p.parse_args()\na.gns, b = False, 1", "a.gns"),
        ("a = p.parse_args()\nfor a.workers in range(9):\n    pass", "a.workers"),
        ("c = {'workers': 7}\nc.update(other)", "c['workers']"),
        ("n = 1\nif flag:\n    n = 2", "n"),
        ("n = read()", "n"),
    ],
)
def test_what_may_change_is_not_a_constant(project: Write, setup: str, asked: str) -> None:
    script = project(train=f"import argparse\np = argparse.ArgumentParser()\n{setup}\nprobe({asked})\n")
    assert script.constant(expression(script, asked)) is None


def test_constant_through_a_call_in_another_file(project: Write) -> None:
    script = project(
        data="""
        from torch.utils.data import DataLoader

        def build(dataset, workers=4):
            probe(workers)
            return DataLoader(dataset, num_workers=workers)
        """,
        train="""
        from data import build
        loader = build(None, workers=0)
        """,
    )
    found = script.constant(expression(script, "workers"))
    assert found is not None
    assert found.value == 0
    assert found.script.path.name == "train.py"


def probed(script: Script, text: str) -> tuple[Role, Place]:
    """What the argument of the last ``probe(...)`` of a text is, and where."""
    value = script.value(expression(script, text))
    return value.role, value.place


TRAINING = """
import torch
from torch import nn
from torch.utils.data import DataLoader
from tqdm import tqdm

def accuracy(output, target):
    return (output.argmax(1) == target).float().mean()

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 2)

    def forward(self, x):
        return self.layer(x), x

def train(dataset, epochs, device):
    model = Net().to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(dataset, batch_size=8)
    total = 0
    for epoch in range(epochs):
        for step, (images, labels) in enumerate(tqdm(loader)):
            probe(images)
            images, labels = images.to(device), labels.to(device)
            output, features = model(images)
            loss = criterion(output, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
            probe(images.size(0))
            probe(loss)
            probe(output[0])
            probe(accuracy(output, labels))
            probe(loss.item())
            probe(total)
            probe(output.detach().cpu().numpy())
            probe(output.max(1)[1])
            probe(features)
            if step % 10 == 0:
                probe(step)
            if step == 0:
                probe(output.shape)
        probe(epoch)
    probe(epochs)

train(None, 3, torch.device("cuda" if torch.cuda.is_available() else "cpu"))
"""


@pytest.mark.parametrize(
    ("asked", "role", "place"),
    [
        ("images", Role.BATCH, Place.HOST),
        ("images.size(0)", Role.NUMBER, Place.HOST),
        ("loss", Role.TENSOR, Place.EITHER),
        ("output[0]", Role.TENSOR, Place.EITHER),
        ("features", Role.TENSOR, Place.EITHER),
        ("accuracy(output, labels)", Role.TENSOR, Place.EITHER),
        ("output.max(1)[1]", Role.TENSOR, Place.EITHER),
        ("loss.item()", Role.NUMBER, Place.HOST),
        ("total", Role.NUMBER, Place.HOST),
        ("output.detach().cpu().numpy()", Role.ARRAY, Place.HOST),
    ],
)
def test_roles_flow_through_a_training_loop(project: Write, asked: str, role: Role, place: Place) -> None:
    assert probed(project(train=TRAINING), asked) == (role, place)


HANDED_ON = """
import functools
import torch
from torch.utils.data import DataLoader


def forever(dataset):
    while True:
        yield from DataLoader(dataset, batch_size=8)


def flat(model):
    return [torch.nn.Parameter(torch._utils._flatten_dense_tensors([each.detach() for each in model.parameters()]))]


class Process:
    def losses(self, rows, scale):
        return {"loss": torch.square(rows) * scale}


class Queue(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("pointer", torch.zeros(1))
        self.register_buffer("none", None)

    def forward(self, rows):
        probe(self.pointer)
        probe(self.none)
        return rows


rows, labels = next(forever(open("data")))
for weight in flat(torch.nn.Linear(4, 2)):
    probe(weight.grad)
again = functools.partial(Process().losses, scale=2)
there, too = map(lambda part: part.to("cuda"), (rows, labels))
probe(there)
probe(next(map(functools.partial, [1])))
probe(rows)
probe(again(rows)["loss"])
probe(functools.partial(open, "rows.pt")())
"""


@pytest.mark.parametrize(
    ("asked", "role", "place"),
    [
        ("rows", Role.BATCH, Place.HOST),
        ("weight.grad", Role.TENSOR, Place.EITHER),
        ('again(rows)["loss"]', Role.TENSOR, Place.EITHER),
        ("there", Role.TENSOR, Place.GPU),
        ("self.pointer", Role.TENSOR, Place.EITHER),
        ("self.none", Role.UNKNOWN, Place.EITHER),
        ("next(map(functools.partial, [1]))", Role.UNKNOWN, Place.EITHER),
        ('functools.partial(open, "rows.pt")()', Role.UNKNOWN, Place.EITHER),
    ],
)
def test_roles_of_what_generators_and_partial_functions_give(project: Write, asked: str, role: Role, place: Place) -> None:
    assert probed(project(train=HANDED_ON), asked) == (role, place)


@pytest.mark.parametrize(
    ("asked", "frequency"),
    [
        ("loss", Frequency.STEP),
        ("step", Frequency.THROTTLED),
        ("output.shape", Frequency.EPOCH),
        ("epoch", Frequency.EPOCH),
        ("epochs", Frequency.ONCE),
    ],
)
def test_frequencies_in_a_training_loop(project: Write, asked: str, frequency: Frequency) -> None:
    script = project(train=TRAINING)
    assert script.frequency(expression(script, asked)) is frequency


def test_a_helper_runs_as_often_as_its_busiest_call(project: Write) -> None:
    script = project(
        train="""
        def log(loss):
            probe(loss)

        def fit(model, loader, optimizer):
            log(model(0))
            for x, y in loader:
                loss = model(x.to("cuda")).sum()
                loss.backward()
                optimizer.step()
                log(loss)
        """
    )
    assert script.frequency(expression(script, "loss")) is Frequency.STEP


def test_an_evaluation_in_a_throttled_call_is_each_evaluation_step(project: Write) -> None:
    script = project(
        train="""
        from torch.utils.data import DataLoader

        def evaluate(model, loader):
            for x, y in loader:
                probe(model(x.cuda()))

        def fit(model, loader, held_out, optimizer):
            loader, held_out = DataLoader(loader), DataLoader(held_out)
            for step, (x, y) in enumerate(loader):
                model(x.cuda()).sum().backward()
                optimizer.step()
                if step % 1000 == 0:
                    evaluate(model, held_out)
        """
    )
    assert script.frequency(expression(script, "model(x.cuda())")) is Frequency.EVAL_STEP


@pytest.mark.parametrize(
    ("beside", "often"), [("", Frequency.EVAL_STEP), ("with torch.enable_grad(): pass", Frequency.STEP)]
)
def test_a_step_that_training_shares_takes_none_without_gradients(project: Write, beside: str, often: Frequency) -> None:
    script = project(
        train=f"""
        import torch
        from torch.utils.data import DataLoader

        def one(model, optimizer, x, mode="train"):
            loss = model(x.cuda()).sum()
            if mode == "train":
                loss.backward()
                optimizer.step()
            {beside}
            return loss

        def fit(model, loader, held_out, optimizer):
            for x in DataLoader(loader):
                one(model, optimizer, x)
            for x in DataLoader(held_out):
                with torch.no_grad():
                    probe(one(model, optimizer, x, mode="eval"))
        """
    )
    assert script.frequency(expression(script, 'one(model, optimizer, x, mode="eval")')) is often


def test_an_evaluation_pass_that_is_made_once_is_seldom(project: Write) -> None:
    script = project(
        train="""
        from torch.utils.data import DataLoader

        def predict(model, loader):
            for x in DataLoader(loader):
                probe(model(x.cuda()))

        def fit(model, loader, optimizer):
            for x in DataLoader(loader):
                model(x.cuda()).sum().backward()
                optimizer.step()

        fit(None, None, None)
        predict(None, None)
        """
    )
    assert script.frequency(expression(script, "model(x.cuda())")) is Frequency.THROTTLED


@pytest.mark.parametrize(
    ("guard", "frequency"),
    [
        ("if step % args.every == 0:", Frequency.THROTTLED),
        ("if not step % 100:", Frequency.THROTTLED),
        ("if step % 100 is 0:", Frequency.THROTTLED),
        ("if step > 0 and step % 50 == 0:", Frequency.THROTTLED),
        ("if (step + 1) % 50 == 0 or step == 0:", Frequency.THROTTLED),
        ("if step == 1 or step % args.every == 0:", Frequency.THROTTLED),
        ("if turn == 1 or not turn % 100:", Frequency.THROTTLED),
        ("if turn % 100 == 0 or turn == 1 or turn + 1 == args.turns:", Frequency.THROTTLED),
        ("if step % 50 == 0 or step + 1 == len(loader):", Frequency.THROTTLED),
        ("if time.time() - last > 30:", Frequency.THROTTLED),
        ("if step == 0:", Frequency.EPOCH),
        ("if step < 3:", Frequency.EPOCH),
        ("if args.verbose and shown < 5:\n            shown += 1", Frequency.EPOCH),
    ],
)
def test_guards_limit(project: Write, guard: str, frequency: Frequency) -> None:
    script = project(train=LOOP.format(guard=f"{guard}\n            probe(loss)"))
    assert script.frequency(expression(script, "loss")) is frequency


@pytest.mark.parametrize(
    "guard",
    [
        "if args.verbose:",
        "if step % 1 == 0:",
        "if loss is not None:",
        "if rank == 0:",
        "if step < limit:",
        "if rank < 3:",
        "if step % 50 == 0 or args.verbose:",
        "if step % 50 == 0 or rank == 0:",
        "if step % 1 == 0 or step == 1:",
    ],
)
def test_other_conditions_do_not(project: Write, guard: str) -> None:
    script = project(train=LOOP.format(guard=f"{guard}\n            probe(loss)"))
    assert script.frequency(expression(script, "loss")) is Frequency.STEP


def test_an_early_continue_throttles_what_follows(project: Write) -> None:
    script = project(train=LOOP.format(guard="if step % 10:\n            continue\n        probe(loss)"))
    assert script.frequency(expression(script, "loss")) is Frequency.THROTTLED


def test_a_bar_of_turns_counts_them(project: Write) -> None:
    script = project(
        train="""
        from tqdm import trange

        def fit(model, batches, optimizer, steps):
            with trange(1, steps + 1, desc="fit") as bar:
                for step in bar:
                    loss = model(next(batches).to("cuda")).sum()
                    loss.backward()
                    optimizer.step()
                    if step == 1:
                        probe(loss)
                    probe(step)
        """
    )
    assert script.role(expression(script, "step")) is Role.NUMBER
    assert script.frequency(expression(script, "loss")) is Frequency.EPOCH


@pytest.mark.parametrize(
    "update",
    [
        """
            def value_loss(flat):
                load(critic, flat)
                found = critic(states).mean()
                found.backward()
                return found.item()

            minimize.fmin_l_bfgs_b(value_loss, start)
        """,
        """
            gradients = torch.autograd.grad(policy(states).mean(), policy.parameters())
            load(policy, conjugate_gradient(policy, torch.cat([each.reshape(-1) for each in gradients]), 10))
        """,
    ],
)
def test_a_loop_that_updates_without_an_optimizer_of_torch_is_no_evaluation(project: Write, update: str) -> None:
    script = project(train=UPDATES.format(update=textwrap.indent(textwrap.dedent(update), " " * 4)))
    assert script.frequency(expression(script, "start.cpu()")) is Frequency.ONCE
    assert script.frequency(expression(script, "policy(torch.randn(4).cuda())")) is not Frequency.STEP


UPDATES = """
import torch
import scipy.optimize as minimize

def collect(policy):
    states = []
    with torch.no_grad():
        for turn in range(2048):
            states.append(probe(policy(torch.randn(4).cuda())))
    return torch.stack(states)

def improve(states, start):
    probe(start.cpu())
    values = critic(states)
{update}

policy, critic = torch.nn.Linear(4, 4).cuda(), torch.nn.Linear(4, 1).cuda()

def main(start):
    for update in range(500):
        states = collect(policy)
        improve(states, start)

main(torch.zeros(8).cuda())
"""


LOOP = """
import time

def fit(model, loader, optimizer, args, rank, turn=0):
    for step, (x, y) in enumerate(loader):
        loss = model(x.to("cuda")).sum()
        loss.backward()
        optimizer.step()
        {guard}
"""


def test_gradient_accumulation_is_one_training_loop(project: Write) -> None:
    script = project(
        train="""
        def fit(model, get_batch, optimizer):
            while True:
                for micro in range(4):
                    loss = model(get_batch())
                    loss.backward()
                    probe(micro)
                optimizer.step()
                optimizer.zero_grad()
                probe(loss)
        """
    )
    assert script.frequency(expression(script, "micro")) is Frequency.STEP
    assert script.frequency(expression(script, "loss")) is Frequency.STEP


def test_attributes_on_self_and_methods(project: Write) -> None:
    script = project(
        train="""
        import torch
        from torch.utils.data import DataLoader

        class Trainer:
            def __init__(self, model, dataset):
                self.model = model.cuda()
                self.loader = DataLoader(dataset, num_workers=2)
                self.optimizer = torch.optim.Adam(self.model.parameters())

            def fit(self):
                for batch in self.loader:
                    self.step(batch)

            def step(self, batch):
                loss = self.model(batch.cuda()).mean()
                loss.backward()
                self.optimizer.step()
                probe(loss)
        """
    )
    assert script.is_device_tensor(expression(script, "loss"))
    assert script.frequency(expression(script, "loss")) is Frequency.STEP


def test_options_are_followed_through_inherited_constructors_and_aliases(project: Write) -> None:
    script = project(
        forecast="""
        from basic import Basic

        class Forecast(Basic):
            def __init__(self, args):
                super(Forecast, self).__init__(args)

            def load(self):
                probe(self.args.workers)
        """,
        basic="""
        class Basic(object):
            def __init__(self, args):
                self.args = args
        """,
        main="""
        import argparse
        from forecast import Forecast

        parser = argparse.ArgumentParser()
        parser.add_argument("--workers", type=int, default=0)
        args = parser.parse_args()
        Experiment = Forecast
        Experiment(args).load()
        """,
    )
    found = script.constant(expression(script, "self.args.workers"))
    assert found is not None
    assert found.value == 0


def test_a_library_file_is_understood_from_the_scripts_that_import_it(project: Write) -> None:
    script = project(
        engine="""
        def one_epoch(net, batches, opt, scale):
            for batch in batches:
                value = net(batch)
                scale(value, opt)
                probe(value)
        """,
        main="""
        import torch
        from engine import one_epoch
        from scaling import Scale

        def main():
            net = torch.nn.Linear(2, 2).cuda()
            opt = torch.optim.SGD(net.parameters(), lr=0.1)
            for epoch in range(3):
                one_epoch(net, torch.utils.data.DataLoader([]), opt, Scale())
        """,
        scaling="""
        class Scale:
            def __call__(self, loss, optimizer):
                loss.backward()
                optimizer.step()
        """,
    )
    value = expression(script, "value")
    assert script.frequency(value) is Frequency.STEP
    assert script.is_device_tensor(value)


def test_cycles_of_assignments_and_calls_end(project: Write) -> None:
    script = project(
        train="""
        def a(x):
            return b(x)

        def b(x):
            return a(x) if x else x

        x = y
        y = x
        for _ in range(3):
            x = a(y)
            y = b(x)
        probe(x)
        """
    )
    assert script.role(expression(script, "x")) is Role.UNKNOWN


def test_a_value_that_many_functions_hand_to_each_other_is_followed_once(project: Write) -> None:
    names = [f"f{n}" for n in range(6)]
    calls = "".join(f"    if probe(device.type):\n        device = {name}(device)\n" for name in names)
    mesh = "".join(f"def {name}(device):\n{calls}    return device\n\n" for name in names)
    script = project(train=f"{mesh}made = f0(make())\n")
    assert script.constant(expression(script, "device.type")) is None


def test_answers_do_not_depend_on_what_was_asked_first(project: Write) -> None:
    first = project(train=TRAINING)
    second = project(train=TRAINING)
    calls = first.source.of(syntax.Call)
    forward = [first.value(call) for call in calls]
    backward = [second.value(call) for call in reversed(second.source.of(syntax.Call))]
    assert [(v.role, v.place) for v in forward] == [(v.role, v.place) for v in reversed(backward)]


def test_without_a_gpu_nothing_is_on_one(project: Write) -> None:
    script = project(train=TRAINING.replace('"cuda" if torch.cuda.is_available() else "cpu"', '"cpu"'))
    assert not script.is_device_tensor(expression(script, "loss"))


def test_every_branch_of_an_elif_chain_reaches_what_follows(project: Write) -> None:
    script = project(
        train="""
        def choose(kind):
            if kind == 1:
                found = 1
                print(found)
            elif kind == 2:
                found = 2
                print(found)
            elif kind == 3:
                found = 3
            else:
                found = 4
            return found
        """
    )
    uses = [name for name in script.source.of(syntax.Name) if name.value == "found"]

    def reached(use: syntax.Name) -> list[str]:
        bindings = script.names.reaching(use)
        return sorted(script.text(binding.value) for binding in bindings if binding.value is not None)

    assert reached(uses[-1]) == ["1", "2", "3", "4"]
    assert [reached(use) for use in uses[:-1] if isinstance(script.source.parents[use], syntax.Arg)] == [["1"], ["2"]]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("import torch\n\nprobe(1)\n", 2),
        ("import torch\nprobe()\n# more\nimport os\n\nprobe(1)\nimport sys\n", 5),
        ("import torch\ntry:\n    import apex\nexcept ImportError:\n    apex = None\n\nprobe(1)\n", 6),
        ("import torch\ndef f():\n    probe(1)\nimport os\nf()\n", 2),
        ('import torch\nif __name__ == "__main__":\n    import argparse\n    import os\n    probe(1)\n', 5),
        ('import torch\nimport torch.multiprocessing as mp\nif __name__ == "__main__":\n    mp.spawn(probe(1))\n', 3),
    ],
)
def test_the_first_thing_a_program_does_stands_below_its_imports(project: Write, text: str, line: int) -> None:
    script = project(train=text)
    (edit,) = first_edit(script, "torch.manual_seed", "(0)", last_call(script, "probe(1)"))
    assert script.source.position(edit.start)[0] == line


def test_a_loader_of_a_demonstration_does_not_matter(project: Write) -> None:
    script = project(
        demo="""
        import torch
        from lightning.pytorch import Trainer

        def main(model, dataset):
            loader = torch.utils.data.DataLoader(dataset)
            Trainer(limit_train_batches=15).fit(model, loader)
            for batch in loader:
                model(batch.cuda()).mean().backward()

        main(None, None)
        """
    )
    found = loader(script, last_call(script, "torch.utils.data.DataLoader(dataset)"))
    assert found is not None
    assert found.matters is False


def test_a_collate_function_is_known_from_the_loader_of_another_file(project: Write) -> None:
    script = project(
        data="def joined(items):\n    probe(items)\n\n\ndef other(items):\n    probe(len(items))\n",
        train="""
        from torch.utils.data import DataLoader

        from data import joined, other

        loader = DataLoader([], collate_fn=joined)
        for batch in loader:
            other(batch)
        """,
    )
    assert is_per_item(script, last_call(script, "probe(items)"))
    assert not is_per_item(script, last_call(script, "probe(len(items))"))


@pytest.mark.parametrize(
    ("train", "handed"),
    [
        ("from handed import no_grad\nno_grad()", "from torch import no_grad"),
        ("from handed import off\noff()", "from torch import no_grad as off"),
        ("import handed\nhanded.off()", "from torch import no_grad as off"),
        ("from handed import *\noff()", "from torch import no_grad as off"),
        ("from handed import off as quiet\nquiet()", "from torch import no_grad as off"),
        ("import torch\nquiet = torch.no_grad\nquiet()", ""),
        ("from torch import no_grad as quiet\nagain = quiet\nagain()", ""),
    ],
)
def test_a_call_of_a_library_is_found_under_any_name(project: Write, train: str, handed: str) -> None:
    script = project(train=train, handed=handed)
    assert len(list(script.calls("torch.no_grad"))) == 1


@pytest.mark.parametrize(
    ("parts", "asked", "is_found"),
    [
        ("class Net:\n    pass", "Net", True),
        ("from deep import *", "Deep", True),
        ("import deep as under", "under.Deep", True),
        ("__all__ = ['Net']\n\n\nclass Net:\n    pass", "Net", True),
        ("__all__ = ['Other']\n\n\nclass Net:\n    pass", "Net", False),
        ("class _Net:\n    pass", "_Net", False),
    ],
)
def test_one_of_several_stars_binds_what_its_module_hands_on(project: Write, parts: str, asked: str, is_found: bool) -> None:
    train = f"from parts import *\nfrom sizes import *\nprobe({asked})\n"
    script = project(train=train, parts=parts, sizes="width = 8", deep="from parts import *\n\n\nclass Deep:\n    pass")
    assert (script.definition(expression(script, asked)) is not None) is is_found


def test_the_last_star_decides(project: Write) -> None:
    script = project(train="from a import *\nfrom b import *\nprobe(width)\n", a="width = 8", b="width = 16")
    found = script.constant(expression(script, "width"))
    assert found is not None
    assert found.value == 16


def test_what_is_computed_with_an_array_is_on_the_host(project: Write) -> None:
    script = project(
        train="""
        import torch
        from drawing import draw, read


        def likeness(picture, drawn):
            return torch.log10(((picture - drawn) ** 2).mean())


        def compare(model):
            model.cuda()
            probe(likeness(read(), draw(model).cpu().numpy()))
            probe(likeness(read(), draw(model)))
        """
    )
    on_host = script.value(expression(script, "likeness(read(), draw(model).cpu().numpy())"))
    assert (on_host.role, on_host.place) == (Role.TENSOR, Place.HOST)
    assert script.value(expression(script, "likeness(read(), draw(model))")).place is Place.EITHER


BACKBONES = """
    from torch import nn


    class Net(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.run = nn.Linear(width, 4096)

        def forward(self, x):
            return self.run(x)


    class Backbones:
        @staticmethod
        def chosen(name, width):
            if name == "net":
                return Net(width)

        @classmethod
        def built(cls, width):
            return Net(width)

        def made(self, width):
            return Net(width)
"""


@pytest.mark.parametrize(
    ("train", "is_found"),
    [
        ("from backbones import Backbones\nmodel = Backbones.chosen('net', 8)", True),
        ("import backbones\nmodel = backbones.Backbones.built(8)", True),
        ("from backbones import Backbones\nmodel = Backbones.made(8)", False),
    ],
)
def test_a_method_is_called_on_a_class_of_another_file(project: Write, train: str, is_found: bool) -> None:
    script = project(train=train, backbones=BACKBONES)
    (call,) = (call for name in ("chosen", "built", "made") for call in script.written_calls(name))
    assert (script.callee(call) is not None) is is_found
    assert (script.role(call) is Role.MODULE) is is_found


@pytest.mark.parametrize(("default", "role"), [("=0", Role.UNKNOWN), ("", Role.TENSOR)])
def test_what_may_be_a_number_is_no_tensor_in_a_network(project: Write, default: str, role: Role) -> None:
    """What comes to ``forward`` through two functions, one of which has a number as its default."""
    losses = project(
        losses="""
        import torch
        from torch import nn

        class Hardest(nn.Module):
            def forward(self, logits, it):
                share = 0.5 * (9 - it) / 9
                return torch.topk(logits, int(logits.numel() * share))[0]

        class Losses:
            def __init__(self):
                self.hardest = Hardest()

            def compute(self, logits, it):
                return self.hardest(logits, it)
        """,
        trainer=f"""
        import torch
        from losses import Losses

        class Trainer:
            def __init__(self, net):
                self.net, self.losses = net, Losses()
                self.optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

            def step(self, x, it{default}):
                loss = self.losses.compute(self.net(x), it).mean()
                loss.backward()
                self.optimizer.step()
        """,
        train="""
        import torch
        from trainer import Trainer

        trainer = Trainer(torch.nn.Linear(3, 3))
        it = torch.load("last.pt")["it"]
        for x in torch.load("batches.pt"):
            trainer.step(x, it)
        """,
    )
    (share,) = (
        each
        for each in losses.source.of(syntax.Name)
        if each.value == "it" and "9 - it" in losses.text(losses.source.parents[each])
    )
    assert losses.role(share) is role


@pytest.mark.parametrize(
    ("sets", "known"),
    [
        ("pass", True),
        ("self.__dict__[key] = value", False),
        ("self.__dict__.update(told)", False),
        ("setattr(self, key, value)", False),
        ('setattr(self, "path", value)', True),
    ],
)
def test_what_an_heir_sets_by_computed_names_is_not_known(project: Write, sets: str, known: bool) -> None:
    base = project(
        base="""
        class Base:
            def __init__(self):
                self.workers = 0

            def loader(self):
                return self.workers
        """,
        told=f"""
        import yaml
        from base import Base

        class Told(Base):
            def __init__(self, path):
                super().__init__()
                told = yaml.safe_load(open(path))
                for key, value in told.items():
                    {sets}
        """,
    )
    (read,) = (each for each in base.source.of(syntax.Return))
    assert read.value is not None
    assert (base.constant(read.value) is not None) is known
