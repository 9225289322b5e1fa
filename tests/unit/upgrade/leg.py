"""A release's turn in a deployment in memory: run with that release's code, in a process of its own.

It takes over what the other release left, as plain values, and leaves the same.
"""

import json
import pickle
import random
import string
import sys
from collections.abc import Iterator, Mapping
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any
from uuid import UUID

from dueline.memory import Delivery, MemoryQueue
from dueline.model.job import Job, JobId
from dueline.model.message import Message
from dueline.model.queue_settings import PLANNER
from dueline.model.request import Request
from dueline.model.trace import TraceContext
from tests.builders import NOW, a_job, a_queue, an_id
from tests.scheduled import Scheduled

QUEUE, LEVELS = "emails", 2
# The lookahead is four minutes. What is due after thirteen is handed over after nine: in the next leg, which has six.
LEG_MINUTES = 6
SOON, NEXT_LEG, LATER = 5 * 60, 13 * 60, 15 * 60
# Until all has come that the last leg scheduled.
LAST_MINUTES = 30
LARGE = "".join(random.Random(1).choices(string.ascii_letters + string.digits, k=12_000))
TRACE = TraceContext.from_headers({"traceparent": "00-0d6a387e6d3b4b8e9f513d7c1f0a2b4c-3d7c1f0a2b4c0d6a-01"})
State = dict[str, Any]


class Leg:
    """What a release does in its turn, and tells of it: the jobs that it scheduled, and what became of earlier ones."""

    def __init__(self, number: int) -> None:
        self.told: State = {"jobs": {}, "cancelled": {}, "moved": {}, "again": {}}
        self._number, self._chance = number, random.Random(number)
        self.system = Scheduled(a_queue(name=QUEUE, priorities=LEVELS))

    def run(self, before: State, *, is_last: bool) -> None:
        """Go on where the leg before ended, whose jobs are cancelled, moved and scheduled again; schedule others."""
        assert not self.system.ingest().failed
        self.system.inbound.deliveries.clear()
        for kind, request in self._requests():
            self._enter(kind, request, self._submit(request))
        if before:
            self._change(before)
        self.system.define(cron="* * * * *", zone="UTC", payload=json.dumps({"leg": self._number}))
        self.system.live(LAST_MINUTES if is_last else LEG_MINUTES)
        if not is_last:
            self._leave_messages()

    def _requests(self) -> Iterator[tuple[str, Request]]:
        n, due = self._number, self.system.clock.now() + timedelta(seconds=NEXT_LEG)
        yield "direct", Request(payload={"n": n}, delay=SOON)
        yield "by the table", Request(payload={"n": n}, delay=NEXT_LEG)
        yield "of low priority", Request(payload={"n": n}, delay=NEXT_LEG, priority=LEVELS)
        yield "of a tenant", Request(payload={"n": n}, delay=NEXT_LEG, tenant="ann")
        yield "traced", Request(payload={"n": n}, delay=NEXT_LEG, trace=TRACE)
        yield "compressed", Request(payload={"n": n, "text": "again " * 500}, delay=NEXT_LEG)
        yield "in S3", Request(payload={"n": n, "text": LARGE}, delay=NEXT_LEG)
        yield "under an id", Request(payload={"n": n}, id=str(an_id(due=due, uid=self._uid())))
        yield "under a key", Request(payload={"n": n}, delay=LATER, key=f"key {n}")
        yield "to be cancelled", Request(payload={"n": n}, delay=LATER)
        yield "to be moved", Request(payload={"n": n, "text": LARGE}, delay=LATER)
        yield "to be moved by a message", Request(payload={"n": n}, delay=LATER)

    def _submit(self, request: Request) -> str:
        submit = self.system.submission(QUEUE, direct_horizon=self.system.direct_horizon, new_uid=self._uid)
        (job,) = submit.run([request], until=self.system.clock.monotonic() + 10)
        assert isinstance(job, Job), job
        return str(job.id)

    def _enter(self, kind: str, request: Request, id: str) -> None:
        payload = json.dumps(request.payload, separators=(",", ":"))
        self.told["jobs"][kind] = {"id": id, "payload": payload, "priority": request.priority}

    def _change(self, before: State) -> None:
        """Cancel and move jobs that the other release wrote, and schedule one again under its key."""
        ids = {kind: job["id"] for kind, job in before["jobs"].items()}
        self.told["cancelled"][ids["to be cancelled"]] = str(self.system.cancel(JobId.parse(ids["to be cancelled"])))
        reschedule = self.system.a_reschedule(QUEUE, new_uid=self._uid)
        moved = reschedule.run(JobId.parse(ids["to be moved"]), delay=NEXT_LEG)
        self.told["moved"][ids["to be moved"]] = str(moved.id)
        again = Request(payload={"n": self._number - 1}, delay=LATER, key=f"key {self._number - 1}")
        self.told["again"][ids["under a key"]] = self._submit(again)

    def _leave_messages(self) -> None:
        """Leave in the inbound queue, for the other release, what is accepted while the table throttles."""
        due = self.system.clock.now() + timedelta(seconds=NEXT_LEG)
        payload = f'{{"n":{self._number}}}'
        old = self.told["jobs"]["to be moved by a message"]["id"]
        new, job = (a_job(due=due, uid=self._uid(), payload=payload) for _ in range(2))
        self.told["jobs"]["by the inbound queue"] = {"id": str(job.id), "payload": payload, "priority": 1}
        self.told["moved"][old] = str(new.id)
        self.system.inbound.send([Message.of(job), Message.of(new, moves=JobId.parse(old))])

    def _uid(self) -> str:
        return str(UUID(int=self._chance.getrandbits(128), version=4))


