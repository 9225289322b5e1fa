"""What every table keeps, on every engine; test_move.py has what takes a transaction."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from itertools import product

import pytest

from dueline.core import instant, rows
from dueline.core.job import State
from dueline.core.ports import BatchRead
from dueline.core.rows import PartitionState, slots_key
from dueline.core.status import FINAL, OF_WORKERS, Outcome, outcome_row, read_outcome
from dueline.errors import DuelineError
from tests.builders import EMAILS, NOW, a_job, an_id, emails
from tests.contract.engines import TABLES

pytestmark = pytest.mark.parametrize("engine", TABLES, indirect=True)

REFUSED = (ValueError, DuelineError)
ALL = {"after": rows.FIRST, "until": "~"}
OTHER = emails(1)


def a_row(sort_key, **more):
    return {"pk": str(EMAILS), "sk": sort_key, **more}


def keys(page):
    return [row["sk"] for row in page.rows]


def at(seconds):
    return instant.text(NOW + timedelta(seconds=seconds))


# write and read


@pytest.mark.parametrize("payload", ['"\\u00e9 plain"', "x" * 5000], ids=["plain", "packed"])
@pytest.mark.parametrize("method", ["write", "add"])
def test_row_is_read_as_it_was_written(table, method, payload):
    job = a_job(payload=payload, key="ann 1", kind="welcome", tenant="acme", priority=2)
    row, key = rows.job_row(job), rows.job_key(job.id)
    assert isinstance(row.get("packed"), bytes) == (len(payload) > 1000)
    table.write([row]) if method == "write" else table.add(row)
    assert table.read([key]) == BatchRead(rows={key: row})
    (paged,) = table.page(EMAILS, after="", until="~").rows
    assert paged == row
    assert rows.read_job(paged) == job


def test_batches_hold_25_writes_and_100_reads(table):
    written = [a_row(f"{number:03}") for number in range(100)]
    for start in range(0, 100, 25):
        assert table.write(written[start : start + 25]) == []
    assert len(table.read([rows.key(row) for row in written]).rows) == 100
    assert table.read([]) == BatchRead()


@pytest.mark.parametrize("sort_keys", [[f"{n:03}" for n in range(26)], "121"], ids=["26 rows", "a key twice"])
def test_invalid_batch_write_writes_nothing(table, sort_keys):
    with pytest.raises(REFUSED):
        table.write([a_row(sort_key) for sort_key in sort_keys])
    assert keys(table.page(EMAILS, **ALL)) == []


@pytest.mark.parametrize(
    "sort_keys", [[f"{number:03}" for number in range(101)], "11"], ids=["101 keys", "a key twice"]
)
def test_invalid_batch_read_is_refused(table, sort_keys):
    with pytest.raises(REFUSED):
        table.read([(str(EMAILS), sort_key) for sort_key in sort_keys])


# page


@pytest.mark.parametrize(
    ("after", "until", "expected"),
    [
        ("", "~~", ["!first", "1", "10", "2", "2a", "3", "~"]),
        ("2", "3", ["2a", "3"]),
        *((after, until, []) for after, until in [("2", "2"), ("3", "2"), ("2", "2\0"), ("5", "6")]),
    ],
)
def test_page_has_the_rows_between_bounds(table, after, until, expected):
    """In the order of their sort keys, without the lower bound and with the upper one."""
    table.write([a_row(key) for key in ("3", "1", "2", "2a", "10", "!first", "~")])
    page = table.page(EMAILS, after=after, until=until)
    assert (keys(page), page.more) == (expected, False)


def test_page_may_begin_after_the_longest_key(table):
    longest = "2".ljust(1024, "x")
    table.write([a_row(key) for key in ("1", longest[:-1], longest, "3")])
    assert keys(table.page(EMAILS, after=longest, until="~")) == ["3"]
    assert keys(table.page(EMAILS, after="1", until=longest)) == [longest[:-1], longest]


@pytest.mark.parametrize("limit", [1, 2, 3, 5, 100])
def test_pages_have_no_gaps_or_repeats(table, limit):
    jobs = [a_job(due=NOW) for _ in range(5)]
    table.write([rows.job_row(job) for job in jobs])
    table.write([rows.cancellation_row(jobs[2].id, at=NOW), rows.job_row(a_job(due=NOW + timedelta(milliseconds=1)))])
    collected, page = [], None
    for _ in range(len(jobs) + 2):
        after = collected[-1] if collected else rows.FIRST
        page = table.page(EMAILS, after=after, until=rows.end_of(instant.text(NOW)), limit=limit)
        assert len(page.rows) <= limit
        collected += keys(page)
        if not page.more:
            break
    assert not page.more
    assert collected == sorted([rows.job_key(job.id)[1] for job in jobs] + [rows.cancellation_key(jobs[2].id)[1]])


# add and mark_exact


def test_mark_exact_marks_existing_rows_only(table):
    id, gone = an_id(), an_id(partition=OTHER)
    row = table.add(rows.cancellation_row(id, at=NOW))
    table.mark_exact(rows.cancellation_key(gone))
    assert keys(table.page(OTHER, after="", until="~")) == []
    for _ in range(2):
        table.mark_exact(rows.cancellation_key(id))
        assert table.add(row) == {**row, "exact": True}


# claim and mark_done


def a_claim(**overrides):
    return rows.idempotency_row(a_job(**overrides), "a key", payload_hash="5f")


def test_one_of_concurrent_claims_wins(table):
    claims = [a_claim() for _ in range(16)]
    with ThreadPoolExecutor(8) as pool:
        winners = list(pool.map(lambda row: table.claim(row, now=NOW), claims))
    assert winners.count(winners[0]) == len(claims)
    assert winners[0] in claims


@pytest.mark.parametrize(("seconds", "is_free"), [(-1, False), (0, True), (0.5, True), (1, True)])
def test_key_is_free_again_from_its_ttl_on(table, seconds, is_free):
    first, second = a_claim(expires=NOW + timedelta(hours=2)), a_claim()
    table.claim(first, now=NOW)
    winner = table.claim(second, now=NOW + timedelta(hours=2, seconds=seconds))
    assert winner == (second if is_free else first)


def noted_by(table, row):
    """Return which changes of a key's row are made for the job of that row."""
    key, id = rows.key(row), row["id"]
    changes = {
        "done": table.mark_done(key, id=id),
        "shared": table.share(key, id=id),
        "free": table.release(key, id=id, ttl=1),
    }
    return [name for name, is_made in changes.items() if is_made]


