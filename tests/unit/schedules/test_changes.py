"""Changes over the ports in memory: which rule serves until when, whatever else happens meanwhile."""

from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from dueline.errors import (
    InvalidSchedule,
    NotYet,
    ScheduleChanged,
    ScheduleNotFound,
    Throttled,
    TooManyChanges,
    TooManySchedules,
    Unavailable,
)
from dueline.model import rows
from dueline.model.instant import text
from dueline.model.job import MAX_RETENTION
from dueline.model.move_rows import asked_key
from dueline.model.request import FURTHEST
from dueline.model.schedule_rows import MOST_SCHEDULES, count_key, head_key
from dueline.schedules.definition import Definition
from dueline.schedules.head import DELETED_IS_KEPT, KEPT_GENERATIONS, head_row
from dueline.schedules.occurrence import between, jitter, occurrence, step
from dueline.schedules.rule import LAST
from tests.builders import EMAILS, NOW, a_queue
from tests.scheduled import A_MINUTE, OF_PLANNER, Scheduled, a_definition, at
from tests.wire import done_in_part, failing, losing_the_answer, meanwhile, on, straight

OLD, NEW = {"every": A_MINUTE, "payload": '"old"'}, {"every": 2 * A_MINUTE, "start": NOW, "payload": '"new"'}
# Ticks look ahead so far.
AHEAD = 4


def runs(system, payload):
    """Return for which minutes from the beginning a job with that payload reached its queue, in order."""
    return sorted((job.nominal - NOW) / A_MINUTE for job in system.sent() if job.payload == payload)


def expected(definition, after, until):
    return [(each - NOW) / A_MINUTE for each in between(a_definition(**definition).rule, after, until)]


def check_cut(system, cut, *, until=90, of=list):
    """Check that each nominal up to the cut ran by the old rule, once, and each after it by the new one."""
    end = at(until)
    assert of(each for each in runs(system, '"old"') if each <= until) == of(expected(OLD, NOW, cut))
    assert of(each for each in runs(system, '"new"') if each <= until) == of(expected(NEW, cut, end))


def tried(act, times=5):
    """Do what a caller does who tries again after an error."""
    for _ in range(times):
        with suppress(Throttled, Unavailable):
            return act()
    raise AssertionError("it never succeeded")


# Create


def test_a_schedule_that_is_created_says_so_and_serves_from_now_on():
    system = Scheduled()
    changed = system.define(cron="0 9 * * *")
    assert (changed.is_new, changed.is_changed, changed.effective_from) == (True, True, NOW)
    assert system.head() == changed.head
    assert (changed.head.generation, changed.head.partition, changed.head.retention) == (1, EMAILS, timedelta(days=7))


def test_an_identical_definition_changes_nothing_and_asks_one_thing():
    system = Scheduled()
    first = system.define()
    system.live(30)
    calls = []
    system.wire.around = lambda call: (calls.append(call.name), straight(call))[1]
    again = system.define()
    assert (again.is_new, again.is_changed, again.effective_from) == (False, False, first.effective_from)
    assert again.head.etag == first.head.etag
    assert calls == ["table.read"]


def test_a_rule_that_has_ended_stays_as_it_is_and_is_put_only_where_none_of_its_runs_has_to_come():
    system, queue = Scheduled(), a_queue()
    ended = system.define(every=A_MINUTE, end=at(10)).head
    system.live(20)
    assert not system.changes.put(queue, "digest", ended.definition, must_run=True).is_changed
    other = replace(ended.definition, payload='"other"')
    for name in ("digest", "new"):
        with pytest.raises(InvalidSchedule, match=r"end is 2026-\S+: it must be after 2026-\S+, the next instant"):
            system.changes.put(queue, name, other, must_run=True)
    # A deployment that is rolled back puts what was there before.
    assert system.changes.put(queue, "digest", other).is_changed


