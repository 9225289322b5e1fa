"""What became of runs, and runs on demand, over the ports in memory."""

import math
from datetime import timedelta

import pytest

from dueline.errors import InvalidJob, InvalidSchedule, KeyReused, ScheduleNotFound, Unavailable
from dueline.lookup.outcome import Outcome, note_outcome
from dueline.model.job import State
from dueline.model.schedule_rows import head_key
from dueline.protocol.keys import Repeat
from dueline.schedules.reading import RunState, history, page
from dueline.schedules.running import Runs
from tests.builders import NOW, RETENTION, a_queue
from tests.scheduled import A_MINUTE, Scheduled, at
from tests.wire import failing, losing_the_answer, on, straight


class Running(Scheduled):
    def __init__(self, *settings):
        super().__init__(*settings)
        numbers = (f"00000000-0000-4000-9000-{number:012}" for number in range(10_000))
        self.runs = Runs(table=self.table, route=self.route, clock=self.clock, new_uid=lambda: next(numbers))

    def history(self, **asked):
        queue = self.settings["emails"]
        return history(queue, "digest", table=self.table, clock=self.clock, until=math.inf, **asked)


FAR = at(60 * 24 * 365 * 2)


def told(runs):
    """Return for which minutes from the beginning there are runs, by their states."""
    return {
        state: [(run.nominal - NOW) / A_MINUTE for run in runs if run.state is state]
        for state in RunState
        if any(run.state is state for run in runs)
    }


# History


def test_history_tells_what_is_planned_dispatched_cancelled_and_missed_the_latest_first():
    system = Running()
    system.define(catch_up="none")
    system.plan()
    system.live(20, planner=False)
    system.live(1)
    (planned, *_) = system.history(limit=1, before=FAR)
    assert planned.state is RunState.PLANNED
    system.cancel(planned.id)
    runs = system.history(limit=100, before=FAR)
    states = told(runs)
    assert states[RunState.CANCELLED] == [(planned.nominal - NOW) / A_MINUTE]
    # The planner was back at 20: what was up to a minute late by then was made.
    assert states[RunState.MISSED] == [18, 17, 16]
    assert states[RunState.DISPATCHED] == [*range(24, 18, -1), *range(15, 0, -1)]
    assert [run.nominal for run in runs] == sorted((run.nominal for run in runs), reverse=True)


def test_a_run_that_is_cancelled_is_made_anew_by_a_change_that_comes_before_its_time():
    system = Running()
    system.define()
    system.live(1)
    runs = {(run.nominal - NOW) / A_MINUTE: run.id for run in system.history(limit=100, before=FAR)}
    for minute in (8, 12):
        assert system.cancel(runs[minute]) is State.CANCELLED
    system.live(5)
    system.define(payload='"new"')
    system.live(15)
    assert system.nominals()[:15] == [1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 14, 15, 16]


def test_history_goes_back_over_changes_and_leaves_out_what_they_cancelled():
    system = Running()
    system.define()
    system.live(20)
    changed = system.define(every=5 * A_MINUTE, start=NOW)
    system.live(40)
    runs = system.history(limit=100, before=FAR)
    cut = (changed.effective_from - NOW) / A_MINUTE
    assert {run.generation for run in runs} == {1, 2}
    nominals = [(run.nominal - NOW) / A_MINUTE for run in runs if run.nominal <= at(59)]
    assert nominals == [n for n in range(59, 0, -1) if n <= cut or n % 5 == 0]
    assert {run.state for run in runs} <= {RunState.PLANNED, RunState.DISPATCHED}
    assert [run.nominal for run in system.history(limit=2, before=at(3))] == [at(2), at(1)]


def test_history_is_of_runs_whose_time_has_come_page_by_page():
    system = Running()
    system.define()
    system.live(20.5)
    first = system.history(limit=3)
    assert [run.nominal for run in first] == [at(20), at(19), at(18)]
    second = system.history(limit=3, before=first[-1].nominal)
    assert [run.nominal for run in second] == [at(17), at(16), at(15)]
    to_come = system.history(limit=100, before=FAR)
    assert to_come[0].nominal > at(21)
    assert [run for run in to_come if run.nominal <= at(20.5)] == system.history(limit=100)


def test_history_has_the_outcomes_of_a_queue_that_tracks_its_jobs():
    system = Running(a_queue(track=True))
    system.define(cron="7 7 * * *")
    system.live(3)
    (run, *_) = system.history()
    assert run.state is RunState.DISPATCHED
    outcome = Outcome(state=State.SUCCEEDED, attempts=1, started=at(2) + timedelta(seconds=3), ended=at(3))
    note_outcome(run.id, outcome, expires=run.id.due + RETENTION, table=system.table)
    (run, *_) = system.history()
    assert (run.state, run.outcome, run.lateness) == (RunState.SUCCEEDED, outcome, 3)


