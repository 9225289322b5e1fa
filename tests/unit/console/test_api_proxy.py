"""What the console forwards to the API, and what it makes of the answers."""

from unittest.mock import Mock

import pytest

from dueline.console.api_proxy import api_routes
from dueline.errors import Forbidden
from tests.fake_api_server import CUT_OFF, DROPPED, NO_HTTP, Reply, json_reply, problem, problem_reply
from tests.unit.console.memory_console import send_in_memory

ID = "emails.0.t.1799049600000.0d6a387e-1c2f-4b7a-9a51-7f6f0a3f9d10"


def test_only_some_headers_are_forwarded(browser, api_server):
    api_server.script = [json_reply({"id": ID}, 201, etag='"1"', retry_after="3", set_cookie="a=b", x_more="no")]
    forwarded = {"content_type": "application/json; charset=utf-8", "idempotency_key": "k", "if_match": "*"}
    forwarded |= {"traceparent": "00-1-2-01", "tracestate": "a=1"}
    dropped = {"cookie": "a=b", "authorization": "mine", "referer": "http://x/", "origin": f"http://{browser.host}"}
    answer = browser.send("PATCH", f"/api/queues/emails/jobs/{ID}", b'{"delay": 0}', **forwarded, **dropped)
    assert (answer.status, answer.json, answer.headers["etag"]) == (201, {"id": ID}, '"1"')
    assert answer.headers["retry-after"] == "3"
    assert {"set-cookie", "x-more"}.isdisjoint(answer.headers)
    (request,) = api_server.requests
    headers = request.headers
    assert (request.method, request.path, request.body) == ("PATCH", f"/queues/emails/jobs/{ID}", b'{"delay": 0}')
    assert {name.replace("_", "-"): value for name, value in forwarded.items()}.items() <= headers.items()
    assert {"cookie", "authorization", "referer", "origin", "x-dueline-console"}.isdisjoint(headers)


@pytest.mark.parametrize(
    ("query", "passed"),
    [
        ("limit=5&next=a%2Fb&next=c", "limit=5&next=a%2Fb&next=c"),
        ("from=2027-01-04T00:00:00Z&find=a+b", "from=2027-01-04T00%3A00%3A00Z&find=a%20b"),
        ("a&b=&=c&%ff", "a&b=&=c&%FF"),
    ],
)
def test_query_string_is_encoded_for_signing(browser, api_server, query, passed):
    api_server.script = [json_reply({"jobs": []})]
    browser.send("GET", f"/api/queues/emails/jobs?{query}")
    assert api_server.requests[0].path == f"/queues/emails/jobs?{passed}"


@pytest.mark.parametrize("reply", [DROPPED, CUT_OFF, NO_HTTP])
def test_missing_answer_is_a_problem(browser, api_server, reply):
    api_server.script = [reply]
    answer = browser.send("GET", "/api/queues")
    assert answer.refusal == (503, "unavailable")
    assert answer.json["detail"].startswith("GET /queues: ")


def test_refusal_of_api_gateway_is_a_problem(browser, api_server):
    denied = "User: arn:aws:iam::1:user/ann is not authorized to perform: execute-api:Invoke"
    api_server.script = [
        json_reply({"Message": denied}, 403),
        json_reply({"message": "Too Many Requests"}, 429, retry_after="1"),
    ]
    forbidden, throttled = browser.send("GET", "/api/queues"), browser.send("GET", "/api/queues")
    assert forbidden.refusal == (403, "forbidden")
    assert forbidden.json["detail"] == f"GET /queues: {denied}"
    assert throttled.refusal == (429, "throttled")
    assert throttled.headers["retry-after"] == "1"
    api_server.script = [Reply(status=502, body=b"<html>")]
    assert browser.send("GET", "/api/queues").refusal == (502, "unavailable")


def test_problems_of_the_api_are_forwarded(browser, api_server):
    reply = problem_reply(409, "already_finished", "it has left", content_type="application/problem+json")
    api_server.script = [reply]
    answer = browser.send("PATCH", f"/api/queues/emails/jobs/{ID}", b"{}")
    assert answer.json == problem(409, "already_finished", "it has left")


def test_expired_credentials_are_a_problem():
    expired = Mock(side_effect=Forbidden("signing a request: the SSO session has expired: log in again"))
    status, answer = send_in_memory(api_routes(Mock(send=expired)), "GET", "/api/queues")
    assert (status, answer["code"]) == (403, "forbidden")
    assert "log in again" in answer["detail"]
