"""Measure Dueline: `python -m bench --help`."""

import signal
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from bench import workers
from bench.part import Part
from bench.report import reported
from bench.results import REPEATS_WITHIN, STORED, is_stored, pairs
from bench.run import PARTS, run
from local.template import ROOT

QUICK = ROOT / ".local" / "bench"
NAMES = [part.name for part in PARTS]
NEEDED = ("matplotlib", "celery", "redis")

console = Console()
app = typer.Typer(add_completion=False, no_args_is_help=True, help="Measure Dueline, and tell what came out.")

Names = Annotated[list[str] | None, typer.Argument(metavar="[PART]...", help=f"Of {', '.join(NAMES)}; all by default.")]


@app.command("run")
def measure(
    parts: Names = None,
    quick: Annotated[bool, typer.Option("--quick", help="A run of 2 minutes, whose figures are rough.")] = False,
    out: Annotated[
        Path | None, typer.Option(help="Where to write; bench/results by default, .local/bench if quick.")
    ] = None,
) -> None:
    """Measure, and write the raw results as JSON and the pictures as SVG; then the tables into the docs."""
    chosen, folder = _chosen(parts), out or (QUICK if quick else STORED)
    _check_what_is_installed()
    # What is started meanwhile ends with this process, whatever ends it.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    run(chosen, quick=quick, folder=folder, console=console)
    if folder == STORED:
        report()
    console.print(f"written to {folder}")


@app.command("workers")
def measure_workers(
    quick: Annotated[bool, typer.Option("--quick", help="Fewer jobs, and one race.")] = False,
) -> None:
    """Measure workers: a shared rate, a pause and its end, a race. Told, and kept in .local/bench."""
    run([workers.PART], quick=quick, folder=QUICK, console=console)


@app.command()
def report() -> None:
    """Put the stored results into docs/benchmarks.md and README.md."""
    for path, text in reported(PARTS, folder=STORED).items():
        path.write_text(text)


@app.command()
def compare(one: Path, other: Path, parts: Annotated[list[str] | None, typer.Option("--part")] = None) -> None:
    """Compare the ratios of two runs. Exits 1 where one does not repeat within 10 %."""
    names = [part.name for part in _chosen(parts)]
    for name in names:
        for folder in (one, other):
            if not is_stored(name, folder=folder):
                raise typer.BadParameter(f"{folder} has no result of {name}: choose others by --part")
    compared = sorted(pairs(names, one, other), key=lambda pair: (pair.part, pair.name))
    shown = Table("part", "ratio", "one", "other", f"within {REPEATS_WITHIN:.0%}")
    for pair in compared:
        verdict = "yes" if pair.repeats else f"no: {pair.spread:.0%}"
        shown.add_row(pair.part, pair.name, f"{pair.one:.4g}", f"{pair.other:.4g}", verdict)
    console.print(shown)
    raise typer.Exit(0 if all(pair.repeats for pair in compared) else 1)


def _check_what_is_installed() -> None:
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise typer.BadParameter(f"{', '.join(missing)} is not installed: pip install -r bench/requirements.txt")


def _chosen(names: list[str] | None) -> list[Part]:
    unknown = set(names or ()) - set(NAMES)
    if unknown:
        raise typer.BadParameter(f"there is no part {sorted(unknown)[0]!r}: choose from {', '.join(NAMES)}")
    return [part for part in PARTS if not names or part.name in names]


if __name__ == "__main__":
    app()
