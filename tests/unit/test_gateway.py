"""How a client finds its deployment, over real sockets."""

import asyncio
import json
import os
import threading
from datetime import UTC, datetime, timedelta

import boto3
import pytest
from botocore.config import Config
from botocore.credentials import RefreshableCredentials

from dueline import AsyncClient, Client, InvalidJob, Patience
from dueline.aws.api_transport import connect
from dueline.errors import DeploymentNotFound, DuelineError, Forbidden, Unavailable
from tests.fake_api_server import DROPPED, json_reply
from tests.forking import run_in_fork
from tests.waiting import HANG_SECONDS

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


def a_session(**options):
    return boto3.Session(**(KEYS | {"region_name": "eu-west-1"} | options))


def refusal(code, status=400):
    return json_reply({"__type": code, "message": "why"}, status)


def test_deployment_is_found_by_its_parameter(api_server):
    api_server.script = [json_reply({"Parameter": {"Value": api_server.url}})]
    Client.connect("sandbox", session=a_session()).schedule("emails", 1)
    result, scheduled = api_server.requests
    assert result.json == {"Name": "/dueline/sandbox/api-url"}
    assert "/eu-west-1/ssm/" in result.headers["authorization"]
    assert scheduled.path == "/queues/emails/jobs"


def test_default_session_is_boto3s(api_server, monkeypatch):
    for name, value in {**KEYS, "aws_default_region": "eu-west-3"}.items():
        monkeypatch.setenv(name.upper(), value)
    api_server.script = [json_reply({"Parameter": {"Value": api_server.url}})]
    Client.connect().schedule("emails", 1)
    assert api_server.requests[0].json == {"Name": "/dueline/dueline/api-url"}
    headers = api_server.requests[1].headers
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


def test_deployment_is_found_once(api_server):
    api_server.script = [json_reply({"Parameter": {"Value": api_server.url}})]
    client = Client.connect("sandbox", session=a_session())
    for number in range(3):
        client.schedule("emails", number)
    assert [each.path for each in api_server.requests] == ["/", *["/queues/emails/jobs"] * 3]


def test_lookup_that_fails_is_retried(api_server):
    api_server.script = [DROPPED, DROPPED, json_reply({"Parameter": {"Value": api_server.url}})]
    Client.connect("sandbox", session=a_session(), patience=Patience(first_wait=0)).schedule("emails", 1)
    assert api_server.requests[-1].path == "/queues/emails/jobs"


def test_closed_client_keeps_no_connection(api_server):
    client = Client.connect(url=api_server.url)
    before = connections_of(client)
    client.schedule("emails", 1)
    assert connections_of(client) > before
    client.close()
    assert connections_of(client) == 0
    client.schedule("emails", 2)
    assert connections_of(client) > 0


def connections_of(client):
    """Return how many connections a client keeps open."""
    transport = client._api._transport._connected
    pools = [pool for each in (transport._open() if transport else ()) for pool in pools_of(each)]
    return sum(each is not None and each.sock is not None for pool in pools for each in pool.pool.queue)


def pools_of(session):
    pools = session._manager.pools
    return [pools[key] for key in pools.keys()]  # noqa: SIM118


def test_async_client_closes_as_its_block_ends(api_server):
    async def use():
        async with AsyncClient.connect(url=api_server.url) as client:
            await client.schedule("emails", 1)
            assert connections_of(client.client) > 0
        return client.client

    assert connections_of(asyncio.run(use())) == 0


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
    api_server.script = [answer]
    with pytest.raises(DuelineError, match="finding the deployment 'sandbox'") as raised:
        Client.connect("sandbox", session=a_session(), patience=Patience(attempts=1)).queues()
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


def test_missing_profile_is_reported(monkeypatch):
    monkeypatch.setenv("AWS_PROFILE", "nobodys")
    with pytest.raises(Forbidden, match="nobodys"):
        Client.connect().queues()


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


def proxied(session, url):
    session._session.set_default_client_config(Config(proxies={"http": url}))
    return session


def test_proxies_of_the_session_are_used(api_server):
    client = Client.connect(url="http://elsewhere", session=proxied(a_session(), api_server.url))
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


def test_forked_process_has_own_connections(api_server):
    client = Client.connect(url=api_server.url, session=a_session())
    call = lambda: client.schedule("emails", 1)  # noqa: E731
    call()
    assert run_in_fork(call)
    call()
    before, childs, after = (request.port for request in api_server.requests)
    assert before == after != childs


def test_forked_child_awaits_no_credentials(api_server):
    """With the session that was given, whose lock is held by a thread that the child does not have."""
    parent, started, go_on = os.getpid(), threading.Event(), threading.Event()

    def renewed():
        started.set()
        assert os.getpid() != parent or go_on.wait(HANG_SECONDS)
        late = (datetime.now(UTC) + timedelta(days=1)).isoformat()
        return {"access_key": "AKIDEXAMPLE", "secret_key": "s", "token": "t", "expiry_time": late}

    session = a_session()
    session._session._credentials = RefreshableCredentials(
        "AKIDEXAMPLE", "s", "t", datetime.now(UTC) + timedelta(seconds=60), renewed, "tests"
    )
    client = Client.connect(url=api_server.url, session=session)
    requesting = threading.Thread(target=client.schedule, args=("emails", 1))
    requesting.start()
    assert started.wait(HANG_SECONDS)
    assert run_in_fork(lambda: client.schedule("emails", 1))
    go_on.set()
    requesting.join()
