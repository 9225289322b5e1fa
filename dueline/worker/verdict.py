"""What happens to a job after its handler ran."""

from dataclasses import dataclass
from datetime import timedelta
from math import ceil

from dueline.model.retry_policy import LONGEST_HIDDEN_SECONDS, MAX_HIDDEN_SECONDS
from dueline.model.text import shown, text_of
from dueline.model.work_settings import WorkSettings


class Retry(Exception):
    """Raise in a handler to retry the job after `delay`: seconds or a timedelta, rounded up to whole seconds.

    Without a delay, the job waits as the queue's retry policy says. The attempt counts: after the last one, the job
    goes to the dead-letter queue instead. A retry never comes early. SQS hides a message for at most 12 hours after it
    was received, and Dueline keeps 10 minutes of them in reserve. A longer delay raises ValueError. If the delay is
    longer than what is left of that time when the handler ends, the job goes to the dead-letter queue.
    """

    def __init__(self, delay: float | timedelta | None = None, reason: str = "") -> None:
        seconds = delay.total_seconds() if isinstance(delay, timedelta) else delay
        if seconds is not None and not (isinstance(seconds, int | float) and 0 <= seconds <= LONGEST_HIDDEN_SECONDS):
            must = f"it must be from 0 to {LONGEST_HIDDEN_SECONDS} seconds, or a timedelta"
            raise ValueError(f"delay is {shown(delay)}: {must}")
        super().__init__(reason or "the handler asked for it")
        self.delay = seconds


class Discard(Exception):
    """Raise in a handler when the job can never succeed: it goes to the dead-letter queue at once, with this reason."""


class Interrupted(Exception):
    """With `once`: an earlier attempt at the job began, and is not known to have ended."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Done:
    """The job succeeded: its message is deleted."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Again:
    """The job is retried after so many seconds, because of an error of that type."""

    seconds: int
    error: str
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Dead:
    """The job goes to the dead-letter queue, with the reason and the type of the error."""

    error: str
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Held:
    """The job could not begin, because AWS failed. The worker keeps it until it can; that is not an attempt."""

    error: str
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Skipped:
    """The job does not run, because another one of its schedule has not ended: its message is deleted."""


Verdict = Done | Again | Dead | Held | Skipped


def verdict_on(
    error: BaseException, *, attempt: int, settings: WorkSettings, jitter: float, held: float = 0.0
) -> Verdict:
    """Return what happens to a job whose handler raised an error in this attempt.

    `jitter`, 0 to 1, spreads delays that grow exponentially. The job was received `held` seconds ago.
    """
    kind, reason = type(error).__name__, text_of(error)
    if isinstance(error, Discard):
        return Dead(error=kind, reason=reason)
    if attempt >= settings.attempts:
        return Dead(error=kind, reason=f"attempt {attempt} of {settings.attempts} failed: {reason}")
    left = max(0, int(LONGEST_HIDDEN_SECONDS - held))
    delay = _delay_of(error) if isinstance(error, Retry) else None
    if delay is None:
        seconds = settings.retry.delay_after(attempt, jitter=jitter)
        return Again(seconds=min(seconds, left), error=kind, reason=reason)
    if delay > left:
        return Dead(error=kind, reason=f"{_too_long(delay, left)}: {reason}")
    return Again(seconds=ceil(delay), error=kind, reason=reason)


def _delay_of(error: Retry) -> float | None:
    """Return the delay in seconds, if there is one: a subclass may have one of its own, which raises, or is none."""
    try:
        delay = getattr(error, "delay", None)
    except Exception:
        return None
    seconds = delay.total_seconds() if isinstance(delay, timedelta) else delay
    return seconds if isinstance(seconds, int | float) and seconds >= 0 else None


def _too_long(delay: float, left: int) -> str:
    return (
        f"Retry asked for {delay:g} s, of which {left} are left: SQS hides a message for {MAX_HIDDEN_SECONDS} s in all"
        f" from its receipt, of which {MAX_HIDDEN_SECONDS - LONGEST_HIDDEN_SECONDS} are kept in reserve"
    )
