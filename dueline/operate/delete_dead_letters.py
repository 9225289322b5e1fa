"""Delete dead letters for good. Those that are not selected stay, and are visible again at the end.

It is a redrive that puts them back nowhere: received and selected in the same way, and deleted once they were sent.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from dueline.model.message import Message
from dueline.operate.dead_letters import PutBack, Wanted
from dueline.operate.kinds import Kind
from dueline.operate.redrive import DeadLetters, Ends, Redrive
from dueline.ports import Arrival, Depth, Refusal, Spread
from dueline.retry.calls import Calls


@dataclass(frozen=True, kw_only=True, slots=True)
class Deleted:
    """The result of a run: `found` messages were received, those of `kinds` were selected, and `deleted` are gone.

    `failed` counts, by reason, the selected messages that SQS did not delete this time: they stay, and are visible
    again within HIDDEN_SECONDS. `hidden` messages were in flight when the run began.
    """

    found: int
    hidden: int
    kinds: tuple[Kind, ...]
    deleted: int
    failed: Mapping[str, int]

    @property
    def wanted(self) -> int:
        """How many messages were selected."""
        return sum(kind.count for kind in self.kinds)


def delete_dead_letters(
    dead_letters: DeadLetters,
    *,
    calls: Calls,
    wanted: Wanted | None = None,
    spread: Spread = map,
    on_progress: Callable[[int, int], None] = lambda _done, _of: None,
) -> Deleted:
    """Delete the selected messages, by default all, of as many as were there when it began.

    If it ends early, what was deleted is gone, and another run continues. Raises QueueNotFound, or what the last
    attempt of a call raised.
    """
    noted = _Noted(dead_letters)
    ends = Ends(dead_letters=noted, queues=(_Nowhere(),))
    run = Redrive(ends, rule=_as_it_is, calls=calls, wanted=wanted, spread=spread, on_progress=on_progress)
    done = run.apply()
    failed = Counter(reason for receipt, reason in noted.refused.items() if receipt not in noted.deleted)
    return Deleted(found=done.found, hidden=done.hidden, kinds=done.kinds, deleted=len(noted.deleted), failed=failed)


def _as_it_is(message: Message) -> PutBack:
    return PutBack(message=message)


class _Nowhere:
    """A queue that keeps nothing."""

    def send(self, messages: Sequence[Message]) -> list[Refusal]:
        return []

    def depth(self) -> Depth:
        return Depth(waiting=0, in_flight=0, delayed=0)


@dataclass(slots=True)
class _Noted:
    """A dead-letter queue, and the receipts that it deleted, and those that it refused at least once, with why."""

    inner: DeadLetters
    deleted: set[str] = field(default_factory=set)
    refused: dict[str, str] = field(default_factory=dict)

    def receive(self, *, most: int, wait: int, hidden: int | None = None) -> list[Arrival]:
        return self.inner.receive(most=most, wait=wait, hidden=hidden)

    def hide(self, receipts: Sequence[str], seconds: Sequence[int]) -> list[Refusal]:
        return self.inner.hide(receipts, seconds)

    def depth(self) -> Depth:
        return self.inner.depth()

    def delete(self, receipts: Sequence[str]) -> list[Refusal]:
        refusals = self.inner.delete(receipts)
        refused = {receipts[refusal.index]: refusal.reason for refusal in refusals}
        self.refused |= refused
        self.deleted.update(receipt for receipt in receipts if receipt not in refused)
        return refusals
