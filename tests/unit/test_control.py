"""Pause and rate: set while workers run, and never one in the other's way."""

from datetime import timedelta

import pytest

from dueline.core import rows
from dueline.core.overview import Control, read_control
from dueline.core.ports import BatchRead
from dueline.core.queue_settings import Rate
from dueline.core.rows import paused_key, rate_key, slots_key
from dueline.errors import Unavailable
from dueline.operations import control
from dueline.testing import MemoryTable
from tests.builders import NOW
from tests.wire import Wire, done_in_part, meanwhile, on, straight

RATE = Rate(jobs=50)
LATER = NOW + timedelta(seconds=1)
CHANGES = {
    "pause": lambda table: control.pause("emails", table=table, now=NOW),
    "resume": lambda table: control.resume("emails", table=table, now=NOW),
    "set_rate": lambda table: control.set_rate("emails", RATE, table=table, now=NOW),
    "lift": lambda table: control.set_rate("emails", None, table=table, now=NOW),
}
EVERY_CHANGE = pytest.mark.parametrize("change", CHANGES.values(), ids=list(CHANGES))


@pytest.fixture
def wire():
    return Wire()


@pytest.fixture
def table(wire):
    return wire.to("table", MemoryTable())


def held(table, queue="emails"):
    return read_control(queue, table=table)


def test_other_queues_are_neither_paused_nor_limited(table):
    assert held(table) == Control(paused=False, rate=None, rate_set="")
    control.pause("emails", table=table, now=NOW)
    control.set_rate("emails", RATE, table=table, now=NOW)
    assert held(table, "emails-vip") == Control()


def test_rate_holds_until_it_is_lifted(table):
    set_rate = control.set_rate("emails", RATE, table=table, now=NOW)
    assert set_rate == held(table) == Control(rate=RATE, rate_set="2026-11-21T07:05:00.000Z")
    assert control.set_rate("emails", Rate(jobs=1), table=table, now=LATER).rate_set == "2026-11-21T07:05:01.000Z"
    assert control.set_rate("emails", None, table=table, now=LATER).rate is None
    assert held(table).rate is None


def test_same_rate_again_keeps_its_slots(table):
    control.set_rate("emails", RATE, table=table, now=NOW)
    assert control.set_rate("emails", Rate.parse("50/s"), table=table, now=LATER) == held(table)
    assert held(table).rate_set == "2026-11-21T07:05:00.000Z"


def test_a_pause_leaves_the_rate_as_it_is_and_a_rate_the_pause(table):
    control.set_rate("emails", RATE, table=table, now=NOW)
    control.pause("emails", table=table, now=LATER)
    assert held(table) == Control(paused=True, rate=RATE, rate_set="2026-11-21T07:05:00.000Z")
    control.set_rate("emails", None, table=table, now=LATER)
    assert held(table).paused


def test_rate_set_during_a_pause_is_kept(table, wire):
    wire.around = on("table.write", meanwhile(lambda: control.set_rate("emails", RATE, table=table, now=NOW)), times=1)
    assert control.pause("emails", table=table, now=NOW).rate == RATE
    assert (held(table).paused, held(table).rate) == (True, RATE)


@EVERY_CHANGE
def test_what_was_left_unwritten_is_unavailable(table, wire, change):
    before = control.set_rate("emails", Rate(jobs=1), table=table, now=NOW)
    wire.around = on("table.write", done_in_part)
    with pytest.raises(Unavailable, match="left unwritten"):
        change(table)
    wire.around = straight
    assert held(table) == before


@EVERY_CHANGE
def test_control_is_read_consistently_after_a_change(table, wire, change):
    control.set_rate("emails", Rate(jobs=1), table=table, now=NOW)
    observed = []
    wire.around = lambda call: (observed.append((call.name, call.kwargs.get("consistent"))), straight(call))[1]
    change(table)
    assert observed[-2:] == [("table.write", None), ("table.read", True)]


@pytest.mark.parametrize("key", [paused_key("emails"), rate_key("emails")])
def test_what_was_left_unread_is_never_taken_for_none(table, wire, key):
    wire.around = on("table.read", lambda call: BatchRead(unread=frozenset([key])))
    with pytest.raises(Unavailable, match="'emails' could not be read"):
        held(table)


@pytest.mark.parametrize("row", [{"rate": "fast", "at": "1"}, {"rate": "", "at": "1"}, {"rate": "5/s"}])
def test_a_rate_that_cannot_be_read_is_never_taken_for_no_limit(table, row):
    pk, sk = rate_key("emails")
    table.write([{"pk": pk, "sk": sk, **row}])
    with pytest.raises(Unavailable, match=r"'!rate'.* cannot be read"):
        held(table)


@pytest.mark.parametrize("consistent", [False, True])
def test_pause_and_rate_are_read_in_one_request(table, wire, consistent):
    observed = []
    wire.around = lambda call: (observed.append((call.name, call.kwargs)), straight(call))[1]
    read_control("emails", table=table, consistent=consistent)
    assert observed == [("table.read", {"consistent": consistent})]


def test_what_controls_a_queue_is_never_collected(table):
    for change in CHANGES.values():
        change(table)
    assert table.expired(now=NOW + timedelta(days=100_000)) == []


def test_slots_have_a_partition_key_of_their_own():
    partition_key, _ = slots_key("emails", "now")
    assert partition_key == "emails#rate"
    assert partition_key not in {paused_key("emails")[0], rate_key("emails")[0]}
    assert paused_key("emails")[0] == rate_key("emails")[0] == "emails#control"
    assert rows.idempotency_key("emails", "rate")[0] != partition_key
