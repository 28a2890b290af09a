"""Trainings from parts: the same seed makes the same files."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass

from benchmarks.trainings import records, steps
from benchmarks.trainings.choice import OPEN_STATE, Choice, Pass
from benchmarks.trainings.part import Part

_SHARED = re.compile(r"\$(\w+)")
_DEFINED = re.compile(r"^(?:class|def) (\w+)|^([A-Z_]+) = ", re.MULTILINE)
_STANDARD = (
    *(f"import {name}" for name in "copy functools itertools json math os pickle statistics struct".split()),
    "from decimal import Decimal",
    "import numpy as np",
    "import torch",
)
_NUMERIC = frozenset("mean end share rows peak least best ones n diagonal total size".split())
"""Names of what a pass returns that are numbers."""
_ERRORS = "(ValueError, TypeError, RuntimeError, FloatingPointError)"
_WEIGHTS = "torch.save($model.state_dict(), 'weights.pt')"
"""What every training ends with, so that two of them can be compared."""


@dataclass
class Training:
    """A composed training.

    Attributes:
        seed: what it was drawn with.
        files: the text of each file; ``main.py`` is the script.
        parts: the names of what it is made of.
        needs_cuda: whether it stops on a machine without a GPU.
        is_guarded: whether a worker that imports the script does not run it.
        amp: the half precision that fixes are to bring in.
    """

    seed: int
    files: dict[str, str]
    parts: list[str]
    needs_cuda: bool
    is_guarded: bool
    amp: str


def compose(seed: int) -> Training:
    """The training of a seed."""
    return _Composer(seed).training()


def _text(*lines: str) -> str:
    return "\n".join(line for line in lines if line)


def _indent(text: str, by: int = 1) -> str:
    return textwrap.indent(text, "    " * by)


class _Composer(Choice):
    def training(self) -> Training:
        self._choose()
        self._device()
        self._data()
        self._network()
        self._record()
        self._beside()
        files = self._files()
        needs_cuda = self.device_kind in ("hard", "cuda_calls")
        return Training(
            self.seed, files, self.parts, needs_cuda, "if __name__" in files["main.py"], self.draw.choice(("fp16", "bf16"))
        )

    def _unpack(self, loader: str) -> tuple[str, str]:
        """The head of a loop over a loader, and the lines that put its batch on the device."""
        draw, form = self.draw, self.data.form
        copied = draw.choice((".to($device)", ".to($device)", ".to($device, non_blocking=True)"))
        if self.device_kind == "cuda_calls":
            copied = draw.choice((".cuda()", ".cuda(non_blocking=True)"))
        double = ".double()" if self.precision == "double" and self.mode != "tokens" else ""
        if form == "dict":
            moved = f'x, y = batch["x"]{copied}{double}, batch["y"]{copied}'
            if self.chance(0.3):
                moved = (
                    f'batch = {{key: value{copied} for key, value in batch.items()}}\nx, y = batch["x"]{double}, batch["y"]'
                )
            return f"for step, batch in enumerate({loader}):", moved
        names = "x, y, rows" if form == "triple" else "x, y"
        moved = draw.choice((f"x, y = x{copied}{double}, y{copied}", f"x = x{copied}{double}\ny = y{copied}"))
        return f"for step, ({names}) in enumerate({loader}):", moved

    def _forward(self) -> str:
        forward = _text(self.net.call, self.loss.call)
        enabled = "" if self.device_kind in ("hard", "cuda_calls") else ", enabled=torch.cuda.is_available()"
        context = {
            "autocast": f"torch.autocast('cuda', dtype=torch.float16{enabled})",
            "autocast_scaler": f"torch.autocast(device_type='cuda', dtype=torch.float16{enabled})",
            "old_autocast_scaler": f"torch.cuda.amp.autocast({enabled.removeprefix(', ')})",
            "bf16": f"torch.autocast('cuda', dtype=torch.bfloat16{enabled})",
            "bf16_scaler": f"torch.autocast('cuda', dtype=torch.bfloat16{enabled})",
            "switch": "torch.autocast('cuda', dtype=torch.float16, enabled=USE_AMP)",
        }.get(self.precision)
        return f"with {context}:\n{_indent(forward)}" if context else forward

    def _update(self) -> tuple[str, str]:
        """The lines of a step up to the loss, and those from the backward pass to the changed weights."""
        draw = self.draw
        clear = draw.choice(steps.CLEARS)
        if self.core:
            text = self.core.step.replace("CLEAR", clear)
            indented = re.sub(r"^( *)FORWARD$", lambda found: _indent(self._forward(), len(found[1]) // 4), text, flags=re.M)
            return "", indented
        scaled = self.precision in ("autocast_scaler", "old_autocast_scaler", "bf16_scaler", "switch")
        clip = draw.choice(steps.CLIPS) if self.chance(0.3) else ""
        read = draw.choice(steps.READS_OF_GRADIENTS) if self.chance(0.2) else ""
        unscale = "$scaler.unscale_($optimizer)" if scaled and (clip or read) and self.chance(0.7) else ""
        backward = "$scaler.scale(loss).backward()" if scaled else "loss.backward()"
        steps_ = "$scaler.step($optimizer)\n$scaler.update()" if scaled else "$optimizer.step()"
        self.parts += [name for name, used in (("clip", clip), ("reads gradients", read)) if used]
        if self.chance(0.2) and not self.data.is_iterable:
            self.parts.append("accumulates")
            flush = draw.choice(("(step + 1) % 2 == 0", "(step + 1) % 2 == 0 or step + 1 == len($train_loader)"))
            inside = _indent(_text(unscale, clip, steps_, clear))
            return self._forward(), _text(
                backward.replace("loss", "(loss / 2)") if not scaled else backward, f"if {flush}:\n{inside}"
            )
        place = draw.choice(("first", "middle", "last"))
        first = clear if place == "first" else ""
        middle = clear if place == "middle" else ""
        last = clear if place == "last" else ""
        scheduler = "$scheduler.step()" if self.scheduler and self.scheduler[1] == "step" else ""
        return _text(first, self._forward()), _text(middle, backward, unscale, clip, read, steps_, last, scheduler)

    def _train(self) -> str:
        """The pass of training, from what it begins with to what it leaves."""
        put = self.training_pass
        head, moved = self._unpack("$train_loader")
        forward, update = self._update()
        early, late = ("", _text(*put.early, *put.late)) if self.core else (_text(*put.early), _text(*put.late))
        if self.layout == "shared":
            update = f"if training:\n{_indent(update)}"
            head = head.replace("$train_loader", "loader")
        body = _text(moved, forward, early, update, late)
        mode = "$model.train(training)" if self.layout == "shared" else "$model.train()"
        text = _text(mode, *put.start, head, _indent(body), *put.end)
        loader = "loader" if self.layout == "shared" else "$train_loader"
        put.returns = [(name, value.replace("$loader", loader)) for name, value in put.returns]
        return text.replace("$loader", loader)

    def _evaluate(self, loader: str) -> tuple[str, str]:
        """What switches gradients off for a function (or nothing), and the pass of evaluation."""
        put = self.evaluation
        head, moved = self._unpack(loader)
        if self.data.is_iterable and self.chance(0.5):
            head = head.replace(loader, f"list({loader})")
        how = self.draw.choice(("decorator", "with", "with", "none", "none", "none", "switch", "inference"))
        self.parts.append(f"evaluates:{how}")
        body = _text(moved, self._forward_plain(), *put.early, *put.late)
        loop = _text(head, _indent(body))
        decorator = {"decorator": "@torch.no_grad()\n", "inference": "@torch.inference_mode()\n"}.get(how, "")
        if how == "with":
            loop = f"with torch.no_grad():\n{_indent(loop)}"
        if how == "switch":
            loop = _text("torch.set_grad_enabled(False)", loop, "torch.set_grad_enabled(True)")
        mode = "$model.eval()" if self.chance(0.85) else ""
        put.returns = [(name, value.replace("$loader", loader)) for name, value in put.returns]
        return decorator, _text(mode, *put.start, loop, *put.end).replace("$loader", loader)

    def _forward_plain(self) -> str:
        return self._forward() if self.chance(0.5) else _text(self.net.call, self.loss.call)

    def _handed(self, onto: Pass) -> tuple[str, str]:
        """The statement that returns what a pass found, and what stands before and behind its call: ``CALL``."""
        names = [name for name, _ in onto.returns]
        values = [value for _, value in onto.returns]
        if not names:
            return "", "CALL"
        if len(names) == 1:
            return f"return {values[0]}", f"{names[0]} = CALL"
        if self.chance(0.3):
            items = ", ".join(f"'{name}': {value}" for name, value in onto.returns)
            stats = "stats" if "stats" not in self.taken else "more_stats"
            self.taken.add("stats")
            return f"return {{{items}}}", _text(f"{stats} = CALL", *(f"{name} = {stats}['{name}']" for name in names))
        return f"return {', '.join(values)}", f"{', '.join(names)} = CALL"

    def _shown(self, onto: Pass, word: str) -> str:
        """A line that prints what a pass has found."""
        numbers = [name for name, _ in onto.returns if name.rstrip("_0123456789") in _NUMERIC]
        if not numbers:
            return f"print('{word}', epoch)"
        style = self.draw.choice(("f", "f", "repr", "round", "percent"))
        if style == "f":
            return f"print(f'{word} {{epoch}} " + " ".join(f"{{{name}:.6f}}" for name in numbers) + "')"
        if style == "repr":
            return f"print('{word}', epoch, " + ", ".join(numbers) + ")"
        if style == "round":
            return f"print('{word}', epoch, " + ", ".join(f"round({name}, 5)" for name in numbers) + ")"
        return f"print('{word} %d' % epoch, " + ", ".join(f"'%.5g' % {name}" for name in numbers) + ")"

    def _tail(self, score: str) -> tuple[str, str]:
        """What is done with an epoch's results: lines before the epochs and in each."""
        lines = []
        if self.scheduler and self.scheduler[1] == "epoch":
            lines.append("$scheduler.step()")
        if self.scheduler and self.scheduler[1] == "metric":
            lines.append(f"$scheduler.step({score})")
        tail = self.draw.choice((Part("plain"), Part("plain"), Part("plain"), *records.TAILS))
        self.parts.append(f"tail:{tail.name}")
        self.imports.update(dict.fromkeys(tail.imports.splitlines()))
        self.final += [tail.final] if tail.final else []
        return tail.setup, _text(*lines, tail.after.replace("SCORE", score))

    def _files(self) -> dict[str, str]:
        script = self._script()
        tops = list(self.tops)
        files: dict[str, str] = {}
        header = [*sorted(set(self.imports) - set(_STANDARD), key=lambda line: (line.startswith("from"), line)), *_STANDARD]
        head = _text(*header, "from torch import nn", "from torch.utils.data import DataLoader, Dataset")
        if self.layout != "script" and self.chance(0.35) and not (self.core and self.core.name == "closure"):
            for name, chosen in (
                ("network.py", [self.net.top, self.loss.top]),
                ("helpers.py", [each for each in tops if each]),
            ):
                apart = [each for each in tops if each in chosen and _DEFINED.search(each)]
                if apart and (name == "network.py" or self.chance(0.6)):
                    files[name] = head + "\n\n\n" + "\n\n".join(apart)
                    tops = [each for each in tops if each not in apart]
                    names = [first or second for each in apart for first, second in _DEFINED.findall(each)]
                    head += f"\nfrom {name.removesuffix('.py')} import {', '.join(dict.fromkeys(names))}"
            files = {
                name: text.split("\nfrom network import")[0] if name == "network.py" else text
                for name, text in files.items()
            }
            self.parts += list(files)
        files["main.py"] = head + "\n\n\n" + "\n\n".join(tops) + "\n\n" + script
        return {name: re.sub(r"\n{4,}", "\n\n\n", text).rstrip() + "\n" for name, text in files.items()}

    def _script(self) -> str:
        """All that is below the classes, in the layout's form."""
        training = self._train()
        shared = self.layout == "shared"
        inline = self.layout in ("script", "main")
        evaluation = decorator = ""
        own_function = self.evaluates and not shared and (not inline or self.chance(0.5))
        if self.evaluates and not shared:
            decorator, evaluation = self._evaluate("loader" if own_function else "$val_loader")
            if not own_function and decorator:
                decorator, evaluation = "", f"with torch.no_grad():\n{_indent(evaluation)}"
        return_line, call = self._handed(self.training_pass)
        eval_return, eval_call = self._handed(self.evaluation) if self.evaluates and not shared else ("", "")
        first = (self.evaluation.returns or self.training_pass.returns or [("0.0", "")])[0][0]
        score = first if first.rstrip("_0123456789") in _NUMERIC else "float(epoch)"
        before, tail = self._tail(score)
        state = [f"${name} = {value}" for name, value in self.state.items()]
        setup = _text(*self.setup, *state)
        after = _text(self._shown(self.training_pass, "train"), *self.training_pass.after)
        eval_after = _text(self._shown(self.evaluation, "val"), *self.evaluation.after) if eval_call else ""
        final = _text(*self.final, *(self._open(name) for name in self.state if name in OPEN_STATE), _WEIGHTS)
        tried = self.chance(0.15)
        assigned = _text(*(f"{name} = {value}" for name, value in self.training_pass.returns))
        eval_assigned = _text(*(f"{name} = {value}" for name, value in self.evaluation.returns))
        functions: list[tuple[str, str, str]] = []
        if not inline:
            parameters = "epoch, loader, training" if shared else "epoch"
            functions.append(("", f"train_epoch({parameters})", _text(training, return_line)))
            training = call.replace(
                "CALL", "CALL:train_epoch(" + ("epoch, $train_loader, True" if shared else "epoch") + ")"
            )
            if shared:
                training += "\nprint('held out', CALL:train_epoch(epoch, $val_loader, False))"
        else:
            training = _text(training, assigned)
        if own_function:
            functions.append((decorator, "evaluate(epoch, loader)", _text(evaluation, eval_return)))
            evaluation = eval_call.replace("CALL", "CALL:evaluate(epoch, $val_loader)")
        elif evaluation:
            evaluation = _text(evaluation, eval_assigned)
        epoch = _text(training, after, evaluation, eval_after, tail)
        loop = _text(before, f"for epoch in range({self.epochs}):", _indent(epoch))
        if tried:
            loop = _text("try:", _indent(loop), f"except {_ERRORS} as error:\n    print('stopped by', type(error).__name__)")
            self.parts.append("tried")
        return self._laid_out(setup, loop, final, functions)

    def _open(self, name: str) -> str:
        if name == "aliases":
            return "print('aliases', [len(each) for each in $aliases if hasattr(each, '__len__')])"
        if name == "peaks":
            return "print('peaks', {key: round(float(value), 5) for key, value in $peaks.items()})"
        return "print('seen', sorted({type(v).__name__ for v in $seen_so_far}), [f'{v:.5f}' for v in $seen_so_far])"

    def _laid_out(self, setup: str, loop: str, final: str, functions: Iterable[tuple[str, str, str]]) -> str:
        guard = "\n\nif __name__ == '__main__':\n    " if self.chance(0.85) else "\n\n"
        if self.layout == "trainer":
            methods = ""
            for decorator, name, body in functions:
                method = name.replace("(", "(self, ")
                methods += _indent(f"\n{decorator}def {method}:\n{_indent(_attributes(body))}") + "\n"
                loop = loop.replace(f"CALL:{name.split('(')[0]}", f"self.{name.split('(')[0]}")
            fit = _indent(f"\ndef fit(self):\n{_indent(_attributes(_text(loop, final)))}")
            init = _indent(f"def __init__(self):\n{_indent(_attributes(setup))}")
            return f"\nclass Trainer:\n{init}\n{methods}{fit}\n{guard}Trainer().fit()"
        text = ""
        for decorator, name, body in functions:
            used = dict.fromkeys(_SHARED.findall(body))
            given, own = name.split("(")[1].rstrip(")"), name.split("(")[0]
            names = ", ".join([given, *used])
            text += f"\n{decorator}def {own}({names}):\n{_indent(_plain(body))}\n\n"
            handed = "".join(f", ${each}" for each in used)
            loop = re.sub(rf"CALL:{own}\(([^()]*)\)", lambda found, o=own, h=handed: f"{o}({found[1]}{h})", loop)  # type: ignore[misc]
        whole = _plain(_text(setup, loop, final))
        if self.layout == "script":
            return text + "\n" + (whole if self.chance(0.35) else f"if __name__ == '__main__':\n{_indent(whole)}")
        return f"{text}\ndef main():\n{_indent(whole)}\n{guard}main()"


def _plain(text: str) -> str:
    return _SHARED.sub(r"\1", text)


def _attributes(text: str) -> str:
    return _SHARED.sub(r"self.\1", text)
