"""Jobs are sent to their queues, and parked where that can never be."""

import base64
import json
import math
import zlib
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dueline.core import rows
from dueline.core.dispatch import PAST_RETENTION, sweep
from dueline.core.job import State
from dueline.core.message import REASON, job_batches
from dueline.core.request import delay_seconds
from dueline.errors import Throttled, Unavailable
from tests.builders import NOW, a_job, a_queue, due_in
from tests.system import System
from tests.wire import done_in_part, failing, losing_the_answer, meanwhile, on, straight


def dispatch(system, *jobs, until=math.inf, swept_from=None):
    return system.dispatcher("emails").dispatch(jobs, until=until, swept_from=swept_from)


def test_job_past_its_retention_is_parked(system):
    over, last = due_in(-10, expires=NOW), due_in(-10, expires=NOW + timedelta(milliseconds=1))
    sent = dispatch(system, over, last)
    assert [(parked.job, parked.reason) for parked in sent.parked] == [(over, PAST_RETENTION)]
    assert system.dead_letters.deliveries[0].message.attributes[REASON] == PAST_RETENTION
    assert (sent.dispatched, system.arrived()) == ((last,), [last.id])


def test_only_what_was_refused_is_sent_again():
    system, jobs = System(), [due_in(1), due_in(2), due_in(3)]
    system.wire.around = on("emails.send", done_in_part, times=1)
    assert set(dispatch(system, *jobs).dispatched) == set(jobs)
    assert system.arrived() == [jobs[1].id, jobs[2].id, jobs[0].id]


def test_nothing_begins_after_the_time_to_stop(system):
    jobs = [due_in(100) for _ in range(30)]
    system.wire.around = on("emails.send", failing(Throttled("slow down")))
    dispatch(system, *jobs[:1], until=0.35)
    assert system.clock.monotonic() == pytest.approx(0.1 + 0.2)
    system.wire.around = on("emails.send", meanwhile(lambda: system.clock.sleep(5)))
    sent = dispatch(system, *jobs, until=system.clock.monotonic() + 6)
    assert (len(sent.dispatched), sent.unfinished) == (20, tuple(jobs[20:]))


@pytest.mark.parametrize(("jitter", "waited"), [(0.0, 0.75), (1.0, 2.25)])
def test_pauses_are_spread_at_random(system, jitter, waited):
    system.wire.around = on("emails.send", failing(Throttled("slow down")))
    job = due_in(1)
    dispatcher = replace(system.dispatcher("emails"), jitter=lambda: jitter)
    assert dispatcher.dispatch([job], until=math.inf).unfinished == (job,)
    assert system.clock.monotonic() == pytest.approx(waited)


@pytest.mark.parametrize(("seconds", "sent"), [(960, []), (900.1, [900]), (900, [900]), (899.981, [900])])
def test_job_is_sent_once_sqs_can_hold_it(seconds, sent):
    system, job = System(), due_in(seconds)
    result = dispatch(system, job)
    assert (result.unfinished or result.dispatched, system.delays()) == ((job,), sent)


def test_earliest_due_is_sent_first():
    late, soon = [due_in(n, priority=1) for n in range(10, 20)], [due_in(n, priority=3) for n in range(10)]
    assert list(job_batches([*late, *soon])) == [soon, late]


# The sweep


def seconds_of(batch):
    return [(job.id.due - NOW).total_seconds() for job in batch]


def test_sweep_cuts_a_wave_by_fraction():
    """Within 50 ms, ten of one level at most, first what is next by the clock's own fraction."""
    jobs = [due_in(each) for each in (100.9, 160.07, 101, 130.03, 102.05)]
    jobs += [due_in(seconds, priority=2) for seconds in range(200, 212)]
    departures = sweep(jobs, now=NOW + timedelta(milliseconds=5))
    assert [(seconds_of(each.jobs), round(each.after, 3)) for each in departures] == [
        (list(range(200, 210)), 0.016),
        ([210, 211], 0.016),
        ([101, 130.03, 102.05], 0.066),
        ([160.07], 0.086),
        ([100.9], 0.916),
    ]


def test_sweep_begins_with_what_has_just_passed():
    """A herd of one instant is several waves: the next of them does not wait for the second to come round."""
    departures = sweep([due_in(100), due_in(100.03)], now=NOW + timedelta(milliseconds=60))
    assert [(seconds_of(each.jobs), each.after) for each in departures] == [([100, 100.03], 0)]


MILLISECONDS = st.integers(3000, 800_000)


