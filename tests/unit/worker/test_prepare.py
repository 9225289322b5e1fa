from datetime import timedelta

import pytest

from dueline.core import rows
from dueline.core.job import Partition
from dueline.errors import Unavailable
from dueline.testing import VirtualClock
from dueline.worker.receiving import prepare, seconds_until_due
from tests.builders import NOW, a_job, a_message, a_queue
from tests.work import a_claim, a_connection, a_received_message


def test_a_batch_is_sorted_by_what_can_be_done_with_it():
    connection = a_connection()
    ready, cancelled = a_job(), a_job()
    connection.table.write([rows.cancellation_row(cancelled.id, at=NOW)])
    foreign, broken = a_message(), a_message(attributes={"dueline-id": "nonsense"})
    claims = [a_claim(ready), a_claim(cancelled), a_claim(message=foreign), a_claim(message=broken)]
    prepared = prepare(claims, connection)
    assert [each.claim for each in prepared.ready] == [claims[0], claims[2]]
    assert [each.claim for each in prepared.cancelled] == [claims[1]]
    (dead_letter,) = prepared.dead
    assert (dead_letter.received.claim, dead_letter.dead.error) == (claims[3], "InvalidJob")


def test_the_cancellations_of_a_batch_are_read_in_one_request(monkeypatch):
    connection, requests = a_connection(), []
    read = connection.table.read
    monkeypatch.setattr(connection.table, "read", lambda keys: requests.append(len(keys)) or read(keys))
    prepare([a_claim(a_job()) for _ in range(10)], connection)
    assert requests == [10]


def test_job_of_another_queue_is_dead_and_delays_no_other(monkeypatch):
    connection, read = a_connection(), None
    read = connection.table.read

    def as_iam_lets_it(keys):
        """`dynamodb:LeadingKeys` refuses a request as a whole."""
        if any(not partition.startswith("emails#") for partition, _ in keys):
            raise Unavailable("AccessDeniedException")
        return read(keys)

    monkeypatch.setattr(connection.table, "read", as_iam_lets_it)
    forwarded = a_job(partition=Partition(queue="invoices", number=0))
    prepared = prepare([a_claim(a_job()), a_claim(forwarded), a_claim(a_job())], connection)
    assert len(prepared.ready) == 2
    (dead_letter,) = prepared.dead
    assert (
        dead_letter.dead.reason
        == f"message attribute dueline-id is {forwarded.id}: it must be of a job of the queue 'emails'"
    )


def test_a_message_that_came_twice_at_once_is_requested_once():
    job = a_job()
    assert len(prepare([a_claim(job), a_claim(job)], a_connection()).ready) == 2


@pytest.mark.parametrize(("later", "seconds"), [(0.25, 0.25), (0.0, 0.0), (-3.0, 0.0)])
def test_only_a_precise_queue_holds_jobs_until_due(later, seconds):
    clock = VirtualClock(NOW)
    job = a_job(due=NOW + timedelta(seconds=later))
    assert seconds_until_due(a_received_message(job), a_connection(clock=clock, queue=a_queue(precise=True))) == seconds
    assert seconds_until_due(a_received_message(job), a_connection(clock=clock)) == 0.0
