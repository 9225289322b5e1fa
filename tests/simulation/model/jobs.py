"""Two jobs: all processes together, in every state that they can be in."""

from dataclasses import dataclass

from tests.simulation.model.explore import Kinds, Model, run_undisturbed, together
from tests.simulation.model.processes import Cancel, Cancelling, Delivery, Ingest, Tick, Ticking
from tests.simulation.model.store import JOBS, Rules, Steps, Store, less, union


@dataclass(frozen=True, kw_only=True, slots=True)
class Crowd:
    """How many deliveries and ticks there are, whether the due time is far at first, and how many states there are."""

    states: int
    deliveries: int = 1
    ticks: int = 1
    is_far: bool = False


CROWDS = {
    "one of each": Crowd(states=13_549),
    "two deliveries": Crowd(states=192_631, deliveries=2),
    "two ticks": Crowd(states=180_389, ticks=2),
    "two of each": Crowd(states=2_671_778, deliveries=2, ticks=2),
    "far at first": Crowd(states=23_013, is_far=True),
    "far at first, two deliveries": Crowd(states=416_000, deliveries=2, is_far=True),
    "far at first, two ticks": Crowd(states=278_227, ticks=2, is_far=True),
}


class TwoJobs(Model):
    """All processes together."""

    def __init__(self, rules: Rules, crowd: Crowd) -> None:
        self.ingest, self.ticking, self.cancelling = Ingest(rules), Ticking(rules, goes_on=True), Cancelling(rules)
        self.crowd = crowd

    def start(self) -> Store:
        return Store(is_far=self.crowd.is_far)

    def kinds(self) -> Kinds:
        return [
            ((Delivery(),) * self.crowd.deliveries, together("ingest", self.ingest.steps)),
            ((Tick(),) * self.crowd.ticks, self.ticking.together),
            ((Cancel(),), together("cancel", self.cancelling.steps)),
            ((), pass_time),
        ]

    def broken(self, store: Store) -> str:
        if store.promise_withdrawn or (store.promised and "a" in store.sent):
            return "exact cancel"
        return "at least once" if store.repeated else ""

    def lost(self, store: Store) -> str:
        """Deliver once more what is not acknowledged, tick once more past due, and let nothing go wrong."""
        end = store._replace(is_far=False)
        if store.acknowledged != JOBS:
            end = run_undisturbed(self.ingest.steps, end, Delivery())
        end = run_undisturbed(self.ticking.steps, end, Tick())
        return "never lost" if less(JOBS, union(end.sent, end.cancelled())) else ""


def pass_time(store: Store, nobody: tuple[()]) -> Steps:
    """Let the due time come so near that a fence past it may be signed."""
    if store.is_far:
        yield "time passes: the due time is far no more", store._replace(is_far=False), nobody
