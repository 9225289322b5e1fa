"""A producer that writes the table itself, step by step; the steps of the table's route are those of ingest."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from typing import NamedTuple

from tests.simulation.model.ingest import Delivery, Ingest
from tests.simulation.model.store import GONE, IDLE, JOBS, Rules, Store, less, union

# The id that the caller has made; where a rule is left out, the same job goes on under the other one, too.
ID, OTHER_ID = JOBS
# What producers and ingest are both asked: by its name for producers, its name for ingest.
OF_INGEST = {
    "put_then_fence": "rows_then_fence",
    "producer_sends_late_jobs": "late_jobs_are_sent",
    "unread_fence_fills_the_buffer": "unread_fence_is_unknown",
    "fence_is_consistent_for_producers": "fence_is_consistent_for_ingest",
    "producer_reads_fence_then_cancellation": "fence_then_cancellations",
    "unread_cancellation_fills_the_buffer": "unread_cancellation_is_unknown",
    "producer_sends_then_notes": "sent_then_noted",
    "producer_leaves_a_note": "late_path_leaves_a_note",
}

ProducerSteps = Iterator[tuple[str, "Submitted", Delivery]]


@dataclass(frozen=True, kw_only=True, slots=True)
class ProducerRules(Rules):
    """What the protocol asks of producers, first what it asks of ingest, too; each may be left out."""

    put_then_fence: bool = True
    producer_sends_late_jobs: bool = True
    unread_fence_fills_the_buffer: bool = True
    fence_is_consistent_for_producers: bool = True
    producer_reads_fence_then_cancellation: bool = True
    unread_cancellation_fills_the_buffer: bool = True
    producer_sends_then_notes: bool = True
    producer_leaves_a_note: bool = True

    unanswered_put_fills_the_buffer: bool = True
    unsent_fills_the_buffer: bool = True
    answered_after_the_late_path: bool = True
    buffered_under_the_same_id: bool = True
    tried_again_under_the_same_id: bool = True
    unbuffered_is_an_error: bool = True
    open_breaker_fills_the_buffer: bool = True

    @classmethod
    def own(cls) -> list[str]:
        """Return the rules for producers alone."""
        return [rule.name for rule in fields(cls) if rule not in fields(Rules)]

    def of_table_route(self) -> Rules:
        """Return the rules that producers share with ingest, as producers keep them."""
        return replace(Rules(), **{theirs: getattr(self, ours) for ours, theirs in OF_INGEST.items()})


class Submitted(NamedTuple):
    """What all processes share: the store, the inbound queue's messages, and what the caller was told.

    `flying` tells whether a put that was not answered may yet take effect, `first` what became of the first try.
    `buffered` are the ids that the inbound queue ever had, `waiting` those of them not acknowledged. An id in
    `accepted` was answered by `scheduled` or `accepted`.
    """

    store: Store = Store()
    flying: bool = False
    first: str = IDLE
    buffered: str = ""
    waiting: str = ""
    accepted: str = ""

    def begin(self) -> "Submitted":
        """Begin a try: every one but the first is a cause of repeats."""
        if self.first == IDLE:
            return self._replace(first="underway")
        return self.keep(self.store.excuse(JOBS))

    def end(self) -> "Submitted":
        return self._replace(first=GONE)

    def answer(self, id: str) -> "Submitted":
        return self._replace(accepted=union(self.accepted, id))

    def buffer(self, id: str) -> "Submitted":
        return self._replace(buffered=union(self.buffered, id), waiting=union(self.waiting, id))

    def fly(self) -> "Submitted":
        """Let a put be under way that has no answer; it matters while there is no such row."""
        return self._replace(flying=f"{ID}#job" not in self.store.rows)

    def keep(self, store: Store) -> "Submitted":
        """Take in a store after a step, and which messages that acknowledged; drop what matters no more."""
        flying = self.flying and f"{ID}#job" not in store.rows
        first = GONE if ID in store.excused else self.first
        waiting = less(self.waiting, store.acknowledged)
        return self._replace(store=store._replace(acknowledged=""), flying=flying, first=first, waiting=waiting)


class Producing:
    """Put the row, read the fence, take the late path, answer; what is not certain goes into the buffer.

    A call that takes its time is one without an answer: what it does it may do at any time after.
    """

    def __init__(self, rules: ProducerRules) -> None:
        self.rules, self.route = rules, Ingest(rules.of_table_route())

    def steps(self, shared: Submitted, me: Delivery) -> ProducerSteps:
        if me.step == IDLE:
            yield from self.begin(shared)
        else:
            own: dict[str, Callable[[Submitted, Delivery], ProducerSteps]] = {"put": self.put, "fill": self.fill}
            yield from own.get(me.step, self.go_on)(shared, me)
            yield "crashes", shared.keep(shared.store.excuse(me.sent)).end(), Delivery()

    def begin(self, shared: Submitted) -> ProducerSteps:
        begun, is_retry = shared.begin(), shared.first != IDLE
        id = OTHER_ID if is_retry and not self.rules.tried_again_under_the_same_id else ID
        early_fence = "" if self.rules.put_then_fence else shared.store.fence
        early_cancelled = "" if self.rules.producer_reads_fence_then_cancellation else shared.store.cancelled()
        yield f"begins {id}", begun, Delivery("put", id, early_fence=early_fence, early_cancelled=early_cancelled)
        if self.rules.open_breaker_fills_the_buffer:
            yield f"begins {id} with its breaker open", begun, Delivery("fill", id)
        else:
            yield f"drops {id} with its breaker open, answers accepted", begun.answer(id).end(), Delivery()

    def put(self, shared: Submitted, me: Delivery) -> ProducerSteps:
        id, written = me.todo, me._replace(step="read_fence", todo="", done=me.todo)
        there = shared.keep(shared.store.put("job", id))
        yield f"writes {id}", there if self.rules.answered_after_the_late_path else there.answer(id), written
        unanswered = Delivery("fill", id) if self.rules.unanswered_put_fills_the_buffer else written
        yield f"gets no answer to its put of {id}", shared.fly() if id == ID else shared, unanswered

    def go_on(self, shared: Submitted, me: Delivery) -> ProducerSteps:
        """Go on as ingest does; where that would leave the message to come again, fill the buffer."""
        step: Callable[..., Iterator[tuple[str, Store, Delivery]]] = getattr(self.route, me.step)
        for name, store, mine in step(shared.store, me):
            after, id = shared.keep(store), me.todo or me.done
            is_unsent = me.step == "send" and mine.step == GONE
            if mine.step != GONE:
                yield name, after, mine
            elif store.acknowledged or (is_unsent and not self.rules.unsent_fills_the_buffer):
                yield f"{name}, answers scheduled", after.answer(id).end(), Delivery()
            elif me.step != "note":
                yield name, after, Delivery("fill", id)

    def fill(self, shared: Submitted, me: Delivery) -> ProducerSteps:
        id = me.todo if self.rules.buffered_under_the_same_id else OTHER_ID
        sent = shared.buffer(id)
        yield f"sends {id} to the buffer, answers accepted", sent.answer(id).end(), Delivery()
        yield f"sends {id} to the buffer, but the answer is lost", sent.keep(sent.store.excuse(id)), me
        refused = shared if self.rules.unbuffered_is_an_error else shared.answer(id)
        yield f"cannot send {id} to the buffer, answers with an error", refused.end(), Delivery()
