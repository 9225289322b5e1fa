"""What is logged and counted of jobs; never a payload."""

from collections.abc import Sequence

from dueline.config import metrics
from dueline.errors import RETRYABLE, DuelineError, NotYet, Unavailable
from dueline.lookup.control import Control
from dueline.model.job import Job, Route
from dueline.protocol.cancel import Cancelled
from dueline.protocol.keys import Repeat
from functions.http.control_answers import told_of_control
from functions.log import log
from functions.telemetry import report

logger = log()


def of_submitted(results: Sequence[Job | DuelineError], *, deployment: str, queue: str) -> None:
    jobs = [result for result in results if isinstance(result, Job) and not isinstance(result, Repeat)]
    repeats = sum(isinstance(result, Repeat) for result in results)
    direct = sum(job.id.route is Route.DIRECT for job in jobs)
    told = {"jobs": [str(job.id) for job in jobs], "repeats": repeats, "refused": len(results) - len(jobs) - repeats}
    logger.info("scheduled", extra={"queue": queue, **told})
    report({metrics.SUBMITTED: len(jobs), metrics.DISPATCHED: direct}, deployment=deployment, queue=queue)


def of_cancelled(results: Sequence[Cancelled | DuelineError], *, deployment: str, queue: str) -> None:
    jobs = {str(result.id): result.state for result in results if isinstance(result, Cancelled)}
    logger.info("cancelled", extra={"queue": queue, "jobs": jobs, "refused": len(results) - len(jobs)})
    report({metrics.CANCELLED: len(jobs)}, deployment=deployment, queue=queue)


def of_control(done: str, control: Control, *, queue: str, caller: str) -> None:
    """Tell who changed what holds for a queue's workers; `caller` is the ARN of an IAM user or role."""
    told = told_of_control(control)
    # What is None is left out of a line.
    logger.info(done, extra={"queue": queue, "caller": caller, **told, "rate": told["rate"] or "no limit"})


def of_refused(error: DuelineError, *, deployment: str) -> None:
    """Tell of what was refused, and count the faults of AWS: neither throttling nor what cannot be done yet is one."""
    # What is wrong with a job may quote its body, and no payload is ever logged.
    reason = {"reason": str(error)} if isinstance(error, RETRYABLE) else {}
    job = {"job": error.job_id} if error.job_id else {}
    logger.warning("refused", extra={"error": type(error).__name__, **job, **reason})
    is_fault = isinstance(error, Unavailable) and not isinstance(error, NotYet)
    report({metrics.API_FAULTS: int(is_fault)}, deployment=deployment)