@pytest.mark.parametrize("fault", [failing(Throttled("no")), losing_the_answer, done_in_part])
def test_a_creation_that_fails_anywhere_and_is_tried_again_makes_each_run_once(fault):
    for crash in range(6):
        system, seen = Scheduled(), []

        def around(call, crash=crash, seen=seen):
            seen.append(call.name)
            return fault(call) if len(seen) == crash + 1 else straight(call)

        system.wire.around = around
        tried(system.define)
        system.wire.around = straight
        system.live(40)
        assert system.nominals()[:39] == list(range(1, 40)), seen[crash : crash + 1]


def test_two_who_create_one_schedule_at_once_make_one_and_the_later_changes_it():
    system = Scheduled()
    system.wire.around = on("table.change", meanwhile(lambda: system.define(**OLD)), times=1)
    changed = system.define(**NEW)
    assert (changed.is_new, changed.head.generation) == (False, 2)
    system.wire.around = straight
    system.live(120)
    check_cut(system, changed.effective_from)


def test_a_queue_has_10_000_schedules_and_no_more_until_one_is_deleted():
    system = Scheduled()
    system.define("first")
    pk, sk = count_key("emails")
    system.table.write([{"pk": pk, "sk": sk, "count": MOST_SCHEDULES}])
    with pytest.raises(TooManySchedules, match="queue 'emails' has 10000 schedules"):
        system.define("one-more")
    assert not system.define("first").is_changed
    system.changes.delete("emails", "first")
    assert system.define("one-more").is_new


# Change


@pytest.mark.parametrize("lived", [0, 3, 14, 15, 16, 29.5, 47])
def test_up_to_the_cut_the_old_rule_serves_and_after_it_the_new_one(lived):
    system = Scheduled()
    system.define(**OLD)
    system.live(lived)
    changed = system.define(**NEW)
    # The fence is the last tick's, and up to a minute old.
    assert at(lived) <= changed.effective_from <= at(lived + AHEAD + 0.5)
    system.live(120 - lived)
    check_cut(system, changed.effective_from)


@pytest.mark.parametrize("fault", [failing(Throttled("no")), losing_the_answer, done_in_part])
def test_a_change_that_fails_anywhere_and_is_tried_again_leaves_one_rule_or_the_other(fault):
    for crash in range(12):
        system, seen = Scheduled(), []
        system.define(**OLD)
        system.live(20)

        def around(call, crash=crash, seen=seen):
            seen.append(call.name)
            return fault(call) if len(seen) == crash + 1 else straight(call)

        system.wire.around = around
        changed = tried(lambda system=system: system.define(**NEW))
        system.wire.around = straight
        system.live(100)
        check_cut(system, changed.effective_from)


def test_a_caller_who_dies_before_the_transaction_leaves_the_old_rule_whole():
    system = Scheduled()
    system.define(**OLD)
    system.live(20)
    system.wire.around = on("table.change", failing(Unavailable("dead")))
    with pytest.raises(Unavailable):
        system.define(**NEW)
    system.wire.around = straight
    system.live(120)
    assert runs(system, '"old"')[:138] == list(range(1, 139))
    assert runs(system, '"new"') == []


def test_an_answer_that_was_lost_is_given_to_who_asks_again():
    system = Scheduled()
    system.define(**OLD)
    system.wire.around = on("table.change", losing_the_answer)
    with pytest.raises(Unavailable):
        system.define(**NEW)
    system.wire.around = straight
    again = system.define(**NEW)
    assert (again.is_changed, again.effective_from, again.head.generation) == (False, at(AHEAD), 2)


def test_a_tick_between_the_reads_and_the_transaction_has_the_change_begin_again():
    system = Scheduled()
    system.define(**OLD)
    system.live(20)
    system.clock.sleep(60)
    system.wire.around = on("table.change", meanwhile(lambda: system.tick(EMAILS)), times=1)
    changed = system.define(**NEW)
    assert changed.effective_from == system.fence() > at(24)
    system.wire.around = straight
    system.live(120)
    check_cut(system, changed.effective_from)


