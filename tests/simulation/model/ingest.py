"""Ingest, step by step."""

from collections.abc import Callable
from typing import NamedTuple

from tests.simulation.model.store import GONE, IDLE, JOBS, PAST, Rules, Steps, Store, less, union


class Delivery(NamedTuple):
    """Messages in the hands of an ingest. `early_*` is what it reads too early where a rule is left out."""

    step: str = IDLE
    todo: str = ""
    done: str = ""
    sent: str = ""
    early_fence: str = ""
    early_cancelled: str = ""

    def underway(self) -> bool:
        return self.step not in (IDLE, GONE)


class Ingest:
    """Write the rows, read the fence; of late jobs read the cancellations, send, note; acknowledge."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules

    def together(self, store: Store, deliveries: tuple[Delivery, ...]) -> Steps:
        """Tell what may come of deliveries: they are alike, so that it does not matter which is which, and sorted."""
        for index, me in enumerate(deliveries):
            others = deliveries[:index] + deliveries[index + 1 :]
            for name, after, mine in self.steps(store, me, others):
                yield f"ingest {name}", after, tuple(sorted((mine, *others)))

    def steps(self, store: Store, me: Delivery, others: tuple[Delivery, ...]) -> Steps:
        if me.step == IDLE:
            yield from self.receive(store, others)
        if me.underway():
            step: Callable[[Store, Delivery], Steps] = getattr(self, me.step)
            yield from step(store, me)
            yield "crashes", store.excuse(me.sent), Delivery(GONE)

    def receive(self, store: Store, others: tuple[Delivery, ...]) -> Steps:
        waiting, underway = less(JOBS, store.acknowledged), any(other.underway() for other in others)
        me = Delivery(
            "write_rows",
            early_fence="" if self.rules.rows_then_fence else store.fence,
            early_cancelled="" if self.rules.fence_then_cancellations else store.cancelled(),
        )
        if waiting and not underway:
            yield f"receives {waiting}", store, me._replace(todo=waiting)
        if underway or store.acknowledged:
            repeats = store.excuse(JOBS if underway else store.acknowledged)
            yield f"receives {JOBS} as SQS repeats it", repeats, me._replace(todo=JOBS)

    def write_rows(self, store: Store, me: Delivery) -> Steps:
        for job in me.todo:
            there, left = store.put("job", job), me._replace(todo=less(me.todo, job))
            yield f"writes {job}", there, self.written(left._replace(done=union(me.done, job)))
            yield f"writes {job}, but the answer is lost", there, self.written(left)
        done = me.done if self.rules.unwritten_is_not_acknowledged else union(me.done, me.todo)
        yield f"leaves {me.todo} unwritten", store, self.written(me._replace(todo="", done=done))

    @staticmethod
    def written(me: Delivery) -> Delivery:
        if me.todo:
            return me
        return me._replace(step="read_fence") if me.done else Delivery(GONE)

    def read_fence(self, store: Store, me: Delivery) -> Steps:
        left_to_ticks = finish(store, me)
        if (me.early_fence or store.fence) == PAST and self.rules.late_jobs_are_sent:
            yield "finds the fence past due", store, me._replace(step="read_cancellations", early_fence="")
        else:
            yield f"finds the fence before due, acknowledges {me.done}", *left_to_ticks
        if not self.rules.fence_is_consistent_for_ingest:
            yield f"finds an old fence, acknowledges {me.done}", *left_to_ticks
        unread = (store, Delivery(GONE)) if self.rules.unread_fence_is_unknown else left_to_ticks
        yield "gets no answer about the fence", *unread

    def read_cancellations(self, store: Store, me: Delivery) -> Steps:
        cancelled = self.cancelled(store) if self.rules.fence_then_cancellations else me.early_cancelled
        todo = less(me.done, cancelled)
        yield "reads the cancellations", *self.begin_late(store, todo, done=less(me.done, todo))
        for job in me.done:
            left = less(todo, job) if self.rules.unread_cancellation_is_unknown else union(todo, job)
            name = f"gets no answer about {job}'s cancellation"
            yield name, *self.begin_late(store, left, done=less(less(me.done, job), todo))

    def cancelled(self, store: Store) -> str:
        return store.cancelled()

    def begin_late(self, store: Store, todo: str, *, done: str) -> tuple[Store, Delivery]:
        noted = store if self.rules.sent_then_noted else store.put("handled", todo)
        return late(noted, todo, done=done)

    # Sends go out in order: no process tells one order from the other.
    def send(self, store: Store, me: Delivery) -> Steps:
        job, left, sent = me.todo[0], me.todo[1:], store.send(me.todo[0])
        yield f"sends {job}", *late(sent, left, done=union(me.done, job), sent=union(me.sent, job))
        yield f"sends {job}, but the answer is lost", sent.excuse(job), me
        yield f"cannot send {job}", *late(store, left, done=me.done, sent=me.sent)

    def note(self, store: Store, me: Delivery) -> Steps:
        if not self.rules.late_path_leaves_a_note:
            yield f"acknowledges {me.done}, leaves no note", *finish(store, me._replace(todo=""))
            return
        for job in me.todo:
            left, noted = me._replace(todo=less(me.todo, job)), store.put("handled", job)
            yield f"notes that {job} is handled", *finish(noted, left)
            yield f"cannot note that {job} is handled", *finish(store.excuse(job), left)
            yield f"notes that {job} is handled, crashes", noted.excuse(me.sent), Delivery(GONE)


def late(store: Store, todo: str, *, done: str, sent: str = "") -> tuple[Store, Delivery]:
    """Return the late path with `todo` to be sent; `done` is to be acknowledged, `sent` to be noted first."""
    if todo:
        return store, Delivery("send", todo, done, sent)
    return finish(store, Delivery("note", sent, done, sent))


def finish(store: Store, me: Delivery) -> tuple[Store, Delivery]:
    """Acknowledge if nothing is left to do: at once, for later only adds a cause of repeats, and never is a crash."""
    return (store, me) if me.todo else (store.acknowledge(me.done), Delivery(GONE))
