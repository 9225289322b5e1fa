"""Tables in Markdown."""

from collections.abc import Iterable, Sequence


def table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table. Columns after the first are figures, and stand to the right.

    >>> print(table(("way", "$"), [("direct", 0.04)]))
    | way | $ |
    |---|---:|
    | direct | 0.04 |
    """
    rule = "|---|" + "---:|" * (len(headings) - 1)
    return "\n".join([_line(headings), rule, *map(_line, rows)])


def _line(cells: Sequence[object]) -> str:
    return f"| {' | '.join(map(str, cells))} |"
