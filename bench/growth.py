"""Growth: what scheduling, looking up, cancelling and ticking cost by how many jobs wait in one partition.

Each size has an engine of its own: dynalite over a store on disk, which a million rows do not slow down, and an SQS
that takes all. The sizes take turns, round by round, so that what else the machine does meets all.
"""

import json
import math
import shutil
import statistics
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from subprocess import PIPE, Popen, run
from typing import Any
from unittest.mock import patch

import boto3
from boto3.dynamodb.types import TypeSerializer

from bench.counted import Meter, step_of
from bench.harness import Figures, Progress, Run, Target, chunks
from bench.stage import LONGEST, TABLE_SCHEMA, create_table
from dueline.aws import clients
from dueline.aws.aws_deployment import AwsDeployment
from dueline.config.names import Names
from dueline.core import instant, rows
from dueline.core.cancel import cancel
from dueline.core.job import Job, JobId, Partition, Route, State
from dueline.core.partitions import Lease
from dueline.core.ports import WRITE_ROWS
from dueline.core.queue_settings import QueueSettings
from dueline.core.request import Request
from dueline.core.rows import row_bytes
from dueline.core.status import status_of
from dueline.core.submit import SubmitResult
from dueline.core.tick import Tick
from dueline.testing import VirtualClock
from local.emulator import CREDENTIALS, REGION
from local.template import ROOT
from tests.simulation.lateness import PERIODS

NOW = datetime(2026, 11, 21, 7, 5, tzinfo=UTC)
PARTITION = Partition(queue="emails", number=0)
QUEUE = QueueSettings(name=PARTITION.queue, partitions=1, retention=timedelta(days=7))
NAMES = Names("bench")
SENT, ROW_BYTES = 1000, 1024
IDLE_TICK, BUSY_TICK = "idle tick", f"tick of {SENT:,} jobs"
COUNTS = ("requests", "bytes_out", "bytes_in", "read_units", "write_units")
_DYNALITE = ROOT / "tests" / "contract" / "node_modules" / "dynalite"
# Jobs wait from a day on for sixty; the jobs that are submitted come to lie amid them.
_WAIT_FROM, _WAIT_FOR, _SUBMITTED = timedelta(days=1), timedelta(days=60), timedelta(days=30)
_ENOUGH_SECONDS, _MOST_CPU = 170.0, 1.10
# A tick of 1,000 jobs is measured in one round of so many: it takes as long as all others together.
_BUSY_EVERY = _WARMING_ROUNDS = 8
# CPU seconds by step and by how many jobs wait, one of each round.
Rounds = dict[str, dict[int, list[float]]]


def measure(bench: Run) -> Figures:
    sizes, rounds = ((0, 100_000), 16) if bench.quick else ((0, 10_000, 1_000_000), 160)
    with places(sizes, scratch=bench.scratch) as ready:
        costs = {str(place.count): step_costs(place) for place in ready}
        cpu = cpu_rounds(ready, rounds=rounds, progress=bench.progress)
    steps = {
        step: {
            str(size): {**costs[str(size)][step], "cpu_ms": 1000 * statistics.median(seconds)}
            for size, seconds in by_size.items()
        }
        for step, by_size in cpu.items()
    }
    return {"sizes": list(map(str, sizes)), "rounds": rounds, "steps": steps}


def targets(figures: Figures) -> list[Target]:
    """Return what is to hold: counts that do not grow, and CPU that does by a tenth at most."""
    waiting = f"{int(figures['sizes'][-1]):,} waiting to none"
    return [
        *(
            Target(f"{what.replace('_', ' ')} of any step, {waiting}", max(growth(figures, what).values()), 1.0)
            for what in COUNTS
        ),
        *(Target(f"CPU of {step}, {waiting}", ratio, _MOST_CPU) for step, ratio in growth(figures, "cpu_ms").items()),
    ]


def growth(figures: Figures, what: str) -> dict[str, float]:
    """Return, for each step, how many times as much it takes with the most jobs waiting as with none.

    Of counts, that is the most of any size to the least, so that one which falls is not flat either.
    """
    grown = {}
    for step, by_size in figures["steps"].items():
        amounts = [by_size[size][what] for size in figures["sizes"]]
        counts = [sum(each.values()) if isinstance(each, dict) else each for each in amounts]
        least, most = min(counts), max(counts)
        spread = 1.0 if least == most else most / least if least else math.inf
        grown[step] = counts[-1] / counts[0] if what == "cpu_ms" else spread
    return grown


