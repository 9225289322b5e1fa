"""Who may do what by an alias: nothing in an event but method, path, query, headers and body makes a difference."""

import base64
import copy
import json
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dueline.config.routes import ROUTES, Caller
from dueline.core.job import Partition
from tests.api_harness import CONTEXT, call_api, import_api
from tests.builders import a_queue, an_id

FUNCTION = "arn:aws:lambda:us-east-1:123456789012:function:d-api"
# One's name begins with the other's.
OWN, OTHER = "emails", "emails-vip"
REQUESTS = [(method, path) for path, route in ROUTES.items() for method in route.methods]


@pytest.fixture(scope="module")
def api():
    with pytest.MonkeyPatch.context() as patch, import_api(patch, a_queue(), a_queue(name=OTHER)) as api:
        yield api


def an_event(method, path, body=None, /, **fields):
    http = {"method": method, "path": path, "sourceIp": "1.2.3.4"}
    return {"version": "2.0", "rawPath": path, "requestContext": {"http": http}, "headers": {}, "body": body, **fields}


def invoke(api, alias, event):
    """Return the status and the body that an alias answers to an event."""
    context = SimpleNamespace(**{**vars(CONTEXT), "invoked_function_arn": f"{FUNCTION}{alias}"})
    api.last = answer = api.handler(event, context)
    return answer["statusCode"], json.loads(answer["body"])


@pytest.mark.parametrize(("method", "path"), REQUESTS)
def test_alias_has_its_queues_and_callers_routes_alone(api, method, path):
    for caller in Caller:
        for queue in (OWN, OTHER):
            event = an_event(method, path.format(queue=queue, id=an_id(), schedule="s"), "{}")
            status, problem = invoke(api, f":{caller.alias_of(OWN)}", event)
            may = caller in ROUTES[path].callers and (queue == OWN or "{queue}" not in path)
            assert (status == 403) is not may, (caller, queue, problem)
            if not may:
                assert problem["code"] == "forbidden"
                assert api.last["headers"]["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize(
    "alias", ["", ":$LATEST", ":7", ":q", ":q-", ":Q-emails", ":x-emails", ":q-emails:live", ":LIVE", ":live-emails"]
)
def test_only_an_alias_of_a_queue_may_do_anything(api, alias):
    for method, path in REQUESTS:
        status, _ = invoke(api, alias, an_event(method, path.format(queue=OWN, id=an_id(), schedule="s"), "{}"))
        assert status == 403 or (alias == ":q-" and "{queue}" not in path), (alias, method, path)


# What might be believed instead, each with the other queue in it, or the gateway.
ARN = "arn:aws:iam::123456789012:root"
LIES = {
    "version": ["1.0", "2.0", 2, None],
    "routeKey": [f"POST /queues/{OTHER}/jobs", "$default", None],
    "path": [f"/queues/{OTHER}/jobs", None],
    "httpMethod": ["POST", "DELETE"],
    "rawQueryString": ["key=k", f"queue={OTHER}"],
    "pathParameters": [{"queue": OTHER}, {"queue": OWN, "proxy": f"queues/{OTHER}/jobs"}],
    "invokedFunctionArn": [f"{FUNCTION}:live"],
    "headers": [
        {"X-HTTP-Method-Override": "DELETE", "X-Original-URL": f"/queues/{OTHER}/jobs", "Host": "live"},
        {"x-amzn-requestid": "r", "X-Forwarded-Prefix": f"/queues/{OTHER}"},
    ],
    "queryStringParameters": [{"queue": OTHER, "key": "k"}, None],
    "isBase64Encoded": [False],
}
CONTEXT_LIES = {
    "stage": [f"queues/{OTHER}", "$default", "prod", "", None],
    "authorizer": [{"iam": {"userArn": ARN, "accountId": "1"}}, {"jwt": {"scopes": ["live"]}}, None],
    "routeKey": [f"PUT /queues/{OTHER}/rate"],
    "resourcePath": [f"/queues/{OTHER}/pause"],
    "functionArn": [f"{FUNCTION}:live"],
}
# Ways to write the other queue's path, or an operator's.
EVASIONS = [
    f"/queues/{OTHER}/jobs",
    f"/queues/{OTHER}",
    f"/queues/{OWN}/pause",
    f"/queues/{OWN}//pause",
    f"/queues/{OWN}/PAUSE",
    f"/queues/{OWN}/%70ause",
    f"/queues/{OWN}%2Fpause",
    f"/queues/{OWN}%2Dvip/jobs",
    f"/queues/{OWN}/../{OTHER}/jobs",
    f"/queues/{OWN}/jobs/..%2F..%2F{OTHER}%2Fjobs",
    f"//queues/{OTHER}/jobs",
    f"/queues/{OTHER}/jobs/",
    f"/queues/{OTHER.upper()}/jobs",
    f"/queues/{OTHER}/jobs\n",
    f"/queues/{OTHER}/jobs?queue={OWN}",
    f"/queues/{OTHER}/jobs#/queues/{OWN}/jobs",
    f"/queues/{OTHER}\x00/jobs",
    f"/prod/queues/{OTHER}/jobs",
    f"https://x/queues/{OTHER}/jobs",
    "/queues/{queue}/jobs",
    "",
    "/",
]
METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "post", "HEAD", "OPTIONS", "TRACE", "", "POST "]


def some_of(lies):
    return st.fixed_dictionaries({}, optional={name: st.sampled_from(values) for name, values in lies.items()})


def the_others(api):
    """Return all that there is of the other queue, and what controls the own one's workers."""
    table, queue = api.DEPLOYMENT.table, api.DEPLOYMENT.queue(api.DEPLOYMENT.names.queue(OTHER))
    rows = {
        pk: dict(items) for pk, items in table._rows.items() if items and pk.startswith((f"{OTHER}#", "emails#con"))
    }
    return copy.deepcopy(rows), len(queue.deliveries)


