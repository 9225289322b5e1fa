"""Lambda as a model: the tick as it is fired, and ingest as SQS's pollers call it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from random import Random
from typing import cast

from bench.scale.parameters import Aws
from bench.scale.queues import Arrive, Inbound, InboundQueue, QueuePort
from bench.scale.record import Record
from bench.scale.story import Outage
from bench.scale.table import Storage, TablePort
from bench.scale.turns import Environment, Turns
from dueline.config.settings import longest_send
from dueline.errors import RETRYABLE
from dueline.memory import MemoryQueue
from dueline.model.job import JobId, Partition
from dueline.model.message import ID, Message
from dueline.ports import Table
from dueline.protocol.dispatch import Dispatcher
from dueline.protocol.ingest import Ingest, Received
from dueline.protocol.lease import Lease, Periods
from dueline.protocol.park import Parking
from dueline.protocol.tick import Tick

# As functions/tick.py and functions/ingest.py have it: what may come after the last send.
_REQUESTS_AFTER_THE_LAST_SEND = 4


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """A partition: its rows, and what became of its jobs."""

    storage: Storage
    record: Record


@dataclass(frozen=True, kw_only=True, slots=True)
class Region:
    """What functions find around them: AWS, the time, the inbound queue, and partitions by their partition keys."""

    aws: Aws
    turns: Turns
    random: Random
    inbound: InboundQueue
    places: Mapping[str, Place]
    outage: Outage | None = None

    def record_of(self, id: str) -> Record:
        return self.places[str(JobId.parse(id).partition)].record

    def is_down(self, service: str) -> bool:
        outage = self.outage
        return outage is not None and outage.service == service and outage.start <= self.turns.elapsed < outage.end

    def environment(self) -> Environment:
        return Environment(self.turns, vcpu=self.aws.functions.vcpu, lanes=self.aws.deployed.lanes)

    def table(self, at: Environment, *, most: float) -> Table:
        storages = {key: place.storage for key, place in self.places.items()}
        given = {"at": at, "random": self.random, "is_down": partial(self.is_down, "dynamodb"), "most": most}
        port = TablePort(self.aws.dynamodb, storages, cpu=self.aws.functions.ingest_cpu, **given)  # type: ignore[arg-type]
        return cast(Table, port)

    def queue(self, at: Environment, arrive: Arrive, *, cpu: float, most: float) -> QueuePort:
        is_down = partial(self.is_down, "sqs")
        return QueuePort(self.aws, arrive, at=at, random=self.random, is_down=is_down, cpu=cpu, most=most)

    def dispatcher(self, at: Environment, table: Table, *, most: float) -> Dispatcher:
        """Return what sends to teams' queues. It takes a tick's CPU, whoever does."""
        queue = self.queue(at, self._sent, cpu=self.aws.functions.tick_cpu, most=most)
        parking = Parking(table=table, dead_letters=MemoryQueue(name="dispatch-dlq", clock=at), clock=at)
        jitter = self.random.random
        return Dispatcher(level=lambda _: queue, parking=parking, clock=at, jitter=jitter, spread=at.spread)

    def _sent(self, message: Message, visible: float) -> None:
        id = message.attributes[ID]
        self.record_of(id).note_sent(id, visible=visible)


class Functions:
    """Ticks and ingest. Environments are kept warm, and cold when one more is needed.

    `dispatched` has when each tick ended, and how many jobs it handed over; `failed_ticks` counts those that did not
    get as far.
    """

    def __init__(self, region: Region) -> None:
        self._region = region
        self._warm = self._owners = self.failed_ticks = 0
        self.dispatched: list[tuple[float, int]] = []
        deployed = region.aws.deployed
        self._longest_send = longest_send(int(deployed.lease))
        self._periods = Periods(
            period=timedelta(seconds=region.aws.scheduler.period),
            lookahead=timedelta(seconds=deployed.lookahead),
            lease=timedelta(seconds=deployed.lease),
            longest_send=self._longest_send,
        )

    def tick(self, partition: Partition, attempt: int = 1) -> None:
        """Be invoked, and again a minute later where the lease could not be asked for."""
        region, functions = self._region, self._region.aws.functions
        region.turns.sleep(functions.invocation.draw(region.random))
        at = self._environment()
        try:
            done = self._a_tick(partition, at).run()
            self.dispatched.append((region.turns.elapsed, done.dispatched))
        except RETRYABLE:
            self.failed_ticks += 1
            if attempt < region.aws.deployed.tick_attempts:
                region.turns.start(partial(self.tick, partition, attempt + 1), after=functions.retry_seconds)
        self._warm += 1

    def start_pollers(self) -> None:
        """Let SQS's pollers begin, as Lambda's ramp has it."""
        region = self._region
        for start in region.aws.functions.pollers.starts(region.aws.deployed.ingest_functions):
            region.turns.start(self._poll, after=start + region.random.random() * region.aws.deployed.window)

    def _environment(self) -> Environment:
        """Return an environment, after a cold start where none is idle."""
        region = self._region
        if self._warm:
            self._warm -= 1
        else:
            region.turns.sleep(region.aws.functions.cold_start.draw(region.random))
        return region.environment()

    def _a_tick(self, partition: Partition, at: Environment) -> Tick:
        deployed, longest = self._region.aws.deployed, self._longest_send.total_seconds()
        until = at.monotonic() + deployed.tick_timeout - _REQUESTS_AFTER_THE_LAST_SEND * longest
        table = self._region.table(at, most=longest)
        self._owners += 1
        owner = f"owner {self._owners}"
        lease = Lease(partition, table=table, clock=at, periods=self._periods, owner=owner, until=until)
        dispatcher = self._region.dispatcher(at, table, most=longest)
        return Tick(partition, lease=lease, table=table, dispatcher=dispatcher, clock=at)

    def _poll(self) -> None:
        """Gather a batch, invoke ingest, and put back what failed, again and again."""
        region, deployed = self._region, self._region.aws.deployed
        ingest = self._an_ingest(region.environment())
        while True:
            if len(region.inbound.waiting) < deployed.batch or region.is_down("sqs"):
                region.turns.sleep(deployed.window)
            if region.is_down("sqs"):
                continue
            received = region.inbound.receive(deployed.batch, now=region.turns.elapsed)
            visible = region.turns.elapsed + deployed.visibility_timeout
            again = self._ingest(ingest, received) if received else []
            for each in region.inbound.settle(received, again=again, visible=visible):
                id = each.message.attributes[ID]
                region.record_of(id).note_written(id)

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
        most = self._region.aws.deployed.ingest_longest_request
        table = self._region.table(at, most=most)
        dispatcher, rejects = self._region.dispatcher(at, table, most=most), MemoryQueue(name="inbound-dlq", clock=at)
        return Ingest(
            table=table,
            dispatcher=lambda _: dispatcher,
            rejects=lambda: rejects,
            is_declared=lambda _: True,
            clock=at,
            jitter=self._region.random.random,
            spread=at.spread,
        )
