"""What the guides and runbooks of docs/ show works on a deployment."""

import os
import re
import subprocess
import sys
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest

from dueline import JobNotFound, State
from dueline.config.names import Names
from local.emulator import ACCOUNT, REGION
from tests.e2e.emulated_iam import key_of
from tests.waiting import HANG_SECONDS, wait_until

DOCS = Path(__file__).parents[2] / "docs"
NAMES = Names("e2e")
pytestmark = pytest.mark.usefixtures("credentials")


def files_of(page):
    text = (DOCS / f"{page}.md").read_text()
    return dict(re.findall(r'^```python title="(\S+)"\n(.*?)^```', text, re.DOTALL | re.MULTILINE))


# docs/from-eventbridge-scheduler.md

GROUP = "old"
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


def at_eventbridge(emulator, name, **fields):
    """Create or change a schedule of a group of EventBridge Scheduler, which calls a queue of others."""
    scheduler, arn = emulator.client("scheduler"), f"arn:aws:sqs:us-east-1:{ACCOUNT}:old"
    target = {"Arn": arn, "RoleArn": f"arn:aws:iam::{ACCOUNT}:role/old", "Input": INPUTS.get(name, '{"to": "ann"}')}
    window = {"Mode": "FLEXIBLE", "MaximumWindowInMinutes": 2} if name == "rate" else {"Mode": "OFF"}
    fields |= {"GroupName": GROUP, "Name": name, "ScheduleExpression": EXPRESSIONS[name], "Target": target}
    fields |= {"FlexibleTimeWindow": window, "ScheduleExpressionTimezone": "Europe/Berlin"}
    fields |= {"StartDate": datetime(2031, 1, 1, tzinfo=UTC)}
    try:
        scheduler.create_schedule(**fields)
    except scheduler.exceptions.ConflictException:
        scheduler.update_schedule(**fields)


def states(emulator):
    schedules = emulator.client("scheduler").list_schedules(GroupName=GROUP)["Schedules"]
    return {each["Name"]: each["State"] for each in schedules}


def test_group_is_moved_and_again_after_a_crash(client, emulator, capsys):
    """The crash was before the old schedules were disabled: they are enabled still. A cancelled job is none."""
    names = {"__name__": "move"}
    exec(files_of("from-eventbridge-scheduler")["move.py"].replace(".connect()", '.connect("e2e")'), names)
    move, schedules = names["main"], client.schedules("billing")
    emulator.client("scheduler").create_schedule_group(Name=GROUP)
    for name in EXPRESSIONS:
        at_eventbridge(emulator, name)
    move(GROUP, "billing")
    assert set(states(emulator).values()) == {"ENABLED"}
    assert list(schedules.list()) == []

    capsys.readouterr()
    move(GROUP, "billing", "--apply")
    by_hand = re.findall(r"^(\S+): left", capsys.readouterr().out, re.MULTILINE)
    assert sorted(by_hand) == ["context", "nearest-weekday", "of-2031", "past", "text"]
    moved = {name: "ENABLED" if name in by_hand else "DISABLED" for name in EXPRESSIONS}
    assert states(emulator) == moved
    assert {each.name: (each.cron, each.every) for each in schedules.list()} == {
        "from-monday": ("0 9 * * 1-6/2", None),
        "rate": (None, timedelta(minutes=5)),
        "second-monday": ("0/30 9 * * 1#2", None),
        "weekdays": ("0 9 * * 1-5", None),
    }
    assert schedules.get("weekdays").next[0].local.isoformat() == "2031-01-01T09:00:00+01:00"
    assert schedules.get("rate").jitter == timedelta(minutes=2)

    first = client.get(queue="billing", key="one-time"), [each.etag for each in schedules.list()]
    for name in (name for name, state in moved.items() if state == "DISABLED"):
        at_eventbridge(emulator, name, State="ENABLED")
    move(GROUP, "billing", "--apply")
    assert states(emulator) == moved
    assert (client.get(queue="billing", key="one-time"), [each.etag for each in schedules.list()]) == first
    assert first[0].due.isoformat() == "2031-05-04T07:00:00+00:00"
    assert client.get(queue="billing", key="one-time").payload == {"to": "ann"}

    client.cancel(queue="billing", key="one-time")
    at_eventbridge(emulator, "one-time", State="ENABLED")
    move(GROUP, "billing", "--apply")
    assert states(emulator)["one-time"] == "ENABLED"


# docs/troubleshooting.md

TROUBLE = (DOCS / "troubleshooting.md").read_text()
MESSAGES = re.findall(r"`([^`]*…|finding queue[^`]*|the module[^`]*)`", TROUBLE)
NO_KEY = {"AWS_ACCESS_KEY_ID": None, "AWS_SECRET_ACCESS_KEY": None, "AWS_EC2_METADATA_DISABLED": "true"}
NO_REGION = {"AWS_DEFAULT_REGION": None}
NOBODY_LISTENS = "http://127.0.0.1:9"
WORKER = 'import dueline\nworker = dueline.Worker("e2e")\n@worker.job("{}")\ndef send(job): ...\n'


