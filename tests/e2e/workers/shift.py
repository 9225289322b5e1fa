"""The story: jobs of every fate over three queues, cancels, a SIGTERM and a kill -9 in the middle."""

import os
import random
import signal
import subprocess
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from dueline import Job, NewJob, State
from dueline.errors import DuelineError
from tests.e2e.faults.stage import all_in, is_ingested
from tests.e2e.inbox import HANG_SECONDS, wait_until
from tests.e2e.workers import book, fates
from tests.e2e.workers.stage import Stage

QUEUES = ("letters", "hooks", "audit")
_SHARES = {
    fates.OK: 80,
    fates.SLOW: 4,
    fates.FLAKY: 5,
    fates.RETRIED: 4,
    fates.DOOMED: 3,
    fates.DISCARDED: 4,
}
_ERRORS = {fates.DOOMED: "Doomed", fates.DISCARDED: "Discard"}
_CANCELLED_SHARE = 0.05
_LATEST_SECONDS = 26.0
_AT_ONCE = 500
SLOWEST_A_SECOND = 10

Progress = Callable[[int, int], None]


@dataclass(kw_only=True, slots=True)
class Told:
    """What was scheduled, by id with its fate, and what cancels were answered."""

    fates: dict[str, str] = field(default_factory=dict)
    cancels: dict[str, State] = field(default_factory=dict)
    killed: int = 0
    exits: list[int] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True, slots=True)
class Ended:
    """What became of every job: how often it had its effect, and with which error it is in a dead-letter queue."""

    told: Told
    effects: Counter[str]
    dead: dict[str, str]

    @property
    def lost(self) -> list[str]:
        """Those that had no effect, are in no dead-letter queue, and were not cancelled."""
        return [id for id in self.told.fates if not (self.effects[id] or id in self.dead or id in self.told.cancels)]

    @property
    def twice(self) -> list[str]:
        return [id for id, times in self.effects.items() if times > 1]

    @property
    def after_a_promise(self) -> list[str]:
        """Those that had their effect though a cancel was answered with 200."""
        return [id for id, state in self.told.cancels.items() if state is State.CANCELLED and self.effects[id]]

    @property
    def against_its_fate(self) -> list[str]:
        """Those that had an effect and were to have none, or died of something else than their fate."""
        expected = {fates.DOOMED: {"Doomed"}, fates.DISCARDED: {"Discard"}}
        died = [
            id for id, error in self.dead.items() if error not in {*expected.get(self._fate(id), ()), "Interrupted"}
        ]
        return died + [id for id in self.effects if self._fate(id) in expected]

    def _fate(self, id: str) -> str:
        return self.told.fates.get(id, "")

    @property
    def interrupted(self) -> list[str]:
        return [id for id, error in self.dead.items() if error == "Interrupted"]

    def complaints(self) -> list[str]:
        """Return the promises that were not kept, one a line."""
        wrong = {
            "lost": self.lost,
            "had their effect twice": self.twice,
            "had their effect after a cancel that was promised": self.after_a_promise,
            "ended against their fate": self.against_its_fate,
        }
        told = [f"{len(ids)} jobs {what}: {ids[:3]}" for what, ids in wrong.items() if ids]
        return told + [f"a worker that was told to end exited with {code}" for code in self.told.exits if code]

    def summary(self) -> dict[str, Any]:
        return {
            "jobs": len(self.told.fates),
            "by fate": dict(Counter(self.told.fates.values())),
            "had their effect": len(self.effects),
            "dead letters by error": dict(Counter(self.dead.values())),
            "cancels by answer": dict(Counter(self.told.cancels.values())),
            "processes killed (SIGKILL)": self.told.killed,
            "workers ended (SIGTERM), exits": self.told.exits,
            "lost": len(self.lost),
            "effects twice": len(self.twice),
            "effects after a 200 cancel": len(self.after_a_promise),
            "against their fate": len(self.against_its_fate),
        }


