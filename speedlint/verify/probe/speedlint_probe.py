"""Measures a training script from inside its process. Standard library and torch only; Python 3.8, torch 1.13 and later.

A step goes from the moment the loop asks for a batch to the moment it asks for the next one. Where no loader feeds the
backward pass, it goes from one step of the first optimizer to the next; where there is no optimizer either, from one
backward pass to the next. Nothing here changes what the script computes: a timed run only reads the clock; a run for the
losses also sets and offsets seeds, which is what it is for.
"""

import atexit
import gc
import importlib.abc
import importlib.machinery
import importlib.util
import json
import mmap
import os
import signal
import struct
import sys
import threading
import time
import warnings
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

import speedlint_copy
from speedlint_gpus import Gpus, Mark, lost

now = time.perf_counter
_STABLE = 5
_SPREAD = 0.25
_MOST_TIMES = 100
_LOOK = 0.02
_AWAKE = 0.0002
_OPTIMIZERS_SEEN = 3
_MOST_UNASKED = 64
_TF32 = 2.0**-11
"""The unit roundoff of TensorFloat-32."""
_GROUP = "SPEEDLINT_GROUP"
_SYNCHRONISES = "called a synchronizing CUDA operation"
_SHARED = struct.Struct("<8q")
"""What a process shares with the runner: the steps done; the turns ended here, given there, and taken here; after how many
steps the runner wants the run to end, this process had warmed up, and the runner wants several ranks to measure; and how
many ranks there are. 0 for none."""
_DONE, _ENDED, _GIVEN, _TAKEN, _LAST, _READY, _MEASURES, _WORLD = range(8)


class Enough(SystemExit):
    """Ends the script when all steps are measured."""

    def __init__(self) -> None:
        super().__init__(0)


