"""queues.yaml is checked whole, and its documents are true."""

import json
import re
from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from pydantic import ValidationError

from dueline.config import registry, work
from dueline.config.deployment import Deployment, load
from dueline.config.names import Names
from dueline.config.schedules_file import load_schedules
from dueline.config.schema import DOCS, documents
from dueline.config.settings import ApiSettings, IngestSettings, TickSettings
from dueline.config.yaml_file import ConfigurationError
from dueline.errors import QueueNotFound
from dueline.model.job import MAX_PRIORITY, Partition
from dueline.model.retry_policy import Backoff, RetryPolicy
from dueline.model.work_settings import WorkSettings
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


def test_a_queue_is_one_line(queues_yaml: Path) -> None:
    queues_yaml.write_text("queues:\n  emails:\n")
    deployment = load(queues_yaml)
    assert deployment.name == "dueline"
    assert deployment.queues["emails"].partitions == 1


@pytest.mark.parametrize("text", ["", "queues:\n", "queues: {}\n"])
def test_a_deployment_may_have_no_queue_yet(queues_yaml: Path, text: str) -> None:
    queues_yaml.write_text(text)
    assert load(queues_yaml) == Deployment()


def test_the_repos_own_queues_yaml_loads() -> None:
    assert set(load(ROOT / "queues.yaml").queues) == {"emails", "invoices"}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("name: Dueline", ["name is 'Dueline'", "^[a-z]"]),
        ("name: a-name-of-16-char", ["name is 'a-name-of-16-char'", "{0,13}"]),
        ("name: dueline-queue", ["name is 'dueline-queue'", "must not end in -queue or hold -queue-"]),
        ("name: a-queue-b", ["name is 'a-queue-b'", "must not end in -queue or hold -queue-"]),
        ("colour: red", ["colour is 'red'", "unknown setting", "there are name, tick_period"]),
        ("tick_period: 0", ["tick_period is 0", "greater than or equal to 1"]),
        ("tick_period: 61", ["tick_period is 61", "less than or equal to 60"]),
        ("lease: 5", ["lease is 5", "greater than or equal to 12"]),
        ("direct_horizon: 900", ["direct_horizon is 900", "less than or equal to 890"]),
        ("retention_days: 31", ["retention_days is 31", "less than or equal to 30"]),
        ("ingest_max_concurrency: 1", ["ingest_max_concurrency is 1", "greater than or equal to 2"]),
        ("log_retention_days: 31", ["log_retention_days is 31", "must be one of 1, 3, 5, 7, 14, 30"]),
        ("tick_reserved_concurrency: 0", ["tick_reserved_concurrency is 0", "greater than or equal to 1"]),
        ("alarm_email: nobody", ["alarm_email is 'nobody'", "@"]),
        ("tracing: 1", ["tracing is 1", "valid boolean"]),
        ("capacity: cheap", ["capacity is 'cheap'", "must be on-demand, or settings: there are min, max"]),
        ("capacity:", ["capacity is None", "must be on-demand, or settings"]),
        ("capacity: {min: 5}", ["capacity.max is {'min': 5}", "required"]),
        ("capacity: {min: 0, max: 5}", ["capacity.min is 0", "greater than or equal to 1"]),
        ("capacity: {min: 1, max: 40001}", ["capacity.max is 40001", "less than or equal to 40000"]),
        ("capacity: {min: 1.5, max: 2}", ["capacity.min is 1.5", "valid integer"]),
        ("capacity: {min: 1, max: 2, colour: 3}", ["capacity.colour is 3", "unknown setting; there are min, max"]),
        ("capacity: {min: 6, max: 5}", ["capacity.max is 5: it must be at least min, which is 6"]),
        ("warm_writes: 3999", ["warm_writes is 3999", "greater than or equal to 4000"]),
        (
            "warm_writes: 5000\ncapacity: {min: 1, max: 2}",
            ["warm_writes is 5000: it must be left out where capacity is"],
        ),
        ("dashboards: some", ["dashboards is 'some'", "'none', 'deployment' or 'all'"]),
        ("queues: {a: {owner: me}}", ["queues.a.owner is 'me': must be an e-mail address, or the ARN of an SNS topic"]),
        ("groups: {a: []}", ["groups.a is []", "at least 1 item"]),
        ("groups: {a: [emails]}", ["groups.a has 'emails': it must be a queue of queues.yaml; there are none"]),
        ("groups: {a: [b, b]}\nqueues: {b: }", ["groups.a has 'b' twice: once is enough"]),
        ("storage: glacier", ["storage is 'glacier'", "'standard' or 'infrequent'"]),
        ("point_in_time_recovery: 0", ["point_in_time_recovery is 0", "valid boolean"]),
        ("kms_key_arn: alias/mine", ["kms_key_arn is 'alias/mine'", "must be the ARN of a key", "not of an alias"]),
        ("permission_boundary: mine", ["permission_boundary is 'mine'", "must be the ARN of a managed policy"]),
        ("kms_data_key_reuse: 59", ["kms_data_key_reuse is 59", "greater than or equal to 60"]),
        ("tags: [a]", ["tags is ['a']", "valid dictionary"]),
        ("tags: {team: 4}", ["tags.team is 4", "valid string"]),
        ("tags: {'aws:team': a}", ["tags.aws:team is 'aws:team'", "must not begin with aws:"]),
        ("tags: {te*m: a}", ["tags.te*m is 'te*m'", "match pattern"]),
        ("tags: {team: ''}", ["tags.team is ''", "match pattern"]),
        (f"tags: {{{', '.join(f't{n}: a' for n in range(51))}}}", ["at most 50 items"]),
        ("termination_protection: 1", ["termination_protection is 1", "valid boolean"]),
        ("queues: [emails]", ["queues is ['emails']", "valid dictionary"]),
        ("queues: {Emails: }", ["queues.Emails is 'Emails'", "^[a-z0-9-]{1,60}$"]),
        ("queues: {a_b: }", ["queues.a_b is 'a_b'", "^[a-z0-9-]{1,60}$"]),
        (f"queues: {{{LONGEST}q: }}", [f"is '{LONGEST}q'", "^[a-z0-9-]{1,60}$"]),
        ("queues: {dueline-planner: }", ["queues.dueline-planner is the name of a queue of Dueline's own"]),
        ("queues: {emails: 4}", ["queues.emails is 4", "must be settings", "there are partitions,"]),
        ("queues: {emails: {colour: red}}", ["queues.emails.colour is 'red'", "there are partitions,"]),
        ("queues: {emails: {partitions: 0}}", ["queues.emails.partitions is 0", "greater than or equal to 1"]),
        ("queues: {emails: {partitions: 401}}", ["queues.emails.partitions is 401", "less than or equal to 400"]),
        ("queues: {emails: {partitions: '4'}}", ["queues.emails.partitions is '4'", "valid integer"]),
        ("queues: {emails: {partitions: true}}", ["queues.emails.partitions is True", "valid integer"]),
        ("queues: {emails: {expected_rate: 0}}", ["queues.emails.expected_rate is 0", "greater than or equal to 1"]),
        (
            "queues: {emails: {expected_rate: 200001}}",
            ["queues.emails.expected_rate is 200001", "less than or equal to 200000"],
        ),
        ("queues: {emails: {max_receives: 0}}", ["queues.emails.max_receives is 0", "greater than or equal to 1"]),
        (
            "queues: {emails: {visibility_timeout: 43201}}",
            ["queues.emails.visibility_timeout is 43201", "less than or equal to 43200"],
        ),
        (
            "queues: {emails: {message_retention_days: 14}}",
            [
                "queues.emails.message_retention_days is 14: it must be at most 13",
                "deletes a dead letter 14 days after",
            ],
        ),
        (
            "queues: {emails: {retention_days: 31}}",
            ["queues.emails.retention_days is 31", "less than or equal to 30"],
        ),
        ("queues: {emails: {precise: 'yes'}}", ["queues.emails.precise is 'yes'", "valid boolean"]),
        ("queues: {emails: {priorities: 0}}", ["queues.emails.priorities is 0", "greater than or equal to 1"]),
        ("queues: {emails: {priorities: 6}}", ["queues.emails.priorities is 6", "less than or equal to 5"]),
        ("queues: {emails: {max_receives: 1001}}", ["queues.emails.max_receives is 1001", "equal to 1000"]),
        ("queues: {emails: {track: 1}}", ["queues.emails.track is 1", "valid boolean"]),
        ("queues: {emails: {longest_run: 0}}", ["queues.emails.longest_run is 0", "greater than or equal to 1"]),
        ("queues: {emails: {longest_run: 43201}}", ["queues.emails.longest_run is 43201", "equal to 43200"]),
        ("queues: {emails: {retry: 5}}", ["queues.emails.retry is 5", "must be settings", "there are backoff,"]),
        ("queues: {emails: {retry: {colour: 1}}}", ["queues.emails.retry.colour is 1", "there are backoff, attempts,"]),
        ("queues: {retry: {colour: 1}}", ["queues.retry.colour is 1", "there are partitions,"]),
        (
            "queues: {emails: {retry: {backoff: never}}}",
            ["queues.emails.retry.backoff is 'never'", "'linear-exponential', 'constant', 'linear' or 'exponential'"],
        ),
        (
            "queues: {emails: {schedules: {a: {cron: 0 25 * * *}}}}",
            ["queues.emails.schedules.a.cron is '0 25 * * *'", "0 to 23"],
        ),
        ("queues: {emails: {schedules: {a: {evry: 60}}}}", ["schedules.a.evry is 60", "there are cron, every,"]),
        ("queues: {emails: {schedules: {a: {every: 59}}}}", ["schedules.a.every is 59", "equal to 60"]),
        (
            "queues: {emails: {schedules: {a: {every: 60, priority: 2}}}}",
            ["queues.emails.schedules.a.priority is 2", "from 1 to priorities, which is 1"],
        ),
        ("queues: {emails: {retry: {attempts: 0}}}", ["queues.emails.retry.attempts is 0", "equal to 1"]),
        ("queues: {emails: {retry: {attempts: 1001}}}", ["queues.emails.retry.attempts is 1001", "equal to 1000"]),
        ("queues: {emails: {retry: {delay: 0}}}", ["queues.emails.retry.delay is 0", "equal to 1"]),
        ("queues: {emails: {retry: {delay: 43201}}}", ["queues.emails.retry.delay is 43201", "equal to 43200"]),
        ("queues: {emails: {retry: {delay: 1.5}}}", ["queues.emails.retry.delay is 1.5", "valid integer"]),
        ("queues: {emails: {retry: {max_delay: 43201}}}", ["queues.emails.retry.max_delay is 43201", "to 43200"]),
        ("- emails", ["it holds ['emails'], not settings"]),
        pytest.param("queues: " + "[" * 3000 + "]" * 3000, ["nested too deeply to be read"], id="deep"),
    ],
)
def test_a_wrong_setting_is_told_with_its_value_and_what_is_allowed(
    queues_yaml: Path, text: str, told: list[str]
) -> None:
    message = _refused(queues_yaml, text)
    assert message.startswith(str(queues_yaml))
    for part in told:
        assert part in message


