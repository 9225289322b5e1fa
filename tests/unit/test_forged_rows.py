"""Whatever a direct producer or a worker writes into the rows that it may write, no route fails and no tick stops."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from dueline.core import rows
from dueline.core.rows import head_key
from dueline.errors import InvalidJob, Unavailable
from tests.api_harness import call_api, import_api
from tests.builders import EMAILS, a_job, a_queue
from tests.system import System
from tests.wire import straight

DUE = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=1)
GOOD = a_job(due=DUE)
ID, (PK, SK) = GOOD.id, rows.job_key(GOOD.id)
PREFIX = SK.removesuffix("#job")
KEY = rows.idempotency_key("emails", "K")
FOREIGN_POINTER = {"payload": '{"own":"pointer"}', "offloaded_bytes": 300_000}
KEYS = [
    *[(PK, f"{PREFIX}#{kind}") for kind in ("job", "cancelled", "handled", "parked", "x", "")],
    *[(PK, f"{PREFIX}#{kind}") for kind in ("!move-pending", "!move-target")],
    *[(PK, sk) for sk in (PREFIX, f"{PREFIX}#a#job", f"{PREFIX}~d#job", "2026", "2026-11-21", "zzz", "0#", "1#job")],
    *[rows.outcome_key(ID), KEY, head_key("emails", "digest")],
]
ODD = [None, "", "x", 0, -1, Decimal("1e40"), Decimal("1.5"), True, b"", b"\0", [], {}, {"a"}, "é", "\1", 10**30]
NAMES = ["ttl", "payload", "packed", "tenant", "priority", "offloaded_bytes", "schedule", "v", "traceparent"]
NAMES += ["moved_to", "exact", "dispatched", "at", "id", "payload_hash", "done"]
NAMES += ["state", "attempts", "started", "paused"]
SOUND = {**rows.job_row(GOOD), "id": str(ID), "done": True, "dispatched": True, "exact": True}
ATTRIBUTES = st.dictionaries(st.sampled_from(NAMES), st.sampled_from([..., *ODD, *SOUND.values()]), max_size=4)
FORGED = st.lists(st.tuples(st.sampled_from(KEYS), st.booleans(), ATTRIBUTES), min_size=1, max_size=4)
# All of it but what a row has that is sound: none, and each without its ttl, or whatever is read first.
BARE = [[(key, False, {})] for key in KEYS] + [[((PK, SK), True, each)] for each in (FOREIGN_POINTER, {"v": 2})]


def written(table, forged):
    """Put forged rows beside a job; an attribute of `...` is left out."""
    table.write([rows.job_row(GOOD)])
    for (pk, sk), is_sound, attributes in forged:
        row = {**(SOUND if is_sound else {}), **attributes, "pk": pk, "sk": sk}
        table.write([{name: value for name, value in row.items() if value is not ...}])


@pytest.fixture(scope="module")
def api():
    with pytest.MonkeyPatch.context() as monkeypatch, import_api(monkeypatch, a_queue(track=True)) as api:
        yield api


def bare(test):
    for forged in BARE:
        test = example(forged)(test)
    return test


@bare
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(FORGED)
def test_no_route_fails_on_forged_rows(api, forged):
    job = f"/queues/emails/jobs/{ID}"
    requests = [("GET", job, None), ("GET", "/queues/emails/jobs", None), ("GET", "/queues/emails", None)]
    requests += [("GET", "/queues/emails/schedules", None), ("DELETE", job, None), ("PATCH", job, {"delay": 5000})]
    requests += [("POST", "/queues/emails/jobs", {"payload": 1, "id": str(ID)})]
    requests += [("POST", "/queues/emails/jobs", {"payload": 1, "delay": 3600, "key": "K"})]
    for method, path, body in requests:
        table = api.DEPLOYMENT.table
        table.collect([rows.key(row) for row in table.all()])
        written(table, forged)
        status, reported = call_api(api, method, path, body)
        assert status < 500, (method, path, status, reported)
    assert call_api(api, "GET", "/queues/emails/jobs", query={"key": "K"})[0] < 500


@pytest.mark.parametrize(
    ("kind", "key"), [("jobs", (PK, SK.replace("#job", "0#job"))), ("schedules", head_key("emails", "digest"))]
)
def test_unreadable_rows_are_skipped_and_counted(api, caplog, kind, key):
    """An answer that leaves rows out says how many; the log has the first one's key, and no payload."""
    table = api.DEPLOYMENT.table
    table.collect([rows.key(row) for row in table.all()])
    assert "unreadable" not in call_api(api, "GET", f"/queues/emails/{kind}")[1]
    written(table, [(key, True, {"ttl": "secret", "payload": "secret"})])
    status, page = call_api(api, "GET", f"/queues/emails/{kind}")
    assert (status, page["unreadable"], len(page[kind])) == (200, 1, int(kind == "jobs"))
    (line,) = [record.getMessage() for record in caplog.records if record.name == "dueline"]
    assert (str(key) in line, "secret" in line) == (True, False)


