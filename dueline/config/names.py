"""Physical names of what a deployment is made of.

A queue's name has no underscore, so nothing that a team calls its queue meets a name of Dueline's own.
"""

from dataclasses import dataclass
from enum import StrEnum

# The alias of each function: its current version, which all invoke that Dueline deploys.
LIVE = "live"
RUNBOOKS = "docs/runbooks"


@dataclass(frozen=True, slots=True)
class Names:
    """The names in one deployment."""

    deployment: str

    @property
    def table(self) -> str:
        return f"{self.deployment}-jobs"

    @property
    def state(self) -> str:
        """The table of what is updated: partition states, and what controls workers."""
        return f"{self.deployment}-state"

    @property
    def once(self) -> str:
        """The table of which jobs had their effect."""
        return f"{self.deployment}-once"

    @property
    def inbound(self) -> str:
        return f"{self.deployment}-inbound"

    @property
    def inbound_dlq(self) -> str:
        return f"{self.deployment}-inbound-dlq"

    @property
    def dispatch_dlq(self) -> str:
        return f"{self.deployment}-dispatch-dlq"

    @property
    def tick_dlq(self) -> str:
        return f"{self.deployment}-tick-dlq"

    @property
    def alarms(self) -> str:
        return f"{self.deployment}-alarms"

    @property
    def tickets(self) -> str:
        """The topic of alarms that can wait until somebody works."""
        return f"{self.deployment}-tickets"

    @property
    def api(self) -> str:
        return f"{self.deployment}-api"

    @property
    def schedule_group(self) -> str:
        return f"{self.deployment}-ticks"

    @property
    def watch_group(self) -> str:
        return f"{self.deployment}-watches"

    @property
    def watch(self) -> str:
        """The schedule that watches over the ticks, of which it is none."""
        return f"{self.deployment}-watch-ticks"

    @property
    def planner_watch(self) -> str:
        """The schedule that has the planner look for schedules that stand still."""
        return f"{self.deployment}-watch-schedules"

    @property
    def scheduler_role(self) -> str:
        return f"{self.deployment}-scheduler"

    @property
    def core_stack(self) -> str:
        return f"{self.deployment}-core"

    @property
    def api_id_parameter(self) -> str:
        return f"/dueline/{self.deployment}/api-id"

    @property
    def api_url_parameter(self) -> str:
        return f"/dueline/{self.deployment}/api-url"

    @property
    def settings_parameter(self) -> str:
        return f"/dueline/{self.deployment}/settings"

    @property
    def schema_parameter(self) -> str:
        return f"/dueline/{self.deployment}/schema"

    @property
    def payloads_parameter(self) -> str:
        return f"/dueline/{self.deployment}/payloads"

    @property
    def queue_parameters(self) -> str:
        """The path under which each queue has its parameter."""
        return f"/dueline/{self.deployment}/queues"

    @property
    def queue_prefix(self) -> str:
        """What the names of all teams' queues begin with, and no others."""
        return f"{self.deployment}_"

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

    @property
    def groups_stack(self) -> str:
        return f"{self.deployment}-groups"

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

    def producer_policy(self, queue: str) -> str:
        return self.policy(queue, "producer")

    def consumer_policy(self, queue: str) -> str:
        return self.policy(queue, "consumer")

    def operator_policy(self, queue: str) -> str:
        return self.policy(queue, "operator")

    def direct_policy(self, queue: str) -> str:
        return self.policy(queue, "direct")

    def schedule(self, queue: str, partition: int) -> str:
        return f"{queue}.{partition}"


# Runbooks: where the page of each alarm is, as its description and the doctor name it.
def runbook(name: str) -> str:
    """Return the page of an alarm.

    >>> runbook("late-jobs")
    'docs/runbooks/late-jobs.md'
    """
    return f"{RUNBOOKS}/{name}.md"


# Which CloudWatch dashboards there are.
class Dashboards(StrEnum):
    """None, that of the deployment, or one of each queue as well: an account's first three cost nothing."""

    NONE = "none"
    DEPLOYMENT = "deployment"
    ALL = "all"
