"""The schedules that queues.yaml declares of a queue."""

from collections.abc import Mapping

from aws_cdk import CfnWaitConditionHandle, CustomResource, Duration
from constructs import Construct, IDependable

from dueline.config.names import Names
from dueline.config.schedule import Schedule
from infra.arns import Arns

# Lambda tries again what failed, after one minute and after two more.
_TIMEOUT = Duration.minutes(5)


class DeclaredSchedules(Construct):
    """The schedules of a queue, each a resource of its stack, which the API's function makes.

    One that is taken out of queues.yaml is deleted, and so are all with the queue's stack.
    """

    def __init__(
        self, scope: Construct, id: str, *, names: Names, queue: str, schedules: Mapping[str, Schedule]
    ) -> None:
        super().__init__(scope, id)
        self._gate = CfnWaitConditionHandle(self, "Gate")
        # Not its alias: CloudFormation lets nobody change whom a resource asks, and a deployment leaves both alike.
        function = Arns(self, names=names).function("api")
        for name, schedule in schedules.items():
            resource = CustomResource(
                self,
                f"Schedule-{name}",
                service_token=function,
                service_timeout=_TIMEOUT,
                resource_type="Custom::DuelineSchedule",
                properties={"Queue": queue, "Schedule": name, "Definition": schedule.declared},
            )
            resource.node.add_dependency(self._gate)

    def come_after(self, *others: IDependable) -> None:
        """Make them once all others are there.

        By way of a handle, which makes nothing: each named by each schedule, they would outgrow a template.
        """
        self._gate.node.add_dependency(*others)
