"""Workers at work, in full: `python -m tests.e2e.workers --help`."""

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from tests.e2e.workers import measures, shift
from tests.e2e.workers.stage import Stage, staged

console = Console()
app = typer.Typer(add_completion=False, no_args_is_help=True)


@contextmanager
def _stage() -> Iterator[Stage]:
    with tempfile.TemporaryDirectory() as scratch:
        with console.status("deploy into a local AWS …"):
            opened = staged(Path(scratch))
            stage = opened.__enter__()
        try:
            yield stage
        finally:
            opened.__exit__(None, None, None)


@app.command()
def story(
    jobs: Annotated[int, typer.Option(help="Jobs over three queues, of every fate.", min=24)] = 10_000,
    seed: Annotated[int, typer.Option(help="Of what is chosen at random.")] = 1,
    patience: Annotated[float, typer.Option(help="Seconds to wait for the end.")] = 600,
) -> None:
    """Two worker processes and a Lambda consumer, cancels, a SIGTERM, a kill -9. Exits 1 if a promise is broken."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with _stage() as stage, Progress(*columns, console=console) as shown:
        bar = shown.add_task("had their effect", total=jobs)
        ended = shift.live(
            stage,
            jobs=jobs,
            seed=seed,
            patience=patience,
            on_progress=lambda done, of: shown.update(bar, completed=done),
        )
    _tell(ended.summary())
    raise typer.Exit(1 if ended.lost or ended.twice or ended.after_a_promise or ended.against_its_fate else 0)


@app.command()
def rate(rate: int = 50, seconds: float = 30.0) -> None:
    """Two processes under one rate: how many jobs begin in any 10 s."""
    with _stage() as stage:
        rated = measures.keep_a_rate(stage, rate=rate, seconds=seconds)
    fewest, most = rated.windows()
    _tell({"rate": f"{rate}/s", "jobs": len(rated.begun), "fewest in 10 s": fewest, "most in 10 s": most})


@app.command()
def lateness(rate: float = 50.0, seconds: float = 30.0) -> None:
    """The lateness in the handler of a precise queue."""
    with _stage() as stage:
        _tell(measures.lateness_told(measures.be_precise(stage, rate=rate, seconds=seconds)))


@app.command()
def pause() -> None:
    """How soon a pause takes hold, and its end."""
    with _stage() as stage:
        paused, resumed = measures.pause(stage)
    _tell({"paused after s": round(paused, 2), "resumed after s": round(resumed, 2)})


@app.command()
def throughput(jobs: int = 5000, rounds: int = 3) -> None:
    """Jobs a second of one process with an empty handler, beside a bare loop over the same messages."""
    with _stage() as stage:
        races = [measures.race(stage, jobs=jobs) for _ in range(rounds)]
    for each in races:
        _tell({way: round(figure) for way, figure in each.items()} | {"ratio": round(each["worker"] / each["bare"], 2)})


def _tell(figures: dict[str, Any]) -> None:
    console.print_json(json.dumps(figures))


if __name__ == "__main__":
    app()
