"""Scenario `workers`: two workers, one of two processes, while one is ended and one process killed."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from dueline import Client, NewJob, State
from local.template import ROOT
from tests.acceptance.inbox import Landed
from tests.e2e.chaos import worker_app
from tests.e2e.chaos.deployment import Deployment
from tests.e2e.chaos.functions import until_answered
from tests.e2e.chaos.ledger import Ledger, Report
from tests.e2e.chaos.worker_app import DISCARDED, DOOMED, FLAKY, OK, RETRIED, SLOW
from tests.e2e.deployed import environment_of
from tests.waiting import HANG_SECONDS, wait_until

QUEUES = ("letters", "hooks")
# Only a handler that hangs takes so long.
GRACE_SECONDS = 120
WEIGHTS = {OK: 80, SLOW: 4, FLAKY: 5, RETRIED: 4, DOOMED: 3, DISCARDED: 4}
# With which error jobs of these kinds are dead letters.
ERRORS = {DOOMED: "Doomed", DISCARDED: "Discard"}
# With `once`, of a job whose attempt is not known to have ended; the last attempt says why that could not be noted.
NOT_KNOWN = {"Interrupted", "Throttled", "Unavailable"}
STATUSES = {State.CANCELLED: 200, State.CANCEL_REQUESTED: 202}
CANCELLED_SHARE, MOST_OF_A_CALL, LATEST_SECONDS = 0.05, 500, 26.0
SLOWEST_A_SECOND = 10
# Of each queue, the killed process works at so many; a few more are of an AWS that is too slow to answer.
MOST_INTERRUPTED = 40


def run(deployment: Deployment, *, jobs: int, seed: int) -> Report:
    """Schedule and cancel jobs of every kind, kill a worker's process, end a worker, and check what became of all."""
    deployment.start()
    workers = Workers(deployment)
    deployment.stack.callback(workers.kill)
    ledger, kinds, exits, choices = Ledger(), dict[str, str](), list[int](), random.Random(seed)
    # One of each, at least.
    left = [*WEIGHTS, *choices.choices(list(WEIGHTS), list(WEIGHTS.values()), k=jobs - len(WEIGHTS))]
    choices.shuffle(left)
    client = Client.connect("chaos", url=deployment.endpoints.api)
    one, two = workers.start(processes=1), workers.start(processes=2)
    calls = max(12, -(-jobs // MOST_OF_A_CALL))
    for call in range(calls):
        kinds |= _schedule(client, ledger, QUEUES[call % len(QUEUES)], left[call::calls], choices)
        if call == calls * 2 // 5:
            assert wait_until(lambda: len(worker_app.effects(workers.effects)) > jobs * 0.1)
            workers.kill_a_process(two)
        if call == calls * 7 // 10:
            exits.append(workers.end(one))
            workers.start(processes=1)
    # Twice: a job is in neither where it was counted in its queue before it was sent, and in the table after.
    is_over = lambda: deployment.is_ingested() and all(_is_empty(client, queue) for queue in QUEUES * 2)  # noqa: E731
    assert wait_until(is_over, seconds=HANG_SECONDS + jobs / SLOWEST_A_SECOND, every=2), "the queues are not empty"
    exits += [workers.end(each) for each in list(workers.logs) if each.poll() is None]
    return _report(deployment, workers, ledger, kinds, exits)


def _schedule(client: Client, ledger: Ledger, queue: str, kinds: list[str], choices: random.Random) -> dict[str, str]:
    """Schedule jobs of one queue, now and by the table, and cancel some at once; return their kinds by id."""
    new = [
        NewJob(
            payload={"kind": kind},
            delay=choices.choice((0, 0, 1.5, 3, LATEST_SECONDS)),
            priority=choices.choice((1, 2)) if queue == "hooks" else 1,
        )
        for kind in kinds
    ]
    jobs = until_answered(client, queue, new)
    for job in jobs:
        ledger.accept(job)
    cancelled = [job.id for job in jobs if choices.random() < CANCELLED_SHARE]
    answers = client.cancel_many(cancelled)
    # Of an error it is not known whether it took effect.
    statuses = [STATUSES.get(answer, 503) if isinstance(answer, State) else 503 for answer in answers]
    ledger.cancels |= dict(zip(cancelled, statuses, strict=True))
    return {job.id: kind for job, kind in zip(jobs, kinds, strict=True)}


def _is_empty(client: Client, queue: str) -> bool:
    figures = client.queue(queue)
    return not (figures.scheduled or figures.depth.waiting or figures.depth.in_flight or figures.depth.delayed)


def _report(
    deployment: Deployment, workers: "Workers", ledger: Ledger, kinds: dict[str, str], exits: list[int]
) -> Report:
    report = Report()
    for effect in worker_app.effects(workers.effects):
        at, due = datetime.fromtimestamp(effect["at"], UTC), ledger.accepted[effect["id"]]
        attributes = {"dueline-id": effect["id"], "dueline-due": due.isoformat()}
        ledger.delivered.append(Landed(body="", attributes=attributes, sent=at, visible=at))
    dead = {each["dueline-id"]: each.get("dueline-error", "moved by SQS") for each in deployment.dead_letters()}
    ledger.parked |= dead.keys()
    interrupted = sum(error in NOT_KNOWN for error in dead.values())
    ledger.check(report, deployment)
    wrong = {
        "had their effect twice": ledger.repeated,
        "had an effect, and were to have none": [id for id in ledger.times if kinds[id] in ERRORS],
        "died of another error": [id for id, error in dead.items() if error not in {ERRORS.get(kinds[id]), *NOT_KNOWN}],
    }
    for what, ids in wrong.items():
        report.expect(not ids, f"{len(ids)} jobs {what}: {ids[:3]}")
    report.expect(interrupted <= MOST_INTERRUPTED, f"{interrupted} jobs were interrupted, by one kill")
    report.expect(not any(exits), f"workers that were ended by SIGTERM exited with {exits}")
    report.expect(len(exits) == 3, f"{len(exits)} workers were ended")
    report.expect(200 in ledger.cancels.values(), "no cancel was promised")
    report.details += [workers.log] if report.complaints else []
    report.figures |= {
        "jobs by kind": dict(Counter(kinds.values())),
        "dead letters by error": dict(Counter(dead.values())),
        "workers' exits": exits,
    }
    return report


@dataclass(slots=True)
class Workers:
    """Worker processes, each with a log of its own; all write into `effects`."""

    deployment: Deployment
    effects: Path = field(init=False)
    logs: dict["subprocess.Popen[bytes]", Path] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.effects = self.deployment.folder / "effects"

    def start(self, *, processes: int) -> "subprocess.Popen[bytes]":
        """Start a worker of so many processes, and return once it has opened its queues.

        One that ends before is started again, as an orchestrator does: AWS did not answer it in time.
        """
        command = [sys.executable, "-m", "dueline", "worker", f"{worker_app.__name__}:worker"]
        command += ["--processes", str(processes), "--grace", str(GRACE_SECONDS)]
        env = environment_of(self.deployment.emulator, "chaos")
        env |= {worker_app.EFFECTS: str(self.effects), "POWERTOOLS_LOG_LEVEL": "DEBUG"}
        deadline = time.monotonic() + HANG_SECONDS
        while time.monotonic() < deadline:
            file = self.deployment.folder / f"worker-{len(self.logs)}.log"
            with file.open("wb") as log:
                worker = subprocess.Popen(command, cwd=ROOT, env=env, stdout=log, stderr=log)
            self.logs[worker] = file
            if self._opens(worker, processes * len(QUEUES)):
                return worker
        raise AssertionError(f"no worker begins: {self.log}")

    def _opens(self, worker: "subprocess.Popen[bytes]", queues: int) -> bool:
        has_opened = lambda: self.logs[worker].read_text().count('"opened"') >= queues  # noqa: E731
        return wait_until(lambda: has_opened() or worker.poll() is not None) and has_opened()

    def end(self, worker: "subprocess.Popen[bytes]") -> int:
        """End a worker as an orchestrator does; return with what it exited, 0 if it had not started a job."""
        worker.send_signal(signal.SIGTERM)
        code = worker.wait(GRACE_SECONDS * 2)
        # AWS did not answer in time for it to begin.
        return code if '"started"' in self.logs[worker].read_text() else 0

    def kill_a_process(self, worker: "subprocess.Popen[bytes]") -> None:
        """Kill one of a worker's processes, as the kernel does that has no memory left; it is replaced."""

        def processes() -> list[int]:
            lines = self.logs[worker].read_text().splitlines()
            return [json.loads(line)["pid"] for line in lines if '"process started"' in line]

        started = processes()
        os.kill(started[-1], signal.SIGKILL)
        assert wait_until(lambda: len(processes()) > len(started)), self.log

    def kill(self) -> None:
        for worker in self.logs:
            worker.kill()
            worker.wait()

    @property
    def log(self) -> str:
        return "\n".join(file.read_text() for file in self.logs.values())
