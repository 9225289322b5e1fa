"""A cancel, step by step."""

from collections.abc import Callable
from typing import NamedTuple

from tests.simulation.model.store import IDLE, PAST, Rules, Steps, Store, union


class Cancel(NamedTuple):
    """A cancel, of a job where there are two to cancel. `early_fence` is what it reads too early without a rule."""

    step: str = IDLE
    early_fence: str = ""
    job: str = ""


class Cancelling:
    """Write the cancellation, read the fence, and note a promise and give it: at once, for no other process looks."""

    def __init__(self, rules: Rules, *, job: str = "a") -> None:
        self.rules, self.job = rules, job

    def steps(self, store: Store, me: Cancel) -> Steps:
        step: Callable[[Store, Cancel], Steps] = self.ask if me.step == IDLE else getattr(self, me.step)
        yield from step(store, me)
        yield "crashes", store, Cancel()

    def ask(self, store: Store, me: Cancel) -> Steps:
        if not self.rules.cancellation_then_fence and not me.early_fence:
            yield f"finds the fence {store.fence}", store, Cancel(IDLE, early_fence=store.fence)
        elif self.job in store.exact:
            yield "finds the promise, answers 200", store.promise(self.job), Cancel()
        else:
            yield "writes the cancellation", store.put("cancelled", self.job), me._replace(step="read_fence")

    def read_fence(self, store: Store, me: Cancel) -> Steps:
        if (me.early_fence or store.fence) == PAST:
            yield "finds the fence past due, answers 202", store.promise_nothing(self.job), Cancel()
        else:
            yield "finds the fence before due, notes its promise, answers 200", self.promise(store), Cancel()
        if not self.rules.fence_is_consistent_for_cancels:
            yield "finds an old fence, notes its promise, answers 200", self.promise(store), Cancel()
        unread = store if self.rules.unread_fence_promises_nothing else self.promise(store)
        yield "gets no answer about the fence", unread, Cancel()

    def promise(self, store: Store) -> Store:
        noted = store._replace(exact=union(store.exact, self.job)) if self.rules.promise_is_noted else store
        return noted.promise(self.job)
