"""Redrive: put dead letters back into their queues, or delete them. However it is interrupted, none is lost.

A message is sent first and deleted after: a crash in between sends it twice. Messages that are not selected stay hidden
during the run, so that each is received once, and become visible again at its end. If the run is killed, they do after
HIDDEN_SECONDS.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, groupby
from operator import attrgetter
from typing import NamedTuple, Protocol

from dueline.core.message import BATCH_MESSAGES, ID, Message, batches
from dueline.core.ports import BatchFailure, Depth, ParallelMap, Payloads, Queue, QueueMessage, QueueReader
from dueline.core.retry import LANES, Calls, attempt
from dueline.errors import DuelineError, InvalidJob
from dueline.operations.dead_letters import DeadLetterFilter, ErrorGroup, ErrorGroups, RedriveMessage, Rule, own_pointer

HIDDEN_SECONDS = 600
DEAD_AGAIN = "this run had put its job back, and it is a dead letter again"
_WAIT_SECONDS = 1
# An SQS queue that is nearly empty may answer with nothing though something is there.
_EMPTY_ROUNDS = 2


class DeadLetters(QueueReader, Protocol):
    """A dead-letter queue, to receive from, with its depth."""

    def depth(self) -> Depth:
        """Return how many messages there are. Raises QueueNotFound."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RedriveQueues:
    """A dead-letter queue, and the SQS queues that its messages are put back into, by priority.

    `payloads` has the payloads in S3 of what is put back.
    """

    dead_letters: DeadLetters
    queues: Sequence[Queue]
    payloads: Payloads | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class RedriveResult:
    """The result of a run.

    `received` messages arrived, those of `kinds` were selected, those of `others` not, and `moved` were put back.
    `stay` and `failed` count, by reason, the messages that were not: they cannot be, or SQS refused them this time.
    What this run put back and arrived again is counted in `stay` alone. `there` messages were waiting when the run
    began, and `hidden` in flight, received by someone else or by a run that was killed. About `not_received` more
    should have arrived and did not: others receive them, or SQS's answer was lost. Like SQS's own counts, `there` and
    what depends on it are approximate.
    """

    received: int
    there: int
    hidden: int
    not_received: int
    kinds: tuple[ErrorGroup, ...]
    others: tuple[ErrorGroup, ...]
    moved: int
    stay: Mapping[str, int]
    failed: Mapping[str, int]

    @property
    def selected(self) -> int:
        """How many messages were selected, those that stay included."""
        return sum(kind.count for kind in self.kinds)


class _Chosen(NamedTuple):
    arrival: QueueMessage
    back: RedriveMessage


# Why messages of a batch stay, and why SQS refused others.
_NotPutBack = tuple[Counter[str], Counter[str]]


@dataclass(kw_only=True, slots=True)
class _Progress:
    """Progress of a run, by ids of messages: `held` has the receipts of hidden ones, `sent` are those sent.

    `kept` says why SQS did not delete others. `jobs` are the ids of the jobs that were put back, and `again` counts
    messages of theirs that arrived after that.
    """

    depth: Depth = field(default_factory=lambda: Depth(waiting=0, in_flight=0, delayed=0))
    received: set[str] = field(default_factory=set)
    held: dict[str, str] = field(default_factory=dict)
    sent: set[str] = field(default_factory=set)
    kept: dict[str, str] = field(default_factory=dict)
    selected: ErrorGroups = field(default_factory=ErrorGroups)
    others: ErrorGroups = field(default_factory=ErrorGroups)
    moved: set[str] = field(default_factory=set)
    jobs: set[str] = field(default_factory=set)
    again: int = 0
    stay: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)