def test_a_planner_between_the_reads_and_the_transaction_has_the_change_begin_again():
    system = Scheduled()
    system.define(**OLD)
    system.wire.around = on("table.change", meanwhile(system.plan), times=1)
    changed = system.define(**NEW)
    system.wire.around = straight
    system.live(120)
    # What both were to submit at once, each of them sends.
    check_cut(system, changed.effective_from, of=set)


def test_a_planner_that_is_late_leaves_no_gap_before_the_cut():
    system = Scheduled()
    system.define(catch_up="all", **OLD)
    system.live(30, planner=False)
    changed = system.define(**NEW)
    system.live(90)
    check_cut(system, changed.effective_from)


def test_a_planner_that_stood_still_over_the_change_writes_what_stays_cancelled():
    system = Scheduled()
    system.define(**OLD)
    system.live(20)
    head, rule = system.head(), system.head().definition.rule
    changed = system.define(**NEW)
    late = [occurrence(head, each) for each in between(rule, head.planned_to, step(rule, head.planned_to))]
    assert len(late) == 15
    assert system.route.take(late, until=float("inf")).undone == set()
    system.live(100)
    check_cut(system, changed.effective_from)


def test_what_is_cancelled_is_asked_for_before():
    system = Scheduled()
    system.define(**OLD)
    system.live(20)
    head, asked = system.head(), []
    system.wire.around = on("table.change", meanwhile(lambda: asked.append(_asked(system, head))))
    system.define(**NEW)
    assert asked == [_cancelled(system, head)]
    assert len(asked[0]) >= 11


def _asked(system, head):
    ids = [occurrence(head, each).id for each in between(head.definition.rule, NOW, at(90))]
    return [id for id in ids if asked_key(id) in system.table.read([asked_key(id)]).rows]


def _cancelled(system, head):
    ids = [occurrence(head, each).id for each in between(head.definition.rule, NOW, at(90))]
    found = system.table.read([rows.cancellation_key(id) for id in ids]).rows
    kept = [id for id in ids if rows.cancellation_key(id) in found]
    assert all(rows.is_promised(found[rows.cancellation_key(id)]) for id in kept)
    return kept


def test_a_change_while_ticks_stand_still_begins_where_they_stopped():
    system = Scheduled()
    system.define(**OLD)
    system.live(20)
    system.clock.sleep(600)
    changed = system.define(**NEW)
    assert changed.effective_from == system.fence()
    system.live(100)
    check_cut(system, changed.effective_from, until=23)


def test_ticks_that_stood_still_for_hours_hold_up_no_change():
    system = Scheduled()
    system.define(**OLD)
    for _ in range(6 * 60):
        system.clock.sleep(60)
        system.tick(OF_PLANNER)
        system.plan()
    changed = system.changes.pause("emails", "digest")
    assert at(6 * 60 - 120) < changed.effective_from <= at(6 * 60)
    system.live(60)
    assert max(system.nominals()) == (changed.effective_from - NOW) / A_MINUTE


def test_two_who_change_a_schedule_at_once_do_so_one_after_the_other():
    system = Scheduled()
    system.define(**OLD)
    system.live(20)
    between_them = {"every": 3 * A_MINUTE, "start": NOW, "payload": '"between"'}
    system.wire.around = on("table.change", meanwhile(lambda: system.define(**between_them)), times=1)
    changed = system.define(**NEW)
    assert (changed.head.generation, changed.effective_from) == (3, system.fence())
    system.wire.around = straight
    system.live(100)
    check_cut(system, changed.effective_from)
    assert runs(system, '"between"') == []


def test_whoever_is_always_overtaken_gives_up_and_is_told_to_try_again():
    system = Scheduled()
    system.define(**OLD)
    payloads = map(str, range(100))

    def overtaken(call):
        if call.name == "table.change":
            system.wire.around = straight
            system.define(payload=next(payloads))
            system.wire.around = overtaken
        return straight(call)

    system.wire.around = overtaken
    with pytest.raises(NotYet, match="changed by others"):
        system.define(**NEW)