# A quote is a backslash and a quote in JSON; each of both is escaped twice more.
@pytest.mark.parametrize(("character", "length", "total"), [("a", 210_000, 420_082), ('"', 30_000, 480_082)])
def test_schedules_that_would_outgrow_their_stacks_template_are_refused(
    queues_yaml: Path, character: str, length: int, total: int
) -> None:
    def text(length: int) -> str:
        schedules = {name: {"every": 60, "payload": character * length} for name in ("a", "b")}
        return json.dumps({"queues": {"emails": {"schedules": schedules}}})

    told = f"queues.emails: schedules take {total} bytes of their stack's template: they may take 400000"
    assert told in _refused(queues_yaml, text(length))
    # What goes by no template may have more.
    assert load_schedules(queues_yaml)["emails"].keys() == {"a", "b"}
    queues_yaml.write_text(text(length * 4 // 5))
    assert load(queues_yaml).queues["emails"].schedules.keys() == {"a", "b"}


def _taken(name: str) -> bool:
    try:
        return bool(Deployment.model_validate({"name": name}))
    except ValidationError:
        return False


def test_no_two_stacks_of_one_account_have_one_name() -> None:
    words = ["a", "core", "queue"]
    joined = ["-".join(some) for count in (1, 2, 3) for some in product(words, repeat=count)]
    stacks: list[str] = []
    for names in (Names(name) for name in joined if _taken(name)):
        stacks += [names.core_stack, *map(names.queue_stack, joined)]
    assert len(stacks) > len(joined)
    assert [stack for stack, times in Counter(stacks).items() if times > 1] == []


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "lookahead: 184",
            "lookahead is 184: it must be at least max(3 tick_period, 2 tick_period + lease) + 5, which is 185",
        ),
        (
            "lease: 120",
            "lookahead is 240: it must be at least max(3 tick_period, 2 tick_period + lease) + 5, which is 245",
        ),
        ("direct_horizon: 299", "direct_horizon is 299: it must be at least lookahead + tick_period, which is 300"),
    ],
)
def test_periods_that_do_not_fit_are_told_together(queues_yaml: Path, text: str, told: str) -> None:
    assert told in _refused(queues_yaml, text)


