"""Whether a dataset's items come out the same in other processes, also in some that stay alive: a proof, or what it lacks.

Worker processes hold copies. They read the same items where all that the code of the items reads is set before the training
and never changed, where this code writes nothing that outlives it, and where what they hold can be sent to them.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from speedlint.disk import Mark
from speedlint.facts import syntax
from speedlint.shapes.data import fresh, sent, started
from speedlint.shapes.sync.reads import shown
from speedlint.solve import changing, reach
from speedlint.solve.names import Binding, Kind, Scope, last_name
from speedlint.solve.terms import Definition
from speedlint.solve.values import is_property, returned
from speedlint.source import is_name
from speedlint.torch import library
from speedlint.torch.words import Frequency, Role

if TYPE_CHECKING:
    from speedlint.ask.script import Script

_PACKAGES = sys.stdlib_module_names | frozenset(
    "albumentations av cv2 decord einops h5py imageio imgaug jieba Levenshtein librosa lmdb monai nibabel nltk numpy "
    "pandas PIL pycocotools pydicom rdkit sacrebleu scipy sentencepiece SimpleITK skimage sklearn soundfile spacy "
    "tokenizers torch torch_geometric torchaudio torchtext torchvision tqdm transformers yaml".split()
)
"""Packages whose functions keep nothing of a program's between two calls, but random streams and what is open."""
_BUILTINS = frozenset(
    "abs all any bool bytes chr dict divmod enumerate filter float format frozenset getattr hasattr hash hex int "
    "isinstance issubclass iter len list map max min object open ord pow print range repr reversed round set slice "
    "sorted str sum super tuple type zip NotImplementedError ValueError IndexError TypeError KeyError RuntimeError "
    "StopIteration AssertionError FileNotFoundError Exception NotImplemented Ellipsis None True False __name__ "
    "__file__ OSError".split()
)
_NOT_SENT = tuple(
    "open iter zip map filter enumerate reversed compile memoryview object h5py. lmdb. av. decord. numpy.memmap "
    "numpy.nditer numpy.ndenumerate numpy.lib.format.open_memmap numpy.frompyfunc cv2.VideoCapture PIL.Image.open "
    "pandas.HDFStore pandas.ExcelFile soundfile.SoundFile imageio.get_reader imageio.v3.imopen "
    "torch.multiprocessing. torch.cuda. torch.jit. torch.compile torch.vmap torch.func. torch.utils.tensorboard.".split()
)
"""What of other packages, or built in, is an open file, an iterator or a function that is made, or of one process."""
_SENT = tuple(
    "argparse. array.array ast.literal_eval base64. bisect. collections. copy. dataclasses. datetime. decimal.Decimal enum. "
    "fnmatch. fractions. functools.partial functools.reduce glob.glob heapq. html. importlib.import_module json. "
    "logging.getLogger math. operator. os.cpu_count os.environ.get os.fspath os.getcwd os.getenv os.getpid os.listdir "
    "os.path. os.sched_getaffinity os.stat pathlib. pickle.load platform. random. re.compile re.escape re.findall re.split "
    "re.sub shlex. shutil. statistics. string. sys.getsizeof sys.intern tempfile.gettempdir tempfile.mkdtemp textwrap. "
    "time. types.SimpleNamespace typing. "
    "unicodedata. urllib.parse. uuid. zlib.".split()
)
"""Functions of the standard library whose results are data that can be sent; what others give is not known."""
_OF_PROCESS = ("sys.std", "sys.__std", "sys.modules", "os.environ")
_MODULES = frozenset("functional transforms nn optim fft linalg special random path models io ops v2 ma testing".split())
"""Modules that are imported as parts of others; what pickle does not take."""
_NOT_SENT_PACKAGES = tuple(name for name in _NOT_SENT if name.endswith("."))
_GENERATORS = frozenset(
    "torch.Generator numpy.random.RandomState numpy.random.default_rng numpy.random.Generator random.Random "
    "random.SystemRandom".split()
)
_CACHES = ("functools.lru_cache", "functools.cache", "functools.cached_property")
_DRAWN = re.compile(r"rand|normal|uniform|shuffle|sample|choice|poisson|bernoulli|multinomial", re.IGNORECASE)
"""Parts of the names of functions that draw."""
_SEEDS = re.compile(r"(?:^|\.)(?:manual_seed(?:_all)?|seed|seed_everything|set_seed|seed_all)$")
_ASK_FOR_PROCESS = frozenset({"get_worker_info", "current_process", "getpid"})
_OF_PASS = "initial_seed"
"""What gives a worker the seed of its pass."""
_SEEDING = re.compile(r"(?i)(?<!initial_)seed|set_state")
"""What may seed where a worker begins, by its name: more than ``_SEEDS``, since there a proof is asked for."""
_TOLD = ("warnings.warn", "logging.", "sys.stdout.", "sys.stderr.", "tqdm.")
"""Functions of libraries that tell somebody, or count who was told."""
_LEVELS = frozenset("debug info warning warn error critical exception log".split())
_ITERATORS = frozenset(
    {"zip", "enumerate", "reversed", "iter", "map", "filter", "tqdm", "tqdm.tqdm", "items", "values", "keys", "os.walk"}
)
_TAKES_ALL = frozenset({"dict", "list", "tuple", "set", "sorted", "frozenset", "sum", "max", "min", "any", "all", "len"})
_RUN = frozenset(
    "Compose Lambda RandomApply RandomChoice RandomOrder Subset ConcatDataset ChainDataset StackDataset partial transform "
    "transforms target_transform collate_fn map filter".split()
)
"""Functions and parameters of libraries that take what is run for each item."""
_DRAWS = frozenset("rand randn randint randperm normal bernoulli multinomial rand_like randn_like random_split".split())
"""Functions that draw from a generator at once."""
_FACTORIES = frozenset("bool bytes complex dict float frozenset int list set str tuple".split())
"""Classes whose values without arguments are empty, or 0."""
_OF_ARCHIVES = frozenset({"files", "items", "keys", "values", "f", "zip"})
"""What an archive of numpy's is asked for, and no array (numpy, "numpy.lib.npyio.NpzFile")."""
_READS = frozenset("read readlines splitlines readline load loads safe_load full_load read_csv read_json read_excel".split())
"""What returns plain data, and keeps no hold of what it was read from."""
_VIEWS = frozenset({"keys", "values", "items", "iterrows", "itertuples", "iterdir", "glob", "rglob", "open", "parameters"})
"""Methods that return what can be read once, or cannot be sent."""
_HELD = (Role.NUMBER, Role.STRING, Role.NONE, Role.DTYPE, Role.TENSOR, Role.ARRAY)
_OUT_OF_SIGHT = frozenset("getattr eval exec globals locals vars __import__ requires_grad requires_grad_ Parameter".split())
_PLAIN = (Role.NUMBER, Role.STRING, Role.NONE, Role.DTYPE)
_ITEM_METHODS = ("__getitem__", "__getitems__", "__len__")
_CALLED = ("__call__", "forward")
_BY_PYTHON = re.compile(r"__(?!init__|new__|init_subclass__|repr__|str__|format__|del__)\w+__$")
"""Methods that run where an object is used, without being called by their names; not those that only tell of it."""
_SAMPLED = ("__iter__", "__len__")
_PICKLES = frozenset({"__getstate__", "__reduce__", "__reduce_ex__", "__setstate__", "__getattr__", "__getattribute__"})
_UNBOUND = frozenset({"staticmethod", "classmethod", "property", "cached_property"})
_TRAINS = (Role.MODULE, Role.OPTIMIZER, Role.SCHEDULER, Role.SCALER)
_PLAIN_DECORATORS = frozenset({"staticmethod", "classmethod", "property", "abstractmethod", "overload", "override"})
_OTHER_PROCESSES: tuple[Mark, ...] = (
    (b"Pool(", re.compile(rb"\bPool\(")),
    b"ProcessPoolExecutor",
    (b"daemon", re.compile(rb"daemon\s{0,9}=\s{0,9}True")),
    (b"joblib", re.compile(rb"\bjoblib\b")),
    (b" ray", re.compile(rb"^\s*(?:import|from) ray\b", re.M)),
)
_REMAKES = re.compile(rb"__(?:globals|defaults|kwdefaults|closure|code)__")
_SET_DEFAULTS = ("torch.set_default_dtype", "torch.set_default_device", "torch.set_default_tensor_type")
_DEFAULTS = re.compile(rb"set_default_device|set_default_tensor_type|set_default_dtype|with torch\.device")
_PUTS = frozenset({"append", "add", "insert", "setdefault"})
_DEEPEST = 24
_FEW = 4
"""Loaders that may keep their workers at once: those of a training, a validation and a test set, and one more."""


