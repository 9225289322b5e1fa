"""What a request leaves in the logs, which are paid for by the byte."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from bench.bill import filled_in
from bench.counted import LOG_EVENT_BYTES
from bench.stage import context, schedule_event
from tests.api_harness import import_api
from tests.builders import a_queue, an_id
from tests.template.synthesis import Assembly

MOST_BYTES_A_REQUEST, MOST_BYTES_A_LINE = 250, 150


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch, three: Assembly) -> Iterator[Any]:
    with import_api(monkeypatch, a_queue(name="bench")) as api:
        monkeypatch.setattr(api, "SETTINGS", replace(api.SETTINGS, deployment=three.deployment.name))
        yield api


def _access_line(three: Assembly, **filled: str) -> str:
    [stage] = three.core.of_type("AWS::ApiGatewayV2::Stage").values()
    return filled_in(stage["AccessLogSettings"]["Format"], **filled)


def _charged(*lines: str) -> int:
    return sum(len(line) + LOG_EVENT_BYTES for line in lines)


@pytest.mark.parametrize("delay", [3600, 5])
def test_scheduling_logs_at_most_250_bytes(
    api: Any, three: Assembly, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture, delay: int
) -> None:
    answer = api.handler(schedule_event("bench", [{"payload": {"to": "ann"}, "delay": delay}]), context("dueline-api"))
    assert answer["statusCode"] == 201
    counted = [line for line in capsys.readouterr().out.splitlines(keepends=True) if "Submitted" in line]
    # The logger keeps the output of whichever test was the first to have it.
    logged = [api.logger.registered_formatter.format(record) + "\n" for record in caplog.records]
    assert len(counted) == 1
    assert _charged(_access_line(three), *counted, *logged) <= MOST_BYTES_A_REQUEST


def test_access_log_has_the_job_id(three: Assembly) -> None:
    path = f"/queues/emails/jobs/{an_id()}"
    line = _access_line(three, httpMethod="GET", path=path, status="200")
    assert path in line
    assert len(line) <= MOST_BYTES_A_LINE
