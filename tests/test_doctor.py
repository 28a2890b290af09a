"""`speedlint doctor`: what each check says of a machine, and the command."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from speedlint.doctor import examine
from speedlint.doctor.advice import Advice, Level, size
from speedlint.doctor.facts import Facts, Gpu, Loading, Torch, ask_torch
from speedlint.errors import UserError
from speedlint.host import Storage
from tests.conftest import Project

H100 = Gpu("H100", 80 << 30, (9, 0), 79 << 30)
TORCH = Torch(
    python="3.12.1",
    executable="/usr/bin/python",
    version="2.6.0+cu124",
    cuda="12.4",
    available=True,
    driver_cuda=(12, 8),
    architectures=("sm_50", "sm_80", "sm_90"),
    cudnn=90100,
    triton=True,
    compiler="/usr/bin/cc",
    gpus=(H100,),
)
MACHINE = Facts(
    torch=TORCH,
    cores=16,
    visible_cores=16,
    quota=float("inf"),
    busy=0.5,
    memory=64 << 30,
    shared_memory=(32 << 30, 31 << 30),
    driver=True,
    environment={"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"},
    data=((Path("/data"), Storage("/data", "ext4", False, False, 1 << 40)),),
)


def told(facts: Facts) -> list[Advice]:
    """What is not fine."""
    return [advice for advice in examine(facts) if advice.level is not Level.FINE]


def machine(**changes: Any) -> Facts:
    """The good machine with other facts; ``torch`` may be a dictionary of changes to it."""
    if isinstance(changes.get("torch"), dict):
        changes["torch"] = dataclasses.replace(TORCH, **changes["torch"])
    return dataclasses.replace(MACHINE, **changes)


def test_a_good_machine_has_nothing_to_be_told() -> None:
    assert told(MACHINE) == []
    said = [advice.what for advice in examine(MACHINE)]
    assert said[0] == "torch 2.6.0+cu124, Python 3.12.1, CUDA 12.4; the driver runs up to 12.8"
    assert said[1] == "H100, 80 GiB, compute capability 9.0: TF32, bfloat16 and float16 on Tensor Cores"


NO_GPU: dict[str, Any] = {"available": False, "gpus": ()}


@pytest.mark.parametrize(
    ("changes", "topic", "level", "words"),
    [
        ({"torch": {"missing": "ImportError: libcudart.so"}}, "torch", "warning", "cannot be imported by /usr/bin/python"),
        (
            {"torch": {**NO_GPU, "cuda": None}},
            "torch",
            "warning",
            "a build without CUDA, on a machine with",
        ),
        ({"torch": NO_GPU, "environment": {"CUDA_VISIBLE_DEVICES": ""}}, "torch", "warning", "hides every GPU"),
        (
            {"torch": {**NO_GPU, "driver_cuda": (11, 4)}},
            "torch",
            "warning",
            "and the driver runs up to 11.4",
        ),
        ({"torch": NO_GPU}, "torch", "warning", "torch can use no GPU"),
        ({"torch": {"version": "1.13.1+cu117", "cuda": "11.7"}}, "torch", "warning", "has no `torch.compile`"),
        ({"torch": {"cudnn": None}}, "cudnn", "warning", "torch has no cuDNN"),
        ({"torch": {"triton": False}}, "compile", "note", "Triton is missing"),
        ({"torch": {"compiler": None}}, "compile", "note", "a C compiler is missing"),
        ({"torch": {"architectures": ("sm_50", "sm_80")}}, "gpu 0", "warning", "not for compute capability 9.0"),
        ({"torch": {"architectures": ("sm_80", "compute_80")}}, "gpu 0", "note", "the driver compiles them"),
        ({"torch": {"gpus": (Gpu("T4", 15 << 30, (7, 5)),)}}, "gpu 0", "note", "bfloat16 is emulated"),
        ({"torch": {"gpus": (Gpu("P100", 16 << 30, (6, 0)),)}}, "gpu 0", "note", "mixed precision saves it memory"),
        (
            {"torch": {"gpus": (dataclasses.replace(H100, free=8 << 30),)}},
            "gpu 0",
            "warning",
            "others hold 72 GiB of its",
        ),
        ({"torch": {"gpus": (H100, Gpu("A100", 80 << 30, (8, 0)))}}, "gpus", "note", "of several kinds"),
        (
            {"quota": 4.0, "cores": 4},
            "cores",
            "warning",
            "a quota of 4 cores holds this process",
        ),
        ({"cores": 2, "visible_cores": 2}, "cores", "note", "2 cores for this process and 1 GPU"),
        ({"busy": 12.0}, "cores", "note", "other processes keep 12.0 of 16 busy"),
        (
            {"loaders": (Loading(Path("/x/train.py"), 7, 32),)},
            "workers",
            "warning",
            "train.py:7 starts 32 workers on 16",
        ),
        ({"shared_memory": (64 << 20, 64 << 20)}, "shared memory", "warning", "64 MiB in /dev/shm"),
        ({"shared_memory": (32 << 30, 5 << 20)}, "shared memory", "warning", "5 MiB of 32 GiB free"),
        ({"environment": {}}, "allocator", "note", "blocks of fixed size"),
        (
            {"data": ((Path("/d"), Storage("/d", "nfs4", True, None, 1)),)},
            "data",
            "warning",
            "nfs4 (/d), over a network",
        ),
        ({"data": ((Path("/d"), Storage("/", "ext4", False, True, 1)),)}, "data", "note", "calls itself a spinning disk"),
    ],
)
def test_what_is_told(changes: dict[str, Any], topic: str, level: str, words: str) -> None:
    found = [each for each in told(machine(**changes)) if words in each.what]
    assert [(each.topic, each.level.value) for each in found] == [(topic, level)]
    assert all(each.advice for each in told(machine(**changes)))


@pytest.mark.parametrize(
    ("name", "slow", "harmless"),
    [
        ("CUDA_LAUNCH_BLOCKING", "1", "0"),
        ("NVIDIA_TF32_OVERRIDE", "0", "1"),
        ("PYTORCH_NO_CUDA_MEMORY_CACHING", "1", ""),
        ("TORCH_COMPILE_DISABLE", "1", "0"),
        ("TORCH_DISTRIBUTED_DEBUG", "DETAIL", "OFF"),
        ("NCCL_DEBUG", "info", "WARN"),
        ("PYTHONMALLOC", "debug", "malloc"),
        ("OMP_NUM_THREADS", "64", "16"),
    ],
)
def test_switches_in_the_environment(name: str, slow: str, harmless: str) -> None:
    allocator = MACHINE.environment
    assert len(told(machine(environment={**allocator, name: slow}))) == 1
    assert told(machine(environment={**allocator, name: harmless})) == []


def test_kernels_of_a_lower_minor_capability_run() -> None:
    ada = dataclasses.replace(H100, name="L4", capability=(8, 9))
    assert told(machine(torch={"gpus": (ada,), "architectures": ("sm_80", "sm_90")})) == []
    blackwell = dataclasses.replace(H100, name="B200", capability=(10, 0))
    assert told(machine(torch={"gpus": (blackwell,), "architectures": ("sm_90", "sm_100a")})) == []


def test_a_machine_without_a_gpu_is_not_told_to_have_one() -> None:
    cpu = {**NO_GPU, "version": "2.13.0+cpu", "cuda": None, "cudnn": None, "triton": False, "architectures": ()}
    assert told(machine(torch=cpu, driver=False, environment={})) == []


@pytest.mark.parametrize(("amount", "text"), [(64 << 20, "64 MiB"), (3 << 29, "1.5 GiB"), (139 << 30, "139 GiB")])
def test_sizes(amount: int, text: str) -> None:
    assert size(amount) == text


LOADERS = """
from torch.utils.data import DataLoader

