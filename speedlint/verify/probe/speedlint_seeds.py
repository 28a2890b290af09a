"""Where a run for the losses takes its random numbers from. Standard library and torch; Python 3.8, torch 1.13 and later.

All generators are seeded before the script begins. The seeds that the script sets itself are recorded, may be replaced by
those of an earlier run (a script that takes them from the clock or from `os.urandom` repeats itself then), and are offset.
"""

import numbers
import random
import sys
from typing import Any, Callable, Dict, List, Optional, Tuple

_LIBRARIES = ("torch", "numpy", "random")


class Seeds:
    """The script's own seeds.

    Attributes:
        given: the function's name and the seed of each call, in order; None where the system is to choose one.
    """

    def __init__(self, settings: Dict[str, Any], is_over: Callable[[], bool]) -> None:
        self.first = int(settings["seed"])
        self.offset = int(settings.get("offset", 0))
        self.is_over = is_over
        self.given: List[Tuple[str, Optional[float]]] = []
        self.before: Dict[str, List[Optional[float]]] = {}
        for name, seed in settings.get("replay", ()):
            self.before.setdefault(name, []).append(seed)
        self.taken: Dict[str, int] = {}

    def used(self, name: str, seed: Optional[float]) -> Any:
        """The seed that is set in place of the one given."""
        self.given.append((name, seed))
        count = self.taken.get(name, 0)
        self.taken[name] = count + 1
        before = self.before.get(name, [])
        if count < len(before) and before[count] is not None:
            seed = before[count]
        return (self.first + count if seed is None else seed) + self.offset

    def hook(self, torch: Any) -> None:
        """Seeds the generators and watches the functions that do."""
        seed = self.first + self.offset
        torch.manual_seed(seed)
        random.seed(seed)
        owners: List[Tuple[Any, str, Optional[Callable[[int], Any]]]] = [
            (torch, "manual_seed", None),
            (torch.random, "manual_seed", None),
            (torch.cuda, "manual_seed", None),
            (torch.cuda, "manual_seed_all", None),
            (torch, "seed", torch.manual_seed),
            (torch.random, "seed", torch.manual_seed),
            (random, "seed", None),
        ]
        numpy = sys.modules.get("numpy")
        if numpy is not None:
            numpy.random.seed(seed % 2**32)
            owners += [(numpy.random, "seed", None), (numpy.random, "default_rng", None)]
        for owner, name, setter in owners:
            self._watch(owner, name, setter)
        torch.Generator = self._generator(torch.Generator)

    def _watch(self, owner: Any, name: str, setter: Optional[Callable[[int], Any]]) -> None:
        """Wraps one function; ``setter`` is what seeds where it takes no seed itself, and returns the one it chose."""
        original = getattr(owner, name)
        shown = "%s.%s" % (getattr(owner, "__name__", "torch"), name)

        def seeded(*args: Any, **kwargs: Any) -> Any:
            if self.is_over() or not _is_of_script(sys._getframe(1)):
                return original(*args, **kwargs)
            if setter is not None:
                chosen = self.used(shown, None)
                setter(chosen)
                return chosen
            if not any(each is not None for each in (*args, *kwargs.values())):
                return original(self.used(shown, None))
            moved = [self._moved(shown, each) for each in args]
            return original(*moved, **{key: self._moved(shown, each) for key, each in kwargs.items()})

        setattr(owner, name, seeded)

    def _moved(self, name: str, value: Any) -> Any:
        if isinstance(value, numbers.Integral) and not isinstance(value, bool):
            return self.used(name, int(value))
        return self.used(name, value) if isinstance(value, float) else value  # `random.seed(time.time())`

    def _generator(self, base: Any) -> Any:
        """``torch.Generator`` with its seeds watched; objects of the original count as its own."""
        seeds = self

        class Kind(type(base)):  # type: ignore[misc]
            def __instancecheck__(cls, instance: Any) -> bool:
                return isinstance(instance, base)

        class Generator(base, metaclass=Kind):  # type: ignore[misc]
            def manual_seed(self, seed: int) -> Any:
                if seeds.is_over() or not _is_of_script(sys._getframe(1)):
                    return super().manual_seed(seed)
                return super().manual_seed(seeds.used("torch.Generator.manual_seed", int(seed)))

            def seed(self) -> int:
                chosen = int(seeds.used("torch.Generator.seed", None))
                super().manual_seed(chosen)
                return chosen

        Generator.__module__, Generator.__qualname__ = base.__module__, base.__qualname__
        return Generator


def _is_of_script(frame: Any) -> bool:
    """Whether code other than torch's and numpy's own seeds a generator."""
    return str(frame.f_globals.get("__name__", "")).partition(".")[0] not in _LIBRARIES
