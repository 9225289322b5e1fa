"""The simulation of scale and overload is of one seed, and a partition behaves as one does."""

from pathlib import Path

import pytest

from bench.aws_model import Aws
from bench.overload import DIRECT, HTTP, ITS_PARTITION, OTHER_QUEUE, TABLE_WRITES, flooded
from bench.scale import DAY, PARTITION, Scenario, World, outage, steady
from bench.simulation import Record
from dueline.aws.clients import LANES
from dueline.config.deployment import Deployment

ROOT = Path(__file__).parents[3]
SLOW = 200


def test_the_same_seed_gives_the_same_figures():
    first, again, other = (steady(500, times=2 * SLOW, seconds=400, seed=seed) for seed in (1, 1, 2))
    assert first == again
    assert first["p50"] != other["p50"]


def test_outage_loses_no_job():
    figures = outage("sqs", rate=500, ahead=DAY, times=2 * SLOW, lasts=600)
    assert figures["recovered"]
    assert (figures["lost"], figures["early"]) == (0, 0)
    assert 300 < figures["max"] < 600
    assert figures["drained"] > 60


@pytest.mark.parametrize(("by", "is_buffered"), [(HTTP, True), (DIRECT, False)])
def test_flood_delays_no_other_job(by, is_buffered):
    jobs = 3 * TABLE_WRITES
    figures = flooded(by, jobs=jobs, due=300.0, due_for=30.0)
    assert [figures[name] for name in ("refused", "refused_of_others", "lost", "failed_ticks")] == [0] * 4
    assert figures["written"] + figures["buffered"] == jobs
    assert bool(figures["buffered"]) is is_buffered
    assert all(figures["late"][whose]["max"] < 2 for whose in (ITS_PARTITION, OTHER_QUEUE))


def test_only_written_overdue_jobs_can_be_lost():
    record = Record(PARTITION)
    for due, written in ((10.0, True), (20.0, True), (5.0, False)):
        record.new_job(due, written=written)
    assert [len(record.ledger(end=end).lost) for end in (15.0, 25.0)] == [1, 2]


def test_a_key_takes_no_more_writes_than_it_may():
    aws = Aws().slowed(100)
    world = World(Scenario(rate=2000 / 100, ahead=DAY, seconds=200), aws)
    world.time.run(until=200)
    allowed = aws.writes_per_key * (200 + aws.burst_seconds)
    assert 0.8 * allowed < len(world.record.written) <= allowed


def test_model_has_the_deployed_settings():
    aws, deployment = Aws(), Deployment()
    assert (aws.ingest_functions, aws.lanes) == (deployment.ingest_max_concurrency, LANES)
    assert (aws.lookahead, aws.lease) == (deployment.lookahead, deployment.lease)


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("dueline/functions/ingest.py", f"LONGEST_REQUEST = timedelta(seconds={Aws().ingest_longest_request})"),
        ("dueline/functions/ingest.py", "AFTER_THE_LAST_SEND = 4 * LONGEST_REQUEST"),
        ("dueline/functions/tick.py", "AFTER_THE_LAST_SEND = 4 * PERIODS.longest_send"),
        ("dueline/cdk/constructs/tick.py", f"_TIMEOUT = {Aws().tick_timeout}"),
        ("dueline/cdk/constructs/tick.py", f"retry_attempts={Aws().tick_attempts - 1}"),
        ("dueline/cdk/constructs/consumers.py", f"_TIMEOUT = {Aws().ingest_timeout}"),
        ("dueline/cdk/constructs/consumers.py", f"_WINDOW = {Aws().window}"),
        ("dueline/cdk/constructs/consumers.py", f"batch_size={Aws().batch}"),
        ("dueline/cdk/constructs/function.py", f"_MEMORY_MB = {Aws().memory_mb}"),
    ],
)
def test_model_has_the_deployed_constants(file, line):
    assert line in (ROOT / file).read_text()
