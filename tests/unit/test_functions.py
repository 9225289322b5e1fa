"""The ingest, planner and tick functions: what Lambda brings them, what they answer, and what they report."""

import importlib
import json
import logging
import re
from collections import Counter
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

import dueline.functions.telemetry
from dueline.config import metrics
from dueline.config.environment import PeriodSettings, Settings, TickSettings
from dueline.config.registry import Registry
from dueline.core.ingest import InboundMessage, IngestResult
from dueline.core.job import Partition
from dueline.core.message import Message, TypedText
from dueline.errors import Unavailable
from dueline.functions.telemetry import log, report
from dueline.schedules.planner import Planned, PlanningMessage
from tests.api_harness import CONTEXT, import_function, sqs_record
from tests.builders import EMAILS, NOW, a_job, a_queue
from tests.contract.answers import answering
from tests.system import System


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


@pytest.fixture
def ingest(monkeypatch):
    settings = Settings(deployment="d", queue_urls="http://localhost/")
    return import_function(monkeypatch, "ingest", settings, Registry({}))


def test_late_path_reports_by_queue_and_on_time(ingest, monkeypatch, capsys):
    now = ingest.DEPLOYMENT.clock.now()
    late = [a_job(due=now - timedelta(minutes=minutes)) for minutes in (0, 2, 3)]
    late.append(a_job(due=now, partition=Partition(queue="invoices", number=0)))
    monkeypatch.setattr(ingest, "INGEST", SimpleNamespace(run=lambda batch, *, until: IngestResult(late=late)))
    ingest.handler({"Records": [sqs_record("m")]}, CONTEXT)
    of_deployment, emails, invoices = lines(capsys)
    assert of_deployment == {"deployment": "d", "LatePath": 4}
    assert emails == {"deployment": "d", "queue": "emails", "Dispatched": 3, "OnTime": 1, "Delayed": 2}
    assert invoices == {"deployment": "d", "queue": "invoices", "Dispatched": 1, "OnTime": 1}


def test_ingest_function_reports_failed_messages(ingest, monkeypatch):
    run = Mock(return_value=IngestResult(failed={"m2", "m1"}))
    monkeypatch.setattr(ingest, "INGEST", SimpleNamespace(run=run))
    text = {"stringValue": "x", "stringListValues": [], "binaryListValues": [], "dataType": "String"}
    of_bytes = {"binaryValue": "eA==", "stringListValues": [], "binaryListValues": [], "dataType": "Binary"}
    records = [sqs_record("m1"), sqs_record("m2", receives=7, **{"dueline-id": text, "theirs": of_bytes})]
    answer = ingest.handler({"Records": records}, CONTEXT)
    assert answer == {"batchItemFailures": [{"itemIdentifier": "m1"}, {"itemIdentifier": "m2"}]}
    bare = Message(body="{}")
    attributed = Message(body="{}", attributes={"dueline-id": "x", "theirs": TypedText.of_bytes(b"x")})
    (call,) = run.call_args_list
    assert call.args[0] == [
        InboundMessage(message_id="m1", message=bare, receives=1),
        InboundMessage(message_id="m2", message=attributed, receives=7),
    ]


# The planner


@pytest.fixture
def planner(monkeypatch):
    settings = PeriodSettings(deployment="d", queue_urls="http://localhost/", tick_period=60)
    return import_function(monkeypatch, "planner", settings, Registry({"emails": a_queue(), "invoices": a_queue()}))


def plans(planner, monkeypatch, done, *, hide=None):
    """Let the planner answer with `done`; return what is called with each batch. `hide` hides messages."""
    run = Mock(return_value=done)
    monkeypatch.setattr(planner, "Planner", lambda *_, **__: SimpleNamespace(run=run))
    monkeypatch.setattr(planner, "INBOX", SimpleNamespace(hide=hide))
    return run


def test_step_has_the_time_of_its_first_receive(planner, monkeypatch):
    run = plans(planner, monkeypatch, Planned())
    assert planner.handler({"Records": [sqs_record("m")]}, CONTEXT) == {"batchItemFailures": []}
    first = datetime(2026, 11, 22, 8, 0, 0, 250_000, UTC)
    run.assert_called_once_with([PlanningMessage(message_id="m", body="{}", first_received=first)])


