"""Measures a training script from inside its process. Standard library and torch only; Python 3.8, torch 1.13 and later.

A step goes from the moment the loop asks for a batch to the moment it asks for the next one. Where no loader feeds the
backward pass, it goes from one step of the first optimizer to the next. Nothing here changes what the script computes: a
timed run only reads the clock; a run for the losses also sets and offsets seeds, which is what it is for.
"""

import atexit
import importlib.abc
import importlib.machinery
import importlib.util
import json
import mmap
import os
import struct
import sys
import time
from typing import Any, Callable, Dict, List, Optional, Tuple

now = time.perf_counter
_STABLE = 5
_SPREAD = 0.25
_MOST_TIMES = 100
_RANKS_WARMUP = 10
"""The warm-up of each of several ranks: they must end after the same step, or the others wait for ever."""


class Enough(SystemExit):
    """Ends the script when all steps are measured."""

    def __init__(self) -> None:
        super().__init__(0)


class Asked:
    """A batch that was asked for and not yet trained on."""

    __slots__ = ("asked", "event", "key", "samples", "wait")

    def __init__(self, key: int, asked: float, event: Any) -> None:
        self.key, self.asked, self.event = key, asked, event
        self.wait, self.samples = 0.0, 0


class Probe:
    """What one process measures; idle until the first backward pass.

    Attributes:
        steps: for each finished step its host time and the time waited for data, in seconds, and its samples.
        losses: what backward passes started from, in order.
    """

    def __init__(self, settings: Dict[str, Any], torch: Any) -> None:
        self.settings, self.torch = settings, torch
        self.mode: str = settings["mode"]
        self.process = os.getpid()
        self.steps: List[Tuple[float, float, int]] = []
        self.events: List[Tuple[Any, Any]] = []
        self.losses: List[float] = []
        self.seeds: List[str] = []
        self.warmup: Optional[int] = None
        self.began = now()
        self.window: Optional[Tuple[float, float]] = None
        self.asked: List[Asked] = []
        self.opened: Optional[Tuple[float, Any]] = None
        self.trained = False
        self.by_loader: Optional[bool] = None
        self.optimizer: Optional[int] = None
        self.optimizers = set()  # type: set[int]
        self.scaled = False
        self.nudged = False
        self.half = False
        self.written = False
        self.cuda: Optional[bool] = None
        self.compilations, self.compiled_at = 0, 0
        self._progress: Optional[mmap.mmap] = None

    @property
    def is_here(self) -> bool:
        """Whether this is the process the probe was made in, and not a forked worker."""
        return os.getpid() == self.process

    # The clock

    def mark(self) -> Any:
        """A point in the GPU's queue, where there is a GPU in use."""
        if self.cuda is None and self.trained:
            self.cuda = bool(self.torch.cuda.is_available() and self.torch.cuda.is_initialized())
        if not self.cuda or self.mode != "time":
            return None
        event = self.torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def ask(self, key: int) -> Asked:
        """The loop asks a loader for a batch."""
        event = self.mark()
        asked = Asked(key, now(), event)
        if self.trained and self.by_loader:
            self.close(asked.asked, event)
        self.asked.append(asked)
        return asked

    def end_of(self, key: int) -> None:
        """A loader has no more batches: what it gave before is no part of the next step."""
        self.asked = [each for each in self.asked if each.key != key]

    def got(self, asked: Asked, batch: Any) -> None:
        """The batch has arrived."""
        asked.wait = now() - asked.asked
        asked.samples = _samples(batch)

    def backward(self) -> None:
        """A backward pass begins."""
        if self.trained:
            return
        self.trained = True
        if self.by_loader is None:
            self.by_loader = bool(self.asked)
        if not self.by_loader:
            return
        kept: List[Asked] = []
        for asked in reversed(self.asked):
            if any(each.key == asked.key for each in kept):
                break
            kept.insert(0, asked)
        self.asked = kept
        if kept:
            self.opened = (kept[0].asked, kept[0].event)

    def stepped(self, optimizer: Any) -> None:
        """An optimizer has stepped."""
        self.optimizers.add(id(optimizer))
        if self.settings.get("nudge") and not self.nudged:
            self.nudged = True
            _nudge(self.torch, optimizer)
        if self.optimizer is None:
            self.optimizer = id(optimizer)
        if self.by_loader or self.optimizer != id(optimizer):
            return
        event = self.mark()
        at = now()
        if self.opened is not None:
            self.close(at, event)
        self.opened = (at, event)

    def close(self, at: float, event: Any) -> None:
        """A step is over."""
        if self.opened is None:
            self.asked, self.trained = [], False
            return
        start, first = self.opened
        wait = sum(each.wait for each in self.asked) if self.by_loader else 0.0
        samples = max([each.samples for each in self.asked] or [0])
        self.steps.append((at - start, wait, samples))
        self.events.append((first, event))
        self.asked, self.opened, self.trained = [], None, False
        if self._progress is not None:
            self._progress[:8] = struct.pack("<q", len(self.steps))
        self._count(at)

    def _count(self, at: float) -> None:
        done = len(self.steps)
        if self.mode != "time":
            if done >= self.settings["steps"]:
                self.finish()
            return
        if self.warmup is None:
            if self._is_warm():
                self.warmup = done
                self.window = (at, at)
                self.reset_peak()
            return
        self.window = (self.window[0] if self.window else at, at)
        if done - self.warmup >= self.settings["steps"] and self._is_long_enough():
            self.finish()

    def _is_long_enough(self) -> bool:
        """Whether the measured time covers the seconds in which a shared machine's speed comes and goes."""
        if os.environ.get("WORLD_SIZE", "1") != "1" or self.window is None:
            return True
        most = _MOST_TIMES * int(self.settings["steps"])
        return self.window[1] - self.window[0] >= self.settings["seconds"] or len(self.steps) >= most

    def _is_warm(self) -> bool:
        done = len(self.steps)
        compiled = _compiled_graphs()
        if compiled != self.compilations:
            self.compilations, self.compiled_at = compiled, done
        if done < self.settings["warmup"]:
            return False
        if os.environ.get("WORLD_SIZE", "1") != "1":
            return done >= _RANKS_WARMUP
        if done >= self.settings["longest_warmup"]:
            return True
        recent = sorted(step[0] for step in self.steps[-_STABLE:])
        quiet = done - self.compiled_at >= _STABLE or self.compilations == 0
        return len(recent) == _STABLE and quiet and recent[-2] <= recent[_STABLE // 2] * (1 + _SPREAD)

    def reset_peak(self) -> None:
        """Peak memory is that of the measured steps."""
        if self.cuda:
            self.torch.cuda.reset_peak_memory_stats()

    # Results

    def finish(self) -> None:
        """Writes what was measured and ends the script; where it catches that, the process."""
        if self.written:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(0)
        self.write("steps")
        raise Enough

    def write(self, ended: str) -> None:
        """Writes what was measured; a second time does nothing."""
        if self.written or not self.is_here:
            return
        self.written = True
        rank = os.environ.get("RANK", "0")
        result = {
            "version": 1,
            "rank": int(rank) if rank.isdigit() else 0,
            "pid": self.process,
            "ended": ended,
            "mode": self.mode,
            "clock": "loader" if self.by_loader else "optimizer",
            "steps": [list(step) for step in self.steps],
            "gpu_steps": self._gpu_steps(),
            "warmup": self.warmup,
            "window": None if self.window is None else self.window[1] - self.window[0],
            "losses": self.losses,
            "half": self.half,
            "seeds": sorted(set(self.seeds)),
            "optimizers": len(self.optimizers),
            "memory": self._memory(),
            "environment": _environment(self.torch, self.cuda),
        }
        path = os.path.join(self.settings["results"], "rank-%s-%d.json" % (rank, self.process))
        with open(path + ".part", "w") as file:
            json.dump(result, file)
        os.replace(path + ".part", path)

    def _gpu_steps(self) -> Optional[List[float]]:
        """The seconds between the events, None without a GPU."""
        if not self.cuda or any(first is None or last is None for first, last in self.events[self.warmup or 0 :]):
            return None
        self.torch.cuda.synchronize()
        return [
            first.elapsed_time(last) / 1000 if first is not None and last is not None else 0.0 for first, last in self.events
        ]

    def _memory(self) -> Dict[str, Any]:
        found: Dict[str, Any] = {}
        try:
            import resource

            unit = 1 if sys.platform == "darwin" else 1024
            found["peak_resident"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
        except ImportError:
            pass
        if self.cuda:
            found["peak_allocated"] = self.torch.cuda.max_memory_allocated()
            found["peak_reserved"] = self.torch.cuda.max_memory_reserved()
            found["total"] = self.torch.cuda.get_device_properties(self.torch.cuda.current_device()).total_memory
        return found

    def show_progress(self) -> None:
        """Opens the file in which the runner reads how many steps are done."""
        path = os.path.join(self.settings["results"], "progress-%d" % self.process)
        with open(path, "wb+") as file:
            file.write(b"\0" * 8)
            file.flush()
            self._progress = mmap.mmap(file.fileno(), 8)


def _samples(batch: Any, depth: int = 0) -> int:
    """The size of the first dimension of the first tensor in a batch."""
    shape = getattr(batch, "shape", None)
    if shape is not None and len(shape):
        return int(shape[0])
    if depth < 3 and isinstance(batch, dict):
        batch = list(batch.values())
    if depth < 3 and isinstance(batch, (list, tuple)) and batch:
        return max(_samples(part, depth + 1) for part in batch[:4])
    return len(batch) if isinstance(batch, (list, tuple)) else 0


def _compiled_graphs() -> int:
    """How many graphs torch.compile has compiled in this process."""
    utils = sys.modules.get("torch._dynamo.utils")
    try:
        return int(utils.counters["stats"]["unique_graphs"]) if utils is not None else 0
    except (AttributeError, KeyError, TypeError):
        return 0


def _nudge(torch: Any, optimizer: Any) -> None:
    """Moves the elements of the first parameter by one unit in the last place."""
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            if parameter.is_floating_point() and parameter.numel():
                with torch.no_grad():
                    parameter.copy_(torch.nextafter(parameter.detach(), torch.full_like(parameter, float("inf"))))
                return


def _environment(torch: Any, cuda: Optional[bool]) -> Dict[str, Any]:
    found: Dict[str, Any] = {
        "python": sys.version.split()[0],
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "threads": torch.get_num_threads(),
        "device": "cpu",
    }
    if cuda:
        found["device"] = torch.cuda.get_device_name()
        found["devices"] = torch.cuda.device_count()
        found["capability"] = list(torch.cuda.get_device_capability())
        found["cudnn"] = torch.backends.cudnn.version()
    return found


# The hooks


def arm(torch: Any, settings: Dict[str, Any]) -> Probe:
    """Hooks the loaders, the backward pass and the optimizers."""
    probe = Probe(settings, torch)
    probe.show_progress()
    _hook_loaders(probe)
    _hook_backward(probe, torch)
    _hook_optimizers(probe, torch)
    if settings["mode"] == "loss":
        _seed(probe, torch)
        _watch_autocast(probe, torch)
        _hook_scaler(probe, torch)
    if settings["mode"] == "syncs":
        _count_syncs(probe, torch)
    atexit.register(probe.write, "script")
    return probe


def _hook_loaders(probe: Probe) -> None:
    from torch.utils.data import dataloader

    base = dataloader._BaseDataLoaderIter
    original = base.__next__

    def __next__(self: Any) -> Any:
        if not probe.is_here:
            return original(self)
        key = id(self._index_sampler)
        asked = probe.ask(key)
        try:
            batch = original(self)
        except StopIteration:
            probe.end_of(key)
            raise
        probe.got(asked, batch)
        return batch

    base.__next__ = __next__  # type: ignore[method-assign]


def _hook_backward(probe: Probe, torch: Any) -> None:
    backward = torch.Tensor.backward
    losses = probe.mode == "loss"

    def hooked(self: Any, *args: Any, **kwargs: Any) -> Any:
        if probe.is_here:
            probe.backward()
            if losses and not probe.scaled:
                probe.losses.append(float(self.detach().double().sum()))
            probe.scaled = False
        return backward(self, *args, **kwargs)

    hooked.__wrapped__ = backward  # type: ignore[attr-defined]
    hooked.__doc__ = backward.__doc__
    torch.Tensor.backward = hooked


def _hook_scaler(probe: Probe, torch: Any) -> None:
    """The loss before it is scaled."""
    classes = []
    for name in ("torch.amp.grad_scaler", "torch.cuda.amp.grad_scaler"):
        try:
            classes.append(importlib.import_module(name).GradScaler)
        except (ImportError, AttributeError):
            continue
    for owner in {cls.__dict__["scale"] and cls for cls in classes if "scale" in cls.__dict__}:
        _wrap_scale(probe, torch, owner)


def _watch_autocast(probe: Probe, torch: Any) -> None:
    """Notes whether anything is computed in half precision."""
    enter = torch.autocast.__enter__

    def entered(self: Any) -> Any:
        if getattr(self, "_enabled", True):
            probe.half = True
        return enter(self)

    torch.autocast.__enter__ = entered


def _wrap_scale(probe: Probe, torch: Any, owner: Any) -> None:
    scale = owner.scale

    def hooked(self: Any, outputs: Any) -> Any:
        if probe.is_here and isinstance(outputs, torch.Tensor):
            probe.losses.append(float(outputs.detach().double().sum()))
            probe.scaled = True
        return scale(self, outputs)

    owner.scale = hooked


def _hook_optimizers(probe: Probe, torch: Any) -> None:
    def after(optimizer: Any, *_: Any) -> None:
        if probe.is_here:
            probe.stepped(optimizer)

    try:
        from torch.optim.optimizer import register_optimizer_step_post_hook
    except ImportError:
        _wrap_steps(torch.optim.Optimizer, after)
    else:
        register_optimizer_step_post_hook(after)


def _wrap_steps(base: Any, after: Callable[..., None]) -> None:
    """Before torch 2.0: the ``step`` of each optimizer's class is wrapped when its first object is made."""
    init = base.__init__

    def hooked(self: Any, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)
        owner = type(self)
        step = owner.step
        if not getattr(step, "speedlint", False):

            def stepped(self: Any, *args: Any, **kwargs: Any) -> Any:
                result = step(self, *args, **kwargs)
                after(self)
                return result

            stepped.speedlint = True  # type: ignore[attr-defined]
            stepped.hooked = True  # type: ignore[attr-defined]
            owner.step = stepped

    base.__init__ = hooked


def _count_syncs(probe: Probe, torch: Any) -> None:
    """Has torch warn of each host-device synchronisation; ``losses`` then holds how many there were in each step."""
    import warnings

    if not torch.cuda.is_available():
        return
    torch.cuda.set_sync_debug_mode("warn")
    show = warnings.showwarning
    seen = [0]
    warnings.filterwarnings("always", message=".*synchroniz.*")

    def counted(message: Any, *args: Any, **kwargs: Any) -> None:
        if "synchroniz" in str(message):
            seen[0] += 1
        else:
            show(message, *args, **kwargs)

    warnings.showwarning = counted
    close = probe.close

    def closed(at: float, event: Any) -> None:
        probe.losses.append(float(seen[0]))
        seen[0] = 0
        close(at, event)

    probe.close = closed  # type: ignore[method-assign]


# Seeds


def _seed(probe: Probe, torch: Any) -> None:
    """Seeds all generators, notes which ones the script seeds itself, and adds the offset to its seeds."""
    import random

    offset = int(probe.settings.get("offset", 0))
    seed = int(probe.settings["seed"]) + offset
    torch.manual_seed(seed)
    random.seed(seed)
    owners: List[Tuple[Any, str]] = [
        (torch, "manual_seed"),
        (torch.random, "manual_seed"),
        (torch.cuda, "manual_seed"),
        (torch.cuda, "manual_seed_all"),
        (random, "seed"),
    ]
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(seed % 2**32)
        owners.append((numpy.random, "seed"))
    for owner, name in owners:
        _offset_seed(probe, owner, name, offset)
    if offset:
        _offset_generators(torch, offset)


def _offset_seed(probe: Probe, owner: Any, name: str, offset: int) -> None:
    original = getattr(owner, name)

    def seeded(*args: Any, **kwargs: Any) -> Any:
        if not probe.is_here or not _is_of_script(sys._getframe(1)):
            return original(*args, **kwargs)
        probe.seeds.append("%s.%s" % (getattr(owner, "__name__", "torch"), name))
        moved = [each + offset if isinstance(each, int) else each for each in args]
        named = {key: value + offset if isinstance(value, int) else value for key, value in kwargs.items()}
        return original(*moved, **named)

    setattr(owner, name, seeded)


def _is_of_script(frame: Any) -> bool:
    """Whether code other than torch's and numpy's own seeds a generator."""
    return str(frame.f_globals.get("__name__", "")).partition(".")[0] not in ("torch", "numpy", "random")


def _offset_generators(torch: Any, offset: int) -> None:
    class Generator(torch.Generator):  # type: ignore[misc]
        def manual_seed(self, seed: int) -> Any:
            return super().manual_seed(seed + offset)

    torch.Generator = Generator


# The hook on the import of torch


class _Loader(importlib.abc.Loader):
    def __init__(self, loader: Any, after: Callable[[Any], None]) -> None:
        self.loader, self.after = loader, after

    def __getattr__(self, name: str) -> Any:
        return getattr(self.loader, name)

    def create_module(self, spec: Any) -> Any:
        return self.loader.create_module(spec)

    def exec_module(self, module: Any) -> None:
        self.loader.exec_module(module)
        self.after(module)


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, after: Callable[[Any], None]) -> None:
        self.after = after

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec("torch")
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, self.after)
        return spec


def install() -> None:
    """Waits for torch."""
    with open(os.environ["SPEEDLINT_PROBE"]) as file:
        settings = json.load(file)

    def armed(torch: Any) -> None:
        import speedlint_guard

        speedlint_guard.around_save(torch)
        arm(torch, settings)

    sys.meta_path.insert(0, _Finder(armed))
