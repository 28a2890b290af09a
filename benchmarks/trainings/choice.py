"""What a training is made of: parts that go together, drawn by a seed, and their lines in the places of a script."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from benchmarks.trainings import cores, datasets, networks, records, steps
from benchmarks.trainings.part import Data, Net, Part

_SHAPES = {"vector": "(count, 16)", "image": "(count, 3, 8, 8)", "series": "(count, 5, 6)", "tokens": "(count, 6)"}
_NAMES = tuple("total running_loss found kept epoch_loss values seen_here score track part_sum held res".split())
_LAYOUTS = ("script", "main", "main", "functions", "functions", "functions", "trainer", "trainer", "shared")
OPEN_STATE = {"seen_so_far": "[]", "peaks": "{}", "aliases": "[]"}
"""What habits write into, which is shown in the end."""
_SEEDS = (
    "torch.manual_seed(0)",
    "torch.manual_seed(0)\nnp.random.seed(0)",
    "random.seed(0)\nnp.random.seed(0)\ntorch.manual_seed(0)",
)
_NOT_BF16 = ("arrays_of_outputs", "probabilities")
"""What asks numpy for a type that it lacks."""
_NOT_HALF = ("attention_masked", "index_added")
_NOT_IN = {"float32": (), "switch": (), "double": ("cells", "lstm_states", "filled_buffer", "index_added")}
"""Networks that stop where autocast, or another precision, meets tensors that they make."""


@dataclass
class Pass:
    """The lines of a pass over a loader: before it, for each batch, behind it, and what it hands on."""

    start: list[str] = field(default_factory=list)
    early: list[str] = field(default_factory=list)
    late: list[str] = field(default_factory=list)
    end: list[str] = field(default_factory=list)
    returns: list[tuple[str, str]] = field(default_factory=list)
    after: list[str] = field(default_factory=list)


def _from_files(data: Data) -> Data:
    """The dataset with each row in a file of its own."""
    top = data.top.replace("self.features[index]", 'np.load(f"{self.features}/{index:04d}.npy")')
    writes = next(each for each in datasets.PLAIN if each.name == "files").top.split("\n\n\n")[1]
    make = re.sub(
        r"FEATURES(\[[^]]*\])?", lambda found: f"written('rows_{len(found[1] or '')}_NAME', {found[0]})", data.make
    )
    return replace(data, top=f"{top.replace('len(self.features)', 'len(self.labels)')}\n\n{writes}", make=make)


class Choice:
    """Draws what a training is made of; see ``compose``."""

    def __init__(self, seed: int) -> None:
        self.seed, self.draw = seed, random.Random(seed)
        self.parts: list[str] = []
        self.imports: dict[str, None] = {}
        self.tops: dict[str, None] = {}
        self.setup: list[str] = []
        self.state: dict[str, str] = {}
        self.final: list[str] = []
        self.training_pass, self.evaluation = Pass(), Pass()
        self.taken: set[str] = set()

    def chance(self, share: float) -> bool:
        """True in this share of the calls."""
        return self.draw.random() < share

    def _choose(self) -> None:
        self.layout = self.draw.choice(_LAYOUTS)
        self.precision = self.draw.choice(steps.PRECISIONS)
        refused = _NOT_IN.get(self.precision, _NOT_HALF)
        self.net: Net = self.draw.choice([each for each in networks.NETS if each.name not in refused])
        self.mode = self.net.mode
        group = self.draw.choices((datasets.PLAIN, datasets.DRAWING, datasets.HABITS), (5, 2, 4))[0]
        self.data: Data = self.draw.choice([each for each in group if self.mode in each.modes])
        self.core = None
        if self.precision == "float32" and self.chance(0.3) and self.net.call.startswith("out = "):
            self.core = self.draw.choice([each for each in cores.CORES if self.mode in each.modes])
            if self.core.name == "closure" and self.layout in ("trainer", "shared"):
                self.core = None
        if self.layout == "shared" and self.core is not None:
            self.layout = "functions"
        halves = self.precision not in ("float32", "double")
        self.loss = self.draw.choice([each for each in steps.LOSSES if not halves or each.name != "probabilities"])
        self.device_kind = self.draw.choices(("torch_device", "string", "hard", "cuda_calls"), (6, 2, 2, 2))[0]
        self.evaluates = self.layout == "shared" or self.chance(0.75)
        self.epochs = self.draw.choice((2, 2, 2, 3))
        self.parts += [self.layout, self.net.name, self.data.name, self.precision, self.loss.name]
        self.parts += [self.core.name] if self.core else []

    def _add(self, part: Part) -> None:
        """Takes what of a part has one place for the whole training."""
        self.parts.append(part.name)
        self.imports.update(dict.fromkeys(part.imports.splitlines()))
        if part.top:
            self.tops.setdefault(part.top)
        self.state.update(part.state)
        self.setup += [part.setup] if part.setup else []
        self.final += [part.final] if part.final else []

    def _local(self, text: str, names: dict[str, str]) -> str:
        def named(found: re.Match[str]) -> str:
            word = found[1]
            if word not in names:
                pool = [each for each in (_NAMES if word == "it" else (word,)) if each not in self.taken]
                names[word] = self.draw.choice(pool) if pool else f"{word}_{len(self.taken)}"
                self.taken.add(names[word])
            return names[word]

        return re.sub(r"@(\w+)", named, text)

    def _put(self, part: Part, onto: Pass, habit: bool = True, late: bool = False) -> None:
        """Puts a part into a pass, with a habit of its value now and then."""
        self._add(part)
        names: dict[str, str] = {}
        lines: dict[str, list[str]] = {"start": [part.start], "step": [part.step], "end": [part.end]}
        for name, where, text in self._habits(part) if habit else ():
            self.parts.append(f"{part.name}:{name}")
            lines[where].append(text)
            self.state.update({each: OPEN_STATE[each] for each in OPEN_STATE if f"${each}" in text})
        onto.start += [self._local(each, names) for each in lines["start"] if each]
        place = onto.late if late or self.chance(0.6) else onto.early
        place += [self._local(each, names) for each in lines["step"] if each]
        onto.end += [self._local(each, names) for each in lines["end"] if each]
        onto.returns += [(self._local(name, names), self._local(value, names)) for name, value in part.returns]
        onto.after += [self._local(part.after, names)] if part.after else []

    def _habits(self, part: Part) -> Sequence[tuple[str, str, str]]:
        known = records.HABITS.get(part.kind, ())
        return self.draw.sample(known, min(len(known), self.draw.choice((0, 0, 0, 1, 1, 2))))

    def _device(self) -> None:
        self.device = {
            "torch_device": 'torch.device("cuda" if torch.cuda.is_available() else "cpu")',
            "string": '"cuda" if torch.cuda.is_available() else "cpu"',
            "hard": 'torch.device("cuda")',
            "cuda_calls": '"cuda"',
        }[self.device_kind]
        self.setup.append(self.draw.choice(_SEEDS))
        self.imports["import random"] = None
        for switch in self.draw.sample(steps.SWITCHES, self.draw.choice((0, 0, 1, 1, 2))):
            if not ("anomaly" in switch and self.precision != "float32"):
                self.parts.append(switch)
                self.setup.append(switch)
        self.setup.append(f"$device = {self.device}")

    def _data(self) -> None:
        data, draw = self.data, self.draw
        self.imports.update(dict.fromkeys(data.imports.splitlines()))
        values = "rng.randint(0, 40, SHAPE)" if self.mode == "tokens" else "rng.randn(*SHAPE).astype(np.float32)"
        made = values.replace("*SHAPE", f"*{_SHAPES[self.mode]}").replace("SHAPE", _SHAPES[self.mode])
        self.tops[
            f"def make_rows(count, seed):\n    rng = np.random.RandomState(seed)\n    features = {made}\n"
            "    return features, rng.randint(0, 4, count)\n"
        ] = None
        if "self.features[index]" in data.top and self.chance(0.5):
            data = _from_files(data)
            self.parts.append("from files")
        if data.top:
            self.tops[data.top] = None
        self.setup += ["features, labels = make_rows(64, 1)", "val_features, val_labels = make_rows(32, 2)"]
        self.setup += [data.setup] if data.setup else []
        self.setup.append(
            "$train_set = " + data.make.replace("FEATURES", "features").replace("LABELS", "labels").replace("NAME", "train")
        )
        plain = draw.choice(datasets.PLAIN[:2]) if data.form == "pair" else data
        if plain is not data:
            self.imports.update(dict.fromkeys(plain.imports.splitlines()))
        if plain.top and plain is not data:
            plain = datasets.PLAIN[1]
            self.imports.update(dict.fromkeys(plain.imports.splitlines()))
        val = plain.make.replace("FEATURES", "val_features").replace("LABELS", "val_labels").replace("NAME", "val")
        self.setup.append(f"$val_set = {val}")
        self._loaders()
        if data.part:
            self._add(data.part)
            put = self.training_pass
            put.start += [data.part.start] if data.part.start else []
            put.late += [data.part.step] if data.part.step else []
            put.after += [data.part.after] if data.part.after else []

    def _loaders(self) -> None:
        data, draw = self.data, self.draw
        options = [f"batch_size={draw.choice((16, 16, 12))}"]
        workers = draw.choice(("", "", "num_workers=0", "num_workers=2", "num_workers=2", "num_workers=WORKERS"))
        if data.name == "open_file" and workers in ("num_workers=2", "num_workers=WORKERS"):
            workers = "num_workers=1"  # two share the position in its file: what they read is a matter of chance
        if workers == "num_workers=WORKERS":
            self.tops[f"WORKERS = {draw.choice((0, 2))}\n"] = None
        if data.is_iterable or data.name == "own_error":
            workers = draw.choice(("", "num_workers=1")) if data.is_iterable else ""
        if not data.is_iterable and not re.search(r"sampler|shuffle", data.options):
            options += draw.choice((["shuffle=True"], ["shuffle=True"], []))
        options += [each for each in (data.options, workers) if each]
        has_workers = workers in ("num_workers=2", "num_workers=1")
        if has_workers:
            options += draw.choice(
                ([], [], ["persistent_workers=True"], ["prefetch_factor=1"], ["persistent_workers=False"])
            )
        options += draw.choice(([], [], ["pin_memory=True"], ["pin_memory=False"], ["drop_last=True"]))
        if has_workers and self.chance(0.1):
            options += ["pin_memory_device='cuda'"]
        self.parts += options
        self.setup.append(f"$train_loader = DataLoader($train_set, {', '.join(options)})")
        held = ["batch_size=16", *([workers] if workers and self.chance(0.3) else [])]
        self.setup.append(f"$val_loader = DataLoader($val_set, {', '.join(held)})")

    def _network(self) -> None:
        net, draw = self.net, self.draw
        self.imports.update(dict.fromkeys(net.imports.splitlines()))
        if net.top:
            self.tops[net.top] = None
        to = ".cuda()" if self.device_kind == "cuda_calls" else ".to($device)"
        double = ".double()" if self.precision == "double" else ""
        late = not double and self.chance(0.2)
        self.setup.append(f"$model = {net.make}" if late else f"$model = {net.make}{double}{to}")
        self.setup += [f"$model{to}"] if late else []
        if net.part:
            self._add(net.part)
            self.training_pass.late += [net.part.step] if net.part.step else []
        if self.chance(0.15):
            part = next(each for each in steps.BESIDE if each.name == "frozen")
            self._add(part)
        if self.loss.top:
            self.tops[self.loss.top] = None
        self.imports.update(dict.fromkeys(self.loss.imports.splitlines()))
        self.setup += [f"$criterion = {self.loss.make}"] if self.loss.make else []
        if self.loss.name == "logs_itself":
            self.final.append("print('entropies', len(ENTROPIES), f'{sum(ENTROPIES):.5f}')")
        parameters = draw.choice(("$model.parameters()", "[p for p in $model.parameters() if p.requires_grad]"))
        optimizer = draw.choice(steps.OPTIMIZERS)
        if "optim.Adam(" in optimizer and not optimizer.startswith("torch"):
            self.imports["from torch import optim"] = None
        self.parts.append(optimizer.split("(")[0].split(".")[-1])
        self.setup.append(f"$optimizer = {optimizer.replace('$parameters', parameters)}")
        self.scheduler = draw.choice(steps.SCHEDULERS) if self.chance(0.4) else None
        if self.scheduler and "OneCycle" in self.scheduler[0] and "lr=0.02" in optimizer:
            self.scheduler = None
        self.setup += [f"$scheduler = {self.scheduler[0]}"] if self.scheduler else []
        if self.core:
            self._add(
                Part(
                    self.core.name,
                    imports=self.core.imports,
                    setup=self.core.setup,
                    top=self.core.top,
                    final=self.core.final,
                )
            )
        made = {
            "autocast_scaler": "torch.amp.GradScaler('cuda')",
            "old_autocast_scaler": "torch.cuda.amp.GradScaler()",
            "bf16_scaler": "torch.amp.GradScaler('cuda')",
            "switch": "torch.amp.GradScaler('cuda', enabled=USE_AMP)",
        }.get(self.precision)
        if made and not self.needs_guard:
            self.setup.append(f"$scaler = {made}")
        elif made:
            self.setup.append(f"$scaler = {made.replace('()', '(enabled=torch.cuda.is_available())')}")
        if self.precision == "switch":
            self.tops["USE_AMP = False\n"] = None

    @property
    def needs_guard(self) -> bool:
        """Whether half precision must be off on a machine without a GPU."""
        return self.device_kind in ("torch_device", "string") and self.precision == "old_autocast_scaler"

    def _record(self) -> None:
        draw, training, evaluation = self.draw, self.training_pass, self.evaluation
        sized = not self.data.is_iterable
        numbers = [each for each in records.NUMBERS if sized or "len($loader" not in repr(each)]
        lists = [each for each in records.LISTS if sized or "len($loader" not in repr(each)]
        displays = [each for each in records.DISPLAYS if sized or "len($loader" not in repr(each)]
        chosen = [draw.choice(numbers), draw.choice(lists)]
        kept = [each for each in records.PREDICTIONS if "bf16" not in self.precision or each.name not in _NOT_BF16]
        chosen += [draw.choice(kept)] if self.chance(0.3) else []
        chosen = draw.sample(chosen, draw.choice((1, 2, len(chosen))))
        for part in dict.fromkeys(chosen):
            self._put(part, training)
        if self.chance(0.5):
            self._put(draw.choice(displays), training)
        if self.evaluates and self.layout != "shared":
            plain = [each for each in (*records.NUMBERS, *kept) if not each.state and not each.setup]
            for part in draw.sample(plain, draw.choice((1, 2, 2))):
                self._put(part, evaluation)

    def _beside(self) -> None:
        guarded = self.device_kind in ("torch_device", "string")
        offered = {"torch_device"} if self.device_kind == "torch_device" else set()
        offered |= set() if guarded else {"cuda"}
        offered |= {"float_inputs"} if self.mode != "tokens" and not self.core else set()
        offered |= {"last"} if not (self.training_pass.late or self.scheduler) else set()
        known = [each for each in steps.BESIDE if (not each.needs or each.needs in offered) and each.name != "frozen"]
        chosen = self.draw.sample(known, self.draw.choice((0, 1, 1, 2)))
        for part in sorted(chosen, key=lambda each: each.needs == "last"):
            if self.layout == "shared" and "optimizer" in part.step:
                continue
            self._put(part, self.training_pass, habit=False, late=part.needs in ("float_inputs", "last"))
