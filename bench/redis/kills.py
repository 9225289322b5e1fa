"""What a kill -9 loses or repeats: of a worker, of Redis, and of the machine with it."""

import os
import shutil
import signal
import threading
import time
from collections.abc import Collection
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from bench.cost.payloads import USUAL, json_of
from bench.lateness import record
from bench.lateness.record import Landed
from bench.lateness.redis_server import redis_server
from bench.part import Progress
from bench.processes import wait_until
from bench.redis.protocol import CALL_JOBS, Delayed, now_ms
from bench.redis.unwritten import check_that_it_is_told, written_bytes
from bench.redis.worker import hired

PROCESS, MACHINE = "Redis", "Redis and its machine"
RECLAIM_MS = 2000
_KILLED_JOBS, _WORK_SECONDS, _WORKER_KILLED_AFTER = 600, 0.003, 0.5
_HOUR_MS = 3_600_000
_AOF = "appendonlydir"


def kill_worker(folder: Path, progress: Progress) -> dict[str, Any]:
    """Kill one of two workers in the midst of jobs that are all due. Raises RuntimeError where one is lost."""
    progress("Redis: a worker is killed", 0, 1)
    with redis_server(folder) as url:
        queue, due = Delayed(url), now_ms()
        for first in range(0, _KILLED_JOBS, CALL_JOBS):
            queue.schedule([(number, due, "{}") for number in range(first, first + CALL_JOBS)])
        killed, landed = _with_one_killed(queue, url, folder / "record")
    begun = {each.number for each in landed}
    if len(begun) != _KILLED_JOBS:
        raise RuntimeError(f"{_KILLED_JOBS} jobs were scheduled, and {len(begun)} came")
    last = max(each.at for each in landed) - killed
    return {"jobs": _KILLED_JOBS, "lost": 0, "repeated": len(landed) - len(begun), "last after": last}


def _with_one_killed(queue: Delayed, url: str, written: Path) -> tuple[float, list[Landed]]:
    """Have two workers work all off, one of which is killed; return when it was, and what was begun."""
    asked: Any = {"reclaim_ms": RECLAIM_MS, "work": _WORK_SECONDS}
    with hired(url, written, **asked) as one, hired(url, written, **asked):
        wait_until(lambda: any(record.read(written)), what="a worker begins")
        time.sleep(_WORKER_KILLED_AFTER)
        os.kill(one.pid, signal.SIGKILL)
        killed = time.time()
        wait_until(lambda: queue.waiting() == 0, what="all are acknowledged")
    return killed, list(record.read(written))


@dataclass(kw_only=True, slots=True)
class Told:
    """What a producer knows: when which job was accepted, and of which it never heard. Seconds since 1970."""

    begun: float
    accepted: dict[int, float] = field(default_factory=dict)
    unanswered: frozenset[int] = frozenset()


def kill_redis(folder: Path, appendfsync: str, *, seconds: float, progress: Progress) -> dict[str, Any]:
    """Kill Redis while a producer schedules and a worker works; then count what a new one has of its file."""
    progress(f"Redis is killed, appendfsync {appendfsync}", 0, 1)
    home, written = folder / "killed", folder / "record"
    with redis_server(home, appendfsync=appendfsync) as url, hired(url, written):
        queue = Delayed(url)
        wait_until(lambda: len(queue.client.client_list()) > 1, what="Redis's worker asks")
        pid = int(queue.client.info("server")["process_id"])
        threading.Timer(seconds, os.kill, (pid, signal.SIGKILL)).start()
        told = _schedule_until_it_is_gone(queue)
        homes = {PROCESS: home} | _without_its_machine(home, folder / "cut")
    begun = {each.number for each in record.read(written)}
    return {
        "jobs a second": round(len(told.accepted) / (max(told.accepted.values()) - told.begun)),
        "killed": {what: outcome(told, begun=begun, kept=_kept(home)) for what, home in homes.items()},
    }


def outcome(told: Told, *, begun: Collection[int], kept: Collection[int]) -> dict[str, Any]:
    """Return the counts of a kill: a job is lost that was accepted, was not begun, and is not kept.

    `repeated` were begun and are kept. Raises RuntimeError where there is a job that nobody scheduled.
    """
    there = set(begun) | set(kept)
    if unknown := there - told.accepted.keys() - told.unanswered:
        raise RuntimeError(f"{len(unknown)} jobs are there that nobody scheduled")
    lost = told.accepted.keys() - there
    since = max(told.accepted.values()) - min((told.accepted[number] for number in lost), default=0.0)
    return {
        "accepted": len(told.accepted),
        "lost": len(lost),
        "oldest": round(since, 3) if lost else 0.0,
        "repeated": len(set(begun) & set(kept)),
    }


def _schedule_until_it_is_gone(queue: Delayed) -> Told:
    """Schedule in tens: each second job is due at once, the others in an hour."""
    told = Told(begun=time.time())
    for first in count(0, CALL_JOBS):
        numbers, now = range(first, first + CALL_JOBS), now_ms()
        jobs = [(number, now + number % 2 * _HOUR_MS, json_of(USUAL.payload(number))) for number in numbers]
        try:
            queue.schedule(jobs)
        except queue.gone:
            told.unanswered = frozenset(numbers)
            return told
        told.accepted |= dict.fromkeys(numbers, time.time())
    raise AssertionError


def _without_its_machine(home: Path, copy: Path) -> dict[str, Path]:
    """Return a copy of what is on the disk, without what only the kernel knew; nothing where that cannot be told."""
    try:
        check_that_it_is_told(home)
        kept = {file.name: written_bytes(file) for file in (home / _AOF).glob("*.incr.aof")}
    except OSError:
        return {}
    shutil.copytree(home, copy)
    for name, size in kept.items():
        os.truncate(copy / _AOF / name, size)
    return {MACHINE: copy}


def _kept(home: Path) -> set[int]:
    """Return what a new Redis has: whatever it hands out, all of it due. Raises RuntimeError for a torn payload."""
    kept = set[int]()
    with redis_server(home) as url:
        queue = Delayed(url)
        wait_until(lambda: not queue.client.info("persistence")["loading"], what="Redis has read its file")
        for number, payload in queue.drain(now=now_ms() + 2 * _HOUR_MS):
            if payload != json_of(USUAL.payload(int(number))):
                raise RuntimeError(f"job {number} has another payload than it was given")
            kept.add(int(number))
    return kept
