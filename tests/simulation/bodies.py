"""How each kind of process goes about its work, and what an event changes."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from dueline.errors import AlreadyFinished, JobNotFound
from dueline.lookup.submitted import submitted_state
from dueline.model import rows
from dueline.model.job import Job, JobId, State
from dueline.model.message import Message
from dueline.model.request import Request
from dueline.model.rows import Key
from dueline.protocol.ingest import Received
from dueline.protocol.keys import Repeat
from tests.builders import NOW
from tests.simulation import acts, outages, planning
from tests.simulation.broken import Broken
from tests.simulation.mishaps import Hot

if TYPE_CHECKING:
    from tests.simulation.world import Running, World

VISIBILITY_SECONDS = 30.0
INGEST_SECONDS = 14.0
CALLER_SECONDS = 10.0
CLOCKS_DIFFER = 5.0


def submit(world: "World", me: "Running", act: acts.Submit) -> str:
    keys, priorities = act.keys or [None] * len(act.due), act.priorities or [1] * len(act.due)
    asked = [None if key else f"{me.process.name}, {number}" for number, key in enumerate(keys)]
    requests = [
        Request(
            payload={"key": key, "priority": priority, "asked": name},
            at=NOW + timedelta(seconds=each),
            key=key,
            priority=priority,
        )
        for each, key, priority, name in zip(act.due, keys, priorities, asked, strict=True)
    ]
    return _submit(world, me, requests, queue=act.queue, buffered=act.buffered)


def again(world: "World", me: "Running", act: acts.Again) -> str:
    attempted = list(world.record.attempted.values())
    if act.job >= len(attempted):
        return "there is no such job"
    job = attempted[act.job]
    world.record.excused.add(job.id)
    request = Request(text=job.payload, id=str(job.id), priority=job.priority)
    return _submit(world, me, [request], queue=job.id.queue, buffered=act.buffered)


def _submit(world: "World", me: "Running", requests: Sequence[Request], *, queue: str, buffered: bool) -> str:
    if buffered:
        me.core.breakers[queue].trip()
    submission = me.core.submission(queue, direct_horizon=world.direct_horizon, new_uid=lambda: world.new_uid(queue))
    answers = submission.run(requests, until=me.process.monotonic() + CALLER_SECONDS)
    accepted = [each for each in answers if isinstance(each, Job)]
    world.record.accepted.update({job.id: job for job in accepted})
    for job in accepted:
        world.record.submitted.setdefault(job.id, me.process.monotonic())
        # Of a repeat only its first call knows where it is.
        if not isinstance(job, Repeat) and submitted_state(job) is not State.ACCEPTED:
            world.record.acknowledged.setdefault(job.id, me.process.monotonic())
    return f"accepted {', '.join(str(job.id) for job in accepted) or 'nothing'}"


def ingest(world: "World", me: "Running", act: acts.Ingest) -> str:
    mail, now = world.mail["inbound"], me.process.monotonic
    chosen = mail.receive(waiting=act.waiting, again=act.again, seconds=VISIBILITY_SECONDS)
    batch = {place: mail.message(place) for place in chosen}
    ids = {place: mail.job(place).id for place in chosen}
    _excuse_repeats(world, ids.values())
    me.jobs = set(ids.values())
    received = [Received(message_id=str(place), message=message) for place, message in batch.items()]
    done = me.core.an_ingest().run(received, until=now() + INGEST_SECONDS)
    for number, place in enumerate(batch):
        if str(place) not in done.failed:
            world.record.acknowledged.setdefault(ids[place], now())
            if number not in act.forgotten:
                mail.delete(place)
    return f"ingested {len(batch) - len(done.failed)} of {len(batch)}"


def _excuse_repeats(world: "World", ids: Iterable[JobId]) -> None:
    """Note what SQS brings again though it was ingested, or while another ingest has it."""
    at_work = {id for other in world.running for id in other.jobs}
    for id in ids:
        if id in at_work or id in world.record.acknowledged:
            world.record.excused.add(id)


def tick(world: "World", me: "Running", act: acts.Tick) -> str:
    began = me.process.monotonic()
    assert me.partition
    done = me.core.a_tick(me.partition, owner=str(next(world.owners)), seconds=act.seconds).run()
    if done.held and done.finished:
        world.record.finished[me.partition].append(began)
    return f"dispatched {done.dispatched}{', has no lease' * (not done.held)}{f', {done.fault}' if done.fault else ''}"


def cancel(world: "World", me: "Running", act: acts.Cancel) -> str:
    record = world.record
    if act.job >= len(record.accepted):
        return "there is no such job"
    id = list(record.accepted)[act.job]
    record.asked_back.setdefault(id, float("inf"))
    is_repeat = id in record.promised  # one that began before another's promise may be told less
    answer = me.core.cancel(id)
    if is_repeat and not _is_over(world, id) and answer is not State.CANCELLED:
        raise Broken("exact cancel", f"{id} is {answer} after its promise")
    record.asked_back[id] = min(record.asked_back[id], me.process.monotonic())
    if answer is State.CANCELLED:
        record.promised.add(id)
    return f"{answer} {id}"


def reschedule(world: "World", me: "Running", act: acts.Reschedule) -> str:
    record = world.record
    if act.job >= len(record.accepted):
        return "there is no such job"
    id = list(record.accepted)[act.job]
    service = me.core.a_reschedule(id.queue, new_uid=lambda: world.new_uid(id.queue))
    try:
        moved = service.run(id, at=NOW + timedelta(seconds=act.due)).id
    except (AlreadyFinished, JobNotFound) as refusal:
        record.refused |= me.intended
        return f"is refused: {refusal}"
    record.promised.add(id)
    record.accepted[moved] = record.intents[moved].job
    record.submitted.setdefault(moved, me.process.monotonic())
    return f"moved {id} to {moved}"


def work(world: "World", me: "Running", act: acts.Work) -> str:
    began = me.process.monotonic()
    mails = [world.mail[level.name] for level, _ in world.levels(act.queue)]
    batch = [(mail, place) for mail in mails for place in mail.receive(waiting=range(10), seconds=VISIBILITY_SECONDS)]
    ids = [mail.job(place).id for mail, place in batch]
    skipped = me.core.cancelled_among(list(dict.fromkeys(ids)))
    for id in ids:
        if id not in skipped and world.record.asked_back.get(id, float("inf")) < began and not _is_over(world, id):
            raise Broken("skipped by workers", f"{id} ran, though it had been cancelled before it was received")
    for number, (mail, place) in enumerate(batch):
        if number not in act.forgotten:
            mail.delete(place)
    return f"worked off {len(ids) - len(skipped)} of {len(ids)}"


def _is_over(world: "World", id: JobId) -> bool:
    """Tell whether a job's cancellation may be collected."""
    return world.turns.now() >= id.due + rows.MAX_RETENTION + rows.CANCELLATION_OUTLIVES_RETENTION - timedelta(
        seconds=1
    )


