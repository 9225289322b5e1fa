"""What a process of each kind does, and what an event changes."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from dueline.core import instant, rows
from dueline.core.ingest import InboundMessage
from dueline.core.job import JobId, State, SubmitResult
from dueline.core.message import Message
from dueline.core.queue_settings import PLANNER
from dueline.core.request import Request
from dueline.core.rows import Key, head_key
from dueline.errors import (
    RETRYABLE,
    AlreadyFinished,
    InvalidSchedule,
    JobNotFound,
    ScheduleChanged,
    ScheduleNotFound,
    TooManyChanges,
)
from dueline.operations.ttl_guard import TtlGuard
from dueline.schedules.changes import Changed, Changes
from dueline.schedules.definition import Definition
from dueline.schedules.head import Head
from dueline.schedules.planner import Planner, PlanningMessage, Watchdog
from dueline.schedules.queries import get
from dueline.schedules.rule import Rule
from tests.builders import NOW
from tests.simulation import actions
from tests.simulation.faults import HotPartitions
from tests.simulation.name_calls import CALLER_SECONDS, named
from tests.simulation.record import CLOCKS_DIFFER, Violation

if TYPE_CHECKING:
    from tests.simulation.world import Running, World

VISIBILITY_SECONDS = 30.0
INGEST_SECONDS = PLANNER_SECONDS = 14.0
LONGEST_HIDDEN = timedelta(minutes=1)
LAST_RULE = 1000
# What six hours, fifteen minutes and the guard's second look are where a retention is ten minutes, and DynamoDB's hour.
LATE, CAUGHT_UP, SETTLE = timedelta(seconds=120), timedelta(seconds=30), timedelta(seconds=30)
TTL_TAKES = timedelta(seconds=45)
# Of a row that was late when it was written: so much before its TTL, the guard may come too late.
TOO_LATE_FOR_THE_GUARD = 240


def submit(world: "World", me: "Running", action: actions.Submit) -> str:
    keys, priorities = action.keys or [None] * len(action.due), action.priorities or [1] * len(action.due)
    names = [None if key else f"{me.process.name}, {number}" for number, key in enumerate(keys)]
    requests = [
        Request(
            payload={"key": key, "priority": priority, "submission": name},
            at=NOW + timedelta(seconds=each),
            call=key,
            priority=priority,
        )
        for each, key, priority, name in zip(action.due, keys, priorities, names, strict=True)
    ]
    return _submit(world, me, requests, queue=action.queue, buffered=action.buffered)


def again(world: "World", me: "Running", action: actions.Again) -> str:
    attempted = list(world.record.attempted.values())
    if action.job >= len(attempted):
        return "there is no such job"
    job = attempted[action.job]
    world.record.excused.add(job.id)
    world.record.submitted_by_id.add(job.id)
    request = Request(text=job.payload, id=str(job.id), priority=job.priority)
    return _submit(world, me, [request], queue=job.id.queue, buffered=action.buffered)


def _submit(world: "World", me: "Running", requests: Sequence[Request], *, queue: str, buffered: bool) -> str:
    if buffered:
        me.core.breakers[queue].trip()
    submission = me.core.submission(queue, direct_horizon=world.direct_horizon, new_uid=lambda: world.new_uid(queue))
    answers = submission.run(requests, until=me.process.monotonic() + CALLER_SECONDS)
    accepted = [each for each in answers if isinstance(each, SubmitResult)]
    for each in accepted:
        world.record.accept(each, at=me.process.monotonic())
    return f"accepted {', '.join(str(each.job.id) for each in accepted) or 'nothing'}"


def ingest(world: "World", me: "Running", action: actions.Ingest) -> str:
    consumer, now = world.consumers["inbound"], me.process.monotonic
    chosen = consumer.receive(waiting=action.waiting, again=action.again, seconds=VISIBILITY_SECONDS)
    batch = {place: consumer.message(place) for place in chosen}
    ids = {place: consumer.job(place).id for place in chosen}
    _excuse_repeats(world, ids.values())
    me.jobs = set(ids.values())
    received = [InboundMessage(message_id=str(place), message=message) for place, message in batch.items()]
    done = me.core.an_ingest().run(received, until=now() + INGEST_SECONDS)
    for number, place in enumerate(batch):
        if str(place) not in done.failed:
            world.record.acknowledged.setdefault(ids[place], now())
            if number not in action.forgotten:
                consumer.delete(place)
    return f"ingested {len(batch) - len(done.failed)} of {len(batch)}"


def _excuse_repeats(world: "World", ids: Iterable[JobId]) -> None:
    """Note what SQS brings again though it was ingested, or while another ingest has it."""
    at_work = {id for other in world.running for id in other.jobs}
    for id in ids:
        if id in at_work or id in world.record.acknowledged:
            world.record.excused.add(id)


def tick(world: "World", me: "Running", action: actions.Tick) -> str:
    began = me.process.monotonic()
    assert me.partition
    done = me.core.a_tick(me.partition, owner=str(next(world.owners)), seconds=action.seconds).run()
    if done.owned_lease and done.finished:
        world.record.finished[me.partition].append(began)
    lease = "" if done.owned_lease else ", has no lease"
    return f"dispatched {done.dispatched}{lease}{f', {done.fault}' if done.fault else ''}"


def cancel(world: "World", me: "Running", action: actions.Cancel) -> str:
    record = world.record
    if action.job >= len(record.accepted):
        return "there is no such job"
    id = list(record.accepted)[action.job]
    promised = set(record.promised)  # a cancel that began before another's promise may get a lesser answer
    try:
        result = me.core.cancel_job(id)
    except JobNotFound:
        # Whether it was moved may be forgotten soon.
        later = [each for each in record.intents if id in record.line_of(each)]
        if me.process.now() < min(each.due for each in (id, *later)) + rows.MAX_RETENTION:
            raise
        return "nothing is known of it"
    # A job that was moved has another id by now, and that is the one that is cancelled.
    now, answer = result.id, result.state
    if now in promised and not _is_over(world, now) and answer is not State.CANCELLED:
        raise Violation("exact cancel", f"{now} is {answer} after its promise")
    for each in (id, now):
        record.cancel_requested[each] = min(record.cancel_requested.get(each, float("inf")), me.process.monotonic())
    if answer is State.CANCELLED:
        record.promised |= {id, now}
    return f"{answer} {now}"


def reschedule(world: "World", me: "Running", action: actions.Reschedule) -> str:
    record = world.record
    if action.job >= len(record.accepted):
        return "there is no such job"
    id = list(record.accepted)[action.job]
    service = me.core.a_reschedule(id.queue, new_uid=lambda: world.new_uid(id.queue))
    try:
        moved = service.run(id, at=NOW + timedelta(seconds=action.due)).id
    except (AlreadyFinished, JobNotFound) as refusal:
        record.refused |= me.intended
        return f"is refused: {refusal}"
    if moved in record.intents:
        record.promised |= {id, record.intents[moved].old} - {moved}
        record.accepted[moved] = record.intents[moved].job
    record.submitted.setdefault(moved, me.process.monotonic())
    return f"moved {id} to {moved}"


def work(world: "World", me: "Running", action: actions.Work) -> str:
    began = me.process.monotonic()
    consumers = [world.consumers[level.name] for level, _ in world.levels(action.queue)]
    batch = [
        (consumer, place)
        for consumer in consumers
        for place in consumer.receive(waiting=range(10), seconds=VISIBILITY_SECONDS)
    ]
    ids = [consumer.job(place).id for consumer, place in batch]
    skipped = me.core.cancelled_among(list(dict.fromkeys(ids)))
    for id in ids:
        is_cancelled = world.record.cancel_requested.get(id, float("inf")) < began and not _is_over(world, id)
        if is_cancelled and id not in skipped:
            raise Violation("skipped by workers", f"{id} ran, though it had been cancelled before it was received")
    for number, (consumer, place) in enumerate(batch):
        if number not in action.forgotten:
            consumer.delete(place)
    return f"worked off {len(ids) - len(skipped)} of {len(ids)}"


def _is_over(world: "World", id: JobId) -> bool:
    """Return whether a job's cancellation may be collected."""
    return world.scheduler.now() >= id.due + rows.MAX_RETENTION + rows.CANCELLATION_OUTLIVES_RETENTION - timedelta(
        seconds=1
    )


