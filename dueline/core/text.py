"""Texts that come from anywhere, an error's above all, as terminals, message attributes and rows may hold them."""

import os
import traceback
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

# Where this library is.
PACKAGE = os.path.dirname(os.path.dirname(__file__)) + os.sep
# Of each text in a stack, and of all of it: a text may quote a payload of megabytes.
_LONGEST_TEXT, _LONGEST_STACK = 1000, 16_000
_MOST_NAMED = 10


def name_of(error: BaseException) -> str:
    """Return the name of an error's type, whatever its metaclass answers for `__name__`."""
    name: str = type.__dict__["__name__"].__get__(type(error))
    return name


def text_of(error: BaseException) -> str:
    """Return what an error says; of one that says nothing, or whose text cannot be made, its type's name."""
    try:
        return str(error) or name_of(error)
    except BaseException:
        # It may well raise SystemExit, which is to end no thread here.
        return name_of(error)


def stack_of(error: BaseException, *, is_deliberate: bool = False) -> str:
    """Return the types, texts and frames of an error and its causes, as Python prints them; "" where it has no frames.

    Frames have their line of code, never a value. Dueline's own around a handler are left out, and so is the source
    that a SyntaxError quotes, which may be a payload. One that `is_deliberate` needs no stack, but its cause does. Of
    what is too long, the end remains.
    """
    try:
        report = traceback.TracebackException(type(error), error, error.__traceback__)
        if is_deliberate and not (report.__cause__ or (report.__context__ and not report.__suppress_context__)):
            return ""
        every = list(_reports(report))
        for each in every:
            each.text = None  # type: ignore[assignment]  # as of any other error
            while each.stack and each.stack[0].filename.startswith(PACKAGE):
                del each.stack[0]
        parts = [part if len(part) <= _LONGEST_TEXT else f"{part[:_LONGEST_TEXT]}…\n" for part in report.format()]
    except BaseException:
        # As in text_of.
        return ""
    return "".join(parts).rstrip()[-_LONGEST_STACK:] if any(each.stack for each in every) else ""


def _reports(report: traceback.TracebackException) -> Iterator[traceback.TracebackException]:
    yield report
    # A context that is suppressed is not printed.
    context = None if report.__suppress_context__ else report.__context__
    for each in (report.__cause__, context, *(report.exceptions or ())):
        if each is not None:
            yield from _reports(each)


def printable(text: str) -> str:
    r"""Return a text with its control characters, and all else that cannot be printed, written out.

    A terminal obeys them, and SQS refuses a message that has one in an attribute.

    >>> printable("a\x1b[31m ü")
    'a\\x1b[31m ü'
    """
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def plain(text: str, *, most: int) -> str:
    r"""Return at most so many characters of a text, of printable ASCII alone: the others are written out.

    >>> plain("a\x1b[31m ü", most=13)
    'a\\x1b[31m \\xf'
    """
    return printable(text[:most]).encode("ascii", "backslashreplace").decode()[:most]


def plain_lines(text: str, *, most: int) -> str:
    r"""Return the last characters of a text, so many at most, of printable ASCII and line feeds alone.

    >>> plain_lines("ü\nb\x1b", most=9)
    'xfc\nb\\x1b'
    """
    return "\n".join(printable(each).encode("ascii", "backslashreplace").decode() for each in text.split("\n"))[-most:]


def shown(value: object, *, most: int = 100) -> str:
    """Return the beginning of a value as Python writes it, or its type where it cannot, as of an int of 5,000 digits.

    A span of time is in seconds, an instant in ISO 8601.

    >>> shown("a" * 200, most=5), shown(10**5000), shown({1}), shown(timedelta(minutes=1.5))
    ("'aaaa", 'an int', '{1}', '90 s')
    """
    try:
        if isinstance(value, timedelta):
            return f"{value.total_seconds():.6f}".rstrip("0").rstrip(".") + " s"
        return (value.isoformat() if isinstance(value, datetime) else repr(value))[:most]
    except Exception:
        name = type(value).__name__
        return f"an {name}" if name[0] in "aeiou" else f"a {name}"


def plural(count: int, noun: str) -> str:
    """Return a number of things.

    >>> plural(1, "line"), plural(3500, "line")
    ('1 line', '3,500 lines')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def named(names: Sequence[str]) -> str:
    """Return names for a sentence, the first ten of many.

    >>> named(["a", "b"])
    'a, b'
    """
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