@pytest.mark.parametrize("refusal", [None, Unavailable("no answer")])
def test_waiting_step_is_hidden_longer(planner, monkeypatch, refusal):
    records = [
        sqs_record("first"),
        sqs_record("third", receives=3),
        sqs_record("old", receives=300),
        sqs_record("done"),
    ]
    plans(planner, monkeypatch, Planned(again={"first", "third", "old"}), hide=(hide := Mock(side_effect=refusal)))
    answer = planner.handler({"Records": records}, CONTEXT)
    hide.assert_called_once_with(["receipt of first", "receipt of third", "receipt of old"], [2, 8, 60])
    assert {each["itemIdentifier"] for each in answer["batchItemFailures"]} == {"first", "third", "old"}


def test_planned_missed_and_dropped_are_counted(planner, monkeypatch, capsys):
    done = Planned(submitted=Counter(emails=3, invoices=2), missed=Counter(emails=1), dropped=1)
    plans(planner, monkeypatch, done)
    for _ in range(2):
        planner.DISPATCHED.record([a_job(due=planner.DEPLOYMENT.clock.now())])
    for dispatched in ({"Dispatched": 2, "OnTime": 2}, {}):
        planner.handler({"Records": [sqs_record("m")]}, CONTEXT)
        deployments, *of_queues = sorted(lines(capsys), key=lambda line: line.get("queue", ""))
        assert deployments == {"deployment": "d", "PlansDropped": 1}
        assert of_queues == [
            {"deployment": "d", "queue": "emails", "Planned": 3, "Missed": 1, **dispatched},
            {"deployment": "d", "queue": "invoices", "Planned": 2},
        ]


@pytest.mark.parametrize(("stalled", "queues"), [(0, []), (2, [{"invoices": 2}])])
def test_watch_notes_stalled_schedules(planner, monkeypatch, caplog, stalled, queues):
    noted = watched(planner, monkeypatch, emails=0, invoices=stalled)
    planner.handler({"watch": True}, CONTEXT)
    assert noted == [("schedules", stalled)]
    assert [line.queues for line in caplog.records if line.message == "schedules stood still"] == queues


def test_unreadable_queue_fails_the_watch_last(planner, monkeypatch, caplog):
    """And leaves it unnoted: what was not looked at is not well."""
    noted = watched(planner, monkeypatch, emails=Unavailable("no answer"), invoices=1)
    with pytest.raises(Unavailable):
        planner.handler({"watch": True}, CONTEXT)
    assert [line.queues for line in caplog.records if line.message == "schedules stood still"] == [{"invoices": 1}]
    assert noted == []


def watched(planner, monkeypatch, **stalled):
    """Let the watch find so many schedules of each queue that stand still, or raise; return what it notes."""
    noted, look = [], {queue: Mock(side_effect=[count]) for queue, count in stalled.items()}
    monkeypatch.setattr(planner, "WATCHDOG", SimpleNamespace(revive=lambda queue, *, until: look[queue]()))
    notes = SimpleNamespace(put=lambda watch, *, now, count: noted.append((watch, count)))
    monkeypatch.setattr(planner, "NOTES", notes)
    return noted


# On time is what SQS shows within a minute of when it is due


@pytest.fixture
def tick(monkeypatch):
    settings = TickSettings(deployment="d", queue_urls="http://localhost/", tick_period=60, lookahead=240, lease=30)
    return import_function(monkeypatch, "tick", settings, Registry({"emails": a_queue()}))


def test_tick_reports_jobs_on_time(tick, monkeypatch, capsys):
    system = System(a_queue())
    system.put(*(a_job(due=NOW - timedelta(seconds=late)) for late in (300, 61, 60, 0, -30)))
    in_memory = SimpleNamespace(
        clock=system.clock, table=system.table, dispatcher=lambda queue, precise: system.dispatcher(queue)
    )
    monkeypatch.setattr(tick, "DEPLOYMENT", in_memory)
    tick.handler({"queue": EMAILS.queue, "partition": EMAILS.number}, CONTEXT)
    [line] = lines(capsys)
    assert (line["queue"], line["Dispatched"], line["OnTime"], line["Delayed"]) == ("emails", 5, 3, 2)
    assert "_aws" not in line
    # An idle one has nothing to say.
    tick.handler({"queue": EMAILS.queue, "partition": EMAILS.number}, CONTEXT)
    assert capsys.readouterr().out == ""


