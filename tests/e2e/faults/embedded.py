"""Metrics that functions write into their logs, which CloudWatch extracts on AWS and the emulator does not.

https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
"""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from local.emulator import Emulator


class EmbeddedMetrics:
    """Puts the metrics of logs into CloudWatch, each line once."""

    def __init__(self, emulator: Emulator) -> None:
        self._logs, self._cloudwatch = emulator.client("logs"), emulator.client("cloudwatch")
        self._read: set[str] = set()

    def extract(self) -> None:
        """Put what was written since the last time."""
        for group in self._logs.describe_log_groups()["logGroups"]:
            for event in self._logs.filter_log_events(logGroupName=group["logGroupName"])["events"]:
                if str(event) not in self._read and event["message"].startswith("{"):
                    self._put(json.loads(event["message"]))
                self._read.add(str(event))

    def _put(self, line: dict[str, Any]) -> None:
        for told in line.get("_aws", {}).get("CloudWatchMetrics", ()):
            data = list(_data(line, told))
            self._cloudwatch.put_metric_data(Namespace=told["Namespace"], MetricData=data)


def _data(line: dict[str, Any], told: dict[str, Any]) -> Iterator[dict[str, Any]]:
    at = datetime.fromtimestamp(line["_aws"]["Timestamp"] / 1000, UTC)
    for names in told["Dimensions"]:
        dimensions = [{"Name": name, "Value": line[name]} for name in names]
        for metric in told["Metrics"]:
            values = line[metric["Name"]]
            for value in values if isinstance(values, list) else [values]:
                yield {"MetricName": metric["Name"], "Value": value, "Timestamp": at, "Dimensions": dimensions}
