"""Intents, as ingest meets them."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dueline.errors import AlreadyFinished, InvalidJob, Throttled, Unavailable
from dueline.model import instant, rows
from dueline.model.job import MAX_RETENTION, Job, Partition, Route, State
from dueline.model.message import MOVES, Message
from dueline.model.move_rows import moved_to
from dueline.model.rows import CANCELLATION_OUTLIVES_RETENTION
from dueline.protocol.astray import PATIENT_RECEIVES
from dueline.protocol.dispatch import PAST_RETENTION
from dueline.protocol.ingest import Received
from tests.builders import NOW, RETENTION, a_job, a_queue, an_id
from tests.system import System
from tests.wire import done_in_part, failing, losing_the_answer, meanwhile, on, straight

AN_HOUR = 3600
OLD_DUE = NOW + timedelta(hours=1)


def an_intent(old, *, hours=2.0):
    due = NOW + timedelta(hours=hours)
    new = a_job(due=due, expires=due + RETENTION)
    return new, Message.of(new, group="emails", moves=old.id)


def a_system(*, put=True, **settings):
    system, old = System(a_queue(**settings)), a_job(due=OLD_DUE)
    if put:
        system.put(old)
    return system, old


def raise_fence(system, to):
    system.table.take(Partition(queue="emails", number=0), owner="me", now="", lease="", fence=instant.text(to))


def is_there(system, job):
    return rows.job_key(job.id) in system.table.read([rows.job_key(job.id)]).rows


def outcome(done):
    return done.failed, done.moved, done.dropped


def an_attempt(system, *messages):
    """Ingest messages in no time, so that nothing is tried again."""
    batch = [Received(message_id=f"x{n}", message=message) for n, message in enumerate(messages)]
    return system.an_ingest().run(batch, until=system.clock.monotonic() + 0.01)


# Ingest


def test_an_intent_that_nobody_carried_out_is_carried_out():
    system, old = a_system()
    new, intent = an_intent(old)
    assert outcome(system.ingest_message(intent)) == (set(), {new}, set())
    assert system.status_of(old.id).moved_to == new.id
    system.clock.sleep(2 * AN_HOUR)
    system.tick()
    assert system.arrived() == [new.id]


def test_a_move_of_which_the_new_row_is_not_seen_yet_is_completed_before_the_fence_is_read():
    system, old = a_system()
    new, intent = an_intent(old, hours=1.01)
    system.table.add(rows.cancellation_row(old.id, at=NOW, moved_to=new.id))
    assert outcome(system.ingest_message(intent)) == (set(), {new}, set())
    assert is_there(system, new)
    system.clock.sleep(2 * AN_HOUR)
    system.tick()
    assert system.arrived() == [new.id]


def test_a_row_that_could_not_be_written_is_left_to_a_later_receipt():
    system, old = a_system()
    new, intent = an_intent(old)
    system.table.add(rows.cancellation_row(old.id, at=NOW, moved_to=new.id))
    system.wire.around = on("table.write", done_in_part)
    assert outcome(system.ingest_message(intent)) == ({"x0"}, set(), set())
    system.wire.around = straight
    assert outcome(system.ingest_message(intent)) == (set(), {new}, set())
    assert is_there(system, new)


def test_an_intent_that_comes_again_changes_nothing():
    system, old = a_system()
    new, intent = an_intent(old)
    for _ in range(3):
        assert outcome(system.ingest_message(intent)) == (set(), {new}, set())
    assert system.cancel(new.id) is State.CANCELLED
    system.ingest_message(intent)
    system.clock.sleep(2 * AN_HOUR)
    system.tick()
    assert system.arrived() == []


def test_an_intent_that_comes_again_after_its_job_was_sent_by_the_late_path_may_repeat_it_but_no_old_job():
    system, old = a_system()
    new, intent = an_intent(old, hours=0)
    raise_fence(system, NOW + timedelta(seconds=240))
    for _ in range(2):
        assert system.ingest_message(intent).late == [new]
    system.clock.sleep(AN_HOUR)
    system.tick()
    assert set(system.arrived()) == {new.id}


@pytest.mark.parametrize("early", [0.001, 60])
def test_an_intent_for_a_job_that_may_have_left_is_dropped(early):
    system, old = a_system()
    new, intent = an_intent(old)
    raise_fence(system, OLD_DUE + timedelta(seconds=early - 0.001))
    assert outcome(system.ingest_message(intent)) == (set(), set(), {new})
    assert not is_there(system, new)


def test_an_intent_for_a_job_that_was_cancelled_is_dropped_for_good():
    system, old = a_system()
    new, intent = an_intent(old)
    assert system.cancel(old.id) is State.CANCELLED
    for _ in range(2):
        assert outcome(system.ingest_message(intent)) == (set(), set(), {new})
    assert not is_there(system, new)


def test_of_two_intents_for_a_job_one_is_carried_out():
    system, old = a_system()
    (first, one), (second, other) = an_intent(old), an_intent(old)
    assert outcome(system.ingest_message(one, other)) == (set(), {first}, {second})


def test_an_intent_overtaken_by_its_caller_between_two_calls_of_ingest_is_in_place():
    system, old = a_system()
    system.tick()
    wanted = NOW + timedelta(seconds=200)
    system.wire.around = on("table.move", failing(Unavailable("no")), times=1)
    with pytest.raises(Unavailable):
        system.reschedule(old.id, at=wanted)
    (intent,) = [each.message for each in system.inbound.deliveries]
    new = intent.job()

    def carried_out_by_its_caller():
        row = rows.cancellation_row(old.id, at=NOW, moved_to=new.id)
        system.stores.table.move(row, rows.job_row(new), state=rows.state_key(old.id.partition), fence_below="9")

    system.wire.around = on("table.move", meanwhile(carried_out_by_its_caller), times=1)
    assert outcome(system.ingest()) == (set(), {new}, set())


def test_the_row_of_a_moved_job_is_not_written_again_and_its_fence_is_read_after_the_move():
    system, old = a_system()
    _, intent = an_intent(old)
    calls = []
    system.wire.around = lambda call: (calls.append(call.name), call.do(*call.args))[1]
    system.ingest_message(intent)
    assert calls == ["table.read", "table.write", "table.move", "table.read"]
    calls.clear()
    system.ingest_message(intent)
    assert calls == ["table.read", "table.read"]


def test_a_fence_raised_while_ingest_moves_is_seen():
    system, old = a_system()
    new, intent = an_intent(old, hours=0.01)

    def the_other_partition_is_handed_over():
        raise_fence(system, new.id.due)

    system.wire.around = on("table.move", meanwhile(the_other_partition_is_handed_over), times=1)
    assert system.ingest_message(intent).late == [new]
    assert system.arrived() == [new.id]


@pytest.mark.parametrize("name", ["table.read", "table.ask_for"])
@pytest.mark.parametrize("react", [failing(Throttled("slow down")), losing_the_answer])
def test_an_intent_whose_outcome_cannot_be_read_comes_again_and_its_neighbours_do_not(react, name):
    system, old = a_system()
    new, intent = an_intent(old)
    neighbour = a_job(due=OLD_DUE + timedelta(seconds=1))
    raise_fence(system, OLD_DUE)
    system.wire.around = on(name, react, times=1)
    done = an_attempt(system, intent, Message.of(neighbour))
    assert done.failed == {"x0"}
    assert done.again == {new}
    assert done.faults
    assert is_there(system, neighbour)
    assert not is_there(system, new)


def test_an_intent_that_was_carried_out_is_not_dropped_where_that_is_not_seen_yet():
    system, old = a_system()
    new, intent = an_intent(old)
    for _ in range(2):
        assert outcome(system.ingest_message(intent)) == (set(), {new}, set())
        system.hide("#cancelled")
    raise_fence(system, OLD_DUE)
    assert outcome(system.ingest_message(intent)) == (set(), {new}, set())


def test_a_job_that_was_submitted_under_the_new_ones_id_has_moved_no_other():
    system, old = a_system()
    new, intent = an_intent(old)
    system.put(new)
    assert outcome(system.ingest_message(intent)) == (set(), {new}, set())
    assert system.status_of(old.id).moved_to == new.id
    raise_fence(system, OLD_DUE)
    other, late = an_intent(another := a_job(due=OLD_DUE))
    system.put(another, other)
    assert outcome(system.ingest_message(late)) == (set(), set(), {other})


@pytest.mark.parametrize("react", [failing(Throttled("slow down")), losing_the_answer])
def test_an_intent_whose_move_failed_comes_again_and_is_carried_out_once(react):
    system, old = a_system()
    new, intent = an_intent(old)
    system.wire.around = on("table.move", react, times=1)
    assert an_attempt(system, intent).failed == {"x0"}
    assert outcome(system.ingest_message(intent)) == (set(), {new}, set())


@pytest.mark.parametrize(("seconds", "moved"), [(4.9, 2), (5, 1)])
def test_no_intent_is_begun_in_the_second_half_of_the_time(seconds, moved):
    system, old = a_system()
    for _ in range(2):
        system.inbound.send([an_intent(old)[1]])
    system.wire.around = on("table.move", meanwhile(lambda: system.clock.sleep(seconds)), times=1)
    done = system.an_ingest().run(system.received(), until=system.clock.monotonic() + 10)
    assert (len(done.moved | done.dropped), len(done.failed)) == (moved, 2 - moved)
    assert system.clock.monotonic() == seconds


def test_a_moved_job_that_is_due_in_a_partition_without_ticks_is_parked_only_if_it_was_moved():
    system, old = a_system()
    partition = Partition(queue="emails", number=7)
    jobs = [a_job(due=OLD_DUE, partition=partition) for _ in range(2)]
    for job in jobs:
        system.inbound.send([Message.of(job, moves=old.id)])
    batch = [replace(each, receives=PATIENT_RECEIVES) for each in system.received()]
    assert outcome(system.ingest(batch)) == (set(), {jobs[0]}, {jobs[1]})
    assert system.parked() == [jobs[0].id]


# Long after


def long_after(system, old):
    system.clock.sleep((old.id.due + MAX_RETENTION - system.clock.now()).total_seconds())


def collect(system):
    table = system.stores.table
    table.collect(table.expired(now=system.clock.now()))


def test_an_intent_for_a_job_whose_cancellation_may_be_collected_cancels_nothing_any_more():
    system, old = a_system()
    new, intent = an_intent(old, hours=24 * 60)
    assert system.cancel(old.id) is State.CANCELLED
    assert outcome(system.ingest_message(intent)) == (set(), set(), {new})
    long_after(system, old)
    system.clock.sleep(CANCELLATION_OUTLIVES_RETENTION.total_seconds())
    collect(system)
    assert outcome(system.ingest_message(intent)) == (set(), set(), {new})
    assert not is_there(system, new)


def test_a_moved_job_is_known_by_its_row_when_the_cancellation_is_collected():
    system, old = a_system()
    new, intent = an_intent(old, hours=24 * 60)
    system.ingest_message(intent)
    long_after(system, old)
    system.clock.sleep(CANCELLATION_OUTLIVES_RETENTION.total_seconds())
    collect(system)
    assert outcome(system.ingest_message(intent)) == (set(), {new}, set())


def test_what_may_have_been_moved_or_not_is_parked_once_it_is_past_its_retention():
    system, old = a_system()
    new, intent = an_intent(old)
    long_after(system, old)
    done = system.ingest_message(intent)
    assert [(parked.job, parked.reason) for parked in done.parked] == [(new, PAST_RETENTION)]
    assert (done.failed, system.arrived()) == (set(), [])


@pytest.mark.parametrize(("hours", "parked"), [(2, 1), (24 * 60, 0)])
def test_a_cancel_long_after_the_move_says_nothing_of_it(hours, parked):
    system, old = a_system()
    new, intent = an_intent(old, hours=hours)
    system.ingest_message(intent)
    long_after(system, old)
    system.clock.sleep(CANCELLATION_OUTLIVES_RETENTION.total_seconds())
    collect(system)
    assert system.cancel(old.id) is State.CANCELLED
    done = system.ingest_message(intent)
    assert (outcome(done), len(done.parked)) == ((set(), {new}, set()), parked)


# The message


@pytest.mark.parametrize("hours", [1, 2])
def test_an_intent_is_the_new_jobs_message_with_one_attribute_more(hours):
    old = a_job()
    new, intent = an_intent(old, hours=hours)
    assert (intent.job(), intent.moves()) == (new, old.id)
    assert dict(intent.attributes) == {**Message.of(new).attributes, MOVES: str(old.id)}
    assert Message.of(new).moves() is None


@pytest.mark.parametrize(
    "named",
    [
        "",
        "emails",
        str(an_id(partition=Partition(queue="invoices", number=0))),
        str(an_id(route=Route.DIRECT)),
        "itself",
    ],
)
def test_an_intent_that_names_no_job_of_which_its_own_could_take_the_place_is_rejected_with_the_reason(named):
    system, new = System(), a_job()
    told = str(new.id) if named == "itself" else named
    intent = Message(body=new.payload, attributes={**Message.of(new).attributes, MOVES: told})
    with pytest.raises(InvalidJob, match=MOVES):
        intent.moves()
    done = system.ingest_message(intent)
    assert len(done.rejected) == 1
    assert not is_there(system, new)


def test_a_direct_job_takes_no_ones_place():
    old, new = a_job(), a_job(route=Route.DIRECT)
    with pytest.raises(InvalidJob, match=MOVES):
        Message.of(new, moves=old.id).moves()


def test_a_message_that_carries_no_job_moves_none():
    with pytest.raises(InvalidJob):
        Message(body="{}", attributes={MOVES: str(an_id())}).moves()


# The row


def test_a_cancellation_names_the_job_that_took_its_place_and_is_a_promise():
    old, new = an_id(), an_id()
    row = rows.cancellation_row(old, at=NOW, moved_to=new)
    assert moved_to(row) == new
    assert row["exact"] is True
    assert moved_to(rows.cancellation_row(old, at=NOW)) is None


def a_forged_cancellation(old, moved_to):
    return {**rows.cancellation_row(old, at=NOW), "exact": True, "moved_to": moved_to}


OF_ANY_QUEUE = st.builds(
    lambda queue, due: f"{queue}.0.t.{due}.{an_id().uid}",
    st.sampled_from(["emails", "bills", "emails-vip", "email"]),
    st.integers(0, 10**13),
)


@given(OF_ANY_QUEUE | st.text(max_size=80) | st.integers() | st.binary() | st.none())
@example("bills.0.t.1.00000000-0000-4000-8000-000000000000")
def test_whatever_a_row_says_its_job_was_moved_to_no_job_of_another_queue_is_told(forged):
    told = moved_to(a_forged_cancellation(an_id(), forged))
    assert told is None or (told.queue, str(told)) == ("emails", forged)


@pytest.mark.parametrize("forged", [f"bills.0.t.{instant.epoch_ms(OLD_DUE)}.{an_id().uid}", "nonsense"])
def test_a_job_whose_row_says_that_it_was_moved_elsewhere_is_cancelled_and_nothing_more(forged):
    system, old = a_system()
    system.table.add(a_forged_cancellation(old.id, forged))
    assert (system.status_of(old.id).state, system.status_of(old.id).moved_to) == (State.CANCELLED, None)
    with pytest.raises(AlreadyFinished, match="was cancelled") as refused:
        system.reschedule(old.id, at=OLD_DUE)
    assert refused.value.job_id is None
    new, intent = an_intent(old)
    assert outcome(system.ingest_message(intent)) == (set(), set(), {new})


@pytest.mark.parametrize("delay", [200, 2 * AN_HOUR], ids=["by an intent", "by a transaction alone"])
def test_a_job_may_have_the_largest_payload_and_still_be_moved(delay):
    id = an_id(due=OLD_DUE)
    job = Job(id=id, payload="x" * (256 * 1024), expires=id.due + RETENTION)
    system = System()
    system.put(job)
    system.tick()
    moved = system.reschedule(id, delay=delay)
    system.ingest()
    system.clock.sleep(2 * AN_HOUR)
    system.tick()
    assert system.arrived() == [moved]
