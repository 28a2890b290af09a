"""Loaders: what one reads, what workers would do to that, and how often it is read from its beginning."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from speedlint.facts import syntax
from speedlint.shapes import entry, evaluation
from speedlint.shapes.data import apart, collating, datasets, item_bytes, rows, sent, tokenizing
from speedlint.shapes.data.loader_settings import POSITIONS, TORCH_LOADER, Setting
from speedlint.shapes.model import widths
from speedlint.solve import changing, configs, held, off, reach
from speedlint.solve.calls import item_functions
from speedlint.solve.flow import once
from speedlint.solve.names import last_name
from speedlint.solve.terms import Definition
from speedlint.solve.unpacking import advanced, gone_over
from speedlint.source import is_name
from speedlint.torch import library, public
from speedlint.torch.methods import MOVES
from speedlint.torch.public import Item
from speedlint.torch.words import Frequency, Place, Role

if TYPE_CHECKING:
    from speedlint.ask.script import Script

_FOREIGN = library.LOADERS - {"timm.data.create_loader"}
_RUN_EACH_EPOCH = frozenset({"train_dataloader", "val_dataloader"})
_RUN_ONCE = frozenset({"test_dataloader", "predict_dataloader"})
_LOOKS_AT = frozenset({"len", "enumerate", "zip", "list", "tuple", "next", "print", "isinstance", "type"})
_OF_LOADING = frozenset({"num_workers", "pin_memory", "persistent_workers", "prefetch_factor", "worker_init_fn"})
_A_HANDFUL = 50
_DEEPEST = 6
"""Calls that are followed up from where something stands."""
_SMALL = 64
"""Pixels of a side up to which a network of grey images is bound by the launch of its kernels."""
_SMALL_COPY = 100_000
"""Bytes of a copy to the GPU that takes some ten microseconds, about what it takes to ask for it."""
_PLAIN_DECORATORS = ("torch.", "staticmethod", "classmethod")
"""Decorators that leave it to the calls of a function when it runs."""
_ENDLESS = 10_000_000
_MANY_ITEMS = 64
"""Items of a batch from which on their tensors may be more open files than a process may hold, 1024 on most systems: with
four tensors each and the two batches that each of two workers has ready."""
_SUBSETS = ("torch.utils.data.Subset", "torch.utils.data.dataset.Subset")
_OVER_ROUNDS_AND_CLIENTS = 2
_DEPTH = 6


class Start(NamedTuple):
    """A place that reads a loader from its beginning: a ``for``, a comprehension, or ``iter(...)``."""

    script: Script
    node: syntax.Node
    repeated: bool


class Loader:
    """The facts about one call that makes a loader."""

    def __init__(self, script: Script, call: syntax.Call) -> None:
        self.script, self.call = script, call
        self.is_torch = script.name(call.func) == TORCH_LOADER

    @property
    def hides_arguments(self) -> bool:
        """Whether any argument may be passed out of sight."""
        return self.script.hides_arguments(self.call)

    def setting(self, name: str) -> Setting:
        """One parameter of the loader."""
        position = POSITIONS.get(name) if self.is_torch or name == "dataset" else None
        expression = self.script.argument(self.call, name, position)
        if expression is None:
            return Setting(name, None, None)
        holder = next((arg.value for arg in self.call.args if arg.star == "**" and not self._holds(arg, expression)), None)
        written = any(arg.value is expression for arg in self.call.args)
        return Setting(name, expression, self.script.constant(expression), None if written else holder)

    @cached_property
    def has_none_by_configs(self) -> bool:
        """Whether all configurations of the project give it 0 workers, where the program itself does not say how many."""
        workers = self.setting("num_workers")
        if workers.expression is None or workers.value is not None:
            return False
        known = configs.alike(self.script, workers.expression)
        return known == 0 and not isinstance(known, bool)

    def _holds(self, arg: syntax.Arg, expression: syntax.BaseExpression) -> bool:
        entries = self.script.values.entries(arg.value) or {}
        return all(value is not expression for value in entries.values())

    def parameter(self, name: str) -> syntax.BaseExpression | None:
        """What is passed for a parameter."""
        return self.setting(name).expression

    # What it reads

    @cached_property
    def origins(self) -> list[datasets.Origin]:
        """What its dataset may be."""
        dataset = self.parameter("dataset")
        return datasets.origins(self.script, dataset) if dataset is not None else []

    @cached_property
    def is_on_gpu(self) -> bool:
        """Whether its dataset or collate function may already put the batch on a GPU."""
        dataset = self.parameter("dataset")
        if dataset is not None and datasets.is_on_gpu(self.script, dataset):
            return True
        return any(datasets.touches_gpu(other, node) for other, node in self.collate)

    @property
    def moves_in_collate(self) -> list[tuple[Script, syntax.Call]]:
        """The calls by which its collate function, and nothing before it, puts tensors on a GPU."""
        dataset = self.parameter("dataset")
        if dataset is not None and datasets.is_on_gpu(self.script, dataset, [node for _, node in self.collate]):
            return []
        return [
            (other, move)
            for other, node in self.collate
            for move in other.source.inside(node, syntax.Call)
            if isinstance(move.func, syntax.Attribute)
            and move.func.attr.value in ("to", "cuda")
            and other.value(move).role is Role.TENSOR
            and other.roles.calls.place_of_move(move, Place.HOST) is not Place.HOST
        ]

    @property
    def is_in_memory(self) -> bool:
        """Whether making a batch only takes its items out of a tensor or list."""
        if self.tokenizes_batches or any(collating.works_on_each_item(*each) for each in self.collate):
            return False
        dataset = self.parameter("dataset")
        if dataset is not None and self.script.role(dataset) is Role.TENSOR:
            return True
        return bool(self.origins) and all(origin.is_in_memory for origin in self.origins)

    @cached_property
    def tokenizes_batches(self) -> bool:
        """Whether its own collate function cuts texts into tokens, some tenths of a millisecond each."""
        return any(
            tokenizing.tokenized(script, call) is not None
            for script, node in self.collate
            for call in script.source.inside(node, syntax.Call)
        )

    @cached_property
    def needs_workers(self) -> bool:
        """Whether it has no workers, and its items surely take time to make, while the training waits for them."""
        is_in_sight = not self.is_in_memory and not self.is_iterable and not self.is_made_of_anything
        is_in_sight = is_in_sight and not self._hands_on_what_is_not_seen
        return self.setting("num_workers").is_off and is_in_sight and bool(self.matters)

    @property
    def _hands_on_what_is_not_seen(self) -> bool:
        """Whether it makes no batches, of items of a dataset out of sight: that may be iterable, or make them itself."""
        size = self.parameter("batch_size")
        return size is not None and is_name(size, "None") and not all(origin.is_known for origin in self.origins)

    @property
    def pins_for_nothing(self) -> bool:
        """Whether pinning only moves what the training waits for: its own process would pin, and needs none or reads all
        in one pass."""
        is_of_one_pass = self.is_followed and not self.is_read_again
        return self.setting("num_workers").is_off and (is_of_one_pass or not self.needs_workers)

    @property
    def is_made_of_anything(self) -> bool:
        """Whether a lambda makes it, of whatever dataset it is handed."""
        around = self.script.source.enclosing(self.call, syntax.Lambda, syntax.FunctionDef)
        return isinstance(around, syntax.Lambda) and not any(origin.is_known for origin in self.origins)

    @property
    def has_few_rows(self) -> bool:
        """Whether its dataset is known to hold a handful of rows at most."""
        return bool(self.origins) and all(rows.are_few(origin) for origin in self.origins)

    @cached_property
    def has_small_batches(self) -> bool:
        """Whether its batches are known to be so small that a copy costs no more than to ask for it."""
        size = self.setting("batch_size")
        rows_of_batch = 1 if size.expression is None else size.value.value if size.value is not None else None
        if not isinstance(rows_of_batch, int) or self.hides_arguments or not self.origins:
            return False
        if any(self.parameter(name) is not None for name in ("collate_fn", "batch_sampler")):
            return False
        items = [item_bytes.of_item(origin) for origin in self.origins]
        return all(each is not None and each * rows_of_batch < _SMALL_COPY for each in items)

    @property
    def is_of_small_parts(self) -> bool:
        """Whether two loops around it make it anew for each of many parts of the data, as for clients in each round."""
        dataset = self.parameter("dataset")
        made = [(self.script, dataset), *self.script.roles.origins(dataset)] if dataset is not None else []
        is_part = any(place.is_call_to(node, *_SUBSETS) for place, node in made) or (
            bool(self.origins) and all(map(_picks_rows, self.origins))
        )
        return is_part and _loops_around(self.script, self.call) >= _OVER_ROUNDS_AND_CLIENTS

    @property
    def is_iterable(self) -> bool:
        """Whether its dataset is iterable and would be yielded by each worker as a whole."""
        return any(datasets.is_iterable(origin) for origin in self.origins)

    @cached_property
    def collate(self) -> list[tuple[Script, syntax.Node]]:
        """The collate function: first-party definitions, lambdas, and the arguments bound to it."""
        expression = self.parameter("collate_fn")
        if expression is not None:
            return list(self._functions(self.script, expression))
        return list(self._functions(*self._collates)) if self._collates is not None else []

    @cached_property
    def _collates(self) -> tuple[Script, syntax.BaseExpression] | None:
        """What the ``__init__`` of its class, of the project's, hands to the library's to put batches together by."""
        definition = self.script.definition(self.call.func)
        init = definition.script.roles.calls.method(definition, "__init__") if definition is not None else None
        call = _call_of_base(init) if init is not None else None
        given = init.script.argument(call, "collate_fn") if init is not None and call is not None else None
        return (init.script, given) if init is not None and given is not None else None

    def collates_by(self, script: Script, function: syntax.Node) -> bool:
        """Whether a function of ``script`` puts its batches together: by itself, or as the call of an object."""
        is_call = isinstance(function, syntax.FunctionDef) and function.name.value == "__call__"
        owner = script.names.owner(function) if is_call and isinstance(function, syntax.FunctionDef) else None
        return any(node is function or (owner is not None and node is owner) for _, node in self.collate)

    def _functions(self, place: Script, expression: syntax.BaseExpression) -> Iterator[tuple[Script, syntax.Node]]:
        for script, node in ((place, expression), *place.roles.origins(expression)):
            definition = script.definition(node) or script.value(node).definition
            if definition is not None:
                yield definition.script, definition.node
            elif chosen := [each.definition for each in script.roles.chosen(node) if each.definition is not None]:
                yield from ((each.script, each.node) for each in chosen)
            elif isinstance(node, syntax.Lambda):
                yield script, node
            elif isinstance(node, syntax.Subscript):
                for place, each in script.roles.calls.choices(node):
                    found = place.value(each).definition
                    yield from ((found.script, found.node),) if found is not None else ()
            elif isinstance(node, syntax.Call):
                yield script, node
                if script.name(node.func) == "functools.partial" and node.args:
                    yield from self._functions(script, node.args[0].value)
                made = script.definition(node.func)
                if made is not None:
                    yield made.script, made.node

    @property
    def goes_on_by_itself(self) -> bool:
        """Whether its class, of the project's, says what a pass over it is, and begins none of torch's there: it may keep
        one iterator for all."""
        definition = self.script.definition(self.call.func)
        method = definition.script.roles.calls.method(definition, "__iter__") if definition is not None else None
        return method is not None and not any(
            each.value == "super" for each in method.script.source.inside(method.node, syntax.Name)
        )

    @property
    def own_class(self) -> str | None:
        """What is not known of a loader that the project's own class collates or samples for."""
        definition = self.script.definition(self.call.func)
        if definition is not None and definition.script.roles.calls.method(definition, "__iter__") is not None:
            return f"what `{definition.name}.__iter__` makes of its batches is not known"
        init = definition.script.roles.calls.method(definition, "__init__") if definition is not None else None
        if init is None or not isinstance(init.node, syntax.FunctionDef) or len(init.node.params.params) <= 2:
            return None
        return f"what `{self.script.text(self.call.func)}` makes of its arguments is not known"

    @property
    def _unfollowed(self) -> str | None:
        """What of a loader of the project's own class is not followed into workers."""
        if self.parameter("collate_fn") is None and self._collates is not None:
            return f"what `{self.script.text(self.call.func)}` puts its batches together by is not followed"
        return self.own_class

    def worker_hazard(self) -> str | None:
        """Why worker processes cannot be proved to train the same, or None."""
        if (own := self._unfollowed) is not None:
            return own
        if self.script.is_test:
            return "a test says how it wants its loaders"
        size = self.parameter("batch_size")
        if size is not None and (known := self.script.constant(size)) is not None and known.value is None:
            return "`batch_size=None` sends each item alone from its worker"
        if is_unguarded(self.script, self.call):
            return respawned(self.script)
        if self.setting("persistent_workers").is_off:
            for start in filter(_begins_within_steps, self.starts):
                line = start.script.source.line(start.node)
                return f"line {line} begins it anew amid the steps, with new workers but for `persistent_workers=True`"
        if any(_keeps_batches(start) for start in self.starts):
            return "the loop keeps its batches, each of which holds a file of shared memory that a worker has made"
        if self._sends_many_tensors:
            return "each tensor of a batch that is not stacked is an open file, of which there may be too many"
        if any(_asks_for_errors(start) for start in self.starts):
            return "the training goes on after an error and reads what it says, which is another text from a worker"
        return self._changed_by_loop or apart.unproven(self.reading, are_sent=True)

    @property
    def _sends_many_tensors(self) -> bool:
        """Whether its collate function leaves the tensors of many items as they are: each of them, and of the batches that
        wait, is a file that is held open (torch, "Multiprocessing best practices")."""
        size = self.setting("batch_size")
        many = size.value is None or (isinstance(size.value.value, int) and size.value.value >= _MANY_ITEMS)
        return many and any(sent.is_unstacked(script, node) for script, node in self.collate)

    def changes_between_reads(self) -> str | None:
        """Why workers that stay alive would read another dataset than workers that are started anew, or None."""
        return self._unfollowed or self._changed_by_loop or apart.unproven(self.reading, are_sent=False)

    @property
    def adds_up_in_workers(self) -> bool:
        """Whether workers that stay alive would add up, pass by pass, what changes an item each time that it is read."""
        return apart.adds_up(self.reading)

    @cached_property
    def is_changed_between_reads(self) -> bool:
        """Whether the training surely sets what items are made of again and again, itself or by a method of the dataset:
        workers that stay alive would go on with what they were started with."""
        for origin in self.origins:
            if origin.definition is not None:
                uses = (*_as_dataset(self.uses), *reach.uses(origin.script, origin.node))
                if any(not _read_by_items(origin.definition).isdisjoint(_set_by(origin.definition, use)) for use in uses):
                    return True
                if any(map(_is_set_beside_pass, uses)):
                    return True
        return False

    @property
    def is_replaced_between_reads(self) -> bool:
        """Whether each turn but the first of the loop around its reads gives its name another loader, so that it is read
        once: ``if epoch > 0: loader = DataLoader(...)``."""
        match self.script.source.parents[self.call]:
            case syntax.Assign(targets=[syntax.AssignTarget(target=syntax.Name() as name)]):
                scope = self.script.names.scope(name)
                others = [each.node for each in scope.bindings.get(name.value, ()) if each.node is not name]
                starts = [start.node for start in self.starts if start.script is self.script]
                return any(self._is_replaced(name, start, other) for start in starts for other in others)
        return False

    def _is_replaced(self, name: syntax.Name, start: syntax.Node, other: syntax.Node) -> bool:
        source = self.script.source
        loop = source.enclosing(start, syntax.For, syntax.While)
        if not isinstance(loop, syntax.For) or source.contains(loop, name) or not source.contains(loop.body, other):
            return False
        branch = source.parents[source.parents[source.statement(other)]]
        turns = {each.value for each in source.inside(loop.target, syntax.Name)}
        return branch is loop or (
            isinstance(branch, syntax.If)
            and source.parents[source.parents[branch]] is loop
            and source.parents[source.statement(other)] is branch.body
            and _is_later_turn(branch.test, turns)
        )

    @property
    def _changed_by_loop(self) -> str | None:
        """What loops change in batches that a function of the project makes: they may hold the dataset's own objects, of
        which workers send copies."""
        if not self.collate and all(origin.is_in_memory or origin.definition is not None for origin in self.origins):
            return None
        changes = (text for start in self.starts for text in changes_of_batch(start))
        text = next(changes, None)
        return f"`{text}` may change what the dataset holds" if text is not None else None

    @property
    def reading(self) -> apart.Reading:
        """What its workers would read, and by what."""
        runs, begins, draws = (
            tuple(given for name in names if (given := self.parameter(name)) is not None)
            for names in (("collate_fn",), ("worker_init_fn",), ("sampler", "batch_sampler"))
        )
        return apart.Reading(self.script, self.call, self.parameter("dataset"), runs, draws, begins)

    # How often it is read

    @cached_property
    def uses(self) -> list[reach.Use]:
        """Where the loader goes."""
        return self._reached.uses

    @cached_property
    def _reached(self) -> reach.Reached:
        return reach.reached(self.script, self.call)

    @cached_property
    def starts(self) -> list[Start]:
        """The places that read it from its beginning."""
        found: dict[int, Start] = {}
        for use in self.uses:
            node = _started_by(use)
            if node is not None and (id(node) not in found or use.repeated):
                found[id(node)] = Start(use.script, node, use.repeated)
        return list(found.values())

    @cached_property
    def is_followed(self) -> bool:
        """Whether all places it goes to are in sight."""
        return not any(_hands_out(use) for use in self.uses)

    @cached_property
    def _is_thrown_away(self) -> bool:
        """Whether all that is done with it is to hand it on, to names that nothing reads."""
        return not self._reached.is_lost and all(_only_hands_on(use) for use in self.uses)

    @cached_property
    def is_read_again(self) -> bool:
        """Whether it is seen to be read from its beginning several times."""
        runs = [start for start in self.starts if not _reads_one_batch(start)]
        if self._is_endless:
            return False
        if any(start.repeated for start in runs) or self._method in _RUN_EACH_EPOCH:
            return True
        return self._method not in _RUN_ONCE and not runs and self._is_given_to_trainer

    @property
    def _is_endless(self) -> bool:
        """Whether a sampler draws so many items that no pass ever ends."""
        sampler = self.parameter("sampler")
        if sampler is None:
            return False
        for script, node in self.script.roles.origins(sampler):
            drawn = script.argument(node, "num_samples", 2) if isinstance(node, syntax.Call) else None
            count = script.constant(drawn) if drawn is not None else None
            if count is not None and isinstance(count.value, (int, float)) and count.value >= _ENDLESS:
                return True
        return False

    @cached_property
    def is_in_sight(self) -> bool:
        """Whether any place that reads it is seen."""
        return bool(self.starts) or self._method in _RUN_EACH_EPOCH | _RUN_ONCE

    @cached_property
    def _method(self) -> str | None:
        """The Lightning hook that makes the loader."""
        function = self.script.function(self.call)
        owner = self.script.names.owner(function) if function is not None else None
        if function is None or owner is None:
            return None
        bases = self.script.roles.calls.foreign_bases(Definition(self.script, owner))
        return function.name.value if any("lightning" in base for base in bases) else None

    @property
    def _is_given_to_trainer(self) -> bool:
        """Whether a library's trainer reads it: it is passed on to code out of sight in a script that calls ``fit``."""
        return any(
            isinstance(use.script.source.parents[use.node], syntax.Arg)
            and use.script.method_calls("fit")
            and not _stops_by_steps(use.script)
            for use in self.uses
        )

    @cached_property
    def is_read_within_itself(self) -> bool:
        """Whether it may be read anew while a loop over it still runs."""
        loops = [start for start in self.starts if isinstance(start.node, syntax.For)]
        for start in self.starts:
            for loop in loops:
                if start is loop:
                    continue
                if _may_run_anywhere(start) or _runs_within(start.script, start.node, loop, 0):
                    return True
        if loops and (any(map(_is_bound, self.uses)) or self._is_read_by_others):
            return True
        others = [(one, two) for one in self.starts for two in self.starts if one is not two]
        return (
            any(_goes_on_after(one, two) for one, two in others)
            or _is_read_in_step(self.uses)
            or any(_is_made_twice(start, self.uses) for start in self.starts)
        )

    @property
    def _is_read_by_others(self) -> bool:
        """Whether code that is not seen to have the loader goes over an attribute of the name that it is kept under."""
        kept = {name for use in self.uses for name in _kept_as(use)}
        known = {use.node for use in self.uses}
        return any(
            read.attr.value in kept and read not in known and _started_by(reach.Use(place, read, repeated=False)) is not None
            for place in self.script.everywhere(*(name.encode() for name in kept))
            for read in place.source.of(syntax.Attribute)
            if kept
        )

    @property
    def _is_never_made(self) -> bool:
        """Whether only a function that nothing calls makes it, in a file that does not train itself."""
        function = self.script.function(self.call)
        if function is None or evaluation.trains_itself(self.script):
            return False
        return self.script.names.owner(function) is None and not self.script.call_sites(function)

    @property
    def _gives_one_batch(self) -> bool:
        """Whether it is made for ``next(iter(DataLoader(...)))`` alone."""
        parents = self.script.source.parents
        call = parents.get(parents[self.call])
        return (
            isinstance(call, syntax.Call)
            and self.script.is_call_to(call, "iter")
            and _reads_one_batch(Start(self.script, call, repeated=False))
        )

    @property
    def matters(self) -> bool | None:
        """Whether training waits for it: True where it is read again and again, False where once, None where never."""
        if not evaluation.trains(self.script) or self._gives_one_batch:
            return None
        if not self.is_in_sight and (self._is_never_made or self._is_thrown_away):
            return None
        if _is_shown_only(self.script):
            return False
        if not self.is_in_sight or self.is_read_again:
            return True
        runs = [start for start in self.starts if not _reads_one_batch(start)]
        if any(
            isinstance(start.node, syntax.For) and start.script.loops.kind(start.node) is Frequency.STEP for start in runs
        ):
            return True
        if runs and self.script.frequency(self.call) >= Frequency.EPOCH:
            return True
        return False if runs else None


