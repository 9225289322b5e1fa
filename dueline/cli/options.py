"""Options and arguments as values: times, spans, payloads."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, BinaryIO
from urllib.parse import urlsplit

import typer

from dueline.cli import connect
from dueline.core import instant
from dueline.core.clock import SystemClock
from dueline.core.request import json_text

# So that an error names a limit.
MOST_LISTED = 10**9
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def span(text: str) -> timedelta:
    try:
        return instant.parse_span(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def span_text(span: timedelta) -> str:
    """Return a span of whole seconds as `span` reads it, in the largest unit that goes into it.

    >>> [span_text(timedelta(seconds=seconds)) for seconds in (0, 90, 900, 86_400)]
    ['0s', '90s', '15m', '1d']
    """
    seconds = int(span.total_seconds())
    fitting = [unit for unit in "dhm" if seconds and not seconds % _SECONDS[unit]]
    unit = fitting[0] if fitting else "s"
    return f"{seconds // _SECONDS[unit]}{unit}"


def url(text: str | None) -> str | None:
    """Return the URL of an API, or the ARN of its function; None where none is given."""
    if not text or text.startswith("arn:"):
        return text or None
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
        return instant.parse(datetime.fromisoformat(text).isoformat())
    except ValueError as error:
        raise typer.BadParameter(f"{error}; it must be such as 2027-01-04T09:00:00+01:00") from None


def ahead(text: str) -> datetime:
    """Return the instant that a text names, as `moment` does, or that is a span such as 1d ahead."""
    return _moment(text, 1)


def ago(text: str) -> datetime:
    """Return the instant that a text names, or that was a span such as 1d ago."""
    return _moment(text, -1)


def _moment(text: str, sign: int) -> datetime:
    if not text.endswith(tuple("wdhms")):
        return moment(text)
    try:
        return SystemClock().now() + sign * span(text)
    except OverflowError:
        raise typer.BadParameter(f"{text} from now is outside the years 1 to 9999") from None


def payload(text: str) -> object:
    """Return the JSON value of an argument, of stdin (`-`) or of a file (`@` and its name)."""
    if text != "-" and not text.startswith("@"):
        # Bytes that are no UTF-8 come from the shell as surrogates.
        return json_value(text.encode(errors="surrogatepass"), "the payload")
    with source(text) as file:
        return json_value(file.read(), "the payload")


@contextmanager
def source(text: str) -> Iterator[BinaryIO]:
    """Open stdin or a file. Raises typer.BadParameter, even in the middle of it."""
    try:
        if text != "-":
            with Path(text[1:]).open("rb") as file:
                yield file
        elif sys.stdin is None:
            # It was closed.
            raise typer.BadParameter("PAYLOAD is -, which is stdin, and that is closed")
        else:
            yield sys.stdin.buffer
    except OSError as error:
        name = "stdin" if text == "-" else repr(text[1:])
        raise typer.BadParameter(f"{name} cannot be read: {error.strerror}") from None


def json_value(content: bytes, what: str) -> object:
    """Return the value of a JSON text. Raises typer.BadParameter without the text, which may be secret."""
    try:
        value = json.loads(content.decode())
        json_text(value)
    except UnicodeDecodeError:
        raise typer.BadParameter(f"{what} is not text in UTF-8") from None
    except json.JSONDecodeError as error:
        raise typer.BadParameter(f"{what} is not JSON: {error.msg} at character {error.pos + 1}") from None
    except ValueError as error:
        raise typer.BadParameter(f"{what} cannot be sent as JSON: {error}") from None
    except RecursionError:
        raise typer.BadParameter(f"{what} cannot be read as JSON: it nests too deep") from None
    return value


def time_option(help: str, *names: str, parser: Callable[[str], object] = moment) -> Any:
    """Return an option that is a time; with `ahead` or `ago` as its parser, a span says how far from now."""
    metavar = "ISO8601" if parser is moment else "ISO8601|SPAN"
    return typer.Option(*names, parser=parser, metavar=metavar, help=help, show_default=False)


def span_option(help: str) -> Any:
    return typer.Option(parser=span, metavar="SPAN", help=help, show_default=False)


At = Annotated[datetime | None, time_option("When it is due, such as 2027-01-04T09:00:00+01:00.")]
Delay = Annotated[timedelta | None, span_option("How long until it is due: 90, 15m, 1h30m, 3d, 1w.")]
Queue = Annotated[str, typer.Argument(metavar="QUEUE", show_default=False, autocompletion=connect.complete_queue)]
AnyQueue = Annotated[
    str | None, typer.Argument(metavar="QUEUE", show_default=False, autocompletion=connect.complete_queue)
]
Limit = Annotated[int | None, typer.Option(min=1, max=MOST_LISTED, help="How many at most.")]
Kind = Annotated[str | None, typer.Option(help="Which handler of the queue runs it, such as welcome.")]
Tenant = Annotated[str | None, typer.Option(help="The tenant that it belongs to.")]
Priority = Annotated[int, typer.Option(help="1 is the most urgent.")]