def test_a_change_keeps_what_was_before_without_its_payload():
    system = Scheduled()
    system.define(**OLD)
    changed = system.define(**NEW)
    (past,) = changed.head.generations
    assert (past.number, past.start, past.end) == (1, NOW, changed.effective_from)
    assert (past.definition.rule, past.definition.payload) == (a_definition(**OLD).rule, "null")
    for number in range(25):
        system.define(payload=str(number))
    assert [each.number for each in system.head().generations] == list(range(26, 6, -1))


# If-Match


def test_a_schedule_that_others_changed_is_left_alone():
    system = Scheduled()
    etag = system.define(**OLD).head.etag
    changed = system.define(**NEW)
    for act in (
        lambda: system.define(payload="1", if_match=etag),
        lambda: system.changes.pause("emails", "digest", if_match=etag),
        lambda: system.changes.delete("emails", "digest", if_match=etag),
        lambda: system.define("other", if_match="*"),
    ):
        with pytest.raises(ScheduleChanged):
            act()
    assert system.head() == changed.head
    assert system.define(payload="1", if_match=changed.head.etag).is_changed


def test_who_lost_an_answer_and_asks_again_with_the_old_tag_is_told_what_was_done():
    system = Scheduled()
    etag = system.define(**OLD).head.etag
    first = system.define(if_match=etag, **NEW)
    again = system.define(if_match=etag, **NEW)
    assert (again.is_changed, again.effective_from) == (False, first.effective_from)


# Pause, resume, delete


@pytest.mark.parametrize("end", ["pause", "delete"])
@pytest.mark.parametrize("name", ["digest", "late"])
def test_a_schedule_that_ends_sends_nothing_due_after_the_cut(end, name):
    system = Scheduled()
    definition = system.define(name, jitter=A_MINUTE, **OLD).head.definition
    assert (jitter("emails", name, definition) > A_MINUTE / 2) is (name == "late")
    system.live(20)
    ended = getattr(system.changes, end)("emails", name)
    assert ended.effective_from == system.fence() == at(23.5)
    system.live(60)
    assert max(job.id.due for job in system.sent()) <= ended.effective_from
    assert runs(system, '"old"') == list(range(1, 23 if name == "late" else 24))


def test_a_schedule_that_ends_while_its_planner_is_late_sends_nothing_due_after_the_cut():
    system = Scheduled()
    system.define("late", jitter=A_MINUTE, **OLD)
    system.live(20, planner=False)
    ended = system.changes.pause("emails", "late")
    system.live(60)
    assert ended.effective_from == at(23.5)
    assert max(job.id.due for job in system.sent()) <= ended.effective_from


def test_a_change_begins_no_earlier_than_what_it_changes():
    system = Scheduled()
    system.clock.sleep(600)
    system.define(**OLD)
    changed = system.define(**NEW)
    assert system.fence() < changed.effective_from == at(10)
    system.live(60)
    assert runs(system, '"old"') == []


def test_a_paused_schedule_goes_on_when_it_is_resumed_and_nothing_is_caught_up():
    system = Scheduled()
    system.define(catch_up="all", **OLD)
    system.live(20)
    paused = system.changes.pause("emails", "digest")
    system.live(60)
    resumed = system.changes.resume("emails", "digest")
    system.live(60)
    ran = expected(OLD, NOW, paused.effective_from) + expected(OLD, resumed.effective_from, at(138))
    assert [each for each in system.nominals() if each <= 138] == ran


