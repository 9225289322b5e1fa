"""Every queue keeps what it is given."""

import json
from datetime import timedelta
from typing import Any

import pytest

from dueline import __version__
from dueline.config.names import Names
from dueline.config.settings import LONGEST_HIDDEN_SECONDS
from dueline.config.work import published
from dueline.model.queue_settings import PLANNER, QueueSettings
from dueline.model.work_settings import WorkSettings
from tests.template.synthesis import Assembly, Template

FOURTEEN_DAYS = 14 * 86_400
SIX_HOURS = 6 * 3_600
STANDARD_PARAMETER_BYTES = 4096


def _queue(template: Template, name: str) -> dict[str, Any]:
    [queue] = [queue for queue in template.of_type("AWS::SQS::Queue").values() if queue["QueueName"] == name]
    return queue


def test_every_queue_has_a_dead_letter_queue_that_keeps_messages_for_14_days(three: Assembly) -> None:
    for name, template in three.queues.items():
        own = _queue(template, f"dueline_{name}")
        target = own["RedrivePolicy"]["deadLetterTargetArn"]
        assert template.spelled(target) == f"sqs:dueline_{name}_dlq"
        assert own["RedrivePolicy"]["maxReceiveCount"] == 15
        assert _queue(template, f"dueline_{name}_dlq")["MessageRetentionPeriod"] == FOURTEEN_DAYS


def test_a_queue_is_as_queues_yaml_says(one_more: Assembly) -> None:
    template = one_more.queues["ahead"]
    queue = _queue(template, "dueline_ahead")
    [parameter] = template.of_type("AWS::SSM::Parameter").values()
    assert queue["VisibilityTimeout"] == 120
    assert queue["MessageRetentionPeriod"] == 2 * 86_400
    assert queue["RedrivePolicy"]["maxReceiveCount"] == 10
    assert json.loads(template.spelled(parameter["Value"])) == {
        "url": "sqs:dueline_ahead",
        "urls": ["sqs:dueline_ahead", *(f"sqs:dueline_ahead_p{priority}" for priority in range(2, 6))],
        "partitions": 400,
        "retention": 3 * 86_400,
        "precise": True,
        "priorities": 5,
        "track": True,
        "work": {
            "dead_letters": "sqs:dueline_ahead_dlq",
            "visibility_timeout": 120,
            "longest_run": 900,
            "max_receives": 10,
            "retry": {"backoff": "exponential", "attempts": 7, "delay": 5, "max_delay": 600},
        },
        "told": {"version": __version__},
    }


@pytest.mark.parametrize("priority", [2, 3, 4, 5])
def test_a_queues_level_is_as_the_queue_itself_and_shares_its_dead_letter_queue(
    one_more: Assembly, priority: int
) -> None:
    template = one_more.queues["ahead"]
    level, own = _queue(template, f"dueline_ahead_p{priority}"), _queue(template, "dueline_ahead")
    assert level == own | {"QueueName": f"dueline_ahead_p{priority}"}
    assert template.spelled(level["RedrivePolicy"]["deadLetterTargetArn"]) == "sqs:dueline_ahead_dlq"


def test_ticks_begin_when_every_level_is_there(one_more: Assembly) -> None:
    template = one_more.queues["ahead"]
    levels = {id for id, queue in template.of_type("AWS::SQS::Queue").items() if "_dlq" not in queue["QueueName"]}
    assert len(levels) == 5
    for schedule in template.of_type("AWS::Scheduler::Schedule"):
        assert levels <= template.depends_on(schedule)


def test_the_longest_parameter_fits_into_a_standard_one_of_ssm() -> None:
    names, region = Names("d" * 15), "ap-southeast-99"
    sqs = f"https://sqs.{region}.amazonaws.com/123456789012/"
    settings = WorkSettings(
        queue=QueueSettings(name="q" * 60, partitions=400, retention=timedelta(days=30), priorities=5),
        urls=tuple(sqs + names.queue("q" * 60, n) for n in range(1, 6)),
        dead_letters=sqs + names.queue_dlq("q" * 60),
    )
    assert len(json.dumps(published(settings))) < STANDARD_PARAMETER_BYTES