@pytest.fixture
def dueline(typed, tmp_path):
    """Runs the command in a folder with workers."""
    for module, queue in {"shop": "emails", "wrong": "emial"}.items():
        (tmp_path / f"{module}.py").write_text(WORKER.format(queue))
    return partial(typed, "dueline")


def is_of_the_page(printed):
    """Return whether the page has a message, with … for what varies."""
    said = printed.replace("nothing", "shop").replace("'e2e'", "'dueline'").replace("ment e2e", "ment dueline")
    patterns = [re.escape(each).replace("…", ".*") for each in MESSAGES]
    return any(re.fullmatch(pattern, said, re.DOTALL) for pattern in patterns)


@pytest.mark.parametrize(
    ("args", "changes", "code"),
    [
        ("queues", NO_REGION, 3),
        ("worker shop:worker", NO_KEY, 5),
        ("--name shop queues", {"DUELINE_URL": NOBODY_LISTENS}, 2),
        ("queues", {"DUELINE_URL": NOBODY_LISTENS}, 1),
        ("worker wrong:worker", {}, 3),
        ("worker nothing:worker", {}, 2),
    ],
)
def test_page_has_what_failures_to_connect_print(dueline, args, changes, code):
    done = dueline(*args.split(), **changes)
    printed = done.stderr.removeprefix("dueline: ").strip()
    assert (done.returncode, is_of_the_page(printed)) == (code, True), printed


def test_page_has_what_missing_rights_print(dueline, emulator):
    id, secret = key_of(emulator, "no-worker", NAMES.policy("emails", "producer"))
    done = dueline("worker", "shop:worker", AWS_ACCESS_KEY_ID=id, AWS_SECRET_ACCESS_KEY=secret)
    printed = done.stderr.removeprefix("dueline: ").strip()
    assert (done.returncode, is_of_the_page(printed)) == (5, True), printed


# docs/django.md


SHOP = """
import shop.main, shop.jobs
from django.core.management import call_command
call_command("makemigrations", "shop")
call_command("migrate")
shop.jobs.place_order("ann1@example.com")
call_command("work")
"""


def test_django_worker_reads_a_row_and_stops(client, tmp_path):
    shown = files_of("django") | {f"shop/{folder}__init__.py": "" for folder in ("", "management/", "migrations/")}
    shown |= {"shop/management/commands/__init__.py": ""}
    for name, text in shown.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text.replace('"emails"', '"reminders"'))
    with (tmp_path / "settings.py").open("a") as settings:
        settings.write('DUELINE_NAME = "e2e"\nEMAIL_BACKEND = "django.core.mail.backends.console.EmailBackend"\n')
    path = f"{DOCS.parent}:{tmp_path}:{os.environ.get('PYTHONPATH', '')}"
    env = os.environ | {"PYTHONPATH": path, "DJANGO_SETTINGS_MODULE": "settings"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    with subprocess.Popen([sys.executable, "-c", SHOP], cwd=tmp_path, env=env, **pipes) as running:

        def reminder_is(state):
            with suppress(JobNotFound):
                return client.get(queue="reminders", key="remind-1").state is state
            return False

        try:
            assert wait_until(lambda: running.poll() is not None or reminder_is(State.SCHEDULED))
            client.reschedule(queue="reminders", key="remind-1", delay=0)
            assert wait_until(lambda: running.poll() is not None or reminder_is(State.SUCCEEDED))
            running.terminate()
            output = running.communicate(timeout=HANG_SECONDS)[0]
        finally:
            running.kill()
    assert (running.returncode, "To: ann1@example.com" in output) == (0, True), output


# docs/runbooks

# The doctor exits with 1 where it finds something. For SQS the command line would use an endpoint of its own.
PROMPT = """
dueline() { command dueline "$@" || [ "$1 $?" = "doctor 1" ]; }
aws() { command aws --endpoint-url "$AWS_ENDPOINT_URL" "$@"; }
"""


@pytest.mark.thorough
@pytest.mark.parametrize("page", sorted((DOCS / "runbooks").glob("*.md")), ids=lambda page: page.stem)
def test_commands_of_each_runbook_work(page, shell, endpoints):
    filled = {"name": endpoints.name, "region": REGION, "account": ACCOUNT, "queue": "emails", "partition": "0"}
    filled |= {"function": "tick"} | {f"{queue}_dlq_url": url for queue, url in endpoints.dead_letter_queues.items()}
    filled |= {"planner_dlq_url": filled["emails_dlq_url"].replace("emails_dlq", "dueline-planner_dlq")}
    # What is no placeholder is of JSON or of JMESPath.
    for block in re.findall(r"```bash\n(.*?)```", page.read_text(), re.DOTALL):
        shell(PROMPT + re.sub(r"\{([a-z_]+)\}", lambda match: filled.get(match[1], match[0]), block))
