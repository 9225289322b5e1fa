"""A world in which processes of the real core meet, crash, repeat and overtake each other, at every call of a port."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import count
from typing import Any

from dueline.errors import RETRYABLE
from dueline.memory import MemoryQueue, MemoryTimeToLive
from dueline.model import message, rows
from dueline.model.job import JobId, Partition
from dueline.model.queue_settings import PLANNER
from dueline.model.rows import Row
from dueline.protocol import tick
from dueline.protocol.lease import Periods
from dueline.protocol.move import Intent
from dueline.schedules import cut, head, occurrence
from dueline.schedules.head import Head
from tests.builders import NOW, a_queue
from tests.simulation import acts, outages, planning
from tests.simulation.acts import Act, Event
from tests.simulation.bodies import BODIES, take_place
from tests.simulation.broken import Broken
from tests.simulation.deliveries import excuse_what_is_being_ingested, jobs_of, note
from tests.simulation.mail import Mail
from tests.simulation.mishaps import Crash, Fate, Hot, Meanwhile, Mishap, Pause, Plan, SlowAnswer
from tests.simulation.record import Claim, Record
from tests.simulation.replicated import ReplicatedTable
from tests.simulation.tell import told_act, told_call
from tests.simulation.turns import Process, Turns
from tests.system import Core, Stores
from tests.wire import Call, Wire

RETENTION = timedelta(minutes=10)
# More than clocks differ, and less than an ingest may take.
CANCELLATION_OUTLIVES_RETENTION = timedelta(seconds=10)
DIRECT_HORIZON = timedelta(seconds=300)
PERIODS = Periods(
    period=timedelta(seconds=60),
    lookahead=timedelta(seconds=190),
    lease=timedelta(seconds=30),
    longest_send=timedelta(seconds=10),
)
# Longer than the lookahead, and shorter than the time between some runs.
STEP = timedelta(seconds=240)
CLOCKS_DIFFER = 5.0
A_MINUTE = 60
ROUNDS = 12
# How long schedules go on without any fault, and when they are changed meanwhile.
GOES_ON, CHANGED_AT = 7, 2


@dataclass(frozen=True, kw_only=True)
class Scale:
    """How few are many in a world: rows a page, jobs a batch, a wave and a checkpoint; of a schedule, what one change
    cancels, and how many its head knows.
    """

    page_rows: int = 1000
    batch: int = 2
    wave: int = 2
    checkpoint: int = 3
    cancellations: int = 90
    generations: int = 20


@contextmanager
def scaled(scale: Scale) -> Iterator[None]:
    was = message.BATCH_MESSAGES, tick.WAVE_JOBS, tick.CHECKPOINT_JOBS
    were = rows.MAX_RETENTION, rows.CANCELLATION_OUTLIVES_RETENTION
    planned = occurrence.STEP, cut._MOST, head.KEPT_GENERATIONS
    message.BATCH_MESSAGES, tick.WAVE_JOBS, tick.CHECKPOINT_JOBS = scale.batch, scale.wave, scale.checkpoint
    rows.MAX_RETENTION, rows.CANCELLATION_OUTLIVES_RETENTION = RETENTION, CANCELLATION_OUTLIVES_RETENTION
    occurrence.STEP, cut._MOST = STEP, scale.cancellations
    head.KEPT_GENERATIONS = cut.KEPT_GENERATIONS = scale.generations
    try:
        yield
    finally:
        message.BATCH_MESSAGES, tick.WAVE_JOBS, tick.CHECKPOINT_JOBS = was
        rows.MAX_RETENTION, rows.CANCELLATION_OUTLIVES_RETENTION = were
        occurrence.STEP, cut._MOST, head.KEPT_GENERATIONS = planned
        cut.KEPT_GENERATIONS = head.KEPT_GENERATIONS


@dataclass(kw_only=True, eq=False)
class Running:
    """A process that does one thing, and what is known of it."""

    act: Act
    process: Process
    core: Core
    befall: "Befall"
    fate: Fate
    calls: int = 0
    crashed: bool = False
    jobs: set[JobId] = field(default_factory=set)
    intended: set[JobId] = field(default_factory=set)
    renewed: float | None = None
    # When it decided what is missed, by its clock: once for a planner, for a caller whenever it has read the head.
    decided: datetime = NOW
    began: float = 0.0
    partition: Partition | None = field(init=False)

    def __post_init__(self) -> None:
        self.partition = acts.PARTITIONS[self.act.partition] if isinstance(self.act, acts.Tick) else None


Befall = Callable[[Running, Call], Mishap | None]


def nothing(me: Running, call: Call) -> Mishap | None:
    return None


def by(plan: Plan) -> Befall:
    """Let the calls of a process be befallen by what a plan has in store for them, by their number or name."""
    return lambda me, call: plan.get(me.calls - 1) or plan.get(call.name)


class World:
    """A deployment, what happens in it, and a record of that. `choose` tells whose turn it is."""

    def __init__(
        self,
        scale: Scale | None = None,
        *,
        choose: Callable[[int], int] = lambda count: 0,
        lag: Callable[[], int] = lambda: 0,
        late: Callable[[], int] = lambda: 0,
        partitions: int = 2,
        priorities: tuple[int, int] = (1, 1),
        is_planned: bool = False,
        is_guarded: bool = False,
    ) -> None:
        self.scale = scale or Scale()
        self.turns = Turns(NOW, choose)
        self.table: Any = ReplicatedTable(page_rows=self.scale.page_rows, lag=lag, late=late)
        settings = [
            a_queue(partitions=partitions, retention=RETENTION, priorities=priorities[0]),
            a_queue(name="invoices", retention=RETENTION, priorities=priorities[1]),
            *([PLANNER] if is_planned else []),
        ]
        self.stores = Stores(settings, table=self.table, clock=self.turns)
        stores = self.stores
        queues = *stores.levels.values(), stores.inbound, stores.rejects, stores.dead_letters
        self.queues: dict[str, MemoryQueue] = {queue.name: queue for queue in queues}
        self.mail = {name: Mail(queue, clock=self.turns) for name, queue in self.queues.items()}
        self.is_guarded = is_guarded
        self.time_to_live = MemoryTimeToLive(clock=self.turns, takes=outages.TTL_TAKES)
        self.record = Record()
        self.calls = 0
        self.running: list[Running] = []
        self.trace: list[tuple[float, str, str]] = []
        self.is_traced = False
        self.periods, self.direct_horizon = PERIODS, DIRECT_HORIZON
        self.owners = count()
        self._names: Counter[str] = Counter()
        self._uids = {name: count(number << 40) for number, name in enumerate(self.stores.settings)}
        self.slow: dict[str, float] = {}
        self.throttled: Hot | None = None

    def start(self, act: Act, *, after: float = 0.0, befall: Befall = nothing, skew: float = 0.0) -> None:
        """Let a process begin in so many seconds."""
        process = self._process(act, after=after, befall=befall, skew=skew)
        self.turns.wake(process.main, after=after)

    def happen(self, event: Event, *, after: float = 0.0) -> None:
        """Let something happen in so many seconds."""
        process = Process(self._name(event, after), lambda process: take_place(self, event), self.turns, skew=0.0)
        self.turns.wake(process.main, after=after)

    def run(self, act: Act | None = None, plan: Plan | None = None) -> None:
        """Let time pass until all that was started, and this, has ended."""
        if act is not None:
            self.start(act, befall=by(plan or {}))
        with scaled(self.scale):
            self.turns.run()

    def let_pass(self, seconds: float) -> None:
        self.turns.elapsed += seconds

    def calm_down(self) -> None:
        """Let every process do its work, without any fault, until all that was accepted is settled."""
        self.slow, self.throttled = {}, None
        self.table.show()
        last = max((id.due for id in self.record.expected), default=NOW)
        for _ in range(ROUNDS):
            self._go_round()
            if self.turns.now() > last and not self.mail["inbound"].held() and self.record.is_calm():
                break
        if self.mail["inbound"].held():
            raise Broken("never lost", "the inbound queue was not emptied")
        self._go_on()
        if self.is_guarded:
            self._see_ttl_on_again()

    def _go_on(self) -> None:
        """Let schedules go on, and change, and go on: they need nobody's help."""
        heads = self.record.timetable.latest()
        # A tick that stood still before may have put a planning job off.
        for _ in range(ROUNDS if heads else 0):
            if PLANNER.name not in self.mail or not self.mail[PLANNER.name].held():
                break
            self._go_round()
        for minute in range(GOES_ON if heads else 0):
            if minute == CHANGED_AT:
                self.record.timetable.check_all_goes_on(now=self.turns.now() - timedelta(seconds=A_MINUTE))
                for latest in heads:
                    self._change_undisturbed(latest)
            self._go_round()
        self.record.timetable.ended = self.turns.now() - timedelta(seconds=A_MINUTE)

    def _see_ttl_on_again(self) -> None:
        for _ in range(3):
            self._go_round()
            self.run(acts.Guard())
        if not self.time_to_live.status().is_on:
            raise Broken("collected in the end", "TTL stayed off, though no job waits for a tick")

    def _change_undisturbed(self, latest: Head) -> None:
        answers = self.record.timetable.answers
        self.run(planning.last_change(latest))
        if self.record.timetable.answers == answers:
            raise Broken("as answered", f"schedule {latest.name} was not changed, though nothing hindered it")

    def _go_round(self) -> None:
        self.run(acts.Ingest())
        for number in self._partitions_with_rows():
            self.run(acts.Tick(number))
        while PLANNER.name in self.mail and self.mail[PLANNER.name].waiting():
            self.run(acts.Plan())
        self.let_pass(A_MINUTE)

    def _partitions_with_rows(self) -> list[int]:
        held = {pk for pk, _ in self.record.written}
        return [number for number, partition in enumerate(acts.PARTITIONS) if str(partition) in held]

    def check(self) -> None:
        """Hold the record against the promises; raise Broken."""
        with scaled(self.scale):
            self.record.check()

    def new_uid(self, queue: str) -> str:
        return f"00000000-0000-4000-8000-{next(self._uids[queue]):012x}"

    def levels(self, queue: str) -> list[tuple[MemoryQueue, int]]:
        """Return a queue's SQS queues, each with its priority."""
        return [(level, priority) for (name, priority), level in self.stores.levels.items() if name == queue]

    def level_of(self, name: str) -> tuple[str, int]:
        """Return of which queue and priority an SQS queue is."""
        (found,) = [key for key, level in self.stores.levels.items() if level.name == name]
        return found

    def tell(self, name: str, text: str) -> None:
        if self.is_traced:
            self.trace.append((self.turns.elapsed, name, text))

    def _process(self, act: Act, *, befall: Befall, after: float = 0.0, skew: float = 0.0) -> Process:
        name = self._name(act, after)
        return Process(name, lambda process: self._live(act, process, befall), self.turns, skew=skew)

    def _live(self, act: Act, process: Process, befall: Befall) -> None:
        wire = Wire()
        core = Core(self.stores, clock=process, wire=wire, periods=PERIODS, spread=process.spread)
        me = Running(act=act, process=process, core=core, befall=befall, fate=Fate(process.sleep))
        wire.around = lambda call: self._call(me, call)
        me.began = self.turns.elapsed
        self.running.append(me)
        self.tell(process.name, f"begins{f', its clock {process.skew:+} s' if process.skew else ''}")
        try:
            end = BODIES[type(act)](self, me, act)
        except Crash:
            end = "crashes"
        except RETRYABLE as fault:
            end = f"gives up: {fault}"  # its caller was promised nothing
        self.running.remove(me)
        self.tell(process.name, end)

    def _name(self, what: Act | Event, after: float) -> str:
        """Name a process by what it does and when it begins, so that it keeps its name when others are left out."""
        name = f"{told_act(what)} @{self.turns.elapsed + after:g}"
        self._names[name] += 1
        return name + "'" * (self._names[name] - 1)

    # Calls

    def _call(self, me: Running, call: Call) -> Any:
        me.calls, self.calls = me.calls + 1, self.calls + 1
        called, mishap = self.turns.elapsed, me.befall(me, call)
        mishap = mishap or self._weather(call)
        self._note_what_is_submitted(me, call)
        self._blame(me, mishap)
        if isinstance(mishap, Meanwhile):
            self._wait_for(me, mishap)
        else:
            self.turns.take_turn()
        if me.crashed:
            raise Crash
        happening = Call(name=call.name, args=call.args, do=lambda *args: self._take_effect(me, call, args, called))
        if self.is_traced:
            self.tell(me.process.name, told_call(call, mishap))
        try:
            answer = me.fate.carry_out(happening, mishap)
        except Crash:
            me.crashed = True  # its other threads end at their next call
            raise
        if call.name == "table.move" and answer:
            self.table.show(*map(rows.key, call.args))
        if call.name == "table.change" and answer:
            self.table.show(*map(rows.key, [call.args[0].head, *call.args[0].cancellations]))
        if isinstance(me.act, acts.Alter):
            planning.note_answer(me, call)
        return answer

    def _note_what_is_submitted(self, me: Running, call: Call) -> None:
        """Note the jobs for which a caller's process makes a call: a mishap may be why they come twice."""
        if isinstance(me.act, planning.Planning):
            planning.note_what_is_submitted(self, me, call, jobs_of(call))
        if isinstance(me.act, acts.Submit | acts.Again) and (jobs := jobs_of(call)):
            me.jobs |= jobs.keys()
            self.record.attempted |= {id: job for id, job in jobs.items() if id not in self.record.attempted}

    def _weather(self, call: Call) -> Mishap | None:
        if self.throttled is not None and call.name.startswith("table."):
            return self.throttled
        seconds = self.slow.get(call.name.removesuffix(".send"))
        return Pause(seconds) if seconds else None

    def _wait_for(self, me: Running, meanwhile: Meanwhile) -> None:
        for act in meanwhile.acts:
            plan = meanwhile.plan if act is meanwhile.acts[-1] else {}
            self.turns.wait_for([self._process(act, befall=by(plan)).main])

    def _blame(self, me: Running, mishap: Mishap | None) -> None:
        """Note what a mishap may cause to be repeated. A pause may not, unless it outlasts a lease."""
        if mishap is None or isinstance(mishap, Pause | SlowAnswer | Meanwhile):
            return
        if me.partition:
            self.record.interrupted[me.process.name] += 1
        self.record.excused |= me.jobs

    def _note_a_lease_outlived(self, me: Running) -> None:
        """Note a tick that goes on when another may have taken its lease, by a clock that is ahead."""
        lease = self.periods.lease.total_seconds() - CLOCKS_DIFFER
        if me.partition and me.renewed is not None and self.turns.elapsed - me.renewed >= lease:
            self.record.interrupted[me.process.name] += 1
            me.renewed = None

    def _take_effect(self, me: Running, call: Call, args: tuple[Any, ...], called: float) -> Any:
        self._note_a_lease_outlived(me)
        if call.name in ("table.take", "table.checkpoint"):
            me.renewed = called
        if call.name == "table.page":
            excuse_what_is_being_ingested(self, me)
        if call.name in ("table.write", "table.add"):
            written = args[0] if call.name == "table.write" else args
            self.record.written |= {rows.key(row): self.turns.elapsed for row in written}
        if call.name in ("table.change", "table.plan"):
            return planning.note_effect(self, me, call, args)
        if call.name == "table.claim":
            return self._claim(*args, there=call.do(*args))
        if call.name == "table.move":
            return self._move(me, call, args)
        if not call.name.endswith(".send"):
            return call.do(*args)
        name = call.name.removesuffix(".send")
        queue = self.queues[name]
        before = len(queue.deliveries)
        answer = call.do(*args)
        for delivery in queue.deliveries[before:]:
            note(self, me, name, delivery)
        return answer

    def _claim(self, row: Row, *, there: Row) -> Row:
        """Note who has a key now. Whoever finds it claimed and not done submits another's job again."""
        id = JobId.parse(str(there["id"]))
        if there == row:
            until = int(row["ttl"]) - NOW.timestamp()
            self.record.claims[rows.key(row)].append(Claim(id=id, at=self.turns.elapsed, until=until))
        elif not there["done"]:
            self.record.excused.add(id)
        return there

    def _move(self, me: Running, call: Call, args: tuple[Any, ...]) -> bool:
        """Note the row that a move wrote. Its cancellation settles nothing: the other job must come of it.

        Nobody will ingest the job of a move without an intent.
        """
        took_effect, (cancellation, row) = bool(call.do(*args)), args
        if took_effect:
            job = rows.read_job(row)
            self.record.written[rows.key(row)] = self.turns.elapsed
            if job.id not in self.record.intents:
                old = next(id for id in self.record.accepted if rows.cancellation_key(id) == rows.key(cancellation))
                self.record.intents[job.id] = Intent(job=job, old=old)
                self.record.acknowledged.setdefault(job.id, self.turns.elapsed)
                me.intended.add(job.id)
        return took_effect
