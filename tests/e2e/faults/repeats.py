"""Why jobs arrived more than once: the cause of each repeat, read from the requests, never from how long they took."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from dueline.model.job import JobId
from dueline.model.rows import job_key
from tests.e2e.faults.books import Books
from tests.e2e.faults.exchange import Record, uid_of
from tests.e2e.faults.killing import API, INGEST, PLANNER, TICK, Kill
from tests.e2e.faults.processes import DIRECT

BY_A_KILLED_TICK = "sent by a tick that was killed"
BY_A_KILLED_SUBMISSION = "sent by a submission that was killed"
SUBMITTED_AGAIN = "submitted again under its id"
STILL_SUBMITTED = "still being submitted as its dispatch began"
BY_A_KILLED_INGEST = "sent by an ingest that was killed"
AGAIN_AFTER_A_KILLED_INGEST = "its message came again after an ingest that was killed"
AGAIN_BY_SQS = "its message came again to another ingest"
LOST_ANSWER = "the answer to its sending was not heard"
REFUSED_BESIDE = "sent by a tick that could not send, or save, what stood before it"
OUTLIVED_ITS_LEASE = "sent by a tick that outlived its lease"
STILL_INGESTED = "still being ingested as its dispatch began"
RECEIVED_TWICE = "received twice from its queue"
UNEXPLAINED = "unexplained"
_SUBMITTERS = {API, DIRECT, PLANNER}


@dataclass(kw_only=True, slots=True)
class Turns:
    """What the invocations of functions did, by their turns: `killed` are those that were."""

    records: Sequence[Record]
    killed: frozenset[str] = frozenset()
    _unheard: set[tuple[int, int]] = field(init=False)
    _of_turn: dict[str, list[Record]] = field(init=False)

    def __post_init__(self) -> None:
        self._unheard = {(each.told.process.pid, number) for each in self.records for number in each.told.unheard}
        self._of_turn = defaultdict(list)
        for record in self.records:
            self._of_turn[record.turn].append(record)

    def is_unheard(self, record: Record) -> bool:
        """Tell whether the process gave up on the answer to a request, as it said in a later one."""
        return (record.told.process.pid, record.told.number) in self._unheard

    def fell_short(self, turn: str) -> bool:
        """Tell whether a request of an invocation was refused or not heard of."""
        return any(not record.had_effect or self.is_unheard(record) for record in self._of_turn[turn])

    def has_taken(self, turn: str) -> bool:
        """Tell whether a tick took its lease within these records."""
        return any(each.state.is_take for each in self._of_turn[turn] if each.state and each.had_effect)

    def has_saved(self, turn: str, job: str, partition: str) -> bool:
        """Tell whether a tick moved the cursor behind a job's key."""
        changes = (each.state for each in self._of_turn[turn] if each.state and each.had_effect)
        return any(each.partition == partition and each.cursor >= job for each in changes)

    def first_read(self, turn: str) -> float:
        """Return when a tick began to read its partition."""
        return min((record.at for record in self._of_turn[turn] if record.operation == "Query"), default=0.0)

    def is_over(self, turn: str, *, by: str) -> bool:
        """Tell whether the lease of a tick was over when another took it."""
        leases = [each.state.lease for each in self._of_turn[turn] if each.state and each.had_effect]
        taken = [each.state.now for each in self._of_turn[by] if each.state and each.state.is_take and each.had_effect]
        return bool(leases and taken) and all(lease <= max(taken) for lease in leases)


def causes_of(books: Books, records: Sequence[Record], kills: Iterable[Kill] = ()) -> dict[str, list[str]]:
    """Return the cause of each repeat, by the id of the job."""
    turns = Turns(records=records, killed=frozenset(kill.turn for kill in kills))
    of_job = _by_job(records, {uid_of(id) for id in books.repeated})
    return {id: _causes(of_job[uid_of(id)], id, books, turns) for id in books.repeated}


