"""Work that a dataset does again each time that an item is read, with the same result: what, where, and how heavy it is."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from speedlint.facts import syntax
from speedlint.shapes import evaluation
from speedlint.shapes.data import array_loops, datasets, item_decoding, loaders
from speedlint.shapes.data.array_loops import Walk
from speedlint.shapes.data.item_decoding import DECODERS, PARSERS, READERS, VOLUMES
from speedlint.shapes.data.repeats import Hangs, Run
from speedlint.solve.calls import item_functions
from speedlint.solve.terms import Definition
from speedlint.source import is_none
from speedlint.torch import library

if TYPE_CHECKING:
    from speedlint.ask.script import Script


class Kind(enum.Enum):
    """What is done, the heaviest first."""

    WHOLE = "reads all of it"
    COMPUTED = "computes"
    WALKED = "goes over arrays in Python"
    PARSED = "parses text"
    OPENED = "opens it"
    SHARED = "decodes what several items share"
    ARCHIVE = "unpacks an archive"
    VOLUME = "reads a whole volume"
    RESIZED = "resizes what it has just decoded"
    MAPPED = "maps a mask class by class"


HEAVY = (Kind.WHOLE, Kind.COMPUTED, Kind.WALKED, Kind.PARSED)

_TABLES = frozenset("read_csv read_table read_excel read_fwf".split())
_WHOLE = frozenset(
    "numpy.load numpy.loadtxt numpy.genfromtxt json.load pickle.load torch.load yaml.load yaml.safe_load scipy.io.loadmat "
    "pandas.read_parquet pandas.read_pickle pandas.read_hdf pandas.read_feather pandas.read_json nibabel.load "
    "joblib.load tarfile.open".split()
) | {f"pandas.{name}" for name in _TABLES}
_OPENED = frozenset(
    "h5py.File zipfile.ZipFile lmdb.open tables.open_file netCDF4.Dataset xarray.open_dataset "
    "decord.VideoReader cv2.VideoCapture pyarrow.parquet.ParquetFile".split()
)
_COMPUTED = frozenset(
    "scipy.ndimage.zoom scipy.ndimage.rotate scipy.ndimage.affine_transform scipy.ndimage.map_coordinates "
    "scipy.ndimage.median_filter scipy.ndimage.generic_filter scipy.ndimage.binary_fill_holes scipy.interpolate.griddata "
    "scipy.interpolate.Rbf scipy.interpolate.RBFInterpolator scipy.spatial.Delaunay scipy.spatial.Voronoi "
    "scipy.signal.spectrogram scipy.signal.stft scipy.signal.cwt scipy.signal.resample_poly "
    "cv2.distanceTransform cv2.distanceTransformWithLabels cv2.watershed cv2.grabCut cv2.fastNlMeansDenoising "
    "cv2.fastNlMeansDenoisingColored cv2.inpaint cv2.bilateralFilter cv2.calcOpticalFlowFarneback "
    "librosa.resample librosa.stft librosa.cqt librosa.vqt librosa.pyin librosa.yin librosa.core.resample librosa.core.stft "
    "torchaudio.functional.resample torchaudio.compliance.kaldi.fbank torchaudio.compliance.kaldi.mfcc "
    "rdkit.Chem.AllChem.EmbedMolecule rdkit.Chem.AllChem.MMFFOptimizeMolecule networkx.all_pairs_shortest_path_length "
    "skimage.transform.resize skimage.transform.rescale skimage.transform.radon skimage.transform.iradon "
    "skimage.measure.label skimage.measure.regionprops skimage.exposure.equalize_adapthist skimage.feature.hog "
    "skimage.feature.canny skimage.feature.local_binary_pattern skimage.feature.graycomatrix".split()
)
_COMPUTING = (
    "scipy.ndimage.distance_transform_",
    "scipy.ndimage.morphology.distance_transform_",
    "skimage.segmentation.",
    "skimage.morphology.",
    "skimage.restoration.",
    "skimage.filters.",
    "librosa.feature.",
    "librosa.effects.",
    "librosa.beat.",
)
_CHEAP = frozenset(
    f"skimage.morphology.{shape}" for shape in "disk ball square rectangle diamond cube octahedron star octagon".split()
)
_KEEPS = frozenset(
    "numpy.save numpy.savez numpy.savez_compressed torch.save pickle.dump json.dump joblib.dump cv2.imwrite "
    "h5py.File.create_dataset".split()
)
_CACHES = ("functools.lru_cache", "functools.cache", "cachetools.", "joblib.", "diskcache.")
_CALLED_DEEP = 4


Chain = tuple[tuple["Script", syntax.Call], ...]
"""The calls that lead from ``__getitem__`` to a place, the outermost first."""


class Work(NamedTuple):
    """One piece of such work, in ``script``."""

    kind: Kind
    script: Script
    node: syntax.Node
    chain: Chain

    @property
    def shown(self) -> tuple[Script, syntax.Node]:
        """The place within the item's own method that leads to it."""
        return self.chain[0] if self.chain else (self.script, self.node)


