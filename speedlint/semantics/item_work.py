"""Work that a dataset does again each time that an item is read, with the same result: what, where, and how heavy it is."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from speedlint.semantics import array_loops, datasets, evaluation, library, loaders
from speedlint.semantics.array_loops import Walk
from speedlint.semantics.model import Definition
from speedlint.semantics.repeats import Hangs, Run

if TYPE_CHECKING:
    from speedlint.semantics.script import Script


class Kind(enum.Enum):
    """What is done, the heaviest first."""

    WHOLE = "reads all of it"
    COMPUTED = "computes"
    WALKED = "goes over arrays in Python"
    PARSED = "parses text"
    OPENED = "opens it"
    SHARED = "decodes what several items share"
    ARCHIVE = "unpacks an archive"
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
_PARSED = frozenset({"numpy.loadtxt", "numpy.genfromtxt"}) | {f"pandas.{name}" for name in _TABLES}
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
_DECODERS = frozenset(
    "PIL.Image.open cv2.imread cv2.imdecode numpy.load skimage.io.imread imageio.imread imageio.v2.imread imageio.v3.imread "
    "tifffile.imread torchvision.io.read_image torchvision.io.decode_image soundfile.read librosa.load torchaudio.load "
    "nibabel.load pydicom.dcmread zlib.decompress gzip.decompress lzma.decompress bz2.decompress scipy.io.loadmat".split()
)
_KEEPS = frozenset(
    "numpy.save numpy.savez numpy.savez_compressed torch.save pickle.dump json.dump joblib.dump cv2.imwrite "
    "h5py.File.create_dataset".split()
)
_CACHES = ("functools.lru_cache", "functools.cache", "cachetools.", "joblib.", "diskcache.")
_CALLED_DEEP = 4


Chain = tuple[tuple["Script", cst.Call], ...]
"""The calls that lead from ``__getitem__`` to a place, the outermost first."""


@dataclass(frozen=True, slots=True)
class Work:
    """One piece of such work, in ``script``."""

    kind: Kind
    script: Script
    node: cst.CSTNode
    chain: Chain

    @property
    def shown(self) -> tuple[Script, cst.CSTNode]:
        """The place within the item's own method that leads to it."""
        return self.chain[0] if self.chain else (self.script, self.node)


# The method


def may_be_item(script: Script, function: cst.FunctionDef) -> bool:
    """Whether a function is the ``__getitem__`` of a map-style dataset."""
    klass = script.names.owner(function)
    if klass is None or len(function.params.posonly_params) + len(function.params.params) != 2:
        return False
    definition = Definition(script, klass)
    bases = set(script.roles.calls.foreign_bases(definition))
    is_dataset = any(base in library.DATASET_BASES or base.startswith("torchvision.datasets.") for base in bases)
    return is_dataset and not datasets.is_iterable_class(definition)


def is_trained_on(script: Script, function: cst.FunctionDef) -> bool:
    """Whether training reads items of the dataset whose ``__getitem__`` the function is, as far as is seen."""
    klass = script.names.owner(function)
    return klass is not None and _is_trained_on(Definition(script, klass))


def _is_trained_on(definition: Definition) -> bool:
    script = definition.script
    if evaluation.is_test(script):
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
    for script in (definition.script, *definition.script.program.importers(definition.script, name.encode())):
        for call in script.roles.calls.named(name):
            made = script.definition(call.func)
            if made is not None and made.node is definition.node:
                return True
    return False


# What it does


def reading(script: Script, function: cst.FunctionDef) -> Run:
    """The run of ``__getitem__`` for one item."""
    params = [*function.params.posonly_params, *function.params.params]
    return Run(script, function, {params[0]: Hangs.NOTHING, params[1]: Hangs.ITEM})


def runs(run: Run, chain: Chain = ()) -> Iterator[tuple[Run, Chain]]:
    """A run and those of the first-party functions that it calls, each with the calls that lead to it."""
    yield run, chain
    for call in run.calls():
        callee = run.script.callee(call)
        if callee is None or len(chain) >= _CALLED_DEEP or not isinstance(callee.node, cst.FunctionDef):
            continue
        if callee.node.name.value != "__getitem__" and (inner := run.into(call, callee)) is not None:
            yield from runs(inner, (*chain, (run.script, call)))


