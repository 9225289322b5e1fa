"""The planner over the ports in memory, beside the ticks that feed it."""

import json
import math
from dataclasses import replace
from datetime import timedelta

import pytest

from dueline.errors import Throttled
from dueline.model.message import Message
from dueline.model.queue_settings import PLANNER
from dueline.schedules.occurrence import planning_job
from dueline.schedules.plan_step import Received
from tests.builders import NOW, a_job, a_queue
from tests.scheduled import Scheduled, at
from tests.wire import done_in_part, failing, losing_the_answer, on, straight

PLANNING = '{"queue": "emails", "schedule": "digest", "generation": 1, "from": "2026-01-01T00:00:00.000Z"}'


def received(system, head, planned_from, *, first_received=None, **overrides):
    """Return the message of a planning job that the planner received for the first time, by default now."""
    job = planning_job(head, planned_from, now=NOW)
    body = json.dumps({**json.loads(job.payload), **overrides})
    message = Message(body=body, attributes={})
    return Received(message_id="m", message=message, first_received=first_received or system.clock.now())


def plan(system, *batch):
    return system.planner.run(batch, until=math.inf)


def test_each_nominal_has_one_run_over_hours_of_different_rules():
    rules = {"minutely": {"every": timedelta(minutes=1)}, "odd": {"every": timedelta(minutes=7, seconds=1)}}
    rules |= {"hourly": {"cron": "5 * * * *"}, "burst": {"cron": "*/2 8 * * *"}}
    system = Scheduled()
    for name, rule in rules.items():
        system.define(name, **rule)
    system.live(180)
    for name in rules:
        expected = [each for each in system.head(name).definition.rule.after(NOW) if each < at(180)] if False else []
        rule = system.head(name).definition.rule
        for nominal in rule.after(NOW):
            if nominal > at(179):
                break
            expected.append(nominal)
        assert (
            sorted(job.nominal for job in system.sent() if job.schedule == name and job.nominal <= at(179)) == expected
        )


def test_a_first_run_in_two_minutes_comes_in_two_minutes():
    system = Scheduled()
    system.define(cron="7 7 * * *")
    system.plan()
    (delivery,) = system.queues["emails"].deliveries
    assert delivery.visible == at(2)


def test_a_run_has_what_the_definition_says_and_its_name_and_nominal():
    system = Scheduled(a_queue(priorities=2))
    system.define(cron="7 7 * * *", payload='{"n":1}', tenant="acme", priority=2, overlap="skip")
    system.live(2)
    (delivery,) = system.stores.level("emails", 2).deliveries
    job = delivery.message.job()
    assert (job.payload, job.tenant, job.priority, job.exclusive) == ('{"n":1}', "acme", 2, True)
    assert (job.schedule, job.nominal, job.id.due) == ("digest", at(2), at(2))


def test_a_schedule_that_runs_each_minute_costs_one_planning_job_in_a_quarter_of_an_hour():
    system = Scheduled()
    system.define()
    system.live(600)
    assert len(system.in_the_table(PLANNER.name)) <= 600 / 15 + 2


def test_a_rule_that_ends_leaves_no_planning_job_and_can_still_be_changed():
    system = Scheduled()
    system.define(start=NOW, count=3, every=timedelta(minutes=1))
    system.live(60)
    assert system.nominals() == [1, 2]
    assert len(system.in_the_table(PLANNER.name)) == 1
    cut = system.define().effective_from
    system.live(20)
    assert system.nominals()[:2] == [1, 2]
    assert at(system.nominals()[2]) > cut


@pytest.mark.parametrize("fault", [failing(Throttled("no")), losing_the_answer, done_in_part])
def test_a_planner_that_crashes_anywhere_and_is_repeated_makes_each_run_once(fault):
    calls = _count_calls()
    for crash in range(calls):
        system = Scheduled()
        system.define()
        seen = 0

        def around(call, crash=crash):
            nonlocal seen
            seen += 1
            return fault(call) if seen == crash + 1 else straight(call)

        system.wire.around = around
        for _ in range(4):
            system.plan()
            system.clock.sleep(1)
        system.wire.around = straight
        system.live(40)
        assert sorted(set(system.nominals()))[:38] == list(range(1, 39)), crash


def _count_calls():
    system, seen = Scheduled(), []
    system.define()
    system.wire.around = lambda call: (seen.append(call.name), straight(call))[1]
    system.plan()
    assert "table.plan" in seen
    return len(seen)


def test_a_step_says_how_far_it_planned_only_after_its_runs_and_the_next_planning_job():
    system = Scheduled()
    system.define()
    for skipped in range(3):
        system.wire.around = on("table.write", failing(Throttled("no")), skip=skipped)
        planned = system.plan()
        is_planned = system.head().planned_to > NOW
        assert is_planned is not bool(planned.again)
        if is_planned:
            break
    assert skipped == 2


def test_what_is_repeated_after_it_was_planned_is_done_and_asks_nothing_more():
    system = Scheduled()
    head = system.define().head
    system.plan()
    before = len(system.in_the_table())
    planned = plan(system, received(system, head, NOW))
    assert (planned.again, planned.submitted) == (set(), {})
    assert len(system.in_the_table()) == before


