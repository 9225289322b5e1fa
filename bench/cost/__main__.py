"""Count, in a process of its own, whose CPU time and output are the functions' alone.

Tells its progress and then what it counted as lines of JSON on standard output.
"""

import io
import json
import sys
from dataclasses import asdict
from typing import Any

from bench.cost.counting import Counting
from bench.cost.plan import FULL, QUICK
from bench.cost.stage import Stage


def main(*, quick: bool) -> None:
    sys.stdout = out = io.StringIO()
    counting = Counting(Stage(out), QUICK if quick else FULL)
    steps = list(counting.steps())
    _warm_up(counting, steps)
    counted: dict[str, Any] = {}
    for number, (name, once) in enumerate(steps):
        _say(progress=[name, number, len(steps)])
        counted[name] = asdict(counting.counted(once))
    _say(counted=counted)


def _warm_up(counting: Counting, steps: Any) -> None:
    """Take one step of each kind, for what a process does only once."""
    for once in {name.partition("|")[0]: once for name, once in steps}.values():
        once()


def _say(**told: Any) -> None:
    print(json.dumps(told), file=sys.__stdout__, flush=True)


if __name__ == "__main__":
    main(quick="--quick" in sys.argv)
