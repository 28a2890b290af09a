"""What check says of a script whose slow lines stand in other files: where it is told, once, with the way to it."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from speedlint import run, stages
from speedlint.config import Settings
from speedlint.diagnostic import Diagnostic
from speedlint.engine import Engine
from speedlint.registry import Registry
from speedlint.rule import Level, Risk

REGISTRY = Registry.load()

TRAIN = """
    import torch
    from metrics import accuracy
    from losses import DiceLoss


    def train(model, loader, optimizer):
        criterion = DiceLoss(5)
        right = 0.0
        for x, y in loader:
            x, y = x.cuda(), y.cuda()
            out = model(x)
            loss = sum(criterion(part, y) for part in (out, out * 2))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            right += accuracy(out, y)
        print(right)
"""
METRICS = """
    from numbers_of import one


    def accuracy(out, y):
        return one(out.argmax(1) == y)
"""
NUMBERS = """
    def one(tensor):
        return tensor.float().mean().item()
"""
LOSSES = """
    from torch import nn


    class DiceLoss(nn.Module):
        def __init__(self, classes):
            super().__init__()
            self.classes = classes

        def forward(self, out, y):
            seen, loss = [], 0.0
            for i in range(self.classes):
                part = (out[:, i] * (y == i)).sum()
                seen.append(part.item())
                loss = loss + part
            return loss
"""


START = """
    import torch
    from trainer import train

    if __name__ == "__main__":
        train(torch.randn(8, 4, 512))
"""
TRAINER = """
    import torch
    from torch import nn


    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.attend = nn.MultiheadAttention(512, 8)
            self.out = nn.Linear(512, 2048)

        def forward(self, x):
            return self.out(self.attend(x, x, x)[0])


    def train(rows):
        model = Net()
        model.to("cuda")
        optimizer = torch.optim.AdamW(model.parameters())
        for row in rows:
            loss = model(row.cuda()).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "README.md").write_text("a project\n")
    for name, text in (("train", TRAIN), ("metrics", METRICS), ("numbers_of", NUMBERS), ("losses", LOSSES)):
        (tmp_path / f"{name}.py").write_text(textwrap.dedent(text).lstrip())
    return tmp_path


def found(
    project: Path, *names: str, codes: tuple[str, ...] = ("SPD301", "SPD311"), torch: tuple[int, int] = (2, 13)
) -> dict[tuple[str, str], Diagnostic]:
    settings = Settings(project, select=codes, torch=torch)
    report = run.merge(run.check([project / name for name in names], settings, REGISTRY))
    assert not report.problems
    return {(each.path.name, each.code): each for each in report.diagnostics}


def test_a_wait_in_a_file_that_is_not_asked_for_is_told_at_the_call(project: Path) -> None:
    at_call = found(project, "train.py")
    assert set(at_call) == {("train.py", "SPD311")}
    settings = Settings(project, select=("SPD311",), torch=(2, 13))
    report = run.merge(run.check([project / "train.py"], settings, REGISTRY))
    messages = [each.message for each in report.diagnostics]
    assert any("waits for the GPU 10 times in every training step" in each and "losses.py:13" in each for each in messages)
    assert any("`accuracy(...)`" in each and "numbers_of.py:2" in each for each in messages)
    chain = next(each.related for each in report.diagnostics if "accuracy" in each.message)
    assert [(place.path.name, place.line) for place in chain] == [("metrics.py", 5), ("numbers_of.py", 2)]


@pytest.mark.parametrize(("moved", "is_told"), [("scores.detach().cpu()", False), ("scores.detach()", True)])
def test_what_came_to_the_host_on_the_way_is_not_waited_for(tmp_path: Path, moved: str, is_told: bool) -> None:
    (tmp_path / "hits.py").write_text(
        "import torch\n\ndef share(guess, truth):\n    return torch.sum(guess == truth).item() / len(truth)\n"
    )
    (tmp_path / "rates.py").write_text(
        textwrap.dedent(f"""
        from hits import share

        def rates(scores, truth, chosen):
            guess = {moved}.argmax(dim=1)
            return share(guess[chosen], truth[chosen])
        """)
    )
    (tmp_path / "train.py").write_text(
        textwrap.dedent("""
        from rates import rates
        from data import graph
        from torch import nn, optim

        def fit(turns):
            nodes, truth, chosen = graph()
            model = nn.Linear(64, 8).cuda()
            optimizer = optim.Adam(model.parameters())
            for turn in range(turns):
                scores = model(nodes.cuda())
                loss = nn.functional.cross_entropy(scores, truth.cuda())
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                print(rates(wrapped(scores), truth.cuda(), chosen))
        """)
    )
    messages = [each.message for each in found(tmp_path, "train.py").values()]
    assert any("hits.py" in each for each in messages) is is_told, messages


