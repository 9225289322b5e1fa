"""What became of runs, and runs on demand, over the ports in memory."""

import math
from collections import defaultdict
from datetime import timedelta

import pytest

from dueline.core.job import State
from dueline.core.rows import head_key
from dueline.core.status import Outcome, note_outcome
from dueline.errors import InvalidJob, InvalidSchedule, KeyReused, Unavailable
from dueline.schedules import rule
from dueline.schedules.manual_runs import ManualRuns
from dueline.schedules.queries import RunState, history
from tests.builders import NOW, RETENTION, a_queue
from tests.schedule_system import A_MINUTE, ScheduleSystem, at
from tests.wire import failing, losing_the_answer, on, straight


class Running(ScheduleSystem):
    """A deployment whose queue has the schedule `digest`."""

    def __init__(self, *settings, **definition):
        super().__init__(*settings)
        self.runs = ManualRuns(self.route)
        self.define(**definition)

    def history(self, **parameters):
        queue = self.settings["emails"]
        return history(queue, "digest", table=self.table, clock=self.clock, until=math.inf, **parameters)

    def run_now(self, **parameters):
        return self.runs.run_now("emails", "digest", **parameters).job

    def backfill(self, **parameters):
        return [each.job for each in self.runs.backfill("emails", "digest", **parameters)]


def minute_of(run):
    """Return for which minute from the beginning a run is."""
    return (run.scheduled_for - NOW) / A_MINUTE


FAR = at(60 * 24 * 365 * 2)


def minutes_by_state(runs):
    """Return for which minutes from the beginning there are runs, by their states."""
    minutes = defaultdict(list)
    for run in runs:
        minutes[run.state].append(minute_of(run))
    return minutes


# History


def test_history_has_the_states_of_runs():
    system = Running(catch_up="none")
    system.plan()
    system.live(20, planner=False)
    system.live(1)
    (planned, *_) = system.history(limit=1, before=FAR)
    assert planned.state is RunState.PLANNED
    system.cancel(planned.id)
    states = minutes_by_state(system.history(limit=100, before=FAR))
    assert states[RunState.CANCELLED] == [minute_of(planned)]
    # The planner was back at 20: what was up to a minute late by then was made.
    assert states[RunState.MISSED] == [18, 17, 16]
    assert states[RunState.DISPATCHED] == [*range(24, 18, -1), *range(15, 0, -1)]
    system.backfill(start=at(16), end=at(19))
    assert minutes_by_state(system.history(limit=100))[RunState.MISSED] == [18, 17, 16]


def test_history_spans_changes():
    """In pages, latest first, and by default of runs whose time has come."""
    system = Running()
    system.live(20)
    changed = system.define(every=5 * A_MINUTE, start=NOW)
    system.live(40)
    runs = system.history(limit=100, before=FAR)
    cutover = (changed.head.start - NOW) / A_MINUTE
    assert {run.generation for run in runs} == {1, 2}
    assert [run.scheduled_for for run in runs] == sorted((run.scheduled_for for run in runs), reverse=True)
    times = [minute_of(run) for run in runs if run.scheduled_for <= at(59)]
    assert times == [n for n in range(59, 0, -1) if n <= cutover or n % 5 == 0]
    assert {run.state for run in runs} <= {RunState.PLANNED, RunState.DISPATCHED}
    assert [run.scheduled_for for run in system.history(limit=2, before=at(3))] == [at(2), at(1)]
    assert runs[0].scheduled_for > system.clock.now()
    assert system.history(limit=100) == [run for run in runs if run.scheduled_for <= system.clock.now()]


def test_history_has_outcomes_of_tracked_jobs():
    system = Running(a_queue(track=True), cron="7 7 * * *")
    system.live(3)
    (run, *_) = system.history()
    assert run.state is RunState.DISPATCHED
    outcome = Outcome(state=State.SUCCEEDED, attempts=1, started=at(2) + timedelta(seconds=3), ended=at(3))
    note_outcome(run.id, outcome, expires=run.id.due + RETENTION, table=system.table)
    (run, *_) = system.history()
    assert (run.state, run.outcome, run.lateness) == (RunState.SUCCEEDED, outcome, 3)


def test_history_beyond_retention_is_forgotten():
    system = Running(cron="7 7 * * *")
    system.live(3)
    system.clock.sleep(20 * 86400)
    assert minutes_by_state(system.history()) == {RunState.FORGOTTEN: [2]}
    system.settings["emails"] = a_queue(retention=timedelta(days=30))
    system.define(cron="7 7 * * *", owner="kept for longer from now on")
    assert system.history()[-1].state is RunState.FORGOTTEN


# Run now


def test_run_now_is_due_now_beside_planned_runs():
    system = Running(overlap="skip", kind="digest", tenant="acme")
    system.live(2.5)
    job = system.run_now(payload='{"to":"me"}')
    assert (job.scheduled_for, job.schedule, job.id.due, job.tenant) == (at(2.5), "digest", at(2.5), "acme")
    assert (job.kind, job.exclusive) == ("digest", True)
    assert [each for each in system.sent() if each.payload == '{"to":"me"}'] == [job]
    system.live(10)
    assert [each for each in system.scheduled_times() if each % 1 == 0][:12] == list(range(1, 13))


