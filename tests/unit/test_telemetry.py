import importlib
import json
import logging
import re
from types import SimpleNamespace
from typing import Any

import pytest

import functions.log
from dueline.config import metrics
from functions.log import log
from functions.metrics import count, report
from tests.contract.answers import answering


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_a_queues_metrics_are_found_by_deployment_and_queue_alone(capsys: pytest.CaptureFixture[str]) -> None:
    report({}, deployment="d", of_queues={"emails": {metrics.DISPATCHED: 3, metrics.LATENESS: 0.0}})
    (told,) = lines(capsys)
    assert told["_aws"]["CloudWatchMetrics"][0]["Namespace"] == "Dueline"
    assert told["_aws"]["CloudWatchMetrics"][0]["Dimensions"] == [["deployment", "queue"]]
    assert (told["deployment"], told["queue"]) == ("d", "emails")
    assert (told["Dispatched"], told["Lateness"]) == ([3.0], [0.0])


def test_an_invocation_reports_in_one_line_and_in_one_more_for_each_further_queue(
    capsys: pytest.CaptureFixture[str],
) -> None:
    of_queues = {name: {metrics.DISPATCHED: times} for times, name in enumerate(("emails", "invoices", "texts"), 1)}
    report({metrics.INGESTED: 9}, deployment="d", of_queues=of_queues)
    first, *others = lines(capsys)
    told = [(each["Dimensions"], each["Metrics"][0]["Name"]) for each in first["_aws"]["CloudWatchMetrics"]]
    assert told == [([["deployment"]], "Ingested"), ([["deployment", "queue"]], "Dispatched")]
    assert (first["deployment"], first["queue"], first["Ingested"], first["Dispatched"]) == ("d", "emails", [9], [1])
    assert [(each["queue"], each["Dispatched"]) for each in others] == [("invoices", [2]), ("texts", [3])]


def test_what_a_request_did_is_counted_in_a_line_that_the_metric_filters_read(
    capsys: pytest.CaptureFixture[str],
) -> None:
    count({metrics.SUBMITTED: 2, metrics.DISPATCHED: 0}, deployment="d", queue="emails")
    count({metrics.SUBMITTED: 0}, deployment="d", queue="emails")
    assert capsys.readouterr().out == '{"deployment":"d","queue":"emails","Submitted":2}\n'
    with pytest.raises(ValueError, match=metrics.PARKED):
        count({metrics.PARKED: 1}, deployment="d", queue="emails")


def test_a_queue_pays_for_its_six_metrics_and_for_three_more_if_it_has_schedules() -> None:
    assert len(metrics.OF_A_QUEUE) <= 6
    assert len(metrics.OF_SCHEDULES) <= 3
    with pytest.raises(ValueError, match=metrics.PARKED):
        report({}, deployment="d", of_queues={"emails": {metrics.PARKED: 1}})


def test_counts_of_nothing_are_not_reported(capsys: pytest.CaptureFixture[str]) -> None:
    report({metrics.PARKED: 0, metrics.INGESTED: 0}, deployment="d")
    assert capsys.readouterr().out == ""


def test_where_jobs_are_delayed_none_on_time_is_told_too_and_where_none_is_that_costs_no_metric(
    capsys: pytest.CaptureFixture[str],
) -> None:
    report({}, deployment="d", of_queues={"emails": {metrics.ON_TIME: 0, metrics.DELAYED: 2}})
    report({}, deployment="d", of_queues={"emails": {metrics.ON_TIME: 2, metrics.DELAYED: 0}})
    report({}, deployment="d", of_queues={"emails": {metrics.ON_TIME: 0, metrics.DELAYED: 0}})
    late, in_time = lines(capsys)
    assert (late["OnTime"], late["Delayed"]) == ([0], [2])
    assert in_time["OnTime"] == [2]
    assert "Delayed" not in in_time


def test_what_is_told_of_being_on_time_adds_under_150_bytes_to_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    told = {metrics.DISPATCHED: 12_345, metrics.LATENESS: 0.0}
    on_time = {metrics.ON_TIME: 12_300, metrics.DELAYED: 45}
    without, some, all = (
        (report({}, deployment="d", of_queues={"emails": told | more}), len(capsys.readouterr().out))[1]
        for more in ({}, {metrics.ON_TIME: 12_345}, on_time)
    )
    assert some - without <= 70
    assert all - without <= 150


def test_lateness_that_is_not_known_is_not_reported_and_none_is(capsys: pytest.CaptureFixture[str]) -> None:
    report({}, deployment="d", of_queues={"emails": {metrics.LATENESS: None}})
    assert capsys.readouterr().out == ""
    report({}, deployment="d", of_queues={"emails": {metrics.LATENESS: 0.0}})
    assert [line["Lateness"] for line in lines(capsys)] == [[0.0]]


def test_a_line_says_what_happened_and_in_which_request_and_not_what_its_log_group_says(
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
    (told,) = lines(capsys)
    # Of another form, Lambda would take the level of each line to be INFO.
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d", told.pop("timestamp"))
    # Of the process: another test may have been first.
    assert told.pop("cold_start") in (True, False)
    assert told == {
        "level": "INFO",
        "message": "ticked",
        "function_request_id": "8476a536",
        "queue": "emails",
    }


def test_at_the_level_debug_a_function_tells_more_and_no_library_tells_payloads_or_tokens(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    secrets = {
        name: f"of-{name.lower()}" for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
    }
    for name, value in {**secrets, "AWS_DEFAULT_REGION": "eu-west-1", "AWS_LAMBDA_LOG_LEVEL": "DEBUG"}.items():
        monkeypatch.setenv(name, value)
    # As Lambda does it before it reads the function.
    caplog.set_level(logging.DEBUG)
    logger = importlib.reload(functions.log).log("a-test-of-debug")
    answering("dynamodb", (200, {})).put_item(TableName="t", Item={"pk": {"S": "the-payload"}})
    logger.debug("scheduled")
    assert [record.message for record in caplog.records if record.levelno < logging.INFO] == ["scheduled"]
    assert [line["message"] for line in lines(capsys)] == ["scheduled"]
    assert not any(secret in caplog.text for secret in (*secrets.values(), "the-payload"))
