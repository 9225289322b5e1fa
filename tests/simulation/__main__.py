"""The simulation from the command line: run seeds, replay one, break each rule."""

import json
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Annotated

import typer

from tests.simulation.mutation import CAUGHT, documented_seeds, lists_of, prove
from tests.simulation.mutations import MUTATIONS
from tests.simulation.run import first_failure, report_of, run
from tests.simulation.schedule_history import has_schedules

CHUNK, CHUNKS = 50, 8
app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None)


@app.command()
def runs(
    number: Annotated[int, typer.Option(help="How many seeds to run.", min=1)] = sys.maxsize,
    minutes: Annotated[float, typer.Option(help="For how long to run.", min=0)] = float("inf"),
    first: Annotated[int, typer.Option(help="The first seed; the others follow it.")] = 0,
) -> None:
    """Run seeds, so many or for so long. The first that breaks a promise is shortened and shown; exits with 1."""
    done, ends, deadline = first, first + number, time.monotonic() + 60 * minutes
    with ProcessPoolExecutor() as pool:
        while done < ends and time.monotonic() < deadline:
            until = min(done + CHUNKS * CHUNK, ends)
            chunks = [range(at, min(at + CHUNK, until)) for at in range(done, until, CHUNK)]
            for broken in pool.map(first_failure, chunks):
                if broken is not None:
                    print(report_of(broken))
                    raise typer.Exit(1)
            done = until
    print(f"{done - first} runs, seeds {first} to {done - 1}: no promise was broken")


@app.command()
def replay(seed: int) -> None:
    """Replay a seed: show the promise that it broke and its trace, shortened as far as the promise stays broken."""
    print(report_of(seed))
    raise typer.Exit(int(run(seed=seed)[1] is not None))


@app.command()
def mutations(
    only: Annotated[str, typer.Option(help="Only those whose name contains this.")] = "",
    number: Annotated[int, typer.Option(help="How many seeds each is given.", min=1)] = 20_000,
    again: Annotated[bool, typer.Option("--again", help="First the seed in tests/simulation/caught.md.")] = False,
) -> None:
    """Break one rule of the protocol at a time, and show that the simulation catches it: lists in Markdown."""
    chosen = [mutation for mutation in MUTATIONS if only in mutation.name]
    seeds = documented_seeds(CAUGHT.read_text()) if again else {}
    with ProcessPoolExecutor() as pool:
        results = list(pool.map(partial(prove, number=number), chosen, [seeds.get(each.name) for each in chosen]))
    print(lists_of(chosen, results))
    raise typer.Exit(int(not all(results)))


@app.command(hidden=True)
def catch(name: str, number: int, first: int | None = None) -> None:
    """Run seeds until one breaks a promise that a mutation names; print it as JSON. Runs in the mutated copy.

    First come the mutation's own decisions, if it has any, and the seed `first`.
    """
    (mutation,) = [each for each in MUTATIONS if each.name == name]
    seeds = filter(has_schedules, range(number)) if mutation.needs_schedules else range(number)
    for seed in chain([None] if mutation.decided else [], [] if first is None else [first], seeds):
        _, failure = run(seed=seed, decided=None if seed is not None else mutation.decided)
        if failure is not None and failure.promise in mutation.breaks:
            print(json.dumps({"promise": failure.promise, "seed": seed}))
            return
    raise typer.Exit(1)


if __name__ == "__main__":
    app(prog_name=f"python -m tests.{Path(__file__).parent.name}")
