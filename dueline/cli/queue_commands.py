"""How queues are doing; pause their workers, and limit them."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Annotated, Any

import typer
from rich.console import Console

from dueline.cli import connect, options
from dueline.cli.screen import DONE, Screen, end_with, json_of, relative
from dueline.core import clock, queue_settings, retry
from dueline.core.overview import Control, Overview
from dueline.errors import RETRYABLE, DuelineError

# As an argument, and as the console has it.
_NO_LIMIT, _UNKNOWN = "no-limit", "unknown"
_WATCH_SECONDS = 5
_COLUMNS = ("scheduled", "next due", "waiting", "in flight", "delayed", "dead", "last tick", "workers")


def queues(
    ctx: typer.Context,
    name: options.AnyQueue = None,
    watch: Annotated[
        bool, typer.Option("--watch", help=f"Show it again every {_WATCH_SECONDS} s, until Ctrl-C.")
    ] = False,
) -> None:
    """Show how the queues are doing, or one of them.

    The last tick is that of the partition that is furthest behind. What could not be read is unknown.
    """
    run: connect.CommandRun = ctx.obj
    time = clock.SystemClock()
    if not watch:
        return end_with(_read(run, name)(run.screen))
    with suppress(KeyboardInterrupt):
        while True:
            try:
                show = _read(run, name)
                if run.screen.shows_text:
                    Console().clear()
                show(replace(run.screen, now=time.now()))
            except RETRYABLE as error:
                run.screen.error(error)
            time.sleep(_WATCH_SECONDS)


def _read(run: connect.CommandRun, name: str | None) -> Callable[[Screen], list[int]]:
    """Read how queues are doing, all or one; return what shows it and returns exit codes."""
    if name is not None:
        return partial(_show_queue, name, run.client.queue(name))
    settings = run.client.queues()
    read = [] if run.screen.quiet else [queue.name for queue in settings]
    return partial(_show_queues, settings, [*retry.in_lanes(partial(retry.attempt, run.client.queue), read)])


def _show_queue(name: str, overview: Overview, screen: Screen) -> list[int]:
    screen.json(_as_json(name, overview))
    screen.ids(name)
    screen.record({"queue": name, **_as_text(overview)})
    if len(overview.levels) > 1:
        rows = [(number, *json_of(level).values()) for number, level in enumerate(overview.levels, start=1)]
        screen.table(["priority", "waiting", "in flight", "delayed"], rows)
    return []


def _show_queues(
    settings: Sequence[queue_settings.QueueSettings], overviews: Sequence[Overview | DuelineError], screen: Screen
) -> list[int]:
    screen.ids(*(queue.name for queue in settings))
    codes, documents, rows = [DONE], list[dict[str, Any]](), list[tuple[object, ...]]()
    for queue, overview in zip(settings, overviews, strict=False):
        document = {"queue": queue.name, **queue.to_json()}
        if isinstance(overview, DuelineError):
            codes.append(screen.error(overview, queue=queue.name))
            documents.append(document)
            rows.append((queue.name, *[_UNKNOWN] * len(_COLUMNS)))
        else:
            documents.append(document | _as_json(queue.name, overview))
            texts = _as_text(overview)
            if overview.next_due:
                texts["next due"] = relative(overview.next_due - screen.now)
            rows.append((queue.name, *texts.values()))
    screen.json({"queues": documents})
    screen.table(["queue", *_COLUMNS], rows)
    return codes


def _as_json(name: str, overview: Overview) -> dict[str, Any]:
    counts = json_of(overview) | _control_fields(overview.control)
    levels, _ = counts.pop("levels"), counts.pop("control")
    # Null where it is unknown yet, as in the API's answer.
    fields = {"queue": name, "next_due": None, "fence_age": None, **counts, **json_of(overview.depth)}
    return fields | ({"levels": levels} if len(levels) > 1 else {})


def _as_text(overview: Overview) -> dict[str, object]:
    age, depth = overview.fence_age, overview.depth
    values = (
        f"{overview.scheduled:,}+" if overview.more_scheduled else overview.scheduled,
        overview.next_due or (_UNKNOWN if overview.scheduled else "none"),
        depth.waiting,
        depth.in_flight,
        depth.delayed,
        overview.dead,
        _UNKNOWN if age is None else relative(timedelta(seconds=-age)),
        _control_text(overview.control),
    )
    return dict(zip(_COLUMNS, values, strict=True))


def pause(ctx: typer.Context, queue: options.Queue) -> None:
    """Stop a queue's workers from starting jobs."""
    run: connect.CommandRun = ctx.obj
    _show_control(run.screen, queue, run.client.pause(queue))


def resume(ctx: typer.Context, queue: options.Queue) -> None:
    """Let a queue's workers start jobs again."""
    run: connect.CommandRun = ctx.obj
    _show_control(run.screen, queue, run.client.resume(queue))


def rate(
    ctx: typer.Context,
    queue: options.Queue,
    rate: Annotated[
        str, typer.Argument(metavar="RATE", show_default=False, help=f"Such as 50/s, 90/m or 200/h, or {_NO_LIMIT}.")
    ],
) -> None:
    """Limit how fast a queue's workers start jobs.

    The rate is that of all its workers together; 0/s lets them start nothing.
    """
    run: connect.CommandRun = ctx.obj
    limit = None if rate == _NO_LIMIT else queue_settings.Rate.parse(rate)
    _show_control(run.screen, queue, run.client.set_rate(queue, limit))


def _control_fields(control: Control) -> dict[str, Any]:
    return {"paused": control.paused, "rate": None if control.rate is None else str(control.rate)}


def _control_text(control: Control) -> str:
    rate = f"rate {control.rate}" if control.rate else "no limit"
    return f"{'paused' if control.paused else 'not paused'}, {rate}"


def _show_control(screen: Screen, queue: str, control: Control) -> None:
    screen.json({"queue": queue, **_control_fields(control)})
    screen.line(f"{queue}: {_control_text(control)}; its workers follow within 5 s")
