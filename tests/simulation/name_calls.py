"""Calls under keys: what callers of a name do, and what is checked of it."""

import hashlib
import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from dueline.core import rows
from dueline.core.cancel import CancelMany
from dueline.core.job import JobId, State, StoredJob, SubmitResult
from dueline.core.payloads import Upload
from dueline.core.ports import Pointer
from dueline.core.request import IfExists, Request, json_text
from dueline.core.rows import Key, Row, moved_to
from dueline.errors import RETRYABLE, AlreadyFinished, DuelineError, JobNotFound, KeyReused
from tests.builders import NOW
from tests.simulation import actions
from tests.simulation.record import CALLS, FOUND, LIVES, ONE_JOB, SAME, STAYS, TTL_DIFFERS, Record, Violation, waits

if TYPE_CHECKING:
    from tests.simulation.world import Running, World

CALLER_SECONDS = 10.0
# After that its caller makes a call again, and no answer to an earlier attempt reaches anybody.
CALL_IS_OVER = 31


def content_of(world: "World", job: StoredJob) -> dict[str, Any]:
    """Return the payload of a job, wherever that is kept."""
    offloaded = job.offloaded_bytes is not None
    text = world.stores.payloads.read(Pointer.parse(job.payload)) if offloaded else job.payload
    return dict(json.loads(text))


def named(world: "World", me: "Running", action: actions.Named) -> str:
    """Make a call under a key."""
    match action.what:
        case "cancel":
            return _cancel(world, me, action)
        case "reschedule":
            return _reschedule(world, me, action)
    return _schedule(world, me, action)


def _schedule(world: "World", me: "Running", action: actions.Named) -> str:
    began, record = world.scheduler.elapsed, world.record
    noted = set(record.names.noted)
    if action.buffered:
        me.core.breakers[action.queue].trip()
    submit = me.core.submission(
        action.queue, direct_horizon=world.direct_horizon, new_uid=lambda: world.new_uid(action.queue)
    )
    request = Request(
        **_payload(world, action), **_time(action), key=action.key, if_exists=action.if_exists, call=action.call or None
    )
    (result,) = submit.run([request], until=me.process.monotonic() + CALLER_SECONDS)
    if isinstance(result, RETRYABLE):
        raise result
    if not isinstance(result, SubmitResult):
        return f"is refused: {result}"
    id = result.job.id
    if not _is_own(world, action, id, began=began):
        _check_answer(world, action, id, began=began)
        _check_same(world, me, action, id)
    if result.moved_from is not None:
        _note_moved(record, me, result.moved_from, id)
    if not result.is_repeat and id in noted:
        raise Violation(CALLS, f"{id} was submitted again to {action}, and it was noted that it had been")
    if not result.is_repeat and id in record.attempted:
        record.excused.add(id)
    if action.call and not me.is_faulted:
        record.names.noted.add(id)
    record.accept(result, at=me.process.monotonic())
    record.attempted.setdefault(id, result.job)
    _note_answered(world, action, id)
    return f"accepted {id}"


def _payload(world: "World", action: actions.Named) -> dict[str, Any]:
    payload = {"name": action.key, "content": action.content}
    if not action.uploaded:
        return {"payload": payload}
    text = json_text(payload)
    uid = f"00000000-0000-4000-8000-{action.content:012x}"
    upload = Upload(uid=uid, bytes=len(text), sha256=hashlib.sha256(text.encode()).hexdigest())
    world.stores.payloads.put(upload.key(action.queue), text)
    return {"upload": str(upload)}


def _note_answered(world: "World", action: actions.Named, id: JobId) -> None:
    world.record.names.answered[_key_of(action)].setdefault(id)


def _key_of(action: actions.Named) -> Key:
    return rows.name_key(action.queue, action.key)


def _is_own(world: "World", action: actions.Named, id: JobId, *, began: float) -> bool:
    """Return whether a call was answered its own job. Raises Violation if it has another, and was answered this one."""
    line = set(world.record.line_of(id))
    made = world.record.names.made[_key_of(action), action.call] if action.call else {}
    if not line.isdisjoint(world.record.submitted_by_id):
        # Submitted again by its id, a job has lost its key: a later move is none of the name's.
        return True
    kept = [each for each, ttl in made.items() if ttl > world.scheduler.now().timestamp() + TTL_DIFFERS]
    is_heard = world.scheduler.elapsed - began < CALL_IS_OVER
    if kept and line.isdisjoint(kept) and is_heard:
        raise Violation(CALLS, f"call {action.call} was answered {id}, and has made {kept[0]}")
    return not line.isdisjoint(made)


def _check_answer(world: "World", action: actions.Named, id: JobId, *, began: float) -> None:
    """Raise Violation if the job that a call was answered had been cancelled before it began."""
    if id.due < _kept_since(world):
        return
    if world.record.names.cancelled.get(rows.cancellation_key(id), float("inf")) < began:
        raise Violation(LIVES, f"{id} was answered, though it had been cancelled before")


def _check_same(world: "World", me: "Running", action: actions.Named, id: JobId) -> None:
    """Raise Violation if a job waits, and has another content than the call that was answered it, or another time.

    What has left is answered as it is; and where the job exists that is to be kept, its time is its own.
    """
    existing, now = world.table.existing, world.scheduler.now()
    if not waits(leads_to(id, existing), existing, now=now):
        return
    if (content := world.record.names.contents.get(id, action.content)) != action.content:
        raise Violation(SAME, f"{id} was answered to {action}, and has content {content}")
    at = NOW + timedelta(seconds=action.due)
    is_at = action.if_exists is IfExists.REPLACE and not action.is_delay and me.process.now() < at
    if is_at and id.due != at:
        raise Violation(SAME, f"{id} was answered to {action}")


