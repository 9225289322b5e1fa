"""A deployment of before, whose states lie among its jobs, is gone on with: each tick breaks off anywhere."""

import itertools
import math
from collections import Counter
from datetime import timedelta
from functools import partial

import pytest
from botocore.exceptions import EndpointConnectionError

from dueline.aws.dynamodb.table import DynamoTable
from dueline.errors import RETRYABLE
from dueline.memory import VirtualClock
from dueline.model import instant, rows
from dueline.model.control_rows import is_paused, paused_key, paused_row, rate_key, rate_row
from dueline.model.job import State
from dueline.model.message import Message
from dueline.model.rate import Rate
from dueline.protocol.ingest import Received
from tests.builders import EMAILS, NOW, a_job, a_queue
from tests.contract.engines import TABLES_WITH_TRANSACTIONS
from tests.contract.of_before import OfBefore
from tests.system import PERIODS, TICK_SECONDS, Core, Stores
from tests.wire import Wire

ON_DYNAMODB = pytest.mark.parametrize("engine", ["dynalite"], indirect=True)
TRANSACTING = pytest.mark.parametrize(
    "engine", [name for name in TABLES_WITH_TRANSACTIONS if name != "memory"], indirect=True
)
STATE = rows.state_key(EMAILS)
LOOKAHEAD = PERIODS.lookahead.total_seconds()


class Upgraded:
    """A deployment of before and the new one over it, at one time if need be: both write the same jobs."""

    def __init__(self, engine):
        self.client, jobs = engine.dynamodb, engine.new_table()
        self.tables = [OfBefore(self.client, jobs), DynamoTable(self.client, jobs, state=engine.new_table())]
        self.clock = VirtualClock(NOW)
        self.before, self.now = (self._core(table) for table in self.tables)
        self.now.stores.queues = self.before.stores.queues
        self.now.stores.levels = self.before.stores.levels
        self._owners = map(str, itertools.count())

    def _core(self, table):
        stores = Stores([a_queue()], table=table, clock=self.clock)
        return Core(stores, clock=self.clock, wire=Wire(), periods=PERIODS)

    def put(self, *delays):
        jobs = [a_job(due=self.clock.now() + timedelta(seconds=delay)) for delay in delays]
        for job in jobs:
            self.tables[0].write([rows.job_row(job)])
        return [job.id for job in jobs]

    def tick(self, core):
        return core.a_tick(EMAILS, owner=next(self._owners), seconds=TICK_SECONDS).run()

    def ingest(self, *jobs):
        """Ingest jobs whose messages came late."""
        messages = [Received(message_id=str(n), message=Message.of(job)) for n, job in enumerate(jobs)]
        return self.now.an_ingest().run(messages, until=math.inf)

    def arrived(self):
        return Counter(each.message.job().id for each in self.before.stores.queues["emails"].deliveries)

    def state(self):
        return rows.read_state(self.tables[1].read([STATE]).rows.get(STATE))


@pytest.fixture
def deployment(engine):
    return Upgraded(engine)


class After:
    """Does something after the nth request to DynamoDB from now on, before its caller has the answer."""

    def __init__(self, client, number, act):
        self._events = client.meta.events
        self._number = number
        self._act = act
        self.count = 0

    def __enter__(self):
        self._events.register("after-call.dynamodb", self._called)
        return self

    def __exit__(self, *_):
        self._events.unregister("after-call.dynamodb", self._called)

    def _called(self, **_):
        self.count += 1
        if self.count == self._number:
            self._act()


def lose_the_answer():
    raise EndpointConnectionError(endpoint_url="cut")


@ON_DYNAMODB
def test_a_tick_goes_on_where_one_of_before_was_wherever_it_breaks_off(engine):
    for number in itertools.count(1):
        deployment = Upgraded(engine)
        sent, waiting = deployment.put(10, 20), deployment.put(LOOKAHEAD + 30, LOOKAHEAD + 45)
        for row in (paused_row("emails", paused=True, at=NOW), rate_row("emails", Rate(jobs=5), at=NOW)):
            deployment.tables[0].write([row])
        deployment.tick(deployment.before)
        assert deployment.arrived() == Counter(sent)
        deployment.clock.sleep(60)
        with After(deployment.client, number, lose_the_answer) as cut:
            try:
                deployment.tick(deployment.now)
            except RETRYABLE:
                deployment.clock.sleep(60)
        deployment.tick(deployment.now)
        # A send whose checkpoint was cut off comes again, as after any crash: never what was sent before.
        assert deployment.arrived().keys() == {*sent, *waiting}
        assert all(deployment.arrived()[id] == 1 for id in sent)
        found = deployment.tables[1].read([paused_key("emails"), rate_key("emails")]).rows
        assert is_paused(found[paused_key("emails")])
        assert found[rate_key("emails")]["rate"] == "5/s"
        if cut.count < number:
            assert deployment.arrived() == Counter([*sent, *waiting])
            break
    assert number > 8


