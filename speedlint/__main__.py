"""Where the command starts: ``speedlint``, and ``python -m speedlint``."""

import gc
import sys
from pathlib import Path

_FEW = 100_000
"""Objects between two collections: syntax trees are many small objects that live as long as the run."""


def main() -> None:
    """Imports the command line without collecting garbage, which is a quarter of that time."""
    gc.disable()
    from speedlint.cli import main as command

    gc.freeze()
    gc.enable()
    gc.set_threshold(_FEW)
    command(prog_name="speedlint")


def _import_nothing_from_here() -> None:
    """Takes the working folder, which ``python -m`` puts first, off the path: what is checked must not be imported."""
    here, package = Path.cwd(), Path(__file__).resolve().parent
    if sys.path and Path(sys.path[0] or ".").absolute() == here and package.parent != here:
        del sys.path[0]


if __name__ == "__main__":
    _import_nothing_from_here()
    main()
