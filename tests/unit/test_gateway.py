"""How a client finds its deployment, over real sockets."""

import json
import os
import threading
from datetime import UTC, datetime, timedelta

import boto3
import pytest
from botocore.config import Config
from botocore.credentials import RefreshableCredentials

from dueline import Client
from dueline.aws.gateway import connect
from dueline.errors import DeploymentNotFound, DuelineError, Forbidden, Unavailable
from tests.forked import in_a_child
from tests.gate import DROPPED, open_gate, told
from tests.waiting import HANG_SECONDS

KEYS = {"aws_access_key_id": "AKIDEXAMPLE", "aws_secret_access_key": "s"}


@pytest.fixture
def gate():
    with open_gate() as opened:
        yield opened


@pytest.fixture(autouse=True)
def _settings(monkeypatch, tmp_path, gate):
    """None of this machine's own settings and credentials; every AWS service is the gate."""
    for name in ("AWS_PROFILE", "AWS_DEFAULT_REGION", "AWS_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    monkeypatch.setenv("AWS_ENDPOINT_URL", gate.url)
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)


def a_session(**given):
    return boto3.Session(**(KEYS | {"region_name": "eu-west-1"} | given))


def refusal(code, status=400):
    return told({"__type": code, "message": "why"}, status)


def test_a_deployment_is_found_by_its_parameter_with_the_callers_own_credentials(gate):
    gate.script = [told({"Parameter": {"Value": gate.url}})]
    Client.connect("sandbox", session=a_session()).schedule("emails", 1)
    found, scheduled = gate.asked
    assert found.json == {"Name": "/dueline/sandbox/api-url"}
    assert "/eu-west-1/ssm/" in found.headers["Authorization"]
    assert scheduled.path == "/queues/emails/jobs"


def test_without_a_session_boto3s_own_is_taken(gate, monkeypatch):
    for name, value in {**KEYS, "aws_default_region": "eu-west-3"}.items():
        monkeypatch.setenv(name.upper(), value)
    gate.script = [told({"Parameter": {"Value": gate.url}})]
    Client.connect().schedule("emails", 1)
    assert gate.asked[0].json == {"Name": "/dueline/dueline/api-url"}
    headers = {name.lower(): value for name, value in gate.asked[1].headers.items()}
    assert "Credential=AKIDEXAMPLE/" in headers["authorization"]
    assert "/eu-west-3/execute-api/" in headers["authorization"]


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
def test_what_keeps_a_client_from_its_deployment_is_told(gate, answer, error):
    gate.script = [answer]
    with pytest.raises(DuelineError, match="finding the deployment 'sandbox'") as raised:
        Client.connect("sandbox", session=a_session())
    assert type(raised.value) is error


def test_no_credentials_are_told(gate):
    with pytest.raises(Forbidden, match="no AWS credentials were found"):
        Client.connect(session=boto3.Session(region_name="eu-west-1"))
    assert gate.asked == []


def test_no_region_is_told(gate):
    with pytest.raises(DeploymentNotFound, match="no AWS region is set"):
        Client.connect(session=boto3.Session(**KEYS))
    assert gate.asked == []


def test_a_profile_that_is_not_there_is_told(monkeypatch):
    monkeypatch.setenv("AWS_PROFILE", "nobodys")
    with pytest.raises(Forbidden, match="nobodys"):
        Client.connect()


def test_credentials_that_can_no_longer_be_had_are_told(gate, tmp_path):
    once = tmp_path / "once"
    told = {"Version": 1, "AccessKeyId": "A", "SecretAccessKey": "s", "Expiration": "2020-01-01T00:00:00Z"}
    once.write_text(json.dumps(told))
    (tmp_path / "config").write_text(f"[profile short]\nregion = eu-west-1\ncredential_process = cat {once}\n")
    client = Client.connect(url=gate.url, session=boto3.Session(profile_name="short"))
    once.unlink()
    with pytest.raises(Forbidden, match=r"signing a request: .*once"):
        client.schedule("emails", 1)
    assert gate.asked == []


def test_credentials_that_cannot_be_had_at_all_are_told(gate, tmp_path):
    (tmp_path / "config").write_text("[profile broken]\nregion = eu-west-1\ncredential_process = false\n")
    with pytest.raises(Forbidden, match="custom-process"):
        Client.connect(url=gate.url, session=boto3.Session(profile_name="broken"))
    assert gate.asked == []


def proxied(session, url):
    session._session.set_default_client_config(Config(proxies={"http": url}))
    return session


def test_the_proxies_that_a_session_is_set_to_are_on_the_way(gate):
    client = Client.connect(url="http://elsewhere", session=proxied(a_session(), gate.url))
    client.schedule("emails", 1)
    assert gate.asked[0].path == "http://elsewhere/queues/emails/jobs"


def test_each_host_is_reached_by_the_proxies_that_the_environment_names_for_it(gate, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", gate.url)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    gateway = connect("sandbox", url=gate.url, session=a_session(), lanes=1)
    gate.api = lambda _: told({})
    gate.of_ids = None
    gateway.send("GET", "/queues", None, headers={})
    gateway.put("http://elsewhere/payload", {}, b"1")
    assert [asked.path for asked in gate.asked] == ["/queues", "http://elsewhere/payload"]


def test_a_process_that_is_forked_has_connections_of_its_own(gate):
    client = Client.connect(url=gate.url, session=a_session())
    ask = lambda: client.schedule("emails", 1)  # noqa: E731
    ask()
    assert in_a_child(ask)
    ask()
    before, childs, after = (asked.port for asked in gate.asked)
    assert before == after != childs


def test_a_child_does_not_wait_for_credentials_that_a_thread_of_its_parent_was_renewing(gate):
    """With the session that was given, whose lock is held by a thread that the child does not have."""
    parent, begun, go_on = os.getpid(), threading.Event(), threading.Event()

    def renewed():
        begun.set()
        assert os.getpid() != parent or go_on.wait(HANG_SECONDS)
        late = (datetime.now(UTC) + timedelta(days=1)).isoformat()
        return {"access_key": "AKIDEXAMPLE", "secret_key": "s", "token": "t", "expiry_time": late}

    session = a_session()
    session._session._credentials = RefreshableCredentials(
        "AKIDEXAMPLE", "s", "t", datetime.now(UTC) + timedelta(seconds=60), renewed, "tests"
    )
    client = Client.connect(url=gate.url, session=session)
    asking = threading.Thread(target=client.schedule, args=("emails", 1))
    asking.start()
    assert begun.wait(HANG_SECONDS)
    assert in_a_child(lambda: client.schedule("emails", 1))
    go_on.set()
    asking.join()


def test_an_answer_that_comes_in_drips_is_not_waited_for_without_end(gate, monkeypatch):
    monkeypatch.setattr("dueline.aws.gateway._CONTENT_SECONDS", 0)
    gate.script = [told({"queues": ["x" * 10_000_000]})]
    way = connect("sandbox", url=gate.url, session=None, lanes=1)
    with pytest.raises(Unavailable, match="GET /jobs: the answer was not whole after 0 s"):
        way.send("GET", "/jobs", None, headers={})
    monkeypatch.undo()
    gate.script = [told({"n": "x" * 10_000_000}), told({})]
    assert len(way.send("GET", "/jobs", None, headers={}).body) > 10_000_000
    assert way.send("GET", "/jobs", None, headers={}).body == b"{}"
    first, second, third = (asked.port for asked in gate.asked)
    assert first != second == third
