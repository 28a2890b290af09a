"""`.item()`, `float()` or `int()` of a device tensor waits for the GPU in every step.

## What it does
Finds reads of one number from a tensor on the GPU, `x.item()`, `float(x)`, `int(x)`, `bool(x)`, in scripts for torch before
0.5 also `loss.data[0]`, in loops of training or evaluation steps and in the functions they call. Actions for an environment,
tests that end the loop, lengths and positions need the number at once and are left alone; so are tensors that never left the
host. What lay on the host before it was copied is told also where a length needs it, `range(lengths.max())` and
`x[:, :lengths.max()]` too, and so is what Python compares number by number, `max(lengths)`.

## Why it is slow
The GPU works through a queue while Python runs ahead and fills it. To hand over a number, Python stops until the GPU has
done all that was queued before. The queue runs dry, and the GPU idles while the next step is prepared.

## Example
```python
import torch


def train(model, loader, optimizer, criterion):
    device = torch.device("cuda")
    total = 0.0
    for images, labels in loader:
        loss = criterion(model(images.to(device)), labels.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(total / len(loader))
```

## Use instead
```python
import torch


def train(model, loader, optimizer, criterion):
    device = torch.device("cuda")
    total = 0.0
    for images, labels in loader:
        loss = criterion(model(images.to(device)), labels.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.detach()
    print(float(total) / len(loader))
```

## Fix safety
Numeric: a sum is made in single precision on the GPU where Python summed in double, so that what is logged rounds
differently, and what is computed from it, such as a learning rate; all else is the same bit for bit. It is written only
where the sum, list or meter starts in the same function and every place that reads it is seen and runs outside the steps or
only now and then; each such place converts it, or one line below the loop where several follow, and only where no other
line of the step that stays as it is waits for the same tensor: nothing would be gained. Where half precision is in use the
summands are made `float()` first, unless they are so already. Turns that compute on several GPUs are shown, and what lies
on the host or is no tensor in some of them. A list keeps its numbers on the GPU until the loop is over, copies of those
that something else may hold or change. An entry of a dict that is added to is converted when the loop is over: the dict may
then go anywhere, but until then only entries with keys that are written out are taken of it. Objects of a class whose one
method adds `float(value)` to each of its sums keep tensors and convert a sum where it is read, if every object is seen from
its making on. What a function returns stays on the GPU only if everyone who calls it is seen, and adds it up, gathers it,
or converts it now and then. It is not written where the program counts on what only Python's numbers do: where the step
goes on after an error that the read or a division may raise, where factors or differences leave too little of single
precision (a variance made of squares), or where a text or another file may ask for the function or the sum.

It is worth little where the step is long beside one wait: over volumes, boxes, seconds of sound or large batches of large
images, with a library's transformer, or under anomaly detection. It is a note where an evaluation follows in each turn.

## Sources
PyTorch's performance tuning guide: avoid unnecessary CPU-GPU synchronisation; it names `.item()` and printing a tensor.

- [PyTorch: Performance Tuning Guide](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from speedlint.ask.script import Script
from speedlint.cures.deferral import keep_on_device
from speedlint.cures.gains import check_gain, check_gain_of_display, throttled
from speedlint.edits import CannotEdit
from speedlint.facts import syntax
from speedlint.rule import Estimate, Finding, Fix, Level, Risk, Rule, Worth
from speedlint.shapes import worth
from speedlint.shapes.frameworks import lightning
from speedlint.shapes.sync import displays, implied, reads, returned
from speedlint.shapes.sync.companions import awaited_anyway
from speedlint.torch.words import Frequency

_EACH = Estimate(Worth.MEDIUM, "one wait for each number, of some 15 microseconds")


def check(call: syntax.Call | syntax.Subscript, script: Script) -> Iterator[Finding]:
    if (read := implied.read(script, call)) is not None:
        yield from _implied(call, read, script)
        return
    if isinstance(call, syntax.Subscript):
        yield from _of_index(call, script)
        return
    tensor = reads.avoidable_scalar(script, call)
    if tensor is not None and lightning.log_around(script, call) is None:
        message = f"`{reads.shown(script, call)}` waits for the GPU {reads.often(script, call)}"
        yield _finding(call, script, tensor, message)
    elif (lain := returned.needed(script, call)) is not None and reads.scalar(script, call) is not None:
        if awaited_anyway(script, call) is not None:
            return
        message = (
            f"`{reads.shown(script, call)}` waits for the GPU {reads.often(script, call)}, for what lay on the host before"
        )
        yield Finding(call, message, advice=f"take it from {lain.shown(script)} before that is copied to the GPU")
    elif reads.is_scalar_of_unseen(script, call) and lightning.log_around(script, call) is None:
        yield from _of_unseen(call, script)


def _of_unseen(call: syntax.Call, script: Script) -> Iterator[Finding]:
    """``info["losses"]["total"].item()``, of what comes out of sight: tensors have the method, and numbers of NumPy's."""
    if awaited_anyway(script, call) is None:
        message = f"`{reads.shown(script, call)}` waits for the GPU {reads.often(script, call)}"
        advice = "read it every 50 steps or after the loop; not rewritten, since what gives it is out of sight"
        yield Finding(call, message, advice=advice)