class Redrive:
    """One run over a dead-letter queue. It ends after as many messages as were there when it began.

    It puts each job back once: where it fails again at once, or has two dead letters, the later one stays. Only of a
    message without a job's id is that not known. `rule` returns the message to put back, `limit` is how many
    at most; `most` is how many are received at most, whether or not they can be put back. `spread` runs several calls
    at once; each is retried as `calls` says. `on_progress` gets the number of messages received so far, and of all,
    `on_selected` each message that is selected.
    Raises QueueNotFound, or what the last attempt raised.
    """

    def __init__(
        self,
        ends: RedriveQueues,
        *,
        rule: Rule = lambda message: RedriveMessage(message=message),
        calls: Calls,
        selection: DeadLetterFilter | None = None,
        limit: int | None = None,
        most: int | None = None,
        spread: ParallelMap = map,
        on_progress: Callable[[int, int], None] = lambda _done, _of: None,
        on_selected: Callable[[QueueMessage], object] = lambda _: None,
    ) -> None:
        self._dead_letters, self._queues, self._payloads = ends.dead_letters, ends.queues, ends.payloads
        self._rule, self._calls, self._spread = rule, calls, spread
        self._selection, self._limit, self._most = selection or DeadLetterFilter(), limit, most
        self._on_progress, self._on_selected = on_progress, on_selected
        self._progress = _Progress()

    def look(self) -> RedriveResult:
        """Return what would be put back, and change nothing."""
        return self._run(lambda _: None)

    def apply(self) -> RedriveResult:
        """Put back the selected messages. If it ends early, another run continues with the rest."""
        return self._run(self._move)

    def delete(self) -> RedriveResult:
        """Delete the selected messages for good; `moved` counts them.

        Those that SQS does not delete this time have `failed`, and are visible again within HIDDEN_SECONDS. If it ends
        early, what was deleted is gone, and another run continues.
        """
        done = self._run(self._delete_all)
        return replace(done, failed=Counter(self._progress.kept.values()))

    @property
    def result(self) -> RedriveResult:
        """The result so far, also of a run that raised: SQS may have done more than its answers said."""
        progress = self._progress
        received = len(progress.received) - progress.again
        return RedriveResult(
            received=received,
            there=progress.depth.waiting,
            hidden=progress.depth.in_flight,
            not_received=0 if self._has_enough else max(0, self._bound - received),
            kinds=progress.selected.by_frequency(),
            others=progress.others.by_frequency(),
            moved=len(progress.moved),
            stay=progress.stay + Counter({DEAD_AGAIN: progress.again}),
            failed=progress.failed,
        )

    def _run(self, act: Callable[[Sequence[_Chosen]], None]) -> RedriveResult:
        self._progress.depth = depth = self._calls.run(self._dead_letters.depth)
        empty = 0
        try:
            while empty < _EMPTY_ROUNDS and (sizes := self._receive_sizes()):
                arrivals = self._new(chain.from_iterable(self._spread(self._receive, sizes)))
                empty = 0 if arrivals else empty + 1
                act(self._chosen(arrivals))
                self._on_progress(len(self._progress.received) - self._progress.again, depth.waiting)
        finally:
            self._let_go()
        return self.result

    @property
    def _bound(self) -> int:
        """How many messages are received at most."""
        there = self._progress.depth.waiting
        return there if self._most is None else min(there, self._most)

    def _receive_sizes(self) -> list[int]:
        """Return how many messages to request in each receive of the next round."""
        received = len(self._progress.received) - self._progress.again
        left = 0 if self._has_enough else max(0, self._bound - received)
        full, rest = divmod(left, BATCH_MESSAGES)
        return [*[BATCH_MESSAGES] * min(full, LANES), *([rest] if rest else [])][:LANES]

    @property
    def _has_enough(self) -> bool:
        return self._limit is not None and self._progress.selected.total - self._progress.stay.total() >= self._limit

    def _receive(self, most: int) -> Sequence[QueueMessage]:
        def receive() -> Sequence[QueueMessage]:
            return self._dead_letters.receive(most=most, wait=_WAIT_SECONDS, hidden=HIDDEN_SECONDS)

        arrivals = self._calls.run(receive)
        # Noted here and not by the reader of the answers: an interrupt may come in between.
        self._progress.held.update((each.message_id, each.receipt) for each in arrivals)
        return arrivals

    def _new(self, arrivals: Iterable[QueueMessage]) -> list[QueueMessage]:
        new = {each.message_id: each for each in arrivals if each.message_id not in self._progress.received}
        self._progress.received.update(new)
        return list(new.values())

    def _chosen(self, arrivals: Sequence[QueueMessage]) -> list[_Chosen]:
        """Return what is to be put back of these, and note what is selected and stays."""
        chosen = []
        for arrival in arrivals:
            if arrival.message.attributes.get(ID) in self._progress.jobs:
                self._progress.again += 1
                continue
            if self._has_enough or not self._selection.has(arrival):
                self._progress.others.add(arrival)
                continue
            self._progress.selected.add(arrival)
            self._on_selected(arrival)
            try:
                chosen.append(_Chosen(arrival, self._rule(arrival.message)))
            except InvalidJob as error:
                self._progress.stay[str(error)] += 1
        return chosen

    def _move(self, chosen: Sequence[_Chosen]) -> None:
        level = attrgetter("back.level")
        levels = groupby(sorted(chosen, key=level), key=level)
        cut = chain.from_iterable(batches(its, size=attrgetter("back.message.sent_bytes")) for _, its in levels)
        for stay, failed in self._spread(self._put_back, cut):
            self._progress.stay.update(stay)
            self._progress.failed.update(failed)

    def _put_back(self, batch: Sequence[_Chosen]) -> _NotPutBack:
        """Send a batch to its queue, then delete it."""
        stay = Counter[str]()
        batch = [each for each in batch if self._is_payload_kept(each.back.message, stay)]
        if not batch:
            return stay, Counter()
        queue = self._queues[batch[0].back.level - 1]
        refusals = self._calls.run(lambda: queue.send([each.back.message for each in batch]))
        refused = {refusal.index for refusal in refusals}
        sent = [each.arrival for index, each in enumerate(batch) if index not in refused]
        ids = [each.message_id for each in sent]
        self._progress.sent.update(ids)
        self._progress.moved.update(ids)
        self._progress.jobs.update(each.message.attributes[ID] for each in sent if ID in each.message.attributes)
        self._delete(ids)
        return stay, Counter(refusal.reason for refusal in refusals)

    def _is_payload_kept(self, message: Message, stay: Counter[str]) -> bool:
        """Have a payload in S3 kept for as long as the message that is put back may need it."""
        pointer = own_pointer(message)
        if pointer is None or self._payloads is None:
            return True
        payloads = self._payloads
        try:
            self._calls.run(lambda: payloads.renew(pointer))
        except InvalidJob as error:
            stay[str(error)] += 1
            return False
        return True

    def _delete_all(self, chosen: Sequence[_Chosen]) -> None:
        cut = list(batches([each.arrival.message_id for each in chosen], size=lambda _: 0))
        for ids in cut:
            self._progress.sent.update(ids)
        list(self._spread(self._delete, cut))

    def _delete(self, ids: Sequence[str]) -> None:
        """Delete messages. Those of which SQS says no for now are tried once more at the end."""
        if not ids:
            return
        refusals = self._calls.run(lambda: self._dead_letters.delete([self._progress.held[id] for id in ids]))
        left = {refusal.index for refusal in refusals if not refusal.final}
        kept = {ids[refusal.index]: refusal.reason for refusal in refusals}
        for index, id in enumerate(ids):
            if id in kept:
                self._progress.kept[id] = kept[id]
            else:
                self._progress.kept.pop(id, None)
                self._progress.moved.add(id)
            if index not in left:
                self._progress.sent.discard(id)
                del self._progress.held[id]

    def _let_go(self) -> None:
        """Delete what was sent and is still there, and show the rest again; what fails shows itself after its time."""
        sent = list(batches(sorted(self._progress.sent), size=lambda _: 0))
        list(self._spread(lambda ids: attempt(self._delete, ids), sent))
        others = [receipt for id, receipt in self._progress.held.items() if id not in self._progress.sent]
        list(self._spread(self._show, batches(others, size=lambda _: 0)))

    def _show(self, receipts: Sequence[str]) -> Sequence[BatchFailure] | DuelineError:
        return attempt(
            lambda shown: self._calls.run(lambda: self._dead_letters.hide(shown, [0] * len(shown))), receipts
        )
