"""The books of a run: what was asked, what was promised, what arrived; and whether the promises were kept."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID, uuid4, uuid5

import httpx

from dueline import Job, State
from local.consumer import Landed, consuming
from tests.e2e.faults.exchange import uid_of
from tests.e2e.faults.stage import Stage
from tests.e2e.faults.story import Story

FAULTS = {429, 500, 502, 503, 504}
_BETWEEN_TRIES_SECONDS = 0.3


@dataclass(frozen=True, kw_only=True, slots=True)
class Accepted:
    """A job that the API said it took."""

    id: str
    queue: str
    due: datetime
    route: str
    state: State


@dataclass(frozen=True, kw_only=True, slots=True)
class Move:
    """What a reschedule was answered at last, and the UUID that the new job has, if there is one."""

    status: int
    uid: str


@dataclass(kw_only=True, slots=True)
class Books:
    """`maybe` are jobs whose call failed: they may be scheduled or not. `cancels` holds each cancel's HTTP status.

    `moves` are reschedules by the id of the old job. The new one of a 200 is among those accepted.
    """

    accepted: dict[str, Accepted] = field(default_factory=dict)
    maybe: set[str] = field(default_factory=set)
    cancels: dict[str, int] = field(default_factory=dict)
    moves: dict[str, Move] = field(default_factory=dict)
    statuses: Counter[int] = field(default_factory=Counter)
    landed: list[Landed] = field(default_factory=list)
    _writing: threading.Lock = field(default_factory=threading.Lock)

    def schedule(self, http: httpx.Client, queue: str, jobs: list[dict[str, Any]], *, tries: int = 1) -> list[str]:
        """Schedule jobs in one call; return the ids of those that were accepted.

        What meets with a fault is scheduled again under its id, up to so many times in all.
        """
        answer = http.post(f"/queues/{queue}/jobs", json={"jobs": jobs} if len(jobs) > 1 else jobs[0])
        told = answer.json() if answer.content else {}
        with self._writing:
            self.statuses[answer.status_code] += 1
            results = told.get("jobs", [told if answer.is_success else {"error": told}])
            accepted = [id for result in results for id in self._enter(result)]
        # A call that failed as a whole tells no ids.
        errors = ((job, result["error"]) for job, result in zip(jobs, results, strict=False) if "error" in result)
        again = [{"payload": job["payload"], "id": e["id"]} for job, e in errors if "id" in e and e["status"] in FAULTS]
        return accepted + (self.schedule(http, queue, again, tries=tries - 1) if again and tries > 1 else [])

    def _enter(self, result: dict[str, Any]) -> Iterator[str]:
        if "error" in result:
            self.maybe |= {result["error"]["id"]} if "id" in result["error"] else set()
            return
        due, state = datetime.fromisoformat(result["due"]), State(result["state"])
        job = Accepted(id=result["id"], queue=result["queue"], due=due, route=result["route"], state=state)
        self.accepted[job.id] = job
        self.maybe.discard(job.id)
        yield job.id

    def enter(self, job: Job) -> None:
        """Write down a job that the library returned as scheduled."""
        route = job.route.name.lower()
        self.accepted[job.id] = Accepted(id=job.id, queue=job.queue, due=job.due, route=route, state=job.state)

    def cancel(self, http: httpx.Client, id: str, *, tries: int = 1) -> None:
        """Cancel a job, again after each fault, up to so many times in all."""
        answer = self.answered(tries, lambda: http.delete(_path_of(id)))
        with self._writing:
            self.cancels[id] = answer.status_code

    def reschedule(self, http: httpx.Client, id: str, delay: float, *, tries: int) -> None:
        """Move a job, again under the same key after each fault, up to so many times in all."""
        key = str(uuid4())
        patch = partial(http.patch, _path_of(id), json={"delay": delay}, headers={"idempotency-key": key})
        answer = self.answered(tries, patch)
        with self._writing:
            self.moves[id] = Move(status=answer.status_code, uid=str(uuid5(UUID(uid_of(id)), key)))
            if answer.is_success:
                list(self._enter(answer.json()))

    def answered(self, tries: int, ask: Callable[[], httpx.Response]) -> httpx.Response:
        """Ask up to so many times for an answer that is no fault, and return the last one."""
        for left in reversed(range(tries)):
            answer = ask()
            with self._writing:
                self.statuses[answer.status_code] += 1
            if not (left and answer.status_code in FAULTS):
                return answer
            time.sleep(_BETWEEN_TRIES_SECONDS)
        raise ValueError("nothing was asked")

    @contextmanager
    def receiving(self, stage: Stage, *, queues: list[str] | None = None) -> Iterator[None]:
        """Write down all that arrives in the queues, as plain consumers receive it, while the context lasts."""
        with ExitStack() as stack:
            for queue in queues or list(stage.endpoints.queues):
                stack.enter_context(consuming(stage.emulator, stage.endpoints.queues[queue], self.landed.append))
            yield

    @property
    def times(self) -> Counter[str]:
        """How often each job arrived."""
        return Counter(landed.id for landed in list(self.landed))

    @property
    def promised(self) -> set[str]:
        """The jobs that must arrive: those accepted that nobody asked to take back, or to move without a refusal."""
        return (
            self.accepted.keys() - self.cancels.keys() - (self.moves.keys() - self._moves(httpx.codes.CONFLICT).keys())
        )

    @property
    def lost(self) -> set[str]:
        """The promised jobs that did not arrive, and those of which neither the old nor the new one did."""
        times, uids = self.times.keys(), self._uids()
        neither = {id for id, move in self._unclear().items() if id not in times and move.uid not in uids}
        return (self.promised - times) | neither

    @property
    def broken(self) -> set[str]:
        """The jobs that arrived after all, though a cancel or a reschedule was promised, or that have two fates."""
        taken_back = {id for id, status in self.cancels.items() if status == httpx.codes.OK}
        taken_back |= self._moves(httpx.codes.OK).keys()
        both = {id for id, move in self._unclear().items() if move.uid in self._uids()}
        return (taken_back | both) & self.times.keys()

    @property
    def strangers(self) -> set[str]:
        """The jobs that arrived though nobody knows of them: the second one after a 409, or one under another id."""
        known = {uid_of(id) for id in self.accepted.keys() | self.maybe} | {m.uid for m in self._unclear().values()}
        return {id for id in self.times if uid_of(id) not in known}

    def _moves(self, status: int) -> dict[str, Move]:
        return {id: move for id, move in list(self.moves.items()) if move.status == status}

    def _unclear(self) -> dict[str, Move]:
        """Return the reschedules without an answer: there is the old job, or the new one."""
        clear = self._moves(httpx.codes.OK).keys() | self._moves(httpx.codes.CONFLICT).keys()
        return {id: move for id, move in list(self.moves.items()) if id not in clear}

    def _uids(self) -> set[str]:
        return set(map(uid_of, self.times))

    @property
    def early(self) -> set[str]:
        return {landed.id for landed in list(self.landed) if landed.lateness < 0}

    @property
    def repeated(self) -> dict[str, int]:
        """The jobs that arrived more than once, and how often."""
        return {id: times for id, times in self.times.items() if times > 1}

    def first_arrival(self, id: str) -> datetime:
        return min(landed.at for landed in self.landed if landed.id == id)

    def lateness(self) -> list[float]:
        """Return how late each job first arrived, in seconds, least first."""
        first: dict[str, float] = {}
        for landed in list(self.landed):
            first[landed.id] = min(first.get(landed.id, landed.lateness), landed.lateness)
        return sorted(first.values())

    @property
    def last_due(self) -> datetime:
        """The due time of the last of those that must or must not arrive."""
        asked = {id for id, status in self.cancels.items() if status != httpx.codes.OK}
        return max(job.due for job in self.accepted.values() if job.id not in asked)

    def close(self, story: Story, stage: Stage, *, most: int = 3) -> None:
        """Write the promises that were not kept into a story, and what befell the first few of their jobs."""
        for promise in ("lost", "early", "broken"):
            wrong = sorted(getattr(self, promise))
            story.expect(not wrong, f"{promise}: {len(wrong)} of {len(self.accepted)} jobs")
            story.told += "\n\n".join(map(stage.story_of, wrong[:most]))
        story.figures |= {
            "jobs accepted": len(self.accepted),
            "jobs by route": dict(Counter(job.route for job in self.accepted.values())),
            "jobs by state": dict(Counter(str(job.state) for job in self.accepted.values())),
            "jobs whose call failed": len(self.maybe),
            "cancels by answer": dict(Counter(self.cancels.values())),
            "reschedules by answer": dict(Counter(move.status for move in self.moves.values())),
            "delivered": len(self.times),
            "lost": len(self.lost),
            "early": len(self.early),
            "delivered after a 200": len(self.broken),
            "repeats": sum(self.times.values()) - len(self.times),
        }


def _path_of(id: str) -> str:
    return f"/queues/{id.partition('.')[0]}/jobs/{id}"
