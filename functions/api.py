"""The HTTP API: schedule, look up and cancel (unschedule) jobs."""

import os
import uuid
from datetime import timedelta
from http import HTTPStatus
from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response
from aws_lambda_powertools.event_handler.exceptions import NotFoundError
from aws_lambda_powertools.utilities.typing import LambdaContext

from dueline import instant
from dueline.aws.resources import Resources
from dueline.cancel import cancel as cancel_job
from dueline.config import metrics
from dueline.config.settings import ApiSettings
from dueline.errors import RETRYABLE, DuelineError, InvalidJob, JobNotFound
from dueline.job import Job, JobId, Route, State
from dueline.keys import Repeat
from dueline.queue import QueueSettings
from dueline.status import look_up as look_up_job
from dueline.submit import Submit
from functions import bodies, problems
from functions.registry import REGISTRY
from functions.telemetry import report

SETTINGS = ApiSettings.from_env(os.environ)
LONGEST_REQUEST = timedelta(seconds=5)
RESOURCES = Resources(SETTINGS.deployment, queue_urls=SETTINGS.queue_urls, longest=LONGEST_REQUEST)

logger = Logger()
app = APIGatewayHttpResolver()

Answer = dict[str, Any]


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: LambdaContext) -> Answer:
    """Answer one HTTP request."""
    return app.resolve(event, context)


@app.post("/queues/<queue>/jobs")
def schedule(queue: str) -> tuple[Answer, int]:
    """Schedule one job, or up to 500 of them, each for itself."""
    settings = REGISTRY.queue(queue)
    asked = bodies.read(_body(), key=app.current_event.headers.get("idempotency-key"))
    results = _submit(settings).run(asked if isinstance(asked, list) else [asked], until=_until())
    _tell_submitted(queue, results)
    if isinstance(asked, list):
        return {"jobs": [_result(result) for result in results]}, HTTPStatus.OK
    if isinstance(results[0], DuelineError):
        raise results[0]
    return _result(results[0]), HTTPStatus.OK if isinstance(results[0], Repeat) else HTTPStatus.CREATED


@app.get("/queues/<queue>/jobs/<id>")
def look_up(queue: str, id: str) -> Answer:
    """Tell a job's state."""
    REGISTRY.queue(queue)
    job_id = _id_in(queue, id)
    return _answer(job_id, _state(job_id))


@app.delete("/queues/<queue>/jobs/<id>")
def cancel(queue: str, id: str) -> tuple[Answer, int]:
    """Take a job back: 200 is a promise, 202 a request."""
    REGISTRY.queue(queue)
    job_id = _id_in(queue, id)
    state = cancel_job(job_id, table=RESOURCES.table, now=RESOURCES.clock.now())
    logger.info(state, extra={"queue": queue, "partition": job_id.partition.number, "job": id})
    report({metrics.CANCELLED: 1}, deployment=SETTINGS.deployment, queue=queue)
    return _answer(job_id, state), HTTPStatus.OK if state is State.CANCELLED else HTTPStatus.ACCEPTED


@app.exception_handler(DuelineError)  # type: ignore[untyped-decorator]
def failed(error: DuelineError) -> Response[str]:
    _tell_refused(error)
    return problems.response(error)


@app.not_found
def no_route(_: NotFoundError) -> Response[str]:
    return problems.no_route(app.current_event.path)


def _body() -> str:
    try:
        return app.current_event.decoded_body or ""
    except ValueError:
        raise InvalidJob("body is not JSON: it is not UTF-8") from None


def _until() -> float:
    """Return when to begin no more requests, on the monotonic clock."""
    left = app.lambda_context.get_remaining_time_in_millis() / 1000
    return RESOURCES.clock.monotonic() + left - 2 * LONGEST_REQUEST.total_seconds()


def _submit(queue: QueueSettings) -> Submit:
    return Submit(
        queue,
        own=RESOURCES.team_queue(queue.name),
        inbound=RESOURCES.inbound,
        table=RESOURCES.table,
        direct_horizon=timedelta(seconds=SETTINGS.direct_horizon),
        clock=RESOURCES.clock,
        new_uid=lambda: str(uuid.uuid4()),
        spread=RESOURCES.spread,
    )


def _id_in(queue: str, id: str) -> JobId:
    job_id = JobId.parse(id)
    if job_id.queue != queue:
        raise JobNotFound(f"queue {queue!r} has no job {id!r}: it is of another queue")
    return job_id


def _result(result: Job | DuelineError) -> Answer:
    if isinstance(result, DuelineError):
        _tell_refused(result)
        return {"error": problems.problem(result)}
    if isinstance(result, Repeat):
        return _answer(result.id, _state(result.id))
    return _answer(result.id, State.DISPATCHED if result.id.route is Route.DIRECT else State.ACCEPTED)


def _state(id: JobId) -> State:
    return look_up_job(id, queue=REGISTRY.queue(id.queue), table=RESOURCES.table, now=RESOURCES.clock.now())


def _answer(id: JobId, state: State) -> Answer:
    return {
        "id": str(id),
        "queue": id.queue,
        "due": instant.text(id.due),
        "route": id.route.name.lower(),
        "state": state.value,
    }


def _tell_submitted(queue: str, results: list[Job | DuelineError]) -> None:
    jobs = [result for result in results if isinstance(result, Job) and not isinstance(result, Repeat)]
    repeats = sum(isinstance(result, Repeat) for result in results)
    direct = sum(job.id.route is Route.DIRECT for job in jobs)
    told = {"jobs": [str(job.id) for job in jobs], "repeats": repeats, "refused": len(results) - len(jobs) - repeats}
    logger.info("scheduled", extra={"queue": queue, **told})
    counts = {metrics.SUBMITTED: len(jobs), metrics.DISPATCHED: direct}
    report(counts, deployment=SETTINGS.deployment, queue=queue)


def _tell_refused(error: DuelineError) -> None:
    # What is wrong with a job may quote its body, and no payload is ever logged.
    reason = {"reason": str(error)} if isinstance(error, RETRYABLE) else {}
    job = {"job": error.job_id} if error.job_id else {}
    logger.warning("refused", extra={"error": type(error).__name__, **job, **reason})
