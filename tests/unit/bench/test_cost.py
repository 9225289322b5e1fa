"""The bill of a job: what is counted, how it is rounded, what it is multiplied with."""

import json
from datetime import date

import boto3
import pytest
from moto import mock_aws

from bench.cost import prices as price_list
from bench.cost.bill import Biller, Terms, billed_seconds, lines, waited_seconds
from bench.cost.deployed import Deployed, filled_in, hold
from bench.cost.exchange import Exchange, sqs_requests
from bench.cost.lingering import lingering
from bench.cost.meter import Meter
from bench.cost.payloads import JSON, PARTITIONS, SIZES, a_job, json_of, largest_row_bytes
from bench.cost.plan import Load
from bench.cost.step import LOG_EVENT_BYTES, NotAsCharged, Step, step_of
from bench.cost.ways import together
from bench.dynein import job_row
from dueline.aws.sqs.queue import SqsQueue
from dueline.model import rows
from dueline.model.job import Partition
from dueline.model.units import write_units
from tests.builders import NOW, a_message
from tests.contract.limits import item_bytes

PRICES = price_list.prices()
DEPLOYED = Deployed(
    memory_mb=512,
    batch_size=500,
    window_seconds=1,
    queue_alarms=5,
    core_alarms=8,
    queue_metrics=6,
    core_metrics=4,
    access_log_bytes=274,
    log_days=30,
    is_traced=False,
    logs_its_platform=True,
)


def a_biller(**overrides):
    given = {"prices": PRICES, "deployed": DEPLOYED, "terms": Terms.on_demand(PRICES)}
    return Biller(**(given | overrides))


def an_exchange(operation, body, *, units=0.0, service="dynamodb", **answer):
    answer = {"ConsumedCapacity": {"CapacityUnits": units}, **answer}
    return Exchange(
        service=service, operation=operation, asked=json.dumps(body).encode(), answer_bytes=7, answer=answer
    )


def a_send(*bodies, group=None):
    grouped = {"MessageGroupId": group} if group else {}
    return an_exchange(
        "SendMessageBatch", {"Entries": [{"MessageBody": body, **grouped} for body in bodies]}, service="sqs"
    )


def test_every_price_has_a_source_and_the_day_on_which_it_was_read():
    for price in price_list.written_down().values():
        assert price.source.startswith("https://aws.amazon.com/")
        assert price.unit
        assert date(2026, 1, 1) <= date.fromisoformat(price.read)


def test_a_price_that_nothing_asks_for_or_that_is_missing_is_refused(tmp_path, monkeypatch):
    told = json.loads(price_list.PATH.read_text())
    told["prices"]["sqs_millions"] = told["prices"].pop("sqs_million")
    other = tmp_path / "prices.json"
    other.write_text(json.dumps(told))
    monkeypatch.setattr(price_list, "PATH", other)
    with pytest.raises(ValueError, match="sqs_million, sqs_millions"):
        price_list.prices()


@pytest.mark.parametrize(("size", "charged"), [(0, 1), (64 * 1024, 1), (64 * 1024 + 1, 2), (256 * 1024, 4)])
def test_sqs_charges_each_64_kb_of_a_request(size, charged):
    assert sqs_requests(size) == charged
    assert a_send("x" * size).charged_requests == charged


def test_the_messages_of_a_batch_are_charged_together_with_their_attributes():
    attributes = {"dueline-id": {"DataType": "String", "StringValue": "x" * (64 * 1024)}}
    body = {"Entries": [{"MessageBody": "{}", "MessageAttributes": attributes}]}
    assert an_exchange("SendMessageBatch", body, service="sqs").charged_requests == 2
    assert a_send(*["x" * 6000] * 10).charged_requests == 1
    assert a_send(*["x" * 7000] * 10).charged_requests == 2


