"""What is to become of a job after its handler ran."""

from dataclasses import dataclass
from datetime import timedelta

from dueline.working.backoff import MAX_HIDDEN_SECONDS
from dueline.working.settings import WorkSettings


class Retry(Exception):
    """Raised by a handler: try this job again after `delay`, in seconds or as a timedelta.

    Without a delay it waits as the queue's retry policy says. It counts as an attempt.
    """

    def __init__(self, delay: float | timedelta | None = None, reason: str = "") -> None:
        seconds = delay.total_seconds() if isinstance(delay, timedelta) else delay
        if seconds is not None and not 0 <= seconds <= MAX_HIDDEN_SECONDS:
            raise ValueError(f"delay is {seconds} s: it must be from 0 to {MAX_HIDDEN_SECONDS}")
        super().__init__(reason or "the handler asked for it")
        self.delay = seconds


class Discard(Exception):
    """Raised by a handler: this job can never succeed, put it into the dead-letter queue with this reason."""


class Interrupted(Exception):
    """An earlier attempt at a job that has its effect once began, and it is not known to have ended."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Done:
    """The job is over: its message is deleted."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Again:
    """The job goes back into its queue for so many seconds, because of an error of that type."""

    seconds: int
    error: str
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Dead:
    """The job goes into the dead-letter queue, with the reason and the type of the error."""

    error: str
    reason: str


Verdict = Done | Again | Dead


def verdict_on(error: BaseException, *, attempt: int, settings: WorkSettings, jitter: float) -> Verdict:
    """Return what becomes of a job whose handler raised an error at its so-manieth attempt.

    `jitter`, 0 to 1, spreads delays that grow exponentially.
    """
    kind, reason = type(error).__name__, str(error)
    if isinstance(error, Discard):
        return Dead(error=kind, reason=reason)
    if attempt >= settings.attempts:
        return Dead(error=kind, reason=f"attempt {attempt} of {settings.attempts} failed: {reason}")
    asked = error.delay if isinstance(error, Retry) else None
    seconds = settings.retry.delay_after(attempt, jitter=jitter) if asked is None else round(asked)
    return Again(seconds=min(seconds, MAX_HIDDEN_SECONDS - settings.longest_run), error=kind, reason=reason)
