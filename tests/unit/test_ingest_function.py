"""The ingest function: what Lambda brings it, and what it answers."""

import importlib
import json
import sys
from datetime import timedelta
from types import SimpleNamespace

import pytest

from dueline.config.environment import IngestSettings
from dueline.config.registry import Registry
from dueline.core.ingest import InboundMessage, IngestResult
from dueline.core.message import Message, TypedText
from tests.builders import NOBODY, a_job

CONTEXT = SimpleNamespace(
    function_name="dueline-ingest",
    memory_limit_in_mb=512,
    invoked_function_arn="arn:aws:lambda:us-east-1:123456789012:function:dueline-ingest",
    aws_request_id="r",
    get_remaining_time_in_millis=lambda: 30_000,
)


@pytest.fixture
def ingest(monkeypatch):
    """The function, read as on Lambda, with no queue and no network."""
    settings = IngestSettings(deployment="d", queue_urls="http://localhost/")
    for name, value in {**settings.to_env(), **NOBODY}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setitem(sys.modules, "functions.queue_registry", SimpleNamespace(REGISTRY=Registry({})))
    monkeypatch.delitem(sys.modules, "functions.ingest", raising=False)
    yield importlib.import_module("functions.ingest")
    sys.modules.pop("functions.ingest", None)


def a_record(id, *, receives="1", **attributes):
    """Return a message as an event source mapping of SQS brings it.

    https://docs.aws.amazon.com/lambda/latest/dg/with-sqs.html
    """
    return {
        "messageId": id,
        "receiptHandle": "h",
        "body": '{"to":"ada"}',
        "attributes": {"ApproximateReceiveCount": receives, "SentTimestamp": "1545082649183"},
        "messageAttributes": attributes,
        "eventSource": "aws:sqs",
    }


def test_late_path_reports_by_queue_and_on_time(ingest, monkeypatch, capsys):
    late = [a_job(due=ingest.DEPLOYMENT.clock.now() - timedelta(minutes=minutes)) for minutes in (0, 2, 3)]
    monkeypatch.setattr(ingest, "INGEST", SimpleNamespace(run=lambda batch, *, until: IngestResult(late=late)))
    ingest.handler({"Records": [a_record("m")]}, CONTEXT)
    [reported] = [json.loads(line) for line in capsys.readouterr().out.splitlines() if "_aws" in line]
    assert (reported["queue"], reported["Dispatched"], reported["OnTime"], reported["Delayed"]) == (
        "emails",
        [3],
        [1],
        [2],
    )


def test_ingest_function_reports_failed_messages(ingest, monkeypatch):
    batches = []

    def run(batch, *, until):
        batches.append(batch)
        return IngestResult(failed={"m2", "m1"})

    monkeypatch.setattr(ingest, "INGEST", SimpleNamespace(run=run))
    text = {"stringValue": "x", "stringListValues": [], "binaryListValues": [], "dataType": "String"}
    of_bytes = {"binaryValue": "eA==", "stringListValues": [], "binaryListValues": [], "dataType": "Binary"}
    records = [a_record("m1"), a_record("m2", receives="7", **{"dueline-id": text, "theirs": of_bytes})]
    answer = ingest.handler({"Records": records}, CONTEXT)
    assert answer == {"batchItemFailures": [{"itemIdentifier": "m1"}, {"itemIdentifier": "m2"}]}
    bare = Message(body='{"to":"ada"}')
    attributed = Message(body='{"to":"ada"}', attributes={"dueline-id": "x", "theirs": TypedText.of_bytes(b"x")})
    assert batches == [
        [
            InboundMessage(message_id="m1", message=bare, receives=1),
            InboundMessage(message_id="m2", message=attributed, receives=7),
        ]
    ]
