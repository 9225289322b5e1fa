"""Redriving and deleting dead letters."""

import itertools
import json
import threading
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial

import boto3
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dueline.aws import recovery
from dueline.core import instant
from dueline.core.message import AGAIN, ATTEMPTS, BATCH_MESSAGES, ERROR, EXPIRES, ID, REASON, SCHEMA, Message
from dueline.core.ports import BatchFailure, Pointer
from dueline.core.queue_settings import WorkSettings
from dueline.core.retry import LANES, Calls, Patience, in_lanes
from dueline.errors import DeploymentNotFound, Forbidden, QueueNotFound, Throttled, Unavailable
from dueline.operations.dead_letters import BY_SQS, DeadLetterFilter, to_inbound, to_its_queue
from dueline.operations.redrive import DEAD_AGAIN, HIDDEN_SECONDS, Redrive, RedriveQueues
from dueline.testing import MemoryPayloads, MemoryQueue, VirtualClock
from tests.builders import NOW, a_job, a_queue
from tests.fake_api_server import DROPPED, json_reply
from tests.system import System
from tests.waiting import HANG_SECONDS
from tests.wire import NOT_NOW, Wire, done_in_part, failing, losing_the_answer, meanwhile, on, refusing, straight


class Killed(BaseException):
    """Ends a run in the middle of a call."""


class Place:
    """A dead-letter queue, the two levels of its queue, and the wire to them."""

    def __init__(self, *dead_letter_queue, around=straight):
        self.clock, self.wire = VirtualClock(NOW), Wire()
        self.wire.around = around
        self.dead = MemoryQueue(name="dead", clock=self.clock)
        self.payloads = MemoryPayloads()
        self.levels = [MemoryQueue(name=name, clock=self.clock) for name in ("emails", "emails_p2")]
        for dead_letter in dead_letter_queue:
            self.dead.send([dead_letter])

    def redrive(self, **options):
        ends = RedriveQueues(
            dead_letters=self.wire.to("dead", self.dead),
            queues=[self.wire.to(level.name, level) for level in self.levels],
            payloads=self.wire.to("payloads", self.payloads),
        )
        calls = Calls(patience=Patience(attempts=3), clock=self.clock, jitter=lambda: 0.5)
        return Redrive(ends, rule=partial(to_its_queue, levels=2), calls=calls, **options)

    def failed_run_is_over(self):
        """Let calls succeed again, and what the failed run held be visible."""
        self.wire.around = straight
        self.clock.sleep(HIDDEN_SECONDS)

    def left(self):
        return bodies(self.dead)

    def visible(self):
        return sorted(each.message.body for each in self.dead.deliveries if each.visible <= self.clock.now())

    def moved(self, level=1):
        return bodies(self.levels[level - 1])

    def message(self, level=1):
        (delivery,) = self.levels[level - 1].deliveries
        return delivery.message


def bodies(queue):
    return sorted(delivery.message.body for delivery in queue.deliveries)


def a_dead_letter(body="1", *, job=None, **attributes):
    answer = {ID: str(a_job().id), ERROR: "KeyError", REASON: "no key", ATTEMPTS: "3"} if job is None else {}
    carried = {} if job is None else Message.of(job).attributes
    named = {f"dueline-{name}": value for name, value in attributes.items()}
    return Message(body=body, attributes={name: value for name, value in (answer | carried | named).items() if value})


def numbered(count, **options):
    return [a_dead_letter(f"{number:04}", **options) for number in range(count)]


# A look


def test_look_groups_by_kind_from_oldest_to_newest():
    place = Place(*numbered(3, kind="welcome"), *numbered(1), *numbered(1, kind="welcome", error="NoHandler"))
    place.clock.sleep(60)
    place.dead.send([a_dead_letter()])
    groups = [(each.error, each.kind, each.count, each.oldest, each.newest) for each in place.redrive().look().kinds]
    assert groups == [
        ("KeyError", "welcome", 3, NOW, NOW),
        ("KeyError", "", 2, NOW, NOW + timedelta(seconds=60)),
        ("NoHandler", "welcome", 1, NOW, NOW),
    ]
    assert (len(place.visible()), place.moved()) == (6, [])


def test_messages_in_flight_are_reported():
    place = Place(*numbered(3))
    place.dead.receive(most=2, wait=0, hidden=600)
    done = place.redrive().look()
    assert (done.received, done.hidden) == (1, 2)