def _runs_within(script: Script, node: syntax.Node, loop: Start, depth: int) -> bool:
    """Whether code runs in the body of a loop, or in a function that is called there."""
    if script is loop.script and script.source.contains(loop.node, node):
        return True
    if script.frequency(node) in (Frequency.STEP, Frequency.EVAL_STEP, Frequency.THROTTLED):
        return True
    function = script.function(node)
    if function is None or depth > _DEEPEST:
        return False
    return any(_runs_within(other, call, loop, depth + 1) for other, call in script.call_sites(function))


def _kept_as(use: reach.Use) -> Iterator[str]:
    """The attributes that a use sets to the loader, alone or among others: ``self.model, self.loader = model, loader``."""
    statement = use.script.source.statement(use.node)
    for target in use.script.source.inside(statement, syntax.AssignTarget):
        given = use.script.source.parents[target]
        if isinstance(given, syntax.Assign) and use.script.source.contains(given.value, use.node):
            yield from (each.attr.value for each in use.script.source.inside(target, syntax.Attribute))


def _is_bound(use: reach.Use) -> bool:
    """Whether a use hands a loader to a function for when that is called: ``partial(accuracy, model, loader)``, a lambda."""
    source = use.script.source
    if source.enclosing(use.node, syntax.Lambda, syntax.FunctionDef) is not use.script.function(use.node):
        return True
    parent = source.parents[use.node]
    call = source.parents[parent] if isinstance(parent, syntax.Arg) else None
    return isinstance(call, syntax.Call) and use.script.is_call_to(call, "functools.partial")