@pytest.mark.parametrize("text", ["lookahead: 185", "direct_horizon: 300", "lease: 115"])
def test_periods_that_just_fit_are_taken(queues_yaml: Path, text: str) -> None:
    queues_yaml.write_text(text)
    load(queues_yaml)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ("retry: {delay: 3601}", "retry.max_delay is 3600: it must be at least delay, which is 3601"),
        ("retry: {max_delay: 29}", "retry.max_delay is 29: it must be at least delay, which is 30"),
        (
            "max_receives: 9, retry: {attempts: 10}",
            "max_receives is 9: it must be at least retry.attempts, which is 10",
        ),
        (
            "longest_run: 39601",
            "longest_run is 39601: it must be at most 43200 less retry.max_delay, which is 39600",
        ),
        (
            "longest_run: 2, retry: {max_delay: 43199}",
            "longest_run is 2: it must be at most 43200 less retry.max_delay, which is 1",
        ),
        (
            "message_retention_days: 1, retry: {attempts: 13, backoff: constant, delay: 7200, max_delay: 7200}",
            "message_retention_days is 1, 86400 seconds: the delays of 13 attempts are 86400 seconds at least",
        ),
    ],
)
def test_settings_of_a_queue_that_do_not_fit_are_told_together(queues_yaml: Path, settings: str, told: str) -> None:
    assert f"queues.emails.{told}" in _refused(queues_yaml, f"queues: {{emails: {{{settings}}}}}")


