"""Jobs and intents, as ingest takes them to the table, to their queues, or out of the way."""

import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from dueline.config.environment import checked_lookahead
from dueline.core import instant, partitions, rows
from dueline.core.dispatch import PAST_RETENTION
from dueline.core.ingest import PATIENT_RECEIVES, InboundMessage
from dueline.core.job import MAX_RETENTION, Partition, Route, State
from dueline.core.message import ID, MOVES, OF_SCHEMA, REASON, Message
from dueline.core.partitions import FAR, SIGNED_WITHIN
from dueline.core.ports import Pointer
from dueline.core.status import Status
from dueline.core.table_writer import TableWriter
from dueline.errors import AlreadyFinished, InvalidJob, Throttled, Unavailable
from dueline.testing import VirtualClock
from tests.builders import EMAILS, NOW, RETENTION, a_job, a_message, a_queue, an_id, due_in, emails
from tests.system import System
from tests.wire import done_in_part, failing, meanwhile, on, straight

AN_HOUR = 3600


def messages(*jobs):
    return [Message.of(job, group=job.id.queue) for job in jobs]


def ingest(system, *jobs):
    return system.ingest_message(*messages(*jobs))


# Rows


@pytest.mark.parametrize("delay", [60, AN_HOUR])
@pytest.mark.parametrize("other", [{"payload": "2"}, {"tenant": "b"}, {"priority": 2}])
def test_ingest_keeps_the_first_job_of_an_id(delay, other):
    system, job = System(a_queue(priorities=2)), due_in(delay)
    system.tick()
    ingest(system, job)
    done = ingest(system, replace(job, **other))
    assert (done.failed, len(done.reused)) == (set(), 1)
    system.clock.sleep(delay - 60)
    system.tick()
    assert [each.message.body for each in system.queues["emails"].deliveries] == [job.payload]
    assert system.arrived(priority=2) == []


A_DAY_LATER = NOW + timedelta(seconds=AN_HOUR, days=1) + RETENTION
# A direct producer's extended client may write its pointers in a form of its own.
OWN_POINTER = {"payload": '{"own":"pointer"}', "offloaded_bytes": 300_000}
POINTERS = [
    {"payload": Pointer(bucket="payloads", key=f"{days}/emails/uid.sha256").text, "offloaded_bytes": 300_000}
    for days in ("0032", "0064")
]


@pytest.mark.parametrize(
    ("first", "again"),
    [({}, {"expires": A_DAY_LATER}), (OWN_POINTER, OWN_POINTER), POINTERS],
    ids=["kept longer", "foreign pointer", "payload kept longer"],
)
def test_repeat_of_a_written_job_is_ingested(first, again):
    system, job, other = System(), due_in(AN_HOUR), due_in(AN_HOUR)
    ingest(system, replace(job, **first))
    done = ingest(system, replace(job, **again), other)
    assert (done.failed, done.reused, done.written) == (set(), set(), 2)
    key = rows.job_key(job.id)
    assert rows.read_job(system.table.read([key]).rows[key]) == replace(job, **again)


def test_id_of_a_foreign_pointer_is_kept():
    system, job = System(), due_in(AN_HOUR, **OWN_POINTER)
    ingest(system, job)
    done = ingest(system, replace(job, payload='{"another":"pointer"}'))
    assert (done.failed, len(done.reused)) == (set(), 1)


# What is tried again


def rows_written(system, react):
    """Count the rows of each write, which `react` answers."""
    counts = []
    system.wire.around = on("table.write", lambda call: (counts.append(len(call.args[0])), react(call))[1])
    return counts


def test_only_what_is_undone_is_tried_again():
    system, jobs = System(), [due_in(AN_HOUR) for _ in range(30)]
    in_turn = [failing(Throttled("slow down")), straight, done_in_part]
    counts = rows_written(system, lambda call: (in_turn.pop(0) if in_turn else straight)(call))
    done = ingest(system, *jobs)
    assert (done.failed, done.written, counts) == (set(), 30, [25, 5, 25, 1])


@pytest.mark.parametrize("seconds", [0.05, 1, 14])
def test_no_retry_once_time_is_over(seconds):
    system, job = System(), due_in(AN_HOUR)
    counts = rows_written(system, failing(Throttled("slow down")))
    done = system.an_ingest().run([InboundMessage(message_id="m", message=messages(job)[0])], until=seconds)
    assert (done.failed, done.faults) == ({"m"}, {"slow down"})
    assert system.clock.monotonic() < seconds
    assert len(counts) == {0.05: 1, 1: 4, 14: 17}[seconds]


