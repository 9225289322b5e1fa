"""The stack that all queues share."""

import json
from collections.abc import Mapping
from dataclasses import asdict

from aws_cdk import CfnOutput, Stack
from aws_cdk.aws_lambda import Function
from aws_cdk.aws_ssm import StringParameter
from constructs import Construct

from dueline.config.deployment import Deployment
from dueline.config.environment import PUBLISHED_SCHEMAS
from dueline.config.names import Dashboards, Names
from dueline.core.queue_settings import PLANNER
from infra.arns import Arns
from infra.constructs.alarm_topic import topics_of_deployment
from infra.constructs.alarms import Alarms
from infra.constructs.dashboards import DeploymentDashboard
from infra.constructs.http_api import JobsApi
from infra.constructs.ingest import Ingest
from infra.constructs.payloads_bucket import PayloadsBucket
from infra.constructs.planner import Planner
from infra.constructs.schedules import Invocations, ScheduleGroup, Watches
from infra.constructs.tables import JobsTable, OnceTable, StateTable
from infra.constructs.tick import Tick, TickSchedules
from infra.constructs.ttl_guard import TtlGuard, TtlRule


class CoreStack(Stack):
    """The tables, the inbound queue, the bucket of large payloads, the functions, the API and what watches them."""

    def __init__(self, scope: Construct, id: str, *, deployment: Deployment) -> None:
        description = "Dueline: the tables, the functions and the API that all queues share."
        super().__init__(scope, id, description=description, suppress_template_indentation=True)
        names = deployment.names
        payloads = PayloadsBucket(self, "Payloads", name=Arns(self, names=names).payloads_bucket, deployment=deployment)
        StringParameter(
            self, "PayloadsParameter", parameter_name=names.payloads_parameter, string_value=payloads.bucket_name
        )
        ingest = Ingest(self, "Ingest", deployment=deployment)
        tick = Tick(self, "Tick", deployment=deployment)
        planner = Planner(self, "Planner", deployment=deployment)
        api = JobsApi(self, "Api", deployment=deployment)
        # What reads rows changes before the API, which writes them.
        api.live.node.add_dependency(ingest.live, tick.live, planner.live)
        planner.refuse_others(ingest.function, tick.function, api.function)
        group = ScheduleGroup(self, "Scheduler", deployment=deployment)
        self._publish(names, api)
        CfnOutput(self, "ApiUrl", value=api.url)
        self._add_alarms(deployment, ingest, tick, api, planner)
        guard = self._add_guards(deployment)
        rule = self._add_schedules(names, group, tick, planner, guard)
        # The one that may fail, by its capacity, is the first.
        for kind, id in ((JobsTable, "Table"), (StateTable, "State"), (OnceTable, "Once")):
            kind(self, id, deployment=deployment).come_last()
        others = list(self.node.children)
        invocations = Invocations(
            self,
            "Invocations",
            deployment=deployment,
            role=group.role,
            functions=[tick.live, planner.live],
            dead_letter_queue=tick.dead_letter_queue,
            guard=guard.live,
            rule=rule.arn,
        )
        invocations.node.add_dependency(*others)

    def _publish(self, names: Names, api: JobsApi) -> None:
        published = {
            "ApiId": (names.api_id_parameter, api.http.api_id),
            "ApiUrlParameter": (names.api_url_parameter, api.url),
            "Settings": (names.settings_parameter, self.to_json_string(asdict(api.settings))),
            "Schema": (names.schema_parameter, json.dumps(PUBLISHED_SCHEMAS)),
        }
        for parameter, (name, value) in published.items():
            StringParameter(self, parameter, parameter_name=name, string_value=value)

    def _add_schedules(
        self, names: Names, group: ScheduleGroup, tick: Tick, planner: Planner, guard: TtlGuard
    ) -> TtlRule:
        ticks = TickSchedules(self, "PlannerTicks", names=names, queue=PLANNER.name, partitions=PLANNER.partitions)
        ticks.node.add_dependency(group, tick, planner)
        Watches(
            self,
            "Watches",
            names=names,
            role=group.role,
            tick=tick.live,
            planner=planner.live,
            dead_letter_queue=tick.dead_letter_queue,
        )
        return TtlRule(self, "TtlRule", guard=guard.live)

    def _add_guards(self, deployment: Deployment) -> TtlGuard:
        guard = TtlGuard(self, "TtlGuard", deployment=deployment)
        self._alarms.on_ttl_off("TtlOff", deployment=deployment.name)
        self._alarms.on_errors("TtlErrors", guard.function, name="ttl")
        return guard

    def _add_alarms(self, deployment: Deployment, ingest: Ingest, tick: Tick, api: JobsApi, planner: Planner) -> None:
        self._alarms = alarms = Alarms(self, "Alarms", topics=topics_of_deployment(self, deployment=deployment))
        _watch_dead_letters(alarms, ingest, tick, planner)
        alarms.on_schedules_that_stand_still("StandingStill", deployment=deployment.name)
        alarms.on_old_messages("InboundAge", ingest.inbound)
        alarms.on_partitions_without_tick("WithoutTick", deployment=deployment.name)
        alarms.on_partitions_that_never_ticked("NeverTicked", deployment=deployment.name)
        self._add_function_alarms(deployment, alarms, ingest, tick, api, planner)

    def _add_function_alarms(
        self, deployment: Deployment, alarms: Alarms, ingest: Ingest, tick: Tick, api: JobsApi, planner: Planner
    ) -> None:
        alarms.on_throttles("ApiThrottles", api.function, name="api")
        alarms.on_throttles("TickThrottles", tick.function, name="tick")
        named = {"ingest": ingest.function, "tick": tick.function, "api": api.function, "planner": planner.function}
        for name, function in named.items():
            alarms.on_errors(f"{name.capitalize()}Errors", function, name=name)
        alarms.on_api_faults("ApiFaults", deployment=deployment.name)
        if deployment.dashboards is not Dashboards.NONE:
            self._add_dashboard(deployment, named, ingest, tick, planner)

    def _add_dashboard(
        self, deployment: Deployment, functions: Mapping[str, Function], ingest: Ingest, tick: Tick, planner: Planner
    ) -> None:
        dead_letters = {
            "inbound": ingest.dead_letter_queue,
            "parked jobs": tick.dispatch_dead_letter_queue,
            "firings": tick.dead_letter_queue,
            "planner": planner.dead_letter_queue,
        }
        DeploymentDashboard(
            self,
            "Overview",
            deployment=deployment,
            functions=functions,
            inbound=ingest.inbound,
            dead_letters=dead_letters,
        )


def _watch_dead_letters(alarms: Alarms, ingest: Ingest, tick: Tick, planner: Planner) -> None:
    held = {
        "inbound-dead-letters": (
            "Inbound",
            ingest.dead_letter_queue,
            "Ingest could not read or store inbound messages",
        ),
        "parked-jobs": ("Dispatch", tick.dispatch_dead_letter_queue, "Jobs are parked that can never be sent"),
        "planner-dead-letters": ("Planner", planner.dead_letter_queue, "The planner failed at a schedule for hours"),
    }
    for page, (kind, queue, what) in held.items():
        alarms.on_dead_letters(f"{kind}DeadLetters", queue, what=what, page=page)
    alarms.on_failed_firings("TickDeadLetters", tick.dead_letter_queue)
