"""What loaders need of a machine: cores for workers, shared memory for their batches, and the storage the data lies on."""

from __future__ import annotations

from collections.abc import Iterator

from speedlint.doctor.advice import Advice, counted, fine, note, size, warning
from speedlint.doctor.facts import Facts
from speedlint.output.terminal import shown

_SMALL_SHARED = 1 << 30
_CORES_PER_GPU = 4
_BUSY = 0.5


def cores(facts: Facts) -> Iterator[Advice]:
    """The cores that loader workers share with the training."""
    what = f"{counted(facts.cores, 'core')} for this process"
    if facts.quota < facts.visible_cores:
        yield warning(
            "cores",
            f"a quota of {counted(round(facts.quota, 1), 'core')} holds this process, and `os.cpu_count()` says"
            f" {facts.visible_cores}: what asks it starts too many workers and threads",
            f"give `num_workers` and `torch.set_num_threads` a number of {facts.cores} or less",
        )
    elif (gpus := len(facts.torch.gpus)) and facts.cores < _CORES_PER_GPU * gpus:
        advice = "where `speedlint verify` finds that steps wait for data, decode less per item or rent more cores"
        yield note("cores", f"{what} and {counted(gpus, 'GPU')}: few loader workers find a core", advice)
    else:
        yield fine("cores", what)
    if facts.busy > facts.cores * _BUSY:
        what = f"other processes keep {facts.busy:.1f} of {facts.cores} busy"
        yield note("cores", what, "time nothing until that work is done")


def workers(facts: Facts) -> Iterator[Advice]:
    """Loaders of the scripts asked for that start more workers than there are cores."""
    for each in facts.loaders:
        if each.workers > facts.cores:
            what = f"{shown(each.path)}:{each.line} starts {each.workers} workers on {counted(facts.cores, 'core')}"
            yield warning("workers", what, f"{facts.cores} is the most that can work at once; measure with half as many too")
    if facts.loaders and all(each.workers <= facts.cores for each in facts.loaders):
        most = max(each.workers for each in facts.loaders)
        yield fine("workers", f"{counted(len(facts.loaders), 'loader')}, at most {counted(most, 'worker')} each")


def memory(facts: Facts) -> Iterator[Advice]:
    """Main memory, and the shared memory through which workers hand over batches."""
    if facts.memory < float("inf"):
        yield fine("memory", f"{size(facts.memory)} available")
    if facts.shared_memory is None:
        return
    whole, free = facts.shared_memory
    if whole < _SMALL_SHARED:
        what = f"{size(whole)} in /dev/shm: workers hand batches over through it, and end with `Bus error` when it is full"
        yield warning("shared memory", what, "start the container with --shm-size=8g or --ipc=host")
    elif free < _SMALL_SHARED:
        what = f"{size(free)} of {size(whole)} free in /dev/shm: workers hand batches over through it"
        yield warning("shared memory", what, "delete what ended processes left there")
    else:
        yield fine("shared memory", f"{size(free)} of {size(whole)} free in /dev/shm")


def data(facts: Facts) -> Iterator[Advice]:
    """The storage under each data path."""
    for path, storage in facts.data:
        where = f"{shown(path)} lies on {storage.kind or 'an unknown file system'} ({storage.mount or '?'})"
        if storage.is_network:
            advice = "copy the data to a local disk, or pack small files into large ones, which a network reads faster"
            yield warning("data", f"{where}, over a network", advice)
        elif storage.spins:
            what = f"{where}, which calls itself a spinning disk: small files read in random order are slow"
            advice = "if that is so, move it to an SSD or into memory; a virtual disk often says so wrongly"
            yield note("data", what, advice)
        else:
            yield fine("data", where)
