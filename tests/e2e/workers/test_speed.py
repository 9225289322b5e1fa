"""How late and how fast a worker is, on a machine that has nothing else to do."""

from collections.abc import Iterator

import pytest

from tests.e2e.workers import measures
from tests.e2e.workers.stage import Stage, staged

pytestmark = pytest.mark.alone

RATE = 50
SECONDS = 6.0
RACED = 2000
ROUNDS = 3


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with staged(tmp_path_factory.mktemp("speed")) as running:
        yield running


def test_a_precise_queue_is_late_by_less_than_a_fifth_of_a_second_and_never_early(
    stage: Stage,
) -> None:
    told = measures.lateness_told(measures.be_precise(stage, rate=RATE, seconds=SECONDS))
    assert told["jobs"] == RATE * SECONDS
    assert told["early"] == 0
    assert told["p99"] < 0.2, told


def test_a_worker_is_at_least_as_fast_as_three_fifths_of_a_bare_loop(stage: Stage) -> None:
    races = [measures.race(stage, jobs=RACED) for _ in range(ROUNDS)]
    # The best of each: whatever else the machine did in a round made it slower, never faster.
    worker, bare = (max(race[way] for race in races) for way in ("worker", "bare"))
    assert worker >= 0.6 * bare, races
