from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dueline.errors import Throttled, Unavailable
from dueline.model import instant, rows
from dueline.model.job import Partition, Route, State
from dueline.model.message import ID, OF_SCHEMA, REASON, Message
from dueline.protocol.astray import PATIENT_RECEIVES
from dueline.protocol.dispatch import PAST_RETENTION
from dueline.protocol.ingest import Received
from tests.builders import NOW, a_job, a_message, a_queue
from tests.system import System
from tests.wire import done_in_part, failing, losing_the_answer, meanwhile, on, refusing, straight

AN_HOUR = 3600
NOW_UNZONED = NOW.replace(tzinfo=None)
IN_UTC = st.just(UTC)


def due_in(seconds, **overrides):
    return a_job(due=NOW + timedelta(seconds=seconds), **overrides)


def messages(*jobs):
    return [Message.of(job, group=job.id.queue) for job in jobs]


def in_the_table(system, *jobs):
    return [job for job in jobs if rows.job_key(job.id) in system.table.read([rows.job_key(job.id)]).rows]


def ids(jobs):
    return [job.id for job in jobs]


# Rows


def test_a_job_that_a_later_tick_will_see_becomes_a_row_and_nothing_else():
    system, job = System(), due_in(AN_HOUR)
    done = system.ingest_message(*messages(job))
    assert (done.failed, done.written, done.late) == (set(), 1, [])
    assert in_the_table(system, job)
    assert system.arrived() == []


def test_a_batch_of_hundreds_over_many_partitions_is_written_whole():
    system = System(a_queue(partitions=5))
    jobs = [due_in(AN_HOUR, partition=Partition(queue="emails", number=n % 5)) for n in range(312)]
    done = system.ingest_message(*messages(*jobs))
    assert (done.failed, done.written) == (set(), 312)
    assert in_the_table(system, *jobs) == jobs


def test_an_empty_batch_asks_nothing():
    system = System()
    system.wire.around = failing(AssertionError("nothing is to be asked"))
    assert system.ingest([]).failed == set()


def test_repeats_in_one_batch_make_one_row_and_all_succeed():
    system, job = System(), due_in(AN_HOUR)
    done = system.ingest_message(*messages(job, job, job))
    assert (done.failed, done.written) == (set(), 1)


def test_a_row_that_was_left_unwritten_is_reported_and_its_neighbours_are_not():
    system, jobs = System(), [due_in(AN_HOUR) for _ in range(3)]
    system.wire.around = on("table.write", done_in_part)
    done = system.ingest_message(*messages(*jobs))
    assert len(done.failed) == 1
    assert done.written == 2
    (left,) = [job for job in jobs if not in_the_table(system, job)]
    assert done.failed == {f"x{jobs.index(left)}"}


def test_every_message_of_an_unwritten_job_is_reported():
    system, job = System(), due_in(AN_HOUR)
    system.wire.around = on("table.write", failing(Throttled("slow down")))
    assert system.ingest_message(*messages(job, job)).failed == {"x0", "x1"}


@pytest.mark.parametrize("react", [failing(Throttled("slow down")), losing_the_answer])
def test_a_write_that_failed_fails_its_own_rows_alone(react):
    system, jobs = System(), [due_in(AN_HOUR) for _ in range(30)]
    system.wire.around = on("table.write", lambda call: (react if len(call.args[0]) == 25 else straight)(call))
    done = system.ingest_message(*messages(*jobs))
    assert len(done.failed) == 25
    assert done.written == 5


def test_an_unwritten_job_is_not_sent_by_the_late_path_either():
    system, job = System(), due_in(60)
    system.tick()
    system.wire.around = on("table.write", failing(Throttled("slow down")))
    assert system.ingest_message(*messages(job)).failed == {"x0"}
    assert system.arrived() == []


# What is tried again


def rows_written(system, react):
    """Count the rows of each write, which `react` answers."""
    counts = []
    system.wire.around = on("table.write", lambda call: (counts.append(len(call.args[0])), react(call))[1])
    return counts


def in_turn(*reacts):
    """Answer a call by each of these in turn, and every later one straight."""
    left = list(reacts)
    return lambda call: (left.pop(0) if left else straight)(call)


