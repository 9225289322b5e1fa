"""A job that producers submit: all processes together, in every state that they can be in."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.simulation.model.cancel import Cancel, Cancelling
from tests.simulation.model.explore import Explored, Promises, Search
from tests.simulation.model.ingest import Delivery, Ingest
from tests.simulation.model.moves import anew
from tests.simulation.model.producer import ID, ProducerRules, Producing, Submitted
from tests.simulation.model.store import GONE, IDLE, JOBS, Store, is_underway, less, union
from tests.simulation.model.tick import Tick, Ticking

# How many states there are with every rule kept: as ticks read one page, and as they read any.
ONE_PAGE, ANY_PAGES = "one page", "any pages"
PRODUCER_STATES = {ONE_PAGE: 145_898, ANY_PAGES: 1_591_215}

SubmittedSteps = Iterator[tuple[str, Submitted, Any]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Size:
    """How many processes there are at a time, and whether a tick reads one page alone."""

    producers: int = 2
    deliveries: int = 1
    ticks: int = 2
    at_once: bool = False


SIZES = {ONE_PAGE: Size(at_once=True), ANY_PAGES: Size(deliveries=2)}


class ProducerModel:
    """All processes together. One that has ended begins anew."""

    def __init__(self, rules: ProducerRules, size: Size) -> None:
        self.size = size
        self.producing, self.ingest = Producing(rules), Ingest(rules)
        self.ticking, self.cancelling = Ticking(rules, at_once=size.at_once), Cancelling(rules, job=ID)

    def search(self) -> Explored:
        size = self.size
        kinds: list[tuple[Any, Any]] = [
            ((Delivery(),) * size.producers, self.produce),
            ((Delivery(),) * size.deliveries, self.deliver),
            ((Tick(),) * size.ticks, self.tick),
            (Cancel(), self.cancel),
            ((), self.land),
        ]
        promises = Promises(broken=self.broken, broken_at_rest=self.lost, is_underway=is_underway)
        return Search(Submitted(), kinds, promises).run()

    def produce(self, shared: Submitted, producers: tuple[Delivery, ...]) -> SubmittedSteps:
        for index, me in enumerate(producers):
            others = producers[:index] + producers[index + 1 :]
            for name, after, mine in self.producing.steps(shared, me):
                yield f"producer {name}", after, tuple(sorted((mine, *others)))

    def deliver(self, shared: Submitted, deliveries: tuple[Delivery, ...]) -> SubmittedSteps:
        for index, me in enumerate(deliveries):
            others = deliveries[:index] + deliveries[index + 1 :]
            for name, after, mine in self.ingested(shared, me, others):
                yield f"ingest {name}", after, tuple(sorted((anew(mine), *others)))

    def ingested(self, shared: Submitted, me: Delivery, others: tuple[Delivery, ...] = ()) -> SubmittedSteps:
        if me.step == IDLE:
            yield from self.receive(shared, is_repeated=any(other.underway() for other in others))
            return
        for name, store, mine in self.ingest.steps(shared.store, me, ()):
            yield name, shared.keep(store), mine

    def receive(self, shared: Submitted, *, is_repeated: bool) -> SubmittedSteps:
        for id in shared.buffered:
            me = Delivery("write_rows", id)
            if id in shared.waiting and not is_repeated:
                yield f"receives {id}", shared, me
            else:
                yield f"receives {id} as SQS repeats it", shared.keep(shared.store.excuse(id)), me

    def tick(self, shared: Submitted, ticks: tuple[Tick, ...]) -> SubmittedSteps:
        for name, store, after in self.ticking.together(self.seen_by_ticks(shared), ticks):
            kept = shared._replace(store=store._replace(acknowledged=""))
            yield name, kept, tuple(sorted(map(anew, after)))

    @staticmethod
    def seen_by_ticks(shared: Submitted) -> Store:
        """Return the store, with what is neither being submitted nor waiting as acknowledged."""
        settled = "" if shared.first == "underway" else less(JOBS, shared.waiting)
        return shared.store._replace(acknowledged=settled)

    def cancel(self, shared: Submitted, cancel: Cancel) -> SubmittedSteps:
        for name, store, mine in self.cancelling.steps(shared.store, cancel):
            yield f"cancel {name}", shared.keep(store), mine

    def land(self, shared: Submitted, nobody: tuple[()]) -> SubmittedSteps:
        if shared.flying:
            yield "the put without an answer takes effect", shared.keep(shared.store.put("job", ID)), nobody

    def broken(self, shared: Submitted) -> str:
        """Return the promise that a state breaks at any time."""
        store = shared.store
        if store.taken_back or set(store.promised) & set(store.sent):
            return "exact cancel"
        if len(store.sent) > 1:
            return "one job"
        return "at least once" if store.repeated else ""

    def lost(self, shared: Submitted) -> str:
        """Return the promise that a state breaks where no process is underway."""
        _, end = self.undisturbed(shared)
        return "never lost" if less(end.accepted, union(end.store.sent, end.store.cancelled())) else ""

    def undisturbed(self, shared: Submitted) -> tuple[list[str], Submitted]:
        """Deliver once more what is not acknowledged, tick once more past due, and let nothing go wrong."""
        names = []
        for id in shared.waiting:
            me = Delivery("write_rows", id)
            while me.step != GONE:
                name, shared, me = next(self.ingested(shared, me))
                names.append(name)
        tick, store = Tick(), self.seen_by_ticks(shared)
        while tick.step != GONE:
            name, store, tick = next(self.ticking.steps(store, tick, ()))
            names.append(name)
        return names, shared._replace(store=store._replace(acknowledged=""))
