"""Messages straight into the inbound queue: each goes through, or ends once in its dead-letter queue, with a reason."""

import pytest

from tests.e2e.faults.calm import DEADLY, MOST_RECEIVES, Calm, attribute
from tests.e2e.faults.letters import BAD, GOOD, INBOUND, LOST, Letter
from tests.e2e.faults.stage import described


def named(letter: Letter) -> str:
    return letter.what


@pytest.mark.parametrize("letter", BAD, ids=named)
def test_a_message_that_is_no_good_ends_once_in_its_dead_letter_queue_with_its_reason(
    calm: Calm, letter: Letter
) -> None:
    ((queue, reason),) = calm.found(body=letter.body)
    assert queue == letter.ends_in
    assert letter.reason in reason


@pytest.mark.parametrize("letter", LOST, ids=named)
def test_a_job_that_no_tick_will_look_at_ends_in_a_dead_letter_queue_with_its_reason(
    calm: Calm, letter: Letter
) -> None:
    ((queue, reason),) = calm.found(body=letter.body)
    assert queue == letter.ends_in
    assert letter.reason in reason


@pytest.mark.parametrize("letter", GOOD, ids=named)
def test_a_good_message_beside_them_goes_through_as_it_is(calm: Calm, letter: Letter) -> None:
    id = attribute(letter.attributes, "dueline-id")
    assert [landed.payload for landed in calm.books.landed if landed.id == id] == [letter.body]
    assert not calm.found(body=letter.body)


def test_a_message_that_kills_ingest_whenever_it_is_met_is_set_aside_by_sqs(calm: Calm) -> None:
    assert calm.died == MOST_RECEIVES
    assert calm.found(body=DEADLY.body) == [(INBOUND, "")]


def test_nothing_else_is_in_any_dead_letter_queue(calm: Calm) -> None:
    expected = len(BAD) + len(LOST) + 1 + sum(map(len, calm.doomed.values()))
    assert sum(map(len, calm.letters.values())) <= expected, described(calm.letters)
    assert calm.letters.keys() == {"inbound", "dispatch"}