@pytest.mark.parametrize("react", [failing(Throttled("slow down")), losing_the_answer])
def test_what_the_table_did_not_take_is_tried_again_at_once(react):
    system, jobs = System(), [due_in(AN_HOUR) for _ in range(3)]
    counts = rows_written(system, in_turn(*[react] * 3))
    done = system.ingest_message(*messages(*jobs))
    assert (done.failed, done.again, done.written, counts) == (set(), set(), 3, [3, 3, 3, 3])


def test_only_what_is_undone_is_tried_again():
    system, jobs = System(), [due_in(AN_HOUR) for _ in range(30)]
    counts = rows_written(system, in_turn(failing(Throttled("slow down")), straight, done_in_part))
    done = system.ingest_message(*messages(*jobs))
    assert (done.failed, done.written, counts) == (set(), 30, [25, 5, 25, 1])


def test_a_job_whose_fence_could_not_be_read_is_not_written_again_and_sees_the_fence_of_its_last_try():
    system, job = System(), due_in(60)
    counts = rows_written(system, straight)
    of_writes = system.wire.around
    reads = in_turn(failing(Unavailable("no")), meanwhile(system.tick))
    system.wire.around = lambda call: (reads if call.name == "table.read" else of_writes)(call)
    done = system.ingest_message(*messages(job))
    assert (done.failed, done.late, counts) == (set(), [job], [1, 1])
    assert system.arrived() == [job.id, job.id]


def test_what_was_sent_is_not_sent_again_because_its_neighbour_could_not_be():
    system, jobs = System(), [due_in(60) for _ in range(20)]
    system.tick()
    refused = jobs[0].id
    system.wire.around = on(
        "emails.send", refusing(lambda message: message.job().id == refused and system.clock.monotonic() < 6)
    )
    assert system.ingest_message(*messages(*jobs)).failed == set()
    assert sorted(map(str, system.arrived())) == sorted(str(job.id) for job in jobs)


@pytest.mark.parametrize("seconds", [0.05, 1, 14])
def test_nothing_is_tried_again_once_the_time_is_over(seconds):
    system, job = System(), due_in(AN_HOUR)
    counts = rows_written(system, failing(Throttled("slow down")))
    done = system.an_ingest().run([Received(message_id="m", message=messages(job)[0])], until=seconds)
    assert (done.failed, done.faults) == ({"m"}, {"slow down"})
    assert system.clock.monotonic() < seconds
    assert len(counts) == {0.05: 1, 1: 4, 14: 17}[seconds]


def test_a_move_that_meets_other_transactions_is_tried_again_at_once_beside_its_neighbour():
    system, job, beside = System(), due_in(AN_HOUR), due_in(2 * AN_HOUR)
    system.put(job)
    system.tick()
    system.wire.around = on("table.move", failing(Throttled("it conflicts")), times=4)
    with pytest.raises(Throttled):
        system.reschedule(job.id, at=NOW + timedelta(seconds=30))
    (intent,) = system.waiting()
    done = system.ingest([intent, Received(message_id="m", message=messages(beside)[0])])
    assert (done.failed, len(done.moved), done.dropped) == (set(), 1, set())
    assert in_the_table(system, beside) == [beside]


# Fences


def test_a_job_due_just_after_the_fence_is_left_to_a_tick_and_one_due_at_it_is_not():
    system, at_it, after_it = System(), due_in(240), due_in(240.001)
    system.tick()
    done = system.ingest_message(*messages(at_it, after_it))
    assert done.late == [at_it]
    assert system.arrived() == [at_it.id]


def test_a_fence_raised_while_ingest_writes_is_seen_because_it_is_read_after_the_write():
    system, job = System(), due_in(60)
    system.wire.around = on("table.write", meanwhile(system.tick), times=1)
    assert system.ingest_message(*messages(job)).late == [job]
    assert system.arrived() == [job.id]


def test_a_missing_state_is_a_low_fence():
    system, job = System(), due_in(-60)
    assert system.ingest_message(*messages(job)).late == []
    system.tick()
    assert system.arrived() == [job.id]


