"""Dated: a transport that learns what AWS's clock shows, by the Date of the answers."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime

from dueline.client.http_answer import HttpAnswer
from dueline.client.transport import Transport
from dueline.model.skew import Skew
from dueline.ports import Clock

# A machine's clock that went so much further, or less far, than its monotonic one was set, or it slept.
_STEP_SECONDS = 0.5


@dataclass(frozen=True, kw_only=True, slots=True)
class Moment:
    """What AWS's clock shows now: from `earliest` to `latest`, about a second apart at first, less with each answer."""

    earliest: datetime
    latest: datetime


@dataclass(frozen=True, kw_only=True, slots=True)
class _Known:
    """The skew of this machine's clock, and by how much that was ahead of the monotonic one when it was learned."""

    skew: Skew
    ahead: float


class Dated:
    """Sends requests by `transport`, and tells the time by AWS's clock. Threads may share it."""

    def __init__(self, transport: Transport, *, clock: Clock) -> None:
        self._transport = transport
        self._clock = clock
        self._known: _Known | None = None

    def send(self, method: str, path: str, body: str | None, *, headers: Mapping[str, str]) -> HttpAnswer:
        sent = self._wall()
        answer = self._transport.send(method, path, body, headers=headers)
        self._learn(answer.headers.get("date", ""), sent=sent, received=self._wall())
        return answer

    def put(self, url: str, headers: Mapping[str, str], body: bytes) -> HttpAnswer:
        return self._transport.put(url, headers, body)

    def moment(self) -> Moment | None:
        """Return what AWS's clock shows; None before the first answer, and after this machine's clock was set."""
        known = self._valid()
        if known is None:
            return None
        now, skew = self._clock.now(), known.skew
        return Moment(earliest=now + timedelta(seconds=skew.low), latest=now + timedelta(seconds=skew.high))

    def _learn(self, date: str, *, sent: float, received: float) -> None:
        try:
            second = parsedate_to_datetime(date).timestamp()
        except (TypeError, ValueError, OverflowError):
            return
        known = self._valid()
        skew = (known.skew if known else Skew()).learned(second, sent=sent, received=received)
        self._known = _Known(skew=skew, ahead=self._ahead())

    def _valid(self) -> _Known | None:
        known = self._known
        return known if known and abs(self._ahead() - known.ahead) < _STEP_SECONDS else None

    def _ahead(self) -> float:
        return self._wall() - self._clock.monotonic()

    def _wall(self) -> float:
        return self._clock.now().timestamp()
