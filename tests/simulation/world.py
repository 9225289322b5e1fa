"""A world in which processes of the real core meet, crash, repeat and overtake each other at every call of a port."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import count
from typing import Any
from unittest.mock import patch

from dueline.core import instant, message, partitions, rows, tick
from dueline.core.job import JobId, Partition
from dueline.core.ports import MoveOutcome
from dueline.core.queue_settings import PLANNER
from dueline.errors import RETRYABLE, Unavailable
from dueline.schedules import changes, head
from dueline.schedules.head import Head
from dueline.testing import MemoryQueue
from tests.builders import NOW, a_queue
from tests.memory_operations import MemoryTimeToLive
from tests.simulation import actions, processes
from tests.simulation.actions import Action, Event
from tests.simulation.faults import (
    ClockSet,
    Crash,
    Fault,
    FaultInjector,
    HotPartitions,
    Interleaved,
    Late,
    Pause,
    Plan,
)
from tests.simulation.processes import PROCESSES, apply
from tests.simulation.record import Record, Violation
from tests.simulation.recorder import Recorder, note_answer
from tests.simulation.scheduler import Process, Scheduler, Task
from tests.simulation.storage import Consumer, ReplicatedTable
from tests.simulation.trace import describe_action, describe_call
from tests.system import PERIODS as USUAL_PERIODS
from tests.system import Core, Stores
from tests.wire import Call, Wire, straight

RETENTION = timedelta(minutes=10)
# More than clocks differ, and less than an ingest may take.
CANCELLATION_OUTLIVES_RETENTION = timedelta(seconds=10)
DIRECT_HORIZON = timedelta(seconds=300)
PERIODS = replace(USUAL_PERIODS, lookahead=timedelta(seconds=190))
# Longer than the lookahead, and shorter than the time between some runs.
STEP = timedelta(seconds=240)
# By how much a clock may be set back between its reading and a signature.
SET_BACK = timedelta(seconds=7)
MINUTE = 60
LOOKAHEAD, RETAINED = PERIODS.lookahead.total_seconds(), RETENTION.total_seconds()
ROUNDS, WAVE = 12, 2
# How many minutes schedules go on without any fault, and when they are changed.
GOES_ON, CHANGED_AT = 7, 2


@dataclass(frozen=True, kw_only=True)
class Scale:
    """A world's limits, made small: rows a page; jobs a batch and a checkpoint; of a schedule, how many runs a change
    cancels, and how many generations its head keeps; how many times `shorter` a signature lives, and FAR is.
    """

    page_rows: int = 1000
    batch: int = 2
    checkpoint: int = 3
    cancellations: int = 90
    generations: int = 20
    shorter: int = 1


@contextmanager
def scaled(scale: Scale) -> Iterator[None]:
    """Make the core's limits as small as those of a world."""
    far = {name: getattr(partitions, name) for name in ("FAR", "SIGNATURE_LIVES", "SIGNED_WITHIN")}
    small = {
        message: {"BATCH_MESSAGES": scale.batch},
        tick: {"CHECKPOINT_JOBS": scale.checkpoint, "WAVE_JOBS": WAVE, "SWEPT_JOBS": WAVE},
        rows: {"MAX_RETENTION": RETENTION, "CANCELLATION_OUTLIVES_RETENTION": CANCELLATION_OUTLIVES_RETENTION},
        head: {"STEP": STEP, "KEPT_GENERATIONS": scale.generations},
        changes: {"_MOST": scale.cancellations},
        partitions: {name: each / scale.shorter for name, each in far.items()},
    }
    with ExitStack() as stack:
        for module, limits in small.items():
            stack.enter_context(patch.multiple(module, **limits))
        yield