@pytest.mark.parametrize("react", [failing(Unavailable("no")), failing(Throttled("slow down")), done_in_part])
def test_a_fence_that_could_not_be_read_is_unknown_and_never_taken_for_none(react):
    system, job = System(), due_in(60)
    system.tick()
    system.wire.around = on("table.read", react)
    assert system.ingest_message(*messages(job)).failed == {"x0"}
    system.wire.around = straight
    assert system.ingest_message(*messages(job)).failed == set()
    assert system.arrived() == [job.id]


def test_a_fence_that_could_not_be_read_fails_its_own_partition_alone():
    system = System(a_queue(partitions=2))
    jobs = [due_in(AN_HOUR, partition=Partition(queue="emails", number=number)) for number in (0, 1)]
    system.wire.around = on("table.read", done_in_part)
    assert len(system.ingest_message(*messages(*jobs)).failed) == 1


def test_fences_of_more_partitions_than_one_read_takes_are_all_read():
    system = System(a_queue(partitions=250))
    jobs = [due_in(60, partition=Partition(queue="emails", number=number)) for number in range(250)]
    system.tick(jobs[249].id.partition)
    done = system.ingest_message(*messages(*jobs))
    assert (done.failed, done.late) == (set(), [jobs[249]])


# The late path


def test_a_late_job_gets_what_delay_is_left():
    system, job = System(), due_in(59.2)
    system.tick()
    system.ingest_message(*messages(job))
    assert system.queues["emails"].deliveries[0].visible == NOW + timedelta(seconds=60)


def test_a_late_job_is_not_sent_again_by_the_next_tick():
    system, job = System(), due_in(60)
    system.tick()
    assert system.ingest_message(*messages(job)).late == [job]
    system.clock.sleep(45)
    assert system.tick().finished
    assert system.arrived() == [job.id]


def test_a_late_job_whose_note_is_lost_is_sent_again_and_not_reported():
    system, job = System(), due_in(60)
    system.tick()
    writes = iter([straight, failing(Unavailable("no"))])
    system.wire.around = lambda call: (next(writes) if call.name == "table.write" else straight)(call)
    assert system.ingest_message(*messages(job)).failed == set()
    system.wire.around = straight
    system.clock.sleep(45)
    system.tick()
    assert system.arrived() == [job.id, job.id]


def test_a_late_job_that_was_parked_is_not_sent_by_the_next_tick():
    system, job = System(), due_in(60)
    system.tick()
    system.queues["emails"].gone = True
    assert [each.job for each in system.ingest_message(*messages(job)).parked] == [job]
    system.queues["emails"].gone = False
    system.clock.sleep(45)
    assert system.tick().finished
    assert (system.arrived(), system.parked()) == ([], [job.id])


def test_a_parked_job_that_is_put_back_is_told_as_dispatched():
    system, job = System(), due_in(60)
    system.put(job)
    system.queues["emails"].gone = True
    system.tick()
    assert system.look_up(job.id) is State.PARKED
    system.queues["emails"].gone = False
    system.ingest_message(system.dead_letters.deliveries[0].message)
    assert system.arrived() == [job.id]
    assert system.look_up(job.id) is State.DISPATCHED


@pytest.mark.parametrize("name", ["table.write", "table.read", "emails.send"])
def test_what_fails_is_told_with_its_reason_and_its_jobs(name):
    system, job = System(), due_in(60)
    system.tick()
    system.wire.around = on(name, failing(Unavailable("AccessDenied")))
    done = system.ingest_message(*messages(job))
    assert (done.again, done.faults, done.failed) == ({job}, {"AccessDenied"}, {"x0"})


def test_junk_is_not_parked_beyond_the_functions_time_and_jobs_come_first():
    system, job = System(), due_in(AN_HOUR)
    ingest = system.an_ingest()
    batch = [Received(message_id="junk", message=a_message()), Received(message_id="job", message=messages(job)[0])]
    done = ingest.run(batch, until=0)
    assert (done.failed, done.written, done.rejected) == ({"junk"}, 1, [])


def test_a_late_job_is_told_as_dispatched_at_once():
    system, job = System(), due_in(60)
    system.tick()
    system.ingest_message(*messages(job))
    assert system.look_up(job.id) is State.DISPATCHED


