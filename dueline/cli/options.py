"""Options and arguments as values: times, spans, payloads."""

import json
import math
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, BinaryIO, NoReturn
from urllib.parse import urlsplit

import typer

from dueline.core import instant

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


def span_text(span: timedelta) -> str:
    """Return a span of whole seconds as `span` reads it, in the largest unit that goes into it.

    >>> [span_text(timedelta(seconds=seconds)) for seconds in (0, 90, 900, 86_400)]
    ['0s', '90s', '15m', '1d']
    """
    seconds = int(span.total_seconds())
    fitting = [unit for unit in "dhm" if seconds and not seconds % _SECONDS[unit]]
    unit = fitting[0] if fitting else "s"
    return f"{seconds // _SECONDS[unit]}{unit}"


def before(now: datetime, ago: timedelta | None, option: str) -> datetime | None:
    """Return the instant so long ago."""
    try:
        return None if ago is None else now - ago
    except OverflowError:
        raise typer.BadParameter(f"{option} is {ago}: so long ago is before the year 1") from None


def url(text: str | None) -> str | None:
    """Return the URL of an API, None where none is given."""
    if not text:
        return None
    try:
        parts = urlsplit(text)
        is_valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_valid = False
    if not is_valid:
        raise typer.BadParameter(f"{text!r} is no URL: it must be such as http://127.0.0.1:8000")
    return text


def moment(text: str) -> datetime:
    """Return the instant that a text names in ISO 8601."""
    try:
        return instant.parse(text)
    except ValueError as error:
        raise typer.BadParameter(f"{error}; it must be such as 2027-01-04T09:00:00+01:00") from None


def payload(text: str) -> object:
    """Return the JSON value of an argument, of stdin (`-`) or of a file (`@` and its name)."""
    return _json(_content(text), "the payload")


@contextmanager
def source(text: str) -> Iterator[Iterable[bytes]]:
    """Open stdin or a file, to be read line by line. Raises typer.BadParameter, even in the middle of it."""
    if text != "-" and not text.startswith("@"):
        raise typer.BadParameter("--lines reads payloads from stdin or a file: PAYLOAD must be - or @file")
    if text == "-":
        yield _lines_of(_stdin(), text)
        return
    try:
        file = Path(text[1:]).open("rb")  # noqa: SIM115, what fails later has another message
    except OSError as error:
        raise _unreadable(text, error) from None
    with file:
        yield _lines_of(file, text)


def _lines_of(file: BinaryIO, text: str) -> Iterator[bytes]:
    try:
        yield from file
    except OSError as error:
        raise _unreadable(text, error) from None


def _stdin() -> BinaryIO:
    # Python has none where it was closed.
    if sys.stdin is None:
        raise typer.BadParameter("PAYLOAD is -, which is stdin, and that is closed")
    return sys.stdin.buffer


def line(content: bytes, number: int) -> object:
    """Return the JSON value that a line has, which is not blank."""
    try:
        return _json(content.decode(), f"line {number}")
    except UnicodeDecodeError:
        raise typer.BadParameter(f"line {number} is no text in UTF-8") from None


def is_blank(content: bytes) -> bool:
    """Return whether a line has only what JSON treats as space."""
    return not content.strip(b" \t\r\n")


def _content(text: str) -> str:
    try:
        if text != "-" and not text.startswith("@"):
            # Bytes that are no UTF-8 come from the shell as surrogates.
            return text.encode().decode()
        return (_stdin().read() if text == "-" else Path(text[1:]).read_bytes()).decode()
    except OSError as error:
        raise _unreadable(text, error) from None
    except UnicodeError:
        raise typer.BadParameter("the payload is no text in UTF-8") from None


def _unreadable(text: str, error: OSError) -> typer.BadParameter:
    name = "stdin" if text == "-" else repr(text[1:])
    return typer.BadParameter(f"{name} cannot be read: {error.strerror}")


def _json(text: str, what: str) -> object:
    try:
        return json.loads(text, parse_int=_whole, parse_float=_decimal, parse_constant=_constant)
    except json.JSONDecodeError as error:
        # Without the payload's text, which may be secret.
        raise typer.BadParameter(f"{what} is no JSON: {error.msg} at character {error.pos + 1}") from None
    except ValueError as error:
        raise typer.BadParameter(f"{what} is no JSON that can be sent: {error}") from None
    except RecursionError:
        raise typer.BadParameter(f"{what} is no JSON that can be read: it nests too deep") from None


def _whole(digits: str) -> int:
    try:
        return int(digits)
    except ValueError:
        raise ValueError(f"a number has {len(digits)} digits, which are too many") from None


def _decimal(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError("a number is too large for a float")
    return number


def _constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def time_option(help: str, *names: str) -> Any:
    """Return an option that is a time."""
    return typer.Option(*names, parser=moment, metavar="ISO8601", help=help, show_default=False)


def span_option(help: str, *names: str) -> Any:
    """Return an option that is a span of time."""
    return typer.Option(*names, parser=span, metavar="SPAN", help=help, show_default=False)


At = Annotated[datetime | None, time_option("When it is due, such as 2027-01-04T09:00:00+01:00.")]
Delay = Annotated[timedelta | None, span_option("How long until it is due: 90, 15m, 2h, 3d.")]
Queue = Annotated[str, typer.Argument(metavar="QUEUE", show_default=False)]
Ids = Annotated[list[str], typer.Argument(metavar="ID...", show_default=False)]
Limit = Annotated[int | None, typer.Option(min=1, help="How many at most.")]
Tenant = Annotated[str | None, typer.Option(help="The tenant that it belongs to.")]
Priority = Annotated[int, typer.Option(help="1 is the most urgent.")]
