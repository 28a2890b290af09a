"""What a project says of its precision outside of a framework's own options, and of how its scripts are started."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from speedlint.ask.script import Script
from speedlint.solve.flow import once

_HALF = re.compile(
    rb"float16|\.half\(\)|load_in_[48]bit|BitsAndBytes|quantization_config|torch_dtype|\bdtype\s*=\s*[\"'](?:auto|half|fp16|bf16)|GPTQ|fp8|[Dd]eep[Ss]peed|"
    rb"MIXED_PRECISION"
)
_ENDINGS = (".sh", ".md", ".yaml", ".yml", ".rst", "Makefile")
_MOST = 60
"""Files of one folder that are looked into."""
_CONFIGURED = re.compile(rb"accelerate[ \t]+config\b|--config_file")
_MIXED = re.compile(rb"mixed[_-]precision")


@once(False)
def chooses_precision(script: Script) -> bool:
    """Whether the program chooses a precision for its model by itself, or is launched with one.

    Its own text speaks of half types, quantization or DeepSpeed, or a file beside the script, or above it in its project,
    of the ``mixed_precision`` that ``accelerate launch`` takes.
    """
    if script.program.mentions(script, _HALF):
        return True
    return any(script.program.disk.mentions(str(path), _MIXED) for path in _texts(script))


@once(False)
def is_launched_plainly(script: Script) -> bool:
    """Whether a command of the project's launches a script with Accelerate's options in sight: by no file of options, and no
    ``accelerate config`` that asks for them."""
    command = re.compile(rb"accelerate[ \t]+launch\b(?:[^\n]|\\\n)*?\b" + re.escape(script.path.name.encode()) + rb"\b")
    texts = [str(path) for path in _texts(script)]
    disk = script.program.disk
    is_asked = any(disk.mentions(path, _CONFIGURED) for path in texts)
    return not is_asked and any(disk.mentions(path, command) for path in texts)


def _texts(script: Script) -> Iterator[Path]:
    folder, root = script.key.parent, script.program.root(script.path)
    folders = [each for each in (folder, *folder.parents) if each == root or root in each.parents] or [folder]
    for each in folders:
        paths = [each / name for end in _ENDINGS for name in script.program.disk.names(str(each), f"*{end}")]
        yield from (path for path in paths[:_MOST] if script.program.disk.is_readable(str(path)))
