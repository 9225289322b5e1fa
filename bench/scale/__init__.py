"""Scale, by simulation: the real core over models of AWS, at rates that no test account would pay for."""

from bench.part import Part
from bench.scale.measure import measure
from bench.scale.report import markdown, pictures

PART = Part(name="scale", title="Scale, by simulation", measure=measure, markdown=markdown, pictures=pictures, format=2)
