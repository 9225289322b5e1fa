import json
from types import SimpleNamespace

import pytest

from dueline.config import metrics
from functions.log import log
from functions.metrics import report


def test_a_queues_metrics_are_found_by_deployment_and_queue_alone(capsys: pytest.CaptureFixture[str]) -> None:
    report({metrics.DISPATCHED: 3, metrics.LATENESS: 0.0}, deployment="d", queue="emails")
    told = json.loads(capsys.readouterr().out)
    assert told["_aws"]["CloudWatchMetrics"][0]["Namespace"] == "Dueline"
    assert told["_aws"]["CloudWatchMetrics"][0]["Dimensions"] == [["deployment", "queue"]]
    assert (told["deployment"], told["queue"]) == ("d", "emails")
    assert (told["Dispatched"], told["Lateness"]) == ([3.0], [0.0])


def test_a_queue_pays_for_its_four_metrics_and_no_other() -> None:
    assert len(metrics.OF_A_QUEUE) <= 4
    with pytest.raises(ValueError, match=metrics.PARKED):
        report({metrics.PARKED: 1}, deployment="d", queue="emails")


def test_counts_of_nothing_are_not_reported(capsys: pytest.CaptureFixture[str]) -> None:
    report({metrics.PARKED: 0, metrics.INGESTED: 0}, deployment="d")
    assert capsys.readouterr().out == ""


def test_lateness_that_is_not_known_is_not_reported_and_none_is(capsys: pytest.CaptureFixture[str]) -> None:
    report({metrics.LATENESS: None}, deployment="d", queue="emails")
    assert capsys.readouterr().out == ""
    report({metrics.LATENESS: 0.0}, deployment="d", queue="emails")
    assert json.loads(capsys.readouterr().out)["Lateness"] == [0.0]


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
    told = json.loads(capsys.readouterr().out)
    assert told.pop("timestamp")
    # Of the process: another test may have been first.
    assert told.pop("cold_start") in (True, False)
    assert told == {
        "level": "INFO",
        "message": "ticked",
        "function_request_id": "8476a536",
        "queue": "emails",
    }