WORKERS = 500


def loaders(dataset, unknown):
    return DataLoader(dataset, num_workers=WORKERS), DataLoader(dataset, num_workers=unknown)
"""


@pytest.fixture
def fake(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """A torch that is imported in no time."""
    folder = tmp_path_factory.mktemp("fake")
    (folder / "torch.py").write_text(FAKE)
    monkeypatch.setenv("PYTHONPATH", str(folder))


def test_the_command(project: Project, fake: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_LAUNCH_BLOCKING", "1")
    project.write("train.py", LOADERS)
    result = project.run("doctor", "train.py")
    assert result.exit_code == 1
    assert "CUDA_LAUNCH_BLOCKING=1 waits for the GPU after every kernel" in result.stdout
    assert "train.py:8 starts 500 workers" in result.stdout
    monkeypatch.delenv("PYTHONPATH")
    report = json.loads(project.run("doctor", "train.py", "--format", "json").stdout)
    assert report["version"] == 1
    assert report["facts"]["torch"]["version"].startswith("2.13")
    assert report["facts"]["loaders"] == [{"path": "train.py", "line": 8, "workers": 500}]
    assert {each["level"] for each in report["findings"]} <= {"ok", "note", "warning"}


def test_a_bad_file_costs_one_line_and_not_the_rest(project: Project, fake: None) -> None:
    project.write("bad.py", "from torch.utils.data import DataLoader\ndef")
    result = project.run("doctor", "bad.py")
    assert result.exit_code == 2
    assert result.stderr.startswith("error: bad.py:2: ")
    assert "torch 2.6.0" in result.stdout


def test_an_interpreter_that_says_nothing_sensible(project: Project, fake: None) -> None:
    result = project.run("doctor", "--python", "no-such-python")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("error: no-such-python: cannot be started (")
    result = project.run("doctor", "--data", "no-such-folder")
    assert result.stderr == (
        "error: no-such-folder: cannot be read (No such file or directory); --data names the folder of the training data\n"
    )


def interpreter(folder: Path, body: str) -> str:
    """An executable that stands for the user's Python."""
    path = folder / "python"
    path.write_text(f"#!{sys.executable}\n{body}\n")
    path.chmod(0o755)
    return str(path)


