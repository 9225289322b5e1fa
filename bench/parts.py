"""All parts, in the order in which they are measured."""

from bench import cold, growth
from bench.part import Part

PARTS: tuple[Part, ...] = (growth.PART, cold.PART)
