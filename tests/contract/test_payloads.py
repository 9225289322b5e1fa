"""What every place for large payloads promises."""

import base64
import hashlib
from datetime import timedelta
from urllib.parse import parse_qs, urlsplit

import pytest

from dueline.aws import clients
from dueline.aws.s3 import S3Payloads
from dueline.core.ports import Pointer
from dueline.errors import InvalidJob, Throttled, Unavailable
from tests.contract.answers import answering, raw_answer
from tests.contract.engines import LONGEST, QUEUES

ON_ALL = pytest.mark.parametrize("engine", QUEUES, indirect=True)
TEXT = '"\\u00e9 plain"'
A_MINUTE = timedelta(minutes=1)


@pytest.fixture
def payloads(engine):
    return engine.payloads()


def sha256(body):
    return hashlib.sha256(body).hexdigest()


@ON_ALL
def test_payload_replaces_an_earlier_one(payloads):
    payloads.put("0016/emails/x", "1")
    assert payloads.read(payloads.put("0016/emails/x", "2")) == "2"


@ON_ALL
def test_renewed_payload_stays_as_it_is(payloads):
    pointer = payloads.put("0032/emails/x", TEXT)
    assert pointer.key == "0032/emails/x"
    payloads.renew(pointer)
    assert payloads.read(pointer) == TEXT
    payloads.renew(Pointer(bucket="elsewhere", key="x"))
    with pytest.raises(InvalidJob, match="its payload"):
        payloads.renew(Pointer(bucket=pointer.bucket, key="0032/emails/gone"))


@ON_ALL
def test_missing_or_foreign_payload_is_not_copied(payloads):
    pointer = payloads.put("0016/emails/x", TEXT)
    missing, foreign = Pointer(bucket=pointer.bucket, key="0016/emails/y"), Pointer(bucket="not-ours", key="x")
    assert payloads.find(missing.key) is None
    assert payloads.copy(missing, to="0032/emails/z") is None
    assert payloads.copy(foreign, to="0032/emails/z") == foreign
    assert payloads.find("0032/emails/z") is None
    with pytest.raises(InvalidJob):
        payloads.read(missing)


@ON_ALL
def test_copy_keeps_its_source(payloads):
    source = payloads.put("uploads/emails/a.5.b", TEXT)
    copy = payloads.copy(source, to="0032/emails/z")
    assert copy == Pointer(bucket=source.bucket, key="0032/emails/z")
    assert payloads.read(copy) == payloads.read(source) == TEXT


@ON_ALL
def test_upload_is_stored_under_its_key(engine, payloads):
    body = TEXT.encode()
    url, headers = payloads.upload_url("uploads/emails/a", bytes=len(body), sha256=sha256(body), lasts=A_MINUTE)
    assert payloads.find("uploads/emails/a") is None
    assert engine.upload(payloads, url, headers, body)
    stored = payloads.find("uploads/emails/a")
    assert stored.bytes == len(body)
    assert stored.sha256 in (None, sha256(body))
    assert payloads.read(stored.pointer) == TEXT


@pytest.fixture
def s3(monkeypatch):
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    return clients.client("s3", longest=LONGEST)


def test_upload_url_signs_length_and_checksum(s3):
    payloads = S3Payloads(lambda: s3, "b-1")
    url, headers = payloads.upload_url("uploads/emails/a.5.b", bytes=5, sha256=sha256(b"12345"), lasts=A_MINUTE)
    parts = urlsplit(url)
    query = {name: value for name, (value,) in parse_qs(parts.query).items()}
    assert parts.netloc == "b-1.s3.eu-west-1.amazonaws.com"
    assert parts.path == "/uploads/emails/a.5.b"
    assert query["X-Amz-SignedHeaders"] == "content-length;host;x-amz-checksum-sha256"
    assert query["X-Amz-Expires"] == "60"
    checksum = base64.b64encode(hashlib.sha256(b"12345").digest()).decode()
    assert headers == {"content-length": "5", "x-amz-checksum-sha256": checksum}


def refusal(status, body=b""):
    return raw_answer(status, body, {})


@pytest.mark.parametrize(
    ("status", "code", "written", "read"),
    [
        (503, "SlowDown", Throttled, Throttled),
        (500, "InternalError", Unavailable, Unavailable),
        (400, "ExpiredToken", Unavailable, Unavailable),
        (403, "AccessDenied", Unavailable, InvalidJob),
        (404, "NoSuchBucket", Unavailable, InvalidJob),
        (200, "a page of a proxy", Unavailable, Unavailable),
    ],
)
def test_s3_refusal_is_a_dueline_error(s3, status, code, written, read):
    tag = "Error" if status >= 400 else "html"
    answer = refusal(status, f"<{tag}><Code>{code}</Code><Message>because</Message></{tag}>".encode())
    payloads, pointer = S3Payloads(lambda: answering("s3", answer, client=s3), "b-1"), Pointer(bucket="b-1", key="x")
    for call in (lambda: payloads.put("x", "1"), lambda: payloads.copy(pointer, to="y")):
        with pytest.raises(written):
            call()
    with pytest.raises(read, match="reading payload x"):
        payloads.read(pointer)


@pytest.mark.parametrize("status", [403, 500, 503])
def test_refused_head_is_unavailable(s3, status):
    # A HEAD has no body, and so no code but its status.
    payloads = S3Payloads(lambda: answering("s3", refusal(status), client=s3), "b-1")
    with pytest.raises(Unavailable):
        payloads.find("x")
