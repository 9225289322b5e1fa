"""The simulation of scale is of one seed, and its partition behaves as one does."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bench.results import load
from bench.scale import PART, runs
from bench.scale.measure import Plan, _needs, targets
from bench.scale.parameters import Aws, Deployed
from bench.scale.queues import Inbound, InboundQueue
from bench.scale.record import Record, share
from bench.scale.runs import outage, steady, tick_rate
from bench.scale.story import DAY, Load, Story
from bench.scale.turns import Environment, Turns
from bench.scale.world import World
from dueline.aws.clients import LANES
from dueline.config.deployment import Deployment
from dueline.model.message import Message
from dueline.model.queue_settings import JOBS_PER_PARTITION

ROOT = Path(__file__).parents[3]
SLOW = 200


def test_the_same_seed_gives_the_same_figures_and_another_one_others() -> None:
    first, again, other = (steady(500, times=2 * SLOW, seconds=400, seed=seed) for seed in (1, 1, 2))
    assert first == again
    assert first["p50"] != other["p50"]


def test_half_of_what_a_partition_sustains_is_on_time_with_a_firing_missed() -> None:
    told = steady(JOBS_PER_PARTITION, times=SLOW, seconds=900, missed=6)
    assert (told["on_time"], told["lost"], told["early"]) == (1.0, 0, 0)
    assert told["max"] < 2


def test_a_partition_does_not_keep_up_with_twice_of_what_its_key_takes() -> None:
    told = steady(2000, times=8 * SLOW, seconds=1500)
    assert told["on_time"] < 0.999
    assert told["lost"] == 0


def test_ticks_are_limited_by_how_long_sends_take() -> None:
    as_it_is, halved = (tick_rate(lifted, times=SLOW, seconds=1500) for lifted in ("as it is", "sends half as long"))
    assert halved > 1.2 * as_it_is


@pytest.mark.parametrize("service", ["dynamodb", "sqs", "scheduler"])
def test_an_outage_makes_jobs_late_and_loses_none(service: str) -> None:
    told = outage(service, rate=500, ahead=DAY, times=2 * SLOW, lasts=600)
    assert told["calm"]
    assert (told["lost"], told["early"]) == (0, 0)
    assert 300 < told["max"] < 600
    assert told["drained"] > 60
    assert max(count for _, count in told["overdue"]) > 100_000


def test_a_job_that_is_before_the_cursor_and_was_never_sent_is_lost() -> None:
    record = Record()
    record.new_job(10.0)
    record.new_job(20.0)
    record.new_job(5.0, written=False)
    assert record.lost(due_before=15.0) == 1
    assert record.lost(due_before=25.0) == 2


def test_what_is_sent_is_told_by_when_it_can_be_seen() -> None:
    record = Record()
    job = record.new_job(10.0001)
    record.note_sent(str(job.id), visible=11.0)
    record.note_sent(str(job.id), visible=13.0)
    assert record.latenesses(0, 60, now=60) == pytest.approx([0.999])
    assert (record.repeats, record.early) == (1, 0)
    assert record.overdue([10.5, 11.5]) == [1, 0]


def test_a_job_that_can_be_seen_before_it_is_due_is_early() -> None:
    record = Record()
    job = record.new_job(10.0)
    record.note_sent(str(job.id), visible=9.0)
    assert record.early == 1


def test_a_share_is_of_sorted_values() -> None:
    assert share([float(value) for value in range(1, 101)], within=60) == 0.6


def test_lanes_share_one_cpu() -> None:
    turns = Turns()
    at = Environment(turns, vcpu=0.5, lanes=10)
    ended: list[float] = []
    turns.start(lambda: at.spread(lambda _: (at.compute(1.0), ended.append(turns.elapsed)), range(3)))
    turns.run(until=60)
    assert ended == [2.0, 4.0, 6.0]


def test_no_more_calls_are_made_at_once_than_there_are_lanes() -> None:
    turns = Turns()
    at = Environment(turns, vcpu=1, lanes=2)
    answers: list[Any] = []
    turns.start(lambda: answers.append((at.spread(lambda item: (at.sleep(1.0), item)[1], "abc"), turns.elapsed)))
    turns.run(until=60)
    assert answers == [(["a", "b", "c"], 2.0)]


def test_what_failed_in_the_inbound_queue_is_hidden_for_its_visibility_timeout() -> None:
    queue = InboundQueue()
    queue.waiting.extend(Inbound(message=Message(body=body)) for body in "ab")
    received = queue.receive(500, now=0)
    assert [each.message.body for each in queue.settle(received, again=received[:1], visible=181)] == ["b"]
    assert (queue.receive(500, now=180), queue.held) == ([], 1)
    assert [(each.message.body, each.receives) for each in queue.receive(500, now=181)] == [("a", 2)]


def test_the_model_is_deployed_as_dueline_is() -> None:
    deployment, deployed = Deployment(), Deployed()
    assert deployed.ingest_functions == deployment.ingest_max_concurrency
    assert (deployed.lookahead, deployed.lease) == (deployment.lookahead, deployment.lease)
    assert deployed.lanes == LANES


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("functions/ingest.py", f"LONGEST_REQUEST = timedelta(seconds={Deployed().ingest_longest_request})"),
        ("functions/ingest.py", "AFTER_THE_LAST_SEND = 4 * LONGEST_REQUEST"),
        ("functions/tick.py", "AFTER_THE_LAST_SEND = 4 * PERIODS.longest_send"),
        ("infra/constructs/tick.py", f"_TIMEOUT = {Deployed().tick_timeout}"),
        ("infra/constructs/tick.py", f"retry_attempts={Deployed().tick_attempts - 1}"),
        ("infra/constructs/ingest.py", f"_TIMEOUT = {Deployed().ingest_timeout}"),
        ("infra/constructs/ingest.py", f"_WINDOW = {Deployed().window}"),
        ("infra/constructs/ingest.py", f"batch_size={Deployed().batch}"),
        ("infra/constructs/function.py", f"_MEMORY_MB = {Aws().functions.memory_mb}"),
    ],
)
def test_what_the_model_takes_for_granted_stands_in_what_is_deployed(file: str, line: str) -> None:
    assert line in (ROOT / file).read_text()


def test_a_rate_needs_partitions_and_functions_with_half_as_much_to_spare() -> None:
    needs = _needs(100_000, ingest=2000)
    assert (needs["partitions"], needs["ingest_functions"]) == (200, 75)


def _figures() -> dict[str, Any]:
    run = {"on_time": 1.0, "p50": 0.5, "p99": 1.0, "max": 1.2, "jobs": 9, "lost": 0, "rate": 500.0}
    one = {"row_bytes": 1024, "ticks": 1200.0, "writes": 1000.0, "sustained": 1000.0, "steady": run, "together": run}
    failed = {"service": "sqs", "ahead": DAY, "share": 0.5, "lost": 0, "repeats": 0.0, "max": 3400.0, "drained": 3600.0}
    failed |= {"ingested": 0.0, "calm": True, "overdue": [(0.0, 0.0), (60.0, 9.0)]}
    rates = [{"total": 1000, **_needs(1000, ingest=2000), **run}]
    return {
        "partition": [one],
        "lifted": {"as it is": 1200.0},
        "less_slow": 1.0,
        "knee": [run],
        "rates": rates,
        "outages": [failed],
    }


def test_all_that_was_measured_is_told_as_read_back_from_json() -> None:
    told = PART.markdown(json.loads(json.dumps(_figures())))
    assert "| 1,024 B | 1,200 | 1,000 | 1,000 | 100 % | 100 % |" in told
    assert "| 1,000 | 2 | 2 | 0 min | 0.50 s | 1.00 s | 1.20 s | 100 % | 9 | 0 |" in told
    assert "| SQS | 50% | 0 | 0.0% | 57 min | 60 min |  |" in told


def test_a_job_that_is_lost_misses_the_target() -> None:
    figures = _figures()
    assert all(target.is_met for target in targets(figures))
    figures["outages"][0]["lost"] = 1
    assert [target.is_met for target in targets(figures)] == [True, False, True]


def test_the_quick_plan_simulates_the_same_with_less() -> None:
    assert set(Plan.quick().lifted) < set(runs.LIFTED)
    assert set(Plan.quick().knee) < set(Plan().knee)


def test_a_key_takes_no_more_writes_a_second_than_it_may() -> None:
    aws = Aws().slowed(100)
    world = World(Story(load=Load(rate=2000 / 100, ahead=DAY), seconds=200, buffered=True), aws)
    world.run()
    allowed = aws.dynamodb.writes_per_key * (200 + aws.dynamodb.burst_seconds)
    assert 0.8 * allowed < sum(world.record.written) <= allowed
    split = replace(aws, dynamodb=replace(aws.dynamodb, splits=2))
    twice = World(world.story, split)
    twice.run()
    assert sum(twice.record.written) > 1.3 * sum(world.record.written)


def test_the_rule_of_thumb_is_what_was_measured_with_half_as_much_to_spare() -> None:
    stored = load("scale").figures["partition"]
    [sustained] = [each["sustained"] for each in stored if each["row_bytes"] == 1024]
    assert sustained >= 1.5 * JOBS_PER_PARTITION
