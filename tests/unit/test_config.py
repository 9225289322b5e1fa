"""queues.yaml is checked whole, and its documents are true."""

import json
import re
from collections import Counter
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from pydantic import ValidationError

from docs.queues_schema import DOCS, documents
from dueline.config import ConfigurationError, registry
from dueline.config.deployment import Deployment, load, load_schedules
from dueline.config.environment import ApiSettings, TickSettings
from dueline.config.names import Names
from dueline.core.job import MAX_PRIORITY
from dueline.core.queue_settings import Backoff, RetryPolicy, WorkSettings
from tests.builders import a_queue

ROOT = Path(__file__).parents[2]
LONGEST = "q" * 60


@pytest.fixture
def queues_yaml(tmp_path: Path) -> Path:
    return tmp_path / "queues.yaml"


def _refused(path: Path, text: str) -> str:
    path.write_text(text)
    with pytest.raises(ConfigurationError) as refusal:
        load(path)
    return str(refusal.value)


def _emails(settings: str) -> str:
    return f"queues: {{emails: {{{settings}}}}}"


TWO_HOURS = "backoff: constant, delay: 7200, max_delay: 7200"
SUM = "it must be at least max(3 tick_period, 2 tick_period + lease) + 5"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name: Dueline", ["name is 'Dueline'", "^[a-z]"]),
        ("name: a-name-of-16-char", ["name is 'a-name-of-16-char'", "{0,13}"]),
        ("name: dueline-queue", ["name is 'dueline-queue'", "must not end in -queue or hold -queue-"]),
        ("colour: red", ["colour is 'red'", "unknown setting", "there are name, tick_period"]),
        ("log_retention_days: 31", ["log_retention_days is 31", "should be 1, 3, 5, 7, 14, 30"]),
        ("alarm_email: nobody", ["alarm_email is 'nobody'", "@"]),
        ("capacity: cheap", ["capacity is 'cheap'", "must be on-demand, or settings: there are min, max"]),
        ("capacity: {min: 5}", ["capacity.max is {'min': 5}", "required"]),
        ("capacity: {min: 1, max: 2, colour: 3}", ["capacity.colour is 3", "unknown setting; there are min, max"]),
        ("capacity: {min: 6, max: 5}", ["capacity.max is 5: it must be at least min, which is 6"]),
        ("queues: {a: {owner: me}}", ["queues.a.owner is 'me': must be an e-mail address, or the ARN of an SNS topic"]),
        ("groups: {a: []}", ["groups.a is []", "at least 1 item"]),
        ("groups: {a: [emails]}", ["groups.a has 'emails': it must be a queue of queues.yaml; there are none"]),
        ("groups: {a: [b, b]}\nqueues: {b: }", ["groups.a has 'b' twice: once is enough"]),
        ("kms_key_arn: alias/mine", ["kms_key_arn is 'alias/mine'", "must be the ARN of a key", "not of an alias"]),
        ("permission_boundary: mine", ["permission_boundary is 'mine'", "must be the ARN of a managed policy"]),
        ("tags: {'aws:team': a}", ["tags.aws:team is 'aws:team'", "must not begin with aws:"]),
        (f"tags: {{{', '.join(f't{n}: a' for n in range(51))}}}", ["at most 50 items"]),
        ("queues: {Emails: }", ["queues.Emails is 'Emails'", "^[a-z0-9-]{1,60}$"]),
        ("queues: {dueline-planner: }", ["queues.dueline-planner is 'dueline-planner'", "a queue of Dueline's own"]),
        ("queues: {emails: 4}", ["queues.emails is 4", "must be settings", "there are partitions,"]),
        ("queues: {emails: {colour: red}}", ["queues.emails.colour is 'red'", "there are partitions,"]),
        ("queues: {emails: {retry: {colour: 1}}}", ["queues.emails.retry.colour is 1", "there are backoff, attempts,"]),
        (
            _emails("retry: {backoff: never}"),
            ["queues.emails.retry.backoff is 'never'", "'linear-exponential', 'constant', 'linear' or 'exponential'"],
        ),
        (_emails("schedules: {a: {cron: 0 25 * * *}}"), ["emails.schedules.a.cron is '0 25 * * *'", "0 to 23"]),
        (_emails("schedules: {a: {evry: 60}}"), ["schedules.a.evry is 60", "there are cron, every,"]),
        (
            _emails("schedules: {a: {every: 60, priority: 2}}"),
            ["queues.emails.schedules.a.priority is 2", "from 1 to priorities, which is 1"],
        ),
        ("domain_name: jobs.example.com", ["domain_name is jobs.example.com: certificate_arn must be given with it"]),
        (
            "certificate_arn: arn:aws:acm:eu-central-1:123456789012:certificate/1",
            ["certificate_arn is arn:aws:acm", "domain_name must be given with it"],
        ),
        ("certificate_arn: jobs", ["certificate_arn is 'jobs'", "arn:aws:acm:{region}:{account}:certificate/{id}"]),
        ("- emails", ["it holds ['emails'], not settings"]),
        *[(text, ["not settings"]) for text in ("[]", "0", "false", "emails")],
        ("queues:\n  emails:\n  emails:\n", ["line 2: emails is given twice"]),
        ("queues: [", [": not YAML"]),
        ("tick_period: 1\nlookahead: 40\ndirect_horizon: 60", ["tick_period is 1: it must be 60"]),
        ("lookahead: 184", [f"lookahead is 184: {SUM}, which is 185"]),
        ("lease: 120", [f"lookahead is 240: {SUM}, which is 245"]),
        ("direct_horizon: 299", ["direct_horizon is 299: it must be at least lookahead + tick_period, which is 300"]),
        (_emails("retry: {delay: 3601}"), ["queues.emails.retry.max_delay is 3600", "at least delay, which is 3601"]),
        (
            _emails("max_receives: 9, retry: {attempts: 10}"),
            ["queues.emails.max_receives is 9", "least retry.attempts"],
        ),
        (_emails("longest_run: 39001"), ["queues.emails.longest_run is 39001", "at most 42600 less", "which is 39000"]),
        (
            _emails("longest_run: 2, retry: {max_delay: 42599}"),
            ["longest_run is 2: it must be at most 42600 less retry"],
        ),
        (
            _emails(f"message_retention_days: 1, retry: {{attempts: 13, {TWO_HOURS}}}"),
            ["message_retention_days is 1, 86400 seconds: the delays of 13 attempts are 86400 seconds at least"],
        ),
        pytest.param("queues: " + "[" * 600 + "]" * 600, ["nested too deeply to be read"], id="deep"),
    ],
)
def test_wrong_setting_names_value_and_range(queues_yaml: Path, text: str, message: list[str]) -> None:
    error = _refused(queues_yaml, text)
    assert error.startswith(str(queues_yaml))
    for part in message:
        assert part in error