def _may_run_anywhere(start: Start) -> bool:
    """Whether a loader is read where the calls are not seen: in a function that is handed on, or registered by a decorator,
    in a property or in what Python calls by itself."""
    script, function = start.script, start.script.function(start.node)
    if function is None or function.name.value == "__init__":
        return False
    if function.name.value.startswith("__"):
        return True
    for each in function.decorators:
        decorator = each.decorator.func if isinstance(each.decorator, syntax.Call) else each.decorator
        if not (script.name(decorator) or "").startswith(_PLAIN_DECORATORS):
            return True
    name = function.name.value
    return any(
        _is_handed_on(place, use) for place in script.everywhere(name.encode()) for use in place.source.tree.named((name,))
    )


def _is_handed_on(script: Script, use: syntax.Name) -> bool:
    """Whether a function's name is read other than to call it."""
    node: syntax.Node = use
    up = script.source.parents[node]
    if isinstance(up, syntax.Attribute) and up.attr is use:
        node, up = up, script.source.parents[up]
    return (
        isinstance(up, syntax.Arg | syntax.Assign | syntax.Element | syntax.DictElement)
        and getattr(up, "value", None) is node
    )


def _goes_on_after(start: Start, other: Start) -> bool:
    """Whether an iterator over the loader may still be read after another place has read the loader from its beginning."""
    script, function = start.script, start.script.function(start.node)
    parent = script.source.parents[start.node]
    if isinstance(function, syntax.FunctionDef) and any(True for _ in script.source.inside(function.body, syntax.Yield)):
        sites = script.call_sites(function)
        return other.script.function(other.node) is not function and not all(_is_looped_over(*site) for site in sites)
    held: syntax.Node = start.node
    if isinstance(held, syntax.CompFor):
        held, parent = parent, script.source.parents[parent]
        if not isinstance(held, syntax.GeneratorExp) or not isinstance(parent, syntax.Assign):
            return False
    elif _reads_one_batch(start) or not isinstance(held, syntax.Call) or not script.is_call_to(held, "iter"):
        return False
    if isinstance(other.node, syntax.Call) and (_restarts(other) or _is_same_variable(parent, other)):
        return False
    if not isinstance(parent, syntax.Assign) or not isinstance(parent.targets[0].target, syntax.Name):
        return True
    name = parent.targets[0].target
    scope = script.names.scope(name)
    reads = [
        each
        for each in script.source.of(syntax.Name)
        if each.value == name.value and each is not name and script.names.scope(each).lookup(name.value) is scope
    ]
    begun = [
        each
        for place, each in changing.ways_to(other.script, other.node)
        if place is script and script.function(each) is function
    ]
    return any(
        script.function(read) is not function
        or any(script.source.contains(node, read) or script.order.may_run_before(node, read) for node in begun)
        for read in reads
    )


