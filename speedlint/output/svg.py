"""Small charts as SVG: what the page of ``verify`` shows. Colours are the page's variables ``--a``, ``--b``, ``--line``."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

_WIDTH, _HEIGHT = 560, 220
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 12, 12, 30
_BINS = 28


def histogram(series: Sequence[Sequence[float]], name: Callable[[float], str]) -> str:
    """Two distributions over each other; the slowest 2% are left out of the axis."""
    ordered = sorted(value for each in series for value in each)
    low, high = ordered[0], ordered[max(0, math.ceil(len(ordered) * 0.98) - 1)]
    if high <= low:
        low, high = low * 0.95, low * 1.05 or 1.0
    counts = [_counted(each, low, high) for each in series]
    most = max(max(each) for each in counts) or 1.0
    scale = _Scale((low, high), (0.0, most))
    drawn = []
    for each, colour in zip(counts, ("--a", "--b"), strict=True):
        width = (high - low) / _BINS
        steps = [(low, 0.0)]
        for k, share in enumerate(each):
            steps += [(low + k * width, share), (low + (k + 1) * width, share)]
        steps.append((high, 0.0))
        points = " ".join(f"{scale.x(x):.1f},{scale.y(y):.1f}" for x, y in steps)
        drawn.append(f'<polygon points="{points}" fill="var({colour})" fill-opacity=".35" stroke="var({colour})"/>')
    return _chart(scale, drawn, [(x, name(x)) for x in scale.ticks_x()], [(y, f"{y:.0%}") for y in scale.ticks_y()])


def ratios(values: Sequence[float], mean: tuple[float, float, float] | None, band: tuple[float, float]) -> str:
    """Dots for pairs, their mean and its interval, and the band within which no difference counts."""
    every = [*values, *band, 1.0, *(mean or ())]
    low, high = min(every), max(every)
    room = (high - low) * 0.08 or 0.05
    scale = _Scale((0.0, len(values) + 1.0), (low - room, high + room))
    left, right = scale.x(0), scale.x(len(values) + 1)
    drawn = [
        f'<rect x="{left}" y="{scale.y(band[1]):.1f}" width="{right - left}" '
        f'height="{scale.y(band[0]) - scale.y(band[1]):.1f}" fill="var(--line)" fill-opacity=".6"/>'
    ]
    if mean is not None:
        drawn.append(
            f'<rect x="{left}" y="{scale.y(mean[2]):.1f}" width="{right - left}" '
            f'height="{max(1.0, scale.y(mean[0]) - scale.y(mean[2])):.1f}" fill="var(--b)" fill-opacity=".25"/>'
        )
        drawn.append(_line(left, scale.y(mean[1]), right, scale.y(mean[1]), "--b", 2))
    drawn += [
        f'<circle cx="{scale.x(k + 1):.1f}" cy="{scale.y(v):.1f}" r="4" fill="var(--b)"/>' for k, v in enumerate(values)
    ]
    marks = [(k + 1.0, str(k + 1)) for k in range(len(values)) if len(values) <= 12 or k % 2 == 0]
    return _chart(scale, drawn, marks, [(y, f"{y:.2f}x") for y in scale.ticks_y()])


def bars(values: Sequence[float], names: Sequence[str], most: float, mark: float | None) -> str:
    """Two bars over each other, and a line at a share of ``most``."""
    height, gap = 34, 14
    width = _WIDTH - 120
    drawn = []
    for k, (value, name, colour) in enumerate(zip(values, names, ("--a", "--b"), strict=True)):
        top = 8 + k * (height + gap)
        long = max(2.0, width * min(1.0, value / most))
        drawn.append(
            f'<rect x="0" y="{top}" width="{width}" height="{height}" rx="4" fill="var(--line)" fill-opacity=".5"/>'
        )
        drawn.append(f'<rect x="0" y="{top}" width="{long:.1f}" height="{height}" rx="4" fill="var({colour})"/>')
        drawn.append(f'<text x="{width + 10}" y="{top + height / 2 + 4}">{name}</text>')
    if mark is not None:
        drawn.append(_line(width * mark, 2, width * mark, 2 * (height + gap), "--bad", 2))
    return f'<svg viewBox="0 0 {_WIDTH} {2 * (height + gap)}" role="img">{"".join(drawn)}</svg>'


def curves(series: Sequence[Sequence[float]], envelope: Sequence[tuple[float, float]] | None) -> str:
    """Curves over each other by step, and a band that ends where they do."""
    finite = [v for each in series for v in each if math.isfinite(v)]
    finite += [v for pair in envelope or () for v in pair if math.isfinite(v)]
    if not finite:
        return "<p>No loss is a finite number.</p>"
    low, high = min(finite), max(finite)
    room = (high - low) * 0.06 or abs(low) * 0.1 or 1.0
    longest = max(max(map(len, series)), 2)
    scale = _Scale((1.0, float(longest)), (low - room, high + room))
    drawn = []
    if envelope:
        first = longest - len(envelope) + 1
        upper = [(first + k, pair[1]) for k, pair in enumerate(envelope)]
        lower = [(first + k, pair[0]) for k, pair in enumerate(envelope)]
        points = " ".join(f"{scale.x(x):.1f},{scale.y(y):.1f}" for x, y in (*upper, *reversed(lower)))
        drawn.append(f'<polygon points="{points}" fill="var(--a)" fill-opacity=".25"/>')
    for each, colour, width in zip(series, ("--a", "--b"), (4, 1.8), strict=True):
        for piece in _pieces(each):
            points = " ".join(f"{scale.x(k + 1):.1f},{scale.y(v):.1f}" for k, v in piece)
            stroke = f'stroke="var({colour})" stroke-width="{width}" stroke-linejoin="round"'
            drawn.append(f'<polyline points="{points}" fill="none" {stroke}/>')
    return _chart(scale, drawn, [(x, f"{x:.0f}") for x in scale.ticks_x()], [(y, f"{y:.3g}") for y in scale.ticks_y()])


def gains(names: Sequence[str], logs: Sequence[float]) -> str:
    """A bar for each fix: to the right where a step takes longer without it."""
    most = max(map(abs, logs)) or 1.0
    most = max(most, math.log(1.05))
    height, left = 26, 90
    middle, half = left + (_WIDTH - left - 70) / 2, (_WIDTH - left - 70) / 2
    drawn = []
    for k, (name, log) in enumerate(zip(names, logs, strict=True)):
        top, long = 4 + k * (height + 6), half * abs(log) / most
        start, colour = (middle, "--good") if log >= 0 else (middle - long, "--bad")
        drawn.append(
            f'<rect x="{start:.1f}" y="{top}" width="{max(1.0, long):.1f}" height="{height}" rx="3" fill="var({colour})"/>'
        )
        drawn.append(f'<text x="0" y="{top + 18}">{name}</text>')
        drawn.append(f'<text x="{_WIDTH - 60}" y="{top + 18}">{math.exp(log):.3f}x</text>')
    whole = len(names) * (height + 6) + 4
    drawn.append(_line(middle, 0, middle, whole, "--soft", 1))
    return f'<svg viewBox="0 0 {_WIDTH} {whole}" role="img">{"".join(drawn)}</svg>'


class _Scale:
    """From values to the drawing's coordinates."""

    def __init__(self, x: tuple[float, float], y: tuple[float, float]) -> None:
        self._x, self._y = x, y

    def x(self, value: float) -> float:
        """Where a value lies from left to right."""
        low, high = self._x
        share = (value - low) / (high - low) if high > low else 0.5
        return _LEFT + share * (_WIDTH - _LEFT - _RIGHT)

    def y(self, value: float) -> float:
        """Where a value lies from top to bottom."""
        low, high = self._y
        share = (value - low) / (high - low) if high > low else 0.5
        return _HEIGHT - _BOTTOM - share * (_HEIGHT - _TOP - _BOTTOM)

    def ticks_x(self) -> list[float]:
        """Round numbers within the horizontal range."""
        return _ticks(*self._x)

    def ticks_y(self) -> list[float]:
        """Round numbers within the vertical range."""
        return _ticks(*self._y)


