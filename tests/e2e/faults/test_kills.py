"""Promises that hold though ticks and ingests are killed in mid-work; `python -m tests.e2e.kills` does more of it."""

from collections import Counter

import pytest

from dueline.tick import CHECKPOINT_JOBS, WAVE_JOBS
from tests.e2e.faults import repeats
from tests.e2e.faults.conftest import PLAN
from tests.e2e.faults.ordeal import Survived
from tests.e2e.faults.processes import PROC

pytestmark = pytest.mark.skipif(not PROC.exists(), reason="only Linux tells which process holds a connection")


def test_half_of_the_kills_meet_ticks_and_half_ingests_each_another_process(survived: Survived) -> None:
    assert Counter(kill.function for kill in survived.kills) == {"tick": PLAN.kills / 2, "ingest": PLAN.kills / 2}
    assert len({kill.pid for kill in survived.kills}) == len({kill.turn for kill in survived.kills}) == PLAN.kills


@pytest.mark.parametrize("promise", ["lost", "early", "broken"])
def test_kills_lose_no_job_and_bring_none_early_or_after_a_cancel_that_was_promised(
    survived: Survived, promise: str
) -> None:
    assert len(survived.books.accepted) == PLAN.jobs
    assert not getattr(survived.books, promise), survived.told


def test_there_were_cancels_to_be_broken(survived: Survived) -> None:
    assert list(survived.books.cancels.values()).count(200) >= 5, survived.books.cancels


def test_every_repeat_has_a_cause_that_is_allowed(survived: Survived) -> None:
    assert repeats.UNEXPLAINED not in survived.repeats_by_cause, survived.told
    assert survived.most_by_one_kill <= CHECKPOINT_JOBS + WAVE_JOBS


def test_nothing_is_parked_and_no_tick_fails_but_those_that_were_killed(survived: Survived) -> None:
    assert not survived.letters
    assert not survived.unexplained