def keeps(run: Run) -> bool:
    """Whether reading an item keeps anything for the next time: on the dataset, in a file, in a variable outside."""
    klass = run.script.names.owner(run.function)
    if klass is not None and any(datasets.stored(run.script, each) for each in datasets.item_functions(run.script, klass)):
        return True
    return any(
        _writes_outside(inner)
        or any((inner.script.name(call.func) or "") in _KEEPS or _is_cached(inner.script, call) for call in inner.calls())
        for inner, _ in runs(run)
    )


def _is_cached(script: Script, call: cst.Call) -> bool:
    callee = script.callee(call)
    if callee is None or not isinstance(callee.node, cst.FunctionDef):
        return False
    for decorator in callee.node.decorators:
        made = decorator.decorator
        name = callee.script.name(made.func if isinstance(made, cst.Call) else made) or ""
        if name.startswith(_CACHES) or "cache" in callee.script.text(made):
            return True
    return False


def _writes_outside(run: Run) -> bool:
    """Whether a function writes an entry of a variable that is not its own."""
    script = run.script
    for target in script.source.inside(run.function.body, cst.AssignTarget):
        node: cst.CSTNode = target.target
        if not isinstance(node, cst.Subscript):
            continue
        while isinstance(node, (cst.Subscript, cst.Attribute)):
            node = node.value
        if isinstance(node, cst.Name) and script.names.scope(node).lookup(node.value) is script.names.module:
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
    return any(inner.script.name(call.func) in _DECODERS for inner, _ in runs(run) for call in inner.calls())


def _own_work(run: Run, chain: Chain) -> Iterator[Work]:
    for call in run.calls():
        if (kind := _kind(run, call)) is not None:
            yield Work(kind, run.script, call, chain)
    for loop, walk in array_loops.within(run):
        yield Work(Kind.MAPPED if walk is Walk.MASKS else Kind.WALKED, run.script, loop, chain)


def is_for_want_of_it(script: Script, node: cst.CSTNode) -> bool:
    """Whether a line runs only where nothing was kept before: ``if self.kept is None``, ``if not path.exists()``."""
    function, child = script.function(node), node
    for up in script.source.ancestors(node):
        if up is function:
            break
        if isinstance(up, cst.If) and child is not up.test and _asks_for_kept(script, up.test):
            return True
        child = up
    return False


def _asks_for_kept(script: Script, test: cst.BaseExpression) -> bool:
    match test:
        case cst.Comparison(comparisons=[cst.ComparisonTarget(operator=cst.Is() | cst.IsNot(), comparator=cst.Name("None"))]):
            return True
        case cst.Comparison(comparisons=[cst.ComparisonTarget(operator=cst.In() | cst.NotIn())]):
            return True
        case cst.UnaryOperation(operator=cst.Not(), expression=inner):
            return _asks_for_kept(script, inner)
        case cst.BooleanOperation(left=left, right=right):
            return _asks_for_kept(script, left) or _asks_for_kept(script, right)
        case cst.Call(func=cst.Attribute(attr=cst.Name("exists" | "is_file" | "isfile"))):
            return True
    return False


def _kind(run: Run, call: cst.Call) -> Kind | None:
    name = run.script.name(call.func)
    if name is None:
        return Kind.RESIZED if _resizes(run, call) else None
    hangs = max((run.of(arg.value) for arg in call.args), default=Hangs.NOTHING)
    if hangs is Hangs.CHANCE or not call.args:
        return None
    if hangs is Hangs.NOTHING and name in _WHOLE and run.script.argument(call, "mmap_mode") is None:
        return Kind.WHOLE
    if hangs is Hangs.NOTHING and name in _OPENED:
        return Kind.OPENED
    if name in _COMPUTED or name.startswith(_COMPUTING):
        return Kind.COMPUTED
    if name in _PARSED:
        return Kind.PARSED
    if name in _DECODERS and _is_shared(run, call.args[0].value):
        return Kind.SHARED
    if name == "numpy.load" and _is_archive(run, call):
        return Kind.ARCHIVE
    return Kind.RESIZED if name == "cv2.resize" and _shrinks(run, call) else None


