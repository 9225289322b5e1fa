"""What `dueline doctor` finds, in what was seen, and how it reports it."""

import json
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dueline.aws.inspection import _ALL
from dueline.cli import connect
from dueline.cli.app import COMMANDS, app
from dueline.config.names import Names
from dueline.core import instant
from dueline.core.job import Partition
from dueline.core.overview import Control
from dueline.core.queue_settings import QueueSettings, Rate
from dueline.core.rows import WatchNote
from dueline.errors import Forbidden
from dueline.operations.doctor import RULES, findings
from dueline.operations.observation import (
    Alarm,
    Check,
    LogLine,
    Observation,
    ObservedDeployment,
    QueueDepth,
    Severity,
    Unchecked,
)

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "doctor.md").read_text()
NOW = datetime(2026, 11, 23, 3, tzinfo=UTC)
NAMES = Names("shop")
EMAILS = QueueSettings(name="emails", partitions=2, retention=timedelta(days=7))
DEPLOYMENT = ObservedDeployment(names=NAMES, queues=(EMAILS,))
SOON = instant.text(NOW + timedelta(seconds=200))
PARTITIONS = [Partition(queue="emails", number=0), Partition(queue="emails", number=1)]
PLANNER = Partition(queue="dueline-planner", number=0)
QUEUES = (
    *("shop-inbound", "shop-inbound-dlq", "shop-dispatch-dlq", "shop-tick-dlq"),
    *("shop_emails", "shop_emails_dlq", "shop_dueline-planner", "shop_dueline-planner_dlq"),
)
RINGING = Alarm(
    name="shop-core-Alarms1",
    is_ringing=True,
    description="It is late.",
    notifies=True,
    page="docs/runbooks/late-jobs.md",
)
QUIET = [replace(RINGING, is_ringing=False, name=name) for name in ("shop-core-Alarms1", "shop-queue-emails-Alarms1")]
HEALTHY = Observation(
    deployment=DEPLOYMENT,
    now=NOW,
    schedules=dict.fromkeys(("emails.0", "emails.1", "dueline-planner.0"), "ENABLED"),
    watches={NAMES.planner_watch: "ENABLED"},
    notes={"ticks": WatchNote(at=NOW - timedelta(minutes=14), count=3), "schedules": WatchNote(at=NOW, count=0)},
    fences=dict.fromkeys((*PARTITIONS, PLANNER), SOON),
    controls={"emails": Control()},
    depths=dict.fromkeys(QUEUES, QueueDepth(waiting=0)),
    figures={("emails", "on_time"): 5000.0, ("emails", "delayed"): 1.0},
    reserved=dict.fromkeys(("api", "ingest", "planner", "tick")),
    sources={"ingest": ["Enabled"], "planner": ["Enabled"]},
    alarms=QUIET,
    subscribers={"shop-alarms": 1},
)


def without(mapping, *keys):
    return {key: value for key, value in mapping.items() if key not in keys}


def filled(name, count=3, **more):
    return {"depths": {**HEALTHY.depths, name: QueueDepth(waiting=count, **more)}}


def measured(**of):
    """Return figures: `emails__lateness=90` is the lateness of emails."""
    answer = {tuple(name.replace("_inbound", "-inbound").split("__")): float(value) for name, value in of.items()}
    return {"figures": {**HEALTHY.figures, **answer}}


def noted(**notes):
    return {"notes": {**HEALTHY.notes, **notes}}


