import itertools
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest

from dueline.errors import (
    AlreadyFinished,
    InvalidJob,
    JobNotFound,
    NotYet,
    QueueNotFound,
    RunOfSchedule,
    Throttled,
    Unavailable,
)
from dueline.model import instant, rows
from dueline.model.job import MAX_RETENTION, JobId, Partition, Route, State
from dueline.model.message import EXPIRES, MOVES
from tests.builders import NOW, RETENTION, a_job, a_queue, an_id
from tests.system import System
from tests.wire import done_in_part, failing, losing_the_answer, meanwhile, on, refusing_for_good, straight

AN_HOUR = 3600
WANTED = NOW + timedelta(hours=2)
# At or below the fence of a tick that runs now.
SOON = NOW + timedelta(seconds=200)
FAULTS = pytest.mark.parametrize(
    "react", [failing(Throttled("slow down")), failing(Unavailable("no")), losing_the_answer]
)


def at(seconds):
    return NOW + timedelta(seconds=seconds)


def a_system_with(job, **settings):
    system = System(a_queue(**settings))
    system.put(job)
    return system


def after_a_tick(job, **settings):
    system = a_system_with(job, **settings)
    system.tick()
    return system


def pass_time(system, *, hours=3):
    """Let hours pass; a look at every half of one is enough of ticks where lateness does not matter."""
    for _ in range(2 * hours):
        system.ingest()
        system.clock.sleep(AN_HOUR / 2)
        for number in range(system.settings["emails"].partitions):
            system.tick(Partition(queue="emails", number=number))
    system.ingest()


def seen(system):
    calls = []
    system.wire.around = lambda call: (calls.append(call.name), call.do(*call.args))[1]
    return calls


# A job that is moved


@pytest.mark.parametrize("wanted", [at(AN_HOUR / 2), WANTED], ids=["earlier", "later"])
def test_a_job_that_is_moved_reaches_its_queue_once_at_its_new_time_and_never_at_its_old(wanted):
    job = a_job()
    system = a_system_with(job)
    moved = system.reschedule(job.id, at=wanted)
    pass_time(system)
    assert system.arrived() == [moved]
    assert (moved.due, moved.queue, moved.route) == (wanted, "emails", Route.TABLE)
    (delivery,) = system.queues["emails"].deliveries
    assert delivery.message.body == job.payload
    assert delivery.message.attributes[EXPIRES] == instant.text(wanted + RETENTION)
    assert MOVES not in delivery.message.attributes


def test_a_job_that_is_moved_within_the_lookahead_comes_in_time_by_the_late_path():
    job = a_job(due=at(AN_HOUR))
    system = a_system_with(job)
    system.tick()
    moved = system.reschedule(job.id, delay=20)
    done = system.ingest()
    assert [late.id for late in done.late] == system.arrived() == [moved]
    assert system.queues["emails"].deliveries[0].visible == at(20)
    system.clock.sleep(60)
    system.tick()
    assert system.arrived() == [moved]


@pytest.mark.parametrize("wanted", [SOON, WANTED])
def test_a_job_that_is_moved_stays_in_its_partition(wanted):
    partition = Partition(queue="emails", number=3)
    job = a_job(partition=partition)
    system = a_system_with(job, partitions=5)
    system.tick(partition)
    moved = system.reschedule(job.id, at=wanted)
    assert (moved.partition, moved.uid == job.id.uid) == (partition, False)
    pass_time(system)
    assert system.arrived() == [moved]


def test_a_move_can_be_cancelled_and_moved_in_its_turn():
    job = a_job()
    system = a_system_with(job)
    moved = system.reschedule(job.id, at=WANTED)
    again = system.reschedule(moved, at=at(AN_HOUR))
    assert system.cancel(again) is State.CANCELLED
    pass_time(system)
    assert system.arrived() == []


def test_the_old_id_tells_what_it_was_moved_to():
    job = a_job()
    system = a_system_with(job)
    assert system.status_of(job.id).moved_to is None
    moved = system.reschedule(job.id, at=WANTED)
    assert (system.status_of(job.id).state, system.status_of(job.id).moved_to) == (State.CANCELLED, moved)
    assert (system.look_up(job.id), system.look_up(moved)) == (State.CANCELLED, State.SCHEDULED)
    assert system.status_of(moved).moved_to is None


