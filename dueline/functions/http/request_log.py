"""The log lines and metrics of what the API did; never a payload."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from dueline.config import metrics
from dueline.core import instant
from dueline.core.cancel import CancelResult
from dueline.core.job import State, SubmitResult
from dueline.core.overview import Control
from dueline.errors import RETRYABLE, DuelineError, NotYet, Unavailable
from dueline.functions.declared_queues import DECLARED
from dueline.functions.http.answers import controls
from dueline.functions.telemetry import log, report

if TYPE_CHECKING:
    from dueline.schedules.changes import Changed

_MOST_NAMED = 10

logger = log()


def record_scheduled(results: Sequence[SubmitResult | DuelineError], *, deployment: str, queue: str) -> None:
    submitted = [result for result in results if isinstance(result, SubmitResult)]
    jobs = [result.job for result in submitted if not result.is_repeat]
    states = Counter(result.state for result in submitted)
    _count(
        queue,
        deployment,
        **{metrics.SUBMITTED: len(jobs), metrics.DISPATCHED: states[State.DISPATCHED]},
        **{metrics.BUFFERED: states[State.ACCEPTED], metrics.PARKED: states[State.PARKED]},
    )


def record_cancelled(results: Sequence[CancelResult | DuelineError], *, deployment: str, queue: str) -> None:
    cancelled = sum(isinstance(result, CancelResult) for result in results)
    _count(queue, deployment, **{metrics.CANCELLED: cancelled})


def record_control(action: str, control: Control, *, queue: str, caller: str) -> None:
    """Log who paused, resumed or limited a queue's workers; `caller` is the ARN of an IAM user or role."""
    fields = controls(control)
    # What is None is left out of a line.
    logger.info(action, extra={"queue": queue, "caller": caller, **fields, "rate": fields["rate"] or "no limit"})


def record_schedule(action: str, changed: "Changed", *, caller: str) -> None:
    """Log who made, changed, paused, resumed or deleted a schedule; `caller` is the ARN of an IAM user or role."""
    head = changed.head
    fields = {"queue": head.queue, "schedule": head.name, "generation": head.generation, "caller": caller}
    logger.info(action, extra={**fields, "effective_from": instant.text(head.start)})


def record_runs(results: Sequence[SubmitResult], *, deployment: str, queue: str, schedule: str) -> None:
    """Log runs on demand, and count them as scheduled jobs."""
    record_scheduled(results, deployment=deployment, queue=queue)
    fields = {"queue": queue, "schedule": schedule, "runs": len(results)}
    logger.info("schedule run", extra={**fields, "jobs": [str(each.job.id) for each in results[:_MOST_NAMED]]})


def record_refusals(results: Iterable[object], *, deployment: str) -> None:
    """Log the errors among results, and count AWS's faults: neither throttling nor what cannot be done yet is one."""
    faults = 0
    for error in (result for result in results if isinstance(result, DuelineError)):
        # What is wrong with a job may quote its body, and no payload is ever logged.
        reason = {"reason": str(error)} if isinstance(error, RETRYABLE) else {}
        job = {"job": error.job_id} if error.job_id else {}
        logger.warning("refused", extra={"error": type(error).__name__, **job, **reason})
        faults += isinstance(error, Unavailable) and not isinstance(error, NotYet)
    report({metrics.API_FAULTS: faults}, deployment=deployment)


def _count(queue: str, deployment: str, **counts: int) -> None:
    report({}, deployment=deployment, of_queues={queue: counts}, measured=DECLARED.measured)
