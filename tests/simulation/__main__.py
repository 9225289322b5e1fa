"""The simulation from the command line: run seeds, replay one, break each rule."""

import json
import sys
import time
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from itertools import chain, islice
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from tests.simulation.mutation import CAUGHT, Caught, documented_seeds, lists_of, prove
from tests.simulation.mutations import MUTATIONS
from tests.simulation.run import first_failure, report_of, run, shrunk
from tests.simulation.schedule_history import has_schedules

CHUNK = 50
app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None)
screen = Console(stderr=True)

First = Annotated[int, typer.Option(help="The first seed; the others follow it.")]
Jobs = Annotated[int, typer.Option(help="Processes at once.", min=1)]


@app.command()
def runs(
    number: Annotated[int | None, typer.Option(help="How many seeds to run.", min=1)] = None,
    minutes: Annotated[float | None, typer.Option(help="For how long to run.", min=0)] = None,
    first: First = 0,
    jobs: Jobs = 2,
) -> None:
    """Run seeds, so many or for so long. The first that breaks a promise is shortened and shown; exits with 1."""
    if (number is None) == (minutes is None):
        raise typer.BadParameter("give --number or --minutes, one of them")
    deadline = None if minutes is None else time.monotonic() + 60 * minutes
    done = 0
    with ProcessPoolExecutor(jobs) as pool, _progress() as progress:
        task = progress.add_task("simulated runs", total=number)
        for seeds, broken in _in_chunks(pool, first, number, deadline, jobs):
            done += len(seeds)
            progress.update(task, completed=done)
            if broken is not None:
                pool.shutdown(cancel_futures=True)
                screen.print(report_of(broken), markup=False, highlight=False, soft_wrap=True)
                raise typer.Exit(1)
    print(f"{done} runs, seeds {first} to {first + done - 1}: no promise was broken")


def _in_chunks(
    pool: ProcessPoolExecutor, first: int, number: int | None, deadline: float | None, jobs: int
) -> Iterator[tuple[range, int | None]]:
    """Run seeds in chunks, in order, until there are no more or the time is over; yield each with what it broke."""
    ends = sys.maxsize if number is None else first + number
    chunks = (range(at, min(at + CHUNK, ends)) for at in range(first, ends, CHUNK))
    running: dict[Future[int | None], range] = {}
    running |= {pool.submit(first_failure, chunk): chunk for chunk in islice(chunks, 2 * jobs)}
    while running:
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            yield running.pop(future), future.result()
            if deadline is None or time.monotonic() < deadline:
                running |= {pool.submit(first_failure, chunk): chunk for chunk in islice(chunks, 1)}


@app.command()
def replay(seed: int, whole: Annotated[bool, typer.Option("--whole", help="Do not shorten it.")] = False) -> None:
    """Replay a seed: show the promise that it broke and its trace, shortened as far as the promise stays broken."""
    print(report_of(seed, whole=whole))
    raise typer.Exit(int(run(seed=seed)[1] is not None))


@app.command()
def mutations(
    only: Annotated[str, typer.Option(help="Only those whose name contains this.")] = "",
    number: Annotated[int, typer.Option(help="How many seeds each is given.", min=1)] = 20_000,
    again: Annotated[bool, typer.Option("--again", help="First the seed in tests/simulation/caught.md.")] = False,
    jobs: Jobs = 2,
) -> None:
    """Break one rule of the protocol at a time, and show that the simulation catches it: lists in Markdown."""
    chosen = [mutation for mutation in MUTATIONS if only in mutation.name]
    seeds = documented_seeds(CAUGHT.read_text()) if again else {}
    with ProcessPoolExecutor(jobs) as pool, _progress() as progress:
        proofs = {pool.submit(prove, each, number, first=seeds.get(each.name)): each for each in chosen}
        results: dict[str, Caught | None] = {}
        task = progress.add_task("mutations", total=len(chosen))
        while proofs:
            for future in wait(proofs, return_when=FIRST_COMPLETED).done:
                results[proofs.pop(future).name] = future.result()
                progress.advance(task)
    print(lists_of(chosen, results))
    raise typer.Exit(int(not all(results.values())))


@app.command(hidden=True)
def catch(
    number: int,
    expected: Annotated[list[str], typer.Argument()],
    scheduled: bool = False,
    first: int | None = None,
    decided: str = "[]",
) -> None:
    """Run seeds until one breaks an expected promise; print it as JSON. Runs in a mutated copy.

    If `scheduled`, only those whose worlds have schedules. First come the run of `decided`, and the seed `first`.
    """
    kept = {(stream, place): decision for (stream, place), decision in json.loads(decided)}
    seeds = filter(has_schedules, range(number)) if scheduled else range(number)
    for seed in chain([None] if kept else [], [] if first is None else [first], seeds):
        _, failure = run(seed=seed, decided=None if seed is not None else kept)
        if failure is not None and failure.promise in expected:
            caught = {"promise": failure.promise, "seed": seed, "decisions": len(shrunk(failure))}
            print(json.dumps(caught))
            return
    raise typer.Exit(1)


def _progress() -> Progress:
    shown = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    return Progress(*shown, console=screen, transient=True)


if __name__ == "__main__":
    app(prog_name=f"python -m tests.{Path(__file__).parent.name}")
