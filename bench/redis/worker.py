"""A worker: `python -m bench.redis.worker URL RECLAIM_MS WORK_SECONDS` polls random shards until it is killed."""

import random
import sys
import time
from contextlib import AbstractContextManager
from pathlib import Path

from bench.lateness import record
from bench.processes import Process, python, running
from bench.redis.protocol import SHARDS, Delayed, now_ms

WORKERS = 4
# How long a worker that found nothing waits before it asks another shard.
POLL_SECONDS = 0.005


def hired(url: str, written: Path, *, reclaim_ms: int = 30_000, work: float = 0.0) -> AbstractContextManager[Process]:
    """Run a worker whose handler takes so many seconds, and which writes down what it begins."""
    command = python("bench.redis.worker", url, str(reclaim_ms), str(work))
    return running(command, log=written.with_suffix(".log"), environment={record.PLACE: str(written)})


def main(url: str, reclaim_ms: int, work: float) -> None:
    queue = Delayed(url, reclaim_ms=reclaim_ms)
    while True:
        shard = random.randrange(SHARDS)
        claimed = queue.claim(shard, now=now_ms())
        for number, _ in claimed:
            record.land(int(number))
            time.sleep(work)
        if claimed:
            queue.acknowledge(shard, claimed)
        else:
            time.sleep(POLL_SECONDS)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))
