"""Stands for ``torch._dynamo``, which an optimizer imports in half of the time that a training of a few steps takes."""

import sys
import types


def _disable(function: object = None, recursive: bool = True, **_: object) -> object:
    return function


def _graph_break(message: str = "") -> None:
    pass


sys.modules["torch._dynamo"] = types.ModuleType("torch._dynamo")
vars(sys.modules["torch._dynamo"]).update(disable=_disable, graph_break=_graph_break)
