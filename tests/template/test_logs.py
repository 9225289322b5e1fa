"""What a request leaves in the logs, which are paid for by the byte."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from bench.cost.deployed import filled_in
from bench.cost.lambdas import of_schedule
from bench.cost.step import LOG_EVENT_BYTES
from bench.lambdas import context
from dueline.config import metrics
from tests.builders import a_queue, an_id
from tests.called import imported
from tests.template.synthesis import Assembly

MOST_BYTES_A_REQUEST, MOST_BYTES_A_LINE = 250, 150


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch, three: Assembly) -> Iterator[Any]:
    with imported(monkeypatch, a_queue(name="bench")) as api:
        monkeypatch.setattr(api, "SETTINGS", replace(api.SETTINGS, deployment=three.deployment.name))
        yield api


def _access_line(three: Assembly, **filled: str) -> str:
    [stage] = three.core.of_type("AWS::ApiGatewayV2::Stage").values()
    return filled_in(stage["AccessLogSettings"]["Format"], **filled)


def _charged(*lines: str) -> int:
    return sum(len(line) + LOG_EVENT_BYTES for line in lines)


@pytest.mark.parametrize("delay", [3600, 5])
def test_a_job_that_is_scheduled_over_http_leaves_250_bytes_in_the_logs(
    api: Any, three: Assembly, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture, delay: int
) -> None:
    answer = api.handler(of_schedule("bench", [{"payload": {"to": "ann"}, "delay": delay}]), context("dueline-api"))
    assert answer["statusCode"] == 201
    counted = [line for line in capsys.readouterr().out.splitlines(keepends=True) if "Submitted" in line]
    # The logger keeps the output of whichever test was the first to have it.
    logged = [api.logger.registered_formatter.format(record) + "\n" for record in caplog.records]
    assert len(counted) == 1
    assert _charged(_access_line(three), *counted, *logged) <= MOST_BYTES_A_REQUEST


def test_a_line_of_the_access_log_has_the_id_of_the_job_in_150_bytes(three: Assembly) -> None:
    path = f"/queues/emails/jobs/{an_id()}"
    line = _access_line(three, httpMethod="GET", path=path, status="200")
    assert path in line
    assert len(line) <= MOST_BYTES_A_LINE


def test_the_metric_filters_read_what_the_api_counts_and_no_other_line(three: Assembly) -> None:
    found = three.core.of_type("AWS::Logs::MetricFilter").values()
    told = {each["MetricTransformations"][0]["MetricName"]: each for each in found}
    # What the API sends is on time: it is never due before it comes.
    assert told.keys() == metrics.COUNTED | {metrics.ON_TIME}
    for name, each in told.items():
        field = metrics.DISPATCHED if name == metrics.ON_TIME else name
        [transformation] = each["MetricTransformations"]
        assert three.core.spelled(each["LogGroupName"]) == "logs:/aws/lambda/dueline-api"
        assert each["FilterPattern"] == f"{{ $.{field} > 0 }}"
        assert transformation == {
            "MetricName": name,
            "MetricNamespace": metrics.NAMESPACE,
            "MetricValue": f"$.{field}",
            "Unit": "Count",
            "Dimensions": [{"Key": key, "Value": f"$.{key}"} for key in ("deployment", "queue")],
        }
