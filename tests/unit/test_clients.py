"""boto3's clients as they are set up: time-outs, second attempts, connections, and who goes by which session."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError, ReadTimeoutError

from dueline.aws import clients
from tests.fake_api_server import DROPPED, json_reply
from tests.waiting import HANG_SECONDS

LONGEST = timedelta(seconds=10)
QUERY = {"TableName": "jobs", "KeyConditionExpression": "pk = :pk", "ExpressionAttributeValues": {":pk": {"S": "é"}}}
KEYS = {"aws_access_key_id": "AKID", "aws_secret_access_key": "secret", "aws_session_token": "token"}
answered = partial(json_reply, x_amzn_requestid="1")
BOTH = pytest.mark.parametrize("whose", ["a function's", "a caller's"])


@pytest.fixture
def api_server(api_server, monkeypatch):
    monkeypatch.setattr(time, "sleep", lambda _: None)
    api_server.respond = lambda _: answered({"Items": [], "Count": 0})
    monkeypatch.setenv("AWS_ENDPOINT_URL", api_server.url)
    return api_server


@pytest.fixture
def session(monkeypatch):
    """The session of this process, which is what a function has."""
    own = boto3.Session(**KEYS, region_name="eu-west-1")
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", own)
    return own


@pytest.fixture
def of(whose, session):
    """The session that a client is made with."""
    return session if whose == "a caller's" else None


@BOTH
def test_a_fault_of_the_service_is_retried_once(api_server, of):
    dynamodb = clients.client("dynamodb", of, longest=LONGEST)
    api_server.script = [answered({"__type": "InternalServerError"}, status=500)]
    assert dynamodb.query(**QUERY)["ResponseMetadata"]["RetryAttempts"] == 1
    api_server.script = [answered({"__type": "a#ThrottlingException", "message": "slow"}, status=400)] * 2
    with pytest.raises(ClientError, match="ThrottlingException"):
        dynamodb.query(**QUERY)
    assert len(api_server.requests) == 4


@BOTH
def test_missing_answer_is_awaited_twice(api_server, of):
    late = threading.Event()
    api_server.respond = lambda _: late.wait(HANG_SECONDS) and DROPPED
    client = clients.client("dynamodb", of, longest=timedelta(seconds=2.4))
    with pytest.raises(ReadTimeoutError):
        client.query(**QUERY)
    late.set()
    assert len(api_server.requests) == 2


@pytest.mark.parametrize("where", ["the environment", "the session"])
def test_a_caller_uses_the_proxy_of(api_server, session, monkeypatch, where):
    if where == "the session":
        session._session.set_default_client_config(Config(proxies={"http": api_server.url}))
    else:
        monkeypatch.setenv("HTTP_PROXY", api_server.url)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://elsewhere")
    clients.client("dynamodb", session, longest=LONGEST).query(**QUERY)
    assert api_server.requests[0].path == "http://elsewhere/"


@pytest.mark.parametrize(("whose", "threads"), [("a function's", clients.LANES), ("a caller's", clients.LANES + 2)])
def test_each_thread_keeps_a_connection(api_server, of, threads):
    together = threading.Barrier(threads)
    api_server.respond = lambda _: (together.wait(60), answered({"Items": [], "Count": 0}))[1]
    call = clients.client("dynamodb", of, longest=timedelta(minutes=5)).query
    with ThreadPoolExecutor(threads) as pool:
        for _ in range(2):
            list(pool.map(lambda _: call(**QUERY), range(threads)))
    assert len({request.port for request in api_server.requests}) == threads


@pytest.mark.parametrize(
    ("whose", "longest", "connect", "read"),
    [
        ("a function's", 4, 0.75, 0.75),
        ("a function's", 5, 1.0, 1.0),
        ("a function's", 10, 1.0, 3.5),
        ("a caller's", 10, 3.0, 3.5),
    ],
)
def test_a_function_connects_within_a_second(of, longest, connect, read):
    """A caller may be ways around the world, and lose a packet."""
    config = clients.client("sqs", of, longest=timedelta(seconds=longest)).meta.config
    assert (config.connect_timeout, config.read_timeout) == (connect, read)


@pytest.mark.parametrize(("whose", "idle", "connections"), [("a function's", 19, 1), ("a function's", 21, 2)])
def test_an_idle_connection_is_not_used_again(api_server, of, monkeypatch, idle, connections):
    now = time.time()
    monkeypatch.setattr(clients, "time", lambda: now)
    call = clients.client("dynamodb", of, longest=LONGEST).query
    call(**QUERY)
    now += idle
    call(**QUERY)
    call(**QUERY)
    assert len({request.port for request in api_server.requests}) == connections


@BOTH
def test_lambda_sees_no_recursive_loop(api_server, session, of, monkeypatch):
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "consumer")
    monkeypatch.setenv("_X_AMZN_TRACE_ID", "Root=1-5759e988-bd862e3fe1be46a994272793;Lineage=a:1")
    api_server.respond = lambda _: answered({"Successful": [], "Failed": []})
    batch = {"QueueUrl": f"{api_server.url}/1/emails", "Entries": [{"Id": "0", "MessageBody": "1"}]}
    clients.client("sqs", of, longest=LONGEST).send_message_batch(**batch)
    assert "x-amzn-trace-id" not in {name.lower() for name in api_server.requests[0].headers}
    # It is botocore's to add, and taken off.
    session.client("sqs").send_message_batch(**batch)
    assert "Lineage" in api_server.requests[1].headers["x-amzn-trace-id"]
