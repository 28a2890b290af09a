"""One run of a script under the probe: what it measures, what it leaves behind, and what it never touches."""

from __future__ import annotations

import hashlib
import math
import os
import sys
import textwrap
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from speedlint.config import Settings
from speedlint.errors import UserError
from speedlint.verify import runner
from speedlint.verify.nvml import Meter
from speedlint.verify.plan import Command, Plan, Version, entry_of, reached
from speedlint.verify.runner import TIMED, Limits, Mode, Rounding, Runner
from speedlint.verify.samples import Sample
from speedlint.verify.scratch import scratch
from tests.conftest import ROOT

pytestmark = pytest.mark.usefixtures("uncompiled")

SHORT = Limits(steps=6, seconds=0, warmup=2, longest_warmup=4, timeout=60.0)
HEAD = """
    import os, sys
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    data = TensorDataset(torch.randn(64, 4), torch.randn(64, 1))
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(data, batch_size=4)


    def step(x, y):
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


"""
PLAIN = """
    for epoch in range(3):
        for x, y in loader:
            step(x, y)
"""
Run = Callable[..., Sample]


def project_hash(root: Path) -> str:
    """A hash of all paths, contents, modes and link targets of a folder."""
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*")):
        digest.update(str(path.relative_to(root)).encode("utf-8", "surrogateescape"))
        digest.update(str(path.lstat().st_mode).encode())
        if path.is_symlink():
            digest.update(str(path.readlink()).encode())
        elif path.is_file():
            digest.update(path.read_bytes())
    return digest.hexdigest()


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs a script in a project, and checks that the project is as it was and that nothing is left."""

    def running(
        body: str,
        mode: Mode = TIMED,
        limits: Limits = SHORT,
        target: str = "train.py",
        launcher: tuple[str, ...] = (),
        head: str = HEAD,
        **files: str,
    ) -> Sample:
        root = tmp_path / "project"
        root.mkdir(exist_ok=True)
        (root / "README.md").write_text("x\n")
        for name, text in files.items():
            place = root / name.replace("__", "/").replace("_py", ".py")
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(textwrap.dedent(text))
        if target.endswith(".py"):
            (root / target).write_text(textwrap.dedent(head) + textwrap.dedent(body))
        command = Command(sys.executable, target, not target.endswith(".py"), ("--flag",), launcher, root)
        version = Version("original", root, command)
        entry = entry_of(command)
        plan = Plan(version, version, root, (root,), (), Settings(root), entry, reached(entry))
        before = project_hash(root)
        with scratch(None) as folders:
            sample = Runner(plan, folders, limits, Meter(), lambda _seconds, _steps: None).run(version, mode)
            where = folders.folder
        assert project_hash(root) == before
        assert not where.exists()
        return sample

    return running


def test_steps_are_the_loaders_batches(run: Run, whole_torch: None) -> None:
    sample = run(PLAIN)
    assert (sample.ended, sample.clock, sample.ranks) == ("steps", "loader", 1)
    assert len(sample.steps) == SHORT.steps
    assert SHORT.warmup <= len(sample.warmup) <= SHORT.longest_warmup
    assert sample.samples == 4 * SHORT.steps
    assert 0 < sample.step < 1
    assert all(0 <= wait <= step for wait, step in zip(sample.waits, sample.steps, strict=True))
    assert sample.memory["peak_resident"] > 10 << 20


def test_evaluation_is_no_step(run: Run) -> None:
    sample = run("""
    for epoch in range(30):
        for x, y in DataLoader(data, batch_size=32):
            step(x, y)
        with torch.no_grad():
            for x, y in DataLoader(data, batch_size=1):
                model(x)
    """)
    assert sample.samples == 32 * SHORT.steps


def test_without_a_loader_the_optimizer_is_the_clock(run: Run) -> None:
    sample = run("""
    for k in range(50):
        step(torch.randn(4, 4), torch.randn(4, 1))
    """)
    assert (sample.clock, len(sample.steps)) == ("optimizer", SHORT.steps)


@pytest.mark.parametrize("mode", ["time", "loss"])
def test_without_an_optimizer_the_backward_pass_is_the_clock(run: Run, mode: str) -> None:
    sample = run(
        """
    del optimizer, step
    for k in range(400):
        loss = nn.functional.mse_loss(model(torch.randn(4, 4)), torch.randn(4, 1))
        model.zero_grad()
        loss.backward()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter -= 0.1 * parameter.grad
    """,
        Mode(mode),
    )
    assert (sample.ended, sample.clock, sample.note) == ("steps", "backward", "")
    assert len(sample.steps) == SHORT.steps if mode == "time" else len(sample.losses) < 20


def test_two_optimizers_make_one_step(run: Run) -> None:
    sample = run("""
    second = torch.optim.Adam(model.parameters())
    for epoch in range(3):
        for x, y in loader:
            step(x, y)
            second.zero_grad()
            model(x).mean().backward()
            second.step()
    """)
    assert (sample.optimizers, sample.samples) == (2, 4 * SHORT.steps)


def test_losses_are_those_of_the_backward_passes_and_follow_the_seed(run: Run) -> None:
    loss = Mode("loss")
    seeded = "torch.manual_seed(3)\nmodel = nn.Linear(4, 1)\noptimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
    body = textwrap.indent(seeded, "    ") + PLAIN
    first, again, other = run(body, loss), run(body, loss), run(body, Mode("loss", offset=1))
    assert len(first.losses) >= SHORT.steps
    assert first.losses == again.losses != other.losses
    assert first.seeds == (("torch.manual_seed", 3),)


@pytest.mark.slow
def test_rounding_moves_the_losses_after_the_first_a_little(run: Run) -> None:
    first = run(PLAIN, Mode("loss"))
    assert first.stored == first.computed == 2.0**-24
    one, other = (run(PLAIN, Mode("loss", rounding=Rounding(seed, 2.0**-24, seed == 1))).losses for seed in (0, 1))
    assert one[0] == other[0] == first.losses[0]
    assert len({one[1:], other[1:], first.losses[1:]}) == 3
    assert all(map(partial(math.isclose, rel_tol=1e-4), one, first.losses))


@pytest.mark.parametrize(
    "seeding",
    [
        "torch.manual_seed(int.from_bytes(os.urandom(4), 'little'))",
        pytest.param("torch.seed()", marks=pytest.mark.slow),
        pytest.param("import random; random.seed(); torch.manual_seed(random.randrange(99))", marks=pytest.mark.slow),
        pytest.param(
            "import random, time; random.seed(time.time()); torch.manual_seed(random.randrange(99))", marks=pytest.mark.slow
        ),
        pytest.param("import numpy; torch.manual_seed(numpy.random.default_rng().integers(99))", marks=pytest.mark.slow),
        pytest.param(
            "order = torch.Generator().manual_seed(os.getpid()); "
            "assert isinstance(torch.default_generator, torch.Generator)",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_script_with_other_seeds_each_time_is_made_to_repeat_itself(run: Run, seeding: str) -> None:
    body = f"""
    {seeding}
    loader = DataLoader(data, batch_size=4, shuffle=True, generator=globals().get("order"))
    {PLAIN}
    """
    first = run(body, Mode("loss"))
    assert first.note == ""
    again = run(body, Mode("loss", replay=first.seeds))
    assert again.losses == first.losses
    assert run(body, Mode("loss", replay=first.seeds, offset=1)).losses != first.losses


def test_a_rehearsal_comes_soon_to_what_follows_the_steps(run: Run) -> None:
    sample = run(
        """
    for epoch in range(1000):
        for x, y in loader:
            step(x, y)
        with torch.no_grad():
            for x, y in loader:
                model(x)
        if epoch == 2:
            sys.exit("the end")
    """,
        Mode("rehearsal"),
    )
    assert (sample.evaluations, sample.ended, sample.failed, len(sample.losses)) == (3, "script", True, 0)
    assert sample.note == "failed with exit code 1: the end"


@pytest.mark.parametrize(
    ("body", "ended", "said"),
    [
        (HEAD + "    for x, y in loader:\n        step(x, y)\n        if epoch_end(): break\n", "nothing", "NameError"),
        (HEAD + "    print('nothing to do')\n", "nothing", "without a training step"),
        ("    import sys\n    sys.exit(3)\n", "nothing", "exit code 3"),
        ("    import os\n    os.kill(os.getpid(), 9)\n", "nothing", "SIGKILL"),
        ("    import time\n    time.sleep(600)\n", "nothing", "took longer than"),
        ("    input('continue? ')\n", "nothing", "EOFError"),
        (
            "    raise OSError('the hub cannot be reached: offline mode is enabled')\n",
            "nothing",
            "verify sets HF_HUB_OFFLINE=1",
        ),
        ("    this is no Python\n", "nothing", ""),
    ],
)
def test_what_goes_wrong_is_said_in_one_line(run: Run, body: str, ended: str, said: str) -> None:
    if "no Python" in body:
        with pytest.raises(UserError, match=r"train\.py:\d+"):
            run(body)
        return
    timeout = 3.0 if "longer" in said else 60.0
    sample = run(body, limits=Limits(steps=6, seconds=0, warmup=2, timeout=timeout), head="")
    assert sample.ended == ended
    assert said in sample.note
    assert "\n" not in sample.note


def test_a_script_that_swallows_everything_is_still_ended(run: Run) -> None:
    sample = run("""
    while True:
        try:
            for x, y in loader:
                step(x, y)
        except BaseException:
            pass
    """)
    assert len(sample.steps) == SHORT.steps


@pytest.mark.parametrize(
    "context", ["fork", *(pytest.param(each, marks=pytest.mark.slow) for each in ("spawn", "forkserver"))]
)
def test_workers_are_carried_and_ended(run: Run, context: str) -> None:
    sample = run(f"""
    if __name__ == "__main__":
        loader = DataLoader(data, batch_size=4, num_workers=2, multiprocessing_context="{context}")
        for epoch in range(3):
            for x, y in loader:
                step(x, y)
    """)
    assert len(sample.steps) == SHORT.steps
    assert sample.ranks == 1


def test_writes_stay_in_the_copy(run: Run, tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    sample = run(
        f"""
    import shutil
    from pathlib import Path
    here = Path(__file__).parent
    Path("notes.bin").write_bytes(b"overwritten")
    with open("log.bin", "ab") as file:
        file.write(b"more")
    torch.save(model.state_dict(), "old.pt")
    os.makedirs("runs/new")
    shutil.rmtree("output")
    (here / "beside.txt").write_text("x")
    try:
        Path({str(outside)!r}).write_text("x")
        print("wrote outside")
    except OSError:
        pass
    {PLAIN}
    """,
        **{"notes.bin": "a", "log.bin": "b", "old.pt": "c", "output__kept.bin": "d"},
    )
    assert sample.ended == "steps", sample.note
    if sys.platform == "linux":
        assert not outside.exists()


def test_a_module_of_a_package_with_relative_imports(run: Run) -> None:
    training = (
        textwrap.dedent(HEAD) + "from .more import EPOCHS\n" + textwrap.dedent(PLAIN).replace("range(3)", "range(EPOCHS)")
    )
    files = {"pack____init___py": "", "pack__more_py": "EPOCHS = 3\n", "pack__train_py": training}
    sample = run("", target="pack.train", **files)
    assert len(sample.steps) == SHORT.steps, sample.note


def test_ranks_are_recorded_apart_and_the_slowest_sets_the_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole_torch: None
) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    root = ROOT / "fixtures" / "ddp"
    launcher = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    version = Version("original", root, Command(sys.executable, "train.py", False, (), launcher, root))
    plan = Plan(version, version, root, (root,), (), Settings(root), root / "train.py", (root / "train.py",))
    limits = replace(SHORT, threads=None)
    with scratch(tmp_path / "kept") as folders:
        sample = Runner(plan, folders, limits, Meter(), lambda _seconds, _steps: None).run(version)
    assert (sample.ended, sample.ranks, len(sample.steps)) == ("steps", 2, SHORT.steps), sample.note
    assert sample.environment["threads"] == 1, "as torchrun sets it"
    assert sample.samples == 2 * 20 * SHORT.steps
    ranks = {path.name.split("-")[1] for path in (tmp_path / "kept").glob("run1/rank-*.json")}
    assert ranks == {"0", "1"}


def test_a_script_may_lead_its_process_group(run: Run) -> None:
    sample = run("    os.setpgrp()\n" + PLAIN)
    assert (sample.ended, sample.note) == ("steps", "")


def test_no_process_is_left(run: Run) -> None:
    marker = f"left-{os.getpid()}-{time.time_ns()}"
    run(f"""
    import subprocess
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)", "{marker}"])
    {PLAIN}
    """)
    found = [path for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists() and marker.encode() in path.read_bytes()]
    assert not found


@pytest.mark.skipif(sys.platform != "linux", reason="daemons are found through /proc")
def test_no_daemon_is_left(run: Run) -> None:
    marker = f"daemon-{os.getpid()}-{time.time_ns()}"
    run(f"""
    import subprocess, time
    if not os.fork():
        command = [sys.executable, "-c", "import time; time.sleep(300)", "{marker}"]
        subprocess.Popen(command, start_new_session=True, env={{}})
        os._exit(0)
    time.sleep(1)
    {PLAIN}
    """)
    found = [path for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists() and marker.encode() in path.read_bytes()]
    assert not found


def test_an_interpreter_without_torch_and_a_missing_one(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import torch_that_is_not_there\n")
    for interpreter, said in ((sys.executable, "ModuleNotFoundError"), (str(tmp_path / "no-python"), None)):
        version = Version("original", tmp_path, Command(interpreter, "train.py", False, (), (), tmp_path))
        entry = tmp_path / "train.py"
        plan = Plan(version, version, tmp_path, (tmp_path,), (), Settings(tmp_path), entry, (entry,))
        with scratch(None) as folders:
            runner = Runner(plan, folders, SHORT, Meter(), lambda _seconds, _steps: None)
            if said is None:
                with pytest.raises(UserError, match="no such program"):
                    runner.run(version)
            else:
                note = runner.run(version).note
                assert said in note
                assert note.endswith(f"; {sys.executable} ran it: `--python` names another")


def test_a_script_that_ends_early_is_measured_as_far_as_it_went(run: Run) -> None:
    many = Limits(steps=500, seconds=0, warmup=2, longest_warmup=4, timeout=60.0)
    sample = run(PLAIN, limits=many)
    assert (sample.ended, sample.note) == ("script", "")
    assert len(sample.warmup) + len(sample.steps) == 3 * 16
    crashed = run(PLAIN + "    raise RuntimeError('the disk is gone')\n", limits=many)
    assert len(crashed.steps) == len(sample.steps)
    assert crashed.note == "failed with exit code 1: RuntimeError: the disk is gone"


def test_steps_of_half_a_minute_are_compared_as_far_as_the_timeout_goes(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "_SOON", 1e-3)  # of the timeout: what nine minutes of ten are to such steps
    slow = PLAIN.replace("        step(x, y)", "        step(x, y)\n            time.sleep(0.05)")
    sample = run("    import time\n" + slow, Mode("loss"))
    assert (sample.ended, sample.note) == ("steps", "")
    assert 10 <= len(sample.losses) < 48


def test_one_batch_taken_before_the_loop_is_no_clock(run: Run) -> None:
    sample = run("""
    x, y = next(iter(DataLoader(data, batch_size=64)))
    for k in range(400):
        step(x, y)
    """)
    assert (sample.clock, len(sample.steps)) == ("optimizer", SHORT.steps)


def test_a_loader_read_in_a_thread_does_not_keep_the_run_from_ending(run: Run) -> None:
    sample = run("""
    import queue, threading
    batches = queue.Queue(2)

    def fill():
        while True:
            for batch in loader:
                batches.put(batch)

    threading.Thread(target=fill).start()
    while True:
        step(*batches.get())
    """)
    assert (sample.ended, sample.note, len(sample.steps)) == ("steps", "", SHORT.steps)


def test_a_thread_that_waits_for_ever_does_not_keep_the_run_from_ending(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "_LINGERS", 0.5)
    sample = run(f"""
    import queue, threading
    threading.Thread(target=queue.Queue().get).start()
    {PLAIN}
    """)
    assert (sample.ended, sample.note, sample.wall < SHORT.timeout / 2) == ("steps", "", True)


def test_processes_that_the_script_starts_itself_are_ranks(run: Run) -> None:
    sample = run("""
    def work(rank):
        for epoch in range(3):
            for x, y in loader:
                step(x, y)

    if __name__ == "__main__":
        torch.multiprocessing.spawn(work, nprocs=2)
    """)
    assert (sample.ranks, sample.samples) == (2, 2 * 4 * SHORT.steps)


@pytest.mark.parametrize(
    "call",
    [
        pytest.param("torch.autograd.backward(loss)", marks=pytest.mark.slow),
        "torch.autograd.backward([loss / 2, loss / 2])",
    ],
)
def test_a_backward_pass_by_its_function_is_one_too(run: Run, call: str) -> None:
    body = """
        torch.manual_seed(0)
        for epoch in range(3):
            for x, y in loader:
                loss = nn.functional.mse_loss(model(x), y)
                optimizer.zero_grad()
                CALL
                optimizer.step()
    """
    losses = run(body.replace("CALL", call), Mode("loss")).losses
    assert losses == pytest.approx(run(body.replace("CALL", "loss.backward()"), Mode("loss")).losses)
    assert len(losses) == SHORT.steps + SHORT.longest_warmup
    assert run(body.replace("CALL", call)).clock == "loader"


def test_a_pass_within_a_backward_pass_is_none_of_the_trainings(run: Run) -> None:
    body = """
        from torch.utils.checkpoint import checkpoint
        for x, y in loader:
            loss = nn.functional.mse_loss(checkpoint(model, x.requires_grad_(), use_reentrant=True), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    """
    assert len(run(body, Mode("loss")).losses) == SHORT.steps + SHORT.longest_warmup


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_training_in_a_forked_process_is_said_not_to_be_seen(run: Run) -> None:
    body = """
        import multiprocessing

        def train():
            for x, y in loader:
                step(x, y)

        process = multiprocessing.get_context("fork").Process(target=train)
        process.start()
        process.join()
    """
    assert "processes that were forked from it trained" in run(body).note
