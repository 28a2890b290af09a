"""What a dataset decodes for an item: whether several items share it, how it is packed, and whether it is resized then."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from speedlint.facts import syntax
from speedlint.shapes.data.repeats import Hangs, Run

if TYPE_CHECKING:
    from speedlint.ask.script import Script

DECODERS = frozenset(
    "PIL.Image.open cv2.imread cv2.imdecode numpy.load skimage.io.imread imageio.imread imageio.v2.imread imageio.v3.imread "
    "tifffile.imread torchvision.io.read_image torchvision.io.decode_image soundfile.read librosa.load torchaudio.load "
    "nibabel.load pydicom.dcmread SimpleITK.ReadImage scipy.io.loadmat "
    "zlib.decompress gzip.decompress lzma.decompress bz2.decompress".split()
)

MEDIA = frozenset(name for name in DECODERS if not name.startswith(("numpy.", "scipy.")))
"""Those of images, recordings and what is compressed: an array is read from its file as it is."""

PARSERS = frozenset(
    "numpy.loadtxt numpy.genfromtxt pandas.read_csv pandas.read_table pandas.read_excel pandas.read_fwf".split()
)

VOLUMES = frozenset({"SimpleITK.ReadImage"})
"""Those that read all of a scan, some hundred million numbers, where an item often is a part of it: nibabel reads later."""

ANALYSES = frozenset(
    f"librosa.{name}"
    for name in (
        "stft cqt vqt pyin yin resample hpss effects.hpss effects.pitch_shift effects.time_stretch feature.mfcc "
        "feature.melspectrogram feature.chroma_stft feature.chroma_cqt feature.tonnetz feature.spectral_contrast"
    ).split()
)
"""Go over a recording on the host, for some ten milliseconds and more."""

READERS = frozenset({"csv.reader", "csv.DictReader"})
"""Parse a line when they are asked for it."""
_WHOLE = ("list", "tuple", "sorted", "dict", "set", "enumerate", "numpy.array", "numpy.asarray", "itertools.islice", "zip")


def is_read_through(script: Script, call: syntax.Call) -> bool:
    """Whether a reader of a file's lines is asked for more than the first ones: by a loop, or by what makes a list of it."""
    if isinstance(call.args[0].value, syntax.List):
        return False
    parent = script.source.parents[call]
    held: list[syntax.Node] = [call]
    if isinstance(parent, syntax.Assign) and len(parent.targets) == 1 and isinstance(parent.targets[0].target, syntax.Name):
        held += script.names.uses(parent.targets[0].target)
    return any(_takes_all(script, each) for each in held)


def _takes_all(script: Script, reader: syntax.Node) -> bool:
    parent = script.source.parents[reader]
    if isinstance(parent, syntax.Arg):
        taking = script.source.parents[parent]
        name = script.name(taking.func) if isinstance(taking, syntax.Call) else None
        return name in _WHOLE and (name != "enumerate" or _takes_all(script, taking))
    if isinstance(parent, syntax.CompFor):
        return parent.iter is reader
    if isinstance(parent, syntax.For):
        return parent.iter is reader and not any(isinstance(each, syntax.Break) for each in _lines(parent.body))
    return isinstance(parent, syntax.StarredElement)


def _lines(block: syntax.BaseSuite) -> Iterator[syntax.Node]:
    """The small statements that stand in a block itself."""
    for line in block.body:
        yield from line.body if isinstance(line, syntax.SimpleStatementLine) else ()


def is_shared(run: Run, expression: syntax.Node, depth: int = 0) -> bool:
    """Whether what is decoded is chosen by a part of the index: ``self.files[index // self.views]``."""
    if depth > 4:
        return False
    for operation in (expression, *run.script.source.inside(expression, syntax.BinaryOperation)):
        if isinstance(operation, syntax.BinaryOperation) and isinstance(operation.operator, syntax.FloorDivide):
            return run.of(operation.left) is Hangs.ITEM and run.of(operation.right) is Hangs.NOTHING
    names = [expression] if isinstance(expression, syntax.Name) else run.script.source.inside(expression, syntax.Name)
    for name in names:
        for binding in run.script.names.reaching(name):
            own = binding.value is not None and run.script.function(binding.node) is run.function and not binding.path
            if own and binding.value is not None and is_shared(run, binding.value, depth + 1):
                return True
    return False


def is_archive(run: Run, call: syntax.Call) -> bool:
    """Whether arrays are taken by their names out of what is loaded."""
    source = run.script.source
    parent = source.parents[call]
    held: list[syntax.Node] = [call]
    target: syntax.Node | None = None
    if isinstance(parent, syntax.Assign) and len(parent.targets) == 1:
        target = parent.targets[0].target
    elif isinstance(parent, syntax.WithItem) and parent.asname is not None:
        target = parent.asname.name
    if isinstance(target, syntax.Name):
        held += run.script.names.uses(target)
    return any(_is_taken_by_name(source.parents[each], each) for each in held)


def _is_taken_by_name(parent: syntax.Node, node: syntax.Node) -> bool:
    if not isinstance(parent, syntax.Subscript) or parent.value is not node:
        return False
    match parent.slice:
        case [syntax.SubscriptElement(slice=syntax.Index(value=syntax.SimpleString()))]:
            return True
    return False


def resizes(run: Run, call: syntax.Call) -> bool:
    """Whether a picture that was just opened is resized to the same size as all others."""
    match call.func:
        case syntax.Attribute(value=picture, attr=syntax.Name(value="resize" | "thumbnail")) if call.args:
            is_fixed = all(run.of(arg.value) is Hangs.NOTHING for arg in call.args)
            return is_fixed and run.of(picture) is Hangs.ITEM and is_decoded(run, picture, 0)
    return False


def shrinks(run: Run, call: syntax.Call) -> bool:
    """Whether ``cv2.resize`` brings what was just decoded to the size of all others."""
    size = run.script.argument(call, "dsize", 1)
    return size is not None and run.of(size) is Hangs.NOTHING and is_decoded(run, call.args[0].value, 0)


def is_decoded(run: Run, expression: syntax.Node, depth: int) -> bool:
    """Whether an expression is what a file was just decoded to, as it was or in another format."""
    if depth > 6:
        return False
    match expression:
        case syntax.Name():
            bindings = run.script.names.reaching(expression)
            values = [binding.value for binding in bindings if binding.value is not None]
            own = bool(values) and all(run.script.function(value) is run.function for value in values)
            return own and all(value is not expression and is_decoded(run, value, depth + 1) for value in values)
        case syntax.Subscript(value=value):
            return is_decoded(run, value, depth + 1)
        case syntax.Call(func=func, args=args):
            name = run.script.name(func)
            if name in DECODERS:
                return True
            if name in ("cv2.cvtColor", "numpy.array", "numpy.asarray", "PIL.Image.fromarray") and args:
                return is_decoded(run, args[0].value, depth + 1)
            if name is None and isinstance(func, syntax.Attribute) and func.attr.value in ("convert", "astype", "copy"):
                return is_decoded(run, func.value, depth + 1)
    return False
