"""`torch.cuda.amp` and `torch.cpu.amp` are deprecated since torch 2.4 and warn at each call.

## What it does
Finds calls of `autocast`, `GradScaler`, `custom_fwd` and `custom_bwd` of the two deprecated modules. A fallback
for old releases, beside a branch that uses the new name or asks for the release, is left alone.

## Why it is slow
It is not, so this is a note: the spelling is going away, and each `autocast()` in the training step passes through the
warning machinery. Scripts that name their device can also be moved to another one.

## Example
```python
scaler = torch.cuda.amp.GradScaler()
with torch.cuda.amp.autocast(use_half):
    loss = model(batch)
```

## Use instead
```python
scaler = torch.amp.GradScaler("cuda")
with torch.amp.autocast("cuda", enabled=use_half):
    loss = model(batch)
```

## Fix safety
exact: the deprecated names call the new ones with these arguments. `autocast` needs torch 1.10, `GradScaler` 2.3 and
`custom_fwd` 2.4. The import line is changed where every use of what it binds can be; else it stays. Shown, not written,
where the import stands in a `try` or a branch, where arguments hide in `*args`, where the class is compared with
`isinstance`, and where the first argument is a string: the old names take no device, so that it lands in `init_scale` or
`enabled`.

## Sources
The deprecation warnings of torch 2.4 and the signatures of the releases from 1.13 to 2.13.

- [PyTorch: torch.amp](https://docs.pytorch.org/docs/stable/amp.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from speedlint.ask.script import Script
from speedlint.cures.amp_names import deprecated_name, is_fallback, modern_edits, modern_text
from speedlint.edits import CannotEdit
from speedlint.facts import syntax
from speedlint.rule import Estimate, Finding, Fix, Level, Risk, Rule, Worth
from speedlint.shapes import eras

_DEPRECATED_SINCE = (2, 4)


def check(node: syntax.Call | syntax.Decorator, script: Script) -> Iterator[Finding]:
    """Reports a call or a bare decorator of the deprecated modules."""
    if not eras.allows(script, _DEPRECATED_SINCE):
        return
    name = deprecated_name(script, node)
    if name is None or is_fallback(script, node):
        return
    what = node.func if isinstance(node, syntax.Call) else node.decorator
    spelled = script.text(what)
    message = f"`{spelled}` is deprecated since torch 2.4"
    if spelled != name:
        message = f"`{spelled}` is `{name}`, deprecated since torch 2.4"
    advice = f"write `{modern_text(name)}`"
    try:
        edits, since = modern_edits(script, node, name)
    except CannotEdit as why:
        yield Finding(node, message, advice=f"{advice}; not written because {why}", level=Level.NOTE)
        return
    yield Finding(node, message, fix=Fix(edits, Risk.EXACT, since), advice=advice, level=Level.NOTE)


RULE = Rule(
    "SPD104",
    on=(syntax.Call, syntax.Decorator),
    check=check,
    triggers=(b"cuda.amp", b"cuda import amp", b"cpu.amp", b"cpu import amp"),
    worth=Estimate(Worth.LOW, "it costs no time"),
)
