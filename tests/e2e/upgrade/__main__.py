"""Upgrade, roll back and upgrade again under traffic and kills: `python -m tests.e2e.upgrade --help`."""

import json
import tempfile
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from tests.e2e.faults.story import Story, table_of
from tests.e2e.upgrade.journey import Plan, upgrade
from tests.e2e.upgrade.plays import rehearse_both
from tests.e2e.upgrade.switches import Releases
from tests.predecessor import UnknownPredecessor, check_out

QUEUES = Path(__file__).parent / "queues.yaml"
console = Console()
app = typer.Typer(add_completion=False)


@app.command()
def main(
    seconds: Annotated[float, typer.Option(help="How long each of the four deployments stays.", min=1)] = 25,
    spread: Annotated[float, typer.Option(help="Within how many seconds the jobs by the table are due.", min=1)] = 60,
    kills: Annotated[
        int, typer.Option(help="Processes to kill: ticks, API functions, direct producers and ingests.", min=4)
    ] = 40,
    again_after: Annotated[
        int, typer.Option(help="The visibility timeout of the inbound queue and the planner's, in seconds.")
    ] = 8,
    seed: Annotated[int, typer.Option(help="Of what is chosen at random. What meets what is up to the threads.")] = 1,
    out: Annotated[Path | None, typer.Option("--json", help="Where to write the figures as JSON.")] = None,
) -> None:
    """Deploy the predecessor into an emulator, this release over it, the predecessor again, and this release again.

    All along, jobs are scheduled, cancelled and moved, by clients of both releases, and processes killed. Jobs are due
    beyond the next deployment: so what one release writes, the other reads. Exits 1 if a promise is broken. Where the
    predecessor is not in the history, as in a shallow clone, it says so, and nothing is done.
    """
    plan = Plan(seconds=seconds, spread=spread, kills=kills, again_after=again_after, seed=seed)
    with tempfile.TemporaryDirectory() as scratch:
        try:
            checkout = check_out(Path(scratch) / "predecessor")
        except UnknownPredecessor as unknown:
            console.print(f"skipped: {unknown}", highlight=False, soft_wrap=True)
            raise typer.Exit(0) from None
        story = _played(plan, checkout, Path(scratch))
    console.print(table_of(story))
    if story.complaints:
        console.print(str(story), highlight=False, soft_wrap=True)
    if out is not None:
        out.write_text(json.dumps(story.figures, indent=2) + "\n")
    raise typer.Exit(1 if story.complaints else 0)


def _played(plan: Plan, checkout: Path, scratch: Path) -> Story:
    with console.status("synthesize both releases …") as status:
        plays = rehearse_both(checkout, QUEUES, out=scratch, again_after=plan.again_after)
        releases = Releases.of(*plays, checkout=checkout)

        def show(release: str) -> None:
            status.update(f"{release} …")
            console.print(release)

        return upgrade(plan, releases, checkout, scratch / "stage", on_release=show)


if __name__ == "__main__":
    app()
