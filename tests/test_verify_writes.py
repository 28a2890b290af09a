"""Where runs may write: the copy, all around the script that belongs to the project, and what `--allow-write` names."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

import pytest

from speedlint.config import Settings
from speedlint.registry import Registry
from speedlint.verify.nvml import Meter
from speedlint.verify.plan import Command, folders_up, plan
from speedlint.verify.runner import Runner
from speedlint.verify.samples import Sample
from speedlint.verify.scratch import scratch
from tests.test_verify_cli import verify, written
from tests.test_verify_runs import SHORT, project_hash


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
