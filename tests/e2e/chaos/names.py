"""Names under kills: two callers of each name schedule, move and cancel its job by key, and one call decides."""

import json
import random
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import httpx

from tests.e2e.chaos.deployment import Deployment
from tests.e2e.chaos.ledger import Ledger, Report

# What calls by name are answered besides others: a job that was made, none to move or cancel, another content.
ANSWERS = {httpx.codes.CREATED, httpx.codes.NOT_FOUND, httpx.codes.UNPROCESSABLE_ENTITY}
NAMES = [f"name {number}" for number in range(4)]
# Their jobs are due so many seconds after the callers began to end: the fence is 21 s ahead.
DUE_SECONDS, FENCE_SECONDS, SPREAD_SECONDS = 60.0, 21.0, 4.0
BETWEEN_CALLS_SECONDS = 1.0
MOST_TRIES = 100
# Of a caller: a key remembers eight calls by their names, and the next is 503. Without a name, a time makes calls safe
# to repeat.
NAMED_CALLS = 3
_LAST = "last"


@dataclass(kw_only=True)
class Names:
    """Callers of names of one queue, and what the last call of each name was answered: None if it cancelled.

    Of a name in `late`, the last call was answered when its job may have left: of that one nothing is known.
    """

    deployment: Deployment
    ledger: Ledger
    queue: str
    seconds: float
    seed: int
    decided: dict[str, str | None] = field(default_factory=dict)
    late: set[str] = field(default_factory=set)
    answers: Counter[str] = field(default_factory=Counter)

    def run(self) -> None:
        """Make calls for so many seconds, two callers of each name at once, then one for each that decides."""
        ends = time.monotonic() + self.seconds
        self._due = datetime.now(UTC) + timedelta(seconds=self.seconds + DUE_SECONDS)
        callers = [(name, caller) for name in NAMES for caller in range(2)]
        with ThreadPoolExecutor(len(callers)) as pool:
            list(pool.map(lambda each: self._call(*each, ends), callers))
            list(pool.map(self._decide, NAMES))

    def _call(self, name: str, caller: int, ends: float) -> None:
        chance, number = random.Random(f"{self.seed} {name} {caller}"), 0
        while not number or time.monotonic() < ends:
            call = {"idempotency-key": f"{name}, {caller}: {number}"} if number < NAMED_CALLS else {}
            number += 1
            due = self._due + timedelta(seconds=chance.uniform(0, SPREAD_SECONDS))
            match chance.choice(["keep", "replace", "replace", "move", "move", "cancel"]):
                case "move":
                    self._move(name, due, call)
                case "cancel":
                    self._cancel(name)
                case if_exists:
                    self._schedule(name, due, call, content=chance.randrange(2), if_exists=if_exists)
            time.sleep(BETWEEN_CALLS_SECONDS)

    def _decide(self, name: str) -> None:
        """Cancel every other name, and replace what the others have."""
        if NAMES.index(name) % 2:
            self._cancel(name)
            self.decided[name] = None
        else:
            answer = self._schedule(name, self._due, {}, content=_LAST, if_exists="replace")
            self.decided[name] = answer["id"]
            self.ledger.accept_answer(answer)
        if datetime.now(UTC) > self._due - timedelta(seconds=FENCE_SECONDS):
            self.late.add(name)

    def _schedule(
        self, name: str, due: datetime, call: dict[str, str], *, content: object, if_exists: str
    ) -> dict[str, Any]:
        payload = {"name": name, "content": content}
        job = {"payload": payload, "at": due.isoformat(), "key": name, "if_exists": if_exists}
        return self._answered("schedule", "post", json=job, headers=call)

    def _move(self, name: str, due: datetime, call: dict[str, str]) -> None:
        self._answered("move", "patch", params={"key": name}, json={"at": due.isoformat()}, headers=call)

    def _cancel(self, name: str) -> None:
        answer = self._answered("cancel", "delete", params={"key": name})
        if "id" in answer:
            self.ledger.cancels[answer["id"]] = answer["status"]

    def _answered(self, what: str, method: str, **request: Any) -> dict[str, Any]:
        """Make a call until it is answered; return the answer, with its HTTP status as `status`."""
        send = partial(self.deployment.http.request, method, f"/queues/{self.queue}/jobs", **request)
        answer = self.ledger.answered(MOST_TRIES, send)
        self.answers[f"{what}: {answer.status_code}"] += 1
        content = {**answer.json(), "status": answer.status_code} if answer.is_success else {}
        self.ledger.named |= {content[each] for each in ("id", "moved_from") if each in content}
        return content

    def check(self, report: Report) -> None:
        """Complain unless of each name the job alone was received that its last call was answered, as requested."""
        received: dict[str, dict[str, object]] = {name: {} for name in NAMES}
        for landed in list(self.ledger.delivered):
            payload = json.loads(landed.payload)
            if payload.get("name") in received:
                received[payload["name"]][landed.id] = payload["content"]
        for name in set(NAMES) - self.late:
            id = self.decided[name]
            if received[name] != ({id: _LAST} if id else {}):
                report.expect(False, f"{name} was answered {id}, and received: {received[name]}")
                report.details += map(self.deployment.history_of, received[name])
        report.figures |= {"calls by name": dict(self.answers), "names that were called too late": len(self.late)}
