"""Where the command starts: ``speedlint``, and ``python -m speedlint``."""

import gc

_FEW = 100_000
"""Objects between two collections: syntax trees are many small objects that live as long as the run."""


def main() -> None:
    """Imports the command line without collecting garbage, which is a quarter of that time: libcst makes many classes."""
    gc.disable()
    from speedlint.cli import main as command

    gc.freeze()
    gc.enable()
    gc.set_threshold(_FEW)
    command(prog_name="speedlint")


if __name__ == "__main__":
    main()
