"""Keys as names of jobs: the calls about one name, as programs whose requests interleave, and what they share.

A program is a generator. Each request that it yields is atomic, and it returns what its call goes on with: another
program, the answer, or AGAIN from the start. So a call's state is a program, its arguments, and what it read so far.
"""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, NamedTuple

from tests.simulation.model.store import rule

KEEP, REPLACE, FAIL = "keep", "replace", "fail"
CANCEL, CANCEL_ID, RESCHEDULE, RESCHEDULE_ID = "cancel", "cancel id", "reschedule", "reschedule id"
ONE_WAITS, POINTS = "one job of a name waits", "a name points to its job"
ONE_JOB, EXACT, SENT, NO_CIRCLE = "a call has one job", "exact cancel", "an answered job is sent", "no circle of moves"
ENDS = "every call ends"


@dataclass(frozen=True, kw_only=True, slots=True)
class NameRules:
    """What the protocol requires of calls about names; each may be left out: with the smallest world that shows it."""

    claim_is_conditional: bool = rule(POINTS, "keep 1 once dies | keep 2")
    displaced_calls_are_kept: bool = rule(NO_CIRCLE, "Z: replace 2 | replace 1 other once | cancel id once")
    displaced_calls_keep_done: bool = rule(SENT, "keep 1 first refused | replace 2")
    moves_by_key_are_kept: bool = rule(ONE_JOB, "Z until 3: replace 2 once dies | reschedule 3")
    hops_name_their_call: bool = rule(ONE_JOB, "Z until 3: reschedule id 2 | replace 3")
    any_cancellation_counts: bool = rule(SENT, "Z: replace 1 | cancel")
    undone_is_submitted: bool = rule(SENT, "keep 1 once dies | keep 2")
    undone_with_other_content_is_refused: bool = rule(SENT, "keep 1 dies | keep 2 other")
    take_over_is_conditional: bool = rule(POINTS, "Z until 3: replace 2+1 | cancel")
    mark_is_conditional: bool = rule(SENT, "keep 1 once dies | replace 2")
    late_path_reads_cancellations: bool = rule(EXACT, "keep 1+1 | cancel")
    moves_before_the_fence_alone: bool = rule(EXACT, "Z: reschedule 2 | cancel id")
    moves_what_is_not_cancelled: bool = rule(EXACT, "Z: reschedule 2 | cancel id")
    key_moves_along: bool = rule(POINTS, "ttl Z until 4: reschedule 2 once | reschedule 3 once")
    key_is_as_read: bool = rule(ONE_JOB, "Z until 3: replace 2+1 | cancel")
    moves_with_the_key_alone: bool = rule(POINTS, "ttl Z until 4: reschedule 2 once | reschedule 3 once")
    cancel_follows_moves: bool = rule(EXACT, "Z: reschedule 2 | cancel id")
    cancellation_outlives_both_jobs: bool = rule(POINTS, "ttl Z until 4: reschedule 2 once | reschedule 3 once")
    key_lives_as_long_as_its_job: bool = rule(POINTS, "ttl Z until 4: reschedule 2 once | reschedule 3 once")
    attempts_end_before_the_next: bool = rule(SENT, "keep 1+1 | cancel")
    releases_its_own_job_alone: bool = rule(POINTS, "keep 2 once first refused | replace 1+1")
    releases_what_is_not_shared: bool = rule(POINTS, "keep 1 first refused | keep 2")
    shares_before_it_submits: bool = rule(POINTS, "keep 1 first refused | keep 2")
    repeats_share: bool = rule(POINTS, "keep 1 first refused | keep 2")
    shares_what_is_not_released: bool = rule(POINTS, "keep 1 first refused | keep 2")
    released_is_not_answered: bool = rule(ENDS, "keep 1 first refused | keep 2")
    take_over_reads_released: bool = rule(POINTS, "keep 1 first refused | keep 2")
    moves_clear_released: bool = rule(POINTS, "keep 2 once first refused | replace 1+1")
    full_memory_refuses: bool = rule(ONE_JOB, "bound Z: reschedule 2 | replace 1")
    calls_repeat_within_the_hour: bool = rule(ONE_JOB, "bound Z: reschedule 2 | replace 1")


class Id(NamedTuple):
    """A job: what its UUID is made from, and when it is due."""

    uid: str
    due: int