def test_a_wait_is_told_once_whichever_files_are_asked_for(project: Path) -> None:
    everything = found(project, "train.py", "metrics.py", "numbers_of.py", "losses.py")
    assert set(everything) == {("numbers_of.py", "SPD301"), ("losses.py", "SPD301"), ("train.py", "SPD311")}
    assert "10 times" in everything["train.py", "SPD311"].message, "at the call too where calls multiply it"
    middle = found(project, "train.py", "metrics.py")
    assert set(middle) == {("metrics.py", "SPD311"), ("train.py", "SPD311")}
    assert "`one(...)`" in middle["metrics.py", "SPD311"].message
    assert "criterion" in middle["train.py", "SPD311"].message
    settings = Settings(project, select=("SPD311",), torch=(2, 13))
    asked = [project / name for name in ("train.py", "metrics.py")]
    assert len(run.merge(run.check(asked, settings, REGISTRY)).diagnostics) == 2


def test_a_wait_in_a_helper_names_the_calls_that_reach_it(project: Path) -> None:
    diagnostic = found(project, "numbers_of.py")["numbers_of.py", "SPD301"]
    assert [(place.path.name, place.line) for place in diagnostic.related] == [("metrics.py", 5)]


def test_the_fix_of_a_hidden_wait_edits_the_helper_and_who_adds_up_what_it_returns(project: Path) -> None:
    settings = Settings(project, select=("SPD311",), torch=(2, 13), risk=Risk.BEHAVIOR)
    staged = stages.fix([project / "train.py"], settings, REGISTRY)
    assert not staged.problems
    changed = {outcome.path.name: outcome.after.decode() for outcome in staged.outcomes}
    assert set(changed) == {"losses.py", "numbers_of.py", "train.py"}
    assert "seen.append(part.detach())" in changed["losses.py"]
    assert "return tensor.float().mean().detach()" in changed["numbers_of.py"]
    assert "right += accuracy(out, y)\n    print(float(right))" in changed["train.py"]


def test_a_helper_that_another_script_reads_at_once_stays(project: Path) -> None:
    (project / "score.py").write_text("from numbers_of import one\n\n\ndef good(x):\n    return one(x) in (0, 1)\n")
    (project / "rank.py").write_text("from numbers_of import one\n\n\ndef rank(xs):\n    return sorted(xs, key=one)\n")
    settings = Settings(project, select=("SPD311",), torch=(2, 13), risk=Risk.BEHAVIOR)
    staged = stages.fix([project / "train.py"], settings, REGISTRY)
    assert {outcome.path.name for outcome in staged.outcomes} == {"losses.py"}


