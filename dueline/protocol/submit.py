"""Submit: take requests all the way to a queue. Make their jobs, prepare these, send them."""

from collections.abc import Sequence

from dueline.errors import DuelineError
from dueline.model.job import Job
from dueline.model.request import Request
from dueline.ports import Clock
from dueline.protocol.preparation import Preparation
from dueline.protocol.sender import Sender
from dueline.protocol.submission import JobFactory, Submission


class Submit:
    """Submits jobs to one queue: `jobs` makes them of requests, `preparation` readies them, `sender` sends them."""

    def __init__(self, jobs: JobFactory, *, preparation: Preparation, sender: Sender, clock: Clock) -> None:
        self._jobs = jobs
        self._preparation = preparation
        self._sender = sender
        self._clock = clock

    def run(self, requests: Sequence[Request | DuelineError], *, until: float) -> list[Job | DuelineError]:
        """Submit each request for itself; return its job or its error, in order.

        Begins no send after `until` (monotonic). An error among the requests, from an earlier check, is handed through.
        After Throttled or Unavailable a job may or may not be scheduled, and the error names its id; after any other
        error it is not. What an earlier call submitted under the same key is a Repeat.
        """
        now = self._clock.now()
        drafts = [self._jobs.draft(request, now=now) for request in requests]
        drafts = self._preparation.prepare(drafts, until=until)
        submissions = {draft.job.id: draft for draft in drafts if isinstance(draft, Submission)}
        failures = self._sender.send(submissions.values(), until=until)
        self._preparation.note_done(submission for id, submission in submissions.items() if id not in failures)
        return [failures.get(draft.job.id, draft.job) if isinstance(draft, Submission) else draft for draft in drafts]
