import importlib
import json
import logging
import re
from types import SimpleNamespace
from typing import Any

import pytest

import functions.telemetry
from dueline.config import metrics
from functions.telemetry import count, log, report
from tests.contract.answers import answering


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_queue_metrics_have_deployment_and_queue(capsys: pytest.CaptureFixture[str]) -> None:
    report({}, deployment="d", of_queues={"emails": {metrics.DISPATCHED: 3, metrics.LATENESS: 0.0}})
    (answer,) = lines(capsys)
    assert answer["_aws"]["CloudWatchMetrics"][0]["Namespace"] == "Dueline"
    assert answer["_aws"]["CloudWatchMetrics"][0]["Dimensions"] == [["deployment", "queue"]]
    assert (answer["deployment"], answer["queue"]) == ("d", "emails")
    assert (answer["Dispatched"], answer["Lateness"]) == ([3.0], [0.0])


def test_each_further_queue_has_a_line_of_metrics(
    capsys: pytest.CaptureFixture[str],
) -> None:
    of_queues = {name: {metrics.DISPATCHED: times} for times, name in enumerate(("emails", "invoices", "texts"), 1)}
    report({metrics.INGESTED: 9}, deployment="d", of_queues=of_queues)
    first, *others = lines(capsys)
    answer = [(each["Dimensions"], each["Metrics"][0]["Name"]) for each in first["_aws"]["CloudWatchMetrics"]]
    assert answer == [([["deployment"]], "Ingested"), ([["deployment", "queue"]], "Dispatched")]
    assert (first["deployment"], first["queue"], first["Ingested"], first["Dispatched"]) == ("d", "emails", [9], [1])
    assert [(each["queue"], each["Dispatched"]) for each in others] == [("invoices", [2]), ("texts", [3])]


def test_metric_filters_read_a_requests_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    count({metrics.SUBMITTED: 2, metrics.DISPATCHED: 0}, deployment="d", queue="emails")
    count({metrics.SUBMITTED: 0}, deployment="d", queue="emails")
    assert capsys.readouterr().out == '{"deployment":"d","queue":"emails","Submitted":2}\n'
    with pytest.raises(ValueError, match=metrics.PARKED):
        count({metrics.PARKED: 1}, deployment="d", queue="emails")


def test_counts_of_nothing_are_not_reported(capsys: pytest.CaptureFixture[str]) -> None:
    report({metrics.PARKED: 0, metrics.INGESTED: 0}, deployment="d")
    assert capsys.readouterr().out == ""


def test_zero_on_time_is_reported_only_beside_delayed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    report({}, deployment="d", of_queues={"emails": {metrics.ON_TIME: 0, metrics.DELAYED: 2}})
    report({}, deployment="d", of_queues={"emails": {metrics.ON_TIME: 2, metrics.DELAYED: 0}})
    report({}, deployment="d", of_queues={"emails": {metrics.ON_TIME: 0, metrics.DELAYED: 0}})
    late, in_time = lines(capsys)
    assert (late["OnTime"], late["Delayed"]) == ([0], [2])
    assert in_time["OnTime"] == [2]
    assert "Delayed" not in in_time


def test_lateness_that_is_not_known_is_not_reported_and_none_is(capsys: pytest.CaptureFixture[str]) -> None:
    report({}, deployment="d", of_queues={"emails": {metrics.LATENESS: None}})
    assert capsys.readouterr().out == ""
    report({}, deployment="d", of_queues={"emails": {metrics.LATENESS: 0.0}})
    assert [line["Lateness"] for line in lines(capsys)] == [[0.0]]


def test_log_line_has_event_and_request_id(
    capsys: pytest.CaptureFixture[str],
) -> None:
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
    assert answer == {
        "level": "INFO",
        "message": "ticked",
        "function_request_id": "8476a536",
        "queue": "emails",
    }


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
    logger = importlib.reload(functions.telemetry).log("a-test-of-debug")
    answering("dynamodb", (200, {})).put_item(TableName="t", Item={"pk": {"S": "the-payload"}})
    logger.debug("scheduled")
    assert [record.message for record in caplog.records if record.levelno < logging.INFO] == ["scheduled"]
    assert [line["message"] for line in lines(capsys)] == ["scheduled"]
    assert not any(secret in caplog.text for secret in (*secrets.values(), "the-payload"))