@pytest.mark.parametrize(
    "settings",
    [
        "retry: {delay: 3600}",
        "max_receives: 10, retry: {attempts: 10}",
        "max_receives: 9",
        "longest_run: 39600",
        "longest_run: 1, retry: {max_delay: 43199}",
        "message_retention_days: 1, retry: {attempts: 12, backoff: constant, delay: 7200, max_delay: 7200}",
    ],
)
def test_settings_of_a_queue_that_just_fit_are_taken(queues_yaml: Path, settings: str) -> None:
    queues_yaml.write_text(f"queues: {{emails: {{{settings}}}}}")
    load(queues_yaml)


@pytest.mark.parametrize(
    ("settings", "receives"),
    [
        ({}, 15),
        ({"retry": {"attempts": 3}}, 8),
        ({"retry": {"attempts": 996, "backoff": "constant"}}, 1000),
        ({"max_receives": 4}, 4),
        ({"max_receives": 3, "retry": {"attempts": 3}}, 3),
    ],
)
def test_sqs_gives_a_message_up_after_its_workers_would_unless_it_is_told_when(
    settings: dict[str, Any], receives: int
) -> None:
    assert Deployment.model_validate({"queues": {"emails": settings}}).queues["emails"].receives == receives


def test_all_that_is_wrong_is_told_at_once(queues_yaml: Path) -> None:
    message = _refused(queues_yaml, "lease: 5\nqueues:\n  Emails:\n  invoices:\n    partitions: 0\n")
    assert "settings that are wrong: 3" in message
    assert len(message.splitlines()) == 4


def test_a_setting_given_twice_is_refused(queues_yaml: Path) -> None:
    assert "line 2: emails is given twice" in _refused(queues_yaml, "queues:\n  emails:\n  emails:\n")


def test_what_is_not_yaml_is_refused(queues_yaml: Path) -> None:
    assert f"{queues_yaml}: not YAML" in _refused(queues_yaml, "queues: [")


def test_a_file_that_cannot_be_read_is_told(queues_yaml: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"queues\.yaml: cannot be read"):
        load(queues_yaml)
    queues_yaml.write_bytes(b"name: \xff")
    with pytest.raises(ConfigurationError, match=r"queues\.yaml: cannot be read"):
        load(queues_yaml)


@pytest.mark.parametrize("name", documents())
def test_the_documents_say_what_the_code_takes(name: str) -> None:
    assert (DOCS / name).read_text() == documents()[name], "run make schema"


