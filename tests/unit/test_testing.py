"""`dueline.testing`: a deployment in memory, and what handlers are called with."""

import asyncio
import re
import threading
import time
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta
from importlib.metadata import entry_points
from pathlib import Path
from textwrap import dedent

import pytest

import dueline
from dueline import Discard, InvalidJob, NewJob, QueueNotFound, Retry, ScheduleChanged, State, Worker
from dueline.testing import Local, MemoryTable, received_job, sqs_event
from dueline.testing.memory_deployment import MemoryDeployment
from tests.builders import NOW
from tests.waiting import HANG_SECONDS

ROOT = Path(__file__).parents[2]


@pytest.fixture
def local():
    return Local(["emails"], now=NOW)


def payloads(jobs):
    return [job.payload for job in jobs]


def ends(events):
    return [(each.kind, each.attempt) for each in events]


def a_worker(call, queue="emails", **options):
    worker = Worker()
    worker.job(queue, **options)(call)
    return worker


# Time


@pytest.mark.parametrize(("seconds", "route"), [(60.4, "d"), (3 * 3600, "t"), (4e4 + 0.7, "t"), (400 * 86_400, "t")])
def test_job_is_sent_when_it_is_due(local, seconds, route):
    job = local.client.schedule("emails", {"to": "ann"}, delay=seconds)
    assert job.route == route
    local.advance(seconds=seconds - 1)
    assert (payloads(local.scheduled("emails")), local.sent("emails")) == ([{"to": "ann"}], [])
    local.advance(seconds=1)
    assert (local.scheduled("emails"), payloads(local.sent("emails"))) == ([], [{"to": "ann"}])


def test_what_ticks_send_takes_no_time(local):
    """On AWS a tick waits for the fraction of the second at which its jobs are due."""
    end = local.now + timedelta(hours=1)
    for seconds in (1, 30.5, 240):
        local.client.schedule("emails", seconds, at=end + timedelta(seconds=seconds))
    assert local.advance(hours=1) == end
    assert payloads(local.scheduled("emails")) == [1, 30.5, 240]
    assert local.now == end


def test_instants_of_the_machines_clock_come():
    """Code under test computes them from a clock that shows other fractions of seconds than the deployment's."""
    local = Local(["emails"])
    for number in range(20):
        local.client.schedule("emails", number, at=datetime.now(UTC) + timedelta(hours=1))
    local.client.schedule("emails", "now", at=datetime.now(UTC))
    assert payloads(local.sent("emails")) == ["now"]
    local.advance(hours=1)
    assert sorted(payloads(local.sent("emails"))[1:]) == [*range(20)]


def test_impossible_times_and_unknown_queues_are_refused(local):
    with pytest.raises(ValueError, match="it never goes back"):
        local.advance(hours=-1)
    with pytest.raises(ValueError, match="must have a time zone"):
        Local(["emails"], now=datetime(2030, 1, 1))  # noqa: DTZ001
    for call in (local.scheduled, local.sent, local.dead, lambda name: local.client.schedule(name, 1)):
        with pytest.raises(QueueNotFound, match="there is no queue 'emial'"):
            call("emial")


# The same promises as deployed


def test_job_moved_to_the_near_future_comes(local):
    """Its partition's tick has passed that time: ingest sends it."""
    local.client.schedule("emails", "by key", key="a", delay=3600)
    local.client.reschedule(queue="emails", key="a", delay=0)
    local.client.schedule("emails", "old", key="b", delay=3600)
    local.client.schedule("emails", "replaced", key="b", delay=3, if_exists="replace")
    local.client.reschedule(local.client.schedule("emails", "by id", delay=7200).id, delay=2)
    assert payloads(local.scheduled("emails")) == ["by id", "replaced"]
    local.advance(seconds=3)
    assert payloads(local.sent("emails")) == ["by key", "by id", "replaced"]


def test_cancelled_job_that_was_sent_is_not_run(local):
    job = local.client.schedule("emails", 1, delay=30)
    assert local.client.cancel(job.id) is State.CANCEL_REQUESTED
    assert local.scheduled("emails") == []
    local.advance(seconds=30)
    assert ends(local.run(a_worker(lambda job: pytest.fail("it ran")))) == [("skipped", 1)]


