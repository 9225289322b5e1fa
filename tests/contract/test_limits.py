"""AWS's limits hold on every engine that speaks its protocol, whatever it lets pass by itself."""

import pytest
from botocore.exceptions import ClientError

from dueline.aws.dynamodb import DynamoTable
from dueline.errors import DuelineError
from tests.builders import EMAILS, a_message
from tests.contract import limits
from tests.contract.answers import answering
from tests.contract.engines import QUEUES, TABLES_ON_AWS

ON_TABLES = pytest.mark.parametrize("engine", TABLES_ON_AWS, indirect=True)
ON_QUEUES = pytest.mark.parametrize("engine", QUEUES, indirect=True)
ITEM_BYTES, BATCH_BYTES = 400 * 1024, 1024 * 1024


def a_row(sort_key="1", **more):
    return {"pk": str(EMAILS), "sk": sort_key, **more}


def a_row_of(size, *, text="x"):
    """Return a row of that many bytes, names and values together, most of them that text's."""
    left = size - len("pk" + str(EMAILS) + "sk" + "1" + "payload")
    length = len(text.encode())
    return a_row(payload=text * (left // length) + "x" * (left % length))


def a_message_of(size):
    """Return a message of that many bytes, of which 100 are an attribute's name, type and value."""
    return a_message(body="x" * (size - 100), attributes={"colour": "g" * (100 - len("colour" + "String"))})


def keys(page):
    return [row["sk"] for row in page.rows]


def all_of(table):
    return keys(table.page(EMAILS, after="", until="~"))


# Tables

WAYS = pytest.mark.parametrize("way", ["write", "add"])
TEXTS = pytest.mark.parametrize("text", ["x", "é", "€"], ids=["ascii", "two-bytes", "three-bytes"])


def put(table, row, *, way):
    return table.add(row) if way == "add" else table.write([row, a_row("2")])


@ON_TABLES
@WAYS
@TEXTS
def test_row_over_400_kib_is_refused(engine, way, text):
    table = engine.table()
    with pytest.raises(DuelineError, match="Item size has exceeded"):
        put(table, a_row_of(ITEM_BYTES + 1, text=text), way=way)
    assert all_of(table) == []


# moto refuses what has over 405,000 bytes already.
@pytest.mark.parametrize("engine", [each for each in TABLES_ON_AWS if each != "moto"], indirect=True)
@WAYS
@TEXTS
def test_row_of_400_kib_is_written(engine, way, text):
    table = engine.table()
    put(table, a_row_of(ITEM_BYTES, text=text), way=way)
    assert all_of(table)[0] == "1"


@ON_TABLES
def test_page_ends_at_1_mb(engine):
    table = engine.table()
    for key in "12345":
        table.write([a_row(key, payload="x" * 300_000)])
    assert keys(table.page(EMAILS, after="", until="3")) == list("123")
    first = table.page(EMAILS, after="", until="~")
    second = table.page(EMAILS, after=keys(first)[-1], until="~")
    assert (first.more, second.more) == (True, False)
    assert keys(first) + keys(second) == list("12345")


@ON_TABLES
def test_bounds_may_be_equal_but_not_reversed(engine):
    name = engine.new_table()
    DynamoTable(engine.dynamodb, name, state=name).write([a_row("1"), a_row("2")])
    answer = query(engine.dynamodb, low="2", high="2", table=name)
    assert [item["sk"]["S"] for item in answer["Items"]] == ["2"]
    with pytest.raises(ClientError, match=r"ValidationException.*BETWEEN operator requires upper bound"):
        query(engine.dynamodb, low="2", high="1", table=name)


# Queues


@ON_QUEUES
def test_attributes_count_towards_a_batch(engine):
    queue = engine.queue()
    assert len(queue.send([a_message_of(BATCH_BYTES + 1)])) == 1
    assert engine.visible(queue) == []
    assert queue.send([a_message_of(BATCH_BYTES // 2), a_message_of(BATCH_BYTES // 2)]) == []
    assert len(engine.visible(queue)) == 2


@ON_QUEUES
@pytest.mark.parametrize("delay", [-1, 901])
def test_invalid_delay_fails_alone(engine, delay):
    queue = engine.queue()
    (refusal,) = queue.send([a_message(body="1"), a_message(body="2", delay=delay), a_message(body="3")])
    assert (refusal.index, refusal.final) == (1, True)
    assert refusal.reason.startswith("InvalidParameterValue")
    assert sorted(message.body for message in engine.visible(queue)) == ["1", "3"]


# What the suite states by itself, towards an engine that takes whatever it is sent


def write(client, rows):
    return client.batch_write_item(RequestItems={"jobs": [{"PutRequest": {"Item": row}} for row in rows]})


def read(client, keys):
    return client.batch_get_item(RequestItems={"jobs": {"Keys": [AN_ITEM] * keys}})


def put_item(client, item):
    return client.put_item(TableName="jobs", Item=item)


def transact(client, *items):
    return client.transact_write_items(TransactItems=[{"Put": {"TableName": "jobs", "Item": item}} for item in items])


def an_item_of(size):
    """Return an item of that many bytes; of ten digits eight are significant, two a byte, and one byte more."""
    rest = {**AN_ITEM, "ttl": {"N": "1795849500"}, "exact": {"BOOL": True}}
    counted = len("pk" + "emails#0" + "sk" + "1" + "ttl" + "exact" + "payload") + 5 + 1
    return {**rest, "payload": {"S": "x" * (size - counted)}}


def query(client, *, low, high, table="jobs"):
    return client.query(
        TableName=table,
        KeyConditionExpression="pk = :pk AND sk BETWEEN :low AND :high",
        ExpressionAttributeValues={":pk": {"S": str(EMAILS)}, ":low": {"S": low}, ":high": {"S": high}},
    )


def halves_of(size):
    """Return the bodies of two messages of that many bytes, each with an attribute of text: colour, green."""
    left = size - 2 * len("colour" + "String" + "green")
    return "€" * (left // 6), "x" * (left - left // 6 * 3)


def send(client, *bodies, delay=0, **attributes):
    attributes = {name: {"DataType": "String", "StringValue": value} for name, value in attributes.items()}
    more = {"DelaySeconds": delay, "MessageAttributes": attributes}
    entries = [{"Id": f"{index}", "MessageBody": body, **more} for index, body in enumerate(bodies)]
    return client.send_message_batch(QueueUrl="https://sqs/emails", Entries=entries)


AN_ITEM = {"pk": {"S": "emails#0"}, "sk": {"S": "1"}}
STATED = {
    "rows": ("dynamodb", lambda client, over: write(client, [AN_ITEM] * (25 + over))),
    "bytes of a row": ("dynamodb", lambda client, over: write(client, [AN_ITEM, an_item_of(ITEM_BYTES + over)])),
    "bytes of an added row": ("dynamodb", lambda client, over: put_item(client, an_item_of(ITEM_BYTES + over))),
    "bytes of a row in a transaction": (
        "dynamodb",
        lambda client, over: transact(client, an_item_of(ITEM_BYTES + over)),
    ),
    "rows in a transaction": ("dynamodb", lambda client, over: transact(client, *[AN_ITEM] * (1 + over))),
    "actions of a transaction": (
        "dynamodb",
        lambda client, over: transact(client, *[AN_ITEM | {"sk": {"S": f"{n}"}} for n in range(100 + over)]),
    ),
    "keys": ("dynamodb", lambda client, over: read(client, 100 + over)),
    "bounds": ("dynamodb", lambda client, over: query(client, low="1" + "0" * over, high="1")),
    "messages": ("sqs", lambda client, over: send(client, *["x"] * (10 + over))),
    "no messages": ("sqs", lambda client, over: send(client, *["x"] * (1 - over))),
    "bytes of a batch": ("sqs", lambda client, over: send(client, *halves_of(BATCH_BYTES + over), colour="green")),
    "delay": ("sqs", lambda client, over: send(client, "x", delay=900 + over)),
    "no delay": ("sqs", lambda client, over: send(client, "x", delay=-over)),
}
STATE = {"dynamodb": limits.state_limits_of_dynamodb, "sqs": limits.state_limits_of_sqs}


@pytest.mark.parametrize(("service", "call"), STATED.values(), ids=list(STATED))
def test_request_beyond_a_limit_is_never_sent(service, call):
    sent = []
    client = STATE[service](answering(service, (200, {"Successful": []})))
    client.meta.events.register_first("before-send", lambda **_: sent.append(call))
    call(client, 0)
    assert len(sent) == 1
    assert is_refused(call, client)
    assert len(sent) == 1


def is_refused(call, client):
    try:
        return bool(call(client, 1)["Failed"])
    except ClientError:
        return True
