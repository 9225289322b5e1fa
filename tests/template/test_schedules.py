"""Every partition has a tick, for as long as it may hold a job."""

import json

from tests.template.synthesis import Assembly


def test_every_partition_has_one_schedule_a_minute(sixty: Assembly) -> None:
    for queue, template in sixty.queues.items():
        schedules = template.of_type("AWS::Scheduler::Schedule").values()
        assert [schedule["Name"] for schedule in schedules] == [f"{queue}.{partition}" for partition in range(4)]
        for partition, schedule in enumerate(schedules):
            assert schedule["ScheduleExpression"] == "rate(1 minute)"
            assert schedule["FlexibleTimeWindow"] == {"Mode": "OFF"}
            assert schedule["GroupName"] == "dueline-ticks"
            assert json.loads(schedule["Target"]["Input"]) == {"queue": queue, "partition": partition}


def test_a_schedule_invokes_the_tick_through_the_one_role_and_tells_of_failures(sixty: Assembly) -> None:
    for template in sixty.queues.values():
        for schedule in template.of_type("AWS::Scheduler::Schedule").values():
            target = schedule["Target"]
            assert template.spelled(target["Arn"]) == "lambda:function:dueline-tick"
            assert template.spelled(target["RoleArn"]) == "iam:role/dueline-scheduler"
            assert template.spelled(target["DeadLetterConfig"]["Arn"]) == "sqs:dueline-tick-dlq"
            assert 60 <= target["RetryPolicy"]["MaximumEventAgeInSeconds"] <= 120


def test_schedules_and_their_group_outlive_partition_queue_and_stack(sixty: Assembly) -> None:
    kept = {"AWS::Scheduler::Schedule", "AWS::Scheduler::ScheduleGroup"}
    schedules = [one for template in sixty.templates.values() for one in template.resources.values()]
    policies = [one["DeletionPolicy"] for one in schedules if one["Type"] in kept]
    assert policies == ["RetainExceptOnCreate"] * (60 * 4 + 1)


def test_clients_learn_of_partitions_that_tick_and_ticks_find_their_queue(sixty: Assembly) -> None:
    for template in sixty.queues.values():
        [parameter] = template.of_type("AWS::SSM::Parameter")
        schedules = set(template.of_type("AWS::Scheduler::Schedule"))
        assert schedules <= template.depends_on(parameter)
        queues = set(template.of_type("AWS::SQS::Queue"))
        assert all(queues <= template.depends_on(schedule) for schedule in schedules)


def test_a_throttled_tick_is_dropped_before_the_next_ones_pile_up(sixty: Assembly) -> None:
    [config] = sixty.core.of_type("AWS::Lambda::EventInvokeConfig").values()
    assert config["MaximumEventAgeInSeconds"] == 120
    assert config["MaximumRetryAttempts"] == 1
    assert sixty.core.spelled(config["FunctionName"]) == "lambda:function:dueline-tick"
    assert sixty.core.spelled(config["DestinationConfig"]["OnFailure"]["Destination"]) == "sqs:dueline-tick-dlq"
