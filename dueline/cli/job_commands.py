"""Schedule jobs, look them up, list, reschedule and cancel them."""

import json
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import partial
from itertools import islice
from typing import Annotated, Any

import typer

from dueline.cli import connect, import_command, options, screen
from dueline.client.models import Job, NewJob, ScheduledJob, job_json
from dueline.core import request
from dueline.core.job import State
from dueline.core.retry import attempt, in_lanes
from dueline.core.text import plural
from dueline.errors import RETRYABLE, DuelineError

# A table's cell of a payload.
_SHOWN_CHARACTERS = 80
# What not every job has.
_OPTIONAL_COLUMNS = ("kind", "key", "schedule", "for")
_TOO_LATE = "it is or may be in its queue already; a worker that uses the library still skips it"

From = Annotated[
    datetime | None, options.time_option("Jobs due from then on; 1d is a day ahead.", "--from", parser=options.ahead)
]
To = Annotated[datetime | None, options.time_option("Jobs due before then.", "--to", parser=options.ahead)]
Limit = Annotated[int, typer.Option(min=1, max=options.MOST_LISTED, help="How many at most.")]
OfKind = Annotated[str | None, typer.Option("--kind", help="Only jobs of this kind.")]
Payload = Annotated[
    str, typer.Argument(metavar="PAYLOAD", show_default=False, help="JSON; - reads stdin, @name a file.")
]
Key = Annotated[
    str | None,
    typer.Option(help="Its name, to find, move and cancel it by: one job of its queue has it at a time."),
]
IfExists = Annotated[
    request.IfExists,
    typer.Option(help="What becomes of a job that has the key and waits: keep it, replace it, or fail."),
]
Call = Annotated[
    str | None,
    typer.Option(
        "--idempotency-key",
        help="The name of this call: repeated with it, it schedules no second job. With --lines, a name's beginning.",
    ),
]
Id = Annotated[str | None, typer.Option("--id", help="Its id, such as an error names, in place of a time and a key.")]
IdsOrQueue = Annotated[
    list[str],
    typer.Argument(
        metavar="ID...|QUEUE",
        show_default=False,
        help="Ids of jobs; with --key, their queue.",
        autocompletion=connect.complete_queue,
    ),
]
Keys = Annotated[list[str] | None, typer.Option("--key", help="The key of a job, in place of an id; may be repeated.")]
OfLines = Annotated[
    bool, typer.Option("--lines", help="PAYLOAD has one job a line; all are checked before any is sent.")
]
OfRun = Annotated[
    import_command.ImportIds | None,
    typer.Option(
        "--run",
        parser=import_command.ImportIds.parse,
        metavar="TOKEN",
        help="With --lines: continue an earlier run, which printed it.",
    ),
]


def get(ctx: typer.Context, ids: IdsOrQueue, keys: Keys = None) -> None:
    """Look jobs up, by their ids, or by a queue and keys."""
    run: connect.CommandRun = ctx.obj
    _show_each(run, ids, keys, run.client.get)


def cancel(ctx: typer.Context, ids: IdsOrQueue, keys: Keys = None) -> None:
    """Cancel (unschedule) jobs, by their ids, or by a queue and keys.

    Exits 4 when one is or may be in its queue already.
    """
    run: connect.CommandRun = ctx.obj
    by, names = ("key", keys) if keys else ("id", ids)
    results = run.client.cancel_many(queue=_queue_of(ids), keys=keys) if keys else run.client.cancel_many(ids)
    for name, result in zip(names, results, strict=True):
        if isinstance(result, DuelineError):
            continue
        run.screen.json({by: name, "state": result.value})
        reason = f": {_TOO_LATE}" if result is State.CANCEL_REQUESTED else ""
        run.screen.line(f"{name}: {result.value}{reason}")
    late = [screen.TOO_LATE for result in results if result is State.CANCEL_REQUESTED]
    screen.end_with([*_codes(run, names, results, by=by), *late])


def _queue_of(arguments: Sequence[str]) -> str:
    if len(arguments) > 1:
        raise typer.BadParameter(f"--key goes with one QUEUE: there are {len(arguments)} arguments")
    return arguments[0]


def reschedule(
    ctx: typer.Context,
    id: Annotated[
        str,
        typer.Argument(
            metavar="ID|QUEUE",
            show_default=False,
            help="The job; with --key, its queue.",
            autocompletion=connect.complete_queue,
        ),
    ],
    at: options.At = None,
    delay: options.Delay = None,
    key: Annotated[str | None, typer.Option(help="The job's key, in place of an id.")] = None,
) -> None:
    """Move a job, by any of its ids or by its key, to another time; show it as it is then."""
    run: connect.CommandRun = ctx.obj
    job: dict[str, Any] = {"id": id} if key is None else {"queue": id, "key": key}
    show_job(run, run.client.reschedule(**job, at=at, delay=delay))


def run_now(ctx: typer.Context, ids: IdsOrQueue, keys: Keys = None) -> None:
    """Run scheduled jobs now, by their ids, or by a queue and keys; show them as they are then.

    Exits 4 when one has left already.
    """
    run: connect.CommandRun = ctx.obj
    _show_each(run, ids, keys, partial(run.client.reschedule, delay=0))


