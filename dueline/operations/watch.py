"""The watch: what is wrong with a deployment's queues, and which mails that makes, one a queue and state.

Whatever could not be read is not well: it is unknown. That ends no state, and is mailed itself if it lasts.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import NamedTuple, TypeVar

from dueline.config import metrics
from dueline.core import instant, rows
from dueline.core.job import Partition
from dueline.core.partitions import states_of
from dueline.core.ports import Depth, ParallelMap, Table
from dueline.core.retry import attempt
from dueline.core.text import named, plural
from dueline.errors import RETRYABLE, DuelineError, QueueNotFound, Unavailable

A = TypeVar("A")
LATE = timedelta(seconds=60)
LEAST_SHARE_ON_TIME = 0.999
# The watch runs each five minutes, and one run may be a little early.
_TWO_RUNS, _THREE_RUNS = timedelta(minutes=4), timedelta(minutes=9)
_DEPLOYMENT = timedelta(hours=2)
# The planner looks once an hour, in a new deployment an hour from now.
_SCHEDULES = timedelta(minutes=90)
_MOST_ROWS = 1000
# Of SNS: https://docs.aws.amazon.com/sns/latest/api/API_Publish.html
MOST_SUBJECT = 100


class Kind(NamedTuple):
    """A state that is mailed once it has lasted so long. What pages makes jobs late while it waits."""

    title: str
    page: str
    pages: bool = False
    after: timedelta = timedelta(0)


KINDS: Mapping[str, Kind] = {
    "late": Kind("Jobs are late", "late-jobs", pages=True),
    "missing_ticks": Kind("Ticks are missing", "missing-ticks", pages=True, after=_TWO_RUNS),
    "never_ticked": Kind("Partitions never had a tick", "partitions-without-tick", after=_DEPLOYMENT),
    "not_on_time": Kind("Jobs are not on time", "jobs-not-on-time"),
    "dead_letters": Kind("There are dead letters", "dead-letters"),
    "parked_jobs": Kind("Jobs are parked", "parked-jobs"),
    "inbound_dead_letters": Kind("There are inbound dead letters", "inbound-dead-letters"),
    "planner_dead_letters": Kind("There are dead planning jobs", "planner-dead-letters"),
    "ttl_off": Kind("TTL is off", "ttl-off", pages=True),
    "schedules_stood_still": Kind("Schedules stood still", "schedules-stand-still"),
    "schedules_unwatched": Kind("No watch over schedules", "schedules-stand-still", pages=True, after=_SCHEDULES),
    "unknown": Kind("The watch cannot see", "watch-silent", after=_THREE_RUNS),
}


class Condition(NamedTuple):
    """One kind of state, what it is about (a queue, or a part of the deployment), and the topic that is to hear of it.

    The deployment's own topics are "", and a queue's owner has another: one that fails holds no other up.
    """

    kind: str
    about: str
    topic: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Sighting:
    """What the watch saw: each state with its figure in words, those of which nothing is known, and the metrics."""

    states: dict[Condition, str] = field(default_factory=dict)
    unknown: frozenset[Condition] = frozenset()
    figures: dict[str, float | None] = field(default_factory=dict)

    def __add__(self, other: "Sighting") -> "Sighting":
        return Sighting(
            states=self.states | other.states,
            unknown=self.unknown | other.unknown,
            figures=self.figures | other.figures,
        )

    def with_owners(self, owners: Mapping[str, str]) -> "Sighting":
        """Return the same with the states of queues for their owners' topics as well."""
        theirs = {state: state._replace(topic=owners[state.about]) for state in self.states if state.about in owners}
        unknown = {state._replace(topic=owners[state.about]) for state in self.unknown if state.about in owners}
        states = self.states | {theirs[state]: self.states[state] for state in theirs}
        return replace(self, states=states, unknown=self.unknown | unknown)


# Looks. Each returns what it saw, and raises nothing that AWS may bring about.
def look_at_each(
    partitions: Collection[Partition],
    look: Callable[[Partition, rows.PartitionState], A],
    *,
    table: Table,
    spread: ParallelMap,
) -> dict[Partition, A | DuelineError]:
    """Return what a look at each partition and its state says, or raises: one that fails hides no other.

    Raises Throttled or Unavailable where no state could be read.
    """
    states = states_of(partitions, table=table, spread=spread)

    def look_at(partition: Partition) -> A | DuelineError:
        key = rows.state_key(partition)
        if key in states.unread:
            return Unavailable(f"the state of {partition} could not be read")
        return attempt(partial(look, partition), rows.read_state(states.rows.get(key)))

    return dict(zip(partitions, spread(look_at, partitions), strict=True))


