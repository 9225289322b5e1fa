"""The ratios of README: the three that matter."""

from bench.results import Result
from bench.tables import table


def headline(results: dict[str, Result]) -> str:
    """Return README's table of figures."""
    raise NotImplementedError