def test_the_call_that_a_program_lacks_goes_to_the_script_that_starts_it(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("a project\n")
    (tmp_path / "train.py").write_text(textwrap.dedent(START).lstrip())
    (tmp_path / "trainer.py").write_text(textwrap.dedent(TRAINER).lstrip())
    settings = Settings(tmp_path, select=("SPD105",), torch=(2, 13), risk=Risk.BEHAVIOR)
    staged = stages.fix([tmp_path / "trainer.py"], settings, REGISTRY)
    changed = {outcome.path.name: outcome.after.decode() for outcome in staged.outcomes}
    assert set(changed) == {"train.py"}
    assert 'if __name__ == "__main__":\n    torch.set_float32_matmul_precision("high")\n' in changed["train.py"]
    (tmp_path / "other.py").write_text(textwrap.dedent(START).lstrip())
    assert not stages.fix([tmp_path / "trainer.py"], settings, REGISTRY).outcomes, "two scripts start it: shown"
    (tmp_path / "settings.py").write_text('import torch\n\ntorch.set_float32_matmul_precision("high")\n')
    (tmp_path / "other.py").unlink()
    start = (tmp_path / "train.py").read_text()
    (tmp_path / "train.py").write_text(f"import settings\n{start}")
    assert not run.merge(run.check([tmp_path / "trainer.py"], settings, REGISTRY)).diagnostics, "another module enables it"


def test_a_helper_asked_for_alone_says_what_it_says_within_its_folder(project: Path) -> None:
    alone = found(project, "numbers_of.py")
    assert set(alone) == {("numbers_of.py", "SPD301")}
    within = found(project, "train.py", "metrics.py", "numbers_of.py", "losses.py")["numbers_of.py", "SPD301"]
    assert (alone["numbers_of.py", "SPD301"].line, alone["numbers_of.py", "SPD301"].message) == (within.line, within.message)


def test_links_that_lead_nowhere_beside_a_script_are_left_alone(project: Path) -> None:
    before = found(project, "numbers_of.py", "train.py")
    (project / "deep").mkdir()
    (project / "deep" / "loop.py").symlink_to("loop.py")
    (project / "deep" / "round").symlink_to("round")
    (project / "deep" / "broken.py").symlink_to("gone.py")
    assert found(project, "numbers_of.py", "train.py") == before


def test_a_pipe_a_device_or_a_huge_file_beside_a_script_is_left_alone(project: Path) -> None:
    os.mkfifo(project / "pipe.py")
    (project / "zero.py").symlink_to("/dev/zero")
    (project / "huge.py").write_text("x = 1\n" * 400_000)
    start = project / "train.py"
    start.write_text(f"import pipe, zero, huge\n{start.read_text()}")
    assert set(found(project, "numbers_of.py")) == {("numbers_of.py", "SPD301")}


@pytest.mark.parametrize(
    "imported",
    [
        "from pkg import (\n    trainer,\n)",
        "from pkg import \\\n    trainer",
        "import os; from pkg.trainer import train",
        "import pkg.trainer",
    ],
)
def test_whoever_starts_a_module_is_found_however_it_is_imported(tmp_path: Path, imported: str) -> None:
    (tmp_path / "README.md").write_text("a project\n")
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "__init__.py").write_text("")
    (tmp_path / "pkg" / "trainer.py").write_text(textwrap.dedent(TRAINER).lstrip())
    for name in ("a", "b"):
        (tmp_path / f"{name}.py").write_text(f'import torch\n{imported}\n\nif __name__ == "__main__":\n    print(1)\n')
    settings = Settings(tmp_path, select=("SPD105",), torch=(2, 13))
    (diagnostic,) = run.merge(run.check([tmp_path / "pkg" / "trainer.py"], settings, REGISTRY)).diagnostics
    assert "several scripts start it (a.py, b.py)" in diagnostic.advice


def test_what_is_checked_is_not_imported_by_the_command(tmp_path: Path) -> None:
    for name in ("json", "click", "ast", "torch"):
        (tmp_path / f"{name}.py").write_text("open('owned', 'w').close()\n")
    (tmp_path / "train.py").write_text("import torch\n")
    command = [sys.executable, "-m", "speedlint", "check", "."]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert not (tmp_path / "owned").exists()


@pytest.mark.parametrize(
    ("guard", "is_written"),
    [
        ('if __name__ == "__main__":', True),
        ("if '__main__' == __name__:", True),
        ('if __name__ != "__main__":', False),
        ('if __name__ == "__main__" and not torch.cuda.is_available():', False),
    ],
)
def test_a_call_is_written_into_a_plain_main_guard_only(tmp_path: Path, guard: str, is_written: bool) -> None:
    text = textwrap.dedent(TRAINER).lstrip() + f"\n\n{guard}\n    train(torch.randn(8, 4, 512))\n"
    (tmp_path / "train.py").write_text(text)
    settings = Settings(tmp_path, select=("SPD105",), torch=(2, 13), risk=Risk.NUMERIC)
    outcomes = stages.fix([tmp_path / "train.py"], settings, REGISTRY).outcomes
    in_guard = f'{guard}\n    torch.set_float32_matmul_precision("high")\n'
    assert any(in_guard in outcome.after.decode() for outcome in outcomes) is is_written


STEPS = """
    def train_one_epoch(model, criterion, loader, optimizer, meter):
        for x, y in loader:
            x, y = x.cuda(), y.cuda()
            loss = criterion(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            meter.add(loss)
"""
METERS = """
    class Meter:
        def __init__(self):
            self.total = 0.0

        def add(self, value):
            self.total += value.item()
"""
MAIN = """
    import torch
    from torch import nn
    from losses import DiceLoss
    from meters import Meter
    from steps import train_one_epoch


    def main(loader):
        model = nn.Linear(4, 4).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        meter = Meter()
        for epoch in range(10):
            train_one_epoch(model, DiceLoss(9), loader, optimizer, meter)
        print(meter.total)


    if __name__ == "__main__":
        main([])
"""


def written(folder: Path, **files: str) -> None:
    """The files as modules of one project."""
    (folder / "pyproject.toml").touch()
    for name, text in files.items():
        path = folder / f"{name}.py"
        path.write_text(textwrap.dedent(text).lstrip())


