"""Changes over the ports in memory: which rule serves until when, whatever else happens meanwhile."""

import math
from datetime import UTC, datetime

import pytest

from dueline.core.instant import text
from dueline.core.job import MAX_RETENTION
from dueline.core.request import FURTHEST
from dueline.core.rows import MOST_SCHEDULES, count_key, head_key
from dueline.errors import InvalidSchedule, NotYet, ScheduleNotFound, TooManyChanges, TooManySchedules
from dueline.schedules import head as heads
from dueline.schedules.queries import RunState, history
from dueline.schedules.rule import LAST
from tests.builders import EMAILS, NOW, a_queue
from tests.schedule_system import A_MINUTE, ScheduleSystem, a_definition, at
from tests.wire import straight

OLD, NEW = {"every": A_MINUTE, "payload": '"old"'}, {"every": 2 * A_MINUTE, "start": NOW, "payload": '"new"'}


# Create


def test_identical_definition_changes_nothing(system):
    first = system.define()
    system.live(30)
    calls = system.calls()
    again = system.define()
    assert (again.is_new, again.is_changed) == (False, False)
    assert (again.head.start, again.head.etag) == (first.head.start, first.head.etag)
    assert calls == ["table.read"]


def test_rule_without_runs_to_come_is_refused(system):
    generation = system.define(every=A_MINUTE, end=at(10)).head.generation
    system.live(20)
    assert not system.define(every=A_MINUTE, end=at(10)).is_changed
    for name in ("digest", "new"):
        with pytest.raises(InvalidSchedule, match=r"end is 2026-\S+: the rule must have a run after 2026"):
            system.define(name, every=A_MINUTE, end=at(10), payload='"other"')
    assert system.head().generation == generation


def test_queue_has_at_most_10_000_schedules(system):
    system.define("first")
    pk, sk = count_key("emails")
    system.table.write([{"pk": pk, "sk": sk, "count": MOST_SCHEDULES}])
    with pytest.raises(TooManySchedules, match="queue 'emails' has 10000 schedules"):
        system.define("one-more")
    assert not system.define("first").is_changed
    system.changes.delete("emails", "first")
    assert system.define("one-more").is_new


# Change


def test_overtaken_change_raises_not_yet(system):
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


def test_head_keeps_20_generations(system):
    system.define(**OLD)
    changed = system.define(**NEW)
    (past,) = changed.head.generations
    assert (past.generation, past.start, past.planned_to) == (1, NOW, changed.head.start)
    assert (past.definition.rule, past.definition.payload) == (a_definition(**OLD).rule, "null")
    for number in range(25):
        system.define(payload=str(number))
    assert [each.generation for each in system.head().generations] == list(range(26, 6, -1))


# Pause, resume, delete


@pytest.mark.parametrize("act", ["pause", "resume", "delete"])
def test_repeated_change_does_nothing(system, act):
    with pytest.raises(ScheduleNotFound, match="queue 'emails' has no schedule 'digest'"):
        system.change(act)
    system.define(**OLD)
    if act == "resume":
        system.change("pause")
        assert system.define(**NEW).head.paused
        system.live(60)
        assert '"new"' not in [job.payload for job in system.sent()]
    first, again = (system.change(act) for _ in range(2))
    assert (first.is_changed, again.is_changed) == (True, False)
    assert (again.head, again.head.start) == (first.head, first.head.start)
    system.change("delete")
    if act != "delete":
        with pytest.raises(ScheduleNotFound):
            system.change(act)


def test_deleted_head_outlives_its_cancelled_runs(system):
    first = system.define(cron="0 0 1 1 *").head
    (new_year,) = heads.between(first.definition.rule, NOW, heads.step(first.definition.rule, NOW))
    system.live(2)
    system.define(**OLD)
    deleted = system.change("delete").head
    assert deleted.used_to == new_year
    row = system.table.read([head_key("emails", "digest")]).rows[head_key("emails", "digest")]
    assert row["ttl"] > new_year.timestamp()
    assert "ttl" not in heads.head_row(system.define(**OLD).head)


