"""Trainings that are composed from parts, run before and after their fixes: none may break.

    python benchmarks/differential.py [--count 300] [--seed 0] [--jobs 2] [--only N] [--keep DIR] [--gpu emulated]
        [--json FILE]

A seeded generator composes small trainings from datasets, transforms, networks, losses, loops, logs, metrics, optimizers,
precisions and habits (``benchmarks/trainings/``). Each is run as it is, with all fixes up to each risk, with those of each
rule alone, and with each fix alone: on an emulated GPU (autocast's own lists of operations, a real loss scaler, errors for
what has no kernel in half precision); all together on the CPU too, and, where they bring workers, with workers that begin
with nothing. Fixes that are `exact` must leave every printed and written number as it was; `numeric` ones may round, or draw
other random numbers: what these do not change must not change; `behavior` ones must not stop the training, nor change it
where they only show less.

It prints each training that breaks with how to see it again, and how many fixes of each rule were written and refused. The
exit status is 1 if one breaks. ``--only N`` runs the training of one seed; ``--keep DIR`` writes the files there;
``--gpu real`` runs all on this machine's GPU instead.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
import traceback
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.trainings import execute, fixes, judge
from benchmarks.trainings.compose import Training, compose
from speedlint.registry import Registry

LOADERS = frozenset("SPD201 SPD203 SPD211".split())
"""Rules whose fixes change what workers there are."""
_RECURSION = 12_000
"""Frames of Python: what `speedlint` needs for a deep script, in a process that runs it as a library."""


def examine(training: Training, registry: Registry, keep: Path | None = None, real: bool = False) -> dict[str, Any]:
    """Runs a training before and after its fixes, on a ``real`` GPU or as the emulated one allows; what is wrong stands
    under ``failures``."""
    original = {name: text.encode() for name, text in training.files.items()}
    fixed = fixes.fixed(original, training.amp, registry)
    if keep is not None:
        _write(keep / str(training.seed), original, fixed)
    failures = [{"fix": "", "what": what} for what in fixed.problems]
    runs = 0
    on_gpu = execute.Way(gpu=True, real=real)
    ways = [on_gpu] if training.needs_cuda or real else [execute.Way(), on_gpu]
    spawned = [replace(ways[0], spawn=True)] if training.is_guarded else []
    for way in (*ways, *spawned):
        chosen = [each for each in fixed.variants if way.gpu or not each.is_alone]
        if way.spawn:
            chosen = [each for each in fixed.variants if not LOADERS.isdisjoint(each.codes)]
        if not chosen and way is not ways[-1]:
            continue
        before = execute.execute(original, way)
        runs += 1
        if before.status:
            if not way.spawn:
                failures.append({"fix": "", "what": f"{_name(way)}: the original stops: {before.last}"})
            continue
        others: list[str] = []
        for variant in chosen:
            after = execute.execute(variant.files, way)
            runs += 1
            if after.status:
                failures.append({"fix": variant.name, "what": f"{_name(way)}: stops: {after.last}"})
                continue

            def with_other_seeds(count: int, way: execute.Way = way, others: list[str] = others) -> list[str]:
                while len(others) < count:
                    ran = execute.execute(original, replace(way, seed=len(others) + 1))
                    others.append(ran.output if ran.status == 0 else "")
                return [each for each in others if each]

            what = judge.difference(before.output, after.output, variant.codes, variant.risk, with_other_seeds)
            if what and execute.execute(original, way).output != before.output:
                what = "the original is not the same twice: " + what
            if what:
                failures.append({"fix": variant.name, "what": f"{_name(way)}: {what}"})
    return {
        "seed": training.seed,
        "parts": training.parts,
        "written": dict(fixed.written),
        "refused": dict(fixed.refused),
        "variants": len(fixed.variants),
        "runs": runs,
        "failures": failures,
    }


def _name(way: execute.Way) -> str:
    return " ".join(word for word, used in (("GPU", way.gpu), ("CPU", not way.gpu), ("spawn", way.spawn)) if used)


def _write(folder: Path, original: fixes.Files, fixed: fixes.Fixed) -> None:
    named = [
        ("original", original),
        *((each.name.replace(" ", "_").replace(":", "_"), each.files) for each in fixed.variants),
    ]
    for name, files in named:
        (folder / name).mkdir(parents=True, exist_ok=True)
        for path, data in files.items():
            (folder / name / path).write_bytes(data)


def run(seeds: range, jobs: int, registry: Registry, keep: Path | None = None, real: bool = False) -> list[dict[str, Any]]:
    """Examines the training of each seed in a fork of this process; prints what breaks."""
    waiting, running, rows = list(seeds), dict[int, tuple[int, int]](), list[dict[str, Any]]()
    while waiting or running:
        while waiting and len(running) < jobs:
            seed = waiting.pop(0)
            reader, writer = os.pipe()
            sys.stdout.flush()
            pid = os.fork()
            if pid == 0:
                _examined(seed, writer, registry, keep, real)
            os.close(writer)
            running[pid] = (seed, reader)
        pid, _ = os.wait()
        if pid not in running:
            continue
        seed, reader = running.pop(pid)
        with os.fdopen(reader, encoding="utf-8") as pipe:
            text = pipe.read()
        crashed = {"seed": seed, "failures": [{"fix": "", "what": "the run itself stopped"}]}
        row: dict[str, Any] = json.loads(text) if text else crashed
        rows.append(row)
        for failure in row["failures"]:
            again = f"python benchmarks/differential.py --only {seed} --keep DIR"
            print(f"{seed}: {failure['fix'] or 'training'}: {failure['what']}\n    {again}", flush=True)
    return sorted(rows, key=lambda row: int(row["seed"]))


def _examined(seed: int, writer: int, registry: Registry, keep: Path | None, real: bool) -> None:
    status = 1
    try:
        row = examine(compose(seed), registry, keep, real)
        with os.fdopen(writer, "w", encoding="utf-8") as pipe:
            json.dump(row, pipe)
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def _gpu(which: str) -> str:
    """The GPU's name, asked for when all has run: a process that has asked torch cannot be forked for the GPU."""
    return torch.cuda.get_device_name() if which == "real" else which