def test_unread_fence_fails_one_partition():
    system = System(a_queue(partitions=2))
    jobs = [due_in(AN_HOUR, partition=emails(number)) for number in (0, 1)]
    in_part = on("table.read", done_in_part)
    system.wire.around = lambda call: (in_part if rows.STATE in str(call.args) else straight)(call)
    assert len(ingest(system, *jobs).failed) == 1


# The late path


def test_unread_cancellation_sends_nothing(system):
    system.tick()
    system.cancel((job := due_in(60)).id)
    in_part = on("table.read", partial(done_in_part, last=True))
    system.wire.around = lambda call: (in_part if rows.CANCELLED in str(call.args) else straight)(call)
    assert (ingest(system, job).failed, system.arrived()) == ({"x0"}, [])


@pytest.mark.parametrize("name", ["table.write", "table.read", "emails.send"])
def test_failures_name_reason_and_jobs(name):
    system, job = System(), due_in(60)
    system.tick()
    system.wire.around = on(name, failing(Unavailable("AccessDenied")))
    done = ingest(system, job)
    assert (done.again, done.faults, done.failed) == ({job}, {"AccessDenied"}, {"x0"})


def test_rejects_wait_for_jobs_and_stop_in_time():
    system, job = System(), due_in(AN_HOUR)
    batch = [
        InboundMessage(message_id="junk", message=a_message()),
        InboundMessage(message_id="job", message=messages(job)[0]),
    ]
    done = system.an_ingest().run(batch, until=0)
    assert (done.failed, done.written, done.rejected) == ({"junk"}, 1, [])


@pytest.mark.parametrize("due", [instant.EPOCH, NOW])
@pytest.mark.parametrize("expires", [NOW + timedelta(milliseconds=1), datetime.max.replace(tzinfo=UTC)])
def test_late_message_is_sent_and_noted(due, expires):
    system, job = System(), a_job(due=due, expires=expires)
    system.tick()
    done = ingest(system, job)
    assert (done.failed, [each.id for each in done.late]) == (set(), [job.id])
    assert rows.handled_key(job.id) in system.table.read([rows.handled_key(job.id)]).rows


# Poison


@pytest.mark.parametrize("is_later", [True, False], ids=["a later schema", "no job"])
def test_message_without_a_job_is_parked_alone(is_later):
    """What a later schema has written is kept for a redrive, as it is."""
    system, message, job = System(), Message.of(due_in(AN_HOUR)), due_in(AN_HOUR)
    later = replace(message, attributes={**message.attributes, OF_SCHEMA: "2"})
    poison = later if is_later else a_message(body="not a job")
    done = system.ingest_message(poison, *messages(job))
    (delivery,) = system.rejects.deliveries
    assert (done.failed, done.written) == (set(), 1)
    attributes = dict(delivery.message.attributes)
    assert ("of schema 2" if is_later else f"message attribute '{ID}' is missing") in attributes.pop(REASON)
    assert (delivery.message.body, attributes) == (poison.body, poison.attributes)


@pytest.mark.parametrize("react", [failing(Unavailable("no")), done_in_part])
def test_unparked_poison_comes_again(react):
    system, job = System(), due_in(AN_HOUR)
    system.wire.around = on("rejects.send", react)
    assert system.ingest_message(a_message(), *messages(job)).failed == {"x0"}


def test_poison_is_parked_in_batches(system):
    done = system.ingest_message(*(a_message(body="x" * 300_000) for _ in range(25)))
    assert (done.failed, len(system.rejects.deliveries)) == (set(), 25)


def often_received(job, *, receives=PATIENT_RECEIVES):
    return InboundMessage(message_id="x0", message=Message.of(job), receives=receives)


NOBODYS = [Partition(queue="nobody", number=0), emails(7)]
NO_TICK = "no tick reads {}: it is not in queues.yaml, or its queue's stack is not deployed yet"


@pytest.mark.parametrize("due", [0, AN_HOUR])
@pytest.mark.parametrize("partition", NOBODYS, ids=str)
def test_job_without_ticks_is_parked(partition, due):
    system, job = System(), due_in(due, partition=partition)
    done = system.ingest([often_received(job)])
    assert (done.failed, done.written) == (set(), 0)
    assert system.parked() == [job.id]
    assert system.dead_letters.deliveries[0].message.attributes[REASON] == NO_TICK.format(partition)
    assert rows.job_key(job.id) not in map(rows.key, system.stores.table.all())