class Unproven(Exception):  # noqa: N818 (no error: what is not known)
    """What is not known, in a clause."""


class AddsUp(Unproven):
    """What is known to change an item's own numbers each time that it is read."""


class Reading(NamedTuple):
    """What reads a dataset in workers.

    Attributes:
        made: the call that makes it, in ``script``; the dataset is complete then.
        dataset: what is read; None where it is out of sight.
        runs: functions that run in the workers too.
        draws: what draws the order of the items, in the training process.
        begins: functions that run where a worker starts.
    """

    script: Script
    made: syntax.Call
    dataset: syntax.BaseExpression | None
    runs: tuple[syntax.BaseExpression, ...] = ()
    draws: tuple[syntax.BaseExpression, ...] = ()
    begins: tuple[syntax.BaseExpression, ...] = ()


def unproven(reading: Reading, *, are_sent: bool) -> str | None:
    """What keeps workers from being proved to read the same items, in a clause; None where it is proven.

    ``are_sent`` tells workers that a fix begins to use, to which all must be sent, from those of the author's own.
    """
    try:
        _Proof(reading, are_sent=are_sent).prove()
    except Unproven as reason:
        return str(reason)
    return None


def adds_up(reading: Reading) -> bool:
    """Whether an item's own numbers are changed in place each time that it is read: workers that stay alive would read what
    is changed once more in each pass, and those that are started anew what the dataset holds."""
    try:
        _Proof(reading, are_sent=False).prove()
    except Unproven as reason:
        return isinstance(reason, AddsUp)
    return False


def _is_of_pass(script: Script, name: syntax.Name) -> bool:
    """Whether a name is torch's function for the seed of a worker's pass, or a variable that is bound to what it gives."""
    if name.value == _OF_PASS:
        return True
    bound = script.names.reaching(name)
    return bool(bound) and all(
        each.value is not None and any(inner.value == _OF_PASS for inner in script.source.inside(each.value, syntax.Name))
        for each in bound
    )


