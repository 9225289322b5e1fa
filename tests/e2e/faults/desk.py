"""A desk from which a deployment is looked after: what a runbook says is typed here, and `dueline doctor` asked."""

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

import pytest
from awscli.clidriver import CLIDriver, create_clidriver
from typer.testing import CliRunner

from dueline.aws import clients
from dueline.cli.app import app
from dueline.config.names import Names
from local.deploy import deploy
from local.emulator import ACCOUNT, REGION, Emulator, free_port
from local.endpoints import find, publish
from tests.e2e.environment import environment_of
from tests.e2e.faults.embedded import EmbeddedMetrics
from tests.e2e.faults.processes import environment
from tests.e2e.faults.proxy import Proxy, proxy
from tests.e2e.faults.stage import Play

PAGES = Path(__file__).parents[3] / "docs" / "runbooks"
_ASSIGNMENT = re.compile(r"(\w+)=\$\((.*)\)")
_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")
HEALTHY, FOUND = 0, 1


@dataclass(frozen=True, kw_only=True)
class Desk:
    """A deployment that nobody ticks but EventBridge Scheduler, once a minute, and the proxy of its functions."""

    emulator: Emulator
    proxy: Proxy
    names: Names
    urls: Mapping[str, str]
    api: str
    aws: CLIDriver
    metrics: EmbeddedMetrics
    said: dict[str, str] = field(default_factory=dict)

    def doctor(self) -> set[tuple[str, str]]:
        """Return what the doctor finds: codes, and what they are about. Nothing escapes it."""
        self.metrics.extract()
        told = [json.loads(line) for line in self.type("dueline doctor --json").splitlines()]
        assert "not_looked_at" not in {finding["code"] for finding in told}
        return {(finding["code"], finding["about"]) for finding in told}

    def follow(self, page: str, step: str, **filled: str) -> str:
        """Type the commands of a step of a page, "See the cause" or "End it"; return all that they answer."""
        text = (PAGES / f"{page}.md").read_text()
        [block] = re.findall(rf"^## {step}\n\n```bash\n(.*?)```", text, re.DOTALL | re.MULTILINE)
        return "".join(self.type(line, **filled) for line in block.splitlines())

    def type(self, line: str, **filled: str) -> str:
        """Run one command, with its placeholders filled, in this process; return its answer."""
        known = {"name": self.names.deployment, "region": REGION, "account": ACCOUNT} | _days() | self.urls | filled
        # What a placeholder is not, is of JSON or of JMESPath.
        command = _PLACEHOLDER.sub(lambda match: known.get(match[1], match[0]), line)
        if assigned := _ASSIGNMENT.fullmatch(command):
            self.said[assigned[1]] = self.type(assigned[2]).strip()
            return ""
        program, *args = [self.said.get(each[1:], each) if each[:1] == "$" else each for each in shlex.split(command)]
        return {"dueline": self._dueline, "aws": self._aws}[program](args)

    def tick(self, queue: str, partition: int) -> Any:
        """Fire a tick."""
        return self.invoke("tick", {"queue": queue, "partition": partition})

    def invoke(self, function: str, event: Mapping[str, Any]) -> Any:
        name, payload = self.names.function(function), json.dumps(event).encode()
        return self.emulator.client("lambda").invoke(FunctionName=name, Payload=payload)

    def _dueline(self, args: list[str]) -> str:
        told = CliRunner().invoke(app, args)
        assert told.exit_code in ((HEALTHY, FOUND) if "doctor" in args else (HEALTHY,)), told.output
        return told.stdout

    def _aws(self, args: list[str]) -> str:
        answer = io.StringIO()
        with warnings.catch_warnings(), redirect_stdout(answer):
            warnings.simplefilter("ignore")
            # Of SQS it would ask an endpoint of its own.
            code = self.aws.main(["--endpoint-url", self.emulator.endpoint, *args])
        assert code == 0, f"{args}: {answer.getvalue()}"
        return answer.getvalue()


def _days() -> dict[str, str]:
    now = datetime.now(UTC)
    return {"now": now.isoformat(), "yesterday": (now - timedelta(days=1)).isoformat()}


@contextmanager
def at_the_desk(play: Play, *, folder: Path) -> Iterator[Desk]:
    """Deploy while the context lasts, and let the command lines find the deployment."""
    port = free_port()
    with (
        proxy(f"http://127.0.0.1:{port}") as stand,
        pytest.MonkeyPatch.context() as patch,
        Emulator(log=folder / "log", port=port, environment=environment(stand.endpoint)) as emulator,
    ):
        deploy(emulator, play.assembly)
        endpoints = find(emulator, play.deployment)
        publish(emulator, play.deployment, endpoints)
        for name, value in (environment_of(emulator, endpoints.name) | {"AWS_PAGER": ""}).items():
            patch.setenv(name, value)
        # Each new session reads the models of a dozen services, which takes a second.
        session = clients.session(profile=None, region=None)
        patch.setattr(clients, "session", lambda **_: session)
        queues = {f"{queue}_dlq_url": url for queue, url in endpoints.dead_letter_queues.items()}
        queues["planner_dlq_url"] = queues["emails_dlq_url"].replace("emails_dlq", "dueline-planner_dlq")
        names, aws = play.deployment.names, create_clidriver()
        yield Desk(
            emulator=emulator,
            proxy=stand,
            names=names,
            urls=queues,
            api=endpoints.api,
            aws=aws,
            metrics=EmbeddedMetrics(emulator),
        )
