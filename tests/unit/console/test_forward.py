"""What the console passes on to the API, and what it makes of the answers."""

import json
from contextlib import closing
from pathlib import Path

import boto3
import pytest

from dueline.cli.connect import Target
from dueline.console import api
from dueline.console.console import Console
from dueline.console.guard import Guard
from dueline.console.routes import Routes
from dueline.console.server import served
from dueline.errors import Forbidden
from tests.gate import CUT_OFF, DROPPED, NO_HTTP, Reply, problem, refused, told
from tests.unit.console.conftest import Browser, browsing

ROOT = Path(__file__).parents[3]
ID = "emails.0.t.1799049600000.0d6a387e-1c2f-4b7a-9a51-7f6f0a3f9d10"
TOKEN = "token"  # noqa: S105
ARN = "arn:aws:sts::123456789012:assumed-role/on-call/ann"
WHO = f"""<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><GetCallerIdentityResult>
<Arn>{ARN}</Arn><UserId>AR:ann</UserId><Account>123456789012</Account></GetCallerIdentityResult>
<ResponseMetadata><RequestId>1</RequestId></ResponseMetadata></GetCallerIdentityResponse>"""

EXPIRED = """<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error><Type>Sender</Type>
<Code>ExpiredToken</Code><Message>it is over</Message></Error><RequestId>1</RequestId></ErrorResponse>"""


def test_all_of_the_api_is_passed_on_and_nothing_else():
    documented = json.loads((ROOT / "docs" / "openapi.json").read_text())["paths"]
    assert {form: set(methods.split()) for form, methods in api.ROUTES.items()} == {
        path: {each.upper() for each in operations} for path, operations in documented.items()
    }


def test_a_request_is_passed_on_with_its_body_and_what_the_api_reads_of_its_headers(browser, gate):
    gate.script = [told({"id": ID}, 201, etag='"1"', retry_after="3", set_cookie="a=b", x_more="no")]
    passed = {
        "content_type": "application/json; charset=utf-8",
        "idempotency_key": "k",
        "if_match": "*",
        "traceparent": "00-1-2-01",
        "tracestate": "a=1",
    }
    kept = {"cookie": "a=b", "authorization": "mine", "referer": "http://x/", "origin": f"http://{browser.host}"}
    answer = browser.ask("PATCH", f"/api/queues/emails/jobs/{ID}", b'{"delay": 0}', **passed, **kept)
    assert (answer.status, answer.json, answer.headers["etag"]) == (201, {"id": ID}, '"1"')
    assert answer.headers["retry-after"] == "3"
    assert {"set-cookie", "x-more"}.isdisjoint(answer.headers)
    (asked,) = gate.asked
    headers = {name.lower(): value for name, value in asked.headers.items()}
    assert (asked.method, asked.path, asked.body) == ("PATCH", f"/queues/emails/jobs/{ID}", b'{"delay": 0}')
    assert {name.replace("_", "-"): value for name, value in passed.items()}.items() <= headers.items()
    assert {"cookie", "authorization", "referer", "origin", "x-dueline-console"}.isdisjoint(headers)


@pytest.mark.parametrize(
    ("query", "passed"),
    [
        ("limit=5&next=a%2Fb&next=c", "limit=5&next=a%2Fb&next=c"),
        ("from=2027-01-04T00:00:00Z&find=a+b", "from=2027-01-04T00%3A00%3A00Z&find=a%20b"),
        ("a&b=&=c&%ff", "a&b=&=c&%FF"),
    ],
)
def test_a_query_string_says_the_same_in_the_one_way_of_writing_it_that_a_signature_is_over(
    browser, gate, query, passed
):
    gate.script = [told({"jobs": []})]
    browser.ask("GET", f"/api/queues/emails/jobs?{query}")
    assert gate.asked[0].path == f"/queues/emails/jobs?{passed}"


@pytest.mark.parametrize(
    "path",
    [
        "//api/queues",
        "/api//queues",
        "/api/queues/",
        "/api/queues/../queues",
        "/api/queues/emails/jobs/..",
        "/api/queues/emails/jobs/%2e%2e",
        "/api/queues/emails%2fjobs",
        "/api/queues/e%6dails",
        "/api/queues/emails;x/jobs",
        "/api/queues/emails\\jobs",
        "/api/%71ueues",
        "/API/queues",
        "/api",
        "/apiqueues",
        "/api@evil.example/queues",
        "/api/queues/emails/jobs/x/y",
        "/api/docs",
    ],
)
def test_a_path_that_is_not_exactly_one_of_the_apis_is_refused_and_not_mended(browser, gate, path):
    assert browser.ask("GET", path).refusal == (404, "route_not_found")
    assert gate.asked == []