@pytest.mark.parametrize("catch_up", ["latest", "all"])
@pytest.mark.parametrize("end", ["pause", "delete"])
def test_a_schedule_that_goes_on_while_ticks_stand_still_makes_no_run_of_its_pause(end, catch_up):
    system = Scheduled()
    system.define(catch_up=catch_up, **OLD)
    system.live(20)
    ended = getattr(system.changes, end)("emails", "digest")
    system.clock.sleep(3600.0004)
    goes_on = system.changes.resume("emails", "digest") if end == "pause" else system.define(catch_up=catch_up, **OLD)
    assert goes_on.effective_from == at(80) + timedelta(milliseconds=1)
    system.live(40)
    ran = [*expected(OLD, NOW, ended.effective_from), *range(81, 119)]
    assert [each for each in system.nominals() if each <= 118] == ran


def test_a_schedule_that_was_resumed_by_a_clock_that_is_ahead_is_changed_from_then_on():
    system = Scheduled()
    system.define(**OLD)
    system.live(20)
    paused = system.changes.pause("emails", "digest")
    system.clock.sleep(600)
    resumed = system.changes.resume("emails", "digest")
    system.clock.sleep(-5)
    changed = system.define(**NEW)
    assert changed.effective_from == resumed.effective_from == at(30)
    system.live(60)
    assert runs(system, '"old"') == expected(OLD, NOW, paused.effective_from)
    assert [each for each in runs(system, '"new"') if each <= 88] == expected(NEW, at(30), at(88))


def test_what_is_paused_stays_so_when_it_is_changed():
    system = Scheduled()
    system.define(**OLD)
    system.changes.pause("emails", "digest")
    assert system.define(**NEW).head.paused
    system.live(60)
    assert runs(system, '"new"') == []


@pytest.mark.parametrize("act", ["pause", "resume", "delete"])
def test_what_is_done_already_is_told_and_not_done_again(act):
    system = Scheduled()
    system.define(**OLD)
    if act == "resume":
        system.changes.pause("emails", "digest")
    first, again = (getattr(system.changes, act)("emails", "digest") for _ in range(2))
    assert (first.is_changed, again.is_changed) == (True, False)
    assert (again.head, again.effective_from) == (first.head, first.effective_from)


@pytest.mark.parametrize("act", ["pause", "resume", "delete"])
def test_there_is_nothing_to_do_to_a_schedule_that_never_was(act):
    with pytest.raises(ScheduleNotFound, match="queue 'emails' has no schedule 'digest'"):
        getattr(Scheduled().changes, act)("emails", "digest")


def test_a_schedule_that_is_created_again_goes_on_with_the_next_generation():
    system = Scheduled()
    system.define(**OLD)
    system.live(20)
    deleted = system.changes.delete("emails", "digest")
    created = system.define(**OLD)
    assert (created.is_new, created.head.generation) == (True, 3)
    system.live(60)
    assert deleted.effective_from == created.effective_from
    assert [each for each in system.nominals() if each <= 78] == list(range(1, 79))


def test_a_deleted_schedule_is_kept_past_all_that_its_changes_cancelled():
    system = Scheduled()
    first = system.define(cron="0 0 1 1 *").head
    (new_year,) = between(first.definition.rule, NOW, step(first.definition.rule, NOW))
    system.live(2)
    system.define(**OLD)
    deleted = system.changes.delete("emails", "digest").head
    assert deleted.used_to == new_year
    row = system.table.read([head_key("emails", "digest")]).rows[head_key("emails", "digest")]
    assert row["ttl"] > new_year.timestamp()
    assert "ttl" not in head_row(system.define(**OLD).head)


def test_a_deleted_schedule_is_neither_paused_nor_resumed():
    system = Scheduled()
    system.define()
    system.changes.delete("emails", "digest")
    for act in (system.changes.pause, system.changes.resume):
        with pytest.raises(ScheduleNotFound):
            act("emails", "digest")


# What is refused


PUT_OFF = {"every": 60 * A_MINUTE, "start": NOW, "jitter": 60 * A_MINUTE}


