"""Lateness in real time: the deployed template in the local AWS, beside Celery and Dynein's protocol."""

from bench.lateness.measure import measure
from bench.lateness.report import markdown, pictures
from bench.part import Part

PART = Part(name="lateness", title="Lateness in real time", measure=measure, markdown=markdown, pictures=pictures)
