"""CPU per job: the server that answers, and what is computed of what was measured."""

import json
from contextlib import closing
from datetime import UTC, datetime

import boto3
import pytest

from bench.cpu import PART, material
from bench.cpu.answers import Answers, Stock
from bench.cpu.figures import (
    BATCHED,
    BOTO3,
    DYNEIN,
    HTTP,
    INGEST,
    INGEST_FEW,
    OURS,
    SUBMIT,
    TICK,
    WORKER,
    measured,
    ratio,
)
from bench.cpu.floors import ByHttp, by_boto3
from bench.cpu.loopback import answering
from bench.cpu.process import rounds
from bench.cpu.profiling import OTHER, SEND, SERIALIZE, SIGN, group_of, shares
from bench.cpu.profiling import OURS as OWN
from dueline.aws.dynamodb.table import DynamoTable
from dueline.aws.sqs.inbox import SqsInbox
from dueline.aws.sqs.queue import SqsQueue
from dueline.aws.transport import connections, sending, signature
from dueline.model import rows
from dueline.model.message import Message

JOBS = material.jobs(1200, due=datetime(2026, 11, 21, 7, 5, tzinfo=UTC))
URLS = "https://sqs.us-east-1.amazonaws.com/123456789012/"
PARAMETER = {"Name": "/dueline/dueline/queues/emails"}


@pytest.fixture(scope="module")
def loopback(tmp_path_factory):
    with answering(material.stock(JOBS, queue_urls=URLS), folder=tmp_path_factory.mktemp("stock")) as running:
        yield running


@pytest.fixture
def a_client(loopback):
    keys = {"aws_access_key_id": "a", "aws_secret_access_key": "s", "region_name": "us-east-1"}
    return lambda service: boto3.client(service, endpoint_url=loopback.endpoint, **keys)


@pytest.fixture
def table(a_client):
    return DynamoTable(a_client("dynamodb"), "jobs", state="state")


def test_a_page_holds_what_was_put_into_the_stock_and_the_next_one_goes_on(table):
    one = table.page(material.PARTITION, after=rows.FIRST, until="9")
    other = table.page(material.PARTITION, after=str(one.rows[-1]["sk"]), until="9")
    none = table.page(material.PARTITION, after=str(other.rows[-1]["sk"]), until="9")
    assert [rows.read_job(row).id for row in [*one.rows, *other.rows]] == [job.id for job in JOBS]
    assert (one.more, other.more, none.more) == (True, False, False)
    assert not none.rows
    assert len(table.page(material.PARTITION, after=rows.FIRST, until="9", limit=100).rows) == 100


def test_rows_are_taken_and_none_is_there(table):
    assert table.write([rows.job_row(job) for job in JOBS[:25]]) == []
    reading = table.read([rows.job_key(job.id) for job in JOBS[:3]])
    assert not reading.rows
    assert not reading.unread


def test_a_lease_is_granted_to_whoever_asks(table):
    state = table.take(material.PARTITION, owner="me", now="1", lease="2", fence="3")
    assert (state.owner, state.lease, state.fence) == ("me", "2", "3")


def test_messages_are_sent_received_with_a_receipt_each_and_deleted(a_client):
    sqs, url = a_client("sqs"), f"{URLS}dueline_emails"
    assert SqsQueue(sqs, url).send([Message.of(job) for job in JOBS[:10]]) == []
    inbox = SqsInbox(sqs, url, patient=sqs)
    arrivals = [each for _ in range(3) for each in inbox.receive(most=10, wait=0)]
    assert [each.message.job() for each in arrivals] == JOBS[:30]
    assert len({each.receipt for each in arrivals}) == 30
    assert inbox.delete([each.receipt for each in arrivals[:10]]) == []


def test_a_body_that_looks_like_entries_is_one_entry():
    body = json.dumps({"Entries": [{"Id": "0", "MessageBody": json.dumps({"Id": "1"})}]}).encode()
    assert len(json.loads(Answers(Stock()).to("AmazonSQS.SendMessageBatch", body))["Successful"]) == 1


def test_parameters_are_told(a_client):
    assert "partitions" in json.loads(a_client("ssm").get_parameter(**PARAMETER)["Parameter"]["Value"])


