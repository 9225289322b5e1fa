"""Payloads that are too large for messages or rows, through the deployed template, to a plain consumer."""

import hashlib
import json
import re
from collections.abc import Callable
from datetime import datetime
from typing import Any

import boto3
import httpx
import pytest
from botocore.exceptions import ClientError

from dueline import Client
from dueline.config.names import Names
from local.emulator import ACCOUNT, CREDENTIALS, REGION, Emulator
from local.endpoints import Endpoints
from local.template import ROOT
from tests.e2e.early import PAYLOADS, UPLOADED, Job, compact, scattered, schedule, upload
from tests.e2e.inbox import Receive, wait_until

DAY = 86_400
BUCKET = Names("e2e").payloads(account=ACCOUNT, region=REGION)

(SNIPPET,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "architecture.md").read_text(), re.DOTALL)

Read = Callable[[dict[str, Any]], str]


@pytest.fixture(scope="module")
def read(worker: Callable[[str], Any]) -> Read:
    """Read a message's payload as docs/architecture.md tells any consumer to."""
    s3, code = worker("s3"), {"json": json}
    exec(SNIPPET, code)
    return lambda message: str(code["payload_of"](message, s3))


def key_of(id: str, payload: Any, *, days: int) -> str:
    digest = hashlib.sha256(compact(payload).encode()).hexdigest()
    return f"{days:04}/archive/{id.split('.')[-1]}.{digest}"


def size_of(message: dict[str, Any]) -> dict[str, str]:
    size: dict[str, str] = message["MessageAttributes"]["ExtendedPayloadSize"]
    return {name: size[name] for name in ("DataType", "StringValue")}


def test_a_large_payload_comes_as_a_pointer_and_is_read_by_one_get(
    http: httpx.Client, early: dict[str, Job], receive: Receive, read: Read
) -> None:
    at_once = schedule(http, "archive", payload=PAYLOADS["300 KB"])
    assert_comes_as_a_pointer(at_once, PAYLOADS["300 KB"], message=receive(at_once["id"]), read=read)
    for size in ("20 KB", "300 KB"):
        assert_comes_as_a_pointer(early[size], PAYLOADS[size], message=receive(early[size]["id"]), read=read)


def assert_comes_as_a_pointer(job: Job, payload: str, *, message: dict[str, Any], read: Read) -> None:
    name, pointer = json.loads(message["Body"])
    assert name == "software.amazon.payloadoffloading.PayloadS3Pointer"
    assert pointer == {"s3BucketName": BUCKET, "s3Key": key_of(job["id"], payload, days=32)}
    assert size_of(message) == {"DataType": "Number", "StringValue": str(len(payload) + 2)}
    assert read(message) == compact(payload)


def test_a_payload_that_compresses_well_comes_untouched(
    early: dict[str, Job], receive: Receive, read: Read, emulator: Emulator, endpoints: Endpoints
) -> None:
    job = early["compressible"]
    message = receive(job["id"])
    assert message["Body"] == read(message) == compact(PAYLOADS["compressible"])
    assert "ExtendedPayloadSize" not in message["MessageAttributes"]
    _, partition, _, _, uid = job["id"].split(".")
    asked = {"pk": {"S": f"archive#{partition}"}, "sk": {"S": f"{job['due']}#{uid}#job"}}
    row = emulator.client("dynamodb").get_item(TableName=endpoints.table, Key=asked)["Item"]
    assert "payload" not in row
    assert len(row["packed"]["B"]) < 1000


def test_a_payload_of_6_mb_is_uploaded_and_read_by_one_get(early: dict[str, Job], receive: Receive, read: Read) -> None:
    message, text = receive(early["uploaded"]["id"]), compact(UPLOADED)
    assert size_of(message)["StringValue"] == str(len(text))
    assert read(message) == text


def test_an_upload_is_told_with_all_that_sending_it_takes(http: httpx.Client) -> None:
    told = http.post("/queues/archive/uploads", json={"bytes": 5, "sha256": "0" * 64}).json()
    assert told["method"] == "PUT"
    assert datetime.fromisoformat(told["expires"]).tzinfo is not None


def test_an_upload_that_was_never_sent_makes_no_job(http: httpx.Client) -> None:
    answer = http.post("/queues/archive/uploads", json={"bytes": 5, "sha256": "0" * 64})
    refused = http.post("/queues/archive/jobs", json={"upload": answer.json()["upload"]})
    assert refused.status_code == 400
    assert "nothing was uploaded" in refused.json()["detail"]


def test_s3_refuses_an_upload_of_other_content(http: httpx.Client, emulator: Emulator) -> None:
    other = hashlib.sha256(b'"cd"').hexdigest()
    begun, sent = upload(http, "archive", b'"ab"', verify=emulator.trust(), sha256=other)
    assert sent.status_code == 400
    assert http.post("/queues/archive/jobs", json={"upload": begun["upload"]}).status_code == 400


