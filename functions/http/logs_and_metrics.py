"""The log lines and metrics of what the API did; never a payload."""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from aws_lambda_powertools.event_handler import APIGatewayHttpResolver

from dueline.config import metrics
from dueline.errors import RETRYABLE, DuelineError, NotYet, Unavailable
from dueline.lookup.control import Control
from dueline.lookup.submitted import submitted_state
from dueline.model import instant
from dueline.model.job import Job, JobId, State
from dueline.protocol.cancel import Cancelled
from dueline.protocol.keys import Repeat
from functions.http.queue_answers import controls
from functions.log import log
from functions.metrics import count, report

if TYPE_CHECKING:
    from dueline.schedules.changes import Changed

_MOST_NAMED = 10

logger = log()


def record_request(app: APIGatewayHttpResolver, call: Callable[..., Any]) -> Any:
    """Log what is asked for, and let it through to its route."""
    if _tells_all():
        logger.debug("asked", extra={"method": app.current_event.http_method, "path": app.current_event.path})
    return call(app)


def record_scheduled(results: Sequence[Job | DuelineError], *, deployment: str, queue: str) -> None:
    jobs = [result for result in results if isinstance(result, Job) and not isinstance(result, Repeat)]
    states = Counter(map(submitted_state, jobs))
    dispatched = {metrics.SUBMITTED: len(jobs), metrics.DISPATCHED: states[State.DISPATCHED]}
    count(dispatched, deployment=deployment, queue=queue)
    report({metrics.BUFFERED: states[State.ACCEPTED], metrics.PARKED: states[State.PARKED]}, deployment=deployment)
    if _tells_all():
        repeats = sum(isinstance(result, Repeat) for result in results)
        told = {"jobs": [str(job.id) for job in jobs], "repeats": repeats}
        logger.debug("scheduled", extra={"queue": queue, **told, "refused": len(results) - len(jobs) - repeats})


def record_upload(*, queue: str, bytes: int) -> None:
    logger.debug("upload begun", extra={"queue": queue, "bytes": bytes})


def record_reschedule(id: JobId, *, successor: JobId) -> None:
    if _tells_all():
        logger.debug("rescheduled", extra={"queue": id.queue, "job": str(id), "moved_to": str(successor)})


def record_cancelled(results: Sequence[Cancelled | DuelineError], *, deployment: str, queue: str) -> None:
    done = [result for result in results if isinstance(result, Cancelled)]
    count({metrics.CANCELLED: len(done)}, deployment=deployment, queue=queue)
    if _tells_all():
        jobs = {str(each.id): each.state for each in done}
        logger.debug("cancelled", extra={"queue": queue, "jobs": jobs, "refused": len(results) - len(jobs)})


def record_control(action: str, control: Control, *, queue: str, caller: str) -> None:
    """Log who paused, resumed or limited a queue's workers; `caller` is the ARN of an IAM user or role."""
    fields = controls(control)
    # What is None is left out of a line.
    logger.info(action, extra={"queue": queue, "caller": caller, **fields, "rate": fields["rate"] or "no limit"})


def record_schedule(action: str, changed: "Changed", *, caller: str) -> None:
    """Log who made, changed, paused, resumed or deleted a schedule; `caller` is the ARN of an IAM user or role."""
    head = changed.head
    told = {"queue": head.queue, "schedule": head.name, "generation": head.generation, "caller": caller}
    logger.info(action, extra={**told, "effective_from": instant.text(changed.effective_from)})


def record_runs(jobs: Sequence[Job], *, deployment: str, queue: str, schedule: str) -> None:
    """Log the runs that were asked for on demand, and count them as what was scheduled."""
    record_scheduled(jobs, deployment=deployment, queue=queue)
    told = {"queue": queue, "schedule": schedule, "runs": len(jobs)}
    logger.info("schedule run", extra={**told, "jobs": [str(job.id) for job in jobs[:_MOST_NAMED]]})


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


def _tells_all() -> bool:
    return bool(logger.log_level <= logging.DEBUG)
