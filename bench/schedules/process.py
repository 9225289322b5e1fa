"""The process that counts: its CPU time and its output are the functions' alone."""

import io
import os
import sys

from bench.apart import tell_progress, tell_result
from bench.cost.stage import Stage
from bench.schedules.counting import Counting, rates
from bench.schedules.made import RULES
from dueline.config.settings import PlannerSettings
from tests.simulation.lateness import PERIODS

_ROUNDS, _QUICK_ROUNDS = 40, 5


def main(*, quick: bool) -> None:
    sys.stdout = out = io.StringIO()
    stage = Stage(out)
    queue_urls = stage.url.rpartition("/")[0] + "/"
    os.environ |= PlannerSettings(
        deployment=stage.names.deployment, queue_urls=queue_urls, tick_period=PERIODS.period.seconds
    ).to_env()
    counting = Counting(stage)
    told, speeds = counting.all(), {}
    for number, how in enumerate(RULES):
        tell_progress(f"steps of {how} schedules", number, len(RULES))
        speeds[how] = rates(counting.cpu(how, rounds=_QUICK_ROUNDS if quick else _ROUNDS))
    tell_result({**told, "a_cpu_second": speeds})


if __name__ == "__main__":
    main(quick="--quick" in sys.argv)
