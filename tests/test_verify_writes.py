"""Where runs may write: the copy, all around the script that belongs to the project, and what `--allow-write` names."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from types import SimpleNamespace

import pytest

from speedlint.config import Settings
from speedlint.errors import UserError
from speedlint.registry import Registry
from speedlint.verify import confine, runner
from speedlint.verify.nvml import Meter
from speedlint.verify.plan import Command, Plan, Version, folders_up, plan
from speedlint.verify.runner import Runner
from speedlint.verify.samples import Sample
from speedlint.verify.scratch import scratch
from tests.test_verify_cli import verify, written
from tests.test_verify_runs import SHORT, project_hash

pytestmark = pytest.mark.usefixtures("uncompiled")

PROBE = Path(runner.__file__).parent / "probe"


def run(folder: Path, before: str, *allowed: Path) -> Sample:
    """Runs a training that does something first."""
    written(folder / "train.py", 1)
    text = (folder / "train.py").read_text().replace("import torch\n", "import os, torch\n", 1)
    (folder / "train.py").write_text(text.replace("torch.manual_seed(0)\n", textwrap.dedent(before) + "\n"))
    command = Command(sys.executable, "train.py", False, (), (), folder)
    with scratch(None, allowed) as folders:
        whole = plan(command, Settings(folder), Registry.load(), folder / "train.py")
        return Runner(whole, folders, SHORT, Meter(), lambda _seconds, _steps: None).run(whole.original)


def test_paths_above_the_script_lead_into_the_copy(tmp_path: Path) -> None:
    home = tmp_path / "gans" / "implementations" / "wgan"
    home.mkdir(parents=True)
    (tmp_path / "gans" / "data" / "old").mkdir(parents=True)
    (tmp_path / "gans" / "data" / "old" / "rows.bin").write_bytes(b"rows")
    before = project_hash(tmp_path / "gans" / "data")
    sample = run(
        home,
        """
        os.makedirs("../../data/mnist", exist_ok=True)
        os.makedirs("images", exist_ok=True)
        torch.save(torch.ones(2), "../../data/mnist/rows.pt")
        open("../../data/old/rows.lock", "w").close()
        assert open("../../data/old/rows.bin", "rb").read() == b"rows"
        """,
    )
    assert (sample.ended, sample.note, sample.refused) == ("steps", "", ())
    assert project_hash(tmp_path / "gans" / "data") == before
    assert [path.name for path in home.iterdir()] == ["train.py"]


GAN = """
    import argparse
    import os

    import torch
    import vision
    from torch import nn

    os.makedirs("images", exist_ok=True)
    parser = argparse.ArgumentParser()
    parser.add_argument("--n_epochs", type=int, default=200)
    parser.add_argument("--n_critic", type=int, default=2)
    opt = parser.parse_args()
    cuda = True if torch.cuda.is_available() else False
    torch.manual_seed(1)
    generator, critic = nn.Linear(4, 8), nn.Linear(8, 1)
    if cuda:
        generator.cuda()
        critic.cuda()
    os.makedirs("../../data/mnist", exist_ok=True)
    dataloader = torch.utils.data.DataLoader(vision.Rows("../../data/mnist", download=True), batch_size=16, shuffle=True)
    optimizer_G = torch.optim.SGD(generator.parameters(), lr=0.001)
    optimizer_D = torch.optim.SGD(critic.parameters(), lr=0.001)


    def penalty(real, fake):
        mixed = (torch.rand(real.size(0), 1) * real + fake).requires_grad_(True)
        out = critic(mixed)
        (grad,) = torch.autograd.grad(out, mixed, torch.ones_like(out), create_graph=True, retain_graph=True)
        return ((grad.norm(2, dim=1) - 1) ** 2).mean()


    batches_done = 0
    for epoch in range(opt.n_epochs):
        for i, rows in enumerate(dataloader):
            optimizer_D.zero_grad()
            made = generator(torch.randn(rows.shape[0], 4))
            d_loss = critic(made).mean() - critic(rows).mean() + 10 * penalty(rows.data, made.data)
            d_loss.backward()
            optimizer_D.step()
            optimizer_G.zero_grad()
            if i % opt.n_critic == 0:
                g_loss = -critic(generator(torch.randn(rows.shape[0], 4))).mean()
                g_loss.backward()
                optimizer_G.step()
                if batches_done % 4 == 0:
                    torch.save(made.data[:25], "images/%d.png" % batches_done)
                batches_done += opt.n_critic
