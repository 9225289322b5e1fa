"""All processes together, in every state that they can be in."""

from collections.abc import Callable
from typing import Any

from tests.simulation.model.cancel import Cancel, Cancelling
from tests.simulation.model.explore import Explored, Search
from tests.simulation.model.ingest import Delivery, Ingest
from tests.simulation.model.store import GONE, IDLE, JOBS, Rules, Steps, Store, less, union
from tests.simulation.model.tick import Tick, Ticking

# How many states there are with every rule kept.
MODEL_STATES = 1_146_781


class Model:
    """All processes together. Those of a kind are alike, so that it does not matter which is which: they are sorted."""

    def __init__(self, rules: Rules) -> None:
        self.ingest, self.ticking, self.cancelling = Ingest(rules), Ticking(rules), Cancelling(rules)
        self._lost: dict[Store, str] = {}

    def search(self) -> Explored:
        start = Store(), (Delivery(), Delivery()), (Tick(), Tick()), Cancel()
        return Search(start, (self.deliver, self.tick, self.cancel), self.broken).run()

    def deliver(self, store: Store, deliveries: tuple[Delivery, ...]) -> Steps:
        for index, me in enumerate(deliveries):
            others = deliveries[:index] + deliveries[index + 1 :]
            for name, after, mine in self.ingest.steps(store, me, others):
                yield f"ingest {name}", after, tuple(sorted((mine, *others)))

    def tick(self, store: Store, ticks: tuple[Tick, ...]) -> Steps:
        for index, me in enumerate(ticks):
            others = ticks[:index] + ticks[index + 1 :]
            for name, after, mine in self.ticking.steps(store, me, others):
                taken = mine.holds and not me.holds
                left = [other._replace(holds=other.holds and not taken) for other in others]
                yield f"tick {name}", after, tuple(sorted(map(self.ticking.what_matters, (mine, *left))))

    def cancel(self, store: Store, cancel: Cancel) -> Steps:
        for name, after, mine in self.cancelling.steps(store, cancel):
            yield f"cancel {name}", after, mine

    def broken(self, store: Store, deliveries: tuple[Delivery, ...], ticks: tuple[Tick, ...], cancel: Cancel) -> str:
        """Return the promise that a state breaks. That no job is lost shows where no process is underway."""
        if store.taken_back or (store.promised and "a" in store.sent):
            return "exact cancel"
        if store.repeated:
            return "at least once"
        steps = [cancel.step, *(each.step for each in deliveries), *(each.step for each in ticks)]
        return self.lost(store) if set(steps) <= {IDLE, GONE} else ""

    def lost(self, store: Store) -> str:
        if store not in self._lost:
            _, end = self.undisturbed(store)
            self._lost[store] = "never lost" if less(JOBS, union(end.sent, end.cancelled())) else ""
        return self._lost[store]

    def undisturbed(self, store: Store) -> tuple[list[str], Store]:
        """Deliver once more what is not acknowledged, tick once more past due, and let nothing go wrong."""
        names = []
        kinds: list[tuple[Callable[..., Steps], Any]] = [(self.ticking.steps, Tick())]
        if store.acknowledged != JOBS:
            kinds.insert(0, (self.ingest.steps, Delivery()))
        for steps, me in kinds:
            while me.step != GONE:
                name, store, me = next(steps(store, me, ()))
                names.append(name)
        return names, store


def story(model: Model, explored: Explored) -> list[str]:
    """Tell how a promise was broken, or nothing."""
    after = model.undisturbed(explored.shared)[0] if explored.broken == "never lost" else []
    return [*explored.trace, *(f"undisturbed: {name}" for name in after), f"{explored.broken}: broken"]