def _is_made_twice(start: Start, uses: list[reach.Use]) -> bool:
    """Whether a generator that reads the loader is made several times, of which one may be read beside another."""
    script, function = start.script, start.script.function(start.node)
    if not isinstance(function, syntax.FunctionDef):
        return False
    if not any(script.function(each) is function for each in script.source.inside(function.body, syntax.Yield)):
        return False
    parents = [use.script.source.parents[use.node] for use in uses]
    handed = {use.script.source.parents[arg] for use, arg in zip(uses, parents, strict=True) if isinstance(arg, syntax.Arg)}
    sites = script.call_sites(function)
    own = [site for site in sites if site[1] in handed] or sites
    return len([site for site in own if not _is_looped_over(*site)]) > 1


def _restarts(start: Start) -> bool:
    """Whether a start stands where another iterator has ended: ``except StopIteration: batches = iter(loader)``."""
    return start.script.source.enclosing(start.node, syntax.ExceptHandler) is not None or _begins_within_steps(start)


def _is_same_variable(assign: syntax.Node, other: Start) -> bool:
    """Whether a second iterator takes the place of a first one."""
    second = other.script.source.parents[other.node]
    if not isinstance(assign, syntax.Assign) or not isinstance(second, syntax.Assign):
        return False
    one, two = assign.targets[0].target, second.targets[0].target
    return isinstance(one, syntax.Name) and isinstance(two, syntax.Name) and one.value == two.value


