"""How a client finds its deployment, over real sockets."""

import asyncio
import gc
import json
import socket
import time
from contextlib import suppress
from urllib.parse import unquote, urlsplit

import boto3
import pytest
from botocore.config import Config

from dueline import AsyncClient, Client, InvalidJob, Patience, State
from dueline.aws.api_transport import connect
from dueline.errors import (
    DeploymentNotFound,
    DuelineError,
    Forbidden,
    JobExists,
    PayloadTooLarge,
    QueueNotFound,
    Throttled,
    Unavailable,
)
from tests.fake_api_server import DROPPED, ApiRequest, Reply, default_reply, json_reply, problem_reply
from tests.forking import run_in_fork

ONCE = Patience(attempts=1)
KEYS = {"aws_access_key_id": "AKIDEXAMPLE", "aws_secret_access_key": "s"}


@pytest.fixture(autouse=True)
def _settings(monkeypatch, tmp_path, api_server):
    """None of this machine's own settings and credentials; every AWS service is the fake server."""
    for name in ("AWS_PROFILE", "AWS_DEFAULT_REGION", "AWS_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    monkeypatch.setenv("AWS_ENDPOINT_URL", api_server.url)
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)


def a_session():
    return boto3.Session(**KEYS, region_name="eu-west-1")


def refusal(code, status=400):
    return json_reply({"__type": code, "message": "why"}, status)


@pytest.mark.parametrize("code", ["ParameterNotFound", "AccessDeniedException"])
def test_default_session_is_boto3s(api_server, monkeypatch, code):
    for name, value in {**KEYS, "aws_default_region": "eu-west-3"}.items():
        monkeypatch.setenv(name.upper(), value)
    api_server.script = [refusal(code), json_reply({"Parameter": {"Value": api_server.url}})]
    Client.connect().schedule("emails", 1)
    names = [request.json["Name"] for request in api_server.requests[:2]]
    assert names == ["/dueline/dueline/api-function", "/dueline/dueline/api-url"]
    headers = api_server.requests[2].headers
    assert "Credential=AKIDEXAMPLE/" in headers["authorization"]
    assert "/eu-west-3/execute-api/" in headers["authorization"]


@pytest.mark.parametrize("options", [{}, {"direct": True}, {"linger": 0.1}, {"direct": True, "linger": 0.1}])
def test_making_a_client_requests_nothing(api_server, options):
    api_server.queues_reply = None
    with Client.connect("sandbox", session=a_session(), **options) as client:
        client.schedules("emails") if "direct" not in options else None
        with pytest.raises(InvalidJob):
            client.schedule("emails", object())
    Client.connect().close()
    assert api_server.requests == []


def test_lookup_is_made_once_an_attempt(api_server, monkeypatch):
    """Each is over after seconds: botocore would wait a minute for a connection, five times."""
    monkeypatch.delenv("AWS_MAX_ATTEMPTS")
    api_server.script = [DROPPED, json_reply({"Parameter": {"Value": api_server.url}})]
    with pytest.raises(Unavailable):
        Client.connect("sandbox", session=a_session(), transport="http", patience=ONCE).queues()
    assert len(api_server.requests) == 1


@pytest.mark.usefixtures("requested")
@pytest.mark.parametrize("refused", [(), ("invoices",)])
def test_client_that_invokes_closes_what_it_opened(api_server, refused):
    """Connections to the function, and where an alias was refused those to the gateway."""
    refuse_aliases(api_server, *refused)
    client = Client.connect("sandbox", session=a_session())
    for queue in ("emails", "invoices"):
        client.schedule(queue, 1, key="1")
    before = connections_to(api_server)
    client.close()
    assert before - connections_to(api_server) == 1 + len(refused)
    assert client.schedule("emails", 2, key="2").queue == "emails"


def connections_to(api_server):
    """Return how many connections of this process to the server are open, those of garbage left out."""
    gc.collect()
    port, count = urlsplit(api_server.url).port, 0
    for each in gc.get_objects():
        if type(each) is socket.socket:
            with suppress(OSError):
                count += each.getpeername()[1:2] == (port,)
    return count


def test_async_client_closes_as_its_block_ends(api_server):
    async def use():
        async with AsyncClient.connect(url=api_server.url) as client:
            await client.schedule("emails", 1)
            assert connections_to(api_server) == 1

    asyncio.run(use())
    assert connections_to(api_server) == 0


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (refusal("ParameterNotFound"), DeploymentNotFound),
        (refusal("AccessDeniedException"), Forbidden),
        (refusal("ExpiredTokenException"), Forbidden),
        (refusal("UnrecognizedClientException"), Forbidden),
        (refusal("InternalServerError", 500), Unavailable),
        (DROPPED, Unavailable),
    ],
)
def test_unreachable_deployment_says_why(api_server, answer, error):
    for transport in (None, "http", "invoke"):
        api_server.script = [answer, answer]
        client = Client.connect("sandbox", session=a_session(), transport=transport, patience=ONCE)
        with pytest.raises(DuelineError, match="finding the deployment 'sandbox'") as raised:
            client.queues()
        assert type(raised.value) is error


