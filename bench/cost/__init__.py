"""Cost per million jobs: every request counted, and billed by a price list."""

from bench.cost.report import markdown, pictures
from bench.part import Bench, Measured, Part


def _measure(bench: Bench) -> Measured:
    # What counts needs engines that tests alone have: whoever only reports has no need of them.
    from bench.cost.measure import measure

    return measure(bench)


PART = Part(
    name="cost", title="Cost per million jobs", measure=_measure, markdown=markdown, pictures=pictures, format=2
)
