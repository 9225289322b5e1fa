"""What every table keeps, on every engine."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from itertools import product

import pytest

from dueline.errors import DuelineError
from dueline.lookup.outcome import FINAL, OF_WORKERS, Outcome, outcome_row
from dueline.model import instant, rows
from dueline.model.control_rows import slots_key
from dueline.model.job import Partition, State
from dueline.model.move_rows import moved_to
from dueline.model.rows import PartitionState
from dueline.ports import Reading
from tests.builders import EMAILS, NOW, a_job, an_id
from tests.contract.engines import TABLES, TABLES_UNDER_THREADS, TABLES_WITH_TRANSACTIONS

ON_ALL = pytest.mark.parametrize("engine", TABLES, indirect=True)
TRANSACTING = pytest.mark.parametrize("engine", TABLES_WITH_TRANSACTIONS, indirect=True)
UNDER_THREADS = pytest.mark.parametrize("engine", TABLES_UNDER_THREADS, indirect=True)

REFUSED = (ValueError, DuelineError)
ALL = {"after": rows.FIRST, "until": "~"}
OTHER = Partition(queue="emails", number=1)


def a_row(sort_key, **more):
    return {"pk": str(EMAILS), "sk": sort_key, **more}


def keys(page):
    return [row["sk"] for row in page.rows]


def at(seconds):
    return instant.text(NOW + timedelta(seconds=seconds))


@pytest.fixture
def table(engine):
    return engine.table()


# write and read


@ON_ALL
def test_a_row_is_read_as_it_was_written(table):
    job = a_job(payload='"\\u00e9 plain"', tenant="acme", priority=2)
    assert table.write([rows.job_row(job)]) == []
    key = rows.job_key(job.id)
    reading = table.read([key])
    assert set(reading.rows) == {key}
    assert rows.read_job(reading.rows[key]) == job
    assert reading.unread == frozenset()


@ON_ALL
@pytest.mark.parametrize("way", ["write", "add"])
def test_a_packed_payload_is_read_as_it_was_written_by_key_and_by_page(table, way):
    job = a_job(payload="x" * 5000, tenant="acme")
    row = rows.job_row(job)
    assert isinstance(row["packed"], bytes)
    if way == "write":
        table.write([row])
    else:
        table.add(row)
    key = rows.job_key(job.id)
    assert table.read([key]).rows[key] == row
    (paged,) = table.page(EMAILS, after="", until="~").rows
    assert paged == row
    assert rows.read_job(paged) == job


@ON_ALL
def test_a_written_row_replaces_an_earlier_one(table):
    table.write([a_row("1", payload="first")])
    table.write([a_row("1", payload="second")])
    assert table.read([(str(EMAILS), "1")]).rows[str(EMAILS), "1"]["payload"] == "second"


@ON_ALL
def test_25_rows_are_written_and_100_keys_read_at_once(table):
    written = [a_row(f"{number:03}") for number in range(100)]
    for start in range(0, 100, 25):
        assert table.write(written[start : start + 25]) == []
    assert len(table.read([rows.key(row) for row in written]).rows) == 100


@ON_ALL
def test_more_rows_than_one_write_takes_are_refused_and_none_is_written(table):
    with pytest.raises(REFUSED):
        table.write([a_row(f"{number:03}") for number in range(26)])
    assert keys(table.page(EMAILS, **ALL)) == []


@ON_ALL
def test_more_keys_than_one_read_takes_are_refused(table):
    with pytest.raises(REFUSED):
        table.read([(str(EMAILS), f"{number:03}") for number in range(101)])


@ON_ALL
def test_a_write_that_names_a_key_twice_is_refused_and_nothing_is_written(table):
    with pytest.raises(REFUSED):
        table.write([a_row("1"), a_row("2"), a_row("1")])
    assert keys(table.page(EMAILS, **ALL)) == []


@ON_ALL
def test_a_read_that_names_a_key_twice_is_refused(table):
    with pytest.raises(REFUSED):
        table.read([(str(EMAILS), "1"), (str(EMAILS), "1")])


@ON_ALL
def test_a_key_without_a_row_is_in_neither_part_of_the_answer(table):
    table.write([a_row("1")])
    reading = table.read([(str(EMAILS), "1"), (str(EMAILS), "2"), (str(OTHER), "1")])
    assert set(reading.rows) == {(str(EMAILS), "1")}
    assert reading.unread == frozenset()


@ON_ALL
def test_reading_no_keys_reads_nothing(table):
    assert table.read([]).rows == {}


# page


@ON_ALL
def test_a_page_is_in_the_order_of_sort_keys_whatever_the_order_of_writing(table):
    table.write([a_row(key) for key in ("3", "1", "2", "10", "!first", "~")])
    assert keys(table.page(EMAILS, after="", until="~~")) == ["!first", "1", "10", "2", "3", "~"]


@ON_ALL
def test_the_last_row_is_that_of_the_highest_sort_key_of_its_partition_alone(table):
    assert table.last(EMAILS) is None
    table.write([a_row(key) for key in ("3", "1", "~", "10", "!first")])
    table.write([{"pk": "emails#01", "sk": "~~"}])
    assert table.last(EMAILS) == a_row("~")


@ON_ALL
def test_a_page_begins_after_its_lower_bound_and_includes_its_upper_one(table):
    table.write([a_row(key) for key in ("1", "2", "2a", "3", "4")])
    assert keys(table.page(EMAILS, after="2", until="3")) == ["2a", "3"]


@ON_ALL
@pytest.mark.parametrize(("after", "until"), [("2", "2"), ("3", "2"), ("2", "2\0"), ("5", "6")])
def test_a_page_between_bounds_that_hold_nothing_is_empty_and_the_last(table, after, until):
    table.write([a_row(key) for key in ("1", "2", "3")])
    page = table.page(EMAILS, after=after, until=until)
    assert (keys(page), page.more) == ([], False)


@ON_ALL
def test_a_page_holds_the_rows_of_its_partition_alone(table):
    for partition in ("emails#1", "emails#0", "emails#10", "emails-vip#1"):
        table.write([{"pk": partition, "sk": "1"}])
    assert [row["pk"] for row in table.page(OTHER, **ALL).rows] == ["emails#1"]


@ON_ALL
@pytest.mark.parametrize("page_rows", [1, 2, 3, 5, 100])
def test_pages_follow_on_one_another_without_gap_or_repeat(engine, page_rows):
    table = engine.table(page_rows=page_rows)
    jobs = [a_job(due=NOW) for _ in range(5)]
    table.write([rows.job_row(job) for job in jobs])
    table.write([rows.cancellation_row(jobs[2].id, at=NOW), rows.job_row(a_job(due=NOW + timedelta(milliseconds=1)))])
    found, page = [], None
    for _ in range(len(jobs) + 2):
        page = table.page(EMAILS, after=found[-1] if found else rows.FIRST, until=rows.end_of(instant.text(NOW)))
        assert len(page.rows) <= page_rows
        found += keys(page)
        if not page.more:
            break
    assert not page.more
    assert found == sorted([rows.job_key(job.id)[1] for job in jobs] + [rows.cancellation_key(jobs[2].id)[1]])


@ON_ALL
@pytest.mark.parametrize(("page_rows", "limit", "rows_read"), [(None, 2, 2), (1, 2, 1), (3, 2, 2), (None, 100, 3)])
def test_a_page_holds_no_more_rows_than_it_is_limited_to_and_tells_that_there_are_more(
    engine, page_rows, limit, rows_read
):
    table = engine.table(page_rows=page_rows)
    table.write([a_row(key) for key in ("1", "2", "3")])
    page = table.page(EMAILS, **ALL, limit=limit)
    assert keys(page) == ["1", "2", "3"][:rows_read]
    assert page.more == (rows_read < 3)


@ON_ALL
def test_a_page_sees_every_write_that_was_acknowledged_before_it(table):
    for number in range(10):
        table.write([a_row(f"{number}")])
        assert keys(table.page(EMAILS, after="", until="~"))[-1] == f"{number}"


# add and mark_exact


@ON_ALL
def test_a_row_is_added_where_there_is_none(table):
    row = rows.cancellation_row(an_id(), at=NOW)
    assert table.add(row) == row
    assert table.read([rows.key(row)]).rows[rows.key(row)] == row


@ON_ALL
def test_the_row_that_is_there_stays_and_is_returned(table):
    id = an_id()
    first, second = rows.cancellation_row(id, at=NOW), rows.cancellation_row(id, at=NOW + timedelta(seconds=9))
    table.add(first)
    assert table.add(second) == first
    assert table.read([rows.key(first)]).rows[rows.key(first)] == first


@ON_ALL
def test_adding_beside_other_rows_of_the_partition_is_no_conflict(table):
    id = an_id()
    table.write([rows.job_row(a_job(due=id.due, uid=id.uid))])
    assert not table.add(rows.cancellation_row(id, at=NOW))["exact"]


@ON_ALL
def test_a_promise_is_noted_on_its_cancellation_and_found_by_the_next_cancel(table):
    id = an_id()
    row = table.add(rows.cancellation_row(id, at=NOW))
    table.mark_exact(rows.cancellation_key(id))
    assert table.add(row) == {**row, "exact": True}


@ON_ALL
def test_a_promise_is_noted_twice_without_harm(table):
    id = an_id()
    table.add(rows.cancellation_row(id, at=NOW))
    table.mark_exact(rows.cancellation_key(id))
    table.mark_exact(rows.cancellation_key(id))
    assert table.read([rows.cancellation_key(id)]).rows[rows.cancellation_key(id)]["exact"] is True


@ON_ALL
def test_a_promise_is_noted_on_no_row_that_is_gone(table):
    table.mark_exact(rows.cancellation_key(an_id()))
    assert keys(table.page(EMAILS, after="", until="~")) == []


# claim and mark_done


def a_claim(**overrides):
    return rows.idempotency_row(a_job(**overrides), "a key", payload_hash="5f")


@ON_ALL
def test_a_key_is_claimed_where_it_is_free(table):
    row = a_claim()
    assert table.claim(row, now=NOW) == row
    assert table.read([rows.key(row)]).rows[rows.key(row)] == row


@ON_ALL
def test_a_key_that_is_claimed_stays_its_first_claimants(table):
    first = a_claim()
    table.claim(first, now=NOW)
    assert table.claim(a_claim(), now=NOW) == first
    assert table.read([rows.key(first)]).rows[rows.key(first)] == first


@UNDER_THREADS
def test_of_claims_at_once_one_wins_and_all_are_told_which(table):
    claims = [a_claim() for _ in range(16)]
    with ThreadPoolExecutor(8) as pool:
        told = list(pool.map(lambda row: table.claim(row, now=NOW), claims))
    assert told.count(told[0]) == len(claims)
    assert told[0] in claims


@ON_ALL
@pytest.mark.parametrize(("seconds", "is_free"), [(-1, False), (0, True), (0.5, True), (1, True)])
def test_a_key_is_free_again_from_its_ttl_on_though_its_row_is_not_collected(table, seconds, is_free):
    first, second = a_claim(expires=NOW + timedelta(hours=2)), a_claim()
    table.claim(first, now=NOW)
    told = table.claim(second, now=NOW + timedelta(hours=2, seconds=seconds))
    assert told == (second if is_free else first)


@ON_ALL
def test_a_key_is_noted_as_done_and_found_so_by_the_next_claim(table):
    row = table.claim(a_claim(), now=NOW)
    table.mark_done(rows.key(row), id=row["id"])
    assert table.claim(a_claim(), now=NOW) == {**row, "done": True}


@ON_ALL
def test_a_key_that_is_gone_is_not_noted_as_done(table):
    row = a_claim()
    table.mark_done(rows.key(row), id=row["id"])
    assert not table.read([rows.key(row)]).rows


@ON_ALL
def test_a_key_that_is_another_jobs_by_now_is_not_noted_as_done(table):
    first, second = a_claim(expires=NOW), a_claim()
    table.claim(first, now=NOW - timedelta(hours=1))
    table.claim(second, now=NOW)
    table.mark_done(rows.key(first), id=first["id"])
    assert table.read([rows.key(second)]).rows[rows.key(second)] == second


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


@ON_ALL
def test_an_outcome_is_put_where_there_is_none_and_read_as_it_was_put(table):
    other = an_outcome(9, State.SUCCEEDED, uid="b")
    assert table.record(other)
    for state in OF_WORKERS:
        row = an_outcome(3, state, uid=state)
        assert table.record(row), state
        assert (noted(table, row), noted(table, other)) == (row, other)


@ON_ALL
def test_the_outcome_of_a_later_attempt_takes_the_place_of_an_earlier_ones_whole_but_a_skip_of_no_success(table):
    for there, state in PAIRS:
        # 10 is more than 9, though it sorts before it as text.
        job = f"{there}-{state}"
        earlier, later = an_outcome(9, there, started=5, uid=job), an_outcome(10, state, uid=job)
        first = {**earlier, "error": "TimeoutError"}
        table.record(first)
        is_put = (there, state) != (State.SUCCEEDED, State.SKIPPED)
        assert table.record(later) is is_put, job
        assert noted(table, later) == (later if is_put else first)


@ON_ALL
def test_the_outcome_of_a_later_attempt_stays(table):
    for there, state in PAIRS:
        job = f"{there}-{state}"
        later, earlier = an_outcome(10, there, uid=job), an_outcome(9, state, uid=job)
        table.record(later)
        assert not table.record(earlier), job
        assert noted(table, later) == later


@ON_ALL
def test_an_outcome_of_the_same_attempt_gives_way_unless_it_is_final(table):
    for there, state in PAIRS:
        job = f"{there}-{state}"
        first, second = an_outcome(2, there, uid=job), an_outcome(2, state, uid=job)
        table.record(first)
        is_put = there not in FINAL
        assert table.record(second) is is_put, job
        assert noted(table, first) == (second if is_put else first)


@ON_ALL
def test_what_a_dead_letter_becomes_once_it_is_put_back_is_put_though_its_attempts_are_counted_anew(table):
    for (there, state), attempts in product(PAIRS, (1, 10)):
        job = f"{there}-{state}-{attempts}"
        first = an_outcome(10, there, uid=job)
        again = an_outcome(attempts, state, started=60, uid=job)
        table.record(first)
        is_put = there is not State.SUCCEEDED
        assert table.record(again) is is_put, job
        assert noted(table, first) == (again if is_put else first)


@ON_ALL
def test_an_outcome_that_is_put_twice_without_an_answer_is_the_same_outcome(table):
    row = an_outcome(1, State.FAILED)
    assert [table.record(row), table.record(row)] == [True, False]
    assert noted(table, row) == row


@UNDER_THREADS
def test_of_outcomes_at_once_the_last_attempts_stays(table):
    outcomes = [an_outcome(attempts, State.FAILED) for attempts in range(1, 17)]
    with ThreadPoolExecutor(8) as pool:
        told = list(pool.map(table.record, outcomes))
    assert told[-1]
    assert noted(table, outcomes[-1]) == outcomes[-1]


# move


def old_and_new():
    return a_job(due=NOW + timedelta(hours=1)), a_job(due=NOW + timedelta(hours=2), partition=OTHER)


def move(table, old, new):
    cancellation = rows.cancellation_row(old.id, at=NOW, moved_to=new.id)
    below = instant.text(old.id.due)
    return table.move(cancellation, rows.job_row(new), state=rows.state_key(old.id.partition), fence_below=below)


def moved(table, old, new):
    """Return what a move writes, as far as it is there."""
    wanted = [rows.cancellation_key(old.id), rows.job_key(new.id)]
    found = table.read(wanted).rows
    return [found.get(key) for key in wanted]


@TRANSACTING
def test_a_move_writes_both_rows_where_nothing_is_known_of_the_partition(table):
    old, new = old_and_new()
    assert move(table, old, new)
    cancellation = rows.cancellation_row(old.id, at=NOW, moved_to=new.id)
    assert moved(table, old, new) == [cancellation, rows.job_row(new)]
    assert state(table) == PartitionState()


@TRANSACTING
@pytest.mark.parametrize(("fence", "moves"), [(3599.999, True), (3600, False), (3600.001, False)])
def test_a_move_takes_effect_only_while_the_fence_is_below_the_cancelled_job(table, fence, moves):
    old, new = old_and_new()
    take(table, fence=fence)
    take(table, fence=5000, partition=OTHER)
    before = state(table)
    assert move(table, old, new) is moves
    assert [row is not None for row in moved(table, old, new)] == [moves] * 2
    assert state(table) == before


@TRANSACTING
def test_a_partition_whose_state_has_no_fence_is_below_every_job(table):
    old, new = old_and_new()
    table.write([a_row(rows.STATE, cursor="0")])
    assert move(table, old, new)


@TRANSACTING
def test_a_job_that_is_cancelled_is_not_moved_and_its_cancellation_stays(table):
    old, new = old_and_new()
    cancellation = table.add(rows.cancellation_row(old.id, at=NOW))
    assert not move(table, old, new)
    assert moved(table, old, new) == [cancellation, None]


@TRANSACTING
def test_a_job_is_moved_once_whether_to_the_same_job_again_or_to_another(table):
    old, new = old_and_new()
    assert move(table, old, new)
    assert not move(table, old, new)
    assert not move(table, old, a_job())
    assert moved_to(moved(table, old, new)[0]) == new.id


@TRANSACTING
def test_a_cancel_of_a_job_that_was_moved_finds_a_promise(table):
    old, new = old_and_new()
    move(table, old, new)
    found = table.add(rows.cancellation_row(old.id, at=NOW))
    assert (found["exact"], moved_to(found)) == (True, new.id)


@ON_ALL
def test_a_row_that_is_asked_for_is_returned_as_it_is_and_changed_in_nothing(table):
    cancellation = rows.cancellation_row(an_id(), at=NOW, moved_to=an_id())
    table.write([cancellation])
    assert [table.ask_for(rows.key(cancellation)) for _ in range(2)] == [cancellation] * 2
    assert table.read([rows.key(cancellation)]).rows == {rows.key(cancellation): cancellation}


@ON_ALL
def test_a_packed_row_that_is_asked_for_is_the_job_that_was_written(table):
    row = rows.job_row(a_job(payload="x" * 5000, tenant="acme"))
    table.write([row])
    assert table.ask_for(rows.key(row)) == row


@ON_ALL
def test_a_row_that_is_asked_for_and_is_not_there_is_none_and_is_not_put(table):
    key = rows.cancellation_key(an_id())
    assert table.ask_for(key) is None
    assert table.read([key]) == Reading()


@TRANSACTING
def test_what_a_move_did_is_there_when_it_is_asked_for(table):
    old, new = old_and_new()
    assert table.ask_for(rows.cancellation_key(old.id)) is None
    assert move(table, old, new)
    assert moved_to(table.ask_for(rows.cancellation_key(old.id))) == new.id
    assert table.ask_for(rows.job_key(new.id)) == rows.job_row(new)


@TRANSACTING
def test_a_move_that_names_a_row_twice_is_refused_and_nothing_is_written(table):
    old, _ = old_and_new()
    cancellation = rows.cancellation_row(old.id, at=NOW)
    with pytest.raises(REFUSED):
        table.move(cancellation, cancellation, state=rows.state_key(EMAILS), fence_below="9")
    assert keys(table.page(EMAILS, **ALL)) == []


# take


def take(table, *, owner="me", now=0, lease=30, fence=240, partition=EMAILS):
    return table.take(partition, owner=owner, now=at(now), lease=at(lease), fence=at(fence))


def checkpoint(table, *, owner="me", cursor="5", fence=240, lease=30):
    return table.checkpoint(
        EMAILS, owner=owner, cursor=cursor, fence=at(fence), lease="" if lease is None else at(lease)
    )


def state(table):
    key = rows.state_key(EMAILS)
    return rows.read_state(table.read([key]).rows.get(key))


@ON_ALL
def test_a_partition_of_which_nothing_is_known_is_free(table):
    taken = PartitionState(fence=at(240), cursor=rows.FIRST, owner="me", lease=at(30))
    assert take(table) == taken
    assert state(table) == taken


@ON_ALL
def test_my_own_lease_is_taken_again(table):
    take(table)
    assert take(table, now=1, lease=31, fence=241) == PartitionState(fence=at(241), owner="me", lease=at(31))


@ON_ALL
def test_anothers_lease_is_refused_and_told(table):
    held = take(table, owner="other")
    assert take(table, now=29.999, lease=60, fence=270) == held
    assert state(table) == held


@ON_ALL
def test_anothers_lease_that_is_over_exactly_now_is_taken(table):
    take(table, owner="other")
    assert take(table, now=30, lease=60, fence=270) == PartitionState(fence=at(270), owner="me", lease=at(60))


@ON_ALL
def test_a_released_lease_is_free_and_cursor_and_fence_stay(table):
    take(table, owner="other")
    assert checkpoint(table, owner="other", cursor="5", lease=None)
    assert state(table) == PartitionState(fence=at(240), cursor="5")
    assert take(table, now=1, lease=31, fence=240) == PartitionState(
        fence=at(240), cursor="5", owner="me", lease=at(31)
    )


@ON_ALL
@pytest.mark.parametrize("owner", ["other", "me"])
def test_a_fence_never_falls_when_a_lease_is_taken(table, owner):
    take(table, owner=owner)
    before = state(table)
    assert take(table, now=31, lease=61, fence=239.999) == before
    assert state(table) == before


@ON_ALL
def test_a_fence_may_stay_where_it_is(table):
    take(table, owner="other")
    assert take(table, now=31, lease=61, fence=240).owner == "me"


@ON_ALL
def test_a_free_lease_under_a_higher_fence_is_refused_and_tells_the_fence(table):
    take(table, owner="other", fence=500)
    checkpoint(table, owner="other", fence=500, lease=None)
    assert take(table, now=1, lease=31, fence=241) == PartitionState(fence=at(500), cursor="5")


@ON_ALL
def test_partitions_are_taken_apart_from_one_another(table):
    take(table, owner="other", fence=500)
    assert take(table, partition=OTHER).owner == "me"


# checkpoint


@ON_ALL
def test_a_checkpoint_moves_the_cursor_renews_the_lease_and_raises_the_fence(table):
    take(table)
    assert checkpoint(table, cursor="7", fence=250, lease=40)
    assert state(table) == PartitionState(fence=at(250), cursor="7", owner="me", lease=at(40))


@ON_ALL
def test_a_checkpoint_may_leave_cursor_and_fence_where_they_are(table):
    take(table)
    assert checkpoint(table, cursor="7")
    assert checkpoint(table, cursor="7", lease=40)


@ON_ALL
def test_a_cursor_never_falls(table):
    take(table)
    checkpoint(table, cursor="7")
    before = state(table)
    assert not checkpoint(table, cursor="6", lease=40)
    assert not checkpoint(table, cursor="6", lease=None)
    assert state(table) == before


@ON_ALL
def test_a_fence_never_falls_at_a_checkpoint(table):
    take(table)
    before = state(table)
    assert not checkpoint(table, fence=239, lease=40)
    assert not checkpoint(table, fence=239, lease=None)
    assert state(table) == before


@ON_ALL
@pytest.mark.parametrize("lease", [40, None])
def test_a_checkpoint_of_a_lease_that_is_anothers_is_refused(table, lease):
    take(table, owner="other")
    before = state(table)
    assert not checkpoint(table, lease=lease)
    assert state(table) == before


@ON_ALL
@pytest.mark.parametrize("lease", [40, None])
def test_a_checkpoint_of_a_lease_that_was_released_is_refused(table, lease):
    take(table)
    assert checkpoint(table, lease=None)
    assert not checkpoint(table, lease=lease)


@ON_ALL
def test_a_checkpoint_without_any_lease_is_refused_and_leaves_no_state(table):
    assert not checkpoint(table)
    assert state(table) == PartitionState()


@ON_ALL
def test_a_lease_that_ran_out_is_still_mine_until_another_takes_it(table):
    take(table, lease=30)
    assert checkpoint(table, fence=300, lease=90)


# reserve

SLOTS = slots_key("emails", instant.text(NOW))


def reserve(table, *, now, amount, ttl=2_000_000_000):
    return table.reserve(SLOTS, now=now, amount=amount, ttl=ttl)


def slots(table):
    row = table.read([SLOTS]).rows[SLOTS]
    return {name: value if isinstance(value, str) else int(value) for name, value in row.items()}


@ON_ALL
def test_the_first_reservation_begins_now_and_creates_the_row_with_its_ttl(table):
    assert reserve(table, now=1_795_244_700_000_000, amount=20_000, ttl=1_795_331_100) == 1_795_244_700_020_000
    assert slots(table) == {
        "pk": "emails#rate",
        "sk": f"!slots#{instant.text(NOW)}",
        "until": 1_795_244_700_020_000,
        "ttl": 1_795_331_100,
    }


@ON_ALL
def test_the_next_reservation_begins_where_the_one_before_ends(table):
    assert [reserve(table, now=1000, amount=amount) for amount in (500, 1, 250)] == [1500, 1501, 1751]


@ON_ALL
@pytest.mark.parametrize(("now", "until"), [(1499, 1600), (1500, 1600), (1501, 1601), (9000, 9100), (0, 1600)])
def test_a_reservation_begins_at_the_later_of_now_and_what_is_taken(table, now, until):
    reserve(table, now=1000, amount=500)
    assert reserve(table, now=now, amount=100) == until
    assert slots(table)["until"] == until


@ON_ALL
def test_a_reservation_sets_the_ttl_anew_whether_it_follows_on_or_begins(table):
    ttls = []
    for now, ttl in ((1000, 10), (1000, 20), (9000, 30)):
        reserve(table, now=now, amount=500, ttl=ttl)
        ttls.append(slots(table)["ttl"])
    assert ttls == [10, 20, 30]


@ON_ALL
def test_slots_of_another_setting_of_the_rate_begin_anew(table):
    reserve(table, now=1000, amount=500)
    assert table.reserve(slots_key("emails", at(1)), now=1000, amount=500, ttl=1) == 1500
    assert table.reserve(slots_key("emails-vip", instant.text(NOW)), now=1000, amount=500, ttl=1) == 1500


@UNDER_THREADS
def test_reservations_at_once_never_overlap_and_leave_no_gap(table):
    """Some at the very first, when there is no row, and some after a while, when all that was taken is over."""
    taken = []
    with ThreadPoolExecutor(8) as pool:
        for now in (1000, 50_000):
            amounts = [number % 5 + 1 for number in range(15)]
            untils = list(pool.map(lambda amount, now=now: reserve(table, now=now, amount=amount), amounts))
            taken += sorted((until - amount, until) for until, amount in zip(untils, amounts, strict=True))
    ends = [end for _, end in taken]
    assert [begin for begin, _ in taken] == [1000, *ends[:14], 50_000, *ends[15:29]]
