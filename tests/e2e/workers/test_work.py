"""What workers promise, with two processes and a Lambda consumer. In full: `python -m tests.e2e.workers --help`."""

import pytest

from tests.e2e.workers import fates
from tests.e2e.workers.play import JOBS, RATE, RATED_SECONDS, Played, play

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
