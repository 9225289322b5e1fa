"""Growth: what scheduling, cancelling, looking up and ticking cost by how many jobs wait, and how a herd drains."""

from bench.growth.measure import measure
from bench.growth.report import markdown, pictures
from bench.part import Part

PART = Part(name="growth", title="Growth", measure=measure, markdown=markdown, pictures=pictures)