# Lines of figures and of the log


def test_figures_are_metrics_of_the_deployment_or_by_setting(capsys: pytest.CaptureFixture[str]) -> None:
    of_queue = {metrics.DISPATCHED: 3, metrics.LATENESS: 61.5, metrics.PARKED: 1}
    of_deployment = {metrics.INGESTED: 9, metrics.DEAD_LETTERS: 0, metrics.ON_TIME_SHARE: None}
    of_queues = {"emails": of_queue, "invoices": of_queue}
    report(of_deployment, deployment="d", of_queues=of_queues, measured={"invoices"})
    deployments, plain, measured = lines(capsys)
    (directive,) = deployments.pop("_aws")["CloudWatchMetrics"]
    assert deployments == {"deployment": "d", "Ingested": 9, "DeadLetters": 0}
    assert directive["Dimensions"] == [["deployment"]]
    assert directive["Metrics"] == [{"Name": "DeadLetters", "Unit": "Count"}]
    assert plain == {"deployment": "d", "queue": "emails", "Dispatched": 3, "Lateness": 61.5, "Parked": 1}
    (directive,) = measured.pop("_aws")["CloudWatchMetrics"]
    assert measured == {**plain, "queue": "invoices"}
    assert directive == {
        "Namespace": "Dueline",
        "Dimensions": [["deployment", "queue"]],
        "Metrics": [{"Name": "Dispatched", "Unit": "Count"}, {"Name": "Lateness", "Unit": "Seconds"}],
    }


def test_zero_on_time_needs_delayed_jobs(capsys: pytest.CaptureFixture[str]) -> None:
    report({}, deployment="d", of_queues={"emails": {metrics.ON_TIME: 0, metrics.DELAYED: 2}})
    report({}, deployment="d", of_queues={"emails": {metrics.ON_TIME: 2, metrics.DELAYED: 0, metrics.LATENESS: None}})
    late, in_time = lines(capsys)
    assert (late["OnTime"], late["Delayed"]) == (0, 2)
    assert in_time == {"deployment": "d", "queue": "emails", "OnTime": 2}


def test_log_line_has_event_and_request_id(capsys: pytest.CaptureFixture[str]) -> None:
    logger = log("a-test")
    context = SimpleNamespace(
        function_name="dueline-tick", memory_limit_in_mb=512, invoked_function_arn="arn:…", aws_request_id="8476a536"
    )

    @logger.inject_lambda_context
    def handler(event: dict[str, str], context: object) -> None:
        logger.info("ticked", extra={"queue": "emails"})

    handler({}, context)
    (answer,) = lines(capsys)
    # Of another form, Lambda would take the level of each line to be INFO.
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d", answer.pop("timestamp"))
    # Of the process: another test may have been first.
    assert answer.pop("cold_start") in (True, False)
    assert answer == {"level": "INFO", "message": "ticked", "function_request_id": "8476a536", "queue": "emails"}


def test_debug_logs_no_payloads_or_tokens(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    secrets = {
        name: f"of-{name.lower()}" for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
    }
    for name, value in {**secrets, "AWS_DEFAULT_REGION": "eu-west-1", "AWS_LAMBDA_LOG_LEVEL": "DEBUG"}.items():
        monkeypatch.setenv(name, value)
    # As Lambda does it before it reads the function.
    caplog.set_level(logging.DEBUG)
    logger = importlib.reload(dueline.functions.telemetry).log("a-test-of-debug")
    answering("dynamodb", (200, {})).put_item(TableName="t", Item={"pk": {"S": "the-payload"}})
    logger.debug("scheduled")
    assert [record.message for record in caplog.records if record.levelno < logging.INFO] == ["scheduled"]
    assert [line["message"] for line in lines(capsys)] == ["scheduled"]
    assert not any(secret in caplog.text for secret in (*secrets.values(), "the-payload"))