def test_history_beyond_retention_is_forgotten():
    system = Running()
    system.define(cron="7 7 * * *")
    system.live(3)
    system.clock.sleep(20 * 86400)
    assert told(system.history()) == {RunState.FORGOTTEN: [2]}


@pytest.mark.parametrize("limit", [0, 101])
def test_history_and_pages_have_1_to_100(limit):
    system = Running()
    system.define()
    with pytest.raises(InvalidSchedule, match="it must be from 1 to 100"):
        system.history(limit=limit)
    with pytest.raises(InvalidSchedule, match="it must be from 1 to 100"):
        page("emails", table=system.table, limit=limit)


# Pages


def test_pages_have_the_schedules_in_the_order_of_their_names_and_not_those_that_were_deleted():
    system = Running()
    for name in ("c", "a", "b", "d"):
        system.define(name)
    system.changes.delete("emails", "b")
    first = page("emails", table=system.table, limit=2)
    second = page("emails", table=system.table, limit=2, after=first.after)
    assert [head.name for head in first.heads + second.heads] == ["a", "c", "d"]
    assert second.after is None
    with pytest.raises(ScheduleNotFound):
        system.head("b")


def test_a_head_that_cannot_be_read_is_no_guess_to_make():
    system = Running()
    system.define()
    pk, sk = head_key("emails", "digest")
    system.table.write([{"pk": pk, "sk": sk, "generation": 1}])
    with pytest.raises(Unavailable, match="cannot be read"):
        system.head()


# Run now


def test_a_run_now_is_due_now_and_leaves_the_chain_alone():
    system = Running()
    system.define(overlap="skip", tenant="acme")
    system.live(2.5)
    job = system.runs.run_now("emails", "digest", payload='{"to":"me"}')
    assert (job.nominal, job.schedule, job.id.due, job.tenant) == (at(2.5), "digest", at(2.5), "acme")
    assert job.exclusive
    assert [each for each in system.sent() if each.payload == '{"to":"me"}'] == [job]
    system.live(10)
    assert [each for each in system.nominals() if each % 1 == 0][:12] == list(range(1, 13))


def test_a_paused_schedule_runs_on_demand():
    system = Running()
    system.define(cron="0 0 1 1 *")
    system.changes.pause("emails", "digest")
    job = system.runs.run_now("emails", "digest")
    assert system.sent() == [job]


@pytest.mark.parametrize("fault", [failing(Unavailable("no")), losing_the_answer])
def test_a_run_under_a_key_is_made_once_whatever_fails(fault):
    for crash in range(3):
        system, seen = Running(), []
        system.define(cron="0 0 1 1 *")

        def around(call, crash=crash, seen=seen):
            seen.append(call.name)
            return fault(call) if len(seen) == crash + 2 else straight(call)

        system.wire.around = around
        for _ in range(3):
            try:
                job = system.runs.run_now("emails", "digest", key="k")
            except Unavailable:
                system.clock.sleep(5)
        assert {each.id for each in system.sent()} == {job.id}, seen
        assert {each.nominal for each in system.sent()} == {job.nominal}


def test_a_key_of_another_payload_is_refused():
    system = Running()
    system.define()
    system.runs.run_now("emails", "digest", key="k")
    for again in ({"payload": "1"}, {"payload": '{"to":"all"}'}):
        with pytest.raises(KeyReused, match="key is 'k': it was used for something else of schedule 'digest'"):
            system.runs.run_now("emails", "digest", key="k", **again)
    with pytest.raises(InvalidJob, match="1 to 128"):
        system.runs.run_now("emails", "digest", key="k" * 129)


@pytest.mark.parametrize("is_done", [True, False])
def test_a_run_under_a_key_is_the_first_one_though_the_schedule_was_changed_since(is_done):
    system = Running()
    system.define(cron="0 0 1 1 *", tenant="acme")
    system.wire.around = on("table.mark_done", straight if is_done else failing(Unavailable("no")))
    first = system.runs.run_now("emails", "digest", key="k")
    system.define(cron="0 0 1 1 *", payload="2", overlap="skip")
    again = system.runs.run_now("emails", "digest", key="k")
    assert (again.id, again.payload, again.tenant, again.exclusive) == (first.id, first.payload, "acme", False)
    assert isinstance(again, Repeat) is is_done
    assert {job.payload for job in system.sent()} == {first.payload}


# Backfill