def test_a_cancel_of_the_old_id_is_promised_and_does_not_touch_the_new():
    job = a_job()
    system = a_system_with(job)
    moved = system.reschedule(job.id, at=WANTED)
    assert system.cancel(job.id) is State.CANCELLED
    assert system.status_of(job.id).moved_to == moved
    pass_time(system)
    assert system.arrived() == [moved]


@pytest.mark.parametrize("wanted", [at(240.001), WANTED])
def test_where_a_later_tick_sees_the_new_job_no_intent_is_sent_and_a_move_asks_three_calls(wanted):
    job = a_job()
    system = after_a_tick(job)
    calls = seen(system)
    moved = system.reschedule(job.id, at=wanted)
    assert calls == ["table.read", "table.write", "table.move"]
    pass_time(system)
    assert (system.inbound.deliveries, system.arrived()) == ([], [moved])


@pytest.mark.parametrize("wanted", [at(0), SOON, at(240)])
def test_where_no_tick_may_see_the_new_job_the_intent_is_sent_before_anything_is_moved(wanted):
    job = a_job()
    system = after_a_tick(job)
    calls = seen(system)
    moved = system.reschedule(job.id, at=wanted)
    assert calls == ["table.read", "inbound.send", "table.write", "table.move"]
    assert system.inbound.deliveries[0].message.group == "emails"
    pass_time(system)
    assert system.arrived() == [moved]


# What is asked


@pytest.mark.parametrize(
    ("to", "told"),
    [
        ({}, "at and delay are both missing"),
        ({"at": NOW, "delay": 1}, "at and delay are both given"),
        ({"delay": -1}, "delay is -1: it must be from 0 to"),
        ({"at": NOW.replace(tzinfo=None)}, "which has no time zone"),
        ({"at": NOW + timedelta(days=5000)}, "it must be from"),
    ],
)
def test_a_time_that_cannot_be_is_refused_with_its_field_its_value_and_what_is_allowed(to, told):
    job = a_job()
    system = a_system_with(job)
    calls = seen(system)
    with pytest.raises(InvalidJob, match=told):
        system.reschedule(job.id, **to)
    assert calls == []


def test_a_time_in_the_past_is_now():
    job = a_job()
    assert a_system_with(job).reschedule(job.id, at=NOW - timedelta(days=1)).due == NOW


# A job that can be moved no more


def assert_nothing_is_moved(system, id, *, told, arrived=(), at=WANTED):
    with pytest.raises(AlreadyFinished, match=told) as error:
        system.reschedule(id, at=at)
    pass_time(system)
    assert system.arrived() == list(arrived)
    return error.value


def test_a_job_due_at_the_fence_has_left_and_one_due_just_after_is_moved():
    at_it, after_it = a_job(due=at(240)), a_job(due=at(240.001))
    system = a_system_with(after_it)
    system.tick()
    system.put(at_it)
    with pytest.raises(AlreadyFinished, match="has left for its queue"):
        system.reschedule(at_it.id, at=WANTED)
    assert system.reschedule(after_it.id, at=WANTED).due == WANTED


def test_a_job_that_was_sent_is_not_moved_and_no_intent_is_sent():
    job = a_job(due=at(60))
    system = a_system_with(job)
    system.tick()
    assert_nothing_is_moved(system, job.id, told="has left for its queue", arrived=[job.id])
    assert system.inbound.deliveries == []


def test_a_direct_job_has_left_from_the_start():
    assert_nothing_is_moved(System(), an_id(due=at(60), route=Route.DIRECT), told="has left for its queue")


@pytest.mark.parametrize("wanted", [SOON, WANTED], ids=["soon", "later"])
def test_a_run_of_a_schedule_is_not_moved_and_nothing_is_written(wanted):
    job = a_job(schedule="digest", nominal=at(AN_HOUR))
    system = after_a_tick(job)
    calls = seen(system)
    with pytest.raises(RunOfSchedule, match=r"is a run of schedule emails/digest: .* cancel it"):
        system.reschedule(job.id, at=wanted)
    assert set(calls) == {"table.read"}
    assert system.cancel(job.id) is State.CANCELLED


def test_a_parked_job_is_not_moved():
    job = a_job()
    system = a_system_with(job)
    system.parking.park([job], reason="gone")
    with pytest.raises(AlreadyFinished):
        system.reschedule(job.id, at=WANTED)


