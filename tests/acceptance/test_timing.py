"""What is taken for granted of AWS's clocks, limits and prices, and what the library's worker makes of it."""

import json
import random
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from botocore.exceptions import ClientError

from dueline import NewJob
from dueline.core.partitions import SIGNATURE_LIVES
from dueline.core.queue_settings import PLANNER
from tests.acceptance.conftest import IS_AWS
from tests.acceptance.inbox import jobs_of, percentile
from tests.waiting import HANG_SECONDS, wait_until

SKEWED = ("RequestExpired", "InvalidSignatureException", "RequestTimeTooSkewed", "SignatureDoesNotMatch")


@pytest.mark.aws_only("the timers are AWS's own")
def test_sqs_counts_delays_from_acceptance(names, aws, url_of, inbox, figure):
    """By its own timestamps, to within 50 ms, and never less: so a tick that sends at the right moment is punctual."""
    sqs, plain, delays, chance = aws("sqs"), inbox("plain"), {}, random.Random(1)
    url, run = url_of(names.queue("plain")), datetime.now(UTC).isoformat()
    for batch in range(200):
        delay = chance.randint(1, 30)
        bodies = [json.dumps([run, batch, n]) for n in range(10)]
        delays |= dict.fromkeys(bodies, delay)
        entries = [{"Id": str(n), "MessageBody": body, "DelaySeconds": delay} for n, body in enumerate(bodies)]
        sqs.send_message_batch(QueueUrl=url, Entries=entries)
        time.sleep(chance.random() / 10)

    def came():
        return {m.body: (m.visible - m.sent).total_seconds() - delays[m.body] for m in plain.landed if m.body in delays}

    wait_until(lambda: len(came()) == len(delays))
    late = sorted(came().values())
    assert figure("timers: lost", len(delays) - len(late)) == 0
    assert figure("timers: visible before their time", sum(each < 0 for each in late)) == 0
    assert figure("timers: p50, s", percentile(late, 50)) <= 0.05
    assert figure("timers: p95, s", percentile(late, 95)) <= 1.0
    assert figure("timers: most, s", percentile(late, 100)) <= 10


def test_worker_begins_precise_jobs_in_time(client, working, figure, of_scale):
    began, chance = {}, random.Random(2)
    with working("precise", lambda job: began.setdefault(job.id, job)):
        start = datetime.now(UTC) + timedelta(seconds=5)
        dues = [start + timedelta(seconds=of_scale(5, 60)) * chance.random() for _ in range(of_scale(20, 1000))]
        jobs = jobs_of(client.schedule_many("precise", [NewJob(payload=1, at=due) for due in dues]))
        assert wait_until(lambda: {job.id for job in jobs} <= began.keys()), "lost"
    assert figure("precise: certainly early", sum(began[job.id].lateness < 0 for job in jobs)) == 0
    p95 = figure("precise: p95, s", percentile(sorted(began[job.id].lateness for job in jobs), 95))
    assert not IS_AWS or p95 <= 0.05


@pytest.mark.aws_only("the local AWS does not count what AWS bills")
def test_small_job_costs_what_the_model_says(client, names, aws, inbox, figure, table_after):
    count, start, flood = 1000, datetime.now(UTC) - timedelta(minutes=1), inbox("flood")
    at = datetime.now(UTC) + timedelta(seconds=table_after + 120)
    with ThreadPoolExecutor(10) as pool:
        jobs = list(pool.map(lambda n: client.schedule("flood", {"n": n}, at=at), range(count)))
    flood.wait_for(*(job.id for job in jobs), seconds=table_after + HANG_SECONDS)
    # CloudWatch has what happened a few minutes later, by whole minutes.
    time.sleep(300)
    end = datetime.now(UTC)

    def used(service, metric, **of):
        answer = aws("cloudwatch").get_metric_statistics(
            Namespace=f"AWS/{service}",
            MetricName=metric,
            Dimensions=[{"Name": name, "Value": value} for name, value in of.items()],
            Period=60,
            Statistics=["Sum"],
            StartTime=start,
            EndTime=end,
        )
        return float(sum(point["Sum"] for point in answer["Datapoints"]))

    api = aws("ssm").get_parameter(Name=names.api_id_parameter)["Parameter"]["Value"]
    ticks = sum(queue.partitions for queue in (*client.queues(), PLANNER)) * ((end - start) / timedelta(minutes=1))
    reads = sum(used("DynamoDB", "ConsumedReadCapacityUnits", TableName=table) for table in (names.table, names.state))
    logs = sum(used("Logs", "IncomingBytes", LogGroupName=log) for log in (names.access_log, names.function_log("api")))
    writes = used("DynamoDB", "ConsumedWriteCapacityUnits", TableName=names.table)
    sent = used("SQS", "NumberOfMessagesSent", QueueName=names.queue("flood"))
    assert 0.85 <= figure("write units a job", writes / count) <= 1.15
    assert figure("read units a job, less one a tick", (reads - ticks) / count) <= 1.5
    assert 0.85 <= figure("messages a job", sent / count) <= 1.15
    assert 0.85 <= figure("requests a job", used("ApiGateway", "Count", ApiId=api) / count) <= 1.15
    assert figure("bytes of logs a job", logs / count) <= 1.15 * 250


@pytest.mark.aws_only("the local AWS checks no signature's time")
@pytest.mark.parametrize("sign", [1, -1], ids=["ahead", "behind"])
def test_skewed_signature_is_refused(names, session, monkeypatch, sign):
    """A signature may be 15 minutes from AWS's own clock, and no more: that a job is far rests on it."""
    client, skew = session.client("dynamodb"), sign * (SIGNATURE_LIVES + timedelta(minutes=1))
    monkeypatch.setattr("botocore.auth.get_current_datetime", lambda: datetime.now(UTC) + skew)
    with pytest.raises(ClientError) as raised:
        client.get_item(TableName=names.table, Key={"pk": {"S": "skewed"}, "sk": {"S": str(skew)}})
    assert raised.value.response["Error"]["Code"] in SKEWED
