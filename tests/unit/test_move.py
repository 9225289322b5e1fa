"""Intents, as ingest meets them."""

from dataclasses import replace
from datetime import timedelta

import pytest

from dueline.core import instant, rows
from dueline.core.dispatch import PAST_RETENTION
from dueline.core.ingest import PATIENT_RECEIVES
from dueline.core.job import MAX_RETENTION, Partition, Route, State
from dueline.core.message import MOVES, Message
from dueline.core.status import Status
from dueline.errors import AlreadyFinished, InvalidJob
from tests.builders import EMAILS, NOW, RETENTION, a_job, an_id
from tests.system import System
from tests.wire import meanwhile, on

OLD_DUE = NOW + timedelta(hours=1)


def an_intent(old):
    due = NOW + timedelta(hours=2)
    new = a_job(due=due, expires=due + RETENTION)
    return new, Message.of(new, group="emails", moves=old.id)


def a_system():
    system, old = System(), a_job(due=OLD_DUE)
    system.put(old)
    return system, old


def outcome(done):
    return done.failed, done.moved, done.dropped


# Ingest


@pytest.mark.parametrize("intent_first", [True, False])
def test_refused_move_drops_no_submission(intent_first):
    """A job that was submitted under the id of a refused reschedule is ingested, also when both share a batch."""
    system, old = a_system()
    system.table.acquire_lease(EMAILS, owner="me", now="", lease="", fence=instant.text(OLD_DUE))
    new, intent = an_intent(old)
    submitted = replace(new, payload='"submitted"')
    both = [intent, Message.of(submitted)]
    done = system.ingest_message(*(both if intent_first else reversed(both)))
    assert outcome(done) == (set(), set(), set())
    key = rows.job_key(submitted.id)
    assert rows.read_job(system.table.read([key]).rows[key]) == submitted


@pytest.mark.parametrize(("seconds", "moved"), [(4.9, 2), (5, 1)])
def test_no_intent_starts_in_the_second_half(seconds, moved):
    system, old = a_system()
    for _ in range(2):
        system.inbound.send([an_intent(old)[1]])
    system.wire.around = on("table.move", meanwhile(lambda: system.clock.sleep(seconds)), times=1)
    done = system.an_ingest().run(system.received(), until=system.clock.monotonic() + 10)
    assert (len(done.moved | done.dropped), len(done.failed)) == (moved, 2 - moved)
    assert system.clock.monotonic() == seconds


def test_job_moved_without_ticks_is_parked():
    system, old = a_system()
    partition = Partition(queue="emails", number=7)
    jobs = [a_job(due=OLD_DUE, partition=partition) for _ in range(2)]
    for job in jobs:
        system.inbound.send([Message.of(job, moves=old.id)])
    batch = [replace(each, receives=PATIENT_RECEIVES) for each in system.received()]
    assert outcome(system.ingest(batch)) == (set(), {jobs[0]}, {jobs[1]})
    assert system.parked() == [jobs[0].id]


# Long after


def test_expired_unknown_move_is_parked():
    system, old = a_system()
    new, intent = an_intent(old)
    system.clock.sleep((OLD_DUE + MAX_RETENTION - NOW).total_seconds())
    done = system.ingest_message(intent)
    assert [(parked.job, parked.reason) for parked in done.parked] == [(new, PAST_RETENTION)]
    assert (done.failed, system.arrived()) == (set(), [])


# The message


@pytest.mark.parametrize(
    "named",
    [
        "",
        "emails",
        str(an_id(partition=Partition(queue="invoices", number=0))),
        str(an_id(route=Route.DIRECT)),
        "itself",
    ],
)
def test_bad_intent_is_rejected_with_the_reason(named):
    system, new = System(), a_job()
    answer = str(new.id) if named == "itself" else named
    intent = Message(body=new.payload, attributes={**Message.of(new).attributes, MOVES: answer})
    for wrong in (intent, Message.of(a_job(route=Route.DIRECT), moves=a_job().id)):
        with pytest.raises(InvalidJob, match=MOVES):
            wrong.moves()
    with pytest.raises(InvalidJob):
        Message(body="{}", attributes={MOVES: str(an_id())}).moves()
    done = system.ingest_message(intent)
    assert len(done.rejected) == 1
    assert system.in_the_table() == []


# The row


@pytest.mark.parametrize("forged", [f"bills.0.t.{instant.epoch_ms(OLD_DUE)}.{an_id().uid}", "nonsense"])
def test_foreign_moved_to_is_a_plain_cancellation(forged):
    system, old = a_system()
    system.table.add({**rows.cancellation_row(old.id, at=NOW), "exact": True, "moved_to": forged})
    assert system.job_status(old.id) == (old.id, Status(state=State.CANCELLED))
    with pytest.raises(AlreadyFinished, match="was cancelled") as refused:
        system.reschedule(old.id, at=OLD_DUE)
    assert refused.value.job_id is None
    new, intent = an_intent(old)
    assert outcome(system.ingest_message(intent)) == (set(), set(), {new})
