"""Redrive: put dead letters back into their queues. However it is interrupted, none is lost.

A message is sent first and deleted after: a crash in between sends it twice. Messages that are not selected stay hidden
during the run, so that each is received once, and become visible again at its end. If the run is killed, they do after
HIDDEN_SECONDS.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, groupby
from typing import Protocol

from dueline.errors import DuelineError, InvalidJob
from dueline.model.message import BATCH_MESSAGES, batches
from dueline.operate.dead_letters import PutBack, Rule, Wanted
from dueline.operate.kinds import Kind, by_kind, kinds_of
from dueline.ports import Arrival, Depth, Inbox, Queue, Refusal, Spread
from dueline.retry.calls import LANES, Calls, attempt

HIDDEN_SECONDS = 600
_WAIT_SECONDS = 1
# An SQS queue that is nearly empty may answer with nothing though something is there.
_EMPTY_ROUNDS = 2
_SAMPLES = 3


class DeadLetters(Inbox, Protocol):
    """A dead-letter queue, to receive from and to ask how full it is."""

    def depth(self) -> Depth:
        """Return how many messages there are. Raises QueueNotFound."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Ends:
    """A dead-letter queue, and the SQS queues that its messages are put back into, by priority."""

    dead_letters: DeadLetters
    queues: Sequence[Queue]


@dataclass(frozen=True, kw_only=True, slots=True)
class Redriven:
    """The result of a run.

    `found` messages were received, those of `kinds` were selected, and `moved` of them were put back. `stay` and
    `failed` count, by reason, the selected messages that were not: they cannot be, or SQS refused them this time.
    `there` messages were waiting when the run began, and `hidden` in flight, received by someone else or by a run that
    was killed. `samples` are some messages of each kind, as they came.
    """

    found: int
    there: int
    hidden: int
    kinds: tuple[Kind, ...]
    moved: int
    stay: Mapping[str, int]
    failed: Mapping[str, int]
    samples: Mapping[str, Sequence[Arrival]] = field(repr=False)

    @property
    def wanted(self) -> int:
        """How many messages were selected, those that stay included."""
        return sum(kind.count for kind in self.kinds)


@dataclass(frozen=True, slots=True)
class _Letter:
    arrival: Arrival
    back: PutBack


@dataclass(kw_only=True, slots=True)
class _Met:
    """What was met so far, by the ids of messages: `held` has the receipts of what is hidden, `sent` what was sent."""

    seen: set[str] = field(default_factory=set)
    held: dict[str, str] = field(default_factory=dict)
    sent: set[str] = field(default_factory=set)
    wanted: list[Arrival] = field(default_factory=list)
    moved: int = 0
    stay: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)