def most_by_one_kill(books: Books, records: Sequence[Record], kills: Iterable[Kill]) -> int:
    """Return the most jobs that arrived again because one tick was killed."""
    killed = {kill.turn for kill in kills if kill.function == TICK}
    of_job = _by_job(records, {uid_of(id) for id in books.repeated})
    turns = (turn for uid, found in of_job.items() for turn in {send.turn for send in _sends(found, uid)} & killed)
    return max(Counter(turns).values(), default=0)


def unexplained(books: Books, records: Sequence[Record], kills: Iterable[Kill] = ()) -> list[str]:
    """Return the jobs of which a repeat has no cause."""
    return [id for id, causes in causes_of(books, records, kills).items() if UNEXPLAINED in causes]


def _by_job(records: Iterable[Record], uids: set[str]) -> dict[str, list[Record]]:
    found: dict[str, list[Record]] = defaultdict(list)
    for record in sorted(records, key=lambda record: record.at):
        for uid in record.uids & uids:
            found[uid].append(record)
    return found


def _sends(found: Iterable[Record], uid: str) -> list[Record]:
    """Return the requests that brought a job to its queue, once for each time."""
    return [record for record in found for delivered in record.delivered if delivered == uid]


def _causes(found: Sequence[Record], id: str, books: Books, turns: Turns) -> list[str]:
    sends = _sends(found, uid_of(id))
    causes = [_cause(send, sends[place + 1 :], found, id=id, turns=turns) for place, send in enumerate(sends[:-1])]
    return causes + [RECEIVED_TWICE] * (books.times[id] - len(sends))


def _cause(send: Record, later: Sequence[Record], found: Sequence[Record], *, id: str, turns: Turns) -> str:
    """Return why a job was sent again though it had been sent."""
    ingests = {record.turn for record in found if record.function == INGEST}
    submissions = {each.turn for each in found if each.function in _SUBMITTERS and each.submits(uid_of(id))}
    functions = {send.function, *(each.function for each in later)}
    is_unsaved = send.function == TICK and not _is_saved(send, id, turns)
    between_ticks = is_unsaved and functions == {TICK}
    is_unseen = _is_unseen([send, *later], [each for each in found if uid_of(id) in each.notes], turns)
    reasons = {
        BY_A_KILLED_TICK: is_unsaved and send.turn in turns.killed,
        BY_A_KILLED_INGEST: send.function == INGEST and send.turn in turns.killed,
        BY_A_KILLED_SUBMISSION: send.function in _SUBMITTERS and send.turn in turns.killed,
        # Within one invocation nothing is sent again but what is not known to be sent.
        LOST_ANSWER: turns.is_unheard(send) or send.turn == later[0].turn,
        SUBMITTED_AGAIN: len(submissions) > 1 and functions != {TICK},
        AGAIN_AFTER_A_KILLED_INGEST: bool(ingests & turns.killed) and INGEST in functions,
        AGAIN_BY_SQS: len(ingests) > 1 and INGEST in functions,
        OUTLIVED_ITS_LEASE: between_ticks and turns.is_over(send.turn, by=later[0].turn),
        REFUSED_BESIDE: between_ticks and turns.fell_short(send.turn),
        STILL_INGESTED: INGEST in functions and is_unseen,
        STILL_SUBMITTED: bool(functions & _SUBMITTERS) and is_unseen,
    }
    return next((reason for reason, holds in reasons.items() if holds), UNEXPLAINED)


def _is_unseen(sends: Sequence[Record], notes: Sequence[Record], turns: Turns) -> bool:
    """Tell whether a tick sent a job before it could see a note of the late path that the job was sent."""
    reads = [turns.first_read(send.turn) for send in sends if send.function == TICK]
    return any(not note.had_effect or read < note.at + note.seconds for read in reads for note in notes)


def _is_saved(send: Record, id: str, turns: Turns) -> bool:
    """Tell whether the tick that sent a job moved the cursor behind it: then no other may send it."""
    partition, key = job_key(JobId.parse(id))
    return turns.has_saved(send.turn, key, partition)
