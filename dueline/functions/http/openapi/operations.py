"""The API's operations: a route is an entry here, and a test holds them to the routes that there are."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any

from pydantic import BaseModel

from dueline.core.job import State
from dueline.functions.http import answers, requests, schedule_models
from dueline.functions.http.openapi import examples

_JOB_OPERATIONS = ("look_up", "reschedule", "cancel")
_PROMISE = " Up to `effective_from` the schedule before serves, after it the new one: never both, never neither."


@dataclass(frozen=True, kw_only=True, slots=True)
class Body:
    """A body of a request or of an answer: its type, a description, and examples by name.

    `leads_to` names the operations that take the job of an answer: links, in OpenAPI. A request may come without a body
    that `is_optional`.
    """

    form: Any
    description: str
    examples: Mapping[str, Any]
    leads_to: tuple[str, ...] = ()
    is_optional: bool = False


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation of the API: its `route` is the name of its function, a method and a path.

    `headers` are its parameters in headers; `refused` are statuses that its route, body and headers do not imply.
    """

    route: str
    summary: str
    description: str
    _: KW_ONLY
    answers: Mapping[int, Body]
    body: Body | None = None
    query: type[BaseModel] | None = None
    headers: tuple[str, ...] = ()
    refused: tuple[int, ...] = ()


def _body(
    form: Any, description: str, *, leads_to: tuple[str, ...] = (), is_optional: bool = False, **examples: Any
) -> Body:
    return Body(form=form, description=description, examples=examples, leads_to=leads_to, is_optional=is_optional)


def _schedule(description: str, **examples: Any) -> Body:
    return _body(schedule_models.ScheduleAnswer, description, **examples)


def _controls(**examples: Any) -> Body:
    return _body(answers.ControlAnswer, "What holds for its workers now.", **examples)