class _Proof:
    def __init__(self, reading: Reading, *, are_sent: bool) -> None:
        self.reading, self.are_sent = reading, are_sent
        self.read: set[changing.Held] = set()
        """What the code of the items reads, and what that is given."""
        self.plain: set[changing.Held] = set()
        """What of that is a number or a string: it only changes where its name is bound anew."""
        self.classes: set[syntax.Node] = set()
        """The classes of the objects that workers hold."""
        self._made_here: set[syntax.Node] = set()
        """The ``__init__`` methods whose calls are seen, and what these give each parameter."""
        self._given: dict[syntax.Param, list[tuple[Script, syntax.BaseExpression]]] = {}
        self.own: set[syntax.Node] = set()
        """The functions that run for each item."""
        self._outer: dict[tuple[Script, str], Scope] = {}
        """The variables around the code of the items that it reads by name, and where they are bound."""
        self._seen: set[tuple[syntax.Node, str]] = set()
        self._items: list[Definition] = []
        self._instances: list[Definition] = []
        """The classes of the objects that workers hold or make, not their bases."""
        """The methods that give an item."""
        self._draws = False
        self._begins = False
        """Whether the code is that by which a worker begins."""
        """Whether the code of the items may draw random numbers."""

    def prove(self) -> None:
        """Raises Unproven."""
        reading = self.reading
        script = reading.script
        self._processes(script)
        if reading.dataset is None:
            raise Unproven("the dataset is out of sight")
        for given in (reading.dataset, *reading.runs):
            self._value(script, given, 0, runs=True)
        for given in reading.begins:
            self._begins = True
            self._value(script, given, 0, runs=True)
            self._begins = False
        for given in reading.draws:
            _Sampled(self).look_at(script, given)
        if not self.are_sent and _is_one_of_many(script, reading.made, 0):
            raise Unproven("each of many loaders would keep its workers")
        self._set_from_outside(script)
        if self.are_sent:
            self._put_in(script)
        if self.are_sent:
            self._sent_back()
            if (act := started.acts(script, reading.made)) is not None:
                raise Unproven(act)
        self._seeded_again(script)
        self._bound_anew(script)
        changed = changing.changed(
            script, self.read, self.plain, self.classes, self.own, reading.made, is_anew=self.are_sent
        )
        if changed is not None:
            raise Unproven(f"`{changed}` may change while workers hold a copy of it")

    def _set_from_outside(self, script: Script) -> None:
        """What other code sets as attributes of the objects that workers hold: ``dataset.transform = ...``."""
        for other in script.everywhere():
            for target in other.source.of(syntax.AssignTarget):
                attribute, assign = target.target, other.source.parents[target]
                if not isinstance(attribute, syntax.Attribute) or is_name(attribute.value, "self"):
                    continue
                named = other.definition(attribute.value)
                owner = named or other.value(attribute.value).definition
                is_held = owner is not None and any(each.node in self.classes for each in other.roles.calls.lineage(owner))
                if is_held and self.are_sent and named is not None and not changing.is_at_the_top(other, target):
                    raise Unproven(
                        f"`{shown(other, attribute)}` is set for this process: workers that are spawned do not have it"
                    )
                if is_held and isinstance(assign, syntax.Assign):
                    self._value(other, assign.value, 1, runs=True)

    def _put_in(self, script: Script) -> None:
        """What is put into what workers are sent: another option, an entry of a dict, one more of a list."""
        same = changing.shared_with(script, self.read)
        for other in script.everywhere():
            for target in other.source.of(syntax.AssignTarget):
                holder, assign = target.target, other.source.parents[target]
                is_part = isinstance(holder, (syntax.Attribute, syntax.Subscript)) and isinstance(assign, syntax.Assign)
                if is_part and changing.held(other, holder.value) in same:
                    self._part(other, assign.value)
            for call in other.source.of(syntax.Call):
                func = call.func
                if (
                    isinstance(func, syntax.Attribute)
                    and func.attr.value in _PUTS
                    and changing.held(other, func.value) in same
                ):
                    for arg in call.args:
                        self._part(other, arg.value)

    def _part(self, script: Script, value: syntax.BaseExpression) -> None:
        """Raises Unproven where a part is a function that cannot be sent, or what a library or a class of the project's
        does not let be sent."""
        definition = script.definition(value.func if isinstance(value, syntax.Call) else value)
        if isinstance(value, syntax.Lambda):
            self._lambda(script, value)
        elif definition is not None and isinstance(definition.node, syntax.ClassDef):
            self._instance(definition, 1)
        elif definition is not None and not isinstance(value, syntax.Call):
            self._defined(definition, 1)
        elif isinstance(value, syntax.Call) and definition is None:
            name = script.name(value.func)
            if name is None and isinstance(value.func, syntax.Name) and not script.names.reaching(value.func):
                name = value.func.value
            if name is not None and (name in _NOT_SENT or name.startswith(_NOT_SENT_PACKAGES)):
                raise Unproven(f"`{shown(script, value)}` cannot be sent to workers, or belongs to one process")

    def _bound_anew(self, script: Script) -> None:
        """Raises Unproven where a variable around the code of the items stands for something else later on."""
        ways = list(changing.ways_to(script, self.reading.made))
        for (other, name), scope in self._outer.items():
            for binding in scope.bindings.get(name, ()):
                if binding.kind is not Kind.PARAMETER and changing.is_late(other, binding.node, ways):
                    raise Unproven(f"`{name}` may change while workers hold a copy of it")

    def _sent_back(self) -> None:
        """Raises Unproven where what the items or batches are does not arrive as it was."""
        collates = [self.reading.script.definition(each) for each in self.reading.runs]
        for definition in (*self._items, *(each for each in collates if each is not None)):
            if (clause := sent.lost(definition)) is not None:
                raise Unproven(clause)

    def _seeded_again(self, script: Script) -> None:
        """Raises Unproven where the training seeds each pass anew, which workers do not see: those that are started anew are
        seeded by torch's generator, those that stay alive by none."""
        if not self._draws:
            return
        for given in self.reading.begins:
            self._seeded_alike(script, given)
        if script.frequency(self.reading.made) >= Frequency.EPOCH:
            return
        for other in script.everywhere(b"seed"):
            for call in other.source.of(syntax.Call):
                name = other.name(call.func) or last_name(call.func) or ""
                is_seen = self.are_sent and not name.startswith(("random.", "numpy."))
                if _SEEDS.search(name) and not is_seen and other.frequency(call) >= Frequency.EPOCH:
                    raise Unproven(f"`{shown(other, call)}` seeds each pass, but not workers")

    def _seeded_alike(self, script: Script, begins: syntax.BaseExpression) -> None:
        """Raises Unproven where workers may seed themselves by what is the same in each pass: items draw the same again,
        which neither workers that stay alive nor the training's own process do."""
        definition = script.definition(begins)
        if definition is None and not isinstance(begins, syntax.Lambda):
            raise Unproven(f"whether `{shown(script, begins)}` seeds the workers of each pass alike is not known")
        place, code = (definition.script, definition.node) if definition is not None else (script, begins)
        for call in place.source.inside(code, syntax.Call):
            callee = place.callee(call)
            inner = callee.script.source.inside(callee.node, syntax.Call) if callee is not None else ()
            named = [(place, call), *((callee.script, each) for each in inner if callee is not None)]
            if not any(_SEEDING.search(where.name(each.func) or last_name(each.func) or "") for where, each in named):
                continue
            if not any(_is_of_pass(place, name) for arg in call.args for name in place.source.inside(arg, syntax.Name)):
                raise Unproven(f"`{shown(place, call)}` seeds the workers of each pass alike")

    def _processes(self, script: Script) -> None:
        if script.program.mentions(script, _REMAKES):
            raise Unproven("the program changes what functions hold (`__globals__`, `__defaults__`)")
        if self.are_sent and any(script.program.mentions(script, mark) for mark in _OTHER_PROCESSES):
            raise Unproven("it may run in a process that must not start others")
        if self.are_sent and script.program.mentions(script, b"FileType("):
            raise Unproven("an option may be an open file (`FileType`), which no worker can be sent")
        if self.are_sent and script.program.mentions(script, _DEFAULTS):
            raise Unproven("workers do not share torch's default device or dtype")
        if self.are_sent and (setting := started.sets_process(script)) is not None:
            raise Unproven(setting)
        if self.are_sent and (answered := started.answers_signals(script)) is not None:
            raise Unproven(answered)
        for other, call in script.calls_everywhere(*_SET_DEFAULTS):
            if other.frequency(call) >= Frequency.EPOCH:
                raise Unproven(f"`{shown(other, call)}` is set for this process, but not in workers")
        for other, call in script.calls_everywhere("os.chdir", "contextlib.chdir"):
            if other.frequency(call) >= Frequency.EPOCH:
                raise Unproven(f"`{shown(other, call)}` gives paths another meaning, but not in workers")
        function = script.function(self.reading.made)
        owner = script.names.owner(function) if function is not None else None
        if owner is not None and any(
            script.roles.calls.method(Definition(script, owner), name) is not None for name in _ITEM_METHODS[:1]
        ):
            raise Unproven("a dataset makes it")

    # Values

    def _value(self, script: Script, node: syntax.BaseExpression, depth: int, *, runs: bool = False) -> None:
        """Raises Unproven unless what an expression stands for can be sent, and its code, where it ``runs``, is closed."""
        question = "value that runs" if runs else "value"
        if (node, question) in self._seen:
            return
        self._seen.add((node, question))
        if depth > _DEEPEST:
            raise Unproven("the dataset is made of too much to be followed")
        match node:
            case syntax.Name() | syntax.Attribute():
                self._named(script, node, depth, runs=runs)
            case syntax.Call():
                self._made(script, node, depth, runs=runs)
            case syntax.Lambda():
                self._lambda(script, node)
            case syntax.GeneratorExp() if self.are_sent:
                raise Unproven(f"`{shown(script, node)}` cannot be sent to workers")
            case syntax.FormattedString() | syntax.Comparison():
                pass
            case syntax.Subscript(value=value):
                if self.are_sent or runs:
                    self._value(script, value, depth + 1, runs=runs)
                else:
                    self._reads(script, value)
            case syntax.ListComp(elt=element) | syntax.SetComp(elt=element):
                self._value(script, element, depth + 1)
            case syntax.DictComp(key=key, value=value):
                self._value(script, key, depth + 1)
                self._value(script, value, depth + 1)
            case _:
                for child in _parts(node):
                    self._value(script, child, depth + 1, runs=runs)

    def _lambda(self, script: Script, node: syntax.Lambda) -> None:
        if self.are_sent:
            raise Unproven("a lambda cannot be sent to workers where they are spawned")
        self._code(script, node)

    def _unknown(self, clause: str, *, runs: bool) -> None:
        """Raises Unproven where what is not known must be sent, or holds code that runs for each item."""
        if runs or self.are_sent:
            raise Unproven(clause)

    def _named(self, script: Script, node: syntax.Name | syntax.Attribute, depth: int, *, runs: bool) -> None:
        name = last_name(node)
        assert name is not None
        if isinstance(node, syntax.Name) and name in _BUILTINS:
            return
        if isinstance(node, syntax.Attribute) and script.role(node.value) in _TRAINS:
            raise Unproven(f"`{shown(script, node)}` is part of a network, or of what trains it")
        dotted = script.name(node)
        definition = script.definition(node)
        if definition is not None:
            self._defined(definition, depth)
            return
        if dotted is not None and script.imported_binding(dotted)[0] is None:
            if self.are_sent and dotted.startswith(("random.", "numpy.random.")):
                raise Unproven(f"`{shown(script, node)}` is sent with the generator that it draws from")
            if self.are_sent and (_is_module(script, node) or dotted.startswith(_OF_PROCESS)):
                raise Unproven(f"`{shown(script, node)}` cannot be sent to workers")
            self._library(script, node, dotted)
            return
        self._reads(script, node)
        owner, method = self._method(script, node)
        if owner is not None and method is not None:
            self._function(method)
            self._bound(owner, method)
            if is_property(method):
                for result in returned(method):
                    self._value(method.script, result, depth + 1, runs=runs)
            return
        found = list(self._set_to(script, node))
        if found:
            for other, value in found:
                self._value(other, value, depth + 1, runs=runs)
        elif not self._is_plain(script, node):
            self._unknown(f"what `{shown(script, node)}` is, is not known", runs=runs)

    def _reads(self, script: Script, node: syntax.Node) -> None:
        read = changing.held(script, node)
        if read is None:
            return
        if script.role(node) not in _PLAIN:
            self.read.add(read)
        elif not (isinstance(node, syntax.Name) and read[0]):
            self.plain.add(read)

    def _set_to(
        self, script: Script, node: syntax.Name | syntax.Attribute
    ) -> Iterator[tuple[Script, syntax.BaseExpression]]:
        """What a variable, parameter or attribute is set to: each value that is seen, wherever it is set."""
        if isinstance(node, syntax.Attribute):
            owner = script.value(node.value).definition
            if owner is not None and isinstance(owner.node, syntax.ClassDef):
                yield from ((other, value) for other, value, _ in script.roles.assigned_on_self(owner, node.attr.value))
                return
            dotted = script.names.dotted(node)
            if dotted is not None:
                binding, home = script.imported_binding(dotted)
                if binding is not None and home is not None and binding.value is not None:
                    yield home, binding.value
            return
        for binding in script.names.reaching(node):
            if binding.kind is Kind.PARAMETER and isinstance(binding.node, syntax.Param):
                yield from self._passed(script, binding.node)
            elif binding.kind is Kind.IMPORT and binding.dotted is not None:
                reached, home = script.imported_binding(binding.dotted)
                if reached is not None and home is not None and reached.value is not None:
                    yield home, reached.value
            elif _is_folder(script, binding):
                continue
            elif binding.value is not None and (binding.path or binding.kind is Kind.FOR):
                yield from ((script, value) for value in _taken_from(script, binding.value))
            elif binding.value is not None:
                yield script, binding.value

    def _method(self, script: Script, node: syntax.Node) -> tuple[Definition | None, Definition | None]:
        """The object's class and the method that an attribute is, if it is one."""
        owner = script.value(node.value).definition if isinstance(node, syntax.Attribute) else None
        if owner is None or not isinstance(owner.node, syntax.ClassDef) or not isinstance(node, syntax.Attribute):
            return None, None
        method = owner.script.roles.calls.method(owner, node.attr.value)
        return owner, method if method is not None and isinstance(method.node, syntax.FunctionDef) else None

    def _bound(self, owner: Definition, method: Definition) -> None:
        """A method is sent with its object."""
        assert isinstance(method.node, syntax.FunctionDef)
        if not self.are_sent or any(last_name(each.decorator) in _UNBOUND for each in method.node.decorators):
            return
        for up in owner.script.roles.calls.lineage(owner):
            for target in up.script.source.inside(up.node, syntax.AssignTarget):
                if changing.is_on_self(target.target) and up.script.role(target.target) in _TRAINS:
                    raise Unproven(f"`{method.name}` would be sent with `{shown(up.script, target.target)}`")
        self._instance(owner, 1)

    def _passed(self, script: Script, parameter: syntax.Param) -> Iterator[tuple[Script, syntax.BaseExpression]]:
        function = script.source.enclosing(parameter, syntax.FunctionDef, syntax.Lambda)
        if not isinstance(function, syntax.FunctionDef):
            return
        if function in self._made_here:
            yield from self._given.get(parameter, ())
        else:
            passed = script.values.passed(parameter)
            yield from ((other, value) for other, value in passed if value is not None)
        if parameter.default is not None:
            yield script, parameter.default

    def _is_plain(self, script: Script, node: syntax.Name | syntax.Attribute) -> bool:
        """Whether it is a number, string or tensor, or an option of the command line."""
        if script.role(node) in _HELD or (isinstance(node, syntax.BaseExpression) and script.constant(node) is not None):
            return True
        if isinstance(node, syntax.Name) and any(_is_folder(script, each) for each in script.names.reaching(node)):
            return True
        return isinstance(node, syntax.Attribute) and any(
            isinstance(made, syntax.Call) and (last_name(made.func) or "").startswith("parse_")
            for _, made in script.roles.origins(node.value)
        )

    def _library(self, script: Script, node: syntax.Node, dotted: str) -> None:
        if dotted.partition(".")[0] not in _PACKAGES and dotted not in _BUILTINS:
            raise Unproven(f"what `{shown(script, node)}` keeps is not known")

    def _made(self, script: Script, call: syntax.Call, depth: int, *, runs: bool) -> None:
        name = script.name(call.func)
        if name is None and isinstance(call.func, syntax.Name) and not script.names.reaching(call.func):
            name = call.func.value
        definition, callee = script.definition(call.func), script.callee(call)
        if name is not None and definition is None:
            self._made_by_library(script, call, name, depth)
        elif definition is not None and isinstance(definition.node, syntax.ClassDef):
            self._new(script, call, definition, depth)
        elif callee is not None and isinstance(callee.node, syntax.FunctionDef):
            results = list(returned(callee))
            if not results:
                self._unknown(f"what `{shown(script, call)}` gives is not known", runs=runs)
            for result in results:
                self._value(callee.script, result, depth + 1, runs=runs)
        elif not isinstance(call.func, syntax.Attribute):
            self._unknown(f"what `{shown(script, call)}` gives is not known", runs=runs)
        elif script.role(call.func.value) is Role.MODULE:
            raise Unproven(f"`{shown(script, call)}` is part of a network")
        elif self.are_sent and call.func.attr.value in _VIEWS:
            raise Unproven(f"`{shown(script, call)}` cannot be sent to workers")
        elif call.func.attr.value == "requires_grad_":
            raise Unproven(f"`{shown(script, call)}` may be trained")
        elif script.role(call) not in _HELD and call.func.attr.value not in _READS:
            self._value(script, call.func.value, depth + 1, runs=runs)
            for arg in call.args:
                self._value(script, arg.value, depth + 1, runs=runs)

    def _made_by_library(self, script: Script, call: syntax.Call, name: str, depth: int) -> None:
        is_standard = "." in name and name.partition(".")[0] in sys.stdlib_module_names
        is_not_sent = name in _NOT_SENT or name.startswith(_NOT_SENT_PACKAGES)
        if self.are_sent and (is_not_sent or (is_standard and not name.startswith(_SENT))):
            raise Unproven(f"`{shown(script, call)}` cannot be sent to workers, or belongs to one process")
        if name in _GENERATORS:
            raise Unproven(f"each worker would draw from a copy of `{shown(script, call)}`")
        if name.startswith("contextvars."):
            raise Unproven(f"`{shown(script, call)}` has a value of its own in each process")
        if name in library.PARAMETERS or _asks_for_gradients(script, call):
            raise Unproven(f"`{shown(script, call)}` may be trained")
        if name == "collections.defaultdict" and not _gives_the_same(script, call):
            raise Unproven(f"reading `{shown(script, call)}` adds to a copy of it in each worker")
        if self.are_sent and name == "numpy.load" and _may_be_archive(script, call):
            raise Unproven(f"`{shown(script, call)}` may be an open file (`.npz`), which workers would read at once")
        self._library(script, call.func, name)
        last = name.rpartition(".")[2]
        if last in _READS:
            return
        for arg in call.args:
            # Have: `torch.randn(4, generator=...)` draws from it at once, and keeps nothing of it; a sampler keeps it.
            if arg.keyword is None or arg.keyword.value != "generator" or last not in _DRAWS:
                runs = last in _RUN or is_name(arg.keyword, *_RUN)
                for part in _taken_from(script, arg.value) if name in _TAKES_ALL else [arg.value]:
                    self._value(script, part, depth + 1, runs=runs)

    def _new(self, script: Script, call: syntax.Call, definition: Definition, depth: int) -> None:
        """An object of a first-party class: what it is given is looked at where it is made, not at every call."""
        init = definition.script.roles.calls.method(definition, "__init__")
        if init is not None and not any(arg.star for arg in call.args):
            self._made_here.add(init.node)
            for arg in call.args:
                parameter = reach.parameter_of(script, init, call, arg)
                if parameter is not None:
                    self._given.setdefault(parameter, []).append((script, arg.value))
        for arg in call.args:
            self._value(script, arg.value, depth + 1)
        self._instance(definition, depth)

    # Definitions

    def _defined(self, definition: Definition, depth: int) -> None:
        if isinstance(definition.node, syntax.FunctionDef):
            self._place(definition)
            self._function(definition)
        else:
            self._instance(definition, depth)

    def _place(self, definition: Definition) -> None:
        """Raises Unproven where workers that are spawned would not find what is defined under its name."""
        source = definition.script.source
        if self.are_sent and any(
            isinstance(up, (syntax.FunctionDef, syntax.If)) for up in source.ancestors(definition.node)
        ):
            raise Unproven(f"`{definition.name}` is not defined at the top of its file, where workers would find it")
        if self.are_sent and len(definition.script.names.module.bindings.get(definition.name, ())) > 1:
            raise Unproven(f"`{definition.name}` has another meaning later, by which workers would find it")
        deleted = (each for each in source.of(syntax.Del) if changing.is_at_the_top(definition.script, each))
        if self.are_sent and any(source.text(each.target) == definition.name for each in deleted):
            raise Unproven(f"`{definition.name}` is deleted, and workers would not find it")

    methods: tuple[str, ...] = (*_ITEM_METHODS, *_CALLED)
    is_in_training = False
    """Whether the code stays in the training process."""

    def _instance(self, definition: Definition, depth: int) -> None:
        if (definition.node, "instance") in self._seen:
            return
        self._seen.add((definition.node, "instance"))
        self._instances.append(definition)
        self.classes |= {owner.node for owner in definition.script.roles.calls.lineage(definition)}
        self._place(definition)
        calls = definition.script.roles.calls
        for base in calls.foreign_bases(definition):
            if base.partition(".")[0] not in _PACKAGES | {"object", "abc", "enum"} or "IterableDataset" in base:
                raise Unproven(f"what `{base}` does with `{definition.name}` is not known")
        for owner in calls.lineage(definition):
            assert isinstance(owner.node, syntax.ClassDef)
            for given in owner.node.bases:
                if owner.script.name(given.value) is None and owner.script.definition(given.value) is None:
                    raise Unproven(f"the base `{shown(owner.script, given.value)}` of `{definition.name}` is out of sight")
            self._decorated(owner)
            self._attributes(owner, depth)
            for function in owner.node.body.body:
                if isinstance(function, syntax.FunctionDef) and function.name.value in _PICKLES:
                    raise Unproven(f"`{definition.name}` is sent to workers in its own way (`{function.name.value}`)")
                if self.are_sent and isinstance(function, syntax.FunctionDef) and function.name.value == "__del__":
                    raise Unproven(f"`{definition.name}.__del__` would run in each worker too")
        for name in self.methods:
            method = calls.method(definition, name)
            if method is not None:
                self._function(method)
                if name in _ITEM_METHODS[:2]:
                    self._items.append(method)
        for owner in calls.lineage(definition):
            for function in owner.script.source.inside(owner.node, syntax.FunctionDef):
                is_seen = owner.node is not definition.node and (function, "code") in self._seen
                is_asked = not self.is_in_training and _BY_PYTHON.match(function.name.value) is not None
                method = calls.method(definition, function.name.value) if is_seen or is_asked else None
                if method is not None and isinstance(method.node, syntax.FunctionDef):
                    self._function(method)

    def _decorated(self, owner: Definition) -> None:
        """Raises Unproven where a decorator may put another class in the place of a class."""
        assert isinstance(owner.node, syntax.ClassDef)
        script = owner.script
        for decorator in owner.node.decorators:
            made = decorator.decorator
            func = made.func if isinstance(made, syntax.Call) else made
            definition, name = script.definition(func), script.name(func)
            if definition is None and (name is None or name.partition(".")[0] in _PACKAGES | {"attr", "attrs"}):
                continue
            around = definition.script.source if definition is not None else script.source
            if definition is None or any(True for _ in around.inside(definition.node, syntax.ClassDef)):
                raise Unproven(f"what `{shown(script, func)}` makes of `{owner.name}` is not known")

    def _attributes(self, owner: Definition, depth: int) -> None:
        """What the class keeps must be sent, also what the code of the items does not read."""
        script = owner.script
        for target in script.source.inside(owner.node, syntax.AssignTarget):
            attribute, assign = target.target, script.source.parents[target]
            if (
                changing.is_on_self(attribute)
                and isinstance(assign, syntax.Assign)
                and isinstance(attribute, syntax.Attribute)
            ):
                self._value(script, assign.value, depth + 1)
        for call in script.source.inside(owner.node, syntax.Call):
            if isinstance(call.func, syntax.Attribute) and call.func.attr.value == "__init__":
                for arg in call.args:
                    if not is_name(arg.value, "self"):
                        self._value(script, arg.value, depth + 1)

    # Code

    def _function(self, definition: Definition) -> None:
        if (definition.node, "code") in self._seen:
            return
        self._seen.add((definition.node, "code"))
        assert isinstance(definition.node, syntax.FunctionDef)
        self._overridden(definition)
        for decorator in definition.node.decorators:
            expression = decorator.decorator
            func = expression.func if isinstance(expression, syntax.Call) else expression
            name = definition.script.name(func)
            if name in _CACHES and not self._is_repeatable(definition, 0):
                raise Unproven(f"`{definition.name}` keeps what it has given, and may draw random numbers")
            program = definition.script.program
            if self.are_sent and name in _CACHES and program.mentions(definition.script, b"cache_info"):
                raise Unproven(f"the training may ask what `{definition.name}` keeps (`cache_info`)")
            if name in _CACHES and program.mentions(definition.script, b"cache_clear"):
                raise Unproven(f"workers keep what `{definition.name}` has given (`cache_clear`)")
            if last_name(func) not in _PLAIN_DECORATORS and (name is None or name.partition(".")[0] not in _PACKAGES):
                raise Unproven(f"what `{shown(definition.script, func)}` does with `{definition.name}` is not known")
        self._code(definition.script, definition.node)

    def _overridden(self, definition: Definition) -> None:
        """Looks at what objects that workers hold have in the place of a method of a base."""
        assert isinstance(definition.node, syntax.FunctionDef)
        owner = definition.script.names.owner(definition.node)
        for each in self._instances if owner is not None else ():
            calls = each.script.roles.calls
            if each.node is not owner and any(base.node is owner for base in calls.lineage(each)):
                method = calls.method(each, definition.name)
                if method is not None and isinstance(method.node, syntax.FunctionDef):
                    self._function(method)

    def _is_repeatable(self, definition: Definition, depth: int) -> bool:
        """Whether the calls of a function are known not to draw random numbers."""
        script = definition.script
        for call in script.source.inside(definition.node, syntax.Call):
            callee, name = script.callee(call), script.name(call.func)
            if callee is not None and isinstance(callee.node, syntax.FunctionDef) and depth < _DEEPEST:
                if callee.node is not definition.node and not self._is_repeatable(callee, depth + 1):
                    return False
            elif _DRAWN.search(name or last_name(call.func) or "") or (name is None and changing.is_on_self(call.func)):
                return False
        return True

    def _code(self, script: Script, function: syntax.FunctionDef | syntax.Lambda) -> None:
        """Raises Unproven unless code reads only what does not change, and writes nothing that outlives it."""
        source, body = script.source, function.body
        declared: list[syntax.Node] = [*source.inside(body, syntax.Global), *source.inside(body, syntax.Nonlocal)]
        if declared:
            raise Unproven(f"`{shown(script, declared[0])}` in what reads the items changes a copy in each worker")
        self.own.add(function)
        for base, node in changing.written(script, body):
            is_index = isinstance(node, syntax.AugAssign) and _is_number(script, base)
            if self.is_in_training:
                self._check_unread(script, base, function)
            elif not is_index and not fresh.is_of_item(script, base, node):
                is_of_numbers = isinstance(node, syntax.AugAssign) and isinstance(base, syntax.Name)
                is_added = is_of_numbers and script.role(base) in (Role.TENSOR, Role.ARRAY)
                raise (AddsUp if is_added else Unproven)(
                    f"`{shown(script, node)}` in what reads the items changes a copy in each worker"
                )
        for node in source.inside(body, syntax.Raise):
            raised = node.exc.func if isinstance(node.exc, syntax.Call) else node.exc
            if raised is not None and script.definition(raised) is not None:
                raise Unproven(f"`{shown(script, raised)}` reaches the training from a worker in another form")
        for name in source.inside(body, syntax.Name):
            if name.value in _OUT_OF_SIGHT:
                raise Unproven(f"`{name.value}` in what reads the items is not followed")
            if name.value in _ASK_FOR_PROCESS or (name.value == _OF_PASS and not self._begins):
                raise Unproven(f"what reads the items asks for its process (`{name.value}`)")
            self._draws = self._draws or _DRAWN.search(name.value) is not None
            self._name_in_code(script, name, function)
        for attribute in source.inside(body, syntax.Attribute):
            self._attribute_in_code(script, attribute)
        for call in source.inside(body, syntax.Call):
            self._call_in_code(script, call)

    def _check_unread(self, script: Script, base: syntax.BaseExpression, function: syntax.Node) -> None:
        """Raises Unproven where code other than a sampler's own reads what it sets: with workers it runs ahead."""
        owner = script.names.owner(function) if isinstance(function, syntax.FunctionDef) else None
        holder = _holder(base)
        if not isinstance(holder, syntax.Attribute):
            return
        for other in script.everywhere(holder.attr.value.encode()):
            for each in other.source.of(syntax.Attribute):
                is_own = owner is not None and other is script and script.source.contains(owner, each)
                if each.attr.value == holder.attr.value and not is_own:
                    raise Unproven(f"a sampler sets `{shown(script, holder)}`, which other code reads: it would run ahead")

    def _name_in_code(self, script: Script, name: syntax.Name, function: syntax.Node) -> None:
        parent = script.source.parents[name]
        if isinstance(parent, syntax.Attribute) and parent.attr is name:
            return
        if isinstance(parent, syntax.Arg) and parent.keyword is name:
            return
        if isinstance(parent, syntax.Attribute) and script.names.dotted(parent) is not None:
            return
        if script.name(name) == "os.environ":
            self.read.add(changing.ENVIRONMENT)
        scope = script.names.scope(name).lookup(name.value)
        if self.are_sent and scope is script.names.module and not self._is_within(script, scope, function):
            clause = started.set_elsewhere(script, scope.bindings.get(name.value, []), name.value)
            if clause is not None:
                raise Unproven(clause)
        if scope is None:
            if name.value not in _BUILTINS and script.name(name) is None and isinstance(parent, syntax.Call):
                raise Unproven(f"what `{name.value}` is, is not known")
        elif (dotted := script.name(name)) is not None and script.imported_binding(dotted)[0] is None:
            self._library(script, name, dotted)
        elif not self._is_within(script, scope, function) and name.value != "self":
            if not self.is_in_training:
                self._outer[script, name.value] = scope
            self._value(script, name, 1, runs=isinstance(parent, syntax.Call) and parent.func is name)

    def _attribute_in_code(self, script: Script, attribute: syntax.Attribute) -> None:
        base = attribute.value
        if script.role(base) in _TRAINS:
            raise Unproven(f"`{shown(script, attribute)}` is part of a network, or of what trains it")
        if (owner := script.definition(base)) is not None and isinstance(owner.node, syntax.FunctionDef):
            self._reads(script, attribute)
            return
        if is_name(base, "self"):
            call = script.source.parents[attribute]
            is_called = isinstance(call, syntax.Call) and call.func is attribute
            if not (is_called and isinstance(call, syntax.Call) and script.callee(call) is not None):
                self._value(script, attribute, 1, runs=is_called)
        elif (dotted := script.names.dotted(attribute)) is not None and script.program.module(script, dotted) is None:
            if dotted == "os.environ":
                self.read.add(changing.ENVIRONMENT)
        elif dotted is not None and script.imported_binding(dotted)[0] is not None:
            call = script.source.parents[attribute]
            self._value(script, attribute, 1, runs=isinstance(call, syntax.Call) and call.func is attribute)
        else:
            self._reads(script, attribute)
            owner = script.value(base).definition
            if owner is not None and isinstance(owner.node, syntax.ClassDef):
                method = owner.script.roles.calls.method(owner, attribute.attr.value)
                if method is not None and isinstance(method.node, syntax.FunctionDef):
                    self._function(method)

    def _call_in_code(self, script: Script, call: syntax.Call) -> None:
        name = script.name(call.func)
        if name is not None and script.definition(call.func) is None:
            if name.startswith(("torch.cuda.", "multiprocessing.", "threading.")):
                raise Unproven(f"`{shown(script, call.func)}` in what reads the items belongs to one process")
            if name.startswith("linecache."):
                raise Unproven(f"`{shown(script, call.func)}` in what reads the items keeps the files that it has read")
            if name == "os.getenv":
                self.read.add(changing.ENVIRONMENT)
            self._check_written(script, call)
            self._check_told(script, call, name)
            self._library(script, call.func, name)
            return
        self._check_written(script, call)
        self._check_told(script, call, "")
        if script.role(call.func) is Role.MODULE:
            raise Unproven(f"`{shown(script, call.func)}`, a network, runs in what reads the items")
        callee = script.callee(call)
        if callee is not None and isinstance(callee.node, syntax.FunctionDef):
            self._function(callee)
            return
        definition = script.definition(call.func)
        if definition is not None and isinstance(definition.node, syntax.ClassDef):
            self._instance(definition, 1)
        elif isinstance(call.func, syntax.Name) and script.names.reaching(call.func):
            self._value(script, call.func, 1, runs=True)
        elif not isinstance(call.func, (syntax.Name, syntax.Attribute)):
            raise Unproven(f"what `{shown(script, call.func)}` does is not known")

    def _check_written(self, script: Script, call: syntax.Call) -> None:
        """Raises Unproven where the code of the items writes a file, as one that keeps what it has computed."""
        if self.are_sent and changing.written_path(script, call) is not None:
            raise Unproven(f"`{shown(script, call)}` in what reads the items writes a file, which others may read meanwhile")

    def _check_told(self, script: Script, call: syntax.Call, name: str) -> None:
        """Raises Unproven where the code of the items tells something as it goes, other than of an error."""
        method = call.func.attr.value if isinstance(call.func, syntax.Attribute) else ""
        holder = call.func.value if isinstance(call.func, syntax.Attribute) else None
        is_logger = not name and method in _LEVELS and holder is not None and _is_logger(script, holder)
        is_told = name == "print" or name.startswith(_TOLD) or is_logger
        if self.are_sent and is_told and script.source.enclosing(call, syntax.ExceptHandler) is None:
            raise Unproven(f"`{shown(script, call)}` in what reads the items tells it elsewhere, and ahead of the training")

    @staticmethod
    def _is_within(script: Script, scope: Scope, function: syntax.Node) -> bool:
        return script.source.contains(function, scope.node)


