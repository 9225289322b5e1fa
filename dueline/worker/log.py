"""A worker's log, never a payload: readable lines in a terminal, JSON lines elsewhere."""

import logging
import os
import sys
import time
from dataclasses import fields
from typing import Any, Literal

from aws_lambda_powertools import Logger

from dueline.core.text import printable
from dueline.worker.delivery import Event, EventKind

# Where in this module a line is written says nothing.
logger = Logger(service="worker", location=None)
_json_formatter = logger.registered_formatter
_WRITERS = {logging.DEBUG: logger.debug, logging.INFO: logger.info, logging.WARNING: logger.warning}
# The line's message is the event's own kind.
_LOGGED_AS = {"job_kind": "kind"}

LogForm = Literal["json", "text"]
_RED, _GREEN, _YELLOW, _DIM = "31", "32", "33", "2"
_COLOURS: dict[str, str] = {EventKind.SUCCEEDED: _GREEN, EventKind.FAILED: _RED, EventKind.LOST: _RED}


def write_as(form: LogForm | None) -> None:
    """Write lines in that form from now on; without one, as text if standard output is a terminal, else as JSON."""
    is_terminal = sys.stdout.isatty()
    if (form or ("text" if is_terminal else "json")) == "json":
        logger.registered_handler.setFormatter(_json_formatter)
        return
    has_colours = is_terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    logger.registered_handler.setFormatter(TextFormatter(has_colours=has_colours))


class TextFormatter(logging.Formatter):
    """Writes a line for a person, and the stack below it: when, what happened, to which job, and why."""

    def __init__(self, *, has_colours: bool) -> None:
        super().__init__()
        self._has_colours = has_colours

    def format(self, record: logging.LogRecord) -> str:
        fields = {name: value for name in _FIELDS if (value := record.__dict__.get(name)) not in (None, "")}
        stack, reason = str(fields.pop("stack", "")), str(fields.pop("reason", ""))
        error = str(fields.pop("error", ""))
        message = record.getMessage()
        usual = _YELLOW if record.levelno >= logging.WARNING else ""
        named = " ".join(f"{name}={_short(value)}" for name, value in fields.items())
        why = printable(": ".join(filter(None, (error, reason))))
        moment = self._coloured(time.strftime("%H:%M:%S", time.localtime(record.created)), _DIM)
        what = self._coloured(f"{printable(message):<9}", _COLOURS.get(message, usual))
        lines = [" ".join(filter(None, (moment, what, self._coloured(named, _DIM), why))).rstrip()]
        lines += [f"    {printable(line)}" for line in stack.splitlines()]
        return "\n".join(lines)

    def _coloured(self, text: str, colour: str) -> str:
        return f"\x1b[{colour}m{text}\x1b[0m" if self._has_colours and colour and text else text


def _short(value: object) -> str:
    return f"{value:.3f}" if isinstance(value, float) else printable(str(value))


def log(event: Event) -> None:
    """Log an event. A line has its fields, without those that have their default; `kind` is that of the job."""
    if event.kind.level < logger.log_level:
        return
    values = {each.name: getattr(event, each.name) for each in fields(event) if each.name != "kind"}
    defaults = {each.name: each.default for each in fields(event)}
    write = _WRITERS[event.kind.level]
    write(
        event.kind,
        extra={_LOGGED_AS.get(name, name): value for name, value in values.items() if value != defaults[name]},
    )


def log_process(message: str, *, is_warning: bool = False, **about: Any) -> None:
    """Log what happened to a worker process, as its supervisor sees it."""
    (logger.warning if is_warning else logger.info)(message, extra=about)


def log_process_id() -> None:
    """Let each line of JSON have the id of the process that wrote it."""
    _json_formatter.append_keys(pid=os.getpid())


# In the order in which a line of text has them: those of a job first.
_FIELDS = (
    *(_LOGGED_AS.get(each.name, each.name) for each in fields(Event) if each.name != "kind"),
    *("number", "pid", "exit_code", "again_in"),
)
write_as(None)
