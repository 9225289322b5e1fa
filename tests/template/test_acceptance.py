"""The acceptance tests remove all of their sandbox."""

import json

import pytest
import yaml

from tests.acceptance import sandbox
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


def test_removal_knows_all_names(assembly: Assembly) -> None:
    unknown = [
        f"{stack}: {id} {json.dumps(resource.get(name))}"
        for stack, template in assembly.templates.items()
        for kind, (name, allowed) in NAMED.items()
        for id, resource in template.of_type(kind).items()
        if resource.get(name) not in allowed
    ]
    assert unknown == []
