"""Two jobs: all processes together, in every state that they can be in."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tests.simulation.model.explore import GONE, IDLE, RUNS, Kinds, Model, Steps, run_undisturbed, together
from tests.simulation.model.store import BEFORE, END_OF, FIRST, JOBS, LAST, PAST, Rules, Store, less, union


# Ingest.
class Delivery(NamedTuple):
    """Messages in the hands of an ingest. `early_*` is what it reads too early where a rule is left out.

    `is_far`: its clock may say that the rows are far, and they were signed in time. They are not written, if it is too
    late for that, or it says that they are not far.
    """

    step: str = IDLE
    todo: str = ""
    done: str = ""
    sent: str = ""
    early_fence: str = ""
    early_cancelled: str = ""
    is_far: bool = False

    def underway(self) -> bool:
        return self.step not in (IDLE, GONE)


class Ingest:
    """Write the rows, read the fence; of late jobs read the cancellations, send, note; acknowledge."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules

    def steps(self, store: Store, me: Delivery, others: tuple[Delivery, ...] = ()) -> Steps:
        if me.step == IDLE:
            yield from self.receive(store, others)
        if me.underway():
            yield from getattr(self, me.step)(store, me)
            yield "crashes", store.excuse(me.sent), Delivery(GONE)

    def receive(self, store: Store, others: tuple[Delivery, ...]) -> Steps:
        waiting, underway = less(JOBS, store.acknowledged), any(other.underway() for other in others)
        me = self.starting(store)
        if waiting and not underway:
            yield f"receives {waiting}", store, me._replace(todo=waiting)
        if underway or store.acknowledged:
            repeats = store.excuse(JOBS if underway else store.acknowledged)
            yield f"receives {JOBS} as SQS repeats it", repeats, me._replace(todo=JOBS)

    def starting(self, store: Store) -> Delivery:
        """Return a process that writes rows next; it reads nothing before, unless a rule is left out."""
        early_fence = "" if self.rules.rows_then_fence else store.fence
        early_cancelled = "" if self.rules.fence_then_cancellations else store.cancelled()
        early = Delivery("write_rows", early_fence=early_fence, early_cancelled=early_cancelled)
        return early._replace(is_far=store.is_far)

    def write_rows(self, store: Store, me: Delivery) -> Steps:
        me = self.landed(store, me)
        for job in me.todo:
            there, left = store.put("job", job), me._replace(todo=less(me.todo, job))
            yield f"writes {job}", there, self.written(left._replace(done=union(me.done, job)))
            yield f"writes {job}, but the answer is lost", there, self.written(left)
        done = me.done if self.rules.unwritten_is_not_acknowledged else union(me.done, me.todo)
        yield f"leaves {me.todo} unwritten", store, self.written(me._replace(todo="", done=done))

    def landed(self, store: Store, me: Delivery) -> Delivery:
        """Return a process whose put takes effect now."""
        return me._replace(is_far=me.is_far and (store.is_far or not self.rules.far_row_is_signed_in_time))

    @staticmethod
    def written(me: Delivery) -> Delivery:
        if me.todo:
            return me
        return me._replace(step="read_fence") if me.done else Delivery(GONE)

    def read_fence(self, store: Store, me: Delivery) -> Steps:
        left_to_ticks = finish(store, me)
        if me.is_far:
            yield f"finds by its clock that they are far, acknowledges {me.done}", *left_to_ticks
            me = me._replace(is_far=False)
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

    # Sends go out in order: no process sees the difference.
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


# Ticks.
class Tick(NamedTuple):
    """A tick. `wave` holds what is read from the first unsent job on: the jobs' keys, and whether each is unsent.

    Those that could not be sent are `left` to the next tick.
    """

    step: str = IDLE
    holds: bool = False
    fence: str = BEFORE
    cursor: str = FIRST
    after: str = FIRST
    settled: str = ""
    wave: tuple[tuple[str, bool], ...] = ()
    more: bool = True
    end: str = FIRST
    left: str = ""

    def unfinished(self) -> str:
        return "".join(job_of(key) for key, unsent in self.wave if unsent)

    def unsent(self) -> str:
        return less(self.unfinished(), self.left)

    def beyond(self, store: Store) -> str:
        """Return the jobs that were sent behind one that is left, and are not noted yet."""
        sent = (job_of(key) for key, unsent in self.wave if not unsent)
        return "".join(job for job in sent if job in store.sent and f"{job}#handled" not in store.rows)

    def sent_since(self, cursor: str) -> str:
        """Return the jobs that it may have sent behind a cursor."""
        reach = self.wave[-1][0] if self.wave else self.cursor
        return less("".join(job for job in JOBS if cursor < f"{job}#job" <= reach), self.unfinished())


def job_of(key: str) -> str:
    return key.partition("#")[0]