class Redrive:
    """One run over a dead-letter queue. It ends after as many messages as were there when it began.

    So a job that fails again at once is not put back twice. `rule` returns the message to put back, `limit` is how many
    at most. `spread` runs several calls at once; each is retried as `calls` says. `on_progress` gets the number of
    messages received so far, and of all. Raises QueueNotFound, or what the last attempt raised.
    """

    def __init__(
        self,
        ends: Ends,
        *,
        rule: Rule,
        calls: Calls,
        wanted: Wanted | None = None,
        limit: int | None = None,
        spread: Spread = map,
        on_progress: Callable[[int, int], None] = lambda _done, _of: None,
    ) -> None:
        self._dead_letters, self._queues = ends.dead_letters, ends.queues
        self._rule, self._calls, self._spread = rule, calls, spread
        self._wanted, self._limit = wanted or Wanted(), limit
        self._on_progress = on_progress
        self._met = _Met()

    def look(self) -> Redriven:
        """Return what would be put back, and change nothing."""
        return self._run(lambda _: None)

    def apply(self) -> Redriven:
        """Put back the selected messages. If it ends early, another run continues with the rest."""
        return self._run(self._move)

    def _run(self, act: Callable[[Sequence[_Letter]], None]) -> Redriven:
        depth = self._calls.ask(self._dead_letters.depth)
        empty = 0
        try:
            while empty < _EMPTY_ROUNDS and (asked := self._asked_for(depth.waiting)):
                arrivals = self._new(chain.from_iterable(self._spread(self._receive, asked)))
                empty = 0 if arrivals else empty + 1
                act(self._chosen(arrivals))
                self._on_progress(len(self._met.seen), depth.waiting)
        finally:
            self._let_go()
        return self._redriven(depth)

    def _asked_for(self, there: int) -> list[int]:
        """Return how many messages to ask for in each receive of the next round."""
        left = 0 if self._has_enough else max(0, there - len(self._met.seen))
        full, rest = divmod(left, BATCH_MESSAGES)
        return [*[BATCH_MESSAGES] * min(full, LANES), *([rest] if rest else [])][:LANES]

    @property
    def _has_enough(self) -> bool:
        return self._limit is not None and len(self._met.wanted) - self._met.stay.total() >= self._limit

    def _receive(self, most: int) -> Sequence[Arrival]:
        def receive() -> Sequence[Arrival]:
            return self._dead_letters.receive(most=most, wait=_WAIT_SECONDS, hidden=HIDDEN_SECONDS)

        arrivals = self._calls.ask(receive)
        # Noted here and not by whoever reads the answers: an interrupt may come in between.
        self._met.held.update((each.message_id, each.receipt) for each in arrivals)
        return arrivals

    def _new(self, arrivals: Iterable[Arrival]) -> list[Arrival]:
        new = {each.message_id: each for each in arrivals if each.message_id not in self._met.seen}
        self._met.seen.update(new)
        return list(new.values())

    def _chosen(self, arrivals: Sequence[Arrival]) -> list[_Letter]:
        """Return what is to be put back of these, and note what is wanted and stays."""
        letters = []
        for arrival in arrivals:
            if self._has_enough or not self._wanted.has(arrival):
                continue
            self._met.wanted.append(arrival)
            try:
                letters.append(_Letter(arrival, self._rule(arrival.message)))
            except InvalidJob as error:
                self._met.stay[str(error)] += 1
        return letters

    def _move(self, letters: Sequence[_Letter]) -> None:
        levels = groupby(sorted(letters, key=_level), key=_level)
        cut = chain.from_iterable(batches(level, size=_bytes) for _, level in levels)
        for refusals, count in self._spread(self._put_back, cut):
            self._met.failed.update(refusal.reason for refusal in refusals)
            self._met.moved += count - len(refusals)

    def _put_back(self, batch: Sequence[_Letter]) -> tuple[Sequence[Refusal], int]:
        """Send a batch to its queue, then delete it; return those that were not sent, and how many there were."""
        queue = self._queues[batch[0].back.level - 1]
        refusals = self._calls.ask(lambda: queue.send([each.back.message for each in batch]))
        refused = {refusal.index for refusal in refusals}
        ids = [each.arrival.message_id for index, each in enumerate(batch) if index not in refused]
        self._met.sent.update(ids)
        self._delete(ids)
        return refusals, len(batch)

    def _delete(self, ids: Sequence[str]) -> None:
        """Delete messages that were sent. Those of which SQS says no for now are tried once more at the end."""
        if not ids:
            return
        refusals = self._calls.ask(lambda: self._dead_letters.delete([self._met.held[id] for id in ids]))
        left = {refusal.index for refusal in refusals if not refusal.final}
        for index, id in enumerate(ids):
            if index not in left:
                self._met.sent.discard(id)
                del self._met.held[id]

    def _let_go(self) -> None:
        """Delete what was sent and is still there, and show the rest again; what fails shows itself after its time."""
        sent = list(batches(sorted(self._met.sent), size=lambda _: 0))
        list(self._spread(lambda ids: attempt(self._delete, ids), sent))
        kept = [receipt for id, receipt in self._met.held.items() if id not in self._met.sent]
        list(self._spread(self._show, batches(kept, size=lambda _: 0)))

    def _show(self, receipts: Sequence[str]) -> Sequence[Refusal] | DuelineError:
        return attempt(
            lambda shown: self._calls.ask(lambda: self._dead_letters.hide(shown, [0] * len(shown))), receipts
        )

    def _redriven(self, depth: Depth) -> Redriven:
        met, sorted_out = self._met, by_kind(self._met.wanted)
        return Redriven(
            found=len(met.seen),
            there=depth.waiting,
            hidden=depth.in_flight,
            kinds=kinds_of(sorted_out),
            moved=met.moved,
            stay=met.stay,
            failed=met.failed,
            samples={kind: arrivals[:_SAMPLES] for kind, arrivals in sorted_out.items()},
        )


def _level(letter: _Letter) -> int:
    return letter.back.level


def _bytes(letter: _Letter) -> int:
    return letter.back.message.sent_bytes
