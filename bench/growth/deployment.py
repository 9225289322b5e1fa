"""One deployment on an engine: its queue has one partition, in which so many jobs wait."""

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from unittest.mock import patch

from bench import jobs_table
from bench.growth.drain import a_row
from bench.growth.engine import Engine, Rows
from dueline.aws import clients
from dueline.aws.resources import Resources
from dueline.config.names import Names
from dueline.lookup.status import look_up
from dueline.lookup.submitted import submitted_state
from dueline.memory import VirtualClock
from dueline.model import instant, rows
from dueline.model.job import Job, JobId, Partition, Route, State
from dueline.model.queue_settings import QueueSettings
from dueline.model.request import Request
from dueline.ports import WRITE_ROWS
from dueline.protocol.cancel import cancel
from dueline.protocol.lease import Lease
from dueline.protocol.tick import Tick
from tests.simulation.lateness import PERIODS

if TYPE_CHECKING:
    from boto3 import Session

NOW = datetime(2026, 11, 21, 7, 5, tzinfo=UTC)
PARTITION = Partition(queue="emails", number=0)
QUEUE = QueueSettings(name=PARTITION.queue, partitions=1, retention=timedelta(days=7))
HANDED_OVER = 1000
IDLE_TICK, HAND_OVER = "idle tick", f"tick of {HANDED_OVER:,} jobs"
_DEPLOYMENT = "bench"
_PAYLOAD = "x" * 800
_DIRECT_HORIZON = timedelta(seconds=890)
# The jobs that are submitted come to lie amid those that wait.
_WAIT_FROM, _WAIT_FOR, _SUBMITTED = timedelta(days=1), timedelta(days=60), timedelta(days=30)
_LONGEST = timedelta(seconds=10)
_ENOUGH_SECONDS = 170.0


def jobs_waiting(count: int) -> Rows:
    """Return so many jobs that wait, due over sixty days, their payload one digit."""
    id = JobId(partition=PARTITION, route=Route.TABLE, due=NOW + _WAIT_FROM, uid=str(uuid.uuid4()))
    row = rows.job_row(Job(id=id, payload="1", expires=id.due + _WAIT_FOR + QUEUE.retention))
    every = max(_WAIT_FOR // max(count, 1), timedelta(milliseconds=1))
    return Rows(table=Names(_DEPLOYMENT).table, count=count, row=row, first=id.due, step=every)


def create_tables(engine: Engine, session: "Session") -> None:
    with _reached(engine):
        client = clients.dynamodb(session, longest=_LONGEST)
    for name in (Names(_DEPLOYMENT).table, Names(_DEPLOYMENT).state):
        jobs_table.create_table(client, name)


@contextmanager
def _reached(engine: Engine) -> Iterator[None]:
    """Let clients that are made in the context speak to an engine."""
    endpoints = {"AWS_ENDPOINT_URL_DYNAMODB": engine.dynamodb, "AWS_ENDPOINT_URL_SQS": engine.sqs}
    with patch.dict("os.environ", endpoints):
        yield


class Stand:
    """What is measured, over the clients that a session makes.

    Each step does as a function of the deployment does, and fails where its answer is not the right one.
    """

    def __init__(self, engine: Engine, *, clock: VirtualClock, session: "Session") -> None:
        self._clock = clock
        self._resources = Resources(_DEPLOYMENT, queue_urls=f"{engine.sqs}/0/", longest=_LONGEST, session=session)
        self._resources.clock = clock
        with _reached(engine):
            self.table, _ = self._resources.table, self._resources.inbound
        self._id: JobId | None = None

    @property
    def steps(self) -> dict[str, Callable[[], None]]:
        """The steps, in the order in which they are taken."""
        return {
            "submit": self._submit,
            "look-up": self._look_up,
            "cancel": self._cancel,
            IDLE_TICK: lambda: self._tick(hands_over=0),
            HAND_OVER: lambda: self._tick(hands_over=HANDED_OVER),
        }

    def prepare(self, step: str) -> None:
        """Bring about what a step is to find."""
        if step in (IDLE_TICK, HAND_OVER):
            self._clock.sleep(PERIODS.period.total_seconds())
        if step == HAND_OVER:
            # After the fence of the last tick, and before that of the next.
            self._put(HANDED_OVER, due=self._clock.now() + PERIODS.lookahead - timedelta(seconds=1))

    def _submit(self) -> None:
        """Submit a job by the table's route."""
        request, until = Request(payload=_PAYLOAD, delay=_SUBMITTED.total_seconds()), self._until
        submit = self._resources.submit(QUEUE, direct_horizon=_DIRECT_HORIZON)
        (job,) = submit.run([request], until=until)
        if not isinstance(job, Job):
            raise job
        _expect(submitted_state(job) is State.SCHEDULED, job)
        self._id = job.id

    def _look_up(self) -> None:
        state = look_up(self._submitted, queue=QUEUE, table=self.table, now=self._clock.now())
        _expect(state is State.SCHEDULED, state)

    def _cancel(self) -> None:
        state = cancel(self._submitted, queue=QUEUE, table=self.table, now=self._clock.now())
        _expect(state is State.CANCELLED, state)

    def _tick(self, *, hands_over: int) -> None:
        done = self._a_tick().run()
        _expect(done.held and done.finished and done.dispatched == hands_over, done)

    @property
    def _submitted(self) -> JobId:
        if self._id is None:
            raise RuntimeError("no job was submitted yet")
        return self._id

    @property
    def _until(self) -> float:
        return self._clock.monotonic() + _ENOUGH_SECONDS

    def _a_tick(self) -> Tick:
        lease = Lease(
            PARTITION,
            table=self.table,
            clock=self._clock,
            periods=PERIODS,
            owner=str(uuid.uuid4()),
            until=self._until,
        )
        dispatcher = self._resources.dispatcher(QUEUE.name, precise=False)
        return Tick(PARTITION, lease=lease, table=self.table, dispatcher=dispatcher, clock=self._clock)

    def _put(self, jobs: int, *, due: datetime) -> None:
        """Put jobs with rows of 1 KiB straight into the table, as ingest does long before they are due."""
        template = a_row(PARTITION, due=due)
        new = [{**template, "sk": f"{instant.text(due)}#{uuid.uuid4()}#{rows.JOB}"} for _ in range(jobs)]
        for start in range(0, jobs, WRITE_ROWS):
            _expect(not self.table.write(new[start : start + WRITE_ROWS]), "unwritten rows")


def _expect(holds: bool, got: object) -> None:
    """Let no figure stand for a step that did something else."""
    if not holds:
        raise RuntimeError(f"a step went wrong: {got}")
