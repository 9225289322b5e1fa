"""What the guides of docs/ show works on a deployment, and what is killed there loses nothing and repeats nothing."""

import asyncio
import os
import re
import signal
import sqlite3
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import httpx
import pytest

from dueline import Client, Discard, JobNotFound, ReceivedJob, State, Worker
from dueline.config.names import Names
from local.emulator import ACCOUNT, Emulator
from tests.e2e.conftest import Typed
from tests.e2e.emulated_iam import key_of
from tests.e2e.working import working
from tests.waiting import HANG_SECONDS, PATIENT, wait_until

DOCS = Path(__file__).parents[2] / "docs"
NAMES = Names("e2e")
pytestmark = pytest.mark.usefixtures("credentials")


def files_of(page: str) -> dict[str, str]:
    text = (DOCS / f"{page}.md").read_text()
    return dict(re.findall(r'^```python title="(\S+)"\n(.*?)^```', text, re.DOTALL | re.MULTILINE))


def module_of(page: str, file: str) -> SimpleNamespace:
    """Run a file of a page in the deployment of the tests; return its names."""
    names: dict[str, Any] = {"__name__": file}
    exec(files_of(page)[file].replace(".connect()", '.connect("e2e")'), names)
    return SimpleNamespace(**names)


@pytest.fixture
def client() -> Client:
    return Client.connect("e2e", patience=PATIENT)


# docs/outbox.md


class Killed:
    """Kills its process at the step of that number: each statement of a database, and each call of a client, is one."""

    def __init__(self, client: Client, *, at: int | None) -> None:
        self._client, self._steps, self._at = client, count(), at

    def step(self, *_: object) -> None:
        if next(self._steps) == self._at:
            os.kill(os.getpid(), signal.SIGKILL)

    def __getattr__(self, name: str) -> Any:
        self.step()
        return getattr(self._client, name)