def test_a_backfill_runs_each_nominal_of_a_range_by_the_rule_as_it_is_now():
    system = Running()
    system.define(cron="0 * * * *", overlap="skip")
    jobs = system.runs.backfill("emails", "digest", start=at(-65), end=at(-5), key="k")
    assert [job.nominal for job in jobs] == [at(-65)]
    again = system.runs.backfill("emails", "digest", start=at(-65), end=at(-5), key="k")
    assert [job.id for job in again] == [job.id for job in jobs]
    others = system.runs.backfill("emails", "digest", start=at(-125), end=at(-5), key="other")
    assert [job.nominal for job in others] == [at(-125), at(-65)]
    with pytest.raises(KeyReused, match="other instants"):
        system.runs.backfill("emails", "digest", start=at(-125), end=at(-5), key="k")
    assert {job.id.due for job in system.sent()} == {NOW}
    assert sorted(system.nominals()) == [-125, -65, -65]
    assert not any(job.exclusive for job in system.sent())


def test_a_backfill_under_a_key_is_the_first_one_though_the_rule_and_the_payload_were_changed_since():
    system = Running()
    system.define(cron="0 * * * *")
    system.wire.around = lambda call: losing_the_answer(call) if call.name.endswith(".send") else straight(call)
    with pytest.raises(Unavailable):
        system.runs.backfill("emails", "digest", start=at(-125), end=at(-5), key="k")
    system.wire.around = straight
    system.define(cron="30 * * * *", payload="2")
    jobs = system.runs.backfill("emails", "digest", start=at(-125), end=at(-5), key="k")
    assert [job.nominal for job in jobs] == [at(-125), at(-65)]
    assert {(job.id, job.payload) for job in system.sent()} == {(job.id, '{"to":"all"}') for job in jobs}


def test_a_backfill_is_repeated_though_the_rule_of_now_has_too_many_runs_and_one_that_has_takes_no_key():
    system = Running()
    system.define(cron="0 * * * *")
    span = {"start": at(-600), "end": at(0)}
    first = system.runs.backfill("emails", "digest", **span, key="k")
    system.define(every=A_MINUTE)
    assert [job.id for job in system.runs.backfill("emails", "digest", **span, key="k")] == [job.id for job in first]
    with pytest.raises(KeyReused, match="other instants"):
        system.runs.backfill("emails", "digest", start=at(-601), end=at(0), key="k")
    with pytest.raises(InvalidSchedule, match="over 500 runs"):
        system.runs.backfill("emails", "digest", **span, key="other")
    system.define(cron="30 * * * *")
    assert len(system.runs.backfill("emails", "digest", **span, key="other")) == 10


def test_a_backfill_has_500_runs_at_most_and_none_of_the_future():
    system = Running()
    system.define()
    assert len(system.runs.backfill("emails", "digest", start=at(-500), end=at(0))) == 500
    with pytest.raises(InvalidSchedule, match="over 500 runs"):
        system.runs.backfill("emails", "digest", start=at(-501), end=at(0))
    with pytest.raises(InvalidSchedule, match="must not be in the future"):
        system.runs.backfill("emails", "digest", start=at(-5), end=at(1))
    with pytest.raises(InvalidSchedule, match=r"to is 2026-\S+: it must not be before from, which is 2026-\S+$"):
        system.runs.backfill("emails", "digest", start=at(-5), end=at(-6))


# The watchdog


def test_the_watchdog_revives_what_stands_still_and_nothing_else():
    system = Running()
    for name in ("lost", "fine", "paused", "ended", "deleted"):
        system.define(name, **({"start": NOW, "every": A_MINUTE, "count": 3} if name == "ended" else {}))
    system.changes.pause("emails", "paused")
    system.changes.delete("emails", "deleted")
    system.live(30)
    system.wire.around = on("table.plan", lambda call: False if call.args[0][1] == "lost" else straight(call))
    system.live(60)
    system.wire.around = straight
    assert system.watchdog.revive("emails", until=math.inf) == 1
    system.live(30)
    assert system.watchdog.revive("emails", until=math.inf) == 0
    lost = sorted((job.nominal - NOW) / A_MINUTE for job in system.sent() if job.schedule == "lost")
    assert [each for each in lost if each > 90][:25] == list(range(91, 116))


def test_the_watchdog_leaves_alone_what_was_changed_just_now_and_not_planned_yet():
    system = Running()
    system.define()
    system.live(30)
    system.define(every=5 * A_MINUTE)
    assert system.watchdog.revive("emails", until=math.inf) == 0
    system.wire.around = on("table.plan", lambda _: False)
    system.live(15)
    system.wire.around = straight
    assert system.watchdog.revive("emails", until=math.inf) == 1


def test_the_watchdog_passes_over_a_head_that_cannot_be_read_and_says_so():
    system = Running()
    system.define("lost")
    pk, sk = head_key("emails", "broken")
    system.table.write([{"pk": pk, "sk": sk, "generation": 1}])
    system.clock.sleep(3600)
    system.tick()
    with pytest.raises(Unavailable, match="broken"):
        system.watchdog.revive("emails", until=math.inf)
    system.live(5)
    assert system.nominals()[0] >= 59
