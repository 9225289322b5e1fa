"""What workers promise, with two processes and a Lambda consumer. In full: `python -m tests.e2e.workers --help`."""

import pytest

from tests.e2e.workers import fates
from tests.e2e.workers.measures import lateness_told
from tests.e2e.workers.play import JOBS, PRECISE_SECONDS, RATE, RATED_SECONDS, Played, play

HEEDED_SECONDS = 5


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Played:
    return play(tmp_path_factory.mktemp("work"))


def test_every_job_ends_in_success_in_the_dead_letter_queue_or_cancelled_whatever_ends_its_worker(
    played: Played,
) -> None:
    ended = played.ended
    assert len(ended.told.fates) == JOBS
    assert (ended.told.killed, ended.told.exits) == (1, [0, 0, 0])
    assert set(ended.told.fates.values()) == set(fates.ALL)
    assert not ended.lost
    assert not ended.against_its_fate


def test_once_no_job_has_its_effect_twice(played: Played) -> None:
    assert len(played.ended.effects) > JOBS * 0.8
    assert not played.ended.twice


def test_a_job_whose_cancel_was_a_promise_has_no_effect(played: Played) -> None:
    assert played.ended.told.cancels
    assert not played.ended.after_a_promise


def test_two_processes_keep_a_rate_together_within_5_percent_in_every_10_s(played: Played) -> None:
    assert len(played.rated.begun) == RATE * RATED_SECONDS
    fewest, most = played.rated.windows()
    assert 0.95 * RATE * 10 <= fewest <= most <= 1.05 * RATE * 10


def test_a_pause_takes_hold_within_5_s_and_its_end_too(played: Played) -> None:
    assert played.paused < HEEDED_SECONDS
    assert 0 < played.resumed < HEEDED_SECONDS


def test_a_precise_queue_is_late_by_less_than_a_fifth_of_a_second_on_a_busy_machine_and_never_early(
    played: Played,
) -> None:
    told = lateness_told(played.lateness)
    assert told["jobs"] == RATE * PRECISE_SECONDS
    assert told["early"] == 0
    assert told["p99"] < 0.2, told


def test_a_worker_is_at_least_as_fast_as_three_fifths_of_a_bare_loop(played: Played) -> None:
    assert played.race["worker"] >= 0.6 * played.race["bare"], played.race
