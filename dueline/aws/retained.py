"""Retained: which of a template's resources are there, by the names that the template gives them."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

# The property that names a resource, and what an import knows it by.
_NAMED = {
    "AWS::SQS::Queue": ("QueueName", "QueueUrl"),
    "AWS::DynamoDB::Table": ("TableName", "TableName"),
    "AWS::S3::Bucket": ("BucketName", "BucketName"),
    "AWS::Scheduler::ScheduleGroup": ("Name", "Name"),
}
_MISSING = {
    "404",
    "NoSuchBucket",
    "QueueDoesNotExist",
    "AWS.SimpleQueueService.NonExistentQueue",
    "ResourceNotFoundException",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Retained:
    """Looks for what stacks retain. `client` makes boto3's clients by service."""

    client: Callable[[str], Any]

    def among(self, resources: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield those of some resources that are there, as an import of CloudFormation's names them."""
        for id, resource in resources.items():
            if resource["Type"] not in _NAMED:
                continue
            property, identifier = _NAMED[resource["Type"]]
            found = self._find(resource["Type"], self._spelled(resource["Properties"][property]))
            if found:
                told = {"ResourceType": resource["Type"], "LogicalResourceId": id}
                yield told | {"ResourceIdentifier": {identifier: found}}

    def _find(self, type: str, name: str) -> str | None:
        looks: dict[str, Callable[[], Any]] = {
            "AWS::SQS::Queue": lambda: self.client("sqs").get_queue_url(QueueName=name)["QueueUrl"],
            "AWS::DynamoDB::Table": lambda: self.client("dynamodb").describe_table(TableName=name) and name,
            "AWS::S3::Bucket": lambda: self.client("s3").head_bucket(Bucket=name) and name,
            "AWS::Scheduler::ScheduleGroup": lambda: self.client("scheduler").get_schedule_group(Name=name) and name,
        }
        try:
            return str(looks[type]())
        except ClientError as error:
            if error.response["Error"]["Code"] not in _MISSING:
                raise
            return None

    def _spelled(self, name: Any) -> str:
        """Return a name with the account and the region in it that the template leaves to CloudFormation."""
        if isinstance(name, str):
            return name
        if "Ref" in name:
            return str(self._own()[name["Ref"]])
        separator, parts = name["Fn::Join"]
        return str(separator).join(map(self._spelled, parts))

    def _own(self) -> dict[str, str]:
        sts = self.client("sts")
        return {"AWS::AccountId": sts.get_caller_identity()["Account"], "AWS::Region": sts.meta.region_name}
