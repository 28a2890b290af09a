"""Which devices a script may run on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

if TYPE_CHECKING:
    from speedlint.semantics.script import Script


def gpu_is_certain(script: Script) -> bool:
    """Whether the script cannot run without a GPU: nothing in it asks whether there is one or names another device."""
    places = (script, *script.neighbours)
    for place in places:
        asks = any(each.attr.value in ("is_available", "current_accelerator") for each in place.source.of(cst.Attribute))
        if asks or any(text in ("cpu", "mps", "auto") for text in _strings(place)):
            return False
    return any(place.method_calls("cuda") or any(text.startswith("cuda") for text in _strings(place)) for place in places)


def may_be_mps(script: Script) -> bool:
    """Whether the script, or a neighbour, may choose Apple's GPU."""
    for place in (script, *script.neighbours):
        if b"mps" not in place.source.data and b"current_accelerator" not in place.source.data:
            continue
        if "mps" in _strings(place) or any(True for _ in place.calls("torch.accelerator.current_accelerator")):
            return True
        if any(attribute.attr.value == "mps" for attribute in place.source.of(cst.Attribute)):
            return True
    return False


def _strings(script: Script) -> Iterator[str]:
    return (str(string.evaluated_value) for string in script.source.of(cst.SimpleString))
