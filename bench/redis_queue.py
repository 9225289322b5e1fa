"""A delayed queue on Redis: a job is a member of a sorted set, its score the instant from which it may be claimed.

A claim raises the score by the reclaim time, so the jobs of a worker that died are claimed again after it; an
acknowledgement removes the member. A shard's two keys share a hash tag, as a cluster requires of one script's keys.
`python -m bench.redis_queue URL` is a worker, which polls random shards.
"""

import os
import random
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.harness import expect, running
from bench.load import land
from local.emulator import free_port
from tests.waiting import wait_until

SHARDS, CLAIMED_JOBS, RECLAIM_MS = 8, 100, 30_000
# How long a worker that found nothing waits before it tries another shard.
WORKERS, POLL_SECONDS = 4, 0.005
_INSTALL = ("apt-get", "install", "-y", "--no-install-recommends", "redis-server")
_CLAIM = """
local ids = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1], 'LIMIT', 0, ARGV[3])
if #ids == 0 then return {} end
for _, id in ipairs(ids) do redis.call('ZADD', KEYS[1], 'XX', ARGV[2], id) end
return {ids, redis.call('HMGET', KEYS[2], unpack(ids))}
"""
Claimed = list[tuple[str, str]]


class DelayedQueue:
    """A producer's and a worker's side, over one connection. Jobs are numbers with a payload; times are in ms."""

    def __init__(self, url: str) -> None:
        # Installed for `make bench` alone.
        import redis

        self.client: Any = redis.Redis.from_url(url, decode_responses=True)
        self._claim = self.client.register_script(_CLAIM)

    def schedule(self, jobs: Sequence[tuple[int, int, str]]) -> None:
        """Keep jobs (number, due time, payload), each in a shard at random; all or an error.

        The payload goes first: a producer that dies in between leaves no job without one.
        """
        with self.client.pipeline(transaction=False) as calls:
            for number, due, payload in jobs:
                due_key, payload_key = _keys(random.randrange(SHARDS))
                calls.hset(payload_key, str(number), payload)
                calls.zadd(due_key, {str(number): due})
            calls.execute()

    def claim(self, shard: int, *, now: int) -> Claimed:
        """Return jobs of a shard that are due, with their payloads. They are the caller's until the reclaim time."""
        claimed = self._claim(keys=_keys(shard), args=[now, now + RECLAIM_MS, CLAIMED_JOBS])
        return list(zip(*claimed, strict=True)) if claimed else []

    def acknowledge(self, shard: int, claimed: Claimed) -> None:
        due_key, payload_key = _keys(shard)
        numbers = [number for number, _ in claimed]
        with self.client.pipeline(transaction=False) as calls:
            calls.zrem(due_key, *numbers)
            calls.hdel(payload_key, *numbers)
            calls.execute()

    def drain(self, *, now: int) -> None:
        """Claim all that is due, shard by shard, and acknowledge it, job by job."""
        for shard in range(SHARDS):
            while claimed := self.claim(shard, now=now):
                for job in claimed:
                    self.acknowledge(shard, [job])


def now_ms() -> int:
    return int(time.time() * 1000)


def _keys(shard: int) -> tuple[str, str]:
    return f"due:{{{shard}}}", f"payload:{{{shard}}}"


def work(url: str) -> None:
    queue = DelayedQueue(url)
    while True:
        shard = random.randrange(SHARDS)
        if claimed := queue.claim(shard, now=now_ms()):
            for number, _ in claimed:
                land(int(number))
            queue.acknowledge(shard, claimed)
        else:
            time.sleep(POLL_SECONDS)


@contextmanager
def redis_server(folder: Path) -> Iterator[str]:
    """Yield the URL of a new server on loopback, which keeps an append-only file, synced each second."""
    program, port = redis_program(), free_port()
    folder.mkdir(parents=True, exist_ok=True)
    settings = {"port": str(port), "bind": "127.0.0.1", "dir": str(folder), "save": "", "appendonly": "yes"}
    command = [program, *(word for name, value in settings.items() for word in (f"--{name}", value))]
    with running(command, log=folder / "log"):
        expect(wait_until(lambda: _answers(port)), "redis-server does not answer")
        yield f"redis://127.0.0.1:{port}/0"


def redis_program() -> str:
    """Return where redis-server is; install it where it is missing and this is root. Raises RuntimeError."""
    if shutil.which("redis-server") is None and os.geteuid() == 0 and shutil.which(_INSTALL[0]):
        for command in (("apt-get", "update"), _INSTALL):
            subprocess.run(command, check=False, capture_output=True)
    if (program := shutil.which("redis-server")) is None:
        raise RuntimeError(f"redis-server is not on the PATH: install it with `{' '.join(_INSTALL)}`")
    return program


def _answers(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
            connection.sendall(b"PING\r\n")
            return connection.recv(5) == b"+PONG"
    except OSError:
        return False


if __name__ == "__main__":
    work(sys.argv[1])
