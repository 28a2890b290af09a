"""The target torch release, from what a project says of itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from speedlint import requirements, target
from speedlint.config import Settings
from tests.conftest import Project


@pytest.fixture(autouse=True)
def _nothing_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target, "_installed", lambda disk: target.Target(None, ""))


@pytest.mark.parametrize(
    ("file", "text", "release"),
    [
        ("requirements.txt", "numpy\ntorch>=2.1  # the rest\n", (2, 1)),
        ("requirements.txt", "torch==2.0.1+cu118\n", (2, 0)),
        ("requirements.txt", "http://a.org/whl/cu80/torch-0.3.0.post4-cp35-cp35m-linux_x86_64.whl\n", (0, 3)),
        ("requirements.txt", "torch @ https://a.org/whl/torch-2.0.1%2Bcu118-cp310-cp310-linux_x86_64.whl ; a\n", (2, 0)),
        ("requirements.txt", "https://a.org/torchvision-0.9.1-cp36-none-any.whl\ntorch==1.8.1\n", (1, 8)),
        ("requirements.txt", "torch~=2.2 ; python_version > '3.8'\n", (2, 2)),
        ("requirements.txt", "torch==1.13.*\n", (1, 13)),
        ("requirements.txt", "pytorch-lightning>=2.0\npytorch==1.3.1\n", (1, 3)),
        ("requirements.txt", "torch<2.5,>=2.3,!=2.4\n", (2, 3)),
        ("requirements.txt", "torch[opt]>=2.6\n", (2, 6)),
        ("requirements.txt", "torch>=2.10\n", (2, 10)),
        ("requirements.txt", "torch\n", None),
        ("requirements.txt", "torch<3\n", None),
        ("requirements.txt", "torchvision>=0.20\ntorch-geometric==2.5\n", None),
        ("requirements.txt", "torch>=\n", None),
        ("requirements.txt", "numpy 1.14.3\nPython 3.6.7\ntorch 0.4.1\n", (0, 4)),
        ("requirements.txt", "torch                1.13.1+cu117\n", (1, 13)),
        ("requirements.txt", "torch     1.9.0    py3.8_cuda11.1_0    pytorch\n", (1, 9)),
        ("requirements.txt", "torch 2 is best\n", None),
        ("requirements.txt", "torch is >= great\n", None),
        ("requirements.txt", "torch @ https://x.org/torch==1.0.whl\n", None),
        ("requirements.txt", "torch (>=2.2)\n", (2, 2)),
        ("requirements.txt", "Torch >= 2.2, < 3\n", (2, 2)),
        ("requirements.txt", "torch!=2.0,>2.1\n", (2, 1)),
        ("requirements.txt", "torch==2.1.0 --hash=sha256:abc\n", (2, 1)),
        ("requirements.txt", "pytorch==1.0.1 cudatoolkit=9.0 -c pytorch\n", (1, 0)),
        ("requirements.txt", "pytorch=1.7, cudatoolkit=11.0\n", (1, 7)),
        ("requirements.txt", "torch == v2.1, < 3 -f wheels-9.0.html\n", (2, 1)),
        ("requirements.txt", "torch>=2.0,torch<2.5\n", (2, 0)),
        ("requirements.txt", "torch version >= 1.10\n", (1, 10)),
        ("requirements.txt", "torch>=1.0 torch-scatter==2.0.9\n", (1, 0)),
        ("requirements-train.txt", "torch>=2.4\n", (2, 4)),
        ("requirments.txt", "python=3.7\npytorch=1.3.0\n", (1, 3)),
        ("requirement.txt", "torch=1.8.1=pypi_0\n", (1, 8)),
        ("requirements.txt", "torch!=2.4\n", None),
        ("requirements.txt", "torch<=2.4\n", None),
        ("requirements/base.txt", "torch>=2.4\n", (2, 4)),
        ("pyproject.toml", "[project]\ndependencies = ['numpy', 'torch>=2.3']\n", (2, 3)),
        ("pyproject.toml", "[project.optional-dependencies]\ntrain = ['torch>=2.2']\n", (2, 2)),
        ("pyproject.toml", "[dependency-groups]\ntrain = [{include-group = 'x'}, 'torch>=2.2']\n", (2, 2)),
        ("pyproject.toml", "[tool.poetry.dependencies]\ntorch = '^2.1'\n", (2, 1)),
        ("pyproject.toml", "[tool.poetry.dependencies]\ntorch = '2.1.2'\n", (2, 1)),
        ("pyproject.toml", "[project]\ndependencies = 'torch>=2.3'\n", None),
        ("pyproject.toml", "[broken torch", None),
        ("setup.cfg", "[options]\ninstall_requires =\n    numpy\n    torch>=1.13\n", (1, 13)),
        ("setup.py", "raise SystemExit\nsetup(install_requires=['torch>=2.0'])\n", (2, 0)),
        ("setup.py", "setup(install_requires=[torch>=\n", None),
        ("environment.yml", "dependencies:\n  - pytorch=2.1.0=py3.11_cuda12.1\n", (2, 1)),
        ("environment.yaml", "dependencies:\n  - pytorch::pytorch>=2.2\n", (2, 2)),
        ("environment.yml", "dependencies:\n  - pip:\n    - torch==2.3.1\n", (2, 3)),
        ("tabnet_environment.yml", "channels:\n  - pytorch\ndependencies:\n  - pytorch=1.9.0=py3.8_cuda11\n", (1, 9)),
        ("py38_env.yaml", "dependencies:\n  - pytorch=1.10\n", (1, 10)),
        ("conda.yml", "dependencies:\n  - pytorch==1.7.1\n", (1, 7)),
        ("conda_environment.yaml", "dependencies:\n  - conda-forge::pytorch=2.0.*\n", (2, 0)),
        ("requirements_gpu.yml", "dependencies:\n  - pip:\n      - torch==1.12.1+cu116\n", (1, 12)),
        ("cog.yaml", 'build:\n  python_packages:\n    - "torch==1.10.0"\npredict: "predict.py:Predictor"\n', (1, 10)),
        ("Dockerfile", "FROM pytorch/pytorch:1.7.1-cuda11.0-cudnn8-runtime\nRUN pip install h5py\n", (1, 7)),
        ("Dockerfile", "FROM --platform=linux/amd64 docker.io/pytorch/pytorch:2.1.0-cuda12.1-cudnn8-devel\n", (2, 1)),
        ("Dockerfile", "FROM pytorch/pytorch:1.13.1-cuda11\nRUN pip install -U 'torch>=2.4' torchvision\n", (2, 4)),
        ("Dockerfile", "FROM pytorch/pytorch:1.13.1-cuda11\nRUN pip install --upgrade torch\n", None),
        ("Dockerfile", "FROM pytorch/pytorch:1.13.1\nRUN pip install git+https://x/y.git#egg=y torch==2.4.0\n", (2, 4)),
        ("Dockerfile", "FROM x\nRUN if a; then pip install torch==1.4.0; else pip install torch==2.4.0; fi\n", None),
        ("Dockerfile", "FROM x\nRUN pip install torch==2.4.0\nRUN pip uninstall -y torch==1.12.0\n", None),
        ("Dockerfile", "FROM x\nENV PYTORCH=1.7\nRUN pip install torch~=2.4\n", (2, 4)),
        ("Dockerfile", "FROM x\nRUN pip install light/torch==1.2 my.torch==1.13\n", None),
        ("Dockerfile", "FROM x\nRUN conda install -y pytorch=1.4.0 cudatoolkit=10.1 -c pytorch\n", (1, 4)),
        (
            "Dockerfile",
            "FROM x\r\nRUN pip install torch==1.4.0 && \\\r\n  pip uninstall -y pillow  # torch==1.9\r\n",
            (1, 4),
        ),
        ("Dockerfile", "FROM pytorch/pytorch:1.4\nRUN pip uninstall -y torch && pip install torch==2.1.0\n", None),
        ("Dockerfile", "FROM pytorch/pytorch:1.4\nRUN pip install https://x/torch-2.1.0-cp310.whl\n", None),
        ("Dockerfile", "FROM pytorch/pytorch:1.4 as builder\nRUN make\nFROM nvidia/cuda:12\n", None),
        ("Dockerfile", "FROM pytorch/pytorch:1.4\nRUN poetry add torch==2.1\n", None),
        ("Dockerfile.serve", "FROM pytorch/pytorch:1.7.1-cuda11.0-cudnn8-runtime\n", None),
        ("docker/Dockerfile", "FROM nvidia/cuda:11.3\nRUN pip install \\\n    torch==1.12.1+cu113 \\\n    numpy\n", (1, 12)),
        ("Dockerfile", "FROM pytorch/pytorch:1.4-cuda10.1\nRUN pip install -U 'torch==1.8.1' torch-scatter==2\n", (1, 8)),
        ("Dockerfile", "FROM pytorch/pytorch:latest\n# pip install torch==1.8\nRUN pip install torch-geometric==1\n", None),
        ("Dockerfile", "FROM pytorch/pytorch:nightly-devel-cuda10.0-cudnn7\n", None),
        ("cart_pole_env.yml", "agent:\n  - torch\n  - torch_seed: 3\n", None),
        ("train.yml", "dependencies:\n  - pytorch=1.9.0\n", None),
        ("README.md", "## Requirements\n* Python 3\n* Pytorch 0.3\n* numpy\n", (0, 3)),
        ("README.md", "Python >= 3.5.5, PyTorch == 0.3.1, torchvision == 0.2.0\n", (0, 3)),
        ("README.rst", "- `PyTorch` 0.2.0\n", (0, 2)),
        ("README.md", "* Pytorch 0.2 (0.3 breaks the decoder)\n", (0, 2)),
        ("README.md", "* Pytorch 0.2 (or later)\n", None),
        ("README.md", "* Pytorch 0.3+\n", None),
        ("README.md", "* PyTorch 0.3 or newer\n", None),
        ("README.md", "* Pytorch 0.4\n* PyTorch 1.0\n", None),
        ("README.md", "Runs on PyTorch 0.3, see the branch `old`.\n", None),
    ],
)
def test_requirement(tmp_path: Path, file: str, text: str, release: tuple[int, int] | None) -> None:
    path = tmp_path / file
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    assert target.find(Settings(tmp_path)) == (release, str(path) if release else "")


@pytest.mark.parametrize("file", ["requirements.txt", "setup.py", "README.md", "environment.yml"])
def test_numbers_that_python_refuses_to_read(tmp_path: Path, file: str) -> None:
    (tmp_path / file).write_text(f"torch>={'9' * 5000}.1\npip install torch=={'9' * 5000}.0\n- pytorch={'1' * 5000}.0\n")
    assert target.find(Settings(tmp_path)) == (None, "")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le"])
def test_requirements_as_powershell_writes_them(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "requirements.txt"
    begin = "\ufeff" if encoding == "utf-16-le" else ""
    path.write_bytes(f"{begin}numpy==1.26.0\r\ntorch==2.0.1\r\n".encode(encoding))
    assert target.find(Settings(tmp_path)) == ((2, 0), str(path))


@pytest.mark.parametrize(
    ("text", "release"),
    [
        ("# Requirements\n* Python 3\n* PyTorch 1.0.0\n* numpy\n", (1, 0)),
        ("- `pytorch` == 1.0\n", (1, 0)),
        ("1. Install Python 3.6, PyTorch 1.9.0.\n", (1, 9)),
        ("  * Install pytorch == 0.4.0\n", (0, 4)),
        ("pip install torch==1.11.0+cu113 torchvision==0.12.0+cu113\n", (1, 11)),
        ("conda install pytorch=1.6.0 torchvision cudatoolkit=10.2 -c pytorch\n", (1, 6)),
        ("conda install pytorch==1.4\npip install torch==1.8.1\n", (1, 8)),
        ("Official implementation (PyTorch 1.7.1) of our paper.\n", (1, 7)),
        ("conda install pytorch torchvision cudatoolkit=10.0 -c pytorch\n", (1, 4)),
        ("conda install pytorch torchvision cudatoolkit=11.3 -c pytorch\n", (1, 12)),
        ("conda install pytorch torchvision cudatoolkit=11.8 -c pytorch\n", None),
        ("* Python 3.6\n* pytorch\n", (1, 10)),
        ("conda create -n run python=3.7\nconda install pytorch\n", (1, 13)),
        ("'Use python 2.7 for all parts' of this PyTorch code\n", (1, 4)),
        ("Use Python 2.7 or 3.6, and PyTorch.\n", None),
        ("Please do not use Python 2.7 with this PyTorch code.\n", None),
        ("conda create -n old python=2.7\nconda create -n run python=3.10\nconda install pytorch\n", None),
        ("Use Python 2.7 for the evaluation tool, and PyTorch.\n", None),
        ("* Python 2.7\n* pytorch\n", (1, 4)),
        ("* Python 3.6\n* tensorflow\n", None),
        ("* Python 3.6+\n* pytorch\n", None),
        ("* Python 3.8\n* pytorch\n", None),
        ("- PyTorch = 1.7.0<br>\n", (1, 7)),
        ("pip install torch==1.7.1\n\nOther versions may also be okay.\n", None),
        ("pip install torch==1.7.1\n\nPyTorch versions higher than 1.7.1 should also work.\n", None),
        ("* PyTorch 1.1\n", None),
        ("* PyTorch 1.0.0+\n", None),
        ("* PyTorch 1.0.0 or later\n", None),
        ("* PyTorch >= 1.0.0\n", None),
        ("pip install torch==1.4.0\n\nPyTorch 1.4.0 and newer work.\n", None),
        ("The code was tested with PyTorch 1.6.0 and CUDA 10.1.\n", None),
        ("* torchvision 0.5.0\n* PyTorch\n", None),
        ("* PyTorch Lightning 1.5.0\n", None),
    ],
)
def test_what_a_readme_leaves_to_who_installs_what_it_says(
    tmp_path: Path, text: str, release: tuple[int, int] | None
) -> None:
    (tmp_path / "README.md").write_text(text)
    assert target.told(Settings(tmp_path)) == release
    (tmp_path / "requirements.txt").write_text("torch>=1.2")
    assert target.told(Settings(tmp_path)) is None


@pytest.mark.parametrize(
    ("file", "text", "release"),
    [
        ("environment.yml", "dependencies:\n  - python=3.7\n  - pytorch\n", (1, 13)),
        ("conda_env.yml", "dependencies:\n  - python=3.8\n  - pytorch::pytorch\n  - nvidia::cudatoolkit=11.1\n", (1, 10)),
        ("environment.yml", "dependencies:\n  - python=3.10\n  - pytorch\n  - cudatoolkit=11.3\n", (1, 12)),
        ("conda_env.yml", "dependencies:\n- python=3.9.12=h12debd9_0\n- pytorch\n", (2, 8)),
        ("requirements.txt", "# platform: linux-64\nnumpy=1.19.2=py36\npython=3.6.0=0\n", (1, 10)),
        ("environment.yml", "dependencies:\n  - python=3.12\n", None),
        ("environment.yml", "dependencies:\n  - python>=3.7\n", None),
        ("environment.yml", "dependencies:\n  - ipython=3.7\n", None),
        ("setup.cfg", "[gh-actions]\npython =\n    3.6: py36\n    3.12: py312\n", None),
        ("environment.yml", "dependencies:\n  - python=3.6\n  - pip:\n    - python=3.12\n", None),
    ],
)
def test_what_a_list_of_packages_leaves_by_its_python(
    tmp_path: Path, file: str, text: str, release: tuple[int, int] | None
) -> None:
    (tmp_path / file).write_text(text)
    assert target.told(Settings(tmp_path)) == release
    (tmp_path / "README.md").write_text("pip install torch==1.4\n")
    assert target.told(Settings(tmp_path)) == (1, 4)


def test_binary_requirements_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_bytes(b"torch>=2.1\n\xff\xfe\n")
    assert target.find(Settings(tmp_path)).release is None


def test_settings_come_first(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("torch>=2.1")
    assert target.find(Settings(tmp_path, torch=(2, 4), torch_from="--torch")) == ((2, 4), "--torch")


@pytest.mark.parametrize(
    ("file", "text", "release"),
    [
        (
            "setup.sh",
            "pip3 install torch==1.6.0+cu101 torchvision==0.7.0+cu101 -f https://download/torch_stable.html\n",
            (1, 6),
        ),
        ("env_setup.sh", "conda install -y pytorch==1.9.0 torchvision cudatoolkit=10.2 -c pytorch\n", (1, 9)),
        ("readme/INSTALL.md", "1. Install it:\n\n    conda install pytorch=0.4.1 torchvision -c pytorch\n", (0, 4)),
        ("docs/INSTALL.md", "pip install torch>=1.6\n", None),
        ("train.sh", "pip install torch==1.6\n", None),
    ],
)
def test_what_tells_how_it_is_installed(tmp_path: Path, file: str, text: str, release: tuple[int, int] | None) -> None:
    (tmp_path / "README.md").write_text("# Training\nInstall PyTorch, see the other file.\n")
    path = tmp_path / file
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    assert target.told(Settings(tmp_path)) == release


def test_the_environment_by_its_plain_name_comes_first(tmp_path: Path) -> None:
    (tmp_path / "cpu_environment.yml").write_text("dependencies:\n  - pytorch=1.9.0\n")
    (tmp_path / "environment.yml").write_text("dependencies:\n  - pytorch=2.1.0\n")
    assert target.find(Settings(tmp_path)) == ((2, 1), str(tmp_path / "environment.yml"))


def test_project_around_a_subfolder(tmp_path: Path) -> None:
    (tmp_path / "project" / "src").mkdir(parents=True)
    (tmp_path / "requirements.txt").write_text("torch>=1.13")
    inner = Settings(tmp_path / "project" / "src")
    assert target.find(inner).release is None
    (tmp_path / "project" / "setup.py").write_text("from setuptools import setup\nsetup(packages=['src'])\n")
    assert target.find(inner).release is None
    (tmp_path / "project" / "requirements.txt").write_text("torch>=2.5")
    assert target.find(inner).release == (2, 5)


@pytest.mark.parametrize(
    ("name", "text", "release"),
    [
        ("setup.py", "def setup(env):\n    return env.reset()\n", (1, 9)),
        (
            "setup.py",
            "from setuptools import setup\nsetup(name='ops', ext_modules=[CUDAExtension('ops', ['a.cu'])])\n",
            (1, 9),
        ),
        ("setup.py", "from setuptools import setup, find_packages\nsetup(packages=find_packages())\n", None),
        ("setup.py", "from distutils.core import setup\nsetup(py_modules=['train'])\n", None),
        ("setup.cfg", "[metadata]\nname = tools\n", None),
    ],
)
def test_a_module_called_setup_begins_no_project(
    tmp_path: Path, name: str, text: str, release: tuple[int, int] | None
) -> None:
    inner = tmp_path / "project" / "utils"
    inner.mkdir(parents=True)
    (tmp_path / "project" / "environment.yml").write_text("dependencies:\n  - pip:\n    - torch==1.9.1+cu111\n")
    (tmp_path / "project" / "pyproject.toml").write_text("[tool.ruff]\n")
    (inner / name).write_text(text)
    assert target.find(Settings(inner)).release == release


@pytest.mark.parametrize("mark", ["README.md", "LICENSE", ".gitignore"])
def test_pin_above_in_a_copy_without_git(tmp_path: Path, mark: str) -> None:
    inner = tmp_path / "home" / "project" / "code" / "tools"
    inner.mkdir(parents=True)
    (tmp_path / "home" / "requirements.txt").write_text("torch==1.4")
    (tmp_path / "home" / "project" / "requirements.txt").write_text("torch==1.11.0")
    assert target.find(Settings(inner)).release is None
    (tmp_path / "home" / "project" / mark).write_text("")
    assert target.find(Settings(inner)).release == (1, 11)
    (tmp_path / "home" / "project" / "requirements.txt").write_text("numpy")
    assert target.find(Settings(inner)).release is None


@pytest.mark.parametrize("metadata", ["torch-2.13.0+cpu.dist-info", "torch-2.13.0-py3.11.egg-info"])
def test_installed_release(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, metadata: str) -> None:
    monkeypatch.undo()
    monkeypatch.setattr("sys.path", [str(tmp_path / "missing"), str(tmp_path / "site")])
    (tmp_path / "site" / metadata).mkdir(parents=True)
    (tmp_path / "site" / "torch-stubs-1.0.dist-info").mkdir()
    assert target.find(Settings(tmp_path)) == ((2, 13), "the installed torch")
    (tmp_path / "site" / metadata).rmdir()
    assert target.find(Settings(tmp_path)).release is None


@pytest.mark.parametrize(
    ("constraint", "above"),
    [
        ("^1.13", (2, 0)),
        ("^2.1", (3, 0)),
        ("~2.1.3", (2, 2)),
        ("2.1.2", (2, 2)),
        ("^0.4", (0, 5)),
        (">=2.0", None),
        ("^1.13, !=1.13.1", (2, 0)),
        ("^ 1.13", (2, 0)),
    ],
)
def test_poetry_says_which_releases_are_too_new(tmp_path: Path, constraint: str, above: tuple[int, int] | None) -> None:
    (tmp_path / "pyproject.toml").write_text(f"[tool.poetry.dependencies]\ntorch = '{constraint}'\n")
    ((_, line),) = requirements.of("torch", tmp_path, tmp_path)
    assert requirements.upper_bound(line) == above


COPIES = """
import torch
from torch.autograd import Variable

model = torch.nn.Linear(512, 512).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = torch.utils.data.DataLoader(torch.load("rows.pt"), batch_size=512, num_workers=4, pin_memory=True)
for rows in loader:
    loss = model(Variable(rows.cuda())).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("release", "advised", "is_written"),
    [("0.2", "pass `async=True`; not written", False), ("0.4", "pass `non_blocking=True`", True)],
)
def test_a_copy_is_told_as_the_release_calls_it(project: Project, release: str, advised: str, is_written: bool) -> None:
    project.configure(f"select = ['SPD205']\ntorch = '{release}'")
    text = project.run("check", "--notes", "--format", "full", project.write("train.py", COPIES)).stdout
    assert f"= do:   {advised}" in text
    assert ("= fix:" in text) is is_written
