"""Runs of schedules: what their generations say must come, what came, and which promises that breaks.

The nominals are counted here, not by the code that is held against them.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise

from dueline.schedules.head import Generation, Head
from local.consumer import Landed
from tests.e2e.faults.changing import EVERY, Schedule, Told

FOREVER = datetime.max.replace(tzinfo=UTC)
Run = tuple[Schedule, datetime]


@dataclass(frozen=True, kw_only=True, slots=True)
class Span:
    """A generation: after `start`, up to `end`, a schedule runs each minute from its `anchor` on, or not at all."""

    number: int
    start: datetime
    end: datetime
    anchor: datetime
    is_live: bool
    is_deleted: bool

    def nominals(self, until: datetime) -> Iterator[datetime]:
        """Yield its nominals up to an instant."""
        nominal = self.anchor + max(0, (self.start - self.anchor) // EVERY + 1) * EVERY
        while self.is_live and nominal <= min(self.end, until):
            yield nominal
            nominal += EVERY

    def has(self, nominal: datetime) -> bool:
        return nominal in self.nominals(nominal)


def spans_of(head: Head) -> list[Span]:
    """Return the generations of a schedule, the first first."""
    all_of_them = [*reversed(head.generations), head.up_to(FOREVER)]
    return [_span(each) for each in all_of_them]


def _span(each: Generation) -> Span:
    anchor = each.definition.rule.start
    assert anchor is not None, each
    return Span(
        number=each.number,
        start=each.start,
        end=each.end,
        anchor=anchor,
        is_live=each.is_live,
        is_deleted=each.deleted,
    )


@dataclass(kw_only=True, slots=True)
class Runs:
    """What came of schedules, held against their spans. `versions` are the payloads of rules, by their anchors."""

    spans: Mapping[Schedule, list[Span]]
    versions: Mapping[datetime, int]
    landed: Iterable[Landed]
    came: dict[Run, set[str]] = field(init=False)

    def __post_init__(self) -> None:
        self.came = defaultdict(set)
        for each in self.landed:
            self.came[run_of(each)].add(each.id)

    def expected(self, until: datetime) -> set[Run]:
        return {
            (schedule, nominal)
            for schedule, spans in self.spans.items()
            for span in spans
            for nominal in span.nominals(until)
        }

    def missing(self, until: datetime) -> set[Run]:
        return self.expected(until) - self.came.keys()

    def complaints(self, until: datetime) -> list[str]:
        """Return the promises that were broken, one a line."""
        neither = [_told(run) for run in sorted(self.missing(until), key=str)]
        twice = [f"{_told(run)}: {sorted(ids)}" for run, ids in self.came.items() if len(ids) > 1]
        wrong = [f"{_told(run)}: {told}" for run in self.came if (told := self._wrong(run))]
        early = [f"{each.run}: {each.lateness} s" for each in self.landed if each.lateness < 0]
        moved = [f"{each.run}: due {each.due}" for each in self.landed if each.due != run_of(each)[1]]
        other = [f"{each.run}: {each.payload}" for each in self.landed if not self._is_of_its_rule(each)]
        broken = {
            "never neither": neither,
            "one job a run": twice,
            "never both, nothing after a cut": wrong,
            "never early": early,
            "due at its nominal": moved,
            "by its own rule": other,
        }
        return [f"{promise}: {len(told)}, {'; '.join(told[:5])}" for promise, told in broken.items() if told]

    def _serving(self, run: Run) -> Span | None:
        schedule, nominal = run
        return next((each for each in self.spans.get(schedule, []) if each.start < nominal <= each.end), None)

    def _wrong(self, run: Run) -> str:
        """Tell why there should be no such run, or nothing if there should."""
        span, (schedule, nominal) = self._serving(run), run
        if span is None:
            return "nobody asked for it"
        if span.has(nominal):
            return ""
        before = [each for each in self.spans[schedule] if each.is_live and each.end < nominal]
        cut = next((each.end for each in reversed(before) if _is_on(each, nominal)), None)
        state = "serves" if span.is_live else "is no run"
        return f"of no rule, generation {span.number} {state}" if cut is None else f"after its cut {cut.isoformat()}"

    def _is_of_its_rule(self, landed: Landed) -> bool:
        span = self._serving(run_of(landed))
        return span is None or json.loads(landed.payload) == {"version": self.versions.get(span.anchor)}


def run_of(landed: Landed) -> Run:
    """Return which run a message says that it is, of the queue in its job's id."""
    name, _, nominal = str(landed.run).partition("@")
    return Schedule(queue=landed.id.partition(".")[0], name=name), datetime.fromisoformat(nominal)


def untrue(told: Iterable[Told], spans: Mapping[Schedule, list[Span]], versions: Mapping[datetime, int]) -> list[str]:
    """Return the answers that say something else than what was, and what was but nobody had asked for."""
    wrong = [f"{each.act} of {each.schedule.path} was told {each.body}" for each in told if not _is_true(each, spans)]
    unasked = [f"{span}" for its in spans.values() for span in its if span.anchor not in versions]
    unasked += [f"{its[0]} is the first one" for its in spans.values() if its[0].number != 1]
    gaps = [f"{one} {other}" for its in spans.values() for one, other in pairwise(its) if not _follows(one, other)]
    return wrong + unasked + gaps


def _is_true(told: Told, spans: Mapping[Schedule, list[Span]]) -> bool:
    span = next((each for each in spans[told.schedule] if each.number == told.generation), None)
    if span is None or told.effective_from != span.start or datetime.fromisoformat(told.body["start"]) != span.anchor:
        return False
    is_as_asked = {
        "put": told.anchor == span.anchor and not span.is_deleted,
        "pause": not span.is_live and not span.is_deleted,
        "resume": span.is_live,
        "delete": span.is_deleted,
    }
    return is_as_asked[told.act]


def _follows(one: Span, other: Span) -> bool:
    return one.number + 1 == other.number and one.end == other.start and one.start <= one.end


def _is_on(span: Span, nominal: datetime) -> bool:
    return not (nominal - span.anchor) % EVERY


def _told(run: Run) -> str:
    schedule, nominal = run
    return f"{schedule.queue}/{schedule.name}@{nominal.isoformat()}"
