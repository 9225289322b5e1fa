"""A deployment that lost its tables, or rows of them, takes over what was restored to a point in time."""

import os
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from itertools import count
from types import MappingProxyType, SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dueline.core import rows
from dueline.core.job import Partition, State
from dueline.core.overview import control_among
from dueline.core.queue_settings import Rate
from dueline.errors import RETRYABLE, AlreadyFinished, InvalidJob, NotYet, Unavailable
from dueline.operations.restore import BEFORE, LASTS, LATER, NOW, SETTLED, THERE, Parts, Restore
from tests.builders import EMAILS, a_job, a_queue
from tests.memory_operations import MemoryBackup
from tests.system import PERIODS, System
from tests.wire import Wire

EXAMPLES = int(os.environ.get("RESTORES", "60"))
RUNS = count()
TWO = [Partition(queue="emails", number=number) for number in (0, 1)]


class Crash(BaseException):
    """The process is no more."""


def a_restore(system, backup, *, before=MappingProxyType({}), hand_over_from=None, has_tick=lambda _: True):
    """Return a restore; `before` its calls of some numbers, counted from 1, something is done."""
    calls, wire = count(1), Wire()

    def around(call):
        before.get(next(calls), int)()
        return call.do(*call.args)

    wire.around = around
    parts = Parts(
        backup,
        table=wire.to("table", system.stores.table),
        inbound=wire.to("inbound", system.stores.inbound),
        clock=system.clock,
        lookahead=PERIODS.lookahead,
        owner=f"restore-{next(RUNS)}",
        has_tick=has_tick,
        hand_over_from=hand_over_from,
    )
    return Restore(parts, retrying=patiently)


def carried_on(system, backup):
    """Restore again after a run that may have been killed, whose lock may still be there."""
    try:
        return a_restore(system, backup).apply()
    except NotYet:
        system.clock.sleep(LASTS.total_seconds())
        return a_restore(system, backup).apply()


def patiently(call):
    for _ in range(3):
        try:
            return call()
        except RETRYABLE:
            continue
    return call()


def crash():
    raise Crash


def fault():
    raise Unavailable("no answer")


def lose(system, is_lost=lambda key: True):
    system.stores.table.collect([key for row in system.stores.table.all() if is_lost(key := rows.key(row))])


def counted(restored):
    return {kind: count for kind, count in restored.jobs.get("emails", {}).items() if count}


# What is done before the backup, between it and the loss, and between the loss and the restore.
STEPS = st.one_of(
    st.tuples(st.just("schedule"), st.sampled_from([100, 250, 300, 600, 1000])),
    st.tuples(st.just("schedule"), st.sampled_from([241, 500, 1500])),
    st.tuples(st.just("cancel"), st.integers(0, 7)),
    st.tuples(st.just("move"), st.integers(0, 7)),
    st.tuples(st.just("wait"), st.sampled_from([60, 300])),
    st.tuples(st.just("tick"), st.integers(0, 1)),
    st.tuples(st.just("go on"), st.sampled_from([30, 100, 400])),
)
HISTORIES = st.lists(STEPS, min_size=2, max_size=14)


@dataclass
class Drill:
    """A deployment, and the answers to its callers."""

    system: System = field(
        default_factory=lambda: System(a_queue(partitions=2), page_rows=3, direct_horizon=timedelta(0))
    )
    alive: list = field(default_factory=list)
    unasked: set = field(default_factory=set)
    promised: dict = field(default_factory=dict)

    def __post_init__(self):
        # Nobody can give it jobs before its schedules stand.
        self._tick(*TWO)

    def play(self, history, *, ticks=True):
        for what, how in history:
            if what in ("wait", "go on"):
                self.system.clock.sleep(how)
            if what == "go on" and ticks:
                self._tick(*TWO)
            if what == "schedule":
                self._accept(self.system.schedule(how).id)
            if what == "tick" and ticks:
                self._tick(TWO[how])
            if self.alive and what in ("cancel", "move"):
                getattr(self, what)(self.alive[how % len(self.alive)])

    def _tick(self, *partitions):
        for partition in partitions:
            self.system.tick(partition)

    def cancel(self, id):
        result = self.system.cancel_job(id)
        self.unasked -= {id, result.id}
        if result.state == State.CANCELLED:
            self.promised |= {each: self.arrived[each] for each in (id, result.id)}

    def move(self, id):
        """Move a job from where it is now, by any of its ids."""
        while moved := self._moved(id):
            id = moved
        try:
            new = self.system.reschedule(id, delay=1200)
        except (AlreadyFinished, *RETRYABLE):
            return
        if new == id:
            return
        self.unasked.discard(id)
        self.promised[id] = self.arrived[id]
        self._accept(new)

    def _moved(self, id):
        key = rows.cancellation_key(id)
        row = self.system.table.read([key]).rows.get(key)
        return row and rows.moved_to(row)

    def _accept(self, id):
        # A move to the same time is answered as before.
        if id not in self.alive:
            self.alive.append(id)
            self.unasked.add(id)

    def settle(self):
        """Let the time of all jobs come."""
        for _ in range(8):
            self.system.ingest()
            for partition in TWO:
                while not self.system.tick(partition).finished:
                    pass
            self.system.clock.sleep(400)
        self.system.ingest()

    @property
    def arrived(self):
        return Counter(self.system.arrived())


