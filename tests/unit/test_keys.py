from dataclasses import replace
from datetime import timedelta

import pytest

from dueline.errors import InvalidJob, KeyReused, QueueNotFound, Throttled, Unavailable
from dueline.memory import MemoryTable
from dueline.model import rows
from dueline.model.job import Job, Partition, Route
from dueline.model.request import Request
from dueline.protocol.keys import Repeat, claim
from tests.builders import NOW, RETENTION, a_job, a_queue, an_id
from tests.system import System
from tests.wire import failing, losing_the_answer, meanwhile, on, straight

AN_HOUR = 3600
DIRECT, BY_THE_TABLE = 5, AN_HOUR
EVERY_ROUTE = pytest.mark.parametrize("delay", [DIRECT, BY_THE_TABLE])


def keyed(delay=BY_THE_TABLE, *, key="order 17", payload=1, **more):
    return Request(payload=payload, delay=delay, key=key, **more)


def accepted(system, *requests):
    jobs = system.submit(*requests)
    assert all(isinstance(job, Job) for job in jobs), jobs
    return jobs


def refused(system, request):
    (error,) = system.submit(request)
    assert not isinstance(error, Job)
    return error


def on_their_way(system):
    """Return the ids of all messages that were sent, repeats included, and of the jobs that have rows."""
    sent = [each.message.job().id for queue in (system.inbound, *system.queues.values()) for each in queue.deliveries]
    return sent + [id for queue in system.settings for id in system.in_the_table(queue)]


def calls_of(system, *requests):
    calls = []

    def around(call):
        calls.append(call.name)
        return straight(call)

    system.wire.around = around
    accepted(system, *requests)
    return calls


@EVERY_ROUTE
def test_a_repeat_gets_the_first_jobs_id_and_sends_nothing(delay):
    system = System()
    (first,), (second,) = accepted(system, keyed(delay)), accepted(system, keyed(delay))
    assert not isinstance(first, Repeat)
    assert isinstance(second, Repeat)
    assert second.id == first.id
    assert on_their_way(system) == [first.id]


@pytest.mark.parametrize("time", [{"delay": 5}, {"delay": 2 * AN_HOUR}, {"at": NOW + timedelta(days=9)}, {}])
def test_a_repeat_is_the_first_job_however_its_time_is_given(time):
    system = System()
    (first,) = accepted(system, keyed())
    (second,) = accepted(system, Request(payload=1, key="order 17", **time))
    assert second.id == first.id
    assert on_their_way(system) == [first.id]


def test_keys_of_other_queues_and_other_keys_are_others():
    system = System(a_queue(), a_queue(name="invoices"))
    accepted(system, keyed(), keyed(key="order 18"))
    (other,) = system.submit(keyed(), queue="invoices")
    assert not isinstance(other, Repeat)
    assert len(set(on_their_way(system))) == 3


def test_a_key_is_found_again_when_its_queue_has_grown():
    system = System(a_queue(partitions=1))
    (first,) = accepted(system, keyed())
    system.settings["emails"] = a_queue(partitions=7)
    (second,) = accepted(system, keyed())
    assert second.id == first.id


@pytest.mark.parametrize("payload", [2, None, "1", {}])
def test_a_key_that_was_used_for_another_payload_is_refused_with_the_job_that_has_it(payload):
    system = System()
    (first,) = accepted(system, keyed())
    error = refused(system, keyed(payload=payload))
    assert isinstance(error, KeyReused)
    assert "key is 'order 17'" in str(error)
    assert str(first.id) in str(error)
    assert on_their_way(system) == [first.id]


@EVERY_ROUTE
def test_a_key_is_free_again_when_its_jobs_retention_is_over(delay):
    system = System()
    (first,) = accepted(system, keyed(delay))
    system.clock.sleep(delay + RETENTION.total_seconds() - 1)
    assert accepted(system, keyed(delay))[0].id == first.id
    system.clock.sleep(1)
    assert accepted(system, keyed(delay))[0].id != first.id


@EVERY_ROUTE
def test_one_call_may_name_a_key_twice_and_sends_one_job(delay):
    system = System()
    first, second, other = accepted(system, keyed(delay), keyed(delay), keyed(delay, key="other"))
    assert first.id == second.id
    assert on_their_way(system) == [first.id, other.id]


def test_one_call_that_names_a_key_twice_with_two_payloads_gets_one_job_and_one_error():
    job, error = System().submit(keyed(payload=1), keyed(payload=2))
    assert isinstance(job, Job)
    assert isinstance(error, KeyReused)


@pytest.mark.parametrize("key", ["", "x" * 256, "naïve", "a\nb", "\x7f"])
def test_a_key_that_is_no_good_is_refused_and_nothing_is_asked(key):
    system = System()
    system.wire.around = failing(AssertionError("nothing is to be asked"))
    error = refused(system, keyed(key=key))
    assert isinstance(error, InvalidJob)
    assert "key is " in str(error)
    assert "1 to 255 printable ASCII characters" in str(error)


@pytest.mark.parametrize("key", ["x", "x" * 255, " ", "#key#~"])
def test_any_printable_ascii_may_be_a_key(key):
    system = System()
    (first,), (second,) = accepted(system, keyed(key=key)), accepted(system, keyed(key=key))
    assert first.id == second.id


def test_jobs_without_a_key_cost_a_write_and_a_read_or_a_message():
    requests = Request(payload=1), Request(payload=1, delay=AN_HOUR)
    assert calls_of(System(), *requests) == ["table.add", "table.read", "emails.send"]