"""
VISION = """
    import os

    import torch


    class Rows(torch.utils.data.Dataset):
        \"\"\"As torchvision's MNIST, which it downloads where it is not there.\"\"\"

        def __init__(self, root, download):
            folder = os.path.join(root, "MNIST", "raw")
            os.makedirs(folder, exist_ok=True)
            if download and not os.path.exists(os.path.join(folder, "rows")):
                torch.save(torch.randn(320, 8), os.path.join(folder, "rows"))
            self.rows = torch.load(os.path.join(folder, "rows"))

        def __len__(self):
            return len(self.rows)

        def __getitem__(self, index):
            return self.rows[index]
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel refuses writes on Linux only")
def test_a_gan_that_writes_beside_its_folder_is_verified_from_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the scripts of PyTorch-GAN are, such as ``wgan_gp.py``: the data lies two folders up, and the library elsewhere."""
    home, library = tmp_path / "gans" / "implementations" / "wgan_gp", tmp_path / "library"
    home.mkdir(parents=True)
    library.mkdir()
    (tmp_path / "gans" / ".git").mkdir()
    (home / "wgan_gp.py").write_text(textwrap.dedent(GAN))
    (library / "vision.py").write_text(textwrap.dedent(VISION))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(library), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]))
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    before = project_hash(tmp_path)
    command = Command(sys.executable, "wgan_gp.py", False, (), (), home)
    with scratch(None) as folders:
        whole = plan(command, Settings(home), Registry.load())
        sample = Runner(whole, folders, SHORT, Meter(), lambda _seconds, _steps: None).run(whole.original)
    assert (sample.ended, sample.note, sample.refused, sample.optimizers) == ("steps", "", (), 2)
    assert project_hash(tmp_path) == before


def test_a_linked_file_keeps_its_mode_and_time_and_a_linked_folder_its_files(tmp_path: Path) -> None:
    (tmp_path / "rows.bin").write_bytes(b"rows")
    os.utime(tmp_path / "rows.bin", (1, 1))
    (tmp_path / "images").mkdir()
    for k in range(2001):
        (tmp_path / "images" / f"{k}.png").touch()
    before = project_hash(tmp_path / "images")
    sample = run(
        tmp_path,
        """
        import shutil
        from pathlib import Path
        os.chmod("rows.bin", 0o600)
        Path("rows.bin").touch()
        shutil.rmtree("images")
        """,
    )
    assert (sample.ended, sample.note) == ("steps", "")
    kept = (tmp_path / "rows.bin").stat()
    assert (kept.st_mtime, kept.st_mode & 0o777) == (1, 0o644)
    assert project_hash(tmp_path / "images") == before


def test_a_script_may_ask_for_its_commit(tmp_path: Path) -> None:
    git = ("git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b")
    for words in (("init", "-q"), ("commit", "-q", "--allow-empty", "-m", "first")):
        subprocess.run((*git, *words), check=True)
    before = project_hash(tmp_path / ".git")
    sample = run(
        tmp_path,
        """
        import subprocess
        assert len(subprocess.check_output(["git", "rev-parse", "HEAD"])) > 40
        subprocess.check_output(["git", "status", "--porcelain"])
        """,
    )
    assert (sample.ended, sample.note) == ("steps", "")
    assert project_hash(tmp_path / ".git") == before


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel refuses writes on Linux only")
def test_a_refused_write_is_named_with_what_allows_it(tmp_path: Path) -> None:
    home, out = tmp_path / "project", tmp_path / "scratch"
    home.mkdir()
    out.mkdir()
    making = f"os.makedirs({str(out / 'run')!r})"
    refused = run(home, making)
    assert refused.note.endswith(f"verify refused a write to {out}/run: `--allow-write {out}` allows it")
    assert not list(out.iterdir())
    allowed = run(home, making, out)
    assert (allowed.ended, allowed.refused) == ("steps", ())
    assert (out / "run").is_dir()
    tried = run(home, f"try:\n    open({str(tmp_path / 'x')!r}, 'w')\nexcept OSError:\n    pass")
    assert (tried.ended, tried.refused) == ("steps", (str(tmp_path / "x"),))


def test_a_folder_of_the_project_that_may_be_written_to_is_no_copy(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    assert run(tmp_path, "open('out/here.txt', 'w').close()").ended == "steps"
    assert not list((tmp_path / "out").iterdir())
    assert run(tmp_path, "open('out/here.txt', 'w').close()", tmp_path / "out").ended == "steps"
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["here.txt"]


def test_a_folder_to_write_to_must_be_there(tmp_path: Path) -> None:
    written(tmp_path / "train.py", 1)
    done = verify(tmp_path, "train.py", "--against", "train.py", "--allow-write", "gone")
    assert (done.returncode, "--allow-write gone: there is no such folder" in done.stderr) == (2, True)


@pytest.mark.parametrize(
    ("text", "above"),
    [
        ("open('../../data/x')", 2),
        ('path = ".."', 1),
        ("from .. import x\nfrom ..y import z\nslice[...]", 0),
        ("'a/../../b'", 0),
    ],
)
def test_how_far_up_a_script_reaches(tmp_path: Path, text: str, above: int) -> None:
    script = tmp_path / "train.py"
    script.write_text(text)
    assert folders_up([script], ["--data=../x"] if not above else []) == (above or 1)


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel refuses writes on Linux only")
@pytest.mark.parametrize("names", [pytest.param(("HF_HOME", "datasets"), marks=pytest.mark.slow), ("HF_DATASETS_CACHE", "")])
def test_a_cache_of_datasets_is_read_and_locked_but_not_written_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: tuple[str, str]
) -> None:
    """What ``datasets.load_dataset`` does where the set is in its cache: it takes locks, and writes what it maps."""
    project, cache = tmp_path / "project", tmp_path / "hub" / names[1]
    project.mkdir()
    (cache / "imdb" / "plain").mkdir(parents=True)
    (cache / "imdb" / "plain" / "train.arrow").write_bytes(b"rows")
    (cache / "imdb.lock").touch()
    monkeypatch.setenv(names[0], str(tmp_path / "hub"))
    before = project_hash(cache)
    sample = run(
        project,
        """
        root = os.environ["HF_DATASETS_CACHE"]
        for lock in ("imdb.lock", "imdb/plain/builder.lock"):
            os.close(os.open(os.path.join(root, lock), os.O_RDWR | os.O_CREAT | os.O_TRUNC))
        assert open(os.path.join(root, "imdb/plain/train.arrow"), "rb").read() == b"rows"
        open(os.path.join(root, "imdb/plain/cache-1.arrow"), "wb").close()
        """,
    )
    assert (sample.ended, sample.note, sample.refused) == ("steps", "", ())
    assert project_hash(cache) == before


SLURMD = """
    import json, subprocess, sys, time
    from pathlib import Path
    spool, begun = Path(sys.argv[1]), set()
    while not (spool / "stop").exists():
        for job in set(spool.glob("*.job")) - begun:
            begun.add(job)
            asked = json.loads(job.read_text())
            subprocess.Popen(asked["argv"], env=asked["env"], cwd=asked["cwd"], start_new_session=True)
        time.sleep(0.02)
