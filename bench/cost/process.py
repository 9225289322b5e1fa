"""The process that counts: its CPU time and its output are the functions' alone."""

import io
import sys
from dataclasses import asdict
from typing import Any

from bench.apart import tell_progress, tell_result
from bench.cost.counting import Counting
from bench.cost.lingering import lingering
from bench.cost.plan import FULL, LINGERING, QUICK
from bench.cost.stage import Stage
from bench.cost.ways import together


def main(*, quick: bool) -> None:
    sys.stdout = out = io.StringIO()
    lingered = lingering()
    counting = Counting(Stage(out), QUICK if quick else FULL, together=together(lingered))
    steps = list(counting.steps())
    _warm_up(counting, steps)
    counted: dict[str, Any] = {LINGERING: asdict(lingered)}
    for number, (name, once) in enumerate(steps):
        tell_progress(name, number, len(steps))
        counted[name] = asdict(counting.counted(once))
    tell_result(counted)


def _warm_up(counting: Counting, steps: Any) -> None:
    """Take one step of each kind, for what a process does only once."""
    for once in {name.partition("|")[0]: once for name, once in steps}.values():
        once()


if __name__ == "__main__":
    main(quick="--quick" in sys.argv)
