"""Modules that are wrapped more than once: what a module has been wrapped in before, and which two wrappings go together."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from speedlint.facts import syntax
from speedlint.shapes.model import networks
from speedlint.shapes.steps import of_program
from speedlint.shapes.sync.creation import is_made_elsewhere
from speedlint.shapes.training import passed_through, roots, same_module, trained_modules
from speedlint.solve import passes, reach
from speedlint.solve.flow import once
from speedlint.solve.folding import Folding, Frame
from speedlint.solve.loops import Does
from speedlint.solve.terms import Definition
from speedlint.torch import library
from speedlint.torch.words import Frequency, Place, Role

if TYPE_CHECKING:
    from speedlint.ask.script import Script

_UNWRAPS = ("module", "_orig_mod")
_OF_WRAPPERS = frozenset(
    "module device_ids output_device dim src_device_obj add_module apply bfloat16 buffers call_super_init children "
    "compile cpu cuda double dump_patches eval extra_repr float forward gather get_buffer get_extra_state "
    "get_parameter get_submodule half ipu load_state_dict modules mtia named_buffers named_children named_modules "
    "named_parameters parallel_apply parameters register_backward_hook register_buffer register_forward_hook "
    "register_forward_pre_hook register_full_backward_hook register_full_backward_pre_hook "
    "register_load_state_dict_post_hook register_load_state_dict_pre_hook register_module register_parameter "
    "register_state_dict_post_hook register_state_dict_pre_hook replicate requires_grad_ scatter set_extra_state "
    "set_submodule share_memory state_dict to to_empty train training type xpu zero_grad T_destination".split()
)
"""What `torch.nn.DataParallel` has of its own, and what each module has."""
_VISIBLE = re.compile(rb"environ\[.CUDA_VISIBLE_DEVICES.\]")
_REMOTE = re.compile(rb"distributed\.autograd|dist_autograd|distributed\.rpc")


def operand(script: Script, call: syntax.Call) -> syntax.BaseExpression | None:
    """The module that ``torch.compile(module)`` or ``module.compile()`` compiles; None for any other call."""
    if script.is_call_to(call, "torch.compile"):
        module = script.argument(call, "model", 0)
        disabled = script.argument(call, "disable")
        known = script.constant(disabled) if disabled is not None else None
        return None if known is not None and known.value is True else module
    match call:
        case syntax.Call(func=syntax.Attribute(value=module, attr=syntax.Name("compile"))) if script.name(call.func) is None:
            return module if script.role(module) is Role.MODULE else None
    return None


def compiled_before(script: Script, call: syntax.Call, module: syntax.BaseExpression) -> tuple[Script, syntax.Call] | None:
    """The call that has compiled a module when ``call``, which is given it, runs."""
    for place, earlier in _wrapped_by(script, module):
        if place.is_call_to(earlier, "torch.compile") and go_together((place, earlier), (script, call)):
            return place, earlier
    function = script.function(call)
    for other in script.method_calls("compile"):
        compiled = operand(script, other) if not script.is_call_to(other, "torch.compile") else None
        in_place = compiled is not None and script.function(other) is function and same_module(script, compiled, module)
        if in_place and go_together((script, other), (script, call)):
            return script, other
    return None


def parallel_before(script: Script, call: syntax.Call, module: syntax.BaseExpression) -> tuple[Script, syntax.Call] | None:
    """The call that has put a module into ``DataParallel`` when ``call``, which is given it, runs."""
    for place, earlier in _wrapped_by(script, module):
        if place.is_call_to(earlier, "torch.nn.DataParallel") and go_together((place, earlier), (script, call)):
            return place, earlier
    return None


def is_distributed_beside(script: Script, call: syntax.Call) -> bool:
    """Whether the function that a call stands in wraps a module in ``DistributedDataParallel`` in another branch."""
    around = script.function(call) or script.source.module
    wrapped = (each for each in script.calls(*library.DATA_PARALLEL_RANKS) if script.source.contains(around, each))
    return any(script.function(each) is script.function(call) for each in wrapped)


@once(False)
def sees_one_gpu(script: Script) -> bool:
    """Whether the program lets itself see one GPU, by default: ``os.environ["CUDA_VISIBLE_DEVICES"] = args.gpu``."""
    said = [
        place.constant(assign.value)
        for place in script.everywhere(b"CUDA_VISIBLE_DEVICES")
        for assign in place.source.of(syntax.Assign)
        if any(_VISIBLE.search(place.text(target.target).encode()) for target in assign.targets)
    ]
    return bool(said) and all(each is not None and str(each.value).strip().isdigit() for each in said)


def names_one_gpu(script: Script, wrapper: syntax.Call) -> bool:
    """Whether a wrapper is told of a single GPU, in a list that is written out, ``DataParallel(model, device_ids=[0])``, or
    that is known: ``device_ids=[i for i in range(len(gpus))]``."""
    given = script.argument(wrapper, "device_ids", 1)
    known = Folding().elements(Frame(script), given) if given is not None else None
    if known is not None:
        return len(known) == 1
    bindings = script.names.reaching(given) if isinstance(given, syntax.Name) else []
    listed = [binding.value for binding in bindings] or [given]
    return all(isinstance(each, (syntax.List, syntax.Tuple)) and _is_of_one(each) for each in listed)


def _is_of_one(listed: syntax.List | syntax.Tuple) -> bool:
    return len(listed.elements) == 1 and isinstance(listed.elements[0], syntax.Element)


def is_for_evaluation(script: Script, call: syntax.Call) -> bool:
    """Whether what its function runs after a call evaluates, or switches what the call wraps to evaluation, and trains
    nothing: the training stands before, in other branches or functions."""
    function, later = script.function(call), Does.NOTHING
    uses = [use.node for use in reach.uses(script, call) if use.script is script and script.function(use.node) is function]
    is_switched = any(_is_switched(script, use) for use in uses)
    if function is not None and is_switched and not any(_is_handed_away(script, use) for use in uses):
        later = Does.EVALUATES
    for kind in (syntax.SimpleStatementLine, syntax.For):
        for each in script.source.inside(function.body, kind) if function is not None else ():
            if script.order.runs_again(call, each):
                is_pass = isinstance(each, syntax.For) and script.loops.kind(each) is Frequency.EVAL_STEP
                later |= Does.EVALUATES if is_pass else script.loops.does(each, Does.EVALUATES | Does.STEPS)
    return later == Does.EVALUATES


def _is_switched(script: Script, module: syntax.Node) -> bool:
    """Whether a use of a module puts it in evaluation mode."""
    method = script.source.parents[module]
    call = script.source.parents[method] if isinstance(method, syntax.Attribute) else None
    return isinstance(call, syntax.Call) and passes.is_eval_call(call)


def _is_handed_away(script: Script, module: syntax.Node) -> bool:
    """Whether a use of a module keeps it for other functions, or hands it to what is out of sight: these may train it."""
    up = script.source.parents[module]
    match up:
        case syntax.Arg():
            call = script.source.parents[up]
            return isinstance(call, syntax.Call) and script.callee(call) is None
        case syntax.Assign(targets=targets):
            return not all(isinstance(each.target, syntax.Name) for each in targets)
    return not isinstance(up, syntax.Attribute | syntax.Call)


def is_asked_in_vain(script: Script, wrapper: syntax.Call) -> bool:
    """Whether the training that a wrapped module goes to always asks the wrapper for what only the module within has. That
    raises: no training with the wrapper ever ran."""
    found: dict[tuple[Script, syntax.Node], list[syntax.Node]] = {}
    for use in reach.uses(script, wrapper):
        start = _start(script, use, wrapper)
        asked = use.script.source.parents[use.node]
        if start is not None and _is_of_inner(use.script, asked):
            found.setdefault((use.script, start), []).append(asked)
    return any(place.order.is_followed(start, asked) for (place, start), asked in found.items())


def is_passed_by(script: Script, wrapper: syntax.Call) -> bool:
    """Whether the program runs the module within alone, ``model.module(x)``, and never calls the wrapper: it copies none."""
    ran = [use for use in reach.uses(script, wrapper) if use.node is not wrapper]
    inner = [use for use in ran if _runs_inner(use.script, use.node)]
    return bool(inner) and not any(_may_run(use.script, use.node) for use in ran)


def _runs_inner(script: Script, use: syntax.Node) -> bool:
    asked = script.source.parents[use]
    call = script.source.parents[asked] if isinstance(asked, syntax.Attribute) and asked.attr.value == "module" else None
    return isinstance(call, syntax.Call) and call.func is asked


def _may_run(script: Script, use: syntax.Node) -> bool:
    """Whether a use calls a module, or hands it to what may; a ``ModuleList`` only holds it."""
    up = script.source.parents[use]
    if isinstance(up, syntax.Call):
        return up.func is use
    call = script.source.parents[up] if isinstance(up, syntax.Arg) else None
    return isinstance(call, syntax.Call) and not script.is_call_to(call, "torch.nn.ModuleList")


def is_left_on_host(script: Script, wrapper: syntax.Call) -> bool:
    """Whether a wrapped module, made by a class of the project, is on the CPU, since nothing in the program moves a module.
    Several GPUs refuse it then, and one is only handed the call."""
    made = roots(script, wrapper.args[0].value)
    if not made or any(networks.root_definition(place, node) is None for place, node in made):
        return False
    moved = (
        place.roles.calls.place_of_move(call, Place.HOST) is not Place.HOST
        for place in script.everywhere(b".to(", b".cuda(")
        for call in place.method_calls("to", "cuda")
        if isinstance(call.func, syntax.Attribute) and place.role(call.func.value) not in (Role.TENSOR, Role.BATCH)
    )
    return not any(moved) and not is_made_elsewhere(script)


def _start(script: Script, use: reach.Use, wrapper: syntax.Call) -> syntax.Node | None:
    """Where a use's function gets the wrapper, if that trains: the parameter that holds it, or the call that makes it.

    What a function of the project returns may be the module within: ``unwrapped(model)``.
    """
    if isinstance(use.node, syntax.Call) and use.node is not wrapper:
        return None
    if use.script is script and script.function(use.node) is script.function(wrapper):
        return wrapper
    script = use.script
    function = script.function(use.node)
    if function is None or not script.loops.function_does(function, Does.STEPS):
        return None
    bindings = script.names.reaching(use.node) if isinstance(use.node, syntax.Name) else []
    return bindings[0].node if len(bindings) == 1 and isinstance(bindings[0].node, syntax.Param) else None


def _is_of_inner(script: Script, asked: syntax.Node) -> bool:
    """Whether an attribute is read that neither a wrapper nor any module has, and nothing catches the error."""
    if not isinstance(asked, syntax.Attribute) or isinstance(script.source.parents[asked], syntax.AssignTarget):
        return False
    name = asked.attr.value
    is_set = any(each.attr.value == name for each in _attributes_set(script))
    return not is_set and not name.startswith("_") and name not in _OF_WRAPPERS and _is_uncaught(script, asked)


def _attributes_set(script: Script) -> Iterator[syntax.Attribute]:
    targets = (each.target for each in script.source.of(syntax.AssignTarget))
    return (each for each in targets if isinstance(each, syntax.Attribute))


def _is_uncaught(script: Script, node: syntax.Node) -> bool:
    return script.source.enclosing(node, syntax.Try, syntax.FunctionDef) is script.function(node)


def _wrapped_by(script: Script, module: syntax.BaseExpression) -> Iterator[tuple[Script, syntax.Call]]:
    """The calls that a module has passed through; none where it is taken out of its wrapper again."""
    passed = passed_through(script, module)
    if any(isinstance(node, syntax.Attribute) and node.attr.value in _UNWRAPS for _, node in passed):
        return
    yield from ((place, node) for place, node in passed if isinstance(node, syntax.Call))


def go_together(first: tuple[Script, syntax.Call], second: tuple[Script, syntax.Call]) -> bool:
    """Whether ``second`` may run after ``first`` in one run, and no condition speaks against it."""
    (place, earlier), (script, call) = first, second
    if earlier is call:
        return False
    if place is not script or place.function(earlier) is not script.function(call):
        return _is_known_order(first, second)
    if not script.source.contains(call, earlier) and not script.order.may_run_before(earlier, call):
        return False
    mine, theirs = set(_conditions(place, earlier, call)), set(_conditions(script, call, earlier))
    mine, theirs = mine - theirs, theirs - mine
    asked_of_both = {word for text in mine for word in _words(text)} & {word for text in theirs for word in _words(text)}
    return not asked_of_both and not any("DataParallel" in text or "module" in text for text in theirs)


def _is_known_order(first: tuple[Script, syntax.Call], second: tuple[Script, syntax.Call]) -> bool:
    """Whether two calls in different functions run one after the other: of methods of one object only ``__init__`` is known
    to run before others."""
    (place, earlier), (script, call) = first, second
    function, other = place.function(earlier), script.function(call)
    owner = place.names.owner(function) if function is not None else None
    if owner is None or place is not script or other is None or script.names.owner(other) is not owner:
        return True
    return function is not None and function.name.value == "__init__"


def _conditions(script: Script, node: syntax.Call, other: syntax.Call) -> Iterator[str]:
    """The conditions around a node that are not around another one as well, ``and`` taken apart; an ``else`` is ``not``."""
    child: syntax.Node = node
    for up in script.source.ancestors(node):
        if isinstance(up, syntax.FunctionDef):
            return
        if isinstance(up, (syntax.If, syntax.IfExp)) and child is not up.test and not script.source.contains(up, other):
            parts = list(_conjuncts(script, up.test))
            yield from parts if child is up.body else (f"not {part}" for part in parts)
        child = up


def _conjuncts(script: Script, test: syntax.BaseExpression) -> Iterator[str]:
    if isinstance(test, syntax.BooleanOperation) and isinstance(test.operator, syntax.And):
        yield from _conjuncts(script, test.left)
        yield from _conjuncts(script, test.right)
    else:
        yield " ".join(script.text(test).split())


def _words(condition: str) -> set[str]:
    """What a condition asks: its dotted names, but ``args`` and the like alone."""
    found: set[str] = set()
    todo: list[ast.AST] = [ast.parse(condition, mode="eval").body]
    while todo:
        node = todo.pop()
        if isinstance(node, (ast.Attribute, ast.Name)):
            found.add(ast.unparse(node).removeprefix("torch."))
        else:
            todo += ast.iter_child_nodes(node)
    return found - {"isinstance", "hasattr", "len", "getattr", "torch", "int", "bool"}


def is_run_in_training(script: Script, call: syntax.Call) -> bool:
    """Whether the forward pass of a training step of the program runs the module that ``call`` returns."""
    steps = of_program(script)
    return any(node is call for step in steps for _, node in passed_through(step.script, step.forward.func))


def uses_remote_gradients(script: Script) -> bool:
    """Whether the program computes gradients across machines by ``torch.distributed.autograd``."""
    return script.program.mentions(script, _REMOTE)


def is_trained(script: Script, module: syntax.BaseExpression) -> bool:
    """Whether a module is one of those that the program is seen to train; yes where none is seen."""
    trained = {id(node) for _, node in trained_modules(script)}
    return not trained or any(id(node) in trained for _, node in roots(script, module))


def is_kept_part(script: Script, call: syntax.Call) -> bool:
    """Whether what ``call`` returns is kept on ``self`` where a module is made."""
    parent = script.source.parents[call]
    function = script.function(call)
    owner = script.names.owner(function) if function is not None else None
    if owner is None or function is None or function.name.value != "__init__" or not isinstance(parent, syntax.Assign):
        return False
    on_self = any(isinstance(target.target, syntax.Attribute) for target in parent.targets)
    return on_self and script.roles.instance(Definition(script, owner)).role is Role.MODULE