@given(st.lists(MILLISECONDS, min_size=1, max_size=40), st.integers(0, 999_999))
def test_swept_jobs_are_visible_just_after_due(dues, microseconds):
    """Wherever in its second a wave begins, each job is visible 20 to 71 ms after it is due, within a second."""
    began, jobs = NOW + timedelta(microseconds=microseconds), [due_in(each / 1000) for each in dues]
    departures = sweep(jobs, now=began)
    assert len({job.id for each in departures for job in each.jobs}) == len(jobs)
    for each in departures:
        assert 0 <= each.after < 1
        sent = began + timedelta(seconds=each.after)
        for job in each.jobs:
            late = sent + timedelta(seconds=delay_seconds(job.id.due, now=sent)) - job.id.due
            assert timedelta(milliseconds=20) <= late <= timedelta(milliseconds=71)


def test_slow_send_delays_batches_by_itself_alone():
    system, jobs = System(), [due_in(100), due_in(100.2), due_in(100.6)]
    system.wire.around = on("emails.send", lambda call: (straight(call), system.clock.sleep(0.3))[0])
    dispatch(system, *jobs, swept_from=NOW)
    assert system.lateness() == [0.021, 0.121, 0.021]


def test_refused_job_of_a_sweep_is_sent_again_at_once():
    system, job = System(), due_in(100.5)
    system.wire.around = on("emails.send", failing(Throttled("slow down")), times=1)
    assert dispatch(system, job, swept_from=NOW).dispatched == (job,)
    assert system.clock.monotonic() == pytest.approx(0.521 + 0.1)


@pytest.mark.parametrize(("precise", "until"), [(True, math.inf), (False, 1.0)], ids=["precise", "no time"])
def test_wave_is_not_swept_in_vain(precise, until):
    """The workers of a precise queue wait by themselves; and what no time is left for is sent while there is some."""
    system = System(a_queue(precise=precise))
    dispatch(system, due_in(100.9), until=until, swept_from=NOW)
    assert (system.clock.monotonic(), len(system.arrived())) == (0, 1)


# Parking


@pytest.mark.parametrize("name", ["table.write", "dead_letters.send"])
@pytest.mark.parametrize(
    ("react", "left"),
    [(failing(Throttled("slow down")), 2), (failing(Unavailable("no")), 2), (losing_the_answer, 2), (done_in_part, 1)],
)
def test_unparked_jobs_are_unfinished(name, react, left):
    """A job is noted before it is parked."""
    system, jobs = System(), [a_job(), a_job()]
    system.queues["emails"].gone = True
    system.wire.around = on(name, react)
    system.clock.sleep(3600)
    sent = system.dispatcher("emails").dispatch(jobs, until=math.inf)
    assert sent.unfinished == tuple(jobs[:left])
    assert sent.fault.startswith("not parked")
    if name == "table.write" or left == 1:
        assert system.parked() == [job.id for job in jobs[left:]]


def parked_by_a_tick(system, job, other):
    """Let a tick send one job, and park the other; return the message that it parks, and what that has as JSON."""
    system.put(other)
    system.clock.sleep(3600)
    assert system.tick().finished
    assert (system.arrived(), system.look_up(job.id)) == ([other.id], State.PARKED)
    (delivery,) = system.dead_letters.deliveries
    return delivery.message, json.loads(delivery.message.body)


@pytest.mark.parametrize(
    "broken",
    [{"ttl": "soon"}, {"v": 2, "payload": "é" * 190_000}, {"v": 2, "payload": "\x01\ufffe" * 90_000}],
    ids=["small", "large beyond ASCII", "large escaped"],
)
def test_unreadable_row_is_parked_as_json(system, broken):
    """As text it may be over what SQS accepts; its tick goes on all the same, and the letter has all of it."""
    job = a_job()
    row = {**rows.job_row(job), **broken}
    system.table.write([row])
    message, content = parked_by_a_tick(system, job, a_job())
    if "zlib_base64" in content:
        content = json.loads(zlib.decompress(base64.b64decode(content["zlib_base64"])))
    assert (content, list(message.attributes)) == (row, [REASON])


@pytest.mark.parametrize(
    "payload", ['"a\x01\ufffeé"', '"' + "\x01" * 260_000 + '"'], ids=["small", "over 1 MiB escaped"]
)
def test_job_whose_payload_sqs_refuses_is_parked(system, payload):
    """Its partition goes on, the letter has the whole payload, and a look-up says that it was parked."""
    job, other = a_job(payload=payload), a_job()
    system.put(job)
    message, content = parked_by_a_tick(system, job, other)
    assert "InvalidMessageContents" in message.attributes[REASON]
    if "é" in payload:
        assert content == json.loads(payload, strict=False)
        system.ingest_message(message)
        assert system.arrived() == [other.id, job.id]
    else:
        assert rows.read_job({**content, "packed": base64.b64decode(content["packed"])}) == job


@pytest.mark.parametrize("react", [failing(Throttled("slow down")), done_in_part])
def test_unparked_row_stops_its_tick(react):
    system, job = System(), a_job()
    system.table.write([{**rows.job_row(job), "ttl": "soon"}])
    system.clock.sleep(3600)
    system.wire.around = on("dead_letters.send", react)
    assert not system.tick().finished
    assert system.cursor() == rows.FIRST