def test_an_object_that_one_file_makes_and_another_calls_is_told_of_at_either_end(tmp_path: Path) -> None:
    written(tmp_path, main=MAIN, steps=STEPS, losses=LOSSES, meters=METERS)
    files = ("main.py", "steps.py", "losses.py", "meters.py")
    helpers = {("losses.py", "SPD301"), ("meters.py", "SPD301")}
    assert set(found(tmp_path, *files)) == helpers
    assert {each for name in files[2:] for each in found(tmp_path, name)} == helpers
    assert not found(tmp_path, "main.py")
    settings = Settings(tmp_path, select=("SPD311",), torch=(2, 13))
    told = run.merge(run.check([tmp_path / "steps.py"], settings, REGISTRY)).diagnostics
    assert [(each.line, " 9 times " in each.message) for each in told] == [(4, True), (8, False)]


LOOP = """
    def train(model, loader, optimizer):
        total = 0.0
        for x in loader:
            loss = model(x.cuda()).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(total)
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package of which a program uses one module, and another lies beside it."""
    (tmp_path / "package").mkdir()
    written(tmp_path, start="from package.loop import train\n\ntrain(None, [], None)\n")
    written(tmp_path / "package", __init__="", loop=LOOP, loop_old=LOOP)
    (tmp_path / "package" / "pyproject.toml").unlink()
    return tmp_path


def levels(project: Path, name: str) -> list[str]:
    settings = Settings(project, select=("SPD301",), torch=(2, 13))
    return [each.level.value for each in run.merge(run.check([project / name], settings, REGISTRY)).diagnostics]


def test_a_copy_that_no_program_of_the_package_reaches_is_only_noted(package: Path) -> None:
    assert levels(package, "package/loop.py") == ["warning"]
    assert levels(package, "package/loop_old.py") == ["note"]


@pytest.mark.parametrize(("imports", "level"), [("from .loop import train as other\n", "note"), ("", "warning")])
def test_a_copy_in_a_package_without_init(package: Path, imports: str, level: str) -> None:
    (package / "package" / "__init__.py").unlink()
    (package / "package" / "loop_old.py").write_text(imports + (package / "package" / "loop_old.py").read_text())
    assert levels(package, "package/loop_old.py") == [level]


@pytest.mark.parametrize(("name", "level"), [("setup.py", "warning"), ("notes.txt", "note")])
def test_a_class_that_no_program_reaches_may_be_for_those_of_others(package: Path, name: str, level: str) -> None:
    old = package / "package" / "loop_old.py"
    head, _, body = old.read_text().partition("def train(")
    old.write_text(head + "class Trainer:\n    @staticmethod\n" + textwrap.indent(f"def train({body}", "    "))
    (package / "pyproject.toml").unlink(missing_ok=True)
    (package / ".git").mkdir()
    (package / name).write_text("")
    assert levels(package, "package/loop_old.py") == [level]


@pytest.mark.parametrize(
    "statement", ["from package.训练 import train\n", "import package.训练 as loop\n\nloop.train(None, [], None)\n"]
)
def test_a_module_of_a_package_with_a_name_beyond_ascii_is_reached(package: Path, statement: str) -> None:
    (package / "package" / "loop_old.py").rename(package / "package" / "训练.py")
    (package / "other.py").write_text(statement, "utf-8")
    assert levels(package, "package/训练.py") == ["warning"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("package/__init__.py", "import importlib\n\nmodules = [importlib.import_module(name) for name in ()]\n"),
        ("pyproject.toml", '[project.scripts]\ntrain = "package.loop_old:train"\n'),
    ],
)
def test_a_module_that_may_be_reached_by_its_name_is_not_left_out(package: Path, name: str, text: str) -> None:
    (package / name).write_text(text)
    assert levels(package, "package/loop_old.py") == ["warning"]


@pytest.mark.parametrize(("imported", "level"), [("train", "warning"), ("plot", "note")])
def test_what_a_notebook_imports_is_in_use_and_the_rest_is_not(tmp_path: Path, imported: str, level: str) -> None:
    written(tmp_path, helpers=LOOP)
    (tmp_path / "lesson.ipynb").write_text(f'{{"cells": [{{"source": ["from helpers import {imported}"]}}]}}')
    assert levels(tmp_path, "helpers.py") == [level]


FUSED = """
    import torch


    def train(loader):
        model = torch.nn.Linear(512, 512).cuda()
        optimizer = torch.optim.AdamW(model.parameters())
        for epoch in range(10):
            for x in loader:
                model(x.cuda()).mean().backward()
                optimizer.step()
"""


