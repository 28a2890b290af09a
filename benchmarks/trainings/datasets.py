"""Datasets, transforms, samplers and collate functions, plain ones and those with a habit that workers would change."""

from __future__ import annotations

from benchmarks.trainings.part import Data, Part

_FLOATS = ("vector", "image", "series")


def _rows(item: str, more: str = "", init: str = "", name: str = "Rows", parameters: str = "") -> str:
    """A map-style dataset over two arrays; ``item`` is the body of ``__getitem__``."""
    first = "".join(f"\n        {line}" for line in init.splitlines())
    body = "\n".join(f"        {line}" for line in item.splitlines())
    return f"""class {name}(Dataset):
    def __init__(self, features, labels{parameters}):
        self.features, self.labels = features, labels{first}

    def __len__(self):
        return len(self.features)

    def __getitem__(self, index):
{body}
{more}"""


_PLAIN = "return torch.from_numpy(self.features[index]), int(self.labels[index])"
_ITEM = "x = torch.from_numpy(self.features[index])\n"
_PAIR = "\nreturn x, int(self.labels[index])"

PLAIN = (
    Data("memory", _rows(_PLAIN), "Rows(FEATURES, LABELS)"),
    Data(
        "tensors",
        "",
        "TensorDataset(torch.from_numpy(FEATURES), torch.from_numpy(LABELS))",
        imports="from torch.utils.data import TensorDataset",
    ),
    Data(
        "dicts",
        _rows("return {'x': torch.from_numpy(self.features[index]), 'y': int(self.labels[index])}"),
        "Rows(FEATURES, LABELS)",
        form="dict",
    ),
    Data("numbered", _rows(_ITEM + "return x, int(self.labels[index]), index"), "Rows(FEATURES, LABELS)", form="triple"),
    Data(
        "files",
        """class Files(Dataset):
    def __init__(self, folder, labels):
        self.paths, self.labels = sorted(Path(folder).glob("*.npy")), labels

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        return torch.from_numpy(np.load(self.paths[index])), int(self.labels[index])


def written(folder, features):
    os.makedirs(folder, exist_ok=True)
    for row, values in enumerate(features):
        np.save(f"{folder}/{row:04d}.npy", values)
    return folder
""",
        "Files(written('rows_NAME', FEATURES), LABELS)",
        imports="import os\nfrom pathlib import Path",
    ),
    Data(
        "subset",
        _rows(_PLAIN),
        "Subset(Rows(FEATURES, LABELS), range(0, len(LABELS), 2))",
        imports="from torch.utils.data import Subset",
    ),
    Data(
        "concatenated",
        _rows(_PLAIN),
        "ConcatDataset([Rows(FEATURES[:24], LABELS[:24]), Rows(FEATURES[24:], LABELS[24:])])",
        imports="from torch.utils.data import ConcatDataset",
    ),
    Data(
        "split",
        _rows(_PLAIN),
        "random_split(Rows(FEATURES, LABELS), [0.75, 0.25])[0]",
        imports="from torch.utils.data import random_split",
    ),
    Data(
        "composed",
        """class Scale:
    def __init__(self, factor):
        self.factor = factor

    def __call__(self, x):
        return x * self.factor


class Chain:
    def __init__(self, transforms):
        self.transforms = transforms

    def __call__(self, x):
        for transform in self.transforms:
            x = transform(x)
        return x


"""
        + _rows(
            _ITEM + "if self.transform is not None:\n    x = self.transform(x)" + _PAIR,
            init="self.transform = transform",
            parameters=", transform=None",
        ),
        "Rows(FEATURES, LABELS, transform=Chain([Scale(0.5), Scale(1.5)]))",
        modes=_FLOATS,
    ),
    Data(
        "joined_arrays",
        _rows("return self.features[index], self.labels[index]")
        + """

def collate(items):
    x = torch.tensor([features for features, _ in items], dtype=torch.float32)
    return x, torch.tensor([int(label) for _, label in items])
""",
        "Rows(FEATURES, LABELS)",
        options="collate_fn=collate",
        modes=_FLOATS,
    ),
    Data(
        "own_collate",
        _rows(_PLAIN)
        + """

def collate(items):
    return torch.stack([x for x, _ in items]), torch.tensor([y for _, y in items])
""",
        "Rows(FEATURES, LABELS)",
        options="collate_fn=collate",
    ),
)
"""What workers may read."""

