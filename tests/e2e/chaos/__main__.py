"""Scenarios in full: `python -m tests.e2e.chaos --help`."""

import json
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from tests.e2e.chaos import functions, schedules, workers
from tests.e2e.chaos.deployment import Deployment, deployed
from tests.e2e.chaos.ledger import Report

console = Console()
app = typer.Typer(add_completion=False, no_args_is_help=True)
Jobs = Annotated[int, typer.Option(help="How many jobs, at least.", min=24)]
Seed = Annotated[int, typer.Option(help="Of what is chosen at random. What meets what is up to the threads.")]
Kills = Annotated[int, typer.Option(help="Processes of functions to kill.", min=3)]
Seconds = Annotated[float, typer.Option(help="How long to schedule or change, and to kill; settling comes on top.")]


@app.callback()
def _root() -> None:
    """Deploy into a local AWS, let faults happen, and exit with 1 if a promise was broken.

    A kill counts only when a request of that very process is in flight: the proxy between the functions and AWS holds
    it, before or just after it takes effect, kills the process, and never answers.
    """


@app.command()
def kills(kills: Kills = 200, jobs: Jobs = 5000, seconds: Seconds = 300, seed: Seed = 1) -> None:
    """Kill -9 ticks, API functions and ingests in mid-invocation, while jobs are scheduled, cancelled and moved."""
    plan = functions.Plan(kills=kills, jobs=jobs, seconds=seconds, spread=15, seed=seed)
    _run(partial(functions.run, plan))


@app.command()
def network_faults(jobs: Jobs = 400, seed: Seed = 7) -> None:
    """Delay, lose, repeat and refuse requests, or do them in part, and throttle all for a while, under callers."""
    _run(partial(functions.run, functions.Plan(of_each=3, jobs=jobs, seconds=jobs / 20, spread=15, seed=seed)))


@app.command("schedules")
def of_schedules(
    number: Annotated[int, typer.Option("--schedules", help="How many, each of every 60 s.", min=2)] = 50,
    changes: Annotated[int, typer.Option(help="How often they are put, paused, resumed or deleted.", min=1)] = 180,
    kills: Kills = 60,
    seconds: Seconds = 150,
    tail: Annotated[float, typer.Option(help="Seconds that they run on after the last change.", min=1)] = 65,
    seed: Seed = 5,
) -> None:
    """Kill those who change, plan and send runs of schedules."""
    sizes = {"schedules": number, "changes": changes, "kills": kills}
    _run(partial(schedules.run, schedules.Plan(seconds=seconds, lead=(0, 60), tail=tail, seed=seed, **sizes)))


@app.command("workers")
def of_workers(jobs: Jobs = 10_000, seed: Seed = 1) -> None:
    """Kill and end workers, one of two processes: failures, retries, cancels."""
    _run(partial(workers.run, jobs=jobs, seed=seed))


def _run(scenario: Callable[[Deployment], Report]) -> None:
    with tempfile.TemporaryDirectory() as folder, console.status("in a local AWS …"), deployed(Path(folder)) as running:
        report = scenario(running)
    table = Table("what", "figure")
    for what, figure in report.figures.items():
        table.add_row(what, json.dumps(figure, indent=1) if isinstance(figure, dict) else str(figure))
    console.print(table)
    if report.complaints:
        console.print(str(report), highlight=False, soft_wrap=True, markup=False)
    raise typer.Exit(1 if report.complaints else 0)


if __name__ == "__main__":
    app(prog_name="python -m tests.e2e.chaos")
