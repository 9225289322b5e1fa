"""Texts that come from anywhere, an error's above all, as terminals, message attributes and rows may hold them."""

from datetime import datetime, timedelta


def name_of(error: BaseException) -> str:
    """Return the name of an error's type, whatever its metaclass answers for `__name__`."""
    name: str = type.__dict__["__name__"].__get__(type(error))
    return name


def text_of(error: BaseException) -> str:
    """Return what an error says; of one whose text cannot be made, its type's name."""
    try:
        return str(error)
    except BaseException:
        # It may well raise SystemExit, which is to end no thread here.
        return name_of(error)


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
