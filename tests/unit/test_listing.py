"""What is listed as scheduled, and what is shown of a queue as a whole."""

import base64
import tracemalloc
from collections import Counter
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dueline.core import instant, listing, rows
from dueline.core.job import MAX_PAYLOAD_BYTES, Partition, Route, State
from dueline.core.listing import MOST_BYTES, Span, list_tracked, place_text, read_place
from dueline.core.overview import Control
from dueline.core.ports import Depth
from dueline.core.queue_settings import Rate
from dueline.core.request import Request
from dueline.core.status import Outcome, outcome_row
from dueline.errors import InvalidJob, QueueNotFound, Unavailable
from dueline.operations.control import pause, set_rate
from tests.builders import EMAILS, NOW, a_job, a_message, a_queue, due_in, emails
from tests.system import System
from tests.wire import done_in_part, failing, on

NESTED = base64.urlsafe_b64encode(b"[" * 99_999).decode()
FATES = ("waits", "cancelled", "requested", "sent late", "parked", "parked late", "expired", "unreadable")


def let(system, job, fate):
    """Put a job into the table and let it come to this."""
    system.put(job)
    parked = rows.parked_row(rows.job_key(job.id), reason="gone", at=NOW)
    written = {
        "requested": [rows.cancellation_row(job.id, at=NOW)],
        "sent late": [rows.handled_row(job, dispatched=True)],
        "parked": [parked],
        "parked late": [parked, rows.handled_row(job, dispatched=False)],
        "expired": [{**rows.job_row(job), "ttl": int(NOW.timestamp())}],
        "unreadable": [{**rows.job_row(job), "payload": ""}],
    }
    if fate == "cancelled":
        system.cancel(job.id)
    system.table.write(written.get(fate, []))


def pages(system, **span):
    """Return all pages of a listing, one after another."""
    result = [system.list_jobs(**span)]
    while result[-1].after is not None:
        assert result[-1].after > (result[-2].after if len(result) > 1 else "")
        result.append(system.list_jobs(**{**span, "after": read_place(place_text(result[-1].after))}))
    return result


def entries(system, **span):
    return [job for page in pages(system, **span) for job in page.jobs]


def count(system):
    """Count the calls from here on, and the rows that they read."""
    counted = Counter()

    def around(call):
        answer = call.do(*call.args)
        counted[call.name] += 1
        counted["rows"] += len(answer.rows)
        return answer

    system.wire.around = around
    return counted


# What is listed


@given(
    jobs=st.lists(st.tuples(st.integers(-300, 300), st.integers(0, 2), st.sampled_from(FATES)), max_size=40),
    limit=st.integers(1, 12),
    page_rows=st.sampled_from([1, 2, 3, 1000]),
    partitions=st.integers(1, 4),
    span=st.tuples(st.integers(-310, 310), st.integers(-310, 310)),
    ticked=st.sets(st.integers(0, 2)),
)
def test_pages_hold_each_job_once_in_order(jobs, limit, page_rows, partitions, span, ticked):
    system = System(a_queue(partitions=partitions), page_rows=page_rows)
    put = [(due_in(seconds, partition=emails(number % partitions)), fate) for seconds, number, fate in jobs]
    for job, fate in put:
        let(system, job, fate)
    for number in ticked:
        partition = emails(number % partitions)
        cursor = rows.job_key(due_in(10 * number).id)[1]
        system.table.acquire_lease(partition, owner="me", now="1", lease="2", fence="3")
        system.table.checkpoint(partition, owner="me", cursor=cursor, fence="3", lease="2")
    start, end = (NOW + timedelta(seconds=seconds) for seconds in span)
    expected = [
        job
        for job, fate in put
        if fate not in ("expired", "unreadable")
        and start <= job.id.due < end
        and system.look_up(job.id) is State.SCHEDULED
    ]
    result = pages(system, start=start, end=end, limit=limit)
    in_due_order = sorted(expected, key=lambda job: (job.id.due, job.id.uid))
    assert [job for page in result for job in page.jobs] == in_due_order
    assert all(len(page.jobs) <= limit for page in result)
    if not ticked:
        unreadable = [job for job, fate in put if fate == "unreadable" and start <= job.id.due < end]
        assert sum(page.unreadable for page in result) == len(unreadable)


