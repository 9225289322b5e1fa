"""What the guides of docs/ show works on a deployment, and what is killed there loses nothing and repeats nothing."""

import asyncio
import os
import re
import signal
import sqlite3
import warnings
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from dueline import Client, State
from local.emulator import ACCOUNT, Emulator
from tests.waiting import PATIENT

DOCS = Path(__file__).parents[2] / "docs"
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
    "of-2031": "cron(0 9 1 * ? 2031)",
    "nearest-weekday": "cron(0 9 1W * ? *)",
    "text": AT,
    "context": AT,
}
INPUTS = {"text": "no JSON", "context": '{"at": "<aws.scheduler.scheduled-time>"}'}


@pytest.fixture
def group(emulator: Emulator) -> Iterator[str]:
    """A group of EventBridge Scheduler that calls a queue of others."""
    scheduler, target = emulator.client("scheduler"), {"Arn": f"arn:aws:sqs:us-east-1:{ACCOUNT}:old"}
    target["RoleArn"] = f"arn:aws:iam::{ACCOUNT}:role/old"
    scheduler.create_schedule_group(Name="old")
    for name, expression in EXPRESSIONS.items():
        window: dict[str, Any] = (
            {"Mode": "FLEXIBLE", "MaximumWindowInMinutes": 2} if name == "rate" else {"Mode": "OFF"}
        )
        scheduler.create_schedule(
            GroupName="old",
            Name=name,
            ScheduleExpression=expression,
            ScheduleExpressionTimezone="Europe/Berlin",
            StartDate=datetime(2031, 1, 1, tzinfo=UTC),
            FlexibleTimeWindow=window,
            Target=target | {"Input": INPUTS.get(name, '{"to": "ann"}')},
        )
    yield "old"
    for name in EXPRESSIONS:
        scheduler.delete_schedule(GroupName="old", Name=name)
    scheduler.delete_schedule_group(Name="old")


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
        "rate": (None, timedelta(minutes=5)),
        "second-monday": ("0/30 9 * * 1#2", None),
        "weekdays": ("0 9 * * 1-5", None),
    }
    assert schedules.get("weekdays").next[0].local.isoformat() == "2031-01-01T09:00:00+01:00"
    assert schedules.get("rate").jitter == timedelta(minutes=2)


def test_group_is_moved_again_after_a_crash(client: Client, emulator: Emulator, group: str) -> None:
    """Before the old schedules were disabled, that is: they are enabled still."""
    move, schedules, scheduler = (
        module_of("from-eventbridge-scheduler", "move.py").main,
        client.schedules("archive"),
        emulator.client("scheduler"),
    )
    move(group, "archive", "--apply")
    first = client.get(queue="archive", key="one-time"), [each.etag for each in schedules.list()]
    for name, state in states(emulator, group).items():
        if state == "DISABLED":
            old = scheduler.get_schedule(GroupName=group, Name=name)
            fields = ("Name", "GroupName", "ScheduleExpression", "FlexibleTimeWindow", "Target", "StartDate")
            zone = {"ScheduleExpressionTimezone": "Europe/Berlin"}
            scheduler.update_schedule(**{field: old[field] for field in fields}, **zone, State="ENABLED")
    move(group, "archive", "--apply")
    assert (client.get(queue="archive", key="one-time"), [each.etag for each in schedules.list()]) == first
    assert first[0].due.isoformat() == "2031-05-04T07:00:00+00:00"
    assert client.get(queue="archive", key="one-time", payload=True).payload == {"to": "ann"}
    client.cancel(queue="archive", key="one-time")
    for each in list(schedules.list()):
        schedules.delete(each.name)
