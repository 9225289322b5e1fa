"""Outcome: how the last attempt of a job ended, as workers note it.

Only queues that `track` their jobs have outcomes. Their rows have partition keys of their own, so that workers may
write these rows and no others. They are the only rows that are overwritten.
"""

from dataclasses import dataclass
from datetime import datetime

from dueline.errors import InvalidJob
from dueline.model import instant, rows
from dueline.model.job import JobId, State
from dueline.model.rows import Row
from dueline.model.text import plain
from dueline.ports import Table

FINAL = (State.SUCCEEDED, State.FAILED, State.SKIPPED)
OF_WORKERS = (State.RUNNING, State.DISPATCHED, *FINAL)
MAX_ERROR_CHARACTERS = 200


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """A job's last attempt: its state, the number of attempts so far, and when the last one started and ended.

    DISPATCHED: the last attempt failed, and the job waits for the next. SKIPPED: another job of its schedule had not
    ended, so it did not run. `error` is the name of an exception type or a
    short reason, never a payload; up to 200 printable ASCII characters are kept. Raises InvalidJob.
    """

    state: State
    attempts: int
    started: datetime
    ended: datetime | None = None
    error: str | None = None

    def __post_init__(self) -> None:
        if self.state not in OF_WORKERS:
            raise InvalidJob(f"an outcome is {self.state}: it must be one of {', '.join(OF_WORKERS)}")
        if self.attempts < 1:
            raise InvalidJob(f"attempts is {self.attempts}: it must be 1 or more")
        if (self.ended is None) is not (self.state is State.RUNNING):
            raise InvalidJob(f"ended is {self.ended} of an outcome that is {self.state}: all but running have it")
        if any(at is not None and at.tzinfo is None for at in (self.started, self.ended)):
            raise InvalidJob(f"started is {self.started}, ended {self.ended}: each must have a time zone")
        if self.error is not None:
            object.__setattr__(self, "error", plain(self.error, most=MAX_ERROR_CHARACTERS))


def note_outcome(id: JobId, outcome: Outcome, *, expires: datetime, table: Table) -> bool:
    """Note a job's outcome, kept until the job `expires`; tell whether it was newer, as `Table.record` defines it.

    Safe to repeat. Raises Throttled or Unavailable.
    """
    return table.record(outcome_row(id, outcome, expires=expires))


def outcome_row(id: JobId, outcome: Outcome, *, expires: datetime) -> Row:
    pk, sk = rows.outcome_key(id)
    ended = {} if outcome.ended is None else {"ended": instant.text(outcome.ended)}
    error = {} if outcome.error is None else {"error": outcome.error}
    always = {"state": outcome.state.value, "attempts": outcome.attempts, "started": instant.text(outcome.started)}
    return {"pk": pk, "sk": sk, **always, **ended, **error, "ttl": int(expires.timestamp())}


def read_outcome(row: Row) -> Outcome:
    """Return the outcome that a row holds. Raises InvalidJob when it cannot be read: any worker may write it."""
    try:
        int(row["ttl"])
        return Outcome(
            state=State(str(row["state"])),
            attempts=int(row["attempts"]),
            started=instant.parse(str(row["started"])),
            ended=instant.parse(str(row["ended"])) if "ended" in row else None,
            error=str(row["error"]) if "error" in row else None,
        )
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidJob(f"row {rows.key(row)} cannot be read: {type(error).__name__}: {error}") from None
