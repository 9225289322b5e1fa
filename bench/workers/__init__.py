"""Workers: a rate that two processes share, a pause and its end, and how fast one process is beside a bare loop."""

from bench.part import Part
from bench.workers.measure import measure
from bench.workers.report import markdown, pictures

PART = Part(name="workers", title="Workers", measure=measure, markdown=markdown, pictures=pictures)