class RememberedCall(NamedTuple):
    """A call that the key's row remembers, and its job."""

    call: str
    id: Id
    done: bool


class KeyRow(NamedTuple):
    id: Id
    call: str
    content: str
    done: bool = False
    ttl: int = 0
    calls: tuple[RememberedCall, ...] = ()
    shared: bool = False
    released: bool = False

    @property
    def current(self) -> RememberedCall:
        return RememberedCall(self.call, self.id, self.done)


class Cancellation(NamedTuple):
    """What has a job not be sent; with `moved_to`, the job that took its place."""

    moved_to: Id | None
    ttl: int


class KeyItem(NamedTuple):
    """What a move does to the key's row: only if it has that id, or, if it need not, if there is none."""

    expected: Id
    must_exist: bool
    call: str = ""
    content: str = ""
    calls: tuple[RememberedCall, ...] | None = None


class Move(NamedTuple):
    old: Id
    new: Id
    key: KeyItem | None


class Call(NamedTuple):
    """A call: due at its first attempt's time, by a delay later at the second; in `refused` ones its job is refused."""

    name: str
    kind: str
    due: tuple[int, int] = (0, 0)
    content: str = "x"
    id: Id | None = None
    abandons: bool = False
    dies: bool = False
    buffered: bool = False
    refused: tuple[int, ...] = ()


class Progress(NamedTuple):
    """What the search notes of a call: which had ended when it began, its answer, and if no job waited meanwhile."""

    earlier: frozenset[str] | None = None
    status: str = ""
    id: Id | None = None
    saw_none: bool = False


class Names(NamedTuple):
    """What all processes share, and after `sent` what the search notes."""

    key: KeyRow | None = None
    rows: frozenset[Id] = frozenset()
    cancellations: frozenset[tuple[Id, Cancellation]] = frozenset()
    fence: int = 0
    inbound: frozenset[Id | Move] = frozenset()
    sent: frozenset[Id] = frozenset()
    moved: frozenset[tuple[Id, Id]] = frozenset()
    cancelled: frozenset[tuple[Id, str]] = frozenset()
    calls: tuple[tuple[str, Progress], ...] = ()

    def cancellation(self, id: Id) -> Cancellation | None:
        return dict(self.cancellations).get(id)

    def waiting(self) -> set[Id]:
        """Return the jobs that a tick will send."""
        cancelled = {id for id, _ in self.cancellations}
        return {id for id in self.rows if id.due > self.fence and id not in cancelled}

    def line(self, id: Id) -> list[Id]:
        """Return the jobs that an id leads to, itself the first; none in a circle."""
        moved, line = dict(self.moved), [id]
        while line[-1] in moved:
            if (following := moved[line[-1]]) in line:
                return []
            line.append(following)
        return line

    def tail(self, id: Id) -> Id | None:
        """Return the last job that an id leads to, None in a circle."""
        line = self.line(id)
        return line[-1] if line else None

    def noted(self, call: str, **changes: Any) -> "Names":
        return self._replace(
            calls=tuple((name, each._replace(**changes) if name == call else each) for name, each in self.calls)
        )


class GoOn(NamedTuple):
    program: str
    args: tuple[Any, ...]


class Answer(NamedTuple):
    status: str
    id: Id | None = None


class Request(NamedTuple):
    name: str
    args: tuple[Any, ...] = ()


AGAIN = "again"
Program = Generator[Request, Any, GoOn | Answer | str]


READS: dict[str, Callable[..., Any]] = {
    "read_key": lambda store: store.key,
    "read_fence": lambda store: store.fence,
    "read_cancellation": Names.cancellation,
    "has_row": lambda store, job: job in store.rows,
    "is_pending": lambda store, move: move in store.inbound,
}
# What is written without a condition.
WRITES: dict[str, Callable[..., Names]] = {
    "write": lambda store, job: store._replace(rows=store.rows | {job}),
    "buffer": lambda store, message: store._replace(inbound=store.inbound | {message}),
    "acknowledge": lambda store, message: store._replace(inbound=store.inbound - {message}),
    "send": lambda store, job: store._replace(sent=store.sent | {job}),
}


