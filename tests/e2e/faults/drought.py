"""A table that throttles every request, for longer than ticks look ahead."""

import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx

from dueline import instant
from tests.e2e.faults.books import Books
from tests.e2e.faults.exchange import straight
from tests.e2e.faults.mishaps import the_table_throttled
from tests.e2e.faults.stage import Play, Stage, dead_letters, is_ingested, staged
from tests.e2e.inbox import wait_until

JOBS = 40
FIRST_DUE = timedelta(seconds=32)
SOONEST_BY_THE_TABLE = timedelta(seconds=25)
SPREAD = timedelta(seconds=6)
# Ticks hand jobs over 19 s before they are due: those due before this find no tick that can read them.
DROUGHT_ENDS = timedelta(seconds=35)
INGESTED_WITHIN_SECONDS = 14
LATEST_SECONDS = 25
AGAIN_AFTER_SECONDS = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Dried:
    """What came of it: the ids of jobs `waiting` in the table before, of those scheduled `meanwhile` by the table, and
    of those that went `direct` meanwhile."""

    books: Books
    ended: datetime
    direct: list[str]
    waiting: list[str]
    meanwhile: list[str]
    refusal: httpx.Response
    tick_faults: list[str]
    letters: dict[str, list[dict[str, Any]]]
    told: str


def live_through_a_drought(play: Play, folder: Path) -> Dried:
    books = Books()
    with staged(play, folder=folder, again_after=AGAIN_AFTER_SECONDS) as stage, books.receiving(stage):
        start = datetime.now(UTC)
        waiting = _schedule(stage, books, start + FIRST_DUE)
        assert wait_until(lambda: is_ingested(stage), seconds=INGESTED_WITHIN_SECONDS), "ingest took too long"
        stage.proxy.around = the_table_throttled
        direct = books.schedule(stage.http, "emails", [{"payload": 1, "delay": n} for n in range(6)])
        meanwhile = _schedule(stage, books, datetime.now(UTC) + SOONEST_BY_THE_TABLE)
        refusal = stage.http.delete(f"/queues/emails/jobs/{waiting[0]}")
        time.sleep((start + DROUGHT_ENDS - datetime.now(UTC)).total_seconds())
        ended, stage.proxy.around = datetime.now(UTC), straight
        wait_until(lambda: not books.lost, seconds=LATEST_SECONDS)
        return Dried(
            books=books,
            ended=ended,
            direct=direct,
            waiting=waiting,
            meanwhile=meanwhile,
            refusal=refusal,
            tick_faults=list(map(str, stage.tick_faults)),
            letters=dead_letters(stage),
            told=books.complaints(stage),
        )


def _schedule(stage: Stage, books: Books, first: datetime) -> list[str]:
    dues = [first + SPREAD * n / JOBS for n in range(JOBS)]
    return books.schedule(stage.http, "emails", [{"payload": 1, "at": instant.text(due)} for due in dues])