@pytest.mark.parametrize(
    ("helper", "is_old"),
    [
        ("from torch._six import inf\n", True),
        ("try:\n    from torch._six import inf\nexcept ImportError:\n    from math import inf\n", False),
    ],
)
def test_a_program_is_judged_by_the_newest_release_it_runs_on(tmp_path: Path, helper: str, is_old: bool) -> None:
    written(tmp_path, engine=FUSED, helper=helper)
    written(tmp_path, main="import helper\nfrom engine import train\n\ntrain([])\n")
    written(tmp_path, other="from torch._six import inf\n")
    assert bool(found(tmp_path, "engine.py", codes=("SPD502",))) is not is_old


BUILDER = """
    import torch


    def build(use_gpu):
        net = torch.nn.Linear(512, 512)
        if use_gpu:
            net = net.cuda()
        return net


    def to_gpu(net):
        net.cuda()
"""
BUILDS = """
    import torch
    from builder import build, to_gpu


    def main(loader, rounds):
        net = build(True)
        optimizer = torch.optim.AdamW(net.parameters())
        MORE
        for _ in range(rounds):
            for x in loader:
                optimizer.zero_grad()
                net(x.cuda()).mean().backward()
                optimizer.step()
"""


@pytest.mark.parametrize(("more", "is_written"), [("pass", True), ("to_gpu(net)", False), ("net.cuda()", False)])
def test_what_another_script_makes_by_the_same_function_is_another_module(
    tmp_path: Path, more: str, is_written: bool
) -> None:
    written(tmp_path, builder=BUILDER, train=BUILDS.replace("MORE", more))
    written(tmp_path, evaluate="from builder import build\n\nbuild(True).eval()\n")
    fix = found(tmp_path, "train.py", codes=("SPD502",), torch=(2, 3))["train.py", "SPD502"].fix
    assert (fix is not None and fix.applicable) is is_written


def test_the_parameters_of_a_server_of_parameters_stay_where_they_are(tmp_path: Path) -> None:
    server = """
        import torch
        import torch.distributed.rpc as rpc


        class Server:
            def __init__(self):
                self.model = torch.nn.Linear(512, 512)
                self.optimizer = torch.optim.Adam(self.model.parameters())

            def update(self, gradients):
                for parameter, gradient in zip(self.model.parameters(), gradients):
                    parameter.grad = gradient
                self.optimizer.step()


        def work(server, batches):
            model = server.rpc_sync().get_model().cuda()
            for batch in batches:
                model(batch.cuda()).mean().backward()
                model = rpc.rpc_sync(server.owner(), Server.update, args=(server, [])).cuda()
    """
    written(tmp_path, server=server, local=server.replace("torch.distributed.rpc", "remote_calls"))
    assert not found(tmp_path, "server.py", codes=("SPD502",))
    assert found(tmp_path, "local.py", codes=("SPD502",))


def test_products_used_tf32_by_default_before_there_was_a_function_for_it(tmp_path: Path) -> None:
    written(tmp_path, trainer=TRAINER, start=START)
    for release, expected in (((1, 11), 0), ((1, 12), 1)):
        settings = Settings(tmp_path, select=("SPD105",), torch=release)
        assert len(run.merge(run.check([tmp_path / "trainer.py"], settings, REGISTRY)).diagnostics) == expected
    for pin, expected in (("1.9.1", 0), ("2.1.0", 1)):
        (tmp_path / "rows_environment.yml").write_text(f"dependencies:\n  - pytorch={pin}=py3.8_cuda11.1_cudnn8.0.5_0\n")
        settings = Settings(tmp_path, select=("SPD105",))
        assert len(run.merge(run.check([tmp_path / "trainer.py"], settings, REGISTRY)).diagnostics) == expected


SPECTRUM = """
import torch

def spectrum(wave):
    if torch.min(wave) < -1.0:
        print("min", torch.min(wave))
    if torch.max(wave) > 1.0:
        print("max", torch.max(wave))
    return torch.fft.rfft(wave).abs()
"""
USES_SPECTRUM = """
import torch
from torch import nn
from spectra import spectrum

def main(loader):
    net = nn.Conv1d(1, 1, 3).cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for wave in loader:
        loss = spectrum(net(wave.cuda())).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

main(torch.utils.data.DataLoader([]))
"""


def test_what_runs_for_some_values_alone_is_not_counted(tmp_path: Path) -> None:
    written(tmp_path, train=USES_SPECTRUM, spectra=SPECTRUM)
    settings = Settings(tmp_path, select=("SPD311",), torch=(2, 13))
    (told,) = run.merge(run.check([tmp_path / "train.py"], settings, REGISTRY)).diagnostics
    assert "waits for the GPU 2 times" in told.message