@pytest.mark.parametrize("fence", [0, AN_HOUR * 2])
def test_a_cancelled_job_is_not_moved_whether_or_not_that_was_promised(fence):
    job = a_job()
    system = a_system_with(job)
    system.table.take(job.id.partition, owner="me", now="", lease="", fence=instant.text(at(fence)))
    system.cancel(job.id)
    assert_nothing_is_moved(system, job.id, told="was cancelled")


def test_a_job_that_was_moved_elsewhere_names_the_job_that_took_its_place():
    job = a_job()
    system = a_system_with(job)
    moved = system.reschedule(job.id, at=at(AN_HOUR / 2))
    error = assert_nothing_is_moved(system, job.id, told=f"was moved to {moved}", arrived=[moved])
    assert error.job_id == str(moved)


def test_a_job_that_is_not_in_the_table_yet_is_to_be_tried_again():
    system = System()
    system.breakers["emails"].trip()
    job = system.schedule(AN_HOUR)
    with pytest.raises(NotYet, match=r"may still be on its way there, then try again .*; or no such job"):
        system.reschedule(job.id, at=WANTED)
    system.ingest()
    assert system.reschedule(job.id, at=WANTED).due == WANTED


@pytest.mark.parametrize("route", Route)
def test_a_job_in_a_partition_that_never_was_is_not_found_and_nothing_is_announced(route):
    system = System()
    calls = seen(system)
    with pytest.raises(JobNotFound, match="'emails' never had a partition 77: it has 0 alone"):
        system.reschedule(an_id(partition=Partition(queue="emails", number=77), route=route), at=WANTED)
    assert calls == ["table.read"]


def test_a_job_in_a_partition_that_has_left_queues_yaml_moves_as_before():
    left = Partition(queue="emails", number=77)
    job = a_job(partition=left)
    system = System()
    system.tick(left)
    with pytest.raises(NotYet):
        system.reschedule(job.id, at=WANTED)
    system.put(job)
    assert system.reschedule(job.id, at=WANTED).due == WANTED


def test_a_direct_job_has_left_for_its_queue_whatever_its_cancellation_says():
    system = System()
    direct = system.schedule(60).id
    system.cancel(replace(direct, route=Route.TABLE))
    system.cancel(direct)
    with pytest.raises(AlreadyFinished, match="has left for its queue"):
        system.reschedule(direct, at=WANTED)


@pytest.mark.parametrize("is_there", [True, False])
def test_nothing_is_known_of_a_job_past_its_retention(is_there):
    job = a_job(due=NOW - RETENTION)
    system = a_system_with(job) if is_there else System()
    with pytest.raises(JobNotFound, match="past its retention"):
        system.reschedule(job.id, at=WANTED)


# Calls that fail


AT_EACH_CALL = pytest.mark.parametrize(
    ("name", "wanted"),
    [(name, wanted) for name in ("table.write", "table.move") for wanted in (SOON, WANTED)] + [("inbound.send", SOON)],
)


@FAULTS
@AT_EACH_CALL
def test_a_fault_names_the_new_job_and_one_of_the_two_is_there(name, wanted, react):
    job = a_job()
    system = after_a_tick(job)
    system.wire.around = on(name, react)
    with pytest.raises((Throttled, Unavailable)) as error:
        system.reschedule(job.id, at=wanted)
    system.wire.around = straight
    pass_time(system)
    new = JobId.parse(error.value.job_id)
    assert new.due == wanted
    is_moved = system.inbound.deliveries or (name, react) == ("table.move", losing_the_answer)
    assert system.arrived() == [new if is_moved else job.id]


@FAULTS
@AT_EACH_CALL
def test_a_repeat_after_a_fault_moves_the_job_once(name, wanted, react):
    job = a_job()
    system = after_a_tick(job)
    system.wire.around = on(name, react, times=1)
    with pytest.raises((Throttled, Unavailable)) as error:
        system.reschedule(job.id, at=wanted)
    moved = system.reschedule(job.id, at=wanted)
    assert (name, react) != ("table.move", losing_the_answer) or str(moved) == error.value.job_id
    pass_time(system)
    assert system.arrived() == [moved]


class Crash(Exception):
    pass


def crashing(number, *, is_after):
    """Let the caller die at a call of that number, before or after it takes effect."""
    calls = itertools.count()

    def around(call):
        if next(calls) != number:
            return straight(call)
        if is_after:
            straight(call)
        raise Crash

    return around


