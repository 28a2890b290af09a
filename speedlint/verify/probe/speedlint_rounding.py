"""How far rounding alone carries a training: its parameters are moved at random, as much as rounding moves them.

Monte Carlo arithmetic (D. S. Parker, UCLA CSD-970002, 1997), applied to the parameters after each optimizer step. Standard
library and torch only; Python 3.8, torch 1.13 and later.
"""

from typing import Any, Dict, Tuple


class Rounding:
    """Moves each element of the parameters by a unit in the last place, up, down or not at all.

    Attributes:
        unit: the unit roundoff of the arithmetic, such as 2**-24 for float32; an element moves by twice that, relatively.
        passing: whether the move is taken back before the next step: parameters are stored more finely than is computed.
    """

    def __init__(self, torch: Any, seed: int, unit: float, passing: bool) -> None:
        self.torch, self.seed, self.unit, self.passing = torch, seed, unit, passing
        self._make = torch.Generator
        self._generators: Dict[Any, Any] = {}
        self._moves: Dict[int, Tuple[Any, Any]] = {}

    def hook(self) -> None:
        """Takes moves back before each step, where that is asked for."""
        if self.passing:
            from torch.optim.optimizer import register_optimizer_step_pre_hook

            register_optimizer_step_pre_hook(lambda optimizer, *_: self.take_back(optimizer))

    def move(self, optimizer: Any) -> None:
        """After a step."""
        self.take_back(optimizer)
        with self.torch.no_grad():
            for group in optimizer.param_groups:
                for parameter in group["params"]:
                    if parameter.is_floating_point():
                        self._move(parameter)

    def take_back(self, optimizer: Any) -> None:
        """Before a step."""
        with self.torch.no_grad():
            for group in optimizer.param_groups:
                for parameter in group["params"]:
                    if id(parameter) in self._moves:
                        parameter.sub_(self._moves.pop(id(parameter))[1])

    def _move(self, parameter: Any) -> None:
        device = parameter.device
        if device not in self._generators:
            self._generators[device] = self._make(device=device)
            self._generators[device].manual_seed(self.seed)
        signs = self.torch.randint(-1, 2, parameter.shape, generator=self._generators[device], device=device)
        move = parameter * (signs * (2 * self.unit)).to(parameter.dtype)
        parameter.add_(move)
        if self.passing:
            self._moves[id(parameter)] = (parameter, move)