def put_back(world: "World", me: "Running", action: actions.PutBack) -> str:
    consumer, inbound = world.consumers["dead_letters"], me.core.to(world.stores.inbound)
    for place in consumer.receive(waiting=actions.ALL, seconds=VISIBILITY_SECONDS):
        message = consumer.message(place)
        inbound.send([Message(body=message.body, attributes=message.attributes)])
        consumer.delete(place)
    return "ends"


# Schedules.
def plan(world: "World", me: "Running", action: actions.Plan) -> str:
    consumer = world.consumers[PLANNER.name]
    me.decided = me.process.now()
    places = consumer.receive(waiting=action.waiting, again=action.again, seconds=VISIBILITY_SECONDS)
    batch = [
        PlanningMessage(
            message_id=str(place), body=consumer.message(place).body, first_received=consumer.first_received[place]
        )
        for place in places
    ]
    until = me.process.monotonic() + PLANNER_SECONDS
    planner = Planner(me.core.a_route(), until=until)
    planned = planner.run(batch)
    if not planned.again:
        _acknowledge(world, me)
    for number, place in enumerate(places):
        if str(place) in planned.again:
            # The longer the longer it has waited.
            waited = min(LONGEST_HIDDEN, (me.decided - consumer.first_received[place]) / 2)
            consumer.hide(place, max(1, int(waited.total_seconds())))
        elif number not in action.forgotten:
            consumer.delete(place)
    return f"planned {len(places) - len(planned.again)} of {len(places)}"