class Requests:
    """What each request does to what is shared: returns its answer, and what is shared after it."""

    def __init__(self, rules: NameRules) -> None:
        self.rules = rules

    def do(self, store: Names, request: Request) -> tuple[Any, Names]:
        name, args = request
        if name in READS:
            answer, after = READS[name](store, *args), store
        elif name in WRITES:
            answer, after = None, WRITES[name](store, *args)
        else:
            answer, after = getattr(self, name)(store, *args)
        if not after.waiting():
            for name, each in after.calls:
                if each.earlier is not None and not each.status and not each.saw_none:
                    after = after.noted(name, saw_none=True)
        return answer, after

    def claim(self, store: Names, row: KeyRow) -> tuple[KeyRow | None, Names]:
        if store.key is not None and self.rules.claim_is_conditional:
            return store.key, store
        return None, store._replace(key=row)

    def take_over(self, store: Names, read: KeyRow, row: KeyRow) -> tuple[bool, Names]:
        there, rules = store.key, self.rules
        is_other = (there is None or there.id != read.id) and rules.take_over_is_conditional
        is_newer = there and there.released != read.released and rules.take_over_reads_released
        return (False, store) if is_other or is_newer else (True, store._replace(key=row))

    def mark_done(self, store: Names, id: Id) -> tuple[None, Names]:
        row = store.key
        if row is None or (row.id != id and self.rules.mark_is_conditional):
            return None, store
        return None, store._replace(key=row._replace(done=True))

    def share(self, store: Names, id: Id) -> tuple[bool, Names]:
        row = store.key
        if row is None or row.id != id or (row.released and self.rules.shares_what_is_not_released):
            return False, store
        return True, store._replace(key=row._replace(shared=True))

    def release(self, store: Names, id: Id) -> tuple[None, Names]:
        row, rules = store.key, self.rules
        is_other = row is None or (row.id != id and rules.releases_its_own_job_alone)
        if row is None or is_other or (row.shared and rules.releases_what_is_not_shared):
            return None, store
        return None, store._replace(key=row._replace(released=True))

    def cancel(self, store: Names, id: Id, call: str) -> tuple[Cancellation | None, Names]:
        there = store.cancellation(id)
        if there is not None:
            return there, store
        added = (id, Cancellation(None, id.due))
        after = store._replace(cancellations=store.cancellations | {added}, cancelled=store.cancelled | {(id, call)})
        return None, after

    def move(self, store: Names, move: Move, before: int) -> tuple[str, Names]:
        """Do a move, if the fence is before the old due time and `before`.

        Returns "done", "refused" or "not its name".
        """
        old, new, item = move
        is_late = store.fence >= old.due and self.rules.moves_before_the_fence_alone
        is_cancelled = store.cancellation(old) is not None and self.rules.moves_what_is_not_cancelled
        row = store.key
        if is_late or is_cancelled or store.fence >= before:
            return "refused", store
        if item is not None and self.rules.key_moves_along:
            if row is None:
                if item.must_exist:
                    return "not its name", store
            elif row.id != item.expected and self.rules.key_is_as_read:
                return "not its name", store
            else:
                row = self._moved_key(row, new, item)
        cancellations = frozenset((id, each) for id, each in store.cancellations if id != old)
        ttl = max(old.due, new.due) if self.rules.cancellation_outlives_both_jobs else new.due
        after = store._replace(
            key=row,
            rows=store.rows | {new},
            cancellations=cancellations | {(old, Cancellation(new, ttl))},
            moved=store.moved | {(old, new)},
        )
        return "done", after

    def _moved_key(self, row: KeyRow, new: Id, item: KeyItem) -> KeyRow:
        ttl = new.due if self.rules.key_lives_as_long_as_its_job else row.ttl
        released = row.released and not self.rules.moves_clear_released
        row = row._replace(id=new, done=True, ttl=ttl, shared=False, released=released)
        if item.content:
            row = row._replace(call=item.call, content=item.content)
        return row if item.calls is None else row._replace(calls=item.calls)

    def expire(self, store: Names) -> tuple[None, Names]:
        """Delete what is past its time, which is days after its job was due: nothing waits that long in SQS."""
        if store.inbound:
            return None, store
        row = None if store.key and store.key.ttl <= store.fence else store.key
        kept = frozenset(each for each in store.cancellations if each[1].ttl > store.fence)
        return None, store._replace(key=row, cancellations=kept)