def test_stack_names_are_unique_in_an_account() -> None:
    words = ["a", "core", "queue"]
    joined = ["-".join(some) for count in (1, 2, 3) for some in product(words, repeat=count)]
    stacks: list[str] = []
    for name in joined:
        with suppress(ValidationError):
            names = Deployment(name=name).names
            stacks += [names.core_stack, *map(names.queue_stack, joined)]
    assert len(stacks) > len(joined)
    assert [stack for stack, times in Counter(stacks).items() if times > 1] == []


@pytest.mark.parametrize(
    "text",
    [
        *["", "queues:\n", "queues: {}\n", "queues:\n  emails:\n"],
        "lookahead: 185",
        "direct_horizon: 300",
        "lease: 115",
        "tick_period: 1\nlookahead: 40\ndirect_horizon: 60\nlocal_run: true",
        "queues: {a: {retry: {delay: 3600}}, b: {max_receives: 10, retry: {attempts: 10}}, c: {max_receives: 9}}",
        "queues: {a: {longest_run: 39000}, b: {longest_run: 1, retry: {max_delay: 42599}}}",
        _emails(f"message_retention_days: 1, retry: {{attempts: 12, {TWO_HOURS}}}"),
    ],
)
def test_settings_at_their_limits_load(queues_yaml: Path, text: str) -> None:
    queues_yaml.write_text(text)
    load(queues_yaml)