# What is put back


@pytest.mark.parametrize("spread", [map, in_lanes])
@pytest.mark.parametrize(("act", "put_back"), [(Redrive.apply, 257), (Redrive.delete, 0)])
def test_many_are_put_back_once_or_deleted(act, put_back, spread):
    place = Place(*numbered(257))
    done = act(place.redrive(spread=spread))
    assert (done.received, done.selected, done.moved, done.failed) == (257, 257, 257, {})
    assert (place.left(), place.moved()) == ([], [f"{number:04}" for number in range(put_back)])


def test_redriven_job_is_as_before_it_failed():
    job = a_job(priority=2, tenant="acme")
    place = Place(a_dead_letter(job.payload, job=job, error="KeyError", reason="no key", attempts="3"))
    place.redrive().apply()
    assert place.message(level=2) == replace(Message.of(job), group="acme")


def test_a_message_without_a_job_goes_to_level_1():
    place = Place(Message(body="1", attributes={"colour": "green"}), Message(body="2", attributes={}))
    place.redrive().apply()
    assert place.moved() == ["1", "2"]
    assert place.levels[0].deliveries[0].message.attributes == {"colour": "green"}


def test_job_of_a_missing_level_stays():
    place = Place(a_dead_letter("1", priority="3"), a_dead_letter("2"))
    done = place.redrive().apply()
    assert done.stay == {"the queue has no priority 3: its lowest is 2": 1}
    assert (place.visible(), place.moved()) == (["1"], ["2"])


def offloaded(payloads, name, *, bucket="payloads", queue="emails"):
    key = payloads.put(f"0032/{queue}/{name}", "1").key
    job = a_job(payload=Pointer(bucket=bucket, key=key).text, offloaded_bytes=1)
    return a_dead_letter(job.payload, job=job, error="KeyError")


def test_redrive_renews_payloads_first():
    place, calls = Place(), []
    mine, gone = offloaded(place.payloads, "mine"), offloaded(place.payloads, "gone")
    foreign = [offloaded(place.payloads, "x", bucket="theirs"), offloaded(place.payloads, "y", queue="sms")]
    del place.payloads.kept["0032/emails/gone"]
    for dead_letter in (mine, gone, *foreign, a_dead_letter("no pointer")):
        place.dead.send([dead_letter])
    place.wire.around = lambda call: [calls.append(call.name), straight(call)][1]
    done = place.redrive().apply()
    assert place.payloads.renewed == {"0032/emails/mine"}
    assert max(i for i, name in enumerate(calls) if name == "payloads.renew") < calls.index("emails.send")
    assert (done.moved, done.stay) == (4, {"its payload is gone": 1})
    assert place.visible() == [gone.body]


@pytest.mark.parametrize(("before", "after"), [(None, "1"), ("1", "2"), ("x", "1")])
def test_interrupted_job_is_marked_to_run_again(before, after):
    place = Place(a_dead_letter(error="Interrupted", again=before))
    place.redrive().apply()
    assert place.message().attributes[AGAIN] == after


def test_long_errors_and_kinds_are_cut():
    long = a_dead_letter(error="e" * 5000, kind="k" * 5000)
    place = Place(long, a_dead_letter(error="e" * 9000, kind="k" * 9000))
    (group,) = place.redrive().look().kinds
    assert (group.error, group.kind) == ("e" * 200, "k" * 200)
    selection = DeadLetterFilter(groups=frozenset({(group.error, group.kind)}))
    assert place.redrive(selection=selection).apply().moved == group.count == 2


# Filters


@pytest.mark.parametrize(
    ("selection", "moved"),
    [
        ({"errors": frozenset({"TypeError"})}, ["type"]),
        ({"errors": frozenset({BY_SQS})}, ["sqs"]),
        ({"kinds": frozenset({"welcome"})}, ["type"]),
        ({"kinds": frozenset({""})}, ["key", "sqs"]),
        ({"groups": frozenset({("TypeError", "welcome"), (BY_SQS, "")})}, ["sqs", "type"]),
        ({"ids": frozenset({"an-id"})}, ["sqs"]),
        ({"queue": "emails"}, ["key", "type"]),
        ({"sent_before": NOW + timedelta(seconds=5)}, ["key"]),
        ({"sent_after": NOW + timedelta(seconds=5)}, ["sqs", "type"]),
        ({"kinds": frozenset({"welcome"}), "errors": frozenset({"KeyError"})}, []),
    ],
)
def test_filter_selects_what_is_put_back(selection, moved):
    place = Place(a_dead_letter("key"))
    place.clock.sleep(10)
    by_sqs = Message(body="sqs", attributes={ID: "an-id"})
    place.dead.send([a_dead_letter("type", error="TypeError", reason="none", kind="welcome"), by_sqs])
    done = place.redrive(selection=DeadLetterFilter(**selection)).apply()
    assert place.moved() == moved
    assert done.moved == done.selected == len(moved)
    assert place.visible() == sorted({"key", "type", "sqs"} - set(moved))