@pytest.mark.parametrize("page", ["schedules.md", "queues.md"])
def test_the_schedules_that_the_docs_show_load(queues_yaml: Path, page: str) -> None:
    shown = [text for text in re.findall(r"```yaml\n(.*?)```", (DOCS / page).read_text(), re.DOTALL) if "cron" in text]
    for text in shown:
        queues_yaml.write_text(text)
        assert load(queues_yaml).queues["emails"].schedules["digest"].definition.rule.zone == "Europe/Berlin"
        assert load_schedules(queues_yaml)["emails"].keys() == load(queues_yaml).queues["emails"].schedules.keys()
    assert shown


@pytest.mark.parametrize(
    ("text", "valid"),
    [
        ((ROOT / "queues.yaml").read_text(), True),
        ("queues:\n  emails:\n", True),
        ("queues:\n  emails: {partitions: 0}\n", False),
        ("queues:\n  emails: {track: true, retry: {backoff: constant, attempts: 3}}\n", True),
        ("queues:\n  emails: {retry: {backoff: never}}\n", False),
        ("queues:\n  emails: {retry: {colour: red}}\n", False),
        ("queues:\n  emails: {schedules: {digest: {cron: 0 9 * * MON, payload: {to: all}}, b: {every: 60}}}\n", True),
        ("queues:\n  emails: {schedules: {digest: {zone: UTC}}}\n", False),
        ("queues:\n  emails: {schedules: {'a#b': {every: 60}}}\n", False),
        ("queues:\n  Emails:\n", False),
        ("queues:\n  dueline-planner:\n", False),
        ("colour: red", False),
        ("name: dueline-queue", False),
        ("name: queues-a", True),
        ("capacity: on-demand\nstorage: infrequent\npoint_in_time_recovery: false\n", True),
        ("capacity: {min: 5, max: 5}", True),
        ("capacity: {min: 5}", False),
        ("capacity:", False),
        ("warm_writes: 3999", False),
        ("warm_writes: 4000", True),
        ("storage: glacier", False),
        ("kms_key_arn: arn:aws:kms:eu-central-1:123456789012:key/mrk-1a\ntags: {cost center: a/b}", True),
        ("kms_key_arn: arn:aws:kms:eu-central-1:123456789012:alias/mine", False),
        ("permission_boundary: arn:aws:iam::aws:policy/PowerUserAccess", True),
        ("permission_boundary: arn:aws:iam::123456789012:role/mine", False),
        ("tags: {te*m: a}", False),
        ("tags: {team: 4}", False),
    ],
)
def test_editors_mark_what_the_app_refuses(text: str, valid: bool) -> None:
    schema: dict[str, Any] = json.loads((DOCS / "queues.schema.json").read_text())
    assert jsonschema.Draft202012Validator(schema).is_valid(yaml.safe_load(text)) is valid


def test_a_queue_keeps_jobs_as_long_as_it_or_else_its_deployment_says() -> None:
    queues = {"short": {"retention_days": 2}, "plain": {}}
    deployment = Deployment.model_validate({"retention_days": 9, "queues": queues})
    assert [settings.retention.days for settings in deployment.queue_settings()] == [2, 9]


def test_ticks_may_fire_more_often_than_each_minute_in_a_local_run_alone(queues_yaml: Path) -> None:
    periods = "tick_period: 1\nlookahead: 40\ndirect_horizon: 60\n"
    assert "tick_period is 1: it must be 60" in _refused(queues_yaml, periods)
    queues_yaml.write_text(periods + "local_run: true\n")
    assert load(queues_yaml).tick_period == 1


@pytest.mark.parametrize("text", ["[]", "0", "false", "emails"])
def test_what_holds_no_settings_is_no_empty_deployment(queues_yaml: Path, text: str) -> None:
    assert "not settings" in _refused(queues_yaml, text)


def test_the_registry_knows_which_partitions_are_in_queues_yaml(tmp_path: Path) -> None:
    settings = Deployment.model_validate({"queues": {"emails": {"partitions": 2}}}).queue_settings()
    (tmp_path / "registry.json").write_text(registry.to_json(settings))
    known = registry.load(tmp_path / "registry.json")
    asked = [("emails", 1), ("emails", 2), ("gone", 0)]
    assert [known.has(Partition(queue=queue, number=number)) for queue, number in asked] == [True, False, False]


def test_the_registry_reads_what_it_wrote(tmp_path: Path) -> None:
    queues = {"emails": {"partitions": 3, "precise": True, "priorities": 2, "track": True}, "invoices": {}}
    settings = Deployment.model_validate({"queues": queues}).queue_settings()
    (tmp_path / "registry.json").write_text(registry.to_json(settings))
    assert list(registry.load(tmp_path / "registry.json").queues.values()) == settings