class _Sampled(_Proof):
    """What draws the order of the items stays in the training process, but with workers it runs ahead."""

    methods = _SAMPLED
    is_in_training = True

    def __init__(self, proof: _Proof) -> None:
        super().__init__(proof.reading, are_sent=False)
        self.read, self.plain, self.classes, self.own = proof.read, proof.plain, proof.classes, proof.own

    def look_at(self, script: Script, sampler: syntax.BaseExpression) -> None:
        """Raises Unproven."""
        self._value(script, sampler, 0, runs=True)


def _is_module(script: Script, node: syntax.Name | syntax.Attribute) -> bool:
    """Whether it is a library's module itself, as in ``self.lib = np``, and not something of it."""
    if isinstance(node, syntax.Attribute):
        return node.attr.value in _MODULES
    imports = [each for each in script.names.reaching(node) if each.kind is Kind.IMPORT]
    return any(
        script.source.enclosing(each.node, syntax.Import) is not None or (each.dotted or "").rpartition(".")[2] in _MODULES
        for each in imports
    )


def _is_logger(script: Script, holder: syntax.BaseExpression) -> bool:
    return "log" in script.text(holder).lower() or any(
        isinstance(made, syntax.Call) and (other.name(made.func) or "").startswith("logging.")
        for other, made in script.roles.origins(holder)
    )