@pytest.mark.parametrize("reply", [DROPPED, CUT_OFF, NO_HTTP])
def test_an_api_that_gives_no_answer_is_a_problem_with_the_reason(browser, gate, reply):
    gate.script = [reply]
    answer = browser.ask("GET", "/api/queues")
    assert answer.refusal == (503, "unavailable")
    assert answer.json["detail"].startswith("GET /queues: ")


def test_an_api_that_is_not_there_is_a_problem_with_the_reason():
    with browsing(Target(url="http://127.0.0.1:9")) as browser:
        answer = browser.ask("GET", "/api/queues")
    assert answer.refusal == (503, "unavailable")
    assert "127.0.0.1:9" in answer.json["detail"]


def test_what_api_gateway_refuses_itself_is_a_problem_that_says_what_it_said(browser, gate):
    denied = "User: arn:aws:iam::1:user/ann is not authorized to perform: execute-api:Invoke"
    gate.script = [told({"Message": denied}, 403), told({"message": "Too Many Requests"}, 429, retry_after="1")]
    forbidden, throttled = browser.ask("GET", "/api/queues"), browser.ask("GET", "/api/queues")
    assert forbidden.refusal == (403, "forbidden")
    assert forbidden.json["detail"] == f"GET /queues: {denied}"
    assert throttled.refusal == (429, "throttled")
    assert throttled.headers["retry-after"] == "1"
    gate.script = [Reply(status=502, body=b"<html>")]
    assert browser.ask("GET", "/api/queues").refusal == (502, "unavailable")


def test_what_the_api_answers_in_the_consoles_own_calls_is_told_by_its_status(browser, gate):
    queue, failed = told({"queues": [{"queue": "emails"}]}), Reply(status=502, body=b"<html>")
    gate.api = lambda asked: queue if asked.path == "/queues" else failed
    (row,) = browser.ask("GET", "/console/overview").json["queues"]
    assert (row["error"]["status"], row["error"]["title"]) == (502, "Bad Gateway")
    gate.api = lambda _: failed
    assert browser.ask("GET", "/console/overview").refusal == (502, "unavailable")


def test_a_problem_of_the_apis_own_stays_as_it_is(browser, gate):
    reply = refused(409, "already_finished", "it has left", content_type="application/problem+json")
    gate.script = [reply]
    answer = browser.ask("PATCH", f"/api/queues/emails/jobs/{ID}", b"{}")
    assert answer.json == problem(409, "already_finished", "it has left")


def test_credentials_that_are_gone_are_a_problem_with_the_reason():
    class Expired:
        def send(self, method, path, body, *, headers):
            raise Forbidden("signing a request: the SSO session has expired: log in again")

    routes = Routes(api.api_routes(Expired()))
    with (
        served(lambda port: Console(guard=Guard(port=port, token=TOKEN), routes=routes).answer) as url,
        closing(Browser(f"{url}/#token={TOKEN}")) as browser,
    ):
        answer = browser.ask("GET", "/api/queues")
    assert answer.refusal == (403, "forbidden")
    assert "log in again" in answer.json["detail"]


def test_a_deployment_on_aws_is_asked_with_the_callers_signature_and_told_about(gate, monkeypatch, tmp_path):
    for name, value in _caller(gate, tmp_path).items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
    xml = Reply(body=WHO.encode(), headers={"content-type": "text/xml"})
    gate.script = [told({"Parameter": {"Value": gate.url}}), xml, told({"queues": []})]
    with browsing(Target(name="shop", region="eu-west-3")) as browser:
        about = browser.ask("GET", "/console/about").json
        assert browser.ask("GET", "/console/about").json == about
        assert browser.ask("GET", "/api/queues").status == 200
    assert {name: about[name] for name in ("deployment", "region", "read_only", "url", "as")} == {
        "deployment": "shop",
        "region": "eu-west-3",
        "read_only": False,
        "url": gate.url,
        "as": ARN,
    }
    signature = gate.asked[-1].headers["Authorization"]
    assert "AKIDEXAMPLE" in signature
    assert "/eu-west-3/execute-api/aws4_request" in signature
    assert "content-type" in signature


def test_who_asks_is_not_told_where_nobody_says(gate, monkeypatch, tmp_path):
    for name, value in _caller(gate, tmp_path).items():
        monkeypatch.setenv(name, value)
    gate.script = [told({"Parameter": {"Value": gate.url}}), Reply(status=403, body=EXPIRED.encode())]
    with browsing(Target(region="eu-west-3")) as browser:
        assert browser.ask("GET", "/console/about").json["as"] is None


def _caller(gate, folder):
    """The environment of somebody whose AWS is the gate."""
    return {
        "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
        "AWS_SECRET_ACCESS_KEY": "s",
        "AWS_CONFIG_FILE": str(folder / "config"),
        "AWS_SHARED_CREDENTIALS_FILE": str(folder / "credentials"),
        "AWS_ENDPOINT_URL": gate.url,
        "AWS_MAX_ATTEMPTS": "1",
    }