def changed_too_often(system):
    """Have a schedule changed as often as it may be while a run of before is put off; return its name, and that run."""
    name = max(map(str, range(50)), key=lambda name: jitter("emails", name, a_definition(**PUT_OFF)))
    head = system.define(name, **PUT_OFF).head
    system.live(62)
    for number in range(KEPT_GENERATIONS):
        system.define(name, payload=str(number), **PUT_OFF)
    return name, occurrence(head, at(60))


def test_a_change_is_refused_that_would_forget_a_run_which_jitter_has_put_off_and_goes_when_that_is_over():
    system = Scheduled()
    name, run = changed_too_often(system)
    head, before = system.head(name), system.in_the_table()
    told = f"emails/{name} was changed 20 times since {text(head.generations[-1].end)}, and its jitter of 3600 s .*"
    with pytest.raises(TooManyChanges, match=f"{told} {text(run.id.due)}: change it again from then on; a pause or"):
        system.define(name, payload='"one more"', **PUT_OFF)
    assert (system.head(name), system.in_the_table()) == (head, before)
    assert not system.define(name, payload=str(KEPT_GENERATIONS - 1), **PUT_OFF).is_changed
    system.live((run.id.due - system.clock.now()) / A_MINUTE)
    assert system.define(name, payload='"one more"', **PUT_OFF).is_changed


@pytest.mark.parametrize("end", ["pause", "delete"])
def test_a_schedule_that_was_changed_too_often_ends_at_once_with_all_that_jitter_has_put_off(end):
    system = Scheduled()
    name, run = changed_too_often(system)
    ended = getattr(system.changes, end)("emails", name)
    assert ended.effective_from == system.fence() < run.id.due
    # What was put off is over by its pause.
    assert system.define(name, payload='"one more"', **PUT_OFF).is_changed
    system.live(100)
    assert [job for job in system.sent() if job.nominal <= ended.effective_from] == []


@pytest.mark.parametrize("name", ["", "a" * 65, "a#b", "a/b", "ä", "!count"])
def test_a_name_has_1_to_64_plain_characters(name):
    system = Scheduled()
    with pytest.raises(InvalidSchedule, match="name is"):
        system.define(name)


def test_a_priority_that_the_queue_does_not_have_is_refused():
    system = Scheduled(a_queue(priorities=2))
    with pytest.raises(InvalidSchedule, match="priority is 3: it must be from 1 to 2"):
        system.define(priority=3)
    assert system.define(priority=2).is_new


def test_a_schedule_of_many_partitions_has_all_its_runs_in_one():
    system = Scheduled(a_queue(partitions=8))
    partitions = {system.define(f"s{number}").head.partition for number in range(50)}
    assert len(partitions) == 8
    assert system.define("s1", payload="1").head.partition == system.define("s1", payload="2").head.partition


def test_a_partition_without_a_fence_has_the_change_begin_where_the_head_does():
    system = Scheduled(a_queue(partitions=8))
    name = next(f"s{n}" for n in range(99) if system.define(f"s{n}").head.partition.number)
    system.clock.sleep(1)
    changed = system.define(name, payload="1")
    assert text(changed.effective_from) == text(NOW)
    assert isinstance(changed.head.definition, Definition)


def test_a_schedule_whose_runs_are_at_the_end_of_time_can_be_changed_paused_and_deleted():
    latest = {"every": FURTHEST, "start": LAST - A_MINUTE, "jitter": FURTHEST}
    # Whatever part of the jitter is a schedule's own, and however long its queue keeps jobs.
    assert datetime.max.replace(tzinfo=UTC) > LAST + FURTHEST + MAX_RETENTION + DELETED_IS_KEPT
    system = Scheduled(a_queue(retention=MAX_RETENTION))
    system.define(**latest)
    system.live(1)
    assert system.changes.pause("emails", "digest").is_changed
    assert system.changes.resume("emails", "digest").is_changed
    assert system.define(**latest, payload="2").is_changed
    assert system.changes.delete("emails", "digest").is_changed
    assert system.define(**latest).is_new
