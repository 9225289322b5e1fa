"""Redrive, in memory."""

from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dueline.errors import QueueNotFound, Throttled, Unavailable
from dueline.memory import MemoryQueue, VirtualClock
from dueline.model import instant
from dueline.model.message import AGAIN, ATTEMPTS, ERROR, EXPIRES, ID, REASON, Message
from dueline.operate.dead_letters import BY_SQS, Wanted, to_inbound, to_its_queue
from dueline.operate.redrive import HIDDEN_SECONDS, Ends, Redrive
from dueline.retry.calls import Calls, in_lanes
from dueline.retry.patience import Patience
from tests.builders import NOW, a_job
from tests.system import System
from tests.wire import Wire, done_in_part, failing, losing_the_answer, on, refusing, straight


class Killed(BaseException):
    """Ends a run in the middle of a call."""


class Place:
    """A dead-letter queue, the two levels of its queue, and the wire to them."""

    def __init__(self, *letters):
        self.clock, self.wire = VirtualClock(NOW), Wire()
        self.dead = MemoryQueue(name="dead", clock=self.clock)
        self.levels = [MemoryQueue(name=name, clock=self.clock) for name in ("emails", "emails_p2")]
        for letter in letters:
            self.dead.send([letter])

    def redrive(self, *, rule=None, **given):
        ends = Ends(
            dead_letters=self.wire.to("dead", self.dead),
            queues=[self.wire.to(level.name, level) for level in self.levels],
        )
        calls = Calls(patience=Patience(attempts=3), clock=self.clock, jitter=lambda: 0.5)
        return Redrive(ends, rule=rule or partial(to_its_queue, levels=2), calls=calls, **given)

    def left(self):
        return bodies(self.dead)

    def visible(self):
        return sorted(each.message.body for each in self.dead.deliveries if each.visible <= self.clock.now())

    def moved(self, level=1):
        return bodies(self.levels[level - 1])

    def message(self):
        (delivery,) = self.levels[0].deliveries
        return delivery.message


def bodies(queue):
    return sorted(delivery.message.body for delivery in queue.deliveries)


def a_letter(body="1", *, job=None, **attributes):
    told = {ID: str(a_job().id), ERROR: "KeyError", REASON: "no key", ATTEMPTS: "3"} if job is None else {}
    carried = {} if job is None else Message.of(job).attributes
    named = {f"dueline-{name}": value for name, value in attributes.items()}
    return Message(body=body, attributes={name: value for name, value in (told | carried | named).items() if value})


def numbered(count, **given):
    return [a_letter(f"{number:04}", **given) for number in range(count)]


def counts(done):
    return {kind.error: kind.count for kind in done.kinds}


# A look


def test_a_look_counts_by_error_and_leaves_everything_where_it_is_and_visible():
    place = Place(*numbered(12), *numbered(3, error="TypeError"), a_letter(error=None, reason=None))
    done = place.redrive().look()
    assert counts(done) == {"KeyError": 12, "TypeError": 3, BY_SQS: 1}
    assert (done.found, done.wanted, done.moved) == (16, 16, 0)
    assert len(place.visible()) == 16
    assert place.moved() == []


def test_a_look_tells_when_the_oldest_and_the_newest_were_sent():
    place = Place(a_letter())
    place.clock.sleep(60)
    place.dead.send([a_letter()])
    (kind,) = place.redrive().look().kinds
    assert (kind.oldest, kind.newest) == (NOW, NOW + timedelta(seconds=60))


def test_what_is_with_someone_else_is_told_and_not_waited_for():
    place = Place(*numbered(3))
    place.dead.receive(most=2, wait=0, hidden=600)
    done = place.redrive().look()
    assert (done.found, done.hidden) == (1, 2)


def test_an_empty_queue_is_nothing():
    place = Place()
    done = place.redrive().apply()
    assert (done.found, done.wanted, done.moved, done.kinds) == (0, 0, 0, ())


# What is put back


def test_all_of_many_are_put_back_once_and_none_is_left():
    place = Place(*numbered(257))
    done = place.redrive().apply()
    assert done.moved == 257
    assert place.left() == []
    assert place.moved() == [f"{number:04}" for number in range(257)]


def test_in_lanes_as_well():
    place = Place(*numbered(257))
    assert place.redrive(spread=in_lanes).apply().moved == 257
    assert place.left() == []
    assert len(place.moved()) == 257


def test_a_job_goes_to_its_level_as_it_was_before_it_failed():
    job = a_job(priority=2, tenant="acme")
    place = Place(a_letter(job.payload, job=job, error="KeyError", reason="no key", attempts="3"))
    place.redrive().apply()
    (delivery,) = place.levels[1].deliveries
    assert delivery.message == replace(Message.of(job), group="acme")


