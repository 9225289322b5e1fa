"""Names: a key is the name of one job, over moves, retries and repeats.

The key's row says which job has the name. docs/decisions/0054 has the rules, and what each is for.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import Enum
from functools import partial

from dueline.core import rows
from dueline.core.job import JobId, State, StoredJob, SubmitResult, checked_key
from dueline.core.move import MOST_HOPS, Intent, Mover, has_left, read_whether_left, too_many_hops
from dueline.core.payloads import Content, Offload
from dueline.core.ports import BatchRead, KeyChange, ParallelMap, Table, read_all
from dueline.core.queue_settings import QueueSettings
from dueline.core.request import IfExists, Request
from dueline.core.retry import attempt, attempt_unless_error
from dueline.core.rows import Key, Row, moved_to
from dueline.core.text import shown
from dueline.errors import DuelineError, InvalidJob, JobExists, JobNotFound, KeyReused, NotYet, Unavailable

# Longer than any client repeats a call. A row has room for so many that are younger.
CALL_IS_KEPT_SECONDS = 3600
MOST_CALLS = 8
# So much of a hash that no two contents of a caller have it in common.
_CONTENT_CHARACTERS = 16
# How often a call begins again because another has changed the row meanwhile.
_ATTEMPTS = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class RememberedCall:
    """A call that a key's row remembers: its job, whether that was submitted, and when another took its place.

    `content` begins the hash of what it scheduled; a call that moved a job has none.
    """

    call: str
    id: JobId
    is_done: bool
    displaced: int = 0
    content: str = ""

    @property
    def is_move(self) -> bool:
        return not self.content


@dataclass(frozen=True, kw_only=True, slots=True)
class KeyRow:
    """The row of a key, as it was read: its job, the call that made it, and the calls whose jobs it displaced.

    `content` is the hash of what a worker gets. `is_released`: its job was refused, and never sent.
    """

    key: str
    id: JobId
    call: str
    content: str
    is_done: bool
    is_released: bool
    calls: tuple[RememberedCall, ...]
    row: Row = field(repr=False)

    def call_of(self, call: str) -> RememberedCall | None:
        """Return what is remembered of a displaced call."""
        return next((each for each in self.calls if each.call == call), None)

    def displaced_by(self, added: RememberedCall | None, *, now: datetime) -> str:
        """Return the calls to remember, with one that is added, as text. Raises Unavailable where there is no room."""
        oldest = int(now.timestamp()) - CALL_IS_KEPT_SECONDS
        kept = [each for each in self.calls if each.displaced > oldest]
        kept += [] if added is None or not added.call else [replace(added, displaced=int(now.timestamp()))]
        if len(kept) > MOST_CALLS:
            often = f"over {MOST_CALLS} calls have changed its job within an hour"
            raise Unavailable(f"key is {self.key!r}: {often}: try again later")
        return _text_of(kept)

    @property
    def current(self) -> RememberedCall | None:
        """The call that made its job, to be remembered; None of one whose job was refused."""
        if self.is_released:
            return None
        content = self.content[:_CONTENT_CHARACTERS]
        return RememberedCall(call=self.call, id=self.id, is_done=self.is_done, content=content)

    @property
    def superseded(self) -> RememberedCall | None:
        """The call that made its job, of which nothing is to be submitted any more: it is cancelled, or moved."""
        return self.current and replace(self.current, is_done=True)

    def moved(self, job: StoredJob, *, call: str | None, now: datetime) -> KeyChange:
        """Return what a move by this key does to its row: the call that moves is remembered."""
        added = RememberedCall(call=call or "", id=job.id, is_done=True)
        return self._changed({**rows.moved_key_row(job), "calls": self.displaced_by(added, now=now)})

    def replaced(self, job: StoredJob, *, call: str, content: str, now: datetime) -> KeyChange:
        """Return what a replacement does to the row: the call that made the old job is remembered."""
        row = {**rows.moved_key_row(job), "calls": self.displaced_by(self.superseded, now=now)}
        return self._changed({**row, "call": call, "content": content})

    def _changed(self, row: Row) -> KeyChange:
        return KeyChange(expected=str(self.id), before=str(self.row.get("calls", "")), row=row)

    @classmethod
    def of(cls, row: Row, *, key: str, queue: str) -> "KeyRow":
        """Return what a key's row says. Raises KeyReused where it says nothing: a direct producer may write anything.

        One that names a job of another queue says nothing either: it is not to reach that queue with others' rights.
        """
        try:
            calls = tuple(
                RememberedCall(
                    call=str(call), id=JobId.parse(id), is_done=bool(is_done), displaced=int(displaced), content=content
                )
                for call, id, is_done, displaced, content in json.loads(row.get("calls", "[]"))  # type: ignore[arg-type]
                if isinstance(content, str)
            )
            id = JobId.parse(str(row.get("id")))
        except (JobNotFound, ValueError, TypeError, OverflowError, RecursionError):
            raise KeyReused(f"key is {key!r}: its row names no job: use another key") from None
        if any(each.queue != queue for each in (id, *(call.id for call in calls))):
            raise KeyReused(f"key is {key!r}: its row names a job of another queue: use another key")
        call, content = str(row.get("call", "")), str(row.get("content", ""))
        is_done, is_released = bool(row.get("done")), bool(row.get("released"))
        return cls(
            key=key, id=id, call=call, content=content, is_done=is_done, is_released=is_released, calls=calls, row=row
        )


def _text_of(calls: Iterable[RememberedCall]) -> str:
    return json.dumps([[each.call, str(each.id), each.is_done, each.displaced, each.content] for each in calls])


def note_displaced(id: JobId, row_key: Key, *, table: Table) -> None:
    """Note in the row of a key that a displaced call has submitted its job: a repeat does not submit it again."""
    for _ in range(_ATTEMPTS):
        row = table.read([row_key]).rows.get(row_key)
        name = KeyRow.of(row, key="", queue=id.queue) if row else None
        undone = [each for each in name.calls if each.id == id and not each.is_done] if name else []
        if row is None or name is None or not undone:
            return
        done = (replace(each, is_done=True) if each in undone else each for each in name.calls)
        if table.change_calls(row_key, before=str(row["calls"]), after=_text_of(done)):
            return


def checked_call(call: object) -> str:
    """Return the name of a call. Raises InvalidJob unless it has 1 to 255 printable ASCII characters."""
    try:
        return checked_key(call)
    except InvalidJob as error:
        raise InvalidJob(f"idempotency_key{str(error).removeprefix('key')}") from None


def row_of(request: Request, *, queue: str) -> Key | None:
    """Return the key of the row that makes repeats of a request one job. Raises InvalidJob for what cannot be one."""
    call = None if request.call is None else checked_call(request.call)
    if request.key is None:
        if request.if_exists is not IfExists.KEEP:
            raise InvalidJob(f"if_exists is {request.if_exists.value!r}, and there is no key: give both, or neither")
        return None if call is None or request.id else rows.idempotency_key(queue, call)
    if request.if_exists is IfExists.REPLACE and request.at is None and call is None:
        why = "a repeat of the call would move the job on: give the call an idempotency key, or give at"
        raise InvalidJob(f"if_exists is 'replace', with a delay of {shown(request.delay or 0)} s: {why}")
    return rows.name_key(queue, checked_key(request.key))


def read_key(key: str, queue: str, *, table: Table, now: datetime) -> KeyRow:
    """Return the row of a key. Raises JobNotFound where no job has it, or that one's retention is over; InvalidJob."""
    reading = table.read([rows.name_key(queue, checked_key(key))])
    return _name_in(key, reading, queue=queue, table=table, now=now)