"""
SRUN = """
    import json, os, sys, time
    from pathlib import Path
    spool = Path(sys.argv[1])
    (spool / "part").write_text(json.dumps({"argv": sys.argv[2:], "env": dict(os.environ), "cwd": os.getcwd()}))
    (spool / "part").rename(spool / "1.job")
    time.sleep(300)
"""
TASK = """
    import os, subprocess, time
    from pathlib import Path
    beside = subprocess.Popen(["sleep", "300"])
    Path(SPOOL, "pids").write_text(f"{os.getpid()} {beside.pid}")
    subprocess.run(["touch", OUTSIDE])
    try:
        open(OUTSIDE, "w")
    except OSError:
        time.sleep(300)
"""
RUN_APART = """
    import sys
    from pathlib import Path
    from speedlint.config import Settings
    from speedlint.verify.nvml import Meter
    from speedlint.verify.plan import Command, Plan, Version
    from speedlint.verify.runner import Limits, Runner
    from speedlint.verify.scratch import scratch
    root, spool = Path(sys.argv[1]), Path(sys.argv[2])
    launcher = (sys.executable, str(spool / "srun.py"), str(spool), sys.executable)
    version = Version("original", root, Command(sys.executable, "train.py", False, (), launcher, root))
    plan = Plan(version, version, root, (root,), (), Settings(root), root / "train.py", ())
    with scratch(None, (spool,)) as folders:
        runner = Runner(plan, folders, Limits(timeout=TIMEOUT), Meter(), lambda _seconds, _steps: None)
        print(runner.run(version).refused)
