"""Each promise can be broken: each is, by hand, and the record's check names it."""

from collections import Counter
from dataclasses import replace
from datetime import timedelta

import pytest

from dueline.core.dispatch import PAST_RETENTION
from dueline.core.job import JobId
from dueline.core.move import Intent
from dueline.core.rows import cancellation_key, job_key
from dueline.schedules.head import Head, occurrence
from tests.builders import EMAILS, NOW, RETENTION, a_job
from tests.simulation.actions import Rule
from tests.simulation.processes import definition_of
from tests.simulation.record import Parked, Record, ScheduleRecord, Sent, Step, Version, Violation

JOB = a_job()
NEW = a_job()
INTENT = {NEW.id: Intent(job=NEW, old=JOB.id)}
NEWER = a_job()
CHAIN = {**INTENT, NEWER.id: Intent(job=NEWER, old=NEW.id)}
OVER = JOB.expires + timedelta(seconds=1)


def a_record(**fields):
    return Record(accepted={JOB.id: JOB}, **fields)


def sent(**overrides):
    return Sent(**({"id": JOB.id, "queue": "emails", "visible": JOB.id.due, "by": "a tick"} | overrides))


def parked(**overrides):
    return Parked(**({"job": JOB, "reason": PAST_RETENTION, "at": OVER} | overrides))


@pytest.mark.parametrize(
    "record",
    [
        a_record(sent=[sent()]),
        a_record(parked=[parked()]),
        a_record(parked=[parked(reason="gone", at=NOW)], vanished={("emails", 1)}),
        a_record(written={cancellation_key(JOB.id): 1.0}, promised={JOB.id}),
        a_record(sent=[sent(), sent()], excused={JOB.id}),
        a_record(sent=[sent(), sent()], interrupted=Counter({"a tick": 1})),
        a_record(collected_early={JOB.id}),
        a_record(sent=[sent(level=2, priority=2)]),
        a_record(sent=[sent(id=NEW.id, visible=NEW.id.due)], intents=INTENT),
        a_record(sent=[sent()], intents=INTENT, refused={NEW.id}),
        a_record(sent=[sent(id=NEWER.id, visible=NEWER.id.due)], intents=CHAIN),
    ],
)
def test_kept_promises_pass(record):
    record.check()


BROKEN = [
    ("never lost", a_record()),
    ("never lost", a_record(cancel_requested={JOB.id: 1.0})),
    ("never lost", a_record(written={job_key(JOB.id): 1.0})),
    ("never lost", a_record(parked=[parked()], put_back=Counter({JOB.id: 1}))),
    ("never lost", a_record(parked=[parked(at=NOW)])),
    ("never lost", a_record(parked=[parked(reason="throttled")])),
    ("never neither", a_record(intents=CHAIN)),
    ("never both", a_record(sent=[sent(), sent(id=NEW.id)], intents=INTENT)),
    ("never both", a_record(sent=[sent(), sent(id=NEWER.id)], intents=CHAIN)),
    ("no second job", a_record(sent=[sent(id=NEW.id)], intents=INTENT, refused={NEW.id})),
    ("exact cancel", a_record(sent=[sent()], promised={JOB.id})),
    ("never early", a_record(sent=[sent(visible=JOB.id.due - timedelta(milliseconds=1))])),
    ("isolation", a_record(sent=[sent(queue="invoices")])),
    ("own level", a_record(sent=[sent(level=2)])),
    ("own level", a_record(sent=[sent(priority=2)])),
    ("never lost", a_record(parked=[parked(reason="gone", at=NOW)], vanished={("emails", 2)})),
    ("at least once", a_record(sent=[sent(), sent()])),
    ("at least once", a_record(sent=[sent(), sent()], interrupted=Counter({"another": 1}))),
]


@pytest.mark.parametrize(("promise", "record"), BROKEN, ids=[f"{promise}-{n}" for n, (promise, _) in enumerate(BROKEN)])
def test_broken_promise_is_named(promise, record):
    with pytest.raises(Violation) as violation:
        record.check()
    assert violation.value.promise == promise


# Schedules

SCHEDULE = ("emails", "s0")


def at(minutes):
    return NOW + timedelta(minutes=minutes)


FIRST = Head(
    queue="emails",
    name="s0",
    definition=definition_of(Rule(0)),
    generation=1,
    start=NOW,
    partition=EMAILS,
    planned_to=NOW,
    retention=RETENTION,
)
CUTOVER = {"start": at(3), "paused": False, "deleted": False, "partition": EMAILS, "retention": RETENTION}
CHANGED = FIRST.next(definition=definition_of(Rule(1)), **CUTOVER)
PAUSED = FIRST.next(definition=FIRST.definition, **(CUTOVER | {"paused": True}))
DELAYED = replace(FIRST, definition=definition_of(Rule(0, jitter=60)))


