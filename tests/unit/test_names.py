"""A key is the name of one job: what each call under it does, by what became of the job that has it."""

import hashlib
from dataclasses import replace
from datetime import timedelta
from functools import partial
from uuid import UUID

import pytest

from dueline.core import rows
from dueline.core.job import MAX_PAYLOAD_BYTES, Partition, Route, State, SubmitResult
from dueline.core.keys import MOST_CALLS, read_key
from dueline.core.message import KEY_CHANGE, Message
from dueline.core.payloads import Upload
from dueline.core.ports import Pointer
from dueline.core.request import IfExists, Request
from dueline.core.status import status_under
from dueline.errors import AlreadyFinished, InvalidJob, JobExists, JobNotFound, KeyReused, NotYet, Unavailable
from tests.builders import NOW, RETENTION, a_queue, an_id
from tests.system import System
from tests.wire import by_name, failing, meanwhile, on, straight

KEY = "reminder-ann"
AN_HOUR = 3600
SOON, LATER = NOW + timedelta(minutes=20), NOW + timedelta(hours=2)
UPLOAD = Upload(uid=str(UUID(int=1)), bytes=1, sha256=hashlib.sha256(b"7").hexdigest())
REPLACE, FAIL = IfExists.REPLACE, IfExists.FAIL
NOWHERE = by_name(dict.fromkeys(("table.add", "inbound.send"), failing(Unavailable("no"))))


def named(payload=1, *, at=SOON, key=KEY, **more):
    return Request(payload=payload, at=at, key=key, **more)


def result_of(system, request):
    (result,) = system.submit_each(request)
    assert isinstance(result, SubmitResult), result
    return result


@pytest.fixture
def first(system):
    """What came of scheduling a job under the key."""
    return result_of(system, named())


def holder(system):
    """Return the id that the key's row has."""
    return read_key(KEY, "emails", table=system.table, now=system.clock.now()).id


# The table, cell by cell


@pytest.mark.parametrize("other", [{"payload": 2}, {"tenant": "b"}, {"priority": 2}, {"kind": "welcome"}])
def test_waiting_job_of_other_content_is_not_kept(other):
    system = System(a_queue(priorities=2))
    first = result_of(system, named())
    system.refused(named(**other), KeyReused, f"key is '{KEY}': it belongs to job {first.job.id}")


@pytest.mark.parametrize("at", [SOON, LATER, NOW])
@pytest.mark.parametrize("payload", [1, 2])
def test_waiting_job_is_replaced(system, at, payload):
    system.tick()
    first = result_of(system, named(tenant="a"))
    replaced = result_of(system, named(payload, at=at, if_exists=REPLACE, tenant="b"))
    assert (replaced.is_new, replaced.moved_from, replaced.job.id.due) == (False, first.job.id, at)
    assert holder(system) == replaced.job.id
    assert system.arrived_within(hours=4) == [replaced.job.id]
    sent = system.queues["emails"].deliveries[0].message.job()
    assert (sent.payload, sent.tenant, sent.key) == (str(payload), "b", KEY)


@pytest.mark.parametrize("hours", [0, 1], ids=["waiting", "left"])
def test_large_payload_that_replaces_another_is_kept_once(system, first, hours):
    system.pass_time(hours=hours)
    calls = system.calls()
    replaced = result_of(system, named("x" * MAX_PAYLOAD_BYTES, at=LATER, if_exists=REPLACE))
    assert (replaced.state, calls.count("payloads.put")) == (State.SCHEDULED, 1)
    assert system.arrived_within(hours=4)[-1] == replaced.job.id
    sent = system.queues["emails"].deliveries[-1].message.job()
    assert [Pointer.parse(sent.payload).key] == list(system.stores.payloads.kept)


@pytest.mark.parametrize("hours", [0, 1], ids=["waiting", "left"])
def test_same_request_replaces_nothing_or_fails(system, first, hours):
    system.pass_time(hours=hours)
    assert system.refused(named(if_exists=FAIL), JobExists).job_id == str(first.job.id)
    again = result_of(system, named(if_exists=REPLACE))
    assert (again.job.id, again.moved_from, again.is_new) == (first.job.id, None, False)


