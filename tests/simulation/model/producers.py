"""A job whose row its producers write, with the steps of ingest: all processes, in every state that they can be in."""

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import NamedTuple

from tests.simulation.model.explore import GONE, IDLE, Kinds, Model, Steps, restarted, run_undisturbed, together
from tests.simulation.model.jobs import Cancel, Cancelling, Crowd, Delivery, Ingest, Tick, Ticking
from tests.simulation.model.store import JOBS, Rules, Store, less, rule, union

# The id that the caller has made; where a rule is left out, the same job goes on under the other one, too.
ID, OTHER_ID = JOBS
# Before the name of a rule of ingest that producers keep, too.
PRODUCERS = "producers_"


@dataclass(frozen=True, kw_only=True, slots=True)
class ProducerRules(Rules):
    """What the protocol requires of producers, first what it requires of ingest, too; each may be left out."""

    producers_rows_then_fence: bool = rule("never lost")
    producers_late_jobs_are_sent: bool = rule("never lost")
    producers_unread_fence_is_unknown: bool = rule("never lost")
    producers_fence_is_consistent_for_ingest: bool = rule("never lost")
    producers_fence_then_cancellations: bool = rule("exact cancel")
    producers_unread_cancellation_is_unknown: bool = rule("exact cancel")
    producers_sent_then_noted: bool = rule("never lost")
    producers_late_path_leaves_a_note: bool = rule("at least once")
    producers_far_row_is_signed_in_time: bool = rule("never lost", "far at first")

    unanswered_put_fills_the_buffer: bool = rule("never lost")
    unsent_fills_the_buffer: bool = rule("never lost")
    answered_after_the_late_path: bool = rule("never lost")
    buffered_under_the_same_id: bool = rule("one job")
    tried_again_under_the_same_id: bool = rule("one job")
    unbuffered_is_an_error: bool = rule("never lost")
    open_breaker_fills_the_buffer: bool = rule("never lost")

    def of_table_route(self) -> Rules:
        """Return the rules that producers share with ingest, as producers keep them."""
        own = (each for each in asdict(self).items() if each[0].startswith(PRODUCERS))
        return Rules(**{name.removeprefix(PRODUCERS): is_kept for name, is_kept in own})


