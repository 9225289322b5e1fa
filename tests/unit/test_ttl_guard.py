"""The TTL guard: while jobs wait for ticks that do not come, TTL collects nothing."""

from datetime import timedelta

import boto3
import pytest
from moto import mock_aws

from dueline.aws.aws_deployment import AwsDeployment
from dueline.core import instant, rows
from dueline.core.job import Partition
from dueline.core.ports import BatchRead
from dueline.errors import Unavailable
from dueline.operations.ttl_guard import TtlGuard
from dueline.testing import MemoryTable, VirtualClock
from tests.builders import EMAILS, NOW, a_job, emails
from tests.memory_operations import MemoryTimeToLive

INVOICES = Partition(queue="invoices", number=0)
SETTLE = timedelta(minutes=3)


class World:
    """A table and its TTL, guarded."""

    def __init__(self, table=None):
        self.clock = VirtualClock(NOW)
        self.table = table or MemoryTable()
        self.ttl = MemoryTimeToLive(clock=self.clock)

    def guard(self, *partitions, are_all=True):
        guard = TtlGuard(table=self.table, time_to_live=self.ttl, clock=self.clock, settle=SETTLE)
        return guard.run(partitions or (EMAILS, INVOICES), are_all=are_all)

    def waits(self, *, since, partition=EMAILS):
        self.table.write([rows.job_row(a_job(due=NOW - since, partition=partition))])

    def is_ticked(self, *, at=NOW, cursor=rows.FIRST, partition=EMAILS):
        pk, sk = rows.state_key(partition)
        self.table.write([{"pk": pk, "sk": sk, "fence": instant.text(at), "cursor": cursor}])

    def passes(self, at, *, partition=EMAILS):
        self.is_ticked(at=at, cursor=rows.end_of(instant.text(at)), partition=partition)


class Unread(MemoryTable):
    """Leaves the states of some partitions unread, and no row of another can be read."""

    def __init__(self, *unread, gone=None):
        super().__init__()
        self._unread, self._gone = frozenset(map(rows.state_key, unread)), gone

    def read(self, keys, *, consistent=True):
        answer = super().read(keys, consistent=consistent)
        return BatchRead(rows=answer.rows, unread=self._unread & set(keys))

    def page(self, partition, **request):
        if partition == self._gone:
            raise Unavailable("no answer")
        return super().page(partition, **request)


def test_ttl_stays_on_without_late_jobs():
    world = World()
    world.waits(since=timedelta(hours=5, minutes=50))
    result = world.guard()
    assert (result.is_on, result.switched, world.ttl.is_on()) == (True, None, True)


def test_late_job_switches_ttl_off():
    world = World()
    world.waits(since=timedelta(hours=6), partition=INVOICES)
    world.is_ticked(at=NOW + timedelta(seconds=240), partition=INVOICES)
    result = world.guard()
    assert (result.switched, result.is_on, world.ttl.is_on()) == (False, False, False)
    (behind,) = result.behind
    reported = behind.partition, behind.due, behind.fence
    assert reported == (INVOICES, NOW - timedelta(hours=6), NOW + timedelta(seconds=240))


def test_row_without_due_time_hides_no_job():
    world = World()
    world.waits(since=timedelta(hours=7))
    world.table.write([{"pk": str(EMAILS), "sk": "1#of-another#job"}])
    assert (world.guard().switched, world.ttl.is_on()) == (False, False)


def test_row_written_late_gets_time_for_its_tick():
    world = World()
    sleep = world.clock.sleep
    world.clock.sleep = lambda seconds: (sleep(seconds), world.passes(NOW))
    world.waits(since=timedelta(days=3))
    result = world.guard()
    assert (result.switched, result.behind, world.clock.monotonic()) == (None, (), SETTLE.total_seconds())


def test_caught_up_jobs_switch_ttl_on():
    world = World()
    world.waits(since=timedelta(hours=7))
    world.waits(since=timedelta(hours=7), partition=INVOICES)
    world.guard()
    world.clock.sleep(3600)
    world.passes(world.clock.now())
    world.passes(NOW - timedelta(hours=8), partition=INVOICES)
    assert (world.guard().switched, world.ttl.is_on()) == (None, False)
    world.passes(world.clock.now(), partition=INVOICES)
    assert (world.guard().switched, world.ttl.is_on()) == (True, True)


@pytest.mark.parametrize("is_on", [True, False])
def test_unknown_partitions_leave_ttl_as_it_is(is_on):
    for table, are_all in ((Unread(INVOICES), True), (Unread(gone=INVOICES), True), (MemoryTable(), False)):
        world = World(table)
        world.ttl.switch(on=is_on)
        world.clock.sleep(3600)
        result = world.guard(are_all=are_all)
        assert (result.unknown, result.switched, world.ttl.is_on()) == (1, None, is_on)


def test_an_unread_partition_hides_no_late_one():
    world = World(Unread(gone=EMAILS))
    world.waits(since=timedelta(hours=7), partition=INVOICES)
    assert world.guard().switched is False


def test_partitions_are_known_by_their_schedules():
    with mock_aws():
        session = boto3.Session("AKIDEXAMPLE", "s", region_name="us-east-1")
        client = session.client("scheduler")
        client.create_schedule_group(Name="d-ticks")
        target = {"Arn": "arn:aws:lambda:us-east-1:123456789012:function:f", "RoleArn": "arn:aws:iam::1:role/r"}
        rest = {"ScheduleExpression": "rate(1 minute)", "FlexibleTimeWindow": {"Mode": "OFF"}, "Target": target}
        for name in ("emails.0", "emails.11", "not-a-partition"):
            client.create_schedule(Name=name, GroupName="d-ticks", **rest)
        client.create_schedule(Name="invoices.0", **rest)
        result = AwsDeployment("d", longest=timedelta(seconds=10), session=session).ticked_partitions()
    assert set(result) == {EMAILS, emails(11)}