def _is_folder(script: Script, binding: Binding) -> bool:
    """Whether a binding is the name of a temporary folder: ``with TemporaryDirectory() as folder``."""
    made = binding.value
    is_call = isinstance(made, syntax.Call) and script.is_call_to(made, "tempfile.TemporaryDirectory")
    return binding.kind is Kind.WITH and is_call


def _gives_the_same(script: Script, call: syntax.Call) -> bool:
    """Whether a ``defaultdict`` gives an empty value for what it does not hold, whatever was asked for before."""
    factory = call.args[0].value if call.args else None
    return isinstance(factory, syntax.Name | syntax.Lambda) and not (
        script.program.mentions(script, b"default_factory")
        or (isinstance(factory, syntax.Name) and factory.value not in _FACTORIES)
        or any(True for _ in script.source.inside(factory, syntax.Call))
    )


def _may_be_archive(script: Script, call: syntax.Call) -> bool:
    """Whether ``np.load`` may keep a file open: what it gives is asked for arrays by their names afterwards."""
    path = script.argument(call, "file", 0)
    if path is not None and script.text(path).strip("\"'").endswith(".npy"):
        return False
    target = script.source.parents[call]
    names = {last_name(each.target) for each in target.targets} if isinstance(target, syntax.Assign) else set()
    keyed = (each for each in script.source.of(syntax.Subscript) if _is_keyed(script, each))
    asked = (each for each in script.source.of(syntax.Attribute) if each.attr.value in _OF_ARCHIVES)
    return any(last_name(each.value) in names for kind in (keyed, asked) for each in kind)


