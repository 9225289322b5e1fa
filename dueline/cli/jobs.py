"""Look jobs up, list them, move them and take them back."""

import json
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import partial
from itertools import islice
from typing import Annotated

import typer

from dueline.cli import options
from dueline.cli.connect import Run, run_of
from dueline.cli.faults import DONE, TOO_LATE
from dueline.cli.output import json_of
from dueline.cli.schedule import show_job
from dueline.cli.screen import end_with
from dueline.client.answers import Job
from dueline.client.listed import ScheduledJob
from dueline.errors import DuelineError
from dueline.model.job import State
from dueline.retry.calls import attempt, in_lanes

# A table's cell of a payload.
_SHOWN_CHARACTERS = 80
_TOO_LATE = "it is or may be in its queue already; a worker that uses the library still skips it"

From = Annotated[datetime | None, typer.Option("--from", parser=options.moment, metavar="ISO8601", help="Or now.")]
To = Annotated[
    datetime | None, typer.Option("--to", parser=options.moment, metavar="ISO8601", help="Just before then.")
]
Limit = Annotated[int, typer.Option(min=1, max=10**9, help="How many at most.")]


def get(ctx: typer.Context, ids: options.Ids) -> None:
    """Look jobs up."""
    run = run_of(ctx)
    _show_each(run, ids, run.client.get)


def cancel(ctx: typer.Context, ids: options.Ids) -> None:
    """Take jobs back (unschedule them). Exits 4 when one is or may be in its queue already."""
    run = run_of(ctx)
    results = run.client.cancel_many(ids)
    for id, result in zip(ids, results, strict=True):
        if not isinstance(result, DuelineError):
            _show_state(run, id, result)
    late = [TOO_LATE for result in results if result is State.CANCEL_REQUESTED]
    end_with([*_codes(run, ids, results), *late])


def reschedule(
    ctx: typer.Context,
    id: Annotated[str, typer.Argument(metavar="ID", show_default=False)],
    at: options.At = None,
    delay: options.Delay = None,
) -> None:
    """Move a job to another time; show the one that takes its place."""
    run = run_of(ctx)
    show_job(run, run.client.reschedule(id, at=at, delay=delay))


def run_now(ctx: typer.Context, ids: options.Ids) -> None:
    """Let scheduled jobs run now; show those that take their places. Exits 4 when one is on its way already."""
    run = run_of(ctx)
    _show_each(run, ids, run.client.run_now)


def jobs(ctx: typer.Context, queue: options.Queue, start: From = None, end: To = None, limit: Limit = 100) -> None:
    """List what is scheduled, in due order."""
    run = run_of(ctx)
    found = islice(run.client.jobs(queue, start=start, end=end), limit)
    if run.screen.as_json:
        for job in found:
            run.screen.json(json_of(job) | ({"payload": job.payload} if _has_payload(job) else {}))
        return
    listed = list(found)
    run.screen.table(*_table(listed))
    if len(listed) == limit:
        run.screen.line(f"the first {limit}: --limit shows more, --from goes on")


def _show_each(run: Run, ids: Sequence[str], ask: Callable[[str], Job]) -> None:
    found = list(in_lanes(partial(attempt, ask), ids))
    jobs = [each for each in found if isinstance(each, Job)]
    if run.screen.as_json or len(jobs) == 1:
        for job in jobs:
            show_job(run, job)
    elif jobs:
        run.screen.table(["id", "due", "state"], ((job.id, job.due, job.state.value) for job in jobs))
    end_with(_codes(run, ids, found))


def _codes(run: Run, ids: Iterable[str], results: Iterable[object]) -> list[int]:
    """Tell what went wrong with each of these; return the exit codes of all."""
    return [
        run.screen.fault(result, id=id) if isinstance(result, DuelineError) else DONE
        for id, result in zip(ids, results, strict=True)
    ]


def _show_state(run: Run, id: str, state: State) -> None:
    if run.screen.as_json:
        return run.screen.json({"id": id, "state": state.value})
    return run.screen.line(f"{id}: {state.value}" + (f": {_TOO_LATE}" if state is State.CANCEL_REQUESTED else ""))


def _table(listed: Sequence[ScheduledJob]) -> tuple[list[str], list[tuple[object, ...]]]:
    """Return the columns and the rows of jobs; of which schedule they are, only where one is of any."""
    if any(job.schedule for job in listed):
        columns = ["id", "due", "schedule", "for", "payload"]
        return columns, [(job.id, job.due, job.schedule, job.nominal, _shown(job)) for job in listed]
    return ["id", "due", "payload"], [(job.id, job.due, _shown(job)) for job in listed]


def _has_payload(job: ScheduledJob) -> bool:
    return job.payload_at is None and job.payload_text is None


def _shown(job: ScheduledJob) -> str:
    if job.payload_at:
        return f"{job.payload_at.bytes} bytes in s3://{job.payload_at.bucket}/{job.payload_at.key}"
    text = json.dumps(job.payload) if job.payload_text is None else job.payload_text
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"
