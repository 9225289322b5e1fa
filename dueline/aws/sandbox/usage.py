"""Usage: what CloudWatch counted of a deployment between two instants."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from dueline.config.names import Names
from dueline.verify.sandbox import Used

_MINUTE_SECONDS = 60


class Usage:
    """Reads the metrics that AWS itself keeps of tables, queues and log groups."""

    def __init__(self, names: Names, cloudwatch: Any, *, api_id: str) -> None:
        self._names, self._cloudwatch, self._api_id = names, cloudwatch, api_id

    def between(self, queue: str, *, start: datetime, end: datetime) -> Used:
        """Return what was used of the tables, of a queue, and of the HTTP API and its logs."""
        names, span = self._names, {"StartTime": start, "EndTime": end}
        groups = (names.access_log, names.function_log("api"))
        return Used(
            writes=self._sum("DynamoDB", "ConsumedWriteCapacityUnits", {"TableName": names.table}, span),
            reads=sum(
                self._sum("DynamoDB", "ConsumedReadCapacityUnits", {"TableName": table}, span)
                for table in (names.table, names.state)
            ),
            messages=self._sum("SQS", "NumberOfMessagesSent", {"QueueName": names.queue(queue)}, span),
            requests=self._sum("ApiGateway", "Count", {"ApiId": self._api_id}, span),
            log_bytes=sum(self._sum("Logs", "IncomingBytes", {"LogGroupName": group}, span) for group in groups),
        )

    def _sum(self, service: str, metric: str, of: Mapping[str, str], span: Mapping[str, datetime]) -> float:
        dimensions = [{"Name": name, "Value": value} for name, value in of.items()]
        answer = self._cloudwatch.get_metric_statistics(
            Namespace=f"AWS/{service}",
            MetricName=metric,
            Dimensions=dimensions,
            Period=_MINUTE_SECONDS,
            Statistics=["Sum"],
            **span,
        )
        return float(sum(point["Sum"] for point in answer["Datapoints"]))