@ON_DYNAMODB
def test_of_two_first_ticks_at_once_the_slower_one_undoes_nothing(engine):
    for number in itertools.count(1):
        deployment = Upgraded(engine)
        ids = deployment.put(10, LOOKAHEAD + 30)
        deployment.tick(deployment.before)
        deployment.clock.sleep(60)
        other = partial(deployment.tick, deployment.now)
        with After(deployment.client, number, other) as after:
            deployment.now.a_lease(EMAILS, owner="slow", seconds=TICK_SECONDS).take()
        deployment.clock.sleep(60)
        deployment.tick(deployment.now)
        assert deployment.arrived() == Counter(ids)
        if after.count < number:
            break
    assert number > 6


@ON_DYNAMODB
def test_no_tick_begins_while_one_of_before_has_the_lease_and_none_of_before_once_one_has_begun(deployment):
    old = deployment.before.a_lease(EMAILS, owner="old", seconds=TICK_SECONDS)
    assert old.take()
    assert not deployment.now.a_lease(EMAILS, owner="new", seconds=1).take()
    assert old.checkpoint("1")
    deployment.clock.sleep(31)
    assert deployment.now.a_lease(EMAILS, owner="new", seconds=TICK_SECONDS).take()
    assert not old.checkpoint("2")
    deployment.clock.sleep(600)
    assert not deployment.before.a_lease(EMAILS, owner="old again", seconds=TICK_SECONDS).take()
    assert deployment.state().cursor == "1"


@ON_DYNAMODB
def test_until_the_first_tick_a_fence_of_before_decides_what_a_cancel_promises_and_which_jobs_are_late(deployment):
    sent, waiting = deployment.put(10), deployment.put(LOOKAHEAD + 30)
    deployment.tick(deployment.before)
    assert [deployment.now.cancel(id) for id in (*sent, *waiting)] == [State.CANCEL_REQUESTED, State.CANCELLED]
    late = a_job(due=NOW + timedelta(seconds=20))
    assert not deployment.ingest(late).failed
    assert deployment.arrived() == Counter([*sent, late.id])


@ON_DYNAMODB
def test_once_a_tick_has_begun_a_client_of_before_is_promised_nothing(deployment):
    (id,) = deployment.put(LOOKAHEAD + 30)
    deployment.tick(deployment.before)
    deployment.clock.sleep(60)
    deployment.tick(deployment.now)
    assert deployment.arrived() == Counter([id])
    assert deployment.before.cancel(id) is State.CANCEL_REQUESTED


@ON_DYNAMODB
def test_of_a_partition_that_the_new_version_makes_nothing_is_promised_or_sent_by_one_of_before_either(engine):
    """Wherever its first tick breaks off: then it begins again."""
    for number in itertools.count(1):
        deployment = Upgraded(engine)
        sent, waiting = deployment.put(10), deployment.put(LOOKAHEAD + 100)
        with After(deployment.client, number, lose_the_answer) as cut:
            try:
                deployment.tick(deployment.now)
            except RETRYABLE:
                deployment.clock.sleep(60)
        deployment.tick(deployment.now)
        assert deployment.arrived().keys() == set(sent)
        assert [deployment.before.cancel(id) for id in (*sent, *waiting)] == [State.CANCEL_REQUESTED] * 2
        deployment.clock.sleep(600)
        assert not deployment.tick(deployment.before).held
        if cut.count < number:
            break
    assert number > 8


@ON_DYNAMODB
def test_a_tick_of_before_that_begins_as_the_first_one_does_keeps_its_lease(deployment):
    old = deployment.before.a_lease(EMAILS, owner="old", seconds=TICK_SECONDS)
    # It was found that there is no state at all, neither here nor among the jobs.
    with After(deployment.client, 3, old.take):
        assert not deployment.now.a_lease(EMAILS, owner="new", seconds=1).take()
    assert old.checkpoint("1")


@ON_DYNAMODB
def test_a_pause_that_was_lifted_since_stays_lifted(deployment):
    old, new = deployment.tables
    old.write([paused_row("emails", paused=True, at=NOW)])
    deployment.tick(deployment.before)
    new.write([paused_row("emails", paused=False, at=NOW)])
    deployment.clock.sleep(60)
    deployment.tick(deployment.now)
    assert not is_paused(new.read([paused_key("emails")]).rows[paused_key("emails")])


@TRANSACTING
@pytest.mark.parametrize("is_sealed", [False, True], ids=["before the first tick", "broken off in it"])
def test_a_job_is_moved_by_the_fence_of_before_until_there_is_another(deployment, is_sealed):
    deployment.put(10)
    deployment.tick(deployment.before)
    if is_sealed:
        deployment.clock.sleep(60)
        with After(deployment.client, 4, lose_the_answer), pytest.raises(RETRYABLE):
            deployment.tick(deployment.now)
        assert deployment.tables[0].read([STATE]).rows[STATE]["owner"] == "the-state-table"
    new = deployment.tables[1]
    for delay, is_moved in ((10, False), (LOOKAHEAD, False), (LOOKAHEAD + 1, True)):
        old, to = (a_job(due=NOW + timedelta(seconds=delay + each)) for each in (0, 900))
        cancellation = rows.cancellation_row(old.id, at=NOW, moved_to=to.id)
        below = instant.text(old.id.due)
        assert new.move(cancellation, rows.job_row(to), state=STATE, fence_below=below) is is_moved
