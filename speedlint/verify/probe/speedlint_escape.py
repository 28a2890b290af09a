"""Holds processes that the run's own did not start: `srun` has a daemon start a job's tasks.

Such a process confines itself to the copies as the others are, and ends with its run: nobody else could end it. Python 3.8.
"""

import os
import signal
import socket
import threading
import time
from typing import Any, Dict, List

_EVERY = 0.2
"""Seconds between two looks at whether the run goes on."""


def hold(settings: Dict[str, Any]) -> None:
    """Confines this process and has it end with its run, where another than the run's own has started it."""
    runner = settings.get("runner")
    if runner is None or _is_descendant(runner) is not False:
        return
    if settings["confined"]:
        import speedlint_confine

        speedlint_confine.confine(settings["writable"])
    path = os.path.join(settings["results"], "escaped-%d" % os.getpid())
    with open(path, "w") as file:
        file.write(socket.gethostname())
    threading.Thread(target=_end_with, args=(settings["results"], runner), daemon=True).start()


def _end_with(results: str, runner: Dict[str, Any]) -> None:
    process = "/proc/%d" % runner["pid"]
    is_seen = runner["host"] == socket.gethostname() and os.path.exists(process)  # not from another namespace of processes
    while os.path.isdir(results) and not os.path.exists(os.path.join(results, "over")):
        if is_seen and not os.path.exists(process):
            break
        time.sleep(_EVERY)
    for pid in (*_below(os.getpid()), os.getpid()):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


def _below(process: int) -> List[int]:
    """All processes that a process has started, be it through others: its group may hold others than its own."""
    started: Dict[int, List[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                started.setdefault(_parent(int(name)), []).append(int(name))
            except (OSError, ValueError):
                continue
    found = list(started.get(process, []))
    for pid in found:
        found += started.get(pid, [])
    return found


def _parent(pid: int) -> int:
    with open("/proc/%d/stat" % pid) as file:
        return int(file.read().rpartition(")")[2].split()[1])


def _is_descendant(runner: Dict[str, Any]) -> Any:
    """Whether the run's own process started this one, be it through others; None where the system does not say."""
    if runner["host"] != socket.gethostname():
        return False
    pid = os.getpid()
    try:
        while pid > 1:
            if pid == runner["pid"]:
                return True
            pid = _parent(pid)
    except (OSError, ValueError):
        return None
    return False
