"""``speedlint doctor``."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from speedlint import files
from speedlint.cli.options import colour
from speedlint.interpreter import choose, of_folder
from speedlint.output.problems import report_problems
from speedlint.output.terminal import coloured, shown, visible


@click.command()
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@click.option("--python", metavar="PATH", help="The interpreter that trains (default: the first one around with torch).")
@click.option("--data", multiple=True, type=click.Path(path_type=Path), metavar="PATH", help="Where the training data lies.")
@click.option("--format", "style", type=click.Choice(["text", "json"]), default="text", help="How to print what it sees.")
@colour
@click.pass_context
def doctor(ctx: click.Context, paths: tuple[Path, ...], python: str | None, data: tuple[Path, ...], style: str) -> None:
    """Looks at the machine: torch, CUDA and the GPUs, cores, memory, the environment, and the storage of the data.

    torch is asked in a process of its own. The loaders of the scripts in PATHS are held against the cores.

    Exits with 0 if all is well, 1 if something costs time, and 2 if something cannot be looked at.
    """
    from speedlint.doctor import examine, scripts
    from speedlint.doctor.advice import Level
    from speedlint.doctor.facts import gather
    from speedlint.output import doctor_json, doctor_text

    found = files.discover(paths) if paths else files.Discovery((), ())
    loaders, problems = scripts.loaders(found.paths)
    interpreter = choose(python, None)
    facts = gather(interpreter.path, data or (Path(),), loaders)
    advice = examine(facts)
    if style == "json":
        click.echo(doctor_json.render(facts, advice, (*found.problems, *problems)))
    else:
        click.echo(visible(interpreter.said))
        for path, origin in of_folder(Path.cwd()) if python is None else ():
            if path != interpreter.path:
                where = shown(Path(path))
                click.echo(f"{origin} has a Python of its own, which is asked where it is named: --python {where}")
        click.echo(doctor_text.render(advice), color=coloured(sys.stdout))
        report_problems((*found.problems, *problems))
    wrong = bool(found.problems or problems)
    ctx.exit(2 if wrong else 1 if any(each.level is Level.WARNING for each in advice) else 0)