class _Partition(NamedTuple):
    """A partition: its fence, "" before its first tick, and how late its oldest job is that no tick has passed."""

    fence: str
    lateness: timedelta


def look_at_partitions(
    partitions: Sequence[Partition], *, table: Table, now: datetime, spread: ParallelMap = map
) -> Sighting:
    """Return which queues are late, or have partitions without a tick: their fence is in the past, or they have none.

    Lateness is read from the rows: a tick that runs and cannot send raises its fence all the same.
    """
    looked: Mapping[Partition, _Partition | DuelineError]
    try:
        looked = look_at_each(partitions, partial(_look_at, table=table, now=now), table=table, spread=spread)
    except RETRYABLE as fault:
        looked = dict.fromkeys(partitions, fault)
    late, stopped, never = dict[str, timedelta](), list[Partition](), list[Partition]()
    missed: dict[str, DuelineError] = {}
    for each, one in looked.items():
        if isinstance(one, DuelineError):
            missed[each.queue] = one
            continue
        if one.lateness >= LATE:
            late[each.queue] = max(one.lateness, late.get(each.queue, LATE))
        if one.fence < instant.text(now):
            (stopped if one.fence else never).append(each)
    states = {
        Condition("late", queue): f"its oldest unsent job is {by.total_seconds():,.0f} s late"
        for queue, by in late.items()
    }
    states |= _by_queue("missing_ticks", stopped, "no tick reads {}")
    states |= _by_queue("never_ticked", never, "no tick ever read {}")
    states |= {
        Condition("unknown", queue): f"its partitions could not be read: {fault}" for queue, fault in missed.items()
    }
    figures: dict[str, float | None] = {
        metrics.WORST_LATENESS: max((by.total_seconds() for by in late.values()), default=0.0),
        metrics.QUEUES_LATE: len(late),
        metrics.MISSING_TICKS: len(stopped),
    }
    kinds = ("late", "missing_ticks", "never_ticked")
    return Sighting(
        states=states,
        unknown=frozenset(Condition(kind, queue) for queue in missed for kind in kinds),
        # What is not known is no zero.
        figures=dict.fromkeys(figures) if missed else figures,
    )


def _look_at(partition: Partition, state: rows.PartitionState, *, table: Table, now: datetime) -> _Partition:
    until = rows.end_of(instant.text(now - LATE))
    due = None if state.cursor >= until else _oldest_due(partition, state.cursor, until, table=table)
    return _Partition(fence=state.fence, lateness=timedelta(0) if due is None else now - due)


def _oldest_due(partition: Partition, after: str, until: str, *, table: Table) -> datetime | None:
    """Return when the first job is due that was neither sent nor cancelled. Rows about a job come before its own."""
    while True:
        page = table.page(partition, after=after, until=until, limit=_MOST_ROWS)
        settled = set[str]()
        for row in page.rows:
            after = str(row["sk"])
            prefix, kind = rows.prefix_and_kind(after)
            if kind in (rows.HANDLED, rows.CANCELLED):
                settled.add(prefix)
            elif kind == rows.JOB and prefix not in settled:
                return rows.due_at(after) or instant.EPOCH
        if not page.more:
            return None


def _by_queue(kind: str, partitions: Iterable[Partition], text: str) -> dict[Condition, str]:
    numbers = defaultdict[str, list[str]](list)
    for each in partitions:
        numbers[each.queue].append(str(each.number))
    return {
        Condition(kind, queue): text.format(f"partition{'s' * (len(its) > 1)} {named(its)}")
        for queue, its in numbers.items()
    }


def look_at_dead_letters(depths: Mapping[Condition, Callable[[], Depth]], *, spread: ParallelMap = map) -> Sighting:
    """Return which dead-letter queues hold messages. One that does not exist yet holds none."""
    total: int | None = 0
    sighting = Sighting()
    for state, depth in zip(depths, spread(_depth, depths.values()), strict=True):
        if isinstance(depth, DuelineError):
            what, total = f"its dead letters could not be counted: {depth}", None
            missed = {Condition("unknown", f"dead letters of {state.about}"): what}
            sighting += Sighting(states=missed, unknown=frozenset({state}))
        elif depth:
            sighting += Sighting(states={state: plural(depth, "message")})
            total = None if total is None else total + depth
    return sighting + Sighting(figures={metrics.DEAD_LETTERS: total})