@pytest.mark.parametrize("partition", NOBODYS, ids=str)
def test_added_partition_is_awaited(partition):
    system, job = System(), due_in(AN_HOUR, partition=partition)
    done = system.ingest([often_received(job, receives=PATIENT_RECEIVES - 1)])
    assert (done.failed, done.faults) == ({"x0"}, {NO_TICK.format(partition)})
    assert (system.parked(), [*system.stores.table.all()]) == ([], [])
    assert system.clock.monotonic() == 0


@pytest.mark.parametrize(("react", "until"), [(done_in_part, math.inf), (straight, 0)], ids=["unread", "out of time"])
def test_partition_that_may_have_ticks_is_awaited(react, until):
    system, job = System(), due_in(AN_HOUR, partition=NOBODYS[0])
    system.wire.around = on("table.read", react)
    assert system.an_ingest().run([often_received(job, receives=99)], until=until).failed == {"x0"}
    assert system.parked() == []


def test_unread_partition_is_read_again_at_once():
    system, job = System(), due_in(AN_HOUR, partition=NOBODYS[1])
    system.tick(job.id.partition)
    system.wire.around = on("table.read", done_in_part, times=1)
    assert ingest(system, job).failed == set()


@pytest.mark.parametrize(("seconds", "parked"), [(900, False), (901, True)])
def test_too_late_direct_job_is_parked(seconds, parked):
    system, job = System(), due_in(seconds, route=Route.DIRECT)
    assert ingest(system, job).failed == set()
    assert (system.parked(), system.arrived()) == (([job.id], []) if parked else ([], [job.id]))


# Intents


OLD_DUE = NOW + timedelta(hours=1)


def an_intent(old):
    due = NOW + timedelta(hours=2)
    new = a_job(due=due, expires=due + RETENTION)
    return new, Message.of(new, group="emails", moves=old.id)


def a_system():
    system, old = System(), a_job(due=OLD_DUE)
    system.put(old)
    return system, old


def outcome(done):
    return done.failed, done.moved, done.dropped


@pytest.mark.parametrize("intent_first", [True, False])
def test_refused_move_drops_no_submission(intent_first):
    """A job that was submitted under the id of a refused reschedule is ingested, also when both share a batch."""
    system, old = a_system()
    system.table.acquire_lease(EMAILS, owner="me", now="", lease="", fence=instant.text(OLD_DUE))
    new, intent = an_intent(old)
    submitted = replace(new, payload='"submitted"')
    both = [intent, Message.of(submitted)]
    done = system.ingest_message(*(both if intent_first else reversed(both)))
    assert outcome(done) == (set(), set(), set())
    key = rows.job_key(submitted.id)
    assert rows.read_job(system.table.read([key]).rows[key]) == submitted


@pytest.mark.parametrize(("seconds", "moved"), [(4.9, 2), (5, 1)])
def test_no_intent_starts_in_the_second_half(seconds, moved):
    system, old = a_system()
    for _ in range(2):
        system.inbound.send([an_intent(old)[1]])
    system.wire.around = on("table.move", meanwhile(lambda: system.clock.sleep(seconds)), times=1)
    done = system.an_ingest().run(system.received(), until=system.clock.monotonic() + 10)
    assert (len(done.moved | done.dropped), len(done.failed)) == (moved, 2 - moved)
    assert system.clock.monotonic() == seconds


def test_job_moved_without_ticks_is_parked():
    system, old = a_system()
    partition = emails(7)
    jobs = [a_job(due=OLD_DUE, partition=partition) for _ in range(2)]
    for job in jobs:
        system.inbound.send([Message.of(job, moves=old.id)])
    batch = [replace(each, receives=PATIENT_RECEIVES) for each in system.received()]
    assert outcome(system.ingest(batch)) == (set(), {jobs[0]}, {jobs[1]})
    assert system.parked() == [jobs[0].id]


def test_row_of_a_move_that_is_not_there_is_written():
    """The move's cancellation may be read before its other row, which a tick might pass over then."""
    system, old = a_system()
    new, intent = an_intent(old)
    system.table.add(rows.cancellation_row(old.id, at=NOW, moved_to=new.id))
    system.wire.around = on("table.write", done_in_part, times=1)
    assert outcome(system.ingest_message(intent)) == (set(), {new}, set())
    assert system.table.read([rows.job_key(new.id)]).rows


# Long after