def test_the_core_queues_keep_messages_for_14_days(three: Assembly) -> None:
    names = three.deployment.names
    own = names.queue(PLANNER.name)
    for name in (names.inbound, names.inbound_dlq, names.dispatch_dlq, names.tick_dlq, own):
        assert _queue(three.core, name)["MessageRetentionPeriod"] == FOURTEEN_DAYS


def test_a_planning_job_that_failed_is_kept_for_a_day_for_its_schedule_goes_on_without_it(three: Assembly) -> None:
    dead_letters = _queue(three.core, three.deployment.names.queue_dlq(PLANNER.name))
    assert dead_letters["MessageRetentionPeriod"] == 86_400


def test_a_queue_is_the_dead_letter_queue_of_its_own_queues_alone_even_of_levels_that_were_given_up(
    three: Assembly,
) -> None:
    queue = three.queues["queue-0"]
    levels = {f"sqs:dueline_queue-0{level}" for level in ("", "_p2", "_p3", "_p4", "_p5")}
    allowed = {"dueline_queue-0_dlq": levels, "dueline-inbound-dlq": {"sqs:dueline-inbound"}}
    allowed["dueline_dueline-planner_dlq"] = {"sqs:dueline_dueline-planner"}
    for template in (three.core, queue):
        for each in template.of_type("AWS::SQS::Queue").values():
            policy = each["RedriveAllowPolicy"]
            named = {template.spelled(arn) for arn in policy.get("sourceQueueArns", [])}
            assert named == allowed.get(each["QueueName"], set())
            assert policy["redrivePermission"] == ("byQueue" if named else "denyAll")


def _source(template: Template, queue: str) -> dict[str, Any]:
    sources = template.of_type("AWS::Lambda::EventSourceMapping").values()
    [source] = [each for each in sources if template.spelled(each["EventSourceArn"]) == f"sqs:{queue}"]
    return source


@pytest.mark.parametrize(("queue", "function"), [("dueline-inbound", "ingest"), ("dueline_dueline-planner", "planner")])
def test_what_a_function_reads_stays_hidden_for_six_times_its_timeout_and_the_window(
    three: Assembly, queue: str, function: str
) -> None:
    source = _source(three.core, queue)
    functions = three.core.of_type("AWS::Lambda::Function").values()
    [timeout] = [each["Timeout"] for each in functions if each["FunctionName"] == f"dueline-{function}"]
    hidden = _queue(three.core, queue)["VisibilityTimeout"]
    assert hidden >= 6 * timeout + source.get("MaximumBatchingWindowInSeconds", 0)


def test_an_outage_of_the_table_for_six_hours_empties_nothing_into_the_dead_letter_queue(three: Assembly) -> None:
    inbound, planner = _queue(three.core, "dueline-inbound"), _queue(three.core, "dueline_dueline-planner")
    assert inbound["RedrivePolicy"]["maxReceiveCount"] * inbound["VisibilityTimeout"] > SIX_HOURS
    assert planner["RedrivePolicy"]["maxReceiveCount"] * LONGEST_HIDDEN_SECONDS > SIX_HOURS
    assert three.core.spelled(planner["RedrivePolicy"]["deadLetterTargetArn"]) == "sqs:dueline_dueline-planner_dlq"