class Submitted(NamedTuple):
    """What all processes share: the store, the inbound queue's messages, and what the caller was answered.

    `flying` is whether a put that was not answered may yet take effect, `first` what became of the first try.
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

    def steps(self, shared: Submitted, me: Delivery, others: tuple[Delivery, ...]) -> Steps:
        if me.step == IDLE:
            yield from self.begin(shared)
        else:
            own: dict[str, Callable[[Submitted, Delivery], Steps]] = {"put": self.put, "fill": self.fill}
            yield from own.get(me.step, self.go_on)(shared, me)
            yield "crashes", shared.keep(shared.store.excuse(me.sent)).end(), Delivery()

    def begin(self, shared: Submitted) -> Steps:
        started, is_retry = shared.begin(), shared.first != IDLE
        id = OTHER_ID if is_retry and not self.rules.tried_again_under_the_same_id else ID
        yield f"begins {id}", started, self.route.starting(shared.store)._replace(step="put", todo=id)
        if self.rules.open_breaker_fills_the_buffer:
            yield f"begins {id} with its breaker open", started, Delivery("fill", id)
        else:
            yield f"drops {id} with its breaker open, answers accepted", started.answer(id).end(), Delivery()

    def put(self, shared: Submitted, me: Delivery) -> Steps:
        me = self.route.landed(shared.store, me)
        id, written = me.todo, me._replace(step="read_fence", todo="", done=me.todo)
        there = shared.keep(shared.store.put("job", id))
        yield f"writes {id}", there if self.rules.answered_after_the_late_path else there.answer(id), written
        unanswered = Delivery("fill", id) if self.rules.unanswered_put_fills_the_buffer else written
        yield f"gets no answer to its put of {id}", shared.fly() if id == ID else shared, unanswered

    def go_on(self, shared: Submitted, me: Delivery) -> Steps:
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

    def fill(self, shared: Submitted, me: Delivery) -> Steps:
        id = me.todo if self.rules.buffered_under_the_same_id else OTHER_ID
        sent = shared.buffer(id)
        yield f"sends {id} to the buffer, answers accepted", sent.answer(id).end(), Delivery()
        yield f"sends {id} to the buffer, but the answer is lost", sent.keep(sent.store.excuse(id)), me
        refused = shared if self.rules.unbuffered_is_an_error else shared.answer(id)
        yield f"cannot send {id} to the buffer, answers with an error", refused.end(), Delivery()


# All processes together.


SIZES = {
    "one page": Crowd(states=145_898, ticks=2, at_once=True),
    "any pages": Crowd(states=1_591_215, deliveries=2, ticks=2),
    "far at first": Crowd(states=323_624, ticks=2, at_once=True, is_far=True),
}


class ProducerModel(Model):
    """All processes together. One that has ended begins again."""

    def __init__(self, rules: ProducerRules, crowd: Crowd) -> None:
        self.crowd = crowd
        self.producing, self.ingest = Producing(rules), Ingest(rules)
        self.ticking, self.cancelling = Ticking(rules, at_once=crowd.at_once), Cancelling(rules, job=ID)

    def start(self) -> Submitted:
        return Submitted(store=Store(is_far=self.crowd.is_far))

    def kinds(self) -> Kinds:
        return [
            ((Delivery(),) * 2, together("producer", self.producing.steps)),
            ((Delivery(),) * self.crowd.deliveries, together("ingest", self.ingested, begins_again=True)),
            ((Tick(),) * self.crowd.ticks, self.tick),
            ((Cancel(),), together("cancel", self.cancel)),
            ((), self.land),
            ((), self.pass_time),
        ]

    def ingested(self, shared: Submitted, me: Delivery, others: tuple[Delivery, ...] = ()) -> Steps:
        if me.step == IDLE:
            yield from self.receive(shared, is_repeated=any(other.underway() for other in others))
            return
        for name, store, mine in self.ingest.steps(shared.store, me):
            yield name, shared.keep(store), mine

    def receive(self, shared: Submitted, *, is_repeated: bool) -> Steps:
        for id in shared.buffered:
            me = Delivery("write_rows", id)
            if id in shared.waiting and not is_repeated:
                yield f"receives {id}", shared, me
            else:
                yield f"receives {id} as SQS repeats it", shared.keep(shared.store.excuse(id)), me

    def tick(self, shared: Submitted, ticks: tuple[Tick, ...]) -> Steps:
        for name, store, after in self.ticking.together(self.as_ticks_see(shared), ticks):
            kept = shared._replace(store=store._replace(acknowledged=""))
            yield name, kept, tuple(sorted(map(restarted, after)))

    @staticmethod
    def as_ticks_see(shared: Submitted) -> Store:
        """Return the store, with what is neither being submitted nor waiting as acknowledged."""
        settled = "" if shared.first == "underway" else less(JOBS, shared.waiting)
        return shared.store._replace(acknowledged=settled)

    def cancel(self, shared: Submitted, cancel: Cancel, others: tuple[Cancel, ...]) -> Steps:
        for name, store, mine in self.cancelling.steps(shared.store, cancel):
            yield name, shared.keep(store), mine

    def land(self, shared: Submitted, nobody: tuple[()]) -> Steps:
        if shared.flying:
            yield "the put without an answer takes effect", shared.keep(shared.store.put("job", ID)), nobody

    def pass_time(self, shared: Submitted, nobody: tuple[()]) -> Steps:
        if shared.store.is_far:
            yield "time passes", shared.keep(shared.store._replace(is_far=False)), nobody

    def broken(self, shared: Submitted) -> str:
        store = shared.store
        if store.promise_withdrawn or set(store.promised) & set(store.sent):
            return "exact cancel"
        if len(store.sent) > 1:
            return "one job"
        return "at least once" if store.repeated else ""

    def lost(self, shared: Submitted) -> str:
        """Deliver once more what is not acknowledged, tick once more past due, and let nothing go wrong."""
        end = shared._replace(store=shared.store._replace(is_far=False))
        for id in end.waiting:
            end = run_undisturbed(self.ingested, end, Delivery("write_rows", id))
        store = run_undisturbed(self.ticking.steps, self.as_ticks_see(end), Tick())
        return "never lost" if less(end.accepted, union(store.sent, store.cancelled())) else ""
