"""Values that a script takes from YAML and JSON files that it names by a path, or that Hydra hands it."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from speedlint import run
from speedlint.config import Settings
from speedlint.diagnostic import Diagnostic
from speedlint.registry import Registry

REGISTRY = Registry.load()

TRAIN = """
    import json

    import torch
    import yaml
    from omegaconf import OmegaConf
    from torch.utils.data import DataLoader, Dataset

    LOAD


    class Rows(Dataset):
        def __init__(self, paths):
            self.paths = paths

        def __len__(self):
            return len(self.paths)

        def __getitem__(self, index):
            return torch.load(self.paths[index]), index


    def train(paths, model, optimizer):
        loader = DataLoader(Rows(paths), batch_size=32, shuffle=True, pin_memory=True, num_workers=WORKERS)
        for x, y in loader:
            loss = model(x.cuda(non_blocking=True)).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


    if __name__ == "__main__":
        train(None, None, None)
"""


def found(
    folder: Path, load: str, workers: str, config: str, name: str = "config.yml", text: str = TRAIN
) -> list[Diagnostic]:
    (folder / name).write_text(config)
    (folder / "train.py").write_text(textwrap.dedent(text).replace("LOAD", load).replace("WORKERS", workers))
    settings = Settings(folder, select=("SPD201",), torch=(2, 13))
    report = run.merge(run.check([folder / "train.py"], settings, REGISTRY))
    assert not report.problems
    return list(report.diagnostics)


@pytest.mark.parametrize(
    ("load", "workers", "name"),
    [
        ('config = yaml.safe_load(open("config.yml"))', 'config["data"]["workers"]', "config.yml"),
        (
            'with open("config.yml") as f:\n    config = yaml.load(f, Loader=yaml.Loader)',
            'config["data"]["workers"]',
            "config.yml",
        ),
        ('config = OmegaConf.load("config.yml")', "config.data.workers", "config.yml"),
        ('config = json.load(open("config.json"))', 'config["data"].get("workers", 8)', "config.json"),
        (
            "import os\nhere = os.path.dirname(os.path.abspath(__file__))\n"
            'config = yaml.safe_load(open(os.path.join(here, "config.yml")))',
            'config["data"]["workers"]',
            "config.yml",
        ),
        (
            'from pathlib import Path\nname = "config"\n'
            'config = OmegaConf.load(Path(__file__).resolve().parents[0] / f"{name}.yml")',
            "config.data.workers",
            "config.yml",
        ),
    ],
)
def test_the_number_of_workers_is_read_from_the_file(tmp_path: Path, load: str, workers: str, name: str) -> None:
    off = '{"data": {"batch": 32,\n "workers": 0}}' if name.endswith("json") else "data:\n  workers: 0\n"
    (diagnostic,) = found(tmp_path, load, workers, off, name)
    assert f"it is set in {name}, line 2" in diagnostic.advice
    assert diagnostic.fix is None
    assert not found(tmp_path, load, workers, off.replace("0", "8"), name)


OPTION = """import argparse

parser = argparse.ArgumentParser()
parser.add_argument("--config", required=True)
args = parser.parse_args()
with open(args.config) as file:
    config = yaml.safe_load(file.read())
