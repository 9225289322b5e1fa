"""Show queues, pause and resume their workers, and limit their rate."""

from typing import Annotated

import typer

from dueline.cli import options
from dueline.cli.connect import Run, run_of
from dueline.cli.output import control_fields, overview_fields, settings_fields
from dueline.lookup.control import Control
from dueline.lookup.overview import Overview
from dueline.model.rate import Rate

_NONE = "none"
_SOON = "its workers heed that within 5 s"


def queues(
    ctx: typer.Context, name: Annotated[str | None, typer.Argument(metavar="QUEUE", show_default=False)] = None
) -> None:
    """Tell which queues there are, or how one of them is doing."""
    run = run_of(ctx)
    if name is not None:
        return _show_overview(run, name, run.client.queue(name))
    found = run.client.queues()
    if run.screen.as_json:
        return run.screen.json({"queues": list(map(settings_fields, found))})
    columns = ["queue", "partitions", "priorities", "precise", "retention"]
    rows = ((q.name, q.partitions, q.priorities, q.precise, q.retention) for q in found)
    return run.screen.table(columns, rows)


def pause(ctx: typer.Context, queue: options.Queue) -> None:
    """Let a queue's workers take no more jobs."""
    run = run_of(ctx)
    _show_control(run, queue, run.client.pause(queue))


def resume(ctx: typer.Context, queue: options.Queue) -> None:
    """Let a queue's workers take jobs again."""
    run = run_of(ctx)
    _show_control(run, queue, run.client.resume(queue))


def rate(
    ctx: typer.Context,
    queue: options.Queue,
    rate: Annotated[
        str | None, typer.Argument(metavar="RATE", show_default=False, help="Such as 50/s, 90/m or 200/h; or none.")
    ] = None,
) -> None:
    """Say how fast a queue's workers may go, or tell it.

    The rate is of all its workers together; 0/s lets them begin nothing.
    """
    run = run_of(ctx)
    if rate is None:
        return _show_control(run, queue, run.client.queue(queue).control, changed=False)
    wanted = None if rate == _NONE else Rate.parse(rate)
    return _show_control(run, queue, run.client.set_rate(queue, wanted))


def _show_control(run: Run, queue: str, control: Control, *, changed: bool = True) -> None:
    fields = {"queue": queue, **control_fields(control)}
    if run.screen.as_json:
        return run.screen.json(fields)
    state = f"{queue}: {'paused' if control.paused else 'running'}, rate {control.rate or _NONE}"
    return run.screen.line(f"{state}; {_SOON}" if changed else state)


def _show_overview(run: Run, name: str, overview: Overview) -> None:
    fields = overview_fields(name, overview)
    if run.screen.as_json:
        return run.screen.json(fields)
    more = fields.pop("more_scheduled")
    fields["scheduled"] = f"{overview.scheduled}{'+' if more else ''}"
    levels = fields.pop("levels", [])
    run.screen.record(fields | {"next_due": overview.next_due})
    if levels:
        rows = ((number, *level.values()) for number, level in enumerate(levels, start=1))
        run.screen.table(["priority", *levels[0]], rows)
    return None
