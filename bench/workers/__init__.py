"""Workers: a rate that two processes share, a pause and its end, and how fast one process is beside a bare loop."""

from bench.part import Figures, Part
from bench.tables import table
from bench.workers.measure import measure


def markdown(figures: Figures) -> str:
    rated = (f"{figures['rate']}/s, in any 10 s", figures["fewest"], figures["most"])
    heeded = ("pause", f"{figures['paused']:.1f}"), ("resume", f"{figures['resumed']:.1f}")
    raced = f"{figures['worker']:,}", f"{figures['bare']:,}", f"{figures['ratio']:.2f}"
    return "\n\n".join(
        [
            table(("rate of two processes together", "fewest jobs begun", "most"), [rated]),
            table(("what is told", "takes hold after s"), heeded),
            table(("empty handler", "worker, jobs/s", "bare loop, jobs/s", "ratio"), [("one process", *raced)]),
        ]
    )


PART = Part(name="workers", title="Workers", measure=measure, markdown=markdown, pictures=lambda _: {})