def test_others_jobs_are_counted(api):
    _, sent = the_others(api)
    assert call_api(api, "POST", f"/queues/{OTHER}/jobs", body='{"payload": 1}')[0] == 201
    assert the_others(api)[1] == sent + 1


@given(
    method=st.sampled_from(METHODS),
    path=st.sampled_from(EVASIONS),
    body=st.sampled_from(['{"payload": 1}', '{"payload": 1, "delay": 3600}', '{"delay": 3600}']),
    lies=some_of(LIES),
    context=some_of(CONTEXT_LIES),
)
def test_forged_event_reaches_nothing_else(api, method, path, body, lies, context):
    event = an_event(method, path, body, **lies)
    event["requestContext"] |= context
    before = the_others(api)
    status, problem = invoke(api, f":{Caller.PRODUCER.alias_of(OWN)}", event)
    # The last part of a path of its own may look like anything: there is no such job.
    is_own = path.startswith(f"/queues/{OWN}/jobs/..%") and method.upper() in ("GET", "PATCH", "DELETE")
    assert (status, problem["code"]) == ((404, "job_not_found") if is_own else (403, "forbidden")), (method, path)
    assert the_others(api) == before


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ([], "body is []"),
        ("text", "body is"),
        (None, "body is null"),
        ({}, "rawPath is missing"),
        (an_event("GET", 5), "rawPath is 5"),
        (an_event(["GET"], "/queues"), "requestContext.http.method is"),
        (an_event("GET", "/queues", 5), "body is 5"),
        (an_event("GET", "/queues", headers={"a": 1}), "headers.a is 1"),
        (an_event("GET", "/queues", headers=dict.fromkeys(map(str, range(1001)), 1)), 'headers is {"0": 1, "1": 1, '),
        (an_event("GET", "/queues", queryStringParameters={"a": ["b"]}), "queryStringParameters.a is"),
        (an_event("GET", "/queues", isBase64Encoded="yes"), "isBase64Encoded is"),
        ({"rawPath": "/queues", "requestContext": None}, "requestContext.http.method is missing"),
    ],
)
def test_event_that_is_no_request_is_400_and_named(api, caplog, wrong, named):
    status, problem = invoke(api, f":q-{OWN}", wrong)
    assert (status, problem["code"]) == (400, "invalid_job")
    assert problem["detail"].startswith(named)
    assert api.last["headers"]["Content-Type"] == "application/problem+json"
    assert [record.error for record in caplog.records if record.message == "refused"] == ["InvalidJob"]


def test_body_may_be_base64(api):
    sent = {"payload": "é", "delay": 3600}
    body = base64.b64encode(json.dumps(sent).encode()).decode()
    event = an_event("POST", f"/queues/{OWN}/jobs", body, isBase64Encoded=True)
    status, job = invoke(api, f":q-{OWN}", event)
    assert (status, job["state"]) == (201, "scheduled")
    for bad in ("no base64!", base64.b64encode(b"\xff").decode()):
        assert invoke(api, f":q-{OWN}", {**event, "body": bad})[0] == 400


def test_batch_reaches_no_other_queues_jobs(api):
    theirs = an_id(partition=Partition(queue=OTHER, number=0))
    status, made = call_api(api, "POST", f"/queues/{OTHER}/jobs", body='{"payload": 1, "delay": 3600, "key": "theirs"}')
    assert status == 201
    before = the_others(api)
    jobs = [{"payload": 1, "id": str(theirs)}, {"payload": 1, "id": made["id"]}, {"payload": 1, "delay": 60}]
    jobs += [{"payload": 1, "delay": 60, "queue": OTHER}]
    status, answer = invoke(api, f":q-{OWN}", an_event("POST", f"/queues/{OWN}/jobs", json.dumps({"jobs": jobs})))
    assert status == 200
    assert [each.get("error", {}).get("status") for each in answer["jobs"]] == [400, 400, None, 400]
    for body, refused in ({"ids": [made["id"]]}, 404), ({"keys": ["theirs"]}, 404):
        status, answer = invoke(api, f":q-{OWN}", an_event("POST", f"/queues/{OWN}/cancellations", json.dumps(body)))
        assert [each["error"]["status"] for each in answer["jobs"]] == [refused]
    for method in ("GET", "DELETE", "PATCH"):
        by_id = an_event(method, f"/queues/{OWN}/jobs/{made['id']}", '{"delay": 1}')
        by_key = an_event(method, f"/queues/{OWN}/jobs", '{"delay": 1}', queryStringParameters={"key": "theirs"})
        assert [invoke(api, f":q-{OWN}", each)[0] for each in (by_id, by_key)] == [404, 404]
    assert the_others(api) == before


@pytest.mark.parametrize("alias", [f":q-{OWN}", ":live"])
def test_answer_to_a_long_path_is_short(api, alias):
    for method, path in [("GET", "é" * 10_000), ("é" * 10_000, "/"), ("GET", f"/{'é' * 10_000}\n")]:
        event = an_event(method, path)
        event["requestContext"]["stage"] = "$default"
        invoke(api, alias, event)
        assert len(api.last["body"]) < 2000


def test_change_is_logged_with_the_alias(api, caplog):
    event = an_event("POST", f"/queues/{OWN}/pause")
    event["requestContext"]["authorizer"] = {"iam": {"userArn": "somebody else"}}
    assert invoke(api, f":o-{OWN}", event)[0] == 200
    [paused] = [record for record in caplog.records if record.message == "paused"]
    assert paused.caller == f"{FUNCTION}:o-{OWN}"
