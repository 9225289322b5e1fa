"""What every table keeps of schedules, on every engine: changes, how far they are planned, and pages of heads."""

from dataclasses import replace
from datetime import timedelta

import pytest

from dueline.core import instant, rows
from dueline.core.ports import ScheduleChange
from dueline.core.rows import CHANGE_CANCELLATIONS, MOST_SCHEDULES, count_key, head_key
from tests.builders import EMAILS, NOW, an_id
from tests.contract.engines import TABLES, TABLES_WITH_TRANSACTIONS

ON_ALL = pytest.mark.parametrize("engine", TABLES, indirect=True)
TRANSACTING = pytest.mark.parametrize("engine", TABLES_WITH_TRANSACTIONS, indirect=True)
FENCE, LATER = instant.text(NOW), instant.text(NOW + timedelta(minutes=1))


def a_head(name="digest", *, generation=1, planned_to=FENCE, **more):
    pk, sk = head_key("emails", name)
    return {"pk": pk, "sk": sk, "generation": generation, "planned_to": planned_to, "packed": b"{}", **more}


def a_change(*, head=None, generation=1, planned_to=FENCE, **more):
    """Return the change of a head of that generation and with that `planned_to` to the next one."""
    new = a_head(generation=generation + 1, planned_to=LATER) if head is None else head
    conditions = {"state": rows.state_key(EMAILS), "fence_below": LATER} | more
    return ScheduleChange(head=new, generation=generation, planned_to=planned_to, **conditions)


def a_creation(name="digest", **more):
    return ScheduleChange(head=a_head(name), generation=0, planned_to="", counted=1, **more)


def cancellations(count):
    ids = [an_id(due=NOW + timedelta(minutes=2 + number)) for number in range(count)]
    return [{**rows.cancellation_row(id, at=NOW), "exact": True} for id in ids]


def read(table, *keys):
    existing = table.read(list(keys)).rows
    return [existing.get(key) for key in keys]


def head_of(table, name="digest"):
    return read(table, head_key("emails", name))[0]


def count_of(table):
    return read(table, count_key("emails"))[0]["count"]


@TRANSACTING
def test_change_writes_head_and_cancellations(table):
    table.change(a_creation())
    ended = cancellations(CHANGE_CANCELLATIONS)
    assert table.change(a_change(cancellations=ended))
    assert head_of(table) == a_head(generation=2, planned_to=LATER)
    assert read(table, *map(rows.key, ended)) == ended


@TRANSACTING
@pytest.mark.parametrize(("read_as", "is_as_read"), [((1, FENCE), True), ((2, FENCE), False), ((1, LATER), False)])
def test_change_needs_the_head_as_it_was_read(table, read_as, is_as_read):
    table.change(a_creation())
    ended, (generation, planned_to) = cancellations(1), read_as
    new = a_head(generation=5, planned_to=LATER)
    change = a_change(head=new, generation=generation, planned_to=planned_to, cancellations=ended, counted=1)
    assert table.change(change) is is_as_read
    assert head_of(table) == (new if is_as_read else a_head())
    assert read(table, rows.key(ended[0])) == (ended if is_as_read else [None])
    assert count_of(table) == (2 if is_as_read else 1)


@TRANSACTING
@pytest.mark.parametrize(("fence", "takes_effect"), [(None, True), ("", True), (FENCE, True), (LATER, False)])
def test_change_needs_a_lower_fence(table, fence, takes_effect):
    table.change(a_creation())
    if fence == "":
        table.write([{"pk": str(EMAILS), "sk": rows.STATE, "cursor": "0"}])
    elif fence:
        table.acquire_lease(EMAILS, owner="tick", now=FENCE, lease=FENCE, fence=fence)
    ended = cancellations(1)
    assert table.change(a_change(cancellations=ended)) is takes_effect
    assert read(table, rows.key(ended[0])) == (ended if takes_effect else [None])


@TRANSACTING
def test_change_makes_a_cancellation_exact(table):
    table.change(a_creation())
    (ended,) = cancellations(1)
    there = {**ended, "at": instant.text(NOW - timedelta(hours=1)), "exact": False, "moved_to": str(an_id())}
    table.write([there])
    assert table.change(a_change(cancellations=[ended]))
    assert read(table, rows.key(ended)) == [{**there, "exact": True}]


@TRANSACTING
def test_schedules_of_a_queue_are_limited(table):
    pk, sk = count_key("emails")
    table.write([{"pk": pk, "sk": sk, "count": MOST_SCHEDULES - 2}])
    assert [table.change(a_creation("once")) for _ in range(2)] == [True, False]
    assert table.change(a_creation("last"))
    assert not table.change(a_creation("one-more"))
    assert head_of(table, "one-more") is None
    deletion = replace(a_change(head=a_head("last", generation=2)), counted=-1)
    assert table.change(deletion)
    assert table.change(a_creation("one-more"))
    assert count_of(table) == MOST_SCHEDULES


@ON_ALL
@pytest.mark.parametrize(("read_as", "is_as_read"), [((1, FENCE), True), ((2, FENCE), False), ((1, LATER), False)])
def test_plan_needs_the_head_as_it_was_read(table, read_as, is_as_read):
    head, (generation, planned_to) = a_head(), read_as
    table.write([head])
    assert table.plan(rows.key(head), generation=generation, planned_to=planned_to, to=LATER) is is_as_read
    assert head_of(table) == (a_head(planned_to=LATER) if is_as_read else head)


@ON_ALL
def test_missing_schedule_is_not_planned(table):
    assert not table.plan(head_key("emails", "digest"), generation=1, planned_to=FENCE, to=LATER)
    assert head_of(table) is None


@ON_ALL
def test_heads_are_paged_by_name(table):
    names = ["-", "0", "Z", "_a", "digest"]
    pk, sk = count_key("emails")
    table.write([a_head(name) for name in reversed(names)] + [{"pk": pk, "sk": sk, "count": 5}])
    table.write([{**a_head("other"), "pk": "texts#schedules"}])
    pages = [table.heads("emails", after="", limit=2)]
    while pages[-1].more:
        pages.append(table.heads("emails", after=str(pages[-1].rows[-1]["sk"]), limit=2))
    assert [row["sk"] for page in pages for row in page.rows] == names
    assert pages[0].rows[0] == a_head("-")
