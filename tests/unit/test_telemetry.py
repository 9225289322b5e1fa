import json

import pytest

from dueline.config import metrics
from functions.telemetry import report


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