def test_missing_key_is_not_changed(table):
    row = a_claim()
    assert noted_by(table, row) == []
    assert not table.read([rows.key(row)]).rows


def test_released_key_is_free(table):
    first, second = a_claim(), a_claim()
    table.claim(first, now=NOW)
    assert table.release(rows.key(first), id=first["id"], ttl=1)
    assert not table.share(rows.key(first), id=first["id"])
    assert table.claim(second, now=NOW) == second
    assert noted_by(table, first) == []
    assert table.read([rows.key(second)]).rows[rows.key(second)] == second


def test_key_is_taken_over_as_it_was_read(table):
    first, second, third = (rows.name_row(a_job(key="a key"), call=call, content="5f") for call in "abc")
    assert not table.take_over(second, there=first)
    table.claim(first, now=NOW)
    table.share(rows.key(first), id=first["id"])
    assert table.take_over(second, there=first)
    assert not table.take_over(third, there=first)
    assert table.read([rows.key(first)]).rows[rows.key(first)] == second


@pytest.mark.parametrize(("note", "field"), [("share", "shared"), ("mark_done", "done")])
def test_shared_or_done_key_is_not_released(table, note, field):
    row = table.claim(a_claim(), now=NOW)
    assert getattr(table, note)(rows.key(row), id=row["id"])
    assert not table.release(rows.key(row), id=row["id"], ttl=1)
    assert table.claim(a_claim(), now=NOW) == {**row, field: True}


