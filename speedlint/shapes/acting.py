"""Acting: where a script of reinforcement learning asks a network what to do next in an environment."""

from __future__ import annotations

from collections.abc import Iterator

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.rule import Estimate, Worth
from speedlint.shapes import evaluation
from speedlint.solve.flow import listed_once, once
from speedlint.solve.loops import Does, Loop
from speedlint.torch.words import Frequency

ENVIRONMENTS = (
    *("gym", "gymnasium", "envpool", "procgen", "pettingzoo", "isaacgym", "dm_control", "stable_baselines3"),
    *("atari_py", "ale_py", "mujoco_py", "pybullet_envs", "vizdoom", "minigrid", "gym_minigrid", "highway_env"),
)
"""The packages that make environments."""
_DEPTH = 3


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
    others = (part for part in (*_loops(script), *script.source.inside(loop.body, syntax.Call)) if _plays(script, part))
    apart = (each for each in others if script.source.contains(loop.body, each) and not script.source.contains(each, node))
    return any(script.frequency(each) is Frequency.STEP for each in apart)


def _plays(script: Script, part: syntax.Node) -> bool:
    """Whether a loop, or the function that is called, plays."""
    callee = script.callee(part) if isinstance(part, syntax.Call) else None
    if callee is None:
        return not isinstance(part, syntax.Call)
    return any(callee.script.source.contains(callee.node, each) for each in _loops(callee.script))


@listed_once
def _loops(script: Script) -> Iterator[Loop]:
    for call in script.method_calls("step"):
        loop = script.source.enclosing(call, syntax.For, syntax.While, syntax.FunctionDef, syntax.Lambda)
        if isinstance(loop, Loop) and is_environment_step(script, call):
            yield loop


def is_environment_step(script: Script, call: syntax.Call) -> bool:
    """Whether a call is ``env.step(action)`` of an environment that one of the known packages makes."""
    return isinstance(call.func, syntax.Attribute) and bool(call.args) and _is_environment(script, call.func.value, _DEPTH)


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
