"""The cause of each repeat is found in the requests, and none where there is none."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from dueline.core.job import JobId
from dueline.core.rows import job_key
from tests.acceptance.inbox import Landed
from tests.e2e.chaos import repeats
from tests.e2e.chaos.kills import Kill
from tests.e2e.chaos.ledger import Ledger
from tests.e2e.chaos.proxy import Record, Sender, StateChange

ID = "emails.0.t.1795255290123.0d6a387e-6d3b-4b8e-9f51-3d7c1f0a2b4c"
UID = ID.rpartition(".")[2]
PARTITION, KEY = job_key(JobId.parse(ID))
DUE = datetime(2026, 11, 21, 10, 1, 30, 123000, UTC)
EARLIER, LATER = "2026-11-21T10:01:00.000Z", "2026-11-21T10:02:00.000Z"


def a_sender(invocation: str, *, number: int = 1, unheard: tuple[int, ...] = ()) -> Sender:
    function, pid = invocation.split()
    numbers = frozenset(unheard)
    return Sender(function=function, pid=int(pid), invocation=invocation, number=number, unheard=numbers)


def a_record(invocation: str, *, number: int = 1, unheard: tuple[int, ...] = (), **overrides: object) -> Record:
    record = Record(
        at=0.0,
        seconds=0.0,
        sender=a_sender(invocation, number=number, unheard=unheard),
        operation="SendMessageBatch",
        fault="",
        statuses=(200,),
        uids=frozenset({UID}),
        queue="chaos_emails",
        sent=(UID,),
        state=None,
        rows=frozenset(),
        notes=frozenset(),
    )
    return replace(record, **overrides)


def a_change(invocation: str, *, now: str = "", lease: str = "", cursor: str = "", status: int = 200) -> Record:
    change = StateChange(partition=PARTITION, now=now, lease=lease, cursor=cursor)
    return a_record(
        invocation, operation="UpdateItem", statuses=(status,), uids=frozenset(), queue="", sent=(), state=change
    )


def causes(*records: Record, arrivals: int = 2, kills: tuple[Kill, ...] = ()) -> list[str]:
    landed = Landed(body="1", attributes={"dueline-id": ID}, sent=DUE, visible=DUE)
    in_order = [replace(record, at=float(n)) for n, record in enumerate(records)]
    return repeats.causes_of(Ledger(delivered=[landed] * arrivals), in_order, kills)[ID]


def a_kill(invocation: str) -> Kill:
    return Kill(function=invocation.split()[0], invocation=invocation, step="send", had_effect=True)


def a_note(invocation: str) -> Record:
    return a_record(invocation, operation="BatchWriteItem", notes=frozenset({UID}), queue="", sent=())


TICKS = (a_record("tick 1"), a_record("tick 2"))
INGESTS = (a_record("ingest 1"), a_record("ingest 2"))
READ = a_record("tick 1", operation="Query", queue="", sent=())
RECEIVED = a_change("tick 1", now=EARLIER, lease=LATER)
CAUSES = [
    # Two ticks that have a partition at once explain nothing.
    ((RECEIVED, a_change("tick 2", now=EARLIER, lease=LATER), *TICKS), (), repeats.UNEXPLAINED),
    (TICKS, ("tick 1",), repeats.BY_A_KILLED_TICK),
    # What a killed tick sent before its cursor does not come again.
    ((TICKS[0], a_change("tick 1", cursor=KEY), TICKS[1]), ("tick 1",), repeats.UNEXPLAINED),
    ((RECEIVED, TICKS[0], a_change("tick 2", now=LATER, lease=LATER), TICKS[1]), (), repeats.OUTLIVED_ITS_LEASE),
    ((TICKS[0], a_change("tick 1", cursor=KEY, status=400), TICKS[1]), (), repeats.REFUSED_BESIDE),
    ((TICKS[0], a_record("tick 1", number=2, unheard=(1,), sent=()), TICKS[1]), (), repeats.LOST_ANSWER),
    (INGESTS, (), repeats.AGAIN_BY_SQS),
    (INGESTS, ("ingest 1",), repeats.BY_A_KILLED_INGEST),
    ((READ, a_record("ingest 2"), a_note("ingest 2"), TICKS[0]), (), repeats.STILL_INGESTED),
    ((READ, a_record("api 2"), a_note("api 2"), TICKS[0]), (), repeats.STILL_SUBMITTED),
    # The tick read after the note.
    ((a_record("ingest 2"), a_note("ingest 2"), READ, TICKS[0]), (), repeats.UNEXPLAINED),
    ((a_record("api 2"), a_note("api 2"), READ, TICKS[0]), (), repeats.UNEXPLAINED),
    ((TICKS[0],), (), repeats.RECEIVED_TWICE),
]


@pytest.mark.parametrize(("records", "killed", "cause"), CAUSES)
def test_repeat_has_its_cause(records: tuple[Record, ...], killed: tuple[str, ...], cause: str) -> None:
    assert causes(*records, kills=tuple(map(a_kill, killed))) == [cause]