def test_expired_unknown_move_is_parked():
    system, old = a_system()
    new, intent = an_intent(old)
    system.clock.sleep((OLD_DUE + MAX_RETENTION - NOW).total_seconds())
    done = system.ingest_message(intent)
    assert [(parked.job, parked.reason) for parked in done.parked] == [(new, PAST_RETENTION)]
    assert (done.failed, system.arrived()) == (set(), [])


# The message


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
def test_bad_intent_is_rejected_with_the_reason(named):
    system, new = System(), a_job()
    answer = str(new.id) if named == "itself" else named
    intent = Message(body=new.payload, attributes={**Message.of(new).attributes, MOVES: answer})
    for wrong in (intent, Message.of(a_job(route=Route.DIRECT), moves=a_job().id)):
        with pytest.raises(InvalidJob, match=MOVES):
            wrong.moves()
    with pytest.raises(InvalidJob):
        Message(body="{}", attributes={MOVES: str(an_id())}).moves()
    done = system.ingest_message(intent)
    assert len(done.rejected) == 1
    assert system.in_the_table() == []


# The row


@pytest.mark.parametrize("forged", [f"bills.0.t.{instant.epoch_ms(OLD_DUE)}.{an_id().uid}", "nonsense"])
def test_foreign_moved_to_is_a_plain_cancellation(forged):
    system, old = a_system()
    system.table.add({**rows.cancellation_row(old.id, at=NOW), "exact": True, "moved_to": forged})
    assert system.job_status(old.id) == (old.id, Status(state=State.CANCELLED))
    with pytest.raises(AlreadyFinished, match="was cancelled") as refused:
        system.reschedule(old.id, at=OLD_DUE)
    assert refused.value.job_id is None
    new, intent = an_intent(old)
    assert outcome(system.ingest_message(intent)) == (set(), set(), {new})


# What is due in over an hour: no fence is read for it, and one request cancels it, whatever clocks say


def write(system, *jobs, have_rows=()):
    return system.a_route().write(jobs, until=math.inf, have_rows=have_rows)


@pytest.mark.parametrize(("after", "is_far"), [(FAR.total_seconds(), False), (FAR.total_seconds() + 0.001, True)])
def test_fence_is_read_unless_the_job_is_far(system, after, is_far):
    calls = system.calls()
    system.schedule(after)
    assert calls == ["table.add", *([] if is_far else ["table.read"])]


def test_fence_is_read_for_the_near_jobs_of_a_batch():
    system, near, far = System(), due_in(1800), due_in(86_400)
    calls = system.calls()
    result = write(system, near, far)
    assert (calls, result.written, result.far) == (["table.write", "table.read"], {near, far}, {far})


def test_what_is_far_is_to_be_signed_while_it_is_far():
    system, days, signed = System(), [due_in(86_400 * day) for day in (1, 2)], []
    system.wire.around = lambda call: (signed.append(call.kwargs.get("signed_before")), straight(call))[1]
    system.cancel(system.schedule(86_400).id)
    write(system, due_in(1800), *days)
    write(system, days[0], have_rows={days[0]})
    latest = NOW + timedelta(days=1) - FAR + SIGNED_WITHIN
    # The last two read the fence: of the job that is near, and of the one whose row another request has put.
    assert signed == [latest, latest, latest, None, None]


@pytest.mark.parametrize("count", [1, 12])
def test_job_without_a_row_is_never_sent(count):
    """A clock that is ahead while the row would be written, and then right: a cancel would promise that it is not."""
    system, jobs = System(), [due_in(60 + n) for n in range(count)]
    ahead = VirtualClock(jobs[-1].expires)
    writer = TableWriter(table=system.table, dispatcher=system.dispatcher, clock=ahead)
    write = partial(writer.write_first, jobs[0]) if count == 1 else partial(writer.write, jobs)
    result = write(until=math.inf)
    assert (system.arrived(), len(result.parked)) == ([], count)


def test_far_is_beyond_what_signatures_and_fences_allow():
    a_minute = timedelta(minutes=1)
    assert 2 * partitions.SIGNATURE_LIVES + partitions.MOST_LOOKAHEAD + a_minute <= FAR - SIGNED_WITHIN


@pytest.mark.parametrize("seconds", [0, -1, 901])
def test_lookahead_with_which_nothing_is_far_is_refused(seconds):
    with pytest.raises(ValueError, match=f"lookahead is {seconds}: it must be from 1 to 900 seconds"):
        checked_lookahead(seconds)
    assert checked_lookahead(900) == timedelta(minutes=15)
