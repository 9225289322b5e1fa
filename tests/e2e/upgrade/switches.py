"""Deployments of one release over another: what they cut off, and which release did what."""

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from local.deploy import deploy
from tests.e2e.faults.exchange import Record
from tests.e2e.faults.killing import API, INGEST, TICK, Kill
from tests.e2e.faults.processes import DIRECT
from tests.e2e.faults.site.sitecustomize import code_of
from tests.e2e.faults.stage import Play, Stage

BEFORE, AFTER = "the predecessor", "this release"
WRITERS = {API, DIRECT, INGEST}
# A process that an update of its function ends may have waited for an answer, or computed, for as long.
_LAST_SECONDS = 1.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Switch:
    """A deployment of a release, when it began and ended, and the ticks that failed until all went on."""

    to: str
    begun: float
    ended: float
    faults: Sequence[BaseException]


@dataclass(kw_only=True, slots=True)
class Releases:
    """Two releases of one deployment, by their names, and the switches between them so far."""

    plays: dict[str, Play]
    codes: dict[int, str]
    switches: list[Switch] = field(default_factory=list)

    @classmethod
    def of(cls, before: Play, after: Play, *, checkout: Path) -> "Releases":
        """Tell the code of two releases apart; that of the predecessor's clients is in its `checkout`."""
        plays = {BEFORE: before, AFTER: after}
        codes = {code_of(code): name for name, play in plays.items() for code in play.assembly.glob("asset.*/dueline")}
        # A direct producer of this process says nothing of its code.
        return cls(plays=plays, codes=codes | {code_of(checkout / "dueline"): BEFORE, 0: AFTER})

    def switch(self, stage: Stage, to: str) -> bool:
        """Deploy a release over the other; return whether all partitions' ticks go on."""
        failed, begun = len(stage.tick_faults), time.time()
        deploy(stage.emulator, self.plays[to].assembly)
        ended = time.time()
        goes_on = stage.let_ticks_pass(datetime.now(UTC))
        self.switches.append(Switch(to=to, begun=begun, ended=ended, faults=stage.tick_faults[failed:]))
        return goes_on

    def cut_off(self, records: Iterable[Record]) -> list[Kill]:
        """Return what a switch may have cut off: of each process whose last request was then, that invocation."""
        last = {record.told.process.pid: record for record in records if record.function != DIRECT}
        return [_as_kill(record) for record in last.values() if self._is_at_a_switch(record)]

    def scheduled_by_others(self, records: Iterable[Record]) -> Counter[str]:
        """Count the jobs that direct clients wrote or sent under the other release, by the client's release."""
        by_clients = [record for record in records if record.function == DIRECT and record.had_effect]
        of_release = ((self.codes[each.told.code], each) for each in by_clients)
        others = [(client, each) for client, each in of_release if self._deployed_at(each.at) != client]
        return Counter(client for client, each in others for _ in each.rows | set(each.sent))

    def _deployed_at(self, moment: float) -> str:
        return next((switch.to for switch in reversed(self.switches) if switch.ended <= moment), BEFORE)

    def _is_at_a_switch(self, record: Record) -> bool:
        ended = record.at + record.seconds
        return any(each.begun - _LAST_SECONDS <= ended <= each.ended + _LAST_SECONDS for each in self.switches)

    def handed_over(self, records: Sequence[Record]) -> Counter[tuple[str, str]]:
        """Count the jobs that ticks handed over, by the release that wrote them and that of the tick."""
        written: dict[str, str] = {}
        for record in records:
            if record.function in WRITERS and record.had_effect:
                written |= {uid: self.codes[record.told.code] for uid in record.rows if uid not in written}
        by_ticks = [record for record in records if record.function == TICK]
        found = [(uid, self.codes[each.told.code]) for each in by_ticks for uid in each.delivered]
        return Counter((written[uid], release) for uid, release in found if uid in written)


def _as_kill(record: Record) -> Kill:
    return Kill(
        at=record.at,
        function=record.function,
        turn=record.turn,
        pid=record.told.process.pid,
        step="cut off by a deployment",
        had_effect=record.had_effect,
    )
