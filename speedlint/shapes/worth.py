"""What findings are worth: estimates that several rules share, and which findings are one wait, and so one cause.

No estimate is a measurement of the script: ``speedlint verify`` makes those. The shares are those of a training step, or of
an epoch, on a recent GPU, from the sources that the rules name.
"""

from __future__ import annotations

from collections.abc import Callable

from speedlint import causes
from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.rule import Estimate, Worth
from speedlint.solve.loops import Does
from speedlint.torch.words import Frequency

WAIT = Estimate(Worth.MEDIUM, "one wait, after which the GPU idles until its queue is filled again")
MANY_WAITS = 10
"""Waits a step from which on they are a tenth of it or more: a step of 10 to 100 ms, a wait of 0.1 to 1 ms."""
HALF_PRECISION = Estimate(
    Worth.HIGH, "most of a step is convolutions and matrix products, twice as fast in half precision or more"
)
WORKERS_START = Estimate(Worth.LOW, "starting workers takes some tenths of a second each time")
COPY = Estimate(Worth.LOW, "one copy that the host waits for")
CONVOLUTIONS = Estimate(Worth.MEDIUM, "cuDNN guesses its convolutions in place of timing them once")
UPDATE = Estimate(Worth.LOW, "the update is a small part of a step")

ZEROS = Estimate(Worth.LOW, "each step fills all gradients with zeros and adds to them")
AVERAGES = Estimate(Worth.LOW, "some hundred launches of small kernels more in each step")
_FIXED = (COPY, ZEROS, AVERAGES)

NOTHING = Estimate(Worth.LOW, "the step waits there all the same")

TOO_NEW = Estimate(Worth.LOW, "no release that the project allows has the cure")
TOLD_OLDER = Estimate(Worth.LOW, "the release that the project's README or setup asks for does not have the cure")
ONE_PASS = Estimate(Worth.LOW, "it runs in one pass, beside a training of many")
OFF = Estimate(Worth.LOW, "it runs only where an option asks for it that is off by default and in the project's commands")

BY_ITSELF = Estimate(Worth.LOW, "it runs only where its module is run by itself, which trains nothing")
ON_HOST = Estimate(Worth.LOW, "its defaults and the project's commands run it on the CPU: none asks for a GPU")

_LOWER = {Worth.HIGH: Worth.MEDIUM, Worth.MEDIUM: Worth.LOW}
_SELDOM = {Frequency.EVAL_STEP: "in evaluation only", Frequency.THROTTLED: "now and then"}


def at(estimate: Estimate, frequency: Frequency) -> Estimate:
    """What a finding in each training step is worth where the line runs less often: a class less."""
    if frequency not in _SELDOM or estimate.worth not in _LOWER:
        return estimate
    return Estimate(_LOWER[estimate.worth], f"{estimate.because}; {_SELDOM[frequency]}")


def is_fixed(estimate: Estimate) -> bool:
    """Whether a finding costs the same part of a millisecond in each step, however much the step computes."""
    return estimate in _FIXED


def is_one_wait(estimate: Estimate) -> bool:
    """Whether a finding is one wait in each step, of training or of evaluation."""
    return estimate.because.startswith(WAIT.because)


def waits(count: int | None) -> Estimate:
    """What it is worth to take away ``count`` waits a step, None where their number is not known."""
    if count is None or count < MANY_WAITS:
        return WAIT
    return Estimate(Worth.HIGH, f"{count} waits, after each of which the GPU idles until its queue is filled again")


def one_wait(script: Script, node: syntax.Node) -> str:
    """The cause of a wait for a number: after the first one in a stretch the GPU's queue is empty, so that all in it are
    one."""
    return f"{causes.WAIT} {_across_turns(script, node)}"


def one_copy(script: Script, node: syntax.Node) -> str:
    """The cause of a copy that the host waits for: those side by side are one."""
    return f"{causes.COPY} {_across_turns(script, node)}"


def one_feed(script: Script, node: syntax.Node) -> str:
    """The cause of all that a file's loaders and copies of batches leave to be waited for: how batches reach the GPU."""
    return "feed"


def one_setup(code: str) -> Callable[[Script, syntax.Node], str]:
    """The cause of what a rule finds of things made side by side: the loaders, or the optimizers, of one function."""

    def cause(script: Script, node: syntax.Node) -> str:
        function = script.function(node)
        return f"{code} {script.source.span(function)[0] if function is not None else 'module'}"

    return cause


def one_step(code: str) -> Callable[[Script, syntax.Node], str]:
    """The cause of what a rule finds several times in one step: for each of two optimizers, as in a GAN."""

    def cause(script: Script, node: syntax.Node) -> str:
        loop = script.loops.driving_loop(node)
        return f"{code} {script.source.span(loop if loop is not None else node)[0]}"

    return cause


def stretch(script: Script, node: syntax.Node) -> str:
    """The stretch of a step, or of a function that it calls, between two pieces of work for the GPU, that a node is in."""
    around = script.loops.driving_loop(node) or script.function(node)
    if around is None or not isinstance(around.body, syntax.IndentedBlock):
        return f"at {script.source.span(node)[0]}"
    return f"{script.source.span(around)[0]}:{_start(script, around.body, node)}"


def _across_turns(script: Script, node: syntax.Node) -> str:
    """The stretch that a node is in, or the call of its function by a step in the same file. What stands before the first
    piece of work in a loop is in one stretch with what stands behind the last one, in the turn before."""
    loop = script.loops.driving_loop(node)
    if loop is None:
        callers = [call for other, call in script.loops.callers(node) if other is script]
        is_of_step = bool(callers) and script.loops.driving_loop(callers[0]) is not None
        return _across_turns(script, callers[0]) if is_of_step else stretch(script, node)
    if not isinstance(loop.body, syntax.IndentedBlock) or _start(script, loop.body, node):
        return stretch(script, node)
    ends = [script.source.span(statement)[1] for statement in loop.body.body if works(script, statement)]
    return f"{script.source.span(loop)[0]}:{max(ends, default=0)}"


def _start(script: Script, body: syntax.IndentedBlock, node: syntax.Node) -> int:
    """Where the last piece of work for the GPU ends that a block does before a node within it; 0 where there is none."""
    start = 0
    block: syntax.Node | None = body
    while isinstance(block, syntax.IndentedBlock):
        inner: syntax.Node | None = None
        for statement in block.body:
            if script.source.contains(statement, node):
                inner = statement.body if isinstance(statement, syntax.With | syntax.If | syntax.Try) else None
                break
            if works(script, statement):
                start = script.source.span(statement)[1]
        block = inner if inner is not None and script.source.contains(inner, node) else None
    return start


def works(script: Script, statement: syntax.Node) -> bool:
    """Whether a statement gives the GPU a step's work: a forward or backward pass, or an update."""
    return bool(script.loops.does(statement, Does.FORWARD | Does.STEPS | Does.EVALUATES))