def test_a_queue_that_an_older_stack_published_is_not_tracked() -> None:
    told = {name: value for name, value in registry.settings_of(a_queue()).items() if name != "track"}
    assert registry.settings_from(told, name="emails") == a_queue(track=False)


def _published_work(queue: dict[str, Any]) -> tuple[WorkSettings, dict[str, Any]]:
    """Return a queue's settings for its workers, and how they are published."""
    deployment = Deployment.model_validate({"queues": {"emails": queue}})
    (settings,) = deployment.queue_settings()
    asked = deployment.work_settings(settings, urls=["https://1", "https://2"], dead_letters="https://dlq")
    told: dict[str, Any] = json.loads(json.dumps(work.published(asked)))
    return asked, told


def test_workers_read_what_is_published_of_a_queue() -> None:
    retry = {"backoff": "constant", "attempts": 3, "delay": 7, "max_delay": 8}
    queue = {"visibility_timeout": 60, "longest_run": 90, "track": True, "priorities": 2, "retry": retry}
    asked, told = _published_work(queue)
    assert asked == WorkSettings(
        queue=a_queue(track=True, priorities=2),
        urls=("https://1", "https://2"),
        dead_letters="https://dlq",
        visibility_timeout=60,
        longest_run=90,
        max_receives=8,
        retry=RetryPolicy(backoff=Backoff.CONSTANT, attempts=3, delay=7, max_delay=8),
    )
    read = work.work_settings_from({**told, "of a later version": 1}, name="emails")
    assert (read, type(read.retry.backoff)) == (asked, Backoff)
    assert told["url"] == "https://1"


def test_what_queues_yaml_leaves_out_is_what_workers_have_by_default() -> None:
    asked, _ = _published_work({})
    assert asked == WorkSettings(queue=asked.queue, urls=asked.urls, dead_letters=asked.dead_letters)


def test_a_queue_that_was_published_before_there_were_workers_is_to_be_deployed_again() -> None:
    _, told = _published_work({})
    del told["work"]
    with pytest.raises(QueueNotFound, match="queue 'emails' publishes no settings for workers: deploy it"):
        work.work_settings_from(told, name="emails")


@pytest.mark.parametrize(
    "settings",
    [
        IngestSettings(deployment="d", queue_urls="https://sqs/1/"),
        TickSettings(deployment="d", queue_urls="https://sqs/1/", tick_period=60, lookahead=240, lease=30),
        ApiSettings(deployment="d", queue_urls="https://sqs/1/", payloads="b", direct_horizon=890, lookahead=240),
    ],
)
def test_a_functions_settings_survive_its_environment(settings: IngestSettings | TickSettings | ApiSettings) -> None:
    assert type(settings).from_env(settings.to_env()) == settings


def test_the_longest_names_fit_into_what_aws_takes() -> None:
    names = Names("d" * 15)
    assert len(names.queue_dlq(LONGEST)) <= 80
    assert len(names.queue(LONGEST, MAX_PRIORITY)) <= 80
    assert len(names.schedule(LONGEST, 999)) <= 64
    assert len(names.queue_stack(LONGEST)) <= 128
    assert len(names.producer_policy(LONGEST)) <= 128
    assert len(names.scheduler_role) <= 64
    assert len(names.function("ingest")) <= 64


def test_nothing_but_teams_queues_begins_with_their_prefix() -> None:
    names = Names("dueline")
    others = [names.inbound, names.inbound_dlq, names.dispatch_dlq, names.tick_dlq]
    assert not [name for name in others if name.startswith(names.queue_prefix)]
    assert names.queue("emails").startswith(names.queue_prefix)
    assert names.queue_dlq("emails").startswith(names.queue_prefix)
    assert names.queue("emails", 2).startswith(names.queue_prefix)


def test_no_queues_levels_meet_another_queue_or_its_dead_letter_queue() -> None:
    names = Names("dueline")
    queues = ("emails", "emails-p2", "p2", "emails-2")
    made = [names.queue(queue, priority) for queue in queues for priority in range(1, MAX_PRIORITY + 1)]
    made += [names.queue_dlq(queue) for queue in queues]
    assert len(set(made)) == len(made)
    assert names.queue("emails", 1) == names.queue("emails") == "dueline_emails"
