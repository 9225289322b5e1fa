"""The tables of the lateness part, and its pictures."""

from collections.abc import Iterable, Mapping
from typing import Any

from bench import charts
from bench.part import Figures
from bench.tables import table

_PERCENTS = ("p50", "p95", "p99", "max")
_COUNTS = ("early", "lost", "repeated")
_HEADINGS = ("jobs", *(f"{name}, s" for name in _PERCENTS), *_COUNTS)


def markdown(figures: Figures) -> str:
    """Return the tables."""
    contenders = figures["contenders"]
    kinds = {kind: None for by_kind in contenders.values() for kind in by_kind}
    sections = [_table(f"{kind}, by whom", _of_kind(contenders, kind)) for kind in kinds]
    ours = ((f"{name}: {kind}", told) for name, by in figures["scenarios"].items() for kind, told in by.items())
    return "\n\n".join([*sections, _table("Dueline, by what befell the jobs", ours), _sentence(figures), _PICTURES])


def _of_kind(contenders: Mapping[str, Any], kind: str) -> Iterable[tuple[str, Mapping[str, Any]]]:
    return ((name, by_kind[kind]) for name, by_kind in contenders.items() if kind in by_kind)


def _table(heading: str, rows: Iterable[tuple[str, Mapping[str, Any]]]) -> str:
    return table(
        (heading, *_HEADINGS),
        ((name, told["jobs"], *map(_seconds, _of(told, _PERCENTS)), *_of(told, _COUNTS)) for name, told in rows),
    )


def _of(told: Mapping[str, Any], names: Iterable[str]) -> list[Any]:
    return [told[name] for name in names]


def _seconds(seconds: float) -> str:
    return f"{seconds:.3f}"


def _sentence(figures: Figures) -> str:
    whole, cancels = figures["all"], figures["cancels"]
    killed = f" A tick was killed {figures['killed at']:g} s after the first one." if figures["killed at"] else ""
    late = "" if figures["in the table before the first tick"] else " Not all were in the table before the first tick."
    return (
        f"Of Dueline's jobs, {cancels['200']} were taken back with a promise (200), of which"
        f" {whole['after a promised cancel']} came; {cancels['202']} without one (202), and these may"
        f" come or not. {whole['on time']:.3%} of the others came within 60 s.{killed}{late}"
    )


_PICTURES = """![how late jobs of a steady flow are](../bench/results/lateness-histogram.svg)

![p99 over time](../bench/results/lateness-over-time.svg)"""


def pictures(figures: Figures) -> dict[str, str]:
    """Draw how lateness is spread, and how its p99 goes on while a tick is missed and one killed."""
    shapes = {name: [max(late, 0.0001) for late in shape] for name, shape in figures["shapes"].items()}
    marks = {
        f"due in what the {name} was to hand over": [(after, 0), (to, 0)]
        for name, (after, to) in figures["windows"].items()
    }
    return {
        "histogram": charts.histogram(title="How late jobs of a steady flow land", x="s", series=shapes, log_x=True),
        "over-time": charts.lines(
            title="p99 of the flow in windows of 5 s",
            x="due, s after the first tick",
            y="lateness, s",
            series={**figures["over time"], **marks},
        ),
    }