def _is_keyed(script: Script, part: syntax.Subscript) -> bool:
    index = part.slice[0].slice
    return isinstance(index, syntax.Index) and script.role(index.value) is Role.STRING


def _asks_for_gradients(script: Script, call: syntax.Call) -> bool:
    given = script.argument(call, "requires_grad")
    known = script.constant(given) if given is not None else None
    return given is not None and (known is None or known.value is not False)


def _taken_from(script: Script, value: syntax.BaseExpression) -> list[syntax.BaseExpression]:
    """What the parts of a value are made of: those of ``zip(a, b)`` are none of the iterator's own."""
    if isinstance(value, syntax.GeneratorExp):
        return [value.elt]
    match value:
        case syntax.Call(func=syntax.Attribute(value=holder, attr=syntax.Name(method)), args=args) if (
            method in _VIEWS and method != "open"
        ):
            return [holder, *(arg.value for arg in args)]
    if isinstance(value, syntax.Call) and (script.name(value.func) or last_name(value.func)) in _ITERATORS:
        return [each for arg in value.args for each in _taken_from(script, arg.value)]
    return [value]


def _is_one_of_many(script: Script, node: syntax.Node, depth: int) -> bool:
    """Whether an object may be one of many that live at once: made in a loop or comprehension that goes over more than a few
    things written out, and not kept in a variable that the next turn sets anew."""
    source, function = script.source, script.function(node)
    statement = source.enclosing(node, syntax.Assign, syntax.Return)
    is_variable = isinstance(statement, syntax.Assign) and all(_is_variable(each.target) for each in statement.targets)
    for up in source.ancestors(node):
        if up is function:
            break
        if isinstance(up, (syntax.ListComp, syntax.DictComp, syntax.SetComp, syntax.GeneratorExp)):
            if not _is_few(up.for_in.iter):
                return True
        elif isinstance(up, syntax.For) and not is_variable and not _is_few(up.iter):
            return True
    if function is None or (is_variable and function.name.value != "__init__" and not _is_given_back(script, function)):
        return False
    return depth < _DEEPEST and any(_is_one_of_many(other, call, depth + 1) for other, call in script.call_sites(function))