SILENT = WatchNote(at=NOW - timedelta(minutes=16), count=0)
PAST = instant.text(NOW - timedelta(seconds=1))
STOPPED = LogLine(function="tick", message="stopped", reason="AccessDenied: no", queue="emails", count=4)
CRITICAL, WARNING, NOTE = Severity.CRITICAL, Severity.WARNING, Severity.NOTE
# What is wrong: the code, what it is about, how bad it is, and what is said.
WRONG = [
    ({"schedules": without(HEALTHY.schedules, "emails.1")}, "tick_missing", "emails", CRITICAL, "emails.1"),
    ({"schedules": without(HEALTHY.schedules, "dueline-planner.0")}, "tick_missing", "dueline-planner", CRITICAL, ""),
    ({"schedules": {**HEALTHY.schedules, "emails.0": "DISABLED"}}, "tick_disabled", "emails", CRITICAL, "emails.0"),
    # Of a queue or a partition that was given up: its rows need a tick still.
    ({"schedules": {**HEALTHY.schedules, "old.0": "DISABLED"}}, "tick_disabled", "old", CRITICAL, "old.0"),
    ({"depths": {**HEALTHY.depths, "shop_emails": None}}, "queue_gone", "shop_emails", CRITICAL, "does not exist"),
    ({"watches": {}}, "watch_off", NAMES.planner_watch, WARNING, "missing"),
    (noted(ticks=SILENT), "watch_off", "shop-watch", WARNING, "not run since"),
    ({"watches": {**HEALTHY.watches, NAMES.planner_watch: "DISABLED"}}, "watch_off", NAMES.planner_watch, WARNING, ""),
    ({"fences": {**HEALTHY.fences, PARTITIONS[1]: PAST}}, "fence_still", "emails", CRITICAL, "emails#1"),
    ({"fences": without(HEALTHY.fences, PARTITIONS[0])}, "fence_still", "emails", CRITICAL, "never had a tick"),
    (measured(emails__rate=1001), "partitions_too_few", "emails", WARNING, "sent to workers"),
    (measured(emails__lateness=60), "late_jobs", "emails", CRITICAL, "60 s late"),
    (measured(emails__on_time=999, emails__delayed=2), "jobs_not_on_time", "emails", WARNING, "99.8 %"),
    (measured(shop_inbound__age=300), "inbound_backlog", "shop-inbound", CRITICAL, "300 s"),
    (filled("shop-inbound"), "inbound_backlog", "shop-inbound", CRITICAL, "3 messages wait for ingest, since when is"),
    (
        filled("shop_emails", retention=timedelta(days=4)) | measured(shop_emails__age=2 * 86_400),
        *("messages_kept_long", "emails", CRITICAL, "48 h"),
    ),
    (filled("shop_emails") | {"controls": {"emails": Control(paused=True)}}, "queue_stopped", "emails", NOTE, "paused"),
    (
        filled("shop_emails") | {"controls": {"emails": Control(rate=Rate.parse("0/s"))}},
        *("queue_stopped", "emails", NOTE, "its rate is 0"),
    ),
    (filled("shop_emails"), "not_received", "emails", WARNING, "3 jobs wait, since when is not known, and none is"),
    (
        filled("shop_emails", count=1) | measured(shop_emails__age=60),
        *("not_received", "emails", WARNING, "about 1 job waits, the oldest for 60 s"),
    ),
    ({"reserved": {**HEALTHY.reserved, "api": 0}}, "function_stopped", "shop-api", CRITICAL, "concurrency is 0"),
    ({"sources": {**HEALTHY.sources, "ingest": ["Disabled"]}}, "function_stopped", "shop-ingest", CRITICAL, "disabled"),
    ({"sources": {**HEALTHY.sources, "planner": []}}, "function_stopped", "shop-planner", CRITICAL, "missing"),
    (measured(tick__errors=2), "function_errors", "shop-tick", WARNING, "2 times"),
    (measured(tick__errors=1), "function_errors", "shop-tick", WARNING, "failed once in"),
    (measured(api__throttles=2), "function_throttled", "shop-api", WARNING, "2 times"),
    ({"queue_figures": {("shop", "ttl_off"): 1.0}}, "ttl_off", "shop-jobs", WARNING, "switched off"),
    ({"figures": {("shop", "api_faults"): 3.0}}, "api_faults", "shop-api", WARNING, "3 requests"),
    ({"figures": {("shop-jobs", "throttled"): 9.0}}, "table_throttled", "shop-jobs", WARNING, "9 requests"),
    ({"logged": [STOPPED]}, "stopped", "emails", WARNING, "4 times: AccessDenied: no"),
    (noted(schedules=WatchNote(at=NOW, count=2)), "schedules_stood_still", "shop-planner", WARNING, "2 schedules"),
    (filled("shop_emails_dlq"), "dead_letters", "emails", WARNING, "3 jobs failed"),
    (filled("shop_emails_dlq", count=1), "dead_letters", "emails", WARNING, "1 job failed for good"),
    (filled("shop-dispatch-dlq", count=1), "parked_jobs", "shop-dispatch-dlq", WARNING, "1 job is parked: it can"),
    (filled("shop-dispatch-dlq"), "parked_jobs", "shop-dispatch-dlq", WARNING, "3 jobs are parked"),
    (filled("shop-inbound-dlq"), "inbound_dead_letters", "shop-inbound-dlq", WARNING, "3 messages"),
    (filled("shop-tick-dlq"), "failed_firings", "shop-tick-dlq", WARNING, "3 invocations"),
    (filled("shop_dueline-planner_dlq"), "planner_dead_letters", "shop_dueline-planner_dlq", WARNING, "3 planning"),
    ({"alarms": [*QUIET, RINGING]}, "alarm", "shop-core-Alarms1", WARNING, "It is late."),
    ({"alarms": [*QUIET, replace(QUIET[0], notifies=False)]}, "alarms_unheard", "alarms", WARNING, "Alarms1"),
    # Those of emails-eu are not its.
    ({"left": {"shop_emails_p3": QueueDepth(waiting=2, in_flight=1)}}, "queue_left", "shop_emails_p3", WARNING, "96 h"),
    ({"subscribers": {"shop-alarms": 0}}, "alarms_unheard", "shop-alarms", WARNING, "nobody is notified"),
]


@pytest.mark.parametrize(("changes", "code", "about", "severity", "said"), WRONG)
def test_each_problem_is_named_alone(changes, code, about, severity, said):
    (result,) = findings(replace(HEALTHY, **changes))
    assert (result.code, result.about, result.severity) == (code, about, severity)
    assert said in result.what
    assert result.do


