"""The HTTP API, a function for each route: schedule, look up, list, reschedule and cancel (unschedule) jobs; show
queues and control them. The routes about schedules are in `functions.http.schedules`.

A route reads its request, makes one call to the core, records it, and answers; what it means for callers is in
`functions.http.api_operations`.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import cache, partial
from http import HTTPStatus
from typing import Any

from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response
from aws_lambda_powertools.event_handler.exceptions import NotFoundError
from aws_lambda_powertools.utilities.typing import LambdaContext

from dueline.aws import clients
from dueline.aws.aws_deployment import AwsDeployment
from dueline.aws.settings import TicksFirst
from dueline.config.environment import ApiSettings
from dueline.core.cancel import CancelMany, CancelResult
from dueline.core.job import JobId, State, new_uid
from dueline.core.listing import list_jobs, list_tracked
from dueline.core.overview import Control
from dueline.core.partitions import all_tick
from dueline.core.payloads import begin
from dueline.core.queue_settings import QueueSettings
from dueline.core.retry import attempt
from dueline.core.status import moved_status, status_of, status_under, submitted_statuses
from dueline.core.trace import TraceContext
from dueline.errors import DuelineError, InvalidJob, JobNotFound
from dueline.functions.http import answers, callers, problems, request_log, requests
from dueline.functions.queue_registry import REGISTRY as PUBLISHED
from dueline.functions.telemetry import log
from dueline.operations import control

SETTINGS = ApiSettings.from_env(os.environ)
LONGEST_REQUEST = timedelta(seconds=6)
TO_ANSWER = timedelta(seconds=0.5)
DEPLOYMENT = AwsDeployment(
    SETTINGS.deployment, queue_urls=SETTINGS.queue_urls, bucket=SETTINGS.payloads, longest=LONGEST_REQUEST
)
DEPLOYMENT.make_clients()


def _all_tick(queue: QueueSettings) -> bool:
    return all_tick(queue, table=DEPLOYMENT.table, now=DEPLOYMENT.clock.now(), spread=DEPLOYMENT.spread)


REGISTRY = replace(
    PUBLISHED,
    active_partitions=TicksFirst(_all_tick, active_partitions=PUBLISHED.active_partitions, clock=DEPLOYMENT.clock),
)

logger = log()
app = APIGatewayHttpResolver()


def set_deadline(app: APIGatewayHttpResolver, call: Callable[..., Any]) -> Any:
    """Begin no request of AWS that may end after this invocation: what is not done by then is answered with 503."""
    left = app.lambda_context.get_remaining_time_in_millis() / 1000
    clients.DEADLINE.at = DEPLOYMENT.clock.monotonic() + left - TO_ANSWER.total_seconds()
    return call(app)


app.use(
    middlewares=[
        set_deadline,
        callers.only_what_the_alias_may,
        problems.no_route_of_lines,
    ]
)


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Answer one HTTP request, or one in the same form that came by an alias."""
    if not callers.is_from_gateway(context.invoked_function_arn):
        try:
            event = callers.trusted_event(event, function_arn=context.invoked_function_arn)
        except InvalidJob as error:
            request_log.record_refusals([error], deployment=SETTINGS.deployment)
            return problems.refused_event(error)
    logger.debug("request", extra={"path": event["rawPath"]})
    if "/schedules" in event["rawPath"]:
        with_schedules()
    return app.resolve(event, context)


@cache
def with_schedules() -> Any:
    """Add the routes about schedules, at the first request for one: their imports would slow down every cold start."""
    from dueline.functions.http.schedules import ScheduleRoutes

    return ScheduleRoutes(app, resources=DEPLOYMENT, registry=REGISTRY, until=_until)


