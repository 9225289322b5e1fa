"""What scheduling under a key does, cell by cell: by what became of the job that has it, and by `if_exists`.

The same over HTTP and straight on AWS, with a client of either, and its table.
"""

from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from dueline import Client, JobExists, JobId, KeyReused, State
from dueline.core import instant, rows

KEY = "reminder-ann"
HOUR = timedelta(hours=1)
NEW, KEPT, MOVED = "a new job", "the job that is there", "the job, moved"
CELLS = [
    *((became, rule, NEW) for became in ("free", "cancelled") for rule in ("keep", "replace", "fail")),
    ("waiting", "keep", KEPT),
    ("waiting", "replace", MOVED),
    ("waiting", "fail", JobExists),
    ("other content", "keep", KeyReused),
    ("other content", "replace", MOVED),
    ("other content", "fail", JobExists),
    ("left", "keep", KEPT),
    ("left", "replace", NEW),
    ("left", "fail", JobExists),
    *(("same call", rule, KEPT) for rule in ("keep", "replace", "fail")),
]
EACH_CELL = pytest.mark.parametrize(("became", "if_exists", "expected"), CELLS)


def check_cell(client: Client, table, *, became: str, if_exists: str, expected: object) -> None:
    """Bring a key's job to where it is in a cell, schedule under the key, and check what came of it."""
    due = datetime.now(UTC) + 2 * HOUR
    first = None if became == "free" else client.schedule("emails", 1, at=due, key=KEY, idempotency_key="first")
    if became == "cancelled":
        assert client.cancel(queue="emails", key=KEY) is State.CANCELLED
    if became == "left":
        _raise_fence(table, first.id)
    call = "first" if became == "same call" else "second"
    payload = 2 if became == "other content" else 1
    schedule = partial(client.schedule, "emails", payload, key=KEY, if_exists=if_exists, idempotency_key=call)
    if isinstance(expected, type):
        with pytest.raises(expected):
            schedule(at=due + HOUR)
        assert client.get(queue="emails", key=KEY).id == first.id
        return
    result = schedule(at=due + HOUR)
    got = NEW if result.created else MOVED if result.moved_from else KEPT
    assert got == expected
    assert (result.id == (first and first.id)) is (expected == KEPT)
    assert result.moved_from == (first.id if expected == MOVED else None)
    assert client.get(queue="emails", key=KEY).id == result.id
    if expected == MOVED:
        assert client.get(first.id).id == result.id
        assert client.cancel(first.id) is State.CANCELLED
        assert client.get(result.id).state is State.CANCELLED


def _raise_fence(table, id: str) -> None:
    job = JobId.parse(id)
    pk, sk = rows.state_key(job.partition)
    table.write([{"pk": pk, "sk": sk, "fence": instant.text(job.due + HOUR / 60), "cursor": rows.FIRST}])
