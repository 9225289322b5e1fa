"""Workers: a rate that two processes share, a pause and its end, and how fast one process is beside a bare loop."""

from bench.part import Part
from bench.workers.measure import measure
from bench.workers.tell import draw, tell

PART = Part(name="workers", title="Workers", measure=measure, tell=tell, draw=draw)
