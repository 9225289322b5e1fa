"""A promise that no mutation breaks can be broken, by hand: mutations show that of the others."""

from datetime import timedelta

import pytest

from dueline.schedules.head import Head, occurrence
from tests.builders import EMAILS, NOW, RETENTION, a_job
from tests.simulation.actions import Rule
from tests.simulation.processes import definition_of
from tests.simulation.record import ScheduleRecord, Sent, Version, Violation

MINUTE = timedelta(minutes=1)
HEAD = Head(
    queue="emails",
    name="s0",
    definition=definition_of(Rule(0)),
    generation=1,
    start=NOW,
    partition=EMAILS,
    planned_to=NOW,
    retention=RETENTION,
)


def test_second_job_for_one_run_is_named():
    first = occurrence(HEAD, NOW + MINUTE).id
    schedules = ScheduleRecord(versions={("emails", "s0"): [Version(head=HEAD, at=0.0)]})
    came = [
        Sent(id=id, queue="emails", visible=id.due, by="a tick", rule=0, schedule="s0", scheduled_for=NOW + MINUTE)
        for id in (first, a_job(due=first.due).id)
    ]
    schedules.check(came[:1], gone=())
    with pytest.raises(Violation, match="one run"):
        schedules.check(came, gone=())
