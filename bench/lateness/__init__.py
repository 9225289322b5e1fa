"""Lateness in real time: the deployed template in the local AWS, beside Celery and Dynein's protocol."""

from bench.lateness.measuring import measure
from bench.lateness.telling import draw, tell
from bench.part import Part

PART = Part(name="lateness", title="Lateness in real time", measure=measure, tell=tell, draw=draw)
