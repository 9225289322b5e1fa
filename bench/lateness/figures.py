"""What came out, as plain JSON; which ratios of it repeat, and what it was to reach."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bench.lateness.books import Books, Run
from bench.lateness.dueline_run import Ours
from bench.lateness.plan import EXACT, KILLED, MISSED, RUSH, Ticks, Wish
from bench.lateness.plan import PLAIN as PLAIN_LANES
from bench.part import Figures, Target
from dueline.protocol.tick import CHECKPOINT_JOBS

PLAIN, WORKER = "Dueline, plain consumer", "Dueline, its worker"
DYNEIN, CELERY = "Dynein's protocol", "Celery, ETA on Redis"
CELERY_KILLED, FLOOR = "Celery, its worker killed", "SQS alone"
FLOW = "flow"  # with a missed and a killed tick, where there are any
_MILLISECONDS_TO_SECOND = 1000
_TO_A_CONSUMER = {"p95": 1.2, "p99": 1.5}


def figures_of(own: Ours, others: Mapping[str, Run], ticks: Ticks) -> Figures:
    """Return what tables and pictures need. Of a flow, what a missed or a killed tick was to hand over is a part."""
    lanes = {PLAIN: PLAIN_LANES, WORKER: (EXACT,)}
    scenarios = {name: own.run.by(_among(ticks.scenario, of)) for name, of in lanes.items()}
    kinds = {name: own.run.by(_among(_kind, of)) for name, of in lanes.items()}
    kinds |= {name: run.by(_kind) for name, run in others.items()}
    return {
        "contenders": _told(kinds),
        "scenarios": _told(scenarios),
        "shapes": {name: kinds[name][FLOW].shape() for name in kinds if name not in (CELERY_KILLED, FLOOR)},
        "over time": {name: kinds[name][FLOW].over_time(begin=own.run.scheduled.begin) for name in scenarios},
        "windows": _windows(ticks),
        "all": {**own.run.books.told(), "on time": own.run.books.on_time_share},
        "cancels": own.cancels,
        "in the table before the first tick": own.ingested,
        "killed at": round(own.killed_at, 1),
    }


def _among(name: Callable[[Wish], str], lanes: Sequence[str]) -> Callable[[Wish], str]:
    """Return what names a job of some lanes, and leaves others out."""
    return lambda wish: name(wish) if wish.lane in lanes else ""


def _kind(wish: Wish) -> str:
    return RUSH if wish.rush else FLOW


def _told(books: Mapping[str, Mapping[str, Books]]) -> dict[str, dict[str, Any]]:
    return {name: {kind: each.told() for kind, each in by_kind.items()} for name, by_kind in books.items()}


def _windows(ticks: Ticks) -> dict[str, tuple[float, float]]:
    firings = {MISSED: ticks.missed, KILLED: ticks.killed}
    return {name: ticks.handed_over_by(firing) for name, firing in firings.items() if firing > 0}


def ratios(figures: Figures) -> dict[str, float]:
    """Return what repeats: of many jobs, and of lateness that the protocol makes, not the machine."""
    ours, dynein = figures["contenders"][PLAIN][FLOW], figures["contenders"][DYNEIN][FLOW]
    return {
        f"Dynein's {name} lateness to Dueline's, plain consumer": dynein[name] / ours[name] for name in ("mean", "p95")
    }


def targets(figures: Figures) -> tuple[Target, ...]:
    """Return what lateness was to reach, and the counts of all of Dueline's run; `why` tells what a miss is due to."""
    whole, contenders = figures["all"], figures["contenders"]
    killed = sum(by.get(KILLED, {}).get("repeated", 0) for by in figures["scenarios"].values())
    return (
        *(_to_a_consumer(contenders, FLOW, name, bound) for name, bound in _TO_A_CONSUMER.items()),
        *(_to_a_consumer(contenders, RUSH, name, bound) for name, bound in _TO_A_CONSUMER.items()),
        _in_worker(contenders[WORKER][FLOW], FLOW, _why_of_the_flow(contenders)),
        _in_worker(contenders[WORKER][RUSH], RUSH, _why_in_worker(contenders[WORKER][RUSH])),
        Target(what="jobs early", got=whole["early"], bound=0),
        Target(what="jobs lost", got=whole["lost"], bound=0),
        Target(what="jobs after a cancel that was promised", got=whole["after a promised cancel"], bound=0),
        Target(what="repeats that no kill explains", got=whole["repeated"] - killed, bound=0),
        Target(what="repeats by a killed tick", got=killed, bound=CHECKPOINT_JOBS),
        Target(what="jobs on time within 60 s", got=whole["on time"] * 100, bound=99.999, at_most=False, unit=" %"),
    )


def _to_a_consumer(contenders: Mapping[str, Any], kind: str, name: str, bound: float) -> Target:
    why = f"the emulator answers one request at a time{_alone(contenders, kind, name)}"
    got = contenders[PLAIN][kind][name]
    return Target(what=f"lateness {name} to a plain SQS consumer, {kind}", got=got, bound=bound, unit=" s", why=why)


def _alone(contenders: Mapping[str, Any], kind: str, name: str) -> str:
    alone = contenders.get(FLOOR, {}).get(kind)
    return f": of messages sent to it without Dueline it is {alone[name]:.3g} s" if alone else ""


def _why_of_the_flow(contenders: Mapping[str, Any]) -> str:
    """MiniStack 1.5 looks each 0.1 s whether there is something for a request that waits: its `services/sqs.py`."""
    return f"the emulator takes its time to hand a message out{_alone(contenders, FLOW, 'p99')}"


def _in_worker(told: Mapping[str, Any], kind: str, why: str) -> Target:
    milliseconds = round(told["p99"] * _MILLISECONDS_TO_SECOND, 1)
    return Target(what=f"lateness p99 in a worker, {kind}", got=milliseconds, bound=100, unit=" ms", why=why)


def _why_in_worker(told: Mapping[str, Any]) -> str:
    a_second = round(told["landed"] / told["max"])
    return f"of {told['landed']} jobs due in one millisecond, one process begins about {a_second:,} a second"
