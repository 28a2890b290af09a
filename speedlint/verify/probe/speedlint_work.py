"""How much work a step is, in a run of its own that is not timed: floating-point operations, and tokens.

Standard library and torch only; Python 3.8. The operations are counted from torch 2.1 on (``torch.utils.flop_counter``):
matrix products, convolutions and attention, forward and backward.
"""

from typing import Any, Dict, List, Optional


class Work:
    """What is counted, step by step.

    Attributes:
        flops: the operations of each counted step.
        tokens: the most entries that an embedding was asked for at once in each of them; 0 without one.
    """

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self.flops: List[int] = []
        self.tokens: List[int] = []
        self._counter: Optional[Any] = None
        self._most = 0

    def hook(self) -> None:
        """Watches the embeddings."""
        functional = self.torch.nn.functional
        embedding = functional.embedding

        def watched(indices: Any, *args: Any, **kwargs: Any) -> Any:
            self._most = max(self._most, indices.numel())
            return embedding(indices, *args, **kwargs)

        functional.embedding = watched

    def next_step(self, is_counted: bool) -> None:
        """A step ends, and another one begins."""
        if self._counter is not None:
            self._counter.__exit__(None, None, None)
            self.flops.append(int(self._counter.get_total_flops()))
            self.tokens.append(self._most)
        self._counter, self._most = None, 0
        if is_counted:
            try:
                from torch.utils.flop_counter import FlopCounterMode
            except ImportError:
                return
            self._counter = FlopCounterMode(display=False)
            self._counter.__enter__()

    def result(self) -> Dict[str, float]:
        """What a step comes to: the median of those that were counted; nothing where none was."""
        return {"flops": _median(self.flops), "tokens": _median(self.tokens)} if self.flops else {}


def _median(values: List[int]) -> float:
    return float(sorted(values)[len(values) // 2])
