"""What is typed, as values."""

import json
import re
import sys
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated

import typer

from dueline import instant

_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400}
_DELAY = re.compile(r"(\d{1,9}(?:\.\d{1,3})?)([smhd]?)", re.ASCII)


def span(text: str) -> timedelta:
    """Return the span of time that a text names.

    >>> span("90"), span("1.5h")
    (datetime.timedelta(seconds=90), datetime.timedelta(seconds=5400))
    """
    match = _DELAY.fullmatch(text)
    if match is None:
        raise typer.BadParameter(f"{text[:100]!r} is no span of time: it must be seconds, or such as 15m, 2h or 3d")
    return timedelta(seconds=float(match[1]) * _SECONDS[match[2]])


def moment(text: str) -> datetime:
    """Return the instant that a text names in ISO 8601."""
    try:
        return instant.parse(text)
    except ValueError as error:
        raise typer.BadParameter(f"{error}; it must be such as 2027-01-04T09:00:00+01:00") from None


def payload(text: str) -> object:
    """Return the JSON value that is written out, on stdin (`-`) or in a file (`@` and its name)."""
    return _json(content(text), "the payload")


def lines(text: str) -> list[tuple[int, object]]:
    """Return the JSON values on stdin or in a file, one a line, with the numbers of their lines."""
    if text != "-" and not text.startswith("@"):
        raise typer.BadParameter("--lines reads payloads from stdin or a file: PAYLOAD must be - or @file")
    numbered = enumerate(content(text).split("\n"), start=1)
    return [(number, _json(line, f"line {number}")) for number, line in numbered if line.strip()]


def content(text: str) -> str:
    if text != "-" and not text.startswith("@"):
        return text
    try:
        return (sys.stdin.buffer.read() if text == "-" else Path(text[1:]).read_bytes()).decode()
    except OSError as error:
        raise typer.BadParameter(f"{text[1:]!r} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise typer.BadParameter("the payload is no text in UTF-8") from None


def _json(text: str, what: str) -> object:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        # Of the payload nothing is said: it may be secret.
        raise typer.BadParameter(f"{what} is no JSON: {error.msg} at character {error.pos + 1}") from None
    except RecursionError:
        raise typer.BadParameter(f"{what} is no JSON that can be read: it nests too deep") from None


At = Annotated[datetime | None, typer.Option(parser=moment, metavar="ISO8601", help="When it is due, with a zone.")]
Delay = Annotated[
    timedelta | None, typer.Option(parser=span, metavar="SPAN", help="After how long it is due: 90, 15m, 2h, 3d.")
]
Queue = Annotated[str, typer.Argument(metavar="QUEUE", show_default=False)]
Ids = Annotated[list[str], typer.Argument(metavar="ID...", show_default=False)]
