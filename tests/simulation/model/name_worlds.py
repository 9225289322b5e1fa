"""Worlds of calls about one name: two or three of them, ticks, ingest, what time deletes, in every order."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

from tests.simulation.model.explore import GONE, IDLE, RUNS, Explored, Kinds, Model, Search
from tests.simulation.model.names import (
    AGAIN,
    CANCEL,
    CANCEL_ID,
    ENDS,
    EXACT,
    NO_CIRCLE,
    ONE_JOB,
    ONE_WAITS,
    POINTS,
    SENT,
    Answer,
    Call,
    GoOn,
    Id,
    KeyRow,
    NameRules,
    Names,
    Programs,
    Progress,
    Request,
    Requests,
)

BEHIND = "left behind"
Z = Id("z", 1)


class Attempt(NamedTuple):
    """A program, and the answers that it got so far."""

    at: GoOn
    answers: tuple[Any, ...] = ()


class Caller(NamedTuple):
    """A call's attempts: the first goes on beside the second that is made when it was given up."""

    step: str = IDLE
    first: Attempt | None = None
    second: Attempt | None = None


class Process(NamedTuple):
    """A tick, or an ingest."""

    step: str = IDLE
    attempt: Attempt | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class World:
    """The calls, whether a job has the name already (Z, due at 1), the last due time, and the bound of the memory.

    `states` is how many there are with every rule kept.
    """

    states: int
    calls: tuple[Call, ...]
    has_job: bool = False
    last: int = 2
    expires: bool = False
    most_remembered: int | None = None


