"""Growth: what scheduling, looking up, cancelling and ticking cost by how many jobs wait in one partition.

Each size has an engine of its own: dynalite over a store on disk, which a million rows do not slow down, and an SQS
that takes all.
"""

import json
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from subprocess import PIPE, Popen, run
from typing import Any
from unittest.mock import patch

import boto3
from boto3.dynamodb.types import TypeSerializer

from bench.counted import Meter, row_bytes, step_of
from bench.harness import Figures, Target, chunks, expect
from bench.stage import LONGEST, TABLE_SCHEMA, create_table
from dueline.aws import clients
from dueline.aws.aws_deployment import AwsDeployment
from dueline.config.names import Names
from dueline.core import instant, rows
from dueline.core.cancel import CancelMany, CancelResult
from dueline.core.job import Partition, State, SubmitResult
from dueline.core.partitions import Lease
from dueline.core.ports import WRITE_ROWS
from dueline.core.queue_settings import QueueSettings
from dueline.core.request import Request
from dueline.core.status import status_of
from dueline.core.tick import Tick
from dueline.testing import VirtualClock
from local.emulator import CREDENTIALS, REGION
from tests.builders import RETENTION, a_job
from tests.contract.dynalite import node_with_dynalite
from tests.simulation.lateness import PERIODS

NOW = datetime(2026, 11, 21, 7, 5, tzinfo=UTC)
PARTITION = Partition(queue="emails", number=0)
QUEUE = QueueSettings(name=PARTITION.queue, partitions=1, retention=RETENTION)
NAMES = Names("bench")
SIZES, SENT, ROW_BYTES = (0, 10_000, 1_000_000), 1000, 1024
IDLE_TICK, BUSY_TICK = "idle tick", f"tick of {SENT:,} jobs"
# Jobs wait from a day on for sixty; the jobs that are submitted come to lie amid them.
_WAIT_FROM, _WAIT_FOR, _SUBMITTED = timedelta(days=1), timedelta(days=60), timedelta(days=30)
_ENOUGH_SECONDS = 170.0


def measure(scratch: Path) -> Figures:
    with tables(SIZES, scratch=scratch) as ready:
        costs = {count: step_costs(table) for count, table in ready.items()}
    steps = {step: {str(size): costs[size][step] for size in SIZES} for step in costs[SIZES[0]]}
    return {"sizes": list(map(str, SIZES)), "steps": steps}


def targets(figures: Figures) -> list[Target]:
    """Return what is to hold: each count is the same however many jobs wait."""
    by_step = [list(by_size.values()) for by_size in figures["steps"].values()]
    return [
        Target(f"steps whose {what} depend on how many jobs wait", _grown(by_step, what.replace(" ", "_")), 0)
        for what in ("requests", "read units", "write units")
    ]


def _grown(by_step: Sequence[Sequence[Figures]], what: str) -> int:
    return sum(any(each[what] != by_size[0][what] for each in by_size) for by_size in by_step)


class Steps:
    """The steps, as functions do them, over clients that a meter counts; each fails where its answer is wrong."""

    def __init__(self, engine: dict[str, str]) -> None:
        account: Any = CREDENTIALS
        session = boto3.Session(region_name=REGION, **account)
        self.meter, self._clock = Meter(session), VirtualClock(NOW)
        queue_urls = f"{engine['AWS_ENDPOINT_URL_SQS']}/0/"
        self._resources = AwsDeployment(NAMES.deployment, queue_urls=queue_urls, longest=LONGEST, session=session)
        self._resources.clock = self._clock
        with patch.dict("os.environ", engine):
            client = clients.client("dynamodb", session, longest=LONGEST)
            self.table, _ = self._resources.table, self._resources.inbound
        for name in (NAMES.table, NAMES.state):
            create_table(client, name)
        self._id: Any = None
        self.all: dict[str, Callable[[], None]] = {
            "submit": self._submit,
            "look-up": self._look_up,
            "cancel": self._cancel,
            IDLE_TICK: lambda: self._tick(jobs=0),
            BUSY_TICK: lambda: self._tick(jobs=SENT),
        }

    def prepare(self, step: str) -> None:
        if step in (IDLE_TICK, BUSY_TICK):
            self._clock.sleep(PERIODS.period.total_seconds())
        if step == BUSY_TICK:
            # After the fence of the last tick, and before that of the next.
            self._put(SENT, due=self._clock.now() + PERIODS.lookahead - timedelta(seconds=1))

    def _submit(self) -> None:
        request = Request(payload="x" * 800, delay=_SUBMITTED.total_seconds())
        submit = self._resources.submit(QUEUE, direct_horizon=timedelta(seconds=890))
        (result,) = submit.run([request], until=self._until)
        if not isinstance(result, SubmitResult):
            raise result
        expect(result.state is State.SCHEDULED, result)
        self._id = result.job.id

    def _look_up(self) -> None:
        _, status = status_of(self._id, queue=QUEUE, table=self.table, now=self._clock.now())
        expect(status.state is State.SCHEDULED, status.state)

    def _cancel(self) -> None:
        (result,) = CancelMany(queue=QUEUE, table=self.table, clock=self._clock).run([self._id])
        state = result.state if isinstance(result, CancelResult) else result
        expect(state is State.CANCELLED, state)

    def _tick(self, *, jobs: int) -> None:
        table, clock, owner = self.table, self._clock, str(uuid.uuid4())
        lease = Lease(PARTITION, table=table, clock=clock, periods=PERIODS, owner=owner, until=self._until)
        dispatcher = self._resources.dispatcher(QUEUE.name, precise=False)
        done = Tick(lease, dispatcher=dispatcher).run()
        expect(done.owned_lease and done.finished and done.dispatched == jobs, done)

    @property
    def _until(self) -> float:
        return self._clock.monotonic() + _ENOUGH_SECONDS

    def _put(self, jobs: int, *, due: datetime) -> None:
        """Put jobs with rows of 1 KiB straight into the table, as those that were submitted long before."""
        row = rows.job_row(a_job(partition=PARTITION, due=due, payload='""'))
        row = {**row, "payload": f'"{"x" * (ROW_BYTES - row_bytes(row))}"'}
        new = [{**row, "sk": f"{instant.text(due)}#{uuid.uuid4()}#{rows.JOB}"} for _ in range(jobs)]
        for some in chunks(new, WRITE_ROWS):
            expect(not self.table.write(some), "unwritten rows")


