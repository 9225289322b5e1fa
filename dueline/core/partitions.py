"""The states of partitions: which exist, which a tick reads, and the lease, cursor and fence of a tick."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from dueline.core import instant, rows
from dueline.core.job import JobId, Partition
from dueline.core.ports import BatchRead, Clock, ParallelMap, Table, read_all
from dueline.core.queue_settings import QueueSettings
from dueline.core.rows import FIRST, PartitionState
from dueline.errors import JobNotFound, Unavailable


def states_of(partitions: Collection[Partition], *, table: Table, spread: ParallelMap = map) -> BatchRead:
    """Read the states of distinct partitions, consistently, 100 a request. Raises Throttled or Unavailable."""
    return read_all(map(rows.state_key, partitions), table=table, spread=spread)


def check_partition(id: JobId, states: BatchRead, *, queue: QueueSettings) -> None:
    """Raise JobNotFound when a job's partition never existed: queues.yaml does not declare it, and it has no state.

    `states` has the states of partitions that are not declared: one that was removed from queues.yaml keeps its ticks,
    and so its state. Raises Unavailable when its state could not be read.
    """
    key = rows.state_key(id.partition)
    if queue.declares(id.partition) or key in states.rows:
        return
    if key in states.unread:
        raise Unavailable(f"the state of {id.partition} could not be read: try again").copy(job_id=str(id))
    has = "0 alone" if queue.partitions == 1 else f"0 to {queue.partitions - 1}"
    never = f"queue {queue.name!r} never had a partition {id.partition.number}: it has {has}"
    raise JobNotFound(f"no job has the id {id}: {never}")


def all_tick(queue: QueueSettings, *, table: Table, now: datetime, spread: ParallelMap = map) -> bool:
    """Return whether each partition of a queue is known to tick: its fence lies ahead, so a tick came lately.

    Raises Throttled or Unavailable.
    """
    states = states_of(queue.all_partitions(), table=table, spread=spread)
    rows_read = (states.rows.get(rows.state_key(each)) for each in queue.all_partitions())
    return all(rows.read_state(row).fence > instant.text(now) for row in rows_read)


# AWS refuses a request whose signature is further from its own clock than this, earlier or later:
# https://docs.aws.amazon.com/emr/latest/APIReference/CommonErrors.html, RequestExpired.
SIGNATURE_LIVES = timedelta(minutes=15)
MOST_LOOKAHEAD = timedelta(minutes=15)
# A request that is signed so long before a job is due arrives before any fence can pass the job, whatever clocks say:
# SIGNATURE_LIVES later at the latest, when a fence is at most SIGNATURE_LIVES + MOST_LOOKAHEAD ahead, and a minute.
FAR = timedelta(minutes=60)
# For how long such a request may be tried again. What is left of FAR is margin.
SIGNED_WITHIN = timedelta(minutes=2)


def signed_before(due: datetime, *, now: datetime) -> datetime | None:
    """Return by when to sign a request that is to arrive before a fence passes `due`; None if that is not far off."""
    return due - FAR + SIGNED_WITHIN if due > now + FAR else None


_FENCE_ATTEMPTS = 3
_RENEW_SECONDS = 10.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Periods:
    """How often ticks fire, how far they look ahead, how long a lease lasts, and the longest send with its retries."""

    period: timedelta
    lookahead: timedelta
    lease: timedelta
    longest_send: timedelta


class Lease:
    """One owner's lease on one partition. `owner` is unique to the run, which begins no send after `until` (monotonic).

    No promise depends on it: it only avoids that two ticks send the same jobs. `renew_at` (monotonic) is when to renew
    it, `stop_at` the last moment to begin a send that ends before the lease does.
    """

    def __init__(
        self, partition: Partition, *, table: Table, clock: Clock, periods: Periods, owner: str, until: float
    ) -> None:
        self.partition, self.table, self.clock = partition, table, clock
        self._periods, self._owner, self._until = periods, owner, until
        self.renew_at = self.stop_at = until
        self.fence = ""
        self.cursor = FIRST

    def acquire(self) -> bool:
        """Take the lease and raise the fence to the end of the lookahead; return whether it was taken.

        If not, `cursor` is where its holder last was. If another tick has the lease, wait for its expiry once: it is
        taken over at once from a tick that died, and left to one that renewed it.
        """
        holder = self._try()
        if holder is None:
            return True
        if not holder.lease:  # free again, but others took it in between at every attempt
            return False
        wait = (instant.parse(holder.lease) - self.clock.now()).total_seconds()
        if self.clock.monotonic() + wait >= self._until:
            return False
        self.clock.sleep(max(0.0, wait))
        return self._try() is None

    def checkpoint(self, cursor: str) -> bool:
        """Move the cursor, renew the lease and raise the fence again; return whether the lease was still held."""
        started, now, lease, fence = self._terms()
        kept = self.table.checkpoint(
            self.partition, owner=self._owner, cursor=cursor, fence=fence, lease=lease, now=now
        )
        if kept:
            self._adopt(PartitionState(fence=fence, cursor=cursor), started)
        return kept

    @property
    def period_seconds(self) -> float:
        return self._periods.period.total_seconds()

    @property
    def outlasts_the_period(self) -> bool:
        """Whether the next tick would have to wait for a lease that was not released."""
        return self._periods.lease >= self._periods.period

    def release(self, cursor: str) -> bool:
        """Move the cursor and release the lease; return whether it was still held."""
        return self.table.checkpoint(self.partition, owner=self._owner, cursor=cursor, fence=self.fence, lease="")

    def _try(self) -> PartitionState | None:
        """Try to take the lease; return None if it was taken, or the state in which another holds it."""
        state = PartitionState()
        for _ in range(_FENCE_ATTEMPTS):
            started, now, lease, fence = self._terms()
            state = self.table.acquire_lease(self.partition, owner=self._owner, now=now, lease=lease, fence=fence)
            if (state.owner, state.lease) == (self._owner, lease):
                self._adopt(state, started)
                return None
            self.cursor = state.cursor
            if state.lease > now:
                return state
            self.fence = max(self.fence, state.fence)
        return state

    def _terms(self) -> tuple[float, str, str, str]:
        # The fence is made before its request is signed, and by the clock that signs: AWS checks how far off that is.
        started, now = self.clock.monotonic(), self.clock.now()
        lease = instant.text(now + self._periods.lease)
        return started, instant.text(now), lease, max(self.fence, instant.text(now + self._periods.lookahead))

    def _adopt(self, state: PartitionState, started: float) -> None:
        self.fence, self.cursor = state.fence, state.cursor
        margin = (self._periods.lease - self._periods.longest_send).total_seconds()
        self.renew_at = started + min(_RENEW_SECONDS, margin / 2)
        self.stop_at = min(self._until, started + margin)
