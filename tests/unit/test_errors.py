import pytest

from dueline import errors
from dueline.errors import RETRYABLE, DuelineError


def _public():
    return {name: each for name, each in vars(errors).items() if isinstance(each, type)}


def test_the_names_of_the_errors_are_pinned():
    assert set(_public()) == {
        "DuelineError",
        "InvalidJob",
        "InvalidSchedule",
        "PayloadTooLarge",
        "Forbidden",
        "QueueNotFound",
        "JobNotFound",
        "ScheduleNotFound",
        "DeploymentNotFound",
        "DeploymentTooOld",
        "ClientTooOld",
        "AlreadyFinished",
        "RunOfSchedule",
        "ScheduleChanged",
        "TooManySchedules",
        "TooManyChanges",
        "IdReused",
        "KeyReused",
        "Throttled",
        "Unavailable",
        "NotYet",
    }


def test_every_error_is_a_dueline_error():
    assert all(issubclass(each, DuelineError) for each in _public().values())


@pytest.mark.parametrize(
    ("error", "builtin"),
    [
        (errors.InvalidJob, ValueError),
        (errors.InvalidSchedule, ValueError),
        (errors.IdReused, ValueError),
        (errors.KeyReused, ValueError),
        (errors.QueueNotFound, LookupError),
        (errors.JobNotFound, LookupError),
        (errors.ScheduleNotFound, LookupError),
        (errors.DeploymentNotFound, LookupError),
    ],
)
def test_an_error_is_caught_as_the_builtin_that_callers_know(error, builtin):
    assert issubclass(error, builtin)


def test_a_payload_that_is_too_large_is_an_invalid_job():
    assert issubclass(errors.PayloadTooLarge, errors.InvalidJob)


def test_what_cannot_be_done_yet_is_caught_as_unavailable_and_tried_again():
    assert issubclass(errors.NotYet, errors.Unavailable)


def test_only_what_may_pass_is_tried_again():
    assert set(RETRYABLE) == {errors.Throttled, errors.Unavailable}


def test_the_tree_on_top_of_the_file_names_every_error():
    assert all(name in errors.__doc__ for name in _public())
