from datetime import timedelta

from dueline import rows
from dueline.memory import MemoryTable
from tests.builders import EMAILS, NOW, RETENTION, a_job


def test_ttl_collects_what_is_past_it_and_nothing_else():
    table, due = MemoryTable(), NOW + timedelta(hours=1)
    over, kept = a_job(due=due), a_job(due=due + timedelta(seconds=1))
    table.write([rows.job_row(over), rows.job_row(kept)])
    table.take(EMAILS, owner="me", now="1", lease="2", fence="3")
    expired = table.expired(now=due + RETENTION)
    assert expired == [rows.job_key(over.id)]
    table.collect(expired)
    left = table.page(EMAILS, after="", until="~").rows
    assert [row["sk"] for row in left] == [rows.STATE, rows.job_key(kept.id)[1]]