def test_a_cancelled_job_is_not_sent_by_the_late_path():
    system, job = System(), due_in(60)
    assert system.cancel(job.id) is State.CANCELLED
    system.tick()
    done = system.ingest_message(*messages(job))
    assert (done.failed, done.late, system.arrived()) == (set(), [], [])


@pytest.mark.parametrize("reads", [0, 1])
def test_a_cancel_that_is_promised_between_ingests_two_reads_holds(reads):
    """The cancellation is read after the fence: the fence that ingest saw is one that the cancel sees as well."""
    system, job = System(), due_in(60)
    promised = []

    def cancel_then_tick():
        promised.append(system.cancel(job.id))
        system.tick()

    system.wire.around = on("table.read", meanwhile(cancel_then_tick), skip=reads, times=1)
    system.ingest_message(*messages(job))
    assert set(promised) <= {State.CANCELLED}
    system.tick()
    assert not promised or system.arrived() == []


def test_a_repeated_inbound_message_brings_no_cancelled_job_back():
    system, job = System(), due_in(AN_HOUR)
    system.ingest_message(*messages(job))
    assert system.cancel(job.id) is State.CANCELLED
    for _ in range(3):
        system.ingest_message(*messages(job))
        system.clock.sleep(AN_HOUR)
        system.tick()
    assert system.arrived() == []


@pytest.mark.parametrize("react", [failing(Unavailable("no")), done_in_part])
def test_a_cancellation_that_could_not_be_read_keeps_the_job_back(react):
    system, job = System(), due_in(60)
    system.cancel(job.id)
    system.tick()
    system.wire.around = on("table.read", react, skip=1)
    assert system.ingest_message(*messages(job)).failed == {"x0"}
    assert system.arrived() == []


def a_moved_job_that_comes_late():
    system, job = System(), due_in(60)
    system.ingest_message(*messages(job))
    system.reschedule(job.id, at=NOW + timedelta(hours=2))
    system.tick()
    system.hide("#cancelled")
    return system, job


def test_a_job_that_was_moved_is_not_sent_by_the_late_path_though_its_cancellation_is_not_seen_yet():
    system, job = a_moved_job_that_comes_late()
    done = system.ingest_message(*messages(job))
    assert (done.failed, done.late, system.arrived()) == (set(), [], [])


def test_a_late_job_of_which_it_is_not_known_whether_it_was_moved_comes_again_and_its_neighbour_does_not():
    system, job = a_moved_job_that_comes_late()
    system.wire.around = on("table.ask_for", failing(Throttled("it conflicts")))
    done = system.ingest_message(*messages(job, due_in(61)))
    assert (done.failed, done.faults, len(done.late)) == ({"x0"}, {"it conflicts"}, 1)


def test_a_late_job_that_could_not_be_sent_is_reported():
    system, job = System(), due_in(60)
    system.tick()
    system.wire.around = on("emails.send", failing(Throttled("slow down")))
    assert system.ingest_message(*messages(job)).failed == {"x0"}


def test_a_job_past_its_retention_is_parked_with_the_reason():
    system, job = System(), due_in(-100, expires=NOW)
    done = system.ingest_message(*messages(job))
    assert [(parked.job, parked.reason) for parked in done.parked] == [(job, PAST_RETENTION)]
    assert (done.failed, system.arrived(), system.parked()) == (set(), [], [job.id])


def test_the_clock_is_read_after_the_cancellation():
    system, job = System(), due_in(60, expires=NOW + timedelta(seconds=100))
    system.tick()
    system.wire.around = on("table.read", meanwhile(lambda: system.clock.sleep(100)), skip=1)
    assert [parked.job for parked in system.ingest_message(*messages(job)).parked] == [job]
    assert system.arrived() == []


@given(
    due=st.datetimes(instant.EPOCH.replace(tzinfo=None), NOW_UNZONED, timezones=IN_UTC),
    expires=st.datetimes(NOW_UNZONED + timedelta(milliseconds=1), timezones=IN_UTC),
)
@example(due=NOW, expires=datetime.max.replace(tzinfo=UTC))
def test_whatever_times_a_late_message_carries_it_is_sent_and_noted(due, expires):
    system, job = System(), a_job(due=instant.round_up(due), expires=expires)
    system.tick()
    done = system.ingest_message(*messages(job))
    assert (done.failed, ids(done.late)) == (set(), [job.id])
    assert rows.handled_key(job.id) in system.table.read([rows.handled_key(job.id)]).rows