def _is_looped_over(script: Script, call: syntax.Call) -> bool:
    parent = script.source.parents[call]
    return isinstance(parent, (syntax.For, syntax.CompFor)) and parent.iter is call


def _is_read_in_step(uses: list[reach.Use]) -> bool:
    """Whether one call reads it under two iterators: ``zip(loader, loader)``."""
    calls = [
        call
        for use in uses
        if isinstance(parent := use.script.source.parents[use.node], syntax.Arg)
        and isinstance(call := use.script.source.parents[parent], syntax.Call)
        and use.script.name(call.func) in ("zip", "map", "itertools.zip_longest")
    ]
    return len(calls) != len(set(calls))


def _is_shown_only(script: Script) -> bool:
    """Whether a trainer is told to stop after a handful of batches, as a demonstration or a profile does."""
    source = script.source
    if b"limit_train_batches" not in source.data:
        return False
    limits = [arg.value for arg in source.of(syntax.Arg) if arg.keyword and arg.keyword.value == "limit_train_batches"]
    for item in source.of(syntax.DictElement):
        if isinstance(item.key, syntax.SimpleString) and item.key.evaluated_value == "limit_train_batches":
            limits.append(item.value)
    known = [script.constant(limit) for limit in limits]
    return any(limit is not None and isinstance(limit.value, int) and 0 < limit.value <= _A_HANDFUL for limit in known)