class Ticking:
    """Take the lease and raise the fence; read page by page; send; checkpoint; release.

    Raise it to any of `fences`. With `at_once` there is one page, and no checkpoint but the last. A tick `goes_on`
    behind a job that it cannot send; where there is one job alone, to stop comes to the same.
    """

    def __init__(
        self, rules: Rules, *, fences: Sequence[str] = (PAST, BEFORE), at_once: bool = False, goes_on: bool = False
    ) -> None:
        self.rules, self.fences, self.at_once, self.goes_on = rules, fences, at_once, goes_on

    def together(self, store: Store, ticks: tuple[Tick, ...]) -> Steps:
        """Yield the steps of ticks: one that takes the lease takes it from the others."""
        for index, me in enumerate(ticks):
            others = ticks[:index] + ticks[index + 1 :]
            for name, after, mine in self.steps(store, me, others):
                is_won = mine.holds and not me.holds
                left = [other._replace(holds=other.holds and not is_won) for other in others]
                yield f"tick {name}", after, tuple(sorted(map(self.what_matters, (mine, *left))))

    def steps(self, store: Store, me: Tick, others: tuple[Tick, ...] = ()) -> Steps:
        if me.step == IDLE:
            yield from self.take(store, others)
        if me.step == RUNS:
            yield from self.dispatch(store, me)
            if not self.at_once:
                yield from self.checkpoint(store, me)
            yield "crashes", store.excuse(me.sent_since(store.cursor)) if me.holds else store, Tick(GONE)

    def take(self, store: Store, others: tuple[Tick, ...]) -> Steps:
        held = any(other.holds for other in others)
        if held and self.rules.lease_keeps_others_out:
            store = store.excuse("".join(job for job in JOBS if f"{job}#job" > store.cursor))
        for target in self.signed(store):
            fence = max(store.fence, target) if self.rules.fence_never_falls else target
            raised = store._replace(fence=fence) if self.rules.fence_then_pages else store
            name = f"takes the lease{' of one that pauses' if held else ''}, the fence is {fence}"
            yield name, raised, Tick(RUNS, holds=True, fence=fence, cursor=store.cursor, after=store.cursor)

    def signed(self, store: Store) -> Sequence[str]:
        """Return the fences that AWS may take now: each was made by the clock that then signed its request."""
        are_all = not store.is_far or not self.rules.fence_is_made_before_it_is_signed
        return self.fences if are_all else [fence for fence in self.fences if fence != PAST]

    def dispatch(self, store: Store, me: Tick) -> Steps:
        if me.unsent():
            yield from self.send(store, me)
        elif me.beyond(store) and self.rules.sent_beyond_the_unsent_is_noted:
            yield from self.note(store, me)
        else:
            yield from self.read_on(store, me)

    def note(self, store: Store, me: Tick) -> Steps:
        jobs = me.beyond(store)
        yield f"notes that {jobs} is handled", store.put("handled", jobs), me
        yield f"cannot note that {jobs} is handled, stops", *self.release(store.excuse(jobs), me, me.cursor)

    def read_on(self, store: Store, me: Tick) -> Steps:
        if me.more:
            yield from self.read_page(store, me)
            yield "stops", *self.release(store, me, me.cursor)
        elif me.left:
            yield f"has left {me.left}", *self.release(store, me, me.cursor)
        else:
            end = me.end if self.rules.cursor_ends_where_reading_ended else END_OF[me.fence]
            yield "has finished", *self.release(store, me, max(me.cursor, end))

    def read_page(self, store: Store, me: Tick) -> Steps:
        rows = sorted(key for key in store.rows if me.after < key <= END_OF[me.fence])
        last = me._replace(more=False, end=END_OF[me.fence])
        yield f"reads {', '.join(rows) or 'nothing'}, and there is no more", *self.apply_rows(store, last, rows)
        if rows and not self.at_once:
            yield f"reads {rows[0]}, and there may be more", *self.apply_rows(store, me, rows[:1])
        if not self.rules.pages_are_consistent:
            yield f"reads {', '.join(rows[1:]) or 'nothing'}, not the latest", *self.apply_rows(store, last, rows[1:])

    def apply_rows(self, store: Store, me: Tick, rows: list[str]) -> tuple[Store, Tick]:
        """Decide which jobs of a page are to be sent. One still to be acknowledged is being ingested as it is read."""
        settled, wave = me.settled if self.rules.settled_is_carried_over_pages else "", list(me.wave)
        for key in rows:
            is_job = key.endswith("#job")
            wave += [(key, job_of(key) != settled)] if is_job else []
            settled = "" if is_job else job_of(key)
        me = me._replace(after=rows[-1] if rows else me.after, settled=settled, wave=tuple(wave))
        return store.excuse(less(me.unsent(), store.acknowledged)), self.advanced(me)

    def advanced(self, me: Tick) -> Tick:
        """Move the tick's own cursor behind what is finished."""
        while me.wave and not me.wave[0][1]:
            me = me._replace(cursor=me.wave[0][0] if self.rules.cursor_is_a_key else LAST, wave=me.wave[1:])
        if not me.wave and not self.rules.cursor_rests_on_jobs:
            return me._replace(cursor=max(me.cursor, me.after))
        return me

    def send(self, store: Store, me: Tick) -> Steps:
        for job in me.unsent():
            sent = store.send(job)
            wave = tuple((key, unsent and job_of(key) != job) for key, unsent in me.wave)
            yield f"sends {job}", sent, self.advanced(me._replace(wave=wave))
            yield f"sends {job}, but the answer is lost", sent.excuse(job), me
        if self.goes_on and self.rules.cursor_stops_before_the_unsent:
            yield f"cannot send {me.unsent()}, goes on", store, me._replace(left=union(me.left, me.unsent()))
            return
        cursor = me.cursor if self.rules.cursor_stops_before_the_unsent else me.wave[-1][0]
        refused_in_part = store.excuse(me.sent_since(me.cursor))
        yield f"cannot send {me.unsent()}, stops", *self.release(refused_in_part, me, cursor)

    def checkpoint(self, store: Store, me: Tick) -> Steps:
        if me.unsent() and self.rules.sent_then_checkpointed:
            return
        cursor = me.cursor if self.rules.sent_then_checkpointed or not me.wave else me.wave[-1][0]
        for fence in self.signed(store):
            if fence >= me.fence and self.may_move(store, me, cursor, fence):
                moved = store._replace(cursor=cursor, fence=fence)
                name = f"moves the cursor to {cursor!r}, the fence is {fence}"
                yield name, moved, me._replace(holds=True, cursor=cursor, fence=fence)

    def release(self, store: Store, me: Tick, cursor: str) -> tuple[Store, Tick]:
        if self.may_move(store, me, cursor, me.fence):
            store = store._replace(cursor=cursor, fence=me.fence)
        return store, Tick(GONE)

    def may_move(self, store: Store, me: Tick, cursor: str, fence: str) -> bool:
        allowed = me.holds and store.cursor <= cursor and store.fence <= fence
        return allowed or not self.rules.checkpoint_is_conditional

    def what_matters(self, me: Tick) -> Tick:
        """Drop what a tick never looks at again: where it read to, or, with its lease lost, where its cursor is."""
        if me.step == RUNS and not me.more:
            me = me._replace(after=FIRST, settled="")
        if me.step != RUNS or me.holds or not self.rules.checkpoint_is_conditional:
            return me
        me = me._replace(cursor=FIRST, end=FIRST, wave=tuple(entry for entry in me.wave if entry[1]))
        may_yet_send = me.unsent() or (me.more and me.after < END_OF[me.fence])
        return me if may_yet_send else Tick(GONE)


