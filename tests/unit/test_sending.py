"""What is sent in botocore's place, over real sockets: signed as botocore signs it, judged as botocore judges."""

import json
import ssl
import string
import threading
import time
import zlib
from base64 import b64encode
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime, timedelta

import boto3
import pytest
from boto3.dynamodb.types import Binary, TypeDeserializer, TypeSerializer
from botocore import auth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.credentials import Credentials
from botocore.exceptions import ClientError, ConnectionClosedError, ReadTimeoutError, SSLError
from botocore.stub import Stubber
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from hypothesis import example, given
from hypothesis import strategies as st

from dueline.aws import clients
from dueline.aws.dynamodb.typed import typed, untyped
from dueline.aws.transport import connections
from dueline.aws.transport.connections import Connections
from dueline.aws.transport.signature import signed
from tests.gate import DROPPED, NO_HTTP, Reply, open_gate
from tests.waiting import HANG_SECONDS

DAY = timedelta(days=1)
LONGEST = timedelta(seconds=10)
PEM = serialization.Encoding.PEM
TEXTS = st.text(string.ascii_letters + string.digits + " /+=", min_size=1).map(str.strip)
NAMES = ("Content-Type", "X-Amz-Target", "User-Agent", "X-Amzn-Trace-Id", "x-amzn-query-mode")
QUERY = {"TableName": "jobs", "KeyConditionExpression": "pk = :pk", "ExpressionAttributeValues": {":pk": {"S": "é"}}}
KEYS = {"aws_access_key_id": "AKID", "aws_secret_access_key": "secret", "aws_session_token": "token"}


@pytest.fixture
def gate(monkeypatch):
    monkeypatch.setattr(time, "sleep", lambda _: None)
    with open_gate() as opened:
        monkeypatch.setenv("AWS_ENDPOINT_URL", opened.url)
        yield opened


@pytest.fixture
def session(monkeypatch):
    """The session of this process, which is what a function has."""
    own = boto3.Session(**KEYS, region_name="eu-west-1")
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", own)
    return own


@pytest.fixture
def dynamodb(gate, session):
    return clients.dynamodb(longest=LONGEST)


def answered(content, status=200, **headers):
    body = json.dumps(content).encode()
    length = {"content-length": str(len(body)), "content-type": "application/x-amz-json-1.0"}
    return Reply(status=status, body=body, headers=length | headers)


def sent_to(gate):
    return {"QueueUrl": f"{gate.url}/1/emails", "Entries": [{"Id": "0", "MessageBody": "1"}]}


def of_items(*items):
    return answered({"Items": items, "Count": len(items)})


