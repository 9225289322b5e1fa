"""The bill of a job: what is counted, how it is rounded, what it is multiplied with."""

import json
from datetime import date

import boto3
import pytest
from moto import mock_aws

from bench import bill
from bench.counted import LOG_EVENT_BYTES, Exchange, Meter, NotAsCharged, Step, row_bytes, step_of, write_units
from bench.dynein import job_row
from bench.payloads import PARTITIONS, SIZES, USUAL, json_of, largest_row_bytes, table_job
from dueline.aws.sqs import SqsQueue
from dueline.core import rows
from dueline.core.job import Partition, Route
from tests.builders import NOW, a_message

DEPLOYED = bill.Deployed(
    memory_mb=512,
    queue_alarms=5,
    core_alarms=8,
    queue_metrics=6,
    core_metrics=4,
    idle_metrics=4,
    access_log_bytes=274,
    log_days=30,
)
BILLER = bill.Biller(deployed=DEPLOYED)


def an_exchange(operation, body, *, units=0.0, service="dynamodb", **answer):
    answer = {"ConsumedCapacity": {"CapacityUnits": units}, **answer}
    request = json.dumps(body).encode()
    return Exchange(service=service, operation=operation, request=request, answer=answer)


def a_send(*bodies):
    return an_exchange("SendMessageBatch", {"Entries": [{"MessageBody": body} for body in bodies]}, service="sqs")


def test_every_price_has_a_source_and_a_day():
    for price in bill.written_prices().values():
        assert price["value"] > 0
        assert price["unit"]
        assert price["source"].startswith("https://aws.amazon.com/")
        assert date(2026, 1, 1) <= date.fromisoformat(price["read"])


@pytest.mark.parametrize(("size", "charged"), [(0, 1), (64 * 1024, 1), (64 * 1024 + 1, 2), (256 * 1024, 4)])
def test_sqs_charges_each_64_kb_of_a_request(size, charged):
    assert a_send("x" * size).charged_requests == charged
    assert a_send("x" * (size // 2), "x" * (size - size // 2)).charged_requests == charged


def test_unexpected_units_are_refused():
    item = {"pk": {"S": "x" * 1100}}
    put = {"RequestItems": {"jobs": [{"PutRequest": {"Item": item}}, {"PutRequest": {"Item": item}}]}}
    assert step_of([an_exchange("BatchWriteItem", put, units=4.0)], jobs=2).writes == 4
    with pytest.raises(NotAsCharged, match=r"charges 2\.0 units, by size they are 4\.0"):
        step_of([an_exchange("BatchWriteItem", put, units=2.0)], jobs=2)
    both = [{"Put": {"Item": item}}, {"Update": {"Key": {"pk": {"S": "key"}}}}]
    assert an_exchange("TransactWriteItems", {"TransactItems": both}).units_by_size == 2 * (2 + 1)


def test_meter_counts_requests(monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    with mock_aws():
        session = boto3.Session(region_name="us-east-1")
        meter, sqs = Meter(session), session.client("sqs")
        queue = SqsQueue(sqs, sqs.create_queue(QueueName="emails")["QueueUrl"])
        with meter.counting() as exchanges:
            queue.send([a_message(group="acme") for _ in range(10)])
            queue.send([a_message()])
        step = step_of(exchanges, jobs=11, log="one\ntwo\n")
    assert (step.calls, step.items) == ({"SendMessageBatch": 2}, {"SendMessageBatch": 11})
    assert (step.sent, step.grouped) == (2, 1)
    assert step.charged_log_bytes == 8 + 2 * LOG_EVENT_BYTES


def test_invocation_pays_for_time_and_logs():
    step = Step(jobs=100, cpu_seconds=0.1, logged=1000, lines=2)
    time = 0.20 + bill.billed_seconds(step, 512) / 2 * 13.3334
    logs = (1000 + 2 * LOG_EVENT_BYTES) / 1000 * (0.5 + 0.03 * 30 / (365 / 12))
    assert BILLER.invocation(step) == pytest.approx((time + logs) / 100)
    assert bill.billed_seconds(Step(jobs=1, cpu_seconds=0.0011), 1769) == 0.002
    assert bill.billed_seconds(Step(jobs=1, cpu_seconds=0.010, calls={"SendMessageBatch": 1}), 512) == 0.055
    assert bill.waited_seconds({"BatchWriteItem": 20, "Query": 2}) == pytest.approx(0.04)


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_a_job_takes_as_many_units_with_dynein(size):
    for number in (1, 99_999_999):
        payload = json_of(size.payload(number))
        job = table_job(payload, partition=Partition(queue="bench", number=PARTITIONS - 1), due=NOW, number=number)
        assert largest_row_bytes("1") + len(payload) - 1 == size.row_bytes - len("statusSCHEDULED")
        assert {write_units(row_bytes(row)) for row in (rows.job_row(job), job_row(job))} == {
            write_units(size.row_bytes)
        }


@pytest.fixture
def costs():
    """A bill of steps that are simple: one write a job, a fence read a call, a tick's send for ten."""
    steps = {bill.named("tick", 0, USUAL): Step(jobs=0, writes=1)}
    for load in map(bill.Load, bill.RATES):
        ticked = min(1200, load.ticked)
        steps[bill.named("tick", ticked, USUAL)] = Step(jobs=ticked, sent=ticked // 10)
    for by in ("direct", "invoked", "http", "buffered"):
        for jobs in (1, 10, bill.CALL_JOBS):
            steps[bill.named(by, Route.TABLE, jobs, USUAL)] = Step(jobs=jobs, writes=jobs, reads=1)
            steps[bill.named(by, Route.DIRECT, jobs, USUAL)] = Step(jobs=jobs, sent=1, grouped=1)
    steps[bill.named("ingest", 500, 20, USUAL)] = Step(jobs=500, writes=500)
    row_bytes = {size.name: size.row_bytes for size in SIZES}
    return bill.Costs(steps=steps, biller=BILLER, row_bytes=row_bytes)


def test_table_route_pays_for_storage(costs):
    assert costs.dueline(bill.Way("direct", 10, Route.DIRECT)) == pytest.approx(0.05, abs=0.001)
    a_day, a_month = (costs.dueline(bill.Way("direct", 10), days=days) for days in (1, 31))
    assert a_month - a_day == pytest.approx(BILLER.kept(1024, days=30))
    # A write, a fence read for ten, and a tick's send for ten; the tick's own time is little.
    assert a_day - BILLER.kept(1024, days=1 + 7 + 2) == pytest.approx(0.625 + 0.0125 + 0.04, abs=0.03)


def test_ways_differ_by_what_they_call(costs):
    direct, invoked, http, buffered = (
        costs.dueline(bill.Way(by, 1)) for by in ("direct", "invoked", "http", "buffered")
    )
    ingest = BILLER.invocation(costs.steps[bill.named("ingest", 500, 20, USUAL)])
    assert ingest == pytest.approx(0.625, abs=0.01)
    assert buffered - invoked == pytest.approx(2 * (0.04 + 0.01) + ingest)
    assert invoked - direct == pytest.approx(0.20)
    assert http - invoked == pytest.approx(1.00 + BILLER.logs(274 + LOG_EVENT_BYTES))


def test_scheduler_has_a_free_tier():
    assert bill.scheduler_bill(bill.Load(1)) == 0.40
    assert bill.scheduler_bill(None) == pytest.approx(1.40)
    assert bill.scheduler_bill(bill.Load(100)) == pytest.approx(0.40 + 1 - 14e6 / (100 * 730 * 3600))
