"""Layers that follow each other: what goes straight into a batch normalization, and whether it has a bias."""

from __future__ import annotations

from typing import TYPE_CHECKING

from speedlint.facts import syntax
from speedlint.source import is_name

if TYPE_CHECKING:
    from speedlint.ask.script import Script

_NORMS = tuple(f"torch.nn.{name}" for name in ("BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm"))
_BIAS_AT = {
    **{f"torch.nn.Conv{dims}d": 7 for dims in (1, 2, 3)},
    **{f"torch.nn.ConvTranspose{dims}d": 7 for dims in (1, 2, 3)},
    "torch.nn.Linear": 2,
}


def before_norm(script: Script, call: syntax.Call) -> tuple[Script, syntax.Call] | None:
    """The construction of the layer whose output goes straight into a batch normalization that ``call`` makes, as the next
    part of an ``nn.Sequential``, or runs, as in ``self.norm(self.conv(x))``."""
    if script.is_call_to(call, *_NORMS):
        return _before_in_sequence(script, call)
    match call:
        case syntax.Call(
            func=syntax.Attribute() as norm, args=[syntax.Arg(value=syntax.Call(func=syntax.Attribute() as layer))]
        ):
            norms, layers = list(script.roles.origins(norm)), list(script.roles.origins(layer))
            if not norms or not all(place.is_call_to(node, *_NORMS) for place, node in norms) or len(layers) != 1:
                return None
            place, node = layers[0]
            return (place, node) if isinstance(node, syntax.Call) and place.is_call_to(node, *_BIAS_AT) else None
    return None


def _before_in_sequence(script: Script, norm: syntax.Call) -> tuple[Script, syntax.Call] | None:
    arg = script.source.parents[norm]
    holder = script.source.parents[arg]
    parts: list[syntax.BaseExpression] = []
    if isinstance(holder, syntax.Call) and script.is_call_to(holder, "torch.nn.Sequential"):
        parts = [each.value for each in holder.args if not each.star]
    elif isinstance(holder, syntax.List):
        parts = [each.value for each in holder.elements]
    at = parts.index(norm) if norm in parts else 0
    before = parts[at - 1] if at else None
    return (script, before) if isinstance(before, syntax.Call) and script.is_call_to(before, *_BIAS_AT) else None


def fills_biases(script: Script) -> bool:
    """Whether the program initializes the bias of layers without asking whether they have one."""
    return any(
        (place.name(call.func) or "").startswith("torch.nn.init.")
        and any(isinstance(arg.value, syntax.Attribute) and arg.value.attr.value == "bias" for arg in call.args)
        and not _asks_for_bias(place, call)
        for place in script.everywhere(b"init.")
        for call in place.source.of(syntax.Call)
    )


def _asks_for_bias(script: Script, call: syntax.Call) -> bool:
    for up in script.source.ancestors(call):
        if isinstance(up, syntax.FunctionDef):
            return False
        if isinstance(up, syntax.If) and "bias" in script.text(up.test):
            return True
    return False


def has_bias(script: Script, layer: syntax.Call) -> bool:
    """Whether a layer's construction gives it a bias for certain."""
    asked = script.argument(layer, "bias", _BIAS_AT.get(script.name(layer.func) or "", 7))
    if asked is None:
        return not script.hides_arguments(layer)
    return is_name(asked, "True")
