"""Loaders that a function of the project makes in a file that is not checked."""

from __future__ import annotations

import pytest

from tests.conftest import Project

DATA = """
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset


class Pictures(Dataset):
    def __init__(self, files):
        self.files = files

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        return torch.tensor(list(Image.open(self.files[index]).getdata())).float(), 0


class Endless(DataLoader):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.kept = super().__iter__()

    def __iter__(self):
        for _ in range(len(self)):
            yield next(self.kept)


def loaders(files):
    return DataLoader(Pictures(files), 64, {options}), {{"files": files}}


def through(files):
    return loaders(files)
"""
TRAIN = """
import glob
import torch
from torch import nn
from data import loaders, through, Endless

device = torch.device("cuda")
model = nn.Sequential(nn.Linear(999, 999), nn.ReLU(), nn.Linear(999, 4)).to(device)
optimizer = torch.optim.AdamW(model.parameters(), fused=True)
{makes}
for epoch in range(90):
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x.to(device)), y.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
MAKES = 'loader, _ = loaders(glob.glob("*.png"))'


def _found(project: Project, options: str, makes: str = MAKES, *also: str) -> list[tuple[str, str]]:
    project.configure("select = ['SPD201', 'SPD202', 'SPD203']")
    project.write("data.py", DATA.format(options=options))
    found = project.findings(project.write("train.py", TRAIN.format(makes=makes)), *also, "--notes")
    assert all(each["fix"] is None for each in found if each["path"] == "train.py")
    return [(each["code"], each["path"]) for each in found]


@pytest.mark.parametrize(
    ("options", "codes"),
    [
        ("num_workers=4, pin_memory=True, persistent_workers=True", []),
        ("num_workers=4, pin_memory=True", ["SPD203"]),
        ("num_workers=4, persistent_workers=True", ["SPD202"]),
        ("pin_memory=True", ["SPD201"]),
    ],
)
def test_what_is_said_where_it_is_called(project: Project, options: str, codes: list[str]) -> None:
    assert _found(project, options) == [(code, "train.py") for code in codes]
    assert _found(project, options, 'loader, _ = through(glob.glob("*.png"))') == [(code, "train.py") for code in codes]


def test_a_training_that_does_not_speak_of_loaders(project: Project) -> None:
    text = DATA.format(options="num_workers=4, persistent_workers=True").replace("def loaders(", "def feeds(")
    train = TRAIN.format(makes=MAKES).replace("import loaders, through, Endless", "import feeds")
    train = train.replace("loaders(", "feeds(").replace("loader", "batches")
    project.configure("select = ['SPD202']")
    project.write("data.py", text)
    assert [each["path"] for each in project.findings(project.write("train.py", train))] == ["train.py"]


def test_a_file_that_is_checked_too_says_it_itself(project: Project) -> None:
    assert _found(project, "pin_memory=True", MAKES, "data.py") == [("SPD201", "data.py")]


def test_workers_that_the_loader_keeps_by_itself(project: Project) -> None:
    text = DATA.format(options="num_workers=4, pin_memory=True").replace("DataLoader(Pictures", "Endless(Pictures")
    project.configure("select = ['SPD203']")
    project.write("data.py", text)
    path = project.write("train.py", TRAIN.format(makes=MAKES))
    assert project.findings(path) == project.findings(path, "data.py") == []


def test_a_loader_that_each_step_makes_anew(project: Project) -> None:
    text = TRAIN.format(makes="").replace(
        "for x, y in loader:", "for part in glob.glob('*'):\n        x, y = next(iter(loaders([part])[0]))"
    )
    project.configure("select = ['SPD201', 'SPD202', 'SPD203']")
    project.write("data.py", DATA.format(options=""))
    assert project.findings(project.write("train.py", text)) == []


def test_a_loader_of_which_only_the_dataset_is_taken(project: Project) -> None:
    """Another script of the project reads it; this one makes a loader of its own."""
    makes = f"""{MAKES}
print(len(loader))
loader = torch.utils.data.DataLoader(
    loader.dataset, batch_size=64, num_workers=4, pin_memory=True, persistent_workers=True)"""
    project.write("other.py", TRAIN.format(makes=MAKES))
    assert _found(project, "", makes) == []
    assert _found(project, "") == [("SPD201", "train.py"), ("SPD202", "train.py")]


def test_a_loader_that_begins_anew_by_itself(project: Project) -> None:
    """Its own ``__iter__`` asks torch's for another iterator in each pass."""
    moves = "for batch in super().__iter__():\n            yield [each.cuda() for each in batch]"
    text = DATA.format(options="num_workers=4, pin_memory=True").replace("DataLoader(Pictures", "Endless(Pictures")
    text = text.replace("for _ in range(len(self)):\n            yield next(self.kept)", moves)
    project.configure("select = ['SPD203']")
    project.write("data.py", text)
    assert [each["path"] for each in project.findings(project.write("train.py", TRAIN.format(makes=MAKES)))] == ["train.py"]


@pytest.mark.parametrize(
    "other",
    [
        'print(next(iter(loaders(glob.glob("*.png"))[0])))',
        'test, _ = loaders(glob.glob("*.png"))\nprint(sum(model(x.to(device)).sum() for x, _ in test))',
    ],
)
def test_a_loader_that_is_read_once_beside_one_that_is_read_again(project: Project, other: str) -> None:
    found = _found(project, "num_workers=4, pin_memory=True", f"{MAKES}\n{other}")
    assert found == []


@pytest.mark.parametrize(
    ("comment", "is_told"), [("# speedlint: ignore[SPD201]", False), ("# speedlint: ignore[SPD203]", True)]
)
def test_a_comment_where_the_loader_is_made(project: Project, comment: str, is_told: bool) -> None:
    project.configure("select = ['SPD201']")
    text = DATA.format(options="pin_memory=True").replace("return DataLoader(", f"return DataLoader(  {comment}\n        ")
    project.write("data.py", text)
    assert bool(project.findings(project.write("train.py", TRAIN.format(makes=MAKES)))) is is_told


def test_all_that_pinning_in_one_file_leaves_to_write_in_another_is_written_at_once(project: Project) -> None:
    """Copies whose loader does not pin stay as they are; once it does, they need not be waited for."""
    project.configure("select = ['SPD202', 'SPD205']")
    makes = 'loader, _ = loaders(glob.glob("*.png"))'
    others = TRAIN.format(makes="loader = torch.load('batches.pt')")
    project.write("data.py", DATA.format(options="num_workers=4, persistent_workers=True"))
    project.write("train.py", TRAIN.format(makes=makes))
    project.write("other.py", others)
    assert project.run("fix", "--apply", ".").exit_code == 0
    assert "non_blocking=True" in (project.root / "train.py").read_text()
    assert "Nothing to fix" in project.run("fix", "--apply", ".").stdout
