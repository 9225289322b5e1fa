"""The HTTP API, a function for each route: schedule, look up, list, reschedule and cancel (unschedule) jobs; show
queues and control them. The routes about schedules are in `functions.http.schedule_routes`.

A route reads its request, makes one call to the core, records it, and answers.
"""

import os
from datetime import timedelta
from functools import cache
from http import HTTPStatus
from typing import Any

from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response
from aws_lambda_powertools.event_handler.exceptions import NotFoundError
from aws_lambda_powertools.utilities.typing import LambdaContext

from dueline.aws.resources import Resources, new_uid
from dueline.config.settings import ApiSettings
from dueline.errors import DuelineError, JobNotFound
from dueline.lookup.control import Control
from dueline.lookup.listing import list_jobs
from dueline.lookup.status import status_of
from dueline.lookup.submitted import moved_status, status_under, submitted_statuses
from dueline.model.job import JobId, State
from dueline.model.trace import TraceContext
from dueline.operate import control
from dueline.protocol.cancel import Cancelled, CancelMany
from dueline.protocol.cancel import cancel as cancel_job
from dueline.protocol.keys import Repeat
from dueline.protocol.uploads import begin
from functions.http import bodies, logs_and_metrics, problems, query_strings
from functions.http.job_answers import (
    JobAnswer,
    Results,
    UploadAnswer,
    cancelled_or_refused,
    job_answer,
    status_answer,
    status_or_refused,
    upload_answer,
)
from functions.http.listed_jobs import Page, page_of_jobs, page_of_one
from functions.http.logs_and_metrics import (
    record_cancelled,
    record_control,
    record_refusals,
    record_reschedule,
    record_scheduled,
    record_upload,
)
from functions.http.queue_answers import (
    ControlAnswer,
    OverviewAnswer,
    Queues,
    control_answer,
    overview_answer,
    queues_answer,
)
from functions.log import log
from functions.queue_registry import REGISTRY

SETTINGS = ApiSettings.from_env(os.environ)
LONGEST_REQUEST = timedelta(seconds=5)
RESOURCES = Resources(
    SETTINGS.deployment, queue_urls=SETTINGS.queue_urls, bucket=SETTINGS.payloads, longest=LONGEST_REQUEST
)
RESOURCES.make_clients()

logger = log()
app = APIGatewayHttpResolver()
app.use(middlewares=[problems.no_route_of_lines, logs_and_metrics.record_request])


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Answer one HTTP request, or CloudFormation, which asks for a schedule that queues.yaml declares."""
    if "RequestType" in event:
        from functions.http.declared_schedules import DeclaredSchedules

        DeclaredSchedules(resources=RESOURCES, registry=REGISTRY).carry_out(event)
        return {}
    if "/schedules" in event["rawPath"]:
        with_schedules()
    return app.resolve(event, context)


@cache
def with_schedules() -> Any:
    """Add the routes about schedules, at the first request for one: their imports would slow down every cold start."""
    from functions.http.schedule_routes import ScheduleRoutes

    return ScheduleRoutes(app, resources=RESOURCES, registry=REGISTRY, longest=LONGEST_REQUEST)


@app.post("/queues/<queue>/jobs")
def schedule(queue: str) -> tuple[JobAnswer | Results, int]:
    """Schedule one job, or up to 500 of them, each for itself."""
    settings = REGISTRY.taking(queue)
    headers = app.current_event.headers
    asked = bodies.read_jobs(
        bodies.body_of(app.current_event), key=headers.get("idempotency-key"), trace=TraceContext.from_headers(headers)
    )
    submit = RESOURCES.submit(settings, direct_horizon=timedelta(seconds=SETTINGS.direct_horizon))
    results = submit.run(asked if isinstance(asked, list) else [asked], until=(until := _until()))
    record_scheduled(results, deployment=SETTINGS.deployment, queue=queue)
    table, clock, spread = RESOURCES.table, RESOURCES.clock, RESOURCES.spread
    found = submitted_statuses(results, queue=settings, table=table, clock=clock, until=until, spread=spread)
    if isinstance(asked, list):
        record_refusals(found, deployment=SETTINGS.deployment)
        return {"jobs": [status_or_refused(one) for one in found]}, HTTPStatus.OK
    if isinstance(found[0], DuelineError):
        raise found[0]
    return status_answer(*found[0]), HTTPStatus.OK if isinstance(results[0], Repeat) else HTTPStatus.CREATED


@app.post("/queues/<queue>/uploads")
def upload(queue: str) -> tuple[UploadAnswer, int]:
    """Begin the upload of a payload, to schedule a job with: this answer goes to nobody else."""
    REGISTRY.queue(queue)
    asked = bodies.read_upload(bodies.body_of(app.current_event))
    payloads, clock = RESOURCES.payloads, RESOURCES.clock
    begun = begin(queue, bytes=asked.bytes, sha256=asked.sha256, payloads=payloads, clock=clock, new_uid=new_uid)
    record_upload(queue=queue, bytes=asked.bytes)
    return upload_answer(begun), HTTPStatus.CREATED


@app.get("/queues/<queue>/jobs")
def list_scheduled(queue: str) -> Page:
    """List the scheduled jobs, in due order, a page at a time, or the one of an idempotency key."""
    settings, now, asked = REGISTRY.queue(queue), RESOURCES.clock.now(), app.current_event.query_string_parameters
    span = query_strings.read_span(asked, now=now)
    if "key" in asked:
        return page_of_one(*status_under(asked["key"], queue=settings, table=RESOURCES.table, now=now))
    return page_of_jobs(list_jobs(span, queue=settings, table=RESOURCES.table, now=now, spread=RESOURCES.spread))


@app.get("/queues/<queue>/jobs/<id>")
def look_up(queue: str, id: str) -> JobAnswer:
    """Return a job's state."""
    settings, job_id = REGISTRY.queue(queue), _id_in(queue, id)
    return status_answer(job_id, status_of(job_id, queue=settings, table=RESOURCES.table, now=RESOURCES.clock.now()))


