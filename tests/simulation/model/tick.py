"""A tick, step by step."""

from collections.abc import Sequence
from typing import NamedTuple

from tests.simulation.model.store import (
    BEFORE,
    END_OF,
    FIRST,
    GONE,
    IDLE,
    JOBS,
    LAST,
    PAST,
    RUNS,
    Rules,
    Steps,
    Store,
    less,
)


class Tick(NamedTuple):
    """A tick. `wave` holds what is read from the first unsent job on: the jobs' keys, and whether each is unsent."""

    step: str = IDLE
    holds: bool = False
    fence: str = BEFORE
    cursor: str = FIRST
    after: str = FIRST
    settled: str = ""
    wave: tuple[tuple[str, bool], ...] = ()
    more: bool = True
    end: str = FIRST

    def unsent(self) -> str:
        return "".join(job_of(key) for key, unsent in self.wave if unsent)

    def sent_since(self, cursor: str) -> str:
        """Return the jobs that it may have sent behind a cursor."""
        reach = self.wave[-1][0] if self.wave else self.cursor
        return less("".join(job for job in JOBS if cursor < f"{job}#job" <= reach), self.unsent())


def job_of(key: str) -> str:
    return key.partition("#")[0]


class Ticking:
    """Take the lease and raise the fence; read page by page; send; checkpoint; release.

    Raise it to any of `fences`. With `at_once` there is one page, and no checkpoint but the last.
    """

    def __init__(self, rules: Rules, *, fences: Sequence[str] = (PAST, BEFORE), at_once: bool = False) -> None:
        self.rules, self.fences, self.at_once = rules, fences, at_once

    def together(self, store: Store, ticks: tuple[Tick, ...]) -> Steps:
        """Tell what may come of ticks: they are alike, so that it does not matter which is which, and sorted."""
        for index, me in enumerate(ticks):
            others = ticks[:index] + ticks[index + 1 :]
            for name, after, mine in self.steps(store, me, others):
                taken = mine.holds and not me.holds
                left = [other._replace(holds=other.holds and not taken) for other in others]
                yield f"tick {name}", after, tuple(sorted(map(self.what_matters, (mine, *left))))

    def steps(self, store: Store, me: Tick, others: tuple[Tick, ...]) -> Steps:
        if me.step == IDLE:
            yield from self.take(store, others)
        if me.step == RUNS:
            yield from self.send(store, me) if me.wave else self.read_on(store, me)
            if not self.at_once:
                yield from self.checkpoint(store, me)
            yield "crashes", store.excuse(me.sent_since(store.cursor)) if me.holds else store, Tick(GONE)

    def take(self, store: Store, others: tuple[Tick, ...]) -> Steps:
        held = any(other.holds for other in others)
        if held and self.rules.lease_keeps_others_out:
            store = store.excuse("".join(job for job in JOBS if f"{job}#job" > store.cursor))
        for target in self.fences:
            fence = max(store.fence, target) if self.rules.fence_never_falls else target
            raised = store._replace(fence=fence) if self.rules.fence_then_pages else store
            name = f"takes the lease{' of one that pauses' if held else ''}, the fence is {fence}"
            yield name, raised, Tick(RUNS, holds=True, fence=fence, cursor=store.cursor, after=store.cursor)

    def read_on(self, store: Store, me: Tick) -> Steps:
        if me.more:
            yield from self.read_page(store, me)
            yield "stops", *self.release(store, me, me.cursor)
        else:
            end = me.end if self.rules.cursor_ends_where_reading_ended else END_OF[me.fence]
            yield "has finished", *self.release(store, me, max(me.cursor, end))

    def read_page(self, store: Store, me: Tick) -> Steps:
        rows = sorted(key for key in store.rows if me.after < key <= END_OF[me.fence])
        last = me._replace(more=False, end=END_OF[me.fence])
        yield f"reads {', '.join(rows) or 'nothing'}, and there is no more", *self.meet(store, last, rows)
        if rows and not self.at_once:
            yield f"reads {rows[0]}, and there may be more", *self.meet(store, me, rows[:1])
        if not self.rules.pages_are_consistent:
            yield f"reads {', '.join(rows[1:]) or 'nothing'}, not the latest", *self.meet(store, last, rows[1:])

    def meet(self, store: Store, me: Tick, rows: list[str]) -> tuple[Store, Tick]:
        """Tell which jobs of a page are to be sent. One still to be acknowledged is being ingested as it is read."""
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
        cursor = me.cursor if self.rules.cursor_stops_before_the_unsent else me.wave[-1][0]
        refused_in_part = store.excuse(me.sent_since(me.cursor))
        yield f"cannot send {me.unsent()}, stops", *self.release(refused_in_part, me, cursor)

    def checkpoint(self, store: Store, me: Tick) -> Steps:
        if me.wave and self.rules.sent_then_checkpointed:
            return
        cursor = me.wave[-1][0] if me.wave else me.cursor
        for fence in self.fences:
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
        may_yet_send = me.wave or (me.more and me.after < END_OF[me.fence])
        return me if may_yet_send else Tick(GONE)
