"""Records what each call of a port does, and which repeats it may cause by design."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from dueline.core import instant, rows
from dueline.core.job import JobId, StoredJob
from dueline.core.message import REASON
from dueline.core.move import Intent
from dueline.core.ports import MoveOutcome
from dueline.core.queue_settings import PLANNER
from dueline.core.rows import Row
from dueline.schedules.head import Head, read_head
from dueline.testing import Delivery
from tests.builders import NOW
from tests.simulation import actions
from tests.simulation.faults import REFUSALS, Fault, Gone, Interleaved, Pause, SlowAnswer
from tests.simulation.name_calls import content_of, note_call, note_intended
from tests.simulation.record import Claim, Parked, Sent, Step, Version, Violation
from tests.wire import Call

if TYPE_CHECKING:
    from tests.simulation.world import Running, World

CLOCKS_DIFFER = 5.0
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
        answer = self._execute(me, call, args, called=called)
        note_call(self._world, me, call, answer, args)
        return answer

    def _execute(self, me: "Running", call: Call, args: tuple[Any, ...], *, called: float) -> Any:
        match call.name:
            case "table.acquire_lease" | "table.checkpoint":
                me.renewed = called
            case "table.page":
                # Ingests that go on as a tick reads their partition: either may send what the other does.
                ingested = {id for other in self._world.running for id in other.jobs}
                self._record.excused |= {id for id in ingested if id.partition == me.partition}
            case "table.write" | "table.add":
                written = args[0] if call.name == "table.write" else args
                self._record.written |= {rows.key(row): self._now for row in written}
            case "table.change" | "table.plan":
                return self._change_or_plan(me, call, args)
            case "table.claim" if str(args[0]["sk"]).startswith(rows.NAME):
                return self._name(*args, existing=call.do(*args))
            case "table.claim":
                return self._claim(*args, existing=call.do(*args))
            case "table.share" if not args[0][1].startswith(rows.NAME):
                return self._share(call, args)
            case "table.release" if not args[0][1].startswith(rows.NAME):
                return self._release(call, args)
            case "table.move":
                return self._move(me, call, args)
        return self._send(me, call, args) if call.name.endswith(".send") else call.do(*args)

    def _note_expired_lease(self, me: "Running") -> None:
        """Note a tick that goes on when another may have its lease, by a clock that is ahead."""
        lease = self._world.periods.lease.total_seconds() - CLOCKS_DIFFER
        if me.partition and me.renewed is not None and self._now - me.renewed >= lease:
            self._record.interrupted[me.process.name] += 1
            me.renewed = None

    def _claim(self, row: Row, *, existing: Row) -> Row:
        """Note who has a key now. A process that reads it claimed and not done submits another's job again."""
        id = JobId.parse(str(existing["id"]))
        if existing == row:
            until = int(row["ttl"]) - NOW.timestamp()
            self._record.claims[rows.key(row)].append(Claim(id=id, at=self._now, until=until))
        elif not existing["done"]:
            self._record.excused.add(id)
        return existing

    def _name(self, row: Row, *, existing: Row) -> Row:
        """Note that a process that reads a key's job as not done may submit it again."""
        if existing["id"] != row["id"] and not existing["done"]:
            self._record.excused.add(JobId.parse(str(existing["id"])))
        return existing

    def _release(self, call: Call, args: tuple[Any, ...]) -> bool:
        """Drop a claim: from now on, what was sent under the key was sent under one that its job never had."""
        is_free = bool(call.do(*args))
        if is_free:
            self._record.released.add(self._record.claims[args[0]].pop().id)
        return is_free

    def _share(self, call: Call, args: tuple[Any, ...]) -> bool:
        """Note that another call submits a key's job as well: from now on, the key may not be released."""
        is_shared = bool(call.do(*args))
        if is_shared:
            self._record.shared.add(self._record.claims[args[0]][-1].id)
        return is_shared

    def _move(self, me: "Running", call: Call, args: tuple[Any, ...]) -> MoveOutcome:
        """Note the row that a move wrote. Its cancellation settles nothing: the new job must come.

        Nobody will ingest the job of a move without an intent.
        """
        outcome, (cancellation, row) = call.do(*args), args
        if outcome is MoveOutcome.DONE:
            job = rows.read_job(row)
            self._record.written[rows.key(row)] = self._now
            if job.id not in self._record.intents:
                pk, sk = rows.key(cancellation)
                old = rows._id(pk, sk)
                self._record.intents[job.id] = Intent(job=job, old=old)
                self._record.acknowledged.setdefault(job.id, self._now)
                me.intended.add(job.id)
        return MoveOutcome(outcome)

    def _change_or_plan(self, me: "Running", call: Call, args: tuple[Any, ...]) -> bool:
        took_effect = bool(call.do(*args))
        if took_effect and call.name == "table.plan":
            pk, name = args[0]
            after, until = instant.parse(call.kwargs["planned_to"]), instant.parse(call.kwargs["to"])
            step = Step(generation=call.kwargs["generation"], after=after, until=until, decided=me.decided)
            self._record.schedules.note_step((pk.partition("#")[0], name), step, at=self._now)
        elif took_effect:
            self._note_change(me, read_head(args[0].head), args[0].planned_to)
        return took_effect

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
                    self._record.intents[job.id] = Intent(job=job, old=old)
                    me.intended.add(job.id)
                    note_intended(self._world, me, job)
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
    elif call.name in ("table.write", "table.add"):
        written = call.args[0] if call.name == "table.write" else call.args
        jobs = [rows.read_job(row) for row in written if rows.prefix_and_kind(str(row["sk"]))[1] == rows.JOB]
    else:
        jobs = []
    return {job.id: job for job in jobs}


def note_answer(me: "Running", call: Call) -> None:
    """Note when a caller has read the head, and confirmed that it is the latest: from then on it decides."""
    is_read = call.name == "table.read" and any(pk.endswith("#schedules") for pk, _ in call.args[0])
    if is_read or call.name == "table.plan":
        me.decided = me.process.now()
