"""Worlds of calls about one name: two or three of them, ticks, ingest, what time deletes, in every order."""

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
    FAIL,
    KEEP,
    NO_CIRCLE,
    ONE_JOB,
    ONE_WAITS,
    POINTS,
    REPLACE,
    RESCHEDULE,
    RESCHEDULE_ID,
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
            if call.kind not in (KEEP, REPLACE, FAIL, RESCHEDULE, RESCHEDULE_ID) or progress.status != "200":
                continue
            tail = store.tail(progress.id) if progress.id else None
            by = {name for id, name in cancelled if id == tail}
            if tail not in store.sent and not by - (progress.earlier or frozenset()):
                return SENT
        return ""


def _of(states: int, *calls: Call, **options: Any) -> World:
    """Return a world of calls, which are named A, B, C, and of so many states."""
    return World(
        states=states,
        calls=tuple(each._replace(name=name) for name, each in zip("ABC", calls, strict=False)),
        **options,
    )


def _call(kind: str, due: int = 0, *, more: int = 0, **options: Any) -> Call:
    """Return a call whose attempt may be given up; its second attempt is due so much later."""
    return Call("", kind, (due, due + more), **{"abandons": True} | options)


def _once(call: Call) -> Call:
    return call._replace(abandons=False)


_CANCEL, _CANCEL_OLD = _call(CANCEL), _call(CANCEL_ID, id=Z)
NAME_WORLDS = {
    "keep|keep": _of(327_217, _call(KEEP, 1), _call(KEEP, 2)),
    "keep|keep other": _of(91_892, _call(KEEP, 1), _call(KEEP, 2, content="y")),
    "keep dies|keep": _of(29_345, _call(KEEP, 1, dies=True, abandons=False), _call(KEEP, 2)),
    "keep dies|keep other": _of(93_819, _call(KEEP, 1, dies=True), _call(KEEP, 2, content="y")),
    "keep dies|replace": _of(44_350, _call(KEEP, 1, dies=True, abandons=False), _call(REPLACE, 2)),
    "keep dies|same wish": _of(34_585, _call(KEEP, 1, dies=True, abandons=False), _call(REPLACE, 1)),
    "keep|same wish": _of(409_373, _call(KEEP, 1), _call(REPLACE, 1)),
    "keep|replace": _of(632_602, _call(KEEP, 1), _call(REPLACE, 2)),
    "keep|replace nearer": _of(678_945, _call(KEEP, 2), _call(REPLACE, 1)),
    "keep delay|cancel": _of(24_996, _call(KEEP, 1, more=1), _CANCEL),
    "keep delay|cancel|keep": _of(452_323, _call(KEEP, 1, more=1), _once(_CANCEL), _once(_call(KEEP, 2))),
    "keep|replace|cancel": _of(464_796, _call(KEEP, 1), _once(_call(REPLACE, 2)), _once(_CANCEL)),
    "keep|replace|replace": _of(2_340_303, _call(KEEP, 1), _once(_call(REPLACE, 2)), _once(_call(REPLACE, 1))),
    "fail|replace|cancel": _of(346_620, _call(FAIL, 1), _once(_call(REPLACE, 2)), _once(_CANCEL)),
    "buffered keep|replace": _of(1_064_591, _call(KEEP, 1, buffered=True), _call(REPLACE, 2)),
    "buffered keep|keep|cancel": _of(673_323, _call(KEEP, 1, buffered=True), _once(_call(KEEP, 2)), _once(_CANCEL)),
    "buffered replace|reschedule": _of(406_473, _call(REPLACE, 1, buffered=True), _call(RESCHEDULE, 2)),
    "Z cancel|keep|keep": _of(151_121, _CANCEL, _once(_call(KEEP, 1)), _once(_call(KEEP, 2)), has_job=True),
    "Z cancel|keep|replace": _of(225_018, _CANCEL, _once(_call(KEEP, 1)), _once(_call(REPLACE, 2)), has_job=True),
    "Z cancel old|cancel|replace": _of(38_869, _CANCEL_OLD, _once(_CANCEL), _once(_call(REPLACE, 2)), has_job=True),
    "Z replace|cancel": _of(241_888, _call(REPLACE, 2), _CANCEL, has_job=True, last=3),
    "Z replace|cancel old": _of(95_782, _call(REPLACE, 2), _CANCEL_OLD, has_job=True, last=3),
    "Z replace|replace": _of(5_734_993, _call(REPLACE, 2), _call(REPLACE, 3), has_job=True, last=3),
    "Z replace delay|cancel": _of(223_516, _call(REPLACE, 2, more=1), _CANCEL, has_job=True, last=3),
    "Z replace near|cancel": _of(49_557, _call(REPLACE, 1), _CANCEL, has_job=True),
    "Z replace near|replace": _of(2_751_726, _call(REPLACE, 1, content="y"), _call(REPLACE, 2), has_job=True),
    "Z replace dies|reschedule": _of(
        99_716, _call(REPLACE, 2, dies=True, abandons=False), _call(RESCHEDULE, 3), has_job=True, last=3
    ),
    "Z replace|replace|cancel old": _of(
        1_426_685, _call(REPLACE, 2), _once(_call(REPLACE, 1, content="y")), _once(_CANCEL_OLD), has_job=True
    ),
    "Z replace|reschedule|cancel": _of(
        823_632, _call(REPLACE, 2), _once(_call(RESCHEDULE, 1)), _once(_CANCEL), has_job=True
    ),
    "Z reschedule|replace|cancel": _of(
        331_922, _call(RESCHEDULE, 2), _once(_call(REPLACE, 1)), _once(_CANCEL), has_job=True
    ),
    "Z reschedule|keep|cancel": _of(315_226, _call(RESCHEDULE, 2), _once(_call(KEEP, 1)), _once(_CANCEL), has_job=True),
    "Z reschedule|reschedule": _of(1_072_579, _call(RESCHEDULE, 2), _call(RESCHEDULE, 3), has_job=True, last=3),
    "Z reschedule|reschedule id": _of(
        841_004, _call(RESCHEDULE, 2), _call(RESCHEDULE_ID, 3, id=Z), has_job=True, last=3
    ),
    "Z reschedule|cancel old": _of(17_934, _call(RESCHEDULE, 2), _CANCEL_OLD, has_job=True),
    "Z reschedule id|keep": _of(81_068, _call(RESCHEDULE_ID, 2, id=Z), _call(KEEP, 3), has_job=True, last=3),
    "Z reschedule id|replace": _of(898_885, _call(RESCHEDULE_ID, 2, id=Z), _call(REPLACE, 3), has_job=True, last=3),
    "Z reschedule near|cancel": _of(7_434, _call(RESCHEDULE, 1), _CANCEL, has_job=True),
    "keep refused|keep": _of(165_235, _call(KEEP, 1, refused=(0,)), _call(KEEP, 2)),
    "keep refused later|keep": _of(165_792, _call(KEEP, 1, refused=(1,)), _call(KEEP, 2)),
    "keep refused|replace": _of(249_345, _call(KEEP, 1, refused=(0,)), _call(REPLACE, 2)),
    "keep refused|replace delay": _of(18_089, _once(_call(KEEP, 2, refused=(0,))), _call(REPLACE, 1, more=1)),
    "keep refused later|replace": _of(247_633, _call(KEEP, 1, refused=(1,)), _call(REPLACE, 2)),
    "keep refused|keep|keep": _of(626_436, _call(KEEP, 1, refused=(0,)), _once(_call(KEEP, 2)), _once(_call(KEEP, 1))),
    "keep refused|keep refused|keep other": _of(
        81_198, _call(KEEP, 1, refused=(0, 1)), _once(_call(KEEP, 2, refused=(0,))), _once(_call(KEEP, 1, content="y"))
    ),
    "keep refused|cancel|keep": _of(194_287, _call(KEEP, 1, refused=(0,)), _once(_CANCEL), _once(_call(KEEP, 2))),
    "keep refused|cancel|keep delay": _of(
        265_583, _once(_call(KEEP, 1, refused=(0,))), _once(_CANCEL), _call(KEEP, 1, more=1)
    ),
    "Z cancel|keep refused|keep": _of(
        265_248, _once(_CANCEL), _call(KEEP, 1, refused=(0,)), _once(_call(KEEP, 2)), has_job=True
    ),
    "bound keep|replace": _of(636_809, _call(KEEP, 1), _call(REPLACE, 2), most_remembered=1),
    "bound Z replace|replace": _of(1_427_195, _call(REPLACE, 2), _call(REPLACE, 1), has_job=True, most_remembered=1),
    "bound Z reschedule|replace": _of(60_557, _call(RESCHEDULE, 2), _call(REPLACE, 1), has_job=True, most_remembered=1),
    "bound Z cancel|keep|keep": _of(
        1_032_131, _once(_CANCEL), _call(KEEP, 1), _once(_call(KEEP, 2)), has_job=True, most_remembered=1
    ),
    "ttl keep|replace": _of(8_549_754, _call(KEEP, 1), _call(REPLACE, 2), last=3, expires=True),
    "ttl reschedule|keep": _of(7_270_680, _call(RESCHEDULE, 3), _call(KEEP, 2), has_job=True, last=4, expires=True),
    "ttl reschedule|reschedule": _of(
        8_759, _once(_call(RESCHEDULE, 2)), _once(_call(RESCHEDULE, 3)), has_job=True, last=4, expires=True
    ),
}