def test_a_keyed_job_costs_two_writes_more_and_a_repeat_one_and_a_read():
    system = System()
    assert calls_of(system, keyed()) == ["table.claim", "table.add", "table.read", "table.mark_done"]
    assert calls_of(system, keyed()) == ["table.claim"]


def test_a_key_that_comes_twice_in_one_call_is_a_repeat_as_in_two():
    system = System()
    first, second = accepted(system, keyed(tenant="a"), keyed(tenant="b", delay=DIRECT))
    assert first == second
    assert on_their_way(system) == [first.id]
    assert isinstance(system.submit(keyed(key="another"), keyed(key="another", payload=2))[1], KeyReused)


# What fails in between


@EVERY_ROUTE
@pytest.mark.parametrize("react", [failing(Unavailable("no")), losing_the_answer])
@pytest.mark.parametrize("call", ["table.claim", "table.add", "table.read", "emails.send", "table.mark_done"])
def test_a_repeat_after_a_fault_at_any_call_submits_the_first_id_and_no_other(delay, react, call):
    system = System()
    system.wire.around = on(call, react, times=1)
    (answer,) = system.submit(keyed(delay))
    (job,) = accepted(system, keyed(delay))
    system.ingest()
    assert set(on_their_way(system)) == {job.id}
    if call != "table.claim":
        assert str(job.id) == (str(answer.id) if isinstance(answer, Job) else answer.job_id)


def test_a_key_that_could_not_be_claimed_submits_nothing():
    system = System()
    system.wire.around = on("table.claim", failing(Throttled("slow down")))
    error = refused(system, keyed())
    assert isinstance(error, Throttled)
    assert error.job_id
    assert on_their_way(system) == []


def test_a_note_that_is_lost_is_no_error():
    system = System()
    system.wire.around = on("table.mark_done", failing(Unavailable("no")))
    accepted(system, keyed())


def test_a_job_that_is_sent_again_comes_at_its_own_time_whatever_delay_the_repeat_gives():
    system = System()
    system.wire.around = on("emails.send", failing(Unavailable("no")), times=1)
    refused(system, keyed(100))
    system.clock.sleep(40)
    (job,) = accepted(system, keyed(500))
    assert job.id.route is Route.DIRECT
    assert job.id.due == NOW + timedelta(seconds=100)
    assert [each.message.delay for each in system.queues["emails"].deliveries] == [60]


def test_who_claimed_a_key_before_its_retention_was_over_notes_nothing_of_the_job_that_has_it_now():
    system, second = System(), []

    def claim_anew():
        system.wire.around = on("emails.send", failing(Unavailable("no")), times=1)
        system.clock.sleep((RETENTION + timedelta(seconds=DIRECT)).total_seconds())
        second.append(refused(system, keyed(DIRECT)))

    system.wire.around = on("emails.send", meanwhile(claim_anew), times=1)
    accepted(system, keyed(DIRECT))
    (third,) = accepted(system, keyed(DIRECT))
    assert str(third.id) == second[0].job_id
    assert third.id in on_their_way(system)


def test_two_callers_at_once_get_one_id():
    system, others = System(), []
    system.wire.around = on("table.claim", meanwhile(lambda: others.extend(accepted(system, keyed()))), times=1)
    (job,) = accepted(system, keyed())
    assert {each.id for each in others} == {job.id}
    assert on_their_way(system) == [job.id]


def test_a_key_whose_queue_is_gone_is_tried_again_when_it_is_back():
    system = System()
    system.queues["emails"].gone = True
    assert isinstance(refused(system, keyed(DIRECT)), QueueNotFound)
    system.queues["emails"].gone = False
    (job,) = accepted(system, keyed(DIRECT))
    assert on_their_way(system) == [job.id]


def test_no_claim_is_begun_when_the_time_is_over():
    system = System()
    system.wire.around = failing(AssertionError("nothing is to be asked"))
    submit = system.submission("emails", direct_horizon=system.direct_horizon, new_uid=lambda: "x")
    (error,) = submit.run([keyed()], until=system.clock.monotonic())
    assert isinstance(error, Unavailable)


def test_a_ticks_page_holds_no_key():
    system = System()
    (job,) = accepted(system, keyed())
    system.ingest()
    page = system.table.page(job.id.partition, after=rows.FIRST, until="~")
    assert [row["sk"] for row in page.rows] == [rows.job_key(job.id)[1]]


@pytest.mark.parametrize("done", [False, True])
def test_a_key_that_a_producer_wrote_itself_reaches_no_other_queue(done):
    system = System(a_queue(), a_queue(name="invoices"))
    (job,) = accepted(system, keyed())
    forged = replace(job.id, partition=Partition(queue="invoices", number=0))
    key = rows.idempotency_key("emails", "order 17")
    system.table.write([{**system.table.read([key]).rows[key], "id": str(forged), "done": done}])
    error = refused(system, keyed())
    assert isinstance(error, KeyReused)
    assert "which is of another queue" in str(error)
    assert forged not in on_their_way(system)


def test_a_keyed_job_is_told_of_its_schedule_in_a_repeat_too():
    made, table = a_job(schedule="digest", nominal=NOW, exclusive=True), MemoryTable()
    claimed = [claim("run", replace(made, id=id), payload_hash="h", table=table, now=NOW) for id in (made.id, an_id())]
    assert [each.id for each in claimed] == [made.id, made.id]
    assert {each.origin for each in claimed} == {made.origin}
