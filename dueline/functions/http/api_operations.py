"""The API's operations: a route is an entry here, and a test holds them to the routes that there are."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

from dueline.functions.http import answers, requests
from dueline.functions.http import schedule_models as schedules

ID = "emails.0.t.1799049600000.0d6a387e-6d3b-4b8e-9f51-3d7c1f0a2b4c"
_PAYLOAD = {"to": "ann"}
# API Gateway refuses what it refuses for whichever operation.
_EVERYWHERE = (403, 429, 500, 503)


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation of the API: its `route` is the name of its function, a method and a path.

    `answers` are types by status. `examples` are bodies of requests, by name. `headers` are its parameters in headers;
    `refused` are statuses that its route, body and headers do not imply.
    """

    route: str
    summary: str
    description: str
    answers: Mapping[int, Any]
    body: Any = None
    examples: Mapping[str, Any] = field(default_factory=dict)
    query: type[BaseModel] | None = None
    headers: tuple[str, ...] = ()
    refused: tuple[int, ...] = ()

    @property
    def statuses_of_errors(self) -> list[int]:
        implied = {
            400: self.body or self.query or "{schedule}" in self.route,
            404: "{queue}" in self.route,
            412: "if-match" in self.headers,
            413: self.body,
        }
        return sorted({*(status for status, is_implied in implied.items() if is_implied), *self.refused, *_EVERYWHERE})


