"""Helpers that only tell: functions of the project that draw, write files or print, and change nothing training reads."""

from __future__ import annotations

from collections.abc import Iterator

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.shapes.model.evaluating import is_evaluating
from speedlint.shapes.model.networks import is_loss
from speedlint.shapes.sync import reads
from speedlint.solve import changing, pure
from speedlint.solve.gradients import gradients_off
from speedlint.solve.names import Kind
from speedlint.source import is_name
from speedlint.torch import library
from speedlint.torch.words import Role

_DEPTH = 3
_LIBRARIES = (
    "matplotlib.",
    "seaborn.",
    "plotly.",
    "PIL.Image.",
    "PIL.ImageDraw.",
    "imageio.",
    "cv2.imwrite",
    "cv2.cvtColor",
    "cv2.resize",
    "skimage.io.imsave",
    "torchvision.utils.",
    "torchvision.transforms.functional.to_pil_image",
    "os.path.",
    "os.makedirs",
    "os.mkdir",
    "os.fspath",
    "shutil.copy",
    "pathlib.",
    "json.dump",
    "pickle.dump",
    "csv.",
    "math.",
    "time.",
    "datetime.",
    "logging.",
    "pandas.DataFrame",
    "copy.deepcopy",
    "numpy.",
    "torch.",
    "wandb.log",
    "wandb.Image",
    "wandb.Histogram",
)
"""What draws, writes files, computes or tells, and leaves alone what it is given."""
_OF_LIBRARIES = ("matplotlib.", "PIL.", "csv.", "open")
"""What makes objects whose methods only draw or write."""
_NOT = (
    "torch.random.",
    "torch.nn.",
    "torch.optim.",
    "torch.cuda.",
    "torch.distributed.",
    "torch.backends.",
    "torch.autograd.",
    "torch.utils.",
    "torch.jit.",
    "torch.compile",
    "torch.load",
    "torch.set_",
    *library.DRAWS,
    "torch.manual_seed",
    "torch.seed",
    "torch.dropout",
    "torch.use_",
    "torch.from_file",
    "torch.onnx.",
    "torch.ao.",
    "torch.fx.",
    "torch.hub.",
    "torch.func.",
    "torch.export.",
    "torch._",
    "numpy.put",
    "numpy.copyto",
    "numpy.place",
    "numpy.fill_diagonal",
)
"""What draws random numbers, runs a network, waits for other processes, reads a file or sets a switch."""
_OF_NN = frozenset(
    f"torch.nn.functional.{name}"
    for name in (
        "cross_entropy nll_loss mse_loss l1_loss smooth_l1_loss binary_cross_entropy binary_cross_entropy_with_logits "
        "softmax log_softmax sigmoid tanh relu interpolate one_hot normalize pad cosine_similarity softplus"
    ).split()
)
"""Functions of networks that compute, and draw no random numbers."""
_BUILTINS = (pure.LEAVE_ALONE - {"iter"}) | {"open", "format", "round", "divmod", "slice", "hasattr", "chr", "ord", "bytes"}
_OF_MODULES = frozenset("state_dict parameters named_parameters modules named_modules children named_children".split())
_OF_TRAINERS = frozenset({"state_dict", "get_last_lr"})
_TRAINED = {
    Role.MODULE: _OF_MODULES,
    Role.OPTIMIZER: _OF_TRAINERS,
    Role.SCHEDULER: _OF_TRAINERS,
    Role.SCALER: _OF_TRAINERS | {"get_scale"},
}
"""The methods that leave what is trained as it is."""
_VALUES = (Role.NUMBER, Role.STRING, Role.ARRAY, Role.TENSOR, Role.BATCH, Role.SEQUENCE, Role.MAPPING)
_CHANGES = frozenset("backward register_hook retain_grad multinomial bernoulli shuffle".split())
"""Methods of tensors and lists that do more than compute."""
_TELLS = frozenset(
    "savefig imshow plot scatter hist bar legend title xlabel ylabel grid set_title set_xlabel set_ylabel set_xlim set_ylim "
    "set_aspect set_xticks set_yticks set_axis_off tight_layout add_subplot subplots colorbar axis text annotate "
    "add_image add_images add_figure add_histogram add_embedding add_scalar add_scalars add_text flush "
    "info debug warning state_dict detach numpy item tolist mean sum min max std format join split strip replace "
    "items keys values copy astype permute transpose reshape view squeeze unsqueeze flatten clamp size dim "
    "contiguous mkdir exists with_suffix joinpath write writelines writerow".split()
)
"""Methods that tell or compute, of whatever object they are."""
_LITERALS = (
    syntax.List,
    syntax.Dict,
    syntax.Set,
    syntax.ListComp,
    syntax.DictComp,
    syntax.SetComp,
    syntax.Integer,
    syntax.Float,
)
_REFUSED = (syntax.Global, syntax.Nonlocal, syntax.Yield, syntax.Await, syntax.Raise, syntax.Assert)


