"""The table of errors, and the errors over HTTP."""

import pytest

from dueline import errors
from dueline.cli.screen import EXIT_CODES
from dueline.client.http import error_of
from dueline.errors import ERRORS, DuelineError, ErrorKind
from dueline.functions.http import problems


def _public():
    return {name: each for name, each in vars(errors).items() if isinstance(each, type) and each is not ErrorKind}


@pytest.mark.parametrize(
    ("base", "kinds"),
    [
        (DuelineError, _public().values()),
        (ValueError, {errors.InvalidJob, errors.InvalidSchedule, errors.IdReused, errors.KeyReused}),
        (LookupError, {errors.QueueNotFound, errors.JobNotFound, errors.ScheduleNotFound, errors.DeploymentNotFound}),
        (errors.InvalidJob, {errors.PayloadTooLarge}),
        (errors.Unavailable, {errors.NotYet}),
    ],
)
def test_errors_are_caught_by_their_bases(base, kinds):
    assert all(issubclass(kind, base) for kind in kinds)


def test_table_and_tree_have_each_error_once():
    assert {kind.error for kind in ERRORS} == set(_public().values()) - {DuelineError}
    assert len({kind.code for kind in ERRORS}) == len(ERRORS)
    assert all(name in errors.__doc__ for name in _public())


@pytest.mark.parametrize("kind", ERRORS, ids=lambda kind: kind.code)
def test_errors_follow_the_table_over_http_too(kind):
    error = kind.error("why")
    assert (error.code, error.status, error.exit_code) == (kind.code, kind.status, kind.exit_code)
    assert f"{kind.exit_code} " in EXIT_CODES
    if kind.over_http:
        answer = problems.problem(error)
        assert (answer["status"], answer["code"]) == (kind.status, kind.code)
        assert type(error_of(answer, status=answer["status"], request="GET /")) is kind.error
