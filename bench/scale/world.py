"""One partition of a deployment, in simulated time: real submissions, ticks and ingest over models of AWS.

Rows that are due before the first jobs that come in could be are there already, as if written long ago.
"""

from datetime import timedelta
from functools import partial
from random import Random

from bench.scale.invocations import Functions, Place, Region
from bench.scale.parameters import Aws
from bench.scale.queues import InboundQueue
from bench.scale.record import PARTITION, Record
from bench.scale.story import Story
from bench.scale.submissions import Api
from bench.scale.table import Storage
from bench.scale.turns import START, Turns
from dueline.model import instant, rows
from dueline.model.message import Message

# Rows that are there already are made so long before they can be read, and so many seconds' at once.
_MADE_BEFORE = 90.0
_MADE_AT_ONCE = 5.0
_SAMPLE_SECONDS = 30.0
# What waits for one round of ingest and of the tick is no backlog.
_USUAL_SECONDS = 10.0
_CALM_SAMPLES = 6


class World:
    """A partition with its tick, its ingest, and those who schedule jobs."""

    def __init__(self, story: Story, aws: Aws) -> None:
        self.story, self.aws = story, aws
        self.random = Random(story.seed)
        self.turns, self.record, self.inbound = Turns(), Record(), InboundQueue()
        horizon = instant.text(START + timedelta(seconds=story.seconds + 2 * aws.deployed.lookahead))
        self.storage = Storage(aws.dynamodb, row_bytes=story.load.row_bytes, horizon=horizon)
        self._region = Region(
            aws=aws,
            turns=self.turns,
            random=self.random,
            inbound=self.inbound,
            places={str(PARTITION): Place(storage=self.storage, record=self.record)},
            outage=story.outage,
        )
        self.functions, self.api = Functions(self._region), Api(self._region)
        self.samples: list[tuple[float, int]] = []

    def run(self, *, after: float = 0.0) -> None:
        """Let the story happen, and what was due in it come so many seconds late."""
        self._begin()
        self.turns.run(until=self.story.seconds + after)

    def run_until_calm(self) -> None:
        """Let the story happen, but no longer than until its outage is made up for."""
        self._begin()
        outage = self.story.outage
        self.turns.run(until=outage.end if outage else 0.0)
        while self.turns.elapsed < self.story.seconds and not self._is_calm():
            self.turns.run(until=self.turns.elapsed + _SAMPLE_SECONDS)

    def dispatch_rate(self) -> float:
        """Return how many jobs a second ticks handed over, from the end of one to that of the last, gaps and all."""
        (begun, _), *ticks = [each for each in self.functions.dispatched if each[1]]
        return sum(count for _, count in ticks) / (ticks[-1][0] - begun)

    @property
    def cursor(self) -> float:
        """Up to when all that is due is handed over, as the table has it."""
        key = rows.state_key(PARTITION)
        at = rows.due_at(rows.read_state(self.storage.state.read([key]).rows[key]).cursor)
        return (at - START).total_seconds() if at else 0.0

    def _begin(self) -> None:
        self._have_ticked()
        self.turns.start(self._make_rows)
        self.turns.start(self._fire)
        self.turns.start(self._sample)
        if self.story.comes_in:
            self.turns.start(self._schedule)
            self.functions.start_pollers()

    def _have_ticked(self) -> None:
        """Begin as after a tick that was fired just before: what is due within the lookahead is handed over."""
        fence = instant.text(START + timedelta(seconds=self.aws.deployed.lookahead))
        state, owner = self.storage.state, "the tick before"
        state.take(PARTITION, owner=owner, now="", lease=fence, fence=fence)
        state.checkpoint(PARTITION, owner=owner, cursor=rows.end_of(fence), fence=fence, lease="")

    def _is_calm(self) -> bool:
        usual = _USUAL_SECONDS * self.story.load.rate
        recent = self.samples[-_CALM_SAMPLES:]
        has_caught_up = self.cursor > self.turns.elapsed + self.aws.scheduler.period
        return has_caught_up and all(held <= usual for _, held in recent)

    def _sample(self) -> None:
        while True:
            self.samples.append((self.turns.elapsed, self.inbound.held))
            self.turns.sleep(_SAMPLE_SECONDS)

    def _make_rows(self) -> None:
        """Put the rows that were written long ago, shortly before they can be read."""
        load = self.story.load
        made = self.aws.deployed.lookahead + self.random.expovariate(load.rate)
        end = min(load.ahead, self.story.seconds)
        while made < end:
            until = min(end, self.turns.elapsed + self.aws.deployed.lookahead + _MADE_BEFORE)
            while made < until:
                self.storage.put(rows.job_row(self.record.new_job(load.due(made - load.ahead))))
                made += self.random.expovariate(load.rate)
            self.turns.sleep(_MADE_AT_ONCE)

    def _schedule(self) -> None:
        """Schedule jobs one by one, each by a request of its own."""
        load = self.story.load
        while self.turns.elapsed < self.story.seconds:
            job = self.record.new_job(load.due(self.turns.elapsed), written=False)
            if self.story.buffered:
                self.inbound.put(Message.of(job), 0.0)
            else:
                self.turns.start(partial(self.api.schedule, [job]))
            self.turns.sleep(self.random.expovariate(load.rate))

    def _fire(self) -> None:
        scheduler, minute = self.aws.scheduler, 0
        while True:
            at = (minute + self.random.random()) * scheduler.period
            self.turns.sleep(at - self.turns.elapsed)
            if minute != self.story.missed and not self._region.is_down("scheduler"):
                for _ in range(1 + (self.random.random() < scheduler.doubles)):
                    self.turns.start(partial(self.functions.tick, PARTITION))
            minute += 1