def _check_time(world: "World", me: "Running", action: actions.Named, id: JobId) -> None:
    """Raise Violation if a call moved no job to its time: neither the one that it was answered nor one before that."""
    at = NOW + timedelta(seconds=action.due)
    if action.is_delay or at <= me.process.now():
        return
    if all(each.due != at for each in world.record.line_of(id)):
        raise Violation(SAME, f"{id} was answered to {action}")


def _time(action: actions.Named) -> dict[str, Any]:
    return {"delay": action.due} if action.is_delay else {"at": NOW + timedelta(seconds=action.due)}


def _note_moved(record: Record, me: "Running", old: JobId, new: JobId) -> None:
    """Note that a job is promised never to come, and so are those that a call meant to put in its place first."""
    record.promised.add(old)
    record.refused |= {each for each in me.intended - {new} if rows.job_key(each) not in record.written}


def _handle(world: "World", action: actions.Named) -> JobId | None:
    """Return the id by which a call names its job, if there is one: a repeat of a call names the same."""
    names, key = world.record.names, _key_of(action)
    answered, number = list(names.answered[key]), action.handle
    chosen = None if number is None or number >= len(answered) or not answered else answered[number]
    return names.handles.setdefault((key, action.call), chosen) if chosen and action.call else chosen


def _cancel(world: "World", me: "Running", action: actions.Named) -> str:
    record, settings = world.record, world.stores.settings[action.queue]
    handle = _handle(world, action)
    if action.handle is not None and handle is None:
        return "there is no such job"
    waited = _waiting(world, action, handle)
    promised = set(record.promised)
    cancels = CancelMany(queue=settings, table=me.core.table, clock=me.process)
    (result,) = cancels.run([handle]) if handle else cancels.run_by_keys([action.key])
    if isinstance(result, JobNotFound):
        _check_none_lived(world, action, handle, waited, promise=STAYS)
        return "there is no such job"
    if isinstance(result, DuelineError):
        raise result
    is_kept = result.id.due > _kept_since(world)
    if result.id in promised and result.state is not State.CANCELLED and is_kept:
        raise Violation("exact cancel", f"{result.id} is {result.state} after its promise")
    requested = min(record.cancel_requested.get(result.id, float("inf")), me.process.monotonic())
    record.cancel_requested[result.id] = requested
    if result.state is State.CANCELLED:
        record.promised.add(result.id)
    _check_none_lived(world, action, handle, waited, promise=STAYS)
    return f"{result.state} {result.id}"


def _waiting(world: "World", action: actions.Named, handle: JobId | None) -> list[JobId]:
    """Return the jobs of a name that wait, or of them the one to which a handle leads."""
    waiting = world.record.names.waiting(_key_of(action), world.table.existing, now=world.scheduler.now())
    return [id for id in waiting if handle is None or _leads_on(handle, id, world)]


def _leads_on(handle: JobId, to: JobId, world: "World") -> bool:
    """Return whether an id leads to a job: each move's cancellation is kept for as long as both its jobs may be."""
    kept = _kept_since(world)
    while to != handle and to in world.record.intents:
        old = world.record.intents[to].old
        if max(old.due, to.due) < kept:
            return False
        to = old
    return to == handle


def _kept_since(world: "World") -> datetime:
    """Return since when a job must be due for its cancellation to be there."""
    kept_for = rows.MAX_RETENTION + rows.CANCELLATION_OUTLIVES_RETENTION - timedelta(seconds=TTL_DIFFERS)
    return world.scheduler.now() - kept_for


def _check_none_lived(
    world: "World", action: actions.Named, handle: JobId | None, waited: list[JobId], *, promise: str
) -> None:
    """Raise Violation if a job that a call named, or what it was moved to, waited all the time of the call."""
    for id in _waiting(world, action, handle):
        if not set(world.record.line_of(id)).isdisjoint(waited):
            raise Violation(promise, f"{id} waited while {action} was answered")


def _reschedule(world: "World", me: "Running", action: actions.Named) -> str:
    record, began, handle = world.record, world.scheduler.elapsed, _handle(world, action)
    if action.handle is not None and handle is None:
        return "there is no such job"
    waited = _waiting(world, action, handle)
    service = me.core.a_reschedule(action.queue, new_uid=lambda: world.new_uid(action.queue))
    key = None if handle else action.key
    try:
        moved = service.run(handle, key=key, **_time(action), call=action.call or None)
    except (AlreadyFinished, JobNotFound) as refusal:
        record.refused |= {each for each in me.intended if rows.job_key(each) not in record.written}
        _check_none_lived(world, action, handle, waited, promise=FOUND)
        return f"is refused: {refusal}"
    except KeyReused as refusal:
        if not record.names.made[_key_of(action), action.call]:
            raise
        return f"is refused: {refusal}"
    if not _is_own(world, action, moved.id, began=began):
        _check_answer(world, action, moved.id, began=began)
    _check_time(world, me, action, moved.id)
    if moved.id != moved.moved_from:
        _note_moved(record, me, moved.moved_from, moved.id)
    if moved.id in record.intents:
        record.accepted.setdefault(moved.id, record.intents[moved.id].job)
    record.submitted.setdefault(moved.id, me.process.monotonic())
    _note_answered(world, action, moved.id)
    return f"moved {moved.moved_from} to {moved.id}"


def leads_to(id: JobId, existing: Mapping[str, Mapping[str, Row]]) -> JobId:
    """Return the job that an id leads to, by the rows that there are. Raises Violation for a circle."""
    visited = [id]
    while (row := existing[str(id.partition)].get(rows.cancellation_key(id)[1])) and (after := moved_to(row)):
        if after in visited:
            raise Violation(ONE_JOB, f"{after} leads to itself")
        visited.append(id := after)
    return id
