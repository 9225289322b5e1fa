"""Calls under keys: what callers of a name do, and what is checked of it."""

from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from dueline.core import rows
from dueline.core.cancel import CancelMany
from dueline.core.job import Job, JobId, State
from dueline.core.ports import MoveOutcome
from dueline.core.request import Request
from dueline.core.rows import Key, Row, moved_to
from dueline.core.submit import SubmitResult
from dueline.errors import RETRYABLE, AlreadyFinished, DuelineError, JobNotFound
from tests.builders import NOW
from tests.simulation import actions
from tests.simulation.record import LIVES, ONE_JOB, STAYS, Record, Violation
from tests.wire import Call

if TYPE_CHECKING:
    from tests.simulation.world import Running, World

CALLER_SECONDS = 10.0


def note_call(world: "World", me: "Running", call: Call, answer: Any, args: tuple[Any, ...]) -> None:
    """Note what a call of the table did to names, and check that each has one job that waits."""
    names, existing = world.record.names, world.table.existing
    touched: set[Key] = set()
    match call.name:
        case "table.claim" if _is_of_name(rows.key(args[0])) and answer == args[0]:
            names.forget(rows.key(args[0]))
            names.note_row(args[0], str(args[0]["call"]), now=world.scheduler.now())
            touched.add(rows.key(args[0]))
        case "table.take_over" if answer:
            names.note_row(args[0], str(args[0]["call"]), now=world.scheduler.now())
            touched.add(rows.key(args[0]))
        case "table.move" if answer is MoveOutcome.DONE:
            touched |= _note_move(world, me, call, args)
        case "table.add" | "table.write":
            for row in args[0] if call.name == "table.write" else args:
                touched |= _note_rows(world, row)
    for key in touched:
        names.check(key, existing, now=world.scheduler.now())


def _note_rows(world: "World", row: Row) -> set[Key]:
    kind = rows.prefix_and_kind(str(row["sk"]))[1]
    if kind == rows.CANCELLED and "moved_to" not in row:
        pk, sk = rows.key(row)
        if world.table.existing[pk][sk] == row:
            world.record.names.cancelled.setdefault((pk, sk), world.scheduler.elapsed)
    if kind != rows.JOB or "key" not in row:
        return set()
    job = rows.read_job(row)
    world.record.names.jobs[_row_of(job)][job.id] = None
    return {_row_of(job)}


def _note_move(world: "World", me: "Running", call: Call, args: tuple[Any, ...]) -> set[Key]:
    job, change = rows.read_job(args[1]), call.kwargs.get("change")
    if job.key is None:
        return set()
    world.record.names.jobs[_row_of(job)][job.id] = None
    if change is not None and "call" in change.row:
        world.record.names.note_row(change.row, str(change.row["call"]), now=world.scheduler.now())
    elif change is not None and "calls" in change.row and isinstance(me.action, actions.Named):
        world.record.names.note_row(change.row, me.action.call, now=world.scheduler.now())
    return {_row_of(job)}


def _row_of(job: Job) -> Key:
    return rows.name_key(job.id.queue, job.key or "")


def _is_of_name(key: Key) -> bool:
    return key[1].startswith(rows.NAME)


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
    if action.buffered:
        me.core.breakers[action.queue].trip()
    submit = me.core.submission(
        action.queue, direct_horizon=world.direct_horizon, new_uid=lambda: world.new_uid(action.queue)
    )
    request = Request(
        payload={"name": action.key, "content": action.content},
        **_time(action),
        key=action.key,
        if_exists=action.if_exists,
        call=action.call or None,
    )
    (result,) = submit.run([request], until=me.process.monotonic() + CALLER_SECONDS)
    if isinstance(result, RETRYABLE):
        raise result
    if not isinstance(result, SubmitResult):
        return f"is refused: {result}"
    id = result.job.id
    key = rows.name_key(action.queue, action.key)
    is_own = bool(action.call) and not record.line_of(id).isdisjoint(record.names.made[key, action.call])
    if not is_own and record.names.cancelled.get(rows.cancellation_key(id), float("inf")) < began:
        raise Violation(LIVES, f"{id} was answered, though it had been cancelled before")
    if result.moved_from is not None:
        _note_moved(record, me, result.moved_from, id)
    if not result.is_repeat and id in record.attempted:
        record.excused.add(id)
    record.accepted.setdefault(id, result.job)
    record.attempted.setdefault(id, result.job)
    record.submitted.setdefault(id, me.process.monotonic())
    if result.state not in (None, State.ACCEPTED):
        record.acknowledged.setdefault(id, me.process.monotonic())
    return f"accepted {id}"