def test_limit_counts_what_is_moved_and_shows_the_rest():
    place = Place(*numbered(15, priority="3"), *numbered(45))
    done = place.redrive(limit=13).apply()
    assert (done.moved, len(place.moved()), done.not_received) == (13, 13, 0)
    assert len(place.visible()) == 47


# Ends


def test_job_with_two_dead_letters_is_put_back_once():
    """As of a worker that died between sending one and deleting the job's message."""
    place = Place(*numbered(3), a_dead_letter("other"))
    place.dead.send([each.message for each in place.dead.deliveries[:3]])
    done = place.redrive().apply()
    assert (done.received, done.moved, done.stay) == (7, 4, {DEAD_AGAIN: 3})
    assert place.moved() == ["0000", "0001", "0002", "other"]
    assert len(place.left()) == 3


@pytest.mark.parametrize("final", [replace, lambda message, **_: message], ids=["by its worker", "by SQS"])
def test_job_that_died_again_is_not_redriven_again(final):
    """A worker moves a failed job with a new reason, SQS one that it delivered too often as it is."""
    place = Place(*numbered(600))

    def fail_again(call):
        refusals = straight(call)
        died = [each for each in call.args[0] if each.body.endswith(("0", "1", "2"))]
        place.dead.send([final(each, attributes=each.attributes | {ERROR: "Again"}) for each in died])
        # SQS keeps no order: what came last may be received first.
        place.dead.deliveries.reverse()
        return refusals

    place.wire.around = on("emails.send", fail_again)
    done = place.redrive().apply()
    assert (done.received, done.selected, done.moved, done.not_received) == (600, 600, 600, 0)
    assert place.moved() == [f"{number:04}" for number in range(600)]
    assert len(place.visible()) == len(place.left()) == 180
    # Those of the last round came after the last receive.
    assert 0 < done.stay[DEAD_AGAIN] <= 180
    assert place.redrive().apply().moved == 180


def test_messages_of_a_lost_receive_are_reported():
    place = Place(*numbered(400), around=on("dead.receive", losing_the_answer, times=2))
    done = place.redrive().apply()
    assert (done.there, done.received, done.moved, done.not_received) == (400, 380, 380, 20)
    place.clock.sleep(HIDDEN_SECONDS)
    assert (place.redrive().apply().moved, place.left()) == (20, [])


def test_reappearing_message_counts_once():
    place = Place(*numbered(100, error="TypeError"))
    place.wire.around = on("dead.receive", meanwhile(lambda: place.clock.sleep(HIDDEN_SECONDS)), times=12)
    done = place.redrive().look()
    assert (done.received, done.selected, len(place.visible())) == (100, 100, 100)


# Failures


def test_refused_message_stays_visible():
    place = Place(*numbered(30), around=on("emails.send", refusing(lambda message: message.body == "0007")))
    done = place.redrive().apply()
    assert (done.moved, done.failed) == (29, {"no": 1})
    assert place.visible() == place.left() == ["0007"]


@pytest.mark.parametrize("name", ["dead.depth", "dead.receive", "dead.delete", "dead.hide", "emails.send"])
def test_a_call_that_fails_is_tried_again(name):
    react = failing(Throttled("slow down"))
    place = Place(*numbered(25), a_dead_letter("kept", error="TypeError"), around=on(name, react, times=2))
    place.redrive(selection=DeadLetterFilter(errors=frozenset({"KeyError"}))).apply()
    assert (len(place.moved()), place.visible()) == (25, ["kept"])


def refusing_to_delete_one(call):
    """Refuse the first of a batch, and delete the others."""
    (receipts,) = call.args
    call.do(receipts[1:])
    return [BatchFailure(index=0, reason=NOT_NOW, final=False)]


