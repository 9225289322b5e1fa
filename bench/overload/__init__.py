"""Overload: what a flood that a table does not take does to itself, to its partition and to another queue."""

from bench.overload.measure import measure
from bench.overload.report import markdown
from bench.part import Part

PART = Part(name="overload", title="Overload", measure=measure, markdown=markdown, pictures=lambda _: {})
