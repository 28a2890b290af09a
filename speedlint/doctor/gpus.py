"""torch, CUDA and the GPUs: whether they fit, and what each can do.

Sources: the CUDA C++ programming guide on binary and PTX compatibility (kernels run on GPUs of the same major and the
same or a higher minor compute capability; PTX on any newer one, after it is compiled), and its table of what each capability
supports: half precision on Tensor Cores from 7.0, bfloat16 and TF32 from 8.0.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from speedlint.doctor.advice import Advice, fine, note, size, warning
from speedlint.doctor.facts import Facts, Gpu, Torch

_INSTALL = "https://pytorch.org/get-started/locally"
_CROWDED = 0.5
_VOLTA, _AMPERE = (7, 0), (8, 0)
_KERNELS = re.compile(r"(sm|compute)_(\d+?)(\d)[a-z]?")


def torch(facts: Facts) -> Iterator[Advice]:
    """The installation: whether it is there, whether it is of the right kind, and how old it is."""
    found = facts.torch
    if found.missing:
        yield warning(
            "torch",
            f"cannot be imported by {found.executable} ({found.missing})",
            "name the interpreter that trains with --python",
        )
        return
    yield _build(facts)
    yield from _age(found)
    if found.available and found.cudnn is None and not found.hip:
        yield warning("cudnn", "torch has no cuDNN, so convolutions take slow paths", f"install a build with it: {_INSTALL}")
    if found.available and not (found.triton and found.compiler):
        lacks = "Triton" if not found.triton else "a C compiler"
        yield note("compile", f"`torch.compile` cannot work: {lacks} is missing", f"install {lacks}, if models are compiled")


def _build(facts: Facts) -> Advice:
    found = facts.torch
    name = f"torch {found.version}, Python {found.python}"
    if found.available:
        kind = f"ROCm {found.hip}" if found.hip else f"CUDA {found.cuda}"
        driver = f"; the driver runs up to {found.driver_cuda[0]}.{found.driver_cuda[1]}" if found.driver_cuda else ""
        return fine("torch", f"{name}, {kind}{driver}")
    if found.mps or found.xpu:
        return fine("torch", f"{name}, for {'Apple' if found.mps else 'Intel'} GPUs")
    if not facts.driver:
        return fine("torch", f"{name}; no GPU is to be seen")
    if found.cuda is None:
        what = f"{name} is a build without CUDA, on a machine with an NVIDIA driver"
        return warning("torch", what, f"install a build with CUDA: {_INSTALL}")
    if facts.environment.get("CUDA_VISIBLE_DEVICES", "0").strip() in ("", "-1"):
        return warning("torch", f"{name}: CUDA_VISIBLE_DEVICES hides every GPU", "unset it, or name the GPUs to use")
    if found.driver_cuda and found.cuda and found.driver_cuda[:1] < _release(found.cuda)[:1]:
        what = f"{name} is built for CUDA {found.cuda}, and the driver runs up to {_dotted(found.driver_cuda)}"
        return warning("torch", what, "update the driver, or install a build for an older CUDA")
    return warning(
        "torch",
        f"{name}, CUDA {found.cuda}: there is an NVIDIA driver, and torch can use no GPU",
        "`python -c 'import torch; torch.zeros(1).cuda()'` says why; in a container, start it with --gpus all",
    )


def _age(found: Torch) -> Iterator[Advice]:
    release = _release(found.version)
    if release and release < (2, 0):
        yield warning(
            "torch",
            f"torch {found.version} has no `torch.compile`, no `scaled_dot_product_attention` and no fused optimizers",
            "update to 2.x, if the code runs on it",
        )


def gpus(facts: Facts) -> Iterator[Advice]:
    """Each GPU: what it can do, whether torch has kernels for it, and who else uses it."""
    found = facts.torch
    for index, gpu in enumerate(found.gpus):
        topic = f"gpu {index}"
        capability = f"compute capability {_dotted(gpu.capability)}"
        yield fine(topic, f"{gpu.name}, {size(gpu.memory)}, {capability}: {_abilities(found, gpu)}")
        if not found.hip:
            yield from _kernels(topic, found, gpu)
            yield from _precision(topic, gpu)
        if gpu.free is not None and gpu.memory and gpu.free < gpu.memory * _CROWDED:
            what = f"others hold {size(gpu.memory - gpu.free)} of its {size(gpu.memory)}"
            yield warning(topic, what, "`nvidia-smi` names them; on a GPU that is shared everything is slower")
    if len({gpu.name for gpu in found.gpus}) > 1:
        yield note("gpus", "they are of several kinds", "a training over all of them goes at the pace of the slowest")


def _abilities(found: Torch, gpu: Gpu) -> str:
    if found.hip:
        return "see its vendor for the precisions it speeds up"
    if gpu.capability >= _AMPERE:
        return "TF32, bfloat16 and float16 on Tensor Cores"
    if gpu.capability >= _VOLTA:
        return "float16 on Tensor Cores, no bfloat16 and no TF32"
    return "no Tensor Cores"


def _precision(topic: str, gpu: Gpu) -> Iterator[Advice]:
    if gpu.capability < _VOLTA:
        advice = "measure with `speedlint verify` before using autocast"
        yield note(topic, "mixed precision saves it memory, and little time", advice)
    elif gpu.capability < _AMPERE:
        yield note(topic, "bfloat16 is emulated, and slow", 'use float16 with a GradScaler: `amp = "fp16"`, the default')


def _kernels(topic: str, found: Torch, gpu: Gpu) -> Iterator[Advice]:
    """Whether torch has kernels for the GPU, or code that the driver compiles for it."""
    known = [match for match in map(_KERNELS.fullmatch, found.architectures) if match]
    if not known or gpu.capability == (0, 0):
        return
    ready = {(int(each[2]), int(each[3])) for each in known if each[1] == "sm"}
    compiled = {(int(each[2]), int(each[3])) for each in known if each[1] == "compute"}
    if any(major == gpu.capability[0] and minor <= gpu.capability[1] for major, minor in ready):
        return
    if any(each <= gpu.capability for each in compiled):
        what = "torch has no kernels for it: the driver compiles them at the first start, and they are not tuned for it"
        yield note(topic, what, f"install a newer torch: {_INSTALL}")
        return
    built = ", ".join(sorted(found.architectures))
    what = f"this torch is built for {built}, not for compute capability {_dotted(gpu.capability)}"
    advice = "a newer torch" if not ready or gpu.capability > max(ready) else "an older torch, or one built for this GPU"
    yield warning(topic, what, f"install {advice}: {_INSTALL}")


def _release(version: str) -> tuple[int, ...]:
    match = re.match(r"(\d+)\.(\d+)", version)
    return (int(match[1]), int(match[2])) if match else ()


def _dotted(release: tuple[int, ...]) -> str:
    return ".".join(map(str, release))
