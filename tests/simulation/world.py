"""A world in which processes of the real core meet, crash, repeat and overtake each other; its promises, checked.

A process runs on one thread of one virtual clock. Its plan says what befalls its calls of the ports, by their number:
a fault, a pause, or another process that runs from beginning to end just before the call takes effect.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum
from typing import Any

from dueline.dispatch import PAST_RETENTION
from dueline.errors import RETRYABLE, Throttled
from dueline.job import Job, JobId, Partition, State
from dueline.message import ID, REASON
from dueline.submit import Request
from tests.builders import NOW, a_queue
from tests.system import System
from tests.wire import Call, done_in_part, losing_the_answer, refusing, straight

RETENTION = timedelta(minutes=40)
DIRECT_HORIZON = timedelta(seconds=300)
PARTITIONS = [Partition(queue=name, number=number) for name, number in (("emails", 0), ("emails", 1), ("invoices", 0))]
A_MINUTE = 60


class Crash(BaseException):
    """The end of a process between two of its calls."""


class Fault(Enum):
    """What befalls a call."""

    CRASH_BEFORE = "crash before"
    CRASH_AFTER = "crash after"
    LOST_ANSWER = "took effect, but its answer was lost"
    THROTTLED = "throttled"
    IN_PART = "one row unwritten, one key unread, one message refused"
    STUCK = "one message refused, and again whenever this process sends it"


@dataclass(frozen=True)
class Pause:
    """The process stands still for so long before its call."""

    seconds: float


@dataclass(frozen=True)
class Submit:
    """Submit jobs, due so many seconds after the beginning of the world."""

    due: Sequence[float]
    queue: str = "emails"


@dataclass(frozen=True)
class Ingest:
    """Ingest messages: of those that wait, in this order, by number; `again` ones that SQS repeats."""

    waiting: Sequence[int] = range(100)
    again: Sequence[int] = ()


@dataclass(frozen=True)
class Tick:
    """Tick a partition, under a time limit that lets it wait for another's lease or not."""

    partition: int = 0
    seconds: int = 170


@dataclass(frozen=True)
class Cancel:
    """Cancel a job, by number."""

    job: int


Process = Submit | Ingest | Tick | Cancel


@dataclass(frozen=True)
class Meanwhile:
    """Other processes run before the call, one after another; the plan is for the last of them."""

    processes: Sequence[Process]
    plan: Mapping[int, "Fault | Pause"] = field(default_factory=dict)


Event = Fault | Pause | Meanwhile
Plan = Mapping[int, Event]