def _implied(node: syntax.Call | syntax.Subscript, read: implied.Implied, script: Script) -> Iterator[Finding]:
    """A number that Python or torch asks a tensor for by itself."""
    if not implied.is_needless(script, node, read):
        return
    lain, often = returned.before(script, read.tensor), reads.often(script, node)
    shown, text = reads.shown(script, node), reads.shown(script, read.tensor)
    message = f"`{shown}` reads `{text}` and waits for the GPU {often}"
    advice, estimate = "", None
    if read.is_each:
        message = f"`{shown}` compares the numbers of `{text}` one by one, and waits for the GPU at each, {often}"
        advice, estimate = "let torch compare them, which waits once at most", worth.at(_EACH, script.frequency(node))
    elif awaited_anyway(script, node) is not None:
        return
    elif read.is_place:
        advice = "copy all of them to the host at once, before the loop over them, by `.tolist()`"
    if lain is not None:
        message = f"{message}, for what lay on the host before"
        advice = f"take it from {lain.shown(script)} before that is copied to the GPU"
    level = Level.NOTE if reads.how_often(script, node) is Frequency.THROTTLED else None
    yield Finding(
        node, message, advice=f"{advice}; not rewritten, since what comes of it is a tensor", level=level, worth=estimate
    )


def _of_index(read: syntax.Subscript, script: Script) -> Iterator[Finding]:
    """``loss.data[0]``, which gave the number before there was ``.item()``."""
    tensor = reads.avoidable_index(script, read)
    if tensor is None:
        return
    message = f"`{reads.shown(script, read)}` waits for the GPU {reads.often(script, read)}"
    advice = (
        f"keep `{reads.shown(script, tensor)}.data` on the GPU and read it with `.item()` every {displays.PERIOD} steps "
    )
    advice += "or after the loop; not rewritten, since `[0]` only runs on releases up to torch 0.4"
    if (in_vain := awaited_anyway(script, read)) is not None:
        yield Finding(read, message, advice=in_vain, level=Level.NOTE, worth=worth.NOTHING)
    elif reads.how_often(script, read) is Frequency.THROTTLED:
        yield Finding(read, message, advice=advice, level=Level.NOTE)
    else:
        yield Finding(read, message, advice=advice)


def _finding(call: syntax.Call, script: Script, tensor: syntax.BaseExpression, message: str) -> Finding:
    if reads.how_often(script, call) is Frequency.THROTTLED:
        advice = "read it less often if it shows in a profile; there is nothing to rewrite"
        return Finding(call, message, advice=advice, level=Level.NOTE)
    if (in_vain := awaited_anyway(script, call)) is not None:
        return Finding(call, message, advice=in_vain, level=Level.NOTE, worth=worth.NOTHING)
    try:
        if (clause := reads.why_needed(script, call)) is not None:
            raise CannotEdit(clause)
        edits = keep_on_device(script, call, tensor)
        check_gain(script, call, tensor)
    except CannotEdit as reason:
        return _shown(call, script, tensor, message, reason)
    return Finding(
        call, message, Fix(edits, Risk.NUMERIC), "add up `.detach()` on the GPU and convert it where the result is read"
    )


def _shown(call: syntax.Call, script: Script, tensor: syntax.BaseExpression, message: str, reason: CannotEdit) -> Finding:
    display = displays.display_around(script, call)
    if display is not None:
        advice = f"show it every {displays.PERIOD} steps"
        try:
            if (clause := reads.why_needed(script, call)) is not None:
                raise CannotEdit(clause)
            check_gain_of_display(script, display, tensor)
            return Finding(call, message, Fix(throttled(script, display, _read_by), Risk.BEHAVIOR), advice)
        except CannotEdit as other:
            return Finding(call, message, advice=f"{advice}; not rewritten, since {other}")
    kept = reads.shown(script, _undetached(reads.before_copies(script, tensor)))
    advice = f"keep `{kept}` on the GPU with `.detach()` and read it every {displays.PERIOD} steps or after the loop"
    return Finding(call, message, advice=f"{advice}; not rewritten, since {reason}")


def _read_by(script: Script, display: syntax.Call | syntax.Assign) -> Iterator[syntax.BaseExpression]:
    """The tensors whose numbers a display is handed."""
    for call in script.source.inside(display, syntax.Call):
        tensor = reads.avoidable_scalar(script, call)
        if tensor is not None:
            yield tensor


def _undetached(tensor: syntax.BaseExpression) -> syntax.BaseExpression:
    match tensor:
        case syntax.Call(func=syntax.Attribute(value=inner, attr=syntax.Name(value="detach"))):
            return inner
    return tensor


RULE = Rule(
    "SPD301",
    on=(syntax.Call, syntax.Subscript),
    check=check,
    triggers=(b".item", b"float(", b"int(", b"bool(", b"[", b"max(", b"min(", b"sorted("),
    worth=worth.WAIT,
    cause=worth.one_wait,
    often=True,
    on_gpu=True,
)
