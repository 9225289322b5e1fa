"""A direct schedule beside a bare PutItem of the same row: requests, time and CPU time, in turns in one process."""

import base64
import io
import sys
import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any

import boto3

from bench.harness import Figures, Target, emulated_aws, expect, print_result, run_apart
from bench.payloads import QUEUE, USUAL
from bench.stage import Stage
from dueline import Client
from dueline.core.job import State

LATER = timedelta(days=1)
PAIRS, QUICK_PAIRS, WARM_UP = 1500, 300, 100
BARE, DUELINE = "PutItem", "Dueline"
# The local AWS's own DynamoDB, and the one whose units are AWS's.
LOCAL, DYNALITE = "the local AWS", "dynalite"


def measure(scratch: Path, *, quick: bool) -> Figures:
    """Schedule jobs, and put as many of their rows, over two engines."""
    options, log = ["--quick"] if quick else [], scratch / "calls.log"
    with emulated_aws(scratch) as environment:
        local = {name: value for name, value in environment.items() if name != "AWS_ENDPOINT_URL_DYNAMODB"}
        return {
            engine: run_apart("bench.calls", *options, log=log, environment=variables)
            for engine, variables in ((LOCAL, local), (DYNALITE, environment))
        }


def targets(figures: Figures) -> list[Target]:
    return [Target("p50 of a direct schedule, to one PutItem", figures[LOCAL]["ratio"], 1.15)]


def main(*, quick: bool) -> None:
    sys.stdout = out = io.StringIO()
    stage, payload, numbers = Stage(out), USUAL.payload(1), count()

    def schedule_by(client: Client) -> Callable[[], None]:
        def schedule() -> None:
            job = client.schedule(QUEUE, payload, delay=LATER)
            expect(job.state is State.SCHEDULED, job)

        return schedule

    counted = schedule_by(stage.client)
    # The first reads the queue's settings.
    counted()
    with stage.meter.counting() as exchanges:
        counted()
    put_item = next(each.body for each in exchanges if each.operation == BARE)
    row, table = _as_boto3_takes_it(put_item["Item"]), put_item["TableName"]
    # Neither session has the hook that counts.
    dynamodb: Any = boto3.Session().client("dynamodb")

    def put() -> None:
        dynamodb.put_item(TableName=table, Item={**row, "sk": {"S": f"{row['sk']['S']}{next(numbers)}"}})

    client = Client.connect(stage.names.deployment, session=boto3.Session(), direct=True)
    took = in_turns({BARE: put, DUELINE: schedule_by(client)}, pairs=QUICK_PAIRS if quick else PAIRS)
    print_result({"requests": [each.operation for each in exchanges], **took})


def _as_boto3_takes_it(item: Mapping[str, Mapping[str, str]]) -> dict[str, Any]:
    """Return the item in a request's body, whose bytes are in base64, as boto3 takes it."""
    return {
        name: {kind: base64.b64decode(value) if kind == "B" else value for kind, value in each.items()}
        for name, each in item.items()
    }


def in_turns(calls: Mapping[str, Callable[[], None]], *, pairs: int) -> Figures:
    """Return the median time and CPU time of each call, in milliseconds, and the time of ours to the bare one's."""
    took: dict[str, list[tuple[float, float]]] = {name: [] for name in calls}
    for turn in range(WARM_UP + pairs):
        # Each comes first in every other turn.
        for name in list(calls)[:: -1 if turn % 2 else 1]:
            wall, cpu = time.perf_counter(), time.process_time()
            calls[name]()
            took[name].append((time.perf_counter() - wall, time.process_time() - cpu))
    p50_ms, cpu_ms = (
        {name: 1000 * median(each[which] for each in all[WARM_UP:]) for name, all in took.items()} for which in (0, 1)
    )
    return {"pairs": pairs, "p50_ms": p50_ms, "cpu_ms": cpu_ms, "ratio": p50_ms[DUELINE] / p50_ms[BARE]}


if __name__ == "__main__":
    main(quick="--quick" in sys.argv)
