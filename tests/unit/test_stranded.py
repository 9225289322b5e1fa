"""What a deployment would strand, as preflight reports it, and what becomes of jobs that it overlooks."""

import re
from dataclasses import replace
from datetime import timedelta

import pytest

from dueline.core import instant, rows
from dueline.core.job import State
from dueline.errors import Unavailable
from dueline.operations import stranded
from dueline.operations.stranded import REMOVED, DeploymentShape, StrandedItems
from dueline.schedules.head import head_row
from tests.builders import NOW, a_job, a_message, a_queue, emails
from tests.schedule_system import a_definition, a_head
from tests.system import System
from tests.wire import done_in_part, on

OLD = DeploymentShape(partitions=3, priorities=3, message_days=4)
A_YEAR = timedelta(days=365)


class Place(System):
    """A queue of three partitions and three levels."""

    def __init__(self):
        super().__init__(a_queue(partitions=3, priorities=3))
        self.levels = {number: self.stores.level("emails", number) for number in (1, 2, 3)}

    @property
    def strands(self):
        queue, level = self.settings["emails"], self.level("emails")
        return StrandedItems(
            queue=queue, table=self.table, level=level, dead_letters=lambda: self.dead_letters, now=NOW
        )

    def removed(self):
        return self.strands.lost(OLD, REMOVED)

    def waits(self, *, partition=0, number=1, due=A_YEAR, **more):
        jobs = [a_job(partition=emails(partition), due=NOW + due, **more) for _ in range(number)]
        self.put(*jobs)
        return jobs

    def by(self, **change):
        new = {"partitions": 3, "priorities": 3, "message_days": 4} | change
        return self.strands.lost(OLD, DeploymentShape(**new))


def test_a_queue_that_nothing_waits_in_may_go():
    place = Place()
    (job,) = place.waits()
    place.table.write([rows.cancellation_row(job.id, at=NOW)])
    assert place.removed() == []


def test_removed_queue_counts_its_jobs():
    place = Place()
    place.waits(number=2, due=timedelta(days=1))
    place.waits(partition=2)
    place.levels[2].send([a_message(), a_message(delay=5)])
    place.dead_letters.send([a_message()])
    assert place.removed() == [
        "3 jobs",
        "2 messages in its SQS queues, which SQS deletes within 4 days",
        "1 message in its dead-letter queue, which SQS deletes within 14 days",
    ]


def test_dispatched_jobs_are_not_stranded():
    place = Place()
    place.waits(due=timedelta(hours=-1))
    end = rows.end_of("2026-11-21T07:05:00.000Z")
    place.table.write([{"pk": "emails#0", "sk": rows.STATE, "fence": "2026-11-21T07:05:00.000Z", "cursor": end}])
    assert place.removed() == []


def test_fewer_partitions_strand_jobs_counted_to_a_thousand():
    place = Place()
    place.waits(partition=0, number=1100, due=timedelta(hours=2))
    assert place.by(partitions=1) == []
    place.waits(partition=2)
    assert place.by(partitions=1) == ["1 job in partitions from 1 on"]
    place.waits(partition=2, number=1000)
    assert place.by(partitions=2) == ["1,000 or more jobs in partitions from 2 on"]
    some = "0 or more of its jobs of priorities from 3 on, of which the first 1,000 alone were read"
    assert place.by(priorities=2) == [some]


def test_fewer_priorities_strand_jobs_and_schedules():
    place = Place()
    place.waits(priority=2)
    place.levels[2].send([a_message()])
    assert place.by(priorities=2) == []
    planned(place, "urgent", priority=2)
    planned(place, "deleted", priority=3, deleted=True)
    assert place.by(priorities=2) == []
    place.waits(priority=3)
    place.levels[3].send([a_message()])
    planned(place, "slow", priority=3)
    planned(place, "resumed", priority=3, paused=True)
    assert place.by(priorities=2) == [
        "1 job of priorities from 3 on",
        "2 schedules of priorities from 3 on",
        "1 message in the SQS queues of priorities from 3 on",
    ]