def test_a_cancelled_job_past_its_retention_is_not_parked():
    system, job = System(), due_in(-100, expires=NOW)
    system.cancel(job.id)
    done = system.ingest_message(*messages(job))
    assert (done.failed, done.parked) == (set(), [])


def test_a_late_job_of_a_queue_that_is_gone_is_parked():
    system, job = System(), due_in(60)
    system.tick()
    system.queues["emails"].gone = True
    assert [parked.job for parked in system.ingest_message(*messages(job)).parked] == [job]
    assert system.parked() == [job.id]


def test_late_jobs_of_several_queues_reach_each_its_own():
    system = System(a_queue(), a_queue(name="invoices"))
    jobs = [due_in(60, partition=Partition(queue=name, number=0)) for name in ("emails", "invoices", "emails")]
    for name in ("emails", "invoices"):
        system.tick(Partition(queue=name, number=0))
    system.ingest_message(*messages(*jobs))
    assert set(system.arrived("emails")) == {jobs[0].id, jobs[2].id}
    assert system.arrived("invoices") == [jobs[1].id]


def test_a_direct_job_that_is_put_back_through_the_inbound_queue_is_sent_without_a_row():
    system, job = System(), due_in(-30, route=Route.DIRECT)
    done = system.ingest_message(*messages(job))
    assert (done.failed, done.written, done.late) == (set(), 0, [job])
    assert system.arrived() == [job.id]
    assert not in_the_table(system, job)


def test_a_direct_job_that_was_cancelled_is_not_sent_again():
    system, job = System(), due_in(-30, route=Route.DIRECT)
    system.cancel(job.id)
    system.ingest_message(*messages(job))
    assert system.arrived() == []


# Poison


def test_a_message_of_a_later_schema_is_kept_as_it_is_for_a_redrive_after_the_upgrade():
    system, (message,) = System(), messages(due_in(AN_HOUR))
    later = replace(message, attributes={**message.attributes, OF_SCHEMA: "2"})
    assert system.ingest_message(later).failed == set()
    (delivery,) = system.rejects.deliveries
    assert delivery.message.body == message.body
    assert delivery.message.attributes.items() >= later.attributes.items()
    assert "of schema 2" in delivery.message.attributes[REASON]


def test_a_message_that_carries_no_job_is_parked_with_the_reason_and_its_neighbours_go_through():
    system, job, poison = System(), due_in(AN_HOUR), a_message(body="not a job")
    done = system.ingest_message(poison, *messages(job))
    (delivery,) = system.rejects.deliveries
    assert (done.failed, done.written) == (set(), 1)
    assert delivery.message.body == "not a job"
    assert delivery.message.attributes == {**poison.attributes, REASON: f"message attribute '{ID}' is missing"}


@pytest.mark.parametrize("react", [failing(Unavailable("no")), done_in_part])
def test_a_poison_message_that_could_not_be_parked_comes_again(react):
    system, job = System(), due_in(AN_HOUR)
    system.wire.around = on("rejects.send", react)
    assert system.ingest_message(a_message(), *messages(job)).failed == {"x0"}


def test_poison_is_parked_in_batches_that_sqs_takes():
    system = System()
    done = system.ingest_message(*(a_message(body="x" * 300_000) for _ in range(25)))
    assert done.failed == set()
    assert len(system.rejects.deliveries) == 25


def often_received(job, *, receives=PATIENT_RECEIVES):
    return Received(message_id="x0", message=Message.of(job), receives=receives)


NOBODYS = [Partition(queue="nobody", number=0), Partition(queue="emails", number=7)]


@pytest.mark.parametrize("due", [0, AN_HOUR])
@pytest.mark.parametrize("partition", NOBODYS, ids=str)
def test_a_job_that_no_tick_will_look_at_is_parked_with_the_reason_and_leaves_no_row(partition, due):
    system, job = System(), due_in(due, partition=partition)
    done = system.ingest([often_received(job)])
    assert (done.failed, done.written) == (set(), 0)
    assert system.parked() == [job.id]
    reason = system.dead_letters.deliveries[0].message.attributes[REASON]
    assert reason == f"no tick reads {partition}: it is not in queues.yaml, or its queue's stack is not deployed yet"
    assert not in_the_table(system, job)


