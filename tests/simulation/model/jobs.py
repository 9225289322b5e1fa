"""Two jobs: all processes together, in every state that they can be in."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.simulation.model.explore import Explored, Promises, Search
from tests.simulation.model.moves import MoveModel
from tests.simulation.model.name_worlds import NameModel
from tests.simulation.model.processes import Cancel, Cancelling, Delivery, Ingest, Tick, Ticking
from tests.simulation.model.producers import ProducerModel
from tests.simulation.model.schedules import ScheduleModel
from tests.simulation.model.store import GONE, JOBS, Rules, Steps, Store, is_underway, less, union


@dataclass(frozen=True, kw_only=True, slots=True)
class Crowd:
    """How many there are of the processes that may be several."""

    deliveries: int
    ticks: int


TWO_OF_EACH, TWO_DELIVERIES = Crowd(deliveries=2, ticks=2), Crowd(deliveries=2, ticks=1)
TWO_TICKS, ONE_OF_EACH = Crowd(deliveries=1, ticks=2), Crowd(deliveries=1, ticks=1)
# How many states there are with every rule kept.
CROWD_STATES = {TWO_OF_EACH: 2_671_778, TWO_DELIVERIES: 192_631, TWO_TICKS: 180_389, ONE_OF_EACH: 13_549}
MODEL_STATES = CROWD_STATES[TWO_OF_EACH]
# … where their due time is far at first.
FAR_STATES = {TWO_DELIVERIES: 416_000, TWO_TICKS: 278_227}


def crowd_without(rule: str) -> Crowd:
    """Return the smallest crowd in which a promise is broken without a rule."""
    of_ticks = ["lease_keeps_others_out", "fence_never_falls", "checkpoint_is_conditional", "cursor_rests_on_jobs"]
    of_ticks.append("sent_beyond_the_unsent_is_noted")
    among = dict.fromkeys(of_ticks, TWO_TICKS) | {"sent_then_noted": TWO_DELIVERIES}
    return among.get(rule, ONE_OF_EACH)


class Model:
    """All processes together."""

    def __init__(self, rules: Rules, crowd: Crowd = TWO_OF_EACH, *, is_far: bool = False) -> None:
        self.ingest, self.ticking, self.cancelling = Ingest(rules), Ticking(rules, goes_on=True), Cancelling(rules)
        self.crowd, self.first = crowd, Store(is_far=is_far)
        self.states = (FAR_STATES if is_far else CROWD_STATES).get(crowd)

    def search(self) -> Explored:
        kinds = [
            ((Delivery(),) * self.crowd.deliveries, self.ingest.together),
            ((Tick(),) * self.crowd.ticks, self.ticking.together),
            (Cancel(), self.cancel),
            ((), pass_time),
        ]
        promises = Promises(broken=self.broken, broken_at_rest=self.lost, is_underway=is_underway)
        return Search(self.first, kinds, promises).run()

    def cancel(self, store: Store, cancel: Cancel) -> Steps:
        for name, after, mine in self.cancelling.steps(store, cancel):
            yield f"cancel {name}", after, mine

    def broken(self, store: Store) -> str:
        """Return the promise that a state breaks at any time."""
        if store.promise_withdrawn or (store.promised and "a" in store.sent):
            return "exact cancel"
        return "at least once" if store.repeated else ""

    def lost(self, store: Store) -> str:
        """Return the promise that a state breaks where no process is underway."""
        _, end = self.undisturbed(store)
        return "never lost" if less(JOBS, union(end.sent, end.cancelled())) else ""

    def undisturbed(self, store: Store) -> tuple[list[str], Store]:
        """Deliver once more what is not acknowledged, tick once more past due, and let nothing go wrong."""
        names, store = [], store._replace(is_far=False)
        kinds: list[tuple[Callable[..., Steps], Any]] = [(self.ticking.steps, Tick())]
        if store.acknowledged != JOBS:
            kinds.insert(0, (self.ingest.steps, Delivery()))
        for steps, me in kinds:
            while me.step != GONE:
                name, store, me = next(steps(store, me, ()))
                names.append(name)
        return names, store


def pass_time(store: Store, nobody: tuple[()]) -> Steps:
    """Let the due time come so near that a fence past it may be signed."""
    if store.is_far:
        yield "time passes: the due time is far no more", store._replace(is_far=False), nobody


AnyModel = Model | ProducerModel | MoveModel | ScheduleModel | NameModel


def trace_of(model: AnyModel, explored: Explored) -> list[str]:
    """Return the steps to a broken promise."""
    is_seen_later = explored.broken and not model.broken(explored.shared)
    after = model.undisturbed(explored.shared)[0] if is_seen_later else []
    return [*explored.trace, *(f"undisturbed: {name}" for name in after), f"{explored.broken}: broken"]
