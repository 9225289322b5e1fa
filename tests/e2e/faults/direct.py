"""Direct producers: processes of a team's own that write the tables themselves, each played by a client of its own.

What such a process does to a deployment are its requests. So to die is to be heard no more: from then on the proxy lets
none of its requests take effect, and its caller never hears of what became of them (`killing.py`).
"""

import itertools
import json
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import boto3

from dueline import Client, Job, NewJob
from dueline.errors import DuelineError, Unavailable
from dueline.retry.patience import Patience
from local.emulator import CREDENTIALS, REGION
from tests.e2e.faults.processes import DIRECT, HEADER, NO_PROCESS
from tests.e2e.inbox import wait_until

_ONE_TRY = Patience(attempts=1)


class DirectProducers:
    """Schedules by one direct client after another: when one is dead, by the next.

    `endpoint` is the proxy's, and `is_dead` tells of each producer by its number.
    """

    def __init__(self, name: str, *, endpoint: str, is_dead: Callable[[int], bool]) -> None:
        self._name = name
        self._endpoint = endpoint
        self._is_dead = is_dead
        self._numbers = itertools.count(NO_PROCESS)
        self._threads = ThreadPoolExecutor()
        self._new()

    def schedule(self, queue: str, jobs: Sequence[NewJob]) -> list[Job | DuelineError]:
        """Schedule jobs in one call; a producer that dies answers nothing."""
        self._session.begin_a_call()
        call: Future[list[Job | DuelineError]] = self._threads.submit(self._client.schedule_many, queue, jobs)
        wait_until(lambda: call.done() or self._is_dead(self._session.number), every=0.01)
        if not self._is_dead(self._session.number):
            return call.result()
        self._new()
        return [Unavailable("its producer was killed") for _ in jobs]

    def _new(self) -> None:
        self._session = _Session(next(self._numbers), endpoint=self._endpoint)
        self._client = Client.connect(self._name, session=self._session, direct=True, patience=_ONE_TRY)


class _Session(boto3.Session):
    """A session whose requests go to the proxy, and say which producer makes them, and in which call."""

    def __init__(self, number: int, *, endpoint: str) -> None:
        key, secret = CREDENTIALS.values()
        super().__init__(key, secret, region_name=REGION)
        self.number = number
        self._endpoint = endpoint
        self._calls = itertools.count(1)
        self._requests = itertools.count(1)
        self._unheard: list[int] = []
        self._latest = threading.local()
        self.events.register("before-send", self._tell)
        self.events.register("response-received", self._note_what_is_unheard)
        self.begin_a_call()

    def begin_a_call(self) -> None:
        self._turn = f"producer {self.number}, call {next(self._calls)}"

    def client(self, *names: Any, **options: Any) -> Any:
        make: Any = super().client
        return make(*names, endpoint_url=self._endpoint, **options)

    def _tell(self, request: Any, **_: Any) -> None:
        self._latest.number = next(self._requests)
        told = {"function": DIRECT, "pid": self.number, "turn": self._turn, "number": self._latest.number}
        request.headers[HEADER] = json.dumps({**told, "unheard": list(self._unheard)})

    def _note_what_is_unheard(self, exception: Exception | None = None, **_: Any) -> None:
        if exception is not None:
            self._unheard.append(self._latest.number)
