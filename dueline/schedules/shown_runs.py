"""Runs as people are shown them: in the rule's zone, with what a change of the clock has to do with them."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from dueline.model import instant
from dueline.schedules.rule import Rule
from dueline.schedules.zones import clock_change, zone_of

_NONE = timedelta(0)


@dataclass(frozen=True, kw_only=True, slots=True)
class ShownRun:
    """A run, by UTC and in its zone; `mark` says what a change of the clock has to do with it, if anything."""

    nominal: datetime
    local: datetime
    mark: str

    @property
    def fields(self) -> dict[str, str]:
        fields = {"nominal": instant.text(self.nominal), "local": self.local.isoformat()}
        return fields | ({"clock": self.mark} if self.mark else {})


def shown_runs(rule: Rule, *, after: datetime) -> Iterator[ShownRun]:
    """Yield the runs of a rule after an instant, the earliest first."""
    zone = zone_of(rule.zone)
    before = next(rule.before(after), after).astimezone(zone)
    for nominal in rule.after(after):
        local = nominal.astimezone(zone)
        yield ShownRun(nominal=nominal, local=local, mark="; ".join(_marks(local, before)))
        before = local


def _marks(local: datetime, before: datetime) -> Iterator[str]:
    change = (local.utcoffset() or _NONE) - (before.utcoffset() or _NONE)
    if change:
        yield f"put {'forward' if change > _NONE else 'back'} by {abs(change)} since the run before"
    if clock_change(local.replace(tzinfo=None), zone_of(str(local.tzinfo))) < _NONE:
        yield f"shows this twice: the {'second' if local.fold else 'first'} time"