def put_back(world: "World", me: "Running", act: acts.PutBack) -> str:
    mail, inbound = world.mail["dead_letters"], me.core.to(world.stores.inbound)
    for place in mail.receive(waiting=acts.ALL, seconds=VISIBILITY_SECONDS):
        message = mail.message(place)
        inbound.send([Message(body=message.body, attributes=message.attributes)])
        mail.delete(place)
    return "ends"


def collect(world: "World", act: acts.Collect) -> None:
    if world.is_guarded and not world.time_to_live.collects:
        return
    expired = world.table.expired(now=world.turns.now())[act.first :: act.step]
    for key in expired:
        _note_what_is_lost(world, key)
    world.table.collect(expired)


def _note_what_is_lost(world: "World", key: Key) -> None:
    """Note a job that TTL takes although no whole tick came to its row: that much is not promised without a guard.

    Nor where the guard has no time, because the row was late already when it was written.
    """
    # A key may vouch later for a job whose first caller died.
    for id in {*world.record.expected, *world.record.attempted, *world.record.timetable.jobs}:
        over = (id.due + rows.MAX_RETENTION - NOW).total_seconds()
        is_in_time = over - world.record.written.get(key, 0.0) >= outages.TOO_LATE_FOR_THE_GUARD
        if rows.job_key(id) == key and not (world.is_guarded and is_in_time):
            seen_from = (id.due - world.periods.lookahead - NOW).total_seconds() + CLOCKS_DIFFER
            ticks = [at for at in world.record.finished[id.partition] if at >= seen_from]
            if not any(at > world.record.written[key] for at in ticks):
                world.record.outlived.add(id)


def take_place(world: "World", event: acts.Event) -> None:
    match event:
        case acts.Collect():
            collect(world, event)
        case acts.Vanish(queue, gone, chosen):
            for level, priority in world.levels(queue):
                if chosen in (None, priority):
                    level.gone = gone
                    world.record.vanished.add((queue, priority))
        case acts.Slow(queue, seconds):
            world.slow |= {level.name: seconds for level, _ in world.levels(queue)}
        case acts.Throttle(queue, on, writes):
            world.throttled = Hot(queue, writes) if on else None
        case acts.Grow(queue):
            settings = world.stores.settings[queue]
            world.stores.settings[queue] = replace(settings, partitions=settings.partitions + 1)


Body = Callable[["World", "Running", Any], str]
BODIES: dict[type, Body] = {
    acts.Submit: submit,
    acts.Again: again,
    acts.Ingest: ingest,
    acts.Tick: tick,
    acts.Cancel: cancel,
    acts.Reschedule: reschedule,
    acts.Work: work,
    acts.PutBack: put_back,
    acts.Alter: planning.alter,
    acts.Plan: planning.plan,
    acts.Watch: planning.watch,
    acts.Guard: outages.guard,
}