@pytest.mark.parametrize("is_after", [False, True])
@pytest.mark.parametrize(
    ("wanted", "fate"),
    [(SOON, ["old", "old or new", "new", "new", "new"]), (WANTED, ["old", "old", "old or new", "new"])],
)
def test_a_crash_at_any_call_leaves_the_old_job_or_the_new(wanted, fate, is_after):
    came = []
    for number in range(len(fate)):
        job = a_job()
        system = after_a_tick(job)
        system.wire.around = crashing(number, is_after=is_after)
        with suppress(Crash):
            system.reschedule(job.id, at=wanted)
        system.wire.around = straight
        pass_time(system)
        (arrived,) = system.arrived()
        came.append("old" if arrived == job.id else "new")
    assert came == [each if " " not in each else "new" if is_after else "old" for each in fate]


def test_a_move_that_took_effect_before_it_was_tried_again_and_refused_is_a_move():
    job = a_job()
    system = a_system_with(job)
    answers = []
    tried_again = on("table.move", lambda call: (straight(call), straight(call))[1])
    system.wire.around = lambda call: (answers.append((call.name, tried_again(call))), answers[-1][1])[1]
    moved = system.a_reschedule("emails", new_uid=lambda: an_id().uid).run(job.id, at=WANTED)
    assert [name for name, _ in answers] == ["table.read", "table.write", "table.move", "table.read"]
    assert (answers[2][1], moved.was_before) == (False, False)
    pass_time(system)
    assert system.arrived() == [moved.id]


@pytest.mark.parametrize(("wanted", "intents"), [(SOON, 1), (WANTED, 0)])
def test_a_repeat_gets_the_first_ones_id_however_often_it_is_asked(wanted, intents):
    job = a_job()
    system = after_a_tick(job)
    assert len({system.reschedule(job.id, at=wanted) for _ in range(3)}) == 1
    assert len(system.inbound.deliveries) == intents


def test_a_repeat_of_a_move_to_the_past_gets_the_first_ones_id_though_it_is_later_now():
    job = a_job()
    system = a_system_with(job)
    moved = system.reschedule(job.id, at=NOW)
    system.clock.sleep(7)
    assert system.reschedule(job.id, at=NOW) == moved
    for other in (NOW + timedelta(milliseconds=1), NOW + timedelta(seconds=7)):
        with pytest.raises(AlreadyFinished, match="was moved to"):
            system.reschedule(job.id, at=other)


@pytest.mark.parametrize("react", [failing(Throttled("slow down")), losing_the_answer, done_in_part])
def test_rows_that_could_not_be_read_move_nothing(react):
    job = a_job()
    system = a_system_with(job)
    system.wire.around = on("table.read", react, times=1)
    with pytest.raises((Throttled, Unavailable)) as error:
        system.reschedule(job.id, at=WANTED)
    assert error.value.job_id is None
    assert system.inbound.deliveries == []


@pytest.mark.parametrize(
    ("react", "error"),
    [(done_in_part, Unavailable), (refusing_for_good, InvalidJob), (failing(QueueNotFound("gone")), Unavailable)],
)
def test_an_intent_that_sqs_does_not_take_moves_nothing(react, error):
    job = a_job()
    system = after_a_tick(job)
    system.wire.around = on("inbound.send", react)
    with pytest.raises(error):
        system.reschedule(job.id, at=SOON)
    pass_time(system)
    assert system.arrived() == [job.id]


# Whoever is quicker


def as_of_two_instants(system, job, *, in_between):
    """Read a job's fence after what comes `in_between`, and all else before it."""

    def read(call):
        state = rows.state_key(job.id.partition)
        before = straight(call)
        in_between()
        now = system.table.read([state]).rows
        return replace(before, rows={key: row for key, row in before.rows.items() if key != state} | now)

    return on("table.read", read, times=1)


def test_a_job_that_is_moved_while_its_rows_are_read_has_not_left():
    job = a_job(due=at(241))
    system = after_a_tick(job)
    system.wire.around = on("table.move", failing(Unavailable("no")), times=1)
    with pytest.raises(Unavailable) as error:
        system.reschedule(job.id, at=SOON)

    def ingest_and_raise_the_fence():
        system.wire.around = straight
        system.ingest()
        system.clock.sleep(60)
        system.tick()

    system.wire.around = as_of_two_instants(system, job, in_between=ingest_and_raise_the_fence)
    assert str(system.reschedule(job.id, at=SOON)) == error.value.job_id
    pass_time(system)
    assert [str(id) for id in system.arrived()] == [error.value.job_id]