@pytest.mark.parametrize(
    ("session", "error", "says"),
    [
        ({"region_name": "eu-west-1"}, Forbidden, "no AWS credentials were found"),
        (KEYS, DeploymentNotFound, "no AWS region is set"),
    ],
)
def test_incomplete_session_is_refused(api_server, session, error, says):
    with pytest.raises(error, match=says):
        Client.connect(session=boto3.Session(**session)).queues()
    assert api_server.requests == []


def test_lost_credentials_are_reported(api_server, tmp_path):
    once = tmp_path / "once"
    json_reply = {"Version": 1, "AccessKeyId": "A", "SecretAccessKey": "s", "Expiration": "2020-01-01T00:00:00Z"}
    once.write_text(json.dumps(json_reply))
    (tmp_path / "config").write_text(f"[profile short]\nregion = eu-west-1\ncredential_process = cat {once}\n")
    client = Client.connect(url=api_server.url, session=boto3.Session(profile_name="short"))
    with pytest.raises(Forbidden, match="still expired"):
        client.queues()
    once.unlink()
    with pytest.raises(Forbidden, match=r"signing a request: .*once"):
        client.schedule("emails", 1)
    assert api_server.requests == []


def test_proxies_of_the_session_are_used(api_server):
    session = a_session()
    session._session.set_default_client_config(Config(proxies={"http": api_server.url}))
    client = Client.connect(url="http://elsewhere", session=session)
    client.schedule("emails", 1)
    assert api_server.requests[0].path == "http://elsewhere/queues/emails/jobs"


