"""The books of a run: what was asked, what was promised, what arrived; and whether the promises were kept."""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import httpx

from local.consumer import Landed, consuming
from tests.e2e.faults.stage import Stage
from tests.e2e.faults.story import Story


@dataclass(frozen=True, kw_only=True, slots=True)
class Accepted:
    """A job that the API said it took."""

    id: str
    queue: str
    due: datetime
    route: str


@dataclass(kw_only=True, slots=True)
class Books:
    """`maybe` are jobs whose call failed: they may be scheduled or not. `cancels` holds each cancel's HTTP status."""

    accepted: dict[str, Accepted] = field(default_factory=dict)
    maybe: set[str] = field(default_factory=set)
    cancels: dict[str, int] = field(default_factory=dict)
    statuses: Counter[int] = field(default_factory=Counter)
    landed: list[Landed] = field(default_factory=list)
    _writing: threading.Lock = field(default_factory=threading.Lock)

    def schedule(self, http: httpx.Client, queue: str, jobs: list[dict[str, Any]]) -> list[str]:
        """Schedule jobs in one call; return the ids of those that were accepted."""
        answer = http.post(f"/queues/{queue}/jobs", json={"jobs": jobs} if len(jobs) > 1 else jobs[0])
        told = answer.json() if answer.content else {}
        with self._writing:
            self.statuses[answer.status_code] += 1
            results = told.get("jobs", [told if answer.is_success else {"error": told}])
            return [id for result in results for id in self._enter(result)]

    def _enter(self, result: dict[str, Any]) -> Iterator[str]:
        if "error" in result:
            self.maybe |= {result["error"]["id"]} if "id" in result["error"] else set()
            return
        due = datetime.fromisoformat(result["due"])
        job = Accepted(id=result["id"], queue=result["queue"], due=due, route=result["route"])
        self.accepted[job.id] = job
        yield job.id

    def cancel(self, http: httpx.Client, id: str) -> None:
        status = http.delete(f"/queues/{id.partition('.')[0]}/jobs/{id}").status_code
        with self._writing:
            self.statuses[status] += 1
            self.cancels[id] = status

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
        """The jobs that must arrive: those accepted that nobody asked to take back."""
        return self.accepted.keys() - self.cancels.keys()

    @property
    def lost(self) -> set[str]:
        return self.promised - self.times.keys()

    @property
    def broken(self) -> set[str]:
        """The jobs that arrived after all, though a cancel was promised."""
        return {id for id, status in self.cancels.items() if status == httpx.codes.OK} & self.times.keys()

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
        return max(job.due for job in self.accepted.values() if job.id in self.promised or self._is_promised(job.id))

    def _is_promised(self, id: str) -> bool:
        return self.cancels.get(id) == httpx.codes.OK

    def close(self, story: Story, stage: Stage, *, most: int = 3) -> None:
        """Write the promises that were not kept into a story, and what befell the first few of their jobs."""
        for promise in ("lost", "early", "broken"):
            wrong = sorted(getattr(self, promise))
            story.expect(not wrong, f"{promise}: {len(wrong)} of {len(self.accepted)} jobs")
            story.told += "\n\n".join(map(stage.story_of, wrong[:most]))
        story.figures |= {
            "jobs accepted": len(self.accepted),
            "jobs by route": dict(Counter(job.route for job in self.accepted.values())),
            "jobs whose call failed": len(self.maybe),
            "cancels by answer": dict(Counter(self.cancels.values())),
            "delivered": len(self.times),
            "lost": len(self.lost),
            "early": len(self.early),
            "delivered after a 200 cancel": len(self.broken),
            "repeats": sum(self.times.values()) - len(self.times),
        }