def test_a_payload_given_and_uploaded_under_one_key_is_one_job(http: httpx.Client, emulator: Emulator) -> None:
    payload = scattered(9_000)
    begun, sent = upload(http, "archive", compact(payload).encode(), verify=emulator.trust())
    assert sent.is_success, sent.text
    first = schedule(http, "archive", payload=payload, delay=DAY, key="given and uploaded")
    second = http.post(
        "/queues/archive/jobs", json={"upload": begun["upload"], "delay": DAY, "key": "given and uploaded"}
    )
    assert (second.status_code, second.json()["id"]) == (200, first["id"])


def test_a_large_payload_is_listed_as_where_it_is_and_moves_with_its_job(
    http: httpx.Client, emulator: Emulator, receive: Receive, read: Read
) -> None:
    payload = scattered(20_000)
    job = schedule(http, "archive", payload=payload, delay=40 * DAY)
    span = {"from": job["due"], "limit": 100}

    def listed() -> dict[str, Any]:
        return {each["id"]: each for each in http.get("/queues/archive/jobs", params=span).json()["jobs"]}

    assert wait_until(lambda: job["id"] in listed())
    place = listed()[job["id"]]["payload_at"]
    assert place == {"bucket": BUCKET, "key": key_of(job["id"], payload, days=64), "bytes": 20_002}
    moved = http.patch(f"/queues/archive/jobs/{job['id']}", json={"delay": 0})
    assert moved.status_code == 200, moved.text
    emulator.client("s3").delete_object(Bucket=BUCKET, Key=place["key"])
    assert read(receive(moved.json()["id"])) == compact(payload)


def test_a_worker_reads_no_other_queues_payloads_and_no_uploads(
    http: httpx.Client, worker: Callable[[str], Any], emulator: Emulator
) -> None:
    keys = ["0032/emails/x", "0032/archive-vip/x", "uploads/archive/x"]
    for key in [*keys, "0032/archive/x"]:
        emulator.client("s3").put_object(Bucket=BUCKET, Key=key, Body=b"1")
    for key in keys:
        with pytest.raises(ClientError, match="AccessDenied"):
            worker("s3").get_object(Bucket=BUCKET, Key=key)
    with pytest.raises(ClientError, match="AccessDenied"):
        worker("s3").put_object(Bucket=BUCKET, Key="0032/archive/x", Body=b"2")
    assert worker("s3").get_object(Bucket=BUCKET, Key="0032/archive/x")["Body"].read() == b"1"


def test_100_payloads_of_12_kb_fit_into_a_call_and_each_is_kept_elsewhere(
    http: httpx.Client, emulator: Emulator
) -> None:
    jobs = [{"payload": scattered(12_000 + number), "delay": 3 * DAY} for number in range(100)]
    answer = http.post("/queues/archive/jobs", json={"jobs": jobs})
    assert answer.status_code == 200
    told = answer.json()["jobs"]
    assert not [job for job in told if "error" in job]
    s3 = emulator.client("s3")
    for job, asked in zip(told[::10], jobs[::10], strict=True):
        key = key_of(job["id"], asked["payload"], days=32)
        assert s3.get_object(Bucket=BUCKET, Key=key)["Body"].read().decode() == compact(asked["payload"])


@pytest.mark.parametrize(
    ("body", "status", "named"),
    [
        ({"bytes": 10 * 1024 * 1024 + 1, "sha256": "0" * 64}, 413, "10485761 bytes: at most 10485760"),
        ({"bytes": 0, "sha256": "0" * 64}, 400, "bytes is 0"),
        ({"bytes": 1, "sha256": "X"}, 400, "sha256 is"),
        ({"bytes": "1", "sha256": "0" * 64}, 400, "bytes is"),
        ({"sha256": "0" * 64}, 400, "bytes is missing"),
    ],
)
def test_an_upload_that_could_make_no_job_is_refused(
    http: httpx.Client, body: dict[str, Any], status: int, named: str
) -> None:
    answer = http.post("/queues/archive/uploads", json=body)
    assert answer.status_code == status
    assert named in answer.json()["detail"]


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({"payload": None, "upload": "x"}, "payload and upload are both given"),
        ({"upload": "x"}, "upload is 'x'"),
        ({"upload": f"{'0' * 36}.5.{'0' * 64}"}, "nothing was uploaded"),
    ],
)
def test_a_job_has_a_payload_or_an_upload(http: httpx.Client, body: dict[str, Any], named: str) -> None:
    answer = http.post("/queues/archive/jobs", json=body)
    assert answer.status_code == 400
    assert named in answer.json()["detail"]


@pytest.mark.parametrize("direct", [False, True], ids=["over http", "direct"])
def test_the_client_sends_a_payload_that_no_request_takes(
    receive: Receive, read: Read, emulator: Emulator, monkeypatch: pytest.MonkeyPatch, *, direct: bool
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", emulator.endpoint)
    monkeypatch.setenv("AWS_CA_BUNDLE", str(emulator.authority))
    session = boto3.Session(region_name=REGION, **CREDENTIALS)
    payload = scattered(6_000_000)
    job = Client.connect("e2e", session=session, direct=direct).schedule("archive", payload, delay=1)
    message = receive(job.id)
    assert size_of(message)["StringValue"] == "6000002"
    assert read(message) == compact(payload)