STRATEGY = """
class Strategy:
    def __init__(self, seed):
        self.seed = self.agree(seed)

    def agree(self, seed):
        return torch.tensor(seed, device="cuda").item()
"""
TRIED = """
import torch
from strategy import Strategy


def {name}():
    for seed in range(3):
        strategy = Strategy(seed)
        model = torch.nn.Linear(4, 1).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        model(torch.randn(2, 4, device="cuda")).mean().backward()
        optimizer.step()
"""


@pytest.mark.parametrize(("where", "name", "count"), [("tests/test_a.py", "test_a", 0), ("train.py", "train", 1)])
def test_a_test_that_tries_each_way_to_make_an_object_is_no_training_of_it(
    tmp_path: Path, where: str, name: str, count: int
) -> None:
    (tmp_path / "strategy.py").write_text("import torch\n" + STRATEGY)
    (tmp_path / where).parent.mkdir(exist_ok=True)
    (tmp_path / where).write_text(TRIED.format(name=name))
    (tmp_path / "requirements.txt").write_text("torch\n")
    path = tmp_path / "strategy.py"
    found = Engine(Settings(tmp_path, select=("SPD301",)), REGISTRY, asked=(path,)).check(path)
    assert len([each for each in found.diagnostics if each.level is Level.WARNING]) == count


MODEL_FILE = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Conv2d(3, 64, 3)

    def forward(self, images):
        {forward}

    def tiles(self, images):
        {tiles}


def predict(net, images):
    {predict}
"""
STEP_FILE = """
import torch
from model import Net, predict


def run(net, images):
    {run}


def train(loader):
    net = Net().cuda()
    optimizer = torch.optim.Adam(net.parameters())
    for images in loader:
        {step}
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    {after}


train(torch.randn(8, 4, 3, 32, 32))
"""
PLAIN = {
    "forward": "return self.body(images)",
    "tiles": "return self(images[:, :, ::2])",
    "predict": "return net(images)",
    "run": "return net(images).mean()",
    "step": "loss = run(net, images.cuda())",
    "after": "print(predict(net, images.cuda()))",
}
CAST = "with torch.autocast('cuda'): "


@pytest.mark.parametrize(
    ("changed", "count"),
    [
        ({}, 1),
        ({"predict": f"{CAST}return net(images)"}, 1),
        ({"tiles": f"{CAST}return self(images[:, :, ::2])"}, 1),
        ({"after": f"{CAST}print(predict(net, images.cuda()))"}, 1),
        ({"step": f"{CAST.replace(')', ', enabled=False)')}loss = run(net, images.cuda())"}, 1),
        ({"forward": f"{CAST}return self.body(images)"}, 0),
        ({"run": f"{CAST}return net(images).mean()"}, 0),
        ({"step": f"{CAST}loss = run(net, images.cuda())"}, 0),
        ({"predict": f"{CAST}return net(images)", "run": "return predict(net, images).mean()"}, 0),
        ({"tiles": f"{CAST}return self.body(images)", "run": "return net.tiles(images).mean()"}, 0),
        ({"predict": "return torch.autocast('cuda')", "after": "torch.set_autocast_enabled = predict(net, images)"}, 0),
    ],
)
def test_half_precision_holds_for_the_step_only_where_it_reaches_it(
    tmp_path: Path, changed: dict[str, str], count: int
) -> None:
    written(tmp_path, train=STEP_FILE.format(**{**PLAIN, **changed}), model=MODEL_FILE.format(**{**PLAIN, **changed}))
    settings = Settings(tmp_path, select=("SPD101",), torch=(2, 13))
    assert len(run.merge(run.check([tmp_path / "train.py"], settings, REGISTRY)).diagnostics) == count


RENAMED = """
import torch
import model


def load(path):
    global model
    model = torch.load(path)


model = model.Net()
model = model.cuda()
optimizer = torch.optim.Adam(model.parameters())


def train(loader):
    for images in loader:
        loss = model(images.cuda()).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


train(torch.randn(8, 4, 3, 32, 32))
load("best.pt")
"""


def test_a_model_that_takes_the_name_of_its_module(tmp_path: Path) -> None:
    written(tmp_path, train=RENAMED, model=MODEL_FILE.format(**PLAIN))
    settings = Settings(tmp_path, select=("SPD101", "SPD402"), torch=(2, 13))
    found = run.merge(run.check([tmp_path / "train.py"], settings, REGISTRY)).diagnostics
    assert [each.code for each in found] == ["SPD101"]


ATTENTION = """
import torch
from torch import nn


