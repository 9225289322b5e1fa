"""What goes wrong at a deployment, and what people do about it."""

import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx

from dueline.aws.dynamodb_items import item, key_item
from dueline.core import instant, rows
from dueline.core.job import Partition
from tests.builders import a_job
from tests.e2e.chaos.network_faults import failed
from tests.e2e.chaos.proxy import Answer, Exchange, straight
from tests.e2e.deployed import SIGNER
from tests.e2e.inbox import wait_until_ingested
from tests.e2e.runbooks.on_call import OnCall
from tests.waiting import HANG_SECONDS, wait_until

Step = Callable[[OnCall], Any]


def nothing(_: OnCall) -> None:
    pass


def stop(function: str) -> Step:
    def step(on_call: OnCall) -> None:
        name = on_call.names.function(function)
        on_call.emulator.client("lambda").put_function_concurrency(FunctionName=name, ReservedConcurrentExecutions=0)

    return step


def _forget(on_call: OnCall, partition: Partition) -> None:
    """Let a partition be as if no tick had come yet: what one has passed, no other reads again."""
    key = key_item(rows.state_key(partition))
    on_call.emulator.client("dynamodb").delete_item(TableName=on_call.names.state, Key=key)


def _let_wait(on_call: OnCall, queue: str, *late: timedelta) -> None:
    """Put jobs into the table that were due so long ago, and that no tick has seen."""
    now, partition = datetime.now(UTC).replace(microsecond=0), Partition(queue=queue, number=0)
    for each in late:
        row = rows.job_row(a_job(partition=partition, due=now - each, uid=str(uuid.uuid4())))
        on_call.emulator.client("dynamodb").put_item(TableName=on_call.names.table, Item=item(row))
    _forget(on_call, partition)


def stop_ticks_before_the_first(on_call: OnCall) -> None:
    stop("tick")(on_call)
    _forget(on_call, Partition(queue="emails", number=0))


def let_tick(on_call: OnCall) -> None:
    on_call.tick("emails", 0)


def stop_the_watch(on_call: OnCall) -> None:
    """Let the watch be stopped for longer than it may be silent."""
    stop("watch")(on_call)
    at = instant.text(datetime.now(UTC) - timedelta(minutes=20))
    note = {"pk": rows.WATCH, "sk": rows.TICKS, "at": at, "count": 0}
    on_call.emulator.client("dynamodb").put_item(TableName=on_call.names.state, Item=item(note))


def let_watch(on_call: OnCall) -> None:
    on_call.invoke("watch", {})


def fail_a_tick(on_call: OnCall) -> None:
    """Let a tick fail as a whole: its input names no partition."""
    on_call.invoke("tick", {"queue": "emails"})


def disable_a_schedule(on_call: OnCall) -> None:
    scheduler = on_call.emulator.client("scheduler")
    schedule = scheduler.get_schedule(GroupName=on_call.names.schedule_group, Name="invoices.1")
    kept = ("GroupName", "Name", "ScheduleExpression", "FlexibleTimeWindow", "Target")
    scheduler.update_schedule(**{name: schedule[name] for name in kept}, State="DISABLED")


def turn_off(function: str) -> Step:
    def step(on_call: OnCall) -> None:
        client, name = on_call.emulator.client("lambda"), on_call.names.function(function)
        [mapping] = client.list_event_source_mappings(FunctionName=name)["EventSourceMappings"]
        client.update_event_source_mapping(UUID=mapping["UUID"], Enabled=False)

    return step


def _send_no_job(on_call: OnCall) -> None:
    on_call.emulator.client("sqs").send_message(QueueUrl=_url(on_call, on_call.names.inbound), MessageBody="no job")


def send_while_ingest_is_off(on_call: OnCall) -> None:
    turn_off("ingest")(on_call)
    _send_no_job(on_call)


def let_ingest(on_call: OnCall) -> None:
    wait_until_ingested(on_call.emulator, _url(on_call, on_call.names.inbound))


def let_reject(on_call: OnCall) -> None:
    _send_no_job(on_call)
    let_ingest(on_call)


def _url(on_call: OnCall, queue: str) -> str:
    return str(on_call.emulator.client("sqs").get_queue_url(QueueName=queue)["QueueUrl"])


def put(queue: str, **named: str) -> Step:
    """Put a message into a dead-letter queue."""

    def step(on_call: OnCall) -> None:
        attributes = {name: {"DataType": "String", "StringValue": value} for name, value in named.items()}
        message: Any = {"MessageBody": "{}", "MessageAttributes": attributes}
        on_call.emulator.client("sqs").send_message(
            QueueUrl=_url(on_call, queue.format(on_call.names.deployment)), **message
        )

    return step


def _second_refused(exchange: Exchange) -> Answer | None:
    """Let SQS take the first of several messages and refuse the others, as it does to those without the right."""
    if exchange.operation != "SendMessageBatch":
        return exchange.pass_on()
    request = exchange.json()
    first, *others = request["Entries"]
    sent = exchange.pass_on({**request, "Entries": [first]}).json()["Successful"] if others else []
    why = {"Code": "AccessDenied", "Message": "not by you", "SenderFault": True}
    return Answer.of({"Successful": sent, "Failed": [{"Id": each["Id"], **why} for each in others or [first]]})


def refuse_what_is_late(on_call: OnCall) -> None:
    on_call.proxy.around = _second_refused
    _let_wait(on_call, "emails", timedelta(seconds=120), timedelta(seconds=90))
    on_call.tick("emails", 0)


def refuse_no_more(on_call: OnCall) -> None:
    on_call.proxy.around = straight
    on_call.tick("emails", 0)


def let_come_late(on_call: OnCall) -> None:
    _let_wait(on_call, "emails", timedelta(seconds=90))
    on_call.tick("emails", 0)


def fail_a_request(on_call: OnCall) -> None:
    on_call.proxy.around = failed
    answer = httpx.get(f"{on_call.api}/queues/emails", auth=SIGNER, timeout=HANG_SECONDS)
    on_call.proxy.around = straight
    assert answer.status_code == 503


def park_while_the_queue_is_gone(on_call: OnCall) -> None:
    sqs, name = on_call.emulator.client("sqs"), on_call.names.queue("doomed")
    sqs.delete_queue(QueueUrl=_url(on_call, name))
    _let_wait(on_call, "doomed", timedelta(seconds=5))
    on_call.tick("doomed", 0)
    sqs.create_queue(QueueName=name)


def comes_to_its_queue(on_call: OnCall) -> None:
    sqs, url = on_call.emulator.client("sqs"), _url(on_call, on_call.names.queue("doomed"))
    assert wait_until(lambda: "Messages" in sqs.receive_message(QueueUrl=url))


def guard_what_waits_for_hours(on_call: OnCall) -> None:
    stop("tick")(on_call)
    _let_wait(on_call, "invoices", timedelta(hours=7))
    on_call.invoke("watch", {})


def catch_up(on_call: OnCall) -> None:
    on_call.emulator.client("lambda").delete_function_concurrency(FunctionName=on_call.names.function("tick"))
    on_call.tick("invoices", 0)
    on_call.invoke("watch", {})
    ttl = on_call.emulator.client("dynamodb").describe_time_to_live(TableName=on_call.names.table)
    assert ttl["TimeToLiveDescription"]["TimeToLiveStatus"] == "ENABLED"
