"""boto3's clients as they are set up: time-outs, second attempts, connections, and who goes by which session."""

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError, ReadTimeoutError
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from dueline.aws import clients
from dueline.errors import DeploymentNotFound
from tests.fake_api_server import DROPPED, Reply, fake_api_server
from tests.waiting import HANG_SECONDS

DAY = timedelta(days=1)
LONGEST = timedelta(seconds=10)
PEM = serialization.Encoding.PEM
QUERY = {"TableName": "jobs", "KeyConditionExpression": "pk = :pk", "ExpressionAttributeValues": {":pk": {"S": "é"}}}
KEYS = {"aws_access_key_id": "AKID", "aws_secret_access_key": "secret", "aws_session_token": "token"}
BOTH = pytest.mark.parametrize("whose", ["a function's", "a caller's"])


@pytest.fixture
def api_server(monkeypatch):
    monkeypatch.setattr(time, "sleep", lambda _: None)
    with fake_api_server() as opened:
        opened.respond = lambda _: answered({"Items": [], "Count": 0})
        monkeypatch.setenv("AWS_ENDPOINT_URL", opened.url)
        yield opened


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


def answered(content, status=200):
    body = json.dumps(content).encode()
    headers = {"content-length": str(len(body)), "content-type": "application/x-amz-json-1.0"}
    return Reply(status=status, body=body, headers=headers)


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


@pytest.mark.parametrize(("longest", "connect", "read"), [(4, 0.75, 0.75), (5, 1.0, 1.0), (10, 1.0, 3.5)])
def test_a_function_connects_within_a_second(session, longest, connect, read):
    config = clients.client("sqs", longest=timedelta(seconds=longest)).meta.config
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


def test_threads_that_wake_together_connect_again(api_server, session, monkeypatch):
    now = time.time()
    monkeypatch.setattr(clients, "time", lambda: now)
    call = clients.client("dynamodb", longest=LONGEST).query
    with ThreadPoolExecutor(clients.LANES) as pool:
        for _ in range(3):
            assert [each["Count"] for each in pool.map(lambda _: call(**QUERY), range(50))] == [0] * 50
            now += 21


def a_certificate(folder):
    """Return a file with the certificate of localhost that no one has signed but itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    built = x509.CertificateBuilder(name, name, key.public_key(), 1, now - DAY, now + DAY)
    named = x509.SubjectAlternativeName([x509.DNSName("localhost")])
    signed = built.add_extension(named, critical=False).sign(key, hashes.SHA256())
    plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    file = folder / "certificate.pem"
    file.write_bytes(signed.public_bytes(PEM) + key.private_bytes(PEM, *plain))
    return file


def test_slow_tls_handshake_is_awaited(session, tmp_path, monkeypatch):
    certificate = a_certificate(tmp_path)
    monkeypatch.setenv("AWS_CA_BUNDLE", str(certificate))
    with fake_api_server(certificate=certificate, hesitates=1.0) as api_server:
        api_server.respond = lambda _: answered({"Items": [], "Count": 0})
        monkeypatch.setenv("AWS_ENDPOINT_URL", api_server.url.replace("http://127.0.0.1", "https://localhost"))
        clients.client("dynamodb", session, longest=LONGEST).query(**QUERY)
        assert len(api_server.requests) == 1


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


def test_session_without_a_region_is_refused(monkeypatch):
    for name in ("AWS_DEFAULT_REGION", "AWS_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
    with pytest.raises(DeploymentNotFound, match="no AWS region is set"):
        clients.client("sqs", boto3.Session(**KEYS), longest=LONGEST)