def test_calls_of_a_key_are_changed_from_what_was_read(table):
    row = {**a_claim(), "calls": "[1]"}
    key = rows.key(row)
    table.claim(row, now=NOW)
    assert not table.change_calls(key, before="[2]", after="[3]")
    assert table.change_calls(key, before="[1]", after="[2]")
    assert table.read([key]).rows[key] == {**row, "calls": "[2]"}
    assert not table.change_calls(("emails#0", "there is none"), before="[1]", after="[2]")


# record


def an_outcome(attempts, state, *, started=0, uid="a"):
    """Return the row of an outcome whose attempt began so many seconds after NOW and lasted one."""
    began = NOW + timedelta(seconds=started)
    ended = None if state is State.RUNNING else began + timedelta(seconds=1)
    outcome = Outcome(state=state, attempts=attempts, started=began, ended=ended)
    return outcome_row(an_id(due=NOW, uid=uid), outcome, expires=NOW + timedelta(days=7))


def noted(table, row):
    return table.read([rows.key(row)]).rows.get(rows.key(row))


PAIRS = list(product(OF_WORKERS, repeat=2))


def test_outcomes_are_read_the_last_first(table):
    for uid in "abcd":
        table.record(an_outcome(1, State.FAILED, uid=uid))
    table.record(outcome_row(an_id(partition=OTHER, due=NOW), read_outcome(an_outcome(1, State.FAILED)), expires=NOW))
    first, last = (rows.outcome_key(an_id(due=NOW, uid=uid))[1] for uid in "ac")
    page = table.outcomes(EMAILS, after=first, until=last, limit=100)
    assert (keys(page), page.more) == ([last, last[:-1] + "b"], False)
    page = table.outcomes(EMAILS, after="0", until=last, limit=2)
    assert (keys(page), page.more) == ([last, last[:-1] + "b"], True)


def is_later(there, state):
    return (there, state) != (State.SUCCEEDED, State.SKIPPED)


@pytest.mark.parametrize(
    ("first", "second", "is_put"),
    [
        # 10 is more than 9, though it sorts before it as text.
        ({"attempts": 9, "started": 5}, {"attempts": 10}, is_later),
        ({"attempts": 10}, {"attempts": 9}, lambda there, state: False),
        ({"attempts": 2}, {"attempts": 2}, lambda there, state: there not in FINAL),
        # A dead letter that was put back counts its attempts from 1.
        ({"attempts": 10}, {"attempts": 1, "started": 60}, lambda there, state: there is not State.SUCCEEDED),
        ({"attempts": 10}, {"attempts": 10, "started": 60}, lambda there, state: there is not State.SUCCEEDED),
    ],
    ids=["later", "earlier", "same", "again", "again as often"],
)
def test_outcome_replaces_an_earlier_one(table, first, second, is_put):
    for there, state in PAIRS:
        job = f"{there}-{state}"
        before = {**an_outcome(state=there, uid=job, **first), "error": "TimeoutError"}
        after = an_outcome(state=state, uid=job, **second)
        assert table.record(before), job
        assert table.record(after) is is_put(there, state), job
        assert noted(table, after) == (after if is_put(there, state) else before)


# read_barrier


def test_read_barrier_changes_nothing(table):
    cancellation = rows.cancellation_row(an_id(), at=NOW, moved_to=an_id())
    packed = rows.job_row(a_job(payload="x" * 5000, tenant="acme"))
    table.write([cancellation, packed])
    for row in (cancellation, packed):
        assert [table.read_barrier(rows.key(row)) for _ in range(2)] == [row] * 2
        assert table.read([rows.key(row)]).rows == {rows.key(row): row}
    gone = rows.cancellation_key(an_id())
    assert table.read_barrier(gone) is None
    assert table.read([gone]) == BatchRead()


# take


def take(table, *, owner="me", now=0, lease=30, fence=240, partition=EMAILS):
    return table.acquire_lease(partition, owner=owner, now=at(now), lease=at(lease), fence=at(fence))


def checkpoint(table, *, owner="me", cursor="5", fence=240, lease=30):
    return table.checkpoint(
        EMAILS, owner=owner, cursor=cursor, fence=at(fence), lease="" if lease is None else at(lease)
    )


def state(table):
    key = rows.state_key(EMAILS)
    return rows.read_state(table.read([key]).rows.get(key))


