"""Where the command starts: ``speedlint``, and ``python -m speedlint``."""

import gc


def main() -> None:
    """Imports the command line without collecting garbage, which is a quarter of that time: libcst makes many classes."""
    gc.disable()
    from speedlint.cli import main as command

    gc.freeze()
    gc.enable()
    command(prog_name="speedlint")


if __name__ == "__main__":
    main()