@app.post("/queues/<queue>/jobs")
def schedule(queue: str) -> tuple[answers.ScheduledAnswer | answers.ScheduledResults, int]:
    settings, until = REGISTRY.taking(queue), _until()
    headers, text = app.current_event.headers, requests.body_of(app.current_event)
    jobs = requests.read_jobs(text, call=headers.get("idempotency-key"), trace=TraceContext.from_headers(headers))
    submit = DEPLOYMENT.submit(settings, direct_horizon=timedelta(seconds=SETTINGS.direct_horizon))
    results = submit.run(jobs if isinstance(jobs, list) else [jobs], until=until)
    request_log.record_scheduled(results, deployment=SETTINGS.deployment, queue=queue)
    table, clock, spread = DEPLOYMENT.table, DEPLOYMENT.clock, DEPLOYMENT.spread
    statuses = submitted_statuses(results, queue=settings, table=table, clock=clock, until=until, spread=spread)
    if isinstance(jobs, list):
        request_log.record_refusals(statuses, deployment=SETTINGS.deployment)
        return {"jobs": list(map(answers.scheduled_or_refused, results, statuses))}, HTTPStatus.OK
    if isinstance(statuses[0], DuelineError):
        raise statuses[0]
    answer = answers.scheduled_answer(results[0], statuses[0])
    return answer, HTTPStatus.CREATED if answer["created"] else HTTPStatus.OK


@app.post("/queues/<queue>/uploads")
def upload(queue: str) -> tuple[answers.UploadAnswer, int]:
    REGISTRY.queue(queue)
    body = requests.read_body(requests.UploadBody, requests.body_of(app.current_event))
    payloads, clock = DEPLOYMENT.payloads, DEPLOYMENT.clock
    started = begin(queue, bytes=body.bytes, sha256=body.sha256, payloads=payloads, clock=clock, new_uid=new_uid)
    return answers.upload_answer(started), HTTPStatus.CREATED


@app.get("/queues/<queue>/jobs")
def list_scheduled(queue: str) -> answers.Page | answers.JobWithPayload:
    settings, now, query = REGISTRY.queue(queue), DEPLOYMENT.clock.now(), app.current_event.query_string_parameters
    listing = requests.validate(requests.JobsQuery, query)
    span, table, spread = listing.span(now=now), DEPLOYMENT.table, DEPLOYMENT.spread
    if "key" in query:
        status = status_under(query["key"], queue=settings, table=DEPLOYMENT.table, now=now)
        return answers.job_answer(*status)
    if listing.is_tracked:
        page = list_tracked(span, state=listing.only, queue=settings, table=table, now=now, spread=spread)
        return answers.page_of_tracked(page)
    return answers.page_of_jobs(list_jobs(span, queue=settings, table=table, now=now, spread=spread))


@app.get("/queues/<queue>/jobs/<id>")
def look_up(queue: str, id: str) -> answers.JobWithPayload:
    settings, job_id = REGISTRY.queue(queue), _id_in(queue, id)
    result = status_of(job_id, queue=settings, table=DEPLOYMENT.table, now=DEPLOYMENT.clock.now())
    return answers.job_answer(*result)


@app.patch("/queues/<queue>/jobs/<id>")
def reschedule(queue: str, id: str) -> answers.JobAnswer:
    return _reschedule(queue, id=_id_in(queue, id))


@app.patch("/queues/<queue>/jobs")
def reschedule_by_key(queue: str) -> answers.JobAnswer:
    return _reschedule(queue, key=_key_of_query())


def _reschedule(queue: str, *, id: JobId | None = None, key: str | None = None) -> answers.JobAnswer:
    settings, body = REGISTRY.queue(queue), requests.read_body(requests.TimeBody, requests.body_of(app.current_event))
    call = app.current_event.headers.get("idempotency-key")
    moved = DEPLOYMENT.reschedule(settings).run(id, key=key, at=body.at, delay=body.delay, call=call)
    successor, status = moved_status(moved, queue=settings, table=DEPLOYMENT.table, now=DEPLOYMENT.clock.now())
    return answers.job_answer(successor, status)


@app.delete("/queues/<queue>/jobs/<id>")
def cancel(queue: str, id: str) -> tuple[answers.JobAnswer, int]:
    return _cancelled(queue, _cancels(REGISTRY.queue(queue)).run([_id_in(queue, id)]))


@app.delete("/queues/<queue>/jobs")
def cancel_by_key(queue: str) -> tuple[answers.JobAnswer, int]:
    return _cancelled(queue, _cancels(REGISTRY.queue(queue)).run_by_keys([_key_of_query()]))


