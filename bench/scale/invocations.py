"""Lambda as a model: the tick as it is fired, and ingest as SQS's pollers call it."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, cast

from bench.scale.queues import Inbound, QueuePort
from bench.scale.record import PARTITION
from bench.scale.table import TablePort
from bench.scale.turns import Environment
from dueline.config.settings import longest_send
from dueline.errors import RETRYABLE
from dueline.memory import MemoryQueue
from dueline.ports import Table
from dueline.protocol.dispatch import Dispatcher
from dueline.protocol.ingest import Ingest, Received
from dueline.protocol.lease import Lease, Periods
from dueline.protocol.park import Parking
from dueline.protocol.tick import Tick

if TYPE_CHECKING:
    from bench.scale.world import World

# As functions/tick.py and functions/ingest.py have it: what may come after the last send.
_REQUESTS_AFTER_THE_LAST_SEND = 4


class Functions:
    """The functions of a simulated partition. Environments are kept warm, and cold when one more is needed."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._warm = self._owners = self.cold_starts = 0
        deployed = world.aws.deployed
        self._longest_send = longest_send(int(deployed.lease))
        self._periods = Periods(
            period=timedelta(seconds=world.aws.scheduler.period),
            lookahead=timedelta(seconds=deployed.lookahead),
            lease=timedelta(seconds=deployed.lease),
            longest_send=self._longest_send,
        )

    def tick(self, attempt: int = 1) -> None:
        """Be invoked, and again a minute later where the lease could not be asked for."""
        world, functions = self._world, self._world.aws.functions
        world.turns.sleep(functions.invocation.draw(world.random))
        at = self._environment()
        try:
            world.note_tick(self._a_tick(at).run())
        except RETRYABLE:
            if attempt < world.aws.deployed.tick_attempts:
                world.turns.start(partial(self.tick, attempt + 1), after=functions.retry_seconds)
        self._warm += 1

    def start_pollers(self) -> None:
        """Let SQS's pollers begin, as Lambda's ramp has it."""
        world = self._world
        for start in world.aws.functions.pollers.starts(world.aws.deployed.ingest_functions):
            world.turns.start(self._poll, after=start + world.random.random() * world.aws.deployed.window)

    def _environment(self) -> Environment:
        """Return an environment, after a cold start where none is idle."""
        world, functions = self._world, self._world.aws.functions
        if self._warm:
            self._warm -= 1
        else:
            self.cold_starts += 1
            world.turns.sleep(functions.cold_start.draw(world.random))
        return Environment(world.turns, vcpu=functions.vcpu, lanes=world.aws.deployed.lanes)

    def _a_tick(self, at: Environment) -> Tick:
        deployed, longest = self._world.aws.deployed, self._longest_send.total_seconds()
        until = at.monotonic() + deployed.tick_timeout - _REQUESTS_AFTER_THE_LAST_SEND * longest
        table = self._table(at, most=longest)
        self._owners += 1
        owner = f"owner {self._owners}"
        lease = Lease(PARTITION, table=table, clock=at, periods=self._periods, owner=owner, until=until)
        dispatcher = self._dispatcher(at, table, cpu=self._world.aws.functions.tick_cpu, most=longest)
        return Tick(PARTITION, lease=lease, table=table, dispatcher=dispatcher, clock=at)

    def _table(self, at: Environment, *, most: float) -> Table:
        world = self._world
        is_down, cpu = self._is_down("dynamodb"), world.aws.functions.ingest_cpu
        port = TablePort(world.storage, at=at, random=world.random, is_down=is_down, cpu=cpu, most=most)
        return cast(Table, port)

    def _dispatcher(self, at: Environment, table: Table, *, cpu: float, most: float) -> Dispatcher:
        world = self._world
        queue = QueuePort(
            world.aws, world.record, at=at, random=world.random, is_down=self._is_down("sqs"), cpu=cpu, most=most
        )
        parking = Parking(table=table, dead_letters=MemoryQueue(name="dispatch-dlq", clock=at), clock=at)
        jitter = world.random.random
        return Dispatcher(level=lambda _: queue, parking=parking, clock=at, jitter=jitter, spread=at.spread)

    def _is_down(self, service: str) -> Callable[[], bool]:
        return partial(self._world.is_down, service)

    def _poll(self) -> None:
        """Gather a batch, invoke ingest, and put back what failed, again and again."""
        world, deployed = self._world, self._world.aws.deployed
        at = Environment(world.turns, vcpu=world.aws.functions.vcpu, lanes=deployed.lanes)
        ingest = self._an_ingest(at)
        while True:
            if len(world.inbound.waiting) < deployed.batch or world.is_down("sqs"):
                world.turns.sleep(deployed.window)
            if world.is_down("sqs"):
                continue
            received = world.inbound.receive(deployed.batch, now=world.turns.elapsed)
            visible = world.turns.elapsed + deployed.visibility_timeout
            again = self._ingest(ingest, received) if received else []
            for each in world.inbound.settle(received, again=again, visible=visible):
                world.record.note_ingested(each.message)

    def _ingest(self, ingest: Ingest, received: list[Inbound]) -> list[Inbound]:
        """Ingest a batch; return what is to come again."""
        deployed, turns = self._world.aws.deployed, self._world.turns
        after_the_last_send = _REQUESTS_AFTER_THE_LAST_SEND * deployed.ingest_longest_request
        batch = [
            Received(message_id=str(number), message=each.message, receives=each.receives)
            for number, each in enumerate(received)
        ]
        done = ingest.run(batch, until=turns.elapsed + deployed.ingest_timeout - after_the_last_send)
        return [received[int(message_id)] for message_id in sorted(done.failed, key=int)]

    def _an_ingest(self, at: Environment) -> Ingest:
        functions, most = self._world.aws.functions, self._world.aws.deployed.ingest_longest_request
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