def jobs(
    ctx: typer.Context,
    queue: options.Queue,
    start: From = None,
    end: To = None,
    kind: OfKind = None,
    limit: Limit = 100,
) -> None:
    """List a queue's scheduled jobs, in due order."""
    run: connect.CommandRun = ctx.obj
    scheduled = islice(run.client.jobs(queue, start=start, end=end, kind=kind), limit)
    if run.screen.as_json:
        for job in scheduled:
            run.screen.json(job_json(job))
        return
    jobs = list(scheduled)
    run.screen.ids(*(job.id for job in jobs))
    columns = ["id", "due", *_OPTIONAL_COLUMNS, "payload"]
    rows = ((job.id, job.due, job.kind, job.key, job.schedule, job.scheduled_for, _shown(job)) for job in jobs)
    run.screen.table(columns, rows, optional=_OPTIONAL_COLUMNS, empty="no job is scheduled then")
    if len(jobs) == limit:
        run.screen.line(f"the first {limit:,}: --limit shows more, --from continues")


def _show_each(
    run: connect.CommandRun, ids: Sequence[str], keys: Sequence[str] | None, call: Callable[..., Job]
) -> None:
    """Show the job that a call returns for each id, or for each key of a queue."""
    if keys:
        queue, by, names = _queue_of(ids), "key", keys
        results = list(in_lanes(partial(attempt, lambda key: call(queue=queue, key=key)), keys))
    else:
        by, names, results = "id", ids, list(in_lanes(partial(attempt, call), ids))
    jobs = [each for each in results if isinstance(each, Job)]
    if len(jobs) == 1 or not run.screen.shows_text:
        for job in jobs:
            show_job(run, job)
    elif jobs:
        run.screen.table(["id", "due", "state"], ((job.id, job.due, job.state.value) for job in jobs))
    screen.end_with(_codes(run, names, results, by=by))


def _codes(run: connect.CommandRun, names: Iterable[str], results: Iterable[object], *, by: str) -> list[int]:
    """Report the errors among the results, each with the id or the key of its job; return the exit codes of all."""
    return [
        run.screen.error(result, **{by: name}) if isinstance(result, DuelineError) else screen.DONE
        for name, result in zip(names, results, strict=True)
    ]


def _shown(job: ScheduledJob) -> str:
    if job.payload_at:
        return f"{plural(job.payload_at.bytes, 'byte')} in s3://{job.payload_at.bucket}/{job.payload_at.key}"
    text = json.dumps(job.payload) if job.payload_text is None else job.payload_text
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"


def schedule(
    ctx: typer.Context,
    queue: options.Queue,
    payload: Payload,
    at: options.At = None,
    delay: options.Delay = None,
    key: Key = None,
    if_exists: IfExists = request.IfExists.KEEP,
    id: Id = None,
    idempotency_key: Call = None,
    kind: options.Kind = None,
    tenant: options.Tenant = None,
    priority: options.Priority = 1,
    lines: OfLines = False,
    of_run: OfRun = None,
) -> None:
    """Schedule a job: at a time, after a delay, or now."""
    run: connect.CommandRun = ctx.obj
    if lines:
        for option, of_one in (("--id", id), ("--key", key)):
            if of_one is not None:
                raise typer.BadParameter(f"{option} is of one job: with --lines give --idempotency-key")
        if if_exists is not request.IfExists.KEEP:
            raise typer.BadParameter("--if-exists goes with --key, which is of one job: not with --lines")
        time: dict[str, Any] = {"at": at, "delay": delay, "idempotency_key": idempotency_key}
        job = NewJob(payload=None, **time, kind=kind, tenant=tenant, priority=priority)
        importing = import_command.Import(run, queue, job, ids=of_run)
        with import_command.lines_of(payload) as content:
            return importing.carry_out(content)
    if of_run:
        raise typer.BadParameter("--run goes with --lines")
    try:
        time = {"at": at, "delay": delay, "key": key, "id": id, "idempotency_key": idempotency_key}
        time |= {"if_exists": if_exists.value}
        scheduled = run.client.schedule(
            queue, options.payload(payload), **time, kind=kind, tenant=tenant, priority=priority
        )
    except RETRYABLE as error:
        if error.job_id and not error.idempotency_key:
            error.add_note(f"repeating the command with --id {error.job_id}, and no time, schedules it once")
        raise
    return show_job(run, scheduled)


def show_job(run: connect.CommandRun, job: Job) -> None:
    run.screen.json(job_json(job))
    run.screen.ids(job.id)
    fields = {"id": job.id, "moved from": job.moved_from, "queue": job.queue, "due": job.due, "state": job.state.value}
    outcome = {name: getattr(job, name) for name in ("attempts", "started", "ended", "error", "schedule")}
    content = {name: getattr(job, name, None) for name in ("key", "kind", "tenant")}
    content |= {"payload": _shown(job)} if isinstance(job, ScheduledJob) else {}
    run.screen.record({**fields, **outcome, "for": job.scheduled_for, **content})
