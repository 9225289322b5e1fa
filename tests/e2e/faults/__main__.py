"""The other stories of faults, in full: `python -m tests.e2e.faults --help`."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from tests.e2e.faults import calm, drought, schedules, storm
from tests.e2e.faults.stage import Play, rehearse
from tests.e2e.faults.story import Story, table_of

console = Console()
app = typer.Typer(add_completion=False, no_args_is_help=True)
Jobs = Annotated[int, typer.Option(help="How many jobs, at least.", min=4)]


@app.command("storm")
def a_storm(jobs: Jobs = 400, seed: Annotated[int, typer.Option(help="Of what is chosen at random.")] = 7) -> None:
    """Requests are delayed, lost, repeated, throttled, refused and done in part. Exits 1 if a promise is broken."""
    _tell(lambda play, folder: storm.weather_a_storm(storm.Plan(jobs=jobs, seed=seed), play, folder))


@app.command("drought")
def a_drought(jobs: Jobs = 200) -> None:
    """The tables throttle until jobs are overdue, then that of jobs alone. Exits 1 if a promise is broken."""
    _tell(lambda play, folder: drought.live_through_a_drought(drought.Plan(jobs=jobs), play, folder))


@app.command()
def letters(jobs: Jobs = 50) -> None:
    """A queue is deleted under its jobs, and messages of all kinds are sent. Exits 1 if a promise is broken."""
    _tell(lambda play, folder: calm.live_in_calm(calm.Plan(jobs=jobs), play, folder))


@app.command("schedules")
def of_schedules(
    number: Annotated[int, typer.Option("--schedules", help="How many schedules, each of every 60 s.", min=2)] = 50,
    changes: Annotated[int, typer.Option(help="How often they are put, paused, resumed or deleted.", min=1)] = 180,
    kills: Annotated[int, typer.Option(help="Processes to kill: ticks, API functions and planners.", min=3)] = 60,
    seconds: Annotated[float, typer.Option(help="How long to change and to kill.", min=5)] = 150,
    tail: Annotated[float, typer.Option(help="How long they run on after the last change.", min=1)] = 65,
    seed: Annotated[int, typer.Option(help="Of what is chosen at random.")] = 5,
) -> None:
    """Those who change, plan and send runs of schedules are killed and throttled. Exits 1 if a promise is broken."""
    plan = schedules.Plan(
        schedules=number, changes=changes, kills=kills, seconds=seconds, lead=(0, 60), tail=tail, seed=seed
    )
    _tell(lambda play, folder: schedules.keep_to_schedules(plan, play, folder))


def _tell(live: Callable[[Play, Path], Story]) -> None:
    with tempfile.TemporaryDirectory() as scratch, console.status("deploy into a local AWS, and live through it …"):
        story = live(rehearse(Path(scratch) / "play"), Path(scratch) / "stage")
    console.print(table_of(story))
    if story.complaints:
        console.print(story, highlight=False, soft_wrap=True)
    raise typer.Exit(1 if story.complaints else 0)


if __name__ == "__main__":
    app()
