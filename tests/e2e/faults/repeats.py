"""Why jobs arrived more than once: the cause of each repeat, read from what the proxy saw."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from tests.e2e.faults.books import Books
from tests.e2e.faults.exchange import Record, uid_of
from tests.e2e.faults.killing import INGEST, TICK, Kill

# Nearly a function's shortest wait for an answer, 1 s: `dueline/aws/clients.py`, in an attempt of a request of 4 s.
# It waits longer than is seen here, where its request must first come in.
TOO_LATE_SECONDS = 0.9

BY_A_KILLED_TICK = "sent by a tick that was killed"
BY_A_KILLED_INGEST = "sent by an ingest that was killed"
AGAIN_AFTER_A_KILLED_INGEST = "its message came again after an ingest that was killed"
AGAIN_BY_SQS = "its message came again, because ingest took longer than the visibility timeout"
LOST_ANSWER = "the answer to its sending came too late"
LOST_CHECKPOINT = "sent by a tick, an answer to which came too late"
STILL_INGESTED = "still being ingested as its dispatch began"
RECEIVED_TWICE = "received twice from its queue"
UNEXPLAINED = "unexplained"


def causes_of(books: Books, records: Sequence[Record], kills: Iterable[Kill]) -> dict[str, list[str]]:
    """Return the cause of each repeat, by the id of the job."""
    killed = {kill.turn for kill in kills}
    slow = {record.turn for record in records if record.seconds >= TOO_LATE_SECONDS}
    of_job = _by_job(records, {uid_of(id) for id in books.repeated})
    return {
        id: _causes(of_job[uid_of(id)], uid_of(id), times=times, killed=killed, slow=slow)
        for id, times in books.repeated.items()
    }


def most_by_one_kill(books: Books, records: Sequence[Record], kills: Iterable[Kill]) -> int:
    """Return the most jobs that arrived again because one tick was killed."""
    killed = {kill.turn for kill in kills if kill.function == TICK}
    of_job = _by_job(records, {uid_of(id) for id in books.repeated})
    turns = (turn for uid, found in of_job.items() for turn in {send.turn for send in _sends(found, uid)} & killed)
    return max(Counter(turns).values(), default=0)


def _by_job(records: Iterable[Record], uids: set[str]) -> dict[str, list[Record]]:
    found: dict[str, list[Record]] = defaultdict(list)
    for record in sorted(records, key=lambda record: record.at):
        for uid in record.uids & uids:
            found[uid].append(record)
    return found


def _sends(found: Iterable[Record], uid: str) -> list[Record]:
    """Return the requests that brought a job to its queue, once for each time."""
    return [record for record in found if "_" in record.queue for sent in record.sent if sent == uid]


def _causes(found: Sequence[Record], uid: str, *, times: int, killed: set[str], slow: set[str]) -> list[str]:
    sends = _sends(found, uid)
    ingests = {record.turn for record in found if record.function == INGEST}
    causes = [
        _cause(send, sends[place + 1 :], ingests=ingests, killed=killed, slow=slow)
        for place, send in enumerate(sends[:-1])
    ]
    return causes + [RECEIVED_TWICE] * (times - len(sends))


def _cause(send: Record, later: Sequence[Record], *, ingests: set[str], killed: set[str], slow: set[str]) -> str:
    """Return why a job was sent again though it had been sent."""
    functions = {send.function, *(each.function for each in later)}
    reasons = {
        BY_A_KILLED_TICK: send.turn in killed and send.function == TICK,
        BY_A_KILLED_INGEST: send.turn in killed,
        # Within one invocation nothing is sent again but what is not known to be sent.
        LOST_ANSWER: send.seconds >= TOO_LATE_SECONDS or send.turn == later[0].turn,
        AGAIN_AFTER_A_KILLED_INGEST: bool(ingests & killed) and INGEST in functions,
        AGAIN_BY_SQS: len(ingests) > 1 and INGEST in functions,
        LOST_CHECKPOINT: send.turn in slow,
        STILL_INGESTED: functions >= {TICK, INGEST},
    }
    return next((reason for reason, holds in reasons.items() if holds), UNEXPLAINED)