"""


@pytest.mark.parametrize(
    ("readme", "is_known"),
    [
        ("    python train.py --config config.yml\n", True),
        ("    python train.py --config config.yml\n    python train.py --config other.yml\n", False),
        ("    python train.py --config $CONFIG\n", False),
        ("", False),
    ],
)
def test_a_file_that_the_projects_command_names_is_read(tmp_path: Path, readme: str, is_known: bool) -> None:
    (tmp_path / "README.md").write_text(readme)
    told = found(tmp_path, OPTION, 'config["data"]["workers"]', "data:\n  workers: 0\n")
    assert ["config.yml, line 2" in each.advice for each in told] == [True] * is_known


@pytest.mark.parametrize(
    "load",
    [
        'config = yaml.safe_load(open("config.yml"))\nconfig["data"] = {"workers": 8}',
        'config = yaml.safe_load(open("config.yml"))\nconfig.update(data={"workers": 8})',
        'config = yaml.safe_load(open("gone.yml"))',
        'config = yaml.safe_load(open("/etc/config.yml"))',
        'config = yaml.safe_load(open("../config.yml"))',
    ],
)
def test_what_the_script_changes_or_does_not_name_is_not_known(tmp_path: Path, load: str) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "README.md").write_text("")
    (tmp_path / "config.yml").write_text("data:\n  workers: 0\n")
    assert not found(project, load, 'config["data"]["workers"]', "data:\n  workers: 0\n")


@pytest.mark.parametrize(
    "config",
    [
        "data: [unclosed",
        "\x00\x01",
        "a: &a [x, x]\n"
        + "".join(
            f"{name}: &{name} [*{last}, *{last}, *{last}]\n" for last, name in zip("abcdefghij", "bcdefghijk", strict=True)
        ),
        "[" * 500_000,
        "data: " + "{a: " * 2000,
        "- just\n- a list\n",
        "",
        "data:\n  workers: !!python/object/apply:os.system ['touch owned']\n",
    ],
)
def test_a_bad_or_hostile_file_costs_nothing(tmp_path: Path, config: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert not found(tmp_path, 'config = yaml.safe_load(open("config.yml"))', 'config["data"]["workers"]', config)
    assert not (tmp_path / "owned").exists()


COMPOSED = (
    TRAIN.replace("LOAD", "import hydra")
    .replace("WORKERS", "config.data.workers")
    .replace(
        "def train(paths,",
        "HYDRA\n    def main(config):\n        train(config, None, None, None)\n\n\n    def train(config, paths,",
    )
    .replace("train(None, None, None)", "main()")
)
MAIN = '@hydra.main(version_base=None, config_path="conf", config_name="config")'


@pytest.mark.parametrize(
    ("configs", "readme", "line"),
    [
        ({"config": "data:\n  workers: 0\n"}, "", "config.yaml, line 2"),
        ({"config": "data:\n  workers: 0\n"}, "    python train.py data.batch=64\n", "config.yaml, line 2"),
        ({"config": "data:\n  workers: 0\n"}, "    python train.py data.workers=8\n", ""),
        ({"config": "data:\n  workers: 0\n"}, "    python other.py data.workers=8\n", "config.yaml, line 2"),
        ({"config": "defaults:\n  - _self_\n  - data: faces\n", "data/faces": "workers: 0\n"}, "", "faces.yaml, line 1"),
        (
            {"config": "defaults:\n  - data: faces\ndata:\n  batch: 4\n", "data/faces": "workers: 0\n"},
            "",
            "faces.yaml, line 1",
        ),
        ({"config": "defaults:\n  - data: faces\ndata:\n  workers: 4\n", "data/faces": "workers: 0\n"}, "", ""),
        ({"config": "workers: 0\ndata:\n  workers: ${workers}\n"}, "", ""),
        ({"config": "data:\n  workers: 4\n"}, "", ""),
        ({"config": "data: [\n"}, "", ""),
        ({"config": "data:\n  workers: 0\ndefaults:\n  - override hydra/job_logging: custom\n"}, "", "config.yaml, line 2"),
        (
            {"config": "defaults:\n  - _self_\n  - machine\ndata:\n  workers: 0\n", "machine": "data:\n  workers: 4\n"},
            "",
            "",
        ),
        (
            {
                "config": "defaults:\n  - big: all\ndata:\n  workers: 0\n",
                "big/all": "# @package _global_\ndata:\n  workers: 4\n",
            },
            "",
            "",
        ),
        (
            {
                "config": "defaults:\n  - data: a\n  - override /data: b\n",
                "data/a": "workers: 0\n",
                "data/b": "workers: 4\n",
            },
            "",
            "",
        ),
        (
            {"config": "defaults:\n  - _self_\n  - optional local: default\n  - experiment: null\ndata:\n  workers: 0\n"},
            "",
            "config.yaml, line 6",
        ),
        (
            {
                "config": "defaults:\n  - _self_\n  - optional machine: own\ndata:\n  workers: 0\n",
                "machine/own": "# @package _global_\ndata:\n  workers: 4\n",
            },
            "",
            "",
        ),
        (
            {
                "config": "defaults:\n  - _self_\n  - task@_global_: walk\ndata:\n  workers: 0\n",
                "task/walk": "defaults:\n  - medium\n  - _self_\nsteps: 400\n",
                "task/medium": "rate: 0.1\n",
            },
            "",
            "config.yaml, line 5",
        ),
        (
            {
                "config": "defaults:\n  - _self_\n  - task@_global_: walk\ndata:\n  workers: 0\n",
                "task/walk": "defaults:\n  - medium\n  - _self_\nsteps: 400\n",
                "task/medium": "data: &all\n  workers: 4\n  again: *all\n",
            },
            "",
            "",
        ),
        ({"config": "defaults:\n  - task@_global_: walk\ndata:\n  workers: 0\n"}, "", ""),
        (
            {
                "config": "defaults:\n  - _self_\n  - experiment: null\ndata:\n  workers: 0\n",
                "experiment/big": "# @package _global_\ndata:\n  workers: 8\n",
            },
            "    python train.py experiment=big\n",
            "",
        ),
        ({"config": "defaults:\n  - _self_\n  - optional a: ${b}\nb: c\ndata:\n  workers: 0\n"}, "", ""),
        ({"config": "defaults:\n  - _self_\n  - optional a/b@_global_: c\ndata:\n  workers: 0\n"}, "", ""),
        ({"config": "defaults:\n  - _self_\n  - optional a: [b]\ndata:\n  workers: 0\n"}, "", ""),
        ({"config": "data:\n  workers: 0\n"}, "    python train.py 'data.workers=8'\n", ""),
        ({"config": "data:\n  workers: 0\n"}, "    python train.py --config-name big\n", ""),
        ({"config": "data:\n  workers: 0\n"}, "    python train.py +experiment=big\n", ""),
        ({"other": "data:\n  workers: 0\n"}, "", ""),
    ],
)
def test_what_hydra_hands_the_script_is_known(tmp_path: Path, configs: dict[str, str], readme: str, line: str) -> None:
    (tmp_path / "README.md").write_text(readme)
    for name, text in configs.items():
        path = tmp_path / "conf" / f"{name}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    told = found(tmp_path, "", "", "", text=COMPOSED.replace("HYDRA", MAIN))
    assert [line in each.advice for each in told] == [True] * bool(line)


def test_a_value_that_a_function_is_called_with_beside_hydra_is_not_the_files(tmp_path: Path) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "config.yaml").write_text("data:\n  workers: 0\n")
    plain = COMPOSED.replace("HYDRA", "@torch.no_grad()")
    assert not found(tmp_path, "", "", "", text=plain)


@pytest.mark.parametrize(
    "line", ["config.data.workers = 8", "config['data']['workers'] = 8", "config.data.update(workers=8)"]
)
def test_what_another_file_sets_in_a_configuration_is_not_the_files(tmp_path: Path, line: str) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "config.yaml").write_text("data:\n  workers: 0\n")
    text = COMPOSED.replace("HYDRA", MAIN)
    assert found(tmp_path, "", "", "", text=text)
    (tmp_path / "prepared.py").write_text(f"def prepare(config):\n    {line}\n")
    text = text.replace("import hydra", "import hydra\n    import prepared").replace(
        "        train(config", "        prepared.prepare(config)\n        train(config"
    )
    assert not found(tmp_path, "", "", "", text=text)


def test_the_finding_shows_the_files_line_where_it_is_read(tmp_path: Path) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "config.yaml").write_text("data:\n  batch: 4\n  workers: 0\n")
    (told,) = found(tmp_path, "", "", "", text=COMPOSED.replace("HYDRA", MAIN))
    assert [each.message for each in told.related] == ["it is read here, from config.yaml, line 3"]