def run_relay(orders: SimpleNamespace, path: Path, client: Client, *, killed_at: int | None) -> int:
    """Run the relay in a fork; return its exit code, negative for a signal."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        code = 1
        try:
            database, killed = sqlite3.connect(path), Killed(client, at=killed_at)
            database.set_trace_callback(killed.step)
            orders.relay(database, killed)
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_killed_relay_loses_and_repeats_nothing(client: Client, tmp_path: Path) -> None:
    """After the death at each step, the next run leaves one job for an order that stays, none for one that does not."""
    orders, path = module_of("outbox", "orders.py"), tmp_path / "orders.db"
    database = orders.open_database(path)
    began, kept = datetime.now(UTC), []
    for step in count():
        kept.append(orders.place_order(database, "ann@example.com"))
        orders.withdraw_order(database, orders.place_order(database, "bob@example.com"))
        code = run_relay(orders, path, client, killed_at=step)
        if code == 0:
            break
        assert code == -signal.SIGKILL
        assert run_relay(orders, path, client, killed_at=None) == 0
    assert step > 10
    assert database.execute("SELECT * FROM outbox").fetchall() == []
    there = [job.key for job in client.jobs("emails", start=began + timedelta(days=3)) if "order-" in (job.key or "")]
    assert sorted(there) == sorted(f"order-{order}" for order in kept)
    assert {client.cancel(queue="emails", key=key) for key in there if key} == {State.CANCELLED}


# docs/fastapi.md


def test_fastapi_service_starts_and_schedules(client: Client) -> None:
    app = module_of("fastapi", "api.py").app
    reminder = {"email": "ann@example.com", "at": (datetime.now(UTC) + timedelta(days=1)).isoformat()}

    async def serve() -> tuple[int, State, str]:
        transport = httpx.ASGITransport(app=app)
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=transport, base_url="http://a") as http,
        ):
            scheduled = await http.put("/carts/7/reminder", json=reminder)
            state = client.get(queue="emails", key="cart-7").state
            return scheduled.status_code, state, (await http.delete("/carts/7/reminder")).json()["state"]

    assert asyncio.run(serve()) == (202, State.SCHEDULED, "cancelled")


# docs/from-eventbridge-scheduler.md

AT = "at(2031-05-04T09:00:00)"
EXPRESSIONS = {
    "one-time": AT,
    "past": "at(2020-05-04T09:00:00)",
    "rate": "rate(5 minutes)",
    "weekdays": "cron(0 9 ? * 2-6 *)",
    "second-monday": "cron(0/30 9 ? * 2#2 *)",
    "from-monday": "cron(0 9 ? * 2/2 *)",
    "of-2031": "cron(0 9 1 * ? 2031)",
    "nearest-weekday": "cron(0 9 1W * ? *)",
    "text": AT,
    "context": AT,
}
INPUTS = {"text": "no JSON", "context": '{"at": "<aws.scheduler.scheduled-time>"}'}


def at_eventbridge(emulator: Emulator, group: str, name: str, expression: str, **fields: Any) -> None:
    """Create or change a schedule of a group of EventBridge Scheduler, which calls a queue of others."""
    scheduler, arn = emulator.client("scheduler"), f"arn:aws:sqs:us-east-1:{ACCOUNT}:old"
    target = {"Arn": arn, "RoleArn": f"arn:aws:iam::{ACCOUNT}:role/old", "Input": INPUTS.get(name, '{"to": "ann"}')}
    window = {"Mode": "FLEXIBLE", "MaximumWindowInMinutes": 2} if name == "rate" else {"Mode": "OFF"}
    fields = {"GroupName": group, "Name": name, "ScheduleExpression": expression, "Target": target} | fields
    fields |= {"FlexibleTimeWindow": window, "ScheduleExpressionTimezone": "Europe/Berlin"}
    fields |= {"StartDate": datetime(2031, 1, 1, tzinfo=UTC)}
    try:
        scheduler.create_schedule(**fields)
    except scheduler.exceptions.ConflictException:
        scheduler.update_schedule(**fields)


@contextmanager
def group_of(emulator: Emulator, group: str) -> Iterator[str]:
    scheduler = emulator.client("scheduler")
    scheduler.create_schedule_group(Name=group)
    try:
        yield group
    finally:
        for name in states(emulator, group):
            scheduler.delete_schedule(GroupName=group, Name=name)
        scheduler.delete_schedule_group(Name=group)


@pytest.fixture
def group(emulator: Emulator, client: Client) -> Iterator[str]:
    # One for each test: repeats of a call get its job, even one that was cancelled.
    with group_of(emulator, f"old-{uuid4()}") as group:
        for name, expression in EXPRESSIONS.items():
            at_eventbridge(emulator, group, name, expression)
        yield group
    with suppress(JobNotFound):
        client.cancel(queue="archive", key="one-time")
    for each in list(client.schedules("archive").list()):
        client.schedules("archive").delete(each.name)


def states(emulator: Emulator, group: str) -> dict[str, str]:
    schedules = emulator.client("scheduler").list_schedules(GroupName=group)["Schedules"]
    return {each["Name"]: each["State"] for each in schedules}


def test_group_is_moved(client: Client, emulator: Emulator, group: str, capsys: pytest.CaptureFixture[str]) -> None:
    move, schedules = module_of("from-eventbridge-scheduler", "move.py").main, client.schedules("archive")
    move(group, "archive")
    assert set(states(emulator, group).values()) == {"ENABLED"}
    assert list(schedules.list()) == []
    capsys.readouterr()
    move(group, "archive", "--apply")
    by_hand = re.findall(r"^(\S+): left", capsys.readouterr().out, re.MULTILINE)
    assert sorted(by_hand) == ["context", "nearest-weekday", "of-2031", "past", "text"]
    assert states(emulator, group) == {name: "ENABLED" if name in by_hand else "DISABLED" for name in EXPRESSIONS}
    assert {each.name: (each.cron, each.every) for each in schedules.list()} == {
        "from-monday": ("0 9 * * 1-6/2", None),
        "rate": (None, timedelta(minutes=5)),
        "second-monday": ("0/30 9 * * 1#2", None),
        "weekdays": ("0 9 * * 1-5", None),
    }
    assert schedules.get("weekdays").next[0].local.isoformat() == "2031-01-01T09:00:00+01:00"
    assert schedules.get("rate").jitter == timedelta(minutes=2)


def test_group_is_moved_again_after_a_crash(client: Client, emulator: Emulator, group: str) -> None:
    """One before the old schedules were disabled: they are enabled still. A job that was cancelled is none."""
    move, schedules = module_of("from-eventbridge-scheduler", "move.py").main, client.schedules("archive")
    move(group, "archive", "--apply")
    moved = states(emulator, group)
    first = client.get(queue="archive", key="one-time"), [each.etag for each in schedules.list()]
    for name in (name for name, state in moved.items() if state == "DISABLED"):
        at_eventbridge(emulator, group, name, EXPRESSIONS[name], State="ENABLED")
    move(group, "archive", "--apply")
    assert states(emulator, group) == moved
    assert (client.get(queue="archive", key="one-time"), [each.etag for each in schedules.list()]) == first
    assert first[0].due.isoformat() == "2031-05-04T07:00:00+00:00"
    assert client.get(queue="archive", key="one-time", payload=True).payload == {"to": "ann"}
    client.cancel(queue="archive", key="one-time")
    at_eventbridge(emulator, group, "one-time", AT, State="ENABLED")
    move(group, "archive", "--apply")
    assert states(emulator, group)["one-time"] == "ENABLED"


@pytest.mark.parametrize("is_same", [True, False])
def test_name_that_the_queue_has_is_left(client: Client, emulator: Emulator, group: str, is_same: bool) -> None:
    """Of another group, of queues.yaml, or of this one when it ran last: nothing is replaced, nothing disabled."""
    move, schedules = module_of("from-eventbridge-scheduler", "move.py").main, client.schedules("archive")
    schedules.put("weekdays", "0 9 * * 1-5", zone="Europe/Berlin", payload={"to": "ann"}, owner="queues.yaml")
    move(group, "archive", "--apply")
    assert states(emulator, group)["weekdays"] == "ENABLED"
    first = client.get(queue="archive", key="one-time").due, [each.etag for each in schedules.list()]
    of_first = {"one-time": "at(2031-05-05T09:00:00)", "rate": "rate(6 minutes)"}
    with group_of(emulator, f"other-{uuid4()}") as other:
        for name, changed in of_first.items():
            expression, group_now = (EXPRESSIONS[name], other) if is_same else (changed, group)
            at_eventbridge(emulator, group_now, name, expression, State="ENABLED")
        for each in (group, other):
            move(each, "archive", "--apply")
        left = states(emulator, other if is_same else group)
        assert {left[name] for name in of_first} == {"ENABLED"}
    assert (client.get(queue="archive", key="one-time").due, [each.etag for each in schedules.list()]) == first


# docs/troubleshooting.md

TROUBLE = (DOCS / "troubleshooting.md").read_text()
MESSAGES = re.findall(r"`([^`]*…|finding queue[^`]*|the module[^`]*)`", TROUBLE)
NO_KEY = {"AWS_ACCESS_KEY_ID": None, "AWS_SECRET_ACCESS_KEY": None, "AWS_EC2_METADATA_DISABLED": "true"}
NO_REGION: dict[str, str | None] = {"AWS_DEFAULT_REGION": None}
NOBODY_LISTENS = "http://127.0.0.1:9"
WORKER = 'import dueline\nworker = dueline.Worker("e2e")\n@worker.job("{}")\ndef send(job): ...\n'


@pytest.fixture
def dueline(typed: Typed, tmp_path: Path) -> Typed:
    """Runs the command in a folder with workers."""
    for module, queue in {"shop": "emails", "wrong": "emial"}.items():
        (tmp_path / f"{module}.py").write_text(WORKER.format(queue))
    return partial(typed, "dueline")


def is_of_the_page(printed: str) -> bool:
    """Return whether the page has a message, with … for what varies."""
    said = printed.replace("nothing", "shop").replace("'e2e'", "'dueline'").replace("ment e2e", "ment dueline")
    patterns = [re.escape(each).replace("…", ".*") for each in MESSAGES]
    return any(re.fullmatch(pattern, said, re.DOTALL) for pattern in patterns)


@pytest.mark.parametrize(
    ("args", "changes", "code"),
    [
        ("queues", NO_REGION, 3),
        ("worker shop:worker", NO_REGION, 3),
        ("queues", NO_KEY, 5),
        ("worker shop:worker", NO_KEY, 5),
        ("--name shop queues", {"DUELINE_NAME": None}, 3),
        ("--name shop queues", {"DUELINE_URL": NOBODY_LISTENS}, 2),
        ("queues", {"DUELINE_URL": NOBODY_LISTENS}, 1),
        ("queues", {"AWS_ENDPOINT_URL": NOBODY_LISTENS}, 1),
        ("worker wrong:worker", {}, 3),
        ("worker nothing:worker", {}, 2),
        ("worker shop:wroker", {}, 2),
    ],
)
def test_page_has_what_failures_to_connect_print(
    dueline: Typed, args: str, changes: dict[str, str | None], code: int
) -> None:
    done = dueline(*args.split(), **changes)
    printed = done.stderr.removeprefix("dueline: ").strip()
    assert (done.returncode, is_of_the_page(printed)) == (code, True), printed


def test_page_has_what_missing_rights_print(dueline: Typed, emulator: Emulator) -> None:
    id, secret = key_of(emulator, "no-worker", NAMES.policy("emails", "producer"))
    done = dueline("worker", "shop:worker", AWS_ACCESS_KEY_ID=id, AWS_SECRET_ACCESS_KEY=secret)
    printed = done.stderr.removeprefix("dueline: ").strip()
    assert (done.returncode, is_of_the_page(printed)) == (5, True), printed


def as_shown(text: str) -> list[str]:
    """Return the lines of an output without what differs each time, and the width of its columns."""
    text = re.sub(r"[a-z]+\.\d\.[dt]\.\d+\.[0-9a-f…-]+", "ID", text)
    text = re.sub(r"(\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d UTC( \([^)]+\))?", "TIME", text)
    text = re.sub(r"last tick .*", "last tick", text)
    return [" ".join(line.split()) for line in text.splitlines()]


def test_outputs_look_as_on_the_page(dueline: Typed, client: Client) -> None:
    worker, (paused, dead) = Worker("e2e"), re.findall(r"```console\n(.*?)```", TROUBLE, re.DOTALL)

    @worker.job("archive")
    def send(job: ReceivedJob) -> None:
        raise Discard("no address")

    client.pause("archive")
    client.schedule("archive", {"to": "ann"})
    try:
        assert wait_until(lambda: client.queue("archive").depth.waiting == 1)
        queue = dueline("queues", "archive").stdout
    finally:
        client.resume("archive")
    with working(worker):
        assert wait_until(lambda: client.queue("archive").dead == 1)
    dead_letters = dueline("dead", "archive").stdout
    assert dueline("dead", "archive", "--delete", "--yes").returncode == 0
    assert as_shown(paused) == as_shown(f"$ dueline queues emails\n{queue}".replace("archive", "emails"))
    assert as_shown(dead) == as_shown(f"$ dueline dead invoices\n{dead_letters}".replace("archive", "invoices"))


# docs/django.md


PREPARE_SHOP = """
import sys
import shop.main, shop.jobs
from django.core.management import call_command
call_command("makemigrations", "shop")
call_command("migrate")
for address in sys.argv[1:]:
    shop.jobs.place_order(address)
