"""Promises that hold though requests are delayed, lost, repeated, throttled, refused and done in part."""

import pytest

from tests.e2e.faults.mishaps import KINDS
from tests.e2e.faults.stage import described
from tests.e2e.faults.storm import Stormed

ANSWERS = {200, 201, 202, 429, 503}


def test_every_mishap_befell_requests(stormed: Stormed) -> None:
    assert {kind for kind in KINDS if stormed.befell.get(kind, 0) >= 3} == KINDS, stormed.befell


def test_callers_are_told_what_they_may_try_again_and_of_which_job(stormed: Stormed) -> None:
    assert stormed.books.statuses.keys() <= ANSWERS, stormed.books.statuses
    assert len(stormed.books.accepted) + len(stormed.books.maybe) == stormed.asked


@pytest.mark.parametrize("promise", ["lost", "early", "broken"])
def test_no_job_is_lost_or_early_and_none_arrives_after_a_cancel_that_was_promised(
    stormed: Stormed, promise: str
) -> None:
    assert not getattr(stormed.books, promise), stormed.told


def test_there_was_something_to_be_lost_and_something_to_be_broken(stormed: Stormed) -> None:
    assert len(stormed.books.promised) > stormed.asked / 2
    assert {200, 202} <= set(stormed.books.cancels.values())
    assert {job.route for job in stormed.books.accepted.values()} == {"direct", "table"}


def test_nothing_is_parked_for_a_fault_that_passes(stormed: Stormed) -> None:
    assert not stormed.letters, described(stormed.letters)
