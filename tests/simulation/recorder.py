"""Records what each call of a port does, and which repeats it may cause by design."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from dueline.core import instant, rows
from dueline.core.job import JobId, StoredJob
from dueline.core.message import REASON
from dueline.core.move import Intent
from dueline.core.ports import MoveOutcome
from dueline.core.queue_settings import PLANNER
from dueline.core.rows import Key, Row
from dueline.schedules.head import Head, read_head
from dueline.testing import Delivery
from tests.simulation import actions
from tests.simulation.faults import REFUSALS, Fault, Gone, Interleaved, Pause, SlowAnswer
from tests.simulation.name_calls import content_of
from tests.simulation.record import CLOCKS_DIFFER, OF_CALL, Parked, Sent, Step, Version, Violation
from tests.wire import Call

if TYPE_CHECKING:
    from tests.simulation.world import Running, World

OF_SCHEDULES = actions.Plan | actions.Alter | actions.Watch


class Recorder:
    """Keeps a world's record. `before` is called as a call of `me` starts, `execute` carries it out."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._record = world.record

    @property
    def _now(self) -> float:
        return self._world.scheduler.elapsed

    def before(self, me: "Running", call: Call, fault: Fault | None) -> None:
        """Note the jobs for which a process makes a call: a fault may be why they come twice."""
        if isinstance(me.action, OF_SCHEDULES):
            self._note_runs(me, call, jobs_of(call))
        if isinstance(me.action, actions.Submit | actions.Again | actions.Named) and (jobs := jobs_of(call)):
            me.jobs |= jobs.keys()
            self._record.attempted |= {id: job for id, job in jobs.items() if id not in self._record.attempted}
        self._excuse_repeats_by(fault, me, call)

    def _note_runs(self, me: "Running", call: Call, jobs: Mapping[JobId, StoredJob]) -> None:
        """Note runs. Submitting again what a head said was planned before the process began is no excuse."""
        schedules = self._record.schedules
        for id, job in jobs.items():
            is_repeat = id in schedules.jobs and (id not in me.jobs or call.name == "table.write")
            if is_repeat and (isinstance(me.action, actions.Watch) or schedules.planned.get(id, me.began) >= me.began):
                self._record.excused.add(id)
            schedules.jobs[id] = job
            me.jobs.add(id)

    def _excuse_repeats_by(self, fault: Fault | None, me: "Running", call: Call) -> None:
        """Note what a fault may cause to be repeated.

        A pause may not, unless it outlasts a lease; nor may a tick repeat jobs because SQS refuses another.
        """
        if fault is None or isinstance(fault, Pause | SlowAnswer | Gone | Interleaved):
            return
        me.is_faulted = True
        if me.partition and not (call.name.endswith(".send") and fault in REFUSALS):
            self._record.interrupted[me.process.name] += 1
        self._record.excused |= me.jobs

    def execute(self, me: "Running", call: Call, args: tuple[Any, ...], *, called: float) -> Any:
        """Let a call, which began at `called`, take effect; return its answer."""
        self._note_expired_lease(me)
        match call.name:
            case "table.acquire_lease" | "table.checkpoint":
                me.renewed = called
            case "table.page":
                # Ingests that go on as a tick reads their partition: either may send what the other does.
                ingested = {id for other in self._world.running for id in other.jobs}
                self._record.excused |= {id for id in ingested if id.partition == me.partition}
            case "table.write" | "table.add":
                self._record.written |= {rows.key(row): self._now for row in rows_of(call.name, args)}
        answer = self._send(me, call, args) if call.name.endswith(".send") else call.do(*args)
        for key in self._note_effect(me, call, args, answer):
            self._record.names.check(key, self._world.table.existing, now=self._world.scheduler.now())
        return answer

    def _note_effect(self, me: "Running", call: Call, args: tuple[Any, ...], answer: Any) -> set[Key]:
        """Note what a call of the table did; return the keys of which the names are to be checked."""
        match call.name:
            case "table.plan" if answer:
                self._note_plan(me, *args, **call.kwargs)
            case "table.change" if answer:
                self._note_change(me, read_head(args[0].head), args[0].planned_to)
            case "table.claim":
                return self._note_claim(args[0], existing=answer)
            case "table.take_over" if answer:
                return self._note_name(args[0], str(args[0]["call"]))
            case "table.share" if answer and not rows.is_name(args[0]):
                # From now on, the key may not be released.
                self._record.shared.add(list(self._record.names.made[args[0], OF_CALL])[-1])
            case "table.release" if answer and rows.is_name(args[0]):
                self._record.names.release(JobId.parse(call.kwargs["id"]))
            case "table.release" if answer:
                # From now on, what was sent under the key was sent under one that its job never had.
                self._record.released.add(self._record.names.made[args[0], OF_CALL].popitem()[0])
            case "table.move" if answer is MoveOutcome.DONE:
                return self._note_move(me, *args)
            case "table.write" | "table.add":
                return {key for row in rows_of(call.name, args) for key in self._note_row(row)}
        return set()

    def _note_expired_lease(self, me: "Running") -> None:
        """Note a tick that goes on when another may have its lease, by a clock that is ahead."""
        lease = self._world.periods.lease.total_seconds() - CLOCKS_DIFFER
        if me.partition and me.renewed is not None and self._now - me.renewed >= lease:
            self._record.interrupted[me.process.name] += 1
            me.renewed = None

    def _note_claim(self, row: Row, *, existing: Row) -> set[Key]:
        """Note who has a key now. A process that reads another's job as not done may submit it again."""
        if existing["id"] != row["id"] and not existing["done"]:
            self._record.excused.add(JobId.parse(str(existing["id"])))
        if existing != row:
            return set()
        if not rows.is_name(rows.key(row)):
            return self._note_name(row, OF_CALL)
        self._record.names.forget(rows.key(row))
        return self._note_name(row, str(row["call"]))

    def _note_name(self, row: Row, call: str) -> set[Key]:
        self._record.names.note_row(row, call, now=self._world.scheduler.now())
        return {rows.key(row)}

    def _note_row(self, row: Row) -> set[Key]:
        names, kind = self._record.names, rows.prefix_and_kind(str(row["sk"]))[1]
        pk, sk = rows.key(row)
        if kind == rows.CANCELLED and "moved_to" not in row and self._world.table.existing[pk][sk] == row:
            names.cancelled.setdefault((pk, sk), self._now)
        if kind != rows.JOB or "key" not in row:
            return set()
        job = rows.read_job(row)
        key = rows.name_key(job.id.queue, job.key or "")
        names.jobs[key][job.id] = None
        names.contents[job.id] = content_of(self._world, job)["content"]
        return {key}

    def _note_move(self, me: "Running", cancellation: Row, row: Row) -> set[Key]:
        """Note the row that a move wrote. Its cancellation settles nothing: the new job must come.

        Nobody will ingest the job of a move without an intent.
        """
        job, names = rows.read_job(row), self._record.names
        self._record.written[rows.key(row)] = self._now
        if job.id not in self._record.intents:
            self._record.acknowledged.setdefault(job.id, self._now)
            self._note_intent(me, job, rows._id(*rows.key(cancellation)))
        if job.key is None:
            return set()
        self._note_call(me, job)
        names.contents[job.id] = content_of(self._world, job)["content"]
        return self._note_name(rows.moved_key_row(job), names.intended.get(job.id, ""))

    def _note_intent(self, me: "Running", job: StoredJob, old: JobId) -> None:
        self._record.intents[job.id] = Intent(job=job, old=old)
        me.intended.add(job.id)

    def _note_call(self, me: "Running", job: StoredJob) -> None:
        """Note for which call a job is to replace another, also if it is another process that lets it."""
        if isinstance(me.action, actions.Named) and me.action.call:
            self._record.names.intended[job.id] = me.action.call

    def _note_plan(self, me: "Running", key: Key, *, generation: int, planned_to: str, to: str) -> None:
        after, until = instant.parse(planned_to), instant.parse(to)
        step = Step(generation=generation, after=after, until=until, decided=me.decided)
        self._record.schedules.note_step((key[0].partition("#")[0], key[1]), step, at=self._now)

    def _note_change(self, me: "Running", head: Head, planned_to: str) -> None:
        schedule = (head.queue, head.name)
        versions = self._record.schedules.versions[schedule]
        if head.generation != len(versions) + 1 or (versions and head.start < versions[-1].head.start):
            what = f"generation {head.generation} of {schedule} from {head.start} follows {versions}"
            raise Violation("never both", what)
        versions.append(Version(head=head, at=self._now, decided=me.decided))
        if planned_to and instant.parse(planned_to) < head.start:
            after = instant.parse(planned_to)
            step = Step(generation=head.generation - 1, after=after, until=head.start, decided=me.decided)
            self._record.schedules.note_step(schedule, step, at=self._now)

    def _send(self, me: "Running", call: Call, args: tuple[Any, ...]) -> Any:
        name = call.name.removesuffix(".send")
        deliveries = self._world.queues[name].deliveries
        before = len(deliveries)
        answer = call.do(*args)
        deliveries[before:] = map(self._as_sqs_counts, deliveries[before:])
        for delivery in deliveries[before:]:
            self._note_delivery(me, name, delivery)
        return answer

    def _as_sqs_counts(self, delivery: Delivery) -> Delivery:
        """Count a delay by two clocks of SQS, that of acceptance and that of delivery."""
        if not delivery.message.delay:
            return delivery
        return replace(delivery, visible=delivery.visible + timedelta(seconds=self._world.sqs_differs()))

    def _note_delivery(self, me: "Running", queue: str, delivery: Delivery) -> None:
        job = delivery.message.job()
        match queue:
            case "inbound":
                self._record.put_back[job.id] += isinstance(me.action, actions.PutBack)
                if (old := delivery.message.moves()) is not None:
                    self._note_intent(me, job, old)
                    self._note_call(me, job)
            case "dead_letters":
                reason = delivery.message.attributes[REASON]
                self._record.parked.append(Parked(job=job, reason=reason, at=self._latest(me)))
            case _:
                self._record.sent.append(self._sent(me, queue, delivery, job))
                self._excuse_repeats_of(job.id, me)

    def _latest(self, me: "Running") -> datetime:
        """Return the latest time that a process may have had by its clock."""
        return self._world.scheduler.now() + timedelta(seconds=me.process.most_skew)

    def _sent(self, me: "Running", name: str, delivery: Delivery, job: StoredJob) -> Sent:
        queue, level = self._world.level_of(name)
        submitted = {} if queue == PLANNER.name else content_of(self._world, job)
        return Sent(
            id=job.id,
            queue=queue,
            visible=delivery.visible + timedelta(seconds=me.process.most_skew),
            by=me.process.name,
            level=level,
            schedule=job.schedule,
            scheduled_for=job.scheduled_for,
            **submitted,
        )

    def _excuse_repeats_of(self, id: JobId, me: "Running") -> None:
        """Note what may be repeated because of this delivery, by design."""
        is_overtaken = me.partition and id not in self._record.acknowledged
        meets_a_tick = me.jobs and any(other.partition == id.partition for other in self._world.running)
        if is_overtaken or meets_a_tick:
            self._record.excused.add(id)


def jobs_of(call: Call) -> dict[JobId, StoredJob]:
    """Return the jobs whose rows a call writes, or that it sends."""
    if call.name.endswith(".send"):
        # The id of a replacement is no caller's, unless the move is answered.
        jobs = [message.job() for message in call.args[0] if message.moves() is None]
    else:
        written = rows_of(call.name, call.args)
        jobs = [rows.read_job(row) for row in written if rows.prefix_and_kind(str(row["sk"]))[1] == rows.JOB]
    return {job.id: job for job in jobs}


def rows_of(name: str, args: tuple[Any, ...]) -> Sequence[Row]:
    """Return the rows that a call puts, of jobs and of what becomes of them."""
    match name:
        case "table.write":
            return list(args[0])
        case "table.add":
            return args
    return ()


def note_answer(me: "Running", call: Call) -> None:
    """Note when a caller has read the head, and confirmed that it is the latest: from then on it decides."""
    is_read = call.name == "table.read" and any(pk.endswith("#schedules") for pk, _ in call.args[0])
    if is_read or call.name == "table.plan":
        me.decided = me.process.now()