class Steps:
    """The steps, over the clients of a session. Each does as a function does, and fails where its answer is wrong."""

    def __init__(self, engine: dict[str, str], *, clock: VirtualClock, session: boto3.Session) -> None:
        self._clock = clock
        queue_urls = f"{engine['AWS_ENDPOINT_URL_SQS']}/0/"
        self._resources = AwsDeployment(NAMES.deployment, queue_urls=queue_urls, longest=LONGEST, session=session)
        self._resources.clock = clock
        with patch.dict("os.environ", engine):
            self.table, _ = self._resources.table, self._resources.inbound
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
        _expect(result.state is State.SCHEDULED, result)
        self._id = result.job.id

    def _look_up(self) -> None:
        state = status_of(self._id, queue=QUEUE, table=self.table, now=self._clock.now()).state
        _expect(state is State.SCHEDULED, state)

    def _cancel(self) -> None:
        state = cancel(self._id, queue=QUEUE, table=self.table, now=self._clock.now())
        _expect(state is State.CANCELLED, state)

    def _tick(self, *, jobs: int) -> None:
        table, clock, owner = self.table, self._clock, str(uuid.uuid4())
        lease = Lease(PARTITION, table=table, clock=clock, periods=PERIODS, owner=owner, until=self._until)
        dispatcher = self._resources.dispatcher(QUEUE.name, precise=False)
        done = Tick(PARTITION, lease=lease, table=table, dispatcher=dispatcher, clock=clock).run()
        _expect(done.owned_lease and done.finished and done.dispatched == jobs, done)

    @property
    def _until(self) -> float:
        return self._clock.monotonic() + _ENOUGH_SECONDS

    def _put(self, jobs: int, *, due: datetime) -> None:
        """Put jobs with rows of 1 KiB straight into the table, as those that were submitted long before."""
        id = JobId(partition=PARTITION, route=Route.TABLE, due=due, uid=str(uuid.uuid4()))
        row = rows.job_row(Job(id=id, payload='""', expires=due + timedelta(days=7)))
        row = {**row, "payload": f'"{"x" * (ROW_BYTES - row_bytes(row))}"'}
        new = [{**row, "sk": f"{instant.text(due)}#{uuid.uuid4()}#{rows.JOB}"} for _ in range(jobs)]
        for some in chunks(new, WRITE_ROWS):
            _expect(not self.table.write(some), "unwritten rows")


def _expect(holds: bool, got: object) -> None:
    """Let no figure stand for a step that did something else."""
    if not holds:
        raise RuntimeError(f"a step went wrong: {got}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """A table in which so many jobs wait, once with clients as they are, and once with clients that are counted."""

    count: int
    bare: Steps
    counted: Steps
    meter: Meter


@contextmanager
def places(sizes: Sequence[int], *, scratch: Path) -> Iterator[list[Place]]:
    with ExitStack() as stack:
        yield [_place(stack.enter_context(_engine(scratch / f"{count}", count)), count) for count in sizes]


def _place(engine: dict[str, str], count: int) -> Place:
    account: Any = CREDENTIALS
    clock, (bare, counted) = VirtualClock(NOW), (boto3.Session(region_name=REGION, **account) for _ in range(2))
    meter = Meter(counted)
    with patch.dict("os.environ", engine):
        client = clients.dynamodb(bare, longest=LONGEST)
    for name in (NAMES.table, NAMES.state):
        create_table(client, name)
    of = [Steps(engine, clock=clock, session=session) for session in (bare, counted)]
    place = Place(count=count, bare=of[0], counted=of[1], meter=meter)
    check(place.bare, count)
    return place


def _waiting(count: int) -> tuple[rows.Row, datetime, timedelta]:
    """Return the first row of jobs that wait, their payload one digit, when it is due, and the time between them."""
    id = JobId(partition=PARTITION, route=Route.TABLE, due=NOW + _WAIT_FROM, uid=str(uuid.uuid4()))
    row = rows.job_row(Job(id=id, payload="1", expires=id.due + _WAIT_FOR + timedelta(days=7)))
    return row, id.due, max(_WAIT_FOR // max(count, 1), timedelta(milliseconds=1))


@contextmanager
def _engine(folder: Path, waiting: int) -> Iterator[dict[str, str]]:
    """Yield the endpoints of a new engine whose table is not made yet, but holds so many jobs once it is."""
    node = shutil.which("node")
    if node is None or not _DYNALITE.is_dir():
        raise RuntimeError("dynalite is not installed: `make check` does it, and needs Node 20 or later")
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


def cpu_rounds(places: Sequence[Place], *, rounds: int, progress: Progress) -> Rounds:
    """Return the CPU seconds of this process for each step and size, of each round."""
    taken: Rounds = defaultdict(lambda: defaultdict(list))
    for number in range(-_WARMING_ROUNDS, rounds):
        progress(f"round {number} of {rounds}")
        for step in places[0].bare.all:
            if step == BUSY_TICK and number % _BUSY_EVERY:
                continue
            # Another size is the first in each round.
            first = number % len(places)
            for place in (*places[first:], *places[:first]):
                place.bare.prepare(step)
                begun = time.process_time()
                place.bare.all[step]()
                seconds = time.process_time() - begun
                if number >= 0:
                    taken[step][place.count].append(seconds)
    return taken


def step_costs(place: Place) -> dict[str, Figures]:
    """Return the requests, bytes and units of each step: the second time, for the first finds no fence yet."""
    costs = {}
    for step in (*place.counted.all, *place.counted.all):
        place.counted.prepare(step)
        with place.meter.counting() as exchanges:
            place.counted.all[step]()
        counted = step_of(exchanges, jobs=1)
        costs[step] = {
            "requests": dict(sorted(counted.calls.items())),
            "bytes_out": counted.bytes_out,
            "bytes_in": counted.bytes_in,
            "read_units": counted.reads,
            "write_units": counted.writes,
        }
    return costs
