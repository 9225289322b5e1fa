"""Why jobs arrived more than once: the cause of each repeat, read from the requests, never from how long they took."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from dueline.core.job import JobId
from dueline.core.rows import job_key
from tests.e2e.chaos.deployment import Deployment
from tests.e2e.chaos.kills import API, INGEST, PLANNER, TICK, Kill
from tests.e2e.chaos.ledger import Ledger, Report
from tests.e2e.chaos.proxy import Record, StateChange, uid_of

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
_SUBMITTERS = {API, PLANNER}


@dataclass(kw_only=True, slots=True)
class Invocations:
    """What the invocations of functions did; `killed` are those that were."""

    records: Sequence[Record]
    killed: frozenset[str]
    _unheard: set[tuple[int, int]] = field(init=False)
    _records_of: dict[str, list[Record]] = field(init=False)

    def __post_init__(self) -> None:
        self._unheard = {(each.sender.pid, number) for each in self.records for number in each.sender.unheard}
        self._records_of = defaultdict(list)
        for record in self.records:
            self._records_of[record.invocation].append(record)

    def is_unheard(self, record: Record) -> bool:
        """Return whether the process gave up on the answer to a request, as it said in a later one."""
        return (record.sender.pid, record.sender.number) in self._unheard

    def fell_short(self, invocation: str) -> bool:
        """Return whether a request of an invocation was refused or not heard of."""
        return any(not record.had_effect or self.is_unheard(record) for record in self._records_of[invocation])

    def has_saved(self, invocation: str, id: str) -> bool:
        """Return whether a tick moved the cursor behind a job: then no other may send it."""
        partition, key = job_key(JobId.parse(id))
        return any(state.partition == partition and state.cursor >= key for state in self._states(invocation))

    def first_read(self, invocation: str) -> float:
        """Return when a tick began to read its partition."""
        return min((each.at for each in self._records_of[invocation] if each.operation == "Query"), default=0.0)

    def lease_is_over(self, invocation: str, *, at: str) -> bool:
        """Return whether the lease of a tick was over when another acquired it."""
        leases = [state.lease for state in self._states(invocation)]
        acquired = [state.now for state in self._states(at) if state.acquires]
        return bool(leases and acquired) and all(lease <= max(acquired) for lease in leases)

    def _states(self, invocation: str) -> list[StateChange]:
        return [each.state for each in self._records_of[invocation] if each.state and each.had_effect]


def causes_of(ledger: Ledger, records: Sequence[Record], kills: Iterable[Kill] = ()) -> dict[str, list[str]]:
    """Return the cause of each repeat, by the id of the job."""
    invocations = Invocations(records=records, killed=frozenset(kill.invocation for kill in kills))
    of_job = _by_job(records, ledger)
    return {id: _causes(of_job[uid_of(id)], id, ledger.times[id], invocations) for id in ledger.repeated}


def check(report: Report, ledger: Ledger, deployment: Deployment, kills: Iterable[Kill]) -> None:
    """Complain of repeats that have no cause, with the requests about the first few jobs."""
    causes = causes_of(ledger, list(deployment.proxy.records), kills)
    unexplained = [id for id, of_job in causes.items() if UNEXPLAINED in of_job]
    report.expect(not unexplained, f"{len(unexplained)} jobs arrived more than once for no cause")
    report.details += map(deployment.history_of, unexplained[:3])
    report.figures["repeats by cause"] = dict(Counter(cause for of_job in causes.values() for cause in of_job))


def most_by_one_kill(ledger: Ledger, records: Sequence[Record], kills: Iterable[Kill]) -> int:
    """Return the most jobs that arrived again because one tick was killed."""
    killed, repeats = {kill.invocation for kill in kills if kill.function == TICK}, Counter[str]()
    for uid, of_job in _by_job(records, ledger).items():
        repeats.update({send.invocation for send in _sends(of_job, uid)} & killed)
    return max(repeats.values(), default=0)


def _by_job(records: Iterable[Record], ledger: Ledger) -> dict[str, list[Record]]:
    """Return the records about each job that arrived more than once, by its UUID."""
    uids, of_job = {uid_of(id) for id in ledger.repeated}, defaultdict[str, list[Record]](list)
    for record in sorted(records, key=lambda record: record.at):
        for uid in record.uids & uids:
            of_job[uid].append(record)
    return of_job


def _sends(of_job: Iterable[Record], uid: str) -> list[Record]:
    """Return the requests that brought a job to its queue, once for each time."""
    return [record for record in of_job for delivered in record.delivered if delivered == uid]


def _causes(of_job: Sequence[Record], id: str, times: int, invocations: Invocations) -> list[str]:
    sends = _sends(of_job, uid_of(id))
    pairs = ((send, sends[place + 1 :]) for place, send in enumerate(sends[:-1]))
    causes = [_cause(send, later, of_job, id=id, invocations=invocations) for send, later in pairs]
    return causes + [RECEIVED_TWICE] * (times - len(sends))


def _cause(
    send: Record, later: Sequence[Record], of_job: Sequence[Record], *, id: str, invocations: Invocations
) -> str:
    """Return why a job was sent again though it had been sent."""
    function, is_killed = send.sender.function, send.invocation in invocations.killed
    ingests = {each.invocation for each in of_job if each.sender.function == INGEST}
    submitters = (each for each in of_job if each.sender.function in _SUBMITTERS)
    submissions = {each.invocation for each in submitters if each.submits(uid_of(id))}
    functions = {function, *(each.sender.function for each in later)}
    is_unsaved = function == TICK and not invocations.has_saved(send.invocation, id)
    between_ticks = is_unsaved and functions == {TICK}
    is_unseen = _is_unseen([send, *later], [each for each in of_job if uid_of(id) in each.notes], invocations)
    reasons = {
        BY_A_KILLED_TICK: is_unsaved and is_killed,
        BY_A_KILLED_INGEST: function == INGEST and is_killed,
        BY_A_KILLED_SUBMISSION: function in _SUBMITTERS and is_killed,
        # Within one invocation nothing is sent again but what is not known to be sent.
        LOST_ANSWER: invocations.is_unheard(send) or send.invocation == later[0].invocation,
        SUBMITTED_AGAIN: len(submissions) > 1 and functions != {TICK},
        AGAIN_AFTER_A_KILLED_INGEST: bool(ingests & invocations.killed) and INGEST in functions,
        AGAIN_BY_SQS: len(ingests) > 1 and INGEST in functions,
        OUTLIVED_ITS_LEASE: between_ticks and invocations.lease_is_over(send.invocation, at=later[0].invocation),
        REFUSED_BESIDE: between_ticks and invocations.fell_short(send.invocation),
        STILL_INGESTED: INGEST in functions and is_unseen,
        STILL_SUBMITTED: bool(functions & _SUBMITTERS) and is_unseen,
    }
    return next((reason for reason, holds in reasons.items() if holds), UNEXPLAINED)


def _is_unseen(sends: Sequence[Record], notes: Sequence[Record], invocations: Invocations) -> bool:
    """Return whether a tick sent a job before it could see a note of the late path that the job was sent."""
    reads = [invocations.first_read(send.invocation) for send in sends if send.sender.function == TICK]
    return any(not note.had_effect or read < note.at + note.seconds for read in reads for note in notes)
