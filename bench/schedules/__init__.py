"""Schedules: what one costs a month, how fast a planner plans, a herd at nine, and that nothing scans."""

from bench.part import Bench, Measured, Part
from bench.schedules.report import markdown


def _measure(bench: Bench) -> Measured:
    # What counts needs engines that tests alone have: whoever only reports has no need of them.
    from bench.schedules.measure import measure

    return measure(bench)


PART = Part(name="schedules", title="Schedules", measure=_measure, markdown=markdown, pictures=lambda _: {})