@pytest.mark.parametrize("act", [Redrive.apply, Redrive.delete])
def test_refused_deletion_is_retried_last(act):
    place = Place(*numbered(12), around=on("dead.delete", refusing_to_delete_one, times=1))
    assert (act(place.redrive()).moved, place.left()) == (12, [])


def test_message_that_is_not_deleted_is_reported():
    place = Place(*numbered(12), around=on("dead.delete", refusing_to_delete_one))
    done = place.redrive().delete()
    assert (done.selected, done.moved, done.failed) == (12, 11, {NOT_NOW: 1})
    place.clock.sleep(HIDDEN_SECONDS)
    assert len(place.visible()) == 1


def killed_after(call):
    straight(call)
    raise Killed


MISHAPS = [failing(Killed()), killed_after, losing_the_answer, done_in_part, failing(Throttled("slow down"))]


@settings(max_examples=150, deadline=None)
@given(
    count=st.integers(0, 45),
    calls=st.integers(0, 22),
    react=st.sampled_from(MISHAPS),
    ever=st.booleans(),
    limit=st.none() | st.integers(1, 60),
    errors=st.sampled_from([frozenset(), frozenset({"KeyError"})]),
)
def test_interrupted_run_loses_nothing(count, calls, react, ever, limit, errors):
    place = Place(
        *(a_dead_letter(str(n), error=("KeyError", "TypeError")[n % 2], priority=str(1 + n % 2)) for n in range(count))
    )
    everything, numbers = {*place.left()}, itertools.count()
    fail = range(calls, 1_000_000 if ever else calls + 1)
    place.wire.around = lambda call: react(call) if next(numbers) in fail else straight(call)
    with suppress(Killed, Throttled, Unavailable):
        place.redrive(selection=DeadLetterFilter(errors=errors), limit=limit).apply()
    assert everything <= {*place.left(), *place.moved(1), *place.moved(2)}
    place.failed_run_is_over()
    place.redrive().apply()
    assert (place.left(), {*place.moved(1), *place.moved(2)}) == ([], everything)


def repeats(place):
    return len(place.moved()) - len({*place.moved()})


def test_each_lost_answer_of_a_send_repeats_ten_jobs():
    place = Place(*numbered(200), around=on("emails.send", losing_the_answer, times=2))
    assert place.redrive().apply().moved == 200
    assert repeats(place) == 20


def test_run_that_ends_repeats_eighty_jobs_at_most():
    together = threading.Barrier(LANES)

    def around(call):
        if call.name == "dead.delete":
            raise Forbidden("not any more")
        refusals = straight(call)
        if call.name == "emails.send":
            # Each lane has sent its ten before any of them goes on.
            together.wait(HANG_SECONDS)
        return refusals

    place = Place(*numbered(400), around=around)
    with pytest.raises(Forbidden):
        place.redrive(spread=in_lanes).apply()
    place.failed_run_is_over()
    place.redrive().apply()
    assert ({*place.moved()}, place.left()) == ({f"{number:04}" for number in range(400)}, [])
    assert repeats(place) == LANES * BATCH_MESSAGES == 80


# Parked jobs


def parked(system, *, past_retention=False):
    ends = RedriveQueues(dead_letters=system.dead_letters, queues=[system.inbound])
    calls = Calls(patience=Patience(), clock=system.clock, jitter=lambda: 0.5)
    rule = partial(to_inbound, now=system.clock.now(), past_retention=past_retention)
    return Redrive(ends, rule=rule, calls=calls)


PARKED = a_job()


@pytest.fixture
def system():
    """A deployment that parked a job."""
    system = System()
    system.parking.park([PARKED], reason="the queue is gone")
    return system


def test_parked_job_is_sent_inbound_again(system):
    assert [(kind.error, kind.count) for kind in parked(system).apply().kinds] == [("the queue is gone", 1)]
    (delivery,) = system.inbound.deliveries
    assert delivery.message == Message.of(PARKED, group="emails")
    system.ingest()
    system.clock.sleep(3600)
    system.tick()
    assert (system.arrived(), system.parked()) == ([PARKED.id], [])