def _ticks(low: float, high: float) -> list[float]:
    if not high > low:
        return [low]
    raw = (high - low) / 4
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * each for each in (1, 2, 5, 10) if power * each >= raw)
    first = math.ceil(low / step)
    return [k * step for k in range(first, math.floor(high / step) + 1)]


def _counted(values: Sequence[float], low: float, high: float) -> list[float]:
    counts = [0.0] * _BINS
    for value in values:
        if value <= high:
            counts[min(_BINS - 1, max(0, int((value - low) / (high - low) * _BINS)))] += 1 / len(values)
    return counts


def _pieces(values: Sequence[float]) -> list[list[tuple[int, float]]]:
    pieces: list[list[tuple[int, float]]] = [[]]
    for k, value in enumerate(values):
        if math.isfinite(value):
            pieces[-1].append((k, value))
        elif pieces[-1]:
            pieces.append([])
    return [piece for piece in pieces if piece]


def _chart(scale: _Scale, drawn: Sequence[str], across: Sequence[tuple[float, str]], up: Sequence[tuple[float, str]]) -> str:
    parts = []
    for value, name in up:
        y = scale.y(value)
        parts.append(_line(_LEFT, y, _WIDTH - _RIGHT, y, "--line", 1))
        parts.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{name}</text>')
    for value, name in across:
        parts.append(f'<text x="{scale.x(value):.1f}" y="{_HEIGHT - 8}" text-anchor="middle">{name}</text>')
    return f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img">{"".join(parts)}{"".join(drawn)}</svg>'


def _line(x1: float, y1: float, x2: float, y2: float, colour: str, width: float) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="var({colour})" stroke-width="{width}"/>'
