"""The machine this process runs on: its cores, its memory, and what lies under a path. Linux says most, others less."""

from __future__ import annotations

import math
import os
import platform
import re
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_CGROUPS = Path("/sys/fs/cgroup")
_SHARED_MEMORY = Path("/dev/shm")
_STAT = Path("/proc/stat")
_MOUNTS = Path("/proc/self/mountinfo")
_NETWORK = re.compile(
    r"(nfs\d?|cifs|smb\w*|afs|ceph|lustre|gpfs|beegfs|glusterfs|9p|davfs2?"
    r"|fuse\.(sshfs|s3fs|gcsfuse|goofys|rclone|juicefs|glusterfs|ceph\S*|blobfuse\S*|cifs|mount-s3|dbfs))"
)


@dataclass(frozen=True, slots=True)
class Storage:
    """What a path lies on.

    Attributes:
        mount: the folder at which the file system is mounted.
        kind: the file system's type, such as ``ext4`` or ``nfs4``; empty where it is not known.
        is_network: whether reads go over a network.
        spins: whether it is a spinning disk; None where the system does not say, as for most virtual disks it lies.
        free: bytes.
    """

    mount: str
    kind: str
    is_network: bool
    spins: bool | None
    free: int


def cores() -> int:
    """The cores that this process may use: those it is bound to, or what its container is given if that is less."""
    return max(1, math.ceil(min(visible_cores(), core_quota())))


def visible_cores() -> int:
    """The cores that this process is bound to; a container's quota is not counted."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1


def core_quota() -> float:
    """How many cores' worth of time the control groups of this process allow; infinite where they do not limit it."""
    found = [math.inf]
    for folder in _own_groups():
        words = _words(folder / "cpu.max")
        if len(words) == 2 and words[0] != "max":
            found.append(float(words[0]) / float(words[1]))
    quota, period = (_words(_CGROUPS / "cpu" / f"cpu.cfs_{name}_us") for name in ("quota", "period"))
    if quota and period and float(quota[0]) > 0:
        found.append(float(quota[0]) / float(period[0]))
    return min(found)


def busy_with_others(seconds: float = 0.4) -> float:
    """How many of its cores other processes keep busy, looked at for ``seconds``; 0 where the system does not say.

    The load average counts what waits for a disk, and what runs on all cores of the machine around a container.
    """
    before, own = _busy_seconds(), time.process_time()
    began = time.monotonic()
    time.sleep(seconds)
    after, whole = _busy_seconds(), time.monotonic() - began
    if before is None or after is None:
        return 0.0
    busy = (after - before - (time.process_time() - own)) / whole
    return min(max(0.0, busy), float(cores()))


def _busy_seconds() -> float | None:
    """The seconds that the cores of this process were busy since some moment; where its control group has a quota, those
    that the group has used of it, since what runs beside the group takes nothing from it."""
    if core_quota() < visible_cores():
        for folder in _own_groups():
            for line in _lines(folder / "cpu.stat"):
                if line.startswith("usage_usec "):
                    return float(line.split()[1]) / 1e6
        if used := _words(_CGROUPS / "cpuacct" / "cpuacct.usage"):
            return float(used[0]) / 1e9
    affinity = getattr(os, "sched_getaffinity", None)
    allowed = {f"cpu{core}" for core in affinity(0)} if affinity is not None else set()
    found = [line.split() for line in _lines(_STAT) if line.split()[0] in allowed]
    if not found:
        return None
    return sum(_busy_ticks(words) for words in found) / os.sysconf("SC_CLK_TCK")


def _busy_ticks(words: list[str]) -> int:
    """Of a core's line in ``/proc/stat``: user, nice, system, idle, iowait, irq, softirq and steal time, without the idle
    and iowait time."""
    ticks = [int(word) for word in words[1:9]]
    return sum(ticks) - sum(ticks[3:5])


def available_memory() -> float:
    """The bytes that can be used without swapping, of the machine or of the container; infinite where neither says."""
    found = [math.inf]
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                found.append(float(line.split()[1]) * 1024)
    except (OSError, ValueError, IndexError):
        pass
    for folder in _own_groups():
        limit, used = _words(folder / "memory.max"), _words(folder / "memory.current")
        if limit and used and limit[0] != "max":
            found.append(float(limit[0]) - float(used[0]))
    return min(found)


def shared_memory() -> tuple[int, int] | None:
    """The size of shared memory and what is free of it, in bytes; None where the system has no such limit."""
    try:
        found = shutil.disk_usage(_SHARED_MEMORY)
    except OSError:
        return None
    return found.total, found.free


def processor() -> str:
    """The processor's name."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor()


def storage(path: Path) -> Storage:
    """What ``path`` lies on. Raises OSError where there is no such path."""
    real = path.resolve(strict=True)
    device = real.stat().st_dev
    mount, kind = _mount(real)
    return Storage(mount, kind, bool(_NETWORK.fullmatch(kind)), _spins(device), shutil.disk_usage(real).free)


def _mount(real: Path) -> tuple[str, str]:
    """Where the file system of a path is mounted, and its type, as ``proc(5)`` lays ``mountinfo`` out."""
    found = ("", "")
    try:
        lines = _MOUNTS.read_text(errors="replace").splitlines()
    except OSError:
        return found
    for line in lines:
        before, separator, after = line.partition(" - ")
        fields = before.split()
        if not separator or len(fields) < 5 or not after:
            continue
        mount = re.sub(r"\\(\d{3})", lambda octal: chr(int(octal[1], 8)), fields[4])
        if real.is_relative_to(mount) and len(mount) >= len(found[0]):
            found = (mount, after.split()[0])
    return found


def _spins(device: int) -> bool | None:
    block = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}")
    for folder in (block, block / ".."):
        words = _words(folder / "queue" / "rotational")
        if words:
            return words[0] == "1"
    return None


def _own_groups() -> Iterator[Path]:
    """The folders of this process's control group (version 2) and of those around it; a container shows its own as root."""
    own = next((line[3:] for line in _lines(Path("/proc/self/cgroup")) if line.startswith("0::")), "/")
    folder = _CGROUPS / own.strip("/")
    while folder != _CGROUPS and folder.is_relative_to(_CGROUPS):
        yield folder
        folder = folder.parent
    yield _CGROUPS


def _words(file: Path) -> list[str]:
    return " ".join(_lines(file)[:1]).split()


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text().splitlines()
    except (OSError, ValueError):
        return []