def test_expired_job_stays_unless_allowed(system):
    system.clock.sleep(timedelta(days=30).total_seconds())
    done = parked(system).apply()
    assert done.stay == {"the job is past its retention": 1}
    assert system.parked() == [PARKED.id]
    assert parked(system, past_retention=True).apply().moved == 1
    (delivery,) = system.inbound.deliveries
    assert delivery.message.attributes[EXPIRES] == instant.text(system.clock.now() + timedelta(days=1))
    system.tick()
    system.ingest()
    system.tick()
    assert system.arrived() == [PARKED.id]


def test_parked_row_stays(system):
    system.parking.park_row({"pk": "emails#0", "sk": "junk#job"}, reason="no ttl")
    done = parked(system).apply()
    assert (done.moved, [*done.stay.values()], len(system.dead_letters.deliveries)) == (1, [1], 1)


# How a redrive finds its queues on AWS, over real sockets


URLS = ["https://sqs/1/dueline_emails", "https://sqs/1/dueline_emails_p2"]
QUEUE, SETTINGS = "/dueline/dueline/queues/emails", "/dueline/dueline/settings"


@pytest.fixture
def find(api_server, monkeypatch):
    """Find the queues of a redrive by their deployment and queue, with the fake server for AWS."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", api_server.url)
    return partial(recovery.dead_letters, session=boto3.Session("AKIDEXAMPLE", "s", region_name="eu-west-1"))


def queue_parameter(urls, dead_letters):
    work = WorkSettings(queue=a_queue(), urls=tuple(urls), dead_letters=dead_letters)
    return json_reply({"Parameter": {"Name": QUEUE, "Value": json.dumps(work.to_json())}})


def deployment_parameter(content):
    return json_reply({"Parameters": [{"Name": SETTINGS, "Value": content}]})


def refusal(code, status=400):
    return json_reply({"__type": code, "message": "why"}, status)


def test_queue_parameter_names_dead_letters(api_server, find):
    api_server.script = [queue_parameter(URLS, "https://sqs/1/elsewhere")]
    result = find("dueline", "emails")
    assert [each._url for each in (result.dead_letters, *result.queues)] == ["https://sqs/1/elsewhere", *URLS]
    assert result.payloads._bucket == "dueline-payloads-1-eu-west-1"
    assert api_server.requests[0].json == {"Name": QUEUE}


def test_settings_name_the_parked_jobs(api_server, find):
    settings = {"deployment": "dueline", "queue_urls": "https://sqs/1/", "payloads": "p", "schema": SCHEMA}
    api_server.script = [deployment_parameter(json.dumps({**settings, "direct_horizon": 890, "lookahead": 240}))]
    result = find("dueline", None)
    names = ["dueline-dispatch-dlq", "dueline-inbound"]
    assert [each._url for each in (result.dead_letters, *result.queues)] == [f"https://sqs/1/{name}" for name in names]


@pytest.mark.parametrize(
    ("queue", "answers", "error", "said"),
    [
        ("emails", [refusal("AccessDeniedException")], Forbidden, "finding queue 'emails' of the deployment 'dueline'"),
        (None, [refusal("AccessDeniedException")], Forbidden, "finding the deployment 'dueline'"),
        (None, [DROPPED] * 4, Unavailable, "finding the deployment 'dueline'"),
        ("emails", [refusal("ParameterNotFound")], QueueNotFound, "emails"),
        ("../settings", [], QueueNotFound, "settings"),
        (None, [json_reply({"Parameters": []})], DeploymentNotFound, "dueline"),
        ("emails", [json_reply({"Parameter": {"Name": QUEUE, "Value": "{}"}})], Unavailable, f"{QUEUE} cannot be read"),
        (None, [deployment_parameter('{"schema": 1}')], Unavailable, f"{SETTINGS} cannot be read"),
    ],
)
def test_queues_that_cannot_be_found_are_named(api_server, find, queue, answers, error, said):
    api_server.script = list(answers)
    with pytest.raises(error, match=said):
        find("dueline", queue)
    assert bool(api_server.requests) == bool(answers)


def test_missing_right_is_not_retried(api_server, find):
    urls, dead_letters = [f"{api_server.url}/1/dueline_emails"], f"{api_server.url}/1/dueline_emails_dlq"
    api_server.script = [queue_parameter(urls, dead_letters)]
    ends = find("dueline", "emails")
    for call in (ends.dead_letters.depth, lambda: ends.queues[0].send([Message(body="1")])):
        api_server.script = [refusal("AccessDenied", 403)]
        with pytest.raises(Forbidden, match="AccessDenied"):
            call()