def queues_of(system: Scheduled) -> Mapping[str, MemoryQueue]:
    stores = system.stores
    teams = [stores.level(QUEUE, priority) for priority in range(1, LEVELS + 1)]
    every = [*teams, stores.queues[PLANNER.name], stores.inbound, stores.rejects, stores.dead_letters]
    return {queue.name: queue for queue in every}


def take_over(system: Scheduled, left: State) -> None:
    """Put into a system what another left."""
    system.clock.sleep(left["seconds"])
    for row in left["rows"]:
        system.stores.table.write([row])
    system.stores.payloads.kept |= left["payloads"]
    for name, queue in queues_of(system).items():
        queue.deliveries = [_delivery(**each) for each in left["queues"][name]]
        queue.numbers = count(max((each.number for each in queue.deliveries), default=-1) + 1)


def left_by(system: Scheduled) -> State:
    """Return all that a system keeps."""
    partitions = system.stores.table._rows.values()
    return {
        "seconds": (system.clock.now() - NOW).total_seconds(),
        "rows": [row for partition in partitions for row in partition.values()],
        "payloads": system.stores.payloads.kept,
        "queues": {name: list(map(_values, queue.deliveries)) for name, queue in queues_of(system).items()},
    }


def _values(delivery: Delivery) -> State:
    message, of_message = delivery.message, ("body", "attributes", "group")
    told = {name: getattr(message, name) for name in of_message}
    return told | {name: getattr(delivery, name) for name in ("visible", "sent", "number")}


def _delivery(*, body: str, attributes: Mapping[str, str], group: str | None, **told: Any) -> Delivery:
    return Delivery(message=Message(body=body, attributes=dict(attributes), group=group), **told)


def main(number: str, of: str, place: str) -> None:
    """Run one of so many legs, which goes on from what is in a file, and leaves its own there."""
    path, leg = Path(place), Leg(int(number))
    kept = pickle.loads(path.read_bytes()) if path.exists() else {"told": []}  # noqa: S301, our own
    if kept["told"]:
        take_over(leg.system, kept["left"])
    leg.run(kept["told"][-1] if kept["told"] else {}, is_last=int(number) == int(of) - 1)
    path.write_bytes(pickle.dumps({"told": [*kept["told"], leg.told], "left": left_by(leg.system)}))


if __name__ == "__main__":
    main(*sys.argv[1:])