@pytest.mark.parametrize("change", [{"payload": 2}, {"at": LATER}])
def test_job_that_left_is_kept_or_replaced_by_another(system, first, change):
    system.pass_time(hours=1)
    kept = result_of(system, named(**change))
    assert (kept.job.id, kept.is_new) == (first.job.id, False)
    second = result_of(system, named(**change, if_exists=REPLACE))
    assert (second.is_new, second.moved_from) == (True, None)
    assert system.arrived_within(hours=4) == [first.job.id, second.job.id]


def test_key_is_free_past_the_retention(system, first):
    system.pass_time(hours=1)
    system.clock.sleep((SOON + RETENTION - system.clock.now()).total_seconds() - 1)
    assert result_of(system, named()).job.id == first.job.id
    system.clock.sleep(1)
    assert result_of(system, named()).is_new


def test_repeated_move_gets_its_job_though_another_has_the_key(system, first):
    moved = system.reschedule_by_key(KEY, at=LATER, call="x")
    system.cancel(moved.id)
    assert result_of(system, named(2)).is_new
    assert system.reschedule_by_key(KEY, at=LATER, call="x") == replace(moved, moved_from=moved.id, was_before=True)


def test_repeated_call_of_another_content_is_refused(system):
    result_of(system, named(call="mine"))
    for _ in ("its own", "displaced"):
        system.refused(named(3, call="mine", if_exists=REPLACE), KeyReused)
        result_of(system, named(2, at=LATER, if_exists=REPLACE, call="another"))
    assert result_of(system, named(call="mine", if_exists=REPLACE)).is_repeat


def test_call_of_a_move_schedules_nothing(system, first):
    system.reschedule_by_key(KEY, at=LATER, call="x")
    for rule in IfExists:
        system.refused(named(2, call="x", if_exists=rule), KeyReused, "'x': it was used to move job")
    result_of(system, named(2, call="y", if_exists=REPLACE))
    result_of(system, named(3, call="z", if_exists=REPLACE))
    for call in ("y", "z"):
        with pytest.raises(KeyReused, match=f"'{call}': it was used to schedule a job under key"):
            system.reschedule_by_key(KEY, at=LATER, call=call)


@pytest.mark.parametrize("gone", ["before", "meanwhile"])
def test_lost_upload_takes_no_key_from_a_sent_job(system, first, gone):
    system.pass_time(hours=1)
    if gone == "meanwhile":
        system.stores.payloads.put(UPLOAD.key("emails"), "7")
        system.wire.around = on("payloads.copy", meanwhile(system.stores.payloads.kept.clear))
    system.refused(Request(upload=str(UPLOAD), at=LATER, key=KEY, if_exists=REPLACE), InvalidJob)
    assert result_of(system, named(at=LATER)).job.id == first.job.id
    assert system.arrived_within(hours=4) == [first.job.id]


def test_refused_call_may_come_again_with_other_content(system):
    system.stores.payloads.put(UPLOAD.key("emails"), "7")
    system.wire.around = on("payloads.copy", meanwhile(system.stores.payloads.kept.clear), times=1)
    system.refused(Request(upload=str(UPLOAD), at=SOON, key=KEY, call="mine"), InvalidJob)
    assert result_of(system, named(8, call="mine")).is_new


@pytest.mark.parametrize("name", ["table.claim", "table.move"])
def test_fault_names_no_job_that_may_not_have_the_key(system, first, name):
    system.wire.around = on(name, failing(Unavailable("no")))
    assert system.refused(named(2, if_exists=REPLACE)).job_id is None


@pytest.mark.parametrize("call", [None, "mine"])
def test_repeat_submits_what_was_not(system, call):
    system.wire.around = NOWHERE
    system.refused(named(call=call))
    id, released = holder(system), []
    release = partial(system.stores.table.release, rows.name_key("emails", KEY), id=str(id), ttl=1)
    system.wire.around = on("inbound.send", meanwhile(lambda: released.append(release())))
    again = result_of(system, named(at=LATER, call=call))
    assert (again.job.id, again.job.expires, again.is_new, again.is_repeat) == (id, SOON + RETENTION, bool(call), False)
    calls = system.calls()
    assert result_of(system, named(call=call)).is_repeat
    assert calls == (["table.claim"] if call else ["table.claim", "table.read"])
    assert (released, system.arrived_within(hours=4)) == ([False], [id])