def test_inbound_messages_fail_one_by_one_in_batches_of_hundreds_and_steps_in_batches_of_ten(three: Assembly) -> None:
    inbound, planner = _source(three.core, "dueline-inbound"), _source(three.core, "dueline_dueline-planner")
    assert inbound["FunctionResponseTypes"] == planner["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert (inbound["BatchSize"], planner["BatchSize"]) == (500, 10)
    assert inbound["ScalingConfig"] == {"MaximumConcurrency": three.deployment.ingest_max_concurrency}


def test_every_queue_is_encrypted_answers_to_tls_only_and_outlives_its_stack(three: Assembly) -> None:
    for template in three.templates.values():
        queues = template.of_type("AWS::SQS::Queue")
        guarded = {
            queue["Ref"] for policy in template.of_type("AWS::SQS::QueuePolicy").values() for queue in policy["Queues"]
        }
        assert guarded == set(queues)
        for id, queue in queues.items():
            assert queue["SqsManagedSseEnabled"] is True
            assert template.resources[id]["DeletionPolicy"] == "RetainExceptOnCreate"
            assert template.resources[id]["UpdateReplacePolicy"] == "Retain"


def test_a_queues_policy_denies_what_does_not_come_by_tls(three: Assembly) -> None:
    for template in three.templates.values():
        for policy in template.of_type("AWS::SQS::QueuePolicy").values():
            # The planner's queue refuses more.
            [statement, *_] = policy["PolicyDocument"]["Statement"]
            assert (statement["Effect"], statement["Action"]) == ("Deny", "sqs:*")
            assert statement["Principal"] == {"AWS": "*"}
            assert statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}


def test_clients_read_a_queues_url_and_settings(three: Assembly) -> None:
    for name, template in three.queues.items():
        [parameter] = template.of_type("AWS::SSM::Parameter").values()
        assert parameter["Name"] == f"/dueline/dueline/queues/{name}"
        assert json.loads(template.spelled(parameter["Value"])) == {
            "url": f"sqs:dueline_{name}",
            "urls": [f"sqs:dueline_{name}"],
            "partitions": 4,
            "retention": 7 * 86_400,
            "precise": False,
            "priorities": 1,
            "track": False,
            "work": {
                "dead_letters": f"sqs:dueline_{name}_dlq",
                "visibility_timeout": 30,
                "longest_run": 3600,
                "max_receives": 15,
                "retry": {"backoff": "linear-exponential", "attempts": 10, "delay": 30, "max_delay": 3600},
            },
            "told": {"version": __version__},
        }


def _warnings(assembly: Assembly, queue: str) -> list[str]:
    """Return what a synthesis warns of in the stack of a queue; cdk-nag looks at it, too."""
    manifest = json.loads((assembly.directory / "manifest.json").read_text())["artifacts"]
    stack = manifest[assembly.deployment.names.queue_stack(queue)]
    told = [*stack.get("metadata", {}).values()]
    if "additionalMetadataFile" in stack:
        told += json.loads((assembly.directory / stack["additionalMetadataFile"]).read_text()).values()
    return [each["data"] for entries in told for each in entries if each["type"] == "aws:cdk:warning"]


def test_a_queue_with_too_few_partitions_for_its_rate_is_warned_of(expecting: Assembly) -> None:
    [warning] = _warnings(expecting, "queue-0")
    assert "queues.queue-0.partitions is 4: for an expected_rate of 2,001 jobs a second" in warning
    assert "at least 5, 500 for each" in warning


@pytest.mark.parametrize("queue", ["queue-1", "queue-2"])
def test_a_queue_with_partitions_enough_or_no_rate_is_not_warned_of(expecting: Assembly, queue: str) -> None:
    assert _warnings(expecting, queue) == []


def test_an_expected_rate_is_published_for_the_doctor_and_changes_nothing_else(
    three: Assembly, expecting: Assembly
) -> None:
    for queue, rate in (("queue-0", 2001), ("queue-1", 2000)):
        template = expecting.queues[queue]
        [parameter] = template.of_type("AWS::SSM::Parameter").values()
        assert json.loads(template.spelled(parameter["Value"]))["told"]["expected_rate"] == rate
        without = json.dumps(template.content).replace(rf",\"expected_rate\":{rate}", "")
        assert json.loads(without) == three.queues[queue].content
    assert expecting.queues["queue-2"] == three.queues["queue-2"]
    assert expecting.core == three.core