@pytest.mark.parametrize(
    ("settings", "receives"),
    [
        ({}, 15),
        ({"retry": {"attempts": 996, "backoff": "constant"}}, 1000),
        ({"max_receives": 4}, 4),
        ({"max_receives": 3, "retry": {"attempts": 3}}, 3),
    ],
)
def test_default_of_max_receives(settings: dict[str, Any], receives: int) -> None:
    assert Deployment.model_validate({"queues": {"emails": settings}}).queues["emails"].receives == receives


def test_all_errors_are_reported_at_once(queues_yaml: Path) -> None:
    message = _refused(queues_yaml, "lease: 5\nqueues:\n  Emails:\n  invoices:\n    partitions: 0\n")
    assert "settings that are wrong: 3" in message
    assert len(message.splitlines()) == 4


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("2026-02-30", "line 3: partitions is '2026-02-30', which cannot be read: day is out of range"),
        ("2026-12-01T09:00:00+99:99", "line 3: partitions is '2026-12-01T09:00:00+99:99', which cannot be read: "),
        ("[" + "9" * 5000 + "]", f"line 3: an item is '{'9' * 99}, which cannot be read: Exceeds the limit"),
        ("0x" + "f" * 5000, "queues.emails.partitions is an int: "),
    ],
    ids=["date", "zone", "decimal", "hexadecimal"],
)
def test_what_only_looks_like_a_value_is_refused(queues_yaml: Path, value: str, message: str) -> None:
    assert message in _refused(queues_yaml, f"queues:\n  emails:\n    partitions: {value}\n")


def test_unreadable_file_is_reported(queues_yaml: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"queues\.yaml: cannot be read"):
        load(queues_yaml)
    queues_yaml.write_bytes(b"name: \xff")
    with pytest.raises(ConfigurationError, match=r"queues\.yaml: cannot be read"):
        load(queues_yaml)


@pytest.mark.parametrize("name", documents())
def test_documents_match_the_code(name: str) -> None:
    assert (DOCS / name).read_text() == documents()[name], "run make schema"


@pytest.mark.parametrize("page", ["schedules.md", "queues.md"])
def test_schedules_in_the_docs_load(queues_yaml: Path, page: str) -> None:
    shown = [text for text in re.findall(r"```yaml\n(.*?)```", (DOCS / page).read_text(), re.DOTALL) if "cron" in text]
    for text in shown:
        queues_yaml.write_text(text)
        schedules = load(queues_yaml).queues["emails"].schedules
        assert schedules["digest"].definition.rule.zone == "Europe/Berlin"
        assert load_schedules(queues_yaml).schedules["emails"].keys() == schedules.keys()
    assert shown


@pytest.mark.parametrize(
    ("text", "valid"),
    [
        ((ROOT / "queues.yaml").read_text(), True),
        ("queues:\n  emails: {track: true, retry: {backoff: constant, attempts: 3}}\n", True),
        ("queues:\n  emails: {retry: {backoff: never}}\n", False),
        ("queues:\n  emails: {schedules: {digest: {cron: 0 9 * * MON, payload: {to: all}}, b: {every: 60}}}\n", True),
        ("queues:\n  emails: {schedules: {'a#b': {every: 60}}}\n", False),
        ("queues:\n  Emails:\n", False),
        ("queues:\n  dueline-planner:\n", False),
        ("colour: red", False),
        ("name: dueline-queue", False),
        ("capacity: on-demand\nstorage: infrequent\npoint_in_time_recovery: false\n", True),
        ("kms_key_arn: arn:aws:kms:eu-central-1:123456789012:key/mrk-1a\ntags: {cost center: a/b}", True),
        ("kms_key_arn: arn:aws:kms:eu-central-1:123456789012:alias/mine", False),
        ("permission_boundary: arn:aws:iam::123456789012:role/mine", False),
        ("tags: {te*m: a}", False),
    ],
)
def test_schema_refuses_what_the_code_refuses(text: str, valid: bool) -> None:
    schema: dict[str, Any] = json.loads((DOCS / "queues.schema.json").read_text())
    assert jsonschema.Draft202012Validator(schema).is_valid(yaml.safe_load(text)) is valid


