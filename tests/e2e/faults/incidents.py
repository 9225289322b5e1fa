"""What goes wrong at the desk of a deployment, and what people do about it."""

import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx

from dueline.aws.dynamodb.items import item, key_item
from dueline.model import rows
from dueline.model.job import Partition
from local.signed import Signed
from tests.builders import a_job
from tests.e2e.faults.desk import Desk
from tests.e2e.faults.exchange import Answer, Exchange, straight
from tests.e2e.faults.mishaps import failed
from tests.e2e.inbox import HANG_SECONDS, wait_until, wait_until_ingested

Step = Callable[[Desk], Any]


def nothing(_: Desk) -> None:
    pass


def stop(function: str) -> Step:
    def step(desk: Desk) -> None:
        name = desk.names.function(function)
        desk.emulator.client("lambda").put_function_concurrency(FunctionName=name, ReservedConcurrentExecutions=0)

    return step


def _forget(desk: Desk, partition: Partition) -> None:
    """Let a partition be as if no tick had come yet: what one has passed, no other reads again."""
    key = key_item(rows.state_key(partition))
    desk.emulator.client("dynamodb").delete_item(TableName=desk.names.state, Key=key)


def _let_wait(desk: Desk, queue: str, *late: timedelta) -> None:
    """Put jobs into the table that were due so long ago, and that no tick has seen."""
    now, partition = datetime.now(UTC).replace(microsecond=0), Partition(queue=queue, number=0)
    for each in late:
        row = rows.job_row(a_job(partition=partition, due=now - each, uid=str(uuid.uuid4())))
        desk.emulator.client("dynamodb").put_item(TableName=desk.names.table, Item=item(row))
    _forget(desk, partition)


def stop_ticks_before_the_first(desk: Desk) -> None:
    stop("tick")(desk)
    _forget(desk, Partition(queue="emails", number=0))


def let_tick(desk: Desk) -> None:
    desk.tick("emails", 0)


def fail_a_tick(desk: Desk) -> None:
    """Let a tick fail as a whole: it is told no partition."""
    desk.invoke("tick", {"queue": "emails"})


def disable_a_schedule(desk: Desk) -> None:
    scheduler = desk.emulator.client("scheduler")
    told = scheduler.get_schedule(GroupName=desk.names.schedule_group, Name="invoices.1")
    kept = ("GroupName", "Name", "ScheduleExpression", "FlexibleTimeWindow", "Target")
    scheduler.update_schedule(**{name: told[name] for name in kept}, State="DISABLED")


def turn_off(function: str) -> Step:
    def step(desk: Desk) -> None:
        client, name = desk.emulator.client("lambda"), desk.names.function(function)
        [mapping] = client.list_event_source_mappings(FunctionName=name)["EventSourceMappings"]
        client.update_event_source_mapping(UUID=mapping["UUID"], Enabled=False)

    return step


def _send_no_job(desk: Desk) -> None:
    desk.emulator.client("sqs").send_message(QueueUrl=_url(desk, desk.names.inbound), MessageBody="no job")


def send_while_ingest_is_off(desk: Desk) -> None:
    turn_off("ingest")(desk)
    _send_no_job(desk)


def let_ingest(desk: Desk) -> None:
    wait_until_ingested(desk.emulator, _url(desk, desk.names.inbound))


def let_reject(desk: Desk) -> None:
    _send_no_job(desk)
    let_ingest(desk)


def _url(desk: Desk, queue: str) -> str:
    return str(desk.emulator.client("sqs").get_queue_url(QueueName=queue)["QueueUrl"])


def put(queue: str, **told: str) -> Step:
    """Put a message into a dead-letter queue."""

    def step(desk: Desk) -> None:
        attributes = {name: {"DataType": "String", "StringValue": value} for name, value in told.items()}
        asked: Any = {"MessageBody": "{}", "MessageAttributes": attributes}
        desk.emulator.client("sqs").send_message(QueueUrl=_url(desk, queue.format(desk.names.deployment)), **asked)

    return step


def _second_refused(exchange: Exchange) -> Answer | None:
    """Let SQS take the first of several messages and refuse the others, as it does to those without the right."""
    if exchange.operation != "SendMessageBatch":
        return exchange.pass_on()
    asked = exchange.asked()
    first, *others = asked["Entries"]
    sent = exchange.pass_on({**asked, "Entries": [first]}).told()["Successful"] if others else []
    why = {"Code": "AccessDenied", "Message": "not by you", "SenderFault": True}
    return Answer.of({"Successful": sent, "Failed": [{"Id": each["Id"], **why} for each in others or [first]]})


def refuse_what_is_late(desk: Desk) -> None:
    desk.proxy.around = _second_refused
    _let_wait(desk, "emails", timedelta(seconds=120), timedelta(seconds=90))
    desk.tick("emails", 0)


def refuse_no_more(desk: Desk) -> None:
    desk.proxy.around = straight
    desk.tick("emails", 0)


def let_come_late(desk: Desk) -> None:
    _let_wait(desk, "emails", timedelta(seconds=90))
    desk.tick("emails", 0)


def fail_a_request(desk: Desk) -> None:
    desk.proxy.around = failed
    answer = httpx.get(f"{desk.api}/queues/emails", auth=Signed(), timeout=HANG_SECONDS)
    desk.proxy.around = straight
    assert answer.status_code == 503


def park_while_the_queue_is_gone(desk: Desk) -> None:
    sqs, name = desk.emulator.client("sqs"), desk.names.queue("doomed")
    sqs.delete_queue(QueueUrl=_url(desk, name))
    _let_wait(desk, "doomed", timedelta(seconds=5))
    desk.tick("doomed", 0)
    sqs.create_queue(QueueName=name)


def comes_to_its_queue(desk: Desk) -> None:
    sqs, url = desk.emulator.client("sqs"), _url(desk, desk.names.queue("doomed"))
    assert wait_until(lambda: "Messages" in sqs.receive_message(QueueUrl=url))


def guard_what_waits_for_hours(desk: Desk) -> None:
    stop("tick")(desk)
    _let_wait(desk, "invoices", timedelta(hours=7))
    desk.invoke("ttl", {})


def catch_up(desk: Desk) -> None:
    desk.emulator.client("lambda").delete_function_concurrency(FunctionName=desk.names.function("tick"))
    desk.tick("invoices", 0)
    desk.invoke("ttl", {})
    told = desk.emulator.client("dynamodb").describe_time_to_live(TableName=desk.names.table)
    assert told["TimeToLiveDescription"]["TimeToLiveStatus"] == "ENABLED"
