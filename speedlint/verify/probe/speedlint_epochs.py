"""Measures whole epochs: from the moment the loop asks for an epoch's first batch to the moment it asks for the next one's.

Evaluation, checkpoints and the start of the next epoch's workers lie between the two. An epoch is a pass over the loader
whose batches backward passes follow; that of a loader made anew counts where the one before ran out of batches.
"""

import atexit
import time
from typing import Any, Callable, Dict, List, Optional, Tuple

now = time.perf_counter


class Epochs:
    """What one process measures of its epochs; the probe gets their times as its steps.

    Attributes:
        passes: for each sampler of this epoch, by its id, the sampler itself, so that the id stays its own, the iterator
            that gives its batches now, and the seconds waited for them and their samples.
        asked: when the first batch of a pass was asked for that no backward pass has followed yet, by the sampler's id.
        last: the sampler whose batch was asked for last, by its id.
        main: that of the training loader; None until the first backward pass.
        ran_out: whether its pass has ended.
        begun: when the epoch that goes on began, how long the run had been stopped until then, and what its pass counts.
    """

    def __init__(self, probe: Any, samples: Callable[[Any], int]) -> None:
        self.probe, self.samples = probe, samples
        self.passes: Dict[int, Tuple[Any, Any, List[float]]] = {}
        self.asked: Dict[int, float] = {}
        self.last: Optional[int] = None
        self.main: Optional[int] = None
        self.ran_out = False
        self.begun: Optional[Tuple[float, float, List[float]]] = None

    def ask(self, iterator: Any) -> float:
        """A batch is asked for. Returns when."""
        sampler = iterator._index_sampler
        self.last = id(sampler)
        at = now()
        if self.last not in self.passes or self.passes[self.last][1] is not iterator:
            self.passes[self.last] = (sampler, iterator, [0.0, 0])
            if self.probe.cuda and self.main is not None:
                self.probe.gpus.synchronize()
                at = now()
            self.asked[self.last] = at
        self.probe.workers = max(self.probe.workers, iterator._num_workers)
        return at

    def come(self, iterator: Any, asked: float, batch: Any) -> None:
        """The batch has come."""
        count = self.passes[id(iterator._index_sampler)][2]
        count[0] += now() - asked
        count[1] += self.samples(batch)

    def end_pass(self, iterator: Any) -> None:
        """A loader has no more batches."""
        sampler = iterator._index_sampler
        self.passes[id(sampler)] = (sampler, None, [0.0, 0])
        self.ran_out = self.ran_out or id(sampler) == self.main

    def backward(self) -> None:
        """A backward pass begins: the first one after the first batch of a pass says that an epoch began with that batch."""
        if self.last is None or self.last not in self.asked:
            return
        at = self.asked.pop(self.last)
        if self.main not in (None, self.last) and not self.ran_out:
            return
        self.main, self.ran_out = self.last, False
        self.passes = {key: each for key, each in self.passes.items() if key == self.main}
        self.asked.clear()
        before, self.begun = self.begun, (at, self.probe.paused, self.passes[self.main][2])
        if before is not None:
            self._close(before, at)
            self.probe.look(at)

    def end(self) -> None:
        """The script ends: an epoch that ran out of batches is whole."""
        probe, at = self.probe, now()
        if self.begun is None or not self.ran_out or probe.written:
            return
        self._close(self.begun, at)
        if probe.warmup is not None:
            probe.window = at - probe.measured_from - probe.paused
            probe.end_turn()

    def _close(self, begun: Tuple[float, float, List[float]], at: float) -> None:
        began, paused, (waited, counted) = begun
        self.probe.steps.append(at - began - (self.probe.paused - paused))
        self.probe.waits.append(waited)
        if counted:
            self.probe.counted.append(counted)


def arm(probe: Any, torch: Any, samples: Callable[[Any], int]) -> None:
    """Hooks the loaders and the backward pass; takes the place of what measures steps."""
    from torch.utils.data import dataloader

    epochs = Epochs(probe, samples)
    probe.by_loader = True
    base, backward = dataloader._BaseDataLoaderIter, torch.autograd.backward
    following = base.__next__

    def __next__(self: Any) -> Any:
        asked = epochs.ask(self)
        try:
            batch = following(self)
        except StopIteration:
            epochs.end_pass(self)
            raise
        epochs.come(self, asked, batch)
        return batch

    def hooked(*args: Any, **kwargs: Any) -> Any:
        epochs.backward()
        return backward(*args, **kwargs)

    hooked.__wrapped__ = backward  # type: ignore[attr-defined]
    hooked.__doc__ = backward.__doc__
    base.__next__ = __next__  # type: ignore[method-assign]
    torch.autograd.backward = hooked
    probe.unhook.append(lambda: setattr(base, "__next__", following))
    probe.unhook.append(lambda: setattr(torch.autograd, "backward", backward))
    atexit.register(epochs.end)