def test_shorter_retention_strands_messages():
    place = Place()
    place.levels[1].send([a_message(delay=60)])
    assert place.by(message_days=1) == []
    place.levels[3].send([a_message()])
    assert place.by(message_days=1) == ["1 message in its SQS queues, which would delete what is older than 1 days"]


def test_unread_state_is_an_error():
    place = Place()
    place.levels[3].gone = True
    assert place.by(priorities=2) == []
    place.wire.around = on("table.read", done_in_part)
    strands = replace(place.strands, queue=a_queue())
    for new in (replace(OLD, priorities=2), REMOVED):
        with pytest.raises(Unavailable, match="states of queue emails could not be read"):
            strands.lost(OLD, new)


def planned(place, name, *, partition=0, priority=1, **state):
    """Let a schedule be there, without any job of it."""
    definition = a_definition(priority=priority)
    place.table.write([head_row(a_head(name=name, definition=definition, partition=emails(partition), **state))])


@pytest.mark.parametrize("change", [{"partitions": 2}, None], ids=["partitions", "removed"])
def test_schedules_count_live_paused_and_deleted(change):
    """Paused ones may be resumed; a deleted one has its history there, and its name, while its row is kept."""
    place = Place()
    planned(place, "live", partition=2)
    planned(place, "paused", partition=2, paused=True)
    planned(place, "deleted", partition=2, deleted=True)
    where = " in partitions from 2 on" if change else ""
    assert (place.by(**change) if change else place.removed()) == [f"3 schedules{where}"]
    place.clock.sleep(A_YEAR.total_seconds())
    strands = replace(place.strands, now=place.clock.now())
    assert strands.lost(OLD, replace(OLD, **change) if change else REMOVED) == [f"2 schedules{where}"]


def test_all_pages_of_schedules_are_read(monkeypatch):
    monkeypatch.setattr(stranded, "_HEADS_A_PAGE", 2)
    place = Place()
    for number in range(5):
        planned(place, f"s{number}")
    assert place.removed() == ["5 schedules"]


@pytest.mark.parametrize("change", [{"partitions": 1}, {"priorities": 1}])
def test_unreadable_rows_count_as_stranded(change):
    """Nobody knows of what cannot be read that a deployment would not strand it; nothing else is hidden by it."""
    place = Place()
    (job,) = place.waits(partition=2, priority=3)
    _, sk = rows.job_key(job.id)
    place.table.write([{**rows.job_row(job), "sk": sk.replace("#job", "0#job")}])
    place.table.write([{"pk": "emails#schedules", "sk": "digest", "ttl": "x"}])
    jobs, schedules = place.by(**change)
    assert re.fullmatch(r"2 (of its )?jobs .*, 1 of them in rows that cannot be read", jobs)
    assert re.fullmatch(r"1 schedule .*, 1 of them in rows that cannot be read", schedules)


def test_partition_of_earlier_settings_counts_with_its_queue():
    place = Place()
    place.waits(partition=7)
    assert place.removed() == []
    place.table.write([{"pk": "emails#7", "sk": rows.STATE, "fence": instant.text(NOW), "cursor": rows.FIRST}])
    assert place.removed() == ["1 job"]


@pytest.mark.parametrize("change", [{"partitions": 1}, {"priorities": 1}])
def test_jobs_of_what_was_given_up_are_still_sent(change):
    """Where preflight has overlooked them. `dueline doctor` reports those of a level, by `queue_left`."""
    system = System(a_queue(partitions=2, priorities=2))
    given_up = emails(1)
    job = a_job(partition=given_up, priority=2, due=system.clock.now() + timedelta(hours=1))
    system.put(job)
    system.settings["emails"] = replace(system.settings["emails"], **change)
    assert system.status_of(job.id).state is State.SCHEDULED
    system.clock.sleep(3600)
    system.tick(given_up)
    assert system.arrived(priority=2) == [job.id]
