"""All that the tests of workers look at, one after the other, in one deployment."""

from dataclasses import dataclass
from pathlib import Path

from tests.e2e.workers import measures, shift
from tests.e2e.workers.measures import Rated
from tests.e2e.workers.shift import Ended
from tests.e2e.workers.stage import staged

JOBS = 240
RATE = 50
RATED_SECONDS = 14.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Played:
    """What came out. Times are in seconds."""

    rated: Rated
    paused: float
    resumed: float
    ended: Ended


def play(folder: Path) -> Played:
    with staged(folder) as stage:
        rated = measures.keep_a_rate(stage, rate=RATE, seconds=RATED_SECONDS)
        paused, resumed = measures.pause(stage)
        ended = shift.live(stage, jobs=JOBS, seed=1, patience=180)
    return Played(rated=rated, paused=paused, resumed=resumed, ended=ended)
