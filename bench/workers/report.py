"""What came out, as tables."""

from bench.part import Figures
from bench.tables import table


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


def pictures(_: Figures) -> dict[str, str]:
    return {}