class NameModel(Model):
    """All calls of a world, and what else runs, in every state that they can be in."""

    def __init__(self, rules: NameRules, world: World) -> None:
        self.rules, self.world = rules, world
        self._requests, self._programs = Requests(rules), Programs(rules, world.most_remembered or 99)
        self._outcomes: dict[Attempt, Any] = {}

    def kinds(self) -> Kinds:
        return [
            *((Caller(), partial(self.call, each)) for each in self.world.calls),
            (Process(), self.tick),
            (Process(), self.ingest),
            *([(Process(), self.expire)] if self.world.expires else []),
            *([(Process(), self.forget)] if self.world.most_remembered else []),
        ]

    def is_underway(self, processes: Caller | Process) -> bool:
        return processes.step == RUNS

    def search(self) -> Explored:
        """Visit all states, and look whether some lead back to themselves."""
        search = Search(self)
        explored = search.run()
        is_endless = not explored.broken and search.has_circle()
        return replace(explored, broken=ENDS) if is_endless else explored

    def start(self) -> Names:
        calls = tuple((each.name, Progress()) for each in self.world.calls)
        if not self.world.has_job:
            return Names(calls=calls)
        return Names(key=KeyRow(Z, "z", "x", done=True, ttl=Z.due), rows=frozenset([Z]), calls=calls)

    # What may happen next

    def call(self, call: Call, store: Names, caller: Caller) -> Iterator[tuple[str, Names, Caller]]:
        if caller.step == IDLE:
            ended = frozenset(name for name, each in store.calls if each.status)
            started = store.noted(call.name, earlier=ended, saw_none=not store.waiting())
            yield f"{call.name} begins", started, Caller(RUNS, self._started(call, 0))
        if caller.step in (IDLE, GONE):
            return
        for place in ("first", "second"):
            if attempt := getattr(caller, place):
                yield from self._go_on(call, store, caller, place, attempt)
        if caller.step == RUNS and caller.second is None:
            if call.abandons:
                yield f"{call.name} calls again", store, caller._replace(second=self._started(call, 1))
            if call.dies:
                yield f"{call.name} dies", store.noted(call.name, status="died"), Caller(GONE)

    def _started(self, call: Call, attempt: int) -> Attempt:
        return self._settled(Attempt(self._programs.start(call, attempt)))

    def _go_on(
        self, call: Call, store: Names, caller: Caller, place: str, attempt: Attempt
    ) -> Iterator[tuple[str, Names, Caller]]:
        request, after, then = self._step(store, attempt)
        name = f"{call.name}{'' if place == 'first' else ' again'}: {request}"
        if then == AGAIN:
            yield name, after, caller._replace(**{place: self._started(call, place == "second")})
        elif not isinstance(then, Answer):
            yield name, after, caller._replace(**{place: then})
        elif caller.step == BEHIND:
            yield name, after, Caller(GONE)
        elif place == "first" and caller.second:
            yield f"{name}: nobody waits for its answer", after, caller._replace(first=None)
        else:
            goes_on = caller.first is not None and caller.second and not self.rules.attempts_end_before_the_next
            mine = Caller(BEHIND, caller.first) if goes_on else Caller(GONE)
            yield f"{name}: {then.status}", after.noted(call.name, status=then.status, id=then.id), mine
            if place == "first" and call.abandons:
                yield f"{name}: its answer is lost", after, Caller(RUNS, None, self._started(call, 1))

    def tick(self, store: Names, tick: Process) -> Iterator[tuple[str, Names, Process]]:
        if tick.step == RUNS:
            due = [id for id in store.rows if id.due == store.fence and store.cancellation(id) is None]
            yield f"tick sends {due}", store._replace(sent=store.sent | set(due)), Process()
        elif store.fence < self.world.last:
            after = store._replace(fence=store.fence + 1)
            yield f"tick raises the fence to {after.fence}", after, Process(RUNS)

    def ingest(self, store: Names, ingest: Process) -> Iterator[tuple[str, Names, Process]]:
        if ingest.attempt is None:
            for message in store.inbound:
                yield f"ingest {message}", store, Process(RUNS, self._settled(Attempt(GoOn("ingest", (message,)))))
            return
        request, after, then = self._step(store, ingest.attempt)
        yield f"ingest: {request}", after, Process() if isinstance(then, Answer) else Process(RUNS, then)

    def expire(self, store: Names, process: Process) -> Iterator[tuple[str, Names, Process]]:
        yield "time deletes", self._requests.expire(store)[1], process

    def forget(self, store: Names, process: Process) -> Iterator[tuple[str, Names, Process]]:
        """An hour passes for calls in the memory: only such as are over, as none is repeated for so long."""
        underway = {name for name, each in store.calls if not each.status and self.rules.calls_repeat_within_the_hour}
        if store.key:
            kept = tuple(each for each in store.key.calls if each.call in underway)
            yield "an hour passes", store._replace(key=store.key._replace(calls=kept)), process

    def _step(self, store: Names, attempt: Attempt) -> tuple[Request, Names, Any]:
        request = self._outcome(attempt)
        answer, after = self._requests.do(store, request)
        return request, after, self._settled(attempt._replace(answers=(*attempt.answers, answer)))

    def _settled(self, attempt: Attempt) -> Any:
        """Return where an attempt waits for its next request, or the answer, or AGAIN."""
        while True:
            outcome = self._outcome(attempt)
            if isinstance(outcome, Request):
                return attempt
            if not isinstance(outcome, GoOn):
                return outcome
            attempt = Attempt(outcome)

    def _outcome(self, attempt: Attempt) -> Any:
        if attempt not in self._outcomes:
            program = getattr(self._programs, attempt.at.program)(*attempt.at.args)
            try:
                outcome = next(program)
                for answer in attempt.answers:
                    outcome = program.send(answer)
            except StopIteration as end:
                outcome = end.value
            self._outcomes[attempt] = outcome
        return self._outcomes[attempt]

    # Promises

    def broken(self, store: Names) -> str:
        waiting, line = store.waiting(), [store.tail(id) for id, _ in store.moved]
        if None in line:
            return NO_CIRCLE
        if len(waiting) > 1:
            return ONE_WAITS
        if waiting and not self.world.expires and (store.key is None or store.tail(store.key.id) not in waiting):
            return POINTS
        if waiting and self.world.expires and store.key is None:
            return POINTS
        for call in self.world.calls:
            made = {id for id in store.rows | store.sent if id.uid == call.name or id.uid.endswith(f">{call.name}")}
            if len(made) > 1:
                return ONE_JOB
        return next((EXACT for call in self.world.calls if self._is_cancel_broken(call, store)), "")

    def _is_cancel_broken(self, call: Call, store: Names) -> bool:
        progress = dict(store.calls)[call.name]
        if call.kind not in (CANCEL, CANCEL_ID) or progress.status != "200":
            return False
        if call.id is not None:
            return not store.sent.isdisjoint(store.line(call.id))
        return not progress.saw_none or progress.id in store.sent

    def lost(self, store: Names) -> str:
        if store.fence < self.world.last or store.inbound:
            return ""
        calls, cancelled = dict(store.calls), set(store.cancelled)
        for call in self.world.calls:
            progress = calls[call.name]
            if call.kind in (CANCEL, CANCEL_ID) or progress.status != "200":
                continue
            tail = store.tail(progress.id) if progress.id else None
            by = {name for id, name in cancelled if id == tail}
            if tail not in store.sent and not by - (progress.earlier or frozenset()):
                return SENT
        return ""