class Programs:
    """What calls do, request by request."""

    def __init__(self, rules: NameRules, most_remembered: int) -> None:
        self.rules, self.most_remembered = rules, most_remembered

    def start(self, call: Call, attempt: int) -> GoOn:
        due, call = call.due[attempt], call._replace(refused=tuple({attempt} & {*call.refused}))
        match call.kind:
            case "cancel":
                return GoOn("cancel_key", (call.name,))
            case "cancel id":
                return GoOn("cancel_line", (call.name, call.id))
            case "reschedule":
                return GoOn("reschedule_key", (call.name, due))
            case "reschedule id":
                return GoOn("reschedule_line", (call.name, due, None, call.id))
        return GoOn("schedule", (call, Id(call.name, due)))

    def schedule(self, call: Call, new: Id) -> Program:
        row = yield Request("claim", (KeyRow(new, call.name, call.content, ttl=new.due),))
        if row is None:
            return GoOn("submit", (call, new))
        kept = row.calls if self.rules.displaced_calls_are_kept else ()
        for remembered in (row.current, *kept):
            if remembered.call == call.name:
                return self._repeated(call, new, row, remembered)
        return GoOn("take_over", (call, new, row)) if row.released else GoOn("look", (call, new, row, row.id))

    def _repeated(self, call: Call, new: Id, row: KeyRow, remembered: RememberedCall) -> GoOn | Answer:
        """Return how to go on with a call of which the key's row knows the job."""
        is_current = remembered == row.current
        if is_current and row.released and self.rules.released_is_not_answered:
            return GoOn("take_over", (call, new, row))
        if remembered.done or not (is_current or self.rules.displaced_calls_keep_done):
            return Answer("200", remembered.id)
        return GoOn("share" if is_current and self.rules.repeats_share else "submit", (call, remembered.id))

    def share(self, call: Call, id: Id) -> Program:
        """Submit the job that another attempt or call claimed: from then on its name is not released."""
        ours = yield Request("share", (id,))
        return GoOn("submit", (call, id)) if ours else AGAIN

    def look(self, call: Call, new: Id, row: KeyRow, tail: Id) -> Program:
        fence = yield Request("read_fence")
        cancellation = yield Request("read_cancellation", (tail,))
        if cancellation and cancellation.moved_to:
            again = (yield Request("read_key")) if self.rules.key_is_as_read else row
            if again is None or again.id != row.id:
                return AGAIN
            return GoOn("look", (call, new, again, cancellation.moved_to))
        counts = cancellation is not None and (self.rules.any_cancellation_counts or fence < tail.due)
        return self._chosen(call, new, row, tail, "cancelled" if counts else "left" if fence >= tail.due else "waiting")

    def _chosen(self, call: Call, new: Id, row: KeyRow, tail: Id, state: str) -> GoOn | Answer:
        is_undone, is_same = not row.done and tail == row.id, row.content == call.content
        if state == "cancelled":
            return GoOn("take_over", (call, new, row))
        is_undone = is_undone and (self.rules.undone_is_submitted or state == "waiting")
        submit = GoOn("share" if self.rules.shares_before_it_submits else "submit", (call, row.id))
        answer = submit if is_undone and is_same else Answer("200", tail)
        if call.kind == KEEP:
            is_other = not is_same and (state == "waiting" or is_undone)
            return Answer("422") if is_other and self.rules.undone_with_other_content_is_refused else answer
        if call.kind == FAIL:
            return Answer("409")
        if is_same and tail.due == new.due:
            return answer
        return GoOn("replace", (call, new, row, tail)) if state == "waiting" else GoOn("take_over", (call, new, row))

    def take_over(self, call: Call, new: Id, row: KeyRow) -> Program:
        calls = row.calls if row.released else self._remembered(row, row.current)
        if calls is None:
            return Answer("503")
        ours = yield Request("take_over", (row, KeyRow(new, call.name, call.content, ttl=new.due, calls=calls)))
        return GoOn("submit", (call, new)) if ours else AGAIN

    def _remembered(self, row: KeyRow, call: RememberedCall) -> tuple[RememberedCall, ...] | None:
        """Return what a key's row is to remember with one call more; None if there is no room."""
        if len(row.calls) < self.most_remembered:
            return (*row.calls, call)
        return None if self.rules.full_memory_refuses else (*row.calls[1:], call)

    def submit(self, call: Call, id: Id) -> Program:
        if call.refused:
            yield Request("release", (id,))
            return Answer("400")
        if call.buffered:
            yield Request("buffer", (id,))
        else:
            yield from self._written(id)
        yield Request("mark_done", (id,))
        return Answer("200", id)

    def _written(self, id: Id) -> Generator[Request, Any, None]:
        yield Request("write", (id,))
        yield from self._late(id)

    def _late(self, id: Id) -> Generator[Request, Any, None]:
        fence = yield Request("read_fence")
        if fence >= id.due:
            cancellation = yield Request("read_cancellation", (id,))
            if cancellation is None or not self.rules.late_path_reads_cancellations:
                yield Request("send", (id,))

    def replace(self, call: Call, new: Id, row: KeyRow, tail: Id) -> Program:
        calls = self._remembered(row, row.current)
        if calls is None:
            return Answer("503")
        item = KeyItem(row.id, True, call.name, call.content, calls)
        return (yield from self._moved(Move(tail, new, item)))

    def reschedule_key(self, call: str, due: int) -> Program:
        row = yield Request("read_key")
        if row is None:
            return Answer("404")
        for remembered in row.calls if self.rules.moves_by_key_are_kept else ():
            if remembered.call == call:
                return GoOn("tail", (remembered.id,))
        if row.released:
            return Answer("404")
        return GoOn("reschedule_line", (call, due, row, row.id))

    def reschedule_line(self, call: str, due: int, row: KeyRow | None, tail: Id) -> Program:
        fence = yield Request("read_fence")
        cancellation = yield Request("read_cancellation", (tail,))
        new = Id(f"{tail.uid}{tail.due}>{call}", due)
        if cancellation and cancellation.moved_to:
            is_ours = cancellation.moved_to.uid == new.uid and self.rules.hops_name_their_call
            following = ("tail", (tail,)) if is_ours else ("reschedule_line", (call, due, row, cancellation.moved_to))
            return GoOn(*following)
        if cancellation or fence >= tail.due:
            return Answer("409")
        has_row = yield Request("has_row", (tail,))
        if not has_row:
            return Answer("503")
        if tail.due == due:
            return Answer("200", tail)
        calls = self._remembered(row, RememberedCall(call, new, True)) if row else ()
        if calls is None:
            return Answer("503")
        item = KeyItem(row.id, True, calls=calls) if row else KeyItem(tail, False)
        return (yield from self._moved(Move(tail, new, item)))

    def _moved(self, move: Move) -> Program:
        fence = yield Request("read_fence")
        if fence >= move.new.due:
            yield Request("buffer", (move,))
            return GoOn("pending", (move,))
        outcome = yield Request("move", (move, move.new.due))
        may_go_without = (move.key and not move.key.must_exist) or not self.rules.moves_with_the_key_alone
        if outcome == "not its name" and may_go_without:
            outcome = yield Request("move", (move._replace(key=None), move.new.due))
        return Answer("200", move.new) if outcome == "done" else AGAIN

    def pending(self, move: Move) -> Program:
        is_pending = yield Request("is_pending", (move,))
        return GoOn("pending", (move,)) if is_pending else AGAIN

    def tail(self, id: Id) -> Program:
        cancellation = yield Request("read_cancellation", (id,))
        if cancellation and cancellation.moved_to:
            return GoOn("tail", (cancellation.moved_to,))
        return Answer("200", id)

    def cancel_key(self, call: str) -> Program:
        row = yield Request("read_key")
        return Answer("404") if row is None or row.released else GoOn("cancel_line", (call, row.id))

    def cancel_line(self, call: str, id: Id) -> Program:
        there = yield Request("cancel", (id, call))
        if there and there.moved_to and self.rules.cancel_follows_moves:
            return GoOn("cancel_line", (call, there.moved_to))
        fence = yield Request("read_fence")
        return Answer("200" if fence < id.due else "202", id)

    def ingest(self, message: Id | Move) -> Program:
        if isinstance(message, Id):
            yield from self._written(message)
        else:
            outcome = yield Request("move", (message, message.old.due))
            if outcome == "not its name" and message.key and not message.key.must_exist:
                outcome = yield Request("move", (message._replace(key=None), message.old.due))
            cancellation = yield Request("read_cancellation", (message.old,))
            if cancellation is not None and cancellation.moved_to == message.new:
                yield from self._late(message.new)
        yield Request("acknowledge", (message,))
        return Answer("")
