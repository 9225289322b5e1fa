"""Redrive: put dead letters back into their queues, or delete them. However it is interrupted, none is lost.

A message is sent first and deleted after: a crash in between sends it twice. Messages that are not selected stay hidden
during the run, so that each is received once, and become visible again at its end. If the run is killed, they do after
HIDDEN_SECONDS.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby
from operator import attrgetter
from typing import NamedTuple, Protocol

from dueline.core.message import BATCH_MESSAGES, ID, Message, batches
from dueline.core.ports import BatchFailure, Depth, ParallelMap, Payloads, Queue, QueueMessage, QueueReader
from dueline.core.retry import LANES, Calls, attempt
from dueline.errors import DuelineError, InvalidJob
from dueline.operations.dead_letters import DeadLetterFilter, ErrorGroup, ErrorGroups, Rule, own_pointer, priority_of

HIDDEN_SECONDS = 600
DEAD_AGAIN = "this run has put its job back already, and it is a dead letter once more"
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
    back: Message


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
        rule: Rule = lambda message: message,
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
        self._depth = Depth(waiting=0, in_flight=0, delayed=0)
        self._selected, self._others = ErrorGroups(), ErrorGroups()
        # By ids of messages: the receipts of hidden ones, and why SQS did not delete others.
        self._held, self._kept = dict[str, str](), dict[str, str]()
        # Ids of messages that arrived, of those to delete, and of those that were put back or deleted.
        self._received, self._sent, self._moved = set[str](), set[str](), set[str]()
        # Ids of the jobs that were put back, and how many messages of theirs arrived after that.
        self._jobs, self._again = set[str](), 0
        self._stay, self._failed = Counter[str](), Counter[str]()

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
        return replace(done, failed=Counter(self._kept.values()))

    @property
    def result(self) -> RedriveResult:
        """The result so far, also of a run that raised: SQS may have done more than its answers said."""
        return RedriveResult(
            received=self._arrived,
            there=self._depth.waiting,
            hidden=self._depth.in_flight,
            not_received=self._left,
            kinds=self._selected.by_frequency(),
            others=self._others.by_frequency(),
            moved=len(self._moved),
            stay=self._stay + Counter({DEAD_AGAIN: self._again}),
            failed=self._failed,
        )

    def _run(self, act: Callable[[Sequence[_Chosen]], None]) -> RedriveResult:
        self._depth, empty = self._calls.run(self._dead_letters.depth), 0
        try:
            while empty < _EMPTY_ROUNDS and (sizes := self._receive_sizes()):
                arrivals = self._new(chain.from_iterable(self._spread(self._receive, sizes)))
                empty = 0 if arrivals else empty + 1
                act(self._chosen(arrivals))
                self._on_progress(self._arrived, self._depth.waiting)
        finally:
            self._let_go()
        return self.result

    @property
    def _arrived(self) -> int:
        """How many messages arrived that this run had not put back itself."""
        return len(self._received) - self._again

    @property
    def _left(self) -> int:
        """How many messages are still to be received."""
        there = self._depth.waiting
        bound = there if self._most is None else min(there, self._most)
        return 0 if self._has_enough else max(0, bound - self._arrived)

    def _receive_sizes(self) -> list[int]:
        """Return how many messages to request in each receive of the next round."""
        full, rest = divmod(self._left, BATCH_MESSAGES)
        return [*[BATCH_MESSAGES] * min(full, LANES), *([rest] if rest else [])][:LANES]

    @property
    def _has_enough(self) -> bool:
        return self._limit is not None and self._selected.total - self._stay.total() >= self._limit

    def _receive(self, most: int) -> Sequence[QueueMessage]:
        def receive() -> Sequence[QueueMessage]:
            return self._dead_letters.receive(most=most, wait=_WAIT_SECONDS, hidden=HIDDEN_SECONDS)

        arrivals = self._calls.run(receive)
        # Noted here and not by the reader of the answers: an interrupt may come in between.
        self._held.update((each.message_id, each.receipt) for each in arrivals)
        return arrivals

    def _new(self, arrivals: Iterable[QueueMessage]) -> list[QueueMessage]:
        new = {each.message_id: each for each in arrivals if each.message_id not in self._received}
        self._received.update(new)
        return list(new.values())

    def _chosen(self, arrivals: Sequence[QueueMessage]) -> list[_Chosen]:
        """Return what is to be put back of these, and note what is selected and stays."""
        chosen = []
        for arrival in arrivals:
            if arrival.message.attributes.get(ID) in self._jobs:
                self._again += 1
                continue
            if self._has_enough or not self._selection.has(arrival):
                self._others.add(arrival)
                continue
            self._selected.add(arrival)
            self._on_selected(arrival)
            try:
                chosen.append(_Chosen(arrival, self._rule(arrival.message)))
            except InvalidJob as error:
                self._stay[str(error)] += 1
        return chosen

    def _move(self, chosen: Sequence[_Chosen]) -> None:
        first = dict[str, _Chosen]()
        for each in chosen:
            # A message without a job's id is one of its own.
            first.setdefault(str(each.arrival.message.attributes.get(ID, each.arrival.message_id)), each)
        self._stay[DEAD_AGAIN] += len(chosen) - len(first)
        levels = groupby(sorted(first.values(), key=self._level), key=self._level)
        cut = chain.from_iterable(batches(its, size=attrgetter("back.sent_bytes")) for _, its in levels)
        for stay, refusals in self._spread(self._put_back, cut):
            self._stay.update(stay)
            self._failed.update(refusal.reason for refusal in refusals)

    def _level(self, chosen: _Chosen) -> int:
        """Return the priority of the SQS queue that a message is put back into. The inbound queue has 1 alone."""
        return min(priority_of(chosen.back), len(self._queues))

    def _put_back(self, batch: Sequence[_Chosen]) -> tuple[list[str], Sequence[BatchFailure]]:
        """Send a batch to its queue, then delete it; return why some stay, and what SQS refused."""
        reasons = [self._renewed(each.back) for each in batch]
        stay, batch = list(filter(None, reasons)), [each for each, why in zip(batch, reasons, strict=True) if not why]
        if not batch:
            return stay, ()
        queue = self._queues[self._level(batch[0]) - 1]
        refusals = self._calls.run(lambda: queue.send([each.back for each in batch]))
        refused = {refusal.index for refusal in refusals}
        sent = [each.arrival for index, each in enumerate(batch) if index not in refused]
        ids = [each.message_id for each in sent]
        self._sent.update(ids)
        self._moved.update(ids)
        self._jobs.update(each.message.attributes[ID] for each in sent if ID in each.message.attributes)
        self._delete(ids)
        return stay, refusals

    def _renewed(self, message: Message) -> str:
        """Have a payload in S3 kept for as long as its message may need it; return why it cannot be, or nothing."""
        pointer, payloads = own_pointer(message), self._payloads
        if pointer and payloads:
            try:
                self._calls.run(lambda: payloads.renew(pointer))
            except InvalidJob as error:
                return str(error)
        return ""

    def _delete_all(self, chosen: Sequence[_Chosen]) -> None:
        cut = list(batches([each.arrival.message_id for each in chosen], size=lambda _: 0))
        for ids in cut:
            self._sent.update(ids)
        list(self._spread(self._delete, cut))

    def _delete(self, ids: Sequence[str]) -> None:
        """Delete messages. Those of which SQS says no for now are tried once more at the end."""
        if not ids:
            return
        refusals = self._calls.run(lambda: self._dead_letters.delete([self._held[id] for id in ids]))
        left = {refusal.index for refusal in refusals if not refusal.final}
        kept = {ids[refusal.index]: refusal.reason for refusal in refusals}
        for index, id in enumerate(ids):
            if id in kept:
                self._kept[id] = kept[id]
            else:
                self._kept.pop(id, None)
                self._moved.add(id)
            if index not in left:
                self._sent.discard(id)
                del self._held[id]

    def _let_go(self) -> None:
        """Delete what was sent and is still there, and show the rest again; what fails shows itself after its time."""
        sent = list(batches(sorted(self._sent), size=lambda _: 0))
        list(self._spread(lambda ids: attempt(self._delete, ids), sent))
        others = [receipt for id, receipt in self._held.items() if id not in self._sent]
        list(self._spread(self._show, batches(others, size=lambda _: 0)))

    def _show(self, receipts: Sequence[str]) -> Sequence[BatchFailure] | DuelineError:
        return attempt(
            lambda shown: self._calls.run(lambda: self._dead_letters.hide(shown, [0] * len(shown))), receipts
        )