def live(stage: Stage, *, jobs: int, seed: int, on_progress: Progress = lambda done, of: None) -> Ended:
    """Play the story with so many jobs."""
    chance, told = random.Random(seed), Told()
    mishaps = {0.4: _kill, 0.7: _end}
    workers = [stage.hire(*QUEUES[:2]), stage.hire(*QUEUES[:2], processes=2)]
    for number, count in enumerate(_cut(jobs)):
        _schedule(stage, QUEUES[number % len(QUEUES)], count, chance, told)
        on_progress(len(book.read(stage.book)), jobs)
        for share in [share for share in mishaps if len(told.fates) >= jobs * share]:
            wait_until(lambda: len(book.read(stage.book)) > jobs * 0.1)
            mishaps.pop(share)(stage, workers.pop(), told)
    _wait_for_the_end(stage, jobs, on_progress)
    told.exits += stage.dismiss()
    return _ended(stage, told)


def _kill(stage: Stage, _worker: "subprocess.Popen[bytes]", told: Told) -> None:
    """Kill one of a worker's processes, as the kernel does that has no memory left; its supervisor has another one."""
    assert wait_until(lambda: len(stage.processes) == 2)
    os.kill(stage.processes[0], signal.SIGKILL)
    told.killed += 1
    assert wait_until(lambda: len(stage.processes) == 3)


def _end(stage: Stage, worker: "subprocess.Popen[bytes]", told: Told) -> None:
    """End a worker as a deployment does, and have another in its place."""
    worker.send_signal(signal.SIGTERM)
    told.exits.append(worker.wait(HANG_SECONDS))
    stage.replace(worker, *QUEUES[:2])


def _cut(jobs: int) -> list[int]:
    """Return how many jobs to schedule in each call, so that there are enough for all queues."""
    most = min(_AT_ONCE, -(-jobs // 12))
    return [min(most, jobs - start) for start in range(0, jobs, most)]


def _schedule(stage: Stage, queue: str, count: int, chance: random.Random, told: Told) -> None:
    """Schedule jobs of one queue, now and by the table, and cancel some at once."""
    wanted = chance.choices(list(_SHARES), list(_SHARES.values()), k=count)
    new = [
        NewJob(
            payload={"fate": fate},
            delay=chance.choice((0, 0, 1.5, 3, _LATEST_SECONDS)),
            priority=chance.choice((1, 2)) if queue == "hooks" else 1,
        )
        for fate in wanted
    ]
    results = stage.client.schedule_many(queue, new)
    jobs = [_scheduled(result) for result in results]
    told.fates |= {job.id: fate for job, fate in zip(jobs, wanted, strict=True)}
    taken_back = [job.id for job in jobs if chance.random() < _CANCELLED_SHARE]
    answers = stage.client.cancel_many(taken_back)
    told.cancels |= {id: state for id, state in zip(taken_back, answers, strict=True) if isinstance(state, State)}


def _scheduled(result: Job | DuelineError) -> Job:
    if isinstance(result, DuelineError):
        raise result
    return result


def _wait_for_the_end(stage: Stage, jobs: int, on_progress: Progress) -> None:
    def has_ended() -> bool:
        on_progress(len({line["id"] for line in book.read(stage.book)}), jobs)
        # Twice: a job is in neither where it was counted in its queue before it was sent, and in the table after.
        return is_ingested(stage) and all(_is_empty(stage, queue) for queue in QUEUES * 2)

    ended = wait_until(has_ended, seconds=HANG_SECONDS + jobs / SLOWEST_A_SECOND, every=1)
    assert ended, f"the queues are not empty: {[stage.client.queue(queue) for queue in QUEUES]}"


def _is_empty(stage: Stage, queue: str) -> bool:
    told = stage.client.queue(queue)
    return not (told.scheduled or told.depth.waiting or told.depth.in_flight or told.depth.delayed)


def _ended(stage: Stage, told: Told) -> Ended:
    effects = Counter(line["id"] for line in book.read(stage.book) if line["queue"] in QUEUES)
    letters = [each for queue in QUEUES for each in all_in(stage.emulator, stage.endpoints.dead_letter_queues[queue])]
    dead = {_told(each, "dueline-id"): _told(each, "dueline-error") for each in letters}
    return Ended(told=told, effects=effects, dead=dead)


def _told(message: dict[str, Any], name: str) -> str:
    return str(message.get("MessageAttributes", {}).get(name, {}).get("StringValue", "moved by SQS"))