def test_an_interpreter_that_fails_or_hangs_costs_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="ended with 3 when torch was imported: Segmentation fault"):
        ask_torch(interpreter(tmp_path, "import sys; print('Segmentation\\nfault', file=sys.stderr); sys.exit(3)"), 60)
    with pytest.raises(UserError, match=r"gave no answer in 0 seconds"):
        ask_torch(interpreter(tmp_path, "import time; time.sleep(60)"), 0.2)
    with pytest.raises(UserError, match=r"gave an answer that cannot be read"):
        ask_torch(interpreter(tmp_path, "print('speedlint-doctor:{')"), 60)


def test_a_gpu_is_asked_for_all_it_can_do(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text(FAKE)
    body = "import os, runpy, sys\n"
    body += f"sys.path.insert(1, {str(tmp_path)!r})\nrunpy.run_path(sys.argv[1], run_name='__main__')"
    found = ask_torch(interpreter(tmp_path, body), 60)
    assert (found.version, found.cuda, found.driver_cuda, found.architectures) == ("2.6.0", "12.4", (12, 8), ("sm_90",))
    assert found.gpus == (Gpu("H100", 1000, (9, 0), 900, 132),)
    assert "xpu" in found.unanswered


FAKE = """
from types import SimpleNamespace as N
__version__ = "2.6.0"
version = N(cuda="12.4", hip=None)
_C = N(_cuda_getDriverVersion=lambda: 12080)
properties = N(name="H100", total_memory=1000, major=9, minor=0, multi_processor_count=132)
cuda = N(
    is_available=lambda: True, get_arch_list=lambda: ["sm_90"], device_count=lambda: 1,
    get_device_properties=lambda index: properties, mem_get_info=lambda index: (900, 1000),
)
backends = N(cudnn=N(is_available=lambda: True, version=lambda: 90100), mps=N(is_available=lambda: False))
distributed = N(is_available=lambda: True, is_nccl_available=lambda: True)
get_float32_matmul_precision = lambda: "highest"
get_num_threads = lambda: 8
"""