def _time(action: actions.Named) -> dict[str, Any]:
    return {"delay": action.due} if action.is_delay else {"at": NOW + timedelta(seconds=action.due)}


def _note_moved(record: Record, me: "Running", old: JobId, new: JobId) -> None:
    """Note that a job is promised never to come, and so are those that a call meant to put in its place first."""
    record.promised.add(old)
    record.refused |= {each for each in me.intended - {new} if rows.job_key(each) not in record.written}


def _cancel(world: "World", me: "Running", action: actions.Named) -> str:
    record, settings = world.record, world.stores.settings[action.queue]
    waited = _waiting(world, action)
    promised = set(record.promised)
    (result,) = CancelMany(queue=settings, table=me.core.table, clock=me.process).run_by_keys([action.key])
    if isinstance(result, JobNotFound):
        _check_none_lived(world, action, waited)
        return "there is no such job"
    if isinstance(result, DuelineError):
        raise result
    if result.id in promised and result.state is not State.CANCELLED:
        raise Violation("exact cancel", f"{result.id} is {result.state} after its promise")
    requested = min(record.cancel_requested.get(result.id, float("inf")), me.process.monotonic())
    record.cancel_requested[result.id] = requested
    if result.state is State.CANCELLED:
        record.promised.add(result.id)
        _check_none_lived(world, action, waited)
    return f"{result.state} {result.id}"


def _waiting(world: "World", action: actions.Named) -> list[JobId]:
    key = rows.name_key(action.queue, action.key)
    return world.record.names.waiting(key, world.table.existing, now=world.scheduler.now())


def _check_none_lived(world: "World", action: actions.Named, waited: list[JobId]) -> None:
    """Raise Violation if a job of a name, or what it was moved to, waited all the time in which a call cancelled it."""
    for id in _waiting(world, action):
        if not world.record.line_of(id).isdisjoint(waited):
            raise Violation(STAYS, f"{id} waited under {action.key} while a cancel answered that none does")


def _reschedule(world: "World", me: "Running", action: actions.Named) -> str:
    record = world.record
    service = me.core.a_reschedule(action.queue, new_uid=lambda: world.new_uid(action.queue))
    try:
        moved = service.run(key=action.key, **_time(action), call=action.call or None)
    except (AlreadyFinished, JobNotFound) as refusal:
        record.refused |= {each for each in me.intended if rows.job_key(each) not in record.written}
        return f"is refused: {refusal}"
    except DuelineError:
        raise
    if moved.id != moved.moved_from:
        _note_moved(record, me, moved.moved_from, moved.id)
    if moved.id in record.intents:
        record.accepted.setdefault(moved.id, record.intents[moved.id].job)
    record.submitted.setdefault(moved.id, me.process.monotonic())
    return f"moved {moved.moved_from} to {moved.id}"


def leads_to(id: JobId, existing: Mapping[str, Mapping[str, Row]]) -> JobId:
    """Return the job that an id leads to, by the rows that there are. Raises Violation for a circle."""
    visited = [id]
    while (row := existing[str(id.partition)].get(rows.cancellation_key(id)[1])) and (after := moved_to(row)):
        if after in visited:
            raise Violation(ONE_JOB, f"{after} leads to itself")
        visited.append(id := after)
    return id
