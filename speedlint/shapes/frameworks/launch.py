"""What a project says of its precision outside of a framework's own options, and of how its scripts are started."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from speedlint.ask.script import Script
from speedlint.disk import Disk
from speedlint.solve import shipped
from speedlint.solve.flow import once

_HALF = re.compile(
    rb"float16|\.half\(\)|load_in_[48]bit|BitsAndBytes|quantization_config|torch_dtype|\bdtype\s*=\s*[\"'](?:auto|half|fp16|bf16)|GPTQ|fp8|[Dd]eep[Ss]peed|"
    rb"MIXED_PRECISION"
)
_ENDINGS = (".sh", ".md", ".yaml", ".yml", ".rst", "Makefile")
_MOST = 60
"""Files of one folder that are looked into."""
_CONFIGURED = re.compile(rb"accelerate[ \t]+config\b|--config[_-]file|ACCELERATE_\w")
_LAUNCH = re.compile(rb"accelerate[ \t]+launch[ \t]+((?:[^\n\\]|\\\n|\\.)*)")
_WHERE = frozenset({b"--multi_gpu"})
_WHERE_GIVEN = frozenset(
    b"--num_processes --num_machines --machine_rank --main_process_ip --main_process_port --gpu_ids".split()
)
"""Options of ``accelerate launch`` that say how many processes run where; the latter take a value (accelerate 1.15)."""
_MIXED = re.compile(rb"(?i)mixed[_-]precision")

_SET_HALF = re.compile(rb"(?m)^mixed_precision:[ \t]*[\"']?(?:fp16|bf16|fp8)\b")
_OF_ACCELERATE = re.compile(rb"(?m)^(?:compute_environment|distributed_type):")
"""What `accelerate config` writes beside the precision (accelerate 1.15)."""


@once(False)
def chooses_precision(script: Script) -> bool:
    """Whether the program chooses a precision for its model by itself, or is launched with one.

    Its own text speaks of half types, quantization or DeepSpeed, or a file beside the script, or above it in its project,
    of the ``mixed_precision`` that ``accelerate launch`` takes; or a configuration of Accelerate's in the project has one.
    """
    if script.program.mentions(script, _HALF):
        return True
    disk = script.program.disk
    if any(disk.mentions(str(path), _MIXED) for path in _texts(script)):
        return True
    configured = disk.holding(disk.configs(str(script.program.root(script.path))), (_SET_HALF,))
    return any(disk.mentions(path, _OF_ACCELERATE) for path in configured)


@once(False)
def is_launched_plainly(script: Script) -> bool:
    """Whether a command of the project's launches a script with all of Accelerate's options in sight, none of which says
    anything of precision or of a device, and no text of the project speaks of a file of options."""
    disk, texts = script.program.disk, [*map(str, shipped.texts(script)), *map(str, _texts(script))]
    if any(disk.mentions(path, _CONFIGURED) or disk.mentions(path, _MIXED) for path in texts):
        return False
    commands = (each for path in dict.fromkeys(texts) if disk.mentions(path, _LAUNCH) for each in _launches(disk, path))
    return any(command.split(b"/")[-1] == script.path.name.encode() for command in commands)


def _launches(disk: Disk, path: str) -> Iterator[bytes]:
    """The scripts that commands of a text launch with options that are known to say where, and not how, they run."""
    for found in _LAUNCH.finditer(disk.read(Path(path)).replace(b"\\\n", b" ")):
        words = iter(found[1].split())
        for word in words:
            if word in _WHERE:
                continue
            if word.partition(b"=")[0] in _WHERE_GIVEN:
                next(words if b"=" not in word else iter((word,)), None)
                continue
            if word.endswith(b".py"):
                yield word
            break


def _texts(script: Script) -> Iterator[Path]:
    folder, root = script.key.parent, script.program.root(script.path)
    folders = [each for each in (folder, *folder.parents) if each == root or root in each.parents] or [folder]
    for each in folders:
        paths = [each / name for end in _ENDINGS for name in script.program.disk.names(str(each), f"*{end}")]
        yield from (path for path in paths[:_MOST] if script.program.disk.is_readable(str(path)))
