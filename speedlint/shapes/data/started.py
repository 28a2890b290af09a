"""What a worker that is spawned does before it reads: it imports the program's files anew, and with them all that stands at
their top; what the training has set in them, or has drawn there, it does not have."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from speedlint.facts import syntax
from speedlint.shapes.sync.reads import shown
from speedlint.solve import changing
from speedlint.torch import library

if TYPE_CHECKING:
    from speedlint.ask.script import Script
    from speedlint.solve.names import Binding

_ACTS = (
    "print",
    "input",
    "os.mkdir",
    "os.remove",
    "os.unlink",
    "os.rename",
    "os.replace",
    "os.rmdir",
    "os.system",
    "shutil.rmtree",
    "shutil.move",
    "shutil.copy",
    "subprocess.",
    "wandb.init",
    "mlflow.start_run",
    "torch.save",
    "numpy.save",
    "json.dump",
    "pickle.dump",
    "torch.utils.tensorboard.SummaryWriter",
    "tensorboardX.SummaryWriter",
    "atexit.register",
    "multiprocessing.set_start_method",
    "torch.multiprocessing.set_start_method",
    "torch.distributed.init_process_group",
)
"""Functions that do something outside of the process, or may run once only."""
_ACTING_METHODS = frozenset({"write_text", "write_bytes", "unlink", "touch", "to_csv", "backward", "savefig"})
_DRAWS = (
    *library.DRAWS,
    "uuid.",
    "secrets.",
    "time.",
    "datetime.datetime.now",
    "os.getpid",
    "os.urandom",
)
"""Functions that give something else each time."""
_SEEDED = ("seed", "Random", "RandomState", "default_rng", "SeedSequence", "PCG64")
"""Those that give the same where they are handed a seed."""
_SETS = re.compile(r"(?:set|register|unregister|add|enable|disable)(?:_|[a-z]*$)")
"""The names of functions that set something of a library, or tell it of something."""
_SET_FOR_ITEMS = frozenset(
    "PIL codecs copyreg csv cv2 decimal h5py librosa locale mimetypes nltk pandas sqlite3 sys torchaudio yaml".split()
)
"""Libraries that read data, whose settings are those of one process."""
_PROCESS_WIDE = (
    "numpy.seterr",
    "numpy.seterrcall",
    "warnings.simplefilter",
    "warnings.filterwarnings",
    "decimal.getcontext",
    "decimal.setcontext",
    "locale.setlocale",
    "csv.field_size_limit",
    "torchvision.set_image_backend",
    "pandas.set_option",
)
_HARMLESS = (
    "torch.backends.",
    "torch.cuda.",
    "os.environ",
    "sys.path",
    "matplotlib.",
    "tqdm.",
    "torch._dynamo.",
    "torch._inductor.",
)
"""Settings of libraries that do not touch what items are."""
_DEEPEST = 3


def acts(script: Script, made: syntax.Node) -> str | None:
    """What the files do that workers import which read what is ``made``, and that must not happen again, in a clause."""
    for other in _imported(script, made):
        for call in other.source.of(syntax.Call):
            if not changing.is_at_the_top(other, call) or other.source.enclosing(call, syntax.ExceptHandler) is not None:
                continue
            if (found := _acting(other, call, 0)) is not None:
                return f"`{found}` on line {other.source.line(call)} of {other.path.name} would run again in each worker"
        for each in other.source.of(syntax.Decorator):
            if other.name(each.decorator) == "atexit.register" and changing.is_at_the_top(other, other.source.parents[each]):
                line = other.source.line(each)
                return f"what line {line} of {other.path.name} registers would run at the end of each worker"
    return None


def _imported(script: Script, made: syntax.Node) -> list[Script]:
    """The files on the ways to where something is made, and what they import."""
    found = list(dict.fromkeys(other for other, _ in changing.ways_to(script, made)))
    for each in found:
        found += [other for other in each.imports if other not in found]
    return found


def _acting(script: Script, call: syntax.Call, depth: int) -> str | None:
    name = script.name(call.func)
    method = call.func.attr.value if isinstance(call.func, syntax.Attribute) else ""
    if (name is not None and name.startswith(_ACTS)) or (name is None and method in _ACTING_METHODS):
        return shown(script, call)
    if (name == "os.makedirs" or method == "mkdir") and not _may_exist(script, call):
        return shown(script, call)
    if name == "open" or (name is None and method == "open"):
        mode = script.argument(call, "mode", 1 if name == "open" else 0)
        known = script.constant(mode) if mode is not None else None
        return shown(script, call) if known is not None and set(str(known.value)) & set("wx") else None
    callee = script.callee(call)
    if callee is None or not isinstance(callee.node, syntax.FunctionDef) or depth > _DEEPEST:
        return None
    found = (_acting(callee.script, each, depth + 1) for each in callee.script.source.inside(callee.node.body, syntax.Call))
    return shown(script, call) if any(each is not None for each in found) else None


def _may_exist(script: Script, call: syntax.Call) -> bool:
    given = script.argument(call, "exist_ok")
    known = script.constant(given) if given is not None else None
    return known is not None and known.value is True


def sets_process(script: Script) -> str | None:
    """What functions set for the whole process, where workers that are spawned do not: how errors are handled, or parts of a
    library that are replaced; in a clause."""
    clause = "is set for this process: workers that are spawned do not have it"
    for other, call in script.calls_everywhere(*_PROCESS_WIDE):
        if changing.is_at_the_top(other, call):
            continue
        if not (other.name(call.func) or "").startswith("warnings.") or "error" in other.text(call):
            return f"`{shown(other, call)}` {clause}"
    for other in script.everywhere():
        for call in other.source.of(syntax.Call):
            package, _, function = (other.name(call.func) or "").rpartition(".")
            is_set = _SETS.match(function) is not None and isinstance(other.source.parents[call], syntax.Expr)
            is_of_items = package.partition(".")[0] in _SET_FOR_ITEMS or package == "torch.serialization"
            if is_set and is_of_items and function != "setNumThreads" and not changing.is_at_the_top(other, call):
                return f"`{shown(other, call)}` {clause}"
        for target in other.source.of(syntax.AssignTarget):
            dotted = other.name(target.target) if isinstance(target.target, syntax.Attribute) else None
            if dotted is None or dotted.startswith(_HARMLESS) or changing.is_at_the_top(other, target):
                continue
            if "." in dotted and other.imported_binding(dotted)[0] is None and other.program.module(other, dotted) is None:
                return f"`{shown(other, target.target)}` {clause}"
    return None


def answers_signals(script: Script) -> str | None:
    """The function that answers signals, which workers that are forked have too, in a clause."""
    for other, call in script.calls_everywhere("signal.signal"):
        handler = other.argument(call, "handler", 1)
        if handler is not None and not (other.name(handler) or "").startswith("signal."):
            return f"`{shown(other, handler)}` would answer signals in each worker too"
    return None


def set_elsewhere(script: Script, bindings: list[Binding], name: str) -> str | None:
    """Why a variable of a module may be another one where the module is imported anew, in a clause."""
    for binding in bindings:
        if not changing.is_at_the_top(script, binding.node):
            return f"`{name}` is set where workers that are spawned do not run the script"
        if binding.value is not None and (drawn := _drawn(script, binding.value, 0)) is not None:
            return f"workers that are spawned would make `{name}` anew, by another `{drawn}`"
    return None


def _drawn(script: Script, value: syntax.Node, depth: int) -> str | None:
    for call in script.source.inside(value, syntax.Call):
        name = script.name(call.func) or ""
        is_seeded = (name.endswith(_SEEDED) and bool(call.args)) or script.argument(call, "generator") is not None
        if name.startswith(_DRAWS) and not is_seeded:
            return shown(script, call)
        callee = script.callee(call)
        if callee is None or not isinstance(callee.node, syntax.FunctionDef) or depth > _DEEPEST:
            continue
        if _drawn(callee.script, callee.node.body, depth + 1) is not None:
            return shown(script, call)
    return None
