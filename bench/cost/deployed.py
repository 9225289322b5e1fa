"""What is deployed, and costs: read from the synthesized templates."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from bench.cost.payloads import QUEUE
from bench.cost.plan import Load
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
    batch_size: int
    window_seconds: int
    queue_alarms: int
    core_alarms: int
    queue_metrics: int
    core_metrics: int
    access_log_bytes: int
    log_days: int
    is_traced: bool
    logs_its_platform: bool


def hold(deployed: Deployed, load: Load) -> None:
    """Raise RuntimeError where what is deployed is not what was counted and is billed."""
    read = deployed.batch_size, deployed.window_seconds
    if read != (load.batch_size, load.window):
        raise RuntimeError(f"ingest reads {read} jobs and seconds, but {load.batch_size}, {load.window} were counted")
    if deployed.is_traced:
        raise RuntimeError("the functions are traced, but X-Ray is on no bill")


def deployed(scratch: Path) -> Deployed:
    """Synthesize a deployment with one queue, and return what it is made of."""
    queues = scratch / "queues.yaml"
    queues.write_text(yaml.safe_dump({"queues": {QUEUE: {}}}))
    folder = synthesize(queues, out=scratch / "cdk")
    core, queue = (_resources(folder, f"dueline-{name}") for name in ("core", f"queue-{QUEUE}"))
    return read(core, queue)


def read(core: Mapping[str, Any], queue: Mapping[str, Any]) -> Deployed:
    """Return what the resources of the two stacks are, by their types."""
    functions = [each for each in core["AWS::Lambda::Function"] if "FunctionName" in each]
    (memory_mb,) = {each["MemorySize"] for each in functions}
    # The planner's begins at once.
    (source,) = (each for each in core["AWS::Lambda::EventSourceMapping"] if "MaximumBatchingWindowInSeconds" in each)
    (stage,) = core["AWS::ApiGatewayV2::Stage"]
    (log_days,) = {each["RetentionInDays"] for each in core["AWS::Logs::LogGroup"]}
    return Deployed(
        memory_mb=memory_mb,
        batch_size=source["BatchSize"],
        window_seconds=source["MaximumBatchingWindowInSeconds"],
        queue_alarms=sum(map(_alarmed_on, queue["AWS::CloudWatch::Alarm"])),
        core_alarms=sum(map(_alarmed_on, core["AWS::CloudWatch::Alarm"])),
        queue_metrics=len(metrics.OF_A_QUEUE),
        core_metrics=len(_of_the_deployment()),
        access_log_bytes=len(filled_in(stage["AccessLogSettings"]["Format"])),
        log_days=log_days,
        is_traced=any(each.get("TracingConfig", {}).get("Mode") == "Active" for each in functions),
        logs_its_platform=all(_logs_its_platform(each.get("LoggingConfig", {})) for each in functions),
    )


def filled_in(format: str, **other: str) -> str:
    """Return a line of the access log, of a job that is scheduled or what `other` has instead.

    Raises ValueError for a variable of which nothing is known.
    """
    values = _FILLED_IN | other
    if unknown := set(_VARIABLE.findall(format)) - values.keys():
        raise ValueError(f"the access log has variables that are not filled in: {', '.join(sorted(unknown))}")
    return _VARIABLE.sub(lambda variable: values[variable[1]], format)


def _logs_its_platform(config: Mapping[str, Any]) -> bool:
    """Tell whether Lambda writes lines of its own at each invocation, as it does unless it is told to write less."""
    return str(config.get("SystemLogLevel", "INFO")) != "WARN"


def _of_the_deployment() -> set[str]:
    named = {value for name, value in vars(metrics).items() if name.isupper() and isinstance(value, str)}
    return named - {metrics.NAMESPACE} - metrics.OF_A_QUEUE - metrics.OF_SCHEDULES


def _alarmed_on(alarm: Mapping[str, Any]) -> int:
    """Return on how many metrics an alarm is, by which it is paid."""
    return 1 if "MetricName" in alarm else sum("MetricStat" in each for each in alarm["Metrics"])


def _resources(folder: Path, stack: str) -> dict[str, list[dict[str, Any]]]:
    template = json.loads((folder / f"{stack}.template.json").read_text())
    by_type: dict[str, list[dict[str, Any]]] = {}
    for resource in template["Resources"].values():
        by_type.setdefault(resource["Type"], []).append(resource.get("Properties", {}))
    return by_type