def _stops_by_steps(script: Script) -> bool:
    """Whether a trainer is told the number of steps and not that of epochs, so that no second pass need begin."""
    given = {arg.keyword.value for arg in script.source.of(syntax.Arg) if arg.keyword is not None}
    return "max_steps" in given and "max_epochs" not in given


def changes_of_batch(start: Start, *, of_tensors: bool = False) -> Iterator[str]:
    """The code in the body of a loop that changes in place what its batches hold; with ``of_tensors`` only what changes
    tensors, and not which of them a batch holds, but also where the batch is one."""
    script, loop = start.script, start.node
    if not isinstance(loop, syntax.For):
        return
    taken = {name.value for name in script.source.inside(loop.target, syntax.Name)}
    for inner in script.source.inside(loop.body, syntax.For):
        if any(name.value in taken for name in script.source.inside(inner.iter, syntax.Name)):
            taken |= {name.value for name in script.source.inside(inner.target, syntax.Name)}
    for base, node in changing.written(script, loop.body):
        holder: syntax.Node = base
        while isinstance(holder, (syntax.Attribute, syntax.Subscript)):
            holder = holder.value
        if not isinstance(holder, syntax.Name) or holder.value not in taken:
            continue
        if not _only_replaces(script, base, node) if of_tensors else not isinstance(base, syntax.Name):
            yield " ".join(script.text(node).split())


def _only_replaces(script: Script, base: syntax.BaseExpression, node: syntax.Node) -> bool:
    """Whether ``batch["image"] = ...`` puts another tensor in the place of one, or ``batch[key] = batch[key].cuda()`` its
    copy."""
    assign = script.source.parents[node]
    if not isinstance(base, syntax.Subscript) or not isinstance(assign, syntax.Assign):
        return False
    index = base.slice[0].slice
    is_keyed = isinstance(index, syntax.Index) and script.role(index.value) is Role.STRING
    value = assign.value
    is_moved = isinstance(value, syntax.Call) and last_name(value.func) in MOVES and script.text(base) in script.text(value)
    return is_moved or (is_keyed and isinstance(base.value, syntax.Name))


def _keeps_batches(start: Start) -> bool:
    """Whether the body of a loop puts the batches, as they come, into a list."""
    script, loop = start.script, start.node
    if isinstance(loop, syntax.CompFor):
        names = {name.value for name in script.source.inside(loop.target, syntax.Name)}
        around = script.source.parents[loop]
        return isinstance(around, syntax.ListComp | syntax.SetComp) and _is_of(around.elt, names)
    if not isinstance(loop, syntax.For):
        return isinstance(loop, syntax.Call) and script.name(loop.func) in ("list", "tuple", "itertools.cycle")
    targets = list(script.source.inside(loop.target, syntax.Name))
    uses = (use for target in targets for use in script.names.uses(target) if script.source.contains(loop.body, use))
    return any(
        held.is_kept(script, use)
        for use in uses
        if any(script.source.contains(loop.target, each.node) for each in script.names.reaching(use))
    )


def _is_of(node: syntax.BaseExpression, names: set[str]) -> bool:
    """Whether an expression is one of some variables, or a tuple, list or dict that holds one."""
    match node:
        case syntax.Name(value=name):
            return name in names
        case syntax.Tuple(elements=elements) | syntax.List(elements=elements) | syntax.Dict(elements=elements):
            return any(_is_of(each.value, names) for each in elements)
    return False


def _asks_for_errors(start: Start) -> bool:
    """Whether a loop goes on after an error of the data, and looks at that error."""
    script, source = start.script, start.script.source
    region = script.function(start.node) or source.module
    for handler in source.inside(region, syntax.ExceptHandler):
        around = source.parents[handler]
        if handler.name is None or not isinstance(around, syntax.Try):
            continue
        taken = any(advanced(script, call) is not None for call in source.inside(around.body, syntax.Call))
        is_read = taken or source.contains(around.body, start.node)
        names = {name.value for name in source.inside(handler.name, syntax.Name)}
        is_used = any(name.value in names for name in source.inside(handler.body, syntax.Name))
        if is_read and is_used and source.enclosing(around, syntax.For, syntax.While) is not None:
            return True
    return False


def _picks_rows(origin: datasets.Origin) -> bool:
    """Whether a dataset's items are some of another one's: ``self.data[self.rows[index]]``."""
    definition = origin.definition
    method = definition.script.roles.calls.method(definition, "__getitem__") if definition is not None else None
    if method is None:
        return False
    return any(
        changing.is_on_self(taken.value) and isinstance(row, syntax.Subscript) and changing.is_on_self(row)
        for taken in method.script.source.inside(method.node, syntax.Subscript)
        for element in taken.slice
        if isinstance(element.slice, syntax.Index)
        for row in (element.slice.value,)
    )


