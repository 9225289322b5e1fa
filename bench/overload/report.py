"""What came out of the floods, as tables."""

from bench.overload.flood import CALM, TABLE_WRITES
from bench.part import Figures
from bench.tables import table


def markdown(figures: Figures) -> str:
    floods = {by: told for by, told in figures.items() if by != CALM}
    return f"{_taken(floods)}\n\n{_late(figures, floods)}"


def _taken(floods: Figures) -> str:
    counted = ("jobs", "written", "buffered", "refused", "lost", "failed_ticks")
    rows = [
        (by, *(f"{told[name]:,}" for name in counted), f"{told['in_table_after'] / 60:.1f} min")
        for by, told in floods.items()
    ]
    headings = (f"flood, at {TABLE_WRITES:,} units/s", "jobs", "written at once", "buffered", "refused", "lost")
    return table((*headings, "ticks that failed", "all in the table after"), rows)


def _late(figures: Figures, floods: Figures) -> str:
    rows = [
        (f"{whose}, {by}", *(f"{one[name]:.2f} s" for name in ("p50", "p99", "max")), f"{100 * one['on_time']:.2f} %")
        for whose in next(iter(floods.values()))["late"]
        for by, told in figures.items()
        if (one := told["late"][whose])
    ]
    return table(("lateness", "p50", "p99", "max", "within 60 s"), rows)