@dataclass(kw_only=True, eq=False)
class Running:
    """A process that performs one action, and its state."""

    action: Action
    process: Process
    core: Core
    faults: "FaultSource"
    injector: FaultInjector
    calls: int = 0
    crashed: bool = False
    is_faulted: bool = False
    jobs: set[JobId] = field(default_factory=set)
    intended: set[JobId] = field(default_factory=set)
    renewed: float | None = None
    # When it decided what is missed, by its clock: once for a planner, for a caller whenever it has read the head.
    decided: datetime = NOW
    began: float = 0.0
    partition: Partition | None = field(init=False)

    def __post_init__(self) -> None:
        self.partition = actions.PARTITIONS[self.action.partition] if isinstance(self.action, actions.Tick) else None


FaultSource = Callable[[Running, Call], Fault | None]


def planned(plan: Plan) -> FaultSource:
    """Return the faults of a plan, by the number or the name of the call."""
    return lambda me, call: plan.get(me.calls - 1) or plan.get(call.name)


NO_FAULTS = planned({})


class World:
    """A deployment, what happens in it, and a record of that. `choose` decides whose turn it is.

    `sqs_differs` says by how many seconds a delay is longer than SQS was to count.
    """

    def __init__(
        self,
        scale: Scale | None = None,
        *,
        choose: Callable[[int], int] = lambda count: 0,
        lag: Callable[[], int] = lambda: 0,
        late: Callable[[], int] = lambda: 0,
        sqs_differs: Callable[[], float] = lambda: 0.0,
        partitions: int = 2,
        priorities: tuple[int, int] = (1, 1),
        is_planned: bool = False,
        is_guarded: bool = False,
        clocks_are_off: bool = False,
    ) -> None:
        self.scale = scale or Scale()
        self.scheduler = Scheduler(NOW, choose)
        self.table: Any = ReplicatedTable(page_rows=self.scale.page_rows, lag=lag, late=late)
        settings = [
            a_queue(partitions=partitions, retention=RETENTION, priorities=priorities[0]),
            a_queue(name="invoices", retention=RETENTION, priorities=priorities[1]),
            *([PLANNER] if is_planned else []),
        ]
        self.stores = Stores(settings, table=self.table, clock=self.scheduler)
        stores = self.stores
        queues = *stores.levels.values(), stores.inbound, stores.rejects, stores.dead_letters
        self.queues: dict[str, MemoryQueue] = {queue.name: queue for queue in queues}
        self.consumers = {name: Consumer(queue, clock=self.scheduler) for name, queue in self.queues.items()}
        self.is_guarded = is_guarded
        self.sqs_differs = sqs_differs
        self.time_to_live = MemoryTimeToLive(clock=self.scheduler, takes=processes.TTL_TAKES)
        self.record = Record(clocks_are_off=clocks_are_off)
        self.recorder = Recorder(self)
        self.running: list[Running] = []
        self.trace: list[tuple[float, str, str]] = []
        self.is_traced = False
        self.periods, self.direct_horizon = PERIODS, DIRECT_HORIZON
        self.owners = count()
        self._names: Counter[str] = Counter()
        self._uids = {name: count(number << 40) for number, name in enumerate(self.stores.settings)}
        self.slow: dict[str, float] = {}
        self.throttled: HotPartitions | None = None

    def start(self, action: Action, *, after: float = 0.0, faults: FaultSource = NO_FAULTS, skew: float = 0.0) -> None:
        """Let a process begin in so many seconds."""
        process = self._process(action, after=after, faults=faults, skew=skew)
        self.scheduler.wake(process.main, after=after)

    def happen(self, event: Event, *, after: float = 0.0) -> None:
        """Let something happen in so many seconds."""
        process = Process(self._name(event, after), lambda process: apply(self, event), self.scheduler, skew=0.0)
        self.scheduler.wake(process.main, after=after)

    def run(self, action: Action | None = None) -> None:
        """Let time pass until all that was started, and this, has ended."""
        if action is not None:
            self.start(action)
        self.scheduler.run()

    def settle(self) -> None:
        """Run every kind of process, without any fault, until all that was accepted is settled."""
        self.slow, self.throttled = {}, None
        self.table.show()
        last = max((id.due for id in self.record.expected), default=NOW)
        for _ in range(ROUNDS):
            self._go_round()
            is_emptied = self.scheduler.now() > last and not self.consumers["inbound"].undeleted()
            if is_emptied and all(map(self.record.is_settled, self.record.accepted)):
                break
        if self.consumers["inbound"].undeleted():
            raise Violation("never lost", "the inbound queue was not emptied")
        self._go_on()
        if self.is_guarded:
            self._see_ttl_on_again()

    def _go_on(self) -> None:
        """Let schedules go on, change, and go on: they recover by themselves."""
        heads = self.record.schedules.latest()
        # A tick that stalled before may have delayed a planning job.
        for _ in range(ROUNDS if heads else 0):
            if PLANNER.name not in self.consumers or not self.consumers[PLANNER.name].undeleted():
                break
            self._go_round()
        for minute in range(GOES_ON if heads else 0):
            if minute == CHANGED_AT:
                self.record.schedules.check_all_goes_on(now=self.scheduler.now() - timedelta(seconds=MINUTE))
                for latest in heads:
                    self._change_undisturbed(latest)
            self._go_round()
        self.record.schedules.ended = self.scheduler.now() - timedelta(seconds=MINUTE)

    def _see_ttl_on_again(self) -> None:
        for _ in range(3):
            self._go_round()
            self.run(actions.Guard())
        if not self.time_to_live.is_on():
            raise Violation("collected in the end", "TTL stayed off, though no job waits for a tick")

    def _change_undisturbed(self, latest: Head) -> None:
        answers = self.record.schedules.answers
        self.run(processes.last_change(latest))
        if self.record.schedules.answers == answers:
            raise Violation("as answered", f"schedule {latest.name} was not changed, though nothing hindered it")

    def _go_round(self) -> None:
        self.run(actions.Ingest())
        written = {pk for pk, _ in self.record.written}
        for number, partition in enumerate(actions.PARTITIONS):
            if str(partition) in written:
                self.run(actions.Tick(number))
        while PLANNER.name in self.consumers and self.consumers[PLANNER.name].visible():
            self.run(actions.Plan())
        self.scheduler.sleep(MINUTE)

    def execute(self) -> None:
        """Let all happen that was started, settle it, and check the record against the promises; raise Violation."""
        with scaled(self.scale):
            self.run()
            self.settle()
            self.record.check()

    def new_uid(self, queue: str) -> str:
        return f"00000000-0000-4000-8000-{next(self._uids[queue]):012x}"

    def levels(self, queue: str) -> list[tuple[MemoryQueue, int]]:
        """Return a queue's SQS queues, each with its priority."""
        return [(level, priority) for (name, priority), level in self.stores.levels.items() if name == queue]

    def level_of(self, name: str) -> tuple[str, int]:
        """Return of which queue and priority an SQS queue is."""
        (key,) = [key for key, level in self.stores.levels.items() if level.name == name]
        return key

    def log(self, name: str, text: str) -> None:
        if self.is_traced:
            self.trace.append((self.scheduler.elapsed, name, text))

    def _process(self, action: Action, *, faults: FaultSource, after: float = 0.0, skew: float = 0.0) -> Process:
        name = self._name(action, after)
        return Process(name, lambda process: self._live(action, process, faults), self.scheduler, skew=skew)

    def _live(self, action: Action, process: Process, faults: FaultSource) -> None:
        wire = Wire()
        core = Core(self.stores, clock=process, wire=wire, periods=PERIODS, spread=process.spread)
        me = Running(action=action, process=process, core=core, faults=faults, injector=FaultInjector(process.sleep))
        wire.around = lambda call: self._call(me, call)
        me.began = self.scheduler.elapsed
        self.running.append(me)
        self.log(process.name, f"begins{f', its clock {process.skew:+} s' if process.skew else ''}")
        try:
            end = PROCESSES[type(action)](self, me, action)
        except Crash:
            end = "crashes"
        except RETRYABLE as fault:
            end = f"gives up: {fault}"  # it promised its caller nothing
        self.running.remove(me)
        self.log(process.name, end)

    def _name(self, what: Action | Event, after: float) -> str:
        """Name a process by what it does and when it begins, so that it keeps its name when others are left out."""
        name = f"{describe_action(what)} @{self.scheduler.elapsed + after:g}"
        self._names[name] += 1
        return name + "'" * (self._names[name] - 1)

    # Calls

    def _call(self, me: Running, call: Call) -> Any:
        me.calls += 1
        called, fault = self.scheduler.elapsed, me.faults(me, call)
        fault = fault or self._ambient_fault(call)
        self.recorder.before(me, call, fault)
        if isinstance(fault, Interleaved):
            self._interleave(fault)
        else:
            self.scheduler.yield_turn()
        if me.crashed:
            raise Crash
        recorded = Call(call.name, call.args, self._signed(me, call, fault, called))
        if self.is_traced:
            self.log(me.process.name, describe_call(call, fault))
        try:
            if isinstance(fault, Late) and fault.dies:
                self._outlive(recorded, fault.seconds)
            answer = me.injector.execute(recorded, fault)
        except Crash:
            me.crashed = True  # its other tasks end at their next call
            raise
        if call.name == "table.move" and answer is MoveOutcome.DONE:
            change = call.kwargs.get("change")
            self.table.show(*map(rows.key, [*call.args, *([] if change is None else [change.row])]))
        if call.name == "table.change" and answer:
            self.table.show(*map(rows.key, [call.args[0].head, *call.args[0].cancellations]))
        if isinstance(me.action, actions.Alter):
            note_answer(me, call)
        return answer

    def _signed(self, me: Running, call: Call, fault: Fault | None, called: float) -> Callable[..., Any]:
        """Return what a call does: it is signed by its process's clock, and checked by the table's as it arrives."""
        if not call.name.startswith("table."):
            return lambda *args: self.recorder.execute(me, call, args, called=called)
        if isinstance(fault, ClockSet) and not fault.later:
            me.process.set_clock(fault.skew)
        stamp = _sign(call, me.process.now()) if isinstance(fault, Late | ClockSet) else None
        if isinstance(fault, ClockSet) and fault.later:
            me.process.set_clock(fault.skew)

        def arrive(*args: Any) -> Any:
            off = abs((stamp or _sign(call, me.process.now())) - self.scheduler.now())
            if off > partitions.SIGNATURE_LIVES:
                raise Unavailable(f"RequestExpired: {call.name} was signed {off} off")
            return self.recorder.execute(me, call, args, called=called)

        return arrive

    def _outlive(self, call: Call, seconds: float) -> None:
        """End a process; its request, which is signed, arrives all the same."""

        def arrive() -> None:
            with suppress(*RETRYABLE):
                straight(call)

        self.scheduler.wake(Task(arrive), after=seconds)
        raise Crash

    def _ambient_fault(self, call: Call) -> Fault | None:
        if self.throttled is not None and call.name.startswith("table."):
            return self.throttled
        seconds = self.slow.get(call.name.removesuffix(".send"))
        return Pause(seconds) if seconds else None

    def _interleave(self, interleaved: Interleaved) -> None:
        for action in interleaved.actions:
            plan = interleaved.plan if action is interleaved.actions[-1] else {}
            self.scheduler.join([self._process(action, faults=planned(plan)).main])


def _sign(call: Call, now: datetime) -> datetime:
    """Return when a request is signed. Raises Unavailable where its port has it signed earlier, or later."""
    before, after = call.kwargs.get("signed_before"), call.kwargs.get("now")
    is_fence = call.name in ("table.acquire_lease", "table.checkpoint")
    if (before and now > before) or (is_fence and after and instant.text(now + SET_BACK) < after):
        raise Unavailable(f"{call.name} was not sent, because it was signed at {now}")
    return now
