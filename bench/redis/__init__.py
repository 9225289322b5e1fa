"""The delayed queue on Redis's sorted sets: how fast, how late, what a kill loses, what a wait costs."""

from bench.part import Bench, Measured, Part
from bench.redis.report import markdown


def _measure(bench: Bench) -> Measured:
    # As with all parts: whoever only reports has no need of what measures.
    from bench.redis.measure import measure

    return measure(bench)


PART = Part(
    name="redis", title="A delayed queue on Redis", measure=_measure, markdown=markdown, pictures=lambda _: {}, format=2
)
