"""Errors as they are told over HTTP."""

import json

import pytest

from dueline import errors
from dueline.client.http_answer import error_of
from dueline.errors import DuelineError
from functions.http import problems

# A client's alone: the API never tells them.
OF_CLIENTS = {
    DuelineError,
    errors.Forbidden,
    errors.DeploymentNotFound,
    errors.DeploymentTooOld,
    errors.ClientTooOld,
}
TOLD = {
    "InvalidJob": (400, "invalid_job"),
    "InvalidSchedule": (400, "invalid_schedule"),
    "PayloadTooLarge": (413, "payload_too_large"),
    "QueueNotFound": (404, "queue_not_found"),
    "JobNotFound": (404, "job_not_found"),
    "ScheduleNotFound": (404, "schedule_not_found"),
    "ScheduleChanged": (412, "schedule_changed"),
    "TooManySchedules": (409, "too_many_schedules"),
    "TooManyChanges": (409, "too_many_changes"),
    "RunOfSchedule": (409, "run_of_schedule"),
    "AlreadyFinished": (409, "already_finished"),
    "IdReused": (409, "id_reused"),
    "KeyReused": (422, "key_reused"),
    "Throttled": (429, "throttled"),
    "Unavailable": (503, "unavailable"),
    "NotYet": (503, "not_yet"),
}


def _of_the_api():
    every = {each for each in vars(errors).values() if isinstance(each, type)}
    return sorted((each for each in every - OF_CLIENTS), key=lambda each: each.__name__)


@pytest.mark.parametrize("error", _of_the_api())
def test_every_error_is_told_with_its_status_and_its_code(error):
    told = problems.problem(error("why"))
    assert (told["status"], told["code"]) == TOLD[error.__name__]


@pytest.mark.parametrize("error", _of_the_api())
def test_what_the_api_tells_a_client_raises(error):
    told = problems.problem(error("why"))
    assert type(error_of(told, status=told["status"], asked="GET /")) is error


def test_no_two_errors_have_one_code():
    codes = [each.code for each in vars(errors).values() if isinstance(each, type)]
    assert len(codes) == len(set(codes))


def test_a_route_that_is_not_there_has_a_code_of_its_own():
    told = json.loads(problems.no_route("/nothing").body)
    assert (told["status"], told["code"]) == (404, "route_not_found")
