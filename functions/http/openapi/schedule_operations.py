"""The API's operations on schedules: a route is an entry here, and a test holds them to the routes that there are."""

from http import HTTPStatus
from typing import Any

from functions.http import schedule_answers, schedule_forms
from functions.http.openapi import schedule_examples as examples
from functions.http.openapi.operation import Body, Operation

_SCHEDULES = "/queues/{queue}/schedules"
_SCHEDULE = f"{_SCHEDULES}/{{schedule}}"
_OF_ONE = (HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND)
_OF_A_BODY = (*_OF_ONE, HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
_OF_A_KEY = (*_OF_A_BODY, HTTPStatus.UNPROCESSABLE_ENTITY)
_OF_A_CHANGE = (*_OF_ONE, HTTPStatus.PRECONDITION_FAILED)
_PROMISE = " Up to `effective_from` it serves as before, after it as asked: never both, never neither."


def _schedule(description: str, **shown: Any) -> Body:
    return Body(form=schedule_answers.ScheduleAnswer, description=description, examples=shown)


SCHEDULE_OPERATIONS = (
    Operation(
        id="list_schedules",
        method="get",
        path=_SCHEDULES,
        tag="schedules",
        summary="List a queue's schedules",
        description="The schedules of a queue, by name, each with its next runs.",
        query=schedule_forms.SchedulesQuery,
        answers={
            HTTPStatus.OK: Body(
                form=schedule_answers.SchedulesPage,
                description="A page of schedules.",
                examples={"page": examples.page()},
            )
        },
        refused=_OF_ONE,
    ),
    Operation(
        id="put_schedule",
        method="put",
        path=_SCHEDULE,
        tag="schedules",
        summary="Create a schedule, or change it",
        description="A schedule makes jobs of its queue, again and again. It is told whole: what is left out is as by"
        " default. An identical one changes nothing, so any number of instances may declare theirs; one that is paused"
        " stays paused. One that would change, and of which no run is to come, is refused." + _PROMISE,
        conditional=True,
        creating=True,
        tagged=True,
        body=Body(
            form=schedule_forms.ScheduleBody,
            description="The schedule, whole.",
            examples={"cron": examples.BODY, "every": examples.EVERY},
        ),
        answers={
            HTTPStatus.CREATED: _schedule("There was none: it is made.", created=examples.schedule()),
            HTTPStatus.OK: _schedule("It is as it was asked for now, or was before.", changed=examples.schedule()),
        },
        refused=(*_OF_A_BODY, HTTPStatus.CONFLICT, HTTPStatus.PRECONDITION_FAILED),
    ),
    Operation(
        id="get_schedule",
        method="get",
        path=_SCHEDULE,
        tag="schedules",
        summary="Tell of a schedule",
        description="A schedule as it is now, and its next runs.",
        tagged=True,
        answers={HTTPStatus.OK: _schedule("The schedule.", schedule=examples.schedule())},
        refused=_OF_ONE,
    ),
    Operation(
        id="delete_schedule",
        method="delete",
        path=_SCHEDULE,
        tag="schedules",
        summary="Delete a schedule",
        description="Let it make no more runs: none after `effective_from`.",
        conditional=True,
        tagged=True,
        answers={HTTPStatus.OK: _schedule("It is deleted.", deleted=examples.schedule(deleted=True))},
        refused=_OF_A_CHANGE,
    ),
    Operation(
        id="pause_schedule",
        method="post",
        path=f"{_SCHEDULE}/pause",
        tag="schedules",
        summary="Pause a schedule",
        description="Let it make no runs after `effective_from`, until it is resumed.",
        conditional=True,
        tagged=True,
        answers={HTTPStatus.OK: _schedule("It is paused.", paused=examples.schedule(paused=True))},
        refused=_OF_A_CHANGE,
    ),
    Operation(
        id="resume_schedule",
        method="post",
        path=f"{_SCHEDULE}/resume",
        tag="schedules",
        summary="Resume a schedule",
        description="Let it make runs again, those after `effective_from`. Nothing is caught up.",
        conditional=True,
        tagged=True,
        answers={HTTPStatus.OK: _schedule("It goes on.", resumed=examples.schedule())},
        refused=_OF_A_CHANGE,
    ),
    Operation(
        id="run_schedule",
        method="post",
        path=f"{_SCHEDULE}/run",
        tag="schedules",
        summary="Run a schedule now",
        description="Make one job of it that is due now, be it paused or not. Its other runs are not touched. A repeat"
        " under the same key tells of the first run, whatever the schedule is by then.",
        keyed=True,
        body=Body(
            form=schedule_forms.RunBody,
            description="Nothing, or another payload.",
            examples={"as_it_is": {}, "payload": {"payload": {"digest": "once more"}}},
            is_optional=True,
        ),
        answers={
            HTTPStatus.CREATED: Body(
                form=schedule_answers.SubmittedRun, description="The job.", examples={"run": examples.run()}
            )
        },
        refused=_OF_A_KEY,
    ),
    Operation(
        id="backfill_schedule",
        method="post",
        path=f"{_SCHEDULE}/backfill",
        tag="schedules",
        summary="Run a schedule for what has passed",
        description="Make a job, due now, for each instant that the rule names from `from` to just before `to`, up to"
        " 500. `to` may not lie ahead. Its other runs are not touched, and `overlap: skip` does not hold for these. A"
        " repeat under the same key tells of the first runs, whatever the schedule is by then.",
        keyed=True,
        body=Body(
            form=schedule_forms.BackfillBody,
            description="From when to when.",
            examples={"week": {"from": "2026-11-01T00:00:00Z", "to": "2026-11-08T00:00:00Z"}},
        ),
        answers={
            HTTPStatus.OK: Body(
                form=schedule_answers.Backfilled,
                description="The jobs.",
                examples={"runs": {"runs": [examples.run()]}},
            )
        },
        refused=_OF_A_KEY,
    ),
    Operation(
        id="schedule_history",
        method="get",
        path=f"{_SCHEDULE}/history",
        tag="schedules",
        summary="Tell of a schedule's runs",
        description="What became of its last runs, whose time has come, by its rules since its last 20 changes. Those"
        " that are to come are `next` of the schedule.",
        query=schedule_forms.HistoryQuery,
        answers={
            HTTPStatus.OK: Body(
                form=schedule_answers.History, description="The runs.", examples={"history": examples.history()}
            )
        },
        refused=_OF_ONE,
    ),
    Operation(
        id="preview_schedule",
        method="post",
        path="/schedules/preview",
        tag="schedules",
        summary="Tell the next runs of a rule",
        description="What a rule means, before a schedule is made of it: in its zone and in UTC.",
        body=Body(
            form=schedule_forms.PreviewBody,
            description="The rule.",
            examples={"cron": {"cron": "0 9 * * MON-FRI", "zone": "Europe/Berlin", "limit": 5}},
        ),
        answers={
            HTTPStatus.OK: Body(
                form=schedule_answers.Preview, description="The next runs.", examples={"preview": examples.preview()}
            )
        },
        refused=(HTTPStatus.BAD_REQUEST, HTTPStatus.REQUEST_ENTITY_TOO_LARGE),
    ),
)
