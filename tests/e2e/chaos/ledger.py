"""What was accepted, cancelled, moved and delivered in a run, and whether the promises were kept."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID, uuid4, uuid5

import httpx

from dueline import Job
from tests.acceptance.inbox import Inbox, Landed, percentile
from tests.e2e.chaos.deployment import Deployment
from tests.e2e.chaos.proxy import uid_of

FAULTS = {429, 500, 502, 503, 504}
# Of a caller that does not give up.
MOST_TRIES = 100
_BETWEEN_TRIES_SECONDS = 0.3
_DETAILED = 3


@dataclass(kw_only=True, slots=True)
class Report:
    """How a scenario ended: `complaints` are the promises that were broken; `details` are the requests and logs."""

    complaints: list[str] = field(default_factory=list)
    figures: dict[str, Any] = field(default_factory=dict)
    details: list[str] = field(default_factory=list)

    def expect(self, holds: object, complaint: str) -> None:
        """Complain unless something holds."""
        if not holds:
            self.complaints.append(complaint)

    def __str__(self) -> str:
        figures = (f"{name}: {figure}" for name, figure in self.figures.items())
        return "\n".join([*self.complaints, "", *figures, "", *self.details])


@dataclass(frozen=True, kw_only=True, slots=True)
class Move:
    """The last answer to a reschedule, and the UUID that the new job has, if there is one."""

    status: int
    uid: str


@dataclass(kw_only=True, slots=True)
class Ledger:
    """`accepted` are the due times of jobs by their ids, and `cancels` holds each cancel's HTTP status.

    `moves` are reschedules by the id of the old job. The new one of a 200 is among those accepted. `parked` are jobs
    that are in a dead-letter queue, and belong there.
    """

    accepted: dict[str, datetime] = field(default_factory=dict)
    routes: Counter[str] = field(default_factory=Counter)
    cancels: dict[str, int] = field(default_factory=dict)
    moves: dict[str, Move] = field(default_factory=dict)
    statuses: Counter[int] = field(default_factory=Counter)
    delivered: list[Landed] = field(default_factory=list)
    parked: set[str] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    # What callers do.

    def accept(self, job: Job) -> None:
        """Note a job that the library returned as scheduled."""
        self.accepted[job.id] = job.due
        self.routes[job.route.name.lower()] += 1

    def cancel(self, http: httpx.Client, id: str) -> None:
        """Cancel a job, again after each fault."""
        answer = self.answered(MOST_TRIES, lambda: http.delete(_path_of(id)))
        with self._lock:
            self.cancels[id] = answer.status_code

    def reschedule(self, http: httpx.Client, id: str, delay: float, *, tries: int) -> None:
        """Move a job, again under the same key after each fault, up to so many times in all."""
        key = str(uuid4())
        patch = partial(http.patch, _path_of(id), json={"delay": delay}, headers={"idempotency-key": key})
        answer = self.answered(tries, patch)
        with self._lock:
            self.moves[id] = Move(status=answer.status_code, uid=str(uuid5(UUID(uid_of(id)), key)))
            if answer.is_success:
                moved = answer.json()
                self.accepted[moved["id"]] = datetime.fromisoformat(moved["due"])

    def answered(self, tries: int, request: Callable[[], httpx.Response]) -> httpx.Response:
        """Send a request up to so many times, until the answer is no fault; return the last one."""
        for left in reversed(range(tries)):
            answer = request()
            with self._lock:
                self.statuses[answer.status_code] += 1
            if not (left and answer.status_code in FAULTS):
                return answer
            time.sleep(_BETWEEN_TRIES_SECONDS)
        raise ValueError("nothing was sent")

    @contextmanager
    def receiving(self, deployment: Deployment, *queues: str) -> Iterator[None]:
        """Note all that arrives in these queues, as plain consumers receive it, while the context lasts."""
        sqs, names = deployment.emulator.client("sqs"), deployment.settings.names
        inboxes = [Inbox(sqs, names.queue(queue), threads=1, landed=self.delivered).open() for queue in queues]
        try:
            yield
        finally:
            for inbox in inboxes:
                inbox.stop()
            for inbox in inboxes:
                inbox.close()

    # What was promised, and came.

    @property
    def times(self) -> Counter[str]:
        """How often each job arrived."""
        return Counter(job.id for job in list(self.delivered))

    @property
    def repeated(self) -> list[str]:
        return [id for id, times in self.times.items() if times > 1]

    @property
    def lost(self) -> set[str]:
        """The jobs that nobody cancelled or moved and did not arrive, and moves of which neither job did."""
        moved = self.moves.keys() - self._moves(httpx.codes.CONFLICT).keys()
        times, uids = self.times.keys(), self._uids()
        neither = {id for id, move in self._unclear_moves().items() if id not in times and move.uid not in uids}
        return (self.accepted.keys() - self.cancels.keys() - moved - times - self.parked) | neither

    @property
    def early(self) -> set[str]:
        return {job.id for job in list(self.delivered) if job.lateness < 0}

    @property
    def delivered_after_200(self) -> set[str]:
        """The jobs that arrived though a cancel or a reschedule was promised, or of which both arrived."""
        promised = {id for id, status in self.cancels.items() if status == httpx.codes.OK}
        promised |= self._moves(httpx.codes.OK).keys()
        both = {id for id, move in self._unclear_moves().items() if move.uid in self._uids()}
        return (promised | both) & self.times.keys()

    @property
    def unknown(self) -> set[str]:
        """The jobs that arrived and nobody scheduled: the second one after a 409, or one under another id."""
        uids = {uid_of(id) for id in self.accepted} | {move.uid for move in self._unclear_moves().values()}
        return {id for id in self.times if uid_of(id) not in uids}

    def _moves(self, status: int) -> dict[str, Move]:
        return {id: move for id, move in list(self.moves.items()) if move.status == status}

    def _unclear_moves(self) -> dict[str, Move]:
        """Return the reschedules without an answer: there is the old job, or the new one."""
        clear = self._moves(httpx.codes.OK).keys() | self._moves(httpx.codes.CONFLICT).keys()
        return {id: move for id, move in list(self.moves.items()) if id not in clear}

    def _uids(self) -> set[str]:
        return set(map(uid_of, self.times))

    @property
    def last_due(self) -> datetime:
        """The due time of the last of those that must or must not arrive."""
        unsure = {id for id, status in self.cancels.items() if status != httpx.codes.OK}
        return max(due for id, due in self.accepted.items() if id not in unsure)

    def check(self, report: Report, deployment: Deployment) -> None:
        """Complain of each promise that was not kept, with the requests about the first few jobs."""
        for promise in ("lost", "early", "delivered_after_200", "unknown"):
            wrong = sorted(getattr(self, promise))
            report.expect(not wrong, f"{promise}: {len(wrong)} of {len(self.accepted)} jobs")
            report.details += map(deployment.history_of, wrong[:_DETAILED])
        late = sorted(job.lateness for job in self.delivered)
        report.figures |= {
            "jobs accepted": len(self.accepted),
            "jobs by route": dict(self.routes),
            "answers": dict(self.statuses),
            "cancels by answer": dict(Counter(self.cancels.values())),
            "reschedules by answer": dict(Counter(move.status for move in self.moves.values())),
            "delivered": len(self.times),
            "repeats": sum(self.times.values()) - len(self.times),
            "lateness in s": {f"p{percent}": percentile(late, percent) for percent in (50, 95, 100)},
        }


def _path_of(id: str) -> str:
    return f"/queues/{id.partition('.')[0]}/jobs/{id}"