def test_lease_is_taken_over_once_expired(table):
    take(table, owner="another", fence=500, partition=OTHER)
    held = PartitionState(fence=at(240), cursor=rows.FIRST, owner="other", lease=at(30))
    assert take(table, owner="other") == held
    assert take(table, now=29.999, lease=60, fence=270) == held
    assert state(table) == held
    assert take(table, now=30, lease=60, fence=270) == PartitionState(fence=at(270), owner="me", lease=at(60))


def test_released_lease_keeps_cursor_and_fence(table):
    take(table, owner="other")
    assert checkpoint(table, owner="other", cursor="5", lease=None)
    assert state(table) == PartitionState(fence=at(240), cursor="5")
    assert take(table, now=1, lease=31, fence=240) == PartitionState(
        fence=at(240), cursor="5", owner="me", lease=at(31)
    )


@pytest.mark.parametrize("owner", ["other", "me"])
def test_taking_a_lease_never_lowers_the_fence(table, owner):
    take(table, owner=owner)
    before = state(table)
    assert take(table, now=31, lease=61, fence=239.999) == before
    assert state(table) == before


# checkpoint


def test_checkpoint_moves_cursor_lease_and_fence(table):
    take(table)
    assert checkpoint(table, cursor="7", fence=250, lease=40)
    assert state(table) == PartitionState(fence=at(250), cursor="7", owner="me", lease=at(40))


@pytest.mark.parametrize("lease", [40, None])
@pytest.mark.parametrize("falls", [{"cursor": "6"}, {"cursor": "7", "fence": 239}])
def test_checkpoint_never_lowers_cursor_or_fence(table, falls, lease):
    take(table)
    assert checkpoint(table, cursor="7")
    assert checkpoint(table, cursor="7", lease=40)
    before = state(table)
    assert not checkpoint(table, lease=lease, **falls)
    assert state(table) == before


@pytest.mark.parametrize("lease", [40, None])
@pytest.mark.parametrize("holder", ["other", None])
def test_checkpoint_without_the_lease_is_refused(table, lease, holder):
    take(table, owner=holder or "me")
    assert holder or checkpoint(table, lease=None)
    before = state(table)
    assert not checkpoint(table, lease=lease)
    assert state(table) == before


# reserve

SLOTS = slots_key("emails", instant.text(NOW))


def reserve(table, *, now, amount, ttl=2_000_000_000):
    return table.reserve(SLOTS, now=now, amount=amount, ttl=ttl)


def slots(table):
    row = table.read([SLOTS]).rows[SLOTS]
    return {name: value if isinstance(value, str) else int(value) for name, value in row.items()}


def test_reservations_are_consecutive(table):
    reserved, ttls = [], []
    for now, amount, ttl in ((1000, 500, 10), (1000, 1, 20), (1000, 250, 25), (9000, 500, 30)):
        reserved.append(reserve(table, now=now, amount=amount, ttl=ttl))
        ttls.append(slots(table)["ttl"])
    assert reserved == [1500, 1501, 1751, 9500]
    assert ttls == [10, 20, 25, 30]


@pytest.mark.parametrize(("now", "until"), [(1499, 1600), (1500, 1600), (1501, 1601), (9000, 9100), (0, 1600)])
def test_reservation_starts_after_the_last(table, now, until):
    reserve(table, now=1000, amount=500)
    assert reserve(table, now=now, amount=100) == until
    assert slots(table)["until"] == until


def test_concurrent_reservations_never_overlap(table):
    """Some at the very first, when there is no row, and some after a while, when all that was taken is over."""
    slots = []
    with ThreadPoolExecutor(8) as pool:
        for now in (1000, 50_000):
            amounts = [number % 5 + 1 for number in range(15)]
            untils = list(pool.map(lambda amount, now=now: reserve(table, now=now, amount=amount), amounts))
            slots += sorted((until - amount, until) for until, amount in zip(untils, amounts, strict=True))
    ends = [end for _, end in slots]
    assert [begin for begin, _ in slots] == [1000, *ends[:14], 50_000, *ends[15:29]]