def test_a_job_whose_move_is_not_seen_yet_has_not_left():
    job = a_job(due=at(60))
    system = a_system_with(job)
    moved = system.reschedule(job.id, at=WANTED)
    system.tick()
    system.hide("#cancelled")
    assert system.reschedule(job.id, at=WANTED) == moved


def test_a_move_that_ingest_carried_out_and_that_is_not_seen_yet_is_a_move():
    job = a_job()
    system = after_a_tick(job)

    def ingest_and_see_nothing_of_it(call):
        system.ingest()
        system.hide("#cancelled")
        return straight(call)

    system.wire.around = on("table.move", ingest_and_see_nothing_of_it, times=1)
    moved = system.reschedule(job.id, at=SOON)
    assert system.table.ask_for(rows.cancellation_key(job.id))["moved_to"] == str(moved)


def test_a_move_asks_nothing_of_a_table_that_did_not_take_what_tells_of_it():
    job = a_job()
    system = a_system_with(job)
    system.wire.around = on("table.write", done_in_part)
    with pytest.raises(Unavailable, match=f"that job {job.id} is to be moved could not be written"):
        system.reschedule(job.id, at=WANTED)
    pass_time(system)
    assert system.arrived() == [job.id]


def test_a_job_that_another_call_moves_while_its_rows_are_read_has_not_left():
    job = a_job(due=at(60))
    system = a_system_with(job)
    moved = []

    def move_and_raise_the_fence():
        system.wire.around = straight
        moved.append(system.reschedule(job.id, at=WANTED))
        system.tick()

    system.wire.around = as_of_two_instants(system, job, in_between=move_and_raise_the_fence)
    moved.append(system.reschedule(job.id, at=WANTED))
    pass_time(system)
    assert system.arrived() == [moved[0]] == [moved[1]]


def test_a_job_that_leaves_while_its_rows_are_read_has_left():
    job = a_job(due=at(60))
    system = a_system_with(job)
    system.wire.around = as_of_two_instants(system, job, in_between=system.tick)
    assert_nothing_is_moved(system, job.id, told="has left for its queue", arrived=[job.id])


def test_ingest_may_carry_out_the_move_before_its_caller_does():
    job = a_job()
    system = after_a_tick(job)
    done = []
    system.wire.around = on("table.move", meanwhile(lambda: done.append(system.ingest())), times=1)
    moved = system.reschedule(job.id, at=SOON)
    assert {each.id for each in done[0].moved} == {moved}
    pass_time(system)
    assert system.arrived() == [moved]


def test_what_ingest_did_is_not_known_while_its_row_cannot_be_read():
    job = a_job()
    system = after_a_tick(job)

    def ingest_and_read_no_more(call):
        system.ingest()
        system.wire.around = on("table.ask_for", failing(Throttled("slow down")), times=1)
        return straight(call)

    system.wire.around = on("table.move", ingest_and_read_no_more, times=1)
    with pytest.raises(Throttled) as error:
        system.reschedule(job.id, at=SOON)
    assert error.value.job_id == str(system.status_of(job.id).moved_to)


@pytest.mark.parametrize("name", ["table.move", "table.read"])
def test_a_caller_that_stands_still_until_cancellations_are_collected_does_not_say_that_there_is_no_second_job(name):
    job = a_job(due=at(60), expires=at(60) + MAX_RETENTION)
    system = a_system_with(job, retention=MAX_RETENTION)

    def stand_still(call):
        system.wire.around = straight
        system.tick()
        system.clock.sleep((MAX_RETENTION + timedelta(seconds=60)).total_seconds())
        return straight(call)

    system.wire.around = on(name, stand_still, times=1)
    with pytest.raises(Unavailable, match="is not known any more"):
        system.reschedule(job.id, at=WANTED)


def raise_the_fence(system):
    system.clock.sleep(60)
    system.tick()