def alter(world: "World", me: "Running", action: actions.Alter) -> str:
    changes = Changes(me.core.a_route())
    tag: str | None = None
    for left in range(action.again, -1, -1):
        began, is_seen = me.process.monotonic(), world.table.is_seen(head_key(action.queue, action.schedule))
        try:
            if action.is_matched and tag is None:
                tag = get(action.queue, action.schedule, table=me.core.table).etag
            changed = _request(world, changes, action, tag)
        except (ScheduleNotFound, ScheduleChanged, TooManyChanges, InvalidSchedule) as refusal:
            if isinstance(refusal, TooManyChanges) and action.what in ("pause", "delete"):
                raise Violation("as answered", f"{action} was refused: {refusal}") from None
            return f"is refused: {refusal}"
        except RETRYABLE:
            if not left:
                raise
            continue
        _check_answer(world, action, changed, began=began if is_seen else 0.0)
        _acknowledge(world, me)
        return f"{action.what}: generation {changed.head.generation} from {instant.text(changed.head.start)}"
    return ""


def _request(world: "World", changes: Changes, action: actions.Alter, tag: str | None) -> Changed:
    name, settings = action.schedule, world.stores.settings[action.queue]
    if action.rule is not None:
        return changes.put(settings, name, definition_of(action.rule), if_match=tag)
    if action.what == "resume":
        return changes.resume(settings, name, if_match=tag)
    return {"pause": changes.pause, "delete": changes.delete}[action.what](action.queue, name, if_match=tag)


def definition_of(rule: actions.Rule) -> Definition:
    return Definition(
        rule=Rule(every=timedelta(seconds=rule.every), start=NOW + timedelta(seconds=rule.start), count=rule.count),
        payload=json.dumps({"priority": rule.priority, "rule": rule.number}),
        priority=rule.priority,
        jitter=timedelta(seconds=rule.jitter),
        catch_up=rule.catch_up,  # type: ignore[arg-type]
    )


def _check_answer(world: "World", action: actions.Alter, changed: Changed, *, began: float) -> None:
    head = changed.head
    world.record.schedules.check_answer((action.queue, action.schedule), head, began=began)
    is_as_requested = {
        "put": lambda: action.rule is not None and head.definition == definition_of(action.rule) and not head.deleted,
        "pause": lambda: head.paused and not head.deleted,
        "resume": lambda: head.is_live,
        "delete": lambda: head.deleted,
    }[action.what]()
    if not is_as_requested:
        raise Violation("as answered", f"{action} was answered with {head}")


