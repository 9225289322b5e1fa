"""Preparation: what must be done for jobs before they are sent. Keys are claimed, large payloads put into S3."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial

from dueline.errors import RETRYABLE, InvalidJob, KeyReused
from dueline.model.job import Job
from dueline.ports import Clock, Payloads, Spread, Table
from dueline.protocol import keys
from dueline.protocol.offload import Offload, hash_of, is_large
from dueline.protocol.submission import Draft, Submission, out_of_time


class Preparation:
    """Prepares jobs of one queue for sending. `table` has the rows of keys, `payloads` what is too large for rows."""

    def __init__(self, queue: str, *, table: Table, payloads: Payloads, clock: Clock, spread: Spread = map) -> None:
        self._table = table
        self._offload = Offload(queue, payloads=payloads, clock=clock)
        self._clock = clock
        self._spread = spread

    def prepare(self, drafts: Sequence[Draft], *, until: float) -> list[Draft]:
        """Return the drafts, in order, ready to be sent; begin no request after `until` (monotonic).

        What could not be prepared is its error, and what an earlier call submitted under the same key is a Repeat.
        """
        claimed = self._change(drafts, _has_key, partial(self._claimed, until=until))
        return self._change(claimed, _is_large, partial(self._place, until=until))

    def note_done(self, sent: Iterable[Submission]) -> None:
        """Note under their keys which jobs were sent, where they have keys."""
        done = [(submission.key, submission.job.id) for submission in sent if submission.key]
        keys.note_done(done, table=self._table, spread=self._spread)

    def _change(
        self, drafts: Sequence[Draft], is_chosen: Callable[[Submission], bool], change: Callable[[Submission], Draft]
    ) -> list[Draft]:
        """Return the drafts with the chosen ones changed, several at once."""
        chosen = [draft for draft in drafts if isinstance(draft, Submission) and is_chosen(draft)]
        changed = dict(zip(map(id, chosen), self._spread(change, chosen), strict=True))
        return [changed.get(id(draft), draft) for draft in drafts]

    def _claimed(self, draft: Submission, *, until: float) -> Draft:
        if self._clock.monotonic() >= until:
            return out_of_time(draft.job.id)
        try:
            job = self._claim(draft.key or "", draft)
        except RETRYABLE as error:
            return error.copy(job_id=str(draft.job.id))
        except (InvalidJob, KeyReused) as error:
            return error
        if isinstance(job, keys.Repeat):
            return job
        return draft if job == draft.job else replace(draft, job=job, delay=None)

    def _claim(self, key: str, draft: Submission) -> Job:
        """Claim a key, and not for a job that can never be: then its caller may give it to a better one."""
        job, now = draft.job, self._clock.now()
        try:
            self._offload.check(draft.content)
        except InvalidJob:
            # Of a repeat the upload may be gone by now.
            if keys.is_free(key, job.id.queue, table=self._table, now=now):
                raise
        return keys.claim(key, job, payload_hash=hash_of(draft.content), table=self._table, now=now)

    def _place(self, draft: Submission, *, until: float) -> Draft:
        """Put a large payload into S3, before its job is sent."""
        if self._clock.monotonic() >= until:
            return out_of_time(draft.job.id)
        try:
            return replace(draft, job=self._offload.place(draft.job, draft.content))
        except InvalidJob as error:
            return error
        except RETRYABLE as error:
            return error.copy(job_id=str(draft.job.id))


def _has_key(submission: Submission) -> bool:
    return submission.key is not None


def _is_large(submission: Submission) -> bool:
    return is_large(submission.content)