_CANCELLED = _body(
    answers.JobAnswer,
    "`cancelled`: a promise, the job never reaches its queue.",
    leads_to=("look_up",),
    cancelled=examples.job(State.CANCELLED),
)
_REQUESTED = _body(
    answers.JobAnswer,
    "`cancel_requested`: it is in its queue or may be on its way there. Workers that check for cancels still skip it.",
    leads_to=("look_up",),
    requested=examples.job(State.CANCEL_REQUESTED),
)
_NEW_TIME = _body(requests.TimeBody, "The new time.", at={"at": "2027-01-05T09:00:00+01:00"}, delay={"delay": 3600})
_MOVED = _body(
    answers.JobAnswer,
    "The job as it is now: a promise that none with an earlier id of it ever comes.",
    leads_to=_JOB_OPERATIONS,
    moved=examples.SUCCESSOR,
)
OPERATIONS = (
    Operation(
        "schedule POST /queues/{queue}/jobs",
        "Schedule a job, or up to 500",
        "This job, to that queue, at that time: it is handed over at that second, never early.",
        headers=("call", "traceparent", "tracestate"),
        body=_body(
            requests.JobBody | requests.JobsBody, "A job, or up to 500 of them under `jobs`.", **examples.POSTED
        ),
        answers={
            201: _body(
                answers.ScheduledAnswer,
                "The job is scheduled: on its way to the table, or in its queue already.",
                leads_to=_JOB_OPERATIONS,
                accepted=examples.scheduled(State.ACCEPTED),
                dispatched=examples.scheduled(State.DISPATCHED),
            ),
            200: _body(
                answers.ScheduledAnswer | answers.ScheduledResults,
                "The job that has the key already, or that an earlier attempt of the call made: nothing was sent. Or"
                " the one that has replaced it. Or the results of many.",
                repeat=examples.scheduled(State.SCHEDULED, created=False),
                replaced=examples.REPLACED,
                many=examples.several(examples.scheduled(State.ACCEPTED)),
            ),
        },
        refused=(409, 422),
    ),
    Operation(
        "upload POST /queues/{queue}/uploads",
        "Begin the upload of a large payload",
        "How to send a payload of up to 10 MiB to S3, of which a job is to be made. Over 5 MB there is no other way.",
        body=_body(
            requests.UploadBody,
            "What is to be uploaded: S3 takes exactly this.",
            upload={"bytes": 6_000_000, "sha256": examples.SHA256},
        ),
        answers={201: _body(answers.UploadAnswer, "The upload, and how to send it.", upload=examples.UPLOAD)},
    ),
    Operation(
        "list_scheduled GET /queues/{queue}/jobs",
        "List jobs",
        "The jobs of a queue that are in the table, in due order, with their payloads; with a `state`, those that its"
        " workers received, if it tracks its jobs; or the job of a key, as a look-up by its id returns it.",
        query=requests.JobsQuery,
        answers={
            200: _body(
                answers.Page | answers.JobWithPayload,
                "A page of jobs, or the job of the key.",
                page=examples.PAGE,
                last={"jobs": [], "next": None},
                tracked=examples.TRACKED_PAGE,
                key=examples.WAITING,
            )
        },
    ),
    Operation(
        "look_up GET /queues/{queue}/jobs/{id}",
        "Look a job up",
        "How far a job has come, by its id or by one that it had before it was rescheduled. While it is in the table,"
        " it comes with its payload.",
        answers={
            200: _body(
                answers.JobWithPayload,
                "The job as it is now, and its attempts, if its queue tracks.",
                leads_to=("reschedule", "cancel"),
                scheduled=examples.WAITING,
                moved=examples.MOVED_JOB,
                failed=examples.FAILED,
            )
        },
    ),
    Operation(
        "reschedule PATCH /queues/{queue}/jobs/{id}",
        "Reschedule a job",
        "Move a job, by any of its ids, to another time, in one step: it gets a new id. 503 `not_yet` while it is on"
        " its way to the table, and if nobody ever scheduled it: an id alone does not say which. A `delay` is counted"
        " by the API's clock, from the first attempt of a call.",
        headers=("call",),
        body=_NEW_TIME,
        answers={200: _MOVED},
        refused=(409,),
    ),
    Operation(
        "reschedule_by_key PATCH /queues/{queue}/jobs",
        "Reschedule the job of a key",
        "Move the job that has a key to another time: it keeps the key.",
        query=requests.KeyQuery,
        headers=("call",),
        body=_NEW_TIME,
        answers={200: _MOVED},
        refused=(409, 422),
    ),
    Operation(
        "cancel DELETE /queues/{queue}/jobs/{id}",
        "Cancel (unschedule) a job",
        "Take a job back, by its id or by one that it had before it was rescheduled, and whether there is one by now"
        " or not: a cancel that overtakes its job holds. 404 where no job can be: in a partition that the queue never"
        " had.",
        answers={200: _CANCELLED, 202: _REQUESTED},
    ),
    Operation(
        "cancel_by_key DELETE /queues/{queue}/jobs",
        "Cancel (unschedule) the job of a key",
        "Take the job back that was scheduled under a key, as by its id. 404 where there is none.",
        query=requests.KeyQuery,
        answers={200: _CANCELLED, 202: _REQUESTED},
    ),
    Operation(
        "cancel_many POST /queues/{queue}/cancellations",
        "Cancel (unschedule) up to 500 jobs",
        "Take jobs back, each for itself.",
        body=_body(
            requests.IdsBody | requests.KeysBody,
            "The ids of the jobs, or their keys.",
            ids={"ids": [examples.ID]},
            keys={"keys": ["welcome-ann"]},
        ),
        answers={
            200: _body(
                answers.Results,
                "For each, in order, the job with its state, or what is wrong.",
                cancelled=examples.several(examples.job(State.CANCELLED)),
            )
        },
    ),
    Operation(
        "list_schedules GET /queues/{queue}/schedules",
        "List a queue's schedules",
        "The schedules of a queue, by name, each with its next runs.",
        query=schedule_models.SchedulesQuery,
        answers={200: _body(schedule_models.SchedulesPage, "A page of schedules.", page=examples.SCHEDULES)},
    ),
    Operation(
        "put_schedule PUT /queues/{queue}/schedules/{schedule}",
        "Create a schedule, or change it",
        "A schedule makes recurring jobs of its queue. The body is the whole schedule: what is left out has its"
        " default. An identical one changes nothing, so any number of instances may declare theirs; one that is paused"
        " stays paused. A change after which no run is to come is refused." + _PROMISE,
        headers=("if-match", "if-none-match"),
        body=_body(
            schedule_models.ScheduleBody,
            "The schedule, whole.",
            cron=examples.SCHEDULE,
            every=examples.EVERY,
        ),
        answers={
            201: _schedule("There was none: it is created.", created=examples.schedule()),
            200: _schedule("It is as in the request: changed, or it was so before.", changed=examples.schedule()),
        },
        refused=(409,),
    ),
    Operation(
        "get_schedule GET /queues/{queue}/schedules/{schedule}",
        "Show a schedule",
        "A schedule as it is now, and its next runs.",
        answers={200: _schedule("The schedule.", schedule=examples.schedule())},
    ),
    Operation(
        "delete_schedule DELETE /queues/{queue}/schedules/{schedule}",
        "Delete a schedule",
        "Let it make no more runs: none after `effective_from`.",
        headers=("if-match",),
        answers={200: _schedule("It is deleted.", deleted=examples.schedule(deleted=True))},
    ),
    Operation(
        "pause_schedule POST /queues/{queue}/schedules/{schedule}/pause",
        "Pause a schedule",
        "Let it make no runs after `effective_from`, until it is resumed.",
        headers=("if-match",),
        answers={200: _schedule("It is paused.", paused=examples.schedule(paused=True))},
    ),
    Operation(
        "resume_schedule POST /queues/{queue}/schedules/{schedule}/resume",
        "Resume a schedule",
        "Let it make runs again, those after `effective_from`. Nothing is caught up.",
        headers=("if-match",),
        answers={200: _schedule("It goes on.", resumed=examples.schedule())},
    ),
    Operation(
        "run_schedule POST /queues/{queue}/schedules/{schedule}/run",
        "Run a schedule now",
        "Make one job of it that is due now, be it paused or not. Its other runs are not touched. A repeat"
        " under the same key returns the first run, whatever the schedule is by then.",
        headers=("call", "if-match"),
        body=_body(
            schedule_models.RunBody,
            "Nothing, or another payload.",
            is_optional=True,
            as_it_is={},
            payload={"payload": {"digest": "once more"}},
        ),
        answers={201: _body(schedule_models.SubmittedRun, "The job.", run=examples.RUN)},
        refused=(422,),
    ),
    Operation(
        "backfill_schedule POST /queues/{queue}/schedules/{schedule}/backfill",
        "Run a schedule for what has passed",
        "Make a job, due now, for each instant that the rule names from `from` to just before `to`, up to"
        " 500. `to` may not lie ahead. Its other runs are not touched, and `overlap: skip` does not hold for these. A"
        " repeat under the same key returns the first runs, whatever the schedule is by then.",
        headers=("call", "if-match"),
        body=_body(
            schedule_models.BackfillBody,
            "From when to when.",
            week={"from": "2026-11-01T00:00:00Z", "to": "2026-11-08T00:00:00Z"},
        ),
        answers={200: _body(schedule_models.Backfilled, "The jobs.", runs={"runs": [examples.RUN]})},
        refused=(422,),
    ),
    Operation(
        "schedule_history GET /queues/{queue}/schedules/{schedule}/history",
        "Show a schedule's runs",
        "What became of its last runs, those whose time has come, by its rules since its last 20 changes. Runs to"
        " come are `next` of the schedule.",
        query=schedule_models.HistoryQuery,
        answers={200: _body(schedule_models.History, "The runs.", history=examples.HISTORY)},
    ),
    Operation(
        "preview_schedule POST /schedules/preview",
        "Show the next runs of a rule",
        "What a rule means, before a schedule is made of it: in its zone and in UTC.",
        body=_body(
            schedule_models.PreviewBody,
            "The rule.",
            cron={"cron": "0 9 * * MON-FRI", "zone": "Europe/Berlin", "limit": 5},
        ),
        answers={200: _body(schedule_models.Preview, "The next runs.", preview=examples.PREVIEW)},
    ),
    Operation(
        "list_queues GET /queues",
        "List the queues",
        "The queues of the deployment, with their settings, and what the ids of their jobs are made of.",
        answers={200: _body(answers.Queues, "All queues.", queues=examples.QUEUES)},
    ),
    Operation(
        "get_queue GET /queues/{queue}",
        "Show how a queue is doing",
        "A queue's settings, and how many of its jobs are where, at a cost that does not grow with them.",
        answers={200: _body(answers.OverviewAnswer, "The queue.", overview=examples.OVERVIEW)},
    ),
    Operation(
        "pause POST /queues/{queue}/pause",
        "Pause a queue",
        "Let its workers, those that use the library, begin no more jobs: they notice it within 5 seconds."
        " Jobs go on being scheduled and handed to the queue.",
        answers={200: _controls(paused=examples.control(paused=True))},
    ),
    Operation(
        "resume POST /queues/{queue}/resume",
        "Resume a queue",
        "Let its workers go on, as fast as its rate allows.",
        answers={200: _controls(resumed=examples.control(), limited=examples.control(rate="50/s"))},
    ),
    Operation(
        "set_rate PUT /queues/{queue}/rate",
        "Limit a queue's rate",
        "Limit how many jobs its workers, those that use the library, begin, all of them together, or lift"
        " the limit: they notice it within 5 seconds.",
        body=_body(requests.RateBody, "The rate.", limit={"rate": "50/s"}, none={"rate": None}, stop={"rate": "0/s"}),
        answers={200: _controls(limited=examples.control(rate="50/s"), lifted=examples.control())},
    ),
)
