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
