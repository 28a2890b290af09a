"""The words in which tables and answers speak: roles, places, frequencies."""

from __future__ import annotations

import enum


class Role(enum.Enum):
    """What a value is in a training script."""

    NUMBER = "number"
    STRING = "string"
    NONE = "none"
    ARRAY = "array"
    """A numpy array or another library's data on the host."""
    TENSOR = "tensor"
    BATCH = "batch"
    """What a loader yields, or a part of it whose type is not known: tensors on the host, mostly."""
    MODULE = "module"
    OPTIMIZER = "optimizer"
    SCHEDULER = "scheduler"
    SCALER = "scaler"
    LOADER = "loader"
    DATASET = "dataset"
    SAMPLER = "sampler"
    DEVICE = "device"
    DTYPE = "dtype"
    SEQUENCE = "sequence"
    MAPPING = "mapping"
    FUNCTION = "function"
    CLASS = "class"
    INSTANCE = "instance"
    """An object of a first-party class that is none of the above."""
    UNKNOWN = "unknown"


class Frequency(enum.IntEnum):
    """How often a line runs; a higher value runs more often."""

    ONCE = 0
    EPOCH = 1
    THROTTLED = 2
    EVAL_STEP = 3
    STEP = 4


FREQUENT = (Frequency.STEP, Frequency.EVAL_STEP)
"""What runs in each step, of training or of evaluation."""


class Place(enum.Enum):
    """Where a tensor or module lives."""

    HOST = "host"
    GPU = "gpu"
    EITHER = "either"
    """Decided at run time, or not known."""
