"""A deployment of its own, a Lambda consumer on one of its queues, and processes of workers."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from dueline import Client
from dueline.config.deployment import load
from local.deploy import deploy
from local.emulator import CREDENTIALS, REGION, Emulator
from local.endpoints import Endpoints, find
from local.signing_proxy import signing_proxy
from local.template import ROOT, configure
from local.ticks import fired_every
from tests.e2e.assemblies import assembly_of
from tests.e2e.functions import deploy_consumer
from tests.e2e.workers import book

HERE = Path(__file__).parent
QUEUES = HERE / "queues.yaml"
TICK_EVERY_SECONDS = 2.0
# Only a handler that hangs takes so long.
GRACE_SECONDS = 120


@dataclass(kw_only=True, slots=True)
class Stage:
    """A running deployment, whose effects are written into `book`, with its workers."""

    emulator: Emulator
    endpoints: Endpoints
    client: Client
    book: Path
    workers: list["subprocess.Popen[bytes]"] = field(default_factory=list)

    def environment(self) -> dict[str, str]:
        """Return what a process needs to find the deployment and the book."""
        of_aws = {name.upper(): value for name, value in CREDENTIALS.items()} | {"AWS_DEFAULT_REGION": REGION}
        return {**os.environ, **of_aws, "AWS_ENDPOINT_URL": self.emulator.endpoint, book.PLACE: str(self.book)}

    def hire(self, *queues: str, processes: int = 1) -> "subprocess.Popen[bytes]":
        """Start a worker of so many processes, at all queues or at those."""
        named = [word for queue in queues for word in ("--queue", queue)]
        command = [sys.executable, "-m", "dueline", "worker", "tests.e2e.workers.hands:worker", *named]
        command += ["--processes", str(processes)]
        with self._log.open("ab") as log:
            grace = ["--grace", str(GRACE_SECONDS)]
            worker = subprocess.Popen([*command, *grace], cwd=ROOT, env=self.environment(), stdout=log, stderr=log)
        self.workers.append(worker)
        return worker

    @property
    def processes(self) -> list[int]:
        """The ids of the processes that supervisors have started, as their log tells."""
        lines = self._log.read_text().splitlines()
        return [json.loads(line)["pid"] for line in lines if '"process started"' in line]

    @property
    def _log(self) -> Path:
        return self.book.parent / "workers.log"

    def replace(self, worker: "subprocess.Popen[bytes]", *queues: str) -> None:
        """Have another process in place of one that has ended."""
        worker.wait()
        self.workers.remove(worker)
        self.hire(*queues)

    def dismiss(self) -> list[int]:
        """End all workers as an orchestrator does; return with what each exited."""
        for worker in self.workers:
            worker.send_signal(signal.SIGTERM)
        exits = [worker.wait(GRACE_SECONDS * 2) for worker in self.workers]
        self.workers.clear()
        return exits


@contextmanager
def staged(folder: Path) -> Iterator[Stage]:
    """Deploy and tick while the context lasts."""
    with ExitStack() as stack:
        configured = configure(QUEUES, out=folder)
        deployment = load(configured)
        assembly = assembly_of(configured, out=folder / "cdk.out")
        emulator = stack.enter_context(Emulator(log=folder / "log"))
        deploy(emulator, assembly)
        endpoints = find(emulator, deployment)
        endpoints = replace(endpoints, api=stack.enter_context(signing_proxy(endpoints.api)))
        deploy_consumer(
            emulator,
            endpoints.queues["audit"],
            name="shift-auditor",
            code=HERE / "consumer.py",
            beside=(HERE / "book.py", HERE / "fates.py"),
            environment={book.PLACE: str(folder / "book")},
        )
        stack.enter_context(fired_every(TICK_EVERY_SECONDS, emulator, deployment.names.schedule_group))
        client = Client.connect("shift", url=endpoints.api)
        stage = Stage(emulator=emulator, endpoints=endpoints, client=client, book=folder / "book")
        stack.callback(_end, stage)
        yield stage


def _end(stage: Stage) -> None:
    for worker in stage.workers:
        worker.kill()
        worker.wait()