class Probe:
    """What one process measures; idle until the first backward pass.

    In a step there is nothing but a note of the time: Python code that runs once a step runs with cold caches, in which each
    further line costs a microsecond. `look` reads the notes, after each step of the warm-up and some times a second later.

    Attributes:
        tape: what happened since the last look: None for a backward pass, ``(sampler,)`` for the end of a loader, and for a
            batch its sampler, when it was asked for, when it came, the GPU's event, and its size, 0 if it was not counted.
        look_at: the time from which the next batch asked for is a reason to look.
        gate: holds the time from which a batch asked for is more than noted: `look_at`, or always where events are recorded.
        steps, waits: for each finished step its host time and the part of it that was spent waiting for data, in seconds.
        asked: the batches of the step that goes on.
        due: whether a backward pass has begun since then, so that the next batch asked for ends the step.
        by_loader, by_backward: what a step is measured by; where neither holds, the first optimizer. None: not known yet.
        counted: the sizes of the batches that were counted, by the first dimension.
        losses: what backward passes started from, in order.
        seeds: the functions with which the script itself seeds generators, and the seeds.
        stored, computed: the unit roundoff of the parameters and of the coarsest arithmetic seen; 0 before the first step.
        window: the seconds from the first measured step to the last; other runs' turns are no part of it.
        turns: at the end of each turn, the measured steps and the window until then.
    """

    def __init__(self, settings: Dict[str, Any], torch: Any) -> None:
        self.settings, self.torch = settings, torch
        self.mode: str = settings["mode"]
        self.process = os.getpid()
        self.steps: List[float] = []
        self.waits: List[float] = []
        self.events: List[Tuple[Mark, Mark]] = []
        self.counted: List[int] = []
        self.losses: List[float] = []
        self.syncs: List[int] = []
        self.seeds: List[Tuple[str, Optional[int]]] = []
        self.warmup: Optional[int] = None
        self.window: Optional[float] = None
        self.measured_from = self.paused = 0.0
        self.tape: List[Optional[Tuple[Any, ...]]] = []
        self.look_at = 0.0
        self.gate = [0.0]
        self.asked: List[Tuple[Any, ...]] = []
        self.due = False
        self.opened: Optional[Tuple[float, Any]] = None
        self.by_loader: Optional[bool] = None
        self.by_backward = False
        self.optimizers: List[Any] = []
        self.scaled = self.written = False
        self.stored = self.computed = 0.0
        self.rounding: Any = None
        self.rehearsal: Any = None
        self.work: Any = None
        self.cuda = False
        self.gpus = Gpus(torch)
        self.compilations, self.compiled_at = 0, 0
        self.turn = self.turn_from = 0.0
        self.turns: List[Tuple[int, float]] = []
        self.ranks = os.environ.get("WORLD_SIZE", "1") != "1"
        rank = os.environ.get("RANK", "0")
        self.rank = int(rank) if rank.isdigit() else 0
        self.workers = self.unasked = 0
        self.exact = self.mode != "time" or self.ranks or not settings["seconds"]
        self.unhook: List[Callable[[], None]] = []
        self.unhook_optimizers: Optional[Callable[[], None]] = None
        self._shared: Optional[mmap.mmap] = None

    # The clock

    def mark(self) -> Mark:
        """A point in the queue of each GPU that is used."""
        return self.gpus.mark()

    def _replay(self) -> None:
        """Reads the tape, which another thread may write on meanwhile.

        Where a thread reads ahead, two steps may have ended since: where their number counts, each is looked at.
        """
        read = 0
        for each in self.tape:
            read += 1
            if each is None:
                self._backward()
            elif len(each) == 1:  # what this loader gave before is no part of the next step
                self.asked = [batch for batch in self.asked if batch[0] is not each[0]]
            else:
                if self.due:
                    self._close(each[1], each[3])
                    if self.exact:
                        self.look(each[1])
                self.asked.append(each)
        del self.tape[:read]

    def _backward(self) -> None:
        if self.by_loader is None:
            self.by_loader = bool(self.asked)
        if self.due or not self.by_loader:
            return
        self.due = True
        if len(self.asked) < 2:
            return
        kept: List[Tuple[Any, ...]] = []
        for asked in reversed(self.asked):
            if any(each[0] is asked[0] for each in kept):
                break
            kept.insert(0, asked)
        self.asked = sorted(kept, key=lambda each: each[1])

    def _close(self, at: float, event: Any) -> None:
        self.due = False
        asked, self.asked = self.asked, []
        if not asked:
            return
        self.steps.append(at - asked[0][1])
        self.waits.append(sum([each[2] - each[1] for each in asked]))
        if self.cuda:
            self.events.append((asked[0][3], event))
        size = max([each[4] for each in asked])
        if size:
            self.counted.append(size)

    def ask(self, at: float, event: Any, workers: int) -> float:
        """A batch is asked for: looks, if it is time. Returns the time from which the next step counts."""
        self.workers = max(self.workers, workers)
        if at < self.look_at:
            return at
        self.unasked = 0
        self._replay()
        if self.due:
            self._close(at, event)
            return self.look(at)
        return at

    def stepped(self, optimizer: Any) -> None:
        """An optimizer has stepped."""
        if not any(each is optimizer for each in self.optimizers):
            self.optimizers.append(optimizer)
        if self.mode == "loss":
            self._note_precision(optimizer)
            if self.rounding is not None:
                self.rounding.move(optimizer)
        if self.by_loader is None:
            self._replay()
            self.by_loader = bool(self.by_loader)
        self.unasked += 1
        if self.unasked > _MOST_UNASKED and not self.steps:  # one batch was taken before the loop: no loader feeds it
            self.by_loader, self.asked, self.due = False, [], False
        if not self.by_loader and not self.by_backward and self.optimizers[0] is optimizer:
            self._tick()

    def cuda_is_used(self) -> bool:
        """Whether the script has begun to use a GPU."""
        return bool(self.torch.cuda.is_available() and self.torch.cuda.is_initialized())

    def _note_precision(self, optimizer: Any) -> None:
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                if parameter.is_floating_point():
                    self.stored = max(self.stored, _roundoff(self.torch, parameter.dtype))
        if self.cuda_is_used() and self.torch.get_float32_matmul_precision() != "highest":
            self.computed = max(self.computed, _TF32)

    def sees_backward(self) -> bool:
        """A backward pass begins. Returns whether the next one need only be noted."""
        if self.by_loader is None:
            self._replay()
            self.by_backward = not self.by_loader and not _has_optimizer(self.torch)
        if self.by_backward:
            self._tick()
        return not self.by_backward

    def _tick(self) -> None:
        """A step ends and the next begins, by a clock other than the loader's."""
        self.tape.clear()
        event = self.mark() if self.cuda else None
        at = now()
        if self.opened is not None:
            self.steps.append(at - self.opened[0])
            self.waits.append(0.0)
            if self.cuda:
                self.events.append((self.opened[1], event))
            at = self.look(at)
        self.opened = (at, event)

    def look(self, at: float) -> float:
        """After a step: sees whether the warm-up, the turn or the run is over. Returns the time after it."""
        done = len(self.steps)
        if self._shared is not None:
            self._note(_DONE, done)
        if self.warmup is not None:
            self.window = at - self.measured_from - self.paused
        if self.rehearsal is not None:
            self.rehearsal.look()
        elif self._is_told_to_end(done):
            self.finish()
        elif self.mode != "time":
            if done >= self.settings["steps"]:
                self.finish()
        elif self.warmup is None:
            self._warm_up(done, at)
        else:
            if done - self.warmup >= self.settings["steps"] and self._is_long_enough():
                self.end_turn()
                self.finish()
            if self.turn and now() - self.turn_from >= self.turn:
                self.end_turn()
                self.pause()
                if self._is_told_to_end(done):
                    self.finish()
        after = now()
        if self.warmup is not None and not self.exact:
            self.look_at = min(after + _LOOK, self.turn_from + self.turn) if self.turn else after + _LOOK
            self.gate[0] = 0.0 if self.cuda else self.look_at
        return after

    def _warm_up(self, done: int, at: float) -> None:
        begins = self.gpus.look()
        if begins:
            self.cuda = True
            self._name_gpus()
        self._find_rank()
        if self.by_loader and done >= _OPTIMIZERS_SEEN and self.unhook_optimizers is not None:
            self.unhook_optimizers()
            self.unhook_optimizers = None
        if begins and self.settings["unit"] == "step":
            return  # the step that begins now has no event at its beginning
        if not self._is_warm(done):
            return
        together = self._together(done) if self.ranks and self.settings["unit"] == "step" else done
        if together:
            self.warmup = together
            self.measured_from = at - sum(self.steps[together:])
            self.gpus.reset_peak()
            self.pause()

    def _together(self, done: int) -> int:
        """The step from which all ranks measure; 0 while one of them has not warmed up.

        They must end after the same step, or the others wait for ever. The runner, which sees all of them, names it; else it
        is that of the longest warm-up.
        """
        self._note(_READY, done)
        told = self._told(_MEASURES)
        if told:
            return told if done >= told else 0
        longest = int(self.settings["longest_warmup"])
        return longest if done >= longest else 0

    def _name_gpus(self) -> None:
        """Tells the runner which GPUs to read."""
        path = os.path.join(self.settings["results"], "gpus-%d" % self.process)
        with open(path + ".part", "w") as file:
            json.dump([each["uuid"] for each in self.gpus.describe()], file)
        os.replace(path + ".part", path)

    def _find_rank(self) -> None:
        """Asks the process group, where there is one: without a launcher no variable names the rank."""
        distributed = sys.modules.get("torch.distributed")
        if distributed is not None and distributed.is_available() and distributed.is_initialized():
            self.rank = distributed.get_rank()
            self.ranks = distributed.get_world_size() > 1
            self.exact = self.exact or self.ranks
            self._note(_WORLD, distributed.get_world_size())

    def _is_told_to_end(self, done: int) -> bool:
        """Whether the runner has set a number of steps after which the run is to end, and they are done."""
        return 0 < self._told(_LAST) <= done

    def _told(self, word: int) -> int:
        """A word of what is shared with the runner."""
        return int(_SHARED.unpack(self._shared)[word]) if self._shared is not None else 0

    def _note(self, word: int, value: int) -> None:
        """Shares a word with the runner."""
        if self._shared is not None:
            self._shared[8 * word : 8 * word + 8] = struct.pack("<q", value)

    def end_turn(self) -> None:
        """Notes how far the turn that ends has come."""
        if self.turn and self.warmup is not None and self.window is not None:
            self.turns.append((len(self.steps) - self.warmup, self.window))

    def pause(self) -> None:
        """Ends this run's turn: the whole process group is stopped until the runner gives it the next one."""
        if not self.turn or self._shared is None:
            return
        began = now()
        given = self._told(_GIVEN)
        self._note(_ENDED, self._told(_ENDED) + 1)
        os.killpg(os.getpgrp(), signal.SIGSTOP)
        while self._told(_GIVEN) == given:
            time.sleep(_AWAKE)
        self._note(_TAKEN, self._told(_GIVEN))
        self.turn_from = now()
        self.paused += self.turn_from - began

    def _is_long_enough(self) -> bool:
        """Whether the measured time covers the seconds in which a shared machine's speed comes and goes."""
        if self.ranks or self.window is None:
            return True
        most = _MOST_TIMES * int(self.settings["steps"]) * int(self.settings["blocks"])
        return self.window >= self.settings["seconds"] or len(self.steps) >= most

    def _is_warm(self, done: int) -> bool:
        compiled = _compiled_graphs()
        if compiled != self.compilations:
            self.compilations, self.compiled_at = compiled, done
        if done < self.settings["warmup"]:
            return False
        if done >= self.settings["longest_warmup"]:
            return True
        recent = sorted(self.steps[-_STABLE:])
        quiet = done - self.compiled_at >= _STABLE or self.compilations == 0
        return len(recent) == _STABLE and quiet and recent[-2] <= recent[_STABLE // 2] * (1 + _SPREAD)

    # Results

    def finish(self) -> None:
        """Writes what was measured and ends the script; where it catches that, the process."""
        if self.written:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(0)
        self.write("steps")
        if threading.current_thread() is not threading.main_thread():
            self.finish()
        raise Enough

    def write(self, ended: str) -> None:
        """Writes what was measured; a second time does nothing."""
        if self.written:
            return
        self.written = True
        if self.mode == "loss":
            self._find_rank()
        slowest, gpu_steps = self._gpu_steps()
        if slowest is not None and self.window is not None:
            first, last = self.events[(self.warmup or 0) - len(self.steps)][0], self.events[-1][1]
            self.window = first[slowest].elapsed_time(last[slowest]) / 1000 if first and last else self.window
        if self.mode != "time" and self.gpus.look():
            self._name_gpus()
        gpus = self.gpus.describe()
        result = {
            "version": 1,
            "rank": self.rank,
            "pid": self.process,
            "ended": ended,
            "mode": self.mode,
            "clock": "loader" if self.by_loader else "backward" if self.by_backward else "optimizer",
            "steps": self.steps,
            "waits": self.waits,
            "gpu_steps": gpu_steps if slowest is not None else None,
            "gpus": gpus,
            "work": self.work.result() if self.work is not None else {},
            "batch": sum(self.counted) / len(self.counted) if self.counted else 0,
            "workers": self.workers,
            "warmup": self.warmup,
            "window": self.window,
            "turns": self.turns,
            "ended_at": time.monotonic(),
            "losses": self.losses,
            "syncs": self.syncs,
            "seeds": self.seeds,
            "stored": self.stored,
            "computed": max(self.stored, self.computed),
            "evaluations": self.rehearsal.evaluations if self.rehearsal is not None else 0,
            "optimizers": len(self.optimizers),
            "memory": _memory(gpus),
            "astray": speedlint_copy.astray(self.settings.get("changed", [])),
            "environment": _environment(self.torch, gpus),
        }
        path = os.path.join(self.settings["results"], "rank-%d-%d.json" % (self.rank, self.process))
        with open(path + ".part", "w") as file:
            json.dump(result, file)
        os.replace(path + ".part", path)

    def leave(self) -> None:
        """In a forked process, such as a loader's worker: nothing is measured here, but it is noted if it trains."""
        self.written = True
        for undo in self.unhook:
            undo()
        if self.unhook_optimizers is not None:
            self.unhook_optimizers()
        backward = self.torch.autograd.backward

        def noting(*args: Any, **kwargs: Any) -> Any:
            self.torch.autograd.backward = backward
            with open(os.path.join(self.settings["results"], "forked-%d" % os.getpid()), "w"):
                pass
            return backward(*args, **kwargs)

        self.torch.autograd.backward = noting

    def _gpu_steps(self) -> Tuple[Optional[int], List[float]]:
        """The GPU that sets the step and its times, as `Gpus.times` gives them; None for it without a GPU."""
        if not self.cuda:
            return None, []
        missing: List[Tuple[Mark, Mark]] = [(None, None)] * (len(self.steps) - len(self.events))
        return self.gpus.times(missing + self.events, self.warmup or 0)

    def share(self) -> None:
        """Opens the file shared with the runner.

        Only a process of the group that the runner started takes turns: no other is stopped along with it.
        """
        path = os.path.join(self.settings["results"], "progress-%d" % self.process)
        with open(path + ".part", "wb+") as file:
            file.write(b"\0" * _SHARED.size)
            file.flush()
            self._shared = mmap.mmap(file.fileno(), _SHARED.size)
        os.replace(path + ".part", path)
        if self.ranks:
            world = os.environ["WORLD_SIZE"]
            self._note(_WORLD, int(world) if world.isdigit() else 0)
        if os.environ.get(_GROUP) == str(_group()):
            self.turn = float(self.settings["turn"])


def _samples(batch: Any, depth: int = 0) -> int:
    """The size of the first dimension of the first tensor in a batch."""
    shape = getattr(batch, "shape", None)
    if isinstance(shape, tuple) and shape:
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


def _has_optimizer(torch: Any) -> bool:
    """Whether the script has made an optimizer."""
    return any(issubclass(type(each), torch.optim.Optimizer) for each in gc.get_objects())


def _roundoff(torch: Any, dtype: Any) -> float:
    """The unit roundoff of a floating-point type: half the distance from 1 to the next number."""
    return float(torch.finfo(dtype).eps) / 2


def _memory(gpus: List[Dict[str, Any]]) -> Dict[str, Any]:
    """Peak bytes: of the process, and of the GPU that is fullest."""
    found: Dict[str, Any] = {}
    try:
        import resource

        unit = 1 if sys.platform == "darwin" else 1024
        found["peak_resident"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    except ImportError:
        pass
    if gpus:
        fullest = max(gpus, key=lambda each: each["reserved"] / each["total"])
        found.update(peak_allocated=fullest["allocated"], peak_reserved=fullest["reserved"], total=fullest["total"])
    return found


def _environment(torch: Any, gpus: List[Dict[str, Any]]) -> Dict[str, Any]:
    found: Dict[str, Any] = {
        "python": sys.version.split()[0],
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "threads": torch.get_num_threads(),
        "device": "cpu",
        "accelerator": any(_is_available(torch, name) for name in ("mps", "xpu")),
    }
    if gpus:
        found["device"] = ", ".join(sorted({each["name"] for each in gpus}))
        found["devices"] = len(gpus)
        found["capability"] = gpus[0]["capability"]
        found["cudnn"] = torch.backends.cudnn.version()
    else:
        found["lost"] = lost(torch)
    return found


def _is_available(torch: Any, name: str) -> bool:
    backend = getattr(torch.backends, name, None) or getattr(torch, name, None)
    return bool(getattr(backend, "is_available", bool)())


# The hooks


def arm(torch: Any, settings: Dict[str, Any]) -> Probe:
    """Hooks the loaders, the backward pass and the optimizers."""
    probe = Probe(settings, torch)
    probe.share()
    atexit.register(probe.write, "script")
    if settings["unit"] == "epoch":
        import speedlint_epochs

        speedlint_epochs.arm(probe, torch, _samples)
    else:
        _hook_loaders(probe)
        _hook_backward(probe, torch)
        _hook_optimizers(probe, torch)
    if settings["mode"] == "loss":
        _watch_losses(probe, torch)
    if settings["mode"] == "rehearsal":
        from speedlint_rehearsal import Rehearsal

        probe.rehearsal = Rehearsal(probe.finish)
        probe.rehearsal.hook()
    if settings["mode"] == "syncs":
        _count_syncs(probe, torch)
    if settings["mode"] == "work":
        _count_work(probe, torch)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=probe.leave)
    return probe


def _watch_losses(probe: Probe, torch: Any) -> None:
    """What only a run for the losses does: its seeds, its precision, and what rounding does to it."""
    from speedlint_rounding import Rounding
    from speedlint_seeds import Seeds

    rounding = probe.settings.get("rounding")
    if rounding:
        probe.rounding = Rounding(torch, **rounding)
        probe.rounding.hook()
    seeds = Seeds(probe.settings, lambda: probe.written)
    seeds.hook(torch)
    probe.seeds = seeds.given
    _watch_autocast(probe, torch)
    _hook_scaler(probe, torch)


def _hook_loaders(probe: Probe) -> None:
    from torch.utils.data import dataloader

    base = dataloader._BaseDataLoaderIter
    original = base.__next__
    note, gate = probe.tape.append, probe.gate

    def __next__(self: Any) -> Any:
        asked, event = now(), None
        looks = asked >= gate[0]
        if looks:
            event = probe.mark() if probe.cuda else None
            asked = probe.ask(asked, event, self._num_workers)
        try:
            batch = original(self)
        except StopIteration:
            note((self._index_sampler,))
            raise
        note((self._index_sampler, asked, now(), event, _samples(batch) if looks else 0))
        return batch

    base.__next__ = __next__  # type: ignore[method-assign]
    probe.unhook.append(lambda: setattr(base, "__next__", original))


def _hook_backward(probe: Probe, torch: Any) -> None:
    """`Tensor.backward` looks this function up each time it is called."""
    backward = torch.autograd.backward
    note = probe.tape.append
    losses = probe.mode == "loss"
    within = [False]

    def hooked(tensors: Any, *args: Any, **kwargs: Any) -> Any:
        note(None)
        return backward(tensors, *args, **kwargs)

    def watching(tensors: Any, *args: Any, **kwargs: Any) -> Any:
        if within[0]:  # a checkpoint's own pass, within one of the training's
            return backward(tensors, *args, **kwargs)
        note(None)
        if probe.rehearsal is not None:
            probe.rehearsal.backward += 1
        if losses:
            tensors = _kept(tensors)
            if not probe.scaled:
                probe.losses.append(_loss(torch, tensors))
            probe.scaled = False
        if probe.sees_backward() and not losses and probe.rehearsal is None:
            torch.autograd.backward = hooked
        within[0] = True
        try:
            return backward(tensors, *args, **kwargs)
        finally:
            within[0] = False

    for hook in (hooked, watching):
        hook.__wrapped__ = backward  # type: ignore[attr-defined]
        hook.__doc__ = backward.__doc__
    torch.autograd.backward = watching
    probe.unhook.append(lambda: setattr(torch.autograd, "backward", backward))


def _kept(tensors: Any) -> Any:
    """What a backward pass starts from, which may be an iterator, to be looked at more than once."""
    return tuple(tensors) if isinstance(tensors, Iterator) else tensors


def _loss(torch: Any, tensors: Any) -> float:
    """The sum of all that a backward pass starts from."""
    each = tensors if isinstance(tensors, (list, tuple)) else (tensors,)
    return sum([float(one.detach().cpu().double().sum()) for one in each if isinstance(one, torch.Tensor)])


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
    """Notes what precision autocast computes in."""
    enter = torch.autocast.__enter__

    def entered(self: Any) -> Any:
        if getattr(self, "_enabled", True):
            dtype = getattr(self, "fast_dtype", torch.bfloat16)
            probe.computed = max(probe.computed, _roundoff(torch, dtype))
        return enter(self)

    torch.autocast.__enter__ = entered


def _wrap_scale(probe: Probe, torch: Any, owner: Any) -> None:
    scale = owner.scale

    def hooked(self: Any, outputs: Any) -> Any:
        if isinstance(outputs, torch.Tensor):
            probe.losses.append(float(outputs.detach().cpu().double().sum()))
            probe.scaled = True
        return scale(self, outputs)

    owner.scale = hooked


def _hook_optimizers(probe: Probe, torch: Any) -> None:
    def after(optimizer: Any, *_: Any) -> None:
        probe.stepped(optimizer)

    try:
        from torch.optim.optimizer import register_optimizer_step_post_hook
    except ImportError:
        _wrap_steps(torch.optim.Optimizer, after)
    else:
        probe.unhook_optimizers = register_optimizer_step_post_hook(after).remove


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
    """Has torch warn of each host-device synchronisation, from the first step on, and counts the warnings of each step."""
    show, look = warnings.showwarning, probe.look
    seen = [0]

    def counted(message: Any, *args: Any, **kwargs: Any) -> None:
        if _SYNCHRONISES in str(message):
            seen[0] += 1
        else:
            show(message, *args, **kwargs)

    def looked(at: float) -> float:
        if not (torch.cuda.is_available() and torch.cuda.is_initialized()):
            return look(at)
        probe.syncs.append(seen[0])
        seen[0] = 0
        torch.cuda.set_sync_debug_mode("warn")
        warnings.filterwarnings("always", message=".*" + _SYNCHRONISES)  # again, before filters that the script has added
        warnings.showwarning = counted
        return look(at)

    probe.look = looked  # type: ignore[method-assign]


def _count_work(probe: Probe, torch: Any) -> None:
    """Counts what each step after the warm-up computes."""
    from speedlint_work import Work

    work, look = Work(torch), probe.look
    work.hook()
    probe.work = work

    def looked(at: float) -> float:
        work.next_step(len(probe.steps) >= probe.settings["warmup"])
        return look(at)

    probe.look = looked  # type: ignore[method-assign]


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


def _group() -> Optional[int]:
    """The process group; None where the system has none."""
    return os.getpgrp() if hasattr(os, "getpgrp") else None


def _may_lead_again() -> None:
    """A script may make itself the leader of its process group, which a shell has made it: the same call fails here, since
    the process leads its session too."""
    setpgrp = os.setpgrp

    def leading() -> None:
        if os.getpgrp() != os.getpid():
            setpgrp()

    os.setpgrp = leading


def install(settings: Dict[str, Any]) -> None:
    """Waits for torch."""
    os.environ.setdefault(_GROUP, str(_group()))
    if hasattr(os, "setpgrp"):
        _may_lead_again()

    def armed(torch: Any) -> None:
        import speedlint_guard

        speedlint_guard.around_save(torch)
        arm(torch, settings)

    sys.meta_path.insert(0, _Finder(armed))
