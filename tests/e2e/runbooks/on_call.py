"""Someone on call: types what a runbook says, and reads `dueline doctor`."""

import io
import json
import re
import shlex
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import boto3
import pytest
from awscli.clidriver import CLIDriver, create_clidriver
from typer.testing import CliRunner

from dueline.cli import connect
from dueline.cli.app import app
from dueline.config.names import Names
from local.emulator import ACCOUNT, REGION, Emulator
from local.endpoints import find, publish
from tests.e2e.chaos.deployment import emulated
from tests.e2e.chaos.proxy import Proxy
from tests.e2e.environment import environment_of

PAGES = Path(__file__).parents[3] / "docs" / "runbooks"
_ASSIGNMENT = re.compile(r"(\w+)=\$\((.*)\)")
_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")
HEALTHY, FOUND = 0, 1


@dataclass(frozen=True, kw_only=True)
class OnCall:
    """At a deployment that nobody ticks but EventBridge Scheduler, once a minute, and the proxy of its functions."""

    emulator: Emulator
    proxy: Proxy
    names: Names
    urls: Mapping[str, str]
    api: str
    aws: CLIDriver
    variables: dict[str, str] = field(default_factory=dict)
    read: set[str] = field(default_factory=set)

    def doctor(self) -> set[tuple[str, str]]:
        """Return what the doctor finds: codes, and what they are about. Nothing may be left out."""
        self._extract_metrics()
        findings = [json.loads(line) for line in self.type("dueline doctor --json").splitlines()]
        assert "not_looked_at" not in {finding["code"] for finding in findings}
        return {(finding["code"], finding["about"]) for finding in findings}

    def follow(self, page: str, step: str, **placeholders: str) -> str:
        """Type the commands of a step of a page, "See the cause" or "End it"; return all that they print."""
        text = (PAGES / f"{page}.md").read_text()
        [block] = re.findall(rf"^## {step}\n\n```bash\n(.*?)```", text, re.DOTALL | re.MULTILINE)
        # A command goes on after a backslash, and within quotes.
        commands = re.findall(r"(?:'[^']*'|[^'\n])+", block.replace("\\\n", ""))
        return "".join(self.type(command, **placeholders) for command in commands)

    def type(self, line: str, **placeholders: str) -> str:
        """Run one command, with its placeholders filled, in this process; return what it prints."""
        now = datetime.now(UTC)
        values = {"name": self.names.deployment, "region": REGION, "account": ACCOUNT, **self.urls, **placeholders}
        values |= {"now": now.isoformat(), "yesterday": (now - timedelta(days=1)).isoformat()}
        # What is no placeholder is of JSON or of JMESPath.
        command = _PLACEHOLDER.sub(lambda match: values.get(match[1], match[0]), line)
        if assigned := _ASSIGNMENT.fullmatch(command):
            self.variables[assigned[1]] = self.type(assigned[2]).strip()
            return ""
        words = shlex.split(command)
        program, *args = [self.variables.get(word[1:], word) if word[:1] == "$" else word for word in words]
        return {"dueline": self._dueline, "aws": self._aws}[program](args)

    def tick(self, queue: str, partition: int) -> Any:
        return self.invoke("tick", {"queue": queue, "partition": partition})

    def invoke(self, function: str, event: Mapping[str, Any]) -> Any:
        name, payload = self.names.function(function), json.dumps(event).encode()
        return self.emulator.client("lambda").invoke(FunctionName=name, Payload=payload)

    def _dueline(self, args: list[str]) -> str:
        result = CliRunner().invoke(app, args)
        assert result.exit_code in ((HEALTHY, FOUND) if "doctor" in args else (HEALTHY,)), result.output
        return result.stdout

    def _aws(self, args: list[str]) -> str:
        output = io.StringIO()
        with warnings.catch_warnings(), redirect_stdout(output):
            warnings.simplefilter("ignore")
            # For SQS it would use an endpoint of its own.
            code = self.aws.main(["--endpoint-url", self.emulator.endpoint, *args])
        assert code == 0, f"{args}: {output.getvalue()}"
        return output.getvalue()

    def _extract_metrics(self) -> None:
        """Put the metrics in the functions' logs into CloudWatch, each line once, as AWS does and the emulator not.

        https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
        """
        logs, cloudwatch = self.emulator.client("logs"), self.emulator.client("cloudwatch")
        for group in logs.describe_log_groups()["logGroups"]:
            for event in logs.filter_log_events(logGroupName=group["logGroupName"])["events"]:
                if str(event) not in self.read and event["message"].startswith("{"):
                    line = json.loads(event["message"])
                    for metrics in line.get("_aws", {}).get("CloudWatchMetrics", ()):
                        data = list(_data(line, metrics))
                        cloudwatch.put_metric_data(Namespace=metrics["Namespace"], MetricData=data)
                self.read.add(str(event))


def _data(line: dict[str, Any], metrics: dict[str, Any]) -> Iterator[dict[str, Any]]:
    at = datetime.fromtimestamp(line["_aws"]["Timestamp"] / 1000, UTC)
    for names in metrics["Dimensions"]:
        dimensions = [{"Name": name, "Value": line[name]} for name in names]
        for metric in metrics["Metrics"]:
            values = line[metric["Name"]]
            for value in values if isinstance(values, list) else [values]:
                yield {"MetricName": metric["Name"], "Value": value, "Timestamp": at, "Dimensions": dimensions}


@contextmanager
def on_call_at(folder: Path) -> Iterator[OnCall]:
    """Deploy while the context lasts, and let the command lines find the deployment."""
    with emulated(folder) as (emulator, proxy, settings), pytest.MonkeyPatch.context() as patch:
        endpoints = find(emulator, settings)
        publish(emulator, settings, endpoints)
        for name, value in (environment_of(emulator, endpoints.name) | {"AWS_PAGER": ""}).items():
            patch.setenv(name, value)
        # Each new session reads the models of a dozen services, which takes a second.
        session = boto3.Session()
        patch.setattr(connect, "session", lambda _: session)
        urls = {f"{queue}_dlq_url": url for queue, url in endpoints.dead_letter_queues.items()}
        urls["planner_dlq_url"] = urls["emails_dlq_url"].replace("emails_dlq", "dueline-planner_dlq")
        names, aws = settings.names, create_clidriver()
        yield OnCall(emulator=emulator, proxy=proxy, names=names, urls=urls, api=endpoints.api, aws=aws)
