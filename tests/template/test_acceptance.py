"""The acceptance tests make each alarm of their sandbox ring, by what the alarm is about, and remove all of it."""

import json
from typing import Any

import pytest
import yaml

from tests.acceptance import alarms, sandbox
from tests.template.synthesis import Assembly, synthesize

# What has the type's own name in it, and outlives the stack or may.
NAMED = {
    "AWS::SQS::Queue": ("QueueName", set(sandbox.queue_names())),
    "AWS::DynamoDB::GlobalTable": ("TableName", set(sandbox.table_names())),
    "AWS::DynamoDB::Table": ("TableName", set(sandbox.table_names())),
    "AWS::Logs::LogGroup": ("LogGroupName", set(sandbox.log_names())),
}


@pytest.fixture(scope="session")
def assembly(tmp_path_factory: pytest.TempPathFactory) -> Assembly:
    return synthesize(yaml.safe_load(sandbox.QUEUES.read_text()), tmp_path_factory.mktemp("sandbox"))


@pytest.fixture(scope="session")
def alarms_by_subject(assembly: Assembly) -> dict[str, dict[str, Any]]:
    """The alarms of all stacks by what they are on, as the acceptance tests find them."""
    return {
        alarms.on_what(f"{stack}-{id}-AbC", assembly.deployment.names): alarm
        for stack, template in assembly.templates.items()
        for id, alarm in template.of_type("AWS::CloudWatch::Alarm").items()
    }


def test_every_alarm_has_an_acceptance_test(alarms_by_subject: dict[str, dict[str, Any]]) -> None:
    assert alarms_by_subject.keys() == alarms.EXPECTED


def test_removal_knows_all_names(assembly: Assembly) -> None:
    unknown = [
        f"{stack}: {id} {json.dumps(resource.get(name))}"
        for stack, template in assembly.templates.items()
        for kind, (name, allowed) in NAMED.items()
        for id, resource in template.of_type(kind).items()
        if resource.get(name) not in allowed
    ]
    assert unknown == []
