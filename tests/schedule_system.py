"""A deployment with schedules: the core of `tests/system.py`, a planner and its queue, and changes, on one clock."""

import math
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from dueline.core import instant, rows
from dueline.core.job import Partition, StoredJob
from dueline.core.queue_settings import PLANNER, QueueSettings
from dueline.schedules.changes import Changed, Changes
from dueline.schedules.definition import Definition
from dueline.schedules.head import Head
from dueline.schedules.planner import Planned, Planner, PlanningMessage, Watchdog
from dueline.schedules.queries import get
from dueline.schedules.rule import Rule
from tests.builders import EMAILS, NOW, RETENTION, a_queue
from tests.system import PERIODS, System

PLANNER_PARTITION = Partition(queue=PLANNER.name, number=0)
A_MINUTE = timedelta(minutes=1)


def at(minutes: float) -> datetime:
    """Return the instant so many minutes from the beginning."""
    return NOW + timedelta(minutes=minutes)


def a_definition(**overrides: Any) -> Definition:
    """Return a definition whose rule, unless it is options, is to run each minute."""
    options = {
        name: overrides.pop(name) for name in ("cron", "every", "zone", "start", "end", "count") if name in overrides
    }
    rule = Rule(**(options or {"every": A_MINUTE}))
    return Definition(**({"rule": rule, "payload": '{"to":"all"}'} | overrides))


def a_head(**overrides: Any) -> Head:
    fields = {"queue": "emails", "name": "digest", "definition": a_definition(), "generation": 1, "start": NOW}
    fields |= {"partition": EMAILS, "planned_to": NOW, "retention": RETENTION}
    return Head(**(fields | overrides))


class ScheduleSystem(System):
    """A deployment and the one process that is everything in it; the queue `emails` has one partition."""

    def __init__(self, *settings: QueueSettings) -> None:
        super().__init__(*(settings or [a_queue()]), PLANNER)
        self.route = self.a_route()
        self.changes = Changes(self.route)
        self.watchdog = self.watch()
        self._first_received: dict[str, datetime] = {}
        self.tick(EMAILS)
        self.tick(PLANNER_PARTITION)

    def watch(self, **options: str) -> Watchdog:
        return Watchdog(self.route, tick_period=A_MINUTE, **options)

    def define(self, name: str = "digest", *, if_match: str | None = None, **overrides: Any) -> Changed:
        return self.changes.put(self.settings["emails"], name, a_definition(**overrides), if_match=if_match)

    def resume(self, name: str = "digest") -> Changed:
        return self.change("resume", name)

    def change(self, what: str, name: str = "digest") -> Changed:
        """Pause, resume or delete a schedule."""
        return getattr(self.changes, what)(self.settings["emails"] if what == "resume" else "emails", name)

    def head(self, name: str = "digest") -> Head:
        return get("emails", name, table=self.table)

    def fence(self) -> datetime:
        """Return the fence of the queue `emails`."""
        key = rows.state_key(EMAILS)
        return instant.parse(rows.read_state(self.table.read([key]).rows[key]).fence)

    def planning_messages(self) -> list[PlanningMessage]:
        """Return the planning jobs that are visible now."""
        queue, now = self.queues[PLANNER.name], self.clock.now()
        first = self._first_received
        return [
            PlanningMessage(message_id=number, body=each.message.body, first_received=first.setdefault(number, now))
            for each in queue.deliveries
            if each.visible <= now and (number := str(each.number))
        ]

    def planner(self) -> Planner:
        return Planner(self.route, until=math.inf)

    def plan(self) -> Planned:
        """Have the planner take what is visible, and delete or hide it as it says."""
        batch = self.planning_messages()
        planned = self.planner().run(batch)
        queue, received = self.queues[PLANNER.name], {each.message_id for each in batch}
        queue.deliveries = [
            each for each in queue.deliveries if str(each.number) not in received or str(each.number) in planned.again
        ]
        return planned

    def live(self, minutes: float, *, planner: bool = True, each: Callable[[], object] = lambda: None) -> None:
        """Let time pass: tick every minute, and plan after each."""
        end = self.clock.now() + timedelta(minutes=minutes)
        while (began := self.clock.now()) < end:
            self.tick(EMAILS)
            self.tick(PLANNER_PARTITION)
            while planner and self.planning_messages():
                if self.plan().again:
                    break
            each()
            # A sweep takes up to a second of its minute; to wait for a lease, which is for 30, moves the minutes.
            swept = (self.clock.now() - began) % PERIODS.lease
            self.clock.sleep(min(A_MINUTE - swept, end - self.clock.now()).total_seconds())

    def sent(self, queue: str = "emails") -> list[StoredJob]:
        """Return the jobs that reached a queue, repeats included."""
        return [each.message.job() for each in self.queues[queue].deliveries]

    def scheduled_times(self, queue: str = "emails") -> list[float]:
        """Return for which minutes from the beginning a job reached a queue, in order."""
        return sorted((job.scheduled_for - NOW) / A_MINUTE for job in self.sent(queue) if job.scheduled_for)
