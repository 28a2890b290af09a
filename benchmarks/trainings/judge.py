"""Whether what a fixed training prints and writes is what its fixes declare."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from itertools import zip_longest

from speedlint.rule import Risk

_NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|nan\b|inf\b)")
_HALF_TYPE = re.compile(r"\bb?float16\b")
_PRINTED_TYPE = re.compile(r",\s+dtype=torch\.b?float16(?=\))")
"""How a tensor in half precision is printed; one of float32 does not name its type."""
_BLANKS = re.compile(r"\s+")
STREAM = frozenset("SPD201 SPD203 SPD204 SPD211 SPD308 SPD606".split())
"""Rules whose fixes may draw other random numbers: those of workers, of loaders that keep them, of the GPU."""
HALF = frozenset("SPD101 SPD102 SPD107 SPD108".split())
"""Rules whose fixes change the precision, or the steps that a loss scaler takes."""
ROUNDED = frozenset("SPD105 SPD310 SPD401 SPD402 SPD403 SPD502 SPD503 SPD601 SPD604".split())
"""Rules whose fixes make the training itself round otherwise."""
SWITCHED = frozenset({"SPD108"})
"""Rules whose fixes turn on what the script has, and with it the types of its outputs."""
CHANGED = frozenset("SPD103 SPD501".split())
"""Rules whose fixes, where they are `behavior`, train otherwise."""
_SHOWN = frozenset("SPD301 SPD303 SPD701 SPD702 SPD703 SPD704 SPD705 SPD707".split())
"""Rules whose fixes, where they are `behavior`, show less of the same training."""
_CLOSE, _ABSOLUTE = 2e-4, 2e-5
"""Relative and absolute distance of numbers that differ by the rounding of single precision, in a few steps of training."""
_WIDER = 4.0
"""By how many times the spread of the original's seeds a number may lie outside of them."""
_LEAST_SPREAD, _NOISE = 0.05, 0.02
"""The spread of a number, relative to it and absolute, that another random stream or half precision may bring: Adam moves a
weight whose gradient is nothing but rounding by its learning rate in each step."""

Others = Callable[[int], Sequence[str]]
"""What the original prints with as many other random numbers; asked for where it matters, since it takes runs."""
_COINCIDENCE = 0.2
"""How far, relatively, from what all seeds agree on a number may be: ten barely trained networks may have one accuracy. The
same where one run alone prints the same text: it tells no more."""
_FEW = 3
"""Runs that print the same text below which those that print as many numbers are compared."""
_SKIPPED = 2
"""How many steps of a training a loss scaler skips at first, while it finds its scale."""
_SEEDS = (3, 9, 27)
"""With how many of them it is compared, and with how many where these say that it is not as it should be: nine may miss what
one training in ten does, whose first steps are large."""


def difference(before: str, after: str, codes: Collection[str], risk: Risk, others: Others) -> str:
    """What is not as the fixes declare, in a few words; empty where all is."""
    if before == after or (risk is Risk.BEHAVIOR and not CHANGED.isdisjoint(codes)):
        return ""
    if risk is Risk.EXACT:
        return "exact, but " + _first(before, after)
    if not SWITCHED.isdisjoint(codes):
        before, after = (_HALF_TYPE.sub("float32", _PRINTED_TYPE.sub("", each)) for each in (before, after))
    is_less = not _SHOWN.isdisjoint(codes) and risk is Risk.BEHAVIOR
    if is_less:
        before, after = _last(before), _last(after)
    trains_otherwise = not (STREAM | HALF | ROUNDED).isdisjoint(codes)
    if not trains_otherwise and _last(before) != _last(after):
        return "the same training, but " + _first(_last(before), _last(after))
    if _text(before) == _text(after):
        far = [(x, y) for x, y in zip(_numbers(before), _numbers(after), strict=True) if not _is_close(x, y)]
        if not far or not trains_otherwise:
            return f"{len(far)} numbers differ, such as {far[0][0]} and {far[0][1]}" if far else ""
    elif not trains_otherwise:
        return "other text: " + _first(_text(before), _text(after))
    what = ""
    for count in _SEEDS:
        what = _among([before, *others(count)], after, is_less, 0 if HALF.isdisjoint(codes) else _SKIPPED)
        if not what:
            break
    return what


def _among(known: Sequence[str], after: str, is_less: bool, slack: int) -> str:
    """Whether the output could be the original's with other random numbers: what these do not change must not change."""
    if is_less:
        known = [_last(each) for each in known]
    alike = [each for each in known if _text(each) == _text(after)]
    if not alike:
        return "" if len({_text(each) for each in known}) > 1 else "other text: " + _first(_text(known[0]), _text(after))
    if len(alike) < _FEW:  # a line as long as a number says makes nearly each text another one
        alike = [each for each in known if len(_numbers(each)) == len(_numbers(after))]
    for values in zip(_numbers(after), *map(_numbers, alike), strict=True):
        fixed, *originals = map(float, values)
        least, most = min(originals), max(originals)
        if fixed != fixed or originals[0] != originals[0] or (slack and abs(fixed) == float("inf")):
            continue  # a step that a loss scaler skips has gradients that overflow
        if least == most:
            if abs(fixed - least) > max(slack, _COINCIDENCE * abs(least), _NOISE):
                return f"{values[0]} is {values[1]} whatever the random numbers"
            continue
        spread = max((most - least) * _WIDER, _LEAST_SPREAD * max(abs(least), abs(most)))
        if not least - spread - _NOISE <= fixed <= most + spread + _NOISE:
            return f"{values[0]} is far from {least}..{most}"
    return ""


def _text(output: str) -> str:
    """What is printed beside the numbers. How far apart they stand follows from their signs, where a tensor is printed."""
    return _BLANKS.sub(" ", _NUMBER.sub(" # ", output))


def _numbers(output: str) -> list[str]:
    return _NUMBER.findall(output)


def _is_close(first: str, second: str) -> bool:
    if first == second:
        return True
    x, y = float(first), float(second)
    return abs(x - y) <= _CLOSE * max(abs(x), abs(y)) + _ABSOLUTE or (x != x and y != y)


def _last(output: str) -> str:
    """The weights in the end, which are the training's."""
    return "\n".join(line for line in output.splitlines() if line.startswith("[weights.pt]"))


def _first(before: str, after: str) -> str:
    pairs = zip_longest(before.splitlines(), after.splitlines(), fillvalue="nothing")
    return next((f"`{x[:160]}` became `{y[:160]}`" for x, y in pairs if x != y), "the output differs")
