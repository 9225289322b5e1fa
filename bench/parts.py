"""All parts, in the order in which they are measured."""

from bench import cold, cost, growth
from bench.part import Part

PARTS: tuple[Part, ...] = (cost.PART, growth.PART, cold.PART)