_NEW_TIME = {"at": {"at": "2027-01-05T09:00:00+01:00"}, "delay": {"delay": 3600}}
OPERATIONS = (
    Operation(
        "schedule POST /queues/{queue}/jobs",
        "Schedule a job, or up to 500",
        "This job, to that queue, at that time: it is handed over at that second, never early. 201: it is scheduled,"
        " on its way to the table or in its queue already. 200: the job that has the key already, or that an earlier"
        " attempt of the call made, and nothing was sent; or the one that has replaced it; or the results of many.",
        {201: answers.ScheduledAnswer, 200: answers.ScheduledAnswer | answers.ScheduledResults},
        body=requests.JobBody | requests.JobsBody,
        examples={
            "at": {"payload": _PAYLOAD, "at": "2027-01-04T09:00:00+01:00", "tenant": "customer-7", "priority": 1},
            "delay": {"payload": _PAYLOAD, "delay": 90},
            "key": {"payload": _PAYLOAD, "at": "2027-01-04T09:00:00Z", "key": "welcome-ann", "if_exists": "replace"},
            "id": {"payload": _PAYLOAD, "id": ID},
            "many": {"jobs": [{"payload": _PAYLOAD, "delay": 90}, {"payload": _PAYLOAD}]},
        },
        headers=("call", "traceparent", "tracestate"),
        refused=(409, 422),
    ),
    Operation(
        "upload POST /queues/{queue}/uploads",
        "Begin the upload of a large payload",
        "How to send a payload of up to 10 MiB to S3, of which a job is to be made. Over 5 MB there is no other way.",
        {201: answers.UploadAnswer},
        body=requests.UploadBody,
        examples={"upload": {"bytes": 6_000_000, "sha256": "9f86d081884c7d659a2feaa0c55ad015" * 2}},
    ),
    Operation(
        "list_scheduled GET /queues/{queue}/jobs",
        "List jobs",
        "The jobs of a queue that are in the table, in due order, with their payloads; with a `state`, those that its"
        " workers received, if it tracks its jobs; or the job of a key, as a look-up by its id returns it.",
        {200: answers.Page | answers.JobWithPayload},
        query=requests.JobsQuery,
    ),
    Operation(
        "look_up GET /queues/{queue}/jobs/{id}",
        "Look a job up",
        "How far a job has come, by its id or by one that it had before it was rescheduled. While it is in the table,"
        " it comes with its payload.",
        {200: answers.JobWithPayload},
    ),
    Operation(
        "reschedule PATCH /queues/{queue}/jobs/{id}",
        "Reschedule a job",
        "Move a job, by any of its ids, to another time, in one step: it gets a new id, and none with an earlier one"
        " ever comes. 503 `not_yet` while it is on its way to the table, and if nobody ever scheduled it: an id alone"
        " does not say which. A `delay` is counted by the API's clock, from the first attempt of a call.",
        {200: answers.JobAnswer},
        body=requests.TimeBody,
        examples=_NEW_TIME,
        headers=("call",),
        refused=(409,),
    ),
    Operation(
        "reschedule_by_key PATCH /queues/{queue}/jobs",
        "Reschedule the job of a key",
        "Move the job that has a key to another time: it keeps the key.",
        {200: answers.JobAnswer},
        body=requests.TimeBody,
        examples=_NEW_TIME,
        query=requests.KeyQuery,
        headers=("call",),
        refused=(409, 422),
    ),
    Operation(
        "cancel DELETE /queues/{queue}/jobs/{id}",
        "Cancel (unschedule) a job",
        "Take a job back, by its id or by one that it had before it was rescheduled, and whether there is one by now"
        " or not: a cancel that overtakes its job holds. 200 `cancelled` is a promise: it never reaches its queue. 202"
        " `cancel_requested`: it is there or may be on its way; workers that check for cancels still skip it. 404"
        " where no job can be: in a partition that the queue never had.",
        {200: answers.JobAnswer, 202: answers.JobAnswer},
    ),
    Operation(
        "cancel_by_key DELETE /queues/{queue}/jobs",
        "Cancel (unschedule) the job of a key",
        "Take the job back that was scheduled under a key, as by its id. 404 where there is none.",
        {200: answers.JobAnswer, 202: answers.JobAnswer},
        query=requests.KeyQuery,
    ),
    Operation(
        "cancel_many POST /queues/{queue}/cancellations",
        "Cancel (unschedule) up to 500 jobs",
        "Take jobs back, by their ids or by their keys, each for itself.",
        {200: answers.Results},
        body=requests.CancellationsBody,
        examples={"ids": {"ids": [ID]}, "keys": {"keys": ["welcome-ann"]}},
    ),
    Operation(
        "list_schedules GET /queues/{queue}/schedules",
        "List a queue's schedules",
        "The schedules of a queue, by name, each with its next runs.",
        {200: schedules.SchedulesPage},
        query=schedules.SchedulesQuery,
    ),
    Operation(
        "put_schedule PUT /queues/{queue}/schedules/{schedule}",
        "Create a schedule (201), or change it (200)",
        "A schedule makes recurring jobs of its queue. The body is the whole schedule: what is left out has its"
        " default. An identical one changes nothing, so any number of instances may declare theirs; one that is paused"
        " stays paused. A change after which no run is to come is refused. Up to `effective_from` the schedule before"
        " serves, after it the new one: never both, never neither.",
        {201: schedules.ScheduleAnswer, 200: schedules.ScheduleAnswer},
        body=schedules.ScheduleBody,
        examples={
            "cron": {"cron": "0 9 * * MON-FRI", "zone": "Europe/Berlin", "payload": {"digest": "daily"}},
            "every": {"every": 900, "overlap": "skip", "owner": "emails-service"},
        },
        headers=("if-match",),
        refused=(409,),
    ),
    Operation(
        "get_schedule GET /queues/{queue}/schedules/{schedule}",
        "Show a schedule",
        "A schedule as it is now, and its next runs.",
        {200: schedules.ScheduleAnswer},
    ),
    Operation(
        "delete_schedule DELETE /queues/{queue}/schedules/{schedule}",
        "Delete a schedule",
        "Let it make no more runs: none after `effective_from`.",
        {200: schedules.ScheduleAnswer},
        headers=("if-match",),
    ),
    Operation(
        "pause_schedule POST /queues/{queue}/schedules/{schedule}/pause",
        "Pause a schedule",
        "Let it make no runs after `effective_from`, until it is resumed.",
        {200: schedules.ScheduleAnswer},
        headers=("if-match",),
    ),
    Operation(
        "resume_schedule POST /queues/{queue}/schedules/{schedule}/resume",
        "Resume a schedule",
        "Let it make runs again, those after `effective_from`. Nothing is caught up.",
        {200: schedules.ScheduleAnswer},
        headers=("if-match",),
    ),
    Operation(
        "run_schedule POST /queues/{queue}/schedules/{schedule}/run",
        "Run a schedule now",
        "Make one job of it that is due now, be it paused or not. Its other runs are not touched. A repeat"
        " under the same key returns the first run, whatever the schedule is by then.",
        {201: schedules.SubmittedRun},
        body=schedules.RunBody,
        examples={"as_it_is": {}, "payload": {"payload": {"digest": "once more"}}},
        headers=("call",),
        refused=(422,),
    ),
    Operation(
        "backfill_schedule POST /queues/{queue}/schedules/{schedule}/backfill",
        "Run a schedule for what has passed",
        "Make a job, due now, for each instant that the rule names from `from` to just before `to`, up to"
        " 500. `to` may not lie ahead. Its other runs are not touched, and `overlap: skip` does not hold for these. A"
        " repeat under the same key returns the first runs; 422 if the rule names other instants by then.",
        {200: schedules.Backfilled},
        body=schedules.BackfillBody,
        examples={"week": {"from": "2026-11-01T00:00:00Z", "to": "2026-11-08T00:00:00Z"}},
        headers=("call",),
        refused=(422,),
    ),
    Operation(
        "schedule_history GET /queues/{queue}/schedules/{schedule}/history",
        "Show a schedule's runs",
        "What became of its last runs, those whose time has come, by its rules since its last 20 changes. Runs to"
        " come are `next` of the schedule.",
        {200: schedules.History},
        query=schedules.HistoryQuery,
    ),
    Operation(
        "list_queues GET /queues",
        "List the queues",
        "The queues of the deployment, with their settings, and what the ids of their jobs are made of.",
        {200: answers.Queues},
    ),
    Operation(
        "get_queue GET /queues/{queue}",
        "Show how a queue is doing",
        "A queue's settings, and how many of its jobs are where, at a cost that does not grow with them.",
        {200: answers.OverviewAnswer},
    ),
    Operation(
        "pause POST /queues/{queue}/pause",
        "Pause a queue",
        "Let its workers, those that use the library, begin no more jobs: they notice it within 5 seconds."
        " Jobs go on being scheduled and handed to the queue.",
        {200: answers.ControlAnswer},
    ),
    Operation(
        "resume POST /queues/{queue}/resume",
        "Resume a queue",
        "Let its workers go on, as fast as its rate allows.",
        {200: answers.ControlAnswer},
    ),
    Operation(
        "set_rate PUT /queues/{queue}/rate",
        "Limit a queue's rate",
        "Limit how many jobs its workers, those that use the library, begin, all of them together, or lift"
        " the limit: they notice it within 5 seconds.",
        {200: answers.ControlAnswer},
        body=requests.RateBody,
        examples={"limit": {"rate": "50/s"}, "none": {"rate": None}, "stop": {"rate": "0/s"}},
    ),
)
