"""All parts, in the order in which they are measured."""

from bench import cold, cost, cpu, growth, lateness, scale
from bench.part import Part

PARTS: tuple[Part, ...] = (cost.PART, lateness.PART, cpu.PART, growth.PART, scale.PART, cold.PART)
