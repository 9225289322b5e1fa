"""What the protocol costs in DynamoDB's units.

On dynalite alone, whose units are AWS's: moto's are wrong for what it writes over 1 KB, MiniStack's for what it reads.
"""

import base64
import math
import random
from functools import partial

import pytest

from bench.counted import Meter, row_bytes, step_of, write_units
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


@pytest.fixture
def meter(engine):
    return Meter(engine.dynamodb.meta)


def cost(meter, act):
    """Return how many requests an act makes, and the units that they write and read."""
    with meter.counting() as exchanges:
        act()
    step = step_of(exchanges, jobs=1)
    return len(exchanges), step.writes, step.reads


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


def test_ingest_of_1_kib_costs_one_write_unit(meter, core):
    # Whether its id has a row yet; and, once for a batch, the fence.
    assert cost(meter, lambda: ingest(core, a_job_of(1024))) == (3, 1, 1 + 1)
    assert cost(meter, lambda: ingest(core, *[a_job_of(1024) for _ in range(25)])) == (3, 25, 25 + 1)


@pytest.mark.parametrize(
    ("size", "text", "written"),
    [(1025, "1", 1), (20_000, "the same again, ", 1), (1200, scattered(1200), 1), (1400, scattered(1400), 2)],
)
def test_payload_is_compressed_to_save_units(meter, core, size, text, written):
    assert cost(meter, lambda: ingest(core, a_job_of(size, text=text))) == (3, written, 2)


@pytest.mark.parametrize("text", ["1", "é", scattered(9000)], ids=["ones", "two-bytes", "scattered"])
def test_units_are_what_dynamodb_charges(meter, core, text):
    for size in (1000, 1024, 1025, 1300, 1400, 2000, 2600, 2700, 5000, 9000):
        row = rows.job_row(a_job(payload=(text * size)[:size]))
        assert cost(meter, lambda row=row: core.table.write([row])) == (1, write_units(row_bytes(row)), 0), size


def test_tracking_costs_one_read_and_one_write(meter, engine):
    core = a_core(engine, track=True)
    job, outcome = a_job(), Outcome(state=State.RUNNING, attempts=1, started=NOW)
    for _ in range(2):
        note = partial(note_outcome, job.id, outcome, expires=job.expires, table=core.table)
        assert cost(meter, note) == (1, 1, 0)
    assert cost(meter, lambda: core.look_up(job.id)) == (1, 0, 6)
    assert core.look_up(job.id) is State.RUNNING