@bare
@settings(max_examples=60, deadline=None)
@given(FORGED)
def test_no_tick_stops_at_forged_rows(forged):
    system = System(a_queue(track=True))
    written(system.table, forged)
    behind = a_job(due=DUE + timedelta(seconds=1))
    system.put(behind)
    system.clock.sleep((DUE - system.clock.now()).total_seconds() - 10)
    assert system.tick(EMAILS).finished
    assert str(behind.id) in [each.message.attributes["dueline-id"] for each in system.queues["emails"].deliveries]
    system.cancelled_among([ID])


@pytest.mark.parametrize(
    ("pk", "uid"), [(PK, "no-uuid"), (PK, f"A{ID.uid[1:]}"), (PK, ""), ("emails#1000", ID.uid), ("Emails#0", ID.uid)]
)
def test_row_with_a_bad_id_is_unreadable(pk, uid):
    """Nobody could look such a job up, or cancel it: its tick parks it, as any row that cannot be read."""
    with pytest.raises(InvalidJob, match="cannot be read"):
        rows.read_job({**rows.job_row(GOOD), "pk": pk, "sk": SK.replace(ID.uid, uid)})


@pytest.mark.parametrize("kinds", [["job"], ["!move-pending", "job"]])
def test_row_with_the_longest_key_delays_nothing(kinds):
    """Beside a row whose key has DynamoDB's 1,024 bytes, no longer key can be written or requested."""
    system, stuck = System(a_queue(priorities=2)), a_job(due=DUE, priority=2)
    long = [f"{SK[:24]}#{'x' * (999 - len(kind))}#{kind}" for kind in kinds]
    system.table.write([{"pk": PK, "sk": sk, "payload": "1", "ttl": 2**33} for sk in long])
    good = [a_job(due=DUE + timedelta(seconds=1)) for _ in range(3)]
    system.put(stuck, *good)

    def around(call):
        keys = [*map(rows.key, call.args[0])] if call.name == "table.write" else [*call.args[:1]]
        is_too_long = call.name in ("table.write", "table.read_barrier") and any(
            len(sk.encode()) > 1024 for _, sk in keys
        )
        if is_too_long or (is_down and call.name == "emails_p2.send"):
            raise Unavailable("ValidationException")
        return straight(call)

    system.wire.around, is_down = around, True
    system.clock.sleep((DUE - system.clock.now()).total_seconds() - 10)
    for _ in range(3):
        assert not system.tick().finished
        assert sorted(map(str, system.arrived())) == sorted(str(job.id) for job in good)
        assert system.dead_letters.deliveries == []
    is_down = False
    assert system.tick().finished
    assert system.arrived(priority=2) == [stuck.id]
    assert len(system.dead_letters.deliveries) == kinds.count("job")
