"""What the protocol costs in DynamoDB's units.

On dynalite alone, whose units are AWS's: moto's are wrong for what it writes over 1 KB, MiniStack's for what it reads.
"""

import base64
import math
import random
from collections import Counter
from contextlib import contextmanager
from functools import partial

import pytest

from bench.counted import row_bytes, write_units
from dueline.core import rows
from dueline.core.ingest import InboundMessage
from dueline.core.job import State
from dueline.core.message import Message
from dueline.core.status import Outcome, note_outcome
from dueline.testing import VirtualClock
from tests.builders import EMAILS, NOW, a_job, a_queue
from tests.system import PERIODS, Core, Stores
from tests.wire import Wire

pytestmark = pytest.mark.parametrize("engine", ["dynalite"], indirect=True)

WRITES = ("BatchWriteItem", "PutItem", "UpdateItem")


@pytest.fixture
def core(engine, monkeypatch):
    # What is signed too late is not sent.
    monkeypatch.setattr("botocore.auth.get_current_datetime", lambda: NOW)
    return a_core(engine)


def a_core(engine, **settings):
    clock = VirtualClock(NOW)
    stores = Stores([a_queue(**settings)], table=engine.table(), clock=clock)
    core = Core(stores, clock=clock, wire=Wire(), periods=PERIODS)
    # The first tick makes the partition's state.
    core.a_tick(EMAILS, owner="first", seconds=1).run()
    return core


@contextmanager
def units(engine):
    """Count requests, and the units that they consume, while the context is open."""
    counted, events = Counter(), engine.dynamodb.meta.events

    def return_capacity(params, **_):
        params["ReturnConsumedCapacity"] = "TOTAL"

    def count(parsed, model, **_):
        counted["requests"] += 1
        # Of a condition that failed there is none in the answer.
        consumed = parsed.get("ConsumedCapacity", [])
        for each in consumed if isinstance(consumed, list) else [consumed]:
            counted["written" if model.name in WRITES else "read"] += each["CapacityUnits"]

    handlers = ("before-parameter-build.dynamodb", return_capacity), ("after-call.dynamodb", count)
    for event, handler in handlers:
        events.register(event, handler)
    try:
        yield counted
    finally:
        for event, handler in handlers:
            events.unregister(event, handler)


def a_job_of(size, *, text="1"):
    """Return a job whose row has that many bytes, unless its payload, made of that text, is packed."""
    least = row_bytes(rows.job_row(a_job(payload="1")))
    return a_job(payload=(text * size)[: size - least + 1])


def scattered(size):
    """Return a text of so many characters, each of which no compression writes with less than three quarters."""
    return base64.b64encode(random.Random(size).randbytes(size)).decode()[:size]


def ingest(core, *jobs):
    batch = [InboundMessage(message_id=str(job.id), message=Message.of(job)) for job in jobs]
    assert core.an_ingest().run(batch, until=math.inf).written == len(jobs)


def test_ingest_of_1_kib_costs_one_write_unit(engine, core):
    with units(engine) as of_one:
        ingest(core, a_job_of(1024))
    with units(engine) as of_a_batch:
        ingest(core, *[a_job_of(1024) for _ in range(25)])
    # Whether its id has a row yet; and, once for a batch, the fence.
    assert of_one == {"requests": 3, "written": 1, "read": 1 + 1}
    assert of_a_batch == {"requests": 3, "written": 25, "read": 25 + 1}


@pytest.mark.parametrize(
    ("size", "text", "written"),
    [(1025, "1", 1), (20_000, "the same again, ", 1), (1200, scattered(1200), 1), (1400, scattered(1400), 2)],
)
def test_payload_is_compressed_to_save_units(engine, core, size, text, written):
    with units(engine) as counted:
        ingest(core, a_job_of(size, text=text))
    assert counted == {"requests": 3, "written": written, "read": 2}


@pytest.mark.parametrize("text", ["1", "é", scattered(9000)], ids=["ones", "two-bytes", "scattered"])
def test_units_are_what_dynamodb_charges(engine, core, text):
    for size in (1000, 1024, 1025, 1300, 1400, 2000, 2600, 2700, 5000, 9000):
        row = rows.job_row(a_job(payload=(text * size)[:size]))
        with units(engine) as counted:
            core.table.write([row])
        assert counted["written"] == write_units(row_bytes(row)), size


def test_tracking_costs_one_read_and_one_write(engine):
    core = a_core(engine, track=True)
    job, outcome = a_job(), Outcome(state=State.RUNNING, attempts=1, started=NOW)
    note = partial(note_outcome, job.id, outcome, expires=job.expires, table=core.table)
    assert cost(engine, note, True) == {"requests": 1, "written": 1}
    assert cost(engine, note, True) == {"requests": 1, "written": 1}
    assert cost(engine, lambda: core.look_up(job.id), State.RUNNING) == {"requests": 1, "read": 6}


def cost(engine, act, expected=None):
    with units(engine) as counted:
        assert act() == expected
    return counted