class Attend(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mask", {mask})

    def forward(self, q, k, v):
        scores = q @ k.transpose(-2, -1) / 8
        scores = scores.masked_fill(self.mask == 0, float("-inf"))
        return torch.softmax(scores, -1) @ v


def train(loader):
    net = Attend().cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    outputs = []
    for q, k, v in loader:
        output = net(q.cuda(), k.cuda(), v.cuda())
        optimizer.zero_grad()
        output.mean().backward()
        optimizer.step()
        outputs.append(output.cpu())
    return outputs


train(torch.load("batches.pt"))
"""


@pytest.mark.parametrize(
    ("mask", "argument"), [("torch.tril(torch.ones(64, 64))", "is_causal=True"), ("torch.ones(64, 64)", "attn_mask=...")]
)
def test_advice_says_what_is_right(tmp_path: Path, mask: str, argument: str) -> None:
    written(tmp_path, train=ATTENTION.format(mask=mask))
    settings = Settings(tmp_path, select=("SPD302", "SPD605"), torch=(2, 13))
    attend, copy = run.merge(run.check([tmp_path / "train.py"], settings, REGISTRY)).diagnostics
    assert f"key, value, {argument})" in attend.advice
    assert "keep `output.detach()` on the GPU" in copy.advice


RUNNER = """
import torch
from torch import nn


class Base:
    def __init__(self, loader):
        self.net, self.loader = nn.Linear(8, 8).cuda(), loader

    def features(self):
        self.net.eval()
        found = []
        for rows in self.loader:
            found.append(self.net(rows.cuda()).argmax(1))
        return found


def fit(net, loader):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for rows in loader:
        loss = net(rows.cuda()).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def test(model):
    {around}
        return model.features()
"""


@pytest.mark.parametrize(("around", "count"), [("with torch.no_grad():", 0), ("if model.loader:", 1)])
def test_gradients_may_be_off_around_a_call_on_an_object_that_is_not_known(tmp_path: Path, around: str, count: int) -> None:
    written(tmp_path, train=RUNNER.format(around=around))
    report = run.merge(run.check([tmp_path / "train.py"], Settings(tmp_path, select=("SPD505",), torch=(2, 13)), REGISTRY))
    assert len(report.diagnostics) == count


STARRED = """
import torch
from torch import nn
from torch.utils.data import DataLoader

{imports}

net = Net()
net.cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for images in DataLoader(Photos("photos"), batch_size=32, num_workers=8):
    loss = net(images.cuda()).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
PHOTOS = """
from torch.utils.data import Dataset


class Photos(Dataset):
    def __init__(self, folder):
        self.folder = folder
"""


@pytest.mark.parametrize(
    "imports", ["from model import *\nfrom photos import *", "from model import Net\nfrom photos import Photos"]
)
def test_a_network_is_known_however_it_is_imported(tmp_path: Path, imports: str) -> None:
    written(tmp_path, train=STARRED.format(imports=imports), model=MODEL_FILE.format(**PLAIN), photos=PHOTOS)
    settings = Settings(tmp_path, select=("SPD402",), torch=(2, 13))
    found = run.merge(run.check([tmp_path / "train.py"], settings, REGISTRY)).diagnostics
    assert [each.line for each in found] == [9]


REGISTRY_OF_DATASETS = """
import cv2
import torch
from scipy.ndimage import distance_transform_edt
from torch.utils.data import Dataset


class Borders(Dataset):
    def __init__(self, masks, scaler):
        self.masks, self.scaler = masks, scaler

    def __len__(self):
        return len(self.masks)

    def __getitem__(self, index):
        mask = cv2.imread(self.masks[index], 0)
        return mask, distance_transform_edt(mask > 0)

    def unscaled(self, data):
        return torch.as_tensor(self.scaler).to(data.device) * data


class Plain(Dataset):
    def __getitem__(self, index):
        return cv2.imread(self.masks[index], 0)


KINDS = {{"borders": Borders, "plain": Plain}}


def get_kind(name):
    return {chosen}
"""
CHOOSES = """
import torch
from torch import nn
from torch.utils.data import DataLoader

from kinds import get_kind


def train(name, masks, size={size}):
    net = nn.Sequential(nn.Conv2d(1, 64, 3), nn.Conv2d(64, 64, 3), nn.Conv2d(64, 64, 3))
    net.cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    kind = get_kind(name)
    rows = kind(masks, 2.0)
    for _ in range(9):
        for images, borders in DataLoader(rows, batch_size=size, num_workers=8):
            loss = (net(images.cuda()) - borders.cuda()).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


train("borders", ["a.png"])
"""


@pytest.mark.parametrize(
    "chosen", ["KINDS[name]", '{"borders": Borders, "plain": Plain}[name]', "Borders if name else Plain"]
)
def test_a_dataset_whose_class_a_table_chooses(tmp_path: Path, chosen: str) -> None:
    written(tmp_path, kinds=REGISTRY_OF_DATASETS.format(chosen=chosen), train=CHOOSES.format(size=32))
    places = found(tmp_path, "train.py", "kinds.py", codes=("SPD202", "SPD209"))
    assert places.keys() == {("kinds.py", "SPD209"), ("train.py", "SPD202")}
    assert places["kinds.py", "SPD209"].line == 14


SHOWS = "def shown():\n    return DataLoader(Borders(['a.png'], 2.0), batch_size=1)\n\n\n"


@pytest.mark.parametrize(
    ("other", "drawn", "count"),
    [
        ("", "shuffle=True", 1),
        ("find_boxes = None", "shuffle=True", 1),
        ("find_boxes = boxes = None", "shuffle=True", 1),
        ("find_boxes = boxes = None", "shuffle=False", 0),
        ("find_boxes = boxes = None", "sampler=by_ratio(rows)", 0),
        ("boxes, roi_align = None, None", "shuffle=True", 0),
        (f"{SHOWS}if __name__ == '__main__':\n    shown()", "", 1),
        (f"{SHOWS}shown()", "", 0),
    ],
)
def test_items_that_are_stacked_in_any_order_have_one_shape(tmp_path: Path, other: str, drawn: str, count: int) -> None:
    kinds = REGISTRY_OF_DATASETS.format(chosen="KINDS[name]").replace("import Dataset", "import DataLoader, Dataset")
    text = CHOOSES.format(size=32).replace("num_workers=8", f"num_workers=8, {drawn}")
    written(tmp_path, kinds=f"{kinds}\n\n{other}\n", train=text)
    assert len(found(tmp_path, "train.py", codes=("SPD402",))) == count


MOVES = """
def ready(net, other):
    {body}
    return net
"""


@pytest.mark.parametrize(
    ("body", "asked", "lines"),
    [
        ("net.cuda()", ("train.py",), [("train.py", 11)]),
        ("net.cuda()", ("train.py", "moves.py"), [("moves.py", 2)]),
        ("other.cuda()", ("train.py",), []),
        ("net.cpu()", ("train.py",), []),
    ],
)
def test_a_network_that_a_helper_moves(
    tmp_path: Path, body: str, asked: tuple[str, ...], lines: list[tuple[str, int]]
) -> None:
    text = CHOOSES.format(size=32).replace("net.cuda()", "net = ready(net, nn.L1Loss())")
    text = text.replace("from kinds import get_kind", "from kinds import get_kind\nfrom moves import ready")
    kinds = REGISTRY_OF_DATASETS.format(chosen="KINDS[name]")
    written(tmp_path, kinds=kinds, train=text, moves=MOVES.format(body=body))
    places = found(tmp_path, *asked, codes=("SPD402",))
    assert [(path, each.line) for (path, _), each in places.items()] == lines


@pytest.mark.parametrize(("size", "count"), [(32, 1), (1, 0)])
def test_items_of_any_size_come_one_by_one(tmp_path: Path, size: int, count: int) -> None:
    written(tmp_path, kinds=REGISTRY_OF_DATASETS.format(chosen="KINDS[name]"), train=CHOOSES.format(size=size))
    assert len(found(tmp_path, "train.py", codes=("SPD402",))) == count


@pytest.mark.parametrize("is_plain", [True, False])
def test_a_package_that_its_files_import_by_name_is_no_project_of_its_own(tmp_path: Path, is_plain: bool) -> None:
    files = {
        "README.md": "a project\n",
        "meters/README.md": "of meters\n",
        "meters/__init__.py": "",
        "meters/parts/README.md": "of parts\n",
        "meters/parts/__init__.py": "",
        "meters/parts/rows.py": "def total(loss):\n    return loss.item()\n",
        "meters/training/__init__.py": "",
        "meters/training/train.py": """
            import torch

            from meters.parts.rows import total

            model = torch.nn.Linear(512, 512).cuda()
            optimizer = torch.optim.AdamW(model.parameters())
            for rows in torch.load("rows.pt"):
                loss = model(rows.cuda()).mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                print(total(loss))
        """,
    }
    for name, text in files.items():
        if is_plain and name.endswith("__init__.py"):
            continue
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(textwrap.dedent(text).lstrip())
    assert ("train.py", "SPD311") in found(tmp_path, "meters/training/train.py") or (
        "train.py",
        "SPD301",
    ) in found(tmp_path, "meters/training/train.py")