def test_retention_falls_back_to_the_deployment() -> None:
    queues = {"short": {"retention_days": 2}, "plain": {}}
    deployment = Deployment.model_validate({"retention_days": 9, "queues": queues})
    assert [settings.retention.days for settings in deployment.queue_settings()] == [2, 9]


def test_registry_round_trip(tmp_path: Path) -> None:
    queues = {"emails": {"partitions": 3, "precise": True, "priorities": 2, "track": True}, "invoices": {}}
    settings = Deployment.model_validate({"queues": queues}).queue_settings()
    (tmp_path / "registry.json").write_text(registry.to_json(settings))
    loaded = registry.load(tmp_path / "registry.json")
    assert list(loaded.queues.values()) == settings


def test_published_settings_round_trip() -> None:
    retry = {"backoff": "constant", "attempts": 3, "delay": 7, "max_delay": 8}
    queue = {"visibility_timeout": 60, "longest_run": 90, "track": True, "priorities": 2, "retry": retry}
    queue |= {"message_retention_days": 2}
    deployment = Deployment.model_validate({"queues": {"emails": queue}})
    (settings,) = deployment.queue_settings()
    work = deployment.work_settings(settings, urls=["https://1", "https://2"], dead_letters="https://dlq")
    parameter: dict[str, Any] = json.loads(json.dumps(work.to_json()))
    assert work == WorkSettings(
        queue=a_queue(track=True, priorities=2),
        urls=("https://1", "https://2"),
        dead_letters="https://dlq",
        visibility_timeout=60,
        longest_run=90,
        max_receives=8,
        message_retention=172_800,
        retry=RetryPolicy(backoff=Backoff.CONSTANT, attempts=3, delay=7, max_delay=8),
    )
    read = WorkSettings.from_json({**parameter, "of a later version": 1}, name="emails")
    assert (read, type(read.retry.backoff)) == (work, Backoff)
    assert parameter["url"] == "https://1"


def test_longest_names_fit_aws_limits() -> None:
    names = Names("d" * 15)
    assert max(map(len, (names.queue_dlq(LONGEST), names.queue(LONGEST, MAX_PRIORITY)))) <= 80
    assert max(map(len, (names.schedule(LONGEST, 999), names.scheduler_role, names.function("ingest")))) <= 64
    assert max(map(len, (names.queue_stack(LONGEST), names.policy(LONGEST, "producer")))) <= 128


def test_names_of_levels_and_queues_are_unique() -> None:
    names = Names("dueline")
    queues = ("emails", "emails-p2", "p2", "emails-2")
    made = [names.queue(queue, priority) for queue in queues for priority in range(1, MAX_PRIORITY + 1)]
    made += [names.queue_dlq(queue) for queue in queues]
    assert len(set(made)) == len(made)
    assert names.queue("emails", 1) == names.queue("emails") == "dueline_emails"


@pytest.mark.parametrize("seconds", [0, 901])
def test_settings_refuse_a_lookahead_that_is_too_long(seconds):
    names = {"deployment": "d", "queue_urls": "https://sqs/1/", "lookahead": seconds}
    for make in (
        lambda: TickSettings(**names, tick_period=60, lease=30),
        lambda: ApiSettings(**names, payloads="b", direct_horizon=890),
    ):
        with pytest.raises(ValueError, match=f"lookahead is {seconds}: it must be from 1 to 900 seconds"):
            make()
