"""The promises of schedules can be broken: each is, by hand, and the timetable tells."""

from dataclasses import replace
from datetime import timedelta

import pytest

from dueline.model.job import JobId
from dueline.schedules.head import Head
from dueline.schedules.occurrence import occurrence
from tests.builders import EMAILS, NOW, RETENTION
from tests.simulation.acts import Rule
from tests.simulation.broken import Broken
from tests.simulation.planning import definition_of
from tests.simulation.record import Sent
from tests.simulation.timetable import Served, Step, Timetable

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
CUT = {"start": at(3), "paused": False, "deleted": False, "retention": RETENTION}
CHANGED = FIRST.next(definition=definition_of(Rule(1)), **CUT)
PAUSED = FIRST.next(definition=FIRST.definition, **(CUT | {"paused": True}))
PUT_OFF = replace(FIRST, definition=definition_of(Rule(0, jitter=60)))


def sent(head, *minutes):
    return [_sent(head, occurrence(head, at(each)).id, each) for each in minutes]


def _sent(head, id: JobId, minute):
    rule = head.generation - 1
    return Sent(id=id, queue="emails", visible=id.due, by="a tick", rule=rule, schedule="s0", nominal=at(minute))


def check(heads, came, *, decided=NOW, planned_to=10, ended=6):
    timetable = Timetable(ended=at(ended))
    for head in heads:
        timetable.served[SCHEDULE].append(Served(head=head, at=0.0))
        step = Step(generation=head.generation, after=head.start, until=at(planned_to), decided=decided)
        timetable.steps[SCHEDULE].append(step)
    timetable.check(came, gone=())


@pytest.mark.parametrize(
    ("heads", "came"),
    [
        ([FIRST], sent(FIRST, 1, 2, 3, 4, 5, 6)),
        ([FIRST, CHANGED], [*sent(FIRST, 1, 2, 3), *sent(CHANGED, 4, 5, 6)]),
        ([FIRST, PAUSED], sent(FIRST, 1, 2, 3)),
    ],
)
def test_what_keeps_every_promise_passes(heads, came):
    check(heads, came)


def test_what_catch_up_leaves_out_is_not_missed():
    check([FIRST], sent(FIRST, 3, 4, 5, 6), decided=at(3.5))


BROKEN = [
    ("never neither", [FIRST, CHANGED], [*sent(FIRST, 1, 2), *sent(CHANGED, 4, 5, 6)]),
    ("never neither", [FIRST, CHANGED], [*sent(FIRST, 1, 2, 3), *sent(CHANGED, 5, 6)]),
    ("never both", [FIRST, CHANGED], [*sent(FIRST, 1, 2, 3, 4), *sent(CHANGED, 4, 5, 6)]),
    ("never both", [FIRST, CHANGED], [*sent(FIRST, 1, 2, 3), *sent(CHANGED, 3, 4, 5, 6)]),
    ("never both", [FIRST], sent(FIRST, 1, 1.5, 2, 3, 4, 5, 6)),
    ("nothing after a pause", [FIRST, PAUSED], sent(FIRST, 1, 2, 3, 4)),
    ("nothing after a pause", [PUT_OFF, PAUSED], sent(PUT_OFF, 1, 2, 3)),
    ("one run", [FIRST], [*sent(FIRST, 1, 2, 3, 4, 5, 6), _sent(FIRST, occurrence(PUT_OFF, at(6)).id, 6)]),
]


@pytest.mark.parametrize(("promise", "heads", "came"), BROKEN)
def test_what_breaks_a_promise_is_told_by_its_name(promise, heads, came):
    with pytest.raises(Broken) as broken:
        check(heads, came)
    assert broken.value.promise == promise


def test_a_run_of_a_pause_that_is_caught_up_after_it_is_told():
    resumed = PAUSED.next(definition=definition_of(Rule(2)), **(CUT | {"start": at(4)}))
    heads = [(FIRST, NOW), (PAUSED, at(3)), (resumed, at(5))]
    timetable = Timetable(served={SCHEDULE: [Served(head=head, at=0.0, decided=decided) for head, decided in heads]})
    timetable.check([*sent(FIRST, 1, 2, 3), *sent(resumed, 6)], gone=())
    with pytest.raises(Broken, match=r"nothing after a pause: .* of the pause"):
        timetable.check(sent(resumed, 5), gone=())


def test_a_schedule_that_nobody_plans_any_more_is_told():
    with pytest.raises(Broken, match="a schedule does not die"):
        check([FIRST], sent(FIRST, 1, 2, 3), planned_to=3)


def test_an_answer_is_held_against_what_served():
    timetable = Timetable(served={SCHEDULE: [Served(head=FIRST, at=1.0), Served(head=CHANGED, at=2.0)]})
    timetable.check_answer(SCHEDULE, FIRST, NOW, began=1.5)
    timetable.check_answer(SCHEDULE, CHANGED, at(3), began=3.0)
    for head, effective_from in ((FIRST, NOW), (CHANGED, at(2)), (replace(CHANGED, generation=3), at(3))):
        with pytest.raises(Broken, match="as answered"):
            timetable.check_answer(SCHEDULE, head, effective_from, began=3.0)
