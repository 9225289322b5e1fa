"""Submit: take requests all the way to a queue. Make their jobs, prepare these, write or send them."""

from collections.abc import Iterable, Sequence
from functools import partial

from dueline.errors import DuelineError, IdReused
from dueline.model.job import Job, JobId, Route
from dueline.model.request import Request
from dueline.ports import Clock
from dueline.protocol.preparation import Preparation
from dueline.protocol.sender import Sender
from dueline.protocol.submission import Draft, JobFactory, Submission
from dueline.protocol.write_through import WriteThrough


class Submit:
    """Submits jobs to one queue.

    `jobs` makes them of requests, `preparation` readies them, `table` takes those on the table's route, `sender` sends
    the others. What the table does not take is sent to the inbound queue, if it `is_buffered`.
    """

    def __init__(
        self,
        jobs: JobFactory,
        *,
        preparation: Preparation,
        table: WriteThrough,
        sender: Sender,
        clock: Clock,
        is_buffered: bool = True,
    ) -> None:
        self._jobs = jobs
        self._preparation = preparation
        self._table = table
        self._sender = sender
        self._clock = clock
        self._is_buffered = is_buffered

    def run(self, requests: Sequence[Request | DuelineError], *, until: float) -> list[Job | DuelineError]:
        """Submit each request for itself; return its job or its error, in order.

        Begins no send after `until` (monotonic). An error among the requests, from an earlier check, is handed through.
        After Throttled or Unavailable a job may or may not be scheduled, and the error names its id; after any other
        error it is not. What an earlier call submitted under the same key is a Repeat; what does not wait in the table
        though it came by its route is NotInTable.
        """
        drafts = self._jobs.drafts(requests, now=self._clock.now())
        drafts = _one_an_id(self._preparation.prepare(drafts, until=until))
        submissions = list({draft.job.id: draft for draft in drafts if isinstance(draft, Submission)}.values())
        direct = [each for each in submissions if each.job.id.route is Route.DIRECT]
        send = partial(self._sender.send, until=until)
        written = self._table.submit(
            [each for each in submissions if each.job.id.route is Route.TABLE],
            buffer=send if self._is_buffered else None,
            until=until,
        )
        results = written.elsewhere | written.errors | send(direct)
        self._preparation.note_done(
            each for each in submissions if not isinstance(results.get(each.job.id), DuelineError)
        )
        return [results.get(draft.job.id, draft.job) if isinstance(draft, Submission) else draft for draft in drafts]


def _one_an_id(drafts: Iterable[Draft]) -> list[Draft]:
    """Return the drafts, with an error for each that has another's id but is not the same job."""
    first: dict[JobId, Submission] = {}
    return [
        _beside(first.setdefault(draft.job.id, draft), draft) if isinstance(draft, Submission) else draft
        for draft in drafts
    ]


def _beside(first: Submission, draft: Submission) -> Draft:
    """Return a draft beside the first of its id. What has its key too is a repeat, whatever else it asks for."""
    if draft.job == first.job:
        return draft
    if draft.key is not None and draft.key == first.key:
        return first
    return IdReused(f"id is {str(draft.job.id)!r}: an earlier job of this call has it, and is not the same")
