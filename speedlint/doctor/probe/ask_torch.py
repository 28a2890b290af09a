"""What torch says of itself and of the GPUs, as one line of JSON.

Runs in the user's interpreter, from Python 3.8 and torch 1.13 on, and needs nothing but torch. What cannot be asked is left
out.
"""

import importlib.util
import json
import os
import platform
import shutil
import sys

MARK = "speedlint-doctor:"


def ask(found, name, question):
    """Keeps an answer; torch's releases and builds differ in what they have."""
    try:
        found[name] = question()
    except Exception as error:
        found.setdefault("unanswered", {})[name] = "%s: %s" % (type(error).__name__, error)


def gpu(torch, index):
    """One GPU: memory in bytes, and its compute capability."""
    found = {}
    properties = torch.cuda.get_device_properties(index)
    ask(found, "name", lambda: properties.name)
    ask(found, "memory", lambda: properties.total_memory)
    ask(found, "capability", lambda: [properties.major, properties.minor])
    ask(found, "processors", lambda: properties.multi_processor_count)
    ask(found, "free", lambda: torch.cuda.mem_get_info(index)[0])
    return found


def answers():
    """All that is asked."""
    found = {"python": platform.python_version(), "executable": sys.executable}
    found["compiler"] = next((path for path in map(shutil.which, ("cc", "gcc", "g++", "clang")) if path), None)
    try:
        import torch
    except BaseException as error:
        found["missing"] = "%s: %s" % (type(error).__name__, error)
        return found
    found["triton"] = importlib.util.find_spec("triton") is not None
    ask(found, "torch", lambda: str(torch.__version__))
    ask(found, "cuda", lambda: torch.version.cuda)
    ask(found, "hip", lambda: torch.version.hip)
    ask(found, "available", torch.cuda.is_available)
    ask(found, "architectures", torch.cuda.get_arch_list)
    ask(found, "driver_cuda", lambda: torch._C._cuda_getDriverVersion())
    ask(found, "cudnn", lambda: torch.backends.cudnn.version() if torch.backends.cudnn.is_available() else None)
    ask(found, "matmul_precision", torch.get_float32_matmul_precision)
    ask(found, "threads", torch.get_num_threads)
    ask(found, "mps", lambda: torch.backends.mps.is_available())
    ask(found, "xpu", lambda: torch.xpu.is_available())
    ask(found, "nccl", lambda: torch.distributed.is_available() and torch.distributed.is_nccl_available())
    if found.get("available"):
        ask(found, "gpus", lambda: [gpu(torch, index) for index in range(torch.cuda.device_count())])
    return found


if __name__ == "__main__":
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [path for path in sys.path if os.path.abspath(path or os.getcwd()) != here]
    print(MARK + json.dumps(answers()))