"""


# That the module has the worker is in tests/unit/test_django_docs.py.
FROM_THE_SHELL = pytest.param("dueline worker shop.main:worker", 2, marks=pytest.mark.thorough)


@pytest.mark.parametrize(("worker", "order"), [("django work", 1), FROM_THE_SHELL])
def test_django_worker_reads_a_row_and_stops(client: Client, tmp_path: Path, worker: str, order: int) -> None:
    shown = files_of("django") | {f"shop/{folder}__init__.py": "" for folder in ("", "management/", "migrations/")}
    shown |= {"shop/management/commands/__init__.py": ""}
    for name, text in shown.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text.replace('"emails"', '"reminders"'))
    with (tmp_path / "settings.py").open("a") as settings:
        settings.write('DUELINE_NAME = "e2e"\nEMAIL_BACKEND = "django.core.mail.backends.console.EmailBackend"\n')
    path = f"{DOCS.parent}:{tmp_path}:{os.environ.get('PYTHONPATH', '')}"
    env = os.environ | {"PYTHONPATH": path, "DJANGO_SETTINGS_MODULE": "settings"}
    address, key = f"ann{order}@example.com", f"remind-{order}"
    prepare = [sys.executable, "-c", PREPARE_SHOP, *[address] * order]
    subprocess.run(prepare, cwd=tmp_path, env=env, check=True, timeout=HANG_SECONDS)
    client.run_now(queue="reminders", key=key)
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    with subprocess.Popen([sys.executable, "-m", *worker.split()], cwd=tmp_path, env=env, **pipes) as running:
        try:
            assert wait_until(lambda: client.get(queue="reminders", key=key).state is State.SUCCEEDED)
            running.terminate()
            output = running.communicate(timeout=HANG_SECONDS)[0]
        finally:
            running.kill()
    assert (running.returncode, f"To: {address}" in output) == (0, True), output
