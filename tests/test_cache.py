"""What is kept between runs: the same findings as without it after any edit, whatever the cache's file holds."""

from __future__ import annotations

import os
import re
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from speedlint import kept
from speedlint.cli import main
from speedlint.disk import OF_CONTENTS, Disk, Mark, words
from speedlint.engine import Engine
from speedlint.facts import store
from speedlint.facts.store import Store
from speedlint.server.analysis import Analyst
from speedlint.source import Source
from tests.conftest import Project

TRAIN = """
import torch
from torch.utils.data import DataLoader
from options import workers
from helper import log

model = torch.nn.Linear(4, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
total = 0.0
for x, y in DataLoader(list(range(9)), num_workers=workers):
    loss = (model(x.cuda()) - y.cuda()).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    log(loss)
"""
QUIET, LOUD = "def log(loss):\n    return None\n", "def log(loss):\n    print(loss.item())\n"
MOVED = f"# What is told of a loss.\n\n{LOUD}"
SPACED = "def log(loss):\n    # Each step.\n    print( (loss).item( ) )\n"
TEXTS = {
    "train.py": (TRAIN, TRAIN.replace("    log(loss)\n", "    total += loss.item()\n"), "import torch\n", "x = (\n"),
    "options.py": (
        "workers = 0\n",
        "workers = 4\n",
        "# How many.\n\nworkers = (0)\n",
        "import yaml\nworkers = yaml.safe_load(open('config.yml'))['workers']\n",
    ),
    "helper.py": (QUIET, LOUD, MOVED, SPACED, f"{LOUD}\n\ndef unused(loss):\n    return loss.cpu()\n"),
    "config.yml": ("workers: 0\n", "workers: 4\n"),
    "requirements.txt": ("torch>=1.10\n", "torch>=2.4\n"),
    "other.py": ("from helper import log\nlog(1)\n", "x = 1\n"),
    "torch/__init__.py": ("",),
    "run.sh": ("accelerate launch --mixed_precision fp16 train.py\n",),
    "README.md": ("python train.py /data/imagenet\n", "python train.py\n"),
    ".git": ("",),
}
ARGUMENTS = ("check", "--notes", "--format", "json", "--select", "SPD")