def main() -> int:
    """Prints what breaks, and what was exercised."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0, help="the first training's")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", type=int, help="the training of this seed")
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--gpu", choices=("emulated", "real"), default="emulated")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    sys.setrecursionlimit(_RECURSION)
    began = time.monotonic()
    registry = Registry.load()
    execute.prepare()
    seeds = range(options.seed, options.seed + options.count)
    if options.only is not None:
        seeds = range(options.only, options.only + 1)
    rows = run(seeds, options.jobs, registry, options.keep, options.gpu == "real")
    written: Counter[str] = sum((Counter(row.get("written", {})) for row in rows), Counter())
    refused: Counter[str] = sum((Counter(row.get("refused", {})) for row in rows), Counter())
    broken = [row for row in rows if row["failures"]]
    for code in sorted({*written, *refused}):
        print(f"{code} {written[code]:5} written {refused[code]:5} refused")
    variants, runs = (sum(row.get(word, 0) for row in rows) for word in ("variants", "runs"))
    print(
        f"{len(rows)} trainings, {sum(written.values())} fixes, {variants} variants, {runs} runs and more, "
        f"{time.monotonic() - began:.0f} s: {len(broken)} broken"
    )
    if options.json:
        result = {
            "machine": {"python": platform.python_version(), "cores": os.cpu_count(), "gpu": _gpu(options.gpu)},
            "seeds": [seeds.start, seeds.stop],
            "trainings": len(rows),
            "variants": variants,
            "runs": runs,
            "written": dict(sorted(written.items())),
            "refused": dict(sorted(refused.items())),
            "broken": [{"seed": row["seed"], "failures": row["failures"]} for row in broken],
        }
        options.json.write_text(json.dumps(result, indent=1) + "\n")
    return int(bool(broken))


if __name__ == "__main__":
    sys.exit(main())
