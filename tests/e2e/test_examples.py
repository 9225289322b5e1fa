"""The examples run as they stand, against the deployed template, with no more rights than their policies give."""

import io
import json
import zipfile
from datetime import UTC, datetime

import boto3
import pytest

from dueline import State
from dueline.config.names import Names
from local.emulator import ACCOUNT, REGION
from local.template import ROOT
from tests.e2e.deployed import working
from tests.e2e.emulated_iam import as_the_emulator_takes_it, document_of, key_of
from tests.fake_api_server import Reply, fake_api_server
from tests.waiting import wait_until

NAMES = Names("e2e")


@pytest.fixture
def become(credentials, monkeypatch, emulator):
    """Let this process have the rights of managed policies, and no others."""

    def become(user, *policies):
        id, secret = key_of(emulator, user, *policies)
        monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)  # it would keep the credentials of earlier tests
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", id)
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", secret)

    return become


def example(name, **changes):
    """Run an example up to its `__main__`, in the deployment of the tests, with some words changed."""
    code = (ROOT / "examples" / f"{name}.py").read_text()
    for word, other in changes.items():
        code = code.replace(word, other)
    names = {"__name__": name}
    exec(code.replace(".connect()", '.connect("e2e")').replace("Worker()", 'Worker("e2e")'), names)
    return names


def test_reminder_is_sent_unless_bought(become, client):
    """A receipt, of another kind, fails twice and comes all the same."""
    become("shop", NAMES.policy("reminders", "producer"), NAMES.policy("reminders", "consumer"))
    names, sent, failures = example("reminders", emails="reminders", hours="seconds"), [], [1, 2]

    def send(*, to, text):
        if to == "bob@example.com" and failures:
            raise ConnectionError(f"failure {failures.pop()}")
        sent.append(f"{to}: {text}")

    names["send"] = send
    left = names["cart_left"]("left", "ann@example.com")
    names["cart_left"]("bought", "bob@example.com")
    assert names["cart_left"]("left", "ann@example.com") == left
    names["cart_bought"]("bought", "bob@example.com")
    names["cart_bought"]("never left", "eve@example.com")
    keys = ("cart-left", "receipt-bought", "receipt-never left")
    with working(names["worker"]):
        assert wait_until(lambda: {client.get(queue="reminders", key=key).state for key in keys} == {State.SUCCEEDED})
    assert sorted(sent) == [
        "ann@example.com: Your cart left is still there.",
        "bob@example.com: Thank you for buying cart bought.",
        "eve@example.com: Thank you for buying cart never left.",
    ]
    assert [client.get(queue="reminders", key=key).attempts for key in keys] == [1, 3, 1]


def test_digest_runs_on_schedule_and_demand(become, client):
    become("digests", NAMES.policy("reminders", "producer"), NAMES.policy("reminders", "consumer"))
    names, sent, schedules = example("digests", emails="reminders"), [], client.schedules("reminders")
    names["send"] = lambda *, to, text: sent.append(f"{to}: {text}")
    week = datetime(2026, 11, 2, tzinfo=UTC), datetime(2026, 11, 9, tzinfo=UTC)
    missed = [f"all@example.com: What happened until 2026-11-0{day} 06:00 UTC." for day in range(2, 7)]
    with working(names["worker"]):
        assert wait_until(lambda: "digest" in [each.name for each in schedules.list()])
        try:
            assert names["make_up_for"](*week) == names["make_up_for"](*week)
            assert wait_until(lambda: sorted(sent) == missed), sent
            names["run_now"]()
            assert wait_until(lambda: len(sent) == 6)
        finally:
            schedules.delete("digest")
    assert sent[5].startswith("all@example.com: What happened until 2")


def received_paths(receiver):
    return sorted(request.path for request in receiver.requests)


def test_webhook_is_retried_until_gone(become, client, dead_letter):
    become("hooks", NAMES.policy("reminders", "consumer"))
    names = example("webhooks", webhooks="reminders")
    with fake_api_server() as receiver, working(names["worker"]):
        receiver.script = [Reply(status=503, headers={"retry-after": "1"})]
        receiver.respond = lambda request: Reply(status=410 if request.path == "/gone" else 204)
        for path in ("/busy", "/gone", "/well"):
            client.schedule("reminders", {"url": receiver.url + path, "event": {"path": path}})
            assert wait_until(lambda path=path: path in received_paths(receiver))
        assert wait_until(lambda: received_paths(receiver) == ["/busy", "/busy", "/gone", "/well"])
        assert wait_until(lambda: client.queue("reminders").dead == 1)
    _, attributes = dead_letter("reminders")
    assert attributes["dueline-reason"] == "the receiver answered 410"


def deploy_consumer(emulator, queue_url, *, name, code):
    """Deploy the `handler` of a file, with the rights of the queue's consumers; return the id of its event source."""
    iam, functions, queue = emulator.client("iam"), emulator.client("lambda"), queue_url.rpartition("/")[2]
    trust = {"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"}
    iam.create_role(RoleName=name, AssumeRolePolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [trust]}))
    document = json.dumps(as_the_emulator_takes_it(document_of(iam, f"{queue}_consumer")))
    iam.put_role_policy(RoleName=name, PolicyName="consumer", PolicyDocument=document)
    functions.create_function(
        FunctionName=name,
        Runtime="python3.13",
        Handler=f"{code.stem}.handler",
        Role=f"arn:aws:iam::{ACCOUNT}:role/{name}",
        Code={"ZipFile": _packed(code)},
        # On a busy machine it takes long to start.
        Timeout=60,
        Environment={"Variables": {"POWERTOOLS_SERVICE_NAME": name}},
    )
    source = functions.create_event_source_mapping(
        FunctionName=name,
        EventSourceArn=f"arn:aws:sqs:{REGION}:{ACCOUNT}:{queue}",
        FunctionResponseTypes=["ReportBatchItemFailures"],
    )
    return str(source["UUID"])


def _packed(code):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for source in (ROOT / "dueline").rglob("*.py"):
            archive.write(source, source.relative_to(ROOT))
        archive.write(code, code.name)
    return packed.getvalue()


def test_lambda_function_discards_bad_charges(client, emulator, endpoints, dead_letter):
    queue, code = "billing", ROOT / "examples" / "lambda_consumer.py"
    source = deploy_consumer(emulator, endpoints.queues[queue], name="e2e-billing", code=code)
    good = client.schedule(queue, {"customer": "ann", "cents": 500})
    client.schedule(queue, {"customer": "bob", "cents": 0})
    assert wait_until(lambda: client.get(good.id).state is State.SUCCEEDED)
    assert wait_until(lambda: client.queue(queue).dead == 1)
    emulator.client("lambda").delete_event_source_mapping(UUID=source)
    _, attributes = dead_letter(queue)
    assert (attributes["dueline-error"], attributes["dueline-attempts"]) == ("Discard", "1")
    assert attributes["dueline-reason"] == "cents is 0: it must be 1 or more"
