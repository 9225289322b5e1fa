"""The stack that all queues share."""

import json
from dataclasses import asdict
from typing import Any

from aws_cdk import CfnOutput, Stack
from aws_cdk.aws_lambda import Function
from aws_cdk.aws_ssm import StringParameter
from constructs import Construct

from dueline.cdk.arns import Arns
from dueline.cdk.constructs.alarms import Alarms, topics_of_deployment
from dueline.cdk.constructs.consumers import Ingest, Planner
from dueline.cdk.constructs.http_api import JobsApi
from dueline.cdk.constructs.schedules import Invocations, PlannerWatch, ScheduleGroup
from dueline.cdk.constructs.storage import PayloadsBucket, add_tables
from dueline.cdk.constructs.tick import Tick, TickSchedules
from dueline.cdk.constructs.watch import Watch, WatchRule
from dueline.cdk.constructs.watched import DeploymentDashboard
from dueline.config.deployment import Deployment
from dueline.config.environment import PUBLISHED_SCHEMAS
from dueline.config.names import Names
from dueline.core.queue_settings import PLANNER


class CoreStack(Stack):
    """The tables, the inbound queue, the bucket of large payloads, the functions, the API and what watches them."""

    def __init__(self, scope: Construct, id: str, *, deployment: Deployment, **options: Any) -> None:
        description = "Dueline: the tables, the functions and the API that all queues share."
        super().__init__(scope, id, description=description, suppress_template_indentation=True, **options)
        names = deployment.names
        payloads = PayloadsBucket(self, "Payloads", name=Arns(self, names=names).payloads_bucket, deployment=deployment)
        self._publish("PayloadsParameter", names.payloads_parameter, payloads.bucket_name)
        self._ingest = ingest = Ingest(self, "Ingest", deployment=deployment)
        self._tick = tick = Tick(self, "Tick", deployment=deployment)
        self._planner = planner = Planner(self, "Planner", deployment=deployment)
        api = JobsApi(self, "Api", deployment=deployment)
        # What reads rows changes before the API, which writes them.
        api.deploy_after(ingest.live, tick.live, planner.live)
        planner.refuse_others(ingest.function, tick.function, api.function)
        group = ScheduleGroup(self, "Scheduler", deployment=deployment)
        self._publish_api(names, api)
        CfnOutput(self, "ApiUrl", value=api.url)
        topics = topics_of_deployment(self, deployment=deployment)
        self._watch = watch = Watch(self, "Watch", deployment=deployment)
        self._add_alarms(Alarms(self, "Alarms", topics=topics, deployment=deployment), api)
        if deployment.dashboards != "none":
            self._add_dashboard(deployment, api)
        rule = self._add_schedules(names, group)
        add_tables(self, deployment=deployment)
        others = list(self.node.children)
        invocations = Invocations(
            self,
            "Invocations",
            deployment=deployment,
            role=group.role,
            functions=[tick.live, planner.live],
            dead_letter_queue=tick.dead_letter_queue,
            watch=watch.live,
            rule=rule.arn,
        )
        invocations.node.add_dependency(*others)

    def _publish_api(self, names: Names, api: JobsApi) -> None:
        self._publish("ApiId", names.api_id_parameter, api.http.api_id)
        self._publish("ApiUrlParameter", names.api_url_parameter, api.url)
        self._publish("ApiFunction", names.api_function_parameter, api.function.function_arn)
        self._publish("Settings", names.settings_parameter, self.to_json_string(asdict(api.settings)))
        self._publish("Schema", names.schema_parameter, json.dumps(PUBLISHED_SCHEMAS))

    def _publish(self, id: str, parameter: str, value: str) -> None:
        StringParameter(self, id, parameter_name=parameter, string_value=value)

    def _add_schedules(self, names: Names, group: ScheduleGroup) -> WatchRule:
        ticks = TickSchedules(self, "PlannerTicks", names=names, queue=PLANNER.name, partitions=PLANNER.partitions)
        ticks.node.add_dependency(group, self._tick, self._planner)
        PlannerWatch(
            self,
            "PlannerWatch",
            names=names,
            role=group.role,
            planner=self._planner.live,
            dead_letter_queue=self._tick.dead_letter_queue,
        )
        return WatchRule(self, "WatchRule", watch=self._watch.live)

    def _add_alarms(self, alarms: Alarms, api: JobsApi) -> None:
        alarms.on_silence()
        alarms.on_old_messages(self._ingest.inbound)
        alarms.on_api_faults(api.function)
        alarms.on_errors(self._functions(api))
        alarms.on_failed_firings(self._tick.dead_letter_queue)

    def _add_dashboard(self, deployment: Deployment, api: JobsApi) -> None:
        dead_letters = {
            "inbound": self._ingest.dead_letter_queue,
            "parked jobs": self._tick.dispatch_dead_letter_queue,
            "firings": self._tick.dead_letter_queue,
            "planner": self._planner.dead_letter_queue,
        }
        DeploymentDashboard(
            self,
            "Overview",
            deployment=deployment,
            functions=self._functions(api),
            inbound=self._ingest.inbound,
            dead_letters=dead_letters,
        )

    def _functions(self, api: JobsApi) -> dict[str, Function]:
        ingest, tick, planner = self._ingest.function, self._tick.function, self._planner.function
        watch = self._watch.function
        return {"ingest": ingest, "tick": tick, "api": api.function, "planner": planner, "watch": watch}
