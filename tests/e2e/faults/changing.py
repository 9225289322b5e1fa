"""Callers that put, pause, resume and delete schedules, and give up at a fault or ask again until they are answered."""

import random
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import httpx

from tests.e2e.faults.books import Books

EVERY = timedelta(seconds=60)
# A head keeps the last 20 generations: so all of them are known at the end.
MOST_CHANGES = 18
MATCHED_SHARE = 0.3
# The lookahead of a local run, and a second: sooner no change takes effect.
CUT_AFTER = timedelta(seconds=20)
# Of changes, so many are of any schedule; the others of one of the few that are due next after their cut.
ANY_SHARE, FEW = 0.3, 2
_MOST_TRIES = 100
# What follows most often upon what a schedule is, as far as is known.
_NEXT = {
    "put": ("put", "put", "pause", "pause", "delete"),
    "resume": ("put", "pause", "delete"),
    "pause": ("resume", "resume", "resume", "put", "delete"),
    "delete": ("put", "put", "put", "pause"),
}


ACTS = _NEXT.keys()


@dataclass(frozen=True, kw_only=True, slots=True)
class Schedule:
    """A schedule's queue and name."""

    queue: str
    name: str

    @property
    def path(self) -> str:
        return f"/queues/{self.queue}/schedules/{self.name}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Told:
    """What a caller was told when it asked for a change: `anchor` is the start of the rule that it put."""

    schedule: Schedule
    act: str
    anchor: datetime | None
    body: dict[str, Any]

    @property
    def generation(self) -> int:
        return int(self.body["generation"])

    @property
    def effective_from(self) -> datetime:
        return datetime.fromisoformat(self.body["effective_from"])


class Changing:
    """Changes schedules, each of them to run every minute, and writes down what it was told.

    No two rules have the same start: `versions` tells by the start which payload goes with a rule.
    """

    def __init__(self, books: Books, http: httpx.Client, scattered: random.Random) -> None:
        self.told: list[Told] = []
        self.versions: dict[datetime, int] = {}
        self._books = books
        self._http = http
        self._scattered = scattered
        self._origin = datetime.now(UTC).replace(second=0, microsecond=0)
        self._latest: dict[Schedule, Told] = {}
        self._anchors: dict[Schedule, datetime] = {}
        self._changes: Counter[Schedule] = Counter()
        self._writing = threading.Lock()

    def put(self, schedule: Schedule, *, lead: float, tries: int = _MOST_TRIES) -> None:
        """Have a schedule run at the second of the minute that comes after `lead` seconds."""
        anchor = self._new_anchor(datetime.now(UTC) + timedelta(seconds=lead))
        self._ask(schedule, "put", anchor, tries=tries)

    def change_some(self, schedules: Sequence[Schedule], *, lead: tuple[float, float]) -> None:
        """Change one of these schedules in any way; a rule that is put runs first in so many to so many seconds."""
        with self._writing:
            left = [each for each in schedules if self._changes[each] < MOST_CHANGES]
        if not left:
            return
        is_any = self._scattered.random() < ANY_SHARE
        schedule = self._scattered.choice(left if is_any else self._due_after_a_cut(left))
        tries = self._scattered.choice((1, _MOST_TRIES))
        latest = self._latest.get(schedule)
        act = self._scattered.choice(_NEXT[latest.act] if latest else ("put",))
        if act == "put":
            self.put(schedule, lead=self._scattered.uniform(*lead), tries=tries)
        else:
            self._ask(schedule, act, tries=tries)

    def _due_after_a_cut(self, schedules: Sequence[Schedule]) -> list[Schedule]:
        """Return the schedules of which a run is due the soonest after a change that is made now."""
        cut = datetime.now(UTC) + CUT_AFTER
        return sorted(schedules, key=lambda each: (self._anchors.get(each, cut) - cut) % EVERY)[:FEW]

    def _new_anchor(self, wished: datetime) -> datetime:
        """Return a start in the past from which each minute is as wished, and which no other rule has."""
        with self._writing:
            version = len(self.versions) + 1
            anchor = self._origin - version * EVERY + timedelta(seconds=wished.second)
            self.versions[anchor] = version
        return anchor

    def _ask(self, schedule: Schedule, act: str, anchor: datetime | None = None, *, tries: int) -> None:
        with self._writing:
            self._changes[schedule] += 1
            latest = self._latest.get(schedule)
        is_matched = latest is not None and self._scattered.random() < MATCHED_SHARE
        headers = {"If-Match": latest.body["etag"]} if latest and is_matched else {}
        answer = self._books.answered(
            tries, partial(self._heard, partial(self._request, schedule, act, anchor, headers))
        )
        if answer.is_success:
            told = Told(schedule=schedule, act=act, anchor=anchor, body=answer.json())
            with self._writing:
                self.told.append(told)
                self._latest[schedule] = told
                self._anchors[schedule] = datetime.fromisoformat(told.body["start"])

    def _heard(self, request: Callable[[], httpx.Response]) -> httpx.Response:
        """Return an answer; one that is not heard in time is as that of a gateway that waits no longer."""
        try:
            return request()
        except httpx.TransportError:
            return httpx.Response(httpx.codes.GATEWAY_TIMEOUT)

    def _request(
        self, schedule: Schedule, act: str, anchor: datetime | None, headers: dict[str, str]
    ) -> httpx.Response:
        if act == "delete":
            return self._http.delete(schedule.path, headers=headers)
        if anchor is None:
            return self._http.post(f"{schedule.path}/{act}", headers=headers)
        rule = {"every": int(EVERY.total_seconds()), "start": anchor.isoformat(), "catch_up": "all"}
        return self._http.put(
            schedule.path, headers=headers, json={**rule, "payload": {"version": self.versions[anchor]}}
        )