# Cancels.
class Cancel(NamedTuple):
    """A cancel, of a job where there are two to cancel. `early_fence` is what it reads too early without a rule."""

    step: str = IDLE
    early_fence: str = ""
    job: str = ""


class Cancelling:
    """Write the cancellation, read the fence, and note a promise and give it: at once, for no other process looks.

    If the job is far, the cancellation is put with its promise, in a request that must be signed while it is.
    """

    def __init__(self, rules: Rules, *, job: str = "a") -> None:
        self.rules, self.job = rules, job

    def steps(self, store: Store, me: Cancel, others: tuple[Cancel, ...] = ()) -> Steps:
        yield from self.write(store, me) if me.step == IDLE else getattr(self, me.step)(store, me)
        yield "crashes", store, Cancel()

    def write(self, store: Store, me: Cancel) -> Steps:
        if not self.rules.cancellation_then_fence and not me.early_fence:
            yield f"finds the fence {store.fence}", store, Cancel(IDLE, early_fence=store.fence)
        elif self.job in store.exact:
            yield "finds the promise, answers 200", store.promise(self.job), Cancel()
        else:
            if store.is_far:
                yield "finds by its clock that the job is far", store, me._replace(step="put_exact")
            yield "writes the cancellation", store.put("cancelled", self.job), me._replace(step="read_fence")

    def put_exact(self, store: Store, me: Cancel) -> Steps:
        if not store.is_far and self.rules.exact_is_signed_in_time:
            yield "does not sign it any more, gives up", store, Cancel()
        elif self.job in store.cancelled():
            yield "finds a cancellation", store, me._replace(step="read_fence" if self.job not in store.exact else IDLE)
        else:
            exact = store.put("cancelled", self.job)._replace(exact=union(store.exact, self.job))
            yield "puts it with its promise, answers 200", exact.promise(self.job), Cancel()
            yield "puts it with its promise, but the answer is lost", exact, Cancel()

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


# All processes together.
@dataclass(frozen=True, kw_only=True, slots=True)
class Crowd:
    """How many deliveries and ticks there are, whether a tick reads one page alone, and the due time is far at first.

    `states` is how many there are with every rule kept.
    """

    states: int
    deliveries: int = 1
    ticks: int = 1
    at_once: bool = False
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
        self.crowd, self.ingest, self.cancelling = crowd, Ingest(rules), Cancelling(rules)
        self.ticking = Ticking(rules, at_once=crowd.at_once, goes_on=True)

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