def _loops_around(script: Script, node: syntax.Node, depth: int = _DEPTH) -> int:
    """How many loops are around a node, through the calls of its function: the most, where there are several."""
    count, child = 0, node
    for up in script.source.ancestors(node):
        if isinstance(up, (syntax.For, syntax.While)) and child is up.body:
            count += 1
        if isinstance(up, syntax.FunctionDef):
            sites = script.call_sites(up) if depth else []
            return count + max((_loops_around(*site, depth - 1) for site in sites), default=0)
        child = up
    return count


def _as_dataset(uses: list[reach.Use]) -> Iterator[reach.Use]:
    """Where a loader is asked for its dataset: ``loader.dataset``."""
    for use in uses:
        held = use.script.source.parents[use.node]
        if isinstance(held, syntax.Attribute) and held.value is use.node and held.attr.value == "dataset":
            yield reach.Use(use.script, held, use.repeated)


def _set_by(dataset: Definition, use: reach.Use) -> Iterator[str]:
    """The attributes of a dataset that are set where it is used, in each epoch or more often: by ``dataset.level = 2`` or by
    a method of its class that is called."""
    script, asked = use.script, use.script.source.parents[use.node]
    if not isinstance(asked, syntax.Attribute) or asked.value is not use.node or script.frequency(asked) < Frequency.EPOCH:
        return
    match script.source.parents[asked]:
        case syntax.AssignTarget() | syntax.AugAssign():
            yield asked.attr.value
        case syntax.Call(func=func) if func is asked:
            method = dataset.script.roles.calls.method(dataset, asked.attr.value)
            if method is not None:
                yield from (name for base, _ in changing.written(method.script, method.node) for name in _on_self(base))


def _is_set_beside_pass(use: reach.Use) -> bool:
    """Whether a function that goes over a loader sets an attribute of a dataset, as one does that finds limits by a first
    pass over it: ``self.dataset.limits = found``."""
    script, asked = use.script, use.script.source.parents[use.node]
    function = script.function(use.node)
    if function is None or not isinstance(asked, syntax.Attribute):
        return False
    loops = script.source.inside(function.body, syntax.For)
    over = (iterated for loop in loops for _, iterated in gone_over(script, loop))
    is_set = isinstance(script.source.parents[asked], syntax.AssignTarget)
    return is_set and any(script.role(iterated) is Role.LOADER for iterated in over)


def _read_by_items(dataset: Definition) -> set[str]:
    """The attributes of a dataset that the code of its items reads."""
    source = dataset.script.source
    functions = item_functions(dataset.script, dataset.node)
    return {name for each in functions for one in source.inside(each, syntax.Attribute) for name in _on_self(one)}


def _on_self(base: syntax.Node) -> Iterator[str]:
    """The attribute of ``self`` that an expression is, or is a part of."""
    while isinstance(base, (syntax.Attribute, syntax.Subscript)):
        if isinstance(base, syntax.Attribute) and is_name(base.value, "self"):
            yield base.attr.value
        base = base.value


def _started_by(use: reach.Use) -> syntax.Node | None:
    """The loop, comprehension or call that reads the loader from its beginning at this use."""
    source = use.script.source
    parent = source.parents[use.node]
    if isinstance(parent, (syntax.For, syntax.CompFor)) and parent.iter is use.node:
        return parent
    if isinstance(parent, syntax.Arg):
        call = source.parents[parent]
        if isinstance(call, syntax.Call) and use.script.name(call.func) in ("iter", "list", "tuple", "itertools.cycle"):
            return call
    if isinstance(parent, syntax.From):
        return parent
    return None


def _hands_out(use: reach.Use) -> bool:
    """Whether a use gives the loader to code out of sight."""
    script, parent = use.script, use.script.source.parents[use.node]
    if isinstance(parent, syntax.Return):
        function = script.function(parent)
        return function is None or not script.call_sites(function)
    if not isinstance(parent, syntax.Arg):
        return False
    call = script.source.parents[parent]
    if not isinstance(call, syntax.Call) or parent.star:
        return True
    return script.callee(call) is None and script.name(call.func) not in _LOOKS_AT | library.WRAPPERS_OF_ITERABLES


def _only_hands_on(use: reach.Use) -> bool:
    """Whether a use only gives the loader another name, or puts it into a container or what a function returns."""
    parent = use.script.source.parents[use.node]
    if isinstance(parent, syntax.Arg):
        call = use.script.source.parents[parent]
        return isinstance(call, syntax.Call) and use.script.name(call.func) in ("len", "print")
    return isinstance(
        parent, (syntax.Assign, syntax.AnnAssign, syntax.Element, syntax.DictElement, syntax.Return, syntax.NamedExpr)
    )


def _is_later_turn(test: syntax.BaseExpression, turns: set[str]) -> bool:
    """Whether a condition holds in each turn but the first: ``epoch``, ``epoch > 0``, ``epoch != 0``."""
    match test:
        case syntax.Name(value=name):
            return name in turns
        case syntax.Comparison(
            left=syntax.Name(value=name),
            comparisons=[
                syntax.ComparisonTarget(
                    operator=syntax.GreaterThan() | syntax.NotEqual(), comparator=syntax.Integer(value="0")
                )
                | syntax.ComparisonTarget(operator=syntax.GreaterThanEqual(), comparator=syntax.Integer(value="1"))
            ],
        ):
            return name in turns
    return False


def _reads_one_batch(start: Start) -> bool:
    """Whether a start is only ``next(iter(loader))``, or a loop that has no second turn."""
    if isinstance(start.node, syntax.For) and start.script.loops.ends_in_first_turn(start.node):
        return True
    call = start.script.source.parents.get(start.script.source.parents[start.node])
    return advanced(start.script, call) is start.node


