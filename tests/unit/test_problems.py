"""Errors as they are reported over HTTP."""

import json

import pytest

from dueline.client.http import error_of
from dueline.errors import ERRORS
from functions.http import problems


@pytest.mark.parametrize("kind", [kind for kind in ERRORS if kind.over_http], ids=lambda kind: kind.code)
def test_a_client_raises_what_the_api_answered(kind):
    answer = problems.problem(kind.error("why"))
    assert (answer["status"], answer["code"]) == (kind.status, kind.code)
    assert type(error_of(answer, status=answer["status"], request="GET /")) is kind.error


def test_unknown_route_has_its_own_code():
    answer = json.loads(problems.no_route("/nothing").body)
    assert (answer["status"], answer["code"]) == (404, "route_not_found")
