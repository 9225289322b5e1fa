"""What came out, as tables."""

from bench.part import Figures
from bench.tables import table


def markdown(figures: Figures) -> str:
    rates = [(way, f"{rate:,.0f}") for way, rate in figures["a_second"].items()]
    singly = [(way, f"{1000 * seconds:.1f}") for way, seconds in figures["singly"].items()]
    return "\n\n".join(
        [
            table((f"{figures['jobs']:,} jobs, by", "jobs a second"), rates),
            table(("one job, whose submission", "p50, ms"), singly),
        ]
    )
