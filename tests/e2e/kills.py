"""Kill the functions in mid-work, again and again, and count what is lost: `python -m tests.e2e.kills --help`."""

import json
import tempfile
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from tests.e2e.faults import ordeal
from tests.e2e.faults.ordeal import Plan, endure
from tests.e2e.faults.stage import Play, rehearse
from tests.e2e.faults.story import Story, table_of

console = Console()
app = typer.Typer(add_completion=False)


@app.command()
def main(
    kills: Annotated[
        int, typer.Option(help="Processes to kill: ticks, API functions, direct producers and ingests.", min=4)
    ] = 200,
    jobs: Annotated[int, typer.Option(help="Jobs to schedule.", min=10)] = 5000,
    seconds: Annotated[float, typer.Option(help="How long to schedule and to kill; settling comes on top.")] = 300,
    spread: Annotated[float, typer.Option(help="Within how many seconds the jobs by the table are due.", min=1)] = 15,
    again_after: Annotated[
        int,
        typer.Option(help="The inbound queue's visibility timeout in this run, in seconds. Deployed, it is 181 s."),
    ] = 8,
    seed: Annotated[int, typer.Option(help="Of what is chosen at random. What meets what is up to the threads.")] = 1,
    out: Annotated[Path | None, typer.Option("--json", help="Where to write the figures as JSON.")] = None,
) -> None:
    """Deploy the template into an emulator, and kill -9 its functions in mid-invocation, under load.

    A kill counts only as such when a request of that very process is in flight: the proxy between the functions and
    AWS holds it, before or just after it takes effect, kills the process, and never answers. A direct producer is a
    client of this process's own: killed, none of its further requests takes effect.

    Exits 1 if a job is lost, early, delivered after a cancel or a reschedule that was answered with 200, or twice
    without a cause; if both jobs of a reschedule arrive, or neither; or if one arrives that nobody was told of.
    """
    plan = Plan(kills=kills, jobs=jobs, seconds=seconds, spread=spread, again_after=again_after, seed=seed)
    with tempfile.TemporaryDirectory() as scratch:
        with console.status("synthesize the stacks …"):
            play = rehearse(Path(scratch), queues=ordeal.QUEUES)
        story = _watched(plan, play, Path(scratch))
    console.print(table_of(story))
    if story.complaints:
        console.print(story, highlight=False, soft_wrap=True)
    if out is not None:
        out.write_text(json.dumps(story.figures, indent=2) + "\n")
    raise typer.Exit(1 if story.complaints else 0)


def _watched(plan: Plan, play: Play, scratch: Path) -> Story:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as shown:
        bars = {
            "killed": shown.add_task("killed", total=plan.kills),
            "scheduled": shown.add_task("scheduled", total=plan.jobs),
            "landed": shown.add_task("landed", total=plan.jobs),
        }

        def show(progress: ordeal.Progress) -> None:
            for name, bar in bars.items():
                shown.update(bar, completed=getattr(progress, name))

        return endure(plan, play, scratch, on_progress=show)


if __name__ == "__main__":
    app()
