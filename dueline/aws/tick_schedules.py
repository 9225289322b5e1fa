"""The partitions that have a schedule for their ticks, whether queues.yaml still declares them or not."""

from typing import Any

from dueline.aws.faults import translated
from dueline.model.job import Partition


class TickSchedules:
    """The schedules of a group of EventBridge Scheduler's. `client` is boto3's."""

    def __init__(self, client: Any, group: str) -> None:
        self._client = client
        self._group = group

    def partitions(self) -> list[Partition]:
        """Return the partitions whose schedules are there, enabled or not. Raises Throttled or Unavailable."""
        with translated(f"listing the schedules of {self._group}"):
            pages = list(self._client.get_paginator("list_schedules").paginate(GroupName=self._group))
        names = [schedule["Name"] for page in pages for schedule in page["Schedules"]]
        return [Partition(queue=queue, number=int(number)) for queue, number in map(_parts, names) if number.isdigit()]


def _parts(name: str) -> tuple[str, str]:
    queue, _, number = name.rpartition(".")
    return queue, number
