"""Park: put a job that can never be sent into the dispatch dead-letter queue, with the reason.

Only what can *never* be sent is parked: a queue that is gone, content that SQS refuses, a row that
cannot be read, a job past its retention. Anything else is retried.
"""

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass

from dueline.model import rows
from dueline.model.job import Job
from dueline.model.message import Message
from dueline.model.rows import Row
from dueline.ports import Clock, Queue, Table


@dataclass(frozen=True, kw_only=True, slots=True)
class Parking:
    """Parks jobs in the dead-letter queue, and notes it in the table for look-ups."""

    table: Table
    dead_letters: Queue
    clock: Clock

    def park(self, jobs: Sequence[Job], *, reason: str) -> list[Job]:
        """Park up to one batch of jobs; return those that were not parked, to be retried.

        Raises QueueNotFound, Throttled or Unavailable: then all of them are to be retried. The row for look-ups is
        written first: after a crash in between, the job is parked once more, and no look-up ever calls a parked job
        dispatched.
        """
        now = self.clock.now()
        notes = {rows.parked_key(job.id): rows.parked_row(job.id, reason=reason, at=now) for job in jobs}
        unwritten = {rows.key(row) for row in self.table.write(list(notes.values()))}
        noted = [job for job in jobs if rows.parked_key(job.id) not in unwritten]
        refusals = self._send([Message.of(job).with_reason(reason) for job in noted])
        parked = {job.id for index, job in enumerate(noted) if index not in refusals}
        return [job for job in jobs if job.id not in parked]

    def park_row(self, row: Row, *, reason: str) -> bool:
        """Park a row that cannot be read, as JSON with bytes in base64; return whether it was parked.

        Raises as `park` does.
        """
        return not self._send([Message(body=json.dumps(dict(row), default=_text_of)).with_reason(reason)])

    def _send(self, messages: Sequence[Message]) -> set[int]:
        return {refusal.index for refusal in self.dead_letters.send(messages)} if messages else set()


def _text_of(value: object) -> str:
    # Written out as Python does, the bytes of a row of 400 KB would be more than SQS takes, and stop its tick for good.
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)
