"""Single simulations, each of which returns plain figures. Rates and counts are those of an AWS that is not slowed."""

from dataclasses import replace
from typing import Any

from bench.scale.parameters import Aws, Functions
from bench.scale.record import NEVER, share
from bench.scale.story import DAY, Load, Outage, Story
from bench.scale.world import World
from local.summary import percentile

ON_TIME_SECONDS = 60.0
HOUR = 3600.0
# More than any partition carries, and than any ingest function.
_MORE_THAN_ENOUGH = 3000.0
_MANY = 10**6
_LONGEST_HOURS = 8
# When an outage does, in seconds.
_BEGINS = 300.0


def steady(
    rate: float,
    *,
    times: float,
    seconds: float,
    row_bytes: int = 1024,
    together: bool = False,
    missed: int = -1,
    seed: int = 1,
) -> dict[str, Any]:
    """Let jobs come for so many seconds; return how late they were."""
    load = Load(rate=rate / times, row_bytes=row_bytes, together=together)
    story = Story(load=load, seconds=seconds, missed=missed, seed=seed)
    world = World(story, Aws().slowed(times))
    world.run(after=2 * ON_TIME_SECONDS)
    late = world.record.latenesses(world.aws.deployed.lookahead, seconds, now=world.turns.elapsed)
    return {
        "rate": rate,
        "jobs": len(late),
        "on_time": share(late, within=ON_TIME_SECONDS),
        "p50": percentile(late, 50),
        "p99": percentile(late, 99),
        "max": late[-1],
        **_kept(world),
    }


def tick_rate(lifted: str, *, times: float, seconds: float, row_bytes: int = 1024) -> float:
    """Return how many jobs a second a partition's ticks hand over that always have more, with a limit lifted."""
    load = Load(rate=_MORE_THAN_ENOUGH / times, ahead=DAY, row_bytes=row_bytes)
    world = World(Story(load=load, seconds=seconds, comes_in=False), LIFTED[lifted](Aws()).slowed(times))
    world.run()
    return times * world.dispatch_rate()


def ingest_rate(*, times: float, seconds: float) -> float:
    """Return how many jobs a second one ingest function writes that always has more, whatever one key takes."""
    aws = Aws()
    alone = replace(aws.deployed, ingest_functions=1)
    aws = replace(aws, deployed=alone, dynamodb=replace(aws.dynamodb, splits=_MANY)).slowed(times)
    world = World(Story(load=Load(rate=_MORE_THAN_ENOUGH / times, ahead=DAY), seconds=seconds, buffered=True), aws)
    world.run()
    return times * sum(world.record.written) / world.turns.elapsed


def outage(service: str, *, rate: float, ahead: float, times: float, lasts: float = HOUR) -> dict[str, Any]:
    """Let a service fail for a while; tell what that costs, and how the backlog goes."""
    failing = Outage(service=service, start=_BEGINS, end=_BEGINS + lasts)
    load, comes_in = Load(rate=rate / times, ahead=ahead), service == "dynamodb"
    story = Story(load=load, seconds=_LONGEST_HOURS * HOUR, outage=failing, comes_in=comes_in)
    world = World(story, Aws().slowed(times))
    world.run_until_calm()
    end = world.turns.elapsed - ON_TIME_SECONDS
    late = world.record.latenesses(world.aws.deployed.lookahead, end, now=world.turns.elapsed)
    return {
        "service": service,
        "rate": rate,
        "ahead": ahead,
        "max": late[-1],
        "calm": world.turns.elapsed < story.seconds,
        **_backlog(world, after=failing.end, times=times),
        **_kept(world),
    }


def _backlog(world: World, *, after: float, times: float) -> dict[str, Any]:
    """Return the jobs that wait over time, and how long after a time there are none past due, and none to ingest."""
    at = [time for time, _ in world.samples]
    overdue, held = world.record.overdue(at), [held for _, held in world.samples]
    few = ON_TIME_SECONDS * world.story.load.rate / 6
    return {
        "drained": _last_over(few, at, overdue) - after,
        "ingested": max(0.0, _last_over(few, at, held) - after) if world.story.comes_in else 0.0,
        "overdue": [(time / 60, count * times) for time, count in zip(at[::4], overdue[::4], strict=True)],
    }


def _last_over(few: float, at: list[float], counts: list[int]) -> float:
    """Return the time of the last of some counts that is more than a few."""
    return max((time for time, count in zip(at, counts, strict=True) if count > few), default=0.0)


def _kept(world: World) -> dict[str, Any]:
    record = world.record
    sent = sum(at != NEVER for at in record.visible)
    return {
        "lost": record.lost(due_before=world.cursor),
        "early": record.early,
        "repeats": record.repeats / max(1, sent),
    }


def _as_it_is(aws: Aws) -> Aws:
    return aws


def _with_cpu(times: float) -> Any:
    def changed(aws: Aws) -> Aws:
        functions: Functions = replace(aws.functions, tick_cpu=aws.functions.tick_cpu * times)
        return replace(aws, functions=functions)

    return changed


def _with_sends(times: float) -> Any:
    return lambda aws: replace(aws, sqs=replace(aws.sqs, send=aws.sqs.send.slowed(times)))


def _with_pages(times: float) -> Any:
    return lambda aws: replace(aws, dynamodb=replace(aws.dynamodb, page=aws.dynamodb.page.slowed(times)))


def _with_lanes(times: int) -> Any:
    return lambda aws: replace(aws, deployed=replace(aws.deployed, lanes=aws.deployed.lanes * times))


# What a tick's rate is without, or with more of, each of the things that could limit it.
LIFTED = {
    "as it is": _as_it_is,
    "CPU half a job's": _with_cpu(0.5),
    "CPU twice a job's": _with_cpu(2),
    "sends half as long": _with_sends(0.5),
    "sends twice as long": _with_sends(2),
    "twice the lanes": _with_lanes(2),
    "pages half as long": _with_pages(0.5),
}
