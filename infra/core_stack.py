"""The stack that all queues share."""

import json
from dataclasses import asdict

from aws_cdk import CfnOutput, Stack
from aws_cdk.aws_ssm import StringParameter
from constructs import Construct

from dueline.config.deployment import Deployment
from dueline.config.names import Names
from dueline.config.settings import PUBLISHED_SCHEMAS
from dueline.model.queue_settings import PLANNER
from infra.arns import Arns
from infra.constructs.alarm_topic import AlarmTopic
from infra.constructs.alarms import Alarms
from infra.constructs.http_api import JobsApi
from infra.constructs.ingest import Ingest
from infra.constructs.payloads_bucket import PayloadsBucket
from infra.constructs.planner import Planner
from infra.constructs.schedule_group import ScheduleGroup
from infra.constructs.tables import JobsTable, OnceTable, StateTable
from infra.constructs.tick import Tick
from infra.constructs.tick_schedules import TickSchedules
from infra.function_code import functions_code


class CoreStack(Stack):
    """The tables, the inbound queue, the bucket of large payloads, the functions, the API and what watches them."""

    def __init__(self, scope: Construct, id: str, *, deployment: Deployment) -> None:
        description = "Dueline: the tables, the functions and the API that all queues share."
        super().__init__(scope, id, description=description, suppress_template_indentation=True)
        names = deployment.names
        code = functions_code(self, deployment=deployment)
        payloads = PayloadsBucket(self, "Payloads", name=Arns(self, names=names).payloads_bucket)
        StringParameter(
            self, "PayloadsParameter", parameter_name=names.payloads_parameter, string_value=payloads.bucket_name
        )
        ingest = Ingest(self, "Ingest", deployment=deployment, code=code)
        tick = Tick(self, "Tick", deployment=deployment, code=code)
        with_rules = functions_code(self, deployment=deployment, knows_rules=True)
        planner = Planner(self, "Planner", deployment=deployment, code=with_rules)
        api = JobsApi(self, "Api", deployment=deployment, code=with_rules)
        planner.refuse_others(ingest.function, tick.function, api.function)
        self._add_schedules(names, tick, planner)
        self._publish(names, api)
        CfnOutput(self, "ApiUrl", value=api.http.api_endpoint)
        self._add_alarms(deployment, ingest, tick, api, planner)
        OnceTable(self, "Once", name=names.once).come_last()
        StateTable(self, "State", name=names.state).come_last()
        JobsTable(self, "Table", deployment=deployment).come_last()

    def _publish(self, names: Names, api: JobsApi) -> None:
        published = {
            "ApiId": (names.api_id_parameter, api.http.api_id),
            "ApiUrlParameter": (names.api_url_parameter, api.http.api_endpoint),
            "Settings": (names.settings_parameter, self.to_json_string(asdict(api.settings))),
            "Schema": (names.schema_parameter, json.dumps(PUBLISHED_SCHEMAS)),
        }
        for parameter, (name, value) in published.items():
            StringParameter(self, parameter, parameter_name=name, string_value=value)

    def _add_schedules(self, names: Names, tick: Tick, planner: Planner) -> None:
        group = ScheduleGroup(
            self,
            "Scheduler",
            names=names,
            tick=tick.function,
            planner=planner.function,
            dead_letter_queue=tick.dead_letter_queue,
        )
        ticks = TickSchedules(self, "PlannerTicks", names=names, queue=PLANNER.name, partitions=PLANNER.partitions)
        # A tick parks the jobs of a queue that is not there.
        ticks.node.add_dependency(group, planner.queue)

    def _add_alarms(self, deployment: Deployment, ingest: Ingest, tick: Tick, api: JobsApi, planner: Planner) -> None:
        alarms = Alarms(self, "Alarms", topic=AlarmTopic(self, "AlarmTopic", deployment=deployment))
        alarms.on_dead_letters(
            "InboundDeadLetters", ingest.dead_letter_queue, what="Ingest could not read or store inbound messages"
        )
        alarms.on_dead_letters(
            "DispatchDeadLetters", tick.dispatch_dead_letter_queue, what="Jobs are parked that can never be sent"
        )
        alarms.on_dead_letters("TickDeadLetters", tick.dead_letter_queue, what="Ticks could not be invoked or failed")
        alarms.on_dead_letters(
            "PlannerDeadLetters", planner.dead_letter_queue, what="The planner failed at a schedule time and again"
        )
        alarms.on_schedules_that_stand_still("StandingStill", deployment=deployment.name)
        alarms.on_old_messages("InboundAge", ingest.inbound)
        alarms.on_partitions_without_tick("WithoutTick", deployment=deployment.name)
        alarms.on_api_faults("ApiFaults", deployment=deployment.name)
        alarms.on_throttles("ApiThrottles", api.function, name="api")
        named = {"ingest": ingest.function, "tick": tick.function, "api": api.function, "planner": planner.function}
        for name, function in named.items():
            alarms.on_errors(f"{name.capitalize()}Errors", function, name=name)
