"""All processes together, in every state that they can be in."""

from collections.abc import Callable
from typing import Any

from tests.simulation.model.cancel import Cancel, Cancelling
from tests.simulation.model.explore import Explored, Promises, Search
from tests.simulation.model.ingest import Delivery, Ingest
from tests.simulation.model.moves import MoveModel
from tests.simulation.model.producers import ProducerModel
from tests.simulation.model.schedules.worlds import ScheduleModel
from tests.simulation.model.store import GONE, JOBS, Rules, Steps, Store, is_underway, less, union
from tests.simulation.model.tick import Tick, Ticking

# How many states there are with every rule kept.
MODEL_STATES = 1_146_781


class Model:
    """All processes together."""

    def __init__(self, rules: Rules) -> None:
        self.ingest, self.ticking, self.cancelling = Ingest(rules), Ticking(rules), Cancelling(rules)

    def search(self) -> Explored:
        kinds = [
            ((Delivery(), Delivery()), self.ingest.together),
            ((Tick(), Tick()), self.ticking.together),
            (Cancel(), self.cancel),
        ]
        promises = Promises(broken=self.broken, broken_at_rest=self.lost, is_underway=is_underway)
        return Search(Store(), kinds, promises).run()

    def cancel(self, store: Store, cancel: Cancel) -> Steps:
        for name, after, mine in self.cancelling.steps(store, cancel):
            yield f"cancel {name}", after, mine

    def broken(self, store: Store) -> str:
        """Return the promise that a state breaks at any time."""
        if store.taken_back or (store.promised and "a" in store.sent):
            return "exact cancel"
        return "at least once" if store.repeated else ""

    def lost(self, store: Store) -> str:
        """Return the promise that a state breaks where no process is underway."""
        _, end = self.undisturbed(store)
        return "never lost" if less(JOBS, union(end.sent, end.cancelled())) else ""

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


AnyModel = Model | ProducerModel | MoveModel | ScheduleModel


def story(model: AnyModel, explored: Explored) -> list[str]:
    """Tell how a promise was broken, or nothing."""
    is_seen_later = explored.broken and not model.broken(explored.shared)
    after = model.undisturbed(explored.shared)[0] if is_seen_later else []
    return [*explored.trace, *(f"undisturbed: {name}" for name in after), f"{explored.broken}: broken"]
