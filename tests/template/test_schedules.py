"""Every partition has a tick, for as long as it may hold a job."""

import json

from tests.template.synthesis import Assembly


def test_every_partition_has_one_schedule_a_minute(three: Assembly) -> None:
    for queue, template in three.queues.items():
        schedules = template.of_type("AWS::Scheduler::Schedule").values()
        assert [schedule["Name"] for schedule in schedules] == [f"{queue}.{partition}" for partition in range(4)]
        for partition, schedule in enumerate(schedules):
            assert schedule["ScheduleExpression"] == "rate(1 minute)"
            assert schedule["FlexibleTimeWindow"] == {"Mode": "OFF"}
            assert schedule["GroupName"] == "dueline-ticks"
            assert json.loads(schedule["Target"]["Input"]) == {"queue": queue, "partition": partition}


def test_a_schedule_invokes_the_tick_through_the_one_role_and_tells_of_failures(three: Assembly) -> None:
    for template in three.queues.values():
        for schedule in template.of_type("AWS::Scheduler::Schedule").values():
            target = schedule["Target"]
            assert template.spelled(target["Arn"]) == "lambda:function:dueline-tick"
            assert template.spelled(target["RoleArn"]) == "iam:role/dueline-scheduler"
            assert template.spelled(target["DeadLetterConfig"]["Arn"]) == "sqs:dueline-tick-dlq"
            assert 60 <= target["RetryPolicy"]["MaximumEventAgeInSeconds"] <= 120


def test_schedules_and_their_group_outlive_partition_queue_and_stack(three: Assembly) -> None:
    of_queues = [one for template in three.queues.values() for one in template.resources.values()]
    schedules = [one for one in of_queues if one["Type"] == "AWS::Scheduler::Schedule"]
    groups = [one for one in three.core.resources.values() if one["Type"] == "AWS::Scheduler::ScheduleGroup"]
    assert (len(schedules), len(groups)) == (3 * 4, 1)
    assert {one["DeletionPolicy"] for one in schedules + groups} == {"RetainExceptOnCreate"}


def test_clients_learn_of_partitions_that_tick_and_ticks_find_their_queue(three: Assembly) -> None:
    for template in three.queues.values():
        [parameter] = template.of_type("AWS::SSM::Parameter")
        schedules = set(template.of_type("AWS::Scheduler::Schedule"))
        assert schedules <= template.depends_on(parameter)
        queues = set(template.of_type("AWS::SQS::Queue"))
        assert all(queues <= template.depends_on(schedule) for schedule in schedules)


def test_a_queue_is_published_when_all_else_stands_so_that_no_rollback_takes_a_published_schedule_away(
    three: Assembly, one_more: Assembly
) -> None:
    for template in [*three.queues.values(), one_more.queues["ahead"]]:
        [parameter] = template.of_type("AWS::SSM::Parameter")
        assert template.depends_on(parameter) == set(template.resources) - {parameter, "CDKMetadata"}


def test_the_core_watches_every_few_minutes_whether_there_are_ticks_and_needs_no_queues_stack(three: Assembly) -> None:
    [watch] = three.core.of_type("AWS::Scheduler::Schedule").values()
    target = watch["Target"]
    assert watch["ScheduleExpression"] == "rate(5 minutes)"
    # Whoever fires what is in the group of the ticks fires ticks.
    assert (watch["Name"], watch.get("GroupName")) == ("dueline-watch", None)
    assert json.loads(target["Input"]) == {"watch": True}
    assert three.core.spelled(target["Arn"]) == "lambda:function:dueline-tick"
    assert three.core.resources[target["RoleArn"]["Fn::GetAtt"][0]]["Properties"]["RoleName"] == "dueline-scheduler"
    assert three.core.spelled(target["DeadLetterConfig"]["Arn"]) == "sqs:dueline-tick-dlq"


def test_a_throttled_tick_is_dropped_before_the_next_ones_pile_up(three: Assembly) -> None:
    [config] = three.core.of_type("AWS::Lambda::EventInvokeConfig").values()
    assert config["MaximumEventAgeInSeconds"] == 120
    assert config["MaximumRetryAttempts"] == 1
    assert three.core.spelled(config["FunctionName"]) == "lambda:function:dueline-tick"
    assert three.core.spelled(config["DestinationConfig"]["OnFailure"]["Destination"]) == "sqs:dueline-tick-dlq"
