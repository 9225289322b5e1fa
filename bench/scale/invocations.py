"""Lambda as a model: the tick as it is fired, and ingest as SQS's pollers call it."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from random import Random
from typing import cast

from bench.scale.parameters import Aws
from bench.scale.queues import Inbound, InboundQueue, QueuePort
from bench.scale.record import PARTITION, Record
from bench.scale.story import Outage
from bench.scale.table import Storage, TablePort
from bench.scale.turns import Environment, Turns
from dueline.config.settings import longest_send
from dueline.errors import RETRYABLE
from dueline.memory import MemoryQueue
from dueline.ports import Table
from dueline.protocol.dispatch import Dispatcher
from dueline.protocol.ingest import Ingest, Received
from dueline.protocol.lease import Lease, Periods
from dueline.protocol.park import Parking
from dueline.protocol.tick import Tick

# As functions/tick.py and functions/ingest.py have it: what may come after the last send.
_REQUESTS_AFTER_THE_LAST_SEND = 4


@dataclass(frozen=True, kw_only=True, slots=True)
class Region:
    """What the functions of a simulated partition find around them: AWS, the time, its queues and its table."""

    aws: Aws
    turns: Turns
    random: Random
    record: Record
    inbound: InboundQueue
    storage: Storage
    outage: Outage | None = None

    def is_down(self, service: str) -> bool:
        outage = self.outage
        return outage is not None and outage.service == service and outage.start <= self.turns.elapsed < outage.end


class Functions:
    """The functions of a simulated partition. Environments are kept warm, and cold when one more is needed.

    `dispatched` has when each tick ended, and how many jobs it handed over.
    """

    def __init__(self, region: Region) -> None:
        self._region = region
        self._warm = self._owners = 0
        self.dispatched: list[tuple[float, int]] = []
        deployed = region.aws.deployed
        self._longest_send = longest_send(int(deployed.lease))
        self._periods = Periods(
            period=timedelta(seconds=region.aws.scheduler.period),
            lookahead=timedelta(seconds=deployed.lookahead),
            lease=timedelta(seconds=deployed.lease),
            longest_send=self._longest_send,
        )

    def tick(self, attempt: int = 1) -> None:
        """Be invoked, and again a minute later where the lease could not be asked for."""
        region, functions = self._region, self._region.aws.functions
        region.turns.sleep(functions.invocation.draw(region.random))
        at = self._environment()
        try:
            done = self._a_tick(at).run()
            self.dispatched.append((region.turns.elapsed, done.dispatched))
        except RETRYABLE:
            if attempt < region.aws.deployed.tick_attempts:
                region.turns.start(partial(self.tick, attempt + 1), after=functions.retry_seconds)
        self._warm += 1

    def start_pollers(self) -> None:
        """Let SQS's pollers begin, as Lambda's ramp has it."""
        region = self._region
        for start in region.aws.functions.pollers.starts(region.aws.deployed.ingest_functions):
            region.turns.start(self._poll, after=start + region.random.random() * region.aws.deployed.window)

    def _environment(self) -> Environment:
        """Return an environment, after a cold start where none is idle."""
        region, functions = self._region, self._region.aws.functions
        if self._warm:
            self._warm -= 1
        else:
            region.turns.sleep(functions.cold_start.draw(region.random))
        return Environment(region.turns, vcpu=functions.vcpu, lanes=region.aws.deployed.lanes)

    def _a_tick(self, at: Environment) -> Tick:
        deployed, longest = self._region.aws.deployed, self._longest_send.total_seconds()
        until = at.monotonic() + deployed.tick_timeout - _REQUESTS_AFTER_THE_LAST_SEND * longest
        table = self._table(at, most=longest)
        self._owners += 1
        owner = f"owner {self._owners}"
        lease = Lease(PARTITION, table=table, clock=at, periods=self._periods, owner=owner, until=until)
        dispatcher = self._dispatcher(at, table, cpu=self._region.aws.functions.tick_cpu, most=longest)
        return Tick(PARTITION, lease=lease, table=table, dispatcher=dispatcher, clock=at)

    def _table(self, at: Environment, *, most: float) -> Table:
        region = self._region
        is_down, cpu = self._is_down("dynamodb"), region.aws.functions.ingest_cpu
        port = TablePort(region.storage, at=at, random=region.random, is_down=is_down, cpu=cpu, most=most)
        return cast(Table, port)

    def _dispatcher(self, at: Environment, table: Table, *, cpu: float, most: float) -> Dispatcher:
        region = self._region
        queue = QueuePort(
            region.aws, region.record, at=at, random=region.random, is_down=self._is_down("sqs"), cpu=cpu, most=most
        )
        parking = Parking(table=table, dead_letters=MemoryQueue(name="dispatch-dlq", clock=at), clock=at)
        jitter = region.random.random
        return Dispatcher(level=lambda _: queue, parking=parking, clock=at, jitter=jitter, spread=at.spread)

    def _is_down(self, service: str) -> Callable[[], bool]:
        return partial(self._region.is_down, service)

    def _poll(self) -> None:
        """Gather a batch, invoke ingest, and put back what failed, again and again."""
        region, deployed = self._region, self._region.aws.deployed
        at = Environment(region.turns, vcpu=region.aws.functions.vcpu, lanes=deployed.lanes)
        ingest = self._an_ingest(at)
        while True:
            if len(region.inbound.waiting) < deployed.batch or region.is_down("sqs"):
                region.turns.sleep(deployed.window)
            if region.is_down("sqs"):
                continue
            received = region.inbound.receive(deployed.batch, now=region.turns.elapsed)
            visible = region.turns.elapsed + deployed.visibility_timeout
            again = self._ingest(ingest, received) if received else []
            for each in region.inbound.settle(received, again=again, visible=visible):
                region.record.note_ingested(each.message)

    def _ingest(self, ingest: Ingest, received: list[Inbound]) -> list[Inbound]:
        """Ingest a batch; return what is to come again."""
        deployed, turns = self._region.aws.deployed, self._region.turns
        after_the_last_send = _REQUESTS_AFTER_THE_LAST_SEND * deployed.ingest_longest_request
        batch = [
            Received(message_id=str(number), message=each.message, receives=each.receives)
            for number, each in enumerate(received)
        ]
        done = ingest.run(batch, until=turns.elapsed + deployed.ingest_timeout - after_the_last_send)
        return [received[int(message_id)] for message_id in sorted(done.failed, key=int)]

    def _an_ingest(self, at: Environment) -> Ingest:
        functions, most = self._region.aws.functions, self._region.aws.deployed.ingest_longest_request
        table = self._table(at, most=most)
        # What ingest sends by the late path takes a tick's CPU besides.
        dispatcher = self._dispatcher(at, table, cpu=functions.tick_cpu, most=most)
        rejects = MemoryQueue(name="inbound-dlq", clock=at)
        return Ingest(
            table=table,
            dispatcher=lambda _: dispatcher,
            rejects=lambda: rejects,
            is_declared=lambda _: True,
            clock=at,
            spread=at.spread,
        )