def _is_variable(target: syntax.BaseExpression) -> bool:
    if isinstance(target, (syntax.Tuple, syntax.List)):
        return all(_is_variable(element.value) for element in target.elements)
    return isinstance(target, syntax.Name)


def _is_few(iterated: syntax.BaseExpression) -> bool:
    return isinstance(iterated, (syntax.List, syntax.Tuple, syntax.Dict, syntax.Set)) and len(iterated.elements) <= _FEW


def _is_given_back(script: Script, function: syntax.FunctionDef) -> bool:
    return any(script.function(each) is function for each in script.source.inside(function, syntax.Return))


def _parts(node: syntax.Node) -> Iterable[syntax.BaseExpression]:
    """The expressions right below one, through what holds them."""
    for child in node.children:
        if isinstance(child, syntax.BaseExpression):
            yield child
        else:
            yield from _parts(child)


def _is_number(script: Script, node: syntax.Node) -> bool:
    """Whether it is a variable that holds a number, or what a dataset is asked for: ``+=`` binds it anew."""
    if not isinstance(node, syntax.Name):
        return False
    function = script.function(node)
    is_asked_for = function is not None and function.name.value in _ITEM_METHODS
    bindings = script.names.reaching(node)
    return script.role(node) in (Role.NUMBER, Role.STRING) or (
        is_asked_for and all(each.kind in (Kind.PARAMETER, Kind.AUGMENT) for each in bindings)
    )


def _holder(node: syntax.BaseExpression) -> syntax.BaseExpression:
    """The variable or attribute whose object an assignment changes: ``x`` of ``x[0].y``."""
    while isinstance(node, (syntax.Attribute, syntax.Subscript)) and not is_name(node.value, "self"):
        node = node.value
    return node
