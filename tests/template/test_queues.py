"""Every queue keeps what it is given."""

import json
from datetime import timedelta

import pytest

from dueline.config.environment import LONGEST_HIDDEN_SECONDS
from dueline.config.names import Names
from dueline.core.queue_settings import QueueSettings, WorkSettings

SIX_HOURS = 6 * 3_600
STANDARD_PARAMETER_BYTES = 4096


def _queue(template, name):
    return template.find("AWS::SQS::Queue", name)[1]


def test_longest_parameter_fits_ssm():
    names, region = Names("d" * 15), "ap-southeast-99"
    sqs = f"https://sqs.{region}.amazonaws.com/123456789012/"
    settings = WorkSettings(
        queue=QueueSettings(name="q" * 60, partitions=400, retention=timedelta(days=30), priorities=5),
        urls=tuple(sqs + names.queue("q" * 60, n) for n in range(1, 6)),
        dead_letters=sqs + names.queue_dlq("q" * 60),
    )
    assert len(json.dumps(settings.to_json())) < STANDARD_PARAMETER_BYTES


@pytest.mark.parametrize(("queue", "function"), [("dueline-inbound", "ingest"), ("dueline_dueline-planner", "planner")])
def test_visibility_is_six_timeouts(neighbours, queue, function):
    core = neighbours.core
    sources = core.of_type("AWS::Lambda::EventSourceMapping").values()
    [source] = [each for each in sources if core.spelled(each["EventSourceArn"]) == f"sqs:{queue}"]
    _, reader = core.find("AWS::Lambda::Function", f"dueline-{function}")
    hidden = _queue(core, queue)["VisibilityTimeout"]
    assert hidden >= 6 * reader["Timeout"] + source.get("MaximumBatchingWindowInSeconds", 0)


def test_six_hour_outage_makes_no_dead_letters(neighbours):
    inbound, planner = _queue(neighbours.core, "dueline-inbound"), _queue(neighbours.core, "dueline_dueline-planner")
    assert inbound["RedrivePolicy"]["maxReceiveCount"] * inbound["VisibilityTimeout"] > SIX_HOURS
    assert planner["RedrivePolicy"]["maxReceiveCount"] * LONGEST_HIDDEN_SECONDS > SIX_HOURS
    assert neighbours.core.spelled(planner["RedrivePolicy"]["deadLetterTargetArn"]) == "sqs:dueline_dueline-planner_dlq"
