"""What every table keeps of moves, which are transactions, on every engine that has them."""

from dataclasses import replace
from datetime import timedelta

import pytest

from dueline.core import instant, rows
from dueline.core.ports import KeyChange, MoveOutcome
from dueline.core.rows import moved_to
from dueline.errors import DuelineError
from tests.builders import EMAILS, NOW, a_job, emails
from tests.contract.engines import TABLES_WITH_TRANSACTIONS

pytestmark = pytest.mark.parametrize("engine", TABLES_WITH_TRANSACTIONS, indirect=True)

OTHER = emails(1)


def raise_fence(table, seconds, *, partition=EMAILS):
    fence, now = instant.text(NOW + timedelta(seconds=seconds)), instant.text(NOW)
    table.acquire_lease(partition, owner="tick", now=now, lease=now, fence=fence)


def state(table):
    key = rows.state_key(EMAILS)
    return rows.read_state(table.read([key]).rows.get(key))


def old_and_new():
    return a_job(due=NOW + timedelta(hours=1)), a_job(due=NOW + timedelta(hours=2), partition=OTHER)


def move(table, old, new, *, change=None):
    cancellation, state_key = rows.cancellation_row(old.id, at=NOW, moved_to=new.id), rows.state_key(old.id.partition)
    below = instant.text(old.id.due)
    return table.move(cancellation, rows.job_row(new), state=state_key, fence_below=below, change=change)


def moved(table, old, new):
    """Return what a move writes, as far as it is there."""
    pair = [rows.cancellation_key(old.id), rows.job_key(new.id)]
    existing = table.read(pair).rows
    return [existing.get(key) for key in pair]


@pytest.mark.parametrize("has_state", [False, True])
def test_move_without_a_fence_writes_both_rows(table, has_state):
    old, new = old_and_new()
    if has_state:
        table.write([{"pk": str(EMAILS), "sk": rows.STATE, "cursor": "0"}])
    assert move(table, old, new) is MoveOutcome.DONE
    cancellation = rows.cancellation_row(old.id, at=NOW, moved_to=new.id)
    assert moved(table, old, new) == [cancellation, rows.job_row(new)]
    assert state(table).fence == ""


@pytest.mark.parametrize(("fence", "moves"), [(3599.999, True), (3600, False), (3600.001, False)])
def test_move_needs_a_lower_fence(table, fence, moves):
    old, new = old_and_new()
    raise_fence(table, fence)
    raise_fence(table, 5000, partition=OTHER)
    before = state(table)
    assert move(table, old, new) is (MoveOutcome.DONE if moves else MoveOutcome.REFUSED)
    assert [row is not None for row in moved(table, old, new)] == [moves] * 2
    assert state(table) == before


def test_job_is_moved_once(table):
    old, new = old_and_new()
    assert move(table, old, new) is MoveOutcome.DONE
    assert move(table, old, new) is MoveOutcome.REFUSED
    assert move(table, old, a_job()) is MoveOutcome.REFUSED
    assert moved_to(moved(table, old, new)[0]) == new.id


def named_pair():
    """Return a job that has a key, its row, and the job that is to take its place and its key."""
    old, new = (replace(job, key="a key") for job in old_and_new())
    return old, rows.name_row(old, call="c", content="5f"), new


@pytest.mark.parametrize("more", [{}, {"calls": "[]", "call": "d", "content": "60"}])
def test_move_changes_the_row_of_a_key(table, more):
    old, row, new = named_pair()
    table.write([{**row, "shared": True}])
    changed = {**rows.moved_key_row(new), **more}
    assert move(table, old, new, change=KeyChange(expected=row["id"], row=changed)) is MoveOutcome.DONE
    assert table.read([rows.key(row)]).rows[rows.key(row)] == {**row, **changed}
    assert moved_to(moved(table, old, new)[0]) == new.id


@pytest.mark.parametrize("is_there", [True, False])
def test_changed_key_refuses_a_move(table, is_there):
    old, row, new = named_pair()
    if is_there:
        table.write([{**row, "id": "another"}])
    change = KeyChange(expected=row["id"], row=rows.moved_key_row(new))
    assert move(table, old, new, change=change) is MoveOutcome.KEY_CHANGED
    assert moved(table, old, new) == [None, None]
    assert table.read([rows.key(row)]).rows == ({rows.key(row): {**row, "id": "another"}} if is_there else {})
    table.add(rows.cancellation_row(old.id, at=NOW))
    assert move(table, old, new, change=change) is MoveOutcome.REFUSED


def test_move_of_one_row_twice_is_refused(table):
    old, _ = old_and_new()
    cancellation = rows.cancellation_row(old.id, at=NOW)
    with pytest.raises((ValueError, DuelineError)):
        table.move(cancellation, cancellation, state=rows.state_key(EMAILS), fence_below="9")
    assert list(table.page(EMAILS, after=rows.FIRST, until="~").rows) == []
