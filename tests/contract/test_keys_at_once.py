"""Many callers under the same keys at once, on a table that keeps its word under threads."""

import json
import random
import uuid
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor

import pytest

from dueline.memory import VirtualClock
from dueline.model.job import Job, Partition
from dueline.model.request import Request
from dueline.model.rows import FIRST, read_job
from tests.builders import NOW, a_queue
from tests.system import DIRECT_HORIZON, PERIODS, Core, Stores
from tests.wire import Wire, straight

KEYS = 200
THREADS = 8
# How often a client dies at a call, before or after it takes effect; then it is begun again.
DEATHS = 0.15
DIRECT_SECONDS, TABLE_SECONDS = 5, 3600

pytestmark = pytest.mark.parametrize("engine", ["dynalite"], indirect=True)


class Crash(Exception):
    """A client dies."""


def dying(chance):
    def around(call):
        if chance.random() < DEATHS:
            raise Crash
        answer = straight(call)
        if chance.random() < DEATHS:
            raise Crash
        return answer

    return around


@pytest.fixture
def stores(engine):
    return Stores([a_queue(partitions=3)], table=engine.table(), clock=VirtualClock(NOW))


def submitted(stores, number, *, seed):
    """Submit under a key until the client lives to hear its answer; return the id and how often it died."""
    wire, chance = Wire(), random.Random(seed)
    wire.around = dying(chance)
    core = Core(stores, clock=VirtualClock(NOW), wire=wire, periods=PERIODS)
    submit = core.submission("emails", direct_horizon=DIRECT_HORIZON, new_uid=lambda: str(uuid.uuid4()))
    delay = DIRECT_SECONDS if number % 2 else TABLE_SECONDS
    request = Request(payload={"key": number}, delay=delay + chance.random(), key=f"key {number}")
    deaths = 0
    while True:
        try:
            (job,) = submit.run([request], until=10)
        except Crash:
            deaths += 1
        else:
            assert isinstance(job, Job), job
            return job.id, deaths


def test_of_200_keys_from_8_threads_each_sent_twice_by_clients_that_die_each_is_one_job(stores):
    asked = [*range(KEYS), *range(KEYS)]
    random.Random(7).shuffle(asked)
    with ThreadPoolExecutor(THREADS) as pool:
        answers = list(pool.map(lambda n: submitted(stores, asked[n], seed=n), range(len(asked))))
    ids, sent = defaultdict(set), defaultdict(set)
    for number, (id, _) in zip(asked, answers, strict=True):
        ids[number].add(id)
    for queue in (stores.inbound, stores.queues["emails"]):
        for delivery in queue.deliveries:
            sent[json.loads(delivery.message.body)["key"]].add(delivery.message.job().id)
    for number in range(3):
        for row in stores.table.page(Partition(queue="emails", number=number), after=FIRST, until="~").rows:
            job = read_job(row)
            sent[json.loads(job.payload)["key"]].add(job.id)
    assert sum(deaths for _, deaths in answers) > KEYS
    assert len(ids) == KEYS
    assert {number: each for number, each in ids.items() if len(each) > 1} == {}
    assert sent == ids
    assert {id.route.name for each in ids.values() for id in each} == {"DIRECT", "TABLE"}