def _world(name: str, states: int) -> World:
    """Return the world that a name describes: what there is, and its calls, which are A, B and C."""
    there, _, calls = name.rpartition(": ")
    return World(
        states=states,
        calls=tuple(_call(*each) for each in zip("ABC", calls.split(" | "), strict=False)),
        has_job="Z" in there,
        last=int(there[-1]) if "until" in there else 2,
        expires="ttl" in there,
        most_remembered=1 if "bound" in there else None,
    )


def _call(name: str, text: str) -> Call:
    """Return a call: due at a number, and its second attempt, of which there is none `once`, so much later."""
    kind, due, more, how = re.fullmatch(r"([a-z]+(?: id)?)(?: (\d))?(?:\+(\d))?(.*)", text).groups(default="")
    first = int(due or 0)
    return Call(
        name,
        kind,
        (first, first + int(more or 0)),
        content="y" if "other" in how else "x",
        id=Z if kind.endswith("id") else None,
        abandons="once" not in how,
        dies="dies" in how,
        buffered="buffered" in how,
        refused=tuple(attempt for attempt, which in enumerate(("first", "second")) if f"{which} refused" in how),
    )


_STATES = {
    "keep 1 | keep 2": 327_217,
    "keep 1 | keep 2 other": 91_892,
    "keep 1 once dies | keep 2": 29_345,
    "keep 1 dies | keep 2 other": 93_819,
    "keep 1 once dies | replace 2": 44_350,
    "keep 1 once dies | replace 1": 34_585,
    "keep 1 | replace 1": 409_373,
    "keep 1 | replace 2": 632_602,
    "keep 2 | replace 1": 678_945,
    "keep 1+1 | cancel": 24_996,
    "keep 1+1 | cancel once | keep 2 once": 452_323,
    "keep 1 | replace 2 once | cancel once": 464_796,
    "keep 1 | replace 2 once | replace 1 once": 2_340_303,
    "fail 1 | replace 2 once | cancel once": 346_620,
    "keep 1 buffered | replace 2": 1_064_591,
    "keep 1 buffered | keep 2 once | cancel once": 673_323,
    "replace 1 buffered | reschedule 2": 406_473,
    "Z: cancel | keep 1 once | keep 2 once": 151_121,
    "Z: cancel | keep 1 once | replace 2 once": 225_018,
    "Z: cancel id | cancel once | replace 2 once": 38_869,
    "Z until 3: replace 2 | cancel": 241_888,
    "Z until 3: replace 2 | cancel id": 95_782,
    "Z until 3: replace 2 | replace 3": 5_734_993,
    "Z until 3: replace 2+1 | cancel": 223_516,
    "Z: replace 1 | cancel": 49_557,
    "Z: replace 1 other | replace 2": 2_751_726,
    "Z until 3: replace 2 once dies | reschedule 3": 99_716,
    "Z: replace 2 | replace 1 other once | cancel id once": 1_426_685,
    "Z: replace 2 | reschedule 1 once | cancel once": 823_632,
    "Z: reschedule 2 | replace 1 once | cancel once": 331_922,
    "Z: reschedule 2 | keep 1 once | cancel once": 315_226,
    "Z until 3: reschedule 2 | reschedule 3": 1_072_579,
    "Z until 3: reschedule 2 | reschedule id 3": 841_004,
    "Z: reschedule 2 | cancel id": 17_934,
    "Z until 3: reschedule id 2 | keep 3": 81_068,
    "Z until 3: reschedule id 2 | replace 3": 898_885,
    "Z: reschedule 1 | cancel": 7_434,
    "keep 1 first refused | keep 2": 165_235,
    "keep 1 second refused | keep 2": 165_792,
    "keep 1 first refused | replace 2": 249_345,
    "keep 2 once first refused | replace 1+1": 18_089,
    "keep 1 second refused | replace 2": 247_633,
    "keep 1 first refused | keep 2 once | keep 1 once": 626_436,
    "keep 1 first refused second refused | keep 2 once first refused | keep 1 other once": 81_198,
    "keep 1 first refused | cancel once | keep 2 once": 194_287,
    "keep 1 once first refused | cancel once | keep 1+1": 265_583,
    "Z: cancel once | keep 1 first refused | keep 2 once": 265_248,
    "bound: keep 1 | replace 2": 636_809,
    "bound Z: replace 2 | replace 1": 1_427_195,
    "bound Z: reschedule 2 | replace 1": 60_557,
    "bound Z: cancel once | keep 1 | keep 2 once": 1_032_131,
    "ttl until 3: keep 1 | replace 2": 8_549_754,
    "ttl Z until 4: reschedule 3 | keep 2": 7_270_680,
    "ttl Z until 4: reschedule 2 once | reschedule 3 once": 8_759,
}
NAME_WORLDS = {name: _world(name, states) for name, states in _STATES.items()}
