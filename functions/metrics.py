"""Report metrics: of an invocation in CloudWatch's embedded metric format (EMF), of a request in a shorter line."""

import json
import sys
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.metrics.provider.cloudwatch_emf.cloudwatch import AmazonCloudWatchEMFProvider

from dueline.config import metrics

Values = Mapping[str, float | None]
_NONE: Mapping[str, Values] = MappingProxyType({})


def report(values: Values, *, deployment: str, of_queues: Mapping[str, Values] = _NONE) -> None:
    """Report metrics of the deployment and of queues. Counts of nothing and unknown values (None) are left out.

    A line has one value of each metric: so all are one line, but for the second queue and further ones.
    """
    whole = _document(values, metrics.dimensions(deployment))
    of_each = [_document(_of_a_queue(told), metrics.dimensions(deployment, name)) for name, told in of_queues.items()]
    for document in _together(*filter(None, (whole, *of_each))):
        _print(document)


def count(values: Values, *, deployment: str, queue: str) -> None:
    """Count what one request did to a queue's jobs, for the metric filters on the log of this function.

    A document of EMF would have 170 bytes more for each request, to say again what the metrics are.
    """
    counted = {name: value for name, value in values.items() if value}
    if not counted.keys() <= metrics.COUNTED:
        raise ValueError(f"{', '.join(counted)}: counted are {', '.join(sorted(metrics.COUNTED))}")
    if counted:
        _print({**metrics.dimensions(deployment, queue), **counted})


def _of_a_queue(values: Values) -> Values:
    known = metrics.OF_A_QUEUE | metrics.OF_SCHEDULES
    if not values.keys() <= known:
        raise ValueError(f"{', '.join(values)}: a queue's metrics are {', '.join(sorted(known))}")
    return values


def _document(values: Values, dimensions: Mapping[str, str]) -> dict[str, Any]:
    """Return metrics as a document of EMF, or nothing where there is nothing to report."""
    # The alarm's share needs both.
    zeros = metrics.TOLD_AT_ZERO | ({metrics.ON_TIME} if values.get(metrics.DELAYED) else set())
    reported = {name: value for name, value in values.items() if value or (value == 0 and name in zeros)}
    if not reported:
        return {}
    # An empty service keeps Powertools' own dimension out: metrics are found by deployment and queue alone.
    provider = AmazonCloudWatchEMFProvider(namespace=metrics.NAMESPACE, service="")
    for name, dimension in dimensions.items():
        provider.add_dimension(name=name, value=dimension)
    for name, value in reported.items():
        unit = MetricUnit.Seconds if name in metrics.IN_SECONDS else MetricUnit.Count
        provider.add_metric(name=name, unit=unit, value=value)
    return dict(provider.serialize_metric_set())


def _together(*documents: dict[str, Any]) -> list[dict[str, Any]]:
    """Return documents with the first two as one, each with its own dimensions, where no value stands in both."""
    if len(documents) < 2 or not documents[0].keys() & documents[1].keys() <= {"_aws", "deployment"}:
        return list(documents)
    first, second, *others = documents
    directives = [directive for each in (first, second) for directive in each["_aws"]["CloudWatchMetrics"]]
    return [{**first, **second, "_aws": {**first["_aws"], "CloudWatchMetrics": directives}}, *others]


def _print(line: Mapping[str, Any]) -> None:
    sys.stdout.write(f"{json.dumps(line, separators=(',', ':'))}\n")
