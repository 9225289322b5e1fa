"""The cause of each repeat is found in the requests, and none where there is none."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from dueline.core.job import JobId
from dueline.core.rows import job_key
from local.demonstration import Landed
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
    landed = Landed(id=ID, payload="1", due=DUE, at=DUE + timedelta(seconds=1))
    in_order = [replace(record, at=float(n)) for n, record in enumerate(records)]
    return repeats.causes_of(Ledger(delivered=[landed] * arrivals), in_order, kills)[ID]


def a_kill(invocation: str) -> Kill:
    return Kill(function=invocation.split()[0], invocation=invocation, step="send", had_effect=True)


def test_what_two_ticks_send_for_no_cause_is_unexplained() -> None:
    received = (a_change("tick 1", now=EARLIER, lease=LATER), a_change("tick 2", now=EARLIER, lease=LATER))
    assert causes(*received, a_record("tick 1"), a_record("tick 2")) == [repeats.UNEXPLAINED]


def test_what_a_killed_tick_sent_comes_again() -> None:
    assert causes(a_record("tick 1"), a_record("tick 2"), kills=(a_kill("tick 1"),)) == [repeats.BY_A_KILLED_TICK]


def test_killed_tick_explains_no_repeat_before_its_cursor() -> None:
    sent = (a_record("tick 1"), a_change("tick 1", cursor=KEY), a_record("tick 2"))
    assert causes(*sent, kills=(a_kill("tick 1"),)) == [repeats.UNEXPLAINED]


def test_expired_lease_explains_a_repeat() -> None:
    first, second = a_change("tick 1", now=EARLIER, lease=LATER), a_change("tick 2", now=LATER, lease=LATER)
    assert causes(first, a_record("tick 1"), second, a_record("tick 2")) == [repeats.OUTLIVED_ITS_LEASE]


def test_a_checkpoint_that_was_refused_is_the_cause_of_a_repeat() -> None:
    refused = a_change("tick 1", cursor=KEY, status=400)
    assert causes(a_record("tick 1"), refused, a_record("tick 2")) == [repeats.REFUSED_BESIDE]


def test_an_answer_that_was_never_heard_is_the_cause_of_a_repeat() -> None:
    later = a_record("tick 1", number=2, unheard=(1,), sent=())
    assert causes(a_record("tick 1"), later, a_record("tick 2")) == [repeats.LOST_ANSWER]


def test_message_received_by_two_ingests_explains_a_repeat() -> None:
    assert causes(a_record("ingest 1"), a_record("ingest 2")) == [repeats.AGAIN_BY_SQS]
    of_one = causes(a_record("ingest 1"), a_record("ingest 2"), kills=(a_kill("ingest 1"),))
    assert of_one == [repeats.BY_A_KILLED_INGEST]


def a_note(invocation: str) -> Record:
    return a_record(invocation, operation="BatchWriteItem", notes=frozenset({UID}), queue="", sent=())


def test_tick_that_read_before_the_late_note_explains_it() -> None:
    reads = a_record("tick 1", operation="Query", queue="", sent=())
    for late, cause in (("ingest 2", repeats.STILL_INGESTED), ("api 2", repeats.STILL_SUBMITTED)):
        assert causes(reads, a_record(late), a_note(late), a_record("tick 1")) == [cause]
        assert causes(a_record(late), a_note(late), reads, a_record("tick 1")) == [repeats.UNEXPLAINED]


def test_what_was_sent_once_and_came_twice_was_received_twice() -> None:
    assert causes(a_record("tick 1")) == [repeats.RECEIVED_TWICE]
