"""Memory: where a script empties caches or collects garbage, and what it may do that for."""

from __future__ import annotations

import re

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.shapes import probes
from speedlint.shapes.steps import training_steps
from speedlint.solve.loops import Loop

_DEVICES = "cuda cuda.memory xpu xpu.memory mps npu mlu musa accelerator accelerator.memory".split()
EMPTY_CACHE = tuple(f"torch.{device}.empty_cache" for device in _DEVICES)
COLLECT = ("gc.collect",)
_MEASURES = re.compile(r"^(?:max_)?memory_|mem_get_info|memory_stats|memory_summary|tracemalloc|rss|virtual_memory")
_KNOWS_OBJECTS = re.compile(
    rb"gc\.(?:disable|get_|freeze|set_)|__del__|weakref|tracemalloc|psutil|getrefcount|resource\.get"
)
"""What a program says that sees when an object is freed."""
_LEAVES = re.compile(r"memory|\bmem\b|oom|vram|low_?vram|empty_?cache|clear_?cache|\bgc\b|gc_|_gc", re.IGNORECASE)


def has_other_reason(script: Script, call: syntax.Call) -> bool:
    """Whether it is there for more than habit: under a condition that speaks of memory, where a script tries out which
    batch fits, or where Python's own collector is switched off."""
    for up in script.source.ancestors(call):
        if isinstance(up, syntax.If) and _LEAVES.search(script.text(up.test)):
            return True
        if isinstance(up, syntax.FunctionDef):
            break
    if script.is_call_to(call, *COLLECT) and script.program.mentions(script, _KNOWS_OBJECTS):
        return True
    loop = script.loops.driving_loop(call)
    return loop is not None and any(
        script.source.contains(loop, step.backward) and probes.is_probe(step) for step in training_steps(script)
    )


def is_measured(script: Script, loop: Loop) -> bool:
    """Whether a loop reads how much memory is in use."""
    return any(_MEASURES.search(name.value) for name in script.source.inside(loop.body, syntax.Name))
