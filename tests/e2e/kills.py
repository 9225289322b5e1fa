"""Kill the functions in mid-work, again and again, and count what is lost: `python -m tests.e2e.kills --help`."""

import json
import tempfile
from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from local.summary import percentile
from tests.e2e.faults import ordeal, repeats
from tests.e2e.faults.ordeal import Plan, Survived, endure
from tests.e2e.faults.stage import rehearse

console = Console()
app = typer.Typer(add_completion=False)


@app.command()
def main(
    kills: Annotated[int, typer.Option(help="Processes to kill, half of them ticks and half ingests.", min=2)] = 200,
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
    """Deploy the template into an emulator, and kill -9 its ticks and ingests in mid-invocation, under load.

    A kill counts only as such when a request of that very process is in flight: the proxy between the functions and
    AWS holds it, before or just after it takes effect, kills the process, and never answers.

    Exits 1 if a job is lost, early, or delivered after a cancel that was answered with 200.
    """
    plan = Plan(kills=kills, jobs=jobs, seconds=seconds, spread=spread, again_after=again_after, seed=seed)
    with tempfile.TemporaryDirectory() as scratch:
        with console.status("synthesize the stacks …"):
            play = rehearse(Path(scratch), queues=ordeal.QUEUES)
        survived = _watched(plan, play, Path(scratch))
    figures = figures_of(survived)
    console.print(_table(figures))
    if not survived.is_good or survived.unexplained or repeats.UNEXPLAINED in survived.repeats_by_cause:
        console.print(survived.told, *survived.unexplained, sep="\n", highlight=False, soft_wrap=True)
    if out is not None:
        out.write_text(json.dumps(figures, indent=2) + "\n")
    raise typer.Exit(0 if survived.is_good else 1)


def _watched(plan: Plan, play: Any, scratch: Path) -> Survived:
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


def figures_of(survived: Survived) -> dict[str, Any]:
    books, lateness = survived.books, survived.books.lateness()
    steps = Counter(f"{kill.function}: {kill.step}, {_moment(kill.had_effect)}" for kill in survived.kills)
    return {
        "kills": len(survived.kills),
        "kills by step": dict(sorted(steps.items())),
        "jobs accepted": len(books.accepted),
        "jobs by route": dict(Counter(job.route for job in books.accepted.values())),
        "jobs whose call failed": len(books.maybe),
        "cancels by answer": dict(Counter(books.cancels.values())),
        "delivered": len(books.times),
        "lost": len(books.lost),
        "early": len(books.early),
        "delivered after a 200 cancel": len(books.broken),
        "repeats": sum(books.times.values()) - len(books.times),
        "repeats by cause": dict(survived.repeats_by_cause),
        "most jobs repeated by one killed tick": survived.most_by_one_kill,
        "failed ticks that no kill explains": len(survived.unexplained),
        "dead letters": {name: Counter(reasons) for name, reasons in survived.letters.items()},
        "lateness in s": {f"p{percent}": round(percentile(lateness, percent), 3) for percent in (50, 95, 100)},
        "duration in s": round(survived.seconds, 1),
    }


def _moment(had_effect: bool) -> str:
    return "after its effect" if had_effect else "before its effect"


def _table(figures: dict[str, Any]) -> Table:
    table = Table("what", "figure")
    for what, figure in figures.items():
        table.add_row(
            what, "\n".join(f"{k}: {v}" for k, v in figure.items()) if isinstance(figure, dict) else str(figure)
        )
    return table


if __name__ == "__main__":
    app()
