"""The acceptance tests remove all of a deployment that outlives its stacks, by its exact name."""

from pathlib import Path

import pytest
import yaml

from tests.acceptance import sandbox
from tests.template.conftest import NEIGHBOURS
from tests.template.synthesis import Assembly

NAMED = {
    "AWS::SQS::Queue": ("QueueName", sandbox.queue_names),
    "AWS::DynamoDB::Table": ("TableName", sandbox.table_names),
    "AWS::Logs::LogGroup": ("LogGroupName", sandbox.log_names),
}


def test_removal_knows_all_names(neighbours: Assembly, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "queues.yaml"
    path.write_text(yaml.safe_dump({"queues": NEIGHBOURS}))
    monkeypatch.setattr(sandbox, "QUEUES", path)
    monkeypatch.setattr(sandbox, "NAME", neighbours.deployment.name)
    for kind, (property, names) in NAMED.items():
        of_kind = [each for template in neighbours.templates.values() for each in template.of_type(kind).values()]
        assert {each[property] for each in of_kind} <= set(names())