def test_a_message_without_a_job_goes_to_level_1():
    place = Place(Message(body="1", attributes={"colour": "green"}), Message(body="2", attributes={}))
    place.redrive().apply()
    assert place.moved() == ["1", "2"]
    assert place.levels[0].deliveries[0].message.attributes == {"colour": "green"}


def test_a_job_of_a_level_that_is_gone_stays_with_the_reason():
    place = Place(a_letter("1", priority="3"), a_letter("2"))
    done = place.redrive().apply()
    assert done.stay == {"the queue has no level 3: it has 2": 1}
    assert (place.visible(), place.moved()) == (["1"], ["2"])


@pytest.mark.parametrize(("before", "after"), [(None, "1"), ("1", "2"), ("x", "1")])
def test_a_job_whose_attempt_was_interrupted_is_marked_to_run_again(before, after):
    place = Place(a_letter(error="Interrupted", again=before))
    place.redrive().apply()
    assert place.message().attributes[AGAIN] == after


def test_no_other_job_is_marked():
    place = Place(a_letter())
    place.redrive().apply()
    assert set(place.message().attributes) == {ID}


# Filters


@pytest.mark.parametrize(
    ("wanted", "moved"),
    [
        ({"errors": frozenset({"TypeError"})}, ["type"]),
        ({"errors": frozenset({"TypeError", "KeyError"})}, ["key", "type"]),
        ({"errors": frozenset({BY_SQS})}, ["sqs"]),
        ({"reason": "key"}, ["key"]),
        ({"ids": frozenset({"an-id"})}, ["sqs"]),
        ({"queue": "emails"}, ["key", "type"]),
        ({"sent_before": NOW + timedelta(seconds=5)}, ["key"]),
        ({"sent_after": NOW + timedelta(seconds=5)}, ["sqs", "type"]),
        ({"reason": "key", "errors": frozenset({"TypeError"})}, []),
    ],
)
def test_only_what_is_wanted_is_put_back_and_the_rest_is_visible_again(wanted, moved):
    place = Place(a_letter("key"))
    place.clock.sleep(10)
    place.dead.send([a_letter("type", error="TypeError", reason="none"), a_letter("sqs", id="an-id", error=None)])
    place.dead.deliveries[-1] = replace(
        place.dead.deliveries[-1], message=Message(body="sqs", attributes={ID: "an-id"})
    )
    done = place.redrive(wanted=Wanted(**wanted)).apply()
    assert place.moved() == moved
    assert done.moved == done.wanted == len(moved)
    assert place.visible() == sorted({"key", "type", "sqs"} - set(moved))


def test_no_more_is_put_back_than_the_limit_and_the_rest_is_visible_again():
    place = Place(*numbered(45))
    assert place.redrive(limit=13).apply().moved == 13
    assert len(place.moved()) == 13
    assert len(place.visible()) == 32


def test_what_stays_does_not_count_towards_the_limit():
    place = Place(*numbered(15, priority="3"), *numbered(5))
    assert place.redrive(limit=5).apply().moved == 5


# Ends


def test_a_job_that_fails_again_at_once_is_put_back_once_only():
    place = Place(*numbered(30))

    def fail_again(call):
        refusals = straight(call)
        place.dead.send([replace(message, attributes={ERROR: "Again"}) for message in call.args[0]])
        return refusals

    place.wire.around = on("emails.send", fail_again)
    assert place.redrive().apply().moved == 30
    assert len(place.left()) == 30


def test_a_depth_that_is_too_high_does_not_keep_it_going():
    place = Place(*numbered(3))
    place.wire.around = on("dead.depth", lambda call: replace(straight(call), waiting=100_000))
    assert place.redrive().apply().moved == 3


def test_what_shows_itself_again_in_a_long_run_is_met_once_and_shown_at_the_end():
    place = Place(*numbered(100, error="TypeError"))
    slow = on("dead.receive", lambda call: [place.clock.sleep(HIDDEN_SECONDS), straight(call)][1], times=12)
    place.wire.around = slow
    done = place.redrive().look()
    assert (done.found, done.wanted) == (100, 100)
    assert len(place.visible()) == 100


def test_progress_is_told():
    place, told = Place(*numbered(95)), []
    place.redrive(on_progress=lambda done, of: told.append((done, of))).apply()
    assert told == [(80, 95), (95, 95)]


# Failures


@pytest.mark.parametrize("final", [True, False])
def test_what_sqs_does_not_take_stays_and_is_visible_again(final):
    place = Place(*numbered(30))
    place.wire.around = on("emails.send", refusing(lambda message: message.body == "0007", final=final))
    done = place.redrive().apply()
    assert (done.moved, done.failed) == (29, {"no": 1})
    assert place.visible() == place.left() == ["0007"]