def last_change(head: Head) -> actions.Alter:
    """Return a change that nothing hinders: another rule, or that what was paused goes on."""
    if head.paused and not head.deleted:
        return actions.Alter(head.name, head.queue, "resume")
    return actions.Alter(head.name, head.queue, rule=actions.Rule(LAST_RULE, 60, 7))


def watch(world: "World", me: "Running", action: actions.Watch) -> str:
    watchdog = Watchdog(me.core.a_route(), tick_period=world.periods.period)
    revived = watchdog.revive(action.queue, until=me.process.monotonic() + PLANNER_SECONDS)
    _acknowledge(world, me)
    return f"set {revived} going"


def _acknowledge(world: "World", me: "Running") -> None:
    for id in me.jobs:
        world.record.acknowledged.setdefault(id, me.process.monotonic())


# TTL, and its guard.
def guard(world: "World", me: "Running", action: actions.Guard) -> str:
    """Look at all partitions, those that are not declared too."""
    result = TtlGuard(
        table=me.core.table,
        time_to_live=me.core.wire.to("ttl", world.time_to_live),
        clock=me.process,
        settle=SETTLE,
        spread=me.process.spread,
        late=LATE,
        caught_up=CAUGHT_UP,
    ).run(actions.PARTITIONS)
    if result.switched is None:
        return "leaves TTL as it is"
    return f"switches TTL {'on' if result.switched else 'off'}"


# Events.
def collect(world: "World", action: actions.Collect) -> None:
    if world.is_guarded and not world.time_to_live.collects:
        return
    expired = world.table.expired(now=world.scheduler.now())[action.first :: action.step]
    for key in expired:
        _note_what_is_lost(world, key)
    world.table.collect(expired)


def _note_what_is_lost(world: "World", key: Key) -> None:
    """Note a job that TTL takes although no whole tick came to its row: that much is not promised without a guard.

    Nor where the guard has no time, because the row was late already when it was written.
    """
    # A key may vouch later for a job whose first caller died.
    for id in {*world.record.expected, *world.record.attempted, *world.record.schedules.jobs}:
        over = (id.due + rows.MAX_RETENTION - NOW).total_seconds()
        is_in_time = over - world.record.written.get(key, 0.0) >= TOO_LATE_FOR_THE_GUARD
        if rows.job_key(id) == key and not (world.is_guarded and is_in_time):
            since = (id.due - world.periods.lookahead - NOW).total_seconds() + CLOCKS_DIFFER
            ticks = [at for at in world.record.finished[id.partition] if at >= since]
            if not any(at > world.record.written[key] for at in ticks):
                world.record.collected_early.add(id)


def apply(world: "World", event: actions.Event) -> None:
    match event:
        case actions.Collect():
            collect(world, event)
        case actions.Vanish(queue, gone, chosen):
            for level, priority in world.levels(queue):
                if chosen in (None, priority):
                    level.gone = gone
                    world.record.vanished.add((queue, priority))
        case actions.Slow(queue, seconds):
            world.slow |= {level.name: seconds for level, _ in world.levels(queue)}
        case actions.Throttle(queue, on, writes):
            world.throttled = HotPartitions(queue, writes) if on else None
        case actions.Grow(queue):
            settings = world.stores.settings[queue]
            world.stores.settings[queue] = replace(settings, partitions=settings.partitions + 1)


Body = Callable[["World", "Running", Any], str]
PROCESSES: dict[type, Body] = {
    actions.Submit: submit,
    actions.Again: again,
    actions.Ingest: ingest,
    actions.Tick: tick,
    actions.Cancel: cancel,
    actions.Reschedule: reschedule,
    actions.Named: named,
    actions.Work: work,
    actions.PutBack: put_back,
    actions.Alter: alter,
    actions.Plan: plan,
    actions.Watch: watch,
    actions.Guard: guard,
}