def test_environment_proxies_are_used_by_host(api_server, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", api_server.url)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    gateway = connect("sandbox", url=api_server.url, session=a_session(), lanes=1)
    api_server.respond = lambda _: json_reply({})
    api_server.queues_reply = None
    gateway.send("GET", "/queues", None, headers={})
    gateway.put("http://elsewhere/payload", {}, b"1")
    assert [request.path for request in api_server.requests] == ["/queues", "http://elsewhere/payload"]


@pytest.mark.usefixtures("requested")
@pytest.mark.parametrize("transport", ["http", "invoke"])
def test_forked_process_has_own_connections(api_server, transport):
    client = Client.connect("sandbox", session=a_session(), transport=transport)
    call = lambda: client.schedule("emails", 1, key="1")  # noqa: E731
    call()
    assert run_in_fork(call)
    call()
    before, childs, after = (request.port for request in api_server.requests[1:])
    assert before == after != childs


FUNCTION = "arn:aws:lambda:eu-central-1:123456789012:function:sandbox-api"


def invoked(reply, **headers):
    """Return what Lambda answers where the function answers so."""
    answer = {"statusCode": reply.status, "headers": dict(reply.headers), "body": reply.body.decode()}
    return json_reply(answer, **headers)


def lambda_error(code, status):
    return json_reply({"Message": "why", "Type": "User"}, status, x_amzn_errortype=code)


@pytest.fixture
def requested(api_server):
    """Have the server be Lambda, and the API behind it: the aliases that are invoked and the paths, in order."""
    requested = []

    def respond(request):
        if "x-amz-target" in request.headers:
            name = request.json["Name"].rpartition("/")[2]
            return json_reply({"Parameter": {"Value": FUNCTION if name == "api-function" else api_server.url}})
        if not request.path.startswith("/2015-03-31/functions/"):
            requested.append(("http", request.path))
            return default_reply(request) if "/jobs" in request.path else json_reply({"queues": []})
        alias = unquote(request.path).split("/")[3].rpartition(":")[2]
        event = request.json
        path = event["rawPath"]
        requested.append((alias, path))
        if "/jobs" not in path:
            return invoked(json_reply({"queues": []}))
        headers, body = event["headers"], (event["body"] or "").encode()
        method = event["requestContext"]["http"]["method"]
        path += f"?{event['rawQueryString']}" if event["rawQueryString"] else ""
        return invoked(default_reply(ApiRequest(method=method, path=path, headers=headers, body=body)))

    api_server.respond, api_server.queues_reply = respond, None
    return requested


def refuse_aliases(api_server, *queues, code="AccessDeniedException"):
    """Have Lambda refuse to invoke by the aliases of these queues, and return the list of what it refused."""
    answer, refused = api_server.respond, []

    def respond(request):
        if "functions" in request.path and any(f"q-{queue}" in request.path for queue in queues):
            refused.append(request)
            return lambda_error(code, 403)
        return answer(request)

    api_server.respond = respond
    return refused


def test_function_is_invoked_by_the_queues_alias(api_server, requested):
    client = Client.connect("sandbox", session=a_session())
    job = client.schedule("emails", {"to": "é"}, key="1")
    assert client.cancel(queue="emails", key="1") is State.CANCELLED
    assert client.get(job.id).id == job.id
    assert requested == [("q-emails", "/queues/emails/jobs")] * 2 + [("q-emails", f"/queues/emails/jobs/{job.id}")]
    assert all("/eu-central-1/lambda/" in each.headers["authorization"] for each in api_server.requests[1:])


def test_request_without_a_queue_goes_by_an_alias_or_the_gateway(requested):
    client = Client.connect("sandbox", session=a_session())
    transport = client._api._transport()
    transport.send("GET", "/queues?a=b", None, headers={}, queue="invoices")
    transport.send("GET", "/queues", None, headers={})
    assert requested == [("q-invoices", "/queues")] * 2
    requested.clear()
    connect("sandbox", url=None, session=a_session(), lanes=1).send("DELETE", "/queues", None, headers={})
    assert requested == [("http", "/queues")]
    with pytest.raises(Forbidden, match="GET /queues: its path has no queue"):
        connect("sandbox", url=FUNCTION, session=a_session(), lanes=1).send("GET", "/queues", None, headers={})


@pytest.mark.parametrize("code", ["AccessDeniedException", "ResourceNotFoundException"])
def test_refused_alias_gives_way_to_the_gateway_for_good(api_server, requested, code):
    refused = refuse_aliases(api_server, "emails", code=code)
    client = Client.connect("sandbox", session=a_session())
    for key in ("1", "2"):
        client.schedule("emails", 1, key=key)
    client.schedule("invoices", 1, key="3")
    assert requested == [("http", "/queues/emails/jobs")] * 2 + [("q-invoices", "/queues/invoices/jobs")]
    assert len(refused) == 1
    error = {"AccessDeniedException": Forbidden, "ResourceNotFoundException": QueueNotFound}[code]
    for alone in ({"transport": "invoke"}, {"url": FUNCTION}):
        with pytest.raises(error, match="why"):
            Client.connect("sandbox", session=a_session(), **alone).schedule("emails", 1, key="1")
    assert len(refused) == 3


@pytest.mark.usefixtures("requested")
@pytest.mark.parametrize(
    ("answers", "error"),
    [
        ([lambda_error("TooManyRequestsException", 429)], Throttled),
        ([lambda_error("ServiceException", 500)], Unavailable),
        ([json_reply({"errorMessage": "no time"}, x_amz_function_error="Unhandled")], Unavailable),
        ([DROPPED], Unavailable),
        ([Reply(body=b"no JSON")], Unavailable),
        ([json_reply({"body": ""})], Unavailable),
        ([json_reply({"statusCode": "200", "headers": {}, "body": "{}"})], Unavailable),
        ([Reply(body=b"[" * 100_000)], Unavailable),
        ([invoked(problem_reply(429, "throttled", retry_after="0"))], Throttled),
        ([invoked(problem_reply(503, "unavailable", retry_after="0"))], Unavailable),
        ([lambda_error("ExpiredTokenException", 403)], Forbidden),
        ([lambda_error("RequestTooLargeException", 413)], PayloadTooLarge),
        ([invoked(problem_reply(403, "forbidden"))], Forbidden),
        ([invoked(problem_reply(409, "job_exists"))], JobExists),
    ],
)
def test_what_may_pass_is_retried_and_the_rest_raised(api_server, monkeypatch, answers, error):
    monkeypatch.setattr(time, "sleep", lambda _: None)
    client = Client.connect(url=FUNCTION, session=a_session(), patience=Patience(attempts=2))
    api_server.script = list(answers)
    if issubclass(error, (Throttled, Unavailable)):
        assert client.schedule("emails", 1, key="1").queue == "emails"
        client = Client.connect(url=FUNCTION, session=a_session(), patience=ONCE)
        api_server.script = list(answers)
    with pytest.raises(DuelineError) as raised:
        client.schedule("emails", 1, key="1")
    assert type(raised.value) is error


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"transport": "direct"}, "transport is 'direct': it must be one of invoke, http, or None"),
        ({"transport": "invoke", "url": "http://x"}, "transport is 'invoke', but the url is 'http://x'"),
        ({"transport": "http", "url": FUNCTION}, "transport is 'http', but the url is"),
        ({"url": f"{FUNCTION}:live"}, "the ARN of the API's function is arn"),
        ({"url": "http://["}, r"url is 'http://\[': Invalid IPv6 URL"),
        ({"transport": "http", "direct": True}, "direct is given with url or transport"),
        ({"url": "http://x", "direct": True}, "direct is given with url or transport"),
    ],
)
def test_contradicting_options_are_refused(options, says):
    with pytest.raises(ValueError, match=says):
        Client.connect(session=a_session(), **options)