def jobs_under(
    keys: Sequence[object], queue: str, *, table: Table, now: datetime, spread: ParallelMap
) -> list[JobId | DuelineError]:
    """Return the job of each key, or the error that `read_key` would raise. Raises Throttled or Unavailable."""
    checked = [attempt(checked_key, key) for key in keys]
    of_rows = {rows.name_key(queue, key) for key in checked if isinstance(key, str)}
    reading = read_all(of_rows, table=table, spread=spread)
    name_in = partial(_name_in, reading=reading, queue=queue, table=table, now=now)
    names = (attempt_unless_error(name_in, key) for key in checked)
    return [name.id if isinstance(name, KeyRow) else name for name in names]


def _name_in(key: str, reading: BatchRead, *, queue: str, table: Table, now: datetime) -> KeyRow:
    row_key = rows.name_key(queue, key)
    if row_key in reading.unread:
        raise Unavailable(f"the row of key {key!r} could not be read: try again")
    row = reading.rows.get(row_key)
    if row is not None and not rows.is_live(row, now=now):
        # A read may not show yet that a move has just given the key to a later job.
        row = table.read_barrier(row_key)
    try:
        read = KeyRow.of(row, key=key, queue=queue) if row and rows.is_live(row, now=now) else None
    except KeyReused:
        read = None
    if read is None or read.is_released:
        raise JobNotFound(f"no job of queue {queue} was scheduled under the key {key!r}, or its retention is over")
    return read


