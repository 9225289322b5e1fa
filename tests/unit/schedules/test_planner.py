"""The planner over the ports in memory, beside the ticks that feed it."""

import json
from datetime import timedelta

import pytest

from dueline.core.queue_settings import PLANNER
from dueline.errors import Throttled
from dueline.schedules.head import planning_job
from dueline.schedules.planner import PlanningMessage
from tests.builders import NOW, a_job, a_queue
from tests.schedule_system import ScheduleSystem, at
from tests.wire import done_in_part, failing, on

PLANNING = '{"queue": "emails", "schedule": "digest", "generation": 1, "from": "2026-01-01T00:00:00.000Z"}'


def received(system, head, planned_from, *, id="m", **overrides):
    """Return the message of a planning job that the planner received for the first time now."""
    job = planning_job(head, planned_from, now=NOW)
    body = json.dumps({**json.loads(job.payload), **overrides})
    return PlanningMessage(message_id=id, body=body, first_received=system.clock.now())


def test_run_has_the_definitions_fields():
    system = ScheduleSystem(a_queue(priorities=2))
    system.define(cron="7 7 * * *", payload='{"n":1}', kind="k", tenant="acme", priority=2, overlap="skip")
    system.live(2)
    (delivery,) = system.stores.level("emails", 2).deliveries
    job = delivery.message.job()
    assert (job.payload, job.kind, job.tenant, job.priority) == ('{"n":1}', "k", "acme", 2)
    assert job.exclusive
    assert (job.schedule, job.scheduled_for, job.id.due) == ("digest", at(2), at(2))


def test_ended_rule_leaves_no_planning_job(system):
    system.define(start=NOW, count=3, every=timedelta(minutes=1))
    system.live(60)
    assert system.scheduled_times() == [1, 2]
    assert len(system.in_the_table(PLANNER.name)) == 1
    cutover = system.define().head.start
    system.live(20)
    assert system.scheduled_times()[:2] == [1, 2]
    assert at(system.scheduled_times()[2]) > cutover


@pytest.mark.parametrize("newer", [{"generation": 2}, {"from": "2026-11-21T07:20:00.000Z"}, {"schedule": "other"}])
def test_early_step_is_dropped_after_an_hour(system, newer):
    head = system.define().head
    fresh = received(system, head, NOW, **newer)
    assert system.planner().run([fresh]).again == {"m"}
    system.clock.sleep(59 * 60)
    assert system.planner().run([fresh]).again == {"m"}
    system.clock.sleep(60)
    planned = system.planner().run([fresh])
    assert (planned.again, planned.dropped) == (set(), 1)
    assert system.head().planned_to == NOW


@pytest.mark.parametrize(
    "body",
    [
        a_job().payload,
        "[" * 100_000,
        PLANNING.replace('"generation": 1', '"generation": 1e999'),
        PLANNING.replace("digest", "x" * 3000),
    ],
    ids=["a job", "deep", "infinite", "long name"],
)
def test_bad_message_affects_no_other(system, body):
    head = system.define().head
    system.clock.sleep(5 * 60 + 1)
    bad = PlanningMessage(message_id="bad", body=body, first_received=NOW)
    planned = system.planner().run([bad, received(system, head, NOW)])
    assert planned.again == {"bad"}
    assert "message bad is no planning job" in planned.faults.pop()
    assert (planned.submitted, planned.missed) == ({"emails": 11}, {"emails": 4})


def test_unwritten_run_delays_its_schedule_only(system):
    heads = {name: system.define(name, cron="8 7 * * *").head for name in ("a", "b")}
    system.wire.around = on("table.write", done_in_part, times=1)
    planned = system.planner().run([received(system, head, NOW, id=name) for name, head in heads.items()])
    (again,) = planned.again
    assert system.head(again).planned_to == NOW
    assert system.head({"a": "b", "b": "a"}[again]).planned_to > NOW
    assert planned.submitted == {"emails": 1}


def test_unread_schedule_is_put_back_with_the_reason(system):
    head = system.define().head
    system.wire.around = on("table.read", failing(Throttled("slow down")))
    planned = system.planner().run([received(system, head, NOW)])
    assert planned.again == {"m"}
    assert "slow down" in planned.faults


# Missed runs


@pytest.mark.parametrize(
    ("rule", "catch_up", "caught_up"),
    [
        (10, "none", []),
        (10, "latest", [180]),
        (10, "all", list(range(20, 190, 10))),
        (1, "latest", [184, 185]),
        (1, "all", list(range(84, 186))),
    ],
)
def test_missed_runs_are_made_as_catch_up_says(system, rule, catch_up, caught_up):
    system.define(every=timedelta(minutes=rule), start=NOW, catch_up=catch_up)
    system.plan()
    system.live(185, planner=False)
    system.live(60)
    assert [each for each in system.scheduled_times() if 15 < each <= 185] == caught_up
    assert [each for each in system.scheduled_times() if each > 185][:5] == [
        190 + 10 * n if rule == 10 else 186 + n for n in range(5)
    ]