def test_what_was_asked_is_noted_and_asked_again_by_both_floors(loopback, a_client):
    loopback.record()
    a_client("ssm").get_parameter(**PARAMETER)
    asked = loopback.recorded()
    loopback.record()
    by_boto3(asked, {"ssm": a_client("ssm")}, spread=map)()
    with closing(ByHttp(asked, port=loopback.port)) as by_http:
        by_http()
    again = loopback.recorded()
    assert asked == [("AmazonSSM.GetParameter", json.dumps(PARAMETER))]
    assert again == asked * 2
    assert loopback.seconds() > 0


def test_a_job_of_the_material_is_one_write_unit_and_nearly_as_large_as_that_allows():
    assert all(sum(len(name) + len(str(value)) for name, value in rows.job_row(job).items()) > 950 for job in JOBS[:9])
    assert all("payload" in rows.job_row(job) for job in JOBS)


def test_contenders_take_turns_until_the_time_is_over():
    turns = []

    def step(name):
        return lambda: turns.append(name) or (2, 1.0)

    all = {"tick": {who: step(who) for who in ("one", "other")}}
    taken = rounds(all, until=4.5, now=iter(range(100)).__next__)
    assert turns == ["one", "other"] * (len(turns) // 2)
    assert taken == {"tick": {"one": [0.5] * (len(turns) // 2), "other": [0.5] * (len(turns) // 2)}}


def test_what_is_built_in_counts_for_whoever_calls_it():
    send, dump = ("/lib/urllib3/connection.py", 1, "send"), ("/lib/botocore/serialize.py", 1, "dump")
    built_in = ("~", 0, "<built-in>")
    stats = {
        send: (1, 1, 1.0, 3.0, {}),
        dump: (1, 1, 2.0, 3.0, {}),
        built_in: (2, 2, 5.0, 5.0, {send: (1, 1, 4.0, 4.0), dump: (1, 1, 1.0, 1.0)}),
    }
    found = shares(stats)
    assert found["groups"] == {SEND: 0.625, SERIALIZE: 0.375}
    assert found["top"][0] == ("<built-in>", 0.625)
    assert group_of("/lib/python3.11/threading.py") == OTHER


@pytest.mark.parametrize(("module", "group"), [(signature, SIGN), (sending, SEND), (connections, SEND), (rows, OWN)])
def test_what_signs_and_sends_in_place_of_botocore_is_told_with_what_it_does(module, group):
    assert group_of(module.__file__) == group


def told(*, tick, boto3):
    step = {OURS: [tick] * 3, BOTO3: [boto3] * 3, HTTP: [1e-6] * 3, DYNEIN: [1e-3] * 3, BATCHED: [5e-4] * 3}
    share = {"groups": {SEND: 0.6, SERIALIZE: 0.4}, "top": [["send", 0.5]]}
    profiles = {name: {OURS: share, BOTO3: share} for name in (TICK, INGEST)}
    taken = dict.fromkeys((SUBMIT, INGEST_FEW, INGEST, TICK, WORKER), step)
    shared = {name: {OURS: [tick] * 3, BOTO3: [boto3] * 3} for name in (TICK, INGEST)}
    return {"seconds_a_job": taken, "shared": shared, "apart": {"server": 1.0, "measured": 2.0}, "profiles": profiles}


def test_ratios_are_those_of_the_rounds_and_not_of_the_medians():
    assert ratio([1.0, 10.0, 2.0], [2.0, 20.0, 1.0]) == 2.0


@pytest.mark.parametrize(
    ("tick", "boto3", "met"),
    [
        (1e-4, 8e-5, {"to its bare boto3 calls": True, "jobs a CPU second": True}),
        (1.01e-4, 8e-5, {"to its bare boto3 calls": False, "jobs a CPU second": False}),
    ],
)
def test_targets_are_met_from_their_bound_on_and_say_why_not(tick, boto3, met):
    targets = measured(told(tick=tick, boto3=boto3)).targets
    assert {each.what.split(", ")[-1]: each.is_met for each in targets} == met
    assert all("send" in each.why and "60%" in each.why for each in targets)


def test_the_tables_tell_every_step_and_survive_json():
    figures = json.loads(json.dumps(measured(told(tick=1e-4, boto3=1e-4)).figures))
    text = PART.markdown(figures)
    assert "| tick | 10,000 | 10,000 | 1,000,000 | 1,000 | 2,000 |" in text
    assert all(f"| {step} |" in text for step in (SUBMIT, INGEST_FEW, INGEST, TICK, WORKER))
    assert f"| {SEND} | 60.0 |" in text