def test_unknown_row_hides_no_job():
    system, job = System(), due_in(60)
    system.put(job)
    system.table.write([{"pk": "emails#0", "sk": rows.job_key(job.id)[1].replace("#job", "#note")}])
    assert entries(system) == [job]


@pytest.mark.parametrize("page_rows", [2, 1000])
def test_jobs_of_one_kind_are_all_listed(page_rows):
    system = System(a_queue(partitions=2), page_rows=page_rows)
    kinds = ["welcome", "digest", None, "digest", "digest", "welcome"] * 5
    jobs = [due_in(place, partition=emails(place % 2), kind=kind) for place, kind in enumerate(kinds)]
    system.put(*jobs)
    system.cancel(jobs[0].id)
    assert entries(system, kind="welcome", limit=3) == [job for job in jobs[1:] if job.kind == "welcome"]
    assert entries(system, kind="unused") == []
    assert entries(system) == jobs[1:]


# Pages


def test_page_ends_where_its_payloads_have_1_mib():
    system, size = System(), 256 * 1024
    jobs = [due_in(n, payload='"' + "x" * (size - 2) + '"') for n in range(9)]
    system.put(*jobs)
    result = pages(system, limit=100)
    assert [len(page.jobs) for page in result] == [MOST_BYTES // size, MOST_BYTES // size, 1]
    assert [job for page in result for job in page.jobs] == jobs


@pytest.mark.parametrize(
    ("span", "reason"),
    [
        ({"kind": "A B"}, "kind is 'A B': it must have 1 to 64 of"),
        *(({"limit": limit}, f"limit is {limit}: it must be from 1 to 100") for limit in (0, 101, -1)),
    ],
)
def test_wrong_kind_or_limit_is_refused(span, reason):
    with pytest.raises(InvalidJob, match=reason):
        System().list_jobs(**span)


@pytest.mark.parametrize(
    "text",
    ["", "x", "ü", "!!!!", NESTED, "bnVsbA", "WzFd", "IjAi", "Inh4Ig", place_text("2026-01-01T00:00:00.000Z#\ud800")],
)
def test_place_that_no_page_gave_is_refused(text):
    with pytest.raises(ValueError, match=r"."):
        read_place(text)


# What it costs


@pytest.mark.parametrize("partitions", [1, 4])
def test_page_cost_is_constant(partitions):
    def cost_beside(others):
        system = System(a_queue(partitions=partitions), a_queue(name="invoices"))
        first = [due_in(3600 + n, partition=emails(n % partitions)) for n in range(80)]
        past = [due_in(-n, partition=emails(n % partitions)) for n in range(others)]
        later = [due_in(86_400 + n, partition=emails(n % partitions)) for n in range(others)]
        other = [a_job(due=job.id.due, partition=Partition(queue="invoices", number=0)) for job in first * (others > 0)]
        system.put(*past, *first, *later, *other)
        for number in range(partitions):
            system.tick(emails(number))
        counted = count(system)
        assert list(system.list_jobs(limit=10).jobs) == first[:10]
        return counted

    with_none = cost_beside(0)
    assert cost_beside(1000) == with_none
    assert (with_none["table.read"], with_none["table.page"]) == (1, partitions)
    assert with_none["rows"] <= partitions + 2 * 10 + 4 * partitions


MANY = 450
# Of what a function has. All payloads at once would be 115 MB of the 450 jobs, and of a full page of 1 MB, 900 MB.
HALF_OF_THE_MEMORY = 100 * 1024 * 1024


class _Forgetful(list):
    """What arrives is another process's to keep."""

    def __iadd__(self, _):
        return self


def test_payloads_are_unpacked_in_their_turn(system):
    """By a tick, an overview, which keeps none, and a list, which keeps those of a page."""
    for number in range(MANY):
        system.put(a_job(payload="x" * MAX_PAYLOAD_BYTES, due=NOW + timedelta(seconds=60, milliseconds=number)))
    system.queues["emails"].deliveries = _Forgetful()
    tracemalloc.start()
    assert system.overview().scheduled == MANY
    assert len(system.list_jobs(limit=100).jobs) == 4
    assert system.tick().dispatched == MANY
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < HALF_OF_THE_MEMORY


# Faults


@pytest.mark.parametrize("react", [done_in_part, failing(Unavailable("no"))])
def test_listing_without_states_fails(system, react):
    system.wire.around = on("table.read", react)
    with pytest.raises(Unavailable):
        system.list_jobs()


# Overviews


@pytest.mark.parametrize(("jobs", "more"), [(3, False), (1001, False), (1002, True)])
def test_scheduled_jobs_are_counted_up_to_1000(system, jobs, more):
    put = [due_in(3600 + number) for number in range(jobs)]
    system.put(*put)
    system.cancel(put[0].id)
    answer = system.overview()
    assert (answer.scheduled, answer.more_scheduled, answer.next_due) == (min(jobs - 1, 1000), more, put[1].id.due)


def test_fence_age_is_of_the_slowest_partition():
    system = System(a_queue(partitions=2))
    system.tick(EMAILS)
    assert system.overview().fence_age is None
    system.clock.sleep(60)
    system.tick(emails(1))
    system.clock.sleep(5)
    assert system.overview().fence_age == 65
    for partition in (EMAILS, emails(1)):
        system.table.acquire_lease(partition, owner="me", now="3", lease="4", fence="2027-01-01T00:00:00.000Z")
    assert system.overview().fence_age == 0


def test_depth_is_that_of_all_levels_and_of_each():
    system = System(a_queue(priorities=2))
    requests = [Request(payload={}, delay=delay, priority=priority) for delay, priority in ((0, 1), (0, 2), (500, 2))]
    system.submit(*requests)
    system.dead_letters.send([a_message(), a_message()])
    answer = system.overview()
    assert answer.levels == (Depth(waiting=1, in_flight=0, delayed=0), Depth(waiting=1, in_flight=0, delayed=1))
    assert (answer.depth, answer.dead) == (Depth(waiting=2, in_flight=0, delayed=1), 2)


def test_pause_and_rate_are_shown(system):
    assert system.overview().control == Control()
    pause("emails", table=system.table, now=NOW)
    set_rate("emails", Rate(jobs=90, seconds=60), table=system.table, now=NOW)
    assert system.overview().control == Control(paused=True, rate=Rate(jobs=90, seconds=60), rate_set=instant.text(NOW))


@pytest.mark.parametrize(
    ("gone", "what"), [("emails", "queue 'emails'"), ("emails_p2", "priority 2 of"), ("dead_letters", "queue 'emails'")]
)
def test_queue_that_is_not_on_sqs_is_not_found(gone, what):
    system = System(a_queue(priorities=2))
    {queue.name: queue for queue in (*system.stores.levels.values(), system.dead_letters)}[gone].gone = True
    with pytest.raises(QueueNotFound, match=f"^{what}.* has no SQS queue: it is not deployed yet, or was deleted"):
        system.overview()


TRACKED = a_queue(partitions=3, track=True)


def record(system, seconds, *, partition=0, state=State.FAILED, kind=None, route=Route.TABLE, **row):
    """Note the outcome of a job, as its worker does; return its id."""
    job = due_in(seconds, partition=emails(partition), route=route)
    if route is Route.TABLE:
        system.put(job)
    ended = None if state is State.RUNNING else NOW
    outcome = Outcome(state=state, attempts=2, started=NOW, ended=ended, kind=kind)
    system.table.record(outcome_row(job.id, outcome, **{"expires": NOW + timedelta(days=1), **row}))
    return job.id


def tracked_pages(system, *, state=None, queue=TRACKED, **span):
    """Return all pages of what workers recorded, one after another."""
    fixed = {"state": state, "queue": queue, "table": system.table, "now": NOW}
    result = [list_tracked(Span(**span), **fixed)]
    while result[-1].before is not None:
        span["after"] = read_place(place_text(result[-1].before))
        result.append(list_tracked(Span(**span), **fixed))
    return result


def tracked_ids(system, **span):
    return [id for page in tracked_pages(system, **span) for id, _ in page.jobs]


@pytest.mark.parametrize("page_rows", [3, 1000])
@pytest.mark.parametrize("limit", [1, 7, 100])
def test_tracked_jobs_are_paged_the_last_due_first(limit, page_rows):
    system = System(TRACKED, page_rows=page_rows)
    ids = [
        record(system, at, partition=at % 3 if at < 20 else 0, route=Route.TABLE if at % 2 else Route.DIRECT)
        for at in range(30)
    ]
    record(system, 5, expires=NOW)
    assert tracked_ids(system, limit=limit) == ids[::-1]
    span = {"start": NOW + timedelta(seconds=5), "end": NOW + timedelta(seconds=15)}
    assert tracked_ids(system, limit=limit, **span) == ids[14:4:-1]
    # A place in another list never leads out of the span.
    assert tracked_ids(system, limit=limit, after="9", **span) == ids[14:4:-1]


def test_tracked_jobs_are_filtered_by_state_and_kind(monkeypatch):
    monkeypatch.setattr(listing, "_FILTERED_ROWS", 4)
    system = System(TRACKED)
    states = [State.SUCCEEDED] * 8 + [State.RUNNING, State.DISPATCHED, State.FAILED]
    ids = [record(system, at, state=state, kind="welcome" if at % 2 else None) for at, state in enumerate(states)]
    assert [tracked_ids(system, state=state) for state in states[8:]] == [[id] for id in ids[8:]]
    assert tracked_ids(system, kind="welcome") == ids[1::2][::-1]
    assert [len(page.jobs) for page in tracked_pages(system, state=State.SUCCEEDED)] == [1, 3, 3, 1]


def test_outcome_that_cannot_be_read_is_counted_once():
    system = System(TRACKED)
    ids = [record(system, at) for at in range(5)]
    key = rows.outcome_key(ids[2])
    row = system.table.read([key]).rows[key]
    system.table.write([row | {"state": "odd"}, row | {"sk": f"{row['sk']}#more"}])
    pages = tracked_pages(system, limit=2)
    assert [id for page in pages for id, _ in page.jobs] == [ids[4], ids[3], ids[1], ids[0]]
    assert sum(page.unreadable for page in pages) == 2


def test_parked_job_past_its_retention_keeps_its_route():
    """It was put back for another day: its row may be gone before its outcome."""
    system = System(TRACKED)
    id = record(system, 0, route=Route.DIRECT)
    of_table = replace(id, route=Route.TABLE)
    system.table.write([rows.parked_row(rows.job_key(of_table), reason="gone", at=NOW)])
    assert tracked_ids(system) == [of_table]


def test_page_of_tracked_jobs_reads_few_rows():
    system = System(TRACKED)
    for at in range(300):
        record(system, at, partition=at % 3)
    counted = count(system)
    page = list_tracked(Span(limit=10), queue=TRACKED, table=system.table, now=NOW)
    assert (len(page.jobs), counted) == (10, {"table.outcomes": 3, "table.read": 1, "rows": 30 + 10})
    with pytest.raises(InvalidJob, match="track of queue emails is false: it must be true"):
        tracked_pages(system, queue=a_queue())