@pytest.mark.parametrize("partition", NOBODYS, ids=str)
def test_a_partition_that_a_deployment_may_be_adding_is_waited_for(partition):
    system, job = System(), due_in(AN_HOUR, partition=partition)
    done = system.ingest([often_received(job, receives=PATIENT_RECEIVES - 1)])
    assert done.failed == {"x0"}
    assert done.faults == {
        f"no tick reads {partition}: it is not in queues.yaml, or its queue's stack is not deployed yet"
    }
    assert (system.parked(), in_the_table(system, job)) == ([], [])
    assert system.clock.monotonic() == 0


@pytest.mark.parametrize("partition", NOBODYS, ids=str)
def test_a_partition_that_has_left_queues_yaml_is_ingested_as_before_because_its_ticks_go_on(partition):
    system, job = System(), due_in(AN_HOUR, partition=partition)
    system.tick(partition)
    assert system.ingest([often_received(job)]).failed == set()
    assert in_the_table(system, job)
    assert system.parked() == []


def test_a_partition_whose_state_could_not_be_read_is_never_taken_for_one_without_ticks():
    system, job = System(), due_in(AN_HOUR, partition=NOBODYS[0])
    system.wire.around = on("table.read", done_in_part)
    assert system.ingest([often_received(job, receives=99)]).failed == {"x0"}
    assert system.parked() == []


def test_a_job_that_is_astray_and_cannot_be_parked_comes_again():
    system, job = System(), due_in(AN_HOUR, partition=NOBODYS[0])
    system.wire.around = on("dead_letters.send", failing(Unavailable("no")))
    done = system.ingest([often_received(job)])
    assert (done.failed, done.faults) == ({"x0"}, {"not parked: no"})


def test_a_job_that_is_astray_is_left_when_the_time_is_over():
    system, job = System(), due_in(AN_HOUR, partition=NOBODYS[0])
    done = system.an_ingest().run([often_received(job)], until=system.clock.monotonic())
    assert done.failed == {"x0"}
    assert system.parked() == []


@pytest.mark.parametrize(("seconds", "parked"), [(900, False), (901, True)])
def test_a_direct_job_that_sqs_cannot_hold_so_long_is_parked_with_the_reason(seconds, parked):
    system, job = System(), due_in(seconds, route=Route.DIRECT)
    assert system.ingest_message(*messages(job)).failed == set()
    assert (system.parked(), system.arrived()) == (([job.id], []) if parked else ([], [job.id]))


def test_a_job_that_is_astray_holds_up_no_neighbour():
    system, stray, job = System(), due_in(AN_HOUR, partition=NOBODYS[1]), due_in(AN_HOUR)
    beside = Received(message_id="x1", message=Message.of(job))
    assert system.ingest([often_received(stray), beside]).failed == set()
    assert in_the_table(system, stray, job) == [job]


def test_messages_are_told_apart_by_their_own_ids():
    system, job = System(), due_in(AN_HOUR)
    first = Received(message_id="a", message=Message.of(job))
    second = Received(message_id="b", message=a_message())
    system.wire.around = on("rejects.send", failing(Unavailable("no")))
    assert system.ingest([first, second]).failed == {"b"}


def test_ingest_reads_the_fence_of_a_partition_only_after_its_last_write():
    system, jobs = System(), [due_in(AN_HOUR) for _ in range(60)]
    calls = []
    system.wire.around = lambda call: (calls.append(call.name), call.do(*call.args))[1]
    system.ingest_message(*messages(*jobs))
    assert calls == ["table.write"] * 3 + ["table.read"]


def test_a_fence_in_the_future_takes_no_clock_to_compare():
    system, job = System(), due_in(AN_HOUR)
    far = instant.text(NOW + timedelta(days=400))
    system.table.take(job.id.partition, owner="a fast clock", now=instant.text(NOW), lease=far, fence=far)
    assert system.ingest_message(*messages(job)).failed == {"x0"}
