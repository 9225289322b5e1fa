"""Service clock: the time by AWS's own clock, learned from its answers."""

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from dueline.core.clock import LearnedTime, SystemClock, TimeBounds
from dueline.errors import DuelineError

# Each halves what is unknown, until that is as long as a request takes.
_LOOKS = 12
_REST_SECONDS = 30.0


class ServiceClock(SystemClock):
    """The latest time that AWS's own clock has reached for certain, by the Date header of its answers.

    A process that counts a job's delay by a clock that is ahead would have the job delivered too early. `wall` is this
    machine's own clock, in seconds since 1970.
    """

    def __init__(self, wall: Callable[[], float] = time.time) -> None:
        self._wall = wall
        self._time = LearnedTime(wall=wall, monotonic=self.monotonic)
        self._of_thread = threading.local()
        self._closed = threading.Event()

    def now(self) -> datetime:
        moment = self.moment()
        return moment.earliest if moment else datetime.fromtimestamp(self._wall(), UTC)

    def moment(self) -> TimeBounds | None:
        return self._time.moment()

    def behind(self) -> float:
        """Return by how many seconds `now` is behind AWS's own clock at most; infinite before the first answer."""
        return self._time.skew.behind

    def keep_exact(self, request: Callable[[], object]) -> None:
        """Read AWS's time repeatedly until it is known to a few milliseconds, in a thread, until `close`.

        `request` makes a small request with a client that this clock listens to. Answers at random moments, which have
        whole seconds only, would be needed by the hundred to know as much.
        """
        threading.Thread(target=self._keep_exact, args=(request,), name="clock", daemon=True).start()

    def close(self) -> None:
        self._closed.set()

    def _keep_exact(self, request: Callable[[], object]) -> None:
        while not self._closed.is_set():
            for _ in range(_LOOKS):
                look = self._time.skew.next_look(self.monotonic())
                if look is None or self._rests(look - self.monotonic()):
                    break
                with suppress(DuelineError):
                    request()
            self._rests(_REST_SECONDS)

    def _rests(self, seconds: float) -> bool:
        """Wait so long, or until it is closed; return whether it is."""
        return self._closed.wait(max(0.0, seconds))

    def listen_to(self, client: Any) -> None:
        """Learn from each answer that a boto3 client gets."""
        client.meta.events.register("before-send", self._note_sent)
        client.meta.events.register("response-received", self._note_received)

    def _note_sent(self, **_: Any) -> None:
        self._of_thread.sent = self._time.sent()

    def _note_received(self, response_dict: dict[str, Any] | None, **_: Any) -> None:
        # None of a request that was not sent.
        if response_dict is not None:
            self._time.learn(response_dict.get("headers", {}).get("date", ""), sent=self._of_thread.sent)