@pytest.mark.parametrize("name", ["dead.depth", "dead.receive", "dead.delete", "dead.hide", "emails.send"])
@pytest.mark.parametrize("react", [failing(Throttled("slow down")), failing(Unavailable("no"))])
def test_a_call_that_fails_is_tried_again(name, react):
    place = Place(*numbered(25), a_letter("kept", error="TypeError"))
    place.wire.around = on(name, react, times=2)
    place.redrive(wanted=Wanted(errors=frozenset({"KeyError"}))).apply()
    assert len(place.moved()) == 25
    assert place.visible() == ["kept"]


def test_a_message_whose_deletion_was_refused_for_now_is_deleted_at_the_end():
    place = Place(*numbered(10))

    def refuse(call):
        (receipts,) = call.args
        return done_in_part(call._replace(name="dead.send", args=(receipts,)))

    place.wire.around = on("dead.delete", refuse, times=1)
    place.redrive().apply()
    assert place.left() == []
    assert len(place.moved()) == 10


def test_a_queue_that_is_gone_ends_the_run_and_everything_is_visible_again():
    place = Place(*numbered(25))
    place.levels[0].gone = True
    with pytest.raises(QueueNotFound):
        place.redrive().apply()
    assert len(place.visible()) == 25


def after(calls, react, *, ever=False):
    """Let a call be answered by `react` after so many others, and with `ever` all that follow."""
    count = 0

    def around(call):
        nonlocal count
        count += 1
        return react(call) if count == calls + 1 or (ever and count > calls) else straight(call)

    return around


def killed_before(_call):
    raise Killed


def killed_after(call):
    straight(call)
    raise Killed


MISHAPS = [killed_before, killed_after, losing_the_answer, done_in_part, failing(Throttled("slow down"))]


@settings(max_examples=300, deadline=None)
@given(
    count=st.integers(0, 45),
    calls=st.integers(0, 22),
    react=st.sampled_from(MISHAPS),
    ever=st.booleans(),
    limit=st.none() | st.integers(1, 60),
    errors=st.sampled_from([frozenset(), frozenset({"KeyError"})]),
)
def test_nothing_is_lost_whatever_interrupts_it_and_another_run_goes_on(count, calls, react, ever, limit, errors):
    letters = [a_letter(str(n), error=("KeyError", "TypeError")[n % 2], priority=str(1 + n % 2)) for n in range(count)]
    place = Place(*letters)
    everything = {letter.body for letter in letters}
    met = []
    place.wire.around = after(calls, lambda call: met.append(call.name) or react(call), ever=ever)
    with suppress(Killed, Throttled, Unavailable):
        place.redrive(wanted=Wanted(errors=errors), limit=limit).apply()
    assert everything <= {*place.left(), *place.moved(1), *place.moved(2)}
    # Only what is cut off while it shows messages again leaves those hidden that it has not come to.
    if not ever and (react is done_in_part or (react is killed_before and met != ["dead.hide"])):
        assert len(place.left()) == len(place.visible())
    place.wire.around = straight
    place.clock.sleep(HIDDEN_SECONDS)
    place.redrive().apply()
    assert place.left() == []
    assert everything == {*place.moved(1), *place.moved(2)}


# Parked jobs


def parked(system, **given):
    ends = Ends(dead_letters=system.dead_letters, queues=[system.inbound])
    calls = Calls(patience=Patience(), clock=system.clock, jitter=lambda: 0.5)
    given = {"past_retention": False} | given
    return Redrive(ends, rule=partial(to_inbound, now=system.clock.now(), **given), calls=calls)


def test_a_parked_job_goes_its_way_again_through_the_inbound_queue():
    system, job = System(), a_job()
    system.parking.park([job], reason="the queue is gone")
    done = parked(system).apply()
    assert counts(done) == {"the queue is gone": 1}
    (delivery,) = system.inbound.deliveries
    assert delivery.message == Message.of(job, group="emails")
    system.ingest()
    system.clock.sleep(3600)
    system.tick()
    assert system.arrived() == [job.id]
    assert system.parked() == []


def test_a_job_past_its_retention_stays_unless_it_is_told_otherwise():
    system, job = System(), a_job()
    system.parking.park([job], reason="the queue is gone")
    system.clock.sleep(timedelta(days=30).total_seconds())
    done = parked(system).apply()
    assert done.stay == {"the job is past its retention": 1}
    assert system.parked() == [job.id]
    assert parked(system, past_retention=True).apply().moved == 1
    (delivery,) = system.inbound.deliveries
    assert delivery.message.attributes[EXPIRES] == instant.text(system.clock.now() + timedelta(days=1))
    system.tick()
    system.ingest()
    system.tick()
    assert system.arrived() == [job.id]


def test_a_row_that_was_parked_carries_no_job_and_stays():
    system = System()
    system.parking.park_row({"pk": "emails#0"}, reason="no ttl")
    done = parked(system).apply()
    assert list(done.stay.values()) == [1]
    assert len(system.dead_letters.deliveries) == 1
    assert system.inbound.deliveries == []
