"""Stands for what torch imports and no eager training asks for: ``torch._dynamo``, which an optimizer imports in half of the
time that a training of a few steps takes, and a third of ``import torch``: ``torch.export``, kernels of the meta device."""

import importlib.abc
import importlib.machinery
import sys
import types

_META = "torch._meta_registrations"


def _disable(function: object = None, recursive: bool = True, **_: object) -> object:
    return function


def _graph_break(message: str = "") -> None:
    pass


class _Meta(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """In place of the kernels of the meta device, what torch has bound by the time that it has imported them."""

    def find_spec(self, name: str, *_: object) -> importlib.machinery.ModuleSpec | None:
        return importlib.machinery.ModuleSpec(name, self) if name == _META else None

    def exec_module(self, module: types.ModuleType) -> None:
        import torch
        from torch._opaque_base import OpaqueBaseMeta

        torch._C._set_generator_metaclass(OpaqueBaseMeta)


sys.modules["torch._dynamo"] = types.ModuleType("torch._dynamo")
vars(sys.modules["torch._dynamo"]).update(disable=_disable, graph_break=_graph_break)
sys.modules["torch.export"] = types.ModuleType("torch.export")
sys.meta_path.insert(0, _Meta())
