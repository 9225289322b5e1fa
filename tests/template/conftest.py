"""Syntheses, each made once."""

import pytest

from tests.template.synthesis import Assembly, synthesize

SIXTY = {f"queue-{number:02}": {"partitions": 4} for number in range(60)}
AHEAD = {
    "partitions": 400,
    "visibility_timeout": 120,
    "max_receives": 10,
    "message_retention_days": 2,
    "retention_days": 3,
    "precise": True,
    "priorities": 5,
    "longest_run": 900,
    "track": True,
    "retry": {"backoff": "exponential", "attempts": 7, "delay": 5, "max_delay": 600},
}


@pytest.fixture(scope="session")
def sixty(tmp_path_factory: pytest.TempPathFactory) -> Assembly:
    """Sixty queues of four partitions."""
    return synthesize({"queues": SIXTY, "alarm_email": "team@example.com"}, tmp_path_factory.mktemp("sixty"))


@pytest.fixture(scope="session")
def one_more(tmp_path_factory: pytest.TempPathFactory) -> Assembly:
    """The same with a queue in front, which has as many partitions as there may be."""
    queues = {"ahead": AHEAD} | SIXTY
    return synthesize({"queues": queues, "alarm_email": "team@example.com"}, tmp_path_factory.mktemp("one_more"))


@pytest.fixture(scope="session")
def traced(tmp_path_factory: pytest.TempPathFactory) -> Assembly:
    """No queue, with tracing, and a name of its own."""
    return synthesize({"name": "quiet", "tracing": True}, tmp_path_factory.mktemp("traced"))
