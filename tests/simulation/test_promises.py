"""The promises can be broken: each is, by hand, and the record tells."""

from collections import Counter
from datetime import timedelta

import pytest

from dueline.model.rows import cancellation_key, job_key
from dueline.protocol.dispatch import PAST_RETENTION
from dueline.protocol.move import Intent
from tests.builders import NOW, a_job
from tests.simulation.broken import Broken
from tests.simulation.record import Parked, Record, Sent

JOB = a_job()
NEW = a_job()
INTENT = {NEW.id: Intent(job=NEW, old=JOB.id)}
NEWER = a_job()
CHAIN = {**INTENT, NEWER.id: Intent(job=NEWER, old=NEW.id)}
OVER = JOB.expires + timedelta(seconds=1)


def a_record(**known):
    return Record(accepted={JOB.id: JOB}, **known)


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
        a_record(outlived={JOB.id}),
        a_record(sent=[sent(level=2, priority=2)]),
        a_record(sent=[sent(id=NEW.id, visible=NEW.id.due)], intents=INTENT),
        a_record(sent=[sent()], intents=INTENT, refused={NEW.id}),
        a_record(sent=[sent(id=NEWER.id, visible=NEWER.id.due)], intents=CHAIN),
    ],
)
def test_what_keeps_every_promise_passes(record):
    record.check()


BROKEN = [
    ("never lost", a_record()),
    ("never lost", a_record(asked_back={JOB.id: 1.0})),
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
def test_what_breaks_a_promise_is_told_by_its_name(promise, record):
    with pytest.raises(Broken) as broken:
        record.check()
    assert broken.value.promise == promise