# The method


def may_be_item(script: Script, function: syntax.FunctionDef) -> bool:
    """Whether a function is the ``__getitem__`` of a map-style dataset."""
    klass = script.names.owner(function)
    if klass is None or len(function.params.posonly_params) + len(function.params.params) != 2:
        return False
    definition = Definition(script, klass)
    bases = set(script.roles.calls.foreign_bases(definition))
    is_dataset = any(library.is_dataset_class(base) for base in bases)
    return is_dataset and not datasets.is_iterable_class(definition)


def is_trained_on(script: Script, function: syntax.FunctionDef) -> bool:
    """Whether training reads items of the dataset whose ``__getitem__`` the function is, as far as is seen."""
    klass = script.names.owner(function)
    return klass is not None and _is_trained_on(Definition(script, klass))


def _is_trained_on(definition: Definition) -> bool:
    script = definition.script
    if script.is_test:
        return False
    reading = [found for found in loaders.near(script) if any(_is_of(origin, definition) for origin in found.origins)]
    if reading:
        return any(found.matters for found in reading)
    return evaluation.trains(script) and _is_made(definition)


def _is_of(origin: datasets.Origin, definition: Definition) -> bool:
    if origin.definition is None:
        return False
    return any(owner.node is definition.node for owner in origin.definition.script.roles.calls.lineage(origin.definition))


def _is_made(definition: Definition) -> bool:
    """Whether any script makes an object of the class, outside the class itself."""
    name = definition.name
    importers = definition.script.program.importers(definition.script, name.encode())
    for script in chain((definition.script,), importers):
        for call in script.roles.calls.named(name):
            made = script.definition(call.func)
            if made is not None and made.node is definition.node:
                return True
    return False


# What it does


def reading(script: Script, function: syntax.FunctionDef) -> Run:
    """The run of ``__getitem__`` for one item."""
    params = [*function.params.posonly_params, *function.params.params]
    return Run(script, function, {params[0]: Hangs.NOTHING, params[1]: Hangs.ITEM})


def runs(run: Run, chain: Chain = ()) -> Iterator[tuple[Run, Chain]]:
    """A run and those of the first-party functions that it calls, each with the calls that lead to it."""
    yield run, chain
    for call in run.calls():
        callee = run.script.callee(call)
        if callee is None or len(chain) >= _CALLED_DEEP or not isinstance(callee.node, syntax.FunctionDef):
            continue
        if callee.node.name.value != "__getitem__" and (inner := run.into(call, callee)) is not None:
            yield from runs(inner, (*chain, (run.script, call)))


def keeps(run: Run) -> bool:
    """Whether reading an item keeps anything for the next time: on the dataset, in a file, in a variable outside."""
    klass = run.script.names.owner(run.function)
    if klass is not None and any(datasets.stores(run.script, each) for each in item_functions(run.script, klass)):
        return True
    return any(
        _writes_outside(inner)
        or any((inner.script.name(call.func) or "") in _KEEPS or _is_cached(inner.script, call) for call in inner.calls())
        for inner, _ in runs(run)
    )


def _is_cached(script: Script, call: syntax.Call) -> bool:
    callee = script.callee(call)
    if callee is None or not isinstance(callee.node, syntax.FunctionDef):
        return False
    for decorator in callee.node.decorators:
        made = decorator.decorator
        name = callee.script.name(made.func if isinstance(made, syntax.Call) else made) or ""
        if name.startswith(_CACHES) or "cache" in callee.script.text(made):
            return True
    return False


