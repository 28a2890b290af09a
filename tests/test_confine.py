"""What the kernel refuses a confined command: tried with a shell, which knows nothing of speedlint."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from speedlint.verify import confine

ALLOWED = ["echo new >{inside}/a", "mkdir {inside}/b", "mv {inside}/a {inside}/b/", "rm {inside}/b/a", "echo x >/dev/null"]
REFUSED = [
    "echo new >{outside}/a",
    "echo new >{outside}/old",
    "truncate -s 0 {outside}/old",
    "rm -f {outside}/old",
    "mkdir {outside}/b",
    "ln -s a {outside}/b",
    "ln {outside}/old {inside}/b",
    "mv {outside}/old {inside}/b",
]


@pytest.mark.skipif(confine.version() < 3, reason="needs a kernel whose Landlock knows truncation (6.2)")
def test_writes_elsewhere_are_refused(tmp_path: Path) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    (outside / "old").write_text("old")
    lines = [f"({line}) 2>/dev/null; echo $?" for line in (*ALLOWED, *REFUSED)]
    script = "\n".join(lines).format(inside=inside, outside=outside)
    done = subprocess.run([*confine.prefix(inside), "sh", "-c", script], capture_output=True, text=True, check=True)
    refused = [status != "0" for status in done.stdout.split()]
    assert refused == [False] * len(ALLOWED) + [True] * len(REFUSED)
    assert [path.name for path in outside.iterdir()] == ["old"]
    assert (outside / "old").read_text() == "old"


@pytest.mark.skipif(confine.version() < 1, reason="needs a kernel with Landlock")
def test_a_folder_that_is_missing_ends_it(tmp_path: Path) -> None:
    done = subprocess.run([*confine.prefix(tmp_path / "gone"), "echo", "run"], capture_output=True, text=True, check=False)
    assert done.stdout == ""
    assert (
        done.stderr == "cannot be confined to its copy ([Errno 2] No such file or directory: '" + f"{tmp_path / 'gone'}')\n"
    )


@pytest.mark.skipif(sys.platform != "linux", reason="the starter is Linux's")
def test_a_kernel_without_it_confines_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object) -> int:
        raise OSError(38, os.strerror(38))

    monkeypatch.setattr(confine, "_call", missing)
    assert confine.version() == 0
    inside = tmp_path / "inside"
    command = [*confine.prefix(inside), "sh", "-c", f"echo >{tmp_path / 'outside'}; echo $PPID"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (tmp_path / "outside").exists()
    assert done.stdout == f"{os.getpid()}\n"


def test_the_networks_between_gpus_are_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("infiniband", "gdrdrv", "nvidia0", "nvidia-caps", "cxi0", "null", "shm", "sda", "mem")
    for name in names:
        (tmp_path / name).touch()
    assert [Path(each).name for each in confine.devices(tmp_path)] == sorted(names[:-2])
    monkeypatch.setenv("CUDA_MPS_PIPE_DIRECTORY", str(tmp_path / "mps"))
    assert confine.shared_gpu() == []
    (tmp_path / "mps").mkdir()
    assert confine.shared_gpu() == [tmp_path / "mps"]


def test_a_gpu_of_cuda_is_seen(tmp_path: Path) -> None:
    assert not confine.has_cuda(tmp_path)
    (tmp_path / "nvidiactl").touch()
    assert confine.has_cuda(tmp_path)


@pytest.mark.skipif(confine.version() < 1, reason="needs a kernel with Landlock")
@pytest.mark.parametrize("has_cuda", [False, True])
def test_processes_to_come_name_their_threads_where_cuda_is(has_cuda: bool, tmp_path: Path) -> None:
    """CUDA does not start where it may not (`cuInit` fails with 304), and torch would train on the CPU."""
    lines = f"""
import subprocess, sys
sys.path.insert(0, {str(Path(confine.__file__).parent)!r})
import confine
confine.has_cuda = lambda: {has_cuda}
confine.confine([{str(tmp_path)!r}])
name = "import os; open(f'/proc/self/task/{{os.getpid()}}/comm', 'w').write('named')"
sys.exit(subprocess.run([sys.executable, "-c", name], stderr=subprocess.DEVNULL).returncode)
"""
    assert (subprocess.run([sys.executable, "-c", lines], check=False).returncode == 0) == has_cuda
