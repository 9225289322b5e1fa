"""Ticks that fire as EventBridge Scheduler fires them, but for one that is missed and one that is killed."""

import itertools
import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from bench.lateness.plan import PLAIN, Ticks
from bench.lateness.stage import Stage
from tests.e2e.faults.exchange import Answer, Exchange, straight

_MOST_AT_ONCE = 32
_NOBODYS_PARTITION = 998


class Killing:
    """Kills -9 the process of a tick that has begun to send: its first request takes effect, and nobody hears of it."""

    def __init__(self, queue: str) -> None:
        self._queue = queue
        self._aiming = threading.Lock()
        self.killed_at = 0.0

    def __call__(self, exchange: Exchange) -> Answer | None:
        answer = exchange.pass_on()
        process = exchange.process
        if process.function != "tick" or not self._is_of_the_queue(exchange):
            return answer
        with self._aiming:
            if self.killed_at:
                return answer
            self.killed_at = time.time()
            process.kill()
        return None

    def _is_of_the_queue(self, exchange: Exchange) -> bool:
        return exchange.operation == "SendMessageBatch" and exchange.record().queue == self._queue


@contextmanager
def ticking(stage: Stage, ticks: Ticks, *, begin: float) -> Iterator[Killing]:
    """Fire every schedule of the deployment each period from `begin` (since 1970) on, while the context lasts."""
    killing, stop = Killing(stage.deployment.names.queue(ticks.killed_lane)), threading.Event()
    thread = threading.Thread(target=_fire, args=(stage, ticks, begin, killing, stop), daemon=True)
    thread.start()
    try:
        yield killing
    finally:
        stop.set()
        thread.join()
        stage.proxy.around = straight


def warm(stage: Stage) -> None:
    """Tick a partition that nobody has, once for each schedule at once: cold starts are not what is measured."""
    targets, functions = _targets(stage), stage.emulator.client("lambda")
    event = json.dumps({"queue": PLAIN[0], "partition": _NOBODYS_PARTITION}).encode()
    with ThreadPoolExecutor(_MOST_AT_ONCE) as pool:
        list(pool.map(lambda target: functions.invoke(FunctionName=target["Arn"], Payload=event), targets))


def _fire(stage: Stage, ticks: Ticks, begin: float, killing: Killing, stop: threading.Event) -> None:
    targets, functions = _targets(stage), stage.emulator.client("lambda")
    with ThreadPoolExecutor(_MOST_AT_ONCE) as pool:
        for firing in itertools.count():
            if stop.wait(max(0.0, begin + firing * ticks.period - time.time())):
                return
            if firing == ticks.killed:
                stage.proxy.around = killing
            for target in targets if firing != ticks.missed else ():
                pool.submit(functions.invoke, FunctionName=target["Arn"], Payload=target["Input"].encode())


def _targets(stage: Stage) -> list[dict[str, Any]]:
    scheduler, group = stage.emulator.client("scheduler"), stage.deployment.names.schedule_group
    names = [schedule["Name"] for schedule in scheduler.list_schedules(GroupName=group)["Schedules"]]
    return [scheduler.get_schedule(GroupName=group, Name=name)["Target"] for name in names]
