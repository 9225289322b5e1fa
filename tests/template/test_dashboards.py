"""Dashboards show what alarms watch, and more."""

import json
import re
from typing import Any

from dueline.config import metrics
from tests.template.synthesis import Assembly, Template


def _shown(template: Template) -> dict[str, list[Any]]:
    """Return what the one dashboard of a stack shows, by the titles of its graphs."""
    [board] = template.of_type("AWS::CloudWatch::Dashboard").values()
    widgets = json.loads(template.spelled(board["DashboardBody"]))["widgets"]
    return {each["properties"]["title"]: each["properties"]["metrics"] for each in widgets}


def test_a_deployment_has_one_dashboard_and_its_queues_none_unless_queues_yaml_says_so(
    three: Assembly, traced: Assembly, neighbours: Assembly
) -> None:
    boards = [len(each.of_type("AWS::CloudWatch::Dashboard")) for each in three.templates.values()]
    assert sorted(boards) == [0, 0, 0, 1]
    assert len(three.core.of_type("AWS::CloudWatch::Dashboard")) == 1
    assert not traced.core.of_type("AWS::CloudWatch::Dashboard")
    assert all(len(each.of_type("AWS::CloudWatch::Dashboard")) == 1 for each in neighbours.queues.values())


def test_the_deployments_dashboard_finds_queues_by_search_so_that_a_new_one_changes_nothing(
    three: Assembly, one_more: Assembly
) -> None:
    shown = _shown(three.core)
    [[lateness]] = shown["Lateness by queue, s"]
    assert '{Dueline,deployment,queue} MetricName="Lateness" deployment="dueline"' in lateness["expression"]
    assert _shown(one_more.core) == shown


def test_a_queues_dashboard_shows_its_lateness_its_levels_and_its_dead_letters(neighbours: Assembly) -> None:
    shown = _shown(neighbours.queues["emails"])
    [lateness] = shown["Lateness, s"]
    assert lateness[:6] == [metrics.NAMESPACE, metrics.LATENESS, "deployment", "dueline", "queue", "emails"]
    waiting = [each[3] for each in shown["Waiting for workers, by level"]]
    assert waiting == ["sqs:dueline_emails", "sqs:dueline_emails_p2"]
    assert [each[3] for each in shown["Dead letters"]] == ["sqs:dueline_emails_dlq"]


def test_costs_are_summed_up_a_day_of_metrics_that_are_all_on_the_graph(three: Assembly, neighbours: Assembly) -> None:
    boards = [_shown(three.core), *map(_shown, neighbours.queues.values())]
    costs = [each for shown in boards for title, each in shown.items() if "Cost" in title]
    assert len(costs) == len(boards)
    for told in costs:
        expressions = [each[0] for each in told if isinstance(each[0], dict)]
        used = {id for each in expressions for id in re.findall(r"[ftq]\d+x\d+", each["expression"])}
        counted = [each[-1] for each in told if isinstance(each[0], str)]
        assert used
        assert used <= {each["id"] for each in counted}
        assert {each["period"] for each in counted} == {86_400}
