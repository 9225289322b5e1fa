"""Cold starts: what a fresh interpreter spends before a function's first event."""

from bench.cold.measure import measure
from bench.cold.report import markdown, pictures
from bench.part import Part

PART = Part(name="cold", title="Cold start", measure=measure, markdown=markdown, pictures=pictures)