@pytest.mark.parametrize(("name", "wanted"), [("table.move", WANTED), ("inbound.send", SOON), ("table.move", SOON)])
def test_a_fence_that_is_raised_in_between_leaves_the_old_job_alone(name, wanted):
    job = a_job(due=at(241))
    system = after_a_tick(job)
    system.wire.around = on(name, meanwhile(partial(raise_the_fence, system)), times=1)
    with pytest.raises(AlreadyFinished, match="has left for its queue") as error:
        system.reschedule(job.id, at=wanted)
    pass_time(system)
    assert (system.arrived(), error.value.job_id) == ([job.id], None)


def test_where_the_fence_rises_past_the_new_job_alone_in_between_its_intent_is_sent_and_it_comes_once():
    job = a_job()
    system = a_system_with(job)
    system.wire.around = on("table.move", meanwhile(system.tick), times=1)
    moved = system.reschedule(job.id, at=SOON)
    assert len(system.inbound.deliveries) == 1
    done = system.ingest()
    assert [late.id for late in done.late] == system.arrived() == [moved]
    pass_time(system)
    assert system.arrived() == [moved]


@pytest.mark.parametrize(("name", "skip"), [("table.read", 1), ("inbound.send", 0), ("table.move", 1)])
def test_a_fence_that_rises_past_the_old_job_after_it_rose_past_the_new_leaves_the_old_alone(name, skip):
    job = a_job(due=at(241))
    system = a_system_with(job)
    past_new = on("table.move", meanwhile(system.tick), times=1)
    past_old = on(name, meanwhile(partial(raise_the_fence, system)), skip=skip, times=1)
    system.wire.around = lambda call: past_old(call._replace(do=lambda *args: past_new(call._replace(args=args))))
    with pytest.raises(AlreadyFinished, match="has left for its queue"):
        system.reschedule(job.id, at=SOON)
    system.wire.around = straight
    pass_time(system)
    assert system.arrived() == [job.id]


@AT_EACH_CALL
def test_a_cancel_that_comes_in_between_wins(name, wanted):
    job = a_job()
    system = after_a_tick(job)
    answers = []
    system.wire.around = on(name, meanwhile(lambda: answers.append(system.cancel(job.id))), times=1)
    assert_nothing_is_moved(system, job.id, at=wanted, told="was cancelled")
    assert answers == [State.CANCELLED]


MOVE_TO_ANOTHER_TIME = partial(System.reschedule, at=at(2 * AN_HOUR + 1))


@pytest.mark.parametrize("cut_in", [System.cancel, MOVE_TO_ANOTHER_TIME], ids=["a cancel", "a move"])
@pytest.mark.parametrize("name", ["table.write", "table.move"])
def test_a_move_that_is_known_to_come_too_late_sends_no_intent(cut_in, name):
    job = a_job()
    system = after_a_tick(job)
    system.wire.around = on(name, meanwhile(lambda: cut_in(system, job.id)), times=1)
    with pytest.raises(AlreadyFinished, match=r"was (cancelled|moved)"):
        system.reschedule(job.id, at=WANTED)
    assert system.inbound.deliveries == []


@pytest.mark.parametrize("name", ["table.read", "table.mark_exact"])
def test_a_cancel_that_has_begun_wins(name):
    job = a_job()
    system = a_system_with(job)
    told = []

    def reschedule():
        with pytest.raises(AlreadyFinished, match="was cancelled") as error:
            system.reschedule(job.id, at=WANTED)
        told.append(error)

    system.wire.around = on(name, meanwhile(reschedule), times=1)
    assert system.cancel(job.id) is State.CANCELLED
    assert told
    pass_time(system)
    assert system.arrived() == []


@AT_EACH_CALL
def test_of_two_moves_at_once_exactly_one_wins(name, wanted):
    job = a_job()
    system = after_a_tick(job)
    won = []
    other = wanted - timedelta(minutes=1)
    system.wire.around = on(name, meanwhile(lambda: won.append(system.reschedule(job.id, at=other))), times=1)
    with pytest.raises(AlreadyFinished) as error:
        system.reschedule(job.id, at=wanted)
    assert error.value.job_id == str(won[0])
    pass_time(system)
    assert system.arrived() == won


@pytest.mark.parametrize(
    ("wanted", "react", "told"),
    [(SOON, failing(Unavailable("no")), State.CANCEL_REQUESTED), (WANTED, losing_the_answer, State.CANCELLED)],
)
def test_a_new_job_that_is_cancelled_while_its_move_is_under_way_is_never_sent(wanted, react, told):
    job = a_job()
    system = after_a_tick(job)
    system.wire.around = on("table.move", react, times=1)
    with pytest.raises(Unavailable) as error:
        system.reschedule(job.id, at=wanted)
    assert system.cancel(JobId.parse(error.value.job_id)) is told
    pass_time(system)
    assert system.arrived() == []


