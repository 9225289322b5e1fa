"""Schedule a job, or one a line."""

from pathlib import Path
from typing import Annotated, Any

import typer

from dueline.cli import options
from dueline.cli.connect import Run, run_of
from dueline.cli.import_ids import ImportIds
from dueline.cli.importing import Asked, Import
from dueline.cli.lines import Left, lines_of
from dueline.cli.output import json_of
from dueline.client.answers import Job
from dueline.client.new_job import NewJob
from dueline.errors import RETRYABLE

Payload = Annotated[
    str, typer.Argument(metavar="PAYLOAD", show_default=False, help="JSON; - is stdin, @name a file's content.")
]
Key = Annotated[str | None, typer.Option(help="Its idempotency key; with --lines, what each line's key begins with.")]
Id = Annotated[
    str | None,
    typer.Option("--id", help="The id that it is to have, in place of a time and a key: such as an error names."),
]
Tenant = Annotated[str | None, typer.Option(help="Whose job it is.")]
Priority = Annotated[int, typer.Option(help="1 is the most urgent.")]
OfLines = Annotated[bool, typer.Option("--lines", help="PAYLOAD has one a line; all are checked before any is sent.")]
OfRun = Annotated[
    ImportIds | None,
    typer.Option(
        "--run", parser=ImportIds.parse, metavar="TOKEN", help="Go on with an earlier run of --lines, which printed it."
    ),
]
LeftFile = Annotated[
    Path | None, typer.Option("--left", metavar="FILE", show_default=False, help="Where lines go that failed.")
]


def schedule(
    ctx: typer.Context,
    queue: options.Queue,
    payload: Payload,
    at: options.At = None,
    delay: options.Delay = None,
    key: Key = None,
    id: Id = None,
    tenant: Tenant = None,
    priority: Priority = 1,
    lines: OfLines = False,
    of_run: OfRun = None,
    left: LeftFile = None,
) -> None:
    """Schedule a job: at an instant, after a delay, or now."""
    run = run_of(ctx)
    rest: dict[str, Any] = {"tenant": tenant, "priority": priority}
    if left and not lines:
        raise typer.BadParameter("--left goes with --lines")
    if of_run and not lines:
        raise typer.BadParameter("--run goes with --lines")
    if id and lines:
        raise typer.BadParameter("--id is of one job: with --lines give --key")
    if lines:
        asked = Asked(at=at, delay=delay, key=key, run=of_run, rest=rest)
        _schedule_lines(run, queue, payload, asked=asked, left=left)
    else:
        job = NewJob(payload=options.payload(payload), at=at, delay=delay, key=key, id=id, **rest)
        show_job(run, _schedule(run, queue, job))


def show_job(run: Run, job: Job) -> None:
    """Show one job."""
    if run.screen.as_json:
        return run.screen.json(json_of(job))
    return run.screen.record(
        {
            "id": job.id,
            "queue": job.queue,
            "due": job.due,
            "state": job.state.value,
            "moved to": job.moved_to,
            "schedule": job.schedule,
            "for": job.nominal,
        }
    )


def _schedule(run: Run, queue: str, job: NewJob) -> Job:
    try:
        return run.client.schedule(
            queue,
            job.payload,
            at=job.at,
            delay=job.delay,
            key=job.key,
            id=job.id,
            tenant=job.tenant,
            priority=job.priority,
        )
    except RETRYABLE as error:
        if error.job_id and not error.key:
            error.add_note(f"asked again with --id {error.job_id}, and no time, it is there once")
        raise


def _schedule_lines(run: Run, queue: str, source: str, *, asked: Asked, left: Path | None) -> None:
    beside = {"--at": asked.at, "--delay": asked.delay, "--key": asked.key}
    if asked.run and (more := [name for name, value in beside.items() if value is not None]):
        reason = "a run says which jobs its lines are, and when these are due"
        raise typer.BadParameter(f"--run and {more[0]} are both given: give one of them, {reason}")
    if left is not None and left.exists():
        raise typer.BadParameter(f"--left is {str(left)!r}, which is there already: it must be a new file")
    kept = Left(left) if left else Left.at(run.screen.now)
    importing = Import(run, queue, source, asked=asked, left=kept)
    with lines_of(source) as lines:
        importing.carry_out(lines)
