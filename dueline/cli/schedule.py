"""Schedule a job, or one a line."""

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from dueline.answers import Job
from dueline.cli import given
from dueline.cli.run import Run, run_of
from dueline.cli.screen import Bar, end_with
from dueline.cli.told import json_of
from dueline.errors import DuelineError
from dueline.new_job import NewJob

Payload = Annotated[
    str, typer.Argument(metavar="PAYLOAD", show_default=False, help="JSON; - is stdin, @name a file's content.")
]
Key = Annotated[str | None, typer.Option(help="Its idempotency key; with --lines, what each line's key begins with.")]
Tenant = Annotated[str | None, typer.Option(help="Whose job it is.")]
Priority = Annotated[int, typer.Option(help="1 is the most urgent.")]
Lines = Annotated[bool, typer.Option("--lines", help="PAYLOAD has one a line; all are checked before any is sent.")]


def schedule(
    ctx: typer.Context,
    queue: given.Queue,
    payload: Payload,
    at: given.At = None,
    delay: given.Delay = None,
    key: Key = None,
    tenant: Tenant = None,
    priority: Priority = 1,
    lines: Lines = False,
) -> None:
    """Schedule a job: at an instant, after a delay, or now."""
    run = run_of(ctx)
    asked: dict[str, Any] = {"at": at, "delay": delay, "tenant": tenant, "priority": priority}
    if lines:
        _schedule_lines(run, queue, given.lines(payload), key, asked)
    else:
        job = NewJob(payload=given.payload(payload), key=key, **asked)
        show_job(run, _schedule(run, queue, job))


def show_job(run: Run, job: Job) -> None:
    """Show one job."""
    if run.screen.as_json:
        return run.screen.json(json_of(job))
    return run.screen.record(
        {"id": job.id, "queue": job.queue, "due": job.due, "state": job.state.value, "moved to": job.moved_to}
    )


def _schedule(run: Run, queue: str, job: NewJob) -> Job:
    return run.client.schedule(
        queue, job.payload, at=job.at, delay=job.delay, key=job.key, tenant=job.tenant, priority=job.priority
    )


def _schedule_lines(
    run: Run, queue: str, payloads: list[tuple[int, object]], key: str | None, asked: dict[str, Any]
) -> None:
    with Bar("scheduling", shown=not run.screen.as_json) as bar:
        results = run.client.schedule_many(queue, _new_jobs(payloads, key, asked, bar))
    codes = [_show_line(run, number, result) for (number, _), result in zip(payloads, results, strict=True)]
    if not run.screen.as_json:
        run.screen.line(f"scheduled {codes.count(0)} of {len(codes)}")
    end_with(codes)


def _new_jobs(payloads: list[tuple[int, object]], key: str | None, asked: dict[str, Any], bar: Bar) -> Iterator[NewJob]:
    for done, (number, payload) in enumerate(payloads):
        bar(done, len(payloads))
        yield NewJob(payload=payload, key=None if key is None else f"{key}-{number}", **asked)


def _show_line(run: Run, number: int, result: Job | DuelineError) -> int:
    if isinstance(result, DuelineError):
        return run.screen.fault(result, line=number)
    if run.screen.as_json:
        run.screen.json({"line": number, **json_of(result)})
    return 0
