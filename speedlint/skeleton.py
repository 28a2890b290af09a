"""The skeleton of a new rule: a rule file and a fixture that pass the tests of all rules as they are, to be written over."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from speedlint.errors import UserError
from speedlint.families import FAMILIES
from speedlint.registry import Registry

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_RULE = '''"""TODO: one sentence that names the call or option and says what it costs.

## What it does
TODO: what is found, and what is left alone.

## Why it is slow
TODO: what the machine does meanwhile.

## Example
```python
loss.slow_call()
```

## Use instead
```python
loss
```

## Fix safety
TODO: what a fix may change, and what must be proven before it is written. None is written yet.

## Sources
TODO: who measured it, or where torch's documentation says so.

- [TODO: the title of the page](https://docs.pytorch.org/)
"""

from __future__ import annotations

from collections.abc import Iterator

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.rule import Estimate, Finding, Rule, Worth
from speedlint.torch.words import Frequency


def check(call: syntax.Call, script: Script) -> Iterator[Finding]:
    match call:
        case syntax.Call(func=syntax.Attribute(attr=syntax.Name("slow_call"))):
            if script.frequency(call) is Frequency.STEP:
                message = f"`{script.text(call)}` TODO in every training step"
                yield Finding(call, message, advice="TODO: what to write instead, and why it is not written")


RULE = Rule(
    "@CODE@",
    on=syntax.Call,
    check=check,
    triggers=(b".slow_call(",),
    worth=Estimate(Worth.MEDIUM, "TODO: one clause that says what this share of a step rests on"),
)
'''
_FIXTURE = '''"""What @CODE@ finds, and below it what only looks like that."""

import torch
from torch import nn
from torch.utils.data import DataLoader


def train(rows):
    model = nn.Linear(4, 2).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for features, target in DataLoader(rows, batch_size=16):
        loss = nn.functional.cross_entropy(model(features.cuda()), target.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loss.slow_call()  # @CODE@
    loss.slow_call()


train([])
'''


@dataclass(frozen=True, slots=True)
class Skeleton:
    """The code and the files of a new rule."""

    code: str
    rule: Path
    fixture: Path


def write(root: Path, name: str, family: str, registry: Registry) -> Skeleton:
    """Writes the skeleton of a rule into a clone of speedlint at ``root``, over nothing that exists. Raises UserError."""
    name = name.replace("_", "-")
    if not _NAME.fullmatch(name):
        raise UserError(f"`{name}` is no name for a rule; use lower-case words with hyphens, such as `item-in-loop`")
    file = f"{name.replace('-', '_')}.py"
    made = Skeleton(_next_code(family, registry), root / "rules" / family / file, root / "fixtures" / "rules" / file)
    _refuse_existing(name, made, registry)
    _create(made.rule, _RULE.replace("@CODE@", made.code))
    _create(made.fixture, _FIXTURE.replace("@CODE@", made.code))
    return made


def _next_code(family: str, registry: Registry) -> str:
    """The code after the highest one: one that a rule gave up is not given again."""
    prefix = FAMILIES[family].prefix
    taken = [int(code.removeprefix(prefix)) for code in registry.by_code if code.startswith(prefix)]
    number = max(taken, default=0) + 1
    if number > 99:
        raise UserError(f"the family `{family}` has no code left after {prefix}99; begin a new family")
    return f"{prefix}{number:02}"


def _refuse_existing(name: str, made: Skeleton, registry: Registry) -> None:
    known = next((rule for rule in registry.rules if rule.name == name), None)
    if known is not None:
        raise UserError(f"there is a rule `{name}` already, {known.code}; choose another name")
    for path in (made.rule, made.fixture, made.fixture.with_suffix(".fixed")):
        if path.exists():
            raise UserError(f"{path}: exists already; choose another name, or remove it")
        if not path.parent.is_dir():
            raise UserError(f"{path.parent}: there is no such folder; rules are added in a clone of speedlint's repository")


def _create(path: Path, text: str) -> None:
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise UserError(f"{path}: cannot be written ({error.strerror})") from error