@contextmanager
def tables(sizes: Sequence[int], *, scratch: Path) -> Iterator[dict[int, Steps]]:
    """Yield the steps of tables in which so many jobs wait."""
    with ExitStack() as stack:
        # By the steps' clock: what is signed too late is not sent.
        stack.enter_context(patch("botocore.auth.get_current_datetime", lambda: NOW + _WAIT_FROM))
        ready = {count: Steps(stack.enter_context(_engine(scratch / f"{count}", count))) for count in sizes}
        for count, steps in ready.items():
            check(steps, count)
        yield ready


def _waiting(count: int) -> tuple[rows.Row, datetime, timedelta]:
    """Return the first row of jobs that wait, their payload one digit, when it is due, and the time between them."""
    first = NOW + _WAIT_FROM
    job = a_job(partition=PARTITION, due=first, payload="1", expires=first + _WAIT_FOR + RETENTION)
    return rows.job_row(job), first, max(_WAIT_FOR // max(count, 1), timedelta(milliseconds=1))


@contextmanager
def _engine(folder: Path, waiting: int) -> Iterator[dict[str, str]]:
    """Yield the endpoints of a new engine whose table is not made yet, but holds so many jobs once it is."""
    node = node_with_dynalite()
    row, first, step = _waiting(waiting)
    plan = {
        "table": {"TableName": NAMES.table, **TABLE_SCHEMA},
        "rows": waiting,
        "item": {name: TypeSerializer().serialize(value) for name, value in row.items()},
        "first_ms": instant.epoch_ms(first),
        "step_ms": step // timedelta(milliseconds=1),
    }
    command: list[str | Path] = [node, Path(__file__).with_name("engine.js"), folder]
    run([*command, json.dumps(plan)], check=True)
    # A session of its own: Ctrl-C reaches the bench alone, which closes its standard input as it ends.
    with Popen(command, stdin=PIPE, stdout=PIPE, text=True, start_new_session=True) as process:
        ports = process.stdout.readline() if process.stdout else ""
        if not ports:
            raise RuntimeError("the engine ended as it started: what it says is above")
        yield {
            f"AWS_ENDPOINT_URL_{service.upper()}": f"http://127.0.0.1:{port}"
            for service, port in json.loads(ports).items()
        }


def check(steps: Steps, count: int) -> None:
    """Check what was loaded by the real code: the first row and the last are of jobs that wait, and that is all."""
    _, first, step = _waiting(count)
    last = instant.text(first + (count - 1) * step)
    for after, is_there in ((rows.FIRST, count > 0), (last, count > 0), (f"{last}~", False)):
        page = steps.table.page(PARTITION, after=after, until="~", limit=1).rows
        if [rows.read_job(row).payload for row in page] != ["1"] * is_there:
            raise RuntimeError(f"not as if {count} jobs wait: after {after} there are {page}")


def step_costs(steps: Steps) -> dict[str, Figures]:
    """Return the requests, bytes and units of each step: the second time, for the first finds no fence yet."""
    costs = {}
    for step in (*steps.all, *steps.all):
        steps.prepare(step)
        with steps.meter.counting() as exchanges:
            steps.all[step]()
        counted = step_of(exchanges, jobs=1)
        costs[step] = {
            "requests": dict(sorted(counted.calls.items())),
            "read_units": counted.reads,
            "write_units": counted.writes,
        }
    return costs