def _writes_outside(run: Run) -> bool:
    """Whether a function writes an entry of a variable that is not its own."""
    script = run.script
    for target in script.source.inside(run.function.body, syntax.AssignTarget):
        node: syntax.Node = target.target
        if not isinstance(node, syntax.Subscript):
            continue
        while isinstance(node, (syntax.Subscript, syntax.Attribute)):
            node = node.value
        if isinstance(node, syntax.Name) and script.names.scope(node).lookup(node.value) is script.names.module:
            return True
    return False


def found(run: Run) -> list[Work]:
    """The work of reading an item that gives the same result each time, the heaviest first."""
    works = [
        work
        for inner, chain in runs(run)
        for work in _own_work(inner, chain)
        if not any(is_for_want_of_it(*place) for place in (*chain, (work.script, work.node)))
        and not inner.is_left_out(work.node)
    ]
    order = list(Kind)
    return sorted(works, key=lambda work: order.index(work.kind))


def decodes(run: Run) -> bool:
    """Whether reading an item decodes a picture, a sound or an archive, beside which small work does not count."""
    return any(inner.script.name(call.func) in DECODERS for inner, _ in runs(run) for call in inner.calls())


def _own_work(run: Run, chain: Chain) -> Iterator[Work]:
    for call in run.calls():
        if (kind := _kind(run, call)) is not None:
            yield Work(kind, run.script, call, chain)
    for loop, walk in array_loops.within(run):
        yield Work(Kind.MAPPED if walk is Walk.MASKS else Kind.WALKED, run.script, loop, chain)


def is_for_want_of_it(script: Script, node: syntax.Node) -> bool:
    """Whether a line runs only where nothing was kept before: ``if self.kept is None``, ``if not path.exists()``."""
    function, child = script.function(node), node
    for up in script.source.ancestors(node):
        if up is function:
            break
        if isinstance(up, syntax.If) and child is not up.test and _asks_for_kept(script, up.test):
            return True
        child = up
    return False


def _asks_for_kept(script: Script, test: syntax.BaseExpression) -> bool:
    match test:
        case syntax.Comparison(comparisons=[syntax.ComparisonTarget(operator=operator, comparator=right)]):
            return isinstance(operator, (syntax.In, syntax.NotIn)) or (
                is_none(right) and isinstance(operator, (syntax.Is, syntax.IsNot))
            )
        case syntax.UnaryOperation(operator=syntax.Not(), expression=inner):
            return _asks_for_kept(script, inner)
        case syntax.BooleanOperation(left=left, right=right):
            return _asks_for_kept(script, left) or _asks_for_kept(script, right)
        case syntax.Call(func=syntax.Attribute(attr=syntax.Name("exists" | "is_file" | "isfile"))):
            return True
    return False


def _kind(run: Run, call: syntax.Call) -> Kind | None:
    name = run.script.name(call.func)
    if name is None:
        return Kind.RESIZED if item_decoding.resizes(run, call) else None
    hangs = max((run.of(arg.value) for arg in call.args), default=Hangs.NOTHING)
    if hangs is Hangs.CHANCE or not call.args:
        return None
    if hangs is Hangs.NOTHING and name in _WHOLE and run.script.argument(call, "mmap_mode") is None:
        return Kind.WHOLE
    if name in READERS:
        kind = {Hangs.NOTHING: Kind.WHOLE, Hangs.ITEM: Kind.PARSED}[hangs]
        return kind if item_decoding.is_read_through(run.script, call) else None
    if hangs is Hangs.NOTHING and name in _OPENED:
        return Kind.OPENED
    if name in _COMPUTED or (name.startswith(_COMPUTING) and name not in _CHEAP):
        return Kind.COMPUTED
    if name in PARSERS:
        return Kind.PARSED
    if name in DECODERS and item_decoding.is_shared(run, call.args[0].value):
        return Kind.SHARED
    if name in VOLUMES and hangs is Hangs.ITEM:
        return Kind.VOLUME
    if name == "numpy.load" and item_decoding.is_archive(run, call):
        return Kind.ARCHIVE
    return Kind.RESIZED if name == "cv2.resize" and item_decoding.shrinks(run, call) else None
