"""The HTTP routes about schedules: each reads its request, makes one call to the core, records it, and answers."""

from collections.abc import Sequence
from datetime import timedelta
from http import HTTPStatus

from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response

from dueline.aws.resources import Resources
from dueline.config.registry import Registry
from dueline.model.job import Job
from dueline.model.nominal import checked_name
from dueline.protocol.dispatch import Dispatcher
from dueline.protocol.table_route import TableRoute
from dueline.schedules import reading
from dueline.schedules.changes import Changed, Changes
from dueline.schedules.head import Head
from dueline.schedules.running import Runs
from functions.http import schedule_requests
from functions.http.logs_and_metrics import record_runs, record_schedule
from functions.http.schedule_answers import (
    Backfilled,
    History,
    Preview,
    ScheduleAnswer,
    SchedulesPage,
    SubmittedRun,
    backfilled,
    history_answer,
    next_runs,
    page_of_schedules,
    schedule_answer,
    submitted_run,
)

_SCHEDULES = "/queues/<queue>/schedules"
_SCHEDULE = f"{_SCHEDULES}/<schedule>"


class ScheduleRoutes:
    """The routes about schedules. `longest` is the longest that a request of AWS may take."""

    def __init__(
        self, app: APIGatewayHttpResolver, *, resources: Resources, registry: Registry, longest: timedelta
    ) -> None:
        self._app = app
        self._resources = resources
        self._registry = registry
        self._longest = longest
        app.get(_SCHEDULES)(self.list_schedules)
        app.put(_SCHEDULE)(self.put_schedule)
        app.get(_SCHEDULE)(self.get_schedule)
        app.delete(_SCHEDULE)(self.delete_schedule)
        app.post(f"{_SCHEDULE}/pause")(self.pause_schedule)
        app.post(f"{_SCHEDULE}/resume")(self.resume_schedule)
        app.post(f"{_SCHEDULE}/run")(self.run_schedule)
        app.post(f"{_SCHEDULE}/backfill")(self.backfill_schedule)
        app.get(f"{_SCHEDULE}/history")(self.schedule_history)
        app.post("/schedules/preview")(self.preview_schedule)

    def list_schedules(self, queue: str) -> SchedulesPage:
        """List a queue's schedules, by name, a page at a time."""
        self._registry.queue(queue)
        asked = schedule_requests.read_list(self._app.current_event.query_string_parameters)
        listed = reading.page(queue, table=self._resources.table, after=asked.after, limit=asked.limit)
        return page_of_schedules(listed, now=self._resources.clock.now())

    def put_schedule(self, queue: str, schedule: str) -> Response[ScheduleAnswer]:
        """Create a schedule: 201, or change it: 200. An identical one changes nothing."""
        settings, name = self._registry.taking(queue), checked_name(schedule)
        definition = schedule_requests.read_definition(self._body())
        only_new = schedule_requests.read_only_new(self._header("if-none-match"))
        if_match = self._header("if-match")
        changed = self._changes().put(settings, name, definition, if_match=if_match, only_new=only_new, must_run=True)
        return self._changed("schedule put", changed)

    def get_schedule(self, queue: str, schedule: str) -> Response[ScheduleAnswer]:
        """Return a schedule."""
        self._registry.queue(queue)
        return self._told(reading.get(queue, checked_name(schedule), table=self._resources.table))

    def delete_schedule(self, queue: str, schedule: str) -> Response[ScheduleAnswer]:
        """Delete a schedule: it makes no runs after `effective_from`."""
        self._registry.queue(queue)
        changed = self._changes().delete(queue, checked_name(schedule), if_match=self._header("if-match"))
        return self._changed("schedule deleted", changed)

    def pause_schedule(self, queue: str, schedule: str) -> Response[ScheduleAnswer]:
        """Pause a schedule: it makes no runs after `effective_from`, until it is resumed."""
        self._registry.queue(queue)
        changed = self._changes().pause(queue, checked_name(schedule), if_match=self._header("if-match"))
        return self._changed("schedule paused", changed)

    def resume_schedule(self, queue: str, schedule: str) -> Response[ScheduleAnswer]:
        """Resume a schedule; nothing is caught up."""
        self._registry.queue(queue)
        changed = self._changes().resume(queue, checked_name(schedule), if_match=self._header("if-match"))
        return self._changed("schedule resumed", changed)

    def run_schedule(self, queue: str, schedule: str) -> tuple[SubmittedRun, int]:
        """Run a schedule now, paused or not."""
        self._registry.queue(queue)
        payload = schedule_requests.read_run(self._body())
        key = self._header("idempotency-key")
        job = self._runs().run_now(queue, checked_name(schedule), payload=payload, key=key)
        self._record_runs([job], queue, schedule)
        return submitted_run(job), HTTPStatus.CREATED

    def backfill_schedule(self, queue: str, schedule: str) -> Backfilled:
        """Run a schedule for what has passed."""
        self._registry.queue(queue)
        asked, key = schedule_requests.read_backfill(self._body()), self._header("idempotency-key")
        runs = self._runs()
        jobs = runs.backfill(queue, checked_name(schedule), start=asked.start, end=asked.end, key=key)
        self._record_runs(jobs, queue, schedule)
        return backfilled(jobs)

    def _record_runs(self, jobs: Sequence[Job], queue: str, schedule: str) -> None:
        record_runs(jobs, deployment=self._resources.names.deployment, queue=queue, schedule=schedule)

    def schedule_history(self, queue: str, schedule: str) -> History:
        """Return the last runs of a schedule."""
        asked = schedule_requests.read_history(self._app.current_event.query_string_parameters)
        clock = self._resources.clock
        runs = reading.history(
            self._registry.queue(queue),
            checked_name(schedule),
            table=self._resources.table,
            clock=clock,
            until=clock.monotonic() + self._left(),
            limit=asked.limit,
            before=asked.before,
            spread=self._resources.spread,
        )
        return history_answer(runs)

    def preview_schedule(self) -> Preview:
        """Tell the next runs of a rule, without making a schedule of it."""
        definition, since, limit = schedule_requests.read_preview(self._body())
        after = since or self._resources.clock.now()
        return {"words": definition.rule.words, "next": next_runs(definition.rule, after=after, limit=limit)}

    def _changes(self) -> Changes:
        resources = self._resources
        return Changes(table=resources.table, route=self._route(), clock=resources.clock, patience=self._patience())

    def _runs(self) -> Runs:
        resources = self._resources
        return Runs(
            table=resources.table,
            route=self._route(),
            clock=resources.clock,
            spread=resources.spread,
            patience=self._patience(),
        )

    def _route(self) -> TableRoute:
        resources = self._resources
        return TableRoute(
            table=resources.table, dispatcher=self._dispatcher, clock=resources.clock, spread=resources.spread
        )

    def _patience(self) -> timedelta:
        return timedelta(seconds=max(self._left(), 0))

    def _dispatcher(self, queue: str) -> Dispatcher:
        return self._resources.dispatcher(queue, precise=self._registry.is_precise(queue))

    def _changed(self, action: str, changed: Changed) -> Response[ScheduleAnswer]:
        if changed.is_changed:
            caller = self._app.current_event.request_context.authorizer.iam.user_arn
            record_schedule(action, changed, caller=caller)
        return self._told(changed.head, HTTPStatus.CREATED if changed.is_new else HTTPStatus.OK)

    def _told(self, head: Head, status: HTTPStatus = HTTPStatus.OK) -> Response[ScheduleAnswer]:
        answer = schedule_answer(head, now=self._resources.clock.now())
        return Response(status_code=status, content_type="application/json", body=answer, headers={"ETag": head.etag})

    def _body(self) -> str:
        return schedule_requests.body_of(self._app.current_event)

    def _header(self, name: str) -> str | None:
        return self._app.current_event.headers.get(name)

    def _left(self) -> float:
        """Return for how many seconds requests may be begun."""
        left: float = self._app.lambda_context.get_remaining_time_in_millis() / 1000
        return left - 2 * self._longest.total_seconds()