DRAWING = (
    Data(
        "noise_numpy",
        _rows(_ITEM + "x = x + 0.1 * torch.from_numpy(np.random.randn(*x.shape).astype(np.float32))" + _PAIR),
        "Rows(FEATURES, LABELS)",
        modes=_FLOATS,
    ),
    Data(
        "noise_torch",
        _rows(_ITEM + "x = x + 0.1 * torch.randn_like(x)" + _PAIR),
        "Rows(FEATURES, LABELS)",
        modes=_FLOATS,
    ),
    Data(
        "flips",
        _rows(_ITEM + "if self.train and random.random() < 0.5:\n    x = x.flip(-1)" + _PAIR, init="self.train = True"),
        "Rows(FEATURES, LABELS)",
        imports="import random",
    ),
    Data(
        "pairs_drawn",
        _rows("other = np.random.randint(len(self.features))\n" + _ITEM + "x = x + 0 * other" + _PAIR),
        "Rows(FEATURES, LABELS)",
    ),
    Data(
        "seeded_workers",
        _rows(_ITEM + "x = x * (1 + 0.1 * random.random())" + _PAIR)
        + """

def seed_worker(worker):
    random.seed(torch.initial_seed() % 2**32 + worker)
""",
        "Rows(FEATURES, LABELS)",
        imports="import random",
        options="worker_init_fn=seed_worker",
        modes=_FLOATS,
    ),
    Data(
        "weighted",
        _rows(_PLAIN),
        "Rows(FEATURES, LABELS)",
        imports="from torch.utils.data import WeightedRandomSampler",
        options="sampler=WeightedRandomSampler([1.0 + row % 3 for row in range(64)], 48)",
    ),
    Data(
        "own_generator_order",
        _rows(_PLAIN),
        "Rows(FEATURES, LABELS)",
        options="generator=torch.Generator().manual_seed(5), shuffle=True",
    ),
)
"""What draws random numbers that workers draw from streams of their own."""

