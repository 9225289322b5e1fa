"""The HTTP routes about schedules."""

from collections.abc import Callable
from datetime import timedelta
from http import HTTPStatus
from typing import Any, cast

from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response

from dueline.aws.aws_deployment import AwsDeployment
from dueline.config.registry import Registry
from dueline.core.dispatch import Dispatcher
from dueline.core.table_writer import TableWriter
from dueline.functions.http import schedule_models as models
from dueline.functions.http.request_log import record_runs, record_schedule
from dueline.functions.http.requests import Form, body_of, read_body, validate
from dueline.schedules import answers, queries
from dueline.schedules.changes import Changed, Changes
from dueline.schedules.definition import Definition, invalid_schedule, payload_text
from dueline.schedules.head import Head
from dueline.schedules.manual_runs import ManualRuns

_SCHEDULES = "/queues/<queue>/schedules"
_SCHEDULE = f"{_SCHEDULES}/<schedule>"


class ScheduleRoutes:
    """The routes: each reads its request, makes one call to the core, records it, and answers.

    `until` returns when to begin no more requests of AWS, on the monotonic clock.
    """

    def __init__(
        self, app: APIGatewayHttpResolver, *, resources: AwsDeployment, registry: Registry, until: Callable[[], float]
    ) -> None:
        self._app = app
        self._resources = resources
        self._registry = registry
        self._until = until
        table, clock, spread = resources.table, resources.clock, resources.spread
        self._route = TableWriter(table=table, dispatcher=self._dispatcher, clock=clock, spread=spread)
        app.get(_SCHEDULES)(self.list_schedules)
        app.put(_SCHEDULE)(self.put_schedule)
        app.get(_SCHEDULE)(self.get_schedule)
        app.delete(_SCHEDULE)(self.delete_schedule)
        app.post(f"{_SCHEDULE}/pause")(self.pause_schedule)
        app.post(f"{_SCHEDULE}/resume")(self.resume_schedule)
        app.post(f"{_SCHEDULE}/run")(self.run_schedule)
        app.post(f"{_SCHEDULE}/backfill")(self.backfill_schedule)
        app.get(f"{_SCHEDULE}/history")(self.schedule_history)

    def list_schedules(self, queue: str) -> models.SchedulesPage:
        self._registry.queue(queue)
        query = self._query(models.SchedulesQuery)
        page = queries.page(queue, table=self._resources.table, after=query.after, limit=query.limit)
        return cast("models.SchedulesPage", answers.page_fields(page, now=self._resources.clock.now()))

    def put_schedule(self, queue: str, schedule: str) -> Response[models.ScheduleAnswer]:
        settings, body = self._registry.taking(queue), self._body(models.ScheduleBody)
        definition = Definition.from_dict({name: getattr(body, name) for name in body.model_fields_set})
        return self._change("schedule put", Changes.put, settings, schedule, definition)

    def get_schedule(self, queue: str, schedule: str) -> Response[models.ScheduleAnswer]:
        self._registry.queue(queue)
        return self._schedule(queries.get(queue, schedule, table=self._resources.table))

    def delete_schedule(self, queue: str, schedule: str) -> Response[models.ScheduleAnswer]:
        return self._change("schedule deleted", Changes.delete, self._registry.queue(queue).name, schedule)

    def pause_schedule(self, queue: str, schedule: str) -> Response[models.ScheduleAnswer]:
        return self._change("schedule paused", Changes.pause, self._registry.queue(queue).name, schedule)

    def resume_schedule(self, queue: str, schedule: str) -> Response[models.ScheduleAnswer]:
        return self._change("schedule resumed", Changes.resume, self._registry.taking(queue), schedule)

    def run_schedule(self, queue: str, schedule: str) -> tuple[models.SubmittedRun, int]:
        self._registry.queue(queue)
        run = self._body(models.RunBody, empty="{}")
        payload = payload_text(run.payload) if run.model_fields_set else None
        result = self._runs().run_now(queue, schedule, payload=payload, key=self._header("idempotency-key"))
        record_runs([result], deployment=self._resources.names.deployment, queue=queue, schedule=schedule)
        return cast("models.SubmittedRun", answers.submitted_fields(result.job)), HTTPStatus.CREATED

    def backfill_schedule(self, queue: str, schedule: str) -> models.Backfilled:
        self._registry.queue(queue)
        span = self._body(models.BackfillBody)
        key = self._header("idempotency-key")
        results = self._runs().backfill(queue, schedule, start=span.start, end=span.end, key=key)
        record_runs(results, deployment=self._resources.names.deployment, queue=queue, schedule=schedule)
        return {"runs": [cast("models.SubmittedRun", answers.submitted_fields(each.job)) for each in results]}

    def schedule_history(self, queue: str, schedule: str) -> models.History:
        query, clock = self._query(models.HistoryQuery), self._resources.clock
        runs = queries.history(
            self._registry.queue(queue),
            schedule,
            table=self._resources.table,
            clock=clock,
            until=self._until(),
            limit=query.limit,
            before=query.before,
            spread=self._resources.spread,
        )
        return cast("models.History", answers.history_fields(runs))

    def _body(self, form: type[Form], *, empty: str = "") -> Form:
        with invalid_schedule():
            return read_body(form, body_of(self._app.current_event) or empty)

    def _query(self, form: type[Form]) -> Form:
        with invalid_schedule():
            return validate(form, self._app.current_event.query_string_parameters)

    def _header(self, name: str) -> str | None:
        return self._app.current_event.headers.get(name)

    def _runs(self) -> ManualRuns:
        return ManualRuns(self._route, patience=self._patience())

    def _dispatcher(self, queue: str) -> Dispatcher:
        return self._resources.dispatcher(queue, precise=self._registry.is_precise(queue))

    def _patience(self) -> timedelta:
        return timedelta(seconds=max(self._until() - self._resources.clock.monotonic(), 0))

    def _change(self, action: str, change: Callable[..., Changed], *of: Any) -> Response[models.ScheduleAnswer]:
        changed = change(Changes(self._route, patience=self._patience()), *of, if_match=self._header("if-match"))
        if changed.is_changed:
            caller = self._app.current_event.request_context.authorizer.iam.user_arn
            record_schedule(action, changed, caller=caller)
        status = HTTPStatus.CREATED if changed.is_new else HTTPStatus.OK
        return self._schedule(changed.head, status, changed=changed.is_changed)

    def _schedule(
        self, head: Head, status: HTTPStatus = HTTPStatus.OK, *, changed: bool | None = None
    ) -> Response[models.ScheduleAnswer]:
        fields = answers.schedule_fields(head, now=self._resources.clock.now(), changed=changed)
        answer, headers = cast("models.ScheduleAnswer", fields), {"ETag": head.etag}
        return Response(status_code=status, content_type="application/json", body=answer, headers=headers)
