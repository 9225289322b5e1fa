"""Cold starts: what a fresh interpreter spends before a function's first event."""

from bench.cold.measure import measure
from bench.cold.tell import draw, tell
from bench.part import Part

PART = Part(name="cold", title="Cold start", measure=measure, tell=tell, draw=draw)
