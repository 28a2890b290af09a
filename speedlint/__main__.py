"""Where the command starts: ``speedlint``, and ``python -m speedlint``."""

import atexit
import gc
import sys
from pathlib import Path

_INTERRUPTED = 130
"""``speedlint.cli.INTERRUPTED``, before that can be imported."""


def main() -> None:
    """Runs the command line without the collector of cycles, which takes a third of a check: what is read lives as long as
    the run, and the engine clears what it lets go. Nor is anything collected at the end, which took a tenth: the system
    takes it all back at once."""
    gc.disable()
    atexit.register(gc.freeze)
    try:
        from speedlint.cli import main as command
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)
    command(prog_name="speedlint")


def _import_nothing_from_here() -> None:
    """Takes the working folder, which ``python -m`` puts first, off the path: what is checked must not be imported."""
    here, package = Path.cwd(), Path(__file__).resolve().parent
    if sys.path and Path(sys.path[0] or ".").absolute() == here and package.parent != here:
        del sys.path[0]


if __name__ == "__main__":
    _import_nothing_from_here()
    main()