def test_each_finding_has_a_page():
    observed = [replace(HEALTHY, **changes) for changes, *_ in WRONG]
    assert [rule.__name__ for rule in RULES if not any(list(rule(each)) for each in observed)] == []
    for finding in (finding for each in observed for finding in findings(each)):
        page, _, heading = finding.page.partition("#")
        text = (ROOT / page).read_text()
        headings = [
            re.sub(r"[^a-z0-9 -]", "", line.lower()).replace(" ", "-") for line in re.findall("^#+ (.*)", text, re.M)
        ]
        assert not heading or heading in headings
        assert f"`{finding.code}`" in GUIDE or finding.code in {"left", "stopped"}


def test_the_worst_come_first():
    changes = {
        "alarms": [*QUIET, RINGING],
        "schedules": {},
        **filled("shop_emails"),
        "controls": {"emails": Control(paused=True)},
    }
    result = [finding.severity for finding in findings(replace(HEALTHY, **changes))]
    assert result == [CRITICAL, CRITICAL, WARNING, NOTE]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        filled("shop_emails", in_flight=1),
        filled("shop_emails") | measured(shop_emails__age=0),
        filled("shop_emails") | measured(shop_emails__age=59),
        filled("shop_emails") | {"controls": {"emails": Control(rate=Rate.parse("9/m"))}},
    ],
    ids=["all is well", "in flight", "just sent", "sent in the last minute", "a rate"],
)
def test_nothing_is_found_where_workers_may_receive_what_waits(changes):
    assert findings(replace(HEALTHY, **changes)) == []


def test_reasons_of_dead_letters_come_from_the_log():
    parked = [LogLine(function="tick", message="parked", reason="the queue is gone", count=3)]
    (finding,) = findings(replace(HEALTHY, **filled("shop-dispatch-dlq"), logged=parked))
    assert "(of the last hour's log: 3 of the queue is gone)" in finding.what


def test_what_was_not_looked_at_is_no_finding():
    assert findings(Observation(deployment=DEPLOYMENT, now=NOW)) == []


# The command


def typed(monkeypatch, looks, *args):
    def connected(_target, *, now):
        return looks, lambda **parts: replace(HEALTHY, **parts)

    monkeypatch.setattr(connect, "doctor", connected)
    return CliRunner().invoke(app, ["doctor", *args])


def a_look(**parts):
    return Check(what="alarms", needs="cloudwatch:DescribeAlarms", look=lambda: parts)


def test_nothing_wrong_exits_with_0(monkeypatch):
    assert typed(monkeypatch, [a_look()]).exit_code == 0


def test_denied_check_names_its_right(monkeypatch):
    def refused():
        raise Forbidden("looking at the alarms: AccessDenied")

    looks = [replace(a_look(), look=refused), a_look(reserved={"api": 0})]
    answer = typed(monkeypatch, looks)
    assert answer.exit_code == 1
    assert "alarms: not checked: needs the right cloudwatch:DescribeAlarms" in answer.stdout
    assert "1 critical finding; checked 1 of 2 things" in answer.stdout
    finding, unseen = map(json.loads, typed(monkeypatch, looks, "--json").stdout.splitlines())
    about = {"code": "function_stopped", "about": "shop-api", "page": "docs/runbooks/function-errors.md"}
    assert about.items() <= finding.items()
    assert (unseen["code"], unseen["needs"]) == ("not_looked_at", "cloudwatch:DescribeAlarms")


def test_findings_are_counted_by_severity(monkeypatch):
    look = a_look(alarms=[*QUIET, RINGING], subscribers={"shop-alarms": 0}, **filled("shop_emails_dlq"), schedules={})
    assert typed(monkeypatch, [look]).stdout.splitlines()[-1].startswith("2 critical findings, 3 warnings; checked")


def test_partial_look_is_no_all_clear(monkeypatch):
    left_out = Unchecked(what="all of the log of the function api", needs="", reason="it is too long")
    answer = typed(monkeypatch, [a_look(logged=[], partly=[left_out])])
    assert answer.exit_code == 6
    first, second, last = answer.stdout.splitlines()
    assert first == "NOT SEEN  all of the log of the function api: not checked"
    assert (second.strip(), last) == ("it is too long", "nothing is known to be wrong; checked 1 of 1 thing")


def test_example_policy_has_each_right_of_the_doctor():
    needed = {right for _, needs, _ in _ALL for right in needs.split(", ")}
    policy = json.loads((ROOT / "examples" / "doctor_policy.json").read_text())
    allowed = {action for statement in policy["Statement"] for action in statement["Action"]}
    assert allowed == needed | {"ssm:GetParametersByPath"}


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "runbooks").glob("*.md")), ids=lambda page: page.stem)
def test_runbook_begins_with_the_doctor(page):
    text = page.read_text()
    for answer in ("**What it means.**", "**What users feel.**", "## See the cause", "## End it", "## Prevent it"):
        assert answer in text
    blocks = re.findall(r"```bash\n(.*?)\n```", text.replace("\\\n", ""), re.DOTALL)
    seeing, ending = (block.splitlines() for block in blocks)
    assert seeing[0] == "dueline doctor"
    assert len(seeing) <= 3
    commands = {line.split()[1] for line in (*seeing, *ending) if line.startswith("dueline ")}
    assert commands <= {*COMMANDS, "schedules"}
