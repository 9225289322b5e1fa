"""Every partition has a tick, for as long as it may hold a job."""

import json

import pytest

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
            assert template.spelled(target["Arn"]) == "lambda:function:dueline-tick:live"
            assert template.spelled(target["RoleArn"]) == "iam:role/dueline-scheduler"
            assert template.spelled(target["DeadLetterConfig"]["Arn"]) == "sqs:dueline-tick-dlq"
            assert 60 <= target["RetryPolicy"]["MaximumEventAgeInSeconds"] <= 120


def test_schedules_and_their_group_outlive_partition_queue_and_stack(three: Assembly) -> None:
    of_queues = [one for template in three.queues.values() for one in template.resources.values()]
    schedules = [one for one in of_queues if one["Type"] == "AWS::Scheduler::Schedule"]
    groups = [
        one
        for one in three.core.resources.values()
        if one["Type"] == "AWS::Scheduler::ScheduleGroup" and one["Properties"]["Name"] == "dueline-ticks"
    ]
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
        _, after = template.of_type("Custom::DuelineStrandGuard")
        assert template.depends_on(parameter) == set(template.resources) - {parameter, after, "CDKMetadata"}


def test_a_deployment_asks_whether_it_strands_jobs_before_it_changes_anything_and_before_it_deletes_anything(
    three: Assembly, one_more: Assembly
) -> None:
    for template in [*three.queues.values(), one_more.queues["ahead"]]:
        before, after = template.of_type("Custom::DuelineStrandGuard")
        others = set(template.resources) - {before, after, "CDKMetadata"}
        assert all(before in template.depends_on(other) for other in others)
        assert template.depends_on(after) == {*others, before}
        for id, when in ((before, "before"), (after, "after")):
            told = template.resources[id]["Properties"]
            assert template.spelled(told["ServiceToken"]) == "lambda:function:dueline-strand:live"
            assert (told["When"], told["Strand"]) == (when, "no")
    told = one_more.queues["ahead"].resources[before]["Properties"]
    assert (told["Queue"], told["Partitions"], told["Priorities"], told["MessageRetentionDays"]) == ("ahead", 400, 5, 2)


@pytest.mark.parametrize(
    ("function", "name", "rate"),
    [("tick", "dueline-watch-ticks", "rate(5 minutes)"), ("planner", "dueline-watch-schedules", "rate(1 hour)")],
)
def test_the_core_watches_whether_there_are_ticks_and_schedules_go_on_and_needs_no_queues_stack(
    three: Assembly, function: str, name: str, rate: str
) -> None:
    watches = three.core.of_type("AWS::Scheduler::Schedule").values()
    [watch] = [each for each in watches if each["Name"] == name]
    target = watch["Target"]
    assert watch["ScheduleExpression"] == rate
    # Whoever fires what is in the group of the ticks fires ticks.
    assert three.core.resources[watch["GroupName"]["Ref"]]["Properties"]["Name"] == "dueline-watches"
    assert json.loads(target["Input"]) == {"watch": True}
    assert three.core.spelled(target["Arn"]) == f"lambda:function:dueline-{function}:live"
    assert three.core.resources[target["RoleArn"]["Fn::GetAtt"][0]]["Properties"]["RoleName"] == "dueline-scheduler"
    assert three.core.spelled(target["DeadLetterConfig"]["Arn"]) == "sqs:dueline-tick-dlq"


def test_the_planners_queue_has_one_partition_which_ticks_as_all_others_do_once_group_and_queue_stand(
    three: Assembly,
) -> None:
    [(id, schedule)] = [
        (id, each)
        for id, each in three.core.of_type("AWS::Scheduler::Schedule").items()
        if each.get("GroupName") == "dueline-ticks"
    ]
    like = next(iter(three.queues["queue-0"].of_type("AWS::Scheduler::Schedule").values()))
    event = {"queue": "dueline-planner", "partition": 0}
    assert schedule["Name"] == "dueline-planner.0"
    assert json.loads(schedule["Target"]["Input"]) == event
    assert schedule | {"Name": "", "Target": ""} == like | {"Name": "", "Target": ""}
    assert {"SchedulerGroupC7019706", "PlannerQueue516EB695"} <= three.core.depends_on(id)


def test_functions_are_invoked_once_the_tables_stand_so_that_a_first_deployment_rings_no_alarm(three: Assembly) -> None:
    tables = set(three.core.of_type("AWS::DynamoDB::Table"))
    schedules = three.core.of_type("AWS::Scheduler::Schedule")
    assert (len(tables), len(schedules)) == (3, 3)
    assert all(tables <= three.core.depends_on(id) for id in schedules)


def test_a_throttled_tick_is_dropped_before_the_next_ones_pile_up_be_it_fired_by_a_schedule_of_before_or_not(
    three: Assembly,
) -> None:
    configs = three.core.of_type("AWS::Lambda::EventInvokeConfig").values()
    for config in configs:
        assert config["MaximumEventAgeInSeconds"] == 120
        assert config["MaximumRetryAttempts"] == 1
        assert three.core.spelled(config["FunctionName"]) == "lambda:function:dueline-tick"
        assert three.core.spelled(config["DestinationConfig"]["OnFailure"]["Destination"]) == "sqs:dueline-tick-dlq"
    [alias] = [each["Qualifier"] for each in configs if each["Qualifier"] != "$LATEST"]
    assert len(configs) == 2
    # What CloudFormation makes of an alias's ARN.
    index, split = alias["Fn::Select"]
    arn = f"arn:aws:lambda:region:{three.core.spelled(split['Fn::Split'][1]).replace('lambda:', 'account:')}"
    assert arn.split(":")[index] == "live"


def test_the_schedules_of_queues_yaml_are_made_by_the_api_once_the_queue_and_its_ticks_stand(
    three: Assembly, one_more: Assembly
) -> None:
    ahead = one_more.queues["ahead"]
    declared = ahead.of_type("Custom::DuelineSchedule")
    assert {each["Schedule"] for each in declared.values()} == {f"s.{number}" for number in range(50)}
    [first] = [id for id, each in declared.items() if each["Schedule"] == "s.0"]
    assert declared[first]["Queue"] == "ahead"
    assert json.loads(declared[first]["Definition"]) == {"every": 60, "payload": '{"n":0}'}
    assert ahead.spelled(declared[first]["ServiceToken"]) == "lambda:function:dueline-api"
    [gate] = ahead.of_type("AWS::CloudFormation::WaitConditionHandle")
    assert ahead.depends_on(first) >= {gate}
    ticks = set(ahead.of_type("AWS::Scheduler::Schedule"))
    assert ahead.depends_on(gate) >= ticks | set(ahead.of_type("AWS::SQS::Queue"))
    assert not three.queues["queue-0"].of_type("Custom::DuelineSchedule")
