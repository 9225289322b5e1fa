"""How AWS has a deployment set now."""

import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from dueline.aws import clients
from dueline.config.names import Names
from dueline.verify.sandbox import AsDeployed

if TYPE_CHECKING:
    from boto3 import Session

_LONGEST_REQUEST = timedelta(seconds=20)
_SECONDS_A_DAY = 86_400
_GONE = ("AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist")
_OF_A_QUEUE: Any = ["MessageRetentionPeriod", "RedrivePolicy"]


class Looks:
    """Looks at what a deployment is made of. `url` returns the URL of an SQS queue."""

    def __init__(self, names: Names, session: "Session", *, url: Callable[[str], str]) -> None:
        self._names, self._session, self._url = names, session, url

    def run(self) -> AsDeployed:
        names = self._names
        queues = {name: attributes for name in self._queues() if (attributes := self._attributes(name))}
        tables = {name: self._table(name) for name in (names.table, names.state, names.once)}
        return AsDeployed(
            schedules=dict(self._schedules()),
            dead_letters={name: _dead_letters(attributes) for name, attributes in queues.items()},
            days={name: int(each["MessageRetentionPeriod"]) / _SECONDS_A_DAY for name, each in queues.items()},
            expiring={name: expires for name, (expires, _) in tables.items()},
            deletable={name: is_deletable for name, (_, is_deletable) in tables.items()},
            alarms={alarm["AlarmName"]: _notifies(alarm) for alarm in self._alarms()},
        )

    def _of(self, service: str) -> Any:
        return clients.of_service(service, self._session, longest=_LONGEST_REQUEST)

    def _queues(self) -> Iterator[str]:
        sqs = self._of("sqs")
        for prefix in (self._names.queue_prefix, f"{self._names.deployment}-"):
            for page in sqs.get_paginator("list_queues").paginate(QueueNamePrefix=prefix):
                yield from (url.rpartition("/")[2] for url in page.get("QueueUrls", []))

    def _attributes(self, queue: str) -> dict[str, str]:
        """Return what is asked of a queue, nothing of one that was deleted meanwhile."""
        try:
            told = self._of("sqs").get_queue_attributes(QueueUrl=self._url(queue), AttributeNames=_OF_A_QUEUE)
        except ClientError as error:
            if error.response["Error"].get("Code") in _GONE:
                return {}
            raise
        return dict(told["Attributes"])

    def _table(self, name: str) -> tuple[bool, bool]:
        """Tell whether a table's rows expire, and whether it can be deleted."""
        dynamodb = self._of("dynamodb")
        ttl = dynamodb.describe_time_to_live(TableName=name)["TimeToLiveDescription"]["TimeToLiveStatus"]
        described = dynamodb.describe_table(TableName=name)["Table"]
        return ttl in ("ENABLED", "ENABLING"), not described.get("DeletionProtectionEnabled")

    def _schedules(self) -> Iterator[tuple[str, bool]]:
        pages = self._of("scheduler").get_paginator("list_schedules")
        for group in (self._names.schedule_group, self._names.watch_group):
            for page in pages.paginate(GroupName=group):
                yield from ((each["Name"], each["State"] == "ENABLED") for each in page["Schedules"])

    def _alarms(self) -> Iterator[Any]:
        pages = self._of("cloudwatch").get_paginator("describe_alarms")
        for page in pages.paginate(AlarmNamePrefix=f"{self._names.deployment}-", AlarmTypes=["MetricAlarm"]):
            yield from page["MetricAlarms"]


def _dead_letters(attributes: dict[str, str]) -> str:
    policy = json.loads(attributes.get("RedrivePolicy") or "{}")
    return str(policy.get("deadLetterTargetArn", "")).rpartition(":")[2]


def _notifies(alarm: Any) -> bool:
    return bool(alarm.get("AlarmActions")) and bool(alarm.get("ActionsEnabled", True))