@pytest.mark.parametrize("is_cancelled", [False, True])
def test_displaced_call_submits_its_job_unless_cancelled(system, is_cancelled):
    system.wire.around = NOWHERE
    system.refused(named(call="mine"))
    system.wire.around, id = straight, holder(system)
    if is_cancelled:
        system.cancel(id)
    system.pass_time(hours=1)
    result_of(system, named(2, at=LATER, if_exists=REPLACE, call="another"))
    assert [result_of(system, named(call="mine")).is_repeat for _ in range(2)] == [is_cancelled, True]
    assert system.arrived() == ([] if is_cancelled else [id])


def test_no_job_of_a_key_is_moved(system, first):
    with pytest.raises(JobNotFound, match="was scheduled under the key 'reminder-ann'"):
        System().reschedule_by_key(KEY, at=LATER)
    system.cancel(first.job.id)
    with pytest.raises(AlreadyFinished, match="was cancelled"):
        system.reschedule_by_key(KEY, at=LATER)


# Soon, buffered, at the same moment, and in between


def test_named_job_takes_the_table_however_soon(system):
    system.tick()
    made = result_of(system, named(at=None, delay=0))
    assert made.job.id.route is Route.TABLE
    assert system.arrived_within(hours=1) == [made.job.id]


def test_key_that_changes_at_each_attempt_is_not_yet(system, first):
    system.cancel(first.job.id)
    system.wire.around = on("table.take_over", lambda _: False)
    system.refused(named(2), NotYet)


def test_key_remembers_so_many_calls(system):
    result_of(system, named(0, call="0"))
    for number in range(1, MOST_CALLS + 1):
        result_of(system, named(number, call=str(number), if_exists=REPLACE))
    one_more = named("x", call="x", if_exists=REPLACE)
    system.refused(one_more, Unavailable, "over 8 calls have changed its job within an hour")
    system.clock.sleep(AN_HOUR - 1)
    system.refused(one_more, Unavailable)
    system.clock.sleep(1)
    result_of(system, named("x", call="x", if_exists=REPLACE, at=LATER))


def test_call_without_a_name_is_not_remembered(system):
    for number in range(3 * MOST_CALLS):
        result_of(system, named(number, if_exists=REPLACE))
    assert rows.name_key("emails", KEY) in system.table.read([rows.name_key("emails", KEY)]).rows


def test_named_jobs_of_one_call_are_one(system):
    first, second, other = system.submit_each(named(), named(at=LATER), named(2))
    assert first.job.id == second.job.id
    assert isinstance(other, KeyReused)


def test_key_of_a_partition_not_known_yet_is_found():
    # The queue grew while a process still counts fewer, and the job is on its way to the table.
    system = System(a_queue(partitions=12))
    made = next(m.job for n in range(99) if (m := result_of(system, named(key=f"{n}"))).job.id.partition.number)
    system.table.collect([rows.job_key(made.id)])
    older = system.settings["emails"] = a_queue(partitions=1)
    id, status = status_under(made.key, queue=older, table=system.table, now=system.clock.now())
    assert (id, status.state) == (made.id, State.ACCEPTED)
    with pytest.raises(NotYet, match="not in the table"):
        system.reschedule_by_key(made.key, at=LATER)
    (cancelled,) = system.cancel_by_keys([made.key])
    assert cancelled.id == made.id


# Forged rows and messages


@pytest.mark.parametrize("if_exists", list(IfExists))
@pytest.mark.parametrize(
    "forged",
    [
        pytest.param({"id": str(an_id(partition=Partition(queue="invoices", number=0)))}, id="another queue"),
        pytest.param({"id": "x"}, id="no id"),
        pytest.param({"calls": "x"}, id="no calls"),
        pytest.param({"calls": []}, id="a list"),
    ],
)
def test_forged_key_row_is_refused(if_exists, forged):
    system = System(a_queue(), a_queue(name="invoices"))
    result_of(system, named())
    key = rows.name_key("emails", KEY)
    system.table.write([{**system.table.read([key]).rows[key], **forged}])
    system.refused(named(if_exists=if_exists), KeyReused)
    with pytest.raises(JobNotFound):
        system.reschedule_by_key(KEY, at=LATER)


@pytest.mark.parametrize("text", ["x", "[]", "{}", '{"call": "x"}'])
def test_forged_key_change_is_no_move(system, first, text):
    job = replace(first.job, id=replace(first.job.id, due=LATER, uid="00000000-0000-4000-8000-0000000000ff"))
    message = Message.of(job, moves=first.job.id)
    done = system.ingest_message(replace(message, attributes={**message.attributes, KEY_CHANGE: text}))
    assert [KEY_CHANGE in each.reason for each in done.rejected] == [True]