def does_more(script: Script, call: syntax.Call, *, evaluates: bool = False, depth: int = _DEPTH) -> str | None:
    """The code by which a call does, or may do, more than draw, write a file, print and compute, itself or in the functions
    of the project that it calls; None where it surely does no more. With ``evaluates`` it may also run networks without
    gradients that are in evaluation mode, and switch them to it and back."""
    callee = script.callee(call)
    if evaluates and (script.role(call.func) is Role.MODULE or _switches_mode(script, call)):
        return None if _only_evaluates(script, call) else reads.shown(script, call.func)
    if callee is None:
        return None if _only_tells(script, call) else reads.shown(script, call.func)
    function, other = callee.node, callee.script
    if not isinstance(function, syntax.FunctionDef) or depth == 0 or function.name.value == "__init__":
        return reads.shown(script, call.func)
    if other.names.owner(function) is not None and function.name.value in ("forward", "__call__"):
        return reads.shown(script, call.func)
    return next(_doing_more(other, function, evaluates, depth), None)


def _switches_mode(script: Script, call: syntax.Call) -> bool:
    match call.func:
        case syntax.Attribute(value=module, attr=syntax.Name("eval" | "train")) if not call.args:
            return script.role(module) is Role.MODULE
    return False


def _only_evaluates(script: Script, call: syntax.Call) -> bool:
    """Whether a call runs a loss, or a network in evaluation mode, without gradients, or switches one to it and back."""
    if gradients_off(script, call) is not True and not _switches_mode(script, call):
        return False
    if not _switches_mode(script, call):
        return is_loss(script, call) or is_evaluating(script, call.func, call)
    assert isinstance(call.func, syntax.Attribute)
    text, function = script.text(call.func.value), script.function(call)
    switches = [
        other
        for other in script.method_calls("eval", "train")
        if script.function(other) is function and script.text(other.func) in (f"{text}.eval", f"{text}.train")
    ]
    back = [other for other in switches if script.text(other.func) == f"{text}.train"]
    to = [other for other in switches if other not in back]
    if call in to:
        return bool(back) and script.order.is_followed(call, back)
    return script.order.surely(to, call)


def _doing_more(script: Script, function: syntax.FunctionDef, evaluates: bool, depth: int) -> Iterator[str]:
    source = script.source
    for decorator in function.decorators:
        made = decorator.decorator
        if script.name(made.func if isinstance(made, syntax.Call) else made) not in library.NO_GRADS:
            yield reads.shown(script, made)
    for kind in _REFUSED:
        for node in source.inside(function.body, kind):
            yield reads.shown(script, node)
    for base, node in changing.written(script, function.body):
        if not _is_own(script, function, base):
            yield reads.shown(script, node)
    for call in source.inside(function.body, syntax.Call):
        more = does_more(script, call, evaluates=evaluates, depth=depth - 1)
        if more is not None:
            yield more


def _is_own(script: Script, function: syntax.FunctionDef, base: syntax.BaseExpression) -> bool:
    """Whether what is changed was made in the function: a list or a number written out, or what a library has made."""
    while isinstance(base, (syntax.Attribute, syntax.Subscript)):
        base = base.value
    if not isinstance(base, syntax.Name):
        return False
    bindings = script.names.scope(base).bindings.get(base.value, [])
    return bool(bindings) and all(
        script.function(one.node) is function
        and one.kind in (Kind.ASSIGN, Kind.AUGMENT, Kind.WITH)
        and (isinstance(one.value, _LITERALS) or _is_made(script, one.value))
        for one in bindings
        if one.kind is not Kind.AUGMENT
    )


def _is_made(script: Script, value: syntax.BaseExpression | None) -> bool:
    """Whether a value is what a library's function has made anew, no view of what it was given."""
    name = script.name(value.func) if isinstance(value, syntax.Call) else None
    return name is not None and name.startswith(("matplotlib.", "numpy.zeros", "numpy.ones", "numpy.empty", "PIL.", "csv."))


def _only_tells(script: Script, call: syntax.Call) -> bool:
    """Whether a call of no function of the project only tells or computes."""
    if any(is_name(arg.keyword, "out", "inplace") for arg in call.args):
        return False
    name = script.name(call.func)
    if name is not None:
        if "." not in name:
            return name in _BUILTINS
        return name in _OF_NN or (name.startswith(_LIBRARIES) and not name.startswith(_NOT) and not name.endswith("_"))
    if not isinstance(call.func, syntax.Attribute):
        return False
    base, method = call.func.value, call.func.attr.value
    role = script.role(base)
    if role in _TRAINED:
        return method in _TRAINED[role]
    if method.endswith("_") or method in _CHANGES:
        return False
    if isinstance(base, syntax.Call) and script.callee(base) is None and _only_tells(script, base):
        return True
    return role in _VALUES or method in _TELLS or _is_of_library(script, base)


def _is_of_library(script: Script, base: syntax.BaseExpression) -> bool:
    """Whether an object is one that a library for figures or files has made."""
    if not isinstance(base, syntax.Name):
        return False
    made = [
        script.name(one.value.func) or "" if isinstance(one.value, syntax.Call) else ""
        for one in script.names.reaching(base)
    ]
    return bool(made) and all(name.startswith(_OF_LIBRARIES) for name in made)