HABITS = (
    Data(
        "generator_attribute",
        _rows(
            _ITEM + "x = x + torch.from_numpy(self.rng.randn(*x.shape).astype(np.float32)) * 0.1" + _PAIR,
            init="self.rng = np.random.RandomState(3)",
        ),
        "Rows(FEATURES, LABELS)",
        modes=_FLOATS,
    ),
    Data(
        "torch_generator_attribute",
        _rows(
            _ITEM + "x = x * (1 + 0.1 * torch.rand(1, generator=self.generator))" + _PAIR,
            init="self.generator = torch.Generator().manual_seed(4)",
        ),
        "Rows(FEATURES, LABELS)",
        modes=_FLOATS,
    ),
    Data(
        "counter",
        _rows("self.reads += 1\n" + _PLAIN, init="self.reads = 0"),
        "Rows(FEATURES, LABELS)",
        part=Part("counter_read", after="print('reads', $train_set.reads)"),
    ),
    Data(
        "reads_by_row",
        _rows("self.reads[index] = self.reads.get(index, 0) + 1\n" + _PLAIN, init="self.reads = {}"),
        "Rows(FEATURES, LABELS)",
        part=Part("rows_read", final="print('rows read', len($train_set.reads), sum($train_set.reads.values()))"),
    ),
    Data(
        "global_counter",
        "SEEN = {'items': 0}\n\n\n" + _rows("SEEN['items'] += 1\n" + _PLAIN),
        "Rows(FEATURES, LABELS)",
        part=Part("seen", after="print('seen', SEEN['items'])"),
    ),
    Data(
        "curriculum",
        _rows(_ITEM + "x = x * self.level" + _PAIR, init="self.level = 1.0"),
        "Rows(FEATURES, LABELS)",
        modes=_FLOATS,
        part=Part("levels", start="$train_set.level = 1.0 + 0.5 * epoch"),
    ),
    Data(
        "curriculum_method",
        _rows(
            _ITEM + "if self.epoch > 0:\n    x = x.flip(0)" + _PAIR,
            init="self.epoch = 0",
            more="\n    def set_epoch(self, epoch):\n        self.epoch = epoch\n",
        ),
        "Rows(FEATURES, LABELS)",
        part=Part("set_epoch", start="$train_set.set_epoch(epoch)"),
    ),
    Data(
        "transform_replaced",
        _rows(_ITEM + "x = x * self.transform[0]" + _PAIR, init="self.transform = [1.0]"),
        "Rows(FEATURES, LABELS)",
        modes=_FLOATS,
        part=Part("replaced", after="if epoch == 0:\n    $train_set.transform[0] = 0.25"),
    ),
    Data(
        "hard_rows",
        _rows(
            "if self.hard and index % 3 == 0:\n    index = self.hard[index % len(self.hard)]\n"
            + _ITEM
            + "return x, int(self.labels[index]), index",
            init="self.hard = []",
        ),
        "Rows(FEATURES, LABELS)",
        form="triple",
        part=Part("harder", step="if loss.item() > 1.2:\n    $train_set.hard.append(int(rows[0]))"),
    ),
    Data(
        "relabelled",
        _rows(_ITEM + "return x, int(self.labels[index]), index"),
        "Rows(FEATURES, LABELS)",
        form="triple",
        part=Part("relabel", step="$train_set.labels[rows.numpy()] = out.detach().argmax(1).cpu().numpy()"),
    ),
    Data(
        "shared_tensor",
        "WEIGHTS = torch.ones(64)\n"
        "\n"
        "\n" + _rows(_ITEM + "x = x * WEIGHTS[index]" + "\nreturn x, int(self.labels[index]), index"),
        "Rows(FEATURES, LABELS)",
        form="triple",
        modes=_FLOATS,
        part=Part("weigh", step="WEIGHTS[rows] *= 0.9"),
    ),
    Data(
        "cached",
        _rows(
            "if index not in self.cache:\n    self.cache[index] = torch.from_numpy(self.features[index]) * 2\n"
            "return self.cache[index], int(self.labels[index])",
            init="self.cache = {}",
        ),
        "Rows(FEATURES, LABELS)",
        modes=_FLOATS,
    ),
    Data(
        "cached_noise",
        _rows(
            "if index not in self.cache:\n"
            "    self.cache[index] = torch.from_numpy(self.features[index]) + torch.randn(1)\n"
            "return self.cache[index], int(self.labels[index])",
            init="self.cache = {}",
        ),
        "Rows(FEATURES, LABELS)",
        modes=_FLOATS,
    ),
    Data(
        "open_file",
        """class Lines(Dataset):
    def __init__(self, path, features, labels):
        self.shape, self.labels = features.shape[1:], labels
        np.asarray(features, dtype=np.float32).tofile(path)
        self.size = int(np.prod(self.shape)) * 4
        self.file = open(path, "rb", buffering=0)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        self.file.seek(index * self.size)
        values = np.frombuffer(self.file.read(self.size), dtype=np.float32)
        return torch.from_numpy(values.copy()).reshape(self.shape), int(self.labels[index])
""",
        "Lines('rows_NAME.bin', FEATURES, LABELS)",
        modes=_FLOATS,
    ),
    Data(
        "lambda_attribute",
        _rows(_ITEM + "x = self.transform(x)" + _PAIR, init="self.transform = transform", parameters=", transform=None"),
        "Rows(FEATURES, LABELS, transform=lambda x: x * 0.5)",
        modes=_FLOATS,
    ),
    Data(
        "locked",
        _rows(
            "with self.lock:\n    return torch.from_numpy(self.features[index]), int(self.labels[index])",
            init="self.lock = threading.Lock()",
        ),
        "Rows(FEATURES, LABELS)",
        imports="import threading",
    ),
    Data(
        "own_error",
        """class BadRow(Exception):
    def __init__(self, row, why):
        super().__init__(f"row {row}: {why}")
        self.row = row


"""
        + _rows("if index == 61 and self.strict:\n    raise BadRow(index, 'broken')\n" + _PLAIN, init="self.strict = False"),
        "Rows(FEATURES, LABELS)",
        part=Part(
            "probe_row",
            final="$train_set.strict = True\ntry:\n    for _ in $train_loader:\n        pass\n"
            "except BadRow as error:\n    print('bad row', error.row)",
        ),
    ),
    Data(
        "global_switch",
        "SETTINGS = {'scale': 1.0}\n\n\n" + _rows(_ITEM + "x = x * SETTINGS['scale']" + _PAIR),
        "Rows(FEATURES, LABELS)",
        modes=_FLOATS,
        part=Part("switch", after="SETTINGS['scale'] = SETTINGS['scale'] * 0.5"),
    ),
    Data(
        "growing",
        _rows(_PLAIN, more="\n    def grow(self, row):\n        self.rows.append(row)\n", init="self.rows = []"),
        "Rows(FEATURES, LABELS)",
        part=Part("grow", after="$train_set.grow(epoch)\nprint('rows', len($train_set.rows))"),
    ),
    Data(
        "iterable",
        """class Stream(IterableDataset):
    def __init__(self, features, labels):
        self.features, self.labels = features, labels

    def __iter__(self):
        for values, label in zip(self.features, self.labels):
            yield torch.from_numpy(values), int(label)
""",
        "Stream(FEATURES, LABELS)",
        imports="from torch.utils.data import IterableDataset",
        is_iterable=True,
    ),
    Data(
        "model_in_item",
        _rows(
            "with torch.no_grad():\n    x = torch.tanh(self.filter(torch.from_numpy(self.features[index])))" + _PAIR,
            init="self.filter = nn.Hardtanh()",
        ),
        "Rows(FEATURES, LABELS)",
        modes=_FLOATS,
    ),
    Data(
        "last_batch_attribute",
        _rows(_PLAIN, init="self.last = None"),
        "Rows(FEATURES, LABELS)",
        part=Part("remember", step="$train_set.last = x", final="print('last', $train_set.last.sum().item())"),
    ),
    Data(
        "sampler_with_memory",
        _rows(_PLAIN)
        + """

class Order(torch.utils.data.Sampler):
    def __init__(self, count):
        self.count, self.passes = count, 0

    def __len__(self):
        return self.count

    def __iter__(self):
        self.passes += 1
        yield from np.random.RandomState(self.passes).permutation(self.count).tolist()
""",
        "Rows(FEATURES, LABELS)",
        options="sampler=Order(64)",
    ),
    Data(
        "feedback_sampler",
        _rows(_PLAIN)
        + """

class Feedback(torch.utils.data.Sampler):
    def __init__(self, count):
        self.count, self.level = count, 0.0

    def __len__(self):
        return self.count

    def __iter__(self):
        for row in range(self.count):
            yield row if self.level < 1.3 else self.count - 1 - row
""",
        "Rows(FEATURES, LABELS)",
        options="sampler=$order",
        setup="$order = Feedback(64)",
        part=Part("feedback", step="$order.level = float(loss)"),
    ),
    Data(
        "told_of_reads",
        _rows("if index % 16 == 0:\n    self.log.append(index)\n" + _PLAIN, init="self.log = log", parameters=", log=None"),
        "Rows(FEATURES, LABELS, $log)",
        setup="$log = []",
        part=Part("log_of_reads", after="print('log', len($log))"),
    ),
)
"""What the training and the items tell each other, or what cannot be sent to another process."""