@given(
    headers=st.dictionaries(st.sampled_from(NAMES), TEXTS),
    body=st.binary(),
    secret=TEXTS,
    token=st.none() | TEXTS.filter(bool),
    host=st.sampled_from(["sqs.eu-west-1.amazonaws.com", "localhost:4566"]),
    path=st.sampled_from(["/", "/a/b"]),
)
@example(headers={"X-Amz-Target": "a  b"}, body=b"", secret=string.digits, token=None, host="h", path="/")
def test_a_request_is_signed_as_botocore_signs_it(headers, body, secret, token, host, path):
    credentials = Credentials("AKID", secret, token)
    request = AWSRequest("POST", f"https://{host}{path}", headers=headers, data=body)
    auth.SigV4Auth(credentials, "sqs", "eu-west-1").add_auth(request)
    at = datetime.strptime(request.headers["X-Amz-Date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    of = {"credentials": credentials, "region": "eu-west-1", "service": "sqs", "at": at.timestamp()}
    assert signed(headers, body=body, host=host, path=path, **of) == dict(request.headers.items())


VALUES = st.text() | st.booleans() | st.integers(-(10**37), 10**37) | st.binary()
OTHERS = st.none() | st.lists(VALUES) | st.dictionaries(st.text(), VALUES) | st.decimals(-1000, 1000, places=3)


@given(VALUES | OTHERS)
def test_values_are_typed_as_boto3_types_them(value):
    assert typed(value) == TypeSerializer().serialize(value)


@given(VALUES | OTHERS)
def test_values_are_untyped_as_boto3_does_but_for_its_type_of_bytes(value):
    told = TypeSerializer().serialize(value)
    boto3s = TypeDeserializer().deserialize(told)
    expected = boto3s.value if isinstance(boto3s, Binary) else boto3s
    assert (type(untyped(told)), untyped(told)) == (type(expected), expected)


def undated(answer):
    headers = answer["ResponseMetadata"]["HTTPHeaders"]
    return {**answer, "ResponseMetadata": {**answer["ResponseMetadata"], "HTTPHeaders": {**headers, "date": ""}}}


def test_what_is_asked_and_answered_is_what_it_is_by_botocore(gate, session, dynamodb):
    item = {"sk": {"S": 'a "B" é'}, "ttl": {"N": "5"}, "packed": {"B": b64encode(b"\0\xff").decode()}}
    gate.api = lambda _: of_items(item, {"exact": {"BOOL": True}, "B": {"S": "x"}})
    botocores = session.client("dynamodb", config=clients.config(LONGEST))
    one, other = dynamodb.query(**QUERY), botocores.query(**QUERY)
    assert undated(one) == undated(other)
    assert one["Items"][0]["packed"] == {"B": b"\0\xff"}
    ours, theirs = gate.asked
    assert ours.body == theirs.body
    told = {name.lower(): value for name, value in ours.headers.items()}
    missing = {name.lower() for name in theirs.headers} - told.keys()
    assert missing <= {"amz-sdk-invocation-id", "amz-sdk-request"}
    assert told["x-amz-security-token"] == "token"


def test_a_fault_of_the_service_is_tried_again_once(gate, dynamodb):
    gate.script = [answered({"__type": "InternalServerError"}, status=500), of_items()]
    answer = dynamodb.query(**QUERY)
    assert (answer["Items"], answer["ResponseMetadata"]["RetryAttempts"]) == ([], 1)
    gate.script = [answered({"__type": "a#ThrottlingException", "message": "slow"}, status=400)] * 2
    with pytest.raises(ClientError, match="ThrottlingException"):
        dynamodb.query(**QUERY)
    assert len(gate.asked) == 4


def test_a_refusal_is_botocores_error_and_not_tried_again(gate, dynamodb):
    gate.api = lambda _: answered({"__type": "a#ResourceNotFoundException", "message": "gone"}, status=400)
    with pytest.raises(dynamodb.exceptions.ResourceNotFoundException, match="gone"):
        dynamodb.query(**QUERY)
    assert len(gate.asked) == 1


def test_sqs_says_that_a_queue_is_gone_by_its_older_code(gate, session):
    older = {"x-amzn-query-error": "AWS.SimpleQueueService.NonExistentQueue;Sender"}
    gate.api = lambda _: answered({"__type": "com.amazonaws.sqs#QueueDoesNotExist"}, status=400, **older)
    with pytest.raises(ClientError) as raised:
        clients.sqs(longest=LONGEST).send_message_batch(**sent_to(gate))
    assert raised.value.response["Error"]["Code"] == "AWS.SimpleQueueService.NonExistentQueue"


@pytest.mark.parametrize("reply", [DROPPED, NO_HTTP], ids=["dropped", "no HTTP"])
def test_an_answer_that_is_lost_is_asked_for_again_once_and_then_is_botocores_error(gate, dynamodb, reply):
    gate.script = [reply]
    gate.api = lambda _: of_items()
    assert dynamodb.query(**QUERY)["Items"] == []
    gate.script = [reply] * 2
    with pytest.raises(ConnectionClosedError, match="Connection was closed"):
        dynamodb.query(**QUERY)
    assert len(gate.asked) == 4


def test_an_answer_that_does_not_come_is_waited_for_no_longer_than_the_client_may(gate, session):
    late = threading.Event()
    gate.api = lambda _: late.wait(HANG_SECONDS) and DROPPED
    client = clients.dynamodb(longest=timedelta(seconds=2.4))
    with pytest.raises(ReadTimeoutError):
        client.query(**QUERY)
    late.set()
    assert len(gate.asked) == 2


def test_an_answer_whose_checksum_is_wrong_is_asked_for_again(gate, dynamodb):
    good = of_items()
    gate.script = [answered({"Items": [], "Count": 0}, **{"x-amz-crc32": "1"})]
    gate.api = lambda _: answered({"Items": [], "Count": 0}, **{"x-amz-crc32": str(zlib.crc32(good.body))})
    assert dynamodb.query(**QUERY)["Count"] == 0
    assert len(gate.asked) == 2


def test_credentials_are_those_of_the_moment(gate, dynamodb):
    gate.api = lambda _: of_items()
    dynamodb.query(**QUERY)
    dynamodb._request_signer._credentials.access_key = "ROTATED"
    dynamodb.query(**QUERY)
    assert "Credential=AKID/" in gate.asked[0].headers["Authorization"]
    assert "Credential=ROTATED/" in gate.asked[1].headers["Authorization"]


def test_whoever_answers_in_botocores_place_is_asked_first(gate, dynamodb):
    with Stubber(dynamodb) as stubber:
        stubber.add_response("query", {"Items": [], "Count": 0})
        assert dynamodb.query(**QUERY)["Count"] == 0
    assert not gate.asked


@pytest.mark.parametrize("of", ["the environment", "the session"])
def test_a_callers_client_goes_by_the_proxies_of_his_environment_or_of_his_session(gate, session, monkeypatch, of):
    if of == "the session":
        session._session.set_default_client_config(Config(proxies={"http": gate.url}))
    else:
        monkeypatch.setenv("HTTP_PROXY", gate.url)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://elsewhere")
    gate.api = lambda _: of_items()
    clients.dynamodb(session, longest=LONGEST).query(**QUERY)
    assert gate.asked[0].path == "http://elsewhere/"


def test_a_callers_threads_have_a_connection_each_that_is_kept(gate, session):
    threads = clients.LANES + 2
    together = threading.Barrier(threads)
    gate.api = lambda _: (together.wait(60), of_items())[1]
    ask = clients.dynamodb(session, longest=timedelta(minutes=5)).query
    with ThreadPoolExecutor(threads) as pool:
        for _ in range(2):
            list(pool.map(lambda _: ask(**QUERY), range(threads)))
    assert len({asked.port for asked in gate.asked}) == threads


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


@pytest.fixture(params=["its certificate is trusted", "it is not"])
def secured(request, tmp_path, monkeypatch):
    """A gate that speaks TLS, and whether the environment trusts its certificate."""
    certificate, is_trusted = a_certificate(tmp_path), request.param == "its certificate is trusted"
    with a_secure_gate(certificate, monkeypatch, is_trusted=is_trusted) as opened:
        yield opened, is_trusted


@contextmanager
def a_secure_gate(certificate, monkeypatch, *, is_trusted=True, hesitates=0.0):
    for name in ("AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)
    if is_trusted:
        monkeypatch.setenv("AWS_CA_BUNDLE", str(certificate))
    with open_gate(certificate=certificate, hesitates=hesitates) as opened:
        opened.api = lambda _: of_items()
        monkeypatch.setattr(time, "sleep", lambda _: None)
        monkeypatch.setenv("AWS_ENDPOINT_URL", opened.url.replace("http://127.0.0.1", "https://localhost"))
        yield opened


@pytest.mark.parametrize("whose", ["a function's", "a caller's"])
def test_only_a_host_whose_certificate_is_trusted_gets_anything(secured, session, whose):
    gate, is_trusted = secured
    client = clients.dynamodb(session if whose == "a caller's" else None, longest=LONGEST)
    with nullcontext() if is_trusted else pytest.raises(SSLError, match="certificate verify failed"):
        client.query(**QUERY)
    assert bool(gate.asked) == is_trusted


def test_a_caller_far_away_has_time_for_the_handshake_of_tls(session, tmp_path, monkeypatch):
    with a_secure_gate(a_certificate(tmp_path), monkeypatch, hesitates=1.0) as gate:
        clients.dynamodb(session, longest=LONGEST).query(**QUERY)
        assert len(gate.asked) == 1


def test_the_authorities_are_read_once_whatever_connections_there_are(session, tmp_path, monkeypatch):
    read, load = [], ssl.SSLContext.load_verify_locations
    monkeypatch.setattr(
        ssl.SSLContext, "load_verify_locations", lambda *given, **named: read.append(given) or load(*given, **named)
    )
    together = threading.Barrier(3)
    with a_secure_gate(a_certificate(tmp_path), monkeypatch) as gate, ThreadPoolExecutor(3) as pool:
        clients.dynamodb(longest=LONGEST).query(**QUERY)
        gate.api = lambda _: (together.wait(60), of_items())[1]
        ask = clients.dynamodb(longest=LONGEST).query
        list(pool.map(lambda _: ask(**QUERY), range(3)))
    assert len(read) == 1


URLS = [
    "https://sqs.eu-west-1.amazonaws.com",
    "https://sqs.eu-west-1.amazonaws.com:443/",
    "https://sqs:80/",
    "http://SQS:80/a",
    "http://sqs:443/",
    "http://localhost:4566",
    "http://[::1]:4566",
    "https://[fe80::80]:443/",
    "http://[fe80::80]",
]


@pytest.mark.parametrize("url", URLS)
def test_a_host_is_signed_as_botocore_names_it(url):
    signer = auth.SigV4Auth(Credentials("AKID", "secret"), "sqs", "eu-west-1")
    named = signer.headers_to_sign(AWSRequest("POST", url))["host"]
    assert Connections(connect_seconds=1, read_seconds=1, lanes=1).to(url).host == named


def test_lanes_that_come_first_share_their_connections(monkeypatch):
    made = []
    monkeypatch.setattr(
        connections, "HTTPConnectionPool", lambda *_, **__: made.append(1) or threading.Event().wait(0.1)
    )
    to = Connections(connect_seconds=1, read_seconds=1, lanes=4).to
    with ThreadPoolExecutor(4) as pool:
        places = list(pool.map(to, ["http://sqs"] * 4))
    assert (len(made), len(set(map(id, places)))) == (1, 1)


@pytest.mark.parametrize("whose", ["a function's", "a caller's"])
def test_a_job_that_schedules_the_next_one_from_a_lambda_is_no_loop_to_lambda(gate, session, monkeypatch, whose):
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "consumer")
    monkeypatch.setenv("_X_AMZN_TRACE_ID", "Root=1-5759e988-bd862e3fe1be46a994272793;Lineage=a:1")
    gate.api = lambda _: answered({"Successful": [], "Failed": []})
    client = clients.sqs(session if whose == "a caller's" else None, longest=LONGEST)
    client.send_message_batch(**sent_to(gate))
    assert "x-amzn-trace-id" not in {name.lower() for name in gate.asked[0].headers}
    # It is botocore's to add, and taken off.
    session.client("sqs").send_message_batch(**sent_to(gate))
    assert "Lineage" in gate.asked[1].headers["X-Amzn-Trace-Id"]