def test_a_row_that_cannot_be_read_is_not_moved():
    job = a_job()
    system = System()
    system.table.write([{**rows.job_row(job), "payload": ""}])
    with pytest.raises(InvalidJob):
        system.reschedule(job.id, at=WANTED)


# A delay under a key


@pytest.mark.parametrize(("name", "delay"), [("inbound.send", 200), ("table.move", 200), ("table.move", AN_HOUR / 2)])
def test_a_delay_that_is_asked_again_under_its_key_is_that_of_the_first_call_that_moved_the_job(name, delay):
    job = a_job()
    system = after_a_tick(job)
    system.wire.around = on(name, losing_the_answer, times=1)
    with pytest.raises(Unavailable) as error:
        system.reschedule(job.id, delay=delay, key="k")
    system.ingest()
    system.clock.sleep(7)
    moved = system.reschedule(job.id, delay=delay, key="k")
    assert (str(moved), moved.due) == (error.value.job_id, at(delay))
    pass_time(system)
    assert system.arrived() == [moved]


def test_a_repeat_under_a_key_that_ingest_overtakes_tells_of_the_first_calls_job_when_it_is_asked_again():
    job = a_job()
    system = after_a_tick(job)
    system.wire.around = on("table.move", failing(Unavailable("no")), times=1)
    with pytest.raises(Unavailable) as error:
        system.reschedule(job.id, delay=200, key="k")
    system.clock.sleep(7)
    system.wire.around = on("table.move", meanwhile(system.ingest), times=1)
    with pytest.raises(Unavailable, match="try again"):
        system.reschedule(job.id, delay=200, key="k")
    moved = system.reschedule(job.id, delay=200, key="k")
    assert str(moved) == error.value.job_id
    pass_time(system)
    assert system.arrived() == [moved]


def test_of_two_calls_at_once_under_a_key_the_slower_tells_of_the_others_job():
    job = a_job()
    system = a_system_with(job)
    won = []

    def the_other_call():
        system.wire.around = straight
        won.append(system.reschedule(job.id, delay=AN_HOUR / 2, key="k"))

    system.wire.around = on("table.move", meanwhile(the_other_call))
    assert system.reschedule(job.id, delay=AN_HOUR / 2, key="k") == won[0]
    pass_time(system)
    assert (system.arrived(), system.inbound.deliveries) == (won, [])


def test_of_two_calls_under_a_key_the_slower_tells_of_the_others_job_when_it_is_asked_again():
    job = a_job()
    system = a_system_with(job)
    won = []

    def the_other_call():
        system.wire.around = straight
        system.clock.sleep(7)
        won.append(system.reschedule(job.id, delay=AN_HOUR / 2, key="k"))

    system.wire.around = on("table.move", meanwhile(the_other_call))
    with pytest.raises(Unavailable, match="try again"):
        system.reschedule(job.id, delay=AN_HOUR / 2, key="k")
    assert system.reschedule(job.id, delay=AN_HOUR / 2, key="k") == won[0]
    pass_time(system)
    assert system.arrived() == won


def test_a_delay_under_another_key_is_another_time():
    job = a_job()
    system = a_system_with(job)
    system.reschedule(job.id, delay=AN_HOUR / 2, key="k")
    system.clock.sleep(7)
    for other in ({"key": "another"}, {}):
        with pytest.raises(AlreadyFinished, match="was moved to"):
            system.reschedule(job.id, delay=AN_HOUR / 2, **other)


def test_jobs_that_are_moved_under_one_key_are_not_mixed_up():
    jobs = [a_job(), a_job()]
    system = a_system_with(jobs[0])
    system.put(jobs[1])
    moved = [system.reschedule(job.id, delay=AN_HOUR / 2, key="k") for job in jobs]
    pass_time(system)
    assert sorted(map(str, system.arrived())) == sorted(map(str, moved))
    assert len(set(moved)) == 2


def test_a_key_of_a_move_that_is_no_key_is_refused():
    with pytest.raises(InvalidJob, match="key is ''"):
        System().reschedule(an_id(), delay=1, key="")