def runs(head, *minutes):
    return [_run(head, occurrence(head, at(each)).id, each) for each in minutes]


def _run(head, id: JobId, minute):
    rule = head.generation - 1
    return Sent(id=id, queue="emails", visible=id.due, by="a tick", rule=rule, schedule="s0", scheduled_for=at(minute))


def check(heads, came, *, decided=NOW, planned_to=10, ended=6):
    schedules = ScheduleRecord(ended=at(ended))
    for head in heads:
        schedules.versions[SCHEDULE].append(Version(head=head, at=0.0))
        step = Step(generation=head.generation, after=head.start, until=at(planned_to), decided=decided)
        schedules.steps[SCHEDULE].append(step)
    schedules.check(came, gone=())


@pytest.mark.parametrize(
    ("heads", "came"),
    [
        ([FIRST], runs(FIRST, 1, 2, 3, 4, 5, 6)),
        ([FIRST, CHANGED], [*runs(FIRST, 1, 2, 3), *runs(CHANGED, 4, 5, 6)]),
        ([FIRST, PAUSED], runs(FIRST, 1, 2, 3)),
    ],
)
def test_kept_promises_of_schedules_pass(heads, came):
    check(heads, came)


def test_runs_that_catch_up_leaves_out_are_not_missed():
    check([FIRST], runs(FIRST, 3, 4, 5, 6), decided=at(3.5))


BROKEN_OF_SCHEDULES = [
    ("never neither", [FIRST, CHANGED], [*runs(FIRST, 1, 2), *runs(CHANGED, 4, 5, 6)]),
    ("never neither", [FIRST, CHANGED], [*runs(FIRST, 1, 2, 3), *runs(CHANGED, 5, 6)]),
    ("never both", [FIRST, CHANGED], [*runs(FIRST, 1, 2, 3, 4), *runs(CHANGED, 4, 5, 6)]),
    ("never both", [FIRST, CHANGED], [*runs(FIRST, 1, 2, 3), *runs(CHANGED, 3, 4, 5, 6)]),
    ("never both", [FIRST], runs(FIRST, 1, 1.5, 2, 3, 4, 5, 6)),
    ("nothing after a pause", [FIRST, PAUSED], runs(FIRST, 1, 2, 3, 4)),
    ("nothing after a pause", [DELAYED, PAUSED], runs(DELAYED, 1, 2, 3)),
    ("one run", [FIRST], [*runs(FIRST, 1, 2, 3, 4, 5, 6), _run(FIRST, occurrence(DELAYED, at(6)).id, 6)]),
]


@pytest.mark.parametrize(("promise", "heads", "came"), BROKEN_OF_SCHEDULES)
def test_broken_promise_of_schedules_is_named(promise, heads, came):
    with pytest.raises(Violation) as violation:
        check(heads, came)
    assert violation.value.promise == promise


def test_catching_up_a_pause_breaks_a_promise():
    resumed = PAUSED.next(definition=definition_of(Rule(2)), **(CUTOVER | {"start": at(4)}))
    heads = [(FIRST, NOW), (PAUSED, at(3)), (resumed, at(5))]
    schedules = ScheduleRecord(
        versions={SCHEDULE: [Version(head=head, at=0.0, decided=decided) for head, decided in heads]}
    )
    schedules.check([*runs(FIRST, 1, 2, 3), *runs(resumed, 6)], gone=())
    with pytest.raises(Violation, match=r"nothing after a pause: .* of the pause"):
        schedules.check(runs(resumed, 5), gone=())


def test_unplanned_schedule_breaks_a_promise():
    with pytest.raises(Violation, match="a schedule does not die"):
        check([FIRST], runs(FIRST, 1, 2, 3), planned_to=3)


def test_answer_is_checked_against_versions():
    schedules = ScheduleRecord(versions={SCHEDULE: [Version(head=FIRST, at=1.0), Version(head=CHANGED, at=2.0)]})
    schedules.check_answer(SCHEDULE, FIRST, NOW, began=1.5)
    schedules.check_answer(SCHEDULE, CHANGED, at(3), began=3.0)
    for head, effective_from in ((FIRST, NOW), (CHANGED, at(2)), (replace(CHANGED, generation=3), at(3))):
        with pytest.raises(Violation, match="as answered"):
            schedules.check_answer(SCHEDULE, head, effective_from, began=3.0)
