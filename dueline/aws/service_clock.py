"""The time as AWS's answers tell it."""

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from dueline.clock import SystemClock
from dueline.skew import Skew


class ServiceClock(SystemClock):
    """A time that AWS's own clock has reached for certain, as the Date of its answers tells.

    Whoever counts a job's delay himself, by a clock that is ahead, would have it delivered too early. `wall` is this
    machine's own clock, in seconds since 1970.
    """

    def __init__(self, wall: Callable[[], float] = time.time) -> None:
        self._wall = wall
        self._skew = Skew()
        self._of_thread = threading.local()

    def now(self) -> datetime:
        return datetime.fromtimestamp(self._wall() + self._skew.correction, UTC)

    def listen_to(self, client: Any) -> None:
        """Learn from each answer that a boto3 client gets."""
        client.meta.events.register("before-send", self._note_sent)
        client.meta.events.register("response-received", self._note_received)

    def _note_sent(self, **_: Any) -> None:
        self._of_thread.sent = self._wall()

    def _note_received(self, response_dict: dict[str, Any] | None, **_: Any) -> None:
        received, date = self._wall(), (response_dict or {}).get("headers", {}).get("date")
        try:
            told = parsedate_to_datetime(date).timestamp()
        except (TypeError, ValueError):
            return
        self._skew = self._skew.learned(told, sent=self._of_thread.sent, received=received)