def _job_of(key):
    pk, sk = key
    return pk, rows.prefix_and_kind(sk)[0]


LOSSES = ("both tables", "the table of jobs", "some jobs", "the table of states")


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    before=HISTORIES,
    between=HISTORIES,
    after=HISTORIES,
    loss=st.sampled_from(LOSSES),
    at=st.integers(10, 90),
    meanwhile=st.one_of(st.sampled_from([crash, fault]), HISTORIES),
    part_rows=st.integers(1, 5),
    data=st.data(),
)
def test_restore_keeps_all_promises(before, between, after, loss, at, meanwhile, part_rows, data):
    drill = Drill()
    system = drill.system
    drill.play(before)
    system.ingest()
    backup = MemoryBackup(system.stores.table, part_rows=part_rows)
    cached, promised, come = set(drill.unasked), dict(drill.promised), drill.arrived
    drill.play(between)
    system.ingest()
    since = drill.unasked - cached
    jobs_survive = loss == "the table of states"
    if loss == "some jobs":
        keys = map(rows.key, system.stores.table.all())
        there = sorted({_job_of(key) for key in keys if not rows.in_state_table(key)})
        lost = set(data.draw(st.lists(st.sampled_from(there)))) if there else set()
        lose(system, lambda key: _job_of(key) in lost)
    else:
        lose(system, lambda key: loss == "both tables" or rows.in_state_table(key) == jobs_survive)
    if not jobs_survive:
        drill.promised, drill.unasked = promised, drill.unasked - since
        drill.alive = [id for id in drill.alive if id not in since]
    # Where the states alone are lost, ticks would begin again with all jobs: docs/restore.md has them stopped.
    goes_on = partial(drill.play, ticks=not jobs_survive)
    goes_on(after)
    act = meanwhile if callable(meanwhile) else partial(goes_on, meanwhile)
    kept = system.stores.table.all()
    a_restore(system, backup).look()
    assert system.stores.table.all() == kept
    try:
        a_restore(system, backup, before={at: act}).apply()
    except Crash:
        goes_on([("tick", 0), ("tick", 1)])
    system.ingest()
    carried_on(system, backup)
    sent = len(system.inbound.deliveries)
    assert a_restore(system, backup).apply().is_over
    assert len(system.inbound.deliveries) == sent
    drill.settle()
    arrived = drill.arrived
    # A repeated request for a move of between is answered with the job that was lost with its row.
    gone = set() if jobs_survive else since
    assert drill.unasked - gone <= set(arrived) | set(system.parked()), "lost"
    for id, times in drill.promised.items():
        assert arrived[id] == times, "delivered after it was cancelled"
    assert all(arrived[id] == times for id, times in come.items()), "sent again"
    for delivery in system.queues["emails"].deliveries:
        assert delivery.visible >= delivery.message.job().id.due, "early"


@pytest.fixture
def deployment():
    """A deployment, its backup of a job in each state, and then the loss of all rows."""
    system = System(a_queue(partitions=1))
    come, cancelled, late, waits, moved = (a_job(due=system.clock.now() + timedelta(seconds=s)) for s in DUE)
    system.put(come, cancelled, late, waits, moved)
    system.tick(EMAILS)
    assert system.cancel(cancelled.id) is State.CANCELLED
    new = system.reschedule(moved.id, delay=7200)
    system.deployed = SimpleNamespace(come=come, cancelled=cancelled, late=late, waits=waits, moved=moved, new=new)
    return system