@app.post("/queues/<queue>/cancellations")
def cancel_many(queue: str) -> answers.Results:
    cancels = _cancels(REGISTRY.queue(queue))
    ids, keys = requests.read_cancellations(requests.body_of(app.current_event))
    results = (
        cancels.run_by_keys(keys)
        if keys
        else cancels.run([id if isinstance(id, DuelineError) else attempt(partial(_id_in, queue), id) for id in ids])
    )
    request_log.record_cancelled(results, deployment=SETTINGS.deployment, queue=queue)
    request_log.record_refusals(results, deployment=SETTINGS.deployment)
    return {"jobs": [answers.cancelled_or_refused(result) for result in results]}


@app.get("/queues")
def list_queues() -> answers.Queues:
    return answers.queues_answer(REGISTRY, direct_horizon=SETTINGS.direct_horizon)


@app.get("/queues/<queue>")
def get_queue(queue: str) -> answers.OverviewAnswer:
    settings, taking = REGISTRY.queue(queue), REGISTRY.taking_counts(queue).get(queue)
    overview = DEPLOYMENT.overview(settings, lookahead=timedelta(seconds=SETTINGS.lookahead))
    return answers.overview_answer(settings, overview, taking=taking, direct_horizon=SETTINGS.direct_horizon)


@app.post("/queues/<queue>/pause")
def pause(queue: str) -> answers.ControlAnswer:
    return _change("paused", queue, control.pause)


@app.post("/queues/<queue>/resume")
def resume(queue: str) -> answers.ControlAnswer:
    return _change("resumed", queue, control.resume)


@app.put("/queues/<queue>/rate")
def set_rate(queue: str) -> answers.ControlAnswer:
    REGISTRY.queue(queue)
    rate = requests.read_rate(requests.body_of(app.current_event))
    return _change("rate set", queue, partial(control.set_rate, rate=rate))


@app.exception_handler(DuelineError)  # type: ignore[untyped-decorator]
def failed(error: DuelineError) -> Response[str]:
    request_log.record_refusals([error], deployment=SETTINGS.deployment)
    return problems.response(problems.problem(error))


@app.not_found
def no_route(_: NotFoundError) -> Response[str]:
    return problems.response(problems.route_problem(app.current_event.path))


def _change(action: str, queue: str, change: Callable[..., Control]) -> answers.ControlAnswer:
    REGISTRY.queue(queue)
    changed = change(queue, table=DEPLOYMENT.table, now=DEPLOYMENT.clock.now())
    caller = app.current_event.request_context.authorizer.iam.user_arn
    request_log.record_control(action, changed, queue=queue, caller=caller)
    return answers.control_answer(queue, changed)


def _cancels(queue: QueueSettings) -> CancelMany:
    table, clock, spread = DEPLOYMENT.table, DEPLOYMENT.clock, DEPLOYMENT.spread
    return CancelMany(queue=queue, table=table, clock=clock, until=_until(), spread=spread)


def _cancelled(queue: str, results: Sequence[CancelResult | DuelineError]) -> tuple[answers.JobAnswer, int]:
    """Return the answer to the cancel of one job."""
    (result,) = results
    if isinstance(result, DuelineError):
        raise result
    request_log.record_cancelled(results, deployment=SETTINGS.deployment, queue=queue)
    is_promised = result.state is State.CANCELLED
    return answers.cancel_answer(result), HTTPStatus.OK if is_promised else HTTPStatus.ACCEPTED


def _until() -> float:
    """Return when to begin no more requests, on the monotonic clock."""
    left = app.lambda_context.get_remaining_time_in_millis() / 1000
    return DEPLOYMENT.clock.monotonic() + left - 2 * LONGEST_REQUEST.total_seconds()


def _id_in(queue: str, id: str) -> JobId:
    job_id = JobId.parse(id)
    if job_id.queue != queue:
        raise JobNotFound(f"queue {queue!r} has no job {id!r}: it is of another queue")
    return job_id


def _key_of_query() -> str:
    """Return the key in the query string. Raises InvalidJob where there is none."""
    return requests.validate(requests.KeyQuery, app.current_event.query_string_parameters).key
