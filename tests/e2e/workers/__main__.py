"""Workers at work, in full: `python -m tests.e2e.workers --help`."""

import json
import tempfile
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from tests.e2e.workers import shift
from tests.e2e.workers.stage import staged

console = Console()
app = typer.Typer(add_completion=False, no_args_is_help=True)


@app.callback()
def _root() -> None:
    """Workers under fire."""


@app.command()
def story(
    jobs: Annotated[int, typer.Option(help="Jobs over three queues, of every fate.", min=24)] = 10_000,
    seed: Annotated[int, typer.Option(help="Of what is chosen at random.")] = 1,
) -> None:
    """Two workers, one of two processes, a Lambda consumer, cancels, signals. Exits 1 if a promise is broken."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with (
        tempfile.TemporaryDirectory() as scratch,
        staged(Path(scratch)) as stage,
        Progress(*columns, console=console) as shown,
    ):
        bar = shown.add_task("had their effect", total=jobs)
        ended = shift.live(
            stage,
            jobs=jobs,
            seed=seed,
            on_progress=lambda done, of: shown.update(bar, completed=done),
        )
    console.print_json(json.dumps(ended.summary()))
    for complaint in ended.complaints():
        console.print(complaint, highlight=False, soft_wrap=True)
    raise typer.Exit(1 if ended.complaints() else 0)


if __name__ == "__main__":
    app()