DUE = (60, 900, 1000, 5000, 4000)


def lost(system):
    backup = MemoryBackup(system.stores.table)
    lose(system)
    system.clock.sleep(2000)
    return backup


def test_look_says_what_the_restore_does(deployment):
    backup = lost(deployment)
    looked = a_restore(deployment, backup).look()
    assert counted(looked) == {BEFORE: 1, SETTLED: 2, NOW: 1, LATER: 2}
    assert not deployment.stores.table.all()
    assert counted(a_restore(deployment, backup).apply()) == counted(looked)
    deployment.tick(EMAILS)
    deployment.ingest()
    jobs = deployment.deployed
    assert deployment.arrived() == [jobs.come.id, jobs.late.id]
    assert deployment.look_up(jobs.cancelled.id) is State.CANCELLED
    assert [deployment.look_up(id) for id in (jobs.moved.id, jobs.waits.id, jobs.new)] == [State.SCHEDULED] * 3


def test_existing_rows_stay_and_are_reported(deployment):
    backup = MemoryBackup(deployment.stores.table)
    deployment.clock.sleep(900)
    deployment.tick(EMAILS)
    assert deployment.cancel(deployment.deployed.waits.id) is State.CANCELLED
    kept = deployment.stores.table.all()
    assert counted(a_restore(deployment, backup).look())[THERE] == 3
    assert counted(a_restore(deployment, backup).apply())[THERE] == 3
    there = deployment.stores.table.all()
    assert [row for row in kept if not rows.in_state_table(rows.key(row)) and row not in there] == []
    assert deployment.look_up(deployment.deployed.waits.id) is State.CANCELLED
    deployment.ingest()
    assert deployment.arrived() == [deployment.deployed.come.id, deployment.deployed.late.id]


@pytest.mark.parametrize(("since", "comes_again"), [(0, ["come", "late"]), (500, ["late"]), (1500, [])])
def test_due_time_decides_what_is_sent(deployment, since, comes_again):
    moment = deployment.clock.now() + timedelta(seconds=since)
    backup, before = lost(deployment), deployment.arrived()
    a_restore(deployment, backup, hand_over_from=moment).apply()
    deployment.ingest()
    deployment.tick(EMAILS)
    answers = vars(deployment.deployed)
    assert deployment.arrived()[len(before) :] == [answers[name].id for name in comes_again]


@pytest.mark.parametrize("ends_early", [True, False])
@pytest.mark.parametrize("started", [True, False])
def test_continued_restore_keeps_its_bound(deployment, started, ends_early):
    moment, backup = deployment.clock.now(), lost(deployment)
    before = {30: crash} if ends_early else {}
    first, second = ({"hand_over_from": moment if each else None} for each in (started, not started))
    with suppress(Crash):
        a_restore(deployment, backup, before=before, **first).apply()
    deployment.clock.sleep(LASTS.total_seconds() + 1)
    kept = deployment.stores.table.all()
    with pytest.raises(InvalidJob, match=r"was started with .*--hand-over-from.*: continue it as it was started"):
        a_restore(deployment, backup, **second).apply()
    assert but_the_run(deployment.stores.table.all()) == but_the_run(kept)
    a_restore(deployment, backup, **first).apply()


def but_the_run(kept):
    return [row for row in kept if row["sk"] != "run"]


def test_job_past_its_retention_is_parked(deployment):
    backup = lost(deployment)
    deployment.clock.sleep(timedelta(days=30).total_seconds())
    a_restore(deployment, backup).apply()
    deployment.ingest()
    jobs = deployment.deployed
    assert set(deployment.parked()) == {jobs.late.id, jobs.waits.id, jobs.new}


def test_pauses_and_rates_are_restored(deployment):
    table, now = deployment.stores.table, deployment.clock.now()
    table.write([rows.paused_row("emails", paused=True, at=now), rows.rate_row("emails", None, at=now)])
    backup = lost(deployment)
    table.write([rows.rate_row("emails", Rate.parse("5/s"), at=deployment.clock.now())])
    a_restore(deployment, backup).apply()
    result = table.read([rows.paused_key("emails"), rows.rate_key("emails")]).rows
    control = control_among(result, "emails")
    assert (control.paused, control.rate) == (True, Rate.parse("5/s"))


