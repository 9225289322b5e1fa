"""All parts, in the order in which they are measured."""

from bench import cold, cost, cpu, growth, scale
from bench.part import Part

PARTS: tuple[Part, ...] = (cost.PART, cpu.PART, growth.PART, scale.PART, cold.PART)
