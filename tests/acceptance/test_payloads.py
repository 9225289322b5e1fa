"""Payloads that are too large for messages or rows: each comes as it was sent, to a plain consumer and to a worker."""

import base64
import hashlib
import json
import random

import pytest
from botocore.exceptions import ClientError

from dueline import NewJob
from tests.acceptance.conftest import IS_AWS
from tests.acceptance.early import PAYLOADS, UPLOADED, scattered, schedule, upload
from tests.acceptance.inbox import compact, jobs_of
from tests.e2e.newcomer import code_of
from tests.waiting import HANG_SECONDS, wait_until

DAY, KIB = 86_400, 1024
# In JSON; around what a row keeps and what a message takes, up to the most that there may be.
SIZES = (1, 8 * KIB - 1, 8 * KIB, 8 * KIB + 1, 16 * KIB, 256 * KIB - 1, 256 * KIB, 256 * KIB + 1, 10 * KIB**2)
[SNIPPET] = code_of("docs/architecture.md", "python")


@pytest.fixture(scope="module")
def bucket(names, session, aws):
    account = aws("sts").get_caller_identity()["Account"]
    return names.payloads(account=account, region=str(session.region_name))


@pytest.fixture(scope="module")
def consumer_s3(holder):
    return holder("consumer", "plain").client("s3")


@pytest.fixture(scope="module")
def read(consumer_s3):
    """Read a message's payload as docs/architecture.md shows any consumer."""
    code = {"json": json}
    exec(SNIPPET, code)

    def payload_of(landed):
        attributes = {name: {"StringValue": each} for name, each in landed.attributes.items()}
        return str(code["payload_of"]({"Body": landed.body, "MessageAttributes": attributes}, consumer_s3))

    return payload_of


def key_of(id, payload, *, days):
    digest = hashlib.sha256(compact(payload).encode()).hexdigest()
    return f"{days:04}/plain/{id.split('.')[-1]}.{digest}"


def test_large_payload_comes_as_a_pointer(http, early, inbox, read, bucket):
    direct = schedule(http, "plain", payload=PAYLOADS["300 KB"])
    for job, payload in (
        (direct, PAYLOADS["300 KB"]),
        *((early[size], PAYLOADS[size]) for size in ("20 KB", "300 KB")),
    ):
        landed = inbox("plain").wait_for(job["id"])
        name, pointer = json.loads(landed.body)
        assert name == "software.amazon.payloadoffloading.PayloadS3Pointer"
        assert pointer == {"s3BucketName": bucket, "s3Key": key_of(job["id"], payload, days=64)}
        assert landed.attributes["ExtendedPayloadSize"] == str(len(payload) + 2)
        assert read(landed) == compact(payload)


def test_upload_of_6_mb_is_read_by_one_get(early, inbox, read):
    landed, text = inbox("plain").wait_for(early["uploaded"]["id"]), compact(UPLOADED)
    assert landed.attributes["ExtendedPayloadSize"] == str(len(text))
    assert read(landed) == text


@pytest.mark.parametrize(("said", "sent"), [(b'"cd"', b'"ab"'), (b'"abcd"', b'"abc"')], ids=["checksum", "length"])
def test_upload_of_other_content_is_refused(http, said, sent):
    claimed = {"bytes": len(said), "sha256": hashlib.sha256(said).hexdigest()}
    presigned, answer = upload(http, "plain", sent, **claimed)
    assert 400 <= answer.status_code < 500
    assert http.post("/queues/plain/jobs", json={"upload": presigned["upload"]}).status_code == 400


def test_large_payload_moves_with_its_job(http, aws, inbox, read, bucket):
    payload = scattered(20_000)
    job = schedule(http, "plain", payload=payload, delay=40 * DAY)
    span = {"from": job["due"], "limit": 100}

    def list_jobs():
        return {each["id"]: each for each in http.get("/queues/plain/jobs", params=span).json()["jobs"]}

    assert wait_until(lambda: job["id"] in list_jobs())
    place = list_jobs()[job["id"]]["payload_at"]
    assert place == {"bucket": bucket, "key": key_of(job["id"], payload, days=128), "bytes": 20_002}
    moved = http.patch(f"/queues/plain/jobs/{job['id']}", json={"delay": 0})
    assert moved.status_code == 200, moved.text
    aws("s3").delete_object(Bucket=bucket, Key=place["key"])
    assert read(inbox("plain").wait_for(moved.json()["id"])) == compact(payload)


def test_page_of_the_largest_payloads_is_answered(http):
    worst = "é" * (256 * KIB // 6 - 1)
    for second in range(5):
        schedule(http, "flood", payload=worst, at=f"2034-01-01T00:00:0{second}Z")

    def page(**query):
        span = {"from": "2034-01-01T00:00:00Z", "to": "2034-01-02T00:00:00Z"}
        return http.get("/queues/flood/jobs", params=span | query).raise_for_status().json()

    assert wait_until(lambda: [job["payload"] for job in page()["jobs"]] == [worst] * 4)
    rest = page(next=page()["next"])
    assert (len(rest["jobs"]), rest["next"]) == (1, None)


def test_consumer_reads_no_other_queues_payloads(consumer_s3, aws, bucket):
    keys = ["0032/flood/x", "0032/plain-vip/x", "uploads/plain/x"]
    for key in [*keys, "0032/plain/x"]:
        aws("s3").put_object(Bucket=bucket, Key=key, Body=b"1")
    for key in keys:
        with pytest.raises(ClientError, match="AccessDenied"):
            consumer_s3.get_object(Bucket=bucket, Key=key)
    with pytest.raises(ClientError, match="AccessDenied"):
        consumer_s3.put_object(Bucket=bucket, Key="0032/plain/x", Body=b"2")
    assert consumer_s3.get_object(Bucket=bucket, Key="0032/plain/x")["Body"].read() == b"1"


@pytest.mark.parametrize("client", [{}, {"direct": True}], ids=["invoked", "direct"], indirect=True)
def test_payload_of_each_size_arrives(client, working, figure, table_after):
    came, sent, scatter = {}, {}, random.Random(8)
    with working("precise", lambda job: came.update({job.id: job.payload})):
        for delay in (1, table_after) if IS_AWS else (1,):
            for size in SIZES:
                payload = base64.b64encode(scatter.randbytes(size)).decode()[: size - 2] if size > 1 else 7
                (job,) = jobs_of(client.schedule_many("precise", [NewJob(payload=payload, delay=delay)]))
                sent[job.id] = payload
        assert wait_until(lambda: sent.keys() <= came.keys(), seconds=table_after + HANG_SECONDS), "lost"
    assert figure("payloads that came as something else", sum(came[id] != sent[id] for id in sent)) == 0
