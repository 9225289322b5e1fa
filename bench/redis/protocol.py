"""The protocol: a job is a member of a sorted set, its score the instant from which a worker may claim it.

A claim raises the score by the reclaim time, so the jobs of a worker that died are claimed again after it; an
acknowledgement removes the member. A shard's two keys share a hash tag, as a cluster asks of the keys of one script.
"""

import random
import time
from collections.abc import Iterator, Sequence
from typing import Any

SHARDS = 8
CALL_JOBS, CLAIMED_JOBS = 10, 100
_CLAIM = """
local ids = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1], 'LIMIT', 0, ARGV[3])
if #ids == 0 then return {} end
for _, id in ipairs(ids) do redis.call('ZADD', KEYS[1], 'XX', ARGV[2], id) end
return {ids, redis.call('HMGET', KEYS[2], unpack(ids))}
"""
Claimed = list[tuple[str, str]]


class Delayed:
    """A producer's and a worker's side, over one connection. Jobs are numbers with a payload; times are in ms."""

    def __init__(self, url: str, *, reclaim_ms: int = 30_000) -> None:
        # What `make bench` alone installs.
        import redis

        self.gone = redis.ConnectionError
        self.client: Any = redis.Redis.from_url(url, decode_responses=True)
        self._claim = self.client.register_script(_CLAIM)
        self._reclaim_ms = reclaim_ms

    def schedule(self, jobs: Sequence[tuple[int, int, str]]) -> None:
        """Keep jobs, each with its number, its due time and its payload, in a shard at random; all or an error.

        The payload goes first: a producer that dies in between leaves no job without one.
        """
        with self.client.pipeline(transaction=False) as calls:
            for number, due, payload in jobs:
                due_key, payload_key = _keys(random.randrange(SHARDS))
                calls.hset(payload_key, str(number), payload)
                calls.zadd(due_key, {str(number): due})
            calls.execute()

    def claim(self, shard: int, *, now: int, most: int = CLAIMED_JOBS) -> Claimed:
        """Return jobs of a shard that are due, with their payloads. They are the caller's until the reclaim time."""
        told = self._claim(keys=_keys(shard), args=[now, now + self._reclaim_ms, most])
        return list(zip(*told, strict=True)) if told else []

    def acknowledge(self, shard: int, claimed: Claimed) -> None:
        """Remove jobs for good."""
        due_key, payload_key = _keys(shard)
        numbers = [number for number, _ in claimed]
        with self.client.pipeline(transaction=False) as calls:
            calls.zrem(due_key, *numbers)
            calls.hdel(payload_key, *numbers)
            calls.execute()

    def drain(self, *, now: int, most: int = CLAIMED_JOBS, at_once: int = CLAIMED_JOBS) -> Iterator[tuple[str, str]]:
        """Claim all that is due, shard by shard, yield it, and acknowledge it, so many jobs at once."""
        for shard in range(SHARDS):
            while claimed := self.claim(shard, now=now, most=most):
                yield from claimed
                for first in range(0, len(claimed), at_once):
                    self.acknowledge(shard, claimed[first : first + at_once])

    def waiting(self) -> int:
        """Return how many jobs are kept, those claimed too."""
        return sum(int(self.client.zcard(_keys(shard)[0])) for shard in range(SHARDS))

    def cpu_seconds(self) -> float:
        """Return what the server has computed so far."""
        told = self.client.info("cpu")
        return float(told["used_cpu_user"]) + float(told["used_cpu_sys"])


def now_ms() -> int:
    return int(time.time() * 1000)


def _keys(shard: int) -> tuple[str, str]:
    return f"due:{{{shard}}}", f"payload:{{{shard}}}"