@pytest.mark.parametrize("fault", [failing(Unavailable("no")), losing_the_answer])
def test_run_with_a_key_is_made_once(fault):
    for crash in range(3):
        system, observed = Running(cron="0 0 1 1 *"), []

        def around(call, crash=crash, observed=observed):
            observed.append(call.name)
            return fault(call) if len(observed) == crash + 2 else straight(call)

        system.wire.around = around
        for _ in range(3):
            try:
                job = system.run_now(key="k")
            except Unavailable:
                system.clock.sleep(5)
        assert {each.id for each in system.sent()} == {job.id}, observed
        assert {each.scheduled_for for each in system.sent()} == {job.scheduled_for}


@pytest.mark.parametrize("is_noted", [True, False])
def test_run_under_a_key_survives_a_change(is_noted):
    """A caller whose answer was lost repeats the call; somebody else may have changed the schedule meanwhile."""
    system, span = Running(cron="0 * * * *", tenant="acme"), {"start": at(-65), "end": at(-5)}
    system.wire.around = on("table.mark_done", straight if is_noted else failing(Unavailable("no")))
    first, runs = system.run_now(key="k"), system.backfill(**span, key="k")
    system.clock.sleep(60)
    system.define(cron="5 * * * *", payload="2", overlap="skip")
    again = system.run_now(key="k")
    assert (again.id, again.scheduled_for, again.tenant) == (first.id, first.scheduled_for, "acme")
    with pytest.raises(KeyReused, match="other instants of schedule 'digest'"):
        system.backfill(**span, key="k")
    system.define(cron="0 * * * *", payload="3", overlap="skip")
    assert [run.id for run in system.backfill(**span, key="k")] == [run.id for run in runs]
    assert {job.id for job in system.sent()} == {first.id, *(run.id for run in runs)}
    if is_noted:
        assert {job.payload for job in system.sent()} == {first.payload}
    (another,) = system.backfill(**span)
    assert (another.scheduled_for, another.id.due, another.exclusive) == (at(-65), system.clock.now(), False)


def test_key_used_for_another_payload_is_refused():
    system = Running()
    system.run_now(key="k")
    for payload in ("1", '{"to":"all"}'):
        with pytest.raises(KeyReused, match="idempotency_key is 'k': it was used for another payload"):
            system.run_now(key="k", payload=payload)
    with pytest.raises(InvalidJob, match=r"idempotency_key is .* 1 to 255 printable"):
        system.run_now(key="k" * 256)


# Backfill


def test_backfill_has_at_most_500_past_runs():
    system = Running()
    assert len(system.backfill(start=at(-500), end=at(0))) == 500
    for start, end, reason in (
        (-501, 0, "over 500 runs"),
        (-5, 1, "must not be in the future"),
        (-5, -6, r"to is 2026-\S+: it must not be before from, which is 2026-\S+$"),
    ):
        with pytest.raises(InvalidSchedule, match=reason):
            system.backfill(start=at(start), end=at(end))


# The watchdog


def test_watchdog_revives_only_stalled_schedules():
    system = Running()
    for name in ("lost", "paused", "ended", "deleted"):
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
    lost = sorted((job.scheduled_for - NOW) / A_MINUTE for job in system.sent() if job.schedule == "lost")
    assert [each for each in lost if each > 90][:25] == list(range(91, 116))


def test_newer_tzdata_moves_runs(monkeypatch, request):
    """Harare's clocks are those of Nairobi, an hour ahead."""
    system = Running(cron="0 12 * * *", zone="Africa/Harare", catch_up="none")
    system.live(5)
    assert system.watchdog.revive("emails", until=math.inf) == 0
    real = rule.zone_of
    monkeypatch.setattr(rule, "zone_of", lambda name: real(name.replace("Harare", "Nairobi")))
    request.addfinalizer(rule._counted.cache_clear)
    rule._counted.cache_clear()
    newer = system.watch(tzdata="2099z")
    assert newer.revive("emails", until=math.inf) == 0
    system.live(120)
    assert system.scheduled_times() == [(12 - 3 - 7) * 60 - 5]
    calls = system.calls()
    newer.revive("emails", until=math.inf)
    assert "table.write" not in calls


def test_watchdog_ignores_a_recent_change():
    system = Running()
    system.live(30)
    system.define(every=5 * A_MINUTE)
    assert system.watchdog.revive("emails", until=math.inf) == 0
    system.wire.around = on("table.plan", lambda _: False)
    system.live(15)
    system.wire.around = straight
    assert system.watchdog.revive("emails", until=math.inf) == 1


def test_watchdog_counts_an_unreadable_head(caplog):
    system = Running(name="lost")
    pk, sk = head_key("emails", "broken")
    system.table.write([{"pk": pk, "sk": sk, "generation": 1}])
    system.clock.sleep(3600)
    system.tick()
    assert system.watchdog.revive("emails", until=math.inf) == 2
    assert "('emails#schedules', 'broken')" in caplog.text
    system.live(5)
    assert system.scheduled_times()[0] >= 59