def found(folder: Path, *more: str) -> str:
    """What a check of train.py prints, in a process's own folder."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        return CliRunner().invoke(main, [*ARGUMENTS, *more, "train.py"]).output
    finally:
        os.chdir(before)


def write(folder: Path, name: str, text: str | None) -> None:
    """Writes a file, or takes it away."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if text is None:
        path.unlink(missing_ok=True)
    else:
        path.write_text(text)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A small project."""
    for name in ("train.py", "options.py", "helper.py", "config.yml"):
        write(tmp_path, name, TEXTS[name][0])
    return tmp_path


edits = st.lists(
    st.sampled_from([(name, text) for name, texts in TEXTS.items() for text in (*texts, None)]), min_size=1, max_size=5
)


@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(edits)
def test_after_any_edit_the_findings_are_those_of_a_first_run(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[str, str | None]]
) -> None:
    folder = tmp_path_factory.mktemp("project")
    for name in ("train.py", "options.py", "helper.py", "config.yml"):
        write(folder, name, TEXTS[name][0])
    found(folder)
    for name, text in changes:
        write(folder, name, text)
        assert found(folder) == found(folder, "--no-cache")


@settings(deadline=None, max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(edits)
def test_a_server_that_stays_up_finds_what_a_new_one_does(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[str, str | None]]
) -> None:
    folder, stays = tmp_path_factory.mktemp("project"), Analyst()
    train = folder / "train.py"
    for change in (*((name, TEXTS[name][0]) for name in ("train.py", "options.py", "helper.py", "config.yml")), *changes):
        write(folder, *change)
        texts = {train: train.read_bytes()} if train.is_file() else {}
        assert stays.check(train, texts).report == Analyst().check(train, texts).report


def test_what_the_texts_of_other_files_hold_is_not_looked_for_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(folder, "other.py", TEXTS["other.py"][0])
    found(folder)
    write(folder, "helper.py", QUIET.replace("None", "1"))
    searched: list[str] = []
    search = Disk._is_in

    def looked(disk: Disk, path: str, mark: Mark) -> bool:
        searched.append(path)
        return search(disk, path, mark)

    monkeypatch.setattr(Disk, "_is_in", looked)
    found(folder)
    assert {Path(path).name for path in searched if path.endswith(".py")} == {"helper.py"}


def test_nothing_is_read_again_where_nothing_has_changed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = found(folder)
    monkeypatch.setattr(Source, "parse", lambda *_: pytest.fail("parsed again"))
    assert found(folder) == first


@pytest.mark.parametrize("text", [f"# Of losses.\n\n{QUIET}", QUIET.replace("\n ", "  # one\n\n ")])
def test_what_another_file_says_in_comments_changes_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    first = found(folder)
    write(folder, "helper.py", text)
    monkeypatch.setattr(Engine, "check", lambda *_: pytest.fail("looked again"))
    assert found(folder) == first
    monkeypatch.setattr(Source, "parse", lambda *_: pytest.fail("parsed again"))
    assert found(folder) == first


sizes = st.lists(st.integers(0, 9), min_size=4, max_size=4)


@given(sizes, sizes, st.integers(0, 30))
def test_how_many_files_fit_is_asked_again_where_a_size_may_change_it(
    before: list[int], after: list[int], most: int
) -> None:
    paths = [f"/{number}.py" for number in range(4)]
    texts = [{Path(path): b"x" * size for path, size in zip(paths, held, strict=True)} for held in (before, after)]
    one, other = (Disk(held.__getitem__) for held in texts)
    fitted = one.fitting(paths, most)
    assert other.holds(one.notes) is (fitted == Disk(texts[1].__getitem__).fitting(paths, most))


def test_a_finding_moves_with_the_line_of_another_file_that_it_names(folder: Path) -> None:
    write(folder, "helper.py", LOUD)
    first = found(folder)
    write(folder, "helper.py", MOVED)
    assert found(folder) == found(folder, "--no-cache") != first


def test_what_a_training_writes_beside_it_changes_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = found(folder)
    for name in ("last.pt", "runs/events.out", "train.log", "../another.pt"):
        write(folder, name, "")
    monkeypatch.setattr(Source, "parse", lambda *_: pytest.fail("parsed again"))
    assert found(folder) == first


def test_a_command_in_a_new_folder_is_seen(folder: Path) -> None:
    option = (
        "import argparse\np = argparse.ArgumentParser()\np.add_argument('--log', action='store_true')\na = p.parse_args()\n"
    )
    write(folder, "train.py", option + TRAIN.replace("    log(loss)\n", "    if a.log:\n        print(loss.item())\n"))
    before = found(folder)
    write(folder, "jobs/long.sh", "python train.py --log\n")
    assert found(folder) == found(folder, "--no-cache") != before


def test_a_file_of_the_same_size_and_time_is_seen_to_differ(folder: Path) -> None:
    write(folder, "options.py", "workers = 0\n")
    os.utime(folder / "options.py", ns=(1, 1))
    before = found(folder)
    write(folder, "options.py", "workers = 4\n")
    os.utime(folder / "options.py", ns=(1, 1))
    assert found(folder) != before


def _garbage(file: Path) -> None:
    file.write_bytes(b"garbage " * 999)


def _cut_off(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def _scrambled(file: Path) -> None:
    data = bytearray(file.read_bytes())
    for at in range(5000, len(data), 97):
        data[at] ^= 0xFF
    file.write_bytes(data)


def _another_version(file: Path) -> None:
    file.unlink()
    connection = sqlite3.connect(file)
    connection.execute("create table kept (something text)")
    connection.commit()
    connection.close()


def _wrong_values(file: Path) -> None:
    connection = sqlite3.connect(file)
    connection.execute("update kept set data = x'00', crc = 0")
    connection.commit()
    connection.close()


def _a_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


@pytest.mark.parametrize("spoil", [_garbage, _cut_off, _scrambled, _another_version, _wrong_values, _a_folder])
def test_a_spoilt_cache_costs_nothing_but_time(folder: Path, spoil: Callable[[Path], None]) -> None:
    first = found(folder)
    spoil(store.folder() / "store.sqlite3")
    assert found(folder) == first
    assert found(folder) == first


def test_a_cache_that_cannot_be_written_is_done_without(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = found(folder, "--no-cache")

    def full(*_: object) -> sqlite3.Connection:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(store, "_connected", full)
    assert found(folder) == first


def test_a_folder_that_cannot_be_made_is_done_without(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = found(folder, "--no-cache")
    write(folder, "file", "")
    monkeypatch.setenv(store.VARIABLE, str(folder / "file" / "cache"))
    assert found(folder) == first


def test_another_users_cache_is_not_believed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    assert Store.of_user().path is None


def test_two_runs_at_once_find_the_same(folder: Path) -> None:
    command = [sys.executable, "-m", "speedlint", *ARGUMENTS, "train.py"]
    several = [subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    printed = {process.communicate()[0] for process in several}
    assert len(printed) == 1
    assert "SPD201" in printed.pop()


def test_clean_takes_it_away(project: Project) -> None:
    project.configure()
    project.write("train.py", "x = 1\n")
    project.run("check", "train.py")
    assert (store.folder() / "store.sqlite3").is_file()
    assert "taken away" in project.run("clean").output
    assert not (store.folder() / "store.sqlite3").is_file()
    assert "is empty" in project.run("clean").output


def test_notes_hold_until_what_they_speak_of_changes(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text("import os\n")
    disk = Disk()
    assert disk.imported_names(str(file)) == ("os",)
    assert not disk.mentions(str(file), b"torch")
    assert Disk().holds(disk.notes)
    file.write_text("import os  # a comment\n")
    assert Disk().holds(disk.notes)
    file.write_text("import os, torch\n")
    assert not Disk().holds(disk.notes)


def test_what_a_files_bytes_answer_is_kept_by_file(tmp_path: Path) -> None:
    """It is not asked again where they are the same."""
    file = tmp_path / "a.py"
    file.write_text("from os import path as p\n\n\nclass A(p.B):\n    def f(self):\n        pass\n")
    disk, path = Disk(), str(file)
    assert disk.left_open(path) == ("f",) and disk.bases(path) == ("B", "p", "path")
    assert disk.imported_names(path) and disk.renamed(path) and disk.defined_names(path)
    disk.put_on_path(path)
    _, apart, by_file = kept.plain(disk.notes)
    assert not apart
    assert {note[0] for note, _ in by_file[path][1]} == OF_CONTENTS - {"data", "syntax"}


def test_a_word_is_no_part_of_a_longer_one(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text("steps = größe(model.step_of)  # run.fit\n")
    names = ("step", "steps", "step_of", "fit", "gr", "größe")
    found = [name for name in names if Disk().mentions(str(file), words([name]))]
    assert found == ["steps", "step_of", "fit", "größe"]


@pytest.mark.parametrize(
    "mark", [b"train", words(["train", "fit"]), re.compile(rb"(?i)TRAIN"), (words(["train"]), re.compile(rb"n\("))]
)
def test_a_kept_report_holds_as_long_as_each_kind_of_mark_is_held(folder: Path, mark: Mark) -> None:
    file, disk, own = folder / "other.py", Disk(), Store.of_user()
    for text, holds in (("train(1)", True), ("train(2, 3)", True), ("model", False)):
        file.write_text(text)
        if text == "train(1)":
            assert disk.mentions(str(file), mark)
            kept.keep(own, "name", [], disk.notes)
        assert (kept.find(own, "name", Disk()) is not None) is holds


def test_threads_that_take_turns_share_the_store(tmp_path: Path) -> None:
    shared = Store(tmp_path / "store")
    shared.keep("kind", "key", 1)
    shared.flush()
    shared = Store(tmp_path / "store")
    assert shared.value("kind", "other") is None
    answers: list[object] = []
    thread = threading.Thread(target=lambda: answers.append(shared.value("kind", "key")))
    thread.start()
    thread.join()
    assert answers == [1]
    assert (tmp_path / "store").is_file()
