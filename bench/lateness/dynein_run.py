"""Dynein's protocol in the same local AWS: its table, a poller at one poll a second, and the same plain consumers."""

import math
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

from bench.dynein import cut, job_row
from bench.jobs_table import create_table
from bench.lateness.books import Run
from bench.lateness.plan import LANES, Load, Scheduled, job_of
from bench.lateness.stage import Stage
from bench.lateness.waiting import wait_for_the_last
from bench.part import Progress
from bench.processes import python, running
from dueline.aws.dynamodb.table import DynamoTable
from dueline.ports import WRITE_ROWS

TABLE = "dynein"
_STORED_A_SECOND = 400
_WRITERS = 4


def measure(stage: Stage, load: Load, progress: Progress) -> Run:
    """Put the load into Dynein's table, and let it land."""
    written, log = stage.folder / "dynein", stage.folder / "dynein.log"
    environment, urls = stage.environment(written), _made(stage)
    wishes = tuple(load.wishes())
    with ExitStack() as stack:
        scheduled = Scheduled(begin=math.ceil(time.time() + len(wishes) / _STORED_A_SECOND + 2), wishes=wishes)
        progress("Dynein: schedule", 0, 1)
        _store(stage, scheduled)
        of_lanes = [f"{lane}={url}" for lane, url in urls.items()]
        for command in (
            python("bench.lateness.plain_consumer", *urls.values()),
            python("bench.lateness.dynein_poller", TABLE, *of_lanes),
        ):
            stack.enter_context(running(command, log=log, environment=environment))
        wait_for_the_last("Dynein: jobs land", progress, scheduled=scheduled, written=written)
    return Run.read(scheduled, written)


def _made(stage: Stage) -> dict[str, str]:
    """Make the table and a queue a partition; return the queues' URLs."""
    dynamodb, sqs = stage.emulator.client("dynamodb"), stage.emulator.client("sqs")
    create_table(dynamodb, TABLE)
    return {lane: sqs.create_queue(QueueName=f"dynein-{lane}")["QueueUrl"] for lane in LANES}


def _store(stage: Stage, scheduled: Scheduled) -> None:
    """Put the rows, 25 a request: how they came into the table is not what is measured."""
    table: Any = DynamoTable(stage.emulator.client("dynamodb"), TABLE, state=TABLE)
    written = [job_row(job_of(wish, scheduled)) for wish in scheduled.wishes]
    with ThreadPoolExecutor(_WRITERS) as pool:
        if any(pool.map(table.write, cut(written, WRITE_ROWS))):
            raise RuntimeError("rows were left unwritten")
