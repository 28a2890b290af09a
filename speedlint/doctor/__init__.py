"""``speedlint doctor``: what a machine, its torch and the environment leave of a training's speed, without a script."""

from __future__ import annotations

from speedlint.doctor import gpus, loading, switches
from speedlint.doctor.advice import Advice
from speedlint.doctor.facts import Facts

_CHECKS = (
    gpus.torch,
    gpus.gpus,
    loading.cores,
    loading.workers,
    loading.memory,
    switches.environment,
    loading.data,
)


def examine(facts: Facts) -> list[Advice]:
    """What every check says of these facts."""
    return [advice for check in _CHECKS for advice in check(facts)]
