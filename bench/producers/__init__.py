"""Producers: how fast many jobs are scheduled and how long one takes, against the local AWS, beside its own rate."""

from bench.part import Part
from bench.producers.measure import measure
from bench.producers.report import markdown

PART = Part(name="producers", title="Producers", measure=measure, markdown=markdown, pictures=lambda _: {})
