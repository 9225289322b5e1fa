"""The schedules of a queue over HTTP: the requests that a client makes, each once."""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from dueline.client.schedule_answers import (
    NextRun,
    Run,
    Schedule,
    SubmittedRun,
    history_of,
    next_of,
    page_of,
    submitted_of,
)
from dueline.errors import InvalidSchedule
from dueline.model import instant
from dueline.model.nominal import checked_name
from dueline.model.text import shown

# As many as the API tells of at once.
_A_PAGE = 100
_ENTITY_TAG = r"[!-~]{1,200}"
# A weak tag matches nothing, and what is identical needs no match.
_OF_NONE = 'W/"none"'


class HttpSchedules:
    """Asks for the schedules of one queue by `ask`, and is safe to ask again. Each `body` is JSON text."""

    def __init__(self, queue: str, ask: Callable[..., dict[str, Any]]) -> None:
        self._all = f"/queues/{queue}/schedules"
        self._ask = ask

    def put(self, name: str, body: str, *, if_match: str | None) -> Schedule:
        return Schedule.of(self._ask("PUT", self._one(name), body, headers=_matching(if_match)))

    def create(self, name: str, body: str) -> Schedule:
        return Schedule.of(self._ask("PUT", self._one(name), body, headers={"if-none-match": "*"}))

    def same(self, name: str, body: str) -> Schedule:
        """Return a schedule that is as `body` says already, and change nothing. Raises ScheduleChanged if it is not."""
        return self.put(name, body, if_match=_OF_NONE)

    def get(self, name: str) -> Schedule:
        return Schedule.of(self._ask("GET", self._one(name)))

    def page(self, *, after: str) -> tuple[Sequence[Schedule], str]:
        query = {"limit": str(_A_PAGE), **({"next": after} if after else {})}
        return page_of(self._ask("GET", f"{self._all}?{urlencode(query)}"))

    def delete(self, name: str, *, if_match: str | None) -> Schedule:
        return Schedule.of(self._ask("DELETE", self._one(name), headers=_matching(if_match)))

    def pause(self, name: str, *, if_match: str | None) -> Schedule:
        return Schedule.of(self._ask("POST", f"{self._one(name)}/pause", headers=_matching(if_match)))

    def resume(self, name: str, *, if_match: str | None) -> Schedule:
        return Schedule.of(self._ask("POST", f"{self._one(name)}/resume", headers=_matching(if_match)))

    def run(self, name: str, body: str, *, key: str) -> SubmittedRun:
        return SubmittedRun.of(self._ask("POST", f"{self._one(name)}/run", body, headers={"idempotency-key": key}))

    def backfill(self, name: str, body: str, *, key: str) -> list[SubmittedRun]:
        headers = {"idempotency-key": key}
        return submitted_of(self._ask("POST", f"{self._one(name)}/backfill", body, headers=headers))

    def history(self, name: str, *, most: int, before: datetime | None) -> list[Run]:
        query = {"limit": str(most), **({} if before is None else {"before": instant.text(before)})}
        return history_of(self._ask("GET", f"{self._one(name)}/history?{urlencode(query)}"))

    def preview(self, body: str) -> list[NextRun]:
        return next_of(self._ask("POST", "/schedules/preview", body))

    def _one(self, name: str) -> str:
        return f"{self._all}/{checked_name(name)}"


def _matching(if_match: str | None) -> Mapping[str, str]:
    if if_match is None:
        return {}
    if not re.fullmatch(_ENTITY_TAG, if_match):
        raise InvalidSchedule(f"if_match is {shown(if_match)}: it must be the etag of a schedule, or *")
    return {"if-match": if_match}
