"""Acting: where a script of reinforcement learning asks a network what to do next in an environment."""

from __future__ import annotations

import re
from collections.abc import Iterator

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.rule import Estimate, Worth
from speedlint.shapes import evaluation
from speedlint.solve.flow import listed_once, once
from speedlint.solve.loops import Does, Loop
from speedlint.solve.names import last_name
from speedlint.solve.terms import Definition
from speedlint.source import is_name

ENVIRONMENTS = (
    *("gym", "gymnasium", "envpool", "procgen", "pettingzoo", "isaacgym", "dm_control", "stable_baselines3"),
    *("atari_py", "ale_py", "mujoco_py", "pybullet_envs", "vizdoom", "minigrid", "gym_minigrid", "highway_env"),
)
"""The packages that make environments."""
_TOLD_BY_STEP = (4, 5)
"""What a step of an environment gives, in gym and in gymnasium; the third tells whether the episode is over."""
_END = re.compile(r"(?i)done|terminat|terminal|finished|(?:^|_)over$")
_DEPTH = 3
_MANY_TURNS = 100
"""Turns of an environment, of a tenth of a millisecond and a pass of the network each, that take longer than a step."""


def is_asked(script: Script, call: syntax.Call) -> bool:
    """Whether a call runs a network in a loop that takes a step of an environment with each turn."""
    loop = script.source.enclosing(call, syntax.For, syntax.While, syntax.FunctionDef, syntax.Lambda)
    if loop not in _loops(script):
        return False
    if evaluation.is_network(script, call):
        return True
    callee = script.callee(call)
    if callee is None or not isinstance(callee.node, syntax.FunctionDef) or not evaluation.runs_network(script, call):
        return False
    does = callee.script.loops.function_does(callee.node, Does.FORWARD | Does.BACKWARD)
    return does is Does.FORWARD


@once(False)
def is_asked_by_name(script: Script, method: syntax.FunctionDef) -> bool:
    """Whether such a loop calls a method by its name, on an object that is out of sight: ``agent.choose(state)``."""
    name = method.name.value
    return script.names.owner(method) is not None and any(
        isinstance(call.func, syntax.Attribute) and place.callee(call) is None
        for place in script.everywhere(f".{name}(".encode())
        for call in place.written_calls(name)
        if place.source.enclosing(call, syntax.For, syntax.While, syntax.FunctionDef, syntax.Lambda) in _loops(place)
    )


EPISODES = Estimate(Worth.LOW, "each training step plays in its environment first, for as many turns as it learns from")


@once(False)
def plays_first(script: Script, node: syntax.Node) -> bool:
    """Whether each turn of the loop that makes a node run plays in an environment too, in a loop that the node is no part
    of: whole episodes, beside which a wait or a launch is nothing."""
    loop = script.loops.driving_loop(node)
    around = script.source.ancestors(node)
    if any(up in _loops(script) for up in around if up is not loop):
        return False
    if loop is None:
        callers = script.loops.callers(node)
        return bool(callers) and all(plays_first(*each) for each in callers)
    if loop in _loops(script):
        return False
    return any(_plays_whole(script, line) for line in loop.body.body if not script.source.contains(line, node))


def _plays_whole(script: Script, line: syntax.Node) -> bool:
    """Whether a statement of a turn plays on, whatever was before: by a loop of many turns, or a function that runs one."""
    if isinstance(line, Loop):
        return _is_long(script, line)
    if not isinstance(line, syntax.SimpleStatementLine):
        return False
    called = (script.callee(call) for call in script.source.inside(line, syntax.Call))
    return any(_runs_long(each) for each in called if each is not None and isinstance(each.node, syntax.FunctionDef))


def _runs_long(function: Definition) -> bool:
    """Whether a function plays in a loop of many turns, with no condition around it and no way to leave before."""
    source, body = function.script.source, function.node.body
    for loop in _loops(function.script):
        around = [up for up in source.ancestors(loop) if source.contains(body, up) and up is not body]
        is_plain = all(isinstance(up, syntax.For | syntax.With | syntax.IndentedBlock) for up in around)
        leaves = (each for each in source.inside(body, syntax.Return) if each.row < loop.row)
        if source.contains(body, loop) and is_plain and not any(leaves) and _is_long(function.script, loop):
            return True
    return False


def _is_long(script: Script, loop: Loop) -> bool:
    """Whether a loop, or one in it, plays until an episode is over, or for a known number of turns that is not small."""
    own = [each for each in _loops(script) if each is loop or script.source.contains(loop, each)]
    for each in own:
        if isinstance(each, syntax.While):
            ends = each.test
            if is_name(ends, "True") or isinstance(ends, syntax.UnaryOperation):
                return True
        elif script.is_call_to(each.iter, "range") and isinstance(each.iter, syntax.Call):
            known = script.constant(each.iter.args[-1].value) if each.iter.args else None
            if known is not None and isinstance(known.value, int) and known.value >= _MANY_TURNS:
                return True
    return False


@listed_once
def _loops(script: Script) -> Iterator[Loop]:
    for call in script.method_calls("step"):
        loop = script.source.enclosing(call, syntax.For, syntax.While, syntax.FunctionDef, syntax.Lambda)
        is_step = is_environment_step(script, call) or _tells_of_end(script, call)
        if isinstance(loop, Loop) and is_step and not script.loops.is_left_for_good(loop):
            yield loop


def is_environment_step(script: Script, call: syntax.Call) -> bool:
    """Whether a call is ``env.step(action)`` of an environment that one of the known packages makes."""
    return isinstance(call.func, syntax.Attribute) and bool(call.args) and _is_environment(script, call.func.value, _DEPTH)


def _tells_of_end(script: Script, call: syntax.Call) -> bool:
    """Whether what a step gives is taken apart as that of an environment is, whoever made it:
    ``state, reward, done, info = world.step(action)``."""
    match script.source.parents[call]:
        case syntax.Assign(targets=[syntax.AssignTarget(target=syntax.Tuple(elements=elements))]) if call.args:
            told = last_name(elements[2].value) if len(elements) in _TOLD_BY_STEP else None
            return told is not None and _END.search(told) is not None
    return False


def _is_environment(script: Script, expression: syntax.BaseExpression, depth: int) -> bool:
    """Whether an object is an environment, or wraps one: ``Scaled(gym.make("CartPole-v1"))``."""
    for place, made in script.roles.origins(expression):
        if not isinstance(made, syntax.Call):
            continue
        if (place.name(made.func) or "").partition(".")[0] in ENVIRONMENTS:
            return True
        if depth and any(_is_environment(place, arg.value, depth - 1) for arg in made.args):
            return True
    return False
