"""What is deployed, and costs: read from the synthesized templates."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from bench.payloads import QUEUE
from dueline.config import metrics
from local.template import synthesize

# As API Gateway would fill in the access log's format.
_FILLED_IN = {
    "requestId": "JKJaXmPLvHcESHA=",
    # Of a role, with the name of the session: here an instance's.
    "identity.caller": "AROAXMPLXMPLXMPLXMPLX:i-0123456789abcdef0",
    "httpMethod": "POST",
    "path": f"/queues/{QUEUE}/jobs",
    "status": "201",
    "integrationErrorMessage": "-",
}
_VARIABLE = re.compile(r"\$context\.([\w.]+)")


@dataclass(frozen=True, kw_only=True, slots=True)
class Deployed:
    """What the templates of a deployment with one queue say.

    `queue_alarms` and `queue_metrics` come again with each queue, the others with the deployment. An alarm on a share
    of two metrics costs as two alarms.
    """

    memory_mb: int
    queue_alarms: int
    core_alarms: int
    queue_metrics: int
    core_metrics: int
    access_log_bytes: int
    log_days: int
    logs_its_platform: bool


def deployed(scratch: Path) -> Deployed:
    """Synthesize a deployment with one queue, and return what it is made of."""
    queues = scratch / "queues.yaml"
    queues.write_text(yaml.safe_dump({"queues": {QUEUE: {}}}))
    folder = synthesize(queues, out=scratch / "cdk")
    core, queue = (_resources(folder / f"dueline-{name}.template.json") for name in ("core", f"queue-{QUEUE}"))
    functions = [each for each in core["AWS::Lambda::Function"] if "FunctionName" in each]
    (memory_mb,) = {each["MemorySize"] for each in functions}
    (stage,) = core["AWS::ApiGatewayV2::Stage"]
    (log_days,) = {each["RetentionInDays"] for each in core["AWS::Logs::LogGroup"]}
    named = {value for name, value in vars(metrics).items() if name.isupper() and isinstance(value, str)}
    return Deployed(
        memory_mb=memory_mb,
        queue_alarms=sum(map(_metrics_of, queue["AWS::CloudWatch::Alarm"])),
        core_alarms=sum(map(_metrics_of, core["AWS::CloudWatch::Alarm"])),
        queue_metrics=len(metrics.OF_A_QUEUE),
        core_metrics=len(named - {metrics.NAMESPACE} - metrics.OF_A_QUEUE - metrics.OF_SCHEDULES),
        access_log_bytes=len(filled_in(stage["AccessLogSettings"]["Format"])),
        log_days=log_days,
        logs_its_platform=all(each.get("LoggingConfig", {}).get("SystemLogLevel") != "WARN" for each in functions),
    )


def filled_in(format: str, **other: str) -> str:
    """Return a line of the access log, of a job that is scheduled or what `other` has instead.

    Raises ValueError for a variable that is not known.
    """
    values = _FILLED_IN | other
    if unknown := set(_VARIABLE.findall(format)) - values.keys():
        raise ValueError(f"the access log has variables that are not filled in: {', '.join(sorted(unknown))}")
    return _VARIABLE.sub(lambda variable: values[variable[1]], format)


def _metrics_of(alarm: Mapping[str, Any]) -> int:
    """Return on how many metrics an alarm is, by which it is paid."""
    return 1 if "MetricName" in alarm else sum("MetricStat" in each for each in alarm["Metrics"])


def _resources(template: Path) -> dict[str, list[dict[str, Any]]]:
    by_type: dict[str, list[dict[str, Any]]] = {}
    for resource in json.loads(template.read_text())["Resources"].values():
        by_type.setdefault(resource["Type"], []).append(resource.get("Properties", {}))
    return by_type