def test_notes_of_the_watch_stay_in_the_backup(deployment):
    """Which mails were sent is of the deployment that was backed up; they are no rows of a wrong table either."""
    note = {"pk": rows.WATCH, "sk": "mails", "open": "[]"}
    deployment.stores.table.write([note])
    backup = lost(deployment)
    assert note in backup.states(after=None).rows
    a_restore(deployment, backup).apply()
    assert rows.key(note) not in {rows.key(row) for row in deployment.stores.table.all()}


def test_tables_that_are_interchanged_are_refused(deployment):
    class Interchanged(MemoryBackup):
        def states(self, *, after):
            return super().jobs(0, of=1, after=after)

    backup = Interchanged(deployment.stores.table)
    with pytest.raises(InvalidJob, match="the wrong way round"):
        a_restore(deployment, backup).apply()


def test_restored_job_needs_a_tick(deployment):
    backup = lost(deployment)
    for run in ("look", "apply"):
        with pytest.raises(InvalidJob, match="jobs for partition emails#0, which no tick reads here"):
            getattr(a_restore(deployment, backup, has_tick=lambda _: False), run)()
    assert not [row for row in deployment.stores.table.all() if rows.key(row)[1].endswith("#job")]
    assert counted(a_restore(deployment, backup).apply()) == {BEFORE: 1, SETTLED: 2, NOW: 1, LATER: 2}


def test_dispatched_jobs_need_no_tick():
    system = System(a_queue(partitions=1))
    system.put(a_job(due=system.clock.now() + timedelta(seconds=60)))
    system.tick(EMAILS)
    backup = lost(system)
    assert counted(a_restore(system, backup, has_tick=lambda _: False).apply()) == {BEFORE: 1}


def test_backup_without_states_is_refused(deployment):
    deployment.stores.table.collect([rows.state_key(EMAILS)])
    backup, before = lost(deployment), deployment.arrived()
    for run in ("look", "apply"):
        with pytest.raises(InvalidJob, match="jobs of partition emails#0 and no state of it"):
            getattr(a_restore(deployment, backup), run)()
    deployment.ingest()
    assert deployment.arrived() == before
    assert NOW not in counted(a_restore(deployment, backup, hand_over_from=deployment.clock.now()).apply())


def test_restore_waits_for_a_running_tick(deployment):
    backup = lost(deployment)
    lease = deployment.a_lease(EMAILS)
    assert lease.acquire()
    before = deployment.clock.now()
    a_restore(deployment, backup).apply()
    assert deployment.clock.now() - before >= PERIODS.lease


def test_progress_that_is_left_unwritten_is_written_again(monkeypatch):
    system = System(a_queue(partitions=1), direct_horizon=timedelta(0))
    system.tick(EMAILS)
    system.schedule(3600)
    backup, table, numbers = MemoryBackup(system.stores.table), system.stores.table, count()
    lose(system)
    write = table.write
    monkeypatch.setattr(table, "write", lambda some: write(some) if next(numbers) % 2 else list(some))
    assert not a_restore(system, backup).apply().is_over
    assert a_restore(system, backup).apply().is_over


def test_second_restore_at_once_is_refused(deployment):
    backup = lost(deployment)

    def another():
        with pytest.raises(NotYet, match="another run takes over backup"):
            a_restore(deployment, backup).apply()

    a_restore(deployment, backup, before=dict.fromkeys(range(2, 30), another)).apply()
    assert a_restore(deployment, backup).apply().is_over


def test_lock_of_another_run_is_not_released(deployment):
    backup = MemoryBackup(deployment.stores.table, part_rows=1)
    lose(deployment)

    def overtaken():
        deployment.clock.sleep(LASTS.total_seconds())
        with pytest.raises(Crash):
            a_restore(deployment, backup, before=dict.fromkeys(range(14, 1000), crash)).apply()

    for before in ({14: overtaken}, {}):
        with pytest.raises(NotYet, match="another run takes over backup"):
            a_restore(deployment, backup, before=before).apply()


def test_job_scheduled_since_the_loss_is_not_passed_over():
    system = System(a_queue(partitions=1), direct_horizon=timedelta(0))
    system.schedule(200)
    system.tick(EMAILS)
    backup = MemoryBackup(system.stores.table)
    lose(system)
    since = system.schedule(100)
    system.ingest()
    a_restore(system, backup).apply()
    system.ingest()
    system.clock.sleep(300)
    system.tick(EMAILS)
    assert since.id in system.arrived()
