"""Put what can never be sent into the dispatch dead-letter queue, with the reason.

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
    """Where jobs are parked, and where look-up learns of it."""

    table: Table
    dead_letters: Queue
    clock: Clock

    def park(self, jobs: Sequence[Job], *, reason: str) -> list[Job]:
        """Park up to one batch of jobs; return those that were left, to be tried again.

        Raises QueueNotFound, Throttled or Unavailable: then all of them are to be tried again.
        The row that tells look-up is written first: a crash in between parks the job once more,
        and never leaves one in the dead-letter queue of which look-up says that it was dispatched.
        """
        now = self.clock.now()
        notes = {rows.parked_key(job.id): rows.parked_row(job.id, reason=reason, at=now) for job in jobs}
        unwritten = {rows.key(row) for row in self.table.write(list(notes.values()))}
        noted = [job for job in jobs if rows.parked_key(job.id) not in unwritten]
        refusals = self._send([Message.of(job).with_reason(reason) for job in noted])
        parked = {job.id for index, job in enumerate(noted) if index not in refusals}
        return [job for job in jobs if job.id not in parked]

    def park_row(self, row: Row, *, reason: str) -> bool:
        """Park a row that cannot be read, as JSON, its bytes in base64; tell whether it was. Raises as `park` does."""
        return not self._send([Message(body=json.dumps(dict(row), default=_text_of)).with_reason(reason)])

    def _send(self, messages: Sequence[Message]) -> set[int]:
        return {refusal.index for refusal in self.dead_letters.send(messages)} if messages else set()


def _text_of(value: object) -> str:
    # Written out as Python does, the bytes of a row of 400 KB would be more than SQS takes, and stop its tick for good.
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)