class World:
    """The system, all that was asked of it, and all that it promised."""

    def __init__(self, *, page_rows: int = 1000) -> None:
        settings = a_queue(partitions=2, retention=RETENTION), a_queue(name="invoices", retention=RETENTION)
        self.system = System(*settings, page_rows=page_rows, direct_horizon=DIRECT_HORIZON)
        self.accepted: list[Job] = []
        self.asked_back: set[JobId] = set()
        self.promised: set[JobId] = set()
        self.vanished: set[str] = set()
        self.undisturbed = True
        self.calls = 0

    def run(self, process: Process, plan: Plan | None = None) -> None:
        """Run a process to its end, or to the crash that its plan has in store."""
        self._on_a_wire_of_its_own(lambda: self._run(process), plan or {})

    def _on_a_wire_of_its_own(self, act: Callable[[], None], plan: Plan) -> None:
        wire, number, stuck = self.system.wire, -1, set[str]()
        others = wire.around

        def around(call: Call) -> Any:
            nonlocal number
            number, self.calls = number + 1, self.calls + 1
            event = plan.get(number)
            if event is Fault.STUCK and call.name.endswith(".send"):
                stuck.add(call.args[0][0].attributes[ID])
            if stuck and call.name.endswith(".send"):
                return self._stand_still(call, stuck)
            return self._befall(call, event)

        wire.around = around
        try:
            act()
        except (Crash, *RETRYABLE):
            pass  # its caller, if any is left, was promised nothing
        finally:
            wire.around = others

    def _stand_still(self, call: Call, stuck: set[str]) -> Any:
        self.undisturbed = False
        return refusing(lambda message: message.attributes[ID] in stuck)(call)

    def _befall(self, call: Call, event: Event | None) -> Any:
        if event is not None:
            self.undisturbed = False
        match event:
            case Fault.CRASH_BEFORE:
                raise Crash
            case Fault.CRASH_AFTER:
                straight(call)
                raise Crash
            case Fault.LOST_ANSWER:
                return losing_the_answer(call)
            case Fault.THROTTLED:
                raise Throttled(f"{call.name}: slow down")
            case Fault.IN_PART:
                return done_in_part(call)
            case Pause(seconds):
                self.system.clock.sleep(seconds)
            case Meanwhile(processes, plan):
                for process in processes[:-1]:
                    self.run(process)
                self.run(processes[-1], plan)
        return straight(call)

    def _run(self, process: Process) -> None:
        match process:
            case Submit(due, queue):
                requests = [Request(payload={}, at=NOW + timedelta(seconds=each)) for each in due]
                self.accepted += [job for job in self.system.submit(*requests, queue=queue) if isinstance(job, Job)]
            case Ingest(waiting, again):
                self._ingest(waiting, again)
            case Tick(partition, seconds):
                self.system.tick(PARTITIONS[partition], seconds=seconds)
            case Cancel(job):
                self._cancel(job)

    def _ingest(self, waiting: Sequence[int], again: Sequence[int]) -> None:
        left, ever = self.system.waiting(), self.system.received()
        chosen = [left[number] for number in waiting if number < len(left)]
        repeats = [ever[number] for number in again if number < len(ever)]
        if repeats:
            self.undisturbed = False
        if chosen or repeats:
            self.system.ingest(chosen + repeats)

    def _cancel(self, number: int) -> None:
        if number >= len(self.accepted):
            return
        id = self.accepted[number].id
        self.asked_back.add(id)
        is_repeat = id in self.promised  # a cancel that began before another's promise may be told less
        answer = self.system.cancel(id)
        assert answer is State.CANCELLED or not is_repeat, f"exact cancel: {id} is {answer} after its promise"
        if answer is State.CANCELLED:
            self.promised.add(id)

    def let_pass(self, seconds: float) -> None:
        self.system.clock.sleep(seconds)

    def vanish(self, queue: str) -> None:
        self.system.queues[queue].gone = True
        self.vanished.add(queue)
        self.undisturbed = False

    def come_back(self) -> None:
        for queue in self.vanished:
            self.system.queues[queue].gone = False

    def calm_down(self) -> None:
        """Let every process do its work, without any fault, until all that was accepted is due."""
        end = max([self.system.clock.now(), *(job.id.due for job in self.accepted)]) + timedelta(minutes=2)
        while self.system.clock.now() < end:
            self.run(Ingest())
            for partition in range(len(PARTITIONS)):
                self.run(Tick(partition))
            self.let_pass(A_MINUTE)
        assert not self.system.waiting(), "never lost: the inbound queue was not emptied"

    def check(self) -> None:
        """Check the invariants, by their names."""
        arrived = Counter(id for queue in self.system.queues for id in self.system.arrived(queue))
        parked = {delivery.message.job().id: delivery.message for delivery in self.system.dead_letters.deliveries}
        for job in self.accepted:
            assert job.id in self.asked_back or job.id in arrived or job.id in parked, f"never lost: {job.id}"
            assert job.id not in self.promised or job.id not in arrived, f"exact cancel: {job.id} was delivered"
            assert job.id not in self.promised or self.system.look_up(job.id) is State.CANCELLED, f"look-up: {job.id}"
            assert arrived[job.id] <= 1 or not self.undisturbed, f"at least once: {job.id} came {arrived[job.id]} times"
        for id, message in parked.items():
            assert id.queue in self.vanished or message.attributes[REASON] == PAST_RETENTION, f"isolation: {id} parked"
        for name, queue in self.system.queues.items():
            for delivery in queue.deliveries:
                id = delivery.message.job().id
                assert id.queue == name, f"isolation: {id} is in {name}"
                assert delivery.visible >= id.due, f"never early: {id} is visible at {delivery.visible}"
