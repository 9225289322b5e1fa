"""The log lines and metrics of what the API did; never a payload."""

from collections.abc import Sequence

from dueline.config import metrics
from dueline.errors import RETRYABLE, DuelineError, NotYet, Unavailable
from dueline.lookup.control import Control
from dueline.model.job import Job, JobId, Route, State
from dueline.protocol.cancel import Cancelled
from dueline.protocol.keys import Repeat
from functions.http.queue_answers import controls
from functions.log import log
from functions.metrics import report

logger = log()


def record_scheduled(results: Sequence[Job | DuelineError], *, deployment: str, queue: str) -> None:
    jobs = [result for result in results if isinstance(result, Job) and not isinstance(result, Repeat)]
    repeats = sum(isinstance(result, Repeat) for result in results)
    direct = sum(job.id.route is Route.DIRECT for job in jobs)
    refused = len(results) - len(jobs) - repeats
    ids = [str(job.id) for job in jobs]
    logger.info("scheduled", extra={"queue": queue, "jobs": ids, "repeats": repeats, "refused": refused})
    report({metrics.SUBMITTED: len(jobs), metrics.DISPATCHED: direct}, deployment=deployment, queue=queue)


def record_upload(*, queue: str, bytes: int) -> None:
    logger.info("upload begun", extra={"queue": queue, "bytes": bytes})


def record_reschedule(id: JobId, *, successor: JobId) -> None:
    logger.info("rescheduled", extra={"queue": id.queue, "job": str(id), "moved_to": str(successor)})


def record_cancel(id: JobId, state: State, *, deployment: str) -> None:
    logger.info(state, extra={"queue": id.queue, "partition": id.partition.number, "job": str(id)})
    report({metrics.CANCELLED: 1}, deployment=deployment, queue=id.queue)


def record_cancelled(results: Sequence[Cancelled | DuelineError], *, deployment: str, queue: str) -> None:
    jobs = {str(result.id): result.state for result in results if isinstance(result, Cancelled)}
    logger.info("cancelled", extra={"queue": queue, "jobs": jobs, "refused": len(results) - len(jobs)})
    report({metrics.CANCELLED: len(jobs)}, deployment=deployment, queue=queue)


def record_control(action: str, control: Control, *, queue: str, caller: str) -> None:
    """Log who paused, resumed or limited a queue's workers; `caller` is the ARN of an IAM user or role."""
    fields = controls(control)
    # What is None is left out of a line.
    logger.info(action, extra={"queue": queue, "caller": caller, **fields, "rate": fields["rate"] or "no limit"})


def record_refusal(error: DuelineError, *, deployment: str) -> None:
    """Log a refusal, and count it if AWS failed: neither throttling nor what cannot be done yet is a fault."""
    # What is wrong with a job may quote its body, and no payload is ever logged.
    reason = {"reason": str(error)} if isinstance(error, RETRYABLE) else {}
    job = {"job": error.job_id} if error.job_id else {}
    logger.warning("refused", extra={"error": type(error).__name__, **job, **reason})
    is_fault = isinstance(error, Unavailable) and not isinstance(error, NotYet)
    report({metrics.API_FAULTS: int(is_fault)}, deployment=deployment)