@app.patch("/queues/<queue>/jobs/<id>")
def reschedule(queue: str, id: str) -> JobAnswer:
    """Move a job to another time: 200 with the job that took its place, 409 when it had left."""
    settings, asked = REGISTRY.queue(queue), bodies.read_time(bodies.body_of(app.current_event))
    job_id, key = _id_in(queue, id), app.current_event.headers.get("idempotency-key")
    moved = RESOURCES.reschedule(settings).run(job_id, at=asked.at, delay=asked.delay, key=key)
    successor, status = moved_status(moved, queue=settings, table=RESOURCES.table, now=RESOURCES.clock.now())
    record_reschedule(job_id, successor=successor)
    return status_answer(successor, status)


@app.delete("/queues/<queue>/jobs/<id>")
def cancel(queue: str, id: str) -> tuple[JobAnswer, int]:
    """Take a job back: 200 is a promise, 202 a request."""
    settings, job_id = REGISTRY.queue(queue), _id_in(queue, id)
    state = cancel_job(job_id, queue=settings, table=RESOURCES.table, now=RESOURCES.clock.now())
    record_cancelled([Cancelled(id=job_id, state=state)], deployment=SETTINGS.deployment, queue=queue)
    return job_answer(job_id, state), HTTPStatus.OK if state is State.CANCELLED else HTTPStatus.ACCEPTED


@app.post("/queues/<queue>/cancellations")
def cancel_many(queue: str) -> Results:
    """Take up to 500 jobs back, each for itself."""
    settings = REGISTRY.queue(queue)
    ids = [_id_or_error(queue, id) for id in bodies.read_ids(bodies.body_of(app.current_event))]
    table, clock, spread = RESOURCES.table, RESOURCES.clock, RESOURCES.spread
    results = CancelMany(settings, table=table, clock=clock, until=_until(), spread=spread).run(ids)
    record_cancelled(results, deployment=SETTINGS.deployment, queue=queue)
    record_refusals(results, deployment=SETTINGS.deployment)
    return {"jobs": [cancelled_or_refused(result) for result in results]}


@app.get("/queues")
def list_queues() -> Queues:
    """List the queues with their settings."""
    return queues_answer(REGISTRY, direct_horizon=SETTINGS.direct_horizon)


@app.get("/queues/<queue>")
def tell_queue(queue: str) -> OverviewAnswer:
    """Return a queue's settings and how it is doing."""
    settings, taking = REGISTRY.queue(queue), REGISTRY.taking_counts(queue).get(queue)
    overview = RESOURCES.overview(settings, lookahead=timedelta(seconds=SETTINGS.lookahead))
    return overview_answer(settings, overview, taking=taking, direct_horizon=SETTINGS.direct_horizon)


@app.post("/queues/<queue>/pause")
def pause(queue: str) -> ControlAnswer:
    """Pause a queue: its workers begin no more jobs."""
    REGISTRY.queue(queue)
    changed = control.pause(queue, table=RESOURCES.table, now=RESOURCES.clock.now())
    return _controlled("paused", changed, queue=queue)


@app.post("/queues/<queue>/resume")
def resume(queue: str) -> ControlAnswer:
    """Resume a queue: its workers go on."""
    REGISTRY.queue(queue)
    changed = control.resume(queue, table=RESOURCES.table, now=RESOURCES.clock.now())
    return _controlled("resumed", changed, queue=queue)


@app.put("/queues/<queue>/rate")
def set_rate(queue: str) -> ControlAnswer:
    """Limit how many jobs a queue's workers begin, or lift the limit."""
    REGISTRY.queue(queue)
    rate = bodies.read_rate(bodies.body_of(app.current_event))
    changed = control.set_rate(queue, rate, table=RESOURCES.table, now=RESOURCES.clock.now())
    return _controlled("rate set", changed, queue=queue)


@app.exception_handler(DuelineError)  # type: ignore[untyped-decorator]
def failed(error: DuelineError) -> Response[str]:
    record_refusals([error], deployment=SETTINGS.deployment)
    return problems.response(error)


@app.not_found
def no_route(_: NotFoundError) -> Response[str]:
    return problems.no_route(app.current_event.path)


def _controlled(action: str, changed: Control, *, queue: str) -> ControlAnswer:
    caller = app.current_event.request_context.authorizer.iam.user_arn
    record_control(action, changed, queue=queue, caller=caller)
    return control_answer(queue, changed)


def _until() -> float:
    """Return when to begin no more requests, on the monotonic clock."""
    left = app.lambda_context.get_remaining_time_in_millis() / 1000
    return RESOURCES.clock.monotonic() + left - 2 * LONGEST_REQUEST.total_seconds()


def _id_in(queue: str, id: str) -> JobId:
    job_id = JobId.parse(id)
    if job_id.queue != queue:
        raise JobNotFound(f"queue {queue!r} has no job {id!r}: it is of another queue")
    return job_id


def _id_or_error(queue: str, id: str | DuelineError) -> JobId | DuelineError:
    try:
        return id if isinstance(id, DuelineError) else _id_in(queue, id)
    except JobNotFound as error:
        return error
