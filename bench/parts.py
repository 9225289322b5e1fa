"""All parts, in the order in which they are measured."""

from bench import cold
from bench.part import Part

PARTS: tuple[Part, ...] = (cold.PART,)