def content_hash(job: StoredJob, *, payload_hash: str) -> str:
    """Return the hash of all that a worker gets of a job."""
    content = json.dumps([payload_hash, job.kind, job.tenant, job.priority])
    return hashlib.sha256(content.encode()).hexdigest()


@dataclass(frozen=True, kw_only=True, slots=True)
class Submission:
    """A job on its way, its payload as it was given, and the delay that its caller gave, which SQS gets as it is.

    `earliest` is the time that was requested, where that is past: its job is due now; another call's present may lie
    between. `call` is the name of the call, and `row` the key of the row that makes a repeat of it the same job.
    `content_hash` is, under a key, the hash of all that a worker gets. `is_new`: the job was made by this call, and not
    by one that died before it had submitted it.
    """

    job: StoredJob
    content: Content
    delay: float | None
    earliest: datetime
    if_exists: IfExists = IfExists.KEEP
    call: str | None = None
    row: Key | None = None
    content_hash: str = ""
    is_new: bool = True


class _State(Enum):
    CANCELLED = "cancelled"
    LEFT = "left"
    WAITING = "waiting"


class JobKeys:
    """Gives the jobs of a queue their names. `mover` moves what is replaced, `new_uid` returns a random UUID."""

    def __init__(self, queue: QueueSettings, *, mover: Mover, offload: Offload, new_uid: Callable[[], str]) -> None:
        self._queue, self._mover, self._offload, self._new_uid = queue, mover, offload, new_uid
        self._table, self._clock = mover.table, mover.clock

    def claim(self, desired: Submission, *, until: float) -> Submission | SubmitResult:
        """Return the job that a call is to submit, or the one that has its key already.

        Begins no request after `until` (monotonic): a later attempt of the same call may have started. Raises KeyReused
        when the key's job has another content and is not to be replaced, JobExists when there is one and is not to be,
        InvalidJob, Throttled or Unavailable.
        """
        for _ in range(_ATTEMPTS):
            self._check_time(until)
            row = rows.name_row(desired.job, call=desired.call or "", content=desired.content_hash)
            there = self._table.claim(row, now=self._clock.now())
            name = KeyRow.of(there, key=desired.job.key or "", queue=self._queue.name)
            claim = self._of_this_call(name, desired) or self._of_another(name, desired, until=until)
            if claim is not None:
                return claim
        raise NotYet(f"key {desired.job.key!r} was changed by others at each of {_ATTEMPTS} attempts: try again")

    def _check_time(self, until: float) -> None:
        if self._clock.monotonic() >= until:
            raise NotYet("out of time: it was not scheduled")

    def _job_of(
        self, desired: Submission, id: JobId, *, is_done: bool, is_new: bool = True
    ) -> Submission | SubmitResult:
        """Return the job of an id, with the content that was given, as submitted already, or to be submitted."""
        job = replace(desired.job, id=id, expires=id.due + self._queue.retention)
        return SubmitResult(job=job, state=None, is_new=is_new) if is_done else replace(desired, job=job, is_new=is_new)

    def _of_this_call(self, name: KeyRow, desired: Submission) -> Submission | SubmitResult | None:
        """Return the job that this call has made under the key, whatever became of it."""
        if name.id == desired.job.id:
            return desired
        if not desired.call:
            return None
        if name.call == desired.call and not name.is_released:
            self._check_content(name, name.id, desired)
            return self._unless_released(name, desired, is_new=True)
        earlier = name.call_of(desired.call)
        if earlier is None:
            return None
        if earlier.is_move or not desired.content_hash.startswith(earlier.content):
            job = f"job {earlier.id}"
            what = f"to move {job}" if earlier.is_move else f"for {job}, which has another content"
            raise KeyReused(f"idempotency_key is {desired.call!r}: it was used {what}")
        return self._job_of(desired, earlier.id, is_done=earlier.is_done)

    def _check_content(self, name: KeyRow, id: JobId, desired: Submission) -> None:
        if name.content != desired.content_hash:
            raise KeyReused(
                f"key is {name.key!r}: it belongs to job {id}, which has another payload, kind, tenant or priority"
            )

    def _unless_released(self, name: KeyRow, desired: Submission, *, is_new: bool) -> Submission | SubmitResult | None:
        """Return a key's own job, which others may submit too: then it is not released. None: it was, just now."""
        if not name.is_done and not self._table.share(rows.key(name.row), id=str(name.id)):
            return None
        return self._job_of(desired, name.id, is_done=name.is_done, is_new=is_new)

    def _of_another(self, name: KeyRow, desired: Submission, *, until: float) -> Submission | SubmitResult | None:
        """Return what a call gets beside the key's job; None: that has changed, begin again."""
        followed = (name, name.id, _State.CANCELLED, "") if name.is_released else self._look(name)
        if followed is None:
            return None
        self._check_time(until)
        name, tail, state, fence = followed
        if state is _State.CANCELLED:
            return self._take_over(name, name.superseded, desired)
        if desired.if_exists is IfExists.FAIL:
            error = JobExists(f"key is {name.key!r}: job {tail} has it, and if_exists is 'fail'")
            error.job_id = str(tail)
            raise error
        is_undone = not name.is_done and tail == name.id
        has_time = desired.earliest <= tail.due <= desired.job.id.due
        if desired.if_exists is IfExists.REPLACE and not (has_time and name.content == desired.content_hash):
            if state is _State.WAITING:
                return self._replace(name, tail, desired, fence=fence)
            return self._take_over(name, name.current, desired)
        if is_undone or state is _State.WAITING:
            self._check_content(name, tail, desired)
        if is_undone:
            return self._unless_released(name, desired, is_new=False)
        return self._job_of(desired, tail, is_done=True, is_new=False)

    def _look(self, name: KeyRow) -> tuple[KeyRow, JobId, _State, str] | None:
        """Follow a key's job to where it is now; return its row, that job, its state and its fence.

        None where the row has changed meanwhile: begin again.
        """
        id = name.id
        for _ in range(MOST_HOPS + 1):
            existing = read_whether_left(id, table=self._table)
            cancellation = existing.get(rows.cancellation_key(id))
            fence = rows.read_state(existing.get(rows.state_key(id.partition))).fence
            if cancellation is None:
                return name, id, _State.LEFT if has_left(id, existing) else _State.WAITING, fence
            moved = moved_to(cancellation)
            if moved is None:
                return name, id, _State.CANCELLED, fence
            again = self._read_again(name)
            if again is None or again.id != name.id:
                return None
            name, id = again, moved
        raise too_many_hops(name.id)

    def _read_again(self, name: KeyRow) -> KeyRow | None:
        # By a barrier: a read may show the cancellation of a move before what that did to this row.
        row = self._table.read_barrier(rows.key(name.row))
        return KeyRow.of(row, key=name.key, queue=self._queue.name) if row else None

    def _take_over(self, name: KeyRow, displaced: RememberedCall | None, desired: Submission) -> Submission | None:
        now = self._clock.now()
        displaced = None if desired.call and name.call == desired.call else displaced
        row = rows.name_row(desired.job, call=desired.call or "", content=desired.content_hash)
        row = {**row, "calls": name.displaced_by(displaced, now=now)}
        # Before the row: a job whose payload is gone is not to take the key from one that was sent.
        placed = replace(desired, job=self._offload.place(desired.job, desired.content))
        return placed if self._table.take_over(row, there=name.row) else None

    def _replace(self, name: KeyRow, tail: JobId, desired: Submission, *, fence: str) -> SubmitResult | None:
        """Move a key's job, with the new content. Its partition stays, so that one fence speaks for both."""
        id = replace(tail, due=desired.job.id.due, uid=self._new_uid())
        job = replace(desired.job, id=id)
        change = name.replaced(job, call=desired.call or "", content=desired.content_hash, now=self._clock.now())
        job = self._offload.place(job, desired.content)
        if not self._mover.run(Intent(job=job, old=tail, change=change), fence=fence):
            return None
        return SubmitResult(job=job, state=State.SCHEDULED, is_new=False, moved_from=tail)
