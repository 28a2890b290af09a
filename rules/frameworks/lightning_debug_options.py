"""Lightning's `Trainer` is left in a mode for debugging.

## What it does
Finds a `Trainer` that fits a module and is told `detect_anomaly=True`, to profile, to be deterministic, to log every step,
or to stop after a batch (`fast_dev_run`).

## Why it is slow
The option is for finding faults, and what it does takes time in every step.

- `detect_anomaly`: A stack trace is kept for each operation of the forward pass, and each of the backward one is looked
  through for NaN.
- `profiler`: The `advanced` profiler runs Python's own around every hook, the `pytorch` one records every operation, the
  `simple` one takes the time of every hook.
- `deterministic`: The deterministic algorithms are the slower ones.
- `log_every_n_steps`: A value that is logged in each step makes the host wait for the GPU each time.
- `fast_dev_run`: It trains on almost nothing.

## Example
```python
import lightning as L

trainer = L.Trainer(max_epochs=10, accelerator="gpu", detect_anomaly=True)
trainer.fit(module, loader)
```

## Use instead
```python
import lightning as L

trainer = L.Trainer(max_epochs=10, accelerator="gpu")
trainer.fit(module, loader)
```

## Fix safety
Exact: `detect_anomaly=True` is taken out; without it a NaN in the backward pass is no error any more. All else is shown:
whether a run must be repeatable, or is meant to be measured, is for you to say. The last three, and the `simple` profiler,
which only reads a clock, are notes. Options that are decided at run time are left alone.

## Sources
A step with anomaly detection took 14.6 times as long, one under the autograd profiler 2.9 times (torch 2.13, CPU). Read in
the sources of lightning 2.6: `detect_anomaly` is False, `deterministic` and `profiler` are None, `log_every_n_steps` is 50
by default.

- [Lightning: Trainer](https://lightning.ai/docs/pytorch/stable/common/trainer.html)
- [PyTorch: anomaly detection](https://docs.pytorch.org/docs/stable/autograd.html#anomaly-detection)
"""

from __future__ import annotations

from collections.abc import Iterator

from speedlint import edits
from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.rule import Estimate, Finding, Fix, Level, Risk, Rule, Worth
from speedlint.shapes.frameworks import lightning
from speedlint.source import is_name

_PROFILERS = ("advanced", "pytorch")
_PROFILER_CLASSES = ("AdvancedProfiler", "PyTorchProfiler")
_NOT_KNOWN = "not rewritten, since it is not known what the run is for"


def check(call: syntax.Call, script: Script) -> Iterator[Finding]:
    if not any(call is each for each in lightning.trainers(script)) or script.is_test:
        return
    found = list(_options(call, script))
    if found and lightning.fits(script, call):
        yield from found


def _options(call: syntax.Call, script: Script) -> Iterator[Finding]:
    quick = lightning.option(script, call, "fast_dev_run")
    if quick is True or (type(quick) is int and quick > 0):
        yield _shown(call, "fast_dev_run", "trains on a batch or a few", "take it out for the real run", script)
    if lightning.is_trial(script, call):
        return
    if lightning.option(script, call, "detect_anomaly") is True:
        yield _anomaly(call, script)
    yield from _profiler(call, script)
    if lightning.option(script, call, "deterministic") in (True, "warn"):
        what = "makes torch take slower, deterministic algorithms"
        yield _shown(call, "deterministic", what, "take it out where runs need not be repeatable bit for bit", script)
    if type(every := lightning.option(script, call, "log_every_n_steps")) is int and every == 1:
        what = "waits for the GPU in each step to log"
        yield _shown(call, "log_every_n_steps", what, "log every 50 steps, as by default", script)


def _anomaly(call: syntax.Call, script: Script) -> Finding:
    message = "`detect_anomaly=True` records and checks every operation of the training"
    arg = _argument(call, "detect_anomaly")
    if arg is None or script.text(arg.value) != "True":
        advice = "turn it off; not rewritten, since it is set elsewhere"
        return Finding(call, message, advice=advice, level=Level.WARNING, case="detect_anomaly")
    fix = Fix((edits.remove_argument(script.source, arg),), Risk.EXACT)
    return Finding(arg, message, fix, "take it out once the NaN is found", Level.WARNING, case="detect_anomaly")


def _profiler(call: syntax.Call, script: Script) -> Iterator[Finding]:
    given = script.argument(call, "profiler")
    if given is None:
        return
    told = lightning.option(script, call, "profiler")
    if told in _PROFILERS or (name := _made_by(given, script)).endswith(_PROFILER_CLASSES):
        yield _shown(call, "profiler", "profiles the whole training", "take it out for the real run", script, Level.WARNING)
    elif told == "simple" or name.endswith("SimpleProfiler"):
        yield _shown(call, "profiler", "times every hook of the training", "take it out for the real run", script)


def _made_by(given: syntax.BaseExpression, script: Script) -> str:
    made = [(place, node) for place, node in script.roles.origins(given) if isinstance(node, syntax.Call)]
    return (made[0][0].name(made[0][1].func) or "") if len(made) == 1 else ""


def _argument(call: syntax.Call, name: str) -> syntax.Arg | None:
    return next((arg for arg in call.args if is_name(arg.keyword, name)), None)


def _shown(call: syntax.Call, name: str, what: str, instead: str, script: Script, level: Level = Level.NOTE) -> Finding:
    arg = _argument(call, name)
    told = script.text(arg.value) if arg is not None else "..."
    return Finding(arg or call, f"`{name}={told}` {what}", advice=f"{instead}; {_NOT_KNOWN}", level=level, case=name)


RULE = Rule(
    "SPD812",
    on=syntax.Call,
    check=check,
    triggers=(b"Trainer(",),
    worth=Estimate(Worth.HIGH, "each operation is checked or recorded"),
)