def test_settings_are_those_of_queues_yaml(tmp_path):
    path = tmp_path / "queues.yaml"
    path.write_text("queues: {emails: {priorities: 2, partitions: 3, track: true, retry: {attempts: 2, delay: 7}}}")
    local = Local(path)
    for level in (2, 1):
        local.client.schedule("emails", level, priority=level)
    began, order = local.now, []
    attempts = local.run(a_worker(lambda job: order.append((job.payload, job.attempt)) or 1 / 0))
    assert order == [(1, 1), (2, 1), (1, 2), (2, 2)]
    assert (local.now - began).total_seconds() == 7
    assert local.client.get(attempts[0].job).state is State.FAILED
    assert local.client.queue("emails").dead == 2
    assert Local({"emails": {"track": True}, "other": None}).client.queues()[0].track


def test_large_payload_is_there_whole(local):
    text = "".join(map(chr, range(0x4E00, 0x9000))) * 20
    local.client.schedule("emails", text, delay=3600)
    assert payloads(local.scheduled("emails")) == [text]
    local.advance(hours=1)
    assert payloads(local.sent("emails")) == [text]


def test_threads_may_share_it(local, monkeypatch):
    put, together, held = MemoryTable._put, threading.Barrier(8), set()
    # Between a condition and what it allows there is time for another thread.
    monkeypatch.setattr(MemoryTable, "_put", lambda table, row: time.sleep(0.001) or put(table, row))
    # Of two ticks of a partition at once, each would send what is due.
    monkeypatch.setattr(MemoryDeployment, "_tick", lambda deployment, _: held.add(deployment._lock._is_owned()))

    def schedule():
        for number in range(5):
            together.wait(HANG_SECONDS)
            local.client.schedule("emails", number, delay=3600, key=str(number))

    threads = [threading.Thread(target=schedule) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(payloads(local.scheduled("emails"))) == [*range(5)]
    assert held == {True}


# Workers


def test_jobs_between_two_attempts_run_on_time(local):
    for payload, delay in (("retried", 0), ("soon", 60), ("later", 3600), ("after", 3 * 3600)):
        local.client.schedule("emails", payload, delay=delay)
    due, starts = {job.payload: job.due for job in local.scheduled("emails")}, []

    def call(job):
        starts.append(local.now)
        if job.payload == "retried" and job.attempt < 3:
            raise Retry(timedelta(minutes=50 * job.attempt))

    worker, began = a_worker(call), local.now
    assert ends(local.run(worker))[-1] == ("succeeded", 3)
    second, last = (began + timedelta(minutes=minutes) for minutes in (50, 150))
    assert starts == [began, due["soon"], second, due["later"], last]
    assert (local.now, payloads(local.scheduled("emails"))) == (last, ["after"])
    assert local.run(worker) == []


def test_failed_jobs_are_dead_letters(local):
    local.client.schedule("emails", {"to": "ann"}, key="ann", kind="welcome")
    local.client.schedule("emails", 1)
    worker = a_worker(lambda job: 1 / 0)

    @worker.job("emails", kind="welcome")
    def welcome(job):
        raise Discard("no such address")

    discarded, *others = local.run(worker)
    assert (discarded.kind, discarded.error, discarded.job_kind) == ("failed", "Discard", "welcome")
    assert discarded.reason == "no such address"
    assert ends(others)[-2:] == [("retried", 9), ("failed", 10)]
    assert "lambda job: 1 / 0" in others[-1].stack
    first, last = local.dead("emails")
    assert (first.payload, first.key, first.kind) == ({"to": "ann"}, "ann", "welcome")
    assert (first.error, first.attempts) == ("Discard", 1)
    assert (last.error, last.attempts) == ("ZeroDivisionError", 10)
    assert len(local.sent("emails")) == 2


def test_jobs_run_one_after_the_other_in_this_thread(local):
    ran = []

    def call(job):
        ran.append((job.payload, threading.get_ident()))
        if job.payload == 2:
            raise KeyboardInterrupt

    for number in range(4):
        local.client.schedule("emails", number)
    with pytest.raises(KeyboardInterrupt):
        local.run(a_worker(call, concurrency=8))
    assert ran == [(number, threading.get_ident()) for number in range(3)]


def test_endless_chain_of_jobs_is_an_error(local, monkeypatch):
    monkeypatch.setattr("dueline.testing.local._MOST_STEPS", 50)
    local.client.schedule("emails", 1)
    worker = a_worker(lambda job: local.client.schedule("emails", 1) and None)
    with pytest.raises(RuntimeError, match="after 50 jobs some are still due"):
        local.run(worker)


def test_coroutine_functions_run(local):
    """They may schedule the next job, by the async client of the same deployment: it runs, too."""
    ran = []

    async def call(job):
        await local.async_client.schedule("emails", 2, kind="other")
        ran.append(job.payload)

    worker = a_worker(call, kind="first")
    worker.job("emails", kind="other")(lambda job: ran.append(job.payload))
    local.client.schedule("emails", 1, kind="first")

    async def test():
        return local.run(worker)

    assert ends(asyncio.run(test())) == [("succeeded", 1)] * 2
    assert ran == [1, 2]


def test_job_that_takes_an_hour_runs_once(local):
    local.client.schedule("emails", 1)
    assert ends(local.run(a_worker(lambda job: local.advance(hours=1) and None))) == [("succeeded", 1)]


def test_paused_and_precise_queues_hold_their_jobs():
    local, starts = Local({"emails": {"precise": True}}), []
    job = local.client.schedule("emails", 1, delay=0.75)
    local.client.pause("emails")
    worker = a_worker(lambda job: starts.append(local.now))
    assert local.run(worker) == []
    local.client.resume("emails")
    local.run(worker)
    assert starts == [job.due]


# Schedules


def test_schedule_makes_its_runs(local):
    made = local.client.schedules("emails").put("digest", cron="0 8 * * *", zone="Europe/Berlin", payload={"to": "all"})
    local.advance(days=3)
    runs = local.sent("emails")
    assert [run.scheduled_for for run in runs] == [each.scheduled_for for each in made.next[:3]]
    assert {(run.schedule, run.payload["to"]) for run in runs} == {("digest", "all")}


def test_schedules_can_be_changed(local):
    schedules = local.client.schedules("emails")
    first = schedules.put("digest", every=3600)
    second = schedules.put("digest", every="2h", jitter=0.0, payload="all")
    assert (first.generation, second.generation) == (1, 2)
    with pytest.raises(ScheduleChanged):
        schedules.put("digest", every=60, if_match=first.etag)
    assert schedules.pause("digest").paused
    for change in (schedules.delete, schedules.pause, schedules.resume):
        with pytest.raises(ScheduleChanged):
            change("digest", if_match=first.etag)
    local.advance(hours=5)
    assert local.sent("emails") == []
    assert not schedules.resume("digest").paused
    assert schedules.get("digest").every == timedelta(hours=2)
    ran = {schedules.run("digest", idempotency_key="once").id for _ in range(2)}
    assert [(job.id, job.payload) for job in local.sent("emails") if job.id in ran] == [(*ran, "all")]
    local.advance(hours=4)
    assert len(local.sent("emails")) == 3
    assert [each.name for each in schedules.list()] == ["digest"]
    assert schedules.delete("digest").deleted
    assert [*schedules.list()] == []
    with pytest.raises(NotImplementedError, match="has no history or backfill"):
        schedules.history("digest")


def test_worker_declares_its_schedules(local):
    worker, ran = Worker(), []

    @worker.schedule("emails", "digest", every=timedelta(hours=1), payload="all")
    def digest(job):
        ran.append((job.payload, job.schedule))

    assert local.run(worker) == []
    local.advance(hours=2)
    assert ends(local.run(worker)) == [("succeeded", 1)] * 2
    assert ran == [("all", "digest")] * 2


# Jobs and events to call handlers with


def test_lambda_handler_gets_events(local):
    got, errors = [], []

    @dueline.lambda_handler(once=True, on_error=lambda job, error: errors.append(type(error)))
    def handler(job):
        got.append((job.payload, job.kind, job.attempt))
        if job.payload is None:
            raise ValueError

    event = sqs_event([{"to": "ann"}, None, NewJob(payload=3, kind="digest")], queue="emails", attempt=2)
    for _ in range(2):
        assert local.invoke(handler, event) == {"batchItemFailures": [{"itemIdentifier": "2"}]}
    # With `once`, what was done is not done again.
    assert got == [({"to": "ann"}, None, 2), (None, None, 2), (3, "digest", 2), (None, None, 2)]
    assert errors == [ValueError] * 2
    assert handler.function(received_job(4)) is None
    assert got[-1] == (4, None, 1)
    with pytest.raises(AttributeError, match="it has 2 functions"):
        _ = dueline.lambda_handler({"a": len, "b": len}).function


def test_async_lambda_handler_runs_beside_a_loop(local):
    """A test that is a coroutine calls it; each record has a loop of its own, as on Lambda."""
    got = []

    @dueline.lambda_handler
    async def handler(job):
        await local.async_client.schedule("emails", job.payload)
        got.append((job.payload, asyncio.get_running_loop(), name.get()))
        if job.payload == 2:
            raise ValueError

    async def test():
        name.set("a test's")
        return local.invoke(handler, sqs_event([1, 2], queue="emails")), asyncio.get_running_loop()

    name = ContextVar("name")
    answer, own = asyncio.run(test())
    assert answer == {"batchItemFailures": [{"itemIdentifier": "2"}]}
    assert [(payload, each) for payload, _, each in got] == [(1, "a test's"), (2, "a test's")]
    assert len({own, *(loop for _, loop, _ in got)}) == 3


def test_received_job_is_as_a_worker_gets_it():
    job = received_job({"to": ("ann",)}, attempt=2, kind="welcome", key="ann", queue="emails", due=NOW)
    assert (job.payload, job.attempt, job.kind, job.queue) == ({"to": ["ann"]}, 2, "welcome", "emails")
    assert (job.key, job.due, job.lateness) == ("ann", NOW, 0.0)
    assert (job.max_attempts, job.is_last_attempt, job.is_claim_lost) == (10, False, False)


@pytest.mark.parametrize(
    ("payload", "options", "error"),
    [(object(), {}, InvalidJob), (1, {"kind": "No!"}, InvalidJob), (1, {"attempt": 0}, ValueError)],
)
def test_impossible_jobs_are_refused(payload, options, error):
    with pytest.raises(error):
        received_job(payload, **options)


# The plugin, and what pages show


A_TEST = """
def test_it(dueline):
    dueline.client.schedule("emails", 1)
    assert len(dueline.sent("emails")) == 1
"""
QUEUES_YAML = {"queues.yaml": "queues: {emails: {}}"}
OWN_QUEUES = {"conftest.py": "import pytest\n@pytest.fixture\ndef dueline_queues():\n    return ['emails']"}


def run_tests(pytester, files):
    """Run the tests of a folder with these files in this process, as a project of its own."""
    ini = "[pytest]\nfilterwarnings =\n  error\n  ignore:Using `httpx`\n"
    for name, text in {"pytest.ini": ini, **files}.items():
        (pytester.path / name).write_text(text)
    # tests/unit/test_floors.py has the code where the package is not installed.
    is_installed = any(each.name == "dueline" for each in entry_points(group="pytest11"))
    plugins = () if is_installed else ("-p", "dueline.testing.plugin")
    return pytester.runpytest_inprocess("-p", "no:cacheprovider", *plugins)


def test_fixture_has_the_queues_of_a_conftest(pytester):
    run_tests(pytester, {"test_it.py": A_TEST, **OWN_QUEUES}).assert_outcomes(passed=1)


def test_fixture_without_queues_says_what_to_write(pytester):
    done = run_tests(pytester, {"test_it.py": A_TEST})
    done.stdout.fnmatch_lines("*queues.yaml does not exist: write a fixture dueline_queues*")


# What a page shows of others is in another language, or is none of its files.
@pytest.mark.parametrize(("page", "number"), [("testing", 4), ("fastapi", 2), ("outbox", 3), ("from-celery", 3)])
def test_page_shows_tests_that_pass(pytester, page, number):
    files = files_of(page)
    assert len(files) == number
    shown = sum(text.count("\ndef test_") for text in files.values())
    run_tests(pytester, {**QUEUES_YAML, **files}).assert_outcomes(passed=shown)


def files_of(page):
    """Return the files that a page shows, by name; what else it shows in Python has no title."""
    text = (ROOT / "docs" / f"{page}.md").read_text()
    shown = re.findall(r'^( *)```python title="(\S+)"\n(.*?)^\1```', text, re.DOTALL | re.MULTILINE)
    return {name: dedent(code) for _, name, code in shown}
