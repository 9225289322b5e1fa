"""Physical names of what a deployment is made of.

A queue's name has no underscore, so nothing that a team calls its queue meets a name of Dueline's own.
"""

from dataclasses import dataclass

# The alias of each function: its current version, which all invoke that Dueline deploys.
LIVE = "live"


class _Name:
    """A name that has the deployment's in it."""

    def __init__(self, template: str) -> None:
        self._template = template

    def __get__(self, names: "Names", _: type["Names"]) -> str:
        return self._template.format(names.deployment)


@dataclass(frozen=True, slots=True)
class Names:
    """The names in one deployment."""

    deployment: str

    table = _Name("{}-jobs")
    # The table of what is updated: partition states, and what controls workers.
    state = _Name("{}-state")
    # The table of which jobs had their effect.
    once = _Name("{}-once")
    inbound = _Name("{}-inbound")
    inbound_dlq = _Name("{}-inbound-dlq")
    dispatch_dlq = _Name("{}-dispatch-dlq")
    tick_dlq = _Name("{}-tick-dlq")
    alarms = _Name("{}-alarms")
    # The topic of alarms that can wait until somebody works.
    tickets = _Name("{}-tickets")
    api = _Name("{}-api")
    schedule_group = _Name("{}-ticks")
    watch_group = _Name("{}-watches")
    # The schedule that has the planner look for schedules that stand still.
    planner_watch = _Name("{}-watch-schedules")
    scheduler_role = _Name("{}-scheduler")
    core_stack = _Name("{}-core")
    api_id_parameter = _Name("/dueline/{}/api-id")
    api_url_parameter = _Name("/dueline/{}/api-url")
    # The ARN of the API's function, which is invoked by the aliases of its queues.
    api_function_parameter = _Name("/dueline/{}/api-function")
    settings_parameter = _Name("/dueline/{}/settings")
    schema_parameter = _Name("/dueline/{}/schema")
    payloads_parameter = _Name("/dueline/{}/payloads")
    # The path under which each queue has its parameter.
    queue_parameters = _Name("/dueline/{}/queues")
    # What the names of all teams' queues begin with, and no others.
    queue_prefix = _Name("{}_")
    groups_stack = _Name("{}-groups")

    @property
    def access_log(self) -> str:
        """A name under which API Gateway may write to any number of log groups.

        It adds each other one to a resource policy of 5,120 characters that all of an account's APIs share:
        https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/AWS-logs-and-resource-policy.html
        """
        return f"/aws/vendedlogs/{self.api}"

    def payloads(self, *, account: str, region: str) -> str:
        """The bucket of payloads; buckets of all the world have one name each."""
        return f"{self.deployment}-payloads-{account}-{region}"

    def function(self, name: str) -> str:
        return f"{self.deployment}-{name}"

    def function_log(self, name: str) -> str:
        return f"/aws/lambda/{self.function(name)}"

    def queue(self, queue: str, priority: int = 1) -> str:
        """Return the name of the SQS queue of a priority; that of 1 is the queue's own."""
        return f"{self.queue_prefix}{queue}" + (f"_p{priority}" if priority > 1 else "")

    def queue_dlq(self, queue: str) -> str:
        return f"{self.queue_prefix}{queue}_dlq"

    def queue_alarms(self, queue: str) -> str:
        """The topic of a queue's owner, which is no queue's name: that has no underscore."""
        return f"{self.queue_prefix}{queue}_alarms"

    def queue_stack(self, queue: str) -> str:
        return f"{self.deployment}-queue-{queue}"

    def queue_parameter(self, queue: str) -> str:
        return f"{self.queue_parameters}/{queue}"

    def policy(self, queue: str, kind: str) -> str:
        return f"{self.queue_prefix}{queue}_{kind}"

    def group_policy(self, group: str, kind: str) -> str:
        """Return the name of a group's policy, which is no queue's: a queue's name has no underscore."""
        return f"{self.queue_prefix}group_{group}_{kind}"

    def schedule(self, queue: str, partition: int) -> str:
        return f"{queue}.{partition}"


def runbook(name: str, *, base: str = "docs/runbooks") -> str:
    """Return the page of an alarm or mail; `base` is `runbook_url` of queues.yaml.

    >>> runbook("late-jobs")
    'docs/runbooks/late-jobs.md'
    """
    return f"{base}/{name}.md"