def _is_shared(run: Run, expression: cst.CSTNode, depth: int = 0) -> bool:
    """Whether what is decoded is chosen by a part of the index: ``self.files[index // self.views]``."""
    if depth > 4:
        return False
    for operation in (expression, *run.script.source.inside(expression, cst.BinaryOperation)):
        if isinstance(operation, cst.BinaryOperation) and isinstance(operation.operator, cst.FloorDivide):
            return run.of(operation.left) is Hangs.ITEM and run.of(operation.right) is Hangs.NOTHING
    names = [expression] if isinstance(expression, cst.Name) else run.script.source.inside(expression, cst.Name)
    for name in names:
        for binding in run.script.names.reaching(name):
            if binding.value is not None and run.script.function(binding.node) is run.function and not binding.path:
                if _is_shared(run, binding.value, depth + 1):
                    return True
    return False


def _is_archive(run: Run, call: cst.Call) -> bool:
    """Whether arrays are taken by their names out of what is loaded."""
    source = run.script.source
    parent = source.parents[call]
    held: list[cst.CSTNode] = [call]
    target: cst.CSTNode | None = None
    if isinstance(parent, cst.Assign) and len(parent.targets) == 1:
        target = parent.targets[0].target
    elif isinstance(parent, cst.WithItem) and parent.asname is not None:
        target = parent.asname.name
    if isinstance(target, cst.Name):
        held += run.script.names.uses(target)
    return any(_is_taken_by_name(source.parents[each], each) for each in held)


def _is_taken_by_name(parent: cst.CSTNode, node: cst.CSTNode) -> bool:
    if not isinstance(parent, cst.Subscript) or parent.value is not node:
        return False
    match parent.slice:
        case [cst.SubscriptElement(slice=cst.Index(value=cst.SimpleString()))]:
            return True
    return False


def _resizes(run: Run, call: cst.Call) -> bool:
    """Whether a picture that was just opened is resized to the same size as all others."""
    match call.func:
        case cst.Attribute(value=picture, attr=cst.Name(value="resize" | "thumbnail")) if call.args:
            is_fixed = all(run.of(arg.value) is Hangs.NOTHING for arg in call.args)
            return is_fixed and run.of(picture) is Hangs.ITEM and _is_decoded(run, picture, 0)
    return False


def _shrinks(run: Run, call: cst.Call) -> bool:
    """Whether ``cv2.resize`` brings what was just decoded to the size of all others."""
    size = run.script.argument(call, "dsize", 1)
    return size is not None and run.of(size) is Hangs.NOTHING and _is_decoded(run, call.args[0].value, 0)


def _is_decoded(run: Run, expression: cst.CSTNode, depth: int) -> bool:
    """Whether an expression is what a file was just decoded to, as it was or in another format."""
    if depth > 6:
        return False
    match expression:
        case cst.Name():
            bindings = run.script.names.reaching(expression)
            values = [binding.value for binding in bindings if binding.value is not None]
            own = bool(values) and all(run.script.function(value) is run.function for value in values)
            return own and all(value is not expression and _is_decoded(run, value, depth + 1) for value in values)
        case cst.Subscript(value=value):
            return _is_decoded(run, value, depth + 1)
        case cst.Call(func=func, args=args):
            name = run.script.name(func)
            if name in _DECODERS:
                return True
            if name in ("cv2.cvtColor", "numpy.array", "numpy.asarray", "PIL.Image.fromarray") and args:
                return _is_decoded(run, args[0].value, depth + 1)
            if name is None and isinstance(func, cst.Attribute) and func.attr.value in ("convert", "astype", "copy"):
                return _is_decoded(run, func.value, depth + 1)
    return False
