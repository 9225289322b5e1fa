"""What is to become of a job after its handler ran."""

from dataclasses import dataclass
from datetime import timedelta
from math import ceil

from dueline.model.retry_policy import LONGEST_HIDDEN_SECONDS, MAX_HIDDEN_SECONDS
from dueline.model.text import text_of
from dueline.model.work_settings import WorkSettings


class Retry(Exception):
    """Raised by a handler: try this job again after `delay`, in seconds or as a timedelta, rounded up to whole seconds.

    Without a delay it waits as the queue's retry policy says. It counts as an attempt. SQS hides a message for 12 hours
    in all from its receipt, of which 10 minutes are kept in reserve: a delay of more raises ValueError, and one that no
    longer fits when the handler ends puts the job into the dead-letter queue: it never comes before its time.
    """

    def __init__(self, delay: float | timedelta | None = None, reason: str = "") -> None:
        seconds = delay.total_seconds() if isinstance(delay, timedelta) else delay
        if seconds is not None and not 0 <= seconds <= LONGEST_HIDDEN_SECONDS:
            raise ValueError(f"delay is {seconds} s: it must be from 0 to {LONGEST_HIDDEN_SECONDS}")
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


@dataclass(frozen=True, kw_only=True, slots=True)
class Held:
    """The job could not begin, because AWS failed: it is held until it can, and no attempt is counted."""

    error: str
    reason: str


Verdict = Done | Again | Dead | Held


def verdict_on(
    error: BaseException, *, attempt: int, settings: WorkSettings, jitter: float, held: float = 0.0
) -> Verdict:
    """Return what becomes of a job whose handler raised an error at its so-manieth attempt.

    `jitter`, 0 to 1, spreads delays that grow exponentially. It was received `held` seconds ago.
    """
    kind, reason = type(error).__name__, text_of(error)
    if isinstance(error, Discard):
        return Dead(error=kind, reason=reason)
    if attempt >= settings.attempts:
        return Dead(error=kind, reason=f"attempt {attempt} of {settings.attempts} failed: {reason}")
    left = max(0, int(LONGEST_HIDDEN_SECONDS - held))
    asked = _asked(error) if isinstance(error, Retry) else None
    if asked is None:
        seconds = settings.retry.delay_after(attempt, jitter=jitter)
        return Again(seconds=min(seconds, left), error=kind, reason=reason)
    if asked > left:
        return Dead(error=kind, reason=f"{_too_long(asked, left)}: {reason}")
    return Again(seconds=ceil(asked), error=kind, reason=reason)


def _asked(error: Retry) -> float | None:
    """Return the delay in seconds, if there is one: a type of the handler's own need not have called Retry's."""
    delay = getattr(error, "delay", None)
    seconds = delay.total_seconds() if isinstance(delay, timedelta) else delay
    return seconds if isinstance(seconds, int | float) and seconds >= 0 else None


def _too_long(asked: float, left: int) -> str:
    return (
        f"Retry asked for {asked:g} s, of which {left} are left: SQS hides a message for {MAX_HIDDEN_SECONDS} s in all"
        f" from its receipt, of which {MAX_HIDDEN_SECONDS - LONGEST_HIDDEN_SECONDS} are kept in reserve"
    )