"""


@pytest.mark.skipif(confine.version() < 1, reason="needs a kernel with Landlock")
def test_tasks_that_a_daemon_starts_are_confined_and_end_with_their_run(tmp_path: Path) -> None:
    """As `srun` has ``slurmd`` start them: they are no children of the run, and not in its process group."""
    project, spool = tmp_path / "project", tmp_path / "spool"
    project.mkdir()
    spool.mkdir()
    names = {"OUTSIDE": str(tmp_path / "outside"), "SPOOL": str(spool)}
    task = "".join(f"{name} = {path!r}\n" for name, path in names.items()) + textwrap.dedent(TASK)
    (project / "train.py").write_text(task)
    for name, text in (("slurmd.py", SLURMD), ("srun.py", SRUN), ("run.py", RUN_APART.replace("TIMEOUT", "8"))):
        (spool / name).write_text(textwrap.dedent(text))
    daemon = subprocess.Popen([sys.executable, str(spool / "slurmd.py"), str(spool)])
    try:
        command = [sys.executable, str(spool / "run.py"), str(project), str(spool)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    finally:
        (spool / "stop").touch()
        daemon.wait()
    assert (done.stderr, str(tmp_path / "outside") in done.stdout) == ("", True)
    assert not (tmp_path / "outside").exists()
    pids = (spool / "pids").read_text().split()
    assert len(pids) == 2
    assert not [pid for pid in pids if Path(f"/proc/{pid}").exists() and "Z" not in Path(f"/proc/{pid}/stat").read_text()]


@pytest.mark.parametrize("kind", ["allowed", "environment", "data"])
def test_a_file_that_is_changed_in_a_linked_folder_is_changed_in_the_copy_alone(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "part" / "inner"
    folder.mkdir(parents=True)
    (folder / "code.py").write_text("old")
    (folder / "beside.py").write_text("beside")
    if kind == "environment":
        (tmp_path / "part" / "pyvenv.cfg").touch()
    for k in range(2001 if kind == "data" else 0):
        (tmp_path / "part" / f"{k}.bin").touch()
    before = project_hash(tmp_path)
    changed = {folder / "code.py": b"new", folder / "beside.py": None}
    with scratch(None, (tmp_path / "part",) if kind == "allowed" else ()) as folders:
        made = folders.version("fixed", tmp_path, (tmp_path,), changed) / "part" / "inner"
        assert [(path.name, path.read_text()) for path in made.iterdir()] == [("code.py", "new")]
    assert project_hash(tmp_path) == before


def imported(folder: Path, adding: str = "") -> Sample:
    """Runs a training whose helper lies in ``src``, and is another one in the version that runs."""
    (folder / "src").mkdir()
    (folder / "tools").mkdir()
    helper = folder / "src" / "helper.py"
    helper.write_text("VALUE = 1\n")
    name = written(folder / "tools" / "train.py", 1)
    script = folder / "tools" / name
    script.write_text(f"import sys\n{adding}\nimport helper\nprint(helper.VALUE)\n" + script.read_text())
    command = Command(sys.executable, "tools/train.py", False, (), (), folder)
    changed = Version("fixed", folder, command, {helper: b"VALUE = 2\nraise SystemExit('the new one')\n"})
    plan = Plan(changed, changed, folder, (folder,), (), Settings(folder), script, (script,))
    with scratch(None) as folders:
        return Runner(plan, folders, SHORT, Meter(), lambda _seconds, _steps: None).run(changed)


def test_what_is_imported_by_the_projects_full_path_comes_from_the_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "src"))
    assert imported(tmp_path).note == "failed with exit code 1: the new one"


def test_a_run_that_imports_the_projects_own_file_proves_nothing(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"src/helper\.py: the fixed version imported this file and not that of its copy"):
        imported(tmp_path, f"sys.path.insert(0, {str(tmp_path / 'src')!r})")


def test_an_editable_install_leads_into_the_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(PROBE))
    lead = importlib.import_module("speedlint_copy").lead
    for folder in ("project/src", "copy/src"):
        (tmp_path / folder).mkdir(parents=True)
    finder = SimpleNamespace(MAPPING={"mine": f"{tmp_path}/project/src", "other": "/opt/other"}, NAMESPACES={})
    monkeypatch.setitem(sys.modules, "__editable___mine_1_0_finder", finder)
    monkeypatch.setattr(sys, "path", [f"{tmp_path}/project", f"{tmp_path}/project/gone", "/opt"])
    lead({"base": f"{tmp_path}/project", "copy": f"{tmp_path}/copy"})
    assert {"mine": f"{tmp_path}/copy/src", "other": "/opt/other"} == finder.MAPPING
    assert sys.path == [f"{tmp_path}/copy", f"{tmp_path}/project/gone", "/opt"]


def test_another_project_is_its_code_and_configuration(tmp_path: Path) -> None:
    for name in ("mine", "other"):
        root = tmp_path / name
        (root / "env" / "lib").mkdir(parents=True)
        written(root / "train.py", 1)
        (root / "env" / "pyvenv.cfg").touch()
        (root / "env" / "lib" / f"{name}.py").touch()
        (root / "small.json").write_text(name)
        (root / "rows.json").write_bytes(b" " * (1 << 20) + b"1")
        (root / f"{name}.py").touch()
    command = Command(sys.executable, "train.py", False, (), (), tmp_path / "mine")
    other = plan(command, Settings(tmp_path), Registry.load(), tmp_path / "other").fixed
    assert {path.name: data is None for path, data in other.changed.items()} == {
        "train.py": False,
        "small.json": False,
        "mine.py": True,
        "other.py": False,
    }
