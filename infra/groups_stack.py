"""The stack of the groups of queues."""

import json

from aws_cdk import Stack
from aws_cdk.aws_iam import CfnManagedPolicy
from constructs import Construct

from dueline.config.deployment import Deployment
from dueline.config.yaml_file import ConfigurationError
from infra.constructs.policies import ConsumerPolicy, DirectPolicy, OperatorPolicy, ProducerPolicy
from infra.nag import spelled
from infra.policy_scope import PolicyScope

# IAM's, of a managed policy.
MOST_CHARACTERS = 6_144
_KINDS = {"Producer": ProducerPolicy, "Consumer": ConsumerPolicy, "Operator": OperatorPolicy, "Direct": DirectPolicy}
# As long as they are at most.
_REFERENCES = {
    "<AWS::Partition>": "aws",
    "<AWS::Region>": "ap-southeast-99",
    "<AWS::AccountId>": "1" * 12,
    "<HttpApiId>": "a" * 10,
}


class GroupsStack(Stack):
    """Policies to attach like those of a queue, each for all queues of a group: a role may have ten."""

    def __init__(self, scope: Construct, id: str, *, deployment: Deployment) -> None:
        description = "Dueline: the policies of groups of queues."
        super().__init__(scope, id, description=description, suppress_template_indentation=True)
        by_name = {queue.name: queue for queue in deployment.queue_settings()}
        for group, queues in deployment.groups.items():
            place = Construct(self, f"Group-{group}")
            of = PolicyScope(names=deployment.names, queues=[by_name[queue] for queue in queues], group=group)
            for kind, policy in _KINDS.items():
                self._check(policy(place, kind, deployment=deployment, of=of), group)

    def _check(self, policy: Construct, group: str) -> None:
        """Raise ConfigurationError for a policy that IAM would refuse, in the middle of a deployment."""
        [made] = [each for each in policy.node.find_all() if isinstance(each, CfnManagedPolicy)]
        document = json.dumps(_spelled(self.resolve(made.policy_document)), separators=(",", ":"))
        if len(document) > MOST_CHARACTERS:
            raise ConfigurationError(
                f"groups.{group} has too many queues: its policy {made.managed_policy_name} takes {len(document):,}"
                f" characters, and IAM's limit is {MOST_CHARACTERS:,}; make two groups of it"
            )


def _spelled(value: object) -> object:
    """Return a document with the references in it as long as what becomes of them."""
    if isinstance(value, list):
        return [_spelled(each) for each in value]
    if isinstance(value, dict) and not value.keys() & {"Ref", "Fn::Join"}:
        return {name: _spelled(each) for name, each in value.items()}
    text = spelled(value)
    for reference, meant in _REFERENCES.items():
        text = text.replace(reference, meant)
    return text