# What is refused


DELAYED = {"every": 60 * A_MINUTE, "start": NOW, "jitter": 60 * A_MINUTE}


def test_change_dropping_a_delayed_run_is_refused(system):
    name = max(map(str, range(50)), key=lambda name: heads.jitter("emails", name, a_definition(**DELAYED)))
    run = heads.occurrence(system.define(name, **DELAYED).head, at(60))
    system.live(62)
    for number in range(heads.KEPT_GENERATIONS):
        system.define(name, payload=str(number), **DELAYED)
    head, before = system.head(name), system.in_the_table()
    what = (
        f"emails/{name} was changed 20 times since {text(head.generations[-1].planned_to)}, and its jitter of 3600 s .*"
    )
    with pytest.raises(TooManyChanges, match=f"{what} {text(run.id.due)}: change it again from then on; a pause or"):
        system.define(name, payload='"one more"', **DELAYED)
    assert (system.head(name), system.in_the_table()) == (head, before)
    assert not system.define(name, payload=str(heads.KEPT_GENERATIONS - 1), **DELAYED).is_changed
    system.live((run.id.due - system.clock.now()) / A_MINUTE)
    assert system.define(name, payload='"one more"', **DELAYED).is_changed


def test_wrong_name_or_priority_is_refused():
    system = ScheduleSystem(a_queue(priorities=2))
    for name in ("", "a" * 65, "a/b", "!count"):
        with pytest.raises(InvalidSchedule, match="name is"):
            system.define(name)
    with pytest.raises(InvalidSchedule, match="priority is 3: it must be from 1 to 2"):
        system.define(priority=3)
    assert system.define("a" * 64, priority=2).is_new


@pytest.mark.parametrize("end", ["delete", "pause"])
def test_resume_moves_to_an_active_partition(end):
    system = ScheduleSystem(a_queue(partitions=8))
    name = next(f"s{n}" for n in range(99) if system.define(f"s{n}", **OLD).head.partition.number)
    was = system.head(name).partition
    system.tick(was)
    system.change(end, name)
    system.settings["emails"] = a_queue(partitions=1)
    system.live(30)
    head = (system.define(name, **OLD) if end == "delete" else system.resume(name)).head
    assert (was.number > 0, head.partition) == (True, EMAILS)
    assert {each.partition for each in heads.read_head(heads.head_row(head)).generations} == {was}
    before = len(system.sent())
    system.live(30)
    runs = history(a_queue(partitions=1), name, table=system.table, clock=system.clock, until=math.inf, limit=30)
    assert len(system.sent()) - before >= 30
    assert {run.state for run in runs if run.generation == 3} == {RunState.DISPATCHED}


def test_cutover_without_a_fence_is_the_start():
    system = ScheduleSystem(a_queue(partitions=8))
    name = next(f"s{n}" for n in range(99) if system.define(f"s{n}").head.partition.number)
    system.clock.sleep(1)
    changed = system.define(name, payload="1")
    assert text(changed.head.start) == text(NOW)


def test_last_possible_schedule_can_be_changed():
    latest = {"every": FURTHEST, "start": LAST - A_MINUTE, "jitter": FURTHEST}
    # Whatever part of the jitter is a schedule's own, and however long its queue keeps jobs.
    assert datetime.max.replace(tzinfo=UTC) > LAST + FURTHEST + MAX_RETENTION + heads.DELETED_IS_KEPT
    system = ScheduleSystem(a_queue(retention=MAX_RETENTION))
    system.define(**latest)
    system.live(1)
    assert system.change("pause").is_changed
    assert system.resume().is_changed
    assert system.define(**latest, payload="2").is_changed
    assert system.change("delete").is_changed
    assert system.define(**latest).is_new
