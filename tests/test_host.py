"""What the machine says of itself, read from files as Linux lays them out."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from speedlint import host


@pytest.fixture
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty tree of control groups."""
    monkeypatch.setattr(host, "_CGROUPS", tmp_path)
    return tmp_path


def test_without_a_quota_every_visible_core_counts(groups: Path) -> None:
    assert host.core_quota() == float("inf")
    assert host.cores() == host.visible_cores() >= 1


@pytest.mark.parametrize(
    ("file", "text", "quota"),
    [
        ("cpu.max", "150000 100000\n", 1.5),
        ("cpu.max", "max 100000\n", float("inf")),
        ("cpu.max", "nonsense\n", float("inf")),
        ("cpu/cpu.cfs_quota_us", "50000\n", 0.5),
        ("cpu/cpu.cfs_quota_us", "-1\n", float("inf")),
    ],
)
def test_quota_of_a_container(groups: Path, file: str, text: str, quota: float) -> None:
    (groups / "cpu").mkdir()
    (groups / "cpu" / "cpu.cfs_period_us").write_text("100000\n")
    (groups / file).write_text(text)
    assert host.core_quota() == quota
    assert host.cores() == min(host.visible_cores(), 2 if quota == 1.5 else 1 if quota == 0.5 else host.visible_cores())


class Time:
    """A second passes when it is slept through; ``then`` is what happens meanwhile."""

    def __init__(self, then: Callable[[], object]) -> None:
        self.now, self.then = 0.0, then

    def sleep(self, _seconds: float) -> None:
        self.now += 1.0
        self.then()

    def monotonic(self) -> float:
        return self.now

    def process_time(self) -> float:
        return self.now * 0.25  # this process keeps a quarter of a core busy itself


def test_what_others_keep_busy_is_measured_on_the_cores_of_this_process(
    groups: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticks, stat = os.sysconf("SC_CLK_TCK"), groups / "stat"
    line = "cpu{core} {user} 0 0 {idle} 50 0 0 {stolen} 0 0\n".format

    def after() -> None:
        stat.write_text(
            "cpu 9 9 9 9\n" + line(core=0, user=ticks, idle=0, stolen=0) + line(core=1, user=0, idle=0, stolen=ticks)
        )

    stat.write_text("cpu 9 9 9 9\n" + line(core=0, user=0, idle=0, stolen=0) + line(core=1, user=0, idle=0, stolen=0))
    monkeypatch.setattr(host, "_STAT", stat)
    monkeypatch.setattr(host, "time", Time(after))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _process: {0, 1}, raising=False)
    assert host.busy_with_others() == pytest.approx(1.75)


def test_beside_a_quota_only_the_container_counts(groups: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _process: set(range(64)), raising=False)
    (groups / "cpu.max").write_text("200000 100000\n")
    (groups / "cpu.stat").write_text("usage_usec 7000000\nuser_usec 1\n")
    after = lambda: (groups / "cpu.stat").write_text("usage_usec 7750000\nuser_usec 1\n")  # noqa: E731
    monkeypatch.setattr(host, "time", Time(after))
    assert host.busy_with_others() == pytest.approx(0.5)


def test_memory_of_a_container(groups: Path) -> None:
    (groups / "memory.max").write_text("5000\n")
    (groups / "memory.current").write_text("2000\n")
    assert host.available_memory() == 3000


MOUNTS = r"""
22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw
30 22 0:40 / /data rw shared:1 - nfs4 server:/export rw
31 30 0:41 / /data/my\040set rw - fuse.sshfs user@host: rw
broken line
"""


@pytest.mark.parametrize(
    ("path", "mount", "kind"),
    [
        ("/data/images", "/data", "nfs4"),
        ("/data/my set/a", "/data/my set", "fuse.sshfs"),
        ("/database", "/", "ext4"),
    ],
)
def test_mounts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, mount: str, kind: str) -> None:
    (tmp_path / "mountinfo").write_text(MOUNTS)
    monkeypatch.setattr(host, "_MOUNTS", tmp_path / "mountinfo")
    assert host._mount(Path(path)) == (mount, kind)


def test_storage_of_a_folder(tmp_path: Path) -> None:
    found = host.storage(tmp_path)
    assert found.free > 0
    assert tmp_path.is_relative_to(found.mount or os.sep)
    with pytest.raises(OSError, match="No such file"):
        host.storage(tmp_path / "missing")


@pytest.mark.parametrize("kind", ["nfs", "nfs4", "cifs", "lustre", "fuse.s3fs", "fuse.ceph-fuse", "9p"])
def test_network_file_systems(kind: str) -> None:
    assert host._NETWORK.fullmatch(kind)


@pytest.mark.parametrize("kind", ["ext4", "xfs", "tmpfs", "overlay", "fuse.ntfs-3g", "zfs", "btrfs"])
def test_local_file_systems(kind: str) -> None:
    assert not host._NETWORK.fullmatch(kind)