@pytest.mark.parametrize("newer", [{"generation": 2}, {"from": "2026-11-21T07:20:00.000Z"}, {"schedule": "other"}])
def test_a_step_whose_time_has_not_come_is_put_back_and_after_an_hour_dropped(newer):
    system = Scheduled()
    head = system.define().head
    fresh = received(system, head, NOW, **newer)
    assert plan(system, fresh).again == {"m"}
    system.clock.sleep(59 * 60)
    assert plan(system, fresh).again == {"m"}
    system.clock.sleep(60)
    planned = plan(system, fresh)
    assert (planned.again, planned.dropped) == (set(), 1)
    assert system.head().planned_to == NOW


def test_a_planning_job_that_is_late_itself_is_not_dropped_when_it_is_received_first():
    system = Scheduled()
    head = system.define().head
    system.clock.sleep(5 * 3600)
    assert plan(system, received(system, head, NOW, generation=2)).again == {"m"}


def test_a_step_of_an_earlier_generation_is_done_however_far_that_was_planned():
    system = Scheduled()
    head = system.define().head
    system.define(payload='"new"')
    before = system.in_the_table()
    assert plan(system, received(system, head, at(60))).again == set()
    assert system.in_the_table() == before


@pytest.mark.parametrize("end", ["pause", "delete"])
def test_a_step_of_a_paused_or_deleted_generation_is_done(end):
    system = Scheduled()
    system.define()
    head = getattr(system.changes, end)("emails", "digest").head
    before = system.in_the_table()
    assert plan(system, received(system, head, head.planned_to)).again == set()
    assert system.in_the_table() == before


@pytest.mark.parametrize(
    "body",
    [
        a_job().payload,
        "[" * 100_000,
        PLANNING.replace('"generation": 1', '"generation": 1e999'),
        PLANNING.replace("digest", "x" * 3000),
        PLANNING.replace("emails", "x" * 3000),
    ],
    ids=["a job", "deep", "infinite", "long name", "long queue"],
)
def test_a_message_that_is_no_planning_job_is_put_back_for_the_dead_letter_queue_and_harms_no_other(body):
    system = Scheduled()
    head = system.define().head
    message = replace(Message.of(a_job()), body=body)
    bad = Received(message_id="bad", message=message, first_received=NOW)
    planned = plan(system, bad, received(system, head, NOW))
    assert planned.again == {"bad"}
    assert "message bad is no planning job" in planned.faults.pop()
    assert planned.submitted == {"emails": 15}


def test_a_run_that_can_not_be_written_holds_up_its_own_schedule_alone():
    system = Scheduled()
    heads = {name: system.define(name, cron="8 7 * * *").head for name in ("a", "b")}
    system.wire.around = on("table.write", done_in_part, times=1)
    batch = [
        Received(message_id=name, message=Message.of(planning_job(head, NOW, now=NOW)), first_received=NOW)
        for name, head in heads.items()
    ]
    planned = plan(system, *batch)
    (again,) = planned.again
    assert system.head(again).planned_to == NOW
    assert system.head({"a": "b", "b": "a"}[again]).planned_to > NOW
    assert planned.submitted == {"emails": 1}


def test_steps_of_many_schedules_share_their_requests():
    system, calls = Scheduled(), []
    heads = [system.define(f"s{number}", cron="8 7 * * *").head for number in range(100)]
    system.wire.around = lambda call: (calls.append(call.name), straight(call))[1]
    batch = [
        Received(message_id=head.name, message=Message.of(planning_job(head, NOW, now=NOW)), first_received=NOW)
        for head in heads
    ]
    assert plan(system, *batch).again == set()
    # Heads, two fences, and the cancellations of what is late; 100 runs, their notes, and 100 planning jobs, by 25.
    assert (calls.count("table.read"), calls.count("table.write"), calls.count("table.plan")) == (5, 12, 100)


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
def test_after_three_hours_without_a_planner_missed_runs_are_made_as_catch_up_says(rule, catch_up, caught_up):
    system = Scheduled()
    system.define(every=timedelta(minutes=rule), start=NOW, catch_up=catch_up)
    system.plan()
    system.live(185, planner=False)
    system.live(60)
    assert [each for each in system.nominals() if 15 < each <= 185] == caught_up
    assert [each for each in system.nominals() if each > 185][:5] == [
        190 + 10 * n if rule == 10 else 186 + n for n in range(5)
    ]


def test_a_weekly_run_that_was_missed_for_days_is_made_once_if_none_follows_yet():
    system = Scheduled()
    system.define(cron="10 7 * * SAT")
    system.live(3 * 1440, planner=False)
    system.live(10)
    assert system.nominals() == [5]


@pytest.mark.parametrize("catch_up", ["none", "latest"])
def test_runs_that_are_missed_are_counted(catch_up):
    system = Scheduled()
    head = system.define(catch_up=catch_up).head
    system.clock.sleep(5 * 60 + 1)
    planned = plan(system, received(system, head, NOW))
    assert (planned.submitted, planned.missed) == ({"emails": 11}, {"emails": 4})
