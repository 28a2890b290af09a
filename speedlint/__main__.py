"""``python -m speedlint``."""

from speedlint.cli import main

if __name__ == "__main__":
    main(prog_name="speedlint")