def _begins_within_steps(start: Start) -> bool:
    """Whether a start is ``iter(loader)`` in a loop of steps, as where a set of few batches runs out before another."""
    if not isinstance(start.node, syntax.Call) or _reads_one_batch(start):
        return False
    loop = start.script.loops.driving_loop(start.node)
    return loop is not None and start.script.loops.kind(loop) is Frequency.STEP


def loader(script: Script, call: syntax.Call) -> Loader | None:
    """The loader that a call makes; None for any other call, and for a subclass that sets its own parameters."""
    return _made_by(script).get(call)


@once({})
def _made_by(script: Script) -> dict[syntax.Call, Loader]:
    """The loaders that a file makes, by the calls that make them."""
    return {call: Loader(script, call) for call in script.source.of(syntax.Call) if _makes_loader(script, call)}


def near(script: Script) -> Iterator[Loader]:
    """The loaders that the program makes."""
    for place in script.everywhere(b"Loader"):
        yield from _made_by(place).values()


@once(False)
def reads_digits(script: Script) -> bool:
    """Whether all that the program is seen to load is grey images of 28 by 28 pixels or less, and nothing makes them much
    larger."""
    return _reads_only(script, Item.DIGIT)


@once(False)
def reads_digits_by_default(script: Script) -> bool:
    """Whether that holds of the runs that are made: other data is read where an option asks for it."""
    return _reads_only(script, Item.DIGIT, by_default=True)


@once(False)
def reads_thumbnails(script: Script) -> bool:
    """Whether all that the runs that are made are seen to load is images of 32 by 32 pixels or less, and nothing makes them
    much larger."""
    return _reads_only(script, Item.DIGIT, Item.THUMBNAIL, by_default=True)


def _reads_only(script: Script, *items: Item, by_default: bool = False) -> bool:
    if not script.program.mentions(script, public.marks(*items)):
        return False
    names = public.classes(*items)

    def counts(place: Script, node: syntax.Node) -> bool:
        return not by_default or not (off.is_off(place, node) or entry.is_never_called(place, node))

    def gives(origin: datasets.Origin, reader: Script) -> bool:
        inner = [each for each in datasets.wrapped(origin, reader) if counts(each.script, each.node)]
        return origin.is_of(names) or (bool(inner) and all(each.is_of(names) for each in inner))

    found = [each for each in near(script) if counts(each.script, each.call)]
    read = [(each, one.script) for one in found for each in one.origins if counts(each.script, each.node)]
    if not found or not all(gives(origin, reader) or not origin.is_known for origin, reader in read):
        return False
    if any(name not in names for place, call, name in _library_datasets(script) if counts(place, call)):
        return False
    return all(side is not None and side <= _SMALL for side in sides(script, "Resize"))


def sides(script: Script, *transforms: str) -> Iterator[int | None]:
    """The pixels of a side that some of torchvision's transforms, by their last names, give images at most; None where that
    is not known."""
    for place in script.everywhere(*(name.encode() for name in transforms)):
        for call in place.calls(*library.transforms(*transforms)):
            size = place.argument(call, "size", 0)
            each = [part.value for part in size.elements] if isinstance(size, (syntax.Tuple, syntax.List)) else [size]
            yield widths.most(widths.Given(place, one) if one is not None else None for one in each)


def _library_datasets(script: Script) -> Iterator[tuple[Script, syntax.Call, str]]:
    """The datasets of torchvision's that the program makes."""
    for place in script.everywhere(b"torchvision"):
        for call in place.source.of(syntax.Call):
            name = place.name(call.func) or ""
            if name.startswith("torchvision.datasets."):
                yield place, call, name


def _makes_loader(script: Script, call: syntax.Call) -> bool:
    if script.name(call.func) in _FOREIGN:
        return True
    definition = script.definition(call.func)
    if definition is None or not isinstance(definition.node, syntax.ClassDef):
        return False
    calls = definition.script.roles.calls
    if not any(base in _FOREIGN for base in calls.foreign_bases(definition)):
        return False
    init = calls.method(definition, "__init__")
    return init is None or _hands_on(init)


def _hands_on(init: Definition) -> bool:
    """Whether a subclass's ``__init__`` gives its ``**kwargs`` to the library's as they are, and says nothing of how batches
    are loaded itself."""
    assert isinstance(init.node, syntax.FunctionDef)
    star, names = init.node.params.star_kwarg, {param.name.value for param in init.node.params.params}
    if star is None or names & _OF_LOADING:
        return False
    call = _call_of_base(init)
    given = [arg.value for arg in call.args if arg.star == "**"] if call is not None else []
    said = {arg.keyword.value for arg in call.args if arg.keyword is not None} if call is not None else set()
    return any(is_name(each, star.name.value) for each in given) and not said & _OF_LOADING


def _call_of_base(init: Definition) -> syntax.Call | None:
    """The call of the base's ``__init__`` in a class's own."""
    calls = init.script.source.inside(init.node, syntax.Call)
    of_base = (each for each in calls if isinstance(each.func, syntax.Attribute) and each.func.attr.value == "__init__")
    return next(of_base, None)


def respawned(script: Script) -> str:
    """What worker processes that are spawned do without a ``__main__`` guard."""
    if script.source.cells is not None:
        return "worker processes that are spawned do not have what a notebook defines"
    return 'without `if __name__ == "__main__":` worker processes run this script again where they are spawned'


def is_unguarded(script: Script, node: syntax.Node, depth: int = 0) -> bool:
    """Whether importing the script would run the node: no function and no ``__main__`` guard stands around it."""
    function = script.function(node)
    if function is not None:
        return depth < _DEEPEST and any(is_unguarded(other, call, depth + 1) for other, call in script.call_sites(function))
    return not any(isinstance(up, syntax.If) and "__name__" in script.text(up.test) for up in script.source.ancestors(node))