def _depth(read: Callable[[], Depth]) -> int | DuelineError:
    try:
        depth = read()
    except QueueNotFound:
        return 0
    except RETRYABLE as fault:
        return fault
    return depth.waiting + depth.in_flight


def look_at_shares(read: Callable[[], Mapping[str, tuple[float, float]]], queues: Collection[str]) -> Sighting:
    """Return which queues' jobs of the last hour were not on time; `read` returns how many were, and were not."""
    try:
        counts = read()
    except RETRYABLE as fault:
        what = {Condition("unknown", "on time"): f"the functions' logs could not be read: {fault}"}
        return Sighting(states=what, unknown=frozenset(Condition("not_on_time", queue) for queue in queues))
    shares = {queue: on_time / (on_time + delayed) for queue, (on_time, delayed) in counts.items() if on_time + delayed}
    poor = {
        Condition("not_on_time", queue): f"{100 * share:.1f} % of its jobs of the last hour were on time"
        for queue, share in shares.items()
        if share < LEAST_SHARE_ON_TIME
    }
    on_time, delayed = (sum(each[index] for each in counts.values()) for index in (0, 1))
    share = 100 * on_time / (on_time + delayed) if shares else None
    return Sighting(states=poor, figures={metrics.ON_TIME_SHARE: share})


# Mails.
@dataclass(frozen=True, kw_only=True, slots=True)
class Open:
    """Since when a state has lasted, and whether that was mailed."""

    since: str
    is_mailed: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Mail:
    """States of one kind that have new, or are over, each with its figure, for one topic."""

    kind: Kind
    topic: str
    is_over: bool
    figures: Mapping[Condition, str]


Opened = Mapping[Condition, Open]


def continued(opened: Opened, sighting: Sighting, *, now: datetime) -> dict[Condition, Open]:
    """Return the states that last, or are new, or whose end is to be mailed."""
    new = {state: opened.get(state, Open(since=instant.text(now))) for state in sighting.states}
    mailed = {state for state, open in opened.items() if open.is_mailed and state.kind in KINDS}
    kept = sighting.unknown | {state for state in mailed if KINDS[state.kind].pages}
    return {state: open for state, open in opened.items() if state in kept} | new


def mails_of(opened: Opened, sighting: Sighting, *, now: datetime) -> list[Mail]:
    """Return the mails that are due, one for each kind of state and topic: of begins, and of ends if these paged."""
    due: dict[tuple[str, str, bool], dict[Condition, str]] = defaultdict(dict)
    for state, open in opened.items():
        if state in sighting.states:
            lasts = open.since <= instant.text(now - KINDS[state.kind].after)
            if lasts and not open.is_mailed:
                due[state.kind, state.topic, False][state] = sighting.states[state]
        elif state not in sighting.unknown:
            due[state.kind, state.topic, True][state] = f"it was so since {open.since}"
    return [
        Mail(kind=KINDS[kind], topic=topic, is_over=is_over, figures=figures)
        for (kind, topic, is_over), figures in due.items()
    ]


def after_mail(opened: Opened, mail: Mail) -> dict[Condition, Open]:
    """Return what is open once a mail was published."""
    if mail.is_over:
        return {state: open for state, open in opened.items() if state not in mail.figures}
    return {state: replace(open, is_mailed=open.is_mailed or state in mail.figures) for state, open in opened.items()}


def text_of(mail: Mail, *, deployment: str, runbook: str) -> tuple[str, str]:
    abouts = [state.about for state in mail.figures]
    begin = "OK" if mail.is_over else "page" if mail.kind.pages else "ticket"
    subject = f"[{begin}] {deployment}: {mail.kind.title}: {', '.join(abouts)}"
    figures = [f"{state.about}: {text}" for state, text in mail.figures.items()]
    over = " no more" if mail.is_over else ""
    lines = [f"{mail.kind.title}{over} in the deployment {deployment}.", "", *figures, "", f"Runbook: {runbook}"]
    cut = subject if len(subject) <= MOST_SUBJECT else f"{subject[: MOST_SUBJECT - 3]}..."
    return cut, "\n".join(lines)