@pytest.mark.parametrize(("size", "consistent", "units"), [(4096, True, 1), (4097, True, 2), (4097, False, 1)])
def test_a_page_is_charged_by_4_kb_of_all_its_rows_and_half_where_it_may_be_stale(size, consistent, units):
    rows_found = [{"a": {"S": "x" * (size // 2 - 1)}}, {"a": {"S": "x" * (size - size // 2 - 1)}}]
    page = an_exchange("Query", {"ConsistentRead": consistent}, Items=rows_found, units=units)
    assert sum(map(item_bytes, rows_found)) == size
    assert page.units_by_size == units
    assert page.items == 2


def test_a_page_of_nothing_is_charged_the_least_although_the_engine_says_nothing():
    assert an_exchange("Query", {"ConsistentRead": True}, Items=[]).reads == 1
    assert an_exchange("Query", {"ConsistentRead": False}, Items=[]).reads == 0.5


def test_units_that_the_sizes_do_not_make_are_refused():
    item = {"pk": {"S": "x" * 1100}}
    put = {"RequestItems": {"jobs": [{"PutRequest": {"Item": item}}, {"PutRequest": {"Item": item}}]}}
    assert step_of([an_exchange("BatchWriteItem", put, units=4.0)], jobs=2).writes == 4
    with pytest.raises(NotAsCharged, match=r"charges 2\.0 units, by size they are 4\.0"):
        step_of([an_exchange("BatchWriteItem", put, units=2.0)], jobs=2)


def test_the_hook_counts_each_request_its_messages_and_its_bytes(monkeypatch):
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
    assert step.calls == {"SendMessageBatch": 2}
    assert step.items == {"SendMessageBatch": 11}
    assert (step.sent, step.grouped) == (2, 1)
    assert step.bytes_out == sum(len(each.asked) for each in exchanges) > 1000
    assert step.bytes_in > 0
    assert step.charged_log_bytes == 8 + 2 * LOG_EVENT_BYTES


def test_a_step_is_billed_by_its_share_of_a_job():
    step = Step(jobs=10, writes=10, reads=2.5, sent=1, grouped=1)
    billed = a_biller().requests(step)
    expected = {"DynamoDB writes": 0.625, "DynamoDB reads": 0.03125, "SQS requests": 0.04, "SQS fair queues": 0.01}
    assert billed == pytest.approx(expected)


def test_provisioned_capacity_is_made_use_of_to_70_percent():
    terms = Terms.provisioned(PRICES)
    assert terms.writes == pytest.approx(0.00065 / (3600 * 0.7) * 1_000_000)
    assert terms.reads == pytest.approx(terms.writes / 5)


def test_the_state_table_is_on_demand_whatever_the_jobs_table_is():
    step = Step(jobs=1, writes=3, reads=2, state_writes=1, state_reads=1)
    terms = Terms.provisioned(PRICES)
    billed = a_biller(terms=terms).requests(step)
    assert billed["DynamoDB writes"] == pytest.approx(2 * terms.writes + 0.625)
    assert billed["DynamoDB reads"] == pytest.approx(terms.reads + 0.125)
    fence = {"RequestItems": {"dueline-state": {"Keys": [{}], "ConsistentRead": True}}}
    state_update, update = ({"TableName": name} for name in ("dueline-state", "dueline-jobs"))
    step = step_of(
        [an_exchange("BatchGetItem", fence, units=1.0)]
        + [an_exchange("UpdateItem", each, units=1.0) for each in (state_update, update)],
        jobs=1,
    )
    assert (step.reads, step.state_reads, step.writes, step.state_writes) == (1, 1, 2, 1)


def test_a_function_is_billed_whole_milliseconds_of_its_share_of_a_processor_and_of_waiting():
    assert billed_seconds(Step(jobs=1, cpu_seconds=0.001), 1769) == 0.001
    assert billed_seconds(Step(jobs=1, cpu_seconds=0.0011), 1769) == 0.002
    assert billed_seconds(Step(jobs=1, cpu_seconds=0.010, calls={"SendMessageBatch": 1}), 512) == 0.055
    assert waited_seconds({"BatchWriteItem": 20, "Query": 2}) == pytest.approx(0.04)


def test_an_invocation_is_billed_its_time_and_what_is_logged_of_it():
    step = Step(jobs=100, cpu_seconds=0.1, logged=1000, lines=2)
    billed = a_biller().invocation(step)
    gb_seconds = billed_seconds(step, 512) / 2
    assert billed["Lambda"] == pytest.approx((0.20 + gb_seconds * 13.3334) / 100)
    quiet = a_biller(deployed=Deployed(**{**as_dict(DEPLOYED), "logs_its_platform": False})).invocation(step)
    assert quiet["logs"] == pytest.approx((1000 + 2 * LOG_EVENT_BYTES) / 1000 * (0.5 + 0.03 * 30 / (365 / 12)) / 100)
    assert billed["logs"] > quiet["logs"]


def as_dict(deployed):
    return {name: getattr(deployed, name) for name in Deployed.__dataclass_fields__}


def test_a_row_is_kept_with_100_bytes_more():
    kept = a_biller().kept(900, days=365 / 12)
    assert kept == pytest.approx({"storage": 0.25, "point-in-time recovery": 0.20})
    rarely_read = a_biller(terms=Terms.infrequent(PRICES)).kept(900, days=365 / 12)
    assert rarely_read == pytest.approx({"storage": 0.10})


def test_nothing_costs_no_line():
    assert lines({"HTTP API": 0.0}) == {}


@pytest.mark.parametrize(
    ("rate", "partitions", "ingested", "ticked", "polled"),
    [(1, 1, 1, 60, 1), (100, 1, 20, 6000, 100), (10_000, 20, 500, 30_000, 100)],
)
def test_a_rate_makes_the_batches(rate, partitions, ingested, ticked, polled):
    load = Load(rate=rate)
    assert (load.partitions, load.ingested.jobs) == (partitions, ingested)
    assert (load.ticked, load.polled) == (ticked, polled)


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_a_job_of_a_size_takes_as_many_units_with_dynein_as_with_us(size):
    for number in (1, 99_999_999):
        partition = Partition(queue="bench", number=PARTITIONS - 1)
        job = a_job(json_of(size.payload(number)), partition=partition, due=NOW, number=number)
        unpacked = largest_row_bytes("1") + len(json_of(size.payload(number))) - 1
        assert unpacked == size.row_bytes - len("statusSCHEDULED")
        assert write_units(rows.job_row(job)) == write_units(job_row(job)) == -(-size.row_bytes // 1024)


def test_a_payload_of_json_is_as_large_as_one_of_random_letters_and_packs_better():
    usual = next(size for size in SIZES if size.row_bytes == JSON.row_bytes)
    asis = [json_of(size.payload(5)) for size in (usual, JSON)]
    assert len(asis[0]) == len(asis[1])
    assert largest_row_bytes(asis[1]) < 0.75 * largest_row_bytes(asis[0])


def test_callers_that_come_at_once_and_linger_share_requests():
    assert 2 <= together(lingering()) <= 4


def test_the_access_log_is_filled_in_or_refused():
    assert filled_in("$context.httpMethod $context.status") == "POST 201"
    assert filled_in("$context.httpMethod", httpMethod="GET") == "GET"
    with pytest.raises(ValueError, match="domainName"):
        filled_in("$context.domainName")


@pytest.mark.parametrize("other", [{"batch_size": 1000}, {"window_seconds": 2}, {"is_traced": True}])
def test_what_is_deployed_must_be_what_was_counted(other):
    hold(DEPLOYED, Load(rate=1))
    with pytest.raises(RuntimeError):
        hold(Deployed(**(as_dict(DEPLOYED) | other)), Load(rate=1))
