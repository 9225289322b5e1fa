import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

from dueline.core import rows
from dueline.testing import MemoryQueue, MemoryTable, VirtualClock
from tests.builders import EMAILS, NOW, RETENTION, a_job, a_message


def test_ttl_collects_what_is_past_it_and_nothing_else():
    table, due = MemoryTable(), NOW + timedelta(hours=1)
    over, kept = a_job(due=due), a_job(due=due + timedelta(seconds=1))
    table.write([rows.job_row(over), rows.job_row(kept)])
    table.acquire_lease(EMAILS, owner="me", now="1", lease="2", fence="3")
    expired = table.expired(now=due + RETENTION)
    assert expired == [rows.job_key(over.id)]
    table.collect(expired)
    left = table.page(EMAILS, after="", until="~").rows
    assert [row["sk"] for row in left] == [rows.STATE, rows.job_key(kept.id)[1]]


def test_memory_page_sees_writes_and_collections():
    table, (first, second, third) = MemoryTable(page_rows=2), (rows.job_row(a_job()) for _ in range(3))
    table.write([first, third])
    assert table.page(EMAILS, after=rows.FIRST, until="~").rows == [first, third]
    table.write([second])
    assert table.page(EMAILS, after=rows.FIRST, until="~").rows == [first, second]
    table.collect([rows.key(first)])
    assert table.page(EMAILS, after=rows.FIRST, until="~").rows == [second, third]
    table.write([first])
    table.collect([rows.key(second)])
    assert table.page(EMAILS, after=rows.FIRST, until="~").rows == [first, third]
    table.collect([rows.key(first)])
    table.write([second])
    assert table.page(EMAILS, after=rows.FIRST, until="~").rows == [second, third]


def test_lost_claim_neither_hides_nor_deletes():
    """As SQS does; its emulators do it for any receiver that had the message once."""
    queue = MemoryQueue(name="emails", clock=VirtualClock(NOW))
    queue.send([a_message(body="lost"), a_message(body="kept")])
    claims = {each.message.body: each.receipt for each in queue.receive(most=10, wait=0)}
    assert queue.hide([claims["lost"]], [0]) == []
    for refusals in (queue.hide([claims["lost"], claims["kept"]], [600, 600]), queue.delete([claims["lost"]])):
        assert [(each.index, each.final) for each in refusals] == [(0, True)]
    (again,) = queue.receive(most=10, wait=0)
    assert (again.message.body, again.receives) == ("lost", 2)
    assert queue.hide([claims["lost"]], [0])[0].final


class Slow(int):
    """A number that takes its time to be compared, in which other threads come."""

    def __gt__(self, other):
        time.sleep(0.01)
        return super().__gt__(other)


def test_reservations_of_threads_never_overlap():
    table = MemoryTable()
    with ThreadPoolExecutor(8) as pool:
        untils = pool.map(lambda _: table.reserve(("emails#rate", "!slots"), now=Slow(0), amount=1, ttl=9), range(8))
    assert sorted(untils) == list(range(1, 9))
